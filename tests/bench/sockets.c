/* SPDX-License-Identifier: MIT */
/* Blocking sockets between two processes, one write per message:  --over tcp|unix */
#include "bench.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
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

static void tcp_pair(int pair[2]) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    const int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    if (bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0)
        die_errno("listen");
    pair[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(pair[0], (struct sockaddr *)&address, size) != 0) die_errno("connect");
    if ((pair[1] = accept(listener, NULL, NULL)) < 0) die_errno("accept");
    for (int i = 0; i < 2; i++)
        if (setsockopt(pair[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) die_errno("TCP_NODELAY");
    close(listener);
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
    if (!strcmp(e.options.over, "tcp"))
        tcp_pair(e.pair);
    else if (socketpair(AF_UNIX, SOCK_STREAM, 0, e.pair) != 0)
        die_errno("socketpair");
    const pid_t child = start_process(second, &e);
    close(e.pair[1]);
    take_core(e.options.cores, 0);
    struct channel c = {e.pair[0]};
    first_end(&e.options, &c, &c);
    close(e.pair[0]);
    join_process(child);
    return 0;
}
