// SPDX-License-Identifier: MIT
#include "memory/heap.hpp"

namespace muster {

namespace {

// Differs from one block to the next, so that bytes of users are not mistaken for a head by chance.
uint32_t tag_of(uint64_t at, uint32_t which) noexcept {
    return (static_cast<uint32_t>(at * 0x9E3779B97F4A7C15u >> 32) & ~0x7Fu) | which;
}

uint32_t class_for(uint64_t bytes) noexcept {
    uint32_t which = 0;
    while (which < block_classes && class_bytes(which) < bytes + lead_bytes(which)) which++;
    return which;
}

} // namespace

// True: the head of a block of this class is at this offset. Processes that write beyond their blocks overwrite heads.
bool Heap::is_block(uint64_t at, uint32_t which) const noexcept {
    return at >= begin_ && at < end_ && end_ - at > block_head_bytes && at % 16 == 0 &&
           block(at).tag.load(std::memory_order_acquire) == tag_of(at, which);
}

// The first free block of a class: the offset of its head; or 0. Its head is that of a free block still; only this
// thread has it. If the head is none, since it, or the one before it, was overwritten, the rest of the list is lost.
uint64_t Heap::take(uint32_t which) noexcept {
    muster_aba_cell &list = head_.lists[which];
    // A guess whose value and count are not of the same time fails below; otherwise the count was written before `next`
    // is read, and nothing was written since.
    muster_aba first = muster_aba_guess_inline(&list.now);
    while (first.value != 0) {
        // relaxed: an old value goes with an old count.
        const bool good = is_block(first.value, which);
        const uint64_t next = good ? block(first.value).next.load(std::memory_order_relaxed) : 0;
        if (muster_aba_compare_exchange_inline(&list.now, &first, next)) return good ? first.value : 0;
    }
    return 0;
}

// A block of bytes that were never used: the offset of its head; or 0.
uint64_t Heap::make(uint32_t which) noexcept {
    const uint64_t size = class_bytes(which), lead = lead_bytes(which);
    uint64_t fresh = head_.fresh.load(std::memory_order_relaxed), first;
    do {
        first = (fresh + lead - 1) / lead * lead;
        if (first > end_ || size > end_ - first) return 0;
    } while (!head_.fresh.compare_exchange_weak(fresh, first + size, std::memory_order_relaxed));
    const uint64_t at = first + lead - block_head_bytes;
    block(at).state.store(block_free, std::memory_order_relaxed);
    block(at).tag.store(tag_of(at, which), std::memory_order_release);
    return at;
}

Status Heap::allocate(uint64_t bytes, uint64_t &out_offset) noexcept {
    if (bytes >= end_ - begin_) return MUSTER_E_LIMIT; // also: there is no heap
    uint32_t which = class_for(bytes);
    if (which == block_classes || class_bytes(which) > end_ - begin_) return MUSTER_E_LIMIT;
    uint64_t at = take(which);
    if (at == 0) at = make(which);
    // A larger one rather than none; it stays in its class.
    while (at == 0 && ++which < block_classes) at = take(which);
    if (at == 0) {
        head_.refused.fetch_add(1, std::memory_order_relaxed);
        return MUSTER_AGAIN;
    }
    block(at).state.store(block_used, std::memory_order_release);
    head_.used_bytes.fetch_add(class_bytes(which), std::memory_order_relaxed);
    head_.used_blocks.fetch_add(1, std::memory_order_relaxed);
    head_.allocated.fetch_add(1, std::memory_order_relaxed);
    out_offset = at + block_head_bytes;
    return MUSTER_OK;
}

Status Heap::release(uint64_t offset) noexcept {
    if (offset < begin_ + block_head_bytes || offset >= end_ || offset % 16 != 0) return MUSTER_E_ARG;
    const uint64_t at = offset - block_head_bytes;
    if (at >= head_.fresh.load(std::memory_order_relaxed)) return MUSTER_E_ARG;
    BlockHead &given = block(at);
    const uint32_t tag = given.tag.load(std::memory_order_acquire), which = tag & 0x7F;
    if (which >= block_classes || tag != tag_of(at, which)) return MUSTER_E_ARG;
    // acq_rel: what its users did comes before the next ones.
    uint32_t used = block_used;
    if (!given.state.compare_exchange_strong(used, block_free, std::memory_order_acq_rel)) return MUSTER_E_STALE;
    head_.used_bytes.fetch_sub(class_bytes(which), std::memory_order_relaxed);
    head_.used_blocks.fetch_sub(1, std::memory_order_relaxed);
    muster_aba_cell &list = head_.lists[which];
    muster_aba first = muster_aba_guess_inline(&list.now);
    do given.next.store(first.value, std::memory_order_relaxed);
    while (!muster_aba_compare_exchange_inline(&list.now, &first, at));
    return MUSTER_OK;
}

void Heap::stats(muster_memory_stats &out) const noexcept {
    const uint64_t fresh = head_.fresh.load(std::memory_order_relaxed);
    out.heap_bytes = end_ - begin_;
    out.fresh_bytes = fresh < end_ ? end_ - fresh : 0;
    out.used_bytes = head_.used_bytes.load(std::memory_order_relaxed);
    out.used_blocks = head_.used_blocks.load(std::memory_order_relaxed);
    out.allocated = head_.allocated.load(std::memory_order_relaxed);
    out.refused = head_.refused.load(std::memory_order_relaxed);
}

} // namespace muster
