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

} // namespace muster
