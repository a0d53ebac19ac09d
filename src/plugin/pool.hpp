// SPDX-License-Identifier: MIT
#pragma once
// Segments of 256 KiB for receiving and staging, kept for reuse: a fresh one costs 64 page faults.
#include <cstddef>
#include <cstdlib>
#include <vector>

namespace muster {

// Loop thread only.
class SegmentPool {
  public:
    static constexpr size_t segment_bytes = 256 * 1024;
    static constexpr size_t most_kept = 32;

    SegmentPool() = default;
    SegmentPool(const SegmentPool &) = delete;
    SegmentPool &operator=(const SegmentPool &) = delete;
    ~SegmentPool() {
        for (void *segment : free_) std::free(segment);
    }
    void *take() noexcept {
        if (free_.empty()) return std::aligned_alloc(4096, segment_bytes);
        void *segment = free_.back();
        free_.pop_back();
        return segment;
    }
    void give(void *segment) noexcept {
        if (segment == nullptr) return;
        try {
            if (free_.size() < most_kept) {
                free_.push_back(segment);
                return;
            }
        } catch (...) { // no room to remember it: let it go
        }
        std::free(segment);
    }

  private:
    std::vector<void *> free_;
};

} // namespace muster
