// SPDX-License-Identifier: MIT
#pragma once
// A host's thread inside the library meets no cancellation point: what pthread_cancel() would unwind are frames of this
// library, and bytes half moved. On the ways of bytes and completions that is so by these system calls (the C library's
// own are points, and cost two locked instructions more each in a process with threads), elsewhere by Uncancelled.
// Results and errno as the C library's.
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

inline int wait_id(idtype_t type, id_t id, siginfo_t *out, int options) noexcept {
    return static_cast<int>(syscall(SYS_waitid, type, id, out, options, nullptr));
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

// Through the C library, since the thread sanitizer watches it: it knows descriptors by their numbers, and these come
// again. Never again after EINTR: Linux has closed it by then.
inline void close(int fd) noexcept {
    const Uncancelled guard;
    ::close(fd);
}

} // namespace uncancelled

} // namespace muster
