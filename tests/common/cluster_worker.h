// SPDX-License-Identifier: MIT
// The worker of the tests of clusters: the test's own program, started again. It does what the label of a stream says.
#ifndef CLUSTER_WORKER_H
#define CLUSTER_WORKER_H

#include "thread_sanitizer.h"

#include <muster/worker.h>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int64_t ms = 1000000, second = 1000000000;

static _Atomic int interrupts; // lock-free: used by a handler, and by a thread that it notifies
static inline void count_interrupt(int number) {
    (void)number;
    interrupts++;
}

// A moment of work that looks at nothing of Muster's. (Under TSan a handler runs only at calls it knows.)
static inline void compute(void) {
    if (UNDER_THREAD_SANITIZER) usleep(1000);
}

static inline void say(muster_stream *stream, const char *text) {
    size_t moved;
    muster_stream_write(stream, text, strlen(text), 10 * second, &moved);
    muster_stream_finish(stream);
}

// All that comes, until its end.
static inline size_t hear(muster_stream *stream, char *text, size_t room) {
    size_t all = 0, moved = 0;
    while (all + 1 < room && muster_stream_read(stream, text + all, room - 1 - all, 20 * second, &moved) == MUSTER_OK)
        all += moved;
    text[all] = '\0';
    return all;
}

static inline void echo(muster_stream *stream) {
    static char piece[65536];
    size_t moved = 0, sent;
    while (muster_stream_read(stream, piece, sizeof piece, -1, &moved) == MUSTER_OK)
        if (muster_stream_write(stream, piece, moved, -1, &sent) != MUSTER_OK) break;
    muster_stream_finish(stream);
}

// A sum that notices what is missing, changed or in another place.
static inline uint64_t sum_of(const void *data, uint64_t size) {
    const unsigned char *at = data;
    uint64_t sum = size;
    for (uint64_t i = 0; i < size; i += 997) sum = sum * 31 + at[i];
    return size ? sum * 31 + at[size - 1] : sum;
}

// What was broadcast to this worker last, how often, and what it says of it.
static char heard_last[400] = "nothing";
static int heard_broadcasts;
static inline void hear_broadcast(const muster_cluster_event *event) {
    snprintf(heard_last, sizeof heard_last, "%d from %u: %s %llu %llx", ++heard_broadcasts, event->member, event->label,
             (unsigned long long)event->size_bytes, (unsigned long long)sum_of(event->data, event->size_bytes));
    muster_broadcast_release(event->broadcast);
}

static inline unsigned char *pattern(uint64_t size, unsigned seed) {
    unsigned char *const data = malloc(size ? size : 1);
    for (uint64_t i = 0; data && i < size; i++) data[i] = (unsigned char)(i * 7 + (i >> 13) + seed);
    return data;
}

// A worker broadcasts to all members from `first` to `last` but itself.
static inline void broadcast_as_told(muster_cluster *cluster, int first, int last, long size, char *text, size_t room) {
    uint32_t members[64];
    size_t count = 0;
    for (int i = first; i <= last && count < 64; i++)
        if ((uint32_t)i != muster_cluster_self(cluster)) members[count++] = (uint32_t)i;
    unsigned char *const data = pattern((uint64_t)size, muster_cluster_self(cluster));
    muster_error error = {0};
    const muster_status status =
        muster_cluster_broadcast(cluster, members, count, "theirs", 6, data, (uint64_t)size, 20 * second, NULL, &error);
    if (status != MUSTER_OK) snprintf(text, room, "%s: %s", muster_status_name(status), error.message);
    free(data);
}

// Says something to a member that echoes: NULL, or what went wrong.
static inline const char *talk_to(muster_cluster *cluster, uint32_t member) {
    static char text[300];
    muster_error error = {0};
    muster_stream *stream = NULL;
    const muster_status status = muster_cluster_dial(cluster, member, "echo", 4, 20 * second, &stream, &error);
    if (status != MUSTER_OK) {
        snprintf(text, sizeof text, "%s: %s", muster_status_name(status), error.message);
        return text;
    }
    say(stream, "how are you?");
    char heard[64];
    hear(stream, heard, sizeof heard);
    muster_stream_close(stream, second);
    muster_stream_release(stream);
    if (strcmp(heard, "how are you?") == 0) return NULL;
    snprintf(text, sizeof text, "it answers '%s'", heard);
    return text;
}

static inline void do_as_told(muster_cluster *cluster, muster_stream *stream, const char *label) {
    char text[400] = "done";
    int number = 0, last = 0;
    long size = 0;
    if (strcmp(label, "echo") == 0) {
        echo(stream);
        return;
    }
    if (sscanf(label, "talk %d", &number) == 1) {
        const char *const wrong = talk_to(cluster, (uint32_t)number);
        if (wrong) snprintf(text, sizeof text, "%s", wrong);
    } else if (sscanf(label, "exit %d", &number) == 1) {
        exit(number);
    } else if (sscanf(label, "broadcast %d %d %ld", &number, &last, &size) == 3) {
        broadcast_as_told(cluster, number, last, size, text, sizeof text);
    } else if (strcmp(label, "heard") == 0) {
        snprintf(text, sizeof text, "%s", heard_last);
    } else if (strcmp(label, "self") == 0) {
        snprintf(text, sizeof text, "%u", muster_cluster_self(cluster));
    } else if (strcmp(label, "compute") == 0) { // looks at nothing of Muster's
        say(stream, "computing");
        while (interrupts == 0) compute();
        interrupts = 0;
        return;
    } else if (strcmp(label, "forever") == 0) {
        say(stream, "computing");
        for (;;) {
        }
    } else if (strcmp(label, "next") == 0) { // the next event
        muster_cluster_event event;
        if (muster_cluster_next_event(cluster, 20 * second, &event) == MUSTER_OK)
            snprintf(text, sizeof text, "%u of %u: %s", event.kind, event.member, event.text);
    } else {
        snprintf(text, sizeof text, "what is %s?", label);
    }
    say(stream, text);
}

// `stay`: it does not leave on request.
static inline int work_in(muster_context *context, muster_cluster *cluster, int stay) {
    muster_cluster_event event;
    int code = 42;
    while (muster_cluster_next_event(cluster, -1, &event) == MUSTER_OK) {
        if (event.kind == MUSTER_CLUSTER_STREAM) {
            do_as_told(cluster, event.stream, event.label);
            muster_stream_close(event.stream, second);
            muster_stream_release(event.stream);
        } else if (event.kind == MUSTER_CLUSTER_BROADCAST) {
            hear_broadcast(&event);
        } else if (event.kind == MUSTER_CLUSTER_LEAVE && !stay) {
            muster_cluster_close(cluster, -1);
            code = 0;
        } else if (event.kind == MUSTER_CLUSTER_MASTER_GONE) {
            code = 43;
        }
    }
    muster_cluster_release(cluster);
    muster_context_close(context, second);
    muster_context_release(context);
    return code;
}

// `stay`: it does not leave on request. `apart`: it shares no memory. `limit`: of broadcasts that wait. `connections`:
// at most, 0: the default.
static inline int work(uint32_t flags, int stay, int apart, uint64_t limit, uint32_t connections) {
    signal(SIGINT, count_interrupt);
    muster_error error = {0};
    muster_context *context = NULL;
    muster_cluster *cluster = NULL;
    muster_context_config context_config;
    muster_config_init(&context_config, sizeof context_config);
    context_config.flags = apart ? MUSTER_CONTEXT_NO_UPGRADE : 0;
    if (muster_worker_context(&context_config, 0, &context, &error) != MUSTER_OK) {
        fprintf(stderr, "worker: %s\n", error.message);
        return 40;
    }
    muster_worker_config config;
    muster_config_init(&config, sizeof config);
    config.flags = flags;
    config.max_broadcast_bytes = limit;
    config.max_connections = connections;
    if (muster_worker_start(context, &config, 20 * second, &cluster, &error) != MUSTER_OK) {
        fprintf(stderr, "worker: %s\n", error.message);
        return 41;
    }
    return work_in(context, cluster, stay);
}

// As if on another host: in the network of the process that OTHER_HOST names.
static inline int work_elsewhere(void) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/net", atoi(getenv("OTHER_HOST")));
    const int network = open(path, O_RDONLY | O_CLOEXEC);
    if (network < 0 || setns(network, CLONE_NEWNET) != 0) return 44;
    close(network);
    return work(MUSTER_WORKER_EXIT_WITH_MASTER, 0, 0, 0, 0);
}

// main() of such a test begins with it: >= 0 is the exit code of a worker.
static inline int work_if_asked(int argc, char **argv) {
    if (argc < 2) return -1;
    const uint32_t both = MUSTER_WORKER_EXIT_WITH_MASTER | MUSTER_WORKER_RAISE_INTERRUPT;
    if (strcmp(argv[1], "worker") == 0) return work(both, 0, 0, 0, 0);
    if (strcmp(argv[1], "stubborn") == 0) return work(both, 1, 0, 0, 0);
    if (strcmp(argv[1], "apart") == 0) return work(both, 0, 1, 0, 0);
    if (strcmp(argv[1], "small") == 0) return work(both, 0, 0, 1000000, 0);
    if (strcmp(argv[1], "elsewhere") == 0) return work_elsewhere();
    if (strcmp(argv[1], "bound") == 0) return work(both, 0, 0, 0, 4);
    return -1;
}

#endif
