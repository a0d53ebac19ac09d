// SPDX-License-Identifier: MIT
#pragma once
// The system calls of a host's thread on its way through a stream or queue, which must be no cancellation points: what
// pthread_cancel() unwinds there are frames of this library, and bytes half moved. The C library's own are, and cost
// two locked instructions more each in a process with threads. Results and errno as theirs.
#include <ctime>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace muster::uncancelled {

inline ssize_t receive(int fd, void *data, size_t size, int flags) noexcept {
    return syscall(SYS_recvfrom, fd, data, size, flags, nullptr, nullptr);
}
inline ssize_t receive(int fd, msghdr &message, int flags) noexcept {
    return syscall(SYS_recvmsg, fd, &message, flags);
}
inline ssize_t send(int fd, const void *data, size_t size, int flags) noexcept {
    return syscall(SYS_sendto, fd, data, size, flags, nullptr, 0);
}
inline ssize_t send(int fd, const msghdr &message, int flags) noexcept {
    return syscall(SYS_sendmsg, fd, &message, flags);
}

inline ssize_t write(int fd, const void *data, size_t size) noexcept {
    return syscall(SYS_write, fd, data, size);
}
inline ssize_t read(int fd, void *data, size_t size) noexcept {
    return syscall(SYS_read, fd, data, size);
}

inline int wait_epoll(int epoll, epoll_event *events, int most, int timeout_ms) noexcept {
    return static_cast<int>(syscall(SYS_epoll_pwait, epoll, events, most, timeout_ms, nullptr, 0));
}
// As epoll_pwait2(), which older C libraries lack; ENOSYS before Linux 5.11.
inline int wait_epoll(int epoll, epoll_event *events, int most, const timespec &limit) noexcept {
    return static_cast<int>(syscall(SYS_epoll_pwait2, epoll, events, most, &limit, nullptr, 0));
}
// `left`: NULL waits without end. The kernel writes what is left of it back.
inline int wait_poll(pollfd *fds, nfds_t count, timespec *left) noexcept {
    static_assert(sizeof(timespec) == 16, "the times of these system calls");
    return static_cast<int>(syscall(SYS_ppoll, fds, count, left, nullptr, 0));
}

} // namespace muster::uncancelled
