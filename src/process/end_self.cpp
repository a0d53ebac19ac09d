// SPDX-License-Identifier: MIT
#include "process/end_self.hpp"

#include <algorithm>
#include <csignal>
#include <ctime>
#include <new>
#include <sys/syscall.h>
#include <unistd.h>

namespace muster {

namespace {

// A timer of the kernel, which also ends a process that hangs after it has closed the context. False: there is none.
bool kill_self_after(int64_t ns) noexcept {
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGKILL;
    itimerspec when{};
    when.it_value.tv_sec = static_cast<time_t>(ns / 1'000'000'000);
    when.it_value.tv_nsec = static_cast<long>(std::max<int64_t>(1, ns % 1'000'000'000)); // 0 would stop it
    int timer = 0; // of the kernel, whose calls older C libraries have in a library of its own
    return syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer) == 0 &&
           syscall(SYS_timer_settime, timer, 0, &when, nullptr) == 0;
}

} // namespace

void SelfEnd::begin() noexcept {
    ::kill(getpid(), SIGTERM);
    if (kill_self_after(grace_ns_)) return;
    const int64_t now = now_ns();
    context_.loop().start_timer(grace_, grace_ns_ > INT64_MAX - now ? INT64_MAX : now + grace_ns_);
}

void SelfEnd::kill() noexcept {
    ::kill(getpid(), SIGKILL);
}

void end_self(Context &context, int64_t grace_ns) noexcept {
    if (auto *made = new (std::nothrow) SelfEnd(context, grace_ns)) {
        if (Ref<SelfEnd>::adopt(made)->post()) return;
    }
    kill(getpid(), SIGTERM);
    kill_self_after(grace_ns);
}

} // namespace muster
