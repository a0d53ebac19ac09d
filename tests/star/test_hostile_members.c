// SPDX-License-Identifier: MIT
// ctest: full timeout=120
// Members that speak the protocol and do not keep to it: what they make the broker hold is bounded, and honest members
// go on. They are raw sockets, so that nothing but the broker holds what they send.
#include "star.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { hostile = 8, run_ms = 3000, most_kib = 64 * 1024 };
enum { HELLO = 1, PROOF = 3, DATA = 12, CREDIT = 13 };

typedef struct raw {
    int fd;
    uint64_t id;
} raw;

static void put_all(int fd, const void *bytes, size_t size) {
    for (size_t done = 0; done < size;) {
        const ssize_t n = send(fd, (const char *)bytes + done, size - done, MSG_NOSIGNAL);
        assert_true(n > 0);
        done += (size_t)n;
    }
}

// One frame: ZMTP's length, the head, the payload. Returns its size.
static size_t frame(unsigned char *out, uint8_t kind, uint32_t word, uint64_t to, uint64_t from, size_t payload) {
    const uint64_t size = 24 + payload;
    out[0] = 2;
    for (int i = 0; i < 8; i++) out[1 + i] = (unsigned char)(size >> (56 - 8 * i));
    unsigned char *const head = out + 9;
    memset(head, 0, size);
    head[0] = 0xB7, head[1] = 1, head[2] = kind;
    memcpy(head + 4, &word, 4);
    memcpy(head + 8, &to, 8);
    memcpy(head + 16, &from, 8);
    return 9 + size;
}

// The head of the next frame, which is a short one, without the bytes before it.
static void take_frame(int fd, unsigned char *head, size_t capacity) {
    unsigned char begin[2];
    assert_int_equal(recv(fd, begin, 2, MSG_WAITALL), 2);
    assert_in_range(begin[1], 1, capacity);
    assert_int_equal(recv(fd, head, begin[1], MSG_WAITALL), begin[1]);
}

static raw come_in(const broker *b) {
    static const unsigned char ready[] = "\x04\x1b\x05READY\x0bSocket-Type\0\0\0\x06"
                                         "DEALER";
    unsigned char greeting[64] = {0xFF, [8] = 1, [9] = 0x7F, [10] = 3, [12] = 'N', 'U', 'L', 'L'}, bytes[256];
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    where.sin_port = htons((uint16_t)atoi(strrchr(b->place, ':') + 1));
    raw r = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    const int small = 4096; // what waits, waits at the broker
    setsockopt(r.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    assert_int_equal(connect(r.fd, (struct sockaddr *)&where, sizeof where), 0);
    put_all(r.fd, greeting, sizeof greeting);
    memcpy(bytes, ready, sizeof ready - 1);
    bytes[1] = sizeof ready - 3;
    put_all(r.fd, bytes, sizeof ready - 1);
    assert_int_equal(recv(r.fd, bytes, 64, MSG_WAITALL), 64);
    take_frame(r.fd, bytes, sizeof bytes); // READY
    size_t size = frame(bytes, HELLO, 0, 0, 0, 17);
    put_all(r.fd, bytes, size);
    take_frame(r.fd, bytes, sizeof bytes); // welcome
    assert_int_equal(bytes[2], 2);
    size = frame(bytes, PROOF, 0, 0, 0, 32);
    put_all(r.fd, bytes, size);
    take_frame(r.fd, bytes, sizeof bytes); // ready
    assert_int_equal(bytes[2], 4);
    memcpy(&r.id, bytes + 8, 8);
    return r;
}

typedef struct flood {
    const broker *b;
    raw members[hostile];
    int self;
    bool reads, credits, data;
    uint32_t credit_word;
    size_t credit_payload, data_payload;
    atomic_bool *over;
    _Atomic uint64_t *sent;
} flood;

// Sends as fast as the broker takes it, to all others; stops for good when it is hung up on.
static void *run_flood(void *arg) {
    flood *f = arg;
    const raw *self = &f->members[f->self];
    unsigned char *bytes = malloc(1 << 20);
    char sink[65536];
    for (uint64_t turn = 0; !atomic_load(f->over); turn++) {
        const uint64_t to = f->members[(f->self + 1 + turn % (hostile - 1)) % hostile].id;
        size_t size = 0;
        if (f->data) size += frame(bytes, DATA, 0, to, self->id, f->data_payload);
        if (f->credits) size += frame(bytes + size, CREDIT, f->credit_word, to, self->id, f->credit_payload);
        for (size_t done = 0; done < size && !atomic_load(f->over);) {
            const ssize_t n = send(self->fd, bytes + done, size - done, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (n > 0) {
                done += (size_t)n;
                atomic_fetch_add(f->sent, (uint64_t)n);
            } else if (errno != EAGAIN) {
                goto ended;
            } else {
                struct pollfd can = {self->fd, POLLOUT, 0};
                poll(&can, 1, 50);
            }
        }
        while (f->reads && recv(self->fd, sink, sizeof sink, MSG_DONTWAIT) > 0) {
        }
    }
ended:
    free(bytes);
    return NULL;
}

static long resident_kib(void) {
    long pages = 0, all = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_int_equal(fscanf(file, "%ld %ld", &all, &pages), 2);
    fclose(file);
    return pages * 4;
}

static void bounded_under(const char *name, flood like, int readers) {
    broker b = {0};
    muster_error error = {0};
    const muster_broker_config config = {.struct_size = sizeof config,
                                         .flags = MUSTER_BROKER_OPEN | MUSTER_BROKER_NO_CURVE};
    if (try_configured_broker(&b, SECRET, "zmq://127.0.0.1:0/", &config, &error) != MUSTER_OK)
        fail_msg("%s", error.message);
    atomic_bool over = false;
    _Atomic uint64_t sent = 0;
    flood floods[hostile];
    pthread_t threads[hostile];
    for (int i = 0; i < hostile; i++) like.members[i] = come_in(&b);
    const long before = resident_kib();
    for (int i = 0; i < hostile; i++) {
        floods[i] = like;
        floods[i].b = &b, floods[i].self = i, floods[i].over = &over, floods[i].sent = &sent;
        floods[i].reads = i < readers;
        assert_int_equal(pthread_create(&threads[i], NULL, run_flood, &floods[i]), 0);
    }
    long most = 0;
    for (int t = 0; t < run_ms / 10; t++) {
        const struct timespec pause = {0, 10000000}; // between two looks at what is held
        nanosleep(&pause, NULL);
        const long now = resident_kib() - before;
        if (now > most) most = now;
    }
    // An honest pair is served meanwhile.
    member one = join_star(&b, "one", "/?upgrade=no&curve=no&auth=none"),
           two = join_star(&b, NULL, "/?upgrade=no&curve=no&auth=none");
    char dialled[600];
    snprintf(dialled, sizeof dialled, "%s%sauth=none", one.address, strchr(one.address, '?') ? "&" : "?");
    muster_stream *near = dial_member(&two, strstr(one.address, "auth=none") ? one.address : dialled);
    muster_stream *far = accept_one(&one);
    put(near, "hello");
    expect(far, "hello");
    atomic_store(&over, true);
    for (int i = 0; i < hostile; i++) pthread_join(threads[i], NULL);
    print_message("%s: %d members sent %llu MiB, the broker held at most %ld KiB more\n", name, hostile,
                  (unsigned long long)(atomic_load(&sent) >> 20), most);
    assert_true(most <= most_kib);
    muster_stream_release(near);
    muster_stream_release(far);
    leave_star(&one);
    leave_star(&two);
    for (int i = 0; i < hostile; i++) close(like.members[i].fd);
    AWAIT_FIGURE(&b, s.connections == 0);
    stop_broker(&b);
}

static void test_credit_with_a_payload(void **state) {
    (void)state;
    bounded_under("credit with a payload", (flood){.credits = true, .credit_word = 4096, .credit_payload = 200000}, 0);
}

static void test_credit_that_nobody_is_owed(void **state) {
    (void)state;
    bounded_under("credit for nothing", (flood){.credits = true, .credit_word = 4096}, 0);
}

static void test_credit_for_what_was_not_read(void **state) {
    (void)state;
    bounded_under("credit for what was not read",
                  (flood){.data = true, .data_payload = 3000, .credits = true, .credit_word = 4096}, 0);
}

static void test_credit_to_those_who_do_not_read(void **state) {
    (void)state;
    bounded_under("credit to those who do not read",
                  (flood){.data = true, .data_payload = 1000, .credits = true, .credit_word = 1024}, hostile / 2);
}

static void test_data_to_those_who_do_not_read(void **state) {
    (void)state;
    bounded_under("data to those who do not read", (flood){.data = true, .data_payload = 200000}, 0);
}

static int set_up(void **state) {
    return need_zmq(state);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_credit_with_a_payload),         cmocka_unit_test(test_credit_that_nobody_is_owed),
    cmocka_unit_test(test_credit_for_what_was_not_read),  cmocka_unit_test(test_credit_to_those_who_do_not_read),
    cmocka_unit_test(test_data_to_those_who_do_not_read),
};

int main(void) {
    return cmocka_run_group_tests(tests, set_up, NULL);
}
