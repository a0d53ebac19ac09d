/* SPDX-License-Identifier: MIT */
/* mailbox://name/service - a fabric plug-in for the processes of one user on one host.
 *
 * A process that listens has a socket with its name in a folder. A process that sends to it connects once, and both are
 * peers from then on. Messages are sent over that socket (SOCK_SEQPACKET keeps their boundaries) until the library has
 * set up shared memory for the two; then they are sent through a ring in it, and the socket carries only credits and
 * shows the death of the peer.
 *
 * The example uses three features of the host table: *credits* bound the bytes in flight to a peer, so a ring of twice
 * that size is never full; *shared-memory pairing* provides the ring and its doorbells; *death reports* notify the
 * library when the kernel closes the connection of a peer. */
#include <muster/plugin.h>

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#define MESSAGE_BYTES (64 * 1024)
#define CREDIT_BYTES (512 * 1024)
#define RING_BYTES ((uint32_t)2 * CREDIT_BYTES) /* a power of two */
#define TURN_BYTES RING_BYTES                   /* maximum taken from a ring in one turn: a whole ring */
#define SOCKET_BYTES (1024 * 1024)
#define NAME_BYTES 64

/* The header of a packet on the socket, 8 bytes. */
enum { PACKET_MESSAGE = 1, PACKET_CREDIT = 2, PACKET_SWITCH = 3 };
typedef struct packet_head {
    uint32_t kind;
    uint32_t value; /* CREDIT: bytes */
} packet_head;

/* One direction of the shared memory. The reader trusts nothing in it: it copies an index, checks it, uses the copy. */
typedef struct ring {
    _Alignas(128) _Atomic uint32_t head; /* bytes ever written, modulo 2^32; release by the writer */
    _Alignas(128) _Atomic uint32_t tail; /* bytes ever read; release by the reader */
    _Alignas(128) unsigned char data[RING_BYTES];
} ring;

typedef struct mailbox mailbox;

typedef struct peer {
    mailbox *box;
    struct peer *next;
    uint64_t id;
    int socket;
    int lost;
    muster_watch *watch;
    char name[NAME_BYTES]; /* the name that was dialled; empty: the peer has dialled */
    /* out */
    ring *out; /* NULL: through the socket */
    int switch_due, blocked;
    uint32_t head;
    /* in */
    ring *in; /* mapped; read from once the peer has switched */
    int in_switched, notifier;
    uint32_t tail;
    muster_watch *notifier_watch;
    int peer_notifier;
    uint32_t credit_due; /* consumed, not yet granted to the peer again */
} peer;

typedef struct door { /* a name of this process */
    struct door *next;
    mailbox *box;
    char name[NAME_BYTES];
    unsigned users;
    int socket;
    muster_watch *watch;
} door;

struct mailbox {
    const muster_host *host;
    muster_endpoint *endpoint;
    char folder[80];
    peer *peers;
    door *doors;
    uint64_t next_id;
    unsigned char *segment; /* for receiving */
};

/* ---- helpers ------------------------------------------------------------------------------------------------------
 */

static muster_status fail(muster_error *error, muster_status status, int os_errno, const char *what, const char *who) {
    if (error != NULL) {
        error->os_errno = os_errno;
        snprintf(error->message, sizeof error->message, "%s %s%s%s", what, who, os_errno != 0 ? ": " : "",
                 os_errno != 0 ? strerror(os_errno) : "");
    }
    return status;
}

static int valid_name(const char *name, uint64_t bytes) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    for (uint64_t i = 0; i < bytes; i++)
        if (memchr(letters, name[i], sizeof letters - 1) == NULL) return 0;
    return bytes >= 1 && bytes < NAME_BYTES;
}

/* start has checked that every name fits. */
static socklen_t address_of(const mailbox *box, const char *name, struct sockaddr_un *out) {
    memset(out, 0, sizeof *out);
    out->sun_family = AF_UNIX;
    size_t folder_bytes = strlen(box->folder);
    memcpy(out->sun_path, box->folder, folder_bytes);
    out->sun_path[folder_bytes] = '/';
    memcpy(out->sun_path + folder_bytes + 1, name, strlen(name));
    return (socklen_t)sizeof *out;
}

static peer *find_peer(mailbox *box, uint64_t id) {
    for (peer *p = box->peers; p != NULL; p = p->next)
        if (p->id == id) return p;
    return NULL;
}

/* ---- receiving ----------------------------------------------------------------------------------------------------
 */

static void read_ring(peer *p);

/* Reported once; the library then discards the peer. */
static void lose(peer *p, int os_errno, const char *text) {
    const muster_host *host = p->box->host;
    if (p->lost) return;
    p->lost = 1;
    host->change_fd(p->watch, 0);
    if (p->notifier_watch != NULL) host->change_fd(p->notifier_watch, 0);
    host->peer_lost(p->box->endpoint, p->id, MUSTER_E_PEER, os_errno, text, strlen(text));
}

/* Messages that it had put into the ring before it ended are still valid. */
static void hung_up(peer *p) {
    if (p->in != NULL && p->in_switched) read_ring(p);
    lose(p, 0, "the process is gone");
}

static void send_credit(peer *p) {
    packet_head head = {PACKET_CREDIT, p->credit_due};
    if (send(p->socket, &head, sizeof head, MSG_NOSIGNAL) == (ssize_t)sizeof head)
        p->credit_due = 0;
    else if (errno == EAGAIN)
        p->box->host->change_fd(p->watch, MUSTER_PLUGIN_READABLE | MUSTER_PLUGIN_WRITABLE);
}

/* A message was consumed. Credit is returned in portions, so that it costs little. */
static void took(peer *p, size_t bytes) {
    p->credit_due += (uint32_t)bytes;
    if (p->credit_due >= CREDIT_BYTES / 4) send_credit(p);
}

static void notify(int fd) {
    const uint64_t one = 1;
    if (write(fd, &one, sizeof one) < 0) return; /* full: it is signalled already */
}

/* The library has read it. */
static void free_whole(void *whole, void *hint) {
    (void)hint;
    free(whole);
}

/* Takes whole messages out of the shared ring. The library reads each byte of a message once, so it may be in memory
 * that the peer can still change. */
static void read_ring(peer *p) {
    const muster_host *host = p->box->host;
    for (uint32_t begin = p->tail;;) {
        /* acquire: pairs with the writer's release; the bytes before head are visible. */
        uint32_t there = atomic_load_explicit(&p->in->head, memory_order_acquire) - p->tail;
        if (there == 0) break;
        if (p->tail - begin >= TURN_BYTES) { /* the writer is as fast as this reader: the rest in the next turn */
            notify(p->notifier);
            break;
        }
        uint32_t size = 0;
        if (there > RING_BYTES || there < sizeof size) {
            lose(p, 0, "the peer's ring makes no sense");
            return;
        }
        for (unsigned i = 0; i < sizeof size; i++)
            ((unsigned char *)&size)[i] = p->in->data[(p->tail + i) & (RING_BYTES - 1)];
        if (size == 0 || size > MESSAGE_BYTES || size > there - sizeof size) {
            lose(p, 0, "the peer's ring makes no sense");
            return;
        }
        uint32_t from = (p->tail + (uint32_t)sizeof size) & (RING_BYTES - 1);
        const unsigned char *message = p->in->data + from;
        uint32_t first = RING_BYTES - from;
        unsigned char *whole = size > first ? malloc(size) : NULL;
        if (whole != NULL) { /* across the end of the ring: joined in memory that the library may keep */
            const muster_loan loan = {size, free_whole, whole, NULL};
            memcpy(whole, message, first);
            memcpy(whole + first, p->in->data, size - first);
            host->message_lent(p->box->endpoint, p->id, whole, size, &loan);
        } else if (size > first) { /* no memory for that; the library copies */
            memcpy(p->box->segment, message, first);
            memcpy(p->box->segment + first, p->in->data, size - first);
            host->message(p->box->endpoint, p->id, p->box->segment, size);
        } else {
            host->message(p->box->endpoint, p->id, message, size);
        }
        p->tail += (uint32_t)sizeof size + size;
        atomic_store_explicit(&p->in->tail, p->tail, memory_order_release); /* the room is free; pairs with op_send() */
        took(p, size);
    }
}

static void on_notified(void *user, uint32_t events) {
    peer *p = user;
    uint64_t count;
    (void)events;
    if (read(p->notifier, &count, sizeof count) < 0 && errno != EAGAIN) return;
    if (p->in_switched) read_ring(p);
}

static void unblock(peer *p) {
    if (!p->blocked) return;
    p->blocked = 0;
    p->box->host->ready(p->box->endpoint, p->id);
}

static void read_packet(peer *p, size_t size) {
    const unsigned char *bytes = p->box->segment;
    packet_head head;
    if (size < sizeof head) {
        lose(p, 0, "the peer sends what is no packet");
        return;
    }
    memcpy(&head, bytes, sizeof head);
    switch (head.kind) {
    case PACKET_MESSAGE:
        if (p->in_switched) {
            lose(p, 0, "the peer uses the socket after it had switched");
            return;
        }
        p->box->host->message(p->box->endpoint, p->id, bytes + sizeof head, size - sizeof head);
        took(p, size - sizeof head);
        break;
    case PACKET_CREDIT:
        unblock(p);
        p->box->host->credit(p->box->endpoint, p->id, head.value);
        break;
    case PACKET_SWITCH: /* messages before it arrived on the socket, messages after it arrive in the ring */
        if (p->in_switched) {
            lose(p, 0, "the peer has switched twice");
            return;
        }
        p->in_switched = 1;
        if (p->in != NULL) read_ring(p);
        break;
    default:
        lose(p, 0, "the peer sends what is no packet");
    }
}

static void socket_ready(void *user, uint32_t events) {
    peer *p = user;
    const muster_host *host = p->box->host;
    if (events & MUSTER_PLUGIN_WRITABLE) {
        host->change_fd(p->watch, MUSTER_PLUGIN_READABLE);
        if (p->credit_due >= CREDIT_BYTES / 4) send_credit(p);
        unblock(p);
    }
    for (int round = 0; round < 16 && !p->lost; round++) { /* bounded, so that other descriptors are served, too */
        ssize_t got = recv(p->socket, p->box->segment, 256 * 1024, 0);
        if (got > 0)
            read_packet(p, (size_t)got);
        else if (got == 0)
            hung_up(p);
        else if (errno == EAGAIN)
            return;
        else if (errno != EINTR)
            lose(p, errno, "the socket failed");
    }
}

/* ---- peers --------------------------------------------------------------------------------------------------------
 */

static peer *add_peer(mailbox *box, int fd, const char *name) {
    const int bytes = SOCKET_BYTES;
    peer *p = calloc(1, sizeof *p);
    if (p == NULL) return NULL;
    p->box = box;
    p->socket = fd;
    p->notifier = p->peer_notifier = -1;
    p->id = box->next_id++;
    snprintf(p->name, sizeof p->name, "%s", name);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    if (box->host->watch_fd(box->host, fd, MUSTER_PLUGIN_READABLE, socket_ready, p, &p->watch) != MUSTER_OK) {
        free(p);
        return NULL;
    }
    p->next = box->peers;
    box->peers = p;
    return p;
}

static void op_forget(void *self, uint64_t id) {
    mailbox *box = self;
    for (peer **at = &box->peers; *at != NULL; at = &(*at)->next) {
        peer *p = *at;
        if (p->id != id) continue;
        *at = p->next;
        box->host->unwatch_fd(p->notifier_watch); /* the descriptors are the library's */
        box->host->unwatch_fd(p->watch);
        close(p->socket);
        free(p);
        return;
    }
}

static int same_user(int fd) {
    struct ucred who;
    socklen_t size = sizeof who;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.uid == geteuid();
}

static void door_ready(void *user, uint32_t events) {
    door *d = user;
    (void)events;
    int fd = accept4(d->socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    if (!same_user(fd) || add_peer(d->box, fd, "") == NULL) close(fd);
}

static muster_status op_resolve(void *self, const char *authority, uint64_t authority_bytes, uint64_t question,
                                uint64_t *out_peer, muster_error *error) {
    mailbox *box = self;
    char name[NAME_BYTES] = {0};
    struct sockaddr_un address;
    (void)question; /* answered at once */
    if (!valid_name(authority, authority_bytes))
        return fail(error, MUSTER_E_ADDRESS, 0, "a name is 1 to 63 letters, digits, - and _", "");
    memcpy(name, authority, authority_bytes);
    for (peer *p = box->peers; p != NULL; p = p->next)
        if (!p->lost && strcmp(p->name, name) == 0) {
            *out_peer = p->id;
            return MUSTER_OK;
        }
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return fail(error, MUSTER_E_LIMIT, errno, "no socket for", name);
    socklen_t length = address_of(box, name, &address);
    if (connect(fd, (const struct sockaddr *)&address, length) != 0 || !same_user(fd)) {
        int os_errno = errno;
        close(fd);
        return fail(error, os_errno == EAGAIN ? MUSTER_E_LIMIT : MUSTER_E_UNREACHABLE, os_errno, "no process named",
                    name);
    }
    peer *p = add_peer(box, fd, name);
    if (p == NULL) {
        close(fd);
        return MUSTER_E_NOMEM;
    }
    *out_peer = p->id;
    return MUSTER_OK;
}

/* ---- sending ------------------------------------------------------------------------------------------------------
 */

/* Both have proved the secret. The peer that was dialled requests the memory. */
static void op_proved(void *self, uint64_t id) {
    mailbox *box = self;
    peer *p = find_peer(box, id);
    if (p != NULL && p->name[0] == '\0') box->host->share_segment_with_peer(box->endpoint, id, 2 * sizeof(ring));
}

static void op_paired(void *self, uint64_t id, const muster_segment *segment, muster_status status) {
    mailbox *box = self;
    peer *p = find_peer(box, id);
    if (p == NULL || segment == NULL || segment->size_bytes < 2 * sizeof(ring)) {
        (void)status; /* no shared memory with this peer: the socket stays in use */
        return;
    }
    ring *rings = segment->data;
    p->out = &rings[segment->side];
    p->in = &rings[1 - segment->side];
    p->notifier = segment->own_event;
    p->peer_notifier = segment->peer_event;
    p->switch_due = 1;
    if (box->host->watch_fd(box->host, p->notifier, MUSTER_PLUGIN_READABLE, on_notified, p, &p->notifier_watch) !=
        MUSTER_OK) {
        p->out = NULL; /* then this side reads the ring only when the peer also sends on the socket */
        lose(p, 0, "the doorbell cannot be watched");
        return;
    }
    if (p->in_switched) read_ring(p);
}

static muster_status put_in_ring(peer *p, const muster_span *spans, uint32_t count, uint32_t size) {
    /* acquire: pairs with the reader's release; it is done with the bytes before tail. */
    uint32_t used = p->head - atomic_load_explicit(&p->out->tail, memory_order_acquire);
    if (used > RING_BYTES) return MUSTER_E_PEER;
    if (RING_BYTES - used < size + sizeof size) {
        p->blocked = 1;
        return MUSTER_AGAIN; /* tiny messages only: credits do not count what each of them costs here */
    }
    uint32_t at = p->head;
    for (unsigned i = 0; i < sizeof size; i++)
        p->out->data[at++ & (RING_BYTES - 1)] = ((const unsigned char *)&size)[i];
    for (uint32_t i = 0; i < count; i++) {
        uint32_t to = at & (RING_BYTES - 1), bytes = (uint32_t)spans[i].size_bytes;
        uint32_t first = bytes < RING_BYTES - to ? bytes : RING_BYTES - to;
        memcpy(p->out->data + to, spans[i].data, first);
        memcpy(p->out->data, (const unsigned char *)spans[i].data + first, bytes - first);
        at += bytes;
    }
    p->head = at;
    atomic_store_explicit(&p->out->head, at, memory_order_release); /* pairs with read_ring() */
    notify(p->peer_notifier);
    return MUSTER_OK;
}

static muster_status op_send(void *self, uint64_t id, const muster_span *spans, uint32_t span_count) {
    mailbox *box = self;
    peer *p = find_peer(box, id);
    if (p == NULL || p->lost) return MUSTER_E_PEER;
    packet_head head = {p->switch_due ? PACKET_SWITCH : PACKET_MESSAGE, 0};
    struct iovec pieces[17] = {{&head, sizeof head}};
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 1};
    uint64_t size = 0;
    for (uint32_t i = 0; i < span_count; i++) {
        pieces[1 + i].iov_base = (void *)spans[i].data;
        pieces[1 + i].iov_len = spans[i].size_bytes;
        size += spans[i].size_bytes;
    }
    if (p->out == NULL) message.msg_iovlen += span_count;
    if (p->out == NULL || p->switch_due) {
        if (sendmsg(p->socket, &message, MSG_NOSIGNAL) < 0) {
            if (errno != EAGAIN && errno != ENOBUFS) return MUSTER_E_PEER;
            p->blocked = 1;
            box->host->change_fd(p->watch, MUSTER_PLUGIN_READABLE | MUSTER_PLUGIN_WRITABLE);
            return MUSTER_AGAIN;
        }
        if (p->out == NULL) return MUSTER_OK;
        p->switch_due = 0;
    }
    return put_in_ring(p, spans, span_count, (uint32_t)size);
}

/* ---- names --------------------------------------------------------------------------------------------------------
 */

static muster_status op_publish(void *self, const char *authority, uint64_t authority_bytes, uint64_t question,
                                char *out_authority, uint64_t *out_authority_bytes, muster_error *error) {
    mailbox *box = self;
    char name[NAME_BYTES] = {0};
    struct sockaddr_un address;
    (void)question; /* answered at once */
    if (authority_bytes == 0)
        snprintf(name, sizeof name, "p%ld", (long)getpid());
    else if (valid_name(authority, authority_bytes))
        memcpy(name, authority, authority_bytes);
    else
        return fail(error, MUSTER_E_ADDRESS, 0, "a name is 1 to 63 letters, digits, - and _", "");
    door *d = box->doors;
    while (d != NULL && strcmp(d->name, name) != 0) d = d->next;
    if (d == NULL) {
        muster_status status = MUSTER_OK;
        int probe = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        socklen_t length = address_of(box, name, &address);
        if (probe >= 0 && connect(probe, (const struct sockaddr *)&address, length) == 0)
            status = fail(error, MUSTER_E_EXISTS, 0, "another process has the name", name);
        if (probe >= 0) close(probe);
        if (status != MUSTER_OK) return status;
        unlink(address.sun_path); /* its process has ended without removing it */
        if ((d = calloc(1, sizeof *d)) == NULL) return MUSTER_E_NOMEM;
        d->box = box;
        memcpy(d->name, name, sizeof name);
        d->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (d->socket < 0 || bind(d->socket, (const struct sockaddr *)&address, length) != 0 ||
            listen(d->socket, 64) != 0 ||
            box->host->watch_fd(box->host, d->socket, MUSTER_PLUGIN_READABLE, door_ready, d, &d->watch) != MUSTER_OK) {
            status = fail(error, MUSTER_E_SYSTEM, errno, "cannot listen as", name);
            if (d->socket >= 0) close(d->socket);
            free(d);
            return status;
        }
        d->next = box->doors;
        box->doors = d;
    }
    d->users++;
    memcpy(out_authority, name, strlen(name));
    *out_authority_bytes = strlen(name);
    return MUSTER_OK;
}

static void op_withdraw(void *self, const char *authority, uint64_t authority_bytes) {
    mailbox *box = self;
    struct sockaddr_un address;
    for (door **at = &box->doors; *at != NULL; at = &(*at)->next) {
        door *d = *at;
        if (strlen(d->name) != authority_bytes || memcmp(d->name, authority, authority_bytes) != 0) continue;
        if (--d->users != 0) return;
        *at = d->next;
        address_of(box, d->name, &address);
        unlink(address.sun_path);
        box->host->unwatch_fd(d->watch);
        close(d->socket);
        free(d);
        return;
    }
}

/* ---- lifetime -----------------------------------------------------------------------------------------------------
 */

static muster_status op_start(void *self, muster_endpoint *endpoint, muster_error *error) {
    mailbox *box = self;
    struct stat folder;
    const char *tmp = getenv("TMPDIR");
    int bytes =
        snprintf(box->folder, sizeof box->folder, "%s/muster-mailbox-%ld", tmp != NULL ? tmp : "/tmp", (long)geteuid());
    box->endpoint = endpoint;
    if (bytes < 0 || (size_t)bytes + NAME_BYTES + 1 > sizeof((struct sockaddr_un *)0)->sun_path)
        return fail(error, MUSTER_E_LIMIT, 0, "the folder's name is too long:", box->folder);
    if (mkdir(box->folder, 0700) != 0 && errno != EEXIST)
        return fail(error, MUSTER_E_SYSTEM, errno, "make the folder", box->folder);
    if (stat(box->folder, &folder) != 0 || folder.st_uid != geteuid() || (folder.st_mode & 077) != 0)
        return fail(error, MUSTER_E_PERMISSION, 0, "the folder is open to others:", box->folder);
    box->segment = box->host->acquire_buffer(box->host);
    return box->segment != NULL ? MUSTER_OK : MUSTER_E_NOMEM;
}

/* Peers are discarded and names withdrawn by now. */
static void op_stop(void *self) {
    mailbox *box = self;
    while (box->peers != NULL) op_forget(box, box->peers->id); /* connected, without a first message */
    box->host->release_buffer(box->host, box->segment);
    if (box->folder[0] != '\0') rmdir(box->folder); /* fails if other sockets are in it */
    free(box);
}

static const muster_fabric_ops ops = {
    .struct_size = sizeof ops,
    .flags = MUSTER_PLUGIN_LOCAL,
    .message_bytes = MESSAGE_BYTES,
    .credit_bytes = CREDIT_BYTES,
    .start = op_start,
    .stop = op_stop,
    .publish = op_publish,
    .withdraw = op_withdraw,
    .resolve = op_resolve,
    .send = op_send,
    .authenticated = op_proved,
    .segment_shared = op_paired,
    .forget = op_forget,
};

MUSTER_API muster_status muster_plugin_v1(const muster_host *host, muster_error *error);

muster_status muster_plugin_v1(const muster_host *host, muster_error *error) {
    if (host->struct_size < sizeof *host)
        return fail(error, MUSTER_E_ABI, 0, "this library is older than", "the plug-in");
    mailbox *box = calloc(1, sizeof *box);
    if (box == NULL) return MUSTER_E_NOMEM;
    box->host = host;
    box->next_id = 1;
    return host->add_fabric(host, "mailbox", 7, &ops, box, error);
}
