// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>
#include <ctime>

namespace muster {

inline int64_t now_ns() noexcept {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// A `timeout_ns` turned into a point in time, at the first moment that needs one (a clock read costs 23 ns).
class Deadline {
  public:
    explicit Deadline(int64_t timeout_ns) noexcept : timeout_(timeout_ns) {}
    // At a point in time; INT64_MAX: endless.
    static Deadline until(int64_t at_ns) noexcept {
        Deadline made(at_ns == INT64_MAX ? -1 : 1);
        made.at_ = at_ns;
        return made;
    }
    int64_t timeout_ns() const noexcept { return timeout_; }
    bool look_once() const noexcept { return timeout_ == 0; }
    bool endless() const noexcept { return timeout_ < 0; }
    // Absolute CLOCK_MONOTONIC nanoseconds; only for deadlines that are not endless.
    int64_t at() noexcept {
        if (at_ == 0) {
            const int64_t now = now_ns();
            at_ = timeout_ > INT64_MAX - now ? INT64_MAX : now + timeout_;
        }
        return at_;
    }
    // Nanoseconds left, never negative; -1 when endless.
    int64_t left() noexcept {
        if (endless()) return -1;
        const int64_t left = at() - now_ns();
        return left > 0 ? left : 0;
    }
    bool passed() noexcept { return !endless() && left() == 0; }

  private:
    int64_t timeout_;
    int64_t at_ = 0;
};

} // namespace muster
