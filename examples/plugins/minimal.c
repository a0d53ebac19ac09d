/* SPDX-License-Identifier: MIT */
/* minimal:///path - the smallest transport that passes `muster-transport-check`: a socket in the file system. The
 * library does the rest inside the bytes: it proves the secret, opens and ends streams, and watches peers. Built with
 * the target Muster::plugin of CMake, or `pkg-config --cflags muster-plugin`. */
#include <muster/inline/plugin.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

typedef struct channel { /* a connection, or a listener */
    const muster_host *host;
    muster_link *link;
    muster_acceptor *acceptor;
    muster_watch *watch;
    int fd;
    uint32_t events; /* it is watched for */
    size_t begin, end;
    unsigned char kept[64 * 1024]; /* received; from begin to end the library has not accepted it yet */
    struct sockaddr_un at;
} channel;

/* On failure the descriptor is closed. */
static channel *make(const muster_host *host, int fd, void (*ready)(void *user, uint32_t events)) {
    channel *const c = calloc(1, sizeof *c);
    if (c != NULL) {
        c->host = host, c->fd = fd, c->events = MUSTER_PLUGIN_READABLE;
        if (host->watch_fd(host, fd, c->events, ready, c, &c->watch) == MUSTER_OK) return c;
    }
    close(fd), free(c);
    return NULL;
}

static void end(void *user) { /* what send_spans() accepted is in the socket, and still arrives */
    channel *const c = user;
    c->host->unwatch_fd(c->watch);
    close(c->fd), free(c);
}

static void watch(channel *c, uint32_t event, int is_on) {
    const uint32_t events = is_on ? c->events | event : c->events & ~event;
    if (events != c->events) c->host->change_fd(c->watch, c->events = events);
}

/* Delivers what was received, and reads no more until the library accepts all of it. */
static void deliver(void *user) {
    channel *const c = user;
    c->begin += c->host->deliver(c->link, c->kept + c->begin, c->end - c->begin);
    watch(c, MUSTER_PLUGIN_READABLE, c->begin == c->end);
}

static void ready(void *user, uint32_t events) {
    channel *const c = user;
    if (events & MUSTER_PLUGIN_WRITABLE) {
        watch(c, MUSTER_PLUGIN_WRITABLE, 0);
        c->host->writable(c->link);
    }
    if (events == MUSTER_PLUGIN_WRITABLE || c->begin != c->end) return;
    const ssize_t got = recv(c->fd, c->kept, sizeof c->kept, 0);
    if (got > 0) {
        c->begin = 0, c->end = (size_t)got;
        deliver(c);
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        watch(c, MUSTER_PLUGIN_READABLE, 0);
        c->host->lost(c->link, got == 0 ? MUSTER_E_END : MUSTER_E_PEER, got == 0 ? 0 : errno, "", 0);
    }
}

static muster_status send_spans(void *user, const muster_span *spans, uint32_t count, uint64_t *out_bytes) {
    channel *const c = user;
    *out_bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        const ssize_t sent = send(c->fd, spans[i].data, spans[i].size_bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) return MUSTER_E_PEER;
        *out_bytes += sent > 0 ? (uint64_t)sent : 0;
        if (sent == (ssize_t)spans[i].size_bytes) continue;
        watch(c, MUSTER_PLUGIN_WRITABLE, 1);
        return MUSTER_AGAIN;
    }
    return MUSTER_OK;
}

/* A socket for minimal:///path; -1: `error` says why. */
static int open_socket(const char *address, uint64_t bytes, struct sockaddr_un *at, muster_error *error) {
    const uint64_t begin = 10; /* after "minimal://" */
    if (bytes <= begin || address[begin] != '/' || bytes - begin >= sizeof at->sun_path) {
        muster_plugin_fail_inline(error, MUSTER_E_ADDRESS, 0, "an address is minimal:///path, of at most 107 bytes");
        return -1;
    }
    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(at->sun_path, address + begin, bytes - begin);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) muster_plugin_fail_inline(error, MUSTER_E_LIMIT, errno, "no socket");
    return fd;
}

static muster_status dial(void *self, const char *address, uint64_t bytes, muster_link *link, void **out,
                          muster_error *error) {
    struct sockaddr_un at;
    const int fd = open_socket(address, bytes, &at, error);
    if (fd < 0) return error->status;
    if (connect(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        muster_plugin_fail_inline(error, MUSTER_E_UNREACHABLE, errno, "no process listens at that path");
        return close(fd), error->status;
    }
    channel *const c = make(self, fd, ready);
    if (c == NULL) return MUSTER_E_NOMEM;
    c->link = link, *out = c;
    return c->host->connected(link), MUSTER_OK;
}

static void accept_one(void *user, uint32_t events) {
    channel *const l = user;
    const int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    channel *const c = fd < 0 || !events ? NULL : make(l->host, fd, ready);
    if (c != NULL && l->host->accepted(l->acceptor, c, "a process of this host", 22, &c->link) != MUSTER_OK) end(c);
}

static muster_status listen_at(void *self, const char *address, uint64_t bytes, muster_acceptor *acceptor, void **out,
                               char *out_address, uint64_t *out_bytes, muster_error *error) {
    struct sockaddr_un at;
    const int fd = open_socket(address, bytes, &at, error);
    if (fd < 0) return error->status;
    if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 128) != 0) {
        const muster_status status = errno == EADDRINUSE ? MUSTER_E_EXISTS : MUSTER_E_SYSTEM;
        muster_plugin_fail_inline(error, status, errno, "the path cannot be bound");
        return close(fd), status;
    }
    channel *const l = make(self, fd, accept_one);
    if (l == NULL) return unlink(at.sun_path), MUSTER_E_NOMEM;
    l->acceptor = acceptor, l->at = at, *out = l;
    memcpy(out_address, address, *out_bytes = bytes);
    return MUSTER_OK;
}

static void unlisten(void *self, void *user) {
    if (self != NULL) unlink(((channel *)user)->at.sun_path);
    end(user);
}

static const muster_connections_ops ops = {sizeof ops,          MUSTER_PLUGIN_LOCAL,  .dial = dial,
                                           .listen = listen_at, .unlisten = unlisten, .send = send_spans,
                                           .resume = deliver,   .close = end,         .abort = end};

MUSTER_API muster_status muster_plugin_v1(const muster_host *host, muster_error *error) {
    return host->add_connections(host, "minimal", 7, &ops, (void *)host, error);
}
