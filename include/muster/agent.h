/* SPDX-License-Identifier: MIT */
/** @file
 * The agent: starts the workers of this node, watches them, and starts them again where that helps.
 *
 * An agent runs one group of workers, copies of one program that differ by their rank. They are told who they are by
 * variables of the environment (docs/guide/agent.md lists them), which are those of torchrun with others beside them.
 * If one fails the others are stopped, and all are started again, up to a number of restarts.
 *
 * With a rendezvous the agents of several nodes make one world. The workers of all nodes are stopped and started again,
 * with new ranks, when one of them fails, and also when a node dies, leaves or comes; only failures count as restarts.
 * The job is over when the workers of all nodes have succeeded, or when one failed and no restart is left.
 *
 * Stopping is: a signal to the process group of each worker, a grace, SIGKILL to what is left. What a worker started
 * and left in its group ends with the worker. If the process of the agent itself is killed, a small process that stands
 * by, the guard, kills the workers.
 *
 * The agent works in a thread of its own, which drives the engine of an external context while it waits, as every call
 * that waits does; nobody else has to. What happens comes off a queue: ::MUSTER_EVENT_AGENT for each step,
 * ::MUSTER_DONE_AGENT once, at the end. Functions that ask see the last step. */
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
    MUSTER_AGENT_NO_GUARD = 1 /**< No guard: workers outlive a killed agent. */
};

/** Outputs of a worker; bits of muster_agent_config::log_outputs and muster_agent_config::console_outputs. */
enum muster_agent_output {
    MUSTER_AGENT_STDOUT = 1, /**< Descriptor 1. */
    MUSTER_AGENT_STDERR = 2  /**< Descriptor 2. */
};

/** What becomes of the outputs of one worker; 16 bytes. */
typedef struct muster_agent_outputs {
    uint32_t local_rank;      /**< Which worker of this node. */
    uint32_t log_outputs;     /**< As muster_agent_config::log_outputs, for this worker alone. */
    uint32_t console_outputs; /**< As muster_agent_config::console_outputs, for this worker alone. */
    uint32_t reserved;        /**< Zero. */
} muster_agent_outputs;

/** What to run; all zero means the defaults named here. Strings are NUL-terminated here, as execve() wants them. */
typedef struct muster_agent_config {
    uint32_t struct_size;      /**< sizeof(muster_agent_config) of the caller. */
    uint32_t flags;            /**< ::muster_agent_flag values, or'ed. */
    const char *const *argv;   /**< Program and arguments, NULL at the end; a name without '/' is looked up in PATH. */
    const char *const *envp;   /**< Environment to which the agent adds its own variables, NULL at the end; NULL means
                                    this process's own. */
    const char *directory;     /**< Working directory of the workers; NULL means this process's own. */
    uint32_t worker_count;     /**< Workers of this node, at most 1024; 0: 1. */
    uint32_t max_restarts;     /**< How often a group in which a worker failed is started again. */
    int64_t grace_ns;          /**< Time between the signal that stops a group and SIGKILL; 0: 30 s. */
    const char *run_id;        /**< Name of the job, 1 to 256 bytes; NULL: "none". */
    const char *role;          /**< What these workers are, 1 to 64 bytes; NULL: "default". */
    const char *log_dir;       /**< Directory for the files of the workers; it is made if it is not there. NULL: error
                                    files go to a temporary one, which goes with the agent. */
    uint32_t log_outputs;      /**< ::muster_agent_output values, or'ed: outputs that go to files in log_dir. */
    uint32_t console_outputs;  /**< Outputs of which each line, behind `[role local_rank]:` as in `[default0]:`, is
                          written to out_fd or err_fd. Outputs that are neither filed nor shown are this
                          process's own descriptors. */
    int32_t out_fd_plus_one;   /**< Where lines of descriptor 1 go, plus 1; stays the caller's. 0: this process's 1. */
    int32_t err_fd_plus_one;   /**< Where lines of descriptor 2 go, plus 1; stays the caller's. 0: this process's 2. */
    const char *local_address; /**< Address of this host for the others, told as MASTER_ADDR if rank 0 is here; NULL:
                                    the one from which the host in the URL of the rendezvous is reached; without a
                                    rendezvous 127.0.0.1. */
    const muster_rendezvous_config *rendezvous; /**< How to meet the agents of other nodes; copied. Its queue and tag
                                    are not looked at, and neither is the agent's own run_id. NULL: there are none. */
    const char *master_address; /**< MASTER_ADDR, where it is settled by others: with `static:` and no store. NULL: the
                                     local address of rank 0. */
    uint32_t master_port;       /**< MASTER_PORT that goes with it; 0: one that is free on the host of rank 0. */
    uint32_t reserved0;         /**< Zero. */
    int64_t join_timeout_ns;    /**< Longest time until enough nodes are there, each time; 0: 600 s, -1: no end. */
    int64_t exit_timeout_ns;    /**< Longest time that this node, done, waits for the others; 0: no end. */
    const muster_agent_outputs
        *outputs;          /**< Workers to whom `log_outputs` and `console_outputs` do not apply, each once at most. */
    uint64_t output_count; /**< How many. */
    uint64_t reserved[2];  /**< Zero. */
} muster_agent_config;

/** Where an agent is; the value of muster_agent_state::phase. */
enum muster_agent_phase {
    MUSTER_AGENT_JOINING = 1,  /**< It waits for other nodes. */
    MUSTER_AGENT_STARTING = 2, /**< Workers are about to be started. */
    MUSTER_AGENT_RUNNING = 3,  /**< Workers run. */
    MUSTER_AGENT_STOPPING = 4, /**< Workers are being stopped, or are all over. */
    MUSTER_AGENT_DONE = 5,     /**< All workers of this node have succeeded; other nodes are not so far. */
    MUSTER_AGENT_ENDED = 6     /**< It is over. */
};

/** What an agent does; filled by muster_agent_get_state(). */
typedef struct muster_agent_state {
    uint32_t phase;            /**< A ::muster_agent_phase value. */
    uint32_t worker_count;     /**< Workers of this node. */
    uint32_t running;          /**< Workers of this node that run now. */
    uint32_t restarts;         /**< Restarts because of a failure on any node, so far. */
    uint32_t group_rank;       /**< Rank of this node among the nodes. */
    uint32_t group_world_size; /**< Number of nodes. */
    uint32_t first_rank;       /**< Rank of the first worker of this node; the others follow. */
    uint32_t world_size;       /**< Workers of all nodes. */
    uint64_t round;            /**< With a rendezvous the number of the round, else how often workers were started; 0:
                                    not yet. */
    char master_address[256];  /**< MASTER_ADDR of the workers, NUL-terminated; empty: not known yet. */
    uint32_t master_port;      /**< MASTER_PORT of the workers. */
    uint32_t reserved[7];      /**< Zero. */
} muster_agent_state;

/** How a worker fares; the value of muster_agent_worker::state. */
enum muster_agent_worker_state {
    MUSTER_WORKER_NONE = 0,      /**< It was not started. */
    MUSTER_WORKER_RUNNING = 1,   /**< It runs. */
    MUSTER_WORKER_SUCCEEDED = 2, /**< It ended with exit code 0. */
    MUSTER_WORKER_FAILED = 3,    /**< It ended by itself, in another way. */
    MUSTER_WORKER_STOPPED = 4    /**< It ended while the agent stopped the group. */
};

/** One worker; filled by muster_agent_get_worker() and muster_agent_first_failure(). */
typedef struct muster_agent_worker {
    uint32_t local_rank;      /**< Its number on this node, from 0. */
    uint32_t rank;            /**< Its number among all. */
    uint32_t state;           /**< A ::muster_agent_worker_state value. */
    uint32_t restarts;        /**< Restarts there had been when it was started. */
    int32_t pid;              /**< Its process id. */
    muster_process_exit exit; /**< How it ended; zero while it runs. */
    uint32_t reserved0;       /**< Zero. */
    int64_t started_unix_ns;  /**< When it was started, by the wall clock; to be shown, not to be reckoned with. */
    int64_t ended_unix_ns;    /**< When it was seen to have ended, or 0. */
    int64_t failed_unix_ns;   /**< When it failed by its own error file, which knows seconds; else as ended_unix_ns. */
    uint64_t round;           /**< Its muster_agent_state::round. */
    char message[512];        /**< What its error file says, or empty; UTF-8, NUL-terminated, cut at a character. */
    char directory[256];      /**< Where its files are, or empty: error.json, stdout.log, stderr.log. */
} muster_agent_worker;

/** Steps of an agent; the value of muster_completion::events of ::MUSTER_EVENT_AGENT. */
enum muster_agent_event {
    MUSTER_AGENT_STARTED = 1,      /**< All workers of this node were started; bytes is muster_agent_state::round. */
    MUSTER_AGENT_WORKER_ENDED = 2, /**< A worker ended; bytes is its local rank. If it failed the error tells how. */
    MUSTER_AGENT_RESTARTING = 3,   /**< The workers are stopped and start again; the error tells why. If it is for other
                                        nodes' sake it comes when the next round is there, as the job may have ended. */
    MUSTER_AGENT_RENDEZVOUS_EVENT = 4 /**< Of other nodes; bytes is a ::muster_rendezvous_event_kind, the error has the
                                text of the event, if any. */
};

/** Starts an agent. ::MUSTER_DONE_AGENT comes when it is over, with ::MUSTER_OK if all workers succeeded, else with a
 * status of muster_agent_wait(). ::MUSTER_EVENT_AGENT comes for each ::muster_agent_event, and is left out when the
 * queue is full.
 * @param[in]  context    Context that watches; the agent keeps it alive. Its end stops the workers.
 * @param[in]  config     What to run; copied.
 * @param[in]  queue      Where completions appear.
 * @param[in]  tag        Returned in muster_completion::tag.
 * @param[out] out_agent  The agent; the caller owns one reference.
 * @param[out] error      Detail on failure, or NULL.
 * @begun{::MUSTER_DONE_AGENT}
 * @bad_config
 * @retval MUSTER_E_NOT_FOUND    The directory for files cannot be made, or there is no /bin/sh for the guard.
 * @retval MUSTER_E_PERMISSION   The directory for files cannot be made or written.
 * @retval MUSTER_E_EXISTS       A file is where the directory is to be.
 * @retval MUSTER_E_NOMEM        No memory, or too many processes or threads.
 * @retval MUSTER_E_LIMIT        No descriptor is left.
 * @retval MUSTER_E_SYSTEM       Another system call failed.
 * @threads{any} @blocks{for the files} @since 0.1 */
MUSTER_API muster_status muster_agent_start(muster_context *context, const muster_agent_config *config,
                                            muster_queue *queue, uint64_t tag, muster_agent **out_agent,
                                            muster_error *error);

/** Waits for the end of an agent.
 * @param[in]  agent       Agent to wait for.
 * @param[in]  timeout_ns  Maximum wait; 0 checks once, -1: no limit.
 * @param[out] error       Detail on failure, or NULL. Of a worker that failed, `rank` is its rank, and `provider_code`
 *                         its exit code, or the number of the signal that ended it, negative.
 * @retval MUSTER_OK         All workers succeeded.
 * @retval MUSTER_AGAIN      It is not over, and the timeout was 0.
 * @retval MUSTER_TIMEOUT    It is not over yet.
 * @retval MUSTER_E_ABORTED  A worker failed, here or on another node, and no restart is left; see
 *                           muster_agent_first_failure().
 * @retval MUSTER_E_CANCELED muster_agent_stop() ended it; or muster_context_cancel() ended this wait.
 * @retval MUSTER_E_UNREACHABLE  Not enough nodes came in time; the error says how many are missing.
 * @retval MUSTER_E_STALE    The run had been closed before this agent came.
 * @retval MUSTER_E_ADDRESS  The URL of the rendezvous cannot be parsed.
 * @retval MUSTER_E_UNSUPPORTED  The store cannot do what a rendezvous needs.
 * @retval MUSTER_E_BUSY     The run is to be opened again, and somebody is in.
 * @retval MUSTER_E_PROTOCOL What the store has under this run is not of this version of Muster.
 * @retval MUSTER_E_AUTH     The proof of the secret failed between this host and the store's.
 * @retval MUSTER_E_PEER     The store is lost for good.
 * @retval MUSTER_E_NOT_FOUND   No such program or directory.
 * @retval MUSTER_E_PERMISSION  The program cannot be executed by this user, or a file cannot be written.
 * @retval MUSTER_E_NOMEM    No memory, or too many processes.
 * @retval MUSTER_E_LIMIT    No descriptor is left.
 * @retval MUSTER_E_SYSTEM   Another system call failed.
 * @retval MUSTER_E_CLOSED   The context was closed, or the handle released; its workers were stopped.
 * @retval MUSTER_E_ARG      No agent; or the run has other parameters, the error names both.
 * @retval MUSTER_E_FORKED   The agent belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_agent_wait(muster_agent *agent, int64_t timeout_ns, muster_error *error);

/** Sends a signal to the process groups of all workers of this node that run.
 * @param[in] agent   Whose workers.
 * @param[in] signal  Signal number, 1 to 64.
 * @retval MUSTER_OK        It will be sent.
 * @retval MUSTER_E_ARG     No agent, or an impossible signal.
 * @retval MUSTER_E_STALE   The agent is over.
 * @retval MUSTER_E_FORKED  The agent belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_agent_signal(muster_agent *agent, int32_t signal);

/** Stops the workers of this node and ends the agent. Asked again, with a shorter grace say, the last call counts.
 * @param[in] agent     Agent to stop.
 * @param[in] signal    What the workers are sent first, 1 to 64; 0: SIGTERM.
 * @param[in] grace_ns  Time they have after it, from now, before SIGKILL; 0: none, negative: as configured.
 * @retval MUSTER_OK        They will be stopped; ::MUSTER_DONE_AGENT tells when.
 * @retval MUSTER_E_ARG     No agent, or an impossible signal.
 * @retval MUSTER_E_STALE   The agent is over.
 * @retval MUSTER_E_FORKED  The agent belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_agent_stop(muster_agent *agent, int32_t signal, int64_t grace_ns);

/** Tells what an agent does.
 * @param[in]  agent      Agent to query.
 * @param[out] out_state  Filled.
 * @filled
 * @retval MUSTER_E_ARG     No agent or no destination.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_agent_get_state(muster_agent *agent, muster_agent_state *out_state);

/** Gives the rendezvous of an agent, to ask it for its state and who has joined. Joining and leaving are the agent's.
 * @param[in]  agent           Agent to query.
 * @param[out] out_rendezvous  The rendezvous; the caller owns one reference.
 * @retval MUSTER_OK            Given.
 * @retval MUSTER_E_ARG         No agent or no destination.
 * @retval MUSTER_E_NOT_FOUND   It has none, or none yet, or it is over.
 * @retval MUSTER_E_FORKED      The agent belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_agent_rendezvous(muster_agent *agent, muster_rendezvous **out_rendezvous);

/** Tells about one worker of this node, as it was started last.
 * @param[in]  agent       Agent to query.
 * @param[in]  local_rank  Which worker, from 0.
 * @param[out] out_worker  Filled.
 * @filled
 * @retval MUSTER_E_ARG        No agent or no destination.
 * @retval MUSTER_E_NOT_FOUND  There are not so many.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_agent_get_worker(muster_agent *agent, uint32_t local_rank,
                                                 muster_agent_worker *out_worker);

/** Tells which worker of this node failed first, the last time that one did.
 * Of those that failed it is the one whose error file has the earliest time, else the one that ended first.
 * @param[in]  agent       Agent to query.
 * @param[out] out_worker  Filled.
 * @filled
 * @retval MUSTER_E_ARG        No agent or no destination.
 * @retval MUSTER_E_NOT_FOUND  None has failed.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_agent_first_failure(muster_agent *agent, muster_agent_worker *out_worker);

/** Copies what the error file of muster_agent_first_failure() told: where in its program the worker failed
 * (`py_callstack`), if it says that, else its message.
 * @param[in]  agent      Agent to query.
 * @param[out] out_text   Where it goes; NULL to learn the size only.
 * @param[in]  capacity   Size of the destination, in bytes.
 * @param[out] out_bytes  Length of the text; there is no terminator. 0: it wrote no error file.
 * @copied
 * @retval MUSTER_E_ARG        No agent, or no place for the length.
 * @retval MUSTER_E_NOT_FOUND  None has failed.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_agent_failure_text(muster_agent *agent, char *out_text, size_t capacity,
                                                   size_t *out_bytes);

/** Waits until the lines that are shown were written: all that workers wrote which had ended before the call.
 * @param[in] agent       Whose workers.
 * @param[in] timeout_ns  Maximum wait; 0 checks once, -1: no limit.
 * @retval MUSTER_OK       Written, as far as the descriptors took them.
 * @retval MUSTER_AGAIN    Not yet, and the timeout was 0.
 * @retval MUSTER_TIMEOUT  Not yet.
 * @retval MUSTER_E_ARG    No agent.
 * @retval MUSTER_E_CANCELED  muster_context_cancel() was called during the wait.
 * @retval MUSTER_E_CLOSED The handle was released during the call.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called inside a callback of the engine, with a timeout.
 * @retval MUSTER_E_FORKED The agent belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_agent_flush(muster_agent *agent, int64_t timeout_ns);

/** Begins to flush, as muster_agent_flush() does; ::MUSTER_DONE_CALL comes with its status.
 * @param[in]  agent       Whose workers.
 * @param[in]  timeout_ns  Longest time it may take; -1 has no end.
 * @param[in]  queue       Queue of the same context for the completion.
 * @param[in]  tag         Returned in muster_completion::tag.
 * @param[out] error       Detail on failure, or NULL.
 * @begun{::MUSTER_DONE_CALL}
 * @retval MUSTER_E_ARG     A value is missing or out of range, or the queue is of another context.
 * @retval MUSTER_E_NOMEM   Memory or threads ran out.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_agent_flush_begin(muster_agent *agent, int64_t timeout_ns, muster_queue *queue,
                                                  uint64_t tag, muster_error *error);

/** Releases the handle; the workers are stopped, as by muster_agent_stop(), without a wait for it. Threads that wait in
 * a call on it return ::MUSTER_E_CLOSED; ::MUSTER_DONE_AGENT still comes.
 * @param[in] agent  What to release; NULL has no effect.
 * @threads{any, finalizers included} @blocks{no} @since 0.1 */
MUSTER_API void muster_agent_release(muster_agent *agent);

#ifdef __cplusplus
}
#endif
#endif
