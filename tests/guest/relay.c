// SPDX-License-Identifier: MIT
#include "relay.h"

#include "guest.h"

#include <pthread.h>
#include <stdatomic.h>

enum { most_ways = 16 };

// Bytes in one direction, from one pump to the other, on a thread of their own.
typedef struct way {
    relay *r;
    muster_stream *from, *to;
    atomic_int *ends_left; // of the connection; the last one releases both pumps
} way;

typedef struct connection {
    way ways[2];
    atomic_int ends_left;
} connection;

struct relay {
    muster_context *context;
    muster_queue *queue;
    relay_kind kind;
    void (*start_thread)(void *(*run)(void *), void *argument);
    atomic_ullong listening; // the request; 0: no listener
    atomic_int ended;
    pthread_mutex_t lock; // guards what follows
    pthread_cond_t changed;
    int threads; // alive
    int destroyed;
    atomic_int used;
    connection connections[most_ways];
};

static void begin_thread(relay *r, void *(*run)(void *), void *argument) {
    pthread_mutex_lock(&r->lock);
    r->threads++;
    pthread_mutex_unlock(&r->lock);
    r->start_thread(run, argument);
}

static void end_thread(relay *r) {
    pthread_mutex_lock(&r->lock);
    r->threads--;
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

static void *move(void *argument) {
    way *w = argument;
    relay *r = w->r;
    static _Thread_local char bytes[16384];
    for (;;) {
        size_t got = 0, sent = 0;
        muster_status status = muster_stream_read(w->from, bytes, sizeof bytes, -1, &got);
        if (status == MUSTER_OK) {
            status = muster_stream_write(w->to, bytes, got, -1, &sent);
            if (status == MUSTER_OK) continue;
            if (status == MUSTER_E_PEER) break; // it takes no more; what it has written goes the other way
        }
        if (status == MUSTER_E_END) status = muster_stream_finish(w->to);
        if (status != MUSTER_OK) {
            muster_stream_abort(w->to, 0, "the relay broke", 15);
            muster_stream_abort(w->from, 0, "the relay broke", 15);
        }
        break;
    }
    if (atomic_fetch_sub(w->ends_left, 1) == 1) {
        muster_stream_release(w->from);
        muster_stream_release(w->to);
    }
    end_thread(r);
    return NULL;
}

static void open_connection(relay *r, uint64_t request) {
    muster_stream *dialled, *accepted;
    const uint64_t listening = atomic_load(&r->listening);
    const int at = atomic_fetch_add(&r->used, 1);
    CHECK(at < most_ways);
    if (listening == 0) {
        muster_request_fail(r->queue, request, MUSTER_E_UNREACHABLE, NULL, 0);
        return;
    }
    muster_status status = muster_transport_incoming(r->queue, listening, NULL, 0, NULL, &accepted, NULL);
    if (status == MUSTER_OK && (status = muster_request_stream(r->queue, request, &dialled, NULL)) != MUSTER_OK) {
        muster_stream_abort(accepted, 0, "the relay broke", 15);
        muster_stream_release(accepted);
    }
    if (status != MUSTER_OK) {
        muster_request_fail(r->queue, request, status, NULL, 0);
        return;
    }
    connection *c = &r->connections[at];
    atomic_store(&c->ends_left, 2);
    c->ways[0] = (way){r, dialled, accepted, &c->ends_left};
    c->ways[1] = (way){r, accepted, dialled, &c->ends_left};
    for (int i = 0; i < 2; i++) begin_thread(r, move, &c->ways[i]);
}

static void listen_for(relay *r, uint64_t request) {
    atomic_store(&r->listening, request);
    if (muster_request_listening(r->queue, request, NULL, 0, NULL) == MUSTER_OK) return;
    atomic_store(&r->listening, 0);
    muster_request_fail(r->queue, request, MUSTER_E_NOMEM, NULL, 0);
}

static void over(relay *r, uint64_t request) {
    unsigned long long expected = request;
    atomic_compare_exchange_strong(&r->listening, &expected, 0);
}

// ---- as callbacks ----

static void on_open(void *self, uint64_t request, const char *address, uint64_t address_bytes) {
    CHECK(address_bytes > 8 && memcmp(address, "relay://", 8) == 0);
    open_connection(self, request);
}

static void on_listen(void *self, uint64_t request, const char *address, uint64_t address_bytes) {
    (void)address, (void)address_bytes;
    listen_for(self, request);
}

static void on_close(void *self, uint64_t request) {
    over(self, request);
}

static void on_destroy(void *self) {
    relay *r = self;
    atomic_store(&r->ended, 1);
    pthread_mutex_lock(&r->lock);
    r->destroyed = 1;
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

static void ignore(void *user, const muster_completion *entry, const muster_error *error) {
    (void)user, (void)entry, (void)error;
}

// ---- pulled ----

static void pull(relay *r) {
    muster_completion entry;
    if (muster_queue_next(r->queue, 10 * MS, &entry, NULL) != MUSTER_OK) return;
    if (entry.kind == MUSTER_REQUEST_OPEN) open_connection(r, entry.request);
    if (entry.kind == MUSTER_REQUEST_LISTEN) listen_for(r, entry.request);
    if (entry.kind == MUSTER_REQUEST_CLOSE || entry.kind == MUSTER_REQUEST_CANCEL) over(r, entry.request);
}

static void *serve(void *argument) {
    relay *r = argument;
    while (!atomic_load(&r->ended)) {
        if (r->kind == relay_pulled)
            pull(r);
        else
            muster_queue_dispatch(r->queue, 10 * MS, ignore, r, NULL);
    }
    end_thread(r);
    return NULL;
}

relay *relay_begin(muster_context *context, relay_kind kind, void (*start_thread)(void *(*run)(void *), void *argument),
                   muster_status *status) {
    static relay one; // no memory of the host's, which runs out, too
    relay *r = &one;
    memset(r, 0, sizeof *r);
    r->context = context;
    r->kind = kind;
    r->start_thread = start_thread;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    *status = muster_queue_create(context, NULL, &r->queue, NULL);
    if (*status != MUSTER_OK) return NULL;
    const muster_transport_ops ops = {.struct_size = sizeof ops,
                                      .flags = MUSTER_TRANSPORT_LOCAL |
                                               (kind == relay_any_thread ? MUSTER_TRANSPORT_ANY_THREAD : 0),
                                      .open = on_open,
                                      .listen = on_listen,
                                      .close = on_close,
                                      .cancel = on_close,
                                      .destroy = on_destroy};
    *status = kind == relay_pulled ? muster_transport_serve(context, "relay", 5, 0, r->queue, 0, NULL)
                                   : muster_transport_serve_ops(context, "relay", 5, &ops, r, r->queue, NULL);
    if (*status != MUSTER_OK) {
        muster_queue_release(r->queue);
        return NULL;
    }
    begin_thread(r, serve, r);
    return r;
}

void relay_end(relay *r) {
    muster_status status;
    while ((status = muster_transport_withdraw(r->context, "relay", 5)) == MUSTER_E_NOMEM) {
    }
    EXPECT(status, MUSTER_OK);
    // The last word is always said, whatever ran out: destroy(), where there are callbacks.
    if (r->kind == relay_pulled) on_destroy(r);
    pthread_mutex_lock(&r->lock); // alarm() is the deadline
    while (r->threads != 0 || !r->destroyed) pthread_cond_wait(&r->changed, &r->lock);
    pthread_mutex_unlock(&r->lock);
    muster_queue_release(r->queue);
}
