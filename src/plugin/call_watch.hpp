// SPDX-License-Identifier: MIT
#pragma once
// Detects plug-in functions that do not return: the thread that they block cannot report that, so one thread of the
// process, `muster-watch`, checks once a second while plug-ins are called, and sleeps otherwise. It is started with the
// first plug-in.
#include "base/list.hpp"
#include "context/context.hpp"

#include <atomic>

namespace muster {

// The function of a plug-in that runs on the thread of its context; part of the plug-in.
class CallMark final : public Listed<CallMark> {
  public:
    CallMark(Context &context, const char *plugin);
    ~CallMark();
    CallMark(const CallMark &) = delete;
    CallMark &operator=(const CallMark &) = delete;

    static constexpr int64_t slow_ns = 1'000'000'000;

    // ---- the context's thread ----
    struct Inside {
        const char *what; // a literal; null: in none
        int64_t since_ns;
    };
    Inside begin(const char *what, int64_t now_ns) noexcept; // returns the function that called it
    void end(const Inside &before) noexcept;

  private:
    friend class CallWatch;
    class CallWatch &watch_;
    Context &context_;
    const char *const plugin_;
    // The time is written first, so that a function is never seen with the time of the one before it. seq_cst: see
    // CallWatch::wake().
    std::atomic<int64_t> since_ns_{0};
    std::atomic<const char *> what_{nullptr};
    int64_t logged_since_ns_ = 0, log_after_ns_ = 0; // the watching thread's
};

} // namespace muster
