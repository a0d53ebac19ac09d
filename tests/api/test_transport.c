// SPDX-License-Identifier: MIT
// What transport.h promises of streams, for every built-in scheme.
// ctest: quick timeout=120
#include "transport_pair.h"

#include <stdbool.h>

// ---- bytes ----------------------------------------------------------------------------------------------------------

static void a_word_goes_each_way(const way *w, pair *p) {
    (void)w;
    char got[8] = "";
    size_t bytes = 0;
    assert_int_equal(muster_stream_write(p->near, "hello", 5, SECOND, &bytes), MUSTER_OK);
    assert_int_equal(muster_stream_read_into(p->far, got, 5, 0, 5 * SECOND, &bytes), MUSTER_OK);
    assert_memory_equal(got, "hello", 5);
    assert_int_equal(muster_stream_write(p->far, "world", 5, SECOND, &bytes), MUSTER_OK);
    assert_int_equal(muster_stream_read_into(p->near, got, 5, 0, 5 * SECOND, &bytes), MUSTER_OK);
    assert_memory_equal(got, "world", 5);
}

static void same_host_links_move_to_shared_memory(const way *w, pair *p) {
    muster_context_stats stats[2];
    muster_context_get_stats(p->client, &stats[0]);
    muster_context_get_stats(p->server, &stats[1]);
    const uint64_t wanted = strstr(w->name, "upgraded") != NULL;
    if (stats[0].upgrades != wanted || stats[1].upgrades != wanted || stats[0].handshakes_ok != 1)
        fail_msg("%s: %d and %d upgrades", w->name, (int)stats[0].upgrades, (int)stats[1].upgrades);
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

static void bytes_arrive_whole_and_in_order(const way *w, pair *p) {
    const struct {
        uint64_t bytes, out, in;
    } sizes[] = {{40000, 1, 1},           {1 << 20, 64, 64},      {8 << 20, 65536, 65536}, {24 << 20, 5 << 20, 3 << 20},
                 {6 << 20, 100, 1 << 20}, {6 << 20, 3 << 20, 100}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        transfer(w, p, sizes[s].bytes, sizes[s].out, sizes[s].in);
        muster_stream_release(p->near);
        muster_stream_release(p->far);
        dial_and_accept(p, w, NULL);
    }
}

// ---- how a stream ends ----------------------------------------------------------------------------------------------

static void half_close_leaves_the_other_direction_open(const way *w, pair *p) {
    (void)w;
    put(p->near, "last words");
    assert_int_equal(muster_stream_finish(p->near), MUSTER_OK);
    expect(p->far, "last words");
    assert_int_equal(read_one(p->far, 5 * SECOND), MUSTER_E_END);
    put(p->far, "the answer");
    expect(p->near, "the answer");
    assert_int_equal(muster_stream_finish(p->far), MUSTER_OK);
    assert_int_equal(read_one(p->near, 5 * SECOND), MUSTER_E_END);
    assert_int_equal(muster_stream_reason(p->near, NULL, NULL), MUSTER_OK);
}

static void abort_carries_its_reason(const way *w, pair *p) {
    (void)w;
    assert_int_equal(muster_stream_abort(p->near, 42, "no more of this", 15), MUSTER_OK);
    assert_int_equal(read_one(p->far, 5 * SECOND), MUSTER_E_ABORTED);
    uint64_t reason = 0;
    muster_error error = {0};
    assert_int_equal(muster_stream_reason(p->far, &reason, &error), MUSTER_E_ABORTED);
    assert_int_equal(reason, 42);
    assert_non_null(strstr(error.message, "no more of this"));
    size_t bytes;
    assert_int_equal(muster_stream_write(p->far, "x", 1, SECOND, &bytes), MUSTER_E_ABORTED);
    assert_int_equal(read_one(p->near, SECOND), MUSTER_E_ABORTED);
}

// Waits until the peer's end is known here.
static muster_status write_until_it_fails(muster_stream *stream) {
    muster_status status = MUSTER_OK;
    for (int i = 0; i < 5000 && status >= 0; i++) {
        size_t bytes;
        status = muster_stream_write(stream, "x", 1, MILLISECOND, &bytes);
        usleep(1000);
    }
    return status;
}

static void close_loses_nothing_and_tells_the_peer(const way *w, pair *p) {
    (void)w;
    put(p->near, "goodbye");
    assert_true(muster_stream_close(p->near, 0) >= 0);
    assert_int_equal(write_until_it_fails(p->far), MUSTER_E_PEER);
    expect(p->far, "goodbye");
    assert_int_equal(read_one(p->far, 5 * SECOND), MUSTER_E_END);
    assert_int_equal(read_one(p->near, 0), MUSTER_E_CLOSED);
}

static void closing_after_the_peer_has_closed_is_no_failure(const way *w, pair *p) {
    (void)w;
    assert_int_equal(muster_stream_close(p->near, 5 * SECOND), MUSTER_OK);
    assert_int_equal(read_one(p->far, 5 * SECOND), MUSTER_E_END);
    usleep(20000);
    assert_int_equal(muster_stream_close(p->far, 5 * SECOND), MUSTER_OK);
}

static void release_sends_what_was_written(const way *w, pair *p) {
    const size_t size = 600000;
    unsigned char *data = malloc(size);
    for (size_t i = 0; i < size; i++) data[i] = pattern(i);
    size_t bytes = 0;
    assert_int_equal(muster_stream_write(p->near, data, size, 5 * SECOND, &bytes), MUSTER_OK);
    muster_stream_release(p->near);
    p->near = NULL;
    memset(data, 0, size);
    assert_int_equal(muster_stream_read_into(p->far, data, size, 0, 5 * SECOND, &bytes), MUSTER_OK);
    for (size_t i = 0; i < size; i++)
        if (data[i] != pattern(i)) fail_msg("%s: byte %zu differs", w->name, i);
    assert_int_equal(read_one(p->far, 5 * SECOND), MUSTER_E_END);
    free(data);
}

static void closing_the_context_delivers_first(const way *w, pair *p) {
    (void)w;
    put(p->near, "in time");
    assert_int_equal(muster_context_close(p->client, 5 * SECOND), MUSTER_OK);
    expect(p->far, "in time");
    assert_int_equal(read_one(p->far, 5 * SECOND), MUSTER_E_END);
    size_t bytes;
    assert_int_equal(muster_stream_write(p->near, "x", 1, SECOND, &bytes), MUSTER_E_CLOSED);
    assert_int_equal(muster_context_close(p->client, 0), MUSTER_OK);
}

// ---- waiting
// ---------------------------------------------------------------------------------------------------------

static void a_read_that_is_not_answered_ends_in_time(const way *w, pair *p) {
    (void)w;
    struct timespec before;
    struct timespec after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    put(p->far, "half");
    char got[8];
    size_t bytes = 0;
    assert_int_equal(muster_stream_read_into(p->near, got, 8, 0, 60 * MILLISECOND, &bytes), MUSTER_TIMEOUT);
    clock_gettime(CLOCK_MONOTONIC, &after);
    const int64_t ns = (after.tv_sec - before.tv_sec) * SECOND + after.tv_nsec - before.tv_nsec;
    assert_true(ns >= 59 * MILLISECOND && ns < 5 * SECOND);
    assert_int_equal(bytes, 4);
    assert_int_equal(read_one(p->near, 0), MUSTER_AGAIN);
}

typedef struct waiter {
    muster_stream *stream;
    atomic_int begun;
    muster_status status;
} waiter;

static void *wait_for_a_byte(void *arg) {
    waiter *w = arg;
    atomic_store(&w->begun, 1);
    w->status = read_one(w->stream, 20 * SECOND);
    return NULL;
}

// A cancel before the wait has begun has no effect: repeat it until the wait was cancelled.
static void cancel_until_joined(muster_stream *stream, uint32_t directions, pthread_t thread) {
    struct timespec soon;
    do {
        assert_int_equal(muster_stream_cancel(stream, directions), MUSTER_OK);
        clock_gettime(CLOCK_REALTIME, &soon);
        soon.tv_nsec += 5000000;
        if (soon.tv_nsec >= 1000000000) soon.tv_nsec -= 1000000000, soon.tv_sec++;
    } while (pthread_timedjoin_np(thread, NULL, &soon) != 0);
}

static void a_wait_can_be_cancelled(const way *w, pair *p) {
    (void)w;
    for (int early = 0; early < 2; early++) {
        waiter one = {.stream = p->near};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, wait_for_a_byte, &one), 0);
        while (!atomic_load(&one.begun)) usleep(100);
        if (!early) usleep(20000);
        cancel_until_joined(p->near, MUSTER_STREAM_READ, thread);
        assert_int_equal(one.status, MUSTER_E_CANCELED);
        put(p->far, "still");
        expect(p->near, "still");
    }
}

// Answers each byte but 'q', until the stream ends.
static void *answer_bytes(void *arg) {
    muster_stream *stream = arg;
    char byte;
    size_t bytes = 0;
    while (muster_stream_read(stream, &byte, 1, 20 * SECOND, &bytes) == MUSTER_OK)
        if (byte != 'q' && muster_stream_write(stream, &byte, 1, 20 * SECOND, &bytes) != MUSTER_OK) break;
    return NULL;
}

static int64_t read_for(muster_stream *stream, int64_t timeout_ns) {
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    assert_int_equal(read_one(stream, timeout_ns), MUSTER_TIMEOUT);
    clock_gettime(CLOCK_MONOTONIC, &after);
    return (after.tv_sec - before.tv_sec) * SECOND + after.tv_nsec - before.tv_nsec;
}

// After many answers the thread expects another one, and may poll before it sleeps.
static void a_wait_for_an_answer_ends_as_any_other(const way *w, pair *p) {
    (void)w;
    pthread_t answers;
    assert_int_equal(pthread_create(&answers, NULL, answer_bytes, p->far), 0);
    for (int end = 0; end < 4; end++) {
        for (int i = 0; i < 100; i++) {
            put(p->near, "x");
            expect(p->near, "x");
        }
        put(p->near, "q");
        if (end == 0) assert_in_range(read_for(p->near, MILLISECOND), MILLISECOND, 5 * SECOND);
        if (end == 1) assert_in_range(read_for(p->near, 40 * MILLISECOND), 39 * MILLISECOND, 5 * SECOND);
        if (end < 2) continue;
        waiter one = {.stream = p->near};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, wait_for_a_byte, &one), 0);
        if (end == 2) {
            cancel_until_joined(p->near, MUSTER_STREAM_READ, thread);
            assert_int_equal(one.status, MUSTER_E_CANCELED);
        } else {
            assert_int_equal(muster_stream_abort(p->near, 7, "enough", 6), MUSTER_OK);
            pthread_join(thread, NULL);
            assert_int_equal(one.status, MUSTER_E_ABORTED);
        }
    }
    pthread_join(answers, NULL);
}

static void back_pressure_stops_the_writer_and_nothing_is_lost(const way *w, pair *p) {
    (void)w;
    const size_t size = 32 << 20;
    unsigned char *data = malloc(size);
    for (size_t i = 0; i < size; i++) data[i] = pattern(i);
    size_t accepted = 0;
    assert_int_equal(muster_stream_write(p->near, data, size, 200 * MILLISECOND, &accepted), MUSTER_TIMEOUT);
    assert_true(accepted > 0 && accepted < size);
    job rest = {.stream = p->far, .piece = 1 << 20};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, receive_all, &rest), 0);
    size_t more = 0;
    assert_int_equal(muster_stream_write(p->near, data + accepted, size - accepted, 20 * SECOND, &more), MUSTER_OK);
    assert_int_equal(muster_stream_finish(p->near), MUSTER_OK);
    pthread_join(thread, NULL);
    assert_int_equal(rest.status, MUSTER_E_END);
    assert_int_equal(rest.bytes, size);
    free(data);
}

static void *write_zeroes(void *arg) {
    waiter *w = arg;
    const size_t size = 64 << 20;
    void *data = calloc(1, size);
    size_t bytes = 0;
    atomic_store(&w->begun, 1);
    w->status = muster_stream_write(w->stream, data, size, 20 * SECOND, &bytes);
    free(data);
    return NULL;
}

static void a_cancelled_write_tells_what_was_accepted(const way *w, pair *p) {
    (void)w;
    waiter writer = {.stream = p->near};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, write_zeroes, &writer), 0);
    while (!atomic_load(&writer.begun)) usleep(100);
    usleep(20000);
    cancel_until_joined(p->near, MUSTER_STREAM_WRITE, thread);
    assert_int_equal(writer.status, MUSTER_E_CANCELED);
    muster_stream_stats stats;
    assert_int_equal(muster_stream_get_stats(p->near, &stats), MUSTER_OK);
    assert_int_equal(muster_stream_finish(p->near), MUSTER_OK);
    uint64_t all = 0;
    muster_status status = MUSTER_OK;
    while (status == MUSTER_OK) {
        static char got[100000];
        size_t bytes = 0;
        status = muster_stream_read(p->far, got, sizeof got, 5 * SECOND, &bytes);
        all += bytes;
    }
    assert_int_equal(status, MUSTER_E_END);
    assert_int_equal(all, stats.bytes_out);
}

static void a_reader_asleep_is_not_taken_for_dead(const way *w, pair *p) {
    size_t bytes = 0;
    static const unsigned char data[100000];
    assert_int_equal(muster_stream_write(p->near, data, sizeof data, SECOND, &bytes), MUSTER_OK);
    usleep(600000); // heartbeats come every 50 ms, silence is 400 ms
    muster_stream_stats stats;
    assert_int_equal(muster_stream_get_stats(p->near, &stats), MUSTER_OK);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const uint64_t now_ns = (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
    if (now_ns - stats.last_received_ns > 400 * MILLISECOND) fail_msg("%s: nothing was heard", w->name);
    // Heartbeats are acknowledged by TCP, so the kernel has an estimate.
    const int is_tcp = strncmp(w->name, "tcp", 3) == 0 && strcmp(w->name, "tcp upgraded") != 0;
    if ((stats.round_trip_ns != 0) != is_tcp || stats.round_trip_ns > SECOND)
        fail_msg("%s: a round trip of %llu ns", w->name, (unsigned long long)stats.round_trip_ns);
    put(p->near, "!");
    assert_int_equal(muster_stream_reason(p->near, NULL, NULL), MUSTER_OK);
}

// ---- queues
// ----------------------------------------------------------------------------------------------------------

static muster_completion next_entry(muster_queue *queue) {
    muster_completion entry;
    muster_error error;
    assert_int_equal(muster_queue_next(queue, 5 * SECOND, &entry, &error), MUSTER_OK);
    return entry;
}

// An echo by readiness: the host's loop is woken, looks until AGAIN, answers.
static void a_watched_stream_tells_of_each_message(const way *w, pair *p) {
    (void)w;
    muster_queue *queue;
    assert_int_equal(muster_queue_create(p->client, NULL, &queue, NULL), MUSTER_OK);
    assert_int_equal(muster_stream_watch(p->near, MUSTER_STREAM_READABLE, queue, 7), MUSTER_OK);
    for (int round = 0; round < 300; round++) {
        char text[64];
        snprintf(text, sizeof text, "message %04d", round);
        put(p->far, text);
        size_t have = 0;
        while (have < 12) {
            size_t bytes = 0;
            char got[16];
            const muster_status status = muster_stream_read(p->near, got + have, 12 - have, 0, &bytes);
            have += bytes;
            if (status == MUSTER_AGAIN) {
                const muster_completion entry = next_entry(queue);
                assert_int_equal(entry.kind, MUSTER_EVENT_READY);
                assert_int_equal(entry.tag, 7);
                assert_true(entry.events & MUSTER_STREAM_READABLE);
            } else {
                assert_int_equal(status, MUSTER_OK);
            }
            if (have == 12) assert_memory_equal(got, text, 12);
        }
        if (round % 100 == 50) usleep(120000); // the loop looks after it meanwhile
    }
    assert_int_equal(read_one(p->near, 0), MUSTER_AGAIN);
    assert_int_equal(muster_stream_close(p->far, SECOND), MUSTER_OK);
    muster_completion entry;
    do entry = next_entry(queue);
    while (read_one(p->near, 0) != MUSTER_E_END);
    assert_int_equal(entry.tag, 7);
    muster_queue_release(queue);
}

static void buffers_are_lent_and_given_back(const way *w, pair *p) {
    (void)w;
    muster_queue *out_queue;
    muster_queue *in_queue;
    assert_int_equal(muster_queue_create(p->client, NULL, &out_queue, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(p->server, NULL, &in_queue, NULL), MUSTER_OK);
    enum { piece = 3000000, pieces = 5 };
    unsigned char *out = malloc(piece * pieces);
    unsigned char *in = malloc(piece * pieces);
    for (size_t i = 0; i < piece * pieces; i++) out[i] = pattern(i);
    for (int i = 0; i < pieces; i++) {
        assert_int_equal(muster_stream_read_begin(p->far, in + i * piece, piece, 0, in_queue, i), MUSTER_OK);
        assert_int_equal(muster_stream_write_owned(p->near, out + i * piece, piece, out_queue, i), MUSTER_OK);
    }
    for (int i = 0; i < pieces; i++) {
        muster_completion entry = next_entry(out_queue);
        assert_int_equal(entry.kind, MUSTER_DONE_RELEASED);
        assert_int_equal(entry.status, MUSTER_OK);
        assert_int_equal(entry.bytes, piece);
        assert_int_equal(entry.tag, i);
        entry = next_entry(in_queue);
        assert_int_equal(entry.kind, MUSTER_DONE_READ);
        assert_int_equal(entry.status, MUSTER_OK);
        assert_int_equal(entry.bytes, piece);
    }
    assert_memory_equal(in, out, piece * pieces);
    free(in);
    free(out);
    muster_queue_release(out_queue);
    muster_queue_release(in_queue);
}

// ---- many
// ------------------------------------------------------------------------------------------------------------

static void many_streams_at_once(const way *w, pair *p) {
    (void)w;
    enum { count = 64 };
    muster_stream *near[count];
    muster_stream *far[count];
    for (int i = 0; i < count; i++) {
        const muster_transport_config config = {.struct_size = sizeof config, .hello = &i, .hello_bytes = sizeof i};
        assert_int_equal(
            muster_transport_dial(p->client, p->address, strlen(p->address), &config, 20 * SECOND, &near[i], NULL),
            MUSTER_OK);
        assert_int_equal(muster_listener_accept(p->listener, 20 * SECOND, &far[i], NULL), MUSTER_OK);
        int who = -1;
        size_t bytes = 0;
        assert_int_equal(muster_transport_hello(far[i], &who, sizeof who, &bytes), MUSTER_OK);
        assert_int_equal(who, i);
    }
    for (int round = 0; round < 3; round++) {
        char text[64];
        for (int i = 0; i < count; i++) {
            snprintf(text, sizeof text, "round %d of %d", round, i);
            put(near[i], text);
        }
        for (int i = 0; i < count; i++) {
            snprintf(text, sizeof text, "round %d of %d", round, i);
            expect(far[i], text);
            put(far[i], text);
        }
        for (int i = 0; i < count; i++) {
            snprintf(text, sizeof text, "round %d of %d", round, i);
            expect(near[i], text);
        }
    }
    for (int i = 0; i < count; i++) {
        muster_stream_release(near[i]);
        muster_stream_release(far[i]);
    }
}

static void test_a_small_window_carries_large_messages(void **state) {
    (void)state;
    for (int i = 0; i < way_count; i++) {
        const way *w = &ways[i];
        pair p = {0};
        open_pair(&p, w);
        const muster_transport_config config = {.struct_size = sizeof config, .window_bytes = 4096};
        listen_at(&p, w->listen, &config);
        strcat(p.address, w->dial_options);
        assert_int_equal(
            muster_transport_dial(p.client, p.address, strlen(p.address), &config, 20 * SECOND, &p.near, NULL),
            MUSTER_OK);
        assert_int_equal(muster_listener_accept(p.listener, 20 * SECOND, &p.far, NULL), MUSTER_OK);
        transfer(w, &p, 1 << 20, 300000, 70000);
        drop_pair(&p);
    }
}

static long port_in(const char *address) {
    const char *const host = address + strlen("tcp://");
    const char *const end = *host == '[' ? strchr(host, ']') : host;
    return strtol(strchr(end, ':') + 1, NULL, 10);
}

static void both_sides_know_each_other(const way *w, pair *p) {
    char text[600];
    size_t bytes = 0;
    assert_int_equal(muster_stream_peer(p->near, text, sizeof text, &bytes), MUSTER_OK);
    assert_string_equal(text, p->address);
    assert_int_equal(muster_stream_peer(p->far, text, sizeof text, &bytes), MUSTER_OK);
    assert_memory_equal(text, w->listen, 4);
    assert_int_equal(muster_transport_hello(p->near, NULL, 0, &bytes), MUSTER_OK);
    assert_int_equal(bytes, 0);
    // The address of the socket here is the one from which the other side sees the connection.
    const bool has_socket = strncmp(p->address, "tcp://", 6) == 0;
    char own[600];
    assert_int_equal(muster_stream_local_address(p->near, own, sizeof own, &bytes),
                     has_socket ? MUSTER_OK : MUSTER_E_UNSUPPORTED);
    if (!has_socket) return;
    assert_int_equal(bytes, strlen(own));
    assert_string_equal(own, text);
    assert_int_equal(muster_stream_local_address(p->near, own, 4, &bytes), MUSTER_E_LIMIT);
    assert_int_equal(bytes, strlen(text));
    assert_int_equal(muster_stream_local_address(p->far, own, sizeof own, &bytes), MUSTER_OK);
    assert_int_equal(port_in(own), port_in(p->address)); // where a name and options may be
    assert_int_equal(muster_stream_local_address(NULL, own, sizeof own, &bytes), MUSTER_E_ARG);
    assert_int_equal(muster_stream_local_address(p->near, own, sizeof own, NULL), MUSTER_E_ARG);
}

// Neither side reads what the other side has sent, and both close: no side waits for the other.
static void both_sides_close_with_bytes_left(const way *w, pair *p) {
    (void)w;
    static char bytes[65536];
    muster_stream *const sides[] = {p->near, p->far};
    for (int i = 0; i < 2; i++) {
        size_t moved = 0;
        while (muster_stream_write(sides[i], bytes, sizeof bytes, 20 * MILLISECOND, &moved) == MUSTER_OK) {
        }
    } // drop_pair() releases both, and requires an orderly end of both contexts within 5 s
}

int main(void) {
    const struct CMUnitTest tests[] = {
        EACH_WAY(a_word_goes_each_way),
        EACH_WAY(same_host_links_move_to_shared_memory),
        EACH_WAY(bytes_arrive_whole_and_in_order),
        EACH_WAY(half_close_leaves_the_other_direction_open),
        EACH_WAY(abort_carries_its_reason),
        EACH_WAY(close_loses_nothing_and_tells_the_peer),
        EACH_WAY(closing_after_the_peer_has_closed_is_no_failure),
        EACH_WAY(release_sends_what_was_written),
        EACH_WAY(closing_the_context_delivers_first),
        EACH_WAY(a_read_that_is_not_answered_ends_in_time),
        EACH_WAY(a_wait_can_be_cancelled),
        EACH_WAY(a_wait_for_an_answer_ends_as_any_other),
        EACH_WAY(back_pressure_stops_the_writer_and_nothing_is_lost),
        EACH_WAY(a_cancelled_write_tells_what_was_accepted),
        EACH_WAY(a_reader_asleep_is_not_taken_for_dead),
        EACH_WAY(a_watched_stream_tells_of_each_message),
        EACH_WAY(buffers_are_lent_and_given_back),
        EACH_WAY(many_streams_at_once),
        cmocka_unit_test(test_a_small_window_carries_large_messages),
        EACH_WAY(both_sides_close_with_bytes_left),
        EACH_WAY(both_sides_know_each_other),
    };
    if (getenv("ONLY")) cmocka_set_test_filter(getenv("ONLY"));
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
