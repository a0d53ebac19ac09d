/* SPDX-License-Identifier: MIT */
/** @file
 * Sockets for messages: dealers and routers over any transport.
 *
 * A *router* sends each message to the peer whose address is the destination of the message. A *dealer* sends its
 * messages to its connected peers in turn. Both receive from all of their peers. Either kind can bind addresses of
 * transports and connect to them, several of each; a lost connection is made again. A router is usually bound, and
 * dealers connect to it. The design follows Dealer and Router of Apache SINGA and of ZeroMQ.
 *
 * Each socket has an address of 64 bits (see muster_message_address()) and an incarnation, a random number that differs
 * each time it is created. Peers exchange both when they connect. A peer that connects with the address of a connected
 * peer and another incarnation is that peer, restarted: its connection replaces the earlier connection, which is
 * closed. A router also learns the source of each received message, so it can answer to addresses behind a peer.
 *
 * Nothing is dropped silently. A message is in the socket until its last byte was written to the stream of a
 * connection; messages of a lost connection that had not left are returned through the queue of the socket, and the
 * event of the loss has their number; a dealer sends them to another peer instead, where younger ones may have arrived
 * before. A message that had left may be lost with its peer: a protocol that has to exclude that is built of requests
 * and answers.
 *
 * Queued messages are limited in number and in bytes, per peer. At most 64 KiB of a peer are read ahead of the host: a
 * peer whose messages are not received is slowed down by its stream. */
#ifndef MUSTER_SOCKET_H
#define MUSTER_SOCKET_H

#include <muster/message.h>
#include <muster/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Opaque; made by muster_socket_create(). */
typedef struct muster_socket muster_socket;

/** The kind of a socket. */
enum muster_socket_kind {
    MUSTER_SOCKET_DEALER = 1, /**< Sends to its peers in turn. */
    MUSTER_SOCKET_ROUTER = 2  /**< Sends to the peer with the destination's address. */
};

/** Flags of a socket. */
enum muster_socket_flag {
    MUSTER_SOCKET_LOANS = 1 /**< The socket loans frames: muster_socket_loan_frame() can be used. Needs a descriptor for
                                 each buffer. Every socket can receive loaned frames. */
};

/** Readiness of a socket; bits of muster_completion::events of ::MUSTER_EVENT_READY. */
enum muster_socket_ready {
    MUSTER_SOCKET_RECEIVABLE = 1, /**< A message can perhaps be received without waiting. */
    MUSTER_SOCKET_SENDABLE = 2,   /**< A full queue of messages has room again, or a peer has connected. */
    MUSTER_SOCKET_EVENT = 4       /**< muster_socket_next_event() has an event. */
};

/** How to make a socket. */
typedef struct muster_socket_config {
    uint32_t struct_size;         /**< sizeof(muster_socket_config) of the caller. */
    uint32_t flags;               /**< ::muster_socket_flag values, or'ed. */
    uint32_t kind;                /**< A ::muster_socket_kind value. */
    uint32_t max_peers;           /**< Maximum number of connected peers, at most 2^20; 0: 65536. */
    uint64_t address;             /**< Address of the socket, without wildcards. 0: a random one. */
    uint64_t max_message_bytes;   /**< Maximum size of the frames of a message, sent or received; 0: 1 GiB. A peer that
                                       sends a larger message is disconnected. */
    uint64_t max_queued_bytes;    /**< Maximum size of the messages that wait for one peer; 0: 64 MiB. A message larger
                                       than that is accepted when no other waits. */
    uint32_t max_queued_messages; /**< Maximum number of messages that wait for one peer; 0: 65536. */
    uint32_t max_unrouted_messages; /**< Maximum number of messages that wait for peers that have not connected yet,
                                         all together; 0: 1024. They also have at most max_queued_bytes together. */
    muster_queue *queue;            /**< Queue of the same context: readiness, and messages that could not be delivered.
                                         NULL: no readiness, and undelivered messages are only counted. */
    uint64_t tag;                   /**< muster_completion::tag of these entries. */
    uint64_t max_loaned_bytes;      /**< With ::MUSTER_SOCKET_LOANS: maximum memory for loaned frames, all together; 0:
                                         256 MiB. */
} muster_socket_config;

/** The kind of an event. */
enum muster_socket_event_kind {
    MUSTER_SOCKET_CONNECTED = 1, /**< A peer has connected. */
    MUSTER_SOCKET_LOST = 2,      /**< The connection to a peer has ended; the text says why. */
    MUSTER_SOCKET_REPLACED = 3,  /**< A connection was closed because the peer with its address has connected again. */
    MUSTER_SOCKET_REFUSED = 4    /**< A connection attempt failed, or a peer was refused; the text says why. */
};

/** What has happened to a peer. */
typedef struct muster_socket_event {
    uint32_t kind;        /**< A ::muster_socket_event_kind value. */
    uint32_t text_bytes;  /**< Length of the text. */
    uint64_t address;     /**< Address of the peer; 0 if it is not known. */
    uint64_t incarnation; /**< Incarnation of the peer. */
    uint64_t undelivered; /**< LOST, REPLACED: number of messages to this peer that had not left and were returned. */
    char text[256];       /**< Reason, NUL-terminated; empty if there is none. */
} muster_socket_event;

/** Counters of a socket since it was created. */
typedef struct muster_socket_stats {
    uint64_t peers;            /**< Peers that are connected now. */
    uint64_t messages_in;      /**< Messages received by the host. */
    uint64_t messages_out;     /**< Messages whose last byte was written to a stream. */
    uint64_t bytes_in;         /**< Bytes of their frames. */
    uint64_t bytes_out;        /**< Bytes of their frames. */
    uint64_t queued_messages;  /**< Messages that wait to be written now, for all peers. */
    uint64_t queued_bytes;     /**< Their bytes. */
    uint64_t undelivered;      /**< Messages that were returned. */
    uint64_t connections_made; /**< Connections since the start. */
    uint64_t connections_lost; /**< Connections that have ended. */
    uint64_t malformed;        /**< Connections that were closed because of what the peer sent. */
    uint64_t full;             /**< Sends that found the queue of the peer full. */
    uint64_t reserved[4];      /**< Zero. */
} muster_socket_stats;

/** Makes a socket.
 * @param[in]  context     Context of its streams; the socket keeps it alive.
 * @param[in]  config      Kind and options; copied.
 * @param[out] out_socket  The socket; the caller owns one reference.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK        Made.
 * @bad_config
 * @retval MUSTER_E_NOMEM   Memory ran out.
 * @retval MUSTER_E_LIMIT   No descriptor is left.
 * @retval MUSTER_E_SYSTEM  The transports cannot be started.
 * @retval MUSTER_E_CLOSED  The context or the queue is closed.
 * @retval MUSTER_E_FORKED  The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_socket_create(muster_context *context, const muster_socket_config *config,
                                              muster_socket **out_socket, muster_error *error);

/** Returns the address of a socket.
 * @param[in] socket  Socket to query.
 * @return The address; 0 if there is no socket.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API uint64_t muster_socket_address(const muster_socket *socket);

/** Listens at an address of a transport, and accepts peers there until the socket is closed.
 * @param[in]  socket         Socket.
 * @param[in]  address        Address to listen at; see transport.h.
 * @param[in]  address_bytes  Length of the text, at most 4096.
 * @param[out] out_text       The address that peers connect to, NUL-terminated; or NULL.
 * @param[in]  capacity       Size of out_text.
 * @param[out] error          Detail on failure, or NULL.
 * @retval MUSTER_OK            Bound.
 * @retval MUSTER_TIMEOUT       The host that serves the transport did not answer in time.
 * @retval MUSTER_E_ARG         No socket or no address.
 * @retval MUSTER_E_ABI         The tables of a plug-in are incompatible with this library.
 * @retval MUSTER_E_ADDRESS     The address cannot be parsed; the error says where.
 * @retval MUSTER_E_NOT_FOUND   No transport of that scheme, or no such host or folder.
 * @retval MUSTER_E_PLUGIN      The plug-in for that scheme cannot be loaded.
 * @retval MUSTER_E_EXISTS      The address is in use.
 * @retval MUSTER_E_PERMISSION  The system denies this to this user.
 * @retval MUSTER_E_LIMIT       out_text is too small, or no descriptor is left; it is not bound.
 * @retval MUSTER_E_UNSUPPORTED The transport is served by a host that cannot listen.
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @retval MUSTER_E_SYSTEM      Another system call failed; see muster_error::os_errno.
 * @retval MUSTER_E_CLOSED      The socket or its context is closed.
 * @retval MUSTER_E_CANCELED    muster_context_cancel() was called during the call.
 * @retval MUSTER_E_WOULD_DEADLOCK  The calling thread has to serve the transport.
 * @retval MUSTER_E_UNREACHABLE The process that keeps the names of this transport, a broker, does not answer.
 * @retval MUSTER_E_AUTH        That process has another secret.
 * @retval MUSTER_E_PEER        The connection to that process broke.
 * @retval MUSTER_E_FORKED      The socket belongs to the parent process.
 * @threads{any} @blocks{as muster_transport_listen()} @since 0.1 */
MUSTER_API muster_status muster_socket_bind(muster_socket *socket, const char *address, size_t address_bytes,
                                            char *out_text, size_t capacity, muster_error *error);

/** Begins to connect to an address of a transport. The connection is attempted, and made again when it is lost, until
 * the socket is closed; ::MUSTER_SOCKET_CONNECTED reports each success. Messages that were sent before wait for it.
 * @param[in]  socket         Socket.
 * @param[in]  address        Address to dial; see transport.h.
 * @param[in]  address_bytes  Length of the text, at most 4096.
 * @param[out] error          Detail on failure, or NULL.
 * @retval MUSTER_OK            Begun.
 * @retval MUSTER_E_ARG         No socket or no address.
 * @retval MUSTER_E_ADDRESS     The address cannot be parsed; the error says where.
 * @retval MUSTER_E_NOT_FOUND   There is no transport of that scheme.
 * @retval MUSTER_E_PLUGIN      The plug-in for that scheme cannot be loaded.
 * @retval MUSTER_E_ABI         The tables of a plug-in are incompatible with this library.
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @retval MUSTER_E_LIMIT       No descriptor is left.
 * @retval MUSTER_E_SYSTEM      The transports cannot be started.
 * @retval MUSTER_E_CLOSED      The socket is closed.
 * @retval MUSTER_E_FORKED      The socket belongs to the parent process.
 * @threads{any} @blocks{while a plug-in is loaded} @since 0.1 */
MUSTER_API muster_status muster_socket_connect(muster_socket *socket, const char *address, size_t address_bytes,
                                               muster_error *error);

/** Waits until a number of peers are connected.
 * @param[in]  socket      Socket.
 * @param[in]  count       Wanted number.
 * @param[in]  timeout_ns  Maximum wait; 0 checks once, -1: no limit.
 * @param[out] out_count   Number of connected peers, always set; or NULL.
 * @retval MUSTER_OK         At least that many are connected.
 * @retval MUSTER_AGAIN      Fewer are, and the timeout was 0.
 * @retval MUSTER_TIMEOUT    Fewer are.
 * @retval MUSTER_E_ARG      No socket.
 * @retval MUSTER_E_CLOSED   The socket or its context is closed.
 * @retval MUSTER_E_CANCELED muster_socket_cancel() was called meanwhile.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called inside a callback of the engine, with a timeout.
 * @retval MUSTER_E_FORKED   The socket belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_socket_wait_peers(muster_socket *socket, uint32_t count, int64_t timeout_ns,
                                                  uint32_t *out_count);

/** Sends a message. On ::MUSTER_OK the message belongs to the socket; otherwise it remains the caller's, unchanged
 * except for a source that was 0. A dealer sends to the next peer that has room. If no peer is connected yet, or, for a
 * router, no peer with this destination has ever connected, the message waits for one, up to the limits of the config.
 * @param[in]  socket      Socket.
 * @param[in]  message     Message to send.
 * @param[in]  timeout_ns  Maximum wait for room in the queue of the peer; 0 tries once, -1: no limit.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK            Accepted.
 * @retval MUSTER_AGAIN         The queue of messages is full, and the timeout was 0; ::MUSTER_SOCKET_SENDABLE follows.
 *                              Or, with any timeout, the queue of the config has no free slot for the return of the
 *                              message.
 * @retval MUSTER_TIMEOUT       There was no room in time.
 * @retval MUSTER_E_ARG         No socket or no message; or a router, and the destination is 0.
 * @retval MUSTER_E_LIMIT       The message is larger than max_message_bytes.
 * @retval MUSTER_E_UNSUPPORTED A format frame has a pointer.
 * @retval MUSTER_E_PEER        A router: the peer was connected, and is lost.
 * @retval MUSTER_E_NOT_FOUND   A router: no peer has this address, and as many messages as allowed wait already.
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @retval MUSTER_E_CLOSED      The socket or its context is closed.
 * @retval MUSTER_E_CANCELED    muster_socket_cancel() was called meanwhile.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called inside a callback of the engine, and there is no room.
 * @retval MUSTER_E_FORKED      The socket belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_socket_send(muster_socket *socket, muster_message *message, int64_t timeout_ns,
                                            muster_error *error);

/** Adds a frame to a message in shared memory: peers on this host read it in place, without a copy, so that the time to
 * send it does not depend on its size. To other peers its bytes are copied, as those of any frame. The caller fills the
 * frame before it sends the message, and does not change it afterwards.
 *
 * Up to four such frames of a message are read in place; further ones are copied.
 *
 * There are at most 64 such frames at a time, with at most max_loaned_bytes together, each rounded up to a power of two
 * of at least 64 KiB. The memory is used again when the message, its copies and the messages of the receivers are
 * released; that of a receiver whose connection ended is given up.
 *
 * A peer on this host that can use the memory is of the same user and sees this process in `/proc`. A process that
 * has the secret could change the memory of such a frame while it is read: check its content after copying it where
 * that matters.
 * @param[in]  socket    Socket that will send the message, made with ::MUSTER_SOCKET_LOANS.
 * @param[in]  message   Message to change.
 * @param[in]  bytes     Size of the frame, above 0.
 * @param[out] out_data  Where to write its bytes, aligned to a page; valid until the message is sent or released. NULL
 *                       unless the result is ::MUSTER_OK.
 * @param[out] error     Detail on failure, or NULL.
 * @retval MUSTER_OK            Added.
 * @retval MUSTER_AGAIN         All of the memory is in use: release received messages, or add an ordinary frame.
 * @retval MUSTER_E_ARG         No socket, no message, no destination, or a size of 0.
 * @retval MUSTER_E_LIMIT       The message has too many frames, or the size is above max_loaned_bytes or
 *                              max_message_bytes.
 * @retval MUSTER_E_UNSUPPORTED The socket was made without ::MUSTER_SOCKET_LOANS.
 * @retval MUSTER_E_NOMEM       Memory or descriptors ran out.
 * @retval MUSTER_E_FORKED      The socket belongs to the parent process.
 * @threads{any; one at a time for each message} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_socket_loan_frame(muster_socket *socket, muster_message *message, size_t bytes,
                                                  void **out_data, muster_error *error);

/** Receives the next message of any peer. The messages of one peer arrive in the order in which one thread sent them.
 * @param[in]  socket       Socket.
 * @param[in]  timeout_ns   Maximum wait; 0 checks once, -1: no limit.
 * @param[out] out_message  The message; it belongs to the caller.
 * @retval MUSTER_OK         Received.
 * @retval MUSTER_AGAIN      There is none, and the timeout was 0; ::MUSTER_SOCKET_RECEIVABLE follows.
 * @retval MUSTER_TIMEOUT    None arrived in time.
 * @retval MUSTER_E_ARG      No socket or no destination.
 * @retval MUSTER_E_NOMEM    Memory ran out.
 * @retval MUSTER_E_CLOSED   The socket or its context is closed, and every message that had arrived was received.
 * @retval MUSTER_E_CANCELED muster_socket_cancel() was called meanwhile.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called inside a callback of the engine, with a timeout.
 * @retval MUSTER_E_FORKED   The socket belongs to the parent process.
 * @threads{any; each message goes to one caller} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_socket_receive(muster_socket *socket, int64_t timeout_ns, muster_message **out_message);

/** Takes the next event of the peers. At most 1024 wait; the oldest ones are dropped after that.
 * @param[in]  socket      Socket.
 * @param[in]  timeout_ns  Maximum wait; 0 checks once, -1: no limit.
 * @param[out] out_event   Filled on ::MUSTER_OK.
 * @retval MUSTER_OK         An event was taken.
 * @retval MUSTER_AGAIN      There is none, and the timeout was 0; ::MUSTER_SOCKET_EVENT follows.
 * @retval MUSTER_TIMEOUT    None appeared in time.
 * @retval MUSTER_E_ARG      No socket or no destination.
 * @retval MUSTER_E_CLOSED   The socket or its context is closed, and all events were taken.
 * @retval MUSTER_E_CANCELED muster_socket_cancel() was called meanwhile.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called inside a callback of the engine, with a timeout.
 * @retval MUSTER_E_FORKED   The socket belongs to the parent process.
 * @threads{any; each event goes to one caller} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_socket_next_event(muster_socket *socket, int64_t timeout_ns,
                                                  muster_socket_event *out_event);

/** Returns the counters of a socket.
 * @param[in]  socket     Socket to query.
 * @param[out] out_stats  The counters.
 * @filled
 * @retval MUSTER_E_ARG  No socket or no destination.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_socket_get_stats(muster_socket *socket, muster_socket_stats *out_stats);

/** Ends the calls that wait on a socket now: they return ::MUSTER_E_CANCELED.
 * @param[in] socket  Socket.
 * @retval MUSTER_OK       Done, also if no thread waited.
 * @retval MUSTER_E_ARG    No socket.
 * @retval MUSTER_E_FORKED The socket belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_socket_cancel(muster_socket *socket);

/** Closes a socket: waits until the queued messages have been read by the peers or the time has passed, and ends all
 * connections. Messages that could not be delivered are returned through the queue of the config.
 * @param[in] socket      Socket.
 * @param[in] timeout_ns  Maximum wait; 0 does not wait, -1: no limit.
 * @retval MUSTER_OK         Closed; everything was delivered.
 * @retval MUSTER_TIMEOUT    Closed; some messages were not delivered.
 * @retval MUSTER_E_PEER     Closed; some messages were not delivered, because their peers are not connected.
 * @retval MUSTER_E_WOULD_DEADLOCK  Closed; called inside a callback of the engine, where nothing can be waited for.
 * @retval MUSTER_E_ARG      No socket.
 * @retval MUSTER_E_CLOSED   It is closed already.
 * @retval MUSTER_E_FORKED   The socket belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_socket_close(muster_socket *socket, int64_t timeout_ns);

/** Releases the handle of a socket, which is closed without waiting if it is open. Calls in other threads return
 * ::MUSTER_E_CLOSED.
 * @param[in] socket  Socket, or NULL.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API void muster_socket_release(muster_socket *socket);

#ifdef __cplusplus
}
#endif
#endif
