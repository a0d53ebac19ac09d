/* SPDX-License-Identifier: MIT */
/* What every benchmark program shares: options, clock, cores, buffers, two ends of a channel, one line of output. */
#ifndef MUSTER_TESTS_BENCH_H
#define MUSTER_TESTS_BENCH_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
#define BENCH_NORETURN [[noreturn]]
#else
#define BENCH_NORETURN _Noreturn
#endif

/* Where the two ends run: where the scheduler likes, on one core, each on a core of its own. */
enum cores { CORES_FREE, CORES_ONE, CORES_TWO };
/* Half round trips; bytes one way and one byte back; half round trips over two one-way channels, so that the reader
 * has never written to the channel it waits on. */
enum what { WHAT_LATENCY, WHAT_ONEWAY, WHAT_HANDOVER };

struct options {
    const char *over; /* which channel */
    const char *mode; /* of a ring: spin, hybrid, park */
    enum what what;
    enum cores cores;
    size_t size;
    long count; /* messages, or round trips */
};

BENCH_NORETURN static inline void die(const char *where, const char *why) {
    fprintf(stderr, "%s: %s\n", where, why);
    exit(1);
}
BENCH_NORETURN static inline void die_errno(const char *where) {
    die(where, strerror(errno));
}

static inline double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* Messages that take a tenth of a second or a few over most channels. */
static inline long default_count(enum what what, size_t size) {
    if (what != WHAT_ONEWAY) return size <= 4096 ? 16000 : size <= (128u << 10) ? 4000 : size <= (4u << 20) ? 400 : 8;
    return size <= 4096 ? 900000 : size <= (128u << 10) ? 18000 : size <= (4u << 20) ? 1200 : 18;
}

/* --over X --mode X --what latency|oneway|handover --cores free|one|two --size BYTES --scale PERCENT */
static inline struct options read_options(int argc, char **argv) {
    struct options o = {"", "park", WHAT_LATENCY, CORES_TWO, 64, 0};
    long scale = 100;
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *key = argv[i], *value = argv[i + 1];
        if (!strcmp(key, "--over"))
            o.over = value;
        else if (!strcmp(key, "--mode"))
            o.mode = value;
        else if (!strcmp(key, "--what"))
            o.what = !strcmp(value, "latency") ? WHAT_LATENCY : !strcmp(value, "oneway") ? WHAT_ONEWAY : WHAT_HANDOVER;
        else if (!strcmp(key, "--cores"))
            o.cores = !strcmp(value, "free") ? CORES_FREE : !strcmp(value, "one") ? CORES_ONE : CORES_TWO;
        else if (!strcmp(key, "--size"))
            o.size = (size_t)atoll(value);
        else if (!strcmp(key, "--scale"))
            scale = atol(value);
        else
            die(key, "unknown option");
    }
    o.count = default_count(o.what, o.size) * scale / 100;
    if (o.count < 2) o.count = 2;
    return o;
}

/* Puts the calling thread, and those it starts later, where end 0 or 1 belongs. */
static inline void take_core(enum cores cores, int end) {
    cpu_set_t allowed, one;
    if (cores == CORES_FREE || sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    int wanted = cores == CORES_ONE ? 0 : end, last = -1;
    for (int cpu = 0; cpu < CPU_SETSIZE && wanted >= 0; cpu++)
        if (CPU_ISSET(cpu, &allowed)) last = cpu, wanted--;
    if (wanted >= 0) die("take_core", "this machine has one core only");
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) die_errno("sched_setaffinity");
}

/* Memory whose pages are there already. */
static inline unsigned char *buffer(size_t size) {
    unsigned char *p = (unsigned char *)mmap(NULL, size + 64, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (p == MAP_FAILED) die_errno("mmap");
    memset(p, 1, size);
    return p;
}

static inline int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
static inline double median(double *values, long count) {
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return values[count / 2];
}

/* The figure the program was asked for: microseconds of a half round trip, or bytes and messages per second. */
static inline void print_latency(double half_us) {
    printf("us\t%.6g\n", half_us);
}
static inline void print_rate(size_t size, long count, double us) {
    printf("gbps\t%.6g\nrate\t%.6g\n", (double)size * (double)count / us * 1e-3, (double)count / us * 1e6);
}

/* Forks. The child runs `other` and exits; the parent goes on, and calls join_process() at its end. */
static inline pid_t start_process(void (*other)(void *), void *argument) {
    fflush(stdout);
    const pid_t parent = getpid(), child = fork();
    if (child < 0) die_errno("fork");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
        other(argument);
        fflush(stdout);
        _exit(0);
    }
    return child;
}
static inline void join_process(pid_t child) {
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) die("the other end", "failed");
}

#endif
