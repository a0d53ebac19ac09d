// SPDX-License-Identifier: MIT
// Random sequences of steps: each sequence runs in a child process; a sequence that fails is run again without parts of
// it as long as it fails, and then printed. MUSTER_SEED selects one sequence, with MUSTER_NO_SHRINK none is made
// smaller.
#ifndef RANDOM_RUN_H
#define RANDOM_RUN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { max_steps = 3000 };

static inline uint64_t next_random(uint64_t *state) { // splitmix64
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static inline uint32_t below(uint64_t *state, uint32_t limit) {
    return (uint32_t)(next_random(state) % limit);
}

typedef struct sequence {
    const char *name;
    int count; // of steps, at most max_steps
    void (*make)(uint64_t *state, int step);
    void (*run)(int count, const bool *left_out); // exits with a status that is not 0 if it fails
    void (*print)(int step);                      // one line to stderr
} sequence;

static inline bool sequence_works(const sequence *s, const bool *left_out, bool is_quiet) {
    if (getenv("MUSTER_IN_PROCESS")) { // a rank of MPI cannot fork
        s->run(s->count, left_out);
        return true;
    }
    fflush(NULL);
    const pid_t parent = getpid(), child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(0); // it ended before
        if (is_quiet && freopen("/dev/null", "w", stderr) == NULL) _exit(2);
        alarm(100); // a sequence that hangs has failed
        s->run(s->count, left_out);
        _exit(0);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
    }
    if (!is_quiet && WIFSIGNALED(status)) fprintf(stderr, "ended by signal %d\n", WTERMSIG(status));
    return status == 0;
}

static inline bool run_sequence(const sequence *s, uint64_t seed) {
    static bool left_out[max_steps];
    uint64_t state = seed;
    for (int i = 0; i < s->count; i++) s->make(&state, i);
    memset(left_out, 0, sizeof left_out);
    if (sequence_works(s, left_out, false)) return true;
    if (getenv("MUSTER_NO_SHRINK")) return false;
    fprintf(stderr, "seed %llu of %s fails; looking for fewer steps\n", (unsigned long long)seed, s->name);
    for (int part = s->count / 2; part >= 1; part /= 2)
        for (int at = 0; at < s->count; at += part) {
            bool before[max_steps];
            memcpy(before, left_out, sizeof before);
            for (int i = at; i < at + part && i < s->count; i++) left_out[i] = true;
            if (sequence_works(s, left_out, true)) memcpy(left_out, before, sizeof before);
        }
    for (int i = 0; i < s->count; i++)
        if (!left_out[i]) s->print(i);
    sequence_works(s, left_out, false);
    return false;
}

// False if one of them has failed.
static inline bool run_sequences(const sequence *s, int sequences) {
    const char *const given = getenv("MUSTER_SEED");
    for (int i = 0; i < (given ? 1 : sequences); i++)
        if (!run_sequence(s, given ? strtoull(given, NULL, 0) : 1 + (uint64_t)i)) return false;
    return true;
}

#endif
