// SPDX-License-Identifier: MIT
#include "queue/served.hpp"

#include "queue/refusal.hpp"

#include <algorithm>

namespace muster {

// ---- one provider -------------------------------------------------------------------------------------------------

Result<void> ServedProvider::reserve(int slots) noexcept {
    if (config_.is_on_loop) {
        if (queue_ && queue_->closed()) return Error::make(MUSTER_E_CLOSED, "%s: its queue is closed", shown());
        return {};
    }
    for (int i = 0; i < slots; i++) {
        if (queue_->reserve()) continue;
        char what[128];
        std::snprintf(what, sizeof what, "%s: the queue of requests", shown());
        const Error why = why_refused(*queue_, what);
        unreserve(i);
        return why;
    }
    return {};
}

void ServedProvider::unreserve(int slots) noexcept {
    if (config_.is_on_loop) return;
    for (int i = 0; i < slots; i++) queue_->unreserve();
}

void ServedProvider::notify(int32_t kind, ServedRequest *request, ServedNotification &notification) noexcept {
    if (config_.is_on_loop) {
        {
            const std::lock_guard hold(lock_);
            if (stopped_) return;
            notification.kind = kind;
            notification.request = request;
            if (request != nullptr) request->retain();
            notifications_.push_back(notification);
        }
        deliver_.post(config_.context); // refused: stop() delivers
        return;
    }
    Entry entry;
    entry.completion.kind = kind;
    entry.completion.request = request != nullptr ? request->id() : 0;
    entry.completion.tag = config_.tag;
    if (config_.has_callbacks) entry.provider = this;
    entry.asker = request != nullptr ? Ref<Object>(request) : Ref<Object>(&provider_object()); // both keep the provider
    queue_->complete(std::move(entry));
}

void ServedProvider::deliver() noexcept {
    const Ref<ServedProvider> self(this);
    for (;;) {
        Ref<ServedRequest> request;
        int32_t kind = 0;
        {
            const std::lock_guard hold(lock_);
            ServedNotification *const notification = notifications_.pop_front();
            if (notification == nullptr) return;
            kind = notification->kind;
            request = Ref<ServedRequest>::adopt(notification->request);
        }
        call(kind, request ? request->id() : 0);
    }
}

void ServedProvider::stop() noexcept {
    deliver();
    const std::lock_guard hold(lock_);
    stopped_ = true;
}

void ServedProvider::call(int32_t kind, uint64_t id) {
    ServedRequests &requests = ServedRequests::of(config_.context);
    const Callbacks &callbacks = config_.callbacks;
    switch (kind) {
    case MUSTER_REQUEST_CANCEL:
        return callbacks.cancel != nullptr ? callbacks.cancel(config_.self, id) : void();
    case MUSTER_REQUEST_CLOSE:
        if (id != 0) return callbacks.close != nullptr ? callbacks.close(config_.self, id) : void();
        if (callbacks.destroy != nullptr) callbacks.destroy(config_.self);
        return requests.destroyed(*this);
    default:
        if (const Ref<ServedRequest> request = requests.see(id)) call_for(*request);
    }
}

ServedRequest::ServedRequest(ServedProvider &provider, int32_t kind)
    : provider_(&provider),
      id_(ServedRequests::of(provider.context()).next_id_.fetch_add(1, std::memory_order_relaxed)) {
    first_.kind = kind;
}

// ---- providers ----------------------------------------------------------------------------------------------------

ServedRequests &ServedRequests::of(Context &context) {
    static const char key = 0;
    return static_cast<ServedRequests &>(context.part(
        &key, [](Context &c) -> std::unique_ptr<ContextPart> { return std::make_unique<ServedRequests>(c); }));
}

Error ServedRequests::stale(uint64_t id) noexcept {
    return Error::make(MUSTER_E_STALE, "request %llu is over, or never was", static_cast<unsigned long long>(id));
}

Result<void> ServedRequests::add(ServedProvider &provider) {
    const char *const shown = provider.shown();
    Queue *const queue = provider.queue();
    if (context_.closed()) return Error::make(MUSTER_E_CLOSED, "serve %s: the context is closed", shown);
    if (queue != nullptr && queue->closed())
        return Error::make(MUSTER_E_CLOSED, "serve %s: the queue is closed", shown);
    const int end_slots = provider.has_callbacks() ? 1 : 0;
    if (auto reserved = provider.reserve(end_slots); !reserved) return reserved;
    struct Reservation {
        ServedProvider *provider;
        int slots;
        ~Reservation() { provider->unreserve(slots); }
    } reservation{&provider, end_slots};
    if (queue != nullptr) queue->set_served(*this);
    const std::lock_guard hold(lock_);
    const auto [place, is_new] =
        providers_.emplace(Name(provider.kind(), provider.name()), Ref<ServedProvider>(&provider));
    if (!is_new) return Error::make(MUSTER_E_EXISTS, "serve %s: it is taken", shown);
    Result<void> published;
    try {
        if (provider.config_.is_on_loop) on_loop_.emplace(&provider, Ref<ServedProvider>(&provider));
        published = provider.publish();
    } catch (...) {
        published = Error::make(MUSTER_E_NOMEM, "serve %s: out of memory", shown);
    }
    if (!published) {
        on_loop_.erase(&provider);
        providers_.erase(place); // the caller has another reference
        return published;
    }
    reservation.slots = 0;
    return {};
}

Ref<ServedProvider> ServedRequests::find(ServedKind kind, const std::string &name) {
    const std::lock_guard hold(lock_);
    const auto found = providers_.find(Name(kind, name));
    return found == providers_.end() ? Ref<ServedProvider>() : found->second;
}

Result<void> ServedRequests::withdraw(ServedKind kind, const std::string &name, const char *shown) {
    const Ref<ServedProvider> found = find(kind, name);
    if (!found || found->queue() == nullptr)
        return Error::make(MUSTER_E_NOT_FOUND, "withdraw %s: the host serves no such thing", shown);
    withdraw(*found);
    return {};
}

void ServedRequests::withdraw(ServedProvider &provider) noexcept {
    const Ref<ServedProvider> alive(&provider);
    {
        Ref<ServedProvider> gone; // released without the lock
        const std::lock_guard hold(lock_);
        if (provider.withdrawn_) return;
        provider.withdrawn_ = true;
        provider.requests_count_++; // this walk
        for (auto place = providers_.begin(); place != providers_.end(); ++place) {
            if (place->second.get() != &provider) continue;
            gone = std::move(place->second);
            providers_.erase(place);
            break;
        }
    }
    provider.unpublish();
    const Error why = Error::make(MUSTER_E_CLOSED, "%s is no longer served", provider.shown());
    for (uint64_t last = 0;;) {
        Ref<ServedRequest> request;
        bool answered = false, remains = false;
        {
            const std::lock_guard hold(lock_);
            request = Ref<ServedRequest>(next_locked(last, provider.kind(), &provider));
            if (!request) break;
            last = request->id();
            answered = request->answered_;
            remains = request->outlives_withdrawal();
            request->withdrawn_ = true;
            if (!remains) requests_.erase(last);
        }
        if (!remains) retire(*request, answered ? MUSTER_REQUEST_CLOSE : MUSTER_REQUEST_CANCEL);
        request->withdrawn(why, answered);
    }
    leave(provider);
}

template <class Which>
void ServedRequests::withdraw_all(const Which &which) noexcept {
    for (;;) {
        Ref<ServedProvider> provider;
        {
            const std::lock_guard hold(lock_);
            const auto found = std::find_if(providers_.begin(), providers_.end(),
                                            [&](const auto &place) { return which(*place.second); });
            if (found == providers_.end()) return;
            provider = found->second;
        }
        withdraw(*provider);
    }
}

void ServedRequests::queue_released(Queue &queue) noexcept {
    withdraw_all([&](const ServedProvider &provider) { return provider.queue() == &queue; });
}

void ServedRequests::close() noexcept {
    withdraw_all([](const ServedProvider &) { return true; });
}

void ServedRequests::stop() noexcept {
    close();
    for (;;) {
        Ref<ServedProvider> provider;
        {
            const std::lock_guard hold(lock_);
            if (on_loop_.empty()) return;
            provider = std::move(on_loop_.begin()->second);
            on_loop_.erase(on_loop_.begin());
        }
        provider->stop();
    }
}

void ServedRequests::destroyed(ServedProvider &provider) noexcept {
    Ref<ServedProvider> gone; // released without the lock
    const std::lock_guard hold(lock_);
    const auto found = on_loop_.find(&provider);
    if (found == on_loop_.end()) return;
    gone = std::move(found->second);
    on_loop_.erase(found);
}

// ---- requests -----------------------------------------------------------------------------------------------------

Result<void> ServedRequests::enter(ServedRequest &request, int slots) noexcept {
    ServedProvider &provider = request.provider();
    if (auto reserved = provider.reserve(slots); !reserved) return reserved;
    Error why;
    try {
        const std::lock_guard hold(lock_);
        // withdraw() sets the mark and then walks the table: it finds every request that enters.
        if (!provider.withdrawn_) {
            requests_.emplace(request.id(), Ref<ServedRequest>(&request));
            provider.requests_count_++;
            return {};
        }
        why = Error::make(MUSTER_E_CLOSED, "%s is no longer served", provider.shown());
    } catch (const std::bad_alloc &) {
        why = Error::make(MUSTER_E_NOMEM, "%s: out of memory for a request", provider.shown());
    }
    provider.unreserve(slots);
    return why;
}

Result<void> ServedRequests::send(ServedRequest &request) noexcept {
    if (auto entered = enter(request, 2); !entered) return entered;
    request.provider().notify(request.first_.kind, &request, request.first_);
    return {};
}

Result<void> ServedRequests::enter(ServedRequest &request) noexcept {
    request.answered_ = request.seen_ = true; // before others know it
    return enter(request, 1);
}

Ref<ServedRequest> ServedRequests::see(uint64_t id) noexcept {
    const std::lock_guard hold(lock_);
    const auto found = requests_.find(id);
    if (found == requests_.end()) return {};
    found->second->seen_ = true;
    return found->second;
}

void ServedRequests::retire(ServedRequest &request, int32_t notification) noexcept {
    ServedProvider &provider = request.provider();
    if (!request.cancelled_) {                                                 // else that was the final notification
        if (notification == 0 || (provider.has_callbacks() && !request.seen_)) // the callback of it will not run
            provider.unreserve(1);
        else
            provider.notify(notification, &request, request.last_);
    }
    leave(provider);
}

void ServedRequests::leave(ServedProvider &provider) noexcept {
    {
        const std::lock_guard hold(lock_);
        if (--provider.requests_count_ != 0 || !provider.withdrawn_) return;
    }
    if (provider.has_callbacks()) provider.notify(MUSTER_REQUEST_CLOSE, nullptr, provider.end_);
    provider.ended();
}

ServedRequests::Cancelled ServedRequests::cancel(uint64_t id, bool wants_answer) noexcept {
    Ref<ServedRequest> request;
    bool seen;
    {
        const std::lock_guard hold(lock_);
        const auto found = requests_.find(id);
        if (found == requests_.end() || !found->second->is_open()) return Cancelled::over;
        request = found->second;
        seen = !request->provider().has_callbacks() || request->seen_;
        wants_answer = wants_answer && seen;
        if (wants_answer) {
            request->cancelled_ = true;
            request->provider().requests_count_++; // until CANCEL was sent: the end of the provider follows it
        } else {
            requests_.erase(found);
        }
    }
    if (wants_answer) {
        request->provider().notify(MUSTER_REQUEST_CANCEL, request.get(), request->last_);
        leave(request->provider());
    } else {
        retire(*request, MUSTER_REQUEST_CANCEL);
    }
    return seen ? Cancelled::seen : Cancelled::unseen;
}

void ServedRequests::end(uint64_t id) noexcept {
    Ref<ServedRequest> request;
    bool answered;
    {
        const std::lock_guard hold(lock_);
        const auto found = requests_.find(id);
        if (found == requests_.end()) return;
        request = std::move(found->second);
        answered = request->answered_;
        requests_.erase(found);
    }
    retire(*request, answered ? MUSTER_REQUEST_CLOSE : MUSTER_REQUEST_CANCEL);
}

bool ServedRequests::answer(ServedRequest &request, bool keep) noexcept {
    Ref<ServedRequest> gone; // released without the lock
    {
        const std::lock_guard hold(lock_);
        const auto found = requests_.find(request.id());
        if (found == requests_.end() || !request.is_open()) return false;
        request.answered_ = request.seen_ = true;
        if (keep) return true;
        gone = std::move(found->second);
        requests_.erase(found);
    }
    retire(request, 0);
    return true;
}

bool ServedRequests::is_unanswered(uint64_t id) noexcept {
    const std::lock_guard hold(lock_);
    const auto found = requests_.find(id);
    return found != requests_.end() && found->second->is_open();
}

bool ServedRequests::is_cancelled(const ServedRequest &request) noexcept {
    const std::lock_guard hold(lock_);
    return request.cancelled_;
}

Ref<ServedRequest> ServedRequests::find(ServedKind kind, const Queue *queue, uint64_t id, bool answered) noexcept {
    const std::lock_guard hold(lock_);
    const auto found = requests_.find(id);
    if (found == requests_.end()) return {};
    ServedRequest &request = *found->second;
    const ServedProvider &provider = request.provider();
    const bool is_it = provider.kind() == kind && provider.queue() == queue;
    return is_it && (answered ? request.answered_ : request.is_open()) ? found->second : Ref<ServedRequest>();
}

ServedRequest *ServedRequests::next_locked(uint64_t after, ServedKind kind, const ServedProvider *provider) noexcept {
    for (auto at = requests_.upper_bound(after); at != requests_.end(); ++at) {
        const ServedProvider &own = at->second->provider();
        if (own.kind() == kind && (provider == nullptr || provider == &own)) return at->second.get();
    }
    return nullptr;
}

} // namespace muster
