// SPDX-License-Identifier: MIT
#pragma once
// Bytes that a link sends before anything else: what a cut left of a frame, frames that were sealed.
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>

namespace muster {

// A few bytes always find room; how many more do is up to the memory there is. One user at a time.
class Spill {
  public:
    static constexpr size_t always = 512;

    bool empty() const noexcept { return end_ == 0; }
    unsigned char *data() noexcept { return bytes() + at_; }
    size_t size() const noexcept { return end_ - at_; }

    // How many bytes fit behind what is there, after an attempt to have `wanted` of them.
    size_t room(size_t wanted) noexcept {
        if (wanted > capacity_ - end_) {
            auto *more = new (std::nothrow) unsigned char[end_ + wanted];
            if (more != nullptr) {
                memcpy(more, bytes(), end_);
                many_.reset(more);
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

    void took(size_t size) noexcept { // from the front
        at_ += size;
        if (at_ < end_) return;
        at_ = end_ = 0;
        if (capacity_ <= kept) return;
        many_.reset();
        capacity_ = always;
    }

  private:
    static constexpr size_t kept = 4096;
    unsigned char *bytes() noexcept { return many_ ? many_.get() : few_; }
    std::unique_ptr<unsigned char[]> many_;
    size_t capacity_ = always, at_ = 0, end_ = 0;
    unsigned char few_[always];
};

} // namespace muster
