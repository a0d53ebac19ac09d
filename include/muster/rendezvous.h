/* SPDX-License-Identifier: MIT */
/** @file
 * Rendezvous: who is in, and with which rank.
 *
 * The processes of a *run* meet by its id. Each opens a rendezvous, which makes it a member, and joins: it waits until
 * enough are there, and gets a *round*: its number, a rank, the size of the world, and a view of the store for this
 * round alone. A round begins as soon as `max` members have joined, or the last call is over after `min` have. It ends
 * when all its members have left, have died or have joined again, or when one of them aborts it; only then the next one
 * can begin. Ranks are 0 to world - 1; members keep the one they had where they can.
 *
 * Who comes while a round is under way waits: members of the round see how many wait, and may all join again to let
 * them in. Who comes when the world is full is a spare: it waits too, and is counted as waiting when a place is free.
 *
 * Nothing here compares clocks of two machines. Whether a member lives is known by a lease in the store, and the last
 * call is one, so the store's monotonic clock decides; how long a call may wait is counted by the caller's own.
 *
 * The number of a round is a fencing token: every request to the view of a round is done only as long as the round is
 * the current one and the member is taken for alive, else it is ::MUSTER_E_STALE. So whoever slept through a round
 * harms nobody.
 *
 * Where one of the members serves the store (`tcp://host:29400?host=auto`, of the URL and not of a `store` given), the
 * store is lost with the process of that member. Each member gets ::MUSTER_RENDEZVOUS_LOST, the round is over, and the
 * content of the store is gone. A join that waits goes on, or the next join does: more than half of the last round find
 * each other and make the next round, whose number and ranks continue, at a store that another member serves. Where the
 * store still is, half of the last round are enough. A join of members that are fewer ends with ::MUSTER_E_QUORUM; a
 * later join of the same handle looks for the others again. For this each member listens on the address from which it
 * reaches the store. A member that is silent for keep_alive_ns * keep_alive_attempts counts as lost.
 *
 * Such a run has an identity, random bytes that its first member makes. With a state directory
 * (muster_rendezvous_config::state_dir) each member keeps it in a file, with the members' addresses. A process that is
 * restarted finds the file, looks for the run where the members are, joins it there, and serves no new store in its
 * place; if too few members can be reached, its join ends with the reason. It keeps its rank, and it counts among the
 * half of the last round as the former process did, unless that process had already agreed to the next round. As long
 * as a member on the host of the URL lives, or is restarted there, newcomers that open the URL are led to the place
 * where the run is.
 *
 * What is impossible without a third party: a process that was never a member, or that has lost its state file, cannot
 * tell a run whose members it cannot reach from a run that never was, so on the host of the URL it begins a new run of
 * that name, unless a state file shows that a running process of its host is a member; where that must not happen use
 * a store that outlives the members, etcd or `muster store` with a standby.
 *
 * Kinds: any store that can transact, watch and lease (see muster_store_capabilities()); `static:`, ranks that somebody
 * else gave, without watching over anybody; or what the host decides by itself, see rendezvous_serve.h. */
#ifndef MUSTER_RENDEZVOUS_H
#define MUSTER_RENDEZVOUS_H

#include <muster/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Opaque; one member of a run, made by muster_rendezvous_open(). */
typedef struct muster_rendezvous muster_rendezvous;

/** Opaque; what a join has given. */
typedef struct muster_round muster_round;

/** Flags of muster_rendezvous_config::flags. */
enum muster_rendezvous_flag {
    MUSTER_RENDEZVOUS_HAS_RANK = 1, /**< `rank` counts: the preferred rank; of `static:`, the rank. */
    MUSTER_RENDEZVOUS_REOPEN =
        2, /**< A run that was closed is open again, and one with other parameters takes on these.
               ::MUSTER_E_BUSY if somebody is in it. Numbers of rounds count on. */
    MUSTER_RENDEZVOUS_DISCARD_STATE = 4 /**< What the state directory says of an earlier run of this name is deleted:
                                   the caller knows that no member of it is left anywhere. */
};

/** How to open a rendezvous; what is zero means the default named here. */
typedef struct muster_rendezvous_config {
    uint32_t struct_size;         /**< sizeof(muster_rendezvous_config) of the caller. */
    uint32_t flags;               /**< ::muster_rendezvous_flag values, or'ed. */
    const void *run_id;           /**< Name of the run: 1 to 255 bytes, neither control characters nor '/'. */
    uint64_t run_id_bytes;        /**< Its length. */
    const void *url;              /**< URL of a store, or of a rendezvous that the host serves; or `static:`, or
                                       `static:` and a URL. Not looked at if there is a `store` and it does not begin
                                       with `static:`. */
    uint64_t url_bytes;           /**< Its length. */
    muster_store *store;          /**< Store to use; it stays the caller's. NULL: that of the URL. */
    const void *address;          /**< What the others find under this member's rank: any bytes, at most 1024. */
    uint64_t address_bytes;       /**< Its length. */
    const void *order_key;        /**< Where nothing else decides, ranks go by this in natural order (node7 before
                                       node66); at most 256 bytes. Default: the address. */
    uint64_t order_key_bytes;     /**< Its length. */
    uint32_t min;                 /**< Least members of a round, at least 1. */
    uint32_t max;                 /**< Most members of a round, at most 2^20; 0: as `min`. */
    uint32_t rank;                /**< See ::MUSTER_RENDEZVOUS_HAS_RANK. */
    uint32_t keep_alive_attempts; /**< A member that the store has not heard of for so many intervals is dead. 0: 3. */
    int64_t keep_alive_ns;        /**< The interval, at least 1 ms; some stores know none so short. 0: 5 s. */
    int64_t last_call_ns;         /**< How long others may still come when `min` are there, at least 1 ms; -1: not at
                                       all. 0: 30 s. */
    muster_queue *queue;          /**< Where ::MUSTER_EVENT_READY tells that muster_rendezvous_next_event() has
                                       something. NULL: nowhere. */
    uint64_t tag;                 /**< Returned in muster_completion::tag. */
    const void *state_dir;        /**< Directory for what members of this host have to keep where a member serves the
                                       store; made if absent, and other users must not be able to write there. At most
                                       3072 bytes. NULL: that of the environment variable MUSTER_STATE_DIR (which set-uid
                                       programs do not read), or else nothing is kept. */
    uint64_t state_dir_bytes;     /**< Its length. */
    int64_t majority_timeout_ns;  /**< How long a join looks for more than half of the last round after the store was
                                       lost; -1: as long as the join may wait. 0: six times keep_alive_ns *
                                       keep_alive_attempts, and not at all once half of the round is known to have
                                       ended. */
    uint64_t reserved[1];         /**< Zero. */
} muster_rendezvous_config;

/** Opens a rendezvous. The caller is a member, but not in: nobody waits for it before it joins.
 *
 * The first member of a run sets its `min`, `max` and `last_call_ns`; who comes with others is told both.
 * @param[in]  context         Context it belongs to; the rendezvous keeps it alive.
 * @param[in]  config          How; copied.
 * @param[in]  timeout_ns      Longest wait for the store; -1 has no end of its own. At least 1.
 * @param[out] out_rendezvous  The rendezvous; the caller owns one reference.
 * @param[out] error           Detail on failure, or NULL.
 * @retval MUSTER_OK              Open.
 * @retval MUSTER_TIMEOUT         The store did not answer in time.
 * @retval MUSTER_E_ARG           A value is missing or out of range, `min` is above `max`, or the run has other
 *                                parameters; the text names both values.
 * @retval MUSTER_E_ABI           The config has non-zero fields newer than this library.
 * @retval MUSTER_E_ADDRESS       The URL cannot be understood; the text says where.
 * @retval MUSTER_E_NOT_FOUND     No kind of store of that scheme.
 * @retval MUSTER_E_UNSUPPORTED   The store cannot transact, watch, wait or lease.
 * @retval MUSTER_E_BUSY          ::MUSTER_RENDEZVOUS_REOPEN, and somebody is in.
 * @retval MUSTER_E_PROTOCOL      What the store has under this run is not of this version of Muster; or the state file
 *                                is damaged; the text names it.
 * @retval MUSTER_E_PERMISSION    The state directory or a file in it cannot be used by this user, or other users can
 *                                write there; the text names it.
 * @retval MUSTER_E_NOMEM         No memory.
 * @retval MUSTER_E_CLOSED        The context is closed. (A run that was closed can be opened; its joins fail.)
 * @retval MUSTER_E_CANCELED      muster_context_cancel() was called meanwhile.
 * @retval MUSTER_E_WOULD_DEADLOCK  The store would have to be waited for on a thread that serves the wait.
 * @retval MUSTER_E_LIMIT         No descriptor is left, for the store or for the state file; or the queue of the
 *                                program that serves the rendezvous is full.
 * @retval MUSTER_E_UNREACHABLE   The store's address does not answer. While another process of this host is a member of
 *                                the run, this process does not serve the store; the text names that state file.
 * @retval MUSTER_E_PEER          The connection to the store broke.
 * @retval MUSTER_E_SYSTEM        The state directory or a file in it cannot be used for another reason; or another
 *                                failure of the system; see muster_error::os_errno.
 * @retval MUSTER_E_FORKED        The context belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_open(muster_context *context, const muster_rendezvous_config *config,
                                                int64_t timeout_ns, muster_rendezvous **out_rendezvous,
                                                muster_error *error);

/** Begins to open a rendezvous, as muster_rendezvous_open() does; ::MUSTER_DONE_OPEN comes with it, or without one with
 * the status and detail. muster_queue_cancel_operation() ends it early.
 * @param[in]  context     Context it belongs to.
 * @param[in]  config      How; copied, with the texts in it.
 * @param[in]  timeout_ns  Longest time it may take; -1 has no end. At least 1.
 * @param[in]  queue       Where the completion appears; of the same context.
 * @param[in]  tag         Returned in muster_completion::tag.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK        Begun; ::MUSTER_DONE_OPEN will come, perhaps before this call returns.
 * @retval MUSTER_AGAIN     No slot in the queue; not begun.
 * @retval MUSTER_E_ARG     A value is missing or out of range, or the queue is of another context; the text names it.
 * @retval MUSTER_E_ABI     The config has non-zero fields newer than this library.
 * @retval MUSTER_E_NOMEM   No memory or no thread.
 * @retval MUSTER_E_CLOSED  The context or the queue is closed.
 * @retval MUSTER_E_FORKED  The object belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_open_begin(muster_context *context, const muster_rendezvous_config *config,
                                                      int64_t timeout_ns, muster_queue *queue, uint64_t tag,
                                                      muster_error *error);

/** Waits for a round and joins it. A member of a round that joins again has left that one, whose store view is over
 * for it from now on.
 *
 * A join that ends in vain takes the member out, as muster_rendezvous_leave() does. A member that is taken for dead
 * while it waits, since it slept or the store could not be reached, asks anew by itself.
 * @param[in]  rendezvous  The member.
 * @param[in]  timeout_ns  Longest wait; -1 has no end. At least 1.
 * @param[out] out_round   The round; the caller owns one reference.
 * @param[out] error       Detail on failure, and of what was waited for in vain; or NULL.
 * @retval MUSTER_OK            The member is in a round.
 * @retval MUSTER_TIMEOUT       Not enough came in time. The text says how many are missing.
 * @retval MUSTER_E_ARG         A value is missing or out of range; or the run was opened anew with other parameters.
 * @retval MUSTER_E_CLOSED      The run is closed; the text says by whom and why. Or the context is.
 * @retval MUSTER_E_BUSY        The member joins, leaves or exits already.
 * @retval MUSTER_E_CANCELED    muster_rendezvous_cancel() in another thread.
 * @retval MUSTER_E_UNSUPPORTED The store has no leases so short.
 * @retval MUSTER_E_PROTOCOL    What the store has under this run is not of this version of Muster.
 * @retval MUSTER_E_PEER        The way to the store broke, and it was not there again before this member was dead.
 * @retval MUSTER_E_STORE_LOST  The store is gone, or out of reach, before there was a round.
 * @retval MUSTER_E_QUORUM      Too few members of the last round could be reached to make another, for as long as
 *                              muster_rendezvous_config::majority_timeout_ns says. The member keeps its place among
 *                              them: the next join of this handle looks for the others again, also for a run that has
 *                              gone on without it. os_errno is not 0 if the process that served the store is known to
 *                              have ended.
 * @retval MUSTER_E_PERMISSION  The state file cannot be written by this user; the text names it.
 * @retval MUSTER_E_SYSTEM      The state file cannot be written for another reason; or another failure of the system.
 * @retval MUSTER_E_NOMEM       No memory. The member has ended: open another rendezvous to come back as a newcomer.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called on a thread that serves the wait.
 * @retval MUSTER_E_LIMIT       The state file cannot be written: no space, or 1024 living members have one. Or the
 * queue of the program that serves the rendezvous is full.
 * @retval MUSTER_E_FORKED      The rendezvous belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_join(muster_rendezvous *rendezvous, int64_t timeout_ns,
                                                muster_round **out_round, muster_error *error);

/** Leaves the round, or stops waiting for one. The others see it go, and do not take it for dead. It may join again.
 * @param[in]  rendezvous  The member.
 * @param[in]  timeout_ns  Longest wait until the store knows; -1 has no end. At least 1.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK            It is out; also if it was not in, or the store is gone for good.
 * @retval MUSTER_TIMEOUT       The store did not answer in time: the member is out, or will be dead.
 * @retval MUSTER_E_ARG         No rendezvous, or a timeout of 0.
 * @retval MUSTER_E_BUSY        The member joins, leaves or exits just now: see muster_rendezvous_cancel().
 * @retval MUSTER_E_CANCELED    muster_rendezvous_cancel() in another thread; as MUSTER_TIMEOUT.
 * @retval MUSTER_E_CLOSED      The context is closed.
 * @retval MUSTER_E_PEER        The way to the store broke for good.
 * @retval MUSTER_E_NOMEM       No memory.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called on a thread that serves the wait.
 * @retval MUSTER_E_LIMIT       No descriptor left.
 * @retval MUSTER_E_SYSTEM      Another failure of the system.
 * @retval MUSTER_E_FORKED      The rendezvous belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_leave(muster_rendezvous *rendezvous, int64_t timeout_ns,
                                                 muster_error *error);

/** Waits until all who are still in the round call this too: the exit barrier, so that nobody takes away early what the
 * others still need. A member that has left, died or joined again does not count. In the process that serves the store
 * the call also waits until every other member has seen that the barrier is complete, or has left or died, so this
 * process may end as soon as the call returns.
 * @param[in]  rendezvous  The member.
 * @param[in]  timeout_ns  Longest wait; -1 has no end. At least 1.
 * @param[out] error       Detail on failure, and of what was waited for in vain; or NULL.
 * @retval MUSTER_OK            All are here.
 * @retval MUSTER_TIMEOUT       Some did not come. The text says how many are there.
 * @retval MUSTER_E_ARG         No rendezvous, or a timeout of 0.
 * @retval MUSTER_E_STALE       The member is in no round, or the round was aborted, or it was taken for dead.
 * @retval MUSTER_E_BUSY        The member joins, leaves or exits already.
 * @retval MUSTER_E_CANCELED    muster_rendezvous_cancel() in another thread.
 * @retval MUSTER_E_CLOSED      The context is closed.
 * @retval MUSTER_E_UNSUPPORTED `static:` without a store that has barriers.
 * @retval MUSTER_E_PEER        The way to the store broke for good.
 * @retval MUSTER_E_NOMEM       No memory.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called on a thread that serves the wait.
 * @retval MUSTER_E_LIMIT       No descriptor left.
 * @retval MUSTER_E_SYSTEM      Another failure of the system.
 * @retval MUSTER_E_FORKED      The rendezvous belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_exit(muster_rendezvous *rendezvous, int64_t timeout_ns, muster_error *error);

/** Aborts the round that the member is in: it is over for all, at once, also for those who hang. They are told, and may
 * join the next.
 * @param[in]  rendezvous    A member of the round.
 * @param[in]  reason        Why; UTF-8, at most 200 bytes. NULL if empty.
 * @param[in]  reason_bytes  Its length.
 * @param[in]  timeout_ns    Longest wait until the store knows; -1 has no end. At least 1.
 * @param[out] error         Detail on failure, or NULL.
 * @retval MUSTER_OK            Aborted; also if another did it just before.
 * @retval MUSTER_TIMEOUT       The store did not answer in time; perhaps it is aborted.
 * @retval MUSTER_E_ARG         A value is missing or out of range.
 * @retval MUSTER_E_STALE       The member is in no round any more.
 * @retval MUSTER_E_UNSUPPORTED `static:`.
 * @retval MUSTER_E_CANCELED    muster_rendezvous_cancel() in another thread; as MUSTER_TIMEOUT.
 * @retval MUSTER_E_CLOSED      The context is closed.
 * @retval MUSTER_E_PEER        The way to the store broke for good.
 * @retval MUSTER_E_NOMEM       No memory.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called on a thread that serves the wait.
 * @retval MUSTER_E_LIMIT       No descriptor left.
 * @retval MUSTER_E_SYSTEM      Another failure of the system.
 * @retval MUSTER_E_FORKED      The rendezvous belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_abort(muster_rendezvous *rendezvous, const void *reason, size_t reason_bytes,
                                                 int64_t timeout_ns, muster_error *error);

/** Closes the run: no round begins any more, and who waits for one is told. A round under way goes on. Only this call
 * closes, no destructor and no signal; only ::MUSTER_RENDEZVOUS_REOPEN opens again.
 * @param[in]  rendezvous    Any member, also one that is not in.
 * @param[in]  reason        Why; UTF-8, at most 200 bytes. NULL if empty.
 * @param[in]  reason_bytes  Its length.
 * @param[in]  timeout_ns    Longest wait until the store knows; -1 has no end. At least 1.
 * @param[out] error         Detail on failure, or NULL.
 * @retval MUSTER_OK            Closed; also if another did it before, whose reason stays.
 * @retval MUSTER_TIMEOUT       The store did not answer in time; perhaps it is closed.
 * @retval MUSTER_E_ARG         A value is missing or out of range.
 * @retval MUSTER_E_CANCELED    muster_rendezvous_cancel() in another thread; as MUSTER_TIMEOUT.
 * @retval MUSTER_E_CLOSED      The context is closed.
 * @retval MUSTER_E_PEER        The way to the store broke for good.
 * @retval MUSTER_E_NOMEM       No memory.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called on a thread that serves the wait.
 * @retval MUSTER_E_LIMIT       No descriptor left.
 * @retval MUSTER_E_SYSTEM      Another failure of the system.
 * @retval MUSTER_E_FORKED      The rendezvous belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_close(muster_rendezvous *rendezvous, const void *reason, size_t reason_bytes,
                                                 int64_t timeout_ns, muster_error *error);

/** What muster_rendezvous_begin() begins. */
enum muster_rendezvous_operation {
    MUSTER_RENDEZVOUS_JOIN = 1,  /**< muster_rendezvous_join(). */
    MUSTER_RENDEZVOUS_LEAVE = 2, /**< muster_rendezvous_leave(). */
    MUSTER_RENDEZVOUS_EXIT = 3,  /**< muster_rendezvous_exit(). */
    MUSTER_RENDEZVOUS_ABORT = 4, /**< muster_rendezvous_abort(). */
    MUSTER_RENDEZVOUS_CLOSE = 5  /**< muster_rendezvous_close(). */
};

/** Begins one of the calls above; ::MUSTER_DONE_RENDEZVOUS comes with its status and detail, and with the round of a
 * join.
 * @param[in]  rendezvous    The member.
 * @param[in]  operation     A ::muster_rendezvous_operation value.
 * @param[in]  reason        ABORT, CLOSE: why; UTF-8, at most 200 bytes. Else NULL.
 * @param[in]  reason_bytes  Its length.
 * @param[in]  timeout_ns    Longest time it may take, at least 1; -1 has no end.
 * @param[in]  queue         Where the completion appears.
 * @param[in]  tag           Returned in muster_completion::tag.
 * @param[out] error         Detail on failure, or NULL.
 * @retval MUSTER_OK        Begun; the completion will come, perhaps before this call returns.
 * @retval MUSTER_AGAIN     No slot in the queue.
 * @retval MUSTER_E_ARG     A value is missing or out of range; the text names it.
 * @retval MUSTER_E_NOMEM   No memory.
 * @retval MUSTER_E_CLOSED  The context or the queue is closed.
 * @retval MUSTER_E_LIMIT   No descriptor left.
 * @retval MUSTER_E_SYSTEM  Another failure of the system.
 * @retval MUSTER_E_FORKED  The rendezvous belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_begin(muster_rendezvous *rendezvous, uint32_t operation, const void *reason,
                                                 size_t reason_bytes, int64_t timeout_ns, muster_queue *queue,
                                                 uint64_t tag, muster_error *error);

/** Ends everything that is under way with this member with ::MUSTER_E_CANCELED, begun or waited for, and the waits in
 * muster_rendezvous_next_event().
 * @param[in] rendezvous  The member.
 * @retval MUSTER_OK       Done, also if there was nothing. Completions may still be on their way.
 * @retval MUSTER_E_ARG    No rendezvous.
 * @retval MUSTER_E_FORKED The rendezvous belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_cancel(muster_rendezvous *rendezvous);

/** What an event tells; the value of muster_rendezvous_event::kind. */
enum muster_rendezvous_event_kind {
    MUSTER_RENDEZVOUS_JOINED = 1,    /**< While this member waits: `count` have joined now, this one included. */
    MUSTER_RENDEZVOUS_LAST_CALL = 2, /**< While this member waits: `min` have joined, the last call runs. */
    MUSTER_RENDEZVOUS_COMPLETE = 3,  /**< The round is complete, this member is in; `count` is the world. */
    MUSTER_RENDEZVOUS_LEFT = 4,      /**< The member of `rank` has left the round, or joins again. */
    MUSTER_RENDEZVOUS_DEAD = 5,      /**< The member of `rank` died; the text says how that is known. */
    MUSTER_RENDEZVOUS_WAITING = 6,   /**< `count` wait for the next round who could be in it. */
    MUSTER_RENDEZVOUS_ABORTED = 7,   /**< The round was aborted; the text says by whom and why. */
    MUSTER_RENDEZVOUS_EXPELLED = 8,  /**< This member was taken for dead: the round goes on without it. */
    MUSTER_RENDEZVOUS_CLOSED = 9,    /**< The run is closed; the text says by whom and why. */
    MUSTER_RENDEZVOUS_LOST = 10      /**< The store is lost for good, with all that was in it; the text says how. Where
                                          a member served it the next join may find another. */
};

/** One event; 256 bytes. */
typedef struct muster_rendezvous_event {
    uint32_t kind;       /**< A ::muster_rendezvous_event_kind value. */
    uint32_t rank;       /**< LEFT, DEAD: whose rank; UINT32_MAX: of `count` members, too many to tell one by one. */
    uint64_t round;      /**< The round spoken of; 0: none so far. */
    uint32_t count;      /**< See the kinds. */
    uint32_t text_bytes; /**< Length of the text, terminator not counted. */
    char text[232];      /**< UTF-8, NUL-terminated, cut at a character boundary. */
} muster_rendezvous_event;

/** Takes the oldest event. JOINED and WAITING that nobody has taken give way to later ones of their kind; of 1024
 * events that nobody takes the oldest go. `static:` has none but CLOSED.
 * @param[in]  rendezvous  The member.
 * @param[in]  timeout_ns  Longest wait; 0 looks once, -1 has no end.
 * @param[out] out_event   Filled on ::MUSTER_OK.
 * @retval MUSTER_OK         One taken.
 * @retval MUSTER_AGAIN      None, and the timeout was 0. The next one tells the queue.
 * @retval MUSTER_TIMEOUT    None came in time.
 * @retval MUSTER_E_ARG      A value is missing.
 * @retval MUSTER_E_CLOSED   The context is closed, and all were taken.
 * @retval MUSTER_E_CANCELED muster_rendezvous_cancel() in another thread.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called with a timeout on a thread that serves the wait.
 * @retval MUSTER_E_FORKED   The rendezvous belongs to the parent process.
 * @threads{any; each event goes to one caller} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_next_event(muster_rendezvous *rendezvous, int64_t timeout_ns,
                                                      muster_rendezvous_event *out_event);

/** Where a member is; the value of muster_rendezvous_state::phase. */
enum muster_rendezvous_phase {
    MUSTER_RENDEZVOUS_PHASE_IDLE = 0,    /**< Not in. */
    MUSTER_RENDEZVOUS_PHASE_JOINING = 1, /**< Waits for a round. */
    MUSTER_RENDEZVOUS_PHASE_JOINED = 2   /**< In `round`. */
};

/** Flags of muster_rendezvous_state::flags. */
enum muster_rendezvous_state_flag {
    MUSTER_RENDEZVOUS_IS_CLOSED = 1,    /**< The run is closed. */
    MUSTER_RENDEZVOUS_IS_LAST_CALL = 2, /**< The last call runs. */
    MUSTER_RENDEZVOUS_IS_LEADER = 4     /**< This member is the one that makes the rounds. */
};

/** What a member knows; 88 bytes. What concerns the others is told once in a while, more seldom the more there are. */
typedef struct muster_rendezvous_state {
    uint32_t phase;                 /**< A ::muster_rendezvous_phase value. */
    uint32_t flags;                 /**< ::muster_rendezvous_state_flag values, or'ed. */
    uint64_t round;                 /**< Latest round that began in this run; 0: none so far. */
    uint32_t joined;                /**< Members that seek the next round. */
    uint32_t missing;               /**< How many more it needs at least. */
    uint32_t waiting;               /**< Of `joined`, those who could be in it. */
    uint32_t spares;                /**< Of `joined`, those for whom there is no place. */
    uint32_t present;               /**< Members that are in the latest round. */
    uint32_t exiting;               /**< Of these, those who wait in muster_rendezvous_exit(). */
    int64_t last_call_remaining_ns; /**< How long the last call still runs, about; -1: it does not. */
    uint64_t reserved[5];           /**< Zero. */
} muster_rendezvous_state;

/** Tells what the member knows just now; it asks nobody.
 * @param[in]  rendezvous  The member.
 * @param[out] out_state   Filled.
 * @retval MUSTER_OK       Filled.
 * @retval MUSTER_E_ARG    A value is missing.
 * @retval MUSTER_E_FORKED The rendezvous belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_get_state(muster_rendezvous *rendezvous, muster_rendezvous_state *out_state);

/** Lists who seeks the next round: their addresses, each made printable and with a line feed behind it, as many as
 * there is room for and at most 1000, in no order. For people; it asks the store.
 * @param[in]  rendezvous  The member.
 * @param[out] out_text    Where it goes; no terminator.
 * @param[in]  capacity    Room there, in bytes.
 * @param[in]  timeout_ns  Longest wait for the store, at least 1; -1 has no end.
 * @param[out] out_bytes   Length of the text.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK            Listed.
 * @retval MUSTER_TIMEOUT       The store did not answer in time.
 * @retval MUSTER_E_ARG         A value is missing or out of range.
 * @retval MUSTER_E_UNSUPPORTED `static:`.
 * @retval MUSTER_E_PEER        The way to the store broke.
 * @retval MUSTER_E_NOMEM       No memory.
 * @retval MUSTER_E_CLOSED      The context is closed.
 * @retval MUSTER_E_CANCELED    The context is closed, or the store's end; or muster_context_cancel() was called.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called on a thread that serves the wait.
 * @retval MUSTER_E_FORKED      The rendezvous belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_list(muster_rendezvous *rendezvous, char *out_text, size_t capacity,
                                                int64_t timeout_ns, size_t *out_bytes, muster_error *error);

/** Begins to list who seeks the next round, as muster_rendezvous_list() does; ::MUSTER_DONE_CALL comes with the length
 * of the text in its bytes.
 * @param[in]  rendezvous  The member.
 * @param[out] out_text    Where the text goes; the library's until the completion, or until the queue is closed.
 * @param[in]  capacity    Room there, in bytes.
 * @param[in]  timeout_ns  Longest time it may take; -1 has no end. At least 1.
 * @param[in]  queue       Where the completion appears; of the same context.
 * @param[in]  tag         Returned in muster_completion::tag.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK        Begun; ::MUSTER_DONE_CALL will come, perhaps before this call returns.
 * @retval MUSTER_AGAIN     No slot in the queue; not begun.
 * @retval MUSTER_E_ARG     A value is missing or out of range, or the queue is of another context.
 * @retval MUSTER_E_NOMEM   No memory or no thread.
 * @retval MUSTER_E_CLOSED  The context or the queue is closed.
 * @retval MUSTER_E_FORKED  The object belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_rendezvous_list_begin(muster_rendezvous *rendezvous, char *out_text, size_t capacity,
                                                      int64_t timeout_ns, muster_queue *queue, uint64_t tag,
                                                      muster_error *error);

/** Gives up the handle. Threads that wait in a call on it return ::MUSTER_E_CLOSED, and operations that were begun end
 * with it. A member that has not left counts as dead: the others are notified at once.
 * @param[in] rendezvous  What to release; NULL has no effect.
 * @threads{any, finalizers included} @blocks{no} @since 0.1 */
MUSTER_API void muster_rendezvous_release(muster_rendezvous *rendezvous);

/** Flags of muster_round_info::flags. */
enum muster_round_flag {
    MUSTER_ROUND_IS_OVER = 1 /**< It is known here that the round is over for this member: its store view is stale. */
};

/** What a round is; 64 bytes. */
typedef struct muster_round_info {
    uint64_t number;      /**< Its number in the run, from 1; of `static:`, how often this member has joined. */
    uint32_t rank;        /**< Rank of this member. */
    uint32_t world;       /**< Members of the round. */
    uint32_t flags;       /**< ::muster_round_flag values, or'ed. */
    uint32_t reserved[3]; /**< Zero. */
    uint8_t digest[32];   /**< Of the table of members, the same for all of them; of `static:`, zero. */
} muster_round_info;

/** One member of a round; what it points to is good until the round is released. 24 bytes. */
typedef struct muster_round_member_info {
    const void *address;    /**< Its muster_rendezvous_config::address. */
    uint64_t address_bytes; /**< Length of the address. */
    uint64_t reserved;      /**< Zero. */
} muster_round_member_info;

/** Tells what a round is.
 * @param[in]  round     The round.
 * @param[out] out_info  Filled.
 * @retval MUSTER_OK     Filled.
 * @retval MUSTER_E_ARG  A value is missing.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_round_get_info(const muster_round *round, muster_round_info *out_info);

/** Gives the store view of a round: a prefix of its own, and every request ends with ::MUSTER_E_STALE once the round is
 * over for this member, those that wait included. The text names both rounds. A request has two operations less than
 * those of other stores.
 * @param[in]  round      The round.
 * @param[out] out_store  The view; the caller owns one reference.
 * @param[out] error      Detail on failure, or NULL.
 * @retval MUSTER_OK            Given.
 * @retval MUSTER_E_ARG         A value is missing.
 * @retval MUSTER_E_UNSUPPORTED `static:` without a store. (With one the view is never stale.)
 * @retval MUSTER_E_NOMEM       No memory.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_round_store(muster_round *round, muster_store **out_store, muster_error *error);

/** Looks up a member of a round. The table is read in pages, when they are asked for first.
 * @param[in]  round       The round.
 * @param[in]  rank        Whose.
 * @param[in]  timeout_ns  Longest wait for the store, at least 1; -1 has no end.
 * @param[out] out_member  Filled.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK            Found.
 * @retval MUSTER_TIMEOUT       The store did not answer in time; of `static:`, the member has not joined so far.
 * @retval MUSTER_E_ARG         A value is missing, or the rank is not of this world.
 * @retval MUSTER_E_STALE       The round is over, and the page was not read before.
 * @retval MUSTER_E_UNSUPPORTED `static:` without a store.
 * @retval MUSTER_E_PROTOCOL    What the store has there is not of this version of Muster.
 * @retval MUSTER_E_PEER        The way to the store broke.
 * @retval MUSTER_E_NOMEM       No memory.
 * @retval MUSTER_E_CANCELED    muster_context_cancel() was called meanwhile.
 * @retval MUSTER_E_CLOSED      The context is closed, or the round was released meanwhile.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called on a thread that serves the wait.
 * @retval MUSTER_E_FORKED      The round belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_round_member(muster_round *round, uint32_t rank, int64_t timeout_ns,
                                             muster_round_member_info *out_member, muster_error *error);

/** Begins to look up a member of a round; ::MUSTER_DONE_CALL comes with the status of muster_round_member(). After
 * ::MUSTER_OK that call answers for this rank without a wait.
 * @param[in]  round       The round.
 * @param[in]  rank        Whose.
 * @param[in]  timeout_ns  Longest time it may take; -1 has no end. At least 1.
 * @param[in]  queue       Where the completion appears; of the same context.
 * @param[in]  tag         Returned in muster_completion::tag.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK        Begun; ::MUSTER_DONE_CALL will come, perhaps before this call returns.
 * @retval MUSTER_AGAIN     No slot in the queue; not begun.
 * @retval MUSTER_E_ARG     A value is missing or out of range, or the queue is of another context.
 * @retval MUSTER_E_NOMEM   No memory or no thread.
 * @retval MUSTER_E_CLOSED  The context or the queue is closed.
 * @retval MUSTER_E_FORKED  The object belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_round_member_begin(muster_round *round, uint32_t rank, int64_t timeout_ns,
                                                   muster_queue *queue, uint64_t tag, muster_error *error);

/** Gives up the handle. The member stays in the round. Threads that wait in muster_round_member() return
 * ::MUSTER_E_CLOSED.
 * @param[in] round  What to release; NULL has no effect.
 * @threads{any, finalizers included} @blocks{no} @since 0.1 */
MUSTER_API void muster_round_release(muster_round *round);

#ifdef __cplusplus
}
#endif

#endif
