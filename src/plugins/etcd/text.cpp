// SPDX-License-Identifier: MIT
#include "text.hpp"

#include "base/codec.hpp"
#include "base/percent.hpp"

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sodium.h>

namespace etcd {

namespace {

constexpr int padded = sodium_base64_VARIANT_ORIGINAL;

Failure wrong(const std::string &why) {
    return {MUSTER_E_ADDRESS, why};
}

// host, host:port or [v6]:port, as curl reads it after a scheme.
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

// Never in the URL, which is logged, and which every user can see in the list of processes.
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

std::string base64(std::string_view bytes) {
    std::string text(sodium_base64_encoded_len(bytes.size(), padded), '\0');
    sodium_bin2base64(text.data(), text.size(), muster::as_bytes(bytes), bytes.size(), padded);
    text.pop_back(); // its terminator
    return text;
}

bool from_base64(std::string_view text, std::string &out) {
    out.resize(text.size() / 4 * 3);
    size_t size = 0;
    const bool good = sodium_base642bin(muster::as_bytes(out), out.size(), text.data(), text.size(), nullptr, &size,
                                        nullptr, padded) == 0;
    out.resize(good ? size : 0);
    return good;
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
    if (hosts.size() < rest.size() && !muster::percent_decode(out.root, rest.substr(hosts.size() + 1)))
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
        if (equals == std::string_view::npos || !muster::percent_decode(value, one.substr(equals + 1)))
            return wrong("option " + std::string(name) + " has no value");
        if (name == "ca")
            out.ca = value;
        else if (name == "cert")
            out.cert = value;
        else if (name == "key")
            out.key = value;
        else if (name == "user-file")
            user_file = value;
        else if (name == "timeout")
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
            return wrong("timeout is 1 to 3600 seconds");
        out.timeout_ns = number * second;
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
