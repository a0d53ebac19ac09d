// SPDX-License-Identifier: MIT
// What a store promises, whatever keeps it.
// ctest: quick timeout=120
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <muster/store.h>
#include <pthread.h>
#include <unistd.h>

static const int64_t ms = 1000000, second = 1000000000;

typedef struct fixture {
    muster_context *context;
    muster_queue *queue;
    muster_store *store;
} fixture;

static fixture set_up(uint32_t flags) {
    fixture f = {0};
    muster_context_config config;
    muster_config_init(&config, sizeof config);
    config.flags = flags;
    assert_int_equal(muster_context_create(&config, &f.context, NULL), MUSTER_OK);
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

/* ---- operations, with text for keys and values ---- */

static muster_store_op op(uint32_t kind, const char *key) {
    muster_store_op made;
    memset(&made, 0, sizeof made);
    made.kind = kind;
    made.key = key;
    made.key_bytes = strlen(key);
    return made;
}
static muster_store_op with(uint32_t kind, const char *key, const char *value) {
    muster_store_op made = op(kind, key);
    made.value = value;
    made.value_bytes = strlen(value);
    return made;
}
static muster_store_op set(const char *key, const char *value) {
    return with(MUSTER_STORE_SET, key, value);
}
static muster_store_op number(uint32_t kind, const char *key, int64_t value) {
    muster_store_op made = op(kind, key);
    made.number = value;
    return made;
}
static muster_store_op if_value(muster_store_op made, const char *expected) {
    made.condition = MUSTER_STORE_IF_VALUE;
    made.expected = expected;
    made.expected_bytes = strlen(expected);
    return made;
}
static muster_store_op if_version(muster_store_op made, uint64_t version) {
    made.condition = MUSTER_STORE_IF_VERSION;
    made.version = version;
    return made;
}
static muster_store_op under(muster_store_op made, uint32_t condition) {
    made.condition = condition;
    return made;
}

/* Does a request, and keeps its result until the next. */
static muster_store_result *last;
static muster_error why;
static muster_status request(muster_store *store, const muster_store_op *ops, size_t count, int64_t timeout_ns) {
    muster_store_result_release(last);
    memset(&why, 0, sizeof why);
    return muster_store_do(store, ops, count, timeout_ns, &last, &why);
}
static muster_status one(muster_store *store, muster_store_op what) {
    return request(store, &what, 1, 0);
}
static muster_store_entry entry(uint64_t index) {
    muster_store_entry e;
    assert_int_equal(muster_store_result_entry(last, index, &e), MUSTER_OK);
    return e;
}
static void expect_bytes(const void *data, uint64_t size, const char *text) {
    assert_int_equal(size, strlen(text));
    assert_memory_equal(data, text, size);
}
static void expect_holds(uint64_t index, const char *text) {
    const muster_store_entry e = entry(index);
    assert_true(e.flags & MUSTER_STORE_PRESENT);
    expect_bytes(e.value, e.value_bytes, text);
}
static void expect_absent(uint64_t index) {
    const muster_store_entry e = entry(index);
    assert_int_equal(e.flags & MUSTER_STORE_PRESENT, 0);
    assert_int_equal(e.version, 0);
    assert_int_equal(e.value_bytes, 0);
}
static void expect_text(const char *part) {
    if (strstr(why.message, part) == NULL) fail_msg("\"%s\" is not in: %s", part, why.message);
}

static muster_completion take(fixture *f, muster_status status) {
    muster_completion done;
    memset(&why, 0, sizeof why);
    assert_int_equal(muster_queue_next(f->queue, 20 * second, &done, &why), MUSTER_OK);
    assert_int_equal(done.kind, MUSTER_DONE_STORE);
    assert_int_equal(done.status, status);
    muster_store_result_release(last);
    last = done.object;
    assert_int_equal(done.object != NULL, status == MUSTER_OK || status == MUSTER_E_CHANGED);
    return done;
}
static uint64_t begin(fixture *f, const muster_store_op *ops, size_t count, int64_t timeout_ns, uint64_t tag) {
    uint64_t number_of_it = 0;
    assert_int_equal(muster_store_begin(f->store, ops, count, timeout_ns, f->queue, tag, &number_of_it, NULL),
                     MUSTER_OK);
    assert_true(number_of_it != 0);
    return number_of_it;
}
static void expect_none(fixture *f) {
    muster_completion done;
    assert_int_equal(muster_queue_next(f->queue, 0, &done, NULL), MUSTER_AGAIN);
}

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
    expect_text("set \"a\": the condition does not hold, it is not there");
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
    expect_text("get \"missing\": not there"); /* as it was asked for */
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

/* ---- waiting ---- */

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
    expect_text("wait for \"a\", get \"b.\", pop from \"c\", wait for \"d\" and 1 more: not there after 0.0");
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

static muster_store_op barrier(const char *name, uint64_t rank, int64_t members) {
    muster_store_op made = number(MUSTER_STORE_BARRIER, name, members);
    made.version = rank;
    return made;
}

static void test_barrier(void **state) {
    (void)state;
    fixture f = set_up(0);
    assert_int_equal(one(f.store, barrier("alone", 0, 1)), MUSTER_OK);
    for (int round = 0; round < 3; round++) { /* it can be used again, at once */
        for (uint64_t rank = 0; rank < 4; rank++) {
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
    expect_text("barrier \"step\" of 12, rank 0, 3, 4, 5, 6, 7, 8, 9 and 2 more: not there after 0.0");
    assert_int_equal(muster_store_cancel(f.store, leaving), MUSTER_OK); /* is not there any more */
    take(&f, MUSTER_E_CANCELED);
    assert_int_equal(one(f.store, barrier("step", 0, 2)), MUSTER_AGAIN);
    expect_text("rank 1: not there");
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

/* ---- what is refused ---- */

static void test_limits(void **state) {
    (void)state;
    fixture f = set_up(0);
    muster_store *small;
    muster_store_config config;
    muster_config_init(&config, sizeof config);
    config.most_bytes = 10000;
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
                               number(MUSTER_STORE_BARRIER, "k", 1),
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
                               op(MUSTER_STORE_SET, "k")};
    wrong[13].value_bytes = 1;
    wrong[14].expected = "x", wrong[14].expected_bytes = 1;
    wrong[15].version = 1;
    wrong[16].kind = MUSTER_STORE_GET, wrong[16].lease = 1;
    wrong[17].key = NULL;
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

static int forget(void **state) {
    (void)state;
    muster_store_result_release(last);
    last = NULL;
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    static uint32_t threaded = 0, external = MUSTER_CONTEXT_EXTERNAL;
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
        cmocka_unit_test_teardown(test_limits, forget),
        cmocka_unit_test_teardown(test_bad_input, forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
