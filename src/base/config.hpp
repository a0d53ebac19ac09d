// SPDX-License-Identifier: MIT
#pragma once
// Growing structs: that of the caller may be older (shorter) or newer (longer) than that of this library.
#include "base/result.hpp"

#include <cstring>

namespace muster {

// Checks `struct_size` at `from` and fills the `size` bytes at `to`: fields that the caller does not have are zero.
// Fails with MUSTER_E_ABI when the size was never released, or when bytes beyond `size` are not all zero.
Result<void> read_config(const void *from, void *to, size_t size, size_t first_size, const char *name) noexcept;

// `first_size` is the size of the struct in the release that introduced it. NULL: all fields are zero.
template <class T>
Result<void> read_config(const T *from, T &to, const char *name, size_t first_size = sizeof(T)) noexcept {
    std::memset(&to, 0, sizeof to);
    to.struct_size = sizeof to;
    return from == nullptr ? Result<void>{} : read_config(from, &to, sizeof to, first_size, name);
}

} // namespace muster
