// SPDX-License-Identifier: MIT
// Members of a star that speak its protocol over raw sockets and do not keep to it.
#ifndef HOSTILE_H
#define HOSTILE_H

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

enum { hostile = 8, most_kib = 64 * 1024 };
enum { HELLO = 1, PROOF = 3, DATA = 12, CREDIT = 13 };

typedef struct raw {
    int fd;
    uint64_t id;
} raw;

static inline void put_all(int fd, const void *bytes, size_t size) {
    for (size_t done = 0; done < size;) {
        const ssize_t n = send(fd, (const char *)bytes + done, size - done, MSG_NOSIGNAL);
        assert_true(n > 0);
        done += (size_t)n;
    }
}

// One frame: ZMTP's length, the head, the payload. Returns its size.
static inline size_t frame(unsigned char *out, uint8_t kind, uint32_t word, uint64_t to, uint64_t from,
                           size_t payload) {
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
static inline void take_frame(int fd, unsigned char *head, size_t capacity) {
    unsigned char begin[2];
    assert_int_equal(recv(fd, begin, 2, MSG_WAITALL), 2);
    assert_in_range(begin[1], 1, capacity);
    assert_int_equal(recv(fd, head, begin[1], MSG_WAITALL), begin[1]);
}

static inline raw come_in(const broker *b) {
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
static inline void *run_flood(void *arg) {
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

static inline long resident_kib(void) {
    long pages = 0, all = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_int_equal(fscanf(file, "%ld %ld", &all, &pages), 2);
    fclose(file);
    return pages * 4;
}

#endif
