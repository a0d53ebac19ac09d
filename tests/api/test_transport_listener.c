// SPDX-License-Identifier: MIT
// Waiting for connections: cancelled, closed, watched, ended with the context; in one process.
// ctest: quick timeout=120
#include "transport_failure.h"

#include "asleep.h"

typedef struct acceptor {
    muster_listener *listener;
    pthread_t thread;
    atomic_int number, over;
} acceptor;

static void *accept_one(void *arg) {
    acceptor *a = arg;
    muster_stream *stream = NULL;
    atomic_store(&a->number, gettid());
    const muster_status status = muster_listener_accept(a->listener, 20 * SECOND, &stream, NULL);
    atomic_store(&a->over, 1);
    if (stream) muster_stream_release(stream);
    return (void *)(intptr_t)status;
}

static void start_accepting(acceptor *a) {
    assert_int_equal(pthread_create(&a->thread, NULL, accept_one, a), 0);
    while (!atomic_load(&a->number)) sched_yield();
    until_asleep(atomic_load(&a->number), &a->over);
}

static void test_accept_can_be_cancelled_and_closed(void **state) {
    (void)state;
    for (int closing = 0; closing < 2; closing++) {
        muster_listener *listener;
        assert_int_equal(listen_only("tcp://127.0.0.1:0", &listener, NULL), MUSTER_OK);
        muster_stream *stream;
        assert_int_equal(muster_listener_accept(listener, 0, &stream, NULL), MUSTER_AGAIN);
        assert_int_equal(muster_listener_accept(listener, 10 * MILLISECOND, &stream, NULL), MUSTER_TIMEOUT);
        acceptor waiting = {.listener = listener};
        start_accepting(&waiting);
        if (closing) assert_int_equal(muster_listener_close(listener), MUSTER_OK);
        void *result = NULL;
        for (;;) {
            if (!closing) assert_int_equal(muster_listener_cancel(listener), MUSTER_OK);
            struct timespec soon;
            clock_gettime(CLOCK_REALTIME, &soon);
            soon.tv_sec += closing ? 10 : 0;
            soon.tv_nsec += 5000000;
            if (soon.tv_nsec >= 1000000000) soon.tv_nsec -= 1000000000, soon.tv_sec++;
            if (pthread_timedjoin_np(waiting.thread, &result, &soon) == 0) break;
            assert_false(closing);
        }
        assert_int_equal((intptr_t)result, closing ? MUSTER_E_CLOSED : MUSTER_E_CANCELED);
        muster_listener_release(listener);
    }
}

static void test_a_watched_listener_tells_of_connections(void **state) {
    (void)state;
    muster_queue *queue;
    muster_listener *listener;
    assert_int_equal(muster_queue_create(context, NULL, &queue, NULL), MUSTER_OK);
    assert_int_equal(listen_only("shm://watched", &listener, NULL), MUSTER_OK);
    assert_int_equal(muster_listener_watch(listener, queue, 9), MUSTER_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(muster_transport_dial_begin(context, "shm://watched", 13, NULL, 5 * SECOND, queue, 5, NULL),
                         MUSTER_OK);
        int ready = 0, dialled = 0;
        while (!ready || !dialled) {
            muster_completion entry;
            assert_int_equal(muster_queue_next(queue, 5 * SECOND, &entry, NULL), MUSTER_OK);
            if (entry.kind == MUSTER_DONE_DIAL) {
                assert_int_equal(entry.tag, 5);
                assert_int_equal(entry.status, MUSTER_OK);
                muster_stream_release(entry.object);
                dialled = 1;
            } else {
                assert_int_equal(entry.kind, MUSTER_EVENT_READY);
                assert_int_equal(entry.tag, 9);
                ready = 1;
            }
        }
        muster_stream *stream;
        assert_int_equal(muster_listener_accept(listener, 0, &stream, NULL), MUSTER_OK);
        muster_stream_release(stream);
        assert_int_equal(muster_listener_accept(listener, 0, &stream, NULL), MUSTER_AGAIN);
    }
    muster_context *other = make_context(0, SECRET);
    muster_queue *foreign;
    assert_int_equal(muster_queue_create(other, NULL, &foreign, NULL), MUSTER_OK);
    assert_int_equal(muster_listener_watch(listener, foreign, 9), MUSTER_E_ARG);
    muster_queue_release(foreign);
    muster_context_release(other);
    assert_int_equal(muster_listener_watch(listener, NULL, 0), MUSTER_OK);
    muster_listener_release(listener);
    muster_queue_release(queue);
}

typedef struct closing {
    muster_context *context;
    int fd; // where the dials arrive
} closing;

static void *close_context(void *arg) {
    const closing *c = arg;
    const int callers[2] = {accept(c->fd, NULL, NULL), accept(c->fd, NULL, NULL)}; // both dials are under way
    muster_context_close(c->context, SECOND);
    for (int i = 0; i < 2; i++) close(callers[i]);
    return NULL;
}

static void test_closing_the_context_ends_dials_and_accepts(void **state) {
    (void)state;
    char address[64], message[256];
    const int fd = silent_socket(address);
    muster_context *brief = make_context(0, SECRET);
    muster_queue *queue;
    muster_listener *listener;
    assert_int_equal(muster_queue_create(brief, NULL, &queue, NULL), MUSTER_OK);
    assert_int_equal(muster_transport_listen(brief, "tcp://:0", 8, NULL, &listener, NULL), MUSTER_OK);
    assert_int_equal(muster_transport_dial_begin(brief, address, strlen(address), NULL, -1, queue, 3, NULL), MUSTER_OK);
    acceptor waiting = {.listener = listener};
    start_accepting(&waiting);
    closing end = {brief, fd};
    pthread_t closer;
    assert_int_equal(pthread_create(&closer, NULL, close_context, &end), 0);
    assert_int_equal(dial(brief, address, -1, message), MUSTER_E_CANCELED);
    pthread_join(closer, NULL);
    void *result;
    pthread_join(waiting.thread, &result);
    assert_int_equal((intptr_t)result, MUSTER_E_CLOSED);
    muster_completion entry;
    assert_int_equal(muster_queue_next(queue, 5 * SECOND, &entry, NULL), MUSTER_OK);
    assert_int_equal(entry.status, MUSTER_E_CANCELED);
    assert_int_equal(dial(brief, address, SECOND, message), MUSTER_E_CLOSED);
    muster_listener *late;
    assert_int_equal(muster_transport_listen(brief, "tcp://:0", 8, NULL, &late, NULL), MUSTER_E_CLOSED);
    assert_int_equal(muster_transport_listen(brief, "inproc://x", 10, NULL, &late, NULL), MUSTER_E_CLOSED);
    muster_listener_release(listener);
    muster_queue_release(queue);
    muster_context_release(brief);
    close(fd);
}

static void test_inproc_ends_know_each_other(void **state) {
    (void)state;
    muster_listener *listener;
    const muster_transport_config theirs = {.struct_size = sizeof theirs, .hello = "listener", .hello_bytes = 8};
    const muster_transport_config ours = {.struct_size = sizeof ours, .hello = "dialer", .hello_bytes = 6};
    assert_int_equal(muster_transport_listen(context, "inproc://here", 13, &theirs, &listener, NULL), MUSTER_OK);
    muster_stream *near, *far;
    assert_int_equal(muster_transport_dial(context, "inproc://here", 13, &ours, SECOND, &near, NULL), MUSTER_OK);
    assert_int_equal(muster_listener_accept(listener, SECOND, &far, NULL), MUSTER_OK);
    char text[32] = "";
    size_t bytes;
    assert_int_equal(muster_transport_hello(near, text, sizeof text, &bytes), MUSTER_OK);
    assert_string_equal(text, "listener");
    assert_int_equal(muster_transport_hello(far, text, sizeof text, &bytes), MUSTER_OK);
    assert_memory_equal(text, "dialer", 6);
    put(near, "through");
    expect(far, "through");
    muster_stream_release(near);
    assert_int_equal(read_one(far, SECOND), MUSTER_E_END);
    muster_stream_release(far);
    muster_listener_release(listener);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accept_can_be_cancelled_and_closed),
        cmocka_unit_test(test_a_watched_listener_tells_of_connections),
        cmocka_unit_test(test_closing_the_context_ends_dials_and_accepts),
        cmocka_unit_test(test_inproc_ends_know_each_other),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
