// SPDX-License-Identifier: MIT
// What the tests of an agent share: an agent whose workers are shell scripts, and what they say to the test.
#ifndef AGENT_WORKERS_H
#define AGENT_WORKERS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <muster/agent.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

static const int64_t ms = 1000000, second = 1000000000;

typedef struct fixture {
    muster_context *context;
    muster_queue *queue;
    char folder[64]; // for what the workers write
} fixture;

static inline int set_up(void **state) {
    static fixture f;
    assert_int_equal(muster_context_create(NULL, &f.context, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(f.context, NULL, &f.queue, NULL), MUSTER_OK);
    const char *const tmp = getenv("TMPDIR");
    snprintf(f.folder, sizeof f.folder, "%.40s/agent-test-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(f.folder));
    assert_int_equal(setenv("T", f.folder, 1), 0);
    *state = &f;
    return 0;
}

static inline int tear_down(void **state) {
    fixture *f = *state;
    muster_queue_release(f->queue);
    assert_int_equal(muster_context_close(f->context, -1), MUSTER_OK);
    muster_context_release(f->context);
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", f->folder);
    return system(command);
}

static inline muster_agent_config config_of(const char *const *argv, uint32_t workers) {
    muster_agent_config config;
    muster_config_init(&config, sizeof config);
    config.argv = argv;
    config.worker_count = workers;
    return config;
}

static inline muster_agent *start(fixture *f, const muster_agent_config *config) {
    muster_agent *agent = NULL;
    muster_error error;
    if (muster_agent_start(f->context, config, f->queue, 7, &agent, &error) != MUSTER_OK) fail_msg("%s", error.message);
    return agent;
}

// An agent with a shell script as its program.
static inline muster_agent *run_shell(fixture *f, uint32_t workers, uint32_t max_restarts, const char *script) {
    const char *const argv[] = {"sh", "-c", script, NULL};
    muster_agent_config config = config_of(argv, workers);
    config.max_restarts = max_restarts;
    return start(f, &config);
}

static inline muster_error end_of(muster_agent *agent) {
    muster_error error = {0};
    const muster_status status = muster_agent_wait(agent, 30 * second, &error);
    if (status > 0) fail_msg("the agent does not end");
    error.status = status;
    return error;
}

static inline muster_agent_worker worker_of(muster_agent *agent, uint32_t local_rank) {
    muster_agent_worker worker;
    assert_int_equal(muster_agent_get_worker(agent, local_rank, &worker), MUSTER_OK);
    return worker;
}

static inline muster_agent_worker failure_of(muster_agent *agent) {
    muster_agent_worker worker;
    assert_int_equal(muster_agent_first_failure(agent, &worker), MUSTER_OK);
    return worker;
}

// The next entry of a kind; what comes before it is dropped.
static inline muster_completion await_entry(fixture *f, int32_t kind, uint32_t events, muster_error *error) {
    for (;;) {
        muster_completion entry;
        assert_int_equal(muster_queue_next(f->queue, 30 * second, &entry, error), MUSTER_OK);
        assert_int_equal(entry.tag, 7);
        if (entry.kind == kind && entry.events == events) return entry;
    }
}

static inline void read_text(const fixture *f, const char *name, char *text, size_t room) {
    char path[1100];
    snprintf(path, sizeof path, "%s/%s", f->folder, name);
    FILE *file = fopen(path, "r");
    if (!file) fail_msg("no file %s", path);
    text[fread(text, 1, room - 1, file)] = '\0';
    fclose(file);
}

static inline bool gone(pid_t pid) {
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (!file) return true;
    const bool zombie = fgets(text, sizeof text, file) && strstr(text, ") Z ");
    fclose(file);
    return zombie;
}

// Workers say that they are so far by opening a FIFO, and wait in it.
static inline int make_fifo(const fixture *f, const char *name) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", f->folder, name);
    assert_int_equal(mkfifo(path, 0600), 0);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static inline void await_byte(int fd) {
    struct pollfd one = {fd, POLLIN, 0};
    char byte;
    assert_int_equal(poll(&one, 1, 30000), 1);
    assert_int_equal(read(fd, &byte, 1), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
