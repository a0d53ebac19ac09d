// SPDX-License-Identifier: MIT
// What transport.h promises, for every built-in scheme: between two contexts of one process, which share a secret as
// two processes would.
// ctest: quick timeout=120
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

static void *drive(void *arg) {
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

static muster_context *make_context(uint32_t flags, const char *secret) {
    muster_context_config config = {.struct_size = sizeof config, .flags = flags, .secret = secret};
    config.secret_bytes = strlen(secret);
    config.heartbeat_ns = 50 * MILLISECOND;
    config.silent_ns = 400 * MILLISECOND;
    muster_context *context = NULL;
    assert_int_equal(muster_context_create(&config, &context, NULL), MUSTER_OK);
    return context;
}

#define SECRET "a secret of the test job"

static void listen_at(pair *p, const char *form, const muster_transport_config *config) {
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

static void connect_pair(pair *p, const way *w) {
    p->server = p->drivers[0].context = make_context(w->flags, SECRET);
    p->client = p->drivers[1].context = make_context(w->flags, SECRET);
    for (int i = 0; i < 2 && (w->flags & MUSTER_CONTEXT_EXTERNAL); i++)
        assert_int_equal(pthread_create(&p->drivers[i].thread, NULL, drive, &p->drivers[i]), 0);
    listen_at(p, w->listen, NULL);
    strcat(p->address, w->dial_options);
    muster_error error = {0};
    muster_status status =
        muster_transport_dial(p->client, p->address, strlen(p->address), NULL, 20 * SECOND, &p->near, &error);
    if (status != MUSTER_OK) fail_msg("%s: dial: %s %s", w->name, muster_status_name(status), error.message);
    status = muster_listener_accept(p->listener, 20 * SECOND, &p->far, &error);
    if (status != MUSTER_OK) fail_msg("%s: accept: %s %s", w->name, muster_status_name(status), error.message);
}

static void drop_pair(pair *p) {
    muster_stream_release(p->near);
    muster_stream_release(p->far);
    muster_listener_release(p->listener);
    muster_context_close(p->client, SECOND);
    muster_context_close(p->server, SECOND);
    for (int i = 0; i < 2; i++) {
        if (!p->drivers[i].thread) continue;
        atomic_store(&p->drivers[i].stop, 1);
        pthread_join(p->drivers[i].thread, NULL);
    }
    muster_context_release(p->client);
    muster_context_release(p->server);
}

#define EACH_WAY(body)                                                                                                 \
    for (int index_ = 0; index_ < way_count; index_++) {                                                               \
        const way *w = &ways[index_];                                                                                  \
        pair p = {0};                                                                                                  \
        connect_pair(&p, w);                                                                                           \
        body;                                                                                                          \
        drop_pair(&p);                                                                                                 \
    }

static unsigned char pattern(uint64_t position) {
    return (unsigned char)(position * 2654435761u >> 13);
}

// ---- bytes ----------------------------------------------------------------------------------------------------------

static void test_a_word_goes_each_way(void **state) {
    (void)state;
    EACH_WAY({
        char got[8] = "";
        size_t bytes = 0;
        assert_int_equal(muster_stream_write(p.near, "hello", 5, SECOND, &bytes), MUSTER_OK);
        assert_int_equal(muster_stream_read_into(p.far, got, 5, 0, 5 * SECOND, &bytes), MUSTER_OK);
        assert_memory_equal(got, "hello", 5);
        assert_int_equal(muster_stream_write(p.far, "world", 5, SECOND, &bytes), MUSTER_OK);
        assert_int_equal(muster_stream_read_into(p.near, got, 5, 0, 5 * SECOND, &bytes), MUSTER_OK);
        assert_memory_equal(got, "world", 5);
    });
}

static void test_same_host_links_move_to_shared_memory(void **state) {
    (void)state;
    EACH_WAY({
        muster_context_stats stats[2];
        muster_context_get_stats(p.client, &stats[0]);
        muster_context_get_stats(p.server, &stats[1]);
        const uint64_t wanted = strstr(w->name, "upgraded") != NULL;
        if (stats[0].upgrades != wanted || stats[1].upgrades != wanted || stats[0].handshakes_ok != 1)
            fail_msg("%s: %d and %d upgrades", w->name, (int)stats[0].upgrades, (int)stats[1].upgrades);
    });
}

typedef struct job {
    muster_stream *stream;
    uint64_t bytes, piece;
    muster_status status;
} job;

static void *send_all(void *arg) {
    job *j = arg;
    unsigned char *data = malloc(j->piece);
    for (uint64_t at = 0; at < j->bytes && j->status >= 0;) {
        const uint64_t k = j->bytes - at < j->piece ? j->bytes - at : j->piece;
        for (uint64_t i = 0; i < k; i++) data[i] = pattern(at + i);
        size_t moved = 0;
        j->status = muster_stream_write(j->stream, data, k, 20 * SECOND, &moved);
        at += moved;
    }
    free(data);
    if (j->status == MUSTER_OK) j->status = muster_stream_finish(j->stream);
    return NULL;
}

static void *receive_all(void *arg) {
    job *j = arg;
    unsigned char *data = malloc(j->piece);
    uint64_t at = 0;
    while (j->status >= 0) {
        size_t moved = 0;
        j->status = muster_stream_read(j->stream, data, j->piece, 20 * SECOND, &moved);
        for (size_t i = 0; i < moved; i++)
            if (data[i] != pattern(at + i)) {
                j->status = MUSTER_E_INTERNAL;
                break;
            }
        at += moved;
        if (j->status > 0) j->status = MUSTER_E_INTERNAL;
    }
    j->bytes = at;
    free(data);
    return NULL;
}

// Both directions at once, in pieces of several sizes; then the half-close.
static void transfer(const way *w, pair *p, uint64_t bytes, uint64_t out_piece, uint64_t in_piece) {
    job jobs[4] = {{.stream = p->near, .bytes = bytes, .piece = out_piece},
                   {.stream = p->far, .bytes = bytes, .piece = out_piece},
                   {.stream = p->near, .piece = in_piece},
                   {.stream = p->far, .piece = in_piece}};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i < 2 ? send_all : receive_all, &jobs[i]), 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++)
        if (jobs[i].status != (i < 2 ? MUSTER_OK : MUSTER_E_END) || jobs[i].bytes != bytes)
            fail_msg("%s: job %d ended with %s after %llu bytes", w->name, i, muster_status_name(jobs[i].status),
                     (unsigned long long)jobs[i].bytes);
}

static void test_bytes_arrive_whole_and_in_order(void **state) {
    (void)state;
    const struct {
        uint64_t bytes, out, in;
    } sizes[] = {{40000, 1, 1},           {1 << 20, 64, 64},      {8 << 20, 65536, 65536}, {24 << 20, 5 << 20, 3 << 20},
                 {6 << 20, 100, 1 << 20}, {6 << 20, 3 << 20, 100}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        EACH_WAY(transfer(w, &p, sizes[s].bytes, sizes[s].out, sizes[s].in));
}

static int make_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/muster-test-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int drop_folder(void **state) {
    (void)state;
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_word_goes_each_way),
        cmocka_unit_test(test_same_host_links_move_to_shared_memory),
        cmocka_unit_test(test_bytes_arrive_whole_and_in_order),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
