# SPDX-License-Identifier: MIT
# Epoch-based reclamation: when may memory be used again that other tasks or processes may still read?

"""
    Muster.Epoch(; max_tokens = 0, max_pending = 0, fenced = false, fd = nothing, offset = 0)

A manager of epochs; 0 is a default of `muster_epoch_config`. With `fd` it is in memory that processes share, of
`Muster.epoch_size(max_tokens, max_pending)` zero bytes at `offset`; other processes call [`Muster.open_epoch`](@ref).

    epoch = Muster.Epoch()
    token = Muster.register(epoch)
    Muster.pinned(token) do
        # what is reached here stays valid until the end of the block
    end
    Muster.retire!(token, node)                       # a node that is not linked any more ...
    for node in Muster.poll!(token) ... end           # ... and here nothing reads it any more
"""
mutable struct Epoch
    handle::Ptr{LowLevel.muster_epoch}
    lock::ReentrantLock
    values::Dict{UInt64,Any} # what was deferred, by its number
    next::UInt64
    function Epoch(config::LowLevel.muster_epoch_config, opens::Bool)
        made, detail, given = Ref{Ptr{LowLevel.muster_epoch}}(C_NULL), blank_error(), Ref(config)
        status = opens ? LowLevel.muster_epoch_open(given, made, detail) : LowLevel.muster_epoch_create(given, made, detail)
        check(status, detail, opens ? "open a manager of epochs" : "make a manager of epochs")
        e = new(made[], ReentrantLock(), Dict{UInt64,Any}(), FIRST_VALUE)
        finalizer(e -> LowLevel.muster_epoch_release(e.handle), e)
        return e
    end
end

const FIRST_VALUE = UInt64(1) << 63 # numbers from here on stand for values of Julia

epoch_flags(fenced::Bool, shared::Bool) =
    (fenced ? LowLevel.MUSTER_EPOCH_FENCED : UInt32(0)) | (shared ? LowLevel.MUSTER_EPOCH_SHARED : UInt32(0))

Epoch(; max_tokens::Integer = 0, max_pending::Integer = 0, fenced::Bool = false, fd = nothing, offset::Integer = 0) =
    Epoch(LowLevel.muster_epoch_config(flags = epoch_flags(fenced, fd !== nothing), max_tokens = max_tokens,
        max_pending = max_pending, fd = descriptor_of(fd), offset = offset), false)

"""
    Muster.open_epoch(fd; offset = 0) -> Muster.Epoch

A manager that another process has made. `fd` is a descriptor, or an open file.
"""
open_epoch(fd; offset::Integer = 0) = Epoch(LowLevel.muster_epoch_config(flags = epoch_flags(false, true),
    fd = descriptor_of(fd), offset = offset), true)

descriptor_of(::Nothing) = Int32(0)
descriptor_of(x::Integer) = Int32(x)
descriptor_of(x::IO) = Int32(fd(x))

"""
    Muster.epoch_size(max_tokens = 0, max_pending = 0)

Bytes of a manager in shared memory, a multiple of the page size.
"""
epoch_size(max_tokens::Integer = 0, max_pending::Integer = 0) = Int(LowLevel.muster_epoch_size(max_tokens, max_pending))

"""
    Muster.stats(epoch)

The counters of `muster_epoch_stats`.
"""
function stats(e::Epoch)
    out = zeroed(LowLevel.muster_epoch_stats)
    GC.@preserve e check(LowLevel.muster_epoch_get_stats(e.handle, out), "count objects")
    return out[]
end

Base.show(io::IO, e::Epoch) = print(io, "Muster.Epoch()")
# A released manager is recognised by the library. Its tokens remain valid.
Base.close(e::Epoch) = LowLevel.muster_epoch_release(e.handle)

"""
    Muster.register(epoch) -> Muster.EpochToken

One task uses a token at a time, on whatever thread. `close(token)` hands its objects to the other tokens.
"""
mutable struct EpochToken{Owner} # an Epoch, or a GlobalMemory
    raw::Ptr{LowLevel.muster_epoch_token}
    epoch::Owner
end

function register(e::Epoch)
    place, detail = Ref{Ptr{LowLevel.muster_epoch_token}}(C_NULL), blank_error()
    GC.@preserve e check(LowLevel.muster_epoch_register(e.handle, place, detail), detail, "register a token")
    return finalizer(close, EpochToken(place[], e))
end

function Base.close(t::EpochToken)
    raw, t.raw = t.raw, C_NULL
    raw == C_NULL || LowLevel.muster_epoch_unregister(raw)
    return nothing
end
Base.isopen(t::EpochToken) = t.raw != C_NULL
Base.show(io::IO, t::EpochToken) = print(io, "Muster.EpochToken(", isopen(t) ? "" : "closed", ")")

# f(token of C), which stays registered meanwhile.
@inline function with_token(f, t::EpochToken, what)
    t.raw == C_NULL && throw(MusterError(LowLevel.MUSTER_E_CLOSED, what))
    return GC.@preserve t f(t.raw)
end

pin(t::EpochToken) = with_token(raw -> check(LowLevel.muster_epoch_pin(raw), "pin a token"), t, "pin a token")
unpin(t::EpochToken) = with_token(raw -> check(LowLevel.muster_epoch_unpin(raw), "unpin a token"), t, "unpin a token")

"""
    Muster.pinned(f, token)

Calls `f()` while the token is pinned: what it reaches stays valid until it returns or throws. These blocks nest. A task that
waits in it stays pinned, and holds up what other tasks have retired.
"""
function pinned(f, t::EpochToken)
    pin(t)
    try
        return f()
    finally
        unpin(t)
    end
end

"""
    Muster.protect!(token, slot, number)

In a `pinned` block: the object stays although the block ends, until 0 or another number takes the slot, 0 to 7.
"""
protect!(t::EpochToken, slot::Integer, number::Integer) =
    with_token(raw -> check(LowLevel.muster_epoch_protect(raw, slot, number), "protect $number"), t, "protect $number")

function retire_number(t::EpochToken, number::UInt64)
    status = with_token(raw -> LowLevel.muster_epoch_retire(raw, number), t, "retire $number")
    status == LowLevel.MUSTER_AGAIN && throw(MusterError(status, Int32(0), "as many objects wait as the manager allows"))
    return check(status, "retire $number")
end

"""
    Muster.retire!(token, number)

[`Muster.poll!`](@ref) returns the number, an offset or an index, when every `pinned` block of this time has ended. A
`MusterError` with `MUSTER_AGAIN` if `max_pending` objects of the token wait: the object is still the caller's.
"""
function retire!(t::EpochToken, number::Integer)
    0 < number < FIRST_VALUE || throw(ArgumentError("number $number is not in 1:2^63-1"))
    return retire_number(t, UInt64(number))
end

"""
    Muster.defer!(f, token, value)

[`Muster.poll!`](@ref), of any token of this process, calls `f(value)` when every `pinned` block of this time has ended. Not in
shared memory: another process could not call it.
"""
function defer!(f, t::EpochToken, value)
    e = t.epoch
    number = lock(e.lock) do
        n = e.next
        e.next += 1
        e.values[n] = (f, value)
        return n
    end
    try
        return retire_number(t, number)
    catch
        lock(() -> delete!(e.values, number), e.lock)
        rethrow()
    end
end

"""
    Muster.poll!(token; max_objects = 8, max_time = 0) -> Vector{UInt64}

Frees at most so many objects whose time has come, for at most so many seconds (0: no limit): calls the functions of
[`Muster.defer!`](@ref) and returns the numbers of [`Muster.retire!`](@ref). Cheap enough for each operation.
"""
function poll!(t::EpochToken; max_objects::Integer = 8, max_time::Real = 0)
    place, count = Vector{UInt64}(undef, max_objects), Ref(UInt32(0))
    status = with_token(t, "poll a token") do raw
        LowLevel.muster_epoch_poll(raw, max_objects, seconds_ns(max_time), place, max_objects, count, C_NULL)
    end
    status == LowLevel.MUSTER_AGAIN || check(status, "poll a token")
    resize!(place, count[])
    any(n -> n >= FIRST_VALUE, place) || return place
    finish_values(t.epoch, filter(n -> n >= FIRST_VALUE, place))
    return filter!(n -> n < FIRST_VALUE, place)
end

# Each of them, also after one has failed.
function finish_values(e::Epoch, numbers)
    problem = nothing
    for number in numbers
        f, value = lock(() -> pop!(e.values, number), e.lock)
        try
            f(value)
        catch why
            problem === nothing && (problem = why)
        end
    end
    problem === nothing || throw(problem)
    return nothing
end

"""
    Muster.try_reclaim!(token) -> (outcome, token, process, thread, epoch)

Tries to advance the epoch: `:advanced`, `:lost` (another one does it), or `:blocked` by a pinned token.
"""
function try_reclaim!(t::EpochToken)
    out = zeroed(LowLevel.muster_epoch_attempt)
    status = with_token(raw -> LowLevel.muster_epoch_try_reclaim(raw, out), t, "advance the epoch")
    status == LowLevel.MUSTER_AGAIN || check(status, "advance the epoch")
    a = out[]
    return (outcome = (:advanced, :lost, :blocked)[a.outcome], token = Int(a.token), process = Int(a.process),
        thread = Int(a.thread), epoch = Int(a.epoch))
end

"""
    Muster.synchronize(token; timeout = Inf)

Waits until every `pinned` block of this time has ended; other tasks go on meanwhile.
"""
function synchronize(t::EpochToken; timeout::Real = Inf)
    out, what = zeroed(LowLevel.muster_epoch_attempt), "wait for pinned tokens"
    status = with_token(t, what) do raw
        status = LowLevel.muster_epoch_synchronize(raw, 0, out)
        (status == LowLevel.MUSTER_TIMEOUT && timeout > 0) || return status
        return @threadcall(LowLevel.at_muster_epoch_synchronize[], Int32,
            (Ptr{LowLevel.muster_epoch_token}, Int64, Ptr{LowLevel.muster_epoch_attempt}), raw, deadline_ns(timeout), out)
    end
    status == LowLevel.MUSTER_TIMEOUT && throw(MusterError(status, Int32(0),
        "token $(out[].token) of process $(out[].process) is pinned"))
    return check(status, what)
end
