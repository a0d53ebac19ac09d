/* SPDX-License-Identifier: MIT */
/** @file
 * Rendezvous served by the host: the program itself decides who is in and with which rank, for the URLs of a scheme.
 *
 * The host registers a scheme with a queue. What muster_rendezvous_open() and the calls of its members want done
 * arrives there as ::MUSTER_REQUEST_RENDEZVOUS, each with an id that the host answers now or later, from any thread:
 * muster_rendezvous_request_round() for a join, muster_rendezvous_request_done() for all else, or
 * muster_rendezvous_request_fail(). ::MUSTER_REQUEST_CANCEL says that an unanswered request is no longer wanted,
 * ::MUSTER_REQUEST_CLOSE that a member was released: it is out. Both need no answer. What members are to hear of each
 * other is told by muster_rendezvous_notify().
 *
 * The library keeps deadlines and cancels, refuses what a member cannot ask where it is (::MUSTER_E_BUSY,
 * ::MUSTER_E_STALE), and looks at answers: a wrong one is the end of its request, and the host is told what is wrong
 * with it. The store view of a round, where the host gives a store, ends for a member with its round; that others are
 * kept out of it, too, is up to the host.
 *
 * A join that is cancelled takes its member out; so does a leave, answered or not. A member of a round that joins again
 * has left that one.
 *
 * Two ways to take requests, the same underneath: *pulled* with muster_queue_next(), after muster_rendezvous_serve();
 * or as *callbacks* of a table, run by muster_queue_dispatch() on the thread that calls it, and nowhere else, after
 * muster_rendezvous_serve_ops().
 *
 * A thread that serves must not wait for itself: calls that wait answer ::MUSTER_E_WOULD_DEADLOCK when no other thread
 * waits on the queue that serves the scheme, and the calling thread is the one that last took something off it (before
 * anything was taken: the one that registered the scheme). Use muster_rendezvous_begin() there. */
#ifndef MUSTER_RENDEZVOUS_SERVE_H
#define MUSTER_RENDEZVOUS_SERVE_H

#include <muster/rendezvous.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a request wants; the value of muster_rendezvous_request::kind. */
enum muster_rendezvous_request_kind {
    MUSTER_RENDEZVOUS_REQUEST_OPEN = 1,  /**< There is a member, not in; the request's id names it from now on. */
    MUSTER_RENDEZVOUS_REQUEST_JOIN = 2,  /**< It waits for a round. */
    MUSTER_RENDEZVOUS_REQUEST_LEAVE = 3, /**< It leaves its round. */
    MUSTER_RENDEZVOUS_REQUEST_EXIT = 4,  /**< It waits until all who are still in its round do. */
    MUSTER_RENDEZVOUS_REQUEST_ABORT = 5, /**< It ends its round for all: tell the others. */
    MUSTER_RENDEZVOUS_REQUEST_CLOSE = 6, /**< No round begins in this run any more. */
    MUSTER_RENDEZVOUS_REQUEST_LIST = 7   /**< Who seeks the next round, for people. */
};

/** What is asked. What it points to stays until the request is answered, or its CANCEL is taken off the queue or its
 * callback returns. */
typedef struct muster_rendezvous_request {
    uint32_t struct_size; /**< sizeof(muster_rendezvous_request) of the caller; in a callback of the library. */
    uint32_t kind;        /**< A ::muster_rendezvous_request_kind value. */
    uint64_t member;      /**< Id of the OPEN request of the member. */
    const muster_rendezvous_config *config; /**< OPEN: what the member was opened with, with the defaults filled in:
                                                 `keep_alive_ns` for one attempt. No store and no queue. Else NULL. */
    const void *reason;                     /**< ABORT, CLOSE: why. */
    uint64_t reason_bytes;                  /**< Its length. */
    int64_t timeout_ns;                     /**< The time it was given in all; -1: no end. */
} muster_rendezvous_request;

/** A place in a round: the answer to a JOIN. */
typedef struct muster_rendezvous_assignment {
    uint32_t struct_size; /**< sizeof(muster_rendezvous_assignment) of the caller. */
    uint32_t rank;        /**< Rank of the member. */
    uint32_t world;       /**< Members of the round, from `min` to `max` of the member. */
    uint32_t reserved;    /**< Zero. */
    uint64_t number;      /**< Number of the round, above those this member has been in. */
    muster_store *store;  /**< What the members share: a view for this round alone. Stays the caller's. Or NULL. */
    const muster_round_member_info *members; /**< The table of members, by rank; copied. Or NULL. */
    uint64_t member_count;                   /**< As `world`, or 0. */
    uint8_t digest[32];                      /**< Of the table, the same for all of the round; or zero. */
} muster_rendezvous_assignment;

/** What serves a rendezvous, as callbacks; run by muster_queue_dispatch() on the thread that calls it, no lock held.
 * They may call Muster. */
typedef struct muster_rendezvous_ops {
    uint32_t struct_size; /**< sizeof(muster_rendezvous_ops) of the caller. */
    uint32_t flags;       /**< Zero. */
    /** Do what is asked; answer by its id, inside or later. Not NULL. */
    void (*request)(void *self, uint64_t request, const muster_rendezvous_request *what);
    /** The request of that id is no longer wanted; answering it is harmless. May be NULL. */
    void (*cancel)(void *self, uint64_t request);
    /** The member of that id, that of its OPEN request, was released: it is out. May be NULL. */
    void (*close)(void *self, uint64_t member);
    /** Last callback of the table, after muster_rendezvous_withdraw() or the end of the context. May be NULL. */
    void (*destroy)(void *self);
} muster_rendezvous_ops;

/** Adds a host-served rendezvous for one URL scheme, in this context only. What it has to do arrives as requests in the
 * queue, to be pulled with muster_queue_next().
 * @param[in]  context       Where it becomes known, to muster_rendezvous_open() with a URL.
 * @param[in]  scheme        Lower-case ASCII, 1 to 31 bytes, no terminator needed; none of a store that is built in.
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
MUSTER_API muster_status muster_rendezvous_serve(muster_context *context, const char *scheme, size_t scheme_bytes,
                                                 muster_queue *requests, uint64_t tag, muster_error *error);

/** Adds a host-served rendezvous whose requests run callbacks, inside muster_queue_dispatch().
 * @param[in]  context       Where it becomes known, to muster_rendezvous_open() with a URL.
 * @param[in]  scheme        Lower-case ASCII, 1 to 31 bytes, no terminator needed; none of a store that is built in.
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
MUSTER_API muster_status muster_rendezvous_serve_ops(muster_context *context, const char *scheme, size_t scheme_bytes,
                                                     const muster_rendezvous_ops *ops, void *self,
                                                     muster_queue *requests, muster_error *error);

/** Takes a host-served rendezvous back: opening it fails from now on, what its members have asked and was not answered
 * ends with ::MUSTER_E_CLOSED, and they are told ::MUSTER_RENDEZVOUS_LOST. Each member is closed, then the table is
 * destroyed, by dispatch: keep dispatching until that has come. Releasing the queue takes the scheme back, too, but
 * then no callback of the table runs any more, destroy neither.
 * @param[in] context       Where it was added.
 * @param[in] scheme        Its scheme.
 * @param[in] scheme_bytes  Length of the scheme.
 * @retval MUSTER_OK           Taken back.
 * @retval MUSTER_E_ARG        No context or scheme.
 * @retval MUSTER_E_NOT_FOUND  No host-served rendezvous of that scheme.
 * @retval MUSTER_E_FORKED     The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_withdraw(muster_context *context, const char *scheme, size_t scheme_bytes);

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
MUSTER_API muster_status muster_rendezvous_request_read(muster_queue *requests, uint64_t request,
                                                        muster_rendezvous_request *out_what);

/** Answers a JOIN request: the member is in a round. It is told ::MUSTER_RENDEZVOUS_COMPLETE.
 * @param[in]  requests  Queue the request came from.
 * @param[in]  request   Its id.
 * @param[in]  place     Which round, and where in it; copied.
 * @param[out] error     Detail on failure, or NULL.
 * @retval MUSTER_OK       Answered.
 * @retval MUSTER_E_ARG    No queue or place, or not a JOIN request; or a place that cannot be: then the request has
 *                         failed with ::MUSTER_E_PLUGIN. The text says what is wrong.
 * @retval MUSTER_E_ABI    The place has non-zero fields newer than this library.
 * @retval MUSTER_E_STALE  No such request, or it was answered or cancelled: the member is not in.
 * @retval MUSTER_E_NOMEM  No memory; the request is still open.
 * @retval MUSTER_E_FORKED The queue belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_request_round(muster_queue *requests, uint64_t request,
                                                         const muster_rendezvous_assignment *place,
                                                         muster_error *error);

/** Answers any request but JOIN: it is done. After an ABORT the member is told ::MUSTER_RENDEZVOUS_ABORTED, unless it
 * was before.
 * @param[in]  requests    Queue the request came from.
 * @param[in]  request     Its id. Of an OPEN: from now on it names the member, until ::MUSTER_REQUEST_CLOSE.
 * @param[in]  text        LIST: a line for each, at most 1 MiB in all. Else NULL.
 * @param[in]  text_bytes  Its length.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK       Answered.
 * @retval MUSTER_E_ARG    No queue, a JOIN request, or a text that is too long or not wanted.
 * @retval MUSTER_E_STALE  No such request, or it was answered or cancelled.
 * @retval MUSTER_E_NOMEM  No memory; the request is still open.
 * @retval MUSTER_E_FORKED The queue belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_request_done(muster_queue *requests, uint64_t request, const void *text,
                                                        size_t text_bytes, muster_error *error);

/** Answers any request: it cannot be done. After a JOIN the member is out.
 * @param[in] requests    Queue the request came from.
 * @param[in] request     Its id.
 * @param[in] status      Why, a negative value: ::MUSTER_E_CLOSED, ::MUSTER_E_UNREACHABLE, ...
 * @param[in] text        A sentence for people, or NULL.
 * @param[in] text_bytes  Its length, at most 200 bytes.
 * @retval MUSTER_OK       Answered.
 * @retval MUSTER_E_ARG    No queue, a status that is no failure, or a text that is too long.
 * @retval MUSTER_E_STALE  No such request, or it was answered or cancelled.
 * @retval MUSTER_E_FORKED The queue belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_request_fail(muster_queue *requests, uint64_t request, muster_status status,
                                                        const char *text, size_t text_bytes);

/** Tells a member of an event. ABORTED, EXPELLED and LOST end its round: an EXIT that waits ends with
 * ::MUSTER_E_STALE; with LOST everything else that waits ends with ::MUSTER_E_PEER.
 * @param[in]  requests  Queue of the scheme.
 * @param[in]  member    Id of the member.
 * @param[in]  event     What has happened: any kind but ::MUSTER_RENDEZVOUS_COMPLETE. The library fills in the round.
 * @param[out] error     Detail on failure, or NULL.
 * @retval MUSTER_OK       Told.
 * @retval MUSTER_E_ARG    No queue or event, an unknown kind, a rank that is not of the member's world, or a text that
 *                         is too long.
 * @retval MUSTER_E_STALE  No such member, or it was released; or LEFT, DEAD, ABORTED or EXPELLED, and it is in no
 *                         round.
 * @retval MUSTER_E_NOMEM  No memory; it was not told.
 * @retval MUSTER_E_FORKED The queue belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_notify(muster_queue *requests, uint64_t member,
                                                  const muster_rendezvous_event *event, muster_error *error);

#ifdef __cplusplus
}
#endif

#endif
