// SPDX-License-Identifier: MIT
#include "workout.h"

#include "guest.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#ifdef MUSTER_TSAN
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) {
    // Children of a fork start threads here, and hosts leave with threads that run.
    return "die_after_fork=0:report_thread_leaks=0";
}
#endif

void workout_find(workout_api *api, void *library) {
#define X(name)                                                                                                        \
    *(void **)&api->name = dlsym(library, #name);                                                                      \
    CHECK(api->name != NULL);
    WORKOUT_FUNCTIONS(X)
#undef X
}

void workout_address(const char *scheme, char *out_address, size_t capacity) {
    static atomic_int count;
    const int id = atomic_fetch_add(&count, 1);
    if (strcmp(scheme, "tcp") == 0)
        snprintf(out_address, capacity, "tcp://127.0.0.1:0");
    else if (strcmp(scheme, "unix") == 0)
        snprintf(out_address, capacity, "unix://@muster-guest-%d-%d", (int)getpid(), id);
    else
        snprintf(out_address, capacity, "%s://guest-%d-%d", scheme, (int)getpid(), id);
}

typedef struct dialling {
    const workout_api *api;
    muster_context *context;
    const char *address;
    size_t address_bytes;
    muster_stream *stream;
    muster_status status;
    muster_error error;
} dialling;

static void *dial(void *argument) {
    dialling *d = argument;
    d->status = d->api->muster_transport_dial(d->context, d->address, d->address_bytes, NULL, 20 * SECOND, &d->stream,
                                              &d->error);
    return NULL;
}

void workout_connect(const workout_api *api, muster_context *context, const char *address, muster_stream **out_dialled,
                     muster_stream **out_accepted) {
    muster_listener *listener;
    muster_error error;
    char real[256];
    size_t bytes = 0;
    if (api->muster_transport_listen(context, address, strlen(address), NULL, &listener, &error) != MUSTER_OK) {
        fprintf(stderr, "listen %s: %s\n", address, error.message);
        _exit(98);
    }
    EXPECT(api->muster_listener_address(listener, real, sizeof real, &bytes), MUSTER_OK);
    dialling d = {api, context, real, bytes, NULL, MUSTER_OK, {0}};
    pthread_t dialler;
    CHECK(pthread_create(&dialler, NULL, dial, &d) == 0);
    const muster_status accepted = api->muster_listener_accept(listener, 20 * SECOND, out_accepted, &error);
    int cancel_state; // the caller may be cancelled; that is for the library to meet, not for this join
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    pthread_join(dialler, NULL);
    pthread_setcancelstate(cancel_state, NULL);
    if (d.status != MUSTER_OK || accepted != MUSTER_OK) {
        fprintf(stderr, "%s: dial %d %s, accept %d\n", address, d.status, d.error.message, accepted);
        _exit(98);
    }
    *out_dialled = d.stream;
    api->muster_listener_release(listener);
}

void workout_talk(const workout_api *api, muster_stream *one, muster_stream *other) {
    char sent[3000], got[sizeof sent];
    for (size_t i = 0; i < sizeof sent; i++) sent[i] = (char)(i * 7);
    for (int way = 0; way < 2; way++) {
        muster_stream *from = way ? other : one, *to = way ? one : other;
        size_t bytes = 0;
        memset(got, 0, sizeof got);
        EXPECT(api->muster_stream_write(from, sent, sizeof sent, 20 * SECOND, &bytes), MUSTER_OK);
        EXPECT(api->muster_stream_read_into(to, got, sizeof got, 0, 20 * SECOND, &bytes), MUSTER_OK);
        CHECK(memcmp(sent, got, sizeof sent) == 0);
    }
}

static int count_wake(void *user) {
    atomic_fetch_add((atomic_int *)user, 1);
    return 0;
}

static void work_with(const workout_api *api, uint32_t flags) {
    muster_context_config config;
    EXPECT(api->muster_config_init(&config, sizeof config), MUSTER_OK);
    config.flags = flags;
    muster_context *context;
    EXPECT(api->muster_context_create(&config, &context, NULL), MUSTER_OK);

    muster_queue *queue;
    muster_completion entry;
    atomic_int wakes = 0;
    EXPECT(api->muster_queue_create(context, NULL, &queue, NULL), MUSTER_OK);
    EXPECT(api->muster_queue_set_wake(queue, count_wake, &wakes), MUSTER_OK);
    EXPECT(api->muster_queue_post(queue, 1, 2), MUSTER_OK);
    EXPECT(api->muster_queue_next(queue, 20 * SECOND, &entry, NULL), MUSTER_OK);
    CHECK(entry.bytes == 2);

    const char *const argv[] = {"true", NULL};
    muster_process_config child;
    EXPECT(api->muster_config_init(&child, sizeof child), MUSTER_OK);
    child.argv = argv;
    muster_process *process;
    EXPECT(api->muster_process_spawn(context, &child, &process, NULL), MUSTER_OK);
    EXPECT(api->muster_process_watch(process, queue, 3), MUSTER_OK);
    EXPECT(api->muster_queue_next(queue, 20 * SECOND, &entry, NULL), MUSTER_OK);
    CHECK(entry.kind == MUSTER_DONE_EXIT && entry.tag == 3);
    api->muster_process_release(process);

    muster_stream *one, *other;
    EXPECT(api->muster_stream_pair(context, NULL, &one, &other, NULL), MUSTER_OK);
    workout_talk(api, one, other);
    api->muster_stream_release(one);
    api->muster_stream_release(other);

    const char *const schemes[] = {"inproc", "tcp", "unix", "shm"};
    for (int i = 0; i < 4; i++) {
        char address[256];
        workout_address(schemes[i], address, sizeof address);
        workout_connect(api, context, address, &one, &other);
        workout_talk(api, one, other);
        EXPECT(api->muster_stream_close(one, 20 * SECOND), MUSTER_OK);
        api->muster_stream_release(one);
        api->muster_stream_release(other);
    }

    EXPECT(api->muster_queue_close(queue), MUSTER_OK);
    api->muster_queue_release(queue);
    EXPECT(api->muster_context_close(context, 20 * SECOND), MUSTER_OK);
    api->muster_context_release(context);
}

void workout(const workout_api *api) {
    CHECK(strlen(api->muster_version(NULL, NULL, NULL)) >= 5);
    work_with(api, 0);
    work_with(api, MUSTER_CONTEXT_EXTERNAL);
}
