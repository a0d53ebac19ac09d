// SPDX-License-Identifier: MIT
#include "agent/error_file.hpp"

#include "base/fd.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

namespace muster {

namespace {

constexpr size_t max_bytes = 1 << 20;
constexpr int deepest = 64;

void put_utf8(std::string &to, uint32_t c) {
    const auto more = [&](int shift) { to.push_back(static_cast<char>(0x80 | ((c >> shift) & 0x3f))); };
    if (c < 0x80) {
        to.push_back(static_cast<char>(c));
    } else if (c < 0x800) {
        to.push_back(static_cast<char>(0xc0 | c >> 6));
        more(0);
    } else if (c < 0x10000) {
        to.push_back(static_cast<char>(0xe0 | c >> 12));
        more(6), more(0);
    } else {
        to.push_back(static_cast<char>(0xf0 | c >> 18));
        more(12), more(6), more(0);
    }
}

// Walks over JSON, and keeps the three values it is after, by the names that lead to them.
class Reader {
  public:
    explicit Reader(std::string_view text) noexcept : text_(text) {}

    bool read(FailureReport &report) {
        report_ = &report;
        if (!value("", 0)) return false;
        space();
        return at_ == text_.size() && !report.message.empty();
    }

  private:
    bool value(const std::string &path, int depth) {
        if (depth > deepest) return false;
        space();
        if (at_ == text_.size()) return false;
        switch (text_[at_]) {
        case '{':
            return members(path, depth, '}');
        case '[':
            return members(path, depth, ']');
        case '"': {
            const std::optional<std::string> text = string();
            if (text) keep(path, *text);
            return text.has_value();
        }
        default: { // a number, true, false, null
            const size_t begin = at_;
            while (at_ < text_.size() && (isalnum(static_cast<unsigned char>(text_[at_])) || among("+-."))) at_++;
            if (at_ == begin) return false;
            keep(path, std::string(text_.substr(begin, at_ - begin)));
            return true;
        }
        }
    }

    bool members(const std::string &path, int depth, char end) {
        at_++;
        if (take(end)) return true;
        do {
            std::string name = "[]";
            if (end == '}') {
                space();
                const std::optional<std::string> key = string();
                if (!key || !take(':')) return false;
                name = *key;
            }
            // A path of any length would be copied for each of any number of members; what is wanted is short.
            const bool wanted = path.size() + name.size() < 64;
            if (!value(wanted ? path + '/' + name : "/?", depth + 1)) return false;
        } while (take(','));
        return take(end);
    }

    std::optional<std::string> string() {
        if (at_ == text_.size() || text_[at_] != '"') return {};
        std::string out;
        for (at_++; at_ < text_.size(); at_++) {
            const char c = text_[at_];
            if (c == '"') {
                at_++;
                return out;
            }
            if (c != '\\')
                out.push_back(c);
            else if (!escape(out))
                return {};
        }
        return {};
    }

    bool escape(std::string &out) {
        static constexpr std::string_view letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
        if (++at_ == text_.size()) return false;
        if (text_[at_] != 'u') {
            const size_t which = letters.find(text_[at_]);
            if (which != letters.npos) out.push_back(meanings[which]);
            return which != letters.npos;
        }
        std::optional<uint32_t> c = hex();
        if (!c) return false;
        const bool high = *c >= 0xd800 && *c < 0xdc00;
        if (high && text_.substr(at_ + 1, 2) == "\\u") {
            at_ += 2;
            const std::optional<uint32_t> low = hex();
            if (!low) return false;
            c = *low >= 0xdc00 && *low < 0xe000 ? 0x10000 + ((*c - 0xd800) << 10) + (*low - 0xdc00) : 0xfffd;
        } else if (*c >= 0xd800 && *c < 0xe000) {
            c = 0xfffd; // half of a pair
        }
        put_utf8(out, *c);
        return true;
    }

    // Four digits behind the place, which moves to the last of them.
    std::optional<uint32_t> hex() noexcept {
        uint32_t c = 0;
        const std::string_view digits = text_.substr(std::min(at_ + 1, text_.size()), 4);
        const auto [end, why] = std::from_chars(digits.data(), digits.data() + digits.size(), c, 16);
        if (digits.size() != 4 || end != digits.data() + 4) return {};
        at_ += 4;
        return c;
    }

    void keep(const std::string &path, const std::string &text) {
        if (path == "/message" || path == "/message/message") report_->message = text;
        if (path == "/message/extraInfo/py_callstack") report_->callstack = text;
        if (path == "/timestamp" || path == "/message/extraInfo/timestamp")
            std::from_chars(text.data(), text.data() + text.size(), report_->timestamp_s);
    }

    void space() noexcept {
        while (at_ < text_.size() && among(" \t\r\n")) at_++;
    }
    bool among(std::string_view set) const noexcept { return set.find(text_[at_]) != set.npos; }
    bool take(char c) noexcept {
        space();
        if (at_ == text_.size() || text_[at_] != c) return false;
        at_++;
        return true;
    }

    std::string_view text_;
    size_t at_ = 0;
    FailureReport *report_ = nullptr;
};

} // namespace

FailureReport parse_failure(std::string_view text) {
    FailureReport report;
    if (Reader(text).read(report)) return report;
    report = {};
    report.message = text;
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
