# SPDX-License-Identifier: MIT
# Written by bindings/julia/generate from include/muster/worker.h; do not edit.

# muster_worker_flag: Flags of muster_worker_config::flags.
const MUSTER_WORKER_EXIT_WITH_MASTER = UInt32(1)
const MUSTER_WORKER_RAISE_INTERRUPT = UInt32(2)

# How to start as a worker; all zero means the defaults named here.
struct muster_worker_config # 80 bytes
    struct_size::UInt32
    flags::UInt32
    exit_grace_ns::Int64
    report_fd_plus_one::Int32
    max_connections::UInt32
    queue::Ptr{muster_queue}
    tag::UInt64
    master::Ptr{UInt8}
    store::Ptr{UInt8}
    name::Ptr{UInt8}
    listen::Ptr{UInt8}
    max_broadcast_bytes::UInt64
end
muster_worker_config(; flags = 0, exit_grace_ns = 0, report_fd_plus_one = 0, max_connections = 0, queue = C_NULL, tag = 0, master = C_NULL, store = C_NULL, name = C_NULL, listen = C_NULL, max_broadcast_bytes = 0) =
    muster_worker_config(sizeof(muster_worker_config), flags, exit_grace_ns, report_fd_plus_one, max_connections, queue, tag, master, store, name, listen, max_broadcast_bytes)

# Makes the context of a worker from the ticket that its launcher has passed; the secret of the ticket becomes that of the context.
const at_muster_worker_context = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_worker_context => at_muster_worker_context)
@inline muster_worker_context(config, ticket_fd_plus_one, out_context, error) =
    ccall(at_muster_worker_context[], muster_status, (Ptr{muster_context_config}, Int32, Ptr{Ptr{muster_context}}, Ptr{muster_error}), config, ticket_fd_plus_one, out_context, error)

# Joins the cluster as a worker: listens, connects to the master, and returns when this member knows its number.
const at_muster_worker_start = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_worker_start => at_muster_worker_start)
@inline muster_worker_start(context, config, timeout_ns, out_cluster, error) =
    ccall(at_muster_worker_start[], muster_status, (Ptr{muster_context}, Ptr{muster_worker_config}, Int64, Ptr{Ptr{muster_cluster}}, Ptr{muster_error}), context, config, timeout_ns, out_cluster, error)

# Begins to join the cluster as a worker, for a program that must not wait, such as one whose only thread serves the transport by which it joins.
const at_muster_worker_start_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_worker_start_begin => at_muster_worker_start_begin)
@inline muster_worker_start_begin(context, config, timeout_ns, out_cluster, error) =
    ccall(at_muster_worker_start_begin[], muster_status, (Ptr{muster_context}, Ptr{muster_worker_config}, Int64, Ptr{Ptr{muster_cluster}}, Ptr{muster_error}), context, config, timeout_ns, out_cluster, error)
