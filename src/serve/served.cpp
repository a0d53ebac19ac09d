// SPDX-License-Identifier: MIT
#include "serve/served.hpp"

#include "queue/refusal.hpp"
#include "transport/hub.hpp"

namespace muster {

Served::Served(Context &context, Queue &queue, uint32_t flags, const muster_transport_ops *ops, void *self,
               uint64_t tag)
    : context_(context), queue_(&queue), with_ops_(ops != nullptr), self_(self), flags_(flags), tag_(tag),
      registrant_(pthread_self()) {
    if (ops != nullptr) ops_ = *ops;
    Plugins::of(context); // made here, where it may fail
}

bool Served::would_deadlock() noexcept {
    if (any_thread()) return false;
    return queue_->served_here(registrant_);
}

bool Served::can_listen() const noexcept {
    return (flags_ & MUSTER_TRANSPORT_NO_LISTEN) == 0 && (!with_ops_ || ops_.listen != nullptr);
}

// Known to the context, also again after it was taken back in the middle of a dial: the loop ends it with the context.
void Served::use() noexcept {
    if (!used_.exchange(true, std::memory_order_relaxed)) enter(context_, false);
}

// ---- requests to the host
// --------------------------------------------------------------------------------------------

bool Served::reserve_two() noexcept {
    if (!queue_->reserve()) return false;
    if (queue_->reserve()) return true;
    queue_->unreserve();
    return false;
}

void Served::post_first(int32_t kind, uint64_t id, const Requests::Request &request) noexcept {
    if (request.listener) return post(kind, id, request.listener->notices().first, Ref<Object>(request.listener));
    post(kind, id, request.pump->notices().first, Ref<Object>(request.pump));
}

void Served::post_last(int32_t kind, uint64_t id, const Requests::Request &request) noexcept {
    if (request.listener) return post(kind, id, request.listener->notices().last, Ref<Object>(request.listener));
    post(kind, id, request.pump->notices().last, Ref<Object>(request.pump));
}

void Served::post(int32_t kind, uint64_t id, Notice &notice, Ref<Object> owner) noexcept {
    if (any_thread()) {
        queue_->unreserve();
        {
            const std::lock_guard hold(notices_lock_);
            if (stopped_) return;
            notice.kind = kind;
            notice.request = id;
            notice.owner = std::move(owner);
            notices_.push_back(notice);
        }
        serve_notices_.post(context_); // refused: context_stops() lets go of them
        return;
    }
    Entry entry;
    entry.completion.kind = kind;
    entry.completion.request = id;
    entry.completion.tag = tag_;
    if (with_ops_) {
        entry.table = this;
        entry.asker = Ref<Object>(this);
    }
    queue_->complete(std::move(entry));
}

void Served::serve_notices() noexcept {
    for (;;) {
        muster_completion request{};
        Ref<Object> owner;
        {
            const std::lock_guard hold(notices_lock_);
            Notice *const notice = notices_.pop_front();
            if (notice == nullptr) return;
            request.kind = notice->kind;
            request.request = notice->request;
            owner = std::move(notice->owner);
        }
        serve(request);
    }
}

// A callback of the host's table, on the thread that dispatches.
void Served::serve(const muster_completion &request) {
    const uint64_t id = request.request;
    Ref<Pump> pump;
    Ref<ServedListener> listener;
    if (request.kind == MUSTER_REQUEST_OPEN || request.kind == MUSTER_REQUEST_LISTEN) {
        Requests &requests = Requests::of(context_);
        const std::lock_guard hold(requests.lock_);
        const auto found = requests.requests_.find(id);
        if (found == requests.requests_.end()) return; // cancelled before the host heard of it
        found->second.seen = true;
        pump = found->second.pump;
        listener = found->second.listener;
    }
    switch (request.kind) {
    case MUSTER_REQUEST_OPEN:
        return ops_.open(self_, id, pump->wanted().data(), pump->wanted().size());
    case MUSTER_REQUEST_LISTEN:
        return ops_.listen(self_, id, listener->wanted().text.data(), listener->wanted().text.size());
    case MUSTER_REQUEST_CANCEL:
        return ops_.cancel != nullptr ? ops_.cancel(self_, id) : void();
    default:
        if (id == 0) return ops_.destroy != nullptr ? ops_.destroy(self_) : void();
        return ops_.close != nullptr ? ops_.close(self_, id) : void();
    }
}

void Served::dial(const Address &address, const TransportOptions &options, Ref<Dial> dial) {
    Result<SessionAddress> own = session_address(context_, address);
    if (!own) return dial->done(own.error());
    const char *text = own->full.c_str();
    if (withdrawn_.load(std::memory_order_relaxed) || queue_->closed())
        return dial->done(Error::make(MUSTER_E_CLOSED, "dial %s: nobody serves it any more", text));
    if (!reserve_two())
        return dial->done(why_refused(*queue_, ("dial " + own->full + ": the queue of requests").c_str()));
    RequestMade made(*this, 2);
    SessionConfig config;
    config.dialer = true;
    config.auth = own->auth;
    config.seal = own->seal;
    config.peer = own->full;
    Requests::Request line;
    const uint64_t id = made.enter([&](Requests::Request &request, uint64_t number) {
        request.pump = make_ref<Pump>(*this, number, Ref<ServedListener>(), std::move(own->text), std::move(config));
        line = request;
    });
    if (id == 0) return dial->done(Error::make(MUSTER_E_CLOSED, "dial %s: nobody serves it any more", text));
    use();
    line.pump->session().open({}, options, std::move(dial));
    made.keep();
    post_first(MUSTER_REQUEST_OPEN, id, line);
}

Result<Ref<TransportListener>> Served::listen(const Address &address, const TransportOptions &options,
                                              Ref<ListenerCore> core) {
    Result<SessionAddress> own = session_address(context_, address);
    if (!own) return own.error();
    const char *text = own->full.c_str();
    if (withdrawn_.load(std::memory_order_relaxed) || queue_->closed())
        return Error::make(MUSTER_E_CLOSED, "listen %s: nobody serves it any more", text);
    if (!can_listen()) return Error::make(MUSTER_E_UNSUPPORTED, "listen %s: the host's transport cannot listen", text);
    if (!reserve_two()) return why_refused(*queue_, ("listen " + own->full + ": the queue of requests").c_str());
    RequestMade made(*this, 2);
    use();
    Requests::Request line;
    const uint64_t id = made.enter([&](Requests::Request &request, uint64_t number) {
        request.listener = make_ref<ServedListener>(*this, number, *own, options, std::move(core));
        line = request;
    });
    if (id == 0) return Error::make(MUSTER_E_CLOSED, "listen %s: nobody serves it any more", text);
    use();
    made.keep();
    post_first(MUSTER_REQUEST_LISTEN, id, line);
    return Ref<TransportListener>(line.listener);
}

RequestMade::~RequestMade() {
    if (slots_ == 0) return;
    Requests &requests = Requests::of(transport_.context());
    Requests::Request request; // released without the lock
    {
        const std::lock_guard hold(requests.lock_);
        const auto found = requests.requests_.find(id_);
        if (found != requests.requests_.end()) {
            request = std::move(found->second);
            requests.requests_.erase(found);
        }
    }
    for (int i = 0; i < slots_; i++) transport_.queue().unreserve();
    // A pump and its session hold each other until the session ends.
    if (request.pump) request.pump->fail_later(Error::make(MUSTER_E_NOMEM, "out of memory"));
    if (id_ != 0) transport_.line_gone();
}

// ---- the end
// ---------------------------------------------------------------------------------------------------------

void Served::over(uint64_t id) noexcept {
    Requests &requests = Requests::of(context_);
    Requests::Request request;
    {
        const std::lock_guard hold(requests.lock_);
        const auto found = requests.requests_.find(id);
        if (found == requests.requests_.end()) return;
        request = std::move(found->second);
        requests.requests_.erase(found);
    }
    const bool unheard = with_ops_ && !request.seen && request.state == Requests::State::waiting;
    if (unheard)
        queue_->unreserve();
    else
        post_last(request.state == Requests::State::waiting ? MUSTER_REQUEST_CANCEL : MUSTER_REQUEST_CLOSE, id,
                  request);
    line_gone();
}

void Served::unused(uint64_t id) noexcept {
    Requests &requests = Requests::of(context_);
    Requests::Request request; // released without the lock
    {
        const std::lock_guard hold(requests.lock_);
        const auto found = requests.requests_.find(id);
        if (found == requests.requests_.end()) return;
        request = std::move(found->second);
        requests.requests_.erase(found);
    }
    queue_->unreserve();
    line_gone();
}

bool Served::any_line() noexcept {
    for (const auto &[id, request] : Requests::of(context_).requests_)
        if (request.transport.get() == this) return true;
    return false;
}

// After the last request of a transport that was taken back, its table is destroyed, and the context lets go of it.
void Served::line_gone() noexcept {
    if (!withdrawn_.load(std::memory_order_relaxed)) return;
    bool last_word;
    {
        const std::lock_guard hold(Requests::of(context_).lock_);
        if (any_line()) return;
        last_word = with_ops_ && !std::exchange(last_word_said_, true);
    }
    if (last_word) post(MUSTER_REQUEST_CLOSE, 0, destroy_notice_, {}); // the errand keeps this
    leave_.post(context_);
}

// A dial that found it still served enters its line first, and then sees to it that the context knows the transport.
void Served::leave_if_over() noexcept {
    {
        const std::lock_guard hold(Requests::of(context_).lock_);
        if (any_line()) return;
        used_.store(false, std::memory_order_relaxed);
    }
    leave();
}

// Unanswered requests fail, listeners close; connections go on.
void Served::withdraw() noexcept {
    if (withdrawn_.exchange(true, std::memory_order_relaxed)) return;
    const Ref<Served> alive(this);
    const Error why = Error::make(MUSTER_E_CLOSED, "nobody serves the transport any more");
    Requests &requests = Requests::of(context_);
    for (uint64_t last = 0;;) { // one after the other: they leave the table meanwhile
        Ref<Pump> unanswered;
        Ref<ServedListener> listener;
        {
            const std::lock_guard hold(requests.lock_);
            const auto found = requests.requests_.upper_bound(last);
            if (found == requests.requests_.end()) break;
            last = found->first;
            const Requests::Request &request = found->second;
            if (request.transport.get() != this) continue;
            listener = request.listener;
            if (!listener && request.state == Requests::State::waiting) unanswered = request.pump;
        }
        if (unanswered) unanswered->fail(why);
        if (!listener) continue;
        listener->fail(why);
        listener->close();
    }
    line_gone();
}

bool Served::context_drained() noexcept {
    Requests &requests = Requests::of(context_);
    bool all = true;
    for (uint64_t last = 0;;) { // one after the other, without the lock
        Ref<Pump> pump;
        {
            const std::lock_guard hold(requests.lock_);
            const auto found = requests.requests_.upper_bound(last);
            if (found == requests.requests_.end()) return all;
            last = found->first;
            if (found->second.transport.get() == this) pump = found->second.pump;
        }
        if (!pump) continue;
        if (pump->is_leaving()) {
            pump->leave();
            continue;
        }
        pump->wind_down();
        all = false;
    }
}

void Served::context_stops() noexcept {
    withdraw();
    for (;;) {
        Ref<Pump> pump;
        {
            Requests &requests = Requests::of(context_);
            const std::lock_guard hold(requests.lock_);
            for (const auto &[id, request] : requests.requests_)
                if (request.transport.get() == this && request.pump) pump = request.pump;
        }
        if (!pump) break;
        pump->fail(Error::make(MUSTER_E_CLOSED, "the context is closed"));
        over(pump->request()); // it may have ended by itself a moment ago
    }
    serve_notices();
    const std::lock_guard hold(notices_lock_);
    stopped_ = true;
}

// ---- a listener
// ------------------------------------------------------------------------------------------------------

ServedListener::ServedListener(Served &transport, uint64_t request, const SessionAddress &address,
                               const TransportOptions &options, Ref<ListenerCore> core)
    : transport_(&transport), request_(request), wanted_(address), options_(options), core_(std::move(core)),
      pending_(make_ref<PendingSessions>(transport.context(), core_, address.full)), address_(address.text) {
    core_->set_opening();
}

std::string ServedListener::address() {
    const std::lock_guard hold(lock_);
    return address_;
}

void ServedListener::answer(std::string address) noexcept {
    {
        const std::lock_guard hold(lock_);
        if (!address.empty()) address_ = std::move(address);
    }
    core_->opened();
}

SessionListener ServedListener::target() {
    const std::lock_guard hold(lock_);
    if (closed_) return {};
    return {core_, options_.window_bytes, options_.greeting};
}

bool ServedListener::admit_one() noexcept {
    if (unproved_.fetch_add(1, std::memory_order_relaxed) < pending_->most()) return true;
    proved_one();
    return false;
}

void ServedListener::close() noexcept {
    const Ref<ServedListener> alive(this);
    {
        const std::lock_guard hold(lock_);
        if (std::exchange(closed_, true)) return;
    }
    transport_->over(request_);
}

} // namespace muster
