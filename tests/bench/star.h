/* SPDX-License-Identifier: MIT */
/* A star of Muster's: the broker in a process of its own, and the addresses of its members. */
#ifndef MUSTER_TESTS_BENCH_STAR_H
#define MUSTER_TESTS_BENCH_STAR_H

#include "muster.h"

#include <muster/broker.h>

#include <malloc.h>

/* Ten thousand members on two cores take their time. */
static const int64_t patience_ns = 600000000000;

struct star {
    const char *over;    /* introduced, through, through-no-curve */
    const char *options; /* of its members' addresses */
    uint32_t flags;      /* of the broker */
    char place[128];     /* host:port */
    pid_t broker;
    int ask, told;      /* to the broker, and its answers */
    int answers, asked; /* the broker's ends */
};

/* Each byte asks for the figures; the end of the pipe ends the broker. */
static inline void broker_process(void *argument) {
    struct star *s = argument;
    close(s->ask), close(s->told);
    mallopt(M_MMAP_THRESHOLD, 32 * 1024 * 1024); /* as `muster broker` does */
    mallopt(M_TRIM_THRESHOLD, 256 * 1024 * 1024);
    mallopt(M_TOP_PAD, 4 * 1024 * 1024);
    muster_context *c = context();
    muster_broker *broker;
    muster_error error;
    static const char any[] = "zmq://127.0.0.1:0/";
    const muster_broker_config config = {.struct_size = sizeof config, .flags = s->flags};
    check("broker", muster_broker_open(c, any, sizeof any - 1, &config, &broker, &error), &error);
    size_t size = 0;
    char address[sizeof s->place] = "";
    check("address of the broker", muster_broker_address(broker, address, sizeof address, &size), NULL);
    if (write(s->answers, address, sizeof address) != sizeof address) die_errno("write");
    for (char question; read(s->asked, &question, 1) == 1;) {
        muster_broker_stats stats;
        check("stats", muster_broker_get_stats(broker, &stats), NULL);
        if (write(s->answers, &stats, sizeof stats) != sizeof stats) die_errno("write");
    }
    muster_broker_close(broker, 0);
    muster_broker_release(broker);
    check("close", muster_context_close(c, 10000000000), NULL);
    muster_context_release(c);
}

/* Forks the broker: before there is a context. */
static inline void star_begin(struct star *s, const char *over) {
    const int curve = strstr(over, "no-curve") == NULL;
    s->over = over;
    s->flags = curve ? 0 : MUSTER_BROKER_NO_CURVE;
    s->options = !strcmp(over, "introduced") ? "" : curve ? "?upgrade=no" : "?upgrade=no&curve=no";
    int there[2], back[2];
    if (pipe(there) != 0 || pipe(back) != 0) die_errno("pipe");
    s->asked = there[0], s->ask = there[1], s->told = back[0], s->answers = back[1];
    s->broker = start_process(broker_process, s);
    close(s->asked), close(s->answers);
    char address[sizeof s->place];
    if (read(s->told, address, sizeof address) != sizeof address) die("broker", "it has not begun");
    const char *from = address + strlen("zmq://");
    snprintf(s->place, sizeof s->place, "%.*s", (int)strcspn(from, "/"), from);
}
static inline void star_end(struct star *s) {
    close(s->ask);
    join_process(s->broker);
}
static inline muster_broker_stats star_stats(struct star *s) {
    muster_broker_stats stats;
    if (write(s->ask, "?", 1) != 1 || read(s->told, &stats, sizeof stats) != sizeof stats) die("broker", "gone");
    return stats;
}

static inline size_t star_address(const struct star *s, const char *name, char out[static 256]) {
    return (size_t)snprintf(out, 256, "zmq://%s@%s/%s%s", name, s->place, name, s->options);
}
static inline muster_listener *star_listen(const struct star *s, muster_context *c, const char *name) {
    char address[256];
    const size_t size = star_address(s, name, address);
    muster_listener *listener;
    muster_error error;
    check("listen", muster_transport_listen(c, address, size, NULL, &listener, &error), &error);
    return listener;
}
/* Both wait until somebody listens there. Each service of a process is to have a name of its own. */
static const muster_transport_config star_dialling = {.struct_size = sizeof star_dialling, .retry_ns = 10000000000};
static inline muster_stream *star_dial(const struct star *s, muster_context *c, const char *name) {
    char address[256];
    const size_t size = star_address(s, name, address);
    muster_stream *stream;
    muster_error error;
    check("dial", muster_transport_dial(c, address, size, &star_dialling, patience_ns, &stream, &error), &error);
    return stream;
}
static inline void star_dial_begin(const struct star *s, muster_context *c, const char *name, muster_queue *queue,
                                   uint64_t tag) {
    char address[256];
    const size_t size = star_address(s, name, address);
    muster_error error;
    check("dial", muster_transport_dial_begin(c, address, size, &star_dialling, patience_ns, queue, tag, &error),
          &error);
}
static inline muster_stream *star_accept(muster_listener *listener) {
    muster_stream *stream;
    muster_error error;
    check("accept", muster_listener_accept(listener, patience_ns, &stream, &error), &error);
    return stream;
}
static inline void star_leave(muster_context *c, muster_stream *stream) {
    muster_stream_close(stream, 10000000000);
    muster_stream_release(stream);
    check("close", muster_context_close(c, 10000000000), NULL);
    muster_context_release(c);
}

#endif
