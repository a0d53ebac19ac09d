// SPDX-License-Identifier: MIT
// Random sequences of everything that sockets do: sends, receives, waits that are cancelled, dealers and routers that
// end and come back. test_socket_random [ADDRESS] [SEED]: '@' in the address becomes the number of a router.
//
// Each message has a number. It is received at most once, by the socket that it was sent to, complete, in the order of
// its sender; or it comes back, once. After the last restart nothing may be lost. A sequence that fails is made again
// without parts of it as long as it fails, and then printed. ctest: quick timeout=240
#include "random_run.h"
#include "relay.h"
#include "socket_run.h"

#include <muster/transport.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

enum { routers = 2, dealers = 3, nodes = routers + dealers, max_messages = 3 * max_steps };
enum { first_address = 1000, last_phase = 60 };
enum operation { SEND, RECEIVE, RESTART, CLOSE, CANCEL, RETURNED, EVENTS, operations };

typedef struct step {
    enum operation operation;
    uint32_t node, other, count;
} step;

typedef struct record { // of a message
    uint8_t sender, receiver, state;
    uint32_t sender_epoch; // the incarnation of the sender
    uint32_t restarts;     // of all nodes, when it was sent
    uint32_t bytes;
} record;
enum { UNSENT, SENT, RECEIVED, CAME_BACK };

typedef struct node {
    fixture f;
    muster_socket *socket;
    uint32_t epoch;
    char at[256];
    uint32_t last[nodes][64]; // number of the last message received from an incarnation of a node (the epoch modulo 64)
} node;

static const char secret[] = "the secret of the transport check"; // also that of tests/conformance/with-broker
static const char *pattern;
static node all[nodes];
static record messages[max_messages + 1];
static uint32_t message_count, restarts;
static step steps[max_steps];
static int current = -1;
static relay served;
static bool one_context, is_quiet; // quiet: nothing restarts any more, and all know it

static void wrong(const char *what, uint64_t one, uint64_t two) {
    fprintf(stderr, "step %d: %s (%llu, %llu)\n", current, what, (unsigned long long)one, (unsigned long long)two);
    _exit(1);
}
#define NEED(condition, what, one, two)                                                                                \
    do {                                                                                                               \
        if (!(condition)) wrong(what, (uint64_t)(one), (uint64_t)(two));                                               \
    } while (0)

static void fill(unsigned char *data, uint32_t number, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; i++) data[i] = (unsigned char)(number * 31 + i * 7 + (i >> 8));
}

static void open_node(uint32_t i) {
    node *n = &all[i];
    muster_error error;
    if (!one_context || i == 0) {
        muster_context_config config;
        muster_config_init(&config, sizeof config);
        config.secret = secret;
        config.secret_bytes = strlen(secret);
        config.window_bytes = 65536;
        if (n->f.context == NULL)
            NEED(muster_context_create(&config, &n->f.context, &error) == MUSTER_OK, "no context", i, 0);
        if (n->epoch == 0 && strncmp(pattern, "relay:", 6) == 0)
            NEED(relay_begin(&served, n->f.context) == MUSTER_OK, "the transport cannot be served", i, 0);
    } else {
        n->f.context = all[0].f.context;
    }
    if (n->f.queue == NULL)
        NEED(muster_queue_create(n->f.context, NULL, &n->f.queue, &error) == MUSTER_OK, "no queue", i, 0);
    n->epoch++;
    const muster_socket_config config = {.struct_size = sizeof config,
                                         .kind = i < routers ? MUSTER_SOCKET_ROUTER : MUSTER_SOCKET_DEALER,
                                         .address = first_address + i,
                                         .flags = MUSTER_SOCKET_LOANS,
                                         .max_loaned_bytes = 1 << 20,
                                         .max_queued_messages = 16,
                                         .max_queued_bytes = 100000,
                                         .max_unrouted_messages = 8,
                                         .queue = n->f.queue};
    NEED(muster_socket_create(n->f.context, &config, &n->socket, &error) == MUSTER_OK, "no socket", i, 0);
    if (i < routers) {
        char at[256], *to = at;
        if (n->at[0] != '\0') {
            strcpy(at, n->at); // the same port again
        } else {
            for (const char *from = pattern; *from != '\0'; from++)
                if (*from == '@' && from[1] == '@')
                    *to++ = *from++; // a name in front of a broker
                else if (*from == '@')
                    to += sprintf(to, "%u", i);
                else
                    *to++ = *from;
            *to = '\0';
        }
        muster_status status;
        const int64_t patience = 20 * second;
        struct timespec begin, now;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        do { // the address of the earlier socket is free once its listener has ended
            status = muster_socket_bind(n->socket, at, strlen(at), n->at, sizeof n->at, &error);
            clock_gettime(CLOCK_MONOTONIC, &now);
        } while (status == MUSTER_E_EXISTS && (now.tv_sec - begin.tv_sec) * second < patience);
        if (status != MUSTER_OK) fprintf(stderr, "%s: %s\n", at, error.message);
        NEED(status == MUSTER_OK, "no listener", i, 0);
    } else {
        for (uint32_t r = 0; r < routers; r++)
            NEED(muster_socket_connect(n->socket, all[r].at, strlen(all[r].at), &error) == MUSTER_OK, "no connect", i,
                 r);
    }
}

// The entries of the queue of a node: messages that came back, and readiness.
static void take_entries(uint32_t i) {
    muster_completion entry;
    muster_error error;
    while (muster_queue_next(all[i].f.queue, 0, &entry, &error) == MUSTER_OK) {
        if (entry.kind != MUSTER_DONE_MESSAGE) continue;
        const uint64_t number = header_of(entry.object).target;
        NEED(number != 0 && number <= message_count, "a message that was never sent has come back", number, 0);
        NEED(messages[number].state == SENT, "came back", number, messages[number].state);
        NEED(messages[number].sender == i, "came back to another node", number, i);
        messages[number].state = CAME_BACK;
        muster_message_release(entry.object);
    }
}

static bool receive(uint32_t i, int64_t timeout) {
    muster_message *got;
    const muster_status status = muster_socket_receive(all[i].socket, timeout, &got);
    if (status == MUSTER_AGAIN || status == MUSTER_TIMEOUT) return false;
    NEED(status == MUSTER_OK, "receive", i, -status);
    const muster_message_header header = header_of(got);
    const uint64_t number = header.target;
    NEED(number != 0 && number <= message_count, "a message that was never sent", number, i);
    record *m = &messages[number];
    NEED(m->state == SENT, "received a second time, or after it had come back", number, m->state);
    // a dealer sends to any router
    NEED(m->receiver == i || (m->sender >= routers && i < routers), "received by another socket", number, i);
    NEED(header.source == (uint64_t)first_address + m->sender, "another source", number, header.source);
    muster_buffer frame;
    static unsigned char expected[1 << 18];
    NEED(muster_message_frame(got, 0, &frame) == MUSTER_OK && frame.bytes == m->bytes, "another size", number,
         m->bytes);
    fill(expected, (uint32_t)number, m->bytes);
    NEED(m->bytes == 0 || memcmp(frame.data, expected, m->bytes) == 0, "other bytes", number, m->bytes);
    uint32_t *last = &all[i].last[m->sender][m->sender_epoch % 64];
    // messages that a dealer had queued for a lost router go to another one, and may be overtaken
    const bool may_be_overtaken = m->sender >= routers && (!is_quiet || m->restarts != restarts);
    NEED(*last < number || may_be_overtaken, "out of order", number, *last);
    if (*last < number) *last = (uint32_t)number;
    m->state = RECEIVED;
    muster_message_release(got);
    return true;
}

static bool send_one(uint32_t from, uint32_t to, uint32_t bytes, int64_t timeout) {
    static unsigned char data[1 << 18];
    const uint32_t number = ++message_count;
    NEED(number <= max_messages, "too many messages", number, 0);
    fill(data, number, bytes);
    muster_message *made = message_to(first_address + to, 300, NULL, 0);
    void *loaned = NULL;
    muster_error error;
    // large frames are loaned, as long as there is memory for it
    if (bytes >= 9000 && muster_socket_loan_frame(all[from].socket, made, bytes, &loaned, &error) == MUSTER_OK)
        memcpy(loaned, data, bytes);
    else
        muster_message_add_frame(made, data, bytes);
    muster_message_header header = header_of(made);
    header.target = number;
    if (from >= routers) header.destination = 0;
    muster_message_set_header(made, &header);
    messages[number] = (record){.sender = (uint8_t)from,
                                .receiver = (uint8_t)to,
                                .state = SENT,
                                .sender_epoch = all[from].epoch,
                                .restarts = restarts,
                                .bytes = bytes};
    const muster_status status = muster_socket_send(all[from].socket, made, timeout, &error);
    if (status == MUSTER_OK) return true;
    messages[number].state = UNSENT;
    muster_message_release(made);
    NEED(status == MUSTER_AGAIN || status == MUSTER_TIMEOUT || status == MUSTER_E_PEER || status == MUSTER_E_NOT_FOUND,
         error.message, from, -status);
    return false;
}

static void restart(uint32_t i, int64_t close_timeout) {
    if (close_timeout >= 0) {
        const muster_status status = muster_socket_close(all[i].socket, close_timeout);
        NEED(status == MUSTER_OK || status == MUSTER_TIMEOUT || status == MUSTER_E_PEER, "close", i, -status);
    }
    restarts++;
    muster_socket_release(all[i].socket);
    take_entries(i); // all that it had comes back before the release returns
    open_node(i);
}

static void perform(const step *s) {
    const uint32_t i = s->node % nodes;
    switch (s->operation) {
    case SEND:
        for (uint32_t k = 0; k <= s->count % 4; k++) {
            const uint32_t to = i < routers ? routers + s->other % dealers : s->other % routers;
            static const uint32_t sizes[] = {0, 1, 60, 900, 9000, 70000, 200000, 3};
            send_one(i, to, sizes[(s->count >> 4) % 8], s->count % 16 == 0 ? ms : 0);
        }
        break;
    case RECEIVE:
        for (uint32_t k = 0; k <= s->count % 8 && receive(i, s->count % 16 == 0 ? ms : 0); k++) {
        }
        break;
    case RESTART:
        restart(i, -1);
        break;
    case CLOSE:
        restart(i, s->count % 2 ? 0 : 5 * ms);
        break;
    case CANCEL:
        NEED(muster_socket_cancel(all[i].socket) == MUSTER_OK, "cancel", i, 0);
        break;
    case RETURNED:
        take_entries(i);
        break;
    default:
        for (muster_socket_event event; muster_socket_next_event(all[i].socket, 0, &event) == MUSTER_OK;)
            NEED(event.kind >= MUSTER_SOCKET_CONNECTED && event.kind <= MUSTER_SOCKET_REFUSED, "event", event.kind, i);
    }
}

static uint32_t outstanding(void) { // messages that have to arrive
    uint32_t count = 0;
    for (uint32_t m = 1; m <= message_count; m++)
        count += messages[m].state == SENT && messages[m].restarts == restarts;
    return count;
}
static uint32_t queued(void) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < nodes; i++) {
        muster_socket_stats stats;
        NEED(muster_socket_get_stats(all[i].socket, &stats) == MUSTER_OK, "stats", i, 0);
        NEED(stats.malformed == 0, "malformed", i, stats.malformed);
        count += stats.queued_messages + stats.queued_bytes;
    }
    return (uint32_t)count;
}
static uint32_t other_connections(void) { // nodes that have not exactly the connections that there should be
    uint32_t count = 0;
    for (uint32_t i = 0; i < nodes; i++) {
        muster_socket_stats stats;
        NEED(muster_socket_get_stats(all[i].socket, &stats) == MUSTER_OK, "stats", i, 0);
        count += stats.peers != (i < routers ? dealers : routers);
    }
    return count;
}
// Receives until a count is 0, or nothing has arrived for 20 s.
static void receive_until_none(uint32_t (*count)(void), const char *what) {
    for (uint32_t idle = 0; idle < 2000 && count() != 0;) {
        bool any = false;
        for (uint32_t i = 0; i < nodes; i++) {
            while (receive(i, 0)) any = true;
            take_entries(i);
        }
        if (!any) any = receive(idle % nodes, 10 * ms);
        idle = any ? 0 : idle + 1;
    }
    NEED(count() == 0, what, count(), message_count);
}

static void run(int count, const bool *left_out) {
    const bool is_served = strncmp(pattern, "relay:", 6) == 0;
    one_context = is_served || strncmp(pattern, "inproc:", 7) == 0;
    for (uint32_t i = 0; i < nodes; i++) open_node(i);
    for (current = 0; current < count; current++)
        if (!left_out[current]) perform(&steps[current]);
    receive_until_none(other_connections, "not connected as it should be");
    receive_until_none(queued, "left in a queue");
    // from here on nothing is lost
    restarts++;
    is_quiet = true;
    for (int k = 0; k < last_phase; k++)
        for (uint32_t i = 0; i < nodes; i++) {
            const uint32_t to = i < routers ? routers + (uint32_t)k % dealers : (uint32_t)k % routers;
            if (!send_one(i, to, (uint32_t)k * 200, 0))
                for (uint32_t r = 0; r < nodes; r++)
                    while (receive(r, 0)) {
                    }
        }
    receive_until_none(outstanding, "messages were lost without a restart");
    receive_until_none(queued, "left in a queue");
    for (uint32_t i = 0; i < nodes; i++) {
        muster_socket_release(all[i].socket);
        take_entries(i);
        muster_queue_release(all[i].f.queue);
    }
    for (uint32_t i = 0; i < (one_context ? 1 : nodes); i++) {
        NEED(muster_context_close(all[i].f.context, 10 * second) == MUSTER_OK, "the context did not close", i, 0);
        if (is_served) relay_end(&served);
        muster_context_release(all[i].f.context);
    }
}

static void make_step(uint64_t *state, int i) {
    const uint64_t kind = next_random(state) % 100;
    steps[i] = (step){.operation = kind < 45   ? SEND
                                   : kind < 80 ? RECEIVE
                                   : kind < 84 ? RESTART
                                   : kind < 87 ? CLOSE
                                   : kind < 90 ? CANCEL
                                   : kind < 95 ? RETURNED
                                               : EVENTS,
                      .node = (uint32_t)(next_random(state) % 1000),
                      .other = (uint32_t)(next_random(state) % 1000),
                      .count = (uint32_t)(next_random(state) % 1000)};
}

static void print_step(int i) {
    static const char *const names[] = {"send", "receive", "restart", "close", "cancel", "returned", "events"};
    fprintf(stderr, "  %d: %s node %u other %u count %u\n", i, names[steps[i].operation], steps[i].node % nodes,
            steps[i].other, steps[i].count);
}

static void drive_all(const char *at, int sequences, int count) {
    pattern = at;
    const sequence all_of_them = {.name = at, .count = count, .make = make_step, .run = run, .print = print_step};
    if (!run_sequences(&all_of_them, sequences)) fail_msg("see above");
}
static void test_inproc(void **state) {
    (void)state;
    drive_all("inproc://random-@", 40, 400);
}
static void test_tcp(void **state) {
    (void)state;
    drive_all("tcp://127.0.0.1:0?upgrade=no", 40, 400);
}
static void test_tcp_sealed(void **state) {
    (void)state;
    drive_all("tcp://127.0.0.1:0?upgrade=no&seal=yes", 20, 300);
}
static void test_shm(void **state) {
    (void)state;
    char at[64];
    snprintf(at, sizeof at, "shm://random-%d-@", getpid());
    drive_all(at, 30, 400);
}
static void test_unix(void **state) {
    (void)state;
    char at[64];
    snprintf(at, sizeof at, "unix://@@random-%d-@", getpid());
    drive_all(at, 20, 300);
}

static void test_a_transport_of_the_host(void **state) {
    (void)state;
    drive_all("relay://random-@", 20, 300);
}

static const char *argument;
static void test_argument(void **state) {
    (void)state;
    drive_all(argument, 20, 300);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inproc), cmocka_unit_test(test_tcp),  cmocka_unit_test(test_tcp_sealed),
        cmocka_unit_test(test_shm),    cmocka_unit_test(test_unix), cmocka_unit_test(test_a_transport_of_the_host)};
    const struct CMUnitTest given[] = {cmocka_unit_test(test_argument)};
    if (argc > 1) {
        argument = argv[1];
        return cmocka_run_group_tests(given, NULL, NULL);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
