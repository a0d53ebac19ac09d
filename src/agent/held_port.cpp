// SPDX-License-Identifier: MIT
#include "agent/held_port.hpp"

#include <algorithm>
#include <cstdio>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>

namespace muster {

namespace {

constexpr unsigned lowest = 10000, highest = 65535;

// The ports that the system assigns to programs that request none.
void read_own_range(unsigned &first, unsigned &last) noexcept {
    FILE *const file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    if (file == nullptr) return;
    unsigned from = 0, to = 0;
    if (fscanf(file, "%u %u", &from, &to) == 2 && from <= to) first = from, last = to;
    fclose(file);
}

// On every address of both families; on IPv4 only if there is no other.
Fd bind_port(unsigned port) noexcept {
    Fd six(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int no = 0;
    sockaddr_in6 any6{};
    any6.sin6_family = AF_INET6;
    any6.sin6_port = htons(static_cast<uint16_t>(port));
    if (six && setsockopt(six.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no) == 0) {
        if (bind(six.get(), reinterpret_cast<const sockaddr *>(&any6), sizeof any6) == 0) return six;
        if (errno == EADDRINUSE || errno == EACCES) return {};
    }
    Fd four(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in any4{};
    any4.sin_family = AF_INET;
    any4.sin_port = htons(static_cast<uint16_t>(port));
    if (four && bind(four.get(), reinterpret_cast<const sockaddr *>(&any4), sizeof any4) == 0) return four;
    return {};
}

unsigned bound_port(int socket) noexcept {
    sockaddr_storage at{};
    socklen_t size = sizeof at;
    if (getsockname(socket, reinterpret_cast<sockaddr *>(&at), &size) != 0) return 0;
    return ntohs(at.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6 &>(at).sin6_port
                                          : reinterpret_cast<const sockaddr_in &>(at).sin_port);
}

} // namespace

Result<HeldPort> HeldPort::find() noexcept {
    unsigned first = 32768, last = 60999;
    read_own_range(first, last);
    HeldPort held;
    for (int attempt = 0; attempt < 128 && !held.socket_; attempt++) {
        unsigned random = 0;
        if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random) break;
        const unsigned port = lowest + random % (highest - lowest + 1);
        if (port < first || port > last) held.socket_ = bind_port(port);
    }
    if (!held.socket_) held.socket_ = bind_port(0); // no port outside the range of the system is free
    if (!held.socket_) return Error::from_errno(errno, MUSTER_OK, "find a free port for MASTER_PORT");
    held.number_ = static_cast<uint16_t>(bound_port(held.socket_.get()));
    return held;
}

} // namespace muster
