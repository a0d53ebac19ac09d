// SPDX-License-Identifier: MIT
// ctest: quick timeout=120
/* Listeners whose connections are pushed to the library, by a plug-in or by a host that serves the transport, under
 * connections that never prove the secret: honest dials succeed meanwhile, within a second each, and the number of
 * those that are held is bounded. The flood of sockets is in test_listener_flood.c. */
#include "transport_pair.h"

#include <muster/queue.h>
#include <muster/serve.h>

#include <stdbool.h>

enum { run_ms = 2000, per_ms = 1, kept = 512 };

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static uint64_t failed_handshakes(muster_context *context) {
    muster_context_stats stats = {0};
    assert_int_equal(muster_context_get_stats(context, &stats), MUSTER_OK);
    return stats.handshakes_failed;
}

// Dials for a while, one after the other; each is accepted and carries a word.
static void dial_for_a_while(muster_context *from, muster_listener *listener, const char *address) {
    const int64_t start = now_ms();
    int dials = 0, failed = 0;
    int64_t slowest = 0;
    char why[256] = "";
    while (now_ms() - start < run_ms) {
        const int64_t begun = now_ms();
        muster_stream *near = NULL, *far = NULL;
        muster_error error = {0};
        if (muster_transport_dial(from, address, strlen(address), NULL, SECOND, &near, &error) != MUSTER_OK) {
            failed++;
            snprintf(why, sizeof why, "%s", error.message);
        } else {
            assert_int_equal(muster_listener_accept(listener, 10 * SECOND, &far, &error), MUSTER_OK);
            put(near, "word");
            expect(far, "word");
            muster_stream_release(near);
            muster_stream_release(far);
        }
        dials++;
        if (now_ms() - begun > slowest) slowest = now_ms() - begun;
    }
    print_message("%d honest dials, the slowest %d ms; %d failed %s\n", dials, (int)slowest, failed, why);
    assert_int_equal(failed, 0);
    assert_true(dials > 3);
    assert_true(slowest <= 1000);
}

// ---- a plug-in

static void plugin_under_flood(const char *address) {
    muster_context *context = make_context(0, SECRET);
    muster_listener *listener = NULL;
    muster_error error = {0};
    if (muster_transport_listen(context, address, strlen(address), NULL, &listener, &error) != MUSTER_OK)
        fail_msg("%s", error.message);
    dial_for_a_while(context, listener, address);
    print_message("%d handshakes ended without a proof\n", (int)failed_handshakes(context));
    assert_true(failed_handshakes(context) >= run_ms / 4); // it was a flood
    muster_listener_release(listener);
    assert_int_equal(muster_context_close(context, 5 * SECOND), MUSTER_OK);
    muster_context_release(context);
}

static void test_a_plugin_is_given_silent_connections(void **state) {
    (void)state;
    plugin_under_flood("flood://1/silent");
}

static void test_a_plugin_is_given_many_in_one_call(void **state) {
    (void)state;
    plugin_under_flood("flood://3/silent");
}

static void test_a_plugin_is_given_connections_that_greet(void **state) {
    (void)state;
    // 1,000 per second that prove nothing would need 200 places while they are too young to be displaced.
    muster_context_config config = {.struct_size = sizeof config, .secret = SECRET, .secret_bytes = strlen(SECRET)};
    config.max_unauthenticated = 256;
    muster_context *context = NULL;
    assert_int_equal(muster_context_create(&config, &context, NULL), MUSTER_OK);
    muster_listener *listener = NULL;
    static const char address[] = "flood://1/hello";
    assert_int_equal(muster_transport_listen(context, address, strlen(address), NULL, &listener, NULL), MUSTER_OK);
    dial_for_a_while(context, listener, address);
    print_message("%d handshakes ended without a proof\n", (int)failed_handshakes(context));
    assert_true(failed_handshakes(context) >= run_ms / 4);
    muster_listener_release(listener);
    assert_int_equal(muster_context_close(context, 5 * SECOND), MUSTER_OK);
    muster_context_release(context);
}

// ---- a transport that the host serves

typedef struct host {
    muster_context *listening, *dialling;
    muster_queue *requests, *dials;
    uint64_t listener;
    atomic_int listens, over;
    atomic_uint made, refused, most;
} host;

// Two ends that the host has joined; each of two threads carries one direction, and the last one releases both.
typedef struct joint {
    muster_stream *ends[2];
    atomic_int begun, users;
} joint;

static void *carry(void *argument) {
    joint *j = argument;
    muster_stream *const from = j->ends[atomic_fetch_add(&j->begun, 1)], *const to = from == j->ends[0] ? j->ends[1]
                                                                                                        : j->ends[0];
    unsigned char bytes[4096];
    size_t moved = 0, written = 0;
    while (muster_stream_read(from, bytes, sizeof bytes, 10 * SECOND, &moved) == MUSTER_OK)
        if (muster_stream_write(to, bytes, moved, 10 * SECOND, &written) != MUSTER_OK) break;
    muster_stream_finish(to);
    if (atomic_fetch_sub(&j->users, 1) != 1) return NULL;
    muster_stream_release(from);
    muster_stream_release(to);
    free(j);
    return NULL;
}

static void join_ends(muster_stream *near, muster_stream *far) {
    joint *j = calloc(1, sizeof *j);
    j->ends[0] = near;
    j->ends[1] = far;
    atomic_store(&j->users, 2);
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, carry, j), 0);
        pthread_detach(thread);
    }
}

// Requests of the listening side; then those of the dialling side, each joined to an incoming connection.
static void *serve_requests(void *argument) {
    host *h = argument;
    while (!atomic_load(&h->over)) {
        muster_completion request;
        while (muster_queue_next(h->requests, 0, &request, NULL) == MUSTER_OK) {
            if (request.kind != MUSTER_REQUEST_LISTEN) continue;
            h->listener = request.request;
            assert_int_equal(muster_request_listening(h->requests, request.request, NULL, 0, NULL), MUSTER_OK);
            atomic_store(&h->listens, 1);
        }
        if (muster_queue_next(h->dials, MILLISECOND, &request, NULL) != MUSTER_OK) continue;
        if (request.kind != MUSTER_REQUEST_OPEN) continue;
        muster_stream *near = NULL, *far = NULL;
        if (muster_transport_incoming(h->requests, h->listener, "10.0.0.2:1", 10, NULL, &far, NULL) != MUSTER_OK) {
            muster_request_fail(h->dials, request.request, MUSTER_E_LIMIT, "refused", 7);
            continue;
        }
        if (muster_request_stream(h->dials, request.request, &near, NULL) == MUSTER_OK)
            join_ends(near, far);
        else
            muster_stream_release(far);
    }
    return NULL;
}

static void *flood_served(void *argument) {
    host *h = argument;
    muster_stream *silent[kept] = {0};
    const int64_t start = now_ms();
    unsigned tries = 0;
    while (!atomic_load(&h->over)) {
        for (const int64_t due = (now_ms() - start) * per_ms; tries < due; tries++) {
            muster_stream **const one = &silent[tries % kept];
            muster_stream_release(*one);
            *one = NULL;
            const muster_status status =
                muster_transport_incoming(h->requests, h->listener, "10.0.0.1:1", 10, NULL, one, NULL);
            atomic_fetch_add(status == MUSTER_OK ? &h->made : &h->refused, 1);
        }
        nanosleep(&(struct timespec){0, 1000000}, NULL); // until the next ones are due
    }
    for (int i = 0; i < kept; i++) muster_stream_release(silent[i]);
    return NULL;
}

static void test_a_served_transport_is_given_silent_connections(void **state) {
    (void)state;
    static host h;
    static const char address[] = "mine://here";
    const muster_queue_config wide = {.struct_size = sizeof wide, .capacity = 8192};
    h = (host){.listening = make_context(0, SECRET), .dialling = make_context(0, SECRET)};
    assert_int_equal(muster_queue_create(h.listening, &wide, &h.requests, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(h.dialling, &wide, &h.dials, NULL), MUSTER_OK);
    assert_int_equal(muster_transport_serve(h.listening, "mine", 4, 0, h.requests, 0, NULL), MUSTER_OK);
    assert_int_equal(muster_transport_serve(h.dialling, "mine", 4, 0, h.dials, 0, NULL), MUSTER_OK);
    pthread_t serving, flooding;
    assert_int_equal(pthread_create(&serving, NULL, serve_requests, &h), 0);
    muster_listener *listener = NULL;
    muster_error error = {0};
    if (muster_transport_listen(h.listening, address, strlen(address), NULL, &listener, &error) != MUSTER_OK)
        fail_msg("%s", error.message);
    while (!atomic_load(&h.listens)) sched_yield();
    assert_int_equal(pthread_create(&flooding, NULL, flood_served, &h), 0);
    dial_for_a_while(h.dialling, listener, address);
    atomic_store(&h.over, 1);
    pthread_join(flooding, NULL);
    pthread_join(serving, NULL);
    print_message("%u silent connections announced, %u refused\n", atomic_load(&h.made), atomic_load(&h.refused));
    assert_true(atomic_load(&h.made) >= run_ms * per_ms / 2);
    muster_listener_release(listener);
    muster_context_close(h.dialling, SECOND);
    muster_context_close(h.listening, SECOND);
    muster_queue_release(h.requests);
    muster_queue_release(h.dials);
    muster_context_release(h.dialling);
    muster_context_release(h.listening);
}

// A burst in one moment: some are held beyond the limit, and the rest is refused.
static void test_a_burst_is_bounded(void **state) {
    (void)state;
    muster_context *context = make_context(0, SECRET);
    const muster_queue_config wide = {.struct_size = sizeof wide, .capacity = 8192};
    muster_queue *requests = NULL;
    assert_int_equal(muster_queue_create(context, &wide, &requests, NULL), MUSTER_OK);
    assert_int_equal(muster_transport_serve(context, "mine", 4, 0, requests, 0, NULL), MUSTER_OK);
    muster_queue *done = NULL;
    assert_int_equal(muster_queue_create(context, NULL, &done, NULL), MUSTER_OK);
    assert_int_equal(muster_transport_listen_begin(context, "mine://here", 11, NULL, done, 1, NULL), MUSTER_OK);
    muster_completion request, opened;
    assert_int_equal(muster_queue_next(requests, 10 * SECOND, &request, NULL), MUSTER_OK);
    assert_int_equal(request.kind, MUSTER_REQUEST_LISTEN);
    assert_int_equal(muster_request_listening(requests, request.request, NULL, 0, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_next(done, 10 * SECOND, &opened, NULL), MUSTER_OK);
    assert_int_equal(opened.kind, MUSTER_DONE_LISTEN);
    assert_int_equal(opened.status, MUSTER_OK);
    muster_listener *const listener = opened.object;
    enum { limit = 64, beyond = 256, burst = 1000 };
    static muster_stream *silent[burst];
    int held = 0, refused = 0;
    const int64_t start = now_ms();
    for (int i = 0; i < burst; i++) {
        const muster_status status =
            muster_transport_incoming(requests, request.request, NULL, 0, NULL, &silent[i], NULL);
        if (status == MUSTER_OK)
            held++;
        else if (status == MUSTER_E_LIMIT)
            refused++;
    }
    const int64_t took = now_ms() - start;
    assert_int_equal(held + refused, burst);
    // Each 10 ms those that are older make place down to the limit.
    assert_in_range(held, limit + beyond, limit + beyond + (took / 10 + 1) * beyond);
    // Down to the limit they go without another connection: each that is displaced gets the refusal, and its end. Once
    // the host has closed its pump the request that closes the connection follows.
    int gone = 0, closed = 0;
    for (const int64_t until = now_ms() + 20000; closed < held - limit && now_ms() < until;) {
        for (int i = 0; i < burst; i++) {
            char bytes[64];
            size_t size = 0;
            muster_status status = MUSTER_OK;
            while (silent[i] && (status = muster_stream_read(silent[i], bytes, sizeof bytes, 0, &size)) == MUSTER_OK) {
            }
            if (!silent[i] || status >= 0) continue;
            muster_stream_release(silent[i]);
            silent[i] = NULL;
            gone++;
        }
        while (muster_queue_next(requests, 10 * SECOND / 1000, &request, NULL) == MUSTER_OK)
            closed += request.kind == MUSTER_REQUEST_CLOSE;
    }
    assert_int_equal(gone, held - limit);
    assert_int_equal(closed, held - limit);
    for (int i = 0; i < burst; i++) muster_stream_release(silent[i]);
    muster_listener_release(listener);
    muster_context_close(context, SECOND);
    muster_queue_release(done);
    muster_queue_release(requests);
    muster_context_release(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_plugin_is_given_silent_connections),
        cmocka_unit_test(test_a_plugin_is_given_many_in_one_call),
        cmocka_unit_test(test_a_plugin_is_given_connections_that_greet),
        cmocka_unit_test(test_a_served_transport_is_given_silent_connections),
        cmocka_unit_test(test_a_burst_is_bounded),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
