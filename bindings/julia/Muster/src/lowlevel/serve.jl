# SPDX-License-Identifier: MIT
# Written by bindings/julia/generate from include/muster/serve.h; do not edit.

# muster_transport_flag: Flags of muster_transport_ops::flags and of muster_transport_serve().
const MUSTER_TRANSPORT_ANY_THREAD = UInt32(1)
const MUSTER_TRANSPORT_LOCAL = UInt32(2)
const MUSTER_TRANSPORT_SEALS = UInt32(4)
const MUSTER_TRANSPORT_NO_LISTEN = UInt32(8)

# Callbacks that serve a transport.
struct muster_transport_ops # 48 bytes
    struct_size::UInt32
    flags::UInt32
    open::Ptr{Cvoid}
    listen::Ptr{Cvoid}
    close::Ptr{Cvoid}
    cancel::Ptr{Cvoid}
    destroy::Ptr{Cvoid}
end
muster_transport_ops(; flags = 0, open = C_NULL, listen = C_NULL, close = C_NULL, cancel = C_NULL, destroy = C_NULL) =
    muster_transport_ops(sizeof(muster_transport_ops), flags, open, listen, close, cancel, destroy)

# Registers a URL scheme of a transport that the host serves, in this context only.
const at_muster_transport_serve = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_transport_serve => at_muster_transport_serve)
@inline muster_transport_serve(context, scheme, scheme_bytes, flags, requests, tag, error) =
    ccall(at_muster_transport_serve[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t, UInt32, Ptr{muster_queue}, UInt64, Ptr{muster_error}), context, scheme, scheme_bytes, flags, requests, tag, error)

# Registers a URL scheme of a transport that the host serves by callbacks, which muster_queue_dispatch() calls.
const at_muster_transport_serve_ops = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_transport_serve_ops => at_muster_transport_serve_ops)
@inline muster_transport_serve_ops(context, scheme, scheme_bytes, ops, self, requests, error) =
    ccall(at_muster_transport_serve_ops[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t, Ptr{muster_transport_ops}, Ptr{Cvoid}, Ptr{muster_queue}, Ptr{muster_error}), context, scheme, scheme_bytes, ops, self, requests, error)

# Withdraws a host-served transport: from now on dialling and listening fail, unanswered requests fail with ::MUSTER_E_CLOSED, and listeners close; connections continue until they end.
const at_muster_transport_withdraw = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_transport_withdraw => at_muster_transport_withdraw)
@inline muster_transport_withdraw(context, scheme, scheme_bytes) =
    ccall(at_muster_transport_withdraw[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t), context, scheme, scheme_bytes)

# Copies the address of an OPEN or LISTEN request, without the options of the library.
const at_muster_request_address = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_request_address => at_muster_request_address)
@inline muster_request_address(requests, request, out_text, capacity, out_bytes) =
    ccall(at_muster_request_address[], muster_status, (Ptr{muster_queue}, UInt64, Ptr{UInt8}, Csize_t, Ptr{Csize_t}), requests, request, out_text, capacity, out_bytes)

# Answers an OPEN request: the host is connected.
const at_muster_request_stream = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_request_stream => at_muster_request_stream)
@inline muster_request_stream(requests, request, out_pump, error) =
    ccall(at_muster_request_stream[], muster_status, (Ptr{muster_queue}, UInt64, Ptr{Ptr{muster_stream}}, Ptr{muster_error}), requests, request, out_pump, error)

# Answers a LISTEN request: the host listens.
const at_muster_request_listening = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_request_listening => at_muster_request_listening)
@inline muster_request_listening(requests, request, address, address_bytes, error) =
    ccall(at_muster_request_listening[], muster_status, (Ptr{muster_queue}, UInt64, Ptr{UInt8}, Csize_t, Ptr{muster_error}), requests, request, address, address_bytes, error)

# Answers an OPEN or LISTEN request: it cannot be done.
const at_muster_request_fail = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_request_fail => at_muster_request_fail)
@inline muster_request_fail(requests, request, status, text, text_bytes) =
    ccall(at_muster_request_fail[], muster_status, (Ptr{muster_queue}, UInt64, muster_status, Ptr{UInt8}, Csize_t), requests, request, status, text, text_bytes)

# Announces an incoming connection of a host-served listener.
const at_muster_transport_incoming = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_transport_incoming => at_muster_transport_incoming)
@inline muster_transport_incoming(requests, listen_request, peer, peer_bytes, out_request, out_pump, error) =
    ccall(at_muster_transport_incoming[], muster_status, (Ptr{muster_queue}, UInt64, Ptr{UInt8}, Csize_t, Ptr{UInt64}, Ptr{Ptr{muster_stream}}, Ptr{muster_error}), requests, listen_request, peer, peer_bytes, out_request, out_pump, error)
