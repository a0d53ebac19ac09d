// SPDX-License-Identifier: MIT
// The loop's part of a socket link, and the watch of the host. socket_link_direct.cpp has the part of the host's
// threads.
#include "transport/socket_link.hpp"

#include "base/uncancelled.hpp"

#include <muster/stream.h>

#include <cerrno>

namespace muster {

namespace {
constexpr size_t turn_bytes = 1024 * 1024; // received for one link before others have their turn
constexpr int unix_send_bytes = 512 * 1024;
constexpr size_t peep_bytes = 4096; // received to find out what a watched socket became ready for
constexpr int most_peeps = 16;      // in a row, where only frames come that are not for the host
constexpr uint32_t hang_up = EPOLLRDHUP | EPOLLHUP | EPOLLERR;
} // namespace

SocketLink::SocketLink(Hub &hub, Ref<Duplex> duplex, int host_side, const Agreement &terms, uint64_t own_window,
                       std::string peer, Fd fd)
    : Link(hub, std::move(duplex), host_side, terms, own_window, std::move(peer)), fd_(std::move(fd)),
      may_block_(!hub.context().external()) {
    // Fewer stops of a writer that is ahead of its reader. Tcp finds its own size; the kernel cuts what it does not
    // allow.
    int family = 0;
    socklen_t size = sizeof family;
    if (getsockopt(fd_.get(), SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 && family == AF_UNIX)
        setsockopt(fd_.get(), SOL_SOCKET, SO_SNDBUF, &unix_send_bytes, sizeof unix_send_bytes);
}

SocketLink::~SocketLink() {
    hub_.give_bell(bell_in_); // the socket is closed, and so out of its epoll
    hub_.give_bell(bell_out_);
}

void SocketLink::count_io() noexcept {
    // relaxed: figures.
    (hub_.context().on_loop() ? loop_io_ : caller_io_).fetch_add(1, std::memory_order_relaxed);
}

// ---- the loop -------------------------------------------------------------------------------------------------------

void SocketLink::wire_start() noexcept {
    const std::lock_guard hold(interest_lock_);
    interest_in_ = true;
    if (auto added = hub_.add(fd_.get(), EPOLLIN | EPOLLRDHUP, *this); !added) {
        fail(MUSTER_E_PEER, added.error().os_errno, "no descriptor left to watch the connection");
        return;
    }
    registered_ = true;
}

// Hang-up and errors are always told. `again`: tell what is ready already, too. Interest lock held.
void SocketLink::set_interest(bool in, bool out, bool again) noexcept {
    if (!registered_ || (!again && in == interest_in_ && out == interest_out_)) return;
    interest_in_ = in;
    interest_out_ = out;
    const uint32_t events = EPOLLRDHUP | (in ? uint32_t{EPOLLIN} : 0) | (out ? uint32_t{EPOLLOUT} : 0);
    hub_.modify(fd_.get(), events, *this);
}

void SocketLink::wire_read_soon() noexcept {
    const std::lock_guard hold(interest_lock_);
    set_interest(true, interest_out_, true);
}

void SocketLink::on_events(uint32_t epoll_events) noexcept {
    if (over()) return;
    if (epoll_events & EPOLLOUT) {
        {
            const std::lock_guard hold(interest_lock_);
            set_interest(interest_in_, false);
        }
        writable();
    }
    const bool ends = (epoll_events & hang_up) != 0;
    if ((epoll_events & EPOLLIN) != 0 || ends) read_some(hub_.staging(), Hub::staging_bytes, ends);
}

void SocketLink::read_some(unsigned char *staging, size_t size, bool to_the_end) noexcept {
    rx_.wish();
    while (rx_.try_lock()) {
        rx_.looked();
        const Pulled pulled = pull(staging, size, turn_bytes, to_the_end);
        const bool again = rx_.unlock();
        if (pulled == Pulled::enough) return wire_read_soon();
        if (!again) return;
    }
}

bool SocketLink::took(ssize_t n, int why) noexcept {
    if (n > 0) {
        heard();
        return true;
    }
    if (n == 0)
        lost(0, "the connection ended without a goodbye");
    else if (why != EAGAIN && why != EWOULDBLOCK && why != EINTR)
        lost(why, "the connection broke");
    return false;
}

// Receives what is there into the pipe, about `most` bytes of it. A short answer of a stream socket says that it is
// empty and what comes later raises another edge; only where the end has come already (`to_the_end`) it has to be
// looked for.
SocketLink::Pulled SocketLink::pull(unsigned char *staging, size_t size, size_t most, bool to_the_end) noexcept {
    Pulled pulled = Pulled::nothing;
    for (size_t all = 0; !over();) {
        if (all >= most) return Pulled::enough;
        const ssize_t n = uncancelled::receive(fd_.get(), staging, size, MSG_DONTWAIT);
        const int why = errno;
        count_io();
        if (n < 0 && why == EINTR) continue;
        drained_ = n < static_cast<ssize_t>(size);
        if (!took(n, why)) return pulled;
        if (const Status status = reader_.feed(staging, static_cast<size_t>(n), *this); status < 0) {
            fail_reading(status);
            return pulled;
        }
        pulled = Pulled::some;
        all += static_cast<size_t>(n);
        if (drained_ && !to_the_end) return pulled;
    }
    return pulled;
}

void SocketLink::tick(int64_t now, bool late) noexcept {
    if (over()) return;
    bool mine;
    {
        const std::lock_guard hold(interest_lock_);
        mine = interest_in_;
    }
    // Nobody of the host looks: what the peer says must be heard all the same, and its writers want their credit.
    if (!mine && !rx_.held()) {
        const uint64_t before = received_.load(std::memory_order_relaxed);
        read_some(hub_.staging(), Hub::staging_bytes, true);
        if (received_.load(std::memory_order_relaxed) != before) wire_read_soon(); // until the host comes again
    }
    Link::tick(now, late);
}

bool SocketLink::idle_tick() noexcept {
    if (over()) return false;
    const uint32_t visits = visits_.load(std::memory_order_relaxed);
    if (std::exchange(visits_seen_, visits) != visits) return true;
    if (!rx_.try_lock()) { // somebody sleeps inside: he calls again when he leaves
        near_.store(false, std::memory_order_seq_cst);
        return false;
    }
    near_.store(false, std::memory_order_seq_cst);
    give_bell_in();
    if (!watched_.load(std::memory_order_seq_cst)) wire_read_soon();
    if (rx_.unlock()) read_some(hub_.staging(), Hub::staging_bytes, true);
    return false;
}

// ---- the watch of the host ------------------------------------------------------------------------------------------

bool SocketLink::watch(Queue &queue, Source &source) noexcept {
    const std::lock_guard hold(watch_lock_);
    if (shared_ || over() || !queue.add_fd(source, fd_.get(), EPOLLIN | EPOLLRDHUP)) return false;
    queue_ = &queue;
    source_ = &source;
    watched_.store(true, std::memory_order_seq_cst);
    const std::lock_guard interest(interest_lock_);
    set_interest(false, interest_out_);
    return true;
}

void SocketLink::unwatch(Queue &queue, Source &source) noexcept {
    {
        const std::lock_guard hold(watch_lock_);
        if (source_ != &source) return; // the socket is closed already
        queue.remove_fd(source, fd_.get());
        queue_ = nullptr;
        source_ = nullptr;
        watched_.store(false, std::memory_order_seq_cst);
    }
    if (!over()) wire_read_soon();
}

uint32_t SocketLink::fd_ready(uint32_t epoll_events) noexcept {
    unsigned char staging[peep_bytes];
    visits_.fetch_add(1, std::memory_order_relaxed);
    if (!over()) {
        bool mine;
        {
            const std::lock_guard hold(interest_lock_);
            mine = interest_in_ && starved_.load(std::memory_order_seq_cst) == false;
            if (mine) set_interest(false, interest_out_); // the host looks again
        }
        rx_.wish();
        int peeps = 0;
        while (rx_.try_lock()) {
            rx_.looked();
            const uint64_t before = received_.load(std::memory_order_relaxed);
            // Heartbeats and credits are read away; the rest is left to the read that follows.
            while (pull(staging, sizeof staging, sizeof staging, (epoll_events & hang_up) != 0) == Pulled::enough &&
                   received_.load(std::memory_order_relaxed) == before && ++peeps < most_peeps) {
            }
            if (!rx_.unlock()) break;
        }
        if (peeps >= most_peeps) { // there is more: another edge, after the host has had its turn
            const std::lock_guard hold(watch_lock_);
            if (queue_ != nullptr) queue_->modify_fd(*source_, fd_.get(), EPOLLIN | EPOLLRDHUP);
        }
    }
    uint32_t events = 0;
    PipeControl &c = in_.control();
    // acquire: both are published by their owners.
    if (c.head.load(std::memory_order_acquire) != c.tail.load(std::memory_order_acquire) || in_.finished())
        events |= MUSTER_STREAM_READABLE;
    if (duplex_->is_ended()) events |= MUSTER_STREAM_READABLE | MUSTER_STREAM_WRITABLE | MUSTER_STREAM_ENDED;
    return events;
}

void SocketLink::engage() noexcept {
    if (shared_ || over()) return;
    wire_read_soon();
}

// ---- the wire -------------------------------------------------------------------------------------------------------

template <class Call>
ssize_t SocketLink::after_send_call(Call &&call) noexcept {
    for (;;) {
        const ssize_t n = call();
        const int why = errno;
        count_io();
        if (n >= 0) return n;
        if (why == EINTR) continue;
        return why == EWOULDBLOCK ? -EAGAIN : -why;
    }
}

ssize_t SocketLink::wire_send(const iovec *spans, int count) noexcept {
    const ssize_t n = send_spans(spans, count);
    if (n == -EAGAIN) {
        const std::lock_guard hold(interest_lock_);
        set_interest(interest_in_, true, true);
    }
    return n;
}

ssize_t SocketLink::send_spans(const iovec *spans, int count) noexcept {
    msghdr message{};
    message.msg_iov = const_cast<iovec *>(spans);
    message.msg_iovlen = static_cast<size_t>(count);
    return after_send_call([&] { return uncancelled::send(fd_.get(), message, MSG_DONTWAIT | MSG_NOSIGNAL); });
}

ssize_t SocketLink::send_bytes(const void *data, size_t size) noexcept {
    return after_send_call([&] { return uncancelled::send(fd_.get(), data, size, MSG_DONTWAIT | MSG_NOSIGNAL); });
}

void SocketLink::wire_finish() noexcept {
    shutdown(fd_.get(), SHUT_WR);
}

void SocketLink::wire_shut() noexcept {
    shutdown(fd_.get(), SHUT_RDWR);
}

void SocketLink::wire_close() noexcept {
    const std::lock_guard watch(watch_lock_);
    if (queue_ != nullptr) queue_->remove_fd(*source_, fd_.get());
    queue_ = nullptr;
    source_ = nullptr;
    const std::lock_guard hold(interest_lock_);
    if (std::exchange(registered_, false)) hub_.remove(fd_.get(), *this);
    fd_.reset();
}

} // namespace muster
