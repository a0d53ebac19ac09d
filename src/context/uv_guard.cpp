// SPDX-License-Identifier: MIT
#include "context/uv_guard.hpp"

#include "base/fd.hpp"
#include "context/uv_guard.h"

#include <bit>
#include <cstdlib>
#include <new>
#include <pthread.h>
#include <uv.h>

namespace muster {

namespace {

// Functions that a thread which opens a loop provides to libuv, and failures of libuv.
struct Opening {
    // libuv's list of a loop's descriptors, indexed by number: it aborts the process when the list cannot grow, which
    // is the one thing it uses realloc() for. Large enough for the few that are opened meanwhile.
    void *list = nullptr;
    size_t list_bytes = 0;
    bool is_list_used = false;
    int refused = 0; // errno of a registration that the kernel refused
};

thread_local Opening *opening = nullptr;

void *resize(void *memory, size_t size) noexcept {
    if (opening == nullptr || size > opening->list_bytes || (memory != nullptr && memory != opening->list))
        return std::realloc(memory, size);
    opening->is_list_used = true;
    return opening->list;
}

int open(uv_loop_t &loop) noexcept {
    if (const int rc = uv_loop_init(&loop); rc < 0) {
        // libuv 1.44 leaks its first descriptor when it cannot get the second one. With async_wfd at 0 it has failed
        // before it opened descriptors.
        if (loop.async_wfd == -1) Fd(uv_backend_fd(&loop)).reset();
        return rc;
    }
    uv_timer_t timer; // a loop without a handle does not run
    uv_timer_init(&loop, &timer);
    uv_timer_start(
        &timer, [](uv_timer_t *) {}, 1'000, 0);
    uv_run(&loop, UV_RUN_NOWAIT); // registers its descriptor
    uv_close(reinterpret_cast<uv_handle_t *>(&timer), nullptr);
    uv_run(&loop, UV_RUN_NOWAIT);
    if (opening->refused != 0) uv_loop_close(&loop);
    return -opening->refused;
}

} // namespace

int open_uv_loop(uv_loop_t &loop, int recent_fd) noexcept {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, [] { uv_replace_allocator(std::malloc, resize, std::calloc, std::free); });
    Opening here;
    here.list_bytes = std::bit_ceil(static_cast<unsigned>(recent_fd) + 64) * sizeof(void *);
    here.list = std::malloc(here.list_bytes);
    if (here.list == nullptr) return UV_ENOMEM;
    opening = &here;
    const int rc = open(loop);
    opening = nullptr;
    if (!here.is_list_used) std::free(here.list);
    return rc;
}

} // namespace muster

int muster_uv_register(int epoll, int operation, int fd, epoll_event *event) {
    if (epoll_ctl(epoll, operation, fd, event) == 0 || operation == EPOLL_CTL_DEL) return 0;
    if (muster::opening == nullptr) return -1;
    muster::opening->refused = errno;
    return 0;
}
