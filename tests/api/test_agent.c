// SPDX-License-Identifier: MIT
// The agent and one group of workers: real programs that succeed, fail, hang, flood and are killed.
// ctest: quick timeout=60
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <muster/agent.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef MUSTER_TSAN
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) {
    return "die_after_fork=0";
} // children of a fork start threads here
#endif

static const int64_t ms = 1000000, second = 1000000000;

typedef struct fixture {
    muster_context *context;
    muster_queue *queue;
    char folder[64]; // for what the workers write
} fixture;

static int set_up(void **state) {
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

static int tear_down(void **state) {
    fixture *f = *state;
    muster_queue_release(f->queue);
    assert_int_equal(muster_context_close(f->context, -1), MUSTER_OK);
    muster_context_release(f->context);
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", f->folder);
    return system(command);
}

static muster_agent_config config_of(const char *const *argv, uint32_t workers) {
    muster_agent_config config;
    muster_config_init(&config, sizeof config);
    config.argv = argv;
    config.worker_count = workers;
    return config;
}

static muster_agent *start(fixture *f, const muster_agent_config *config) {
    muster_agent *agent = NULL;
    muster_error error;
    if (muster_agent_start(f->context, config, f->queue, 7, &agent, &error) != MUSTER_OK) fail_msg("%s", error.message);
    return agent;
}

// An agent with a shell script as its program.
static muster_agent *run_shell(fixture *f, uint32_t workers, uint32_t max_restarts, const char *script) {
    const char *const argv[] = {"sh", "-c", script, NULL};
    muster_agent_config config = config_of(argv, workers);
    config.max_restarts = max_restarts;
    return start(f, &config);
}

static muster_error end_of(muster_agent *agent) {
    muster_error error = {0};
    const muster_status status = muster_agent_wait(agent, 30 * second, &error);
    if (status > 0) fail_msg("the agent does not end");
    error.status = status;
    return error;
}

static muster_agent_worker worker_of(muster_agent *agent, uint32_t local_rank) {
    muster_agent_worker worker;
    assert_int_equal(muster_agent_get_worker(agent, local_rank, &worker), MUSTER_OK);
    return worker;
}

static muster_agent_worker failure_of(muster_agent *agent) {
    muster_agent_worker worker;
    assert_int_equal(muster_agent_first_failure(agent, &worker), MUSTER_OK);
    return worker;
}

// The next entry of a kind; what comes before it is dropped.
static muster_completion await_entry(fixture *f, int32_t kind, uint32_t events, muster_error *error) {
    for (;;) {
        muster_completion entry;
        assert_int_equal(muster_queue_next(f->queue, 30 * second, &entry, error), MUSTER_OK);
        assert_int_equal(entry.tag, 7);
        if (entry.kind == kind && entry.events == events) return entry;
    }
}

static void read_text(const fixture *f, const char *name, char *text, size_t room) {
    char path[1100];
    snprintf(path, sizeof path, "%s/%s", f->folder, name);
    FILE *file = fopen(path, "r");
    if (!file) fail_msg("no file %s", path);
    text[fread(text, 1, room - 1, file)] = '\0';
    fclose(file);
}

static bool gone(pid_t pid) {
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (!file) return true;
    const bool zombie = fgets(text, sizeof text, file) && strstr(text, ") Z ");
    fclose(file);
    return zombie;
}

// Workers say that they are so far by opening a FIFO, and wait in it.
static int make_fifo(const fixture *f, const char *name) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", f->folder, name);
    assert_int_equal(mkfifo(path, 0600), 0);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void await_byte(int fd) {
    struct pollfd one = {fd, POLLIN, 0};
    char byte;
    assert_int_equal(poll(&one, 1, 30000), 1);
    assert_int_equal(read(fd, &byte, 1), 1);
}

static void test_all_succeed(void **state) {
    fixture *f = *state;
    muster_agent *agent = run_shell(f, 3, 0, "exit 0");
    assert_int_equal(end_of(agent).status, MUSTER_OK);
    for (uint32_t i = 0; i < 3; i++) {
        const muster_agent_worker worker = worker_of(agent, i);
        assert_int_equal(worker.state, MUSTER_WORKER_SUCCEEDED);
        assert_int_equal(worker.rank, i);
        assert_true(worker.pid > 0 && gone(worker.pid));
        assert_true(worker.ended_unix_ns >= worker.started_unix_ns);
    }
    muster_agent_worker none;
    assert_int_equal(muster_agent_get_worker(agent, 3, &none), MUSTER_E_NOT_FOUND);
    assert_int_equal(muster_agent_first_failure(agent, &none), MUSTER_E_NOT_FOUND);
    assert_int_equal(muster_agent_signal(agent, SIGUSR1), MUSTER_E_STALE);
    assert_int_equal(muster_agent_stop(agent, 0, 0), MUSTER_E_STALE);
    muster_agent_state now;
    assert_int_equal(muster_agent_get_state(agent, &now), MUSTER_OK);
    assert_int_equal(now.phase, MUSTER_AGENT_ENDED);
    assert_int_equal(now.running, 0);
    assert_int_equal(now.world_size, 3);
    assert_int_equal(await_entry(f, MUSTER_EVENT_AGENT, MUSTER_AGENT_STARTED, NULL).bytes, 1);
    for (int i = 0; i < 3; i++) await_entry(f, MUSTER_EVENT_AGENT, MUSTER_AGENT_WORKER_ENDED, NULL);
    assert_int_equal(await_entry(f, MUSTER_DONE_AGENT, 0, NULL).status, MUSTER_OK);
    muster_agent_release(agent);
}

static void test_the_environment_is_complete(void **state) {
    fixture *f = *state;
    setenv("RANK", "wrong", 1);
    setenv("KEPT", "as it is", 1);
    const char *const argv[] = {"sh", "-c", "env > $T/$LOCAL_RANK", NULL};
    muster_agent_config config = config_of(argv, 2);
    config.max_restarts = 4;
    config.run_id = "job 1";
    config.role = "trainer";
    config.local_address = "node7.example";
    muster_agent *agent = start(f, &config);
    assert_int_equal(end_of(agent).status, MUSTER_OK);
    muster_agent_state now;
    muster_agent_get_state(agent, &now);
    assert_string_equal(now.master_address, "node7.example");
    assert_in_range(now.master_port, 1024, 65535);
    char text[65536], port[64];
    read_text(f, "1", text, sizeof text);
    snprintf(port, sizeof port, "MASTER_PORT=%u", now.master_port);
    const char *const wanted[] = {"RANK=1",
                                  "WORLD_SIZE=2",
                                  "LOCAL_RANK=1",
                                  "LOCAL_WORLD_SIZE=2",
                                  "GROUP_RANK=0",
                                  "GROUP_WORLD_SIZE=1",
                                  "ROLE_RANK=1",
                                  "ROLE_WORLD_SIZE=2",
                                  "ROLE_NAME=trainer",
                                  "MASTER_ADDR=node7.example",
                                  port,
                                  "TORCHELASTIC_RESTART_COUNT=0",
                                  "TORCHELASTIC_MAX_RESTARTS=4",
                                  "TORCHELASTIC_RUN_ID=job 1",
                                  "TORCHELASTIC_ERROR_FILE=/",
                                  "MUSTER_RANK=1",
                                  "MUSTER_WORLD_SIZE=2",
                                  "MUSTER_MASTER_ADDR=node7.example",
                                  "MUSTER_RUN_ID=job 1",
                                  "MUSTER_RESTART_COUNT=0",
                                  "MUSTER_ROUND=1",
                                  "KEPT=as it is"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        char line[128];
        snprintf(line, sizeof line, "\n%s%s", wanted[i], wanted[i][strlen(wanted[i]) - 1] == '/' ? "" : "\n");
        if (!strstr(text, line) && strncmp(text, line + 1, strlen(line) - 1) != 0) fail_msg("no %s", wanted[i]);
    }
    assert_null(strstr(text, "wrong"));
    unsetenv("RANK");
    muster_agent_release(agent);
}

static void test_the_first_failure_is_told_and_the_rest_stopped(void **state) {
    fixture *f = *state;
    muster_agent *agent = run_shell(f, 3, 0, "[ $LOCAL_RANK = 1 ] && exit 7; exec sleep 1000");
    const muster_error error = end_of(agent);
    assert_int_equal(error.status, MUSTER_E_ABORTED);
    assert_int_equal(error.rank, 1);
    assert_int_equal(error.provider_code, 7);
    assert_string_equal(error.message, "worker 1 (rank 1) failed with exit code 7");
    assert_int_equal(failure_of(agent).local_rank, 1);
    assert_int_equal(failure_of(agent).exit.value, 7);
    for (uint32_t i = 0; i < 3; i += 2) {
        const muster_agent_worker worker = worker_of(agent, i);
        assert_int_equal(worker.state, MUSTER_WORKER_STOPPED);
        assert_int_equal(worker.exit.kind, MUSTER_PROCESS_KILLED);
        assert_int_equal(worker.exit.value, SIGTERM);
        assert_true(gone(worker.pid));
    }
    muster_error detail;
    assert_int_equal(await_entry(f, MUSTER_DONE_AGENT, 0, &detail).status, MUSTER_E_ABORTED);
    assert_string_equal(detail.message, error.message);
    size_t bytes = 1;
    assert_int_equal(muster_agent_failure_text(agent, NULL, 0, &bytes), MUSTER_OK);
    assert_int_equal(bytes, 0);
    muster_agent_release(agent);
}

static void test_a_signal_that_kills_is_told(void **state) {
    fixture *f = *state;
    muster_agent *agent = run_shell(f, 2, 0, "[ $RANK = 0 ] && kill -SEGV $$; exec sleep 1000");
    const muster_error error = end_of(agent);
    assert_int_equal(error.provider_code, -SIGSEGV);
    assert_string_equal(error.message, "worker 0 (rank 0) was killed by signal 11, SIGSEGV");
    muster_agent_release(agent);
}

static void test_a_worker_that_is_killed_is_told(void **state) {
    fixture *f = *state;
    muster_agent *agent = run_shell(f, 2, 0, "exec sleep 1000");
    await_entry(f, MUSTER_EVENT_AGENT, MUSTER_AGENT_STARTED, NULL);
    assert_int_equal(kill(worker_of(agent, 1).pid, SIGKILL), 0);
    const muster_error error = end_of(agent);
    assert_int_equal(error.provider_code, -SIGKILL);
    assert_int_equal(error.rank, 1);
    muster_agent_release(agent);
}

static void test_restarts_are_counted_and_end(void **state) {
    fixture *f = *state;
    muster_agent *agent =
        run_shell(f, 2, 2, "echo $TORCHELASTIC_RESTART_COUNT >> $T/$RANK; [ $RANK = 0 ] && exit 3; exec sleep 1000");
    muster_error detail;
    assert_int_equal(await_entry(f, MUSTER_EVENT_AGENT, MUSTER_AGENT_RESTARTING, &detail).bytes, 1);
    assert_string_equal(detail.message, "worker 0 (rank 0) failed with exit code 3");
    assert_int_equal(await_entry(f, MUSTER_EVENT_AGENT, MUSTER_AGENT_RESTARTING, NULL).bytes, 2);
    assert_int_equal(end_of(agent).provider_code, 3);
    char text[64];
    read_text(f, "0", text, sizeof text);
    assert_string_equal(text, "0\n1\n2\n");
    assert_int_equal(failure_of(agent).restarts, 2);
    assert_int_equal(failure_of(agent).round, 3);
    muster_agent_release(agent);
}

static void test_a_restart_may_help(void **state) {
    fixture *f = *state;
    muster_agent *agent = run_shell(f, 2, 5, "[ $MUSTER_RESTART_COUNT -lt 2 ] && exit 1; exit 0");
    assert_int_equal(end_of(agent).status, MUSTER_OK);
    muster_agent_state now;
    muster_agent_get_state(agent, &now);
    assert_int_equal(now.restarts, 2);
    assert_int_equal(now.round, 3);
    muster_agent_release(agent);
}

static void test_who_ignores_the_signal_is_killed(void **state) {
    fixture *f = *state;
    const int ready = make_fifo(f, "ready");
    const char *const argv[] = {
        "sh", "-c",
        "trap '' TERM; echo > $T/ready; [ $RANK = 1 ] && { read x < $T/go; exit 1; }; while :; do sleep 1000; done",
        NULL};
    const int go = make_fifo(f, "go");
    muster_agent_config config = config_of(argv, 2);
    config.grace_ns = 100 * ms;
    muster_agent *agent = start(f, &config);
    await_byte(ready);
    await_byte(ready);
    assert_int_equal(write(go, "\n", 1), 1);
    assert_int_equal(end_of(agent).rank, 1);
    assert_int_equal(worker_of(agent, 0).exit.value, SIGKILL);
    assert_int_equal(worker_of(agent, 0).state, MUSTER_WORKER_STOPPED);
    close(ready);
    close(go);
    muster_agent_release(agent);
}

static void test_who_is_suspended_hears_the_signal(void **state) {
    fixture *f = *state;
    muster_agent *agent =
        run_shell(f, 2, 0,
                  "[ $RANK = 0 ] && { echo $$ > $T/pid; kill -STOP $$; sleep 1000; }; "
                  "while ! grep -qs 'State:.T' /proc/$(cat $T/pid)/status; do sleep 0.01; done; exit 1");
    assert_int_equal(end_of(agent).rank, 1);
    assert_int_equal(worker_of(agent, 0).exit.value, SIGTERM); // and not SIGKILL, 30 seconds later
    muster_agent_release(agent);
}

static void test_what_a_worker_leaves_in_its_group_ends_with_it(void **state) {
    fixture *f = *state;
    muster_agent *agent = run_shell(f, 1, 0, "sleep 1000 & echo $! > $T/left; exit 0");
    assert_int_equal(end_of(agent).status, MUSTER_OK);
    char text[64];
    read_text(f, "left", text, sizeof text);
    const pid_t left = atoi(text);
    assert_true(left > 0);
    for (int i = 0; i < 3000 && !gone(left); i++) poll(NULL, 0, 10); // it is nobody's child here
    assert_true(gone(left));
    muster_agent_release(agent);
}

static void test_error_files_are_read_back(void **state) {
    fixture *f = *state;
    // Rank 1 writes down why it is about to fail, and hangs; rank 0 fails of that.
    const char *const script =
        "if [ $RANK = 1 ]; then\n"
        "printf '%s' '{\"message\": {\"message\": \"ValueError: \\u00fcber\\\\nall\", \"extraInfo\": "
        "{\"py_callstack\": "
        "\"Traceback:\\n  line 1\", \"timestamp\": \"1000000000\"}}}' > $TORCHELASTIC_ERROR_FILE\n"
        "exec sleep 1000; fi\n"
        "while ! [ -s $(dirname $MUSTER_ERROR_FILE)/../1/error.json ]; do sleep 0.01; done; exit 9";
    muster_agent *agent = run_shell(f, 2, 0, script);
    const muster_error error = end_of(agent);
    assert_int_equal(error.rank, 1);
    assert_string_equal(error.message, "worker 1 (rank 1) was killed by signal 15, SIGTERM: ValueError: \xc3\xbc"
                                       "ber\\nall");
    const muster_agent_worker first = failure_of(agent);
    assert_int_equal(first.failed_unix_ns, 1000000000 * second);
    assert_int_equal(worker_of(agent, 0).state, MUSTER_WORKER_FAILED);
    char text[64];
    size_t bytes;
    assert_int_equal(muster_agent_failure_text(agent, text, 3, &bytes), MUSTER_E_LIMIT);
    assert_int_equal(bytes, strlen("Traceback:\n  line 1"));
    assert_int_equal(muster_agent_failure_text(agent, text, sizeof text, &bytes), MUSTER_OK);
    assert_memory_equal(text, "Traceback:\n  line 1", bytes);
    muster_agent_release(agent);
}

static void test_temporary_files_go_and_others_stay(void **state) {
    fixture *f = *state;
    const char *const argv[] = {"sh", "-c",
                                "echo out; echo err >&2; dirname $MUSTER_ERROR_FILE > $T/where; pwd > $T/pwd", NULL};
    muster_agent_config config = config_of(argv, 1);
    char text[512];
    muster_agent *agent = start(f, &config);
    assert_int_equal(end_of(agent).status, MUSTER_OK);
    read_text(f, "where", text, sizeof text);
    text[strcspn(text, "\n")] = '\0';
    assert_int_equal(access(text, F_OK), -1);
    muster_agent_release(agent);

    char logs[128];
    snprintf(logs, sizeof logs, "%s/new/logs", f->folder);
    config.log_dir = logs;
    config.run_id = "a/b";
    config.filed = MUSTER_AGENT_STDOUT | MUSTER_AGENT_STDERR;
    config.directory = "/";
    agent = start(f, &config);
    assert_int_equal(end_of(agent).status, MUSTER_OK);
    const muster_agent_worker worker = worker_of(agent, 0);
    assert_int_equal(strncmp(worker.directory, logs, strlen(logs)), 0);
    assert_non_null(strstr(worker.directory, "/a_b_"));
    assert_non_null(strstr(worker.directory, "/attempt_0/0"));
    char name[512];
    snprintf(name, sizeof name, "%s/stdout.log", worker.directory + strlen(f->folder));
    read_text(f, name, text, sizeof text);
    assert_string_equal(text, "out\n");
    snprintf(name, sizeof name, "%s/stderr.log", worker.directory + strlen(f->folder));
    read_text(f, name, text, sizeof text);
    assert_string_equal(text, "err\n");
    read_text(f, "pwd", text, sizeof text);
    assert_string_equal(text, "/\n");
    muster_agent_release(agent);
}

static void test_lines_are_shown_behind_the_name_of_the_worker(void **state) {
    fixture *f = *state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    const char *const argv[] = {"sh", "-c",
                                "[ $RANK = 0 ] && printf 'one\\ntwo\\nrest' || { printf 'three\\n\\n' >&2; }", NULL};
    muster_agent_config config = config_of(argv, 2);
    char logs[128];
    snprintf(logs, sizeof logs, "%s/logs", f->folder);
    config.log_dir = logs;
    config.filed = MUSTER_AGENT_STDOUT; // as well as shown
    config.shown = MUSTER_AGENT_STDOUT | MUSTER_AGENT_STDERR;
    config.out_fd_plus_one = config.err_fd_plus_one = ends[1] + 1;
    muster_agent *agent = start(f, &config);
    close(ends[1]); // it has its own
    assert_int_equal(end_of(agent).status, MUSTER_OK);
    assert_int_equal(muster_agent_flush(agent, 30 * second), MUSTER_OK);
    char name[512], text[512];
    snprintf(name, sizeof name, "%s/stdout.log", worker_of(agent, 0).directory + strlen(f->folder));
    muster_agent_release(agent);
    size_t used = 0;
    ssize_t n;
    while ((n = read(ends[0], text + used, sizeof text - 1 - used)) > 0)
        used += (size_t)n; // up to the last writer's end
    text[used] = '\0';
    close(ends[0]);
    assert_non_null(strstr(text, "[default0]: one\n[default0]: two\n"));
    assert_non_null(strstr(text, "[default0]: rest\n"));
    assert_non_null(strstr(text, "[default1]: three\n[default1]: \n"));
    assert_int_equal(used,
                     strlen("[default0]: one\n[default0]: two\n[default0]: rest\n[default1]: three\n[default1]: \n"));
    read_text(f, name, text, sizeof text);
    assert_string_equal(text, "one\ntwo\nrest");
}

// The outputs of some workers go elsewhere than those of the others.
static void test_workers_may_have_outputs_of_their_own(void **state) {
    fixture *f = *state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    const char *const argv[] = {"sh", "-c", "echo out$RANK; echo err$RANK >&2", NULL};
    const muster_agent_outputs own[] = {{.local_rank = 2, .filed = MUSTER_AGENT_STDOUT, .shown = MUSTER_AGENT_STDERR},
                                        {.local_rank = 0, .filed = MUSTER_AGENT_STDERR, .shown = MUSTER_AGENT_STDERR}};
    muster_agent_config config = config_of(argv, 3);
    char logs[128], name[512], text[512];
    snprintf(logs, sizeof logs, "%s/own", f->folder);
    config.log_dir = logs;
    config.shown = MUSTER_AGENT_STDOUT;
    config.filed = MUSTER_AGENT_STDERR;
    config.outputs = own;
    config.output_count = 2;
    config.out_fd_plus_one = config.err_fd_plus_one = ends[1] + 1;
    muster_agent *agent = start(f, &config);
    close(ends[1]);
    assert_int_equal(end_of(agent).status, MUSTER_OK);
    assert_int_equal(muster_agent_flush(agent, 30 * second), MUSTER_OK);
    static const struct {
        uint32_t worker;
        const char *file, *text; // NULL: there is no such file
    } files[] = {{0, "stdout", NULL},     {0, "stderr", "err0\n"}, {1, "stdout", NULL},
                 {1, "stderr", "err1\n"}, {2, "stdout", "out2\n"}, {2, "stderr", NULL}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(name, sizeof name, "%s/%s.log", worker_of(agent, files[i].worker).directory, files[i].file);
        assert_int_equal(access(name, F_OK), files[i].text ? 0 : -1);
        if (!files[i].text) continue;
        read_text(f, name + strlen(f->folder), text, sizeof text);
        assert_string_equal(text, files[i].text);
    }
    muster_agent_release(agent);
    size_t used = 0;
    for (ssize_t n; (n = read(ends[0], text + used, sizeof text - 1 - used)) > 0;) used += (size_t)n;
    text[used] = '\0';
    close(ends[0]);
    assert_non_null(strstr(text, "[default0]: err0\n"));
    assert_non_null(strstr(text, "[default1]: out1\n"));
    assert_non_null(strstr(text, "[default2]: err2\n"));
    assert_int_equal(used, 3 * strlen("[default0]: err0\n")); // worker 0's own output is this process's
}

typedef struct flood {
    int fd;
    uint64_t bytes, lines, wrong;
} flood;

static void *drink(void *given) {
    flood *f = given;
    static char text[1 << 16];
    char first = '\n';
    for (ssize_t n; (n = read(f->fd, text, sizeof text)) > 0;) {
        for (ssize_t i = 0; i < n; i++) {
            if (first == '\n' && text[i] != '[') f->wrong++;
            f->lines += text[i] == '\n';
            first = text[i];
        }
        f->bytes += (uint64_t)n;
    }
    return NULL;
}

// What is written is neither lost nor kept: a reader that is slow slows the workers, and all of it arrives.
static void test_a_flood_of_output_arrives_whole(void **state) {
    fixture *f = *state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    const char *const argv[] = {"sh", "-c", "yes 0123456789012345678901234567890123456789 | head -n 200000", NULL};
    muster_agent_config config = config_of(argv, 4);
    config.shown = MUSTER_AGENT_STDOUT;
    config.out_fd_plus_one = ends[1] + 1;
    muster_agent *agent = start(f, &config);
    close(ends[1]);
    assert_int_equal(muster_agent_wait(agent, 50 * ms, NULL), MUSTER_TIMEOUT); // nobody reads: they cannot end
    assert_int_equal(muster_agent_flush(agent, 0), MUSTER_OK);                 // none has ended
    flood all = {ends[0], 0, 0, 0};
    pthread_t reader;
    pthread_create(&reader, NULL, drink, &all);
    assert_int_equal(end_of(agent).status, MUSTER_OK);
    assert_int_equal(muster_agent_flush(agent, -1), MUSTER_OK);
    muster_agent_release(agent);
    pthread_join(reader, NULL);
    close(ends[0]);
    assert_int_equal(all.lines, 4 * 200000);
    assert_int_equal(all.wrong, 0);
    assert_int_equal(all.bytes, 4 * 200000 * (strlen("[default0]: ") + 41));
}

// Whoever reads the lines is gone: the workers go on.
static void test_lines_that_nobody_takes_do_not_stop_workers(void **state) {
    fixture *f = *state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    const char *const argv[] = {"sh", "-c", "yes | head -n 100000", NULL};
    muster_agent_config config = config_of(argv, 1);
    config.shown = MUSTER_AGENT_STDOUT;
    config.out_fd_plus_one = ends[1] + 1;
    muster_agent *agent = start(f, &config);
    close(ends[1]);
    close(ends[0]);
    assert_int_equal(end_of(agent).status, MUSTER_OK);
    assert_int_equal(muster_agent_flush(agent, 30 * second), MUSTER_OK);
    muster_agent_release(agent);
}

static void test_signals_are_passed_on(void **state) {
    fixture *f = *state;
    const int ready = make_fifo(f, "ready");
    muster_agent *agent = run_shell(f, 2, 0, "trap 'exit 0' USR1; echo > $T/ready; while :; do sleep 0.01; done");
    await_byte(ready);
    await_byte(ready);
    assert_int_equal(muster_agent_signal(agent, 0), MUSTER_E_ARG);
    assert_int_equal(muster_agent_signal(agent, 65), MUSTER_E_ARG);
    assert_int_equal(muster_agent_signal(agent, SIGUSR1), MUSTER_OK);
    assert_int_equal(end_of(agent).status, MUSTER_OK);
    close(ready);
    muster_agent_release(agent);
}

static void test_stop_ends_it_and_a_second_one_may_be_shorter(void **state) {
    fixture *f = *state;
    const int ready = make_fifo(f, "ready");
    muster_agent *agent =
        run_shell(f, 2, 9, "trap 'echo > $T/ready' INT; echo > $T/ready; while :; do sleep 0.02; done");
    await_byte(ready);
    await_byte(ready);
    assert_int_equal(muster_agent_stop(agent, 65, 0), MUSTER_E_ARG);
    assert_int_equal(muster_agent_stop(agent, SIGINT, 1000 * second), MUSTER_OK);
    await_byte(ready);
    await_byte(ready);
    assert_int_equal(muster_agent_wait(agent, 0, NULL), MUSTER_AGAIN);
    muster_agent_state now;
    muster_agent_get_state(agent, &now);
    assert_int_equal(now.phase, MUSTER_AGENT_STOPPING);
    assert_int_equal(muster_agent_stop(agent, SIGINT, 0), MUSTER_OK);
    const muster_error error = end_of(agent);
    assert_int_equal(error.status, MUSTER_E_CANCELED);
    assert_int_equal(worker_of(agent, 0).exit.value, SIGKILL);
    close(ready);
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

static void test_a_program_that_is_not_there_is_told(void **state) {
    fixture *f = *state;
    const char *const argv[] = {"/nonexistent/program", NULL};
    muster_agent_config config = config_of(argv, 2);
    config.max_restarts = 5;
    muster_agent *agent = start(f, &config);
    const muster_error error = end_of(agent);
    assert_int_equal(error.status, MUSTER_E_NOT_FOUND);
    assert_non_null(strstr(error.message, "/nonexistent/program"));
    muster_agent_release(agent);
}

static void test_wrong_values_are_named(void **state) {
    fixture *f = *state;
    const char *const argv[] = {"true", NULL};
    const char *const nothing[] = {NULL};
    char file[128];
    snprintf(file, sizeof file, "%s/file", f->folder);
    close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    const muster_agent_config good = config_of(argv, 1);
    static const muster_agent_outputs others[] = {{.local_rank = 1}, {.local_rank = 0}, {.local_rank = 0}};
    static const muster_agent_outputs strange[] = {{.shown = 4}, {.reserved = 1}, {.filed = MUSTER_AGENT_STDERR}};
    enum { cases = 18 };
    muster_agent_config bad[cases];
    for (size_t i = 0; i < cases; i++) bad[i] = good;
    bad[0].argv = nothing;
    bad[1].worker_count = 1025;
    bad[2].flags = 2;
    bad[3].filed = MUSTER_AGENT_STDOUT; // without a log_dir
    bad[4].shown = 4;
    bad[5].grace_ns = -1;
    bad[6].run_id = "";
    bad[7].role = "a\nb";
    bad[8].local_address = "";
    bad[9].shown = MUSTER_AGENT_STDOUT, bad[9].out_fd_plus_one = -1;
    bad[10].reserved[1] = 1;
    bad[11].log_dir = file;
    bad[12].outputs = others, bad[12].output_count = 1;
    bad[13].outputs = others, bad[13].output_count = 3, bad[13].worker_count = 3;
    bad[14].output_count = 1;
    for (size_t i = 0; i < 3; i++) bad[15 + i].outputs = &strange[i], bad[15 + i].output_count = 1;
    static const char *const words[cases] = {"argv",     "worker_count", "flags",    "log_dir",       "shown",
                                             "grace_ns", "run_id",       "role",     "local_address", "out_fd_plus_one",
                                             "reserved", "/file",        "worker 1", "twice",         "outputs",
                                             "shown",    "reserved",     "log_dir"};
    for (size_t i = 0; i < cases; i++) {
        muster_agent *agent = (muster_agent *)1;
        muster_error error = {0};
        const muster_status status = muster_agent_start(f->context, &bad[i], f->queue, 0, &agent, &error);
        assert_int_equal(status, i == 11 ? MUSTER_E_EXISTS : MUSTER_E_ARG);
        if (!strstr(error.message, words[i])) fail_msg("case %zu: %s", i, error.message);
        assert_null(agent);
    }
    muster_agent *agent;
    assert_int_equal(muster_agent_start(f->context, &good, NULL, 0, &agent, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_agent_start(f->context, NULL, f->queue, 0, &agent, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_agent_wait(NULL, 0, NULL), MUSTER_E_ARG);
    muster_agent_release(NULL);
}

// Its own thread drives the engine: the host need not, and may.
static void test_an_agent_in_a_context_without_a_thread(void **state) {
    fixture outside = *(fixture *)*state, *f = &outside;
    muster_context_config external;
    muster_config_init(&external, sizeof external);
    external.flags = MUSTER_CONTEXT_EXTERNAL;
    assert_int_equal(muster_context_create(&external, &f->context, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(f->context, NULL, &f->queue, NULL), MUSTER_OK);
    /* The host waits in a call, */
    muster_agent *agent = run_shell(f, 2, 1, "[ $TORCHELASTIC_RESTART_COUNT = 1 ] || exit 3");
    assert_int_equal(end_of(agent).status, MUSTER_OK);
    assert_int_equal(worker_of(agent, 1).state, MUSTER_WORKER_SUCCEEDED);
    muster_agent_release(agent);
    muster_completion entry;
    while (muster_queue_next(f->queue, 0, &entry, NULL) == MUSTER_OK) {
    }
    /* or for the queue, beside another node, */
    const char *const argv[] = {"sh", "-c", "[ $WORLD_SIZE = 2 ]", NULL};
    muster_agent_config config = config_of(argv, 1);
    muster_rendezvous_config meeting;
    muster_config_init(&meeting, sizeof meeting);
    meeting.run_id = "job";
    meeting.run_id_bytes = 3;
    meeting.url = "memory:meeting";
    meeting.url_bytes = 14;
    meeting.min = meeting.max = 2;
    config.rendezvous = &meeting;
    muster_agent *nodes[] = {start(f, &config), start(f, &config)};
    for (int ends = 0; ends < 2;) {
        muster_error error = {0};
        assert_int_equal(muster_queue_next(f->queue, 30 * second, &entry, &error), MUSTER_OK);
        if (entry.kind != MUSTER_DONE_AGENT) continue;
        if (entry.status != MUSTER_OK) fail_msg("%s", error.message);
        ends++;
    }
    for (int i = 0; i < 2; i++) muster_agent_release(nodes[i]);
    /* or not at all. */
    const int done = make_fifo(f, "done");
    agent = run_shell(f, 1, 1, "[ $TORCHELASTIC_RESTART_COUNT = 0 ] && exit 1; echo x >$T/done; exec sleep 1000");
    char mark;
    assert_int_equal(read(done, &mark, 1), 1);
    close(done);
    assert_int_equal(muster_agent_stop(agent, SIGKILL, 0), MUSTER_OK);
    assert_int_equal(end_of(agent).status, MUSTER_E_CANCELED);
    muster_agent_release(agent);
    muster_queue_release(f->queue);
    assert_int_equal(muster_context_close(f->context, 30 * second), MUSTER_OK);
    muster_context_release(f->context);
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
        for (int round = 0; round < 2000 && !gone(pid); round++) poll(NULL, 0, 10); // they are nobody's children here
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
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(test_all_succeed),
        TEST(test_the_environment_is_complete),
        TEST(test_the_first_failure_is_told_and_the_rest_stopped),
        TEST(test_a_signal_that_kills_is_told),
        TEST(test_a_worker_that_is_killed_is_told),
        TEST(test_restarts_are_counted_and_end),
        TEST(test_a_restart_may_help),
        TEST(test_who_ignores_the_signal_is_killed),
        TEST(test_who_is_suspended_hears_the_signal),
        TEST(test_what_a_worker_leaves_in_its_group_ends_with_it),
        TEST(test_error_files_are_read_back),
        TEST(test_temporary_files_go_and_others_stay),
        TEST(test_lines_are_shown_behind_the_name_of_the_worker),
        TEST(test_workers_may_have_outputs_of_their_own),
        TEST(test_a_flood_of_output_arrives_whole),
        TEST(test_lines_that_nobody_takes_do_not_stop_workers),
        TEST(test_signals_are_passed_on),
        TEST(test_stop_ends_it_and_a_second_one_may_be_shorter),
        TEST(test_release_stops_the_workers),
        TEST(test_a_context_that_closes_stops_the_workers),
        TEST(test_a_program_that_is_not_there_is_told),
        TEST(test_wrong_values_are_named),
        TEST(test_an_agent_in_a_context_without_a_thread),
        TEST(test_a_killed_agent_leaves_no_workers),
        TEST(test_a_killed_guard_is_replaced),
        TEST(test_handles_of_the_parent_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
