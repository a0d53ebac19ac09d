// SPDX-License-Identifier: MIT
// ctest: quick timeout=120
// Hosts that dlclose() the library: its threads may still run, so the code stays; the host goes on, and may load it
// again.
#include "guest.h"
#include "workout.h"

#include <dlfcn.h>

static void *load(workout_api *api) {
    CHECK(getenv("MUSTER_LIBRARY") != NULL);
    void *library = dlopen(getenv("MUSTER_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
    CHECK(library != NULL);
    workout_find(api, library);
    return library;
}

static void after_an_orderly_end(void) {
    for (int i = 0; i < 5; i++) {
        workout_api api;
        void *library = load(&api);
        workout(&api);
        CHECK(dlclose(library) == 0);
    }
}

static int wake(void *user) {
    (void)user;
    return 0;
}

// A context with a thread, a wake function and a child that ends later is simply left.
static void with_everything_alive(void) {
    for (int i = 0; i < 5; i++) {
        workout_api api;
        void *library = load(&api);
        muster_context *context;
        muster_queue *queue;
        muster_stream *streams[8];
        muster_process_config child;
        const char *const argv[] = {"sleep", "0.02", NULL};
        EXPECT(api.muster_context_create(NULL, &context, NULL), MUSTER_OK);
        EXPECT(api.muster_queue_create(context, NULL, &queue, NULL), MUSTER_OK);
        EXPECT(api.muster_queue_set_wake(queue, wake, NULL), MUSTER_OK);
        EXPECT(api.muster_config_init(&child, sizeof child), MUSTER_OK);
        child.argv = argv;
        muster_process *process;
        EXPECT(api.muster_process_spawn(context, &child, &process, NULL), MUSTER_OK);
        EXPECT(api.muster_process_watch(process, queue, 1), MUSTER_OK);
        const char *const schemes[] = {"inproc", "tcp", "unix", "shm"};
        for (int s = 0; s < 4; s++) {
            char address[256];
            workout_address(schemes[s], address, sizeof address);
            workout_connect(&api, context, address, &streams[2 * s], &streams[2 * s + 1]);
        }
        CHECK(dlclose(library) == 0);
        usleep(50000); // the child ends, the loop works on

        // The functions are still there, for finalizers that come late.
        muster_completion entry;
        EXPECT(api.muster_queue_next(queue, 20 * SECOND, &entry, NULL), MUSTER_OK);
        CHECK(entry.kind == MUSTER_DONE_EXIT);
        for (int s = 0; s < 8; s += 2) workout_talk(&api, streams[s], streams[s + 1]);
        if (i % 2) { // left for ever, as far as the library knows
            static void *kept[5][11];
            memcpy(kept[i], streams, sizeof streams);
            kept[i][8] = process;
            kept[i][9] = queue;
            kept[i][10] = context;
            continue;
        }
        for (int s = 0; s < 8; s++) api.muster_stream_release(streams[s]);
        api.muster_process_release(process);
        EXPECT(api.muster_queue_close(queue), MUSTER_OK);
        api.muster_queue_release(queue);
        api.muster_context_release(context);
    }
}

static void and_exit(void) {
    with_everything_alive();
    exit(31);
}

int main(void) {
    guest_run("dlclose after an orderly end", after_an_orderly_end, 0, 1);
    guest_run("dlclose with everything alive", with_everything_alive, 0, 2);
    guest_run("dlclose with everything alive, then exit", and_exit, 31, 2);
    return guest_result();
}
