// SPDX-License-Identifier: MIT
// How rounds and runs end: by an abort, a close, an exit together, a leader that goes, a context that closes.
// ctest: quick timeout=120
#include "rendezvous_run.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static void test_an_abort_ends_the_round_for_all(void **state) {
    (void)state;
    fixture f = set_up(0);
    const muster_rendezvous_config run = run_of(&f, 2, 2);
    muster_rendezvous *who[2] = {member(&f, &run, "a"), member(&f, &run, "b")};
    muster_round *rounds[2], *next[2];
    muster_error error;
    join_all(&f, who, rounds, 2);
    begin(&f, who[0], MUSTER_RENDEZVOUS_EXIT, 5);
    assert_int_equal(muster_rendezvous_abort(who[1], "no memory", 9, 10 * second, &error), MUSTER_OK);
    assert_null(ended(&f, 5, MUSTER_E_STALE));
    for (int i = 0; i < 2; i++) {
        const muster_rendezvous_event event = event_of(who[i], MUSTER_RENDEZVOUS_ABORTED);
        assert_int_equal(event.round, 1);
        assert_string_equal(event.text, "aborted by b: no memory");
        muster_store *view = store_of(rounds[i]);
        const muster_store_op read = op(MUSTER_STORE_READ, "x");
        assert_int_equal(muster_store_do(view, &read, 1, second, NULL, &error), MUSTER_E_STALE);
        assert_non_null(strstr(error.message, "round 1 is over: aborted by b: no memory"));
        muster_store_release(view);
    }
    assert_int_equal(muster_rendezvous_abort(who[1], NULL, 0, 10 * second, &error), MUSTER_E_STALE);
    join_all(&f, who, next, 2);
    assert_int_equal(info_of(next[0]).number, 2);
    for (int i = 0; i < 2; i++) muster_round_release(rounds[i]);
    release_all(who, next, 2);
    tear_down(&f);
}

static void test_an_abort_does_not_wait_for_who_hangs(void **state) {
    (void)state;
    fixture f = set_up(0);
    const muster_rendezvous_config run = run_of(&f, 2, 3);
    muster_rendezvous *who[3] = {member(&f, &run, "a"), member(&f, &run, "b"), member(&f, &run, "c")};
    muster_round *rounds[3], *next[2];
    join_all(&f, who, rounds, 2);
    assert_int_equal(muster_rendezvous_abort(who[0], NULL, 0, 10 * second, NULL), MUSTER_OK);
    /* b hangs: it is still there, and does nothing */
    muster_rendezvous *others[2] = {who[0], who[2]};
    join_all(&f, others, next, 2);
    assert_int_equal(info_of(next[0]).number, 2);
    assert_int_equal(info_of(next[0]).world, 2);
    assert_string_equal(event_of(who[1], MUSTER_RENDEZVOUS_ABORTED).text, "aborted by a");
    for (int i = 0; i < 2; i++) {
        muster_round_release(rounds[i]);
        muster_round_release(next[i]);
    }
    release_all(who, NULL, 3);
    tear_down(&f);
}

static void test_a_closed_run_says_why_and_opens_only_when_asked_to(void **state) {
    (void)state;
    fixture f = set_up(0);
    muster_rendezvous_config run = run_of(&f, 2, 2);
    muster_rendezvous *a = member(&f, &run, "a"), *b = member(&f, &run, "b");
    muster_error error;
    begin(&f, a, MUSTER_RENDEZVOUS_JOIN, 1);
    event_of(a, MUSTER_RENDEZVOUS_JOINED);
    assert_int_equal(muster_rendezvous_close(b, "all done", 8, 10 * second, &error), MUSTER_OK); /* it is not in */
    assert_int_equal(muster_rendezvous_close(b, "again", 5, 10 * second, &error), MUSTER_OK);
    assert_null(ended(&f, 1, MUSTER_E_CLOSED));
    assert_string_equal(event_of(a, MUSTER_RENDEZVOUS_CLOSED).text, "closed by b: all done");
    muster_round *none;
    assert_int_equal(muster_rendezvous_join(b, 10 * second, &none, &error), MUSTER_E_CLOSED);
    assert_string_equal(error.message, "rendezvous \"job\": join: closed by b: all done");
    assert_true(state_of(b).flags & MUSTER_RENDEZVOUS_IS_CLOSED);
    muster_rendezvous_release(a);
    muster_rendezvous_release(b);
    a = member(&f, &run, "a"); /* still closed */
    assert_int_equal(muster_rendezvous_join(a, 10 * second, &none, &error), MUSTER_E_CLOSED);
    muster_rendezvous_release(a);
    run.flags = MUSTER_RENDEZVOUS_REOPEN;
    run.max = 3;
    a = member(&f, &run, "a");
    b = member(&f, &run, "b");
    muster_rendezvous *who[2] = {a, b};
    muster_round *rounds[2];
    join_all(&f, who, rounds, 2);
    run.max = 4;
    muster_rendezvous *c;
    assert_int_equal(muster_rendezvous_open(f.context, &run, second, &c, &error), MUSTER_E_BUSY);
    release_all(who, rounds, 2);
    tear_down(&f);
}

/* Where a member serves the store the next round needs promises of those of the last one: not of those who are waited
 * for no longer, because somebody has opened the run anew. */
static void test_a_run_opens_anew_where_a_member_serves_the_store(void **state) {
    (void)state;
    if (!over_tcp) return;
    fixture f = set_up(0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    const int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(probe, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(probe, (struct sockaddr *)&address, &size), 0);
    close(probe);
    char url[64], serves[80];
    snprintf(url, sizeof url, "tcp://127.0.0.1:%u", ntohs(address.sin_port));
    snprintf(serves, sizeof serves, "%s?host=yes", url);
    muster_store *host;
    muster_error error;
    if (muster_store_open(f.context, serves, strlen(serves), NULL, 10 * second, &host, &error) != MUSTER_OK)
        fail_msg("%s", error.message);
    muster_rendezvous_config run = run_of(&f, 2, 3);
    run.store = NULL;
    run.url = url;
    run.url_bytes = strlen(url);
    run.min = 3;
    muster_rendezvous *who[3] = {member(&f, &run, "a"), member(&f, &run, "b"), member(&f, &run, "c")}, *d;
    muster_round *rounds[3];
    join_all(&f, who, rounds, 3);
    assert_int_equal(muster_rendezvous_close(who[0], NULL, 0, 10 * second, &error), MUSTER_OK);
    release_all(who, rounds, 3); /* without a leave */
    run.min = 2;
    run.flags = MUSTER_RENDEZVOUS_REOPEN;
    muster_status status;
    const int64_t begin = now();
    do status = muster_rendezvous_open(f.context, &run, 10 * second, &d, &error);
    while (status == MUSTER_E_BUSY && now() - begin < 20 * second); /* until the store has heard that they are gone */
    if (status != MUSTER_OK) fail_msg("%s", error.message);
    muster_rendezvous *next[2] = {d, member(&f, &run, "e")};
    join_all(&f, next, rounds, 2);
    assert_int_equal(info_of(rounds[0]).number, 2);
    release_all(next, rounds, 2);
    muster_store_release(host);
    tear_down(&f);
}

static void test_the_exit_is_reached_together_but_not_by_the_dead(void **state) {
    (void)state;
    fixture f = set_up(0);
    const muster_rendezvous_config run = run_of(&f, 4, 4);
    muster_rendezvous *who[4] = {member(&f, &run, "a"), member(&f, &run, "b"), member(&f, &run, "c"),
                                 member(&f, &run, "d")};
    muster_round *rounds[4];
    muster_error error;
    join_all(&f, who, rounds, 4);
    assert_int_equal(muster_rendezvous_exit(who[0], 100 * ms, &error), MUSTER_TIMEOUT);
    assert_non_null(strstr(error.message, " of 4 are there after "));
    begin(&f, who[0], MUSTER_RENDEZVOUS_EXIT, 0);
    begin(&f, who[1], MUSTER_RENDEZVOUS_EXIT, 1);
    muster_rendezvous_release(who[3]);
    assert_int_equal(muster_rendezvous_leave(who[2], 10 * second, &error), MUSTER_OK);
    ended(&f, UINT64_MAX, MUSTER_OK);
    ended(&f, UINT64_MAX, MUSTER_OK);
    assert_int_equal(muster_rendezvous_exit(who[2], second, &error), MUSTER_E_STALE);
    for (int i = 0; i < 4; i++) muster_round_release(rounds[i]);
    release_all(who, NULL, 3);
    tear_down(&f);
}

static void test_the_leader_may_go_at_any_time(void **state) {
    (void)state;
    fixture f = set_up(0);
    const muster_rendezvous_config run = run_of(&f, 2, 8);
    muster_rendezvous *who[8];
    muster_round *rounds[8];
    char name[16];
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "n%d", i);
        who[i] = member(&f, &run, name);
    }
    uint64_t number = 0;
    for (uint32_t left = 8; left > 2; left--) {
        uint32_t leader = 0;
        muster_rendezvous_event event;
        for (uint32_t i = 0; i < left; i++) begin(&f, who[i], MUSTER_RENDEZVOUS_JOIN, i);
        for (uint32_t i = 0; i < left; i++) {
            muster_completion done;
            assert_int_equal(muster_queue_next(f.queue, 20 * second, &done, NULL), MUSTER_OK);
            assert_int_equal(done.status, MUSTER_OK);
            rounds[done.tag] = done.object;
            if (info_of(done.object).world == left) continue;
            /* two were there before the others: again */
            muster_round_release(done.object);
            begin(&f, who[done.tag], MUSTER_RENDEZVOUS_JOIN, done.tag);
            i--;
        }
        assert_true(info_of(rounds[0]).number > number);
        number = info_of(rounds[0]).number;
        for (uint32_t i = 0; i < left; i++)
            if (state_of(who[i]).flags & MUSTER_RENDEZVOUS_IS_LEADER) leader = i;
        for (uint32_t i = 0; i < left; i++) muster_round_release(rounds[i]);
        const uint32_t other = leader == 0 ? 1 : 0;
        while (muster_rendezvous_next_event(who[other], 0, &event) == MUSTER_OK) {
        }
        /* Either is told by the next leader. */
        if (left % 2 == 0) {
            muster_rendezvous_release(who[leader]);
            event = event_of(who[other], MUSTER_RENDEZVOUS_DEAD);
            if (elsewhere == NULL) assert_non_null(strstr(event.text, "it was released and had not left"));
        } else {
            assert_int_equal(muster_rendezvous_leave(who[leader], 20 * second, NULL), MUSTER_OK);
            do assert_int_equal(muster_rendezvous_next_event(who[other], 20 * second, &event), MUSTER_OK);
            while (event.kind != MUSTER_RENDEZVOUS_LEFT && event.kind != MUSTER_RENDEZVOUS_DEAD);
            assert_int_equal(event.kind, MUSTER_RENDEZVOUS_LEFT);
            muster_rendezvous_release(who[leader]);
        }
        assert_int_equal(event.count, 1);
        who[leader] = who[left - 1];
    }
    release_all(who, NULL, 2);
    tear_down(&f);
}

/* Keys, counters and queues of rounds that are over are not kept: after 200 of them there is what few of them need. */
static void test_rounds_that_are_over_leave_nothing(void **state) {
    (void)state;
    enum { rounds_count = 200, keys = 8 };
    fixture f = set_up(0);
    const muster_rendezvous_config run = run_of(&f, 2, 2);
    muster_rendezvous *who[2] = {member(&f, &run, "a"), member(&f, &run, "b")};
    muster_round *rounds[2];
    const bool queues = (muster_store_capabilities(f.store) & MUSTER_STORE_CAN_QUEUE) != 0;
    static const char value[1000];
    char names[rounds_count][64], key[keys][16];
    for (int number = 1; number <= rounds_count; number++) {
        join_all(&f, who, rounds, 2);
        assert_int_equal(info_of(rounds[0]).number, number);
        muster_store *view = store_of(rounds[number % 2]);
        muster_store_op ops[keys + 3];
        for (int i = 0; i < keys; i++) {
            snprintf(key[i], sizeof key[i], "k%d", i);
            ops[i] = op(MUSTER_STORE_SET, key[i]);
            ops[i].value = value;
            ops[i].value_bytes = sizeof value;
        }
        ops[keys] = op(MUSTER_STORE_ADD, "counter");
        ops[keys].number = 1;
        for (int i = 1; i <= 2; i++) {
            ops[keys + i] = op(MUSTER_STORE_PUSH, i == 1 ? "queue" : "queue of others");
            ops[keys + i].value = value;
            ops[keys + i].value_bytes = sizeof value;
        }
        assert_int_equal(muster_store_do(view, ops, queues ? keys + 3 : keys + 1, 20 * second, NULL, NULL), MUSTER_OK);
        snprintf(names[number - 1], sizeof names[0], "muster/rdzv/job/r/%016x/v/queue", number);
        muster_store_release(view);
        for (int i = 0; i < 2; i++) muster_round_release(rounds[i]);
    }
    /* The last sweep may still be under way: look again with each change. */
    muster_store_op look[rounds_count], watch = op(MUSTER_STORE_WATCH, "muster/rdzv/job/");
    look[0] = op(MUSTER_STORE_COUNT, "muster/rdzv/job/r/");
    for (int i = 1; i < rounds_count; i++) look[i] = op(MUSTER_STORE_LENGTH, names[i - 1]);
    for (;;) {
        muster_store_result *result;
        muster_store_entry entry;
        assert_int_equal(muster_store_do(f.store, look, queues ? rounds_count : 1, 20 * second, &result, NULL),
                         MUSTER_OK);
        assert_int_equal(muster_store_result_entry(result, 0, &entry), MUSTER_OK);
        const int64_t left = entry.number;
        int64_t values = 0;
        for (uint32_t i = 1; queues && i < rounds_count; i++) {
            assert_int_equal(muster_store_result_entry(result, i, &entry), MUSTER_OK);
            values += entry.number;
        }
        watch.version = muster_store_result_revision(result);
        muster_store_result_release(result);
        if (left == keys + 2 && values == 0) break; /* with the page of the table, all of the round under way */
        if (muster_store_do(f.store, &watch, 1, 20 * second, NULL, NULL) != MUSTER_OK)
            fail_msg("%lld keys, %lld values of queues are left", (long long)left, (long long)values);
    }
    if (f.server != NULL) {
        muster_store_server_stats stats;
        assert_int_equal(muster_store_server_get_stats(f.server, &stats), MUSTER_OK);
        assert_true(stats.bytes < 30 * sizeof value);
    }
    release_all(who, NULL, 2);
    tear_down(&f);
}

static void test_a_closing_context_ends_what_waits(void **state) {
    (void)state;
    fixture f = set_up(0);
    const muster_rendezvous_config run = run_of(&f, 2, 2);
    muster_rendezvous *a = member(&f, &run, "a");
    begin(&f, a, MUSTER_RENDEZVOUS_JOIN, 1);
    event_of(a, MUSTER_RENDEZVOUS_JOINED);
    assert_int_equal(muster_context_close(f.context, 10 * second), MUSTER_OK);
    assert_null(ended(&f, 1, MUSTER_E_CLOSED));
    muster_rendezvous_event event;
    muster_status status;
    do status = muster_rendezvous_next_event(a, -1, &event);
    while (status == MUSTER_OK);
    assert_int_equal(status, MUSTER_E_CLOSED);
    assert_int_equal(muster_rendezvous_leave(a, second, NULL), MUSTER_E_CLOSED);
    muster_rendezvous_release(a);
    tear_down(&f);
}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_abort_ends_the_round_for_all),
        cmocka_unit_test(test_an_abort_does_not_wait_for_who_hangs),
        cmocka_unit_test(test_a_closed_run_says_why_and_opens_only_when_asked_to),
        cmocka_unit_test(test_a_run_opens_anew_where_a_member_serves_the_store),
        cmocka_unit_test(test_the_exit_is_reached_together_but_not_by_the_dead),
        cmocka_unit_test(test_the_leader_may_go_at_any_time),
        cmocka_unit_test(test_rounds_that_are_over_leave_nothing),
        cmocka_unit_test(test_a_closing_context_ends_what_waits),
    };
    RUN_OVER_STORES(tests, count, arguments);
}
