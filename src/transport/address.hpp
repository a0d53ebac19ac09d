// SPDX-License-Identifier: MIT
#pragma once
// Address text: scheme://authority/path?key=value&key=value, percent-encoding in values. Everything bounded and fuzzed.
#include "base/result.hpp"

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

namespace muster {

// A value.
struct Address {
    std::string text;   // the whole text
    std::string scheme; // lower case, 1 to 31 of [a-z0-9+.-], starting with a letter
    std::string host;   // tcp: name, IPv4, or IPv6 without brackets; others: everything before '?' after "//"
    int port = -1;      // tcp: 0 to 65535; others: -1
    std::string path;   // unix: the path, or "@name"; shm, inproc: the name; plug-ins: the whole rest
    std::map<std::string, std::string> options;

    // The value of an option, or `otherwise`.
    std::string_view option(const std::string &key, std::string_view otherwise = {}) const;
};

// Parses text of at most 4096 bytes. Errors say where and what: "address tcp://x:99999: port 99999 is above 65535".
// Which options a scheme knows is checked by its transport with check_options().
Result<Address> parse_address(std::string_view text);
Result<void> check_options(const Address &address, std::initializer_list<const char *> known);

// host, host:port or [v6]:port, as in a tcp address and in bind= and advertise=. The port stays -1 if there is none.
struct HostPort {
    std::string host;
    int port = -1;
};
Result<HostPort> parse_host_port(std::string_view text, std::string_view address);
std::string format_host_port(const std::string &host, int port); // brackets around IPv6

} // namespace muster
