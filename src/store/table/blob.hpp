// SPDX-License-Identifier: MIT
#pragma once
// Immutable bytes: the values of a store and of its results.
#include "base/object.hpp"

#include <cstring>
#include <new>
#include <string_view>

namespace muster {

// Any thread. One allocation, with the bytes after the object.
class Blob final : public Object {
  public:
    static Ref<Blob> make(std::string_view first, std::string_view second = {}) {
        void *const memory = ::operator new(sizeof(Blob) + first.size() + second.size());
        Blob *const blob = new (memory) Blob(first.size() + second.size());
        if (!first.empty()) std::memcpy(blob->data(), first.data(), first.size());
        if (!second.empty()) std::memcpy(blob->data() + first.size(), second.data(), second.size());
        return Ref<Blob>::adopt(blob);
    }
    std::string_view bytes() const noexcept { return {reinterpret_cast<const char *>(this + 1), size_}; }
    size_t size() const noexcept { return size_; }

  private:
    explicit Blob(size_t size) noexcept : size_(size) {}
    ~Blob() override = default;
    void last_reference_gone() noexcept override {
        void *const memory = this;
        this->~Blob();
        ::operator delete(memory);
    }
    char *data() noexcept { return reinterpret_cast<char *>(this + 1); }
    const size_t size_;
};

} // namespace muster
