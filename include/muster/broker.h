/* SPDX-License-Identifier: MIT */
/** @file
 * Brokers: the middle of a star. Members connect to it and to nobody else, and reach each other through it.
 *
 * A broker needs a transport that has one; of ours that is `zmq://`. `muster broker` runs one as a program of its own;
 * here it runs on threads of its own inside this process. Members find it at its address: they listen at
 * `zmq://name@host:8100/` and dial `zmq://name@host:8100/`, from other contexts and processes or from this one.
 *
 * A broker keeps no bytes for anybody but what is on its way: for each pair of members at most the window. It takes
 * part in no stream, and does not look into them. It proves the context's secret to each member, and each member to it,
 * and encrypts (CURVE) with keys derived from the secret or given by a file, unless told otherwise.
 *
 * Brokers make a tree: one with a parent is a member of that, and what its own members do not know is looked for there.
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
    MUSTER_BROKER_OPEN = 1,    /**< Lets everybody in, without proof and without CURVE. Members say `curve=no`. */
    MUSTER_BROKER_NO_CURVE = 2 /**< Does not encrypt; members say `curve=no`. The secret is proved all the same. */
};

/** How to run a broker; all zero means the defaults named here.
 *
 * Keys of CURVE come from the secret, or from a file that only its owner has access to. Each of its lines is a word and
 * a key in Z85: `broker-secret`, the same for all brokers of a tree; `member-public` for each member that is let in;
 * for a broker with a parent also `member-secret`. A member names a file with `broker-public` and its `member-secret`
 * by `curve=/file` in an address or by MUSTER_CURVE_FILE. The variable counts in no set-uid program.
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
    const char *parent;     /**< Address of the broker above, `zmq://host:8100/`; NULL: there is none. */
    uint64_t parent_bytes;  /**< Length of that text. */
    uint64_t window_bytes;  /**< Most bytes on their way from one member to one other, 64 KiB to 1 GiB; 0: 1 MiB. The
                               same for all brokers of a tree. */
    uint32_t max_members;   /**< Members of this broker at a time; 0: 65536. */
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
    uint64_t members;      /**< Processes that are in now. */
    uint64_t brokers;      /**< Brokers below it now. */
    uint64_t has_parent;   /**< 1: connected to the broker above. */
    uint64_t names;        /**< Names taken now; known to the broker at the top alone. */
    uint64_t pairs;        /**< Pairs of members that have talked, and of which both are in; counted from each side. */
    uint64_t messages;     /**< Messages of members passed on, since the start. */
    uint64_t bytes;        /**< Bytes in them. */
    uint64_t queued_bytes; /**< Most bytes that can be on their way now: sent, and not said to be taken. */
    uint64_t connections;  /**< Connections now, those that are not members yet included. */
    uint64_t refused;      /**< Connections not let in, or thrown out for breaking the protocol. */
    uint64_t lost;         /**< Members and brokers that went without a word. */
    uint64_t multicasts;   /**< Messages that came once and were given to many members; each of those counts above. */
    uint64_t reserved[4];  /**< Zero. */
} muster_broker_stats;

/** Starts a broker on threads of its own; they end with it, and at the latest with the context.
 * @param[in]  context        Its secret is what members prove; its log gets the broker's records.
 * @param[in]  address        Where to listen: `zmq://127.0.0.1:8100/`; port 0 listens anywhere. A host of several
 *                            addresses listens on the one named; `zmq://0.0.0.0:8100/` on all.
 * @param[in]  address_bytes  Length of the text, at most 4096.
 * @param[in]  config         Options; copied. NULL means all defaults.
 * @param[out] out_broker     The broker; the caller owns one reference.
 * @param[out] error          Detail on failure, or NULL.
 * @retval MUSTER_OK             It listens.
 * @retval MUSTER_E_ARG          No context, address or place for the broker, or a value out of range.
 * @retval MUSTER_E_ABI          The config has non-zero fields that are newer than this library.
 * @retval MUSTER_E_ADDRESS      The address, or the parent's, is none of this kind.
 * @retval MUSTER_E_EXISTS       The port is taken.
 * @retval MUSTER_E_NOT_FOUND    There is no such file of keys.
 * @retval MUSTER_E_AUTH         The file of keys lacks one, or has some that do not belong together; or there is a
 *                               parent, but no broker secret, or the parent's address names another broker key.
 * @retval MUSTER_E_PERMISSION   The port may not be taken by this user, or others have access to the file of keys.
 * @retval MUSTER_E_UNREACHABLE  This host has no such address.
 * @retval MUSTER_E_UNSUPPORTED  The transport has no broker.
 * @retval MUSTER_E_LIMIT        Threads or descriptors ran out.
 * @retval MUSTER_E_NOMEM        Memory ran out.
 * @retval MUSTER_E_CLOSED       The context is closed.
 * @retval MUSTER_E_FORKED       The context belongs to the parent process.
 * @retval MUSTER_E_SYSTEM       Another system call failed, in the error.
 * @retval MUSTER_E_PLUGIN       The plug-in cannot be loaded, or failed; other negative statuses of
 * muster_plugin_find() and of the plug-in are passed on.
 * @threads{any} @blocks{while the plug-in is loaded, and for the lookup of a name} @since 0.1 */
MUSTER_API muster_status muster_broker_open(muster_context *context, const char *address, size_t address_bytes,
                                            const muster_broker_config *config, muster_broker **out_broker,
                                            muster_error *error);

/** Gives the address members use: the real port, `zmq://127.0.0.1:8100/`, and with a broker secret the options that
 * members need, `?broker=KEY` and `curve=no` where it applies. They put their name in front: `name@`.
 * @param[in]  broker     Broker to query.
 * @param[out] out_text   Destination of the text, NUL-terminated; NULL to get the size only.
 * @param[in]  capacity   Size of the destination, the terminator included.
 * @param[out] out_bytes  Length of the text, without the terminator.
 * @copied
 * @retval MUSTER_E_ARG     No broker or no place for the size.
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
 * @param[in] timeout_ns  Longest wait for that; 0 drops it, -1 means 10 s.
 * @retval MUSTER_OK        It has stopped; also if it had before.
 * @retval MUSTER_E_ARG     No broker.
 * @retval MUSTER_E_FORKED  The context belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns, and until its threads have ended} @since 0.1 */
MUSTER_API muster_status muster_broker_close(muster_broker *broker, int64_t timeout_ns);

/** Begins to stop a broker, as muster_broker_close() does; ::MUSTER_DONE_CALL comes when its threads have ended.
 * @param[in]  broker      Broker to stop; the caller keeps its reference.
 * @param[in]  timeout_ns  Longest time for what is on its way; 0 drops it, -1 means 10 s.
 * @param[in]  queue       Queue of the same context for the completion.
 * @param[in]  tag         Returned in muster_completion::tag.
 * @param[out] error       Detail on failure, or NULL.
 * @begun{::MUSTER_DONE_CALL}
 * @retval MUSTER_E_ARG     A value is missing or out of range, or the queue is of another context.
 * @retval MUSTER_E_NOMEM   Memory or threads ran out.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_broker_close_begin(muster_broker *broker, int64_t timeout_ns, muster_queue *queue,
                                                   uint64_t tag, muster_error *error);

/** Releases one reference; with the last one the broker is stopped, at once and not by this thread.
 * @param[in] broker  What to release; NULL has no effect.
 * @threads{any, finalizers included} @blocks{no} @since 0.1 */
MUSTER_API void muster_broker_release(muster_broker *broker);

#ifdef __cplusplus
}
#endif
#endif
