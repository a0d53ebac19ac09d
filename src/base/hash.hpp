// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>
#include <type_traits>

namespace muster {

// FNV-1a over the elements of a range. It finds mistakes; against an attacker it proves nothing.
template <class Range>
uint64_t fnv1a(const Range &range) noexcept {
    uint64_t hash = 0xcbf29ce484222325u;
    for (const auto element : range)
        hash =
            (hash ^ static_cast<std::make_unsigned_t<std::remove_cv_t<decltype(element)>>>(element)) * 0x100000001b3u;
    return hash;
}

// The finaliser of splitmix64 (S. Vigna): every bit of the result depends on every bit of the number.
constexpr uint64_t mix64(uint64_t number) noexcept {
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9u;
    number = (number ^ number >> 27) * 0x94d049bb133111ebu;
    return number ^ number >> 31;
}

} // namespace muster
