// SPDX-License-Identifier: MIT
// Small writes that follow each other are sent together. The last one of a burst needs no other write after it, nor the
// first one after a rest, a large one, or the end; and no heartbeat, which makes a link look again. MUSTER_SEED chooses
// the bursts.
// ctest: quick timeout=60
#include "transport_pair.h"

typedef struct count_job {
    muster_stream *stream;
    atomic_ullong bytes;
} count_job;

static void *count_bytes(void *arg) {
    count_job *j = arg;
    static _Thread_local char got[65536];
    size_t bytes = 0;
    while (muster_stream_read(j->stream, got, sizeof got, 20 * SECOND, &bytes) == MUSTER_OK)
        atomic_fetch_add(&j->bytes, bytes);
    return NULL;
}

static void write_bursts(const way *w, pair *p, unsigned seed) {
    static char data[300000];
    count_job job = {.stream = p->far};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, count_bytes, &job), 0);
    unsigned long long all = 0;
    for (int burst = 0; burst < 300; burst++) {
        const int writes = rand() % 4 == 0 ? rand() % 400 : rand() % 40;
        for (int i = 0; i <= writes; i++) {
            const size_t size = rand() % 50 == 0 ? 1 + (size_t)rand() % sizeof data : 1 + (size_t)rand() % 200;
            size_t moved = 0;
            assert_int_equal(muster_stream_write(p->near, data, size, 20 * SECOND, &moved), MUSTER_OK);
            all += size;
            if (rand() % 200 == 0) assert_int_equal(muster_stream_flush(p->near, 20 * SECOND), MUSTER_OK);
        }
        const int rest = rand() % 4;
        if (rest == 1) usleep((unsigned)rand() % 200);
        if (rest < 2) continue;
        struct timespec now, until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += 10;
        do { // nothing is written meanwhile
            clock_gettime(CLOCK_MONOTONIC, &now);
            if (now.tv_sec >= until.tv_sec)
                fail_msg("%s: %llu of %llu bytes, seed %u", w->name, atomic_load(&job.bytes), all, seed);
            if (rest == 2) usleep(20);
        } while (atomic_load(&job.bytes) != all);
    }
    assert_int_equal(muster_stream_finish(p->near), MUSTER_OK);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&job.bytes), all);
}

static void test_bursts_of_small_writes_arrive_by_themselves(void **state) {
    (void)state;
    const unsigned seed = getenv("MUSTER_SEED") ? (unsigned)atoi(getenv("MUSTER_SEED")) : (unsigned)time(NULL);
    srand(seed);
    const int64_t usual_ns = heartbeat_ns;
    heartbeat_ns = 1000 * SECOND;
    for (int i = 0; i < way_count; i++) {
        pair p = {0};
        connect_pair(&p, &ways[i]);
        write_bursts(&ways[i], &p, seed);
        drop_pair(&p);
    }
    heartbeat_ns = usual_ns;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bursts_of_small_writes_arrive_by_themselves)};
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
