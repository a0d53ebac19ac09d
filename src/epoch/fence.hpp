// SPDX-License-Identifier: MIT
#pragma once
// The two sides of the asymmetric fence: readers pay nothing where membarrier(2) can be used.
#include <muster/inline/atomic.h> // MUSTER_TSAN

#include <atomic>

namespace muster {

enum class Fence { per_pin, private_membarrier, global_membarrier };

// Registers this process for the wanted form. False: the kernel, or a filter of system calls, refuses it.
bool register_fence(Fence wanted) noexcept;

// Full fence of the calling thread and, by membarrier, of all threads that can hold a token.
void heavy_fence(Fence form) noexcept;

// Full fence of the calling thread. TSan knows no fences: there an exchange on a word of its own stands for it.
inline void full_fence() noexcept {
#if defined(MUSTER_TSAN)
    static std::atomic<int> word{0};
    word.fetch_add(1, std::memory_order_seq_cst);
#else
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

} // namespace muster
