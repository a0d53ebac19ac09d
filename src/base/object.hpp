// SPDX-License-Identifier: MIT
#pragma once
// Reference counting for everything a handle points to.
#include "base/uncancelled.hpp"

#include <atomic>
#include <cstdint>
#include <utility>

namespace muster {

// Any thread. Each object is born with one reference.
class Object {
  public:
    Object() noexcept = default;
    Object(const Object &) = delete;
    Object &operator=(const Object &) = delete;

    // relaxed: a thread that retains holds a reference already.
    void retain() noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }

    // acq_rel: the last owner sees everything that every earlier owner did before it released.
    void release() noexcept {
        if (refs_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
        const Uncancelled guard;
        last_reference_gone();
    }

    // For lookups that race with the last release: false when the object is already going.
    bool try_retain() noexcept {
        uint32_t n = refs_.load(std::memory_order_relaxed);
        while (n != 0)
            if (refs_.compare_exchange_weak(n, n + 1, std::memory_order_relaxed)) return true;
        return false;
    }

    // The host has released its handle; calls in progress hold references of their own. seq_cst: the releasing thread
    // sets the mark and then wakes the waiters; a waiter announces itself and then checks the mark. One of the two sees
    // the other.
    void leave_handle() noexcept { handle_left_.store(true, std::memory_order_seq_cst); }
    bool handle_left() const noexcept { return handle_left_.load(std::memory_order_seq_cst); }

  protected:
    // Releases a reference. True: it was the last one, and the caller ends the object. For classes without lookups that
    // may try_retain(): then a count of 1 does not change any more.
    bool release_last() noexcept {
        return refs_.load(std::memory_order_acquire) == 1 || refs_.fetch_sub(1, std::memory_order_acq_rel) == 1;
    }
    virtual ~Object() = default;
    virtual void last_reference_gone() noexcept { delete this; }

  private:
    std::atomic<uint32_t> refs_{1};
    std::atomic<bool> handle_left_{false};
};

// Owns one reference.
template <class T>
class Ref {
  public:
    Ref() noexcept = default;
    static Ref adopt(T *object) noexcept { // takes over the reference of the caller
        Ref r;
        r.object_ = object;
        return r;
    }
    explicit Ref(T *object) noexcept : object_(object) { // takes another reference
        if (object_) object_->retain();
    }
    Ref(const Ref &other) noexcept : Ref(other.object_) {}
    Ref(Ref &&other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    template <class U>
    Ref(const Ref<U> &other) noexcept : Ref(other.get()) {}
    template <class U>
    Ref(Ref<U> &&other) noexcept : object_(other.detach()) {}
    Ref &operator=(Ref other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    ~Ref() { reset(); }
    void reset() noexcept {
        if (T *o = std::exchange(object_, nullptr)) o->release();
    }
    T *detach() noexcept { return std::exchange(object_, nullptr); } // the caller owns the reference now
    T *get() const noexcept { return object_; }
    T *operator->() const noexcept { return object_; }
    T &operator*() const noexcept { return *object_; }
    explicit operator bool() const noexcept { return object_ != nullptr; }

  private:
    T *object_ = nullptr;
};

template <class T, class... A>
Ref<T> make_ref(A &&...args) {
    return Ref<T>::adopt(new T(std::forward<A>(args)...));
}

} // namespace muster
