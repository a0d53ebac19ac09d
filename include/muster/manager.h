/* SPDX-License-Identifier: MIT */
/** @file
 * Cluster managers that the host implements: the program itself launches, connects, manages and kills workers.
 *
 * The host registers a name with a queue; it then carries out each muster_launch with that name in `manager`. Requests
 * arrive in the queue as ::MUSTER_REQUEST_MANAGER, each with an id. The host answers by that id, now or later, from any
 * thread and in any order: muster_manager_worker_ready() or muster_manager_worker_failed() once for each worker of a
 * LAUNCH, muster_manager_request_done() for every other request, and muster_manager_request_fail() for any request that
 * cannot be done. ::MUSTER_REQUEST_CANCEL reports that an unanswered request is no longer needed: it was not answered
 * in time, or the cluster is over.
 *
 * Launching a worker means starting a program and passing it the ticket of its number over a descriptor
 * (muster_manager_ticket()). The ticket contains the secret: never put it on a command line, nor into a file that other
 * users can read. The program calls muster_worker_context() and muster_worker_start(). With
 * ::MUSTER_LAUNCH_MASTER_DIALS it prints a line, `muster-worker ADDRESS`: pass that address to
 * muster_manager_worker_ready().
 *
 * Operations that a host does not receive have a default: to connect, the known address of the worker is dialled; to
 * interrupt, the worker is notified over its link; to kill, the thread of the worker's library is requested to end its
 * process.
 *
 * KILL requests to end a worker by force: the worker has not left in time, has not joined in time, or its link broke
 * and no process of it may remain. The request is done, and is answered with muster_manager_request_done(), when the
 * processes of the worker have ended, or when the system that runs them has accepted to end them and cannot fail any
 * more. It has failed, and is answered with muster_manager_request_fail(), when the processes may continue to run. The
 * host need do nothing else: the answer ends the worker for the cluster, as muster_manager_worker_ended() does; the one
 * that comes second has no effect. If the end of the worker becomes known while the request is unanswered,
 * ::MUSTER_REQUEST_CANCEL withdraws the request; so it does after 10 s without an answer, and the worker then counts as
 * not killed.
 *
 * The last event of a worker (::MUSTER_CLUSTER_REMOVED, DEAD, FAILED) has one of these texts: the reason for which the
 * master removed the worker, if that was not a broken link ("it did not join within 60 s"); otherwise how it ended, as
 * reported by muster_manager_worker_ended(); otherwise "ended by force" if a KILL was done; otherwise how its link
 * ended, or no text for a worker that left in order. If a KILL failed or was not answered, "it could not be ended by
 * force: " and the text of the failure follow, and the status of a REMOVED, which is otherwise ::MUSTER_OK, is that of
 * the failure (::MUSTER_TIMEOUT if there was no answer).
 *
 * There are two ways to receive requests, with the same behaviour: *pulled* with muster_queue_next(), after
 * muster_manager_serve(); or as *callbacks* of a table, which muster_queue_dispatch() calls on the thread that calls
 * it, and nothing else does, after muster_manager_serve_ops(). */
#ifndef MUSTER_MANAGER_H
#define MUSTER_MANAGER_H

#include <muster/cluster.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The operation of a request; a set of bits where a host selects the operations that it receives. */
enum muster_manager_operation {
    MUSTER_MANAGER_LAUNCH = 1,  /**< Start workers. Every manager receives it. */
    MUSTER_MANAGER_CONNECT = 2, /**< Determine where the master dials this worker. Answer with the address. */
    MUSTER_MANAGER_CONNECT_WORKER =
        4,                          /**< Determine where the worker `from` dials this one. Answer with the address. */
    MUSTER_MANAGER_REGISTER = 8,    /**< The worker has joined. */
    MUSTER_MANAGER_DEREGISTER = 16, /**< The worker is gone, for whatever reason. */
    MUSTER_MANAGER_INTERRUPT = 32,  /**< Interrupt the worker. If the host fails it with ::MUSTER_E_UNSUPPORTED, the
                                         worker is notified over its link, as it is by default. */
    MUSTER_MANAGER_KILL = 64,       /**< End the worker by force; see the description of the file. */
    MUSTER_MANAGER_FINALIZE = 128   /**< No further request about the worker will follow. */
};

/** One request. Pointers in it are valid until the request is answered, or until its CANCEL is taken off the queue or
 * the cancel callback returns. */
typedef struct muster_manager_request {
    uint32_t struct_size; /**< sizeof(muster_manager_request) of the caller; in a callback that of the library. */
    uint32_t operation;   /**< A ::muster_manager_operation value. */
    uint32_t member;      /**< Number of the worker; LAUNCH: of the first one. */
    uint32_t count;       /**< LAUNCH: number of workers; otherwise 1. */
    uint32_t from;        /**< CONNECT_WORKER: number of the worker that dials. */
    uint32_t reserved;    /**< Zero. */
    uint64_t data;        /**< The number that the host gave to muster_manager_worker_ready(). */
    const muster_launch *launch; /**< LAUNCH: the launch, with the defaults filled in. Otherwise NULL. */
    const char *address;         /**< CONNECT, CONNECT_WORKER: address at which the worker listens, if it is known;
                                      NUL-terminated. Otherwise NULL. */
    muster_cluster *cluster;     /**< Cluster of the worker: the handle that muster_cluster_open() returned, for
                                      comparison and for muster_manager_worker_ended(). Borrowed; NULL if the host has
                                      released it. */
    uint64_t cluster_tag;        /**< muster_cluster_config::tag of that cluster. */
} muster_manager_request;

/** A manager as callbacks. muster_queue_dispatch() calls them on the thread that calls it, with no lock held. They may
 * call Muster. Each request is answered by its id, inside the callback or later. For a callback that is NULL the
 * default of its operation applies. */
typedef struct muster_manager_ops {
    uint32_t struct_size; /**< sizeof(muster_manager_ops) of the caller. */
    uint32_t flags;       /**< Zero. */
    /** Starts workers. Not NULL. */
    void (*launch)(void *self, uint64_t request, const muster_manager_request *what);
    /** Determines where the master dials a worker. */
    void (*connect)(void *self, uint64_t request, const muster_manager_request *what);
    /** Determines where a worker dials another one. */
    void (*connect_worker)(void *self, uint64_t request, const muster_manager_request *what);
    /** Receives REGISTER, DEREGISTER and FINALIZE, and interrupts a worker (INTERRUPT). */
    void (*manage)(void *self, uint64_t request, const muster_manager_request *what);
    /** Ends a worker by force. */
    void (*kill)(void *self, uint64_t request, const muster_manager_request *what);
    /** The request is no longer needed; an answer has no effect. */
    void (*cancel)(void *self, uint64_t request);
    /** Last callback of the table, after muster_manager_withdraw() or the end of the context. */
    void (*destroy)(void *self);
} muster_manager_ops;

/** Registers a manager of the host, in this context only. Requests arrive in the queue, to be pulled with
 * muster_queue_next().
 * @param[in]  context     Context in which muster_cluster_add() knows the manager.
 * @param[in]  name        1 to 63 letters, digits, '-' or '_', no terminator needed; not the name of a built-in
 *                         manager.
 * @param[in]  name_bytes  Length of the name.
 * @param[in]  operations  ::muster_manager_operation values, or'ed: those that the host receives besides LAUNCH.
 * @param[in]  requests    Queue of the same context that the host serves; releasing it withdraws the manager.
 * @param[in]  tag         Returned in muster_completion::tag of every request, CANCEL included, so that one queue
 *                         can serve several managers.
 * @param[out] error       Detail on failure, or NULL.
 * @served
 * @retval MUSTER_E_ARG     No context or queue, a queue of another context, an unknown operation, or a malformed
 *                          name.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_manager_serve(muster_context *context, const char *name, size_t name_bytes,
                                              uint32_t operations, muster_queue *requests, uint64_t tag,
                                              muster_error *error);

/** Registers a manager of the host as callbacks, which muster_queue_dispatch() calls.
 * @param[in]  context     Context in which muster_cluster_add() knows the manager.
 * @param[in]  name        1 to 63 letters, digits, '-' or '_', no terminator needed; not the name of a built-in
 *                         manager.
 * @param[in]  name_bytes  Length of the name.
 * @param[in]  ops         The callbacks; the table is copied.
 * @param[in]  self        Passed to each callback; must stay valid until destroy.
 * @param[in]  requests    Queue of the same context that is dispatched; releasing it withdraws the manager.
 * @param[out] error       Detail on failure, or NULL.
 * @served_ops
 * @retval MUSTER_E_ARG     An argument is missing, the queue is of another context, or the name is malformed.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_manager_serve_ops(muster_context *context, const char *name, size_t name_bytes,
                                                  const muster_manager_ops *ops, void *self, muster_queue *requests,
                                                  muster_error *error);

/** Withdraws a manager: from now on launching by its name fails, and unanswered requests are cancelled, as if each had
 * failed with ::MUSTER_E_CLOSED. Workers that have joined remain, with the default operations. Dispatch then calls
 * destroy: keep dispatching until that was called. Releasing the queue also withdraws the manager, but then no callback
 * of the table is called any more, not even destroy.
 * @param[in] context     Context in which the manager was registered.
 * @param[in] name        Name of the manager.
 * @param[in] name_bytes  Length of the name.
 * @retval MUSTER_OK           The manager was withdrawn.
 * @retval MUSTER_E_ARG        No context or name.
 * @retval MUSTER_E_NOT_FOUND  The host has registered no such manager.
 * @retval MUSTER_E_FORKED     The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_manager_withdraw(muster_context *context, const char *name, size_t name_bytes);

/** Reads an unanswered request.
 * @param[in]  requests  Queue from which the request was taken.
 * @param[in]  request   Id of the request.
 * @param[out] out_what  Filled, as far as its struct_size reaches.
 * @read_request
 * @retval MUSTER_E_ARG    No queue or no destination.
 * @retval MUSTER_E_ABI    struct_size has a value that was never released.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_manager_request_read(muster_queue *requests, uint64_t request,
                                                     muster_manager_request *out_what);

/** Copies the ticket of a worker that is to be launched: one line of ASCII, its newline included. It contains the
 * secret.
 * @param[in]  requests   Queue from which the LAUNCH was taken.
 * @param[in]  request    Id of the request.
 * @param[in]  member     Number of the worker.
 * @param[out] out_text   Destination, without a terminator; NULL to get the size only.
 * @param[in]  capacity   Size of the destination, in bytes.
 * @param[out] out_bytes  Length of the ticket.
 * @copied
 * @retval MUSTER_E_ARG    No queue, no destination for the length, or the worker is not one of this LAUNCH.
 * @retval MUSTER_E_STALE  The queue has no open request with this id: it was answered or cancelled before.
 * @retval MUSTER_E_NOMEM  Memory ran out; the request is still open.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_manager_ticket(muster_queue *requests, uint64_t request, uint32_t member,
                                               char *out_text, size_t capacity, size_t *out_bytes);

/** Reports that a worker of a LAUNCH was started. Each worker is reported once, by this function or by
 * muster_manager_worker_failed(), in any order; the last report answers the request.
 * @param[in]  requests       Queue from which the LAUNCH was taken.
 * @param[in]  request        Id of the request.
 * @param[in]  member         Number of the worker.
 * @param[in]  address        Address at which the worker listens; with ::MUSTER_LAUNCH_MASTER_DIALS the one that it
 *                            printed. NULL: the worker reports it to the master itself.
 * @param[in]  address_bytes  Length of the address, at most 1023.
 * @param[in]  data           Any number: it is in each later request about this worker, and in its
 *                            muster_member_info.
 * @param[out] error          Detail on failure, or NULL.
 * @retval MUSTER_OK       The report was accepted.
 * @retval MUSTER_E_ARG    No queue, not a LAUNCH, not a worker of this LAUNCH, a worker that was reported before, or
 *                         an address that is too long, or missing where the master has to dial.
 * @retval MUSTER_E_STALE  The request was answered or cancelled, or never existed: end the started process.
 * @retval MUSTER_E_NOMEM  Memory ran out; the report was not accepted.
 * @retval MUSTER_E_FORKED The queue belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_manager_worker_ready(muster_queue *requests, uint64_t request, uint32_t member,
                                                     const char *address, size_t address_bytes, uint64_t data,
                                                     muster_error *error);

/** Reports that a worker of a LAUNCH could not be started.
 * @param[in]  requests    Queue from which the LAUNCH was taken.
 * @param[in]  request     Id of the request.
 * @param[in]  member      Number of the worker.
 * @param[in]  status      The reason, a negative value.
 * @param[in]  text        Text for people, or NULL.
 * @param[in]  text_bytes  Length of the text, at most 200 bytes.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK       The report was accepted.
 * @retval MUSTER_E_ARG    No queue, not a LAUNCH, not a worker of this LAUNCH, a worker that was reported before, a
 *                         status that is not a failure, or a text that is too long.
 * @retval MUSTER_E_STALE  The queue has no open request with this id: it was answered or cancelled before.
 * @retval MUSTER_E_NOMEM  Memory ran out; the report was not accepted.
 * @retval MUSTER_E_FORKED The queue belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_manager_worker_failed(muster_queue *requests, uint64_t request, uint32_t member,
                                                      muster_status status, const char *text, size_t text_bytes,
                                                      muster_error *error);

/** Reports that a worker has ended, as seen by the process that started it. The cluster detects most deaths by itself;
 * the report adds how the worker ended, and is the first sign for a worker that has not joined.
 * @param[in]  requests    Queue of the manager.
 * @param[in]  cluster     Cluster of the worker.
 * @param[in]  member      Number of the worker in that cluster.
 * @param[in]  text        How the worker ended, for people: "exit code 3"; or NULL.
 * @param[in]  text_bytes  Length of the text, at most 200 bytes.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK          The report was accepted; also if the end was known.
 * @retval MUSTER_E_ARG       No queue, no cluster, a worker that this queue did not launch, or a text that is too long.
 * @retval MUSTER_E_NOT_FOUND No worker ever had this number.
 * @retval MUSTER_E_UNSUPPORTED  This member of the cluster is not its master.
 * @retval MUSTER_E_NOMEM     Memory ran out; the report was not accepted.
 * @retval MUSTER_E_CLOSED    The cluster is over.
 * @retval MUSTER_E_FORKED    The queue belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_manager_worker_ended(muster_queue *requests, muster_cluster *cluster, uint32_t member,
                                                     const char *text, size_t text_bytes, muster_error *error);

/** Answers any request but LAUNCH: it is done.
 * @param[in]  requests       Queue from which the request was taken.
 * @param[in]  request        Id of the request.
 * @param[in]  address        CONNECT, CONNECT_WORKER: the address to dial. Otherwise NULL.
 * @param[in]  address_bytes  Length of the address, at most 1023.
 * @param[out] error          Detail on failure, or NULL.
 * @answered
 * @retval MUSTER_E_ARG    No queue, a LAUNCH, or an address that is missing, not expected or too long.
 * @retval MUSTER_E_NOMEM  Memory ran out; the request is still open.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_manager_request_done(muster_queue *requests, uint64_t request, const char *address,
                                                     size_t address_bytes, muster_error *error);

/** Answers any request: it cannot be done. For a LAUNCH all workers fail that were not reported yet. For a KILL the
 * last event of the worker says that it may still run, and the cluster continues without it.
 * @param[in] requests    Queue from which the request was taken.
 * @param[in] request     Id of the request.
 * @param[in] status      The reason, a negative value.
 * @param[in] text        Text for people, or NULL.
 * @param[in] text_bytes  Length of the text, at most 200 bytes.
 * @answered
 * @retval MUSTER_E_ARG    No queue, a status that is not a failure, or a text that is too long.
 * @retval MUSTER_E_NOMEM  Memory ran out; the request is still open.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_manager_request_fail(muster_queue *requests, uint64_t request, muster_status status,
                                                     const char *text, size_t text_bytes);

#ifdef __cplusplus
}
#endif
#endif
