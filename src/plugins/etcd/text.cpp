// SPDX-License-Identifier: MIT
#include "text.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>

namespace etcd {

namespace {

constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> values = [] {
    std::array<int8_t, 256> table{};
    for (int8_t &value : table) value = -1;
    for (int8_t i = 0; i < 64; i++) table[static_cast<unsigned char>(digits[i])] = i;
    return table;
}();

int hex(char c) noexcept {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

// %2f and the like.
bool decode(std::string_view text, std::string &out) {
    out.clear();
    for (size_t i = 0; i < text.size(); i++) {
        if (text[i] != '%') {
            out += text[i];
            continue;
        }
        if (i + 2 >= text.size() || hex(text[i + 1]) < 0 || hex(text[i + 2]) < 0) return false;
        out += static_cast<char>(hex(text[i + 1]) * 16 + hex(text[i + 2]));
        i += 2;
    }
    return true;
}

Failure wrong(const std::string &why) {
    return {MUSTER_E_ADDRESS, why};
}

// host, host:port or [v6]:port, as curl reads it behind a scheme.
bool endpoint(std::string_view text, std::string &out) {
    const size_t close = text.find(']');
    const size_t colon = text.find(':', close == std::string_view::npos ? 0 : close);
    const std::string_view host = text.substr(0, colon);
    std::string_view port = colon == std::string_view::npos ? "2379" : text.substr(colon + 1);
    int number = 0;
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (host.empty() || error != std::errc() || end != port.data() + port.size() || number < 1 || number > 65535)
        return false;
    for (const char c : host)
        if ((c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strchr("-._[]:", c) == nullptr)
            return false;
    out = std::string(host) + ":" + std::string(port);
    return true;
}

// Never in the URL, which is logged and seen by everybody who lists processes.
Failure read_user(const std::string &file, Url &out) {
    if (file.empty()) {
        const char *const user = getenv("MUSTER_ETCD_USER");
        const char *const password = getenv("MUSTER_ETCD_PASSWORD");
        if (user != nullptr) out.user = user;
        if (password != nullptr) out.password = password;
        return {};
    }
    std::ifstream from(file);
    std::string line;
    if (!from || !std::getline(from, line)) return {MUSTER_E_NOT_FOUND, "user-file " + file + ": it cannot be read"};
    const size_t colon = line.find(':');
    if (colon == std::string::npos || colon == 0)
        return wrong("user-file " + file + ": its first line is no user:password");
    out.user = line.substr(0, colon);
    out.password = line.substr(colon + 1);
    return {};
}

} // namespace

int64_t now_ns() noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * second + now.tv_nsec;
}

std::string base64(std::string_view bytes) {
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    for (size_t i = 0; i < bytes.size(); i += 3) {
        const auto at = [&](size_t k) -> uint32_t {
            return i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0;
        };
        const uint32_t group = at(0) << 16 | at(1) << 8 | at(2);
        text += digits[group >> 18];
        text += digits[group >> 12 & 63];
        text += i + 1 < bytes.size() ? digits[group >> 6 & 63] : '=';
        text += i + 2 < bytes.size() ? digits[group & 63] : '=';
    }
    return text;
}

bool from_base64(std::string_view text, std::string &out) {
    out.clear();
    if (text.size() % 4 != 0) return false;
    out.reserve(text.size() / 4 * 3);
    for (size_t i = 0; i < text.size(); i += 4) {
        uint32_t group = 0;
        int filled = 4;
        for (size_t k = 0; k < 4; k++) {
            const char c = text[i + k];
            const bool filler = c == '=' && i + 4 == text.size() && k >= 2;
            const int8_t value = filler ? int8_t{0} : values[static_cast<unsigned char>(c)];
            if (value < 0 || (!filler && filled < 4)) return false;
            if (filler) filled--;
            group = group << 6 | static_cast<uint32_t>(value);
        }
        out += static_cast<char>(group >> 16);
        if (filled > 2) out += static_cast<char>(group >> 8);
        if (filled > 3) out += static_cast<char>(group);
    }
    return true;
}

std::string behind_all(std::string_view prefix) {
    std::string end(prefix);
    while (!end.empty() && static_cast<unsigned char>(end.back()) == 0xff) end.pop_back();
    if (end.empty()) return std::string(1, '\0');
    end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
    return end;
}

Failure Url::parse(std::string_view text, Url &out) {
    constexpr std::string_view scheme = "etcd://";
    if (!text.starts_with(scheme)) return wrong("it begins with etcd://host:port");
    std::string_view rest = text.substr(scheme.size()), options;
    if (const size_t mark = rest.find('?'); mark != std::string_view::npos) {
        options = rest.substr(mark + 1);
        rest = rest.substr(0, mark);
    }
    std::string_view hosts = rest.substr(0, rest.find('/'));
    if (hosts.find('@') != std::string_view::npos)
        return wrong("user and password are given by user-file= or MUSTER_ETCD_USER and MUSTER_ETCD_PASSWORD");
    if (hosts.size() < rest.size() && !decode(rest.substr(hosts.size() + 1), out.root))
        return wrong("a % in the prefix is no %xx");
    if (!out.root.empty() && out.root.back() != '/') out.root += '/';
    std::string user_file, seconds;
    bool tls = false;
    while (!options.empty()) {
        const std::string_view one = options.substr(0, options.find('&'));
        options.remove_prefix(one.size() < options.size() ? one.size() + 1 : one.size());
        const size_t equals = one.find('=');
        const std::string_view name = one.substr(0, equals);
        std::string value;
        if (equals == std::string_view::npos || !decode(one.substr(equals + 1), value))
            return wrong("option " + std::string(name) + " has no value");
        if (name == "ca")
            out.ca = value;
        else if (name == "cert")
            out.cert = value;
        else if (name == "key")
            out.key = value;
        else if (name == "user-file")
            user_file = value;
        else if (name == "patience")
            seconds = value;
        else if (name == "tls")
            tls = value == "yes";
        else
            return wrong("there is no option " + std::string(name));
    }
    if (!seconds.empty()) {
        int number = 0;
        const auto [end, error] = std::from_chars(seconds.data(), seconds.data() + seconds.size(), number);
        if (error != std::errc() || end != seconds.data() + seconds.size() || number < 1 || number > 3600)
            return wrong("patience is 1 to 3600 seconds");
        out.patience_ns = number * second;
    }
    if (out.cert.empty() != out.key.empty()) return wrong("cert and key come together");
    tls = tls || !out.ca.empty() || !out.cert.empty();
    while (!hosts.empty()) {
        const std::string_view one = hosts.substr(0, hosts.find(','));
        hosts.remove_prefix(one.size() < hosts.size() ? one.size() + 1 : one.size());
        std::string host;
        if (!endpoint(one, host)) return wrong("\"" + std::string(one) + "\" is no host:port");
        out.endpoints.push_back((tls ? "https://" : "http://") + host);
    }
    if (out.endpoints.empty()) return wrong("it names no host");
    return read_user(user_file, out);
}

} // namespace etcd
