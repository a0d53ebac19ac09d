/* SPDX-License-Identifier: MIT */
/** @file
 * Store servers: one process keeps a store, and others open it by `tcp://host:port` or `unix:///path`.
 *
 * The server lives on its context's thread, for thousands of clients. Each proves the secret, and so does the server;
 * bytes that leave the host are sealed. A program of its own is `muster store --listen tcp://0.0.0.0:29400`.
 *
 * A client that is cut off comes again by itself, and goes on where it was: what it has asked is neither lost nor done
 * twice. See muster_store_open().
 *
 * A second server may stand by (muster_store_server_config::standby_of): it has what the first has acknowledged, and
 * takes over when that one ends. Clients name both, `tcp://a:29400,b:29400`, and go on there. */
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
    MUSTER_STORE_SERVER_NO_SYNC = 1, /**< With a data folder: what is acknowledged survives the end of the process, but
                                         perhaps not one of the machine. */
    MUSTER_STORE_SERVER_FORCE_STANDALONE =
        2, /**< You know that the other server of the pair is dead and stays so: serve what the
     data folder holds, without it. See muster_store_server_force_standalone(). */
    MUSTER_STORE_SERVER_REFUSED_IS_DEAD = 4 /**< You know that the network between the two refuses no connection by
                                                 itself, as firewalls do: a refused one shows that the other's process
                                                 has ended. On one host it always does. */
};

/** What a server does, in muster_store_server_stats::role. */
enum muster_store_server_role {
    MUSTER_STORE_SERVER_STANDALONE = 0,  /**< It serves, alone. */
    MUSTER_STORE_SERVER_PRIMARY = 1,     /**< It serves, and a standby has all it acknowledges. */
    MUSTER_STORE_SERVER_HALTED = 2,      /**< Its standby is lost, and may take over: it answers nothing until it is
                                              known what became of it. */
    MUSTER_STORE_SERVER_STANDBY = 3,     /**< It stands by, in sync. */
    MUSTER_STORE_SERVER_CATCHING_UP = 4, /**< It is to stand by, and is fed. */
    MUSTER_STORE_SERVER_WAITING = 5      /**< It looks for the other. */
};

/** How to serve a store; all zero means the defaults named here. */
typedef struct muster_store_server_config {
    uint32_t struct_size; /**< sizeof(muster_store_server_config) of the caller. */
    uint32_t flags;       /**< ::muster_store_server_flag values, or'ed. */
    const char *data_dir; /**< Folder the store is kept in, made if it is missing; NULL: the store lives in memory and
                               ends with the server. With a folder an answer goes out when what it tells of is on the
                               disk (fdatasync, once for all that comes meanwhile); a server that starts again goes on
                               with keys, queues, leases and its clients' sessions, and its clients with it. */
    uint64_t data_dir_bytes;   /**< Length of that name, at most 4000. */
    uint64_t max_bytes;        /**< Most bytes of keys and values in the store; a request that would exceed them is
                                     ::MUSTER_E_LIMIT. 0: 1 GiB. */
    int64_t session_ns;        /**< For so long a client that was cut off may come again, 1 s to 24 hours. 0: 60 s. */
    uint32_t max_clients;      /**< Clients at a time; further ones are refused. 0: 65536. */
    uint32_t reserved_field;   /**< Zero. */
    const char *standby_of;    /**< URL of the other server of a pair, which serves: this one stands by. NULL: this one
                                    serves, until the other has taken over. */
    uint64_t standby_of_bytes; /**< Length of that URL, at most 4096. */
    int64_t pair_lease_ns;     /**< As the one that serves: for so long a word of the standby lets it answer; a standby
                                    that hears nothing for a quarter more takes over. 0.1 s to 1 hour. 0: 3 s. */
} muster_store_server_config;

/** Figures of a server. */
typedef struct muster_store_server_stats {
    uint64_t clients;     /**< Connections now. */
    uint64_t sessions;    /**< Clients that are there or may come again. */
    uint64_t requests;    /**< Requests since the start. */
    uint64_t waiting;     /**< Requests that wait for something now. */
    uint64_t refused;     /**< Connections that broke the protocol, asked for too much or were too many. */
    uint64_t keys;        /**< Keys now. */
    uint64_t bytes;       /**< Bytes of keys and values, and what keeping them costs, about. */
    uint64_t leases;      /**< Leases now. */
    uint64_t revision;    /**< Number of the last change. */
    uint64_t failed;      /**< 1: it has stopped by itself, since the data folder could not be written. */
    uint64_t role;        /**< ::muster_store_server_role. */
    uint64_t epoch;       /**< Of a pair: rises with each server that takes over or goes on alone. */
    uint64_t lag;         /**< Changes and beats that the standby has not confirmed yet. */
    uint64_t reserved[1]; /**< Zero. */
} muster_store_server_stats;

/** Starts a server.
 * @param[in]  context     Its secret is what clients prove, its thread serves them; the server keeps it alive.
 * @param[in]  url         Where to listen: an address of tcp (port 29400 unless said otherwise; 0: any) or unix, with
 * the options that muster_transport_listen() knows. Without a host it is 127.0.0.1.
 * @param[in]  url_bytes   Length of the text, at most 4096.
 * @param[in]  config      Options; copied. NULL means all defaults.
 * @param[out] out_server  The server; the caller owns one reference.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK             It listens.
 * @retval MUSTER_E_ARG          A value is missing or out of range; the text names it.
 * @retval MUSTER_E_ABI          The config has non-zero fields newer than this library.
 * @retval MUSTER_E_ADDRESS      The URL cannot be understood; the text says where.
 * @retval MUSTER_E_UNSUPPORTED  Stores are not served over that transport.
 * @retval MUSTER_E_EXISTS       Somebody listens there already, or uses the data folder.
 * @retval MUSTER_E_NOT_FOUND    This host has no such address, or the folder of the socket is missing.
 * @retval MUSTER_E_UNREACHABLE  The name cannot be looked up.
 * @retval MUSTER_E_PERMISSION   The address may not be taken by this user.
 * @retval MUSTER_E_LIMIT        No descriptor left, or no room on the disk.
 * @retval MUSTER_E_NOMEM        No memory.
 * @retval MUSTER_E_CLOSED       The context is closed.
 * @retval MUSTER_E_FORKED       The context belongs to the parent process.
 * @retval MUSTER_E_SYSTEM       Another failure of the system, in the error; or the data folder is damaged.
 * @threads{any} @blocks{for the lookup of a name, and while the data folder is read} @since 0.1 */
MUSTER_API muster_status muster_store_server_open(muster_context *context, const char *url, size_t url_bytes,
                                                  const muster_store_server_config *config,
                                                  muster_store_server **out_server, muster_error *error);

/** Gives the URL clients open: with the real port, `tcp://127.0.0.1:29400`.
 * @param[in]  server     Server to ask.
 * @param[out] out_text   Where the text goes, NUL-terminated; NULL to learn the size only.
 * @param[in]  capacity   Room there, the terminator included.
 * @param[out] out_bytes  Length of the text, terminator not counted.
 * @retval MUSTER_OK        Written, or its size was.
 * @retval MUSTER_E_ARG     No server or no place for the size.
 * @retval MUSTER_E_LIMIT   The room is too small; out_bytes tells what is needed.
 * @retval MUSTER_E_FORKED  The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_server_address(muster_store_server *server, char *out_text, size_t capacity,
                                                     size_t *out_bytes);

/** Reads the figures of a server; of a closed one those of its end.
 * @param[in]  server     Server to ask.
 * @param[out] out_stats  Filled.
 * @retval MUSTER_OK        Filled.
 * @retval MUSTER_E_ARG     No server or no place.
 * @retval MUSTER_E_FORKED  The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_server_get_stats(muster_store_server *server,
                                                       muster_store_server_stats *out_stats);

/** Says that the other server of the pair is dead, and stays so: this one goes on without it. Needed where no server
 * can know: the host of a standby is gone, or that of both was and one comes back alone. If it is not so, both serve,
 * and what one of them acknowledges will be lost.
 * @param[in] server  The one that is to serve: one that has halted, stands by in sync, or waits with all there was.
 * Nothing happens with others; muster_store_server_stats::role tells.
 * @retval MUSTER_OK        It will, if it can.
 * @retval MUSTER_E_ARG     No server.
 * @retval MUSTER_E_CLOSED  It has stopped.
 * @retval MUSTER_E_FORKED  The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_server_force_standalone(muster_store_server *server);

/** Stops a server. Its standby takes over. Its clients are told; a store without a data folder is lost to them.
 * @param[in] server      Server to stop; the reference stays the caller's.
 * @param[in] timeout_ns  Longest wait; 0 only asks, -1 has no end.
 * @retval MUSTER_OK        It has stopped; also if it had before.
 * @retval MUSTER_AGAIN     It stops; the timeout was 0.
 * @retval MUSTER_TIMEOUT   It has not stopped in time, but will.
 * @retval MUSTER_E_ARG     No server.
 * @retval MUSTER_E_CANCELED  muster_context_cancel() was called meanwhile; it will stop.
 * @retval MUSTER_E_CLOSED  The server's handle was released meanwhile; it will stop.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called inside a callback of the engine's, with a timeout.
 * @retval MUSTER_E_FORKED  The context belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_store_server_close(muster_store_server *server, int64_t timeout_ns);

/** Begins to stop a server, as muster_store_server_close() does; ::MUSTER_DONE_CALL comes with its status.
 * @param[in]  server      Server to stop; the reference stays the caller's.
 * @param[in]  timeout_ns  Longest time; 0 only asks, -1 has no end.
 * @param[in]  queue       Where the completion appears; of the same context.
 * @param[in]  tag         Returned in muster_completion::tag.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK        Begun; ::MUSTER_DONE_CALL will come, perhaps before this call returns.
 * @retval MUSTER_AGAIN     No slot in the queue; not begun.
 * @retval MUSTER_E_ARG     No server or queue, or a queue of another context.
 * @retval MUSTER_E_NOMEM   No memory or no thread.
 * @retval MUSTER_E_CLOSED  The context or the queue is closed.
 * @retval MUSTER_E_FORKED  The server belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_store_server_close_begin(muster_store_server *server, int64_t timeout_ns,
                                                         muster_queue *queue, uint64_t tag, muster_error *error);

/** Gives up one reference; with the last one the server stops.
 * @param[in] server  What to release; NULL has no effect.
 * @threads{any, finalizers included} @blocks{no} @since 0.1 */
MUSTER_API void muster_store_server_release(muster_store_server *server);

#ifdef __cplusplus
}
#endif

#endif
