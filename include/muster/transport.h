/* SPDX-License-Identifier: MIT */
/** @file
 * Transports: dial and listen by address, independent of what transports the bytes.
 *
 * Addresses:
 * - `inproc://name`: two ends inside one context.
 * - `tcp://host:port`, `tcp://[::1]:port`: TCP over IPv4 and IPv6. Port 0 listens at any free port. Names are resolved.
 * - `unix:///path`: a Unix-domain socket, whose folder should have mode 0700; `unix://@name`: an abstract one.
 * - `shm://name`: shared memory between processes of one user on one host.
 * - `zmq://name@host:port/service`: a star around a broker, see broker.h; a plug-in that needs libzmq.
 * - `yours://...`: a loaded plug-in, see plugin.h, or a transport that the host serves.
 *
 * Options follow as `?key=value&key=value`: `bind=ADDRESS` (listen here), `advertise=ADDRESS` (give peers this
 * address instead), `upgrade=no` (do not use shared memory), `seal=yes|no`, `auth=none` (no proof of the secret; this
 * must be explicit). An unknown key is ::MUSTER_E_ADDRESS.
 *
 * Both sides prove the secret of the context to each other before a byte of the host is transported, and links that
 * leave the host are sealed with keys from that proof. A tcp link between two processes of one user on one host moves
 * its bytes to shared memory by default.
 *
 * A plug-in, or a host that serves a transport, may fail a dial or a listener with any negative status, which is passed
 * on with its text. If a plug-in has to be loaded for an address, the statuses of muster_plugin_find() are possible,
 * too. */
#ifndef MUSTER_TRANSPORT_H
#define MUSTER_TRANSPORT_H

#include <muster/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Opaque; made by muster_transport_listen(). */
typedef struct muster_listener muster_listener;

/** How to dial or listen; all zero means the defaults named here. */
typedef struct muster_transport_config {
    uint32_t struct_size;      /**< sizeof(muster_transport_config) of the caller. */
    uint32_t flags;            /**< Zero. */
    const void *hello;         /**< Payload of the handshake: up to 4096 bytes that the other side receives with the
                                    connection, for instance to identify this side; copied. */
    uint64_t hello_bytes;      /**< Length of the payload. */
    uint64_t window_bytes;     /**< Maximum bytes buffered per direction, a power of two, 4 KiB to 1 GiB; 0: as for the
                                    context. Over shared memory and inproc the smaller value of both sides applies. */
    uint32_t backlog;          /**< Listeners: maximum number of connections that have proved the secret and wait to be
                                    accepted; 0: 1024. */
    uint32_t reserved;         /**< Zero. */
    int64_t retry_ns;          /**< How long to retry; 0: not at all. Dialling: while no process listens at the address.
                                    Listening: while the process that keeps the names, a broker, is not reachable. */
    int64_t listen_timeout_ns; /**< Listening, where the host serves the transport: maximum time until the host has
                                    answered. 0: 60 s, negative: no limit. Other transports do not use it. */
} muster_transport_config;

/** Connects to an address; returns when both sides have proved the secret.
 * @param[in]  context        Context of the stream.
 * @param[in]  address        Address to dial; text, no terminator needed.
 * @param[in]  address_bytes  Length of the text, at most 4096.
 * @param[in]  config         Options; copied. NULL means all defaults.
 * @param[in]  timeout_ns     Maximum wait, name lookup included, at least 1; -1: no limit.
 * @param[out] out_stream     The stream; the caller owns one reference.
 * @param[out] error          Detail on failure, or NULL.
 * @retval MUSTER_OK            Connected.
 * @retval MUSTER_TIMEOUT       The connection was not established in time; nothing remains, and the error is filled.
 * @retval MUSTER_E_ARG         A value is missing or out of range; the error names it.
 * @retval MUSTER_E_ABI         The config has newer non-zero fields, or the tables of a plug-in are incompatible
 *                              with this library.
 * @retval MUSTER_E_ADDRESS     The address cannot be parsed; the error says where.
 * @retval MUSTER_E_NOT_FOUND   There is no transport of that scheme.
 * @retval MUSTER_E_PLUGIN      The plug-in for that scheme cannot be loaded; the error names it and its package.
 * @retval MUSTER_E_UNREACHABLE No process answers at the address.
 * @retval MUSTER_E_PERMISSION  The system denies this to this user.
 * @retval MUSTER_E_AUTH        The two sides have different secrets.
 * @retval MUSTER_E_PROTOCOL    The other side does not use the protocol of Muster, or no common version of it.
 * @retval MUSTER_E_PEER        The connection broke during the handshake.
 * @retval MUSTER_E_LIMIT       No descriptor is left, or the other side accepts no more connections.
 * @retval MUSTER_E_UNSUPPORTED One side requires shared memory (shm), and the other cannot or does not share it.
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @retval MUSTER_E_SYSTEM      Another system call failed; see muster_error::os_errno.
 * @retval MUSTER_E_CLOSED      The context is closed.
 * @retval MUSTER_E_CANCELED    The context was closed during the call, or muster_context_cancel() was called.
 * @retval MUSTER_E_WOULD_DEADLOCK  The calling thread has to serve the transport, see serve.h.
 * @retval MUSTER_E_FORKED      The context belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns, and before that while a plug-in is loaded} @since 0.1 */
MUSTER_API muster_status muster_transport_dial(muster_context *context, const char *address, size_t address_bytes,
                                               const muster_transport_config *config, int64_t timeout_ns,
                                               muster_stream **out_stream, muster_error *error);

/** Begins to connect, as muster_transport_dial() does. ::MUSTER_DONE_DIAL has the stream, or the status and the detail
 * of the failure. The status ::MUSTER_TIMEOUT is positive: compare it with ::MUSTER_OK, or test the object.
 * muster_queue_cancel_operation() cancels it.
 * @param[in]  context        Context of the stream.
 * @param[in]  address        Address to dial; copied.
 * @param[in]  address_bytes  Length of the text, at most 4096.
 * @param[in]  config         Options; copied. NULL means all defaults.
 * @param[in]  timeout_ns     Maximum time, at least 1; -1: no limit.
 * @param[in]  queue          Queue of the same context for the completion.
 * @param[in]  tag            Returned in muster_completion::tag.
 * @param[out] error          Detail on failure, or NULL.
 * @begun{::MUSTER_DONE_DIAL}
 * @retval MUSTER_E_ARG       A value is missing or out of range; the error names it.
 * @retval MUSTER_E_ABI       The config has newer non-zero fields, or the tables of a plug-in are incompatible with
 *                            this library.
 * @retval MUSTER_E_ADDRESS   The address cannot be parsed; the error says where.
 * @retval MUSTER_E_NOT_FOUND There is no transport of that scheme.
 * @retval MUSTER_E_PLUGIN    The plug-in for that scheme cannot be loaded.
 * @retval MUSTER_E_NOMEM     Memory ran out.
 * @retval MUSTER_E_LIMIT     No descriptor is left.
 * @retval MUSTER_E_SYSTEM    The transports cannot be started.
 * @threads{any} @blocks{while a plug-in is loaded} @since 0.1 */
MUSTER_API muster_status muster_transport_dial_begin(muster_context *context, const char *address, size_t address_bytes,
                                                     const muster_transport_config *config, int64_t timeout_ns,
                                                     muster_queue *queue, uint64_t tag, muster_error *error);

/** Listens at an address: when the call returns ::MUSTER_OK, the listener is open, and muster_listener_address() gives
 * the address that peers dial. For a transport that the host serves (serve.h) the call waits until the host has
 * answered the request; what the host fails it with is the result of the call. On the thread that serves the transport
 * use muster_transport_listen_begin(). At unix:///folder/name a missing folder is made with mode 0700 (not those above
 * it) and remains when the socket is removed.
 * @param[in]  context        Context of its streams.
 * @param[in]  address        Address to listen at; text, no terminator needed.
 * @param[in]  address_bytes  Length of the text, at most 4096.
 * @param[in]  config         Options; copied. NULL means all defaults.
 * @param[out] out_listener   The listener; the caller owns one reference.
 * @param[out] error          Detail on failure, or NULL.
 * @retval MUSTER_OK            Listening.
 * @retval MUSTER_TIMEOUT       The host that serves the transport did not answer within
 *                              muster_transport_config::listen_timeout_ns. No listener is left, and the error is
 *                              filled.
 * @retval MUSTER_E_ARG         A value is missing or out of range; the error names it.
 * @retval MUSTER_E_ABI         The config has newer non-zero fields, or the tables of a plug-in are incompatible
 *                              with this library.
 * @retval MUSTER_E_ADDRESS     The address cannot be parsed; the error says where.
 * @retval MUSTER_E_NOT_FOUND   No transport of that scheme, or no such host or folder.
 * @retval MUSTER_E_PLUGIN      The plug-in for that scheme cannot be loaded.
 * @retval MUSTER_E_EXISTS      The address is in use.
 * @retval MUSTER_E_PERMISSION  The system denies this to this user, or other users can write to the socket's folder.
 * @retval MUSTER_E_LIMIT       No descriptor is left.
 * @retval MUSTER_E_UNSUPPORTED The transport is served by a host that cannot listen.
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @retval MUSTER_E_SYSTEM      Another system call failed; see muster_error::os_errno.
 * @retval MUSTER_E_CLOSED      The context is closed, or the host has withdrawn the transport during the call.
 * @retval MUSTER_E_CANCELED    muster_context_cancel() was called while the call waited for the host.
 * @retval MUSTER_E_WOULD_DEADLOCK  The calling thread has to serve the transport; see serve.h.
 * @retval MUSTER_E_UNREACHABLE The process that keeps the names of this transport, a broker, does not answer.
 * @retval MUSTER_E_AUTH        That process has another secret, or the proof was interrupted.
 * @retval MUSTER_E_PEER        The connection to that process broke.
 * @retval MUSTER_E_FORKED      The context belongs to the parent process.
 * @threads{any} @blocks{for a name lookup if bind or host is a name or a wildcard, while a plug-in is loaded and until
 * the plug-in has answered, up to 100 ms for the lock of a unix socket's folder, up to listen_timeout_ns for the answer
 * of a host that serves the transport} @since 0.1 */
MUSTER_API muster_status muster_transport_listen(muster_context *context, const char *address, size_t address_bytes,
                                                 const muster_transport_config *config, muster_listener **out_listener,
                                                 muster_error *error);

/** Begins to listen, as muster_transport_listen() does. ::MUSTER_DONE_LISTEN notifies that the listener is open, with
 * the listener in muster_completion::object, or that it could not be opened, with the status and the error that
 * muster_transport_listen() would have returned. muster_queue_cancel_operation() cancels it; the request to a host that
 * serves the transport is cancelled then, too.
 * @param[in]  context        Context of its streams.
 * @param[in]  address        Address to listen at; copied.
 * @param[in]  address_bytes  Length of the text, at most 4096.
 * @param[in]  config         Options; copied. NULL means all defaults.
 * @param[in]  queue          Queue of the same context for the completion.
 * @param[in]  tag            Returned in muster_completion::tag.
 * @param[out] error          Detail on failure, or NULL.
 * @begun{::MUSTER_DONE_LISTEN}
 * @retval MUSTER_E_ARG       A value is missing or out of range; the error names it.
 * @retval MUSTER_E_ABI       The config has newer non-zero fields.
 * @retval MUSTER_E_ADDRESS   The address cannot be parsed; the error says where.
 * @retval MUSTER_E_NOMEM     Memory or threads ran out.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_transport_listen_begin(muster_context *context, const char *address,
                                                       size_t address_bytes, const muster_transport_config *config,
                                                       muster_queue *queue, uint64_t tag, muster_error *error);

/** Accepts the next connection that has proved the secret. A host-served listener that failed returns the status of the
 * host.
 * @param[in]  listener    Listener to query.
 * @param[in]  timeout_ns  Maximum wait; 0 checks once, -1: no limit.
 * @param[out] out_stream  The stream; the caller owns one reference.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK         Accepted.
 * @retval MUSTER_AGAIN      No connection waits, and the timeout was 0; a watch is armed again.
 * @retval MUSTER_TIMEOUT    No connection arrived in time.
 * @retval MUSTER_E_ARG      No listener or no destination.
 * @retval MUSTER_E_CLOSED   The listener is closed, or was released during the call.
 * @retval MUSTER_E_CANCELED muster_listener_cancel() was called while this call waited.
 * @retval MUSTER_E_WOULD_DEADLOCK  The calling thread has to serve the transport.
 * @retval MUSTER_E_FORKED   The listener belongs to the parent process.
 * @threads{any; each connection goes to one caller} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_listener_accept(muster_listener *listener, int64_t timeout_ns,
                                                muster_stream **out_stream, muster_error *error);

/** Watches a listener: ::MUSTER_EVENT_READY with ::MUSTER_STREAM_READABLE appears when a connection can be accepted. It
 * is armed when the watch is set and again whenever accept returns ::MUSTER_AGAIN.
 * @param[in] listener  Listener to watch.
 * @param[in] queue     Queue of the same context; NULL stops the watch.
 * @param[in] tag       Returned in muster_completion::tag.
 * @retval MUSTER_OK       Watched.
 * @retval MUSTER_E_ARG    No listener, or a queue of another context.
 * @retval MUSTER_E_CLOSED The listener or the queue is closed.
 * @retval MUSTER_E_FORKED The listener belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_listener_watch(muster_listener *listener, muster_queue *queue, uint64_t tag);

/** Copies the address by which peers dial this listener: with the actual port, with the advertised host (for a
 * wildcard, a name or number by which other hosts reach this one), and with the options that both sides have to
 * specify, `auth=none` and `seal=no`, where the listener has them. A process that has the same secret connects with
 * this text as it is; addresses of `shm`, `unix` and `inproc` are valid on this host or in this context only. Settings
 * of the context
 * (::MUSTER_CONTEXT_NO_SEAL) are not included.
 * @param[in]  listener    Listener to query.
 * @param[out] out_text    Destination of the text, NUL-terminated; NULL to get the size only.
 * @param[in]  capacity    Size of the destination, the terminator included.
 * @param[out] out_bytes   Length of the text, without the terminator.
 * @copied
 * @retval MUSTER_E_ARG    No listener, or no destination for the length.
 * @retval MUSTER_E_NOMEM  Memory ran out.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_listener_address(muster_listener *listener, char *out_text, size_t capacity,
                                                 size_t *out_bytes);

/** Cancels the current waits in muster_listener_accept().
 * @param[in] listener  Listener whose waiters return ::MUSTER_E_CANCELED.
 * @retval MUSTER_OK       Cancelled; also if no thread waited.
 * @retval MUSTER_E_ARG    No listener.
 * @retval MUSTER_E_FORKED The listener belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_listener_cancel(muster_listener *listener);

/** Stops listening: connections that were not accepted are refused, and the socket file is removed.
 * @param[in] listener  Listener to close; the caller keeps its reference.
 * @retval MUSTER_OK       Closed: a new listener may take the address.
 * @retval MUSTER_E_ARG    No listener.
 * @retval MUSTER_E_FORKED The listener belongs to the parent process.
 * @threads{any} @blocks{until the engine has released the socket} @since 0.1 */
MUSTER_API muster_status muster_listener_close(muster_listener *listener);

/** Begins to stop listening, as muster_listener_close() does; ::MUSTER_DONE_CALL follows when a new listener may take
 * the address.
 * @param[in]  listener    Listener to close; the caller keeps its reference.
 * @param[in]  queue       Queue of the same context for the completion.
 * @param[in]  tag         Returned in muster_completion::tag.
 * @param[out] error       Detail on failure, or NULL.
 * @begun{::MUSTER_DONE_CALL}
 * @retval MUSTER_E_ARG     A value is missing or out of range, or the queue is of another context.
 * @retval MUSTER_E_NOMEM   Memory or threads ran out.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_listener_close_begin(muster_listener *listener, muster_queue *queue, uint64_t tag,
                                                     muster_error *error);

/** Releases the handle; the listener closes, and threads that wait in muster_listener_accept() return
 * ::MUSTER_E_CLOSED.
 * @param[in] listener  What to release; NULL has no effect.
 * @threads{any, finalizers included} @blocks{no} @since 0.1 */
MUSTER_API void muster_listener_release(muster_listener *listener);

/** Copies the handshake payload (muster_transport_config::hello) of the other side.
 * @param[in]  stream      A stream from dial or accept.
 * @param[out] out_data    Destination of the bytes; NULL to get the size only.
 * @param[in]  capacity    Size of the destination.
 * @param[out] out_bytes   Length of the payload; 0 if there was none.
 * @copied
 * @retval MUSTER_E_ARG    No stream, or no destination for the length.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_transport_hello(muster_stream *stream, void *out_data, size_t capacity,
                                                size_t *out_bytes);

#ifdef __cplusplus
}
#endif
#endif
