// SPDX-License-Identifier: MIT
// What the tests of sockets share.
#ifndef SOCKET_RUN_H
#define SOCKET_RUN_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <muster/socket.h>

static const int64_t ms = 1000000, second = 1000000000;

typedef struct fixture {
    muster_context *context;
    muster_queue *queue;
} fixture;

static inline fixture set_up(uint32_t flags) {
    fixture f = {0};
    muster_context_config config;
    muster_config_init(&config, sizeof config);
    config.flags = flags;
    assert_int_equal(muster_context_create(&config, &f.context, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(f.context, NULL, &f.queue, NULL), MUSTER_OK);
    return f;
}
static inline void tear_down(fixture *f) {
    muster_queue_release(f->queue);
    assert_int_equal(muster_context_close(f->context, 10 * second), MUSTER_OK);
    muster_context_release(f->context);
}

static inline muster_socket *make_socket(const fixture *f, const muster_socket_config *given) {
    muster_socket_config config = *given;
    config.struct_size = sizeof config;
    muster_socket *made;
    muster_error error;
    if (muster_socket_create(f->context, &config, &made, &error) != MUSTER_OK) fail_msg("%s", error.message);
    return made;
}
static inline muster_socket *dealer(const fixture *f, uint64_t address) {
    return make_socket(f, &(muster_socket_config){.kind = MUSTER_SOCKET_DEALER, .address = address});
}
static inline muster_socket *router(const fixture *f, uint64_t address) {
    return make_socket(f, &(muster_socket_config){.kind = MUSTER_SOCKET_ROUTER, .address = address});
}
static inline void bind_at(muster_socket *socket, const char *at, char out[256]) {
    muster_error error;
    if (muster_socket_bind(socket, at, strlen(at), out, 256, &error) != MUSTER_OK) fail_msg("%s", error.message);
}
static inline void connect_to(muster_socket *socket, const char *to) {
    muster_error error;
    if (muster_socket_connect(socket, to, strlen(to), &error) != MUSTER_OK) fail_msg("%s", error.message);
}
static inline void wait_for_peers(muster_socket *socket, uint32_t count) {
    assert_int_equal(muster_socket_wait_peers(socket, count, 20 * second, NULL), MUSTER_OK);
}

static inline muster_message *message_to(uint64_t destination, uint32_t type, const void *data, size_t bytes) {
    muster_message *made;
    const muster_message_header header = {.struct_size = sizeof header, .type = type, .destination = destination};
    assert_int_equal(muster_message_create(&made), MUSTER_OK);
    assert_int_equal(muster_message_set_header(made, &header), MUSTER_OK);
    if (data != NULL) assert_int_equal(muster_message_add_frame(made, data, bytes), MUSTER_OK);
    return made;
}
static inline void send_text(muster_socket *socket, uint64_t to, uint32_t type, const char *text) {
    muster_error error;
    const muster_status status =
        muster_socket_send(socket, message_to(to, type, text, strlen(text)), 20 * second, &error);
    if (status != MUSTER_OK) fail_msg("%s: %s", muster_status_name(status), error.message);
}
static inline muster_message *receive_one(muster_socket *socket) {
    muster_message *got;
    const muster_status status = muster_socket_receive(socket, 20 * second, &got);
    if (status != MUSTER_OK) fail_msg("receive: %s", muster_status_name(status));
    return got;
}
static inline muster_message_header header_of(const muster_message *message) {
    muster_message_header header = {.struct_size = sizeof header};
    assert_int_equal(muster_message_get_header(message, &header), MUSTER_OK);
    return header;
}
static inline const char *text_of(const muster_message *message) {
    muster_buffer frame;
    assert_int_equal(muster_message_frame(message, 0, &frame), MUSTER_OK);
    return frame.data;
}
/* Receives a text of this type, and returns the source. */
static inline uint64_t expect_text(muster_socket *socket, uint32_t type, const char *text) {
    muster_message *got = receive_one(socket);
    const muster_message_header header = header_of(got);
    assert_int_equal(header.type, type);
    assert_string_equal(text_of(got), text);
    muster_message_release(got);
    return header.source;
}
/* Takes events until one of this kind comes. */
static inline muster_socket_event event_of(muster_socket *socket, uint32_t kind) {
    muster_socket_event event;
    do assert_int_equal(muster_socket_next_event(socket, 20 * second, &event), MUSTER_OK);
    while (event.kind != kind);
    return event;
}

/* A child process, forked before this process has a context. It starts when it receives an address. */
typedef struct child {
    pid_t pid;
    int to; /* the address */
} child;
static inline child fork_child(void (*body)(const char *address, uint64_t own), uint64_t own) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        char address[256] = "";
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[1]);
        const ssize_t got = read(ends[0], address, sizeof address - 1);
        if (got > 0) body(address, own);
        _exit(0);
    }
    close(ends[0]);
    return (child){pid, ends[1]};
}
static inline void begin_child(const child *c, const char *address) {
    assert_int_equal(write(c->to, address, strlen(address)), (ssize_t)strlen(address));
}
static inline void end_child(child *c, int signal) {
    if (signal != 0) kill(c->pid, signal);
    close(c->to);
    waitpid(c->pid, NULL, 0);
}

#endif
