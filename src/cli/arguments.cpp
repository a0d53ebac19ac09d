// SPDX-License-Identifier: MIT
#include "arguments.hpp"

#include <muster/context.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <getopt.h>
#include <unistd.h>

namespace cli {

std::optional<uint64_t> number_of(const std::string &text, uint64_t min, uint64_t max) {
    char *end = nullptr;
    errno = 0;
    const uint64_t number = strtoull(text.c_str(), &end, 10);
    if (text.empty() || text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0) return {};
    return number >= min && number <= max ? std::optional(number) : std::nullopt;
}

std::string set_number(const std::string &text, uint64_t min, uint64_t max, uint64_t &to) {
    const std::optional<uint64_t> number = number_of(text, min, max);
    to = number.value_or(0);
    return number ? "" : text + " is no number from " + std::to_string(min) + " to " + std::to_string(max);
}

std::string set_seconds(const std::string &text, double min, double max, int64_t &to_ns) {
    char *end = nullptr;
    const double seconds = strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !std::isfinite(seconds) || seconds < min || seconds > max) {
        char limits[64];
        snprintf(limits, sizeof limits, "%.12g to %.12g", min, max);
        return text + " is no number of seconds from " + limits;
    }
    to_ns = static_cast<int64_t>(seconds * 1e9);
    return {};
}

Option text(const char *name, std::string &to) {
    return {name, [&to](const std::string &value) { return to = value, value.empty() ? "it is empty" : ""; }};
}

Option amount(const char *name, uint64_t &to, uint64_t min, uint64_t max) {
    return {name, [&to, min, max](const std::string &value) -> std::string {
                static constexpr char units[] = "kmg";
                const char *const unit = value.empty() ? nullptr : strchr(units, value.back());
                const int shift = unit != nullptr ? 10 * static_cast<int>(unit - units + 1) : 0;
                const auto number = number_of(value.substr(0, value.size() - (shift != 0)), 0, UINT64_MAX >> shift);
                if (!number || *number << shift < min || *number << shift > max)
                    return value + " is no number, with k, m or g after it, from " + std::to_string(min) + " to " +
                           std::to_string(max);
                to = *number << shift;
                return {};
            }};
}

Option seconds(const char *name, int64_t &to_ns, double min, double max) {
    return {name, [&to_ns, min, max](const std::string &value) { return set_seconds(value, min, max, to_ns); }};
}

Option log_level(int32_t &to) {
    return {"log", [&to](const std::string &value) -> std::string {
                static const char *const levels[] = {"off", "error", "warn", "info", "debug"};
                for (int32_t level = MUSTER_LOG_OFF; level <= MUSTER_LOG_DEBUG; level++)
                    if (value == levels[level]) return to = level, "";
                return value + " is none of error, warn, info, debug";
            }};
}

Option secret_file(const char *name, const char *variable) {
    return {name, [variable](const std::string &file) -> std::string {
                if (access(file.c_str(), R_OK) != 0) return file + ": " + strerror(errno);
                setenv(variable, file.c_str(), 1);
                return {};
            }};
}

bool has_secret() {
    return getenv("MUSTER_SECRET_FILE") != nullptr || getenv("MUSTER_SECRET") != nullptr;
}

int reject(const Command &command, const std::string &why) {
    fprintf(stderr, "%s: %s\n%s --help lists the options\n", command.name, why.c_str(), command.name);
    return 2;
}

std::optional<int> read_options(const Command &command, const Arguments &arguments, const std::vector<Option> &options,
                                std::vector<std::string> &words) {
    constexpr int first = 256; // options by their place, after all characters
    std::vector<option> known;
    for (const Option &one : options)
        known.push_back({one.name, one.has_value ? required_argument : no_argument, nullptr,
                         first + static_cast<int>(known.size())});
    known.push_back({"help", no_argument, nullptr, 'h'});
    known.push_back({});
    std::vector<std::string> copies{command.name};
    for (const std::string &word : arguments) {
        std::string &copy = copies.emplace_back(word);
        if (!copy.starts_with("--")) continue;
        for (size_t i = 2; i < copy.size() && copy[i] != '='; i++)
            if (copy[i] == '_') copy[i] = '-';
    }
    std::vector<char *> pointers;
    for (std::string &copy : copies) pointers.push_back(copy.data());
    pointers.push_back(nullptr);
    opterr = 0;
    optind = 1;
    // '+': ends at the first word that is not an option; '-': returns that word as option 1.
    std::string letters = command.runs_program ? "+:h" : "-:h";
    for (const Option &one : options)
        if (one.letter != 0) letters.append(1, one.letter).append(one.has_value ? ":" : "");
    const int count = static_cast<int>(copies.size());
    for (int which; (which = getopt_long(count, pointers.data(), letters.c_str(), known.data(), nullptr)) != -1;) {
        const std::string &before = arguments[static_cast<size_t>(std::max(optind, 2)) - 2];
        if (which == 'h') return fputs(command.help, stdout) < 0;
        if (which == '?') return reject(command, "no such option, or it takes no value: " + before);
        if (which == ':') return reject(command, "a value is missing: " + before);
        if (which == 1) {
            words.push_back(before);
            continue;
        }
        const auto has_letter = [which](const Option &option) { return option.letter == which; };
        const auto place = which < first ? std::find_if(options.begin(), options.end(), has_letter)
                                         : options.begin() + (which - first);
        const Option &one = *place;
        const std::string wrong = one.set(optarg != nullptr ? optarg : "");
        if (!wrong.empty()) return reject(command, "--" + std::string(one.name) + ": " + wrong);
    }
    words.insert(words.end(), arguments.begin() + optind - 1, arguments.end());
    return {};
}

} // namespace cli
