// SPDX-License-Identifier: MIT
#pragma once
// Segments of 256 KiB for receiving and staging, kept for reuse: a fresh one costs 64 page faults.
#include "base/object.hpp"

#include <cstddef>
#include <cstdlib>
#include <mutex>

namespace muster {

// Any thread.
class SegmentPool final : public Object {
  public:
    static constexpr size_t segment_bytes = 256 * 1024;
    static constexpr size_t max_kept = 32;

    void *take() noexcept {
        {
            const std::lock_guard hold(lock_);
            if (count_ != 0) return free_[--count_];
        }
        return std::aligned_alloc(4096, segment_bytes);
    }
    void give(void *segment) noexcept {
        {
            const std::lock_guard hold(lock_);
            if (segment != nullptr && count_ < max_kept) {
                free_[count_++] = segment;
                return;
            }
        }
        std::free(segment);
    }

  private:
    ~SegmentPool() override {
        while (count_ != 0) std::free(free_[--count_]);
    }

    std::mutex lock_; // guards the rest
    size_t count_ = 0;
    void *free_[max_kept];
};

} // namespace muster
