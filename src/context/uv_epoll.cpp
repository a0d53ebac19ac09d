// SPDX-License-Identifier: MIT
#include "context/uv_epoll.h"

#include "base/time.hpp"
#include "context/engine.hpp"
#include "context/uv_memory.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <uv.h>

using namespace muster;

namespace muster {

namespace {

// Descriptors that a loop wants to watch and the kernel has not registered. libuv takes them for registered; the list
// of a loop's descriptors tells which events each is watched for, so that nothing needs to be kept here but the mark.
// Only the thread that runs the loop uses it; the loop's internal fields have no room for it, its epoll has a number.
constexpr int max_marks = 1 << 16;
std::atomic<uint64_t> marks[max_marks / 64];

std::atomic<uint64_t> &word_of(const uv_loop_t *loop) noexcept {
    return marks[static_cast<unsigned>(loop->backend_fd) % max_marks / 64];
}

uint64_t bit_of(const uv_loop_t *loop) noexcept {
    return uint64_t{1} << static_cast<unsigned>(loop->backend_fd) % 64;
}

// relaxed: read and written by the thread that runs the loop.
void mark(const uv_loop_t *loop, bool is_pending) noexcept {
    if (is_pending)
        word_of(loop).fetch_or(bit_of(loop), std::memory_order_relaxed);
    else
        word_of(loop).fetch_and(~bit_of(loop), std::memory_order_relaxed);
}

void register_again(uv_loop_t *loop) noexcept {
    bool is_pending = false;
    for (unsigned i = 0; i < loop->nwatchers; i++) {
        const uv__io_t *const watch = loop->watchers[i];
        if (watch == nullptr || watch->events == 0) continue;
        epoll_event event{};
        event.events = watch->events;
        event.data.fd = watch->fd;
        if (epoll_ctl(loop->backend_fd, EPOLL_CTL_ADD, watch->fd, &event) != 0 && errno != EEXIST) is_pending = true;
    }
    mark(loop, is_pending);
}

} // namespace

bool has_refused(const uv_loop_t *loop) noexcept {
    return (word_of(loop).load(std::memory_order_relaxed) & bit_of(loop)) != 0;
}

} // namespace muster

int muster_uv_register(uv_loop_s *loop, int operation, int fd, epoll_event *event) {
    if (epoll_ctl(loop->backend_fd, operation, fd, event) == 0) return 0;
    if (operation == EPOLL_CTL_DEL) return 0; // it is not registered, which is what libuv wants
    if (errno != ENOSPC && errno != ENOMEM && !(operation == EPOLL_CTL_MOD && errno == ENOENT)) return -1;
    if (!has_refused(loop))
        static_cast<Context::Engine *>(loop->data)
            ->context.log(MUSTER_LOG_WARN, "the kernel does not watch descriptor %d (%s); this is tried again", fd,
                          strerrordesc_np(errno));
    // When libuv only asks whether the descriptor can be watched (with -1), it registers it later.
    if (event->data.fd != -1) mark(loop, true);
    return 0;
}

// libuv relies on no return before the time is over without an event.
int muster_uv_wait(uv_loop_s *loop, epoll_event *events, int max_events, int timeout_ms) {
    Deadline deadline(timeout_ms < 0 ? -1 : int64_t{timeout_ms} * 1'000'000);
    for (;;) {
        int wait_ms = timeout_ms;
        if (has_refused(loop)) register_again(loop);
        const bool is_pending = has_refused(loop);
        if (is_pending) wait_ms = timeout_ms < 0 ? retry_registration_ms : std::min(timeout_ms, retry_registration_ms);
        const int count = epoll_wait(loop->backend_fd, events, max_events, wait_ms);
        if (count != 0 || !is_pending || timeout_ms == 0 || deadline.passed()) return count;
    }
}
