// SPDX-License-Identifier: MIT
// To be preloaded: a wall clock that is days off, each time it is read by others. CLOCK_MONOTONIC is left alone.
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/time.h>
#include <time.h>

static time_t days_off(void) {
    static atomic_uint reads;
    const unsigned n = atomic_fetch_add(&reads, 1);
    return (time_t)(n * 7919 % 41 * 86400) - (time_t)20 * 86400;
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    const int result = real(clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += days_off();
    return result;
}

__attribute__((visibility("default"))) time_t time(time_t *to) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to != NULL) *to = now.tv_sec;
    return now.tv_sec;
}

__attribute__((visibility("default"))) int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}
