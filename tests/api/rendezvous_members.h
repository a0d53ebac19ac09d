// SPDX-License-Identifier: MIT
// What the tests of served rendezvous share: a context whose scheme `yours` is served, and its members.
#ifndef RENDEZVOUS_MEMBERS_H
#define RENDEZVOUS_MEMBERS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <muster/rendezvous_serve.h>

static const int64_t ms = 1000000, second = 1000000000;

typedef struct fixture {
    muster_context *context;
    muster_queue *requests; /* of the scheme `yours` */
    muster_queue *own;
} fixture;

static inline fixture set_up(void) {
    fixture f = {0};
    assert_int_equal(muster_context_create(NULL, &f.context, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(f.context, NULL, &f.requests, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(f.context, NULL, &f.own, NULL), MUSTER_OK);
    return f;
}
static inline void tear_down(fixture *f) {
    muster_queue_release(f->own);
    muster_queue_release(f->requests);
    assert_int_equal(muster_context_close(f->context, 10 * second), MUSTER_OK);
    muster_context_release(f->context);
}

/* ---- members ---- */

static inline muster_rendezvous_config run_of(const char *address, uint32_t min, uint32_t max) {
    muster_rendezvous_config config;
    muster_config_init(&config, sizeof config);
    config.run_id = "job";
    config.run_id_bytes = 3;
    config.url = "yours://there";
    config.url_bytes = 13;
    config.address = address;
    config.address_bytes = strlen(address);
    config.min = min;
    config.max = max;
    config.keep_alive_ns = 2 * second;
    return config;
}
static inline void begin(fixture *f, muster_rendezvous *who, uint32_t what, int64_t timeout, uint64_t tag) {
    muster_error error = {0};
    const bool reason = what == MUSTER_RENDEZVOUS_ABORT || what == MUSTER_RENDEZVOUS_CLOSE;
    if (muster_rendezvous_begin(who, what, reason ? "why" : NULL, reason ? 3 : 0, timeout, f->own, tag, &error) !=
        MUSTER_OK)
        fail_msg("%s", error.message);
}
static muster_error last; /* of the last call that ended */
static inline muster_round *ended(fixture *f, uint64_t tag, muster_status status) {
    muster_completion done;
    memset(&last, 0, sizeof last);
    assert_int_equal(muster_queue_next(f->own, 20 * second, &done, &last), MUSTER_OK);
    assert_int_equal(done.kind, MUSTER_DONE_RENDEZVOUS);
    assert_int_equal(done.tag, tag);
    if (done.status != status) fail_msg("%s: %s", muster_status_name(done.status), last.message);
    return done.object;
}
static inline void expect_text(const char *text, const char *part) {
    if (strstr(text, part) == NULL) fail_msg("\"%s\" is not in: %s", part, text);
}
static inline muster_rendezvous_event event_of(muster_rendezvous *who, uint32_t kind) {
    muster_rendezvous_event event;
    do assert_int_equal(muster_rendezvous_next_event(who, 20 * second, &event), MUSTER_OK);
    while (event.kind != kind);
    return event;
}
static inline muster_rendezvous_state state_of(muster_rendezvous *who) {
    muster_rendezvous_state state;
    assert_int_equal(muster_rendezvous_get_state(who, &state), MUSTER_OK);
    return state;
}
static inline muster_status ask(muster_store *store, uint32_t kind, const char *value) {
    muster_store_op op;
    memset(&op, 0, sizeof op);
    op.kind = kind;
    op.key = "k";
    op.key_bytes = 1;
    op.value = value;
    op.value_bytes = strlen(value);
    return muster_store_do(store, &op, 1, 10 * second, NULL, NULL);
}

#endif
