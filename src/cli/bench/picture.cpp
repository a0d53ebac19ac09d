// SPDX-License-Identifier: MIT
#include "bench/picture.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace bench {

namespace {

constexpr double panel_width = 270, bar_height = 16, name_width = 110, top = 34, gap = 10;

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", value);
    return text;
}

std::string escaped(const std::string &text) {
    std::string all;
    for (const char c : text) all += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
    return all;
}

std::string panel(double x, const char *title, const Rows &rows, double Figures::*figure, const char *unit) {
    double most = 0;
    for (const auto &[name, figures] : rows) most = std::max(most, figures.*figure);
    std::string svg = "<text x=\"" + number(x) + "\" y=\"20\" font-weight=\"bold\">" + title + "</text>\n";
    double y = top;
    for (const auto &[name, figures] : rows) {
        const double value = figures.*figure, width = most > 0 ? (panel_width - 80) * value / most : 0;
        svg += "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(width) + "\" height=\"" +
               number(bar_height - 4) + "\" fill=\"#0072b2\"/><text x=\"" + number(x + width + 4) + "\" y=\"" +
               number(y + 10) + "\">" + with_unit(value, unit) + "</text>\n";
        y += bar_height;
    }
    return svg;
}

} // namespace

std::string with_unit(double value, const char *unit) {
    static constexpr const char *prefixes[] = {"", "k", "M", "G", "T"};
    size_t prefix = 0;
    while (value >= 999.5 && prefix + 1 < std::size(prefixes)) value /= 1000, prefix++;
    char text[48];
    std::snprintf(text, sizeof text, "%.3g %s%s", value, prefixes[prefix], unit);
    return text;
}

std::string draw(const std::string &file, const Rows &rows) {
    const double width = name_width + 3 * (panel_width + gap);
    const double height = top + bar_height * static_cast<double>(rows.size()) + 10;
    std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + number(width) + " " +
                      number(height) + "\" font-family=\"system-ui,sans-serif\" font-size=\"11\">\n" +
                      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
    double y = top + 10;
    for (const auto &[name, figures] : rows) {
        svg += "<text x=\"5\" y=\"" + number(y) + "\">" + escaped(name) + "</text>\n";
        y += bar_height;
    }
    svg += panel(name_width, "half a round trip of 64 B", rows, &Figures::half_us, "us");
    svg += panel(name_width + panel_width + gap, "messages of 64 B", rows, &Figures::rate, "/s");
    svg += panel(name_width + 2 * (panel_width + gap), "messages of 1 MiB", rows, &Figures::bytes_1m, "B/s");
    svg += "</svg>\n";
    std::FILE *const to = std::fopen(file.c_str(), "we");
    if (to == nullptr) return file + ": " + std::strerror(errno);
    const bool written = std::fwrite(svg.data(), 1, svg.size(), to) == svg.size();
    if (std::fclose(to) != 0 || !written) return file + ": " + std::strerror(errno);
    return {};
}

} // namespace bench
