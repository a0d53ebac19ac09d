// SPDX-License-Identifier: MIT
#pragma once
// Percent coding (RFC 3986) in addresses and worker tickets. Plug-ins use it, too: it needs only the standard library.
#include <string>
#include <string_view>

namespace muster {

// The value of a hexadecimal digit of either case, -1 of any other character.
constexpr int hex_value(char c) noexcept {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

// Appends `text` to `to`. Letters, digits and the characters of `plain` are not encoded, others become %XX.
inline void percent_encode(std::string &to, std::string_view text, std::string_view plain) {
    constexpr char digits[] = "0123456789ABCDEF";
    for (const char c : text) {
        const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                              plain.find(c) != std::string_view::npos;
        if (is_plain)
            to += c;
        else
            to.append({'%', digits[static_cast<unsigned char>(c) >> 4], digits[c & 15]});
    }
}

// Appends the decoded `text` to `to`. Returns false if a % is not followed by two hexadecimal digits; `to` then ends
// with what precedes it.
inline bool percent_decode(std::string &to, std::string_view text) {
    for (size_t i = 0; i < text.size(); i++) {
        if (text[i] != '%') {
            to += text[i];
            continue;
        }
        const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
        const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
        if (high < 0 || low < 0) return false;
        to += static_cast<char>(high << 4 | low);
        i += 2;
    }
    return true;
}

} // namespace muster
