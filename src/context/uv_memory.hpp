// SPDX-License-Identifier: MIT
#pragma once

typedef struct uv_loop_s uv_loop_t;
typedef struct uv_poll_s uv_poll_t;

namespace muster {

// To be called before libuv is used; once is enough, more often is harmless. Any thread.
void give_uv_a_reserve() noexcept;

// uv_poll_init(), after making sure that the loop's list has a place for the descriptor: uv_poll_start() would abort
// the process without memory for it. UV_ENOMEM then.
int prepare_poll(uv_loop_t *loop, uv_poll_t *poll, int fd) noexcept;

// Has the loop descriptors that it has not told the kernel of yet? It does so when it is run.
bool has_unregistered(const uv_loop_t *loop) noexcept;

// Has the kernel refused to register a descriptor of the loop? The loop tries again whenever it waits, and must do so
// after this time. Only the thread that runs the loop may ask.
bool has_refused(const uv_loop_t *loop) noexcept;
constexpr int retry_registration_ms = 10;

} // namespace muster
