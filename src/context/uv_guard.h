/* SPDX-License-Identifier: MIT */
/* Included before libuv's unix/epoll.c, which aborts the process when the kernel does not register a descriptor: its
 * call goes to uv_guard.cpp. In that file `loop` is the name of the loop wherever it is called. */
#ifndef MUSTER_CONTEXT_UV_GUARD_H
#define MUSTER_CONTEXT_UV_GUARD_H

#include <sys/epoll.h>

#ifdef __cplusplus
extern "C" {
#endif

struct uv_loop_s;

int muster_uv_register(int epoll, int operation, int fd, struct epoll_event *event);

#ifdef __cplusplus
}
#else
#define epoll_ctl(epoll, operation, fd, event) muster_uv_register(epoll, operation, fd, event)
#endif

#endif
