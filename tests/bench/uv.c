/* SPDX-License-Identifier: MIT */
/* libuv between two processes, one loop each:  --over tcp|unix
 * A message is one uv_try_write, the rest of it one uv_write; at most 4 MiB are outstanding. */
#include "bench.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <uv.h>

enum { window = 4 << 20, read_room = 256 << 10, rounds = 9 };

static struct {
    struct options o;
    uv_loop_t loop;
    union {
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } link;
    char *data, *room;
    int first;         /* which end this is */
    long sent, wanted; /* messages of this run */
    uint64_t got, on_the_way;
    double begun, *times;
    long timed, cold, round;
} end;

static void check(int status, const char *where) {
    if (status < 0) die(where, uv_strerror(status));
}

static void pump(void);

struct later {
    uv_write_t request;
    size_t size;
};
static void written(uv_write_t *request, int status) {
    check(status, "write");
    end.on_the_way -= ((struct later *)request)->size;
    free(request);
    if (end.o.what == WHAT_ONEWAY && end.first) pump();
}

static void send_message(size_t size) {
    uv_buf_t rest = uv_buf_init(end.data, (unsigned)size);
    const int now = uv_try_write(&end.link.stream, &rest, 1);
    if (now == (int)size) return;
    if (now > 0) rest.base += now, rest.len -= (size_t)now;
    struct later *later = malloc(sizeof *later);
    if (later == NULL) die_errno("malloc");
    later->size = rest.len;
    end.on_the_way += rest.len;
    check(uv_write(&later->request, &end.link.stream, &rest, 1, written), "uv_write");
}

static void pump(void) {
    while (end.sent < end.wanted && end.on_the_way < window) end.sent++, send_message(end.o.size);
}

static void first_got_bytes(void) {
    if (end.o.what == WHAT_ONEWAY) {
        const double now = now_us();
        end.times[end.round] = now - end.begun;
        if (end.round++ == rounds) {
            print_rate(end.o.size, end.wanted, median(end.times + 1, rounds));
            uv_stop(&end.loop);
            return;
        }
        end.sent = 0;
        end.begun = now_us();
        pump();
        return;
    }
    for (; end.got >= end.o.size; end.got -= end.o.size) {
        const long bunch = end.o.size <= 4096 ? 16 : 1;
        if (++end.sent % bunch == 0) {
            const double now = now_us();
            const long at = end.sent / bunch - 1 - end.cold;
            if (at >= 0) end.times[at] = (now - end.begun) / (double)bunch / 2;
            if (at == end.timed - 1) {
                print_latency(median(end.times, end.timed));
                uv_stop(&end.loop);
                return;
            }
            end.begun = now_us();
        }
        send_message(end.o.size);
    }
}

static void second_got_bytes(void) {
    if (end.o.what == WHAT_ONEWAY) {
        if (end.got != (uint64_t)end.wanted * end.o.size) return;
        end.got = 0;
        send_message(1);
        return;
    }
    for (; end.got >= end.o.size; end.got -= end.o.size) send_message(end.o.size);
}

static void place(uv_handle_t *handle, size_t wanted, uv_buf_t *out) {
    (void)handle, (void)wanted;
    *out = uv_buf_init(end.room, read_room);
}
static void arrived(uv_stream_t *stream, ssize_t size, const uv_buf_t *data) {
    (void)stream, (void)data;
    if (size < 0) {
        uv_stop(&end.loop);
        return;
    }
    end.got += (uint64_t)size;
    if (end.first)
        first_got_bytes();
    else
        second_got_bytes();
}

static void run(int fd, int first) {
    end.first = first;
    take_core(end.o.cores, !first);
    end.data = (char *)buffer(end.o.size);
    end.room = (char *)buffer(read_room);
    check(uv_loop_init(&end.loop), "uv_loop_init");
    if (!strcmp(end.o.over, "tcp")) {
        check(uv_tcp_init(&end.loop, &end.link.tcp), "uv_tcp_init");
        check(uv_tcp_open(&end.link.tcp, fd), "uv_tcp_open");
        check(uv_tcp_nodelay(&end.link.tcp, 1), "uv_tcp_nodelay");
    } else {
        check(uv_pipe_init(&end.loop, &end.link.pipe, 0), "uv_pipe_init");
        check(uv_pipe_open(&end.link.pipe, fd), "uv_pipe_open");
    }
    check(uv_read_start(&end.link.stream, place, arrived), "uv_read_start");
    const long bunch = end.o.size <= 4096 ? 16 : 1;
    end.cold = end.o.count / 10 / bunch + 1;
    end.timed = end.o.what == WHAT_ONEWAY ? rounds + 1 : end.o.count / bunch + 1;
    end.times = malloc(sizeof *end.times * (size_t)end.timed);
    end.wanted = end.o.count / rounds + 1;
    if (first) {
        end.begun = now_us();
        if (end.o.what == WHAT_ONEWAY)
            pump();
        else
            send_message(end.o.size);
    }
    uv_run(&end.loop, UV_RUN_DEFAULT);
}

static int pair[2];

static void second(void *argument) {
    (void)argument;
    close(pair[0]);
    run(pair[1], 0);
}

int main(int argc, char **argv) {
    end.o = read_options(argc, argv);
    if (!strcmp(end.o.over, "tcp")) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
        socklen_t size = sizeof address;
        const int listener = socket(AF_INET, SOCK_STREAM, 0);
        if (bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 1) != 0 ||
            getsockname(listener, (struct sockaddr *)&address, &size) != 0)
            die_errno("listen");
        pair[0] = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(pair[0], (struct sockaddr *)&address, size) != 0) die_errno("connect");
        if ((pair[1] = accept(listener, NULL, NULL)) < 0) die_errno("accept");
        close(listener);
    } else if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) {
        die_errno("socketpair");
    }
    const pid_t child = start_process(second, NULL);
    close(pair[1]);
    run(pair[0], 1);
    uv_os_fd_t fd;
    if (uv_fileno((uv_handle_t *)&end.link, &fd) == 0) close(fd);
    join_process(child);
    return 0;
}
