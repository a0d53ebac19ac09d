// SPDX-License-Identifier: MIT
#pragma once
// A bounded queue of messages for many producers and consumers.
#include "message/message.hpp"
#include "queue/queue.hpp"

#include <muster/message_queue.h>

#include <deque>
#include <mutex>

namespace muster {

// Any thread.
class MessageQueue final : public Object, private Source {
  public:
    struct Settings {
        uint32_t max_messages = 65536;
        uint64_t max_bytes = uint64_t{64} << 20;
        Ref<Queue> queue; // of the host, or none
        uint64_t tag = 0;
    };
    // Is notified once when a full queue has room again, without a lock held.
    class RoomWaiter : public Listed<RoomWaiter> {
      public:
        virtual void room_made() noexcept = 0;
        virtual Object &owner() noexcept = 0; // kept alive while it waits

      protected:
        ~RoomWaiter() = default;
    };

    static Result<Ref<MessageQueue>> make(Context &context, Settings settings);
    const Settings settings;
    Context &context() const noexcept { return *context_; }
    bool forked() const noexcept { return context_->forked(); }

    // OK: the queue has the caller's reference. AGAIN with a waiter: it is notified.
    Status push(Message &message, Deadline &deadline, RoomWaiter *waiter = nullptr) noexcept;
    Status pop(Deadline &deadline, Ref<Message> &out) noexcept;
    void stats(muster_message_queue_stats &out) noexcept;
    void cancel() noexcept;
    void close() noexcept;
    void host_release() noexcept;

  private:
    MessageQueue(Context &context, Settings what) : settings(std::move(what)), context_(&context) {}
    ~MessageQueue() override;
    Object &owner() noexcept override { return *this; }
    void enter() noexcept;
    void notify(List<RoomWaiter> &waiters) noexcept;
    void context_closes() noexcept { close(); }
    void leave() noexcept { context_->forget_closing(closing_node_); }

    const Ref<Context> context_;
    Signal filled_, room_;
    std::mutex lock_; // guards what follows
    std::deque<Ref<Message>> messages_;
    muster_message_queue_stats stats_{};
    List<RoomWaiter> waiters_;
    uint32_t cancels_ = 0;
    bool closed_ = false;
    bool wants_room_ = false; // HAS_ROOM is to be raised

    PostedTask<MessageQueue, &MessageQueue::enter> enter_{*this};
    PostedTask<MessageQueue, &MessageQueue::leave> leave_{*this};
    Closing<MessageQueue, &MessageQueue::context_closes> closing_node_{*this};
};

inline MessageQueue *unwrap(muster_message_queue *handle) noexcept {
    return reinterpret_cast<MessageQueue *>(handle);
}
inline muster_message_queue *wrap(MessageQueue *object) noexcept {
    return reinterpret_cast<muster_message_queue *>(object);
}

} // namespace muster
