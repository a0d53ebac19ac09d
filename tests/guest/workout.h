// SPDX-License-Identifier: MIT
// The library's functions, linked or found by dlsym(), and a quick use of all its rooms.
#ifndef MUSTER_TESTS_WORKOUT_H
#define MUSTER_TESTS_WORKOUT_H

#include <muster/process.h>
#include <muster/transport.h>

#define WORKOUT_FUNCTIONS(X)                                                                                           \
    X(muster_version)                                                                                                  \
    X(muster_config_init)                                                                                              \
    X(muster_context_create)                                                                                           \
    X(muster_context_close)                                                                                            \
    X(muster_context_release)                                                                                          \
    X(muster_queue_create)                                                                                             \
    X(muster_queue_next)                                                                                               \
    X(muster_queue_post)                                                                                               \
    X(muster_queue_set_wake)                                                                                           \
    X(muster_queue_close)                                                                                              \
    X(muster_queue_release)                                                                                            \
    X(muster_process_spawn)                                                                                            \
    X(muster_process_watch)                                                                                            \
    X(muster_process_wait)                                                                                             \
    X(muster_process_kill)                                                                                             \
    X(muster_process_release)                                                                                          \
    X(muster_transport_listen)                                                                                         \
    X(muster_transport_dial)                                                                                           \
    X(muster_listener_address)                                                                                         \
    X(muster_listener_accept)                                                                                          \
    X(muster_listener_release)                                                                                         \
    X(muster_stream_pair)                                                                                              \
    X(muster_stream_write)                                                                                             \
    X(muster_stream_read_into)                                                                                         \
    X(muster_stream_close)                                                                                             \
    X(muster_stream_release)

typedef struct workout_api {
#define X(name) __typeof__(&name) name;
    WORKOUT_FUNCTIONS(X)
#undef X
} workout_api;

// From a handle of dlopen(). Ends the process when one is missing.
void workout_find(workout_api *api, void *library);

// Uses every room once: threaded and external, queue, wake function, child process, pair, and each built-in transport.
// Ends the process when something is not as it should be.
void workout(const workout_api *api);

// Two connected streams over an address like "tcp://127.0.0.1:0".
void workout_connect(const workout_api *api, muster_context *context, const char *address, muster_stream **out_dialled,
                     muster_stream **out_accepted);

// Bytes both ways.
void workout_talk(const workout_api *api, muster_stream *one, muster_stream *other);

// A unique address for a scheme ("tcp", "unix", "shm", "inproc").
void workout_address(const char *scheme, char *out_address, size_t capacity);

#endif
