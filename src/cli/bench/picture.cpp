// SPDX-License-Identifier: MIT
#include "bench/picture.hpp"

#include "markup.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>

namespace bench {

namespace {

using markup::coordinate, markup::escaped, markup::with_unit;

constexpr double panel_width = 270, bar_height = 16, name_width = 110, top = 34, gap = 10;

std::string panel(double x, const char *title, const Rows &rows, double Figures::*figure,
                  const std::function<std::string(double)> &shown) {
    double most = 0;
    for (const auto &[name, figures] : rows) most = std::max(most, figures.*figure);
    std::string svg = "<text x=\"" + coordinate(x) + "\" y=\"20\" font-weight=\"bold\">" + title + "</text>\n";
    double y = top;
    for (const auto &[name, figures] : rows) {
        const double value = figures.*figure, width = most > 0 ? (panel_width - 80) * value / most : 0;
        svg += "<rect x=\"" + coordinate(x) + "\" y=\"" + coordinate(y) + "\" width=\"" + coordinate(width) +
               "\" height=\"" + coordinate(bar_height - 4) + "\" fill=\"#0072b2\"/><text x=\"" +
               coordinate(x + width + 4) + "\" y=\"" + coordinate(y + 10) + "\">" + shown(value) + "</text>\n";
        y += bar_height;
    }
    return svg;
}

std::string per_second(double value) {
    return with_unit(value) + "/s";
}

std::string bytes_per_second(double value) {
    return with_unit(value) + "B/s";
}

} // namespace

std::string microseconds(double value) {
    char text[32];
    std::snprintf(text, sizeof text, value < 999.5 ? "%.3g us" : "%.0f us", value); // three digits, without an exponent
    return text;
}

std::string draw(const std::string &file, const Rows &rows) {
    const double width = name_width + 3 * (panel_width + gap);
    const double height = top + bar_height * static_cast<double>(rows.size()) + 10;
    std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + coordinate(width) + " " +
                      coordinate(height) + "\" font-family=\"system-ui,sans-serif\" font-size=\"11\">\n" +
                      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
    double y = top + 10;
    for (const auto &[name, figures] : rows) {
        svg += "<text x=\"5\" y=\"" + coordinate(y) + "\">" + escaped(name) + "</text>\n";
        y += bar_height;
    }
    svg += panel(name_width, "half a round trip of 64 B", rows, &Figures::half_us, microseconds);
    svg += panel(name_width + panel_width + gap, "messages of 64 B", rows, &Figures::rate, per_second);
    svg += panel(name_width + 2 * (panel_width + gap), "messages of 1 MiB", rows, &Figures::bytes_1m, bytes_per_second);
    svg += "</svg>\n";
    return markup::write_file(file, svg);
}

} // namespace bench
