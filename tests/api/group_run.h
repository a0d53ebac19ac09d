// SPDX-License-Identifier: MIT
// What the tests of groups share: members that are threads of this process, each with a context of its own.
#ifndef GROUP_RUN_H
#define GROUP_RUN_H

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>
#include <muster/muster.h>

static const int64_t ms = 1000000, second = 1000000000;

// For threads, where a jump out of a failed assertion is not possible.
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                            \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)
#define CHECK_OK(call, error)                                                                                          \
    do {                                                                                                               \
        const muster_status got_ = (call);                                                                             \
        if (got_ != MUSTER_OK) {                                                                                       \
            fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #call, muster_status_name(got_),                \
                    (error).message);                                                                                  \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

// All have opened the group. A context that the host drives is driven meanwhile: the others may need its messages.
typedef struct opened {
    pthread_barrier_t threads;
    atomic_uint count;
} opened;

typedef struct member member;
typedef void (*member_body)(member *me);
struct member {
    uint32_t rank, size, flags, context_flags;
    uint64_t slot_bytes;
    const char *listen;
    muster_store *store;
    muster_context *context;
    muster_group *group;
    member_body body;
    void *shared; // of the test
    struct opened *opened;
    pthread_t thread;
};

static inline muster_status open_member(member *me, int64_t timeout_ns, muster_error *error) {
    muster_group_config config = {.struct_size = sizeof config,
                                  .flags = me->flags,
                                  .rank = me->rank,
                                  .size = me->size,
                                  .store = me->store,
                                  .listen = me->listen,
                                  .listen_bytes = strlen(me->listen),
                                  .slot_bytes = me->slot_bytes};
    return muster_group_open(me->context, &config, timeout_ns, &me->group, error);
}

static inline void make_member_context(member *me) {
    muster_context_config config;
    muster_config_init(&config, sizeof config);
    config.flags = me->context_flags;
    config.secret = "a secret of the group";
    config.secret_bytes = 21;
    CHECK(muster_context_create(&config, &me->context, NULL) == MUSTER_OK);
}

static inline void *member_thread(void *argument) {
    member *const me = argument;
    muster_error error = {0};
    make_member_context(me);
    CHECK_OK(open_member(me, 30 * second, &error), error);
    CHECK(muster_group_rank(me->group) == me->rank && muster_group_size(me->group) == me->size);
    // The group is open here, but perhaps not yet at the others: a failure of this member would end their opening.
    atomic_fetch_add(&me->opened->count, 1);
    while ((me->context_flags & MUSTER_CONTEXT_EXTERNAL) && atomic_load(&me->opened->count) != me->size)
        muster_context_progress(me->context, 10 * ms);
    pthread_barrier_wait(&me->opened->threads);
    me->body(me);
    if (me->group) CHECK_OK(muster_group_close(me->group, 30 * second, &error), error);
    muster_group_release(me->group);
    CHECK(muster_context_close(me->context, 10 * second) == MUSTER_OK);
    muster_context_release(me->context);
    return NULL;
}

typedef struct members {
    muster_context *context;
    muster_store *store;
    member list[64];
    uint32_t size;
} members;

static inline void make_members(members *all, uint32_t size, const member *like) {
    memset(all, 0, sizeof *all);
    all->size = size;
    assert_int_equal(muster_context_create(NULL, &all->context, NULL), MUSTER_OK);
    assert_int_equal(muster_store_open(all->context, "memory:", 7, NULL, second, &all->store, NULL), MUSTER_OK);
    for (uint32_t r = 0; r < size; r++) {
        all->list[r] = *like;
        all->list[r].rank = r;
        all->list[r].size = size;
        all->list[r].store = all->store;
        if (all->list[r].listen == NULL) all->list[r].listen = "tcp://127.0.0.1:0";
    }
}

static inline void free_members(members *all) {
    muster_store_release(all->store);
    assert_int_equal(muster_context_close(all->context, 10 * second), MUSTER_OK);
    muster_context_release(all->context);
}

// Runs `body` at each of `size` members, and closes the group; a body that has released its group sets it to NULL.
static inline void run_members(uint32_t size, const member *like, member_body body) {
    members all;
    opened have_opened = {.count = 0};
    assert_int_equal(pthread_barrier_init(&have_opened.threads, NULL, size), 0);
    make_members(&all, size, like);
    for (uint32_t r = 0; r < size; r++) {
        all.list[r].body = body;
        all.list[r].opened = &have_opened;
        assert_int_equal(pthread_create(&all.list[r].thread, NULL, member_thread, &all.list[r]), 0);
    }
    for (uint32_t r = 0; r < size; r++) pthread_join(all.list[r].thread, NULL);
    pthread_barrier_destroy(&have_opened.threads);
    free_members(&all);
}

// ---- members that are processes, which are forked before this one has threads

// Begins when the URL of a store is written to the pipe, and ends with this process. Returns its process id.
static inline pid_t start_member_process(uint32_t rank, uint32_t size, int urls,
                                         void (*body)(member *me, const void *argument), const void *argument) {
    const pid_t parent = getpid(), child = fork();
    if (child != 0) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    char url[256] = "";
    if (getppid() != parent || read(urls, url, sizeof url) <= 0) _exit(9);
    member me = {.rank = rank, .size = size, .listen = "tcp://127.0.0.1:0"};
    make_member_context(&me);
    muster_error error = {0};
    CHECK_OK(muster_store_open(me.context, url, strlen(url), NULL, 20 * second, &me.store, &error), error);
    body(&me, argument);
    _exit(8);
}

// A store for such members, in the context of `me`. Returns the length of its URL.
static inline size_t serve_store(member *me, muster_store_server **out_server, char url[256]) {
    muster_error error = {0};
    size_t size = 0;
    make_member_context(me);
    CHECK_OK(muster_store_server_open(me->context, "tcp://127.0.0.1:0", 17, NULL, out_server, &error), error);
    CHECK(muster_store_server_address(*out_server, url, 255, &size) == MUSTER_OK);
    url[size] = '\0';
    return size;
}
static inline void stop_store(member *me, muster_store_server *server) {
    muster_store_server_release(server);
    CHECK(muster_context_close(me->context, 10 * second) == MUSTER_OK);
    muster_context_release(me->context);
}

#endif
