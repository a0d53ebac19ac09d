// SPDX-License-Identifier: MIT
#include "transport/local_address.hpp"

#include "base/fd.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace muster {

std::string address_towards(const std::string &host) {
    addrinfo wanted{}, *found = nullptr;
    wanted.ai_socktype = SOCK_DGRAM;
    if (getaddrinfo(host.c_str(), "9", &wanted, &found) != 0) return {};
    char name[NI_MAXHOST] = "";
    for (const addrinfo *one = found; one != nullptr && name[0] == '\0'; one = one->ai_next) {
        const Fd fd(socket(one->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        sockaddr_storage own{};
        socklen_t size = sizeof own;
        if (!fd || connect(fd.get(), one->ai_addr, one->ai_addrlen) != 0 ||
            getsockname(fd.get(), reinterpret_cast<sockaddr *>(&own), &size) != 0)
            continue;
        getnameinfo(reinterpret_cast<sockaddr *>(&own), size, name, sizeof name, nullptr, 0, NI_NUMERICHOST);
    }
    freeaddrinfo(found);
    return name;
}

} // namespace muster
