// SPDX-License-Identifier: MIT
#pragma once
// The event loop: posted tasks, timers and watched descriptors, on libuv.
//
// The nodes of an object on a loop are part of that object (a PostedTask, a Timer, a Watch), so that none of them needs
// memory later. One epoll holds every watched descriptor, and that of libuv; libuv keeps the time, by one timer for the
// earliest timer of the loop. docs/adr/0014-libuv-inside-one-epoll.md has the reasons and figures.
#include "base/fd.hpp"
#include "base/list.hpp"
#include "base/object.hpp"
#include "base/result.hpp"
#include "context/task.hpp"
#include "context/timers.hpp"

#include <mutex>
#include <pthread.h>
#include <uv.h>

namespace muster {

// One or more watched descriptors, part of the object that handles their events. The loop holds a reference to that
// object for each descriptor, from Loop::watch() until no event of it can be in flight after Loop::unwatch().
class Watch : public Listed<Watch> {
  public:
    virtual void on_events(uint32_t epoll_events) noexcept = 0; // loop thread
    // The loop ends with this watch still in it, and unwatches it after the call. Loop thread.
    virtual void on_loop_end() noexcept {}
    virtual Object &watch_owner() noexcept = 0;

  protected:
    ~Watch() = default;

  private:
    friend class Loop;
    // All under the loop's lock.
    Watch *next_removed_ = nullptr;
    uint32_t descriptors_ = 0; // watched now
    uint32_t removed_ = 0;     // no longer watched, the reference not released yet
};

// Any thread may post tasks, and watch or unwatch descriptors. Timers, turns and the end belong to the loop thread: the
// one that called enter(); the loop calls everything there.
class Loop {
  public:
    enum class Mode {
        waits, // a thread of its own waits in turn()
        polled // no thread waits in turn(): threads poll fd(), which also shows when a timer is due
    };
    // From Mode::waits to Mode::polled, in two steps: what may fail, on any thread; and the change, on the loop thread.
    Result<void> prepare_polled() noexcept;
    void become_polled() noexcept;
    // `owner`: the object that this loop is part of.
    explicit Loop(Object &owner) noexcept : owner_(owner) {}
    Loop(const Loop &) = delete;
    Loop &operator=(const Loop &) = delete;
    ~Loop();
    Result<void> open(Mode mode); // before everything else
    bool is_open() const noexcept { return open_; }

    // ---- any thread
    // Runs the task on the loop thread, after the caller has returned from whatever it is in. False: the loop has
    // ended, and the task was refused. In a burst only the first post costs a wake-up.
    bool post(TaskNode &task) noexcept;
    bool post(std::unique_ptr<Task> task) noexcept { return post(static_cast<TaskNode &>(*task.release())); }
    void wake() noexcept; // makes the next turn return, if the loop has not ended
    bool on_loop() const noexcept { return pthread_equal(thread_.load(std::memory_order_relaxed), pthread_self()); }

    // `epoll_events`: level-triggered, unless EPOLLET is among them. Each descriptor must be unwatched before it is
    // closed. Fails when the system refuses the descriptor, or the loop has ended.
    Result<void> watch(Watch &watch, int fd, uint32_t epoll_events) noexcept;
    void modify(Watch &watch, int fd, uint32_t epoll_events) noexcept; // reports again which events are pending
    void unwatch(Watch &watch, int fd) noexcept; // an event of the current turn may still be reported
    int fd() const noexcept { return epoll_.get(); }
    // Mode::polled, where a post costs a system call only while a thread waits for fd(). Such a thread calls
    // begin_wait() first, and does not wait if that returns false: there are tasks. end_wait() follows in any case.
    // Tasks that the loop has fetched and not run are shown by the timer, see show_timers().
    bool begin_wait() noexcept;
    void end_wait() noexcept { waiters_.fetch_sub(1, std::memory_order_relaxed); }
    bool is_waited_for() const noexcept { return waiters_.load(std::memory_order_seq_cst) != 0; }
    // The host waits for fd() from now on, at any time: each post makes it readable. Any thread.
    void show_tasks() noexcept;
    uint64_t turns() const noexcept { return turns_.load(std::memory_order_relaxed); }
    uint64_t posts() const noexcept { return posts_.load(std::memory_order_relaxed); }

    // ---- the loop thread
    void enter() noexcept {
        thread_.store(pthread_self(), std::memory_order_relaxed);
        now_ns_ = 0;
    }
    void leave() noexcept { thread_.store(pthread_t{}, std::memory_order_relaxed); }
    // Waits until an event is pending, at most until `until_ns` (INT64_MAX: without limit; 0: not at all), and serves
    // it.
    void turn(int64_t until_ns) noexcept;
    void run_tasks() noexcept;                                  // those posted so far, up to a limit
    bool is_due() noexcept;                                     // is there a task, or a timer that is due?
    void show_timers() noexcept;                                // Mode::polled: fd() shows when is_due() will hold
    void start_timer(TimerNode &timer, int64_t at_ns) noexcept; // again, if it is running; ignored after close()
    void stop_timer(TimerNode &timer) noexcept { timers_.stop(timer); }
    int64_t now_ns() noexcept; // CLOCK_MONOTONIC, read once per turn

    // The end, in two steps: runs the tasks posted so far and refuses later ones; stops timers and watches.
    void refuse_tasks() noexcept;
    void close() noexcept;

  private:
    void fetch_tasks(TaskNode *leave_behind) noexcept; // from the mailbox to tasks_, which is empty
    void run_task() noexcept;                          // the first of tasks_
    bool has_tasks() const noexcept { return tasks_ != nullptr || mailbox_.load(std::memory_order_relaxed) != nullptr; }
    bool add(int fd, uint32_t events, void *key) noexcept; // to the descriptors of epoll
    void wait(int64_t until_ns) noexcept;
    void serve_descriptors(int timeout_ms) noexcept;
    void release_removed() noexcept;
    static TaskNode *refusing() noexcept { return reinterpret_cast<TaskNode *>(uintptr_t{1}); }

    Object &owner_;
    Fd epoll_, wake_, timer_fd_; // set once; descriptors live as long as the loop: a late poster may still write. The
                                 // last is that of Mode::polled

    // Posted tasks, latest first; refusing() once the loop takes no more.
    std::atomic<TaskNode *> mailbox_{nullptr};
    std::atomic<pthread_t> thread_{}; // relaxed: a thread only compares it with itself, and has written that itself
    // seq_cst, as the exchange of mailbox_ in post(): a thread that begins to wait announces itself and then checks the
    // mailbox, a poster adds to the mailbox and then checks for waiters; one of the two sees the other.
    std::atomic<uint32_t> waiters_{0};
    std::atomic<bool> is_shown_{false};
    std::atomic<uint64_t> turns_{0}, posts_{0}; // relaxed: counters
    PostedTask<Loop, &Loop::release_removed> release_removed_{*this};

    std::mutex lock_; // guards the next group
    List<Watch> watches_;
    Watch *removed_ = nullptr;
    bool watches_ended_ = false;

    // The loop thread's.
    TaskNode *tasks_ = nullptr; // fetched, oldest first
    Timers timers_;
    int64_t now_ns_ = 0;           // of this turn; 0: not read yet
    int64_t armed_ns_ = INT64_MAX; // setting of libuv's timer, or of the descriptor of Mode::polled; the latter: off
    bool open_ = false;
    uv_loop_t uv_{};
    uv_timer_t uv_timer_{};
};

} // namespace muster
