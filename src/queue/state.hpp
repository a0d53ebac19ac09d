// SPDX-License-Identifier: MIT
#pragma once
// The inside of a queue. Private to this room.
#include "base/awake.hpp"
#include "base/fd.hpp"
#include "queue/parking.hpp"
#include "queue/queue.hpp"
#include "queue/wake.hpp"

#include <condition_variable>
#include <mutex>
#include <pthread.h>
#include <sys/epoll.h>
#include <unordered_map>

namespace muster {

// A descriptor of the host in a queue, armed for one event by each call. Its own owner.
class HostDescriptor final : public Object, public Source {
  public:
    uint32_t on_fd(uint32_t events) noexcept override {
        return (events & EPOLLIN ? uint32_t{MUSTER_QUEUE_FD_READABLE} : 0u) |
               (events & EPOLLOUT ? uint32_t{MUSTER_QUEUE_FD_WRITABLE} : 0u) |
               (events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP) ? uint32_t{MUSTER_QUEUE_FD_ENDED} : 0u);
    }
    Object &owner() noexcept override { return *this; }
};

// Every member is under `lock` unless it says otherwise. How sleepers are notified of entries: parking.hpp.
struct Queue::State {
    struct Node {
        Entry entry;
        uint64_t order = 0;
        Node *next = nullptr;
    };
    struct FdWatch {
        Source *source;
        uint32_t generation; // distinguishes an event of this watch from one of an earlier owner of the number
    };
    enum class Take { none, taken, refused };
    // In the place of a descriptor and its generation; no descriptor is so high.
    static constexpr uint64_t source_key = UINT64_MAX, end_key = UINT64_MAX - 1;

    State() = default;
    State(const State &) = delete;
    State &operator=(const State &) = delete;
    ~State();
    Result<void> open(const Context &context, uint32_t capacity);

    // --- with the lock held ---
    bool holds_any() const noexcept { return first != nullptr || ready_first != nullptr; }
    bool add_spare() noexcept;
    void push(Entry &&entry) noexcept; // uses a spare node
    Take take(Entry &out, bool tabled_only) noexcept;
    Node *take_all() noexcept; // out of the list
    void link(Source &source, uint32_t events) noexcept;
    void unlink(Source &source) noexcept;
    void show_to_pollers(std::unique_lock<std::mutex> &hold) noexcept; // arms, or signals when the queue is not empty

    void enlist(QueueUser &user) noexcept;
    void delist(QueueUser &user, std::unique_lock<std::mutex> &hold) noexcept; // waits for its end_operations()

    // --- without ---
    void signal() noexcept;
    Status wait(Context &context, Deadline &deadline, Entry &out, bool tabled_only) noexcept;
    int look_awake(struct epoll_event *events, Deadline &deadline, uint32_t turns, Looks &looks) noexcept;
    void remember(Source &source) noexcept; // puts the source into `recent`; with the lock held
    int harvest(std::unique_lock<std::mutex> &hold, Deadline *deadline) noexcept;
    void serve_fd(std::unique_lock<std::mutex> &hold, uint64_t key, uint32_t events) noexcept;
    void leave(bool harvested, std::unique_lock<std::mutex> &hold) noexcept;

    std::mutex lock;
    Fd inner, event_source; // set once
    uint32_t capacity = 0;

    Node *first = nullptr, *last = nullptr, *spare = nullptr;
    uint32_t depth = 0, reserved = 0, spares = 0;
    Source *ready_first = nullptr, *ready_last = nullptr;
    uint32_t ready_count = 0;
    uint64_t order = 0; // of arrival, entries and ready sources together
    uint32_t taken_since_look = 0;
    Awake<192, 8, 0> awake; // turns are polls of the descriptors; of the leader, also without the lock
    static constexpr size_t recent_sources = 4;
    Source *recent[recent_sources] = {}; // the last ones that were ready: a polling thread looks into their memory
    uint32_t next_recent = 0;
    std::atomic<uint32_t> detaching{0}; // threads that wait for `idle`; relaxed: a hint for the polling thread to stop

    Parking parking;
    std::atomic<bool> closed{false}; // parking.closed for readers without the lock; relaxed: only an early answer
    std::condition_variable followed, idle; // idle: no thread is inside on_fd() or end_operations(), or looks, any more

    std::unordered_map<int, FdWatch> watches;
    uint32_t generation = 0;
    // ending: the one inside end_operations() or cancel_operation(), called by that thread
    QueueUser *users = nullptr, *ending = nullptr;
    pthread_t ending_thread{};
    bool ended_elsewhere(const QueueUser &user) const noexcept {
        return ending == &user && !pthread_equal(ending_thread, pthread_self());
    }
    std::condition_variable ended;
    std::mutex cancel_lock; // cancel_operation(), one at a time; never taken with `lock` held
    uint64_t visits = 0;    // walks over the users

    std::mutex host_fds_lock; // guards host_fds; taken before `lock`
    std::unordered_map<int, Ref<HostDescriptor>> host_fds;

    uint64_t taken = 0, log_dropped = 0;
    std::atomic<pthread_t> taker{}; // of the last entry; relaxed: a thread compares only with itself
    std::atomic<bool> taker_known{false};
    std::atomic<uint64_t> signals{0}; // relaxed: a counter

    std::mutex wake_lock; // set_wake() and close(), one at a time; never taken with `lock` held
    Ref<WakeWatch> wake;  // under wake_lock
};

} // namespace muster
