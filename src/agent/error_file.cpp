// SPDX-License-Identifier: MIT
#include "agent/error_file.hpp"

#include "base/fd.hpp"

#include <charconv>
#include <nlohmann/json.hpp>

namespace muster {

namespace {

using Json = nlohmann::json;

constexpr size_t max_bytes = 1 << 20;
constexpr int max_depth = 64;

// The text, number or other plain value at a place; empty: there is none.
std::string value_at(const Json &json, const char *place) {
    const Json::json_pointer pointer(place);
    if (!json.contains(pointer)) return {};
    const Json &value = json.at(pointer);
    if (value.is_structured()) return {};
    return value.is_string() ? value.get<std::string>() : value.dump();
}

} // namespace

FailureReport parse_failure(std::string_view text) {
    // Deeper values are left out, so that brackets cost no memory. An error is not an exception, but an empty value.
    const auto is_shallow = [](int depth, Json::parse_event_t, Json &) { return depth <= max_depth; };
    const Json json = Json::parse(text, is_shallow, false);
    const auto either = [&](const char *place, const char *other) {
        const std::string value = value_at(json, place);
        return value.empty() ? value_at(json, other) : value;
    };
    FailureReport report;
    report.message = either("/message/message", "/message");
    if (report.message.empty()) {
        report.message = text;
        return report;
    }
    report.callstack = value_at(json, "/message/extraInfo/py_callstack");
    const std::string timestamp = either("/message/extraInfo/timestamp", "/timestamp");
    std::from_chars(timestamp.data(), timestamp.data() + timestamp.size(), report.timestamp_s);
    return report;
}

FailureReport read_failure(const std::string &path) {
    // A pipe or a device in place of the file is not waited for.
    const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (!file) return {};
    std::string text(max_bytes, '\0');
    size_t used = 0;
    while (used < text.size()) {
        const ssize_t n = uncancelled::read(file.get(), text.data() + used, text.size() - used);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        used += static_cast<size_t>(n);
    }
    text.resize(used);
    return parse_failure(text);
}

} // namespace muster
