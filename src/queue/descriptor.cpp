// SPDX-License-Identifier: MIT
// Descriptors of the host that a queue watches.
#include "queue/state.hpp"

#include <cerrno>
#include <sys/epoll.h>

namespace muster {

Result<void> Queue::watch_host_fd(int fd, uint32_t events, uint64_t tag) {
    const uint32_t wanted = (events & MUSTER_QUEUE_FD_READABLE ? EPOLLIN | EPOLLRDHUP : 0u) |
                            (events & MUSTER_QUEUE_FD_WRITABLE ? EPOLLOUT : 0u) | EPOLLONESHOT;
    State &s = *state_;
    const std::lock_guard one_at_a_time(s.host_fds_lock);
    if (closed()) return Error::make(MUSTER_E_CLOSED, "the queue is closed");
    if (const auto found = s.host_fds.find(fd); found != s.host_fds.end()) {
        HostDescriptor &known = *found->second;
        attach(known, tag);
        if (modify_fd(known, fd, wanted)) return {};
        detach(known); // closed without unwatch, and opened again: another descriptor with this number
        s.host_fds.erase(found);
    }
    {
        const std::lock_guard hold(s.lock);
        if (s.watches.count(fd) != 0)
            return Error::make(MUSTER_E_EXISTS, "descriptor %d is watched by the library itself", fd);
    }
    auto made = make_ref<HostDescriptor>();
    const auto [at, is_new] = s.host_fds.emplace(fd, made);
    attach(*made, tag);
    auto added = add_fd(*made, fd, wanted);
    if (added) return {};
    detach(*made);
    s.host_fds.erase(at);
    const int why = added.error().os_errno;
    if (why == EBADF) return Error::make(MUSTER_E_ARG, "descriptor %d is not open", fd);
    if (why == EPERM) return Error::make(MUSTER_E_UNSUPPORTED, "descriptor %d is not one that poll() waits for", fd);
    return added;
}

bool Queue::unwatch_host_fd(int fd) noexcept {
    State &s = *state_;
    const std::lock_guard one_at_a_time(s.host_fds_lock);
    const auto found = s.host_fds.find(fd);
    if (found == s.host_fds.end()) return false;
    detach(*found->second);
    s.host_fds.erase(found);
    return true;
}

// The queue is closed, or destroyed: nothing is reported any more.
void Queue::forget_host_fds() noexcept {
    State &s = *state_;
    const std::lock_guard one_at_a_time(s.host_fds_lock);
    for (auto &[fd, descriptor] : s.host_fds) detach(*descriptor);
    s.host_fds.clear();
}

} // namespace muster
