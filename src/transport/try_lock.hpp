// SPDX-License-Identifier: MIT
#pragma once
// A lock that is only tried, never waited for.
#include <atomic>

namespace muster {

// A thread that fails to acquire the lock sets its recheck flag; the holder, which finds the flag when it unlocks,
// acquires the lock again and does the work of the other thread. Any thread.
class TryLock {
  public:
    // seq_cst throughout: the flag is set before the lock is tried, and read after the lock was released; one of the
    // two threads sees the other. acquire/release is part of it: the holder's view passes on.
    bool try_lock() noexcept { return !held_.exchange(true, std::memory_order_seq_cst); }
    void request_recheck() noexcept { recheck_.store(true, std::memory_order_seq_cst); }
    bool unlock() noexcept { // true: a recheck was requested; acquire the lock again and check
        held_.store(false, std::memory_order_seq_cst);
        return recheck_.load(std::memory_order_seq_cst);
    }
    void begin_check() noexcept { // by the holder, before it checks
        if (recheck_.load(std::memory_order_relaxed)) recheck_.store(false, std::memory_order_seq_cst);
    }
    // With a request for a recheck if another thread holds it.
    bool acquire_or_request() noexcept {
        if (!try_lock()) {
            request_recheck();
            if (!try_lock()) return false;
        }
        begin_check();
        return true;
    }
    bool is_held() const noexcept { return held_.load(std::memory_order_relaxed); }

  private:
    std::atomic<bool> held_{false}, recheck_{false};
};

} // namespace muster
