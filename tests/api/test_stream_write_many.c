/* SPDX-License-Identifier: MIT */
// ctest: quick timeout=60
/* One block to many streams: all of it to each, whatever becomes of the others. */
#include "transport_pair.h"

#include <stdbool.h>

enum { many = 6, size = 3000000 };

static unsigned char data[size];

typedef struct reader {
    muster_stream *stream;
    pthread_t thread;
    size_t stop_at, got;
    bool right;
} reader;

static void *read_to_end(void *argument) {
    reader *r = argument;
    static _Thread_local unsigned char piece[70000];
    r->right = true;
    while (r->got < r->stop_at) {
        size_t moved = 0;
        const size_t left = r->stop_at - r->got;
        if (muster_stream_read(r->stream, piece, left < sizeof piece ? left : sizeof piece, 20 * SECOND, &moved) != 0)
            break;
        if (memcmp(piece, data + r->got, moved) != 0) r->right = false;
        r->got += moved;
    }
    return NULL;
}

static muster_context *context;
static muster_stream *near[many], *far[many];

static void open_all(void) {
    for (size_t i = 0; i < size; i++) data[i] = pattern(i);
    context = make_context(0, SECRET);
    for (int i = 0; i < many; i++)
        assert_int_equal(muster_stream_pair(context, NULL, &near[i], &far[i], NULL), MUSTER_OK);
}

static void close_all(void) {
    for (int i = 0; i < many; i++) {
        muster_stream_release(near[i]);
        muster_stream_release(far[i]);
    }
    assert_int_equal(muster_context_close(context, SECOND), MUSTER_OK);
    muster_context_release(context);
}

static void test_each_gets_all_of_it(void **state) {
    (void)state;
    open_all();
    reader readers[many];
    for (int i = 0; i < many; i++) {
        readers[i] = (reader){.stream = far[i], .stop_at = size};
        pthread_create(&readers[i].thread, NULL, read_to_end, &readers[i]);
    }
    muster_status statuses[many];
    size_t bytes[many];
    assert_int_equal(muster_stream_write_many(near, many, data, size, 20 * SECOND, statuses, bytes), MUSTER_OK);
    for (int i = 0; i < many; i++) {
        pthread_join(readers[i].thread, NULL);
        assert_true(readers[i].right);
        assert_int_equal(readers[i].got, size);
        assert_int_equal(bytes[i], size);
        assert_int_equal(statuses[i], MUSTER_OK);
    }
    close_all();
}

static void test_one_that_fails_is_left_out(void **state) {
    (void)state;
    open_all();
    reader readers[many];
    muster_stream_abort(far[1], 7, "no", 2);
    muster_stream_finish(near[4]);
    for (int i = 0; i < many; i++) {
        readers[i] = (reader){.stream = far[i], .stop_at = size};
        if (i != 1 && i != 4) pthread_create(&readers[i].thread, NULL, read_to_end, &readers[i]);
    }
    muster_status statuses[many];
    size_t bytes[many];
    assert_int_equal(muster_stream_write_many(near, many, data, size, 20 * SECOND, statuses, bytes), MUSTER_E_ABORTED);
    for (int i = 0; i < many; i++) {
        if (i == 1 || i == 4) {
            assert_int_equal(statuses[i], i == 1 ? MUSTER_E_ABORTED : MUSTER_E_CLOSED);
            assert_int_equal(bytes[i], 0);
            continue;
        }
        pthread_join(readers[i].thread, NULL);
        assert_true(readers[i].right && readers[i].got == size);
        assert_int_equal(bytes[i], size);
        assert_int_equal(statuses[i], MUSTER_OK);
    }
    close_all();
}

static void test_what_was_accepted_in_time_is_told(void **state) {
    (void)state;
    open_all();
    muster_status statuses[many];
    size_t bytes[many];
    assert_int_equal(muster_stream_write_many(near, many, data, size, 0, statuses, bytes), MUSTER_AGAIN);
    for (int i = 0; i < many; i++) {
        assert_int_equal(statuses[i], MUSTER_AGAIN);
        assert_in_range(bytes[i], 1 << 20, size - 1); // its window
    }
    size_t more[many];
    assert_int_equal(muster_stream_write_many(near, many, data, size, 50 * MILLISECOND, statuses, more),
                     MUSTER_TIMEOUT);
    for (int i = 0; i < many; i++) {
        assert_int_equal(statuses[i], MUSTER_TIMEOUT);
        assert_int_equal(more[i], 0);
        reader r = {.stream = far[i], .stop_at = bytes[i]};
        read_to_end(&r);
        assert_true(r.right && r.got == bytes[i]);
    }
    assert_int_equal(muster_stream_write_many(near, many, data, 1000, 0, NULL, NULL), MUSTER_OK);
    assert_int_equal(muster_stream_write_many(near, many, NULL, 0, 0, NULL, NULL), MUSTER_OK);
    close_all();
}

static void test_nonsense_is_refused(void **state) {
    (void)state;
    open_all();
    muster_stream *const some[] = {near[0], NULL};
    assert_int_equal(muster_stream_write_many(NULL, 1, data, 1, 0, NULL, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_stream_write_many(near, 0, data, 1, 0, NULL, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_stream_write_many(near, 65537, data, 1, 0, NULL, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_stream_write_many(near, many, NULL, 1, 0, NULL, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_stream_write_many(some, 2, data, 1, 0, NULL, NULL), MUSTER_E_ARG);
    assert_int_equal(read_one(far[0], 0), MUSTER_AGAIN); // nothing was written
    close_all();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_each_gets_all_of_it),
    cmocka_unit_test(test_one_that_fails_is_left_out),
    cmocka_unit_test(test_what_was_accepted_in_time_is_told),
    cmocka_unit_test(test_nonsense_is_refused),
};

int main(void) {
    return cmocka_run_group_tests(tests, NULL, NULL);
}
