// SPDX-License-Identifier: MIT
#pragma once
// The kernel's futex on a 32-bit atomic; `shared` for words in memory of several processes.
#include "base/time.hpp"

#include <atomic>
#include <cerrno>
#include <climits>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace muster {

// Sleeps while *word == expected. 0: woken (or the value had changed); ETIMEDOUT; EINTR counts as woken.
inline int futex_wait(std::atomic<uint32_t> &word, uint32_t expected, Deadline &deadline, bool shared) noexcept {
    // FUTEX_WAIT_BITSET takes an absolute CLOCK_MONOTONIC time.
    const int op = FUTEX_WAIT_BITSET | (shared ? 0 : FUTEX_PRIVATE_FLAG);
    timespec at, *until = nullptr;
    if (!deadline.endless()) {
        at = {deadline.at() / 1'000'000'000, deadline.at() % 1'000'000'000};
        until = &at;
    }
    const long rc = syscall(SYS_futex, &word, op, expected, until, nullptr, FUTEX_BITSET_MATCH_ANY);
    return rc == -1 && errno == ETIMEDOUT ? ETIMEDOUT : 0;
}

inline void futex_wake(std::atomic<uint32_t> &word, int count, bool shared) noexcept {
    syscall(SYS_futex, &word, FUTEX_WAKE | (shared ? 0 : FUTEX_PRIVATE_FLAG), count, nullptr, nullptr, 0);
}

} // namespace muster
