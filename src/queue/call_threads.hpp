// SPDX-License-Identifier: MIT
#pragma once
// A few threads of the library for calls that may block, shared by all contexts of the process.
#include "base/fork.hpp"
#include "base/list.hpp"
#include "base/object.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace muster {

class CallTask : public Object, public Listed<CallTask> {
  public:
    virtual void run() noexcept = 0; // on one of the threads
};

// A thread is started when none is idle, and ends when it has been idle for a while. Never destroyed: threads may be
// abandoned at exit. Any thread.
class CallThreads {
  public:
    // False: there is no thread and none can be started, or no memory for the first call of a process.
    static bool add(CallTask &task) noexcept;
    // For a task on which calls that have a thread may wait: false also if it had to wait for one of these threads.
    static bool add_at_once(CallTask &task) noexcept;

  private:
    friend class CallSequence;

    static CallThreads &get(); // std::bad_alloc; those of a parent process are not here
    static bool try_add(CallTask &task, bool may_wait) noexcept;
    bool enqueue(CallTask &task, bool may_wait) noexcept;
    static void *body(void *self);
    void work() noexcept;

    const ForkMark mark_;
    std::mutex lock_; // guards the rest
    std::condition_variable arrived_;
    List<CallTask> waiting_;
    int count_ = 0, idle_ = 0, threads_ = 0; // count_: of waiting_
};

// Functions that run on these threads one after the other, in the order in which they were added. Any thread.
class CallSequence final : public CallTask {
  public:
    // The function is destroyed after its call. It throws nothing but std::bad_alloc, after which the next one follows.
    void add(std::function<void()> function);

  private:
    void run() noexcept override;

    std::mutex lock_; // guards the rest
    std::deque<std::function<void()>> functions_;
    bool runs_ = false;
};

} // namespace muster
