// SPDX-License-Identifier: MIT
// What a store promises to those who wait: watches, leases, waits for keys and queues, barriers, many threads.
// ctest: quick timeout=120
#include "store_requests.h"

#include <pthread.h>

/* ---- watches and leases ---- */

static void test_watch(void **state) {
    (void)state;
    fixture f = set_up(0);
    assert_int_equal(one(f.store, op(MUSTER_STORE_WATCH, "")), MUSTER_AGAIN);
    assert_int_equal(one(f.store, set("job/a", "1")), MUSTER_OK);
    const uint64_t begun = muster_store_result_revision(last);
    assert_int_equal(one(f.store, set("other", "x")), MUSTER_OK);
    const muster_store_op both[] = {set("job/b", "2"), op(MUSTER_STORE_DELETE, "job/a")};
    assert_int_equal(request(f.store, both, 2, 0), MUSTER_OK);
    assert_int_equal(one(f.store, set("job/b", "3")), MUSTER_OK);
    muster_store *job;
    assert_int_equal(muster_store_view(f.store, "job/", 4, &job, NULL), MUSTER_OK);
    muster_store_op watch = op(MUSTER_STORE_WATCH, "");
    watch.version = begun;
    watch.number = 1; /* a request is shown as a whole all the same */
    assert_int_equal(one(job, watch), MUSTER_OK);
    assert_int_equal(muster_store_result_count(last), 2);
    expect_bytes(entry(0).key, entry(0).key_bytes, "b");
    expect_holds(0, "2");
    expect_bytes(entry(1).key, entry(1).key_bytes, "a");
    assert_int_equal(entry(1).flags, 0);
    assert_int_equal(entry(1).version, muster_store_result_revision(last));
    watch.version = muster_store_result_revision(last);
    assert_int_equal(one(job, watch), MUSTER_OK);
    expect_holds(0, "3");
    watch.version = muster_store_result_revision(last);
    assert_int_equal(one(job, watch), MUSTER_AGAIN);
    assert_int_equal(muster_store_begin(job, &watch, 1, -1, f.queue, 9, NULL, NULL), MUSTER_OK);
    assert_int_equal(one(f.store, set("other", "y")), MUSTER_OK);
    expect_none(&f);
    assert_int_equal(one(job, set("c", "4")), MUSTER_OK);
    assert_int_equal(take(&f, MUSTER_OK).tag, 9);
    assert_int_equal(muster_store_result_count(last), 1);
    expect_holds(0, "4");
    watch.version = muster_store_result_revision(last) + 1; /* of another store, perhaps */
    assert_int_equal(one(job, watch), MUSTER_E_STALE);
    expect_text("watch \"\": changes behind revision");
    muster_store_release(job);
    tear_down(&f);
}

static void test_leases(void **state) {
    fixture f = set_up(*(uint32_t *)*state);
    muster_lease *kept, *manual;
    assert_int_equal(muster_store_lease(f.store, 50 * ms, 0, second, &kept, NULL), MUSTER_OK);
    assert_int_equal(muster_store_lease(f.store, 100 * ms, MUSTER_LEASE_MANUAL, second, &manual, NULL), MUSTER_OK);
    assert_true(muster_lease_id(kept) != 0 && muster_lease_id(kept) != muster_lease_id(manual));
    muster_store_op ops[] = {set("kept", "1"), set("also", "2"), number(MUSTER_STORE_ADD, "kept", 1),
                             set("manual", "3")};
    ops[0].lease = ops[1].lease = muster_lease_id(kept);
    ops[3].lease = muster_lease_id(manual);
    assert_int_equal(request(f.store, ops, 4, 0), MUSTER_OK);
    muster_store_op watch = op(MUSTER_STORE_WATCH, "");
    watch.version = muster_store_result_revision(last);
    assert_int_equal(muster_lease_keep(manual), MUSTER_OK);
    assert_int_equal(request(f.store, &watch, 1, 20 * second), MUSTER_OK); /* nobody keeps it any more */
    assert_int_equal(muster_store_result_count(last), 1);
    expect_bytes(entry(0).key, entry(0).key_bytes, "manual");
    assert_int_equal(entry(0).flags, MUSTER_STORE_LEASE_SILENT);
    assert_int_equal(muster_lease_keep(manual), MUSTER_E_STALE);
    assert_int_equal(muster_lease_end(manual, second, NULL), MUSTER_E_STALE);
    assert_int_equal(one(f.store, ops[3]), MUSTER_E_STALE);
    expect_text("set \"manual\": its lease is over");
    assert_int_equal(one(f.store, op(MUSTER_STORE_GET, "kept")), MUSTER_OK); /* long behind its 50 ms */
    assert_int_equal(one(f.store, set("also", "stays")), MUSTER_OK);
    watch.version = muster_store_result_revision(last);
    muster_lease_release(kept); /* now it ends after its time */
    assert_int_equal(request(f.store, &watch, 1, 20 * second), MUSTER_OK);
    assert_int_equal(muster_store_result_count(last), 1);
    expect_bytes(entry(0).key, entry(0).key_bytes, "kept");
    muster_lease_release(manual);
    assert_int_equal(muster_store_lease(f.store, second, 0, -1, &kept, NULL), MUSTER_OK);
    ops[0].lease = muster_lease_id(kept);
    assert_int_equal(one(f.store, ops[0]), MUSTER_OK);
    assert_int_equal(muster_lease_end(kept, second, NULL), MUSTER_OK);
    assert_int_equal(one(f.store, op(MUSTER_STORE_KEYS, "")), MUSTER_OK);
    assert_int_equal(muster_store_result_count(last), 1);
    expect_bytes(entry(0).key, entry(0).key_bytes, "also");
    muster_lease_release(kept);
    muster_completion done;
    assert_int_equal(muster_store_lease_begin(f.store, second, MUSTER_LEASE_CONNECTED, second, f.queue, 7, NULL, NULL),
                     MUSTER_OK);
    assert_int_equal(muster_queue_next(f.queue, 10 * second, &done, NULL), MUSTER_OK);
    assert_int_equal(done.kind, MUSTER_DONE_LEASE);
    assert_int_equal(done.status, MUSTER_OK);
    assert_int_equal(done.tag, 7);
    assert_true(muster_lease_id(done.object) != 0);
    assert_int_equal(muster_lease_end(done.object, second, NULL), MUSTER_OK);
    muster_lease_release(done.object);
    assert_int_equal(muster_store_lease(f.store, ms - 1, 0, -1, &kept, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_store_lease(f.store, second, 4, -1, &kept, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_store_lease(NULL, second, 0, -1, &kept, NULL), MUSTER_E_ARG);
    assert_null(kept);
    muster_lease_release(NULL);
    tear_down(&f);
}

static void test_a_watch_tells_why_a_lease_has_ended(void **state) {
    (void)state;
    fixture f = set_up(0);
    muster_lease *given_up, *unkept;
    assert_int_equal(muster_store_lease(f.store, second, 0, -1, &given_up, NULL), MUSTER_OK);
    assert_int_equal(muster_store_lease(f.store, 20 * ms, MUSTER_LEASE_MANUAL, -1, &unkept, NULL), MUSTER_OK);
    muster_store_op keys[] = {set("a", "1"), set("b", "2"), set("c", "3")};
    keys[0].lease = muster_lease_id(given_up);
    keys[1].lease = muster_lease_id(unkept);
    assert_int_equal(request(f.store, keys, 3, 0), MUSTER_OK);
    muster_store_op watch = op(MUSTER_STORE_WATCH, "");
    const uint32_t expected[] = {MUSTER_STORE_LEASE_ENDED, 0, MUSTER_STORE_LEASE_SILENT};
    watch.version = muster_store_result_revision(last);
    assert_int_equal(muster_lease_end(given_up, second, NULL), MUSTER_OK);
    assert_int_equal(one(f.store, op(MUSTER_STORE_DELETE, "c")), MUSTER_OK);
    for (int seen = 0; seen < 3;) {
        assert_int_equal(request(f.store, &watch, 1, 10 * second), MUSTER_OK);
        for (uint64_t i = 0; i < muster_store_result_count(last); i++) {
            const uint32_t key = *(const char *)entry(i).key == 'a' ? 0 : *(const char *)entry(i).key == 'c' ? 1 : 2;
            assert_int_equal(entry(i).flags, expected[key]);
            seen++;
        }
        watch.version = muster_store_result_revision(last);
    }
    muster_lease_release(given_up);
    muster_lease_release(unkept);
    tear_down(&f);
}

/* ---- waiting ---- */

static void test_waits(void **state) {
    (void)state;
    fixture f = set_up(0);
    const muster_store_op both[] = {op(MUSTER_STORE_WAIT, "a"), op(MUSTER_STORE_GET, "b"), set("c", "done")};
    begin(&f, both, 3, -1, 1);
    const muster_store_op chained = op(MUSTER_STORE_GET, "c");
    begin(&f, &chained, 1, -1, 2);
    assert_int_equal(one(f.store, set("b", "2")), MUSTER_OK);
    expect_none(&f);
    const muster_store_op passing[] = {set("a", "1"), op(MUSTER_STORE_DELETE, "a")};
    assert_int_equal(request(f.store, passing, 2, 0), MUSTER_OK);
    expect_none(&f); /* it never was there */
    assert_int_equal(one(f.store, op(MUSTER_STORE_DELETE, "b")), MUSTER_OK);
    assert_int_equal(one(f.store, set("a", "1")), MUSTER_OK);
    expect_none(&f);
    assert_int_equal(one(f.store, op(MUSTER_STORE_READ, "c")), MUSTER_OK);
    expect_absent(0);
    assert_int_equal(one(f.store, set("b", "3")), MUSTER_OK);
    assert_int_equal(take(&f, MUSTER_OK).tag, 1);
    expect_holds(1, "3");
    assert_int_equal(take(&f, MUSTER_OK).tag, 2);
    expect_holds(0, "done");
    /* A condition is looked at when nothing is waited for. */
    const muster_store_op careful[] = {op(MUSTER_STORE_WAIT, "go"), if_value(set("a", "5"), "4")};
    begin(&f, careful, 2, -1, 3);
    expect_none(&f);
    assert_int_equal(one(f.store, set("go", "")), MUSTER_OK);
    take(&f, MUSTER_E_CHANGED);
    expect_holds(1, "1");
    tear_down(&f);
}

static void test_those_who_wait_for_a_queue_are_served_in_order(void **state) {
    (void)state;
    fixture f = set_up(0);
    const muster_store_op pop = op(MUSTER_STORE_POP, "jobs");
    for (uint64_t i = 0; i < 8; i++) begin(&f, &pop, 1, -1, i);
    const muster_store_op two[] = {with(MUSTER_STORE_PUSH, "jobs", "x"), with(MUSTER_STORE_PUSH, "jobs", "y")};
    for (uint64_t i = 0; i < 8; i += 2) {
        assert_int_equal(request(f.store, two, 2, 0), MUSTER_OK);
        assert_int_equal(take(&f, MUSTER_OK).tag, i);
        expect_holds(0, "x");
        assert_int_equal(take(&f, MUSTER_OK).tag, i + 1);
        expect_holds(0, "y");
        expect_none(&f);
    }
    assert_int_equal(one(f.store, op(MUSTER_STORE_LENGTH, "jobs")), MUSTER_OK);
    assert_int_equal(entry(0).number, 0);
    tear_down(&f);
}

static void test_ends_of_waits(void **state) {
    fixture f = set_up(*(uint32_t *)*state);
    const muster_store_op some[] = {op(MUSTER_STORE_WAIT, "a"), op(MUSTER_STORE_GET, "b\n"), op(MUSTER_STORE_POP, "c"),
                                    op(MUSTER_STORE_WAIT, "d"), op(MUSTER_STORE_WAIT, "e"),  set("f", "")};
    assert_int_equal(request(f.store, some, 6, 20 * ms), MUSTER_TIMEOUT);
    assert_null(last);
    expect_text("wait for \"a\", get \"b.\", pop from \"c\", wait for \"d\" and 1 more: absent after 0.0");
    begin(&f, some, 6, 20 * ms, 5);
    assert_int_equal(take(&f, MUSTER_TIMEOUT).tag, 5);
    expect_text("\"a\"");
    const uint64_t number_of_it = begin(&f, some, 6, -1, 6);
    assert_int_equal(muster_store_cancel(f.store, number_of_it), MUSTER_OK);
    assert_int_equal(muster_store_cancel(f.store, number_of_it), MUSTER_E_STALE);
    take(&f, MUSTER_E_CANCELED);
    assert_int_equal(muster_store_cancel(f.store, 999999), MUSTER_E_STALE);
    assert_int_equal(one(f.store, op(MUSTER_STORE_COUNT, "")), MUSTER_OK);
    assert_int_equal(entry(0).number, 0);
    const muster_store_op there = set("there", "1");
    begin(&f, &there, 1, second, 7); /* nothing to wait for */
    take(&f, MUSTER_OK);
    begin(&f, some, 6, -1, 8);
    assert_int_equal(muster_context_close(f.context, 10 * second), MUSTER_OK);
    take(&f, MUSTER_E_CLOSED);
    assert_int_equal(one(f.store, there), MUSTER_E_CLOSED);
    muster_store_release(f.store);
    muster_queue_release(f.queue);
    muster_context_release(f.context);
}

static muster_store_op barrier(const char *name, uint32_t rank, uint32_t members) {
    muster_store_op made = op(MUSTER_STORE_BARRIER, name);
    made.count = members, made.rank = rank;
    return made;
}

static void test_barrier(void **state) {
    (void)state;
    fixture f = set_up(0);
    assert_int_equal(one(f.store, barrier("alone", 0, 1)), MUSTER_OK);
    for (int round = 0; round < 3; round++) { /* it can be used again, at once */
        for (uint32_t rank = 0; rank < 4; rank++) {
            expect_none(&f);
            const muster_store_op here = barrier("step", 3 - rank, 4);
            begin(&f, &here, 1, -1, rank);
        }
        unsigned seen = 0;
        for (int i = 0; i < 4; i++) seen |= 1u << take(&f, MUSTER_OK).tag;
        assert_int_equal(seen, 15);
        assert_int_equal(entry(0).number, 4);
    }
    const muster_store_op first = barrier("step", 1, 12), second_one = barrier("step", 2, 12);
    const uint64_t leaving = begin(&f, &first, 1, -1, 1);
    assert_int_equal(one(f.store, first), MUSTER_E_EXISTS);
    expect_text("barrier \"step\": rank 1 is there already");
    assert_int_equal(one(f.store, barrier("step", 0, 11)), MUSTER_E_ARG);
    expect_text("of 11 members, others say 12");
    assert_int_equal(request(f.store, &second_one, 1, 20 * ms), MUSTER_TIMEOUT);
    expect_text("barrier \"step\" of 12, rank 0, 3, 4, 5, 6, 7, 8, 9 and 2 more: absent after 0.0");
    assert_int_equal(muster_store_cancel(f.store, leaving), MUSTER_OK); /* is not there any more */
    take(&f, MUSTER_E_CANCELED);
    assert_int_equal(one(f.store, barrier("step", 0, 2)), MUSTER_AGAIN);
    expect_text("rank 1: absent");
    assert_int_equal(one(f.store, barrier("step", 2, 2)), MUSTER_E_ARG);
    assert_int_equal(one(f.store, barrier("step", 0, 0)), MUSTER_E_ARG);
    assert_int_equal(one(f.store, barrier("step", 0, (1 << 20) + 1)), MUSTER_E_ARG);
    tear_down(&f);
}

static void test_nothing_is_taken_for_a_closed_queue(void **state) {
    (void)state;
    fixture f = set_up(0);
    const muster_store_op pop = op(MUSTER_STORE_POP, "jobs");
    for (uint64_t i = 0; i < 3; i++) begin(&f, &pop, 1, -1, i);
    assert_int_equal(muster_queue_close(f.queue), MUSTER_OK);
    assert_int_equal(one(f.store, with(MUSTER_STORE_PUSH, "jobs", "x")), MUSTER_OK);
    assert_int_equal(one(f.store, op(MUSTER_STORE_POP, "jobs")), MUSTER_OK);
    expect_holds(0, "x");
    tear_down(&f);
}

struct waiter {
    muster_store *store;
    pthread_t thread;
    muster_status status;
    const char *key;
};
static void *wait_for_it(void *argument) {
    struct waiter *w = argument;
    const muster_store_op get = op(MUSTER_STORE_GET, w->key);
    w->status = muster_store_do(w->store, &get, 1, -1, NULL, NULL);
    return NULL;
}

static void test_threads_that_wait(void **state) {
    (void)state;
    fixture f = set_up(0);
    muster_store *view;
    assert_int_equal(muster_store_view(f.store, "", 0, &view, NULL), MUSTER_OK);
    struct waiter waiters[] = {
        {.store = f.store, .key = "a"}, {.store = f.store, .key = "b"}, {.store = view, .key = "c"}};
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&waiters[i].thread, NULL, wait_for_it, &waiters[i]), 0);
    assert_int_equal(one(f.store, set("a", "1")), MUSTER_OK);
    pthread_join(waiters[0].thread, NULL);
    assert_int_equal(waiters[0].status, MUSTER_OK);
    do { /* until the other has begun to wait */
        assert_int_equal(muster_store_cancel(f.store, 0), MUSTER_OK);
    } while (pthread_tryjoin_np(waiters[1].thread, NULL) != 0);
    assert_int_equal(waiters[1].status, MUSTER_E_CANCELED);
    assert_int_equal(one(f.store, set("c", "1")), MUSTER_OK); /* that of the view has waited on */
    pthread_join(waiters[2].thread, NULL);
    assert_int_equal(waiters[2].status, MUSTER_OK);
    muster_store_release(view);
    tear_down(&f);
}

static void *add_and_pass(void *argument) {
    fixture *f = argument;
    for (int i = 0; i < 2000; i++) {
        const muster_store_op ops[] = {number(MUSTER_STORE_ADD, "sum", 1), op(MUSTER_STORE_POP, "tokens"),
                                       with(MUSTER_STORE_PUSH, "tokens", "t")};
        if (muster_store_do(f->store, ops, 3, -1, NULL, NULL) != MUSTER_OK) return f;
        muster_store_op swap;
        muster_store_result *result = NULL;
        uint64_t version = 0;
        do { /* compare-and-set until it works */
            swap = if_version(set("swap", "x"), version);
            muster_store_result_release(result);
            const muster_status status = muster_store_do(f->store, &swap, 1, -1, &result, NULL);
            muster_store_entry e;
            if (result == NULL || muster_store_result_entry(result, 0, &e) != MUSTER_OK) return f;
            version = e.version;
            if (status == MUSTER_OK) break;
            if (status != MUSTER_E_CHANGED) return f;
        } while (1);
        muster_store_result_release(result);
    }
    return NULL;
}

static void test_many_threads(void **state) {
    (void)state;
    fixture f = set_up(0);
    assert_int_equal(one(f.store, with(MUSTER_STORE_PUSH, "tokens", "t")), MUSTER_OK);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, add_and_pass, &f), 0);
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(one(f.store, op(MUSTER_STORE_GET, "sum")), MUSTER_OK);
    expect_holds(0, "8000");
    assert_int_equal(muster_store_result_revision(last), 1 + 2 * 8000);
    tear_down(&f);
}

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    static uint32_t threaded = 0, external = MUSTER_CONTEXT_EXTERNAL;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_a_watch_tells_why_a_lease_has_ended, forget),
        cmocka_unit_test_teardown(test_watch, forget),
        {"test_leases, threaded", test_leases, NULL, forget, &threaded},
        {"test_leases, external", test_leases, NULL, forget, &external},
        cmocka_unit_test_teardown(test_waits, forget),
        cmocka_unit_test_teardown(test_those_who_wait_for_a_queue_are_served_in_order, forget),
        {"test_ends_of_waits, threaded", test_ends_of_waits, NULL, forget, &threaded},
        {"test_ends_of_waits, external", test_ends_of_waits, NULL, forget, &external},
        cmocka_unit_test_teardown(test_barrier, forget),
        cmocka_unit_test_teardown(test_nothing_is_taken_for_a_closed_queue, forget),
        cmocka_unit_test_teardown(test_threads_that_wait, forget),
        cmocka_unit_test_teardown(test_many_threads, forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
