// SPDX-License-Identifier: MIT
#pragma once
#include "base/result.hpp"
#include "base/uncancelled.hpp"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace muster {

// Owns a descriptor. One owner at a time.
class Fd {
  public:
    Fd() noexcept = default;
    explicit Fd(int fd) noexcept : fd_(fd) {}
    Fd(Fd &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Fd &operator=(Fd &&other) noexcept {
        if (this != &other) {
            reset();
            fd_ = std::exchange(other.fd_, -1);
        }
        return *this;
    }
    ~Fd() { reset(); }
    int get() const noexcept { return fd_; }
    int detach() noexcept { return std::exchange(fd_, -1); }
    explicit operator bool() const noexcept { return fd_ >= 0; }
    void reset() noexcept { // keeps errno: it is often called after a failure
        if (fd_ < 0) return;
        const int saved = errno;
        uncancelled::close(std::exchange(fd_, -1));
        errno = saved;
    }

  private:
    int fd_ = -1;
};

// A duplicate for the host, not inherited by its children.
inline Result<int> duplicate(int fd, const char *what) noexcept {
    const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (copy < 0) return Error::from_errno(errno, MUSTER_OK, "duplicate the descriptor of %s", what);
    return copy;
}

} // namespace muster
