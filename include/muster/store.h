/* SPDX-License-Identifier: MIT */
/** @file
 * Stores: keys and values that the processes of a job share, with conditions, waits, counters and bounded queues.
 *
 * A request is a list of operations, each on one key. The list is one transaction: either all of it is done, at one
 * moment, or nothing. Each operation may have a condition on its key; if one does not hold, the request ends with
 * ::MUSTER_E_CHANGED, and the entries of the result say what is there instead. So compare-and-set is a SET with a
 * condition, and a lock over two keys is two of them. Operations that wait (GET, WAIT, POP) hold the whole list until
 * all of them can be done; conditions are looked at when nothing is waited for any more.
 *
 * Every change has a revision, a number that counts up in the store; the version of a key is the revision of its last
 * change. The version tells "absent" (0) from every value, and "the same value again" from "unchanged".
 *
 * A store remembers its last changes (65,536 of them, up to 16 MiB): WATCH shows those behind a revision, and waits for
 * the next where there are none. Whoever asks again with the revision of the last result misses nothing, and who comes
 * too late is told so.
 *
 * Queues and barriers have names of their own: a key and a queue of one name have nothing to do with each other.
 *
 * Was it applied? The status of a request says so, for every kind of store, for muster_store_do(),
 * muster_store_begin(), muster_lease_end() and its _begin form, and for views of rounds (rendezvous.h):
 *
 * - *Applied*: ::MUSTER_OK.
 * - *It may have been applied, or may yet be*: ::MUSTER_E_PEER (the store has not answered in time, or the connection
 *   broke; only a request that changes something ends so), ::MUSTER_E_STORE_LOST, ::MUSTER_E_CLOSED, ::MUSTER_E_PLUGIN
 *   and ::MUSTER_E_INTERNAL.
 * - *Not applied, and it will not be*: every other status, ::MUSTER_TIMEOUT, ::MUSTER_AGAIN and ::MUSTER_E_CANCELED
 *   among them.
 *
 * Requests that only read or wait change nothing and end with ::MUSTER_TIMEOUT at their deadline, whether the store
 * answers or not.
 *
 * Deadlines: a request ends at its deadline. If it may have been applied by then, its status is ::MUSTER_E_PEER, unless
 * muster_store_config::grace_ns gives the store more time for its answer. A request that both waits and changes
 * something (POP, BARRIER, a transaction with a GET or WAIT) is withdrawn from a store in another process by a quarter
 * of its timeout, at most 50 ms, before the deadline, so that the answer of a store that works is there at the
 * deadline. On a busy machine or a slow network the answer to a POP with a short timeout may nevertheless be late, and
 * the value that the store has taken out for it is then lost: set grace_ns for such stores.
 *
 * Limits: 1 to 8192 bytes of key, 8 MiB of value, 4096 operations and 16 MiB in a request, 16 MiB in a result (where a
 * condition did not hold, values beyond that are left out). */
#ifndef MUSTER_STORE_H
#define MUSTER_STORE_H

#include <muster/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Opaque; made by muster_store_open() or muster_store_view(). */
typedef struct muster_store muster_store;

/** Opaque; what a request has found and done. */
typedef struct muster_store_result muster_store_result;

/** Opaque; made by muster_store_lease(). */
typedef struct muster_lease muster_lease;

/** What an operation does; the value of muster_store_op::kind. */
enum muster_store_op_kind {
    MUSTER_STORE_NONE = 0,   /**< Nothing but its condition. Its entry shows the value, as READ does. */
    MUSTER_STORE_GET = 1,    /**< Reads a key; waits until it is there. */
    MUSTER_STORE_READ = 2,   /**< Reads a key, or finds that it is absent. */
    MUSTER_STORE_SET = 3,    /**< Gives a key a value. */
    MUSTER_STORE_ADD = 4,    /**< Adds `number` to a decimal number, absent counts as 0; the entry has the sum, and the
                                  key its text. */
    MUSTER_STORE_APPEND = 5, /**< Puts bytes behind the value, absent counts as empty; the entry has the new length. */
    MUSTER_STORE_DELETE = 6, /**< Makes a key absent; the entry is PRESENT if it was there. */
    MUSTER_STORE_CHECK = 7,  /**< As READ, without the value. */
    MUSTER_STORE_WAIT = 8,   /**< As GET, without the value. */
    MUSTER_STORE_COUNT = 9,  /**< The entry has the number of keys that begin with `key`, which may be empty. */
    MUSTER_STORE_LIST = 10,  /**< An entry for each key that begins with `key`, in the order of their bytes, up to
                                  `number` of them (0: 1000) and 4 MiB, behind the one in `value`, if it has bytes.
                                  ::MUSTER_STORE_MORE at the last one: there are more. */
    MUSTER_STORE_KEYS = 11,  /**< As LIST, without the values. */
    MUSTER_STORE_PUSH = 12,  /**< Puts a value at the end of a queue of at most `number` values (0: 65536); the entry
                                  has the new length. A full one is ::MUSTER_E_LIMIT. */
    MUSTER_STORE_POP = 13,   /**< Takes the first value of a queue; waits until there is one. Those who wait are served
                                  in the order they came. */
    MUSTER_STORE_TRY_POP = 14, /**< Takes the first value of a queue, or finds that it is empty. */
    MUSTER_STORE_LENGTH = 15,  /**< The entry has the number of values in a queue. */
    MUSTER_STORE_WATCH = 16, /**< An entry for each change, behind the revision in `version`, of a key that begins with
                                 `key`, which may be empty: PRESENT with the value, or not, when it was deleted; up to
                                 `number` of them (0: 1000), and 4 MiB. Waits until there is one. The revision of the
                                 result is where to go on. ::MUSTER_E_STALE: the changes behind that revision are not
                                 remembered any more, LIST and watch on from there. The only operation of its
                                 request, and without a condition. */
    MUSTER_STORE_BARRIER = 17, /**< Waits until all of `count` members, 1 to 2^20, are at the barrier of this name; the
                                   member's own rank, from 0, is `rank`. All go on at one moment, and the next may
                                   come. One that does not wait any more is not there. What is in vain names the ranks
                                   that are missing; a rank that is there already is ::MUSTER_E_EXISTS, another `count`
                                   than the others say ::MUSTER_E_ARG. The only operation of its request, and without a
                                   condition. */
    MUSTER_STORE_CLEAR = 18    /**< Empties the queues whose names begin with `key`, which may be empty, up to `number`
                                  of them (0: 1000); the entry has how many. ::MUSTER_STORE_MORE: there are more. The
                                  only operation on queues of its request. */
};

/** What has to be so for a request to be done; the value of muster_store_op::condition. */
enum muster_store_condition {
    MUSTER_STORE_ALWAYS = 0,     /**< No condition. */
    MUSTER_STORE_IF_ABSENT = 1,  /**< The key is not there. */
    MUSTER_STORE_IF_PRESENT = 2, /**< The key is there. */
    MUSTER_STORE_IF_VALUE = 3,   /**< The key is there, and its value is `expected`. */
    MUSTER_STORE_IF_VERSION = 4  /**< The version of the key is `version`; 0: it is not there. */
};

/** One operation; 88 bytes. What a kind does not name is zero. */
typedef struct muster_store_op {
    uint32_t kind;           /**< A ::muster_store_op_kind value. */
    uint32_t condition;      /**< A ::muster_store_condition value; queues, COUNT and LIST have none. */
    const void *key;         /**< Its key, any bytes. */
    uint64_t key_bytes;      /**< Length of the key. */
    const void *value;       /**< SET, APPEND, PUSH: the bytes; LIST: see there. */
    uint64_t value_bytes;    /**< Length of the value. */
    const void *expected;    /**< ::MUSTER_STORE_IF_VALUE: what has to be there. */
    uint64_t expected_bytes; /**< Its length. */
    uint64_t version;        /**< ::MUSTER_STORE_IF_VERSION: the version. WATCH: see there. */
    int64_t number;          /**< ADD: how much; LIST, WATCH, PUSH, CLEAR: how many at most. */
    uint64_t lease;          /**< SET, ADD, APPEND: muster_lease_id(), the key goes when that ends. 0: it stays (SET),
                                  or as it was before (ADD, APPEND). */
    uint32_t count;          /**< BARRIER: number of members, 1 to 2^20. */
    uint32_t rank;           /**< BARRIER: rank of this member, 0 to count - 1. */
} muster_store_op;

/** Flags of muster_store_entry::flags. */
enum muster_store_entry_flag {
    MUSTER_STORE_PRESENT = 1, /**< The key is there (DELETE: was), the queue had a value. */
    MUSTER_STORE_FAILED = 2,  /**< The condition of this operation does not hold. */
    MUSTER_STORE_MORE = 4,    /**< The last entry of a LIST that could not show everything; CLEAR: see there. */
    /* WATCH: why a key went with its lease, where the store can tell. */
    MUSTER_STORE_LEASE_ENDED = 8,   /**< Its owner ended the lease. */
    MUSTER_STORE_LEASE_SILENT = 16, /**< The lease was not kept in time. */
    MUSTER_STORE_LEASE_BROKEN = 32  /**< The connection of its owner broke: see ::MUSTER_LEASE_CONNECTED. */
};

/** What one operation has found; 56 bytes. Key and value stay where they are until the result is released. */
typedef struct muster_store_entry {
    uint32_t op;          /**< Which operation of the request, from 0. */
    uint32_t flags;       /**< ::muster_store_entry_flag values, or'ed. */
    uint64_t version;     /**< Version of the key after the request; 0: it is not there. */
    int64_t number;       /**< ADD: the sum; APPEND, PUSH, COUNT, LENGTH, CLEAR: see there. */
    const void *key;      /**< LIST: the key. */
    uint64_t key_bytes;   /**< Its length. */
    const void *value;    /**< GET, READ, LIST, POP, TRY_POP: the value. Also where a condition failed. */
    uint64_t value_bytes; /**< Its length. */
} muster_store_entry;

/** What a store can do; bits of muster_store_capabilities(). */
enum muster_store_capability {
    MUSTER_STORE_CAN_TRANSACT = 1, /**< Requests of more than one operation, and conditions. */
    MUSTER_STORE_CAN_QUEUE = 2,    /**< PUSH, POP, TRY_POP, LENGTH, CLEAR. */
    MUSTER_STORE_CAN_WAIT = 4,     /**< GET and WAIT of keys that are not there yet, POP of an empty queue. */
    MUSTER_STORE_CAN_WATCH = 8,    /**< WATCH. */
    MUSTER_STORE_CAN_LEASE = 16,   /**< muster_store_lease(). */
    MUSTER_STORE_CAN_BARRIER = 32  /**< BARRIER. */
};

/** How to open a store; all zero means the defaults named here. */
typedef struct muster_store_config {
    uint32_t struct_size;  /**< sizeof(muster_store_config) of the caller. */
    uint32_t flags;        /**< Zero. */
    uint64_t max_bytes;    /**< Where the store lives in this process: most bytes of keys and values it holds; a request
                                 that would exceed them is ::MUSTER_E_LIMIT. 0: 1 GiB. */
    int64_t lost_after_ns; /**< Where another process serves it: for so long it may be out of reach, then it is lost.
                                0: 60 s. */
    int64_t grace_ns;      /**< How long after its deadline a request that may have been applied still waits for the
                                answer of a store that another process, the host or a plug-in serves, or of a file
                                system. 0: not at all; the call returns at its deadline with ::MUSTER_E_PEER. */
    uint64_t reserved;     /**< Zero. */
} muster_store_config;

/** Opens a store.
 *
 * `memory:` is a new one, in this process, for those who hold it. `memory:name` is the one of that name in this
 * context; it lasts as long as somebody holds it, and the first to open it sets its limits.
 * @param[in]  context     Context it belongs to; the store keeps it alive.
 * @param[in]  url         Which store; text, no terminator needed. Passwords do not belong there.
 * @param[in]  url_bytes   Length of the text, at most 4096.
 * @param[in]  config      Options; copied. NULL means all defaults.
 * @param[in]  timeout_ns  Longest wait; -1 has no end of its own. At least 1.
 * @param[out] out_store   The store; the caller owns one reference.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK            Open.
 * @retval MUSTER_E_ARG         A value is missing or out of range; the text names it.
 * @retval MUSTER_E_ABI         The config has non-zero fields newer than this library.
 * @retval MUSTER_E_ADDRESS     The URL cannot be understood; the text says where.
 * @retval MUSTER_E_NOT_FOUND   No kind of store of that scheme, built in, served or in a plug-in.
 * @retval MUSTER_E_PLUGIN      The plug-in of that scheme cannot be used; the text names the package it lacks.
 * @retval MUSTER_E_UNREACHABLE Nobody answers there, or not in time.
 * @retval MUSTER_E_PERMISSION  The store does not let this user in.
 * @retval MUSTER_E_AUTH        The store does not know this user.
 * @retval MUSTER_E_PROTOCOL    What answers there is no such store, or too old.
 * @retval MUSTER_E_WOULD_DEADLOCK  The calling thread has to serve the store.
 * @retval MUSTER_E_NOMEM       No memory.
 * @retval MUSTER_E_CLOSED      The context is closed.
 * @retval MUSTER_E_CANCELED    muster_context_cancel() was called meanwhile.
 * @retval MUSTER_E_LIMIT       No descriptor left; or the queue of the program that serves the store is full.
 * @retval MUSTER_E_PEER        The connection to the server broke, and no other one succeeded in time.
 * @retval MUSTER_E_SYSTEM      Another failure of the system; see muster_error::os_errno.
 * @retval MUSTER_E_FORKED      The context belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_store_open(muster_context *context, const char *url, size_t url_bytes,
                                           const muster_store_config *config, int64_t timeout_ns,
                                           muster_store **out_store, muster_error *error);

/** Begins to open a store, as muster_store_open() does; ::MUSTER_DONE_OPEN comes with it, or without one with the
 * status and detail. muster_queue_cancel_operation() ends it early.
 * @param[in]  context     Context it belongs to.
 * @param[in]  url         Which store; copied.
 * @param[in]  url_bytes   Length of the text, at most 4096.
 * @param[in]  config      Options; copied. NULL means all defaults.
 * @param[in]  timeout_ns  Longest time it may take; -1 has no end of its own. At least 1.
 * @param[in]  queue       Where the completion appears; of the same context.
 * @param[in]  tag         Returned in muster_completion::tag.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK        Begun; ::MUSTER_DONE_OPEN will come, perhaps before this call returns.
 * @retval MUSTER_AGAIN     No slot in the queue; not begun.
 * @retval MUSTER_E_ARG     A value is missing or out of range, or the queue is of another context; the text names it.
 * @retval MUSTER_E_ABI     The config has non-zero fields newer than this library.
 * @retval MUSTER_E_NOMEM   No memory or no thread.
 * @retval MUSTER_E_CLOSED  The context or the queue is closed.
 * @retval MUSTER_E_FORKED  The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_open_begin(muster_context *context, const char *url, size_t url_bytes,
                                                 const muster_store_config *config, int64_t timeout_ns,
                                                 muster_queue *queue, uint64_t tag, muster_error *error);

/** Makes a view: the same store, where every key and queue has a prefix that the view adds and takes away.
 * @param[in]  store         The store, or a view of one.
 * @param[in]  prefix        Prefix; any bytes, copied. It counts against the length of keys.
 * @param[in]  prefix_bytes  Its length, at most 4096 with those of the views below.
 * @param[out] out_view      The view; the caller owns one reference. It keeps the store.
 * @param[out] error         Detail on failure, or NULL.
 * @retval MUSTER_OK       Made.
 * @retval MUSTER_E_ARG    A value is missing or out of range; the text names it.
 * @retval MUSTER_E_NOMEM  No memory.
 * @retval MUSTER_E_FORKED The store belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_view(muster_store *store, const void *prefix, size_t prefix_bytes,
                                           muster_store **out_view, muster_error *error);

/** Tells what a store can do.
 * @param[in] store  Store to ask.
 * @return ::muster_store_capability values, or'ed; 0 without a store.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API uint32_t muster_store_capabilities(const muster_store *store);

/** Does a request and waits for its result. "Was it applied?" at the top of this file says what each status means for
 * the store.
 * @param[in]  store       Store to ask.
 * @param[in]  ops         Operations, in order; copied.
 * @param[in]  op_count    How many, 1 to 4096.
 * @param[in]  timeout_ns  Longest wait; 0 looks once: what is missing is not waited for, only the answer of a store in
 *                         another process is, up to 30 s; -1 has no end.
 * @param[out] out_result  With ::MUSTER_OK and ::MUSTER_E_CHANGED the result, the caller owns one reference; else NULL.
 *                         NULL: it is not wanted.
 * @param[out] error       Detail: of a failure, and of what was waited for in vain; or NULL.
 * @retval MUSTER_OK              Applied.
 * @retval MUSTER_AGAIN           Something is waited for, and the timeout was 0. Not applied.
 * @retval MUSTER_TIMEOUT         Something was waited for until the deadline, or the request only reads, or it was
 * never sent; the text names what was waited for. Not applied.
 * @retval MUSTER_E_CHANGED       A condition does not hold; the entries show which, and the current values. Not
 * applied.
 * @retval MUSTER_E_ARG           A value is missing, out of range or impossible together; ADD to what is no number, or
 *                                past 64 bits; the text names the operation. Not applied.
 * @retval MUSTER_E_EXISTS        BARRIER: the rank has arrived already. Not applied.
 * @retval MUSTER_E_LIMIT         A key, value, queue or the store would be too large, or its disk is full; the text
 * says which. Not applied.
 * @retval MUSTER_E_STALE         The lease is over; or the changes to watch are not remembered; or the store is a view
 * of a round that is over. Not applied.
 * @retval MUSTER_E_UNSUPPORTED   The store cannot do that; see muster_store_capabilities(). Not applied.
 * @retval MUSTER_E_NOMEM         No memory. Not applied.
 * @retval MUSTER_E_CANCELED      muster_store_cancel() in another thread. Not applied.
 * @retval MUSTER_E_CLOSED        The context was closed, or the store was released meanwhile. It may have been applied.
 * @retval MUSTER_E_UNREACHABLE   A store elsewhere does not answer. Not applied.
 * @retval MUSTER_E_STORE_LOST    The store is lost, or was out of reach for muster_store_config::lost_after_ns. It may
 *                                have been applied.
 * @retval MUSTER_E_PEER          The store has not answered by the deadline, or 2 s after a cancel, or the connection
 * to it broke. It may have been applied.
 * @retval MUSTER_E_PERMISSION    The store does not allow that to this user. Not applied.
 * @retval MUSTER_E_AUTH          The store does not know this user. Not applied.
 * @retval MUSTER_E_PROTOCOL      The store refuses it for a reason of its own, which the text gives, or its file is
 *                                damaged. Not applied.
 * @retval MUSTER_E_NOT_FOUND     The file or folder of the store does not exist any more. Not applied.
 * @retval MUSTER_E_SYSTEM        A system call failed; see muster_error::os_errno. Not applied.
 * @retval MUSTER_E_PLUGIN        The host or plug-in that serves the store has given a wrong answer; the text says how.
 *                                It may have been applied.
 * @retval MUSTER_E_WOULD_DEADLOCK  It has to be waited for on a thread that serves the wait.
 * @retval MUSTER_E_FORKED        The store belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_store_do(muster_store *store, const muster_store_op *ops, size_t op_count,
                                         int64_t timeout_ns, muster_store_result **out_result, muster_error *error);

/** Begins a request; ::MUSTER_DONE_STORE comes with its result, or without one with the status and detail: one of those
 * of muster_store_do(), with the same meaning. Any number may be under way.
 * @param[in]  store       Store to ask.
 * @param[in]  ops         Operations, in order; copied.
 * @param[in]  op_count    How many, 1 to 4096.
 * @param[in]  timeout_ns  Longest time it may take, at least 1; -1 has no end of its own. A late one has
 *                         ::MUSTER_TIMEOUT, which is positive: look for ::MUSTER_OK or at the object.
 * @param[in]  queue       Where the completion appears.
 * @param[in]  tag         Returned in muster_completion::tag.
 * @param[out] out_request Names the request to muster_store_cancel(), never 0; or NULL.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK             Begun; the completion will come, perhaps before this call returns.
 * @retval MUSTER_AGAIN          No slot in the queue.
 * @retval MUSTER_E_ARG          A value is missing or out of range; the text names it.
 * @retval MUSTER_E_LIMIT        A key or the request is too large.
 * @retval MUSTER_E_UNSUPPORTED  The store cannot do that; see muster_store_capabilities().
 * @retval MUSTER_E_NOMEM        No memory.
 * @retval MUSTER_E_CLOSED       The context or the queue is closed.
 * @retval MUSTER_E_FORKED       The store belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_begin(muster_store *store, const muster_store_op *ops, size_t op_count,
                                            int64_t timeout_ns, muster_queue *queue, uint64_t tag,
                                            uint64_t *out_request, muster_error *error);

/** Ends a request with ::MUSTER_E_CANCELED; it is not applied. A store in another place is asked first, for up to 2 s
 * and not beyond the deadline of the request. If the request turns out to be applied, it ends with its result. If the
 * store does not answer, a request that changes something ends with ::MUSTER_E_PEER.
 * @param[in] store    Store, or view, it was made with.
 * @param[in] request  One that was begun; or 0: all for which threads wait in muster_store_do() with this very handle.
 * @retval MUSTER_OK       Cancelled. Of 0: also if there was none.
 * @retval MUSTER_E_STALE  It is over; its completion is there or comes.
 * @retval MUSTER_E_ARG    No store.
 * @retval MUSTER_E_FORKED The store belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_cancel(muster_store *store, uint64_t request);

/** Flags of muster_store_lease(). */
enum muster_lease_flag {
    MUSTER_LEASE_MANUAL =
        1, /**< The host keeps it, by muster_lease_keep(): so it shows that the host itself goes on. */
    MUSTER_LEASE_CONNECTED = 2 /**< It ends at once when the connection of this process ends without a goodbye: a
                                    process that was killed is noticed before its lease runs out. A store that sees no
                                    connections takes it as if it were not said. */
};

/** Makes a lease: keys that are set with it go when it ends. The library keeps it as long as the lease object and this
 * process live; then, or when a MANUAL one is not kept, it ends after the time, by the clock of whoever keeps the
 * store.
 * @param[in]  store       Store, or view, of the keys.
 * @param[in]  ttl_ns      Time it lasts without being kept, 1 ms to 24 hours.
 * @param[in]  flags       ::muster_lease_flag values, or'ed.
 * @param[in]  timeout_ns  Longest wait; 0 looks once, -1 has no end.
 * @param[out] out_lease   The lease; the caller owns one reference. It keeps the store.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK             Made.
 * @retval MUSTER_AGAIN          The store has not answered, and the timeout was 0.
 * @retval MUSTER_TIMEOUT        The store has not answered in time. A lease that it has made nevertheless ends by
 * itself.
 * @retval MUSTER_E_ARG          A value is missing or out of range; the text names it.
 * @retval MUSTER_E_UNSUPPORTED  The store has no leases, or none so short; the text says so.
 * @retval MUSTER_E_LIMIT        The store has too many leases, its disk is full, or no descriptor is left.
 * @retval MUSTER_E_UNREACHABLE  A store elsewhere does not answer; there is no lease.
 * @retval MUSTER_E_STORE_LOST   The store is lost, or was out of reach for muster_store_config::lost_after_ns.
 * @retval MUSTER_E_PERMISSION   The store does not allow that to this user.
 * @retval MUSTER_E_AUTH         The store does not know this user.
 * @retval MUSTER_E_PROTOCOL     The store refuses it for a reason of its own, which the text gives.
 * @retval MUSTER_E_PLUGIN       The host or plug-in that serves the store has given a wrong answer.
 * @retval MUSTER_E_NOMEM        No memory.
 * @retval MUSTER_E_CANCELED     muster_store_cancel() in another thread.
 * @retval MUSTER_E_CLOSED       The context is closed, or the store was released meanwhile.
 * @retval MUSTER_E_WOULD_DEADLOCK  It has to be waited for on a thread that serves the wait.
 * @retval MUSTER_E_PEER         The connection to a store elsewhere broke. There is no lease, or one that ends by
 *                               itself.
 * @retval MUSTER_E_SYSTEM       Another failure of the system.
 * @retval MUSTER_E_FORKED       The store belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_store_lease(muster_store *store, int64_t ttl_ns, uint32_t flags, int64_t timeout_ns,
                                            muster_lease **out_lease, muster_error *error);

/** Begins to make a lease; ::MUSTER_DONE_LEASE comes with it, or without one with the status and detail.
 * @param[in]  store       Store, or view, of the keys.
 * @param[in]  ttl_ns      Time it lasts without being kept, 1 ms to 24 hours.
 * @param[in]  flags       ::muster_lease_flag values, or'ed.
 * @param[in]  timeout_ns  Longest time it may take, at least 1; -1 has no end of its own.
 * @param[in]  queue       Where the completion appears.
 * @param[in]  tag         Returned in muster_completion::tag.
 * @param[out] out_request Names the request to muster_store_cancel(), never 0; or NULL.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK             Begun; the completion will come, perhaps before this call returns.
 * @retval MUSTER_AGAIN          No slot in the queue.
 * @retval MUSTER_E_ARG          A value is missing or out of range; the text names it.
 * @retval MUSTER_E_UNSUPPORTED  The store has no leases, or none so short; the text says so.
 * @retval MUSTER_E_NOMEM        No memory.
 * @retval MUSTER_E_CLOSED       The context or the queue is closed.
 * @retval MUSTER_E_FORKED       The store belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_lease_begin(muster_store *store, int64_t ttl_ns, uint32_t flags,
                                                  int64_t timeout_ns, muster_queue *queue, uint64_t tag,
                                                  uint64_t *out_request, muster_error *error);

/** Tells the number of a lease, for muster_store_op::lease.
 * @param[in] lease  Lease to ask.
 * @return The number, never 0; 0 without a lease.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API uint64_t muster_lease_id(const muster_lease *lease);

/** Keeps a MANUAL lease: from now on it lasts for its time once more. A store in another process is sent word of it.
 * @param[in] lease  Lease to keep.
 * @retval MUSTER_OK       Kept; of one that the library keeps, too.
 * @retval MUSTER_E_STALE  It has ended, as far as is known here.
 * @retval MUSTER_E_ARG    No lease.
 * @retval MUSTER_E_FORKED The lease belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_lease_keep(muster_lease *lease);

/** Ends a lease at once: its keys go, at one moment.
 * @param[in]  lease       Lease to end.
 * @param[in]  timeout_ns  Longest wait for the store to do it; 0 waits for its answer for up to 30 s, -1 has no end.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK         Ended.
 * @retval MUSTER_TIMEOUT    The store is out of reach and was not asked. The lease goes on as before.
 * @retval MUSTER_E_PEER     The store was asked and has not answered by the deadline, or the connection to it broke.
 *                           The lease may have ended; otherwise it ends after its time.
 * @retval MUSTER_E_STALE    It had ended before.
 * @retval MUSTER_E_ARG      No lease.
 * @retval MUSTER_E_NOMEM    No memory.
 * @retval MUSTER_E_UNREACHABLE  A store elsewhere does not answer. The lease goes on as before.
 * @retval MUSTER_E_STORE_LOST   The store is lost, or was out of reach for muster_store_config::lost_after_ns.
 * @retval MUSTER_E_LIMIT        The store's disk is full. The lease goes on as before.
 * @retval MUSTER_E_PERMISSION   The store does not allow that to this user.
 * @retval MUSTER_E_AUTH         The store does not know this user.
 * @retval MUSTER_E_PROTOCOL     The store refuses it for a reason of its own, which the text gives.
 * @retval MUSTER_E_PLUGIN       The host or plug-in that serves the store has given a wrong answer.
 * @retval MUSTER_E_CANCELED muster_context_cancel() or muster_store_cancel() was called meanwhile; not ended.
 * @retval MUSTER_E_CLOSED   The context was closed, or the lease was released meanwhile. It may have ended.
 * @retval MUSTER_E_WOULD_DEADLOCK  It has to be waited for on a thread that serves the wait.
 * @retval MUSTER_E_SYSTEM   Another failure of the system.
 * @retval MUSTER_E_FORKED   The lease belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_lease_end(muster_lease *lease, int64_t timeout_ns, muster_error *error);

/** Begins to end a lease, as muster_lease_end() does; ::MUSTER_DONE_STORE comes with its status.
 * @param[in]  lease       Lease to end.
 * @param[in]  timeout_ns  Longest time until the store has answered; -1 has no end. At least 1.
 * @param[in]  queue       Where the completion appears; of the same context.
 * @param[in]  tag         Returned in muster_completion::tag.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK        Begun; ::MUSTER_DONE_STORE will come, perhaps before this call returns.
 * @retval MUSTER_AGAIN     No slot in the queue; not begun.
 * @retval MUSTER_E_ARG     A value is missing or out of range, or the queue is of another context; the text names it.
 * @retval MUSTER_E_NOMEM   No memory.
 * @retval MUSTER_E_CLOSED  The context or the queue is closed.
 * @retval MUSTER_E_FORKED  The lease belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_lease_end_begin(muster_lease *lease, int64_t timeout_ns, muster_queue *queue,
                                                uint64_t tag, muster_error *error);

/** Gives up the handle; no process renews the lease any more, and it ends after its time. A thread that waits in
 * muster_lease_end() returns ::MUSTER_E_CLOSED.
 * @param[in] lease  What to release; NULL has no effect.
 * @threads{any, finalizers included} @blocks{no} @since 0.1 */
MUSTER_API void muster_lease_release(muster_lease *lease);

/** Gives up the handle. Threads that wait in muster_store_do() or muster_store_lease() with it return
 * ::MUSTER_E_CLOSED. Requests that were begun go on, and keep what they need.
 * @param[in] store  What to release; NULL has no effect.
 * @threads{any, finalizers included} @blocks{no} @since 0.1 */
MUSTER_API void muster_store_release(muster_store *store);

/** Tells how many entries a result has: one for each operation, of a LIST one for each key it shows.
 * @param[in] result  Result to read.
 * @return How many; 0 without a result.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API uint64_t muster_store_result_count(const muster_store_result *result);

/** Reads one entry of a result.
 * @param[in]  result     Result to read.
 * @param[in]  index      Which entry, from 0; those of one operation follow each other, in the order of operations.
 * @param[out] out_entry  The entry; what it points to is good until the result is released.
 * @retval MUSTER_OK          Read.
 * @retval MUSTER_E_ARG       A value is missing.
 * @retval MUSTER_E_NOT_FOUND There are not so many.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_result_entry(const muster_store_result *result, uint64_t index,
                                                   muster_store_entry *out_entry);

/** Tells the revision of the store when the request was done.
 * @param[in] result  Result to read.
 * @return The revision; 0 without a result.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API uint64_t muster_store_result_revision(const muster_store_result *result);

/** Gives up one reference.
 * @param[in] result  What to release; NULL has no effect.
 * @threads{any, finalizers included} @blocks{no} @since 0.1 */
MUSTER_API void muster_store_result_release(muster_store_result *result);

#ifdef __cplusplus
}
#endif

#endif
