/* SPDX-License-Identifier: MIT */
/** @file
 * Child processes: spawn, watch, wait, kill; without SIGCHLD.
 *
 * A child is started by posix_spawn in a process group of its own, with default signal dispositions, an empty signal
 * mask and only the descriptors meant for it, and is watched through a pidfd. The host's SIGCHLD handling is neither
 * used nor touched; if the host ignores SIGCHLD or reaps every child, only the exit code is lost. */
#ifndef MUSTER_PROCESS_H
#define MUSTER_PROCESS_H

#include <muster/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Opaque; a child process. */
typedef struct muster_process muster_process;

/** Maps a descriptor of this process to a number in the child. */
typedef struct muster_process_fd {
    int32_t parent_fd; /**< Descriptor of this process; it stays open and belongs to the caller. -1: /dev/null. */
    int32_t child_fd;  /**< Its number in the child, 0 to 1023. */
} muster_process_fd;

/** What to start. Strings are NUL-terminated, as execve() expects them. */
typedef struct muster_process_config {
    uint32_t struct_size;    /**< sizeof(muster_process_config) of the caller. */
    uint32_t flags;          /**< Zero. */
    const char *const *argv; /**< Program and arguments, terminated by NULL; a name without '/' is searched in PATH. */
    const char *const *envp; /**< Environment, terminated by NULL; NULL: that of this process. */
    const char *directory;   /**< Working directory of the child; NULL: that of this process. */
    const muster_process_fd *fds; /**< Descriptors for the child. The defaults for 0, 1 and 2 are /dev/null and
                                       the descriptors 1 and 2 of this process. */
    uint64_t fd_count;            /**< Number of descriptors, at most 64. */
} muster_process_config;

/** How a process ended; the value of muster_process_exit::kind. */
enum muster_process_exit_kind {
    MUSTER_PROCESS_EXITED = 1, /**< By exit(); value is the code. */
    MUSTER_PROCESS_KILLED = 2, /**< By a signal; value is its number. */
    MUSTER_PROCESS_UNKNOWN = 3 /**< It has ended, but the host reaped it first or ignores SIGCHLD. */
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
 * @retval MUSTER_E_NOT_FOUND   The program or the directory does not exist.
 * @retval MUSTER_E_PERMISSION  This user cannot execute the program.
 * @retval MUSTER_E_NOMEM       Memory ran out, or there are too many processes.
 * @retval MUSTER_E_LIMIT       No descriptor is left.
 * @retval MUSTER_E_SYSTEM      Another system call failed; see muster_error::os_errno.
 * @retval MUSTER_E_CLOSED      The context is closed.
 * @retval MUSTER_E_FORKED      The context belongs to the parent process.
 * @threads{any} @blocks{until the program has been loaded} @since 0.1 */
MUSTER_API muster_status muster_process_spawn(muster_context *context, const muster_process_config *config,
                                              muster_process **out_process, muster_error *error);

/** Returns the process id.
 * @param[in] process  Process to query.
 * @return The id, which is not reused before the exit was seen. 0 if process is NULL, or after fork().
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API int32_t muster_process_pid(const muster_process *process);

/** Waits for the end of a process; muster_process_watch() is the form that does not block. In an external context the
 * call drives the engine while it waits.
 * @param[in]  process     Process to wait for.
 * @param[in]  timeout_ns  Maximum wait; 0 checks once, -1: no limit.
 * @param[out] out_exit    How it ended; or NULL.
 * @retval MUSTER_OK       The process has ended.
 * @retval MUSTER_AGAIN    The process runs, and the timeout was 0.
 * @retval MUSTER_TIMEOUT  The process still runs.
 * @retval MUSTER_E_ARG    No process.
 * @retval MUSTER_E_SYSTEM The process cannot be watched any more.
 * @retval MUSTER_E_CANCELED  muster_context_cancel() was called during the wait.
 * @retval MUSTER_E_CLOSED The handle was released during the call.
 * @retval MUSTER_E_FORKED The process belongs to the parent of this one.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_process_wait(muster_process *process, int64_t timeout_ns,
                                             muster_process_exit *out_exit);

/** Watches a process: ::MUSTER_DONE_EXIT follows when it ends; one watch per process. Its bytes are kind << 32 | value
 * of muster_process_exit. If the process can no longer be watched, the bytes are 0, and the status is ::MUSTER_E_CLOSED
 * if the context was closed first, or ::MUSTER_E_SYSTEM if the system refuses.
 * @param[in] process  Process to watch.
 * @param[in] queue    Queue of the same context for the one completion.
 * @param[in] tag      Returned in muster_completion::tag.
 * @retval MUSTER_OK       The completion follows, at once if the process has ended already.
 * @retval MUSTER_AGAIN    The queue has no free slot.
 * @retval MUSTER_E_ARG    No process or queue, or a queue of another context.
 * @retval MUSTER_E_BUSY   The process is watched already.
 * @retval MUSTER_E_CLOSED The context or queue is closed.
 * @retval MUSTER_E_SYSTEM The system refuses to watch it.
 * @retval MUSTER_E_FORKED The process belongs to the parent of this one.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_process_watch(muster_process *process, muster_queue *queue, uint64_t tag);

/** Sends a signal to the process and its whole group.
 * @param[in] process  Process to signal.
 * @param[in] signal   Signal number, 1 to 64; 0 only checks that it exists.
 * @retval MUSTER_OK             Sent.
 * @retval MUSTER_E_ARG          process is NULL, or the signal is out of range.
 * @retval MUSTER_E_STALE        The process has ended.
 * @retval MUSTER_E_PERMISSION   The system refuses.
 * @retval MUSTER_E_FORKED       The process belongs to the parent of this one.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_process_kill(muster_process *process, int32_t signal);

/** Releases the handle; the child continues, and is still reaped when it ends. Threads that wait in
 * muster_process_wait() return ::MUSTER_E_CLOSED; a watch still completes.
 * @param[in] process  What to release; NULL has no effect.
 * @threads{any, finalizers included} @blocks{no} @since 0.1 */
MUSTER_API void muster_process_release(muster_process *process);

/** Ends this process when another one is gone (for instance the local master that started it): SIGTERM to itself from a
 * library thread, then SIGKILL. For workers, whose computing threads cannot notice it.
 * @param[in]  context   Context whose thread watches.
 * @param[in]  pid       Process whose end ends this process.
 * @param[in]  grace_ns  Time between SIGTERM and SIGKILL; 0: 2 s.
 * @param[out] error     Detail on failure, or NULL.
 * @retval MUSTER_OK             Watching. If that process has ended already, this process ends now.
 * @retval MUSTER_E_ARG          No context, a negative grace, or a pid that is out of range or that of this process.
 * @retval MUSTER_E_UNSUPPORTED  The context has no thread of its own.
 * @retval MUSTER_E_NOMEM        Memory ran out.
 * @retval MUSTER_E_LIMIT        No descriptor is left.
 * @retval MUSTER_E_SYSTEM       The process cannot be watched.
 * @retval MUSTER_E_CLOSED       The context is closed.
 * @retval MUSTER_E_FORKED       The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_process_exit_with(muster_context *context, int32_t pid, int64_t grace_ns,
                                                  muster_error *error);

#ifdef __cplusplus
}
#endif
#endif
