// SPDX-License-Identifier: MIT
#include "base/libc.hpp"
#include "base/result.hpp"
#include "base/status.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace muster {

namespace {

// Ends the text at `used` bytes, or at the last whole UTF-8 character that fits.
void finish(Error &error, size_t used) noexcept {
    constexpr size_t room = sizeof error.message - 1;
    if (used > room) {
        used = room;
        // Step back over the continuation bytes of a character, then over it, unless it is whole.
        size_t start = used;
        while (start > 0 && used - start < 4 && (error.message[start - 1] & 0xc0) == 0x80) start--;
        if (start > 0) {
            const auto lead = static_cast<unsigned char>(error.message[start - 1]);
            const size_t length = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
            if (start - 1 + length > used) used = start - 1;
        }
    }
    error.message[used] = '\0';
    error.message_bytes = static_cast<uint32_t>(used);
}

size_t print(Error &error, size_t at, const char *format, va_list arguments) noexcept {
    const size_t room = sizeof error.message - at;
    const int n = std::vsnprintf(error.message + at, room, format, arguments);
    return n < 0 ? at : at + static_cast<size_t>(n);
}

} // namespace

Error Error::make(Status status, const char *format, ...) noexcept {
    Error error;
    error.status = status;
    va_list arguments;
    va_start(arguments, format);
    const size_t used = print(error, 0, format, arguments);
    va_end(arguments);
    finish(error, used);
    return error;
}

Error Error::from_errno(int os_errno, Status status, const char *format, ...) noexcept {
    Error error;
    error.status = status == MUSTER_OK ? status_of_errno(os_errno) : status;
    error.os_errno = os_errno;
    va_list arguments;
    va_start(arguments, format);
    size_t used = print(error, 0, format, arguments);
    va_end(arguments);
    if (used < sizeof error.message) {
        const char *why = libc::describe_error(os_errno);
        const int n = why ? std::snprintf(error.message + used, sizeof error.message - used, ": %c%s",
                                          // "No such file" -> "no such file", but "RFS specific error" stays
                                          why[1] >= 'a' && why[1] <= 'z' ? (why[0] | 0x20) : why[0], why + 1)
                          : std::snprintf(error.message + used, sizeof error.message - used, ": errno %d", os_errno);
        if (n > 0) used += static_cast<size_t>(n);
    }
    finish(error, used);
    return error;
}

Error Error::from_status(Status status) noexcept {
    return make(status, "%s", status_text(status));
}

Status status_of_errno(int os_errno) noexcept {
    switch (os_errno) {
    case 0:
        return MUSTER_OK;
    case EINVAL:
    case EFAULT:
    case EBADF:
        return MUSTER_E_ARG;
    case ENOMEM:
    case ENOBUFS:
        return MUSTER_E_NOMEM;
    case EMFILE:
    case ENFILE:
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENAMETOOLONG:
    case E2BIG:
        return MUSTER_E_LIMIT;
    case ECANCELED:
        return MUSTER_E_CANCELED;
    case EOPNOTSUPP:
    case ENOSYS:
    case EAFNOSUPPORT:
    case EPROTONOSUPPORT:
        return MUSTER_E_UNSUPPORTED;
    case EEXIST:
    case EADDRINUSE:
        return MUSTER_E_EXISTS;
    case ENOENT:
    case ENOTDIR:
    case ESRCH:
    case ENODEV:
    case EADDRNOTAVAIL:
        return MUSTER_E_NOT_FOUND;
    case EBUSY:
        return MUSTER_E_BUSY;
    case EACCES:
    case EPERM:
    case EROFS:
        return MUSTER_E_PERMISSION;
    case EPROTO:
        return MUSTER_E_PROTOCOL;
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
    case ENETDOWN:
        return MUSTER_E_UNREACHABLE;
    case EPIPE:
    case ECONNRESET:
    case ECONNABORTED:
    case ENOTCONN:
        return MUSTER_E_PEER;
    case ETIMEDOUT:
        return MUSTER_E_UNREACHABLE;
    default:
        return MUSTER_E_SYSTEM;
    }
}

} // namespace muster
