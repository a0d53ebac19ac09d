// SPDX-License-Identifier: MIT
#include "queue/wake.hpp"

#include <sys/epoll.h>

namespace muster {

Result<void> WakeWatch::set(muster_wake_fn wake, void *user) noexcept {
    bool had_one;
    {
        const std::lock_guard hold(lock_);
        had_one = wake_ != nullptr;
        if (wake && !had_one) {
            if (auto watched = loop_.watch(*this, queue_fd_, EPOLLIN | EPOLLET); !watched) return watched;
        }
        wake_ = wake;
        user_ = user;
    }
    if (!wake && had_one) loop_.unwatch(*this, queue_fd_);
    return {};
}

void WakeWatch::on_events(uint32_t) noexcept {
    const std::lock_guard hold(lock_);
    if (wake_) wake_(user_);
}

} // namespace muster
