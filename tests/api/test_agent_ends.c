// SPDX-License-Identifier: MIT
// What is left of an agent and its workers when one of them, the context or the guard ends: no worker.
// ctest: quick timeout=60
#include "agent_workers.h"

#include <dirent.h>

#include <signal.h>
#include <sys/wait.h>

#ifdef MUSTER_TSAN
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) {
    return "die_after_fork=0";
} // children of a fork start threads here
#endif

static void test_what_a_worker_leaves_in_its_group_ends_with_it(void **state) {
    fixture *f = *state;
    muster_agent *agent = run_shell(f, 1, 0, "sleep 1000 & echo $! > $T/left; exit 0");
    assert_int_equal(end_of(agent).status, MUSTER_OK);
    char text[64];
    read_text(f, "left", text, sizeof text);
    const pid_t left = atoi(text);
    assert_true(left > 0);
    for (int i = 0; i < 3000 && !gone(left); i++) poll(NULL, 0, 10); // it is not a child of this process
    assert_true(gone(left));
    muster_agent_release(agent);
}

static void test_release_stops_the_workers(void **state) {
    fixture *f = *state;
    muster_agent *agent = run_shell(f, 2, 9, "exec sleep 1000");
    await_entry(f, MUSTER_EVENT_AGENT, MUSTER_AGENT_STARTED, NULL);
    const pid_t pid = worker_of(agent, 1).pid;
    muster_agent_release(agent);
    assert_int_equal(await_entry(f, MUSTER_DONE_AGENT, 0, NULL).status, MUSTER_E_CANCELED);
    assert_true(gone(pid));
}

static void test_a_context_that_closes_stops_the_workers(void **state) {
    (void)state;
    for (int64_t timeout = 0; timeout <= 30 * second; timeout += 30 * second) {
        fixture g;
        assert_int_equal(muster_context_create(NULL, &g.context, NULL), MUSTER_OK);
        assert_int_equal(muster_queue_create(g.context, NULL, &g.queue, NULL), MUSTER_OK);
        muster_agent *agent = run_shell(&g, 2, 9, "exec sleep 1000");
        await_entry(&g, MUSTER_EVENT_AGENT, MUSTER_AGENT_STARTED, NULL);
        const pid_t pid = worker_of(agent, 1).pid;
        muster_context_close(g.context, timeout);
        assert_int_equal(end_of(agent).status, MUSTER_E_CLOSED);
        assert_true(gone(pid));
        muster_agent *none;
        const char *const argv[] = {"true", NULL};
        const muster_agent_config config = config_of(argv, 1);
        assert_int_equal(muster_agent_start(g.context, &config, g.queue, 0, &none, NULL), MUSTER_E_CLOSED);
        muster_agent_release(agent);
        muster_queue_release(g.queue);
        muster_context_release(g.context);
    }
}

// In a process of its own: it is killed, and its workers, down to those that left their group, end.
static void test_a_killed_agent_leaves_no_workers(void **state) {
    fixture *f = *state;
    const int ready = make_fifo(f, "ready");
    const pid_t child = fork();
    if (child == 0) {
        muster_context *context;
        muster_queue *queue;
        muster_agent *agent;
        const char *const argv[] = {
            "sh", "-c",
            "setsid sleep 1000 & echo $! > $T/left$RANK; echo $$ > $T/pid$RANK; echo > $T/ready; exec sleep 1000",
            NULL};
        const muster_agent_config config = config_of(argv, 3);
        if (muster_context_create(NULL, &context, NULL) || muster_queue_create(context, NULL, &queue, NULL) ||
            muster_agent_start(context, &config, queue, 0, &agent, NULL))
            _exit(1);
        muster_agent_wait(agent, -1, NULL);
        _exit(2);
    }
    for (int i = 0; i < 3; i++) await_byte(ready);
    assert_int_equal(kill(child, SIGKILL), 0);
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how));
    for (int i = 0; i < 6; i++) {
        char name[16], text[64];
        snprintf(name, sizeof name, "%s%d", i < 3 ? "pid" : "left", i % 3);
        read_text(f, name, text, sizeof text);
        const pid_t pid = atoi(text);
        assert_true(pid > 1);
        // They are not children of this process.
        for (int round = 0; round < 2000 && !gone(pid); round++) poll(NULL, 0, 10);
        if (!gone(pid)) fail_msg("%s %d lives on", name, (int)pid);
    }
    close(ready);
}

// The guard that this thread has started last; 0: its exec is not over yet.
static pid_t look_for_guard(void) {
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *children = fopen(path, "r");
    assert_non_null(children);
    int pid = 0, found = 0;
    while (fscanf(children, "%d", &pid) == 1) {
        snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
        FILE *line = fopen(path, "r");
        const size_t n = line ? fread(text, 1, sizeof text - 1, line) : 0;
        if (line) fclose(line);
        for (size_t i = 0; i < n; i++) text[i] = text[i] ? text[i] : ' ';
        text[n] = '\0';
        if (strncmp(text, "/bin/sh -c trap", 15) == 0) found = pid;
    }
    fclose(children);
    return found;
}

static int folders_of_agents(const fixture *f) {
    int count = 0;
    DIR *listing = opendir(f->folder);
    assert_non_null(listing);
    for (const struct dirent *entry; (entry = readdir(listing)) != NULL;)
        if (strstr(entry->d_name, "muster-agent") != NULL) count++;
    closedir(listing);
    return count;
}

// Its folder for temporary files goes with the next agent that starts there; that of one which runs stays.
static void test_a_killed_agent_leaves_no_folder(void **state) {
    fixture *f = *state;
    const char *const tmp = getenv("TMPDIR");
    char before[1024] = "";
    if (tmp != NULL) snprintf(before, sizeof before, "%s", tmp);
    assert_int_equal(setenv("TMPDIR", f->folder, 1), 0);
    const int ready = make_fifo(f, "ready");
    const pid_t child = fork();
    if (child == 0) {
        muster_context *context;
        muster_queue *queue;
        muster_agent *agent;
        const char *const argv[] = {"sh", "-c", "echo > $T/ready; exec sleep 1000", NULL};
        const muster_agent_config config = config_of(argv, 1);
        if (muster_context_create(NULL, &context, NULL) || muster_queue_create(context, NULL, &queue, NULL) ||
            muster_agent_start(context, &config, queue, 0, &agent, NULL))
            _exit(1);
        muster_agent_wait(agent, -1, NULL);
        _exit(2);
    }
    await_byte(ready);
    assert_int_equal(folders_of_agents(f), 1);
    muster_agent *agent = run_shell(f, 1, 0, "true");
    assert_int_equal(end_of(agent).status, MUSTER_OK);
    muster_agent_release(agent);
    assert_int_equal(folders_of_agents(f), 1);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(folders_of_agents(f), 1);
    agent = run_shell(f, 1, 0, "true");
    assert_int_equal(end_of(agent).status, MUSTER_OK);
    muster_agent_release(agent);
    assert_int_equal(folders_of_agents(f), 0);
    assert_int_equal(tmp != NULL ? setenv("TMPDIR", before, 1) : unsetenv("TMPDIR"), 0);
}

static void test_a_killed_guard_is_replaced(void **state) {
    fixture *f = *state;
    muster_queue *log;
    muster_queue_create(f->context, NULL, &log, NULL);
    muster_context_log(f->context, MUSTER_LOG_WARN, log, 0);
    muster_agent *agent = run_shell(f, 1, 0, "exec sleep 1000");
    pid_t guard = 0;
    while (guard == 0) guard = look_for_guard();
    assert_int_equal(kill(guard, SIGKILL), 0);
    muster_completion record;
    muster_error said;
    assert_int_equal(muster_queue_next(log, 30 * second, &record, &said), MUSTER_OK);
    assert_string_equal(said.message, "the guard of the workers was killed; here is another one");
    muster_context_log(f->context, MUSTER_LOG_OFF, NULL, 0);
    muster_queue_release(log);
    assert_int_equal(muster_agent_stop(agent, 0, 30 * second), MUSTER_OK);
    assert_int_equal(end_of(agent).status, MUSTER_E_CANCELED);
    muster_agent_release(agent);
}

static void test_handles_of_the_parent_are_refused(void **state) {
    fixture *f = *state;
    muster_agent *agent = run_shell(f, 1, 0, "exec sleep 1000");
    const pid_t child = fork();
    if (child == 0) {
        muster_agent_state now;
        const bool right = muster_agent_wait(agent, 0, NULL) == MUSTER_E_FORKED &&
                           muster_agent_stop(agent, 0, 0) == MUSTER_E_FORKED &&
                           muster_agent_get_state(agent, &now) == MUSTER_E_FORKED;
        muster_agent_release(agent);
        _exit(right ? 0 : 1);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    assert_int_equal(muster_agent_stop(agent, SIGTERM, 10 * second), MUSTER_OK);
    assert_int_equal(end_of(agent).status, MUSTER_E_CANCELED);
    muster_agent_release(agent);
}

int main(int count, char **arguments) {
    if (count > 1) cmocka_set_test_filter(arguments[1]);
    const struct CMUnitTest tests[] = {
        TEST(test_what_a_worker_leaves_in_its_group_ends_with_it),
        TEST(test_release_stops_the_workers),
        TEST(test_a_context_that_closes_stops_the_workers),
        TEST(test_a_killed_agent_leaves_no_workers),
        TEST(test_a_killed_agent_leaves_no_folder),
        TEST(test_a_killed_guard_is_replaced),
        TEST(test_handles_of_the_parent_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
