// SPDX-License-Identifier: MIT
#include "store/operation.hpp"

#include "store/store.hpp"

namespace muster {

namespace {
// Where somebody else answers: to look once ends by itself.
constexpr int64_t longest_look_ns = 30'000'000'000;
} // namespace

StoreOperation::StoreOperation(Store &store, StoreRequest what, int64_t timeout_ns) noexcept
    : StoreWaiter(std::move(what)), store_(&store), backend_(store.backend()), context_(store.context()),
      hub_(Hub::of(context_)), looks_once_(timeout_ns == 0),
      deadline_(looks_once_ && backend_.answers_later() ? longest_look_ns : timeout_ns), begun_ns_(now_ns()) {}

StoreOperation::StoreOperation(Ref<StoreLease> lease, int64_t timeout_ns)
    : StoreWaiter(StoreRequest::grant(lease->ttl_ns(), lease->flags())), lease_(lease), store_(&lease->store()),
      backend_(store_->backend()), context_(store_->context()), hub_(Hub::of(context_)), looks_once_(timeout_ns == 0),
      deadline_(looks_once_ && backend_.answers_later() ? longest_look_ns : timeout_ns), begun_ns_(now_ns()) {}

StoreOperation::~StoreOperation() {
    if (number_ != 0) backend_.delist(number_);
}

StoreAnswer StoreOperation::wait() {
    if (backend_.would_deadlock())
        return {Error::make(MUSTER_E_WOULD_DEADLOCK, "%s: this thread has to serve it", request.name(0).c_str()), {}};
    awaited_ = true;
    if (!deadline_.look_once()) number_ = backend_.enlist(*this);
    if (!submit()) {
        if (deadline_.look_once()) {
            end(MUSTER_AGAIN);
        } else if (!look_after_.post(context_)) {
            end(MUSTER_E_CLOSED, "the context is closed");
        }
    }
    for (;;) {
        const uint32_t seen = signal_.seen();
        {
            const std::lock_guard hold(lock_);
            if (finished_) return std::move(answer_);
        }
        const Status status = context_.sleep(signal_, seen, deadline_);
        if (status == MUSTER_TIMEOUT) end(MUSTER_TIMEOUT);
        if (status < 0) end(status, "cannot wait here");
    }
}

void StoreOperation::begin(Queue &queue, uint64_t tag, uint64_t *out_request) {
    number_ = backend_.enlist(*this);
    if (out_request != nullptr) *out_request = number_;
    {
        const std::lock_guard hold(lock_);
        queue_ = Ref<Queue>(&queue);
        tag_ = tag;
    }
    if (!deadline_.endless()) deadline_.at(); // time runs from here
    if (submit()) return;
    if (!look_after_.post(context_) || !queue.enlist(*this)) {
        end(MUSTER_E_CLOSED, "the context or the queue is closed");
        return;
    }
    {
        const std::lock_guard hold(lock_);
        if (!finished_) {
            enlisted_ = true;
            return;
        }
    }
    queue.delist(*this); // it was over before it was in the list
}

void StoreOperation::begin(StoreListener &listener, uint64_t tag) {
    number_ = backend_.enlist(*this);
    {
        const std::lock_guard hold(lock_);
        listener.listener_object().retain();
        listener_ = &listener;
        tag_ = tag;
    }
    if (!deadline_.endless()) deadline_.at();
    if (!submit() && !look_after_.post(context_)) end(MUSTER_E_CLOSED, "the context is closed");
}

// What waits is found by its number when the guard ends; what comes later sees here that it has ended.
bool StoreOperation::submit() noexcept {
    if (guarded() && store_->guard()->over()) {
        finish({store_->guard()->why(), {}});
        return true;
    }
    if (backend_.submit(*this)) return true;
    look_at_guard();
    return false;
}

bool StoreOperation::guarded() const noexcept {
    return store_->guard() != nullptr && !request.of_lease();
}

bool StoreOperation::guarded_by(const StoreGuard &guard) const noexcept {
    return guarded() && store_->guard() == &guard;
}

void StoreOperation::look_at_guard() noexcept {
    if (guarded() && store_->guard()->over()) end(MUSTER_E_STALE, "over");
}

// It waits: for its deadline, and for the end of the context, too.
void StoreOperation::look_after() noexcept {
    {
        const std::lock_guard hold(lock_);
        if (finished_) return;
        looked_after_ = true;
    }
    hub_.on_closing(closing_);
    if (context_.closed()) return context_closes(); // perhaps those in the list were told before
    if (!awaited_ && !deadline_.endless()) hub_.start_timer(limit_, deadline_.at());
}

void StoreOperation::tidy() noexcept {
    hub_.forget_closing(closing_);
    hub_.stop_timer(limit_);
}

bool StoreOperation::end(Status status, const char *why) noexcept {
    const Ref<StoreOperation> self(this);
    try {
        std::string missing;
        if (!backend_.withdraw(*this, missing)) return false;
        if (status == MUSTER_E_STALE) {
            finish({store_->guard()->why(), {}});
            return true;
        }
        const double seconds = static_cast<double>(now_ns() - begun_ns_) * 1e-9;
        if (why == nullptr) why = request.waits() ? "not there" : "no answer";
        const bool doubt = request.changes() && backend_.may_do_what_has_ended();
        finish({Error::make(status, "%s: %s after %.3f s%s", missing.c_str(), why, seconds,
                            doubt ? "; it may have been done" : ""),
                {}});
    } catch (const std::bad_alloc &) {
        finish({Error::from_status(status), {}});
    }
    return true;
}

// What the guard has added is not shown; where it does not hold that is the answer.
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

// A closed queue tells nobody: what would be taken out of the store would be lost.
void StoreOperation::end_operations() noexcept {
    {
        const std::lock_guard hold(lock_);
        enlisted_ = false; // the queue has forgotten it
    }
    end(MUSTER_E_CLOSED, "the queue was closed");
}

void StoreOperation::finish(StoreAnswer last) noexcept {
    const Ref<StoreOperation> self(this);
    Ref<Queue> queue;
    bool tidy_up = false, delist = false;
    {
        const std::lock_guard hold(lock_);
        if (finished_) return;
        finished_ = true;
        look_behind_guard(last);
        tidy_up = looked_after_;
        delist = enlisted_;
        queue = std::move(queue_);
        answer_ = std::move(last);
        if (lease_ && answer_.error.status == MUSTER_OK)
            lease_->granted(static_cast<uint64_t>(answer_.result->entries[0].number));
    }
    if (delist) queue->delist(*this);
    if (listener_ != nullptr) {
        const auto kept = Ref<Object>::adopt(&listener_->listener_object());
        listener_->answered(tag_, std::move(answer_)); // nobody else reads it
    } else if (!queue) {
        context_.notify(signal_);
    } else {
        Entry entry;
        entry.completion.kind = lease_ ? MUSTER_DONE_LEASE : MUSTER_DONE_STORE;
        entry.completion.tag = tag_;
        entry.completion.status = answer_.error.status; // nobody else reads it
        entry.error = answer_.error;
        if (lease_ && answer_.result) {
            entry.completion.object = wrap(lease_.get());
            entry.object = lease_;
        } else if (answer_.result) {
            entry.completion.object = wrap(answer_.result.get());
            entry.object = std::move(answer_.result);
        }
        queue->complete(std::move(entry));
    }
    if (!tidy_up) return;
    if (context_.on_loop())
        tidy();
    else
        tidy_.post(context_);
}

} // namespace muster
