/* SPDX-License-Identifier: MIT */
/* The workloads of several locales, that of Muster and that of OpenSHMEM alike:
 *   --what mix     read, write, exchange, compare-and-exchange or fetch-add, at random, of one of 1024 words
 *   --what table   a hash table: half of the operations find a key, a quarter inserts one, a quarter erases one
 *   --ranks N      --remote PERCENT of the operations of a mix on other locales      --scale PERCENT
 * Prints the operations of all locales together per second, as `rate`. */
#ifndef MUSTER_TESTS_LOCALES_H
#define MUSTER_TESTS_LOCALES_H

#include "bench.h"

enum { words = 1024, buckets_of_all = 4096, keys = 8192 };

struct workload {
    const char *what, *mode;
    int ranks, remote;
    long count; /* of each locale */
};

static inline struct workload read_workload(int argc, char **argv) {
    struct workload w = {"mix", "mapped", 2, 50, 500000};
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *key = argv[i], *value = argv[i + 1];
        if (!strcmp(key, "--what"))
            w.what = value;
        else if (!strcmp(key, "--mode"))
            w.mode = value;
        else if (!strcmp(key, "--ranks"))
            w.ranks = atoi(value);
        else if (!strcmp(key, "--remote"))
            w.remote = atoi(value);
        else if (!strcmp(key, "--scale"))
            w.count = w.count * atol(value) / 100;
        else
            die(key, "unknown option");
    }
    if (strcmp(w.mode, "mapped")) w.count /= 25; /* slower */
    if (w.count < 20) w.count = 20;
    return w;
}
static inline uint64_t next_random(uint64_t *state) { /* splitmix64 */
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}
/* Another locale in `remote` of 100 cases. */
static inline int locale_for(const struct workload *w, int own, uint64_t random) {
    if ((int)(random % 100) >= w->remote || w->ranks == 1) return own;
    return (own + 1 + (int)(random / 100 % (uint64_t)(w->ranks - 1))) % w->ranks;
}
static inline void print_operations(const struct workload *w, double us) {
    printf("rate\t%.6g\n", (double)w->count * w->ranks / us * 1e6);
}

#endif
