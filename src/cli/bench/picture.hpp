// SPDX-License-Identifier: MIT
#pragma once
// Figures of several streams as a picture.
#include "bench/ends.hpp"

#include <utility>
#include <vector>

namespace bench {

using Rows = std::vector<std::pair<std::string, Figures>>; // name of a stream, what was measured

std::string microseconds(double value); // 0.411 us

// An SVG file with bars. Returns an error text, empty: none.
std::string draw(const std::string &file, const Rows &rows);

} // namespace bench
