// SPDX-License-Identifier: MIT
// A relay between a client and a server that does harm at one point of the next request, once it is armed.
#ifndef FAULT_RELAY_H
#define FAULT_RELAY_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum relay_fault {
    relay_none,
    relay_cut_before_request,
    relay_cut_in_request,
    relay_cut_before_answer,
    relay_cut_in_answer,
    relay_hold_request, // until it is healed
    relay_hold_answer,
    relay_kill_before_request,
    relay_kill_before_answer,
    relay_stop_server,
    relay_fault_count
};
static const char *const relay_fault_names[relay_fault_count] = {
    "none",         "cut before request", "cut in request",      "cut before answer",  "cut in answer",
    "hold request", "hold answer",        "kill before request", "kill before answer", "stop"};

enum { relay_pairs = 64 };

typedef struct relay_side {
    int fd;
    size_t held_bytes;
    char held[1 << 16];
} relay_side;

typedef struct fault_relay {
    int listener, wake[2];
    uint16_t to;
    int port;
    pthread_t thread;
    pthread_mutex_t lock;  // guards what follows, but for the pairs, which are the thread's
    pthread_cond_t passed; // bytes were passed on, or a fault has happened
    int fault;             // that is to happen; relay_none: nothing
    bool answer_next;      // the request was let through
    bool apart, holding, ends;
    void (*kill)(void *self);
    void *self;
    struct {
        relay_side client, server;
    } * pairs;
} fault_relay;

static inline void relay_close(fault_relay *r, int i) {
    if (r->pairs[i].client.fd >= 0) close(r->pairs[i].client.fd);
    if (r->pairs[i].server.fd >= 0) close(r->pairs[i].server.fd);
    r->pairs[i].client.fd = r->pairs[i].server.fd = -1;
    r->pairs[i].client.held_bytes = r->pairs[i].server.held_bytes = 0;
}

static inline int relay_dial(uint16_t to) {
    const struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = to};
    const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(s, (const struct sockaddr *)&at, sizeof at) == 0) return s;
    close(s);
    return -1;
}

static inline bool relay_send(int to, const char *bytes, size_t size) {
    while (size != 0) {
        const ssize_t n = send(to, bytes, size, MSG_NOSIGNAL);
        if (n <= 0) return false;
        bytes += n;
        size -= (size_t)n;
    }
    return true;
}

// With the lock. False: the pair is to be closed.
static inline bool relay_pass(fault_relay *r, relay_side *from, relay_side *to, bool answer) {
    size_t room = sizeof from->held - from->held_bytes;
    const ssize_t n = room == 0 ? 0 : recv(from->fd, from->held + from->held_bytes, room, MSG_DONTWAIT);
    if (n == 0) return false;
    if (n < 0) return true;
    const char *const bytes = from->held;
    const size_t size = from->held_bytes += (size_t)n;
    if (r->holding) return true;
    const int fault = r->fault;
    from->held_bytes = 0;
    if (!answer && !r->answer_next) switch (fault) {
        case relay_cut_before_request:
            r->fault = relay_none;
            r->apart = true;
            return false;
        case relay_cut_in_request:
            r->fault = relay_none;
            r->apart = true;
            relay_send(to->fd, bytes, size / 2);
            return false;
        case relay_hold_request:
            r->fault = relay_none;
            r->holding = true;
            from->held_bytes = size;
            return true;
        case relay_kill_before_request:
            r->fault = relay_none;
            r->apart = true;
            r->kill(r->self);
            return false;
        case relay_none:
            break;
        default:
            r->answer_next = true;
        }
    else if (answer && r->answer_next)
        switch (fault) {
        case relay_cut_before_answer:
        case relay_kill_before_answer:
            r->apart = true;
            r->fault = relay_none;
            r->answer_next = false;
            if (fault == relay_kill_before_answer) r->kill(r->self);
            return false;
        case relay_cut_in_answer:
            r->apart = true;
            r->fault = relay_none;
            r->answer_next = false;
            relay_send(to->fd, bytes, size / 2);
            return false;
        default:
            r->fault = relay_none;
            r->answer_next = false;
            r->holding = true;
            from->held_bytes = size;
            return true;
        }
    return relay_send(to->fd, bytes, size);
}

static inline void *relay_run(void *argument) {
    fault_relay *const r = argument;
    for (;;) {
        struct pollfd all[2 + 2 * relay_pairs];
        pthread_mutex_lock(&r->lock);
        const bool apart = r->apart;
        for (int i = 0; !r->holding && i < relay_pairs; i++) {
            if (r->pairs[i].client.fd < 0) continue;
            relay_side *const sides[2] = {&r->pairs[i].client, &r->pairs[i].server};
            bool fine = true;
            for (int k = 0; k < 2; k++) {
                if (sides[k]->held_bytes != 0)
                    fine = relay_send(sides[1 - k]->fd, sides[k]->held, sides[k]->held_bytes) && fine;
                sides[k]->held_bytes = 0;
            }
            if (!fine) relay_close(r, i);
        }
        pthread_mutex_unlock(&r->lock);
        all[0] = (struct pollfd){r->wake[0], POLLIN, 0};
        all[1] = (struct pollfd){apart ? -1 : r->listener, POLLIN, 0};
        for (int i = 0; i < relay_pairs; i++) {
            all[2 + 2 * i] = (struct pollfd){r->pairs[i].client.fd, POLLIN, 0};
            all[3 + 2 * i] = (struct pollfd){r->pairs[i].server.fd, POLLIN, 0};
        }
        poll(all, 2 + 2 * relay_pairs, -1);
        char byte;
        if (all[0].revents && read(r->wake[0], &byte, 1) != 1) return NULL;
        pthread_mutex_lock(&r->lock);
        const bool ends = r->ends;
        for (int i = 0; i < relay_pairs; i++) {
            bool fine = true;
            if (all[2 + 2 * i].revents) fine = relay_pass(r, &r->pairs[i].client, &r->pairs[i].server, false);
            if (fine && all[3 + 2 * i].revents) fine = relay_pass(r, &r->pairs[i].server, &r->pairs[i].client, true);
            if (!fine || ends) relay_close(r, i);
        }
        pthread_cond_broadcast(&r->passed);
        if (all[1].revents && !r->apart && !ends) {
            const int client = accept4(r->listener, NULL, NULL, SOCK_CLOEXEC), server = relay_dial(r->to);
            int i = 0;
            while (i < relay_pairs && r->pairs[i].client.fd >= 0) i++;
            if (server >= 0 && i < relay_pairs) {
                r->pairs[i].client.fd = client;
                r->pairs[i].server.fd = server;
            } else {
                close(client);
                if (server >= 0) close(server);
            }
        }
        pthread_mutex_unlock(&r->lock);
        if (ends) return NULL;
    }
}

static inline void relay_wake(fault_relay *r) {
    const char byte = 0;
    if (write(r->wake[1], &byte, 1) != 1) abort();
}

static inline void relay_start(fault_relay *r, int to) {
    memset(r, 0, sizeof *r);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    r->to = htons((uint16_t)to);
    r->pairs = malloc(relay_pairs * sizeof *r->pairs);
    for (int i = 0; i < relay_pairs; i++) {
        r->pairs[i].client.fd = r->pairs[i].server.fd = -1;
        r->pairs[i].client.held_bytes = r->pairs[i].server.held_bytes = 0;
    }
    r->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->passed, NULL);
    if (bind(r->listener, (struct sockaddr *)&at, size) != 0 || listen(r->listener, 64) != 0 ||
        getsockname(r->listener, (struct sockaddr *)&at, &size) != 0 || pipe(r->wake) != 0 ||
        pthread_create(&r->thread, NULL, relay_run, r) != 0)
        abort();
    r->port = ntohs(at.sin_port);
}

static inline void relay_end(fault_relay *r) {
    pthread_mutex_lock(&r->lock);
    r->ends = true;
    pthread_mutex_unlock(&r->lock);
    relay_wake(r);
    pthread_join(r->thread, NULL);
    close(r->listener);
    close(r->wake[0]);
    close(r->wake[1]);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->passed);
    free(r->pairs);
}

static inline void relay_arm(fault_relay *r, int fault) {
    pthread_mutex_lock(&r->lock);
    r->fault = fault;
    r->answer_next = false;
    pthread_mutex_unlock(&r->lock);
}

// The fault is over, or does not happen any more.
static inline void relay_heal(fault_relay *r) {
    pthread_mutex_lock(&r->lock);
    r->fault = relay_none;
    r->apart = r->holding = r->answer_next = false;
    pthread_mutex_unlock(&r->lock);
    relay_wake(r);
}

#endif
