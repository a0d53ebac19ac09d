// SPDX-License-Identifier: MIT
#pragma once
// After fork() the child must not use objects that the threads of the parent were using.
#include <atomic>
#include <cstdint>

namespace muster {

// Counts forks this process is the child of; raised by the one pthread_atfork handler of the library.
// relaxed: written only in the single thread a fresh child has.
extern std::atomic<uint32_t> fork_generation;

// The id of this process, without a system call; 0 before the first watch_forks().
extern std::atomic<int32_t> own_process_id;

// Registers the handler once; called by every muster_context_create().
void watch_forks() noexcept;

// A mark that is taken when an object is made.
class ForkMark {
  public:
    ForkMark() noexcept : generation_(fork_generation.load(std::memory_order_relaxed)) {}
    bool forked() const noexcept { return generation_ != fork_generation.load(std::memory_order_relaxed); }

  private:
    uint32_t generation_;
};

} // namespace muster
