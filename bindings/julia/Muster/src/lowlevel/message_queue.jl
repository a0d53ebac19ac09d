# SPDX-License-Identifier: MIT
# Written by bindings/julia/generate from include/muster/message_queue.h; do not edit.

# muster_message_queue_ready: Readiness of a message queue; bits of muster_completion::events of ::MUSTER_EVENT_READY.
const MUSTER_MESSAGE_QUEUE_FILLED = UInt32(1)
const MUSTER_MESSAGE_QUEUE_HAS_ROOM = UInt32(2)

struct muster_message_queue end

# How to make a message queue.
struct muster_message_queue_config # 40 bytes
    struct_size::UInt32
    flags::UInt32
    max_messages::UInt32
    reserved::UInt32
    max_bytes::UInt64
    queue::Ptr{muster_queue}
    tag::UInt64
end
muster_message_queue_config(; flags = 0, max_messages = 0, reserved = 0, max_bytes = 0, queue = C_NULL, tag = 0) =
    muster_message_queue_config(sizeof(muster_message_queue_config), flags, max_messages, reserved, max_bytes, queue, tag)

# Counters of a message queue since it was created.
struct muster_message_queue_stats # 64 bytes
    messages::UInt64
    bytes::UInt64
    pushed::UInt64
    popped::UInt64
    full::UInt64
    reserved::NTuple{3, UInt64}
end

# Makes a message queue.
const at_muster_message_queue_create = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_message_queue_create => at_muster_message_queue_create)
@inline muster_message_queue_create(context, config, out_queue, error) =
    ccall(at_muster_message_queue_create[], muster_status, (Ptr{muster_context}, Ptr{muster_message_queue_config}, Ptr{Ptr{muster_message_queue}}, Ptr{muster_error}), context, config, out_queue, error)

# Appends a message.
const at_muster_message_queue_push = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_message_queue_push => at_muster_message_queue_push)
@inline muster_message_queue_push(queue, message, timeout_ns) =
    ccall(at_muster_message_queue_push[], muster_status, (Ptr{muster_message_queue}, Ptr{muster_message}, Int64), queue, message, timeout_ns)

# Takes the first message.
const at_muster_message_queue_pop = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_message_queue_pop => at_muster_message_queue_pop)
@inline muster_message_queue_pop(queue, timeout_ns, out_message) =
    ccall(at_muster_message_queue_pop[], muster_status, (Ptr{muster_message_queue}, Int64, Ptr{Ptr{muster_message}}), queue, timeout_ns, out_message)

# Returns the counters of a message queue.
const at_muster_message_queue_get_stats = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_message_queue_get_stats => at_muster_message_queue_get_stats)
@inline muster_message_queue_get_stats(queue, out_stats) =
    ccall(at_muster_message_queue_get_stats[], muster_status, (Ptr{muster_message_queue}, Ptr{muster_message_queue_stats}), queue, out_stats)

# Ends the calls that wait on a message queue now: they return ::MUSTER_E_CANCELED.
const at_muster_message_queue_cancel = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_message_queue_cancel => at_muster_message_queue_cancel)
@inline muster_message_queue_cancel(queue) =
    ccall(at_muster_message_queue_cancel[], muster_status, (Ptr{muster_message_queue},), queue)

# Closes a message queue: nothing can be pushed any more, and what it has can still be popped.
const at_muster_message_queue_close = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_message_queue_close => at_muster_message_queue_close)
@inline muster_message_queue_close(queue) =
    ccall(at_muster_message_queue_close[], muster_status, (Ptr{muster_message_queue},), queue)

# Closes and releases a message queue.
const at_muster_message_queue_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_message_queue_release => at_muster_message_queue_release)
@inline muster_message_queue_release(queue) =
    ccall(at_muster_message_queue_release[], Cvoid, (Ptr{muster_message_queue},), queue)
