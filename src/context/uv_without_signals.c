/* SPDX-License-Identifier: MIT */
/* Takes the place of libuv's unix/signal.c. The library installs no signal handler and starts no child through libuv,
 * but libuv's own file makes two pipes for them (one shared by all loops, one per loop), makes the shared one anew in
 * every child of a fork, and aborts the process when it cannot. */
#include "uv.h"

#include "unix/internal.h"

void uv__signal_global_once_init(void) {}

void uv__signal_cleanup(void) {}

int uv__signal_loop_fork(uv_loop_t *loop) {
    (void)loop;
    return 0;
}

void uv__signal_loop_cleanup(uv_loop_t *loop) {
    (void)loop;
}

/* uv_loop_init() makes one such handle, for SIGCHLD, and never starts it. */
int uv_signal_init(uv_loop_t *loop, uv_signal_t *handle) {
    uv__handle_init(loop, (uv_handle_t *)handle, UV_SIGNAL);
    handle->signum = 0;
    handle->caught_signals = 0;
    handle->dispatched_signals = 0;
    return 0;
}

int uv_signal_start(uv_signal_t *handle, uv_signal_cb callback, int signum) {
    (void)handle;
    (void)callback;
    (void)signum;
    return UV_ENOTSUP;
}

int uv_signal_start_oneshot(uv_signal_t *handle, uv_signal_cb callback, int signum) {
    return uv_signal_start(handle, callback, signum);
}

int uv_signal_stop(uv_signal_t *handle) {
    (void)handle;
    return 0;
}

void uv__signal_close(uv_signal_t *handle) {
    (void)handle;
}
