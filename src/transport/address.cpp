// SPDX-License-Identifier: MIT
#include "transport/address.hpp"

#include "base/percent.hpp"

#include <cstdarg>
#include <cstdio>

namespace muster {
namespace {

constexpr size_t max_text = 4096, max_scheme = 31, max_host = 253, max_name = 64, max_options = 32;
constexpr size_t max_socket_path = 107; // sun_path without its terminator

// Text for an error: cut, and with a dot for each byte that would disturb a terminal.
std::string shown(std::string_view text) {
    std::string out(text.substr(0, 120));
    for (char &c : out)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '.';
    if (text.size() > out.size()) out += "...";
    return out;
}

[[gnu::format(printf, 2, 3)]] Error wrong(std::string_view address, const char *format, ...) {
    char why[128];
    va_list values;
    va_start(values, format);
    vsnprintf(why, sizeof why, format, values);
    va_end(values);
    return Error::make(MUSTER_E_ADDRESS, "address %s: %s", shown(address).c_str(), why);
}

bool is_lower(char c) {
    return c >= 'a' && c <= 'z';
}
bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_letter(char c) {
    return is_lower(c) || (c >= 'A' && c <= 'Z');
}
char lowered(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

Result<std::string> decode(std::string_view value, std::string_view address) {
    std::string out;
    if (!percent_decode(out, value)) return wrong(address, "%% is not followed by two hexadecimal digits");
    if (out.find('\0') != std::string::npos) return wrong(address, "%%00 in a value");
    return out;
}

Result<void> parse_options(std::string_view text, Address &address) {
    size_t count = 0;
    while (!text.empty()) {
        const size_t end = text.find('&');
        std::string_view item = text.substr(0, end);
        text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
        const size_t equals = item.find('=');
        const std::string_view key = item.substr(0, equals);
        if (key.empty()) return wrong(address.text, "an option without a name");
        for (char c : key)
            if (!is_lower(c) && !is_digit(c) && c != '_' && c != '-')
                return wrong(address.text, "option name '%s' is not lower-case text", shown(key.substr(0, 40)).c_str());
        if (equals == std::string_view::npos)
            return wrong(address.text, "option '%s' has no value", shown(key.substr(0, 40)).c_str());
        if (++count > max_options) return wrong(address.text, "more than %zu options", max_options);
        auto value = decode(item.substr(equals + 1), address.text);
        if (!value) return value.error();
        if (!address.options.emplace(std::string(key), std::move(*value)).second)
            return wrong(address.text, "option '%s' is given twice", shown(key.substr(0, 40)).c_str());
    }
    return {};
}

Result<void> check_host(std::string_view host, bool bracketed, std::string_view address) {
    if (host.size() > max_host) return wrong(address, "host name longer than %zu bytes", max_host);
    if (bracketed && host.empty()) return wrong(address, "nothing between the brackets");
    if (bracketed && host.find(':') == std::string_view::npos)
        return wrong(address, "no IPv6 address between the brackets");
    for (char c : host) {
        const bool name = is_letter(c) || is_digit(c) || c == '.' || c == '-' || c == '_';
        if (!name && !(bracketed && (c == ':' || c == '%')))
            return wrong(address, "character '%s' in a host", shown(std::string_view(&c, 1)).c_str());
    }
    return {};
}

Result<void> parse_tcp(std::string_view rest, Address &address) {
    if (!rest.empty() && rest.back() == '/') rest.remove_suffix(1);
    auto both = parse_host_port(rest, address.text);
    if (!both) return both.error();
    if (both->port < 0) return wrong(address.text, "no port");
    address.host = std::move(both->host);
    address.port = both->port;
    address.path.clear();
    return {};
}

Result<void> parse_unix(Address &address) {
    const std::string &path = address.path;
    if (path.empty()) return wrong(address.text, "no path");
    if (path[0] != '/' && path[0] != '@')
        return wrong(address.text, "a path starts with '/', an abstract name with '@'");
    if (path.size() == 1) return wrong(address.text, "no name after '%c'", path[0]);
    if (path.size() > max_socket_path)
        return wrong(address.text, "path of %zu bytes, a socket can have %zu", path.size(), max_socket_path);
    return {};
}

Result<void> parse_name(Address &address, bool file_name) {
    if (address.path.empty()) return wrong(address.text, "no name");
    if (address.path.size() > max_name) return wrong(address.text, "name longer than %zu bytes", max_name);
    if (!file_name) return {};
    for (char c : address.path)
        if (!is_letter(c) && !is_digit(c) && c != '.' && c != '-' && c != '_')
            return wrong(address.text, "character '%s' in a name", shown(std::string_view(&c, 1)).c_str());
    if (address.path[0] == '.') return wrong(address.text, "a name does not start with '.'");
    return {};
}

} // namespace

std::string_view Address::option(const std::string &key, std::string_view otherwise) const {
    const auto found = options.find(key);
    return found == options.end() ? otherwise : std::string_view(found->second);
}

Result<HostPort> parse_host_port(std::string_view text, std::string_view address) {
    HostPort out;
    std::string_view port;
    bool has_port = false, bracketed = false;
    if (!text.empty() && text[0] == '[') {
        bracketed = true;
        const size_t end = text.find(']');
        if (end == std::string_view::npos) return wrong(address, "'[' without ']'");
        out.host = text.substr(1, end - 1);
        std::string_view after = text.substr(end + 1);
        if (!after.empty()) {
            if (after[0] != ':') return wrong(address, "text after ']'");
            has_port = true;
            port = after.substr(1);
        }
    } else {
        const size_t colon = text.find(':');
        if (colon != std::string_view::npos && text.find(':', colon + 1) != std::string_view::npos)
            return wrong(address, "an IPv6 address stands in brackets");
        out.host = text.substr(0, colon);
        has_port = colon != std::string_view::npos;
        if (has_port) port = text.substr(colon + 1);
    }
    if (auto ok = check_host(out.host, bracketed, address); !ok) return ok.error();
    if (!has_port) return out;
    if (port.empty()) return wrong(address, "no port after ':'");
    int number = 0;
    for (char c : port) {
        if (!is_digit(c)) return wrong(address, "port '%s' is not a number", shown(port.substr(0, 20)).c_str());
        if (number <= 65535) number = number * 10 + (c - '0');
    }
    if (number > 65535) return wrong(address, "port %s is above 65535", shown(port.substr(0, 20)).c_str());
    out.port = number;
    return out;
}

std::string format_host_port(const std::string &host, int port) {
    const bool v6 = host.find(':') != std::string::npos;
    return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<Address> parse_address(std::string_view text) {
    if (text.empty()) return Error::make(MUSTER_E_ADDRESS, "address is empty");
    if (text.size() > max_text)
        return Error::make(MUSTER_E_ADDRESS, "address of %zu bytes is longer than %zu", text.size(), max_text);
    for (char c : text)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return wrong(text, "a control character");
    const size_t colon = text.find("://");
    if (colon == std::string_view::npos) return wrong(text, "no scheme (as in tcp://)");
    if (colon == 0 || colon > max_scheme) return wrong(text, "a scheme has 1 to %zu letters", max_scheme);
    Address out;
    out.text = text;
    for (char c : text.substr(0, colon)) out.scheme += lowered(c);
    for (size_t i = 0; i < out.scheme.size(); i++) {
        const char c = out.scheme[i];
        if (!is_lower(c) && (i == 0 || (!is_digit(c) && c != '+' && c != '.' && c != '-')))
            return wrong(text, "character '%s' in the scheme", shown(out.scheme.substr(i, 1)).c_str());
    }
    std::string_view rest = text.substr(colon + 3);
    const size_t question = rest.find('?');
    if (question != std::string_view::npos) {
        if (auto ok = parse_options(rest.substr(question + 1), out); !ok) return ok.error();
        rest = rest.substr(0, question);
    }
    out.host = out.path = rest;
    Result<void> ok;
    if (out.scheme == "tcp") ok = parse_tcp(rest, out);
    if (out.scheme == "unix") ok = parse_unix(out);
    if (out.scheme == "shm") ok = parse_name(out, true);
    if (out.scheme == "inproc") ok = parse_name(out, false);
    if (!ok) return ok.error();
    return out;
}

Result<void> check_options(const Address &address, std::initializer_list<const char *> known) {
    for (const auto &[key, value] : address.options) {
        bool found = false;
        for (const char *name : known) found = found || key == name;
        if (!found) return wrong(address.text, "option '%s' is unknown here", shown(key.substr(0, 40)).c_str());
    }
    return {};
}

} // namespace muster
