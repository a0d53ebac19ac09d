// SPDX-License-Identifier: MIT
#include "base/fd.hpp"
#include "transport/handshake.hpp"

#include <sys/stat.h>

namespace muster {
namespace {

uint64_t namespace_id(const char *path) noexcept {
    struct stat s;
    return stat(path, &s) == 0 ? static_cast<uint64_t>(s.st_ino) : 0;
}

// "01234567-89ab-..." as 16 bytes; all zero if the kernel does not tell.
std::array<unsigned char, 16> boot_id() noexcept {
    std::array<unsigned char, 16> id{};
    char text[64] = {};
    const Fd file(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
    if (!file || read(file.get(), text, sizeof text - 1) < 36) return id;
    size_t digits = 0;
    for (const char *c = text; *c != '\0' && digits < 32; c++) {
        const int value = *c >= '0' && *c <= '9' ? *c - '0' : *c >= 'a' && *c <= 'f' ? *c - 'a' + 10 : -1;
        if (value < 0) continue;
        id[digits / 2] = static_cast<unsigned char>(id[digits / 2] * 16 + value);
        digits++;
    }
    return id;
}

} // namespace

HostIdentity HostIdentity::own() noexcept {
    HostIdentity host;
    host.boot = boot_id();
    host.pid_namespace = namespace_id("/proc/self/ns/pid");
    host.net_namespace = namespace_id("/proc/self/ns/net");
    host.user = geteuid();
    return host;
}

bool HostIdentity::same_kernel(const HostIdentity &other) const noexcept {
    return boot == other.boot && boot != std::array<unsigned char, 16>{};
}

bool HostIdentity::same_place(const HostIdentity &other) const noexcept {
    return same_kernel(other) && net_namespace == other.net_namespace && net_namespace != 0 && user == other.user;
}

} // namespace muster
