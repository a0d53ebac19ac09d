// SPDX-License-Identifier: MIT
#pragma once
// Numbers and nonces in the commands of CURVE.
#include "base/codec.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace star::curve {

constexpr size_t hello_bytes = 200, welcome_bytes = 168, min_initiate_bytes = 257, nonce_text = 16, mac = 16;
constexpr size_t cookie_bytes = 96;

using Nonce24 = std::array<unsigned char, 24>;

using muster::as_bytes;

// Counters are in network byte order.
inline uint64_t get_counter(const unsigned char *from) noexcept {
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) value = value << 8 | from[i];
    return value;
}
inline void put_counter(unsigned char *to, uint64_t value) noexcept {
    for (int i = 7; i >= 0; i--, value >>= 8) to[i] = static_cast<unsigned char>(value);
}

inline Nonce24 short_nonce(const char (&text)[nonce_text + 1], const unsigned char *counter) noexcept {
    Nonce24 nonce;
    memcpy(nonce.data(), text, nonce_text);
    memcpy(nonce.data() + nonce_text, counter, 8);
    return nonce;
}

inline Nonce24 long_nonce(const char (&text)[9], const unsigned char *random) noexcept {
    Nonce24 nonce;
    memcpy(nonce.data(), text, 8);
    memcpy(nonce.data() + 8, random, 16);
    return nonce;
}

} // namespace star::curve
