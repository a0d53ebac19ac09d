# SPDX-License-Identifier: MIT
# Written by bindings/julia/generate from include/muster/stream.h; do not edit.

# muster_stream_event: Events of a stream; bits of muster_completion::events.
const MUSTER_STREAM_READABLE = UInt32(1)
const MUSTER_STREAM_WRITABLE = UInt32(2)
const MUSTER_STREAM_PEER_SILENT = UInt32(4)
const MUSTER_STREAM_PEER_BACK = UInt32(8)
const MUSTER_STREAM_ENDED = UInt32(16)

# muster_stream_direction: Directions, for muster_stream_cancel().
const MUSTER_STREAM_READ = UInt32(1)
const MUSTER_STREAM_WRITE = UInt32(2)

# muster_stream_read_flag: Flags of muster_stream_read_into() and muster_stream_read_begin().
const MUSTER_STREAM_HUGE_PAGES = UInt32(1)

struct muster_stream end

# How to make a pair of streams; all zero means the defaults named here.
struct muster_stream_config # 16 bytes
    struct_size::UInt32
    flags::UInt32
    window_bytes::UInt64
end
muster_stream_config(; flags = 0, window_bytes = 0) =
    muster_stream_config(sizeof(muster_stream_config), flags, window_bytes)

# Counters of a stream since its start.
struct muster_stream_stats # 128 bytes
    bytes_in::UInt64
    bytes_out::UInt64
    buffered_in::UInt64
    buffered_out::UInt64
    reads::UInt64
    writes::UInt64
    waits::UInt64
    wakeups::UInt64
    spins_won::UInt64
    spins_lost::UInt64
    caller_io::UInt64
    loop_io::UInt64
    last_received_ns::UInt64
    multicast_group::UInt64
    round_trip_ns::UInt64
    reserved::UInt64
end

# Makes two connected ends in this process: what is written to one is read from the other.
const at_muster_stream_pair = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_pair => at_muster_stream_pair)
@inline muster_stream_pair(context, config, out_first, out_second, error) =
    ccall(at_muster_stream_pair[], muster_status, (Ptr{muster_context}, Ptr{muster_stream_config}, Ptr{Ptr{muster_stream}}, Ptr{Ptr{muster_stream}}, Ptr{muster_error}), context, config, out_first, out_second, error)

# Writes bytes; returns when all were accepted (copied or sent), not when the peer has read them.
const at_muster_stream_write = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_write => at_muster_stream_write)
@inline muster_stream_write(stream, data, size_bytes, timeout_ns, out_bytes) =
    ccall(at_muster_stream_write[], muster_status, (Ptr{muster_stream}, Ptr{Cvoid}, Csize_t, Int64, Ptr{Csize_t}), stream, data, size_bytes, timeout_ns, out_bytes)

# Writes the same bytes to many streams: to each it is one muster_stream_write() of all of them, but the bytes are read from memory once, piece by piece, and the slowest stream determines the speed of all.
const at_muster_stream_write_many = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_write_many => at_muster_stream_write_many)
@inline muster_stream_write_many(streams, count, data, size_bytes, timeout_ns, out_statuses, out_bytes) =
    ccall(at_muster_stream_write_many[], muster_status, (Ptr{Ptr{muster_stream}}, UInt32, Ptr{Cvoid}, Csize_t, Int64, Ptr{muster_status}, Ptr{Csize_t}), streams, count, data, size_bytes, timeout_ns, out_statuses, out_bytes)

# Writes a buffer without copying it.
const at_muster_stream_write_owned = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_write_owned => at_muster_stream_write_owned)
@inline muster_stream_write_owned(stream, data, size_bytes, queue, tag) =
    ccall(at_muster_stream_write_owned[], muster_status, (Ptr{muster_stream}, Ptr{Cvoid}, Csize_t, Ptr{muster_queue}, UInt64), stream, data, size_bytes, queue, tag)

# Writes one buffer to many streams without copying it: for each stream as one muster_stream_write_owned() of all of it, with a release of its own.
const at_muster_stream_write_owned_many = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_write_owned_many => at_muster_stream_write_owned_many)
@inline muster_stream_write_owned_many(streams, count, data, size_bytes, queue, tags, out_statuses) =
    ccall(at_muster_stream_write_owned_many[], muster_status, (Ptr{Ptr{muster_stream}}, UInt32, Ptr{Cvoid}, Csize_t, Ptr{muster_queue}, Ptr{UInt64}, Ptr{muster_status}), streams, count, data, size_bytes, queue, tags, out_statuses)

# Reserves room inside the outgoing buffer, to be filled in place and sent by muster_stream_commit().
const at_muster_stream_reserve = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_reserve => at_muster_stream_reserve)
@inline muster_stream_reserve(stream, min_bytes, timeout_ns, out_data, out_bytes) =
    ccall(at_muster_stream_reserve[], muster_status, (Ptr{muster_stream}, Csize_t, Int64, Ptr{Ptr{Cvoid}}, Ptr{Csize_t}), stream, min_bytes, timeout_ns, out_data, out_bytes)

# Sends the first bytes of a reservation.
const at_muster_stream_commit = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_commit => at_muster_stream_commit)
@inline muster_stream_commit(stream, size_bytes) =
    ccall(at_muster_stream_commit[], muster_status, (Ptr{muster_stream}, Csize_t), stream, size_bytes)

# Waits until every byte accepted so far has left this process (for shared memory and pairs: can be read by the peer).
const at_muster_stream_flush = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_flush => at_muster_stream_flush)
@inline muster_stream_flush(stream, timeout_ns) =
    ccall(at_muster_stream_flush[], muster_status, (Ptr{muster_stream}, Int64), stream, timeout_ns)

# Begins to flush, as muster_stream_flush() does; ::MUSTER_DONE_CALL has its status.
const at_muster_stream_flush_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_flush_begin => at_muster_stream_flush_begin)
@inline muster_stream_flush_begin(stream, timeout_ns, queue, tag, error) =
    ccall(at_muster_stream_flush_begin[], muster_status, (Ptr{muster_stream}, Int64, Ptr{muster_queue}, UInt64, Ptr{muster_error}), stream, timeout_ns, queue, tag, error)

# Reads the bytes that have arrived, at least one.
const at_muster_stream_read = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_read => at_muster_stream_read)
@inline muster_stream_read(stream, out_data, capacity_bytes, timeout_ns, out_bytes) =
    ccall(at_muster_stream_read[], muster_status, (Ptr{muster_stream}, Ptr{Cvoid}, Csize_t, Int64, Ptr{Csize_t}), stream, out_data, capacity_bytes, timeout_ns, out_bytes)

# Reads exactly the requested number of bytes, directly into the memory of the caller.
const at_muster_stream_read_into = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_read_into => at_muster_stream_read_into)
@inline muster_stream_read_into(stream, out_data, size_bytes, flags, timeout_ns, out_bytes) =
    ccall(at_muster_stream_read_into[], muster_status, (Ptr{muster_stream}, Ptr{Cvoid}, Csize_t, UInt32, Int64, Ptr{Csize_t}), stream, out_data, size_bytes, flags, timeout_ns, out_bytes)

# Begins to read exactly the requested number of bytes; the engine fills the caller's memory, and ::MUSTER_DONE_READ has the count and the status.
const at_muster_stream_read_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_read_begin => at_muster_stream_read_begin)
@inline muster_stream_read_begin(stream, out_data, size_bytes, flags, queue, tag) =
    ccall(at_muster_stream_read_begin[], muster_status, (Ptr{muster_stream}, Ptr{Cvoid}, Csize_t, UInt32, Ptr{muster_queue}, UInt64), stream, out_data, size_bytes, flags, queue, tag)

# Returns a pointer to received bytes, without consuming them.
const at_muster_stream_peek = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_peek => at_muster_stream_peek)
@inline muster_stream_peek(stream, min_bytes, timeout_ns, out_data, out_bytes) =
    ccall(at_muster_stream_peek[], muster_status, (Ptr{muster_stream}, Csize_t, Int64, Ptr{Ptr{Cvoid}}, Ptr{Csize_t}), stream, min_bytes, timeout_ns, out_data, out_bytes)

# Consumes the first of the bytes that muster_stream_peek() returned.
const at_muster_stream_consume = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_consume => at_muster_stream_consume)
@inline muster_stream_consume(stream, size_bytes) =
    ccall(at_muster_stream_consume[], muster_status, (Ptr{muster_stream}, Csize_t), stream, size_bytes)

# Finishes writing (half-close): the peer reads everything and then ::MUSTER_E_END; this side can still read.
const at_muster_stream_finish = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_finish => at_muster_stream_finish)
@inline muster_stream_finish(stream) =
    ccall(at_muster_stream_finish[], muster_status, (Ptr{muster_stream},), stream)

# Ends both directions at once and notifies the peer of the reason.
const at_muster_stream_abort = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_abort => at_muster_stream_abort)
@inline muster_stream_abort(stream, reason, text, text_bytes) =
    ccall(at_muster_stream_abort[], muster_status, (Ptr{muster_stream}, UInt64, Ptr{UInt8}, Csize_t), stream, reason, text, text_bytes)

# Closes in order: finishes writing, waits until everything has left, then ends.
const at_muster_stream_close = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_close => at_muster_stream_close)
@inline muster_stream_close(stream, timeout_ns) =
    ccall(at_muster_stream_close[], muster_status, (Ptr{muster_stream}, Int64), stream, timeout_ns)

# Begins to close, as muster_stream_close() does; ::MUSTER_DONE_CALL has its status.
const at_muster_stream_close_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_close_begin => at_muster_stream_close_begin)
@inline muster_stream_close_begin(stream, timeout_ns, queue, tag, error) =
    ccall(at_muster_stream_close_begin[], muster_status, (Ptr{muster_stream}, Int64, Ptr{muster_queue}, UInt64, Ptr{muster_error}), stream, timeout_ns, queue, tag, error)

# Releases the handle; the stream closes as by muster_stream_close() with no wait.
const at_muster_stream_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_release => at_muster_stream_release)
@inline muster_stream_release(stream) =
    ccall(at_muster_stream_release[], Cvoid, (Ptr{muster_stream},), stream)

# Cancels the waits and operations in one or both directions: they end with ::MUSTER_E_CANCELED.
const at_muster_stream_cancel = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_cancel => at_muster_stream_cancel)
@inline muster_stream_cancel(stream, directions) =
    ccall(at_muster_stream_cancel[], muster_status, (Ptr{muster_stream}, UInt32), stream, directions)

# Watches a stream: ::MUSTER_EVENT_READY appears in the queue when it becomes ready for an event of interest.
const at_muster_stream_watch = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_watch => at_muster_stream_watch)
@inline muster_stream_watch(stream, interest, queue, tag) =
    ccall(at_muster_stream_watch[], muster_status, (Ptr{muster_stream}, UInt32, Ptr{muster_queue}, UInt64), stream, interest, queue, tag)

# Returns the reason why a stream ended.
const at_muster_stream_reason = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_reason => at_muster_stream_reason)
@inline muster_stream_reason(stream, out_reason, error) =
    ccall(at_muster_stream_reason[], muster_status, (Ptr{muster_stream}, Ptr{UInt64}, Ptr{muster_error}), stream, out_reason, error)

# Copies the name of the peer: the address that was dialled, or from which the connection was made.
const at_muster_stream_peer = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_peer => at_muster_stream_peer)
@inline muster_stream_peer(stream, out_text, capacity, out_bytes) =
    ccall(at_muster_stream_peer[], muster_status, (Ptr{muster_stream}, Ptr{UInt8}, Csize_t, Ptr{Csize_t}), stream, out_text, capacity, out_bytes)

# Copies the address at which this end of a stream of tcp has its socket, such as `tcp://10.0.0.7:41022`: what getsockname() gives.
const at_muster_stream_local_address = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_local_address => at_muster_stream_local_address)
@inline muster_stream_local_address(stream, out_text, capacity, out_bytes) =
    ccall(at_muster_stream_local_address[], muster_status, (Ptr{muster_stream}, Ptr{UInt8}, Csize_t, Ptr{Csize_t}), stream, out_text, capacity, out_bytes)

# Ends this process when the peer of this stream, or the connection to it, is gone: SIGTERM to itself from a library thread, then SIGKILL.
const at_muster_stream_exit_with_peer = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_exit_with_peer => at_muster_stream_exit_with_peer)
@inline muster_stream_exit_with_peer(stream, grace_ns) =
    ccall(at_muster_stream_exit_with_peer[], muster_status, (Ptr{muster_stream}, Int64), stream, grace_ns)

# Reads the counters of a stream.
const at_muster_stream_get_stats = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_get_stats => at_muster_stream_get_stats)
@inline muster_stream_get_stats(stream, out_stats) =
    ccall(at_muster_stream_get_stats[], muster_status, (Ptr{muster_stream}, Ptr{muster_stream_stats}), stream, out_stats)
