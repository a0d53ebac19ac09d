// SPDX-License-Identifier: MIT
#pragma once
// What waits to be written to the stream of a peer, in order: bytes that were copied, and bytes that were lent.
#include <cstddef>
#include <deque>
#include <initializer_list>
#include <string>
#include <string_view>

namespace muster {

// Under the lock of the peer. front() stays where it is while a thread writes it without the lock: others add blocks
// behind it, and only that thread calls written().
class AmOutgoing {
  public:
    bool is_empty() const noexcept { return blocks_.empty(); }
    size_t bytes() const noexcept { return copied_bytes_ + lent_bytes_; }
    size_t copied_bytes() const noexcept { return copied_bytes_; }
    // All of it or, with std::bad_alloc, nothing.
    void add(std::initializer_list<std::string_view> parts);
    // `head` is copied. `lent` stays valid until it was written, or clear().
    void add_lent(std::string_view head, std::string_view lent);
    // What is left of a frame of which a part was written: before everything else.
    void put_back(std::initializer_list<std::string_view> parts);
    std::string_view front() const noexcept;
    void written(size_t bytes) noexcept; // of front()
    void clear() noexcept;

  private:
    struct Block {
        std::string copied;
        const char *lent = nullptr;
        size_t at = 0, end = 0;
    };
    static Block copy_of(std::initializer_list<std::string_view> parts);
    static Block block_of(std::string_view lent) noexcept { return {{}, lent.data(), 0, lent.size()}; }
    std::deque<Block> blocks_; // none of them is empty
    size_t copied_bytes_ = 0, lent_bytes_ = 0;
};

} // namespace muster
