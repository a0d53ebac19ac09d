// SPDX-License-Identifier: MIT
// ctest: full timeout=60
// A broker that sends data for which nobody has given credit, to a member whose thread is busy elsewhere: the member
// holds nothing of it. The bytes wait in the kernel and at the broker.
#include "hostile.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

enum { message_bytes = 24 + 256 * 1024, max_bytes = 128 << 20 };

typedef struct broker_of_data {
    int listener;
    atomic_int begin, met; // it may begin to flood; a member has said something
    size_t sent;
} broker_of_data;

static void put_head(unsigned char *out, int kind, uint64_t to) {
    memset(out, 0, 24);
    out[0] = 0xB7;
    out[1] = 1;
    out[2] = (unsigned char)kind;
    out[8] = (unsigned char)to;
    out[16] = 9; // from
}

static void send_all(int fd, const void *bytes, size_t size) {
    for (size_t at = 0; at < size;) {
        const ssize_t put = send(fd, (const unsigned char *)bytes + at, size - at, MSG_NOSIGNAL);
        assert_true(put > 0);
        at += (size_t)put;
    }
}

// Admits every peer, as a broker without a secret and without CURVE does: greeting, READY, welcome, ready.
static void let_in(int fd) {
    unsigned char greeting[64] = {0xFF, [8] = 1, [9] = 0x7F, [10] = 3, [12] = 'N', 'U', 'L', 'L'};
    unsigned char welcome[2 + 24 + 1 + 16 + 32] = {0, 24 + 1 + 16 + 32}, ready[2 + 24 + 8] = {0, 24 + 8};
    put_head(welcome + 2, 2, 0);
    welcome[2 + 24] = 1; // open
    put_head(ready + 2, 4, 7);
    ready[2 + 24 + 2] = 16; // a window of 1 MiB
    send_all(fd, greeting, sizeof greeting);
    send_all(fd, "\4\x29\5READY\013Socket-Type\0\0\0\6ROUTER\010Identity\0\0\0\0", 2 + 28 + 13);
    send_all(fd, welcome, sizeof welcome);
    send_all(fd, ready, sizeof ready);
}

static void *serve(void *argument) {
    broker_of_data *b = argument;
    static unsigned char data[9 + message_bytes] = {2};
    const int fd = accept4(b->listener, NULL, NULL, SOCK_CLOEXEC);
    let_in(fd);
    while (atomic_load(&b->begin) == 0) {
        char byte;
        struct pollfd said = {fd, POLLIN, 0};
        if (poll(&said, 1, 10) != 1) continue;
        if (recv(fd, &byte, 1, 0) <= 0) break; // what it says is of no interest
        atomic_store(&b->met, 1);
    }
    for (int i = 1; i < 9; i++) data[i] = (unsigned char)((uint64_t)message_bytes >> 8 * (8 - i));
    put_head(data + 9, 12, 7);
    for (size_t at = 0; b->sent < max_bytes;) {
        struct pollfd room = {fd, POLLOUT, 0};
        if (poll(&room, 1, 1000) != 1) break; // the member takes no more
        const ssize_t put = send(fd, data + at, sizeof data - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (put <= 0) break;
        b->sent += (size_t)put;
        at = (at + (size_t)put) % sizeof data;
    }
    close(fd);
    return NULL;
}

static void test_data_without_credit_waits_at_the_broker(void **state) {
    (void)state;
    broker_of_data b = {.sent = 0};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    b.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(b.listener, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(b.listener, 1), 0);
    assert_int_equal(getsockname(b.listener, (struct sockaddr *)&at, &size), 0);
    pthread_t serving;
    assert_int_equal(pthread_create(&serving, NULL, serve, &b), 0);
    char address[100];
    snprintf(address, sizeof address, "zmq://m@127.0.0.1:%d/?upgrade=no&curve=no", ntohs(at.sin_port));
    member m = {.context = make_context(MUSTER_CONTEXT_EXTERNAL, SECRET)};
    muster_stream *stream = NULL;
    muster_error error = {0};
    const muster_status status =
        muster_transport_dial(m.context, address, strlen(address), NULL, 500 * MILLISECOND, &stream, &error);
    if (status != MUSTER_TIMEOUT) fail_msg("%s %s", muster_status_name(status), error.message);
    assert_int_equal(b.met, 1);
    const long before = resident_kib();
    atomic_store(&b.begin, 1);
    pthread_join(serving, NULL); // no thread drives the context meanwhile
    const long held = resident_kib() - before;
    print_message("the broker got rid of %zu KiB; the member holds %ld KiB\n", b.sent >> 10, held);
    assert_true(b.sent != 0 && b.sent < max_bytes / 4); // the kernel's buffers
    assert_true(held < 4096);
    leave_star(&m);
    close(b.listener);
}

static int set_up(void **state) {
    return need_zmq(state);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_data_without_credit_waits_at_the_broker),
};

int main(void) {
    return cmocka_run_group_tests(tests, set_up, NULL);
}
