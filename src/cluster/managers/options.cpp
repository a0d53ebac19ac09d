// SPDX-License-Identifier: MIT
#include "cluster/managers/options.hpp"

#include <algorithm>
#include <charconv>

namespace muster {

namespace {

constexpr std::string_view blanks = " \t\r";

std::string_view trimmed(std::string_view text) {
    const size_t first = text.find_first_not_of(blanks);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

} // namespace

Result<ManagerOptions> ManagerOptions::parse(std::string_view text, const std::vector<std::string_view> &known) {
    ManagerOptions options;
    while (!text.empty()) {
        const std::string_view word = trimmed(text.substr(0, text.find_first_of(";\n")));
        text.remove_prefix(std::min(text.size(), text.find_first_of(";\n")));
        if (!text.empty()) text.remove_prefix(1);
        if (word.empty()) continue;
        const size_t sign = word.find('=');
        const std::string name(trimmed(word.substr(0, sign)));
        if (sign == std::string_view::npos)
            return Error::make(MUSTER_E_ARG, "options: \"%.60s\" is not name=value", std::string(word).c_str());
        if (std::find(known.begin(), known.end(), name) == known.end()) {
            std::string names;
            for (const std::string_view one : known) names.append(names.empty() ? "" : ", ").append(one);
            return Error::make(MUSTER_E_ARG, "options: there is no \"%.40s\", but %s", name.c_str(), names.c_str());
        }
        if (!options.values_.emplace(name, trimmed(word.substr(sign + 1))).second)
            return Error::make(MUSTER_E_ARG, "options: %s is there twice", name.c_str());
    }
    return options;
}

std::string ManagerOptions::text(const std::string &name, std::string_view otherwise) const {
    const auto found = values_.find(name);
    return std::string(found == values_.end() ? otherwise : std::string_view(found->second));
}

Result<uint32_t> ManagerOptions::number(const std::string &name, uint32_t otherwise, uint32_t least,
                                        uint32_t most) const {
    const auto found = values_.find(name);
    if (found == values_.end()) return otherwise;
    const std::string &value = found->second;
    uint32_t number = 0;
    const auto [end, failed] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (failed != std::errc() || end != value.data() + value.size() || number < least || number > most)
        return Error::make(MUSTER_E_ARG, "options: %s is \"%.40s\", not %u to %u", name.c_str(), value.c_str(), least,
                           most);
    return number;
}

Result<std::vector<std::string>> ManagerOptions::words(const std::string &name) const {
    auto words = split_words(text(name));
    if (!words) return Error::make(MUSTER_E_ARG, "options: %s: %s", name.c_str(), words.error().message);
    return words;
}

Result<std::vector<std::string>> split_words(std::string_view text) {
    std::vector<std::string> words;
    bool inside = false;
    char quote = '\0';
    for (size_t i = 0; i < text.size(); i++) {
        const char c = text[i];
        if (quote == '\0' && blanks.find(c) != std::string_view::npos) {
            inside = false;
            continue;
        }
        if (!std::exchange(inside, true)) words.emplace_back();
        if (c == quote) {
            quote = '\0';
        } else if (quote == '\0' && (c == '"' || c == '\'')) {
            quote = c;
        } else if (c == '\\' && quote != '\'') {
            if (++i == text.size()) return Error::make(MUSTER_E_ARG, "it ends in a backslash");
            words.back().push_back(text[i]);
        } else {
            words.back().push_back(c);
        }
    }
    if (quote != '\0') return Error::make(MUSTER_E_ARG, "a %c is not closed", quote);
    return words;
}

std::string shell_word(std::string_view text) {
    std::string word = "'";
    for (const char c : text) {
        if (c == '\'')
            word += "'\\''";
        else
            word.push_back(c);
    }
    return word += '\'';
}

} // namespace muster
