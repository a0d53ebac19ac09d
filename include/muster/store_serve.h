/* SPDX-License-Identifier: MIT */
/** @file
 * Stores that the host or a plug-in serves: the program itself holds the stores that the URLs of a scheme name, or
 * forwards requests to the process that does.
 *
 * The host registers a scheme with a queue. muster_store_open() and the requests to its stores arrive there as
 * ::MUSTER_REQUEST_STORE, each with an id. The host answers by that id, now or later, from any thread:
 * muster_store_request_open() answers the opening of a store, muster_store_request_done() every other request, and
 * muster_store_request_fail() any request that cannot be done. ::MUSTER_REQUEST_CANCEL reports that an unanswered
 * request is no longer needed, ::MUSTER_REQUEST_CLOSE that a store has no handle any more; neither needs an answer.
 *
 * A host applies a request when the library accepts its answer. If the answering call returns ::MUSTER_E_STALE, the
 * request had ended before (by a deadline or a cancel), and the host must not apply it. A host that forwards requests
 * to a remote store cannot guarantee that and sets ::MUSTER_STORE_IS_REMOTE: a request that changes something and ends
 * before its answer then has ::MUSTER_E_PEER, "it may have been applied". With ::MUSTER_STORE_ANSWERS_CANCEL the host
 * also answers such a request after its CANCEL, and the library waits for that answer up to the deadline and
 * muster_store_config::grace_ns. The answer after a CANCEL is muster_store_request_done() if the request was applied;
 * muster_store_request_fail() with ::MUSTER_E_CANCELED if it was not applied and will not be; and
 * muster_store_request_fail() with ::MUSTER_E_PEER if that is unknown. The answers of a host must respect the meaning
 * of the statuses in store.h: for example, it must not answer ::MUSTER_E_UNREACHABLE to a request that may have been
 * applied.
 *
 * The library validates requests before the host receives them: requests that exceed the capabilities of the store do
 * not arrive, keys include the prefixes of views, and lengths and forms are as store.h says. The library also validates
 * answers: a request with an invalid answer fails, and the answering call says what is wrong.
 *
 * The library manages leases: it assigns their ids and sends GRANT, a KEEP each third of the time to live, and END, in
 * that order. A DO with the id of a lease may arrive before its GRANT was answered, and is applied after it.
 *
 * There are two ways to receive requests, with the same behaviour: *pulled* with muster_queue_next(), after
 * muster_store_serve(); or as *callbacks* of a table, which muster_queue_dispatch() calls on the thread that calls it,
 * after muster_store_serve_ops(). A plug-in passes the same table to muster_host::add_store; its callbacks run on the
 * loop thread.
 *
 * A thread that serves a store must not wait for that store. muster_store_open() and muster_store_do() return
 * ::MUSTER_E_WOULD_DEADLOCK if no other thread waits on the queue that serves the scheme, and the calling thread is the
 * one that last took an entry off it (before any entry was taken: the thread that registered the scheme). Use
 * muster_store_begin() there. */
#ifndef MUSTER_STORE_SERVE_H
#define MUSTER_STORE_SERVE_H

#include <muster/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The operation of a request; the value of muster_store_request::kind. */
enum muster_store_request_kind {
    MUSTER_STORE_REQUEST_OPEN = 1,  /**< Open the store at `url`. The id of this request identifies the store. */
    MUSTER_STORE_REQUEST_DO = 2,    /**< Apply the operations: all of them at one moment, or none. */
    MUSTER_STORE_REQUEST_GRANT = 3, /**< Make the lease `lease`, which expires `ttl_ns` from now. */
    MUSTER_STORE_REQUEST_KEEP = 4,  /**< Renew the lease: it expires `ttl_ns` from now. Fail with ::MUSTER_E_STALE if it
                                         has ended. */
    MUSTER_STORE_REQUEST_END = 5    /**< End the lease now. Fail with ::MUSTER_E_STALE if it had ended. */
};

/** Flags of muster_store_request::flags. */
enum muster_store_request_flag {
    MUSTER_STORE_NO_WAIT = 1 /**< DO: do not wait for absent values; fail the request with ::MUSTER_AGAIN instead. */
};

/** One request. Pointers in it are valid until the request is answered, or until its CANCEL is taken off the queue or
 * the cancel callback returns; for a request that the host answers after its CANCEL (::MUSTER_STORE_ANSWERS_CANCEL),
 * until that answer. */
typedef struct muster_store_request {
    uint32_t struct_size;       /**< sizeof(muster_store_request) of the caller; in a callback that of the library. */
    uint32_t kind;              /**< A ::muster_store_request_kind value. */
    uint64_t store;             /**< Id of the OPEN request of the store. */
    uint32_t flags;             /**< ::muster_store_request_flag values, or'ed. */
    uint32_t reserved;          /**< Zero. */
    const muster_store_op *ops; /**< DO: the operations. */
    uint64_t op_count;          /**< DO: number of operations. */
    const char *url;            /**< OPEN: the whole URL. */
    uint64_t url_bytes;         /**< OPEN: length of the URL. */
    uint64_t lease;             /**< GRANT, KEEP, END: id of the lease. */
    int64_t ttl_ns;             /**< GRANT, KEEP: time to live. */
} muster_store_request;

/** Flags of muster_store_traits::flags. */
enum muster_store_trait {
    MUSTER_STORE_IS_REMOTE = 1,     /**< The host forwards requests to a remote store: a request may be applied although
                                         it has ended. */
    MUSTER_STORE_ANSWERS_CANCEL = 2 /**< With ::MUSTER_STORE_IS_REMOTE: the host also answers each request that changes
                                         something after its CANCEL. The CANCEL of a request that reaches its deadline
                                         is sent earlier, by a quarter of the timeout and at most 50 ms. */
};

/** Properties of a served store; all zero means the defaults named here. */
typedef struct muster_store_traits {
    uint32_t struct_size;       /**< sizeof(muster_store_traits) of the caller. */
    uint32_t flags;             /**< ::muster_store_trait values, or'ed. */
    uint32_t capabilities;      /**< ::muster_store_capability values, or'ed. */
    uint32_t max_ops;           /**< Maximum operations of one request; 0: 4096. */
    uint64_t max_request_bytes; /**< Maximum bytes of one request; 0: 16 MiB. */
    int64_t min_lease_ns;       /**< Minimum time to live of a lease; 0: 1 ms. */
} muster_store_traits;

/** Flags of muster_store_host_ops::flags. */
enum muster_store_host_flag {
    MUSTER_STORE_ANY_THREAD = 1 /**< Callbacks may run directly on a library thread; they must not block or unwind. */
};

/** Callbacks that serve stores. muster_queue_dispatch() calls them on the thread that calls it, with no lock held. They
 * may call Muster. */
typedef struct muster_store_host_ops {
    uint32_t struct_size; /**< sizeof(muster_store_host_ops) of the caller. */
    uint32_t flags;       /**< ::muster_store_host_flag values, or'ed. */
    /** Performs a request; answer by its id, inside the callback or later. Not NULL. */
    void (*request)(void *self, uint64_t request, const muster_store_request *what);
    /** The request is no longer needed; an answer has no effect. May be NULL. */
    void (*cancel)(void *self, uint64_t request);
    /** The store with this id, that of its OPEN request, has no handle any more. What its requests have begun
     * continues; its leases expire after their time to live. May be NULL. */
    void (*close)(void *self, uint64_t store);
    /** Last callback of the table, after muster_store_withdraw() or the end of the context. May be NULL. */
    void (*destroy)(void *self);
} muster_store_host_ops;

/** Registers a URL scheme of stores that the host serves, in this context only. Requests arrive in the queue, to be
 * pulled with muster_queue_next().
 * @param[in]  context       Context in which the scheme is registered.
 * @param[in]  scheme        Lower-case ASCII, 1 to 31 bytes, no terminator needed.
 * @param[in]  scheme_bytes  Length of the scheme.
 * @param[in]  requests      Queue of the same context that the host serves; releasing it withdraws the scheme.
 * @param[in]  tag           Returned in muster_completion::tag of every request, CANCEL and CLOSE included, so that one
 *                           queue can serve several schemes.
 * @param[out] error         Detail on failure, or NULL.
 * @served
 * @retval MUSTER_E_ARG     No context or queue, a queue of another context, or a malformed scheme.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_serve(muster_context *context, const char *scheme, size_t scheme_bytes,
                                            muster_queue *requests, uint64_t tag, muster_error *error);

/** Registers a URL scheme of stores that the host serves by callbacks, which muster_queue_dispatch() calls.
 * @param[in]  context       Context in which the scheme is registered.
 * @param[in]  scheme        Lower-case ASCII, 1 to 31 bytes, no terminator needed.
 * @param[in]  scheme_bytes  Length of the scheme.
 * @param[in]  ops           The callbacks; the table is copied.
 * @param[in]  self          Passed to each callback; must stay valid until destroy.
 * @param[in]  requests      Queue of the same context that is dispatched; releasing it withdraws the scheme.
 * @param[out] error         Detail on failure, or NULL.
 * @served_ops
 * @retval MUSTER_E_ARG     An argument is missing, the queue is of another context, or the scheme is malformed.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_serve_ops(muster_context *context, const char *scheme, size_t scheme_bytes,
                                                const muster_store_host_ops *ops, void *self, muster_queue *requests,
                                                muster_error *error);

/** Withdraws a scheme of host-served stores. From now on opening such a store fails, and unanswered requests fail with
 * ::MUSTER_E_CLOSED. Dispatch then calls close for each store and finally destroy: keep dispatching until destroy was
 * called. Releasing the queue also withdraws the scheme, but then no callback of the table is called any more, not even
 * destroy, unless the table has ::MUSTER_STORE_ANY_THREAD.
 * @param[in] context       Context in which the scheme was registered.
 * @param[in] scheme        The scheme.
 * @param[in] scheme_bytes  Length of the scheme.
 * @retval MUSTER_OK           The scheme was withdrawn.
 * @retval MUSTER_E_ARG        No context or scheme.
 * @retval MUSTER_E_NOT_FOUND  No host-served store of this scheme is registered.
 * @retval MUSTER_E_FORKED     The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_withdraw(muster_context *context, const char *scheme, size_t scheme_bytes);

/** Reads an unanswered request.
 * @param[in]  requests   Queue from which the request was taken.
 * @param[in]  request    Id of the request.
 * @param[out] out_what   Filled, as far as its struct_size reaches.
 * @read_request
 * @retval MUSTER_E_ARG    No queue or no destination.
 * @retval MUSTER_E_ABI    struct_size has a value that was never released.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_request_read(muster_queue *requests, uint64_t request,
                                                   muster_store_request *out_what);

/** Answers an OPEN request: the store is open.
 * @param[in]  requests  Queue from which the request was taken.
 * @param[in]  request   Id of the request. From now on it identifies the store, until ::MUSTER_REQUEST_CLOSE.
 * @param[in]  traits    Properties of the store; copied.
 * @param[out] error     Detail on failure, or NULL.
 * @answered
 * @retval MUSTER_E_ARG    No queue or traits, not an OPEN request, or a value out of range.
 * @retval MUSTER_E_ABI    The traits have non-zero fields that are newer than this library.
 * @retval MUSTER_E_NOMEM  Memory ran out; the request is still open.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_request_open(muster_queue *requests, uint64_t request,
                                                   const muster_store_traits *traits, muster_error *error);

/** Answers a DO, GRANT, KEEP or END request: it is done; or a DO request: a condition does not hold. After
 * ::MUSTER_E_STALE no part of the request may be applied.
 * @param[in]  requests     Queue from which the request was taken.
 * @param[in]  request      Id of the request.
 * @param[in]  status       ::MUSTER_OK; for a DO also ::MUSTER_E_CHANGED.
 * @param[in]  entries      DO: the results of the operations, in order: one entry for each operation, and any number
 *                          for LIST, KEYS and WATCH. Keys are as in the request, with the prefix of the view. With
 *                          ::MUSTER_E_CHANGED: one entry for each operation, at least one of them FAILED. Copied.
 * @param[in]  entry_count  Number of entries.
 * @param[in]  revision     DO: revision of the store at the time the request was applied.
 * @param[out] error        Detail on failure, or NULL.
 * @answered
 * @retval MUSTER_E_ARG    No queue, another status, an OPEN request, or entries that do not match the request: then the
 *                         request has failed with ::MUSTER_E_PLUGIN. The error says what is wrong.
 * @retval MUSTER_E_NOMEM  Memory ran out; the request is still open.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_request_done(muster_queue *requests, uint64_t request, muster_status status,
                                                   const muster_store_entry *entries, size_t entry_count,
                                                   uint64_t revision, muster_error *error);

/** Answers any request: it cannot be done, and no part of it is applied.
 * @param[in] requests    Queue from which the request was taken.
 * @param[in] request     Id of the request.
 * @param[in] status      The reason, a negative value: ::MUSTER_E_LIMIT, ::MUSTER_E_UNREACHABLE, ...; ::MUSTER_AGAIN
 *                        for a DO with ::MUSTER_STORE_NO_WAIT.
 * @param[in] op          DO: index of the operation that failed, from 0; it is named before the text. UINT32_MAX: none.
 * @param[in] text        Text for people, or NULL.
 * @param[in] text_bytes  Length of the text, at most 200 bytes.
 * @answered
 * @retval MUSTER_E_ARG    No queue, a status that is not a failure, no such operation, or a text that is too long.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_request_fail(muster_queue *requests, uint64_t request, muster_status status,
                                                   uint32_t op, const char *text, size_t text_bytes);

#ifdef __cplusplus
}
#endif

#endif
