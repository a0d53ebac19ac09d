// SPDX-License-Identifier: MIT
#pragma once
// Every extern "C" body is one call of boundary(): no exception of Muster leaves it.
#include "base/result.hpp"
#include "base/uncancelled.hpp"

#include <new>
#include <type_traits>

namespace muster {

// Writes `from` to the error of the caller, if there is one and `from` is not empty; returns the status.
inline Status report(muster_error *to, const Error &from) noexcept {
    if (to != nullptr && (from.status < 0 || from.message_bytes != 0)) from.give(*to);
    return from.status;
}

// Thrown by a constructor that needs more resources of the system than memory. Handlers for lack of memory handle it,
// too.
class Failure final : public std::bad_alloc {
  public:
    explicit Failure(const Error &why) noexcept : error(why) {}
    const Error error;
};

// Cold calls: the body returns Result<void>.
template <class Body>
Status boundary(muster_error *error, Body &&body) noexcept {
    const Uncancelled guard;
    try {
        return report(error, body().error());
    } catch (const Failure &failure) {
        return report(error, failure.error);
    } catch (const std::bad_alloc &) {
        return report(error, Error::make(MUSTER_E_NOMEM, "out of memory"));
    } catch (const std::exception &e) {
        return report(error, Error::make(MUSTER_E_INTERNAL, "unexpected exception: %s", e.what()));
    } catch (...) {
        return report(error, Error::make(MUSTER_E_INTERNAL, "unexpected exception"));
    }
}

// Hot calls: the body returns a plain Status, and meets no cancellation point or guards itself.
template <class Body>
Status boundary(Body &&body) noexcept {
    try {
        return body();
    } catch (const Failure &failure) {
        return failure.error.status;
    } catch (const std::bad_alloc &) {
        return MUSTER_E_NOMEM;
    } catch (...) {
        return MUSTER_E_INTERNAL;
    }
}

} // namespace muster
