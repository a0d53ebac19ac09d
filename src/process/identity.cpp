// SPDX-License-Identifier: MIT
#include "process/identity.hpp"

#include "base/fd.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/stat.h>

namespace muster {

namespace {

struct ThreadStat {
    int os_errno = 0; // 0: the rest is valid
    char state = 0;
    long threads = 0;
    unsigned long long start_time = 0;
};

ThreadStat read_thread_stat(pid_t process, pid_t thread) noexcept {
    ThreadStat found;
    char path[64], text[1024];
    std::snprintf(path, sizeof path, "/proc/%d/task/%d/stat", static_cast<int>(process), static_cast<int>(thread));
    const Fd file(::open(path, O_RDONLY | O_CLOEXEC));
    ssize_t n = -1;
    if (file) n = ::read(file.get(), text, sizeof text - 1);
    if (n <= 0) {
        found.os_errno = n == 0 ? ESRCH : errno;
        return found;
    }
    text[n] = '\0';
    // Fields 3 (state), 20 (threads) and 22 (start time), after the name, which may contain anything but ends with the
    // last parenthesis.
    const char *rest = std::strrchr(text, ')');
    if (rest == nullptr || std::sscanf(rest + 1,
                                       " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d "
                                       "%llu",
                                       &found.state, &found.threads, &found.start_time) != 3)
        found.os_errno = EIO;
    return found;
}

bool is_dead(const ThreadStat &stat) noexcept {
    return (stat.state == 'Z' || stat.state == 'X') && stat.threads <= 1;
}

} // namespace

uint64_t thread_start_time(pid_t process, pid_t thread) noexcept {
    const ThreadStat stat = read_thread_stat(process, thread);
    return stat.os_errno != 0 || is_dead(stat) ? 0 : stat.start_time;
}

bool may_be_alive(pid_t process, pid_t thread, uint64_t start_time) noexcept {
    const ThreadStat stat = read_thread_stat(process, thread);
    if (stat.os_errno == 0) return !is_dead(stat) && (start_time == 0 || stat.start_time == start_time);
    if (stat.os_errno == ESRCH) return false;
    if (stat.os_errno != ENOENT) return true;
    // Without a mounted /proc nothing is found at all.
    if (::kill(process, 0) == -1 && errno == ESRCH) return false;
    return ::access("/proc/self/stat", F_OK) != 0 || ::access("/proc/self/task", F_OK) != 0;
}

uint64_t process_id_namespace() noexcept {
    struct stat about;
    return ::stat("/proc/self/ns/pid", &about) == 0 ? about.st_ino : 0;
}

} // namespace muster
