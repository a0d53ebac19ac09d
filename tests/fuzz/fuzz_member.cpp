// SPDX-License-Identifier: MIT
// What a broker may say to its members, which need not be what it should. The plug-in is whole; socket() gives it one
// end of a pair whose other end is the broker's, timerfd_create() a timer whose time passes when the input has such a
// step, operator new fails for a while after another one, and in place of the library there is a host table that keeps
// count.
// Two members at two brokers; the input is a list of steps: what a broker sends or happens to a connection, what the
// host asks for, time that passes. What ZMTP carries below is the subject of fuzz_zmtp.
#include "input.hpp"

#include "../common/limited_memory.hpp"
#include "broker.hpp"
#include "plugin.hpp"

#include <cerrno>
#include <functional>
#include <netinet/in.h>
#include <poll.h>
#include <set>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

using namespace star;

const muster_broker_ops star::broker_ops{};

namespace {

// Of the plug-in; elsewhere there is enough memory.
int64_t lacking = -1;     // the value for the next calls of the plug-in
uint32_t lacking_for = 0; // so many calls

// A call of the plug-in.
template <class Body>
auto enter(Body &&body) {
    struct Left {
        ~Left() {
            lacking = lacking_for != 0 ? std::exchange(allocations_left, -1) : -1;
            allocations_left = -1;
        }
    } const left;
    if (lacking_for == 0) lacking = -1;
    if (lacking_for != 0) lacking_for--;
    allocations_left = lacking;
    return body();
}

// ---- the brokers' ends
// -----------------------------------------------------------------------------------------------------

struct FakeSocket {
    int own = -1, theirs = -1; // the member's descriptor, which it closes, and the broker's
    int broker = -1;           // which one it leads to; -1: not connected
    bool greeted = false;
    std::string out, in; // what the kernel did not take yet; what the member has sent
};
std::map<int, FakeSocket> sockets; // by the member's descriptor

std::map<int, int64_t> alarms; // by the descriptor of the timer: the time until it is due, where it is set

FakeSocket *connection(int broker) {
    for (auto &[own, socket] : sockets)
        if (socket.broker == broker && socket.theirs >= 0) return &socket;
    return nullptr;
}

void hang_up(FakeSocket &socket) {
    if (const int fd = std::exchange(socket.theirs, -1); fd >= 0) close(fd);
}

// A is_valid greeting, and READY of NULL; then messages, one frame each.
void put_frame(FakeSocket &socket, const std::string &bytes) {
    if (!std::exchange(socket.greeted, true)) {
        std::string greeting(64, '\0');
        memcpy(greeting.data(), "\xff\0\0\0\0\0\0\0\1\x7f\3\0NULL", 16);
        socket.out += greeting;
        socket.out += std::string("\x04\x1c\x05READY\x0bSocket-Type\0\0\0\x06ROUTER", 30);
    }
    std::string begin(9, '\0');
    begin[0] = 2;
    for (size_t i = 8, size = bytes.size(); i > 0; i--, size >>= 8) begin[i] = static_cast<char>(size);
    socket.out += begin + bytes;
}

// What the member has sent: a greeting, READY, and messages of a star.
void check_sent(FakeSocket &socket) {
    size_t at = 64;
    if (socket.in.size() < at) return;
    for (bool first = true;; first = false) {
        const auto *const begin = reinterpret_cast<const unsigned char *>(socket.in.data()) + at;
        const size_t left = socket.in.size() - at;
        const size_t head = left == 0 ? 1 : (begin[0] & 2) != 0 ? 9 : 2;
        if (left < head) break;
        size_t size = 0;
        for (size_t i = 1; i < head; i++) size = size << 8 | begin[i];
        if (left < head + size) break;
        Head said;
        if (!first) FUZZ_CHECK((begin[0] & 4) == 0 && get_head(begin + head, size, said));
        FUZZ_CHECK(size <= head_bytes + max_message_bytes + 8 * 4096);
        at += head + size;
    }
}

// Whatever the kernel takes; the broker reads everything.
void move_bytes() {
    for (auto &[own, socket] : sockets) {
        if (socket.theirs < 0) continue;
        if (!socket.out.empty()) {
            const ssize_t put = send(socket.theirs, socket.out.data(), socket.out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
            if (put > 0) socket.out.erase(0, static_cast<size_t>(put));
        }
        static char bytes[65536];
        for (ssize_t got; (got = recv(socket.theirs, bytes, sizeof bytes, MSG_DONTWAIT)) > 0;)
            socket.in.append(bytes, static_cast<size_t>(got));
        check_sent(socket);
    }
}

// ---- the library, as far as it goes
// ----------------------------------------------------------------------------------

struct Watch {
    int fd;
    uint32_t events;
    void (*ready)(void *, uint32_t);
    void *user;
};
struct Known {
    int broker;
    bool lost = false;
};

struct World {
    muster_host host{};
    const muster_fabric_ops *ops = nullptr;
    void *self = nullptr;
    std::set<Watch *> watches;
    std::map<uint64_t, bool> questions; // not answered yet; is it a name that is claimed?
    std::vector<std::string> published;
    std::map<uint64_t, Known> peers;
    std::set<uint64_t> forgotten; // after the running call
    uint64_t next_question = 1, segments = 0;
    int speaking = -1; // the broker whose message was read last
};
World *world;

void check_peer(uint64_t peer) {
    const EnoughMemory enough;
    FUZZ_CHECK(peer != UINT64_MAX && world->speaking >= 0);
    const auto [found, fresh] = world->peers.try_emplace(peer, Known{world->speaking});
    FUZZ_CHECK(found->second.broker == world->speaking); // no broker speaks for another one's members
    FUZZ_CHECK(!found->second.lost);
}

void log(const muster_host *, int32_t, const char *text, uint64_t bytes) {
    const EnoughMemory enough;
    for (uint64_t i = 0; i < bytes; i++) FUZZ_CHECK(text[i] >= ' ' && text[i] <= '~');
    FUZZ_CHECK(bytes < 1000);
}
muster_status derive(const muster_host *, const char *, uint64_t, void *key, uint64_t bytes) {
    memset(key, 7, bytes);
    return MUSTER_OK;
}
muster_status add_fabric(const muster_host *, const char *, uint64_t, const muster_fabric_ops *ops, void *self,
                         muster_error *) {
    const EnoughMemory enough;
    world->ops = ops;
    world->self = self;
    return MUSTER_OK;
}
muster_status watch_fd(const muster_host *, int32_t fd, uint32_t events, void (*ready)(void *, uint32_t), void *user,
                       muster_watch **out) {
    const EnoughMemory enough;
    auto *const watch = new Watch{fd, events, ready, user};
    world->watches.insert(watch);
    *out = reinterpret_cast<muster_watch *>(watch);
    return MUSTER_OK;
}
void change_fd(muster_watch *watch, uint32_t events) {
    FUZZ_CHECK(world->watches.count(reinterpret_cast<Watch *>(watch)) == 1);
    reinterpret_cast<Watch *>(watch)->events = events;
}
void unwatch_fd(muster_watch *watch) {
    const EnoughMemory enough;
    if (watch == nullptr) return;
    FUZZ_CHECK(world->watches.erase(reinterpret_cast<Watch *>(watch)) == 1);
    delete reinterpret_cast<Watch *>(watch);
}
void *acquire_buffer(const muster_host *) {
    const EnoughMemory enough;
    world->segments++;
    return malloc(max_message_bytes);
}
void release_buffer(const muster_host *, void *segment) {
    const EnoughMemory enough;
    if (segment != nullptr) world->segments--;
    free(segment);
}
void resolved(muster_endpoint *, uint64_t question, muster_status status, uint64_t peer, const char *, uint64_t) {
    const EnoughMemory enough;
    const auto found = world->questions.find(question);
    FUZZ_CHECK(found != world->questions.end() && !found->second && status <= 0);
    world->questions.erase(found);
    if (status == MUSTER_OK) check_peer(peer);
}
void published(muster_endpoint *, uint64_t question, muster_status status, const char *text, uint64_t bytes) {
    const EnoughMemory enough;
    const auto found = world->questions.find(question);
    FUZZ_CHECK(found != world->questions.end() && found->second && status <= 0 && bytes <= 1024);
    world->questions.erase(found);
    if (status == MUSTER_OK) world->published.emplace_back(text, bytes);
}
void message(muster_endpoint *, uint64_t peer, const void *data, uint64_t bytes) {
    const EnoughMemory enough;
    check_peer(peer);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < bytes; i++) sum += static_cast<const unsigned char *>(data)[i];
    if (sum % 3 == 0) world->forgotten.insert(peer); // it is of no interest
}
void message_multicast(muster_endpoint *endpoint, uint64_t peer, const void *data, uint64_t bytes, uint32_t index,
                       uint32_t count, const muster_loan *loan) {
    FUZZ_CHECK(index < count);
    message(endpoint, peer, data, bytes);
    if (loan != nullptr) loan->release(loan->memory, loan->hint);
}
void message_lent(muster_endpoint *endpoint, uint64_t peer, const void *data, uint64_t bytes, const muster_loan *loan) {
    message(endpoint, peer, data, bytes);
    loan->release(loan->memory, loan->hint);
}
void ready(muster_endpoint *, uint64_t peer) {
    check_peer(peer);
}
void peer_lost(muster_endpoint *, uint64_t peer, muster_status status, int32_t, const char *, uint64_t) {
    const EnoughMemory enough;
    const auto found = world->peers.find(peer);
    FUZZ_CHECK(found != world->peers.end() && !found->second.lost && status < 0);
    found->second.lost = true;
    world->forgotten.insert(peer);
}
void peer_flags(muster_endpoint *, uint64_t, uint32_t) {}

void forget_some() {
    for (const uint64_t peer : std::exchange(world->forgotten, {}))
        if (world->peers.erase(peer) != 0) enter([peer] { world->ops->forget(world->self, peer); });
}

// ---- what happens
// ----------------------------------------------------------------------------------------------------

void send(int broker, const std::string &bytes) {
    if (FakeSocket *const socket = connection(broker)) put_frame(*socket, bytes);
}

std::string spoken(const Head &head, std::string_view payload = {}) {
    std::string bytes(head_bytes, '\0');
    put_head(reinterpret_cast<unsigned char *>(bytes.data()), head);
    return bytes.append(payload);
}

// The end of a connection, when everything has been said or at once.
void happens(int broker, uint8_t what) {
    FakeSocket *const socket = connection(broker);
    if (socket == nullptr || what % 4 > 1) return;
    if (what % 4 == 0) move_bytes();
    hang_up(*socket);
}

// As a broker that is in order does: it lets the member in.
void let_in(int broker, uint64_t id, uint64_t window) {
    send(broker,
         spoken(Head{Kind::welcome, 0, 0, 0}, std::string(1, '\1') + std::string(nonce_bytes + proof_bytes, 'n')));
    std::string word(8, '\0');
    put_u64(reinterpret_cast<unsigned char *>(word.data()), window);
    send(broker, spoken(Head{Kind::ready, 0, id, 0}, word));
}

// Descriptors report their events; each callback may end watches.
void look_around() {
    for (int round = 0; round < 4; round++) {
        move_bytes();
        std::vector<std::pair<int, uint32_t>> fds;
        for (const Watch *const watch : world->watches) {
            pollfd ready{watch->fd, static_cast<short>(POLLIN | (watch->events & MUSTER_PLUGIN_WRITABLE ? POLLOUT : 0)),
                         0};
            if (poll(&ready, 1, 0) == 1) fds.emplace_back(watch->fd, watch->events);
        }
        for (const auto &[fd, events] : fds)
            for (const Watch *const watch : world->watches)
                if (watch->fd == fd) {
                    const auto found = sockets.find(fd);
                    if (found != sockets.end()) world->speaking = found->second.broker;
                    enter([watch, events = events] { watch->ready(watch->user, events); });
                    break;
                }
        forget_some();
    }
}

// The timers that are due within this time report it.
void pass_time(int64_t ns) {
    const uint64_t one = 1;
    for (const Watch *const watch : world->watches)
        if (const auto alarm = alarms.find(watch->fd); alarm != alarms.end() && alarm->second <= ns) {
            FUZZ_CHECK(write(watch->fd, &one, sizeof one) == sizeof one);
            alarms.erase(alarm);
        }
    look_around();
}

std::string authority(uint8_t which) {
    static const char *const names[] = {"", "a@", "b@", "ccc@"};
    return std::string(names[which % 4]) + (which & 4 ? "127.0.0.1:2" : "127.0.0.1:1") + "?curve=no";
}

void ask(bool claim, uint8_t which) {
    const std::string name = authority(which);
    const uint64_t question = world->next_question++;
    muster_error error{};
    char text[1024];
    uint64_t number = 0;
    world->questions.emplace(question, claim);
    const muster_status status = enter([&] {
        return claim ? world->ops->publish(world->self, name.data(), name.size(), question, text, &number, &error)
                     : world->ops->resolve(world->self, name.data(), name.size(), question, &number, &error);
    });
    if (status != MUSTER_AGAIN) world->questions.erase(question);
}

void withdraw(size_t which) {
    if (world->published.empty()) return;
    const auto at = world->published.begin() + static_cast<std::ptrdiff_t>(which % world->published.size());
    const std::string name = *at;
    world->published.erase(at);
    enter([&] { world->ops->withdraw(world->self, name.data(), name.size()); });
}

void send(size_t which, size_t size, bool lent) {
    if (world->peers.empty()) return;
    auto at = world->peers.begin();
    std::advance(at, which % world->peers.size());
    if (at->second.lost) return;
    if (lent) {
        void *const segment = acquire_buffer(nullptr);
        memset(segment, 1, 128 + size);
        if (enter([&] { return world->ops->send_buffer(world->self, at->first, segment, 128, size); }) != MUSTER_OK)
            release_buffer(nullptr, segment);
        return;
    }
    const std::string bytes(size, 'b');
    const muster_span span = {bytes.data(), bytes.size()};
    enter([&] { return world->ops->send(world->self, at->first, &span, 1); });
}

void send_to_all(size_t size) {
    std::vector<uint64_t> peers;
    for (const auto &[number, peer] : world->peers)
        if (!peer.lost && peers.size() < 256) peers.push_back(number);
    if (peers.empty()) return;
    const size_t offset = 128 + 8 * peers.size();
    size = std::min(size, 256 * 1024 - offset);
    void *const segment = acquire_buffer(nullptr);
    memset(segment, 1, offset + size);
    const auto count = static_cast<uint32_t>(peers.size());
    const muster_status status =
        enter([&] { return world->ops->send_multicast(world->self, peers.data(), count, segment, offset, size); });
    if (status != MUSTER_OK) release_buffer(nullptr, segment);
}

Head any_head(Input &input) {
    Head head;
    head.kind = static_cast<Kind>(1 + input.byte() % last_kind);
    const uint8_t form = input.byte();
    head.word = form & 1 ? static_cast<uint32_t>(input.number(4)) : input.byte();
    head.from = form & 2 ? input.number(8) : input.byte();
    head.to = form & 4 ? input.number(8) : input.byte();
    return head;
}

void step(Input &input) {
    const uint8_t what = input.byte();
    const int broker = what >> 7;
    size_t got = 0;
    switch (what & 15) {
    case 0: { // anything
        const uint8_t *const bytes = input.take(input.number(2), got);
        return send(broker, {reinterpret_cast<const char *>(bytes), got});
    }
    case 1:
    case 2: { // something that makes sense
        const Head head = any_head(input);
        const uint8_t *const bytes = input.take(input.byte(), got);
        std::string payload(reinterpret_cast<const char *>(bytes), got);
        if ((what & 15) == 2) payload.resize(payload.size() * 500);
        return send(broker, spoken(head, payload));
    }
    case 3: {
        const uint8_t id = input.byte();
        return let_in(broker, id, uint64_t{1} << input.byte() % 64);
    }
    case 4:
        return happens(broker, input.byte());
    case 5: { // an answer to one of its questions
        Answer answer;
        answer.status = static_cast<muster_status>(static_cast<int8_t>(input.byte()));
        Head head{Kind::answer, input.byte(), 0, input.byte()};
        return send(broker, spoken(head, answer.encode()));
    }
    case 6:
    case 7:
        return ask((what & 15) == 6, input.byte());
    case 8:
        return withdraw(input.byte());
    case 9:
    case 10: {
        const uint8_t which = input.byte();
        const size_t size = 1 + input.number(2);
        return what & 16 ? send_to_all(size) : send(which, size, (what & 15) == 10);
    }
    case 11:
        if (!world->peers.empty()) world->forgotten.insert(world->peers.begin()->first);
        return forget_some();
    case 12:
        return pass_time(1'000'000'000);
    case 13:
        return pass_time(INT64_MAX);
    case 14:
        lacking = input.byte() % 16;
        lacking_for = 1 + broker * 3;
        return;
    default:
        return look_around();
    }
}

} // namespace

// ---- the functions
// ---------------------------------------------------------------------------------------------------

// In place of the C library's, for TCP: a pair.
int socket(int family, int type, int protocol) {
    const EnoughMemory enough;
    int fds[2];
    (void)protocol;
    FUZZ_CHECK((family == AF_INET || family == AF_INET6) && (type & SOCK_NONBLOCK) != 0);
    if (socketpair(AF_UNIX, type, 0, fds) != 0) return -1;
    if (const auto found = sockets.find(fds[0]); found != sockets.end()) { // it was closed by the member
        hang_up(found->second);
        sockets.erase(found);
    }
    sockets[fds[0]].own = fds[0];
    sockets[fds[0]].theirs = fds[1];
    alarms.erase(fds[0]); // of a timer that the member has closed
    return fds[0];
}
int timerfd_create(clockid_t, int) noexcept {
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}
int timerfd_settime(int fd, int, const itimerspec *due, itimerspec *) noexcept {
    const EnoughMemory enough;
    uint64_t times = 0;
    while (read(fd, &times, sizeof times) > 0) {
    }
    const int64_t after_ns = due->it_value.tv_sec * int64_t{1'000'000'000} + due->it_value.tv_nsec;
    alarms.erase(fd);
    if (after_ns == 1) {
        const uint64_t one = 1;
        FUZZ_CHECK(write(fd, &one, sizeof one) == sizeof one);
    } else if (after_ns != 0) {
        alarms[fd] = after_ns;
    }
    return 0;
}
int connect(int fd, const sockaddr *address, socklen_t) {
    const auto found = sockets.find(fd);
    FUZZ_CHECK(found != sockets.end() && address->sa_family == AF_INET);
    found->second.broker = ntohs(reinterpret_cast<const sockaddr_in *>(address)->sin_port) - 1;
    return 0;
}

extern "C" MUSTER_API muster_status muster_plugin_v1(const muster_host *host, muster_error *error);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    World here;
    world = &here;
    muster_host &host = here.host;
    host.struct_size = sizeof host;
    host.log = log;
    host.derive = derive;
    host.add_fabric = add_fabric;
    host.watch_fd = watch_fd;
    host.change_fd = change_fd;
    host.unwatch_fd = unwatch_fd;
    host.acquire_buffer = acquire_buffer;
    host.release_buffer = release_buffer;
    host.resolved = resolved;
    host.published = published;
    host.message = message;
    host.message_lent = message_lent;
    host.message_multicast = message_multicast;
    host.ready = ready;
    host.peer_lost = peer_lost;
    host.peer_flags = peer_flags;
    muster_error error{};
    FUZZ_CHECK(muster_plugin_v1(&host, &error) == MUSTER_OK);
    FUZZ_CHECK(here.ops->start(here.self, nullptr, &error) == MUSTER_OK);
    Input input(data, size);
    for (int steps = 0; input.left() != 0 && steps < 2000; steps++) step(input);
    lacking_for = 0;
    look_around();
    FUZZ_CHECK(here.questions.size() < 2000);
    for (auto &[own, socket] : sockets) hang_up(socket); // so that no side waits for goodbyes
    here.ops->stop(here.self);
    sockets.clear();
    FUZZ_CHECK(here.watches.empty() && here.segments == 0);
    return 0;
}
