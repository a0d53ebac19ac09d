// SPDX-License-Identifier: MIT
#pragma once
// How often something took how long: counts of durations in buckets whose limits are powers of four of a microsecond.
// Any thread; an observation is two relaxed additions, and the clock is read by the caller.
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace muster {

class Histogram {
  public:
    static constexpr size_t buckets = 14; // up to 1 us, 4 us, ... 67 s; one more for what took longer
    static constexpr int64_t limit_ns(size_t bucket) noexcept { return int64_t{1000} << (2 * bucket); }

    void observe(int64_t ns) noexcept {
        const uint64_t us = ns > 1000 ? (static_cast<uint64_t>(ns) - 1) / 1000 : 0; // 0: up to 1 us
        const size_t bucket = (static_cast<size_t>(std::bit_width(us)) + 1) / 2;
        counts_[bucket < buckets ? bucket : buckets].fetch_add(1, std::memory_order_relaxed);
        sum_ns_.fetch_add(ns > 0 ? static_cast<uint64_t>(ns) : 0, std::memory_order_relaxed);
    }
    uint64_t count_in(size_t bucket) const noexcept { return counts_[bucket].load(std::memory_order_relaxed); }
    double seconds() const noexcept { return static_cast<double>(sum_ns_.load(std::memory_order_relaxed)) * 1e-9; }

  private:
    std::array<std::atomic<uint64_t>, buckets + 1> counts_{};
    std::atomic<uint64_t> sum_ns_{0};
};

} // namespace muster
