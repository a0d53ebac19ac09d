// SPDX-License-Identifier: MIT
#pragma once
// Numbers in what members send each other, lowest byte first.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

template <class T>
void put_number(std::string &to, T value) {
    for (size_t i = 0; i < sizeof value; i++)
        to.push_back(static_cast<char>(static_cast<uint64_t>(value) >> (8 * i) & 255));
}

template <class T>
T take_number(std::string_view &from) noexcept { // there are enough bytes
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(T); i++) value |= uint64_t{static_cast<unsigned char>(from[i])} << (8 * i);
    from.remove_prefix(sizeof(T));
    return static_cast<T>(value);
}

} // namespace muster
