// SPDX-License-Identifier: MIT
// A page with the table and one plot per number, for a report or a ticket: SVG, no scripts.
#include "page.hpp"

#include "markup.hpp"
#include "table.hpp"

#include <algorithm>

namespace top {

namespace {

using markup::coordinate, markup::escaped, markup::with_unit;

constexpr size_t points_kept = 20'000;
constexpr const char *titles[History::kinds] = {"Processor, %",
                                                "Memory, bytes",
                                                "Read, bytes per second",
                                                "Written, bytes per second",
                                                "Requests and messages per second",
                                                "Waiting requests and messages"};
// Colours that people with any colour vision can distinguish (Okabe and Ito, 2008).
constexpr const char *colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                   "#e69f00", "#56b4e9", "#7f7f7f", "#b8860b"};

std::string plot(const History &history, size_t kind, const std::map<std::string, size_t> &colour_of) {
    constexpr double width = 560, height = 180, left = 60, top = 10, bottom = 24;
    double most = 0, last = 1;
    for (const auto &[name, points] : history.of)
        for (const auto &[at, point] : points) {
            most = std::max(most, point[kind]);
            last = std::max(last, at);
        }
    if (most <= 0) return {};
    const auto x = [&](double at) { return left + (width - left - 10) * at / last; };
    const auto y = [&](double value) { return top + (height - top - bottom) * (1 - value / most); };
    std::string svg = "<figure><figcaption>" + std::string(titles[kind]) + "</figcaption><svg viewBox=\"0 0 560 180\">";
    for (int i = 0; i <= 2; i++) {
        const double value = most * i / 2;
        svg += "<line class=\"grid\" x1=\"60\" x2=\"550\" y1=\"" + coordinate(y(value)) + "\" y2=\"" +
               coordinate(y(value)) + "\"/><text x=\"55\" y=\"" + coordinate(y(value) + 4) + "\" text-anchor=\"end\">" +
               with_unit(value, kind == 1 ? 1024 : 1000) + "</text>";
    }
    svg += "<text x=\"60\" y=\"175\">0 s</text><text x=\"550\" y=\"175\" text-anchor=\"end\">" + coordinate(last) +
           " s</text>";
    for (const auto &[name, points] : history.of) {
        svg += "<polyline fill=\"none\" stroke-width=\"1.5\" stroke=\"" +
               std::string(colours[colour_of.at(name) % std::size(colours)]) + "\" points=\"";
        for (const auto &[at, point] : points) svg += coordinate(x(at)) + "," + coordinate(y(point[kind])) + " ";
        svg += "\"><title>" + escaped(name) + "</title></polyline>";
    }
    return svg + "</svg></figure>\n";
}

} // namespace

void History::add(const Job &job) {
    for (const auto &[name, process] : job.processes) {
        if (process.before.lines.empty()) continue; // its rates are not known yet
        const double at = process.now.at();
        if (first_ < 0) first_ = at;
        auto &points = of[name];
        if (!points.empty() && points.back().first >= at - first_) continue; // no new sample
        if (points.size() == points_kept) points.erase(points.begin());
        points.emplace_back(at - first_, Point{process.rate("muster_process_cpu_seconds_total").value_or(0) * 100,
                                               process.now.sum("muster_process_resident_bytes"),
                                               process.rate("muster_read_bytes_total").value_or(0),
                                               process.rate("muster_written_bytes_total").value_or(0),
                                               process.rate("muster_store_server_requests_total").value_or(0) +
                                                   process.rate("muster_broker_messages_total").value_or(0) +
                                                   process.rate("muster_socket_messages_total").value_or(0),
                                               process.now.sum("muster_store_server_waiting_requests") +
                                                   process.now.sum("muster_socket_queued_messages")});
    }
}

std::string write_page(const std::string &file, const std::string &title, const Job &job, const History &history) {
    std::map<std::string, size_t> colour_of;
    for (const auto &[name, points] : history.of) colour_of.emplace(name, colour_of.size());
    std::string page = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>" + escaped(title) +
                       "</title><style>"
                       ":root{color-scheme:light dark}"
                       "body{font:15px/1.45 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem}"
                       "pre{overflow-x:auto;font-size:13px}"
                       ".plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(22rem,1fr));gap:1rem}"
                       "figure{margin:0}svg{width:100%}svg text{font-size:11px;fill:currentColor}"
                       ".grid{stroke:currentColor;stroke-opacity:.2}"
                       "i{display:inline-block;width:1.5em;height:.3em;margin:0 .4em;vertical-align:middle}"
                       "</style><h1>" +
                       escaped(title) + "</h1>\n<pre>";
    Job shown = job;
    const std::vector<std::string> all_changes = std::move(shown.changes);
    shown.changes.clear();
    const std::vector<std::string> table = make_table(shown, "", 0, 0);
    for (size_t i = 2; i < table.size(); i++) page += escaped(table[i]) + "\n";
    page += "</pre>\n<p>";
    for (const auto &[name, which] : colour_of)
        page += "<i style=\"background:" + std::string(colours[which % std::size(colours)]) + "\"></i>" +
                escaped(name) + " ";
    page += "</p>\n<div class=\"plots\">\n";
    for (size_t kind = 0; kind < History::kinds; kind++) page += plot(history, kind, colour_of);
    page += "</div>\n";
    if (!all_changes.empty()) {
        page += "<h2>Changes</h2>\n<pre>";
        for (const std::string &change : all_changes) page += escaped(change) + "\n";
        page += "</pre>\n";
    }
    page += "</html>\n";
    return markup::write_file(file, page);
}

} // namespace top
