// SPDX-License-Identifier: MIT
// Life of a link: heartbeats, silence, the orderly end and the other ones. link_frames.cpp moves the bytes.
#include "transport/link.hpp"

#include "stream/stream.hpp"
#include "transport/patience.hpp"

#include <algorithm>
#include <cstring>
#include <sched.h>

namespace muster {

namespace {
constexpr int64_t linger_ns = 10'000'000'000; // for bytes on their way after the host has closed
}

Link::Link(Hub &hub, Ref<Duplex> duplex, int host_side, const Agreement &terms, uint64_t own_window, std::string peer)
    : hub_(hub), context_(&hub.context()), duplex_(std::move(duplex)), in_(duplex_->incoming(host_side)),
      out_(duplex_->outgoing(host_side)), shared_(duplex_->shared()), host_side_(host_side), peer_(std::move(peer)),
      window_(own_window), granted_(own_window), sealed_(terms.sealed), credit_(terms.peer_window),
      credit_most_(terms.peer_window), silent_ns_(Patience(hub.context().settings, terms).silent_ns),
      dead_ns_(Patience(hub.context().settings, terms).dead_ns) {
    if (!terms.sealed) return;
    sealer_ = std::make_unique<Sealer>(terms.key_out.data());
    spill_.add(sealer_->prefix(), seal_prefix_bytes);
    reader_.set_opener(std::make_unique<Opener>(terms.key_in.data()));
}

Link::~Link() = default;

Ref<Stream> Link::make_stream(std::string greeting) {
    return Stream::make(hub_.context(), duplex_, host_side_, Ref<Carrier>(this), peer_, std::move(greeting));
}

void Link::begin() noexcept {
    last_sent_ = now_ns();
    last_heard_.store(last_sent_, std::memory_order_relaxed);
    hub_.add_link(*this);
    if (!shared_) out_.set_reader_waker(this);
    begun_ = true;
    wire_start();
    kick(); // parks on the pipe
}

void Link::turn() noexcept {
    if (over()) return finalize();
    kick();
    if (done_sending_.load(std::memory_order_acquire) && peer_over_.load(std::memory_order_acquire)) {
        dead_.store(true, std::memory_order_seq_cst);
        finalize();
    }
}

void Link::wake_reader() noexcept {
    ask_turn();
}

// ---- alive? ---------------------------------------------------------------------------------------------------------

void Link::tick(int64_t now, bool late) noexcept {
    if (over()) return;
    if (closing_.load(std::memory_order_relaxed) || aborting_.load(std::memory_order_relaxed)) {
        if (end_at_ == 0) end_at_ = now + linger_ns;
        if (now >= end_at_) return stop();
    }
    // relaxed: set by whoever sends or receives, looked at here now and then.
    if (!sent_.exchange(false, std::memory_order_relaxed)) {
        wants_.fetch_or(want_heartbeat, std::memory_order_seq_cst);
        kick();
    }
    const bool heard = heard_.exchange(false, std::memory_order_relaxed);
    if (heard || late) last_heard_.store(now, std::memory_order_relaxed);
    if (heard && std::exchange(silent_, false)) duplex_->tell_peer_events(host_side_, MUSTER_STREAM_PEER_BACK);
    if (heard || late) return;
    const int64_t quiet = now - last_heard_.load(std::memory_order_relaxed);
    if (quiet >= silent_ns_ && !silent_) {
        silent_ = true;
        hub_.context().log(MUSTER_LOG_WARN, "%s: nothing heard for %lld ms", peer_.c_str(),
                           static_cast<long long>(quiet / 1'000'000));
        duplex_->tell_peer_events(host_side_, MUSTER_STREAM_PEER_SILENT);
    }
    if (dead_ns_ >= 0 && quiet >= dead_ns_) {
        char why[80];
        snprintf(why, sizeof why, "nothing was heard of the peer for %lld ms",
                 static_cast<long long>(quiet / 1'000'000));
        fail(MUSTER_E_PEER, 0, why);
    }
}

Carrier::Io Link::io() const noexcept {
    return {caller_io_.load(std::memory_order_relaxed), loop_io_.load(std::memory_order_relaxed),
            static_cast<uint64_t>(last_heard_.load(std::memory_order_relaxed))};
}

// ---- the end --------------------------------------------------------------------------------------------------------

void Link::fail(Status status, int os_errno, const char *why) noexcept {
    if (dead_.exchange(true, std::memory_order_seq_cst)) return;
    const Error full = os_errno != 0 ? Error::from_errno(os_errno, status, "%s", why) : Error::make(status, "%s", why);
    hub_.context().log(MUSTER_LOG_INFO, "%s: %s", peer_.c_str(), full.message);
    duplex_->end(full);
    wire_shut();
    ask_turn();
}

void Link::fail_reading(Status status) noexcept {
    if (status == MUSTER_E_NOMEM) return fail(MUSTER_E_PEER, 0, "no memory for what comes in");
    char why[160];
    snprintf(why, sizeof why, "broke the protocol: %s", reader_.why());
    fail(MUSTER_E_PEER, 0, why);
}

void Link::lost(int os_errno, const char *why) noexcept {
    if (over()) return;
    const bool expected = peer_over_.load(std::memory_order_acquire) ||
                          (closing_.load(std::memory_order_acquire) && done_sending_.load(std::memory_order_acquire));
    if (!expected) return fail(MUSTER_E_PEER, os_errno, why);
    dead_.store(true, std::memory_order_seq_cst);
    wire_shut();
    ask_turn();
}

void Link::closed() noexcept {
    closing_.store(true, std::memory_order_seq_cst);
    if (over()) return;
    kick();
    wire_read_soon();
    ask_turn();
}

void Link::abort(uint64_t reason, const char *text, size_t text_bytes) noexcept {
    if (over()) return;
    {
        const std::lock_guard hold(abort_lock_);
        abort_reason_ = reason;
        abort_text_bytes_ = std::min(text_bytes, sizeof abort_text_);
        if (abort_text_bytes_ != 0) memcpy(abort_text_, text, abort_text_bytes_);
    }
    aborting_.store(true, std::memory_order_seq_cst);
    wants_.fetch_or(want_abort, std::memory_order_seq_cst);
    kick();
    wire_read_soon();
    ask_turn();
}

bool Link::unsent() const noexcept {
    if (unsent_.load(std::memory_order_seq_cst)) return true;
    // acquire: both are published by their owners.
    PipeControl &c = out_.control();
    return !shared_ && c.tail.load(std::memory_order_acquire) != c.head.load(std::memory_order_acquire);
}

bool Link::flush() noexcept {
    if (over()) return true;
    kick();
    return !unsent();
}

bool Link::wind_down() noexcept {
    if (finalized_) return true;
    if (over()) {
        finalize();
        return finalized_;
    }
    kick();
    if (!unsent() && !closing_.load(std::memory_order_relaxed)) {
        duplex_->end(Error::make(MUSTER_E_CLOSED, "the context was closed"));
        // The peer reads the rest from its own memory, then this; unless the host's side was cut short.
        if (shared_ && !aborting_.load(std::memory_order_seq_cst)) out_.finish();
        closed();
    }
    return finalized_;
}

void Link::stop() noexcept {
    if (!over()) {
        duplex_->end(Error::make(MUSTER_E_CLOSED, "the context was closed"));
        if (unsent())
            abort(0, "the other side ended before all was sent", 40);
        else
            closed();
        dead_.store(true, std::memory_order_seq_cst);
        wire_shut();
    }
    // Whoever is inside does not stay: the wire is shut.
    for (int i = 0; i < 100'000 && !finalized_; i++) {
        finalize();
        if (!finalized_) sched_yield();
    }
}

void Link::finalize() noexcept {
    if (finalized_) return;
    const bool rx = rx_.try_lock(), tx = rx && tx_.try_lock();
    if (!tx) {
        if (rx) rx_.unlock();
        hub_.start_timer(finalize_again_, now_ns() + 1'000'000);
        return;
    }
    finalized_ = true; // both locks are kept: nobody comes in again
    if (!shared_) {
        out_.set_reader_waker(nullptr);
        if (!dropped_) out_.drop_reader();
    }
    wire_close();
    const Ref<Context> last = std::move(context_); // may be the context's last reference: after the list was changed
    hub_.stop_timer(finalize_again_);              // callers hold another reference
    if (begun_) hub_.remove_link(*this);
}

} // namespace muster
