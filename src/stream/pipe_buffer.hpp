// SPDX-License-Identifier: MIT
// The buffers that a pipe's bytes are in; for the sources of Pipe only.
#pragma once

#include "stream/pipe.hpp"

namespace muster {

// Large writes are published in pieces so that copying in and copying out overlap.
inline constexpr uint64_t pipe_piece_bytes = 64 * 1024;

// A link of the chain. A ring stays in place while the producer continues in a larger one; `end` and `next` are written
// once, when the producer has put its last byte into this buffer.
struct Pipe::Buffer {
    uint64_t base = 0;     // position of the first byte
    uint64_t capacity = 0; // of a ring (power of two), or the size of a buffer handed over or lent
    unsigned char *data = nullptr;
    bool is_ring = true;
    bool is_owned = false;
    uint64_t end = 0;                    // position of the next buffer's first byte; valid once next is set
    std::atomic<Buffer *> next{nullptr}; // release: publishes *next and end; pairs with front()
    Ref<Object> lent_memory;             // the consumer's, once it is linked
    // handed-over buffers, under owned_lock_
    Owned owned;
    uint64_t owned_taken = 0;
    bool shown = false; // peek() has copied from it
    bool revoked = false;
    bool begun() const noexcept { return owned_taken != 0 || shown; }
    Buffer *owned_next = nullptr;

    unsigned char *at(uint64_t position) const noexcept {
        return data + (is_ring ? (position - base) & (capacity - 1) : position - base);
    }
    // Bytes from `position` up to where the memory wraps or the buffer ends.
    uint64_t contiguous(uint64_t position) const noexcept {
        return is_ring ? capacity - ((position - base) & (capacity - 1)) : base + capacity - position;
    }
};

} // namespace muster
