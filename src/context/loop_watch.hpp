// SPDX-License-Identifier: MIT
#pragma once
// Timers and watched descriptors that call function objects, for users with a variable number of them.
#include "context/loop.hpp"

#include <functional>

namespace muster {

// Loop thread only. Stops when destroyed.
class LoopTimer {
  public:
    // `due` may destroy the timer.
    LoopTimer(Loop &loop, std::function<void()> due);
    ~LoopTimer();
    LoopTimer(const LoopTimer &) = delete;
    LoopTimer &operator=(const LoopTimer &) = delete;
    void start(int64_t after_ns, int64_t repeat_ns) noexcept; // again, if it is running; repeat_ns 0: once

  private:
    class State;
    const Ref<State> state_;
};

// A level-triggered watch. Loop thread only. Stops when destroyed, which `ready` may do; the descriptor must stay open
// until then.
class LoopWatch {
  public:
    // `ready` receives EPOLLIN, EPOLLOUT, EPOLLRDHUP bits; all of them when the descriptor failed.
    static Result<std::unique_ptr<LoopWatch>> make(Loop &loop, int fd, std::function<void(uint32_t)> ready);
    ~LoopWatch();
    LoopWatch(const LoopWatch &) = delete;
    LoopWatch &operator=(const LoopWatch &) = delete;
    void set_events(uint32_t events) noexcept; // 0, as at first: paused

  private:
    class State;
    LoopWatch() noexcept = default;
    Ref<State> state_;
};

} // namespace muster
