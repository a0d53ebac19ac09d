// SPDX-License-Identifier: MIT
#pragma once
// A vector whose first few items need no memory of their own: most lists of a store's requests and results have one
// item.
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace muster {

// T moves without throwing. The vector itself is not moved or copied: it is a part of an object that stays at its
// address.
template <class T, size_t N>
class SmallVector {
    static_assert(std::is_nothrow_move_constructible_v<T>);

  public:
    SmallVector() noexcept = default;
    SmallVector(const SmallVector &) = delete;
    SmallVector &operator=(const SmallVector &) = delete;
    ~SmallVector() {
        clear();
        drop();
    }

    bool empty() const noexcept { return size_ == 0; }
    size_t size() const noexcept { return size_; }
    size_t capacity() const noexcept { return capacity_; }
    T *begin() noexcept { return at_; }
    T *end() noexcept { return at_ + size_; }
    const T *begin() const noexcept { return at_; }
    const T *end() const noexcept { return at_ + size_; }
    T &operator[](size_t i) noexcept { return at_[i]; }
    const T &operator[](size_t i) const noexcept { return at_[i]; }
    T &front() noexcept { return at_[0]; }
    T &back() noexcept { return at_[size_ - 1]; }
    const T &back() const noexcept { return at_[size_ - 1]; }

    void reserve(size_t wanted) {
        if (wanted <= capacity_) return;
        T *const more = static_cast<T *>(::operator new(wanted * sizeof(T)));
        std::uninitialized_move(begin(), end(), more);
        std::destroy(begin(), end());
        drop();
        at_ = more;
        capacity_ = wanted;
    }
    T &emplace_back() {
        if (size_ == capacity_) reserve(2 * capacity_);
        return *new (at_ + size_++) T();
    }
    void resize(size_t wanted) {
        reserve(wanted);
        while (size_ > wanted) at_[--size_].~T();
        while (size_ < wanted) new (at_ + size_++) T();
    }
    void clear() noexcept {
        std::destroy(begin(), end());
        size_ = 0;
    }

  private:
    T *own() noexcept { return reinterpret_cast<T *>(room_); }
    void drop() noexcept {
        if (at_ != own()) ::operator delete(at_);
    }
    alignas(T) unsigned char room_[N * sizeof(T)];
    T *at_ = own();
    size_t size_ = 0, capacity_ = N;
};

} // namespace muster
