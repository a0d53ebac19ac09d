/* SPDX-License-Identifier: MIT */
/** @file
 * The context: one progress engine and everything that is made from it.
 *
 * A context owns its loop, its secret, its registry of transports and its limits. Nothing is shared between two
 * contexts of a process, so two of them make the cheapest test of a cluster.
 *
 * By default the context runs one progress thread, which blocks every asynchronous signal and may be abandoned at exit.
 * With ::MUSTER_CONTEXT_EXTERNAL there is none: the host polls one descriptor and calls muster_context_progress();
 * calls that wait drive the engine themselves. In both, dialling a host by name starts a short-lived thread
 * `muster-resolve`, at most 8 at a time; an external context that is released in the meantime ends on one more thread.
 *
 * Once a plug-in that can be polled is loaded (mpi://, see muster_fabric_ops::poll), threads of the host that wait for
 * a stream of it drive a context with a thread, too, in turn with that thread.
 *
 * The engine calls two kinds of functions of the host, on its thread or on the one that drives it: wake functions, and
 * the callbacks of ::MUSTER_TRANSPORT_ANY_THREAD. All other functions of the host run in muster_queue_dispatch(). A
 * call that would wait inside a callback of the engine returns ::MUSTER_E_WOULD_DEADLOCK.
 *
 * After fork() every call on a handle returns ::MUSTER_E_FORKED in the child; the parent is not affected. */
#ifndef MUSTER_CONTEXT_H
#define MUSTER_CONTEXT_H

#include <muster/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Opaque; made by muster_context_create(). */
typedef struct muster_context muster_context;
/** Opaque; made by muster_queue_create(), see queue.h. */
typedef struct muster_queue muster_queue;

/** Flags of muster_context_config::flags. */
enum muster_context_flag {
    MUSTER_CONTEXT_EXTERNAL = 1,    /**< No progress thread: the host drives by muster_context_progress(). */
    MUSTER_CONTEXT_NO_SEAL = 2,     /**< Do not encrypt links that leave the host (a trusted network). */
    MUSTER_CONTEXT_SEAL_ALWAYS = 4, /**< Encrypt links on this host, too. */
    MUSTER_CONTEXT_NO_UPGRADE = 8   /**< Never move a same-host link to shared memory. */
};

/** How to start a context; all zero means the defaults named here. Times above 36 years count as 36 years.
 * A peer announces its heartbeat interval when a link begins; one above an hour counts as an hour. */
typedef struct muster_context_config {
    uint32_t struct_size;         /**< sizeof(muster_context_config) of the caller. */
    uint32_t flags;               /**< ::muster_context_flag values, or'ed. */
    const void *secret;           /**< Shared secret of the job, 16 to 1024 bytes; copied. NULL: see secret_fd. */
    uint64_t secret_bytes;        /**< Length of the secret. */
    int32_t secret_fd_plus_one;   /**< A descriptor from which the secret is read to its end, plus 1; closed afterwards.
                                       0: none. Then MUSTER_SECRET_FILE names a file (not readable by others), then
                                       MUSTER_SECRET holds the text; otherwise a random secret is generated. The
                                       newline at the end of a file of printable ASCII is not part of the secret; the
                                       bytes of a descriptor are used unchanged. */
    uint32_t max_unauthenticated; /**< Maximum number of connections of a listener that have not proved the secret yet;
                                       0: 64. If there are more, connections that have sent nothing are displaced, and
                                       displaced dialers dial again within their timeout. */
    int64_t handshake_timeout_ns; /**< Time for the handshake of a new connection; 0: 10 s. */
    int64_t heartbeat_ns;  /**< Maximum silence of this side on a link; 0: 1 s. In a fabric that reports deaths by
                                itself (star, MPI), the longer time of both sides is used, and with n other
                                sessions it is at least n ms, so that ten thousand idle streams do not keep a
                                process busy. */
    int64_t silent_ns;     /**< Silence after which ::MUSTER_STREAM_PEER_SILENT is raised; 0: 5 s. Not before 3
                                heartbeats of the peer. */
    int64_t dead_ns;       /**< Silence that counts as death; 0: 60 s, negative: never. Not before 4 heartbeats
                                of the peer, and never if its context is external: it sends heartbeats only while its
                                host drives it. */
    uint64_t window_bytes; /**< Maximum bytes buffered per direction of a stream, a power of two, 4 KiB to 1 GiB;
                                0: 1 MiB. */
} muster_context_config;

/** Counters of a context since its start. Streams report their bytes in steps of 64 KiB, and the rest when freed. */
typedef struct muster_context_stats {
    uint64_t loop_wakeups;      /**< Times the engine woke up. */
    uint64_t mailbox_posts;     /**< Tasks posted to the engine. */
    uint64_t streams_open;      /**< Streams that exist now. */
    uint64_t streams_made;      /**< Streams that were made since the start. */
    uint64_t handshakes_ok;     /**< Connections that have proved the secret. */
    uint64_t handshakes_failed; /**< Connections refused: wrong secret, time, limits, protocol. */
    uint64_t bytes_in;          /**< Bytes that the host has read, of all streams. */
    uint64_t bytes_out;         /**< Bytes accepted from the host, of all streams. */
    uint64_t upgrades;          /**< Links that were moved to shared memory. */
    uint64_t reserved[7];       /**< Zero. */
} muster_context_stats;

/** Starts a context: one progress engine and everything that is made from it.
 * @param[in]  config       Options; copied. NULL means all defaults.
 * @param[out] out_context  The context; the caller owns one reference.
 * @param[out] error        Detail on failure, or NULL.
 * @retval MUSTER_OK        The context is running.
 * @retval MUSTER_E_ARG     A value is out of range; the error names it.
 * @retval MUSTER_E_ABI     The config has non-zero fields that are newer than this library.
 * @retval MUSTER_E_NOMEM   Memory or threads ran out.
 * @retval MUSTER_E_LIMIT   Descriptors ran out.
 * @retval MUSTER_E_SYSTEM  The secret could not be read, or the loop could not start.
 * @retval MUSTER_E_PERMISSION  Other users can read the file of the secret.
 * @threads{any} @blocks{only for the end of secret_fd} @since 0.1 */
MUSTER_API muster_status muster_context_create(const muster_context_config *config, muster_context **out_context,
                                               muster_error *error);

/** Returns the context of this process, for programs that need only one: it is made at the first call, with all
 * defaults, so its secret is in the environment (muster_context_config::secret). The library keeps a reference of its
 * own until the process ends. No caller closes it: others may use it. A child process gets a context of its own.
 * @param[out] out_context  The context; the caller owns one reference.
 * @param[out] error        Detail on failure, or NULL.
 * @retval MUSTER_OK        Returned.
 * @retval MUSTER_E_ARG     No destination, or the secret in the environment is too short or too long.
 * @retval MUSTER_E_NOMEM   Memory or threads ran out.
 * @retval MUSTER_E_LIMIT   Descriptors ran out.
 * @retval MUSTER_E_SYSTEM  The secret could not be read, or the loop could not start.
 * @retval MUSTER_E_PERMISSION  Other users can read the file of the secret.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_context_default(muster_context **out_context, muster_error *error);

/** Ends a context in order: no new work, streams are closed, listeners stop, the thread ends.
 * Streams that are still open at the deadline are aborted. Later calls that make objects in the context, accept
 * connections, drive it, or move bytes of streams that had not ended before return ::MUSTER_E_CLOSED. Queues stay
 * usable until their entries were taken; then muster_queue_next() and muster_queue_dispatch() return ::MUSTER_E_CLOSED,
 * also in a thread that waits there. Calls that only query, cancel or release, and those that wait for or signal a
 * process, work as before.
 * @param[in] context     Context to end; the caller keeps its reference.
 * @param[in] timeout_ns  Maximum wait for bytes in transit; 0 does not wait, -1: no limit.
 * @retval MUSTER_OK       All bytes have left, as for muster_stream_close(), and the context has ended.
 * @retval MUSTER_TIMEOUT  The context has ended; some streams had to be aborted.
 * @retval MUSTER_E_ARG    No context.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called inside a callback of the engine.
 * @retval MUSTER_E_FORKED The context belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns, and until the engine has stopped} @since 0.1 */
MUSTER_API muster_status muster_context_close(muster_context *context, int64_t timeout_ns);

/** Ends the waits of every thread that is inside one of these calls of this context now: muster_transport_dial(),
 * muster_store_open(), muster_rendezvous_open(), muster_rendezvous_list(), muster_round_member(),
 * muster_worker_start(), muster_process_wait(), muster_agent_wait(), muster_agent_flush(),
 * muster_lease_end() and muster_store_server_close(). They return ::MUSTER_E_CANCELED. All other waits have a cancel
 * function of their object.
 * @param[in] context  Context of the calls.
 * @retval MUSTER_OK       Done, also when no thread waited.
 * @retval MUSTER_E_ARG    No context.
 * @retval MUSTER_E_FORKED The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_context_cancel(muster_context *context);

/** Releases one reference; the context ends with the last object that was made from it. A thread that waits in
 * muster_context_progress() returns ::MUSTER_E_CLOSED. The call never waits, so finalizers may use it;
 * see muster_context_close() for an orderly end. It runs no foreign code on this thread, with one exception: the
 * release, of any object, that ends an external context calls the functions that end its plug-ins and its tables of
 * ::MUSTER_TRANSPORT_ANY_THREAD.
 * @param[in] context  What to release; NULL has no effect.
 * @threads{any, finalizers included} @blocks{no} @since 0.1 */
MUSTER_API void muster_context_release(muster_context *context);

/** Returns the descriptor to poll in external mode.
 * It is readable when muster_context_progress() has work, timers included. A host that takes completions
 * polls two descriptors: this one, and that of each queue (muster_queue_fd()), which another thread of the host may
 * make readable without any progress.
 * @param[in]  context  A context made with ::MUSTER_CONTEXT_EXTERNAL.
 * @param[out] out_fd   A duplicate that the caller owns and closes.
 * @retval MUSTER_OK             The descriptor was returned.
 * @retval MUSTER_E_ARG          No context or no destination for the descriptor.
 * @retval MUSTER_E_UNSUPPORTED  The context has a thread of its own.
 * @retval MUSTER_E_CLOSED       The context is closed.
 * @retval MUSTER_E_LIMIT        No descriptor is left.
 * @retval MUSTER_E_FORKED       The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_context_fd(muster_context *context, int32_t *out_fd);

/** Drives an external context: serves pending events, then waits for more up to the timeout.
 * @param[in] context     A context made with ::MUSTER_CONTEXT_EXTERNAL.
 * @param[in] timeout_ns  Maximum wait for an event; 0 only serves pending events, -1: no limit.
 * @retval MUSTER_OK             At least one event was served.
 * @retval MUSTER_AGAIN          No event was pending, and the timeout was 0.
 * @retval MUSTER_TIMEOUT        No event occurred in time.
 * @retval MUSTER_E_ARG          No context.
 * @retval MUSTER_E_BUSY         Another thread drives it, and the timeout was 0; or this thread does, inside a
 *                               callback.
 * @retval MUSTER_E_UNSUPPORTED  The context has a thread of its own.
 * @retval MUSTER_E_CLOSED       The context is closed, or its handle was released during the call.
 * @retval MUSTER_E_FORKED       The context belongs to the parent process.
 * @threads{any; one at a time drives, others wait} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_context_progress(muster_context *context, int64_t timeout_ns);

/** Copies the secret of the context, to be passed to a worker over a descriptor (never on a command line).
 * @param[in]  context     Context to query.
 * @param[out] out_secret  Destination of the secret; NULL to get the size only.
 * @param[in]  capacity    Size of the destination.
 * @param[out] out_bytes   Length of the secret.
 * @retval MUSTER_OK       Copied, or only the size was returned.
 * @retval MUSTER_E_ARG    No context, or no destination for the length.
 * @retval MUSTER_E_LIMIT  The destination is too small; nothing was copied, the length was set.
 * @retval MUSTER_E_FORKED The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_context_secret(muster_context *context, void *out_secret, size_t capacity,
                                               size_t *out_bytes);

/** Minimum severity of a log record. */
enum muster_log_level {
    MUSTER_LOG_OFF = 0,   /**< Nothing. */
    MUSTER_LOG_ERROR = 1, /**< Data was lost, or a request was refused. */
    MUSTER_LOG_WARN = 2,  /**< A possible problem: a refused handshake, a silent peer. */
    MUSTER_LOG_INFO = 3,  /**< Links that were made and that have ended. */
    MUSTER_LOG_DEBUG = 4  /**< Every decision. */
};

/** Sends log records to a queue as ::MUSTER_EVENT_LOG; their text is in the error argument of
 * muster_queue_next(). A full queue drops records, never completions; muster_queue_stats::log_dropped counts them.
 * @param[in] context  Context of the records.
 * @param[in] level    A ::muster_log_level value: the minimum severity.
 * @param[in] queue    Queue for the records; NULL turns logging off.
 * @param[in] tag      Returned in muster_completion::tag.
 * @retval MUSTER_OK       Set.
 * @retval MUSTER_E_ARG    No context, an unknown level, or a queue of another context.
 * @retval MUSTER_E_CLOSED The context or the queue is closed.
 * @retval MUSTER_E_FORKED The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_context_log(muster_context *context, int32_t level, muster_queue *queue, uint64_t tag);

/** Reads the counters of a context.
 * @param[in]  context    Context to query.
 * @param[out] out_stats  Filled.
 * @retval MUSTER_OK       Filled.
 * @retval MUSTER_E_ARG    No context or no destination.
 * @retval MUSTER_E_FORKED The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_context_get_stats(muster_context *context, muster_context_stats *out_stats);

#ifdef __cplusplus
}
#endif
#endif
