// SPDX-License-Identifier: MIT
#include "process/end_self.hpp"

#include <csignal>
#include <new>
#include <unistd.h>

namespace muster {

void SelfEnd::begin() noexcept {
    ::kill(getpid(), SIGTERM);
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
}

} // namespace muster
