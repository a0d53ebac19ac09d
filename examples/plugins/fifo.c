/* SPDX-License-Identifier: MIT */
/* fifo:///folder - a connections plug-in over named pipes.
 *
 * A listener owns a folder (0700) with a FIFO in it, the door. A dialler makes two FIFOs of its own in that folder, one
 * for each direction, and writes their name into the door: a record of fixed size, which the kernel writes atomically.
 * The listener opens both and writes one byte; after that both sides send bytes. The library does everything else
 * inside these bytes: the secret, sealing, half-close, abort, heartbeats. */
#include <muster/plugin.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DOOR_NAME "door"
#define NAME_BYTES 32 /* of a record in the door, zeroes at its end */
#define PATH_BYTES 256
#define PIPE_BYTES (1 << 20)
#define LOOK_NS INT64_C(200000000)
#define SEGMENT_BYTES ((size_t)256 * 1024)

typedef struct plugin {
    const muster_host *host;
    unsigned count; /* of connections that were dialled here, for their names */
} plugin;

typedef struct listener {
    plugin *plugin;
    muster_acceptor *acceptor;
    char folder[PATH_BYTES];
    int door, keeper; /* keeper: a writer of this process, so that the door never reports a hang-up */
    muster_watch *watch;
} listener;

typedef struct connection {
    plugin *plugin;
    muster_link *link;
    int in, out;        /* -1 once closed */
    int waiting_out;    /* dialler: a reader of its outgoing FIFO, until the listener reads there; else -1 */
    int up;             /* connected was reported */
    muster_timer *look; /* dialler: until the listener answers */
    char door_path[PATH_BYTES];
    muster_watch *watch_in, *watch_out;
    char in_path[PATH_BYTES], out_path[PATH_BYTES]; /* dialler: to be removed */
    unsigned char *kept;                            /* a segment with bytes that the library has not accepted yet */
    size_t kept_begin, kept_end;
    int paused;
} connection;

/* ---- small helpers ------------------------------------------------------------------------------------------------
 */

static muster_status fail(muster_error *error, muster_status status, const char *what, const char *path) {
    int os_errno = status == MUSTER_E_ADDRESS ? 0 : errno;
    if (error != NULL) {
        error->os_errno = os_errno;
        snprintf(error->message, sizeof error->message, "%s %.150s%s%.40s", what, path, os_errno != 0 ? ": " : "",
                 os_errno != 0 ? strerror(os_errno) : "");
    }
    return status;
}

static muster_status status_of(int os_errno) {
    switch (os_errno) {
    case EACCES:
    case EPERM:
        return MUSTER_E_PERMISSION;
    case EMFILE:
    case ENFILE:
        return MUSTER_E_LIMIT;
    case ENOENT:
    case ENXIO:
    case ENOTDIR:
        return MUSTER_E_UNREACHABLE;
    default:
        return MUSTER_E_SYSTEM;
    }
}

/* "fifo:///folder": the folder. */
static int folder_of(const char *address, uint64_t address_bytes, char *out, muster_error *error) {
    static const char scheme[] = "fifo://";
    size_t head = sizeof scheme - 1;
    if (address_bytes <= head + 1 || address[head] != '/' || memchr(address, '?', address_bytes) != NULL) {
        fail(error, MUSTER_E_ADDRESS, "an address is fifo:///folder without options,", "not this");
        return 0;
    }
    if (address_bytes - head > PATH_BYTES - NAME_BYTES - 8) {
        fail(error, MUSTER_E_ADDRESS, "the path is too long:", "at most 215 bytes");
        return 0;
    }
    memcpy(out, address + head, address_bytes - head);
    out[address_bytes - head] = '\0';
    return 1;
}

/* Joins a folder and a name; both were checked to fit. */
static void join(char *out, const char *folder, const char *name, const char *suffix) {
    size_t folder_bytes = strlen(folder), name_bytes = strlen(name), suffix_bytes = strlen(suffix);
    memcpy(out, folder, folder_bytes);
    out[folder_bytes] = '/';
    memcpy(out + folder_bytes + 1, name, name_bytes);
    memcpy(out + folder_bytes + 1 + name_bytes, suffix, suffix_bytes + 1);
}

/* write() to a pipe without a reader raises SIGPIPE in this thread. In a context without a thread of its own this is a
 * thread of the host, so the signal is blocked, and consumed if this write has raised it. */
static ssize_t write_quietly(int fd, const void *data, size_t size) {
    sigset_t pipe_only, before, pending;
    ssize_t written;
    int os_errno;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
    written = write(fd, data, size);
    os_errno = errno;
    if (written < 0 && os_errno == EPIPE && !sigismember(&pending, SIGPIPE)) {
        const struct timespec now = {0, 0};
        while (sigtimedwait(&pipe_only, NULL, &now) < 0 && errno == EINTR) {
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = os_errno;
    return written;
}

/* ---- connections --------------------------------------------------------------------------------------------------
 */

static void read_ready(void *user, uint32_t events);
static void write_ready(void *user, uint32_t events);

static void close_in(connection *c) {
    const muster_host *host = c->plugin->host;
    host->unwatch_fd(c->watch_in);
    host->stop_timer(c->look);
    c->watch_in = NULL;
    c->look = NULL;
    if (c->in >= 0) close(c->in);
    c->in = -1;
    host->release_buffer(host, c->kept);
    c->kept = NULL;
}

static void close_out(connection *c) {
    c->plugin->host->unwatch_fd(c->watch_out);
    c->watch_out = NULL;
    if (c->out >= 0) close(c->out);
    if (c->waiting_out >= 0) close(c->waiting_out);
    c->out = c->waiting_out = -1;
}

static void lost(connection *c, muster_status status, int os_errno, const char *text) {
    close_in(c);
    c->plugin->host->lost(c->link, status, os_errno, text, strlen(text));
}

static connection *make_connection(plugin *p) {
    connection *c = calloc(1, sizeof *c);
    if (c == NULL) return NULL;
    c->plugin = p;
    c->in = c->out = c->waiting_out = -1;
    return c;
}

static void free_connection(connection *c) {
    close_in(c);
    close_out(c);
    if (c->in_path[0] != '\0') unlink(c->in_path);
    if (c->out_path[0] != '\0') unlink(c->out_path);
    free(c);
}

static muster_status watch_both(connection *c) {
    const muster_host *host = c->plugin->host;
    muster_status status = host->watch_fd(host, c->in, MUSTER_PLUGIN_READABLE, read_ready, c, &c->watch_in);
    if (status == MUSTER_OK) status = host->watch_fd(host, c->out, 0, write_ready, c, &c->watch_out);
    fcntl(c->out, F_SETPIPE_SZ, PIPE_BYTES); /* more bytes in flight, if the user may set that */
    return status;
}

/* Offers the bytes that the library did not accept the last time; 1: it has accepted all. */
static int deliver_kept(connection *c) {
    while (c->kept_begin != c->kept_end) {
        size_t size = c->kept_end - c->kept_begin;
        size_t taken = c->plugin->host->deliver(c->link, c->kept + c->kept_begin, size);
        c->kept_begin += taken;
        if (taken < size) {
            c->paused = 1;
            c->plugin->host->change_fd(c->watch_in, 0);
            return 0;
        }
    }
    c->kept_begin = c->kept_end = 0;
    return 1;
}

/* The first byte of the listener: it has opened both FIFOs, whose names are no longer needed. */
static void greet(connection *c) {
    const muster_host *host = c->plugin->host;
    host->stop_timer(c->look);
    c->look = NULL;
    close(c->waiting_out);
    c->waiting_out = -1;
    unlink(c->in_path);
    unlink(c->out_path);
    c->in_path[0] = c->out_path[0] = '\0';
    c->up = 1;
    host->connected(c->link);
}

/* A FIFO that the listener has not opened yet reports nothing: does the door still have a reader? */
static void look_at_door(void *user) {
    connection *c = user;
    int door = open(c->door_path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (door >= 0)
        close(door);
    else
        lost(c, MUSTER_E_UNREACHABLE, errno, "the listener is gone");
}

static void read_ready(void *user, uint32_t events) {
    connection *c = user;
    const muster_host *host = c->plugin->host;
    (void)events;
    if (c->kept == NULL && (c->kept = host->acquire_buffer(host)) == NULL) {
        lost(c, MUSTER_E_NOMEM, 0, "no memory to receive into");
        return;
    }
    for (int round = 0; round < 4; round++) { /* bounded, so that other descriptors are served, too */
        ssize_t got = read(c->in, c->kept, c->waiting_out >= 0 ? 1 : SEGMENT_BYTES);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) break;
        if (got <= 0) {
            if (got < 0)
                lost(c, MUSTER_E_PEER, errno, "reading failed");
            else if (!c->up)
                lost(c, MUSTER_E_UNREACHABLE, 0, "the listener is gone");
            else
                lost(c, MUSTER_E_END, 0, "");
            return;
        }
        if (c->waiting_out >= 0) {
            greet(c);
            continue;
        }
        c->kept_begin = 0;
        c->kept_end = (size_t)got;
        if (!deliver_kept(c)) return;
    }
    host->release_buffer(host, c->kept);
    c->kept = NULL;
}

static void write_ready(void *user, uint32_t events) {
    connection *c = user;
    (void)events;
    c->plugin->host->change_fd(c->watch_out, 0);
    c->plugin->host->writable(c->link);
}

static muster_status op_send(void *user, const muster_span *spans, uint32_t span_count, uint64_t *out_bytes) {
    connection *c = user;
    *out_bytes = 0;
    for (uint32_t i = 0; i < span_count; i++) {
        size_t done = 0;
        while (done < spans[i].size_bytes) {
            ssize_t written = write_quietly(c->out, (const char *)spans[i].data + done, spans[i].size_bytes - done);
            if (written > 0) {
                done += (size_t)written;
                *out_bytes += (uint64_t)written;
                continue;
            }
            if (written < 0 && errno == EINTR) continue;
            if (written < 0 && errno != EAGAIN) return MUSTER_E_PEER;
            c->plugin->host->change_fd(c->watch_out, MUSTER_PLUGIN_WRITABLE);
            return MUSTER_AGAIN;
        }
    }
    return MUSTER_OK;
}

static void op_resume(void *user) {
    connection *c = user;
    if (!c->paused || c->in < 0) return;
    c->paused = 0;
    if (c->kept == NULL || deliver_kept(c)) c->plugin->host->change_fd(c->watch_in, MUSTER_PLUGIN_READABLE);
}

/* Accepted bytes are in the pipe already, and a pipe can be read to its end after its writer has closed it. */
static void op_finish(void *user) {
    close_out(user);
}
static void op_close(void *user) {
    free_connection(user);
}
static void op_abort(void *user) {
    free_connection(user);
}

/* ---- dialling -----------------------------------------------------------------------------------------------------
 */

static muster_status op_dial(void *self, const char *address, uint64_t address_bytes, muster_link *link,
                             void **out_connection, muster_error *error) {
    plugin *p = self;
    char folder[PATH_BYTES], door_path[PATH_BYTES], record[NAME_BYTES] = {0};
    muster_status status = MUSTER_OK;
    if (!folder_of(address, address_bytes, folder, error)) return MUSTER_E_ADDRESS;
    join(door_path, folder, DOOR_NAME, "");
    int door = open(door_path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (door < 0) return fail(error, status_of(errno), "no process listens at", folder);
    connection *c = make_connection(p);
    if (c == NULL) {
        close(door);
        return MUSTER_E_NOMEM;
    }
    c->link = link;
    memcpy(c->door_path, door_path, sizeof door_path);
    snprintf(record, sizeof record, "c%ld-%u", (long)getpid(), ++p->count);
    join(c->in_path, folder, record, ".down");
    join(c->out_path, folder, record, ".up");
    if (mkfifo(c->in_path, 0600) != 0 || mkfifo(c->out_path, 0600) != 0 ||
        (c->in = open(c->in_path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)) < 0 ||
        (c->waiting_out = open(c->out_path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)) < 0 ||
        (c->out = open(c->out_path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0)
        status = fail(error, status_of(errno), "make a FIFO in", folder);
    else if ((status = watch_both(c)) == MUSTER_OK &&
             (status = p->host->start_timer(p->host, LOOK_NS, LOOK_NS, look_at_door, c, &c->look)) == MUSTER_OK &&
             write_quietly(door, record, sizeof record) != sizeof record)
        status = fail(error, errno == EAGAIN ? MUSTER_E_LIMIT : MUSTER_E_UNREACHABLE, "knock at", door_path);
    close(door);
    if (status != MUSTER_OK) {
        free_connection(c);
        return status;
    }
    *out_connection = c;
    return MUSTER_OK;
}

/* ---- listening ----------------------------------------------------------------------------------------------------
 */

/* Opens the two FIFOs that a dialler has made; invalid records are ignored. */
static void accept_one(listener *l, const char *name) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    plugin *p = l->plugin;
    char in_path[PATH_BYTES], out_path[PATH_BYTES], peer[PATH_BYTES + 64];
    if (name[0] == '\0' || memchr(name, '\0', NAME_BYTES) == NULL || strspn(name, letters) != strlen(name)) return;
    join(in_path, l->folder, name, ".up");
    join(out_path, l->folder, name, ".down");
    /* First the descriptors: if this fails, closing them notifies the dialler. */
    int in = open(in_path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    int out = in < 0 ? -1 : open(out_path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    connection *c = make_connection(p);
    if (c == NULL) {
        if (in >= 0) close(in);
        if (out >= 0) close(out);
        return;
    }
    c->in = in;
    c->out = out;
    struct stat in_stat, out_stat;
    snprintf(peer, sizeof peer, "fifo://%.200s#%.32s", l->folder, name);
    c->up = 1;
    if (c->out < 0 || fstat(c->in, &in_stat) != 0 || fstat(c->out, &out_stat) != 0 || !S_ISFIFO(in_stat.st_mode) ||
        !S_ISFIFO(out_stat.st_mode) || watch_both(c) != MUSTER_OK || write_quietly(c->out, "!", 1) != 1 ||
        p->host->accepted(l->acceptor, c, peer, strlen(peer), &c->link) != MUSTER_OK)
        free_connection(c);
}

static void door_ready(void *user, uint32_t events) {
    listener *l = user;
    char records[16][NAME_BYTES];
    (void)events;
    ssize_t got = read(l->door, records, sizeof records);
    for (ssize_t i = 0; i < got / NAME_BYTES; i++) accept_one(l, records[i]);
}

static muster_status op_listen(void *self, const char *address, uint64_t address_bytes, muster_acceptor *acceptor,
                               void **out_listener, char *out_address, uint64_t *out_address_bytes,
                               muster_error *error) {
    plugin *p = self;
    listener *l = calloc(1, sizeof *l);
    struct stat folder_stat;
    char door_path[PATH_BYTES];
    if (l == NULL) return MUSTER_E_NOMEM;
    l->plugin = p;
    l->acceptor = acceptor;
    l->door = l->keeper = -1;
    muster_status status = MUSTER_OK;
    if (!folder_of(address, address_bytes, l->folder, error)) {
        free(l);
        return MUSTER_E_ADDRESS;
    }
    join(door_path, l->folder, DOOR_NAME, "");
    if (mkdir(l->folder, 0700) != 0 && errno != EEXIST) {
        status = fail(error, errno == ENOENT ? MUSTER_E_NOT_FOUND : status_of(errno), "make the folder", l->folder);
    } else if (stat(l->folder, &folder_stat) != 0 || folder_stat.st_uid != geteuid() ||
               (folder_stat.st_mode & 077) != 0) {
        errno = 0;
        status = fail(error, MUSTER_E_PERMISSION, "the folder is open to others:", l->folder);
    } else if ((l->keeper = open(door_path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) >= 0) {
        errno = 0;
        status = fail(error, MUSTER_E_EXISTS, "a process listens already at", l->folder);
    } else {
        unlink(door_path); /* it has no reader: its process has ended without removing it */
        if (mkfifo(door_path, 0600) != 0 || (l->door = open(door_path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)) < 0 ||
            (l->keeper = open(door_path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0)
            status = fail(error, status_of(errno), "make the door", door_path);
        else
            status = p->host->watch_fd(p->host, l->door, MUSTER_PLUGIN_READABLE, door_ready, l, &l->watch);
    }
    if (status != MUSTER_OK) {
        if (l->door >= 0) close(l->door);
        if (l->keeper >= 0) close(l->keeper);
        free(l);
        return status;
    }
    memcpy(out_address, address, address_bytes);
    *out_address_bytes = address_bytes;
    *out_listener = l;
    return MUSTER_OK;
}

static void op_unlisten(void *self, void *user) {
    plugin *p = self;
    listener *l = user;
    char door_path[PATH_BYTES];
    p->host->unwatch_fd(l->watch);
    join(door_path, l->folder, DOOR_NAME, "");
    unlink(door_path);
    close(l->door);
    close(l->keeper);
    rmdir(l->folder); /* fails if the folder is not empty */
    free(l);
}

static void op_stop(void *self) {
    free(self);
}

/* ---- entry point --------------------------------------------------------------------------------------------------
 */

static const muster_connections_ops ops = {
    .struct_size = sizeof ops,
    .flags = MUSTER_PLUGIN_LOCAL,
    .stop = op_stop,
    .dial = op_dial,
    .listen = op_listen,
    .unlisten = op_unlisten,
    .send = op_send,
    .resume = op_resume,
    .finish = op_finish,
    .close = op_close,
    .abort = op_abort,
};

MUSTER_API muster_status muster_plugin_v1(const muster_host *host, muster_error *error);

muster_status muster_plugin_v1(const muster_host *host, muster_error *error) {
    if (host->struct_size < sizeof *host) return fail(error, MUSTER_E_ABI, "this library is older than", "the plug-in");
    plugin *p = calloc(1, sizeof *p);
    if (p == NULL) return MUSTER_E_NOMEM;
    p->host = host;
    return host->add_connections(host, "fifo", 4, &ops, p, error);
}
