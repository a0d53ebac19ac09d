// SPDX-License-Identifier: MIT
// Peers and handlers of an endpoint, and requests to peers.
#include "am/active_messages.hpp"

#include "context/host_call.hpp"

#include <unistd.h>

namespace muster {

namespace {
constexpr uint32_t event_queue_spare = 1024; // entries that are no readiness: none; readiness needs no slot
constexpr size_t in_buffer_bytes = 128 * 1024;
} // namespace

ActiveMessages::ActiveMessages(Context &context, Settings what, Ref<Queue> events)
    : settings(std::move(what)), context_(&context), events_(std::move(events)), in_(in_buffer_bytes),
      scratch_(settings.handler_reply_bytes()),
      can_poll_(settings.polls && !context.external() && sysconf(_SC_NPROCESSORS_ONLN) > 1) {}

Result<Ref<ActiveMessages>> ActiveMessages::make(Context &context, Settings settings) {
    auto events = Queue::create(context, event_queue_spare);
    if (!events) return events.error();
    auto made = Ref<ActiveMessages>::adopt(new ActiveMessages(context, std::move(settings), std::move(*events)));
    const auto wake = [](void *self) noexcept -> int {
        static_cast<ActiveMessages *>(self)->turn_task_.post(static_cast<ActiveMessages *>(self)->context());
        return 0;
    };
    if (const Status status = made->events_->set_wake(wake, made.get()); status != MUSTER_OK)
        return Error::from_status(status);
    if (made->settings.queue) made->settings.queue->attach(*made, made->settings.tag);
    if (made->enter_.post(context)) return made;
    made->events_->set_wake(nullptr, nullptr);
    if (made->settings.queue) made->settings.queue->detach(*made);
    return Error::make(MUSTER_E_CLOSED, "the context is closed");
}

// ---- the loop thread

void ActiveMessages::enter() noexcept {
    {
        const std::lock_guard hold(lock_);
        if (closed_) return;
    }
    context_->on_closing(closing_node_);
    if (context_->closed()) context_closes(); // the list may have been notified before
}

void ActiveMessages::turn() noexcept {
    const Ref<ActiveMessages> self(this);
    std::vector<uint32_t> again;
    {
        const std::lock_guard hold(lock_);
        again.swap(again_);
    }
    for (const uint32_t number : again)
        if (AmPeer *const one = peer(number)) read(*one, true);
    if (polled_.empty()) poll_for_ns_ = can_poll_ ? polling_.window_ns() : 0;
    for (;;) {
        muster_completion entry;
        Error error;
        Deadline once(0);
        if (events_->next(once, &entry, &error) != MUSTER_OK) break; // it is armed again
        AmPeer *const one = peer(static_cast<uint32_t>(entry.tag));
        if (!one || entry.kind != MUSTER_EVENT_READY) continue;
        if (entry.events & MUSTER_STREAM_WRITABLE) {
            one->flush();
            context_->notify(changed_);
            give_bulk_writing(*one);
        }
        if (!(entry.events & (MUSTER_STREAM_READABLE | MUSTER_STREAM_ENDED))) continue;
        if (poll_for_ns_ == 0 || !read(*one, false) || !poll_for(*one)) read(*one, true);
    }
    if (!polled_.empty()) poll();
}

void ActiveMessages::end_at_loop() noexcept {
    const Ref<ActiveMessages> self(this);
    events_->set_wake(nullptr, nullptr);
    context_->forget_closing(closing_node_);
    events_->close();
}

// ---- ends

void ActiveMessages::end_peer(AmPeer &peer, const Error &why, std::string_view text) noexcept {
    if (!peer.end(why, text)) return;
    context_->notify(changed_);
    if (settings.queue) settings.queue->raise(*this, MUSTER_AM_PEER_ENDED);
}

void ActiveMessages::disconnect(AmPeer &peer, const Error &why, std::string_view text) noexcept {
    end_peer(peer, why, text);
}

void ActiveMessages::end_all(const Error &why) noexcept {
    const Ref<ActiveMessages> self(this);
    for (uint32_t number = 0;; number++) {
        AmPeer *const one = peer(number);
        if (one == nullptr) return;
        end_peer(*one, why, why.message);
    }
}

bool ActiveMessages::is_closing() noexcept {
    const std::lock_guard hold(lock_);
    return closed_ || context_->closed();
}

void ActiveMessages::close() noexcept {
    const Ref<ActiveMessages> self(this);
    {
        const std::lock_guard hold(lock_);
        if (std::exchange(closed_, true)) return;
    }
    end_all(Error::make(MUSTER_E_CLOSED, "the endpoint is closed"));
    end_.post(*context_);
    if (settings.queue) settings.queue->detach(*this);
    if (!context_->on_loop()) const std::lock_guard executed(execution_lock_);
    const std::lock_guard unused(memory_lock_);
}

void ActiveMessages::host_release() noexcept {
    if (!forked()) {
        close();
        context_->host_calls().end_all_on(*this);
    }
    release();
}

// ---- peers and handlers

Status ActiveMessages::set_handler(uint32_t number, Handler handler) noexcept {
    const std::lock_guard hold(lock_);
    if (closed_) return MUSTER_E_CLOSED;
    if (has_handler_[number].load(std::memory_order_relaxed)) return MUSTER_E_EXISTS;
    handlers_[number] = std::move(handler);
    has_handler_[number].store(true, std::memory_order_release);
    return MUSTER_OK;
}

Result<uint32_t> ActiveMessages::add_peer(Stream &stream) {
    Ref<AmPeer> made;
    uint32_t number = 0;
    {
        const std::lock_guard hold(lock_);
        if (closed_) return Error::make(MUSTER_E_CLOSED, "the endpoint is closed");
        number = peer_count_.load(std::memory_order_relaxed);
        if (number == max_peers) return Error::make(MUSTER_E_LIMIT, "the endpoint has %u peers", max_peers);
        std::unique_ptr<PeerBlock> &block = peers_[number / peers_per_block];
        if (!block) block = std::make_unique<PeerBlock>();
        made = make_ref<AmPeer>(stream, number, settings.limits);
        made->hello(); // before any request
        (*block)[number % peers_per_block] = made;
        peer_count_.store(number + 1, std::memory_order_release);
    }
    const uint32_t events = MUSTER_STREAM_READABLE | MUSTER_STREAM_WRITABLE | MUSTER_STREAM_ENDED;
    if (const Status status = stream.watch(events, events_.get(), number); status < 0) {
        made->end(Error::from_status(status), muster_status_text(status)); // its number is not used again
        return Error::make(status, "the stream cannot be used: %s", muster_status_text(status));
    }
    made->take_handle();
    return number;
}

// ---- requests

Result<void> ActiveMessages::check(const Request &request, const AmPeer *to) const noexcept {
    if (to == nullptr) return Error::make(MUSTER_E_ARG, "there is no peer %u", request.peer);
    if (request.payload().total() > settings.limits.max_bytes)
        return Error::make(MUSTER_E_ARG, "the request has %zu bytes, and max_bytes is %u", request.payload().total(),
                           settings.limits.max_bytes);
    return {};
}

ActiveMessages::Started ActiveMessages::start(const Request &request, Deadline &deadline, Ref<AmCall> made,
                                              AmPeer *to_peer) {
    Started started;
    started.peer = to_peer;
    if (auto good = check(request, to_peer); !good) {
        started.why = good.error();
        return started;
    }
    if (context_->on_loop() && !context_->external()) {
        started.why = Error::make(MUSTER_E_WOULD_DEADLOCK, "a call of a peer on the thread of the library");
        return started;
    }
    AmPeer &to = *to_peer;
    if (!made) {
        made = make_ref<AmCall>(*context_, request.reply, request.capacity, false);
        made->set_reader();
    }
    const AmPayload payload = request.payload();
    const bool is_direct = payload.body_bytes >= direct_bytes && !context_->external();
    AmHead head;
    // Waits for room; then the request is made. The first hello of the peer may allow a larger one.
    Status made_it = MUSTER_AGAIN;
    Status status = context_->wait(changed_, deadline, [&] {
        made_it = to.has_limits() && payload.total() > to.limits().max_bytes ? MUSTER_E_ARG
                  : is_direct ? to.begin_direct(*made, request.handler, payload, head)
                              : to.request(*made, request.handler, payload);
        return made_it != MUSTER_AGAIN;
    });
    if (status == MUSTER_OK) status = made_it;
    if (status == MUSTER_OK) {
        if (is_direct) {
            to.write_directly(head, payload, deadline);
            context_->notify(changed_);
        }
        started.call = std::move(made);
        return started;
    }
    if (to.has_ended(&started.why)) return started;
    if (status == MUSTER_E_ARG)
        started.why = Error::make(MUSTER_E_ARG, "the request has %zu bytes, and the peer accepts %u", payload.total(),
                                  to.limits().max_bytes);
    else if (status == MUSTER_AGAIN || status == MUSTER_TIMEOUT)
        started.why = Error::make(MUSTER_TIMEOUT, "too many requests to the peer had no reply; it was not made");
    else
        started.why = Error::from_status(status);
    return started;
}

AmCall::Outcome ActiveMessages::call(const Request &request, Deadline &deadline) {
    TraceSpan span(TraceSpan::Later(), request.category, request.name);
    Reader reader(*this, peer(request.peer)); // before the request is made, so that its reply wakes no other thread
    Deadline once(0);
    Started started = start(request, reader.take() ? once : deadline, {}, reader.peer());
    if (started.why.status == MUSTER_TIMEOUT && reader.has() && !deadline.look_once()) {
        reader.leave(); // there is no room, and others may have to read before there is
        started = start(request, deadline, {}, reader.peer());
    }
    if (span.is_written() && started.call) span.begun(started.peer->flow_to(started.call->id));
    return finish(started, deadline, &reader);
}

AmCall::Outcome ActiveMessages::finish(Started &started, Deadline &deadline, Reader *reader) {
    AmCall::Outcome outcome;
    outcome.why = started.why;
    if (!started.call) return outcome;
    if (reader != nullptr) {
        if (!started.call->is_over() && reader->take()) reader->read_until_over(*started.call, deadline);
        if (!started.call->is_over()) reader->leave();
    }
    return started.call->wait_for(deadline);
}

Result<void> ActiveMessages::begin(const Request &request, Queue *queue, uint64_t tag, int32_t kind) {
    AmPeer *const to = peer(request.peer);
    if (auto good = check(request, to); !good) return good;
    const uint32_t limit = to->limits().max_bytes;
    if (const size_t bytes = request.payload().total(); to->has_limits() && bytes > limit)
        return Error::make(MUSTER_E_ARG, "the request has %zu bytes, and the peer accepts %u", bytes, limit);
    const auto made = make_ref<AmCall>(*context_, request.reply, request.capacity, queue == nullptr, kind);
    made->set_entry_bytes(request.entry_bytes);
    if (queue != nullptr) {
        auto delivers = made->deliver_to(*queue, tag);
        if (!delivers || delivers.status() != MUSTER_OK) return delivers;
    }
    const int64_t from_ns = Trace::is_on() ? now_ns() : 0;
    Status status;
    try {
        status = to->request(*made, request.handler, request.payload());
    } catch (const std::bad_alloc &) {
        status = MUSTER_E_NOMEM;
    }
    if (status == MUSTER_OK) {
        if (from_ns != 0)
            Trace::write({Trace::Kind::mark, request.category, "begin", {}, to->flow_to(made->id), from_ns});
        return {};
    }
    if (queue != nullptr) made->withdraw();
    if (status == MUSTER_AGAIN) return Result<void>::positive(MUSTER_AGAIN);
    return Error::from_status(status);
}

Status ActiveMessages::flush(uint32_t which, Deadline &deadline) noexcept {
    const bool all = which == UINT32_MAX;
    if (!all && peer(which) == nullptr) return MUSTER_E_ARG;
    uint32_t count = 0;
    {
        const std::lock_guard hold(lock_);
        if (closed_) return MUSTER_E_CLOSED;
        count = peer_count_.load(std::memory_order_relaxed);
    }
    Status first = MUSTER_OK;
    for (uint32_t number = all ? 0 : which; number < (all ? count : which + 1); number++) {
        AmPeer *const one = peer(number);
        const Status status = context_->wait(changed_, deadline, [one] { return one->outstanding() == 0; });
        if (status != MUSTER_OK) return status;
        const Status failure = one->take_failure();
        if (first == MUSTER_OK) first = failure;
    }
    return first;
}

Status ActiveMessages::reply(AmPeer &to, uint64_t id, Status status, const void *data, size_t bytes) noexcept {
    Status sent;
    try {
        sent = to.reply(id, status, data, bytes);
    } catch (const std::bad_alloc &) {
        sent = MUSTER_E_NOMEM;
    }
    if (sent == MUSTER_E_PROTOCOL)
        end_peer(to, Error::make(sent, "the peer does not read its replies"), "replies are not read");
    if (sent == MUSTER_E_NOMEM) end_peer(to, Error::make(sent, "no memory for a reply"), "out of memory");
    return sent;
}

Status AmHostRequest::reply(Status status, const void *data, size_t bytes) noexcept {
    if (am_->forked()) return MUSTER_E_FORKED;
    if (bytes > peer_->limits().max_bytes) return MUSTER_E_ARG;
    if (answered_.exchange(true, std::memory_order_acq_rel)) return MUSTER_E_STALE;
    peer_->serve_ends();
    return am_->reply(*peer_, id_, status, data, bytes);
}

} // namespace muster
