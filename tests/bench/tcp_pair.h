/* SPDX-License-Identifier: MIT */
/* Two connected sockets over loopback, without Nagle's delay. */
#pragma once
#include "bench.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

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
