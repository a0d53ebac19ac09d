/* SPDX-License-Identifier: MIT */
/** @file
 * Rendezvous: which processes take part in a run, and with which rank.
 *
 * The processes of a *run* find each other by the id of the run. Each opens a rendezvous and joins: it waits until
 * enough members have joined, and gets a *round*: its number, a rank, the size of the world, and a view of the store
 * for this round alone. A round begins as soon as `max` members have joined, or when the last call is over after `min`
 * members have joined. It ends when all its members have left, have died or have joined again, or when one of them
 * aborts it; only then the next round can begin. Ranks are 0 to world - 1; members keep their previous rank where
 * possible.
 *
 * A process that joins during a round waits. The members of the round see how many wait, and may all join again to
 * admit them. A process that joins when the world is full is a spare: it waits too, and counts as waiting when a place
 * is free.
 *
 * No clocks of different machines are compared. Each member has a lease in the store that shows that it is alive, and
 * the last call is a lease too, so the monotonic clock of the store decides; the timeout of a call is measured by the
 * clock of the caller.
 *
 * The number of a round is a fencing token: a request to the view of a round is applied only while the round is the
 * current one and the member counts as alive; otherwise it ends with ::MUSTER_E_STALE. A process that was suspended
 * during a round therefore cannot change the data of a later one.
 *
 * A member may serve the store itself (`tcp://host:29400?host=auto`; only with a URL, not with a given `store`). The
 * store is then lost with the process of that member. Each member receives ::MUSTER_RENDEZVOUS_LOST, the round is over,
 * and the content of the store is gone. A join that is in progress, or the next one, continues: more than half of the
 * members of the last round find each other and make the next round, which continues its number and ranks, at a store
 * that another member serves. Where the store still exists, half of the last round is enough. If fewer members can be
 * reached, the join ends with ::MUSTER_E_QUORUM; a later join of the same handle searches for the others again. For
 * this each member listens on the address from which it reaches the store. A member that is silent for keep_alive_ns *
 * keep_alive_attempts counts as lost.
 *
 * Such a run has an identity, random bytes that its first member generates. With a state directory
 * (muster_rendezvous_config::state_dir) each member keeps the identity in a file, together with the addresses of the
 * members. A restarted process finds the file, searches for the run at those addresses and joins it there; it does not
 * serve a new store in its place. If too few members can be reached, its join ends with the reason. It keeps its rank,
 * and it counts among the half of the last round as the former process did, unless that process had already agreed to
 * the next round. As long as a member on the host of the URL is alive, or is restarted there, new processes that open
 * the URL are redirected to the current location of the run.
 *
 * One thing is impossible without a third party: a process that was never a member, or that has lost its state file,
 * cannot distinguish a run whose members it cannot reach from a run that never existed. On the host of the URL it
 * therefore begins a new run of that name, unless a state file shows that a running process of its host is a member.
 * Where that must not happen use a store that outlives the members: etcd, or `muster store` with a standby.
 *
 * The URL selects the kind: any store that supports transactions, watches and leases (see
 * muster_store_capabilities()); `static:`, with ranks that the caller assigns and no supervision of members; or a
 * rendezvous that the host serves, see rendezvous_serve.h. */
#ifndef MUSTER_RENDEZVOUS_H
#define MUSTER_RENDEZVOUS_H

#include <muster/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Opaque; one member of a run, made by muster_rendezvous_open(). */
typedef struct muster_rendezvous muster_rendezvous;

/** Opaque; the result of a join. */
typedef struct muster_round muster_round;

/** Flags of muster_rendezvous_config::flags. */
enum muster_rendezvous_flag {
    MUSTER_RENDEZVOUS_HAS_RANK = 1, /**< `rank` is used: the preferred rank, or with `static:` the rank. */
    MUSTER_RENDEZVOUS_REOPEN = 2, /**< Opens a closed run again, and sets the parameters of an existing run to those of
                                       this config. ::MUSTER_E_BUSY if the run has joined members. The numbers of
                                       rounds continue. */
    MUSTER_RENDEZVOUS_DISCARD_STATE = 4 /**< Deletes what the state directory holds about an earlier run of this name:
                                             the caller knows that none of its members is left anywhere. */
};

/** How to open a rendezvous; zero means the default named here. */
typedef struct muster_rendezvous_config {
    uint32_t struct_size;     /**< sizeof(muster_rendezvous_config) of the caller. */
    uint32_t flags;           /**< ::muster_rendezvous_flag values, or'ed. */
    const void *run_id;       /**< Name of the run: 1 to 255 bytes, without control characters and '/'. */
    uint64_t run_id_bytes;    /**< Length of the name. */
    const void *url;          /**< URL of a store, or of a rendezvous that the host serves; or `static:`, or
                                   `static:` followed by a URL. Ignored if there is a `store` and the text does not
                                   begin with `static:`. */
    uint64_t url_bytes;       /**< Length of the URL. */
    muster_store *store;      /**< Store to use; the caller keeps its reference. NULL: the store of the URL. */
    const void *address;      /**< What the other members find under the rank of this one: any bytes, at most 1024. */
    uint64_t address_bytes;   /**< Length of the address. */
    const void *order_key;    /**< Where nothing else determines the ranks, they follow this key in natural order
                                   (node7 before node66); at most 256 bytes. Default: the address. */
    uint64_t order_key_bytes; /**< Length of the order key. */
    uint32_t min;             /**< Minimum number of members of a round, at least 1. */
    uint32_t max;             /**< Maximum number of members of a round, at most 2^20; 0: as `min`. */
    uint32_t rank;            /**< See ::MUSTER_RENDEZVOUS_HAS_RANK. */
    uint32_t keep_alive_attempts; /**< A member that has not renewed its lease for so many intervals is dead. 0: 3. */
    int64_t keep_alive_ns;        /**< The interval, at least 1 ms; some stores do not support short ones. 0: 5 s. */
    int64_t last_call_ns;         /**< How long further members may join after `min` have joined, at least 1 ms; -1: not
                                       at all. 0: 30 s. */
    muster_queue *queue;          /**< Queue that receives ::MUSTER_EVENT_READY when muster_rendezvous_next_event() has
                                       an event. NULL: none. */
    uint64_t tag;                 /**< Returned in muster_completion::tag. */
    const void *state_dir;        /**< Directory for the state that members of this host keep where a member serves the
                                       store. It is made if it is absent; other users must not be able to write there.
                                       At most 3072 bytes. NULL: the directory in the environment variable
                                       MUSTER_STATE_DIR (which set-uid programs do not read); if that is not set, nothing
                                       is kept. */
    uint64_t state_dir_bytes;     /**< Length of the directory's name. */
    int64_t majority_timeout_ns;  /**< How long a join searches for more than half of the last round after the store was
                                       lost; -1: as long as the join may wait. 0: six times keep_alive_ns *
                                       keep_alive_attempts, and not at all once half of the round is known to have
                                       ended. */
    uint64_t reserved[1];         /**< Zero. */
} muster_rendezvous_config;

/** Opens a rendezvous. The caller can take part but has not joined; no round waits for it until
 * muster_rendezvous_join().
 *
 * The first member of a run sets its `min`, `max` and `last_call_ns`; a later opener with different values gets
 * ::MUSTER_E_ARG, and the error names both values.
 * @param[in]  context         Context it belongs to; the rendezvous keeps it alive.
 * @param[in]  config          Options; copied.
 * @param[in]  timeout_ns      Maximum wait for the store, at least 1; -1: no limit.
 * @param[out] out_rendezvous  The rendezvous; the caller owns one reference.
 * @param[out] error           Detail on failure, or NULL.
 * @retval MUSTER_OK              The rendezvous is open.
 * @retval MUSTER_TIMEOUT         The store did not answer in time.
 * @retval MUSTER_E_ARG           A value is missing or out of range, `min` is above `max`, or the run has other
 *                                parameters; the error names both values.
 * @retval MUSTER_E_ABI           The config has non-zero fields that are newer than this library.
 * @retval MUSTER_E_ADDRESS       The URL cannot be parsed; the error says where.
 * @retval MUSTER_E_NOT_FOUND     No store of that scheme is known.
 * @retval MUSTER_E_UNSUPPORTED   The store cannot transact, watch, wait or lease.
 * @retval MUSTER_E_BUSY          ::MUSTER_RENDEZVOUS_REOPEN, and the run has joined members.
 * @retval MUSTER_E_PROTOCOL      What the store holds for this run was not written by this version of Muster; or the
 *                                state file is damaged; the error names it.
 * @retval MUSTER_E_PERMISSION    The state directory or a file in it cannot be used by this user, or other users can
 *                                write there; the error names it.
 * @retval MUSTER_E_NOMEM         Memory ran out.
 * @retval MUSTER_E_CLOSED        The context is closed. (A run that was closed can be opened; its joins fail.)
 * @retval MUSTER_E_CANCELED      muster_context_cancel() was called during the wait.
 * @retval MUSTER_E_WOULD_DEADLOCK  The calling thread has to serve the wait for the store.
 * @retval MUSTER_E_LIMIT         No descriptor is left, for the store or for the state file; or the queue of the
 *                                program that serves the rendezvous is full.
 * @retval MUSTER_E_UNREACHABLE   The address of the store does not answer. While another process of this host is a
 *                                member of the run, this process does not serve the store; the error names the state
 *                                file.
 * @retval MUSTER_E_PEER          The connection to the store broke.
 * @retval MUSTER_E_SYSTEM        The state directory or a file in it cannot be used for another reason; or another
 *                                failure of the system; see muster_error::os_errno.
 * @retval MUSTER_E_FORKED        The context belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_open(muster_context *context, const muster_rendezvous_config *config,
                                                int64_t timeout_ns, muster_rendezvous **out_rendezvous,
                                                muster_error *error);

/** Begins to open a rendezvous, as muster_rendezvous_open() does. ::MUSTER_DONE_OPEN has the rendezvous, or the status
 * and the detail of the failure. muster_queue_cancel_operation() cancels it.
 * @param[in]  context     Context it belongs to.
 * @param[in]  config      Options; copied, with the texts in them.
 * @param[in]  timeout_ns  Maximum time, at least 1; -1: no limit.
 * @param[in]  queue       Queue of the same context for the completion.
 * @param[in]  tag         Returned in muster_completion::tag.
 * @param[out] error       Detail on failure, or NULL.
 * @begun{::MUSTER_DONE_OPEN}
 * @retval MUSTER_E_ARG     A value is missing or out of range, or the queue is of another context; the error names it.
 * @retval MUSTER_E_ABI     The config has non-zero fields that are newer than this library.
 * @retval MUSTER_E_NOMEM   Memory or threads ran out.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_open_begin(muster_context *context, const muster_rendezvous_config *config,
                                                      int64_t timeout_ns, muster_queue *queue, uint64_t tag,
                                                      muster_error *error);

/** Waits for a round and joins it. A member of a round that joins again leaves that round; its store view of that round
 * is stale from then on.
 *
 * A join that fails removes the member, as muster_rendezvous_leave() does. A member that is declared dead while it
 * waits, because it was suspended or the store was unreachable, repeats its join by itself.
 * @param[in]  rendezvous  The member.
 * @param[in]  timeout_ns  Maximum wait, at least 1; -1: no limit.
 * @param[out] out_round   The round; the caller owns one reference.
 * @param[out] error       Detail on failure, and what was waited for if the wait failed; or NULL.
 * @retval MUSTER_OK            The member has joined a round.
 * @retval MUSTER_TIMEOUT       Too few members joined in time. The error says how many are missing.
 * @retval MUSTER_E_ARG         A value is missing or out of range; or the run was reopened with other parameters.
 * @retval MUSTER_E_CLOSED      The run is closed, and the error names the member that closed it and the reason; or
 *                              the context is closed.
 * @retval MUSTER_E_BUSY        Another join, leave or exit of this member is in progress.
 * @retval MUSTER_E_CANCELED    muster_rendezvous_cancel() was called by another thread.
 * @retval MUSTER_E_UNSUPPORTED The store does not support leases as short as the keep-alive interval requires.
 * @retval MUSTER_E_PROTOCOL    What the store holds for this run was not written by this version of Muster.
 * @retval MUSTER_E_PEER        The connection to the store broke, and was not restored before this member was
 *                              declared dead.
 * @retval MUSTER_E_STORE_LOST  The store was lost or became unreachable before a round began.
 * @retval MUSTER_E_QUORUM      Too few members of the last round could be reached to make another one within
 *                              muster_rendezvous_config::majority_timeout_ns. The member keeps its place among them:
 *                              the next join of this handle searches for the others again, and also for a run that has
 *                              continued without it. os_errno is not 0 if the process that served the store is known to
 *                              have ended.
 * @retval MUSTER_E_PERMISSION  The state file cannot be written by this user; the error names it.
 * @retval MUSTER_E_SYSTEM      The state file cannot be written for another reason; or another system call failed.
 * @retval MUSTER_E_NOMEM       Memory ran out. The member has ended: open another rendezvous to take part as a new
 *                              member.
 * @retval MUSTER_E_WOULD_DEADLOCK  The calling thread has to serve the wait.
 * @retval MUSTER_E_LIMIT       The state file cannot be written because the disk is full or 1024 living members have
 *                              one; or the queue of the program that serves the rendezvous is full.
 * @retval MUSTER_E_FORKED      The rendezvous belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_join(muster_rendezvous *rendezvous, int64_t timeout_ns,
                                                muster_round **out_round, muster_error *error);

/** Leaves the round, or stops waiting for one. The other members are notified, and do not treat it as dead. It may join
 * again.
 * @param[in]  rendezvous  The member.
 * @param[in]  timeout_ns  Maximum wait for the answer of the store, at least 1; -1: no limit.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK            The member has left; also if it had not joined, or the store is lost for good.
 * @retval MUSTER_TIMEOUT       The store did not answer in time: the member has left, or will be declared dead.
 * @retval MUSTER_E_ARG         No rendezvous, or a timeout of 0.
 * @retval MUSTER_E_BUSY        A join, leave or exit of this member is in progress; see muster_rendezvous_cancel().
 * @retval MUSTER_E_CANCELED    muster_rendezvous_cancel() was called by another thread; as ::MUSTER_TIMEOUT.
 * @retval MUSTER_E_CLOSED      The context is closed.
 * @retval MUSTER_E_PEER        The connection to the store is lost for good.
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @retval MUSTER_E_WOULD_DEADLOCK  The calling thread has to serve the wait.
 * @retval MUSTER_E_LIMIT       No descriptor is left.
 * @retval MUSTER_E_SYSTEM      Another system call failed.
 * @retval MUSTER_E_FORKED      The rendezvous belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_leave(muster_rendezvous *rendezvous, int64_t timeout_ns,
                                                 muster_error *error);

/** Waits until all members that are still in the round have called this function: the exit barrier, which keeps a
 * member from ending while others still need it. A member that has left, died or joined again does not count. In the
 * process that serves the store the call also waits until every other member has seen that the barrier is complete, or
 * has left or died, so that this process may end as soon as the call returns.
 * @param[in]  rendezvous  The member.
 * @param[in]  timeout_ns  Maximum wait, at least 1; -1: no limit.
 * @param[out] error       Detail on failure, and what was waited for if the wait failed; or NULL.
 * @retval MUSTER_OK            All members have arrived.
 * @retval MUSTER_TIMEOUT       Some members did not arrive. The error says how many did.
 * @retval MUSTER_E_ARG         No rendezvous, or a timeout of 0.
 * @retval MUSTER_E_STALE       The member is in no round, or the round was aborted, or the member was declared dead.
 * @retval MUSTER_E_BUSY        Another join, leave or exit of this member is in progress.
 * @retval MUSTER_E_CANCELED    muster_rendezvous_cancel() was called by another thread.
 * @retval MUSTER_E_CLOSED      The context is closed.
 * @retval MUSTER_E_UNSUPPORTED `static:` without a store that has barriers.
 * @retval MUSTER_E_PEER        The connection to the store is lost for good.
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @retval MUSTER_E_WOULD_DEADLOCK  The calling thread has to serve the wait.
 * @retval MUSTER_E_LIMIT       No descriptor is left.
 * @retval MUSTER_E_SYSTEM      Another system call failed.
 * @retval MUSTER_E_FORKED      The rendezvous belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_exit(muster_rendezvous *rendezvous, int64_t timeout_ns, muster_error *error);

/** Aborts the round of the member: the round is over at once for all its members, including those that do not respond.
 * The members are notified, and may join the next round.
 * @param[in]  rendezvous    A member of the round.
 * @param[in]  reason        The reason; UTF-8, at most 200 bytes. NULL if empty.
 * @param[in]  reason_bytes  Length of the reason.
 * @param[in]  timeout_ns    Maximum wait for the answer of the store, at least 1; -1: no limit.
 * @param[out] error         Detail on failure, or NULL.
 * @retval MUSTER_OK            The round was aborted, by this call or by another member just before.
 * @retval MUSTER_TIMEOUT       The store did not answer in time; the round may have been aborted.
 * @retval MUSTER_E_ARG         A value is missing or out of range.
 * @retval MUSTER_E_STALE       The member is not in a round any more.
 * @retval MUSTER_E_UNSUPPORTED The rendezvous is `static:`.
 * @retval MUSTER_E_CANCELED    muster_rendezvous_cancel() was called by another thread; as ::MUSTER_TIMEOUT.
 * @retval MUSTER_E_CLOSED      The context is closed.
 * @retval MUSTER_E_PEER        The connection to the store is lost for good.
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @retval MUSTER_E_WOULD_DEADLOCK  The calling thread has to serve the wait.
 * @retval MUSTER_E_LIMIT       No descriptor is left.
 * @retval MUSTER_E_SYSTEM      Another system call failed.
 * @retval MUSTER_E_FORKED      The rendezvous belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_abort(muster_rendezvous *rendezvous, const void *reason, size_t reason_bytes,
                                                 int64_t timeout_ns, muster_error *error);

/** Closes the run: no further round begins, and members that wait for one are notified. The current round continues.
 * Only this call closes a run, no destructor and no signal; only ::MUSTER_RENDEZVOUS_REOPEN opens it again.
 * @param[in]  rendezvous    Any member, also one that has not joined.
 * @param[in]  reason        The reason; UTF-8, at most 200 bytes. NULL if empty.
 * @param[in]  reason_bytes  Length of the reason.
 * @param[in]  timeout_ns    Maximum wait for the answer of the store, at least 1; -1: no limit.
 * @param[out] error         Detail on failure, or NULL.
 * @retval MUSTER_OK            The run is closed. If another member had closed it before, that member's reason is kept.
 * @retval MUSTER_TIMEOUT       The store did not answer in time; the run may have been closed.
 * @retval MUSTER_E_ARG         A value is missing or out of range.
 * @retval MUSTER_E_CANCELED    muster_rendezvous_cancel() was called by another thread; as ::MUSTER_TIMEOUT.
 * @retval MUSTER_E_CLOSED      The context is closed.
 * @retval MUSTER_E_PEER        The connection to the store is lost for good.
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @retval MUSTER_E_WOULD_DEADLOCK  The calling thread has to serve the wait.
 * @retval MUSTER_E_LIMIT       No descriptor is left.
 * @retval MUSTER_E_SYSTEM      Another system call failed.
 * @retval MUSTER_E_FORKED      The rendezvous belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_close(muster_rendezvous *rendezvous, const void *reason, size_t reason_bytes,
                                                 int64_t timeout_ns, muster_error *error);

/** The operation that muster_rendezvous_begin() begins. */
enum muster_rendezvous_operation {
    MUSTER_RENDEZVOUS_JOIN = 1,  /**< muster_rendezvous_join(). */
    MUSTER_RENDEZVOUS_LEAVE = 2, /**< muster_rendezvous_leave(). */
    MUSTER_RENDEZVOUS_EXIT = 3,  /**< muster_rendezvous_exit(). */
    MUSTER_RENDEZVOUS_ABORT = 4, /**< muster_rendezvous_abort(). */
    MUSTER_RENDEZVOUS_CLOSE = 5  /**< muster_rendezvous_close(). */
};

/** Begins one of the operations above. ::MUSTER_DONE_RENDEZVOUS has its status and detail, and for a join the round.
 * @param[in]  rendezvous    The member.
 * @param[in]  operation     A ::muster_rendezvous_operation value.
 * @param[in]  reason        ABORT, CLOSE: the reason; UTF-8, at most 200 bytes. Otherwise NULL.
 * @param[in]  reason_bytes  Length of the reason.
 * @param[in]  timeout_ns    Maximum time, at least 1; -1: no limit.
 * @param[in]  queue         Queue of the same context for the completion.
 * @param[in]  tag           Returned in muster_completion::tag.
 * @param[out] error         Detail on failure, or NULL.
 * @begun{::MUSTER_DONE_RENDEZVOUS}
 * @retval MUSTER_E_ARG     A value is missing or out of range; the error names it.
 * @retval MUSTER_E_NOMEM   Memory ran out.
 * @retval MUSTER_E_LIMIT   No descriptor is left.
 * @retval MUSTER_E_SYSTEM  Another system call failed.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_begin(muster_rendezvous *rendezvous, uint32_t operation, const void *reason,
                                                 size_t reason_bytes, int64_t timeout_ns, muster_queue *queue,
                                                 uint64_t tag, muster_error *error);

/** Cancels every operation of this member that is in progress, whether it was begun or a thread waits for it, and the
 * waits in muster_rendezvous_next_event(). They end with ::MUSTER_E_CANCELED.
 * @param[in] rendezvous  The member.
 * @retval MUSTER_OK       Cancelled; also if nothing was in progress. Completions may still follow.
 * @retval MUSTER_E_ARG    No rendezvous.
 * @retval MUSTER_E_FORKED The rendezvous belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_cancel(muster_rendezvous *rendezvous);

/** The kind of an event; the value of muster_rendezvous_event::kind. */
enum muster_rendezvous_event_kind {
    MUSTER_RENDEZVOUS_JOINED = 1, /**< While this member waits: `count` members have joined, this one included. */
    MUSTER_RENDEZVOUS_LAST_CALL =
        2, /**< While this member waits: `min` members have joined, and the last call has begun. */
    MUSTER_RENDEZVOUS_COMPLETE = 3, /**< The round has begun with this member; `count` is the size of the world. */
    MUSTER_RENDEZVOUS_LEFT = 4,     /**< The member with `rank` has left the round, or joins again. */
    MUSTER_RENDEZVOUS_DEAD = 5,     /**< The member with `rank` died; the text says how that was detected. */
    MUSTER_RENDEZVOUS_WAITING = 6,  /**< `count` members wait that could be in the next round. */
    MUSTER_RENDEZVOUS_ABORTED =
        7, /**< The round was aborted; the text names the member that aborted it and the reason. */
    MUSTER_RENDEZVOUS_EXPELLED = 8, /**< This member was declared dead; the round continues without it. */
    MUSTER_RENDEZVOUS_CLOSED = 9,   /**< The run is closed; the text names the member that closed it and the reason. */
    MUSTER_RENDEZVOUS_LOST = 10     /**< The store is lost for good with its content; the text says how. Where a member
                                         served it, the next join may find another store. */
};

/** One event; 256 bytes. */
typedef struct muster_rendezvous_event {
    uint32_t kind;       /**< A ::muster_rendezvous_event_kind value. */
    uint32_t rank;       /**< LEFT, DEAD: the rank of the member; UINT32_MAX: `count` members, too many for events of
                              their own. */
    uint64_t round;      /**< The round that the event is about; 0: no round has begun. */
    uint32_t count;      /**< See the kinds. */
    uint32_t text_bytes; /**< Length of the text, without the terminator. */
    char text[232];      /**< UTF-8, NUL-terminated, cut at a character boundary. */
} muster_rendezvous_event;

/** Takes the oldest event. A JOINED or WAITING event that was not taken is replaced by a later one of its kind. If 1024
 * events are waiting, the oldest are dropped. `static:` has only CLOSED.
 * @param[in]  rendezvous  The member.
 * @param[in]  timeout_ns  Maximum wait; 0 checks once, -1: no limit.
 * @param[out] out_event   Filled on ::MUSTER_OK.
 * @retval MUSTER_OK         An event was taken.
 * @retval MUSTER_AGAIN      There is no event, and the timeout was 0. The next event notifies the queue.
 * @retval MUSTER_TIMEOUT    No event arrived in time.
 * @retval MUSTER_E_ARG      A pointer is NULL.
 * @retval MUSTER_E_CLOSED   The context is closed, and all events were taken.
 * @retval MUSTER_E_CANCELED muster_rendezvous_cancel() was called by another thread.
 * @retval MUSTER_E_WOULD_DEADLOCK  The calling thread has to serve the wait, and the timeout is not 0.
 * @retval MUSTER_E_FORKED   The rendezvous belongs to the parent process.
 * @threads{any; each event goes to one caller} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_next_event(muster_rendezvous *rendezvous, int64_t timeout_ns,
                                                      muster_rendezvous_event *out_event);

/** The phase of a member; the value of muster_rendezvous_state::phase. */
enum muster_rendezvous_phase {
    MUSTER_RENDEZVOUS_PHASE_IDLE = 0,    /**< It has not joined. */
    MUSTER_RENDEZVOUS_PHASE_JOINING = 1, /**< It waits for a round. */
    MUSTER_RENDEZVOUS_PHASE_JOINED = 2   /**< It is in the round `round`. */
};

/** Flags of muster_rendezvous_state::flags. */
enum muster_rendezvous_state_flag {
    MUSTER_RENDEZVOUS_IS_CLOSED = 1,    /**< The run is closed. */
    MUSTER_RENDEZVOUS_IS_LAST_CALL = 2, /**< The last call is in progress. */
    MUSTER_RENDEZVOUS_IS_LEADER = 4     /**< This member is the leader, which makes the rounds. */
};

/** What a member knows; 88 bytes. Values about other members are updated periodically, less often the more members
 * there are. */
typedef struct muster_rendezvous_state {
    uint32_t phase;   /**< A ::muster_rendezvous_phase value. */
    uint32_t flags;   /**< ::muster_rendezvous_state_flag values, or'ed. */
    uint64_t round;   /**< The latest round of this run; 0: no round has begun. */
    uint32_t joined;  /**< Members that wait for the next round, including spares. */
    uint32_t missing; /**< Minimum number of further members that the next round needs. */
    uint32_t waiting; /**< Of `joined`, the members that could be in it. */
    uint32_t spares;  /**< Of `joined`, the members for which there is no place. */
    uint32_t present; /**< Members of the latest round that are still in it. */
    uint32_t exiting; /**< Of these, the members that wait in muster_rendezvous_exit(). */
    int64_t
        last_call_remaining_ns; /**< Approximate remaining time of the last call; -1: no last call is in progress. */
    uint64_t reserved[5];       /**< Zero. */
} muster_rendezvous_state;

/** Reads what the member currently knows, without a request to the store.
 * @param[in]  rendezvous  The member.
 * @param[out] out_state   Filled.
 * @filled
 * @retval MUSTER_E_ARG    A pointer is NULL.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_get_state(muster_rendezvous *rendezvous, muster_rendezvous_state *out_state);

/** Lists the members that wait for the next round: their addresses, each made printable and followed by a line feed, as
 * many as fit into the destination and at most 1000, in no particular order. For people; it reads the store.
 * @param[in]  rendezvous  The member.
 * @param[out] out_text    Destination of the text; without a terminator.
 * @param[in]  capacity    Size of the destination, in bytes.
 * @param[in]  timeout_ns  Maximum wait for the store, at least 1; -1: no limit.
 * @param[out] out_bytes   Length of the text.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK            The text was written.
 * @retval MUSTER_TIMEOUT       The store did not answer in time.
 * @retval MUSTER_E_ARG         A value is missing or out of range.
 * @retval MUSTER_E_UNSUPPORTED The rendezvous is `static:`.
 * @retval MUSTER_E_PEER        The connection to the store broke.
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @retval MUSTER_E_CLOSED      The context is closed.
 * @retval MUSTER_E_CANCELED    The context or the store was closed during the wait, or muster_context_cancel() was
 *                              called.
 * @retval MUSTER_E_WOULD_DEADLOCK  The calling thread has to serve the wait.
 * @retval MUSTER_E_FORKED      The rendezvous belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_list(muster_rendezvous *rendezvous, char *out_text, size_t capacity,
                                                int64_t timeout_ns, size_t *out_bytes, muster_error *error);

/** Begins to list the members that wait for the next round, as muster_rendezvous_list() does; ::MUSTER_DONE_CALL has
 * the length of the text in its bytes.
 * @param[in]  rendezvous  The member.
 * @param[out] out_text    Destination of the text; lent to the library until the completion, or until the queue is
 *                         closed.
 * @param[in]  capacity    Size of the destination, in bytes.
 * @param[in]  timeout_ns  Maximum time, at least 1; -1: no limit.
 * @param[in]  queue       Queue of the same context for the completion.
 * @param[in]  tag         Returned in muster_completion::tag.
 * @param[out] error       Detail on failure, or NULL.
 * @begun{::MUSTER_DONE_CALL}
 * @retval MUSTER_E_ARG     A value is missing or out of range, or the queue is of another context.
 * @retval MUSTER_E_NOMEM   Memory or threads ran out.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_list_begin(muster_rendezvous *rendezvous, char *out_text, size_t capacity,
                                                      int64_t timeout_ns, muster_queue *queue, uint64_t tag,
                                                      muster_error *error);

/** Releases the handle. Threads that wait in a call on it return ::MUSTER_E_CLOSED, and operations that were begun end
 * with that status. A member that has not left counts as dead: the others are notified at once.
 * @param[in] rendezvous  What to release; NULL has no effect.
 * @threads{any, finalizers included} @blocks{no} @since 0.1 */
MUSTER_API void muster_rendezvous_release(muster_rendezvous *rendezvous);

/** Flags of muster_round_info::flags. */
enum muster_round_flag {
    MUSTER_ROUND_IS_OVER = 1 /**< This process knows that the round is over for this member: its store view is stale. */
};

/** Properties of a round; 64 bytes. */
typedef struct muster_round_info {
    uint64_t number; /**< Number of the round in the run, from 1; with `static:`, how often this member has joined. */
    uint32_t rank;   /**< Rank of this member. */
    uint32_t world;  /**< Size of the world: the number of members. */
    uint32_t flags;  /**< ::muster_round_flag values, or'ed. */
    uint32_t reserved[3]; /**< Zero. */
    uint8_t digest[32];   /**< Digest of the table of members, equal for all of them; with `static:`, zero. */
} muster_round_info;

/** One member of a round; its pointers are valid until the round is released. 24 bytes. */
typedef struct muster_round_member_info {
    const void *address;    /**< Its muster_rendezvous_config::address. */
    uint64_t address_bytes; /**< Length of the address. */
    uint64_t reserved;      /**< Zero. */
} muster_round_member_info;

/** Reads the properties of a round.
 * @param[in]  round     The round.
 * @param[out] out_info  Filled.
 * @retval MUSTER_OK     The struct was filled.
 * @retval MUSTER_E_ARG  A pointer is NULL.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_round_get_info(const muster_round *round, muster_round_info *out_info);

/** Makes the store view of a round: it has a prefix of its own, and every request, including those that wait, ends with
 * ::MUSTER_E_STALE once the round is over for this member; the error names both rounds. A request may have two
 * operations less than those of other stores.
 * @param[in]  round      The round.
 * @param[out] out_store  The view; the caller owns one reference.
 * @param[out] error      Detail on failure, or NULL.
 * @retval MUSTER_OK            The view was made.
 * @retval MUSTER_E_ARG         A pointer is NULL.
 * @retval MUSTER_E_UNSUPPORTED `static:` without a store. (With a store the view is never stale.)
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_round_store(muster_round *round, muster_store **out_store, muster_error *error);

/** Looks up a member of a round. The table of members is read in pages, each when it is first needed.
 * @param[in]  round       The round.
 * @param[in]  rank        Rank of the member.
 * @param[in]  timeout_ns  Maximum wait for the store, at least 1; -1: no limit.
 * @param[out] out_member  Filled.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK            The member was found.
 * @retval MUSTER_TIMEOUT       The store did not answer in time; with `static:`, the member has not joined yet.
 * @retval MUSTER_E_ARG         A value is missing, or the rank is not below the size of the world.
 * @retval MUSTER_E_STALE       The round is over, and the page was not read before.
 * @retval MUSTER_E_UNSUPPORTED `static:` without a store.
 * @retval MUSTER_E_PROTOCOL    What the store holds was not written by this version of Muster.
 * @retval MUSTER_E_PEER        The connection to the store broke.
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @retval MUSTER_E_CANCELED    muster_context_cancel() was called during the wait.
 * @retval MUSTER_E_CLOSED      The context is closed, or the round was released during the call.
 * @retval MUSTER_E_WOULD_DEADLOCK  The calling thread has to serve the wait.
 * @retval MUSTER_E_FORKED      The round belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_round_member(muster_round *round, uint32_t rank, int64_t timeout_ns,
                                             muster_round_member_info *out_member, muster_error *error);

/** Begins to look up a member of a round; ::MUSTER_DONE_CALL has the status of muster_round_member(). After
 * ::MUSTER_OK that call returns for this rank without a wait.
 * @param[in]  round       The round.
 * @param[in]  rank        Rank of the member.
 * @param[in]  timeout_ns  Maximum time, at least 1; -1: no limit.
 * @param[in]  queue       Queue of the same context for the completion.
 * @param[in]  tag         Returned in muster_completion::tag.
 * @param[out] error       Detail on failure, or NULL.
 * @begun{::MUSTER_DONE_CALL}
 * @retval MUSTER_E_ARG     A value is missing or out of range, or the queue is of another context.
 * @retval MUSTER_E_NOMEM   Memory or threads ran out.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_round_member_begin(muster_round *round, uint32_t rank, int64_t timeout_ns,
                                                   muster_queue *queue, uint64_t tag, muster_error *error);

/** Releases the handle. The member stays in the round. Threads that wait in muster_round_member() return
 * ::MUSTER_E_CLOSED.
 * @param[in] round  What to release; NULL has no effect.
 * @threads{any, finalizers included} @blocks{no} @since 0.1 */
MUSTER_API void muster_round_release(muster_round *round);

#ifdef __cplusplus
}
#endif

#endif
