/* SPDX-License-Identifier: MIT */
/** @file
 * Atomic objects: words of 32 and 64 bits, flags, and ABA cells, in the memory of a process or shared by processes.
 *
 * The functions below are the checked form for languages without atomics of their own: a misaligned cell or an unknown
 * order is an error, and nothing changes. C and C++ programs include `inline/atomic.h`, or use the atomics of their
 * language on the same words: every function is the processor's instruction for that word, so they can be mixed.
 *
 * An ABA cell is 16 bytes: a value (an address or an offset) and a count that grows by one with every write. A
 * compare-and-exchange of both halves fails if the cell was written meanwhile, also when the value is the same again.
 * Functions on the value alone are allowed on the same cell; they change both halves in one step, too, so the count
 * stays monotonic. (In the Chapel module AtomicObject they do not touch the count.) Operations on ABA cells are
 * sequentially consistent. They need cmpxchg16b on x86-64, which every processor of the last 15 years has.
 *
 * Shared memory: store offsets into the segment, not addresses. */
#ifndef MUSTER_ATOMIC_H
#define MUSTER_ATOMIC_H

#include <muster/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Memory orders. */
enum muster_atomic_order {
    MUSTER_ATOMIC_SEQ_CST = 0, /**< One order of all such operations that all threads agree on. */
    MUSTER_ATOMIC_ACQ_REL = 1, /**< A read acquires, a write releases, a read-modify-write does both: what a thread
                                    did before its write is seen by a thread that has read the written value. */
    MUSTER_ATOMIC_RELAXED = 2  /**< Atomic, and nothing else. */
};

/** Operations of muster_atomic_fetch32() and muster_atomic_fetch64(). */
enum muster_atomic_operation {
    MUSTER_ATOMIC_ADD = 0,  /**< Sum, modulo 2^32 or 2^64. */
    MUSTER_ATOMIC_AND = 1,  /**< Bitwise and. */
    MUSTER_ATOMIC_OR = 2,   /**< Bitwise or. */
    MUSTER_ATOMIC_XOR = 3,  /**< Bitwise exclusive or. */
    MUSTER_ATOMIC_MIN = 4,  /**< Smaller one, of signed numbers. */
    MUSTER_ATOMIC_MAX = 5,  /**< Larger one, of signed numbers. */
    MUSTER_ATOMIC_UMIN = 6, /**< Smaller one, of unsigned numbers. */
    MUSTER_ATOMIC_UMAX = 7  /**< Larger one, of unsigned numbers. */
};

/** Comparisons of muster_atomic_wait(); numbers are unsigned. */
enum muster_atomic_comparison {
    MUSTER_ATOMIC_EQUAL = 0,        /**< The cell equals the value. */
    MUSTER_ATOMIC_NOT_EQUAL = 1,    /**< It does not. */
    MUSTER_ATOMIC_LESS = 2,         /**< The cell is less than the value. */
    MUSTER_ATOMIC_LESS_EQUAL = 3,   /**< It is less or equal. */
    MUSTER_ATOMIC_GREATER = 4,      /**< The cell is greater than the value. */
    MUSTER_ATOMIC_GREATER_EQUAL = 5 /**< It is greater or equal. */
};

/** A cell that muster_atomic_wait() waits for. */
typedef struct muster_atomic_condition {
    const void *cell;    /**< The cell, aligned to its size. */
    uint64_t value;      /**< Compared with it. */
    uint32_t size_bytes; /**< 4 or 8. */
    int32_t comparison;  /**< A ::muster_atomic_comparison value. */
    uint32_t is_true;    /**< Set by the call: whether the condition was true when it was last checked. */
    uint32_t reserved;   /**< Zero. */
} muster_atomic_condition;

/** The value of an ABA cell. */
typedef struct muster_aba {
    uint64_t value; /**< Address, offset or number. */
    uint64_t count; /**< Number of writes to the cell. */
} muster_aba;

/** Reads a word.
 * @param[in]  cell       The word.
 * @param[in]  order      A ::muster_atomic_order.
 * @param[out] out_value  Its value.
 * @retval MUSTER_OK     Read.
 * @retval MUSTER_E_ARG  A pointer is NULL or not aligned to 8 bytes, or the order is unknown.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_atomic_read64(const uint64_t *cell, int32_t order, uint64_t *out_value);

/** Writes a word.
 * @param[in] cell   The word.
 * @param[in] value  New value.
 * @param[in] order  A ::muster_atomic_order.
 * @retval MUSTER_OK     Written.
 * @retval MUSTER_E_ARG  The cell is NULL or not aligned to 8 bytes, or the order is unknown.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_atomic_write64(uint64_t *cell, uint64_t value, int32_t order);

/** Writes a word and returns what it was.
 * @param[in]  cell       The word.
 * @param[in]  value      New value.
 * @param[in]  order      A ::muster_atomic_order.
 * @param[out] out_value  The value before.
 * @retval MUSTER_OK     Exchanged.
 * @retval MUSTER_E_ARG  A pointer is NULL or not aligned to 8 bytes, or the order is unknown.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_atomic_exchange64(uint64_t *cell, uint64_t value, int32_t order, uint64_t *out_value);

/** Writes a word if it has the expected value.
 * @param[in]     cell      The word.
 * @param[in,out] expected  The expected value; after ::MUSTER_AGAIN the value that was found.
 * @param[in]     desired   New value.
 * @param[in]     order     A ::muster_atomic_order.
 * @retval MUSTER_OK     Written.
 * @retval MUSTER_AGAIN  The word had another value, which @p expected has now; nothing was written.
 * @retval MUSTER_E_ARG  A pointer is NULL or not aligned to 8 bytes, or the order is unknown.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_atomic_compare_exchange64(uint64_t *cell, uint64_t *expected, uint64_t desired,
                                                          int32_t order);

/** Combines a word with an operand and returns what it was.
 * @param[in]  cell       The word.
 * @param[in]  operation  A ::muster_atomic_operation.
 * @param[in]  operand    Operand.
 * @param[in]  order      A ::muster_atomic_order.
 * @param[out] out_value  The value before, or NULL.
 * @retval MUSTER_OK     Done.
 * @retval MUSTER_E_ARG  The cell is NULL or not aligned to 8 bytes, or the operation or the order is unknown.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_atomic_fetch64(uint64_t *cell, int32_t operation, uint64_t operand, int32_t order,
                                               uint64_t *out_value);

/** Reads a word of 32 bits.
 * @param[in]  cell       The word.
 * @param[in]  order      A ::muster_atomic_order.
 * @param[out] out_value  Its value.
 * @retval MUSTER_OK     Read.
 * @retval MUSTER_E_ARG  A pointer is NULL or not aligned to 4 bytes, or the order is unknown.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_atomic_read32(const uint32_t *cell, int32_t order, uint32_t *out_value);

/** Writes a word of 32 bits.
 * @param[in] cell   The word.
 * @param[in] value  New value.
 * @param[in] order  A ::muster_atomic_order.
 * @retval MUSTER_OK     Written.
 * @retval MUSTER_E_ARG  The cell is NULL or not aligned to 4 bytes, or the order is unknown.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_atomic_write32(uint32_t *cell, uint32_t value, int32_t order);

/** Writes a word of 32 bits and returns what it was.
 * @param[in]  cell       The word.
 * @param[in]  value      New value.
 * @param[in]  order      A ::muster_atomic_order.
 * @param[out] out_value  The value before.
 * @retval MUSTER_OK     Exchanged.
 * @retval MUSTER_E_ARG  A pointer is NULL or not aligned to 4 bytes, or the order is unknown.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_atomic_exchange32(uint32_t *cell, uint32_t value, int32_t order, uint32_t *out_value);

/** Writes a word of 32 bits if it has the expected value.
 * @param[in]     cell      The word.
 * @param[in,out] expected  The expected value; after ::MUSTER_AGAIN the value that was found.
 * @param[in]     desired   New value.
 * @param[in]     order     A ::muster_atomic_order.
 * @retval MUSTER_OK     Written.
 * @retval MUSTER_AGAIN  The word had another value, which @p expected has now; nothing was written.
 * @retval MUSTER_E_ARG  A pointer is NULL or not aligned to 4 bytes, or the order is unknown.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_atomic_compare_exchange32(uint32_t *cell, uint32_t *expected, uint32_t desired,
                                                          int32_t order);

/** Combines a word of 32 bits with an operand and returns what it was.
 * @param[in]  cell       The word.
 * @param[in]  operation  A ::muster_atomic_operation.
 * @param[in]  operand    Operand.
 * @param[in]  order      A ::muster_atomic_order.
 * @param[out] out_value  The value before, or NULL.
 * @retval MUSTER_OK     Done.
 * @retval MUSTER_E_ARG  The cell is NULL or not aligned to 4 bytes, or the operation or the order is unknown.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_atomic_fetch32(uint32_t *cell, int32_t operation, uint32_t operand, int32_t order,
                                               uint32_t *out_value);

/** Sets a flag, a word of 32 bits, to 1.
 * @param[in] flag   The flag.
 * @param[in] order  A ::muster_atomic_order.
 * @retval MUSTER_OK     It was clear, and this call has set it.
 * @retval MUSTER_AGAIN  It was set before.
 * @retval MUSTER_E_ARG  The flag is NULL or not aligned to 4 bytes, or the order is unknown.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_atomic_test_and_set(uint32_t *flag, int32_t order);

/** Clears a flag.
 * @param[in] flag   The flag.
 * @param[in] order  A ::muster_atomic_order.
 * @retval MUSTER_OK     It is 0.
 * @retval MUSTER_E_ARG  The flag is NULL or not aligned to 4 bytes, or the order is unknown.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_atomic_clear(uint32_t *flag, int32_t order);

/** Waits until cells have certain values (shmem_wait_until, _any, _all and _some of OpenSHMEM). It first checks for a
 * moment and then sleeps in the kernel; a thread that writes a cell calls muster_atomic_notify() afterwards.
 * @param[in,out] conditions  The cells, their comparisons and, afterwards, what was found.
 * @param[in]     count       Their number, 1 to 64.
 * @param[in]     needed      How many have to be true: 1 waits for any, @p count for all.
 * @param[in]     timeout_ns  Maximum wait; 0 checks once, -1: no limit.
 * @retval MUSTER_OK             At least @p needed were true in one pass over the cells.
 * @retval MUSTER_TIMEOUT        They were not, in time.
 * @retval MUSTER_E_ARG          A cell is NULL or misaligned, or a value is out of range; nothing changed.
 * @retval MUSTER_E_UNSUPPORTED  More than one cell, or one of 8 bytes, on a kernel without futex_waitv (before 5.16).
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_atomic_wait(muster_atomic_condition *conditions, uint32_t count, uint32_t needed,
                                            int64_t timeout_ns);

/** Wakes threads, of any process, that wait for a cell. Call it after the cell was written.
 * @param[in] cell        The cell.
 * @param[in] size_bytes  4 or 8.
 * @retval MUSTER_OK     Done, also if no thread waited.
 * @retval MUSTER_E_ARG  The cell is NULL or misaligned, or its size is neither 4 nor 8.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_atomic_notify(const void *cell, uint32_t size_bytes);

/** Returns the size of an ABA cell.
 * @return 16.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API uint32_t muster_aba_size(void);

/** Returns the alignment of an ABA cell. A language that cannot align allocates 15 bytes more and rounds up.
 * @return 16.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API uint32_t muster_aba_alignment(void);

/** Reads an ABA cell, both halves in one step.
 * @param[in]  cell  The cell; 16 zero bytes are a cell with the value 0.
 * @param[out] out   Its value and count.
 * @retval MUSTER_OK     Read.
 * @retval MUSTER_E_ARG  A pointer is NULL, or the cell is not aligned to 16 bytes.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_aba_read(const muster_aba *cell, muster_aba *out);

/** Writes a value; the count grows by one.
 * @param[in] cell   The cell.
 * @param[in] value  New value.
 * @retval MUSTER_OK     Written.
 * @retval MUSTER_E_ARG  The cell is NULL or not aligned to 16 bytes.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_aba_write(muster_aba *cell, uint64_t value);

/** Writes a value and returns what the cell was; the count grows by one.
 * @param[in]  cell   The cell.
 * @param[in]  value  New value.
 * @param[out] out    Value and count before, or NULL.
 * @retval MUSTER_OK     Exchanged.
 * @retval MUSTER_E_ARG  The cell is NULL or not aligned to 16 bytes.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_aba_exchange(muster_aba *cell, uint64_t value, muster_aba *out);

/** Writes a value if value and count are the expected ones: no write has happened since they were read.
 * @param[in]     cell      The cell.
 * @param[in,out] expected  Value and count; after ::MUSTER_AGAIN those that were found.
 * @param[in]     desired   New value; the count becomes expected->count + 1.
 * @retval MUSTER_OK     Written.
 * @retval MUSTER_AGAIN  The cell had other contents, which @p expected has now; nothing was written.
 * @retval MUSTER_E_ARG  A pointer is NULL, or the cell is not aligned to 16 bytes.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_aba_compare_exchange(muster_aba *cell, muster_aba *expected, uint64_t desired);

/** Writes a value if the value, with any count, is the expected one; the count grows by one.
 * @param[in]     cell      The cell.
 * @param[in,out] expected  The value; after ::MUSTER_AGAIN the value that was found.
 * @param[in]     desired   New value.
 * @retval MUSTER_OK     Written.
 * @retval MUSTER_AGAIN  The cell had another value, which @p expected has now; nothing was written.
 * @retval MUSTER_E_ARG  A pointer is NULL, or the cell is not aligned to 16 bytes.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_aba_compare_exchange_value(muster_aba *cell, uint64_t *expected, uint64_t desired);

#ifdef __cplusplus
}
#endif
#endif
