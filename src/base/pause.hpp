// SPDX-License-Identifier: MIT
#pragma once

namespace muster {

// In loops that wait for another thread: yields resources of the core, and does not enter the kernel.
inline void pause_cpu() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

} // namespace muster
