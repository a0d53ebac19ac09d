// SPDX-License-Identifier: MIT
#pragma once
// The memory of the locales of one host, a file:
//
//   head of the node | head of each segment | manager of epochs | segment of the first locale | segment of the next one
//   | ...
//
// A segment has nothing but the bytes of its users: offsets in it are those of global pointers.
#include <muster/inline/atomic.h>
#include <muster/memory.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace muster {

inline constexpr uint64_t memory_page = 4096;
inline constexpr uint64_t memory_first_offset = 64; // offset 0 is nil
inline constexpr uint64_t block_head_bytes = 16;

constexpr uint64_t to_pages(uint64_t bytes) noexcept {
    return (bytes + memory_page - 1) / memory_page * memory_page;
}

// Sizes of blocks, their heads included: 32, 48, 64, 96, 128, ...
constexpr uint32_t block_classes = 2 * (48 - 5);
constexpr uint64_t class_bytes(uint32_t which) noexcept {
    return (which % 2 == 0 ? uint64_t{32} : uint64_t{48}) << which / 2;
}

// Larger blocks begin at a multiple of 64: copies to and from them are several times as fast.
constexpr uint32_t first_large_class = 10; // 1024 bytes
constexpr uint64_t lead_bytes(uint32_t which) noexcept {
    return which < first_large_class ? 16 : 64; // in front of what the user has; the head is at its end
}
static_assert(class_bytes(first_large_class) == 1024);

// In front of a block. The next free block of its class is written before the block is in the list, and read by threads
// that take the first one: perhaps after another has taken it, and then their exchange fails by the count of the list.
struct BlockHead {
    std::atomic<uint32_t> tag; // release: written once, when the block is made; says its class, and that it is a block
    std::atomic<uint32_t> state; // block_used or block_free; changed by exchanges, so that freeing twice is found
    std::atomic<uint64_t> next;  // offset of the head of the next free block; 0: none
};
static_assert(sizeof(BlockHead) == block_head_bytes);
inline constexpr uint32_t block_used = 0x75736564, block_free = 0x66726565;

// Control of the heap of one segment.
struct SegmentHead {
    muster_aba_cell lists[block_classes];                              // first free block of each class: its offset
    alignas(128) std::atomic<uint64_t> fresh;                          // offset from which on the heap was never used
    std::atomic<uint64_t> used_bytes, used_blocks, allocated, refused; // relaxed: for people
};

// What the processes of a node share beside the segments.
struct NodeHead {
    std::atomic<int64_t> lease_until_ns; // of a round of epochs (CLOCK_MONOTONIC): until then no process begins one
    std::atomic<uint64_t> rounds;        // that processes of this node have begun; relaxed: for people
};
static_assert(sizeof(NodeHead) <= memory_page);

// Where everything is; the same at all locales of a host, and but for `here` at all locales.
struct MemoryShape {
    uint32_t locales = 0, locale_bits = 0, flags = 0, max_tokens = 0, max_pending = 0;
    uint32_t here = 0; // locales of this host
    // Which of the memories that these processes have made one after the other this is, in pointers between the locale
    // and the offset: 1 to 2^bits - 1, or no bits and 0.
    uint32_t incarnation_bits = 0, incarnation = 0;
    uint64_t segment_bytes = 0, symmetric_bytes = 0;

    uint32_t offset_bits() const noexcept { return 64 - locale_bits; }
    uint64_t heads_at() const noexcept { return memory_page; }
    uint64_t epoch_at() const noexcept { return heads_at() + to_pages(here * sizeof(SegmentHead)); }
    uint64_t segments_at() const noexcept { return epoch_at() + muster_epoch_size(max_tokens, max_pending); }
    uint64_t bytes() const noexcept { return segments_at() + here * segment_bytes; }
    uint64_t lower(muster_gptr pointer) const noexcept { return pointer & ((uint64_t{1} << offset_bits()) - 1); }
    uint64_t incarnation_shift() const noexcept { return offset_bits() - incarnation_bits; }
    // The lower bits of a pointer to offset 0.
    uint64_t first() const noexcept { return uint64_t{incarnation} << incarnation_shift(); }
    muster_gptr pointer(uint32_t locale, uint64_t offset) const noexcept {
        return (uint64_t{locale} << offset_bits()) | (first() + offset);
    }
    uint32_t locale_of(muster_gptr pointer) const noexcept { return static_cast<uint32_t>(pointer >> offset_bits()); }
    // Beyond each segment, if the pointer is one of another incarnation.
    uint64_t offset_of(muster_gptr pointer) const noexcept { return lower(pointer - first()); }
    // Why a pointer is refused: STALE, it is one of another memory; otherwise ARG.
    muster_status why_refused(muster_gptr pointer) const noexcept {
        const uint64_t given = lower(pointer) >> incarnation_shift(),
                       offset = lower(pointer) - (given << incarnation_shift());
        const bool is_other = incarnation_bits != 0 && given != 0 && given != incarnation;
        return is_other && locale_of(pointer) < locales && offset < segment_bytes ? MUSTER_E_STALE : MUSTER_E_ARG;
    }
};

} // namespace muster
