// SPDX-License-Identifier: MIT
// What the tests of a rendezvous share: members of a run over a store in this process, over one that is reached by a
// connection, or over those of a URL that the command line gives the front of.
#ifndef RENDEZVOUS_RUN_H
#define RENDEZVOUS_RUN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <muster/rendezvous.h>
#include <muster/store_server.h>
#include <time.h>

static const int64_t ms = 1000000, second = 1000000000;

typedef struct fixture {
    muster_context *context;
    muster_queue *queue;
    muster_store *store;
    muster_store_server *server; /* NULL: the store is in this process */
} fixture;

static bool over_tcp;
static const char *elsewhere; /* front of a URL where each test has a store of its own; NULL: memory, or tcp */

static inline fixture set_up(uint32_t flags) {
    fixture f = {0};
    muster_context_config config;
    muster_config_init(&config, sizeof config);
    config.flags = flags;
    assert_int_equal(muster_context_create(&config, &f.context, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(f.context, NULL, &f.queue, NULL), MUSTER_OK);
    char url[256] = "memory:";
    size_t size = 7;
    static int stores;
    if (elsewhere != NULL) {
        size = (size_t)snprintf(url, sizeof url, "%s%d", elsewhere, stores++);
    } else if (over_tcp) {
        assert_int_equal(muster_store_server_open(f.context, "tcp://127.0.0.1:0", 17, NULL, &f.server, NULL),
                         MUSTER_OK);
        assert_int_equal(muster_store_server_address(f.server, url, sizeof url, &size), MUSTER_OK);
    }
    assert_int_equal(muster_store_open(f.context, url, size, NULL, 10 * second, &f.store, NULL), MUSTER_OK);
    return f;
}
static inline void tear_down(fixture *f) {
    muster_store_release(f->store);
    muster_store_server_release(f->server);
    muster_queue_release(f->queue);
    assert_int_equal(muster_context_close(f->context, 10 * second), MUSTER_OK);
    muster_context_release(f->context);
}
static inline int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * second + t.tv_nsec;
}

static inline muster_rendezvous_config run_of(const fixture *f, uint32_t min, uint32_t max) {
    muster_rendezvous_config config;
    muster_config_init(&config, sizeof config);
    config.run_id = "job";
    config.run_id_bytes = 3;
    config.store = f->store;
    config.min = min;
    config.max = max;
    config.last_call_ns = -1;
    return config;
}
static inline muster_rendezvous *member(const fixture *f, const muster_rendezvous_config *run, const char *address) {
    muster_rendezvous_config config = *run;
    muster_rendezvous *made;
    muster_error error;
    config.address = address;
    config.address_bytes = strlen(address);
    const muster_status status = muster_rendezvous_open(f->context, &config, 10 * second, &made, &error);
    if (status != MUSTER_OK) fail_msg("%s", error.message);
    return made;
}
static inline void begin(const fixture *f, muster_rendezvous *who, uint32_t what, uint64_t tag) {
    assert_int_equal(muster_rendezvous_begin(who, what, NULL, 0, 20 * second, f->queue, tag, NULL), MUSTER_OK);
}
/* The next completion, which is of this tag; any: UINT64_MAX. */
static inline muster_round *ended(const fixture *f, uint64_t tag, muster_status status) {
    muster_completion done;
    muster_error error;
    assert_int_equal(muster_queue_next(f->queue, 20 * second, &done, &error), MUSTER_OK);
    assert_int_equal(done.kind, MUSTER_DONE_RENDEZVOUS);
    if (tag != UINT64_MAX) assert_int_equal(done.tag, tag);
    if (done.status != status) fail_msg("%s: %s", muster_status_name(done.status), error.message);
    return done.object;
}
/* All of these join, and are in a round together; by rank. */
static inline void join_all(const fixture *f, muster_rendezvous **who, muster_round **rounds, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) begin(f, who[i], MUSTER_RENDEZVOUS_JOIN, i);
    for (uint32_t i = 0; i < count; i++) {
        muster_completion done;
        muster_error error;
        assert_int_equal(muster_queue_next(f->queue, 30 * second, &done, &error), MUSTER_OK);
        if (done.status != MUSTER_OK) fail_msg("%s", error.message);
        rounds[done.tag] = done.object;
    }
}
static inline muster_round_info info_of(const muster_round *round) {
    muster_round_info info;
    assert_int_equal(muster_round_get_info(round, &info), MUSTER_OK);
    return info;
}
/* Takes events until one of this kind comes. */
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
static inline muster_store_op op(uint32_t kind, const char *key) {
    muster_store_op made;
    memset(&made, 0, sizeof made);
    made.kind = kind;
    made.key = key;
    made.key_bytes = strlen(key);
    return made;
}
static inline muster_store *store_of(muster_round *round) {
    muster_store *store;
    assert_int_equal(muster_round_store(round, &store, NULL), MUSTER_OK);
    return store;
}
static inline void release_all(muster_rendezvous **who, muster_round **rounds, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (rounds != NULL) muster_round_release(rounds[i]);
        muster_rendezvous_release(who[i]);
    }
}

/* As main: all tests, over each store. */
#define RUN_OVER_STORES(tests, count, arguments)                                                                       \
    do {                                                                                                               \
        if ((count) > 1) {                                                                                             \
            elsewhere = (arguments)[1];                                                                                \
            return cmocka_run_group_tests_name(elsewhere, tests, NULL, NULL);                                          \
        }                                                                                                              \
        int failed = 0;                                                                                                \
        for (int i = 0; i < 2; i++) {                                                                                  \
            over_tcp = i == 1;                                                                                         \
            failed += cmocka_run_group_tests_name(over_tcp ? "over tcp" : "in memory", tests, NULL, NULL);             \
        }                                                                                                              \
        return failed;                                                                                                 \
    } while (0)

#endif
