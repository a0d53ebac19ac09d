// SPDX-License-Identifier: MIT
#pragma once
// The implementation of a context. Private to the context module, except the log target, which the queue module serves.
#include "base/fd.hpp"
#include "context/context.hpp"

#include <algorithm>
#include <mutex>
#include <poll.h>

namespace muster {

// The destination of log records. The queue is not owned (it owns the context); it removes itself before it is freed.
struct LogTarget {
    std::atomic<int32_t> level{MUSTER_LOG_OFF}; // relaxed: a record more or less around a change does not matter
    std::mutex lock;
    Queue *queue = nullptr; // under lock
    uint64_t tag = 0;       // under lock
};

// Runs the loop of the context, on a thread of its own, on those of the host (an external context) or on both in turn
// (a shared one), until its end. Each member names its thread.
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

    // --- the baton: the thread that has it drives the engine, and is the loop thread ---
    bool take_baton() noexcept;
    void pass_baton() noexcept;
    bool begin_drive() noexcept; // a thread of the host: for a moment, if it can
    void end_drive() noexcept;
    void take_turns() noexcept; // pending events, with the baton held
    static int wait_readable(pollfd *fds, nfds_t count, Deadline &deadline) noexcept;

    // --- shared contexts: the thread, and those of the host that wait for a transport that is polled ---
    Result<void> share();
    static constexpr int64_t min_nap_ns = 100'000;
    struct Naps { // of the thread, while others drive
        uint32_t seen_drives = 0, seen_left = 0;
        int64_t next_ns = min_nap_ns;
    };
    void run_shared() noexcept; // the thread; until the engine ends
    void nap_until_left(Naps &naps) noexcept;
    bool begin_shared_drive() noexcept;
    bool is_left_to_thread() const noexcept;
    void leave_to_thread() noexcept;

    // --- external contexts: any thread ---
    Status progress(Deadline &deadline) noexcept;
    template <class Done>
    Status await(const Done &done, int fd, Deadline &deadline) noexcept;
    Status await_change(const std::atomic<uint32_t> &sequence, uint32_t seen, Deadline &deadline) noexcept;
    Status await_fd(int fd, Deadline &deadline) noexcept;
    void notify() noexcept;
    void finish_released() noexcept; // the last reference is gone: stop; deletes the context
    static int wait_events(bool is_idle, pollfd *fds, nfds_t count, Deadline &deadline) noexcept;
    void serve() noexcept; // pending events, with the baton held; ends the engine if it is time
    int wait_word(uint32_t seen, Deadline &deadline) noexcept;

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

    // The baton. acquire by the thread that takes it, release by the thread that passes it: publishes all that is the
    // loop thread's.
    std::atomic<bool> driving{false};
    int drivers_cancel_state = 0; // of the driver: the state that pthread_setcancelstate() restores
    uint32_t drives = 0;          // rounds since the loop was served; the driver's

    // Shared contexts.
    std::atomic<bool> share_wanted{false}; // release by share(), acquire by run(): publishes the loop's preparation
    std::atomic<bool> is_shared{false};    // relaxed: the baton publishes everything
    std::atomic<uint32_t> host_drives{0};  // relaxed: whether it has changed matters
    // Futex of the thread's naps. seq_cst with `is_napping`: one of the two sides sees the other.
    std::atomic<uint32_t> left_to_thread{0};
    std::atomic<bool> is_napping{false}; // or parked
    std::atomic<bool> is_parked{false};  // until a thread of the host that waits in the loop leaves it; seq_cst, as
    std::atomic<bool> host_waits{false}; // this one: each side changes its own and then checks the other's
    std::atomic<bool> host_drives_now{false}; // relaxed: whether it is worthwhile to wait for the baton
    std::atomic<uint32_t> baton_wanted{0};    // relaxed: threads of the host that would like to have it now

    // External contexts: the host polls the loop's descriptor.
    Fd baton_fd;
    std::atomic<uint32_t> word{0};         // futex of threads that wait for the baton or a notify; see await()
    std::atomic<uint32_t> word_waiters{0}; // those that wait on it
    std::atomic<uint32_t> fd_waiters{0};   // those that wait in poll() for baton_fd

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
