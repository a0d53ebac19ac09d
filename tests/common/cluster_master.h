// SPDX-License-Identifier: MIT
// The master of the tests of clusters: a context, a cluster, its events, and what is said to workers.
#ifndef CLUSTER_MASTER_H
#define CLUSTER_MASTER_H

#include "cluster_worker.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <errno.h>
#include <sys/wait.h>

static char self_path[4096];

static inline void find_self(void) {
    const ssize_t size = readlink("/proc/self/exe", self_path, sizeof self_path - 1);
    if (size < 0) abort();
    self_path[size] = '\0';
}

typedef struct fixture {
    muster_context *context;
    muster_cluster *cluster;
} fixture;

static inline int set_up(void **state) {
    static fixture f;
    memset(&f, 0, sizeof f);
    muster_error error = {0};
    if (muster_context_create(NULL, &f.context, &error) != MUSTER_OK) fail_msg("%s", error.message);
    *state = &f;
    return 0;
}

// No child of this process is left, nor a zombie of one.
static inline void assert_no_children(void) {
    const pid_t left = waitpid(-1, NULL, WNOHANG);
    if (left != -1 || errno != ECHILD) fail_msg("a child is left: %d", (int)left);
}

static inline int tear_down(void **state) {
    fixture *f = *state;
    muster_cluster_close(f->cluster, second);
    muster_cluster_release(f->cluster);
    assert_int_equal(muster_context_close(f->context, 5 * second), MUSTER_OK);
    muster_context_release(f->context);
    return 0;
}

static inline void open_with(fixture *f, uint32_t topology, const char *listen, int64_t join_timeout_ns) {
    muster_cluster_config config;
    muster_config_init(&config, sizeof config);
    config.topology = topology;
    config.listen = listen;
    config.listen_bytes = listen ? strlen(listen) : 0;
    config.join_timeout_ns = join_timeout_ns;
    muster_error error = {0};
    if (muster_cluster_open(f->context, &config, &f->cluster, &error) != MUSTER_OK) fail_msg("%s", error.message);
}

static inline uint32_t add_like(fixture *f, const muster_launch *like, const char *mode, uint32_t count) {
    muster_launch launch;
    muster_config_init(&launch, sizeof launch);
    if (like) launch = *like;
    const char *const words[] = {self_path, mode, NULL};
    if (!launch.argv) launch.argv = words;
    launch.count = count;
    uint32_t first = 0;
    muster_error error = {0};
    if (muster_cluster_add(f->cluster, &launch, &first, &error) != MUSTER_OK) fail_msg("%s", error.message);
    return first;
}

static inline uint32_t add(fixture *f, uint32_t count) {
    return add_like(f, NULL, "worker", count);
}

static inline muster_cluster_event next(fixture *f) {
    muster_cluster_event event;
    const muster_status status = muster_cluster_next_event(f->cluster, 30 * second, &event);
    if (status != MUSTER_OK) fail_msg("no event: %s", muster_status_name(status));
    return event;
}

// The next event of that kind; those of others' coming are skipped.
static inline muster_cluster_event await(fixture *f, uint32_t kind) {
    for (;;) {
        const muster_cluster_event event = next(f);
        if (event.kind == kind) return event;
        if (event.kind > MUSTER_CLUSTER_JOINED)
            fail_msg("event %u of member %u: %s", event.kind, event.member, event.text);
    }
}

static inline void await_joined(fixture *f, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) await(f, MUSTER_CLUSTER_JOINED);
}

static inline muster_stream *dial(fixture *f, uint32_t member, const char *label) {
    muster_stream *stream = NULL;
    muster_error error = {0};
    const muster_status status =
        muster_cluster_dial(f->cluster, member, label, strlen(label), 20 * second, &stream, &error);
    if (status != MUSTER_OK) fail_msg("dial %u: %s: %s", member, muster_status_name(status), error.message);
    return stream;
}

static inline void hang_up(muster_stream *stream) {
    muster_stream_close(stream, 0);
    muster_stream_release(stream);
}

// Has a worker end itself. It may be gone before this dial has completed.
static inline void end_worker(fixture *f, uint32_t member, const char *label) {
    muster_stream *stream = NULL;
    muster_error error = {0};
    const muster_status status =
        muster_cluster_dial(f->cluster, member, label, strlen(label), 20 * second, &stream, &error);
    if (status == MUSTER_OK)
        hang_up(stream);
    else if (status != MUSTER_E_STALE && status != MUSTER_E_PEER)
        fail_msg("dial %u: %s: %s", member, muster_status_name(status), error.message);
}

// What the worker says to it.
static inline const char *ask(fixture *f, uint32_t member, const char *label) {
    static char text[400];
    muster_stream *const stream = dial(f, member, label);
    hear(stream, text, sizeof text);
    hang_up(stream);
    return text;
}

static inline void assert_talks(fixture *f, uint32_t from, uint32_t to) {
    char label[32];
    snprintf(label, sizeof label, "talk %u", to);
    assert_string_equal(ask(f, from, label), "done");
}

#define assert_says(text, part)                                                                                        \
    if (!strstr(text, part)) fail_msg("'%s' does not say '%s'", text, part)

#endif
