/* SPDX-License-Identifier: MIT */
/** @file
 * Plug-ins: transports and stores in a shared object of their own, which is loaded when an address or the URL of a
 * store needs it.
 *
 * Hosts use two functions: muster_plugin_load() loads a file, muster_plugin_find() searches for the file that serves a
 * scheme. Dialling, listening and opening a store do the latter by themselves. The plug-in for `mine://` is a file
 * `muster-mine.so`, which is searched in each folder of MUSTER_PLUGIN_PATH (not in set-uid programs), then in
 * `<libdir>/muster/<major>/`. The file is loaded into the process once and never unloaded; each context uses it
 * separately.
 *
 * For authors: a plug-in links to no library of Muster. It exports one function, with the type ::muster_plugin_v1_fn
 * and the name `muster_plugin_v1`, which is called once per context with the host table and registers schemes. Two
 * contexts may call it and its operations at the same time, so static data needs synchronisation. Every struct begins
 * with `struct_size`; it grows at its end, and a reader checks the size before it reads a member.
 *
 * There are two kinds of transports. A *connections* plug-in provides byte connections: dial, listen, send, deliver. A
 * *fabric* plug-in has one endpoint per process and sends whole messages to numbered peers, like MPI or a star. In both
 * the library runs its own protocol: both sides prove the secret, bytes that leave the host are sealed, heartbeats and
 * credits are exchanged, streams half-close and abort, and over a fabric many streams share a peer. A plug-in only
 * transports bytes.
 *
 * Rules for every operation of a plug-in: it runs on the loop thread of its context (with muster_fabric_ops::poll, on
 * one of several threads in turn), never two at once, so it needs no locks; it must not block (a log record names the
 * plug-in and a function that takes longer than a second); it must not unwind; it may call the host table, which never
 * calls an operation before the running one has returned. Functions of the host table may also only be called on the
 * loop thread, except those marked "any thread". Inside `muster_plugin_v1` itself only log, derive, add_connections,
 * add_fabric and add_store may be called.
 */
#ifndef MUSTER_PLUGIN_H
#define MUSTER_PLUGIN_H

#include <muster/broker.h>
#include <muster/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

struct muster_store_host_ops; /* of store_serve.h, for plug-ins that provide a store */
struct muster_store_traits;
struct muster_store_entry;

/** Opaque; the library's side of one connection. Valid until close or abort is called for it. */
typedef struct muster_link muster_link;
/** Opaque; the library's side of one listener of a connections plug-in. Valid until unlisten is called. */
typedef struct muster_acceptor muster_acceptor;
/** Opaque; the library's side of a fabric's endpoint. Valid until stop is called. */
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

/** Memory that this process shares with one peer on the same host, and an eventfd for each side. Content that the peer
 * writes must be treated as hostile: copy an index, check the copy, then use the copy. Valid until the connection is
 * closed or forget is called for the peer; the library then unmaps it and closes both descriptors. */
typedef struct muster_segment {
    uint32_t struct_size; /**< sizeof(muster_segment) of the library. */
    uint32_t side;        /**< 0 on the side that requested it, 1 on the other side. */
    void *data;           /**< First byte, page-aligned; zero at first. */
    uint64_t size_bytes;  /**< The requested size, rounded up to whole pages. */
    int32_t own_event;    /**< An eventfd that the peer writes to wake this side; watch it and read it. */
    int32_t peer_event;   /**< An eventfd that wakes the peer when it is written. */
} muster_segment;

/** Memory that holds a received message, lent to the library by muster_host::message_lent. */
typedef struct muster_loan {
    uint64_t size_bytes; /**< Size of the memory that the loan occupies: all of it, not the message alone. */
    /** Ends the loan: the memory is not read any more. Called exactly once for each lent message, on any thread,
     * possibly before message_lent returns or after stop; it must not wait or call Muster. NULL: the memory is a buffer
     * of muster_host::acquire_buffer, and the library releases it. */
    void (*release)(void *memory, void *hint);
    void *memory; /**< First argument of release; or the buffer. */
    void *hint;   /**< Second argument of release. */
} muster_loan;

/** Flags of muster_connections_ops::flags and muster_fabric_ops::flags. */
enum muster_plugin_flag {
    MUSTER_PLUGIN_LOCAL =
        1, /**< Bytes never leave this host: they are not sealed unless the context or the address requires it. */
    MUSTER_PLUGIN_SEALS =
        2, /**< The plug-in encrypts with keys from muster_host::derive: bytes are not sealed a second time. */
    MUSTER_PLUGIN_OPTIONS =
        4, /**< Fabric: options of an address that are not options of the library are appended to the authority, as
                `authority?key=value&key=value`; without this flag they are refused. */
    MUSTER_PLUGIN_UPGRADES = 8, /**< Fabric: streams between two processes of one user on one host use a link of shared
                                   memory, which the processes make after they have met over the fabric, unless one of
                                   them has `upgrade=no`; a stream for which that fails uses the fabric. */
    MUSTER_PLUGIN_NEEDS_POLLS = 16 /**< Fabric: a message moves piece by piece while both sides poll
                                      (muster_fabric_ops::poll): a thread that copies a large one polls in between. */
};

/** Events of a watched descriptor. */
enum muster_plugin_event {
    MUSTER_PLUGIN_READABLE = 1, /**< Data, the end or an error can be read without waiting. */
    MUSTER_PLUGIN_WRITABLE = 2, /**< Data can be written without waiting, or a write returns an error. */
    MUSTER_PLUGIN_HANGUP =
        4 /**< The other side has closed; reported even if not requested, where the system reports it. */
};

/** Operations of a connections plug-in. Registered by muster_host::add_connections; the table must stay valid until the
 * process ends. `self` is the value given there; `connection` and `listener` are values of the plug-in. */
typedef struct muster_connections_ops {
    uint32_t struct_size; /**< sizeof(muster_connections_ops) of the plug-in. */
    uint32_t flags;       /**< ::muster_plugin_flag values, or'ed. */

    /** Starts the transport. Called once, before any other operation and only when the scheme is first used. May be
     * NULL. Returns MUSTER_OK, or a failure, which fails every dial and listen of the scheme with the same error. */
    muster_status (*start)(void *self, muster_error *error);

    /** Stops the transport: every connection and listener is closed, and `self` is not used any more. Called once, as
     * the last operation, for each scheme that was registered, also if it was never started. Active watches and timers
     * end by themselves. May be NULL. */
    void (*stop)(void *self);

    /** Begins to connect to an address (`scheme://...`, without the options of the library). On MUSTER_OK the
     * connection exists in *out_connection, and the plug-in calls muster_host::connected or muster_host::lost once,
     * now or later. MUSTER_E_ADDRESS, MUSTER_E_UNREACHABLE, ... fail the dial at once; nothing else is called then. */
    muster_status (*dial)(void *self, const char *address, uint64_t address_bytes, muster_link *link,
                          void **out_connection, muster_error *error);

    /** Listens at an address. After MUSTER_OK *out_listener is a value of the plug-in, and the address that peers dial
     * is in out_address (capacity 4096 bytes) with its length. The plug-in reports each incoming connection by
     * muster_host::accepted. MUSTER_E_EXISTS: the address is in use. */
    muster_status (*listen)(void *self, const char *address, uint64_t address_bytes, muster_acceptor *acceptor,
                            void **out_listener, char *out_address, uint64_t *out_address_bytes, muster_error *error);

    /** Stops listening; the address is free when it returns. Called once per listener. Its connections continue. */
    void (*unlisten)(void *self, void *listener);

    /** Accepts bytes to be sent in order, as many as can be accepted without waiting: the first *out_bytes of the
     * spans, which are copied or sent when it returns. MUSTER_OK: all. MUSTER_AGAIN: fewer; the plug-in calls
     * muster_host::writable when it can accept more. A failure: the connection is lost, and the library closes it. At
     * most 16 spans and 512 KiB. */
    muster_status (*send)(void *connection, const muster_span *spans, uint32_t span_count, uint64_t *out_bytes);

    /** muster_host::deliver accepted fewer bytes than given, and accepts more again: deliver the rest and continue. */
    void (*resume)(void *connection);

    /** No more bytes will be sent; all accepted bytes must still arrive, and the peer may still send. Called at most
     * once. May be NULL, since a frame of the library notifies the peer as well. */
    void (*finish)(void *connection);

    /** The peer has proved the secret. Called at most once; muster_host::share_segment can be used from now on. May be
     * NULL. */
    void (*authenticated)(void *connection);

    /** The answer to muster_host::share_segment, or a request of the other side: memory shared with the peer, or NULL
     * and the status if that is impossible (another host, refused). May be NULL: then requests of the other side are
     * refused. */
    void (*segment_shared)(void *connection, const muster_segment *segment, muster_status status);

    /** Closes: accepted bytes are still sent, for up to 10 s, then the connection is freed. Exactly one of close and
     * abort is called, once and as the last operation, for each connection, also for one that was lost. Its link must
     * not be used afterwards. */
    void (*close)(void *connection);

    /** Closes at once, drops bytes that were not sent, and frees the connection. */
    void (*abort)(void *connection);
} muster_connections_ops;

/** Operations of a plug-in whose fabric has a broker: muster_broker_open() and the rest of broker.h. Unlike all other
 * operations these run on the threads of their callers: any number at a time for different brokers, one at a time for
 * one broker. */
typedef struct muster_broker_ops {
    uint32_t struct_size; /**< sizeof(muster_broker_ops) of the plug-in. */
    uint32_t reserved;    /**< Zero. */

    /** Starts a broker. `self` is the fabric's, which need not be started, and is not stopped before the broker is
     * closed. Writes the authority that members use to out_authority (capacity 1024 bytes) with its length. */
    muster_status (*open)(void *self, const char *authority, uint64_t authority_bytes,
                          const muster_broker_config *config, void **out_broker, char *out_authority,
                          uint64_t *out_authority_bytes, muster_error *error);

    /** Reads the counters of the broker. */
    void (*stats)(void *broker, muster_broker_stats *out_stats);

    /** Stops the broker, waits up to timeout_ns for queued data to be sent, and frees it. Called once. */
    void (*close)(void *broker, int64_t timeout_ns);
} muster_broker_ops;

/** Operations of a fabric plug-in. Registered by muster_host::add_fabric; the table must stay valid until the process
 * ends. A peer is a number that the plug-in chooses for one incarnation of one process: when a process dies and another
 * one takes its place or name, that one gets another number. Addresses are `scheme://authority/service?options`: the
 * authority identifies the process, in which the library looks up the service. */
typedef struct muster_fabric_ops {
    uint32_t struct_size;   /**< sizeof(muster_fabric_ops) of the plug-in. */
    uint32_t flags;         /**< ::muster_plugin_flag values, or'ed. */
    uint64_t message_bytes; /**< Maximum size of a message, 1 KiB to 1 MiB; 0: 256 KiB. */
    uint64_t credit_bytes;  /**< Bytes that may be sent to a new peer before muster_host::credit grants more, at least
                                 message_bytes; 0: no credits, send returns MUSTER_AGAIN when it is full. */

    /** Opens the endpoint. Called once, before any other operation and only when the scheme is first used. Messages may
     * be delivered from now on. Returns MUSTER_OK, or a failure, which fails every dial and listen of the scheme. */
    muster_status (*start)(void *self, muster_endpoint *endpoint, muster_error *error);

    /** Closes the endpoint: accepted messages are still sent if that needs no waiting; `self` is not used any more.
     * Called once, as the last operation, for each scheme that was registered, also if it was never started. */
    void (*stop)(void *self);

    /** Makes this process reachable by an authority (empty: any name), and writes the authority that peers dial to
     * out_authority (capacity 1024 bytes) with its length, followed by `?` and the options that they need. Called for
     * each listener. MUSTER_AGAIN: the plug-in will call muster_host::published with this request number, once, later.
     * MUSTER_E_EXISTS: another process has this authority. MUSTER_E_UNREACHABLE: the name service does not answer. */
    muster_status (*publish)(void *self, const char *authority, uint64_t authority_bytes, uint64_t request,
                             char *out_authority, uint64_t *out_authority_bytes, muster_error *error);

    /** A listener that was published is closed; authority is the text that publish wrote. May be NULL. */
    void (*withdraw)(void *self, const char *authority, uint64_t authority_bytes);

    /** Finds the peer of an authority. MUSTER_OK: it is *out_peer. MUSTER_AGAIN: the plug-in will call
     * muster_host::resolved with this request number, once, later. MUSTER_E_UNREACHABLE: no process has that name. */
    muster_status (*resolve)(void *self, const char *authority, uint64_t authority_bytes, uint64_t request,
                             uint64_t *out_peer, muster_error *error);

    /** Sends one message, whole and in order with others to the same peer; it is copied or sent when the call returns.
     * MUSTER_OK; or MUSTER_AGAIN: the plug-in is full and calls muster_host::ready when the library may retry (not
     * needed with credits, which the library does not exceed). A failure: the peer is lost, and its streams fail. At
     * most 16 spans. */
    muster_status (*send)(void *self, uint64_t peer, const muster_span *spans, uint32_t span_count);

    /** The peer has proved the secret. Called at most once per peer; muster_host::share_segment_with_peer can be used
     * from now on. May be NULL. */
    void (*authenticated)(void *self, uint64_t peer);

    /** The answer to muster_host::share_segment_with_peer, or a request of the other side: memory shared with the peer,
     * or NULL and the status if that is impossible (another host, refused). May be NULL: then requests of the other
     * side are refused.
     */
    void (*segment_shared)(void *self, uint64_t peer, const muster_segment *segment, muster_status status);

    /** The library does not use the peer any more: it was lost, its last stream ended long ago, or it failed to prove
     * the secret. Free its state; a later message from it introduces it again. Called once per peer that was resolved,
     * has sent, or was reported lost. */
    void (*forget)(void *self, uint64_t peer);

    uint64_t headroom_bytes; /**< For send_buffer: bytes before each message that the plug-in may write to, at most
                                  4096. */

    /** As send, without a copy: the message is size_bytes at offset_bytes, at least headroom_bytes, of a buffer, which
     * belongs to the plug-in after MUSTER_OK, together with the bytes after the message; it releases the buffer with
     * muster_host::release_buffer when the message was sent. Messages that do not end their buffer are still sent by
     * send. May be NULL: all are sent by send. */
    muster_status (*send_buffer)(void *self, uint64_t peer, void *buffer, uint64_t offset_bytes, uint64_t size_bytes);

    const muster_broker_ops *broker; /**< The broker of this fabric; NULL: it has none. */

    /** As send_buffer, for one message to 1 to 256 different peers, for a fabric that can transport it once and deliver
     * it to each, in order with others to the same peer; the receivers deliver it by muster_host::message_multicast.
     * offset_bytes is at least headroom_bytes + 8 * peer_count. MUSTER_AGAIN: no peer gets it, and the plug-in calls
     * muster_host::ready for one that was full. MUSTER_E_UNSUPPORTED: impossible for this set of peers. After that, and
     * any other failure, no peer gets it, and the library sends to each of them. May be NULL. */
    muster_status (*send_multicast)(void *self, const uint64_t *peers, uint32_t peer_count, void *buffer,
                                    uint64_t offset_bytes, uint64_t size_bytes);

    /** Polls for received messages without waiting, and delivers them, so that a thread of the host that waits for a
     * stream can do so for a moment without a system call. With this operation the loop of any context may run on
     * different threads of the host, too, while they wait: one at a time, each with everything that those before have
     * done; so no operation may depend on the thread that calls it. MUSTER_OK: something was received
     * or sent. MUSTER_AGAIN: nothing yet, but soon perhaps; poll again at once. MUSTER_TIMEOUT: nothing, and a
     * descriptor or timer will notify. May be NULL: never called. */
    muster_status (*poll)(void *self);
} muster_fabric_ops;

/** Functions of the library for plug-ins; passed to `muster_plugin_v1`, valid until stop of the last scheme has
 * returned. */
typedef struct muster_host muster_host;

/** Flags of muster_host::flags. */
enum muster_host_flag {
    MUSTER_HOST_EXTERNAL = 1 /**< The context has no thread: its loop runs on the thread of the host that drives it. */
};

/** Members of ::muster_host. The first argument is the table itself or an object made with it. */
struct muster_host {
    uint32_t struct_size; /**< sizeof(muster_host) of the library: check it before using a later member. */
    uint32_t flags;       /**< ::muster_host_flag values, or'ed. */
    void *library;        /**< Private to the library. */

    /** Writes a log record; `level` is a ::muster_log_level value. Any thread. */
    void (*log)(const muster_host *host, int32_t level, const char *text, uint64_t text_bytes);

    /** Derives a key of 16 to 64 bytes from the secret of the context and a label, for a cipher or lock of the plug-in:
     * the same in every process of the job, useless without the secret. MUSTER_OK or MUSTER_E_ARG. Any thread. */
    muster_status (*derive)(const muster_host *host, const char *label, uint64_t label_bytes, void *out_key,
                            uint64_t key_bytes);

    /** Registers a scheme (lower case, 1 to 31 bytes) served by connections. Only inside `muster_plugin_v1`. MUSTER_OK,
     * MUSTER_E_EXISTS, MUSTER_E_ARG, MUSTER_E_NOMEM; MUSTER_E_PLUGIN if the table lacks an operation or has an
     * impossible size; MUSTER_E_ABI if it is too small or too new, or has unknown flags. The error says which. */
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

    /** Ends a watch; `ready` is not called any more. Call it before the descriptor is closed. NULL has no effect. */
    void (*unwatch_fd)(muster_watch *watch);

    /** Calls `due` on the loop thread after a time, and again after each repeat_ns if that is above 0. MUSTER_OK,
     * MUSTER_E_ARG or MUSTER_E_NOMEM. A timer that does not repeat still has to be stopped. */
    muster_status (*start_timer)(const muster_host *host, int64_t after_ns, int64_t repeat_ns, void (*due)(void *user),
                                 void *user, muster_timer **out_timer);

    /** Stops and frees a timer; also from inside `due`. NULL has no effect. */
    void (*stop_timer)(muster_timer *timer);

    /** Posts a function to the loop thread, for threads of the plug-in. MUSTER_OK: it will be run. Otherwise it will
     * not: MUSTER_E_CLOSED (the context has stopped), MUSTER_E_NOMEM, MUSTER_E_ARG. Any thread. */
    muster_status (*post)(const muster_host *host, void (*run)(void *user), void *user);

    /** Takes a buffer of 256 KiB from the pool of the context, for receiving and staging; NULL if memory ran out. Any
     * thread. */
    void *(*acquire_buffer)(const muster_host *host);

    /** Returns a buffer to the pool. NULL has no effect. Any thread. */
    void (*release_buffer)(const muster_host *host, void *buffer);

    /** Connections: a listener has an incoming connection. `peer` names its origin for people. After MUSTER_OK
     * *out_link is the library's side of it; otherwise the plug-in drops it. Connections in excess of
     * muster_context_config::max_unauthenticated that have not proved the secret or not opened their stream yet are
     * closed in the next iterations of the loop, those that have sent nothing first: each gets close or abort.
     * MUSTER_E_LIMIT: too many in excess at once, more than that number, or than 256 if that is larger.
     * muster_context_config::handshake_timeout_ns applies to each of the two steps. MUSTER_E_CLOSED: the listener is
     * closed. MUSTER_E_ARG, MUSTER_E_NOMEM. */
    muster_status (*accepted)(muster_acceptor *acceptor, void *connection, const char *peer, uint64_t peer_bytes,
                              muster_link **out_link);

    /** Connections: a connection that dial began is established; bytes can be sent. */
    void (*connected)(muster_link *link);

    /** Connections: delivers received bytes. Returns how many of them, from the first, were accepted: if fewer than
     * given, keep the rest, read no more, and wait for resume. Borrowed for the call. */
    uint64_t (*deliver)(muster_link *link, const void *data, uint64_t size_bytes);

    /** Connections: send accepts bytes again after MUSTER_AGAIN. */
    void (*writable)(muster_link *link);

    /** Connections: the connection failed (MUSTER_E_UNREACHABLE, MUSTER_E_PEER, ...), or the peer finished and
     * everything was delivered (MUSTER_E_END). The text says why; it may be empty. After a failure nothing more may be
     * delivered. */
    void (*lost)(muster_link *link, muster_status status, int32_t os_errno, const char *text, uint64_t text_bytes);

    /** Fabric: answers a resolve that returned MUSTER_AGAIN. Once per request. */
    void (*resolved)(muster_endpoint *endpoint, uint64_t request, muster_status status, uint64_t peer, const char *text,
                     uint64_t text_bytes);

    /** Fabric: delivers a received message, whole and in order. Borrowed for the call; each byte is read once, so it
     * may be in memory that the peer can write. All of it is accepted: credits may be returned to the peer when it
     * returns. */
    void (*message)(muster_endpoint *endpoint, uint64_t peer, const void *data, uint64_t size_bytes);

    /** Fabric: that many more bytes may be sent to the peer. */
    void (*credit)(muster_endpoint *endpoint, uint64_t peer, uint64_t bytes);

    /** Fabric: the library may retry send for the peer; UINT64_MAX: for all. */
    void (*ready)(muster_endpoint *endpoint, uint64_t peer);

    /** Fabric: the peer is dead or unreachable. Its streams end with MUSTER_E_PEER and this text; forget follows. */
    void (*peer_lost)(muster_endpoint *endpoint, uint64_t peer, muster_status status, int32_t os_errno,
                      const char *text, uint64_t text_bytes);

    /** Connections: requests memory shared with the peer, if it is on this host; segment_shared has the answer on both
     * sides, exactly once on this side. One request at a time per connection, at most 1 GiB. MUSTER_OK: requested.
     * MUSTER_E_BUSY: requested or shared already. MUSTER_E_AUTH: the peer has not proved the secret yet. MUSTER_E_ARG:
     * invalid size. MUSTER_E_NOMEM. */
    muster_status (*share_segment)(muster_link *link, uint64_t size_bytes);

    /** Fabric: as share_segment, with a peer: one segment for everything between the two processes. */
    muster_status (*share_segment_with_peer)(muster_endpoint *endpoint, uint64_t peer, uint64_t size_bytes);

    /** Fabric: answers a publish that returned MUSTER_AGAIN, with the authority that peers dial, at most 1024 bytes, or
     * with a negative status and the reason. Once per request. If the request is not needed any more, withdraw follows.
     */
    void (*published)(muster_endpoint *endpoint, uint64_t request, muster_status status, const char *text,
                      uint64_t text_bytes);

    /** Fabric: sets the flags of one peer, MUSTER_PLUGIN_LOCAL and MUSTER_PLUGIN_SEALS or'ed, where they differ from
     * muster_fabric_ops::flags. Call it before the first message of the peer is delivered, and before it is resolved.
     */
    void (*peer_flags)(muster_endpoint *endpoint, uint64_t peer, uint32_t flags);

    /** Fabric: as message, without a copy: the bytes are in memory that is lent to the library until it calls release
     * of the loan. The memory must not be written until then, so it must not be shared with the peer. Streams keep
     * messages that are large and fill at least half of the memory, so they hold at most twice their windows; all
     * others are copied, and the loan ends at once. The loan itself is borrowed for the call. */
    void (*message_lent)(muster_endpoint *endpoint, uint64_t peer, const void *data, uint64_t size_bytes,
                         const muster_loan *loan);

    /** Fabric: as message, or with a loan as message_lent, for a message of send_multicast: this process is the peer
     * with index `index`, from 0, of the `count` peers that it was sent to. */
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

/** Type of the one function that a plug-in exports, named `muster_plugin_v1`. Called once per context, on the thread
 * that needs the plug-in and waits for it; only here may a plug-in block.
 * @param host   The host table; the plug-in keeps it, and it is valid until stop of its last scheme has returned.
 * @param error  Filled if the plug-in declines: what is missing, and which package provides it.
 * @return ::MUSTER_OK, or a failure: the schemes that it has registered are withdrawn, and a negative status is
 * returned to the caller that needed the plug-in. */
typedef muster_status (*muster_plugin_v1_fn)(const muster_host *host, muster_error *error);

/** Loads a plug-in from a file and registers its schemes in one context. Loading it again into the same context does
 * nothing.
 * @param[in]  context     Context that gets its schemes.
 * @param[in]  path        Name of the file; text, no terminator needed.
 * @param[in]  path_bytes  Length of the path, at most 4095.
 * @param[out] error       Detail on failure: which file, which symbol, which sizes; or NULL.
 * @retval MUSTER_OK            Loaded; its schemes can be used in addresses.
 * @retval MUSTER_E_ARG         No context or path, or it is too long.
 * @retval MUSTER_E_NOT_FOUND   The file does not exist.
 * @retval MUSTER_E_PERMISSION  The file cannot be read by this user, or other users can write to it or to a folder
 *                              above it; for root also if one of these belongs to a user other than root and the
 *                              owner of the library.
 * @retval MUSTER_E_PLUGIN      The file cannot be loaded, lacks the symbol, or declines without a negative status of
 *                              its own, which would be returned instead; the error says what is missing.
 * @retval MUSTER_E_ABI         Its tables are incompatible with this library.
 * @retval MUSTER_E_EXISTS      One of its schemes is already registered.
 * @retval MUSTER_E_NOMEM       Memory ran out.
 * @retval MUSTER_E_CLOSED      The context is closed.
 * @retval MUSTER_E_FORKED      The context belongs to the parent process.
 * @threads{any} @blocks{while the file is loaded} @since 0.1 */
MUSTER_API muster_status muster_plugin_load(muster_context *context, const char *path, size_t path_bytes,
                                            muster_error *error);

/** Ensures that a scheme can be used, as dialling does: loads the plug-in for it if there is one.
 * @param[in]  context       Context that gets the scheme.
 * @param[in]  scheme        Lower-case ASCII, 1 to 31 bytes, no terminator needed.
 * @param[in]  scheme_bytes  Length of the scheme.
 * @param[out] error         Detail on failure: where the plug-in was searched, and which package provides it; or NULL.
 * @retval MUSTER_OK            The scheme can be used.
 * @retval MUSTER_E_ARG         No context, or a malformed scheme.
 * @retval MUSTER_E_NOT_FOUND   There is no transport of this scheme, and no plug-in for it.
 * @retval MUSTER_E_PLUGIN      A known plug-in is not installed, or as for muster_plugin_load(); the error has the
 *                              detail.
 * @retval MUSTER_E_ABI         The tables of the plug-in are incompatible with this library.
 * @retval MUSTER_E_EXISTS      Another scheme of the plug-in is already registered.
 * @retval MUSTER_E_PERMISSION  The file cannot be read by this user, or other users can write to it or to a folder
 *                              above it; for root also if one of these belongs to a user other than root and the
 *                              owner of the library.
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
