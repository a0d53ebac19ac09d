// SPDX-License-Identifier: MIT
#include "transport/sockets.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cstddef>
#include <cstring>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/un.h>

namespace muster {

namespace {
constexpr size_t max_addresses = 16;

const sockaddr_in &v4(const SocketAddress &a) noexcept {
    return reinterpret_cast<const sockaddr_in &>(a.storage);
}
const sockaddr_in6 &v6(const SocketAddress &a) noexcept {
    return reinterpret_cast<const sockaddr_in6 &>(a.storage);
}

bool is_loopback(const SocketAddress &a) noexcept {
    if (a.family() == AF_INET) return ntohl(v4(a).sin_addr.s_addr) >> 24 == 127;
    if (a.family() != AF_INET6) return false;
    const in6_addr &ip = v6(a).sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(&ip) || (IN6_IS_ADDR_V4MAPPED(&ip) && ip.s6_addr[12] == 127);
}

bool same_ip(const SocketAddress &a, const SocketAddress &b) noexcept {
    if (a.family() != b.family()) return false;
    if (a.family() == AF_INET) return v4(a).sin_addr.s_addr == v4(b).sin_addr.s_addr;
    return a.family() == AF_INET6 && memcmp(&v6(a).sin6_addr, &v6(b).sin6_addr, sizeof(in6_addr)) == 0;
}
} // namespace

SocketAddress unix_socket_address(std::string_view path) noexcept {
    SocketAddress out;
    auto &un = reinterpret_cast<sockaddr_un &>(out.storage);
    un.sun_family = AF_UNIX;
    const size_t size = std::min(path.size(), sizeof un.sun_path - 1);
    memcpy(un.sun_path, path.data(), size);
    out.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + size);
    if (path[0] == '@')
        un.sun_path[0] = '\0'; // an abstract name ends with the length of the address
    else
        out.size++;
    return out;
}

bool numeric_address(const std::string &host, int port, SocketAddress &out) {
    out = {};
    auto &in = reinterpret_cast<sockaddr_in &>(out.storage);
    if (inet_pton(AF_INET, host.c_str(), &in.sin_addr) == 1) {
        in.sin_family = AF_INET;
        in.sin_port = htons(static_cast<uint16_t>(port));
        out.size = sizeof in;
        return true;
    }
    auto &in6 = reinterpret_cast<sockaddr_in6 &>(out.storage);
    out = {};
    const size_t percent = host.find('%'); // the scope of a link-local address
    if (inet_pton(AF_INET6, host.substr(0, percent).c_str(), &in6.sin6_addr) != 1) return false;
    in6.sin6_family = AF_INET6;
    in6.sin6_port = htons(static_cast<uint16_t>(port));
    if (percent != std::string::npos) {
        const std::string scope = host.substr(percent + 1);
        in6.sin6_scope_id = if_nametoindex(scope.c_str());
        if (in6.sin6_scope_id == 0) in6.sin6_scope_id = static_cast<uint32_t>(strtoul(scope.c_str(), nullptr, 10));
    }
    out.size = sizeof in6;
    return true;
}

Result<std::vector<SocketAddress>> look_up(const std::string &host, int port, bool to_listen) {
    std::vector<SocketAddress> out(1);
    if (numeric_address(host, port, out[0])) return out;
    out.clear();
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_ADDRCONFIG | (to_listen ? AI_PASSIVE : 0);
    int rc = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
    if (rc == EAI_NONAME || rc == EAI_ADDRFAMILY) { // a host whose only interface is loopback has no other address
        hints.ai_flags &= ~AI_ADDRCONFIG;
        rc = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
    }
    if (rc != 0) {
        const Status status = to_listen ? MUSTER_E_NOT_FOUND : MUSTER_E_UNREACHABLE;
        if (rc == EAI_SYSTEM) return Error::from_errno(errno, MUSTER_E_SYSTEM, "look up %s", host.c_str());
        return Error::make(rc == EAI_MEMORY ? MUSTER_E_NOMEM : status, "name %s: %s", host.c_str(), gai_strerror(rc));
    }
    for (const addrinfo *a = found; a != nullptr && out.size() < max_addresses; a = a->ai_next) {
        if (a->ai_addrlen > sizeof(sockaddr_storage)) continue;
        SocketAddress &one = out.emplace_back();
        memcpy(&one.storage, a->ai_addr, a->ai_addrlen);
        one.size = a->ai_addrlen;
    }
    freeaddrinfo(found);
    if (out.empty()) return Error::make(MUSTER_E_UNREACHABLE, "name %s has no address", host.c_str());
    return out;
}

std::string host_of(const SocketAddress &address) {
    char text[INET6_ADDRSTRLEN + 1] = "";
    if (address.family() == AF_INET) inet_ntop(AF_INET, &v4(address).sin_addr, text, sizeof text);
    if (address.family() == AF_INET6) inet_ntop(AF_INET6, &v6(address).sin6_addr, text, sizeof text);
    std::string host = text;
    if (address.family() == AF_INET6 && v6(address).sin6_scope_id != 0)
        host += '%' + std::to_string(v6(address).sin6_scope_id);
    return host;
}

int port_of(const SocketAddress &address) noexcept {
    if (address.family() == AF_INET) return ntohs(v4(address).sin_port);
    if (address.family() == AF_INET6) return ntohs(v6(address).sin6_port);
    return -1;
}

std::string address_text(const SocketAddress &address) {
    return "tcp://" + format_host_port(host_of(address), port_of(address));
}

Result<Fd> open_socket(int family) noexcept {
    Fd fd(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd) return Error::from_errno(errno, MUSTER_OK, "socket");
    const int one = 1;
    if (family == AF_UNIX)
        take_descriptors(fd.get(), false);
    else
        setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

void take_descriptors(int fd, bool wanted) noexcept {
    constexpr int so_passrights = 83; // SO_PASSRIGHTS
    const int value = wanted;
    setsockopt(fd, SOL_SOCKET, so_passrights, &value, sizeof value);
}

SocketAddress local_address(int fd) noexcept {
    SocketAddress out;
    out.size = sizeof out.storage;
    if (getsockname(fd, out.get(), &out.size) != 0) out = {};
    return out;
}

SocketAddress peer_address(int fd) noexcept {
    SocketAddress out;
    out.size = sizeof out.storage;
    if (getpeername(fd, out.get(), &out.size) != 0) out = {};
    return out;
}

bool stays_on_host(int fd) noexcept {
    const SocketAddress here = local_address(fd), there = peer_address(fd);
    if (here.family() == AF_UNIX) return true;
    return (is_loopback(here) && is_loopback(there)) || same_ip(here, there);
}

uint32_t peer_user(int fd, int32_t &process) noexcept {
    ucred who{};
    socklen_t size = sizeof who;
    process = 0;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return UINT32_MAX;
    process = who.pid;
    return who.uid;
}

} // namespace muster
