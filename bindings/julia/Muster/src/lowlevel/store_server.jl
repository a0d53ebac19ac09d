# SPDX-License-Identifier: MIT
# Written by bindings/julia/generate from include/muster/store_server.h; do not edit.

# muster_store_server_flag: Flags of muster_store_server_config::flags.
const MUSTER_STORE_SERVER_NO_SYNC = UInt32(1)
const MUSTER_STORE_SERVER_FORCE_STANDALONE = UInt32(2)
const MUSTER_STORE_SERVER_REFUSED_IS_DEAD = UInt32(4)

# muster_store_server_role: The role of a server; the value of muster_store_server_stats::role.
const MUSTER_STORE_SERVER_STANDALONE = UInt32(0)
const MUSTER_STORE_SERVER_PRIMARY = UInt32(1)
const MUSTER_STORE_SERVER_HALTED = UInt32(2)
const MUSTER_STORE_SERVER_STANDBY = UInt32(3)
const MUSTER_STORE_SERVER_CATCHING_UP = UInt32(4)
const MUSTER_STORE_SERVER_WAITING = UInt32(5)

struct muster_store_server end

# How to serve a store; all zero means the defaults named here.
struct muster_store_server_config # 72 bytes
    struct_size::UInt32
    flags::UInt32
    data_dir::Ptr{UInt8}
    data_dir_bytes::UInt64
    max_bytes::UInt64
    session_ns::Int64
    max_clients::UInt32
    reserved_field::UInt32
    standby_of::Ptr{UInt8}
    standby_of_bytes::UInt64
    pair_lease_ns::Int64
end
muster_store_server_config(; flags = 0, data_dir = C_NULL, data_dir_bytes = 0, max_bytes = 0, session_ns = 0, max_clients = 0, reserved_field = 0, standby_of = C_NULL, standby_of_bytes = 0, pair_lease_ns = 0) =
    muster_store_server_config(sizeof(muster_store_server_config), flags, data_dir, data_dir_bytes, max_bytes, session_ns, max_clients, reserved_field, standby_of, standby_of_bytes, pair_lease_ns)

# Counters and state of a server.
struct muster_store_server_stats # 112 bytes
    clients::UInt64
    sessions::UInt64
    requests::UInt64
    waiting::UInt64
    refused::UInt64
    keys::UInt64
    bytes::UInt64
    leases::UInt64
    revision::UInt64
    failed::UInt64
    role::UInt64
    epoch::UInt64
    lag::UInt64
    reserved::NTuple{1, UInt64}
end

# Starts a server.
const at_muster_store_server_open = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_server_open => at_muster_store_server_open)
@inline muster_store_server_open(context, url, url_bytes, config, out_server, error) =
    ccall(at_muster_store_server_open[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t, Ptr{muster_store_server_config}, Ptr{Ptr{muster_store_server}}, Ptr{muster_error}), context, url, url_bytes, config, out_server, error)

# Copies the URL that clients open, with the actual port: `tcp://127.0.0.1:29400`.
const at_muster_store_server_address = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_server_address => at_muster_store_server_address)
@inline muster_store_server_address(server, out_text, capacity, out_bytes) =
    ccall(at_muster_store_server_address[], muster_status, (Ptr{muster_store_server}, Ptr{UInt8}, Csize_t, Ptr{Csize_t}), server, out_text, capacity, out_bytes)

# Reads the counters and the state of a server; those of a closed server are the last ones.
const at_muster_store_server_get_stats = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_server_get_stats => at_muster_store_server_get_stats)
@inline muster_store_server_get_stats(server, out_stats) =
    ccall(at_muster_store_server_get_stats[], muster_status, (Ptr{muster_store_server}, Ptr{muster_store_server_stats}), server, out_stats)

# Declares that the other server of the pair is dead and stays so: this server continues without it.
const at_muster_store_server_force_standalone = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_server_force_standalone => at_muster_store_server_force_standalone)
@inline muster_store_server_force_standalone(server) =
    ccall(at_muster_store_server_force_standalone[], muster_status, (Ptr{muster_store_server},), server)

# Stops a server.
const at_muster_store_server_close = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_server_close => at_muster_store_server_close)
@inline muster_store_server_close(server, timeout_ns) =
    ccall(at_muster_store_server_close[], muster_status, (Ptr{muster_store_server}, Int64), server, timeout_ns)

# Begins to stop a server, as muster_store_server_close() does; ::MUSTER_DONE_CALL has its status.
const at_muster_store_server_close_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_server_close_begin => at_muster_store_server_close_begin)
@inline muster_store_server_close_begin(server, timeout_ns, queue, tag, error) =
    ccall(at_muster_store_server_close_begin[], muster_status, (Ptr{muster_store_server}, Int64, Ptr{muster_queue}, UInt64, Ptr{muster_error}), server, timeout_ns, queue, tag, error)

# Releases one reference; the server stops with the last one.
const at_muster_store_server_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_server_release => at_muster_store_server_release)
@inline muster_store_server_release(server) =
    ccall(at_muster_store_server_release[], Cvoid, (Ptr{muster_store_server},), server)
