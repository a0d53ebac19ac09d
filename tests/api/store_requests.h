// SPDX-License-Identifier: MIT
// What the tests of stores share: a store in this process's memory, operations of texts, and what came of the last
// request.
#ifndef STORE_REQUESTS_H
#define STORE_REQUESTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <muster/store.h>

static const int64_t ms = 1000000, second = 1000000000;

typedef struct fixture {
    muster_context *context;
    muster_queue *queue;
    muster_store *store;
} fixture;

static inline fixture set_up(uint32_t flags) {
    fixture f = {0};
    muster_context_config config;
    muster_config_init(&config, sizeof config);
    config.flags = flags;
    assert_int_equal(muster_context_create(&config, &f.context, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(f.context, NULL, &f.queue, NULL), MUSTER_OK);
    assert_int_equal(muster_store_open(f.context, "memory:", 7, NULL, second, &f.store, NULL), MUSTER_OK);
    return f;
}

static inline void tear_down(fixture *f) {
    muster_store_release(f->store);
    muster_queue_release(f->queue);
    assert_int_equal(muster_context_close(f->context, 10 * second), MUSTER_OK);
    muster_context_release(f->context);
}

/* ---- operations, with text for keys and values ---- */

static inline muster_store_op op(uint32_t kind, const char *key) {
    muster_store_op made;
    memset(&made, 0, sizeof made);
    made.kind = kind;
    made.key = key;
    made.key_bytes = strlen(key);
    return made;
}
static inline muster_store_op with(uint32_t kind, const char *key, const char *value) {
    muster_store_op made = op(kind, key);
    made.value = value;
    made.value_bytes = strlen(value);
    return made;
}
static inline muster_store_op set(const char *key, const char *value) {
    return with(MUSTER_STORE_SET, key, value);
}
static inline muster_store_op number(uint32_t kind, const char *key, int64_t value) {
    muster_store_op made = op(kind, key);
    made.number = value;
    return made;
}
static inline muster_store_op if_value(muster_store_op made, const char *expected) {
    made.condition = MUSTER_STORE_IF_VALUE;
    made.expected = expected;
    made.expected_bytes = strlen(expected);
    return made;
}
static inline muster_store_op if_version(muster_store_op made, uint64_t version) {
    made.condition = MUSTER_STORE_IF_VERSION;
    made.version = version;
    return made;
}
static inline muster_store_op under(muster_store_op made, uint32_t condition) {
    made.condition = condition;
    return made;
}

/* Does a request, and keeps its result until the next. */
static muster_store_result *last;
static muster_error why;
static inline muster_status request(muster_store *store, const muster_store_op *ops, size_t count, int64_t timeout_ns) {
    muster_store_result_release(last);
    memset(&why, 0, sizeof why);
    return muster_store_do(store, ops, count, timeout_ns, &last, &why);
}
static inline muster_status one(muster_store *store, muster_store_op what) {
    return request(store, &what, 1, 0);
}
static inline muster_store_entry entry(uint64_t index) {
    muster_store_entry e;
    assert_int_equal(muster_store_result_entry(last, index, &e), MUSTER_OK);
    return e;
}
static inline void expect_bytes(const void *data, uint64_t size, const char *text) {
    assert_int_equal(size, strlen(text));
    assert_memory_equal(data, text, size);
}
static inline void expect_holds(uint64_t index, const char *text) {
    const muster_store_entry e = entry(index);
    assert_true(e.flags & MUSTER_STORE_PRESENT);
    expect_bytes(e.value, e.value_bytes, text);
}
static inline void expect_absent(uint64_t index) {
    const muster_store_entry e = entry(index);
    assert_int_equal(e.flags & MUSTER_STORE_PRESENT, 0);
    assert_int_equal(e.version, 0);
    assert_int_equal(e.value_bytes, 0);
}
static inline void expect_text(const char *part) {
    if (strstr(why.message, part) == NULL) fail_msg("\"%s\" is not in: %s", part, why.message);
}

static inline muster_completion take(fixture *f, muster_status status) {
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
static inline uint64_t begin(fixture *f, const muster_store_op *ops, size_t count, int64_t timeout_ns, uint64_t tag) {
    uint64_t number_of_it = 0;
    assert_int_equal(muster_store_begin(f->store, ops, count, timeout_ns, f->queue, tag, &number_of_it, NULL),
                     MUSTER_OK);
    assert_true(number_of_it != 0);
    return number_of_it;
}
static inline void expect_none(fixture *f) {
    muster_completion done;
    assert_int_equal(muster_queue_next(f->queue, 0, &done, NULL), MUSTER_AGAIN);
}

/* After each test. */
static inline int forget(void **state) {
    (void)state;
    muster_store_result_release(last);
    last = NULL;
    return 0;
}

#endif
