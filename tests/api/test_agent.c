// SPDX-License-Identifier: MIT
// The agent and one group of workers: real programs that succeed, fail, hang and are killed.
// ctest: quick timeout=60
#include "agent_workers.h"

#include <signal.h>

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
    static const muster_agent_outputs strange[] = {
        {.console_outputs = 4}, {.discarded_outputs = 4}, {.log_outputs = MUSTER_AGENT_STDERR}};
    enum { cases = 18 };
    muster_agent_config bad[cases];
    for (size_t i = 0; i < cases; i++) bad[i] = good;
    bad[0].argv = nothing;
    bad[1].worker_count = 1025;
    bad[2].flags = 4;
    bad[3].log_outputs = MUSTER_AGENT_STDOUT; // without a log_dir
    bad[4].console_outputs = 4;
    bad[5].grace_ns = -1;
    bad[6].run_id = "";
    bad[7].role = "a\nb";
    bad[8].local_address = "";
    bad[9].console_outputs = MUSTER_AGENT_STDOUT, bad[9].out_fd_plus_one = -1;
    bad[10].reserved[1] = 1;
    bad[11].log_dir = file;
    bad[12].outputs = others, bad[12].output_count = 1;
    bad[13].outputs = others, bad[13].output_count = 3, bad[13].worker_count = 3;
    bad[14].output_count = 1;
    for (size_t i = 0; i < 3; i++) bad[15 + i].outputs = &strange[i], bad[15 + i].output_count = 1;
    static const char *const words[cases] = {
        "argv",     "worker_count", "flags",         "log_dir",         "console_outputs",   "grace_ns",
        "run_id",   "role",         "local_address", "out_fd_plus_one", "reserved",          "/file",
        "worker 1", "twice",        "outputs",       "console_outputs", "discarded_outputs", "log_dir"};
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

int main(int count, char **arguments) {
    if (count > 1) cmocka_set_test_filter(arguments[1]);
    const struct CMUnitTest tests[] = {
        TEST(test_all_succeed),
        TEST(test_the_environment_is_complete),
        TEST(test_the_first_failure_is_told_and_the_rest_stopped),
        TEST(test_a_signal_that_kills_is_told),
        TEST(test_a_worker_that_is_killed_is_told),
        TEST(test_restarts_are_counted_and_end),
        TEST(test_a_restart_may_help),
        TEST(test_who_ignores_the_signal_is_killed),
        TEST(test_who_is_suspended_hears_the_signal),
        TEST(test_signals_are_passed_on),
        TEST(test_stop_ends_it_and_a_second_one_may_be_shorter),
        TEST(test_a_program_that_is_not_there_is_told),
        TEST(test_wrong_values_are_named),
        TEST(test_an_agent_in_a_context_without_a_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
