/* SPDX-License-Identifier: MIT */
/* The two measurements, for every kind of channel alike. Whoever includes this has declared
 *     struct channel;
 *     static void channel_write(struct channel *, const void *, size_t);
 *     static void channel_read(struct channel *, void *, size_t);             exactly so many bytes
 *     static size_t channel_read_some(struct channel *, void *, size_t most); at least one
 * and calls first_end() and second_end(), each where it is to run. `out` and `in` may be the same duplex channel. */
#ifndef MUSTER_TESTS_BENCH_PATTERNS_H
#define MUSTER_TESTS_BENCH_PATTERNS_H

#include "bench.h"

/* Round trips are timed in bunches, so that reading the clock does not count. */
static inline long bunch(const struct options *o) {
    return o->size <= 4096 ? 16 : 1;
}
static inline long warm_up(const struct options *o) {
    return o->count / 10 + 1;
}

/* One way goes in rounds, each ended by the byte back; the first warms up, the median of the others counts. */
enum { rounds = 9 };
static inline long per_round(const struct options *o) {
    return o->count / rounds + 1;
}

/* Takes so many messages off the channel: large ones as wholes, small ones as they come. */
static inline void take_all(const struct options *o, struct channel *in, unsigned char *to, size_t room, long count) {
    if (o->size > room / 4) {
        for (long i = 0; i < count; i++) channel_read(in, to, o->size);
        return;
    }
    for (uint64_t left = (uint64_t)count * o->size; left != 0;) {
        const size_t most = left < room ? (size_t)left : room;
        left -= channel_read_some(in, to, most);
    }
}

static inline void second_end(const struct options *o, struct channel *out, struct channel *in) {
    const size_t room = o->size > (256u << 10) ? o->size : 256u << 10;
    unsigned char *data = buffer(room);
    if (o->what == WHAT_ONEWAY) {
        for (int i = 0; i <= rounds; i++) {
            take_all(o, in, data, room, per_round(o));
            channel_write(out, data, 1);
        }
    } else {
        const long bunches = o->count / bunch(o) + 1 + warm_up(o) / bunch(o) + 1;
        for (long i = 0; i < bunches * bunch(o); i++) {
            channel_read(in, data, o->size);
            channel_write(out, data, o->size);
        }
    }
}

static inline void first_end(const struct options *o, struct channel *out, struct channel *in) {
    unsigned char *data = buffer(o->size);
    if (o->what == WHAT_ONEWAY) {
        double times[rounds + 1];
        for (int i = 0; i <= rounds; i++) {
            const double begun = now_us();
            for (long k = 0; k < per_round(o); k++) channel_write(out, data, o->size);
            channel_read(in, data, 1);
            times[i] = now_us() - begun;
        }
        print_rate(o->size, per_round(o), median(times + 1, rounds));
        return;
    }
    const long cold = warm_up(o) / bunch(o) + 1, bunches = o->count / bunch(o) + 1;
    double *times = (double *)malloc(sizeof *times * (size_t)bunches);
    if (times == NULL) die_errno("malloc");
    for (long i = -cold; i < bunches; i++) {
        const double begun = now_us();
        for (long k = 0; k < bunch(o); k++) {
            channel_write(out, data, o->size);
            channel_read(in, data, o->size);
        }
        if (i >= 0) times[i] = (now_us() - begun) / (double)bunch(o) / 2;
    }
    print_latency(median(times, bunches));
    free(times);
}

#endif
