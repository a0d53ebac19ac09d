// SPDX-License-Identifier: MIT
#pragma once
// The inside of a queue. Private to this room.
#include "base/fd.hpp"
#include "queue/queue.hpp"
#include "queue/wake.hpp"

#include <condition_variable>
#include <mutex>
#include <pthread.h>
#include <unordered_map>

namespace muster {

// Everything is under `lock` unless it says otherwise.
//
// How a sleeper learns of an entry: `armed` is set by whoever found nothing and will sleep or poll; the push that finds
// it set clears it and rings the bell (one write to an eventfd, whose edge makes `inner` readable). Pushes in between
// cost no system call. Of the threads that sleep inside next(), one is the leader and waits on `inner`; the others
// follow on a condition variable and are woken one by one, by whoever leaves.
struct Queue::State {
    struct Node {
        Entry entry;
        uint64_t order = 0;
        Node *next = nullptr;
    };
    struct FdWatch {
        Source *source;
        uint32_t generation; // tells an event of this watch from one of an earlier owner of the number
    };
    enum class Take { none, taken, refused };

    State() = default;
    State(const State &) = delete;
    State &operator=(const State &) = delete;
    ~State();
    Result<void> open(uint32_t capacity);

    // --- with the lock held ---
    bool holds_any() const noexcept { return first != nullptr || ready_first != nullptr; }
    bool add_spare() noexcept;
    void push(Entry &&entry) noexcept; // takes a spare node
    Take take(Entry &out, bool tabled_only) noexcept;
    void link(Source &source, uint32_t events) noexcept;
    void unlink(Source &source) noexcept;
    bool leader_misses() const noexcept;
    bool disarm() noexcept { return std::exchange(armed, false); }     // true: ring after unlocking
    void show_to_pollers(std::unique_lock<std::mutex> &hold) noexcept; // arms, or rings when something is there

    // --- without ---
    void ring() noexcept;
    Status wait(Context &context, Deadline &deadline, Entry &out, bool tabled_only) noexcept;
    int harvest(std::unique_lock<std::mutex> &hold, Deadline *deadline) noexcept;
    void serve_fd(std::unique_lock<std::mutex> &hold, uint64_t key, uint32_t events) noexcept;
    void leave(bool harvested, bool blocking, std::unique_lock<std::mutex> &hold) noexcept;

    std::mutex lock;
    Fd inner, bell; // set once
    uint32_t capacity = 0;

    Node *first = nullptr, *last = nullptr, *spare = nullptr;
    uint32_t depth = 0, reserved = 0, spares = 0;
    Source *ready_first = nullptr, *ready_last = nullptr;
    uint32_t ready_count = 0;
    uint64_t order = 0; // of arrival, entries and ready sources together
    uint32_t taken_since_look = 0;

    bool armed = true, leader = false, polled = false; // polled: the host has a descriptor or a wake function
    std::atomic<bool> closed{false}; // written under the lock; relaxed: readers outside only give an early answer
    uint32_t followers = 0;
    uint64_t cancels = 0, leader_cancels = 0; // calls of cancel(), ever and known to the leader
    std::condition_variable followed, idle;   // idle: nobody is inside on_fd() or end_operations() any more

    std::unordered_map<int, FdWatch> watches;
    uint32_t generation = 0;
    QueueUser *users = nullptr, *ending = nullptr; // ending: the one inside end_operations()
    std::condition_variable ended;

    uint64_t taken = 0, log_dropped = 0;
    std::atomic<pthread_t> taker{}; // of the last entry; relaxed: a thread looks for itself
    std::atomic<bool> taker_known{false};
    std::atomic<uint64_t> rings{0}; // relaxed: a figure

    std::mutex wake_lock; // set_wake() and close(), one at a time; never taken with `lock` held
    Ref<WakeWatch> wake;  // under wake_lock
};

} // namespace muster
