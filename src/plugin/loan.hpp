// SPDX-License-Identifier: MIT
#pragma once
// Memory of a plug-in that contains a received message, until the last reader has read it.
#include "base/object.hpp"
#include "plugin/pool.hpp"

#include <muster/plugin.h>

namespace muster {

// Immutable after construction; the last reference that is released returns the memory, on any thread.
class Loan final : public Object {
  public:
    // `pool`: to which a segment is returned, if the plug-in names no function. It may outlive the context.
    Loan(const muster_loan &loan, SegmentPool &pool) noexcept
        : size_bytes_(loan.size_bytes), memory_(loan.memory), hint_(loan.hint), release_(loan.release),
          pool_(loan.release == nullptr ? &pool : nullptr) {}

    uint64_t size_bytes() const noexcept { return size_bytes_; }

  private:
    ~Loan() override {
        if (release_ != nullptr)
            release_(memory_, hint_);
        else
            pool_->give(memory_);
    }

    const uint64_t size_bytes_;
    void *const memory_, *const hint_;
    void (*const release_)(void *memory, void *hint);
    const Ref<SegmentPool> pool_;
};

} // namespace muster
