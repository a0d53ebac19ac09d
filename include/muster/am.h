/* SPDX-License-Identifier: MIT */
/** @file
 * Active messages: small requests to another process, which its library executes while its host computes.
 *
 * An endpoint has peers, each of which is a stream over any transport with an endpoint at its other end, and handlers,
 * each of which has a number. A request names a peer, the number of a handler there, and some bytes; the handler's
 * status and bytes are the reply. (T. von Eicken et al., Active messages, 1992; here every request has a reply.)
 *
 * A handler is one of two kinds. A function is executed by the thread of the library at the peer, at once: it does
 * something short, and never waits. Otherwise the request is an entry in a queue of the host, which replies when it
 * wants.
 *
 * Requests to one peer are executed in the order in which they were made. Of requests to different peers none waits for
 * another. A request is executed at most once. Whether it was executed is not known if the peer has ended, or if the
 * time was over, before the reply arrived.
 *
 * What a peer sends is limited: to muster_am_config::max_bytes for a request, and to muster_am_config::max_requests
 * requests without a reply. A peer that breaks the format or a limit is disconnected. */
#ifndef MUSTER_AM_H
#define MUSTER_AM_H

#include <muster/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An endpoint: opaque; made by muster_am_create(). */
typedef struct muster_am muster_am;

/** A request that the host answers: opaque; muster_completion::object of ::MUSTER_REQUEST_AM. */
typedef struct muster_am_request muster_am_request;

/** Largest number of a handler. */
#define MUSTER_AM_MAX_HANDLER 255

/** How to make an endpoint; all zero means the defaults named here. */
typedef struct muster_am_config {
    uint32_t struct_size;  /**< sizeof(muster_am_config) of the caller. */
    uint32_t max_bytes;    /**< Largest request or reply, 4096 to 16 MiB; 0: 64 KiB. Of two endpoints with different
                                limits the smaller one counts. */
    uint32_t max_requests; /**< Requests to one peer that have no reply yet, 16 to 65536; 0: 256. The same. */
    uint32_t flags;        /**< ::MUSTER_AM_NO_POLLING, or 0. */
    muster_queue *queue;   /**< Queue of the same context for ::MUSTER_EVENT_READY with ::MUSTER_AM_PEER_ENDED; or
                                NULL. */
    uint64_t tag;          /**< muster_completion::tag of these entries. */
} muster_am_config;

/** muster_am_config::flags. */
enum muster_am_flags {
    MUSTER_AM_NO_POLLING = 1 /**< The thread of the library sleeps after each request. Otherwise it polls for the next
                                  one, for at most 64 us, while that finds requests and no other thread needs the
                                  processor. */
};

/** muster_completion::events of an endpoint. */
enum muster_am_event {
    MUSTER_AM_PEER_ENDED = 1 /**< One or more peers have ended; muster_am_get_peer() shows which. */
};

/** A handler that the library executes.
 * @param[in]  user      As it was given.
 * @param[in]  peer      The peer that makes the request.
 * @param[in]  data      The bytes of the request; valid until the return.
 * @param[in]  bytes     Number of them.
 * @param[out] reply     Place for the bytes of the reply.
 * @param[in]  capacity  Size of that place: at least 4096, and as much as the peer accepts.
 * @param[out] out_bytes Number of bytes of the reply; 0 before the call.
 * @return The status that the call of the peer returns: ::MUSTER_OK, ::MUSTER_AGAIN or a failure. */
typedef muster_status (*muster_am_fn)(void *user, uint32_t peer, const void *data, size_t bytes, void *reply,
                                      size_t capacity, size_t *out_bytes);

/** State of a peer. */
typedef struct muster_am_peer {
    muster_status status;  /**< ::MUSTER_OK: connected. Otherwise why it has ended: ::MUSTER_E_PEER, ::MUSTER_E_ABORTED,
                                ::MUSTER_E_PROTOCOL, ::MUSTER_E_CLOSED, ::MUSTER_E_NOMEM. */
    uint32_t requests;     /**< Requests to it that have no reply yet. */
    uint64_t sent;         /**< Requests that were made to it. */
    uint64_t executed;     /**< Its requests that were executed here, or put in a queue. */
    uint64_t unsent_bytes; /**< Bytes to it that wait for room in the stream. */
    uint32_t max_bytes;    /**< Largest request to it, and largest reply. */
    uint32_t max_requests; /**< Requests to it that may be without a reply. */
} muster_am_peer;

/** What a request of a peer says. */
typedef struct muster_am_request_info {
    const void *data; /**< Its bytes; valid until muster_am_request_release(). */
    size_t bytes;     /**< Number of them. */
    uint32_t peer;    /**< The peer that makes it. */
    uint32_t handler; /**< The number of the handler. */
} muster_am_request_info;

/** Makes an endpoint without peers.
 * @param[in]  context  Context whose thread executes the handlers; kept.
 * @param[in]  config   Options; copied. NULL: all defaults.
 * @param[out] out_am   The endpoint; the caller owns one reference.
 * @param[out] error    Detail on failure, or NULL.
 * @retval MUSTER_OK  Made.
 * @bad_config
 * @retval MUSTER_E_LIMIT   No descriptor was left.
 * @retval MUSTER_E_NOMEM   Memory ran out.
 * @retval MUSTER_E_CLOSED  The context is closed.
 * @retval MUSTER_E_FORKED  The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_am_create(muster_context *context, const muster_am_config *config, muster_am **out_am,
                                          muster_error *error);

/** Sets a handler that the library executes. Handlers are set before the peers are added that use them; requests for a
 * number without one are answered with ::MUSTER_E_UNSUPPORTED.
 * @param[in] am       Endpoint.
 * @param[in] handler  Its number, at most ::MUSTER_AM_MAX_HANDLER.
 * @param[in] function Called on the thread of the library, one call at a time, until muster_am_close() or
 *                     muster_am_release() has returned.
 * @param[in] user     Passed to it.
 * @retval MUSTER_OK        Set.
 * @retval MUSTER_E_ARG     No endpoint, no function, or no such number.
 * @retval MUSTER_E_EXISTS  The number has a handler.
 * @retval MUSTER_E_CLOSED  The endpoint is closed.
 * @retval MUSTER_E_FORKED  The endpoint belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_am_set_handler(muster_am *am, uint32_t handler, muster_am_fn function, void *user);

/** Sets a handler whose requests the host answers: each is an entry ::MUSTER_REQUEST_AM in a queue, with the request as
 * muster_completion::object. Requests for which the queue has no room are answered with ::MUSTER_E_BUSY.
 * @param[in] am       Endpoint.
 * @param[in] handler  Its number, at most ::MUSTER_AM_MAX_HANDLER.
 * @param[in] queue    Queue of the same context; kept.
 * @param[in] tag      muster_completion::tag of the entries.
 * @retval MUSTER_OK        Set.
 * @retval MUSTER_E_ARG     No endpoint, no such number, or no queue of the same context.
 * @retval MUSTER_E_EXISTS  The number has a handler.
 * @retval MUSTER_E_CLOSED  The endpoint is closed.
 * @retval MUSTER_E_FORKED  The endpoint belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_am_serve(muster_am *am, uint32_t handler, muster_queue *queue, uint64_t tag);

/** Adds a peer. It makes requests from now on, and requests to it can be made.
 * @param[in]  am        Endpoint.
 * @param[in]  stream    A stream of the same context, from or to which nothing was moved, at whose other end is an
 *                       endpoint. The endpoint owns the caller's reference from now on.
 * @param[out] out_peer  Number of the peer: 0 for the first one, and one more for each. Numbers are not used again.
 * @param[out] error     Detail on failure, or NULL; the stream still belongs to the caller then, aborted if it could
 * not be used.
 * @retval MUSTER_OK        Added.
 * @retval MUSTER_E_ARG     No endpoint, no stream of the same context, or no destination.
 * @retval MUSTER_E_CLOSED  The endpoint or the stream is closed.
 * @retval MUSTER_E_NOMEM   Memory ran out.
 * @retval MUSTER_E_LIMIT   No descriptor was left, or there are 65536 peers.
 * @retval MUSTER_E_FORKED  The endpoint belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_am_add_peer(muster_am *am, muster_stream *stream, uint32_t *out_peer,
                                            muster_error *error);

/** Makes a request, and waits for the reply.
 * @param[in]  am          Endpoint.
 * @param[in]  peer        Peer.
 * @param[in]  handler     Number of the handler there.
 * @param[in]  data        The bytes of the request; NULL if there are none.
 * @param[in]  bytes       Number of them, at most muster_am_peer::max_bytes.
 * @param[out] out_reply   Place for the bytes of the reply; NULL if none are wanted.
 * @param[in]  capacity    Size of that place.
 * @param[in]  timeout_ns  Maximum wait; -1: no limit.
 * @param[out] out_bytes   Number of bytes of the reply, also if there was no room for all; or NULL.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK               As the handler returned it. So are other values that are not named here.
 * @retval MUSTER_AGAIN            The same.
 * @retval MUSTER_E_ARG            No endpoint, no such peer or handler, or no bytes; or the request is larger than the
 *                                 peer accepts.
 * @retval MUSTER_E_UNSUPPORTED    The peer has no such handler.
 * @retval MUSTER_E_BUSY           The queue of the host at the peer is full.
 * @retval MUSTER_E_LIMIT          The reply has more bytes than there is room for; the first ones were copied.
 * @retval MUSTER_TIMEOUT          No reply in time; the request may have been executed, or may be later.
 * @retval MUSTER_E_PEER           The peer has ended. The request may have been executed.
 * @retval MUSTER_E_ABORTED        The peer has disconnected this endpoint. The same.
 * @retval MUSTER_E_PROTOCOL       The peer has broken the format or a limit. The same.
 * @retval MUSTER_E_CLOSED         The endpoint or its context is closed, or was released during the call.
 * @retval MUSTER_E_NOMEM          Memory ran out.
 * @retval MUSTER_E_WOULD_DEADLOCK Called on the thread of the library, for instance by a handler.
 * @retval MUSTER_E_FORKED         The endpoint belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_am_call(muster_am *am, uint32_t peer, uint32_t handler, const void *data, size_t bytes,
                                        void *out_reply, size_t capacity, int64_t timeout_ns, size_t *out_bytes,
                                        muster_error *error);

/** Makes a request without waiting for the reply, which is reported by ::MUSTER_DONE_AM: the status is that of
 * muster_am_call(), and muster_completion::bytes the number of bytes of the reply. May be called by handlers.
 * @param[in]  am         Endpoint.
 * @param[in]  peer       Peer.
 * @param[in]  handler    Number of the handler there.
 * @param[in]  data       The bytes of the request; copied.
 * @param[in]  bytes      Number of them, at most muster_am_peer::max_bytes.
 * @param[out] out_reply  Place for the bytes of the reply; lent until the entry, or until the queue is closed. NULL if
 *                        none are wanted.
 * @param[in]  capacity   Size of that place.
 * @param[in]  queue      Queue of the same context for the entry; NULL: there is none, and muster_am_flush() reports a
 *                        failure.
 * @param[in]  tag        muster_completion::tag of the entry.
 * @retval MUSTER_OK          Begun.
 * @retval MUSTER_AGAIN       As many requests to this peer have no reply as may, the stream has no room, or the queue
 *                            has no slot; nothing was begun. muster_am_flush() waits for room.
 * @retval MUSTER_E_ARG       As muster_am_call(); or a queue of another context.
 * @retval MUSTER_E_PEER      The peer has ended.
 * @retval MUSTER_E_ABORTED   The peer has disconnected this endpoint.
 * @retval MUSTER_E_PROTOCOL  The peer has broken the format or a limit.
 * @retval MUSTER_E_CLOSED    The endpoint, its context or the queue is closed.
 * @retval MUSTER_E_NOMEM     Memory ran out.
 * @retval MUSTER_E_FORKED    The endpoint belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_am_begin(muster_am *am, uint32_t peer, uint32_t handler, const void *data, size_t bytes,
                                         void *out_reply, size_t capacity, muster_queue *queue, uint64_t tag);

/** Waits until each request that was begun before has its reply.
 * @param[in] am          Endpoint.
 * @param[in] peer        Peer; UINT32_MAX: all of them.
 * @param[in] timeout_ns  Maximum wait; 0 only looks, -1: no limit.
 * @retval MUSTER_OK       All have, and those without a queue have succeeded.
 * @retval MUSTER_AGAIN    Not all have; the timeout was 0.
 * @retval MUSTER_TIMEOUT  Not all have in time.
 * @retval MUSTER_E_ARG    No endpoint, or no such peer.
 * @retval MUSTER_E_CLOSED  The endpoint is closed.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called on the thread of the library.
 * @retval MUSTER_E_FORKED  The endpoint belongs to the parent process.
 * @return Otherwise the first failure of a request without a queue since the last flush of that peer.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_am_flush(muster_am *am, uint32_t peer, int64_t timeout_ns);

/** Returns the state of a peer.
 * @param[in]  am        Endpoint.
 * @param[in]  peer      Peer.
 * @param[out] out_peer  The state.
 * @param[out] error     Why it has ended, or NULL; written only if it has.
 * @retval MUSTER_OK        Returned.
 * @retval MUSTER_E_ARG     No endpoint, no such peer, or no destination.
 * @retval MUSTER_E_FORKED  The endpoint belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_am_get_peer(muster_am *am, uint32_t peer, muster_am_peer *out_peer,
                                            muster_error *error);

/** Disconnects a peer: its requests are not executed any more, and those to it end with ::MUSTER_E_ABORTED.
 * @param[in] am    Endpoint.
 * @param[in] peer  Peer; nothing happens if it has ended.
 * @param[in] text  Why, for the error at the peer: UTF-8 that ends with 0; or NULL.
 * @retval MUSTER_OK        Disconnected.
 * @retval MUSTER_E_ARG     No endpoint, or no such peer.
 * @retval MUSTER_E_FORKED  The endpoint belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_am_disconnect(muster_am *am, uint32_t peer, const char *text);

/** Returns what a request says.
 * @param[in]  request   Request.
 * @param[out] out_info  What it says.
 * @retval MUSTER_OK     Returned.
 * @retval MUSTER_E_ARG  No request, or no destination.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_am_request_get(const muster_am_request *request, muster_am_request_info *out_info);

/** Answers a request; the first answer counts.
 * @param[in] request  Request.
 * @param[in] status   The status that the call of the peer returns: ::MUSTER_OK, ::MUSTER_AGAIN or a failure.
 * @param[in] data     The bytes of the reply; copied. NULL if there are none.
 * @param[in] bytes    Number of them, at most muster_am_peer::max_bytes.
 * @retval MUSTER_OK        Answered.
 * @retval MUSTER_E_ARG     No request, a status out of range, or too many bytes.
 * @retval MUSTER_E_STALE   It was answered before.
 * @retval MUSTER_E_PEER    The peer has ended.
 * @retval MUSTER_E_CLOSED  The endpoint is closed.
 * @retval MUSTER_E_NOMEM   Memory ran out; the peer was disconnected.
 * @retval MUSTER_E_FORKED  The endpoint belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_am_request_reply(muster_am_request *request, muster_status status, const void *data,
                                                 size_t bytes);

/** Releases a request. A request without an answer is answered with ::MUSTER_E_CANCELED.
 * @param[in] request  Request, or NULL.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API void muster_am_request_release(muster_am_request *request);

/** Closes an endpoint: all peers are disconnected, and calls end with ::MUSTER_E_CLOSED. When it returns, no handler is
 * executed any more.
 * @param[in] am  Endpoint.
 * @retval MUSTER_OK               Closed, now or before.
 * @retval MUSTER_E_ARG            No endpoint.
 * @retval MUSTER_E_FORKED         The endpoint belongs to the parent process.
 * @threads{any} @blocks{until a handler that is executed has returned} @since 0.1 */
MUSTER_API muster_status muster_am_close(muster_am *am);

/** Closes an endpoint and gives up the reference to it.
 * @param[in] am  Endpoint, or NULL.
 * @threads{any} @blocks{as muster_am_close()} @since 0.1 */
MUSTER_API void muster_am_release(muster_am *am);

#ifdef __cplusplus
}
#endif
#endif
