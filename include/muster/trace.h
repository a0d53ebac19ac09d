/* SPDX-License-Identifier: MIT */
/** @file
 * Traces: what the threads of this process did and when, as a file for Perfetto (https://ui.perfetto.dev).
 *
 * A trace is off until muster_trace_start(), or until the first context of a process that has MUSTER_TRACE in its
 * environment: then each context that ends writes the file `<MUSTER_TRACE>/<program>-<pid>.pftrace`. While it is on,
 * each thread writes events into a ring of its own, without a lock: the library its calls that wait (dials, operations
 * of groups, memory and active messages elsewhere, requests to stores, rounds of a rendezvous), the requests that it
 * executes for others, messages that sockets send and receive, the events of clusters and sockets, the ends of streams
 * and the deaths of members, and the host whatever it likes. When a ring is full the oldest events are overwritten.
 *
 * Arrows lead from process to process: from a request of active messages to its execution, from a message that is sent
 * to its receipt, from the dial of a cluster's stream to the member that gets it. A message that is sent while a trace
 * is on has the context of a trace in its header, which its receiver sees, too; a context that the host has set stays.
 *
 * The files of several processes are joined by writing one behind the other: `muster trace --join ALL FILE...`. Times
 * are those of CLOCK_MONOTONIC, which all processes of one host share. On several hosts muster_trace_align() measures
 * how far the clock of each member of a group is from that of rank 0, and the file of that process has times of rank 0.
 *
 * All functions are of the process, not of a context. */
#ifndef MUSTER_TRACE_H
#define MUSTER_TRACE_H

#include <muster/group.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How to trace. */
typedef struct muster_trace_config {
    uint32_t struct_size; /**< sizeof(muster_trace_config) of the caller. */
    uint32_t events;      /**< Events that each thread keeps, 64 bytes each, 256 to 16777216; 0: 8192. */
    const void *name;    /**< Name of this process in the trace, 1 to 255 bytes of printable text; copied. NULL: name of
                              the program. */
    uint64_t name_bytes; /**< Length of the name. */
} muster_trace_config;

/** What a trace has. */
typedef struct muster_trace_state {
    uint64_t events;         /**< Events that were written since the start, those included that were overwritten. */
    uint64_t threads;        /**< Threads that have written any. */
    int64_t offset_ns;       /**< Of muster_trace_align(): what is added to the times of this process. */
    int64_t offset_error_ns; /**< The true value is at most so far from it; -1: it was not measured. */
    uint32_t is_on;          /**< 1: events are written now. */
    uint32_t reserved;       /**< Zero. */
} muster_trace_state;

/** Begins a trace. The events of an earlier trace are discarded.
 * @param[in]  config  Options; copied. NULL: all defaults.
 * @param[out] error   Detail on failure, or NULL.
 * @retval MUSTER_OK         Begun.
 * @retval MUSTER_E_EXISTS   It is on already.
 * @bad_config
 * @retval MUSTER_E_NOMEM    Memory ran out.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_trace_start(const muster_trace_config *config, muster_error *error);

/** Ends a trace; muster_trace_save() can still write it. No effect if none is on.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API void muster_trace_stop(void);

/** Begins a span of this thread, inside the last span that it has begun and not ended. No effect while no trace is on.
 * @param[in] name        Name; copied, the first 31 bytes of it.
 * @param[in] name_bytes  Length of the name.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API void muster_trace_begin(const char *name, size_t name_bytes);

/** Ends the last span that this thread has begun.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API void muster_trace_end(void);

/** Marks a moment of this thread.
 * @param[in] name        As in muster_trace_begin().
 * @param[in] name_bytes  Length of the name.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API void muster_trace_mark(const char *name, size_t name_bytes);

/** Marks a moment of this thread that belongs to a flow: from each moment or call with the same number, in the order of
 * time and in all processes whose files are joined, an arrow leads to the next one. Requests of active messages,
 * messages of sockets and streams of clusters have flows of their own.
 * @param[in] name        As in muster_trace_begin(); the first 24 bytes of it.
 * @param[in] name_bytes  Length of the name.
 * @param[in] flow        A number that no other flow has, such as a hash of the call's id; 0: muster_trace_mark().
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API void muster_trace_flow(const char *name, size_t name_bytes, uint64_t flow);

/** Reads what a trace has.
 * @param[out] out_state  Filled.
 * @retval MUSTER_OK     Filled.
 * @retval MUSTER_E_ARG  No destination.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_trace_get_state(muster_trace_state *out_state);

/** Measures the clock of this member against that of rank 0, by 32 exchanges; all members of the group make the call.
 * The bound of the error is proved by the order of the messages, and not estimated: it is at most half of the
 * shortest round trip that was seen.
 * @param[in]  group       Group.
 * @param[in]  timeout_ns  Maximum wait; -1: no limit.
 * @param[out] out_state   As muster_trace_get_state(), afterwards; or NULL.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK       Measured. Events that were written before get the new times, too.
 * @retval MUSTER_E_ARG    No group.
 * @retval MUSTER_E_NOMEM  Memory ran out.
 * @retval MUSTER_TIMEOUT  As in muster_group_run(), like every other failure: the group has failed.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_trace_align(muster_group *group, int64_t timeout_ns, muster_trace_state *out_state,
                                            muster_error *error);

/** Writes the events that are in the rings as a file, which replaces one of this name once it is complete. Threads go
 * on writing events meanwhile.
 * @param[in]  path        Name of the file; text, no terminator needed.
 * @param[in]  path_bytes  Length of the path, 1 to 4095.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK            Written.
 * @retval MUSTER_E_ARG         No path, or too long, or with a NUL.
 * @retval MUSTER_E_NOT_FOUND   No trace was begun.
 * @retval MUSTER_E_SYSTEM      The file could not be written: no such folder, no room; the file of before is unchanged.
 * @retval MUSTER_E_PERMISSION  It may not be written.
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @threads{any} @blocks{while the file is written} @since 0.1 */
MUSTER_API muster_status muster_trace_save(const char *path, size_t path_bytes, muster_error *error);

#ifdef __cplusplus
}
#endif
#endif
