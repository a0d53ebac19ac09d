// SPDX-License-Identifier: MIT
#pragma once
// Memory for objects of one size that are made on one thread and destroyed on another, with each request to a store:
// the memory allocator is slow at that.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>

namespace muster {

// Any thread. What is given back forms a list of its own, which the threads that take get as a whole: each side has its
// own cache line for nearly all of its calls. No piece is popped from that list alone, so that none can be popped by
// mistake after it was taken and given back meanwhile.
class SpareMemory {
  public:
    explicit SpareMemory(size_t bytes) noexcept : bytes_(bytes) {}
    SpareMemory(const SpareMemory &) = delete;
    SpareMemory &operator=(const SpareMemory &) = delete;
    ~SpareMemory() {
        release(first_);
        release(given_.load(std::memory_order_relaxed)); // no other thread has the object any more
    }
    void *take() {
        if constexpr (kept) {
            const std::lock_guard hold(lock_);
            if (first_ == nullptr && given_.load(std::memory_order_relaxed) != nullptr) {
                given_count_.store(0, std::memory_order_relaxed); // before the list: no more than twice the limit
                // acquire: pairs with give(); the links, and everything that was done with the pieces.
                first_ = given_.exchange(nullptr, std::memory_order_acquire);
            }
            if (Piece *const piece = first_; piece != nullptr) {
                first_ = piece->next;
                return piece;
            }
        }
        return ::operator new(bytes_);
    }
    void give(void *memory) noexcept {
        if constexpr (kept) {
            if (given_count_.fetch_add(1, std::memory_order_relaxed) < most) {
                Piece *const piece = new (memory) Piece;
                Piece *latest = given_.load(std::memory_order_relaxed);
                do {
                    piece->next = latest;
                    // release: pairs with take(), which runs over the links.
                } while (
                    !given_.compare_exchange_weak(latest, piece, std::memory_order_release, std::memory_order_relaxed));
                return;
            }
            given_count_.fetch_sub(1, std::memory_order_relaxed);
        }
        ::operator delete(memory);
    }

  private:
    struct Piece {
        Piece *next;
    };
    static void release(Piece *first) noexcept {
        while (first != nullptr) ::operator delete(std::exchange(first, first->next));
    }
#ifdef MUSTER_SANITIZED
    static constexpr bool kept = false; // so that each object is seen to begin and to end
#else
    static constexpr bool kept = true;
#endif
    static constexpr int64_t most = 1024;
    const size_t bytes_;
    std::mutex lock_; // guards `first_`
    Piece *first_ = nullptr;
    alignas(64) std::atomic<Piece *> given_{nullptr};
    std::atomic<int64_t> given_count_{0};
};

} // namespace muster
