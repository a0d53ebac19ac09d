// SPDX-License-Identifier: MIT
// How connections of a host-served transport end: END, CLOSE and CANCEL, each once and in order, whoever ends them.
// ctest: quick timeout=120
#include <muster/muster.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)
enum { most_ids = 4096, piece = 4096, text_bytes = 100000 };

// What the host keeps for one side of a connection: its pump, and what it has read there and not passed on.
typedef struct side {
    uint64_t id;
    muster_stream *pump; // NULL: this host has closed it, or dropped everything
    char bytes[piece];
    size_t size, sent;
    int ended; // reading the pump gave END
} side;

typedef enum { closed_in_order, aborts, host_breaks, host_hangs_up, released, ending_count } ending;

typedef struct connection {
    side sides[2]; // of the dialer, of the listener
    muster_stream *streams[2];
    ending how;
    size_t wrote, read;
    int begun, in_order, over[2];
    int finished, end_read[2], closing; // of one that is closed in order
} connection;

typedef enum { unknown, named, answered, closed } state;

static muster_context *context;
static muster_queue *requests, *done;
static muster_listener *listener;
static uint64_t listening;
static state states[most_ids];
static uint32_t chance_state;

static uint32_t chance(uint32_t below) {
    chance_state = chance_state * 1664525u + 1013904223u;
    return (chance_state >> 8) % below;
}

static void set_up_served(void) {
    memset(states, 0, sizeof states);
    assert_int_equal(muster_context_create(NULL, &context, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(context, NULL, &requests, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(context, NULL, &done, NULL), MUSTER_OK);
    assert_int_equal(muster_transport_serve(context, "mine", 4, MUSTER_TRANSPORT_LOCAL, requests, 7, NULL), MUSTER_OK);
    assert_int_equal(muster_transport_listen_begin(context, "mine://x", 8, NULL, done, 1, NULL), MUSTER_OK);
    muster_completion entry;
    assert_int_equal(muster_queue_next(requests, 10 * SECOND, &entry, NULL), MUSTER_OK);
    listening = entry.request;
    states[listening] = answered;
    assert_int_equal(muster_request_listening(requests, listening, NULL, 0, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_next(done, 10 * SECOND, &entry, NULL), MUSTER_OK);
    listener = entry.object;
}

static void tear_down_served(void) {
    muster_listener_release(listener);
    muster_queue_release(done);
    muster_queue_release(requests);
    assert_int_equal(muster_context_close(context, 10 * SECOND), MUSTER_OK);
    muster_context_release(context);
}

// The next request: none names an id that is over.
static int take(muster_completion *out) {
    if (muster_queue_next(requests, 0, out, NULL) != MUSTER_OK) return 0;
    assert_in_range(out->request, 1, most_ids - 1);
    assert_int_equal(out->tag, 7);
    state *const now = &states[out->request];
    if (out->kind == MUSTER_REQUEST_OPEN) {
        assert_int_equal(*now, unknown);
        *now = named;
    } else {
        assert_int_equal(*now, out->kind == MUSTER_REQUEST_CANCEL ? named : answered);
        *now = closed;
    }
    return 1;
}

static void drop(side *s) {
    muster_stream_release(s->pump);
    s->pump = NULL;
    s->size = s->sent = 0;
}

// A host that drops everything on CLOSE.
static void on_close(connection *all, int count, uint64_t id) {
    for (int i = 0; i < 2 * count; i++) {
        connection *const c = &all[i / 2];
        side *const s = &c->sides[i % 2];
        if (!c->begun || s->id != id) continue;
        if (c->in_order && s->pump) fail_msg("id %d: CLOSE before the host has closed the pump", (int)id);
        side *const other = &c->sides[1 - i % 2];
        if (s->pump && other->pump) muster_stream_abort(other->pump, 0, "broken below", 12);
        drop(s);
        c->over[i % 2] = 1;
    }
}

// Passes on at most one piece in each direction.
static void carry(connection *c) {
    for (int i = 0; i < 2; i++) {
        side *const from = &c->sides[i], *const to = &c->sides[1 - i];
        if (!from->pump) continue;
        size_t moved = 0;
        if (from->size == from->sent && !from->ended) {
            from->sent = from->size = 0;
            const muster_status status = muster_stream_read(from->pump, from->bytes, piece, 0, &from->size);
            if (status == MUSTER_E_END)
                from->ended = 1;
            else if (status < 0) { // it has failed: the connection below breaks
                c->in_order = 0;
                drop(from);
                if (to->pump) muster_stream_abort(to->pump, 0, "broken below", 12);
                continue;
            }
        }
        if (from->sent < from->size && to->pump) {
            const muster_status status =
                muster_stream_write(to->pump, from->bytes + from->sent, from->size - from->sent, 0, &moved);
            from->sent += status < 0 ? from->size - from->sent : moved; // the library takes no more there
        }
        if (!to->pump) from->sent = from->size; // that host has closed its connection
        if (!from->ended || from->sent < from->size) continue;
        if (to->pump)
            muster_stream_finish(to->pump); // everything was sent: the host closes its connection, and the pump
        drop(from);
    }
}

static connection *connect_one(connection *c) {
    memset(c, 0, sizeof *c);
    muster_completion entry;
    assert_int_equal(muster_transport_dial_begin(context, "mine://x", 8, NULL, 60 * SECOND, done, 1, NULL), MUSTER_OK);
    for (int turns = 0; !c->streams[0] || !c->streams[1]; turns++) {
        assert_true(turns < 1000000);
        if (take(&entry)) {
            assert_int_equal(entry.kind, MUSTER_REQUEST_OPEN);
            c->sides[0].id = entry.request;
            states[entry.request] = answered;
            assert_int_equal(muster_request_stream(requests, entry.request, &c->sides[0].pump, NULL), MUSTER_OK);
            assert_int_equal(
                muster_transport_incoming(requests, listening, NULL, 0, &c->sides[1].id, &c->sides[1].pump, NULL),
                MUSTER_OK);
            states[c->sides[1].id] = answered;
            c->begun = c->in_order = 1;
        }
        if (c->begun) carry(c);
        if (!c->streams[1]) muster_listener_accept(listener, 0, &c->streams[1], NULL);
        if (!c->streams[0] && muster_queue_next(done, 0, &entry, NULL) == MUSTER_OK) {
            assert_int_equal(entry.status, MUSTER_OK);
            c->streams[0] = entry.object;
        }
    }
    return c;
}

static void test_close_follows_the_host_that_has_read_the_end(void **state) {
    (void)state;
    set_up_served();
    connection *const c = connect_one(calloc(1, sizeof *c));
    char *const text = malloc(text_bytes);
    memset(text, 'm', text_bytes);
    size_t moved;
    muster_completion entry;
    muster_error error;
    int closing = 0, completed = 0;
    while (completed < 2 || !c->over[0] || !c->over[1]) {
        while (take(&entry)) {
            assert_int_equal(entry.kind, MUSTER_REQUEST_CLOSE);
            on_close(c, 1, entry.request);
        }
        carry(c);
        if (c->wrote < text_bytes) {
            muster_stream_write(c->streams[0], text, text_bytes - c->wrote, 0, &moved);
            c->wrote += moved;
        }
        if (c->read < text_bytes) {
            assert_true(muster_stream_read(c->streams[1], text, text_bytes, 0, &moved) >= 0);
            c->read += moved;
        }
        if (c->read == text_bytes && !closing) {
            closing = 1;
            for (int i = 0; i < 2; i++)
                assert_int_equal(muster_stream_close_begin(c->streams[i], 20 * SECOND, done, 1, NULL), MUSTER_OK);
        }
        while (muster_queue_next(done, 0, &entry, &error) == MUSTER_OK) {
            if (entry.status != MUSTER_OK) fail_msg("a close ended with %s", error.message);
            completed++;
        }
    }
    assert_true(c->sides[0].ended && c->sides[1].ended);
    for (int i = 0; i < 2; i++) muster_stream_release(c->streams[i]);
    free(text);
    free(c);
    tear_down_served();
}

// The host, which may be blocked elsewhere, has not closed the pump.
static void test_close_does_not_wait_for_a_host_where_a_connection_fails(void **state) {
    (void)state;
    muster_completion entry;
    set_up_served();
    assert_int_equal(muster_transport_dial_begin(context, "mine://x", 8, NULL, 60 * SECOND, done, 5, NULL), MUSTER_OK);
    while (!take(&entry)) nanosleep(&(struct timespec){0, 100000}, NULL);
    const uint64_t id = entry.request;
    muster_stream *pump;
    states[id] = answered;
    assert_int_equal(muster_request_stream(requests, id, &pump, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_cancel_operation(done, 5), MUSTER_OK);
    while (states[id] != closed)
        if (!take(&entry)) nanosleep(&(struct timespec){0, 100000}, NULL);
    char bytes[piece];
    size_t moved;
    muster_status status;
    while ((status = muster_stream_read(pump, bytes, sizeof bytes, SECOND, &moved)) == MUSTER_OK) {
    }
    assert_true(status < 0 && status != MUSTER_E_END);
    muster_stream_release(pump);
    muster_queue_next(done, 10 * SECOND, &entry, NULL);
    connection *const c = connect_one(calloc(1, sizeof *c));
    assert_int_equal(muster_stream_abort(c->sides[1].pump, 0, "broken below", 12), MUSTER_OK);
    while (states[c->sides[1].id] != closed)
        if (!take(&entry)) nanosleep(&(struct timespec){0, 100000}, NULL);
    for (int i = 0; i < 2; i++) muster_stream_release(c->streams[i]), drop(&c->sides[i]);
    free(c);
    tear_down_served();
}

static void end_one(connection *c) {
    const int side_of = (int)chance(2);
    c->how = (ending)chance(ending_count);
    if (c->how != closed_in_order) c->in_order = 0;
    switch (c->how) {
    case closed_in_order:
        for (int i = 0; i < 2; i++) assert_int_equal(muster_stream_finish(c->streams[i]), MUSTER_OK);
        c->finished = 1;
        break;
    case aborts:
        muster_stream_abort(c->streams[side_of], 1, "enough", 6);
        break;
    case host_breaks:
        if (c->sides[side_of].pump) muster_stream_abort(c->sides[side_of].pump, 0, "broken below", 12);
        break;
    case host_hangs_up:
        if (c->sides[side_of].pump) muster_stream_finish(c->sides[side_of].pump);
        break;
    default:
        muster_stream_release(c->streams[side_of]);
        c->streams[side_of] = NULL;
    }
}

static void run_seed(uint32_t seed) {
    enum { count = 24 };
    chance_state = seed;
    set_up_served();
    connection *const all = calloc(count, sizeof *all);
    muster_completion entry;
    char bytes[2 * piece] = {0};
    int wanted[count] = {0}, live = 0; // dials that were never answered
    uint64_t spare = 1000;
    for (int begun = 0, ended = 0; ended < count;) {
        if (begun < count && live < 6 && chance(4) == 0) {
            const uint32_t fate = chance(8);
            wanted[begun] = (int)fate;
            if (fate < 2) { // cancelled before the host answers, or failed by it
                assert_int_equal(
                    muster_transport_dial_begin(context, "mine://x", 8, NULL, 60 * SECOND, done, ++spare, NULL),
                    MUSTER_OK);
                while (!take(&entry)) nanosleep(&(struct timespec){0, 100000}, NULL);
                while (entry.kind != MUSTER_REQUEST_OPEN) {
                    on_close(all, count, entry.request);
                    while (!take(&entry)) nanosleep(&(struct timespec){0, 100000}, NULL);
                }
                const uint64_t id = entry.request;
                if (fate == 0) {
                    assert_int_equal(muster_queue_cancel_operation(done, spare), MUSTER_OK);
                } else {
                    states[id] = closed;
                    assert_int_equal(muster_request_fail(requests, id, MUSTER_E_UNREACHABLE, NULL, 0), MUSTER_OK);
                }
                while (fate == 0 && states[id] != closed)
                    if (take(&entry) && entry.request != id) on_close(all, count, entry.request);
                ended++;
            } else {
                connection *const c = &all[begun];
                uint64_t id = 0;
                muster_stream *dialled = NULL;
                assert_int_equal(
                    muster_transport_dial_begin(context, "mine://x", 8, NULL, 60 * SECOND, done, ++spare, NULL),
                    MUSTER_OK);
                while (!dialled || !c->streams[1]) {
                    if (take(&entry)) {
                        if (entry.kind == MUSTER_REQUEST_OPEN) {
                            id = entry.request;
                            states[id] = answered;
                            c->sides[0].id = id;
                            assert_int_equal(muster_request_stream(requests, id, &c->sides[0].pump, NULL), MUSTER_OK);
                            assert_int_equal(muster_transport_incoming(requests, listening, NULL, 0, &c->sides[1].id,
                                                                       &c->sides[1].pump, NULL),
                                             MUSTER_OK);
                            states[c->sides[1].id] = answered;
                            c->begun = c->in_order = 1;
                        } else {
                            on_close(all, count, entry.request);
                        }
                    }
                    for (int i = 0; i < count; i++)
                        if (all[i].begun) carry(&all[i]);
                    if (!c->streams[1]) muster_listener_accept(listener, 0, &c->streams[1], NULL);
                    if (!dialled && muster_queue_next(done, 0, &entry, NULL) == MUSTER_OK && entry.tag == spare)
                        dialled = entry.object;
                }
                c->streams[0] = dialled;
                live++;
            }
            begun++;
        }
        while (take(&entry)) on_close(all, count, entry.request);
        while (muster_queue_next(done, 0, &entry, NULL) == MUSTER_OK) {
            if (entry.tag == 99) assert_int_equal(entry.status, MUSTER_OK); // a close in order ends in order
        }
        for (int i = 0; i < count; i++) {
            connection *const c = &all[i];
            if (!c->begun || wanted[i] < 0) continue;
            carry(c);
            if (c->over[0] && c->over[1]) {
                for (int s = 0; s < 2; s++) muster_stream_release(c->streams[s]);
                wanted[i] = -1;
                live--;
                ended++;
                continue;
            }
            size_t moved;
            if (wanted[i] != 100) {
                if (chance(3) == 0)
                    muster_stream_write(c->streams[chance(2)], bytes, 1 + chance(sizeof bytes), 0, &moved);
                for (int s = 0; s < 2; s++) muster_stream_read(c->streams[s], bytes, sizeof bytes, 0, &moved);
                if (chance(12) != 0) continue;
                wanted[i] = 100;
                end_one(c);
            }
            if (!c->finished && chance(50) == 0) // what is left of it, later
                for (int s = 0; s < 2; s++) muster_stream_release(c->streams[s]), c->streams[s] = NULL;
            if (!c->finished || c->closing) continue;
            for (int s = 0; s < 2; s++)
                c->end_read[s] |= muster_stream_read(c->streams[s], bytes, sizeof bytes, 0, &moved) == MUSTER_E_END;
            if (!c->end_read[0] || !c->end_read[1]) continue;
            c->closing = 1;
            for (int s = 0; s < 2; s++)
                assert_int_equal(muster_stream_close_begin(c->streams[s], 20 * SECOND, done, 99, NULL), MUSTER_OK);
        }
    }
    muster_listener_release(listener);
    listener = NULL;
    while (states[listening] != closed)
        if (!take(&entry)) nanosleep(&(struct timespec){0, 100000}, NULL);
    for (int i = 1; i < most_ids; i++) assert_true(states[i] == unknown || states[i] == closed);
    assert_int_equal(muster_queue_next(requests, 0, &entry, NULL), MUSTER_AGAIN);
    free(all);
    tear_down_served();
}

static void test_every_id_ends_once_in_random_sequences(void **state) {
    (void)state;
    const char *const given = getenv("MUSTER_SEED");
    const uint32_t first = given ? (uint32_t)atoi(given) : 1, last = given ? first : 40;
    for (uint32_t seed = first; seed <= last; seed++) {
        fprintf(stderr, "seed %u\n", seed);
        run_seed(seed);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_close_follows_the_host_that_has_read_the_end),
        cmocka_unit_test(test_close_does_not_wait_for_a_host_where_a_connection_fails),
        cmocka_unit_test(test_every_id_ends_once_in_random_sequences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
