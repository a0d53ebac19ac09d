// SPDX-License-Identifier: MIT
// A transport that this program serves, `relay:`: it copies the bytes between the two ends of each connection.
#ifndef RELAY_H
#define RELAY_H

#include <muster/serve.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { relay_listeners = 64 };

typedef struct relay {
    muster_context *context;
    muster_queue *requests;
    pthread_t server;
    struct {
        uint64_t request; // 0: free
        char address[256];
    } listeners[relay_listeners]; // of the server's thread
} relay;

typedef struct relay_connection {
    muster_stream *ends[2];
    atomic_int users; // directions that are being copied
} relay_connection;

static inline void relay_copy(relay_connection *c, int from) {
    char bytes[65536];
    size_t got = 0, put = 0;
    muster_status status = MUSTER_OK;
    while (status == MUSTER_OK) {
        status = muster_stream_read(c->ends[from], bytes, sizeof bytes, -1, &got);
        if (got != 0 && muster_stream_write(c->ends[1 - from], bytes, got, -1, &put) != MUSTER_OK)
            status = MUSTER_E_PEER;
    }
    if (status == MUSTER_E_END)
        muster_stream_finish(c->ends[1 - from]);
    else
        for (int i = 0; i < 2; i++) muster_stream_abort(c->ends[i], 0, NULL, 0); // both directions end
    if (atomic_fetch_sub(&c->users, 1) != 1) return;
    for (int i = 0; i < 2; i++) muster_stream_release(c->ends[i]);
    free(c);
}
static void *relay_there(void *connection) {
    relay_copy(connection, 0);
    return NULL;
}
static void *relay_back(void *connection) {
    relay_copy(connection, 1);
    return NULL;
}

static inline void relay_connect(relay *r, uint64_t request, const char *address) {
    muster_error error;
    for (int i = 0; i < relay_listeners; i++) {
        if (r->listeners[i].request == 0 || strcmp(r->listeners[i].address, address) != 0) continue;
        relay_connection *const c = calloc(1, sizeof *c);
        if (muster_transport_incoming(r->requests, r->listeners[i].request, NULL, 0, NULL, &c->ends[1], &error) !=
            MUSTER_OK) {
            free(c);
            continue;
        }
        if (muster_request_stream(r->requests, request, &c->ends[0], &error) != MUSTER_OK) {
            muster_stream_release(c->ends[1]);
            free(c);
            return;
        }
        atomic_store(&c->users, 2);
        pthread_t threads[2];
        if (pthread_create(&threads[0], NULL, relay_there, c) != 0 ||
            pthread_create(&threads[1], NULL, relay_back, c) != 0)
            abort();
        pthread_detach(threads[0]);
        pthread_detach(threads[1]);
        return;
    }
    muster_request_fail(r->requests, request, MUSTER_E_UNREACHABLE, "no listener there", 17);
}

static void *relay_serve(void *self) {
    relay *const r = self;
    muster_completion entry;
    muster_error error;
    while (muster_queue_next(r->requests, -1, &entry, &error) == MUSTER_OK) {
        char address[256];
        size_t bytes = 0;
        if (entry.kind == MUSTER_REQUEST_OPEN || entry.kind == MUSTER_REQUEST_LISTEN)
            if (muster_request_address(r->requests, entry.request, address, sizeof address, &bytes) != MUSTER_OK)
                continue;
        if (entry.kind == MUSTER_REQUEST_OPEN) relay_connect(r, entry.request, address);
        for (int i = 0; i < relay_listeners; i++) {
            if (entry.kind == MUSTER_REQUEST_CLOSE && r->listeners[i].request == entry.request)
                r->listeners[i].request = 0;
            if (entry.kind != MUSTER_REQUEST_LISTEN || r->listeners[i].request != 0) continue;
            r->listeners[i].request = entry.request;
            strcpy(r->listeners[i].address, address);
            muster_request_listening(r->requests, entry.request, NULL, 0, &error);
            break;
        }
    }
    return NULL;
}

// From now on `relay://name` is an address of this context.
static inline muster_status relay_begin(relay *r, muster_context *context) {
    memset(r, 0, sizeof *r);
    r->context = context;
    muster_status status = muster_queue_create(context, NULL, &r->requests, NULL);
    if (status == MUSTER_OK) status = muster_transport_serve(context, "relay", 5, 0, r->requests, 0, NULL);
    if (status == MUSTER_OK && pthread_create(&r->server, NULL, relay_serve, r) != 0) status = MUSTER_E_LIMIT;
    return status;
}
// After the context was closed: its queues then end.
static inline void relay_end(relay *r) {
    pthread_join(r->server, NULL);
    muster_queue_release(r->requests);
}

#endif
