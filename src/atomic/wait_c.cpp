// SPDX-License-Identifier: MIT
// Waiting for cells: a short check, then futexes. A cell of 8 bytes is two futexes, so that a change of either half is
// noticed.
#include "base/futex.hpp"
#include "base/pause.hpp"
#include "base/status.hpp"
#include "base/uncancelled.hpp"

#include <muster/atomic.h>

#include <array>

using namespace muster;

namespace {

constexpr uint32_t max_conditions = 64;

bool is_waitable(const void *cell, uint32_t size_bytes) noexcept {
    return cell != nullptr && (size_bytes == 4 || size_bytes == 8) &&
           reinterpret_cast<uintptr_t>(cell) % size_bytes == 0;
}

// acquire: what the writer did before it wrote the value is seen after the wait.
uint64_t value_of(const muster_atomic_condition &one) noexcept {
    if (one.size_bytes == 4) return __atomic_load_n(static_cast<const uint32_t *>(one.cell), __ATOMIC_ACQUIRE);
    return __atomic_load_n(static_cast<const uint64_t *>(one.cell), __ATOMIC_ACQUIRE);
}

bool holds(const muster_atomic_condition &one, uint64_t seen) noexcept {
    const uint64_t value = one.size_bytes == 4 ? static_cast<uint32_t>(one.value) : one.value;
    switch (one.comparison) {
    case MUSTER_ATOMIC_EQUAL:
        return seen == value;
    case MUSTER_ATOMIC_NOT_EQUAL:
        return seen != value;
    case MUSTER_ATOMIC_LESS:
        return seen < value;
    case MUSTER_ATOMIC_LESS_EQUAL:
        return seen <= value;
    case MUSTER_ATOMIC_GREATER:
        return seen > value;
    default:
        return seen >= value;
    }
}

// futex_waitv(2), newer than the headers of Debian 12's C library promise.
struct WaitedFutex {
    uint64_t expected, address;
    uint32_t flags, reserved;
};
constexpr long futex_waitv_number = 449;
constexpr uint32_t futex_32_bits = 2;

class Futexes {
  public:
    Futexes() noexcept {} // NOLINT(cppcoreguidelines-pro-type-member-init): those that are counted are written
    void add(const muster_atomic_condition &one, uint64_t seen) noexcept {
        const auto address = reinterpret_cast<uintptr_t>(one.cell);
        add(address, static_cast<uint32_t>(seen));
        if (one.size_bytes == 8) add(address + 4, static_cast<uint32_t>(seen >> 32));
    }
    bool is_single() const noexcept { return count_ == 1; }
    // 0: woken, or a value has changed; otherwise an errno.
    int wait(Deadline &deadline) noexcept {
        if (is_single()) {
            auto *const word = reinterpret_cast<std::atomic<uint32_t> *>(static_cast<uintptr_t>(list_[0].address));
            return futex_wait(*word, static_cast<uint32_t>(list_[0].expected), deadline, true);
        }
        timespec at, *until = nullptr;
        if (!deadline.endless()) {
            at = {deadline.at() / 1'000'000'000, deadline.at() % 1'000'000'000};
            until = &at;
        }
        const long rc = ::syscall(futex_waitv_number, list_.data(), count_, 0, until, CLOCK_MONOTONIC);
        return rc >= 0 || errno == EAGAIN || errno == EINTR ? 0 : errno;
    }

  private:
    void add(uintptr_t address, uint32_t expected) noexcept {
        list_[count_++] = {.expected = expected, .address = address, .flags = futex_32_bits, .reserved = 0};
    }
    std::array<WaitedFutex, size_t{2} * max_conditions> list_;
    uint32_t count_ = 0;
};

} // namespace

extern "C" {

muster_status muster_atomic_wait(muster_atomic_condition *conditions, uint32_t count, uint32_t needed,
                                 int64_t timeout_ns) {
    if (conditions == nullptr || count == 0 || count > max_conditions || needed == 0 || needed > count)
        return MUSTER_E_ARG;
    for (uint32_t i = 0; i < count; i++)
        if (!is_waitable(conditions[i].cell, conditions[i].size_bytes) || conditions[i].comparison < 0 ||
            conditions[i].comparison > MUSTER_ATOMIC_GREATER_EQUAL)
            return MUSTER_E_ARG;
    const Uncancelled guard;
    Deadline deadline(timeout_ns);
    for (int checks = 0;; checks++) {
        uint32_t found = 0;
        Futexes futexes;
        for (uint32_t i = 0; i < count; i++) {
            const uint64_t seen = value_of(conditions[i]);
            conditions[i].is_true = holds(conditions[i], seen);
            found += conditions[i].is_true;
            if (conditions[i].is_true == 0 || needed > 1) futexes.add(conditions[i], seen);
        }
        if (found >= needed) return MUSTER_OK;
        if (deadline.look_once()) return MUSTER_TIMEOUT;
        if (checks < 100) {
            pause_cpu();
            continue;
        }
        if (deadline.passed()) return MUSTER_TIMEOUT;
        const int os_errno = futexes.wait(deadline);
        if (os_errno == ENOSYS) return MUSTER_E_UNSUPPORTED;
    }
}

muster_status muster_atomic_notify(const void *cell, uint32_t size_bytes) {
    if (!is_waitable(cell, size_bytes)) return MUSTER_E_ARG;
    auto *const words = static_cast<std::atomic<uint32_t> *>(const_cast<void *>(cell)); // NOLINT: an address only
    futex_wake(words[0], INT_MAX, true);
    if (size_bytes == 8) futex_wake(words[1], INT_MAX, true);
    return MUSTER_OK;
}

} // extern "C"
