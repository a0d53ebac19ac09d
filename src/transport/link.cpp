// SPDX-License-Identifier: MIT
// The life of a link: heartbeats, silence, the end; what the loop does, and the watching host.
#include "transport/link.hpp"

#include "base/trace.hpp"
#include "stream/stream.hpp"
#include "transport/sockets.hpp"

#include <muster/stream.h>

#include <algorithm>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>

namespace muster {

namespace {
constexpr int64_t host_check_ns = 10'000'000;
constexpr int unix_send_bytes = 512 * 1024;
constexpr size_t peep_bytes = 4096; // received to determine the event of a watched socket
constexpr int max_peeps = 16;       // in a row, if only frames arrive that are not for the host
} // namespace

Link::Link(Hub &hub, Ref<Duplex> duplex, int host_side, const Agreement &terms, uint64_t own_window, std::string peer,
           Fd fd)
    : hub_(hub), context_(&hub.context()), duplex_(std::move(duplex)), in_(duplex_->incoming(host_side)),
      out_(duplex_->outgoing(host_side)), shared_(duplex_->shared()), sealed_(terms.sealed), host_side_(host_side),
      peer_(std::move(peer)), state_(own_window, terms.peer_window), fd_(std::move(fd)),
      may_block_(!hub.context().external()), receiver_(hub, *this, host_check_ns) {
    silence_.set_timeouts(PeerTimeouts(hub.context().settings, terms));
    // A writer that is faster than its reader stops less often. Tcp adapts its own buffer; the kernel reduces sizes
    // that it does not permit.
    int family = 0;
    socklen_t size = sizeof family;
    if (getsockopt(fd_.get(), SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 && family == AF_UNIX)
        setsockopt(fd_.get(), SOL_SOCKET, SO_SNDBUF, &unix_send_bytes, sizeof unix_send_bytes);
    if (!terms.sealed) return;
    sealer_ = std::make_unique<Sealer>(terms.key_out.data(), terms.cipher);
    overflow_.add(sealer_->prefix(), seal_prefix_bytes);
    reader_.set_opener(std::make_unique<Opener>(terms.key_in.data(), terms.cipher));
}

Link::~Link() {
    hub_.give_notifier(notifier_out_);
}

Ref<Stream> Link::make_stream(std::string hello) {
    return Stream::make(hub_.context(), duplex_, host_side_, Ref<Carrier>(this), peer_, std::move(hello));
}

void Link::begin() noexcept {
    silence_.excuse(now_ns());
    hub_.add_link(*this);
    if (!shared_) out_.set_reader_waker(this);
    begun_ = true;
    if (auto started = receiver_.start(fd_.get(), false); !started)
        fail(MUSTER_E_PEER, started.error().os_errno, "no descriptor left to watch the connection");
    kick(); // parks on the pipe
}

void Link::run_turn() noexcept {
    if (is_over()) return finalize();
    if (closing_.load(std::memory_order_seq_cst)) read_by_loop(true); // from now on incoming bytes are discarded
    if (is_over()) return finalize();
    kick();
    if (done_sending_.load(std::memory_order_acquire) && peer_over_.load(std::memory_order_acquire)) {
        dead_.store(true, std::memory_order_seq_cst);
        finalize();
    }
}

void Link::on_events(uint32_t epoll_events) noexcept {
    if (is_over()) return;
    if (epoll_events & EPOLLOUT) {
        receiver_.ignore_output();
        kick();
    }
    const bool ends = (epoll_events & Receiver::hang_up) != 0;
    if ((epoll_events & EPOLLIN) != 0 || ends) read_by_loop(ends);
}

void Link::host_stopped_receiving() noexcept {
    if (!is_over()) {
        receiver_.return_to_loop();
        if (!watched_.load(std::memory_order_seq_cst)) receiver_.watch_input();
    }
    if (receiver_.lock.unlock() && !is_over()) read_by_loop(true);
}

void Link::count_io() noexcept {
    // relaxed: counters.
    (hub_.context().on_loop() ? loop_io_ : caller_io_).fetch_add(1, std::memory_order_relaxed);
}

Carrier::Io Link::io() const noexcept {
    return {caller_io_.load(std::memory_order_relaxed), loop_io_.load(std::memory_order_relaxed),
            static_cast<uint64_t>(silence_.last_received_ns())};
}

int64_t Link::round_trip_ns() noexcept {
    tcp_info info{};
    socklen_t size = sizeof info;
    const std::lock_guard watch(watch_lock_); // finalize() closes the descriptor with it
    if (shared_ || !fd_ || getsockopt(fd_.get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
    return int64_t{info.tcpi_rtt} * 1000;
}

std::string Link::local_address() {
    const std::lock_guard watch(watch_lock_); // as above
    if (!fd_) return {};
    const SocketAddress own = muster::local_address(fd_.get());
    return own.family() == AF_INET || own.family() == AF_INET6 ? address_text(own) : std::string();
}

// ---- is the peer alive? ---------------------------------------------------------------------------------------------

bool Link::tick(const Tick &tick) noexcept {
    if (is_over()) return false;
    bool in_use = false;
    // No thread of the host receives: the frames of the peer have to be read nevertheless, and writers need their
    // credit.
    if (!receiver_.loop_receives() && !receiver_.lock.is_held()) {
        in_use = true;
        const uint64_t before = state_.received();
        read_by_loop(true);
        if (state_.received() != before) receiver_.watch_input(); // until the host receives again
    }
    if (is_over()) return false;
    const uint64_t received = state_.received();
    if (std::exchange(received_before_, received) != received) in_use = true;
    if (closing_.load(std::memory_order_relaxed) || aborting_.load(std::memory_order_relaxed)) {
        in_use = true;
        if (end_at_ == 0) end_at_ = tick.now_ns + linger_ns;
        if (tick.now_ns >= end_at_) {
            stop();
            return false;
        }
    }
    // relaxed: set by the threads that send or receive, checked here periodically.
    if (sent_.exchange(false, std::memory_order_relaxed)) {
        in_use = true;
        sent_ns_ = tick.last_ns;
    }
    const int64_t longest = hub_.context().settings.heartbeat_ns;
    if (tick.next_ns - sent_ns_ > longest + longest / 8) { // an eighth: timers are late
        sent_ns_ = tick.now_ns;
        wants_.fetch_or(wants_heartbeat, std::memory_order_seq_cst);
        kick();
        // The store also clears a mark that another thread has set meanwhile: the next heartbeat is early then.
        sent_.store(false, std::memory_order_relaxed);
    }
    check_silence(tick);
    return in_use;
}

void Link::check_silence(const Tick &tick) noexcept {
    const int64_t now = tick.now_ns;
    if (heard_.exchange(false, std::memory_order_relaxed)) {
        if (silence_.on_received(now)) duplex_->tell_peer_events(host_side_, MUSTER_STREAM_PEER_BACK);
        return;
    }
    if (tick.late) return silence_.excuse(now);
    const PeerSilence::Change change = silence_.check(now);
    if (change == PeerSilence::Change::none) return;
    char why[80];
    snprintf(why, sizeof why, "nothing was received from the peer for %lld ms",
             static_cast<long long>(silence_.duration_ns(now) / 1'000'000));
    if (change == PeerSilence::Change::dead) return fail(MUSTER_E_PEER, 0, why);
    hub_.context().log(MUSTER_LOG_WARN, "%s: %s", peer_.c_str(), why);
    duplex_->tell_peer_events(host_side_, MUSTER_STREAM_PEER_SILENT);
}

// ---- the watching host ----------------------------------------------------------------------------------------------

bool Link::watch(Queue &queue, Source &source) noexcept {
    const std::lock_guard hold(watch_lock_);
    if (shared_ || is_over() || !queue.add_fd(source, fd_.get(), EPOLLIN | EPOLLRDHUP)) return false;
    queue_ = &queue;
    source_ = &source;
    watched_.store(true, std::memory_order_seq_cst);
    receiver_.take_from_loop();
    return true;
}

void Link::unwatch(Queue &queue, Source &source) noexcept {
    {
        const std::lock_guard hold(watch_lock_);
        if (source_ != &source) return; // the socket is closed already
        queue.remove_fd(source, fd_.get());
        queue_ = nullptr;
        source_ = nullptr;
        watched_.store(false, std::memory_order_seq_cst);
    }
    if (!is_over()) receiver_.watch_input();
}

void Link::pause_watch(bool is_paused) noexcept {
    const std::lock_guard hold(watch_lock_);
    // With EPOLLIN again, bytes that have arrived meanwhile are reported.
    if (queue_ != nullptr) queue_->modify_fd(*source_, fd_.get(), is_paused ? EPOLLRDHUP : EPOLLIN | EPOLLRDHUP);
}

uint32_t Link::fd_ready(uint32_t epoll_events) noexcept {
    unsigned char staging[peep_bytes];
    if (!is_over()) {
        if (!starved_.load(std::memory_order_seq_cst)) receiver_.take_from_loop(); // the host checks again
        receiver_.lock.request_recheck();
        int peeps = 0;
        while (receiver_.lock.try_lock()) {
            receiver_.lock.begin_check();
            receiver_.count_visit();
            const uint64_t before = state_.received();
            // Heartbeats and credits are read away; the rest is left to the read that follows.
            while (read(staging, sizeof staging, sizeof staging, (epoll_events & Receiver::hang_up) != 0) ==
                       Read::enough &&
                   state_.received() == before && ++peeps < max_peeps) {
            }
            if (!receiver_.lock.unlock()) break;
        }
        if (peeps >= max_peeps) { // more bytes are available: another edge, after the host has had its turn
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

void Link::engage() noexcept {
    if (!shared_ && !is_over()) receiver_.watch_input();
}

void Link::interrupt() noexcept {
    receiver_.wake();
    if (!waiting_out_.load(std::memory_order_seq_cst)) return;
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written =
        uncancelled::write(event_out_.load(std::memory_order_seq_cst), &one, sizeof one);
}

// ---- the end --------------------------------------------------------------------------------------------------------

void Link::shut_down() noexcept {
    shutdown(fd_.get(), SHUT_RDWR);
    post_turn();
}

void Link::fail(Status status, int os_errno, const char *why) noexcept {
    if (dead_.exchange(true, std::memory_order_seq_cst)) return;
    const Error full = os_errno != 0 ? Error::from_errno(os_errno, status, "%s", why) : Error::make(status, "%s", why);
    hub_.context().log(MUSTER_LOG_INFO, "%s: %s", peer_.c_str(), full.message);
    Trace::mark("stream", "connection lost", peer_);
    duplex_->end(full);
    shut_down();
}

void Link::fail_reading(Status status) noexcept {
    if (status == MUSTER_E_NOMEM) return fail(MUSTER_E_PEER, 0, "no memory for what comes in");
    char why[160];
    snprintf(why, sizeof why, "broke the protocol: %s", reader_.why());
    fail(MUSTER_E_PEER, 0, why);
}

void Link::on_lost(int os_errno, const char *why) noexcept {
    if (is_over()) return;
    const bool expected = peer_over_.load(std::memory_order_acquire) ||
                          (closing_.load(std::memory_order_acquire) && done_sending_.load(std::memory_order_acquire));
    if (!expected) return fail(MUSTER_E_PEER, os_errno, why);
    dead_.store(true, std::memory_order_seq_cst);
    shut_down();
}

void Link::closed() noexcept {
    closing_.store(true, std::memory_order_seq_cst);
    if (is_over()) return;
    kick();
    receiver_.watch_input();
    post_turn();
}

void Link::abort(uint64_t reason, const char *text, size_t text_bytes) noexcept {
    if (is_over()) return;
    state_.set_abort(reason, {text, text_bytes});
    aborting_.store(true, std::memory_order_seq_cst);
    wants_.fetch_or(wants_abort, std::memory_order_seq_cst);
    kick();
    receiver_.watch_input();
    post_turn();
}

bool Link::is_unsent() const noexcept {
    if (unsent_.load(std::memory_order_seq_cst)) return true;
    // acquire: both are published by their owners.
    PipeControl &c = out_.control();
    return !shared_ && c.tail.load(std::memory_order_acquire) != c.head.load(std::memory_order_acquire);
}

bool Link::flush() noexcept {
    if (is_over()) return true;
    kick();
    return !is_unsent();
}

bool Link::wind_down() noexcept {
    if (finalized_) return true;
    if (is_over()) {
        finalize();
        return finalized_;
    }
    kick();
    if (!is_unsent() && !closing_.load(std::memory_order_relaxed)) {
        duplex_->end(Error::make(MUSTER_E_CLOSED, "the context was closed"));
        // The peer reads the rest from its own memory, then this; unless the host's side was cut short.
        if (shared_ && !aborting_.load(std::memory_order_seq_cst)) out_.finish();
        closed();
    }
    return finalized_;
}

void Link::stop() noexcept {
    if (!is_over()) {
        duplex_->end(Error::make(MUSTER_E_CLOSED, "the context was closed"));
        if (is_unsent())
            abort(0, "the other side ended before all was sent", 40);
        else
            closed();
        dead_.store(true, std::memory_order_seq_cst);
        shutdown(fd_.get(), SHUT_RDWR);
    }
    // Threads inside return soon: the socket is shut down.
    for (int i = 0; i < 100'000 && !finalized_; i++) {
        finalize();
        if (!finalized_) sched_yield();
    }
}

void Link::finalize() noexcept {
    if (finalized_) return;
    const bool rx = receiver_.lock.try_lock(), tx = rx && tx_.try_lock();
    if (!tx) {
        if (rx) receiver_.lock.unlock();
        hub_.start_timer(finalize_again_, now_ns() + 1'000'000);
        return;
    }
    finalized_ = true; // both locks are kept: no thread enters again
    if (!shared_) {
        out_.set_reader_waker(nullptr);
        if (!discarded_) out_.drop_reader();
    }
    {
        const std::lock_guard watch(watch_lock_);
        if (queue_ != nullptr) queue_->remove_fd(*source_, fd_.get());
        queue_ = nullptr;
        source_ = nullptr;
        receiver_.stop();
        fd_.reset();
    }
    const Ref<Context> last = std::move(context_); // may be the context's last reference: after the list was changed
    hub_.stop_timer(pause_timer_);
    hub_.stop_timer(finalize_again_); // callers hold another reference
    receiver_.forget_host();
    if (begun_) hub_.remove_link(*this);
}

} // namespace muster
