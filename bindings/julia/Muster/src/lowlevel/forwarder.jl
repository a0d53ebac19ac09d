# SPDX-License-Identifier: MIT
# Written by bindings/julia/generate from include/muster/forwarder.h; do not edit.

struct muster_forwarder end

# How to make a forwarder.
struct muster_forwarder_config # 80 bytes
    struct_size::UInt32
    flags::UInt32
    address::UInt64
    max_hops::UInt32
    max_peers::UInt32
    max_message_bytes::UInt64
    max_queued_bytes::UInt64
    max_queued_messages::UInt32
    max_unrouted_messages::UInt32
    max_waiting::UInt32
    reserved::UInt32
    inbox::Ptr{muster_message_queue}
    queue::Ptr{muster_queue}
    tag::UInt64
end
muster_forwarder_config(; flags = 0, address = 0, max_hops = 0, max_peers = 0, max_message_bytes = 0, max_queued_bytes = 0, max_queued_messages = 0, max_unrouted_messages = 0, max_waiting = 0, reserved = 0, inbox = C_NULL, queue = C_NULL, tag = 0) =
    muster_forwarder_config(sizeof(muster_forwarder_config), flags, address, max_hops, max_peers, max_message_bytes, max_queued_bytes, max_queued_messages, max_unrouted_messages, max_waiting, reserved, inbox, queue, tag)

# Counters of a forwarder since it was created.
struct muster_forwarder_stats # 80 bytes
    peers::UInt64
    forwarded::UInt64
    delivered::UInt64
    undelivered::UInt64
    hop_limit::UInt64
    waiting::UInt64
    reserved::NTuple{4, UInt64}
end

# Makes a forwarder.
const at_muster_forwarder_create = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_forwarder_create => at_muster_forwarder_create)
@inline muster_forwarder_create(context, config, out_forwarder, error) =
    ccall(at_muster_forwarder_create[], muster_status, (Ptr{muster_context}, Ptr{muster_forwarder_config}, Ptr{Ptr{muster_forwarder}}, Ptr{muster_error}), context, config, out_forwarder, error)

# Returns the socket of a forwarder: a router, for muster_socket_bind(), muster_socket_connect(), muster_socket_wait_peers(), muster_socket_address(), muster_socket_next_event() and muster_socket_get_stats().
const at_muster_forwarder_socket = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_forwarder_socket => at_muster_forwarder_socket)
@inline muster_forwarder_socket(forwarder) =
    ccall(at_muster_forwarder_socket[], Ptr{muster_socket}, (Ptr{muster_forwarder},), forwarder)

# Adds a route to the address table, or changes the next hop of the route with the same pattern.
const at_muster_forwarder_add_route = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_forwarder_add_route => at_muster_forwarder_add_route)
@inline muster_forwarder_add_route(forwarder, pattern, next_hop) =
    ccall(at_muster_forwarder_add_route[], muster_status, (Ptr{muster_forwarder}, UInt64, UInt64), forwarder, pattern, next_hop)

# Removes a route.
const at_muster_forwarder_remove_route = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_forwarder_remove_route => at_muster_forwarder_remove_route)
@inline muster_forwarder_remove_route(forwarder, pattern) =
    ccall(at_muster_forwarder_remove_route[], muster_status, (Ptr{muster_forwarder}, UInt64), forwarder, pattern)

# Hands messages of a type to the host instead of forwarding them: the hook for aggregation.
const at_muster_forwarder_set_hook = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_forwarder_set_hook => at_muster_forwarder_set_hook)
@inline muster_forwarder_set_hook(forwarder, type_, into) =
    ccall(at_muster_forwarder_set_hook[], muster_status, (Ptr{muster_forwarder}, UInt32, Ptr{muster_message_queue}), forwarder, type_, into)

# Sends a message of the host to its next hop.
const at_muster_forwarder_send = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_forwarder_send => at_muster_forwarder_send)
@inline muster_forwarder_send(forwarder, message, timeout_ns, error) =
    ccall(at_muster_forwarder_send[], muster_status, (Ptr{muster_forwarder}, Ptr{muster_message}, Int64, Ptr{muster_error}), forwarder, message, timeout_ns, error)

# Returns the counters of a forwarder.
const at_muster_forwarder_get_stats = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_forwarder_get_stats => at_muster_forwarder_get_stats)
@inline muster_forwarder_get_stats(forwarder, out_stats) =
    ccall(at_muster_forwarder_get_stats[], muster_status, (Ptr{muster_forwarder}, Ptr{muster_forwarder_stats}), forwarder, out_stats)

# Closes a forwarder: waits until the messages that it has were read by their next hops or the time has passed, and ends all connections.
const at_muster_forwarder_close = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_forwarder_close => at_muster_forwarder_close)
@inline muster_forwarder_close(forwarder, timeout_ns) =
    ccall(at_muster_forwarder_close[], muster_status, (Ptr{muster_forwarder}, Int64), forwarder, timeout_ns)

# Releases the handle of a forwarder, which is closed without waiting if it is open.
const at_muster_forwarder_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_forwarder_release => at_muster_forwarder_release)
@inline muster_forwarder_release(forwarder) =
    ccall(at_muster_forwarder_release[], Cvoid, (Ptr{muster_forwarder},), forwarder)
