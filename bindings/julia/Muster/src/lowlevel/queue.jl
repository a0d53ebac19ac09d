# SPDX-License-Identifier: MIT
# Written by bindings/julia/generate from include/muster/queue.h; do not edit.

# muster_completion_kind: The kind of an entry; the value of muster_completion::kind.
const MUSTER_DONE_READ = Int32(1)
const MUSTER_DONE_RELEASED = Int32(2)
const MUSTER_DONE_DIAL = Int32(3)
const MUSTER_DONE_EXIT = Int32(4)
const MUSTER_DONE_USER = Int32(5)
const MUSTER_DONE_STORE = Int32(6)
const MUSTER_DONE_LEASE = Int32(7)
const MUSTER_DONE_RENDEZVOUS = Int32(8)
const MUSTER_DONE_AGENT = Int32(9)
const MUSTER_DONE_BROADCAST = Int32(10)
const MUSTER_DONE_OPEN = Int32(11)
const MUSTER_DONE_CALL = Int32(12)
const MUSTER_DONE_LISTEN = Int32(13)
const MUSTER_DONE_MESSAGE = Int32(14)
const MUSTER_DONE_AM = Int32(15)
const MUSTER_DONE_MEMORY = Int32(18)
const MUSTER_EVENT_READY = Int32(16)
const MUSTER_EVENT_LOG = Int32(17)
const MUSTER_EVENT_AGENT = Int32(19)
const MUSTER_REQUEST_OPEN = Int32(32)
const MUSTER_REQUEST_LISTEN = Int32(33)
const MUSTER_REQUEST_CLOSE = Int32(34)
const MUSTER_REQUEST_CANCEL = Int32(35)
const MUSTER_REQUEST_STORE = Int32(36)
const MUSTER_REQUEST_RENDEZVOUS = Int32(37)
const MUSTER_REQUEST_MANAGER = Int32(38)
const MUSTER_REQUEST_AM = Int32(39)

# muster_queue_fd_event: Events of a descriptor of the host; bits of muster_completion::events.
const MUSTER_QUEUE_FD_READABLE = UInt32(1)
const MUSTER_QUEUE_FD_WRITABLE = UInt32(2)
const MUSTER_QUEUE_FD_ENDED = UInt32(4)

# One entry taken off a queue; 64 bytes.
struct muster_completion # 64 bytes
    kind::Int32
    status::muster_status
    tag::UInt64
    object::Ptr{Cvoid}
    bytes::UInt64
    request::UInt64
    events::UInt32
    reserved::NTuple{5, UInt32}
end

# How to make a queue; all zero means the defaults named here.
struct muster_queue_config # 16 bytes
    struct_size::UInt32
    flags::UInt32
    capacity::UInt32
    reserved::UInt32
end
muster_queue_config(; flags = 0, capacity = 0, reserved = 0) =
    muster_queue_config(sizeof(muster_queue_config), flags, capacity, reserved)

# Counters of a queue since its start.
struct muster_queue_stats # 64 bytes
    depth::UInt64
    outstanding::UInt64
    taken::UInt64
    wakeups::UInt64
    log_dropped::UInt64
    reserved::NTuple{3, UInt64}
end

# Makes a completion queue.
const at_muster_queue_create = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_queue_create => at_muster_queue_create)
@inline muster_queue_create(context, config, out_queue, error) =
    ccall(at_muster_queue_create[], muster_status, (Ptr{muster_context}, Ptr{muster_queue_config}, Ptr{Ptr{muster_queue}}, Ptr{muster_error}), context, config, out_queue, error)

# Takes the oldest entry off a queue.
const at_muster_queue_next = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_queue_next => at_muster_queue_next)
@inline muster_queue_next(queue, timeout_ns, out, error) =
    ccall(at_muster_queue_next[], muster_status, (Ptr{muster_queue}, Int64, Ptr{muster_completion}, Ptr{muster_error}), queue, timeout_ns, out, error)

# Takes entries off a queue and runs callbacks for them on this thread: requests are passed to the table with which their transport was registered, all other entries to the handler.
const at_muster_queue_dispatch = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_queue_dispatch => at_muster_queue_dispatch)
@inline muster_queue_dispatch(queue, timeout_ns, handler, user, out_count) =
    ccall(at_muster_queue_dispatch[], muster_status, (Ptr{muster_queue}, Int64, Ptr{Cvoid}, Ptr{Cvoid}, Ptr{UInt64}), queue, timeout_ns, handler, user, out_count)

# Ends the wait of every thread that is inside muster_queue_next() or muster_queue_dispatch() now.
const at_muster_queue_cancel = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_queue_cancel => at_muster_queue_cancel)
@inline muster_queue_cancel(queue) =
    ccall(at_muster_queue_cancel[], muster_status, (Ptr{muster_queue},), queue)

# Cancels the operations that were begun with this queue and this tag.
const at_muster_queue_cancel_operation = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_queue_cancel_operation => at_muster_queue_cancel_operation)
@inline muster_queue_cancel_operation(queue, tag) =
    ccall(at_muster_queue_cancel_operation[], muster_status, (Ptr{muster_queue}, UInt64), queue, tag)

# Adds an entry of the caller to a queue, for instance to wake a waiter with a message.
const at_muster_queue_post = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_queue_post => at_muster_queue_post)
@inline muster_queue_post(queue, tag, value) =
    ccall(at_muster_queue_post[], muster_status, (Ptr{muster_queue}, UInt64, UInt64), queue, tag, value)

# Returns a descriptor that polls readable while the queue may have entries.
const at_muster_queue_fd = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_queue_fd => at_muster_queue_fd)
@inline muster_queue_fd(queue, out_fd) =
    ccall(at_muster_queue_fd[], muster_status, (Ptr{muster_queue}, Ptr{Int32}), queue, out_fd)

# Watches a descriptor of the host: a socket, a pipe, an eventfd, anything that poll() accepts.
const at_muster_queue_watch_fd = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_queue_watch_fd => at_muster_queue_watch_fd)
@inline muster_queue_watch_fd(queue, fd, events, tag, error) =
    ccall(at_muster_queue_watch_fd[], muster_status, (Ptr{muster_queue}, Int32, UInt32, UInt64, Ptr{muster_error}), queue, fd, events, tag, error)

# Ends the watch of a descriptor: after return, no event of it will be taken.
const at_muster_queue_unwatch_fd = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_queue_unwatch_fd => at_muster_queue_unwatch_fd)
@inline muster_queue_unwatch_fd(queue, fd) =
    ccall(at_muster_queue_unwatch_fd[], muster_status, (Ptr{muster_queue}, Int32), queue, fd)

# Sets a function that is called when a queue turns from empty to non-empty.
const at_muster_queue_set_wake = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_queue_set_wake => at_muster_queue_set_wake)
@inline muster_queue_set_wake(queue, wake, user) =
    ccall(at_muster_queue_set_wake[], muster_status, (Ptr{muster_queue}, Ptr{Cvoid}, Ptr{Cvoid}), queue, wake, user)

# Closes a queue: no further operations are accepted, its entries can still be taken, waiters return.
const at_muster_queue_close = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_queue_close => at_muster_queue_close)
@inline muster_queue_close(queue) =
    ccall(at_muster_queue_close[], muster_status, (Ptr{muster_queue},), queue)

# Releases the handle.
const at_muster_queue_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_queue_release => at_muster_queue_release)
@inline muster_queue_release(queue) =
    ccall(at_muster_queue_release[], Cvoid, (Ptr{muster_queue},), queue)

# Reads the counters of a queue.
const at_muster_queue_get_stats = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_queue_get_stats => at_muster_queue_get_stats)
@inline muster_queue_get_stats(queue, out_stats) =
    ccall(at_muster_queue_get_stats[], muster_status, (Ptr{muster_queue}, Ptr{muster_queue_stats}), queue, out_stats)
