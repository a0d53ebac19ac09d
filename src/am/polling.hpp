// SPDX-License-Identifier: MIT
#pragma once
// How long the loop thread looks for the next request before it sleeps. A request that finds it asleep waits until the
// kernel has woken it, which takes several times as long as the request itself.
#include "base/awake.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace muster {

// Loop thread. Two things end it: requests that do not follow within the time (Awake), and a processor that another
// thread needs. The latter shows as looks that are far apart. Where that takes longer than as many wake-ups as there
// were requests, polling is suspended for a number of wake-ups that doubles each time.
class Polling {
  public:
    static constexpr int64_t late_ns = 200'000; // between two looks: the thread did not have the processor

    // How long to poll after the last request; 0: not at all. To be asked once for each wake-up.
    int64_t window_ns() noexcept {
        if (suspended_ == 0) return int64_t{awake_.turns()} * turn_ns;
        suspended_--;
        return 0;
    }
    void paid() noexcept {
        awake_.paid();
        paid_since_late_++;
        if (lates_ != 0 && ++paid_since_ == paid_to_forget) lates_--, paid_since_ = 0;
    }
    void did_not() noexcept { awake_.did_not(); }
    // True: it is suspended.
    bool was_late(int64_t for_ns) noexcept {
        if (int64_t{std::exchange(paid_since_late_, 0)} * wakeup_ns > for_ns) return false;
        lates_ = std::min<uint32_t>(lates_ + 1, max_lates);
        suspended_ = wakeups_at_first << lates_;
        paid_since_ = 0;
        return true;
    }

  private:
    static constexpr int64_t turn_ns = 4'000;
    static constexpr int64_t wakeup_ns =
        50'000; // of a thread whose processor another one uses: 20 to 90 us were measured
    static constexpr uint32_t wakeups_at_first = 256, max_lates = 8, paid_to_forget = 4096;
    Awake<16, 1> awake_;
    uint32_t suspended_ = 0, lates_ = 0, paid_since_ = 0, paid_since_late_ = 0;
};

} // namespace muster
