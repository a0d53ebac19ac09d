/* SPDX-License-Identifier: MIT */
/** @file
 * The cluster: a master, the workers it has launched, and streams between any two of them.
 *
 * A master opens a cluster and adds workers; a *manager* starts them: one that is built in, see below, or one that the
 * host program has written, see manager.h. Each worker gets a *ticket* from whoever starts it, over a descriptor and
 * never on a command line; with that it makes a context (muster_worker_context()) and comes in (muster_worker_start()),
 * which returns when it knows its number; or begins to (muster_worker_start_begin()). Members are numbered: the master
 * is 0, workers count from 1, and no number is used twice. Master and workers hold the same kind of handle.
 *
 * Each worker has one link to the master, of the library: by it members are told of each other, interrupted and
 * removed, also those that compute. By default the worker dials the master; where only the other direction is open, the
 * master dials the worker (::MUSTER_LAUNCH_MASTER_DIALS). Bytes of the host's travel on streams of their own, which any
 * two members open when they want them: muster_cluster_dial() on one side, ::MUSTER_CLUSTER_STREAM on the other. Where
 * the one cannot reach the other, the other dials, without anybody noticing. No stream is made before it is wanted.
 *
 * Managers that are built in, and the words of muster_launch::options they know (`name=value`, separated by semicolons
 * or newlines; where a value is several words, '...' and "..." hold one together):
 * - `local`: child processes on this host. No options.
 * - `ssh`: one OpenSSH client for each worker. `hosts`, which has to be there: `[count*][user@]host[:port]`, separated
 *   by commas; workers are dealt out to them in this order, and round again. `flags`: for ssh, before our own, which
 * are no more than that it asks nobody and gives up (BatchMode, ConnectTimeout, ServerAliveInterval). `ssh`: the
 * program. `tunnel`: `yes`, workers reach the master through the connection of ssh, which needs no other way between
 * the hosts; `no`; or `auto`, if it is not given: yes, if the master listens on loopback. `parallel`: logins at a
 * time, 10. `argv`, `envp` and `directory` are those of the other host, where a POSIX shell starts the worker; they and
 * the ticket go there on standard input. The environment is the login's.
 * - `slurm`: one srun for all workers of a launch; `flags` for it, `srun`, the program. The ticket is its standard
 * input.
 * - `mpi`: one mpiexec for all workers of a launch; `flags` for it, `mpiexec`, the program. The workers need not be MPI
 *   programs. As mpiexec hands its input to one rank alone, the ticket is the variable MUSTER_WORKER_TICKET, which
 * stays in the environment of mpiexec and its helpers. So it does not have the secret of the cluster, but a key for
 * this launch alone, by which each rank fetches its own ticket from the master, once, over a sealed connection, inside
 *   muster_worker_context(). The master accepts the key only while a rank of the launch has not joined.
 *   muster_worker_context() removes the variable from its process. With ::MUSTER_LAUNCH_MASTER_DIALS, and where the
 *   master listens at an address that is neither tcp nor unix, the variable has the secret. Most mpiexec end a whole
 * job when one rank dies; Open MPI's not with the flag
 *   `--enable-recovery`.
 * - `elastic`: starts nobody. Up to `count` workers at a time may come by themselves, programs that know the secret and
 *   the master's address (muster_worker_config::master), or a store in which it is found: `store`, its URL, and `name`,
 *   the cluster's there, `muster` if it is not given. They have no numbers before they come: *out_first is 0. Added
 *   again, the last call counts for who comes from then on.
 *
 * Lines that srun, mpiexec and ssh, and the programs behind them, write go to descriptors 1 and 2 of this process.
 * Workers of `slurm`, `mpi` and `elastic` are killed by their own library's thread, which is told to.
 *
 * What happens comes as events, in order: muster_cluster_next_event(). A cluster has a thread of its own,
 * `muster-cluster`, until it is over; in an external context that thread drives the engine, too, while it waits. */
#ifndef MUSTER_CLUSTER_H
#define MUSTER_CLUSTER_H

#include <muster/process.h>
#include <muster/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Opaque; one member's view of a cluster, made by muster_cluster_open() or muster_worker_start(). */
typedef struct muster_cluster muster_cluster;

/** Opaque; bytes that another member has broadcast, see ::MUSTER_CLUSTER_BROADCAST. */
typedef struct muster_broadcast muster_broadcast;

/** Numbers of members that mean something. */
enum muster_cluster_member_id {
    MUSTER_CLUSTER_MASTER = 0 /**< Whoever has opened the cluster. */
};

/** Between whom streams may be opened. */
enum muster_cluster_topology {
    MUSTER_CLUSTER_ALL_TO_ALL = 0,    /**< Any two members. */
    MUSTER_CLUSTER_MASTER_WORKER = 1, /**< The master and each worker. */
    MUSTER_CLUSTER_TREE = 2,          /**< Each member and its parent: that of n is (n - 1) / 2. */
    MUSTER_CLUSTER_CUSTOM = 3         /**< The master and each worker, and workers one of which names the other's
                                           muster_launch::ident in its muster_launch::connect_idents. */
};

/** How to open a cluster; all zero means the defaults named here. */
typedef struct muster_cluster_config {
    uint32_t struct_size;     /**< sizeof(muster_cluster_config) of the caller. */
    uint32_t flags;           /**< Zero. */
    uint32_t topology;        /**< A ::muster_cluster_topology value. */
    uint32_t max_connections; /**< Connections that the cluster may have open here at once: a link to each worker,
                                   those that are expected included, streams until they are released, and those that
                                   are being dialled. What is beyond ends with ::MUSTER_E_LIMIT. 0: the soft limit of
                                   open files (RLIMIT_NOFILE) as it is now, less 64. */
    const char *listen;       /**< Address at which the master listens for its workers. NULL: `tcp://127.0.0.1:0`. */
    uint64_t listen_bytes;    /**< Its length. */
    int64_t join_timeout_ns;  /**< Time from the launch of a worker until it has joined; 0: 60 s. */
    int64_t leave_timeout_ns; /**< Time that a worker gets to leave before it is killed; 0: 10 s. */
    muster_queue *queue;      /**< Where ::MUSTER_EVENT_READY tells that muster_cluster_next_event() has something.
                                   NULL: nowhere. */
    uint64_t tag;             /**< Returned in muster_completion::tag. */
    uint64_t max_broadcast_bytes; /**< Most bytes of others' broadcasts that may wait to be taken here; 0: 1 GiB. */
    uint64_t reserved1[3];        /**< Zero. */
} muster_cluster_config;

/** Flags of muster_launch::flags. */
enum muster_launch_flag {
    MUSTER_LAUNCH_MASTER_DIALS = 1, /**< Workers do not dial the master: it dials them. */
    MUSTER_LAUNCH_NO_LISTEN = 2     /**< Workers do not listen: they dial whoever wants a stream. Two of them cannot
                                         have one between them. */
};

/** What to launch; what is zero means the default named here. Strings are NUL-terminated, as execve() wants them. */
typedef struct muster_launch {
    uint32_t struct_size;       /**< sizeof(muster_launch) of the caller. */
    uint32_t flags;             /**< ::muster_launch_flag values, or'ed. */
    const char *manager;        /**< Who starts them: see above, or the name of a manager of the host's. NULL:
                                     `local`. */
    uint32_t count;             /**< Workers, 1 to 65536. */
    uint32_t reserved;          /**< Zero. */
    const char *const *argv;    /**< Program and arguments, NULL at the end. For `elastic` and a manager of the host's
                                     it may be NULL. */
    const char *const *envp;    /**< `NAME=value`, NULL at the end: added to this process's own environment. Or NULL. */
    const char *directory;      /**< Working directory of the workers; NULL: this process's own. */
    const char *listen;         /**< Where a worker listens, `{}` in it stands for its number. NULL:
                                     `tcp://127.0.0.1:0`. */
    const char *ident;          /**< ::MUSTER_CLUSTER_CUSTOM: their names; `{}` stands for the worker's number. NULL:
                                     none. At most 255 bytes. */
    const char *connect_idents; /**< ::MUSTER_CLUSTER_CUSTOM: names of others they may have streams with, separated by
                                     commas. NULL: none. At most 4095 bytes. */
    const char *options;        /**< For the manager, in its own words. NULL: none. At most 4095 bytes. */
    uint64_t reserved1[4];      /**< Zero. */
} muster_launch;

/** Opens a cluster; the caller is its master.
 * @param[in]  context      Context its streams belong to; the cluster keeps it alive. Its secret is that of the
 * workers.
 * @param[in]  config       Options; copied. NULL means all defaults.
 * @param[out] out_cluster  The cluster; the caller owns one reference.
 * @param[out] error        Detail on failure, or NULL.
 * @retval MUSTER_OK            Open.
 * @retval MUSTER_TIMEOUT       The host that serves the transport of `listen` did not answer in time; nothing is left.
 * @retval MUSTER_E_ARG         A value is missing or out of range; the error names it.
 * @retval MUSTER_E_ABI         The config has newer non-zero fields, or a plug-in's tables do not fit this library.
 * @retval MUSTER_E_ADDRESS     The address cannot be parsed; the error says where.
 * @retval MUSTER_E_NOT_FOUND   No transport of that scheme, or no such host or folder.
 * @retval MUSTER_E_PLUGIN      The plug-in for that scheme cannot be loaded.
 * @retval MUSTER_E_EXISTS      The address is in use.
 * @retval MUSTER_E_PERMISSION  The system refuses this user, or the socket's folder is open to others.
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

/** Begins to open a cluster, as muster_cluster_open() does. ::MUSTER_DONE_OPEN notifies that the cluster is open, with
 * the cluster in muster_completion::object, or that it could not be opened, with the status and the error that
 * muster_cluster_open() would have returned. muster_queue_cancel_operation() cancels it.
 * @param[in]  context  Context its streams belong to; the cluster keeps it alive.
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

/** Adds workers; each has events of its own: ::MUSTER_CLUSTER_LAUNCHED, CONNECTED, JOINED, or FAILED in place of these.
 * Their numbers follow each other.
 * @param[in]  cluster    Cluster, on its master.
 * @param[in]  launch     What to launch; copied.
 * @param[out] out_first  Number of the first worker; or NULL.
 * @param[out] error      Detail on failure, or NULL.
 * @retval MUSTER_OK            Begun.
 * @retval MUSTER_E_ARG         A value is missing or out of range, options too; the error names it.
 * @retval MUSTER_E_ABI         The struct has non-zero fields that are newer than this library.
 * @retval MUSTER_E_NOT_FOUND   No manager of that name; or a store's URL has an unknown scheme, or names no such host.
 * @retval MUSTER_TIMEOUT       The store does not answer in time; the error is filled.
 * @retval MUSTER_E_ADDRESS     The store's URL cannot be parsed.
 * @retval MUSTER_E_PLUGIN      The plug-in for the store's scheme cannot be loaded.
 * @retval MUSTER_E_UNREACHABLE Nobody answers where the store should be.
 * @retval MUSTER_E_AUTH        The store's server has another secret.
 * @retval MUSTER_E_PEER        The connection to the store broke.
 * @retval MUSTER_E_PROTOCOL    What answers there is no store of this version.
 * @retval MUSTER_E_PERMISSION  The store may not be used by this user.
 * @retval MUSTER_E_UNSUPPORTED This member is not the master.
 * @retval MUSTER_E_LIMIT       The numbers are used up, more than 65536 workers, or than connections that
 * muster_cluster_config::max_connections leaves.
 * @retval MUSTER_E_NOMEM       No memory; nothing begun.
 * @retval MUSTER_E_CLOSED      The cluster or its context is closed.
 * @retval MUSTER_E_FORKED      The cluster belongs to the parent process.
 * @threads{any} @blocks{no; with a store up to 90 s for it} @since 0.1 */
MUSTER_API muster_status muster_cluster_add(muster_cluster *cluster, const muster_launch *launch, uint32_t *out_first,
                                            muster_error *error);

/** Begins to add workers, as muster_cluster_add() does; for an `elastic` launch with a store, which has to be opened.
 * ::MUSTER_DONE_CALL notifies of the end; its bytes are the number of the first worker.
 * muster_queue_cancel_operation() cancels it.
 * @param[in]  cluster  Cluster, on its master.
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

/** Removes a worker: it is told to leave (::MUSTER_CLUSTER_LEAVE there), and killed if it has not when the grace is
 * over. ::MUSTER_CLUSTER_REMOVED tells when it is gone. One that has not joined is killed at once. Asked again, with a
 * shorter grace say, the last call counts.
 * @param[in] cluster   Cluster, on its master.
 * @param[in] member    Number of the worker.
 * @param[in] grace_ns  Time it gets; 0: none, negative: muster_cluster_config::leave_timeout_ns.
 * @retval MUSTER_OK            It is being removed.
 * @retval MUSTER_E_ARG         No cluster, or the master's own number.
 * @retval MUSTER_E_NOT_FOUND   No worker ever had this number.
 * @retval MUSTER_E_STALE       It is gone already.
 * @retval MUSTER_E_UNSUPPORTED This member is not the master.
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @retval MUSTER_E_CLOSED      The cluster or its context is closed.
 * @retval MUSTER_E_FORKED      The cluster belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_cluster_remove(muster_cluster *cluster, uint32_t member, int64_t grace_ns);

/** Interrupts what a worker is doing: ::MUSTER_CLUSTER_INTERRUPT there, and with ::MUSTER_WORKER_RAISE_INTERRUPT the
 * signal SIGINT, sent by its library thread to its own process. A manager of the host's may do it in its own way.
 * @param[in] cluster  Cluster, on its master.
 * @param[in] member   Number of the worker.
 * @retval MUSTER_OK            It will be told.
 * @retval MUSTER_E_ARG         No cluster, or the master's own number.
 * @retval MUSTER_E_NOT_FOUND   No worker ever had this number.
 * @retval MUSTER_E_STALE       It is gone, or has not joined yet.
 * @retval MUSTER_E_UNSUPPORTED This member is not the master.
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @retval MUSTER_E_CLOSED      The cluster or its context is closed.
 * @retval MUSTER_E_FORKED      The cluster belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_cluster_interrupt(muster_cluster *cluster, uint32_t member);

/** What has happened. */
enum muster_cluster_event_kind {
    MUSTER_CLUSTER_LAUNCHED = 1,     /**< Master: the worker was started; nothing was heard of it yet. */
    MUSTER_CLUSTER_CONNECTED = 2,    /**< Master: there is a link, and both sides have proved the secret. */
    MUSTER_CLUSTER_JOINED = 3,       /**< Master: the worker knows its number; streams can be opened. Worker, after
                                          muster_worker_start_begin(): this one is in. */
    MUSTER_CLUSTER_FAILED = 4,       /**< Master: the worker did not come to join; status and text say why. Worker,
                                          after muster_worker_start_begin(): nor did this one (UINT32_MAX, if it has no
                                          number yet), and its cluster is over. */
    MUSTER_CLUSTER_DEAD = 5,         /**< Master: the worker is gone, and should not be; text says how it ended. Worker:
                                          so is one with which this member had to do. */
    MUSTER_CLUSTER_REMOVED = 6,      /**< As DEAD, of a worker that has left, or was removed. */
    MUSTER_CLUSTER_STREAM = 7,       /**< The member has opened a stream to this one; it is in the event. */
    MUSTER_CLUSTER_INTERRUPT = 8,    /**< Worker: stop what you are doing. */
    MUSTER_CLUSTER_LEAVE = 9,        /**< Worker: leave, by muster_cluster_close() or by ending. */
    MUSTER_CLUSTER_MASTER_GONE = 10, /**< Worker: there is no cluster any more. */
    MUSTER_CLUSTER_BROADCAST = 11    /**< The member has broadcast bytes to this one; they are in the event. */
};

/** One event. */
typedef struct muster_cluster_event {
    uint32_t kind;        /**< A ::muster_cluster_event_kind value. */
    uint32_t member;      /**< Of which member it tells. */
    muster_status status; /**< FAILED, DEAD, MASTER_GONE: why; REMOVED: why it could not be ended by force, where it had
                               to be and the manager failed to; else ::MUSTER_OK. */
    uint32_t label_bytes; /**< STREAM, BROADCAST: length of the label. */
    muster_stream *stream; /**< STREAM: the stream; the caller owns one reference. Else NULL. */
    uint32_t text_bytes;   /**< Length of the text, without the terminator. */
    uint32_t reserved;     /**< Zero. */
    char label[256];       /**< STREAM, BROADCAST: what the other side called it: any bytes, and a NUL behind them. */
    char text[232];        /**< A sentence for people, or empty; NUL-terminated UTF-8. */
    muster_broadcast *broadcast; /**< BROADCAST: holds the bytes; the caller owns one reference. Else NULL. */
    const void *data;            /**< BROADCAST: first byte, to be read only, until muster_broadcast_release(). NULL if
                                      empty. */
    uint64_t size_bytes;         /**< BROADCAST: how many. */
} muster_cluster_event;

/** Takes the oldest event.
 * @param[in]  cluster     Cluster to query.
 * @param[in]  timeout_ns  Maximum wait; 0 checks once, -1: no limit.
 * @param[out] out_event   Filled on ::MUSTER_OK.
 * @retval MUSTER_OK         Taken.
 * @retval MUSTER_AGAIN      There is none, and the timeout was 0.
 * @retval MUSTER_TIMEOUT    None came in time.
 * @retval MUSTER_E_ARG      No cluster or no destination.
 * @retval MUSTER_E_CLOSED   The cluster is over, and all events were taken.
 * @retval MUSTER_E_CANCELED muster_cluster_cancel() was called while this call waited.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called inside a callback of the engine, with a timeout.
 * @retval MUSTER_E_FORKED   The cluster belongs to the parent process.
 * @threads{any; each event goes to one caller} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_cluster_next_event(muster_cluster *cluster, int64_t timeout_ns,
                                                   muster_cluster_event *out_event);

/** Ends the waits inside muster_cluster_next_event(), muster_cluster_dial(), muster_cluster_broadcast() and
 * muster_cluster_close() now.
 * @param[in] cluster  Cluster whose waiters return ::MUSTER_E_CANCELED.
 * @retval MUSTER_OK       Done, also when nobody waited.
 * @retval MUSTER_E_ARG    No cluster.
 * @retval MUSTER_E_FORKED The cluster belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_cluster_cancel(muster_cluster *cluster);

/** Opens a stream to another member; it is told ::MUSTER_CLUSTER_STREAM. Any number of them may be open between two.
 * @param[in]  cluster      Cluster of this member.
 * @param[in]  member       Number of the other.
 * @param[in]  label        What the other side is told with it: any bytes. NULL if empty.
 * @param[in]  label_bytes  Its length, at most 255.
 * @param[in]  timeout_ns   Maximum wait, at least 1; -1: no limit.
 * @param[out] out_stream   The stream; the caller owns one reference.
 * @param[out] error        Detail on failure, or NULL.
 * @retval MUSTER_OK            Open.
 * @retval MUSTER_TIMEOUT       Not in time; nothing is left behind.
 * @retval MUSTER_E_ARG         A value is missing or out of range, or this member itself; the error names it.
 * @retval MUSTER_E_NOT_FOUND   No member ever had this number.
 * @retval MUSTER_E_STALE       It is gone.
 * @retval MUSTER_E_PERMISSION  The topology has no way between these two.
 * @retval MUSTER_E_UNREACHABLE Neither of them can dial the other; the text says what was tried.
 * @retval MUSTER_E_PEER        The master is gone, or the connection broke.
 * @retval MUSTER_E_AUTH        The other side has another secret, or says that we have.
 * @retval MUSTER_E_PROTOCOL    What answers there is no member of this cluster.
 * @retval MUSTER_E_LIMIT       No descriptor is left, or as many connections as may be (max_connections), here or there.
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @retval MUSTER_E_SYSTEM      Another system call failed.
 * @retval MUSTER_E_CLOSED      The cluster or its context is closed.
 * @retval MUSTER_E_CANCELED    muster_cluster_cancel() was called meanwhile.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called inside a callback of the engine.
 * @retval MUSTER_E_FORKED      The cluster belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_cluster_dial(muster_cluster *cluster, uint32_t member, const void *label,
                                             size_t label_bytes, int64_t timeout_ns, muster_stream **out_stream,
                                             muster_error *error);

/** Begins to open a stream to another member; ::MUSTER_DONE_DIAL comes with it, or with a status that
 * muster_cluster_dial() gives.
 * @param[in]  cluster      Cluster of this member.
 * @param[in]  member       Number of the other.
 * @param[in]  label        What the other side is told with it: any bytes; copied. NULL if empty.
 * @param[in]  label_bytes  Its length, at most 255.
 * @param[in]  timeout_ns   Maximum time, at least 1; -1: no limit.
 * @param[in]  queue        Queue of the same context for the completion.
 * @param[in]  tag          Returned in muster_completion::tag.
 * @param[out] error        Detail on failure, or NULL.
 * @retval MUSTER_OK       Begun; the completion will come.
 * @retval MUSTER_AGAIN    No slot in the queue.
 * @retval MUSTER_E_ARG    A value is missing or out of range; the error names it.
 * @retval MUSTER_E_NOT_FOUND This member is not in yet.
 * @retval MUSTER_E_NOMEM  Memory ran out.
 * @retval MUSTER_E_CLOSED The cluster, its context or the queue is closed.
 * @retval MUSTER_E_FORKED The cluster belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_cluster_dial_begin(muster_cluster *cluster, uint32_t member, const void *label,
                                                   size_t label_bytes, int64_t timeout_ns, muster_queue *queue,
                                                   uint64_t tag, muster_error *error);

/** Gives the same bytes to many members; each is told ::MUSTER_CLUSTER_BROADCAST. It returns when every one of them
 * holds them whole (its library does: its host need not have looked), or is known not to get them. Members of this host
 * share one memory, to others the bytes travel along a tree, or once through a star. One that is dead, stopped, or has
 * no room (muster_worker_config::max_broadcast_bytes) does not hold up the others.
 * @param[in]  cluster       Cluster of this member.
 * @param[in]  members       Shape (count): their numbers. NULL, on the master: all workers that are in.
 * @param[in]  count         How many, at most 65536; 0 if members is NULL.
 * @param[in]  label         What they are told with it: any bytes. NULL if empty.
 * @param[in]  label_bytes   Its length, at most 255.
 * @param[in]  data          First byte; the caller's again when the call returns. NULL if empty.
 * @param[in]  size_bytes    How many.
 * @param[in]  timeout_ns    Maximum wait, at least 1; -1: no limit.
 * @param[out] out_statuses  Shape (count): how it went with each: ::MUSTER_OK, or one of those below. NULL if members
 * is, or if nobody asks.
 * @param[out] error         Detail on failure, which names the first that has not got it; or NULL.
 * @retval MUSTER_OK            All of them have it.
 * @retval MUSTER_TIMEOUT       The first that has not got it did not in time; the error is filled.
 * @retval MUSTER_E_ARG         A value is missing or out of range, or a member is this one; the error names it.
 * @retval MUSTER_E_NOT_FOUND   No member ever had this number.
 * @retval MUSTER_E_STALE       It is gone.
 * @retval MUSTER_E_PERMISSION  The topology has no way between these two.
 * @retval MUSTER_E_UNREACHABLE Neither of them can dial the other.
 * @retval MUSTER_E_LIMIT       Too much waits there to be taken.
 * @retval MUSTER_E_PEER        The master is gone, or connections broke again and again.
 * @retval MUSTER_E_AUTH        What answers there has another secret.
 * @retval MUSTER_E_PROTOCOL    What answers there is no member of this cluster.
 * @retval MUSTER_E_NOMEM       No memory, here or there.
 * @retval MUSTER_E_SYSTEM      Another system call failed.
 * @retval MUSTER_E_UNSUPPORTED No members are named, and this one is not the master.
 * @retval MUSTER_E_CLOSED      The cluster or its context is closed.
 * @retval MUSTER_E_CANCELED    muster_cluster_cancel() was called meanwhile.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called inside a callback of the engine.
 * @retval MUSTER_E_FORKED      The cluster belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_cluster_broadcast(muster_cluster *cluster, const uint32_t *members, size_t count,
                                                  const void *label, size_t label_bytes, const void *data,
                                                  uint64_t size_bytes, int64_t timeout_ns, muster_status *out_statuses,
                                                  muster_error *error);

/** Begins to give the same bytes to many members, as muster_cluster_broadcast(); ::MUSTER_DONE_BROADCAST comes with its
 * status. Data and statuses are the library's until then, or until muster_cluster_close(), muster_queue_close() or
 * muster_queue_release() has returned.
 * @param[in]  cluster       Cluster of this member.
 * @param[in]  members       Shape (count): their numbers; copied. NULL, on the master: all workers that are in.
 * @param[in]  count         How many, at most 65536; 0 if members is NULL.
 * @param[in]  label         What they are told with it: any bytes; copied. NULL if empty.
 * @param[in]  label_bytes   Its length, at most 255.
 * @param[in]  data          First byte; unchanged until the completion. NULL if empty.
 * @param[in]  size_bytes    How many.
 * @param[in]  timeout_ns    Maximum time, at least 1; -1: no limit.
 * @param[out] out_statuses  Shape (count): how it went with each, written before the completion; or NULL.
 * @param[in]  queue         Queue of the same context for the completion.
 * @param[in]  tag           Returned in muster_completion::tag.
 * @param[out] error         Detail on failure, or NULL.
 * @retval MUSTER_OK            Begun; the completion will come.
 * @retval MUSTER_AGAIN         No slot in the queue.
 * @retval MUSTER_E_ARG         A value is missing or out of range; the error names it.
 * @retval MUSTER_E_UNSUPPORTED No members are named, and this one is not the master.
 * @retval MUSTER_E_NOT_FOUND   This member is not in yet.
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @retval MUSTER_E_CLOSED      The cluster, its context or the queue is closed.
 * @retval MUSTER_E_FORKED      The cluster belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_cluster_broadcast_begin(muster_cluster *cluster, const uint32_t *members, size_t count,
                                                        const void *label, size_t label_bytes, const void *data,
                                                        uint64_t size_bytes, int64_t timeout_ns,
                                                        muster_status *out_statuses, muster_queue *queue, uint64_t tag,
                                                        muster_error *error);

/** Gives up the bytes of a broadcast: they must not be looked at any more.
 * @param[in] broadcast  What to release; NULL has no effect.
 * @threads{any, finalizers included} @blocks{no} @since 0.1 */
MUSTER_API void muster_broadcast_release(muster_broadcast *broadcast);

/** How a member fares. */
enum muster_member_state {
    MUSTER_MEMBER_LAUNCHING = 1, /**< It is being started. */
    MUSTER_MEMBER_LAUNCHED = 2,  /**< It was started. */
    MUSTER_MEMBER_CONNECTED = 3, /**< There is a link to it. */
    MUSTER_MEMBER_JOINED = 4,    /**< It is in. */
    MUSTER_MEMBER_LEAVING = 5,   /**< It is being removed. */
    MUSTER_MEMBER_GONE = 6       /**< It has failed, died, left or was removed. */
};

/** What is known of a member. */
typedef struct muster_member_info {
    uint32_t member;      /**< Its number. */
    uint32_t state;       /**< A ::muster_member_state value. */
    int64_t pid;          /**< Its process id, on its host; 0: not known. */
    uint64_t data;        /**< The number that a manager of the host's gave with it. */
    char host[256];       /**< Name of its host, NUL-terminated; empty: not known. */
    char address[1024];   /**< Where it listens, NUL-terminated; empty: nowhere, or not known. */
    uint64_t reserved[4]; /**< Zero. */
} muster_member_info;

/** Tells what is known of a member. A worker knows of itself and, of the master, the address.
 * @param[in]  cluster   Cluster to query.
 * @param[in]  member    Number of the member.
 * @param[out] out_info  Filled.
 * @filled
 * @retval MUSTER_E_ARG       No cluster or no destination.
 * @retval MUSTER_E_NOT_FOUND No member has this number, as far as this one knows.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_cluster_get_member(muster_cluster *cluster, uint32_t member,
                                                   muster_member_info *out_info);

/** Lists the workers that are not gone.
 * @param[in]  cluster      Cluster, on its master.
 * @param[out] out_members  Shape (capacity): their numbers, rising; NULL to learn how many there are.
 * @param[in]  capacity     Room there, in numbers.
 * @param[out] out_count    How many there are.
 * @retval MUSTER_OK            Listed (or only counted).
 * @retval MUSTER_E_ARG         No cluster, or no place for the count.
 * @retval MUSTER_E_LIMIT       The room is too small; nothing written, the count is told.
 * @retval MUSTER_E_UNSUPPORTED This member is not the master.
 * @retval MUSTER_E_FORKED      The cluster belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_cluster_list(muster_cluster *cluster, uint32_t *out_members, size_t capacity,
                                             size_t *out_count);

/** Tells the number of this member.
 * @param[in] cluster  Cluster to query.
 * @return The number; UINT32_MAX without a cluster, or if this member is not in yet.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API uint32_t muster_cluster_self(muster_cluster *cluster);

/** Leaves the cluster. The master removes all workers, those that are being launched too, and kills who has not left
 * when the time is over; no process, socket or file is left. A worker tells the master that it leaves in order. Streams
 * of the host's stay its own.
 * @param[in]  cluster     Cluster to leave; the caller keeps its reference.
 * @param[in]  timeout_ns  Master: time the workers get before they are killed; negative:
 *                         muster_cluster_config::leave_timeout_ns.
 * @retval MUSTER_OK        Over; events that nobody has taken can still be taken.
 * @retval MUSTER_TIMEOUT   Over; some had to be killed.
 * @retval MUSTER_E_ARG     No cluster.
 * @retval MUSTER_E_CANCELED  muster_cluster_cancel() was called meanwhile; it goes on all the same.
 * @retval MUSTER_E_CLOSED  The handle was released during the call; it goes on all the same.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called inside a callback of the engine; or the time is over, and this thread is
 * the one that has to answer the manager's requests to kill. It goes on all the same: serve them, and
 * muster_cluster_next_event() answers ::MUSTER_E_CLOSED when it is over.
 * @retval MUSTER_E_FORKED  The cluster belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns, and until the killed workers are gone} @since 0.1 */
MUSTER_API muster_status muster_cluster_close(muster_cluster *cluster, int64_t timeout_ns);

/** Begins to leave the cluster, as muster_cluster_close() does; ::MUSTER_DONE_CALL comes with its status when it is
 * over. The way to close for the thread that serves the manager. To cancel it ends the wait only.
 * @param[in]  cluster     Cluster to leave; the caller keeps its reference.
 * @param[in]  timeout_ns  Master: time the workers get before they are killed; negative:
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

/** Releases the handle; the cluster is closed, as by muster_cluster_close(), without a wait for it. Threads that wait
 * in a call on it return ::MUSTER_E_CLOSED; operations that were begun complete with that status.
 * @param[in] cluster  What to release; NULL has no effect.
 * @threads{any, finalizers included} @blocks{no} @since 0.1 */
MUSTER_API void muster_cluster_release(muster_cluster *cluster);

/** Flags of muster_worker_config::flags. */
enum muster_worker_flag {
    MUSTER_WORKER_EXIT_WITH_MASTER = 1, /**< When the master is gone this process is sent SIGTERM, then SIGKILL, by the
                                             library's thread: also while it computes. */
    MUSTER_WORKER_RAISE_INTERRUPT = 2   /**< An interrupt raises SIGINT in this process. */
};

/** How to be a worker; all zero means the defaults named here. */
typedef struct muster_worker_config {
    uint32_t struct_size;       /**< sizeof(muster_worker_config) of the caller. */
    uint32_t flags;             /**< ::muster_worker_flag values, or'ed. */
    int64_t exit_grace_ns;      /**< ::MUSTER_WORKER_EXIT_WITH_MASTER: time between SIGTERM and SIGKILL; 0: 2 s. */
    int32_t report_fd_plus_one; /**< ::MUSTER_LAUNCH_MASTER_DIALS: where the line is written that tells the launcher
                                     the address, plus 1; 0: descriptor 1. */
    uint32_t max_connections;   /**< As muster_cluster_config::max_connections; a worker has one link. */
    muster_queue *queue;        /**< Where ::MUSTER_EVENT_READY tells that muster_cluster_next_event() has something.
                                     NULL: nowhere. */
    uint64_t tag;               /**< Returned in muster_completion::tag. */
    /* For a worker that nobody has launched, which the manager `elastic` takes: its context is not that of a ticket,
     * but has the secret. NUL-terminated. */
    const char *master; /**< Where the master listens. NULL: it was launched, or `store` is given. */
    const char *store;  /**< URL of a store in which the master's address is found, as muster_store_open() takes it. */
    const char *name;   /**< Name of the cluster there. NULL: `muster`. */
    const char *listen; /**< Where it listens; empty: nowhere. NULL: `tcp://127.0.0.1:0`. */
    uint64_t max_broadcast_bytes; /**< Most bytes of others' broadcasts that may wait to be taken here; 0: 1 GiB. */
} muster_worker_config;

/** Makes the context of a worker: reads the ticket that its launcher has passed, whose secret is the context's.
 * @param[in]  config              How to start the context; it names no secret. NULL means all defaults.
 * @param[in]  ticket_fd_plus_one  A descriptor to read the ticket from, one line, plus 1; what follows the line stays
 *                                 there, and so does the descriptor. 0: the one that the variable MUSTER_WORKER_FD
 *                                 names, which is closed afterwards (of 0 to 2, made /dev/null); or the ticket is in
 *                                 the variable MUSTER_WORKER_TICKET, whose value is wiped.
 * @param[out] out_context         New context; the caller owns one reference.
 * @param[out] error               Detail on failure, or NULL.
 * @retval MUSTER_OK           Made.
 * @retval MUSTER_E_ARG        A value is out of range, or the config names a secret.
 * @retval MUSTER_E_ABI        The config has non-zero fields that are newer than this library.
 * @retval MUSTER_E_PROTOCOL   What was read is no ticket of this version.
 * @retval MUSTER_E_NOMEM      Memory or threads ran out.
 * @retval MUSTER_E_LIMIT      Descriptors ran out.
 * @retval MUSTER_E_SYSTEM     The ticket cannot be read, or the loop could not start.
 * @retval MUSTER_TIMEOUT      The master did not give out the ticket within 60 s; the error is filled. This one and the
 *                             following only where the ticket has to be fetched, see `mpi` above.
 * @retval MUSTER_E_UNREACHABLE The master cannot be reached.
 * @retval MUSTER_E_NOT_FOUND  There is no ticket: this process was not launched as a worker; or the host of the
 *                             master is not known.
 * @retval MUSTER_E_PERMISSION The system refuses this user to reach the master.
 * @retval MUSTER_E_AUTH       The master does not accept the key of the launch any more.
 * @retval MUSTER_E_STALE      The master does not expect this worker any more.
 * @retval MUSTER_E_EXISTS     Another process has fetched the ticket of this worker.
 * @retval MUSTER_E_PEER       The connection to the master broke.
 * @threads{any} @blocks{until the line has been read; where the ticket has to be fetched, up to 60 s more} @since 0.1
 */
MUSTER_API muster_status muster_worker_context(const muster_context_config *config, int32_t ticket_fd_plus_one,
                                               muster_context **out_context, muster_error *error);

/** Comes in as a worker: listens, meets the master, and returns when this member knows its number.
 * @param[in]  context      A context of muster_worker_context(), or with muster_worker_config::master or store one that
 *                          has the cluster's secret. A transport that this program serves itself has to be
 *                          registered before, and served on another thread meanwhile; or see
 *                          muster_worker_start_begin().
 * @param[in]  config       Options; copied. NULL means all defaults.
 * @param[in]  timeout_ns   Maximum wait for the master, at least 1; -1: no limit.
 * @param[out] out_cluster  The cluster; the caller owns one reference.
 * @param[out] error        Detail on failure, or NULL.
 * @retval MUSTER_OK            This process is a worker.
 * @retval MUSTER_TIMEOUT       The master was not met in time; the error is filled.
 * @retval MUSTER_E_ARG         A value is missing or out of range; or the context has no ticket.
 * @retval MUSTER_E_ABI         The config has non-zero fields that are newer than this library.
 * @retval MUSTER_E_EXISTS      This context is in the cluster already; or the address to listen at is in use.
 * @retval MUSTER_E_ADDRESS     An address of the ticket cannot be parsed.
 * @retval MUSTER_E_NOT_FOUND   No transport of that scheme.
 * @retval MUSTER_E_PLUGIN      The plug-in for that scheme cannot be loaded.
 * @retval MUSTER_E_UNREACHABLE Nobody answers at the master's address.
 * @retval MUSTER_E_AUTH        The master has another secret.
 * @retval MUSTER_E_PROTOCOL    What answers there is no master of this version.
 * @retval MUSTER_E_PEER        The master went away meanwhile.
 * @retval MUSTER_E_STALE       The master does not want this worker any more, or nobody who was not launched.
 * @retval MUSTER_E_PERMISSION  The system refuses this user to listen or to dial.
 * @retval MUSTER_E_LIMIT       No descriptor is left; or as many have come by themselves as the master takes.
 * @retval MUSTER_E_UNSUPPORTED The transport cannot listen.
 * @retval MUSTER_E_NOMEM       Memory or threads ran out.
 * @retval MUSTER_E_SYSTEM      Another system call failed.
 * @retval MUSTER_E_CLOSED      The context or the queue is closed.
 * @retval MUSTER_E_CANCELED    muster_context_cancel() was called during the wait.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called inside a callback of the engine, or this thread serves the transport.
 * @retval MUSTER_E_FORKED      The context belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_worker_start(muster_context *context, const muster_worker_config *config,
                                             int64_t timeout_ns, muster_cluster **out_cluster, muster_error *error);

/** Begins to come in as a worker, for a program that must not wait: one whose only thread serves the transport by which
 * it comes in. ::MUSTER_CLUSTER_JOINED of this member's own number is the first event; or ::MUSTER_CLUSTER_FAILED, with
 * a status that muster_worker_start() gives, is the only one. Until then this member knows no others: nothing can be
 * dialled or broadcast. A store is opened meanwhile; if it cannot be, the event says why. One that has failed, or was
 * closed before, may begin again.
 * @param[in]  context      As for muster_worker_start(); a transport of this program's own is registered before.
 * @param[in]  config       Options; copied. NULL means all defaults.
 * @param[in]  timeout_ns   Longest time until it is in; -1 has no end of its own. At least 1.
 * @param[out] out_cluster  The cluster; the caller owns one reference.
 * @param[out] error        Detail on failure, or NULL.
 * @retval MUSTER_OK            Begun; the event will come.
 * @retval MUSTER_E_ARG         A value is missing or out of range; or the context has no ticket.
 * @retval MUSTER_E_ABI         The config has non-zero fields that are newer than this library.
 * @retval MUSTER_E_EXISTS      This context is in the cluster already; or the address to listen at is in use.
 * @retval MUSTER_E_ADDRESS     An address of the ticket cannot be parsed.
 * @retval MUSTER_E_NOT_FOUND   No transport of that scheme, or no such host or folder.
 * @retval MUSTER_E_PLUGIN      The plug-in for that scheme cannot be loaded.
 * @retval MUSTER_E_PROTOCOL    The ticket is of no use.
 * @retval MUSTER_E_PERMISSION  The system refuses this user to listen.
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
