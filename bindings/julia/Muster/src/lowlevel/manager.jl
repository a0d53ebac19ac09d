# SPDX-License-Identifier: MIT
# Written by bindings/julia/generate from include/muster/manager.h; do not edit.

# muster_manager_operation: The operation of a request; a set of bits where a host selects the operations that it receives.
const MUSTER_MANAGER_LAUNCH = UInt32(1)
const MUSTER_MANAGER_CONNECT = UInt32(2)
const MUSTER_MANAGER_CONNECT_WORKER = UInt32(4)
const MUSTER_MANAGER_REGISTER = UInt32(8)
const MUSTER_MANAGER_DEREGISTER = UInt32(16)
const MUSTER_MANAGER_INTERRUPT = UInt32(32)
const MUSTER_MANAGER_KILL = UInt32(64)
const MUSTER_MANAGER_FINALIZE = UInt32(128)

# One request.
struct muster_manager_request # 64 bytes
    struct_size::UInt32
    operation::UInt32
    member::UInt32
    count::UInt32
    from::UInt32
    reserved::UInt32
    data::UInt64
    launch::Ptr{muster_launch}
    address::Ptr{UInt8}
    cluster::Ptr{muster_cluster}
    cluster_tag::UInt64
end
muster_manager_request(; operation = 0, member = 0, count = 0, from = 0, reserved = 0, data = 0, launch = C_NULL, address = C_NULL, cluster = C_NULL, cluster_tag = 0) =
    muster_manager_request(sizeof(muster_manager_request), operation, member, count, from, reserved, data, launch, address, cluster, cluster_tag)

# A manager as callbacks.
struct muster_manager_ops # 64 bytes
    struct_size::UInt32
    flags::UInt32
    launch::Ptr{Cvoid}
    connect::Ptr{Cvoid}
    connect_worker::Ptr{Cvoid}
    manage::Ptr{Cvoid}
    kill::Ptr{Cvoid}
    cancel::Ptr{Cvoid}
    destroy::Ptr{Cvoid}
end
muster_manager_ops(; flags = 0, launch = C_NULL, connect = C_NULL, connect_worker = C_NULL, manage = C_NULL, kill = C_NULL, cancel = C_NULL, destroy = C_NULL) =
    muster_manager_ops(sizeof(muster_manager_ops), flags, launch, connect, connect_worker, manage, kill, cancel, destroy)

# Registers a manager of the host, in this context only.
const at_muster_manager_serve = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_manager_serve => at_muster_manager_serve)
@inline muster_manager_serve(context, name, name_bytes, operations, requests, tag, error) =
    ccall(at_muster_manager_serve[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t, UInt32, Ptr{muster_queue}, UInt64, Ptr{muster_error}), context, name, name_bytes, operations, requests, tag, error)

# Registers a manager of the host as callbacks, which muster_queue_dispatch() calls.
const at_muster_manager_serve_ops = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_manager_serve_ops => at_muster_manager_serve_ops)
@inline muster_manager_serve_ops(context, name, name_bytes, ops, self, requests, error) =
    ccall(at_muster_manager_serve_ops[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t, Ptr{muster_manager_ops}, Ptr{Cvoid}, Ptr{muster_queue}, Ptr{muster_error}), context, name, name_bytes, ops, self, requests, error)

# Withdraws a manager: from now on launching by its name fails, and unanswered requests are cancelled, as if each had failed with ::MUSTER_E_CLOSED.
const at_muster_manager_withdraw = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_manager_withdraw => at_muster_manager_withdraw)
@inline muster_manager_withdraw(context, name, name_bytes) =
    ccall(at_muster_manager_withdraw[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t), context, name, name_bytes)

# Reads an unanswered request.
const at_muster_manager_request_read = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_manager_request_read => at_muster_manager_request_read)
@inline muster_manager_request_read(requests, request, out_what) =
    ccall(at_muster_manager_request_read[], muster_status, (Ptr{muster_queue}, UInt64, Ptr{muster_manager_request}), requests, request, out_what)

# Copies the ticket of a worker that is to be launched: one line of ASCII, its newline included.
const at_muster_manager_ticket = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_manager_ticket => at_muster_manager_ticket)
@inline muster_manager_ticket(requests, request, member, out_text, capacity, out_bytes) =
    ccall(at_muster_manager_ticket[], muster_status, (Ptr{muster_queue}, UInt64, UInt32, Ptr{UInt8}, Csize_t, Ptr{Csize_t}), requests, request, member, out_text, capacity, out_bytes)

# Reports that a worker of a LAUNCH was started.
const at_muster_manager_worker_ready = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_manager_worker_ready => at_muster_manager_worker_ready)
@inline muster_manager_worker_ready(requests, request, member, address, address_bytes, data, error) =
    ccall(at_muster_manager_worker_ready[], muster_status, (Ptr{muster_queue}, UInt64, UInt32, Ptr{UInt8}, Csize_t, UInt64, Ptr{muster_error}), requests, request, member, address, address_bytes, data, error)

# Reports that a worker of a LAUNCH could not be started.
const at_muster_manager_worker_failed = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_manager_worker_failed => at_muster_manager_worker_failed)
@inline muster_manager_worker_failed(requests, request, member, status, text, text_bytes, error) =
    ccall(at_muster_manager_worker_failed[], muster_status, (Ptr{muster_queue}, UInt64, UInt32, muster_status, Ptr{UInt8}, Csize_t, Ptr{muster_error}), requests, request, member, status, text, text_bytes, error)

# Reports that a worker has ended, as seen by the process that started it.
const at_muster_manager_worker_ended = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_manager_worker_ended => at_muster_manager_worker_ended)
@inline muster_manager_worker_ended(requests, cluster, member, text, text_bytes, error) =
    ccall(at_muster_manager_worker_ended[], muster_status, (Ptr{muster_queue}, Ptr{muster_cluster}, UInt32, Ptr{UInt8}, Csize_t, Ptr{muster_error}), requests, cluster, member, text, text_bytes, error)

# Answers any request but LAUNCH: it is done.
const at_muster_manager_request_done = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_manager_request_done => at_muster_manager_request_done)
@inline muster_manager_request_done(requests, request, address, address_bytes, error) =
    ccall(at_muster_manager_request_done[], muster_status, (Ptr{muster_queue}, UInt64, Ptr{UInt8}, Csize_t, Ptr{muster_error}), requests, request, address, address_bytes, error)

# Answers any request: it cannot be done.
const at_muster_manager_request_fail = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_manager_request_fail => at_muster_manager_request_fail)
@inline muster_manager_request_fail(requests, request, status, text, text_bytes) =
    ccall(at_muster_manager_request_fail[], muster_status, (Ptr{muster_queue}, UInt64, muster_status, Ptr{UInt8}, Csize_t), requests, request, status, text, text_bytes)
