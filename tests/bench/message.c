/* SPDX-License-Identifier: MIT */
/* A dealer and a router, in two threads (inproc) or two processes:  --over inproc|shm|unix|tcp|tcp-upgraded|broker
 * Each message is made, filled by a copy, sent, received and freed. --mode loaned: it is loaned, and its first and last
 * byte are written. broker: through a broker in a process of its own, without CURVE. */
#include "bench.h"

#include <muster/broker.h>
#include <muster/socket.h>

struct channel {
    muster_socket *socket;
    uint64_t to;
    int loans;
};

static void check(const char *where, muster_status status, const muster_error *error) {
    if (status != MUSTER_OK) die(where, error != NULL ? error->message : muster_status_name(status));
}
static inline void channel_write(struct channel *c, const void *data, size_t size) {
    const muster_message_header header = {.struct_size = sizeof header, .destination = c->to};
    muster_message *message;
    muster_error error;
    check("message", muster_message_create(&message), NULL);
    check("header", muster_message_set_header(message, &header), NULL);
    void *loan = NULL;
    if (c->loans && muster_socket_loan_frame(c->socket, message, size, &loan, &error) == MUSTER_OK)
        ((char *)loan)[0] = ((char *)loan)[size - 1] = *(const char *)data;
    else
        check("frame", muster_message_add_frame(message, data, size), NULL);
    check("send", muster_socket_send(c->socket, message, -1, &error), &error);
}
static inline size_t channel_read_some(struct channel *c, void *data, size_t most) {
    (void)data, (void)most;
    muster_message *message;
    muster_buffer frame;
    check("receive", muster_socket_receive(c->socket, -1, &message), NULL);
    check("frame", muster_message_frame(message, 0, &frame), NULL);
    muster_message_release(message);
    return frame.bytes;
}
static inline void channel_read(struct channel *c, void *data, size_t size) {
    if (channel_read_some(c, data, size) != size) die("receive", "a message of another size");
}

#include "patterns.h"

struct ends {
    struct options options;
    muster_context *context; /* of both, over inproc */
    int addresses;           /* where the second end reads the address to connect to */
    int broker_says, broker_lives;
};
enum { router_address = 1, dealer_address = 2 };

static muster_context *context(void) {
    static const char secret[] = "both ends of the benchmark know this";
    muster_context_config config = {.struct_size = sizeof config, .secret = secret, .secret_bytes = sizeof secret - 1};
    muster_context *made = NULL;
    muster_error error;
    check("context", muster_context_create(&config, &made, &error), &error);
    return made;
}
static muster_socket *make(muster_context *c, uint32_t kind, uint64_t address, int loans) {
    const muster_socket_config config = {
        .struct_size = sizeof config, .kind = kind, .flags = loans ? MUSTER_SOCKET_LOANS : 0, .address = address};
    muster_socket *made;
    muster_error error;
    check("socket", muster_socket_create(c, &config, &made, &error), &error);
    return made;
}

static void broker_process(void *argument) {
    struct ends *e = argument;
    muster_context *c = context();
    muster_broker *broker;
    muster_error error;
    static const char any[] = "zmq://127.0.0.1:0/";
    const muster_broker_config config = {.struct_size = sizeof config, .flags = MUSTER_BROKER_NO_CURVE};
    check("broker", muster_broker_open(c, any, sizeof any - 1, &config, &broker, &error), &error);
    char address[256] = "", end;
    size_t size = 0;
    check("address", muster_broker_address(broker, address, sizeof address, &size), NULL);
    if (write(e->broker_says, address, sizeof address) != sizeof address) die_errno("write");
    if (read(e->broker_lives, &end, 1) < 0) die_errno("read");
    muster_broker_release(broker);
    muster_context_release(c);
}

static int loans(const struct ends *e) {
    return !strcmp(e->options.mode, "loaned");
}

static void second_process(void *argument) {
    struct ends *e = argument;
    take_core(e->options.cores, 1);
    muster_context *c = e->context != NULL ? e->context : context();
    char address[512];
    const ssize_t size = read(e->addresses, address, sizeof address);
    if (size <= 0) die("address", "none came");
    muster_error error;
    struct channel both = {make(c, MUSTER_SOCKET_DEALER, dealer_address, loans(e)), router_address, loans(e)};
    check("connect", muster_socket_connect(both.socket, address, (size_t)size, &error), &error);
    second_end(&e->options, &both, &both);
    muster_socket_close(both.socket, 10000000000);
    muster_socket_release(both.socket);
    if (e->context == NULL) muster_context_release(c);
}
static void *second_thread(void *argument) {
    second_process(argument);
    return NULL;
}

int main(int argc, char **argv) {
    struct ends ends = {.options = read_options(argc, argv)}, *e = &ends;
    const char *over = e->options.over, *folder = getenv("TMPDIR");
    const int in_one = !strcmp(over, "inproc");
    int addresses[2];
    if (pipe(addresses) != 0) die_errno("pipe");
    e->addresses = addresses[0];
    char place[256] = "";
    int says[2], lives[2];
    pid_t broker = 0;
    if (!strcmp(over, "broker")) {
        if (pipe(says) != 0 || pipe(lives) != 0) die_errno("pipe");
        e->broker_says = says[1], e->broker_lives = lives[0];
        broker = start_process(broker_process, e);
        close(says[1]); /* the read ends if the broker does */
        if (read(says[0], place, sizeof place) != sizeof place) die("broker", "it has not begun");
    }
    const pid_t child = in_one ? 0 : start_process(second_process, e); /* before this process has a context */
    if (!in_one) take_core(e->options.cores, 0);
    muster_context *c = context();
    pthread_t thread;
    if (in_one) {
        e->context = c;
        if (pthread_create(&thread, NULL, second_thread, e) != 0) die("pthread_create", "failed");
        take_core(e->options.cores, 0);
    }
    char where[512], address[512];
    if (!strcmp(over, "tcp"))
        snprintf(where, sizeof where, "tcp://127.0.0.1:0?upgrade=no");
    else if (!strcmp(over, "broker"))
        snprintf(where, sizeof where, "zmq://router@%.*s/m?upgrade=no&curve=no", (int)strcspn(place + 6, "/"),
                 place + 6);
    else if (!strcmp(over, "tcp-upgraded"))
        snprintf(where, sizeof where, "tcp://127.0.0.1:0");
    else if (!strcmp(over, "unix"))
        snprintf(where, sizeof where, "unix://%s/muster-bench-%d?upgrade=no", folder ? folder : "/tmp", (int)getpid());
    else
        snprintf(where, sizeof where, "%s://muster-bench-%d", over, (int)getpid());
    muster_error error;
    struct channel both = {make(c, MUSTER_SOCKET_ROUTER, router_address, loans(e)), dealer_address, loans(e)};
    check("bind", muster_socket_bind(both.socket, where, strlen(where), address, sizeof address, &error), &error);
    if (write(addresses[1], address, strlen(address)) != (ssize_t)strlen(address)) die_errno("write");
    check("wait", muster_socket_wait_peers(both.socket, 1, 10000000000, NULL), NULL);
    first_end(&e->options, &both, &both);
    muster_socket_close(both.socket, 10000000000);
    muster_socket_release(both.socket);
    if (in_one)
        pthread_join(thread, NULL);
    else
        join_process(child);
    if (broker != 0) {
        if (write(lives[1], "", 1) != 1) die_errno("write");
        join_process(broker);
    }
    muster_context_release(c);
    return 0;
}
