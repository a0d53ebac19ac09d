/* SPDX-License-Identifier: MIT */
/** @file
 * Child processes: spawn, watch, wait, kill; without SIGCHLD.
 *
 * A child is started by posix_spawn in a process group of its own, with default signal dispositions, an empty signal
 * mask and only the descriptors meant for it, and is watched through a pidfd. The host's SIGCHLD handling is neither
 * used nor touched; a host that ignores SIGCHLD or reaps every child costs only the exit code. */
#ifndef MUSTER_PROCESS_H
#define MUSTER_PROCESS_H

#include <muster/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Opaque; a child process. */
typedef struct muster_process muster_process;

/** Gives one descriptor of this process a number in the child. */
typedef struct muster_process_fd {
    int32_t parent_fd; /**< Descriptor here; stays open here, the caller's. -1 means /dev/null. */
    int32_t child_fd;  /**< Its number in the child, 0 to 1023. */
} muster_process_fd;

/** What to start. Strings are NUL-terminated here, as execve() wants them. */
typedef struct muster_process_config {
    uint32_t struct_size;    /**< sizeof(muster_process_config) of the caller. */
    uint32_t flags;          /**< Zero. */
    const char *const *argv; /**< Program and arguments, NULL at the end; a name without '/' is looked up in PATH. */
    const char *const *envp; /**< Environment, NULL at the end; NULL means this process's own. */
    const char *directory;   /**< Working directory of the child; NULL means this process's own. */
    const muster_process_fd *fds; /**< Descriptors for the child. Those of 0, 1, 2 not named are /dev/null, this
                                       process's 1 and this process's 2. */
    uint64_t fd_count;            /**< How many, at most 64. */
} muster_process_config;

/** How a process ended; fields of muster_process_exit::kind. */
enum muster_process_exit_kind {
    MUSTER_PROCESS_EXITED = 1, /**< By exit(); value is the code. */
    MUSTER_PROCESS_KILLED = 2, /**< By a signal; value is its number. */
    MUSTER_PROCESS_UNKNOWN = 3 /**< It is gone, but the host reaped it first or ignores SIGCHLD. */
};

/** How a process ended. */
typedef struct muster_process_exit {
    int32_t kind;  /**< A ::muster_process_exit_kind value. */
    int32_t value; /**< Exit code, signal number, or 0. */
} muster_process_exit;

/** Starts a program.
 * @param[in]  context      Context that watches it; the process object keeps it alive.
 * @param[in]  config       What to start; copied.
 * @param[out] out_process  The child; the caller owns one reference.
 * @param[out] error        Detail on failure, or NULL.
 * @retval MUSTER_OK            Started: execve() succeeded.
 * @bad_config
 * @retval MUSTER_E_NOT_FOUND   No such program or directory.
 * @retval MUSTER_E_PERMISSION  Not executable for this user.
 * @retval MUSTER_E_NOMEM       No memory, or too many processes.
 * @retval MUSTER_E_LIMIT       No descriptor is left.
 * @retval MUSTER_E_SYSTEM      Another system call failed; see muster_error::os_errno.
 * @retval MUSTER_E_CLOSED      The context is closed.
 * @retval MUSTER_E_FORKED      The context belongs to the parent process.
 * @threads{any} @blocks{until the program has been loaded} @since 0.1 */
MUSTER_API muster_status muster_process_spawn(muster_context *context, const muster_process_config *config,
                                              muster_process **out_process, muster_error *error);

/** Tells the process id.
 * @param[in] process  Process to query.
 * @return The id; it stays taken until the exit was noticed. 0 without a process or after fork().
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API int32_t muster_process_pid(const muster_process *process);

/** Waits for the end of a process; muster_process_watch() is the form that does not block. In an external context the
 * call drives the engine while it waits.
 * @param[in]  process     Process to wait for.
 * @param[in]  timeout_ns  Maximum wait; 0 checks once, -1: no limit.
 * @param[out] out_exit    How it ended; or NULL.
 * @retval MUSTER_OK       It has ended.
 * @retval MUSTER_AGAIN    It runs, and the timeout was 0.
 * @retval MUSTER_TIMEOUT  It still runs.
 * @retval MUSTER_E_ARG    No process.
 * @retval MUSTER_E_SYSTEM It cannot be watched any more.
 * @retval MUSTER_E_CANCELED  muster_context_cancel() was called during the wait.
 * @retval MUSTER_E_CLOSED The handle was released during the call.
 * @retval MUSTER_E_FORKED The process belongs to the parent of this one.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_process_wait(muster_process *process, int64_t timeout_ns,
                                             muster_process_exit *out_exit);

/** Asks for ::MUSTER_DONE_EXIT when the process ends; one watch per process. Its bytes hold kind << 32 | value of
 * muster_process_exit. If it can be watched no longer, it comes with bytes 0 and its status tells: ::MUSTER_E_CLOSED,
 * the context was closed first; ::MUSTER_E_SYSTEM, the system refuses.
 * @param[in] process  Process to watch.
 * @param[in] queue    Queue of the same context for the one completion.
 * @param[in] tag      Returned in muster_completion::tag.
 * @retval MUSTER_OK       The completion will come, at once if it has ended already.
 * @retval MUSTER_AGAIN    No slot in the queue.
 * @retval MUSTER_E_ARG    No process or queue, or a queue of another context.
 * @retval MUSTER_E_BUSY   It is watched already.
 * @retval MUSTER_E_CLOSED The context or queue is closed.
 * @retval MUSTER_E_SYSTEM The system refuses to watch it.
 * @retval MUSTER_E_FORKED The process belongs to the parent of this one.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_process_watch(muster_process *process, muster_queue *queue, uint64_t tag);

/** Sends a signal to the process and its whole group.
 * @param[in] process  Process to signal.
 * @param[in] signal   Signal number, 1 to 64; 0 only checks that it lives.
 * @retval MUSTER_OK             Sent.
 * @retval MUSTER_E_ARG          No process, or an impossible signal.
 * @retval MUSTER_E_STALE        It has ended.
 * @retval MUSTER_E_PERMISSION   The system refuses.
 * @retval MUSTER_E_FORKED       The process belongs to the parent of this one.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_process_kill(muster_process *process, int32_t signal);

/** Releases the handle; the child goes on, and is still reaped when it ends. Threads that wait in muster_process_wait()
 * return ::MUSTER_E_CLOSED; a watch still completes.
 * @param[in] process  What to release; NULL has no effect.
 * @threads{any, finalizers included} @blocks{no} @since 0.1 */
MUSTER_API void muster_process_release(muster_process *process);

/** Ends this process when another one is gone (the local master that started it, say): SIGTERM to itself from a
 * library thread, then SIGKILL. For workers, whose computing threads cannot notice.
 * @param[in]  context   Context whose thread watches.
 * @param[in]  pid       Process to outlive by no more than the grace.
 * @param[in]  grace_ns  Time between SIGTERM and SIGKILL; 0: 2 s.
 * @param[out] error     Detail on failure, or NULL.
 * @retval MUSTER_OK             Watching. If it had ended already, the end comes now.
 * @retval MUSTER_E_ARG          No context, a negative grace, or a pid that is impossible or this process's own.
 * @retval MUSTER_E_UNSUPPORTED  The context has no thread of its own.
 * @retval MUSTER_E_NOMEM        Memory ran out.
 * @retval MUSTER_E_LIMIT        No descriptor is left.
 * @retval MUSTER_E_SYSTEM       It cannot be watched.
 * @retval MUSTER_E_CLOSED       The context is closed.
 * @retval MUSTER_E_FORKED       The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_process_exit_with(muster_context *context, int32_t pid, int64_t grace_ns,
                                                  muster_error *error);

#ifdef __cplusplus
}
#endif
#endif
