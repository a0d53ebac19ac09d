// SPDX-License-Identifier: MIT
#include "transport/descriptor_channel.hpp"

#include <sodium.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <sys/epoll.h>

namespace muster {

namespace {
constexpr int max_visitors = 256;
constexpr int max_visitors_per_turn = 64; // in a row: others have their turn, too
constexpr int64_t token_timeout_ns = 2'000'000'000;
constexpr int64_t retry_ns = 20'000'000; // without descriptors
constexpr size_t max_descriptors = 8;    // of a message that is received

void put_control(msghdr &message, char *control, int type, const void *data, size_t size) noexcept {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(size);
    cmsghdr *const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = type;
    head->cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(head), data, size);
}
} // namespace

// ---- messages -------------------------------------------------------------------------------------------------------

ssize_t DescriptorChannel::send(int socket, std::string_view bytes, const int *descriptors, size_t count,
                                const SocketAddress *to) noexcept {
    iovec span{const_cast<char *>(bytes.data()), bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * max_descriptors)] = {};
    msghdr message{};
    message.msg_iov = &span;
    message.msg_iovlen = 1;
    put_control(message, control, SCM_RIGHTS, descriptors, count * sizeof(int));
    if (to != nullptr) {
        message.msg_name = const_cast<sockaddr *>(to->get());
        message.msg_namelen = to->size;
    }
    for (;;) {
        const ssize_t n = sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n >= 0 || errno != EINTR) return n < 0 ? -errno : n;
    }
}

ssize_t DescriptorChannel::receive(int socket, void *data, size_t size, Fd *descriptors, size_t count,
                                   uint32_t *user) noexcept {
    iovec span{data, size};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * max_descriptors) + CMSG_SPACE(sizeof(ucred))];
    msghdr message{};
    message.msg_iov = &span;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t n = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0) return n;
    Fd received[max_descriptors];
    size_t received_count = 0;
    for (cmsghdr *head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
        if (head->cmsg_level != SOL_SOCKET) continue;
        if (head->cmsg_type == SCM_CREDENTIALS && user != nullptr) {
            ucred sender{};
            memcpy(&sender, CMSG_DATA(head), sizeof sender);
            *user = sender.uid;
        }
        if (head->cmsg_type != SCM_RIGHTS) continue;
        for (size_t at = 0; at < head->cmsg_len - CMSG_LEN(0); at += sizeof(int), received_count++) {
            int fd;
            memcpy(&fd, CMSG_DATA(head) + at, sizeof fd);
            Fd owned(fd);
            if (received_count < max_descriptors) received[received_count] = std::move(owned);
        }
    }
    if (received_count != count || (message.msg_flags & MSG_CTRUNC) != 0) return n;
    for (size_t i = 0; i < count; i++) descriptors[i] = std::move(received[i]);
    return n;
}

Fd DescriptorChannel::connect(const DescriptorOffer &offer, uint32_t user) noexcept {
    auto fd = open_socket(AF_UNIX);
    if (!fd || offer.name.empty() || offer.name[0] != '@') return {};
    take_descriptors(fd->get(), true);
    const SocketAddress at = unix_socket_address(offer.name);
    int32_t process = 0;
    // A new Unix socket accepts so few bytes completely.
    if (::connect(fd->get(), at.get(), at.size) != 0 || peer_user(fd->get(), process) != user ||
        ::send(fd->get(), offer.token.data(), offer.token.size(), MSG_DONTWAIT | MSG_NOSIGNAL) !=
            static_cast<ssize_t>(offer.token.size()))
        return {};
    return std::move(*fd);
}

std::string DescriptorChannel::random_digits(size_t count) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string text(count, '\0');
    randombytes_buf(text.data(), text.size());
    for (char &c : text) c = digits[c & 15];
    return text;
}

// ---- offers ---------------------------------------------------------------------------------------------------------

// A peer that has connected and not yet shown its token.
class DescriptorChannel::Visitor final : public Object, private Watch {
  public:
    Visitor(DescriptorChannel &channel, Fd fd) : channel_(channel), fd_(std::move(fd)) { channel_.visitors_++; }
    void start() noexcept {
        if (!channel_.hub_.add(fd_.get(), EPOLLIN | EPOLLRDHUP, *this)) return leave();
        registered_ = true;
        channel_.hub_.start_timer(timeout_, now_ns() + token_timeout_ns);
        on_events(EPOLLIN);
    }

  private:
    ~Visitor() override { channel_.visitors_--; }
    Object &watch_owner() noexcept override { return *this; }

    void on_events(uint32_t) noexcept override {
        const Ref<Visitor> self(this);
        while (fd_ && have_ < token_.size()) {
            const ssize_t n = recv(fd_.get(), token_.data() + have_, token_.size() - have_, MSG_DONTWAIT);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
            if (n <= 0) return leave();
            have_ += static_cast<size_t>(n);
        }
        if (!fd_) return;
        unregister();
        channel_.serve(token_, std::move(fd_));
    }

    void unregister() noexcept {
        channel_.hub_.stop_timer(timeout_);
        if (std::exchange(registered_, false)) channel_.hub_.remove(fd_.get(), *this);
    }

    void leave() noexcept { // callers hold a reference
        unregister();
        fd_.reset();
    }

    DescriptorChannel &channel_;
    Fd fd_;
    Token token_{};
    size_t have_ = 0;
    Timer<Visitor, &Visitor::leave> timeout_{*this};
    bool registered_ = false;
};

DescriptorChannel &DescriptorChannel::of(Hub &hub) {
    static const char key = 0;
    return static_cast<DescriptorChannel &>(hub.context().part(&key, [](Context &c) -> std::unique_ptr<ContextPart> {
        return std::make_unique<DescriptorChannel>(Hub::of(c));
    }));
}

bool DescriptorChannel::listen() {
    name_ = "@muster/" + std::to_string(hub_.host.user) + "/descriptors-" + random_digits(32);
    auto fd = open_socket(AF_UNIX);
    if (!fd) return false;
    const SocketAddress at = unix_socket_address(name_);
    if (bind(fd->get(), at.get(), at.size) != 0 || ::listen(fd->get(), SOMAXCONN) != 0) return false;
    if (!hub_.add(fd->get(), EPOLLIN, *this)) return false;
    fd_ = std::move(*fd);
    return true;
}

bool DescriptorChannel::offer(Owner &owner, DescriptorOffer &out) {
    if (!hub_.usable() || (!fd_ && !listen())) return false;
    out.name = name_;
    randombytes_buf(out.token.data(), out.token.size());
    offers_[out.token] = &owner;
    return true;
}

void DescriptorChannel::withdraw(const DescriptorOffer &offer) noexcept {
    offers_.erase(offer.token);
}

void DescriptorChannel::on_events(uint32_t) noexcept {
    retry_until_ns_ = now_ns() + token_timeout_ns;
    accept_some();
}

void DescriptorChannel::accept_some() noexcept {
    for (int accepted = 0; fd_; accepted++) {
        if (accepted == max_visitors_per_turn)
            return hub_.modify(fd_.get(), EPOLLIN, *this); // another edge if there are more connections
        Fd fd(accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!fd && (errno == EINTR || errno == ECONNABORTED)) continue;
        if (!fd) {
            // No descriptor is free: the peer waits, and continues without shared memory if none becomes free in time.
            const bool is_empty = errno == EAGAIN || errno == EWOULDBLOCK;
            if (!is_empty && now_ns() < retry_until_ns_) hub_.start_timer(retry_, now_ns() + retry_ns);
            return;
        }
        int32_t process = 0;
        if (peer_user(fd.get(), process) != hub_.host.user || visitors_ >= max_visitors) continue;
        // Without memory the peer sees the hang-up, and continues without shared memory.
        if (auto *visitor = new (std::nothrow) Visitor(*this, std::move(fd))) Ref<Visitor>::adopt(visitor)->start();
    }
}

// A token is 256 random bits for one connection: a peer that knows it has proved the secret there.
void DescriptorChannel::serve(const Token &token, Fd socket) noexcept {
    const auto found = offers_.find(token);
    if (found == offers_.end()) return;
    Owner &owner = *found->second;
    offers_.erase(found);
    owner.token_shown(std::move(socket));
}

void DescriptorChannel::close() noexcept {
    offers_.clear();
    hub_.stop_timer(retry_);
    if (fd_) hub_.remove(fd_.get(), *this);
    fd_.reset();
}

} // namespace muster
