// SPDX-License-Identifier: MIT
#pragma once
#include "context/context.hpp"

namespace muster {

// Ends this process at the request of the host: SIGTERM from the thread of the context, and SIGKILL after the grace
// period, from the kernel, or from that thread if the kernel has no timer left. These are the only signals that Muster
// ever sends to its own process. Loop thread, unless a member says otherwise.
class SelfEnd final : public Object {
  public:
    SelfEnd(Context &context, int64_t grace_ns) noexcept : context_(context), grace_ns_(grace_ns) {}
    void begin() noexcept;
    bool post() noexcept { return begin_.post(context_); } // begin() on the loop thread; any thread

  private:
    void kill() noexcept;
    Context &context_;
    const int64_t grace_ns_;
    PostedTask<SelfEnd, &SelfEnd::begin> begin_{*this};
    Timer<SelfEnd, &SelfEnd::kill> grace_{*this}; // keeps the object
};

// Any thread.
void end_self(Context &context, int64_t grace_ns) noexcept;

} // namespace muster
