// SPDX-License-Identifier: MIT
// What the tests of transports that go wrong share: a context with a listener, and calls whose answers are looked at.
#ifndef TRANSPORT_FAILURE_H
#define TRANSPORT_FAILURE_H

#include "transport_pair.h"

static muster_context *context; // with SECRET
static char wire_address[128];  // of a tcp listener of it
static muster_listener *wire;
static int wire_port;

static inline muster_status dial(muster_context *from, const char *address, int64_t timeout_ns, char *message) {
    muster_stream *stream = (muster_stream *)8;
    muster_error error = {0};
    const muster_status status =
        muster_transport_dial(from, address, strlen(address), NULL, timeout_ns, &stream, &error);
    if (status == MUSTER_OK)
        muster_stream_release(stream);
    else
        assert_null(stream);
    if (status < 0) {
        assert_int_equal(error.status, status);
        assert_int_equal(strlen(error.message), error.message_bytes);
        assert_true(error.message_bytes > 0);
    }
    if (message) strcpy(message, error.message);
    return status;
}

static inline muster_status listen_only(const char *address, muster_listener **out, char *message) {
    muster_error error = {0};
    muster_listener *listener = (muster_listener *)8;
    const muster_status status = muster_transport_listen(context, address, strlen(address), NULL, &listener, &error);
    if (message) strcpy(message, error.message);
    if (status != MUSTER_OK) assert_null(listener);
    if (out)
        *out = listener;
    else if (status == MUSTER_OK)
        muster_listener_release(listener);
    return status;
}

#define assert_says(message, text)                                                                                     \
    if (!strstr(message, text)) fail_msg("'%s' does not say '%s'", message, text)

static inline uint64_t failed_handshakes(void) {
    muster_context_stats stats;
    assert_int_equal(muster_context_get_stats(context, &stats), MUSTER_OK);
    return stats.handshakes_failed;
}

// A socket that takes connections and says nothing.
static inline int silent_socket(char *address) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    assert_int_equal(bind(fd, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    sprintf(address, "tcp://127.0.0.1:%d", ntohs(at.sin_port));
    return fd;
}

static inline int open_all(void **state) {
    if (make_folder(state)) return 1;
    muster_context_config config = {.struct_size = sizeof config, .secret = SECRET, .secret_bytes = strlen(SECRET)};
    config.handshake_timeout_ns = 500 * MILLISECOND;
    config.max_unauthenticated = 8;
    if (muster_context_create(&config, &context, NULL) != MUSTER_OK) return 1;
    if (muster_transport_listen(context, "tcp://127.0.0.1:0?upgrade=no", 28, NULL, &wire, NULL) != MUSTER_OK) return 1;
    size_t bytes;
    muster_listener_address(wire, wire_address, sizeof wire_address, &bytes);
    wire_port = atoi(strrchr(wire_address, ':') + 1);
    return 0;
}

static inline int close_all(void **state) {
    muster_listener_release(wire);
    const muster_status status = muster_context_close(context, 5 * SECOND);
    muster_context_release(context);
    return drop_folder(state) || status != MUSTER_OK;
}

#endif
