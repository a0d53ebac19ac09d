// SPDX-License-Identifier: MIT
// What the C hosts share: scenarios that run in a process of their own, each with a time limit, and checks in them.
#ifndef MUSTER_TESTS_GUEST_H
#define MUSTER_TESTS_GUEST_H

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS INT64_C(1000000)
#define SECOND INT64_C(1000000000)

// Ends the scenario's process: destructors and exit handlers are part of some scenarios only.
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s is false (errno %d)\n", __FILE__, __LINE__, #condition, errno);                 \
            _exit(99);                                                                                                 \
        }                                                                                                              \
    } while (0)

// The same for statuses; names both.
#define EXPECT(call, status)                                                                                           \
    do {                                                                                                               \
        const int32_t status_ = (call);                                                                                \
        if (status_ != (status)) {                                                                                     \
            fprintf(stderr, "%s:%d: %s is %d, not %d\n", __FILE__, __LINE__, #call, status_, status);                  \
            _exit(99);                                                                                                 \
        }                                                                                                              \
    } while (0)

enum { limit_s = 60, killed = 256 };

static int guest_failures;

// Runs the body in a child that must end by `how`: an exit code, or killed + signal. A body that returns ends by
// _exit(0).
static inline void guest_run(const char *name, void (*body)(void), int how, int times) {
    for (int i = 0; i < times; i++) {
        fflush(NULL);
        const pid_t child = fork();
        if (child == 0) {
            signal(SIGALRM, SIG_DFL);
            alarm(limit_s);
            body();
            _exit(0);
        }
        int status;
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
        const int ended = WIFEXITED(status) ? WEXITSTATUS(status) : killed + WTERMSIG(status);
        if (ended == how) continue;
        printf("FAILED  %s: ended by %s %d, not %d%s\n", name, ended < killed ? "code" : "signal", ended % killed,
               how % killed, ended == killed + SIGALRM ? " (hangs)" : "");
        guest_failures++;
        return;
    }
    printf("ok      %s\n", name);
}

static inline int guest_result(void) {
    fflush(NULL);
    return guest_failures != 0;
}

static inline int64_t guest_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}

#endif
