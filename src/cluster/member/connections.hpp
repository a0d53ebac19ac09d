// SPDX-License-Identifier: MIT
#pragma once
// The limit on the connections that a cluster has open in this process, and a slot for each of them.
#include "base/object.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace muster {

// Any thread.
class ConnectionLimit final : public Object {
  public:
    // 0: as many as this process may open descriptors for.
    explicit ConnectionLimit(uint32_t max) noexcept;
    uint32_t max() const noexcept { return max_; }
    bool given() const noexcept { return given_; } // by the host
    // A slot for one more connection, released with its last reference; none: all are in use. `links` slots are
    // reserved for the library's own links. One thread.
    Ref<Object> acquire(size_t links);
    bool has_room(size_t links) const noexcept { return links + taken_.load(std::memory_order_relaxed) < max_; }

  private:
    friend class ConnectionSlot;
    const bool given_;
    const uint32_t max_;
    std::atomic<uint32_t> taken_{0}; // relaxed: only a count
};

} // namespace muster
