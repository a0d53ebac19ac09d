// SPDX-License-Identifier: MIT
#pragma once
// The implementation of a context. Private to the context module, except the log target, which the queue module serves.
#include "base/fd.hpp"
#include "context/context.hpp"

#include <algorithm>
#include <mutex>

namespace muster {

// The destination of log records. The queue is not owned (it owns the context); it removes itself before it is freed.
struct LogTarget {
    std::atomic<int32_t> level{MUSTER_LOG_OFF}; // relaxed: a record more or less around a change does not matter
    std::mutex lock;
    Queue *queue = nullptr; // under lock
    uint64_t tag = 0;       // under lock
};

// Runs the loop of the context, on a thread of its own or on those of the host, until its end. Each member names its
// thread.
struct Context::Engine {
    explicit Engine(Context &context) noexcept : context(context), loop(context.loop_) {}
    ~Engine();

    Context &context;
    Loop &loop;

    // --- any thread ---
    Result<void> open();
    Result<void> start();         // the thread
    Result<void> open_external(); // or none
    ContextPart &part(const void *key, std::unique_ptr<ContextPart> (*make)(Context &));
    void ask_close(int64_t at) noexcept;

    // --- external contexts: any thread; one at a time holds the baton and drives ---
    Status progress(Deadline &deadline) noexcept;
    template <class Done>
    Status await(const Done &done, int fd, Deadline &deadline) noexcept;
    Status await_change(const std::atomic<uint32_t> &sequence, uint32_t seen, Deadline &deadline) noexcept;
    Status await_fd(int fd, Deadline &deadline) noexcept;
    void notify() noexcept;
    void finish_released() noexcept; // the last reference is gone: stop; deletes the context
    bool take_baton() noexcept;
    void pass_baton() noexcept;
    void serve() noexcept; // pending events, with the baton held
    int wait_word(uint32_t seen, Deadline &deadline) noexcept;
    bool begin_drive() noexcept;
    void end_drive() noexcept;

    // --- loop thread ---
    void run() noexcept;    // the thread's body
    void turned() noexcept; // after each turn of the loop
    void look() noexcept {} // a turn at the close deadline
    void begin_teardown() noexcept;
    void teardown() noexcept;
    template <class Visit>
    void each_part(const Visit &visit) noexcept; // latest first: a part may rest on earlier ones

    Timer<Engine, &Engine::look> close_timer{*this};
    bool started = false;
    bool close_begun = false, ending = false;

    Fd end_fd;                        // written once, at the very end; see Context::end_fd()
    std::atomic<bool> closing{false}; // release by the closer, acquire by turned(): publishes close_at
    std::atomic<int64_t> close_at{INT64_MAX};
    std::atomic<bool> orphaned{false}; // release by the last owner, acquire by turned()
    std::atomic<bool> forced{false};   // relaxed: published by `stopped`
    std::atomic<bool> stopped{false};  // release by teardown(), acquire by closers: publishes forced
    Signal stop_signal;                // notified after `stopped` is set

    // Engine and references are done with the context: the second of them deletes it. acq_rel on both sides.
    enum : uint32_t { engine_gone = 1, references_gone = 2 };
    std::atomic<uint32_t> gone{0};

    std::recursive_mutex parts_lock; // recursive: making a part may request another one
    ContextPart *latest_part = nullptr;

    // External contexts: the host polls the loop's descriptor.
    Fd baton_fd;
    std::mutex baton_lock;
    bool driving = false;                  // under baton_lock
    int drivers_cancel_state = 0;          // of the driver: the state that pthread_setcancelstate() restores
    std::atomic<uint32_t> word{0};         // futex of threads that wait for the baton or a notify; see await()
    std::atomic<uint32_t> word_waiters{0}; // those that wait on it
    std::atomic<uint32_t> fd_waiters{0};   // those that wait in poll() for baton_fd
    uint32_t drives = 0;                   // rounds since the loop was served; the driver's

    LogTarget log;
};

// Parts are only ever added, at the head: the parts after a part never change.
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
