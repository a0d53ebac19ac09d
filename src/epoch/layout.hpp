// SPDX-License-Identifier: MIT
#pragma once
// The memory of a manager, the same in a process and in a shared segment:
//
//   page of this process | header (one page) | tokens, 512 bytes each | bags of deferred objects
//
// The deferred objects of a token are a queue in bags of 64. The bag that became empty last is filled next, so that a
// token whose objects do not wait long stays in the cache, whatever its limit is. For each token: a table with the bag
// of each 64 positions, and the stack of the bags that are free, both of 32-bit numbers; then all bags.
//
// The first page is never shared. The handle of a manager is its address, so a handle that was released can be
// recognised: the page and the tokens stay mapped, as zeros.
#include <muster/epoch.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace muster {

class Epoch;

inline constexpr size_t epoch_page = 4096;
inline constexpr uint64_t epoch_magic = 0x33'68'63'6f'70'65'6d'6d; // "mmepoch3"
inline constexpr uint32_t batch_objects = 21; // stamped together; three batches wait at most, with polls, and are < 64
inline constexpr uint32_t idle_polls_limit = 64;
inline constexpr uint32_t bag_objects = 64;
inline constexpr uint32_t hazard_slots = 8;

struct EpochHome {
    std::atomic<Epoch *> handle;  // null after muster_epoch_release()
    std::atomic<Epoch *> manager; // null after the last token was unregistered, too
};

struct EpochHeader {
    std::atomic<uint64_t> magic; // release: written when the rest is ready
    uint32_t max_tokens, capacity;
    uint32_t is_fenced, is_thread_bound;
    uint64_t id_namespace;
    std::atomic<uint32_t> is_led;               // the epoch is that of several hosts: see Epoch::raise()
    alignas(128) std::atomic<uint64_t> epoch;   // starts at 1: 0 says "not pinned" in a token
    std::atomic<uint64_t> stamp_epoch;          // if it is led: with which objects are stamped
    alignas(128) std::atomic<uint64_t> elected; // the epoch that a thread advances now
    std::atomic<uint32_t> losers;               // attempts that found it elected
    std::atomic<uint32_t> used_tokens;          // tokens with a lower index were registered once
    std::atomic<uint32_t> hazard_users;         // tokens that have used a hazard slot
    std::atomic<uint32_t> orphans;              // about; looked for only if not 0
    std::atomic<uint32_t> deaths;
    std::atomic<uint32_t> next_look; // the token whose owner is checked next
    std::atomic<int64_t> looked_at_ns;
};
static_assert(sizeof(EpochHeader) <= epoch_page);

// Objects in [previous end, end) are freed when the global epoch is stamp + 2.
struct Seal {
    std::atomic<uint64_t> end, stamp;
};

struct DeferredObject {
    muster_epoch_free_fn free; // null: the object is handed back
    void *user;
    uint64_t object;
};

// Positions count objects since the manager was made. Only the owner (or the adopter) writes, except `blocked_...`,
// which every thread that finds the token in its way may write: they only inform. Others read with relaxed order for
// counters. The next owner reads what the last one wrote after the acquire of `state`; if that one was killed, every
// sequence of stores below leaves a consistent queue at each step, so they are atomic and ordered by release.
struct alignas(128) EpochSlot {
    muster_epoch_token token;
    alignas(128) std::atomic<uint64_t> hazards[hazard_slots];
    std::atomic<uint64_t> owner_generation; // what follows belongs to this registration
    std::atomic<uint64_t> owner_start;
    std::atomic<uint64_t> owner_home; // address, in the owner's process, of the opening that has registered it
    std::atomic<int32_t> owner_thread;
    std::atomic<uint32_t> uses_hazards;
    std::atomic<uint64_t> blocked_epoch;
    std::atomic<int64_t> blocked_since_ns, owner_checked_ns;
    alignas(128) std::atomic<uint64_t> tail; // objects are added here
    std::atomic<uint64_t> sealed;            // those before have a stamp
    std::atomic<uint64_t> head;              // those before are freed
    std::atomic<uint64_t> deferred, freed;
    std::atomic<uint64_t> seal_head, seal_tail;
    uint64_t ripe_end;   // cached: objects before are ripe. Recomputed by an adopter.
    uint32_t free_bags;  // in the stack
    uint32_t fresh_bags; // bags from this number on were never used
    uint64_t tried_tail; // where the tail was at the last attempt to advance, and the epoch after it
    uint64_t tried_epoch;
    uint32_t idle_polls; // that found nothing ripe since then
    bool is_freeing;
    alignas(128) Seal seals[8];

    std::atomic_ref<uint64_t> epoch() noexcept { return std::atomic_ref(token.epoch); }
    std::atomic_ref<uint64_t> state() noexcept { return std::atomic_ref(token.state); }
    uint64_t pending() const noexcept {
        const uint64_t first = head.load(std::memory_order_relaxed), last = tail.load(std::memory_order_relaxed);
        return last > first ? last - first : 0;
    }
};
static_assert(sizeof(EpochSlot) == 512 && offsetof(EpochSlot, token) == 0);
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic_ref<uint64_t>::required_alignment == 8);

// state: 8 bits state, 24 bits count of registrations, 32 bits process id.
inline uint64_t slot_state(uint64_t generation, uint32_t state, int32_t process) noexcept {
    return (uint64_t{static_cast<uint32_t>(process)} << 32) | ((generation & 0xffffff) << 8) | state;
}
inline uint32_t kind_of(uint64_t state) noexcept {
    return static_cast<uint32_t>(state & 0xff);
}
inline uint64_t generation_of(uint64_t state) noexcept {
    return (state >> 8) & 0xffffff;
}
inline int32_t process_of(uint64_t state) noexcept {
    return static_cast<int32_t>(state >> 32);
}

// 0: out of range.
inline uint64_t epoch_capacity(uint32_t max_pending) noexcept {
    if (max_pending == 0) return 16384;
    if (max_pending > (1U << 26)) return 0;
    uint64_t capacity = bag_objects;
    while (capacity < max_pending) capacity *= 2;
    return capacity;
}
inline uint64_t epoch_tokens(uint32_t max_tokens) noexcept {
    if (max_tokens == 0) return 128;
    return max_tokens > 65536 ? 0 : max_tokens;
}
inline uint64_t epoch_slots_end(uint64_t tokens) noexcept {
    return (epoch_page + tokens * sizeof(EpochSlot) + epoch_page - 1) / epoch_page * epoch_page;
}
inline uint64_t epoch_table_entries(uint64_t capacity) noexcept {
    return 2 * capacity / bag_objects; // a power of two, more than the bags that are in use
}
inline uint64_t epoch_bags(uint64_t capacity) noexcept {
    return capacity / bag_objects + 1; // the first and the last one need not be full
}
inline uint64_t epoch_bags_begin(uint64_t tokens, uint64_t capacity) noexcept {
    const uint64_t numbers = tokens * (epoch_table_entries(capacity) + epoch_bags(capacity));
    return epoch_slots_end(tokens) + (numbers * sizeof(uint32_t) + epoch_page - 1) / epoch_page * epoch_page;
}
inline uint64_t epoch_bytes(uint64_t tokens, uint64_t capacity) noexcept {
    const uint64_t objects = tokens * epoch_bags(capacity) * bag_objects;
    return epoch_bags_begin(tokens, capacity) +
           (objects * sizeof(DeferredObject) + epoch_page - 1) / epoch_page * epoch_page;
}

} // namespace muster
