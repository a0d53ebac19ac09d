/* SPDX-License-Identifier: MIT */
/** @file
 * Transports that the host serves: the program itself transports the bytes of a scheme, in its own language.
 *
 * The host registers a scheme with a queue. Dialling or listening at an address of that scheme puts a *request* there:
 * ::MUSTER_REQUEST_OPEN, ::MUSTER_REQUEST_LISTEN, each with an id that the host answers now or later, from any thread:
 * muster_request_stream(), muster_request_listening(), muster_request_fail(). The host announces an incoming
 * connection with muster_transport_incoming(), which assigns an id to it.
 *
 * Each id ends in exactly one of three ways; no later request has it:
 * - The host fails the request with muster_request_fail(). No further request follows.
 * - ::MUSTER_REQUEST_CANCEL: the request is not answered yet, and no longer needed. No answer is needed.
 * - ::MUSTER_REQUEST_CLOSE: a connection or listener has ended. The host frees its state for the id at once; no answer
 *   is needed. For a listener: no more connections are expected; announced connections continue, each with its own id.
 *   For a connection: see below.
 *
 * For each connection the host gets a *pump*: the other end of a stream. The host sends the bytes that it reads from
 * the pump, and writes the bytes that it receives to the pump. A pump carries the frames of the library, with which
 * both sides prove the secret, seal, half-close, abort and send heartbeats; so transporting plain bytes makes a
 * complete transport.
 *
 * A connection ends in order when reading the pump returns ::MUSTER_E_END: the library writes nothing more. The host
 * sends what it has read, closes its own connection, and then closes or releases the pump.
 * (The host drops bytes that its peer still sends: the library accepts no more, and writes to the pump fail with
 * ::MUSTER_E_PEER.) ::MUSTER_REQUEST_CLOSE follows that and never precedes it, so a host that drops everything on CLOSE
 * loses no byte. An abort of a stream ends its connection in this way too: the abort is one of the frames. A connection
 * that fails (a pump that the host aborts or closes too early, a peer that is silent or has another secret, a dial that
 * is cancelled after its answer) ends at once: calls of the pump return a failure, and ::MUSTER_REQUEST_CLOSE comes
 * without waiting for the host, which may be blocked elsewhere; what is left need not be sent. Closing the context does
 * not wait for the host to close its pumps either. When the host's own connection ends, the host finishes the pump
 * (muster_stream_finish()); when it breaks, the host aborts the pump (muster_stream_abort()).
 *
 * There are two ways to receive requests, with the same behaviour: *pulled* with muster_queue_next(), after
 * muster_transport_serve(); or as *callbacks* of a table, run by muster_queue_dispatch() on the thread that calls it,
 * after muster_transport_serve_ops().
 *
 * A thread that serves a transport must not wait for it: muster_transport_dial(), muster_transport_listen() and
 * muster_listener_accept() with a timeout return ::MUSTER_E_WOULD_DEADLOCK when no other thread waits on the queue that
 * serves the scheme, and the calling thread is the one that last took an entry off it. Before any entry was taken, the
 * thread that registered the scheme may be about to hand the serving to another one: there the call waits, and returns
 * ::MUSTER_E_WOULD_DEADLOCK only if no thread has begun to serve within 2 s. Use muster_transport_dial_begin(),
 * muster_transport_listen_begin() and muster_listener_watch() there. In the same way the waiting calls of a stream
 * return it on the thread that last used the pump of that stream. */
#ifndef MUSTER_SERVE_H
#define MUSTER_SERVE_H

#include <muster/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Flags of muster_transport_ops::flags and of muster_transport_serve(). */
enum muster_transport_flag {
    MUSTER_TRANSPORT_ANY_THREAD =
        1, /**< Callbacks may run directly on a library thread; they must not block or unwind. Only for a table. */
    MUSTER_TRANSPORT_LOCAL =
        2, /**< Bytes never leave this host: they are not sealed unless the context or the address requires it. */
    MUSTER_TRANSPORT_SEALS = 4, /**< The transport encrypts and authenticates the bytes: if both sides declare it, they
                                   are not sealed a second time, unless the context or the address requires it. */
    MUSTER_TRANSPORT_NO_LISTEN = 8 /**< The transport cannot listen: muster_transport_listen() fails with
                                        ::MUSTER_E_UNSUPPORTED without a request. */
};

/** Callbacks that serve a transport. muster_queue_dispatch() calls them on the thread that calls it, with no lock held.
 * They may call Muster. Each request is answered by its id, inside the callback or later. */
typedef struct muster_transport_ops {
    uint32_t struct_size; /**< sizeof(muster_transport_ops) of the caller. */
    uint32_t flags;       /**< ::muster_transport_flag values, or'ed. */
    /** Connects to an address; answer with muster_request_stream() or muster_request_fail(). Not NULL. */
    void (*open)(void *self, uint64_t request, const char *address, uint64_t address_bytes);
    /** Listens at an address; answer with muster_request_listening() or muster_request_fail(). NULL: the transport
     * cannot listen. */
    void (*listen)(void *self, uint64_t request, const char *address, uint64_t address_bytes);
    /** The connection or listener with this id has ended, see above: free its state. May be NULL. */
    void (*close)(void *self, uint64_t request);
    /** The request is no longer needed; an answer has no effect. May be NULL. */
    void (*cancel)(void *self, uint64_t request);
    /** Last callback of the table, after muster_transport_withdraw() or the end of the context. May be NULL. */
    void (*destroy)(void *self);
} muster_transport_ops;

/** Registers a URL scheme of a transport that the host serves, in this context only. Requests arrive in the queue, to
 * be pulled with muster_queue_next().
 * @param[in]  context       Context in which the scheme is registered.
 * @param[in]  scheme        Lower-case ASCII, 1 to 31 bytes, no terminator needed.
 * @param[in]  scheme_bytes  Length of the scheme.
 * @param[in]  flags         ::muster_transport_flag values, or'ed, without ::MUSTER_TRANSPORT_ANY_THREAD.
 * @param[in]  requests      Queue of the same context that the host serves; releasing it withdraws the transport.
 * @param[in]  tag           Returned in muster_completion::tag of every request, CANCEL and CLOSE included, so that
 *                           one queue can serve several schemes.
 * @param[out] error         Detail on failure, or NULL.
 * @served
 * @retval MUSTER_E_ARG     No context or queue, a queue of another context, unknown flags, or a malformed scheme.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_transport_serve(muster_context *context, const char *scheme, size_t scheme_bytes,
                                                uint32_t flags, muster_queue *requests, uint64_t tag,
                                                muster_error *error);

/** Registers a URL scheme of a transport that the host serves by callbacks, which muster_queue_dispatch() calls.
 * @param[in]  context       Context in which the scheme is registered.
 * @param[in]  scheme        Lower-case ASCII, 1 to 31 bytes, no terminator needed.
 * @param[in]  scheme_bytes  Length of the scheme.
 * @param[in]  ops           The callbacks; the table is copied.
 * @param[in]  self          Passed to each callback; must stay valid until destroy.
 * @param[in]  requests      Queue of the same context that is dispatched; releasing it withdraws the transport.
 * @param[out] error         Detail on failure, or NULL.
 * @served_ops
 * @retval MUSTER_E_ARG     An argument is missing, the queue is of another context, or a malformed scheme.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_transport_serve_ops(muster_context *context, const char *scheme, size_t scheme_bytes,
                                                    const muster_transport_ops *ops, void *self, muster_queue *requests,
                                                    muster_error *error);

/** Withdraws a host-served transport: from now on dialling and listening fail, unanswered requests fail with
 * ::MUSTER_E_CLOSED, and listeners close; connections continue until they end. Dispatch then calls destroy: keep
 * dispatching until it was called. Releasing the queue also withdraws the transport, but then no callback of the table
 * is called any more, not even destroy, unless the table has ::MUSTER_TRANSPORT_ANY_THREAD.
 * @param[in] context       Context in which the scheme was registered.
 * @param[in] scheme        The scheme.
 * @param[in] scheme_bytes  Length of the scheme.
 * @retval MUSTER_OK           The transport was withdrawn.
 * @retval MUSTER_E_ARG        No context or scheme.
 * @retval MUSTER_E_NOT_FOUND  No host-served transport of this scheme is registered.
 * @retval MUSTER_E_FORKED     The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_transport_withdraw(muster_context *context, const char *scheme, size_t scheme_bytes);

/** Copies the address of an OPEN or LISTEN request, without the options of the library.
 * @param[in]  requests   Queue from which the request was taken.
 * @param[in]  request    Id of the unanswered request.
 * @param[out] out_text   Destination of the text, NUL-terminated; NULL to get the size only.
 * @param[in]  capacity   Size of the destination, the terminator included.
 * @param[out] out_bytes  Length of the text, without the terminator.
 * @copied
 * @retval MUSTER_E_ARG    No queue, or no destination for the length.
 * @retval MUSTER_E_NOMEM  Memory ran out.
 * @retval MUSTER_E_STALE  No such request, or it was answered or cancelled.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_request_address(muster_queue *requests, uint64_t request, char *out_text,
                                                size_t capacity, size_t *out_bytes);

/** Answers an OPEN request: the host is connected. The dial completes when the other side has proved the secret. If the
 * dial ends at the same time, calls on the pump return ::MUSTER_E_CANCELED.
 * @param[in]  requests  Queue from which the request was taken.
 * @param[in]  request   Id of the request. From now on it identifies the connection, until ::MUSTER_REQUEST_CLOSE.
 * @param[out] out_pump  The other end of the stream, for the host to pump; the caller owns one reference.
 * @param[out] error     Detail on failure, or NULL.
 * @answered
 * @retval MUSTER_E_ARG    No queue, no destination, or not an OPEN request.
 * @retval MUSTER_E_NOMEM  Memory ran out; the request is still open.
 * @retval MUSTER_E_CLOSED The context is closed.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_request_stream(muster_queue *requests, uint64_t request, muster_stream **out_pump,
                                               muster_error *error);

/** Answers a LISTEN request: the host listens. This ends muster_transport_listen(), or completes
 * muster_transport_listen_begin() with ::MUSTER_DONE_LISTEN; muster_listener_address() then gives this address.
 * @param[in]  requests       Queue from which the request was taken.
 * @param[in]  request        Id of the request. From now on it identifies the listener.
 * @param[in]  address        Address that peers dial, `scheme://...`; text, no terminator needed. NULL: the
 *                            requested one.
 * @param[in]  address_bytes  Length of the text, at most 4096.
 * @param[out] error          Detail on failure, or NULL.
 * @answered
 * @retval MUSTER_E_ARG     No queue, a text that is too long, or not a LISTEN request.
 * @retval MUSTER_E_ADDRESS The text is not an address of that scheme.
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

/** Announces an incoming connection of a host-served listener.
 * @param[in]  requests        Queue from which the LISTEN request was taken.
 * @param[in]  listen_request  Id of that request, answered with muster_request_listening().
 * @param[in]  peer            Origin of the connection, for people; text, no terminator needed. NULL: unknown.
 * @param[in]  peer_bytes      Length of the text, at most 200 bytes.
 * @param[out] out_request     Id of the new connection, for ::MUSTER_REQUEST_CLOSE; or NULL.
 * @param[out] out_pump        The other end of the stream, for the host to pump; the caller owns one reference.
 * @param[out] error           Detail on failure, or NULL.
 * @retval MUSTER_OK       Announced; it can be accepted when the other side has proved the secret.
 * @retval MUSTER_E_ARG    No queue, no destination, a text that is too long, or not a LISTEN request.
 * @retval MUSTER_E_STALE  The listener does not exist, or was closed.
 * @retval MUSTER_E_LIMIT  Too many connections at once that have not proved the secret yet: beyond
 *                         muster_context_config::max_unauthenticated as many again, or 256 if that is more. Or the
 *                         queue has no slot left. Below that limit, connections that have sent nothing are
 *                         displaced: their pumps end, and ::MUSTER_REQUEST_CLOSE follows for them.
 * @retval MUSTER_E_NOMEM  Memory ran out.
 * @retval MUSTER_E_CLOSED The context is closed, or the transport was withdrawn.
 * @retval MUSTER_E_FORKED The queue belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_transport_incoming(muster_queue *requests, uint64_t listen_request, const char *peer,
                                                   size_t peer_bytes, uint64_t *out_request, muster_stream **out_pump,
                                                   muster_error *error);

#ifdef __cplusplus
}
#endif
#endif
