# SPDX-License-Identifier: MIT
# Written by bindings/julia/generate from include/muster/am.h; do not edit.

# muster_am_flags: muster_am_config::flags.
const MUSTER_AM_NO_POLLING = UInt32(1)

# muster_am_event: muster_completion::events of an endpoint.
const MUSTER_AM_PEER_ENDED = UInt32(1)

struct muster_am end
struct muster_am_request end

# How to make an endpoint; all zero means the defaults named here.
struct muster_am_config # 32 bytes
    struct_size::UInt32
    max_bytes::UInt32
    max_requests::UInt32
    flags::UInt32
    queue::Ptr{muster_queue}
    tag::UInt64
end
muster_am_config(; max_bytes = 0, max_requests = 0, flags = 0, queue = C_NULL, tag = 0) =
    muster_am_config(sizeof(muster_am_config), max_bytes, max_requests, flags, queue, tag)

# State of a peer.
struct muster_am_peer # 40 bytes
    status::muster_status
    requests::UInt32
    sent::UInt64
    executed::UInt64
    unsent_bytes::UInt64
    max_bytes::UInt32
    max_requests::UInt32
end

# What a request of a peer says.
struct muster_am_request_info # 24 bytes
    data::Ptr{Cvoid}
    bytes::Csize_t
    peer::UInt32
    handler::UInt32
end

# Makes an endpoint without peers.
const at_muster_am_create = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_am_create => at_muster_am_create)
@inline muster_am_create(context, config, out_am, error) =
    ccall(at_muster_am_create[], muster_status, (Ptr{muster_context}, Ptr{muster_am_config}, Ptr{Ptr{muster_am}}, Ptr{muster_error}), context, config, out_am, error)

# Sets a handler that the library executes.
const at_muster_am_set_handler = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_am_set_handler => at_muster_am_set_handler)
@inline muster_am_set_handler(am, handler, function_, user) =
    ccall(at_muster_am_set_handler[], muster_status, (Ptr{muster_am}, UInt32, Ptr{Cvoid}, Ptr{Cvoid}), am, handler, function_, user)

# Sets a handler whose requests the host answers: each is an entry ::MUSTER_REQUEST_AM in a queue, with the request as muster_completion::object.
const at_muster_am_serve = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_am_serve => at_muster_am_serve)
@inline muster_am_serve(am, handler, queue, tag) =
    ccall(at_muster_am_serve[], muster_status, (Ptr{muster_am}, UInt32, Ptr{muster_queue}, UInt64), am, handler, queue, tag)

# Adds a peer.
const at_muster_am_add_peer = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_am_add_peer => at_muster_am_add_peer)
@inline muster_am_add_peer(am, stream, out_peer, error) =
    ccall(at_muster_am_add_peer[], muster_status, (Ptr{muster_am}, Ptr{muster_stream}, Ptr{UInt32}, Ptr{muster_error}), am, stream, out_peer, error)

# Makes a request, and waits for the reply.
const at_muster_am_call = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_am_call => at_muster_am_call)
@inline muster_am_call(am, peer, handler, data, bytes, out_reply, capacity, timeout_ns, out_bytes, error) =
    ccall(at_muster_am_call[], muster_status, (Ptr{muster_am}, UInt32, UInt32, Ptr{Cvoid}, Csize_t, Ptr{Cvoid}, Csize_t, Int64, Ptr{Csize_t}, Ptr{muster_error}), am, peer, handler, data, bytes, out_reply, capacity, timeout_ns, out_bytes, error)

# Makes a request without waiting for the reply, which is reported by ::MUSTER_DONE_AM: the status is that of muster_am_call(), and muster_completion::bytes the number of bytes of the reply.
const at_muster_am_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_am_begin => at_muster_am_begin)
@inline muster_am_begin(am, peer, handler, data, bytes, out_reply, capacity, queue, tag) =
    ccall(at_muster_am_begin[], muster_status, (Ptr{muster_am}, UInt32, UInt32, Ptr{Cvoid}, Csize_t, Ptr{Cvoid}, Csize_t, Ptr{muster_queue}, UInt64), am, peer, handler, data, bytes, out_reply, capacity, queue, tag)

# Waits until each request that was begun before has its reply.
const at_muster_am_flush = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_am_flush => at_muster_am_flush)
@inline muster_am_flush(am, peer, timeout_ns) =
    ccall(at_muster_am_flush[], muster_status, (Ptr{muster_am}, UInt32, Int64), am, peer, timeout_ns)

# Returns the state of a peer.
const at_muster_am_get_peer = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_am_get_peer => at_muster_am_get_peer)
@inline muster_am_get_peer(am, peer, out_peer, error) =
    ccall(at_muster_am_get_peer[], muster_status, (Ptr{muster_am}, UInt32, Ptr{muster_am_peer}, Ptr{muster_error}), am, peer, out_peer, error)

# Disconnects a peer: its requests are not executed any more, and those to it end with ::MUSTER_E_ABORTED.
const at_muster_am_disconnect = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_am_disconnect => at_muster_am_disconnect)
@inline muster_am_disconnect(am, peer, text) =
    ccall(at_muster_am_disconnect[], muster_status, (Ptr{muster_am}, UInt32, Ptr{UInt8}), am, peer, text)

# Returns what a request says.
const at_muster_am_request_get = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_am_request_get => at_muster_am_request_get)
@inline muster_am_request_get(request, out_info) =
    ccall(at_muster_am_request_get[], muster_status, (Ptr{muster_am_request}, Ptr{muster_am_request_info}), request, out_info)

# Answers a request; the first answer counts.
const at_muster_am_request_reply = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_am_request_reply => at_muster_am_request_reply)
@inline muster_am_request_reply(request, status, data, bytes) =
    ccall(at_muster_am_request_reply[], muster_status, (Ptr{muster_am_request}, muster_status, Ptr{Cvoid}, Csize_t), request, status, data, bytes)

# Releases a request.
const at_muster_am_request_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_am_request_release => at_muster_am_request_release)
@inline muster_am_request_release(request) =
    ccall(at_muster_am_request_release[], Cvoid, (Ptr{muster_am_request},), request)

# Closes an endpoint: all peers are disconnected, and calls end with ::MUSTER_E_CLOSED.
const at_muster_am_close = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_am_close => at_muster_am_close)
@inline muster_am_close(am) =
    ccall(at_muster_am_close[], muster_status, (Ptr{muster_am},), am)

# Closes an endpoint and gives up the reference to it.
const at_muster_am_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_am_release => at_muster_am_release)
@inline muster_am_release(am) =
    ccall(at_muster_am_release[], Cvoid, (Ptr{muster_am},), am)
