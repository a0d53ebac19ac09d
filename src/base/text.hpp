// SPDX-License-Identifier: MIT
#pragma once
// Text of a peer, before it reaches people: messages are UTF-8, and nothing in them moves a terminal's cursor.
#include <cstddef>
#include <string_view>

namespace muster {

// Number of bytes of the first character of `text`; 0 if it is not one: a control character, or bytes that are not
// UTF-8.
inline size_t printable_bytes(std::string_view text) noexcept {
    const auto at = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
    const unsigned lead = at(0);
    if (lead < 0x80) return lead >= 0x20 && lead != 0x7f ? 1 : 0;
    const size_t size = lead >= 0xc2 && lead <= 0xdf ? 2 : lead >= 0xe0 && lead <= 0xef ? 3 : lead >= 0xf0 ? 4 : 0;
    if (size == 0 || lead > 0xf4) return 0;
    for (size_t i = 1; i < size; i++)
        if ((at(i) & 0xc0) != 0x80) return 0;
    const unsigned second = at(1);
    const bool wrong = (lead == 0xc2 && second < 0xa0) ||                                    // control characters
                       (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90) || // longer than need be
                       (lead == 0xed && second > 0x9f) ||                                    // halves of UTF-16 pairs
                       (lead == 0xf4 && second > 0x8f); // beyond the last character
    return wrong ? 0 : size;
}

// Replaces each byte that is not part of a printable character by '.'. The length stays the same.
inline void make_printable(char *text, size_t size) noexcept {
    for (size_t i = 0; i < size;) {
        const size_t k = printable_bytes({text + i, size - i});
        if (k == 0) text[i] = '.';
        i += k == 0 ? 1 : k;
    }
}

} // namespace muster
