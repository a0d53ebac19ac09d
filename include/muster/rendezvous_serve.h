/* SPDX-License-Identifier: MIT */
/** @file
 * Rendezvous that the host serves: the program itself decides which processes are members, and with which rank, for the
 * URLs of a scheme.
 *
 * The host registers a scheme with a queue. muster_rendezvous_open() and the calls of its members arrive there as
 * ::MUSTER_REQUEST_RENDEZVOUS, each with an id. The host answers by that id, now or later, from any thread:
 * muster_rendezvous_request_round() answers a join, muster_rendezvous_request_done() every other request, and
 * muster_rendezvous_request_fail() any request that cannot be done. ::MUSTER_REQUEST_CANCEL reports that an unanswered
 * request is no longer needed, ::MUSTER_REQUEST_CLOSE that a member was released, and with that has left; neither needs
 * an answer. muster_rendezvous_notify() notifies a member of an event that concerns other members.
 *
 * The library enforces deadlines and cancels, refuses calls that are impossible in the phase of a member
 * (::MUSTER_E_BUSY, ::MUSTER_E_STALE), and validates answers: a request with an invalid answer fails, and the answering
 * call says what is wrong. Where the host provides a store, the store view of a round becomes stale for a member when
 * the member's round ends; keeping other programs out of it is up to the host.
 *
 * A join that is cancelled removes its member; so does a leave, whether it is answered or not. A member of a round that
 * joins again leaves that round.
 *
 * There are two ways to receive requests, with the same behaviour: *pulled* with muster_queue_next(), after
 * muster_rendezvous_serve(); or as *callbacks* of a table, which muster_queue_dispatch() calls on the thread that calls
 * it, and nothing else does, after muster_rendezvous_serve_ops().
 *
 * A thread that serves a rendezvous must not wait for it: calls that wait return ::MUSTER_E_WOULD_DEADLOCK if no other
 * thread waits on the queue that serves the scheme, and the calling thread is the one that last took an entry off it
 * (before any entry was taken: the thread that registered the scheme). Use muster_rendezvous_begin() there. */
#ifndef MUSTER_RENDEZVOUS_SERVE_H
#define MUSTER_RENDEZVOUS_SERVE_H

#include <muster/rendezvous.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The operation of a request; the value of muster_rendezvous_request::kind. */
enum muster_rendezvous_request_kind {
    MUSTER_RENDEZVOUS_REQUEST_OPEN = 1, /**< Make a member that has not joined. The id of this request identifies it. */
    MUSTER_RENDEZVOUS_REQUEST_JOIN = 2, /**< The member waits for a round. */
    MUSTER_RENDEZVOUS_REQUEST_LEAVE = 3, /**< The member leaves its round. */
    MUSTER_RENDEZVOUS_REQUEST_EXIT = 4,  /**< The member waits until all members that are still in its round do so. */
    MUSTER_RENDEZVOUS_REQUEST_ABORT = 5, /**< The member ends its round for all members: notify the others. */
    MUSTER_RENDEZVOUS_REQUEST_CLOSE = 6, /**< No further round may begin in this run. */
    MUSTER_RENDEZVOUS_REQUEST_LIST = 7   /**< List the members that wait for the next round, for people. */
};

/** One request. Pointers in it are valid until the request is answered, or until its CANCEL is taken off the queue or
 * the cancel callback returns. */
typedef struct muster_rendezvous_request {
    uint32_t struct_size; /**< sizeof(muster_rendezvous_request) of the caller; in a callback that of the library. */
    uint32_t kind;        /**< A ::muster_rendezvous_request_kind value. */
    uint64_t member;      /**< Id of the OPEN request of the member. */
    const muster_rendezvous_config *config; /**< OPEN: the config of the member, with the defaults filled in:
                                                 `keep_alive_ns` for one attempt. It has no store and no queue.
                                                 Otherwise NULL. */
    const void *reason;                     /**< ABORT, CLOSE: the reason. */
    uint64_t reason_bytes;                  /**< Length of the reason. */
    int64_t timeout_ns;                     /**< The whole timeout of the call; -1: no limit. */
} muster_rendezvous_request;

/** The place of a member in a round: the answer to a JOIN. */
typedef struct muster_rendezvous_assignment {
    uint32_t struct_size; /**< sizeof(muster_rendezvous_assignment) of the caller. */
    uint32_t rank;        /**< Rank of the member. */
    uint32_t world;       /**< Number of members of the round, from `min` to `max` of the member. */
    uint32_t reserved;    /**< Zero. */
    uint64_t number;      /**< Number of the round, higher than those of earlier rounds of this member. */
    muster_store *store; /**< Store that the members share: a view for this round alone. The caller keeps its reference.
                              May be NULL. */
    const muster_round_member_info *members; /**< Table of members, by rank; copied. May be NULL. */
    uint64_t member_count;                   /**< As `world`, or 0. */
    uint8_t digest[32];                      /**< Digest of the table, equal in the whole round; or zero. */
} muster_rendezvous_assignment;

/** Callbacks that serve a rendezvous. muster_queue_dispatch() calls them on the thread that calls it, with no lock
 * held. They may call Muster. */
typedef struct muster_rendezvous_ops {
    uint32_t struct_size; /**< sizeof(muster_rendezvous_ops) of the caller. */
    uint32_t flags;       /**< Zero. */
    /** Performs a request; answer by its id, inside the callback or later. Not NULL. */
    void (*request)(void *self, uint64_t request, const muster_rendezvous_request *what);
    /** The request is no longer needed; an answer has no effect. May be NULL. */
    void (*cancel)(void *self, uint64_t request);
    /** The member with this id, that of its OPEN request, was released and has left. May be NULL. */
    void (*close)(void *self, uint64_t member);
    /** Last callback of the table, after muster_rendezvous_withdraw() or the end of the context. May be NULL. */
    void (*destroy)(void *self);
} muster_rendezvous_ops;

/** Registers a URL scheme of rendezvous that the host serves, in this context only. Requests arrive in the queue, to be
 * pulled with muster_queue_next().
 * @param[in]  context       Context in which muster_rendezvous_open() knows the scheme.
 * @param[in]  scheme        Lower-case ASCII, 1 to 31 bytes, no terminator needed; not the scheme of a built-in store.
 * @param[in]  scheme_bytes  Length of the scheme.
 * @param[in]  requests      Queue of the same context that the host serves; releasing it withdraws the scheme.
 * @param[in]  tag           Returned in muster_completion::tag of every request, CANCEL and CLOSE included, so that
 *                           one queue can serve several schemes.
 * @param[out] error         Detail on failure, or NULL.
 * @served
 * @retval MUSTER_E_ARG     No context or queue, a queue of another context, or a malformed scheme.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_serve(muster_context *context, const char *scheme, size_t scheme_bytes,
                                                 muster_queue *requests, uint64_t tag, muster_error *error);

/** Registers a URL scheme of rendezvous that the host serves by callbacks, which muster_queue_dispatch() calls.
 * @param[in]  context       Context in which muster_rendezvous_open() knows the scheme.
 * @param[in]  scheme        Lower-case ASCII, 1 to 31 bytes, no terminator needed; not the scheme of a built-in store.
 * @param[in]  scheme_bytes  Length of the scheme.
 * @param[in]  ops           The callbacks; the table is copied.
 * @param[in]  self          Passed to each callback; must stay valid until destroy.
 * @param[in]  requests      Queue of the same context that is dispatched; releasing it withdraws the scheme.
 * @param[out] error         Detail on failure, or NULL.
 * @served_ops
 * @retval MUSTER_E_ARG     An argument is missing, the queue is of another context, or a malformed scheme.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_serve_ops(muster_context *context, const char *scheme, size_t scheme_bytes,
                                                     const muster_rendezvous_ops *ops, void *self,
                                                     muster_queue *requests, muster_error *error);

/** Withdraws a scheme of host-served rendezvous. From now on opening one fails, unanswered requests of its members fail
 * with ::MUSTER_E_CLOSED, and the members receive ::MUSTER_RENDEZVOUS_LOST. Dispatch then calls close for each member
 * and finally destroy: keep dispatching until destroy was called. Releasing the queue also withdraws the scheme, but
 * then no callback of the table is called any more, not even destroy.
 * @param[in] context       Context in which the scheme was registered.
 * @param[in] scheme        The scheme.
 * @param[in] scheme_bytes  Length of the scheme.
 * @retval MUSTER_OK           The scheme was withdrawn.
 * @retval MUSTER_E_ARG        No context or scheme.
 * @retval MUSTER_E_NOT_FOUND  No host-served rendezvous of this scheme is registered.
 * @retval MUSTER_E_FORKED     The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_withdraw(muster_context *context, const char *scheme, size_t scheme_bytes);

/** Reads an unanswered request.
 * @param[in]  requests   Queue from which the request was taken.
 * @param[in]  request    Id of the request.
 * @param[out] out_what   Filled, as far as its struct_size reaches.
 * @read_request
 * @retval MUSTER_E_ARG    No queue or no destination.
 * @retval MUSTER_E_ABI    struct_size has a value that was never released.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_request_read(muster_queue *requests, uint64_t request,
                                                        muster_rendezvous_request *out_what);

/** Answers a JOIN request: the member is in a round. It receives ::MUSTER_RENDEZVOUS_COMPLETE.
 * @param[in]  requests  Queue from which the request was taken.
 * @param[in]  request   Id of the request.
 * @param[in]  assignment  The round, and the place of the member in it; copied.
 * @param[out] error     Detail on failure, or NULL.
 * @retval MUSTER_OK       The answer was accepted.
 * @retval MUSTER_E_ARG    No queue or assignment, or not a JOIN request; or an impossible assignment: then the
 *                         request has failed with ::MUSTER_E_PLUGIN. The error says what is wrong.
 * @retval MUSTER_E_ABI    The assignment has non-zero fields that are newer than this library.
 * @retval MUSTER_E_STALE  The queue has no open request with this id: it was answered or cancelled before. The
 *                         member has not joined.
 * @retval MUSTER_E_NOMEM  Memory ran out; the request is still open.
 * @retval MUSTER_E_FORKED The queue belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_request_round(muster_queue *requests, uint64_t request,
                                                         const muster_rendezvous_assignment *assignment,
                                                         muster_error *error);

/** Answers any request but JOIN: it is done. After an ABORT the member receives ::MUSTER_RENDEZVOUS_ABORTED, unless it
 * had received it before.
 * @param[in]  requests    Queue from which the request was taken.
 * @param[in]  request     Id of the request. Of an OPEN: from now on it names the member, until ::MUSTER_REQUEST_CLOSE.
 * @param[in]  text        LIST: a line for each member, at most 1 MiB in all. Otherwise NULL.
 * @param[in]  text_bytes  Length of the text.
 * @param[out] error       Detail on failure, or NULL.
 * @answered
 * @retval MUSTER_E_ARG    No queue, a JOIN request, or a text that is too long or not expected.
 * @retval MUSTER_E_NOMEM  Memory ran out; the request is still open.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_request_done(muster_queue *requests, uint64_t request, const void *text,
                                                        size_t text_bytes, muster_error *error);

/** Answers any request: it cannot be done. After a JOIN the member has left.
 * @param[in] requests    Queue from which the request was taken.
 * @param[in] request     Id of the request.
 * @param[in] status      The reason, a negative value: ::MUSTER_E_CLOSED, ::MUSTER_E_UNREACHABLE, ...
 * @param[in] text        Text for people, or NULL.
 * @param[in] text_bytes  Length of the text, at most 200 bytes.
 * @answered
 * @retval MUSTER_E_ARG    No queue, a status that is not a failure, or a text that is too long.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_request_fail(muster_queue *requests, uint64_t request, muster_status status,
                                                        const char *text, size_t text_bytes);

/** Notifies a member of an event. ABORTED, EXPELLED and LOST end the member's round: an EXIT that waits ends with
 * ::MUSTER_E_STALE. With LOST all other waiting requests end with ::MUSTER_E_PEER.
 * @param[in]  requests  Queue of the scheme.
 * @param[in]  member    Id of the member.
 * @param[in]  event     The event, of any kind but ::MUSTER_RENDEZVOUS_COMPLETE. The library fills in the round.
 * @param[out] error     Detail on failure, or NULL.
 * @retval MUSTER_OK       The member was notified.
 * @retval MUSTER_E_ARG    No queue or event, an unknown kind, a rank that is not in the world of the member, or a text
 *                         that is too long.
 * @retval MUSTER_E_STALE  There is no such member, or it was released; or the event is LEFT, DEAD, ABORTED or
 *                         EXPELLED, and the member is in no round.
 * @retval MUSTER_E_NOMEM  Memory ran out; the member was not notified.
 * @retval MUSTER_E_FORKED The queue belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_notify(muster_queue *requests, uint64_t member,
                                                  const muster_rendezvous_event *event, muster_error *error);

#ifdef __cplusplus
}
#endif

#endif
