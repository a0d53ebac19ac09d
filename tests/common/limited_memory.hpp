// SPDX-License-Identifier: MIT
// Memory that runs out: the operator new of a program, of which one source file includes this. ThreadSanitizer brings
// its own operator new, so that no memory runs out there.
#ifndef LIMITED_MEMORY_HPP
#define LIMITED_MEMORY_HPP

#include "thread_sanitizer.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

namespace {

constexpr bool memory_can_run_out = !UNDER_THREAD_SANITIZER;
int64_t allocations_left = -1; // before one fails, and all after it; negative: none fails

// Inside, none fails: of what is not tested.
class EnoughMemory {
  public:
    EnoughMemory() noexcept : before_(std::exchange(allocations_left, -1)) {}
    ~EnoughMemory() { allocations_left = before_; }
    EnoughMemory(const EnoughMemory &) = delete;
    EnoughMemory &operator=(const EnoughMemory &) = delete;

  private:
    const int64_t before_;
};

} // namespace

#if !UNDER_THREAD_SANITIZER
[[gnu::noinline]] void *operator new(size_t size, const std::nothrow_t &) noexcept {
    if (allocations_left == 0) return nullptr;
    if (allocations_left > 0) allocations_left--;
    return std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void *operator new(size_t size) {
    if (void *const memory = operator new(size, std::nothrow)) return memory;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void *memory) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void *memory, size_t) noexcept {
    std::free(memory);
}
#endif

#endif
