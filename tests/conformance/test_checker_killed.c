// SPDX-License-Identifier: MIT
// kill -9 of a running transport check: nothing it started lives on, whatever the state of its peer processes.
// ctest: full timeout=60
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

extern char **environ;
static const char *address;

enum { longest_s = 5, word_bytes = 512 };

/* Starts the checker, and gives what it prints. */
static pid_t start(FILE **out_text) {
    int ends[2];
    pid_t checker;
    char *arguments[] = {
        (char *)getenv("MUSTER_CHECKER"), "transport-check", "--max-bytes", "1m", (char *)address, NULL};
    posix_spawn_file_actions_t actions;
    assert_non_null(arguments[0]);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    assert_int_equal(posix_spawn(&checker, arguments[0], &actions, NULL, arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    *out_text = fdopen(ends[0], "r");
    return checker;
}

static void read_until(FILE *text, const char *what) {
    char line[word_bytes];
    do assert_non_null(fgets(line, sizeof line, text));
    while (strstr(line, what) == NULL);
}

static pid_t first_child_of(pid_t parent) {
    char path[64], list[word_bytes] = "";
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", parent, parent);
    FILE *file = fopen(path, "r");
    if (file == NULL) return 0; /* a kernel that does not tell */
    const pid_t child = fgets(list, sizeof list, file) != NULL ? (pid_t)strtol(list, NULL, 10) : 0;
    fclose(file);
    return child;
}

static void too_late(int signal) {
    (void)signal;
}

/* This process is the reaper of all that descends from it: when it has no child left, nobody lives. */
static void expect_all_gone(void) {
    const struct sigaction action = {.sa_handler = too_late}; /* no SA_RESTART: waitpid() ends */
    sigaction(SIGALRM, &action, NULL);
    alarm(longest_s);
    pid_t ended;
    do ended = waitpid(-1, NULL, 0);
    while (ended > 0);
    const int why = errno;
    alarm(0);
    for (pid_t left; (left = first_child_of(getpid())) != 0;) { /* this test leaves nobody behind either */
        kill(left, SIGKILL);
        waitpid(left, NULL, 0);
    }
    assert_int_equal(why, ECHILD);
}

static void test_a_checker_that_has_just_started(void **state) {
    (void)state;
    FILE *text;
    const pid_t checker = start(&text);
    read_until(text, "TAP version"); /* its peer is about to start */
    kill(checker, SIGKILL);
    expect_all_gone();
    fclose(text);
}

static void test_a_checker_in_the_middle_of_its_cases(void **state) {
    (void)state;
    FILE *text;
    const pid_t checker = start(&text);
    read_until(text, "ok 3 ");
    kill(checker, SIGKILL);
    expect_all_gone();
    fclose(text);
}

/* Stands for every peer that can do nothing about its own end any more. */
static void test_a_checker_with_a_stopped_peer(void **state) {
    (void)state;
    FILE *text;
    const pid_t checker = start(&text);
    read_until(text, "the peer listens at");
    const pid_t peer = first_child_of(checker);
    if (peer == 0) {
        kill(checker, SIGKILL);
        expect_all_gone();
        fclose(text);
        skip();
    }
    kill(peer, SIGSTOP);
    kill(checker, SIGKILL);
    expect_all_gone();
    fclose(text);
}

int main(int count, char **arguments) {
    address = count > 1 ? arguments[1] : "tcp://127.0.0.1:0";
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_checker_that_has_just_started),
        cmocka_unit_test(test_a_checker_in_the_middle_of_its_cases),
        cmocka_unit_test(test_a_checker_with_a_stopped_peer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
