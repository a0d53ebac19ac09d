// SPDX-License-Identifier: MIT
#pragma once
// What a context is made of. Private to the context room, but for the log target, which the queue room serves.
#include "base/fd.hpp"
#include "context/context.hpp"

#include <algorithm>
#include <mutex>
#include <pthread.h>
#include <uv.h>

namespace muster {

// Where log records go. The queue is not owned (it owns the context); it leaves before it dies.
struct LogTarget {
    std::atomic<int32_t> level{MUSTER_LOG_OFF}; // relaxed: a record more or less around a change is nobody's loss
    std::mutex lock;
    Queue *queue = nullptr; // under lock
    uint64_t tag = 0;       // under lock
};

// The loop with its mailbox, and its end. Members say which thread they belong to.
struct Context::Engine {
    explicit Engine(Context &context) noexcept : context(context) {}
    ~Engine();

    Context &context;

    // --- any thread ---
    Result<void> open();
    Result<void> start();         // the thread
    Result<void> open_external(); // or none
    bool post(Posted *work) noexcept;
    void wake() noexcept;
    bool on_loop() const noexcept { return pthread_equal(driver.load(std::memory_order_relaxed), pthread_self()); }
    ContextPart &part(const void *key, std::unique_ptr<ContextPart> (*make)(Context &));
    void ask_close(int64_t at) noexcept;

    // --- external contexts: any thread; one at a time holds the baton and drives ---
    Status progress(Deadline &deadline) noexcept;
    template <class Done>
    Status await(const Done &done, int fd, Deadline &deadline) noexcept;
    Status await_change(const std::atomic<uint32_t> &sequence, uint32_t seen, Deadline &deadline) noexcept;
    Status await_fd(int fd, Deadline &deadline) noexcept;
    void notify() noexcept;
    void finish_released() noexcept; // the last reference is gone: stop, without waiting; deletes the context
    bool take_baton() noexcept;
    void pass_baton() noexcept;
    void serve() noexcept; // what is due, baton held
    void set_timer() noexcept;
    int wait_word(uint32_t seen, Deadline &deadline) noexcept;
    bool begin_drive() noexcept;
    void end_drive() noexcept;
    int engine_fd() const noexcept { return uv_backend_fd(&loop); }

    // --- loop thread ---
    void run() noexcept; // the thread's body
    bool watch_first(FirstWatch *watch, int epoll) noexcept;
    bool wait_first() noexcept; // false: libuv has something to do
    void drain() noexcept;      // runs what is in the mailbox
    void turned() noexcept;     // after each turn of the loop
    void teardown() noexcept;   // begin_teardown, then waits for the last handle
    void begin_teardown() noexcept;
    void end_teardown() noexcept;
    void fetch_tasks(Posted *leave_behind) noexcept; // from the mailbox to todo, which is empty
    void run_task() noexcept;                        // the first of todo
    bool has_tasks() const noexcept { return todo != nullptr || mailbox.load(std::memory_order_relaxed) != nullptr; }
    template <class Visit>
    void each_part(const Visit &visit) noexcept; // latest first: a part may rest on earlier ones
    void close_handles() noexcept;

    uv_loop_t loop{};
    uv_poll_t wake_watch{};
    uv_prepare_t before_wait{};
    uv_check_t after_wait{};
    uv_timer_t close_timer{};
    bool has_loop = false, started = false;
    bool close_begun = false, ending = false;
    FirstWatch *first = nullptr; // these two are the loop thread's
    int first_epoll = -1;
    int64_t turn_now = 0; // CLOCK_MONOTONIC of this turn, 0 until someone asks

    // Tasks, latest first; `closed_mark` when nothing is taken any more.
    std::atomic<Posted *> mailbox{nullptr};
    Posted *todo = nullptr; // fetched, oldest first; loop thread
    static Posted *closed_mark() noexcept { return reinterpret_cast<Posted *>(uintptr_t{1}); }

    Fd end_fd;                        // written once, at the very end; see Context::end_fd()
    Fd wake_fd;                       // lives as long as the context: a late poster may still write to it
    std::atomic<pthread_t> driver{};  // relaxed: a thread asks only whether it is itself, and wrote that itself
    std::atomic<bool> closing{false}; // release by the closer, acquire by turned(): publishes close_at
    std::atomic<int64_t> close_at{INT64_MAX};
    std::atomic<bool> orphaned{false}; // release by the last owner, acquire by turned()
    std::atomic<bool> forced{false};   // relaxed: published by `stopped`
    std::atomic<bool> stopped{false};  // release by end_teardown(), acquire by closers: publishes forced
    Signal stop_signal;                // notified after `stopped` is set

    // Who is done with the context: the one that comes second deletes it. acq_rel on both sides.
    enum : uint32_t { engine_gone = 1, references_gone = 2 };
    std::atomic<uint32_t> gone{0};

    std::recursive_mutex parts_lock; // recursive: making a part may ask for another one
    ContextPart *latest_part = nullptr;

    // External contexts: the host polls the loop's descriptor; a timer in the loop makes it readable in time.
    Fd timer, baton_fd;
    uv_poll_t timer_watch{};
    std::mutex baton_lock;
    bool driving = false;                  // under baton_lock
    int drivers_cancel_state = 0;          // what pthread_setcancelstate() is to restore; the driver's
    std::atomic<uint32_t> word{0};         // futex of threads that wait for the baton or a notify; see await()
    std::atomic<uint32_t> word_waiters{0}; // those that wait on it
    std::atomic<uint32_t> fd_waiters{0};   // those that wait in poll() for baton_fd
    std::atomic<bool> polling{false};      // the driver sleeps, or is about to
    int64_t timer_due = -1; // what the timer is set to, in the loop's milliseconds; -1: off; the driver's
    uint32_t drives = 0;    // rounds since the loop was served; the driver's

    LogTarget log;
};

// Parts are only ever added, in front: what lies behind one never changes.
template <class Visit>
void Context::Engine::each_part(const Visit &visit) noexcept {
    ContextPart *part;
    {
        const std::lock_guard hold(parts_lock);
        part = latest_part;
    }
    for (; part != nullptr; part = part->earlier) visit(*part);
}

} // namespace muster
