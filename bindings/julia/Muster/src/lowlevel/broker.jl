# SPDX-License-Identifier: MIT
# Written by bindings/julia/generate from include/muster/broker.h; do not edit.

# muster_broker_flag: Flags of muster_broker_config::flags.
const MUSTER_BROKER_OPEN = UInt32(1)
const MUSTER_BROKER_NO_CURVE = UInt32(2)

struct muster_broker end

# How to run a broker; all zero means the defaults named here.
struct muster_broker_config # 72 bytes
    struct_size::UInt32
    flags::UInt32
    parent::Ptr{UInt8}
    parent_bytes::UInt64
    window_bytes::UInt64
    max_members::UInt32
    reserved::UInt32
    curve_file::Ptr{UInt8}
    curve_file_bytes::UInt64
    broker_secret::Ptr{Cvoid}
    broker_secret_bytes::UInt64
end
muster_broker_config(; flags = 0, parent = C_NULL, parent_bytes = 0, window_bytes = 0, max_members = 0, reserved = 0, curve_file = C_NULL, curve_file_bytes = 0, broker_secret = C_NULL, broker_secret_bytes = 0) =
    muster_broker_config(sizeof(muster_broker_config), flags, parent, parent_bytes, window_bytes, max_members, reserved, curve_file, curve_file_bytes, broker_secret, broker_secret_bytes)

# Counters of a broker.
struct muster_broker_stats # 128 bytes
    members::UInt64
    brokers::UInt64
    has_parent::UInt64
    names::UInt64
    pairs::UInt64
    messages::UInt64
    bytes::UInt64
    queued_bytes::UInt64
    connections::UInt64
    refused::UInt64
    lost::UInt64
    multicasts::UInt64
    reserved::NTuple{4, UInt64}
end

# Starts a broker on threads of its own; they end with it, and at the latest with the context.
const at_muster_broker_open = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_broker_open => at_muster_broker_open)
@inline muster_broker_open(context, address, address_bytes, config, out_broker, error) =
    ccall(at_muster_broker_open[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t, Ptr{muster_broker_config}, Ptr{Ptr{muster_broker}}, Ptr{muster_error}), context, address, address_bytes, config, out_broker, error)

# Copies the address that members use: with the actual port, `zmq://127.0.0.1:8100/`, and with a broker secret the options that members need, `?broker=KEY` and `curve=no` where it applies.
const at_muster_broker_address = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_broker_address => at_muster_broker_address)
@inline muster_broker_address(broker, out_text, capacity, out_bytes) =
    ccall(at_muster_broker_address[], muster_status, (Ptr{muster_broker}, Ptr{UInt8}, Csize_t, Ptr{Csize_t}), broker, out_text, capacity, out_bytes)

# Reads the counters of a broker; of a closed one those of its end.
const at_muster_broker_get_stats = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_broker_get_stats => at_muster_broker_get_stats)
@inline muster_broker_get_stats(broker, out_stats) =
    ccall(at_muster_broker_get_stats[], muster_status, (Ptr{muster_broker}, Ptr{muster_broker_stats}), broker, out_stats)

# Stops a broker and closes the connections of its members.
const at_muster_broker_close = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_broker_close => at_muster_broker_close)
@inline muster_broker_close(broker, timeout_ns) =
    ccall(at_muster_broker_close[], muster_status, (Ptr{muster_broker}, Int64), broker, timeout_ns)

# Begins to stop a broker, as muster_broker_close() does; ::MUSTER_DONE_CALL follows when its threads have ended.
const at_muster_broker_close_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_broker_close_begin => at_muster_broker_close_begin)
@inline muster_broker_close_begin(broker, timeout_ns, queue, tag, error) =
    ccall(at_muster_broker_close_begin[], muster_status, (Ptr{muster_broker}, Int64, Ptr{muster_queue}, UInt64, Ptr{muster_error}), broker, timeout_ns, queue, tag, error)

# Releases one reference; with the last one the broker is stopped at once, by another thread.
const at_muster_broker_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_broker_release => at_muster_broker_release)
@inline muster_broker_release(broker) =
    ccall(at_muster_broker_release[], Cvoid, (Ptr{muster_broker},), broker)
