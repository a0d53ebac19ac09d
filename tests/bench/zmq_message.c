/* SPDX-License-Identifier: MIT */
/* DEALER and ROUTER of libzmq, in two threads (inproc) or two processes:  --over inproc|ipc|tcp */
#include "bench.h"

#include <zmq.h>

struct channel {
    void *socket;
    int is_router;
};

static void check(const char *where, int result) {
    if (result < 0) die(where, zmq_strerror(zmq_errno()));
}
static inline void channel_write(struct channel *c, const void *data, size_t size) {
    zmq_msg_t message;
    if (c->is_router) check("zmq_send", zmq_send(c->socket, "d", 1, ZMQ_SNDMORE));
    check("zmq_msg_init_size", zmq_msg_init_size(&message, size));
    memcpy(zmq_msg_data(&message), data, size);
    check("zmq_msg_send", zmq_msg_send(&message, c->socket, 0));
}
static inline size_t channel_read_some(struct channel *c, void *data, size_t most) {
    (void)data, (void)most;
    char from[8];
    if (c->is_router) check("zmq_recv", zmq_recv(c->socket, from, sizeof from, 0));
    zmq_msg_t message;
    check("zmq_msg_init", zmq_msg_init(&message));
    const int size = zmq_msg_recv(&message, c->socket, 0);
    check("zmq_msg_recv", size);
    zmq_msg_close(&message);
    return (size_t)size;
}
static inline void channel_read(struct channel *c, void *data, size_t size) {
    if (channel_read_some(c, data, size) != size) die("zmq_msg_recv", "a message of another size");
}

#include "patterns.h"

struct ends {
    struct options options;
    void *context;
    int addresses;
};

static void second_process(void *argument) {
    struct ends *e = argument;
    take_core(e->options.cores, 1);
    char address[256] = "";
    if (read(e->addresses, address, sizeof address - 1) <= 0) die("address", "none came");
    void *context = e->context != NULL ? e->context : zmq_ctx_new();
    struct channel both = {zmq_socket(context, ZMQ_DEALER), 0};
    check("identity", zmq_setsockopt(both.socket, ZMQ_IDENTITY, "d", 1));
    check("connect", zmq_connect(both.socket, address));
    channel_write(&both, "", 1);
    second_end(&e->options, &both, &both);
    zmq_close(both.socket);
    if (e->context == NULL) zmq_ctx_term(context);
}
static void *second_thread(void *argument) {
    second_process(argument);
    return NULL;
}

int main(int argc, char **argv) {
    struct ends ends = {.options = read_options(argc, argv)}, *e = &ends;
    const int in_one = !strcmp(e->options.over, "inproc");
    int addresses[2];
    if (pipe(addresses) != 0) die_errno("pipe");
    e->addresses = addresses[0];
    const pid_t child = in_one ? 0 : start_process(second_process, e);
    void *context = zmq_ctx_new();
    pthread_t thread;
    if (in_one) {
        e->context = context;
        if (pthread_create(&thread, NULL, second_thread, e) != 0) die("pthread_create", "failed");
    }
    take_core(e->options.cores, 0);
    struct channel both = {zmq_socket(context, ZMQ_ROUTER), 1};
    const int yes = 1; /* a full queue blocks, it does not drop */
    check("mandatory", zmq_setsockopt(both.socket, ZMQ_ROUTER_MANDATORY, &yes, sizeof yes));
    char address[256];
    size_t size = sizeof address;
    snprintf(address, sizeof address,
             in_one                            ? "inproc://bench"
             : !strcmp(e->options.over, "ipc") ? "ipc://*"
                                               : "tcp://127.0.0.1:*");
    check("bind", zmq_bind(both.socket, address));
    check("endpoint", zmq_getsockopt(both.socket, ZMQ_LAST_ENDPOINT, address, &size));
    if (write(addresses[1], address, strlen(address)) < 0) die_errno("write");
    char first[4];
    channel_read(&both, first, 1);
    first_end(&e->options, &both, &both);
    zmq_close(both.socket);
    if (in_one)
        pthread_join(thread, NULL);
    else
        join_process(child);
    zmq_ctx_term(context);
    return 0;
}
