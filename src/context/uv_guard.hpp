// SPDX-License-Identifier: MIT
#pragma once
// Opening a libuv loop where memory, descriptors or the kernel's watches have run out: libuv aborts the process at some
// of these, which is a status here. docs/adr/0014-libuv-inside-one-epoll.md lists them with the tests that need this.

typedef struct uv_loop_s uv_loop_t;

namespace muster {

// Makes a loop and registers its one descriptor with the kernel. As long as no descriptor is watched by it, nothing of
// it can fail later. `recent_fd`: a descriptor that was opened just now. 0, or a negative errno and no loop. Any
// thread.
int open_uv_loop(uv_loop_t &loop, int recent_fd) noexcept;

} // namespace muster
