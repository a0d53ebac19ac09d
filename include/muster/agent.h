/* SPDX-License-Identifier: MIT */
/** @file
 * The agent: starts the workers of this node, supervises them, and restarts them after failures.
 *
 * An agent runs one group of workers: copies of one program that differ by their rank. Each worker finds
 * its rank and its world in environment variables (docs/guide/agent.md lists them); they are those of torchrun and some
 * more. If one worker fails, the others are stopped and all are started again, up to a number of restarts.
 *
 * With a rendezvous the agents of several nodes make one world. The workers of all nodes are stopped and started again,
 * with new ranks, when one of them fails, and also when a node dies, leaves or joins; only failures count as restarts.
 * The job is over when the workers of all nodes have succeeded, or when one has failed and no restart is left.
 *
 * Stopping a worker means: a signal to its process group, a grace period, and SIGKILL to what is left of the group.
 * Processes that a worker has started in its group end with the worker. If the process of the agent itself is killed, a
 * small stand-by process, the guard, kills the workers.
 *
 * The agent works in a thread of its own. In an external context that thread drives the engine while it waits, as every
 * call that waits does; the host need not. The agent reports to a queue: ::MUSTER_EVENT_AGENT for each step, and one
 * ::MUSTER_DONE_AGENT at the end. Functions that query the agent see the last step. */
#ifndef MUSTER_AGENT_H
#define MUSTER_AGENT_H

#include <muster/process.h>
#include <muster/rendezvous.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Opaque; made by muster_agent_start(). */
typedef struct muster_agent muster_agent;

/** Flags of muster_agent_config::flags. */
enum muster_agent_flag {
    MUSTER_AGENT_NO_GUARD = 1,          /**< No guard process: workers outlive an agent that is killed. */
    MUSTER_AGENT_VIRTUAL_LOCAL_RANK = 2 /**< LOCAL_RANK is 0 in each worker, and CUDA_VISIBLE_DEVICES names the one
                                             device that is its own: the entry of its local rank in the value that the
                                             environment has, or the number of its local rank. MUSTER_LOCAL_RANK stays
                                             the local rank. As torchrun's `--virtual-local-rank`. */
};

/** Outputs of a worker; bits of muster_agent_config::log_outputs and muster_agent_config::console_outputs. */
enum muster_agent_output {
    MUSTER_AGENT_STDOUT = 1, /**< Descriptor 1. */
    MUSTER_AGENT_STDERR = 2  /**< Descriptor 2. */
};

/** Where the outputs of one worker go; 16 bytes. */
typedef struct muster_agent_outputs {
    uint32_t local_rank;      /**< Local rank of the worker. */
    uint32_t log_outputs;     /**< As muster_agent_config::log_outputs, for this worker alone. */
    uint32_t console_outputs; /**< As muster_agent_config::console_outputs, for this worker alone. */
    uint32_t
        discarded_outputs; /**< ::muster_agent_output values, or'ed: outputs that are not shown. An output that is in
                                `log_outputs`, too, is written to its file; it must not be in `console_outputs`. */
} muster_agent_outputs;

/** What to run; all zero means the defaults named here. Strings are NUL-terminated, as execve() expects them. */
typedef struct muster_agent_config {
    uint32_t struct_size;     /**< sizeof(muster_agent_config) of the caller. */
    uint32_t flags;           /**< ::muster_agent_flag values, or'ed. */
    const char *const *argv;  /**< Program and arguments, terminated by NULL; a name without '/' is searched in PATH. */
    const char *const *envp;  /**< Environment to which the agent adds its variables, terminated by NULL; NULL: that of
                                   this process. */
    const char *directory;    /**< Working directory of the workers; NULL: that of this process. */
    uint32_t worker_count;    /**< Workers of this node, at most 1024; 0: 1. */
    uint32_t max_restarts;    /**< Maximum number of times that a group is restarted after a failure. */
    int64_t grace_ns;         /**< Time between the signal that stops a group and SIGKILL; 0: 30 s. */
    const char *run_id;       /**< Name of the job, 1 to 256 bytes; NULL: "none". */
    const char *role;         /**< Role of these workers, 1 to 64 bytes; NULL: "default". */
    const char *log_dir;      /**< Directory for the files of the workers; it is made if it is absent. NULL: error files
                                   are in a temporary directory, which is deleted with the agent. */
    uint32_t log_outputs;     /**< ::muster_agent_output values, or'ed: outputs that are written to files in log_dir. */
    uint32_t console_outputs; /**< Outputs of which each line is written to out_fd or err_fd, after a prefix
                                   `[role local_rank]:` as in `[default0]:`. Outputs in neither mask are the descriptors
                                   of this process. */
    int32_t out_fd_plus_one;  /**< Destination of lines of descriptor 1, plus 1; the caller keeps it. 0: descriptor 1 of
                                   this process. */
    int32_t err_fd_plus_one;  /**< Destination of lines of descriptor 2, plus 1; the caller keeps it. 0: descriptor 2 of
                                   this process. */
    const char *local_address; /**< Address of this host for the other nodes, which becomes MASTER_ADDR if rank 0 is
                                    here. NULL: the one from which the host in the URL of the rendezvous is reached, or
                                    127.0.0.1 without a rendezvous. */
    const muster_rendezvous_config *rendezvous; /**< How the agents of several nodes meet; copied. Its queue and tag are
                                    ignored, and so is the run_id of the agent. NULL: this is the only node. */
    const char *master_address; /**< MASTER_ADDR, if it is fixed by other means: with `static:` and no store. NULL: the
                                     local address of rank 0. */
    uint32_t master_port;       /**< MASTER_PORT for it; 0: a free port on the host of rank 0. */
    uint32_t reserved0;         /**< Zero. */
    int64_t join_timeout_ns; /**< Maximum time until enough nodes have joined, in each round; 0: 600 s, -1: no limit. */
    int64_t exit_timeout_ns; /**< Maximum time that this node waits for the others when it is done; 0: no limit. */
    const muster_agent_outputs *outputs; /**< Workers with outputs of their own instead of `log_outputs` and
                                              `console_outputs`, each at most once. */
    uint64_t output_count;               /**< Number of entries in `outputs`. */
    uint64_t reserved[2];                /**< Zero. */
} muster_agent_config;

/** The phase of an agent; the value of muster_agent_state::phase. */
enum muster_agent_phase {
    MUSTER_AGENT_JOINING = 1,  /**< It waits for other nodes. */
    MUSTER_AGENT_STARTING = 2, /**< Workers are about to be started. */
    MUSTER_AGENT_RUNNING = 3,  /**< Workers run. */
    MUSTER_AGENT_STOPPING = 4, /**< Workers are being stopped, or have all ended. */
    MUSTER_AGENT_DONE = 5,     /**< All workers of this node have succeeded; other nodes are not done yet. */
    MUSTER_AGENT_ENDED = 6     /**< The agent is over. */
};

/** The state of an agent; filled by muster_agent_get_state(). */
typedef struct muster_agent_state {
    uint32_t phase;            /**< A ::muster_agent_phase value. */
    uint32_t worker_count;     /**< Workers of this node. */
    uint32_t running;          /**< Workers of this node that are running. */
    uint32_t restarts;         /**< Restarts so far because of a failure on any node. */
    uint32_t group_rank;       /**< Rank of this node among the nodes. */
    uint32_t group_world_size; /**< Number of nodes. */
    uint32_t first_rank;       /**< Rank of the first worker of this node; the others are consecutive. */
    uint32_t world_size;       /**< Workers of all nodes. */
    uint64_t round;            /**< With a rendezvous the number of the round, otherwise how often workers were started;
                                    0: not yet. */
    char master_address[256];  /**< MASTER_ADDR of the workers, NUL-terminated; empty: not known yet. */
    uint32_t master_port;      /**< MASTER_PORT of the workers. */
    uint32_t reserved[7];      /**< Zero. */
} muster_agent_state;

/** The state of a worker; the value of muster_agent_worker::state. */
enum muster_agent_worker_state {
    MUSTER_WORKER_NONE = 0,      /**< It was not started. */
    MUSTER_WORKER_RUNNING = 1,   /**< It is running. */
    MUSTER_WORKER_SUCCEEDED = 2, /**< It ended with exit code 0. */
    MUSTER_WORKER_FAILED = 3,    /**< It ended by itself in another way. */
    MUSTER_WORKER_STOPPED = 4    /**< It ended while the agent stopped the group. */
};

/** One worker; filled by muster_agent_get_worker() and muster_agent_first_failure(). */
typedef struct muster_agent_worker {
    uint32_t local_rank;      /**< Number of the worker on this node, from 0. */
    uint32_t rank;            /**< Rank of the worker in the world. */
    uint32_t state;           /**< A ::muster_agent_worker_state value. */
    uint32_t restarts;        /**< Number of restarts before it was started. */
    int32_t pid;              /**< Process id. */
    muster_process_exit exit; /**< How it ended; zero while it runs. */
    uint32_t reserved0;       /**< Zero. */
    int64_t
        started_unix_ns;   /**< Start time by the wall clock, for display only; not suitable for measuring durations. */
    int64_t ended_unix_ns; /**< Time at which its end was seen, or 0. */
    int64_t failed_unix_ns; /**< Time of its failure according to its error file, with a resolution of seconds; without
                                 one as ended_unix_ns. */
    uint64_t round;         /**< muster_agent_state::round in which it was started. */
    char message[512];      /**< Message of its error file, or empty; UTF-8, NUL-terminated, cut at a character. */
    char directory[256];    /**< Directory of its files, or empty: error.json, stdout.log, stderr.log. */
} muster_agent_worker;

/** A step of an agent; the value of muster_completion::events of ::MUSTER_EVENT_AGENT. */
enum muster_agent_event {
    MUSTER_AGENT_STARTED = 1,      /**< All workers of this node were started; bytes is muster_agent_state::round. */
    MUSTER_AGENT_WORKER_ENDED = 2, /**< A worker ended; bytes is its local rank. The error says how, if it failed. */
    MUSTER_AGENT_RESTARTING = 3,   /**< The workers are stopped and will be started again; the error says why. If other
                                        nodes are the reason, the event follows when the next round has begun, since the
                                        job may be over instead. */
    MUSTER_AGENT_RENDEZVOUS_EVENT = 4 /**< The rendezvous has reported an event about other nodes; bytes is a
                                           ::muster_rendezvous_event_kind, and the error has its text, if any. */
};

/** Starts an agent. ::MUSTER_DONE_AGENT follows when the agent is over, with ::MUSTER_OK if all workers succeeded, else
 * with a status of muster_agent_wait(). ::MUSTER_EVENT_AGENT follows for each ::muster_agent_event, and is dropped when
 * the queue is full.
 * @param[in]  context    Context that watches the workers; the agent keeps it alive. Its end stops the workers.
 * @param[in]  config     What to run; copied.
 * @param[in]  queue      Queue of the same context for the completions.
 * @param[in]  tag        Returned in muster_completion::tag.
 * @param[out] out_agent  The agent; the caller owns one reference.
 * @param[out] error      Detail on failure, or NULL.
 * @begun{::MUSTER_DONE_AGENT}
 * @bad_config
 * @retval MUSTER_E_NOT_FOUND    The directory for files cannot be made, or there is no /bin/sh for the guard.
 * @retval MUSTER_E_PERMISSION   The directory for files cannot be made or written.
 * @retval MUSTER_E_EXISTS       A file has the name of the directory.
 * @retval MUSTER_E_NOMEM        Memory ran out, or there are too many processes or threads.
 * @retval MUSTER_E_LIMIT        No descriptor is left.
 * @retval MUSTER_E_SYSTEM       Another system call failed.
 * @threads{any} @blocks{for the files} @since 0.1 */
MUSTER_API muster_status muster_agent_start(muster_context *context, const muster_agent_config *config,
                                            muster_queue *queue, uint64_t tag, muster_agent **out_agent,
                                            muster_error *error);

/** Waits for the end of an agent.
 * @param[in]  agent       Agent to wait for.
 * @param[in]  timeout_ns  Maximum wait; 0 checks once, -1: no limit.
 * @param[out] error       Detail on failure, or NULL. If a worker failed, `rank` is its rank, and `provider_code` its
 *                         exit code, or the negative number of the signal that ended it.
 * @retval MUSTER_OK         All workers succeeded.
 * @retval MUSTER_AGAIN      The agent is not over, and the timeout was 0.
 * @retval MUSTER_TIMEOUT    The agent is not over yet.
 * @retval MUSTER_E_ABORTED  A worker failed, here or on another node, and no restart is left; see
 *                           muster_agent_first_failure().
 * @retval MUSTER_E_CANCELED muster_agent_stop() ended the agent; or muster_context_cancel() ended this wait.
 * @retval MUSTER_E_UNREACHABLE  Too few nodes joined in time; the error says how many are missing.
 * @retval MUSTER_E_STALE    The run had been closed before this agent joined.
 * @retval MUSTER_E_ADDRESS  The URL of the rendezvous cannot be parsed.
 * @retval MUSTER_E_UNSUPPORTED  The store does not support what a rendezvous needs.
 * @retval MUSTER_E_BUSY     The run was to be reopened, and has joined members.
 * @retval MUSTER_E_PROTOCOL What the store holds for this run was not written by this version of Muster.
 * @retval MUSTER_E_AUTH     The proof of the secret failed between this host and that of the store.
 * @retval MUSTER_E_PEER     The store is lost for good.
 * @retval MUSTER_E_NOT_FOUND   The program or the directory does not exist.
 * @retval MUSTER_E_PERMISSION  This user cannot execute the program, or a file cannot be written.
 * @retval MUSTER_E_NOMEM    Memory ran out, or there are too many processes.
 * @retval MUSTER_E_LIMIT    No descriptor is left.
 * @retval MUSTER_E_SYSTEM   Another system call failed.
 * @retval MUSTER_E_CLOSED   The context was closed, or the handle was released; the workers were stopped.
 * @retval MUSTER_E_ARG      agent is NULL; or the run has other parameters, and the error names both.
 * @retval MUSTER_E_FORKED   The agent belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_agent_wait(muster_agent *agent, int64_t timeout_ns, muster_error *error);

/** Sends a signal to the process groups of all running workers of this node.
 * @param[in] agent   Agent of the workers.
 * @param[in] signal  Signal number, 1 to 64.
 * @retval MUSTER_OK        The signal will be sent.
 * @retval MUSTER_E_ARG     agent is NULL, or the signal is out of range.
 * @retval MUSTER_E_STALE   The agent is over.
 * @retval MUSTER_E_FORKED  The agent belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_agent_signal(muster_agent *agent, int32_t signal);

/** Stops the workers of this node and ends the agent. A further call, for instance with a shorter grace, replaces the
 * earlier one.
 * @param[in] agent     Agent to stop.
 * @param[in] signal    First signal to the workers, 1 to 64; 0: SIGTERM.
 * @param[in] grace_ns  Time from now until SIGKILL; 0: none, negative: as configured.
 * @retval MUSTER_OK        The workers will be stopped; ::MUSTER_DONE_AGENT follows.
 * @retval MUSTER_E_ARG     agent is NULL, or the signal is out of range.
 * @retval MUSTER_E_STALE   The agent is over.
 * @retval MUSTER_E_FORKED  The agent belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_agent_stop(muster_agent *agent, int32_t signal, int64_t grace_ns);

/** Reads the state of an agent.
 * @param[in]  agent      Agent to query.
 * @param[out] out_state  Filled.
 * @filled
 * @retval MUSTER_E_ARG     No agent or no destination.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_agent_get_state(muster_agent *agent, muster_agent_state *out_state);

/** Returns the rendezvous of an agent, to read its state and its list of members. Only the agent joins and leaves.
 * @param[in]  agent           Agent to query.
 * @param[out] out_rendezvous  The rendezvous; the caller owns one reference.
 * @retval MUSTER_OK            out_rendezvous was set.
 * @retval MUSTER_E_ARG         No agent or no destination.
 * @retval MUSTER_E_NOT_FOUND   The agent has no rendezvous, or none yet, or it is over.
 * @retval MUSTER_E_FORKED      The agent belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_agent_rendezvous(muster_agent *agent, muster_rendezvous **out_rendezvous);

/** Reads one worker of this node, as of its last start.
 * @param[in]  agent       Agent to query.
 * @param[in]  local_rank  Local rank of the worker, from 0.
 * @param[out] out_worker  Filled.
 * @filled
 * @retval MUSTER_E_ARG        No agent or no destination.
 * @retval MUSTER_E_NOT_FOUND  The node has fewer workers.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_agent_get_worker(muster_agent *agent, uint32_t local_rank,
                                                 muster_agent_worker *out_worker);

/** Reads the worker of this node that failed first, in the last group in which one failed. That is the worker whose
 * error file has the earliest time, or without error files the one that ended first.
 * @param[in]  agent       Agent to query.
 * @param[out] out_worker  Filled.
 * @filled
 * @retval MUSTER_E_ARG        No agent or no destination.
 * @retval MUSTER_E_NOT_FOUND  No worker has failed.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_agent_first_failure(muster_agent *agent, muster_agent_worker *out_worker);

/** Copies the text in the error file of muster_agent_first_failure(): the place in the program where the worker failed
 * (`py_callstack`) if the file has it, otherwise the message.
 * @param[in]  agent      Agent to query.
 * @param[out] out_text   Destination of the text; NULL to get the size only.
 * @param[in]  capacity   Size of the destination, in bytes.
 * @param[out] out_bytes  Length of the text, which has no terminator. 0: the worker wrote no error file.
 * @copied
 * @retval MUSTER_E_ARG        No agent, or no destination for the length.
 * @retval MUSTER_E_NOT_FOUND  No worker has failed.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_agent_failure_text(muster_agent *agent, char *out_text, size_t capacity,
                                                   size_t *out_bytes);

/** Waits until the lines of console_outputs were written: all lines of workers that had ended before the call.
 * @param[in] agent       Agent of the workers.
 * @param[in] timeout_ns  Maximum wait; 0 checks once, -1: no limit.
 * @retval MUSTER_OK       The lines were written, as far as the descriptors accepted them.
 * @retval MUSTER_AGAIN    Lines are not written yet, and the timeout was 0.
 * @retval MUSTER_TIMEOUT  Lines are not written yet.
 * @retval MUSTER_E_ARG    agent is NULL.
 * @retval MUSTER_E_CANCELED  muster_context_cancel() was called during the wait.
 * @retval MUSTER_E_CLOSED The handle was released during the call.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called inside a callback of the engine, with a timeout.
 * @retval MUSTER_E_FORKED The agent belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_agent_flush(muster_agent *agent, int64_t timeout_ns);

/** Begins to flush, as muster_agent_flush() does; ::MUSTER_DONE_CALL has its status.
 * @param[in]  agent       Agent of the workers.
 * @param[in]  timeout_ns  Maximum time; -1: no limit.
 * @param[in]  queue       Queue of the same context for the completion.
 * @param[in]  tag         Returned in muster_completion::tag.
 * @param[out] error       Detail on failure, or NULL.
 * @begun{::MUSTER_DONE_CALL}
 * @retval MUSTER_E_ARG     A value is missing or out of range, or the queue is of another context.
 * @retval MUSTER_E_NOMEM   Memory or threads ran out.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_agent_flush_begin(muster_agent *agent, int64_t timeout_ns, muster_queue *queue,
                                                  uint64_t tag, muster_error *error);

/** Releases the handle; the workers are stopped as by muster_agent_stop(), without a wait. Threads that wait in a call
 * on it return ::MUSTER_E_CLOSED; ::MUSTER_DONE_AGENT still follows.
 * @param[in] agent  What to release; NULL has no effect.
 * @threads{any, finalizers included} @blocks{no} @since 0.1 */
MUSTER_API void muster_agent_release(muster_agent *agent);

#ifdef __cplusplus
}
#endif
#endif
