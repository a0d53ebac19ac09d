// SPDX-License-Identifier: MIT
// What the workers of an agent leave and say: error files, temporary files, lines, floods of them.
// ctest: quick timeout=60
#include "agent_workers.h"

#include <dirent.h>
#include <pthread.h>

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
    config.log_outputs = MUSTER_AGENT_STDOUT | MUSTER_AGENT_STDERR;
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
    config.log_outputs = MUSTER_AGENT_STDOUT; // as well as shown
    config.console_outputs = MUSTER_AGENT_STDOUT | MUSTER_AGENT_STDERR;
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
    const muster_agent_outputs own[] = {
        {.local_rank = 2, .log_outputs = MUSTER_AGENT_STDOUT, .console_outputs = MUSTER_AGENT_STDERR},
        {.local_rank = 0, .log_outputs = MUSTER_AGENT_STDERR, .console_outputs = MUSTER_AGENT_STDERR}};
    muster_agent_config config = config_of(argv, 3);
    char logs[128], name[512], text[512];
    snprintf(logs, sizeof logs, "%s/own", f->folder);
    config.log_dir = logs;
    config.console_outputs = MUSTER_AGENT_STDOUT;
    config.log_outputs = MUSTER_AGENT_STDERR;
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
    config.console_outputs = MUSTER_AGENT_STDOUT;
    config.out_fd_plus_one = ends[1] + 1;
    muster_agent *agent = start(f, &config);
    close(ends[1]);
    assert_int_equal(muster_agent_wait(agent, 50 * ms, NULL), MUSTER_TIMEOUT); // there is no reader: they cannot end
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

// The reader of the lines is gone: the workers continue.
static void test_lines_that_nobody_takes_do_not_stop_workers(void **state) {
    fixture *f = *state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    const char *const argv[] = {"sh", "-c", "yes | head -n 100000", NULL};
    muster_agent_config config = config_of(argv, 1);
    config.console_outputs = MUSTER_AGENT_STDOUT;
    config.out_fd_plus_one = ends[1] + 1;
    muster_agent *agent = start(f, &config);
    close(ends[1]);
    close(ends[0]);
    assert_int_equal(end_of(agent).status, MUSTER_OK);
    assert_int_equal(muster_agent_flush(agent, 30 * second), MUSTER_OK);
    muster_agent_release(agent);
}

int main(int count, char **arguments) {
    if (count > 1) cmocka_set_test_filter(arguments[1]);
    const struct CMUnitTest tests[] = {
        TEST(test_error_files_are_read_back),
        TEST(test_temporary_files_go_and_others_stay),
        TEST(test_lines_are_shown_behind_the_name_of_the_worker),
        TEST(test_workers_may_have_outputs_of_their_own),
        TEST(test_a_flood_of_output_arrives_whole),
        TEST(test_lines_that_nobody_takes_do_not_stop_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
