/* SPDX-License-Identifier: MIT */
/* DEALER and ROUTER of libzmq, in two threads (inproc) or two processes:  --over inproc|ipc|tcp|proxy
 * proxy: over tcp, with zmq_proxy() between them in a process of its own. */
#include "bench.h"

#include <signal.h>
#include <sys/wait.h>
#include <zmq.h>

struct channel {
    void *socket;
    int is_router; /* 2: behind a proxy */
};

static void check(const char *where, int result) {
    if (result < 0) die(where, zmq_strerror(zmq_errno()));
}
static inline void channel_write(struct channel *c, const void *data, size_t size) {
    zmq_msg_t message;
    if (c->is_router == 2) check("zmq_send", zmq_send(c->socket, "p", 1, ZMQ_SNDMORE));
    if (c->is_router) check("zmq_send", zmq_send(c->socket, "d", 1, ZMQ_SNDMORE));
    check("zmq_msg_init_size", zmq_msg_init_size(&message, size));
    memcpy(zmq_msg_data(&message), data, size);
    check("zmq_msg_send", zmq_msg_send(&message, c->socket, 0));
}
static inline size_t channel_read_some(struct channel *c, void *data, size_t most) {
    (void)data, (void)most;
    char from[8];
    for (int i = 0; i < c->is_router; i++) check("zmq_recv", zmq_recv(c->socket, from, sizeof from, 0));
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
    int router, clients; /* of the proxy: where it reads the router's address, and writes its own */
};

/* ROUTER for the dealer, DEALER to the router; unlimited queues, so that nothing is dropped. Ended by a signal. */
static void proxy_process(void *argument) {
    struct ends *e = argument;
    void *context = zmq_ctx_new(), *front = zmq_socket(context, ZMQ_ROUTER), *back = zmq_socket(context, ZMQ_DEALER);
    const int no_limit = 0;
    for (int i = 0; i < 2; i++) {
        check("limit", zmq_setsockopt(i ? front : back, ZMQ_SNDHWM, &no_limit, sizeof no_limit));
        check("limit", zmq_setsockopt(i ? front : back, ZMQ_RCVHWM, &no_limit, sizeof no_limit));
    }
    check("identity", zmq_setsockopt(back, ZMQ_IDENTITY, "p", 1));
    char address[256] = "";
    size_t size = sizeof address;
    if (read(e->router, address, sizeof address - 1) <= 0) die("address", "none came");
    check("connect", zmq_connect(back, address));
    check("bind", zmq_bind(front, "tcp://127.0.0.1:*"));
    check("endpoint", zmq_getsockopt(front, ZMQ_LAST_ENDPOINT, address, &size));
    if (write(e->clients, address, strlen(address)) < 0) die_errno("write");
    zmq_proxy(front, back, NULL);
}

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
    const int by_proxy = !strcmp(e->options.over, "proxy");
    int to_proxy[2];
    pid_t proxy = 0;
    if (by_proxy) {
        if (pipe(to_proxy) != 0) die_errno("pipe");
        e->router = to_proxy[0], e->clients = addresses[1];
        proxy = start_process(proxy_process, e);
    }
    const pid_t child = in_one ? 0 : start_process(second_process, e);
    void *context = zmq_ctx_new();
    pthread_t thread;
    if (in_one) {
        e->context = context;
        if (pthread_create(&thread, NULL, second_thread, e) != 0) die("pthread_create", "failed");
    }
    take_core(e->options.cores, 0);
    struct channel both = {zmq_socket(context, ZMQ_ROUTER), by_proxy ? 2 : 1};
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
    if (write(by_proxy ? to_proxy[1] : addresses[1], address, strlen(address)) < 0) die_errno("write");
    char first[4];
    channel_read(&both, first, 1);
    first_end(&e->options, &both, &both);
    zmq_close(both.socket);
    if (in_one)
        pthread_join(thread, NULL);
    else
        join_process(child);
    if (by_proxy) {
        kill(proxy, SIGKILL);
        waitpid(proxy, NULL, 0);
    }
    zmq_ctx_term(context);
    return 0;
}
