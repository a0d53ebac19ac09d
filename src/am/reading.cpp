// SPDX-License-Identifier: MIT
// The role of the reader of what peers send: of the loop thread, which may poll, or of a thread that waits for a reply.
#include "am/active_messages.hpp"
#include "base/pause.hpp"

#include <algorithm>

namespace muster {

namespace {
constexpr int reads_per_turn = 16; // of one peer, before others come
constexpr size_t caller_buffer_bytes = 4096;
// Of requests that a thread executes while it waits for a reply: then the loop thread reads, and this one sleeps, where
// its deadline and its cancellation end it whatever the peer sends.
constexpr uint64_t executed_per_call = 4096;
constexpr int64_t poll_turn_ns = 50'000; // then the loop looks at its descriptors
constexpr uint32_t looks_per_check = 8;  // at the clock, and whether a task or a timer is due
} // namespace

// Loop thread. `arms`: the next bytes wake it; otherwise it polls this peer. True: something
// has arrived.
bool ActiveMessages::read(AmPeer &from, bool arms) noexcept {
    const bool reads = from.begin_reading(true);
    const uint64_t executed = from.executed();
    bool follows = false;
    Status status = MUSTER_AGAIN;
    try {
        for (const AmPeer::Frame &frame : from.take_deferred()) {
            AmHead head;
            AmHead::get(frame.data(), settings.limits.max_bytes, head); // it was checked
            const bool goes_on = execute(from, head, frame.data() + AmHead::bytes, false);
            from.executed_deferred();
            if (!goes_on) break;
        }
    } catch (const std::bad_alloc &) {
        end_for_memory(from);
    }
    if (reads) {
        Deadline once(0);
        status = MUSTER_OK;
        bool has_read = false;
        for (int i = 0; i < reads_per_turn && status == MUSTER_OK; i++) {
            status = try_read(from, in_.data(), from.was_placed ? caller_buffer_bytes : in_.size(), once, arms);
            has_read = has_read || status == MUSTER_OK;
            if (status == MUSTER_OK && give_bulk_reading(from)) return true;
        }
        follows = has_read && status == MUSTER_AGAIN;
        from.leave_reading();
    }
    if (status == MUSTER_OK) read_later(from);
    if (status < 0) stream_ended(from);
    return follows || from.executed() != executed;
}

// Peers whose requests follow each other closely. Afterwards, or for a turn of the loop, which other tasks and
// descriptors need, the watches are armed.
void ActiveMessages::poll() noexcept {
    const int64_t from = now_ns();
    int64_t seen = from;
    uint32_t looks = 0;
    bool has_read = false; // since the last look at the clock
    for (;;) {
        bool any = false;
        for (Polled &one : polled_) {
            uint64_t published = 0;
            if (one.peer->stream().published(published) && std::exchange(one.seen, published) == published) continue;
            any = read(*one.peer, false) || any;
        }
        if (any) {
            polling_.paid();
            has_read = true;
        }
        if (++looks % looks_per_check != 0) {
            pause_cpu();
            continue;
        }
        const int64_t now = now_ns();
        if (std::exchange(has_read, false)) {
            last_request_ns_ = now;
        } else if (now - seen > Polling::late_ns) {
            if (polling_.was_late(now - seen)) break;
            last_request_ns_ = now;
        }
        if (now - last_request_ns_ > poll_for_ns_) {
            polling_.did_not();
            break;
        }
        if (now - from > poll_turn_ns || context_->loop().is_due()) {
            turn_task_.post(*context_);
            return;
        }
        seen = now;
    }
    for (const Polled &one : std::exchange(polled_, {})) read(*one.peer, true);
}

// False: it cannot be polled.
bool ActiveMessages::poll_for(AmPeer &one) noexcept {
    try {
        const auto is_it = [&one](const Polled &other) { return other.peer == &one; };
        if (std::none_of(polled_.begin(), polled_.end(), is_it)) polled_.push_back({&one, UINT64_MAX});
    } catch (const std::bad_alloc &) {
        return false;
    }
    last_request_ns_ = now_ns();
    return true;
}

void ActiveMessages::end_for_memory(AmPeer &from) noexcept {
    end_peer(from, Error::make(MUSTER_E_NOMEM, "no memory for what the peer sends"), "out of memory");
}

// Has the loop thread read this peer in its next turn.
void ActiveMessages::read_later(AmPeer &from) noexcept {
    {
        const std::lock_guard hold(lock_);
        try {
            again_.push_back(from.number);
        } catch (const std::bad_alloc &) {
            from.stream().abort(static_cast<uint32_t>(MUSTER_E_NOMEM), "out of memory"); // its end is noticed
        }
    }
    turn_task_.post(*context_);
}

void ActiveMessages::stream_ended(AmPeer &from) noexcept {
    if (from.has_ended()) return;
    uint64_t code = 0;
    Error why;
    from.stream().reason(&code, &why);
    if (why.status == MUSTER_OK) why = Error::make(MUSTER_E_PEER, "the peer has finished");
    end_peer(from, why, {});
}

bool ActiveMessages::Reader::take() noexcept {
    Context &context = am_.context();
    if (has_ || peer_ == nullptr || context.external() || context.on_loop()) return has_;
    has_ = peer_->begin_reading(false);
    if (has_) peer_->stream().disarm_reading();
    return has_;
}

void ActiveMessages::Reader::expect_much() noexcept {
    if (has_ && !std::exchange(expects_much_, true)) peer_->stream().pause_watch(true);
}

void ActiveMessages::Reader::read_until_over(AmCall &call, Deadline &deadline) noexcept {
    unsigned char buffer[caller_buffer_bytes];
    Status status = MUSTER_OK;
    const uint64_t executed = peer_->executed();
    while (status == MUSTER_OK && !call.is_over() && !peer_->defers_much() &&
           peer_->executed() - executed < executed_per_call)
        status = am_.try_read(*peer_, buffer, sizeof buffer, deadline, false);
    if (status < 0 && status != MUSTER_E_WOULD_DEADLOCK) am_.stream_ended(*peer_);
}

// Arms the watch again.
void ActiveMessages::Reader::leave() noexcept {
    if (!std::exchange(has_, false)) return;
    if (std::exchange(expects_much_, false)) peer_->stream().pause_watch(false);
    unsigned char buffer[caller_buffer_bytes];
    Deadline once(0);
    Status status = MUSTER_OK;
    peer_->forget_refusal(); // what the loop thread has missed until now is read here
    for (int i = 0; i < reads_per_turn && status == MUSTER_OK; i++)
        status = am_.try_read(*peer_, buffer, sizeof buffer, once, true);
    try {
        unplace(*peer_);
    } catch (const std::bad_alloc &) {
        am_.end_for_memory(*peer_);
    }
    if (peer_->leave_reading() || status == MUSTER_OK) am_.read_later(*peer_);
    if (status < 0) am_.stream_ended(*peer_);
}

// As read_once(); without memory the peer ends.
Status ActiveMessages::try_read(AmPeer &from, unsigned char *buffer, size_t capacity, Deadline &deadline,
                                bool arms) noexcept {
    try {
        return read_once(from, buffer, capacity, deadline, arms);
    } catch (const std::bad_alloc &) {
        end_for_memory(from);
        return MUSTER_E_NOMEM;
    }
}

// OK: something was read; AGAIN or TIMEOUT; otherwise the stream has ended.
Status ActiveMessages::read_once(AmPeer &from, unsigned char *buffer, size_t capacity, Deadline &deadline, bool arms) {
    if (from.placed.to != nullptr) return read_placed(from, deadline, arms);
    size_t moved = 0;
    if (!from.partial.empty()) { // the rest of one frame, to its place
        const size_t left = from.partial.size() - from.partial_bytes;
        const Status status =
            from.stream().read(from.partial.data() + from.partial_bytes, 1, left, deadline, moved, arms);
        if (moved == 0) return status;
        from.partial_bytes += moved;
        return from.partial_bytes != from.partial.size() || take_partial(from) ? MUSTER_OK : MUSTER_E_PROTOCOL;
    }
    const Status status = from.stream().read(buffer, 1, capacity, deadline, moved, arms);
    if (moved == 0) return status;
    return take(from, buffer, moved) ? MUSTER_OK : MUSTER_E_PROTOCOL;
}

// The rest of a large payload, to its place. In memory of the host only while the endpoint is open: close() waits for
// the lock. A thread that may block reads all of it.
Status ActiveMessages::read_placed(AmPeer &from, Deadline &deadline, bool arms) {
    AmPeer::Placed &placed = from.placed;
    const auto fill = [&] {
        const size_t left = placed.bytes - placed.done;
        size_t moved = 0;
        const size_t min = deadline.look_once() ? 1 : left, whole = placed.call ? placed.call->whole_bytes() : 0;
        const Status status = from.stream().read(placed.to + placed.done, min, left, deadline, moved, arms, whole);
        placed.done += moved;
        return moved == 0 ? status : MUSTER_OK;
    };
    Status status = MUSTER_OK;
    if (placed.call) {
        if (!placed.call->while_open([&] { status = fill(); })) {
            unplace(from);
            return MUSTER_OK;
        }
    } else {
        const std::shared_lock memory(memory_lock_);
        if (from.has_ended()) return MUSTER_E_PEER;
        status = fill();
    }
    if (status != MUSTER_OK) return status;
    if (placed.done != placed.bytes) return MUSTER_OK;
    placed = {};
    from.was_placed = true;
    from.partial_bytes = 0;
    const std::vector<unsigned char> frame = std::exchange(from.partial, {});
    AmHead head;
    AmHead::get(frame.data(), settings.limits.max_bytes, head); // it was checked
    return take_frame(from, head, frame.data() + AmHead::bytes, true) ? MUSTER_OK : MUSTER_E_PROTOCOL;
}

} // namespace muster
