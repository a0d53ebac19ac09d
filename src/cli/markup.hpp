// SPDX-License-Identifier: MIT
#pragma once
// Pieces of the pages and pictures that commands write.
#include <cstdint>
#include <string>

namespace markup {

std::string escaped(const std::string &text);             // for HTML and SVG
std::string coordinate(double value);                     // with two decimals
std::string with_unit(double value, int64_t unit = 1000); // 12.3k, 4.0M

// A reader of the file has the content before or the new one. Returns an error text, empty: none.
std::string write_file(const std::string &file, const std::string &content);

} // namespace markup
