/* SPDX-License-Identifier: MIT */
/** @file
 * Epoch-based reclamation: when may memory be freed that other threads may still read without a lock?
 *
 * A thread registers a token. It pins the token while it reads shared structures. A thread that has unlinked an object
 * defers it: the object is freed, or handed back to the host, when every token that was pinned at that time has been
 * unpinned. Deferring never frees; muster_epoch_poll() does, with limits on its work.
 *
 * The manager has a global epoch, a 64-bit number that only grows. Pinning copies it into the token. Deferred objects
 * are stamped with the global epoch that is read again after they were unlinked, and are freed when the global epoch is
 * two higher. It advances by one when each pinned token has the current epoch. (The published algorithm of the Chapel
 * module EpochManager stamps with the epoch of the token, which frees objects that are in use.)
 *
 * Pinning is a plain store where the kernel has membarrier(2): then the thread that advances the epoch pays for the
 * fence. Otherwise, or with ::MUSTER_EPOCH_FENCED, each pin has a fence of its own. `inline/epoch.h` has pin and unpin
 * as inline functions.
 *
 * The tokens of a manager may be in memory that processes share (::MUSTER_EPOCH_SHARED); these processes trust each
 * other. The death of a process that
 * has pinned a token is detected when its token blocks the epoch; its deferred objects are handed to the others.
 *
 * Progress: pin, unpin, protect and defer are wait-free. muster_epoch_try_reclaim() and muster_epoch_poll() are
 * lock-free, apart from functions of the host: a thread that is stopped in them stops no other thread. After fork() the
 * child can use no manager and no token of its parent (::MUSTER_E_FORKED); a shared manager can be opened again. */
#ifndef MUSTER_EPOCH_H
#define MUSTER_EPOCH_H

#include <muster/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Opaque; made by muster_epoch_create() or muster_epoch_open(). */
typedef struct muster_epoch muster_epoch;

/** Start of a token, for `inline/epoch.h` and compilers of other languages; the fields belong to the library. The
 * whole token has 512 bytes, and this part, which pin and unpin use, has 128-byte lines of its own. */
typedef struct muster_epoch_token {
    uint64_t epoch;    /**< Atomic: 0 while not pinned, else the global epoch at the pin. */
    int64_t to_global; /**< Distance in bytes from the token to the global epoch; bit 0: the pin needs a fence. */
    uint64_t depth;    /**< Nested pins: those beyond the first. */
    uint64_t state;    /**< Atomic: a ::muster_epoch_token_state in the low 8 bits; then a count of registrations (24
                            bits) and the process id of the owner (32 bits). */
    uint32_t index;    /**< Number of the token within its manager. */
    uint32_t reserved; /**< Zero. */
} muster_epoch_token;

/** States of a token. */
enum muster_epoch_token_state {
    MUSTER_EPOCH_TOKEN_FREE = 0,     /**< It can be registered. */
    MUSTER_EPOCH_TOKEN_IN_USE = 1,   /**< It is registered. */
    MUSTER_EPOCH_TOKEN_ORPHANED = 2, /**< It is unregistered or its owner died, and has deferred objects. */
    MUSTER_EPOCH_TOKEN_ADOPTED = 3   /**< Another token frees its deferred objects now. */
};

/** Flags of a manager; bits of muster_epoch_config::flags. */
enum muster_epoch_flags {
    MUSTER_EPOCH_FENCED = 1,      /**< Each pin has a fence, and advancing needs no system call. Better where nearly
                                       every pin defers an object. */
    MUSTER_EPOCH_SHARED = 2,      /**< The tokens are in shared memory: muster_epoch_config::fd and offset. */
    MUSTER_EPOCH_THREAD_BOUND = 4 /**< The thread that registers a token is its owner: if it exits without
                                       unregistering, the token is unpinned and its objects are handed over. Without
                                       this flag the owner of a token is its process. */
};

/** Bits of muster_completion::events of a ::MUSTER_EVENT_READY with muster_epoch_config::tag. */
enum muster_epoch_ready {
    MUSTER_EPOCH_BLOCKED = 1 /**< More than muster_epoch_config::max_pending / 2 objects of a token wait, and a pinned
                                  token blocks the epoch; muster_epoch_get_stats() names it. */
};

/** How to make a manager. */
typedef struct muster_epoch_config {
    uint32_t struct_size; /**< sizeof(muster_epoch_config) of the caller. */
    uint32_t flags;       /**< ::muster_epoch_flags, or'ed. */
    uint32_t max_tokens;  /**< Maximum number of registered tokens, at most 65536; 0: 128. */
    uint32_t max_pending; /**< Maximum number of deferred objects of one token, at most 2^26; rounded up to a power of
                               two, at least 64; 0: 16384. Memory is used (24 bytes each) when objects wait. */
    int32_t fd;           /**< SHARED: descriptor of the memory (memfd, shm_open); mapped, not kept. Otherwise 0. */
    uint32_t reserved;    /**< Zero. */
    uint64_t offset;      /**< SHARED: start of the manager within it, a multiple of the page size; it occupies
                               muster_epoch_size() bytes. Otherwise 0. */
    muster_queue *queue;  /**< Queue for ::MUSTER_EPOCH_BLOCKED, or NULL. */
    uint64_t tag;         /**< muster_completion::tag of these entries. */
} muster_epoch_config;

/** What an attempt to advance the epoch found. */
enum muster_epoch_outcome {
    MUSTER_EPOCH_ADVANCED = 1, /**< The global epoch is one higher. */
    MUSTER_EPOCH_LOST = 2,     /**< Another thread advanced it meanwhile, or is about to. */
    MUSTER_EPOCH_HELD = 3      /**< Not advanced: a pinned token has an earlier epoch, and blocks this one. */
};

/** Result of muster_epoch_try_reclaim(). */
typedef struct muster_epoch_attempt {
    int32_t outcome;   /**< A ::muster_epoch_outcome value. */
    uint32_t token;    /**< HELD: muster_epoch_token::index of the token that blocks; otherwise UINT32_MAX. */
    int32_t process;   /**< HELD: process id of its owner. */
    int32_t thread;    /**< HELD: thread id of the thread that has registered it. */
    uint64_t since_ns; /**< HELD: nanoseconds since it was first found to block this epoch. */
    uint64_t epoch;    /**< The global epoch after the attempt. */
} muster_epoch_attempt;

/** Counters of a manager. Objects that are deferred or freed meanwhile may be missing from one of them. */
typedef struct muster_epoch_stats {
    uint64_t epoch;           /**< The global epoch. */
    uint64_t deferred;        /**< Objects that were deferred since the manager was made. */
    uint64_t freed;           /**< Objects that were freed or handed back. */
    uint64_t pending;         /**< Objects that wait. */
    uint32_t tokens;          /**< Registered tokens. */
    uint32_t orphaned;        /**< Tokens without owner whose objects wait. */
    uint32_t deaths;          /**< Tokens whose owner died. */
    uint32_t is_fenced;       /**< 1: pins have a fence; 0: membarrier(2) is used. */
    uint32_t blocking_token;  /**< Index of the token that blocks the epoch, UINT32_MAX if none was found. */
    int32_t blocking_process; /**< Process id of its owner. */
    int32_t blocking_thread;  /**< Thread id of the thread that has registered it. */
    uint32_t reserved;        /**< Zero. */
    uint64_t blocked_ns;      /**< Nanoseconds since it was first found to block. */
} muster_epoch_stats;

/** Frees an object.
 * @param[in] user    As given to muster_epoch_defer().
 * @param[in] object  The object. */
typedef void (*muster_epoch_free_fn)(void *user, void *object);

/** Computes the memory that a shared manager occupies.
 * @param[in] max_tokens   As in muster_epoch_config.
 * @param[in] max_pending  As in muster_epoch_config.
 * @return Bytes, a multiple of the page size; 0 if a value is out of range.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API uint64_t muster_epoch_size(uint32_t max_tokens, uint32_t max_pending);

/** Makes a manager. With ::MUSTER_EPOCH_SHARED it initialises the memory, which must be zero and at least as large as
 * muster_epoch_size(); other processes then call muster_epoch_open().
 * @param[in]  config     Limits and options; copied. NULL: all defaults.
 * @param[out] out_epoch  The manager; the caller owns one reference.
 * @param[out] error      Detail on failure, or NULL.
 * @retval MUSTER_OK            Made.
 * @bad_config
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @retval MUSTER_E_CLOSED      The queue is closed.
 * @retval MUSTER_E_FORKED      The queue belongs to the parent process.
 * @retval MUSTER_E_EXISTS      The shared memory has a manager already.
 * @retval MUSTER_E_SYSTEM      The descriptor cannot be mapped, or /proc cannot be read.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_epoch_create(const muster_epoch_config *config, muster_epoch **out_epoch,
                                             muster_error *error);

/** Opens a manager that another process has made in shared memory.
 * @param[in]  config     ::MUSTER_EPOCH_SHARED, fd and offset; queue and tag of this process. max_tokens and
 *                        max_pending are 0: they are those of the creator, as the form of the pin is.
 * @param[out] out_epoch  The manager; the caller owns one reference.
 * @param[out] error      Detail on failure, or NULL.
 * @retval MUSTER_OK             Opened.
 * @bad_config
 * @retval MUSTER_E_NOMEM        Memory ran out.
 * @retval MUSTER_E_CLOSED       The queue is closed.
 * @retval MUSTER_E_FORKED       The queue belongs to the parent process.
 * @retval MUSTER_E_NOT_FOUND    There is no manager at this place.
 * @retval MUSTER_E_PROTOCOL     The manager there is damaged, or of another version of this library.
 * @retval MUSTER_E_UNSUPPORTED  Its pins rely on membarrier(2), which this process may not use; or the creator is in
 *                               another namespace of process ids, where deaths cannot be detected.
 * @retval MUSTER_E_SYSTEM       The descriptor cannot be mapped, or /proc cannot be read.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_epoch_open(const muster_epoch_config *config, muster_epoch **out_epoch,
                                           muster_error *error);

/** Gives up the reference to a manager. Its tokens remain valid; the manager ends when the last one is unregistered,
 * and then the functions of the objects that still wait are called: no token exists that could read them. (Objects of
 * a shared manager stay for the other processes.)
 * @param[in] epoch  Manager, or NULL. A manager that was released before is ignored.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API void muster_epoch_release(muster_epoch *epoch);

/** Registers a token. Tokens that were unregistered are used again.
 * @param[in]  epoch      Manager.
 * @param[out] out_token  The token; one thread uses it at a time, which may be another one than the caller.
 * @param[out] error      Detail on failure, or NULL.
 * @retval MUSTER_OK        Registered, not pinned.
 * @retval MUSTER_E_ARG     No destination.
 * @retval MUSTER_E_STALE   The manager was released.
 * @retval MUSTER_E_LIMIT   muster_epoch_config::max_tokens are registered, or free the objects of others now.
 * @retval MUSTER_E_FORKED  The manager belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_epoch_register(muster_epoch *epoch, muster_epoch_token **out_token,
                                               muster_error *error);

/** Unregisters a token: it is unpinned, its protected objects are released, and its deferred objects are freed by the
 * polls of other tokens. Any thread may do it, in any order, also while it exits.
 * @param[in] token  Token; not used again.
 * @retval MUSTER_OK        Unregistered.
 * @retval MUSTER_E_ARG     No token.
 * @retval MUSTER_E_STALE   It is not registered.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called by the function of an object that this token frees now.
 * @retval MUSTER_E_FORKED  It belongs to the parent process.
 * @threads{one at a time per token} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_epoch_unregister(muster_epoch_token *token);

/** Pins a token: objects that are reached from now on stay valid until it is unpinned. Pins nest.
 * @param[in] token  Token.
 * @retval MUSTER_OK       Pinned.
 * @retval MUSTER_E_ARG    No token.
 * @retval MUSTER_E_STALE  It is not registered.
 * @retval MUSTER_E_FORKED  It belongs to the parent process.
 * @threads{one at a time per token} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_epoch_pin(muster_epoch_token *token);

/** Ends one pin.
 * @param[in] token  Token.
 * @retval MUSTER_OK       Done; it is unpinned if that was the outermost pin.
 * @retval MUSTER_E_ARG    No token, or it is not pinned.
 * @retval MUSTER_E_STALE  It is not registered.
 * @retval MUSTER_E_FORKED  It belongs to the parent process.
 * @threads{one at a time per token} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_epoch_unpin(muster_epoch_token *token);

/** Pins a pinned token at the current epoch: a reader that stays long lets the epoch advance. What it reached before
 * may be freed.
 * @param[in] token  Token.
 * @retval MUSTER_OK       Done.
 * @retval MUSTER_AGAIN    The pin is nested: the outer pin relies on the earlier epoch; nothing changed.
 * @retval MUSTER_E_ARG    No token, or it is not pinned.
 * @retval MUSTER_E_STALE  It is not registered.
 * @retval MUSTER_E_FORKED  It belongs to the parent process.
 * @threads{one at a time per token} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_epoch_repin(muster_epoch_token *token);

/** Form for event loops: a token that is online is pinned between two calls of muster_epoch_quiescent().
 * @param[in] token  Token that is not pinned.
 * @retval MUSTER_OK       Online.
 * @retval MUSTER_E_ARG    No token, or it is online or pinned.
 * @retval MUSTER_E_STALE  It is not registered.
 * @retval MUSTER_E_FORKED  It belongs to the parent process.
 * @threads{one at a time per token} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_epoch_online(muster_epoch_token *token);

/** Says, once per turn of a loop, that nothing that was reached before is used any more; the same as
 * muster_epoch_repin().
 * @param[in] token  Token that is online.
 * @retval MUSTER_OK       Done.
 * @retval MUSTER_AGAIN    A pin is nested in it; nothing changed.
 * @retval MUSTER_E_ARG    No token, or it is offline.
 * @retval MUSTER_E_STALE  It is not registered.
 * @retval MUSTER_E_FORKED  It belongs to the parent process.
 * @threads{one at a time per token} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_epoch_quiescent(muster_epoch_token *token);

/** Takes a token offline, before its loop waits.
 * @param[in] token  Token that is online.
 * @retval MUSTER_OK       Offline: it blocks nothing.
 * @retval MUSTER_E_ARG    No token, or it is offline, or a pin is nested in it.
 * @retval MUSTER_E_STALE  It is not registered.
 * @retval MUSTER_E_FORKED  It belongs to the parent process.
 * @threads{one at a time per token} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_epoch_offline(muster_epoch_token *token);

/** Protects one object beyond the pin: a reader that stays long protects what it goes on using and unpins. The object
 * is not freed while it is protected; the epoch advances, and all other objects are freed.
 * @param[in] token   Token; pinned since before the object was reached, unless @p object is 0.
 * @param[in] slot    0 to 7; what it protected before is released.
 * @param[in] object  The address or offset with which the object will be deferred; 0 releases the slot.
 * @retval MUSTER_OK       Protected, or released.
 * @retval MUSTER_E_ARG    No token, no such slot, or the token is not pinned.
 * @retval MUSTER_E_STALE  It is not registered.
 * @retval MUSTER_E_FORKED  It belongs to the parent process.
 * @threads{one at a time per token} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_epoch_protect(muster_epoch_token *token, uint32_t slot, uint64_t object);

/** Defers the end of an object that no shared structure refers to any more. Frees nothing and allocates nothing.
 * @param[in] token   Token, pinned or not.
 * @param[in] free    Function that frees the object, called by muster_epoch_poll() and the like, on their threads.
 * @param[in] user    Passed to it.
 * @param[in] object  The object, not NULL.
 * @retval MUSTER_OK             Deferred.
 * @retval MUSTER_AGAIN          muster_epoch_config::max_pending objects wait: the object remains the caller's. Poll,
 *                               or find what blocks the epoch.
 * @retval MUSTER_E_ARG          No token, no function or no object.
 * @retval MUSTER_E_UNSUPPORTED  The manager is shared: a function of one process cannot be called by another.
 * @retval MUSTER_E_STALE        The token is not registered.
 * @retval MUSTER_E_FORKED       It belongs to the parent process.
 * @threads{one at a time per token} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_epoch_defer(muster_epoch_token *token, muster_epoch_free_fn free, void *user,
                                            void *object);

/** Defers an object that muster_epoch_poll() hands back: for runtimes that free their own objects, and for shared
 * memory.
 * @param[in] token   Token, pinned or not.
 * @param[in] object  Address, offset or number of the object, not 0.
 * @retval MUSTER_OK       Deferred.
 * @retval MUSTER_AGAIN    muster_epoch_config::max_pending objects wait: the object remains the caller's.
 * @retval MUSTER_E_ARG    No token or no object.
 * @retval MUSTER_E_STALE  The token is not registered.
 * @retval MUSTER_E_FORKED It belongs to the parent process.
 * @threads{one at a time per token} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_epoch_retire(muster_epoch_token *token, uint64_t object);

/** Tries to advance the epoch by one. Frees nothing.
 * @param[in]  token  Token of the caller. Its objects are stamped first.
 * @param[out] out    What was found, or NULL.
 * @retval MUSTER_OK       Advanced.
 * @retval MUSTER_AGAIN    Not advanced; muster_epoch_attempt::outcome says why.
 * @retval MUSTER_E_ARG    No token.
 * @retval MUSTER_E_STALE  It is not registered.
 * @retval MUSTER_E_FORKED It belongs to the parent process.
 * @threads{one at a time per token} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_epoch_try_reclaim(muster_epoch_token *token, muster_epoch_attempt *out);

/** The same for a thread without a token.
 * @param[in]  epoch  Manager.
 * @param[out] out    What was found, or NULL.
 * @retval MUSTER_OK       Advanced.
 * @retval MUSTER_AGAIN    Not advanced; muster_epoch_attempt::outcome says why.
 * @retval MUSTER_E_STALE  The manager was released.
 * @retval MUSTER_E_FORKED It belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_epoch_advance(muster_epoch *epoch, muster_epoch_attempt *out);

/** Frees objects whose time has come: those of the token, then those of tokens without owner. Cheap enough for each
 * operation: the epoch is advanced when some more objects wait, or many polls found none to free, and few objects are
 * freed per call. So everything is freed by enough polls, unless a token stays pinned; with a poll after each defer at
 * most 64 objects of the token wait while no token stays pinned.
 * @param[in]  token         Token of the caller.
 * @param[in]  max_objects   Maximum number of objects; 0: 8.
 * @param[in]  max_ns        Maximum time in nanoseconds, checked between objects; 0: no limit.
 * @param[out] out_objects   Objects of muster_epoch_retire(), or NULL if the host uses none. They belong to the caller.
 * @param[in]  out_capacity  Its size in objects. The poll stops at an object for which there is no room.
 * @param[out] out_count     Number of objects in it, or NULL.
 * @param[out] out_freed     Number of objects that were freed, those included; or NULL.
 * @retval MUSTER_OK       No object is left whose time has come.
 * @retval MUSTER_AGAIN    A limit was reached.
 * @retval MUSTER_E_ARG    No token.
 * @retval MUSTER_E_STALE  It is not registered.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called by the function of an object that this token frees now.
 * @retval MUSTER_E_FORKED It belongs to the parent process.
 * @threads{one at a time per token} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_epoch_poll(muster_epoch_token *token, uint32_t max_objects, uint64_t max_ns,
                                           uint64_t *out_objects, uint32_t out_capacity, uint32_t *out_count,
                                           uint32_t *out_freed);

/** Waits until every token that is pinned now was unpinned or pinned again (synchronize_rcu of liburcu). Frees nothing.
 * @param[in]  token       Token of the caller, not pinned.
 * @param[in]  timeout_ns  Maximum wait; 0 tries once, -1: no limit.
 * @param[out] out         What was found last, or NULL.
 * @retval MUSTER_OK       Objects that were unlinked before the call are used by no token. Polls free those that this
 *                         token has deferred.
 * @retval MUSTER_TIMEOUT  A token stayed pinned; @p out names it.
 * @retval MUSTER_E_ARG    No token.
 * @retval MUSTER_E_STALE  It is not registered.
 * @retval MUSTER_E_WOULD_DEADLOCK  The token is pinned.
 * @retval MUSTER_E_FORKED It belongs to the parent process.
 * @threads{one at a time per token} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_epoch_synchronize(muster_epoch_token *token, int64_t timeout_ns,
                                                  muster_epoch_attempt *out);

/** Waits until the functions of all objects that this token has deferred were called (rcu_barrier of liburcu).
 * @param[in] token       Token of the caller, not pinned.
 * @param[in] timeout_ns  Maximum wait; 0 tries once, -1: no limit.
 * @retval MUSTER_OK       Done.
 * @retval MUSTER_AGAIN    The next object has to be handed back by muster_epoch_poll().
 * @retval MUSTER_TIMEOUT  A token stayed pinned, or an object stayed protected.
 * @retval MUSTER_E_ARG    No token.
 * @retval MUSTER_E_STALE  It is not registered.
 * @retval MUSTER_E_WOULD_DEADLOCK  The token is pinned, or frees objects now.
 * @retval MUSTER_E_FORKED It belongs to the parent process.
 * @threads{one at a time per token} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_epoch_barrier(muster_epoch_token *token, int64_t timeout_ns);

/** Calls the functions of all deferred objects now, without waiting for an epoch: the end of a structure that no
 * thread uses any more. Objects of muster_epoch_retire() are left for muster_epoch_poll().
 * @param[in]  epoch      Manager, not shared. No other thread uses it or a token of it.
 * @param[out] out_freed  Number of objects, or NULL.
 * @retval MUSTER_OK             Done.
 * @retval MUSTER_E_BUSY         A token is pinned, or has protected an object; nothing was freed.
 * @retval MUSTER_E_STALE        The manager was released.
 * @retval MUSTER_E_UNSUPPORTED  The manager is shared.
 * @retval MUSTER_E_FORKED       It belongs to the parent process.
 * @threads{one} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_epoch_clear(muster_epoch *epoch, uint64_t *out_freed);

/** Returns the counters of a manager.
 * @param[in]  epoch      Manager.
 * @param[out] out_stats  The counters.
 * @filled
 * @retval MUSTER_E_ARG    No destination.
 * @retval MUSTER_E_STALE  The manager was released.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_epoch_get_stats(muster_epoch *epoch, muster_epoch_stats *out_stats);

#ifdef __cplusplus
}
#endif
#endif
