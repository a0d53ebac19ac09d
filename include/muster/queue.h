/* SPDX-License-Identifier: MIT */
/** @file
 * The completion queue: completions, events and requests to the host.
 *
 * A queue has three kinds of entries: *completions* of operations (their slot is reserved when the operation is
 * submitted, so none is ever lost), *readiness* of watched objects (one coalesced set of bits per object, never
 * dropped), and *requests* to the host (open this connection of your transport), each with an id, which the host
 * answers by a call, now or later. Either the host pulls with muster_queue_next(), or it calls muster_queue_dispatch(),
 * which runs the callback tables of the host on the calling thread. On a library thread Muster calls the host only if
 * the host has requested that: the wake function, and tables with ::MUSTER_TRANSPORT_ANY_THREAD.
 *
 * An operation is begun with a queue and a tag. It can be cancelled by muster_queue_cancel_operation(), and it ends
 * with its queue: see the rule of lifetimes in base.h.
 *
 * A host waits in one of three ways: inside muster_queue_next() with a timeout; by polling the descriptor of
 * muster_queue_fd() in its own event loop; or by a wake function. Wake-ups merge, so take entries until ::MUSTER_AGAIN,
 * which means empty *and* armed again. */
#ifndef MUSTER_QUEUE_H
#define MUSTER_QUEUE_H

#include <muster/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The kind of an entry; the value of muster_completion::kind. */
enum muster_completion_kind {
    MUSTER_DONE_READ = 1,       /**< muster_stream_read_begin() ended; the buffer belongs to the caller again. */
    MUSTER_DONE_RELEASED = 2,   /**< muster_stream_write_owned() ended; the buffer belongs to the caller again. */
    MUSTER_DONE_DIAL = 3,       /**< muster_transport_dial_begin() ended; object is the stream if the status is OK. */
    MUSTER_DONE_EXIT = 4,       /**< A process ended; bytes says how, see muster_process_watch(). */
    MUSTER_DONE_USER = 5,       /**< muster_queue_post(); bytes has the posted value. */
    MUSTER_DONE_STORE = 6,      /**< muster_store_begin() ended; object is the result, if there is one. */
    MUSTER_DONE_LEASE = 7,      /**< muster_store_lease_begin() ended; object is the muster_lease on success. */
    MUSTER_DONE_RENDEZVOUS = 8, /**< muster_rendezvous_begin() ended; object is the round of a join that succeeded. */
    MUSTER_DONE_AGENT = 9,      /**< An agent is over; see muster_agent_start(). */
    MUSTER_DONE_BROADCAST = 10, /**< muster_cluster_broadcast_begin() ended; bytes is the number of members that have
                                     them. */
    MUSTER_DONE_OPEN = 11,      /**< muster_store_open_begin(), muster_rendezvous_open_begin() or
                                     muster_cluster_open_begin() ended; object is the opened object if the status is OK. */
    MUSTER_DONE_CALL = 12,    /**< Another function whose name ends with `_begin` ended; the status is the one that the
                                   function without `_begin` would have returned. */
    MUSTER_DONE_LISTEN = 13,  /**< muster_transport_listen_begin() ended; object is the muster_listener if the status is
                                   OK: it is open, and its address can be dialled. */
    MUSTER_DONE_MESSAGE = 14, /**< A message that a socket could not deliver, with the reason as status; object is the
                                   muster_message, bytes its destination. See muster_socket_config::queue. */
    MUSTER_DONE_AM = 15,      /**< muster_am_begin() ended; the status is that of muster_am_call(), and bytes the number
                                   of bytes of the reply. */
    MUSTER_DONE_MEMORY = 18,  /**< muster_memory_begin() ended; the status is that of muster_memory_run(), and
                                   bytes the number that a PUT or GET has copied, otherwise 0. */
    MUSTER_EVENT_READY = 16,  /**< A watched object is ready; events says for what. */
    MUSTER_EVENT_LOG = 17,    /**< A log record; status has the level, the error argument the text. */
    MUSTER_EVENT_AGENT = 19,  /**< A step of an agent; events says which, see muster_agent_start(). */
    MUSTER_REQUEST_OPEN = 32, /**< Host-served transport: connect to the address; answer by request id. */
    MUSTER_REQUEST_LISTEN = 33, /**< Host-served transport: listen at the address. */
    MUSTER_REQUEST_CLOSE = 34,  /**< Host-served: a connection, listener, store or member is over, and its id is not
                                   used again; no answer is needed. */
    MUSTER_REQUEST_CANCEL = 35, /**< The request with the id `request` is no longer needed; answering it is harmless. */
    MUSTER_REQUEST_STORE = 36,  /**< Host-served store: muster_store_request_read() returns the request; answer by
                                     request id. */
    MUSTER_REQUEST_RENDEZVOUS = 37, /**< Host-served rendezvous: muster_rendezvous_request_read() returns the request;
                                         answer by request id. */
    MUSTER_REQUEST_MANAGER = 38,    /**< Cluster manager of the host: muster_manager_request_read() returns the request;
                                       answer     by request id. */
    MUSTER_REQUEST_AM = 39          /**< An active message for the host: object is the muster_am_request. */
};

/** One entry taken off a queue; 64 bytes. */
typedef struct muster_completion {
    int32_t kind; /**< A ::muster_completion_kind value. */
    muster_status
        status; /**< How it ended, for a dial or a listen also ::MUSTER_TIMEOUT; ::MUSTER_OK for requests and READY. */
    uint64_t tag;         /**< The tag that the caller gave with the operation or watch. REQUEST: the tag of the
                               registration (muster_transport_serve() and the like); for a table of callbacks its
                               `self`, converted to a number. */
    void *object;         /**< DIAL with ::MUSTER_OK: the new muster_stream; STORE with ::MUSTER_OK or
                               ::MUSTER_E_CHANGED: the muster_store_result; LEASE with ::MUSTER_OK: the muster_lease;
                               RENDEZVOUS with ::MUSTER_OK, of a join: the muster_round; OPEN with ::MUSTER_OK: the
                               muster_store, muster_rendezvous or muster_cluster; LISTEN with ::MUSTER_OK: the
                               muster_listener; MESSAGE: the muster_message; REQUEST_AM: the muster_am_request. It
                               belongs to the caller. Otherwise NULL. */
    uint64_t bytes;       /**< Bytes moved, or the value named at the kind. */
    uint64_t request;     /**< Id of a request, else 0. */
    uint32_t events;      /**< READY: ::muster_stream_event values, or'ed, or what the watched object names. AGENT: a
                               ::muster_agent_event. */
    uint32_t reserved[5]; /**< Zero. */
} muster_completion;

/** How to make a queue; all zero means the defaults named here. */
typedef struct muster_queue_config {
    uint32_t struct_size; /**< sizeof(muster_queue_config) of the caller. */
    uint32_t flags;       /**< Zero. */
    uint32_t capacity;    /**< Maximum number of operations in progress and entries not yet taken, at most 2^24; 0:
                             65536. */
    uint32_t reserved;    /**< Zero. */
} muster_queue_config;

/** Counters of a queue since its start. */
typedef struct muster_queue_stats {
    uint64_t depth;       /**< Entries that wait to be taken. */
    uint64_t outstanding; /**< Slots reserved by operations in progress. */
    uint64_t taken;       /**< Entries that were taken since the start. */
    uint64_t wakeups;     /**< Wake-ups sent to the host. */
    uint64_t log_dropped; /**< Log records dropped because the queue was full. */
    uint64_t reserved[3]; /**< Zero. */
} muster_queue_stats;

/** Makes a completion queue.
 * @param[in]  context    Context it belongs to; the queue keeps it alive.
 * @param[in]  config     Options; copied. NULL means all defaults.
 * @param[out] out_queue  The queue; the caller owns one reference.
 * @param[out] error      Detail on failure, or NULL.
 * @retval MUSTER_OK       The queue was made.
 * @retval MUSTER_E_ARG    No context, or a value out of range.
 * @retval MUSTER_E_ABI    The config has non-zero fields that are newer than this library.
 * @retval MUSTER_E_NOMEM  Memory ran out.
 * @retval MUSTER_E_LIMIT  No descriptor is left.
 * @retval MUSTER_E_CLOSED The context is closed.
 * @retval MUSTER_E_FORKED The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_queue_create(muster_context *context, const muster_queue_config *config,
                                             muster_queue **out_queue, muster_error *error);

/** Takes the oldest entry off a queue.
 * A wait begins with polling, for less than 0.1 ms, as long as that was successful before, since sleeping costs both
 * sides more. In an external context the call drives the engine while it waits.
 * @param[in]  queue       Queue to read.
 * @param[in]  timeout_ns  Maximum wait in nanoseconds; 0 checks once, -1: no limit.
 * @param[out] out         Filled on ::MUSTER_OK; an object in it then belongs to the caller.
 * @param[out] error       Detail of an entry that did not end with ::MUSTER_OK, and the text of a log record; or NULL.
 * @retval MUSTER_OK         An entry was taken; it has a status of its own.
 * @retval MUSTER_AGAIN      The queue is empty and armed again, and the timeout was 0.
 * @retval MUSTER_TIMEOUT    No entry appeared in time.
 * @retval MUSTER_E_ARG      No queue or no destination.
 * @retval MUSTER_E_CLOSED   The queue or its context is closed, and all entries were taken; only operations that
 *                           another thread is just completing inside a call of Muster may still add entries.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called inside a callback of the engine, with a timeout.
 * @retval MUSTER_E_CANCELED muster_queue_cancel() was called while this call waited.
 * @retval MUSTER_E_FORKED   The queue belongs to the parent process.
 * @threads{any; each entry goes to one caller} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_queue_next(muster_queue *queue, int64_t timeout_ns, muster_completion *out,
                                           muster_error *error);

/** Handles one entry that belongs to no callback table; see muster_queue_dispatch().
 * @param user   The value given to muster_queue_dispatch().
 * @param entry  The entry; valid during the call, but an object in it belongs to the callee.
 * @param error  Its detail; valid during the call. */
typedef void (*muster_queue_handler_fn)(void *user, const muster_completion *entry, const muster_error *error);

/** Takes entries off a queue and runs callbacks for them on this thread: requests are passed to the table with which
 * their transport was registered, all other entries to the handler. No lock is held during a callback; it may call
 * Muster.
 * @param[in]  queue       Queue to serve.
 * @param[in]  timeout_ns  Maximum wait for the first entry; 0 checks once, -1: no limit.
 * @param[in]  handler     Called for entries of no table. NULL: such entries stay, and the call ends before the first.
 * @param[in]  user        Passed to the handler.
 * @param[out] out_count   Entries served, or NULL.
 * @retval MUSTER_OK         At least one entry was served; the queue was drained.
 * @retval MUSTER_AGAIN      The queue is empty and armed again, and the timeout was 0.
 * @retval MUSTER_TIMEOUT    No entry appeared in time.
 * @retval MUSTER_E_ARG      No queue.
 * @retval MUSTER_E_UNSUPPORTED  The next entry needs a handler, and none was given.
 * @retval MUSTER_E_CLOSED   The queue or its context is closed, and all entries were taken.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called inside a callback of the engine, with a timeout.
 * @retval MUSTER_E_CANCELED muster_queue_cancel() was called while this call waited.
 * @retval MUSTER_E_FORKED   The queue belongs to the parent process.
 * @threads{any; callbacks run on the calling thread only} @blocks{up to timeout_ns, and for the callbacks} @since 0.1
 */
MUSTER_API muster_status muster_queue_dispatch(muster_queue *queue, int64_t timeout_ns, muster_queue_handler_fn handler,
                                               void *user, uint64_t *out_count);

/** Ends the wait of every thread that is inside muster_queue_next() or muster_queue_dispatch() now.
 * @param[in] queue  Queue whose waiters return ::MUSTER_E_CANCELED.
 * @retval MUSTER_OK       Done, also if no thread waited.
 * @retval MUSTER_E_ARG    No queue.
 * @retval MUSTER_E_FORKED The queue belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_queue_cancel(muster_queue *queue);

/** Cancels the operations that were begun with this queue and this tag. Each still completes once: with
 * ::MUSTER_E_CANCELED, or as it ended at the same moment. If another process or the host has to agree first (a remote
 * store, a served transport), the completion follows when it has agreed, or after at most 2 s.
 * @param[in] queue  Queue with which they were begun.
 * @param[in] tag    Tag of the operations.
 * @retval MUSTER_OK       At least one of them was found and is being cancelled.
 * @retval MUSTER_E_STALE  There is no such operation: it has completed, or cannot be cancelled, like watches
 *                         (muster_process_watch() too), agents, and closes of a broker or a listener.
 * @retval MUSTER_E_ARG    No queue.
 * @retval MUSTER_E_FORKED The queue belongs to the parent process.
 * @threads{any} @blocks{for the copy of one piece of a stream's buffer, at most 256 KiB} @since 0.1 */
MUSTER_API muster_status muster_queue_cancel_operation(muster_queue *queue, uint64_t tag);

/** Adds an entry of the caller to a queue, for instance to wake a waiter with a message.
 * @param[in] queue  Queue to post to.
 * @param[in] tag    Returned in muster_completion::tag.
 * @param[in] value  Returned in muster_completion::bytes.
 * @retval MUSTER_OK       The entry ::MUSTER_DONE_USER is in the queue.
 * @retval MUSTER_AGAIN    No slot is free; nothing was posted.
 * @retval MUSTER_E_ARG    No queue.
 * @retval MUSTER_E_CLOSED The queue is closed.
 * @retval MUSTER_E_FORKED The queue belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_queue_post(muster_queue *queue, uint64_t tag, uint64_t value);

/** Returns a descriptor that polls readable while the queue may have entries.
 * It is for poll(), epoll or the loop of a host only: never read or write it. After it turned readable, take entries
 * until ::MUSTER_AGAIN; only then can it turn readable again.
 * @param[in]  queue   Queue to watch.
 * @param[out] out_fd  A duplicate that the caller owns, and may close at any time.
 * @retval MUSTER_OK       The descriptor was returned.
 * @retval MUSTER_E_ARG    No queue or no destination.
 * @retval MUSTER_E_LIMIT  No descriptor is left.
 * @retval MUSTER_E_CLOSED The queue is closed.
 * @retval MUSTER_E_FORKED The queue belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_queue_fd(muster_queue *queue, int32_t *out_fd);

/** Events of a descriptor of the host; bits of muster_completion::events. */
enum muster_queue_fd_event {
    MUSTER_QUEUE_FD_READABLE = 1, /**< It can be read without waiting, or has reached its end. */
    MUSTER_QUEUE_FD_WRITABLE = 2, /**< It can be written without waiting. */
    MUSTER_QUEUE_FD_ENDED = 4     /**< It has failed, or the other side has hung up; reported whether watched or not. */
};

/** Watches a descriptor of the host: a socket, a pipe, an eventfd, anything that poll() accepts. So one queue waits for
 * streams, sockets, operations and descriptors alike. When an event occurs, the queue has one ::MUSTER_EVENT_READY with
 * its bits, and the descriptor is not watched any more until a further call with it; so, of several threads that take
 * entries, one serves it. An event that has occurred before the call is reported.
 *
 * Call muster_queue_unwatch_fd() before the descriptor is closed.
 * @param[in]  queue   Queue that receives the event.
 * @param[in]  fd      Descriptor; it stays the caller's.
 * @param[in]  events  ::MUSTER_QUEUE_FD_READABLE, ::MUSTER_QUEUE_FD_WRITABLE, or both.
 * @param[in]  tag     Returned in muster_completion::tag.
 * @param[out] error   Detail on failure, or NULL.
 * @retval MUSTER_OK            Watched, with these events and this tag, also if it was watched before.
 * @retval MUSTER_E_ARG         No queue, no open descriptor, or no or unknown events.
 * @retval MUSTER_E_UNSUPPORTED poll() does not wait for such a descriptor, for instance for a regular file.
 * @retval MUSTER_E_EXISTS      The library watches this descriptor itself.
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @retval MUSTER_E_LIMIT       The user has no watches left; see epoll(7).
 * @retval MUSTER_E_SYSTEM      Another system call failed.
 * @retval MUSTER_E_CLOSED      The queue is closed.
 * @retval MUSTER_E_FORKED      The queue belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_queue_watch_fd(muster_queue *queue, int32_t fd, uint32_t events, uint64_t tag,
                                               muster_error *error);

/** Ends the watch of a descriptor: after return, no event of it will be taken.
 * @param[in] queue  Queue.
 * @param[in] fd     Descriptor.
 * @retval MUSTER_OK          Not watched any more.
 * @retval MUSTER_E_ARG       No queue.
 * @retval MUSTER_E_NOT_FOUND The queue does not watch this descriptor of the host.
 * @retval MUSTER_E_FORKED    The queue belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_queue_unwatch_fd(muster_queue *queue, int32_t fd);

/** Wakes a foreign event loop; the result is ignored. uv_async_send of libuv can be used unchanged.
 * @param user  The value given to muster_queue_set_wake().
 * @return Ignored. */
typedef int (*muster_wake_fn)(void *user);

/** Sets a function that is called when a queue turns from empty to non-empty. Wake-ups merge: take entries with
 * muster_queue_next() until ::MUSTER_AGAIN. If the queue has entries already the function is called at once.
 * @param[in] queue  Queue to watch.
 * @param[in] wake   Called on any thread, with no lock held; it must not block, unwind or call Muster. NULL removes
 *                   it: after return no call is running, and none will follow.
 * @param[in] user   Passed to the function; it must stay valid until replaced.
 * @retval MUSTER_OK       The function is set.
 * @retval MUSTER_E_ARG    No queue.
 * @retval MUSTER_E_NOMEM  Memory ran out.
 * @retval MUSTER_E_LIMIT  No descriptor is left.
 * @retval MUSTER_E_CLOSED The queue or its context is closed (NULL is still accepted).
 * @retval MUSTER_E_FORKED The queue belongs to the parent process.
 * @threads{any, not from inside wake} @blocks{until a running wake has returned} @since 0.1 */
MUSTER_API muster_status muster_queue_set_wake(muster_queue *queue, muster_wake_fn wake, void *user);

/** Closes a queue: no further operations are accepted, its entries can still be taken, waiters return. Operations in
 * progress end without an entry, those of streams as by muster_stream_cancel(): all memory that they were lent belongs
 * to the caller when this returns. That also holds for streams that were closed or released before. The number of bytes
 * that a begun read had received is not reported; they are in its buffer, and the next read continues after them.
 *
 * A queue with a wake function must be closed; for one that is polled, muster_queue_release() is enough.
 * @param[in] queue  Queue to close.
 * @retval MUSTER_OK       The queue is closed; the wake function will not be called again.
 * @retval MUSTER_E_ARG    No queue.
 * @retval MUSTER_E_FORKED The queue belongs to the parent process.
 * @threads{any, not from inside wake} @blocks{until a running wake has returned} @since 0.1 */
MUSTER_API muster_status muster_queue_close(muster_queue *queue);

/** Releases the handle. The queue is closed as by muster_queue_close(): threads that wait in it return
 * ::MUSTER_E_CLOSED, operations end without an entry, and the memory that they were lent belongs to the caller when
 * this returns. Entries that were not taken are freed, and objects in them released. Transports, stores, rendezvous and
 * managers that the host served through the queue are withdrawn.
 * @param[in] queue  What to release; NULL has no effect.
 * @threads{any, finalizers included; not from inside wake}
 * @blocks{for the copy of one piece of a buffer, at most 256 KiB, and until a running wake has returned} @since 0.1 */
MUSTER_API void muster_queue_release(muster_queue *queue);

/** Reads the counters of a queue.
 * @param[in]  queue      Queue to query.
 * @param[out] out_stats  Filled.
 * @retval MUSTER_OK       Filled.
 * @retval MUSTER_E_ARG    No queue or no destination.
 * @retval MUSTER_E_FORKED The queue belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_queue_get_stats(muster_queue *queue, muster_queue_stats *out_stats);

#ifdef __cplusplus
}
#endif
#endif
