/* SPDX-License-Identifier: MIT */
/** @file
 * Brokers: the centre of a star. Members connect to the broker only, and reach each other through it.
 *
 * A broker needs a transport that supports it; of the transports of Muster that is `zmq://`. `muster broker` is a
 * broker as a program; these functions run one on threads of its own inside this process. Members know it by its
 * address: they listen at `zmq://name@host:8100/` and dial `zmq://name@host:8100/`, from other contexts and processes
 * or from this one.
 *
 * A broker stores only bytes in transit: for each pair of members at most the window. It is not an end of any stream,
 * and does not read them. It proves the secret of the context to each member, and each member proves it to the broker.
 * By default it encrypts (CURVE) with keys that are derived from the secret or read from a file.
 *
 * Brokers form a tree: a broker with a parent is a member of that one, and searches there for names that its own
 * members do not have.
 */
#ifndef MUSTER_BROKER_H
#define MUSTER_BROKER_H

#include <muster/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Opaque; made by muster_broker_open(). */
typedef struct muster_broker muster_broker;

/** Flags of muster_broker_config::flags. */
enum muster_broker_flag {
    MUSTER_BROKER_OPEN = 1,    /**< Admits every process, without proof and without CURVE. Members use `curve=no`. */
    MUSTER_BROKER_NO_CURVE = 2 /**< Does not encrypt; members use `curve=no`. The secret is still proved. */
};

/** How to run a broker; all zero means the defaults named here.
 *
 * Keys of CURVE come from the secret, or from a file that only its owner has access to. Each of its lines is a word and
 * a key in Z85: `broker-secret`, the same for all brokers of a tree; `member-public` for each member that is admitted;
 * for a broker with a parent also `member-secret`. A member names a file with `broker-public` and its `member-secret`
 * by `curve=/file` in an address or by MUSTER_CURVE_FILE. Set-uid programs ignore the variable.
 *
 * A broker secret makes brokers a role of their own. The key pair that the broker proves is then derived from the
 * broker secret, which members do not have, and the address that muster_broker_address() returns contains the public
 * key: `zmq://host:8100/?broker=KEY`. A member with that address connects to a broker that proves this key and to no
 * other process, also if that process has the secret. All brokers of a tree, their replacements and a restarted broker
 * have the same broker secret, and so the same key. A broker accepts brokers below it only if they prove the broker
 * secret. Without a broker secret every process that has the secret can serve as the broker of its members. */
typedef struct muster_broker_config {
    uint32_t struct_size;   /**< sizeof(muster_broker_config) of the caller. */
    uint32_t flags;         /**< ::muster_broker_flag values, or'ed. */
    const char *parent;     /**< Address of the parent broker, `zmq://host:8100/`; NULL: none. */
    uint64_t parent_bytes;  /**< Length of that text. */
    uint64_t window_bytes;  /**< Maximum bytes in transit from one member to another, 64 KiB to 1 GiB; 0: 1 MiB. It
                               must be the same for all brokers of a tree. */
    uint32_t max_members;   /**< Maximum number of members of this broker at a time; 0: 65536. */
    uint32_t reserved;      /**< Zero. */
    const char *curve_file; /**< Name of a file of CURVE keys; NULL: the one that MUSTER_CURVE_FILE names, or none. The
                               secret is proved all the same. */
    uint64_t curve_file_bytes; /**< Length of that name, at most 4095. */
    const void *broker_secret; /**< The broker secret, 16 to 1024 bytes; copied. NULL: MUSTER_BROKER_SECRET_FILE names a
                                  file with it (not readable by others), or else MUSTER_BROKER_SECRET holds it; neither:
                                  there is none. A set-uid program ignores the variables. It excludes curve_file, which
                                  has the key. */
    uint64_t broker_secret_bytes; /**< Length of the broker secret. */
} muster_broker_config;

/** Counters of a broker. */
typedef struct muster_broker_stats {
    uint64_t members;      /**< Processes that are members. */
    uint64_t brokers;      /**< Brokers below this one. */
    uint64_t has_parent;   /**< 1: connected to the parent broker. */
    uint64_t names;        /**< Names in use; known to the root broker only. */
    uint64_t pairs;        /**< Pairs of current members that have exchanged messages; counted from each side. */
    uint64_t messages;     /**< Messages of members that were forwarded, since the start. */
    uint64_t bytes;        /**< Bytes in them. */
    uint64_t queued_bytes; /**< Upper bound of the bytes in transit: sent, and not acknowledged. */
    uint64_t connections;  /**< Open connections, including those that are not members yet. */
    uint64_t refused;      /**< Connections that were refused, or closed for breaking the protocol. */
    uint64_t lost;         /**< Members and brokers whose connection ended without a goodbye. */
    uint64_t multicasts;   /**< Messages that were received once and delivered to many members; each delivery also
                                counts above. */
    uint64_t reserved[4];  /**< Zero. */
} muster_broker_stats;

/** Starts a broker on threads of its own; they end with it, and at the latest with the context.
 * @param[in]  context        Members prove its secret; its log gets the records of the broker.
 * @param[in]  address        Where to listen: `zmq://127.0.0.1:8100/`; port 0 is any free port. On a host with
 *                            several addresses it listens at the given one; at `zmq://0.0.0.0:8100/` at all.
 * @param[in]  address_bytes  Length of the text, at most 4096.
 * @param[in]  config         Options; copied. NULL means all defaults.
 * @param[out] out_broker     The broker; the caller owns one reference.
 * @param[out] error          Detail on failure, or NULL.
 * @retval MUSTER_OK             The broker listens.
 * @retval MUSTER_E_ARG          No context, address or destination for the broker, or a value out of range.
 * @retval MUSTER_E_ABI          The config has non-zero fields that are newer than this library.
 * @retval MUSTER_E_ADDRESS      The address, or the parent's, is not of this kind.
 * @retval MUSTER_E_EXISTS       The port is in use.
 * @retval MUSTER_E_NOT_FOUND    The file of keys does not exist.
 * @retval MUSTER_E_AUTH         The file of keys lacks one, or has some that do not belong together; or there is a
 *                               parent, but no broker secret, or the parent's address names another broker key.
 * @retval MUSTER_E_PERMISSION   This user may not use the port, or others have access to the file of keys.
 * @retval MUSTER_E_UNREACHABLE  This host has no such address.
 * @retval MUSTER_E_UNSUPPORTED  The transport has no broker.
 * @retval MUSTER_E_LIMIT        Threads or descriptors ran out.
 * @retval MUSTER_E_NOMEM        Memory ran out.
 * @retval MUSTER_E_CLOSED       The context is closed.
 * @retval MUSTER_E_FORKED       The context belongs to the parent process.
 * @retval MUSTER_E_SYSTEM       Another system call failed, in the error.
 * @retval MUSTER_E_PLUGIN       The plug-in cannot be loaded, or failed; other negative statuses of
 *                               muster_plugin_find() and of the plug-in are passed on.
 * @threads{any} @blocks{while the plug-in is loaded, and for the lookup of a name} @since 0.1 */
MUSTER_API muster_status muster_broker_open(muster_context *context, const char *address, size_t address_bytes,
                                            const muster_broker_config *config, muster_broker **out_broker,
                                            muster_error *error);

/** Copies the address that members use: with the actual port, `zmq://127.0.0.1:8100/`, and with a broker secret the
 * options that members need, `?broker=KEY` and `curve=no` where it applies. They put their name before the host:
 * `name@`.
 * @param[in]  broker     Broker to query.
 * @param[out] out_text   Destination of the text, NUL-terminated; NULL to get the size only.
 * @param[in]  capacity   Size of the destination, the terminator included.
 * @param[out] out_bytes  Length of the text, without the terminator.
 * @copied
 * @retval MUSTER_E_ARG     No broker or no destination for the size.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_broker_address(muster_broker *broker, char *out_text, size_t capacity,
                                               size_t *out_bytes);

/** Reads the counters of a broker; of a closed one those of its end.
 * @param[in]  broker     Broker to query.
 * @param[out] out_stats  Filled.
 * @filled
 * @retval MUSTER_E_ARG     No broker or no destination.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_broker_get_stats(muster_broker *broker, muster_broker_stats *out_stats);

/** Stops a broker and closes the connections of its members. Data that the broker has queued for a member is still sent
 * if the member reads it within timeout_ns.
 * @param[in] broker      Broker to stop; the caller keeps its reference.
 * @param[in] timeout_ns  Maximum wait for that; 0 drops it, -1 means 10 s.
 * @retval MUSTER_OK        The broker has stopped, now or before.
 * @retval MUSTER_E_ARG     No broker.
 * @retval MUSTER_E_FORKED  The context belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns, and until its threads have ended} @since 0.1 */
MUSTER_API muster_status muster_broker_close(muster_broker *broker, int64_t timeout_ns);

/** Begins to stop a broker, as muster_broker_close() does; ::MUSTER_DONE_CALL follows when its threads have ended.
 * @param[in]  broker      Broker to stop; the caller keeps its reference.
 * @param[in]  timeout_ns  Maximum time for queued data; 0 drops it, -1 means 10 s.
 * @param[in]  queue       Queue of the same context for the completion.
 * @param[in]  tag         Returned in muster_completion::tag.
 * @param[out] error       Detail on failure, or NULL.
 * @begun{::MUSTER_DONE_CALL}
 * @retval MUSTER_E_ARG     A value is missing or out of range, or the queue is of another context.
 * @retval MUSTER_E_NOMEM   Memory or threads ran out.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_broker_close_begin(muster_broker *broker, int64_t timeout_ns, muster_queue *queue,
                                                   uint64_t tag, muster_error *error);

/** Releases one reference; with the last one the broker is stopped at once, by another thread.
 * @param[in] broker  What to release; NULL has no effect.
 * @threads{any, finalizers included} @blocks{no} @since 0.1 */
MUSTER_API void muster_broker_release(muster_broker *broker);

#ifdef __cplusplus
}
#endif
#endif
