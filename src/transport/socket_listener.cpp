// SPDX-License-Identifier: MIT
#include "transport/socket_listener.hpp"

#include "transport/sockets.hpp"

#include <cerrno>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/stat.h>

namespace muster {

namespace {
constexpr int64_t pause_ns = 100'000'000;    // without descriptors
constexpr int64_t report_ns = 1'000'000'000; // between log records about displaced connections
constexpr int max_accepts_per_turn = 64;     // accepted in a row: others have their turn, too

// The address without the port; of an IPv6 address the half that a host cannot choose.
std::string origin_of(const SocketAddress &peer) {
    std::string origin = host_of(peer);
    if (peer.family() != AF_INET6) return origin;
    const auto &bytes = reinterpret_cast<const sockaddr_in6 &>(peer.storage).sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&bytes) || IN6_IS_ADDR_LINKLOCAL(&bytes)) return origin;
    return {reinterpret_cast<const char *>(bytes.s6_addr), 8};
}
} // namespace

SocketListener::SocketListener(Hub &hub, Fd fd, std::string address, Ref<ListenerCore> core, SocketTaker *taker,
                               HandshakeConfig config, SocketFile file)
    : hub_(hub), address_(std::move(address)), core_(std::move(core)), taker_(taker),
      taker_alive_(taker == nullptr ? nullptr : &taker->socket_taker()), config_(std::move(config)),
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
        if (!make_place()) return;
        Fd fd;
        int why = 0;
        {
            const std::lock_guard hold(lock_);
            if (!fd_) return;
            if (accepted == max_accepts_per_turn)
                return hub_.modify(fd_.get(), EPOLLIN, *this); // another edge if there are more connections
            fd = Fd(accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
            why = errno;
        }
        if (fd) {
            try {
                begin_handshake(std::move(fd));
            } catch (const std::bad_alloc &) {
                hub_.context().log(MUSTER_LOG_ERROR, "%s: out of memory for a connection", address_.c_str());
            }
            continue;
        }
        if (why == EAGAIN || why == EWOULDBLOCK) return;
        if (why == EMFILE || why == ENFILE || why == ENOBUFS || why == ENOMEM) {
            if (displace(pending_.displaceable(limit(), now_ns()))) continue; // it has a descriptor
            hub_.context().log(MUSTER_LOG_ERROR, "%s: %s", address_.c_str(),
                               Error::from_errno(why, MUSTER_OK, "cannot accept a connection").message);
            hub_.start_timer(pause_, now_ns() + pause_ns);
            return;
        }
        // Others concern one connection that is gone already.
    }
}

uint32_t SocketListener::limit() const noexcept {
    return core_ ? core_->max_unauthenticated() : hub_.context().settings.max_unauthenticated;
}

// Room for one more unauthenticated connection. False: none yet; accept_some() is called again later.
bool SocketListener::make_place() noexcept {
    full_ = false;
    if (pending_.count() < limit() || !has_waiting()) return true;
    if (displace(pending_.displaceable(limit(), now_ns()))) return true;
    full_ = true;
    hub_.start_timer(pause_, now_ns() + PendingHandshakes::hello_ns);
    return false;
}

// In the kernel's queue.
bool SocketListener::has_waiting() noexcept {
    const std::lock_guard hold(lock_);
    pollfd waiting{fd_.get(), POLLIN, 0};
    return fd_ && poll(&waiting, 1, 0) == 1;
}

bool SocketListener::displace(PendingHandshake *connection) noexcept {
    if (connection == nullptr) return false;
    if (displaced_++ == 0) hub_.start_timer(report_, now_ns() + report_ns);
    connection->displace(); // leaves the list
    return true;
}

void SocketListener::report_displaced() noexcept {
    hub_.context().log(MUSTER_LOG_WARN,
                       "%s: %llu connections that had not proved themselves made place for newer ones within a second",
                       address_.c_str(), static_cast<unsigned long long>(std::exchange(displaced_, 0)));
}

void SocketListener::begin_handshake(Fd fd) {
    const bool unix_socket = local_address(fd.get()).family() == AF_UNIX;
    HandshakeConfig config = config_;
    HandshakeSetup setup;
    setup.window = config.window;
    setup.unix_socket = unix_socket;
    setup.bare = taker_ != nullptr;
    if (unix_socket) {
        int32_t process = 0;
        const uint32_t user = peer_user(fd.get(), process);
        setup.peer = address_ + " (process " + std::to_string(process) + ")";
        setup.origin = setup.peer;
        config.passing = user == config.host.user ? Passing::in_band : Passing::none;
        if (config.shared && config.passing == Passing::none) {
            hub_.context().counters.handshakes_failed.fetch_add(1, std::memory_order_relaxed);
            hub_.context().log(MUSTER_LOG_WARN, "%s: refused: a process of user %u", address_.c_str(), user);
            return;
        }
    } else {
        const SocketAddress peer = peer_address(fd.get());
        setup.peer = address_text(peer);
        setup.origin = origin_of(peer);
    }
    config.local = stays_on_host(fd.get());
    if (!unix_socket && config.local && config.upgrade) config.passing = Passing::out_of_band;
    setup.what = "accept " + setup.peer;
    const auto driver = make_ref<HandshakeDriver>(hub_, std::move(fd), std::move(config), std::move(setup),
                                                  static_cast<HandshakeOwner &>(*this));
    pending_.add(*driver);
    driver->start();
}

void SocketListener::handshake_ended(HandshakeDriver &driver, Result<Ref<Stream>> result) noexcept {
    if (result)
        core_->offer(std::move(*result));
    else if (driver.admitted() && taker_ == nullptr)
        core_->unreserve();
    leaves(driver);
}

void SocketListener::proved(HandshakeDriver &driver, ProvedSocket socket) noexcept {
    taker_->take(std::move(socket));
    leaves(driver);
}

void SocketListener::leaves(HandshakeDriver &driver) noexcept {
    pending_.remove(driver);
    if (full_) hub_.start_timer(pause_, now_ns());
}

void SocketListener::drop_handshakes() noexcept {
    hub_.stop_timer(pause_);
    if (displaced_ != 0) report_displaced();
    hub_.stop_timer(report_);
    while (PendingHandshake *const first = pending_.any()) {
        auto *const driver = static_cast<HandshakeDriver *>(first); // the list has no other type
        if (driver->admitted() && taker_ == nullptr) core_->unreserve();
        driver->stop();
        pending_.remove(*driver);
    }
}

void SocketListener::close() noexcept {
    {
        const std::lock_guard hold(lock_);
        if (!fd_) return;
        // Only the file that this listener has made: another process may have taken the name since.
        struct stat now {};
        if (!file_.path.empty() && lstat(file_.path.c_str(), &now) == 0 && now.st_dev == file_.device &&
            now.st_ino == file_.inode)
            unlink(file_.path.c_str());
        hub_.remove(fd_.get(), *this);
        fd_.reset();
    }
    // Those in the middle of proving themselves are dropped.
    drop_handshakes_.post(hub_.context());
}

} // namespace muster
