// SPDX-License-Identifier: MIT
// tcp://host:port over IPv4 and IPv6.
#include "transport/builtin.hpp"
#include "transport/resolver.hpp"
#include "transport/socket_dial.hpp"
#include "transport/socket_listener.hpp"

#include <climits>
#include <cstring>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

namespace muster {
namespace {

bool is_wildcard(const std::string &host) noexcept {
    return host == "0.0.0.0" || host == "::";
}

// How other hosts reach this one at a wildcard address of that family: by its name, if that is known as an address,
// else at the first address of its own.
std::string own_name(int family) {
    char name[HOST_NAME_MAX + 1] = "";
    gethostname(name, sizeof name - 1);
    if (auto known = look_up(name, 0, false))
        for (const SocketAddress &one : *known)
            if (family == AF_INET6 || one.family() == AF_INET) return name;
    ifaddrs *all = nullptr;
    std::string found;
    if (getifaddrs(&all) != 0) all = nullptr;
    for (const ifaddrs *one = all; one != nullptr && found.empty(); one = one->ifa_next) {
        if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0 || (one->ifa_flags & IFF_LOOPBACK) != 0)
            continue;
        SocketAddress address;
        address.size = one->ifa_addr->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
        if (one->ifa_addr->sa_family != AF_INET && one->ifa_addr->sa_family != AF_INET6) continue;
        if (family == AF_INET && one->ifa_addr->sa_family != AF_INET) continue;
        memcpy(&address.storage, one->ifa_addr, address.size);
        if (one->ifa_addr->sa_family == AF_INET6 &&
            IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6 *>(one->ifa_addr)->sin6_addr))
            continue;
        found = host_of(address);
    }
    if (all != nullptr) freeifaddrs(all);
    if (found.empty()) found = family == AF_INET ? "127.0.0.1" : "::1";
    return found;
}

// The address that peers dial: advertise= if given, otherwise the host as written (or that of the socket), with the
// actual port.
Result<std::string> told_address(const Address &address, const std::string &bound_as, int fd) {
    const SocketAddress real = local_address(fd);
    if (real.size == 0) return Error::from_errno(errno, MUSTER_OK, "listen at %s: its port", address.text.c_str());
    HostPort told{address.host, port_of(real)};
    if (told.host.empty() || is_wildcard(told.host)) told.host = bound_as;
    if (address.options.count("advertise") != 0) {
        auto advertised = parse_host_port(address.option("advertise"), address.text);
        if (!advertised) return advertised.error();
        told.host = advertised->host;
        if (advertised->port >= 0) told.port = advertised->port;
    }
    if (told.host.empty() || is_wildcard(told.host)) told.host = own_name(real.family());
    return "tcp://" + format_host_port(told.host, told.port);
}

class TcpTransport final : public Transport {
  public:
    void dial(const Address &address, const TransportOptions &options, Ref<Dial> dial) override {
        Hub &hub = Hub::of(dial->context());
        Result<HandshakeConfig> config = Error();
        if (auto ok = check_options(address, {"upgrade", "seal", "auth"}); !ok)
            config = ok.error();
        else
            config = handshake_config_for(hub, address, options, true);
        if (config && address.port == 0)
            config = Error::make(MUSTER_E_ADDRESS, "address %s: port 0 cannot be dialled", address.text.c_str());
        if (config && address.host.empty())
            config = Error::make(MUSTER_E_ADDRESS, "address %s: no host", address.text.c_str());
        if (!config) return dial->done(config.error());
        auto socket_dial = make_ref<SocketDial>(hub, address, std::move(*config), options.taker, dial);
        if (!socket_dial->wanted()) return;
        Resolver::of(dial->context())
            .look_up(address.host, address.port, [socket_dial](Result<std::vector<SocketAddress>> found) {
                if (found)
                    socket_dial->start(std::move(*found));
                else
                    socket_dial->fail(found.error());
            });
    }

    Result<Ref<TransportListener>> listen(const Address &address, const TransportOptions &options,
                                          Ref<ListenerCore> core) override {
        if (auto ok = check_options(address, {"bind", "advertise", "upgrade", "seal", "auth"}); !ok) return ok.error();
        Hub &hub = Hub::of(core->context());
        auto config = handshake_config_for(hub, address, options, false);
        if (!config) return config.error();
        HostPort where{address.host, address.port};
        if (address.options.count("bind") != 0) {
            auto bind = parse_host_port(address.option("bind"), address.text);
            if (!bind) return bind.error();
            where.host = bind->host;
            if (bind->port >= 0) where.port = bind->port;
        }
        if (where.host.empty()) where.host = "127.0.0.1"; // other hosts only if requested
        auto addresses = look_up(where.host, where.port, true);
        if (!addresses) {
            Error why = Error::make(addresses.error().status, "listen at %s: %s", address.text.c_str(),
                                    addresses.error().message);
            why.os_errno = addresses.error().os_errno;
            return why;
        }
        Error why;
        for (const SocketAddress &one : *addresses) {
            auto fd = open_listening(one);
            if (!fd) {
                why = Error::from_errno(fd.error().os_errno, MUSTER_OK, "listen at %s", address.text.c_str());
                if (why.os_errno == EADDRINUSE) why.status = MUSTER_E_EXISTS;
                if (why.os_errno == EADDRNOTAVAIL) why.status = MUSTER_E_NOT_FOUND;
                continue;
            }
            auto told = told_address(address, where.host, fd->get());
            if (!told) return told.error();
            auto listener = make_ref<SocketListener>(hub, std::move(*fd), std::move(*told), std::move(core),
                                                     options.taker, std::move(*config), SocketFile{});
            if (auto started = listener->start(); !started) return started.error();
            return Ref<TransportListener>(std::move(listener));
        }
        return why;
    }

  private:
    static Result<Fd> open_listening(const SocketAddress &address) {
        auto fd = open_socket(address.family());
        if (!fd) return fd;
        const int one = 1;
        setsockopt(fd->get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (bind(fd->get(), address.get(), address.size) != 0 || ::listen(fd->get(), SOMAXCONN) != 0)
            return Error::from_errno(errno, MUSTER_OK, "bind");
        return fd;
    }
};

} // namespace

Ref<Transport> make_tcp_transport() {
    return make_ref<TcpTransport>();
}

} // namespace muster
