/* SPDX-License-Identifier: MIT */
/** @file
 * Transports served by the host: the program itself carries the bytes of a scheme, in its own language.
 *
 * The host registers a scheme with a queue. Dialling or listening at an address of that scheme puts a *request* there:
 * ::MUSTER_REQUEST_OPEN, ::MUSTER_REQUEST_LISTEN, each with an id that the host answers now or later, from any thread:
 * muster_request_stream(), muster_request_listening(), muster_request_fail(). A connection that a peer has made is
 * announced with muster_transport_incoming(), which gives it an id.
 *
 * Each id ends in exactly one of three ways, and after that no request names it any more:
 * - The host fails the request with muster_request_fail(). No further request follows.
 * - ::MUSTER_REQUEST_CANCEL: the request is not answered yet, and no longer wanted. No answer is needed.
 * - ::MUSTER_REQUEST_CLOSE: a connection or listener is over. The host drops what it keeps for the id, at once; no
 *   answer is needed. For a listener: no more connections are wanted; connections that were announced go on, each under
 *   its own id. For a connection: see below.
 *
 * For each connection the host gets a *pump*: the far end of a stream. What it reads there goes out over whatever it
 * has, what comes in it writes there. It carries bytes only: of the library frames, in which both sides prove the
 * secret, seal, half-close, abort and keep each other alive, so a plain byte pump makes a complete transport.
 *
 * A connection ends in order when reading the pump gives ::MUSTER_E_END: the library writes nothing more. The host
 * sends what it has read, closes its own connection, and then closes or releases the pump.
 * (What its peer still sends the host drops: the library takes no more, and writes to the pump fail with
 * ::MUSTER_E_PEER.) ::MUSTER_REQUEST_CLOSE follows that, never before it, so that a host that drops everything on CLOSE
 * loses no byte. An abort of a stream ends its connection in this way, too: the abort is among the bytes. A connection
 * that fails (a pump that the host aborts or closes too early, a peer that is silent or has another secret, a dial that
 * is cancelled after its answer) ends at once: calls of the pump return a failure, and ::MUSTER_REQUEST_CLOSE comes
 * without waiting for the host, which may be blocked elsewhere; what is left need not be sent. Closing the context does
 * not wait for the host to close its pumps either. When the host's own connection ends, the host finishes the pump
 * (muster_stream_finish()); when it breaks, the host aborts the pump (muster_stream_abort()).
 *
 * Two ways to take requests, the same underneath: *pulled* with muster_queue_next(), after muster_transport_serve(); or
 * as *callbacks* of a table, run by muster_queue_dispatch() on the thread that calls it, after
 * muster_transport_serve_ops().
 *
 * A thread that serves must not wait for itself: muster_transport_dial(), muster_transport_listen() and
 * muster_listener_accept() with a timeout return ::MUSTER_E_WOULD_DEADLOCK when no other thread waits on the queue that
 * serves the scheme, and the calling thread is the one that last took an entry off it. Before any entry was taken, the
 * thread that registered the scheme may be about to leave the serving to another: there the call waits, and returns
 * ::MUSTER_E_WOULD_DEADLOCK only if no thread has begun to serve within 2 s. Use muster_transport_dial_begin(),
 * muster_transport_listen_begin() and muster_listener_watch() there. In the same way a stream's waiting calls answer it
 * on the thread that last used the pump of that stream. */
#ifndef MUSTER_SERVE_H
#define MUSTER_SERVE_H

#include <muster/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Flags of muster_transport_ops::flags and of muster_transport_serve(). */
enum muster_transport_flag {
    MUSTER_TRANSPORT_ANY_THREAD =
        1, /**< Callbacks may run on a library thread at once; they must not block or unwind. Only for a table. */
    MUSTER_TRANSPORT_LOCAL =
        2, /**< Bytes never leave this host: they are not sealed unless the context or the address says so. */
    MUSTER_TRANSPORT_SEALS =
        4, /**< The transport encrypts and authenticates the bytes by itself: where both sides declare it, they are not
                sealed a second time, unless the context or the address says so. */
    MUSTER_TRANSPORT_NO_LISTEN = 8 /**< The transport cannot listen: muster_transport_listen() fails with
                                        ::MUSTER_E_UNSUPPORTED without a request. */
};

/** What a host-served transport does, as callbacks; run by muster_queue_dispatch() on the thread that calls it, no lock
 * held. They may call Muster. Each answers by the request's id, inside or later. */
typedef struct muster_transport_ops {
    uint32_t struct_size; /**< sizeof(muster_transport_ops) of the caller. */
    uint32_t flags;       /**< ::muster_transport_flag values, or'ed. */
    /** Connect to an address; answer with muster_request_stream() or muster_request_fail(). Not NULL. */
    void (*open)(void *self, uint64_t request, const char *address, uint64_t address_bytes);
    /** Listen at an address; answer with muster_request_listening() or muster_request_fail(). NULL: cannot listen. */
    void (*listen)(void *self, uint64_t request, const char *address, uint64_t address_bytes);
    /** The connection or listener of that id is over, see above: drop what is kept for it. May be NULL. */
    void (*close)(void *self, uint64_t request);
    /** The request of that id is no longer wanted; answering it is harmless. May be NULL. */
    void (*cancel)(void *self, uint64_t request);
    /** Last callback of the table, after muster_transport_withdraw() or the end of the context. May be NULL. */
    void (*destroy)(void *self);
} muster_transport_ops;

/** Adds a host-served transport for one URL scheme, in this context only. What it has to do arrives as requests in the
 * queue, to be pulled with muster_queue_next().
 * @param[in]  context       Context in which the scheme is registered.
 * @param[in]  scheme        Lower-case ASCII, 1 to 31 bytes, no terminator needed.
 * @param[in]  scheme_bytes  Length of the scheme.
 * @param[in]  flags         ::muster_transport_flag values, or'ed, without ::MUSTER_TRANSPORT_ANY_THREAD.
 * @param[in]  requests      Queue of the same context that the host serves; releasing it withdraws the transport.
 * @param[in]  tag           Returned in muster_completion::tag of every request, CANCEL and CLOSE included, so that one queue can serve several schemes.
 * @param[out] error         Detail on failure, or NULL.
 * @served
 * @retval MUSTER_E_ARG     No context or queue, a queue of another context, unknown flags, or no scheme of that form.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_transport_serve(muster_context *context, const char *scheme, size_t scheme_bytes,
                                                uint32_t flags, muster_queue *requests, uint64_t tag,
                                                muster_error *error);

/** Adds a host-served transport whose requests run callbacks, inside muster_queue_dispatch().
 * @param[in]  context       Context in which the scheme is registered.
 * @param[in]  scheme        Lower-case ASCII, 1 to 31 bytes, no terminator needed.
 * @param[in]  scheme_bytes  Length of the scheme.
 * @param[in]  ops           The callbacks; the table is copied.
 * @param[in]  self          Passed to each callback; must stay valid until destroy.
 * @param[in]  requests      Queue of the same context that is dispatched; releasing it withdraws the transport.
 * @param[out] error         Detail on failure, or NULL.
 * @served_ops
 * @retval MUSTER_E_ARG     Something is missing, a queue of another context, or no scheme of that form.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_transport_serve_ops(muster_context *context, const char *scheme, size_t scheme_bytes,
                                                    const muster_transport_ops *ops, void *self, muster_queue *requests,
                                                    muster_error *error);

/** Takes a host-served transport back: dialling and listening fail from now on, unanswered requests fail with
 * ::MUSTER_E_CLOSED, listeners close; connections go on until they end. Its table is then destroyed by dispatch, so
 * keep dispatching until that has come. Releasing the queue takes the transport back, too, but then no callback of the
 * table runs any more, destroy neither, unless it has ::MUSTER_TRANSPORT_ANY_THREAD.
 * @param[in] context       Where it was added.
 * @param[in] scheme        Its scheme.
 * @param[in] scheme_bytes  Length of the scheme.
 * @retval MUSTER_OK           Taken back.
 * @retval MUSTER_E_ARG        No context or scheme.
 * @retval MUSTER_E_NOT_FOUND  No host-served transport of that scheme.
 * @retval MUSTER_E_FORKED     The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_transport_withdraw(muster_context *context, const char *scheme, size_t scheme_bytes);

/** Gives the address an OPEN or LISTEN request is about, options of of the library taken out.
 * @param[in]  requests   Queue from which the request was taken.
 * @param[in]  request    Its id, unanswered.
 * @param[out] out_text   Destination of the text, NUL-terminated; NULL to get the size only.
 * @param[in]  capacity   Size of the destination, the terminator included.
 * @param[out] out_bytes  Length of the text, without the terminator.
 * @copied
 * @retval MUSTER_E_ARG    No queue, or no place for the length.
 * @retval MUSTER_E_NOMEM  Memory ran out.
 * @retval MUSTER_E_STALE  No such request, or it was answered or cancelled.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_request_address(muster_queue *requests, uint64_t request, char *out_text,
                                                size_t capacity, size_t *out_bytes);

/** Answers an OPEN request: the host is connected. The dial completes when the other side has proved the secret. If the
 * dial ends at this very moment, the calls of the pump answer ::MUSTER_E_CANCELED.
 * @param[in]  requests  Queue from which the request was taken.
 * @param[in]  request   Id of the request. From now on it names the connection, for ::MUSTER_REQUEST_CLOSE.
 * @param[out] out_pump  Far end of the stream, for the host to pump; the caller owns one reference.
 * @param[out] error     Detail on failure, or NULL.
 * @answered
 * @retval MUSTER_E_ARG    No queue, no place, or not an OPEN request.
 * @retval MUSTER_E_NOMEM  Memory ran out; the request is still open.
 * @retval MUSTER_E_CLOSED The context is closed.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_request_stream(muster_queue *requests, uint64_t request, muster_stream **out_pump,
                                               muster_error *error);

/** Answers a LISTEN request: the host listens. This ends muster_transport_listen(), or completes
 * muster_transport_listen_begin() with ::MUSTER_DONE_LISTEN; muster_listener_address() then gives this address.
 * @param[in]  requests       Queue from which the request was taken.
 * @param[in]  request        Id of the request. From now on it names the listener.
 * @param[in]  address        What peers dial, `scheme://...`; text, no terminator needed. NULL: as asked for.
 * @param[in]  address_bytes  Length of the text, at most 4096.
 * @param[out] error          Detail on failure, or NULL.
 * @answered
 * @retval MUSTER_E_ARG     No queue, a text that is too long, or not a LISTEN request.
 * @retval MUSTER_E_ADDRESS The text is no address of that scheme.
 * @retval MUSTER_E_NOMEM   Memory ran out; the request is still open.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_request_listening(muster_queue *requests, uint64_t request, const char *address,
                                                  size_t address_bytes, muster_error *error);

/** Answers an OPEN or LISTEN request: it cannot be done. The dial or the listen ends with this status and text.
 * @param[in] requests    Queue from which the request was taken.
 * @param[in] request     Id of the request.
 * @param[in] status      The reason, a negative value: ::MUSTER_E_UNREACHABLE, ::MUSTER_E_EXISTS, ...
 * @param[in] text        Text for people, or NULL.
 * @param[in] text_bytes  Length of the text, at most 200 bytes.
 * @answered
 * @retval MUSTER_E_ARG    No queue, a status that is not a failure, or a text that is too long.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_request_fail(muster_queue *requests, uint64_t request, muster_status status,
                                             const char *text, size_t text_bytes);

/** Announces a connection that came in on a host-served listener.
 * @param[in]  requests        Queue the LISTEN request came from.
 * @param[in]  listen_request  Id of that request, answered with muster_request_listening().
 * @param[in]  peer            Where it comes from, for people; text, no terminator needed. NULL: unknown.
 * @param[in]  peer_bytes      Length of the text, at most 200 bytes.
 * @param[out] out_request     Id of the new connection, for ::MUSTER_REQUEST_CLOSE; or NULL.
 * @param[out] out_pump        Far end of the stream, for the host to pump; the caller owns one reference.
 * @param[out] error           Detail on failure, or NULL.
 * @retval MUSTER_OK       Announced; it can be accepted once the other side has proved the secret.
 * @retval MUSTER_E_ARG    No queue, no place, a text that is too long, or not a LISTEN request.
 * @retval MUSTER_E_STALE  No such listener, or it was closed.
 * @retval MUSTER_E_LIMIT  Too many connections at once that have not proved the secret yet: beyond
 *                         muster_context_config::max_unauthenticated as many again, or 256 if that is more. Or the
 *                         queue has no slot left. With fewer the silent ones make place: their pumps end, and
 *                         ::MUSTER_REQUEST_CLOSE names them.
 * @retval MUSTER_E_NOMEM  Memory ran out.
 * @retval MUSTER_E_CLOSED The context is closed, or the transport was taken back.
 * @retval MUSTER_E_FORKED The queue belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_transport_incoming(muster_queue *requests, uint64_t listen_request, const char *peer,
                                                   size_t peer_bytes, uint64_t *out_request, muster_stream **out_pump,
                                                   muster_error *error);

#ifdef __cplusplus
}
#endif
#endif
