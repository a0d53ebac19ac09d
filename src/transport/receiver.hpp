// SPDX-License-Identifier: MIT
#pragma once
// Receiving from a socket by the thread that waits: a thread of the host that waits for bytes sleeps on the socket
// itself and receives them for all waiting threads, so that no other thread has to wake it. The loop receives while no
// thread of the host does (the leader/followers pattern).
//
// Who receives: the loop, while it watches the input of the socket. A thread of the host that is about to sleep takes
// that interest away (one system call), and it stays away as long as threads of the host come again within a few
// milliseconds; then a timer gives the socket back to the loop.
#include "base/time.hpp"
#include "base/uncancelled.hpp"
#include "transport/hub.hpp"
#include "transport/try_lock.hpp"

#include <atomic>
#include <cerrno>
#include <mutex>
#include <utility>

namespace muster {

class ReceiverOwner : public Watch {
  public:
    // No thread of the host has received for a while. The lock of the receiver is held; the owner calls
    // return_to_loop() if the loop is to receive, and releases the lock. Loop thread.
    virtual void host_stopped_receiving() noexcept = 0;

  protected:
    ~ReceiverOwner() = default;
};

// A part of its owner. Any thread unless a member says otherwise.
class Receiver {
  public:
    static constexpr uint32_t hang_up = EPOLLRDHUP | EPOLLHUP | EPOLLERR;
    enum class Sleep : uint8_t { woken, timeout, no_descriptor };

    // `max_check_ns`: the longest time until the loop finds out that the host's threads have stopped receiving.
    Receiver(Hub &hub, ReceiverOwner &owner, int64_t max_check_ns) noexcept
        : hub_(hub), owner_(owner), max_check_ns_(max_check_ns) {}
    ~Receiver();

    TryLock lock; // its holder receives

    // --- the loop watches the socket; it always learns of a hang-up ---
    // Watches the input of this socket, and its output if wanted. Loop thread or lock held.
    Result<void> start(int fd, bool output) noexcept;
    void stop() noexcept;         // before the socket is closed; lock held
    void watch_input() noexcept;  // also reports bytes that are in the socket already
    void watch_output() noexcept; // also reports if the socket accepts bytes already
    void ignore_output() noexcept;
    void rearm() noexcept; // reports pending events again
    bool watches_output() noexcept {
        const std::lock_guard hold(interest_lock_);
        return output_;
    }
    // A thread of the host receives from now on; the loop does not. True: the loop did before.
    bool take_from_loop() noexcept;
    bool loop_receives() noexcept {
        const std::lock_guard hold(interest_lock_);
        return input_;
    }

    // --- lock held ---
    // As recv(): how many bytes, 0 if there are none now, -1 at the end, of which end_errno() tells the reason (0: the
    // peer has closed the connection).
    ssize_t receive(void *data, size_t size, int flags = MSG_DONTWAIT) noexcept {
        return result([&] { return uncancelled::receive(fd_, data, size, flags); }, size, (flags & MSG_DONTWAIT) == 0);
    }
    ssize_t receive(msghdr &message, size_t size) noexcept { // `size`: the room in all of its parts
        return result([&] { return uncancelled::receive(fd_, message, MSG_DONTWAIT); }, size, false);
    }
    int end_errno() const noexcept { return end_errno_; }
    // The last answer of the socket left nothing in it: a later byte wakes a sleeper.
    bool is_drained() const noexcept { return drained_ && !hung_up_; }
    bool was_short() const noexcept { return drained_; }             // the last answer had room for more
    bool can_sleep() const noexcept { return notifier_.event >= 0; } // it has slept before, and needs no descriptor
    // Sleeps until bytes arrive, wake(), or the deadline. `is_over()` is called when a wake() can no longer be missed;
    // true: do not sleep.
    template <class IsOver>
    Sleep sleep(Deadline &deadline, const IsOver &is_over) noexcept {
        if (notifier_.event < 0 && !take_notifier()) return Sleep::no_descriptor;
        // seq_cst: pairs with wake(), which follows the change that is_over() checks; one of the two sees the other.
        sleeper_.store(notifier_.event, std::memory_order_seq_cst);
        const bool in_time = is_over() || wait(deadline);
        sleeper_.store(-1, std::memory_order_relaxed); // a late wake() meets no sleeper: the next sleep is short
        return in_time ? Sleep::woken : Sleep::timeout;
    }
    // The loop receives again: the descriptors of a sleeper are released.
    void return_to_loop() noexcept;
    void count_visit() noexcept { // of a thread of the host; relaxed: a counter
        visits_.store(visits_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }

    // --- afterwards ---
    void wake() noexcept; // makes the sleeping thread, if there is one, check again
    // A thread of the host has left, and the loop does not receive: host_stopped_receiving() follows unless threads of
    // the host continue to receive. After the lock was released.
    void expect_host() noexcept {
        // seq_cst: pairs with check(), which clears the flag before it tries the lock.
        if (host_expected_.load(std::memory_order_seq_cst)) return;
        if (!host_expected_.exchange(true, std::memory_order_seq_cst)) start_check_.post(hub_.context());
    }
    void forget_host() noexcept { hub_.stop_timer(check_timer_); } // loop thread

    bool try_retain() noexcept { return owner_.watch_owner().try_retain(); } // for the timer and the task
    void release() noexcept { owner_.watch_owner().release(); }

  private:
    // A call that does not wait is repeated when a signal has interrupted it: its edge would not be raised again.
    template <class Call>
    ssize_t result(const Call &call, size_t size, bool waits) noexcept {
        ssize_t n = call();
        while (n < 0 && errno == EINTR && !waits) n = call();
        return result(n, size);
    }
    ssize_t result(ssize_t n, size_t size) noexcept;
    bool take_notifier() noexcept;
    bool wait(Deadline &deadline) noexcept; // false: the deadline passed
    void set_interest(bool input, bool output) noexcept;
    void start_check() noexcept;
    void check() noexcept;

    Hub &hub_;
    ReceiverOwner &owner_;
    const int64_t max_check_ns_;

    std::mutex interest_lock_;
    // Written under both locks (or the interest lock before the first use), read under either.
    int fd_ = -1;
    bool input_ = false, output_ = false; // under the interest lock: the events that the loop watches

    // under the lock
    Notifier notifier_; // its epoll holds the socket
    bool drained_ = false;
    bool hung_up_ = false; // reported once: from now on check each time
    int end_errno_ = 0;

    std::atomic<int> sleeper_{-1}; // seq_cst: the event of a thread that sleeps
    std::atomic<uint32_t> visits_{0};
    std::atomic<bool> host_expected_{false}; // the check timer runs, or is about to

    // loop thread
    uint32_t visits_seen_ = 0;
    int64_t check_ns_ = 0;
    PostedTask<Receiver, &Receiver::start_check> start_check_{*this};
    Timer<Receiver, &Receiver::check> check_timer_{*this};
};

} // namespace muster
