/* SPDX-License-Identifier: MIT */
/* Blocking sockets between two processes, one write per message:  --over tcp|unix|tcp-relay
 * tcp-relay: a third process stands between the two and copies what either says. */
#include "bench.h"

#include <sys/socket.h>

struct channel {
    int fd;
};

static inline void channel_write(struct channel *c, const void *data, size_t size) {
    for (const char *from = data; size != 0;) {
        const ssize_t k = write(c->fd, from, size);
        if (k <= 0) die_errno("write");
        from += k, size -= (size_t)k;
    }
}
static inline size_t channel_read_some(struct channel *c, void *data, size_t most) {
    const ssize_t k = read(c->fd, data, most);
    if (k <= 0) die_errno("read");
    return (size_t)k;
}
static inline void channel_read(struct channel *c, void *data, size_t size) {
    for (char *to = data; size != 0;) {
        const size_t k = channel_read_some(c, to, size);
        to += k, size -= k;
    }
}

#include "patterns.h"
#include "tcp_pair.h"

/* One direction of the relay. */
struct way {
    struct channel from, to;
};

static void *copy_way(void *argument) {
    struct way *w = argument;
    enum { room = 256 << 10 };
    unsigned char *data = buffer(room);
    for (;;) {
        const ssize_t k = read(w->from.fd, data, room);
        if (k <= 0) break;
        channel_write(&w->to, data, (size_t)k);
    }
    shutdown(w->to.fd, SHUT_WR);
    return NULL;
}

static void relay(void *argument) {
    const int *pairs = argument;
    struct way forth = {{pairs[1]}, {pairs[2]}}, back = {{pairs[2]}, {pairs[1]}};
    pthread_t thread;
    close(pairs[0]), close(pairs[3]);
    if (pthread_create(&thread, NULL, copy_way, &back) != 0) die("pthread_create", "failed");
    copy_way(&forth);
    pthread_join(thread, NULL);
}

struct ends {
    struct options options;
    int pair[2];
};

static void second(void *argument) {
    struct ends *e = argument;
    close(e->pair[0]);
    take_core(e->options.cores, 1);
    struct channel c = {e->pair[1]};
    second_end(&e->options, &c, &c);
}

int main(int argc, char **argv) {
    struct ends e = {.options = read_options(argc, argv)};
    pid_t between = 0;
    if (!strcmp(e.options.over, "tcp")) {
        tcp_pair(e.pair);
    } else if (!strcmp(e.options.over, "tcp-relay")) {
        int pairs[4];
        tcp_pair(pairs), tcp_pair(pairs + 2);
        between = start_process(relay, pairs);
        close(pairs[1]), close(pairs[2]);
        e.pair[0] = pairs[0], e.pair[1] = pairs[3];
    } else if (socketpair(AF_UNIX, SOCK_STREAM, 0, e.pair) != 0)
        die_errno("socketpair");
    const pid_t child = start_process(second, &e);
    close(e.pair[1]);
    take_core(e.options.cores, 0);
    struct channel c = {e.pair[0]};
    first_end(&e.options, &c, &c);
    close(e.pair[0]);
    join_process(child);
    if (between != 0) join_process(between);
    return 0;
}
