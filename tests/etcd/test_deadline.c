// SPDX-License-Identifier: MIT
// Stores of an etcd that does not answer: every request ends at its deadline, and its status says whether it may have
// been applied.
// ctest: full timeout=150
#include "etcd.h"

#include "../store/every_request.h"

static const int64_t timeout = 100 * 1000000;
static any_request requests[any_request_count];

static void expect_in_time(int64_t from, const char *name) {
    const int64_t took = now() - from;
    if (took < 40 * ms || took > timeout + 250 * ms) fail_msg("%s: it took %lld us", name, (long long)(took / 1000));
}

// Waits and reads end with a time-out. What changes something may have been applied, or has not been sent.
static void expect_status(muster_status got, const any_request *r, int *doubtful) {
    if (r->changes && got == MUSTER_E_PEER) {
        (*doubtful)++;
        if (strstr(why.message, "it may have been applied") != NULL) return;
    } else if (got == MUSTER_TIMEOUT) {
        return;
    }
    fail_msg("%s: status %d: %s", r->name, got, why.message);
}

static int64_t number_of(fixture *f, const char *key) {
    const muster_store_op read = op(MUSTER_STORE_READ, key, "");
    assert_int_equal(request(f, &read, 1, 30 * second), MUSTER_OK);
    char text[32];
    const muster_store_entry e = entry(0);
    snprintf(text, sizeof text, "%.*s", (int)e.value_bytes, (const char *)e.value);
    return e.flags & MUSTER_STORE_PRESENT ? strtoll(text, NULL, 10) : 0;
}

static void test_a_stopped_etcd(void **state) {
    (void)state;
    fixture f;
    make(&f);
    start_etcd(&f.server);
    open_at(&f, f.server.port, "/deadline");
    run(&f, op(MUSTER_STORE_SET, "present", "1"), MUSTER_OK);
    run(&f, add("sum", 0), MUSTER_OK);
    muster_lease *lease, *none;
    assert_int_equal(muster_store_lease(f.store, 3600 * second, 0, 10 * second, &lease, &why), MUSTER_OK);
    stop_process(f.server.pid);
    int doubtful[any_request_count] = {0}, all = 0, sums = 0;
    for (int i = 0; i < any_request_count; i++) {
        const any_request *const r = &requests[i];
        if ((muster_store_capabilities(f.store) & r->capabilities) != r->capabilities) continue;
        int64_t from = now();
        const muster_status status = request(&f, r->ops, r->count, timeout);
        expect_in_time(from, r->name);
        expect_status(status, r, &doubtful[i]);
        from = now();
        assert_int_equal(muster_store_begin(f.store, r->ops, r->count, timeout, f.queue, 1, NULL, &why), MUSTER_OK);
        muster_completion done;
        memset(&why, 0, sizeof why);
        assert_int_equal(muster_queue_next(f.queue, 30 * second, &done, &why), MUSTER_OK);
        expect_in_time(from, r->name);
        expect_status(done.status, r, &doubtful[i]);
        all += doubtful[i];
        if (r->ops[0].kind == MUSTER_STORE_ADD) sums = doubtful[i];
    }
    assert_true(all > 0);
    int64_t from = now();
    assert_int_equal(muster_store_lease(f.store, 10 * second, 0, timeout, &none, &why), MUSTER_TIMEOUT);
    expect_in_time(from, "lease");
    from = now();
    assert_int_equal(muster_lease_end(lease, timeout, &why), MUSTER_E_PEER);
    expect_in_time(from, "end of a lease");
    kill(f.server.pid, SIGCONT);
    run(&f, op(MUSTER_STORE_SET, "present", "2"), MUSTER_OK);
    const int64_t from_cont = now(); /* what is on its way gets there */
    while (now() - from_cont < second) number_of(&f, "sum");
    assert_in_range(number_of(&f, "sum"), 0, sums);
    run(&f, op(MUSTER_STORE_SET, "absent", "x"), MUSTER_OK);
    assert_int_equal(number_of(&f, "c"), 0);
    const muster_store_op waits[] = {op(MUSTER_STORE_WAIT, "later", ""), op(MUSTER_STORE_SET, "d", "1")};
    from = now(); /* of an etcd that answers it is known that nothing was applied */
    assert_int_equal(request(&f, waits, 2, 400 * ms), MUSTER_TIMEOUT);
    assert_true(now() - from >= 400 * ms);
    expect_text("\"later\": absent after 0.4");
    run(&f, op(MUSTER_STORE_SET, "later", "x"), MUSTER_OK);
    assert_int_equal(number_of(&f, "d"), 0);
    muster_lease_release(lease);
    drop(&f);
}

// There is no server: nothing was sent, and nothing is applied later.
static void test_an_etcd_that_is_gone(void **state) {
    (void)state;
    fixture f;
    make(&f);
    start_etcd(&f.server);
    open_at(&f, f.server.port, "/deadline");
    run(&f, op(MUSTER_STORE_SET, "present", "1"), MUSTER_OK);
    kill_etcd(&f.server);
    const muster_store_op set = op(MUSTER_STORE_SET, "set", "x"), mark = op(MUSTER_STORE_SET, "mark", "x");
    muster_status status; /* connections that the kill has cut are in doubt */
    do status = request(&f, &mark, 1, timeout);
    while (status == MUSTER_E_PEER);
    assert_int_equal(status, MUSTER_TIMEOUT);
    const int64_t from = now();
    assert_int_equal(request(&f, &set, 1, timeout), MUSTER_TIMEOUT);
    expect_in_time(from, "set");
    start_etcd(&f.server);
    run(&f, op(MUSTER_STORE_SET, "present", "2"), MUSTER_OK);
    const muster_store_op look = op(MUSTER_STORE_READ, "set", "");
    assert_int_equal(request(&f, &look, 1, 30 * second), MUSTER_OK);
    assert_int_equal(entry(0).flags, 0);
    drop(&f);
}

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    make_any_requests(requests);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stopped_etcd),
        cmocka_unit_test(test_an_etcd_that_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
