// SPDX-License-Identifier: MIT
// What peers send: the loop thread reads it, or a thread that waits for a reply; requests are executed by the former.
#include "am/active_messages.hpp"
#include "base/pause.hpp"

#include <algorithm>

namespace muster {

namespace {
constexpr int reads_per_turn = 16; // of one peer, before others come
constexpr size_t caller_buffer_bytes = 4096;
constexpr int64_t poll_turn_ns = 50'000;  // then the loop looks at its descriptors
constexpr uint32_t looks_per_check = 8; // whether a task or a timer is due
} // namespace

// Loop thread. `arms`: the next bytes wake it; otherwise it polls this peer. True: requests were executed.
bool ActiveMessages::read(AmPeer &from, bool arms) noexcept {
    const bool reads = from.begin_reading(true);
    const uint64_t executed = from.executed();
    Status status = MUSTER_AGAIN;
    try {
        for (const AmPeer::Frame &frame : from.take_deferred()) {
            AmHead head;
            AmHead::get(frame.data(), settings.limits.max_bytes, head); // it was checked
            if (!execute(from, head, frame.data() + AmHead::bytes)) break;
        }
    } catch (const std::bad_alloc &) {
        end_for_memory(from);
    }
    if (reads) {
        Deadline once(0);
        status = MUSTER_OK;
        for (int i = 0; i < reads_per_turn && status == MUSTER_OK; i++)
            status = try_read(from, in_.data(), in_.size(), once, arms);
        from.leave_reading();
    }
    if (status == MUSTER_OK) read_later(from);
    if (status < 0) stream_ended(from);
    return from.executed() != executed;
}

// Peers whose requests follow each other closely. Afterwards, or for a turn of the loop, which other tasks and
// descriptors need, the watches are armed.
void ActiveMessages::poll() noexcept {
    const int64_t from = now_ns();
    int64_t seen = from;
    uint32_t looks = 0;
    for (;;) {
        bool any = false;
        for (Polled &one : polled_) {
            uint64_t published = 0;
            if (one.peer->stream().published(published) && std::exchange(one.seen, published) == published) continue;
            any = read(*one.peer, false) || any;
        }
        const int64_t now = now_ns();
        if (any) {
            polling_.paid();
            last_request_ns_ = now;
        } else if (now - seen > Polling::late_ns) {
            if (polling_.was_late(now - seen)) break;
            last_request_ns_ = now;
        }
        if (now - last_request_ns_ > poll_for_ns_) {
            polling_.did_not();
            break;
        }
        if (now - from > poll_turn_ns || (++looks % looks_per_check == 0 && context_->loop().is_due())) {
            turn_task_.post(*context_);
            return;
        }
        seen = now;
        pause_cpu();
    }
    for (const Polled &one : std::exchange(polled_, {})) read(*one.peer, true);
}

// False: it cannot be polled.
bool ActiveMessages::poll_for(const Ref<AmPeer> &one) noexcept {
    try {
        const auto is_it = [&one](const Polled &other) { return other.peer.get() == one.get(); };
        if (std::none_of(polled_.begin(), polled_.end(), is_it)) polled_.push_back({one, UINT64_MAX});
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

// The thread of a call reads the replies itself while no other thread does: it saves a change from thread to thread.
// Meanwhile the watch is not armed, so that bytes do not wake the loop thread, too.
bool ActiveMessages::begin_reading_for_call(AmPeer &from) noexcept {
    if (!from.begin_reading(false)) return false;
    from.stream().disarm_reading();
    return true;
}

void ActiveMessages::read_until_over(AmPeer &from, AmCall &call, Deadline &deadline) noexcept {
    unsigned char buffer[caller_buffer_bytes];
    Status status = MUSTER_OK;
    while (status == MUSTER_OK && !call.is_over()) status = try_read(from, buffer, sizeof buffer, deadline, false);
    if (status < 0 && status != MUSTER_E_WOULD_DEADLOCK) stream_ended(from);
}

// Arms the watch again.
void ActiveMessages::end_reading_for_call(AmPeer &from) noexcept {
    unsigned char buffer[caller_buffer_bytes];
    Deadline once(0);
    Status status = MUSTER_OK;
    from.forget_refusal(); // what the loop thread has missed until now is read here
    for (int i = 0; i < reads_per_turn && status == MUSTER_OK; i++)
        status = try_read(from, buffer, sizeof buffer, once, true);
    if (from.leave_reading() || status == MUSTER_OK) read_later(from);
    if (status < 0) stream_ended(from);
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

bool ActiveMessages::broken(AmPeer &from, const char *what) noexcept {
    end_peer(from, Error::make(MUSTER_E_PROTOCOL, "the peer has sent %s", what), what);
    return false;
}

// False: the peer has ended.
bool ActiveMessages::take(AmPeer &from, const unsigned char *data, size_t bytes) {
    while (bytes >= AmHead::bytes) {
        AmHead head;
        if (const char *const what = AmHead::get(data, settings.limits.max_bytes, head)) return broken(from, what);
        const size_t whole = AmHead::bytes + head.payload;
        if (bytes < whole) {
            from.partial.resize(whole);
            break;
        }
        if (!take_frame(from, head, data + AmHead::bytes)) return false;
        data += whole, bytes -= whole;
    }
    if (bytes == 0) return true;
    if (from.partial.empty()) from.partial.resize(AmHead::bytes);
    std::copy_n(data, bytes, from.partial.data());
    from.partial_bytes = bytes;
    return true;
}

// `partial` is full: a head, or a frame.
bool ActiveMessages::take_partial(AmPeer &from) {
    AmHead head;
    if (const char *const what = AmHead::get(from.partial.data(), settings.limits.max_bytes, head))
        return broken(from, what);
    if (from.partial.size() < AmHead::bytes + head.payload) {
        from.partial.resize(AmHead::bytes + head.payload);
        return true;
    }
    std::vector<unsigned char> frame;
    frame.swap(from.partial);
    from.partial_bytes = 0;
    return take_frame(from, head, frame.data() + AmHead::bytes);
}

bool ActiveMessages::take_frame(AmPeer &from, const AmHead &head, const unsigned char *payload) {
    if (from.has_hello != (head.kind != AmKind::hello))
        return broken(from, from.has_hello ? "two hellos" : "something before its hello");
    if (head.kind == AmKind::hello) {
        AmHello says;
        if (!AmHello::get(payload, head.payload, says)) return broken(from, "a malformed hello");
        from.has_hello = true;
        from.set_limits(says);
        context_->notify(changed_);
        return true;
    }
    if (head.kind == AmKind::request) {
        if (context_->on_loop()) return execute(from, head, payload);
        const unsigned char *const whole = payload - AmHead::bytes;
        if (!from.defer(AmPeer::Frame(whole, payload + head.payload)))
            return broken(from, "more requests than this endpoint accepts");
        read_later(from);
        return true;
    }
    const Ref<AmCall> call = from.replied(head.id);
    if (!call) return broken(from, "a reply to no request");
    if (call->is_unattended && head.status < 0) from.keep_failure(head.status);
    call->answer(head.status, payload, head.payload);
    context_->notify(changed_);
    return true;
}

bool ActiveMessages::execute(AmPeer &from, const AmHead &head, const unsigned char *payload) {
    Status status = MUSTER_E_UNSUPPORTED;
    size_t bytes = 0;
    if (has_handler_[head.handler].load(std::memory_order_acquire)) {
        const Handler &handler = handlers_[head.handler];
        if (handler.function == nullptr) return give_to_host(from, head, payload, handler);
        const std::lock_guard executing(execution_lock_);
        if (from.has_ended()) return false; // close() waits for the lock, and no handler follows
        const size_t capacity = from.limits().max_bytes;
        status = handler.function(handler.user, from.number, payload, head.payload, scratch_.data(), capacity, &bytes);
        if (bytes > capacity || (status > 0 && status != MUSTER_AGAIN)) { // an error of the handler
            status = MUSTER_E_INTERNAL;
            bytes = 0;
        }
    }
    from.count_executed();
    reply(from, head.id, status, scratch_.data(), bytes);
    return !from.has_ended();
}

bool ActiveMessages::give_to_host(AmPeer &from, const AmHead &head, const unsigned char *payload,
                                  const Handler &handler) {
    if (!from.serve_begins()) return broken(from, "more requests than this endpoint accepts");
    Ref<AmHostRequest> request;
    try {
        request = make_ref<AmHostRequest>(*this, from, head, payload);
    } catch (const std::bad_alloc &) { // the peer is not to blame
        from.serve_ends();
        reply(from, head.id, MUSTER_E_NOMEM, nullptr, 0);
        return !from.has_ended();
    }
    Entry entry;
    entry.completion.kind = MUSTER_REQUEST_AM;
    entry.completion.tag = handler.tag;
    entry.completion.object = wrap(request.get());
    entry.object = request;
    if (!handler.queue->try_post(std::move(entry))) request->reply(MUSTER_E_BUSY, nullptr, 0);
    from.count_executed();
    return true;
}

} // namespace muster
