// SPDX-License-Identifier: MIT
// Ranks that somebody else gave.
// ctest: quick
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <muster/rendezvous.h>
#include <pthread.h>
#include <unistd.h>

static const int64_t ms = 1000000, second = 1000000000;

typedef struct fixture {
    muster_context *context;
    muster_queue *queue;
    muster_store *store;
} fixture;

static fixture set_up(void) {
    fixture f = {0};
    assert_int_equal(muster_context_create(NULL, &f.context, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(f.context, NULL, &f.queue, NULL), MUSTER_OK);
    assert_int_equal(muster_store_open(f.context, "memory:", 7, NULL, second, &f.store, NULL), MUSTER_OK);
    return f;
}
static void tear_down(fixture *f) {
    muster_store_release(f->store);
    muster_queue_release(f->queue);
    assert_int_equal(muster_context_close(f->context, 10 * second), MUSTER_OK);
    muster_context_release(f->context);
}

static muster_rendezvous_config config_of(const fixture *f, uint32_t rank, uint32_t world, const char *address) {
    muster_rendezvous_config config;
    muster_config_init(&config, sizeof config);
    config.flags = MUSTER_RENDEZVOUS_HAS_RANK;
    config.run_id = "run";
    config.run_id_bytes = 3;
    config.url = "static:";
    config.url_bytes = 7;
    config.store = f->store;
    config.address = address;
    config.address_bytes = strlen(address);
    config.min = world;
    config.rank = rank;
    config.queue = f->queue;
    config.tag = rank;
    return config;
}

static void test_members_find_each_other_and_leave_together(void **state) {
    (void)state;
    fixture f = set_up();
    muster_rendezvous *members[2];
    muster_round *rounds[2];
    muster_error error;
    for (uint32_t i = 0; i < 2; i++) {
        const muster_rendezvous_config config = config_of(&f, i, 2, i == 0 ? "host0:1" : "host1:2");
        assert_int_equal(muster_rendezvous_open(f.context, &config, second, &members[i], &error), MUSTER_OK);
        assert_int_equal(muster_rendezvous_join(members[i], second, &rounds[i], &error), MUSTER_OK);
    }
    muster_round_info info;
    assert_int_equal(muster_round_get_info(rounds[1], &info), MUSTER_OK);
    assert_int_equal(info.number, 1);
    assert_int_equal(info.rank, 1);
    assert_int_equal(info.world, 2);
    assert_int_equal(info.flags, 0);
    muster_round_member_info member;
    assert_int_equal(muster_round_member(rounds[0], 1, second, &member, &error), MUSTER_OK);
    assert_int_equal(member.address_bytes, 7);
    assert_memory_equal(member.address, "host1:2", 7);
    assert_int_equal(muster_round_member(rounds[0], 2, second, &member, &error), MUSTER_E_ARG);
    assert_string_equal(error.message, "round 1: rank 2 of a world of 2");

    muster_store *views[2];
    for (int i = 0; i < 2; i++) assert_int_equal(muster_round_store(rounds[i], &views[i], NULL), MUSTER_OK);
    const muster_store_op set = {.kind = MUSTER_STORE_SET, .key = "k", .key_bytes = 1, .value = "v", .value_bytes = 1};
    const muster_store_op read = {
        .kind = MUSTER_STORE_READ, .condition = MUSTER_STORE_IF_PRESENT, .key = "k", .key_bytes = 1};
    assert_int_equal(muster_store_do(views[0], &set, 1, second, NULL, NULL), MUSTER_OK);
    assert_int_equal(muster_store_do(views[1], &read, 1, second, NULL, NULL), MUSTER_OK);
    assert_int_equal(muster_store_do(f.store, &read, 1, second, NULL, NULL), MUSTER_E_CHANGED);

    assert_int_equal(muster_rendezvous_exit(members[0], 10 * ms, &error), MUSTER_TIMEOUT);
    assert_non_null(strstr(error.message, "of 2, rank 1"));
    for (uint64_t i = 0; i < 2; i++)
        assert_int_equal(
            muster_rendezvous_begin(members[i], MUSTER_RENDEZVOUS_EXIT, NULL, 0, second, f.queue, 10 + i, &error),
            MUSTER_OK);
    uint64_t seen = 0;
    for (int i = 0; i < 2; i++) {
        muster_completion done;
        assert_int_equal(muster_queue_next(f.queue, 10 * second, &done, &error), MUSTER_OK);
        assert_int_equal(done.kind, MUSTER_DONE_RENDEZVOUS);
        assert_int_equal(done.status, MUSTER_OK);
        seen += done.tag;
    }
    assert_int_equal(seen, 21);
    for (int i = 0; i < 2; i++) {
        muster_store_release(views[i]);
        muster_round_release(rounds[i]);
        assert_int_equal(muster_rendezvous_leave(members[i], second, NULL), MUSTER_OK);
        assert_int_equal(muster_rendezvous_exit(members[i], second, &error), MUSTER_E_STALE);
        muster_rendezvous_release(members[i]);
    }
    tear_down(&f);
}

static void test_a_closed_one_is_told_and_stays_closed(void **state) {
    (void)state;
    fixture f = set_up();
    muster_rendezvous *member;
    muster_round *round;
    muster_error error;
    const muster_rendezvous_config config = config_of(&f, 0, 1, "");
    assert_int_equal(muster_rendezvous_open(f.context, &config, second, &member, &error), MUSTER_OK);
    assert_int_equal(muster_rendezvous_close(member, "done", 4, second, &error), MUSTER_OK);
    assert_int_equal(muster_rendezvous_close(member, "again", 5, second, &error), MUSTER_OK);
    muster_completion ready;
    muster_rendezvous_event event;
    assert_int_equal(muster_queue_next(f.queue, second, &ready, NULL), MUSTER_OK);
    assert_int_equal(ready.kind, MUSTER_EVENT_READY);
    assert_int_equal(muster_rendezvous_next_event(member, 0, &event), MUSTER_OK);
    assert_int_equal(event.kind, MUSTER_RENDEZVOUS_CLOSED);
    assert_string_equal(event.text, "closed here: done");
    assert_int_equal(muster_rendezvous_next_event(member, 0, &event), MUSTER_AGAIN);
    assert_int_equal(muster_rendezvous_next_event(member, ms, &event), MUSTER_TIMEOUT);
    assert_int_equal(muster_rendezvous_join(member, second, &round, &error), MUSTER_E_CLOSED);
    assert_null(round);
    assert_non_null(strstr(error.message, "done"));
    muster_rendezvous_release(member);
    tear_down(&f);
}

static void *cancel_when_it_waits(void *member) {
    for (;;) { /* it counts as waiting from its first look on */
        assert_int_equal(muster_rendezvous_cancel(member), MUSTER_OK);
        muster_rendezvous_state state;
        muster_rendezvous_get_state(member, &state);
        if (state.flags & MUSTER_RENDEZVOUS_IS_CLOSED) return NULL;
        sched_yield();
    }
}

static void test_waits_are_cancelled_from_another_thread(void **state) {
    (void)state;
    fixture f = set_up();
    muster_rendezvous *member;
    muster_round *round;
    muster_rendezvous_event event;
    muster_error error;
    const muster_rendezvous_config config = config_of(&f, 0, 2, "");
    assert_int_equal(muster_rendezvous_open(f.context, &config, second, &member, &error), MUSTER_OK);
    muster_status joined; /* the other thread may cancel this one, too */
    do joined = muster_rendezvous_join(member, second, &round, &error);
    while (joined == MUSTER_E_CANCELED);
    assert_int_equal(joined, MUSTER_OK);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, cancel_when_it_waits, member), 0);
    assert_int_equal(muster_rendezvous_exit(member, -1, &error), MUSTER_E_CANCELED);
    assert_int_equal(muster_rendezvous_next_event(member, -1, &event), MUSTER_E_CANCELED);
    muster_status closed;
    do closed = muster_rendezvous_close(member, NULL, 0, second, &error);
    while (closed == MUSTER_E_CANCELED);
    assert_int_equal(closed, MUSTER_OK);
    pthread_join(thread, NULL);
    muster_round_release(round);
    muster_rendezvous_release(member);
    tear_down(&f);
}

static void test_what_cannot_be_is_refused_with_a_sentence(void **state) {
    (void)state;
    fixture f = set_up();
    muster_rendezvous *member;
    muster_error error;
    muster_rendezvous_config config = config_of(&f, 0, 3, "");
    config.max = 2;
    assert_int_equal(muster_rendezvous_open(f.context, &config, second, &member, &error), MUSTER_E_ARG);
    assert_string_equal(error.message, "muster_rendezvous_config: min 3 is above max 2");
    config = config_of(&f, 3, 3, "");
    assert_int_equal(muster_rendezvous_open(f.context, &config, second, &member, &error), MUSTER_E_ARG);
    config = config_of(&f, 0, 3, "");
    config.flags = 0;
    assert_int_equal(muster_rendezvous_open(f.context, &config, second, &member, &error), MUSTER_E_ARG);
    config = config_of(&f, 0, 3, "");
    config.run_id = "a/b";
    assert_int_equal(muster_rendezvous_open(f.context, &config, second, &member, &error), MUSTER_E_ARG);
    config = config_of(&f, 0, 3, "");
    config.keep_alive_ns = 1;
    assert_int_equal(muster_rendezvous_open(f.context, &config, second, &member, &error), MUSTER_E_ARG);
    config = config_of(&f, 0, 3, "");
    config.last_call_ns = -2;
    assert_int_equal(muster_rendezvous_open(f.context, &config, second, &member, &error), MUSTER_E_ARG);
    config = config_of(&f, 0, 3, "");
    config.url = "nobody:";
    config.store = NULL;
    assert_int_equal(muster_rendezvous_open(f.context, &config, second, &member, &error), MUSTER_E_NOT_FOUND);
    config.url_bytes = 0;
    assert_int_equal(muster_rendezvous_open(f.context, &config, second, &member, &error), MUSTER_E_ARG);
    config = config_of(&f, 0, 3, "");
    assert_int_equal(muster_rendezvous_open(f.context, &config, second, &member, &error), MUSTER_OK);
    assert_int_equal(muster_rendezvous_abort(member, NULL, 0, second, &error), MUSTER_E_UNSUPPORTED);
    assert_int_equal(muster_rendezvous_begin(member, 9, NULL, 0, second, f.queue, 0, &error), MUSTER_E_ARG);
    assert_int_equal(muster_rendezvous_leave(member, 0, &error), MUSTER_E_ARG);
    muster_rendezvous_release(member);
    tear_down(&f);
}

// It can neither watch nor lease: no member would be notified that another one has joined or died.
static void test_a_store_in_a_file_is_refused_but_for_given_ranks(void **state) {
    (void)state;
    fixture f = set_up();
    const char *const tmp = getenv("TMPDIR");
    char folder[80], path[96], url[112], of_given[128];
    snprintf(folder, sizeof folder, "%.50s/rendezvous-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/store", folder);
    snprintf(url, sizeof url, "file://%s", path);
    snprintf(of_given, sizeof of_given, "static:%s", url);
    muster_rendezvous *member;
    muster_error error;
    muster_rendezvous_config config = config_of(&f, 0, 1, "a");
    config.store = NULL;
    config.url = url;
    config.url_bytes = strlen(url);
    assert_int_equal(muster_rendezvous_open(f.context, &config, 10 * second, &member, &error), MUSTER_E_UNSUPPORTED);
    assert_non_null(strstr(error.message, "the store cannot do all of it: transactions, waits, watches, leases"));
    config.url = of_given;
    config.url_bytes = strlen(of_given);
    assert_int_equal(muster_rendezvous_open(f.context, &config, 10 * second, &member, &error), MUSTER_OK);
    muster_rendezvous_release(member);
    tear_down(&f);
    unlink(path);
    assert_int_equal(rmdir(folder), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members_find_each_other_and_leave_together),
        cmocka_unit_test(test_a_closed_one_is_told_and_stays_closed),
        cmocka_unit_test(test_waits_are_cancelled_from_another_thread),
        cmocka_unit_test(test_what_cannot_be_is_refused_with_a_sentence),
        cmocka_unit_test(test_a_store_in_a_file_is_refused_but_for_given_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
