/* SPDX-License-Identifier: MIT */
/** @file
 * A bounded queue of messages, for many producers and consumers in one process.
 *
 * Threads hand messages to each other through it without a connection. It is limited in messages and in bytes: a full
 * queue answers ::MUSTER_AGAIN, or the push waits. A forwarder (forwarder.h) delivers messages into such queues. */
#ifndef MUSTER_MESSAGE_QUEUE_H
#define MUSTER_MESSAGE_QUEUE_H

#include <muster/message.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Opaque; made by muster_message_queue_create(). */
typedef struct muster_message_queue muster_message_queue;

/** Readiness of a message queue; bits of muster_completion::events of ::MUSTER_EVENT_READY. */
enum muster_message_queue_ready {
    MUSTER_MESSAGE_QUEUE_FILLED = 1,  /**< A message can be popped. */
    MUSTER_MESSAGE_QUEUE_HAS_ROOM = 2 /**< The queue was full, and has room again. */
};

/** How to make a message queue. */
typedef struct muster_message_queue_config {
    uint32_t struct_size;  /**< sizeof(muster_message_queue_config) of the caller. */
    uint32_t flags;        /**< Zero. */
    uint32_t max_messages; /**< Maximum number of messages; 0: 65536. */
    uint32_t reserved;     /**< Zero. */
    uint64_t max_bytes;    /**< Maximum size of their frames, all together; 0: 64 MiB. A message larger than that is
                                accepted by an empty queue. */
    muster_queue *queue;   /**< Completion queue of the same context, for readiness; or NULL. */
    uint64_t tag;          /**< muster_completion::tag of these entries. */
} muster_message_queue_config;

/** Counters of a message queue since it was created. */
typedef struct muster_message_queue_stats {
    uint64_t messages;    /**< Messages in the queue now. */
    uint64_t bytes;       /**< Bytes of their frames. */
    uint64_t pushed;      /**< Messages that were pushed. */
    uint64_t popped;      /**< Messages that were popped. */
    uint64_t full;        /**< Pushes that found the queue full. */
    uint64_t reserved[3]; /**< Zero. */
} muster_message_queue_stats;

/** Makes a message queue.
 * @param[in]  context    Context; the message queue keeps it alive, and is closed with it.
 * @param[in]  config     Limits and options; copied. NULL: all defaults.
 * @param[out] out_queue  The message queue; the caller owns one reference.
 * @param[out] error      Detail on failure, or NULL.
 * @retval MUSTER_OK        Made.
 * @bad_config
 * @retval MUSTER_E_NOMEM   Memory ran out.
 * @retval MUSTER_E_CLOSED  The context or the queue is closed.
 * @retval MUSTER_E_FORKED  The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_message_queue_create(muster_context *context, const muster_message_queue_config *config,
                                                     muster_message_queue **out_queue, muster_error *error);

/** Appends a message. On ::MUSTER_OK it belongs to the queue; otherwise it remains the caller's, unchanged.
 * @param[in] queue       Message queue.
 * @param[in] message     Message to append.
 * @param[in] timeout_ns  Maximum wait for room; 0 tries once, -1: no limit.
 * @retval MUSTER_OK         Appended.
 * @retval MUSTER_AGAIN      The queue is full, and the timeout was 0; ::MUSTER_MESSAGE_QUEUE_HAS_ROOM follows.
 * @retval MUSTER_TIMEOUT    There was no room in time.
 * @retval MUSTER_E_ARG      No queue or no message.
 * @retval MUSTER_E_NOMEM    Memory ran out.
 * @retval MUSTER_E_CLOSED   The queue or its context is closed.
 * @retval MUSTER_E_CANCELED muster_message_queue_cancel() was called meanwhile.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called inside a callback of the engine, and there is no room.
 * @retval MUSTER_E_FORKED   The queue belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_message_queue_push(muster_message_queue *queue, muster_message *message,
                                                   int64_t timeout_ns);

/** Takes the first message. Messages that one thread has pushed are popped in that order.
 * @param[in]  queue        Message queue.
 * @param[in]  timeout_ns   Maximum wait; 0 checks once, -1: no limit.
 * @param[out] out_message  The message; it belongs to the caller.
 * @retval MUSTER_OK         Taken.
 * @retval MUSTER_AGAIN      It is empty, and the timeout was 0; ::MUSTER_MESSAGE_QUEUE_FILLED follows.
 * @retval MUSTER_TIMEOUT    No message was pushed in time.
 * @retval MUSTER_E_ARG      No queue or no destination.
 * @retval MUSTER_E_CLOSED   The queue or its context is closed, and every message was popped.
 * @retval MUSTER_E_CANCELED muster_message_queue_cancel() was called meanwhile.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called inside a callback of the engine, with a timeout.
 * @retval MUSTER_E_FORKED   The queue belongs to the parent process.
 * @threads{any; each message goes to one caller} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_message_queue_pop(muster_message_queue *queue, int64_t timeout_ns,
                                                  muster_message **out_message);

/** Returns the counters of a message queue.
 * @param[in]  queue      Message queue.
 * @param[out] out_stats  The counters.
 * @filled
 * @retval MUSTER_E_ARG  No queue or no destination.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_message_queue_get_stats(muster_message_queue *queue,
                                                        muster_message_queue_stats *out_stats);

/** Ends the calls that wait on a message queue now: they return ::MUSTER_E_CANCELED.
 * @param[in] queue  Message queue.
 * @retval MUSTER_OK       Done, also if no thread waited.
 * @retval MUSTER_E_ARG    No queue.
 * @retval MUSTER_E_FORKED The queue belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_message_queue_cancel(muster_message_queue *queue);

/** Closes a message queue: nothing can be pushed any more, and what it has can still be popped.
 * @param[in] queue  Message queue.
 * @retval MUSTER_OK       Closed, also if it was before.
 * @retval MUSTER_E_ARG    No queue.
 * @retval MUSTER_E_FORKED The queue belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_message_queue_close(muster_message_queue *queue);

/** Closes and releases a message queue. Its messages are released with the last user of the queue.
 * @param[in] queue  Message queue, or NULL.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API void muster_message_queue_release(muster_message_queue *queue);

#ifdef __cplusplus
}
#endif
#endif
