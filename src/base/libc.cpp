// SPDX-License-Identifier: MIT
#include "base/libc.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dirent.h>

// Without a version the reference is to the newest form that the machine has; NULL: none.
#if !__GLIBC_PREREQ(2, 32)
extern "C" {
__attribute__((weak)) const char *strerrordesc_np(int);
__attribute__((weak)) const char *sigabbrev_np(int);
__attribute__((weak)) int pthread_attr_setsigmask_np(pthread_attr_t *, const sigset_t *);
}
#endif
#if !__GLIBC_PREREQ(2, 34)
extern "C" __attribute__((weak)) int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *, int);
#endif

// With a new library they are never NULL.
#ifdef __clang__
#pragma clang diagnostic ignored "-Wtautological-pointer-compare"
#else
#pragma GCC diagnostic ignored "-Waddress"
#endif

namespace muster::libc {

const char *describe_error(int number) noexcept {
    if (strerrordesc_np != nullptr) return strerrordesc_np(number); // no locale, no buffer, any thread
    char unknown[64];
    const char *const text = strerror_r(number, unknown, sizeof unknown); // a constant, unless the number is unknown
    return text == unknown ? nullptr : text;
}

const char *signal_name(int number) noexcept {
    return sigabbrev_np != nullptr ? sigabbrev_np(number) : nullptr;
}

int create_thread(pthread_t *out, pthread_attr_t *attributes, const sigset_t &blocked, void *(*body)(void *),
                  void *argument) noexcept {
    // The mask is an attribute of the new thread, so that of the host's thread does not change, not even for a moment.
    if (pthread_attr_setsigmask_np != nullptr) {
        const int rc = pthread_attr_setsigmask_np(attributes, &blocked);
        return rc != 0 ? rc : pthread_create(out, attributes, body, argument);
    }
    sigset_t before; // an old library: the new thread inherits the mask
    if (const int rc = pthread_sigmask(SIG_SETMASK, &blocked, &before)) return rc;
    const int rc = pthread_create(out, attributes, body, argument);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return rc;
}

int add_close_from(posix_spawn_file_actions_t &actions, int first) noexcept {
    if (posix_spawn_file_actions_addclosefrom_np != nullptr)
        return posix_spawn_file_actions_addclosefrom_np(&actions, first);
    DIR *const folder = opendir("/proc/self/fd"); // those that are open now
    if (folder == nullptr) return errno;
    int rc = 0;
    while (const dirent *const entry = readdir(folder)) {
        const int fd = atoi(entry->d_name); // "." is 0, and below the first
        if (fd >= first && fd != dirfd(folder)) rc |= posix_spawn_file_actions_addclose(&actions, fd);
    }
    closedir(folder);
    return rc;
}

} // namespace muster::libc
