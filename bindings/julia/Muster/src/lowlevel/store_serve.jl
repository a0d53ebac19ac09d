# SPDX-License-Identifier: MIT
# Written by bindings/julia/generate from include/muster/store_serve.h; do not edit.

# muster_store_request_kind: The operation of a request; the value of muster_store_request::kind.
const MUSTER_STORE_REQUEST_OPEN = Int32(1)
const MUSTER_STORE_REQUEST_DO = Int32(2)
const MUSTER_STORE_REQUEST_GRANT = Int32(3)
const MUSTER_STORE_REQUEST_KEEP = Int32(4)
const MUSTER_STORE_REQUEST_END = Int32(5)

# muster_store_request_flag: Flags of muster_store_request::flags.
const MUSTER_STORE_NO_WAIT = UInt32(1)

# muster_store_trait: Flags of muster_store_traits::flags.
const MUSTER_STORE_IS_REMOTE = UInt32(1)
const MUSTER_STORE_ANSWERS_CANCEL = UInt32(2)

# muster_store_host_flag: Flags of muster_store_host_ops::flags.
const MUSTER_STORE_ANY_THREAD = UInt32(1)

# One request.
struct muster_store_request # 72 bytes
    struct_size::UInt32
    kind::UInt32
    store::UInt64
    flags::UInt32
    reserved::UInt32
    ops::Ptr{muster_store_op}
    op_count::UInt64
    url::Ptr{UInt8}
    url_bytes::UInt64
    lease::UInt64
    ttl_ns::Int64
end
muster_store_request(; kind = 0, store = 0, flags = 0, reserved = 0, ops = C_NULL, op_count = 0, url = C_NULL, url_bytes = 0, lease = 0, ttl_ns = 0) =
    muster_store_request(sizeof(muster_store_request), kind, store, flags, reserved, ops, op_count, url, url_bytes, lease, ttl_ns)

# Properties of a served store; all zero means the defaults named here.
struct muster_store_traits # 32 bytes
    struct_size::UInt32
    flags::UInt32
    capabilities::UInt32
    max_ops::UInt32
    max_request_bytes::UInt64
    min_lease_ns::Int64
end
muster_store_traits(; flags = 0, capabilities = 0, max_ops = 0, max_request_bytes = 0, min_lease_ns = 0) =
    muster_store_traits(sizeof(muster_store_traits), flags, capabilities, max_ops, max_request_bytes, min_lease_ns)

# Callbacks that serve stores.
struct muster_store_host_ops # 40 bytes
    struct_size::UInt32
    flags::UInt32
    request::Ptr{Cvoid}
    cancel::Ptr{Cvoid}
    close::Ptr{Cvoid}
    destroy::Ptr{Cvoid}
end
muster_store_host_ops(; flags = 0, request = C_NULL, cancel = C_NULL, close = C_NULL, destroy = C_NULL) =
    muster_store_host_ops(sizeof(muster_store_host_ops), flags, request, cancel, close, destroy)

# Registers a URL scheme of stores that the host serves, in this context only.
const at_muster_store_serve = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_serve => at_muster_store_serve)
@inline muster_store_serve(context, scheme, scheme_bytes, requests, tag, error) =
    ccall(at_muster_store_serve[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t, Ptr{muster_queue}, UInt64, Ptr{muster_error}), context, scheme, scheme_bytes, requests, tag, error)

# Registers a URL scheme of stores that the host serves by callbacks, which muster_queue_dispatch() calls.
const at_muster_store_serve_ops = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_serve_ops => at_muster_store_serve_ops)
@inline muster_store_serve_ops(context, scheme, scheme_bytes, ops, self, requests, error) =
    ccall(at_muster_store_serve_ops[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t, Ptr{muster_store_host_ops}, Ptr{Cvoid}, Ptr{muster_queue}, Ptr{muster_error}), context, scheme, scheme_bytes, ops, self, requests, error)

# Withdraws a scheme of host-served stores.
const at_muster_store_withdraw = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_withdraw => at_muster_store_withdraw)
@inline muster_store_withdraw(context, scheme, scheme_bytes) =
    ccall(at_muster_store_withdraw[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t), context, scheme, scheme_bytes)

# Reads an unanswered request.
const at_muster_store_request_read = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_request_read => at_muster_store_request_read)
@inline muster_store_request_read(requests, request, out_what) =
    ccall(at_muster_store_request_read[], muster_status, (Ptr{muster_queue}, UInt64, Ptr{muster_store_request}), requests, request, out_what)

# Answers an OPEN request: the store is open.
const at_muster_store_request_open = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_request_open => at_muster_store_request_open)
@inline muster_store_request_open(requests, request, traits, error) =
    ccall(at_muster_store_request_open[], muster_status, (Ptr{muster_queue}, UInt64, Ptr{muster_store_traits}, Ptr{muster_error}), requests, request, traits, error)

# Answers a DO, GRANT, KEEP or END request: it is done; or a DO request: a condition does not hold.
const at_muster_store_request_done = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_request_done => at_muster_store_request_done)
@inline muster_store_request_done(requests, request, status, entries, entry_count, revision, error) =
    ccall(at_muster_store_request_done[], muster_status, (Ptr{muster_queue}, UInt64, muster_status, Ptr{muster_store_entry}, Csize_t, UInt64, Ptr{muster_error}), requests, request, status, entries, entry_count, revision, error)

# Answers any request: it cannot be done, and no part of it is applied.
const at_muster_store_request_fail = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_request_fail => at_muster_store_request_fail)
@inline muster_store_request_fail(requests, request, status, op, text, text_bytes) =
    ccall(at_muster_store_request_fail[], muster_status, (Ptr{muster_queue}, UInt64, muster_status, UInt32, Ptr{UInt8}, Csize_t), requests, request, status, op, text, text_bytes)
