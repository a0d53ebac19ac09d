/* SPDX-License-Identifier: MIT */
/* Two processes; one listens, the other dials:  --over shm|unix|tcp|tcp-sealed|tcp-upgraded */
#include "muster.h"

struct ends {
    struct options options;
    int addresses; /* where the second end reads the address to dial */
};

static void second_process(void *argument) {
    struct ends *e = argument;
    take_core(e->options.cores, 1);
    muster_context *c = context();
    char address[512];
    const ssize_t size = read(e->addresses, address, sizeof address);
    if (size <= 0) die("address", "none came");
    muster_error error;
    muster_stream *streams[2];
    for (int i = 0; i < 2; i++)
        check("dial", muster_transport_dial(c, address, (size_t)size, NULL, 10000000000, &streams[i], &error), &error);
    struct channel in = {streams[0]}, out = {streams[e->options.what == WHAT_HANDOVER]};
    second_end(&e->options, &out, &in);
    for (int i = 0; i < 2; i++) muster_stream_close(streams[i], 10000000000), muster_stream_release(streams[i]);
    check("close", muster_context_close(c, 10000000000), NULL);
    muster_context_release(c);
}

/* Listens, and lets a child dial: the second end. The context is made after the fork. */
int main(int argc, char **argv) {
    struct ends ends = {.options = read_options(argc, argv)}, *e = &ends;
    int addresses[2];
    if (pipe(addresses) != 0) die_errno("pipe");
    e->addresses = addresses[0];
    const pid_t child = start_process(second_process, e);
    take_core(e->options.cores, 0);
    muster_context *c = context();
    char where[512], address[512];
    const char *over = e->options.over, *folder = getenv("TMPDIR");
    size_t size = 0;
    if (!strcmp(over, "tcp"))
        snprintf(where, sizeof where, "tcp://127.0.0.1:0?upgrade=no");
    else if (!strcmp(over, "tcp-sealed"))
        snprintf(where, sizeof where, "tcp://127.0.0.1:0?upgrade=no&seal=yes");
    else if (!strcmp(over, "tcp-upgraded"))
        snprintf(where, sizeof where, "tcp://127.0.0.1:0");
    else if (!strcmp(over, "unix"))
        snprintf(where, sizeof where, "unix://%s/muster-bench-%d?upgrade=no", folder ? folder : "/tmp", (int)getpid());
    else
        snprintf(where, sizeof where, "%s://muster-bench-%d", over, (int)getpid());
    muster_listener *listener;
    muster_error error;
    check("listen", muster_transport_listen(c, where, strlen(where), NULL, &listener, &error), &error);
    check("address", muster_listener_address(listener, address, sizeof address, &size), NULL);
    if (write(addresses[1], address, size) != (ssize_t)size) die_errno("write");
    muster_stream *streams[2];
    for (int i = 0; i < 2; i++)
        check("accept", muster_listener_accept(listener, 10000000000, &streams[i], &error), &error);
    struct channel out = {streams[0]}, in = {streams[e->options.what == WHAT_HANDOVER]};
    first_end(&e->options, &out, &in);
    for (int i = 0; i < 2; i++) muster_stream_close(streams[i], 10000000000), muster_stream_release(streams[i]);
    muster_listener_release(listener);
    check("close", muster_context_close(c, 10000000000), NULL);
    muster_context_release(c);
    join_process(child);
    return 0;
}
