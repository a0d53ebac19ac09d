// SPDX-License-Identifier: MIT
// Members of a run that come: they meet, come late, are too few or too many, replace one that has died.
// ctest: quick timeout=120
#include "rendezvous_run.h"

#include <pthread.h>
#include <sched.h>

static void two_meet(uint32_t flags) {
    fixture f = set_up(flags);
    const muster_rendezvous_config run = run_of(&f, 2, 2);
    muster_rendezvous *who[2] = {member(&f, &run, "node10:1"), member(&f, &run, "node9:1")};
    muster_round *rounds[2];
    join_all(&f, who, rounds, 2);
    const muster_round_info a = info_of(rounds[0]), b = info_of(rounds[1]);
    assert_int_equal(a.number, 1);
    assert_int_equal(b.number, 1);
    assert_int_equal(a.rank, 1); /* node9 is before node10 */
    assert_int_equal(b.rank, 0);
    assert_int_equal(a.world, 2);
    assert_memory_equal(a.digest, b.digest, sizeof a.digest);
    assert_int_equal(event_of(who[0], MUSTER_RENDEZVOUS_COMPLETE).count, 2);
    assert_int_equal(state_of(who[0]).phase, MUSTER_RENDEZVOUS_PHASE_JOINED);
    muster_round_member_info other;
    assert_int_equal(muster_round_member(rounds[0], 0, second, &other, NULL), MUSTER_OK);
    assert_int_equal(other.address_bytes, 7);
    assert_memory_equal(other.address, "node9:1", 7);

    muster_store *views[2] = {store_of(rounds[0]), store_of(rounds[1])};
    muster_store_op set = op(MUSTER_STORE_SET, "k"), get = op(MUSTER_STORE_GET, "k"), list = op(MUSTER_STORE_LIST, "");
    set.value = "v";
    set.value_bytes = 1;
    muster_store_result *result;
    assert_int_equal(muster_store_do(views[0], &set, 1, second, &result, NULL), MUSTER_OK);
    assert_int_equal(muster_store_result_count(result), 1); /* what fences it is not shown */
    muster_store_result_release(result);
    assert_int_equal(muster_store_do(views[1], &get, 1, second, NULL, NULL), MUSTER_OK);
    assert_int_equal(muster_store_do(views[1], &list, 1, second, &result, NULL), MUSTER_OK);
    assert_int_equal(muster_store_result_count(result), 1);
    muster_store_result_release(result);
    set.condition = MUSTER_STORE_IF_ABSENT;
    assert_int_equal(muster_store_do(views[1], &set, 1, second, &result, NULL), MUSTER_E_CHANGED);
    assert_int_equal(muster_store_result_count(result), 1);
    muster_store_result_release(result);
    for (int i = 0; i < 2; i++) muster_store_release(views[i]);
    release_all(who, rounds, 2);
    tear_down(&f);
}
static void test_two_meet(void **state) {
    (void)state;
    two_meet(0);
}
static void test_two_meet_where_the_host_drives_the_engine(void **state) {
    (void)state;
    two_meet(MUSTER_CONTEXT_EXTERNAL);
}

static void test_the_last_call_waits_for_others_but_not_when_all_are_there(void **state) {
    (void)state;
    fixture f = set_up(0);
    muster_rendezvous_config run = run_of(&f, 2, 3);
    const int64_t call_ns = elsewhere ? 2500 * ms : 300 * ms; /* not all stores have leases so short */
    run.last_call_ns = call_ns;
    muster_rendezvous *who[3] = {member(&f, &run, "a"), member(&f, &run, "b"), member(&f, &run, "c")};
    muster_round *rounds[3];
    int64_t begun = now();
    join_all(&f, who, rounds, 2); /* c does not come */
    assert_true(now() - begun >= call_ns);
    assert_int_equal(info_of(rounds[0]).world, 2);
    assert_int_equal(event_of(who[0], MUSTER_RENDEZVOUS_LAST_CALL).count, 2);
    for (int i = 0; i < 2; i++) muster_round_release(rounds[i]);
    begun = now();
    join_all(&f, who, rounds, 3);
    assert_int_equal(info_of(rounds[2]).world, 3);
    assert_true(now() - begun < call_ns);
    release_all(who, rounds, 3);
    tear_down(&f);
}

static void test_who_comes_late_waits_is_seen_and_gets_in_with_the_next_round(void **state) {
    (void)state;
    fixture f = set_up(0);
    const muster_rendezvous_config run = run_of(&f, 2, 3);
    muster_rendezvous *who[3] = {member(&f, &run, "c"), member(&f, &run, "b"), member(&f, &run, "a")};
    muster_round *rounds[3], *old[2];
    join_all(&f, who, old, 2);
    begin(&f, who[2], MUSTER_RENDEZVOUS_JOIN, 2);
    const muster_rendezvous_event waits = event_of(who[0], MUSTER_RENDEZVOUS_WAITING);
    assert_int_equal(waits.count, 1);
    assert_int_equal(waits.round, 1);
    assert_int_equal(event_of(who[1], MUSTER_RENDEZVOUS_WAITING).count, 1);
    char text[64];
    size_t size;
    assert_int_equal(muster_rendezvous_list(who[0], text, sizeof text, second, &size, NULL), MUSTER_OK);
    assert_int_equal(size, 2);
    assert_memory_equal(text, "a\n", 2);

    muster_store *view = store_of(old[0]);
    const muster_store_op never = op(MUSTER_STORE_GET, "never"), read = op(MUSTER_STORE_READ, "x"),
                          watch = op(MUSTER_STORE_WATCH, "");
    muster_queue *queue;
    assert_int_equal(muster_queue_create(f.context, NULL, &queue, NULL), MUSTER_OK);
    assert_int_equal(muster_store_begin(view, &never, 1, -1, queue, 7, NULL, NULL), MUSTER_OK);
    assert_int_equal(muster_store_do(view, &read, 1, second, NULL, NULL), MUSTER_OK);
    begin(&f, who[0], MUSTER_RENDEZVOUS_JOIN, 0);
    muster_completion done;
    muster_error error;
    assert_int_equal(muster_queue_next(queue, 20 * second, &done, &error), MUSTER_OK);
    assert_int_equal(done.status, MUSTER_E_STALE); /* what waits ends */
    assert_string_equal(error.message, "rendezvous \"job\": round 1 is over: this member joined again");
    assert_int_equal(muster_store_do(view, &read, 1, second, NULL, &error), MUSTER_E_STALE);
    assert_int_equal(muster_store_do(view, &watch, 1, second, NULL, &error), MUSTER_E_STALE);
    assert_int_equal(info_of(old[0]).flags, MUSTER_ROUND_IS_OVER);
    assert_int_equal(event_of(who[1], MUSTER_RENDEZVOUS_LEFT).rank, info_of(old[0]).rank);
    assert_int_equal(info_of(old[1]).flags, 0); /* the other is still in, so there is no new round */
    assert_int_equal(state_of(who[1]).round, 1);

    begin(&f, who[1], MUSTER_RENDEZVOUS_JOIN, 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(muster_queue_next(f.queue, 20 * second, &done, &error), MUSTER_OK);
        assert_int_equal(done.status, MUSTER_OK);
        rounds[done.tag] = done.object;
    }
    for (int i = 0; i < 3; i++) assert_int_equal(info_of(rounds[i]).number, 2);
    for (int i = 0; i < 2; i++) assert_int_equal(info_of(rounds[i]).rank, info_of(old[i]).rank);
    assert_int_equal(info_of(rounds[2]).rank, 2); /* by name it would be 0 */
    muster_store_release(view);
    muster_queue_release(queue);
    for (int i = 0; i < 2; i++) muster_round_release(old[i]);
    release_all(who, rounds, 3);
    tear_down(&f);
}

static void test_a_death_is_told_and_a_spare_steps_in(void **state) {
    (void)state;
    fixture f = set_up(0);
    const muster_rendezvous_config run = run_of(&f, 2, 2);
    muster_rendezvous *who[3] = {member(&f, &run, "a"), member(&f, &run, "b"), member(&f, &run, "c")};
    muster_round *rounds[3];
    join_all(&f, who, rounds, 2);
    begin(&f, who[2], MUSTER_RENDEZVOUS_JOIN, 2);
    while (state_of(who[0]).spares != 1) { /* told by the leader; nothing is said to the host */
        muster_rendezvous_event none;
        assert_int_not_equal(muster_rendezvous_next_event(who[2], 20 * second, &none), MUSTER_TIMEOUT);
        if (state_of(who[2]).spares == 1) break;
    }
    assert_int_equal(state_of(who[2]).waiting, 0);
    const uint32_t rank = info_of(rounds[1]).rank;
    muster_rendezvous_release(who[1]); /* as if it died: it has not left */
    const muster_rendezvous_event dead = event_of(who[0], MUSTER_RENDEZVOUS_DEAD);
    assert_int_equal(dead.rank, rank);
    assert_int_equal(dead.round, 1);
    assert_int_equal(event_of(who[0], MUSTER_RENDEZVOUS_WAITING).count, 1);
    begin(&f, who[0], MUSTER_RENDEZVOUS_JOIN, 0);
    for (int i = 0; i < 2; i++) {
        muster_round *const round = ended(&f, UINT64_MAX, MUSTER_OK);
        assert_int_equal(info_of(round).number, 2);
        assert_int_equal(info_of(round).world, 2);
        muster_round_release(round);
    }
    for (int i = 0; i < 2; i++) muster_round_release(rounds[i]);
    muster_rendezvous_release(who[0]);
    muster_rendezvous_release(who[2]);
    tear_down(&f);
}

static void test_a_run_has_one_set_of_parameters(void **state) {
    (void)state;
    fixture f = set_up(0);
    muster_rendezvous_config run = run_of(&f, 2, 4);
    muster_rendezvous *a = member(&f, &run, "a"), *b;
    muster_error error;
    run.min = 1;
    run.last_call_ns = 1500 * ms;
    assert_int_equal(muster_rendezvous_open(f.context, &run, second, &b, &error), MUSTER_E_ARG);
    assert_string_equal(error.message, "rendezvous \"job\": the run has min 2, max 4, no last call; here min 1, max 4, "
                                       "last call 1.500 s");
    run.min = 5;
    assert_int_equal(muster_rendezvous_open(f.context, &run, second, &b, &error), MUSTER_E_ARG);
    assert_string_equal(error.message, "muster_rendezvous_config: min 5 is above max 4");
    run.run_id = "job2";
    run.run_id_bytes = 4;
    run.min = 1;
    b = member(&f, &run, "b");
    muster_rendezvous_release(a);
    muster_rendezvous_release(b);
    tear_down(&f);
}

static void *cancel_soon(void *who) {
    event_of(who, MUSTER_RENDEZVOUS_JOINED);
    muster_rendezvous_cancel(who);
    return NULL;
}

static void test_a_join_in_vain_says_what_is_missing_and_takes_nobody_along(void **state) {
    (void)state;
    fixture f = set_up(0);
    const muster_rendezvous_config run = run_of(&f, 2, 2);
    muster_rendezvous *a = member(&f, &run, "a"), *b = member(&f, &run, "b"), *c = member(&f, &run, "c");
    muster_round *none, *rounds[2];
    muster_error error;
    assert_int_equal(muster_rendezvous_join(a, 100 * ms, &none, &error), MUSTER_TIMEOUT);
    assert_null(none);
    assert_non_null(strstr(error.message, "rendezvous \"job\": join: 1 of at least 2 are there after "));
    pthread_t thread;
    muster_rendezvous_event old;
    while (muster_rendezvous_next_event(a, 0, &old) == MUSTER_OK) {
    }
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, a), 0);
    assert_int_equal(muster_rendezvous_join(a, -1, &none, &error), MUSTER_E_CANCELED);
    pthread_join(thread, NULL);
    /* a does not count any more */
    begin(&f, b, MUSTER_RENDEZVOUS_JOIN, 0);
    event_of(b, MUSTER_RENDEZVOUS_JOINED);
    assert_int_equal(muster_rendezvous_begin(b, MUSTER_RENDEZVOUS_JOIN, NULL, 0, second, f.queue, 9, NULL), MUSTER_OK);
    assert_null(ended(&f, 9, MUSTER_E_BUSY));
    begin(&f, c, MUSTER_RENDEZVOUS_JOIN, 1);
    for (int i = 0; i < 2; i++) rounds[i] = ended(&f, UINT64_MAX, MUSTER_OK);
    assert_int_equal(info_of(rounds[0]).world, 2);
    assert_int_equal(state_of(a).phase, MUSTER_RENDEZVOUS_PHASE_IDLE);
    for (int i = 0; i < 2; i++) muster_round_release(rounds[i]);
    muster_rendezvous_release(a);
    muster_rendezvous_release(b);
    muster_rendezvous_release(c);
    tear_down(&f);
}

static void *join_when_nobody_else_runs(void *who) {
    const struct sched_param any = {0};
    muster_round *none;
    assert_int_equal(sched_setscheduler(0, SCHED_IDLE, &any), 0);
    return (void *)(intptr_t)muster_rendezvous_join(who, 10 * second, &none, NULL);
}

/* The thread that joins loses its processor as soon as another thread of this process can run: the join is seen, and
   cancelled, before the call that began it has gone on. */
static void test_a_cancel_finds_a_join_that_has_just_begun(void **state) {
    (void)state;
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    int first = 0;
    while (!CPU_ISSET(first, &all)) first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    fixture f = set_up(0);
    const muster_rendezvous_config run = run_of(&f, 2, 2);
    muster_rendezvous *a = member(&f, &run, "a");
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        void *status;
        assert_int_equal(pthread_create(&thread, NULL, join_when_nobody_else_runs, a), 0);
        event_of(a, MUSTER_RENDEZVOUS_JOINED);
        muster_rendezvous_cancel(a);
        pthread_join(thread, &status);
        assert_int_equal((intptr_t)status, MUSTER_E_CANCELED);
        for (muster_rendezvous_event old; muster_rendezvous_next_event(a, 0, &old) == MUSTER_OK;) continue;
    }
    muster_rendezvous_release(a);
    tear_down(&f);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

static void test_many_meet_at_once(void **state) {
    (void)state;
    enum { count = 300 }; /* more than one request can carry */
    fixture f = set_up(0);
    const muster_rendezvous_config run = run_of(&f, count, count);
    static muster_rendezvous *who[count];
    static muster_round *rounds[count];
    static unsigned char seen[count];
    char name[16];
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "node%d", i);
        who[i] = member(&f, &run, name);
    }
    for (int round = 1; round <= 2; round++) {
        join_all(&f, who, rounds, count);
        memset(seen, 0, sizeof seen);
        for (int i = 0; i < count; i++) {
            const muster_round_info info = info_of(rounds[i]);
            assert_int_equal(info.number, round);
            assert_int_equal(info.world, count);
            assert_int_equal(info.rank, i); /* natural order, then kept */
            assert_memory_equal(info.digest, info_of(rounds[0]).digest, sizeof info.digest);
        }
        muster_round_member_info last;
        assert_int_equal(muster_round_member(rounds[0], count - 1, second, &last, NULL), MUSTER_OK);
        assert_memory_equal(last.address, "node299", 7);
        for (int i = 0; i < count; i++) muster_round_release(rounds[i]);
    }
    release_all(who, NULL, count);
    tear_down(&f);
}

static void test_a_queue_tells_of_events(void **state) {
    (void)state;
    fixture f = set_up(0);
    muster_rendezvous_config run = run_of(&f, 1, 1);
    run.queue = f.queue;
    run.tag = 77;
    muster_rendezvous *a = member(&f, &run, "a");
    muster_round *round;
    assert_int_equal(muster_rendezvous_join(a, 10 * second, &round, NULL), MUSTER_OK);
    muster_completion ready;
    assert_int_equal(muster_queue_next(f.queue, 10 * second, &ready, NULL), MUSTER_OK);
    assert_int_equal(ready.kind, MUSTER_EVENT_READY);
    assert_int_equal(ready.tag, 77);
    event_of(a, MUSTER_RENDEZVOUS_COMPLETE);
    muster_round_release(round);
    assert_int_equal(muster_rendezvous_join(a, 10 * second, &round, NULL), MUSTER_OK);
    event_of(a, MUSTER_RENDEZVOUS_COMPLETE);
    muster_round_release(round);
    muster_rendezvous_release(a); /* what the queue would have told goes with it */
    assert_int_equal(muster_queue_next(f.queue, 0, &ready, NULL), MUSTER_AGAIN);
    tear_down(&f);
}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_meet),
        cmocka_unit_test(test_two_meet_where_the_host_drives_the_engine),
        cmocka_unit_test(test_the_last_call_waits_for_others_but_not_when_all_are_there),
        cmocka_unit_test(test_who_comes_late_waits_is_seen_and_gets_in_with_the_next_round),
        cmocka_unit_test(test_a_death_is_told_and_a_spare_steps_in),
        cmocka_unit_test(test_a_run_has_one_set_of_parameters),
        cmocka_unit_test(test_a_join_in_vain_says_what_is_missing_and_takes_nobody_along),
        cmocka_unit_test(test_a_cancel_finds_a_join_that_has_just_begun),
        cmocka_unit_test(test_many_meet_at_once),
        cmocka_unit_test(test_a_queue_tells_of_events),
    };
    RUN_OVER_STORES(tests, count, arguments);
}
