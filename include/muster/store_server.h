/* SPDX-License-Identifier: MIT */
/** @file
 * Store servers: one process holds a store, and other processes open it as `tcp://host:port` or `unix:///path`.
 *
 * The server runs on the thread of its context and serves thousands of clients. Each client proves the shared secret,
 * and so does the server; bytes that leave the host are sealed. The program `muster store --listen tcp://0.0.0.0:29400`
 * is such a server.
 *
 * A client whose connection breaks reconnects by itself and continues its session: its requests are neither lost nor
 * applied twice. See muster_store_open().
 *
 * A second server may be a standby (muster_store_server_config::standby_of): it holds everything that the primary
 * server has acknowledged, and takes over when the primary ends. Clients name both servers, `tcp://a:29400,b:29400`,
 * and continue at the one that serves. */
#ifndef MUSTER_STORE_SERVER_H
#define MUSTER_STORE_SERVER_H

#include <muster/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Opaque; made by muster_store_server_open(). */
typedef struct muster_store_server muster_store_server;

/** Flags of muster_store_server_config::flags. */
enum muster_store_server_flag {
    MUSTER_STORE_SERVER_NO_SYNC = 1,          /**< With a data folder: do not sync the disk before an answer. What was
                                                   acknowledged survives the end of the process, but perhaps not a crash of the
                                                   machine. */
    MUSTER_STORE_SERVER_FORCE_STANDALONE = 2, /**< The operator knows that the other server of the pair is dead and
                                                   stays so: serve what the data folder holds, without it. See
                                                   muster_store_server_force_standalone(). */
    MUSTER_STORE_SERVER_REFUSED_IS_DEAD = 4   /**< The operator knows that no device in the network between the two
                                                   servers, such as a firewall, refuses connections: a refused
                                                   connection therefore shows that the process of the other server
                                                   has ended. On one host that is always so. */
};

/** The role of a server; the value of muster_store_server_stats::role. */
enum muster_store_server_role {
    MUSTER_STORE_SERVER_STANDALONE = 0,  /**< It serves, without a standby. */
    MUSTER_STORE_SERVER_PRIMARY = 1,     /**< It serves, and its standby holds everything that it acknowledges. */
    MUSTER_STORE_SERVER_HALTED = 2,      /**< It has lost its standby, which may take over: it answers nothing until the
                                              state of the standby is known. */
    MUSTER_STORE_SERVER_STANDBY = 3,     /**< It is a standby, in sync. */
    MUSTER_STORE_SERVER_CATCHING_UP = 4, /**< It will be a standby, and receives the content of the store. */
    MUSTER_STORE_SERVER_WAITING = 5      /**< It tries to reach the other server. */
};

/** How to serve a store; all zero means the defaults named here. */
typedef struct muster_store_server_config {
    uint32_t struct_size; /**< sizeof(muster_store_server_config) of the caller. */
    uint32_t flags;       /**< ::muster_store_server_flag values, or'ed. */
    const char *data_dir; /**< Folder in which the store is kept; it is made if it is missing. NULL: the store is kept
                             in memory and ends with the server. With a folder, an answer is sent when the change that
                             it reports is on the disk (one fdatasync for all changes that arrive meanwhile), and a
                             server that is restarted continues with its keys, queues, leases and client sessions. */
    uint64_t data_dir_bytes;   /**< Length of the folder's name, at most 4000. */
    uint64_t max_bytes;        /**< Maximum bytes of keys and values in the store; a request that would exceed them ends
                                    with ::MUSTER_E_LIMIT. 0: 1 GiB. */
    int64_t session_ns;        /**< How long the session of a disconnected client is kept, 1 s to 24 hours. 0: 60 s. */
    uint32_t max_clients;      /**< Maximum number of clients at a time; further ones are refused. 0: 65536. */
    uint32_t reserved_field;   /**< Zero. */
    const char *standby_of;    /**< URL of the other server of a pair, which serves: this server is its standby. NULL:
                                    this server serves, until the other one has taken over. */
    uint64_t standby_of_bytes; /**< Length of that URL, at most 4096. */
    int64_t pair_lease_ns;     /**< For the primary: how long it may answer after the last message of its standby. A
                                    standby that receives nothing for a quarter longer takes over. 0.1 s to 1 hour. 0:
                                    3 s. */
} muster_store_server_config;

/** Counters and state of a server. */
typedef struct muster_store_server_stats {
    uint64_t clients;     /**< Open connections. */
    uint64_t sessions;    /**< Sessions of connected clients, and of disconnected ones that may reconnect. */
    uint64_t requests;    /**< Requests since the start. */
    uint64_t waiting;     /**< Requests that wait for a value or an event. */
    uint64_t refused;     /**< Connections that were refused for breaking the protocol, for asking too much, or because
                               there were too many. */
    uint64_t keys;        /**< Keys in the store. */
    uint64_t bytes;       /**< Bytes of keys and values, and of the memory that keeping them costs; approximate. */
    uint64_t leases;      /**< Leases in the store. */
    uint64_t revision;    /**< Revision of the last change. */
    uint64_t failed;      /**< 1: the server has stopped by itself because the data folder could not be written. */
    uint64_t role;        /**< A ::muster_store_server_role value. */
    uint64_t epoch;       /**< For a pair: increases each time that a server takes over or continues standalone. */
    uint64_t lag;         /**< Changes and heartbeats that the standby has not confirmed yet. */
    uint64_t reserved[1]; /**< Zero. */
} muster_store_server_stats;

/** Starts a server.
 * @param[in]  context     Clients prove the secret of this context, and its thread serves them; the server keeps it
 *                         alive.
 * @param[in]  url         Where to listen: an address of tcp (default port 29400; 0: any free port) or unix, with the
 *                         options of muster_transport_listen(). Without a host it is 127.0.0.1.
 * @param[in]  url_bytes   Length of the text, at most 4096.
 * @param[in]  config      Options; copied. NULL means all defaults.
 * @param[out] out_server  The server; the caller owns one reference.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK             The server listens.
 * @bad_config
 * @retval MUSTER_E_ADDRESS      The URL cannot be parsed; the error says where.
 * @retval MUSTER_E_UNSUPPORTED  Stores cannot be served over that transport.
 * @retval MUSTER_E_EXISTS       The address is in use, or another process uses the data folder.
 * @retval MUSTER_E_NOT_FOUND    This host has no such address, or the folder of the socket is missing.
 * @retval MUSTER_E_UNREACHABLE  The name of the host cannot be resolved.
 * @retval MUSTER_E_PERMISSION   This user may not listen at the address.
 * @retval MUSTER_E_LIMIT        No descriptor is left, or the disk is full.
 * @retval MUSTER_E_NOMEM        Memory ran out.
 * @retval MUSTER_E_CLOSED       The context is closed.
 * @retval MUSTER_E_FORKED       The context belongs to the parent process.
 * @retval MUSTER_E_SYSTEM       Another system call failed, see the error; or the data folder is damaged.
 * @threads{any} @blocks{to resolve a name, and while the data folder is read} @since 0.1 */
MUSTER_API muster_status muster_store_server_open(muster_context *context, const char *url, size_t url_bytes,
                                                  const muster_store_server_config *config,
                                                  muster_store_server **out_server, muster_error *error);

/** Copies the URL that clients open, with the actual port: `tcp://127.0.0.1:29400`.
 * @param[in]  server     Server to query.
 * @param[out] out_text   Destination of the text, NUL-terminated; NULL to get the size only.
 * @param[in]  capacity   Size of the destination, the terminator included.
 * @param[out] out_bytes  Length of the text, without the terminator.
 * @copied
 * @retval MUSTER_E_ARG     No server, or no destination for the size.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_server_address(muster_store_server *server, char *out_text, size_t capacity,
                                                     size_t *out_bytes);

/** Reads the counters and the state of a server; those of a closed server are the last ones.
 * @param[in]  server     Server to query.
 * @param[out] out_stats  Filled.
 * @filled
 * @retval MUSTER_E_ARG     No server or no destination.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_server_get_stats(muster_store_server *server,
                                                       muster_store_server_stats *out_stats);

/** Declares that the other server of the pair is dead and stays so: this server continues without it. This is necessary
 * where no server can know it: the host of a standby is gone, or the hosts of both were and one of them has returned
 * alone. If the declaration is wrong, both servers serve, and what one of them acknowledges will be lost.
 * @param[in] server  The server that is to serve: one that has halted, is a standby in sync, or waits and holds the
 *                    complete store. The call has no effect on others; see muster_store_server_stats::role.
 * @retval MUSTER_OK        The server will serve if it can.
 * @retval MUSTER_E_ARG     server is NULL.
 * @retval MUSTER_E_CLOSED  The server has stopped.
 * @retval MUSTER_E_FORKED  The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_server_force_standalone(muster_store_server *server);

/** Stops a server. Its standby takes over. Its clients are notified; for them a store without a data folder is lost.
 * @param[in] server      Server to stop; the caller keeps its reference.
 * @param[in] timeout_ns  Maximum wait; 0 does not wait, -1: no limit.
 * @retval MUSTER_OK        The server has stopped, now or before.
 * @retval MUSTER_AGAIN     The server is stopping; the timeout was 0.
 * @retval MUSTER_TIMEOUT   The server has not stopped in time, but will.
 * @retval MUSTER_E_ARG     server is NULL.
 * @retval MUSTER_E_CANCELED  muster_context_cancel() was called during the wait; the server will stop.
 * @retval MUSTER_E_CLOSED  The handle was released during the wait; the server will stop.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called inside a callback of the engine, with a timeout.
 * @retval MUSTER_E_FORKED  The context belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_store_server_close(muster_store_server *server, int64_t timeout_ns);

/** Begins to stop a server, as muster_store_server_close() does; ::MUSTER_DONE_CALL has its status.
 * @param[in]  server      Server to stop; the caller keeps its reference.
 * @param[in]  timeout_ns  Maximum time; 0 does not wait, -1: no limit.
 * @param[in]  queue       Queue of the same context for the completion.
 * @param[in]  tag         Returned in muster_completion::tag.
 * @param[out] error       Detail on failure, or NULL.
 * @begun{::MUSTER_DONE_CALL}
 * @retval MUSTER_E_ARG     No server or queue, or a queue of another context.
 * @retval MUSTER_E_NOMEM   Memory or threads ran out.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_server_close_begin(muster_store_server *server, int64_t timeout_ns,
                                                         muster_queue *queue, uint64_t tag, muster_error *error);

/** Releases one reference; the server stops with the last one.
 * @param[in] server  What to release; NULL has no effect.
 * @threads{any, finalizers included} @blocks{no} @since 0.1 */
MUSTER_API void muster_store_server_release(muster_store_server *server);

#ifdef __cplusplus
}
#endif

#endif
