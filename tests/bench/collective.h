/* SPDX-License-Identifier: MIT */
/* The pattern of the collective benchmarks; the program that includes it defines the four operations.
 *
 *   --what all-reduce | broadcast | reduce-scatter | barrier  --size BYTES  --ranks N
 *
 * Arrays are of 32-bit floating-point numbers, each reduction is a sum; size is that of the array of a member (of a
 * reduce-scatter: of its input). Prints the mean time of an operation at rank 0, in operations that follow each other
 * at once, as `us`. How many there are follows from the time of the first ones. */
#ifndef MUSTER_TESTS_COLLECTIVE_H
#define MUSTER_TESTS_COLLECTIVE_H

#include "bench.h"

struct collective {
    const char *what;
    size_t size;
    int ranks;
    double budget_us;
};

static void op_barrier(void);
static void op_broadcast(float *data, size_t count);
static void op_all_reduce(const float *input, float *output, size_t count);
static void op_reduce_scatter(const float *input, float *output, size_t count_of_block);

static inline struct collective read_collective(int argc, char **argv) {
    struct collective c = {"barrier", 8, 2, 300000};
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *key = argv[i], *value = argv[i + 1];
        if (!strcmp(key, "--what"))
            c.what = value;
        else if (!strcmp(key, "--size"))
            c.size = (size_t)atoll(value);
        else if (!strcmp(key, "--ranks"))
            c.ranks = atoi(value);
        else if (!strcmp(key, "--scale"))
            c.budget_us = c.budget_us * atof(value) / 100;
        else if (strcmp(key, "--cores") != 0 && strcmp(key, "--over") != 0)
            die(key, "unknown option");
    }
    return c;
}

static inline void once(const struct collective *c, float *input, float *output) {
    const size_t count = c->size / sizeof *input;
    if (!strcmp(c->what, "barrier"))
        op_barrier();
    else if (!strcmp(c->what, "broadcast"))
        op_broadcast(input, count);
    else if (!strcmp(c->what, "all-reduce"))
        op_all_reduce(input, output, count);
    else
        op_reduce_scatter(input, output, count / (size_t)c->ranks);
}

static inline void run_collective(const struct collective *c, int rank) {
    float *const input = (float *)buffer(c->size), *const output = (float *)buffer(c->size);
    memset(input, 0, c->size);
    once(c, input, output); /* makes the connections */
    double begun = now_us();
    const int first = c->size < 65536 ? 20 : 2;
    for (int i = 0; i < first; i++) once(c, input, output);
    float count = (float)(c->budget_us / (now_us() - begun) * first);
    if (count < 2) count = 2;
    if (count > 20000) count = 20000;
    op_broadcast(&count, 1); /* that of rank 0 */
    begun = now_us();
    for (long i = 0; i < (long)count; i++) once(c, input, output);
    if (rank == 0) printf("us\t%.6g\n", (now_us() - begun) / (double)(long)count);
}

#endif
