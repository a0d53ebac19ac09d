# SPDX-License-Identifier: MIT
# Written by bindings/julia/generate from include/muster/socket.h; do not edit.

# muster_socket_kind: The kind of a socket.
const MUSTER_SOCKET_DEALER = Int32(1)
const MUSTER_SOCKET_ROUTER = Int32(2)

# muster_socket_flag: Flags of a socket.
const MUSTER_SOCKET_LOANS = UInt32(1)

# muster_socket_ready: Readiness of a socket; bits of muster_completion::events of ::MUSTER_EVENT_READY.
const MUSTER_SOCKET_RECEIVABLE = UInt32(1)
const MUSTER_SOCKET_SENDABLE = UInt32(2)
const MUSTER_SOCKET_EVENT = UInt32(4)

# muster_socket_event_kind: The kind of an event.
const MUSTER_SOCKET_CONNECTED = Int32(1)
const MUSTER_SOCKET_LOST = Int32(2)
const MUSTER_SOCKET_REPLACED = Int32(3)
const MUSTER_SOCKET_REFUSED = Int32(4)

struct muster_socket end

# How to make a socket.
struct muster_socket_config # 72 bytes
    struct_size::UInt32
    flags::UInt32
    kind::UInt32
    max_peers::UInt32
    address::UInt64
    max_message_bytes::UInt64
    max_queued_bytes::UInt64
    max_queued_messages::UInt32
    max_unrouted_messages::UInt32
    queue::Ptr{muster_queue}
    tag::UInt64
    max_loaned_bytes::UInt64
end
muster_socket_config(; flags = 0, kind = 0, max_peers = 0, address = 0, max_message_bytes = 0, max_queued_bytes = 0, max_queued_messages = 0, max_unrouted_messages = 0, queue = C_NULL, tag = 0, max_loaned_bytes = 0) =
    muster_socket_config(sizeof(muster_socket_config), flags, kind, max_peers, address, max_message_bytes, max_queued_bytes, max_queued_messages, max_unrouted_messages, queue, tag, max_loaned_bytes)

# What has happened to a peer.
struct muster_socket_event # 288 bytes
    kind::UInt32
    text_bytes::UInt32
    address::UInt64
    incarnation::UInt64
    undelivered::UInt64
    text::NTuple{256, UInt8}
end

# Counters of a socket since it was created.
struct muster_socket_stats # 128 bytes
    peers::UInt64
    messages_in::UInt64
    messages_out::UInt64
    bytes_in::UInt64
    bytes_out::UInt64
    queued_messages::UInt64
    queued_bytes::UInt64
    undelivered::UInt64
    connections_made::UInt64
    connections_lost::UInt64
    malformed::UInt64
    full::UInt64
    reserved::NTuple{4, UInt64}
end

# Makes a socket.
const at_muster_socket_create = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_socket_create => at_muster_socket_create)
@inline muster_socket_create(context, config, out_socket, error) =
    ccall(at_muster_socket_create[], muster_status, (Ptr{muster_context}, Ptr{muster_socket_config}, Ptr{Ptr{muster_socket}}, Ptr{muster_error}), context, config, out_socket, error)

# Returns the address of a socket.
const at_muster_socket_address = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_socket_address => at_muster_socket_address)
@inline muster_socket_address(socket) =
    ccall(at_muster_socket_address[], UInt64, (Ptr{muster_socket},), socket)

# Listens at an address of a transport, and accepts peers there until the socket is closed.
const at_muster_socket_bind = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_socket_bind => at_muster_socket_bind)
@inline muster_socket_bind(socket, address, address_bytes, out_text, capacity, error) =
    ccall(at_muster_socket_bind[], muster_status, (Ptr{muster_socket}, Ptr{UInt8}, Csize_t, Ptr{UInt8}, Csize_t, Ptr{muster_error}), socket, address, address_bytes, out_text, capacity, error)

# Begins to connect to an address of a transport.
const at_muster_socket_connect = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_socket_connect => at_muster_socket_connect)
@inline muster_socket_connect(socket, address, address_bytes, error) =
    ccall(at_muster_socket_connect[], muster_status, (Ptr{muster_socket}, Ptr{UInt8}, Csize_t, Ptr{muster_error}), socket, address, address_bytes, error)

# Waits until a number of peers are connected.
const at_muster_socket_wait_peers = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_socket_wait_peers => at_muster_socket_wait_peers)
@inline muster_socket_wait_peers(socket, count, timeout_ns, out_count) =
    ccall(at_muster_socket_wait_peers[], muster_status, (Ptr{muster_socket}, UInt32, Int64, Ptr{UInt32}), socket, count, timeout_ns, out_count)

# Sends a message.
const at_muster_socket_send = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_socket_send => at_muster_socket_send)
@inline muster_socket_send(socket, message, timeout_ns, error) =
    ccall(at_muster_socket_send[], muster_status, (Ptr{muster_socket}, Ptr{muster_message}, Int64, Ptr{muster_error}), socket, message, timeout_ns, error)

# Adds a frame to a message in shared memory: peers on this host read it in place, without a copy, so that the time to send it does not depend on its size.
const at_muster_socket_loan_frame = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_socket_loan_frame => at_muster_socket_loan_frame)
@inline muster_socket_loan_frame(socket, message, bytes, out_data, error) =
    ccall(at_muster_socket_loan_frame[], muster_status, (Ptr{muster_socket}, Ptr{muster_message}, Csize_t, Ptr{Ptr{Cvoid}}, Ptr{muster_error}), socket, message, bytes, out_data, error)

# Receives the next message of any peer.
const at_muster_socket_receive = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_socket_receive => at_muster_socket_receive)
@inline muster_socket_receive(socket, timeout_ns, out_message) =
    ccall(at_muster_socket_receive[], muster_status, (Ptr{muster_socket}, Int64, Ptr{Ptr{muster_message}}), socket, timeout_ns, out_message)

# Takes the next event of the peers.
const at_muster_socket_next_event = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_socket_next_event => at_muster_socket_next_event)
@inline muster_socket_next_event(socket, timeout_ns, out_event) =
    ccall(at_muster_socket_next_event[], muster_status, (Ptr{muster_socket}, Int64, Ptr{muster_socket_event}), socket, timeout_ns, out_event)

# Returns the counters of a socket.
const at_muster_socket_get_stats = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_socket_get_stats => at_muster_socket_get_stats)
@inline muster_socket_get_stats(socket, out_stats) =
    ccall(at_muster_socket_get_stats[], muster_status, (Ptr{muster_socket}, Ptr{muster_socket_stats}), socket, out_stats)

# Ends the calls that wait on a socket now: they return ::MUSTER_E_CANCELED.
const at_muster_socket_cancel = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_socket_cancel => at_muster_socket_cancel)
@inline muster_socket_cancel(socket) =
    ccall(at_muster_socket_cancel[], muster_status, (Ptr{muster_socket},), socket)

# Closes a socket: waits until the queued messages have been read by the peers or the time has passed, and ends all connections.
const at_muster_socket_close = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_socket_close => at_muster_socket_close)
@inline muster_socket_close(socket, timeout_ns) =
    ccall(at_muster_socket_close[], muster_status, (Ptr{muster_socket}, Int64), socket, timeout_ns)

# Releases the handle of a socket, which is closed without waiting if it is open.
const at_muster_socket_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_socket_release => at_muster_socket_release)
@inline muster_socket_release(socket) =
    ccall(at_muster_socket_release[], Cvoid, (Ptr{muster_socket},), socket)
