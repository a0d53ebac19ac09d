# SPDX-License-Identifier: MIT
# Written by bindings/julia/generate from include/muster/rendezvous_serve.h; do not edit.

# muster_rendezvous_request_kind: The operation of a request; the value of muster_rendezvous_request::kind.
const MUSTER_RENDEZVOUS_REQUEST_OPEN = Int32(1)
const MUSTER_RENDEZVOUS_REQUEST_JOIN = Int32(2)
const MUSTER_RENDEZVOUS_REQUEST_LEAVE = Int32(3)
const MUSTER_RENDEZVOUS_REQUEST_EXIT = Int32(4)
const MUSTER_RENDEZVOUS_REQUEST_ABORT = Int32(5)
const MUSTER_RENDEZVOUS_REQUEST_CLOSE = Int32(6)
const MUSTER_RENDEZVOUS_REQUEST_LIST = Int32(7)

# One request.
struct muster_rendezvous_request # 48 bytes
    struct_size::UInt32
    kind::UInt32
    member::UInt64
    config::Ptr{muster_rendezvous_config}
    reason::Ptr{Cvoid}
    reason_bytes::UInt64
    timeout_ns::Int64
end
muster_rendezvous_request(; kind = 0, member = 0, config = C_NULL, reason = C_NULL, reason_bytes = 0, timeout_ns = 0) =
    muster_rendezvous_request(sizeof(muster_rendezvous_request), kind, member, config, reason, reason_bytes, timeout_ns)

# The place of a member in a round: the answer to a JOIN.
struct muster_rendezvous_assignment # 80 bytes
    struct_size::UInt32
    rank::UInt32
    world::UInt32
    reserved::UInt32
    number::UInt64
    store::Ptr{muster_store}
    members::Ptr{muster_round_member_info}
    member_count::UInt64
    digest::NTuple{32, UInt8}
end
muster_rendezvous_assignment(; rank = 0, world = 0, reserved = 0, number = 0, store = C_NULL, members = C_NULL, member_count = 0, digest = ntuple(_ -> zero(UInt8), 32)) =
    muster_rendezvous_assignment(sizeof(muster_rendezvous_assignment), rank, world, reserved, number, store, members, member_count, digest)

# Callbacks that serve a rendezvous.
struct muster_rendezvous_ops # 40 bytes
    struct_size::UInt32
    flags::UInt32
    request::Ptr{Cvoid}
    cancel::Ptr{Cvoid}
    close::Ptr{Cvoid}
    destroy::Ptr{Cvoid}
end
muster_rendezvous_ops(; flags = 0, request = C_NULL, cancel = C_NULL, close = C_NULL, destroy = C_NULL) =
    muster_rendezvous_ops(sizeof(muster_rendezvous_ops), flags, request, cancel, close, destroy)

# Registers a URL scheme of rendezvous that the host serves, in this context only.
const at_muster_rendezvous_serve = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_serve => at_muster_rendezvous_serve)
@inline muster_rendezvous_serve(context, scheme, scheme_bytes, requests, tag, error) =
    ccall(at_muster_rendezvous_serve[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t, Ptr{muster_queue}, UInt64, Ptr{muster_error}), context, scheme, scheme_bytes, requests, tag, error)

# Registers a URL scheme of rendezvous that the host serves by callbacks, which muster_queue_dispatch() calls.
const at_muster_rendezvous_serve_ops = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_serve_ops => at_muster_rendezvous_serve_ops)
@inline muster_rendezvous_serve_ops(context, scheme, scheme_bytes, ops, self, requests, error) =
    ccall(at_muster_rendezvous_serve_ops[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t, Ptr{muster_rendezvous_ops}, Ptr{Cvoid}, Ptr{muster_queue}, Ptr{muster_error}), context, scheme, scheme_bytes, ops, self, requests, error)

# Withdraws a scheme of host-served rendezvous.
const at_muster_rendezvous_withdraw = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_withdraw => at_muster_rendezvous_withdraw)
@inline muster_rendezvous_withdraw(context, scheme, scheme_bytes) =
    ccall(at_muster_rendezvous_withdraw[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t), context, scheme, scheme_bytes)

# Reads an unanswered request.
const at_muster_rendezvous_request_read = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_request_read => at_muster_rendezvous_request_read)
@inline muster_rendezvous_request_read(requests, request, out_what) =
    ccall(at_muster_rendezvous_request_read[], muster_status, (Ptr{muster_queue}, UInt64, Ptr{muster_rendezvous_request}), requests, request, out_what)

# Answers a JOIN request: the member is in a round.
const at_muster_rendezvous_request_round = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_request_round => at_muster_rendezvous_request_round)
@inline muster_rendezvous_request_round(requests, request, assignment, error) =
    ccall(at_muster_rendezvous_request_round[], muster_status, (Ptr{muster_queue}, UInt64, Ptr{muster_rendezvous_assignment}, Ptr{muster_error}), requests, request, assignment, error)

# Answers any request but JOIN: it is done.
const at_muster_rendezvous_request_done = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_request_done => at_muster_rendezvous_request_done)
@inline muster_rendezvous_request_done(requests, request, text, text_bytes, error) =
    ccall(at_muster_rendezvous_request_done[], muster_status, (Ptr{muster_queue}, UInt64, Ptr{Cvoid}, Csize_t, Ptr{muster_error}), requests, request, text, text_bytes, error)

# Answers any request: it cannot be done.
const at_muster_rendezvous_request_fail = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_request_fail => at_muster_rendezvous_request_fail)
@inline muster_rendezvous_request_fail(requests, request, status, text, text_bytes) =
    ccall(at_muster_rendezvous_request_fail[], muster_status, (Ptr{muster_queue}, UInt64, muster_status, Ptr{UInt8}, Csize_t), requests, request, status, text, text_bytes)

# Notifies a member of an event.
const at_muster_rendezvous_notify = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_notify => at_muster_rendezvous_notify)
@inline muster_rendezvous_notify(requests, member, event, error) =
    ccall(at_muster_rendezvous_notify[], muster_status, (Ptr{muster_queue}, UInt64, Ptr{muster_rendezvous_event}, Ptr{muster_error}), requests, member, event, error)
