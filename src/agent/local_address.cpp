// SPDX-License-Identifier: MIT
#include "agent/plan.hpp"

#include "transport/local_address.hpp"

#include <climits>
#include <unistd.h>

namespace muster {

namespace {

// The host in scheme://user@host:port/..., without brackets; empty: there is none.
std::string host_of(const std::string &url) {
    const size_t scheme = url.find("://");
    if (scheme == url.npos) return {};
    std::string host = url.substr(scheme + 3);
    host = host.substr(0, host.find_first_of("/?"));
    if (const size_t user = host.rfind('@'); user != host.npos) host = host.substr(user + 1);
    if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
    return host.substr(0, host.find(':'));
}

bool loops_back(const std::string &name) {
    return name == "localhost" || name == "::1" || name.starts_with("127.");
}

} // namespace

std::string find_local_address(const std::string &url) {
    const std::string host = host_of(url);
    if (host.empty()) return "127.0.0.1"; // all nodes are on this host
    const std::string address = address_towards(host);
    // A host that has its own name for a loopback address is known to the others by that name.
    if (!address.empty()) return loops_back(address) && !loops_back(host) ? host : address;
    char own[HOST_NAME_MAX + 1] = "";
    gethostname(own, sizeof own - 1);
    return own;
}

} // namespace muster
