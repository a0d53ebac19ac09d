// SPDX-License-Identifier: MIT
#pragma once
// Memory for messages, kept for reuse. MPI may use it as long as a request is under way, so it is never the library's
// own. Loop thread only.
#include <cstddef>
#include <cstdlib>
#include <mpi.h>
#include <new>
#include <vector>

namespace mpi {

struct Buffer {
    unsigned char *data = nullptr;
    size_t room = 0; // 0: a segment of the library
};

struct Sending {
    MPI_Request request;
    Buffer buffer;
};

class Buffers {
  public:
    static constexpr size_t small = 4096, large = 256 * 1024 + 4096;

    Buffers() = default;
    Buffers(const Buffers &) = delete;
    Buffers &operator=(const Buffers &) = delete;
    ~Buffers() {
        for (auto *list : {&small_, &large_})
            for (unsigned char *data : *list) std::free(data);
    }
    Buffer take(size_t bytes) {
        const size_t room = bytes <= small ? small : bytes <= large ? large : bytes;
        std::vector<unsigned char *> &list = room == small ? small_ : large_;
        if (room <= large && !list.empty()) {
            const Buffer kept{list.back(), room};
            list.pop_back();
            return kept;
        }
        auto *data = static_cast<unsigned char *>(room <= large ? std::aligned_alloc(4096, room) : std::malloc(room));
        if (data == nullptr) throw std::bad_alloc();
        return {data, room};
    }
    void give(Buffer buffer) {
        std::vector<unsigned char *> &list = buffer.room == small ? small_ : large_;
        if (buffer.room > large || list.size() >= kept_most) {
            std::free(buffer.data);
            return;
        }
        try {
            list.push_back(buffer.data);
        } catch (...) { // no room to remember it
            std::free(buffer.data);
        }
    }

  private:
    static constexpr size_t kept_most = 32;
    std::vector<unsigned char *> small_, large_;
};

} // namespace mpi
