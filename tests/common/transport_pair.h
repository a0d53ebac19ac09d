// SPDX-License-Identifier: MIT
// Two contexts of one process that share a secret as two processes would, connected in every way there is.
#ifndef TRANSPORT_PAIR_H
#define TRANSPORT_PAIR_H

#include <muster/transport.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)
#define MILLISECOND INT64_C(1000000)

static char folder[64];

// One case per way the bytes can go.
typedef struct way {
    const char *name, *listen, *dial_options;
    uint32_t flags; // of both contexts
} way;

static const way ways[] = {
    {"tcp", "tcp://127.0.0.1:0?upgrade=no", "?upgrade=no", 0},
    {"tcp6", "tcp://[::1]:0?upgrade=no", "?upgrade=no", 0},
    {"tcp by name", "tcp://localhost:0?upgrade=no", "?upgrade=no", 0},
    {"tcp sealed", "tcp://127.0.0.1:0?seal=yes", "?seal=yes", 0},
    {"tcp upgraded", "tcp://127.0.0.1:0", "", 0},
    {"tcp external", "tcp://127.0.0.1:0?upgrade=no", "?upgrade=no", MUSTER_CONTEXT_EXTERNAL},
    {"unix", "unix://%s/socket?upgrade=no", "?upgrade=no", 0},
    {"unix abstract", "unix://@muster-test-%d?upgrade=no", "?upgrade=no", 0},
    {"unix upgraded", "unix://%s/socket", "", 0},
    {"unix sealed", "unix://%s/socket?seal=yes", "?seal=yes", 0},
    {"shm", "shm://test-%d", "", 0},
    {"shm external", "shm://test-%d", "", MUSTER_CONTEXT_EXTERNAL},
};
enum { way_count = sizeof ways / sizeof *ways };

// Drives an external context, as a host's own loop would.
typedef struct driver {
    muster_context *context;
    pthread_t thread;
    atomic_int stop;
} driver;

static inline void *drive(void *arg) {
    driver *d = arg;
    while (!atomic_load(&d->stop)) muster_context_progress(d->context, 10 * MILLISECOND);
    return NULL;
}

typedef struct pair {
    muster_context *server, *client;
    driver drivers[2];
    muster_listener *listener;
    char address[512];
    muster_stream *near, *far; // dialled, accepted
} pair;

static int64_t heartbeat_ns = 50 * MILLISECOND; // of the contexts that are made from now on

static inline muster_context *make_context(uint32_t flags, const char *secret) {
    muster_context_config config = {.struct_size = sizeof config, .flags = flags, .secret = secret};
    config.secret_bytes = strlen(secret);
    config.heartbeat_ns = heartbeat_ns;
    config.silent_ns = 8 * heartbeat_ns;
    muster_context *context = NULL;
    assert_int_equal(muster_context_create(&config, &context, NULL), MUSTER_OK);
    return context;
}

#define SECRET "a secret of the test job"

static inline void listen_at(pair *p, const char *form, const muster_transport_config *config) {
    char text[256];
    if (strstr(form, "%s"))
        snprintf(text, sizeof text, form, folder);
    else
        snprintf(text, sizeof text, form, (int)getpid());
    muster_error error = {0};
    const muster_status status = muster_transport_listen(p->server, text, strlen(text), config, &p->listener, &error);
    if (status != MUSTER_OK) fail_msg("%s: %s", text, error.message);
    size_t bytes;
    assert_int_equal(muster_listener_address(p->listener, p->address, sizeof p->address, &bytes), MUSTER_OK);
    assert_int_equal(strlen(p->address), bytes);
}

static inline void open_pair(pair *p, const way *w) {
    p->server = p->drivers[0].context = make_context(w->flags, SECRET);
    p->client = p->drivers[1].context = make_context(w->flags, SECRET);
    for (int i = 0; i < 2 && (w->flags & MUSTER_CONTEXT_EXTERNAL); i++)
        assert_int_equal(pthread_create(&p->drivers[i].thread, NULL, drive, &p->drivers[i]), 0);
}

static inline void dial_and_accept(pair *p, const way *w, const muster_transport_config *config) {
    muster_error error = {0};
    muster_status status =
        muster_transport_dial(p->client, p->address, strlen(p->address), config, 20 * SECOND, &p->near, &error);
    if (status != MUSTER_OK) fail_msg("%s: dial: %s %s", w->name, muster_status_name(status), error.message);
    status = muster_listener_accept(p->listener, 20 * SECOND, &p->far, &error);
    if (status != MUSTER_OK) fail_msg("%s: accept: %s %s", w->name, muster_status_name(status), error.message);
}

static inline void connect_pair(pair *p, const way *w) {
    open_pair(p, w);
    listen_at(p, w->listen, NULL);
    strcat(p->address, w->dial_options);
    dial_and_accept(p, w, NULL);
}

static inline void drop_pair(pair *p) {
    muster_stream_release(p->near);
    muster_stream_release(p->far);
    muster_listener_release(p->listener);
    if (muster_context_close(p->client, 5 * SECOND) != MUSTER_OK) fail_msg("the client's context did not end in time");
    if (muster_context_close(p->server, 5 * SECOND) != MUSTER_OK) fail_msg("the server's context did not end in time");
    for (int i = 0; i < 2; i++) {
        if (!p->drivers[i].thread) continue;
        atomic_store(&p->drivers[i].stop, 1);
        pthread_join(p->drivers[i].thread, NULL);
    }
    muster_context_release(p->client);
    muster_context_release(p->server);
}

// A test case that runs its body in every way.
typedef void (*body_fn)(const way *w, pair *p);
typedef struct every_way {
    body_fn body;
} every_way;
#define EACH_WAY(name)                                                                                                 \
    {                                                                                                                  \
        "test_" #name, run_each_way, NULL, NULL, &(every_way) {                                                        \
            name                                                                                                       \
        }                                                                                                              \
    }

static inline void run_each_way(void **state) {
    const every_way *each = *state;
    for (int i = 0; i < way_count; i++) {
        pair p = {0};
        if (getenv("SAY")) fprintf(stderr, "%s\n", ways[i].name);
        connect_pair(&p, &ways[i]);
        each->body(&ways[i], &p);
        drop_pair(&p);
    }
}

static inline void put(muster_stream *stream, const char *text) {
    size_t bytes = 0;
    assert_int_equal(muster_stream_write(stream, text, strlen(text), 5 * SECOND, &bytes), MUSTER_OK);
    assert_int_equal(bytes, strlen(text));
}

static inline void expect(muster_stream *stream, const char *text) {
    char got[256] = "";
    size_t bytes = 0;
    assert_int_equal(muster_stream_read_into(stream, got, strlen(text), 0, 5 * SECOND, &bytes), MUSTER_OK);
    assert_string_equal(got, text);
}

static inline muster_status read_one(muster_stream *stream, int64_t timeout_ns) {
    char byte;
    size_t bytes = 0;
    return muster_stream_read(stream, &byte, 1, timeout_ns, &bytes);
}

static inline unsigned char pattern(uint64_t position) {
    return (unsigned char)(position * 2654435761u >> 13);
}

static inline int make_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/muster-test-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static inline int drop_folder(void **state) {
    (void)state;
    return rmdir(folder);
}

#endif
