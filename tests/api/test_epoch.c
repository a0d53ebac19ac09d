// SPDX-License-Identifier: MIT
// Epochs in a process: pins, deferred objects, limits, protection, the end, and wrong use.
// ctest: quick timeout=120
#include "epoch_run.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

// The schedule that frees an object in use with the published algorithm: the remover's token lags behind the global
// epoch by one, so that its stamp is one too low.
static void test_an_object_in_use_is_not_freed_by_the_schedule_of_chapel(void **state) {
    for (uint32_t form = 0; form < 2; form++) {
        (void)state;
        muster_epoch *epoch = make_epoch(form == 0 ? 0 : MUSTER_EPOCH_FENCED, 0, 0);
        muster_epoch_token *remover = token_of(epoch), *reader = token_of(epoch), *reclaimer = token_of(epoch);
        int object = 0;
        muster_epoch_attempt attempt;
        assert_int_equal(muster_epoch_pin(remover), MUSTER_OK);                              // at e
        assert_int_equal(muster_epoch_try_reclaim(reclaimer, &attempt), MUSTER_OK);          // e + 1
        assert_int_equal(muster_epoch_pin(reader), MUSTER_OK);                               // at e + 1: has the object
        assert_int_equal(muster_epoch_defer(remover, count_free, NULL, &object), MUSTER_OK); // unlinked now
        assert_int_equal(muster_epoch_unpin(remover), MUSTER_OK);
        for (int i = 0; i < 10; i++) {
            muster_epoch_try_reclaim(remover, &attempt);
            poll_all(remover);
            poll_all(reclaimer);
        }
        assert_int_equal(object, 0); // the reader still uses it
        assert_int_equal(attempt.outcome, MUSTER_EPOCH_HELD);
        assert_int_equal(attempt.token, reader->index);
        assert_int_equal(attempt.process, getpid());
        assert_int_equal(muster_epoch_unpin(reader), MUSTER_OK);
        assert_int_equal(muster_epoch_synchronize(remover, second, &attempt), MUSTER_OK);
        assert_int_equal(poll_all(remover), 1);
        assert_int_equal(object, 1);
        for (int i = 0; i < 3; i++)
            assert_int_equal(muster_epoch_unregister(i == 0 ? reader : i == 1 ? remover : reclaimer), MUSTER_OK);
        muster_epoch_release(epoch);
    }
}

static void test_pins_nest_and_repin_lets_the_epoch_advance(void **state) {
    (void)state;
    muster_epoch *epoch = make_epoch(0, 0, 0);
    muster_epoch_token *a = token_of(epoch), *b = token_of(epoch);
    assert_int_equal(muster_epoch_pin(a), MUSTER_OK);
    muster_epoch_pin_inline(a); // the two forms are the same
    assert_int_equal(muster_epoch_repin(a), MUSTER_AGAIN);
    assert_int_equal(muster_epoch_try_reclaim(b, NULL), MUSTER_OK);
    assert_int_equal(muster_epoch_unpin(a), MUSTER_OK);
    muster_epoch_attempt attempt;
    assert_int_equal(muster_epoch_try_reclaim(b, &attempt), MUSTER_AGAIN); // the outer pin still holds it
    assert_int_equal(attempt.outcome, MUSTER_EPOCH_HELD);
    assert_int_equal(muster_epoch_repin(a), MUSTER_OK);
    assert_int_equal(muster_epoch_try_reclaim(b, &attempt), MUSTER_OK);
    muster_epoch_unpin_inline(a);
    assert_int_equal(muster_epoch_unpin(a), MUSTER_E_ARG);
    assert_int_equal(muster_epoch_repin(a), MUSTER_E_ARG);
    assert_int_equal(muster_epoch_unregister(a), MUSTER_OK);
    assert_int_equal(muster_epoch_unregister(b), MUSTER_OK);
    muster_epoch_release(epoch);
}

static void test_an_event_loop_is_quiescent_per_turn_and_offline_while_it_waits(void **state) {
    (void)state;
    muster_epoch *epoch = make_epoch(0, 0, 0);
    muster_epoch_token *loop = token_of(epoch), *other = token_of(epoch);
    assert_int_equal(muster_epoch_quiescent(loop), MUSTER_E_ARG);
    assert_int_equal(muster_epoch_online(loop), MUSTER_OK);
    assert_int_equal(muster_epoch_online(loop), MUSTER_E_ARG);
    assert_int_equal(muster_epoch_synchronize(other, 0, NULL), MUSTER_TIMEOUT);
    assert_int_equal(muster_epoch_synchronize(loop, 0, NULL), MUSTER_E_WOULD_DEADLOCK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(muster_epoch_quiescent(loop), MUSTER_OK);
        assert_int_equal(muster_epoch_advance(epoch, NULL), MUSTER_OK);
    }
    assert_int_equal(muster_epoch_advance(epoch, NULL), MUSTER_AGAIN);
    assert_int_equal(muster_epoch_pin(loop), MUSTER_OK); // nested in the turn
    assert_int_equal(muster_epoch_quiescent(loop), MUSTER_AGAIN);
    assert_int_equal(muster_epoch_offline(loop), MUSTER_E_ARG);
    assert_int_equal(muster_epoch_unpin(loop), MUSTER_OK);
    assert_int_equal(muster_epoch_offline(loop), MUSTER_OK);
    assert_int_equal(muster_epoch_offline(loop), MUSTER_E_ARG);
    assert_int_equal(muster_epoch_synchronize(other, second, NULL), MUSTER_OK);
    assert_int_equal(muster_epoch_unregister(other), MUSTER_OK);
    assert_int_equal(muster_epoch_unregister(loop), MUSTER_OK);
    muster_epoch_release(epoch);
}

static void test_defer_never_frees_and_poll_keeps_its_limits(void **state) {
    (void)state;
    muster_epoch *epoch = make_epoch(0, 4, 256);
    muster_epoch_token *t = token_of(epoch);
    static int objects[256];
    memset(objects, 0, sizeof objects);
    for (int i = 0; i < 256; i++) assert_int_equal(muster_epoch_defer(t, count_free, NULL, &objects[i]), MUSTER_OK);
    assert_int_equal(muster_epoch_defer(t, count_free, NULL, &objects[0]), MUSTER_AGAIN);
    assert_int_equal(stats_of(epoch).pending, 256);
    assert_int_equal(muster_epoch_try_reclaim(t, NULL), MUSTER_OK);
    assert_int_equal(muster_epoch_try_reclaim(t, NULL), MUSTER_OK);
    uint32_t freed;
    assert_int_equal(muster_epoch_poll(t, 0, 0, NULL, 0, NULL, &freed), MUSTER_AGAIN);
    assert_int_equal(freed, 8); // the default
    assert_int_equal(muster_epoch_poll(t, 100, 1, NULL, 0, NULL, &freed), MUSTER_AGAIN);
    assert_int_equal(freed, 1); // time is over after the first one
    assert_int_equal(muster_epoch_poll(t, 300, 0, NULL, 0, NULL, &freed), MUSTER_OK);
    assert_int_equal(freed, 256 - 9);
    for (int i = 0; i < 256; i++) assert_int_equal(objects[i], 1);
    // Polling after each defer is enough: the epoch advances by itself, and few objects wait.
    uint64_t most = 0;
    for (int i = 0; i < 100000; i++) {
        assert_int_equal(muster_epoch_pin(t), MUSTER_OK);
        assert_int_equal(muster_epoch_defer(t, count_free, NULL, &objects[i % 256]), MUSTER_OK);
        assert_int_equal(muster_epoch_unpin(t), MUSTER_OK);
        assert_true(muster_epoch_poll(t, 0, 0, NULL, 0, NULL, NULL) >= 0);
        const uint64_t pending = stats_of(epoch).pending;
        if (pending > most) most = pending;
    }
    assert_true(most <= 64);
    assert_int_equal(muster_epoch_barrier(t, second), MUSTER_OK);
    const muster_epoch_stats stats = stats_of(epoch);
    assert_int_equal(stats.deferred, 100256);
    assert_int_equal(stats.freed, 100256);
    assert_int_equal(stats.pending, 0);
    assert_int_equal(muster_epoch_unregister(t), MUSTER_OK);
    muster_epoch_release(epoch);
}

// A structure that cannot grow: all its objects wait, in few each of several tokens. Polls alone have to free them.
static void test_polls_free_fewer_objects_than_a_batch(void **state) {
    (void)state;
    muster_epoch *epoch = make_epoch(0, 0, 0);
    muster_epoch_token *tokens[3] = {token_of(epoch), token_of(epoch), token_of(epoch)};
    static int objects[63];
    memset(objects, 0, sizeof objects);
    for (int i = 0; i < 63; i++)
        assert_int_equal(muster_epoch_defer(tokens[i / 31], count_free, NULL, &objects[i]), MUSTER_OK);
    assert_int_equal(muster_epoch_unregister(tokens[0]), MUSTER_OK); // the others poll for it
    for (int i = 0; i < 1000; i++)
        for (int t = 1; t < 3; t++) assert_true(muster_epoch_poll(tokens[t], 0, 0, NULL, 0, NULL, NULL) >= 0);
    assert_int_equal(stats_of(epoch).pending, 0);
    for (int i = 0; i < 63; i++) assert_int_equal(objects[i], 1);
    const uint64_t now = stats_of(epoch).epoch;
    for (int i = 0; i < 1000; i++) assert_int_equal(muster_epoch_poll(tokens[1], 0, 0, NULL, 0, NULL, NULL), MUSTER_OK);
    assert_int_equal(stats_of(epoch).epoch, now); // nothing waits, so nothing is tried
    for (int t = 1; t < 3; t++) assert_int_equal(muster_epoch_unregister(tokens[t]), MUSTER_OK);
    muster_epoch_release(epoch);
}

static void test_retired_objects_are_handed_back(void **state) {
    (void)state;
    muster_epoch *epoch = make_epoch(0, 0, 0);
    muster_epoch_token *t = token_of(epoch);
    int object = 0;
    for (uint64_t i = 1; i <= 5; i++) assert_int_equal(muster_epoch_retire(t, i), MUSTER_OK);
    assert_int_equal(muster_epoch_defer(t, count_free, NULL, &object), MUSTER_OK);
    assert_int_equal(muster_epoch_barrier(t, second), MUSTER_AGAIN);
    uint64_t back[3];
    uint32_t count = 9, freed = 9;
    assert_int_equal(muster_epoch_poll(t, 100, 0, back, 3, &count, &freed), MUSTER_AGAIN);
    assert_int_equal(count, 3);
    assert_int_equal(freed, 3);
    for (uint64_t i = 0; i < 3; i++) assert_int_equal(back[i], i + 1);
    assert_int_equal(object, 0); // objects of one token are freed in their order
    assert_int_equal(muster_epoch_poll(t, 100, 0, back, 3, &count, &freed), MUSTER_OK);
    assert_int_equal(count, 2);
    assert_int_equal(freed, 3);
    assert_int_equal(object, 1);
    assert_int_equal(muster_epoch_unregister(t), MUSTER_OK);
    muster_epoch_release(epoch);
}

static void test_a_protected_object_stays_while_the_others_are_freed(void **state) {
    (void)state;
    muster_epoch *epoch = make_epoch(0, 0, 0);
    muster_epoch_token *reader = token_of(epoch), *writer = token_of(epoch);
    static int objects[200];
    memset(objects, 0, sizeof objects);
    assert_int_equal(muster_epoch_protect(reader, 0, (uintptr_t)&objects[50]), MUSTER_E_ARG); // not pinned
    assert_int_equal(muster_epoch_pin(reader), MUSTER_OK);
    assert_int_equal(muster_epoch_protect(reader, 8, (uintptr_t)&objects[50]), MUSTER_E_ARG);
    assert_int_equal(muster_epoch_protect(reader, 7, (uintptr_t)&objects[50]), MUSTER_OK);
    for (int i = 0; i < 200; i++)
        assert_int_equal(muster_epoch_defer(writer, count_free, NULL, &objects[i]), MUSTER_OK);
    assert_int_equal(muster_epoch_unpin(reader), MUSTER_OK); // and goes on using it
    assert_int_equal(muster_epoch_barrier(writer, 20 * ms), MUSTER_TIMEOUT);
    for (int i = 0; i < 200; i++) assert_int_equal(objects[i], i != 50);
    assert_int_equal(muster_epoch_clear(epoch, NULL), MUSTER_E_BUSY);
    assert_int_equal(muster_epoch_protect(reader, 7, 0), MUSTER_OK);
    assert_int_equal(muster_epoch_barrier(writer, second), MUSTER_OK);
    assert_int_equal(objects[50], 1);
    assert_int_equal(muster_epoch_unregister(reader), MUSTER_OK);
    assert_int_equal(muster_epoch_unregister(writer), MUSTER_OK);
    muster_epoch_release(epoch);
}

static void test_a_queue_is_notified_of_a_token_that_blocks(void **state) {
    (void)state;
    muster_context *context;
    muster_queue *queue;
    assert_int_equal(muster_context_create(NULL, &context, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(context, NULL, &queue, NULL), MUSTER_OK);
    const muster_epoch_config config = {
        .struct_size = sizeof config, .max_tokens = 4, .max_pending = 256, .queue = queue, .tag = 11};
    muster_epoch *epoch;
    assert_int_equal(muster_epoch_create(&config, &epoch, NULL), MUSTER_OK);
    muster_epoch_token *reader = token_of(epoch), *writer = token_of(epoch);
    assert_int_equal(muster_epoch_pin(reader), MUSTER_OK);
    muster_completion entry;
    static int objects[256];
    for (int i = 0; i < 256; i++) {
        assert_int_equal(muster_epoch_defer(writer, count_free, NULL, &objects[i]), MUSTER_OK);
        assert_int_equal(muster_epoch_poll(writer, 0, 0, NULL, 0, NULL, NULL), MUSTER_OK);
        if (i == 120) assert_int_equal(muster_queue_next(queue, 0, &entry, NULL), MUSTER_AGAIN);
    }
    assert_int_equal(muster_queue_next(queue, second, &entry, NULL), MUSTER_OK);
    assert_int_equal(entry.kind, MUSTER_EVENT_READY);
    assert_int_equal(entry.tag, 11);
    assert_int_equal(entry.events, MUSTER_EPOCH_BLOCKED);
    assert_int_equal(stats_of(epoch).blocking_token, reader->index);
    assert_int_equal(stats_of(epoch).blocking_process, getpid());
    assert_int_equal(muster_epoch_unregister(reader), MUSTER_OK); // unpins, too
    assert_int_equal(stats_of(epoch).blocking_token, UINT32_MAX);
    assert_int_equal(muster_epoch_barrier(writer, second), MUSTER_OK);
    assert_int_equal(muster_epoch_unregister(writer), MUSTER_OK);
    muster_epoch_release(epoch);
    muster_queue_release(queue);
    muster_context_release(context);
}

static void test_objects_of_an_unregistered_token_are_freed_by_the_others_or_with_the_manager(void **state) {
    (void)state;
    static int objects[130];
    for (int ends = 0; ends < 2; ends++) {
        memset(objects, 0, sizeof objects);
        muster_epoch *epoch = make_epoch(0, 0, 0);
        muster_epoch_token *left = token_of(epoch), *stays = token_of(epoch);
        for (int i = 0; i < 130; i++)
            assert_int_equal(muster_epoch_defer(left, count_free, NULL, &objects[i]), MUSTER_OK);
        assert_int_equal(muster_epoch_unregister(left), MUSTER_OK);
        assert_int_equal(stats_of(epoch).orphaned, 1);
        if (ends == 0) {
            assert_int_equal(muster_epoch_synchronize(stays, second, NULL), MUSTER_OK);
            assert_int_equal(poll_all(stays), 130);
            assert_int_equal(stats_of(epoch).orphaned, 0);
        }
        muster_epoch_release(epoch); // the token keeps the manager
        assert_int_equal(objects[0], ends == 0);
        assert_int_equal(muster_epoch_pin(stays), MUSTER_OK);
        assert_int_equal(muster_epoch_unpin(stays), MUSTER_OK);
        assert_int_equal(muster_epoch_unregister(stays), MUSTER_OK);
        for (int i = 0; i < 130; i++) assert_int_equal(objects[i], 1);
    }
}

static void test_clear_frees_without_protection(void **state) {
    (void)state;
    muster_epoch *epoch = make_epoch(0, 0, 0);
    muster_epoch_token *t = token_of(epoch);
    int objects[3] = {0};
    assert_int_equal(muster_epoch_defer(t, count_free, NULL, &objects[0]), MUSTER_OK);
    assert_int_equal(muster_epoch_synchronize(t, second, NULL), MUSTER_OK); // it is freed by the next poll, not before
    assert_int_equal(objects[0], 0);
    assert_int_equal(poll_all(t), 1);
    objects[0] = 0;
    for (int i = 0; i < 3; i++) assert_int_equal(muster_epoch_defer(t, count_free, NULL, &objects[i]), MUSTER_OK);
    assert_int_equal(muster_epoch_retire(t, 77), MUSTER_OK);
    uint64_t freed = 0;
    assert_int_equal(muster_epoch_pin(t), MUSTER_OK);
    assert_int_equal(muster_epoch_clear(epoch, &freed), MUSTER_E_BUSY);
    assert_int_equal(muster_epoch_unpin(t), MUSTER_OK);
    assert_int_equal(muster_epoch_clear(epoch, &freed), MUSTER_OK);
    assert_int_equal(freed, 3);
    assert_int_equal(stats_of(epoch).pending, 1);
    assert_int_equal(muster_epoch_synchronize(t, second, NULL), MUSTER_OK);
    assert_int_equal(muster_epoch_try_reclaim(t, NULL), MUSTER_OK);
    assert_int_equal(muster_epoch_synchronize(t, second, NULL), MUSTER_OK);
    uint64_t back;
    uint32_t count;
    assert_int_equal(muster_epoch_poll(t, 0, 0, &back, 1, &count, NULL), MUSTER_OK);
    assert_int_equal(count, 1);
    assert_int_equal(back, 77);
    assert_int_equal(muster_epoch_unregister(t), MUSTER_OK);
    muster_epoch_release(epoch);
}

static muster_epoch_token *polled;
static void poll_inside(void *user, void *object) {
    (void)object;
    *(muster_status *)user = muster_epoch_poll(polled, 0, 0, NULL, 0, NULL, NULL);
    assert_int_equal(muster_epoch_unregister(polled), MUSTER_E_WOULD_DEADLOCK);
    int *const more = object;
    if ((*more)++ == 0) assert_int_equal(muster_epoch_defer(polled, count_free, NULL, more), MUSTER_OK);
}

static void test_wrong_use_is_an_error(void **state) {
    (void)state;
    muster_epoch *epoch = make_epoch(0, 2, 0);
    muster_epoch_token *a = token_of(epoch), *b = token_of(epoch), *c = a;
    muster_error error;
    assert_int_equal(muster_epoch_register(epoch, &c, &error), MUSTER_E_LIMIT);
    assert_null(c);
    assert_non_null(strstr(error.message, "2 tokens"));
    assert_int_equal(muster_epoch_pin(NULL), MUSTER_E_ARG);
    assert_int_equal(muster_epoch_defer(a, NULL, NULL, &error), MUSTER_E_ARG);
    assert_int_equal(muster_epoch_defer(a, count_free, NULL, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_epoch_retire(a, 0), MUSTER_E_ARG);
    muster_status inside = MUSTER_OK;
    int object = 0;
    polled = a;
    assert_int_equal(muster_epoch_defer(a, poll_inside, &inside, &object), MUSTER_OK);
    assert_int_equal(muster_epoch_barrier(a, second), MUSTER_OK);
    assert_int_equal(inside, MUSTER_E_WOULD_DEADLOCK);
    assert_int_equal(object, 2); // a function may defer
    assert_int_equal(muster_epoch_unregister(b), MUSTER_OK);
    assert_int_equal(muster_epoch_unregister(b), MUSTER_E_STALE);
    assert_int_equal(muster_epoch_pin(b), MUSTER_E_STALE);
    muster_epoch_release(epoch);
    muster_epoch_release(epoch); // recognised
    assert_int_equal(muster_epoch_register(epoch, &c, NULL), MUSTER_E_STALE);
    assert_int_equal(muster_epoch_advance(epoch, NULL), MUSTER_E_STALE);
    assert_int_equal(muster_epoch_unregister(a), MUSTER_OK);
    assert_int_equal(muster_epoch_pin(a), MUSTER_E_STALE); // its manager has ended
    muster_epoch_config config = {.struct_size = sizeof config, .max_tokens = 65537};
    assert_int_equal(muster_epoch_create(&config, &epoch, &error), MUSTER_E_ARG);
    assert_non_null(strstr(error.message, "65537"));
    config = (muster_epoch_config){.struct_size = sizeof config, .max_pending = (1U << 26) + 1};
    assert_int_equal(muster_epoch_create(&config, &epoch, &error), MUSTER_E_ARG);
    config = (muster_epoch_config){.struct_size = sizeof config, .flags = 64};
    assert_int_equal(muster_epoch_create(&config, &epoch, &error), MUSTER_E_ARG);
    config = (muster_epoch_config){.struct_size = sizeof config, .fd = 3};
    assert_int_equal(muster_epoch_create(&config, &epoch, &error), MUSTER_E_ARG);
    assert_int_equal(muster_epoch_open(&config, &epoch, &error), MUSTER_E_ARG);
    assert_int_equal(muster_epoch_size(65537, 0), 0);
}

static void test_a_child_cannot_use_the_manager_of_its_parent(void **state) {
    (void)state;
    muster_epoch *epoch = make_epoch(0, 0, 0);
    muster_epoch_token *t = token_of(epoch);
    muster_context *context;
    muster_queue *queue;
    assert_int_equal(muster_context_create(NULL, &context, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(context, NULL, &queue, NULL), MUSTER_OK);
    const pid_t child = fork();
    if (child == 0) {
        const muster_epoch_config config = {.struct_size = sizeof config, .queue = queue};
        muster_epoch *not_made;
        if (muster_epoch_create(&config, &not_made, NULL) != MUSTER_E_FORKED) _exit(2);
        muster_epoch_token *other;
        const int refused = muster_epoch_pin(t) == MUSTER_E_FORKED && muster_epoch_unregister(t) == MUSTER_E_FORKED &&
                            muster_epoch_register(epoch, &other, NULL) == MUSTER_E_FORKED;
        muster_epoch_release(epoch);
        muster_epoch *const own = make_epoch(0, 0, 0);
        muster_epoch_token *const mine = token_of(own);
        _exit(refused && muster_epoch_pin(mine) == MUSTER_OK ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(muster_epoch_unregister(t), MUSTER_OK);
    muster_epoch_release(epoch);
    muster_queue_release(queue);
    muster_context_release(context);
}

// A reader that pins again when it was found to block lets the epoch advance once per turn: a wait has one limit, not
// one for each turn.
static muster_epoch_token *repinned;
static atomic_bool repin_ends;
static void *repin_slowly(void *epoch) {
    while (!atomic_load(&repin_ends)) {
        if (stats_of(epoch).blocked_ns > 20 * (uint64_t)ms) muster_epoch_repin(repinned);
        sched_yield();
    }
    return NULL;
}
// There is always an object left.
static void defer_again(void *token, void *object) {
    count_free(NULL, object);
    if (!atomic_load(&repin_ends)) assert_int_equal(muster_epoch_defer(token, defer_again, token, object), MUSTER_OK);
}
static void test_a_barrier_has_one_limit(void **state) {
    (void)state;
    muster_epoch *epoch = make_epoch(0, 0, 0);
    muster_epoch_token *const writer = token_of(epoch);
    repinned = token_of(epoch);
    static int object;
    object = 0;
    assert_int_equal(muster_epoch_pin(repinned), MUSTER_OK);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, repin_slowly, epoch), 0);
    assert_int_equal(muster_epoch_defer(writer, defer_again, writer, &object), MUSTER_OK);
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    assert_int_equal(muster_epoch_barrier(writer, 200 * ms), MUSTER_TIMEOUT);
    clock_gettime(CLOCK_MONOTONIC, &after);
    const int64_t took = (after.tv_sec - before.tv_sec) * second + after.tv_nsec - before.tv_nsec;
    assert_true(took >= 200 * ms && took < 10 * second);
    atomic_store(&repin_ends, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(muster_epoch_unregister(repinned), MUSTER_OK);
    assert_int_equal(muster_epoch_barrier(writer, 20 * second), MUSTER_OK);
    assert_true(object > 1);
    assert_int_equal(muster_epoch_unregister(writer), MUSTER_OK);
    muster_epoch_release(epoch);
}

static void *register_pin_and_exit(void *epoch) {
    muster_epoch_token *const t = token_of(epoch);
    static int object;
    object = 0;
    assert_int_equal(muster_epoch_pin(t), MUSTER_OK);
    assert_int_equal(muster_epoch_defer(t, count_free, NULL, &object), MUSTER_OK);
    return &object;
}

static void test_a_thread_that_exits_with_a_pin_is_found_if_tokens_are_bound_to_threads(void **state) {
    (void)state;
    for (int round = 0; round < 20; round++) { // the second death after the first
        static muster_epoch *epoch;
        if (round == 0) epoch = make_epoch(MUSTER_EPOCH_THREAD_BOUND, 0, 0);
        muster_epoch_token *t = token_of(epoch);
        pthread_t thread;
        void *object;
        assert_int_equal(pthread_create(&thread, NULL, register_pin_and_exit, epoch), 0);
        assert_int_equal(pthread_join(thread, &object), 0);
        assert_int_equal(muster_epoch_synchronize(t, 20 * second, NULL), MUSTER_OK);
        assert_int_equal(stats_of(epoch).deaths, round + 1);
        assert_int_equal(muster_epoch_synchronize(t, 20 * second, NULL), MUSTER_OK);
        assert_int_equal(poll_all(t), 1);
        assert_int_equal(*(int *)object, 1);
        assert_int_equal(muster_epoch_unregister(t), MUSTER_OK);
        if (round == 19) muster_epoch_release(epoch);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_object_in_use_is_not_freed_by_the_schedule_of_chapel),
        cmocka_unit_test(test_pins_nest_and_repin_lets_the_epoch_advance),
        cmocka_unit_test(test_an_event_loop_is_quiescent_per_turn_and_offline_while_it_waits),
        cmocka_unit_test(test_defer_never_frees_and_poll_keeps_its_limits),
        cmocka_unit_test(test_polls_free_fewer_objects_than_a_batch),
        cmocka_unit_test(test_retired_objects_are_handed_back),
        cmocka_unit_test(test_a_protected_object_stays_while_the_others_are_freed),
        cmocka_unit_test(test_a_queue_is_notified_of_a_token_that_blocks),
        cmocka_unit_test(test_objects_of_an_unregistered_token_are_freed_by_the_others_or_with_the_manager),
        cmocka_unit_test(test_clear_frees_without_protection),
        cmocka_unit_test(test_wrong_use_is_an_error),
        cmocka_unit_test(test_a_child_cannot_use_the_manager_of_its_parent),
        cmocka_unit_test(test_a_barrier_has_one_limit),
        cmocka_unit_test(test_a_thread_that_exits_with_a_pin_is_found_if_tokens_are_bound_to_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
