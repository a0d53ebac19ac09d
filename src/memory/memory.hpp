// SPDX-License-Identifier: MIT
#pragma once
// Global memory: the segments of the locales of this host, mapped in this process, and the way to the others.
#include "base/fork.hpp"
#include "group/group.hpp"
#include "memory/epoch_rounds.hpp"
#include "memory/heap.hpp"
#include "memory/remote.hpp"
#include "transport/segment.hpp"

#include <mutex>
#include <vector>

namespace muster {

// Any thread.
class Memory final : public Object {
  public:
    static Result<Ref<Memory>> open(Group &group, MemoryShape shape, Deadline &deadline);

    const MemoryShape shape;
    const MemoryNodes nodes;
    Group &group() const noexcept { return *group_; }
    bool forked() const noexcept { return group_->forked(); }
    uint32_t locale() const noexcept { return group_->rank(); }

    bool is_here(uint32_t locale) const noexcept { return bases_[locale] != 0; }
    bool has_remote() const noexcept { return remote_ != nullptr; } // locales that are elsewhere
    RemoteLocales &remote() noexcept { return *remote_; }
    // Is this a place in a segment, wherever that is?
    bool has(muster_gptr pointer, uint64_t bytes) const noexcept;
    // Null: nil, no such locale, not mapped here, or beyond the segment. Sizes and offsets are those of the caller.
    unsigned char *address(muster_gptr pointer, uint64_t bytes) const noexcept;
    const uint64_t *view_bases() const noexcept { return view_bases_.data(); } // for the lower bits of pointers
    Heap heap(uint32_t locale) const noexcept;                                 // which is here
    Result<uint64_t> allocate_symmetric(uint64_t bytes, uint64_t alignment, Deadline &deadline);
    uint64_t symmetric_used() const noexcept { return symmetric_.load(std::memory_order_relaxed); }
    Result<muster_epoch *> epoch();
    EpochRounds *rounds() noexcept { return rounds_.load(std::memory_order_acquire); } // null: there are none
    // Frees the objects of a token whose time has come, at their owners. OK, AGAIN: a limit was reached, or a failure.
    Status reclaim(muster_epoch_token *token, uint32_t max_objects, uint64_t max_ns, uint32_t &out_freed) noexcept;
    // Waits for the time of all objects of a token, and frees them.
    Status clear(muster_epoch_token *token, Deadline &deadline, uint64_t &out_freed) noexcept;
    void host_release() noexcept;
    Status run(const muster_memory_operation &what, int64_t timeout_ns, muster_memory_result &out) noexcept;
    Status run_here(const muster_memory_operation &what, muster_memory_result &out) noexcept; // on a mapped target
    Status check(const muster_memory_operation &what) const noexcept; // ARG, or OK; wherever the target is
    Status begin(const muster_memory_operation &what, muster_memory_result *out, Queue *queue, uint64_t tag);

  private:
    Memory(Group &group, const MemoryShape &what, MemoryNodes where, Segment mapped);
    ~Memory() override;
    void write_metrics(MetricsWriter &writer);
    unsigned char *base() const noexcept { return static_cast<unsigned char *>(mapped_.mapping); }
    Result<void> lay_out();
    static Result<Segment> share(Group &group, const MemoryShape &shape, const MemoryNodes &nodes, Deadline &deadline);

    const Ref<Group> group_;
    const Segment mapped_;
    std::vector<uint64_t> bases_, view_bases_;
    std::vector<SegmentHead *> heads_;                     // of the locales that are here
    std::atomic<uint64_t> symmetric_{memory_first_offset}; // written under lock_
    std::mutex lock_;                                      // held during a symmetric allocation
    std::mutex epoch_lock_;
    muster_epoch *epoch_ = nullptr; // under epoch_lock_; opened once
    Ref<EpochRounds> kept_rounds_;
    std::atomic<EpochRounds *> rounds_{nullptr}; // release: it is complete
    std::unique_ptr<RemoteLocales> remote_;      // first to end: its handlers use the rest
    MetricsNode<Memory, &Memory::write_metrics> metrics_{*this};
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
