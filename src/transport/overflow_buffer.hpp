// SPDX-License-Identifier: MIT
#pragma once
// Bytes that a link sends before all others: the rest of a frame that the socket has accepted in part, and sealed
// frames.
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>

namespace muster {

// A few bytes always have room; more need memory. One user at a time.
class OverflowBuffer {
  public:
    static constexpr size_t reserved_bytes = 512;

    bool empty() const noexcept { return end_ == 0; }
    unsigned char *data() noexcept { return bytes() + at_; }
    size_t size() const noexcept { return end_ - at_; }

    // Number of bytes that can be added, after an attempt to make room for `wanted`.
    size_t room(size_t wanted) noexcept {
        if (wanted > capacity_ - end_) {
            auto *more = new (std::nothrow) unsigned char[end_ + wanted];
            if (more != nullptr) {
                memcpy(more, bytes(), end_);
                allocated_.reset(more);
                capacity_ = end_ + wanted;
            }
        }
        return capacity_ - end_;
    }
    unsigned char *add(size_t size) noexcept { // within the room
        end_ += size;
        return bytes() + end_ - size;
    }
    void add(const void *data, size_t size) noexcept { memcpy(add(size), data, size); }

    void consume(size_t size) noexcept { // from the front
        at_ += size;
        if (at_ < end_) return;
        at_ = end_ = 0;
        if (capacity_ <= max_kept_bytes) return;
        allocated_.reset();
        capacity_ = reserved_bytes;
    }

  private:
    static constexpr size_t max_kept_bytes = 4096;
    unsigned char *bytes() noexcept { return allocated_ ? allocated_.get() : reserved_; }
    std::unique_ptr<unsigned char[]> allocated_;
    size_t capacity_ = reserved_bytes, at_ = 0, end_ = 0;
    unsigned char reserved_[reserved_bytes];
};

} // namespace muster
