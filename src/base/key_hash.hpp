// SPDX-License-Identifier: MIT
#pragma once
// How keys are derived: docs/wire.md calls it H.
#include <array>
#include <initializer_list>
#include <string_view>

namespace muster {

using SecretKey = std::array<unsigned char, 32>;

// BLAKE2b with 32 bytes of output, keyed or not, over the parts, each preceded by its length (8).
SecretKey key_hash(const SecretKey *key, std::initializer_list<std::string_view> parts) noexcept;

template <class Bytes>
std::string_view key_part(const Bytes &bytes) noexcept {
    return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

} // namespace muster
