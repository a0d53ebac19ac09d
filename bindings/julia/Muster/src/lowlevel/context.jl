# SPDX-License-Identifier: MIT
# Written by bindings/julia/generate from include/muster/context.h; do not edit.

# muster_context_flag: Flags of muster_context_config::flags.
const MUSTER_CONTEXT_EXTERNAL = UInt32(1)
const MUSTER_CONTEXT_NO_SEAL = UInt32(2)
const MUSTER_CONTEXT_SEAL_ALWAYS = UInt32(4)
const MUSTER_CONTEXT_NO_UPGRADE = UInt32(8)

# muster_log_level: Minimum severity of a log record.
const MUSTER_LOG_OFF = UInt32(0)
const MUSTER_LOG_ERROR = UInt32(1)
const MUSTER_LOG_WARN = UInt32(2)
const MUSTER_LOG_INFO = UInt32(3)
const MUSTER_LOG_DEBUG = UInt32(4)

struct muster_context end
struct muster_queue end

# How to start a context; all zero means the defaults named here.
struct muster_context_config # 72 bytes
    struct_size::UInt32
    flags::UInt32
    secret::Ptr{Cvoid}
    secret_bytes::UInt64
    secret_fd_plus_one::Int32
    max_unauthenticated::UInt32
    handshake_timeout_ns::Int64
    heartbeat_ns::Int64
    silent_ns::Int64
    dead_ns::Int64
    window_bytes::UInt64
end
muster_context_config(; flags = 0, secret = C_NULL, secret_bytes = 0, secret_fd_plus_one = 0, max_unauthenticated = 0, handshake_timeout_ns = 0, heartbeat_ns = 0, silent_ns = 0, dead_ns = 0, window_bytes = 0) =
    muster_context_config(sizeof(muster_context_config), flags, secret, secret_bytes, secret_fd_plus_one, max_unauthenticated, handshake_timeout_ns, heartbeat_ns, silent_ns, dead_ns, window_bytes)

# Counters of a context since its start.
struct muster_context_stats # 128 bytes
    loop_wakeups::UInt64
    mailbox_posts::UInt64
    streams_open::UInt64
    streams_made::UInt64
    handshakes_ok::UInt64
    handshakes_failed::UInt64
    bytes_in::UInt64
    bytes_out::UInt64
    upgrades::UInt64
    reserved::NTuple{7, UInt64}
end

# Starts a context: one progress engine and everything that is made from it.
const at_muster_context_create = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_context_create => at_muster_context_create)
@inline muster_context_create(config, out_context, error) =
    ccall(at_muster_context_create[], muster_status, (Ptr{muster_context_config}, Ptr{Ptr{muster_context}}, Ptr{muster_error}), config, out_context, error)

# Returns the context of this process, for programs that need only one: it is made at the first call, with all defaults, so its secret is in the environment (muster_context_config::secret).
const at_muster_context_default = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_context_default => at_muster_context_default)
@inline muster_context_default(out_context, error) =
    ccall(at_muster_context_default[], muster_status, (Ptr{Ptr{muster_context}}, Ptr{muster_error}), out_context, error)

# Ends a context in order: no new work, streams are closed, listeners stop, the thread ends.
const at_muster_context_close = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_context_close => at_muster_context_close)
@inline muster_context_close(context, timeout_ns) =
    ccall(at_muster_context_close[], muster_status, (Ptr{muster_context}, Int64), context, timeout_ns)

# Ends the waits of every thread that is inside one of these calls of this context now: muster_transport_dial(), muster_store_open(), muster_rendezvous_open(), muster_rendezvous_list(), muster_round_member(), muster_worker_start(), muster_process_wait(), muster_agent_wait(), muster_agent_flush(), muster_lease_end() and muster_store_server_close().
const at_muster_context_cancel = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_context_cancel => at_muster_context_cancel)
@inline muster_context_cancel(context) =
    ccall(at_muster_context_cancel[], muster_status, (Ptr{muster_context},), context)

# Releases one reference; the context ends with the last object that was made from it.
const at_muster_context_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_context_release => at_muster_context_release)
@inline muster_context_release(context) =
    ccall(at_muster_context_release[], Cvoid, (Ptr{muster_context},), context)

# Returns the descriptor to poll in external mode.
const at_muster_context_fd = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_context_fd => at_muster_context_fd)
@inline muster_context_fd(context, out_fd) =
    ccall(at_muster_context_fd[], muster_status, (Ptr{muster_context}, Ptr{Int32}), context, out_fd)

# Drives an external context: serves pending events, then waits for more up to the timeout.
const at_muster_context_progress = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_context_progress => at_muster_context_progress)
@inline muster_context_progress(context, timeout_ns) =
    ccall(at_muster_context_progress[], muster_status, (Ptr{muster_context}, Int64), context, timeout_ns)

# Copies the secret of the context, to be passed to a worker over a descriptor (never on a command line).
const at_muster_context_secret = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_context_secret => at_muster_context_secret)
@inline muster_context_secret(context, out_secret, capacity, out_bytes) =
    ccall(at_muster_context_secret[], muster_status, (Ptr{muster_context}, Ptr{Cvoid}, Csize_t, Ptr{Csize_t}), context, out_secret, capacity, out_bytes)

# Sends log records to a queue as ::MUSTER_EVENT_LOG; their text is in the error argument of muster_queue_next().
const at_muster_context_log = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_context_log => at_muster_context_log)
@inline muster_context_log(context, level, queue, tag) =
    ccall(at_muster_context_log[], muster_status, (Ptr{muster_context}, Int32, Ptr{muster_queue}, UInt64), context, level, queue, tag)

# Reads the counters of a context.
const at_muster_context_get_stats = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_context_get_stats => at_muster_context_get_stats)
@inline muster_context_get_stats(context, out_stats) =
    ccall(at_muster_context_get_stats[], muster_status, (Ptr{muster_context}, Ptr{muster_context_stats}), context, out_stats)
