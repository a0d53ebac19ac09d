// SPDX-License-Identifier: MIT
// The C library's functions, replaced: this program comes before the C library where the dynamic linker looks names up,
// so the library's calls arrive here. Each asks the injector and then makes the real call.
#include "interpose.hpp"

#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <new>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

namespace faults {

// X(name, what it fails with in one run each)
#define FAULT_KINDS(X)                                                                                                 \
    X(memory, ENOMEM)                                                                                                  \
    X(mmap, ENOMEM)                                                                                                    \
    X(memfd_create, EMFILE)                                                                                            \
    X(ftruncate, ENOSPC)                                                                                               \
    X(fallocate, ENOSPC)                                                                                               \
    X(madvise, EINVAL)                                                                                                 \
    X(socket, EMFILE)                                                                                                  \
    X(socketpair, EMFILE)                                                                                              \
    X(connect, ENETUNREACH, EINTR)                                                                                     \
    X(accept, EMFILE, ECONNABORTED, EINTR)                                                                             \
    X(bind, EADDRINUSE)                                                                                                \
    X(listen, EADDRINUSE)                                                                                              \
    X(getsockname, ENOBUFS)                                                                                            \
    X(getpeername, ENOBUFS)                                                                                            \
    X(setsockopt, ENOBUFS)                                                                                             \
    X(getsockopt, ENOBUFS)                                                                                             \
    X(shutdown, ENOTCONN)                                                                                              \
    X(send, ECONNRESET, ENOBUFS, EINTR)                                                                                \
    X(receive, ECONNRESET, EINTR)                                                                                      \
    X(read, EIO, EINTR)                                                                                                \
    X(write, ENOSPC, EINTR)                                                                                            \
    X(eventfd, EMFILE)                                                                                                 \
    X(epoll_create, EMFILE)                                                                                            \
    X(epoll_ctl, ENOSPC)                                                                                               \
    X(epoll_wait, EINTR)                                                                                               \
    X(poll, EINTR)                                                                                                     \
    X(timerfd_create, EMFILE)                                                                                          \
    X(pipe, EMFILE)                                                                                                    \
    X(duplicate, EMFILE)                                                                                               \
    X(fcntl, ENOLCK)                                                                                                   \
    X(flock, ENOLCK, EINTR)                                                                                            \
    X(open, EMFILE, EINTR)                                                                                             \
    X(stat, ENOMEM)                                                                                                    \
    X(mkdir, EACCES)                                                                                                   \
    X(chmod, EPERM)                                                                                                    \
    X(unlink, EPERM)                                                                                                   \
    X(rename, ENOSPC)                                                                                                  \
    X(fsync, EIO)                                                                                                      \
    X(pthread_create, EAGAIN)                                                                                          \
    X(pthread_attr_init, ENOMEM)                                                                                       \
    X(posix_spawn, EAGAIN)                                                                                             \
    X(spawn_action, ENOMEM)                                                                                            \
    X(pidfd_open, EMFILE)                                                                                              \
    X(waitid, ECHILD)                                                                                                  \
    X(kill, EPERM)                                                                                                     \
    X(getaddrinfo, ENOMEM)                                                                                             \
    X(getifaddrs, ENOMEM)

enum {
#define X(name, ...) kind_##name,
    FAULT_KINDS(X)
#undef X
};
const Kind kinds[] = {
#define X(name, ...) {#name, {__VA_ARGS__}},
    FAULT_KINDS(X)
#undef X
};
const uint32_t kind_count = sizeof kinds / sizeof *kinds;

namespace {

// A connection that is reported to be broken is broken, for its peer, too.
void break_connection(int fd, int os_errno) noexcept {
    if (os_errno == ECONNRESET) syscall(SYS_shutdown, fd, SHUT_RDWR);
}

// Events, timers and the like have no way to fail but by their arguments.
bool is_plain(int fd) noexcept {
    struct stat what;
    return syscall(SYS_fstat, fd, &what) == 0 && (what.st_mode & S_IFMT) != 0;
}

} // namespace

} // namespace faults

using namespace faults;

#define CALLER __builtin_extract_return_addr(__builtin_return_address(0))
#define REAL(name)                                                                                                     \
    static const auto real = reinterpret_cast<decltype(&::name)>(dlsym(RTLD_NEXT, #name));                             \
    (void)real

// Returns `failure` with errno set when this call is to fail.
#define FAIL_AS(kind, failure)                                                                                         \
    if (const int fault = decide(kind_##kind, CALLER)) {                                                               \
        errno = fault;                                                                                                 \
        return failure;                                                                                                \
    }

// Memory.
#ifdef FAULTS_ADDRESS_SANITIZER
extern "C" {
void *__interceptor_malloc(size_t size);
void *__interceptor_calloc(size_t count, size_t size);
void *__interceptor_realloc(void *memory, size_t size);
void *__interceptor_aligned_alloc(size_t alignment, size_t size);
}
#define real_malloc __interceptor_malloc
#define real_calloc __interceptor_calloc
#define real_realloc __interceptor_realloc
#define real_aligned __interceptor_aligned_alloc
#else
extern "C" {
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *memory);
}
#define real_malloc __libc_malloc
#define real_calloc __libc_calloc
#define real_realloc __libc_realloc
#define real_aligned __libc_memalign

extern "C" void free(void *memory) noexcept {
    freed(memory);
    __libc_free(memory);
}
#endif

// Plug-ins use the operator new of the shared C++ library, and so does the library where a sanitizer has one of its
// own.
#define NEW(name, parameters, arguments, caller_failure)                                                               \
    extern "C" void *name parameters;                                                                                  \
    extern "C" void *name parameters {                                                                                 \
        static const auto real = reinterpret_cast<void *(*)parameters>(dlsym(RTLD_NEXT, #name));                       \
        if (decide(kind_memory, CALLER)) caller_failure;                                                               \
        void *const memory = real arguments;                                                                           \
        allocated(memory, size, CALLER);                                                                               \
        return memory;                                                                                                 \
    }
NEW(_Znwm, (size_t size), (size), throw std::bad_alloc())
NEW(_Znam, (size_t size), (size), throw std::bad_alloc())
NEW(_ZnwmRKSt9nothrow_t, (size_t size, const void *tag), (size, tag), return nullptr)
NEW(_ZnamRKSt9nothrow_t, (size_t size, const void *tag), (size, tag), return nullptr)
NEW(_ZnwmSt11align_val_t, (size_t size, size_t alignment), (size, alignment), throw std::bad_alloc())
NEW(_ZnamSt11align_val_t, (size_t size, size_t alignment), (size, alignment), throw std::bad_alloc())
NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t size, size_t alignment, const void *tag), (size, alignment, tag),
    return nullptr)

extern "C" {

void *malloc(size_t size) noexcept {
    FAIL_AS(memory, nullptr)
    void *const memory = real_malloc(size);
    allocated(memory, size, CALLER);
    return memory;
}

void *calloc(size_t count, size_t size) noexcept {
    FAIL_AS(memory, nullptr)
    void *const memory = real_calloc(count, size);
    allocated(memory, count * size, CALLER);
    return memory;
}

void *realloc(void *before, size_t size) noexcept {
    FAIL_AS(memory, nullptr)
    freed(before);
    void *const memory = real_realloc(before, size);
    allocated(memory, size, CALLER);
    return memory;
}

void *aligned_alloc(size_t alignment, size_t size) noexcept {
    FAIL_AS(memory, nullptr)
    void *const memory = real_aligned(alignment, size);
    allocated(memory, size, CALLER);
    return memory;
}

int posix_memalign(void **out, size_t alignment, size_t size) noexcept {
    if (decide(kind_memory, CALLER) != 0) return ENOMEM;
    void *const memory = real_aligned(alignment, size);
    if (memory == nullptr) return ENOMEM;
    allocated(memory, size, CALLER);
    *out = memory;
    return 0;
}

// Functions that give -1 (or the like) and errno.
#define REPLACE(kind, result, failure, name, parameters, arguments)                                                    \
    result name parameters {                                                                                           \
        static const auto real = reinterpret_cast<result(*) parameters>(dlsym(RTLD_NEXT, #name));                      \
        FAIL_AS(kind, failure)                                                                                         \
        return real arguments;                                                                                         \
    }
// Functions that give the errno.
#define REPLACE_CODE(kind, name, parameters, arguments)                                                                \
    int name parameters {                                                                                              \
        static const auto real = reinterpret_cast<int(*) parameters>(dlsym(RTLD_NEXT, #name));                         \
        if (const int fault = decide(kind_##kind, CALLER)) return fault;                                               \
        return real arguments;                                                                                         \
    }
// Functions on a connection.
#define REPLACE_SOCKET(kind, result, name, parameters, arguments)                                                      \
    result name parameters {                                                                                           \
        static const auto real = reinterpret_cast<result(*) parameters>(dlsym(RTLD_NEXT, #name));                      \
        if (const int fault = decide(kind_##kind, CALLER)) {                                                           \
            break_connection(fd, fault);                                                                               \
            errno = fault;                                                                                             \
            return -1;                                                                                                 \
        }                                                                                                              \
        return real arguments;                                                                                         \
    }
// Functions on descriptors, of which events and timers do not fail.
#define REPLACE_PLAIN(kind, result, name, parameters, arguments)                                                       \
    result name parameters {                                                                                           \
        static const auto real = reinterpret_cast<result(*) parameters>(dlsym(RTLD_NEXT, #name));                      \
        if (is_library(CALLER) && is_plain(fd)) FAIL_AS(kind, -1)                                                      \
        return real arguments;                                                                                         \
    }

REPLACE(memfd_create, int, -1, memfd_create, (const char *name, unsigned flags) noexcept, (name, flags))
REPLACE(ftruncate, int, -1, ftruncate, (int fd, off_t size) noexcept, (fd, size))
REPLACE(ftruncate, int, -1, ftruncate64, (int fd, off64_t size) noexcept, (fd, size))
REPLACE(fallocate, int, -1, fallocate, (int fd, int how, off_t at, off_t size), (fd, how, at, size))
REPLACE_CODE(fallocate, posix_fallocate, (int fd, off_t at, off_t size), (fd, at, size))
REPLACE(madvise, int, -1, madvise, (void *memory, size_t size, int advice) noexcept, (memory, size, advice))
REPLACE(mmap, void *, MAP_FAILED, mmap, (void *at, size_t size, int access, int flags, int fd, off_t offset) noexcept,
        (at, size, access, flags, fd, offset))
REPLACE(socket, int, -1, socket, (int domain, int type, int protocol) noexcept, (domain, type, protocol))
REPLACE(socketpair, int, -1, socketpair, (int domain, int type, int protocol, int *fds) noexcept,
        (domain, type, protocol, fds))
REPLACE(connect, int, -1, connect, (int fd, const sockaddr *to, socklen_t size), (fd, to, size))
REPLACE(accept, int, -1, accept4, (int fd, sockaddr *from, socklen_t *size, int flags), (fd, from, size, flags))
REPLACE(bind, int, -1, bind, (int fd, const sockaddr *at, socklen_t size) noexcept, (fd, at, size))
REPLACE(listen, int, -1, listen, (int fd, int backlog) noexcept, (fd, backlog))
REPLACE(getsockname, int, -1, getsockname, (int fd, sockaddr *out, socklen_t *size) noexcept, (fd, out, size))
REPLACE_SOCKET(getpeername, int, getpeername, (int fd, sockaddr *out, socklen_t *size) noexcept, (fd, out, size))
REPLACE(setsockopt, int, -1, setsockopt, (int fd, int level, int name, const void *value, socklen_t size) noexcept,
        (fd, level, name, value, size))
REPLACE(getsockopt, int, -1, getsockopt, (int fd, int level, int name, void *value, socklen_t *size) noexcept,
        (fd, level, name, value, size))
REPLACE(shutdown, int, -1, shutdown, (int fd, int how) noexcept, (fd, how))
REPLACE_SOCKET(send, ssize_t, send, (int fd, const void *data, size_t size, int flags), (fd, data, size, flags))
REPLACE_SOCKET(send, ssize_t, sendmsg, (int fd, const msghdr *message, int flags), (fd, message, flags))
REPLACE_SOCKET(receive, ssize_t, recv, (int fd, void *data, size_t size, int flags), (fd, data, size, flags))
REPLACE_SOCKET(receive, ssize_t, recvmsg, (int fd, msghdr *message, int flags), (fd, message, flags))
REPLACE_PLAIN(read, ssize_t, read, (int fd, void *data, size_t size), (fd, data, size))
REPLACE_PLAIN(write, ssize_t, write, (int fd, const void *data, size_t size), (fd, data, size))
REPLACE_PLAIN(read, ssize_t, pread, (int fd, void *data, size_t size, off_t at), (fd, data, size, at))
REPLACE_PLAIN(read, ssize_t, pread64, (int fd, void *data, size_t size, off64_t at), (fd, data, size, at))
REPLACE_PLAIN(write, ssize_t, pwrite, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at))
REPLACE_PLAIN(write, ssize_t, pwrite64, (int fd, const void *data, size_t size, off64_t at), (fd, data, size, at))
REPLACE_PLAIN(read, ssize_t, readv, (int fd, const iovec *parts, int count), (fd, parts, count))
REPLACE_PLAIN(write, ssize_t, writev, (int fd, const iovec *parts, int count), (fd, parts, count))
REPLACE(eventfd, int, -1, eventfd, (unsigned value, int flags) noexcept, (value, flags))
REPLACE(epoll_create, int, -1, epoll_create1, (int flags) noexcept, (flags))
REPLACE(epoll_wait, int, -1, epoll_wait, (int epoll, epoll_event *events, int most, int timeout),
        (epoll, events, most, timeout))
REPLACE(epoll_wait, int, -1, epoll_pwait, (int epoll, epoll_event *events, int most, int timeout, const sigset_t *mask),
        (epoll, events, most, timeout, mask))
REPLACE(poll, int, -1, poll, (pollfd * fds, nfds_t count, int timeout), (fds, count, timeout))
REPLACE(timerfd_create, int, -1, timerfd_create, (clockid_t clock, int flags) noexcept, (clock, flags))
REPLACE(pipe, int, -1, pipe2, (int *fds, int flags) noexcept, (fds, flags))
REPLACE(flock, int, -1, flock, (int fd, int how) noexcept, (fd, how))
REPLACE(open, DIR *, nullptr, opendir, (const char *name), (name))
REPLACE(open, FILE *, nullptr, fopen, (const char *name, const char *how), (name, how))
REPLACE(open, int, -1, mkstemp64, (char *name), (name))
REPLACE(stat, int, -1, stat, (const char *name, struct stat *out) noexcept, (name, out))
REPLACE(stat, int, -1, lstat, (const char *name, struct stat *out) noexcept, (name, out))
REPLACE(stat, int, -1, fstat, (int fd, struct stat *out) noexcept, (fd, out))
REPLACE(stat, int, -1, stat64, (const char *name, struct stat64 *out) noexcept, (name, out))
REPLACE(stat, int, -1, lstat64, (const char *name, struct stat64 *out) noexcept, (name, out))
REPLACE(stat, int, -1, fstat64, (int fd, struct stat64 *out) noexcept, (fd, out))
REPLACE(stat, int, -1, access, (const char *name, int how) noexcept, (name, how))
REPLACE(stat, char *, nullptr, realpath, (const char *name, char *out) noexcept, (name, out))
REPLACE(stat, ssize_t, -1, readlink, (const char *name, char *out, size_t size) noexcept, (name, out, size))
REPLACE(mkdir, int, -1, mkdir, (const char *name, mode_t mode) noexcept, (name, mode))
REPLACE(mkdir, char *, nullptr, mkdtemp, (char *name) noexcept, (name))
REPLACE(chmod, int, -1, chmod, (const char *name, mode_t mode) noexcept, (name, mode))
REPLACE(chmod, int, -1, fchmod, (int fd, mode_t mode) noexcept, (fd, mode))
REPLACE(chmod, int, -1, fchown, (int fd, uid_t user, gid_t group) noexcept, (fd, user, group))
REPLACE(unlink, int, -1, unlink, (const char *name) noexcept, (name))
REPLACE(unlink, int, -1, rmdir, (const char *name) noexcept, (name))
REPLACE(rename, int, -1, rename, (const char *from, const char *to) noexcept, (from, to))
REPLACE(rename, int, -1, link, (const char *from, const char *to) noexcept, (from, to))
REPLACE(fsync, int, -1, fsync, (int fd), (fd))
REPLACE(fsync, int, -1, fdatasync, (int fd), (fd))
REPLACE(kill, int, -1, kill, (pid_t id, int number) noexcept, (id, number))
REPLACE(getifaddrs, int, -1, getifaddrs, (ifaddrs * *out) noexcept, (out))
REPLACE_CODE(pthread_attr_init, pthread_attr_init, (pthread_attr_t * attributes) noexcept, (attributes))
REPLACE_CODE(pthread_create, pthread_create,
             (pthread_t * thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument),
             (thread, attributes, body, argument))
REPLACE_CODE(posix_spawn, posix_spawnp,
             (pid_t * id, const char *file, const posix_spawn_file_actions_t *actions,
              const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]) noexcept,
             (id, file, actions, attributes, argv, envp))
REPLACE_CODE(posix_spawn, posix_spawn,
             (pid_t * id, const char *file, const posix_spawn_file_actions_t *actions,
              const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]) noexcept,
             (id, file, actions, attributes, argv, envp))
REPLACE_CODE(spawn_action, posix_spawn_file_actions_init, (posix_spawn_file_actions_t * actions) noexcept, (actions))
REPLACE_CODE(spawn_action, posix_spawn_file_actions_adddup2,
             (posix_spawn_file_actions_t * actions, int from, int to) noexcept, (actions, from, to))
REPLACE_CODE(spawn_action, posix_spawn_file_actions_addclose, (posix_spawn_file_actions_t * actions, int fd) noexcept,
             (actions, fd))
REPLACE_CODE(spawn_action, posix_spawn_file_actions_addchdir_np,
             (posix_spawn_file_actions_t * actions, const char *folder) noexcept, (actions, folder))
REPLACE_CODE(spawn_action, posix_spawn_file_actions_addclosefrom_np,
             (posix_spawn_file_actions_t * actions, int from) noexcept, (actions, from))
REPLACE_CODE(spawn_action, posix_spawnattr_init, (posix_spawnattr_t * attributes) noexcept, (attributes))

int getaddrinfo(const char *host, const char *service, const addrinfo *hints, addrinfo **out) {
    REAL(getaddrinfo);
    if (decide(kind_getaddrinfo, CALLER)) return EAI_MEMORY;
    return real(host, service, hints, out);
}

int epoll_ctl(int epoll, int operation, int fd, epoll_event *event) noexcept {
    REAL(epoll_ctl);
    if (operation == EPOLL_CTL_ADD) FAIL_AS(epoll_ctl, -1)
    return real(epoll, operation, fd, event);
}

#define OPEN(name)                                                                                                     \
    int name(const char *path, int flags, ...) {                                                                       \
        static const auto real = reinterpret_cast<int (*)(const char *, int, ...)>(dlsym(RTLD_NEXT, #name));           \
        FAIL_AS(open, -1)                                                                                              \
        va_list arguments;                                                                                             \
        va_start(arguments, flags);                                                                                    \
        const auto mode = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;       \
        va_end(arguments);                                                                                             \
        return real(path, flags, mode);                                                                                \
    }
OPEN(open)
OPEN(open64)

int openat(int folder, const char *path, int flags, ...) {
    static const auto real = reinterpret_cast<int (*)(int, const char *, int, ...)>(dlsym(RTLD_NEXT, "openat"));
    FAIL_AS(open, -1)
    va_list arguments;
    va_start(arguments, flags);
    const auto mode = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return real(folder, path, flags, mode);
}

#define FCNTL(name)                                                                                                    \
    int name(int fd, int what, ...) {                                                                                  \
        static const auto real = reinterpret_cast<int (*)(int, int, ...)>(dlsym(RTLD_NEXT, #name));                    \
        if (what == F_DUPFD_CLOEXEC || what == F_DUPFD) FAIL_AS(duplicate, -1)                                         \
        if (what == F_SETLK || what == F_SETLKW || what == F_OFD_SETLK || what == F_OFD_SETLKW) FAIL_AS(fcntl, -1)     \
        va_list arguments;                                                                                             \
        va_start(arguments, what);                                                                                     \
        const long argument = va_arg(arguments, long);                                                                 \
        va_end(arguments);                                                                                             \
        return real(fd, what, argument);                                                                               \
    }
FCNTL(fcntl)
FCNTL(fcntl64)

long syscall(long number, ...) noexcept {
    static const auto real = reinterpret_cast<long (*)(long, ...)>(dlsym(RTLD_NEXT, "syscall"));
    va_list arguments;
    va_start(arguments, number);
    long a[6];
    for (long &value : a) value = va_arg(arguments, long);
    va_end(arguments);
    switch (number) {
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_sendto:
    case SYS_sendmsg: {
        const bool sends = number == SYS_sendto || number == SYS_sendmsg;
        if (const int fault = decide(sends ? kind_send : kind_receive, CALLER)) {
            break_connection(static_cast<int>(a[0]), fault);
            errno = fault;
            return -1;
        }
        break;
    }
    case SYS_read:
        if (is_library(CALLER) && is_plain(static_cast<int>(a[0]))) FAIL_AS(read, -1)
        break;
    case SYS_write:
        if (is_library(CALLER) && is_plain(static_cast<int>(a[0]))) FAIL_AS(write, -1)
        break;
    case SYS_waitid: { // fails as if another thread of the host had reaped the child: so the child must have ended
        const long result = real(number, a[0], a[1], a[2], a[3], a[4]);
        const auto *out = reinterpret_cast<const siginfo_t *>(a[2]);
        if (result == 0 && out != nullptr && out->si_pid != 0) FAIL_AS(waitid, -1)
        return result;
    }
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
        FAIL_AS(epoll_wait, -1)
        break;
    case SYS_ppoll:
        FAIL_AS(poll, -1)
        break;
    case SYS_pidfd_open:
        FAIL_AS(pidfd_open, -1)
        break;
    case SYS_memfd_create:
        FAIL_AS(memfd_create, -1)
        break;
    default:
        break;
    }
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

} // extern "C"
