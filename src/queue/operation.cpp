// SPDX-License-Identifier: MIT
#include "queue/operation.hpp"

namespace muster {

Result<void> QueueOperation::deliver_to(Queue &queue, uint64_t tag) noexcept {
    {
        const std::lock_guard hold(lock_);
        queue_ = Ref<Queue>(&queue);
        tag_ = tag;
        has_queue_ = true;
    }
    if (queue.reserve(this)) return {};
    if (queue.closed()) return Error::make(MUSTER_E_CLOSED, "the queue is closed");
    return Result<void>::positive(MUSTER_AGAIN);
}

void QueueOperation::withdraw() noexcept {
    Ref<Queue> queue;
    {
        const std::lock_guard hold(lock_);
        if (over_.exchange(true, std::memory_order_acq_rel)) return; // the queue has just ended it
        queue = std::move(queue_);
    }
    ended_.notify_all();
    queue->unreserve(*this);
}

void QueueOperation::complete_held(Outcome &&outcome, std::unique_lock<std::mutex> &hold) noexcept {
    const bool is_at_loop = is_at_loop_;
    const Ref<Queue> queue = std::move(queue_);
    if (!queue) outcome_ = std::move(outcome);
    over_.store(true, std::memory_order_release);
    hold.unlock();
    // Before the entry: a queue that closes may wait here, and Queue::complete() for that queue.
    ended_.notify_all();
    if (!queue) {
        context_.notify(signal_);
    } else {
        Entry entry;
        entry.completion.kind = kind_;
        entry.completion.tag = tag_;
        // NOLINTNEXTLINE(bugprone-use-after-move): it was moved only if there is no queue
        entry.completion.status = outcome.why.status;
        entry.completion.bytes = outcome.bytes;
        entry.completion.object = outcome.handle;
        entry.object = std::move(outcome.object);
        entry.error = outcome.why;
        queue->complete(std::move(entry), this);
    }
    if (!is_at_loop) return;
    if (context_.on_loop())
        at_loop_.forget();
    else
        at_loop_.forgetting.post(context_);
}

void QueueOperation::block_until_over() noexcept {
    std::unique_lock hold(lock_);
    ended_.wait(hold, [this] { return is_over(); });
}

bool QueueOperation::cancel_operation(uint64_t tag) noexcept {
    if (tag != tag_ || is_over()) return false;
    end_early(Ending::cancelled);
    return true;
}

void QueueOperation::keep_time(int64_t deadline_ns) noexcept {
    if (!unless_over([this] { is_at_loop_ = true; })) return;
    context_.on_closing(at_loop_.closing);
    if (context_.closed()) return at_loop_.context_closes(); // the nodes of its list may have been called before
    if (deadline_ns != INT64_MAX) context_.loop().start_timer(at_loop_.limit, deadline_ns);
}

void QueueOperation::AtLoop::forget() noexcept {
    operation.context_.forget_closing(closing);
    operation.context_.loop().stop_timer(limit);
    operation.over_at_loop();
}

} // namespace muster
