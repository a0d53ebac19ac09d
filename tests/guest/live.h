// SPDX-License-Identifier: MIT
// A context with everything in it alive, for hosts that fork, exit or unload in the middle of it.
#ifndef MUSTER_TESTS_LIVE_H
#define MUSTER_TESTS_LIVE_H

#include "guest.h"
#include "workout.h"

#include <pthread.h>

static const workout_api live_api = {
#define X(name) .name = name,
    WORKOUT_FUNCTIONS(X)
#undef X
};

enum { live_streams = 8, live_listeners = 4 };

typedef struct live {
    muster_context *context;
    muster_queue *queue;
    muster_process *process;
    muster_stream *streams[live_streams]; // pairs of ends: inproc, tcp, unix, shm
    muster_listener *listeners[live_listeners];
    int32_t queue_fd;
} live;

static inline int live_wake(void *user) {
    (void)user;
    return 0;
}

static inline void live_begin(live *l, uint32_t flags) {
    muster_context_config config;
    muster_config_init(&config, sizeof config);
    config.flags = flags;
    EXPECT(muster_context_create(&config, &l->context, NULL), MUSTER_OK);
    EXPECT(muster_queue_create(l->context, NULL, &l->queue, NULL), MUSTER_OK);
    EXPECT(muster_queue_set_wake(l->queue, live_wake, NULL), MUSTER_OK);
    EXPECT(muster_queue_fd(l->queue, &l->queue_fd), MUSTER_OK);
    const char *const argv[] = {"sleep", "20", NULL};
    muster_process_config child;
    muster_config_init(&child, sizeof child);
    child.argv = argv;
    EXPECT(muster_process_spawn(l->context, &child, &l->process, NULL), MUSTER_OK);
    const char *const schemes[] = {"inproc", "tcp", "unix", "shm"};
    for (int i = 0; i < 4; i++) {
        char address[256];
        workout_address(schemes[i], address, sizeof address);
        workout_connect(&live_api, l->context, address, &l->streams[2 * i], &l->streams[2 * i + 1]);
        workout_talk(&live_api, l->streams[2 * i], l->streams[2 * i + 1]);
        workout_address(schemes[i], address, sizeof address);
        EXPECT(muster_transport_listen(l->context, address, strlen(address), NULL, &l->listeners[i], NULL), MUSTER_OK);
        EXPECT(muster_stream_watch(l->streams[2 * i], MUSTER_STREAM_READABLE, l->queue, 1), MUSTER_OK);
    }
}

static inline void live_talk(const live *l) {
    for (int i = 0; i < live_streams; i += 2) workout_talk(&live_api, l->streams[i], l->streams[i + 1]);
}

static inline void live_end(live *l) {
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    close(l->queue_fd);
    pthread_setcancelstate(cancel_state, NULL);
    muster_process_kill(l->process, SIGKILL);
    EXPECT(muster_process_wait(l->process, 20 * SECOND, NULL), MUSTER_OK);
    muster_process_release(l->process);
    for (int i = 0; i < live_streams; i++) muster_stream_release(l->streams[i]);
    for (int i = 0; i < live_listeners; i++) muster_listener_release(l->listeners[i]);
    EXPECT(muster_queue_close(l->queue), MUSTER_OK);
    muster_queue_release(l->queue);
    CHECK(muster_context_close(l->context, 20 * SECOND) >= 0);
    muster_context_release(l->context);
}

#endif
