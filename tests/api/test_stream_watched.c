// SPDX-License-Identifier: MIT
// A stream that a queue watches while another thread reads it, blocking, in pieces of a size that it knows: each piece
// arrives at once, and not with the next heartbeat.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <muster/queue.h>
#include <muster/stream.h>
#include <muster/transport.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { piece_bytes = 65536, rounds = 400 };
static const int64_t second = 1000000000;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Takes the events, as the thread of a host does.
static void *take_events(void *argument) {
    muster_queue *const queue = argument;
    muster_completion entry;
    while (muster_queue_next(queue, -1, &entry, NULL) == MUSTER_OK) {
    }
    return NULL;
}

static void *answer(void *argument) {
    muster_stream *const stream = argument;
    unsigned char *const data = calloc(1, piece_bytes);
    size_t moved;
    unsigned char one;
    while (muster_stream_read(stream, &one, 1, -1, &moved) == MUSTER_OK)
        if (muster_stream_write(stream, data, piece_bytes, -1, &moved) != MUSTER_OK) break;
    free(data);
    return NULL;
}

static void test_blocking_reads_beside_a_queue(void **state) {
    (void)state;
    muster_context *context;
    muster_queue *queue;
    muster_listener *listener;
    muster_stream *near_end, *far_end;
    char address[256];
    size_t bytes;
    setenv("MUSTER_SECRET", "the secret of a test", 1);
    assert_int_equal(muster_context_create(NULL, &context, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(context, NULL, &queue, NULL), MUSTER_OK);
    static const char at[] = "tcp://127.0.0.1:0?upgrade=no";
    assert_int_equal(muster_transport_listen(context, at, sizeof at - 1, NULL, &listener, NULL), MUSTER_OK);
    assert_int_equal(muster_listener_address(listener, address, sizeof address, &bytes), MUSTER_OK);
    assert_int_equal(muster_transport_dial(context, address, strlen(address), NULL, 20 * second, &near_end, NULL),
                     MUSTER_OK);
    assert_int_equal(muster_listener_accept(listener, 20 * second, &far_end, NULL), MUSTER_OK);
    assert_int_equal(muster_stream_watch(near_end, MUSTER_STREAM_READABLE | MUSTER_STREAM_ENDED, queue, 1), MUSTER_OK);
    pthread_t events, answers;
    assert_int_equal(pthread_create(&events, NULL, take_events, queue), 0);
    assert_int_equal(pthread_create(&answers, NULL, answer, far_end), 0);

    unsigned char *const data = malloc(piece_bytes);
    size_t moved;
    int slow = 0;
    for (int i = 0; i < rounds; i++) {
        const double from = now();
        assert_int_equal(muster_stream_write(near_end, "?", 1, -1, &moved), MUSTER_OK);
        assert_int_equal(muster_stream_read_into(near_end, data, piece_bytes, 0, -1, &moved), MUSTER_OK);
        if (now() - from > 0.15) slow++; // a heartbeat comes each half of a second
    }
    if (slow > 2) fail_msg("%d of %d reads took more than 150 ms", slow, rounds);

    muster_stream_release(near_end);
    pthread_join(answers, NULL);
    muster_queue_close(queue);
    pthread_join(events, NULL);
    muster_stream_release(far_end);
    muster_listener_release(listener);
    muster_queue_release(queue);
    muster_context_release(context);
    free(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_blocking_reads_beside_a_queue)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
