// SPDX-License-Identifier: MIT
// ctest: quick timeout=120
// Hosts that fork with everything alive: the child is told, does no harm and ends as it likes; the parent goes on.
#include "live.h"

#include <pthread.h>
#include <stdatomic.h>

static live l;

static int forked(muster_status status) {
    return status == MUSTER_E_FORKED;
}

// Every handle answers, and none is hurt by its release.
static int all_are_told(void) {
    muster_completion entry;
    muster_queue_stats stats;
    muster_stream *stream, *other;
    muster_listener *listener;
    muster_process *process;
    muster_process_config config;
    const char *const argv[] = {"true", NULL};
    char bytes[16];
    size_t count;
    int32_t fd;
    muster_config_init(&config, sizeof config);
    config.argv = argv;
    int right = forked(muster_context_close(l.context, -1)) & forked(muster_context_progress(l.context, -1));
    right &= forked(muster_queue_next(l.queue, -1, &entry, NULL)) & forked(muster_queue_post(l.queue, 0, 0));
    right &= forked(muster_queue_dispatch(l.queue, -1, NULL, NULL, NULL)) & forked(muster_queue_fd(l.queue, &fd));
    right &= forked(muster_queue_set_wake(l.queue, NULL, NULL)) & forked(muster_queue_cancel(l.queue));
    right &= forked(muster_queue_get_stats(l.queue, &stats)) & forked(muster_queue_close(l.queue));
    right &= forked(muster_process_wait(l.process, -1, NULL)) & forked(muster_process_kill(l.process, SIGKILL));
    right &= forked(muster_process_spawn(l.context, &config, &process, NULL)) & !muster_process_pid(l.process);
    right &= forked(muster_stream_pair(l.context, NULL, &stream, &other, NULL));
    right &= forked(muster_transport_listen(l.context, "tcp://127.0.0.1:0", 17, NULL, &listener, NULL));
    right &= forked(muster_transport_dial(l.context, "tcp://127.0.0.1:1", 17, NULL, SECOND, &stream, NULL));
    for (int i = 0; i < live_streams; i++) {
        right &= forked(muster_stream_write(l.streams[i], "x", 1, -1, &count));
        right &= forked(muster_stream_read(l.streams[i], bytes, sizeof bytes, -1, &count));
        right &= forked(muster_stream_flush(l.streams[i], -1)) & forked(muster_stream_close(l.streams[i], -1));
        right &=
            forked(muster_stream_finish(l.streams[i])) & forked(muster_stream_cancel(l.streams[i], MUSTER_STREAM_READ));
        right &= forked(muster_stream_watch(l.streams[i], MUSTER_STREAM_READABLE, l.queue, 1));
    }
    for (int i = 0; i < live_listeners; i++) {
        right &= forked(muster_listener_accept(l.listeners[i], -1, &stream, NULL));
        right &= forked(muster_listener_close(l.listeners[i]));
    }
    for (int i = 0; i < live_streams; i++) muster_stream_release(l.streams[i]);
    for (int i = 0; i < live_listeners; i++) muster_listener_release(l.listeners[i]);
    muster_process_release(l.process);
    muster_queue_release(l.queue);
    muster_context_release(l.context);
    return right;
}

static void expect_child(pid_t child, int code) {
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != code) {
        fprintf(stderr, "the child ended by %x\n", status);
        _exit(91);
    }
}

static void fork_and_tell(uint32_t flags) {
    live_begin(&l, flags);
    for (int way = 0; way < 4; way++) {
        fflush(NULL);
        const pid_t child = fork();
        if (child == 0) {
            alarm(20);
            const int code = all_are_told() ? 11 + way : 1;
            if (way == 0) _exit(code);
            if (way == 1) exit(code);
            if (way == 2) quick_exit(code);
            const int more = fork(); // a grandchild gets the same status
            if (more == 0) _exit(forked(muster_queue_post(l.queue, 0, 0)) ? 50 : 1);
            expect_child(more, 50);
            _exit(code);
        }
        expect_child(child, 11 + way);
        live_talk(&l);
        EXPECT(muster_queue_post(l.queue, 1, 1), MUSTER_OK);
    }
    EXPECT(muster_process_kill(l.process, 0), MUSTER_OK);
    live_end(&l);
}

static void threaded(void) {
    fork_and_tell(0);
}

static void external(void) {
    fork_and_tell(MUSTER_CONTEXT_EXTERNAL);
}

static atomic_int stop;

static void *keep_posting(void *argument) {
    muster_queue *queue = argument;
    muster_completion entry;
    while (!atomic_load(&stop)) {
        muster_queue_post(queue, 1, 1);
        muster_queue_next(queue, 0, &entry, NULL);
    }
    return NULL;
}

static void *keep_talking(void *argument) {
    muster_stream **pair = argument;
    while (!atomic_load(&stop)) workout_talk(&live_api, pair[0], pair[1]);
    return NULL;
}

// Locks of the library are held by other threads at the moment of the fork; the child must not wait for them.
static void in_the_middle_of_everything(void) {
    live_begin(&l, 0);
    pthread_t threads[4];
    pthread_create(&threads[0], NULL, keep_posting, l.queue);
    for (int i = 1; i < 4; i++) pthread_create(&threads[i], NULL, keep_talking, &l.streams[2 * i]);
    for (int i = 0; i < 100; i++) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(20);
            if (!all_are_told()) _exit(1);
            _exit(12);
        }
        expect_child(child, 12);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    live_end(&l);
}

#ifndef MUSTER_SANITIZED // their run-times do not survive new threads in the fork of a process that has threads
static void the_child_starts_over(void) {
    live_begin(&l, 0);
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        workout(&live_api);
        _exit(13);
    }
    expect_child(child, 13);
    live_talk(&l);
    live_end(&l);
}
#endif

// A fork's copies of the descriptors keep nothing alive: the peer of a closed stream learns of it.
static void a_fork_does_not_hold_the_parents_streams(void) {
    live_begin(&l, 0);
    int ends[2];
    CHECK(pipe(ends) == 0);
    const pid_t child = fork();
    if (child == 0) {
        char byte;
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 0 ? 14 : 1); // until the parent is through
    }
    for (int i = 0; i < live_streams; i += 2) {
        char byte;
        size_t count;
        EXPECT(muster_stream_close(l.streams[i], 20 * SECOND), MUSTER_OK);
        EXPECT(muster_stream_read(l.streams[i + 1], &byte, 1, 20 * SECOND, &count), MUSTER_E_END);
    }
    close(ends[1]);
    expect_child(child, 14);
    live_end(&l);
}

int main(void) {
    guest_run("a fork of a threaded context is told and harmless", threaded, 0, 1);
    guest_run("a fork of an external context is told and harmless", external, 0, 1);
    guest_run("a fork in the middle of everything", in_the_middle_of_everything, 0, 1);
#ifndef MUSTER_SANITIZED
    guest_run("the child of a fork starts over", the_child_starts_over, 0, 3);
#endif
    guest_run("a fork does not hold the parent's streams", a_fork_does_not_hold_the_parents_streams, 0, 1);
    return guest_result();
}
