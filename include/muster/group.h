/* SPDX-License-Identifier: MIT */
/** @file
 * Groups: collective operations of a fixed set of processes, each of which has a rank.
 *
 * All members of a group perform the same operations in the same order: a barrier, a broadcast, a reduction. An
 * operation has a sequence number and a fingerprint (kind, type, reduction, root, flags, counts). If two members
 * perform different operations under one number, every member gets ::MUSTER_E_MISMATCH, and the error names both ranks
 * and both operations. A member that waits for no other one, as the root of a broadcast, can have ended its operation
 * before; then a later one returns the error. Over streams, members that wait for each other, for instance because they
 * name different roots, end by their time limits.
 *
 * Results. Each element of a reduction is computed in the order of the ranks, from rank 0 up. So the result does not
 * depend on the number of elements, on the hosts of the members or on the way of the bytes, and all members get the
 * same bits. 16-bit floating-point numbers are accumulated in 32 bits and rounded once.
 *
 * Failure. When a member dies, every operation that needs it ends at every other member with ::MUSTER_E_PEER, and
 * muster_error::rank is the rank of the dead member. A group that has failed stays failed: every later operation
 * returns the same error. The survivors keep their processes; they make the next group, for instance from the next
 * round of a rendezvous, which also finds out which members are left. An operation that times out or is cancelled has
 * the same effect, because the member is then out of step: the other members get ::MUSTER_E_ABORTED with its rank.
 *
 * Paths. Members of one host and user share memory, in which each of them puts its elements for the others to read.
 * Otherwise the elements go over streams, one between each two members; the addresses decide the transport. A member
 * that waits yields the processor and sleeps after a short time.
 *
 * The operations follow those of MPI. Counts are in elements. The blocks of an array with one block per rank follow
 * each other in the order of the ranks. `NULL` as input means that the operation works in place: the input is taken
 * from the output. Input and output do not overlap otherwise. */
#ifndef MUSTER_GROUP_H
#define MUSTER_GROUP_H

#include <muster/cluster.h>
#include <muster/rendezvous.h>
#include <muster/store.h>
#include <muster/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Opaque; made by muster_group_open() or muster_group_split(). */
typedef struct muster_group muster_group;

/** The type of an element. */
enum muster_type {
    MUSTER_TYPE_I8 = 1,           /**< int8_t. */
    MUSTER_TYPE_U8 = 2,           /**< uint8_t; also for plain bytes. */
    MUSTER_TYPE_I16 = 3,          /**< int16_t. */
    MUSTER_TYPE_U16 = 4,          /**< uint16_t. */
    MUSTER_TYPE_I32 = 5,          /**< int32_t. */
    MUSTER_TYPE_U32 = 6,          /**< uint32_t. */
    MUSTER_TYPE_I64 = 7,          /**< int64_t. */
    MUSTER_TYPE_U64 = 8,          /**< uint64_t. */
    MUSTER_TYPE_F16 = 9,          /**< IEEE 754 binary16. */
    MUSTER_TYPE_BF16 = 10,        /**< bfloat16: the upper half of a binary32. */
    MUSTER_TYPE_F32 = 11,         /**< float. */
    MUSTER_TYPE_F64 = 12,         /**< double. */
    MUSTER_TYPE_OF_REDUCTION = 13 /**< The elements of a reduction of the host; see muster_group_add_reduction(). */
};

/** How two elements become one. Reductions of the host have numbers from 256. */
enum muster_reduction {
    MUSTER_REDUCE_SUM = 1,     /**< Sum; integers wrap around. */
    MUSTER_REDUCE_PRODUCT = 2, /**< Product; integers wrap around. */
    MUSTER_REDUCE_MIN = 3,     /**< Minimum. If an element is no number, the result is one of the elements. */
    MUSTER_REDUCE_MAX = 4,     /**< Maximum. If an element is no number, the result is one of the elements. */
    MUSTER_REDUCE_AND = 5,     /**< Bitwise and; integers only. */
    MUSTER_REDUCE_OR = 6,      /**< Bitwise or; integers only. */
    MUSTER_REDUCE_XOR = 7      /**< Bitwise exclusive or; integers only. */
};

/** What an operation does. `N` is the size of the group. */
enum muster_group_kind {
    MUSTER_GROUP_BARRIER = 1,    /**< Ends when all members have begun it. */
    MUSTER_GROUP_BROADCAST = 2,  /**< The output of the root, `count` elements, is copied to the output of all others.
                                    The input is not used. The root of a small one does not wait for the others. */
    MUSTER_GROUP_REDUCE = 3,     /**< Inputs of `count` elements are reduced; only the root has the result as output. */
    MUSTER_GROUP_ALL_REDUCE = 4, /**< The same, and all members have the result. */
    MUSTER_GROUP_REDUCE_SCATTER = 5, /**< Inputs of one block per rank are reduced; rank r gets block r of the result,
                                        of `count` elements, as output. */
    MUSTER_GROUP_SCAN = 6,   /**< Rank r gets the reduction of the inputs of ranks 0 to r, of `count` elements. */
    MUSTER_GROUP_GATHER = 7, /**< The root gets the inputs of all members, `count` elements each, as output. */
    MUSTER_GROUP_ALL_GATHER =
        8,                    /**< All members get the inputs of all members. In place: block r of rank r's output. */
    MUSTER_GROUP_SCATTER = 9, /**< Rank r gets block r, of `count` elements, of the input of the root. If the output
                                   of the root is NULL, its own block stays where it is. */
    MUSTER_GROUP_ALL_TO_ALL = 10 /**< Rank r gets block r of every input; block s of its output is that of rank s. */
};

/** Flags of muster_group_operation::flags. */
enum muster_group_operation_flag {
    MUSTER_GROUP_EXCLUSIVE = 1 /**< SCAN: the input of rank r itself is left out; the output of rank 0 is unchanged. */
};

/** A collective operation. */
typedef struct muster_group_operation {
    uint32_t struct_size;   /**< sizeof(muster_group_operation) of the caller. */
    uint32_t kind;          /**< A ::muster_group_kind value. */
    uint32_t type;          /**< A ::muster_type value; a barrier has none. */
    uint32_t reduction;     /**< Operations that reduce: a ::muster_reduction value, or one of the host's. */
    uint32_t root;          /**< Operations with a root: its rank. */
    uint32_t flags;         /**< ::muster_group_operation_flag values, or'ed. */
    uint64_t count;         /**< Number of elements of a block; see the kinds. 0 is possible. */
    const void *input;      /**< Input; lent until the operation has ended. NULL: in place. */
    void *output;           /**< Output; lent until the operation has ended. NULL at members that have none. */
    const uint64_t *counts; /**< REDUCE_SCATTER, GATHER, ALL_GATHER, SCATTER: N numbers of elements, one for the block
                               of each rank, the same at all members; used in place of `count`. ALL_TO_ALL: the numbers
                               of elements to send to each rank. Copied. NULL: blocks of `count` elements. */
    const uint64_t *output_counts; /**< ALL_TO_ALL with counts: the numbers of elements to receive from each rank. */
} muster_group_operation;

/** Flags of muster_group_config::flags. */
enum muster_group_flag {
    MUSTER_GROUP_NO_SHARED_MEMORY =
        1,                          /**< The members use streams also within a host. One member is enough to decide. */
    MUSTER_GROUP_MESSAGES = 2,      /**< Each two members have a second stream, for muster_group_send(). The same at all
                                         members. */
    MUSTER_GROUP_RANK_OF_MEMBER = 4 /**< With `cluster`: ranks are the numbers of the members, 0 of the master. So no
                                         worker may have been lost or removed before. */
};

/** How to open a group. The members find each other by a round, a store, a cluster, or by a list of addresses. */
typedef struct muster_group_config {
    uint32_t struct_size;  /**< sizeof(muster_group_config) of the caller. */
    uint32_t flags;        /**< ::muster_group_flag values, or'ed. */
    uint32_t rank;         /**< Rank of this member, below `size`. A round has its own. */
    uint32_t size;         /**< Number of members, 1 to 4096. A round has its own. */
    muster_round *round;   /**< Round of a rendezvous over a store: rank, size and store are those of the round, and its
                                end ends the call, if it belongs to the same context. Or NULL. */
    muster_store *store;   /**< Store through which the members exchange their addresses. Or NULL. */
    const void *name;      /**< Name of the group in the store or round, the same at all members. Each name is used for
                                one group of a store or round only: a store keeps the addresses. NULL: "group". */
    uint64_t name_bytes;   /**< Length of the name, at most 200. */
    const char *listen;    /**< Address at which the other members connect to this one, for instance
                                `tcp://10.0.0.7:0` or `shm://job-{}`; `{}` is replaced by the rank. Not used with
                                `addresses`. */
    uint64_t listen_bytes; /**< Length of the address. */
    const char *addresses; /**< Without store and round: the addresses of all members, in the order of the ranks,
                                separated by line feeds. This member listens at its own. */
    uint64_t addresses_bytes; /**< Length of the list. */
    uint64_t slot_bytes;      /**< Shared memory of a member for one step of an operation: a multiple of 4096, up to
                                   16 MiB, the same at all members. The members of a host use 2 * (size + 1) times as
                                   much together, and 64 KiB for each of them. 0: by the size of the group, 64 KiB to
                                   512 KiB. */
    muster_cluster *cluster;  /**< Cluster of which all members are those of the group, or a part; the group finds its
                                   members by the store of the cluster, see muster_cluster_store(). With
                                   ::MUSTER_GROUP_RANK_OF_MEMBER the rank is the number of this process in the cluster,
                                   else it is `rank`. Or NULL. */
} muster_group_config;

/** Opens a group; returns when all members have connected to each other. A collective call: every member makes it.
 * @param[in]  context     Context of its streams; the group keeps it alive. Each member may have its own, also within
 * one process. All contexts have the same secret.
 * @param[in]  config      Who the members are; copied. Store and round are used during the call only.
 * @param[in]  timeout_ns  Maximum time, at least 1; -1: no limit. If a member dies before it has connected to this one,
 * only this limit or the end of the round ends the call.
 * @param[out] out_group   The group; the caller owns one reference.
 * @param[out] error       Detail on failure, or NULL: after a timeout, the ranks that are missing.
 * @retval MUSTER_OK            Opened.
 * @bad_config
 * @retval MUSTER_TIMEOUT       Not all members have connected in time.
 * @retval MUSTER_E_ADDRESS     An address cannot be parsed.
 * @retval MUSTER_E_EXISTS      The address to listen at is in use, or another member has published this rank.
 * @retval MUSTER_E_NOT_FOUND   There is no such transport or host.
 * @retval MUSTER_E_UNSUPPORTED The round has no store.
 * @retval MUSTER_E_UNREACHABLE A member or the store cannot be reached.
 * @retval MUSTER_E_PEER        A member or the store has ended; muster_error::rank is that of the member.
 * @retval MUSTER_E_ABORTED     A member has failed during the call.
 * @retval MUSTER_E_AUTH        A member has another secret.
 * @retval MUSTER_E_MISMATCH    A member was given another size, another name or another slot size.
 * @retval MUSTER_E_PROTOCOL    A peer is no member of a group.
 * @retval MUSTER_E_STALE       The round is over.
 * @retval MUSTER_E_STORE_LOST  The store is lost.
 * @retval MUSTER_E_PERMISSION  The operating system or the store refuses this user.
 * @retval MUSTER_E_PLUGIN      A plug-in is missing, or has failed.
 * @retval MUSTER_E_LIMIT       No descriptor is left, or the store is full.
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @retval MUSTER_E_CLOSED      The context or the store was closed.
 * @retval MUSTER_E_CANCELED    muster_context_cancel() was called during the call.
 * @retval MUSTER_E_WOULD_DEADLOCK  The calling thread has to serve the wait.
 * @retval MUSTER_E_SYSTEM      Another system call failed.
 * @retval MUSTER_E_FORKED      The context belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_group_open(muster_context *context, const muster_group_config *config,
                                           int64_t timeout_ns, muster_group **out_group, muster_error *error);

/** Divides a group: members that give the same color are a new group, in the order of their keys, and of their ranks
 * where keys are equal. A collective operation of the group, which stays as it is; if a member cannot connect to the
 * others of its color, the group fails.
 * @param[in]  group       Group to divide.
 * @param[in]  color       Which new group; a negative value: none.
 * @param[in]  key         Determines the rank in the new group.
 * @param[in]  timeout_ns  Maximum time, at least 1; -1: no limit.
 * @param[out] out_group   The new group, of which the caller owns one reference; NULL for a negative color.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK            Divided.
 * @retval MUSTER_E_ARG         No group or destination, or a timeout of 0.
 * @retval MUSTER_TIMEOUT       Not all members have called it or connected in time; the group has failed.
 * @retval MUSTER_E_PEER        A member died; muster_error::rank is its rank in the group that has failed.
 * @retval MUSTER_E_ABORTED     A member revoked the group, or could not connect; muster_error::rank is its rank.
 * @retval MUSTER_E_MISMATCH    A member performed another operation.
 * @retval MUSTER_E_PROTOCOL    A member sent a malformed message.
 * @retval MUSTER_E_EXISTS      The address at which the new group would listen is in use.
 * @retval MUSTER_E_AUTH        A member of the new group has another secret.
 * @retval MUSTER_E_PERMISSION  The operating system refuses this user.
 * @retval MUSTER_E_PLUGIN      A plug-in has failed.
 * @retval MUSTER_E_UNREACHABLE A member cannot be reached, or could not listen.
 * @retval MUSTER_E_LIMIT       No descriptor is left.
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @retval MUSTER_E_CLOSED      The group or the context is closed.
 * @retval MUSTER_E_CANCELED    muster_context_cancel() was called during the call.
 * @retval MUSTER_E_WOULD_DEADLOCK  The calling thread has to serve the wait.
 * @retval MUSTER_E_SYSTEM      Another system call failed.
 * @retval MUSTER_E_FORKED      The group belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_group_split(muster_group *group, int64_t color, int64_t key, int64_t timeout_ns,
                                            muster_group **out_group, muster_error *error);

/** Makes a new stream between each two members, which belongs to the caller and not to the group: for instance for
 * active messages (am.h). A collective operation of the group, which stays as it is; if a member cannot connect to the
 * others, the group fails.
 * @param[in]  group        Group.
 * @param[in]  timeout_ns   Maximum time, at least 1; -1: no limit.
 * @param[out] out_streams  The streams in the order of the ranks, of each of which the caller owns one reference; NULL
 *                          for this member. Written if all members have their streams.
 * @param[in]  capacity     Number of places, at least the size of the group.
 * @param[out] error        Detail on failure, or NULL.
 * @retval MUSTER_OK            All members are connected.
 * @retval MUSTER_E_ARG         No group, too few places, or a timeout of 0.
 * @retval MUSTER_TIMEOUT       Not all members have called it or connected in time; the group has failed.
 * @retval MUSTER_E_PEER        A member died; muster_error::rank is its rank.
 * @retval MUSTER_E_ABORTED     A member revoked the group, or could not connect; muster_error::rank is its rank.
 * @retval MUSTER_E_MISMATCH    A member performed another operation.
 * @retval MUSTER_E_PROTOCOL    A member sent a malformed message.
 * @retval MUSTER_E_EXISTS      The address at which this member would listen is in use.
 * @retval MUSTER_E_AUTH        A member has another secret.
 * @retval MUSTER_E_PERMISSION  The operating system refuses this user.
 * @retval MUSTER_E_PLUGIN      A plug-in has failed.
 * @retval MUSTER_E_UNREACHABLE A member cannot be reached, or could not listen.
 * @retval MUSTER_E_LIMIT       No descriptor is left.
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @retval MUSTER_E_CLOSED      The group or the context is closed.
 * @retval MUSTER_E_CANCELED    muster_context_cancel() was called during the call.
 * @retval MUSTER_E_WOULD_DEADLOCK  The calling thread has to serve the wait.
 * @retval MUSTER_E_SYSTEM      Another system call failed.
 * @retval MUSTER_E_FORKED      The group belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_group_connect(muster_group *group, int64_t timeout_ns, muster_stream **out_streams,
                                              uint32_t capacity, muster_error *error);

/** Returns the rank of this member.
 * @param[in] group  Group to query.
 * @return The rank, from 0; UINT32_MAX if there is no group.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API uint32_t muster_group_rank(const muster_group *group);

/** Returns the number of members.
 * @param[in] group  Group to query.
 * @return The size; 0 if there is no group.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API uint32_t muster_group_size(const muster_group *group);

/** A reduction of the host: combines the elements of two arrays, in place: inout[i] = combine(inout[i], input[i]). The
 * elements of inout are those of lower ranks. Called on the thread that calls muster_group_run(), or, for an operation
 * that was begun, on a thread that takes entries of its queue.
 * @param[in]     user    Pointer that was passed to muster_group_add_reduction().
 * @param[in]     input   Array of `count` elements; not aligned to more than one byte.
 * @param[in,out] inout   Array of `count` elements; aligned to 64 bytes.
 * @param[in]     count   Number of elements. */
typedef void (*muster_reduce_fn)(void *user, const void *input, void *inout, uint64_t count);

/** Adds a reduction of the host. All members add the same reductions in the same order, so that each has the same
 * number at all of them.
 * @param[in]  group          Group to which it is added.
 * @param[in]  element_bytes  Size of an element of ::MUSTER_TYPE_OF_REDUCTION, 1 to 4096.
 * @param[in]  combine        The function; it does not block and performs no operation of the group.
 * @param[in]  user           Passed to the function; lent until the group is released.
 * @param[out] out_reduction  Number of the reduction, from 256.
 * @retval MUSTER_OK       Added.
 * @retval MUSTER_E_ARG    A pointer is missing, or the size is out of range.
 * @retval MUSTER_E_LIMIT  The group has 256 reductions of the host.
 * @retval MUSTER_E_NOMEM  Memory ran out.
 * @retval MUSTER_E_FORKED The group belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_group_add_reduction(muster_group *group, uint32_t element_bytes,
                                                    muster_reduce_fn combine, void *user, uint32_t *out_reduction);

/** Performs an operation. Operations of one member are performed one after the other, in the order of the calls.
 * @param[in]  group       Group.
 * @param[in]  operation   What to do; copied, except input and output.
 * @param[in]  timeout_ns  Maximum time, at least 1; -1: no limit. After it, the group has failed.
 * @param[out] error       Detail on failure, or NULL. muster_error::rank is the rank at fault.
 * @performed
 * @retval MUSTER_E_ABI  The operation has non-zero fields that are newer than this library.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_group_run(muster_group *group, const muster_group_operation *operation,
                                          int64_t timeout_ns, muster_error *error);

/** Begins an operation, as muster_group_run() performs it, on a thread of the library; ::MUSTER_DONE_CALL has its
 * status and its detail. muster_queue_cancel_operation() ends it as a timeout does, and the group with it; the call
 * waits for a reduction of the host that is running, unless it is made inside that.
 *
 * A reduction of the host is called inside muster_queue_next() or muster_queue_dispatch() of the queue, on the thread
 * that calls these; the descriptor of the queue is readable when that is due. The operation waits for it, up to its
 * timeout.
 * @param[in]  group       Group.
 * @param[in]  operation   What to do; copied, except input and output, which are lent until the completion.
 * @param[in]  timeout_ns  Maximum time, at least 1; -1: no limit. After it, the group has failed.
 * @param[in]  queue       Queue of the context of the group.
 * @param[in]  tag         Returned in muster_completion::tag.
 * @param[out] error       Detail on failure, or NULL.
 * @begun{::MUSTER_DONE_CALL}
 * @retval MUSTER_E_ARG     A value is missing or out of range; the error names it. Not begun.
 * @retval MUSTER_E_ABI     The operation has non-zero fields that are newer than this library. Not begun.
 * @retval MUSTER_E_LIMIT   No descriptor is left. Not begun.
 * @retval MUSTER_E_NOMEM   Memory or threads ran out. Not begun.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_group_begin(muster_group *group, const muster_group_operation *operation,
                                            int64_t timeout_ns, muster_queue *queue, uint64_t tag, muster_error *error);

/** Waits until all members have called it.
 * @param[in]  group       Group.
 * @param[in]  timeout_ns  As in muster_group_run().
 * @param[out] error       Detail on failure, or NULL.
 * @performed
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_group_barrier(muster_group *group, int64_t timeout_ns, muster_error *error);

/** Copies an array of the root to all members. It is no barrier: the root can return before the others have called it.
 * @param[in]     group       Group.
 * @param[in,out] data        Array of `count` elements.
 * @param[in]     count       Number of elements, the same at all members.
 * @param[in]     type        A ::muster_type value.
 * @param[in]     root        Rank of the member that has the array.
 * @param[in]     timeout_ns  As in muster_group_run().
 * @param[out]    error       Detail on failure, or NULL.
 * @performed
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_group_broadcast(muster_group *group, void *data, uint64_t count, uint32_t type,
                                                uint32_t root, int64_t timeout_ns, muster_error *error);

/** Combines the arrays of all members, element by element, at the root.
 * @param[in]  group       Group.
 * @param[in]  input       Array of `count` elements. NULL: in place, at the root.
 * @param[out] output      Array of `count` elements at the root; elsewhere not used.
 * @param[in]  count       Number of elements, the same at all members.
 * @param[in]  type        A ::muster_type value.
 * @param[in]  reduction   A ::muster_reduction value, or one of the host's.
 * @param[in]  root        Rank of the member that gets the result.
 * @param[in]  timeout_ns  As in muster_group_run().
 * @param[out] error       Detail on failure, or NULL.
 * @performed
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_group_reduce(muster_group *group, const void *input, void *output, uint64_t count,
                                             uint32_t type, uint32_t reduction, uint32_t root, int64_t timeout_ns,
                                             muster_error *error);

/** Combines the arrays of all members, element by element; every member receives the result.
 * @param[in]     group       Group.
 * @param[in]     input       Array of `count` elements. NULL: in place.
 * @param[in,out] output      Array of `count` elements.
 * @param[in]     count       Number of elements, the same at all members.
 * @param[in]     type        A ::muster_type value.
 * @param[in]     reduction   A ::muster_reduction value, or one of the host's.
 * @param[in]     timeout_ns  As in muster_group_run().
 * @param[out]    error       Detail on failure, or NULL.
 * @performed
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_group_all_reduce(muster_group *group, const void *input, void *output, uint64_t count,
                                                 uint32_t type, uint32_t reduction, int64_t timeout_ns,
                                                 muster_error *error);

/** Combines the arrays of all members, element by element; each member receives one block of the result.
 * @param[in]     group       Group.
 * @param[in]     input       Array of shape (size, count). NULL: in place, the block is at the begin of the output.
 * @param[in,out] output      Array of `count` elements; in place, of shape (size, count).
 * @param[in]     count       Number of elements of a block, the same at all members.
 * @param[in]     type        A ::muster_type value.
 * @param[in]     reduction   A ::muster_reduction value, or one of the host's.
 * @param[in]     timeout_ns  As in muster_group_run().
 * @param[out]    error       Detail on failure, or NULL.
 * @performed
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_group_reduce_scatter(muster_group *group, const void *input, void *output,
                                                     uint64_t count, uint32_t type, uint32_t reduction,
                                                     int64_t timeout_ns, muster_error *error);

/** Combines the arrays of ranks 0 to r, element by element; rank r receives the result.
 * @param[in]     group       Group.
 * @param[in]     input       Array of `count` elements. NULL: in place.
 * @param[in,out] output      Array of `count` elements.
 * @param[in]     count       Number of elements, the same at all members.
 * @param[in]     type        A ::muster_type value.
 * @param[in]     reduction   A ::muster_reduction value, or one of the host's.
 * @param[in]     timeout_ns  As in muster_group_run().
 * @param[out]    error       Detail on failure, or NULL.
 * @performed
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_group_scan(muster_group *group, const void *input, void *output, uint64_t count,
                                           uint32_t type, uint32_t reduction, int64_t timeout_ns, muster_error *error);

/** Gathers the arrays of all members at the root.
 * @param[in]  group       Group.
 * @param[in]  input       Array of `count` elements. NULL at the root: its block is in the output already.
 * @param[out] output      Array of shape (size, count) at the root; elsewhere not used.
 * @param[in]  count       Number of elements of a block, the same at all members.
 * @param[in]  type        A ::muster_type value.
 * @param[in]  root        Rank of the member that gets the arrays.
 * @param[in]  timeout_ns  As in muster_group_run().
 * @param[out] error       Detail on failure, or NULL.
 * @performed
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_group_gather(muster_group *group, const void *input, void *output, uint64_t count,
                                             uint32_t type, uint32_t root, int64_t timeout_ns, muster_error *error);

/** Gathers the arrays of all members at all members.
 * @param[in]     group       Group.
 * @param[in]     input       Array of `count` elements. NULL: the block is in the output already.
 * @param[in,out] output      Array of shape (size, count).
 * @param[in]     count       Number of elements of a block, the same at all members.
 * @param[in]     type        A ::muster_type value.
 * @param[in]     timeout_ns  As in muster_group_run().
 * @param[out]    error       Detail on failure, or NULL.
 * @performed
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_group_all_gather(muster_group *group, const void *input, void *output, uint64_t count,
                                                 uint32_t type, int64_t timeout_ns, muster_error *error);

/** Gives each member a block of an array of the root.
 * @param[in]  group       Group.
 * @param[in]  input       Array of shape (size, count) at the root; elsewhere not used.
 * @param[out] output      Array of `count` elements. NULL at the root: its block stays where it is.
 * @param[in]  count       Number of elements of a block, the same at all members.
 * @param[in]  type        A ::muster_type value.
 * @param[in]  root        Rank of the member that has the array.
 * @param[in]  timeout_ns  As in muster_group_run().
 * @param[out] error       Detail on failure, or NULL.
 * @performed
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_group_scatter(muster_group *group, const void *input, void *output, uint64_t count,
                                              uint32_t type, uint32_t root, int64_t timeout_ns, muster_error *error);

/** Gives every member a block of the array of every member.
 * @param[in]     group       Group.
 * @param[in]     input       Array of shape (size, count). NULL: in place.
 * @param[in,out] output      Array of shape (size, count): block s is block `rank` of the input of rank s.
 * @param[in]     count       Number of elements of a block, the same at all members.
 * @param[in]     type        A ::muster_type value.
 * @param[in]     timeout_ns  As in muster_group_run().
 * @param[out]    error       Detail on failure, or NULL.
 * @performed
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_group_all_to_all(muster_group *group, const void *input, void *output, uint64_t count,
                                                 uint32_t type, int64_t timeout_ns, muster_error *error);

/** Sends bytes to one member, in a group with ::MUSTER_GROUP_MESSAGES. It is no collective operation, and does not wait
 * for those. Messages to one member arrive in their order. Returns when the stream has accepted the bytes: up to 256
 * KiB of them wait there until the other member receives them.
 * @param[in]  group       Group.
 * @param[in]  rank        Rank of the other member.
 * @param[in]  data        The bytes; lent until the call returns.
 * @param[in]  data_bytes  Number of bytes, at most 2^62; 0 is a message.
 * @param[in]  timeout_ns  Maximum time, at least 1; -1: no limit. After it, the group has failed.
 * @param[out] error       Detail on failure, or NULL.
 * @performed
 * @retval MUSTER_E_UNSUPPORTED  The group was opened without ::MUSTER_GROUP_MESSAGES.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_group_send(muster_group *group, uint32_t rank, const void *data, uint64_t data_bytes,
                                           int64_t timeout_ns, muster_error *error);

/** Receives the next message of one member. A message that is larger than the destination can be received by a further
 * call after ::MUSTER_E_LIMIT, and the group is as it was.
 * @param[in]  group       Group.
 * @param[in]  rank        Rank of the other member.
 * @param[out] out_data    Destination of the bytes.
 * @param[in]  capacity    Size of the destination, in bytes.
 * @param[in]  timeout_ns  Maximum time, at least 1; -1: no limit. After it, the group has failed.
 * @param[out] out_bytes   Number of bytes of the message, also if it does not fit.
 * @param[out] error       Detail on failure, or NULL.
 * @performed
 * @retval MUSTER_E_UNSUPPORTED  The group was opened without ::MUSTER_GROUP_MESSAGES.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_group_receive(muster_group *group, uint32_t rank, void *out_data, uint64_t capacity,
                                              int64_t timeout_ns, uint64_t *out_bytes, muster_error *error);

/** What is known about a member; the value of muster_group_status::state. */
enum muster_group_member_state {
    MUSTER_GROUP_MEMBER_IDLE = 1,    /**< It is in no operation, as far as is known. */
    MUSTER_GROUP_MEMBER_ACTIVE = 2,  /**< It is in operation `sequence`. */
    MUSTER_GROUP_MEMBER_MISSING = 3, /**< This member is in a later operation than the last one in which that member was
                                          seen: it has not arrived. */
    MUSTER_GROUP_MEMBER_FAILED = 4   /**< It caused the failure of the group. */
};

/** The progress of a member. */
typedef struct muster_group_status {
    uint32_t state;         /**< A ::muster_group_member_state value. */
    uint32_t kind;          /**< ::muster_group_kind of its last operation that is known; 0: none. */
    uint64_t sequence;      /**< Number of that operation, from 1; 0: none. */
    uint32_t shares_memory; /**< 1: the group uses shared memory, and the values are current. 0: they are those of the
                                 last message from that member. */
    uint32_t reserved[3];   /**< Zero. */
} muster_group_status;

/** Reports the progress of a member, also while another thread waits in an operation. No message is sent.
 * @param[in]  group       Group.
 * @param[in]  rank        Rank of the member; its own is possible.
 * @param[out] out_status  Filled.
 * @filled
 * @retval MUSTER_E_ARG    A pointer is missing, or there is no such rank.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_group_get_status(muster_group *group, uint32_t rank, muster_group_status *out_status);

/** Ends the group at all members: their operations end with ::MUSTER_E_ABORTED, the rank of this member and the text.
 * @param[in] group       Group.
 * @param[in] text        Reason, for people; or NULL.
 * @param[in] text_bytes  Length of the text, at most 120 bytes.
 * @retval MUSTER_OK       Revoked, or it had failed before.
 * @retval MUSTER_E_ARG    No group, or a text that is too long.
 * @retval MUSTER_E_FORKED The group belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_group_revoke(muster_group *group, const char *text, size_t text_bytes);

/** Closes the group in order: waits until all members have called it, as a barrier does. Operations that were begun are
 * performed before.
 * @param[in]  group       Group.
 * @param[in]  timeout_ns  Maximum time, at least 1; -1: no limit.
 * @param[out] error       Detail on failure, or NULL.
 * @performed
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_group_close(muster_group *group, int64_t timeout_ns, muster_error *error);

/** Releases the handle. A group that was not closed fails at the other members, with the rank of this member. Threads
 * that wait in an operation return ::MUSTER_E_CLOSED.
 * @param[in] group  What to release; NULL has no effect.
 * @threads{any, finalizers included} @blocks{until an operation of another thread has noticed} @since 0.1 */
MUSTER_API void muster_group_release(muster_group *group);

#ifdef __cplusplus
}
#endif

#endif
