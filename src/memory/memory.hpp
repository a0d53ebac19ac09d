// SPDX-License-Identifier: MIT
#pragma once
// Global memory: the segments of all locales of a host, mapped in this process.
#include "base/fork.hpp"
#include "group/group.hpp"
#include "memory/heap.hpp"
#include "transport/segment.hpp"

#include <mutex>
#include <vector>

namespace muster {

// Any thread.
class Memory final : public Object {
  public:
    static Result<Ref<Memory>> open(Group &group, MemoryShape shape, Deadline &deadline);

    const MemoryShape shape;
    Group &group() const noexcept { return *group_; }
    bool forked() const noexcept { return group_->forked(); }
    uint32_t locale() const noexcept { return group_->rank(); }

    // Null: nil, no such locale, or beyond the segment. Sizes and offsets are those of the caller.
    unsigned char *address(muster_gptr pointer, uint64_t bytes) const noexcept;
    const uint64_t *bases() const noexcept { return bases_.data(); }
    Heap heap(uint32_t locale) const noexcept;
    Result<uint64_t> allocate_symmetric(uint64_t bytes, uint64_t alignment, Deadline &deadline);
    uint64_t symmetric_used() const noexcept { return symmetric_.load(std::memory_order_relaxed); }
    Result<muster_epoch *> epoch();
    Status run(const muster_memory_operation &operation, muster_memory_result &out) noexcept;

  private:
    Memory(Group &group, const MemoryShape &what, Segment mapped)
        : shape(what), group_(&group), mapped_(std::move(mapped)), bases_(what.locales) {
        const uint64_t first = reinterpret_cast<uintptr_t>(base()) + what.segments_at(); // found once: it takes time
        for (uint32_t r = 0; r < what.locales; r++) bases_[r] = first + r * what.segment_bytes;
    }
    ~Memory() override { muster_epoch_release(epoch_); }
    unsigned char *base() const noexcept { return static_cast<unsigned char *>(mapped_.mapping); }
    Result<void> lay_out();
    static Result<Segment> share(Group &group, const MemoryShape &shape, Deadline &deadline);

    const Ref<Group> group_;
    const Segment mapped_;
    std::vector<uint64_t> bases_;
    std::atomic<uint64_t> symmetric_{memory_first_offset}; // written under lock_
    std::mutex lock_;                                      // held during a symmetric allocation
    std::mutex epoch_lock_;
    muster_epoch *epoch_ = nullptr; // under epoch_lock_; opened once
};

inline Memory *unwrap(muster_memory *handle) noexcept {
    return reinterpret_cast<Memory *>(handle);
}
inline const Memory *unwrap(const muster_memory *handle) noexcept {
    return reinterpret_cast<const Memory *>(handle);
}
inline muster_memory *wrap(Memory *object) noexcept {
    return reinterpret_cast<muster_memory *>(object);
}

} // namespace muster
