// SPDX-License-Identifier: MIT
// ctest: full timeout=300
// Every way to leave a process with contexts, transports and threads alive: the code is the host's, nothing crashes,
// nothing hangs.
#include "live.h"

#include <pthread.h>
#include <stdatomic.h>

static live l;
static atomic_int waiting;

static void *wait_in_queue(void *argument) {
    (void)argument;
    muster_queue *queue;
    muster_completion entry;
    EXPECT(muster_queue_create(l.context, NULL, &queue, NULL), MUSTER_OK);
    atomic_fetch_add(&waiting, 1);
    muster_queue_next(queue, -1, &entry, NULL);
    return NULL;
}

static void *wait_in_stream(void *argument) {
    char byte;
    size_t count;
    atomic_fetch_add(&waiting, 1);
    muster_stream_read(argument, &byte, 1, -1, &count);
    return NULL;
}

static void *wait_in_listener(void *argument) {
    muster_stream *stream;
    atomic_fetch_add(&waiting, 1);
    muster_listener_accept(argument, -1, &stream, NULL);
    return NULL;
}

static void *wait_for_process(void *argument) {
    (void)argument;
    atomic_fetch_add(&waiting, 1);
    muster_process_wait(l.process, -1, NULL);
    return NULL;
}

// The loop and the wake function stay busy.
static void *keep_posting(void *argument) {
    atomic_fetch_add(&waiting, 1);
    for (;;) {
        muster_completion entry;
        muster_queue_post(l.queue, 1, 1);
        muster_queue_next(l.queue, 0, &entry, argument);
    }
    return NULL;
}

static void *keep_writing(void *argument) {
    static char block[100000];
    atomic_fetch_add(&waiting, 1);
    for (size_t count;;) muster_stream_write(argument, block, sizeof block, 10 * MS, &count);
    return NULL;
}

static uint32_t flags;

static void begin_busy(void) {
    live_begin(&l, flags);
    pthread_t thread;
    int threads = 0;
    const struct {
        void *(*body)(void *);
        void *argument;
    } busy[] = {{wait_in_queue, NULL},
                {wait_in_stream, l.streams[1]},
                {wait_in_stream, l.streams[3]},
                {wait_in_stream, l.streams[5]},
                {wait_in_stream, l.streams[7]},
                {wait_in_listener, l.listeners[1]},
                {wait_in_listener, l.listeners[3]},
                {wait_for_process, NULL},
                {keep_posting, NULL},
                {keep_writing, l.streams[3]},
                {keep_writing, l.streams[7]}};
    for (size_t i = 0; i < sizeof busy / sizeof *busy; i++, threads++)
        CHECK(pthread_create(&thread, NULL, busy[i].body, busy[i].argument) == 0);
    while (atomic_load(&waiting) < threads) sched_yield();
    usleep(2000); // most of them asleep by now, which only makes it harder
    muster_process_kill(l.process, SIGKILL);
}

static void leave_in_order(void) {
    live_begin(&l, flags);
    live_end(&l);
    exit(21);
}

static void leave_after_close_alone(void) {
    live_begin(&l, flags);
    muster_process_kill(l.process, SIGKILL);
    CHECK(muster_context_close(l.context, SECOND) >= 0);
    exit(22);
}

static void leave_by_exit(void) {
    begin_busy();
    exit(23);
}

static void leave_by_underscore_exit(void) {
    begin_busy();
    _exit(24);
}

static void leave_by_quick_exit(void) {
    begin_busy();
    quick_exit(25);
}

static void *exit_here(void *argument) {
    (void)argument;
    exit(26);
}

static void leave_from_another_thread(void) {
    begin_busy();
    pthread_t thread;
    pthread_create(&thread, NULL, exit_here, NULL);
    for (;;) pause();
}

static void use_after_all(void) {
    muster_completion entry; // a host's own exit handler, or a finalizer that comes late
    muster_queue_post(l.queue, 1, 1);
    muster_queue_next(l.queue, 0, &entry, NULL);
    for (int i = 0; i < live_streams; i++) muster_stream_release(l.streams[i]);
    muster_queue_close(l.queue);
    muster_queue_release(l.queue);
    muster_context_close(l.context, 0);
    muster_context_release(l.context);
}

static void leave_with_late_finalizers(void) {
    live_begin(&l, flags);
    muster_process_kill(l.process, SIGKILL);
    atexit(use_after_all);
    exit(27);
}

static void leave_by_exec(void) {
    begin_busy();
    execlp("sh", "sh", "-c", "exit 28", (char *)NULL);
}

static void leave_by_a_signal(void) {
    begin_busy();
    raise(SIGTERM);
}

static void leave_in_the_middle_of_making_contexts(void) {
    pthread_t thread;
    begin_busy();
    pthread_create(&thread, NULL, exit_here, NULL);
    for (;;) {
        muster_context *context;
        if (muster_context_create(NULL, &context, NULL) == MUSTER_OK) muster_context_release(context);
    }
}

int main(void) {
    const struct {
        const char *name;
        void (*body)(void);
        int how;
    } ways[] = {
        {"in order", leave_in_order, 21},
        {"after close alone", leave_after_close_alone, 22},
        {"exit()", leave_by_exit, 23},
        {"_exit()", leave_by_underscore_exit, 24},
        {"quick_exit()", leave_by_quick_exit, 25},
        {"exit() on another thread", leave_from_another_thread, 26},
        {"late finalizers", leave_with_late_finalizers, 27},
        {"exec", leave_by_exec, 28},
        {"a signal", leave_by_a_signal, killed + SIGTERM},
        {"exit() while contexts are made", leave_in_the_middle_of_making_contexts, 26},
    };
    for (flags = 0; flags <= MUSTER_CONTEXT_EXTERNAL; flags += MUSTER_CONTEXT_EXTERNAL)
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            char name[128];
            snprintf(name, sizeof name, "leaving by %s, %s", ways[i].name, flags ? "external" : "threaded");
            guest_run(name, ways[i].body, ways[i].how, 10);
        }
    return guest_result();
}
