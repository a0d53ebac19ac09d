/* SPDX-License-Identifier: MIT */
/* An etcd of a test's own, which it may kill and start again; and requests to a store, with text for keys and values.
 */
#ifndef ETCD_TEST_ETCD_H
#define ETCD_TEST_ETCD_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <muster/store.h>

#include "stopped.h"

static const int64_t ms = 1000000, second = 1000000000;

static inline int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * second + t.tv_nsec;
}

/* ---- the server ---- */

typedef struct etcd {
    char folder[200]; /* with its data, and files of the test */
    int port;
    pid_t pid;
    FILE *log;
    pthread_t reader; /* of what it prints, once it serves */
    int is_read;
    const char *const *options; /* up to NULL */
    const char *scheme;
} etcd;

static inline int any_port(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(s, (struct sockaddr *)&address, &size), 0);
    close(s);
    return ntohs(address.sin_port);
}

/* What it logs must not fill the pipe. */
static inline void *read_on(void *file) {
    char line[4096];
    while (fgets(line, sizeof line, file) != NULL) {
    }
    return NULL;
}

static inline void launch_etcd(etcd *e) {
    char data[256], url[64];
    const char *arguments[40] = {getenv("MUSTER_ETCD"),
                                 "--data-dir",
                                 data,
                                 "--listen-client-urls",
                                 url,
                                 "--advertise-client-urls",
                                 url,
                                 "--listen-peer-urls",
                                 "http://127.0.0.1:0",
                                 "--logger",
                                 "zap",
                                 "--log-outputs",
                                 "stdout"};
    size_t count = 13;
    snprintf(data, sizeof data, "%s/data", e->folder);
    snprintf(url, sizeof url, "%s://127.0.0.1:%d", e->scheme, e->port);
    for (const char *const *option = e->options; option != NULL && *option != NULL; option++)
        arguments[count++] = *option;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    fflush(NULL);
    e->pid = fork();
    assert_true(e->pid >= 0);
    if (e->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        execv(arguments[0], (char *const *)arguments);
        _exit(127);
    }
    close(ends[1]);
    e->log = fdopen(ends[0], "r");
}

/* 0: a port of it was taken by somebody else. */
static inline int serves_etcd(etcd *e) {
    char line[4096], last[4096] = "";
    while (fgets(line, sizeof line, e->log) != NULL) {
        if (strstr(line, "serving client traffic") != NULL) {
            assert_int_equal(pthread_create(&e->reader, NULL, read_on, e->log), 0);
            e->is_read = 1;
            return 1;
        }
        if (strstr(line, "\"level\":\"fatal\"") != NULL) snprintf(last, sizeof last, "%s", line);
    }
    fclose(e->log);
    waitpid(e->pid, NULL, 0);
    e->pid = 0;
    if (strstr(last, "address already in use") == NULL) fail_msg("etcd does not start: %s", last);
    return 0;
}

static inline void make_etcd(etcd *e) {
    memset(e, 0, sizeof *e);
    e->scheme = "http";
    const char *tmp = getenv("TMPDIR");
    snprintf(e->folder, sizeof e->folder, "%s/muster-etcd-XXXXXX", tmp != NULL ? tmp : "/tmp");
    assert_non_null(mkdtemp(e->folder));
    e->port = any_port();
}
static inline void start_etcd(etcd *e) {
    for (launch_etcd(e); !serves_etcd(e); launch_etcd(e)) e->port = any_port();
}
static inline void kill_etcd(etcd *e) {
    kill(e->pid, SIGKILL);
    waitpid(e->pid, NULL, 0);
    if (e->is_read) pthread_join(e->reader, NULL);
    e->is_read = 0;
    fclose(e->log);
    e->pid = 0;
}
static inline void drop_etcd(etcd *e) {
    if (e->pid != 0) kill_etcd(e);
    char command[256];
    snprintf(command, sizeof command, "rm -rf '%s'", e->folder);
    assert_int_equal(system(command), 0);
}

/* A request to its gateway, past Muster: for what only an administrator does. */
static inline void ask_etcd(const etcd *e, const char *path, const char *body, char *answer, size_t room) {
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)e->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(s, (struct sockaddr *)&address, sizeof address), 0);
    const int size = snprintf(answer, room,
                              "POST %s HTTP/1.0\r\nHost: etcd\r\nContent-Type: application/json\r\n"
                              "Content-Length: %zu\r\n\r\n%s",
                              path, strlen(body), body);
    assert_int_equal(send(s, answer, (size_t)size, MSG_NOSIGNAL), size);
    size_t got = 0;
    ssize_t n;
    while (got < room - 1 && (n = recv(s, answer + got, room - 1 - got, 0)) > 0) got += (size_t)n;
    answer[got] = '\0';
    close(s);
}
static inline void post(const etcd *e, const char *path, const char *body, const char *part_of_answer) {
    char text[4096];
    ask_etcd(e, path, body, text, sizeof text);
    if (strstr(text, part_of_answer) == NULL) fail_msg("%s: %s", path, text);
}

/* ---- the store ---- */

typedef struct fixture {
    etcd server;
    muster_context *context;
    muster_queue *queue;
    muster_store *store;
} fixture;

static muster_error why;
static muster_store_result *last;

static inline muster_status open_url(fixture *f, const char *url) {
    memset(&why, 0, sizeof why);
    return muster_store_open(f->context, url, strlen(url), NULL, 20 * second, &f->store, &why);
}
/* At the server, or at another port in front of it. */
static inline muster_status try_open(fixture *f, int port, const char *rest) {
    char url[2000];
    snprintf(url, sizeof url, "etcd://127.0.0.1:%d%s", port, rest);
    return open_url(f, url);
}
static inline void open_at(fixture *f, int port, const char *rest) {
    if (try_open(f, port, rest) != MUSTER_OK) fail_msg("%s", why.message);
}
static inline void make(fixture *f) {
    memset(f, 0, sizeof *f);
    make_etcd(&f->server);
    assert_int_equal(muster_context_create(NULL, &f->context, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(f->context, NULL, &f->queue, NULL), MUSTER_OK);
}
static inline void drop(fixture *f) {
    muster_store_result_release(last);
    last = NULL;
    muster_store_release(f->store);
    muster_queue_release(f->queue);
    assert_int_equal(muster_context_close(f->context, 10 * second), MUSTER_OK);
    muster_context_release(f->context);
    drop_etcd(&f->server);
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
static inline muster_status request(fixture *f, const muster_store_op *ops, size_t count, int64_t timeout) {
    muster_store_result_release(last);
    memset(&why, 0, sizeof why);
    return muster_store_do(f->store, ops, count, timeout, &last, &why);
}
static inline void run(fixture *f, muster_store_op what, muster_status wanted) {
    const muster_status status = request(f, &what, 1, 30 * second);
    if (status != wanted) fail_msg("%d instead of %d: %s", status, wanted, why.message);
}
static inline muster_store_entry entry(uint64_t index) {
    muster_store_entry e;
    assert_int_equal(muster_store_result_entry(last, index, &e), MUSTER_OK);
    return e;
}
static inline void expect_holds(uint64_t index, const char *text) {
    const muster_store_entry e = entry(index);
    assert_true(e.flags & MUSTER_STORE_PRESENT);
    assert_int_equal(e.value_bytes, strlen(text));
    assert_memory_equal(e.value, text, e.value_bytes);
}
static inline void expect_text(const char *part) {
    if (strstr(why.message, part) == NULL) fail_msg("\"%s\" is not in: %s", part, why.message);
}
static inline void begin(fixture *f, muster_store_op what, uint64_t tag) {
    if (muster_store_begin(f->store, &what, 1, -1, f->queue, tag, NULL, &why) != MUSTER_OK) fail_msg("%s", why.message);
}
static inline uint64_t take(fixture *f, muster_status wanted) {
    muster_completion done;
    memset(&why, 0, sizeof why);
    assert_int_equal(muster_queue_next(f->queue, 30 * second, &done, &why), MUSTER_OK);
    if (done.status != wanted) fail_msg("%d instead of %d: %s", done.status, wanted, why.message);
    muster_store_result_release(last);
    last = done.object;
    return done.tag;
}

#endif
