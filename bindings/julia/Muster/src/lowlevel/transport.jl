# SPDX-License-Identifier: MIT
# Written by bindings/julia/generate from include/muster/transport.h; do not edit.

struct muster_listener end

# How to dial or listen; all zero means the defaults named here.
struct muster_transport_config # 56 bytes
    struct_size::UInt32
    flags::UInt32
    hello::Ptr{Cvoid}
    hello_bytes::UInt64
    window_bytes::UInt64
    backlog::UInt32
    reserved::UInt32
    retry_ns::Int64
    listen_timeout_ns::Int64
end
muster_transport_config(; flags = 0, hello = C_NULL, hello_bytes = 0, window_bytes = 0, backlog = 0, reserved = 0, retry_ns = 0, listen_timeout_ns = 0) =
    muster_transport_config(sizeof(muster_transport_config), flags, hello, hello_bytes, window_bytes, backlog, reserved, retry_ns, listen_timeout_ns)

# Connects to an address; returns when both sides have proved the secret.
const at_muster_transport_dial = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_transport_dial => at_muster_transport_dial)
@inline muster_transport_dial(context, address, address_bytes, config, timeout_ns, out_stream, error) =
    ccall(at_muster_transport_dial[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t, Ptr{muster_transport_config}, Int64, Ptr{Ptr{muster_stream}}, Ptr{muster_error}), context, address, address_bytes, config, timeout_ns, out_stream, error)

# Begins to connect, as muster_transport_dial() does.
const at_muster_transport_dial_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_transport_dial_begin => at_muster_transport_dial_begin)
@inline muster_transport_dial_begin(context, address, address_bytes, config, timeout_ns, queue, tag, error) =
    ccall(at_muster_transport_dial_begin[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t, Ptr{muster_transport_config}, Int64, Ptr{muster_queue}, UInt64, Ptr{muster_error}), context, address, address_bytes, config, timeout_ns, queue, tag, error)

# Listens at an address: when the call returns ::MUSTER_OK, the listener is open, and muster_listener_address() gives the address that peers dial.
const at_muster_transport_listen = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_transport_listen => at_muster_transport_listen)
@inline muster_transport_listen(context, address, address_bytes, config, out_listener, error) =
    ccall(at_muster_transport_listen[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t, Ptr{muster_transport_config}, Ptr{Ptr{muster_listener}}, Ptr{muster_error}), context, address, address_bytes, config, out_listener, error)

# Begins to listen, as muster_transport_listen() does.
const at_muster_transport_listen_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_transport_listen_begin => at_muster_transport_listen_begin)
@inline muster_transport_listen_begin(context, address, address_bytes, config, queue, tag, error) =
    ccall(at_muster_transport_listen_begin[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t, Ptr{muster_transport_config}, Ptr{muster_queue}, UInt64, Ptr{muster_error}), context, address, address_bytes, config, queue, tag, error)

# Accepts the next connection that has proved the secret.
const at_muster_listener_accept = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_listener_accept => at_muster_listener_accept)
@inline muster_listener_accept(listener, timeout_ns, out_stream, error) =
    ccall(at_muster_listener_accept[], muster_status, (Ptr{muster_listener}, Int64, Ptr{Ptr{muster_stream}}, Ptr{muster_error}), listener, timeout_ns, out_stream, error)

# Watches a listener: ::MUSTER_EVENT_READY with ::MUSTER_STREAM_READABLE appears when a connection can be accepted.
const at_muster_listener_watch = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_listener_watch => at_muster_listener_watch)
@inline muster_listener_watch(listener, queue, tag) =
    ccall(at_muster_listener_watch[], muster_status, (Ptr{muster_listener}, Ptr{muster_queue}, UInt64), listener, queue, tag)

# Copies the address by which peers dial this listener: with the actual port, with the advertised host (for a wildcard, a name or number by which other hosts reach this one), and with the options that both sides have to specify, `auth=none` and `seal=no`, where the listener has them.
const at_muster_listener_address = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_listener_address => at_muster_listener_address)
@inline muster_listener_address(listener, out_text, capacity, out_bytes) =
    ccall(at_muster_listener_address[], muster_status, (Ptr{muster_listener}, Ptr{UInt8}, Csize_t, Ptr{Csize_t}), listener, out_text, capacity, out_bytes)

# Cancels the current waits in muster_listener_accept().
const at_muster_listener_cancel = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_listener_cancel => at_muster_listener_cancel)
@inline muster_listener_cancel(listener) =
    ccall(at_muster_listener_cancel[], muster_status, (Ptr{muster_listener},), listener)

# Stops listening: connections that were not accepted are refused, and the socket file is removed.
const at_muster_listener_close = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_listener_close => at_muster_listener_close)
@inline muster_listener_close(listener) =
    ccall(at_muster_listener_close[], muster_status, (Ptr{muster_listener},), listener)

# Begins to stop listening, as muster_listener_close() does; ::MUSTER_DONE_CALL follows when a new listener may take the address.
const at_muster_listener_close_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_listener_close_begin => at_muster_listener_close_begin)
@inline muster_listener_close_begin(listener, queue, tag, error) =
    ccall(at_muster_listener_close_begin[], muster_status, (Ptr{muster_listener}, Ptr{muster_queue}, UInt64, Ptr{muster_error}), listener, queue, tag, error)

# Releases the handle; the listener closes, and threads that wait in muster_listener_accept() return ::MUSTER_E_CLOSED.
const at_muster_listener_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_listener_release => at_muster_listener_release)
@inline muster_listener_release(listener) =
    ccall(at_muster_listener_release[], Cvoid, (Ptr{muster_listener},), listener)

# Copies the handshake payload (muster_transport_config::hello) of the other side.
const at_muster_transport_hello = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_transport_hello => at_muster_transport_hello)
@inline muster_transport_hello(stream, out_data, capacity, out_bytes) =
    ccall(at_muster_transport_hello[], muster_status, (Ptr{muster_stream}, Ptr{Cvoid}, Csize_t, Ptr{Csize_t}), stream, out_data, capacity, out_bytes)
