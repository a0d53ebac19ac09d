// SPDX-License-Identifier: MIT
#include "queue/begun_call.hpp"

#include "base/fork.hpp"
#include "base/thread.hpp"

#include <chrono>
#include <condition_variable>
#include <optional>

namespace muster {

// A thread is started when none is idle, and ends when it has been idle for a while. Never destroyed: threads may be
// abandoned at exit. Any thread.
class CallThreads {
  public:
    // Those of a parent process are not here.
    static CallThreads &get() {
        static std::mutex lock;
        static CallThreads *threads = nullptr;
        const std::lock_guard hold(lock);
        if (threads == nullptr || threads->mark_.forked()) threads = new CallThreads;
        return *threads;
    }

    // False: there is no thread, and none can be started.
    bool add(BegunCall &call) noexcept {
        const std::lock_guard hold(lock_);
        call.retain();
        waiting_.push_back(call);
        count_++;
        if (idle_ >= count_ || threads_ == most_threads) {
            come_.notify_one();
            return true;
        }
        if (start_thread(&CallThreads::body, this) == 0) {
            threads_++;
            return true;
        }
        if (threads_ != 0) return true; // one of the others comes to it
        waiting_.remove(call);
        count_--;
        call.release();
        return false;
    }

  private:
    static constexpr int most_threads = 16;
    static constexpr std::chrono::seconds idle_time{2};

    static void *body(void *self) {
        pthread_setname_np(pthread_self(), "muster-call");
        static_cast<CallThreads *>(self)->work();
        return nullptr;
    }

    void work() noexcept {
        std::unique_lock hold(lock_);
        for (;;) {
            while (BegunCall *const next = waiting_.pop_front()) {
                count_--;
                hold.unlock();
                Ref<BegunCall>::adopt(next)->run();
                hold.lock();
            }
            idle_++;
            const bool called = come_.wait_for(hold, idle_time, [this] { return !waiting_.empty(); });
            idle_--;
            if (!called) break;
        }
        threads_--;
    }

    const ForkMark mark_;
    std::mutex lock_; // guards the rest
    std::condition_variable come_;
    List<BegunCall> waiting_;
    int count_ = 0, idle_ = 0, threads_ = 0; // count_: of waiting_
};

namespace {
thread_local BegunCall *running = nullptr;
}

BegunCall::BegunCall(What what, Queue &queue, uint64_t tag)
    : what_(std::move(what)), context_(&what_.context), queue_(&queue), tag_(tag) {}

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
    if (CallThreads::get().add(*call)) return {};
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
    { // what they hold goes before the host hears of the end, and without the lock
        Body body;
        std::function<void()> interrupt;
        const std::lock_guard hold(lock_);
        body.swap(what_.body);
        interrupt.swap(what_.interrupt);
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
    std::function<void()> interrupt;
    try {
        const std::lock_guard hold(lock_);
        if (over_) return;
        cancelled_ = true;
        if (call_ == nullptr) return;
        call_->cancel();
        interrupt = what_.interrupt;
    } catch (const std::bad_alloc &) { // its deadline ends it
    }
    if (interrupt) interrupt();
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
