// SPDX-License-Identifier: MIT
#pragma once
// Growing pauses between attempts. Plug-ins use it, too: it needs only the standard library.
#include <algorithm>
#include <cstdint>

namespace muster {

// Exponential back-off: the first pause is the minimum, each further one twice the previous one, up to the maximum.
// A value; one thread at a time.
class BackOff {
  public:
    constexpr BackOff(int64_t min_ns, int64_t max_ns) noexcept : min_ns_(min_ns), max_ns_(max_ns) {}

    // The pause before the next attempt.
    constexpr int64_t next_ns() noexcept { return pause_ns_ = std::clamp(2 * pause_ns_, min_ns_, max_ns_); }
    // With jitter: up to half of the pause more, determined by a random number of the caller. For peers that lose the
    // same server at the same moment, so that they do not all reconnect at the same moment.
    constexpr int64_t next_ns(uint64_t random) noexcept {
        const int64_t pause_ns = next_ns();
        return pause_ns + static_cast<int64_t>(random % static_cast<uint64_t>(pause_ns / 2 + 1));
    }
    // The latest pause of next_ns(), without jitter; 0 before the first one and after reset().
    constexpr int64_t current_ns() const noexcept { return pause_ns_; }
    constexpr int64_t max_ns() const noexcept { return max_ns_; }
    // After an attempt that succeeded: the next pause is the minimum again.
    constexpr void reset() noexcept { pause_ns_ = 0; }

  private:
    int64_t min_ns_, max_ns_, pause_ns_ = 0;
};

} // namespace muster
