/* SPDX-License-Identifier: MIT */
/** @file
 * The cluster: a master, the workers it has launched, and streams between any two of them.
 *
 * A master opens a cluster and adds workers. A *manager* starts them: a built-in one, see below, or one that the host
 * program implements, see manager.h. Each worker gets a *ticket* from the process that starts it, over a descriptor and
 * never on a command line. With the ticket the worker makes a context (muster_worker_context()) and joins the cluster:
 * muster_worker_start() returns when it knows its number, muster_worker_start_begin() begins that. Members are
 * numbered: the master is 0, workers count from 1, and no number is used twice. Master and workers hold the same kind
 * of handle.
 *
 * Each worker has one link to the master, which belongs to the library. Over it members are notified of each other,
 * interrupted and removed, even while they compute. By default the worker dials the master; where only the other
 * direction is open, the master dials the worker (::MUSTER_LAUNCH_MASTER_DIALS). The bytes of the host travel on
 * streams of their own, which any two members open on demand: muster_cluster_dial() on one side,
 * ::MUSTER_CLUSTER_STREAM on the other. If the first cannot reach the second, the library lets the second dial instead;
 * the caller does not notice.
 *
 * With MUSTER_PROGRESS=1 in its environment a master that waits for workers for more than a second (to join, to receive
 * a broadcast, to end) shows that in one line on stderr, if that is a terminal.
 *
 * Built-in managers, and the options that they read from muster_launch::options (`name=value`, separated by semicolons
 * or newlines; in a value of several words, '...' and "..." keep words together):
 * - `local`: child processes on this host. It has no options.
 * - `ssh`: one OpenSSH client for each worker. `hosts` (required): `[count*][user@]host[:port]`, separated by
 *   commas; workers are assigned to the hosts in this order, round-robin. `flags`: options for ssh, before those of
 *   the library, which only disable prompts and set time-outs (BatchMode, ConnectTimeout, ServerAliveInterval).
 *   `ssh`: the program. `tunnel`: `yes`, workers reach the master through the connection of ssh, which needs no
 *   other connection between the hosts; `no`; or `auto`, the default: yes, if the master listens on a loopback
 *   address. `parallel`: maximum logins at a time, 10. `argv`, `envp` and `directory` are those of the remote host,
 *   where a POSIX shell starts the worker; they and the ticket are sent to it on standard input. The environment is
 *   that of the login.
 * - `slurm`: one srun for all workers of a launch. `flags`: options for it; `srun`: the program. The ticket is its
 *   standard input.
 * - `mpi`: one mpiexec for all workers of a launch. `flags`: options for it; `mpiexec`: the program. The workers
 *   need not be MPI programs. Since mpiexec passes its input to one rank only, the ticket is in the environment
 *   variable MUSTER_WORKER_TICKET, which stays in the environment of mpiexec and its helpers. The variable therefore
 *   does not contain the secret of the cluster, but a key for this launch alone, with which each rank fetches its
 *   own ticket from the master, once, over a sealed connection, inside muster_worker_context(). The master accepts
 *   the key only while a rank of the launch has not joined. muster_worker_context() removes the variable from its
 *   process. With ::MUSTER_LAUNCH_MASTER_DIALS, and where the master listens at an address that is neither tcp nor
 *   unix, the variable contains the secret. Most mpiexec end the whole job when one rank dies; that of Open MPI does
 *   not with the flag `--enable-recovery`.
 * - `command`: a queueing system starts the workers of a launch, as tasks of one job. `submit` (required): the command
 *   that takes a script, in which `{script}` is its file (by default the last word), `{count}` the number of workers,
 *   `{first}` and `{last}` the numbers of the first and last task. `rank`: the environment variable in which a task
 *   finds its number; not needed for one worker. `first`: number of the first task, 0 or 1; 0 by default. `cancel`: the
 *   command that ends the job, with its number in place of `{job}`: the first digits that `submit` prints, or with
 *   `job=word` the first word. `folder`: where the script is made, for this user alone, until the workers are gone;
 *   TMPDIR or /tmp by default. It has a key as that of `mpi` in place of the secret. For SGE `submit=qsub -t 1-{count};
 *   rank=SGE_TASK_ID; first=1; cancel=qdel {job}`, for Slurm's queue `submit=sbatch --array=0-{last};
 *   rank=SLURM_ARRAY_TASK_ID; cancel=scancel {job}`; the guide has those of PBS, LSF and HTCondor. Jobs may wait
 *   longer than muster_cluster_config::join_timeout_ns: give it a larger value.
 * - `elastic`: starts no process. Up to `count` workers at a time may join by themselves: programs that know the
 *   secret and the address of the master (muster_worker_config::master), or a store in which they find it. `store`:
 *   the URL of that store; `name`: the name of the cluster in it, `muster` by default. They have no numbers before
 *   they join: *out_first is 0. A further muster_cluster_add() replaces the settings for workers that join from then
 *   on.
 *
 * Lines that srun, mpiexec, ssh and the programs that they start write go to descriptors 1 and 2 of this process.
 * Workers of `slurm`, `mpi`, `command` and `elastic` are killed by the thread of their own library, at the request of
 * the master.
 *
 * Events are delivered in order by muster_cluster_next_event(). A cluster has a thread of its own, `muster-cluster`,
 * until it is over; in an external context that thread also drives the engine while it waits. */
#ifndef MUSTER_CLUSTER_H
#define MUSTER_CLUSTER_H

#include <muster/process.h>
#include <muster/store.h>
#include <muster/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Opaque; one member's view of a cluster, made by muster_cluster_open() or muster_worker_start(). */
typedef struct muster_cluster muster_cluster;

/** Opaque; bytes that another member has broadcast, see ::MUSTER_CLUSTER_BROADCAST. */
typedef struct muster_broadcast muster_broadcast;

/** Member numbers with a fixed meaning. */
enum muster_cluster_member_id {
    MUSTER_CLUSTER_MASTER = 0 /**< The member that opened the cluster. */
};

/** The pairs of members between which streams may be opened. */
enum muster_cluster_topology {
    MUSTER_CLUSTER_ALL_TO_ALL = 0,    /**< Any two members. */
    MUSTER_CLUSTER_MASTER_WORKER = 1, /**< The master and each worker. */
    MUSTER_CLUSTER_TREE = 2,          /**< Each member and its parent; the parent of n is (n - 1) / 2. */
    MUSTER_CLUSTER_CUSTOM = 3         /**< The master and each worker, and two workers of which one names the
                                           muster_launch::ident of the other in its muster_launch::connect_idents. */
};

/** How to open a cluster; all zero means the defaults named here. */
typedef struct muster_cluster_config {
    uint32_t struct_size;     /**< sizeof(muster_cluster_config) of the caller. */
    uint32_t flags;           /**< Zero. */
    uint32_t topology;        /**< A ::muster_cluster_topology value. */
    uint32_t max_connections; /**< Maximum number of connections that the cluster may have open in this process: a
                                   link to each worker, expected workers included, streams until they are released, and
                                   connections that are being dialled. A request that would exceed it ends with
                                   ::MUSTER_E_LIMIT. 0: the soft limit of open files (RLIMIT_NOFILE) at the time of the
                                   call, less 64. */
    const char *listen;       /**< Address at which the master listens for its workers. NULL: `tcp://127.0.0.1:0`. */
    uint64_t listen_bytes;    /**< Length of the address. */
    int64_t join_timeout_ns;  /**< Time from the launch of a worker until it has joined; 0: 60 s. */
    int64_t leave_timeout_ns; /**< Time that a removed worker has to leave before it is killed; 0: 10 s. */
    muster_queue *queue; /**< Queue that receives ::MUSTER_EVENT_READY when muster_cluster_next_event() has an event.
                            NULL: none. */
    uint64_t tag;        /**< Returned in muster_completion::tag. */
    uint64_t max_broadcast_bytes; /**< Maximum bytes of broadcasts from other members that wait to be taken in this
                                     process; 0: 1 GiB. */
    const char *store;    /**< Address at which the master serves the store of the cluster, see muster_cluster_store().
                             NULL: with `listen` of tcp the same host and any port; with unix, shm and inproc an abstract
                             Unix socket; other transports have no default. */
    uint64_t store_bytes; /**< Length of the address. */
    uint64_t reserved1;   /**< Zero. */
} muster_cluster_config;

/** Flags of muster_launch::flags. */
enum muster_launch_flag {
    MUSTER_LAUNCH_MASTER_DIALS = 1, /**< The master dials the workers; they do not dial it. */
    MUSTER_LAUNCH_NO_LISTEN = 2 /**< Workers do not listen: they dial the member that opens a stream to them. Two such
                                     workers cannot have a stream between them. */
};

/** What to launch; zero means the default named here. Strings are NUL-terminated, as execve() expects them. */
typedef struct muster_launch {
    uint32_t struct_size;    /**< sizeof(muster_launch) of the caller. */
    uint32_t flags;          /**< ::muster_launch_flag values, or'ed. */
    const char *manager;     /**< Name of the manager that starts them: built in, see above, or one of the host.
                                  NULL: `local`. */
    uint32_t count;          /**< Number of workers, 1 to 65536. */
    uint32_t reserved;       /**< Zero. */
    const char *const *argv; /**< Program and arguments, terminated by NULL. It may be NULL for `elastic` and for a
                                  manager of the host. */
    const char *const
        *envp;             /**< `NAME=value`, terminated by NULL: added to the environment of this process. Or NULL. */
    const char *directory; /**< Working directory of the workers; NULL: that of this process. */
    const char *listen;    /**< Address at which a worker listens; `{}` stands for its number. NULL:
                                `tcp://127.0.0.1:0`. */
    const char *ident;     /**< ::MUSTER_CLUSTER_CUSTOM: names of the workers; `{}` stands for the number of a
                                worker. NULL: none. At most 255 bytes. */
    const char *connect_idents; /**< ::MUSTER_CLUSTER_CUSTOM: names of the workers with which they may have streams,
                                     separated by commas. NULL: none. At most 4095 bytes. */
    const char *options;        /**< Options of the manager, in its own syntax. NULL: none. At most 4095 bytes. */
    uint64_t reserved1[4];      /**< Zero. */
} muster_launch;

/** Opens a cluster; the caller is its master.
 * @param[in]  context      Context of its streams; the cluster keeps it alive. Its secret is that of the workers.
 * @param[in]  config       Options; copied. NULL means all defaults.
 * @param[out] out_cluster  The cluster; the caller owns one reference.
 * @param[out] error        Detail on failure, or NULL.
 * @retval MUSTER_OK            The cluster is open.
 * @retval MUSTER_TIMEOUT       The host that serves the transport of `listen` did not answer in time; nothing was
 *                              opened.
 * @retval MUSTER_E_ARG         A value is missing or out of range; the error names it.
 * @retval MUSTER_E_ABI         The config has newer non-zero fields, or a plug-in's tables do not fit this library.
 * @retval MUSTER_E_ADDRESS     The address cannot be parsed; the error says where.
 * @retval MUSTER_E_NOT_FOUND   No transport of that scheme, or no such host or folder.
 * @retval MUSTER_E_PLUGIN      The plug-in for that scheme cannot be loaded.
 * @retval MUSTER_E_EXISTS      The address is in use.
 * @retval MUSTER_E_PERMISSION  The system denies this to this user, or other users can write to the socket's folder.
 * @retval MUSTER_E_LIMIT       No descriptor is left.
 * @retval MUSTER_E_UNSUPPORTED The transport is served by a host that cannot listen.
 * @retval MUSTER_E_NOMEM       Memory or threads ran out.
 * @retval MUSTER_E_SYSTEM      Another system call failed.
 * @retval MUSTER_E_CLOSED      The context or the queue is closed.
 * @retval MUSTER_E_CANCELED    muster_context_cancel() was called during the wait.
 * @retval MUSTER_E_WOULD_DEADLOCK  The calling thread has to serve the transport of `listen`: use
 *                              muster_cluster_open_begin().
 * @retval MUSTER_E_FORKED      The context belongs to the parent process.
 * @threads{any} @blocks{as muster_transport_listen()} @since 0.1 */
MUSTER_API muster_status muster_cluster_open(muster_context *context, const muster_cluster_config *config,
                                             muster_cluster **out_cluster, muster_error *error);

/** Begins to open a cluster, as muster_cluster_open() does. ::MUSTER_DONE_OPEN has the cluster, or the status
 * and the error that muster_cluster_open() would have returned. muster_queue_cancel_operation() cancels it.
 * @param[in]  context  Context of its streams; the cluster keeps it alive.
 * @param[in]  config   Options; copied. NULL means all defaults.
 * @param[in]  queue    Queue of the same context for the completion.
 * @param[in]  tag      Returned in muster_completion::tag of the completion.
 * @param[out] error    Detail on failure, or NULL.
 * @retval MUSTER_OK        Begun; exactly one completion follows, perhaps before this call returns.
 * @retval MUSTER_AGAIN     The queue has no free slot; nothing was begun.
 * @retval MUSTER_E_ARG     A value is missing or out of range; the error names it.
 * @retval MUSTER_E_ABI     The config has newer non-zero fields.
 * @retval MUSTER_E_NOMEM   Memory or threads ran out.
 * @retval MUSTER_E_CLOSED  The context or a queue is closed.
 * @retval MUSTER_E_FORKED  The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_cluster_open_begin(muster_context *context, const muster_cluster_config *config,
                                                   muster_queue *queue, uint64_t tag, muster_error *error);

/** Adds workers. Each has events of its own: ::MUSTER_CLUSTER_LAUNCHED, CONNECTED and JOINED, or FAILED in their place.
 * Their numbers are consecutive.
 *
 * An `elastic` launch with a store publishes the address of the master in that store; this call only begins that. If it
 * fails, ::MUSTER_CLUSTER_FAILED with the member UINT32_MAX says why, and the previous launch remains in force.
 * @param[in]  cluster    Cluster, on the master.
 * @param[in]  launch     What to launch; copied.
 * @param[out] out_first  Number of the first worker; or NULL.
 * @param[out] error      Detail on failure, or NULL.
 * @retval MUSTER_OK            The launch has begun.
 * @retval MUSTER_E_ARG         A value or an option is missing or out of range; the error names it.
 * @retval MUSTER_E_ABI         The struct has non-zero fields that are newer than this library.
 * @retval MUSTER_E_NOT_FOUND   There is no manager of that name.
 * @retval MUSTER_E_UNSUPPORTED This member is not the master.
 * @retval MUSTER_E_LIMIT       All numbers are used, or more than 65536 workers, or more connections than
 *                              muster_cluster_config::max_connections permits.
 * @retval MUSTER_E_NOMEM       Memory ran out; nothing was begun.
 * @retval MUSTER_E_CLOSED      The cluster or its context is closed.
 * @retval MUSTER_E_FORKED      The cluster belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_cluster_add(muster_cluster *cluster, const muster_launch *launch, uint32_t *out_first,
                                            muster_error *error);

/** Adds workers, as muster_cluster_add() does, and reports when that is complete, which takes time only for an
 * `elastic` launch with a store. ::MUSTER_DONE_CALL follows when the address of the master is published, with the
 * number of the first worker in its bytes, or with the status and the detail of the failure of the store.
 * muster_queue_cancel_operation() cancels it.
 * @param[in]  cluster  Cluster, on the master.
 * @param[in]  launch   What to launch; copied.
 * @param[in]  queue    Queue of the same context for the completion.
 * @param[in]  tag      Returned in muster_completion::tag.
 * @param[out] error    Detail on failure, or NULL.
 * @begun{::MUSTER_DONE_CALL}
 * @retval MUSTER_E_ARG         A value is missing or out of range; the error names it.
 * @retval MUSTER_E_ABI         The struct has non-zero fields that are newer than this library.
 * @retval MUSTER_E_UNSUPPORTED This member is not the master.
 * @retval MUSTER_E_NOMEM       Memory or threads ran out.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_cluster_add_begin(muster_cluster *cluster, const muster_launch *launch,
                                                  muster_queue *queue, uint64_t tag, muster_error *error);

/** Removes a worker: it is requested to leave (it receives ::MUSTER_CLUSTER_LEAVE), and killed if it has not left when
 * the grace is over. ::MUSTER_CLUSTER_REMOVED follows when it is gone. A worker that has not joined is killed at once.
 * A further call, for instance with a shorter grace, replaces the earlier one.
 * @param[in] cluster   Cluster, on the master.
 * @param[in] member    Number of the worker.
 * @param[in] grace_ns  Time to leave; 0: none, negative: muster_cluster_config::leave_timeout_ns.
 * @retval MUSTER_OK            The worker is being removed.
 * @retval MUSTER_E_ARG         cluster is NULL, or the number is that of the master.
 * @retval MUSTER_E_NOT_FOUND   No worker ever had this number.
 * @retval MUSTER_E_STALE       The worker is already gone.
 * @retval MUSTER_E_UNSUPPORTED This member is not the master.
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @retval MUSTER_E_CLOSED      The cluster or its context is closed.
 * @retval MUSTER_E_FORKED      The cluster belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_cluster_remove(muster_cluster *cluster, uint32_t member, int64_t grace_ns);

/** Interrupts a worker: it receives ::MUSTER_CLUSTER_INTERRUPT, and with ::MUSTER_WORKER_RAISE_INTERRUPT the signal
 * SIGINT, which the thread of its library sends to its own process. A manager of the host may interrupt it in another
 * way.
 * @param[in] cluster  Cluster, on the master.
 * @param[in] member   Number of the worker.
 * @retval MUSTER_OK            The worker will be notified.
 * @retval MUSTER_E_ARG         cluster is NULL, or the number is that of the master.
 * @retval MUSTER_E_NOT_FOUND   No worker ever had this number.
 * @retval MUSTER_E_STALE       The worker is gone, or has not joined yet.
 * @retval MUSTER_E_UNSUPPORTED This member is not the master.
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @retval MUSTER_E_CLOSED      The cluster or its context is closed.
 * @retval MUSTER_E_FORKED      The cluster belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_cluster_interrupt(muster_cluster *cluster, uint32_t member);

/** The kind of an event; the value of muster_cluster_event::kind. */
enum muster_cluster_event_kind {
    MUSTER_CLUSTER_LAUNCHED = 1,  /**< Master: the worker was started; it has not connected yet. */
    MUSTER_CLUSTER_CONNECTED = 2, /**< Master: the worker has a link, and both sides have proved the secret. */
    MUSTER_CLUSTER_JOINED = 3,    /**< Master: the worker knows its number; streams can be opened. Worker, after
                                       muster_worker_start_begin(): this worker has joined. */
    MUSTER_CLUSTER_FAILED = 4,    /**< Master: the worker did not join; status and text say why. Worker, after
                                       muster_worker_start_begin(): this worker did not join (member is UINT32_MAX if
                                       it has no number yet), and its cluster is over. Master, with member UINT32_MAX: the
                                     address of the master could not be published, see muster_cluster_add(). */
    MUSTER_CLUSTER_DEAD = 5, /**< Master: the worker ended unexpectedly; the text says how. Worker: another worker that
                                this member had contact with did. */
    MUSTER_CLUSTER_REMOVED = 6,      /**< As DEAD, for a worker that has left or was removed. */
    MUSTER_CLUSTER_STREAM = 7,       /**< The member has opened a stream to this one; the event has the stream. */
    MUSTER_CLUSTER_INTERRUPT = 8,    /**< Worker: the master interrupts the current work. */
    MUSTER_CLUSTER_LEAVE = 9,        /**< Worker: the worker has to leave, by muster_cluster_close() or by ending. */
    MUSTER_CLUSTER_MASTER_GONE = 10, /**< Worker: the master is gone, and the cluster is over. */
    MUSTER_CLUSTER_BROADCAST = 11    /**< The member has broadcast bytes to this one; the event has the bytes. */
};

/** One event. */
typedef struct muster_cluster_event {
    uint32_t kind;        /**< A ::muster_cluster_event_kind value. */
    uint32_t member;      /**< Number of the member that the event is about. */
    muster_status status; /**< FAILED, DEAD, MASTER_GONE: the reason. REMOVED: the reason why the manager failed to kill
                               the worker, if it had to. Otherwise ::MUSTER_OK. */
    uint32_t label_bytes; /**< STREAM, BROADCAST: length of the label. */
    muster_stream *stream; /**< STREAM: the stream; the caller owns one reference. Otherwise NULL. */
    uint32_t text_bytes;   /**< Length of the text, without the terminator. */
    uint32_t reserved;     /**< Zero. */
    char label[256];       /**< STREAM, BROADCAST: the label that the other side gave: any bytes, followed by a NUL. */
    char text[232];        /**< Text for people, or empty; NUL-terminated UTF-8. */
    muster_broadcast *broadcast; /**< BROADCAST: holds the bytes; the caller owns one reference. Otherwise NULL. */
    const void *data;            /**< BROADCAST: the bytes, read-only, valid until muster_broadcast_release(). NULL if
                                      empty. */
    uint64_t size_bytes;         /**< BROADCAST: number of bytes. */
} muster_cluster_event;

/** Takes the oldest event.
 * @param[in]  cluster     Cluster to query.
 * @param[in]  timeout_ns  Maximum wait; 0 checks once, -1: no limit.
 * @param[out] out_event   Filled on ::MUSTER_OK.
 * @retval MUSTER_OK         An event was taken.
 * @retval MUSTER_AGAIN      There is no event, and the timeout was 0.
 * @retval MUSTER_TIMEOUT    No event arrived in time.
 * @retval MUSTER_E_ARG      No cluster or no destination.
 * @retval MUSTER_E_CLOSED   The cluster is over, and all events were taken.
 * @retval MUSTER_E_CANCELED muster_cluster_cancel() was called while this call waited.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called inside a callback of the engine, with a timeout.
 * @retval MUSTER_E_FORKED   The cluster belongs to the parent process.
 * @threads{any; each event goes to one caller} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_cluster_next_event(muster_cluster *cluster, int64_t timeout_ns,
                                                   muster_cluster_event *out_event);

/** Opens the store that the members of a cluster share, for their own keys, a rendezvous or a group
 * (muster_group_config::cluster). The master serves it in memory from the first of these calls on, until the cluster
 * ends; then the store is lost, and open handles of it fail. Members have to reach the address of the master: with
 * ::MUSTER_LAUNCH_MASTER_DIALS set muster_cluster_config::store to an address that they reach.
 * @param[in]  cluster     Cluster of this member, which has joined.
 * @param[in]  timeout_ns  Maximum wait, at least 1; -1: no limit.
 * @param[out] out_store   The store; the caller owns one reference.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK            The store is open.
 * @retval MUSTER_TIMEOUT       The master did not answer in time.
 * @retval MUSTER_E_ARG         A value is missing or out of range; the error names it.
 * @retval MUSTER_E_NOT_FOUND   This member has not joined yet, or the master has no address for the store.
 * @retval MUSTER_E_UNSUPPORTED The cluster uses a transport for which muster_cluster_config::store has to be set.
 * @retval MUSTER_E_ADDRESS     muster_cluster_config::store cannot be parsed.
 * @retval MUSTER_E_EXISTS      Its address is in use.
 * @retval MUSTER_E_UNREACHABLE The store cannot be reached from here.
 * @retval MUSTER_E_PERMISSION  The master may not listen there.
 * @retval MUSTER_E_PEER        The master is gone, or the connection to the store broke.
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @retval MUSTER_E_LIMIT       No descriptor is left.
 * @retval MUSTER_E_SYSTEM      A system call failed; see muster_error::os_errno.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called inside a callback of the engine.
 * @retval MUSTER_E_CANCELED    muster_context_cancel() was called during the wait.
 * @retval MUSTER_E_CLOSED      The cluster or its context is closed.
 * @retval MUSTER_E_FORKED      The cluster belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_cluster_store(muster_cluster *cluster, int64_t timeout_ns, muster_store **out_store,
                                              muster_error *error);

/** Begins to open the store of a cluster, as muster_cluster_store() does. ::MUSTER_DONE_OPEN has the store, or the
 * status and the detail of the failure. muster_queue_cancel_operation() cancels it.
 * @param[in]  cluster     Cluster of this member, which has joined.
 * @param[in]  timeout_ns  Maximum time, at least 1; -1: no limit.
 * @param[in]  queue       Queue of the same context for the completion.
 * @param[in]  tag         Returned in muster_completion::tag.
 * @param[out] error       Detail on failure, or NULL.
 * @begun{::MUSTER_DONE_OPEN}
 * @retval MUSTER_E_ARG     A value is missing or out of range, or the queue is of another context; the error names it.
 * @retval MUSTER_E_NOMEM   Memory or threads ran out.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_cluster_store_begin(muster_cluster *cluster, int64_t timeout_ns, muster_queue *queue,
                                                    uint64_t tag, muster_error *error);

/** Cancels the current waits in muster_cluster_next_event(), muster_cluster_dial(), muster_cluster_broadcast() and
 * muster_cluster_close().
 * @param[in] cluster  Cluster whose waiters return ::MUSTER_E_CANCELED.
 * @retval MUSTER_OK       Cancelled; also if no thread waited.
 * @retval MUSTER_E_ARG    No cluster.
 * @retval MUSTER_E_FORKED The cluster belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_cluster_cancel(muster_cluster *cluster);

/** Opens a stream to another member, which receives ::MUSTER_CLUSTER_STREAM. Two members may have any number of
 * streams.
 * @param[in]  cluster      Cluster of this member.
 * @param[in]  member       Number of the other member.
 * @param[in]  label        Label that the other side receives with the stream: any bytes. NULL if empty.
 * @param[in]  label_bytes  Length of the label, at most 255.
 * @param[in]  timeout_ns   Maximum wait, at least 1; -1: no limit.
 * @param[out] out_stream   The stream; the caller owns one reference.
 * @param[out] error        Detail on failure, or NULL.
 * @retval MUSTER_OK            The stream is open.
 * @retval MUSTER_TIMEOUT       The stream could not be opened in time; nothing was opened.
 * @retval MUSTER_E_ARG         A value is missing or out of range, or the member is this one; the error names it.
 * @retval MUSTER_E_NOT_FOUND   No member ever had this number.
 * @retval MUSTER_E_STALE       The member is gone.
 * @retval MUSTER_E_PERMISSION  The topology does not permit streams between these two.
 * @retval MUSTER_E_UNREACHABLE Neither member can dial the other; the error says what was tried.
 * @retval MUSTER_E_PEER        The master is gone, or the connection broke.
 * @retval MUSTER_E_AUTH        The two sides have different secrets.
 * @retval MUSTER_E_PROTOCOL    The process at that address is not a member of this cluster.
 * @retval MUSTER_E_LIMIT       No descriptor is left, or max_connections is reached, on either side.
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @retval MUSTER_E_SYSTEM      Another system call failed.
 * @retval MUSTER_E_CLOSED      The cluster or its context is closed.
 * @retval MUSTER_E_CANCELED    muster_cluster_cancel() was called during the wait.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called inside a callback of the engine.
 * @retval MUSTER_E_FORKED      The cluster belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_cluster_dial(muster_cluster *cluster, uint32_t member, const void *label,
                                             size_t label_bytes, int64_t timeout_ns, muster_stream **out_stream,
                                             muster_error *error);

/** Begins to open a stream to another member; ::MUSTER_DONE_DIAL has the stream, or a status of
 * muster_cluster_dial().
 * @param[in]  cluster      Cluster of this member.
 * @param[in]  member       Number of the other member.
 * @param[in]  label        Label that the other side receives with the stream: any bytes; copied. NULL if empty.
 * @param[in]  label_bytes  Length of the label, at most 255.
 * @param[in]  timeout_ns   Maximum time, at least 1; -1: no limit.
 * @param[in]  queue        Queue of the same context for the completion.
 * @param[in]  tag          Returned in muster_completion::tag.
 * @param[out] error        Detail on failure, or NULL.
 * @begun{::MUSTER_DONE_DIAL}
 * @retval MUSTER_E_ARG    A value is missing or out of range; the error names it.
 * @retval MUSTER_E_NOT_FOUND This member has not joined yet.
 * @retval MUSTER_E_NOMEM  Memory ran out.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_cluster_dial_begin(muster_cluster *cluster, uint32_t member, const void *label,
                                                   size_t label_bytes, int64_t timeout_ns, muster_queue *queue,
                                                   uint64_t tag, muster_error *error);

/** Sends the same bytes to many members, each of which receives ::MUSTER_CLUSTER_BROADCAST. The call returns when each
 * member's library has all of the bytes (the host need not have taken the event), or is known not to get them. Members
 * on this host share one memory; to others the bytes travel along a tree, or once through a star. A member that is
 * dead, stopped, or has no room (muster_worker_config::max_broadcast_bytes) does not delay the others.
 * @param[in]  cluster       Cluster of this member.
 * @param[in]  members       Shape (count): numbers of the members. NULL, on the master: all workers that have joined.
 * @param[in]  count         Number of members, at most 65536; 0 if members is NULL.
 * @param[in]  label         Label that they receive with the bytes: any bytes. NULL if empty.
 * @param[in]  label_bytes   Length of the label, at most 255.
 * @param[in]  data          The bytes; lent until the call returns. NULL if empty.
 * @param[in]  size_bytes    Number of bytes.
 * @param[in]  timeout_ns    Maximum wait, at least 1; -1: no limit.
 * @param[out] out_statuses  Shape (count): the status for each member, one of those below. NULL if members is NULL,
 *                           or if they are not needed.
 * @param[out] error         Detail on failure, about the first member that did not get the bytes; or NULL.
 * @retval MUSTER_OK            All members have the bytes.
 * @retval MUSTER_TIMEOUT       A member did not get the bytes in time; the error is filled.
 * @retval MUSTER_E_ARG         A value is missing or out of range, or a member is this one; the error names it.
 * @retval MUSTER_E_NOT_FOUND   No member ever had this number.
 * @retval MUSTER_E_STALE       The member is gone.
 * @retval MUSTER_E_PERMISSION  The topology does not permit streams between these two.
 * @retval MUSTER_E_UNREACHABLE Neither member can dial the other.
 * @retval MUSTER_E_LIMIT       Too many bytes of broadcasts wait to be taken there.
 * @retval MUSTER_E_PEER        The master is gone, or connections broke repeatedly.
 * @retval MUSTER_E_AUTH        The process at that address has another secret.
 * @retval MUSTER_E_PROTOCOL    The process at that address is not a member of this cluster.
 * @retval MUSTER_E_NOMEM       Memory ran out, on either side.
 * @retval MUSTER_E_SYSTEM      Another system call failed.
 * @retval MUSTER_E_UNSUPPORTED members is NULL, and this member is not the master.
 * @retval MUSTER_E_CLOSED      The cluster or its context is closed.
 * @retval MUSTER_E_CANCELED    muster_cluster_cancel() was called during the wait.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called inside a callback of the engine.
 * @retval MUSTER_E_FORKED      The cluster belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_cluster_broadcast(muster_cluster *cluster, const uint32_t *members, size_t count,
                                                  const void *label, size_t label_bytes, const void *data,
                                                  uint64_t size_bytes, int64_t timeout_ns, muster_status *out_statuses,
                                                  muster_error *error);

/** Begins to send the same bytes to many members, as muster_cluster_broadcast() does; ::MUSTER_DONE_BROADCAST has its
 * status. Data and statuses are lent to the library until then, or until muster_cluster_close(), muster_queue_close()
 * or muster_queue_release() has returned.
 * @param[in]  cluster       Cluster of this member.
 * @param[in]  members       Shape (count): numbers of the members; copied. NULL, on the master: all workers that have
 *                           joined.
 * @param[in]  count         Number of members, at most 65536; 0 if members is NULL.
 * @param[in]  label         Label that they receive with the bytes: any bytes; copied. NULL if empty.
 * @param[in]  label_bytes   Length of the label, at most 255.
 * @param[in]  data          The bytes; lent, and not to be changed, until the completion. NULL if empty.
 * @param[in]  size_bytes    Number of bytes.
 * @param[in]  timeout_ns    Maximum time, at least 1; -1: no limit.
 * @param[out] out_statuses  Shape (count): the status for each member, written before the completion; or NULL.
 * @param[in]  queue         Queue of the same context for the completion.
 * @param[in]  tag           Returned in muster_completion::tag.
 * @param[out] error         Detail on failure, or NULL.
 * @begun{::MUSTER_DONE_BROADCAST}
 * @retval MUSTER_E_ARG         A value is missing or out of range; the error names it.
 * @retval MUSTER_E_UNSUPPORTED members is NULL, and this member is not the master.
 * @retval MUSTER_E_NOT_FOUND   This member has not joined yet.
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_cluster_broadcast_begin(muster_cluster *cluster, const uint32_t *members, size_t count,
                                                        const void *label, size_t label_bytes, const void *data,
                                                        uint64_t size_bytes, int64_t timeout_ns,
                                                        muster_status *out_statuses, muster_queue *queue, uint64_t tag,
                                                        muster_error *error);

/** Releases the bytes of a broadcast: they must not be accessed any more.
 * @param[in] broadcast  What to release; NULL has no effect.
 * @threads{any, finalizers included} @blocks{no} @since 0.1 */
MUSTER_API void muster_broadcast_release(muster_broadcast *broadcast);

/** The state of a member. */
enum muster_member_state {
    MUSTER_MEMBER_LAUNCHING = 1, /**< It is being started. */
    MUSTER_MEMBER_LAUNCHED = 2,  /**< It was started. */
    MUSTER_MEMBER_CONNECTED = 3, /**< It has a link to the master. */
    MUSTER_MEMBER_JOINED = 4,    /**< It has joined. */
    MUSTER_MEMBER_LEAVING = 5,   /**< It is being removed. */
    MUSTER_MEMBER_GONE = 6       /**< It has failed, died, left or was removed. */
};

/** Information about a member. */
typedef struct muster_member_info {
    uint32_t member;      /**< Its number. */
    uint32_t state;       /**< A ::muster_member_state value. */
    int64_t pid;          /**< Process id on its host; 0: unknown. */
    uint64_t data;        /**< The number that a manager of the host assigned to it. */
    char host[256];       /**< Name of its host, NUL-terminated; empty: unknown. */
    char address[1024];   /**< Address at which it listens, NUL-terminated; empty: none, or unknown. */
    uint64_t reserved[4]; /**< Zero. */
} muster_member_info;

/** Reads the information about a member. A worker has the information about itself and the address of the master.
 * @param[in]  cluster   Cluster to query.
 * @param[in]  member    Number of the member.
 * @param[out] out_info  Filled.
 * @filled
 * @retval MUSTER_E_ARG       No cluster or no destination.
 * @retval MUSTER_E_NOT_FOUND This member knows no member with this number.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_cluster_get_member(muster_cluster *cluster, uint32_t member,
                                                   muster_member_info *out_info);

/** Lists the workers that are not gone.
 * @param[in]  cluster      Cluster, on the master.
 * @param[out] out_members  Shape (capacity): their numbers, ascending; NULL to get the count only.
 * @param[in]  capacity     Size of the destination, in numbers.
 * @param[out] out_count    Number of workers.
 * @retval MUSTER_OK            Listed; or only counted, if out_members is NULL.
 * @retval MUSTER_E_ARG         No cluster, or no destination for the count.
 * @retval MUSTER_E_LIMIT       The capacity is too small: nothing was written, and out_count has the count.
 * @retval MUSTER_E_UNSUPPORTED This member is not the master.
 * @retval MUSTER_E_FORKED      The cluster belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_cluster_list(muster_cluster *cluster, uint32_t *out_members, size_t capacity,
                                             size_t *out_count);

/** Returns the number of this member.
 * @param[in] cluster  Cluster to query.
 * @return The number; UINT32_MAX if cluster is NULL, or if this member has not joined yet.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API uint32_t muster_cluster_self(muster_cluster *cluster);

/** Leaves the cluster. The master removes all workers, including those that are being launched, and kills those that
 * have not left in time; no process, socket or file is left. A worker notifies the master that it leaves in order.
 * Streams that the host holds are not closed.
 * @param[in]  cluster     Cluster to leave; the caller keeps its reference.
 * @param[in]  timeout_ns  Master: time for the workers to leave before they are killed; negative:
 *                         muster_cluster_config::leave_timeout_ns.
 * @retval MUSTER_OK        The cluster is over; events that were not taken can still be taken.
 * @retval MUSTER_TIMEOUT   The cluster is over; some workers had to be killed.
 * @retval MUSTER_E_ARG     No cluster.
 * @retval MUSTER_E_CANCELED  muster_cluster_cancel() was called during the wait; the cluster continues to close.
 * @retval MUSTER_E_CLOSED  The handle was released during the call; the cluster continues to close.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called inside a callback of the engine; or the time is over, and this thread has
 *                          to answer the manager's requests to kill. The cluster continues to close: answer them, and
 *                          muster_cluster_next_event() returns ::MUSTER_E_CLOSED when the cluster is over.
 * @retval MUSTER_E_FORKED  The cluster belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns, and until the killed workers are gone} @since 0.1 */
MUSTER_API muster_status muster_cluster_close(muster_cluster *cluster, int64_t timeout_ns);

/** Begins to leave the cluster, as muster_cluster_close() does; ::MUSTER_DONE_CALL has its status when the cluster is
 * over. A thread that serves a manager closes the cluster in this way. Cancelling the operation ends only the wait.
 * @param[in]  cluster     Cluster to leave; the caller keeps its reference.
 * @param[in]  timeout_ns  Master: time for the workers to leave before they are killed; negative:
 *                         muster_cluster_config::leave_timeout_ns.
 * @param[in]  queue       Queue of the same context for the completion.
 * @param[in]  tag         Returned in muster_completion::tag.
 * @param[out] error       Detail on failure, or NULL.
 * @begun{::MUSTER_DONE_CALL}
 * @retval MUSTER_E_ARG     A value is missing or out of range, or the queue is of another context.
 * @retval MUSTER_E_NOMEM   Memory or threads ran out.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_cluster_close_begin(muster_cluster *cluster, int64_t timeout_ns, muster_queue *queue,
                                                    uint64_t tag, muster_error *error);

/** Releases the handle; the cluster is closed as by muster_cluster_close(), without a wait. Threads that wait
 * in a call on it return ::MUSTER_E_CLOSED; operations that were begun complete with that status.
 * @param[in] cluster  What to release; NULL has no effect.
 * @threads{any, finalizers included} @blocks{no} @since 0.1 */
MUSTER_API void muster_cluster_release(muster_cluster *cluster);

#ifdef __cplusplus
}
#endif
#endif
