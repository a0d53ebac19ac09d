// SPDX-License-Identifier: MIT
// Operations on one target, on the mapping: the functions of atomic.h.
#include "context/host_call.hpp"
#include "memory/memory.hpp"
#include "stream/copy.hpp"

#include <cstring>

namespace muster {

namespace {

constexpr uint32_t cell_bytes[] = {8, 4, 16};

Status run_on_word64(uint64_t *cell, const muster_memory_operation &what, uint64_t &found) noexcept {
    switch (what.kind) {
    case MUSTER_MEMORY_READ:
        return muster_atomic_read64(cell, what.order, &found);
    case MUSTER_MEMORY_WRITE:
        return muster_atomic_write64(cell, what.value, what.order);
    case MUSTER_MEMORY_EXCHANGE:
        return muster_atomic_exchange64(cell, what.value, what.order, &found);
    case MUSTER_MEMORY_COMPARE_EXCHANGE:
        found = what.expected;
        return muster_atomic_compare_exchange64(cell, &found, what.value, what.order);
    default:
        return muster_atomic_fetch64(cell, what.operation, what.value, what.order, &found);
    }
}

Status run_on_word32(uint32_t *cell, const muster_memory_operation &what, uint64_t &found) noexcept {
    if (what.value > UINT32_MAX || what.expected > UINT32_MAX) return MUSTER_E_ARG;
    const auto value = static_cast<uint32_t>(what.value);
    auto seen = static_cast<uint32_t>(what.expected);
    Status status;
    switch (what.kind) {
    case MUSTER_MEMORY_READ:
        status = muster_atomic_read32(cell, what.order, &seen);
        break;
    case MUSTER_MEMORY_WRITE:
        return muster_atomic_write32(cell, value, what.order);
    case MUSTER_MEMORY_EXCHANGE:
        status = muster_atomic_exchange32(cell, value, what.order, &seen);
        break;
    case MUSTER_MEMORY_COMPARE_EXCHANGE:
        status = muster_atomic_compare_exchange32(cell, &seen, value, what.order);
        break;
    default:
        status = muster_atomic_fetch32(cell, what.operation, value, what.order, &seen);
        break;
    }
    found = seen;
    return status;
}

Status run_on_aba(muster_aba *cell, const muster_memory_operation &what, muster_memory_result &out) noexcept {
    muster_aba seen{what.expected, what.expected_count};
    Status status;
    switch (what.kind) {
    case MUSTER_MEMORY_READ:
        status = muster_aba_read(cell, &seen);
        break;
    case MUSTER_MEMORY_WRITE:
        return muster_aba_write(cell, what.value);
    case MUSTER_MEMORY_EXCHANGE:
        status = muster_aba_exchange(cell, what.value, &seen);
        break;
    case MUSTER_MEMORY_COMPARE_EXCHANGE:
        status = muster_aba_compare_exchange(cell, &seen, what.value);
        break;
    default:
        return MUSTER_E_ARG; // FETCH: a value that is counted is not a number
    }
    out = {seen.value, seen.count};
    return status;
}

// Small copies move whole words, since others may change these meanwhile.
bool moves_words(const unsigned char *at, uint64_t bytes) noexcept {
    return bytes <= 256 && bytes % 8 == 0 && reinterpret_cast<uintptr_t>(at) % 8 == 0;
}
std::atomic_ref<uint64_t> word_at(unsigned char *at) noexcept {
    return std::atomic_ref(*reinterpret_cast<uint64_t *>(at));
}

// Fields that do not belong to the kind are zero.
bool is_well_formed(const muster_memory_operation &what) noexcept {
    const bool copies = what.kind == MUSTER_MEMORY_PUT || what.kind == MUSTER_MEMORY_GET;
    if (what.kind < MUSTER_MEMORY_PUT || what.kind > MUSTER_MEMORY_FETCH || what.notify > 1) return false;
    if (what.cell > MUSTER_MEMORY_ABA || what.order < MUSTER_ATOMIC_SEQ_CST || what.order > MUSTER_ATOMIC_RELAXED)
        return false;
    if (what.kind != MUSTER_MEMORY_FETCH && what.operation != 0) return false;
    if (what.kind != MUSTER_MEMORY_COMPARE_EXCHANGE && (what.expected != 0 || what.expected_count != 0)) return false;
    if (what.cell != MUSTER_MEMORY_ABA && what.expected_count != 0) return false;
    if (!copies) return what.local == nullptr && what.bytes == 0 && what.signal == 0;
    if (what.local == nullptr && what.bytes != 0) return false;
    if (what.signal == 0 && (what.value != 0 || what.notify != 0)) return false;
    return what.cell == 0 && what.order == 0 && (what.kind == MUSTER_MEMORY_PUT || what.signal == 0);
}

} // namespace

Status Memory::run(const muster_memory_operation &what, int64_t timeout_ns, muster_memory_result &out) noexcept {
    if (!remote_ || shape.locale_of(what.target) >= shape.locales || is_here(shape.locale_of(what.target)))
        return run_here(what, out);
    if (const Status status = check(what); status != MUSTER_OK) return status;
    if (forked()) return MUSTER_E_FORKED;
    const Uncancelled guard;
    const HostCall call(group_->context(), this);
    Deadline deadline(timeout_ns);
    return remote_->run(what, deadline, out);
}

// Of an operation on a locale that is elsewhere, what run_here() finds out otherwise: an error needs no message.
Status Memory::check(const muster_memory_operation &what) const noexcept {
    if (!is_well_formed(what)) return MUSTER_E_ARG;
    const bool copies = what.kind == MUSTER_MEMORY_PUT || what.kind == MUSTER_MEMORY_GET;
    if (!has(what.target, copies ? what.bytes : cell_bytes[what.cell])) return shape.why_refused(what.target);
    if (!copies && shape.offset_of(what.target) % cell_bytes[what.cell] != 0) return MUSTER_E_ARG;
    if (what.kind == MUSTER_MEMORY_FETCH && what.cell == MUSTER_MEMORY_ABA) return MUSTER_E_ARG;
    if (what.signal == 0) return MUSTER_OK;
    if (!has(what.signal, 8)) return shape.why_refused(what.signal);
    return shape.offset_of(what.signal) % 8 == 0 && shape.locale_of(what.signal) == shape.locale_of(what.target)
               ? MUSTER_OK
               : MUSTER_E_ARG;
}

Status Memory::begin(const muster_memory_operation &what, muster_memory_result *out, Queue *queue, uint64_t tag) {
    const uint32_t locale = shape.locale_of(what.target);
    if (remote_ && locale < shape.locales && !is_here(locale)) {
        const Status status = check(what);
        return status == MUSTER_OK ? remote_->begin(what, out, queue, tag) : status;
    }
    // It is done at once; only its entry comes later.
    if (queue != nullptr && !queue->reserve()) return queue->closed() ? MUSTER_E_CLOSED : MUSTER_AGAIN;
    muster_memory_result ignored;
    const Status status = run_here(what, out != nullptr ? *out : ignored);
    if (queue == nullptr) return status == MUSTER_AGAIN ? Status{MUSTER_OK} : status;
    if (status < 0) {
        queue->unreserve();
        return status;
    }
    Entry entry;
    entry.completion.kind = MUSTER_DONE_MEMORY;
    entry.completion.status = status;
    entry.completion.tag = tag;
    entry.completion.bytes = what.bytes;
    queue->complete(std::move(entry));
    return MUSTER_OK;
}

Status Memory::run_here(const muster_memory_operation &what, muster_memory_result &out) noexcept {
    if (!is_well_formed(what)) return MUSTER_E_ARG;
    const bool copies = what.kind == MUSTER_MEMORY_PUT || what.kind == MUSTER_MEMORY_GET;
    unsigned char *const at = address(what.target, copies ? what.bytes : cell_bytes[what.cell]);
    if (at == nullptr) return shape.why_refused(what.target);
    if (!copies && reinterpret_cast<uintptr_t>(at) % cell_bytes[what.cell] != 0) return MUSTER_E_ARG;
    if (what.kind == MUSTER_MEMORY_GET) {
        if (moves_words(at, what.bytes))
            for (uint64_t i = 0; i < what.bytes; i += 8) {
                // acquire: a pointer that is read is that of a complete object.
                const uint64_t word = word_at(at + i).load(std::memory_order_acquire);
                std::memcpy(static_cast<unsigned char *>(what.local) + i, &word, sizeof word);
            }
        else if (what.bytes != 0)
            copy_whole(what.local, at, what.bytes);
        return MUSTER_OK;
    }
    if (what.kind == MUSTER_MEMORY_PUT) {
        auto *const word = what.signal == 0 ? nullptr : reinterpret_cast<uint64_t *>(address(what.signal, 8));
        if (what.signal != 0 && word == nullptr) return shape.why_refused(what.signal);
        if (reinterpret_cast<uintptr_t>(word) % 8 != 0) return MUSTER_E_ARG;
        if (moves_words(at, what.bytes))
            for (uint64_t i = 0; i < what.bytes; i += 8) {
                uint64_t one;
                std::memcpy(&one, static_cast<const unsigned char *>(what.local) + i, sizeof one);
                word_at(at + i).store(one, std::memory_order_release);
            }
        else if (what.bytes != 0)
            copy_whole(at, what.local, what.bytes);
        if (word == nullptr) return MUSTER_OK;
        // A release: a locale that reads the new value acquires the bytes.
        const Status status =
            muster_atomic_fetch64(word, MUSTER_ATOMIC_ADD, what.value, MUSTER_ATOMIC_ACQ_REL, nullptr);
        if (what.notify != 0) muster_atomic_notify(word, 8);
        return status;
    }
    Status status;
    if (what.cell != MUSTER_MEMORY_ABA && what.kind != MUSTER_MEMORY_WRITE) out.count = 0;
    if (what.cell == MUSTER_MEMORY_WORD64)
        status = run_on_word64(reinterpret_cast<uint64_t *>(at), what, out.value);
    else if (what.cell == MUSTER_MEMORY_WORD32)
        status = run_on_word32(reinterpret_cast<uint32_t *>(at), what, out.value);
    else
        status = run_on_aba(reinterpret_cast<muster_aba *>(at), what, out);
    if (status == MUSTER_OK && what.notify != 0 && what.kind != MUSTER_MEMORY_READ)
        muster_atomic_notify(at, what.cell == MUSTER_MEMORY_WORD32 ? 4 : 8);
    return status;
}

} // namespace muster
