// SPDX-License-Identifier: MIT
// ctest: quick timeout=120
// Hosts with many threads: releasing what another uses, two contexts, wake functions detached while they are called.
#include "asleep.h"
#include "live.h"

#include <pthread.h>
#include <stdatomic.h>

static live l;

typedef struct use {
    muster_status (*wait)(void *object); // waits a little, inside the library
    void *object;
    atomic_int inside;  // its thread's number, once it is about to enter
    atomic_int outside; // it came back
} use;

static muster_status in_queue(void *object) {
    muster_completion entry;
    return muster_queue_next(object, 3 * MS, &entry, NULL);
}

static muster_status in_read(void *object) {
    char byte;
    size_t count;
    return muster_stream_read(object, &byte, 1, 3 * MS, &count);
}

static muster_status in_accept(void *object) {
    muster_stream *stream;
    return muster_listener_accept(object, 3 * MS, &stream, NULL);
}

static muster_status in_wait(void *object) {
    return muster_process_wait(object, 3 * MS, NULL);
}

static muster_status in_dial(void *object) {
    muster_transport_config config;
    muster_stream *stream;
    muster_config_init(&config, sizeof config);
    config.retry_ns = SECOND;
    const muster_status status =
        muster_transport_dial(object, "unix://@muster-guest-nobody", 27, &config, 3 * MS, &stream, NULL);
    return status == MUSTER_E_UNREACHABLE || status == MUSTER_E_CANCELED ? MUSTER_TIMEOUT : status;
}

static muster_status in_progress(void *object) {
    return muster_context_progress(object, 3 * MS);
}

static void release_queue(void *object) {
    muster_queue_release(object);
}

static void release_stream(void *object) {
    muster_stream_release(object);
}

static void release_listener(void *object) {
    muster_listener_release(object);
}

static void release_process(void *object) {
    muster_process_release(object);
}

static void release_context(void *object) {
    muster_context_release(object);
}

static void *wait_inside(void *argument) {
    use *u = argument;
    atomic_store(&u->inside, gettid());
    const muster_status status = u->wait(u->object);
    atomic_store(&u->outside, 1);
    return (void *)(intptr_t)status;
}

static pthread_t start_inside(void *(*run)(void *), use *u) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, run, u) == 0);
    while (!atomic_load(&u->inside)) sched_yield();
    until_asleep(atomic_load(&u->inside), &u->outside);
    return thread;
}

static void release_during(muster_status (*wait)(void *), void (*release)(void *), void *object) {
    use u = {wait, object, 0, 0};
    const pthread_t thread = start_inside(wait_inside, &u);
    release(object);
    void *status;
    pthread_join(thread, &status);
    // Time-out, or what the release itself brought about; the other end of a released stream reads its end.
    const muster_status allowed[] = {MUSTER_TIMEOUT, MUSTER_OK, MUSTER_E_CLOSED, MUSTER_E_END};
    int known = 0;
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) known |= (intptr_t)status == allowed[i];
    if (!known) EXPECT((muster_status)(intptr_t)status, MUSTER_TIMEOUT);
}

static void release_while_in_use(void) {
    for (uint32_t flags = 0; flags <= MUSTER_CONTEXT_EXTERNAL; flags += MUSTER_CONTEXT_EXTERNAL)
        for (int round = 0; round < 5; round++) {
            live_begin(&l, flags);
            release_during(in_queue, release_queue, l.queue);
            for (int i = 0; i < live_streams; i++) release_during(in_read, release_stream, l.streams[i]);
            for (int i = 0; i < live_listeners; i++) release_during(in_accept, release_listener, l.listeners[i]);
            muster_process_kill(l.process, SIGKILL);
            release_during(in_wait, release_process, l.process);
            close(l.queue_fd);
            release_during(flags && round % 2 ? in_progress : in_dial, release_context, l.context);
        }
}

static void *cancelled_inside(void *argument) {
    wait_inside(argument);
    while (pause() == -1) {
    } // a point of the host's own, where the cancellation is due
    return NULL;
}

// No frame of the library is unwound: the call comes back, and the thread ends at its next point of its own.
static void cancel_during(muster_status (*wait)(void *), void *object) {
    use u = {wait, object, 0, 0};
    const pthread_t thread = start_inside(cancelled_inside, &u);
    pthread_cancel(thread);
    void *end;
    pthread_join(thread, &end);
    CHECK(end == PTHREAD_CANCELED);
    CHECK(atomic_load(&u.outside));
}

static void threads_cancelled_while_inside(void) {
    for (uint32_t flags = 0; flags <= MUSTER_CONTEXT_EXTERNAL; flags += MUSTER_CONTEXT_EXTERNAL) {
        live_begin(&l, flags);
        cancel_during(in_queue, l.queue);
        for (int i = 0; i < live_streams; i++) cancel_during(in_read, l.streams[i]);
        for (int i = 0; i < live_listeners; i++) cancel_during(in_accept, l.listeners[i]);
        cancel_during(in_wait, l.process);
        live_talk(&l);
        live_end(&l);
    }
}

static void at_a_point(void *user, const muster_completion *entry, const muster_error *error) {
    (void)user, (void)entry, (void)error;
    pthread_testcancel();
}

// With a cancellation due from the start, the first cancellation point of any call would end the thread there.
static void *cancelled_before(void *flags) {
    pthread_cancel(pthread_self());
    live_begin(&l, *(uint32_t *)flags);
    live_talk(&l);
    EXPECT(in_dial(l.context), MUSTER_TIMEOUT);
    EXPECT(muster_queue_post(l.queue, 1, 1), MUSTER_OK);
    EXPECT(muster_queue_dispatch(l.queue, SECOND, at_a_point, NULL, NULL), MUSTER_OK);
    for (int i = 0; i < live_listeners; i++) EXPECT(in_accept(l.listeners[i]), MUSTER_TIMEOUT);
    EXPECT(muster_process_kill(l.process, SIGKILL), MUSTER_OK);
    EXPECT(muster_process_wait(l.process, SECOND, NULL), MUSTER_OK);
    live_end(&l);
    *(uint32_t *)flags = UINT32_MAX;
    while (pause() == -1) {
    }
    return NULL;
}

static void threads_cancelled_before(void) {
    for (uint32_t flags = 0; flags <= MUSTER_CONTEXT_EXTERNAL; flags += MUSTER_CONTEXT_EXTERNAL) {
        uint32_t given = flags;
        pthread_t thread;
        void *end;
        pthread_create(&thread, NULL, cancelled_before, &given);
        pthread_join(thread, &end);
        CHECK(end == PTHREAD_CANCELED);
        CHECK(given == UINT32_MAX); // it got through every call
    }
}

static void two_contexts(void) {
    const char secret[] = "one secret for both of them";
    muster_context *contexts[2];
    for (int i = 0; i < 2; i++) {
        muster_context_config config;
        muster_config_init(&config, sizeof config);
        config.secret = secret;
        config.secret_bytes = sizeof secret;
        config.flags = i ? MUSTER_CONTEXT_SEAL_ALWAYS : 0;
        EXPECT(muster_context_create(&config, &contexts[i], NULL), MUSTER_OK);
    }
    const char *const schemes[] = {"tcp", "unix", "shm"};
    for (int i = 0; i < 3; i++) {
        char address[256];
        size_t bytes;
        muster_listener *listener;
        muster_stream *here, *there;
        muster_error error;
        workout_address(schemes[i], address, sizeof address);
        EXPECT(muster_transport_listen(contexts[0], address, strlen(address), NULL, &listener, NULL), MUSTER_OK);
        EXPECT(muster_listener_address(listener, address, sizeof address, &bytes), MUSTER_OK);
        if (muster_transport_dial(contexts[1], address, bytes, NULL, 20 * SECOND, &there, &error) != MUSTER_OK) {
            fprintf(stderr, "%s: %s\n", schemes[i], error.message);
            _exit(90);
        }
        EXPECT(muster_listener_accept(listener, 20 * SECOND, &here, NULL), MUSTER_OK);
        workout_talk(&live_api, here, there);
        muster_stream_release(here);
        muster_stream_release(there);
        muster_listener_release(listener);
    }
    // An inproc name belongs to its context.
    muster_listener *listener;
    muster_stream *stream;
    EXPECT(muster_transport_listen(contexts[0], "inproc://here", 13, NULL, &listener, NULL), MUSTER_OK);
    EXPECT(muster_transport_dial(contexts[1], "inproc://here", 13, NULL, SECOND, &stream, NULL), MUSTER_E_UNREACHABLE);
    muster_listener_release(listener);
    EXPECT(muster_context_close(contexts[0], 20 * SECOND), MUSTER_OK);
    muster_context_release(contexts[0]);
    muster_queue *queue; // the other one does not notice
    muster_completion entry;
    EXPECT(muster_queue_create(contexts[1], NULL, &queue, NULL), MUSTER_OK);
    EXPECT(muster_queue_post(queue, 1, 1), MUSTER_OK);
    EXPECT(muster_queue_next(queue, SECOND, &entry, NULL), MUSTER_OK);
    muster_queue_release(queue);
    EXPECT(muster_context_close(contexts[1], 20 * SECOND), MUSTER_OK);
    muster_context_release(contexts[1]);
}

static void unauthenticated_peers_stay_out(void) {
    muster_context *contexts[2]; // each made a secret of its own
    for (int i = 0; i < 2; i++) EXPECT(muster_context_create(NULL, &contexts[i], NULL), MUSTER_OK);
    const char *const schemes[] = {"tcp", "unix", "shm"};
    for (int i = 0; i < 3; i++) {
        char address[256];
        size_t bytes;
        muster_listener *listener;
        muster_stream *stream;
        workout_address(schemes[i], address, sizeof address);
        EXPECT(muster_transport_listen(contexts[0], address, strlen(address), NULL, &listener, NULL), MUSTER_OK);
        EXPECT(muster_listener_address(listener, address, sizeof address, &bytes), MUSTER_OK);
        EXPECT(muster_transport_dial(contexts[1], address, bytes, NULL, 20 * SECOND, &stream, NULL), MUSTER_E_AUTH);
        EXPECT(muster_listener_accept(listener, 0, &stream, NULL), MUSTER_AGAIN);
        muster_listener_release(listener);
    }
    for (int i = 0; i < 2; i++) muster_context_release(contexts[i]);
}

// The user data of a wake function, freed (and filled) as soon as it is detached.
typedef struct sleeper {
    atomic_int inside;
    uint64_t mark;
} sleeper;

enum { alive = 0x600d, dead = 0xdead };

static int wake(void *user) {
    sleeper *s = user;
    atomic_fetch_add(&s->inside, 1);
    if (s->mark != alive) {
        fprintf(stderr, "a wake function was called after it was detached\n");
        _exit(89);
    }
    atomic_fetch_sub(&s->inside, 1);
    return 0;
}

static atomic_int stop;

static void *keep_posting(void *queue) {
    while (!atomic_load(&stop)) {
        if (muster_queue_post(queue, 1, 1) != MUSTER_OK) sched_yield();
        muster_completion entry;
        while (muster_queue_next(queue, 0, &entry, NULL) == MUSTER_OK) {
        }
    }
    return NULL;
}

static void wake_detached_while_called(void) {
    muster_context *context;
    muster_queue *queue;
    EXPECT(muster_context_create(NULL, &context, NULL), MUSTER_OK);
    EXPECT(muster_queue_create(context, NULL, &queue, NULL), MUSTER_OK);
    pthread_t posters[2];
    for (int i = 0; i < 2; i++) pthread_create(&posters[i], NULL, keep_posting, queue);
    const int64_t end = guest_now_ns() + SECOND;
    for (int round = 0; guest_now_ns() < end; round++) {
        sleeper *s = malloc(sizeof *s);
        *s = (sleeper){0, alive};
        EXPECT(muster_queue_set_wake(queue, wake, s), MUSTER_OK);
        if (round % 3 == 0) sched_yield();
        EXPECT(muster_queue_set_wake(queue, NULL, NULL), MUSTER_OK);
        CHECK(atomic_load(&s->inside) == 0);
        s->mark = dead;
        free(s);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < 2; i++) pthread_join(posters[i], NULL);
    EXPECT(muster_queue_close(queue), MUSTER_OK);
    muster_queue_release(queue);
    muster_context_release(context);
}

int main(void) {
    guest_run("release while another thread is inside", release_while_in_use, 0, 1);
    guest_run("threads cancelled while inside", threads_cancelled_while_inside, 0, 1);
    guest_run("threads cancelled before they enter", threads_cancelled_before, 0, 1);
    guest_run("two contexts in one process", two_contexts, 0, 3);
    guest_run("two contexts with secrets of their own", unauthenticated_peers_stay_out, 0, 1);
    guest_run("a wake function detached while it is called", wake_detached_while_called, 0, 1);
    return guest_result();
}
