// SPDX-License-Identifier: MIT
#pragma once
// The heap in a segment; any thread of any process that has mapped it.
#include "base/result.hpp"
#include "memory/layout.hpp"

namespace muster {

// A view: no state of its own. Lock-free: an exchange fails only if another thread has changed the list. A process that
// is killed between taking a block and returning it loses that block.
class Heap {
  public:
    Heap(SegmentHead &head, unsigned char *segment, uint64_t begin, uint64_t end) noexcept
        : head_(head), segment_(segment), begin_(begin), end_(end) {}
    void initialise() noexcept { head_.fresh.store(begin_, std::memory_order_relaxed); }
    Status allocate(uint64_t bytes, uint64_t &out_offset) noexcept; // OK, AGAIN, LIMIT
    Status release(uint64_t offset) noexcept;                       // OK, ARG, STALE
    void stats(muster_memory_stats &out) const noexcept;

  private:
    BlockHead &block(uint64_t at) const noexcept { return *reinterpret_cast<BlockHead *>(segment_ + at); }
    bool is_block(uint64_t at, uint32_t which) const noexcept;
    uint64_t take(uint32_t which) noexcept;
    uint64_t make(uint32_t which) noexcept;

    SegmentHead &head_;
    unsigned char *const segment_;
    const uint64_t begin_, end_;
};

} // namespace muster
