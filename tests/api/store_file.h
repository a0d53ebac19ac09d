// SPDX-License-Identifier: MIT
// What the tests of stores in a file share.
#ifndef STORE_FILE_H
#define STORE_FILE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <muster/store.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const int64_t ms = 1000000, second = 1000000000;

typedef struct fixture {
    char path[256], url[300];
    muster_context *context;
    muster_store *store;
} fixture;

static muster_error why;
static muster_store_result *last;

static inline muster_status try_open(fixture *f, const char *url) {
    memset(&why, 0, sizeof why);
    return muster_store_open(f->context, url, strlen(url), NULL, second, &f->store, &why);
}
static inline void open_it(fixture *f) {
    if (try_open(f, f->url) != MUSTER_OK) fail_msg("%s", why.message);
}
static inline fixture set_up(void) {
    fixture f = {{0}, {0}, NULL, NULL};
    const char *tmp = getenv("TMPDIR");
    snprintf(f.path, sizeof f.path, "%s/muster-store-XXXXXX", tmp != NULL ? tmp : "/tmp");
    const int file = mkstemp(f.path); /* an empty file is an empty store */
    assert_true(file >= 0);
    close(file);
    snprintf(f.url, sizeof f.url, "file://%s?sync=no", f.path);
    assert_int_equal(muster_context_create(NULL, &f.context, NULL), MUSTER_OK);
    open_it(&f);
    return f;
}
static inline void let_go(fixture *f) {
    muster_store_result_release(last);
    last = NULL;
    muster_store_release(f->store);
    f->store = NULL;
    assert_int_equal(muster_context_close(f->context, 10 * second), MUSTER_OK);
    muster_context_release(f->context);
    f->context = NULL;
}
static inline void tear_down(fixture *f) {
    let_go(f);
    unlink(f->path);
}
static inline muster_store_op op(uint32_t kind, const char *key, const char *value) {
    muster_store_op made;
    memset(&made, 0, sizeof made);
    made.kind = kind;
    made.key = key;
    made.key_bytes = strlen(key);
    made.value = value;
    made.value_bytes = strlen(value);
    return made;
}
static inline muster_store_op add(const char *key, int64_t n) {
    muster_store_op made = op(MUSTER_STORE_ADD, key, "");
    made.number = n;
    return made;
}
static inline muster_status request(muster_store *store, muster_store_op what, int64_t timeout) {
    muster_store_result_release(last);
    memset(&why, 0, sizeof why);
    return muster_store_do(store, &what, 1, timeout, &last, &why);
}
static inline muster_store_entry run(muster_store *store, muster_store_op what) {
    muster_store_entry e;
    if (request(store, what, 20 * second) != MUSTER_OK) fail_msg("%s", why.message);
    assert_int_equal(muster_store_result_entry(last, 0, &e), MUSTER_OK);
    return e;
}
static inline void expect_holds(muster_store *store, const char *key, const char *text) {
    const muster_store_entry e = run(store, op(MUSTER_STORE_READ, key, ""));
    assert_true(e.flags & MUSTER_STORE_PRESENT);
    assert_int_equal(e.value_bytes, strlen(text));
    assert_memory_equal(e.value, text, e.value_bytes);
}
static inline off_t size_of(const fixture *f) {
    struct stat about;
    assert_int_equal(stat(f->path, &about), 0);
    return about.st_size;
}

#endif
