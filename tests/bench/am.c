/* SPDX-License-Identifier: MIT */
/* Active messages between two processes:  --over shm|unix|tcp --what latency|oneway --mode idle|computing --size BYTES
 * latency: half of a call with a handler of the library, so that it compares with the half round trip of a stream.
 * oneway: requests that are begun without waiting. computing: the host of the owner computes on its core meanwhile. */
#include "muster.h"

#include <muster/am.h>
#include <signal.h>

struct ends {
    struct options options;
    int addresses;
};

static muster_status add(void *user, uint32_t peer, const void *data, size_t bytes, void *reply, size_t capacity,
                         size_t *out_bytes) {
    (void)peer, (void)capacity, (void)data, (void)bytes;
    uint64_t *const sum = user;
    *sum += 1;
    memcpy(reply, sum, sizeof *sum);
    *out_bytes = sizeof *sum;
    return MUSTER_OK;
}

static void owner(void *argument) {
    struct ends *e = argument;
    take_core(e->options.cores, 1);
    muster_context *c = context();
    char address[512];
    const ssize_t size = read(e->addresses, address, sizeof address);
    if (size <= 0) die("address", "none came");
    muster_error error;
    muster_stream *stream;
    check("dial", muster_transport_dial(c, address, (size_t)size, NULL, 10000000000, &stream, &error), &error);
    muster_am *am;
    uint32_t peer;
    uint64_t sum = 0;
    check("create", muster_am_create(c, NULL, &am, &error), &error);
    check("handler", muster_am_set_handler(am, 1, add, &sum), NULL);
    check("peer", muster_am_add_peer(am, stream, &peer, &error), &error);
    if (!strcmp(e->options.mode, "computing"))
        for (volatile uint64_t work = 0;; work++)
            if (getppid() == 1) _exit(0);
    for (;;) pause();
}

int main(int argc, char **argv) {
    struct ends ends = {.options = read_options(argc, argv)}, *e = &ends;
    int addresses[2];
    if (pipe(addresses) != 0) die_errno("pipe");
    e->addresses = addresses[0];
    const pid_t child = start_process(owner, e);
    take_core(e->options.cores, 0);
    muster_context *c = context();
    char where[512], address[512];
    const char *over = e->options.over, *folder = getenv("TMPDIR");
    size_t size = 0;
    if (!strcmp(over, "tcp"))
        snprintf(where, sizeof where, "tcp://127.0.0.1:0?upgrade=no");
    else if (!strcmp(over, "unix"))
        snprintf(where, sizeof where, "unix://%s/muster-bench-%d?upgrade=no", folder ? folder : "/tmp", (int)getpid());
    else
        snprintf(where, sizeof where, "%s://muster-bench-%d", over, (int)getpid());
    muster_listener *listener;
    muster_error error;
    check("listen", muster_transport_listen(c, where, strlen(where), NULL, &listener, &error), &error);
    check("address", muster_listener_address(listener, address, sizeof address, &size), NULL);
    if (write(addresses[1], address, size) != (ssize_t)size) die_errno("write");
    muster_stream *stream;
    check("accept", muster_listener_accept(listener, 10000000000, &stream, &error), &error);
    muster_am *am;
    uint32_t peer;
    check("create", muster_am_create(c, NULL, &am, &error), &error);
    check("peer", muster_am_add_peer(am, stream, &peer, &error), &error);
    unsigned char *data = buffer(e->options.size);
    uint64_t reply;
    const long count = e->options.count;
    for (long i = 0; i < count / 10 + 10; i++)
        check("call", muster_am_call(am, peer, 1, data, e->options.size, &reply, sizeof reply, -1, NULL, &error),
              &error);
    if (e->options.what == WHAT_LATENCY) {
        double *times = malloc((size_t)count * sizeof *times);
        if (times == NULL) die_errno("malloc");
        for (long i = 0; i < count; i++) {
            const double from = now_us();
            check("call", muster_am_call(am, peer, 1, data, e->options.size, &reply, sizeof reply, -1, NULL, &error),
                  &error);
            times[i] = now_us() - from;
        }
        print_latency(median(times, count) / 2);
    } else {
        const double from = now_us();
        for (long i = 0; i < count; i++) {
            muster_status status;
            while ((status = muster_am_begin(am, peer, 1, data, e->options.size, NULL, 0, NULL, 0)) == MUSTER_AGAIN)
                check("flush", muster_am_flush(am, peer, -1), NULL);
            check("begin", status, NULL);
        }
        check("flush", muster_am_flush(am, peer, -1), NULL);
        print_rate(e->options.size, count, now_us() - from);
    }
    muster_am_release(am);
    muster_listener_release(listener);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    check("close", muster_context_close(c, 10000000000), NULL);
    muster_context_release(c);
    return 0;
}
