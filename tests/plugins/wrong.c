// SPDX-License-Identifier: MIT
/* A plug-in that answers what plugin.h does not allow; the address says what: wrong://nothing, wrong://empty,
 * wrong://huge; one that keeps the thread of the context for more than a second, wrong://slow; and one that does not
 * return before the test lets it, wrong://held. For
 * tests/api/test_plugin.c. */
#include <muster/plugin.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int place; // what its handles point to

static muster_status dial_nothing(void *self, const char *address, uint64_t bytes, muster_link *link, void **out,
                                  muster_error *error) {
    (void)self, (void)address, (void)bytes, (void)link, (void)error;
    *out = NULL;
    return MUSTER_OK;
}

static muster_status listen_somehow(void *self, const char *address, uint64_t bytes, muster_acceptor *acceptor,
                                    void **out, char *text, uint64_t *text_bytes, muster_error *error) {
    (void)self, (void)acceptor, (void)error;
    if (bytes >= 4 && memcmp(address + bytes - 4, "slow", 4) == 0) {
        const struct timespec long_time = {1, 50000000};
        nanosleep(&long_time, NULL);
        return MUSTER_E_UNREACHABLE;
    }
    if (bytes >= 4 && memcmp(address + bytes - 4, "held", 4) == 0) { // until the test writes into a pipe
        char byte;
        const char *const fd = getenv("MUSTER_TEST_HELD_FD");
        if (fd != NULL && read(atoi(fd), &byte, 1) != 1) return MUSTER_E_SYSTEM;
        return MUSTER_E_UNREACHABLE;
    }
    memset(text, 'x', 4096);
    *out = &place;
    *text_bytes = bytes >= 4 && memcmp(address + bytes - 4, "huge", 4) == 0 ? 1000000 : 0;
    return MUSTER_OK;
}

static void unlisten(void *self, void *listener) {
    (void)self, (void)listener;
}
static muster_status send_nothing(void *connection, const muster_span *spans, uint32_t count, uint64_t *out_bytes) {
    (void)connection, (void)spans, (void)count;
    *out_bytes = 0;
    return MUSTER_AGAIN;
}
static void stop(void *self) {
    (void)self;
}
static void end_of(void *connection) {
    (void)connection;
}

static const muster_connections_ops ops = {.struct_size = sizeof ops,
                                           .stop = stop,
                                           .dial = dial_nothing,
                                           .listen = listen_somehow,
                                           .unlisten = unlisten,
                                           .send = send_nothing,
                                           .resume = end_of,
                                           .finish = end_of,
                                           .close = end_of,
                                           .abort = end_of};

MUSTER_API muster_status muster_plugin_v1(const muster_host *host, muster_error *error);

muster_status muster_plugin_v1(const muster_host *host, muster_error *error) {
    return host->add_connections(host, "wrong", 5, &ops, NULL, error);
}
