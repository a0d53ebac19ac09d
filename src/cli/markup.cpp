// SPDX-License-Identifier: MIT
#include "markup.hpp"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace markup {

std::string escaped(const std::string &text) {
    std::string all;
    for (const char c : text) {
        if (c == '<')
            all += "&lt;";
        else if (c == '>')
            all += "&gt;";
        else if (c == '&')
            all += "&amp;";
        else if (c == '"')
            all += "&quot;";
        else
            all += c;
    }
    return all;
}

std::string coordinate(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f", value);
    return text;
}

std::string with_unit(double value, int64_t unit) {
    static constexpr char units[] = {'\0', 'k', 'M', 'G', 'T', 'P'};
    size_t which = 0;
    while (std::fabs(value) >= static_cast<double>(unit) * 0.9995 && which + 1 < sizeof units) {
        value /= static_cast<double>(unit);
        which++;
    }
    char text[32];
    std::snprintf(text, sizeof text,
                  which == 0 && value == std::floor(value) ? "%.0f"
                  : value < 99.95                          ? "%.1f"
                                                           : "%.0f",
                  value);
    return which == 0 ? text : std::string(text) + units[which];
}

std::string write_file(const std::string &file, const std::string &content) {
    const std::string next = file + ".new";
    std::FILE *const to = std::fopen(next.c_str(), "we");
    if (to == nullptr) return next + ": " + std::strerror(errno);
    const bool written = std::fwrite(content.data(), 1, content.size(), to) == content.size();
    const bool closed = std::fclose(to) == 0;
    if (!written || !closed || std::rename(next.c_str(), file.c_str()) != 0) {
        std::string why = file + ": " + std::strerror(errno);
        std::remove(next.c_str());
        return why;
    }
    return {};
}

} // namespace markup
