// SPDX-License-Identifier: MIT
// The two sides of one_way.sh:  one_way worker|master <broker's host:port> <own host>
// The worker's host lets nobody connect to it. Each side listens in the star under its name, offers a connection of its
// own as well, and answers; each dials the other, and says how the bytes went.
#include "star.h"

#include <stdbool.h>

static uint64_t upgrades(muster_context *context) {
    muster_context_stats stats;
    muster_context_get_stats(context, &stats);
    return stats.upgrades;
}

static int wrong(const char *what, const muster_error *error) {
    printf("wrong: %s: %s\n", what, error->message);
    return 1;
}

static bool echo_works(muster_stream *stream) {
    enum { size = 300000 };
    static unsigned char out[size], back[size];
    size_t moved = 0;
    for (size_t i = 0; i < size; i++) out[i] = pattern(i);
    return muster_stream_write(stream, out, size, 20 * SECOND, &moved) == MUSTER_OK &&
           muster_stream_read_into(stream, back, size, 0, 20 * SECOND, &moved) == MUSTER_OK &&
           memcmp(out, back, size) == 0;
}

static void *answer(void *argument) {
    static unsigned char piece[65536];
    muster_listener *listener = argument;
    muster_stream *stream;
    size_t moved;
    while (muster_listener_accept(listener, -1, &stream, NULL) == MUSTER_OK) {
        while (muster_stream_read(stream, piece, sizeof piece, -1, &moved) == MUSTER_OK)
            if (muster_stream_write(stream, piece, moved, 20 * SECOND, &moved) != MUSTER_OK) break;
        muster_stream_close(stream, 5 * SECOND);
        muster_stream_release(stream);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    const bool master = strcmp(argv[1], "master") == 0;
    muster_context *context = make_context(0, SECRET);
    muster_listener *listener, *plain;
    muster_error error = {0};
    muster_stream *stream = NULL;
    char where[256];
    const muster_transport_config patient = {.struct_size = sizeof patient, .retry_ns = 20 * SECOND};
    snprintf(where, sizeof where, "tcp://%s:7001", argv[3]);
    if (muster_transport_listen(context, where, strlen(where), NULL, &plain, &error) != 0) return wrong(where, &error);
    snprintf(where, sizeof where, "zmq://%s@%s/?direct=%s:0", argv[1], argv[2], argv[3]);
    if (muster_transport_listen(context, where, strlen(where), &patient, &listener, &error) != 0)
        return wrong(where, &error);
    pthread_t thread;
    pthread_create(&thread, NULL, answer, listener);
    snprintf(where, sizeof where, "zmq://%s@%s/", master ? "worker" : "master", argv[2]);
    if (muster_transport_dial(context, where, strlen(where), &patient, 20 * SECOND, &stream, &error) != 0)
        return wrong(where, &error);
    if (!echo_works(stream)) return wrong("echo", &error);
    printf("%s: %s\n", argv[1], upgrades(context) == 1 ? "direct" : "through the broker");
    fflush(stdout);
    muster_stream_release(stream);
    if (master) { // no process connects to the worker's host, even if it knows the address
        const char *direct = getenv("WORKER_TCP");
        if (muster_transport_dial(context, direct, strlen(direct), NULL, SECOND, &stream, &error) == MUSTER_OK)
            return wrong("the firewall lets connections in", &error);
        printf("master: no connection to %s\n", direct);
    }
    fflush(stdout);
    while (getchar() != EOF) { // the other one may not be ready yet
    }
    muster_listener_close(listener);
    pthread_join(thread, NULL);
    muster_listener_release(listener);
    muster_listener_release(plain);
    muster_context_close(context, 5 * SECOND);
    muster_context_release(context);
    return 0;
}
