// SPDX-License-Identifier: MIT
#pragma once
// Lists whose links are part of their items: adding and removing needs no memory, so it cannot fail.
#include <utility>

namespace muster {

template <class T, class Which>
class List;

// A place in a list. An item that may be in several lists at once has one for each; `Which` distinguishes them.
template <class T, class Which = T>
class Listed {
  public:
    Listed() noexcept = default;
    Listed(const Listed &) = delete;
    Listed &operator=(const Listed &) = delete;

  private:
    friend class List<T, Which>;
    T *next_ = nullptr, *previous_ = nullptr;
    bool listed_ = false;
};

// Owns nothing. One user at a time.
template <class T, class Which = T>
class List {
    using Place = Listed<T, Which>;
    static Place &place(T &item) noexcept { return item; }

  public:
    List() noexcept = default;
    List(const List &) = delete;
    List &operator=(const List &) = delete;

    bool empty() const noexcept { return first_ == nullptr; }
    T *first() const noexcept { return first_; }
    static T *after(T &item) noexcept { return place(item).next_; }
    static bool holds(T &item) noexcept { return place(item).listed_; } // is it in any list of this kind?
    void swap(List &other) noexcept {
        std::swap(first_, other.first_);
        std::swap(last_, other.last_);
    }

    void push_back(T &item) noexcept {
        Place &p = place(item);
        p.listed_ = true;
        p.next_ = nullptr;
        p.previous_ = last_;
        (last_ != nullptr ? place(*last_).next_ : first_) = &item;
        last_ = &item;
    }
    void remove(T &item) noexcept {
        Place &p = place(item);
        if (coming_ == &item) coming_ = p.next_;
        (p.previous_ != nullptr ? place(*p.previous_).next_ : first_) = p.next_;
        (p.next_ != nullptr ? place(*p.next_).previous_ : last_) = p.previous_;
        p.next_ = p.previous_ = nullptr;
        p.listed_ = false;
    }
    T *pop_front() noexcept {
        T *const item = first_;
        if (item != nullptr) remove(*item);
        return item;
    }

    // A walk during which any item may leave: begin_walk(), then next() until NULL. One walk at a time.
    T *begin_walk() noexcept {
        coming_ = first_;
        return next();
    }
    T *next() noexcept {
        T *const item = coming_;
        if (item != nullptr) coming_ = place(*item).next_;
        return item;
    }

  private:
    T *first_ = nullptr, *last_ = nullptr, *coming_ = nullptr;
};

} // namespace muster
