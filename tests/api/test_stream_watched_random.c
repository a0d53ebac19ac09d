// SPDX-License-Identifier: MIT
// Random sequences of messages, watches, blocking reads, begun reads and cancellations of one stream, which two threads
// serve: each waits at a queue of its own, and reads only when the queue reports that the stream can be read. What must
// hold: every byte that was written is read once, and no event is lost, so nothing waits for a byte that has arrived.
// The threads poll or sleep, depending on their success so far; a stream is a pair or goes through shared memory.
// ctest: quick timeout=120
#include <muster/muster.h>

#include "random_run.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

enum operation { MESSAGES, BURST, WATCH, UNWATCH, READ, BEGIN, CANCEL, DRAIN, operations };
enum { longest = 300 };
static const char *const names[] = {"messages", "burst", "watch", "unwatch", "read", "begin", "cancel", "drain"};

typedef struct step {
    enum operation operation;
    uint32_t a, b;
} step;
static step steps[max_steps];
static int current = -1;
static bool over_shm;

#define NEED(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "step %d (%s): %s is false; %llu bytes written, %llu read\n", current,                     \
                    current < 0 ? "set-up" : names[steps[current].operation], #condition, (unsigned long long)written, \
                    (unsigned long long)atomic_load(&consumed));                                                       \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static muster_context *contexts[2];
static muster_stream *near_end, *far_end; // the host writes to the far end; the near end is watched
static muster_queue *queues[2], *begun_queue;
static int watched = -1; // the queue, -1: none
static uint64_t written, written_sum;
static _Atomic uint64_t consumed, consumed_sum;

static void count(const unsigned char *data, size_t bytes) {
    uint64_t sum = 0;
    for (size_t i = 0; i < bytes; i++) sum += data[i];
    atomic_fetch_add(&consumed_sum, sum);
    atomic_fetch_add(&consumed, bytes);
}

static void *serve(void *argument) {
    muster_completion entry;
    while (muster_queue_next(argument, -1, &entry, NULL) == MUSTER_OK) {
        unsigned char data[1024];
        size_t moved;
        while (muster_stream_read(near_end, data, sizeof data, 0, &moved) == MUSTER_OK) count(data, moved);
    }
    return NULL;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void put(uint32_t bytes) {
    unsigned char data[longest];
    size_t moved = 0;
    for (uint32_t i = 0; i < bytes; i++) written_sum += data[i] = (unsigned char)(written + i * 13);
    written += bytes;
    NEED(muster_stream_write(far_end, data, bytes, 20000000000, &moved) == MUSTER_OK);
}

static void watch(int which) {
    const uint32_t events = which < 0 ? 0 : MUSTER_STREAM_READABLE;
    NEED(muster_stream_watch(near_end, events, which < 0 ? NULL : queues[which], 1) == MUSTER_OK);
    watched = which;
}

// A thread that is not woken never reads them.
static void await_all(void) {
    const double end = now() + 20;
    while (atomic_load(&consumed) != written && now() < end) sched_yield();
    NEED(atomic_load(&consumed) == written);
}

static void read_blocking(uint32_t size) {
    unsigned char data[longest];
    size_t moved = 0;
    const muster_status status = muster_stream_read(near_end, data, size, 1000000, &moved);
    NEED(status == MUSTER_OK || status == MUSTER_TIMEOUT);
    count(data, moved);
}

// A read that is begun beside the watch; the threads may take bytes that it waits for, so it may be cancelled.
static void read_begun(uint32_t size, bool is_cancelled) {
    unsigned char data[longest];
    muster_completion entry;
    muster_status status;
    status = muster_stream_read_begin(near_end, data, size, 0, begun_queue, 7);
    NEED(status == MUSTER_OK || status == MUSTER_AGAIN);
    if (status == MUSTER_AGAIN) return; // a thread waits for bytes
    put(size);
    if (is_cancelled) (void)muster_queue_cancel_operation(begun_queue, 7);
    double end = now() + 10;
    while ((status = muster_queue_next(begun_queue, 10000000, &entry, NULL)) == MUSTER_TIMEOUT) {
        if (written - atomic_load(&consumed) < size) put(size), end = now() + 10; // the threads were faster
        NEED(now() < end);
    }
    NEED(status == MUSTER_OK && entry.kind == MUSTER_DONE_READ);
    NEED(entry.status == MUSTER_OK || entry.status == MUSTER_E_CANCELED);
    count(data, entry.bytes);
}

static void make_streams(void) {
    for (int i = 0; i < 2; i++) NEED(muster_context_create(NULL, &contexts[i], NULL) == MUSTER_OK);
    for (int i = 0; i < 2; i++) NEED(muster_queue_create(contexts[0], NULL, &queues[i], NULL) == MUSTER_OK);
    NEED(muster_queue_create(contexts[0], NULL, &begun_queue, NULL) == MUSTER_OK);
    if (!over_shm) {
        NEED(muster_stream_pair(contexts[0], NULL, &near_end, &far_end, NULL) == MUSTER_OK);
        return;
    }
    muster_listener *listener;
    char address[256];
    size_t bytes;
    const int length = snprintf(address, sizeof address, "shm://watched-%d", (int)getpid());
    NEED(muster_transport_listen(contexts[1], address, (size_t)length, NULL, &listener, NULL) == MUSTER_OK);
    NEED(muster_listener_address(listener, address, sizeof address, &bytes) == MUSTER_OK);
    NEED(muster_transport_dial(contexts[0], address, bytes, NULL, 20000000000, &near_end, NULL) == MUSTER_OK);
    NEED(muster_listener_accept(listener, 20000000000, &far_end, NULL) == MUSTER_OK);
    muster_listener_release(listener);
}

static void make(uint64_t *state, int i) {
    const uint64_t word = next_random(state);
    const uint32_t kind = (uint32_t)(word % 100);
    steps[i].operation = kind < 30   ? MESSAGES
                         : kind < 45 ? BURST
                         : kind < 60 ? WATCH
                         : kind < 65 ? UNWATCH
                         : kind < 75 ? READ
                         : kind < 83 ? BEGIN
                         : kind < 90 ? CANCEL
                                     : DRAIN;
    steps[i].a = (uint32_t)(word >> 8) % longest + 1;
    steps[i].b = (uint32_t)(word >> 32);
}

static void do_step(const step *s) {
    switch (s->operation) {
    case MESSAGES: // one at a time: a thread that polls is successful
        if (watched < 0) watch(0);
        for (uint32_t i = 0; i < 20 + s->b % 100; i++) {
            put(1 + s->a % 64);
            await_all();
        }
        break;
    case BURST:
        for (uint32_t i = 0; i < s->b % 20; i++) put(s->a);
        break;
    case WATCH:
        watch((int)(s->b % 2));
        break;
    case UNWATCH:
        watch(-1);
        break;
    case READ:
        read_blocking(s->a);
        break;
    case BEGIN:
        read_begun(s->a, false);
        break;
    case CANCEL:
        read_begun(s->a, true);
        break;
    default:
        if (watched < 0) watch(1);
        await_all();
        break;
    }
}

static void run(int steps_count, const bool *left_out) {
    make_streams();
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) NEED(pthread_create(&threads[i], NULL, serve, queues[i]) == 0);
    for (current = 0; current < steps_count; current++)
        if (!left_out[current]) do_step(&steps[current]);
    current = -1;
    if (watched < 0) watch(0);
    await_all();
    NEED(atomic_load(&consumed_sum) == written_sum);
    muster_stream_release(far_end);
    for (int i = 0; i < 2; i++) muster_queue_close(queues[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    muster_stream_release(near_end);
    for (int i = 0; i < 2; i++) muster_queue_release(queues[i]);
    muster_queue_release(begun_queue);
    for (int i = 0; i < 2; i++) muster_context_release(contexts[i]);
}

static void print(int i) {
    fprintf(stderr, "%d: %s %u %u\n", i, names[steps[i].operation], steps[i].a, steps[i].b);
}

int main(void) {
    setenv("MUSTER_SECRET", "the secret of a test", 1);
    sequence s = {"a watched stream", 400, make, run, print};
    for (int kind = 0; kind < 2; kind++) {
        over_shm = kind == 1;
        s.name = over_shm ? "a watched stream of shared memory" : "a watched pair";
        if (!run_sequences(&s, 10)) return 1;
    }
    return 0;
}
