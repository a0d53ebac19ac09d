// SPDX-License-Identifier: MIT
#pragma once
// Socket addresses and the few system calls around them.
#include "base/fd.hpp"
#include "transport/address.hpp"

#include <string>
#include <string_view>
#include <sys/socket.h>
#include <vector>

namespace muster {

// A value.
struct SocketAddress {
    sockaddr_storage storage{};
    socklen_t size = 0;
    const sockaddr *get() const noexcept { return reinterpret_cast<const sockaddr *>(&storage); }
    sockaddr *get() noexcept { return reinterpret_cast<sockaddr *>(&storage); }
    int family() const noexcept { return storage.ss_family; }
};

// A path, or "@name" for an abstract one; checked by parse_address().
SocketAddress unix_socket_address(std::string_view path) noexcept;
// IPv4 or IPv6 text. False: it is a name, which has to be resolved.
bool numeric_address(const std::string &host, int port, SocketAddress &out);
// Resolves a name; may take a long time. A few addresses at most, in the order in which they are to be tried.
Result<std::vector<SocketAddress>> look_up(const std::string &host, int port, bool to_listen);
std::string host_of(const SocketAddress &address); // without the port
int port_of(const SocketAddress &address) noexcept;
std::string address_text(const SocketAddress &address); // "tcp://[::1]:4100"

// Stream, non-blocking, close-on-exec; without Nagle's delay where it has one, and taking no descriptors.
Result<Fd> open_socket(int family) noexcept;
// May the other end of a Unix socket (for a listening one: of those that it accepts) send descriptors? A descriptor
// that was never received is closed by the thread that reads the last byte before it, which may then linger
// (SO_LINGER). Without effect before Linux 6.16.
void take_descriptors(int fd, bool wanted) noexcept;
SocketAddress local_address(int fd) noexcept;
SocketAddress peer_address(int fd) noexcept;
// Do the bytes of this connection stay on the host, as far as the socket shows?
bool stays_on_host(int fd) noexcept;
// The user of the process at the other end of a Unix socket; UINT32_MAX if unknown.
uint32_t peer_user(int fd, int32_t &process) noexcept;

} // namespace muster
