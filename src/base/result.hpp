// SPDX-License-Identifier: MIT
#pragma once
#include <muster/base.h>

#include <algorithm>
#include <cstdarg>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

namespace muster {

using Status = muster_status;

// A failure with its sentence. A value: it is copied freely and allocates nothing. Most errors say that there is no
// failure, and many calls make some: only the used part of the text is copied.
struct Error : muster_error {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init)
    Error() noexcept {
        status = MUSTER_OK;
        os_errno = 0;
        provider_code = 0;
        rank = UINT32_MAX;
        message_bytes = 0;
        message[0] = '\0';
    }
    // give() writes what is used of it.
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init,bugprone-copy-constructor-init)
    Error(const Error &other) noexcept { other.give(*this); }
    Error &operator=(const Error &other) noexcept {
        if (this != &other) other.give(*this);
        return *this;
    }
    // A plug-in may have filled this in, and its length may be nonsense.
    void give(muster_error &to) const noexcept {
        const size_t bytes = std::min<size_t>(message_bytes, sizeof message - 1);
        const muster_error &from = *this;
        std::memcpy(static_cast<void *>(&to), &from, offsetof(muster_error, message) + bytes);
        to.message_bytes = static_cast<uint32_t>(bytes);
        to.message[bytes] = '\0';
    }

    // `text` says what failed, where, with what value, in lower case and without a full stop.
    [[gnu::format(printf, 2, 3)]] static Error make(Status status, const char *format, ...) noexcept;
    // Same, for a failed system call: appends ": <strerror>" and maps the errno to a status where `status` is OK.
    [[gnu::format(printf, 3, 4)]] static Error from_errno(int os_errno, Status status, const char *format,
                                                          ...) noexcept;
    static Error from_status(Status status) noexcept; // text = muster_status_text()
};

// The status that fits an errno: EACCES -> PERMISSION, ECONNREFUSED -> UNREACHABLE, EMFILE -> LIMIT ...
Status status_of_errno(int os_errno) noexcept;

template <class T>
class [[nodiscard]] Result {
  public:
    Result(T value) : value_(std::move(value)) {}
    Result(const Error &error) noexcept : error_(error) {}
    explicit operator bool() const noexcept { return value_.has_value(); }
    T &operator*() noexcept { return *value_; }
    T *operator->() noexcept { return &*value_; }
    const Error &error() const noexcept { return error_; }

  private:
    std::optional<T> value_;
    Error error_;
};

// True: it was done, or not done for a reason that is not a failure. A result with an error is never true, whatever its
// status: MUSTER_TIMEOUT, which is positive, is not taken for success.
template <>
class [[nodiscard]] Result<void> {
  public:
    // Not `= default`: then `{}` would write zeros to the whole error first.
    Result() noexcept {} // NOLINT(modernize-use-equals-default)
    Result(const Error &error) noexcept : error_(error), failed_(error.status != MUSTER_OK) {}
    // The answer of a function of the C interface that may end without a result: AGAIN, TIMEOUT.
    static Result positive(Status status) noexcept {
        Result r;
        r.error_.status = status;
        return r;
    }
    explicit operator bool() const noexcept { return !failed_; }
    Status status() const noexcept { return error_.status; }
    const Error &error() const noexcept { return error_; }

  private:
    Error error_;
    bool failed_ = false;
};

} // namespace muster
