// SPDX-License-Identifier: MIT
// What the tests of active messages share: two endpoints, each with a context of its own, and a stream between them.
#ifndef AM_RUN_H
#define AM_RUN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <muster/am.h>
#include <muster/transport.h>

static const int64_t second = 1000000000;

typedef struct side {
    muster_context *context;
    muster_queue *queue;
    muster_am *am;
    uint32_t peer; // the other side
} side;

static inline muster_am *make_am(muster_context *context, const muster_am_config *given) {
    muster_am_config config = given != NULL ? *given : (muster_am_config){0};
    config.struct_size = sizeof config;
    muster_am *made = NULL;
    muster_error error;
    if (muster_am_create(context, &config, &made, &error) != MUSTER_OK) fail_msg("%s", error.message);
    return made;
}
static inline side make_side(const muster_am_config *config) {
    side made = {0};
    setenv("MUSTER_SECRET", "the secret of a test", 1);
    assert_int_equal(muster_context_create(NULL, &made.context, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(made.context, NULL, &made.queue, NULL), MUSTER_OK);
    muster_am_config own = config != NULL ? *config : (muster_am_config){0};
    own.queue = made.queue;
    own.tag = 77;
    made.am = make_am(made.context, &own);
    return made;
}
static inline void stream_between(muster_context *a, muster_context *b, const char *address, muster_stream **out_a,
                                  muster_stream **out_b) {
    muster_listener *listener;
    muster_error error;
    char at[256];
    if (muster_transport_listen(a, address, strlen(address), NULL, &listener, &error) != MUSTER_OK)
        fail_msg("%s", error.message);
    size_t bytes;
    assert_int_equal(muster_listener_address(listener, at, sizeof at, &bytes), MUSTER_OK);
    if (muster_transport_dial(b, at, strlen(at), NULL, 20 * second, out_b, &error) != MUSTER_OK)
        fail_msg("%s", error.message);
    assert_int_equal(muster_listener_accept(listener, 20 * second, out_a, &error), MUSTER_OK);
    muster_listener_release(listener);
}
// Handlers are set before.
static inline void join_sides(side *a, side *b, const char *address) {
    muster_stream *to_b, *to_a;
    stream_between(a->context, b->context, address, &to_b, &to_a);
    assert_int_equal(muster_am_add_peer(a->am, to_b, &a->peer, NULL), MUSTER_OK);
    assert_int_equal(muster_am_add_peer(b->am, to_a, &b->peer, NULL), MUSTER_OK);
}
static inline void end_side(side *s) {
    muster_am_release(s->am);
    muster_queue_release(s->queue);
    assert_int_equal(muster_context_close(s->context, 20 * second), MUSTER_OK);
    muster_context_release(s->context);
}
static inline muster_completion next_of(muster_queue *queue) {
    muster_completion entry;
    assert_int_equal(muster_queue_next(queue, 20 * second, &entry, NULL), MUSTER_OK);
    return entry;
}

#endif
