// SPDX-License-Identifier: MIT
#pragma once
// The lock of one direction of a stream: without cost for the one thread that usually uses it.
//
// An uncontended mutex costs two locked instructions, as much as moving a small message. The lock is therefore
// *biased*: the thread that held it last owns it, enters by a plain store between two plain loads, and leaves by a
// plain store. Any other thread takes the word first, then the bias: it announces a transfer of the word, clears the
// owner, and has the kernel run a memory barrier on every core of this process (membarrier(2), a few microseconds).
// After that either the owner is seen inside, or the owner will see that it is no longer the owner. While the owner is
// inside, the other thread waits until it has left, which takes a short time: a thread inside by bias never sleeps, and
// copies at most `longest` bytes; before more it converts its hold to an ordinary one by settle(), which accepts the
// transfer. After a change a thread becomes the owner when it has held the lock several times in a row, twice as many
// with each change: where threads take turns the lock is an ordinary futex mutex, as it is after sixteen changes.
//
// The stream may be freed by another thread as soon as the lock is free, so unlocking ends with the last access to it.
// A thread that has not entered by bias keeps a reference to the stream meanwhile.
//
// tests/models/direction_lock.pml is this protocol for spin, store buffers included; change both together. Biased
// locking: Kawachiya, Koseki, Onodera (OOPSLA 2002); the asymmetric barrier: Dice, Huang, Yang, "Asymmetric Dekker
// Synchronization" (2001). Where the kernel refuses membarrier() there is no bias.
#include "base/futex.hpp"

#include <pthread.h>
#include <sched.h>
#include <utility>

namespace muster {

bool process_barrier_works() noexcept; // registers with the kernel at the first call
void process_barrier() noexcept;       // a full memory barrier on every running thread of this process

class DirectionLock {
  public:
    enum : uint32_t { FREE = 0, HELD = 1, WAITED = 2, ORPHANED = 3 };
    static constexpr size_t longest = 64 * 1024; // settle() before anything longer

    // Succeeds only for the owner; otherwise false.
    bool enter_by_bias() noexcept {
        const uintptr_t owner = owner_.load(std::memory_order_relaxed);
        if ((owner & ~change_mask) != self()) return false;
        std::atomic<uint32_t> &inside = inside_[owner & change_mask];
        inside.store(1, std::memory_order_relaxed);
        // Only the compiler must keep the order here; the processor is made to by process_barrier() on the other side.
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (owner_.load(std::memory_order_relaxed) == owner) [[likely]] {
            biased_ = &inside;
            return true;
        }
        // The bias was taken away in between. The thread that does so may still wait for this one: then this one gets
        // the word.
        const bool ours = transfer_.exchange(0, std::memory_order_seq_cst) != 0;
        inside.store(0, std::memory_order_release);
        return ours;
    }

    bool try_lock() noexcept {
        uint32_t state = FREE;
        // acquire: the section of the last holder is visible; pairs with unlock().
        return word_.compare_exchange_strong(state, HELD, std::memory_order_seq_cst) && take_bias_away();
    }

    // Tries as a waiter, since others may still sleep: the next unlock wakes one of them.
    bool try_lock_waited() noexcept {
        uint32_t state = FREE;
        return word_.compare_exchange_strong(state, WAITED, std::memory_order_seq_cst) && take_bias_away();
    }

    // True: unlocked. False: still held, and the caller has to call unlock_contended().
    bool unlock() noexcept {
        if (std::atomic<uint32_t> *inside = std::exchange(biased_, nullptr)) {
            inside->store(0, std::memory_order_release); // publishes this section; pairs with take_bias_away()
            return true;
        }
        uint32_t state = HELD;
        // relaxed: the next holder of the word sees the owner.
        if (changes_ < max_changes && becomes_owner() && word_.load(std::memory_order_relaxed) == HELD &&
            process_barrier_works())
            owner_.store(self() | changes_, std::memory_order_relaxed);
        // release: publishes this section to the next holder.
        return word_.compare_exchange_strong(state, FREE, std::memory_order_seq_cst);
    }

    // The caller has ensured that the lock outlives this call. True: unlocked, one waiter was woken. False: orphaned
    // meanwhile; the holder owes the stream one reference.
    bool unlock_contended() noexcept {
        uint32_t state = WAITED;
        while (!word_.compare_exchange_weak(state, FREE, std::memory_order_seq_cst))
            if (state == ORPHANED) return false;
        wake(1);
        return true;
    }

    // The holder is about to sleep, or to be long: an ordinary hold from here on.
    void settle() noexcept {
        std::atomic<uint32_t> *inside = std::exchange(biased_, nullptr);
        if (inside == nullptr) return;
        uint32_t state = FREE;
        if (!word_.compare_exchange_strong(state, HELD, std::memory_order_seq_cst)) {
            // Another thread holds the word and waits for this one to leave: accept it. It may not have cleared the
            // owner yet.
            while (transfer_.exchange(0, std::memory_order_seq_cst) == 0) sched_yield();
        }
        // This thread must not enter a second time either, when it sleeps by driving the engine.
        owner_.store(0, std::memory_order_seq_cst);
        inside->store(0, std::memory_order_release);
    }

    // Leaves a recheck request for the holder, which it sees when it unlocks. False: the lock is free, try again.
    bool mark() noexcept {
        uint32_t state = HELD;
        return word_.compare_exchange_strong(state, WAITED, std::memory_order_seq_cst) || state != FREE;
    }

    // muster_stream_release(): no thread gets the lock any more. True: it was free. False: unlock() notifies its
    // holder.
    bool orphan() noexcept {
        if (word_.exchange(ORPHANED, std::memory_order_seq_cst) != FREE) {
            wake(INT_MAX);
            return false;
        }
        return take_bias_away();
    }

    bool orphaned() const noexcept { return word_.load(std::memory_order_seq_cst) == ORPHANED; }
    bool awaited() const noexcept { return word_.load(std::memory_order_seq_cst) == WAITED; }
    void wake(int count) noexcept { futex_wake(word_, count, false); }

    // Sleeps until the lock may be free; ETIMEDOUT at the deadline.
    int sleep(Deadline &deadline) noexcept {
        if (!mark() || orphaned()) return 0;
        return futex_wait(word_, WAITED, deadline, false);
    }

  private:
    // An owner is a thread, and the number of the change that made it the owner: each has an `inside` of its own, so
    // that a late store of a former owner has no effect.
    static constexpr uint32_t max_changes = 16, times_at_first = 8;
    static constexpr uintptr_t change_mask = max_changes - 1;
    // glibc's pthread_t is the address of the thread's control block, aligned to 64 bytes.
    static uintptr_t self() noexcept { return static_cast<uintptr_t>(pthread_self()); }

    // Has the holder of the word held it often enough, one time after the other?
    bool becomes_owner() noexcept {
        if (std::exchange(latest_, self()) != self()) times_ = 0;
        return changes_ == 0 || times_ > times_at_first << changes_ || ++times_ > times_at_first << changes_;
    }

    // This thread has the word. False: the owner was inside and now has the word.
    bool take_bias_away() noexcept {
        uintptr_t owner = owner_.load(std::memory_order_seq_cst);
        if (owner == 0 || (owner & ~change_mask) == self()) return true;
        std::atomic<uint32_t> &inside = inside_[owner & change_mask];
        changes_++;
        transfer_.store(self(), std::memory_order_seq_cst);
        // Unless settle() has accepted it already, and another thread has become the owner.
        owner_.compare_exchange_strong(owner, 0, std::memory_order_seq_cst);
        process_barrier();
        // acquire: pairs with unlock(); the owner's last section is seen.
        while (inside.load(std::memory_order_acquire) != 0 && transfer_.load(std::memory_order_seq_cst) == self())
            sched_yield();
        uintptr_t mine = self();
        return transfer_.compare_exchange_strong(mine, 0, std::memory_order_seq_cst);
    }

    alignas(64) std::atomic<uintptr_t> owner_{0}; // the thread that enters by bias; none at first
    std::atomic<uint32_t> *biased_ = nullptr;     // of the holder: how it has entered
    std::atomic<uint32_t> inside_[max_changes] = {};
    std::atomic<uintptr_t> transfer_{0}; // the thread that offers the word to the owner
    std::atomic<uint32_t> word_{FREE};
    // Of the holder of the word.
    uint32_t changes_ = 0, times_ = 0;
    uintptr_t latest_ = 0; // that held it
};

} // namespace muster
