// SPDX-License-Identifier: MIT
// What ranks tell each other at the beginning, and what follows from it: who is on this host, how others are reached.
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

constexpr uint64_t version = 0x4D75'4D70'6900'0001; // of the cards, the words on the bells and the messages

void random_bytes(void *to, size_t bytes) {
    auto *at = static_cast<unsigned char *>(to);
    while (bytes != 0) {
        const ssize_t got = getrandom(at, bytes, 0);
        if (got > 0) at += got, bytes -= static_cast<size_t>(got);
    }
}

bool tcp_wanted() {
    const char *value = getenv("MUSTER_MPI_BELL"); // for tests: tcp also between ranks of one host
    return value != nullptr && strcmp(value, "tcp") == 0;
}

// Addresses of this host, loopback ones last and only if there is nothing else or it is wanted.
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

// A socket that is bound and does not listen yet: who dials it is refused at once. 0 in out_port: there is none.
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
        any.sin6_family = AF_INET; // the port lies in the same place
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

void Node::make_card() {
    card_.version = version;
    card_.ours = ours_;
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
        card_.host[digit / 2] = static_cast<unsigned char>(card_.host[digit / 2] << 4 | (place - digits));
        digit++;
    }
    const uint64_t inode = space.st_ino;
    memcpy(card_.host + 16, &inode, sizeof inode);
    random_bytes(card_.token, sizeof card_.token);
    uint64_t name[2];
    random_bytes(name, sizeof name);
    snprintf(card_.name, sizeof card_.name, "muster-mpi-%016llx", static_cast<unsigned long long>(name[0] ^ name[1]));
    only_tcp_ = tcp_wanted();
}

bool Node::read_cards() {
    long here = 0;
    for (int rank = 0; rank < size_; rank++) {
        if (cards_[rank].version != version) {
            fail("mpi: rank " + std::to_string(rank) + " runs another version of muster-mpi.so");
            return false;
        }
        cards_[rank].name[sizeof card_.name - 1] = '\0';
        if (memcmp(cards_[rank].host, card_.host, sizeof card_.host) == 0)
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
    for (int door = 0; door < doors_max; door++) port_sockets_[door] = bound_socket(ports_.doors[door]);
    if (rank_ != 0 || !ours_ || (exit_socket_ = bound_socket(ports_.exit)) < 0) return;
    listen(exit_socket_, size_); // before anybody knows of it
    fcntl(exit_socket_, F_SETFL, 0);
}

int Node::port_socket(int door) {
    if (!many_hosts_) return -1;
    int fd = port_sockets_[door];
    port_sockets_[door] = -1;
    if (fd < 0 && ports_.doors[door] != 0) fd = bound_socket(ports_.doors[door]); // listened once before
    return fd;
}

bool Node::near(int rank) const {
    return !only_tcp_ && memcmp(cards_[rank].host, card_.host, sizeof card_.host) == 0;
}

namespace {
Where abstract_name(const char *prefix, const std::string &suffix) {
    Where where{};
    where.unix_name.sun_family = AF_UNIX;
    const int length =
        snprintf(where.unix_name.sun_path + 1, sizeof where.unix_name.sun_path - 1, "%s/%s", prefix, suffix.c_str());
    where.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length));
    return where;
}
} // namespace

Where Node::own_name(const std::string &suffix) const {
    return abstract_name(card_.name, suffix);
}

std::vector<Where> Node::reach(int rank, int door) const {
    if (near(rank)) return {abstract_name(cards_[rank].name, std::to_string(door))};
    return reach_port(rank, all_ports_[rank].doors[door]);
}

std::vector<Where> Node::reach_exit() const {
    if (near(0)) return {abstract_name(cards_[0].name, "exit")};
    return reach_port(0, all_ports_[0].exit);
}

std::vector<Where> Node::reach_port(int rank, uint16_t port) const {
    std::vector<Where> all;
    const Ports &ports = all_ports_[rank];
    for (size_t i = 0; i < std::min<size_t>(ports.count, std::size(ports.addresses)); i++) {
        Where where{};
        if (ports.addresses[i].family == AF_INET) {
            where.v4.sin_family = AF_INET;
            where.v4.sin_port = htons(port);
            memcpy(&where.v4.sin_addr, ports.addresses[i].bytes, 4);
            where.bytes = sizeof where.v4;
        } else {
            where.v6.sin6_family = AF_INET6;
            where.v6.sin6_port = htons(port);
            memcpy(&where.v6.sin6_addr, ports.addresses[i].bytes, 16);
            where.bytes = sizeof where.v6;
        }
        all.push_back(where);
    }
    return all;
}

} // namespace mpi
