// SPDX-License-Identifier: MIT
#include "message_queue/message_queue.hpp"

#include "context/host_call.hpp"

namespace muster {

MessageQueue::~MessageQueue() {
    if (settings.queue && !forked()) settings.queue->detach(*this);
}

Result<Ref<MessageQueue>> MessageQueue::make(Context &context, Settings settings) {
    auto made = Ref<MessageQueue>::adopt(new MessageQueue(context, std::move(settings)));
    if (made->settings.queue) made->settings.queue->attach(*made, made->settings.tag);
    if (made->enter_.post(context)) return made;
    return Error::make(MUSTER_E_CLOSED, "the context is closed");
}

// Loop thread: from now on the close of the context closes the queue.
void MessageQueue::enter() noexcept {
    {
        const std::lock_guard hold(lock_);
        if (closed_) return;
    }
    context_->on_closing(closing_node_);
    if (context_->closed()) close(); // the list may have been notified before
}

Status MessageQueue::push(Message &message, Deadline &deadline, RoomWaiter *waiter) noexcept {
    const uint64_t bytes = message.payload_bytes();
    bool first = true, was_empty = false, was_full = false;
    uint32_t cancels = 0;
    const Status status = context_->wait(room_, deadline, lock_, [&]() -> Status {
        if (std::exchange(first, false)) cancels = cancels_;
        if (closed_) return MUSTER_E_CLOSED;
        if (cancels != cancels_) return MUSTER_E_CANCELED;
        was_empty = messages_.empty();
        if (!was_empty && (messages_.size() >= settings.max_messages || stats_.bytes + bytes > settings.max_bytes)) {
            if (!std::exchange(was_full, true)) stats_.full++;
            wants_room_ = true;
            if (waiter != nullptr && !List<RoomWaiter>::holds(*waiter)) {
                waiter->owner().retain();
                waiters_.push_back(*waiter);
            }
            return MUSTER_AGAIN;
        }
        try {
            messages_.push_back(Ref<Message>::adopt(&message));
        } catch (const std::bad_alloc &) {
            return MUSTER_E_NOMEM;
        }
        stats_.bytes += bytes;
        stats_.pushed++;
        return MUSTER_OK;
    });
    if (status != MUSTER_OK) return status;
    context_->notify(filled_);
    if (was_empty && settings.queue) settings.queue->raise(*this, MUSTER_MESSAGE_QUEUE_FILLED);
    return MUSTER_OK;
}

Status MessageQueue::pop(Deadline &deadline, Ref<Message> &out) noexcept {
    bool first = true, wanted = false;
    uint32_t cancels = 0;
    List<RoomWaiter> waiters;
    const Status status = context_->wait(filled_, deadline, lock_, [&]() -> Status {
        if (std::exchange(first, false)) cancels = cancels_;
        if (messages_.empty()) {
            if (closed_) return MUSTER_E_CLOSED;
            return cancels != cancels_ ? MUSTER_E_CANCELED : MUSTER_AGAIN;
        }
        out = std::move(messages_.front());
        messages_.pop_front();
        stats_.bytes -= out->payload_bytes();
        stats_.popped++;
        wanted = std::exchange(wants_room_, false);
        if (wanted) waiters.swap(waiters_);
        return MUSTER_OK;
    });
    if (!wanted) return status;
    context_->notify(room_);
    if (settings.queue) settings.queue->raise(*this, MUSTER_MESSAGE_QUEUE_HAS_ROOM);
    notify(waiters);
    return status;
}

void MessageQueue::notify(List<RoomWaiter> &waiters) noexcept {
    for (;;) {
        RoomWaiter *waiter = nullptr;
        {
            const std::lock_guard hold(lock_); // it may be added again meanwhile
            waiter = waiters.pop_front();
        }
        if (waiter == nullptr) return;
        const Ref<Object> alive = Ref<Object>::adopt(&waiter->owner());
        waiter->room_made();
    }
}

void MessageQueue::stats(muster_message_queue_stats &out) noexcept {
    const std::lock_guard hold(lock_);
    out = stats_;
    out.messages = messages_.size();
}

void MessageQueue::cancel() noexcept {
    {
        const std::lock_guard hold(lock_);
        cancels_++;
    }
    context_->notify(filled_);
    context_->notify(room_);
}

void MessageQueue::close() noexcept {
    const Ref<MessageQueue> self(this);
    List<RoomWaiter> waiters;
    {
        const std::lock_guard hold(lock_);
        if (std::exchange(closed_, true)) return;
        waiters.swap(waiters_);
    }
    context_->notify(filled_);
    context_->notify(room_);
    if (settings.queue) settings.queue->raise(*this, MUSTER_MESSAGE_QUEUE_FILLED | MUSTER_MESSAGE_QUEUE_HAS_ROOM);
    notify(waiters);
    leave_.post(*context_);
}

void MessageQueue::host_release() noexcept {
    if (!forked()) {
        context_->host_calls().end_all_on(*this);
        close();
    }
    release();
}

} // namespace muster
