// SPDX-License-Identifier: MIT
// A served store and its standby as programs: killed in turn under load, stopped, and started again in every order.
// ctest: full timeout=240
#include "store_pair.h"

// ---- under load ----------------------------------------------------------------------------------------------------

// The serving server is killed, and becomes the standby of the other when it is restarted. Each acknowledged write
// counts once, and none twice; a lease, a wait and a watch continue.
static void kill_in_turn(const char *names, int kills) {
    enum { adders = 4 };
    member members[2];
    char url[620];
    make_pair(&members[0], &members[1], names, "20", url, sizeof url);
    adder all[adders];
    atomic_bool stop = false;
    client watcher = open_client(url);
    muster_lease *lease;
    assert_int_equal(muster_store_lease(watcher.store, 30 * SECOND, 0, SECOND, &lease, &why), MUSTER_OK);
    muster_store_op kept = set("kept", "1");
    kept.lease = muster_lease_id(lease);
    assert_int_equal(ask(&watcher, kept, SECOND), MUSTER_OK);
    begin(&watcher, op(MUSTER_STORE_GET, "late"), 1);
    muster_store_op watch = op(MUSTER_STORE_WATCH, "watched");
    begin(&watcher, watch, 2);
    for (int i = 0; i < adders; i++) {
        start_adder(&all[i], url, &stop);
    }
    int64_t epoch = 1;
    for (int i = 0; i < kills; i++) {
        member *const serves = &members[i % 2], *const other = &members[(i + 1) % 2];
        const int64_t before = number_at(&watcher, "sum");
        while (number_at(&watcher, "sum") < before + 20) {
        } // they are at work
        end_program(&serves->p, SIGKILL);
        start_member(serves, other, "20");
        await_role(serves, "standby");
        await_role(other, "paired");
        assert_true(epoch_of(other) > epoch);
        epoch = epoch_of(other);
    }
    assert_int_equal(ask(&watcher, set("watched", "1"), 20 * SECOND), MUSTER_OK);
    assert_int_equal(take(&watcher).tag, 2);
    assert_int_equal(ask(&watcher, set("late", "now"), 20 * SECOND), MUSTER_OK);
    assert_int_equal(take(&watcher).status, MUSTER_OK); // asked before the first kill
    assert_int_equal(number_at(&watcher, "kept"), 1);
    const int64_t sum = stop_adders(all, adders, &stop);
    assert_int_equal(number_at(&watcher, "sum"), sum);
    muster_lease_release(lease);
    close_client(&watcher);
    for (int i = 0; i < 2; i++) assert_int_equal(end_program(&members[i].p, SIGTERM).value, 0);
}

static void test_killed_in_turn_with_folders(void **state) {
    (void)state;
    kill_in_turn("turn", 20);
}
static void test_killed_in_turn_in_memory(void **state) {
    (void)state;
    kill_in_turn(NULL, 10);
}

// ---- one ends ------------------------------------------------------------------------------------------------------

static void test_a_dead_standby_is_done_without(void **state) {
    (void)state;
    member a, b;
    char url[620];
    make_pair(&a, &b, "without", "20", url, sizeof url);
    client c = open_client(url);
    assert_int_equal(ask(&c, number(MUSTER_STORE_ADD, "n", 1), 10 * SECOND), MUSTER_OK);
    end_program(&b.p, SIGKILL);
    assert_int_equal(ask(&c, number(MUSTER_STORE_ADD, "n", 1), 10 * SECOND), MUSTER_OK);
    await_role(&a, "serves");
    start_member(&b, &a, "20");
    await_role(&b, "standby");
    assert_int_equal(end_program(&b.p, SIGTERM).value, 0); // says so, too
    assert_int_equal(ask(&c, number(MUSTER_STORE_ADD, "n", 1), 10 * SECOND), MUSTER_OK);
    assert_int_equal(number_at(&c, "n"), 3);
    close_client(&c);
    end_program(&a.p, SIGTERM);
}

static void test_who_stops_hands_over(void **state) {
    (void)state;
    member a, b;
    char url[620];
    make_pair(&a, &b, NULL, "20", url, sizeof url);
    client c = open_client(url);
    assert_int_equal(ask(&c, number(MUSTER_STORE_ADD, "n", 1), 10 * SECOND), MUSTER_OK);
    const int64_t from = now();
    assert_int_equal(end_program(&a.p, SIGTERM).value, 0);
    assert_int_equal(ask(&c, number(MUSTER_STORE_ADD, "n", 1), 15 * SECOND), MUSTER_OK);
    assert_true(now() - from < 20 * SECOND); // not by the lease
    assert_int_equal(number_at(&c, "n"), 2);
    close_client(&c);
    end_program(&b.p, SIGTERM);
}

// Both end; the first to start waits for the other, in whatever order, and the newer one serves.
static void test_both_end(void **state) {
    (void)state;
    for (int order = 0; order < 4; order++) {
        member a, b;
        char url[620], name[20];
        snprintf(name, sizeof name, "both%d", order);
        make_pair(&a, &b, name, "20", url, sizeof url);
        client c = open_client(url);
        assert_int_equal(ask(&c, number(MUSTER_STORE_ADD, "n", 1), 10 * SECOND), MUSTER_OK);
        end_program(&a.p, SIGKILL);
        const bool taken_over = order >= 2;
        if (taken_over) assert_int_equal(ask(&c, number(MUSTER_STORE_ADD, "n", 1), 20 * SECOND), MUSTER_OK);
        end_program(&b.p, SIGKILL);
        member *const first = order % 2 == 0 ? &a : &b, *const second = order % 2 == 0 ? &b : &a;
        start_member(first, first == &b ? &a : NULL, "20"); // by the same words as before
        await_role(first, "waiting");
        start_member(second, second == &b ? &a : NULL, "20");
        assert_int_equal(number_at(&c, "n"), taken_over ? 2 : 1);
        assert_int_equal(ask(&c, number(MUSTER_STORE_ADD, "n", 1), 20 * SECOND), MUSTER_OK);
        close_client(&c);
        end_program(&a.p, SIGTERM);
        end_program(&b.p, SIGTERM);
    }
}

static void test_somebody_says_that_the_other_is_dead(void **state) {
    (void)state;
    member a, b;
    char url[620];
    make_pair(&a, &b, "said", "3", url, sizeof url);
    client c = open_client(url);
    assert_int_equal(ask(&c, number(MUSTER_STORE_ADD, "n", 1), 10 * SECOND), MUSTER_OK);
    stop_program(&b.p); // as if its host had failed: nothing shows whether it is dead
    await_role(&a, "halted");
    begin(&c, number(MUSTER_STORE_ADD, "n", 1), 1);
    muster_completion none;
    assert_int_equal(muster_queue_next(c.queue, SECOND, &none, &why), MUSTER_TIMEOUT);
    assert_int_equal(muster_process_kill(a.p.process, SIGUSR2), MUSTER_OK);
    assert_int_equal(take(&c).status, MUSTER_OK);
    assert_int_equal(number_at(&c, "n"), 2);
    assert_int_equal(muster_process_kill(b.p.process, SIGCONT), MUSTER_OK); // it was not; but it is the older one
    await_role(&b, "standby");
    end_program(&b.p, SIGKILL);
    end_program(&a.p, SIGKILL);
    // By an option, from the start.
    const char *const argv[] = {getenv("MUSTER_CLI"), "store", "--listen", a.url, "--log", "error",
                                "--data-dir",         a.dir,   "--alone",  NULL};
    a.p = start_program(argv);
    assert_true(await_line(&a.p, "listening"));
    assert_int_equal(number_at(&c, "n"), 2);
    close_client(&c);
    end_program(&a.p, SIGTERM);
}

// ---- silence -------------------------------------------------------------------------------------------------------

// A stopped one is taken over from when its lease is over, not before; going on again it answers nothing it has held.
static void test_a_stopped_one_is_taken_over_from(void **state) {
    (void)state;
    member a, b;
    char url[620];
    make_pair(&a, &b, "stopped", "1", url, sizeof url);
    client c = open_client(url), only_a;
    assert_int_equal(ask(&c, number(MUSTER_STORE_ADD, "n", 1), 10 * SECOND), MUSTER_OK);
    const int64_t before = now();
    stop_program(&a.p);
    if (ask(&c, number(MUSTER_STORE_ADD, "n", 1), 30 * SECOND) != MUSTER_OK) fail_msg("%s", why.message);
    assert_true(now() - before >= SECOND * 3 / 4); // the last beat was a quarter before
    assert_int_equal(number_at(&c, "n"), 2);
    // A client that knows only the old server gets nothing from it, now and later.
    assert_int_equal(muster_process_kill(a.p.process, SIGCONT), MUSTER_OK);
    await_role(&a, "standby");
    assert_int_equal(try_client(&only_a, a.url, SECOND), MUSTER_E_UNREACHABLE);
    close_client(&only_a);
    assert_int_equal(ask(&c, number(MUSTER_STORE_ADD, "n", 1), 10 * SECOND), MUSTER_OK);
    assert_int_equal(number_at(&c, "n"), 3);
    end_program(&b.p, SIGKILL);
    assert_int_equal(number_at(&c, "n"), 3); // by the one that was stopped
    close_client(&c);
    end_program(&a.p, SIGTERM);
}

// ---- what does not belong together ---------------------------------------------------------------------------------

static void test_another_store_is_not_overwritten(void **state) {
    (void)state;
    member a, b;
    make_member(&a, "mine");
    make_member(&b, "theirs");
    start_member(&a, NULL, "20");
    start_member(&b, NULL, "20");
    client c = open_client(b.url);
    assert_int_equal(ask(&c, number(MUSTER_STORE_ADD, "n", 5), 10 * SECOND), MUSTER_OK);
    close_client(&c);
    end_program(&b.p, SIGTERM);
    const char *const argv[] = {getenv("MUSTER_CLI"), "store", "--listen",     b.url, "--log", "warn",
                                "--data-dir",         b.dir,   "--standby-of", a.url, NULL};
    b.p = start_program(argv);
    assert_true(await_line(&b.p, "keeps another store"));
    end_program(&b.p, SIGKILL);
    start_member(&b, NULL, "20");
    c = open_client(b.url);
    assert_int_equal(number_at(&c, "n"), 5);
    close_client(&c);
    end_program(&a.p, SIGTERM);
    end_program(&b.p, SIGTERM);
}

// On a quiet machine it takes 11 ms: the client detects the end of its connection, and the standby, which detects that
// of its own, is refused when it dials and concludes it from that.
static void test_a_client_switches_at_once(void **state) {
    (void)state;
    int64_t longest = 0;
    for (int i = 0; i < 5; i++) {
        member a, b;
        char url[620];
        char names[24];
        snprintf(names, sizeof names, "switch%d", i);
        make_pair(&a, &b, i % 2 ? names : NULL, "20", url, sizeof url);
        if (i / 2 % 2) both(url, sizeof url, &b, &a);
        client c = open_client(url);
        must(&c, set("k", "1"));
        assert_int_equal(muster_process_kill(a.p.process, SIGKILL), MUSTER_OK);
        const int64_t from = now();
        must(&c, set("k", "2"));
        const int64_t took = now() - from;
        printf("# switched after %.1f ms\n", (double)took * 1e-6);
        if (took > longest) longest = took;
        close_client(&c);
        end_program(&a.p, 0);
        end_program(&b.p, SIGTERM);
    }
    assert_in_range(longest, 0, SECOND / 4);
}

static void test_wrong_arguments(void **state) {
    (void)state;
    static const struct {
        const char *arguments[4];
        int code;
        const char *word;
    } wrong[] = {
        {{"--alone", NULL}, 2, "--data-dir"},
        {{"--pair-lease", "0", NULL}, 2, "0.1 to 3600"},
        {{"--standby-of", "tcp://127.0.0.1:0", NULL}, 1, "port 0"},
        {{"--standby-of", "zmq://x", NULL}, 1, "only over tcp and unix"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        program p = start_server("--listen", "tcp://127.0.0.1:0", wrong[i].arguments[0], wrong[i].arguments[1], NULL);
        if (!await_line(&p, wrong[i].word)) fail_msg("case %zu does not speak of %s", i, wrong[i].word);
        assert_int_equal(end_program(&p, 0).value, wrong[i].code);
    }
}

int main(int argc, char **argv) {
    if (!make_folder()) return 2;
    if (muster_context_create(NULL, &starter, NULL) != MUSTER_OK) return 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_client_switches_at_once),
        cmocka_unit_test(test_wrong_arguments),
        cmocka_unit_test(test_a_dead_standby_is_done_without),
        cmocka_unit_test(test_who_stops_hands_over),
        cmocka_unit_test(test_killed_in_turn_with_folders),
        cmocka_unit_test(test_killed_in_turn_in_memory),
        cmocka_unit_test(test_both_end),
        cmocka_unit_test(test_somebody_says_that_the_other_is_dead),
        cmocka_unit_test(test_a_stopped_one_is_taken_over_from),
        cmocka_unit_test(test_another_store_is_not_overwritten),
    };
    if (argc == 2) cmocka_set_test_filter(argv[1]);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return tear_down() ? failed : 2;
}
