// SPDX-License-Identifier: MIT
#pragma once
#include "context/context.hpp"

#include <muster/queue.h>

#include <mutex>

namespace muster {

// Calls the wake function of the host when the descriptor of a queue becomes readable. The loop watches that descriptor
// while there is a function, edge-triggered: the host need not have drained the queue for the loop to sleep again. Any
// thread.
class WakeWatch final : public Object, private Watch {
  public:
    // `queue_fd`: the queue's, which sets no function any more before it closes it.
    WakeWatch(Loop &loop, int queue_fd) noexcept : loop_(loop), queue_fd_(queue_fd) {}

    // Returns when no call of the earlier function is running, and none will start. NULL: no function. One call at a
    // time.
    Result<void> set(muster_wake_fn wake, void *user) noexcept;

  private:
    void on_events(uint32_t epoll_events) noexcept override;
    Object &watch_owner() noexcept override { return *this; }

    Loop &loop_;
    const int queue_fd_;
    std::mutex lock_; // held while the function runs; only set() waits for it. Guards the rest.
    muster_wake_fn wake_ = nullptr;
    void *user_ = nullptr;
};

} // namespace muster
