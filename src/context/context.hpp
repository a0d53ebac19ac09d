// SPDX-License-Identifier: MIT
#pragma once
// The progress engine: one libuv loop, one mailbox, one secret, and the objects that were made from them.
#include "base/fork.hpp"
#include "base/object.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "context/histogram.hpp"
#include "context/loop.hpp"
#include "context/metrics.hpp"

#include <muster/context.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace muster {

class HostCall;
class HostCalls;
class Queue;

// State of a module for each context (the registry of transports, the list of links): it belongs to a context and is
// not global. A part is made at its first use, notified on the loop thread when the engine ends, and deleted with the
// context. The newest part is notified first, so that a part may use those that it requested while it was made.
struct ContextPart {
    virtual ~ContextPart() = default;
    // The context is closing: accept no new work; begin to end everything. Loop thread.
    virtual void close() noexcept {}
    // True when no bytes are in transit any more; called again after each loop turn until the close deadline. Loop
    // thread.
    virtual bool drained() noexcept { return true; }
    // The loop is about to end: no task runs, no timer and no descriptor is served any more. Loop thread.
    virtual void stop() noexcept {}

    const void *key = nullptr; // these two belong to the engine
    ContextPart *earlier = nullptr;
};

// Part of an object that is notified when the context closes. Keeps its object while it is in the context's list.
class ClosingNode : private Call, public Listed<ClosingNode> {
  protected:
    ClosingNode() noexcept = default;
    ~ClosingNode() = default;

  private:
    friend class Context;
};

// Closing<HostDial, &HostDial::context_closes> closing_{*this};
template <class Owner, void (Owner::*Closes)() noexcept>
using Closing = Bound<Owner, Closes, ClosingNode>;

// Where a thread of the host sleeps until something changes: notify() raises the sequence, sleepers compare it.
// Any thread.
class Signal {
  public:
    // acquire: pairs with notify(); everything written before a notify is seen after reading its sequence.
    uint32_t seen() const noexcept { return sequence_.load(std::memory_order_acquire); }

  private:
    friend class Context;
    std::atomic<uint32_t> sequence_{0};
    std::atomic<uint32_t> sleepers_{0};
};

struct ContextSettings {
    uint32_t flags = 0;
    std::vector<unsigned char> secret;
    uint32_t max_unauthenticated = 64;
    int64_t handshake_timeout_ns = 10'000'000'000;
    int64_t heartbeat_ns = 1'000'000'000;
    int64_t silent_ns = 5'000'000'000;
    int64_t dead_ns = 60'000'000'000; // negative: never
    uint64_t window_bytes = 1 << 20;
};

struct ContextCounters { // relaxed: counters
    std::atomic<uint64_t> streams_open{0}, streams_made{0}, handshakes_ok{0}, handshakes_failed{0}, bytes_in{0},
        bytes_out{0}, upgrades{0};
    Histogram handshake_time, store_time, round_time;
};

// Any thread, unless a member says otherwise. Queues, streams, listeners, processes hold a reference each; the engine
// holds none to itself: when the last reference is released, the thread is notified to stop, and deletes the context at
// its end.
class Context final : public Object {
  public:
    struct Engine; // private to this module
    static Result<Ref<Context>> create(const ContextSettings &settings);

    const ContextSettings settings;
    ContextCounters counters;
    MetricsNodes metrics; // of the objects that were made from it

    bool forked() const noexcept { return mark_.forked(); }
    // Its thread takes turns with threads of the host from now on, which may drive(). MUSTER_OK in external contexts,
    // too.
    Result<void> share();
    bool external() const noexcept { return settings.flags & MUSTER_CONTEXT_EXTERNAL; }
    bool closed() const noexcept; // close() has begun: makers of new objects answer MUSTER_E_CLOSED

    // Runs the task on the loop thread, after the caller has returned from whatever it is in. False: the engine has
    // stopped, and the task was refused. In a burst only the first post costs a wake-up.
    bool post(TaskNode &task) noexcept { return loop_.post(task); }
    bool post(std::unique_ptr<Task> task) noexcept { return loop_.post(std::move(task)); }
    template <class F>
    requires std::is_invocable_v<F &>
    bool post(F body) { return loop_.post(make_task(std::move(body))); } // throws bad_alloc only
    Loop &loop() noexcept { return loop_; }
    bool on_loop() const noexcept { return loop_.on_loop(); } // is this the thread that drives the engine now?
    int64_t loop_now_ns() noexcept { return loop_.now_ns(); } // CLOCK_MONOTONIC of this turn; loop thread only

    // Loop thread. The node is called once, after the close of all parts has begun; at the latest before they stop.
    void on_closing(ClosingNode &node) noexcept;
    void forget_closing(ClosingNode &node) noexcept; // nothing happens if it is not in the list

    // Sleeping and waking of host threads. sleep() returns MUSTER_OK when the sequence differs from `seen`,
    // MUSTER_TIMEOUT at the deadline, MUSTER_E_WOULD_DEADLOCK on the loop thread. In an external context the sleeper
    // drives the engine meanwhile (one thread drives, the others sleep; the baton is passed on). A call of the host's
    // may be ended: then once the status that host_call.hpp lists.
    Status sleep(Signal &signal, uint32_t seen, Deadline &deadline) noexcept;
    void notify(Signal &signal) noexcept; // wakes every sleeper of the signal
    // Waits for a change of the state that `lock` guards, each of which is followed by a notify of the signal. look()
    // is called with the lock held; it returns the result, or MUSTER_AGAIN: not yet. A wait that ends without result
    // returns MUSTER_AGAIN if the deadline is 0, otherwise the status of sleep().
    template <class Look>
    Status wait(Signal &signal, Deadline &deadline, std::mutex &lock, Look &&look) noexcept(noexcept(look())) {
        for (;;) {
            const uint32_t seen = signal.seen();
            {
                const std::lock_guard hold(lock);
                if (const Status result = look(); result != MUSTER_AGAIN) return result;
            }
            if (deadline.look_once()) return MUSTER_AGAIN;
            if (const Status status = sleep(signal, seen, deadline); status != MUSTER_OK) return status;
        }
    }
    // The same without a lock: MUSTER_OK once done() is true.
    template <class Done>
    Status wait(Signal &signal, Deadline &deadline, Done &&done) noexcept(noexcept(done())) {
        for (;;) {
            const uint32_t seen = signal.seen();
            if (done()) return MUSTER_OK;
            if (deadline.look_once()) return MUSTER_AGAIN;
            if (const Status status = sleep(signal, seen, deadline); status != MUSTER_OK) return status;
        }
    }
    Status pause(int64_t ns) noexcept; // MUSTER_OK after that time; or the status with which the call ended before
    HostCalls &host_calls() noexcept { return *host_calls_; }
    void host_release() noexcept; // the host's handle

    void leave_loop() noexcept;                   // the calling thread is about to sleep: it drives no more for now
    Status progress(Deadline &deadline) noexcept; // muster_context_progress
    // External contexts: waits until `fd` is readable, driving the engine meanwhile (or waiting for the thread that
    // does). MUSTER_OK may be returned early; MUSTER_TIMEOUT; MUSTER_E_WOULD_DEADLOCK on the loop thread.
    Status wait_fd(int fd, Deadline &deadline) noexcept;
    // External and shared contexts: the caller becomes the loop thread for the time of a body, which receives a Driver.
    // False: another thread drives, or this one already does; nothing was done. If `waits`, it waits for a moment for
    // the thread of a shared context, but not once done() holds.
    class Driver;
    template <class Done, class Body>
    bool drive(bool waits, const Done &done, Body &&body) noexcept;
    // Any thread: a wait of a driver checks again.
    void interrupt_driver() noexcept {
        if (loop_.is_waited_for()) loop_.wake();
    }
    Result<int> external_fd() noexcept; // a dup for the host
    int end_fd() const noexcept;        // an eventfd, readable once the engine has stopped and everything is ended
    Status close(Deadline &deadline) noexcept;

    // The part of a module in this context, made by `make` at the first call. `key` is the address of a static of that
    // module. The reference is valid as long as the context exists.
    ContextPart &part(const void *key, std::unique_ptr<ContextPart> (*make)(Context &));

    // Log records; costs nothing while no queue receives them. Any thread, never blocks, drops when the queue is full.
    bool logs(int32_t level) const noexcept;
    [[gnu::format(printf, 3, 4)]] void log(int32_t level, const char *format, ...) noexcept;
    void set_log(int32_t level, Queue *queue, uint64_t tag) noexcept;
    void leave_log(Queue &queue) noexcept; // the queue is about to be freed

  private:
    explicit Context(const ContextSettings &settings);
    ~Context() override;
    void last_reference_gone() noexcept override;
    void notify_closing() noexcept;
    bool begin_drive() noexcept;
    void end_drive() noexcept;
    static constexpr int max_drive_waits = 200; // of a microsecond
    bool begin_wanting() noexcept;
    bool wait_to_drive(int round) noexcept;
    void end_wanting() noexcept;
    Status sleep_unended(Signal &signal, uint32_t seen, Deadline &deadline) noexcept;
    ForkMark mark_;
    Loop loop_{*this};
    List<ClosingNode> closing_list_; // loop thread
    const std::unique_ptr<HostCalls> host_calls_;
    std::unique_ptr<Engine> engine_;
};

// A thread of the host that drives.
class Context::Driver {
  public:
    explicit Driver(Context &context) noexcept : context_(context) {}
    void run_posted() noexcept; // tasks that were posted meanwhile
    // Shared contexts: waits in the loop for its next event, and serves it. OK: check again; TIMEOUT; E_CLOSED: the
    // rest is left to the thread of the context.
    template <class Done>
    Status wait(Deadline &deadline, const Done &done) noexcept {
        const bool is_idle = begin_wait();
        const bool now = done(); // pairs with interrupt_driver()
        const Status status = now ? Status{MUSTER_OK} : wait_for_event(is_idle, deadline);
        end_wait();
        return now || status != MUSTER_OK ? status : serve();
    }

  private:
    bool begin_wait() noexcept;
    Status wait_for_event(bool is_idle, Deadline &deadline) noexcept;
    void end_wait() noexcept;
    Status serve() noexcept;
    Context &context_;
};

template <class Done, class Body>
bool Context::drive(bool waits, const Done &done, Body &&body) noexcept {
    if (!begin_drive()) {
        if (!waits || !begin_wanting()) return false;
        bool taken = false;
        for (int i = 0; !taken && i < max_drive_waits && !done(); i++) taken = wait_to_drive(i);
        end_wanting();
        if (!taken) return false;
    }
    Driver driver(*this);
    body(driver);
    end_drive();
    return true;
}

inline Context *unwrap(muster_context *handle) noexcept {
    return reinterpret_cast<Context *>(handle);
}
inline muster_context *wrap(Context *object) noexcept {
    return reinterpret_cast<muster_context *>(object);
}

} // namespace muster
