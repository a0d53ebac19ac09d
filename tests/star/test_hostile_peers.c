// SPDX-License-Identifier: MIT
// ctest: full timeout=120
// Peers that speak ZMTP to a broker without libzmq: what they call themselves, and what they send before they are in.
#include "star.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

static int connect_raw(const broker *b) {
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    where.sin_port = htons((uint16_t)atoi(strrchr(b->place, ':') + 1));
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&where, sizeof where), 0);
    return fd;
}

static void put_raw(int fd, const void *bytes, size_t size) {
    assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), size);
}

// ZMTP 3.0, NULL, a DEALER of that identity; returns when the broker has answered with its READY.
static int greet(const broker *b, const void *identity, size_t identity_bytes) {
    static const unsigned char ready[] = "\x04\x00\x05READY\x0bSocket-Type\0\0\0\x06"
                                         "DEALER\x08Identity\0\0\0";
    unsigned char greeting[64] = {0xFF, [8] = 1, [9] = 0x7F, [10] = 3, [12] = 'N', 'U', 'L', 'L'}, words[128];
    const int fd = connect_raw(b);
    put_raw(fd, greeting, sizeof greeting);
    const size_t fixed = sizeof ready - 1;
    memcpy(words, ready, fixed);
    words[fixed] = (unsigned char)identity_bytes;
    memcpy(words + fixed + 1, identity, identity_bytes);
    words[1] = (unsigned char)(fixed + 1 + identity_bytes - 2);
    put_raw(fd, words, fixed + 1 + identity_bytes);
    unsigned char answer[64 + 8];
    assert_int_equal(recv(fd, answer, sizeof answer, MSG_WAITALL), sizeof answer);
    assert_memory_equal(answer + 64 + 2, "\5READY", 6);
    return fd;
}

// libzmq's ROUTER numbers its connections from rand() on, which is not seeded, and aborts when a number is in use.
static void test_nobody_chooses_the_number_of_a_connection(void **state) {
    (void)state;
    enum { crowd = 64 };
    static const uint32_t starts[] = {1804289383U, 1804289383U | 846930886U << 31, 846930886U, 1681692777U};
    broker b = start_broker(MUSTER_BROKER_NO_CURVE);
    int fds[crowd];
    for (uint32_t i = 0; i < crowd; i++) {
        const uint32_t number = htonl(starts[i % 4] + i / 4 + 1);
        unsigned char identity[5] = {0};
        memcpy(identity + 1, &number, 4);
        fds[i] = greet(&b, identity, sizeof identity);
    }
    int others[crowd];
    for (int i = 0; i < crowd; i++) others[i] = greet(&b, "same", 4);
    member one = join_star(&b, "one", "/?upgrade=no&curve=no"), two = join_star(&b, NULL, "/?upgrade=no&curve=no");
    between s = connect_members(&two, &one);
    transfer(s.near, s.far, 3000000);
    drop_between(&s);
    leave_star(&one);
    leave_star(&two);
    for (int i = 0; i < crowd; i++) close(fds[i]), close(others[i]);
    AWAIT_FIGURE(&b, s.connections == 0);
    stop_broker(&b);
}

static void await_hang_up(int fd) {
    unsigned char bytes[256];
    ssize_t got;
    for (;;) {
        struct pollfd waiting = {fd, POLLIN, 0};
        assert_int_equal(poll(&waiting, 1, 20000), 1);
        got = recv(fd, bytes, sizeof bytes, 0);
        if (got <= 0) break;
    }
    assert_true(got == 0 || errno == ECONNRESET);
    close(fd);
}

static void test_nonsense_is_hung_up_on(void **state) {
    (void)state;
    broker b = start_broker(MUSTER_BROKER_NO_CURVE);
    int fd = connect_raw(&b);
    put_raw(fd, "GET / HTTP/1.0\r\n\r\n", 18);
    await_hang_up(fd);
    fd = greet(&b, "a", 1);
    put_raw(fd, "\x02\x7f\xff\xff\xff\xff\xff\xff\xff", 9); // a frame of 2^63 bytes
    await_hang_up(fd);
    fd = greet(&b, "b", 1);
    put_raw(fd, "\xf0\x01x", 3);
    await_hang_up(fd);
    fd = greet(&b, "c", 1);
    put_raw(fd, "\x00\x05hello", 7); // a frame, but no message of a star
    await_hang_up(fd);
    stop_broker(&b);
}

// A silent connection has 10 s.
static void test_silence_is_hung_up_on(void **state) {
    (void)state;
    broker b = start_broker(MUSTER_BROKER_NO_CURVE);
    const int fd = connect_raw(&b);
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    await_hang_up(fd);
    clock_gettime(CLOCK_MONOTONIC, &to);
    assert_in_range(to.tv_sec - from.tv_sec, 9, 18);
    stop_broker(&b);
}

// Of more than 1,024 connections that are not members the first ones are displaced; members can join.
static void test_a_crowd_makes_room(void **state) {
    (void)state;
    enum { most = 1024, more = 40 };
    struct rlimit files;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    if (files.rlim_max < 4096) skip();
    files.rlim_cur = files.rlim_max < 65536 ? files.rlim_max : 65536;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    broker b = start_broker(MUSTER_BROKER_NO_CURVE);
    int fds[most + more];
    for (int i = 0; i < most + more; i++) fds[i] = connect_raw(&b);
    for (int i = 0; i < more; i++) await_hang_up(fds[i]);
    char bytes[256];
    ssize_t got;
    while ((got = recv(fds[most + more - 1], bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
    }
    assert_true(got < 0 && errno == EAGAIN);
    member one = join_star(&b, "one", "/?upgrade=no&curve=no"), two = join_star(&b, NULL, "/?upgrade=no&curve=no");
    between s = connect_members(&two, &one);
    transfer(s.near, s.far, 3000000);
    drop_between(&s);
    leave_star(&one);
    leave_star(&two);
    for (int i = more; i < most + more; i++) close(fds[i]);
    stop_broker(&b);
}

static int set_up(void **state) {
    return need_zmq(state);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_nobody_chooses_the_number_of_a_connection),
    cmocka_unit_test(test_nonsense_is_hung_up_on),
    cmocka_unit_test(test_silence_is_hung_up_on),
    cmocka_unit_test(test_a_crowd_makes_room),
};

int main(void) {
    return cmocka_run_group_tests(tests, set_up, NULL);
}
