// SPDX-License-Identifier: MIT
#pragma once
// A thread of the host inside the library must not pass a cancellation point: pthread_cancel() would unwind frames of
// this library, and leave half-moved bytes. On the paths of bytes and completions these system calls ensure that (those
// of the C library are cancellation points, and cost two locked instructions more each in a process with threads),
// elsewhere Uncancelled does. Results and errno are as in the C library.
#include <ctime>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
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

constexpr long epoll_pwait2_number = 441; // on every architecture

inline int wait_id(idtype_t type, id_t id, siginfo_t *out, int options) noexcept {
    return static_cast<int>(syscall(SYS_waitid, type, id, out, options, nullptr));
}

inline int wait_epoll(int epoll, epoll_event *events, int most, int timeout_ms) noexcept {
    return static_cast<int>(syscall(SYS_epoll_pwait, epoll, events, most, timeout_ms, nullptr, 0));
}
// As epoll_pwait2(), which older C libraries and headers lack; ENOSYS before Linux 5.11.
inline int wait_epoll(int epoll, epoll_event *events, int most, const timespec &limit) noexcept {
    return static_cast<int>(syscall(epoll_pwait2_number, epoll, events, most, &limit, nullptr, 0));
}
// `left`: NULL waits without limit. The kernel writes the remaining time to it.
inline int wait_poll(pollfd *fds, nfds_t count, timespec *left) noexcept {
    static_assert(sizeof(timespec) == 16, "the times of these system calls");
    return static_cast<int>(syscall(SYS_ppoll, fds, count, left, nullptr, 0));
}

} // namespace muster::uncancelled

namespace muster {

// A cancellation of this thread waits until the end of the block.
class Uncancelled {
  public:
    Uncancelled() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
    Uncancelled(const Uncancelled &) = delete;
    Uncancelled &operator=(const Uncancelled &) = delete;
    ~Uncancelled() { pthread_setcancelstate(before_, nullptr); } // no point itself when the type is deferred

  private:
    int before_ = PTHREAD_CANCEL_ENABLE;
};

namespace uncancelled {

// Through the C library, since the thread sanitizer observes it: it tracks descriptors by their numbers, which are
// reused. No retry after EINTR: Linux has closed the descriptor by then.
inline void close(int fd) noexcept {
    const Uncancelled guard;
    ::close(fd);
}

} // namespace uncancelled

} // namespace muster
