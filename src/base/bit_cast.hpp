// SPDX-License-Identifier: MIT
#pragma once
// std::bit_cast, which the C++ library has from gcc 11 on; the compilers have it before.
#include <type_traits>

namespace muster {

template <class To, class From>
constexpr To bit_cast(const From &from) noexcept {
    static_assert(sizeof(To) == sizeof(From) && std::is_trivially_copyable_v<From>);
    return __builtin_bit_cast(To, from);
}

} // namespace muster
