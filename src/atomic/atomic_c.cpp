// SPDX-License-Identifier: MIT
#include "base/boundary.hpp"

#include <muster/inline/atomic.h>

#include <algorithm>
#include <atomic>
#include <type_traits>

using namespace muster;

namespace {

bool is_order(int32_t order) noexcept {
    return order >= MUSTER_ATOMIC_SEQ_CST && order <= MUSTER_ATOMIC_RELAXED;
}

// Calls body with the order of the language; a constant in each branch, so that the instruction is chosen at compile
// time. The orders of a pure read, a pure write and a read-modify-write differ for ACQ_REL.
template <std::memory_order AcqRel, class Body>
auto with_order(int32_t order, Body &&body) noexcept {
    if (order == MUSTER_ATOMIC_RELAXED)
        return body(std::integral_constant<std::memory_order, std::memory_order_relaxed>{});
    if (order == MUSTER_ATOMIC_ACQ_REL) return body(std::integral_constant<std::memory_order, AcqRel>{});
    return body(std::integral_constant<std::memory_order, std::memory_order_seq_cst>{});
}

template <class T>
bool is_cell(const T *cell) noexcept {
    return cell != nullptr && reinterpret_cast<uintptr_t>(cell) % sizeof(T) == 0;
}
bool is_aba_cell(const muster_aba *cell) noexcept {
    return cell != nullptr && reinterpret_cast<uintptr_t>(cell) % 16 == 0;
}
template <class T>
std::atomic_ref<T> cell_of(const T *cell) noexcept {
    return std::atomic_ref<T>(*const_cast<T *>(cell)); // NOLINT: a read writes nothing
}

template <class T>
Status read(const T *cell, int32_t order, T *out) noexcept {
    if (!is_cell(cell) || out == nullptr || !is_order(order)) return MUSTER_E_ARG;
    *out = with_order<std::memory_order_acquire>(order, [&](auto o) { return cell_of(cell).load(o); });
    return MUSTER_OK;
}

template <class T>
Status write(T *cell, T value, int32_t order) noexcept {
    if (!is_cell(cell) || !is_order(order)) return MUSTER_E_ARG;
    with_order<std::memory_order_release>(order, [&](auto o) {
        cell_of(cell).store(value, o);
        return 0;
    });
    return MUSTER_OK;
}

template <class T>
Status exchange(T *cell, T value, int32_t order, T *out) noexcept {
    if (!is_cell(cell) || out == nullptr || !is_order(order)) return MUSTER_E_ARG;
    *out = with_order<std::memory_order_acq_rel>(order, [&](auto o) { return cell_of(cell).exchange(value, o); });
    return MUSTER_OK;
}

template <class T>
Status compare_exchange(T *cell, T *expected, T desired, int32_t order) noexcept {
    if (!is_cell(cell) || expected == nullptr || !is_order(order)) return MUSTER_E_ARG;
    const bool done = with_order<std::memory_order_acq_rel>(
        order, [&](auto o) { return cell_of(cell).compare_exchange_strong(*expected, desired, o); });
    return done ? MUSTER_OK : MUSTER_AGAIN;
}

// Those without an instruction of their own.
template <class T, class Order, class Combine>
T fetch_by_exchange(std::atomic_ref<T> cell, Order order, Combine &&combine) noexcept {
    T seen = cell.load(std::memory_order_relaxed);
    while (!cell.compare_exchange_weak(seen, combine(seen), order)) {
    }
    return seen;
}

template <class T>
Status fetch(T *cell, int32_t operation, T operand, int32_t order, T *out) noexcept {
    if (!is_cell(cell) || !is_order(order) || operation < MUSTER_ATOMIC_ADD || operation > MUSTER_ATOMIC_UMAX)
        return MUSTER_E_ARG;
    using Signed = std::make_signed_t<T>;
    const T before = with_order<std::memory_order_acq_rel>(order, [&](auto o) -> T {
        const auto word = cell_of(cell);
        const auto own = static_cast<Signed>(operand);
        switch (operation) {
        case MUSTER_ATOMIC_ADD:
            return word.fetch_add(operand, o);
        case MUSTER_ATOMIC_AND:
            return word.fetch_and(operand, o);
        case MUSTER_ATOMIC_OR:
            return word.fetch_or(operand, o);
        case MUSTER_ATOMIC_XOR:
            return word.fetch_xor(operand, o);
        case MUSTER_ATOMIC_MIN:
            return fetch_by_exchange(word, o, [=](T seen) { return T(std::min(static_cast<Signed>(seen), own)); });
        case MUSTER_ATOMIC_MAX:
            return fetch_by_exchange(word, o, [=](T seen) { return T(std::max(static_cast<Signed>(seen), own)); });
        case MUSTER_ATOMIC_UMIN:
            return fetch_by_exchange(word, o, [=](T seen) { return std::min(seen, operand); });
        default:
            return fetch_by_exchange(word, o, [=](T seen) { return std::max(seen, operand); });
        }
    });
    if (out != nullptr) *out = before;
    return MUSTER_OK;
}

#if defined(__x86_64__) && !defined(MUSTER_TSAN)
// The library is compiled for every x86-64; whether 16 bytes can be loaded at once is found out at run time.
bool has_avx() noexcept {
    static const bool has = __builtin_cpu_supports("avx") != 0;
    return has;
}
#endif

muster_aba read_aba(const muster_aba *cell) noexcept {
#if defined(__x86_64__) && !defined(MUSTER_TSAN)
    if (has_avx()) {
        muster_aba out;
        asm volatile("vmovdqa %1, %%xmm0\n\tvmovdqu %%xmm0, %0" : "=m"(out) : "m"(*cell) : "xmm0", "memory");
        return out;
    }
#endif
    return muster_aba_read_inline(cell);
}

} // namespace

extern "C" {

muster_status muster_atomic_read64(const uint64_t *cell, int32_t order, uint64_t *out_value) {
    return read(cell, order, out_value);
}
muster_status muster_atomic_write64(uint64_t *cell, uint64_t value, int32_t order) {
    return write(cell, value, order);
}
muster_status muster_atomic_exchange64(uint64_t *cell, uint64_t value, int32_t order, uint64_t *out_value) {
    return exchange(cell, value, order, out_value);
}
muster_status muster_atomic_compare_exchange64(uint64_t *cell, uint64_t *expected, uint64_t desired, int32_t order) {
    return compare_exchange(cell, expected, desired, order);
}
muster_status muster_atomic_fetch64(uint64_t *cell, int32_t operation, uint64_t operand, int32_t order,
                                    uint64_t *out_value) {
    return fetch(cell, operation, operand, order, out_value);
}
muster_status muster_atomic_read32(const uint32_t *cell, int32_t order, uint32_t *out_value) {
    return read(cell, order, out_value);
}
muster_status muster_atomic_write32(uint32_t *cell, uint32_t value, int32_t order) {
    return write(cell, value, order);
}
muster_status muster_atomic_exchange32(uint32_t *cell, uint32_t value, int32_t order, uint32_t *out_value) {
    return exchange(cell, value, order, out_value);
}
muster_status muster_atomic_compare_exchange32(uint32_t *cell, uint32_t *expected, uint32_t desired, int32_t order) {
    return compare_exchange(cell, expected, desired, order);
}
muster_status muster_atomic_fetch32(uint32_t *cell, int32_t operation, uint32_t operand, int32_t order,
                                    uint32_t *out_value) {
    return fetch(cell, operation, operand, order, out_value);
}

muster_status muster_atomic_test_and_set(uint32_t *flag, int32_t order) {
    uint32_t before = 0;
    const Status status = exchange(flag, uint32_t{1}, order, &before);
    return status == MUSTER_OK && before != 0 ? MUSTER_AGAIN : status;
}
muster_status muster_atomic_clear(uint32_t *flag, int32_t order) {
    return write(flag, uint32_t{0}, order);
}

uint32_t muster_aba_size(void) {
    return sizeof(muster_aba_cell);
}
uint32_t muster_aba_alignment(void) {
    return alignof(muster_aba_cell);
}

muster_status muster_aba_read(const muster_aba *cell, muster_aba *out) {
    if (!is_aba_cell(cell) || out == nullptr) return MUSTER_E_ARG;
    *out = read_aba(cell);
    return MUSTER_OK;
}

muster_status muster_aba_write(muster_aba *cell, uint64_t value) {
    return muster_aba_exchange(cell, value, nullptr);
}

muster_status muster_aba_exchange(muster_aba *cell, uint64_t value, muster_aba *out) {
    if (!is_aba_cell(cell)) return MUSTER_E_ARG;
    const muster_aba seen = muster_aba_exchange_inline(cell, value);
    if (out != nullptr) *out = seen;
    return MUSTER_OK;
}

muster_status muster_aba_compare_exchange(muster_aba *cell, muster_aba *expected, uint64_t desired) {
    if (!is_aba_cell(cell) || expected == nullptr) return MUSTER_E_ARG;
    return muster_aba_compare_exchange_inline(cell, expected, desired) ? MUSTER_OK : MUSTER_AGAIN;
}

muster_status muster_aba_compare_exchange_value(muster_aba *cell, uint64_t *expected, uint64_t desired) {
    if (!is_aba_cell(cell) || expected == nullptr) return MUSTER_E_ARG;
    muster_aba seen = read_aba(cell);
    while (seen.value == *expected)
        if (muster_aba_compare_exchange_inline(cell, &seen, desired)) return MUSTER_OK;
    *expected = seen.value;
    return MUSTER_AGAIN;
}

} // extern "C"
