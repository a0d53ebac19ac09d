// SPDX-License-Identifier: MIT
#pragma once
// Epoch-based reclamation: tokens, the global epoch, and the deferred objects.
#include "base/fork.hpp"
#include "base/time.hpp"
#include "epoch/fence.hpp"
#include "epoch/layout.hpp"
#include "queue/queue.hpp"

namespace muster {

// What a poll may do, and what it did.
struct Poll {
    uint32_t max_objects = 0;
    int64_t until_ns = 0; // 0: no limit
    uint64_t *objects = nullptr;
    uint32_t capacity = 0, count = 0, freed = 0;
    bool has_room() const noexcept {
        return freed < max_objects && (until_ns == 0 || freed == 0 || now_ns() < until_ns);
    }
};

// Advances the epoch of a manager that is part of a larger one: of the hosts of a global memory.
class EpochLeader {
  public:
    virtual void advance_soon() noexcept = 0; // any thread; it does not wait

  protected:
    ~EpochLeader() = default;
};

// Any thread; functions with a slot: one thread at a time per slot. Kept alive by the handle and each registered token.
class Epoch final : public Object, private Source {
  public:
    struct Settings {
        uint32_t flags = 0;
        uint64_t max_tokens = 0, capacity = 0;
        int fd = -1;
        uint64_t offset = 0;
        Ref<Queue> queue;
        uint64_t tag = 0;
    };
    static Result<Ref<Epoch>> make(Settings settings);
    static Result<Ref<Epoch>> open(Settings settings);
    muster_epoch *handle() const noexcept { return reinterpret_cast<muster_epoch *>(home_); }
    bool forked() const noexcept { return mark_.forked(); }
    bool is_shared() const noexcept { return (flags_ & MUSTER_EPOCH_SHARED) != 0; }
    int32_t process() const noexcept { return process_; }
    void host_release() noexcept;

    Result<EpochSlot *> register_token();
    Status unregister_token(EpochSlot &slot) noexcept;
    static Epoch *manager_of(const EpochSlot &slot) noexcept;

    uint64_t now() const noexcept { return header_->epoch.load(std::memory_order_acquire); }
    Status advance(muster_epoch_attempt &out) noexcept;
    // A manager that is led does not advance by itself (docs/adr/0020-*.md, tests/models/distributed_epoch.pml): it has
    // the epoch with which tokens are pinned, and one with which objects are stamped, which is never smaller anywhere.
    // lead(): after make(), before any token; it stays so. set_leader(): of this process; none: nothing advances it.
    void lead() noexcept;
    void set_leader(EpochLeader *leader) noexcept { leader_.store(leader, std::memory_order_release); }
    void raise(uint64_t epoch, uint64_t stamps) noexcept;          // to at least these
    bool scan(uint64_t epoch, muster_epoch_attempt &out) noexcept; // no token is pinned before `epoch`
    void protect(EpochSlot &slot, uint32_t hazard, uint64_t object) noexcept;
    Status defer(EpochSlot &slot, const DeferredObject &what) noexcept;
    void seal(EpochSlot &slot) noexcept;
    Status poll(EpochSlot &slot, Poll &poll) noexcept;
    Status synchronize(EpochSlot &slot, Deadline &deadline, muster_epoch_attempt &out) noexcept;
    Status barrier(EpochSlot &slot, Deadline &deadline) noexcept;
    Status clear(uint64_t &freed) noexcept;
    void stats(muster_epoch_stats &out) noexcept;

  private:
    explicit Epoch(Settings settings) noexcept;
    ~Epoch() override;
    Object &owner() noexcept override { return *this; }
    Result<void> map(int fd, uint64_t offset, uint64_t bytes);
    void place(uint64_t tokens) noexcept;
    void enter() noexcept;

    EpochSlot &slot(uint64_t index) noexcept { return slots_[index]; }
    uint32_t index_of(const EpochSlot &slot) const noexcept { return static_cast<uint32_t>(&slot - slots_); }
    uint32_t used_tokens() const noexcept { return header_->used_tokens.load(std::memory_order_acquire); }
    uint32_t *bag_table(const EpochSlot &slot) noexcept {
        return numbers_ + index_of(slot) * (table_entries_ + epoch_bags(capacity_));
    }
    uint32_t &bag_of(const EpochSlot &slot, uint64_t position) noexcept {
        return bag_table(slot)[position / bag_objects & (table_entries_ - 1)];
    }
    DeferredObject &entry(const EpochSlot &slot, uint64_t position) noexcept {
        const uint64_t bag = index_of(slot) * epoch_bags(capacity_) + bag_of(slot, position);
        return objects_[bag * bag_objects + position % bag_objects];
    }
    void take_bag(EpochSlot &slot, uint64_t tail) noexcept;
    DeferredObject pop(EpochSlot &slot) noexcept;
    void find_free_bags(EpochSlot &slot) noexcept;
    bool claim(EpochSlot &slot, uint64_t seen) noexcept;
    void become(EpochSlot &slot, uint32_t state) noexcept;
    void abandon(EpochSlot &slot) noexcept;
    bool take_from_dead(EpochSlot &slot) noexcept;
    void look_for_dead() noexcept;
    bool can_die() const noexcept { return is_shared() || header_->is_thread_bound != 0; }
    bool is_led() const noexcept { return header_->is_led.load(std::memory_order_relaxed) != 0; }
    uint64_t stamp_now() noexcept;
    void find_blocking(EpochSlot &slot, uint64_t epoch, muster_epoch_attempt &out) noexcept;

    bool push(EpochSlot &slot, const DeferredObject &what) noexcept;
    void refresh_ripe(EpochSlot &slot) noexcept;
    bool is_protected(uint64_t object) noexcept;
    bool free_first(EpochSlot &slot, Poll &poll) noexcept;
    bool free_ripe(EpochSlot &slot, Poll &poll) noexcept;
    bool free_orphans(Poll &poll) noexcept;
    uint64_t free_all_functions(EpochSlot &slot) noexcept;

    const uint32_t flags_;
    const uint64_t capacity_wanted_;
    Ref<Queue> queue_;
    const uint64_t tag_;
    const ForkMark mark_;
    const int32_t process_;
    uint64_t process_start_ = 0;
    Fence fence_ = Fence::per_pin;
    std::atomic<EpochLeader *> leader_{nullptr}; // release: it is complete
    uint64_t capacity_ = 0, max_tokens_ = 0, mapped_bytes_ = 0;
    EpochHome *home_ = nullptr;
    EpochHeader *header_ = nullptr;
    EpochSlot *slots_ = nullptr;
    uint64_t table_entries_ = 0;
    uint32_t *numbers_ = nullptr;
    DeferredObject *objects_ = nullptr;
};

// Null if the handle was released.
inline Epoch *unwrap(muster_epoch *handle) noexcept {
    return handle == nullptr ? nullptr : reinterpret_cast<EpochHome *>(handle)->handle.load(std::memory_order_acquire);
}

} // namespace muster
