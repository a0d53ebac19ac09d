/* SPDX-License-Identifier: MIT */
/** @file
 * ABA cells of atomic.h as inline functions, unchecked: the cell is not NULL and aligned to 16 bytes. Needs no
 * compiler flag and no libatomic: gcc calls that for 16 bytes, and its locks would not be shared by processes.
 *
 * For words of 32 and 64 bits the atomics of the language are what atomic.h does. */
#ifndef MUSTER_INLINE_ATOMIC_H
#define MUSTER_INLINE_ATOMIC_H

#include <muster/atomic.h>

/* ThreadSanitizer does not look into assembler: it needs to know what the instruction orders. */
#if defined(__SANITIZE_THREAD__)
#define MUSTER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MUSTER_TSAN 1
#endif
#endif
#if defined(MUSTER_TSAN)
#ifdef __cplusplus
extern "C" {
#endif
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#ifdef __cplusplus
}
#endif
#define MUSTER_TSAN_ACQUIRE(address) __tsan_acquire((void *)(uintptr_t)(address))
#define MUSTER_TSAN_RELEASE(address) __tsan_release((void *)(uintptr_t)(address))
#else
#define MUSTER_TSAN_ACQUIRE(address) ((void)0)
#define MUSTER_TSAN_RELEASE(address) ((void)0)
#endif

/** An ABA cell with its alignment, for C and C++. */
typedef struct __attribute__((aligned(16))) muster_aba_cell {
    muster_aba now; /**< Value and count. */
} muster_aba_cell;

/** Replaces the contents of a cell if they are the expected ones; see muster_aba_compare_exchange().
 * @param[in]     cell      The cell.
 * @param[in,out] expected  Expected contents; those that were found if they differ.
 * @param[in]     desired   New contents. The caller keeps the count monotonic.
 * @return 1 if replaced, otherwise 0. */
static inline int muster_aba_replace_inline(muster_aba *cell, muster_aba *expected, const muster_aba *desired) {
#if defined(__x86_64__)
    unsigned char done;
    MUSTER_TSAN_RELEASE(cell);
    __asm__ __volatile__("lock cmpxchg16b %1\n\tsetz %0"
                         : "=q"(done), "+m"(*cell), "+a"(expected->value), "+d"(expected->count)
                         : "b"(desired->value), "c"(desired->count)
                         : "memory", "cc");
    MUSTER_TSAN_ACQUIRE(cell);
    return done;
#elif defined(__aarch64__) && defined(__ARM_FEATURE_ATOMICS)
    register uint64_t seen_value __asm__("x0") = expected->value;
    register uint64_t seen_count __asm__("x1") = expected->count;
    register uint64_t new_value __asm__("x2") = desired->value;
    register uint64_t new_count __asm__("x3") = desired->count;
    const uint64_t value = expected->value, count = expected->count;
    __asm__ __volatile__("caspal %0, %1, %2, %3, [%4]"
                         : "+r"(seen_value), "+r"(seen_count)
                         : "r"(new_value), "r"(new_count), "r"(cell)
                         : "memory");
    expected->value = seen_value;
    expected->count = seen_count;
    return seen_value == value && seen_count == count;
#elif defined(__aarch64__)
    uint64_t value, count;
    uint32_t failed;
    int same;
    do { /* A failed comparison stores what it has read: only then was the pair read in one step. */
        __asm__ __volatile__("ldaxp %0, %1, [%2]" : "=&r"(value), "=&r"(count) : "r"(cell) : "memory");
        same = value == expected->value && count == expected->count;
        __asm__ __volatile__("stlxp %w0, %1, %2, [%3]"
                             : "=&r"(failed)
                             : "r"(same ? desired->value : value), "r"(same ? desired->count : count), "r"(cell)
                             : "memory");
    } while (failed);
    __asm__ __volatile__("dmb ish" ::: "memory");
    expected->value = value;
    expected->count = count;
    return same;
#else
#error "ABA cells need x86-64 or aarch64"
#endif
}

/** Reads a cell; see muster_aba_read(). A translation unit that is compiled for AVX loads both halves at once, as
 * Intel and AMD guarantee for aligned addresses; another one compares and exchanges.
 * @param[in] cell  The cell, in memory that can be written.
 * @return Value and count. */
static inline muster_aba muster_aba_read_inline(const muster_aba *cell) {
    muster_aba out = {0, 0};
#if defined(__x86_64__) && defined(__AVX__)
    typedef long long muster_pair __attribute__((vector_size(16)));
    muster_pair pair;
    __asm__ __volatile__("vmovdqa %1, %0" : "=x"(pair) : "m"(*cell) : "memory");
    MUSTER_TSAN_ACQUIRE(cell);
    out.value = (uint64_t)pair[0];
    out.count = (uint64_t)pair[1];
#else
    const muster_aba zero = {0, 0};
    (void)muster_aba_replace_inline((muster_aba *)(uintptr_t)cell, &out, &zero);
#endif
    return out;
}

/** Reads value and count one after the other: an expectation for muster_aba_compare_exchange_inline(), which fails if
 * another thread has written in between. For loops that try again, in place of muster_aba_read_inline(), which needs a
 * locked instruction without AVX. What is read through the value afterwards is at least as new as the count.
 * @param[in] cell  The cell.
 * @return Value and count, perhaps not of the same time. */
static inline muster_aba muster_aba_guess_inline(const muster_aba *cell) {
    muster_aba out;
    out.value = __atomic_load_n(&cell->value, __ATOMIC_ACQUIRE);
    out.count = __atomic_load_n(&cell->count, __ATOMIC_ACQUIRE);
    MUSTER_TSAN_ACQUIRE(cell);
    return out;
}

/** Writes a value if nothing was written since the cell was read; see muster_aba_compare_exchange().
 * @param[in]     cell      The cell.
 * @param[in,out] expected  Value and count; those that were found if they differ.
 * @param[in]     value     New value.
 * @return 1 if written, otherwise 0. */
static inline int muster_aba_compare_exchange_inline(muster_aba *cell, muster_aba *expected, uint64_t value) {
    const muster_aba desired = {value, expected->count + 1};
    return muster_aba_replace_inline(cell, expected, &desired);
}

/** Writes a value; see muster_aba_exchange().
 * @param[in] cell   The cell.
 * @param[in] value  New value.
 * @return Value and count before. */
static inline muster_aba muster_aba_exchange_inline(muster_aba *cell, uint64_t value) {
    muster_aba seen = muster_aba_guess_inline(cell);
    while (!muster_aba_compare_exchange_inline(cell, &seen, value)) {
    }
    return seen;
}

#endif
