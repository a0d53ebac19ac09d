/* SPDX-License-Identifier: MIT */
// ctest: full timeout=120
/* One block for many members of a star: it goes to the broker once, and each gets all of it, whatever the others do. */
#include "star.h"

#include <stdbool.h>

enum { many = 5, size = 6000000 };

static unsigned char data[size];

typedef struct fan {
    member from, to[many];
    between streams[many];
    muster_stream *near[many];
    muster_queue *queue;
} fan;

static fan open_fan(const broker *brokers, size_t broker_count, size_t dialled_count, bool sealed) {
    fan f = {0};
    for (size_t i = 0; i < size; i++) data[i] = pattern(i);
    f.from = (member){.context = make_context(0, SECRET)};
    for (int i = 0; i < many; i++) {
        f.to[i] = join_star(&brokers[(size_t)i % broker_count], NULL,
                            sealed ? "/?upgrade=no&curve=no&seal=yes" : "/?upgrade=no");
        char name[64], address[512];
        sscanf(f.to[i].address, "zmq://%63[^@]", name);
        const broker *b = &brokers[(size_t)i % dialled_count];
        snprintf(address, sizeof address, "zmq://%s@%s/?upgrade=no%s%s%s", name, b->place,
                 sealed ? "&curve=no&seal=yes" : "", b->options[0] != '\0' ? "&" : "", b->options);
        f.streams[i].near = dial_member(&f.from, address);
        f.streams[i].far = accept_one(&f.to[i]);
        f.near[i] = f.streams[i].near;
    }
    assert_int_equal(muster_queue_create(f.from.context, 0, &f.queue, NULL), MUSTER_OK);
    return f;
}

static void close_fan(fan *f) {
    muster_queue_release(f->queue);
    for (int i = 0; i < many; i++) drop_between(&f->streams[i]);
    for (int i = 0; i < many; i++)
        if (f->to[i].context != NULL) leave_star(&f->to[i]);
    leave_star(&f->from);
}

typedef struct reading {
    muster_stream *stream;
    uint64_t position, total;
    pthread_t thread;
} reading;

static void *read_in_thread(void *argument) {
    const reading *r = argument;
    read_all(r->stream, r->total, r->position);
    return NULL;
}

static reading start_reading(muster_stream *stream, uint64_t position, uint64_t total) {
    return (reading){.stream = stream, .position = position, .total = total};
}

// Takes the releases of the streams in the mask, each once; their statuses.
static void take_releases(const fan *f, uint32_t mask, muster_status *statuses, uint64_t *bytes) {
    while (mask != 0) {
        muster_completion done;
        assert_int_equal(muster_queue_next(f->queue, 20 * SECOND, &done, NULL), MUSTER_OK);
        assert_int_equal(done.kind, MUSTER_DONE_RELEASED);
        assert_true(done.tag < many && (mask & 1U << done.tag) != 0);
        mask &= ~(1U << done.tag);
        statuses[done.tag] = done.status;
        bytes[done.tag] = done.bytes;
    }
}

static const uint32_t everybody = (1U << many) - 1;

// What each gets: some bytes before, the block, some bytes after it.
static void send_and_read(fan *f) {
    reading readers[many];
    for (int i = 0; i < many; i++) {
        write_all(f->near[i], 1000 + (uint64_t)i, 0);
        readers[i] = start_reading(f->streams[i].far, 0, size);
    }
    assert_int_equal(muster_stream_write_owned_many(f->near, many, data, size, f->queue, NULL, NULL), MUSTER_OK);
    for (int i = 0; i < many; i++) {
        read_all(f->streams[i].far, 1000 + (uint64_t)i, 0);
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_in_thread, &readers[i]), 0);
    }
    muster_status statuses[many];
    uint64_t bytes[many];
    take_releases(f, everybody, statuses, bytes);
    for (int i = 0; i < many; i++) {
        pthread_join(readers[i].thread, NULL);
        assert_int_equal(statuses[i], MUSTER_OK);
        assert_int_equal(bytes[i], size);
        put(f->near[i], "behind it");
        expect(f->streams[i].far, "behind it");
    }
}

static void test_it_goes_to_the_broker_once(void **state) {
    (void)state;
    broker b = start_broker(0);
    fan f = open_fan(&b, 1, 1, false);
    send_and_read(&f);
    // Pieces of up to 250 KB for all of them, and hardly a byte besides; the figures are of what was given to members.
    AWAIT_FIGURE(&b, s.multicasts >= size / (256 * 1024) && s.bytes > (uint64_t)many * size);
    close_fan(&f);
    stop_broker(&b);
}

static void test_it_goes_down_a_tree(void **state) {
    (void)state;
    broker b[2];
    broker_secret = BROKER_SECRET; // a tree needs one
    b[0] = start_broker(0);
    b[1] = start_broker_at("zmq://127.0.0.1:0/", 0, b[0].address);
    broker_secret = NULL;
    AWAIT_FIGURE(&b[0], s.brokers == 1);
    fan f = open_fan(b, 2, 1, false);
    send_and_read(&f);
    AWAIT_FIGURE(&b[0], s.multicasts >= size / (256 * 1024) && s.bytes > (uint64_t)many * size);
    AWAIT_FIGURE(&b[1], s.bytes > (uint64_t)many / 2 * size);
    close_fan(&f);
    stop_broker(&b[1]);
    stop_broker(&b[0]);
}

// No message goes through two brokers at once: what was meant for all goes to each.
static void test_members_reached_through_two_brokers(void **state) {
    (void)state;
    broker b[2];
    b[0] = start_broker(0);
    b[1] = start_broker(0);
    fan f = open_fan(b, 2, 2, false);
    send_and_read(&f);
    AWAIT_FIGURE(&b[0], s.bytes > (uint64_t)size);
    assert_int_equal(figures(&b[0]).multicasts, 0);
    close_fan(&f);
    stop_broker(&b[1]);
    stop_broker(&b[0]);
}

// Two streams to one member cannot be in one message; nor can small blocks.
static void test_what_cannot_be_shared_goes_by_itself(void **state) {
    (void)state;
    broker b = start_broker(0);
    fan f = open_fan(&b, 1, 1, false);
    between second = {.near = dial_member(&f.from, f.to[0].address)};
    second.far = accept_one(&f.to[0]);
    muster_stream *streams[] = {f.near[0], second.near, f.near[1]};
    muster_stream *ends[] = {f.streams[0].far, second.far, f.streams[1].far};
    reading readers[3];
    const uint64_t tags[] = {0, 1, 2};
    muster_status statuses[many];
    uint64_t bytes[many];
    for (int i = 0; i < 3; i++) readers[i] = start_reading(ends[i], 0, size);
    assert_int_equal(muster_stream_write_owned_many(streams, 3, data, size, f.queue, tags, NULL), MUSTER_OK);
    for (int i = 0; i < 3; i++) pthread_create(&readers[i].thread, NULL, read_in_thread, &readers[i]);
    take_releases(&f, 7, statuses, bytes);
    for (int i = 0; i < 3; i++) {
        pthread_join(readers[i].thread, NULL);
        assert_int_equal(statuses[i], MUSTER_OK);
    }
    assert_int_equal(muster_stream_write_owned_many(streams, 3, data, 100, f.queue, tags, NULL), MUSTER_OK);
    take_releases(&f, 7, statuses, bytes);
    for (int i = 0; i < 3; i++) read_all(ends[i], 100, 0);
    assert_int_equal(muster_stream_write_owned_many(streams, 3, NULL, 0, f.queue, tags, NULL), MUSTER_OK);
    take_releases(&f, 7, statuses, bytes);
    drop_between(&second);
    close_fan(&f);
    stop_broker(&b);
}

static void test_sealed_streams_go_by_themselves(void **state) {
    (void)state;
    broker b = start_broker(MUSTER_BROKER_NO_CURVE);
    fan f = open_fan(&b, 1, 1, true);
    send_and_read(&f);
    AWAIT_FIGURE(&b, s.bytes > (uint64_t)many * size);
    assert_int_equal(figures(&b).multicasts, 0);
    close_fan(&f);
    stop_broker(&b);
}

// One aborts, one closes, one dies, in the middle; one does not read for a while. The others get it all.
static void test_who_fails_does_not_keep_it_from_the_others(void **state) {
    (void)state;
    broker b = start_broker(0);
    fan f = open_fan(&b, 1, 1, false);
    reading slow = start_reading(f.streams[3].far, 0, size), quick = start_reading(f.streams[4].far, 0, size);
    assert_int_equal(muster_stream_write_owned_many(f.near, many, data, size, f.queue, NULL, NULL), MUSTER_OK);
    assert_int_equal(pthread_create(&quick.thread, NULL, read_in_thread, &quick), 0);
    for (int i = 0; i < 3; i++) read_all(f.streams[i].far, 300000, 0);
    muster_stream_abort(f.streams[0].far, 7, "enough", 6);
    muster_stream_release(f.streams[1].far);
    f.streams[1].far = NULL;
    muster_listener_release(f.to[2].listener);
    muster_context_close(f.to[2].context, 0);
    muster_stream_release(f.streams[2].far);
    f.streams[2].far = NULL;
    muster_context_release(f.to[2].context);
    f.to[2] = (member){0};
    muster_status statuses[many];
    uint64_t bytes[many];
    // The fourth stands still, so the fifth is served without it in the end.
    take_releases(&f, 1 | 2 | 4 | 16, statuses, bytes);
    assert_int_equal(statuses[0], MUSTER_E_ABORTED);
    assert_int_equal(statuses[1], MUSTER_E_PEER);
    assert_int_equal(statuses[2], MUSTER_E_PEER);
    assert_int_equal(statuses[4], MUSTER_OK);
    for (int i = 0; i < 3; i++) assert_true(bytes[i] < size);
    pthread_join(quick.thread, NULL);
    read_in_thread(&slow);
    take_releases(&f, 8, statuses, bytes);
    assert_int_equal(statuses[3], MUSTER_OK);
    close_fan(&f);
    stop_broker(&b);
}

// The sender's own streams: taken back by a cancel, closed, or gone with the queue.
static void test_the_sender_may_change_its_mind(void **state) {
    (void)state;
    broker b = start_broker(0);
    fan f = open_fan(&b, 1, 1, false);
    muster_status statuses[many];
    uint64_t bytes[many];
    assert_int_equal(muster_stream_write_owned_many(f.near, many, data, size, f.queue, NULL, NULL), MUSTER_OK);
    read_all(f.streams[0].far, 100000, 0);
    muster_stream_abort(f.near[0], 1, NULL, 0);
    assert_int_equal(muster_stream_cancel(f.near[1], MUSTER_STREAM_WRITE), MUSTER_OK);
    take_releases(&f, 3, statuses, bytes);
    assert_int_equal(statuses[0], MUSTER_E_ABORTED);
    assert_int_equal(statuses[1], MUSTER_E_CANCELED);
    reading rest[many];
    for (int i = 2; i < many; i++) {
        rest[i] = start_reading(f.streams[i].far, 0, size);
        pthread_create(&rest[i].thread, NULL, read_in_thread, &rest[i]);
    }
    for (int i = 2; i < many; i++) pthread_join(rest[i].thread, NULL);
    take_releases(&f, everybody & ~3U, statuses, bytes);
    for (int i = 2; i < many; i++) assert_int_equal(statuses[i], MUSTER_OK);
    // And all of it at once.
    assert_int_equal(muster_stream_write_owned_many(&f.near[2], 3, data, size, f.queue, NULL, statuses), MUSTER_OK);
    read_all(f.streams[2].far, 100000, 0);
    assert_int_equal(muster_queue_close(f.queue), MUSTER_OK);
    close_fan(&f);
    stop_broker(&b);
}

static void test_nonsense_is_refused(void **state) {
    (void)state;
    muster_context *context = make_context(0, SECRET), *other = make_context(0, SECRET);
    muster_stream *near, *far;
    muster_queue *queue, *elsewhere;
    assert_int_equal(muster_stream_pair(context, NULL, &near, &far, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(context, 0, &queue, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(other, 0, &elsewhere, NULL), MUSTER_OK);
    muster_stream *const none[] = {near, NULL};
    assert_int_equal(muster_stream_write_owned_many(NULL, 1, data, 9, queue, NULL, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_stream_write_owned_many(&near, 0, data, 9, queue, NULL, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_stream_write_owned_many(&near, 65537, data, 9, queue, NULL, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_stream_write_owned_many(none, 2, data, 9, queue, NULL, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_stream_write_owned_many(&near, 1, NULL, 9, queue, NULL, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_stream_write_owned_many(&near, 1, data, 9, NULL, NULL, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_stream_write_owned_many(&near, 1, data, 9, elsewhere, NULL, NULL), MUSTER_E_ARG);
    assert_int_equal(read_one(far, 0), MUSTER_AGAIN); // nothing was written
    muster_stream *const both[] = {near, far};
    muster_status statuses[2];
    muster_stream_finish(far);
    assert_int_equal(muster_stream_write_owned_many(both, 2, data, 100000, queue, NULL, statuses), MUSTER_E_CLOSED);
    assert_int_equal(statuses[0], MUSTER_OK);
    assert_int_equal(statuses[1], MUSTER_E_CLOSED);
    muster_queue_release(queue);
    muster_queue_release(elsewhere);
    muster_stream_release(near);
    muster_stream_release(far);
    muster_context_release(context);
    muster_context_release(other);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_it_goes_to_the_broker_once),
    cmocka_unit_test(test_it_goes_down_a_tree),
    cmocka_unit_test(test_members_reached_through_two_brokers),
    cmocka_unit_test(test_what_cannot_be_shared_goes_by_itself),
    cmocka_unit_test(test_sealed_streams_go_by_themselves),
    cmocka_unit_test(test_who_fails_does_not_keep_it_from_the_others),
    cmocka_unit_test(test_the_sender_may_change_its_mind),
    cmocka_unit_test(test_nonsense_is_refused),
};

int main(void) {
    return cmocka_run_group_tests(tests, NULL, NULL);
}
