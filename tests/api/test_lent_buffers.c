/* SPDX-License-Identifier: MIT */
// ctest: quick timeout=60
/* Memory that a call lends to the library, and every way the queue, stream or context of that loan can end first.
 *
 * | lent by | until | ends earlier by |
 * |---|---|---|
 * | muster_stream_write_owned(), _many() | MUSTER_DONE_RELEASED | close or release of the queue; cancel, abort; the
 *   context's close |
 * | muster_stream_read_begin() | MUSTER_DONE_READ | close or release of the queue; cancel, abort, close, release; the
 *   context's close |
 * | muster_cluster_broadcast_begin(): data, statuses | MUSTER_DONE_BROADCAST | close or release of the queue; the
 *   cluster's close; tests/api/test_cluster_broadcast.c |
 *
 * All other calls copy what they are given before they return.
 *
 * Each case lends memory, ends the loan and makes the memory inaccessible: a late access ends the program in every
 * build, and bytes of it that were read before the loan ended are compared. Over each way the bytes can go. */
#include "transport_pair.h"

#include <stdbool.h>
#include <sys/mman.h>

enum { size = 3 << 20, taken_before = 300000 };

typedef struct loan {
    pair p;
    bool is_pair;
    muster_context *context; // of the lender
    muster_queue *queue;
    muster_stream *lender, *other;
    unsigned char *memory;
    bool begun; // the other side has met some of its bytes
} loan;

static unsigned char *lendable(void) {
    unsigned char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    for (size_t i = 0; i < size; i++) memory[i] = pattern(i);
    return memory;
}

static void take_back(loan *l) {
    memset(l->memory, 0xEE, size);
    assert_int_equal(mprotect(l->memory, size, PROT_NONE), 0);
}

static bool was_released(loan *l) {
    muster_completion entry;
    return muster_queue_next(l->queue, 10 * SECOND, &entry, NULL) == MUSTER_OK &&
           (entry.kind == MUSTER_DONE_RELEASED || entry.kind == MUSTER_DONE_READ);
}

// ---- the ways a loan ends -------------------------------------------------------------------------------------------

static void queue_closed(loan *l) {
    assert_int_equal(muster_queue_close(l->queue), MUSTER_OK);
}

static void queue_released(loan *l) {
    muster_queue_release(l->queue);
    l->queue = NULL;
}

static void stream_closed_and_queue_closed(loan *l) {
    muster_stream_close(l->lender, 0);
    queue_closed(l);
}

static void stream_closed_and_queue_released(loan *l) {
    muster_stream_close(l->lender, 0);
    queue_released(l);
}

static void stream_released_and_queue_closed(loan *l) {
    muster_stream_release(l->lender);
    l->lender = NULL;
    queue_closed(l);
}

static void stream_released_and_queue_released(loan *l) {
    muster_stream_release(l->lender);
    l->lender = NULL;
    queue_released(l);
}

static void stream_finished_and_queue_closed(loan *l) {
    muster_stream_finish(l->lender);
    queue_closed(l);
}

static void stream_cancelled(loan *l) {
    assert_int_equal(muster_stream_cancel(l->lender, MUSTER_STREAM_READ | MUSTER_STREAM_WRITE), MUSTER_OK);
    assert_true(was_released(l));
}

static void stream_closed_and_cancelled(loan *l) {
    muster_stream_close(l->lender, 0);
    assert_int_equal(muster_stream_cancel(l->lender, MUSTER_STREAM_READ | MUSTER_STREAM_WRITE), MUSTER_OK);
    assert_true(was_released(l));
}

static void stream_aborted(loan *l) {
    assert_int_equal(muster_stream_abort(l->lender, 1, NULL, 0), MUSTER_OK);
    assert_true(was_released(l));
}

static void context_closed(loan *l) {
    muster_context_close(l->context, 0);
    assert_true(was_released(l));
}

static void stream_released_and_context_closed(loan *l) {
    muster_stream_release(l->lender);
    l->lender = NULL;
    context_closed(l);
}

static const struct ending {
    const char *name;
    void (*end)(loan *l);
} endings[] = {
    {"queue closed", queue_closed},
    {"queue released", queue_released},
    {"stream closed, queue closed", stream_closed_and_queue_closed},
    {"stream closed, queue released", stream_closed_and_queue_released},
    {"stream released, queue closed", stream_released_and_queue_closed},
    {"stream released, queue released", stream_released_and_queue_released},
    {"stream finished, queue closed", stream_finished_and_queue_closed},
    {"stream cancelled", stream_cancelled},
    {"stream closed and cancelled", stream_closed_and_cancelled},
    {"stream aborted", stream_aborted},
    {"context closed", context_closed},
    {"stream released, context closed", stream_released_and_context_closed},
};
enum { ending_count = sizeof endings / sizeof *endings };

// ---- the table ------------------------------------------------------------------------------------------------------

static const way pair_way = {"pair", NULL, NULL, 0}, inproc_way = {"inproc", NULL, NULL, 0};

static void open_loan(loan *l, const way *w) {
    *l = (loan){.is_pair = w->listen == NULL};
    if (w == &pair_way) {
        l->context = make_context(0, SECRET);
        assert_int_equal(muster_stream_pair(l->context, NULL, &l->lender, &l->other, NULL), MUSTER_OK);
    } else if (w == &inproc_way) {
        l->context = make_context(0, SECRET);
        muster_listener *listener;
        assert_int_equal(muster_transport_listen(l->context, "inproc://loan", 13, NULL, &listener, NULL), MUSTER_OK);
        assert_int_equal(muster_transport_dial(l->context, "inproc://loan", 13, NULL, SECOND, &l->lender, NULL),
                         MUSTER_OK);
        assert_int_equal(muster_listener_accept(listener, SECOND, &l->other, NULL), MUSTER_OK);
        muster_listener_release(listener);
    } else {
        connect_pair(&l->p, w);
        l->context = l->p.client;
        l->lender = l->p.near;
        l->other = l->p.far;
    }
    assert_int_equal(muster_queue_create(l->context, NULL, &l->queue, NULL), MUSTER_OK);
    l->memory = lendable();
}

static void close_loan(loan *l) {
    if (l->queue != NULL) muster_queue_release(l->queue);
    if (l->is_pair) {
        if (l->lender != NULL) muster_stream_release(l->lender);
        muster_stream_release(l->other);
        muster_context_close(l->context, 0);
        muster_context_release(l->context);
    } else {
        if (l->lender != NULL) muster_stream_release(l->lender);
        muster_stream_release(l->other);
        muster_listener_release(l->p.listener);
        muster_context_close(l->p.client, 0);
        muster_context_close(l->p.server, 0);
        for (int i = 0; i < 2; i++) {
            if (!l->p.drivers[i].thread) continue;
            atomic_store(&l->p.drivers[i].stop, 1);
            pthread_join(l->p.drivers[i].thread, NULL);
        }
        muster_context_release(l->p.client);
        muster_context_release(l->p.server);
    }
    munmap(l->memory, size);
}

// What the other side can still read: the first bytes of the pattern and then an end, never anything else.
static size_t read_the_rest(loan *l, size_t from, const char *what, muster_status *status) {
    static unsigned char piece[65536];
    size_t got = from;
    for (;;) {
        size_t moved = 0;
        *status = muster_stream_read(l->other, piece, sizeof piece, 10 * SECOND, &moved);
        for (size_t i = 0; i < moved; i++)
            if (piece[i] != pattern(got + i)) fail_msg("%s: byte %zu is not what was written", what, got + i);
        got += moved;
        if (*status != MUSTER_OK) return got;
    }
}

static void write_owned_ended(const way *w, const struct ending *e, bool many, size_t before) {
    char what[128];
    snprintf(what, sizeof what, "%s: %s, %zu bytes read before", w->name, e->name, before);
    loan l;
    open_loan(&l, w);
    muster_status status;
    if (many) {
        status = muster_stream_write_owned_many(&l.lender, 1, l.memory, size, l.queue, NULL, NULL);
    } else {
        status = muster_stream_write_owned(l.lender, l.memory, size, l.queue, 7);
    }
    assert_int_equal(status, MUSTER_OK);
    static unsigned char first[taken_before];
    size_t got = 0;
    if (before != 0) {
        assert_int_equal(muster_stream_read_into(l.other, first, before, 0, 20 * SECOND, &got), MUSTER_OK);
        for (size_t i = 0; i < got; i++) assert_int_equal(first[i], pattern(i));
    }
    e->end(&l);
    take_back(&l);
    if (l.lender != NULL) muster_stream_finish(l.lender); // so that the reader meets an end
    const size_t all = read_the_rest(&l, got, what, &status);
    // Cut in the middle it must not look like an orderly end; only what was wholly there may.
    if (all != 0 && all < size && status == MUSTER_E_END) fail_msg("%s: ended in order after %zu bytes", what, all);
    if (status == MUSTER_TIMEOUT) fail_msg("%s: the reader waits for ever after %zu bytes", what, all);
    close_loan(&l);
}

static void read_begun_ended(const way *w, const struct ending *e, size_t before) {
    loan l;
    open_loan(&l, w);
    memset(l.memory, 0, size);
    assert_int_equal(muster_stream_read_begin(l.lender, l.memory, size, 0, l.queue, 7), MUSTER_OK);
    static unsigned char bytes[taken_before];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = pattern(i);
    size_t moved = 0;
    if (before != 0) assert_int_equal(muster_stream_write(l.other, bytes, before, 20 * SECOND, &moved), MUSTER_OK);
    e->end(&l);
    take_back(&l);
    // These would go to memory that is not the library's any more.
    muster_stream_write(l.other, bytes, sizeof bytes, 20 * MILLISECOND, &moved);
    muster_stream_flush(l.other, 20 * MILLISECOND);
    close_loan(&l);
}

static const way *const over[] = {&pair_way, &inproc_way, &ways[0], &ways[3], &ways[4], &ways[5], &ways[6], &ways[10]};

static void test_a_buffer_handed_over_is_not_read_after_its_loan(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof over / sizeof *over; i++)
        for (int e = 0; e < ending_count; e++) {
            write_owned_ended(over[i], &endings[e], false, 0);
            write_owned_ended(over[i], &endings[e], false, taken_before);
        }
}

static void test_a_block_handed_over_to_many_is_not_read_after_its_loan(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof over / sizeof *over; i++)
        for (int e = 0; e < ending_count; e++) write_owned_ended(over[i], &endings[e], true, taken_before);
}

static void test_a_target_of_a_begun_read_is_not_written_after_its_loan(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof over / sizeof *over; i++)
        for (int e = 0; e < ending_count; e++) {
            read_begun_ended(over[i], &endings[e], 0);
            read_begun_ended(over[i], &endings[e], taken_before);
        }
}

// ---- the end comes while the other side reads -----------------------------------------------------------------------

static void *read_all(void *argument) {
    loan *l = argument;
    muster_status status;
    read_the_rest(l, 0, "race", &status);
    return NULL;
}

static unsigned next_random(unsigned *seed) {
    *seed = *seed * 1103515245u + 12345u;
    return *seed >> 16;
}

static void test_the_end_may_come_at_any_moment(void **state) {
    (void)state;
    const char *const given = getenv("MUSTER_SEED");
    unsigned seed = given != NULL ? (unsigned)strtoul(given, NULL, 10) : 1;
    for (int turn = 0; turn < 150; turn++) {
        const unsigned first = seed;
        loan l;
        open_loan(&l, over[next_random(&seed) % (sizeof over / sizeof *over)]);
        assert_int_equal(muster_stream_write_owned(l.lender, l.memory, size, l.queue, 7), MUSTER_OK);
        pthread_t reader;
        assert_int_equal(pthread_create(&reader, NULL, read_all, &l), 0);
        const struct timespec pause = {0, next_random(&seed) % 64 * 20000};
        nanosleep(&pause, NULL);
        switch (next_random(&seed) % 4) {
        case 0:
            queue_closed(&l);
            break;
        case 1:
            queue_released(&l);
            break;
        case 2:
            stream_released_and_queue_closed(&l);
            break;
        default:
            stream_released_and_queue_released(&l);
        }
        take_back(&l);
        if (l.lender != NULL) muster_stream_finish(l.lender);
        if (pthread_join(reader, NULL) != 0) fail_msg("seed %u", first);
        close_loan(&l);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_buffer_handed_over_is_not_read_after_its_loan),
        cmocka_unit_test(test_a_block_handed_over_to_many_is_not_read_after_its_loan),
        cmocka_unit_test(test_a_target_of_a_begun_read_is_not_written_after_its_loan),
        cmocka_unit_test(test_the_end_may_come_at_any_moment),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
