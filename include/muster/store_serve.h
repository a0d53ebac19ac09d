/* SPDX-License-Identifier: MIT */
/** @file
 * Stores served by the host, or by a plug-in: the program itself keeps what the URLs of a scheme name, or knows who
 * does.
 *
 * The host registers a scheme with a queue. What muster_store_open() and the requests to its store want done arrives
 * there as ::MUSTER_REQUEST_STORE, each with an id that the host answers now or later, from any thread:
 * muster_store_request_open() for the opening of a store, muster_store_request_done() for all else, or
 * muster_store_request_fail(). ::MUSTER_REQUEST_CANCEL says that an unanswered request is no longer wanted,
 * ::MUSTER_REQUEST_CLOSE that nobody holds a store any more; both need no answer.
 *
 * A host applies a request when the library accepts its answer. Where the answer gives ::MUSTER_E_STALE, the request
 * had ended before (a deadline, a cancel), and the host must not apply it. A host that forwards requests to a store in
 * another place cannot keep to that and sets ::MUSTER_STORE_IS_REMOTE: a request that changes something and ends before
 * its answer has ::MUSTER_E_PEER, "it may have been applied". With ::MUSTER_STORE_ANSWERS_CANCEL the host answers such
 * a request after its CANCEL, too, and the library waits for the answer up to the deadline and
 * muster_store_config::grace_ns. The answer after a CANCEL is muster_store_request_done() if the request was applied,
 * muster_store_request_fail() with ::MUSTER_E_CANCELED if it was not applied and will not be, with ::MUSTER_E_PEER if
 * that is not known. The statuses of store.h hold for what a host answers: it must not answer ::MUSTER_E_UNREACHABLE,
 * say, to a request that may have been applied.
 *
 * The library looks at requests in front: what the store said it cannot do never comes, keys have the prefixes of
 * views, lengths and forms are as store.h says. It looks at answers, too: a wrong one is the end of its request, and
 * the host is told what is wrong with it.
 *
 * The library keeps leases: it makes up their numbers, and sends GRANT, a KEEP each third of the time, END. They come
 * in that order; a DO with the number of a lease may come before its GRANT was answered, and is done behind it.
 *
 * Two ways to take requests, the same underneath: *pulled* with muster_queue_next(), after muster_store_serve(); or as
 * *callbacks* of a table, run by muster_queue_dispatch() on the thread that calls it, after muster_store_serve_ops().
 * A plug-in gives the same table to muster_host::add_store; its callbacks run on the loop thread.
 *
 * A thread that serves must not wait for itself: muster_store_open() and muster_store_do() answer
 * ::MUSTER_E_WOULD_DEADLOCK when no other thread waits on the queue that serves the scheme, and the calling thread is
 * the one that last took something off it (before anything was taken: the one that registered the scheme). Use
 * muster_store_begin() there. */
#ifndef MUSTER_STORE_SERVE_H
#define MUSTER_STORE_SERVE_H

#include <muster/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a request wants; the value of muster_store_request::kind. */
enum muster_store_request_kind {
    MUSTER_STORE_REQUEST_OPEN = 1,  /**< Open the store at `url`; the request's id names it from now on. */
    MUSTER_STORE_REQUEST_DO = 2,    /**< Do the operations, all of them at one moment or nothing. */
    MUSTER_STORE_REQUEST_GRANT = 3, /**< There is a lease of the number `lease`; it lasts `ttl_ns` from now. */
    MUSTER_STORE_REQUEST_KEEP = 4,  /**< It lasts `ttl_ns` from now. ::MUSTER_E_STALE: it is over. */
    MUSTER_STORE_REQUEST_END = 5    /**< It ends now. ::MUSTER_E_STALE: it was over. */
};

/** Flags of muster_store_request::flags. */
enum muster_store_request_flag {
    MUSTER_STORE_NO_WAIT = 1 /**< DO: what is not there is not waited for, but the request fails with
                                    ::MUSTER_AGAIN. */
};

/** What is asked. What it points to stays until the request is answered, or its CANCEL is taken off the queue or its
 * callback returns; of a request that the host answers after its CANCEL (::MUSTER_STORE_ANSWERS_CANCEL) until then. */
typedef struct muster_store_request {
    uint32_t struct_size;       /**< sizeof(muster_store_request) of the caller; in a callback of the library. */
    uint32_t kind;              /**< A ::muster_store_request_kind value. */
    uint64_t store;             /**< Id of the OPEN request of the store. */
    uint32_t flags;             /**< ::muster_store_request_flag values, or'ed. */
    uint32_t reserved;          /**< Zero. */
    const muster_store_op *ops; /**< DO: the operations. */
    uint64_t op_count;          /**< DO: how many. */
    const char *url;            /**< OPEN: all of the URL. */
    uint64_t url_bytes;         /**< OPEN: its length. */
    uint64_t lease;             /**< GRANT, KEEP, END: the lease. */
    int64_t ttl_ns;             /**< GRANT, KEEP: the time it lasts. */
} muster_store_request;

/** Flags of muster_store_traits::flags. */
enum muster_store_trait {
    MUSTER_STORE_IS_REMOTE = 1,     /**< The store is elsewhere: a request may be applied although it has ended. */
    MUSTER_STORE_ANSWERS_CANCEL = 2 /**< With ELSEWHERE: the host answers each request that changes something, after its
                                         CANCEL, too. The CANCEL of a request that reaches its deadline comes earlier,
                                         by a quarter of the timeout and at most 50 ms. */
};

/** What a served store is; all zero means the defaults named here. */
typedef struct muster_store_traits {
    uint32_t struct_size;       /**< sizeof(muster_store_traits) of the caller. */
    uint32_t flags;             /**< ::muster_store_trait values, or'ed. */
    uint32_t capabilities;      /**< ::muster_store_capability values, or'ed. */
    uint32_t max_ops;           /**< Operations of one request; 0: 4096. */
    uint64_t max_request_bytes; /**< Bytes of one request; 0: 16 MiB. */
    int64_t min_lease_ns;       /**< Shortest time of a lease; 0: 1 ms. */
} muster_store_traits;

/** Flags of muster_store_host_ops::flags. */
enum muster_store_host_flag {
    MUSTER_STORE_ANY_THREAD = 1 /**< Callbacks may run on a library thread at once; they must not block or unwind. */
};

/** What serves a store, as callbacks; run by muster_queue_dispatch() on the thread that calls it, no lock held. They
 * may call Muster. */
typedef struct muster_store_host_ops {
    uint32_t struct_size; /**< sizeof(muster_store_host_ops) of the caller. */
    uint32_t flags;       /**< ::muster_store_host_flag values, or'ed. */
    /** Do what is asked; answer by its id, inside or later. Not NULL. */
    void (*request)(void *self, uint64_t request, const muster_store_request *what);
    /** The request of that id is no longer wanted; answering it is harmless. May be NULL. */
    void (*cancel)(void *self, uint64_t request);
    /** Nobody holds the store of that id, that of its OPEN request, any more. What its requests have begun goes on;
     * its leases end after their time. May be NULL. */
    void (*close)(void *self, uint64_t store);
    /** Last callback of the table, after muster_store_withdraw() or the end of the context. May be NULL. */
    void (*destroy)(void *self);
} muster_store_host_ops;

/** Adds a host-served store for one URL scheme, in this context only. What it has to do arrives as requests in the
 * queue, to be pulled with muster_queue_next().
 * @param[in]  context       Where it becomes known.
 * @param[in]  scheme        Lower-case ASCII, 1 to 31 bytes, no terminator needed.
 * @param[in]  scheme_bytes  Length of the scheme.
 * @param[in]  requests      Queue the host serves, of the same context; releasing it takes the scheme back.
 * @param[in]  tag           Returned in muster_completion::tag of every request, CANCEL and CLOSE included: one queue
 * can serve several schemes.
 * @param[out] error         Detail on failure, or NULL.
 * @retval MUSTER_OK        Usable in URLs.
 * @retval MUSTER_E_ARG     No context or queue, a queue of another context, or no scheme of that form.
 * @retval MUSTER_E_EXISTS  Scheme taken.
 * @retval MUSTER_E_NOMEM   No memory.
 * @retval MUSTER_E_CLOSED  The context or the queue is closed.
 * @retval MUSTER_E_FORKED  The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_serve(muster_context *context, const char *scheme, size_t scheme_bytes,
                                            muster_queue *requests, uint64_t tag, muster_error *error);

/** Adds a host-served store whose requests run callbacks, inside muster_queue_dispatch().
 * @param[in]  context       Where it becomes known.
 * @param[in]  scheme        Lower-case ASCII, 1 to 31 bytes, no terminator needed.
 * @param[in]  scheme_bytes  Length of the scheme.
 * @param[in]  ops           The callbacks; the table is copied.
 * @param[in]  self          Passed to each of them; the host's own until destroy.
 * @param[in]  requests      Queue that is dispatched, of the same context; releasing it takes the scheme back.
 * @param[out] error         Detail on failure, or NULL.
 * @retval MUSTER_OK        Usable in URLs.
 * @retval MUSTER_E_ARG     Something is missing, a queue of another context, or no scheme of that form.
 * @retval MUSTER_E_ABI     The table has non-zero fields newer than this library.
 * @retval MUSTER_E_EXISTS  Scheme taken.
 * @retval MUSTER_E_NOMEM   No memory.
 * @retval MUSTER_E_LIMIT   The queue has no slot left for the last word to the table.
 * @retval MUSTER_E_CLOSED  The context or the queue is closed.
 * @retval MUSTER_E_FORKED  The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_serve_ops(muster_context *context, const char *scheme, size_t scheme_bytes,
                                                const muster_store_host_ops *ops, void *self, muster_queue *requests,
                                                muster_error *error);

/** Takes a host-served store back: opening it fails from now on, and so does what its stores are asked and have not
 * answered, with ::MUSTER_E_CLOSED. Each store is closed, then the table is destroyed, by dispatch: keep dispatching
 * until that has come. Releasing the queue takes the scheme back, too, but then no callback of the table runs any more,
 * destroy neither, unless it has ::MUSTER_STORE_ANY_THREAD.
 * @param[in] context       Where it was added.
 * @param[in] scheme        Its scheme.
 * @param[in] scheme_bytes  Length of the scheme.
 * @retval MUSTER_OK           Taken back.
 * @retval MUSTER_E_ARG        No context or scheme.
 * @retval MUSTER_E_NOT_FOUND  No host-served store of that scheme.
 * @retval MUSTER_E_FORKED     The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_withdraw(muster_context *context, const char *scheme, size_t scheme_bytes);

/** Tells what an unanswered request wants.
 * @param[in]  requests   Queue the request came from.
 * @param[in]  request    Its id.
 * @param[out] out_what   Filled, as far as its struct_size goes.
 * @retval MUSTER_OK       Told.
 * @retval MUSTER_E_ARG    No queue or no place.
 * @retval MUSTER_E_ABI    A struct_size that was never released.
 * @retval MUSTER_E_STALE  No such request, or it was answered or cancelled.
 * @retval MUSTER_E_FORKED The queue belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_request_read(muster_queue *requests, uint64_t request,
                                                   muster_store_request *out_what);

/** Answers an OPEN request: the store is open.
 * @param[in]  requests  Queue the request came from.
 * @param[in]  request   Its id. From now on it names the store, until ::MUSTER_REQUEST_CLOSE.
 * @param[in]  traits    What the store is; copied.
 * @param[out] error     Detail on failure, or NULL.
 * @retval MUSTER_OK       Answered.
 * @retval MUSTER_E_ARG    No queue or traits, not an OPEN request, or a value out of range.
 * @retval MUSTER_E_ABI    The traits have non-zero fields newer than this library.
 * @retval MUSTER_E_STALE  No such request, or it was answered or cancelled.
 * @retval MUSTER_E_NOMEM  No memory; the request is still open.
 * @retval MUSTER_E_FORKED The queue belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_request_open(muster_queue *requests, uint64_t request,
                                                   const muster_store_traits *traits, muster_error *error);

/** Answers a DO, GRANT, KEEP or END request: it is done; or a DO that a condition does not hold.
 * @param[in]  requests     Queue the request came from.
 * @param[in]  request      Its id.
 * @param[in]  status       ::MUSTER_OK; of a DO also ::MUSTER_E_CHANGED.
 * @param[in]  entries      Of a DO: what the operations have found, in order, one for each, of LIST, KEYS and WATCH any
 *                          number; keys as in the request, in front what is the view's. With ::MUSTER_E_CHANGED one
 *                          for each operation, at least one of them FAILED. Copied.
 * @param[in]  entry_count  How many.
 * @param[in]  revision     Of a DO: that of the store when it was done.
 * @param[out] error        Detail on failure, or NULL.
 * @retval MUSTER_OK       Answered.
 * @retval MUSTER_E_ARG    No queue, a status that is not of these, an OPEN request, or entries that do not fit what was
 *                         asked: then the request has failed with ::MUSTER_E_PLUGIN. The text says what is wrong.
 * @retval MUSTER_E_STALE  No such request, or it was answered or cancelled: nothing of it may be done.
 * @retval MUSTER_E_NOMEM  No memory; the request is still open.
 * @retval MUSTER_E_FORKED The queue belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_request_done(muster_queue *requests, uint64_t request, muster_status status,
                                                   const muster_store_entry *entries, size_t entry_count,
                                                   uint64_t revision, muster_error *error);

/** Answers any request: it cannot be done, and nothing of it is.
 * @param[in] requests    Queue the request came from.
 * @param[in] request     Its id.
 * @param[in] status      Why, a negative value: ::MUSTER_E_LIMIT, ::MUSTER_E_UNREACHABLE, ...; ::MUSTER_AGAIN for a DO
 *                        that looks once.
 * @param[in] op          DO: which operation cannot be done, from 0, to be named in front of the text; UINT32_MAX:
 * none.
 * @param[in] text        A sentence for people, or NULL.
 * @param[in] text_bytes  Its length, at most 200 bytes.
 * @retval MUSTER_OK       Answered.
 * @retval MUSTER_E_ARG    No queue, a status that is no failure, no such operation, or a text that is too long.
 * @retval MUSTER_E_STALE  No such request, or it was answered or cancelled.
 * @retval MUSTER_E_FORKED The queue belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_request_fail(muster_queue *requests, uint64_t request, muster_status status,
                                                   uint32_t op, const char *text, size_t text_bytes);

#ifdef __cplusplus
}
#endif

#endif
