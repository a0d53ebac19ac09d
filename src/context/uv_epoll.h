/* SPDX-License-Identifier: MIT */
/* Included before libuv's unix/epoll.c, which aborts the process when the kernel does not register a descriptor
 * (ENOSPC: the user's limit on watches; ENOMEM). Its calls go to uv_epoll.cpp, which makes them again until they
 * succeed. In that file `loop` is the name of the loop wherever one of these is called. */
#ifndef MUSTER_CONTEXT_UV_EPOLL_H
#define MUSTER_CONTEXT_UV_EPOLL_H

#include <signal.h>
#include <sys/epoll.h>

#ifdef __cplusplus
extern "C" {
#endif

struct uv_loop_s;

int muster_uv_register(struct uv_loop_s *loop, int operation, int fd, struct epoll_event *event);
int muster_uv_wait(struct uv_loop_s *loop, struct epoll_event *events, int max_events, int timeout_ms);

#ifdef __cplusplus
}
#else
#define epoll_ctl(epoll, operation, fd, event) muster_uv_register(loop, operation, fd, event)
#define epoll_wait(epoll, events, max_events, timeout_ms) muster_uv_wait(loop, events, max_events, timeout_ms)
#endif

#endif
