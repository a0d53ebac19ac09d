// SPDX-License-Identifier: MIT
#pragma once
// The lock of one direction of a stream: free of charge for the one thread that usually uses it.
//
// An uncontended mutex costs two locked instructions, as much as moving a small message. So the lock is *biased*: the
// thread that held it last owns it, and enters by a plain store and two plain loads. Any other thread that wants it
// first takes the bias away: it announces a transfer, clears the owner, and lets the kernel run a memory barrier on
// every core of this process (membarrier(2), a few microseconds). After that the owner either is seen inside, or will
// see that it is the owner no more. If it is inside, the lock word passes to it with the transfer and the other thread
// waits like for any mutex; if it is not, the other thread takes the transfer back and holds the lock.
// After a few such changes the lock stays an ordinary futex mutex. The idea is that of biased locking (Kawachiya,
// Koseki, Onodera, OOPSLA 2002) with the asymmetric barrier of Dice, Huang and Yang ("Asymmetric Dekker
// Synchronization", 2001). Where the kernel refuses membarrier() there is no bias.
//
// A thread never sleeps while it is inside by bias: settle() turns the hold into an ordinary one first.
#include "base/futex.hpp"

#include <pthread.h>

namespace muster {

bool process_barrier_works() noexcept; // registers with the kernel at the first call
void process_barrier() noexcept;       // a full memory barrier on every running thread of this process

class DirectionLock {
  public:
    enum : uint32_t { FREE = 0, HELD = 1, WAITED = 2, ORPHANED = 3 };

    bool try_lock() noexcept { return enter_by_bias() || try_lock_word(); }

    // Only as the thread that usually has it; false otherwise.
    bool enter_by_bias() noexcept {
        const pthread_t me = pthread_self();
        if (owner_.load(std::memory_order_relaxed) != me) return false;
        inside_.store(1, std::memory_order_relaxed);
        // Only the compiler must keep the order here; the processor is made to by process_barrier() on the other side.
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (owner_.load(std::memory_order_relaxed) == me) {
            biased_ = true;
            return true;
        }
        // Taken away in between. Whoever did it may have seen us inside: then the word is ours after all.
        inside_.store(0, std::memory_order_release);
        return transfer_.exchange(0, std::memory_order_seq_cst) != 0;
    }

    // Tries for the lock as a waiter, since others may still sleep: the next unlock wakes one of them.
    bool try_lock_waited() noexcept {
        uint32_t state = FREE;
        if (!word_.compare_exchange_strong(state, WAITED, std::memory_order_seq_cst)) return false;
        return take_bias_away();
    }

    // True: given back. False: the stream was released meanwhile, and this holder owes it one reference.
    bool unlock() noexcept {
        if (biased_) {
            biased_ = false;
            inside_.store(0, std::memory_order_release); // publishes this section; pairs with take_bias_away()
            std::atomic_signal_fence(std::memory_order_seq_cst);
            if (owner_.load(std::memory_order_relaxed) == pthread_self()) return true;
            // Somebody took the bias away. If he saw us inside, the word is ours, and we give it back for real.
            if (transfer_.exchange(0, std::memory_order_seq_cst) == 0) return true;
        }
        return unlock_word();
    }

    // The holder is about to sleep, or to be long: an ordinary hold from here on.
    void settle() noexcept {
        if (!biased_) return;
        uint32_t state = FREE;
        if (!word_.compare_exchange_strong(state, HELD, std::memory_order_seq_cst)) {
            // Somebody holds the word and is taking the bias away. He sees us inside, so the transfer will stay for us.
            // ORPHANED: the same by host_release().
            while (transfer_.exchange(0, std::memory_order_seq_cst) == 0) sched_yield();
        }
        biased_ = false;
        inside_.store(0, std::memory_order_release);
    }

    // muster_stream_release(): nobody gets it any more. True: it was free. False: its holder's unlock() tells him.
    bool orphan() noexcept {
        if (word_.exchange(ORPHANED, std::memory_order_seq_cst) != FREE) {
            wake(INT_MAX);
            return false;
        }
        return owner_.load(std::memory_order_relaxed) == pthread_self() || take_bias_away();
    }

    bool orphaned() const noexcept { return word_.load(std::memory_order_relaxed) == ORPHANED; }
    bool awaited() const noexcept { return word_.load(std::memory_order_relaxed) == WAITED; }
    void wake(int count) noexcept { futex_wake(word_, count, false); }

    // Sleeps until the lock may be free; ETIMEDOUT at the deadline. The lock is marked as waited for.
    int sleep(Deadline &deadline) noexcept {
        uint32_t state = word_.load(std::memory_order_relaxed);
        if (state == HELD && !word_.compare_exchange_strong(state, WAITED, std::memory_order_seq_cst)) return 0;
        if (state != HELD && state != WAITED) return 0;
        return futex_wait(word_, WAITED, deadline, false);
    }

  private:
    static constexpr uint32_t most_changes = 4;

    bool try_lock_word() noexcept {
        uint32_t state = FREE;
        // acquire: what the last holder did is seen; pairs with unlock_word().
        if (!word_.compare_exchange_strong(state, HELD, std::memory_order_seq_cst)) return false;
        return take_bias_away();
    }

    // The word is ours. False: the biased owner is inside, and the word was left to it.
    bool take_bias_away() noexcept {
        const pthread_t owner = owner_.load(std::memory_order_seq_cst);
        if (owner == pthread_t{} || owner == pthread_self()) return true;
        changes_++;
        transfer_.store(1, std::memory_order_seq_cst); // before the owner: who misses the one sees the other
        owner_.store(pthread_t{}, std::memory_order_seq_cst);
        process_barrier();
        // acquire: pairs with unlock(); the owner's last section is seen.
        if (inside_.load(std::memory_order_acquire) != 0) return false;
        return transfer_.exchange(0, std::memory_order_seq_cst) != 0; // else it came by in between, and has the word
    }

    bool unlock_word() noexcept {
        // relaxed: whoever takes the word after us sees it.
        if (changes_ < most_changes && word_.load(std::memory_order_relaxed) == HELD && process_barrier_works())
            owner_.store(pthread_self(), std::memory_order_relaxed);
        uint32_t state = HELD;
        // release: publishes this section to the next holder.
        while (!word_.compare_exchange_weak(state, FREE, std::memory_order_seq_cst))
            if (state == ORPHANED) return false;
        if (state == WAITED) wake(1);
        return true;
    }

    alignas(64) std::atomic<pthread_t> owner_{}; // who enters without asking; none at first
    std::atomic<uint32_t> inside_{0};
    std::atomic<uint32_t> transfer_{0};
    std::atomic<uint32_t> word_{FREE};
    bool biased_ = false;  // the holder's own: how it came in
    uint32_t changes_ = 0; // the holder's own
};

} // namespace muster
