// SPDX-License-Identifier: MIT
#pragma once
// Calls that block, begun with a queue and a tag: the `_begin` form of those that have no other way to wait.
//
// They run, as they are, on a few threads of the library that all contexts of the process share out among them, each
// inside a HostCall, by which muster_queue_cancel_operation() and the close of the queue end them. What completes
// without a thread of its own (reads, dials, requests to stores) does not come here.
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
    };
    static Result<void> begin(What what, muster_queue *queue, uint64_t tag);
    // For bodies that write into memory of the host's: under the lock under which the queue's close gives it back.
    // False: it is the host's again.
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
