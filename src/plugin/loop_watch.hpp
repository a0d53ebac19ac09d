// SPDX-License-Identifier: MIT
#pragma once
// Timers and watched descriptors of the loop. Their libuv handles outlive them until the loop has closed them.
#include "context/context.hpp"

#include <functional>
#include <memory>

namespace muster {

// Loop thread only. Stops when destroyed.
class LoopTimer {
  public:
    // `due` may destroy the timer.
    LoopTimer(Context &context, std::function<void()> due);
    ~LoopTimer();
    LoopTimer(const LoopTimer &) = delete;
    LoopTimer &operator=(const LoopTimer &) = delete;
    void start(int64_t after_ns, int64_t repeat_ns) noexcept;

  private:
    struct Handle;
    Handle *handle_;
};

// Loop thread only. Stops when destroyed, which `ready` may do; the descriptor must live until then.
class LoopPoll {
  public:
    // `ready` gets UV_READABLE, UV_WRITABLE, UV_DISCONNECT bits; all of them when the descriptor failed.
    static Result<std::unique_ptr<LoopPoll>> make(Context &context, int fd, std::function<void(int)> ready);
    ~LoopPoll();
    LoopPoll(const LoopPoll &) = delete;
    LoopPoll &operator=(const LoopPoll &) = delete;
    void want(int events) noexcept; // 0 pauses

  private:
    struct Handle;
    LoopPoll() noexcept = default;
    Handle *handle_ = nullptr;
};

} // namespace muster
