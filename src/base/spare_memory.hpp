// SPDX-License-Identifier: MIT
#pragma once
// Memory for objects of one size that are made on one thread and destroyed on another, with each request to a store:
// the memory allocator is slow at that.
#include <cstddef>
#include <mutex>
#include <new>
#include <utility>

namespace muster {

// Any thread.
class SpareMemory {
  public:
    explicit SpareMemory(size_t bytes) noexcept : bytes_(bytes) {}
    SpareMemory(const SpareMemory &) = delete;
    SpareMemory &operator=(const SpareMemory &) = delete;
    ~SpareMemory() {
        while (first_ != nullptr) ::operator delete(std::exchange(first_, first_->next));
    }
    void *take() {
        if constexpr (kept) {
            const std::lock_guard hold(lock_);
            if (first_ != nullptr) {
                count_--;
                return std::exchange(first_, first_->next);
            }
        }
        return ::operator new(bytes_);
    }
    void give(void *memory) noexcept {
        if constexpr (kept) {
            const std::lock_guard hold(lock_);
            if (count_ < most) {
                first_ = new (memory) Piece{first_};
                count_++;
                return;
            }
        }
        ::operator delete(memory);
    }

  private:
    struct Piece {
        Piece *next;
    };
#ifdef MUSTER_SANITIZED
    static constexpr bool kept = false; // so that each object is seen to begin and to end
#else
    static constexpr bool kept = true;
#endif
    static constexpr size_t most = 1024;
    const size_t bytes_;
    std::mutex lock_; // guards the rest
    Piece *first_ = nullptr;
    size_t count_ = 0;
};

} // namespace muster
