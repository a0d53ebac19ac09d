// SPDX-License-Identifier: MIT
#pragma once
// Calls the host's wake function when a queue's descriptor turns readable.
#include "base/fd.hpp"
#include "context/context.hpp"

#include <muster/queue.h>

#include <mutex>
#include <uv.h>

namespace muster {

// Any thread, unless a member says otherwise. The loop watches an epoll descriptor that holds the queue's own,
// edge-triggered: the host need not have drained the queue for the loop to sleep again.
class WakeWatch final : public Object {
  public:
    static Result<Ref<WakeWatch>> create(Context &context, int inner_fd);

    // Returns when no call of the earlier function is running, and none will start.
    void set(muster_wake_fn wake, void *user) noexcept;
    Result<void> start(Context &context); // begins to watch
    void stop(Context &context) noexcept; // for good; set(nullptr) first

  private:
    friend class WakeWatches;
    explicit WakeWatch(Fd epoll) noexcept : epoll_(std::move(epoll)) {}
    void ready() noexcept;        // loop thread
    void close_handle() noexcept; // loop thread

    std::mutex lock_; // held while the function runs; only set() waits for it
    muster_wake_fn wake_ = nullptr;
    void *user_ = nullptr;
    Fd epoll_;

    // Loop thread only.
    uv_poll_t handle_{};
    class WakeWatches *list_ = nullptr;
    WakeWatch *next_ = nullptr, *prev_ = nullptr;
};

} // namespace muster
