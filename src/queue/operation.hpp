// SPDX-License-Identifier: MIT
#pragma once
// Operations that the host begins: each ends once, with an entry in a queue or with the return of the waiting call.
#include "queue/queue.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>

namespace muster {

// The base of an operation. A derived class does the work, calls complete() when it is done, and ends it early when
// end_early() is called. Any thread, unless a member says otherwise.
class QueueOperation : public QueueUser {
  public:
    // What the completion, or the waiting call, reports.
    struct Outcome {
        Error why{};
        Ref<Object> object{};   // where something was opened,
        void *handle = nullptr; // and the handle of it
        uint64_t bytes = 0;
        template <class T>
        void give(Ref<T> opened) noexcept {
            handle = wrap(opened.get());
            object = std::move(opened);
        }
        template <class T>
        Ref<T> take() noexcept {
            if (!object) return {};
            object.detach();
            return Ref<T>::adopt(static_cast<T *>(handle)); // wrap() changes the type alone
        }
    };

    // Before the work begins: the outcome goes to this queue, under this tag. The result has the status MUSTER_AGAIN
    // when the queue has no free slot.
    Result<void> deliver_to(Queue &queue, uint64_t tag) noexcept;
    // After deliver_to(): the work could not begin, and no entry follows.
    void withdraw() noexcept;
    bool has_queue() const noexcept { return has_queue_; }                          // else a thread waits for it
    bool is_over() const noexcept { return over_.load(std::memory_order_acquire); } // pairs with complete()

  protected:
    // Why an operation is to end before its work is done.
    enum class Ending { timeout, cancelled, queue_closed, context_closed };
    virtual void end_early(Ending why) noexcept = 0;

    QueueOperation(Context &context, int32_t kind) noexcept : context_(context), kind_(kind) {}
    ~QueueOperation() override = default;
    // The first call counts: false if the operation was over, and then the outcome is untouched.
    bool complete(Outcome &&outcome) noexcept {
        return complete(std::move(outcome), [] {});
    }
    // The same; runs `body` before, with the lock of the operation held.
    template <class Body>
    bool complete(Outcome &&outcome, const Body &body) noexcept {
        std::unique_lock hold(lock_);
        if (is_over()) return false;
        body();
        const Ref<Object> alive(&owner());
        complete_held(std::move(outcome), hold);
        return true;
    }
    // The outcome of an operation without a queue. `interrupted` is called with each status with which the wait ends
    // before the operation is over, and has it end; see Context::wait().
    template <class Interrupted>
    Outcome wait(Deadline &deadline, const Interrupted &interrupted) {
        if (is_over()) return std::move(outcome_); // acquire: the outcome was written before
        const auto look = [this] { return Status{is_over() ? MUSTER_OK : MUSTER_AGAIN}; };
        for (Status status; (status = context_.wait(signal_, deadline, lock_, look)) != MUSTER_OK;) interrupted(status);
        return std::move(outcome_);
    }
    // The same for the thread that closes the queue, which may be the loop's: an operation that uses memory of the host
    // waits here for the thread that does its work.
    void block_until_over() noexcept;
    // Loop thread: from now on the deadline (INT64_MAX: none) and the close of the context end the operation.
    void keep_time(int64_t deadline_ns) noexcept;
    // Runs `body` with the lock of the operation held, unless it is over: then false.
    template <class Body>
    bool unless_over(const Body &body) noexcept {
        const std::lock_guard hold(lock_);
        if (is_over()) return false;
        body();
        return true;
    }
    void end_operations() noexcept override { end_early(Ending::queue_closed); }
    virtual void over_at_loop() noexcept {} // it is over, after keep_time(); loop thread
    std::mutex lock_;                       // guards what is named below, and what a derived class names

  private:
    void complete_held(Outcome &&outcome, std::unique_lock<std::mutex> &hold) noexcept; // unlocks
    bool cancel_operation(uint64_t tag) noexcept final;
    // The nodes at the loop, which keep the operation alive while they are due.
    struct AtLoop {
        QueueOperation &operation;
        bool try_retain() noexcept { return operation.owner().try_retain(); }
        void release() noexcept { operation.owner().release(); }
        void too_late() noexcept { operation.end_early(Ending::timeout); }
        void context_closes() noexcept { operation.end_early(Ending::context_closed); }
        void forget() noexcept;
        Timer<AtLoop, &AtLoop::too_late> limit{*this};
        Closing<AtLoop, &AtLoop::context_closes> closing{*this};
        PostedTask<AtLoop, &AtLoop::forget> forgetting{*this};
    };

    Context &context_;
    const int32_t kind_;
    bool has_queue_ = false; // these two are set by deliver_to()
    uint64_t tag_ = 0;
    AtLoop at_loop_{*this};
    Signal signal_;
    std::condition_variable ended_;
    std::atomic<bool> over_{false}; // changed under the lock
    // Under the lock.
    bool is_at_loop_ = false;
    Outcome outcome_;  // without a queue
    Ref<Queue> queue_; // a slot is reserved
};

} // namespace muster
