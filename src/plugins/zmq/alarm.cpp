// SPDX-License-Identifier: MIT
#include "alarm.hpp"

#include <algorithm>
#include <sys/timerfd.h>
#include <unistd.h>

namespace star {

Alarm::Alarm(const muster_host *host, void (*ring)(void *user), void *user) noexcept
    : host_(host), ring_(ring), user_(user) {}

Alarm::~Alarm() {
    host_->unwatch_fd(watch_);
    if (timer_ >= 0) close(timer_);
}

muster_status Alarm::open() noexcept {
    timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (timer_ < 0) return MUSTER_E_LIMIT;
    return host_->watch_fd(host_, timer_, MUSTER_PLUGIN_READABLE, ready, this, &watch_);
}

void Alarm::set(int64_t after_ns) noexcept {
    constexpr int64_t second_ns = 1'000'000'000;
    after_ns = std::max<int64_t>(after_ns, 1); // 0 would clear it
    itimerspec due{};
    due.it_value.tv_sec = after_ns / second_ns;
    due.it_value.tv_nsec = after_ns % second_ns;
    timerfd_settime(timer_, 0, &due, nullptr);
}

void Alarm::clear() noexcept {
    const itimerspec never{};
    timerfd_settime(timer_, 0, &never, nullptr);
}

void Alarm::ready(void *self, uint32_t) {
    auto &alarm = *static_cast<Alarm *>(self);
    uint64_t times = 0;
    if (read(alarm.timer_, &times, sizeof times) == sizeof times) alarm.ring_(alarm.user_);
}

} // namespace star
