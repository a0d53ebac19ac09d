// SPDX-License-Identifier: MIT
#pragma once
// Calls that block, begun with a queue and a tag: the `_begin` form of calls without a non-blocking implementation.
//
// They run unchanged on a few threads of the library, which all contexts of the process share, each inside a HostCall,
// by which muster_queue_cancel_operation() and the close of the queue end them. Operations that complete without a
// thread of their own (reads, dials, requests to stores) do not use this.
#include "context/host_call.hpp"
#include "queue/call_threads.hpp"
#include "queue/queue.hpp"

#include <functional>
#include <memory>

namespace muster {

// Any thread.
class BegunCall final : public CallTask, private QueueUser {
  public:
    struct Outcome {
        Error why;
        Ref<Object> object;     // and the handle of it, where something was opened
        void *handle = nullptr; //
        uint64_t bytes = 0;
    };
    using Body = std::function<Outcome()>;
    // Checks queue and timeout. `kind`: of the completion. `interrupt`: ends a wait of the body that is none of
    // Context::sleep(); any thread, also before and after the body.
    struct What {
        Context &context;
        int32_t kind;
        Body body;
        std::function<void()> interrupt = {};
        CallSequence *sequence = nullptr; // performs it after those that were added before; NULL: at once
    };
    static Result<void> begin(What what, muster_queue *queue, uint64_t tag);
    // For bodies that write into memory of the host: held while they write, and while the queue's close returns the
    // memory. False: the memory belongs to the host again.
    static bool write_result(const std::function<void()> &write);

  private:
    BegunCall(What what, Queue &queue, uint64_t tag);
    void run() noexcept override;
    void end_operations() noexcept override;
    bool cancel_operation(uint64_t tag) noexcept override;
    void cancel() noexcept;
    Object &owner() noexcept override { return *this; }

    What what_;
    std::shared_ptr<std::function<void()>> interrupt_; // of what_
    const Ref<Context> context_;
    const Ref<Queue> queue_; // a slot is reserved
    const uint64_t tag_;
    std::mutex lock_; // guards the rest
    HostCall *call_ = nullptr;
    bool cancelled_ = false, given_back_ = false, over_ = false;
};

} // namespace muster
