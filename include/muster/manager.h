/* SPDX-License-Identifier: MIT */
/** @file
 * Cluster managers written by the host: the program itself launches, connects, manages and kills workers.
 *
 * The host registers a name with a queue; a muster_launch with that name in `manager` is its to carry out. What is
 * wanted arrives there as ::MUSTER_REQUEST_MANAGER, each with an id that the host answers now or later, from any
 * thread, and in any order: muster_manager_worker_ready() or muster_manager_worker_failed() once for each worker of a
 * LAUNCH, muster_manager_request_done() for all else, or muster_manager_request_fail(). ::MUSTER_REQUEST_CANCEL says
 * that an unanswered request is no longer wanted: nobody answered in time, or the cluster is over.
 *
 * To launch a worker is to start a program somewhere and to hand it the ticket of its number over a descriptor
 * (muster_manager_ticket()), which holds the secret: never put it on a command line, nor into a file that others may
 * read. The program calls muster_worker_context() and muster_worker_start(). With ::MUSTER_LAUNCH_MASTER_DIALS it
 * prints a line, `muster-worker ADDRESS`: hand that address to muster_manager_worker_ready().
 *
 * What a host does not want to hear of has a default: to connect is to dial the address that is known of the worker, to
 * interrupt is to tell the worker over its link, and to kill is to tell its library's thread there to end the process.
 *
 * KILL asks to end a worker by force: it has not left in time, it has not joined in time, or its link broke and what is
 * left of it must not stay. It is done, and is answered with muster_manager_request_done(), when the worker's processes
 * have ended, or when the system that runs them has taken over to end them and does not fail any more. It is failed,
 * with muster_manager_request_fail(), when they may go on running. Nothing else is to be done for it: the answer ends
 * the worker for the cluster, as muster_manager_worker_ended() does, whichever comes first; the other is harmless. When
 * the worker's end becomes known while the request is unanswered, ::MUSTER_REQUEST_CANCEL takes the request back; so it
 * does after 10 s without an answer, and the worker then counts as not killed.
 *
 * The last event of a worker (::MUSTER_CLUSTER_REMOVED, DEAD, FAILED) has this text: the reason for which the master
 * gave it up, if that was not a broken link ("it did not join within 60 s"); else how it ended, as told by
 * muster_manager_worker_ended(); else "ended by force" where a KILL was done; else how its link ended, and nothing for
 * a worker that left in order. Where a KILL was failed or not answered, "it could not be ended by force: " and the text
 * of the failure follow, and the status of a REMOVED, which is otherwise ::MUSTER_OK, is that of the failure
 * (::MUSTER_TIMEOUT where no answer came).
 *
 * Two ways to take requests, the same underneath: *pulled* with muster_queue_next(), after muster_manager_serve(); or
 * as *callbacks* of a table, run by muster_queue_dispatch() on the thread that calls it, and nowhere else, after
 * muster_manager_serve_ops(). */
#ifndef MUSTER_MANAGER_H
#define MUSTER_MANAGER_H

#include <muster/cluster.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a request wants; bits, or'ed where a host says which it wants to hear of. */
enum muster_manager_operation {
    MUSTER_MANAGER_LAUNCH = 1,         /**< Start workers. Always heard of. */
    MUSTER_MANAGER_CONNECT = 2,        /**< Where does the master dial this worker? Answer with the address. */
    MUSTER_MANAGER_CONNECT_WORKER = 4, /**< Where does worker `from` dial this one? Answer with the address. */
    MUSTER_MANAGER_REGISTER = 8,       /**< It has joined. */
    MUSTER_MANAGER_DEREGISTER = 16,    /**< It is gone, however that came. */
    MUSTER_MANAGER_INTERRUPT = 32, /**< Interrupt what it is doing. Failed with ::MUSTER_E_UNSUPPORTED, the worker is
                                        told over its link, as without this want. */
    MUSTER_MANAGER_KILL = 64,      /**< End the worker by force; see the description of the file. */
    MUSTER_MANAGER_FINALIZE = 128  /**< Nothing more will be asked about it. */
};

/** What is asked. What it points to stays until the request is answered, or its CANCEL is taken off the queue or its
 * callback returns. */
typedef struct muster_manager_request {
    uint32_t struct_size;        /**< sizeof(muster_manager_request) of the caller; in a callback of the library. */
    uint32_t operation;          /**< A ::muster_manager_operation value. */
    uint32_t member;             /**< The worker; LAUNCH: the first one. */
    uint32_t count;              /**< LAUNCH: how many; else 1. */
    uint32_t from;               /**< CONNECT_WORKER: who dials. */
    uint32_t reserved;           /**< Zero. */
    uint64_t data;               /**< The host's own number, from muster_manager_worker_ready(). */
    const muster_launch *launch; /**< LAUNCH: what was asked for, with the defaults filled in. Else NULL. */
    const char *address;         /**< CONNECT, CONNECT_WORKER: where the worker listens, as far as is known;
                                      NUL-terminated. Else NULL. */
    muster_cluster *cluster;     /**< The cluster whose worker it is: the handle that muster_cluster_open() gave, to
                                      compare and for muster_manager_worker_ended(). Borrowed; NULL if the host has
                                      released it. */
    uint64_t cluster_tag;        /**< muster_cluster_config::tag of that cluster. */
} muster_manager_request;

/** A manager as callbacks; run by muster_queue_dispatch() on the thread that calls it, no lock held. They may call
 * Muster. Each answers by the request's id, inside or later. One that is NULL stands for the default. */
typedef struct muster_manager_ops {
    uint32_t struct_size; /**< sizeof(muster_manager_ops) of the caller. */
    uint32_t flags;       /**< Zero. */
    /** Start workers. Not NULL. */
    void (*launch)(void *self, uint64_t request, const muster_manager_request *what);
    /** Tell where the master dials a worker. */
    void (*connect)(void *self, uint64_t request, const muster_manager_request *what);
    /** Tell where a worker dials another. */
    void (*connect_worker)(void *self, uint64_t request, const muster_manager_request *what);
    /** Hear of REGISTER, DEREGISTER and FINALIZE, and INTERRUPT a worker. */
    void (*manage)(void *self, uint64_t request, const muster_manager_request *what);
    /** End a worker by force. */
    void (*kill)(void *self, uint64_t request, const muster_manager_request *what);
    /** The request of that id is no longer wanted; answering it is harmless. */
    void (*cancel)(void *self, uint64_t request);
    /** Last callback of the table, after muster_manager_withdraw() or the end of the context. */
    void (*destroy)(void *self);
} muster_manager_ops;

/** Adds a manager of the host's, in this context only. What it has to do arrives as requests in the queue, to be pulled
 * with muster_queue_next().
 * @param[in]  context     Where it becomes known, to muster_cluster_add().
 * @param[in]  name        1 to 63 letters, digits, '-' or '_', no terminator needed; none that is built in.
 * @param[in]  name_bytes  Its length.
 * @param[in]  operations       ::muster_manager_operation values, or'ed: what it wants to hear of beside LAUNCH.
 * @param[in]  requests    Queue of the same context that the host serves; releasing it withdraws the manager.
 * @param[in]  tag         Returned in muster_completion::tag of every request, CANCEL included: one queue can serve
 *                         several managers.
 * @param[out] error       Detail on failure, or NULL.
 * @served
 * @retval MUSTER_E_ARG     No context or queue, a queue of another context, an unknown want, or no name of that form.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_manager_serve(muster_context *context, const char *name, size_t name_bytes,
                                              uint32_t operations, muster_queue *requests, uint64_t tag,
                                              muster_error *error);

/** Adds a manager of the host's whose requests run callbacks, inside muster_queue_dispatch().
 * @param[in]  context     Where it becomes known, to muster_cluster_add().
 * @param[in]  name        1 to 63 letters, digits, '-' or '_', no terminator needed; none that is built in.
 * @param[in]  name_bytes  Its length.
 * @param[in]  ops         The callbacks; the table is copied.
 * @param[in]  self        Passed to each callback; must stay valid until destroy.
 * @param[in]  requests    Queue of the same context that is dispatched; releasing it withdraws the manager.
 * @param[out] error       Detail on failure, or NULL.
 * @served_ops
 * @retval MUSTER_E_ARG     Something is missing, a queue of another context, or no name of that form.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_manager_serve_ops(muster_context *context, const char *name, size_t name_bytes,
                                                  const muster_manager_ops *ops, void *self, muster_queue *requests,
                                                  muster_error *error);

/** Takes a manager back: launching by its name fails from now on, and unanswered requests are cancelled, as if each had
 * failed with ::MUSTER_E_CLOSED. Workers that are in stay in, with the defaults. Its table is then destroyed, by
 * dispatch: keep dispatching until that has come. Releasing the queue takes the manager back, too, but then no callback
 * of the table runs any more, destroy neither.
 * @param[in] context     Where it was added.
 * @param[in] name        Its name.
 * @param[in] name_bytes  Length of the name.
 * @retval MUSTER_OK           Taken back.
 * @retval MUSTER_E_ARG        No context or name.
 * @retval MUSTER_E_NOT_FOUND  The host serves no such manager.
 * @retval MUSTER_E_FORKED     The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_manager_withdraw(muster_context *context, const char *name, size_t name_bytes);

/** Tells what an unanswered request wants.
 * @param[in]  requests  Queue from which the request was taken.
 * @param[in]  request   Id of the request.
 * @param[out] out_what  Filled, as far as its struct_size goes.
 * @read_request
 * @retval MUSTER_E_ARG    No queue or no destination.
 * @retval MUSTER_E_ABI    A struct_size that was never released.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_manager_request_read(muster_queue *requests, uint64_t request,
                                                     muster_manager_request *out_what);

/** Copies the ticket of a worker that is to be launched: one line of ASCII, its newline included. It holds the secret.
 * @param[in]  requests   Queue the LAUNCH came from.
 * @param[in]  request    Id of the request.
 * @param[in]  member     Number of the worker.
 * @param[out] out_text   Where it goes, no terminator; NULL to learn the size only.
 * @param[in]  capacity   Size of the destination, in bytes.
 * @param[out] out_bytes  Length of the ticket.
 * @copied
 * @retval MUSTER_E_ARG    No queue, no place for the length, or no worker of this LAUNCH.
 * @retval MUSTER_E_STALE  No such request, or it was answered or cancelled.
 * @retval MUSTER_E_NOMEM  Memory ran out; the request is still open.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_manager_ticket(muster_queue *requests, uint64_t request, uint32_t member,
                                               char *out_text, size_t capacity, size_t *out_bytes);

/** Reports one worker of a LAUNCH as started. Each is reported once, here or by muster_manager_worker_failed(), in any
 * order; the request ends with the last.
 * @param[in]  requests       Queue the LAUNCH came from.
 * @param[in]  request        Id of the request.
 * @param[in]  member         Number of the worker.
 * @param[in]  address        Where the worker listens: what it printed, with ::MUSTER_LAUNCH_MASTER_DIALS. NULL: it
 *                            tells the master itself.
 * @param[in]  address_bytes  Its length, at most 1023.
 * @param[in]  data           Any number: comes with each later request about this worker, and in its
 *                            muster_member_info.
 * @param[out] error          Detail on failure, or NULL.
 * @retval MUSTER_OK       Noted.
 * @retval MUSTER_E_ARG    No queue, not a LAUNCH, no worker of it, one that was reported before, or an address that is
 *                         too long, or missing where the master is to dial.
 * @retval MUSTER_E_STALE  No such request, or it was answered or cancelled: end what was started.
 * @retval MUSTER_E_NOMEM  No memory; not noted.
 * @retval MUSTER_E_FORKED The queue belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_manager_worker_ready(muster_queue *requests, uint64_t request, uint32_t member,
                                                     const char *address, size_t address_bytes, uint64_t data,
                                                     muster_error *error);

/** Reports one worker of a LAUNCH as not started.
 * @param[in]  requests    Queue the LAUNCH came from.
 * @param[in]  request     Id of the request.
 * @param[in]  member      Number of the worker.
 * @param[in]  status      Why, a negative value.
 * @param[in]  text        Text for people, or NULL.
 * @param[in]  text_bytes  Length of the text, at most 200 bytes.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK       Noted.
 * @retval MUSTER_E_ARG    No queue, not a LAUNCH, no worker of it, one that was reported before, a status that is no
 *                         failure, or a text that is too long.
 * @retval MUSTER_E_STALE  No such request, or it was answered or cancelled.
 * @retval MUSTER_E_NOMEM  No memory; not noted.
 * @retval MUSTER_E_FORKED The queue belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_manager_worker_failed(muster_queue *requests, uint64_t request, uint32_t member,
                                                      muster_status status, const char *text, size_t text_bytes,
                                                      muster_error *error);

/** Tells that a worker has ended, as whoever started it has seen. The cluster learns of most deaths by itself; this
 * says how it came, and comes first where a worker has not joined.
 * @param[in]  requests    Queue of the manager.
 * @param[in]  cluster     The cluster it is of.
 * @param[in]  member      Number of the worker there.
 * @param[in]  text        How it ended, for people: "exit code 3". Or NULL.
 * @param[in]  text_bytes  Length of the text, at most 200 bytes.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK          Noted; also if it was known.
 * @retval MUSTER_E_ARG       No queue, no cluster, a worker that this queue did not launch, or a text that is too long.
 * @retval MUSTER_E_NOT_FOUND No worker ever had this number.
 * @retval MUSTER_E_UNSUPPORTED  The cluster's member is not its master.
 * @retval MUSTER_E_NOMEM     No memory; not noted.
 * @retval MUSTER_E_CLOSED    The cluster is over.
 * @retval MUSTER_E_FORKED    The queue belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_manager_worker_ended(muster_queue *requests, muster_cluster *cluster, uint32_t member,
                                                     const char *text, size_t text_bytes, muster_error *error);

/** Answers any request but LAUNCH: it is done.
 * @param[in]  requests       Queue from which the request was taken.
 * @param[in]  request        Id of the request.
 * @param[in]  address        CONNECT, CONNECT_WORKER: the address to dial. Else NULL.
 * @param[in]  address_bytes  Its length, at most 1023.
 * @param[out] error          Detail on failure, or NULL.
 * @answered
 * @retval MUSTER_E_ARG    No queue, a LAUNCH, or an address that is missing, not wanted or too long.
 * @retval MUSTER_E_NOMEM  Memory ran out; the request is still open.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_manager_request_done(muster_queue *requests, uint64_t request, const char *address,
                                                     size_t address_bytes, muster_error *error);

/** Answers any request: it cannot be done. Of a LAUNCH all workers fail that were not reported yet. Of a KILL: the
 * worker's last event says that it may still run, and the cluster goes on without it.
 * @param[in] requests    Queue from which the request was taken.
 * @param[in] request     Id of the request.
 * @param[in] status      Why, a negative value.
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
