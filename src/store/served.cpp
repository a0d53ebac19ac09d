// SPDX-License-Identifier: MIT
// Requests on their way to whoever serves a scheme, and the end of a scheme.
#include "store/served.hpp"
#include "queue/refusal.hpp"

#include "plugin/timed.hpp"

#include <algorithm>

namespace muster {

// ---- one request
// -----------------------------------------------------------------------------------------------------

ServedRequest::ServedRequest(ServedScheme &to, uint32_t what) : kind(what), scheme_(&to) {
    first.about = last.about = this;
}

void ServedRequest::ask_for(StoreOperation &asked, uint64_t of_store) {
    operation = Ref<StoreOperation>(&asked);
    store = of_store;
    ops_.resize(asked.request.ops().size());
    for (size_t i = 0; i < ops_.size(); i++) {
        const StoreOp &from = asked.request.ops()[i];
        muster_store_op &op = ops_[i];
        op.kind = from.kind;
        op.condition = from.condition;
        op.key = from.key.data();
        op.key_bytes = from.key.size();
        op.value = from.value.data();
        op.value_bytes = from.value.size();
        op.expected = from.expected.data();
        op.expected_bytes = from.expected.size();
        op.version = from.version;
        op.number = from.number;
        op.lease = from.lease;
        op.count = from.count;
        op.rank = from.rank;
    }
}

void ServedRequest::tell(muster_store_request &out) const noexcept {
    out = {};
    out.struct_size = sizeof out;
    out.kind = kind;
    out.store = store;
    out.flags = flags;
    out.ops = ops_.data();
    out.op_count = ops_.size();
    out.url = url.data();
    out.url_bytes = url.size();
    out.lease = lease;
    out.ttl_ns = ttl_ns;
}

// ---- one scheme
// ------------------------------------------------------------------------------------------------------

ServedScheme::ServedScheme(Context &context, std::string name, Queue *queue, const muster_store_host_ops *ops,
                           void *self, uint64_t tag)
    : context_(context), name_(std::move(name)), queue_(queue), with_ops_(ops != nullptr),
      on_loop_(queue == nullptr || (ops != nullptr && (ops->flags & MUSTER_STORE_ANY_THREAD) != 0)), self_(self),
      tag_(tag), registrant_(pthread_self()) {
    if (ops != nullptr) ops_ = *ops;
    end_word_.kind = MUSTER_REQUEST_CLOSE;
}

bool ServedScheme::would_deadlock() const noexcept {
    if (on_loop_) return false; // the loop's thread may not wait anyway
    return queue_->served_here(registrant_);
}

bool ServedScheme::reserve(int slots) noexcept {
    if (on_loop_) return queue_.get() == nullptr || !queue_->closed();
    for (int i = 0; i < slots; i++) {
        if (queue_->reserve()) continue;
        unreserve(i);
        return false;
    }
    return true;
}

Error ServedScheme::why_refused() const {
    const std::string what = "serve " + name_ + ": the queue of requests";
    if (on_loop_) return Error::make(MUSTER_E_CLOSED, "%s is closed", what.c_str());
    return muster::why_refused(*queue_, what.c_str());
}

void ServedScheme::unreserve(int slots) noexcept {
    if (on_loop_) return;
    for (int i = 0; i < slots; i++) queue_->unreserve();
}

void ServedScheme::say_end() noexcept {
    if (on_loop_ || with_ops_) say(MUSTER_REQUEST_CLOSE, nullptr, end_word_);
}

// Into a slot that was reserved.
void ServedScheme::say(int32_t kind, ServedRequest *request, ServedWord &word) noexcept {
    if (on_loop_) {
        {
            const std::lock_guard hold(lock_);
            if (stopped_) return;
            word.kind = kind;
            if (request != nullptr) request->retain();
            words_.push_back(word);
        }
        serve_words_.post(context_); // refused: ServedStores::stop() serves them
        return;
    }
    Entry entry;
    entry.completion.kind = kind;
    entry.completion.request = request != nullptr ? request->id : 0;
    entry.completion.tag = tag_;
    if (with_ops_) entry.table = this;
    entry.asker = request != nullptr ? Ref<Object>(request) : Ref<Object>(this); // each keeps the table
    queue_->complete(std::move(entry));
}

void ServedScheme::serve_words() noexcept {
    const Ref<ServedScheme> self(this);
    for (;;) {
        Ref<ServedRequest> about;
        int32_t kind = 0;
        {
            const std::lock_guard hold(lock_);
            ServedWord *const word = words_.pop_front();
            if (word == nullptr) return;
            kind = word->kind;
            about = Ref<ServedRequest>::adopt(word->about);
        }
        serve(kind, about ? about->id : 0);
    }
}

void ServedScheme::stop() noexcept {
    serve_words();
    const std::lock_guard hold(lock_);
    stopped_ = true;
}

// A callback of the table: on the loop, or on the thread that dispatches.
void ServedScheme::serve(int32_t kind, uint64_t id) {
    if (plugin_ == nullptr) return call(kind, id);
    const char *const what = kind == MUSTER_REQUEST_STORE    ? "request"
                             : kind == MUSTER_REQUEST_CANCEL ? "cancel"
                             : id != 0                       ? "close"
                                                             : "destroy";
    timed(*plugin_, what, [&] { call(kind, id); });
}

void ServedScheme::call(int32_t kind, uint64_t id) {
    ServedStores &stores = ServedStores::of(context_);
    switch (kind) {
    case MUSTER_REQUEST_STORE: {
        const Ref<ServedRequest> request = stores.heard(id);
        if (!request) return; // over before anybody has heard of it
        muster_store_request what;
        request->tell(what);
        return ops_.request(self_, id, &what);
    }
    case MUSTER_REQUEST_CANCEL:
        return ops_.cancel != nullptr ? ops_.cancel(self_, id) : void();
    default:
        if (id != 0) return ops_.close != nullptr ? ops_.close(self_, id) : void();
        if (ops_.destroy != nullptr) ops_.destroy(self_);
        stores.table_gone(*this);
    }
}

// ---- the schemes of a context
// ----------------------------------------------------------------------------------------

ServedStores &ServedStores::of(Context &context) {
    static const char key = 0;
    return static_cast<ServedStores &>(context.part(
        &key, [](Context &c) -> std::unique_ptr<ContextPart> { return std::make_unique<ServedStores>(c); }));
}

Result<void> ServedStores::add(Ref<ServedScheme> scheme) {
    const char *const name = scheme->name().c_str();
    if (context_.closed()) return Error::make(MUSTER_E_CLOSED, "serve %s: the context is closed", name);
    if (scheme->queue() != nullptr && scheme->queue()->closed())
        return Error::make(MUSTER_E_CLOSED, "serve %s: the queue is closed", name);
    const int last_word = scheme->has_table() ? 1 : 0;
    if (!scheme->reserve(last_word)) return scheme->why_refused();
    struct Reserved {
        ServedScheme *scheme;
        int slots;
        ~Reserved() { scheme->unreserve(slots); }
    } reserved{scheme.get(), last_word};
    if (scheme->queue() != nullptr) scheme->queue()->set_server(*this);
    const std::lock_guard hold(lock_);
    if (schemes_.count(scheme->name()) != 0) return Error::make(MUSTER_E_EXISTS, "serve %s: it is taken", name);
    if (scheme->on_loop()) looped_.emplace(scheme.get(), scheme);
    try {
        schemes_.emplace(scheme->name(), scheme);
    } catch (...) {
        looped_.erase(scheme.get());
        throw;
    }
    reserved.slots = 0;
    return {};
}

Ref<ServedScheme> ServedStores::find(const std::string &scheme) {
    const std::lock_guard hold(lock_);
    const auto found = schemes_.find(scheme);
    return found == schemes_.end() ? Ref<ServedScheme>() : found->second;
}

Result<void> ServedStores::send(ServedRequest &request) {
    ServedScheme &scheme = request.scheme();
    if (!scheme.reserve(2)) return scheme.why_refused();
    bool withdrawn = false;
    try {
        const std::lock_guard hold(lock_);
        withdrawn = scheme.withdrawn_;
        if (!withdrawn) {
            request.id = next_;
            if (request.operation) request.operation->place.store(request.id, std::memory_order_relaxed);
            requests_.emplace(next_, Ref<ServedRequest>(&request));
            next_++;
            scheme.under_way_++;
        }
    } catch (...) {
        scheme.unreserve(2);
        throw;
    }
    if (withdrawn) {
        scheme.unreserve(2);
        return Error::make(MUSTER_E_CLOSED, "store %s: nobody serves it any more", scheme.name().c_str());
    }
    scheme.say_first(request);
    return {};
}

// Its callback is about to run. Empty: it is over.
Ref<ServedRequest> ServedStores::heard(uint64_t id) noexcept {
    const std::lock_guard hold(lock_);
    const auto found = requests_.find(id);
    if (found == requests_.end()) return {};
    found->second->seen_ = true;
    return found->second;
}

// The last word to the host about a request that was taken out of the table.
void ServedStores::part_with(ServedRequest &request, int32_t last_word) noexcept {
    ServedScheme &scheme = request.scheme();
    if (!request.cancelled_) {                                        // else that was the last word
        if (last_word == 0 || (scheme.has_table() && !request.seen_)) // it will not hear of it
            scheme.unreserve(1);
        else
            scheme.say_last(last_word, request);
    }
    one_less(scheme);
}

void ServedStores::one_less(ServedScheme &scheme) noexcept {
    bool end = false;
    {
        const std::lock_guard hold(lock_);
        end = --scheme.under_way_ == 0 && scheme.withdrawn_;
    }
    if (end) scheme.say_end();
}

bool ServedStores::drop(uint64_t id) noexcept {
    Ref<ServedRequest> request;
    {
        const std::lock_guard hold(lock_);
        const auto found = requests_.find(id);
        if (found == requests_.end() || found->second->answered()) return false;
        request = std::move(found->second);
        requests_.erase(found);
    }
    part_with(*request, MUSTER_REQUEST_CANCEL);
    return true;
}

Withdrawn ServedStores::cancel(uint64_t id, bool answers) noexcept {
    Ref<ServedRequest> request;
    bool heard, asks;
    {
        const std::lock_guard hold(lock_);
        const auto found = requests_.find(id);
        if (found == requests_.end() || found->second->answered()) return Withdrawn::over;
        request = found->second;
        heard = !request->scheme().has_table() || request->seen_;
        asks = heard && answers;
        if (asks) {
            request->cancelled_ = true;
            request->scheme().under_way_++; // until CANCEL was said: the table's end comes after it
        } else {
            requests_.erase(found);
        }
    }
    if (asks) request->scheme().say_last(MUSTER_REQUEST_CANCEL, *request);
    asks ? one_less(request->scheme()) : part_with(*request, MUSTER_REQUEST_CANCEL);
    return asks ? Withdrawn::asked : heard ? Withdrawn::in_doubt : Withdrawn::yes;
}

bool ServedStores::is_open(uint64_t id) noexcept {
    const std::lock_guard hold(lock_);
    const auto found = requests_.find(id);
    return found != requests_.end() && !found->second->answered();
}

void ServedStores::close_store(ServedRequest &open) noexcept {
    const Ref<ServedRequest> alive(&open);
    {
        const std::lock_guard hold(lock_);
        if (requests_.erase(open.id) == 0) return; // its scheme was taken back
    }
    part_with(open, MUSTER_REQUEST_CLOSE);
}

// ---- the end
// ---------------------------------------------------------------------------------------------------------

Result<void> ServedStores::withdraw(const std::string &scheme) {
    const Ref<ServedScheme> found = find(scheme);
    if (!found || found->queue() == nullptr)
        return Error::make(MUSTER_E_NOT_FOUND, "withdraw %s: the host serves no such store", scheme.c_str());
    withdraw(*found);
    return {};
}

void ServedStores::withdraw(ServedScheme &scheme) noexcept {
    const Ref<ServedScheme> alive(&scheme);
    {
        const std::lock_guard hold(lock_);
        if (scheme.withdrawn_) return;
        scheme.withdrawn_ = true;
        scheme.under_way_++; // this walk
        const auto found = schemes_.find(scheme.name());
        if (found != schemes_.end() && found->second.get() == &scheme) schemes_.erase(found);
    }
    const Error why = Error::make(MUSTER_E_CLOSED, "store %s: nobody serves it any more", scheme.name().c_str());
    for (;;) {
        Ref<ServedRequest> request;
        {
            const std::lock_guard hold(lock_);
            const auto found = std::find_if(requests_.begin(), requests_.end(),
                                            [&](const auto &one) { return &one.second->scheme() == &scheme; });
            if (found == requests_.end()) break;
            request = std::move(found->second);
            requests_.erase(found);
        }
        part_with(*request, request->answered() ? MUSTER_REQUEST_CLOSE : MUSTER_REQUEST_CANCEL);
        if (!request->answered()) request->end(why);
    }
    bool end = false;
    {
        const std::lock_guard hold(lock_);
        end = --scheme.under_way_ == 0;
    }
    if (end) scheme.say_end();
}

void ServedStores::table_gone(ServedScheme &scheme) noexcept {
    Ref<ServedScheme> gone; // released without the lock
    const std::lock_guard hold(lock_);
    const auto found = looped_.find(&scheme);
    if (found == looped_.end()) return;
    gone = std::move(found->second);
    looped_.erase(found);
}

void ServedStores::queue_released(Queue &queue) noexcept {
    for (;;) {
        Ref<ServedScheme> scheme;
        {
            const std::lock_guard hold(lock_);
            const auto found = std::find_if(schemes_.begin(), schemes_.end(),
                                            [&](const auto &one) { return one.second->queue() == &queue; });
            if (found == schemes_.end()) return;
            scheme = found->second;
        }
        withdraw(*scheme);
    }
}

void ServedStores::close() noexcept {
    for (;;) {
        Ref<ServedScheme> scheme;
        {
            const std::lock_guard hold(lock_);
            if (schemes_.empty()) return;
            scheme = schemes_.begin()->second;
        }
        withdraw(*scheme);
    }
}

void ServedStores::stop() noexcept {
    close();
    for (;;) {
        Ref<ServedScheme> scheme;
        {
            const std::lock_guard hold(lock_);
            if (looped_.empty()) return;
            scheme = std::move(looped_.begin()->second);
            looped_.erase(looped_.begin());
        }
        scheme->stop();
    }
}

} // namespace muster
