// SPDX-License-Identifier: MIT
// Is a thread asleep in a system call? The kernel says so; having begun is not having got there on a busy machine.
#ifndef MUSTER_TESTS_ASLEEP_H
#define MUSTER_TESTS_ASLEEP_H

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

// Waits until the thread of that number (gettid()) sleeps, or `over` is set.
static inline void until_asleep(int thread, atomic_int *over) {
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    while (!atomic_load(over)) {
        FILE *stat = fopen(path, "r");
        const char *name_end = stat && fgets(line, sizeof line, stat) ? strrchr(line, ')') : NULL;
        const int asleep = name_end && name_end[2] == 'S';
        if (stat) fclose(stat);
        if (asleep) return;
        sched_yield();
    }
}

#endif
