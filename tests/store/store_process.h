// SPDX-License-Identifier: MIT
// `muster store` as a process of its own, and clients of it.
#ifndef STORE_PROCESS_H
#define STORE_PROCESS_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
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
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <muster/muster.h>

#include "stopped.h"

#define SECOND INT64_C(1000000000)
#define MILLISECOND INT64_C(1000000)

static muster_context *starter; // of processes
static char folder[200];        // of this run
static muster_error why;        // of the last call that failed

static inline int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}

typedef struct program {
    muster_process *process;
    int out;
    char line[400], url[300];
} program;

// It does not outlive this test, however that ends.
static inline program start_program(const char *const *arguments) {
    int pipes[2];
    assert_non_null(arguments[0]);
    const char *argv[32] = {"setpriv", "--pdeathsig", "KILL"};
    for (size_t i = 0, at = 3; arguments[i] != NULL; i++) {
        assert_in_range(at, 0, sizeof argv / sizeof *argv - 2);
        argv[at++] = arguments[i];
    }
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    const muster_process_fd fds[] = {{pipes[1], 1}, {pipes[1], 2}};
    muster_process_config config = {.struct_size = sizeof config, .argv = argv, .fds = fds, .fd_count = 2};
    program p = {.out = pipes[0]};
    if (muster_process_spawn(starter, &config, &p.process, &why) != MUSTER_OK) fail_msg("%s", why.message);
    close(pipes[1]);
    return p;
}

// The next line it prints that holds the word; its end if there is none.
static inline bool await_line(program *p, const char *word) {
    size_t size = 0;
    for (;;) {
        struct pollfd waiting = {p->out, POLLIN, 0};
        char c;
        if (poll(&waiting, 1, 20000) != 1) fail_msg("nothing is said of \"%s\"", word);
        if (read(p->out, &c, 1) != 1) return false;
        if (c != '\n') {
            if (size < sizeof p->line - 1) p->line[size++] = c;
            continue;
        }
        p->line[size] = '\0';
        if (strstr(p->line, word)) return true;
        size = 0;
    }
}

// Arguments up to a NULL.
static inline program start_server(const char *first, ...) {
    const char *argv[24] = {getenv("MUSTER_CLI"), "store", "--log", "error"};
    int count = 4;
    va_list more;
    va_start(more, first);
    for (const char *one = first; one != NULL; one = va_arg(more, const char *)) argv[count++] = one;
    va_end(more);
    return start_program(argv);
}

static inline void await_ready(program *p) {
    if (!await_line(p, "listening")) fail_msg("the server does not start: %s", p->line);
    snprintf(p->url, sizeof p->url, "%.290s", p->line + strlen("listening "));
}

static inline muster_process_exit end_program(program *p, int number) {
    muster_process_exit how;
    if (number != 0) assert_int_equal(muster_process_kill(p->process, number), MUSTER_OK);
    assert_int_equal(muster_process_wait(p->process, 20 * SECOND, &how), MUSTER_OK);
    muster_process_release(p->process);
    close(p->out);
    return how;
}

static inline void stop_program(program *p) {
    assert_int_equal(muster_process_kill(p->process, SIGSTOP), MUSTER_OK);
    await_stopped(muster_process_pid(p->process));
}

typedef struct client {
    muster_context *context;
    muster_queue *queue;
    muster_store *store;
} client;

static inline muster_status try_client(client *c, const char *url, int64_t timeout_ns) {
    muster_store_config config = {.struct_size = sizeof config, .lost_after_ns = 20 * SECOND};
    memset(c, 0, sizeof *c);
    assert_int_equal(muster_context_create(NULL, &c->context, &why), MUSTER_OK);
    assert_int_equal(muster_queue_create(c->context, NULL, &c->queue, &why), MUSTER_OK);
    return muster_store_open(c->context, url, strlen(url), &config, timeout_ns, &c->store, &why);
}

static inline client open_client(const char *url) {
    client c;
    if (try_client(&c, url, 10 * SECOND) != MUSTER_OK) fail_msg("%s", why.message);
    return c;
}

static inline void close_client(client *c) {
    muster_store_release(c->store);
    muster_queue_release(c->queue);
    assert_int_equal(muster_context_close(c->context, 10 * SECOND), MUSTER_OK);
    muster_context_release(c->context);
}

static inline muster_store_op op(uint32_t kind, const char *key) {
    return (muster_store_op){.kind = kind, .key = key, .key_bytes = strlen(key)};
}
static inline muster_store_op set(const char *key, const char *value) {
    muster_store_op made = op(MUSTER_STORE_SET, key);
    made.value = value;
    made.value_bytes = strlen(value);
    return made;
}
static inline muster_store_op number(uint32_t kind, const char *key, int64_t n) {
    muster_store_op made = op(kind, key);
    made.number = n;
    return made;
}

static inline muster_status ask(client *c, muster_store_op what, int64_t timeout_ns) {
    return muster_store_do(c->store, &what, 1, timeout_ns, NULL, &why);
}

static inline void must(client *c, muster_store_op what) {
    if (ask(c, what, 30 * SECOND) != MUSTER_OK) fail_msg("%s", why.message);
}

static inline void begin(client *c, muster_store_op what, uint64_t tag) {
    if (muster_store_begin(c->store, &what, 1, -1, c->queue, tag, NULL, &why) != MUSTER_OK) fail_msg("%s", why.message);
}

static inline muster_completion take(client *c) {
    muster_completion done;
    memset(&why, 0, sizeof why);
    assert_int_equal(muster_queue_next(c->queue, 60 * SECOND, &done, &why), MUSTER_OK);
    muster_store_result_release(done.object);
    return done;
}

// The number a key holds; -1: it is not there.
static inline int64_t number_at(client *c, const char *key) {
    const muster_store_op read = op(MUSTER_STORE_READ, key);
    muster_store_result *result;
    muster_store_entry entry;
    if (muster_store_do(c->store, &read, 1, 10 * SECOND, &result, &why) != MUSTER_OK) fail_msg("%s", why.message);
    assert_int_equal(muster_store_result_entry(result, 0, &entry), MUSTER_OK);
    char text[32];
    snprintf(text, sizeof text, "%.*s", (int)entry.value_bytes, (const char *)entry.value);
    const int64_t found = entry.flags & MUSTER_STORE_PRESENT ? strtoll(text, NULL, 10) : -1;
    muster_store_result_release(result);
    return found;
}

// A thread that adds to the key "sum" until it is told to stop: the number of acknowledged requests; -1: it failed.
typedef struct adder {
    client c;
    pthread_t thread;
    int64_t done;
    atomic_bool *stop;
} adder;

static inline void *add_and_add(void *raw) {
    adder *a = raw;
    while (!*a->stop) {
        const muster_store_op add = number(MUSTER_STORE_ADD, "sum", 1);
        muster_error error;
        if (muster_store_do(a->c.store, &add, 1, -1, NULL, &error) == MUSTER_OK) {
            a->done++;
        } else {
            fprintf(stderr, "%s\n", error.message);
            a->done = -1;
            return NULL;
        }
    }
    return NULL;
}

static inline void start_adder(adder *a, const char *url, atomic_bool *stop) {
    *a = (adder){.c = open_client(url), .stop = stop};
    assert_int_equal(pthread_create(&a->thread, NULL, add_and_add, a), 0);
}

// What all of them have done; they are gone then.
static inline int64_t stop_adders(adder *all, int count, atomic_bool *stop) {
    int64_t sum = 0;
    *stop = true;
    for (int i = 0; i < count; i++) {
        pthread_join(all[i].thread, NULL);
        assert_true(all[i].done > 0);
        sum += all[i].done;
        close_client(&all[i].c);
    }
    return sum;
}

static inline void know_secret(void) {
    setenv("MUSTER_SECRET", "the secret of these tests", 1);
}

// What main() begins and ends with. False: it cannot.
static inline bool make_folder(void) {
    know_secret();
    snprintf(folder, sizeof folder, "%s/store-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    return mkdtemp(folder) != NULL;
}
static inline bool tear_down(void) {
    char remove[300];
    snprintf(remove, sizeof remove, "rm -rf '%s'", folder);
    const bool removed = system(remove) == 0;
    muster_context_close(starter, 10 * SECOND);
    muster_context_release(starter);
    return removed;
}

#endif
