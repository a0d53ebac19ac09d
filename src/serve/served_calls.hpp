// SPDX-License-Identifier: MIT
#pragma once
// Checks that the C functions of all kinds of served objects have in common.
#include "plugin/session_address.hpp"
#include "queue/served.hpp"

#include <cstring>

namespace muster {

// The queue of an answer.
inline Result<Queue *> queue_of_answer(muster_queue *requests) noexcept {
    if (requests == nullptr) return Error::make(MUSTER_E_ARG, "answer: no queue");
    if (unwrap(requests)->context().forked()) return Error::from_status(MUSTER_E_FORKED);
    return unwrap(requests);
}

// The context and the queue that are to serve a scheme.
inline Result<void> check_serve(muster_context *context, const char *scheme, size_t scheme_bytes,
                                muster_queue *requests) noexcept {
    if (context == nullptr || requests == nullptr) return Error::make(MUSTER_E_ARG, "serve: no context or no queue");
    if (unwrap(context)->forked()) return Error::from_status(MUSTER_E_FORKED);
    if (scheme == nullptr || !valid_scheme({scheme, scheme_bytes}))
        return Error::make(MUSTER_E_ARG, "serve: a scheme is 1 to 31 of a-z 0-9 + . -, a letter first");
    if (&unwrap(requests)->context() != unwrap(context))
        return Error::make(MUSTER_E_ARG, "serve: the queue is of another context");
    return {};
}

// `kind_name`: for the text when the host serves nothing of that name.
inline Result<void> withdraw_served(ServedKind kind, const char *kind_name, muster_context *context, const char *name,
                                    size_t name_bytes) {
    if (context == nullptr || name == nullptr) return Error::from_status(MUSTER_E_ARG);
    if (unwrap(context)->forked()) return Error::from_status(MUSTER_E_FORKED);
    const std::string text(name, name_bytes);
    return ServedRequests::of(*unwrap(context)).withdraw(kind, text, (std::string(kind_name) + " " + text).c_str());
}

// Is the destination of a result one that a caller of this or a newer library gives?
template <class T>
Result<void> check_size(const T *out) noexcept {
    if (out == nullptr) return Error::make(MUSTER_E_ARG, "no place for the result");
    if (out->struct_size < sizeof *out || out->struct_size > 65536) return Error::from_status(MUSTER_E_ABI);
    return {};
}
template <class T>
void copy_out(T *out, T what) noexcept {
    what.struct_size = out->struct_size;
    std::memset(static_cast<void *>(out), 0, out->struct_size); // a newer caller's members
    *out = what;
}

} // namespace muster
