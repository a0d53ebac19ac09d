// SPDX-License-Identifier: MIT
// What stream.h promises, on pairs in one process.
#include <muster/stream.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)

typedef struct fixture {
    muster_context *context;
    muster_queue *queue;
    muster_stream *a, *b;
} fixture;

static void make(fixture *f, uint32_t flags, uint64_t window) {
    muster_context_config config = {.struct_size = sizeof config, .flags = flags};
    muster_stream_config stream = {.struct_size = sizeof stream, .window_bytes = window};
    assert_int_equal(muster_context_create(&config, &f->context, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(f->context, NULL, &f->queue, NULL), MUSTER_OK);
    assert_int_equal(muster_stream_pair(f->context, &stream, &f->a, &f->b, NULL), MUSTER_OK);
}

static void drop(fixture *f) {
    muster_stream_release(f->a);
    muster_stream_release(f->b);
    muster_queue_release(f->queue);
    assert_int_equal(muster_context_close(f->context, SECOND), MUSTER_OK);
    muster_context_release(f->context);
}

static unsigned char pattern(uint64_t position) {
    return (unsigned char)(position * 2654435761u >> 13);
}

static void fill(unsigned char *data, size_t size, uint64_t from) {
    for (size_t i = 0; i < size; i++) data[i] = pattern(from + i);
}

static void expect(const unsigned char *data, size_t size, uint64_t from) {
    for (size_t i = 0; i < size; i++)
        if (data[i] != pattern(from + i)) fail_msg("byte %llu differs", (unsigned long long)(from + i));
}

static void expect_bytes(muster_stream *stream, const char *text) {
    char got[256];
    size_t size = 0;
    assert_int_equal(muster_stream_read_into(stream, got, strlen(text), 0, SECOND, &size), MUSTER_OK);
    assert_memory_equal(got, text, strlen(text));
}

static void put(muster_stream *stream, const char *text) {
    size_t size = 0;
    assert_int_equal(muster_stream_write(stream, text, strlen(text), SECOND, &size), MUSTER_OK);
    assert_int_equal(size, strlen(text));
}

static void test_bytes_come_out_as_they_went_in(void **state) {
    (void)state;
    fixture f;
    make(&f, 0, 0);
    put(f.a, "hello");
    put(f.b, "world");
    expect_bytes(f.b, "hello");
    expect_bytes(f.a, "world");
    char c;
    size_t size = 7;
    assert_int_equal(muster_stream_read(f.a, &c, 1, 0, &size), MUSTER_AGAIN);
    assert_int_equal(size, 0);
    drop(&f);
}

static void test_wrong_arguments_change_nothing(void **state) {
    (void)state;
    fixture f;
    make(&f, 0, 0);
    muster_error error;
    muster_stream *one = (muster_stream *)1, *two = (muster_stream *)1;
    size_t size = 9;
    void *room;
    const void *bytes;
    assert_int_equal(muster_stream_pair(NULL, NULL, &one, &two, &error), MUSTER_E_ARG);
    assert_null(one);
    assert_null(two);
    muster_stream_config odd = {.struct_size = sizeof odd, .window_bytes = 5000};
    assert_int_equal(muster_stream_pair(f.context, &odd, &one, &two, &error), MUSTER_E_ARG);
    assert_non_null(strstr(error.message, "5000"));
    assert_int_equal(muster_stream_write(NULL, "x", 1, 0, &size), MUSTER_E_ARG);
    assert_int_equal(size, 0);
    assert_int_equal(muster_stream_write(f.a, NULL, 1, 0, &size), MUSTER_E_ARG);
    assert_int_equal(muster_stream_read(f.a, NULL, 1, 0, &size), MUSTER_E_ARG);
    assert_int_equal(muster_stream_read(f.a, &room, 0, 0, &size), MUSTER_E_ARG);
    assert_int_equal(muster_stream_read_into(f.a, &room, 1, 2, 0, &size), MUSTER_E_ARG);
    assert_int_equal(muster_stream_reserve(f.a, (1 << 18) + 1, 0, &room, &size), MUSTER_E_ARG);
    assert_int_equal(muster_stream_reserve(f.a, 0, 0, &room, &size), MUSTER_E_ARG);
    assert_int_equal(muster_stream_commit(f.a, 0), MUSTER_E_ARG);
    assert_int_equal(muster_stream_peek(f.a, 0, 0, &bytes, &size), MUSTER_E_ARG);
    assert_int_equal(muster_stream_consume(f.a, 0), MUSTER_E_ARG);
    assert_int_equal(muster_stream_cancel(f.a, 4), MUSTER_E_ARG);
    assert_int_equal(muster_stream_cancel(f.a, 0), MUSTER_E_ARG);
    assert_int_equal(muster_stream_watch(f.a, 1 << 20, f.queue, 0), MUSTER_E_ARG);
    assert_int_equal(muster_stream_watch(f.a, MUSTER_STREAM_READABLE, NULL, 0), MUSTER_E_ARG);
    assert_int_equal(muster_stream_abort(f.a, 0, NULL, 5), MUSTER_E_ARG);
    assert_int_equal(muster_stream_write_owned(f.a, NULL, 1, f.queue, 0), MUSTER_E_ARG);
    muster_stream_release(NULL);
    put(f.a, "still good");
    expect_bytes(f.b, "still good");
    drop(&f);
}

static void test_a_stream_of_another_context_s_queue_is_refused(void **state) {
    (void)state;
    fixture f, g;
    make(&f, 0, 0);
    make(&g, 0, 0);
    assert_int_equal(muster_stream_watch(f.a, MUSTER_STREAM_READABLE, g.queue, 0), MUSTER_E_ARG);
    assert_int_equal(muster_stream_write_owned(f.a, "x", 1, g.queue, 0), MUSTER_E_ARG);
    drop(&f);
    drop(&g);
}

static void test_back_pressure_counts_bytes(void **state) {
    (void)state;
    fixture f;
    make(&f, 0, 65536);
    unsigned char *data = malloc(1 << 20);
    fill(data, 1 << 20, 0);
    size_t size = 0;
    assert_int_equal(muster_stream_write(f.a, data, 1 << 20, 0, &size), MUSTER_AGAIN);
    assert_int_equal(size, 65536);
    assert_int_equal(muster_stream_write(f.a, data + size, 1, 20000000, &size), MUSTER_TIMEOUT);
    assert_int_equal(size, 0);
    unsigned char out[1 << 16];
    assert_int_equal(muster_stream_read_into(f.b, out, 65536, 0, 0, &size), MUSTER_OK);
    expect(out, 65536, 0);
    assert_int_equal(muster_stream_write(f.a, data + 65536, 1000, 0, &size), MUSTER_OK);
    free(data);
    drop(&f);
}

static void test_half_close_lets_everything_be_read_first(void **state) {
    (void)state;
    fixture f;
    make(&f, 0, 0);
    size_t size;
    char c;
    put(f.a, "last words");
    assert_int_equal(muster_stream_finish(f.a), MUSTER_OK);
    assert_int_equal(muster_stream_finish(f.a), MUSTER_OK);
    assert_int_equal(muster_stream_write(f.a, "x", 1, 0, &size), MUSTER_E_CLOSED);
    expect_bytes(f.b, "last words");
    assert_int_equal(muster_stream_read(f.b, &c, 1, SECOND, &size), MUSTER_E_END);
    put(f.b, "answer");
    expect_bytes(f.a, "answer");
    drop(&f);
}

static void test_abort_carries_its_reason(void **state) {
    (void)state;
    fixture f;
    make(&f, 0, 0);
    size_t size;
    char c;
    uint64_t reason = 0;
    muster_error error;
    assert_int_equal(muster_stream_reason(f.b, &reason, &error), MUSTER_OK);
    put(f.a, "early");
    assert_int_equal(muster_stream_abort(f.a, 42, "no more", 7), MUSTER_OK);
    assert_int_equal(muster_stream_read(f.a, &c, 1, SECOND, &size), MUSTER_E_ABORTED);
    expect_bytes(f.b, "early"); // what arrived before stays readable
    assert_int_equal(muster_stream_read(f.b, &c, 1, SECOND, &size), MUSTER_E_ABORTED);
    assert_int_equal(muster_stream_write(f.b, "x", 1, SECOND, &size), MUSTER_E_ABORTED);
    assert_int_equal(muster_stream_reason(f.b, &reason, &error), MUSTER_E_ABORTED);
    assert_int_equal(reason, 42);
    assert_non_null(strstr(error.message, "no more"));
    drop(&f);
}

static void *abort_it(void *stream) {
    muster_stream_abort(stream, 1, NULL, 0);
    return NULL;
}

static void test_who_has_seen_the_end_in_one_call_sees_it_in_the_next(void **state) {
    (void)state;
    for (int i = 0; i < 500; i++) {
        fixture f;
        make(&f, 0, 0);
        char byte;
        size_t size = 0;
        for (int k = 0; k < 4; k++) put(f.b, "."), expect_bytes(f.a, "."); // short cuts are open
        pthread_t other;
        pthread_create(&other, NULL, abort_it, f.a);
        muster_status status = MUSTER_AGAIN;
        while (status == MUSTER_AGAIN) status = muster_stream_read(f.b, &byte, 1, 0, &size);
        assert_int_equal(status, MUSTER_E_ABORTED);
        assert_int_equal(muster_stream_write(f.b, ".", 1, 0, &size), MUSTER_E_ABORTED);
        pthread_join(other, NULL);
        drop(&f);
    }
}

static void test_a_gone_reader_reaches_the_writer(void **state) {
    (void)state;
    fixture f;
    make(&f, 0, 4096);
    size_t size;
    muster_stream_release(f.b);
    f.b = NULL;
    assert_int_equal(muster_stream_write(f.a, "x", 1, SECOND, &size), MUSTER_E_PEER);
    char c;
    assert_int_equal(muster_stream_read(f.a, &c, 1, SECOND, &size), MUSTER_E_END);
    drop(&f);
}

static void test_reserve_and_peek_work_in_place_around_the_edge(void **state) {
    (void)state;
    fixture f;
    make(&f, 0, 4096);
    uint64_t sent = 0, got = 0;
    for (int turn = 0; turn < 2000; turn++) {
        void *room;
        const void *bytes;
        size_t size;
        const size_t want = 1 + (size_t)(turn * 37 % 1000);
        assert_int_equal(muster_stream_reserve(f.a, want, SECOND, &room, &size), MUSTER_OK);
        assert_true(size >= want);
        assert_int_equal(muster_stream_reserve(f.a, 1, 0, &room, &size), MUSTER_E_BUSY);
        fill(room, want, sent);
        assert_int_equal(muster_stream_commit(f.a, want), MUSTER_OK);
        sent += want;
        assert_int_equal(muster_stream_peek(f.b, want, SECOND, &bytes, &size), MUSTER_OK);
        assert_true(size >= want);
        expect(bytes, want, got);
        assert_int_equal(muster_stream_consume(f.b, want), MUSTER_OK);
        got += want;
    }
    drop(&f);
}

typedef struct mover {
    muster_stream *stream;
    uint64_t total;
    size_t piece;
    int64_t timeout_ns;
    muster_status status;
    uint64_t moved;
} mover;

static void *write_all(void *user) {
    mover *m = user;
    unsigned char *data = malloc(m->piece);
    while (m->moved < m->total && m->status >= 0) {
        const size_t k = m->total - m->moved < m->piece ? (size_t)(m->total - m->moved) : m->piece;
        size_t size = 0;
        fill(data, k, m->moved);
        m->status = muster_stream_write(m->stream, data, k, m->timeout_ns, &size);
        m->moved += size;
        for (size_t done = size; m->status > 0 && done < k; done += size) {
            m->status = muster_stream_write(m->stream, data + done, k - done, SECOND, &size);
            m->moved += size;
        }
    }
    free(data);
    return NULL;
}

static void read_all(muster_stream *stream, uint64_t total, size_t piece) {
    unsigned char *data = malloc(piece);
    for (uint64_t got = 0; got < total;) {
        size_t size;
        const muster_status status = muster_stream_read(stream, data, piece, 10 * SECOND, &size);
        if (status != MUSTER_OK) fail_msg("%s after %llu bytes", muster_status_name(status), (unsigned long long)got);
        expect(data, size, got);
        got += size;
    }
    free(data);
}

static void run_sizes(uint32_t flags) {
    static const size_t pieces[] = {1, 7, 64, 1000, 4096, 65536, 3 << 20};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        for (size_t j = 0; j < sizeof pieces / sizeof *pieces; j++) {
            fixture f;
            make(&f, flags, i % 2 ? 4096 : 0);
            const size_t least = pieces[i] < pieces[j] ? pieces[i] : pieces[j];
            mover m = {
                .stream = f.a, .total = least < 64 ? 20000 : 4 << 20, .piece = pieces[i], .timeout_ns = 10 * SECOND};
            pthread_t thread;
            pthread_create(&thread, NULL, write_all, &m);
            read_all(f.b, m.total, pieces[j]);
            pthread_join(thread, NULL);
            assert_int_equal(m.status, MUSTER_OK);
            drop(&f);
        }
}

static void test_every_size_arrives_whole_between_threads(void **state) {
    (void)state;
    run_sizes(0);
}

static void test_every_size_arrives_whole_in_an_external_context(void **state) {
    (void)state;
    run_sizes(MUSTER_CONTEXT_EXTERNAL);
}

static muster_completion next(fixture *f) {
    muster_completion c;
    muster_error error;
    assert_int_equal(muster_queue_next(f->queue, 10 * SECOND, &c, &error), MUSTER_OK);
    return c;
}

static void test_buffers_handed_over_come_back_once_and_keep_order(void **state) {
    (void)state;
    fixture f;
    make(&f, 0, 0);
    const size_t large = 5 << 20;
    unsigned char *data = malloc(large);
    fill(data, large, 0);
    put(f.a, "before");
    assert_int_equal(muster_stream_write_owned(f.a, data, large, f.queue, 7), MUSTER_OK);
    put(f.a, "after");
    muster_completion c;
    assert_int_equal(muster_queue_next(f.queue, 0, &c, NULL), MUSTER_AGAIN); // the peer has not read it yet
    expect_bytes(f.b, "before");
    unsigned char *out = malloc(large);
    size_t size;
    assert_int_equal(muster_stream_read_into(f.b, out, large, MUSTER_STREAM_HUGE_PAGES, SECOND, &size), MUSTER_OK);
    expect(out, large, 0);
    c = next(&f);
    assert_int_equal(c.kind, MUSTER_DONE_RELEASED);
    assert_int_equal(c.status, MUSTER_OK);
    assert_int_equal(c.tag, 7);
    assert_int_equal(c.bytes, large);
    expect_bytes(f.b, "after");
    assert_int_equal(muster_stream_write_owned(f.a, NULL, 0, f.queue, 8), MUSTER_OK);
    c = next(&f);
    assert_int_equal(c.tag, 8);
    free(data);
    free(out);
    drop(&f);
}

static void test_buffers_handed_over_come_back_on_abort_death_and_cancel(void **state) {
    (void)state;
    static unsigned char data[100000];
    for (int way = 0; way < 4; way++) {
        fixture f;
        make(&f, 0, 0);
        for (int i = 0; i < 64; i++)
            assert_int_equal(muster_stream_write_owned(f.a, data, sizeof data, f.queue, (uint64_t)i), MUSTER_OK);
        assert_int_equal(muster_stream_write_owned(f.a, data, sizeof data, f.queue, 64), MUSTER_AGAIN);
        muster_status expected = MUSTER_OK;
        if (way == 0) expected = MUSTER_E_ABORTED, muster_stream_abort(f.a, 1, NULL, 0);
        if (way == 1) expected = MUSTER_E_ABORTED, muster_stream_abort(f.b, 1, NULL, 0);
        if (way == 2) expected = MUSTER_E_PEER, muster_stream_release(f.b), f.b = NULL;
        if (way == 3) expected = MUSTER_E_CANCELED, muster_stream_cancel(f.a, MUSTER_STREAM_WRITE);
        for (uint64_t i = 0; i < 64; i++) {
            const muster_completion c = next(&f);
            assert_int_equal(c.kind, MUSTER_DONE_RELEASED);
            assert_int_equal(c.tag, i);
            assert_int_equal(c.status, expected);
            assert_int_equal(c.bytes, 0);
        }
        if (way == 3) { // never begun, so the stream goes on
            put(f.a, "on it goes");
            expect_bytes(f.b, "on it goes");
        } else {
            assert_int_equal(muster_stream_write_owned(f.a, data, 1, f.queue, 99), expected);
            assert_int_equal(next(&f).tag, 99);
        }
        muster_completion c;
        assert_int_equal(muster_queue_next(f.queue, 0, &c, NULL), MUSTER_AGAIN);
        drop(&f);
    }
}

static void test_cancel_in_the_middle_of_a_buffer_tells_both_sides(void **state) {
    (void)state;
    fixture f;
    make(&f, 0, 0);
    static unsigned char data[1 << 20];
    char half[1 << 19];
    size_t size;
    assert_int_equal(muster_stream_write_owned(f.a, data, sizeof data, f.queue, 1), MUSTER_OK);
    assert_int_equal(muster_stream_read_into(f.b, half, sizeof half, 0, SECOND, &size), MUSTER_OK);
    assert_int_equal(muster_stream_cancel(f.a, MUSTER_STREAM_WRITE), MUSTER_OK);
    const muster_completion c = next(&f);
    assert_int_equal(c.status, MUSTER_E_CANCELED);
    assert_int_equal(c.bytes, sizeof half);
    assert_int_equal(muster_stream_read(f.b, half, 1, SECOND, &size), MUSTER_E_ABORTED);
    drop(&f);
}

static void test_reads_begun_fill_in_order(void **state) {
    (void)state;
    for (uint32_t flags = 0; flags < 2; flags++) {
        fixture f;
        make(&f, flags, 0);
        enum { count = 10, size_each = 300000 };
        unsigned char *out = malloc((size_t)count * size_each);
        for (uint64_t i = 0; i < count; i++)
            assert_int_equal(muster_stream_read_begin(f.b, out + i * size_each, size_each, 0, f.queue, i), MUSTER_OK);
        mover m = {.stream = f.a, .total = (uint64_t)count * size_each, .piece = 70001, .timeout_ns = 10 * SECOND};
        pthread_t thread;
        pthread_create(&thread, NULL, write_all, &m);
        for (uint64_t i = 0; i < count; i++) {
            const muster_completion c = next(&f);
            assert_int_equal(c.kind, MUSTER_DONE_READ);
            assert_int_equal(c.tag, i);
            assert_int_equal(c.status, MUSTER_OK);
            assert_int_equal(c.bytes, size_each);
        }
        pthread_join(thread, NULL);
        expect(out, (size_t)count * size_each, 0);
        assert_int_equal(muster_stream_read_begin(f.b, out, 10, 0, f.queue, 77), MUSTER_OK);
        put(f.a, "five!");
        muster_stream_finish(f.a);
        const muster_completion c = next(&f);
        assert_int_equal(c.status, MUSTER_E_END);
        assert_int_equal(c.bytes, 5);
        free(out);
        drop(&f);
    }
}

static void test_cancel_gives_a_read_back(void **state) {
    (void)state;
    fixture f;
    make(&f, 0, 0);
    char *out = malloc(100);
    assert_int_equal(muster_stream_read_begin(f.b, out, 100, 0, f.queue, 5), MUSTER_OK);
    put(f.a, "abc");
    assert_int_equal(muster_stream_cancel(f.b, MUSTER_STREAM_READ), MUSTER_OK);
    free(out); // no thread accesses it any more
    const muster_completion c = next(&f);
    assert_int_equal(c.status, MUSTER_E_CANCELED);
    assert_true(c.bytes == 3 || c.bytes == 0);
    put(f.a, "xyz");
    expect_bytes(f.b, c.bytes == 3 ? "xyz" : "abcxyz");
    drop(&f);
}

static void *blocked_read(void *user) {
    mover *m = user;
    char c;
    size_t size;
    m->status = muster_stream_read(m->stream, &c, 1, -1, &size);
    return NULL;
}

static void wait_until_asleep(muster_stream *stream) {
    muster_stream_stats stats;
    do {
        sched_yield();
        assert_int_equal(muster_stream_get_stats(stream, &stats), MUSTER_OK);
    } while (stats.waits == 0);
}

static void test_cancel_abort_release_and_finish_end_a_sleeping_read(void **state) {
    (void)state;
    static const muster_status expected[] = {MUSTER_E_CANCELED, MUSTER_E_ABORTED, MUSTER_E_CLOSED,
                                             MUSTER_E_END,      MUSTER_E_END,     MUSTER_E_CLOSED};
    for (uint32_t flags = 0; flags < 2; flags++)
        for (int way = 0; way < 6; way++) {
            fixture f;
            make(&f, flags, 0);
            mover m = {.stream = f.b};
            pthread_t thread;
            pthread_create(&thread, NULL, blocked_read, &m);
            wait_until_asleep(f.b);
            if (way == 0) muster_stream_cancel(f.b, MUSTER_STREAM_READ);
            if (way == 1) muster_stream_abort(f.b, 0, NULL, 0);
            if (way == 2) muster_stream_release(f.b), f.b = NULL;
            if (way == 3) muster_stream_finish(f.a);
            if (way == 4) muster_stream_release(f.a), f.a = NULL;
            if (way == 5) muster_context_close(f.context, 0);
            pthread_join(thread, NULL);
            assert_int_equal(m.status, expected[way]);
            drop(&f);
        }
}

static void test_a_watch_tells_once_and_again_after_again(void **state) {
    (void)state;
    for (uint32_t flags = 0; flags < 2; flags++) {
        fixture f;
        make(&f, flags, 4096);
        muster_completion c;
        char data[8192] = {0};
        size_t size;
        assert_int_equal(muster_stream_watch(f.b, MUSTER_STREAM_READABLE, f.queue, 11), MUSTER_OK);
        assert_int_equal(muster_queue_next(f.queue, 0, &c, NULL), MUSTER_AGAIN);
        put(f.a, "1");
        c = next(&f);
        assert_int_equal(c.kind, MUSTER_EVENT_READY);
        assert_int_equal(c.events, MUSTER_STREAM_READABLE);
        assert_int_equal(c.tag, 11);
        put(f.a, "2"); // not armed: no notification
        assert_int_equal(muster_queue_next(f.queue, 0, &c, NULL), MUSTER_AGAIN);
        expect_bytes(f.b, "12");
        assert_int_equal(muster_stream_read(f.b, data, 1, 0, &size), MUSTER_AGAIN);
        put(f.a, "3");
        assert_int_equal(next(&f).events, MUSTER_STREAM_READABLE);
        expect_bytes(f.b, "3");
        assert_int_equal(muster_stream_watch(f.a, MUSTER_STREAM_WRITABLE, f.queue, 12), MUSTER_OK);
        assert_int_equal(next(&f).tag, 12);
        assert_int_equal(muster_stream_write(f.a, data, sizeof data, 0, &size), MUSTER_AGAIN);
        assert_int_equal(size, 4096);
        assert_int_equal(muster_queue_next(f.queue, 0, &c, NULL), MUSTER_AGAIN);
        assert_int_equal(muster_stream_read_into(f.b, data, 4096, 0, 0, &size), MUSTER_OK);
        c = next(&f);
        assert_int_equal(c.tag, 12);
        assert_int_equal(c.events, MUSTER_STREAM_WRITABLE);
        assert_int_equal(muster_stream_read(f.b, data, 1, 0, &size), MUSTER_AGAIN);
        assert_int_equal(muster_stream_watch(f.b, 0, NULL, 0), MUSTER_OK);
        put(f.a, "unseen");
        assert_int_equal(muster_queue_next(f.queue, 0, &c, NULL), MUSTER_AGAIN);
        assert_int_equal(muster_stream_watch(f.b, MUSTER_STREAM_READABLE, f.queue, 13), MUSTER_OK);
        assert_int_equal(next(&f).tag, 13); // ready already: notified at once
        muster_stream_abort(f.a, 0, NULL, 0);
        assert_true(next(&f).events & MUSTER_STREAM_ENDED);
        drop(&f);
    }
}

static void test_close_waits_for_the_reader_and_says_what_happened(void **state) {
    (void)state;
    fixture f;
    make(&f, 0, 0);
    put(f.a, "slow");
    assert_int_equal(muster_stream_close(f.a, 0), MUSTER_AGAIN);
    size_t size;
    char c;
    assert_int_equal(muster_stream_write(f.a, "x", 1, 0, &size), MUSTER_E_CLOSED);
    assert_int_equal(muster_stream_read(f.a, &c, 1, 0, &size), MUSTER_E_CLOSED);
    assert_int_equal(muster_stream_watch(f.a, MUSTER_STREAM_READABLE, f.queue, 0), MUSTER_E_CLOSED);
    assert_int_equal(muster_stream_close(f.a, -1), MUSTER_AGAIN); // asked again: the rest is still on its way
    expect_bytes(f.b, "slow");
    assert_int_equal(muster_stream_read(f.b, &c, 1, SECOND, &size), MUSTER_E_END);
    assert_int_equal(muster_stream_close(f.a, 0), MUSTER_OK);
    drop(&f);
    make(&f, 0, 0);
    put(f.a, "slow");
    assert_int_equal(muster_stream_close(f.a, 20000000), MUSTER_TIMEOUT);
    muster_stream_close(f.b, 0); // it will not be read any more
    assert_int_equal(muster_stream_close(f.a, 0), MUSTER_E_PEER);
    assert_int_equal(muster_stream_close(f.a, 0), MUSTER_E_PEER);
    drop(&f);
    make(&f, 0, 0);
    assert_int_equal(muster_stream_close(f.a, -1), MUSTER_OK);
    muster_stream_abort(f.b, 1, NULL, 0);
    assert_int_equal(muster_stream_close(f.a, -1), MUSTER_OK);
    drop(&f);
}

static void test_a_closed_queue_takes_nothing_on(void **state) {
    (void)state;
    fixture f;
    make(&f, 0, 0);
    char c;
    assert_int_equal(muster_queue_close(f.queue), MUSTER_OK);
    assert_int_equal(muster_stream_read_begin(f.a, &c, 1, 0, f.queue, 1), MUSTER_E_CLOSED);
    assert_int_equal(muster_stream_write_owned(f.a, "x", 1, f.queue, 1), MUSTER_E_CLOSED);
    assert_int_equal(muster_stream_watch(f.a, MUSTER_STREAM_READABLE, f.queue, 1), MUSTER_E_CLOSED);
    put(f.a, "still good");
    expect_bytes(f.b, "still good");
    drop(&f);
}

static void test_deadlines_hold(void **state) {
    (void)state;
    for (uint32_t flags = 0; flags < 2; flags++) {
        fixture f;
        make(&f, flags, 4096);
        char data[8192];
        size_t size;
        struct timespec from, to;
        clock_gettime(CLOCK_MONOTONIC, &from);
        assert_int_equal(muster_stream_read(f.a, data, 1, 30000000, &size), MUSTER_TIMEOUT);
        assert_int_equal(muster_stream_write(f.a, data, sizeof data, 30000000, &size), MUSTER_TIMEOUT);
        assert_int_equal(size, 4096);
        clock_gettime(CLOCK_MONOTONIC, &to);
        const int64_t took = (to.tv_sec - from.tv_sec) * SECOND + to.tv_nsec - from.tv_nsec;
        assert_true(took >= 60000000);
        drop(&f);
    }
}

static void test_two_readers_share_without_loss(void **state) {
    (void)state;
    fixture f;
    make(&f, 0, 0);
    mover a = {.stream = f.b}, b = {.stream = f.b};
    pthread_t one, two;
    pthread_create(&one, NULL, blocked_read, &a);
    pthread_create(&two, NULL, blocked_read, &b);
    put(f.a, "12");
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    assert_int_equal(a.status, MUSTER_OK);
    assert_int_equal(b.status, MUSTER_OK);
    drop(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_come_out_as_they_went_in),
        cmocka_unit_test(test_wrong_arguments_change_nothing),
        cmocka_unit_test(test_a_stream_of_another_context_s_queue_is_refused),
        cmocka_unit_test(test_back_pressure_counts_bytes),
        cmocka_unit_test(test_half_close_lets_everything_be_read_first),
        cmocka_unit_test(test_abort_carries_its_reason),
        cmocka_unit_test(test_who_has_seen_the_end_in_one_call_sees_it_in_the_next),
        cmocka_unit_test(test_a_gone_reader_reaches_the_writer),
        cmocka_unit_test(test_reserve_and_peek_work_in_place_around_the_edge),
        cmocka_unit_test(test_every_size_arrives_whole_between_threads),
        cmocka_unit_test(test_every_size_arrives_whole_in_an_external_context),
        cmocka_unit_test(test_buffers_handed_over_come_back_once_and_keep_order),
        cmocka_unit_test(test_buffers_handed_over_come_back_on_abort_death_and_cancel),
        cmocka_unit_test(test_cancel_in_the_middle_of_a_buffer_tells_both_sides),
        cmocka_unit_test(test_reads_begun_fill_in_order),
        cmocka_unit_test(test_cancel_gives_a_read_back),
        cmocka_unit_test(test_cancel_abort_release_and_finish_end_a_sleeping_read),
        cmocka_unit_test(test_a_watch_tells_once_and_again_after_again),
        cmocka_unit_test(test_close_waits_for_the_reader_and_says_what_happened),
        cmocka_unit_test(test_a_closed_queue_takes_nothing_on),
        cmocka_unit_test(test_deadlines_hold),
        cmocka_unit_test(test_two_readers_share_without_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
