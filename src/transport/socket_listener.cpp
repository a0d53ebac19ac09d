// SPDX-License-Identifier: MIT
#include "transport/socket_listener.hpp"

#include "transport/pair_broker.hpp"
#include "transport/sockets.hpp"

#include <cerrno>
#include <sys/epoll.h>
#include <sys/stat.h>

namespace muster {

namespace {
// A connection that has not proved itself for so long makes place for a newer one.
constexpr int64_t patience_ns = 1'000'000'000;
constexpr int64_t pause_ns = 100'000'000; // without descriptors
constexpr int most_per_turn = 64;         // accepted in a row: others have their turn, too
} // namespace

SocketListener::SocketListener(Hub &hub, Fd fd, std::string address, Ref<ListenerCore> core, SocketTaker *taker,
                               HandshakeConfig greeting, SocketFile file)
    : hub_(hub), address_(std::move(address)), core_(std::move(core)), taker_(taker),
      taker_alive_(taker == nullptr ? nullptr : &taker->socket_taker()), config_(std::move(greeting)),
      file_(std::move(file)), fd_(std::move(fd)) {}

Result<void> SocketListener::start() noexcept {
    return hub_.add(fd_.get(), EPOLLIN, *this);
}

void SocketListener::on_events(uint32_t) noexcept {
    accept_some();
}

void SocketListener::accept_some() noexcept {
    const Ref<SocketListener> self(this);
    for (int accepted = 0;; accepted++) {
        Fd fd;
        int why = 0;
        {
            const std::lock_guard hold(lock_);
            if (!fd_) return;
            if (accepted == most_per_turn)
                return hub_.modify(fd_.get(), EPOLLIN, *this); // another edge if there are more
            fd = Fd(accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
            why = errno;
        }
        if (fd) {
            try {
                greet(std::move(fd));
            } catch (const std::bad_alloc &) {
                hub_.context().log(MUSTER_LOG_ERROR, "%s: out of memory for a connection", address_.c_str());
            }
            continue;
        }
        if (why == EAGAIN || why == EWOULDBLOCK) return;
        if (why == EMFILE || why == ENFILE || why == ENOBUFS || why == ENOMEM) {
            hub_.context().log(MUSTER_LOG_ERROR, "%s: %s", address_.c_str(),
                               Error::from_errno(why, MUSTER_OK, "cannot accept a connection").message);
            hub_.start_timer(pause_, now_ns() + pause_ns);
            return;
        }
        // Others concern one connection that is gone already.
    }
}

// Room for one more that has not proved itself. False: they are all fresh, the new one has to go.
bool SocketListener::make_place() noexcept {
    if (greeting_count_ < (core_ ? core_->most_unproved() : hub_.context().settings.max_unauthenticated)) return true;
    Greeter *one = greeting_.begin_walk();
    while (one != nullptr && !one->lingers()) one = greeting_.next();
    if (one == nullptr && now_ns() - greeting_.first()->since() >= patience_ns) one = greeting_.first();
    if (one == nullptr) return false;
    one->refuse(Refusal::limit); // leaves the list
    return true;
}

// What it has said so far is read away, so that closing the socket does not take the refusal back.
void SocketListener::refuse(int fd) noexcept {
    unsigned char buffer[1024];
    [[maybe_unused]] ssize_t n = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
    const std::string refusal = Handshake::refusal_message(Refusal::limit); // so short that it needs no memory
    n = send(fd, refusal.data(), refusal.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    hub_.context().counters.handshakes_failed.fetch_add(1, std::memory_order_relaxed);
}

void SocketListener::greet(Fd fd) {
    const bool unix_socket = local_address(fd.get()).family() == AF_UNIX;
    HandshakeConfig config = config_;
    GreeterSetup setup;
    setup.window = config.window;
    setup.unix_socket = unix_socket;
    setup.bare = taker_ != nullptr;
    if (unix_socket) {
        int32_t process = 0;
        const uint32_t user = peer_user(fd.get(), process);
        setup.peer = address_ + " (process " + std::to_string(process) + ")";
        config.passing = user == config.host.user ? Passing::here : Passing::no;
        if (config.shared && config.passing == Passing::no) {
            hub_.context().counters.handshakes_failed.fetch_add(1, std::memory_order_relaxed);
            hub_.context().log(MUSTER_LOG_WARN, "%s: refused: a process of user %u", address_.c_str(), user);
            return;
        }
    } else {
        setup.peer = address_text(peer_address(fd.get()));
    }
    config.local = stays_on_host(fd.get());
    if (!unix_socket && config.local && config.upgrade) config.passing = Passing::aside;
    setup.what = "accept " + setup.peer;
    if (!make_place()) {
        refuse(fd.get());
        hub_.context().log(MUSTER_LOG_WARN, "%s: refused: too many that have not proved themselves",
                           setup.what.c_str());
        return;
    }
    const auto greeter =
        make_ref<Greeter>(hub_, std::move(fd), std::move(config), std::move(setup), static_cast<GreeterOwner &>(*this));
    greeter->retain(); // for the list
    greeting_.push_back(*greeter);
    greeting_count_++;
    greeter->start();
}

void SocketListener::greeted(Greeter &greeter, Result<Ref<Stream>> result) noexcept {
    if (result)
        core_->offer(std::move(*result));
    else if (greeter.admitted() && taker_ == nullptr)
        core_->unreserve();
    leaves(greeter);
}

void SocketListener::proved(Greeter &greeter, ProvedSocket socket) noexcept {
    taker_->take(std::move(socket));
    leaves(greeter);
}

void SocketListener::leaves(Greeter &greeter) noexcept {
    greeting_.remove(greeter);
    greeting_count_--;
    greeter.release();
}

void SocketListener::drop_greeters() noexcept {
    while (Greeter *const greeter = greeting_.pop_front()) {
        greeting_count_--;
        if (greeter->admitted() && taker_ == nullptr) core_->unreserve();
        greeter->stop();
        greeter->release();
    }
}

void SocketListener::close() noexcept {
    {
        const std::lock_guard hold(lock_);
        if (!fd_) return;
        // Only the file this listener made: another may have taken the name since.
        struct stat now {};
        if (!file_.path.empty() && lstat(file_.path.c_str(), &now) == 0 && now.st_dev == file_.device &&
            now.st_ino == file_.inode)
            unlink(file_.path.c_str());
        hub_.remove(fd_.get(), *this);
        fd_.reset();
    }
    // Those in the middle of proving themselves are dropped.
    drop_greeters_.post(hub_.context());
}

} // namespace muster
