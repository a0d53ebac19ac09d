/* SPDX-License-Identifier: MIT */
/** @file
 * Stores: keys and values that the processes of a job share, with conditions, waits, counters and bounded queues.
 *
 * A request is a list of operations, each on one key. The list is one transaction: all operations are applied at one
 * moment, or none is. Each operation may have a condition on its key. If a condition does not hold, the request ends
 * with ::MUSTER_E_CHANGED, and the entries of the result show the current values. A compare-and-set is a SET with a
 * condition; a lock over two keys is two of them in one request. Operations that wait (GET, WAIT, POP) delay the whole
 * list until all of them can be done; conditions are evaluated when no operation has to wait any more.
 *
 * Every change has a revision, a number that increases with each change of the store. The version of a key is the
 * revision of its last change. The version distinguishes an absent key (0) from every value, and a key that was set to
 * the same value again from an unchanged one.
 *
 * A store keeps a history of its last changes (65,536 changes, up to 16 MiB). WATCH returns the changes after a
 * revision, and waits for the next change if there is none. Passing the revision of the previous result continues
 * without gaps. If that revision is no longer in the history, the request ends with ::MUSTER_E_STALE.
 *
 * Queues and barriers have namespaces of their own: a key, a queue and a barrier of the same name are independent.
 *
 * Was a request applied? Its status answers that for every kind of store, for muster_store_do(), muster_store_begin(),
 * muster_lease_end() and its `_begin` form, and for the views of rounds (rendezvous.h):
 *
 * - *Applied*: ::MUSTER_OK.
 * - *It may have been applied, or may still be applied later*: ::MUSTER_E_PEER (the store did not answer in time, or
 *   the connection broke; only a request that changes something ends with it), ::MUSTER_E_STORE_LOST,
 *   ::MUSTER_E_CLOSED, ::MUSTER_E_PLUGIN and ::MUSTER_E_INTERNAL.
 * - *Not applied, and it will not be*: every other status, including ::MUSTER_TIMEOUT, ::MUSTER_AGAIN and
 *   ::MUSTER_E_CANCELED.
 *
 * Requests that only read or wait change nothing. They end with ::MUSTER_TIMEOUT at their deadline, whether the store
 * answers or not.
 *
 * Deadlines: a request ends at its deadline. If it may have been applied by then, its status is ::MUSTER_E_PEER, unless
 * muster_store_config::grace_ns gives the store more time to answer. A request that both waits and changes something
 * (POP, BARRIER, a transaction with a GET or WAIT) is withdrawn from a store in another process before its deadline, by
 * a quarter of its timeout and at most 50 ms, so that the answer of a responsive store arrives by the deadline. On a
 * busy machine or a slow network the answer to a POP with a short timeout may still be late, and the value that the
 * store has removed for it is then lost. Set grace_ns for such stores.
 *
 * Limits: a key has 1 to 8192 bytes, a value at most 8 MiB, a request at most 4096 operations and 16 MiB, a result at
 * most 16 MiB. Where a condition did not hold, values beyond that limit are left out of the result. */
#ifndef MUSTER_STORE_H
#define MUSTER_STORE_H

#include <muster/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Opaque; made by muster_store_open() or muster_store_view(). */
typedef struct muster_store muster_store;

/** Opaque; the result of a request. */
typedef struct muster_store_result muster_store_result;

/** Opaque; made by muster_store_lease(). */
typedef struct muster_lease muster_lease;

/** What an operation does; the value of muster_store_op::kind. */
enum muster_store_op_kind {
    MUSTER_STORE_NONE = 0,   /**< Only evaluates its condition. The entry has the value, as that of READ. */
    MUSTER_STORE_GET = 1,    /**< Reads a key; waits until the key is present. */
    MUSTER_STORE_READ = 2,   /**< Reads a key; an absent key is not an error. */
    MUSTER_STORE_SET = 3,    /**< Sets the value of a key. */
    MUSTER_STORE_ADD = 4,    /**< Adds `number` to the decimal number in a key; an absent key counts as 0. The entry has
                                  the sum, and the key has its decimal text. */
    MUSTER_STORE_APPEND = 5, /**< Appends bytes to the value of a key; an absent key counts as empty. The entry has the
                                  new length. */
    MUSTER_STORE_DELETE = 6, /**< Deletes a key. The entry is PRESENT if the key was present. */
    MUSTER_STORE_CHECK = 7,  /**< As READ, without the value. */
    MUSTER_STORE_WAIT = 8,   /**< As GET, without the value. */
    MUSTER_STORE_COUNT = 9,  /**< Counts the keys that begin with `key`, which may be empty. The entry has the count. */
    MUSTER_STORE_LIST = 10,  /**< Returns an entry for each key that begins with `key`, in byte order: up to `number`
                                  entries (0: 1000) and 4 MiB, starting after the key in `value` if that has bytes. The
                                  last entry has ::MUSTER_STORE_MORE if further keys exist. */
    MUSTER_STORE_KEYS = 11,  /**< As LIST, without the values. */
    MUSTER_STORE_PUSH = 12,  /**< Appends a value to a queue of at most `number` values (0: 65536). The entry has the
                                  new length. If the queue is full the request ends with ::MUSTER_E_LIMIT. */
    MUSTER_STORE_POP = 13,   /**< Removes the first value of a queue; waits until the queue has one. Waiting requests
                                  are served in the order of their arrival. */
    MUSTER_STORE_TRY_POP = 14, /**< Removes the first value of a queue; an empty queue is not an error. */
    MUSTER_STORE_LENGTH = 15,  /**< The entry has the number of values in a queue. */
    MUSTER_STORE_WATCH = 16,   /**< Returns an entry for each change, after the revision in `version`, of a key that
                                    begins with `key`, which may be empty. The entry is PRESENT and has the value, or
                                    is not PRESENT if the key was deleted. Up to `number` entries (0: 1000) and 4 MiB;
                                    waits until there is at least one. The revision of the result is the one to continue
                                    from. If the changes after `version` are no longer in the history, the request ends
                                    with ::MUSTER_E_STALE: LIST the keys, then watch from the revision of that result.
                                    It must be the only operation of its request, and has no condition. */
    MUSTER_STORE_BARRIER = 17, /**< Waits until all `count` members, 1 to 2^20, have arrived at the barrier of this
                                    name; `rank` is the rank of this member. All members are released at one moment,
                                    and the barrier can then be used again. A waiter whose wait timed out or was
                                    cancelled does not count as present. The error of a wait that failed names the
                                    missing ranks. ::MUSTER_E_EXISTS: this rank has already arrived. ::MUSTER_E_ARG:
                                    the other members gave another `count`. It must be the only operation of its
                                    request, and has no condition. */
    MUSTER_STORE_CLEAR = 18    /**< Empties the queues whose names begin with `key`, which may be empty: up to `number`
                                    of them (0: 1000). The entry has how many were emptied, and ::MUSTER_STORE_MORE if
                                    further ones exist. It must be the only operation on queues in its request. */
};

/** The condition of an operation; the value of muster_store_op::condition. */
enum muster_store_condition {
    MUSTER_STORE_ALWAYS = 0,     /**< No condition. */
    MUSTER_STORE_IF_ABSENT = 1,  /**< The key is absent. */
    MUSTER_STORE_IF_PRESENT = 2, /**< The key is present. */
    MUSTER_STORE_IF_VALUE = 3,   /**< The key is present and its value equals `expected`. */
    MUSTER_STORE_IF_VERSION = 4  /**< The version of the key equals `version`; 0: the key is absent. */
};

/** One operation; 88 bytes. Fields that an operation kind does not use are zero. */
typedef struct muster_store_op {
    uint32_t kind;           /**< A ::muster_store_op_kind value. */
    uint32_t condition;      /**< A ::muster_store_condition value; operations on queues, COUNT and LIST have none. */
    const void *key;         /**< The key, or the name of the queue or barrier; any bytes. */
    uint64_t key_bytes;      /**< Length of the key. */
    const void *value;       /**< SET, APPEND, PUSH: the bytes. LIST, KEYS: the key to start after. */
    uint64_t value_bytes;    /**< Length of the value. */
    const void *expected;    /**< ::MUSTER_STORE_IF_VALUE: the value that the key must have. */
    uint64_t expected_bytes; /**< Length of the expected value. */
    uint64_t version;        /**< ::MUSTER_STORE_IF_VERSION: the version. WATCH: the revision to start after. */
    int64_t number;          /**< ADD: the summand. LIST, KEYS, WATCH, CLEAR: the maximum number of results. PUSH: the
                                  maximum length of the queue. */
    uint64_t lease;          /**< SET, ADD, APPEND: a muster_lease_id(); the key is deleted when that lease ends. 0: the
                                  key has no lease (SET), or keeps the one it has (ADD, APPEND). */
    uint32_t count;          /**< BARRIER: number of members, 1 to 2^20. */
    uint32_t rank;           /**< BARRIER: rank of this member, 0 to count - 1. */
} muster_store_op;

/** Flags of muster_store_entry::flags. */
enum muster_store_entry_flag {
    MUSTER_STORE_PRESENT = 1, /**< The key is present (DELETE: was present), or the queue had a value. */
    MUSTER_STORE_FAILED = 2,  /**< The condition of this operation does not hold. */
    MUSTER_STORE_MORE = 4,    /**< LIST, KEYS: the last entry, if further keys exist. CLEAR: further queues exist. */
    /* WATCH: why a key was deleted with its lease, if the store knows. */
    MUSTER_STORE_LEASE_ENDED = 8,   /**< The owner ended the lease. */
    MUSTER_STORE_LEASE_SILENT = 16, /**< The lease was not renewed in time. */
    MUSTER_STORE_LEASE_BROKEN = 32  /**< The connection of the owner broke: see ::MUSTER_LEASE_CONNECTED. */
};

/** The result of one operation; 56 bytes. Key and value stay valid until the result is released. */
typedef struct muster_store_entry {
    uint32_t op;          /**< Index of the operation in the request, from 0. */
    uint32_t flags;       /**< ::muster_store_entry_flag values, or'ed. */
    uint64_t version;     /**< Version of the key after the request; 0: the key is absent. */
    int64_t number;       /**< ADD: the sum. APPEND, PUSH, LENGTH: the length. COUNT, CLEAR: the count. */
    const void *key;      /**< LIST, KEYS, WATCH: the key. */
    uint64_t key_bytes;   /**< Length of the key. */
    const void *value;    /**< NONE, GET, READ, LIST, WATCH, POP, TRY_POP: the value; also where a condition did
                               not hold. */
    uint64_t value_bytes; /**< Length of the value. */
} muster_store_entry;

/** What a store supports; bits of muster_store_capabilities(). */
enum muster_store_capability {
    MUSTER_STORE_CAN_TRANSACT = 1, /**< Requests of more than one operation, and conditions. */
    MUSTER_STORE_CAN_QUEUE = 2,    /**< PUSH, POP, TRY_POP, LENGTH, CLEAR. */
    MUSTER_STORE_CAN_WAIT = 4,     /**< GET and WAIT of absent keys, POP of an empty queue. */
    MUSTER_STORE_CAN_WATCH = 8,    /**< WATCH. */
    MUSTER_STORE_CAN_LEASE = 16,   /**< muster_store_lease(). */
    MUSTER_STORE_CAN_BARRIER = 32  /**< BARRIER. */
};

/** How to open a store; all zero means the defaults named here. */
typedef struct muster_store_config {
    uint32_t struct_size;  /**< sizeof(muster_store_config) of the caller. */
    uint32_t flags;        /**< Zero. */
    uint64_t max_bytes;    /**< Stores in this process: maximum bytes of keys and values in the store. A request that
                                would exceed them ends with ::MUSTER_E_LIMIT. 0: 1 GiB. */
    int64_t lost_after_ns; /**< Stores in another process: how long the store may be unreachable before it counts as
                                lost. 0: 60 s. */
    int64_t grace_ns;      /**< How long after its deadline a request that may have been applied still waits for the
                                answer of a store that another process, the host or a plug-in serves, or of a file
                                system. 0: not at all; the call returns ::MUSTER_E_PEER at its deadline. */
    uint64_t reserved;     /**< Zero. */
} muster_store_config;

/** Opens a store.
 *
 * `memory:` makes a new store in this process, which only the holders of the handle can use. `memory:name` opens the
 * store of that name in this context, or makes it: it exists as long as a handle to it exists, and the first open
 * determines its limits.
 * @param[in]  context     Context of the store; the store keeps it alive.
 * @param[in]  url         URL of the store; text, no terminator needed. Passwords do not belong in it.
 * @param[in]  url_bytes   Length of the text, at most 4096.
 * @param[in]  config      Options; copied. NULL means all defaults.
 * @param[in]  timeout_ns  Maximum wait, at least 1; -1: no limit.
 * @param[out] out_store   The store; the caller owns one reference.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK            The store is open.
 * @bad_config
 * @retval MUSTER_E_ADDRESS     The URL cannot be parsed; the error says where.
 * @retval MUSTER_E_NOT_FOUND   No store of this scheme is built in, served by the host or provided by a plug-in.
 * @retval MUSTER_E_PLUGIN      The plug-in of this scheme cannot be used; the error names the package that is missing.
 * @retval MUSTER_E_UNREACHABLE The store did not answer, or not in time.
 * @retval MUSTER_E_PERMISSION  The store denies access to this user.
 * @retval MUSTER_E_AUTH        The store does not know this user.
 * @retval MUSTER_E_PROTOCOL    The answer is not that of such a store, or the store is too old.
 * @retval MUSTER_E_WOULD_DEADLOCK  The calling thread has to serve the store.
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @retval MUSTER_E_CLOSED      The context is closed.
 * @retval MUSTER_E_CANCELED    muster_context_cancel() was called during the wait.
 * @retval MUSTER_E_LIMIT       No descriptor is left, or the queue of the program that serves the store is full.
 * @retval MUSTER_E_PEER        The connection to the server broke, and no other one was established in time.
 * @retval MUSTER_E_SYSTEM      Another system call failed; see muster_error::os_errno.
 * @retval MUSTER_E_FORKED      The context belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_store_open(muster_context *context, const char *url, size_t url_bytes,
                                           const muster_store_config *config, int64_t timeout_ns,
                                           muster_store **out_store, muster_error *error);

/** Begins to open a store, as muster_store_open() does. ::MUSTER_DONE_OPEN has the store, or the status and the detail
 * of the failure. muster_queue_cancel_operation() cancels it.
 * @param[in]  context     Context of the store.
 * @param[in]  url         URL of the store; copied.
 * @param[in]  url_bytes   Length of the text, at most 4096.
 * @param[in]  config      Options; copied. NULL means all defaults.
 * @param[in]  timeout_ns  Maximum time, at least 1; -1: no limit.
 * @param[in]  queue       Queue of the same context for the completion.
 * @param[in]  tag         Returned in muster_completion::tag.
 * @param[out] error       Detail on failure, or NULL.
 * @begun{::MUSTER_DONE_OPEN}
 * @retval MUSTER_E_ARG     A value is missing or out of range, or the queue is of another context; the error names it.
 * @retval MUSTER_E_ABI     The config has non-zero fields that are newer than this library.
 * @retval MUSTER_E_NOMEM   Memory or threads ran out.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_open_begin(muster_context *context, const char *url, size_t url_bytes,
                                                 const muster_store_config *config, int64_t timeout_ns,
                                                 muster_queue *queue, uint64_t tag, muster_error *error);

/** Makes a view of a store: the same store, where the view adds a prefix to the name of every key, queue and barrier in
 * requests, and removes it from the names in results.
 * @param[in]  store         The store, or a view of one.
 * @param[in]  prefix        Prefix; any bytes, copied. It counts towards the length of keys.
 * @param[in]  prefix_bytes  Length of the prefix, at most 4096 together with those of the views that it is based on.
 * @param[out] out_view      The view; the caller owns one reference. It keeps the store alive.
 * @param[out] error         Detail on failure, or NULL.
 * @retval MUSTER_OK       The view was made.
 * @retval MUSTER_E_ARG    A value is missing or out of range; the error names it.
 * @retval MUSTER_E_NOMEM  Memory ran out.
 * @retval MUSTER_E_FORKED The store belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_view(muster_store *store, const void *prefix, size_t prefix_bytes,
                                           muster_store **out_view, muster_error *error);

/** Returns what a store supports.
 * @param[in] store  Store to query.
 * @return ::muster_store_capability values, or'ed; 0 if store is NULL.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API uint32_t muster_store_capabilities(const muster_store *store);

/** Performs a request and waits for its result. The section "Was a request applied?" at the top of this file says what
 * each status means for the store.
 * @param[in]  store       Store to use.
 * @param[in]  ops         Operations, in order; copied.
 * @param[in]  op_count    Number of operations, 1 to 4096.
 * @param[in]  timeout_ns  Maximum wait; -1: no limit. 0: operations do not wait for absent values; the call only waits
 *                         for the answer of a store in another process, up to 30 s.
 * @param[out] out_result  The result with ::MUSTER_OK and ::MUSTER_E_CHANGED, of which the caller owns one reference;
 *                         else NULL. May be NULL if no result is needed.
 * @param[out] error       Detail of a failure, and what was waited for if a wait failed; or NULL.
 * @retval MUSTER_OK              Applied.
 * @retval MUSTER_AGAIN           An operation would have to wait, and the timeout was 0. Not applied.
 * @retval MUSTER_TIMEOUT         An operation waited until the deadline, or the request only reads, or it was never
 *                                sent; the error names what was waited for. Not applied.
 * @retval MUSTER_E_CHANGED       A condition does not hold; the entries show which one, and the current values. Not
 *                                applied.
 * @retval MUSTER_E_ARG           A value is missing, out of range or contradictory; or ADD to a value that is not a
 *                                number, or beyond 64 bits. The error names the operation. Not applied.
 * @retval MUSTER_E_EXISTS        BARRIER: the rank has already arrived. Not applied.
 * @retval MUSTER_E_LIMIT         A key, a value, a queue or the store would become too large, or the disk of the store
 *                                is full; the error says which. Not applied.
 * @retval MUSTER_E_STALE         The lease has ended; or the changes to watch are no longer in the history; or the
 *                                store is a view of a round that is over. Not applied.
 * @retval MUSTER_E_UNSUPPORTED   The store does not support it; see muster_store_capabilities(). Not applied.
 * @retval MUSTER_E_NOMEM         Memory ran out. Not applied.
 * @retval MUSTER_E_CANCELED      muster_store_cancel() was called by another thread. Not applied.
 * @retval MUSTER_E_CLOSED        The context was closed, or the store was released, during the call. It may have been
 *                                applied.
 * @retval MUSTER_E_UNREACHABLE   A remote store does not answer. Not applied.
 * @retval MUSTER_E_STORE_LOST    The store is lost, or was unreachable for muster_store_config::lost_after_ns. It may
 *                                have been applied.
 * @retval MUSTER_E_PEER          The store did not answer by the deadline or within 2 s of a cancel, or the connection
 *                                to it broke. It may have been applied.
 * @retval MUSTER_E_PERMISSION    The store denies this to this user. Not applied.
 * @retval MUSTER_E_AUTH          The store does not know this user. Not applied.
 * @retval MUSTER_E_PROTOCOL      The store refuses the request for a reason of its own, which the error has; or the
 *                                file of the store is damaged. Not applied.
 * @retval MUSTER_E_NOT_FOUND     The file or folder of the store does not exist any more. Not applied.
 * @retval MUSTER_E_SYSTEM        A system call failed; see muster_error::os_errno. Not applied.
 * @retval MUSTER_E_PLUGIN        The host or plug-in that serves the store gave an invalid answer; the error says what
 *                                is wrong. It may have been applied.
 * @retval MUSTER_E_WOULD_DEADLOCK  The calling thread has to serve the wait.
 * @retval MUSTER_E_FORKED        The store belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_store_do(muster_store *store, const muster_store_op *ops, size_t op_count,
                                         int64_t timeout_ns, muster_store_result **out_result, muster_error *error);

/** Begins a request, as muster_store_do() performs it. ::MUSTER_DONE_STORE has the result, or a status of
 * muster_store_do() with the same meaning and its detail. Any number of requests may be in progress.
 * @param[in]  store       Store to use.
 * @param[in]  ops         Operations, in order; copied.
 * @param[in]  op_count    Number of operations, 1 to 4096.
 * @param[in]  timeout_ns  Maximum time, at least 1; -1: no limit. A request that times out completes with
 *                         ::MUSTER_TIMEOUT, which is positive: compare the status with ::MUSTER_OK, or test whether the
 *                         completion has an object.
 * @param[in]  queue       Queue of the same context for the completion.
 * @param[in]  tag         Returned in muster_completion::tag.
 * @param[out] out_request Id of the request for muster_store_cancel(), never 0; or NULL.
 * @param[out] error       Detail on failure, or NULL.
 * @begun{::MUSTER_DONE_STORE}
 * @retval MUSTER_E_ARG          A value is missing or out of range; the error names it.
 * @retval MUSTER_E_LIMIT        A key or the request is too large.
 * @retval MUSTER_E_UNSUPPORTED  The store does not support it; see muster_store_capabilities().
 * @retval MUSTER_E_NOMEM        Memory ran out.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_begin(muster_store *store, const muster_store_op *ops, size_t op_count,
                                            int64_t timeout_ns, muster_queue *queue, uint64_t tag,
                                            uint64_t *out_request, muster_error *error);

/** Cancels a request: it ends with ::MUSTER_E_CANCELED and is not applied. The library first asks a remote store
 * to withdraw the request, for up to 2 s and not beyond the deadline of the request. If the request was applied before
 * that, it ends with its result. If the store does not answer, a request that changes something ends with
 * ::MUSTER_E_PEER.
 * @param[in] store    The store or view with which the request was made.
 * @param[in] request  Id of a request that was begun; 0: all requests for which threads wait in muster_store_do() with
 *                     this very handle.
 * @retval MUSTER_OK       The request is being cancelled. With id 0 also if there was none.
 * @retval MUSTER_E_STALE  The request has ended; its completion is in the queue or will be.
 * @retval MUSTER_E_ARG    store is NULL.
 * @retval MUSTER_E_FORKED The store belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_cancel(muster_store *store, uint64_t request);

/** Flags of muster_store_lease(). */
enum muster_lease_flag {
    MUSTER_LEASE_MANUAL = 1,   /**< The host renews the lease by muster_lease_keep(), which shows that the host itself
                                    makes progress. */
    MUSTER_LEASE_CONNECTED = 2 /**< The lease ends at once when the connection of this process ends without a goodbye:
                                    a killed process is noticed before its lease expires. Stores without connections
                                    ignore this flag. */
};

/** Makes a lease: keys that are set with it are deleted when it ends. The library renews the lease as long as the lease
 * object and this process exist. After that, or when a MANUAL lease is not renewed, it expires after ttl_ns, by the
 * clock of the process that holds the store.
 * @param[in]  store       The store, or a view of it, that holds the keys.
 * @param[in]  ttl_ns      Time to live without a renewal, 1 ms to 24 hours.
 * @param[in]  flags       ::muster_lease_flag values, or'ed.
 * @param[in]  timeout_ns  Maximum wait; 0 checks once, -1: no limit.
 * @param[out] out_lease   The lease; the caller owns one reference. It keeps the store alive.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK             The lease was made.
 * @retval MUSTER_AGAIN          The store has not answered yet, and the timeout was 0.
 * @retval MUSTER_TIMEOUT        The store did not answer in time. If it made the lease nevertheless, the lease expires
 *                               by itself.
 * @retval MUSTER_E_ARG          A value is missing or out of range; the error names it.
 * @retval MUSTER_E_UNSUPPORTED  The store has no leases, or none with so short a time; the error says which.
 * @retval MUSTER_E_LIMIT        The store has too many leases, its disk is full, or no descriptor is left.
 * @retval MUSTER_E_UNREACHABLE  A remote store does not answer; no lease was made.
 * @retval MUSTER_E_STORE_LOST   The store is lost, or was unreachable for muster_store_config::lost_after_ns.
 * @retval MUSTER_E_PERMISSION   The store denies this to this user.
 * @retval MUSTER_E_AUTH         The store does not know this user.
 * @retval MUSTER_E_PROTOCOL     The store refuses it for a reason of its own, which the error has.
 * @retval MUSTER_E_PLUGIN       The host or plug-in that serves the store gave an invalid answer.
 * @retval MUSTER_E_NOMEM        Memory ran out.
 * @retval MUSTER_E_CANCELED     muster_store_cancel() was called by another thread.
 * @retval MUSTER_E_CLOSED       The context is closed, or the store was released during the call.
 * @retval MUSTER_E_WOULD_DEADLOCK  The calling thread has to serve the wait.
 * @retval MUSTER_E_PEER         The connection to a remote store broke. No lease was made, or one that expires by
 *                               itself.
 * @retval MUSTER_E_SYSTEM       Another system call failed.
 * @retval MUSTER_E_FORKED       The store belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_store_lease(muster_store *store, int64_t ttl_ns, uint32_t flags, int64_t timeout_ns,
                                            muster_lease **out_lease, muster_error *error);

/** Begins to make a lease, as muster_store_lease() does. ::MUSTER_DONE_LEASE has the lease, or the status and the
 * detail of the failure.
 * @param[in]  store       The store, or a view of it, that holds the keys.
 * @param[in]  ttl_ns      Time to live without a renewal, 1 ms to 24 hours.
 * @param[in]  flags       ::muster_lease_flag values, or'ed.
 * @param[in]  timeout_ns  Maximum time, at least 1; -1: no limit.
 * @param[in]  queue       Queue of the same context for the completion.
 * @param[in]  tag         Returned in muster_completion::tag.
 * @param[out] out_request Id of the request for muster_store_cancel(), never 0; or NULL.
 * @param[out] error       Detail on failure, or NULL.
 * @begun{::MUSTER_DONE_LEASE}
 * @retval MUSTER_E_ARG          A value is missing or out of range; the error names it.
 * @retval MUSTER_E_UNSUPPORTED  The store has no leases, or none with so short a time; the error says which.
 * @retval MUSTER_E_NOMEM        Memory ran out.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_lease_begin(muster_store *store, int64_t ttl_ns, uint32_t flags,
                                                  int64_t timeout_ns, muster_queue *queue, uint64_t tag,
                                                  uint64_t *out_request, muster_error *error);

/** Returns the id of a lease, for muster_store_op::lease.
 * @param[in] lease  Lease to query.
 * @return The id, never 0; 0 if lease is NULL.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API uint64_t muster_lease_id(const muster_lease *lease);

/** Renews a MANUAL lease: its time to live begins anew. For a store in another process the call sends a message and
 * does not wait for it.
 * @param[in] lease  Lease to renew.
 * @retval MUSTER_OK       Renewed; also for a lease that the library renews.
 * @retval MUSTER_E_STALE  The lease has ended, as far as this process knows.
 * @retval MUSTER_E_ARG    lease is NULL.
 * @retval MUSTER_E_FORKED The lease belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_lease_keep(muster_lease *lease);

/** Ends a lease at once: its keys are deleted at one moment.
 * @param[in]  lease       Lease to end.
 * @param[in]  timeout_ns  Maximum wait for the store; 0: up to 30 s for its answer, -1: no limit.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK         The lease has ended.
 * @retval MUSTER_TIMEOUT    The store is unreachable and was not asked. The lease continues as before.
 * @retval MUSTER_E_PEER     The store was asked and did not answer by the deadline, or the connection to it broke. The
 *                           lease may have ended; otherwise it expires after its time to live.
 * @retval MUSTER_E_STALE    The lease had ended before.
 * @retval MUSTER_E_ARG      lease is NULL.
 * @retval MUSTER_E_NOMEM    Memory ran out.
 * @retval MUSTER_E_UNREACHABLE  A remote store does not answer. The lease continues as before.
 * @retval MUSTER_E_STORE_LOST   The store is lost, or was unreachable for muster_store_config::lost_after_ns.
 * @retval MUSTER_E_LIMIT        The disk of the store is full. The lease continues as before.
 * @retval MUSTER_E_PERMISSION   The store denies this to this user.
 * @retval MUSTER_E_AUTH         The store does not know this user.
 * @retval MUSTER_E_PROTOCOL     The store refuses it for a reason of its own, which the error has.
 * @retval MUSTER_E_PLUGIN       The host or plug-in that serves the store gave an invalid answer.
 * @retval MUSTER_E_CANCELED muster_context_cancel() or muster_store_cancel() was called during the wait; the lease has
 *                           not ended.
 * @retval MUSTER_E_CLOSED   The context was closed, or the lease was released, during the call. It may have ended.
 * @retval MUSTER_E_WOULD_DEADLOCK  The calling thread has to serve the wait.
 * @retval MUSTER_E_SYSTEM   Another system call failed.
 * @retval MUSTER_E_FORKED   The lease belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_lease_end(muster_lease *lease, int64_t timeout_ns, muster_error *error);

/** Begins to end a lease, as muster_lease_end() does; ::MUSTER_DONE_STORE has its status, and no object.
 * @param[in]  lease       Lease to end.
 * @param[in]  timeout_ns  Maximum time until the store has answered, at least 1; -1: no limit.
 * @param[in]  queue       Queue of the same context for the completion.
 * @param[in]  tag         Returned in muster_completion::tag.
 * @param[out] error       Detail on failure, or NULL.
 * @begun{::MUSTER_DONE_STORE}
 * @retval MUSTER_E_ARG     A value is missing or out of range, or the queue is of another context; the error names it.
 * @retval MUSTER_E_NOMEM   Memory ran out.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_lease_end_begin(muster_lease *lease, int64_t timeout_ns, muster_queue *queue,
                                                uint64_t tag, muster_error *error);

/** Releases the handle. The lease is not renewed any more and expires after its time to live. A thread that waits in
 * muster_lease_end() returns ::MUSTER_E_CLOSED.
 * @param[in] lease  What to release; NULL has no effect.
 * @threads{any, finalizers included} @blocks{no} @since 0.1 */
MUSTER_API void muster_lease_release(muster_lease *lease);

/** Releases the handle. Threads that wait in muster_store_do() or muster_store_lease() with it return
 * ::MUSTER_E_CLOSED. Requests that were begun continue, and keep the objects they need.
 * @param[in] store  What to release; NULL has no effect.
 * @threads{any, finalizers included} @blocks{no} @since 0.1 */
MUSTER_API void muster_store_release(muster_store *store);

/** Returns the number of entries in a result: one for each operation, and for LIST, KEYS and WATCH one for each key or
 * change.
 * @param[in] result  Result to read.
 * @return The number of entries; 0 if result is NULL.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API uint64_t muster_store_result_count(const muster_store_result *result);

/** Reads one entry of a result.
 * @param[in]  result     Result to read.
 * @param[in]  index      Index of the entry, from 0. Entries are in the order of their operations.
 * @param[out] out_entry  The entry; its key and value are valid until the result is released.
 * @retval MUSTER_OK          The entry was read.
 * @retval MUSTER_E_ARG       A pointer is NULL.
 * @retval MUSTER_E_NOT_FOUND The index is not below the number of entries.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_result_entry(const muster_store_result *result, uint64_t index,
                                                   muster_store_entry *out_entry);

/** Returns the revision of the store at the time the request was applied.
 * @param[in] result  Result to read.
 * @return The revision; 0 if result is NULL.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API uint64_t muster_store_result_revision(const muster_store_result *result);

/** Releases one reference.
 * @param[in] result  What to release; NULL has no effect.
 * @threads{any, finalizers included} @blocks{no} @since 0.1 */
MUSTER_API void muster_store_result_release(muster_store_result *result);

#ifdef __cplusplus
}
#endif

#endif
