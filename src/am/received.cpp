// SPDX-License-Identifier: MIT
// What peers send: the loop thread reads it, or a thread that waits for a reply; requests are executed by the former.
#include "am/active_messages.hpp"

#include <algorithm>

namespace muster {

namespace {
constexpr size_t small_reply_bytes = 256; // on the stack of a thread of the host
}

bool ActiveMessages::broken(AmPeer &from, const char *what) noexcept {
    end_peer(from, Error::make(MUSTER_E_PROTOCOL, "the peer has sent %s", what), what);
    return false;
}

// Bytes of a frame before those that are read to their place; 0: all of it is read as usual.
size_t ActiveMessages::bytes_before_place(AmPeer &from, const AmHead &head) noexcept {
    if (!from.has_hello || head.payload < direct_bytes) return 0;
    if (head.kind == AmKind::reply) {
        if (head.status < 0) return 0;
        const Ref<AmCall> call = from.find(head.id);
        return call && call->place_for(head.payload, context_->on_loop()) != nullptr ? AmHead::bytes : 0;
    }
    if (head.kind != AmKind::request || !(context_->on_loop() || from.is_read_in_bulk)) return 0;
    if (!has_handler_[head.handler].load(std::memory_order_acquire)) return 0;
    const Handler &handler = handlers_[head.handler];
    if (handler.place == nullptr || head.payload < handler.place_after + direct_bytes) return 0;
    return AmHead::bytes + handler.place_after;
}

// `frame`: the bytes before the place, which go to `partial`. False: there is none.
bool ActiveMessages::place(AmPeer &from, const AmHead &head, const unsigned char *frame) {
    const unsigned char *const payload = frame + AmHead::bytes;
    AmPeer::Placed found;
    size_t before = AmHead::bytes;
    if (head.kind == AmKind::reply) {
        found.call = from.find(head.id);
        found.to = found.call ? found.call->place_for(head.payload, context_->on_loop()) : nullptr;
        found.bytes = head.payload;
    } else {
        const Handler &handler = handlers_[head.handler];
        const std::lock_guard executing(execution_lock_);
        if (from.has_ended()) return false;
        found.to = handler.place(handler.user, payload, head.payload);
        found.bytes = head.payload - handler.place_after;
        before += handler.place_after;
    }
    if (found.to == nullptr) return false;
    if (from.partial.empty()) from.partial.assign(frame, frame + before);
    from.partial_bytes = before;
    from.placed = std::move(found);
    return true;
}

// The thread of the call gives up the role of the reader: what was read to its place belongs to the frame again. A call
// that is over has given its place back, and what was read is dropped.
void ActiveMessages::unplace(AmPeer &from) {
    AmPeer::Placed &placed = from.placed;
    if (!placed.call) return;
    from.partial.resize(AmHead::bytes + placed.bytes);
    placed.call->while_open([&] { std::copy_n(placed.to, placed.done, from.partial.data() + AmHead::bytes); });
    from.partial_bytes = AmHead::bytes + placed.done;
    placed = {};
}

// False: the peer has ended.
bool ActiveMessages::take(AmPeer &from, const unsigned char *data, size_t bytes) {
    while (bytes >= AmHead::bytes) {
        AmHead head;
        if (const char *const what = AmHead::get(data, settings.limits.max_bytes, head)) return broken(from, what);
        const size_t whole = AmHead::bytes + head.payload;
        if (bytes < whole) {
            const size_t before = bytes_before_place(from, head);
            if (before != 0 && bytes >= before && place(from, head, data)) {
                AmPeer::Placed &placed = from.placed;
                const auto fill = [&] { std::copy_n(data + before, placed.done, placed.to); };
                placed.done = bytes - before;
                if (placed.call) {
                    placed.call->while_open(fill); // otherwise read_placed() finds that it is over
                    return true;
                }
                const std::shared_lock memory(memory_lock_);
                if (from.has_ended()) return false;
                fill();
                return true;
            }
            from.partial.resize(before > bytes ? before : whole);
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
    if (const size_t whole = AmHead::bytes + head.payload; from.partial.size() < whole) {
        const size_t before = bytes_before_place(from, head);
        if (from.partial.size() == before && place(from, head, from.partial.data())) return true;
        from.partial.resize(from.partial.size() < before ? before : whole);
        return true;
    }
    std::vector<unsigned char> frame;
    frame.swap(from.partial);
    from.partial_bytes = 0;
    return take_frame(from, head, frame.data() + AmHead::bytes);
}

bool ActiveMessages::take_frame(AmPeer &from, const AmHead &head, const unsigned char *payload, bool is_placed) {
    if (!is_placed) from.was_placed = false;
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
        if (is_placed || context_->on_loop() || may_execute(from, head, payload))
            return execute(from, head, payload, is_placed);
        from.is_read_in_bulk = false; // what follows comes after it
        const unsigned char *const whole = payload - AmHead::bytes;
        if (!from.defer(AmPeer::Frame(whole, payload + head.payload)))
            return broken(from, "more requests than this endpoint accepts");
        read_later(from);
        return true;
    }
    const Ref<AmCall> call = from.replied(head.id);
    if (!call) return broken(from, "a reply to no request");
    if (call->is_unattended && head.status < 0) from.keep_failure(head.status);
    call->answer(head.status, is_placed ? nullptr : payload, head.payload);
    context_->notify(changed_);
    return true;
}

bool ActiveMessages::execute(AmPeer &from, const AmHead &head, const unsigned char *payload, bool is_placed) {
    const int64_t from_ns = Trace::is_on() ? now_ns() : 0;
    const Handler &handler = handlers_[head.handler];
    const bool goes_on = is_placed             ? execute_here(from, head, handler.placed, payload, handler.place_after)
                         : context_->on_loop() ? execute_whole(from, head, payload)
                                               : execute_here(from, head, handler.function, payload, head.payload);
    if (from_ns != 0) // after the reply, which does not wait for it
        Trace::write({Trace::Kind::span, "am", "execute", {}, from.flow_from(head.id), from_ns, now_ns() - from_ns});
    return goes_on;
}

// Loop thread.
bool ActiveMessages::execute_whole(AmPeer &from, const AmHead &head, const unsigned char *payload) {
    Status status = MUSTER_E_UNSUPPORTED;
    size_t bytes = 0;
    if (has_handler_[head.handler].load(std::memory_order_acquire)) {
        const Handler &handler = handlers_[head.handler];
        if (handler.function == nullptr) return give_to_host(from, head, payload, handler);
        const std::lock_guard executing(execution_lock_);
        if (from.has_ended()) return false; // close() waits for the lock, and no handler follows
        if (handler.later != nullptr && handler.later(handler.user, from, head.id, payload, head.payload)) {
            from.count_executed();
            return !from.has_ended();
        }
        const size_t capacity = std::min<size_t>(from.limits().max_bytes, scratch_.size());
        const unsigned char *lent = nullptr;
        if (handler.lend != nullptr) lent = handler.lend(handler.user, payload, head.payload, bytes);
        if (lent != nullptr) {
            from.count_executed();
            if (bytes < bulk_bytes || context_->external()) { // written or copied before the next request
                reply(from, head.id, MUSTER_OK, lent, bytes);
                return !from.has_ended();
            }
            const Status sent = from.reply_lent(head.id, {reinterpret_cast<const char *>(lent), bytes});
            from.flush(); // what there is room for, without another thread
            give_bulk_writing(from);
            return sent == MUSTER_OK;
        }
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

// Of a thread that waits for a reply.
bool ActiveMessages::may_execute(AmPeer &from, const AmHead &head, const unsigned char *payload) noexcept {
    if (from.has_deferred() || !has_handler_[head.handler].load(std::memory_order_acquire)) return false;
    const Handler &handler = handlers_[head.handler];
    return handler.reply_bytes != nullptr && handler.reply_bytes(payload, head.payload) <= small_reply_bytes &&
           !context_->external();
}

// By the thread that has read the request: the loop's, one that moves large payloads, or one that waits for a reply.
bool ActiveMessages::execute_here(AmPeer &from, const AmHead &head, muster_am_fn function, const unsigned char *data,
                                  size_t size) {
    unsigned char answer[small_reply_bytes];
    Status status = MUSTER_OK;
    size_t bytes = 0;
    {
        const std::lock_guard executing(execution_lock_);
        if (from.has_ended()) return false;
        status = function(handlers_[head.handler].user, from.number, data, size, answer, sizeof answer, &bytes);
    }
    from.count_executed();
    reply(from, head.id, status, answer, bytes);
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
