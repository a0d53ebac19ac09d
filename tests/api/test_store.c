// SPDX-License-Identifier: MIT
// What a store promises, whatever keeps it: keys, numbers, lists, views, queues, and what is refused.
// ctest: quick timeout=120
#include "store_requests.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- keys ---- */

static void test_keys(void **state) {
    (void)state;
    fixture f = set_up(0);
    assert_int_equal(one(f.store, op(MUSTER_STORE_READ, "a")), MUSTER_OK);
    expect_absent(0);
    assert_int_equal(one(f.store, set("a", "first")), MUSTER_OK);
    const uint64_t version = entry(0).version;
    assert_true(version != 0 && version == muster_store_result_revision(last));
    assert_int_equal(one(f.store, op(MUSTER_STORE_GET, "a")), MUSTER_OK);
    expect_holds(0, "first");
    assert_int_equal(entry(0).version, version);
    assert_int_equal(one(f.store, op(MUSTER_STORE_CHECK, "a")), MUSTER_OK);
    assert_int_equal(entry(0).value_bytes, 0);
    assert_int_equal(entry(0).flags, MUSTER_STORE_PRESENT);
    assert_int_equal(one(f.store, set("a", "first")), MUSTER_OK);
    assert_true(entry(0).version > version); /* the same value is a change all the same */
    assert_int_equal(one(f.store, set("empty", "")), MUSTER_OK);
    assert_int_equal(one(f.store, op(MUSTER_STORE_GET, "empty")), MUSTER_OK);
    expect_holds(0, "");
    assert_int_equal(one(f.store, with(MUSTER_STORE_APPEND, "a", " and second")), MUSTER_OK);
    assert_int_equal(entry(0).number, 16);
    assert_int_equal(one(f.store, with(MUSTER_STORE_APPEND, "new", "tail")), MUSTER_OK);
    assert_int_equal(one(f.store, op(MUSTER_STORE_READ, "a")), MUSTER_OK);
    expect_holds(0, "first and second");
    assert_int_equal(one(f.store, op(MUSTER_STORE_DELETE, "a")), MUSTER_OK);
    assert_int_equal(entry(0).flags, MUSTER_STORE_PRESENT);
    assert_int_equal(one(f.store, op(MUSTER_STORE_DELETE, "a")), MUSTER_OK);
    expect_absent(0);
    assert_int_equal(one(f.store, op(MUSTER_STORE_READ, "a")), MUSTER_OK);
    expect_absent(0);
    tear_down(&f);
}

static void test_numbers(void **state) {
    (void)state;
    fixture f = set_up(0);
    assert_int_equal(one(f.store, number(MUSTER_STORE_ADD, "n", 40)), MUSTER_OK);
    assert_int_equal(one(f.store, number(MUSTER_STORE_ADD, "n", -82)), MUSTER_OK);
    assert_int_equal(entry(0).number, -42);
    assert_int_equal(one(f.store, op(MUSTER_STORE_GET, "n")), MUSTER_OK);
    expect_holds(0, "-42");
    assert_int_equal(one(f.store, set("n", "9223372036854775807")), MUSTER_OK);
    assert_int_equal(one(f.store, number(MUSTER_STORE_ADD, "n", 1)), MUSTER_E_ARG);
    expect_text("add to \"n\": the sum does not fit");
    for (const char *const *text = (const char *const[]){"", "x", "1x", " 1", "+1", "9223372036854775808", NULL}; *text;
         text++) {
        assert_int_equal(one(f.store, set("n", *text)), MUSTER_OK);
        assert_int_equal(one(f.store, number(MUSTER_STORE_ADD, "n", 1)), MUSTER_E_ARG);
        assert_null(last);
        assert_int_equal(one(f.store, op(MUSTER_STORE_GET, "n")), MUSTER_OK);
        expect_holds(0, *text);
    }
    tear_down(&f);
}

static void test_conditions(void **state) {
    (void)state;
    fixture f = set_up(0);
    assert_int_equal(one(f.store, under(set("a", "1"), MUSTER_STORE_IF_PRESENT)), MUSTER_E_CHANGED);
    assert_int_equal(entry(0).flags, MUSTER_STORE_FAILED);
    expect_text("set \"a\": the condition does not hold, it is absent");
    assert_int_equal(one(f.store, under(set("a", "1"), MUSTER_STORE_IF_ABSENT)), MUSTER_OK);
    const uint64_t version = entry(0).version;
    assert_int_equal(one(f.store, under(set("a", "2"), MUSTER_STORE_IF_ABSENT)), MUSTER_E_CHANGED);
    assert_int_equal(entry(0).flags, MUSTER_STORE_FAILED | MUSTER_STORE_PRESENT);
    expect_bytes(entry(0).value, entry(0).value_bytes, "1"); /* what is there comes in the same answer */
    assert_int_equal(entry(0).version, version);
    assert_int_equal(one(f.store, if_value(set("a", "2"), "0")), MUSTER_E_CHANGED);
    assert_int_equal(one(f.store, if_value(set("a", "2"), "1")), MUSTER_OK);
    assert_int_equal(one(f.store, if_version(set("a", "3"), version)), MUSTER_E_CHANGED);
    assert_int_equal(one(f.store, if_version(set("a", "3"), entry(0).version)), MUSTER_OK);
    assert_int_equal(one(f.store, if_version(op(MUSTER_STORE_DELETE, "a"), 0)), MUSTER_E_CHANGED);
    assert_int_equal(one(f.store, if_value(op(MUSTER_STORE_DELETE, "a"), "3")), MUSTER_OK);
    assert_int_equal(one(f.store, if_version(set("a", "again"), 0)), MUSTER_OK); /* 0: absent */
    /* Absent and empty are two things. */
    assert_int_equal(one(f.store, if_value(set("b", "x"), "")), MUSTER_E_CHANGED);
    assert_int_equal(one(f.store, set("b", "")), MUSTER_OK);
    assert_int_equal(one(f.store, if_value(set("b", "x"), "")), MUSTER_OK);
    tear_down(&f);
}

static void test_all_or_nothing(void **state) {
    (void)state;
    fixture f = set_up(0);
    assert_int_equal(one(f.store, set("there", "1")), MUSTER_OK);
    const uint64_t revision = muster_store_result_revision(last);
    const muster_store_op refused[] = {set("new", "x"), with(MUSTER_STORE_APPEND, "there", "2"),
                                       op(MUSTER_STORE_DELETE, "there"), with(MUSTER_STORE_PUSH, "queue", "y"),
                                       under(op(MUSTER_STORE_NONE, "lock"), MUSTER_STORE_IF_PRESENT)};
    assert_int_equal(request(f.store, refused, 5, 0), MUSTER_E_CHANGED);
    assert_int_equal(muster_store_result_count(last), 5);
    expect_absent(0);
    expect_holds(1, "1");
    assert_int_equal(entry(4).flags, MUSTER_STORE_FAILED);
    const muster_store_op broken[] = {set("new", "x"),
                                      with(MUSTER_STORE_APPEND, "there", "2"),
                                      op(MUSTER_STORE_DELETE, "there"),
                                      set("there", "3"),
                                      with(MUSTER_STORE_PUSH, "queue", "y"),
                                      with(MUSTER_STORE_PUSH, "queue", "z"),
                                      op(MUSTER_STORE_TRY_POP, "queue"),
                                      set("no number", "x"),
                                      number(MUSTER_STORE_ADD, "no number", 1)};
    assert_int_equal(request(f.store, broken, 9, 0), MUSTER_E_ARG);
    const muster_store_op look[] = {op(MUSTER_STORE_READ, "new"), op(MUSTER_STORE_READ, "there"),
                                    op(MUSTER_STORE_LENGTH, "queue"), op(MUSTER_STORE_COUNT, "")};
    assert_int_equal(request(f.store, look, 4, 0), MUSTER_OK);
    expect_absent(0);
    expect_holds(1, "1");
    assert_int_equal(entry(2).number, 0);
    assert_int_equal(entry(3).number, 1);
    assert_int_equal(muster_store_result_revision(last), revision);
    /* In order, at one moment, with one revision. */
    const muster_store_op good[] = {
        number(MUSTER_STORE_ADD, "n", 2), number(MUSTER_STORE_ADD, "n", 3),      op(MUSTER_STORE_READ, "n"),
        op(MUSTER_STORE_DELETE, "there"), with(MUSTER_STORE_PUSH, "queue", "y"), op(MUSTER_STORE_TRY_POP, "queue"),
        op(MUSTER_STORE_LENGTH, "queue")};
    assert_int_equal(request(f.store, good, 7, 0), MUSTER_OK);
    expect_holds(2, "5");
    expect_holds(5, "y");
    assert_int_equal(entry(6).number, 0);
    assert_int_equal(muster_store_result_revision(last), revision + 1);
    assert_int_equal(entry(0).version, revision + 1);
    assert_int_equal(entry(1).version, revision + 1);
    tear_down(&f);
}

static void test_lists(void **state) {
    (void)state;
    fixture f = set_up(0);
    for (int i = 0; i < 25; i++) {
        char key[16], value[16];
        snprintf(key, sizeof key, "p/%02d", i);
        snprintf(value, sizeof value, "v%d", i);
        assert_int_equal(one(f.store, set(key, value)), MUSTER_OK);
    }
    assert_int_equal(one(f.store, set("q", "beside")), MUSTER_OK);
    assert_int_equal(one(f.store, op(MUSTER_STORE_COUNT, "p/")), MUSTER_OK);
    assert_int_equal(entry(0).number, 25);
    assert_int_equal(one(f.store, op(MUSTER_STORE_COUNT, "")), MUSTER_OK);
    assert_int_equal(entry(0).number, 26);
    char behind[16] = "";
    int seen = 0, more = 1;
    while (more) {
        muster_store_op page = with(MUSTER_STORE_LIST, "p/", behind);
        page.number = 10;
        assert_int_equal(one(f.store, page), MUSTER_OK);
        const uint64_t count = muster_store_result_count(last);
        assert_int_equal(count, seen < 20 ? 10 : 5);
        for (uint64_t i = 0; i < count; i++, seen++) {
            char value[16];
            const muster_store_entry e = entry(i);
            snprintf(behind, sizeof behind, "p/%02d", seen);
            snprintf(value, sizeof value, "v%d", seen);
            expect_bytes(e.key, e.key_bytes, behind);
            expect_holds(i, value);
            more = (e.flags & MUSTER_STORE_MORE) != 0;
            assert_true(!more || i == count - 1);
        }
    }
    assert_int_equal(seen, 25);
    const muster_store_op both[] = {op(MUSTER_STORE_KEYS, "nothing"), op(MUSTER_STORE_KEYS, "p/1"),
                                    op(MUSTER_STORE_READ, "q")};
    assert_int_equal(request(f.store, both, 3, 0), MUSTER_OK);
    assert_int_equal(muster_store_result_count(last), 11);
    assert_int_equal(entry(0).op, 1);
    assert_int_equal(entry(0).value_bytes, 0);
    assert_int_equal(entry(10).op, 2);
    expect_holds(10, "beside");
    tear_down(&f);
}

static void test_views(void **state) {
    (void)state;
    fixture f = set_up(0);
    muster_store *job, *round;
    assert_int_equal(muster_store_view(f.store, "job/", 4, &job, NULL), MUSTER_OK);
    assert_int_equal(muster_store_view(job, "7/", 2, &round, NULL), MUSTER_OK);
    assert_int_equal(one(round, set("rank", "3")), MUSTER_OK);
    assert_int_equal(one(round, with(MUSTER_STORE_PUSH, "rank", "a queue")), MUSTER_OK);
    assert_int_equal(one(f.store, op(MUSTER_STORE_READ, "job/7/rank")), MUSTER_OK);
    expect_holds(0, "3");
    assert_int_equal(one(f.store, op(MUSTER_STORE_LENGTH, "job/7/rank")), MUSTER_OK);
    assert_int_equal(entry(0).number, 1);
    assert_int_equal(one(f.store, set("job/8", "other")), MUSTER_OK);
    assert_int_equal(one(job, op(MUSTER_STORE_LIST, "")), MUSTER_OK);
    assert_int_equal(muster_store_result_count(last), 2);
    expect_bytes(entry(0).key, entry(0).key_bytes, "7/rank");
    assert_int_equal(one(round, op(MUSTER_STORE_KEYS, "")), MUSTER_OK);
    assert_int_equal(muster_store_result_count(last), 1);
    expect_bytes(entry(0).key, entry(0).key_bytes, "rank");
    assert_int_equal(one(job, with(MUSTER_STORE_KEYS, "", "7/rank")), MUSTER_OK);
    assert_int_equal(muster_store_result_count(last), 1);
    expect_bytes(entry(0).key, entry(0).key_bytes, "8");
    assert_int_equal(one(round, op(MUSTER_STORE_GET, "missing")), MUSTER_AGAIN);
    expect_text("get \"missing\": absent"); /* as it was asked for */
    static char prefix[4097];
    muster_store *none = job;
    assert_int_equal(muster_store_view(job, prefix, 4093, &none, &why), MUSTER_E_ARG);
    assert_null(none);
    muster_store_release(f.store);
    f.store = round; /* the view keeps the store */
    muster_store_release(job);
    assert_int_equal(one(f.store, op(MUSTER_STORE_GET, "rank")), MUSTER_OK);
    tear_down(&f);
}

static void test_names(void **state) {
    (void)state;
    fixture f = set_up(0);
    muster_store *a, *b, *c;
    assert_int_equal(muster_store_open(f.context, "memory:jobs", 11, NULL, second, &a, NULL), MUSTER_OK);
    assert_int_equal(one(a, set("k", "v")), MUSTER_OK);
    assert_int_equal(muster_store_open(f.context, "memory:jobs", 11, NULL, second, &b, NULL), MUSTER_OK);
    assert_int_equal(one(b, op(MUSTER_STORE_GET, "k")), MUSTER_OK);
    muster_store_release(a);
    assert_int_equal(one(b, op(MUSTER_STORE_GET, "k")), MUSTER_OK);
    muster_store_release(b);
    muster_store_result_release(last), last = NULL;
    assert_int_equal(muster_store_open(f.context, "memory:jobs", 11, NULL, second, &c, NULL), MUSTER_OK);
    assert_int_equal(one(c, op(MUSTER_STORE_READ, "k")), MUSTER_OK);
    expect_absent(0); /* nobody had held it */
    assert_int_equal(one(f.store, op(MUSTER_STORE_COUNT, "")), MUSTER_OK);
    assert_int_equal(entry(0).number, 0);
    muster_store_release(c);
    tear_down(&f);
}

/* ---- queues ---- */

static void test_queues(void **state) {
    (void)state;
    fixture f = set_up(0);
    assert_int_equal(one(f.store, op(MUSTER_STORE_TRY_POP, "q")), MUSTER_OK);
    expect_absent(0);
    assert_int_equal(one(f.store, op(MUSTER_STORE_POP, "q")), MUSTER_AGAIN);
    for (int i = 0; i < 3; i++) {
        char value[16];
        snprintf(value, sizeof value, "%d", i);
        muster_store_op push = with(MUSTER_STORE_PUSH, "q", value);
        push.number = 3;
        assert_int_equal(one(f.store, push), MUSTER_OK);
        assert_int_equal(entry(0).number, i + 1);
    }
    muster_store_op fourth = with(MUSTER_STORE_PUSH, "q", "3");
    fourth.number = 3;
    assert_int_equal(one(f.store, fourth), MUSTER_E_LIMIT);
    expect_text("push to \"q\": the queue is full");
    assert_int_equal(one(f.store, op(MUSTER_STORE_READ, "q")), MUSTER_OK);
    expect_absent(0); /* keys are something else */
    const muster_store_op move[] = {op(MUSTER_STORE_POP, "q"), op(MUSTER_STORE_POP, "q"), set("taken", "2")};
    assert_int_equal(request(f.store, move, 3, 0), MUSTER_OK);
    expect_holds(0, "0");
    expect_holds(1, "1");
    assert_int_equal(request(f.store, move, 3, 0), MUSTER_AGAIN); /* one is there, and two are wanted */
    assert_int_equal(one(f.store, op(MUSTER_STORE_LENGTH, "q")), MUSTER_OK);
    assert_int_equal(entry(0).number, 1);
    tear_down(&f);
}

static void test_queues_are_cleared_by_their_names(void **state) {
    (void)state;
    fixture f = set_up(0);
    static const char *const names[] = {"a/1", "a/2", "a/3", "b"};
    for (int i = 0; i < 8; i++) assert_int_equal(one(f.store, with(MUSTER_STORE_PUSH, names[i % 4], "v")), MUSTER_OK);
    assert_int_equal(one(f.store, set("a/1", "a key")), MUSTER_OK);
    assert_int_equal(one(f.store, number(MUSTER_STORE_CLEAR, "a/", 2)), MUSTER_OK);
    assert_int_equal(entry(0).number, 2);
    assert_int_equal(entry(0).flags, MUSTER_STORE_MORE);
    /* All or nothing holds for it, too. */
    const muster_store_op not_now[] = {op(MUSTER_STORE_CLEAR, ""), number(MUSTER_STORE_ADD, "a/1", 1)};
    assert_int_equal(request(f.store, not_now, 2, 0), MUSTER_E_ARG);
    const muster_store_op lengths[] = {op(MUSTER_STORE_LENGTH, "a/1"), op(MUSTER_STORE_LENGTH, "a/3"),
                                       op(MUSTER_STORE_LENGTH, "b"), op(MUSTER_STORE_READ, "a/1")};
    assert_int_equal(request(f.store, lengths, 4, 0), MUSTER_OK);
    assert_int_equal(entry(0).number, 0);
    assert_int_equal(entry(1).number, 2);
    assert_int_equal(entry(2).number, 2);
    expect_holds(3, "a key");
    assert_int_equal(one(f.store, op(MUSTER_STORE_CLEAR, "a/")), MUSTER_OK);
    assert_int_equal(entry(0).number, 1);
    assert_int_equal(entry(0).flags, 0);
    assert_int_equal(one(f.store, op(MUSTER_STORE_CLEAR, "a/")), MUSTER_OK);
    assert_int_equal(entry(0).number, 0);
    const muster_store_op wrong[] = {op(MUSTER_STORE_CLEAR, "a/"), with(MUSTER_STORE_PUSH, "b", "v")};
    assert_int_equal(request(f.store, wrong, 2, 0), MUSTER_E_ARG);
    expect_text("clear is not the only one on queues");
    assert_int_equal(one(f.store, op(MUSTER_STORE_CLEAR, "")), MUSTER_OK);
    assert_int_equal(entry(0).number, 1);
    assert_int_equal(one(f.store, op(MUSTER_STORE_TRY_POP, "b")), MUSTER_OK);
    assert_int_equal(entry(0).flags, 0);
    tear_down(&f);
}

/* ---- what is refused ---- */

static void test_limits(void **state) {
    (void)state;
    fixture f = set_up(0);
    muster_store *small;
    muster_store_config config;
    muster_config_init(&config, sizeof config);
    config.max_bytes = 10000;
    assert_int_equal(muster_store_open(f.context, "memory:", 7, &config, second, &small, NULL), MUSTER_OK);
    static char large[9 << 20];
    memset(large, 'x', sizeof large - 1);
    muster_store_op big = set("big", "");
    big.value = large;
    big.value_bytes = 9000;
    assert_int_equal(one(small, big), MUSTER_OK);
    const muster_store_op too_much[] = {set("a", "1"), with(MUSTER_STORE_PUSH, "q", "2"), big};
    muster_store_op ops[3];
    memcpy(ops, too_much, sizeof ops);
    ops[2].key = "more", ops[2].key_bytes = 4;
    assert_int_equal(request(small, ops, 3, 0), MUSTER_E_LIMIT);
    expect_text("the store is full: it holds");
    assert_int_equal(request(small, too_much, 3, 0), MUSTER_OK); /* in place of the first */
    assert_int_equal(one(small, op(MUSTER_STORE_DELETE, "big")), MUSTER_OK);
    assert_int_equal(request(small, ops, 2, 0), MUSTER_OK);
    muster_store_release(small);

    assert_int_equal(one(f.store, (big.value_bytes = 8 << 20, big)), MUSTER_OK);
    assert_int_equal(one(f.store, with(MUSTER_STORE_APPEND, "big", "y")), MUSTER_E_LIMIT);
    assert_int_equal(one(f.store, (big.value_bytes = (8 << 20) + 1, big)), MUSTER_E_LIMIT);
    muster_store_op long_key = set("", "v");
    long_key.key = large;
    assert_int_equal(one(f.store, (long_key.key_bytes = 8192, long_key)), MUSTER_OK);
    assert_int_equal(one(f.store, (long_key.key_bytes = 8193, long_key)), MUSTER_E_LIMIT);
    big.value_bytes = 6 << 20;
    const muster_store_op three[] = {big, big, big};
    assert_int_equal(request(f.store, three, 2, 0), MUSTER_OK);
    assert_int_equal(request(f.store, three, 3, 0), MUSTER_E_LIMIT);
    muster_store_op *const many = calloc(4097, sizeof *many);
    for (int i = 0; i < 4097; i++) many[i] = op(MUSTER_STORE_READ, "k");
    assert_int_equal(request(f.store, many, 4096, 0), MUSTER_OK);
    assert_int_equal(request(f.store, many, 4097, 0), MUSTER_E_ARG);
    free(many);
    tear_down(&f);
}

static void test_bad_input(void **state) {
    (void)state;
    fixture f = set_up(0);
    muster_store *store = (muster_store *)&f;
    const struct {
        const char *url;
        muster_status status;
    } urls[] = {{"", MUSTER_E_ARG},
                {"memory", MUSTER_E_ADDRESS},
                {":x", MUSTER_E_ADDRESS},
                {"memory:a/b", MUSTER_E_ADDRESS},
                {"gopher://x", MUSTER_E_NOT_FOUND},
                {"\x1b:", MUSTER_E_NOT_FOUND}};
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        assert_int_equal(muster_store_open(f.context, urls[i].url, strlen(urls[i].url), NULL, second, &store, &why),
                         urls[i].status);
        assert_null(store);
        assert_null(strchr(why.message, 27));
    }
    assert_int_equal(muster_store_open(NULL, "memory:", 7, NULL, second, &store, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_store_open(f.context, "memory:", 7, NULL, 0, &store, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_store_open(f.context, "memory:", 7, NULL, second, NULL, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_store_view(NULL, "", 0, &store, NULL), MUSTER_E_ARG);

    muster_store_op wrong[] = {op(19, "k"),
                               op(MUSTER_STORE_WATCH, "k"),
                               op(MUSTER_STORE_BARRIER, "k"),
                               under(op(MUSTER_STORE_SET, "k"), 9),
                               op(UINT32_MAX, "k"),
                               op(MUSTER_STORE_SET, ""),
                               under(op(MUSTER_STORE_GET, "k"), 5),
                               under(op(MUSTER_STORE_COUNT, "k"), MUSTER_STORE_IF_ABSENT),
                               under(op(MUSTER_STORE_POP, "k"), MUSTER_STORE_IF_PRESENT),
                               with(MUSTER_STORE_GET, "k", "v"),
                               number(MUSTER_STORE_SET, "k", 1),
                               number(MUSTER_STORE_LIST, "k", -1),
                               number(MUSTER_STORE_PUSH, "k", -1),
                               op(MUSTER_STORE_SET, "k"),
                               op(MUSTER_STORE_SET, "k"),
                               op(MUSTER_STORE_SET, "k"),
                               op(MUSTER_STORE_SET, "k"),
                               op(MUSTER_STORE_SET, "k"),
                               op(MUSTER_STORE_WAIT, "k")};
    wrong[2].count = 1;
    wrong[13].value_bytes = 1;
    wrong[14].expected = "x", wrong[14].expected_bytes = 1;
    wrong[15].version = 1;
    wrong[16].kind = MUSTER_STORE_GET, wrong[16].lease = 1;
    wrong[17].key = NULL;
    wrong[18].count = 1;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const muster_store_op ops[] = {set("before", "x"), wrong[i]};
        assert_int_equal(request(f.store, ops, 2, 0), MUSTER_E_ARG);
        expect_text("operation 1");
        assert_int_equal(muster_store_begin(f.store, ops, 2, -1, f.queue, 0, NULL, NULL), MUSTER_E_ARG);
    }
    assert_int_equal(one(f.store, op(MUSTER_STORE_COUNT, "")), MUSTER_OK);
    assert_int_equal(entry(0).number, 0);
    const muster_store_op fine = set("k", "v");
    assert_int_equal(muster_store_do(NULL, &fine, 1, 0, NULL, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_store_do(f.store, NULL, 1, 0, NULL, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_store_do(f.store, &fine, 0, 0, NULL, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_store_begin(f.store, &fine, 1, 0, f.queue, 0, NULL, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_store_begin(f.store, &fine, 1, -1, NULL, 0, NULL, NULL), MUSTER_E_ARG);
    fixture other = set_up(0);
    assert_int_equal(muster_store_begin(f.store, &fine, 1, -1, other.queue, 0, NULL, NULL), MUSTER_E_ARG);
    tear_down(&other);
    muster_queue_config one_slot;
    muster_config_init(&one_slot, sizeof one_slot);
    one_slot.capacity = 1;
    muster_queue *narrow;
    assert_int_equal(muster_queue_create(f.context, &one_slot, &narrow, NULL), MUSTER_OK);
    const muster_store_op never = op(MUSTER_STORE_GET, "never");
    assert_int_equal(muster_store_begin(f.store, &never, 1, -1, narrow, 0, NULL, NULL), MUSTER_OK);
    assert_int_equal(muster_store_begin(f.store, &never, 1, -1, narrow, 0, NULL, NULL), MUSTER_AGAIN);
    muster_queue_close(narrow);
    assert_int_equal(muster_store_begin(f.store, &never, 1, -1, narrow, 0, NULL, NULL), MUSTER_E_CLOSED);
    muster_queue_release(narrow);
    assert_int_equal(muster_store_cancel(NULL, 1), MUSTER_E_ARG);
    assert_int_equal(muster_store_capabilities(NULL), 0);
    assert_int_equal(muster_store_capabilities(f.store), 63);
    muster_store_entry e;
    assert_int_equal(one(f.store, fine), MUSTER_OK);
    assert_int_equal(muster_store_result_entry(last, 1, &e), MUSTER_E_NOT_FOUND);
    assert_int_equal(muster_store_result_entry(NULL, 0, &e), MUSTER_E_ARG);
    assert_int_equal(muster_store_result_entry(last, 0, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_store_result_count(NULL), 0);
    muster_store_release(NULL);
    muster_store_result_release(NULL);
    tear_down(&f);
}

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_keys, forget),
        cmocka_unit_test_teardown(test_numbers, forget),
        cmocka_unit_test_teardown(test_conditions, forget),
        cmocka_unit_test_teardown(test_all_or_nothing, forget),
        cmocka_unit_test_teardown(test_lists, forget),
        cmocka_unit_test_teardown(test_views, forget),
        cmocka_unit_test_teardown(test_names, forget),
        cmocka_unit_test_teardown(test_queues, forget),
        cmocka_unit_test_teardown(test_queues_are_cleared_by_their_names, forget),
        cmocka_unit_test_teardown(test_limits, forget),
        cmocka_unit_test_teardown(test_bad_input, forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
