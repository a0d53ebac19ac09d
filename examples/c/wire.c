/* SPDX-License-Identifier: MIT */
/* A transport that the program serves has to answer two kinds of requests, and to move bytes between a descriptor and
 * the *pump*, the other end of the program's stream. The library does the rest inside those bytes: the proof of the
 * secret, credit, half-close, heartbeats. Everything here runs on one thread, in one poll() over two descriptors. */
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { pump_ready = 1, piece = 64 * 1024 };

struct wire {
    int fd, queue_fd;
    muster_context *context;
    muster_queue *queue;
    pthread_t thread;
    sem_t started;
    muster_status status; /* of start() */
    muster_error *error;
    muster_stream *pump;     /* NULL: no connection now */
    uint64_t listen_request; /* 0: no listener */
    int hungry, full;        /* the pump has no bytes, or accepts none, until it is ready again */
    char out[piece], in[piece];
    size_t out_at, out_size; /* bytes for the descriptor */
    size_t in_at, in_size;   /* bytes for the pump */
    int incoming_ended, ended;
};

/* ---- requests: callbacks, run by muster_queue_dispatch() below ---- */

static void take_pump(wire *w, muster_stream *pump) {
    w->pump = pump;
    w->hungry = w->full = 0;
    muster_stream_watch(pump, MUSTER_STREAM_READABLE | MUSTER_STREAM_WRITABLE, w->queue, pump_ready);
}

static void open_wire(void *self, uint64_t request, const char *address, uint64_t address_bytes) {
    wire *w = self;
    muster_stream *pump;
    (void)address, (void)address_bytes;
    if (w->pump != NULL)
        muster_request_fail(w->queue, request, MUSTER_E_BUSY, "a wire carries one connection", 29);
    else if (muster_request_stream(w->queue, request, &pump, NULL) == MUSTER_OK)
        take_pump(w, pump);
}

static void listen_wire(void *self, uint64_t request, const char *address, uint64_t address_bytes) {
    wire *w = self;
    w->listen_request = request;
    muster_request_listening(w->queue, request, address, address_bytes, NULL);
}

/* ---- bytes ---- */

static void close_pump(wire *w) {
    muster_stream_close(w->pump, 0);
    muster_stream_release(w->pump);
    w->pump = NULL;
}

/* From the pump to the descriptor. */
static void move_out(wire *w) {
    while (w->pump != NULL) {
        if (w->out_at == w->out_size) {
            w->out_at = w->out_size = 0;
            const muster_status status = muster_stream_read(w->pump, w->out, sizeof w->out, 0, &w->out_size);
            w->hungry = status == MUSTER_AGAIN;
            if (status < 0) close_pump(w); /* MUSTER_E_END: everything was sent */
            if (status != MUSTER_OK) return;
        }
        const ssize_t n = write(w->fd, w->out + w->out_at, w->out_size - w->out_at);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (n < 0 && errno == EPIPE) { /* the peer reads no more; what it has written still arrives, then the end */
            w->out_at = w->out_size;
            continue;
        }
        if (n < 0) {
            muster_stream_abort(w->pump, 0, "the wire broke", 14);
            close_pump(w);
            return;
        }
        w->out_at += (size_t)n;
    }
}

/* From the descriptor to the pump. The first bytes without a pump are a connection, if there is a listener. */
static void move_in(wire *w) {
    while (!w->incoming_ended) {
        if (w->in_at == w->in_size) {
            const ssize_t n = read(w->fd, w->in, sizeof w->in);
            if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
            w->in_at = 0;
            w->in_size = n > 0 ? (size_t)n : 0;
            if (n <= 0) {
                w->incoming_ended = 1;
                if (w->pump != NULL) muster_stream_finish(w->pump);
                return;
            }
        }
        muster_stream *pump;
        if (w->pump == NULL && w->listen_request != 0 &&
            muster_transport_incoming(w->queue, w->listen_request, NULL, 0, NULL, &pump, NULL) == MUSTER_OK)
            take_pump(w, pump);
        if (w->pump == NULL) return;
        size_t moved = 0;
        const muster_status status = muster_stream_write(w->pump, w->in + w->in_at, w->in_size - w->in_at, 0, &moved);
        w->in_at += moved;
        w->full = status == MUSTER_AGAIN;
        if (status < 0) w->in_at = w->in_size; /* the connection is over: the rest is dropped */
        if (status != MUSTER_OK) return;
    }
}

static void handle(void *user, const muster_completion *entry, const muster_error *error) {
    wire *w = user;
    (void)error;
    if (entry->kind == MUSTER_DONE_USER) w->ended = 1; /* wire_end() */
    if (entry->kind == MUSTER_EVENT_READY) w->hungry = w->full = 0;
}

static muster_status start(wire *w) {
    const muster_transport_ops ops = {
        .struct_size = sizeof ops, .flags = MUSTER_TRANSPORT_LOCAL, .open = open_wire, .listen = listen_wire};
    const muster_status status = muster_transport_serve_ops(w->context, "wire", 4, &ops, w, w->queue, w->error);
    return status < 0 ? status : muster_queue_fd(w->queue, &w->queue_fd);
}

/* The serving thread registers the transport, so the library knows which thread must not wait for it. */
static void *serve(void *user) {
    wire *w = user;
    sigset_t broken_pipe; /* a write to a descriptor whose other end is closed has to fail, not to end the program */
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken_pipe, NULL);
    w->status = start(w);
    sem_post(&w->started);
    while (w->status == MUSTER_OK && !w->ended) {
        struct pollfd fds[2] = {{.fd = w->queue_fd, .events = POLLIN}, {.fd = w->fd}};
        if (!w->incoming_ended && w->in_at == w->in_size) fds[1].events |= POLLIN;
        if (w->out_at != w->out_size) fds[1].events |= POLLOUT;
        if (fds[1].events == 0) fds[1].fd = -1;
        poll(fds, 2, -1);
        muster_queue_dispatch(w->queue, 0, handle, w, NULL);
        if (w->pump != NULL && !w->hungry) move_out(w);
        if (!w->full) move_in(w);
    }
    return NULL;
}

static void give_back(wire *w) {
    if (w->queue_fd >= 0) close(w->queue_fd);
    muster_queue_release(w->queue);
    sem_destroy(&w->started);
    close(w->fd);
    free(w);
}

wire *wire_serve(muster_context *context, int fd, muster_error *error) {
    wire *w = calloc(1, sizeof *w);
    if (w == NULL) return NULL;
    w->fd = fd;
    w->queue_fd = -1;
    w->context = context;
    w->error = error;
    sem_init(&w->started, 0, 0);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    if (muster_queue_create(context, NULL, &w->queue, error) < 0 || pthread_create(&w->thread, NULL, serve, w) != 0) {
        give_back(w);
        return NULL;
    }
    while (sem_wait(&w->started) != 0) {
    }
    if (w->status == MUSTER_OK) return w;
    pthread_join(w->thread, NULL);
    give_back(w);
    return NULL;
}

void wire_end(wire *w) {
    muster_queue_post(w->queue, 0, 0);
    pthread_join(w->thread, NULL);
    if (w->pump != NULL) close_pump(w);
    give_back(w);
}
