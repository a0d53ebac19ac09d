/* SPDX-License-Identifier: MIT */
/** @file
 * The forwarder: one per process, between the threads of the process and other processes.
 *
 * Dealers of the threads connect to it over `inproc`, and it connects to other processes over their transports, or
 * listens for them. It forwards each message by its destination, on the engine's thread; no thread of the host takes
 * part. Messages for the forwarder itself, and those of chosen types, are handed to the host in message queues
 * (message_queue.h): there the host aggregates many messages of its threads into one, and sends that. The design
 * follows the stub of Apache SINGA.
 *
 * The next hop of a message is, in this order: the route with exactly its destination; a connected peer with that
 * address, or behind which that address was seen as a source; the first route whose pattern matches; otherwise the
 * message waits for a peer with that address, up to the limit.
 *
 * A message that cannot be forwarded is returned through the queue of the config as ::MUSTER_DONE_MESSAGE, with
 * ::MUSTER_E_LIMIT if it has passed as many forwarders as allowed, ::MUSTER_E_PEER if its next hop was lost,
 * ::MUSTER_E_NOT_FOUND if too many messages wait for peers already or nothing takes messages for the forwarder, and
 * ::MUSTER_E_CLOSED at the end. If a next hop accepts no more, at most `max_waiting` messages wait in the forwarder;
 * then it receives no more until there is room, so its senders are slowed down by their own queues. */
#ifndef MUSTER_FORWARDER_H
#define MUSTER_FORWARDER_H

#include <muster/message_queue.h>
#include <muster/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Opaque; made by muster_forwarder_create(). */
typedef struct muster_forwarder muster_forwarder;

/** How to make a forwarder. */
typedef struct muster_forwarder_config {
    uint32_t struct_size;           /**< sizeof(muster_forwarder_config) of the caller. */
    uint32_t flags;                 /**< Zero. */
    uint64_t address;               /**< Address of the forwarder, without wildcards. 0: a random one. */
    uint32_t max_hops;              /**< Maximum number of forwarders that a message passes, this one included, at most
                                         255; 0: 16. */
    uint32_t max_peers;             /**< As in muster_socket_config. */
    uint64_t max_message_bytes;     /**< As in muster_socket_config. */
    uint64_t max_queued_bytes;      /**< As in muster_socket_config. */
    uint32_t max_queued_messages;   /**< As in muster_socket_config. */
    uint32_t max_unrouted_messages; /**< As in muster_socket_config. */
    uint32_t max_waiting;           /**< Maximum number of messages that wait in the forwarder for room at their next
                                         hop, at most 2^20; 0: 1024. */
    uint32_t reserved;              /**< Zero. */
    muster_message_queue *inbox;    /**< Takes the messages for the address of the forwarder, and for destination 0; the
                                         forwarder keeps it alive. NULL: there are none. */
    muster_queue *queue;            /**< Queue of the same context: messages that are returned, and
                                         ::MUSTER_SOCKET_EVENT in ::MUSTER_EVENT_READY. NULL: they are only counted. */
    uint64_t tag;                   /**< muster_completion::tag of these entries. */
} muster_forwarder_config;

/** Counters of a forwarder since it was created. */
typedef struct muster_forwarder_stats {
    uint64_t peers;       /**< Peers that are connected now. */
    uint64_t forwarded;   /**< Messages that were passed to their next hop. */
    uint64_t delivered;   /**< Messages that were handed to the host. */
    uint64_t undelivered; /**< Messages that were returned, or could not be because the queue had no slot. */
    uint64_t hop_limit;   /**< Those of them that had passed as many forwarders as allowed. */
    uint64_t waiting;     /**< Messages that wait in the forwarder now. */
    uint64_t reserved[4]; /**< Zero. */
} muster_forwarder_stats;

/** Makes a forwarder.
 * @param[in]  context        Context of its streams; the forwarder keeps it alive.
 * @param[in]  config         Options; copied. NULL: all defaults.
 * @param[out] out_forwarder  The forwarder; the caller owns one reference.
 * @param[out] error          Detail on failure, or NULL.
 * @retval MUSTER_OK        Made.
 * @bad_config
 * @retval MUSTER_E_NOMEM   Memory ran out.
 * @retval MUSTER_E_LIMIT   No descriptor is left.
 * @retval MUSTER_E_SYSTEM  The transports cannot be started.
 * @retval MUSTER_E_CLOSED  The context or the queue is closed.
 * @retval MUSTER_E_FORKED  The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_forwarder_create(muster_context *context, const muster_forwarder_config *config,
                                                 muster_forwarder **out_forwarder, muster_error *error);

/** Returns the socket of a forwarder: a router, for muster_socket_bind(), muster_socket_connect(),
 * muster_socket_wait_peers(), muster_socket_address(), muster_socket_next_event() and muster_socket_get_stats(). The
 * forwarder alone receives from it.
 * @param[in] forwarder  Forwarder.
 * @return The socket, which belongs to the forwarder and is not to be closed or released; NULL if there is no
 * forwarder.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_socket *muster_forwarder_socket(muster_forwarder *forwarder);

/** Adds a route to the address table, or changes the next hop of the route with the same pattern.
 * @param[in] forwarder  Forwarder.
 * @param[in] pattern    Destinations; fields may be ::MUSTER_MESSAGE_ANY, see muster_message_address_matches().
 *                       Patterns with wildcards are tried in the order in which they were added.
 * @param[in] next_hop   Address of a peer, connected or not yet.
 * @retval MUSTER_OK       Added or changed.
 * @retval MUSTER_E_ARG    No forwarder, or the pattern or the next hop is 0.
 * @retval MUSTER_E_LIMIT  The table has 65536 routes.
 * @retval MUSTER_E_NOMEM  Memory ran out.
 * @retval MUSTER_E_FORKED The forwarder belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_forwarder_add_route(muster_forwarder *forwarder, uint64_t pattern, uint64_t next_hop);

/** Removes a route.
 * @param[in] forwarder  Forwarder.
 * @param[in] pattern    The pattern with which it was added.
 * @retval MUSTER_OK          Removed.
 * @retval MUSTER_E_ARG       No forwarder.
 * @retval MUSTER_E_NOT_FOUND There is no such route.
 * @retval MUSTER_E_FORKED    The forwarder belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_forwarder_remove_route(muster_forwarder *forwarder, uint64_t pattern);

/** Hands messages of a type to the host instead of forwarding them: the hook for aggregation. Those that the host sends
 * by muster_forwarder_send() are forwarded in any case.
 * @param[in] forwarder  Forwarder.
 * @param[in] type       Type of the messages; see ::muster_message_type.
 * @param[in] into       Message queue of the same context that takes them; the forwarder keeps it alive. NULL: they are
 *                       forwarded again. While it is full they wait in the forwarder.
 * @retval MUSTER_OK       Done.
 * @retval MUSTER_E_ARG    No forwarder, or the message queue belongs to another context.
 * @retval MUSTER_E_LIMIT  1024 types have a hook.
 * @retval MUSTER_E_NOMEM  Memory ran out.
 * @retval MUSTER_E_FORKED The forwarder belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_forwarder_set_hook(muster_forwarder *forwarder, uint32_t type,
                                                   muster_message_queue *into);

/** Sends a message of the host to its next hop. On ::MUSTER_OK the message belongs to the forwarder; otherwise it
 * remains the caller's, unchanged except for a source that was 0.
 * @param[in]  forwarder   Forwarder.
 * @param[in]  message     Message to send, with a destination.
 * @param[in]  timeout_ns  Maximum wait for room in the queue of the next hop; 0 tries once, -1: no limit.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK            Accepted.
 * @retval MUSTER_AGAIN         The queue of messages is full, and the timeout was 0.
 * @retval MUSTER_TIMEOUT       There was no room in time.
 * @retval MUSTER_E_ARG         No forwarder, no message or no destination.
 * @retval MUSTER_E_LIMIT       The message is larger than max_message_bytes.
 * @retval MUSTER_E_UNSUPPORTED A format frame has a pointer.
 * @retval MUSTER_E_PEER        The next hop was connected, and is lost.
 * @retval MUSTER_E_NOT_FOUND   There is no next hop, and as many messages as allowed wait already.
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @retval MUSTER_E_CLOSED      The forwarder or its context is closed.
 * @retval MUSTER_E_CANCELED    muster_socket_cancel() was called meanwhile.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called inside a callback of the engine, and there is no room.
 * @retval MUSTER_E_FORKED      The forwarder belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_forwarder_send(muster_forwarder *forwarder, muster_message *message, int64_t timeout_ns,
                                               muster_error *error);

/** Returns the counters of a forwarder.
 * @param[in]  forwarder  Forwarder.
 * @param[out] out_stats  The counters.
 * @filled
 * @retval MUSTER_E_ARG  No forwarder or no destination.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_forwarder_get_stats(muster_forwarder *forwarder, muster_forwarder_stats *out_stats);

/** Closes a forwarder: waits until the messages that it has were read by their next hops or the time has passed, and
 * ends all connections. The rest is returned. It receives nothing any more when this is called.
 * @param[in] forwarder   Forwarder.
 * @param[in] timeout_ns  Maximum wait; 0 does not wait, -1: no limit.
 * @retval MUSTER_OK         Closed; everything was delivered.
 * @retval MUSTER_TIMEOUT    Closed; some messages were not delivered.
 * @retval MUSTER_E_PEER     Closed; some messages were not delivered, because their peers are not connected.
 * @retval MUSTER_E_WOULD_DEADLOCK  Closed; called inside a callback of the engine, where nothing can be waited for.
 * @retval MUSTER_E_ARG      No forwarder.
 * @retval MUSTER_E_CLOSED   It is closed already.
 * @retval MUSTER_E_FORKED   The forwarder belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_forwarder_close(muster_forwarder *forwarder, int64_t timeout_ns);

/** Releases the handle of a forwarder, which is closed without waiting if it is open.
 * @param[in] forwarder  Forwarder, or NULL.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API void muster_forwarder_release(muster_forwarder *forwarder);

#ifdef __cplusplus
}
#endif
#endif
