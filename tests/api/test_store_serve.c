// SPDX-License-Identifier: MIT
// What store_serve.h promises to those who serve a store; `muster store-check` looks at what their users are promised.
// ctest: quick timeout=60
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <muster/store_serve.h>
#include <pthread.h>

static const int64_t ms = 1000000, second = 1000000000;

typedef struct fixture {
    muster_context *context;
    muster_queue *requests; /* served by the test itself, one request after the other */
    muster_queue *own;
} fixture;

static fixture set_up(void) {
    fixture f = {0};
    assert_int_equal(muster_context_create(NULL, &f.context, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(f.context, NULL, &f.requests, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(f.context, NULL, &f.own, NULL), MUSTER_OK);
    return f;
}

static void tear_down(fixture *f) {
    muster_queue_release(f->own);
    muster_queue_release(f->requests);
    assert_int_equal(muster_context_close(f->context, 10 * second), MUSTER_OK);
    muster_context_release(f->context);
}

/* ---- what the host takes ---- */

static uint64_t next(fixture *f, int32_t kind, muster_store_request *what) {
    muster_completion entry;
    assert_int_equal(muster_queue_next(f->requests, 20 * second, &entry, NULL), MUSTER_OK);
    assert_int_equal(entry.kind, kind);
    if (what == NULL) return entry.request;
    memset(what, 0, sizeof *what);
    what->struct_size = sizeof *what;
    assert_int_equal(muster_store_request_read(f->requests, entry.request, what), MUSTER_OK);
    return entry.request;
}
static uint64_t next_of(fixture *f, uint32_t kind) {
    muster_store_request what;
    const uint64_t request = next(f, MUSTER_REQUEST_STORE, &what);
    assert_int_equal(what.kind, kind);
    return request;
}
static void expect_none(fixture *f) {
    muster_completion entry;
    assert_int_equal(muster_queue_next(f->requests, 0, &entry, NULL), MUSTER_AGAIN);
}

/* A store is opened by another thread, since this one serves. */
typedef struct opener {
    fixture *f;
    const char *url;
    int64_t timeout;
    muster_status status;
    muster_store *store;
    muster_error error;
    pthread_t thread;
} opener;
static void *open_it(void *argument) {
    opener *o = argument;
    o->status = muster_store_open(o->f->context, o->url, strlen(o->url), NULL, o->timeout, &o->store, &o->error);
    return NULL;
}
static void start_open(fixture *f, opener *o, const char *url, int64_t timeout) {
    memset(o, 0, sizeof *o);
    o->f = f, o->url = url, o->timeout = timeout;
    assert_int_equal(pthread_create(&o->thread, NULL, open_it, o), 0);
}
static muster_store *opened(fixture *f, const muster_store_traits *traits, uint64_t *out_id) {
    opener o;
    start_open(f, &o, "mine:there", 20 * second);
    muster_store_request what;
    *out_id = next(f, MUSTER_REQUEST_STORE, &what);
    assert_int_equal(what.kind, MUSTER_STORE_REQUEST_OPEN);
    assert_int_equal(what.url_bytes, 10);
    assert_memory_equal(what.url, "mine:there", 10);
    assert_int_equal(muster_store_request_open(f->requests, *out_id, traits, NULL), MUSTER_OK);
    pthread_join(o.thread, NULL);
    assert_int_equal(o.status, MUSTER_OK);
    return o.store;
}
static const uint32_t everything = 63;
static muster_store_traits can(uint32_t capabilities) {
    muster_store_traits traits;
    memset(&traits, 0, sizeof traits);
    traits.struct_size = sizeof traits;
    traits.capabilities = capabilities;
    return traits;
}

/* ---- what its users ask ---- */

static muster_store_op op(uint32_t kind, const char *key, const char *value) {
    muster_store_op made;
    memset(&made, 0, sizeof made);
    made.kind = kind;
    made.key = key;
    made.key_bytes = strlen(key);
    made.value = value;
    made.value_bytes = strlen(value);
    return made;
}
static void begin(fixture *f, muster_store *store, const muster_store_op *ops, size_t count, int64_t timeout,
                  uint64_t *out_request) {
    muster_error error = {0};
    if (muster_store_begin(store, ops, count, timeout, f->own, 7, out_request, &error) != MUSTER_OK)
        fail_msg("%s", error.message);
}
static void expect_end(fixture *f, muster_status status, const char *text) {
    muster_completion done;
    muster_error error = {0};
    assert_int_equal(muster_queue_next(f->own, 20 * second, &done, &error), MUSTER_OK);
    if (done.status != status) fail_msg("%d instead of %d: %s", done.status, status, error.message);
    if (text != NULL && strstr(error.message, text) == NULL) fail_msg("no \"%s\" in: %s", text, error.message);
    if (done.kind == MUSTER_DONE_LEASE)
        muster_lease_release(done.object);
    else
        muster_store_result_release(done.object);
}

static muster_store *serve_and_open(fixture *f, uint32_t capabilities, uint64_t *out_id) {
    assert_int_equal(muster_store_serve(f->context, "mine", 4, f->requests, 0, NULL), MUSTER_OK);
    const muster_store_traits traits = can(capabilities);
    return opened(f, &traits, out_id);
}

/* ---- opening ---- */

static void test_opening(void **state) {
    (void)state;
    fixture f = set_up();
    muster_store *store;
    muster_error error;
    assert_int_equal(muster_store_open(f.context, "mine:x", 6, NULL, second, &store, &error), MUSTER_E_NOT_FOUND);
    assert_int_equal(muster_store_serve(f.context, "mine", 4, f.requests, 0, NULL), MUSTER_OK);
    assert_int_equal(muster_store_serve(f.context, "mine", 4, f.requests, 0, NULL), MUSTER_E_EXISTS);
    assert_int_equal(muster_store_serve(f.context, "memory", 6, f.requests, 0, NULL), MUSTER_E_EXISTS);
    assert_int_equal(muster_store_serve(f.context, "No", 2, f.requests, 0, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_store_serve(f.context, "no", 2, NULL, 0, NULL), MUSTER_E_ARG);
    /* The thread that serves must not wait for itself. */
    assert_int_equal(muster_store_open(f.context, "mine:x", 6, NULL, 20 * second, &store, &error),
                     MUSTER_E_WOULD_DEADLOCK);
    muster_completion left; // it had been asked for
    while (muster_queue_next(f.requests, 0, &left, NULL) == MUSTER_OK) {
    }
    assert_int_equal(muster_store_open(f.context, "mine:x", 6, NULL, second, &store, &error), MUSTER_E_WOULD_DEADLOCK);
    opener o;
    start_open(&f, &o, "mine://u:secret@h/x", 20 * second);
    assert_int_equal(muster_store_request_fail(f.requests, next_of(&f, MUSTER_STORE_REQUEST_OPEN), MUSTER_E_UNREACHABLE,
                                               UINT32_MAX, "nobody there", 12),
                     MUSTER_OK);
    pthread_join(o.thread, NULL);
    assert_int_equal(o.status, MUSTER_E_UNREACHABLE);
    assert_string_equal(o.error.message, "store \"mine://...@h/x\": nobody there");
    start_open(&f, &o, "mine:slow", 20 * ms);
    const uint64_t slow = next_of(&f, MUSTER_STORE_REQUEST_OPEN);
    pthread_join(o.thread, NULL);
    assert_int_equal(o.status, MUSTER_E_UNREACHABLE);
    assert_int_equal(next(&f, MUSTER_REQUEST_CANCEL, NULL), slow);
    const muster_store_traits traits = can(everything);
    assert_int_equal(muster_store_request_open(f.requests, slow, &traits, NULL), MUSTER_E_STALE);
    /* Traits that cannot be. */
    start_open(&f, &o, "mine:y", 20 * second);
    const uint64_t request = next_of(&f, MUSTER_STORE_REQUEST_OPEN);
    muster_store_traits wrong = can(64);
    assert_int_equal(muster_store_request_open(f.requests, request, &wrong, NULL), MUSTER_E_ARG);
    wrong = can(1), wrong.max_ops = 4097;
    assert_int_equal(muster_store_request_open(f.requests, request, &wrong, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_store_request_open(f.requests, request, NULL, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_store_request_done(f.requests, request, MUSTER_OK, NULL, 0, 0, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_store_request_open(f.requests, request, &traits, NULL), MUSTER_OK);
    pthread_join(o.thread, NULL);
    assert_int_equal(o.status, MUSTER_OK);
    muster_store_release(o.store);
    assert_int_equal(next(&f, MUSTER_REQUEST_CLOSE, NULL), request);
    expect_none(&f);
    tear_down(&f);
}

/* ---- what it cannot do ---- */

static void test_what_it_cannot_do_never_comes(void **state) {
    (void)state;
    fixture f = set_up();
    assert_int_equal(muster_store_serve(f.context, "mine", 4, f.requests, 0, NULL), MUSTER_OK);
    muster_store_traits traits = can(MUSTER_STORE_CAN_TRANSACT | MUSTER_STORE_CAN_LEASE);
    traits.max_ops = 2;
    traits.max_request_bytes = 100;
    traits.min_lease_ns = 2 * second;
    uint64_t id;
    muster_store *store = opened(&f, &traits, &id);
    char large[101];
    memset(large, 'x', sizeof large);
    muster_store_op ops[3] = {op(MUSTER_STORE_SET, "a", "1"), op(MUSTER_STORE_SET, "b", "1"),
                              op(MUSTER_STORE_SET, "c", "1")};
    assert_int_equal(muster_store_begin(store, ops, 3, -1, f.own, 0, NULL, NULL), MUSTER_E_LIMIT);
    ops[0].value = large, ops[0].value_bytes = 100;
    assert_int_equal(muster_store_begin(store, ops, 1, -1, f.own, 0, NULL, NULL), MUSTER_E_LIMIT);
    const muster_store_op refused[] = {op(MUSTER_STORE_PUSH, "q", "v"), op(MUSTER_STORE_WATCH, "", "")};
    for (int i = 0; i < 2; i++)
        assert_int_equal(muster_store_begin(store, &refused[i], 1, -1, f.own, 0, NULL, NULL), MUSTER_E_UNSUPPORTED);
    muster_lease *lease;
    muster_error error;
    assert_int_equal(muster_store_lease(store, second, 0, second, &lease, &error), MUSTER_E_UNSUPPORTED);
    assert_string_equal(error.message, "a lease of 1000 ms, the store has none shorter than 2000 ms");
    expect_none(&f);
    /* It cannot wait: it is asked whether the key is there, and the user is told what it lacks. */
    const muster_store_op get = op(MUSTER_STORE_GET, "k", "");
    begin(&f, store, &get, 1, -1, NULL);
    muster_store_request what;
    const uint64_t request = next(&f, MUSTER_REQUEST_STORE, &what);
    assert_int_equal(what.kind, MUSTER_STORE_REQUEST_DO);
    assert_int_equal(what.flags, MUSTER_STORE_NO_WAIT);
    assert_int_equal(what.store, id);
    assert_int_equal(muster_store_request_fail(f.requests, request, MUSTER_AGAIN, UINT32_MAX, NULL, 0), MUSTER_OK);
    expect_end(&f, MUSTER_E_UNSUPPORTED, "get \"k\": absent, and the store cannot wait");
    muster_store_release(store);
    assert_int_equal(next(&f, MUSTER_REQUEST_CLOSE, NULL), id);
    tear_down(&f);
}

/* ---- answers ---- */

static void test_answers(void **state) {
    (void)state;
    fixture f = set_up();
    uint64_t id;
    muster_store *store = serve_and_open(&f, everything, &id), *view;
    assert_int_equal(muster_store_view(store, "v/", 2, &view, NULL), MUSTER_OK);
    const muster_store_op ops[] = {op(MUSTER_STORE_LIST, "p", "pa"), op(MUSTER_STORE_SET, "k", "new")};
    begin(&f, view, ops, 2, -1, NULL);
    muster_store_request what;
    const uint64_t request = next(&f, MUSTER_REQUEST_STORE, &what);
    assert_int_equal(what.op_count, 2);
    assert_int_equal(what.ops[0].key_bytes, 3);
    assert_memory_equal(what.ops[0].key, "v/p", 3);
    assert_int_equal(what.ops[0].value_bytes, 4);
    assert_memory_equal(what.ops[0].value, "v/pa", 4);
    assert_memory_equal(what.ops[1].value, "new", 3);
    const muster_store_entry entries[] = {{.op = 0,
                                           .flags = MUSTER_STORE_PRESENT,
                                           .version = 3,
                                           .key = "v/pb",
                                           .key_bytes = 4,
                                           .value = "x",
                                           .value_bytes = 1},
                                          {.op = 1, .flags = MUSTER_STORE_PRESENT, .version = 9}};
    assert_int_equal(muster_store_request_done(f.requests, request, MUSTER_OK, entries, 2, 9, NULL), MUSTER_OK);
    assert_int_equal(muster_store_request_done(f.requests, request, MUSTER_OK, entries, 2, 9, NULL), MUSTER_E_STALE);
    assert_int_equal(muster_store_request_read(f.requests, request, &what), MUSTER_E_STALE);
    muster_completion done;
    muster_store_entry e;
    assert_int_equal(muster_queue_next(f.own, second, &done, NULL), MUSTER_OK);
    assert_int_equal(done.status, MUSTER_OK);
    assert_int_equal(muster_store_result_entry(done.object, 0, &e), MUSTER_OK);
    assert_int_equal(e.key_bytes, 2);
    assert_memory_equal(e.key, "pb", 2);
    assert_memory_equal(e.value, "x", 1);
    assert_int_equal(muster_store_result_revision(done.object), 9);
    muster_store_result_release(done.object);
    /* Why one operation cannot be done is told with its name, as the host knows it. */
    begin(&f, view, ops, 2, -1, NULL);
    assert_int_equal(muster_store_request_fail(f.requests, next_of(&f, MUSTER_STORE_REQUEST_DO), MUSTER_E_LIMIT, 1,
                                               "the disk is full", 16),
                     MUSTER_OK);
    expect_end(&f, MUSTER_E_LIMIT, "set \"k\": the disk is full");
    muster_store_release(view);
    muster_store_release(store);
    tear_down(&f);
}

static void test_wrong_answers_end_their_requests(void **state) {
    (void)state;
    fixture f = set_up();
    uint64_t id;
    muster_store *store = serve_and_open(&f, everything, &id);
    static char huge[(8 << 20) + 1];
    const uint32_t here = MUSTER_STORE_PRESENT;
    const struct {
        uint32_t kind;
        muster_status status;
        size_t count;
        muster_store_entry entries[2];
        const char *text;
    } wrong[] = {
        {MUSTER_STORE_READ, MUSTER_OK, 0, {{0}}, "operation 0 has no entry"},
        {MUSTER_STORE_READ, MUSTER_OK, 2, {{0}, {0}}, "entry 1 of 2: it is too much"},
        {MUSTER_STORE_READ, MUSTER_OK, 1, {{.op = 1}}, "operation 0 has no entry"},
        {MUSTER_STORE_READ, MUSTER_OK, 1, {{.flags = 8}}, "unknown flags"},
        {MUSTER_STORE_READ, MUSTER_OK, 1, {{.flags = here}}, "a key with no version"},
        {MUSTER_STORE_READ, MUSTER_OK, 1, {{.flags = MUSTER_STORE_FAILED}}, "a condition that failed"},
        {MUSTER_STORE_READ, MUSTER_E_CHANGED, 1, {{0}}, "no condition failed"},
        {MUSTER_STORE_GET, MUSTER_OK, 1, {{0}}, "a key that has to be there is not"},
        {MUSTER_STORE_READ, MUSTER_OK, 1, {{.flags = here, .version = 1, .value_bytes = 1}}, "without a place"},
        {MUSTER_STORE_READ,
         MUSTER_OK,
         1,
         {{.flags = here, .version = 1, .value = huge, .value_bytes = sizeof huge}},
         "a long one"},
        {MUSTER_STORE_LIST, MUSTER_OK, 1, {{.flags = here, .version = 1}}, "no key"},
        {MUSTER_STORE_LIST, MUSTER_OK, 1, {{.flags = here, .version = 1, .key = "x", .key_bytes = 1}}, "begin as"},
        {MUSTER_STORE_LIST,
         MUSTER_OK,
         2,
         {{.flags = here, .version = 1, .key = "kb", .key_bytes = 2},
          {.flags = here, .version = 1, .key = "ka", .key_bytes = 2}},
         "not in order"},
        {MUSTER_STORE_WATCH, MUSTER_OK, 0, {{0}}, "a WATCH without a change"},
        {MUSTER_STORE_WATCH, MUSTER_OK, 1, {{.version = 11, .key = "k", .key_bytes = 1}}, "at another time"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const muster_store_op ask = op(wrong[i].kind, "k", "");
        begin(&f, store, &ask, 1, -1, NULL);
        const uint64_t request = next_of(&f, MUSTER_STORE_REQUEST_DO);
        muster_error error = {0};
        assert_int_equal(muster_store_request_done(f.requests, request, wrong[i].status, wrong[i].entries,
                                                   wrong[i].count, 10, &error),
                         MUSTER_E_ARG);
        if (strstr(error.message, wrong[i].text) == NULL) fail_msg("%zu: %s", i, error.message);
        expect_end(&f, MUSTER_E_PLUGIN, wrong[i].text);
        assert_int_equal(muster_store_request_done(f.requests, request, MUSTER_OK, NULL, 0, 1, NULL), MUSTER_E_STALE);
    }
    const muster_store_op ask = op(MUSTER_STORE_GET, "k", "");
    begin(&f, store, &ask, 1, -1, NULL);
    const uint64_t request = next_of(&f, MUSTER_STORE_REQUEST_DO);
    assert_int_equal(muster_store_request_fail(f.requests, request, MUSTER_OK, 0, NULL, 0), MUSTER_E_ARG);
    assert_int_equal(muster_store_request_fail(f.requests, request, MUSTER_AGAIN, 0, NULL, 0), MUSTER_E_ARG);
    assert_int_equal(muster_store_request_fail(f.requests, request, MUSTER_E_LIMIT, 1, NULL, 0), MUSTER_E_ARG);
    assert_int_equal(muster_store_request_fail(f.own, request, MUSTER_E_LIMIT, 0, NULL, 0), MUSTER_E_STALE);
    assert_int_equal(muster_store_request_fail(f.requests, request, MUSTER_E_LIMIT, 0, NULL, 0), MUSTER_OK);
    expect_end(&f, MUSTER_E_LIMIT, "get \"k\": ");
    muster_store_release(store);
    tear_down(&f);
}

/* ---- ends ---- */

static void test_what_is_not_wanted_any_more(void **state) {
    (void)state;
    fixture f = set_up();
    uint64_t id, number;
    muster_store *store = serve_and_open(&f, everything, &id);
    const muster_store_op take = op(MUSTER_STORE_POP, "q", "");
    begin(&f, store, &take, 1, 20 * ms, NULL);
    muster_store_request what;
    uint64_t request = next(&f, MUSTER_REQUEST_STORE, &what);
    expect_end(&f, MUSTER_TIMEOUT, "pop from \"q\": absent after 0.0");
    /* What was asked stays until the host has heard that it is over; nothing of it may be done. */
    assert_memory_equal(what.ops[0].key, "q", 1);
    const muster_store_entry found = {.flags = MUSTER_STORE_PRESENT, .value = "v", .value_bytes = 1};
    assert_int_equal(muster_store_request_done(f.requests, request, MUSTER_OK, &found, 1, 1, NULL), MUSTER_E_STALE);
    assert_int_equal(next(&f, MUSTER_REQUEST_CANCEL, NULL), request);
    begin(&f, store, &take, 1, -1, &number);
    request = next_of(&f, MUSTER_STORE_REQUEST_DO);
    assert_int_equal(muster_store_cancel(store, number), MUSTER_OK);
    expect_end(&f, MUSTER_E_CANCELED, NULL);
    assert_int_equal(next(&f, MUSTER_REQUEST_CANCEL, NULL), request);
    /* Taken back while something waits. */
    begin(&f, store, &take, 1, -1, NULL);
    request = next_of(&f, MUSTER_STORE_REQUEST_DO);
    assert_int_equal(muster_store_withdraw(f.context, "nobody", 6), MUSTER_E_NOT_FOUND);
    assert_int_equal(muster_store_withdraw(f.context, "mine", 4), MUSTER_OK);
    expect_end(&f, MUSTER_E_CLOSED, "store mine is no longer served");
    assert_int_equal(next(&f, MUSTER_REQUEST_CLOSE, NULL), id);
    assert_int_equal(next(&f, MUSTER_REQUEST_CANCEL, NULL), request);
    begin(&f, store, &take, 1, -1, NULL);
    expect_end(&f, MUSTER_E_CLOSED, "is no longer served");
    muster_store_release(store);
    expect_none(&f);
    tear_down(&f);
}

static void test_a_queue_that_goes(void **state) {
    (void)state;
    fixture f = set_up();
    uint64_t id;
    muster_store *store = serve_and_open(&f, everything, &id);
    const muster_store_op get = op(MUSTER_STORE_GET, "k", "");
    begin(&f, store, &get, 1, -1, NULL);
    muster_queue_release(f.requests);
    expect_end(&f, MUSTER_E_CLOSED, NULL);
    muster_store_release(store);
    f.requests = NULL;
    tear_down(&f);
}

static void test_the_end_of_the_context(void **state) {
    (void)state;
    fixture f = set_up();
    uint64_t id;
    muster_store *store = serve_and_open(&f, everything, &id);
    const muster_store_op get = op(MUSTER_STORE_GET, "k", "");
    begin(&f, store, &get, 1, -1, NULL);
    opener o;
    start_open(&f, &o, "mine:other", 20 * second);
    next_of(&f, MUSTER_STORE_REQUEST_DO);
    next_of(&f, MUSTER_STORE_REQUEST_OPEN);
    assert_int_equal(muster_context_close(f.context, 10 * second), MUSTER_OK);
    pthread_join(o.thread, NULL);
    assert_int_equal(o.status, MUSTER_E_CLOSED);
    expect_end(&f, MUSTER_E_CLOSED, NULL);
    muster_store_release(store);
    muster_queue_release(f.own);
    muster_queue_release(f.requests);
    muster_context_release(f.context);
}

/* ---- leases ---- */

static void test_leases_are_kept_by_the_library(void **state) {
    (void)state;
    fixture f = set_up();
    uint64_t id;
    muster_store *store = serve_and_open(&f, everything, &id);
    assert_int_equal(muster_store_lease_begin(store, 60 * ms, 0, -1, f.own, 1, NULL, NULL), MUSTER_OK);
    muster_store_request what;
    uint64_t request = next(&f, MUSTER_REQUEST_STORE, &what);
    assert_int_equal(what.kind, MUSTER_STORE_REQUEST_GRANT);
    assert_int_equal(what.ttl_ns, 60 * ms);
    const uint64_t number = what.lease;
    assert_true(number != 0 && number <= INT64_MAX);
    assert_int_equal(muster_store_request_done(f.requests, request, MUSTER_OK, NULL, 0, 0, NULL), MUSTER_OK);
    muster_completion done;
    assert_int_equal(muster_queue_next(f.own, second, &done, NULL), MUSTER_OK);
    assert_int_equal(done.kind, MUSTER_DONE_LEASE);
    assert_int_equal(muster_lease_id(done.object), number);
    for (int i = 0; i < 3; i++) { /* one at a time, and again after a third of the time */
        request = next(&f, MUSTER_REQUEST_STORE, &what);
        assert_int_equal(what.kind, MUSTER_STORE_REQUEST_KEEP);
        assert_int_equal(what.lease, number);
        const muster_status status = i == 1 ? MUSTER_E_UNREACHABLE : MUSTER_E_STALE;
        if (i == 0)
            muster_store_request_done(f.requests, request, MUSTER_OK, NULL, 0, 0, NULL);
        else
            muster_store_request_fail(f.requests, request, status, UINT32_MAX, NULL, 0);
    }
    muster_lease_release(done.object); /* it is over: nobody keeps it */
    assert_int_equal(muster_store_lease_begin(store, 60 * second, MUSTER_LEASE_MANUAL, -1, f.own, 1, NULL, NULL),
                     MUSTER_OK);
    request = next_of(&f, MUSTER_STORE_REQUEST_GRANT);
    muster_store_request_done(f.requests, request, MUSTER_OK, NULL, 0, 0, NULL);
    assert_int_equal(muster_queue_next(f.own, second, &done, NULL), MUSTER_OK);
    assert_int_equal(muster_lease_keep(done.object), MUSTER_OK);
    request = next_of(&f, MUSTER_STORE_REQUEST_KEEP);
    muster_store_request_fail(f.requests, request, MUSTER_E_STALE, UINT32_MAX, NULL, 0);
    assert_int_equal(muster_lease_keep(done.object), MUSTER_E_STALE);
    expect_none(&f);
    muster_lease_release(done.object);
    muster_store_release(store);
    tear_down(&f);
}

/* ---- callbacks ---- */

typedef struct table {
    fixture *f;
    int requests, cancels, closes, destroys;
    pthread_t thread;
    uint64_t open;
    uint32_t last_kind;
} table;
static void on_request(void *self, uint64_t request, const muster_store_request *what) {
    table *t = self;
    t->requests++;
    t->last_kind = what->kind;
    t->thread = pthread_self();
    if (what->kind != MUSTER_STORE_REQUEST_OPEN) return;
    t->open = request;
    const muster_store_traits traits = can(everything);
    assert_int_equal(muster_store_request_open(t->f->requests, request, &traits, NULL), MUSTER_OK);
}
static void on_cancel(void *self, uint64_t request) {
    (void)request;
    ((table *)self)->cancels++;
}
static void on_close(void *self, uint64_t store) {
    table *t = self;
    assert_int_equal(store, t->open);
    t->closes++;
}
static void on_destroy(void *self) {
    ((table *)self)->destroys++;
}

static void test_callbacks(void **state) {
    (void)state;
    for (uint32_t flags = 0; flags <= MUSTER_STORE_ANY_THREAD; flags++) {
        fixture f = set_up();
        table t = {.f = &f};
        muster_store_host_ops ops;
        memset(&ops, 0, sizeof ops);
        ops.struct_size = sizeof ops;
        assert_int_equal(muster_store_serve_ops(f.context, "mine", 4, &ops, &t, f.requests, NULL), MUSTER_E_ARG);
        ops.flags = flags;
        ops.request = on_request, ops.cancel = on_cancel, ops.close = on_close, ops.destroy = on_destroy;
        assert_int_equal(muster_store_serve_ops(f.context, "mine", 4, &ops, &t, f.requests, NULL), MUSTER_OK);
        opener o;
        start_open(&f, &o, "mine:", 20 * second);
        if (flags == 0) assert_int_equal(muster_queue_dispatch(f.requests, 20 * second, NULL, NULL, NULL), MUSTER_OK);
        pthread_join(o.thread, NULL);
        assert_int_equal(o.status, MUSTER_OK);
        assert_int_equal(pthread_equal(t.thread, pthread_self()) != 0, flags == 0);
        const muster_store_op get = op(MUSTER_STORE_GET, "k", "");
        uint64_t number;
        if (flags == 0) { /* over before its callback has run: neither it nor its cancel */
            begin(&f, o.store, &get, 1, -1, &number);
            assert_int_equal(muster_store_cancel(o.store, number), MUSTER_OK);
            expect_end(&f, MUSTER_E_CANCELED, NULL);
            assert_int_equal(muster_queue_dispatch(f.requests, 0, NULL, NULL, NULL), MUSTER_OK);
            assert_int_equal(t.requests, 1);
            begin(&f, o.store, &get, 1, -1, &number);
            muster_queue_dispatch(f.requests, 0, NULL, NULL, NULL);
            assert_int_equal(muster_store_cancel(o.store, number), MUSTER_OK);
            expect_end(&f, MUSTER_E_CANCELED, NULL);
            muster_queue_dispatch(f.requests, 0, NULL, NULL, NULL);
            assert_int_equal(t.cancels, 1);
        }
        muster_store_release(o.store);
        assert_int_equal(muster_store_withdraw(f.context, "mine", 4), MUSTER_OK);
        if (flags == 0) muster_queue_dispatch(f.requests, 0, NULL, NULL, NULL);
        muster_queue_release(f.own);
        assert_int_equal(muster_context_close(f.context, 10 * second), MUSTER_OK);
        assert_int_equal(t.closes, 1);
        assert_int_equal(t.destroys, 1);
        muster_queue_release(f.requests);
        muster_context_release(f.context);
    }
}

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opening),
        cmocka_unit_test(test_what_it_cannot_do_never_comes),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_wrong_answers_end_their_requests),
        cmocka_unit_test(test_what_is_not_wanted_any_more),
        cmocka_unit_test(test_a_queue_that_goes),
        cmocka_unit_test(test_the_end_of_the_context),
        cmocka_unit_test(test_leases_are_kept_by_the_library),
        cmocka_unit_test(test_callbacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
