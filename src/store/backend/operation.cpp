// SPDX-License-Identifier: MIT
#include "store/backend/operation.hpp"

#include "context/host_call.hpp"
#include "store/backend/store.hpp"

#include <algorithm>
#include <utility>

namespace muster {

namespace {
// Where another process answers: a request that does not wait ends by itself within this time.
constexpr int64_t longest_look_ns = 30'000'000'000;
// A request that is cancelled waits so long for the store's answer, not beyond its deadline.
constexpr int64_t cancel_grace_ns = 2'000'000'000;
// How long before the deadline the store is asked to end a request, if only the store knows whether it was applied.
constexpr int64_t max_ahead_ns = 50'000'000;
constexpr int64_t ahead_fraction = 4; // of the timeout, the maximum
} // namespace

StoreOperation::StoreOperation(Store &store, StoreRequest what, int64_t timeout_ns) noexcept
    : StoreWaiter(std::move(what)), store_(&store), backend_(store.backend()), context_(store.context()),
      looks_once_(timeout_ns == 0), deadline_(looks_once_ && backend_.answers_later() ? longest_look_ns : timeout_ns),
      begun_ns_(now_ns()) {}

StoreOperation::StoreOperation(const Ref<StoreLease> &lease, int64_t timeout_ns)
    : StoreWaiter(StoreRequest::grant(lease->ttl_ns(), lease->flags())), lease_(lease), store_(&lease->store()),
      backend_(store_->backend()), context_(store_->context()), looks_once_(timeout_ns == 0),
      deadline_(looks_once_ && backend_.answers_later() ? longest_look_ns : timeout_ns), begun_ns_(now_ns()) {}

Ref<StoreOperation> StoreOperation::make(Store &store, StoreRequest what, int64_t timeout_ns) {
    void *const memory = store.backend().spare().take();
    return Ref<StoreOperation>::adopt(new (memory) StoreOperation(store, std::move(what), timeout_ns));
}

Ref<StoreOperation> StoreOperation::make(const Ref<StoreLease> &lease, int64_t timeout_ns) {
    SpareMemory &spare = lease->store().backend().spare();
    void *const memory = spare.take();
    try {
        return Ref<StoreOperation>::adopt(new (memory) StoreOperation(lease, timeout_ns));
    } catch (...) {
        spare.give(memory);
        throw;
    }
}

void StoreOperation::last_reference_gone() noexcept {
    const Ref<StoreBackend> backend(&backend_);
    this->~StoreOperation();
    backend->spare().give(this);
}

StoreOperation::~StoreOperation() {
    if (number_ != 0) backend_.delist(number_);
    if (guarded()) store_->guard()->delist(*this);
}

StoreAnswer StoreOperation::wait() {
    if (backend_.would_deadlock())
        return {Error::make(MUSTER_E_WOULD_DEADLOCK, "%s: this thread has to serve it", request.name(0).c_str()), {}};
    if (auto allowed = backend_.allows(request); !allowed) return {allowed.error(), {}};
    awaited_ = true;
    if (!deadline_.look_once()) enlist();
    if (!submit()) {
        if (deadline_.look_once()) {
            end(MUSTER_AGAIN);
        } else if (!backend_.ends_with_context() && !look_after_.post(context_)) {
            end(MUSTER_E_CLOSED, "the context is closed");
        }
    }
    for (;;) {
        const uint32_t seen = signal_.seen();
        int64_t limit_ns;
        bool ending;
        {
            const std::lock_guard hold(lock_);
            if (finished_) return std::move(answer);
            limit_ns = next_limit_ns();
            ending = ending_ != MUSTER_OK;
        }
        Deadline limit = Deadline::until(limit_ns);
        const Status status = sleep(seen, limit);
        if (status == MUSTER_OK) continue;
        if (status == MUSTER_TIMEOUT || ending)
            limit_reached();
        else
            end(status, HostCall::why_ended(status));
    }
}

int64_t StoreOperation::next_limit_ns() noexcept {
    if (ending_ != MUSTER_OK && !ends_at_deadline_) return give_up_at_ns_;
    if (deadline_.endless()) return INT64_MAX;
    if (ends_at_deadline_ || looks_once_ || !backend_.withdraws_ahead(request)) return deadline_.at();
    return deadline_.at() - std::min(deadline_.timeout_ns() / ahead_fraction, max_ahead_ns);
}

// It is time to ask the backend to end the request, or to end it without its answer.
void StoreOperation::limit_reached() noexcept {
    const Ref<StoreOperation> self(this);
    bool ending, answered;
    StoreAnswer last;
    {
        const std::lock_guard hold(lock_);
        if (finished_) return;
        ending = ending_ != MUSTER_OK;
        answered = ends_at_deadline_;
        if (answered) last.error = answer.error;
    }
    if (answered) return finish(std::move(last));
    if (ending) return give_up();
    end(MUSTER_TIMEOUT);
}

// A backend may sleep elsewhere than in the context; this is how HostCall wakes it.
Status StoreOperation::sleep(uint32_t seen, Deadline &deadline) noexcept {
    HostCall *const call = HostCall::here(context_);
    if (call == nullptr) return backend_.sleep(*this, signal_, seen, deadline);
    const auto wake = [](void *self) noexcept { static_cast<StoreOperation *>(self)->wake(); };
    if (const Status ended = call->sleep_begins(&signal_, wake, this); ended != MUSTER_OK) return ended;
    const Status status = backend_.sleep(*this, signal_, seen, deadline);
    const Status ended = call->sleep_ends();
    return ended != MUSTER_OK ? ended : status;
}

bool StoreOperation::begin(Queue &queue, uint64_t tag, uint64_t *out_request) {
    queue_ = Ref<Queue>(&queue);
    tag_ = tag;
    if (!deadline_.endless()) deadline_.at(); // time runs from here
    if (out_request != nullptr) number_ = backend_.enlist(*this);
    if (guarded()) store_->guard()->enlist(*this);
    enlisted_ = true;
    if (!queue.reserve(this)) return false;
    if (out_request != nullptr) *out_request = number_;
    if (submit()) return true;
    // A queue that was closed before the operation was registered has not ended it.
    if (!is_looked_after() || queue.closed()) end(MUSTER_E_CLOSED, "the context or the queue is closed");
    return true;
}

void StoreOperation::begin(StoreListener &listener, uint64_t tag) {
    if (!deadline_.endless()) deadline_.at();
    enlist();
    listener.listener_object().retain();
    listener_ = &listener;
    tag_ = tag;
    if (auto allowed = backend_.allows(request); !allowed) return finish({allowed.error(), {}});
    if (!submit() && !is_looked_after()) end(MUSTER_E_CLOSED, "the context is closed");
}

// By the loop, for its deadline and the end of the context. False: the engine has stopped.
bool StoreOperation::is_looked_after() noexcept {
    return (deadline_.endless() && backend_.ends_with_context()) || look_after_.post(context_);
}

// The guard knows the waiting requests when it ends; a later one sees here that it has ended.
bool StoreOperation::submit() noexcept {
    if (guarded() && store_->guard()->over()) {
        finish({store_->guard()->why(), {}});
        return true;
    }
    if (backend_.submit(*this)) return true;
    look_at_guard();
    return false;
}

void StoreOperation::enlist() {
    number_ = backend_.enlist(*this);
    if (guarded()) store_->guard()->enlist(*this);
}

bool StoreOperation::guarded() const noexcept {
    return store_->guard() != nullptr && !request.of_lease();
}

void StoreOperation::look_at_guard() noexcept {
    if (guarded() && store_->guard()->over()) end(MUSTER_E_STALE, "over");
}

// The loop ends it at its deadline and with the context; once it is to end, when the backend has not agreed in time.
void StoreOperation::look_after() noexcept {
    bool first = false;
    int64_t limit_ns;
    {
        const std::lock_guard hold(lock_);
        if (finished_) return;
        first = !std::exchange(looked_after_, true);
        limit_ns = next_limit_ns();
    }
    if (first) context_.on_closing(closing_);
    if (first && context_.closed()) context_closes(); // perhaps the list was notified before
    if (!awaited_ && limit_ns != INT64_MAX) context_.loop().start_timer(limit_, limit_ns);
}

void StoreOperation::tidy() noexcept {
    context_.forget_closing(closing_);
    context_.loop().stop_timer(limit_);
}

// True: it ends with that error, or the backend was asked to end it; then it may still prove to have been applied.
bool StoreOperation::end(Status status, const char *why) noexcept {
    const Ref<StoreOperation> self(this);
    bool in_time = true;
    {
        const std::lock_guard hold(lock_);
        if (finished_ || ending_ != MUSTER_OK) return false;
        ending_ = status;
        ending_why_ = why;
        const int64_t now = now_ns(), grace = backend_.grace_ns();
        give_up_at_ns_ = INT64_MAX;
        if (!deadline_.endless() && deadline_.at() <= INT64_MAX - grace) give_up_at_ns_ = deadline_.at() + grace;
        if (status != MUSTER_TIMEOUT) give_up_at_ns_ = std::min(give_up_at_ns_, now + cancel_grace_ns);
        in_time = now < give_up_at_ns_;
    }
    std::string missing;
    switch (backend_.withdraw(*this, missing)) {
    case Withdrawn::yes:
        withdrawn(missing.c_str());
        return true;
    case Withdrawn::in_doubt:
        ended_in_doubt();
        return true;
    case Withdrawn::asked: // for a while only
        if (!in_time)
            give_up();
        else if (awaited_)
            wake();
        else
            look_after_.post(context_);
        return true;
    default: { // or the backend has not received it yet: a later call may end it
        const std::lock_guard hold(lock_);
        ending_ = MUSTER_OK;
        return false;
    }
    }
}

void StoreOperation::wake() noexcept {
    context_.notify(signal_);
    backend_.woken();
}

Error StoreOperation::why_ended(const char *missing) noexcept {
    int64_t took_ns = now_ns() - begun_ns_;
    Status status;
    const char *why;
    {
        const std::lock_guard hold(lock_);
        status = ending_;
        why = ending_why_;
        if (status == MUSTER_TIMEOUT) took_ns = std::max(took_ns, deadline_.at() - begun_ns_); // that is when it ends
    }
    const double seconds = static_cast<double>(took_ns) * 1e-9;
    if (status == MUSTER_E_STALE) return store_->guard()->why();
    if (why == nullptr) why = request.waits() ? "absent" : "no answer";
    return Error::make(status, "%s: %s after %.3f s", missing, why, seconds);
}

// It was not applied. A request that was withdrawn before its deadline ends at the deadline.
void StoreOperation::withdrawn(const char *missing) noexcept {
    Error why = why_ended(missing);
    bool later = false;
    {
        const std::lock_guard hold(lock_);
        later = !finished_ && ending_ == MUSTER_TIMEOUT && now_ns() < deadline_.at();
        ends_at_deadline_ = later;
        if (later) answer.error = why;
    }
    if (!later) return finish({why, {}});
    if (awaited_)
        wake();
    else
        look_after_.post(context_);
}

void StoreOperation::give_up() noexcept {
    const Ref<StoreOperation> self(this);
    if (backend_.forget(*this)) ended_in_doubt();
}

// It is unknown whether the store has applied it.
void StoreOperation::ended_in_doubt() noexcept {
    const double seconds = static_cast<double>(now_ns() - begun_ns_) * 1e-9;
    std::string name;
    try {
        name = request.name(0);
    } catch (const std::bad_alloc &) { // then the text does without
    }
    Error why = why_ended(name.c_str());
    if (request.has_effect() && why.status == MUSTER_TIMEOUT)
        why = Error::make(MUSTER_E_PEER, "%s: %s has not answered within %.3f s; it may have been applied",
                          name.c_str(), backend_.shown(), seconds);
    else if (request.has_effect())
        why = Error::make(why.status == MUSTER_E_CLOSED ? MUSTER_E_CLOSED : MUSTER_E_PEER,
                          "%s; it may have been applied", Error(why).message);
    finish({why, {}});
}

// The entries of the guard are removed; if its conditions do not hold that is the answer.
void StoreOperation::look_behind_guard(StoreAnswer &answer) const noexcept {
    const size_t own = request.ops().size() - request.guards();
    if (request.guards() == 0 || !answer.result) return;
    auto &entries = answer.result->entries;
    size_t keep = entries.size();
    bool holds = true;
    for (; keep != 0 && entries[keep - 1].op >= own; keep--)
        holds = holds && (entries[keep - 1].flags & MUSTER_STORE_FAILED) == 0;
    if (!holds) {
        answer = {store_->guard()->broken(*answer.result, keep), {}};
        return;
    }
    entries.resize(keep);
}

// The result of an operation of a closed queue cannot be delivered: a value removed from the store would be lost.
void StoreOperation::end_operations() noexcept {
    {
        const std::lock_guard hold(lock_);
        enlisted_ = false; // the queue has forgotten it
    }
    end(MUSTER_E_CLOSED, "the queue was closed");
}

void StoreOperation::finish(StoreAnswer last) noexcept {
    const Ref<StoreOperation> self(this);
    if (!conclude(std::move(last))) return;
    const Ref<Queue> queue = std::move(queue_);
    queue->complete(entry(), delists_ ? this : nullptr);
    tidy_up();
}

// True: its entry, which is made of `answer`, has to be put into its queue.
bool StoreOperation::conclude(StoreAnswer &&last) noexcept {
    {
        const std::lock_guard hold(lock_);
        if (finished_) return false;
        finished_ = true;
        look_behind_guard(last);
        delists_ = std::exchange(enlisted_, false);
        if (lease_ && last.error.status == MUSTER_OK)
            lease_->granted(static_cast<uint64_t>(last.result->entries[0].number));
        answer = std::move(last); // only this thread reads it now, or the thread in wait()
    }
    if (listener_ == nullptr && queue_) return true;
    if (listener_ != nullptr) {
        const auto kept = Ref<Object>::adopt(&listener_->listener_object());
        listener_->answered(tag_, std::move(answer));
    } else {
        wake();
    }
    tidy_up();
    return false;
}

Entry StoreOperation::entry() noexcept {
    Entry entry;
    entry.completion.kind = lease_ ? MUSTER_DONE_LEASE : MUSTER_DONE_STORE;
    entry.completion.tag = tag_;
    entry.completion.status = answer.error.status;
    if (answer.error.status != MUSTER_OK) entry.error = answer.error;
    if (lease_ && answer.result) {
        entry.completion.object = wrap(lease_.get());
        entry.object = lease_;
    } else if (answer.result && !request.of_lease()) {
        entry.completion.object = wrap(answer.result.get());
        entry.object = std::move(answer.result);
    }
    return entry;
}

// Once it is finished. Nothing begins to look after it any more.
void StoreOperation::tidy_up() noexcept {
    if (!looked_after_) return;
    if (context_.on_loop())
        tidy();
    else
        tidy_.post(context_);
}

void StoreEndings::add(Ref<StoreOperation> &&operation, StoreAnswer &&last) noexcept {
    if (!operation->conclude(std::move(last))) return;
    if (count_ == most || (count_ != 0 && ended_[0]->queue_.get() != operation->queue_.get())) deliver();
    ended_[count_++] = operation.detach();
}

void StoreEndings::deliver() noexcept {
    if (count_ == 0) return;
    const Ref<Queue> queue = ended_[0]->queue_;
    queue->complete(*this, count_);
    while (count_ != 0) {
        const auto operation = Ref<StoreOperation>::adopt(ended_[--count_]);
        operation->tidy_up();
    }
}

QueueUser *StoreEndings::user(size_t n) noexcept {
    return ended_[n]->delists_ ? static_cast<QueueUser *>(ended_[n]) : nullptr;
}

Entry StoreEndings::entry(size_t n) noexcept {
    return ended_[n]->entry();
}

} // namespace muster
