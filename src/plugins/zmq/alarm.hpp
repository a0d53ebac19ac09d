// SPDX-License-Identifier: MIT
#pragma once
// A timer of the loop thread that can be set without memory: a timerfd, which the loop watches from open() on.
#include <muster/plugin.h>

namespace star {

// Loop thread only.
class Alarm {
  public:
    // `ring` is called on the loop thread, once for each set(). It may set the alarm again.
    Alarm(const muster_host *host, void (*ring)(void *user), void *user) noexcept;
    ~Alarm();
    Alarm(const Alarm &) = delete;
    Alarm &operator=(const Alarm &) = delete;

    muster_status open() noexcept; // MUSTER_OK, MUSTER_E_LIMIT: no descriptor, or a status of muster_host::watch_fd
    void set(int64_t after_ns) noexcept; // in place of what was set before
    void clear() noexcept;

  private:
    static void ready(void *self, uint32_t events);

    const muster_host *const host_;
    void (*const ring_)(void *user);
    void *const user_;
    int timer_ = -1;
    muster_watch *watch_ = nullptr;
};

} // namespace star
