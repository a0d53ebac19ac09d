// SPDX-License-Identifier: MIT
#include "transport/pair_broker.hpp"

#include "transport/sockets.hpp"

#include <sodium.h>

#include <cerrno>
#include <new>
#include <sys/epoll.h>

namespace muster {

namespace {
constexpr int most_visitors = 256;
constexpr int max_pairs_per_turn = 64; // accepted in a row: others have their turn, too
constexpr int64_t pair_timeout_ns = 2'000'000'000;
} // namespace

// Somebody who has connected and not yet shown his token.
class PairBroker::Visitor final : public Object, private Watch {
  public:
    Visitor(PairBroker &broker, Fd fd) : broker_(broker), fd_(std::move(fd)) { broker_.visitors_++; }
    void start() noexcept {
        if (!broker_.hub_.add(fd_.get(), EPOLLIN | EPOLLRDHUP, *this)) return leave();
        registered_ = true;
        broker_.hub_.start_timer(patience_, now_ns() + pair_timeout_ns);
        on_events(EPOLLIN);
    }

  private:
    ~Visitor() override { broker_.visitors_--; }
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
        broker_.serve(token_, std::move(fd_));
    }

    void unregister() noexcept {
        broker_.hub_.stop_timer(patience_);
        if (std::exchange(registered_, false)) broker_.hub_.remove(fd_.get(), *this);
    }

    void leave() noexcept { // callers hold a reference
        unregister();
        fd_.reset();
    }

    PairBroker &broker_;
    Fd fd_;
    Token token_{};
    size_t have_ = 0;
    Timer<Visitor, &Visitor::leave> patience_{*this};
    bool registered_ = false;
};

PairBroker &PairBroker::of(Hub &hub) {
    static const char key = 0;
    return static_cast<PairBroker &>(hub.context().part(
        &key, [](Context &c) -> std::unique_ptr<ContextPart> { return std::make_unique<PairBroker>(Hub::of(c)); }));
}

bool PairBroker::listen() {
    unsigned char bytes[16];
    char text[2 * sizeof bytes + 1];
    randombytes_buf(bytes, sizeof bytes);
    sodium_bin2hex(text, sizeof text, bytes, sizeof bytes);
    name_ = "@muster/" + std::to_string(hub_.host.user) + "/pair-" + text;
    auto fd = open_socket(AF_UNIX);
    if (!fd) return false;
    const SocketAddress at = unix_socket_address(name_);
    if (bind(fd->get(), at.get(), at.size) != 0 || ::listen(fd->get(), SOMAXCONN) != 0) return false;
    if (!hub_.add(fd->get(), EPOLLIN, *this)) return false;
    fd_ = std::move(*fd);
    return true;
}

bool PairBroker::offer(Greeter &greeter, PairOffer &out) {
    if (!hub_.usable() || (!fd_ && !listen())) return false;
    out.name = name_;
    randombytes_buf(out.token.data(), out.token.size());
    offers_[out.token] = &greeter;
    return true;
}

void PairBroker::withdraw(const PairOffer &offer) noexcept {
    offers_.erase(offer.token);
}

void PairBroker::on_events(uint32_t) noexcept {
    for (int accepted = 0; fd_; accepted++) {
        if (accepted == max_pairs_per_turn)
            return hub_.modify(fd_.get(), EPOLLIN, *this); // another edge if there are more
        Fd fd(accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!fd && (errno == EINTR || errno == ECONNABORTED)) continue;
        if (!fd) return; // without descriptors nobody is paired: his patience ends, and he stays with tcp
        int32_t process = 0;
        if (peer_user(fd.get(), process) != hub_.host.user || visitors_ >= most_visitors) continue;
        // Without memory he hears the hang-up, and stays with tcp.
        if (auto *visitor = new (std::nothrow) Visitor(*this, std::move(fd))) Ref<Visitor>::adopt(visitor)->start();
    }
}

// A token is 256 random bits for one connection: who knows it has proved the secret there.
void PairBroker::serve(const Token &token, Fd socket) noexcept {
    const auto found = offers_.find(token);
    if (found == offers_.end()) return;
    Greeter &greeter = *found->second;
    offers_.erase(found);
    greeter.send_segment_aside(std::move(socket));
}

void PairBroker::close() noexcept {
    offers_.clear();
    if (fd_) hub_.remove(fd_.get(), *this);
    fd_.reset();
}

} // namespace muster
