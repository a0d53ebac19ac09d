// SPDX-License-Identifier: MIT
#pragma once
// Calls the host's wake function when a queue's descriptor turns readable.
#include "base/fd.hpp"
#include "context/context.hpp"

#include <muster/queue.h>

#include <mutex>
#include <uv.h>

namespace muster {

// Any thread, unless a member says otherwise. The loop watches an epoll descriptor that holds the queue's own while
// there is a function, edge-triggered: the host need not have drained the queue for the loop to sleep again.
class WakeWatch final : public Object {
  public:
    static Result<Ref<WakeWatch>> create(Context &context, int queue_fd);

    // Returns when no call of the earlier function is running, and none will start.
    Result<void> set(muster_wake_fn wake, void *user) noexcept;
    void stop(Context &context) noexcept; // for good

  private:
    friend class WakeWatches;
    WakeWatch(Fd epoll, int queue_fd) noexcept : epoll_(std::move(epoll)), queue_fd_(queue_fd) {}
    Result<void> start(Context &context);
    void ready() noexcept;        // loop thread
    void close_handle() noexcept; // loop thread

    std::mutex lock_; // held while the function runs; only set() waits for it
    muster_wake_fn wake_ = nullptr;
    void *user_ = nullptr;
    const Fd epoll_;
    const int queue_fd_; // the queue's; it sets no function any more before it goes

    // Loop thread only.
    uv_poll_t handle_{};
    class WakeWatches *list_ = nullptr;
    WakeWatch *next_ = nullptr, *prev_ = nullptr;
};

} // namespace muster
