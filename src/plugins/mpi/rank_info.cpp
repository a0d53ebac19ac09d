// SPDX-License-Identifier: MIT
// The information that ranks exchange at the beginning: which ranks are on this host, and the addresses of the others.
#include "error.hpp"
#include "node.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mpi {

namespace {

constexpr uint64_t version = 0x4D75'4D70'6900'0001; // of RankInfo, control messages and messages

bool tcp_wanted() {
    const char *value = getenv("MUSTER_MPI_BELL"); // for tests: tcp also between ranks of one host
    return value != nullptr && strcmp(value, "tcp") == 0;
}

// Addresses of this host; loopback addresses only if there are no others, or for tests.
void own_addresses(Ports &ports, bool loopback) {
    ifaddrs *list = nullptr;
    if (getifaddrs(&list) != 0) return;
    for (const ifaddrs *one = list; one != nullptr && ports.count < std::size(ports.addresses); one = one->ifa_next) {
        if (one->ifa_addr == nullptr || !(one->ifa_flags & IFF_UP)) continue;
        if (((one->ifa_flags & IFF_LOOPBACK) != 0) != loopback) continue;
        auto &to = ports.addresses[ports.count];
        if (one->ifa_addr->sa_family == AF_INET) {
            memcpy(to.bytes, &reinterpret_cast<const sockaddr_in *>(one->ifa_addr)->sin_addr, 4);
        } else if (one->ifa_addr->sa_family == AF_INET6) {
            const in6_addr &address = reinterpret_cast<const sockaddr_in6 *>(one->ifa_addr)->sin6_addr;
            if (IN6_IS_ADDR_LINKLOCAL(&address)) continue;
            memcpy(to.bytes, &address, 16);
        } else {
            continue;
        }
        to.family = one->ifa_addr->sa_family;
        ports.count++;
    }
    freeifaddrs(list);
}

// A socket that is bound and does not listen yet, so that a dial is refused at once. Port 0: any.
int bound_socket(uint16_t &out_port) {
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1, off = 0;
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_port = htons(out_port);
    auto *name = reinterpret_cast<sockaddr *>(&any);
    socklen_t bytes = sizeof any;
    if (fd >= 0) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    } else { // a kernel without IPv6
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        any.sin6_family = AF_INET; // the port is at the same offset
        bytes = sizeof(sockaddr_in);
    }
    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, name, bytes) != 0 || getsockname(fd, name, &bytes) != 0) {
        close(fd);
        return -1;
    }
    out_port = ntohs(any.sin6_port);
    return fd;
}

} // namespace

void random_bytes(void *to, size_t bytes) {
    auto *at = static_cast<unsigned char *>(to);
    while (bytes != 0) {
        const ssize_t got = getrandom(at, bytes, 0);
        if (got > 0) at += got, bytes -= static_cast<size_t>(got);
    }
}

void Node::make_info() {
    own_info_.version = version;
    own_info_.ours = ours_;
    // The boot and the network namespace: where they are the same, abstract Unix sockets reach.
    char boot[40] = "";
    if (const int fd = ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC); fd >= 0) {
        if (::read(fd, boot, 36) != 36) boot[0] = '\0';
        ::close(fd);
    }
    struct stat space {};
    if (stat("/proc/self/ns/net", &space) != 0) space.st_ino = 0;
    static constexpr char digits[] = "0123456789abcdef";
    for (size_t i = 0, digit = 0; i < 36 && digit < 32; i++) {
        const char *place = boot[i] != '\0' ? strchr(digits, boot[i]) : nullptr;
        if (place == nullptr) continue;
        own_info_.host[digit / 2] = static_cast<unsigned char>(own_info_.host[digit / 2] << 4 | (place - digits));
        digit++;
    }
    const uint64_t inode = space.st_ino;
    memcpy(own_info_.host + 16, &inode, sizeof inode);
    random_bytes(own_info_.token, sizeof own_info_.token);
    uint64_t name[2];
    random_bytes(name, sizeof name);
    snprintf(own_info_.name, sizeof own_info_.name, "muster-mpi-%016llx",
             static_cast<unsigned long long>(name[0] ^ name[1]));
    only_tcp_ = tcp_wanted();
}

bool Node::check_infos() {
    long here = 0;
    for (int rank = 0; rank < size_; rank++) {
        if (rank_infos_[rank].version != version) {
            fail("mpi: rank " + std::to_string(rank) + " runs another version of muster-mpi.so");
            return false;
        }
        rank_infos_[rank].name[sizeof own_info_.name - 1] = '\0';
        if (memcmp(rank_infos_[rank].host, own_info_.host, sizeof own_info_.host) == 0)
            here++;
        else
            many_hosts_ = true;
    }
    if (only_tcp_) many_hosts_ = true;
    crowded_ = here > sysconf(_SC_NPROCESSORS_ONLN);
    return true;
}

void Node::make_ports() {
    own_addresses(ports_, false);
    if (only_tcp_ || ports_.count == 0) own_addresses(ports_, true);
    for (int listener = 0; listener < max_listeners; listener++)
        port_sockets_[listener] = bound_socket(ports_.listeners[listener]);
    if (rank_ != 0 || !ours_ || (exit_socket_ = bound_socket(ports_.exit)) < 0) return;
    listen(exit_socket_, size_); // before its port is known
    fcntl(exit_socket_, F_SETFL, 0);
}

int Node::port_socket(int listener) {
    if (!many_hosts_) return -1;
    int fd = port_sockets_[listener];
    port_sockets_[listener] = -1;
    if (fd < 0 && ports_.listeners[listener] != 0)
        fd = bound_socket(ports_.listeners[listener]); // listened once before
    return fd;
}

bool Node::is_local(int rank) const {
    return !only_tcp_ && memcmp(rank_infos_[rank].host, own_info_.host, sizeof own_info_.host) == 0;
}

namespace {
SocketName abstract_name(const char *prefix, const std::string &suffix) {
    SocketName name{};
    name.unix_name.sun_family = AF_UNIX;
    const int length =
        snprintf(name.unix_name.sun_path + 1, sizeof name.unix_name.sun_path - 1, "%s/%s", prefix, suffix.c_str());
    name.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length));
    return name;
}
} // namespace

SocketName Node::own_name(const std::string &suffix) const {
    return abstract_name(own_info_.name, suffix);
}

std::vector<SocketName> Node::listener_names(int rank, int listener) const {
    if (is_local(rank)) return {abstract_name(rank_infos_[rank].name, std::to_string(listener))};
    return port_names(rank, all_ports_[rank].listeners[listener]);
}

std::vector<SocketName> Node::exit_names() const {
    if (is_local(0)) return {abstract_name(rank_infos_[0].name, "exit")};
    return port_names(0, all_ports_[0].exit);
}

std::vector<SocketName> Node::port_names(int rank, uint16_t port) const {
    std::vector<SocketName> all;
    const Ports &ports = all_ports_[rank];
    for (size_t i = 0; i < std::min<size_t>(ports.count, std::size(ports.addresses)); i++) {
        SocketName name{};
        if (ports.addresses[i].family == AF_INET) {
            name.v4.sin_family = AF_INET;
            name.v4.sin_port = htons(port);
            memcpy(&name.v4.sin_addr, ports.addresses[i].bytes, 4);
            name.bytes = sizeof name.v4;
        } else {
            name.v6.sin6_family = AF_INET6;
            name.v6.sin6_port = htons(port);
            memcpy(&name.v6.sin6_addr, ports.addresses[i].bytes, 16);
            name.bytes = sizeof name.v6;
        }
        all.push_back(name);
    }
    return all;
}

} // namespace mpi
