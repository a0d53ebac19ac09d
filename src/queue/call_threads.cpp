// SPDX-License-Identifier: MIT
#include "queue/call_threads.hpp"

#include "base/thread.hpp"

#include <chrono>
#include <new>

namespace muster {

namespace {
constexpr int max_threads = 16;
constexpr std::chrono::seconds idle_time{2};
} // namespace

CallThreads &CallThreads::get() {
    static std::mutex lock;
    static CallThreads *threads = nullptr;
    const std::lock_guard hold(lock);
    if (threads == nullptr || threads->mark_.forked()) threads = new CallThreads;
    return *threads;
}

bool CallThreads::try_add(CallTask &task, bool may_wait) noexcept {
    try {
        return get().enqueue(task, may_wait);
    } catch (const std::bad_alloc &) {
        return false;
    }
}

bool CallThreads::add(CallTask &task) noexcept {
    return try_add(task, true);
}

bool CallThreads::add_at_once(CallTask &task) noexcept {
    return try_add(task, false);
}

bool CallThreads::enqueue(CallTask &task, bool may_wait) noexcept {
    const std::lock_guard hold(lock_);
    if (!may_wait && idle_ <= count_ && threads_ == max_threads) return false;
    task.retain();
    waiting_.push_back(task);
    count_++;
    if (idle_ >= count_ || threads_ == max_threads) {
        arrived_.notify_one();
        return true;
    }
    if (start_thread(&CallThreads::body, this) == 0) {
        threads_++;
        return true;
    }
    if (threads_ != 0 && may_wait) return true; // another thread will take it
    waiting_.remove(task);
    count_--;
    task.release();
    return false;
}

void *CallThreads::body(void *self) {
    pthread_setname_np(pthread_self(), "muster-call");
    static_cast<CallThreads *>(self)->work();
    return nullptr;
}

void CallThreads::work() noexcept {
    std::unique_lock hold(lock_);
    for (;;) {
        while (CallTask *const next = waiting_.pop_front()) {
            count_--;
            hold.unlock();
            Ref<CallTask>::adopt(next)->run();
            hold.lock();
        }
        idle_++;
        const bool called = arrived_.wait_for(hold, idle_time, [this] { return !waiting_.empty(); });
        idle_--;
        if (!called) break;
    }
    threads_--;
}

void CallSequence::add(std::function<void()> function) {
    CallThreads &threads = CallThreads::get(); // throws before the function is in the list
    {
        const std::lock_guard hold(lock_);
        functions_.push_back(std::move(function));
        if (std::exchange(runs_, true)) return;
    }
    if (!threads.enqueue(*this, true)) run(); // without a thread it blocks the caller
}

void CallSequence::run() noexcept {
    for (;;) {
        std::function<void()> next;
        {
            const std::lock_guard hold(lock_);
            if (functions_.empty()) {
                runs_ = false;
                return;
            }
            next = std::move(functions_.front());
            functions_.pop_front();
        }
        try {
            next();
        } catch (const std::bad_alloc &) { // there is no caller to notify
        }
    }
}

} // namespace muster
