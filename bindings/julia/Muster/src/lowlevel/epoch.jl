# SPDX-License-Identifier: MIT
# Written by bindings/julia/generate from include/muster/epoch.h; do not edit.

# muster_epoch_token_state: States of a token.
const MUSTER_EPOCH_TOKEN_FREE = UInt32(0)
const MUSTER_EPOCH_TOKEN_IN_USE = UInt32(1)
const MUSTER_EPOCH_TOKEN_ORPHANED = UInt32(2)
const MUSTER_EPOCH_TOKEN_ADOPTED = UInt32(3)

# muster_epoch_flags: Flags of a manager; bits of muster_epoch_config::flags.
const MUSTER_EPOCH_FENCED = UInt32(1)
const MUSTER_EPOCH_SHARED = UInt32(2)
const MUSTER_EPOCH_THREAD_BOUND = UInt32(4)

# muster_epoch_ready: Bits of muster_completion::events of a ::MUSTER_EVENT_READY with muster_epoch_config::tag.
const MUSTER_EPOCH_BLOCKED = UInt32(1)

# muster_epoch_outcome: What an attempt to advance the epoch found.
const MUSTER_EPOCH_ADVANCED = UInt32(1)
const MUSTER_EPOCH_LOST = UInt32(2)
const MUSTER_EPOCH_HELD = UInt32(3)

struct muster_epoch end

# Start of a token, for `inline/epoch.h` and compilers of other languages; the fields belong to the library.
struct muster_epoch_token # 40 bytes
    epoch::UInt64
    to_global::Int64
    depth::UInt64
    state::UInt64
    index::UInt32
    reserved::UInt32
end

# How to make a manager.
struct muster_epoch_config # 48 bytes
    struct_size::UInt32
    flags::UInt32
    max_tokens::UInt32
    max_pending::UInt32
    fd::Int32
    reserved::UInt32
    offset::UInt64
    queue::Ptr{muster_queue}
    tag::UInt64
end
muster_epoch_config(; flags = 0, max_tokens = 0, max_pending = 0, fd = 0, reserved = 0, offset = 0, queue = C_NULL, tag = 0) =
    muster_epoch_config(sizeof(muster_epoch_config), flags, max_tokens, max_pending, fd, reserved, offset, queue, tag)

# Result of muster_epoch_try_reclaim().
struct muster_epoch_attempt # 32 bytes
    outcome::Int32
    token::UInt32
    process::Int32
    thread::Int32
    since_ns::UInt64
    epoch::UInt64
end

# Counters of a manager.
struct muster_epoch_stats # 72 bytes
    epoch::UInt64
    deferred::UInt64
    freed::UInt64
    pending::UInt64
    tokens::UInt32
    orphaned::UInt32
    deaths::UInt32
    is_fenced::UInt32
    blocking_token::UInt32
    blocking_process::Int32
    blocking_thread::Int32
    reserved::UInt32
    blocked_ns::UInt64
end

# Computes the memory that a shared manager occupies.
const at_muster_epoch_size = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_epoch_size => at_muster_epoch_size)
@inline muster_epoch_size(max_tokens, max_pending) =
    ccall(at_muster_epoch_size[], UInt64, (UInt32, UInt32), max_tokens, max_pending)

# Makes a manager.
const at_muster_epoch_create = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_epoch_create => at_muster_epoch_create)
@inline muster_epoch_create(config, out_epoch, error) =
    ccall(at_muster_epoch_create[], muster_status, (Ptr{muster_epoch_config}, Ptr{Ptr{muster_epoch}}, Ptr{muster_error}), config, out_epoch, error)

# Opens a manager that another process has made in shared memory.
const at_muster_epoch_open = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_epoch_open => at_muster_epoch_open)
@inline muster_epoch_open(config, out_epoch, error) =
    ccall(at_muster_epoch_open[], muster_status, (Ptr{muster_epoch_config}, Ptr{Ptr{muster_epoch}}, Ptr{muster_error}), config, out_epoch, error)

# Gives up the reference to a manager.
const at_muster_epoch_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_epoch_release => at_muster_epoch_release)
@inline muster_epoch_release(epoch) =
    ccall(at_muster_epoch_release[], Cvoid, (Ptr{muster_epoch},), epoch)

# Registers a token.
const at_muster_epoch_register = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_epoch_register => at_muster_epoch_register)
@inline muster_epoch_register(epoch, out_token, error) =
    ccall(at_muster_epoch_register[], muster_status, (Ptr{muster_epoch}, Ptr{Ptr{muster_epoch_token}}, Ptr{muster_error}), epoch, out_token, error)

# Unregisters a token: it is unpinned, its protected objects are released, and its deferred objects are freed by the polls of other tokens.
const at_muster_epoch_unregister = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_epoch_unregister => at_muster_epoch_unregister)
@inline muster_epoch_unregister(token) =
    ccall(at_muster_epoch_unregister[], muster_status, (Ptr{muster_epoch_token},), token)

# Pins a token: objects that are reached from now on stay valid until it is unpinned.
const at_muster_epoch_pin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_epoch_pin => at_muster_epoch_pin)
@inline muster_epoch_pin(token) =
    ccall(at_muster_epoch_pin[], muster_status, (Ptr{muster_epoch_token},), token)

# Ends one pin.
const at_muster_epoch_unpin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_epoch_unpin => at_muster_epoch_unpin)
@inline muster_epoch_unpin(token) =
    ccall(at_muster_epoch_unpin[], muster_status, (Ptr{muster_epoch_token},), token)

# Pins a pinned token at the current epoch: a reader that stays long lets the epoch advance.
const at_muster_epoch_repin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_epoch_repin => at_muster_epoch_repin)
@inline muster_epoch_repin(token) =
    ccall(at_muster_epoch_repin[], muster_status, (Ptr{muster_epoch_token},), token)

# Form for event loops: a token that is online is pinned between two calls of muster_epoch_quiescent().
const at_muster_epoch_online = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_epoch_online => at_muster_epoch_online)
@inline muster_epoch_online(token) =
    ccall(at_muster_epoch_online[], muster_status, (Ptr{muster_epoch_token},), token)

# Says, once per turn of a loop, that nothing that was reached before is used any more; the same as muster_epoch_repin().
const at_muster_epoch_quiescent = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_epoch_quiescent => at_muster_epoch_quiescent)
@inline muster_epoch_quiescent(token) =
    ccall(at_muster_epoch_quiescent[], muster_status, (Ptr{muster_epoch_token},), token)

# Takes a token offline, before its loop waits.
const at_muster_epoch_offline = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_epoch_offline => at_muster_epoch_offline)
@inline muster_epoch_offline(token) =
    ccall(at_muster_epoch_offline[], muster_status, (Ptr{muster_epoch_token},), token)

# Protects one object beyond the pin: a reader that stays long protects what it goes on using and unpins.
const at_muster_epoch_protect = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_epoch_protect => at_muster_epoch_protect)
@inline muster_epoch_protect(token, slot, object) =
    ccall(at_muster_epoch_protect[], muster_status, (Ptr{muster_epoch_token}, UInt32, UInt64), token, slot, object)

# Defers the end of an object that no shared structure refers to any more.
const at_muster_epoch_defer = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_epoch_defer => at_muster_epoch_defer)
@inline muster_epoch_defer(token, free, user, object) =
    ccall(at_muster_epoch_defer[], muster_status, (Ptr{muster_epoch_token}, Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}), token, free, user, object)

# Defers an object that muster_epoch_poll() hands back: for runtimes that free their own objects, and for shared memory.
const at_muster_epoch_retire = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_epoch_retire => at_muster_epoch_retire)
@inline muster_epoch_retire(token, object) =
    ccall(at_muster_epoch_retire[], muster_status, (Ptr{muster_epoch_token}, UInt64), token, object)

# Tries to advance the epoch by one.
const at_muster_epoch_try_reclaim = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_epoch_try_reclaim => at_muster_epoch_try_reclaim)
@inline muster_epoch_try_reclaim(token, out) =
    ccall(at_muster_epoch_try_reclaim[], muster_status, (Ptr{muster_epoch_token}, Ptr{muster_epoch_attempt}), token, out)

# The same for a thread without a token.
const at_muster_epoch_advance = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_epoch_advance => at_muster_epoch_advance)
@inline muster_epoch_advance(epoch, out) =
    ccall(at_muster_epoch_advance[], muster_status, (Ptr{muster_epoch}, Ptr{muster_epoch_attempt}), epoch, out)

# Frees objects whose time has come: those of the token, then those of tokens without owner.
const at_muster_epoch_poll = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_epoch_poll => at_muster_epoch_poll)
@inline muster_epoch_poll(token, max_objects, max_ns, out_objects, out_capacity, out_count, out_freed) =
    ccall(at_muster_epoch_poll[], muster_status, (Ptr{muster_epoch_token}, UInt32, UInt64, Ptr{UInt64}, UInt32, Ptr{UInt32}, Ptr{UInt32}), token, max_objects, max_ns, out_objects, out_capacity, out_count, out_freed)

# Waits until every token that is pinned now was unpinned or pinned again (synchronize_rcu of liburcu).
const at_muster_epoch_synchronize = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_epoch_synchronize => at_muster_epoch_synchronize)
@inline muster_epoch_synchronize(token, timeout_ns, out) =
    ccall(at_muster_epoch_synchronize[], muster_status, (Ptr{muster_epoch_token}, Int64, Ptr{muster_epoch_attempt}), token, timeout_ns, out)

# Waits until the functions of all objects that this token has deferred were called (rcu_barrier of liburcu).
const at_muster_epoch_barrier = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_epoch_barrier => at_muster_epoch_barrier)
@inline muster_epoch_barrier(token, timeout_ns) =
    ccall(at_muster_epoch_barrier[], muster_status, (Ptr{muster_epoch_token}, Int64), token, timeout_ns)

# Calls the functions of all deferred objects now, without waiting for an epoch: the end of a structure that no thread uses any more.
const at_muster_epoch_clear = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_epoch_clear => at_muster_epoch_clear)
@inline muster_epoch_clear(epoch, out_freed) =
    ccall(at_muster_epoch_clear[], muster_status, (Ptr{muster_epoch}, Ptr{UInt64}), epoch, out_freed)

# Returns the counters of a manager.
const at_muster_epoch_get_stats = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_epoch_get_stats => at_muster_epoch_get_stats)
@inline muster_epoch_get_stats(epoch, out_stats) =
    ccall(at_muster_epoch_get_stats[], muster_status, (Ptr{muster_epoch}, Ptr{muster_epoch_stats}), epoch, out_stats)
