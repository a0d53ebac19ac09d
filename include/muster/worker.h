/* SPDX-License-Identifier: MIT */
/** @file
 * The worker's side of a cluster: the context that its ticket describes, and joining. Afterwards it has the same kind
 * of handle as the master, for the functions of cluster.h. */
#ifndef MUSTER_WORKER_H
#define MUSTER_WORKER_H

#include <muster/cluster.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Flags of muster_worker_config::flags. */
enum muster_worker_flag {
    MUSTER_WORKER_EXIT_WITH_MASTER = 1, /**< When the master is gone, the thread of the library sends SIGTERM and then
                                             SIGKILL to this process, also while it computes. */
    MUSTER_WORKER_RAISE_INTERRUPT = 2   /**< An interrupt also raises SIGINT in this process. */
};

/** How to start as a worker; all zero means the defaults named here. */
typedef struct muster_worker_config {
    uint32_t struct_size;       /**< sizeof(muster_worker_config) of the caller. */
    uint32_t flags;             /**< ::muster_worker_flag values, or'ed. */
    int64_t exit_grace_ns;      /**< ::MUSTER_WORKER_EXIT_WITH_MASTER: time between SIGTERM and SIGKILL; 0: 2 s. */
    int32_t report_fd_plus_one; /**< ::MUSTER_LAUNCH_MASTER_DIALS: descriptor to which the line with the address is
                                     written for the launcher, plus 1; 0: descriptor 1. */
    uint32_t max_connections;   /**< As muster_cluster_config::max_connections; a worker has one link. */
    muster_queue *queue; /**< Queue that receives ::MUSTER_EVENT_READY when muster_cluster_next_event() has an event.
                            NULL: none. */
    uint64_t tag;        /**< Returned in muster_completion::tag. */
    /* For a worker that was not launched, which the manager `elastic` admits: its context is not made from a ticket,
     * but has the secret. NUL-terminated. */
    const char *master;           /**< Address of the master. NULL: the worker was launched, or `store` is given. */
    const char *store;            /**< URL of a store that has the address of the master, as for muster_store_open(). */
    const char *name;             /**< Name of the cluster in the store. NULL: `muster`. */
    const char *listen;           /**< Address at which it listens; empty: none. NULL: `tcp://127.0.0.1:0`. */
    uint64_t max_broadcast_bytes; /**< Maximum bytes of broadcasts from other members that wait to be taken in this
                                     process; 0: 1 GiB. */
} muster_worker_config;

/** Makes the context of a worker from the ticket that its launcher has passed; the secret of the ticket becomes that of
 * the context.
 * @param[in]  config              How to start the context; it must not have a secret. NULL means all defaults.
 * @param[in]  ticket_fd_plus_one  Descriptor from which the ticket is read, one line, plus 1. Bytes after the line
 *                                 are not read, and the descriptor stays open. 0: the descriptor in the environment
 *                                 variable MUSTER_WORKER_FD, which is closed afterwards (0 to 2 become /dev/null);
 *                                 or the ticket in the variable MUSTER_WORKER_TICKET, whose value is wiped.
 * @param[out] out_context         New context; the caller owns one reference.
 * @param[out] error               Detail on failure, or NULL.
 * @retval MUSTER_OK           The context was made.
 * @retval MUSTER_E_ARG        A value is out of range, or the config has a secret.
 * @retval MUSTER_E_ABI        The config has non-zero fields that are newer than this library.
 * @retval MUSTER_E_PROTOCOL   The line is not a ticket of this version.
 * @retval MUSTER_E_NOMEM      Memory or threads ran out.
 * @retval MUSTER_E_LIMIT      Descriptors ran out.
 * @retval MUSTER_E_SYSTEM     The ticket cannot be read, or the loop could not start.
 * @retval MUSTER_TIMEOUT      The master did not hand out the ticket within 60 s; the error is filled. This status and
 *                             the following ones occur only where the ticket has to be fetched, see `mpi` above.
 * @retval MUSTER_E_UNREACHABLE The master cannot be reached.
 * @retval MUSTER_E_NOT_FOUND  There is no ticket: this process was not launched as a worker; or the host of the
 *                             master is unknown.
 * @retval MUSTER_E_PERMISSION The system denies this user the connection to the master.
 * @retval MUSTER_E_AUTH       The master no longer accepts the key of the launch.
 * @retval MUSTER_E_STALE      The master no longer expects this worker.
 * @retval MUSTER_E_EXISTS     Another process has already fetched the ticket of this worker.
 * @retval MUSTER_E_PEER       The connection to the master broke.
 * @threads{any} @blocks{until the line has been read; where the ticket has to be fetched, up to 60 s more} @since 0.1
 */
MUSTER_API muster_status muster_worker_context(const muster_context_config *config, int32_t ticket_fd_plus_one,
                                               muster_context **out_context, muster_error *error);

/** Joins the cluster as a worker: listens, connects to the master, and returns when this member knows its number.
 * @param[in]  context      Context of muster_worker_context(), or with muster_worker_config::master or store one that
 *                          has the secret of the cluster. A transport that this program serves itself must be
 *                          registered before the call and served on another thread during it; otherwise use
 *                          muster_worker_start_begin().
 * @param[in]  config       Options; copied. NULL means all defaults.
 * @param[in]  timeout_ns   Maximum wait for the master, at least 1; -1: no limit.
 * @param[out] out_cluster  The cluster; the caller owns one reference.
 * @param[out] error        Detail on failure, or NULL.
 * @retval MUSTER_OK            This process has joined as a worker.
 * @retval MUSTER_TIMEOUT       The master did not accept this worker in time; the error is filled.
 * @retval MUSTER_E_ARG         A value is missing or out of range; or the context has no ticket.
 * @retval MUSTER_E_ABI         The config has non-zero fields that are newer than this library.
 * @retval MUSTER_E_EXISTS      This context already belongs to the cluster; or the address to listen at is in use.
 * @retval MUSTER_E_ADDRESS     An address of the ticket cannot be parsed.
 * @retval MUSTER_E_NOT_FOUND   No transport of that scheme.
 * @retval MUSTER_E_PLUGIN      The plug-in for that scheme cannot be loaded.
 * @retval MUSTER_E_UNREACHABLE No process answers at the address of the master.
 * @retval MUSTER_E_AUTH        The master has another secret.
 * @retval MUSTER_E_PROTOCOL    The process at that address is not a master of this version.
 * @retval MUSTER_E_PEER        The master ended during the call.
 * @retval MUSTER_E_STALE       The master no longer expects this worker, or admits no worker that was not launched.
 * @retval MUSTER_E_PERMISSION  The system does not permit this user to listen or to dial.
 * @retval MUSTER_E_LIMIT       No descriptor is left; or the maximum number of workers that join by themselves is
 *                              reached.
 * @retval MUSTER_E_UNSUPPORTED The transport cannot listen.
 * @retval MUSTER_E_NOMEM       Memory or threads ran out.
 * @retval MUSTER_E_SYSTEM      Another system call failed.
 * @retval MUSTER_E_CLOSED      The context or the queue is closed.
 * @retval MUSTER_E_CANCELED    muster_context_cancel() was called during the wait.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called inside a callback of the engine, or the calling thread has to serve the
 *                              transport.
 * @retval MUSTER_E_FORKED      The context belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_worker_start(muster_context *context, const muster_worker_config *config,
                                             int64_t timeout_ns, muster_cluster **out_cluster, muster_error *error);

/** Begins to join the cluster as a worker, for a program that must not wait, such as one whose only thread serves the
 * transport by which it joins. The first event is ::MUSTER_CLUSTER_JOINED with the number of this member; or the only
 * event is ::MUSTER_CLUSTER_FAILED with a status of muster_worker_start(). Until then this member knows no other
 * members, and can neither dial nor broadcast. If there is a store, it is opened in the background; if that fails, the
 * event says why. A worker that has failed to join, or was closed before it had joined, may begin again.
 * @param[in]  context      As for muster_worker_start(); a transport that this program serves is registered before
 *                          the call.
 * @param[in]  config       Options; copied. NULL means all defaults.
 * @param[in]  timeout_ns   Maximum time until it has joined, at least 1; -1: no limit.
 * @param[out] out_cluster  The cluster; the caller owns one reference.
 * @param[out] error        Detail on failure, or NULL.
 * @retval MUSTER_OK            Begun; the event will follow.
 * @retval MUSTER_E_ARG         A value is missing or out of range; or the context has no ticket.
 * @retval MUSTER_E_ABI         The config has non-zero fields that are newer than this library.
 * @retval MUSTER_E_EXISTS      This context already belongs to the cluster; or the address to listen at is in use.
 * @retval MUSTER_E_ADDRESS     An address of the ticket cannot be parsed.
 * @retval MUSTER_E_NOT_FOUND   No transport of that scheme, or no such host or folder.
 * @retval MUSTER_E_PLUGIN      The plug-in for that scheme cannot be loaded.
 * @retval MUSTER_E_PROTOCOL    The ticket is invalid.
 * @retval MUSTER_E_PERMISSION  The system does not permit this user to listen.
 * @retval MUSTER_E_LIMIT       No descriptor is left.
 * @retval MUSTER_E_UNSUPPORTED The transport cannot listen.
 * @retval MUSTER_E_NOMEM       Memory or threads ran out.
 * @retval MUSTER_E_SYSTEM      Another system call failed.
 * @retval MUSTER_E_CLOSED      The context or the queue is closed.
 * @retval MUSTER_E_FORKED      The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_worker_start_begin(muster_context *context, const muster_worker_config *config,
                                                   int64_t timeout_ns, muster_cluster **out_cluster,
                                                   muster_error *error);

#ifdef __cplusplus
}
#endif
#endif
