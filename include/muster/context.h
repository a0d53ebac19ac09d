/* SPDX-License-Identifier: MIT */
/** @file
 * The context: one progress engine and everything made from it.
 *
 * A context owns its loop, its secret, its registry of transports and its limits. Nothing is shared between two
 * contexts of a process, so two of them make the cheapest cluster test there is.
 *
 * By default the context runs one progress thread, which blocks every asynchronous signal and may be abandoned at exit.
 * With ::MUSTER_CONTEXT_EXTERNAL there is none: the host polls one descriptor and calls muster_context_progress();
 * calls that wait drive the engine themselves. In both, dialling a host by name starts a short-lived thread
 * `muster-resolve`, at most 8 at a time; an external context that is released meanwhile ends on one more thread.
 *
 * What the engine runs of the host's, on its thread or on the one that drives it: wake functions, and the callbacks of
 * ::MUSTER_TRANSPORT_ANY_THREAD. All else of the host runs in muster_queue_dispatch(). A call that would wait inside a
 * callback of the engine's answers ::MUSTER_E_WOULD_DEADLOCK.
 *
 * After fork() every handle answers ::MUSTER_E_FORKED in the child; the parent goes on undisturbed. */
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
 * A peer tells its heartbeat when a link begins; one above an hour counts as an hour. */
typedef struct muster_context_config {
    uint32_t struct_size;         /**< sizeof(muster_context_config) of the caller. */
    uint32_t flags;               /**< ::muster_context_flag values, or'ed. */
    const void *secret;           /**< Shared secret of the job, 16 to 1024 bytes; copied. NULL: see secret_fd. */
    uint64_t secret_bytes;        /**< Length of the secret. */
    int32_t secret_fd_plus_one;   /**< A descriptor to read the secret from to its end, plus 1; closed afterwards.
                                       0: none, then MUSTER_SECRET_FILE names a file (not readable by others), then
                                       MUSTER_SECRET holds the text; else a random one is made. The
                                       newline that ends a file of printable ASCII is no part of it; what comes
                                       through a descriptor is taken as it is. */
    uint32_t max_unauthenticated; /**< Connections that have not proved the secret yet, per listener; 0: 64. When
                                       there are more, those that have sent nothing make place, and dialers that
                                       were displaced dial again within their time. */
    int64_t handshake_timeout_ns; /**< Time a new connection has to prove itself; 0: 10 s. */
    int64_t heartbeat_ns;         /**< Longest silence this side keeps on a link; 0: 1 s. In a fabric, where whoever
                                       carries the messages tells of deaths (star, MPI), it is the longer one of both
                                       sides', and one begun beside n others is at least n ms: ten thousand streams
                                       that are idle do not keep a process busy. */
    int64_t silent_ns;            /**< Silence after which ::MUSTER_STREAM_PEER_SILENT is raised; 0: 5 s. Not before 3
                                       heartbeats of the peer. */
    int64_t dead_ns;              /**< Silence that counts as death; 0: 60 s, negative: never. Not before 4 heartbeats
                                       of the peer, and never if its context is external: it beats only while its
                                       host drives it. */
    uint64_t window_bytes;        /**< Most bytes buffered per direction of a stream, power of two, 4 KiB to 1 GiB;
                                       0: 1 MiB. */
} muster_context_config;

/** Figures of a context since its start. Streams tell their bytes in steps of 64 KiB, and the rest when freed. */
typedef struct muster_context_stats {
    uint64_t loop_wakeups;      /**< Times the engine woke up. */
    uint64_t mailbox_posts;     /**< Tasks posted to the engine. */
    uint64_t streams_open;      /**< Streams alive now. */
    uint64_t streams_made;      /**< Streams ever made. */
    uint64_t handshakes_ok;     /**< Connections that proved the secret. */
    uint64_t handshakes_failed; /**< Connections refused: wrong secret, time, limits, protocol. */
    uint64_t bytes_in;          /**< Bytes the host has read, all streams. */
    uint64_t bytes_out;         /**< Bytes accepted from the host, all streams. */
    uint64_t upgrades;          /**< Links moved to shared memory. */
    uint64_t reserved[7];       /**< Zero. */
} muster_context_stats;

/** Starts a context: one progress engine and everything made from it.
 * @param[in]  config       How to start; copied. NULL means all defaults.
 * @param[out] out_context  New context; the caller owns one reference.
 * @param[out] error        Detail on failure, or NULL.
 * @retval MUSTER_OK        Running.
 * @retval MUSTER_E_ARG     A value is out of its range; the text names it.
 * @retval MUSTER_E_ABI     The config has non-zero fields newer than this library.
 * @retval MUSTER_E_NOMEM   Threads or memory ran out.
 * @retval MUSTER_E_LIMIT   Descriptors ran out.
 * @retval MUSTER_E_SYSTEM  The secret could not be read, or the loop could not start.
 * @retval MUSTER_E_PERMISSION  The secret's file may be read by others.
 * @threads{any} @blocks{only for the end of secret_fd} @since 0.1 */
MUSTER_API muster_status muster_context_create(const muster_context_config *config, muster_context **out_context,
                                               muster_error *error);

/** Ends a context in order: no new work, streams are closed, listeners stop, the thread ends.
 * Streams still open when the time is over are aborted. Later calls that make something in it, accept, drive it, or
 * move bytes of streams that were not over before answer ::MUSTER_E_CLOSED. Queues stay usable until what lies in them
 * was taken; then muster_queue_next() and muster_queue_dispatch() answer it, also to a thread that waits there. Calls
 * that only ask, cancel or release, and those that wait for or signal a process, go on as before.
 * @param[in] context     Context to end; the reference stays the caller's.
 * @param[in] timeout_ns  Longest wait for bytes on their way; 0 does not wait, -1 has no end.
 * @retval MUSTER_OK       Everything has left, as for muster_stream_close(), and is ended.
 * @retval MUSTER_TIMEOUT  Ended; some streams had to be aborted.
 * @retval MUSTER_E_ARG    No context.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called inside a callback of the engine's.
 * @retval MUSTER_E_FORKED The context belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns, and until the engine has stopped} @since 0.1 */
MUSTER_API muster_status muster_context_close(muster_context *context, int64_t timeout_ns);

/** Ends the waits of every thread that is inside one of these calls of this context now: muster_transport_dial(),
 * muster_store_open(), muster_rendezvous_open(), muster_rendezvous_list(), muster_round_member(),
 * muster_worker_start(), muster_process_wait(), muster_agent_wait(), muster_agent_flush(),
 * muster_lease_end() and muster_store_server_close(). They return ::MUSTER_E_CANCELED. All other waits have a cancel
 * function of their object.
 * @param[in] context  Whose calls.
 * @retval MUSTER_OK       Done, also when no thread waited.
 * @retval MUSTER_E_ARG    No context.
 * @retval MUSTER_E_FORKED The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_context_cancel(muster_context *context);

/** Gives up one reference; the context ends with the last object made from it. A thread that waits in
 * muster_context_progress() returns ::MUSTER_E_CLOSED. Never waits, so finalizers may call it;
 * see muster_context_close() for an orderly end. Runs no code of others on this thread, with one exception: a
 * release, of whatever object, that ends an external context runs what ends its plug-ins and its tables of
 * ::MUSTER_TRANSPORT_ANY_THREAD.
 * @param[in] context  What to release; NULL has no effect.
 * @threads{any, finalizers included} @blocks{no} @since 0.1 */
MUSTER_API void muster_context_release(muster_context *context);

/** Gives the descriptor to poll in external mode.
 * It is readable when muster_context_progress() has something to do, timers included. A host that takes completions
 * polls two descriptors: this one, and that of each queue (muster_queue_fd()), which another thread of the host may
 * make readable without any progress.
 * @param[in]  context  A context made with ::MUSTER_CONTEXT_EXTERNAL.
 * @param[out] out_fd   A duplicate the caller owns and closes.
 * @retval MUSTER_OK             Given.
 * @retval MUSTER_E_ARG          No context or no place for the descriptor.
 * @retval MUSTER_E_UNSUPPORTED  The context has a thread of its own.
 * @retval MUSTER_E_CLOSED       The context is closed.
 * @retval MUSTER_E_LIMIT        No descriptor left.
 * @retval MUSTER_E_FORKED       The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_context_fd(muster_context *context, int32_t *out_fd);

/** Drives an external context: serves what is due, then waits for more up to the time given.
 * @param[in] context     A context made with ::MUSTER_CONTEXT_EXTERNAL.
 * @param[in] timeout_ns  Longest wait for something to do; 0 only serves what is due, -1 has no end.
 * @retval MUSTER_OK             Something was served.
 * @retval MUSTER_AGAIN          There was nothing to do, and the timeout was 0.
 * @retval MUSTER_TIMEOUT        Nothing came up in time.
 * @retval MUSTER_E_ARG          No context.
 * @retval MUSTER_E_BUSY         Another thread is driving it, and the timeout was 0; or this one is, inside a callback.
 * @retval MUSTER_E_UNSUPPORTED  The context has a thread of its own.
 * @retval MUSTER_E_CLOSED       The context is closed, or its handle was released meanwhile.
 * @retval MUSTER_E_FORKED       The context belongs to the parent process.
 * @threads{any; one at a time drives, others wait} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_context_progress(muster_context *context, int64_t timeout_ns);

/** Copies the secret of the context, to be handed to a worker over a descriptor (never on a command line).
 * @param[in]  context     Context to ask.
 * @param[out] out_secret  Where it goes; NULL to learn the size only.
 * @param[in]  capacity    Room there, in bytes.
 * @param[out] out_bytes   Length of the secret.
 * @retval MUSTER_OK       Copied (or only measured).
 * @retval MUSTER_E_ARG    No context, or no place for the length.
 * @retval MUSTER_E_LIMIT  The room is too small; nothing copied, the length is told.
 * @retval MUSTER_E_FORKED The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_context_secret(muster_context *context, void *out_secret, size_t capacity,
                                               size_t *out_bytes);

/** Least severity of a log record. */
enum muster_log_level {
    MUSTER_LOG_OFF = 0,   /**< Nothing. */
    MUSTER_LOG_ERROR = 1, /**< Something was lost or refused. */
    MUSTER_LOG_WARN = 2,  /**< Something looks wrong: a refused handshake, a silent peer. */
    MUSTER_LOG_INFO = 3,  /**< Links made and ended. */
    MUSTER_LOG_DEBUG = 4  /**< Every decision. */
};

/** Sends log records to a queue as ::MUSTER_EVENT_LOG; their text comes in the error argument of
 * muster_queue_next(). A full queue drops records, never work; the count of dropped ones is in the queue's stats.
 * @param[in] context  Whose records.
 * @param[in] level    A ::muster_log_level value; the least severe kind wanted.
 * @param[in] queue    Where they go; NULL turns logging off.
 * @param[in] tag      Returned in muster_completion::tag.
 * @retval MUSTER_OK       Set.
 * @retval MUSTER_E_ARG    No context, an unknown level, or a queue of another context.
 * @retval MUSTER_E_CLOSED The context or the queue is closed.
 * @retval MUSTER_E_FORKED The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_context_log(muster_context *context, int32_t level, muster_queue *queue, uint64_t tag);

/** Reads the figures of a context.
 * @param[in]  context    Context to ask.
 * @param[out] out_stats  Filled.
 * @retval MUSTER_OK       Filled.
 * @retval MUSTER_E_ARG    No context or no place.
 * @retval MUSTER_E_FORKED The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_context_get_stats(muster_context *context, muster_context_stats *out_stats);

#ifdef __cplusplus
}
#endif
#endif
