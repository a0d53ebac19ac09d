// SPDX-License-Identifier: MIT
// Traces: what is written while one is on, by many threads at once while others save; rings that overflow; the clocks
// of the members of a group; files that cannot be written. ctest: quick timeout=60
#include "group_run.h"

#include <muster/trace.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

static char folder[] = "/tmp/muster-trace.XXXXXX";

static const char *path_of(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}
static muster_status save(const char *path) {
    return muster_trace_save(path, strlen(path), NULL);
}
static void start(uint32_t events) {
    const muster_trace_config config = {
        .struct_size = sizeof config, .events = events, .name = "a test", .name_bytes = 6};
    assert_int_equal(muster_trace_start(&config, NULL), MUSTER_OK);
}
// What `muster trace` says of a file: NULL if it is no trace.
static char *summary_of(const char *path) {
    static char text[1 << 16];
    char command[1200];
    const char *const library = getenv("MUSTER_LIBRARY"); // the command is in bin beside it
    assert_non_null(library);
    const int folder_bytes = (int)(strrchr(library, '/') - library);
    snprintf(command, sizeof command, "%.*s/bin/muster trace %s 2>&1", folder_bytes, library, path);
    FILE *const output = popen(command, "r");
    text[fread(text, 1, sizeof text - 1, output)] = '\0';
    return pclose(output) == 0 ? text : NULL;
}
static void assert_has(const char *text, const char *part) {
    assert_non_null(text);
    if (strstr(text, part) == NULL) fail_msg("no '%s' in:\n%s", part, text);
}

static void test_spans_and_marks(void **state) {
    (void)state;
    muster_trace_state seen;
    muster_trace_begin("before", 6); // no effect
    muster_trace_end();
    assert_int_equal(muster_trace_get_state(NULL), MUSTER_E_ARG);
    assert_int_equal(muster_trace_get_state(&seen), MUSTER_OK);
    assert_int_equal(seen.is_on, 0);
    assert_int_equal(save(path_of("none")), MUSTER_E_NOT_FOUND);
    start(0);
    assert_int_equal(muster_trace_start(NULL, NULL), MUSTER_E_EXISTS);
    muster_trace_begin("outer", 5);
    for (int i = 0; i < 10; i++) {
        muster_trace_begin("inner, of a name that is longer than its room", 45);
        muster_trace_end();
    }
    muster_trace_mark("now", 3);
    muster_trace_end();
    assert_int_equal(muster_trace_get_state(&seen), MUSTER_OK);
    assert_int_equal(seen.events, 23);
    assert_int_equal(seen.threads, 1);
    assert_int_equal(seen.is_on, 1);
    assert_int_equal(seen.offset_error_ns, -1);
    muster_trace_stop();
    muster_trace_mark("after", 5);
    assert_int_equal(save(path_of("spans")), MUSTER_OK);
    const char *const text = summary_of(path_of("spans"));
    assert_has(text, "a test, process ");
    assert_has(text, "1 threads, 23 events");
    assert_has(text, "host outer                                        1 times");
    assert_has(text, "host inner, of a name that is longer             10 times");
    assert_has(text, "host now                                          1 times");
    assert_null(strstr(text, "before"));
    assert_null(strstr(text, "after"));
}

// No check: what an event costs, for docs/guide/trace.md.
static void test_cost_of_an_event(void **state) {
    (void)state;
    enum { marks = 1000000 };
    for (int is_on = 0; is_on < 2; is_on++) {
        struct timespec from, to;
        if (is_on) start(0);
        muster_trace_mark("mark", 4);
        clock_gettime(CLOCK_MONOTONIC, &from);
        for (int i = 0; i < marks; i++) muster_trace_mark("mark", 4);
        clock_gettime(CLOCK_MONOTONIC, &to);
        const double ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
        printf("an event, the trace %s: %.1f ns\n", is_on ? "on" : "off", ns / marks);
    }
    muster_trace_stop();
}

static void test_a_ring_keeps_the_newest(void **state) {
    (void)state;
    start(256);
    for (int i = 0; i < 1000; i++) {
        char name[32];
        snprintf(name, sizeof name, "mark %d", i);
        muster_trace_mark(name, strlen(name));
    }
    muster_trace_begin("whole", 5);
    muster_trace_end();
    assert_int_equal(save(path_of("ring")), MUSTER_OK);
    muster_trace_stop();
    const char *const text = summary_of(path_of("ring"));
    assert_has(text, "255 events"); // one less than the room: that could be overwritten now
    assert_has(text, "host mark 999 ");
    assert_has(text, "host whole ");
    assert_null(strstr(text, "host mark 100 "));
}

static atomic_bool over;
static void *write_events(void *argument) {
    const int number = *(int *)argument;
    char name[32];
    while (!atomic_load(&over)) {
        snprintf(name, sizeof name, "thread %d", number);
        muster_trace_begin(name, strlen(name));
        muster_trace_mark(name, strlen(name));
        muster_trace_end();
    }
    return NULL;
}
static void test_threads_write_while_others_save(void **state) {
    (void)state;
    for (int round = 0; round < 20; round++) {
        pthread_t threads[4];
        int numbers[4];
        start(256);
        atomic_store(&over, false);
        for (int i = 0; i < 4; i++) {
            numbers[i] = i;
            assert_int_equal(pthread_create(&threads[i], NULL, write_events, &numbers[i]), 0);
        }
        muster_trace_state seen = {0};
        while (seen.threads < 4) { // all have begun
            assert_int_equal(muster_trace_get_state(&seen), MUSTER_OK);
            sched_yield();
        }
        for (int i = 0; i < 20; i++) assert_int_equal(save(path_of("while")), MUSTER_OK);
        atomic_store(&over, true);
        for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
        assert_int_equal(save(path_of("while")), MUSTER_OK);
        const char *const text = summary_of(path_of("while"));
        assert_has(text, "host thread 3 "); // each event is that of its thread, whole
        for (const char *line = strstr(text, "host thread "); line != NULL; line = strstr(line + 1, "host thread "))
            assert_true(line[12] >= '0' && line[12] <= '3' && line[13] == ' ');
        muster_trace_stop();
    }
}

static void take_part_in_alignment(member *me) {
    muster_trace_state seen;
    muster_error error = {0};
    CHECK_OK(muster_trace_align(me->group, 30 * second, &seen, &error), error);
    CHECK(muster_group_barrier(me->group, 30 * second, NULL) == MUSTER_OK);
    // The members are threads of one process, so the true offset is 0, and each sets that of the process.
    CHECK(seen.offset_error_ns >= 0 && seen.offset_error_ns < 5 * second);
    CHECK(seen.offset_ns <= seen.offset_error_ns && -seen.offset_ns <= seen.offset_error_ns);
}
static void test_clocks_of_a_group(void **state) {
    (void)state;
    assert_int_equal(muster_trace_align(NULL, -1, NULL, NULL), MUSTER_E_ARG);
    start(0);
    run_members(3, &(member){0}, take_part_in_alignment);
    assert_int_equal(save(path_of("group")), MUSTER_OK);
    muster_trace_stop();
    const char *const text = summary_of(path_of("group"));
    assert_has(text, "group all-gather ");
    assert_has(text, "group barrier ");
}

static void test_files_that_cannot_be_written(void **state) {
    (void)state;
    muster_error error;
    start(0);
    muster_trace_mark("kept", 4);
    assert_int_equal(muster_trace_save(NULL, 3, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_trace_save("", 0, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_trace_save("a\0b", 3, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_trace_save("/no/such/folder", 15, &error), MUSTER_E_SYSTEM);
    assert_int_equal(error.os_errno, ENOENT);
    assert_has(error.message, "/no/such/folder");
    assert_int_equal(save(path_of("full")), MUSTER_OK);
    // No room: the file of before stays, and nothing else.
    struct rlimit before, little;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    little = (struct rlimit){.rlim_cur = 100, .rlim_max = before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    muster_trace_mark("lost", 4);
    assert_int_equal(save(path_of("full")), MUSTER_E_SYSTEM);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(access(path_of("full.part"), F_OK), -1);
    // The trace is that of this process, and not of a child.
    const pid_t child = fork();
    if (child == 0) _exit(save(path_of("full")) == MUSTER_E_NOT_FOUND ? 0 : 1);
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    const char *const text = summary_of(path_of("full"));
    assert_has(text, "host kept ");
    assert_null(strstr(text, "host lost "));
    muster_trace_stop();
    const int fd = open(path_of("broken"), O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(fd, "\x0a\xff\x01", 3), 3);
    close(fd);
    assert_null(summary_of(path_of("broken")));
    muster_trace_config wrong = {.struct_size = sizeof wrong, .events = 10};
    assert_int_equal(muster_trace_start(&wrong, &error), MUSTER_E_ARG);
    assert_has(error.message, "events is 10");
    wrong = (muster_trace_config){.struct_size = sizeof wrong, .name = "", .name_bytes = 300};
    assert_int_equal(muster_trace_start(&wrong, NULL), MUSTER_E_ARG);
}

int main(void) {
    if (mkdtemp(folder) == NULL) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spans_and_marks),         cmocka_unit_test(test_cost_of_an_event),
        cmocka_unit_test(test_a_ring_keeps_the_newest), cmocka_unit_test(test_threads_write_while_others_save),
        cmocka_unit_test(test_clocks_of_a_group),       cmocka_unit_test(test_files_that_cannot_be_written),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[600];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) != 0 || failed;
}
