// SPDX-License-Identifier: MIT
#pragma once
// The bytes of a broadcast at a receiver, shared by the members of one host: a memfd, written by one member and sealed
// before another receives it, so that no process can change or shorten the memory that another reads.
#include "base/fd.hpp"
#include "base/object.hpp"
#include "base/result.hpp"

#include <muster/cluster.h>

namespace muster {

// One thread fills it; afterwards any thread.
class BroadcastBytes final : public Object {
  public:
    // Memory to be filled. `read_here`: this process reads it as well.
    static Result<Ref<BroadcastBytes>> make(uint64_t size, bool read_here);
    // Memory that another member has filled; refused unless it is sealed, and of this size.
    static Result<Ref<BroadcastBytes>> take(Fd memory, uint64_t size);

    Result<void> append(const void *data, size_t size) noexcept;
    Result<void> seal() noexcept; // when it is full
    uint64_t filled() const noexcept { return filled_; }
    uint64_t size() const noexcept { return size_; }
    const unsigned char *data() const noexcept { return data_; } // as far as it is filled
    int descriptor() const noexcept { return memory_.get(); }
    void close_descriptor() noexcept { memory_.reset(); } // no other member will receive it

  private:
    BroadcastBytes(Fd memory, uint64_t size) noexcept : memory_(std::move(memory)), size_(size) {}
    ~BroadcastBytes() override;
    Result<void> map() noexcept;

    Fd memory_;
    const uint64_t size_;
    uint64_t filled_ = 0;
    const unsigned char *data_ = nullptr;
};

inline BroadcastBytes *unwrap(muster_broadcast *handle) noexcept {
    return reinterpret_cast<BroadcastBytes *>(handle);
}
inline muster_broadcast *wrap(BroadcastBytes *object) noexcept {
    return reinterpret_cast<muster_broadcast *>(object);
}

} // namespace muster
