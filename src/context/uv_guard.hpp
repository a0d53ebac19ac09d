// SPDX-License-Identifier: MIT
#pragma once
// Opening a libuv loop where memory, descriptors or the kernel's watches have run out: libuv aborts the process at some
// of these, which is a status here. docs/adr/0013-one-epoll-inside-libuv.md lists them with the tests that need this.

typedef struct uv_loop_s uv_loop_t;
typedef struct uv_poll_s uv_poll_t;

namespace muster {

// Makes a loop that watches one descriptor, and registers that with the kernel. After it the loop registers nothing,
// and its list of descriptors does not grow: neither can fail later. 0, or a negative errno and no loop. Any thread.
int open_uv_loop(uv_loop_t &loop, uv_poll_t &poll, int fd, void (*ready)(uv_poll_t *, int, int)) noexcept;

} // namespace muster
