/* SPDX-License-Identifier: MIT */
/* A star with libzmq alone, as one would write it: DEALER, a broker that forwards by identity (ROUTER), DEALER; three
 * processes:  --over plain|curve --mode whole|segments
 *   whole     one zmq_send() and one zmq_recv() per message, whatever its size
 *   segments  messages in pieces of 256 KiB, sent from where they lie
 * The two ends are pinned, the broker is not, as with Muster's. */
#include "bench.h"

#include <signal.h>
#include <zmq.h>

enum { segment = 256 << 10 };

struct channel {
    void *socket;
    const char *to;
    size_t piece;
};

static void check(const char *where, int result) {
    if (result < 0) die(where, zmq_strerror(zmq_errno()));
}
static void not_freed(void *data, void *hint) {
    (void)data, (void)hint;
}
static inline void channel_write(struct channel *c, const void *data, size_t size) {
    for (const char *from = data; size != 0;) {
        const size_t k = size < c->piece ? size : c->piece;
        check("zmq_send", zmq_send(c->socket, c->to, 1, ZMQ_SNDMORE));
        if (k == segment && c->piece == segment) {
            zmq_msg_t message;
            check("zmq_msg_init_data", zmq_msg_init_data(&message, (void *)(uintptr_t)from, k, not_freed, NULL));
            check("zmq_msg_send", zmq_msg_send(&message, c->socket, 0));
        } else {
            check("zmq_send", zmq_send(c->socket, from, k, 0));
        }
        from += k, size -= k;
    }
}
static inline size_t channel_read_some(struct channel *c, void *data, size_t most) {
    const int k = zmq_recv(c->socket, data, most, 0);
    check("zmq_recv", k);
    return (size_t)k;
}
static inline void channel_read(struct channel *c, void *data, size_t size) {
    for (char *to = data; size != 0;) {
        const size_t k = channel_read_some(c, to, size);
        to += k, size -= k;
    }
}

#include "patterns.h"

struct ends {
    struct options options;
    int curve, segments;
    int pipe[2];
    char endpoint[128];
    char server_public[41], server_secret[41], client_public[41], client_secret[41];
};

static void set_number(void *socket, int option, int value) {
    check("zmq_setsockopt", zmq_setsockopt(socket, option, &value, sizeof value));
}
static void *new_socket(const struct ends *e, int type) {
    void *socket = zmq_socket(zmq_ctx_new(), type);
    set_number(socket, ZMQ_LINGER, 1000);
    if (e->segments) set_number(socket, ZMQ_SNDHWM, 64), set_number(socket, ZMQ_RCVHWM, 64);
    return socket;
}

static void broker_process(void *argument) {
    struct ends *e = argument;
    void *router = new_socket(e, ZMQ_ROUTER);
    set_number(router, ZMQ_ROUTER_MANDATORY, 1); /* waits for a slow reader instead of dropping */
    if (e->curve) {
        set_number(router, ZMQ_CURVE_SERVER, 1);
        check("key", zmq_setsockopt(router, ZMQ_CURVE_SECRETKEY, e->server_secret, 41));
    }
    check("zmq_bind", zmq_bind(router, "tcp://127.0.0.1:*"));
    size_t size = sizeof e->endpoint;
    check("endpoint", zmq_getsockopt(router, ZMQ_LAST_ENDPOINT, e->endpoint, &size));
    if (write(e->pipe[1], e->endpoint, sizeof e->endpoint) != sizeof e->endpoint) die_errno("write");
    zmq_msg_t from, to, message;
    zmq_msg_init(&from), zmq_msg_init(&to), zmq_msg_init(&message);
    for (;;) {
        check("from", zmq_msg_recv(&from, router, 0));
        check("to", zmq_msg_recv(&to, router, 0));
        check("message", zmq_msg_recv(&message, router, 0));
        check("forward", zmq_msg_send(&to, router, ZMQ_SNDMORE));
        check("forward", zmq_msg_send(&message, router, 0));
    }
}

/* Connects, and waits until the broker knows it: it sends to itself. */
static struct channel member(const struct ends *e, const char *name, const char *other) {
    struct channel c = {new_socket(e, ZMQ_DEALER), other, e->segments ? segment : SIZE_MAX};
    check("identity", zmq_setsockopt(c.socket, ZMQ_ROUTING_ID, name, 1));
    if (e->curve) {
        check("key", zmq_setsockopt(c.socket, ZMQ_CURVE_SERVERKEY, e->server_public, 41));
        check("key", zmq_setsockopt(c.socket, ZMQ_CURVE_PUBLICKEY, e->client_public, 41));
        check("key", zmq_setsockopt(c.socket, ZMQ_CURVE_SECRETKEY, e->client_secret, 41));
    }
    check("zmq_connect", zmq_connect(c.socket, e->endpoint));
    struct channel self = {c.socket, name, SIZE_MAX};
    char byte = 0;
    channel_write(&self, &byte, 1);
    channel_read(&self, &byte, 1);
    return c;
}
static void second_process(void *argument) {
    struct ends *e = argument;
    take_core(e->options.cores, 1);
    struct channel c = member(e, "2", "1");
    if (write(e->pipe[1], "!", 1) != 1) die_errno("write");
    second_end(&e->options, &c, &c);
    /* What comes back was sent behind everything else. */
    char byte = 0;
    struct channel self = {c.socket, "2", SIZE_MAX};
    channel_write(&self, &byte, 1);
    channel_read(&self, &byte, 1);
}

int main(int argc, char **argv) {
    struct ends ends = {.options = read_options(argc, argv)}, *e = &ends;
    e->curve = !strcmp(e->options.over, "curve");
    e->segments = !strcmp(e->options.mode, "segments");
    if (e->curve) {
        check("keys", zmq_curve_keypair(e->server_public, e->server_secret));
        check("keys", zmq_curve_keypair(e->client_public, e->client_secret));
    }
    if (pipe(e->pipe) != 0) die_errno("pipe");
    const pid_t broker = start_process(broker_process, e);
    if (read(e->pipe[0], e->endpoint, sizeof e->endpoint) != sizeof e->endpoint) die("broker", "it has not begun");
    const pid_t child = start_process(second_process, e);
    char byte;
    if (read(e->pipe[0], &byte, 1) != 1) die("the other end", "it has not begun");
    take_core(e->options.cores, 0);
    struct channel c = member(e, "1", "2");
    first_end(&e->options, &c, &c);
    join_process(child);
    kill(broker, SIGKILL);
    waitpid(broker, NULL, 0);
    return 0;
}
