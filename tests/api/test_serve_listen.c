// SPDX-License-Identifier: MIT
// Listening at an address that the host serves: the listener is open when the call succeeds; and which registration and
// which cluster a request belongs to.
// ctest: quick timeout=120
#include <muster/muster.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)
#define MILLISECOND INT64_C(1000000)

static muster_context *context;
static muster_queue *requests, *done;
static pthread_t server;
static atomic_int cancelled; // CANCEL requests that the server has taken
static atomic_int held;      // LISTEN requests that the server does not answer

// Serves mine:// on a thread of its own, until the queue is closed.
static void *serve(void *argument) {
    (void)argument;
    muster_completion entry;
    while (muster_queue_next(requests, -1, &entry, NULL) == MUSTER_OK) {
        if (entry.kind == MUSTER_REQUEST_CANCEL) atomic_fetch_add(&cancelled, 1);
        if (entry.kind != MUSTER_REQUEST_LISTEN) continue;
        char text[64] = "";
        size_t bytes;
        muster_request_address(requests, entry.request, text, sizeof text, &bytes);
        if (strcmp(text, "mine://good") == 0)
            muster_request_listening(requests, entry.request, "mine://real:7", 13, NULL);
        else if (strcmp(text, "mine://bad") == 0)
            muster_request_fail(requests, entry.request, MUSTER_E_EXISTS, "the port is taken", 17);
        else
            atomic_fetch_add(&held, 1);
    }
    return NULL;
}

static int begin(void **state) {
    (void)state;
    atomic_store(&cancelled, 0);
    atomic_store(&held, 0);
    return muster_context_create(NULL, &context, NULL) != MUSTER_OK ||
           muster_queue_create(context, NULL, &requests, NULL) != MUSTER_OK ||
           muster_queue_create(context, NULL, &done, NULL) != MUSTER_OK;
}

static int begin_served(void **state) {
    return begin(state) || muster_transport_serve(context, "mine", 4, 0, requests, 0, NULL) != MUSTER_OK ||
           pthread_create(&server, NULL, serve, NULL) != 0;
}

static int end(void **state) {
    (void)state;
    muster_queue_release(done);
    muster_queue_release(requests);
    const muster_status closed = muster_context_close(context, 10 * SECOND);
    muster_context_release(context);
    return closed != MUSTER_OK;
}

static int end_served(void **state) {
    muster_queue_close(requests);
    pthread_join(server, NULL);
    return end(state);
}

static muster_status listen_at(const char *address, int64_t timeout_ns, muster_listener **out, muster_error *error) {
    muster_transport_config config;
    muster_config_init(&config, sizeof config);
    config.listen_timeout_ns = timeout_ns;
    return muster_transport_listen(context, address, strlen(address), &config, out, error);
}

static muster_status begin_to_listen(const char *address, uint64_t tag) {
    return muster_transport_listen_begin(context, address, strlen(address), NULL, done, tag, NULL);
}

static void assert_listens_at(muster_listener *listener, const char *address) {
    char text[128];
    size_t bytes;
    assert_int_equal(muster_listener_address(listener, text, sizeof text, &bytes), MUSTER_OK);
    assert_string_equal(text, address);
}

// Waits until the server has taken so many.
static void await(atomic_int *what, int count) {
    for (int turns = 0; atomic_load(what) < count; turns++) {
        assert_true(turns < 10000);
        nanosleep(&(struct timespec){0, MILLISECOND}, NULL);
    }
}

static muster_completion next(muster_queue *queue, muster_error *error) {
    muster_completion entry;
    assert_int_equal(muster_queue_next(queue, 10 * SECOND, &entry, error), MUSTER_OK);
    return entry;
}

static void test_a_listener_is_open_when_the_call_succeeds(void **state) {
    (void)state;
    muster_listener *listener = NULL;
    assert_int_equal(listen_at("mine://good", 0, &listener, NULL), MUSTER_OK);
    assert_listens_at(listener, "mine://real:7");
    muster_listener_release(listener);
    assert_int_equal(listen_at("mine://good?auth=none&seal=no", 0, &listener, NULL), MUSTER_OK);
    assert_listens_at(listener, "mine://real:7?auth=none&seal=no");
    muster_listener_release(listener);
}

static void test_a_listener_fails_as_the_host_says(void **state) {
    (void)state;
    muster_listener *listener = (muster_listener *)8;
    muster_error error;
    assert_int_equal(listen_at("mine://bad", 0, &listener, &error), MUSTER_E_EXISTS);
    assert_null(listener);
    assert_string_equal(error.message, "listen mine://bad: the port is taken");
}

static void test_a_host_that_does_not_answer_is_not_waited_for(void **state) {
    (void)state;
    muster_listener *listener = NULL;
    muster_error error;
    assert_int_equal(listen_at("mine://silent", 50 * MILLISECOND, &listener, &error), MUSTER_TIMEOUT);
    assert_null(listener);
    assert_true(error.message_bytes != 0);
    await(&cancelled, 1);
}

static void test_begun_listening_completes_with_the_listener(void **state) {
    (void)state;
    muster_error error;
    assert_int_equal(begin_to_listen("mine://good", 5), MUSTER_OK);
    muster_completion entry = next(done, &error);
    assert_int_equal(entry.kind, MUSTER_DONE_LISTEN);
    assert_int_equal(entry.tag, 5);
    assert_int_equal(entry.status, MUSTER_OK);
    assert_listens_at(entry.object, "mine://real:7");
    muster_listener_release(entry.object);
    assert_int_equal(begin_to_listen("mine://bad", 6), MUSTER_OK);
    entry = next(done, &error);
    assert_int_equal(entry.status, MUSTER_E_EXISTS);
    assert_null(entry.object);
    assert_string_equal(error.message, "listen mine://bad: the port is taken");
    assert_int_equal(begin_to_listen("tcp://127.0.0.1:0", 7), MUSTER_OK); // whatever serves the scheme
    entry = next(done, &error);
    assert_int_equal(entry.status, MUSTER_OK);
    muster_listener_release(entry.object);
    assert_int_equal(muster_transport_listen_begin(context, "no address", 10, NULL, done, 1, &error), MUSTER_E_ADDRESS);
    assert_int_equal(muster_transport_listen_begin(context, NULL, 0, NULL, done, 1, &error), MUSTER_E_ARG);
    assert_int_equal(muster_transport_listen_begin(context, "mine://good", 11, NULL, NULL, 1, &error), MUSTER_E_ARG);
}

static void test_begun_listening_can_be_cancelled(void **state) {
    (void)state;
    muster_error error;
    assert_int_equal(begin_to_listen("mine://silent", 5), MUSTER_OK);
    await(&held, 1);
    assert_int_equal(muster_queue_cancel_operation(done, 5), MUSTER_OK);
    assert_int_equal(next(done, &error).status, MUSTER_E_CANCELED);
    await(&cancelled, 1);
}

static void *listen_silently(void *argument) {
    muster_listener *listener;
    *(muster_status *)argument = listen_at("mine://silent", -1, &listener, NULL);
    return NULL;
}

static void test_waiting_ends_with_the_transport_or_by_cancel(void **state) {
    (void)state;
    for (int by_cancel = 1; by_cancel >= 0; by_cancel--) {
        pthread_t waiter;
        muster_status status = MUSTER_OK;
        const int before = atomic_load(&held);
        assert_int_equal(pthread_create(&waiter, NULL, listen_silently, &status), 0);
        await(&held, before + 1);
        if (by_cancel)
            assert_int_equal(muster_context_cancel(context), MUSTER_OK);
        else
            assert_int_equal(muster_transport_withdraw(context, "mine", 4), MUSTER_OK);
        pthread_join(waiter, NULL);
        assert_int_equal(status, by_cancel ? MUSTER_E_CANCELED : MUSTER_E_CLOSED);
    }
}

static void test_the_thread_that_serves_begins_to_listen(void **state) {
    (void)state;
    assert_int_equal(muster_transport_serve(context, "mine", 4, 0, requests, 0, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_post(requests, 1, 1), MUSTER_OK);
    next(requests, NULL); // from now on this thread serves
    muster_listener *listener;
    assert_int_equal(listen_at("mine://here", 0, &listener, NULL), MUSTER_E_WOULD_DEADLOCK);
    assert_int_equal(begin_to_listen("mine://here", 5), MUSTER_OK);
    const uint64_t id = next(requests, NULL).request;
    assert_int_equal(muster_request_listening(requests, id, NULL, 0, NULL), MUSTER_OK);
    muster_completion entry = next(done, NULL);
    assert_int_equal(entry.status, MUSTER_OK);
    assert_listens_at(entry.object, "mine://here");
    muster_listener_release(entry.object);
    entry = next(requests, NULL);
    assert_int_equal(entry.kind, MUSTER_REQUEST_CLOSE);
    assert_int_equal(entry.request, id);
}

static void test_a_cluster_opens_with_its_listener(void **state) {
    (void)state;
    muster_cluster_config config;
    muster_config_init(&config, sizeof config);
    config.listen = "mine://good";
    config.listen_bytes = 11;
    muster_member_info info;
    muster_cluster *cluster;
    assert_int_equal(muster_cluster_open(context, &config, &cluster, NULL), MUSTER_OK);
    assert_int_equal(muster_cluster_get_member(cluster, MUSTER_CLUSTER_MASTER, &info), MUSTER_OK);
    assert_string_equal(info.address, "mine://real:7");
    muster_cluster_release(cluster);
    assert_int_equal(muster_cluster_open_begin(context, &config, done, 9, NULL), MUSTER_OK);
    muster_completion entry = next(done, NULL);
    assert_int_equal(entry.kind, MUSTER_DONE_OPEN);
    assert_int_equal(entry.tag, 9);
    assert_int_equal(entry.status, MUSTER_OK);
    assert_int_equal(muster_cluster_get_member(entry.object, MUSTER_CLUSTER_MASTER, &info), MUSTER_OK);
    assert_string_equal(info.address, "mine://real:7");
    muster_cluster_release(entry.object);
    config.listen = "mine://bad";
    config.listen_bytes = 10;
    assert_int_equal(muster_cluster_open(context, &config, &cluster, NULL), MUSTER_E_EXISTS);
    assert_int_equal(muster_cluster_open_begin(context, &config, done, 9, NULL), MUSTER_OK);
    assert_int_equal(next(done, NULL).status, MUSTER_E_EXISTS);
}

// ---- whose request is it?

static void expect_request(int32_t kind, uint64_t tag, uint64_t *out_id) {
    const muster_completion entry = next(requests, NULL);
    assert_int_equal(entry.kind, kind);
    assert_int_equal(entry.tag, tag);
    if (out_id) *out_id = entry.request;
}

static void test_requests_have_the_tag_of_their_registration(void **state) {
    (void)state;
    uint64_t id;
    assert_int_equal(muster_transport_serve(context, "one", 3, 0, requests, 11, NULL), MUSTER_OK);
    assert_int_equal(muster_transport_serve(context, "two", 3, 0, requests, 12, NULL), MUSTER_OK);
    assert_int_equal(muster_store_serve(context, "keys", 4, requests, 13, NULL), MUSTER_OK);
    assert_int_equal(muster_rendezvous_serve(context, "ranks", 5, requests, 14, NULL), MUSTER_OK);
    const char *const schemes[] = {"two://x", "one://x"};
    for (uint64_t i = 0; i < 2; i++) {
        assert_int_equal(muster_transport_dial_begin(context, schemes[i], 7, NULL, -1, done, 1, NULL), MUSTER_OK);
        expect_request(MUSTER_REQUEST_OPEN, 12 - i, NULL);
        assert_int_equal(muster_queue_cancel_operation(done, 1), MUSTER_OK);
        expect_request(MUSTER_REQUEST_CANCEL, 12 - i, NULL);
        next(done, NULL);
        assert_int_equal(begin_to_listen(schemes[i], 2), MUSTER_OK);
        expect_request(MUSTER_REQUEST_LISTEN, 12 - i, &id);
        assert_int_equal(muster_request_listening(requests, id, NULL, 0, NULL), MUSTER_OK);
        muster_listener_release(next(done, NULL).object);
        expect_request(MUSTER_REQUEST_CLOSE, 12 - i, NULL);
    }
    assert_int_equal(muster_store_open_begin(context, "keys://x", 8, NULL, -1, done, 1, NULL), MUSTER_OK);
    expect_request(MUSTER_REQUEST_STORE, 13, NULL);
    assert_int_equal(muster_queue_cancel_operation(done, 1), MUSTER_OK);
    expect_request(MUSTER_REQUEST_CANCEL, 13, NULL);
    next(done, NULL);
    muster_rendezvous_config config;
    muster_config_init(&config, sizeof config);
    config.run_id = "run";
    config.run_id_bytes = 3;
    config.url = "ranks://x";
    config.url_bytes = 9;
    config.min = config.max = 1;
    assert_int_equal(muster_rendezvous_open_begin(context, &config, -1, done, 1, NULL), MUSTER_OK);
    expect_request(MUSTER_REQUEST_RENDEZVOUS, 14, NULL);
    assert_int_equal(muster_queue_cancel_operation(done, 1), MUSTER_OK);
    expect_request(MUSTER_REQUEST_CANCEL, 14, NULL);
    next(done, NULL);
}

static void test_one_queue_serves_the_managers_of_several_clusters(void **state) {
    (void)state;
    assert_int_equal(muster_manager_serve(context, "first", 5, 0, requests, 21, NULL), MUSTER_OK);
    assert_int_equal(muster_manager_serve(context, "second", 6, 0, requests, 22, NULL), MUSTER_OK);
    muster_cluster *clusters[2];
    for (uint64_t i = 0; i < 2; i++) {
        muster_cluster_config config;
        muster_config_init(&config, sizeof config);
        config.tag = 100 + i;
        assert_int_equal(muster_cluster_open(context, &config, &clusters[i], NULL), MUSTER_OK);
    }
    for (int i = 0; i < 4; i++) {
        const int which = i / 2, by = i % 2;
        muster_launch launch;
        muster_config_init(&launch, sizeof launch);
        launch.manager = by ? "second" : "first";
        launch.count = 1;
        assert_int_equal(muster_cluster_add(clusters[which], &launch, NULL, NULL), MUSTER_OK);
        uint64_t id;
        expect_request(MUSTER_REQUEST_MANAGER, by ? 22 : 21, &id);
        muster_manager_request what;
        muster_config_init(&what, sizeof what);
        assert_int_equal(muster_manager_request_read(requests, id, &what), MUSTER_OK);
        assert_ptr_equal(what.cluster, clusters[which]);
        assert_int_equal(what.cluster_tag, 100 + which);
        assert_int_equal(what.member, 1 + by); // the same numbers in both
        assert_int_equal(muster_manager_worker_failed(requests, id, what.member, MUSTER_E_LIMIT, NULL, 0, NULL),
                         MUSTER_OK);
    }
    for (int i = 0; i < 2; i++) muster_cluster_release(clusters[i]);
}

// ---- flags

static void test_a_transport_that_cannot_listen_is_not_asked_to(void **state) {
    (void)state;
    muster_error error;
    muster_listener *listener;
    assert_int_equal(muster_transport_serve(context, "mine", 4, MUSTER_TRANSPORT_ANY_THREAD, requests, 0, &error),
                     MUSTER_E_ARG);
    assert_int_equal(muster_transport_serve(context, "mine", 4, 1u << 20, requests, 0, &error), MUSTER_E_ARG);
    assert_int_equal(muster_transport_serve(context, "mine", 4, MUSTER_TRANSPORT_NO_LISTEN, requests, 0, NULL),
                     MUSTER_OK);
    assert_int_equal(begin_to_listen("mine://x", 1), MUSTER_OK);
    assert_int_equal(next(done, NULL).status, MUSTER_E_UNSUPPORTED);
    muster_completion entry;
    assert_int_equal(muster_queue_next(requests, 0, &entry, NULL), MUSTER_AGAIN);
    assert_int_equal(listen_at("mine://x", 0, &listener, &error), MUSTER_E_UNSUPPORTED);
}

// Moves the bytes of one pump to the other, until `accepted` has the text; returns whether it was unencrypted.
static int carry_in_the_clear(muster_stream *pumps[2], muster_stream *dialled, muster_stream **accepted,
                              muster_listener *listener, const char *text) {
    char seen[65536], got[64];
    size_t bytes = 0, moved, all = 0;
    int written = 0;
    for (int turns = 0; all < strlen(text); turns++) {
        assert_true(turns < 100000);
        for (int i = 0; i < 2; i++) {
            char piece[4096];
            if (muster_stream_read(pumps[i], piece, sizeof piece, 0, &moved) < 0 || moved == 0) continue;
            assert_true(bytes + moved <= sizeof seen);
            memcpy(seen + bytes, piece, moved);
            bytes += moved;
            assert_int_equal(muster_stream_write(pumps[1 - i], piece, moved, 0, &moved), MUSTER_OK);
        }
        if (!*accepted) muster_listener_accept(listener, 0, accepted, NULL);
        if (*accepted && !dialled) { // the dial has completed, too
            muster_completion entry;
            if (muster_queue_next(done, 0, &entry, NULL) == MUSTER_OK) dialled = entry.object;
        }
        if (dialled && !written) {
            written = 1;
            assert_int_equal(muster_stream_write(dialled, text, strlen(text), 0, &moved), MUSTER_OK);
        }
        if (*accepted && muster_stream_read(*accepted, got + all, sizeof got - all, 0, &moved) >= 0) all += moved;
        if (moved == 0) nanosleep(&(struct timespec){0, MILLISECOND / 10}, NULL);
    }
    muster_stream_release(dialled);
    return memmem(seen, bytes, text, strlen(text)) != NULL;
}

static void test_flags_say_what_need_not_be_sealed(void **state) {
    (void)state;
    const struct {
        uint32_t flags;
        const char *options;
        int clear;
    } cases[] = {{0, "", 0},
                 {MUSTER_TRANSPORT_LOCAL, "", 1},
                 {MUSTER_TRANSPORT_SEALS, "", 1},
                 {MUSTER_TRANSPORT_LOCAL, "?seal=yes", 0},
                 {MUSTER_TRANSPORT_SEALS, "?seal=yes", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char scheme[8], address[64];
        snprintf(scheme, sizeof scheme, "mine%zu", i);
        snprintf(address, sizeof address, "%s://x%s", scheme, cases[i].options);
        assert_int_equal(muster_transport_serve(context, scheme, 5, cases[i].flags, requests, 0, NULL), MUSTER_OK);
        assert_int_equal(begin_to_listen(address, 1), MUSTER_OK);
        uint64_t listening, dialling;
        expect_request(MUSTER_REQUEST_LISTEN, 0, &listening);
        assert_int_equal(muster_request_listening(requests, listening, NULL, 0, NULL), MUSTER_OK);
        muster_listener *const listener = next(done, NULL).object;
        assert_int_equal(
            muster_transport_dial_begin(context, address, strlen(address), NULL, 20 * SECOND, done, 1, NULL),
            MUSTER_OK);
        expect_request(MUSTER_REQUEST_OPEN, 0, &dialling);
        muster_stream *pumps[2], *accepted = NULL;
        assert_int_equal(muster_request_stream(requests, dialling, &pumps[0], NULL), MUSTER_OK);
        assert_int_equal(muster_transport_incoming(requests, listening, NULL, 0, NULL, &pumps[1], NULL), MUSTER_OK);
        assert_int_equal(carry_in_the_clear(pumps, NULL, &accepted, listener, "what goes by in the clear"),
                         cases[i].clear);
        muster_stream_release(accepted);
        for (int side = 0; side < 2; side++) muster_stream_release(pumps[side]);
        muster_listener_release(listener);
        muster_completion entry;
        for (int over = 0; over < 3;) over += next(requests, NULL).kind == MUSTER_REQUEST_CLOSE;
        assert_int_equal(muster_queue_next(requests, 0, &entry, NULL), MUSTER_AGAIN);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_listener_is_open_when_the_call_succeeds, begin_served, end_served),
        cmocka_unit_test_setup_teardown(test_a_listener_fails_as_the_host_says, begin_served, end_served),
        cmocka_unit_test_setup_teardown(test_a_host_that_does_not_answer_is_not_waited_for, begin_served, end_served),
        cmocka_unit_test_setup_teardown(test_begun_listening_completes_with_the_listener, begin_served, end_served),
        cmocka_unit_test_setup_teardown(test_begun_listening_can_be_cancelled, begin_served, end_served),
        cmocka_unit_test_setup_teardown(test_waiting_ends_with_the_transport_or_by_cancel, begin_served, end_served),
        cmocka_unit_test_setup_teardown(test_the_thread_that_serves_begins_to_listen, begin, end),
        cmocka_unit_test_setup_teardown(test_a_cluster_opens_with_its_listener, begin_served, end_served),
        cmocka_unit_test_setup_teardown(test_requests_have_the_tag_of_their_registration, begin, end),
        cmocka_unit_test_setup_teardown(test_one_queue_serves_the_managers_of_several_clusters, begin, end),
        cmocka_unit_test_setup_teardown(test_a_transport_that_cannot_listen_is_not_asked_to, begin, end),
        cmocka_unit_test_setup_teardown(test_flags_say_what_need_not_be_sealed, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
