// SPDX-License-Identifier: MIT
#include "queue/begun_call.hpp"

#include "base/boundary.hpp"

#include <optional>

namespace muster {

namespace {
thread_local BegunCall *running = nullptr;
}

BegunCall::BegunCall(What what, Queue &queue, uint64_t tag)
    : what_(std::move(what)),
      interrupt_(what_.interrupt ? std::make_shared<std::function<void()>>(std::move(what_.interrupt)) : nullptr),
      context_(&what_.context), queue_(&queue), tag_(tag) {}

Result<void> BegunCall::begin(What what, muster_queue *queue, uint64_t tag) {
    if (queue == nullptr) return Error::make(MUSTER_E_ARG, "no queue");
    Queue &self = *unwrap(queue);
    if (&self.context() != &what.context) return Error::make(MUSTER_E_ARG, "the queue is of another context");
    if (what.context.closed()) return Error::make(MUSTER_E_CLOSED, "the context is closed");
    const auto call = Ref<BegunCall>::adopt(new BegunCall(std::move(what), self, tag));
    if (!self.reserve(call.get())) {
        if (self.closed()) return Error::make(MUSTER_E_CLOSED, "the queue is closed");
        return Result<void>::positive(MUSTER_AGAIN);
    }
    if (CallSequence *const sequence = call->what_.sequence) {
        try {
            sequence->add([call] { call->run(); });
            return {};
        } catch (const std::bad_alloc &) { // as without a thread
        }
    } else if (CallThreads::add(*call)) {
        return {};
    }
    {
        const std::lock_guard hold(call->lock_);
        call->over_ = true;
    }
    self.unreserve(*call);
    return Error::make(MUSTER_E_NOMEM, "no thread for the call");
}

void BegunCall::run() noexcept {
    Outcome outcome;
    {
        std::optional<HostCall> here;
        here.emplace(*context_, nullptr);
        bool cancelled;
        {
            const std::lock_guard hold(lock_);
            call_ = &*here;
            cancelled = cancelled_;
        }
        running = this;
        if (cancelled) {
            outcome.why = Error::make(MUSTER_E_CANCELED, "cancelled before it began");
        } else {
            try {
                outcome = what_.body();
            } catch (const Failure &failure) {
                outcome.why = failure.error;
            } catch (const std::bad_alloc &) {
                outcome.why = Error::make(MUSTER_E_NOMEM, "out of memory");
            } catch (...) {
                outcome.why = Error::make(MUSTER_E_INTERNAL, "unexpected exception");
            }
        }
        running = nullptr;
        const std::lock_guard hold(lock_);
        call_ = nullptr;
        over_ = true;
    }
    { // their members are released before the completion, and without the lock
        Body body;
        std::shared_ptr<std::function<void()>> interrupt;
        const std::lock_guard hold(lock_);
        body.swap(what_.body);
        interrupt.swap(interrupt_);
    }
    Entry entry;
    entry.completion.kind = what_.kind;
    entry.completion.status = outcome.why.status;
    entry.completion.tag = tag_;
    entry.completion.bytes = outcome.bytes;
    entry.completion.object = outcome.handle;
    entry.object = std::move(outcome.object);
    entry.error = outcome.why;
    queue_->complete(std::move(entry), this);
}

void BegunCall::cancel() noexcept {
    std::shared_ptr<std::function<void()>> interrupt; // a copy that needs no memory
    {
        const std::lock_guard hold(lock_);
        if (over_) return;
        cancelled_ = true;
        if (call_ == nullptr) return;
        call_->cancel();
        interrupt = interrupt_;
    }
    if (interrupt) (*interrupt)();
}

void BegunCall::end_operations() noexcept {
    {
        const std::lock_guard hold(lock_);
        given_back_ = true;
    }
    cancel();
}

bool BegunCall::cancel_operation(uint64_t tag) noexcept {
    {
        const std::lock_guard hold(lock_);
        if (over_ || tag != tag_) return false;
    }
    cancel();
    return true;
}

bool BegunCall::write_result(const std::function<void()> &write) {
    BegunCall &self = *running;
    const std::lock_guard hold(self.lock_);
    if (!self.given_back_) write();
    return !self.given_back_;
}

} // namespace muster
