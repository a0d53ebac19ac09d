// SPDX-License-Identifier: MIT
#pragma once
// Memory for messages, kept for reuse. MPI uses it while a request is in flight, and streams until they have read it.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <mpi.h>
#include <mutex>
#include <new>
#include <vector>

namespace mpi {

struct Buffer {
    unsigned char *data = nullptr;
    size_t room = 0; // 0: a buffer of the library
};

struct Sending {
    MPI_Request request;
    Buffer buffer;
};

// Any thread.
class Buffers {
  public:
    // One per process, never destroyed: streams may read from a buffer after its context is gone.
    static Buffers &all() {
        static Buffers &all = *new Buffers;
        return all;
    }
    Buffers(const Buffers &) = delete;
    Buffers &operator=(const Buffers &) = delete;

    // A large message fills at least half of its buffer; streams would copy a smaller one.
    Buffer take(size_t bytes) {
        const size_t room = bytes <= page ? page : std::max(std::bit_ceil(bytes - page), page) + page;
        if (room <= large) {
            const std::lock_guard hold(lock_);
            std::vector<unsigned char *> &list = list_of(room);
            if (!list.empty()) {
                const Buffer kept{list.back(), room};
                list.pop_back();
                return kept;
            }
        }
        auto *data = static_cast<unsigned char *>(room <= large ? std::aligned_alloc(page, room) : std::malloc(room));
        if (data == nullptr) throw std::bad_alloc();
        return {data, room};
    }
    void give(Buffer buffer) noexcept {
        if (buffer.room <= large) {
            const std::lock_guard hold(lock_);
            std::vector<unsigned char *> &list = list_of(buffer.room);
            try {
                if (list.size() < max_kept) return list.push_back(buffer.data);
            } catch (const std::bad_alloc &) { // freed instead
            }
        }
        std::free(buffer.data);
    }

  private:
    Buffers() = default;
    static constexpr size_t page = 4096, large = 256 * 1024 + page;
    static constexpr size_t max_kept = 16;
    std::vector<unsigned char *> &list_of(size_t room) {
        return lists_[room <= page ? 0 : static_cast<size_t>(std::countr_zero(room - page)) + 1];
    }
    std::mutex lock_;                                    // guards the rest
    std::array<std::vector<unsigned char *>, 20> lists_; // by the power of two of the size without the first page
};

} // namespace mpi
