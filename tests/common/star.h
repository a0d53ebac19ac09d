// SPDX-License-Identifier: MIT
// Stars for tests: brokers and members in one process, each with a context of its own.
#ifndef STAR_H
#define STAR_H

#include "transport_pair.h"

#include <muster/broker.h>
#include <muster/plugin.h>

typedef struct broker {
    muster_context *context;
    muster_broker *broker;
    char address[256], place[128]; // zmq://host:port/ and options, host:port
    char options[128];             // what members need: broker=KEY, or nothing
} broker;

#define BROKER_SECRET "a secret that brokers alone have"

// What start_broker() and start_broker_at() give to a broker; NULL: no broker secret.
static const char *broker_secret;

typedef struct member {
    muster_context *context;
    muster_listener *listener;
    char address[512];
} member;

static inline muster_status try_configured_broker(broker *b, const char *secret, const char *at,
                                                  const muster_broker_config *config, muster_error *error) {
    b->context = make_context(0, secret);
    const muster_status status = muster_broker_open(b->context, at, strlen(at), config, &b->broker, error);
    if (status != MUSTER_OK) {
        assert_null(b->broker);
        assert_true(error->message[0] != '\0');
        muster_context_release(b->context);
        return status;
    }
    size_t bytes;
    assert_int_equal(muster_broker_address(b->broker, b->address, sizeof b->address, &bytes), MUSTER_OK);
    assert_int_equal(bytes, strlen(b->address));
    assert_memory_equal(b->address, "zmq://", 6);
    snprintf(b->place, sizeof b->place, "%s", b->address + 6);
    b->place[strcspn(b->place, "/")] = '\0';
    const char *options = strchr(b->address, '?');
    snprintf(b->options, sizeof b->options, "%s", options != NULL ? options + 1 : "");
    return MUSTER_OK;
}

static inline muster_status try_broker(broker *b, const char *secret, const char *at, uint32_t flags,
                                       const char *parent, muster_error *error) {
    muster_broker_config config = {.struct_size = sizeof config, .flags = flags};
    config.parent = parent;
    config.parent_bytes = parent != NULL ? strlen(parent) : 0;
    config.window_bytes = 1 << 20;
    config.broker_secret = broker_secret;
    config.broker_secret_bytes = broker_secret != NULL ? strlen(broker_secret) : 0;
    return try_configured_broker(b, secret, at, &config, error);
}

static inline broker start_broker_at(const char *at, uint32_t flags, const char *parent) {
    broker b = {0};
    muster_error error = {0};
    if (try_broker(&b, SECRET, at, flags, parent, &error) == MUSTER_OK) return b;
    fail_msg("broker %s: %s", at, error.message);
    return b;
}

static inline broker start_broker(uint32_t flags) {
    return start_broker_at("zmq://127.0.0.1:0/", flags, NULL);
}

static inline void stop_broker(broker *b) {
    assert_int_equal(muster_broker_close(b->broker, 0), MUSTER_OK);
    muster_broker_release(b->broker);
    assert_int_equal(muster_context_close(b->context, SECOND), MUSTER_OK);
    muster_context_release(b->context);
    b->broker = NULL;
}

static inline muster_broker_stats figures(const broker *b) {
    muster_broker_stats stats;
    assert_int_equal(muster_broker_get_stats(b->broker, &stats), MUSTER_OK);
    return stats;
}

// The broker publishes its counters at most ten times a second, so a change shows a little later.
#define AWAIT_FIGURE(b, condition)                                                                                     \
    do {                                                                                                               \
        muster_broker_stats s = figures(b);                                                                            \
        for (int i = 0; i < 1000 && !(condition); i++, s = figures(b)) usleep(10000);                                  \
        if (!(condition)) fail_msg("%s:%d: never: %s", __FILE__, __LINE__, #condition);                                \
    } while (0)

static inline muster_status try_listen(member *m, const char *where, int64_t retry_ns, muster_error *error) {
    const muster_transport_config config = {.struct_size = sizeof config, .retry_ns = retry_ns};
    size_t bytes;
    const muster_status status =
        muster_transport_listen(m->context, where, strlen(where), &config, &m->listener, error);
    if (status == MUSTER_OK)
        assert_int_equal(muster_listener_address(m->listener, m->address, sizeof m->address, &bytes), MUSTER_OK);
    return status;
}

// `name` may be NULL, `rest` is the part after host and port: /service?options.
static inline member join_star(const broker *b, const char *name, const char *rest) {
    member m = {.context = make_context(0, SECRET)};
    char where[512];
    muster_error error = {0};
    const char *mark = b->options[0] == '\0' ? "" : strchr(rest, '?') != NULL ? "&" : "?";
    snprintf(where, sizeof where, "zmq://%s%s%s%s%s%s", name ? name : "", name ? "@" : "", b->place, rest, mark,
             b->options);
    if (try_listen(&m, where, 0, &error) != MUSTER_OK) fail_msg("%s: %s", where, error.message);
    return m;
}

static inline void leave_star(member *m) {
    muster_listener_release(m->listener);
    if (muster_context_close(m->context, 5 * SECOND) != MUSTER_OK) fail_msg("a member did not end in time");
    muster_context_release(m->context);
    *m = (member){0};
}

static inline muster_status try_dial(const member *m, const char *address, int64_t retry_ns, muster_stream **out,
                                     muster_error *error) {
    const muster_transport_config config = {.struct_size = sizeof config, .retry_ns = retry_ns};
    return muster_transport_dial(m->context, address, strlen(address), &config, 20 * SECOND, out, error);
}

static inline muster_stream *dial_member(const member *from, const char *address) {
    muster_stream *stream = NULL;
    muster_error error = {0};
    if (try_dial(from, address, 0, &stream, &error) != MUSTER_OK) fail_msg("dial %s: %s", address, error.message);
    return stream;
}

static inline muster_stream *accept_one(const member *at) {
    muster_stream *stream = NULL;
    muster_error error = {0};
    if (muster_listener_accept(at->listener, 20 * SECOND, &stream, &error) != MUSTER_OK) fail_msg("%s", error.message);
    return stream;
}

// A stream between two members, tried both ways.
typedef struct between {
    muster_stream *near, *far;
} between;

static inline between connect_members(const member *from, const member *to) {
    between b = {.near = dial_member(from, to->address)};
    b.far = accept_one(to);
    put(b.near, "hello");
    expect(b.far, "hello");
    put(b.far, "good day");
    expect(b.near, "good day");
    return b;
}

static inline void drop_between(between *b) {
    muster_stream_release(b->near);
    muster_stream_release(b->far);
}

static inline void write_all(muster_stream *stream, uint64_t total, uint64_t position) {
    static _Thread_local unsigned char piece[100000];
    for (uint64_t done = 0; done < total;) {
        const size_t size = total - done < sizeof piece ? (size_t)(total - done) : sizeof piece;
        for (size_t i = 0; i < size; i++) piece[i] = pattern(position + done + i);
        size_t moved = 0;
        if (muster_stream_write(stream, piece, size, 20 * SECOND, &moved) != MUSTER_OK) fail_msg("write");
        done += moved;
    }
}

static inline void read_all(muster_stream *stream, uint64_t total, uint64_t position) {
    static _Thread_local unsigned char piece[100000];
    for (uint64_t done = 0; done < total;) {
        const size_t want = total - done < sizeof piece ? (size_t)(total - done) : sizeof piece;
        size_t moved = 0;
        const muster_status status = muster_stream_read(stream, piece, want, 20 * SECOND, &moved);
        if (status != MUSTER_OK) fail_msg("read: %s after %llu", muster_status_name(status), (unsigned long long)done);
        for (size_t i = 0; i < moved; i++)
            if (piece[i] != pattern(position + done + i)) fail_msg("byte %llu differs", (unsigned long long)(done + i));
        done += moved;
    }
}

typedef struct writing {
    muster_stream *stream;
    uint64_t total, position;
} writing;

static inline void *write_in_thread(void *argument) {
    const writing *w = argument;
    write_all(w->stream, w->total, w->position);
    return NULL;
}

// Bytes from one end to the other, checked.
static inline void transfer(muster_stream *from, muster_stream *to, uint64_t total) {
    writing w = {from, total, 0};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, write_in_thread, &w), 0);
    read_all(to, total, 0);
    pthread_join(thread, NULL);
}

// The other side of a stream is gone: what the stream says about it.
static inline void expect_lost(muster_stream *stream, const char *word) {
    muster_error error = {0};
    assert_int_equal(read_one(stream, 20 * SECOND), MUSTER_E_PEER);
    assert_int_equal(muster_stream_reason(stream, NULL, &error), MUSTER_E_PEER);
    if (strstr(error.message, word) == NULL) fail_msg("\"%s\" does not speak of \"%s\"", error.message, word);
}

static inline int need_zmq(void **state) {
    (void)state;
    muster_context *context = make_context(0, SECRET);
    muster_error error = {0};
    const muster_status status = muster_plugin_find(context, "zmq", 3, &error);
    muster_context_release(context);
    if (status == MUSTER_OK) return 0;
    printf("%s\n", error.message);
    exit(77);
}

#endif
