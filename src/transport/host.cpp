// SPDX-License-Identifier: MIT
#include "base/boundary.hpp"
#include "base/fd.hpp"
#include "transport/handshake.hpp"

#include <sys/stat.h>

namespace muster {
namespace {

// Properties that the kernel does not show to this user at all stay unknown; if it cannot show them now, the caller
// asks again later.
void check_refusal(const char *path) {
    if (errno != ENOENT && errno != EACCES && errno != EPERM)
        throw Failure(Error::from_errno(errno, MUSTER_OK, "start the transports: %s", path));
}

uint64_t namespace_id(const char *path) {
    struct stat s;
    if (stat(path, &s) == 0) return static_cast<uint64_t>(s.st_ino);
    check_refusal(path);
    return 0;
}

// "01234567-89ab-..." as 16 bytes; all zero if the kernel does not provide it.
std::array<unsigned char, 16> boot_id() {
    constexpr const char *path = "/proc/sys/kernel/random/boot_id";
    std::array<unsigned char, 16> id{};
    char text[64] = {};
    Fd file;
    do file = Fd(open(path, O_RDONLY | O_CLOEXEC));
    while (!file && errno == EINTR);
    ssize_t size = 0;
    if (file) {
        do size = read(file.get(), text, sizeof text - 1);
        while (size < 0 && errno == EINTR);
    }
    if (!file || size < 0) check_refusal(path);
    if (size < 36) return id;
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

HostIdentity HostIdentity::own() {
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
