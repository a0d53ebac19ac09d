/* SPDX-License-Identifier: MIT */
/** @file
 * Global memory: each member of a group, here called a locale, has a segment that all of them can use.
 *
 * Locales of one user on one host share their memory: they use each other's segments directly. Operations on the
 * segment of a locale elsewhere are active messages (am.h) over the transport of the group, which the library of that
 * locale executes while its host computes; so they may be begun without waiting, and they wait up to a timeout.
 *
 * A place in it has a global pointer, a number that means the same in every process: the locale in the upper bits, the
 * offset within its segment in the lower ones. It is never an address. 0 is nil. How many bits the locale has is chosen
 * when the memory is made. Some bits between the two are the incarnation of the memory: a pointer of the memory that
 * these processes had before a member died, and its successor took its place, gives ::MUSTER_E_STALE in the next one,
 * and so does a pointer of another memory.
 *
 * A segment begins with what its users allocate symmetrically: at the same offset in every locale. The rest is a heap,
 * in which any locale allocates and frees blocks in any segment, without a lock: a process that is stopped or killed
 * holds up no other. (Free lists with counted pointers, as of R. K. Treiber and M. M. Michael; a block goes back to the
 * list of its size.)
 *
 * Operations on one cell are atomic in one way for its whole life: words of 32 and 64 bits, and ABA cells as in
 * atomic.h. All of them are the processor's instructions on memory that the processes of the cell's host share, so the
 * functions of atomic.h, or the atomics of a language, may be mixed with them there, on the address that
 * muster_memory_address() gives. Operations of one thread on one locale are performed in their order. The order of an
 * operation holds at the cell's host; an operation that has returned is visible to all locales.
 *
 * A put or get of up to 256 bytes in multiples of 8, with a target that is aligned to 8, moves each word of 8 bytes
 * whole, so it may meet cells that others change: a get acquires, and a put releases. Others must not overlap with
 * changes.
 *
 * Locales trust each other: a process that writes outside of its blocks damages those of others, as threads do. When
 * one dies, the others go on. Its segment stays for those of its host; elsewhere operations on it end with
 * ::MUSTER_E_PEER. The group fails, so symmetric allocation is no longer possible.
 *
 * Objects that others may be reading are freed by epochs: muster_memory_epoch() gives the manager of this memory, which
 * survives the death of any locale (epoch.h; muster_epoch_retire() takes global pointers, and muster_memory_reclaim()
 * frees them). */
#ifndef MUSTER_MEMORY_H
#define MUSTER_MEMORY_H

#include <muster/atomic.h>
#include <muster/epoch.h>
#include <muster/group.h>
#include <muster/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Opaque; made by muster_memory_open(). */
typedef struct muster_memory muster_memory;

/** A global pointer: locale << (64 - muster_memory_config::locale_bits) | incarnation << some bits | offset. 0: nil.
 * muster_memory_pointer() and muster_memory_parts() make and read it; adding to it adds to the offset. */
typedef uint64_t muster_gptr;

/** Flags of muster_memory_config::flags. */
enum muster_memory_flag {
    MUSTER_MEMORY_NO_SHARED_MEMORY = 1 /**< Locales use active messages also within a host. */
};

/** How to make a memory; the same at all locales. */
typedef struct muster_memory_config {
    uint32_t struct_size;     /**< sizeof(muster_memory_config) of the caller. */
    uint32_t locale_bits;     /**< Bits of a global pointer for the locale, 1 to 32; 0: 16. */
    uint64_t segment_bytes;   /**< Size of each segment, rounded up to pages; at least 64 KiB, at most what the offset
                                   can express. All of it is allocated at once. 0: 16 MiB. */
    uint64_t symmetric_bytes; /**< How much of it is for symmetric allocation, rounded up to pages; 0: a quarter. */
    uint32_t max_tokens;      /**< As in muster_epoch_config, for muster_memory_epoch(); 0: 4 for each locale, at least
                                   16. */
    uint32_t max_pending; /**< As in muster_epoch_config; 0: 4096. All of it is allocated at once, too: 24 bytes each
                               for every token. */
    uint32_t flags;       /**< ::muster_memory_flag values, or'ed. */
    uint32_t incarnation_bits; /**< Bits of a global pointer for the incarnation, 2 to 16, which are taken from the
                                    offset. A pointer is stale in the next 2^bits - 2 memories of the same processes.
                                    0: what the segment leaves, up to 8; if it leaves less than 2 bits, none, and
                                    pointers of an earlier memory are not recognised. */
} muster_memory_config;

/** Where the segments are in this process, for `inline/memory.h` and compilers of other languages. */
typedef struct muster_memory_view {
    const uint64_t *bases;  /**< For each locale what is added, modulo 2^64, to the `offset_bits` lower bits of a global
                               pointer to get its address; 0: its segment is not mapped. Valid until the memory is
                               released. */
    uint64_t segment_bytes; /**< Size of each segment. */
    uint32_t locales;       /**< Number of locales. */
    uint32_t offset_bits;   /**< Bits of a global pointer below the locale: 64 - muster_memory_config::locale_bits. */
} muster_memory_view;

/** What an operation does. */
enum muster_memory_kind {
    MUSTER_MEMORY_PUT = 1,              /**< Copies `bytes` bytes from `local` to the target. */
    MUSTER_MEMORY_GET = 2,              /**< Copies `bytes` bytes from the target to `local`. */
    MUSTER_MEMORY_READ = 3,             /**< Reads a cell. */
    MUSTER_MEMORY_WRITE = 4,            /**< Writes `value` to a cell. */
    MUSTER_MEMORY_EXCHANGE = 5,         /**< Writes `value`, and returns what the cell was. */
    MUSTER_MEMORY_COMPARE_EXCHANGE = 6, /**< Writes `value` if the cell is `expected` (of an ABA cell: with the count
                                             `expected_count`, too), and returns what it was. */
    MUSTER_MEMORY_FETCH = 7             /**< Combines a word with `value` by the ::muster_atomic_operation `operation`,
                                             and returns what it was. */
};

/** Kinds of cells; a cell keeps its kind for its whole life. */
enum muster_memory_cell {
    MUSTER_MEMORY_WORD64 = 0, /**< 8 bytes, aligned to 8. */
    MUSTER_MEMORY_WORD32 = 1, /**< 4 bytes, aligned to 4. */
    MUSTER_MEMORY_ABA = 2     /**< muster_aba, 16 bytes, aligned to 16: a value and a count of writes. */
};

/** An operation on one target. */
typedef struct muster_memory_operation {
    uint32_t struct_size; /**< sizeof(muster_memory_operation) of the caller. */
    uint32_t kind;        /**< A ::muster_memory_kind. */
    muster_gptr target;   /**< The place; not nil. */
    void *local;          /**< PUT, GET: memory of the caller; PUT only reads it. Otherwise NULL. */
    uint64_t bytes;       /**< PUT, GET: size. Otherwise 0. */
    uint32_t cell;        /**< Others: a ::muster_memory_cell. */
    int32_t order;        /**< Others: a ::muster_atomic_order; ABA cells are sequentially consistent always. */
    int32_t operation;    /**< FETCH: a ::muster_atomic_operation. Otherwise 0. */
    uint32_t notify;      /**< 1: wakes those that wait for the cell (muster_atomic_wait()) if it was written. PUT: for
                               the cell at `signal`. */
    uint64_t value;       /**< New value or operand. */
    uint64_t expected;    /**< COMPARE_EXCHANGE: the value that the cell must have. */
    uint64_t expected_count; /**< COMPARE_EXCHANGE of an ABA cell: its count. */
    muster_gptr signal;      /**< PUT: a word of 64 bits to which `value` is added after the bytes are visible; or 0. In
                                  the same segment as the target, or both segments are mapped here. */
} muster_memory_operation;

/** What an operation has found. */
typedef struct muster_memory_result {
    uint64_t value; /**< READ, EXCHANGE, COMPARE_EXCHANGE, FETCH: what the cell was. */
    uint64_t count; /**< ABA cells: its count then. */
} muster_memory_result;

/** Counters of the heap in one segment. */
typedef struct muster_memory_stats {
    uint64_t heap_bytes;      /**< Size of the heap. */
    uint64_t fresh_bytes;     /**< Bytes of it that were never allocated. */
    uint64_t used_bytes;      /**< Bytes in allocated blocks, as they were rounded up. */
    uint64_t used_blocks;     /**< Their number. */
    uint64_t allocated;       /**< Blocks that were allocated since the memory was made. */
    uint64_t refused;         /**< Allocations for which there was no room. */
    uint64_t symmetric_bytes; /**< Bytes of the symmetric part that were given out. */
    uint64_t reserved;        /**< Zero. */
} muster_memory_stats;

/** State of a locale. */
typedef struct muster_memory_locale_info {
    muster_status status; /**< ::MUSTER_OK: it can be used. Otherwise why it cannot: ::MUSTER_E_PEER,
                               ::MUSTER_E_ABORTED, ::MUSTER_E_PROTOCOL, ::MUSTER_E_CLOSED. */
    uint32_t is_mapped;   /**< 1: its segment has addresses in this process. */
    uint32_t node;        /**< Number of its host: the same for locales that share memory. */
    uint32_t requests;    /**< Operations on it that were begun here and are not done. */
    uint64_t dropped;     /**< Objects on it that muster_memory_reclaim() has dropped in this process, because it has
                               ended. */
} muster_memory_locale_info;

/** Makes a memory, with all members of a group. The group is used for this call and for symmetric allocation, and may
 * be used for other operations in between; it is kept.
 * @param[in]  group       A group; each rank becomes the locale of that number. All members make this call.
 * @param[in]  config      Sizes; copied. NULL: all defaults.
 * @param[in]  timeout_ns  Maximum wait; -1: no limit.
 * @param[out] out_memory  The memory; the caller owns one reference.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK              Made at all locales.
 * @bad_config
 * @retval MUSTER_E_MISMATCH      Another locale has given another configuration; all locales get this.
 * @retval MUSTER_E_UNREACHABLE   Locales of different hosts could not connect to each other; the group has failed.
 * @retval MUSTER_E_EXISTS        The address at which this locale would listen is in use.
 * @retval MUSTER_E_AUTH          A locale has another secret.
 * @retval MUSTER_E_PERMISSION    The operating system refuses this user.
 * @retval MUSTER_E_PLUGIN        A plug-in has failed.
 * @retval MUSTER_E_NOMEM         The segments are larger than the memory that is available; all get this.
 * @retval MUSTER_E_LIMIT         No descriptors or no shared memory is left; all get this.
 * @retval MUSTER_E_SYSTEM        /proc cannot be read, or the memory cannot be mapped.
 * @retval MUSTER_E_CLOSED        The group or its context is closed.
 * @retval MUSTER_E_PEER          A member of the group has died.
 * @retval MUSTER_E_ABORTED       Another member has ended the group, or could not connect to the others.
 * @retval MUSTER_E_PROTOCOL      Another member does not follow the protocol of groups.
 * @retval MUSTER_E_CANCELED      The group was revoked, or the call was cancelled.
 * @retval MUSTER_TIMEOUT         Not all members made the call in time; the group has failed.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called by a callback on the thread of the library.
 * @retval MUSTER_E_FORKED        The group belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_memory_open(muster_group *group, const muster_memory_config *config, int64_t timeout_ns,
                                            muster_memory **out_memory, muster_error *error);

/** Gives up the reference to a memory. Addresses in it become invalid for this process; the segment stays for the
 * others. Blocks elsewhere that muster_memory_reclaim() has freed and could not send yet stay allocated there:
 * muster_memory_flush() or muster_memory_clear() is called before.
 * @param[in] memory  Memory, or NULL. No other call with it is under way.
 * @threads{one} @blocks{no} @since 0.1 */
MUSTER_API void muster_memory_release(muster_memory *memory);

/** Returns the number of this locale.
 * @param[in] memory  Memory.
 * @return The rank in the group.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API uint32_t muster_memory_locale(const muster_memory *memory);

/** Returns the number of locales.
 * @param[in] memory  Memory.
 * @return The size of the group.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API uint32_t muster_memory_locales(const muster_memory *memory);

/** Makes a global pointer.
 * @param[in]  memory   Memory.
 * @param[in]  locale   Locale.
 * @param[in]  offset   Offset in its segment.
 * @param[out] out      The pointer.
 * @retval MUSTER_OK     Made.
 * @retval MUSTER_E_ARG  No such locale, an offset outside of the segment, or no destination.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_memory_pointer(const muster_memory *memory, uint32_t locale, uint64_t offset,
                                               muster_gptr *out);

/** Returns the parts of a global pointer.
 * @param[in]  memory      Memory.
 * @param[in]  pointer     Pointer, not nil.
 * @param[out] out_locale  Its locale, or NULL.
 * @param[out] out_offset  Its offset, or NULL.
 * @retval MUSTER_OK     Returned.
 * @retval MUSTER_E_ARG  It is nil, has no such locale, or is outside of the segment.
 * @retval MUSTER_E_STALE  It is a pointer of an earlier memory.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_memory_parts(const muster_memory *memory, muster_gptr pointer, uint32_t *out_locale,
                                             uint64_t *out_offset);

/** Returns the address of a place in this process.
 * @param[in]  memory       Memory.
 * @param[in]  pointer      The place.
 * @param[in]  bytes        Size of what is used there.
 * @param[out] out_address  Its address, valid until the memory is released. The address of another locale's segment
 *                          minus its offset is the same for all places in it.
 * @retval MUSTER_OK             Returned.
 * @retval MUSTER_E_ARG          It is nil, has no such locale, or reaches beyond the segment; or no destination.
 * @retval MUSTER_E_STALE        It is a pointer of an earlier memory.
 * @retval MUSTER_E_UNSUPPORTED  The segment is on another host.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_memory_address(const muster_memory *memory, muster_gptr pointer, uint64_t bytes,
                                               void **out_address);

/** Returns where the segments are in this process: muster_memory_address() without a call and without checks.
 * @param[in]  memory    Memory.
 * @param[out] out_view  The view.
 * @retval MUSTER_OK     Returned.
 * @retval MUSTER_E_ARG  No memory, or no destination.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_memory_get_view(const muster_memory *memory, muster_memory_view *out_view);

/** Allocates the same offset in each segment; the bytes are zero. All locales make the same calls in the same order.
 * There is no free: it is for what lasts as long as the memory.
 * @param[in]  memory      Memory.
 * @param[in]  bytes       Size, not 0.
 * @param[in]  alignment   A power of two, at most 4096; 0: 16.
 * @param[in]  timeout_ns  Maximum wait; -1: no limit.
 * @param[out] out_offset  The offset; muster_memory_pointer() makes the global pointer of each locale.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK              Allocated at all locales.
 * @retval MUSTER_E_ARG           A size or an alignment out of range, or no destination.
 * @retval MUSTER_E_LIMIT         The symmetric part has no room; nothing changed.
 * @retval MUSTER_E_MISMATCH      Another locale has given other values; nothing changed, all locales get this.
 * @retval MUSTER_E_CLOSED        The group or its context is closed.
 * @retval MUSTER_E_PEER          A member of the group has died.
 * @retval MUSTER_E_ABORTED       Another member has ended the group.
 * @retval MUSTER_E_PROTOCOL      Another member does not follow the protocol of groups.
 * @retval MUSTER_E_CANCELED      The group was revoked, or the call was cancelled.
 * @retval MUSTER_TIMEOUT         Not all members made the call in time; the group has failed.
 * @retval MUSTER_E_NOMEM         Memory ran out.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called by a callback on the thread of the library.
 * @retval MUSTER_E_FORKED        The memory belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_memory_symmetric(muster_memory *memory, uint64_t bytes, uint64_t alignment,
                                                 int64_t timeout_ns, uint64_t *out_offset, muster_error *error);

/** Allocates a block in the heap of a locale. Lock-free if its segment is mapped here.
 * @param[in]  memory      Memory.
 * @param[in]  locale      Any locale.
 * @param[in]  bytes       Size, not 0. It is rounded up: 16 bytes and at most half of it more.
 * @param[in]  timeout_ns  Maximum wait for a locale that is elsewhere; -1: no limit.
 * @param[out] out         The block, aligned to 16 bytes, from 1 KiB on to 64. Its contents are undefined.
 * @retval MUSTER_OK       Allocated.
 * @retval MUSTER_AGAIN    The heap has no room for it now; nothing changed.
 * @retval MUSTER_E_ARG    No such locale, no size, or no destination.
 * @retval MUSTER_E_LIMIT  The heap is smaller than the block.
 * @retval MUSTER_TIMEOUT   The locale has not answered in time; it may have been done, or may be later.
 * @retval MUSTER_E_PEER    The locale has ended; it may have been done.
 * @retval MUSTER_E_ABORTED  It has disconnected this one. The same.
 * @retval MUSTER_E_PROTOCOL  It has broken the protocol. The same.
 * @retval MUSTER_E_CLOSED  The context is closed.
 * @retval MUSTER_E_NOMEM   Memory ran out.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called on the thread of the library, and the locale is elsewhere.
 * @retval MUSTER_E_FORKED  The memory belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns, if the locale is elsewhere} @since 0.1 */
MUSTER_API muster_status muster_memory_allocate(muster_memory *memory, uint32_t locale, uint64_t bytes,
                                                int64_t timeout_ns, muster_gptr *out);

/** Frees a block. Lock-free if its segment is mapped here. No locale reads it any more: see muster_memory_epoch()
 * otherwise.
 * @param[in] memory      Memory.
 * @param[in] block       As muster_memory_allocate() returned it, on any locale; 0 is ignored.
 * @param[in] timeout_ns  Maximum wait for a locale that is elsewhere; -1: no limit.
 * @retval MUSTER_OK      Freed.
 * @retval MUSTER_E_ARG   It is not the beginning of a block of a heap.
 * @retval MUSTER_E_STALE  It was freed before, or is a pointer of an earlier memory.
 * @retval MUSTER_TIMEOUT   The locale has not answered in time; it may have been done, or may be later.
 * @retval MUSTER_E_PEER    The locale has ended; it may have been done.
 * @retval MUSTER_E_ABORTED  It has disconnected this one. The same.
 * @retval MUSTER_E_PROTOCOL  It has broken the protocol. The same.
 * @retval MUSTER_E_CLOSED  The context is closed.
 * @retval MUSTER_E_NOMEM   Memory ran out.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called on the thread of the library, and the locale is elsewhere.
 * @retval MUSTER_E_FORKED  The memory belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns, if the locale is elsewhere} @since 0.1 */
MUSTER_API muster_status muster_memory_free(muster_memory *memory, muster_gptr block, int64_t timeout_ns);

/** Performs an operation.
 * @param[in]  memory      Memory.
 * @param[in]  operation   What to do.
 * @param[in]  timeout_ns  Maximum wait for a locale that is elsewhere; -1: no limit.
 * @param[out] out         What was found; NULL if the operation returns nothing, or nothing is wanted.
 * @retval MUSTER_OK      Done, and visible to all locales as the order says.
 * @retval MUSTER_AGAIN   COMPARE_EXCHANGE: the cell was another one, which @p out has; nothing was written.
 * @retval MUSTER_E_ARG   The target is nil or outside of its segment or misaligned, or a value is out of range or does
 * not belong to this kind, or the signal is elsewhere than the target; nothing changed.
 * @retval MUSTER_E_STALE  The target or the signal is a pointer of an earlier memory; nothing changed.
 * @retval MUSTER_E_ABI   struct_size is not that of this structure.
 * @retval MUSTER_TIMEOUT   The locale has not answered in time; it may have been done, or may be later.
 * @retval MUSTER_E_PEER    The locale has ended; it may have been done.
 * @retval MUSTER_E_ABORTED  It has disconnected this one. The same.
 * @retval MUSTER_E_PROTOCOL  It has broken the protocol. The same.
 * @retval MUSTER_E_CLOSED  The context is closed.
 * @retval MUSTER_E_NOMEM   Memory ran out.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called on the thread of the library, and the locale is elsewhere.
 * @retval MUSTER_E_FORKED  The memory belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns, if the locale is elsewhere} @since 0.1 */
MUSTER_API muster_status muster_memory_run(muster_memory *memory, const muster_memory_operation *operation,
                                           int64_t timeout_ns, muster_memory_result *out);

/** Begins an operation, which ::MUSTER_DONE_MEMORY ends: its status is that of muster_memory_run(). Operations that
 * were begun on one locale are performed in their order, but for those of more than 64 KiB.
 * @param[in]  memory     Memory.
 * @param[in]  operation  What to do; copied. What a PUT copies is copied at once up to 64 KiB; more, and the
 * destination of a GET, is lent until the entry, or until the queue is closed.
 * @param[out] out        What was found, lent in the same way; or NULL.
 * @param[in]  queue      Queue of the context of the group for the entry; NULL: there is none, and
 * muster_memory_flush() reports a failure. A copy then has at most 64 KiB if the locale is elsewhere.
 * @param[in]  tag        muster_completion::tag of the entry.
 * @retval MUSTER_OK       Begun; without a queue perhaps done.
 * @retval MUSTER_AGAIN    As many operations on this locale are under way as may, or the queue has no slot; nothing was
 *                         begun. muster_memory_flush() waits for room.
 * @retval MUSTER_E_ARG    As muster_memory_run(); a queue of another context; or too many bytes without a queue.
 * @retval MUSTER_E_STALE  As muster_memory_run().
 * @retval MUSTER_E_ABI    struct_size is not that of this structure.
 * @retval MUSTER_E_PEER   The locale has ended.
 * @retval MUSTER_E_ABORTED  It has disconnected this one.
 * @retval MUSTER_E_PROTOCOL  It has broken the protocol.
 * @retval MUSTER_E_CLOSED  The context or the queue is closed.
 * @retval MUSTER_E_NOMEM  Memory ran out.
 * @retval MUSTER_E_LIMIT  No thread of the library is left for a large copy.
 * @retval MUSTER_E_FORKED  The memory belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_memory_begin(muster_memory *memory, const muster_memory_operation *operation,
                                             muster_memory_result *out, muster_queue *queue, uint64_t tag);

/** Waits until the operations that were begun before are done, but for copies of more than 64 KiB, and the owners have
 * the blocks that muster_memory_reclaim() has freed.
 * @param[in] memory      Memory.
 * @param[in] locale      Locale; UINT32_MAX: all of them.
 * @param[in] timeout_ns  Maximum wait; 0 only looks, -1: no limit.
 * @retval MUSTER_OK       They are done, and those without a queue have succeeded.
 * @retval MUSTER_AGAIN    Not all are; the timeout was 0.
 * @retval MUSTER_TIMEOUT  Not all are in time.
 * @retval MUSTER_E_ARG    No memory, or no such locale.
 * @retval MUSTER_E_CLOSED  The context is closed.
 * @retval MUSTER_E_NOMEM  Memory ran out; blocks that were freed wait for another call.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called on the thread of the library.
 * @retval MUSTER_E_FORKED  The memory belongs to the parent process.
 * @return Otherwise the first failure of an operation without a queue.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_memory_flush(muster_memory *memory, uint32_t locale, int64_t timeout_ns);

/** Returns the state of a locale.
 * @param[in]  memory    Memory.
 * @param[in]  locale    Any locale.
 * @param[out] out_info  The state.
 * @param[out] error     Why it cannot be used, or NULL; written only if it cannot.
 * @retval MUSTER_OK        Returned.
 * @retval MUSTER_E_ARG     No such locale, or no destination.
 * @retval MUSTER_E_FORKED  The memory belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_memory_get_locale(muster_memory *memory, uint32_t locale,
                                                  muster_memory_locale_info *out_info, muster_error *error);

/** Returns the manager of epochs of this memory. Its tokens, and the objects that they defer, are in the memory of the
 * host: pins, deferring and polls send no message. Objects are global pointers, given to muster_epoch_retire() and
 * freed by muster_memory_reclaim(); or handed back by muster_epoch_poll() of any locale of the host, and freed by
 * muster_memory_free().
 *
 * With locales elsewhere, the epochs of all hosts advance together: polls, muster_epoch_try_reclaim() and
 * muster_epoch_synchronize() ask for that, and a thread of the library does it, at most once at a time on each host;
 * muster_epoch_attempt::outcome is then ::MUSTER_EPOCH_LOST. A pinned token of any locale holds all of them up, until
 * it is unpinned or its process has died. A locale that another one cannot reach any more is disconnected by all.
 * @param[in]  memory     Memory.
 * @param[out] out_epoch  The manager; the memory owns it. Its tokens are unregistered before the memory is released.
 * @retval MUSTER_OK             Returned.
 * @retval MUSTER_E_ARG          No destination.
 * @retval MUSTER_E_UNSUPPORTED  This process may not use membarrier(2), on which the pins of the others rely; or it is
 * in another namespace of process ids.
 * @retval MUSTER_E_NOMEM        Memory ran out.
 * @retval MUSTER_E_SYSTEM       /proc cannot be read.
 * @retval MUSTER_E_FORKED       The memory belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_memory_epoch(muster_memory *memory, muster_epoch **out_epoch);

/** Frees objects of a token whose time has come: those that were given to muster_epoch_retire(), which are blocks of
 * this memory on any locale. Blocks elsewhere are freed by their owners, with one message for each owner; those of a
 * locale that has ended are dropped, and counted in muster_memory_locale_info. A message for which a stream has no room
 * is sent by a later call of any token, or by muster_memory_flush().
 * @param[in]  memory       Memory.
 * @param[in]  token        Token of muster_memory_epoch().
 * @param[in]  max_objects  At most so many.
 * @param[in]  max_ns       Begin no further part after that time; 0: no limit.
 * @param[out] out_freed    Their number, or NULL.
 * @retval MUSTER_OK       No object of the token is left whose time has come.
 * @retval MUSTER_AGAIN    A limit was reached, or a message was not sent.
 * @retval MUSTER_E_ARG    No memory or token, or one of the objects is no block; the others were freed.
 * @retval MUSTER_E_STALE  The token is not registered, or one of the objects was freed before or is one of an earlier
 * memory; the others were freed.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called by the function of an object that this token frees now.
 * @retval MUSTER_E_FORKED  The memory belongs to the parent process.
 * @threads{one at a time per token} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_memory_reclaim(muster_memory *memory, muster_epoch_token *token, uint32_t max_objects,
                                               uint64_t max_ns, uint32_t *out_freed);

/** Frees all objects that a token has deferred, and returns when their owners have done so: the end of a structure, or
 * a moment at which memory is counted. Each locale makes this call for each of its tokens, after no process uses the
 * objects any more; it waits until every token that was pinned before is unpinned. Objects of processes that have ended
 * are freed, too, by the first call on their host.
 * @param[in]  memory      Memory.
 * @param[in]  token       Token of muster_memory_epoch(), not pinned.
 * @param[in]  timeout_ns  Maximum wait; 0 only looks, -1: no limit.
 * @param[out] out_freed   Number of objects, also of a failure; or NULL.
 * @retval MUSTER_OK       No object of the token is left.
 * @retval MUSTER_TIMEOUT  A token remains pinned, an object protected, or a locale has not answered in time; the
 * objects wait.
 * @retval MUSTER_E_ARG    No memory or token, or one of the objects is no block; the others were freed.
 * @retval MUSTER_E_STALE  The token is not registered, or one of the objects was freed before or is one of an earlier
 * memory; the others were freed.
 * @retval MUSTER_E_CLOSED  The context is closed.
 * @retval MUSTER_E_WOULD_DEADLOCK  The token is pinned, or the call is made on the thread of the library.
 * @retval MUSTER_E_FORKED  The memory belongs to the parent process.
 * @threads{one at a time per token} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_memory_clear(muster_memory *memory, muster_epoch_token *token, int64_t timeout_ns,
                                             uint64_t *out_freed);

/** Returns the counters of the heap of a locale.
 * @param[in]  memory      Memory.
 * @param[in]  locale      Any locale.
 * @param[in]  timeout_ns  Maximum wait for a locale that is elsewhere; -1: no limit.
 * @param[out] out_stats   The counters.
 * @filled
 * @retval MUSTER_E_ARG  No such locale, or no destination.
 * @retval MUSTER_TIMEOUT   The locale has not answered in time; it may have been done, or may be later.
 * @retval MUSTER_E_PEER    The locale has ended; it may have been done.
 * @retval MUSTER_E_ABORTED  It has disconnected this one. The same.
 * @retval MUSTER_E_PROTOCOL  It has broken the protocol. The same.
 * @retval MUSTER_E_CLOSED  The context is closed.
 * @retval MUSTER_E_NOMEM   Memory ran out.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called on the thread of the library, and the locale is elsewhere.
 * @threads{any} @blocks{up to timeout_ns, if the locale is elsewhere} @since 0.1 */
MUSTER_API muster_status muster_memory_get_stats(muster_memory *memory, uint32_t locale, int64_t timeout_ns,
                                                 muster_memory_stats *out_stats);

#ifdef __cplusplus
}
#endif
#endif
