// SPDX-License-Identifier: MIT
#include "base/fork.hpp"

#include <pthread.h>
#include <unistd.h>

namespace muster {

std::atomic<uint32_t> fork_generation{0};
std::atomic<int32_t> own_process_id{0};

void watch_forks() noexcept {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, [] {
        own_process_id.store(::getpid(), std::memory_order_relaxed);
        pthread_atfork(nullptr, nullptr, [] {
            fork_generation.fetch_add(1, std::memory_order_relaxed);
            own_process_id.store(::getpid(), std::memory_order_relaxed);
        });
    });
}

} // namespace muster
