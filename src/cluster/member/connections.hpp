// SPDX-License-Identifier: MIT
#pragma once
// How many connections a cluster has open in this process: a bound, and a place for each of them.
#include "base/object.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace muster {

// Any thread.
class ConnectionLimit final : public Object {
  public:
    // 0: as many as this process may open descriptors for.
    explicit ConnectionLimit(uint32_t most) noexcept;
    uint32_t most() const noexcept { return max_; }
    bool given() const noexcept { return given_; } // by the host
    // A place for one more, given back with its last reference; none: all are taken. `links` are kept for the library's
    // own. One thread.
    Ref<Object> take(size_t links);
    bool room(size_t links) const noexcept { return links + taken_.load(std::memory_order_relaxed) < max_; }

  private:
    friend class ConnectionSlot;
    const bool given_;
    const uint32_t max_;
    std::atomic<uint32_t> taken_{0}; // relaxed: a number
};

} // namespace muster
