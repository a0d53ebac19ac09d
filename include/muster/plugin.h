/* SPDX-License-Identifier: MIT */
/** @file
 * Plug-ins: transports and stores in a shared object of their own, loaded when an address or a store's URL asks for
 * them.
 *
 * For hosts there are two functions: muster_plugin_load() takes a file, muster_plugin_find() looks for the one that
 * serves a scheme. Dialling, listening and opening a store do the latter by themselves. The plug-in for `mine://` is a
 * file `muster-mine.so`, looked for in each folder of MUSTER_PLUGIN_PATH (not in set-uid programs), then in
 * `<libdir>/muster/<major>/`. The file is loaded into the process once and never unloaded; each context makes its own
 * use of it.
 *
 * For authors: a plug-in links to nothing of Muster. It exports one function, ::muster_plugin_v1_fn by type and
 * `muster_plugin_v1` by name, which is called once per context with the host table and registers schemes. Two contexts
 * may call it, and its operations, at the same time: what is static in it needs care. Every struct begins with
 * `struct_size`; it grows at its end, and a reader looks at the size before it touches a member.
 *
 * There are two shapes. A *connections* plug-in makes byte connections: dial, listen, send, deliver. A *fabric* plug-in
 * has one endpoint per process and sends whole messages to numbered peers, like MPI or a star. Either way the library
 * runs its own protocol inside: both sides prove the secret, bytes that leave the host are sealed, heartbeats and
 * credits flow, streams half-close and abort, and over a fabric many streams share a peer. A plug-in only moves bytes.
 *
 * Rules for every operation of a plug-in: it runs on the loop thread of its context, never two at once, so it needs no
 * locks; it must not block (a log record names the plug-in and a function that is inside for more than a second); it
 * must not unwind; it may call the host table, which never calls an operation before the
 * running one has returned. Functions of the host table belong to the loop thread too, except where it says "any
 * thread". Inside `muster_plugin_v1` itself only log, derive, add_connections, add_fabric and add_store may be called.
 */
#ifndef MUSTER_PLUGIN_H
#define MUSTER_PLUGIN_H

#include <muster/broker.h>
#include <muster/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

struct muster_store_host_ops; /* of store_serve.h, for plug-ins that bring a store */
struct muster_store_traits;
struct muster_store_entry;

/** Opaque; the library's side of one connection. Good until the plug-in's close or abort for it is called. */
typedef struct muster_link muster_link;
/** Opaque; the library's side of one listener of a connections plug-in. Good until unlisten is called. */
typedef struct muster_acceptor muster_acceptor;
/** Opaque; the library's side of a fabric's endpoint. Good until stop is called. */
typedef struct muster_endpoint muster_endpoint;
/** Opaque; a watched descriptor, from muster_host::watch_fd. */
typedef struct muster_watch muster_watch;
/** Opaque; a running timer, from muster_host::start_timer. */
typedef struct muster_timer muster_timer;

/** One piece of memory to send; borrowed for the call. */
typedef struct muster_span {
    const void *data;    /**< First byte. */
    uint64_t size_bytes; /**< Length, at least 1. */
} muster_span;

/** Memory this process shares with one peer on the same host, and a doorbell for each side. What is written there by
 * the peer must be read as hostile: copy an index, check it, then use the copy. Good until the connection is closed or
 * the peer forgotten; the library unmaps it and closes both descriptors then. */
typedef struct muster_segment {
    uint32_t struct_size; /**< sizeof(muster_segment) of the library. */
    uint32_t side;        /**< 0 on the side that asked for it, 1 on the other. */
    void *data;           /**< First byte, page-aligned; zero at first. */
    uint64_t size_bytes;  /**< Its size as asked for, rounded up to whole pages. */
    int32_t own_event;    /**< An eventfd the peer writes to call this side; watch it, read it. */
    int32_t peer_event;   /**< An eventfd to write to call the peer. */
} muster_segment;

/** Memory that a message came in, lent to the library by muster_host::message_lent. */
typedef struct muster_loan {
    uint64_t size_bytes; /**< What is kept busy by it: all of the memory, not the message alone. */
    /** Ends the loan: nothing of the memory is read any more. Called exactly once for each message that is lent, on any
     * thread, perhaps before message_lent returns, perhaps after stop; it must not wait or call Muster. NULL: the
     * memory is a segment of muster_host::acquire_buffer, and the library gives it back. */
    void (*release)(void *memory, void *hint);
    void *memory; /**< First argument of release; or the segment. */
    void *hint;   /**< Second argument of release. */
} muster_loan;

/** Flags of muster_connections_ops::flags and muster_fabric_ops::flags. */
enum muster_plugin_flag {
    MUSTER_PLUGIN_LOCAL =
        1, /**< Bytes never leave this host: they are not sealed unless the context or address says so. */
    MUSTER_PLUGIN_SEALS = 2, /**< Encrypts by itself with keys from muster_host::derive: not sealed a second time. */
    MUSTER_PLUGIN_OPTIONS =
        4, /**< Fabric: options of an address that are not of the library are passed on behind the authority, as
                `authority?key=value&key=value`; without the flag they are refused. */
    MUSTER_PLUGIN_UPGRADES = 8 /**< Fabric: a stream between two processes of one user on one host is a link of shared
                                      memory, which the two make when they have met over the fabric, unless one of
                                      them says `upgrade=no`; one that cannot be made goes over the fabric. */
};

/** What a descriptor is watched for, and what it has become. */
enum muster_plugin_event {
    MUSTER_PLUGIN_READABLE = 1, /**< Can be read without waiting, or its end or failure can. */
    MUSTER_PLUGIN_WRITABLE = 2, /**< Can be written without waiting, or its failure can be learned so. */
    MUSTER_PLUGIN_HANGUP = 4    /**< The other side is gone; reported even if not asked for, where the system tells. */
};

/** What a connections plug-in does. Registered by muster_host::add_connections; the table must outlive the process.
 * `self` is the value given there; `connection` and `listener` are values of the plug-in's own. */
typedef struct muster_connections_ops {
    uint32_t struct_size; /**< sizeof(muster_connections_ops) of the plug-in. */
    uint32_t flags;       /**< ::muster_plugin_flag values, or'ed. */

    /** Gets ready. Called once, before any other operation and only when the scheme is first used. May be NULL.
     * MUSTER_OK, or a failure, which fails every dial and listen of the scheme with the same error. */
    muster_status (*start)(void *self, muster_error *error);

    /** Ends: every connection and listener is closed, `self` is not used any more. Called once, last of all, for each
     * scheme that was registered, also if it was never started. Watches and timers still running end by themselves. May
     * be NULL. */
    void (*stop)(void *self);

    /** Begins to connect to an address (`scheme://...`, options of of the library taken out). On MUSTER_OK the
     * connection exists in *out_connection, and the plug-in calls muster_host::connected or muster_host::lost once,
     * now or later. MUSTER_E_ADDRESS, MUSTER_E_UNREACHABLE, ... fail the dial at once; nothing else is called then. */
    muster_status (*dial)(void *self, const char *address, uint64_t address_bytes, muster_link *link,
                          void **out_connection, muster_error *error);

    /** Listens at an address. On MUSTER_OK *out_listener is the plug-in's own, and the text peers dial has been written
     * to out_address (capacity 4096 bytes) with its length. Each connection that comes in is told by
     * muster_host::accepted. MUSTER_E_EXISTS: in use. */
    muster_status (*listen)(void *self, const char *address, uint64_t address_bytes, muster_acceptor *acceptor,
                            void **out_listener, char *out_address, uint64_t *out_address_bytes, muster_error *error);

    /** Stops listening; the address is free when it returns. Called once per listener. Its connections live on. */
    void (*unlisten)(void *self, void *listener);

    /** Takes bytes to be sent in order, as many as can be taken now without waiting: *out_bytes of the spans, from the
     * front, copied or sent when it returns. MUSTER_OK: all. MUSTER_AGAIN: fewer; muster_host::writable is called when
     * more can be taken. A failure: the connection is lost; the library closes it. At most 16 spans, 512 KiB. */
    muster_status (*send)(void *connection, const muster_span *spans, uint32_t span_count, uint64_t *out_bytes);

    /** muster_host::deliver had taken fewer bytes than given and takes more again: deliver what was kept, go on. */
    void (*resume)(void *connection);

    /** No more bytes will be sent; all accepted ones still have to arrive, and the peer may still send. Called at most
     * once. May be NULL: the library's frames tell the peer anyway. */
    void (*finish)(void *connection);

    /** The other side has proved the secret. Called at most once; muster_host::share_segment works from now on. May be
     * NULL. */
    void (*authenticated)(void *connection);

    /** Answers muster_host::share_segment, or tells that the other side asked: shared memory with the peer, or NULL
     * with the status if that cannot be (another host, refused). May be NULL: then the other side is refused. */
    void (*segment_shared)(void *connection, const muster_segment *segment, muster_status status);

    /** Closes: accepted bytes still go out, for up to 10 s, then the connection is freed. Exactly one of close and
     * abort is called, once, last, for each connection, also for one that was lost. No host call with its link
     * afterwards. */
    void (*close)(void *connection);

    /** Closes at once and drops what was not sent; frees the connection. */
    void (*abort)(void *connection);
} muster_connections_ops;

/** What a plug-in does whose fabric hangs on a broker: muster_broker_open() and the rest of broker.h. Unlike all else
 * these run on the threads of their callers, any number at a time for different brokers, one at a time for one. */
typedef struct muster_broker_ops {
    uint32_t struct_size; /**< sizeof(muster_broker_ops) of the plug-in. */
    uint32_t reserved;    /**< Zero. */

    /** Starts a broker. `self` is the fabric's, which need not be started, and is not stopped before the broker is
     * closed. Writes the authority members use to out_authority (capacity 1024 bytes) with its length. */
    muster_status (*open)(void *self, const char *authority, uint64_t authority_bytes,
                          const muster_broker_config *config, void **out_broker, char *out_authority,
                          uint64_t *out_authority_bytes, muster_error *error);

    /** Reads its figures. */
    void (*stats)(void *broker, muster_broker_stats *out_stats);

    /** Stops it, waiting for so many nanoseconds at most for what is on its way, and frees it. Called once. */
    void (*close)(void *broker, int64_t timeout_ns);
} muster_broker_ops;

/** What a fabric plug-in does. Registered by muster_host::add_fabric; the table must outlive the process.
 * A peer is a number of the plug-in's choosing for one incarnation of one process: when a process dies and another
 * takes its place or name, that one is another number. Addresses are `scheme://authority/service?options`: the
 * authority says which process, the library looks the service up there. */
typedef struct muster_fabric_ops {
    uint32_t struct_size;   /**< sizeof(muster_fabric_ops) of the plug-in. */
    uint32_t flags;         /**< ::muster_plugin_flag values, or'ed. */
    uint64_t message_bytes; /**< Largest message send takes, 1 KiB to 1 MiB; 0: 256 KiB. */
    uint64_t credit_bytes;  /**< Bytes that may be sent to a new peer before muster_host::credit grants more, at least
                                 message_bytes; 0: no credits, send answers MUSTER_AGAIN when it is full. */

    /** Opens the endpoint. Called once, before any other operation and only when the scheme is first used. Messages may
     * be delivered from now on. MUSTER_OK, or a failure, which fails every dial and listen of the scheme. */
    muster_status (*start)(void *self, muster_endpoint *endpoint, muster_error *error);

    /** Closes the endpoint: messages accepted are still sent if that needs no waiting; `self` is not used any more.
     * Called once, last of all, for each scheme that was registered, also if it was never started. */
    void (*stop)(void *self);

    /** Makes this process reachable by an authority (may be empty: any name will do), and writes the one peers dial to
     * out_authority (capacity 1024 bytes) with its length, behind a `?` with the options they need. Called for each
     * listener. MUSTER_AGAIN:
     * muster_host::published will be called with this request's number, once, later. MUSTER_E_EXISTS: taken by
     * another process. MUSTER_E_UNREACHABLE: whoever keeps the names cannot be asked now. */
    muster_status (*publish)(void *self, const char *authority, uint64_t authority_bytes, uint64_t request,
                             char *out_authority, uint64_t *out_authority_bytes, muster_error *error);

    /** A listener made reachable by publish is closed; authority is the text publish wrote. May be NULL. */
    void (*withdraw)(void *self, const char *authority, uint64_t authority_bytes);

    /** Finds the peer behind an authority. MUSTER_OK: it is *out_peer. MUSTER_AGAIN: muster_host::resolved will be
     * called with this request's number, once, later. MUSTER_E_UNREACHABLE: nobody of that name. */
    muster_status (*resolve)(void *self, const char *authority, uint64_t authority_bytes, uint64_t request,
                             uint64_t *out_peer, muster_error *error);

    /** Sends one message, whole and in order with others to the same peer; copied or sent when it returns. MUSTER_OK,
     * or MUSTER_AGAIN: full; muster_host::ready is called when it may be tried again (not needed with credits: the
     * library keeps within them). A failure: the peer is lost; the library tells its streams. At most 16 spans. */
    muster_status (*send)(void *self, uint64_t peer, const muster_span *spans, uint32_t span_count);

    /** The peer has proved the secret. Called at most once per peer; muster_host::share_segment_with_peer works from
     * now on. May be NULL. */
    void (*authenticated)(void *self, uint64_t peer);

    /** Answers muster_host::share_segment_with_peer, or tells that the other side asked: shared memory with the peer,
     * or NULL with the status if that cannot be (another host, refused). May be NULL: then the other side is refused.
     */
    void (*segment_shared)(void *self, uint64_t peer, const muster_segment *segment, muster_status status);

    /** The library has nothing more to do with a peer: it was lost, or its last stream ended long ago, or it failed to
     * prove the secret. Free what was kept for it; a message that comes later makes it known anew. Called once per
     * peer that was resolved, has sent or was reported lost. */
    void (*forget)(void *self, uint64_t peer);

    uint64_t headroom_bytes; /**< For send_buffer: bytes in front of each message that the plug-in may write to, at
                                  most 4096. */

    /** As send, without a copy: the message is size_bytes at offset_bytes, at least headroom_bytes, of a segment, which
     * becomes the plug-in's on MUSTER_OK; it goes back with muster_host::release_buffer when it was sent. The bytes
     * behind the message are the plug-in's then, too. Messages that do not end their segment still come by send. May be
     * NULL: all come by send. */
    muster_status (*send_buffer)(void *self, uint64_t peer, void *segment, uint64_t offset_bytes, uint64_t size_bytes);

    const muster_broker_ops *broker; /**< The broker of this fabric; NULL: it has none. */

    /** As send_buffer, of one message to 1 to 256 different peers, for a fabric that can carry it once and give it to
     * each, in order with others to the same peer; on the other side it comes by muster_host::message_multicast.
     * offset_bytes is at least headroom_bytes + 8 * peer_count. MUSTER_AGAIN: nobody gets it, and muster_host::ready is
     * called for one that was full. MUSTER_E_UNSUPPORTED: not for these together. After that, and any other failure,
     * nobody gets it, and the library sends to each. May be NULL. */
    muster_status (*send_multicast)(void *self, const uint64_t *peers, uint32_t peer_count, void *segment,
                                    uint64_t offset_bytes, uint64_t size_bytes);

    /** Looks for what came in, without waiting, and delivers it: so a host's thread that drives the context itself
     * (::MUSTER_HOST_EXTERNAL) waits for a moment without a system call. MUSTER_OK: something came in or went out.
     * MUSTER_AGAIN: nothing, but soon perhaps; ask again at once. MUSTER_TIMEOUT: nothing, and a descriptor or timer
     * will tell. May be NULL: never called. */
    muster_status (*poll)(void *self);
} muster_fabric_ops;

/** What the library does for plug-ins; given to `muster_plugin_v1`, good until stop of the last scheme has returned. */
typedef struct muster_host muster_host;

/** Flags of muster_host::flags. */
enum muster_host_flag {
    MUSTER_HOST_EXTERNAL = 1 /**< The context has no thread: its loop runs on whichever thread of the host's drives. */
};

/** Members of ::muster_host. The first argument is the table itself or an object made with it. */
struct muster_host {
    uint32_t struct_size; /**< sizeof(muster_host) of the library: look before using a later member. */
    uint32_t flags;       /**< ::muster_host_flag values, or'ed. */
    void *library;        /**< The library's own. */

    /** Writes a log record; `level` is a ::muster_log_level value. Any thread. */
    void (*log)(const muster_host *host, int32_t level, const char *text, uint64_t text_bytes);

    /** Derives a key of 16 to 64 bytes from the secret of the context and a label, for a plug-in's own cipher or lock:
     * the same in every process of the job, useless without the secret. MUSTER_OK or MUSTER_E_ARG. Any thread. */
    muster_status (*derive)(const muster_host *host, const char *label, uint64_t label_bytes, void *out_key,
                            uint64_t key_bytes);

    /** Registers a scheme (lower case, 1 to 31 bytes) served by connections. Only inside `muster_plugin_v1`. MUSTER_OK,
     * MUSTER_E_EXISTS, MUSTER_E_ARG, MUSTER_E_NOMEM; MUSTER_E_PLUGIN when the table lacks an operation or holds an
     * impossible size; MUSTER_E_ABI when it is too small or too new, or has unknown flags. The error says which. */
    muster_status (*add_connections)(const muster_host *host, const char *scheme, uint64_t scheme_bytes,
                                     const muster_connections_ops *ops, void *self, muster_error *error);

    /** Registers a scheme served by a fabric; as add_connections. */
    muster_status (*add_fabric)(const muster_host *host, const char *scheme, uint64_t scheme_bytes,
                                const muster_fabric_ops *ops, void *self, muster_error *error);

    /** Watches a descriptor, level-triggered: `ready` runs on the loop thread with ::muster_plugin_event bits. One
     * watch per descriptor. MUSTER_OK, MUSTER_E_EXISTS: watched already, MUSTER_E_ARG: no descriptor,
     * MUSTER_E_PERMISSION: a file that cannot be watched, MUSTER_E_NOMEM, MUSTER_E_LIMIT, MUSTER_E_SYSTEM. */
    muster_status (*watch_fd)(const muster_host *host, int32_t fd, uint32_t events,
                              void (*ready)(void *user, uint32_t events), void *user, muster_watch **out_watch);

    /** Changes what a descriptor is watched for; 0 pauses. */
    void (*change_fd)(muster_watch *watch, uint32_t events);

    /** Ends a watch; `ready` is not called any more. Before the descriptor is closed. NULL has no effect. */
    void (*unwatch_fd)(muster_watch *watch);

    /** Calls `due` on the loop thread after a time, and again after each repeat_ns if that is above 0. MUSTER_OK,
     * MUSTER_E_ARG or MUSTER_E_NOMEM. A timer that does not repeat still has to be stopped. */
    muster_status (*start_timer)(const muster_host *host, int64_t after_ns, int64_t repeat_ns, void (*due)(void *user),
                                 void *user, muster_timer **out_timer);

    /** Stops and frees a timer; also from inside `due`. NULL has no effect. */
    void (*stop_timer)(muster_timer *timer);

    /** Runs a function on the loop thread soon: how threads of the plug-in's own hand over what they have. MUSTER_OK;
     * else it will not be run: MUSTER_E_CLOSED (the context has stopped), MUSTER_E_NOMEM, MUSTER_E_ARG. Any thread. */
    muster_status (*post)(const muster_host *host, void (*run)(void *user), void *user);

    /** Takes a segment of 256 KiB from the context's pool, for receiving and staging; NULL when memory ran out. Any
     * thread. */
    void *(*acquire_buffer)(const muster_host *host);

    /** Gives a segment back. NULL has no effect. Any thread. */
    void (*release_buffer)(const muster_host *host, void *segment);

    /** Connections: a connection came in on a listener. `peer` says where from, for people. On MUSTER_OK *out_link is
     * its library side; else the plug-in drops it. Connections beyond muster_context_config::max_unauthenticated that
     * have not proved the secret or not opened their stream yet make place in the next turns of the loop, the silent
     * ones first: each gets close or abort. MUSTER_E_LIMIT: too many at once, as many again as that number, or 256 if
     * that is more. There is muster_context_config::handshake_timeout_ns for each of the two steps.
     * MUSTER_E_CLOSED: nobody listens any more. MUSTER_E_ARG, MUSTER_E_NOMEM. */
    muster_status (*accepted)(muster_acceptor *acceptor, void *connection, const char *peer, uint64_t peer_bytes,
                              muster_link **out_link);

    /** Connections: what dial began is connected; bytes flow now. */
    void (*connected)(muster_link *link);

    /** Connections: bytes came in. Returns how many were taken, from the front: when fewer than given, keep the rest,
     * read no more, and wait for resume. Borrowed for the call. */
    uint64_t (*deliver)(muster_link *link, const void *data, uint64_t size_bytes);

    /** Connections: send takes bytes again after MUSTER_AGAIN. */
    void (*writable)(muster_link *link);

    /** Connections: it failed (MUSTER_E_UNREACHABLE, MUSTER_E_PEER, ...), or the peer finished and everything was
     * delivered (MUSTER_E_END). The text says why; may be empty. After a failure nothing more may be delivered. */
    void (*lost)(muster_link *link, muster_status status, int32_t os_errno, const char *text, uint64_t text_bytes);

    /** Fabric: answers a resolve that said MUSTER_AGAIN. Once per request. */
    void (*resolved)(muster_endpoint *endpoint, uint64_t request, muster_status status, uint64_t peer, const char *text,
                     uint64_t text_bytes);

    /** Fabric: a message came in, whole and in order. Borrowed for the call; each byte is read once, so it may lie in
     * memory the peer can write. All of it is taken: credits may go back to the peer when it returns. */
    void (*message)(muster_endpoint *endpoint, uint64_t peer, const void *data, uint64_t size_bytes);

    /** Fabric: that many more bytes may be sent to the peer. */
    void (*credit)(muster_endpoint *endpoint, uint64_t peer, uint64_t bytes);

    /** Fabric: send may be tried again for the peer; UINT64_MAX: for all. */
    void (*ready)(muster_endpoint *endpoint, uint64_t peer);

    /** Fabric: the peer is dead or cannot be reached any more. Its streams end with MUSTER_E_PEER and this text; forget
     * follows. */
    void (*peer_lost)(muster_endpoint *endpoint, uint64_t peer, muster_status status, int32_t os_errno,
                      const char *text, uint64_t text_bytes);

    /** Connections: asks for memory shared with the peer, if it is on this host; paired answers on both sides, here
     * exactly once. One at a time per connection, at most 1 GiB. MUSTER_OK: asked. MUSTER_E_BUSY: asked or paired
     * already. MUSTER_E_AUTH: not proved yet. MUSTER_E_ARG: size. MUSTER_E_NOMEM. */
    muster_status (*share_segment)(muster_link *link, uint64_t size_bytes);

    /** Fabric: as pair, with a peer: one segment for all that is between the two. */
    muster_status (*share_segment_with_peer)(muster_endpoint *endpoint, uint64_t peer, uint64_t size_bytes);

    /** Fabric: answers a publish that said MUSTER_AGAIN, with the authority peers dial, at most 1024 bytes, or with a
     * negative status and why. Once per request. When nobody waits any more, withdraw follows. */
    void (*published)(muster_endpoint *endpoint, uint64_t request, muster_status status, const char *text,
                      uint64_t text_bytes);

    /** Fabric: what is special about the way to a peer, MUSTER_PLUGIN_LOCAL and MUSTER_PLUGIN_SEALS or'ed, where it is
     * not what muster_fabric_ops::flags says of all. Before the peer's first message is delivered or it is resolved. */
    void (*peer_flags)(muster_endpoint *endpoint, uint64_t peer, uint32_t flags);

    /** Fabric: as message, without a copy: the bytes lie in memory that becomes the library's, until it calls the
     * loan's release. Nobody writes to it meanwhile: not for memory shared with the peer. Streams keep what is large
     * and at least half of the memory, so they hold at most twice their windows; all else is copied, and the loan ends
     * at once. The loan itself is borrowed for the call. */
    void (*message_lent)(muster_endpoint *endpoint, uint64_t peer, const void *data, uint64_t size_bytes,
                         const muster_loan *loan);

    /** Fabric: as message, or with a loan as message_lent, of one that was sent to many: this process is number
     * `index`, from 0, of the `count` peers given to send_multicast. */
    void (*message_multicast)(muster_endpoint *endpoint, uint64_t peer, const void *data, uint64_t size_bytes,
                              uint32_t index, uint32_t count, const muster_loan *loan);

    /** Registers a scheme of stores; see store_serve.h, which has the tables. Callbacks run on the loop thread, as
     * operations of a plug-in do, and all of ::muster_host may be called there. Otherwise as add_connections. */
    muster_status (*add_store)(const muster_host *host, const char *scheme, uint64_t scheme_bytes,
                               const struct muster_store_host_ops *ops, void *self, muster_error *error);

    /** As muster_store_request_open(). Any thread. */
    muster_status (*store_opened)(const muster_host *host, uint64_t request, const struct muster_store_traits *traits,
                                  muster_error *error);

    /** As muster_store_request_done(). Any thread. */
    muster_status (*store_done)(const muster_host *host, uint64_t request, muster_status status,
                                const struct muster_store_entry *entries, uint64_t entry_count, uint64_t revision,
                                muster_error *error);

    /** As muster_store_request_fail(). Any thread. */
    muster_status (*store_failed)(const muster_host *host, uint64_t request, muster_status status, uint32_t op,
                                  const char *text, uint64_t text_bytes);
};

/** Type of the one function a plug-in exports, named `muster_plugin_v1`. Called once per context, on the thread that
 * needed the plug-in, which waits: the one place where a plug-in may take its time.
 * @param host   The host table; kept by the plug-in, good until stop of its last scheme has returned.
 * @param error  Filled when it declines: what is missing, and which package brings it.
 * @return ::MUSTER_OK, or a failure: what was registered before it is taken back, and a negative status is passed on to
 * who needed the plug-in. */
typedef muster_status (*muster_plugin_v1_fn)(const muster_host *host, muster_error *error);

/** Loads a plug-in from a file and registers its schemes in one context. Loading it again into the same context does
 * nothing.
 * @param[in]  context     Context that gets its schemes.
 * @param[in]  path        File; text, no terminator needed.
 * @param[in]  path_bytes  Length of the path, at most 4095.
 * @param[out] error       Detail on failure: which file, which symbol, which sizes; or NULL.
 * @retval MUSTER_OK            Loaded; its schemes can be used in addresses.
 * @retval MUSTER_E_ARG         No context or path, or it is too long.
 * @retval MUSTER_E_NOT_FOUND   No such file.
 * @retval MUSTER_E_PERMISSION  The file cannot be read by this user, or all may write it or a folder it is in; to root
 *                              also if one of these belongs to a user other than root and the owner of the library.
 * @retval MUSTER_E_PLUGIN      It cannot be loaded, lacks the symbol, or declines without a negative status of its own,
 *                              which would be given instead; the text tells what it lacks.
 * @retval MUSTER_E_ABI         Its tables and this library's do not fit together.
 * @retval MUSTER_E_EXISTS      A scheme of it is taken.
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @retval MUSTER_E_CLOSED      The context is closed.
 * @retval MUSTER_E_FORKED      The context belongs to the parent process.
 * @threads{any} @blocks{while the file is loaded} @since 0.1 */
MUSTER_API muster_status muster_plugin_load(muster_context *context, const char *path, size_t path_bytes,
                                            muster_error *error);

/** Makes sure that a scheme can be used, loading the plug-in for it if there is one; as dialling it would.
 * @param[in]  context       Context that gets the scheme.
 * @param[in]  scheme        Lower-case ASCII, 1 to 31 bytes, no terminator needed.
 * @param[in]  scheme_bytes  Length of the scheme.
 * @param[out] error         Detail on failure: where it was looked for, and which package brings it; or NULL.
 * @retval MUSTER_OK            The scheme can be used.
 * @retval MUSTER_E_ARG         No context, or no scheme of that form.
 * @retval MUSTER_E_NOT_FOUND   No such transport and no plug-in for it.
 * @retval MUSTER_E_PLUGIN      A known plug-in is not installed, or as for muster_plugin_load(); the text tells more.
 * @retval MUSTER_E_ABI         The plug-in's tables and this library's do not fit together.
 * @retval MUSTER_E_EXISTS      Another scheme of the plug-in is taken.
 * @retval MUSTER_E_PERMISSION  The file cannot be read by this user, or all may write it or a folder it is in; to root
 *                              also if one of these belongs to a user other than root and the owner of the library.
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @retval MUSTER_E_CLOSED      The context is closed.
 * @retval MUSTER_E_FORKED      The context belongs to the parent process.
 * @threads{any} @blocks{while a file is loaded} @since 0.1 */
MUSTER_API muster_status muster_plugin_find(muster_context *context, const char *scheme, size_t scheme_bytes,
                                            muster_error *error);

#ifdef __cplusplus
}
#endif
#endif
