// SPDX-License-Identifier: MIT
#pragma once
// Calls of a plug-in's functions on the context's thread, on which all else in the context waits meanwhile.
#include "plugin/plugin.hpp"

#include <ctime>

namespace muster {

class TimedCall {
  public:
    TimedCall(Plugin &plugin, const char *what) noexcept
        : plugin_(plugin), what_(what), begun_ns_(about_now_ns()), before_(plugin.mark().begin(what, begun_ns_)) {}
    ~TimedCall() {
        plugin_.mark().end(before_);
        const int64_t took = about_now_ns() - begun_ns_;
        if (took >= CallMark::slow_ns)
            plugin_.context().log(MUSTER_LOG_WARN, "plug-in %s: %s has kept the thread of the context for %.1f s",
                                  plugin_.name(), what_, static_cast<double>(took) * 1e-9);
    }
    TimedCall(const TimedCall &) = delete;
    TimedCall &operator=(const TimedCall &) = delete;

  private:
    static int64_t about_now_ns() noexcept { // to some milliseconds, for a few nanoseconds
        timespec t;
        clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
        return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
    }
    Plugin &plugin_;
    const char *const what_;
    const int64_t begun_ns_;
    const CallMark::Inside before_;
};

// Calls one of its functions; a log record names the plug-in and the function while that takes more than a second, and
// another one when it has returned.
template <class Call>
auto timed(Plugin &plugin, const char *what, Call &&call) {
    const TimedCall time(plugin, what);
    return call();
}

} // namespace muster
