// SPDX-License-Identifier: MIT
#include "plugin/pairing.hpp"

#include "context/loop_watch.hpp"
#include "plugin/session.hpp"
#include "transport/frame.hpp"
#include "transport/hub.hpp"
#include "transport/segment.hpp"
#include "transport/sockets.hpp"

#include <cstring>
#include <fcntl.h>
#include <linux/memfd.h>
#include <sodium.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <uv.h>

namespace muster {

namespace {
constexpr int64_t pairing_timeout_ns = 10'000'000'000;
constexpr size_t name_bytes = 32;                                // behind the leading zero of an abstract socket
constexpr size_t offer_bytes = 8 + 16 + 8 + 4 + 32 + name_bytes; // size, boot, network namespace, user, token, name
constexpr int wanted_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

sockaddr_un abstract_address(const char *name, socklen_t &length) noexcept {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path + 1, name, name_bytes);
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name_bytes);
    return address;
}

bool same_user(int fd) noexcept {
    ucred peer{};
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}
} // namespace

// ---- the memory
// ------------------------------------------------------------------------------------------------------

SharedSegment::SharedSegment(Fd memory, void *data, size_t bytes, Fd own, Fd peer, uint32_t side) noexcept
    : memory_(std::move(memory)), own_(std::move(own)), peer_(std::move(peer)) {
    table_ = {sizeof table_, side, data, bytes, own_.get(), peer_.get()};
}

SharedSegment::~SharedSegment() {
    munmap(table_.data, table_.size_bytes);
}

Result<Ref<SharedSegment>> SharedSegment::make(size_t bytes) {
    bytes = rounded(bytes);
    Fd memory(memfd_create("muster-plugin", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!memory) return Error::from_errno(errno, MUSTER_OK, "share memory: memfd");
    // Allocated before it is mapped: a full machine is a status now, not a SIGBUS later.
    if (ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0 ||
        fallocate(memory.get(), 0, 0, static_cast<off_t>(bytes)) != 0 ||
        fcntl(memory.get(), F_ADD_SEALS, wanted_seals) != 0)
        return Error::from_errno(errno, errno == ENOSPC ? MUSTER_E_NOMEM : MUSTER_OK, "share memory: %zu bytes", bytes);
    Fd own(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), peer(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!own || !peer) return Error::from_errno(errno, MUSTER_OK, "share memory: eventfd");
    void *data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
    if (data == MAP_FAILED) return Error::from_errno(errno, MUSTER_E_NOMEM, "share memory: map %zu bytes", bytes);
    return Ref<SharedSegment>::adopt(
        new SharedSegment(std::move(memory), data, bytes, std::move(own), std::move(peer), 0));
}

Result<Ref<SharedSegment>> SharedSegment::take(Fd memory, size_t bytes, Fd own, Fd peer) {
    if (const Result<void> good = check_shared_memory(memory.get(), bytes); !good) return good.error();
    if (const Result<void> good = check_doorbells(own.get(), peer.get()); !good) return good.error();
    void *data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
    if (data == MAP_FAILED) return Error::from_errno(errno, MUSTER_E_NOMEM, "share memory: map %zu bytes", bytes);
    return Ref<SharedSegment>::adopt(
        new SharedSegment(std::move(memory), data, bytes, std::move(own), std::move(peer), 1));
}

// By value, as those that keep it want it.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
void Channel::paired(Ref<SharedSegment> segment, Status status) noexcept {
    (void)segment, (void)status;
}

// ---- the exchange
// ----------------------------------------------------------------------------------------------------

Pairing::Pairing(Session &session)
    : session_(session), timer_(session.context().loop(), [this] { finish({}, MUSTER_E_UNSUPPORTED); }) {
    timer_.start(pairing_timeout_ns, 0);
}

Pairing::~Pairing() = default;

void Pairing::watch(int fd, void (Pairing::*ready)()) {
    watch_.reset(); // one at a time
    auto poll = LoopWatch::make(session_.context().loop(), fd, [this, ready](uint32_t) {
        try {
            (this->*ready)();
        } catch (const std::bad_alloc &) {
            finish({}, MUSTER_E_NOMEM);
        }
    });
    if (!poll) return; // the timer ends it
    watch_ = std::move(*poll);
    watch_->set_events(EPOLLIN);
}

// The end of an exchange, told to the channel from the session's next turn. Destroys this.
void Pairing::finish(Ref<SharedSegment> segment, Status status) noexcept {
    session_.end_pairing(std::move(segment), status, asked_here_);
}

std::unique_ptr<Pairing> Pairing::offer(Session &session, size_t bytes) {
    auto pairing = std::unique_ptr<Pairing>(new Pairing(session));
    pairing->asked_here_ = true;
    pairing->bytes_ = SharedSegment::rounded(bytes);
    char name[name_bytes];
    static constexpr char digits[] = "0123456789abcdef";
    for (char &c : name) c = digits[randombytes_uniform(16)];
    static constexpr char prefix[] = {'m', 'u', 's', 't', 'e', 'r', '-', 'p', 'a', 'i', 'r', '-'};
    memcpy(name, prefix, sizeof prefix); // bytes of an abstract name: no terminator
    randombytes_buf(pairing->token_.data(), pairing->token_.size());
    auto segment = SharedSegment::make(bytes);
    Fd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    socklen_t length = 0;
    const sockaddr_un address = abstract_address(name, length);
    if (listener) take_descriptors(listener.get(), false);
    if (!segment || !listener || bind(listener.get(), reinterpret_cast<const sockaddr *>(&address), length) != 0 ||
        listen(listener.get(), 4) != 0) {
        pairing->finish_soon(segment ? MUSTER_E_LIMIT : segment.error().status);
        return pairing;
    }
    pairing->segment_ = std::move(*segment);
    pairing->listener_ = std::move(listener);
    const HostIdentity &host = Hub::of(session.context()).host;
    unsigned char payload[offer_bytes];
    put_u64(payload, pairing->bytes_);
    memcpy(payload + 8, host.boot.data(), 16);
    put_u64(payload + 24, host.net_namespace);
    put_u32(payload + 32, host.user);
    memcpy(payload + 36, pairing->token_.data(), 32);
    memcpy(payload + 68, name, name_bytes);
    session.put_control(SessionFrame::pair_offer, 0, {reinterpret_cast<char *>(payload), sizeof payload});
    session.schedule();
    pairing->watch(pairing->listener_.get(), &Pairing::accept_one);
    return pairing;
}

// Nothing can be offered: told like any other end, never from inside the call that asked.
void Pairing::finish_soon(Status status) {
    early_ = status;
    session_.schedule();
}

bool Pairing::take(Session &session, std::unique_ptr<Pairing> &current, bool is_offer, const unsigned char *payload,
                   size_t size) {
    if (is_offer) return take_offer(session, current, payload, size);
    if (size != 4) return false;
    const auto status = static_cast<int32_t>(get_u32(payload));
    if (!current || !current->asked_here_) return true; // an answer to an offer that gave way to the peer's own
    if (status == MUSTER_OK && !current->waits_for_answer_) return false;
    current->finish(status == MUSTER_OK ? current->segment_ : Ref<SharedSegment>(),
                    status == MUSTER_OK ? MUSTER_OK : MUSTER_E_UNSUPPORTED);
    return true;
}

bool Pairing::take_offer(Session &session, std::unique_ptr<Pairing> &current, const unsigned char *payload,
                         size_t size) {
    if (size != offer_bytes) return false;
    const uint64_t bytes = get_u64(payload);
    if (bytes == 0 || bytes > uint64_t{1} << 30 || bytes % 4096 != 0) return false;
    const auto decline = [&](Status status) {
        unsigned char word[4];
        put_u32(word, static_cast<uint32_t>(status));
        session.put_control(SessionFrame::pair_answer, 0, {reinterpret_cast<char *>(word), 4});
        session.schedule();
        return true;
    };
    HostIdentity host;
    memcpy(host.boot.data(), payload + 8, 16);
    host.net_namespace = get_u64(payload + 24);
    host.user = get_u32(payload + 32);
    if (!session.channel().can_pair() || !Hub::of(session.context()).host.same_place(host))
        return decline(MUSTER_E_UNSUPPORTED);
    // What is in use, or about to be told to the plug-in, stays.
    if (session.have_segment_ || session.pairing_due_) return decline(MUSTER_E_BUSY);
    if (current) {
        // Both asked at once: the dialling side's offer stands.
        if (!current->asked_here_ || session.dialer()) return decline(MUSTER_E_BUSY);
        current.reset();
    }
    auto pairing = std::unique_ptr<Pairing>(new Pairing(session));
    pairing->bytes_ = bytes;
    Fd connection(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    socklen_t length = 0;
    const sockaddr_un address = abstract_address(reinterpret_cast<const char *>(payload) + 68, length);
    if (!connection || connect(connection.get(), reinterpret_cast<const sockaddr *>(&address), length) != 0 ||
        !same_user(connection.get()) || ::send(connection.get(), payload + 36, 32, MSG_NOSIGNAL) != 32)
        return decline(MUSTER_E_UNSUPPORTED);
    pairing->connection_ = std::move(connection);
    pairing->watch(pairing->connection_.get(), &Pairing::fetch);
    current = std::move(pairing);
    return true;
}

void Pairing::accept_one() {
    Fd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    // Without descriptors the connection stays where it is, and the socket readable.
    if (!connection && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
        return finish({}, MUSTER_E_LIMIT);
    if (!connection || !same_user(connection.get())) return;
    connection_ = std::move(connection);
    shown_bytes_ = 0;
    watch(connection_.get(), &Pairing::hand_over);
}

// Reads the token; the right one gets the descriptors.
void Pairing::hand_over() {
    const ssize_t got = recv(connection_.get(), shown_.data() + shown_bytes_, shown_.size() - shown_bytes_, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got > 0) shown_bytes_ += static_cast<size_t>(got);
    if (got > 0 && shown_bytes_ < shown_.size()) return;
    if (got <= 0 || sodium_memcmp(shown_.data(), token_.data(), token_.size()) != 0) {
        watch_.reset();
        connection_.reset(); // a stranger: the next one
        return watch(listener_.get(), &Pairing::accept_one);
    }
    const muster_segment &table = segment_->table();
    const int fds[3] = {segment_->memory(), table.peer_event, table.own_event}; // the receiver's own doorbell first
    char mark = 'M';
    iovec span{&mark, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof fds)] = {};
    msghdr message{};
    message.msg_iov = &span;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fds);
    memcpy(CMSG_DATA(head), fds, sizeof fds);
    if (sendmsg(connection_.get(), &message, MSG_NOSIGNAL) != 1) return finish({}, MUSTER_E_SYSTEM);
    waits_for_answer_ = true;
    watch_.reset();
    listener_.reset();
    connection_.reset();
}

void Pairing::fetch() {
    Fd fds[segment_descriptors];
    char mark = 0;
    const ssize_t got = receive_segment(connection_.get(), &mark, 1, fds);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    Status status = MUSTER_E_PROTOCOL;
    Ref<SharedSegment> segment;
    if (got == 1 && fds[0]) {
        auto taken = SharedSegment::take(std::move(fds[0]), bytes_, std::move(fds[1]), std::move(fds[2]));
        status = taken ? MUSTER_OK : taken.error().status;
        if (taken) segment = std::move(*taken);
    }
    unsigned char word[4];
    put_u32(word, static_cast<uint32_t>(status));
    session_.put_control(SessionFrame::pair_answer, 0, {reinterpret_cast<char *>(word), 4});
    finish(std::move(segment), status);
}

} // namespace muster
