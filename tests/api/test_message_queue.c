// SPDX-License-Identifier: MIT
// The bounded message queue: many producers and consumers, limits, readiness, and the end.
// ctest: quick timeout=120
#include "socket_run.h"

#include <muster/message_queue.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "asleep.h"

static muster_message_queue *make_queue(const fixture *f, uint32_t max_messages, uint64_t max_bytes) {
    const muster_message_queue_config config = {.struct_size = sizeof config,
                                                .max_messages = max_messages,
                                                .max_bytes = max_bytes,
                                                .queue = f->queue,
                                                .tag = 77};
    muster_message_queue *made;
    assert_int_equal(muster_message_queue_create(f->context, &config, &made, NULL), MUSTER_OK);
    return made;
}
static uint32_t ready(const fixture *f) {
    muster_completion entry;
    muster_error error;
    assert_int_equal(muster_queue_next(f->queue, 20 * second, &entry, &error), MUSTER_OK);
    assert_int_equal(entry.kind, MUSTER_EVENT_READY);
    assert_int_equal(entry.tag, 77);
    return entry.events;
}

static void test_limits_and_readiness(void **state) {
    (void)state;
    fixture f = set_up(0);
    muster_message_queue *q = make_queue(&f, 2, 100);
    muster_message *got, *third = message_to(1, 3, "c", 1), *large = message_to(1, 4, NULL, 0);
    assert_int_equal(muster_message_queue_pop(q, 0, &got), MUSTER_AGAIN);
    assert_int_equal(muster_message_queue_pop(q, ms, &got), MUSTER_TIMEOUT);
    assert_int_equal(muster_message_queue_push(q, message_to(1, 1, "a", 1), 0), MUSTER_OK);
    assert_int_equal(muster_message_queue_push(q, message_to(1, 2, "b", 1), 0), MUSTER_OK);
    assert_int_equal(ready(&f), MUSTER_MESSAGE_QUEUE_FILLED);
    assert_int_equal(muster_message_queue_push(q, third, 0), MUSTER_AGAIN);
    assert_int_equal(muster_message_queue_push(q, third, ms), MUSTER_TIMEOUT);
    assert_int_equal(muster_message_queue_pop(q, 0, &got), MUSTER_OK);
    assert_string_equal(text_of(got), "a");
    muster_message_release(got);
    assert_int_equal(ready(&f), MUSTER_MESSAGE_QUEUE_HAS_ROOM);
    assert_int_equal(muster_message_queue_push(q, third, 0), MUSTER_OK);
    muster_message_queue_stats stats;
    assert_int_equal(muster_message_queue_get_stats(q, &stats), MUSTER_OK);
    assert_int_equal(stats.messages, 2);
    assert_int_equal(stats.bytes, 2);
    assert_int_equal(stats.pushed, 3);
    assert_int_equal(stats.popped, 1);
    assert_int_equal(stats.full, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(muster_message_queue_pop(q, 0, &got), MUSTER_OK);
        assert_int_equal(header_of(got).type, 2 + i);
        muster_message_release(got);
    }
    /* a message larger than the limit is accepted alone */
    char bytes[300] = {0};
    assert_int_equal(muster_message_add_frame(large, bytes, sizeof bytes), MUSTER_OK);
    assert_int_equal(muster_message_queue_push(q, large, 0), MUSTER_OK);
    muster_message *after = message_to(1, 5, "x", 1);
    assert_int_equal(muster_message_queue_push(q, after, 0), MUSTER_AGAIN);
    muster_message_release(after);
    /* what it has can be popped after it was closed */
    assert_int_equal(muster_message_queue_close(q), MUSTER_OK);
    assert_int_equal(muster_message_queue_close(q), MUSTER_OK);
    after = message_to(1, 5, "x", 1);
    assert_int_equal(muster_message_queue_push(q, after, -1), MUSTER_E_CLOSED);
    muster_message_release(after);
    assert_int_equal(muster_message_queue_pop(q, -1, &got), MUSTER_OK);
    muster_message_release(got);
    assert_int_equal(muster_message_queue_pop(q, -1, &got), MUSTER_E_CLOSED);
    muster_message_queue_release(q);
    tear_down(&f);
}

enum { producers = 4, consumers = 3, each = 20000 };
typedef struct run {
    muster_message_queue *q;
    uint64_t number;
    int64_t sum;
} run;

static void *produce(void *argument) {
    const run *r = argument;
    for (uint64_t i = 0; i < each; i++) {
        muster_message *made;
        const muster_message_header header = {.struct_size = sizeof header, .source = r->number, .target = i};
        if (muster_message_create(&made) != MUSTER_OK || muster_message_set_header(made, &header) != MUSTER_OK ||
            muster_message_queue_push(r->q, made, -1) != MUSTER_OK)
            return (void *)1;
    }
    return NULL;
}
static void *consume(void *argument) {
    run *r = argument;
    uint64_t next[producers] = {0};
    for (;;) {
        muster_message *got;
        const muster_status status = muster_message_queue_pop(r->q, -1, &got);
        if (status == MUSTER_E_CLOSED) return NULL;
        muster_message_header header = {.struct_size = sizeof header};
        if (status != MUSTER_OK || muster_message_get_header(got, &header) != MUSTER_OK) return (void *)1;
        /* each consumer sees the messages of one producer in their order */
        if (header.target < next[header.source]) return (void *)2;
        next[header.source] = header.target + 1;
        r->sum += (int64_t)header.target;
        muster_message_release(got);
    }
}

static void test_many_producers_and_consumers(void **state) {
    (void)state;
    fixture f = set_up(0);
    muster_message_queue *q = make_queue(&f, 16, 0);
    pthread_t in[producers], out[consumers];
    run ins[producers], outs[consumers];
    for (int i = 0; i < consumers; i++) {
        outs[i] = (run){.q = q};
        assert_int_equal(pthread_create(&out[i], NULL, consume, &outs[i]), 0);
    }
    for (int i = 0; i < producers; i++) {
        ins[i] = (run){.q = q, .number = (uint64_t)i};
        assert_int_equal(pthread_create(&in[i], NULL, produce, &ins[i]), 0);
    }
    void *result;
    for (int i = 0; i < producers; i++) {
        assert_int_equal(pthread_join(in[i], &result), 0);
        assert_null(result);
    }
    assert_int_equal(muster_message_queue_close(q), MUSTER_OK);
    int64_t sum = 0;
    for (int i = 0; i < consumers; i++) {
        assert_int_equal(pthread_join(out[i], &result), 0);
        assert_null(result);
        sum += outs[i].sum;
    }
    assert_int_equal(sum, (int64_t)producers * each * (each - 1) / 2);
    muster_message_queue_release(q);
    tear_down(&f);
}

typedef struct waiter {
    muster_message_queue *q;
    muster_status status;
    atomic_int thread, over;
} waiter;
static void *pop_one(void *argument) {
    waiter *w = argument;
    muster_message *got;
    atomic_store(&w->thread, gettid());
    w->status = muster_message_queue_pop(w->q, -1, &got);
    atomic_store(&w->over, 1);
    return NULL;
}

static void test_waits_end(void **state) {
    (void)state;
    for (int by = 0; by < 3; by++) {
        fixture f = set_up(0);
        waiter w = {.q = make_queue(&f, 0, 0)};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, pop_one, &w), 0);
        while (atomic_load(&w.thread) == 0) sched_yield();
        until_asleep(atomic_load(&w.thread), &w.over);
        if (by == 0) assert_int_equal(muster_message_queue_cancel(w.q), MUSTER_OK);
        if (by == 1) assert_int_equal(muster_message_queue_close(w.q), MUSTER_OK);
        if (by == 2) assert_int_equal(muster_context_close(f.context, 10 * second), MUSTER_OK);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(w.status, by == 0 ? MUSTER_E_CANCELED : MUSTER_E_CLOSED);
        muster_message_queue_release(w.q);
        if (by < 2) {
            tear_down(&f);
        } else {
            muster_queue_release(f.queue);
            muster_context_release(f.context);
        }
    }
}

static void test_bad_queue_arguments(void **state) {
    (void)state;
    fixture f = set_up(0), other = set_up(0);
    muster_message_queue *q = (muster_message_queue *)&f;
    muster_error error;
    muster_message_queue_config config = {.struct_size = sizeof config, .flags = 1};
    assert_int_equal(muster_message_queue_create(f.context, &config, &q, &error), MUSTER_E_ARG);
    assert_null(q);
    config = (muster_message_queue_config){.struct_size = sizeof config, .queue = other.queue};
    assert_int_equal(muster_message_queue_create(f.context, &config, &q, &error), MUSTER_E_ARG);
    assert_int_equal(muster_message_queue_create(NULL, NULL, &q, &error), MUSTER_E_ARG);
    assert_int_equal(muster_message_queue_create(f.context, NULL, NULL, &error), MUSTER_E_ARG);
    assert_int_equal(muster_message_queue_create(f.context, NULL, &q, &error), MUSTER_OK);
    muster_message *got;
    muster_message_queue_stats stats;
    assert_int_equal(muster_message_queue_push(q, NULL, 0), MUSTER_E_ARG);
    assert_int_equal(muster_message_queue_push(NULL, (muster_message *)q, 0), MUSTER_E_ARG);
    assert_int_equal(muster_message_queue_pop(q, 0, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_message_queue_pop(NULL, 0, &got), MUSTER_E_ARG);
    assert_int_equal(muster_message_queue_get_stats(NULL, &stats), MUSTER_E_ARG);
    assert_int_equal(muster_message_queue_get_stats(q, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_message_queue_cancel(NULL), MUSTER_E_ARG);
    assert_int_equal(muster_message_queue_close(NULL), MUSTER_E_ARG);
    muster_message_queue_release(NULL);
    muster_message_queue_release(q);
    tear_down(&other);
    tear_down(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits_and_readiness),
        cmocka_unit_test(test_many_producers_and_consumers),
        cmocka_unit_test(test_waits_end),
        cmocka_unit_test(test_bad_queue_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
