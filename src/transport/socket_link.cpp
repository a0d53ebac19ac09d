// SPDX-License-Identifier: MIT
#include "transport/socket_link.hpp"

#include <cerrno>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace muster {

namespace {
constexpr size_t turn_bytes = 1024 * 1024; // received for one link before others have their turn
}

SocketLink::SocketLink(Hub &hub, Ref<Duplex> duplex, int host_side, const Agreement &terms, uint64_t own_window,
                       std::string peer, Fd fd)
    : Link(hub, std::move(duplex), host_side, terms, own_window, std::move(peer)), fd_(std::move(fd)) {}

void SocketLink::count_io() noexcept {
    // relaxed: figures.
    (hub_.context().on_loop() ? loop_io_ : caller_io_).fetch_add(1, std::memory_order_relaxed);
}

// ---- the loop's part
// -------------------------------------------------------------------------------------------------

void SocketLink::wire_start() noexcept {
    const std::lock_guard hold(interest_lock_);
    interest_in_ = true;
    if (auto added = hub_.add(fd_.get(), EPOLLIN | EPOLLRDHUP, *this); !added) {
        fail(MUSTER_E_PEER, added.error().os_errno, "no descriptor left to watch the connection");
        return;
    }
    registered_ = true;
}

void SocketLink::set_interest(bool in, bool out, bool again) noexcept {
    const std::lock_guard hold(interest_lock_);
    if (!registered_ || (!again && in == interest_in_ && out == interest_out_)) return;
    interest_in_ = in;
    interest_out_ = out;
    const uint32_t events = EPOLLRDHUP | (in ? uint32_t{EPOLLIN} : 0) | (out ? uint32_t{EPOLLOUT} : 0);
    hub_.modify(fd_.get(), events, *this);
}

void SocketLink::want_out(bool on) noexcept {
    set_interest(interest_in_, on, on);
}

void SocketLink::wire_read_soon() noexcept {
    set_interest(true, interest_out_, true);
}

void SocketLink::on_events(uint32_t epoll_events) noexcept {
    if (over()) return;
    if (epoll_events & EPOLLOUT) {
        want_out(false);
        writable();
    }
    if (epoll_events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) read_some(hub_.staging(), Hub::staging_bytes);
}

void SocketLink::read_some(unsigned char *staging, size_t size) noexcept {
    rx_.wish();
    while (rx_.try_lock()) {
        rx_.looked();
        const bool more = pull(staging, size);
        const bool again = rx_.unlock();
        if (more) return wire_read_soon();
        if (!again) return;
    }
}

// Receives what is there into the pipe. True: there may be more, others first.
bool SocketLink::pull(unsigned char *staging, size_t size) noexcept {
    for (size_t all = 0; all < turn_bytes;) {
        if (over()) return false;
        const ssize_t n = recv(fd_.get(), staging, size, MSG_DONTWAIT);
        count_io();
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
        if (n < 0) {
            lost(errno, "the connection broke");
            return false;
        }
        if (n == 0) {
            lost(0, "the connection ended without a goodbye");
            return false;
        }
        heard();
        if (const Status status = reader_.feed(staging, static_cast<size_t>(n), *this); status < 0) {
            fail_reading(status);
            return false;
        }
        all += static_cast<size_t>(n);
    }
    return true;
}

// ---- the wire
// --------------------------------------------------------------------------------------------------------

ssize_t SocketLink::wire_send(const iovec *spans, int count) noexcept {
    msghdr message{};
    message.msg_iov = const_cast<iovec *>(spans);
    message.msg_iovlen = static_cast<size_t>(count);
    for (;;) {
        const ssize_t n = sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        count_io();
        if (n >= 0) return n;
        if (errno == EINTR) continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK) return -errno;
        want_out(true);
        return -EAGAIN;
    }
}

void SocketLink::wire_finish() noexcept {
    shutdown(fd_.get(), SHUT_WR);
}

void SocketLink::wire_shut() noexcept {
    shutdown(fd_.get(), SHUT_RDWR);
}

void SocketLink::wire_close() noexcept {
    const std::lock_guard hold(interest_lock_);
    if (std::exchange(registered_, false)) hub_.remove(fd_.get(), *this);
    fd_.reset();
}

} // namespace muster
