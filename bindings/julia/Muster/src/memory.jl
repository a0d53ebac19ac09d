# SPDX-License-Identifier: MIT
# Global memory: a segment of each member of a group, used by all of them.

"""
    Muster.GlobalMemory(group; segment_bytes = 0, symmetric_bytes = 0, max_tokens = 0, max_pending = 0, shared_memory = true, timeout = 60)

The memory of all members of a [`Muster.Group`](@ref). They make the same calls to open it and for [`Muster.symmetric`](@ref).
0 is a default
of `muster_memory_config`. A place is a `UInt64`, 0 is none; `memory.locale` and `memory.locales` are the rank and the number
of members.

    memory = Muster.GlobalMemory(group; segment_bytes = 2^20)
    word = Muster.place(memory, 0, Muster.symmetric(memory, 8))    # the same word for all, in the segment of rank 0
    Muster.fetch!(+, memory, word, 1)
    block = Muster.allocate(memory, 1, 80)                         # 80 bytes in the segment of rank 1
    write(memory, block, collect(1.0:10.0))
    read!(memory, block, zeros(10))
    token = Muster.register(memory)
    Muster.retire!(token, block)                                   # no place refers to it any more
    Muster.reclaim!(token)                                         # frees what nothing reads any more

Operations on members of other hosts let other tasks go on. `timeout`: seconds that a call waits for such a member.
"""
mutable struct GlobalMemory
    handle::Ptr{LowLevel.muster_memory}
    locale::Int
    locales::Int
    timeout::Float64
    group::Group
end

function GlobalMemory(g::Group; segment_bytes::Integer = 0, symmetric_bytes::Integer = 0, max_tokens::Integer = 0,
                      max_pending::Integer = 0, shared_memory::Bool = true, timeout::Real = 60)
    g.handle == C_NULL && throw(MusterError(LowLevel.MUSTER_E_CLOSED, "open a memory"))
    config = Ref(LowLevel.muster_memory_config(segment_bytes = segment_bytes, symmetric_bytes = symmetric_bytes,
        max_tokens = max_tokens, max_pending = max_pending,
        flags = shared_memory ? UInt32(0) : LowLevel.MUSTER_MEMORY_NO_SHARED_MEMORY))
    handle, detail = Ref{Ptr{LowLevel.muster_memory}}(C_NULL), blank_error()
    status = in_pool(() -> handle[] == C_NULL || LowLevel.muster_memory_release(handle[])) do
        GC.@preserve g config @threadcall(LowLevel.at_muster_memory_open[], Int32,
            (Ptr{LowLevel.muster_group}, Ptr{LowLevel.muster_memory_config}, Int64, Ptr{Ptr{LowLevel.muster_memory}},
             Ptr{LowLevel.muster_error}), g.handle, config, deadline_ns(timeout), handle, detail)
    end
    check(status, detail, "open a memory")
    made = handle[]
    return finalizer(close, GlobalMemory(made, LowLevel.muster_memory_locale(made), LowLevel.muster_memory_locales(made), timeout, g))
end

function Base.close(m::GlobalMemory)
    handle, m.handle = m.handle, C_NULL
    handle == C_NULL || LowLevel.muster_memory_release(handle)
    return nothing
end
Base.isopen(m::GlobalMemory) = m.handle != C_NULL
Base.show(io::IO, m::GlobalMemory) =
    print(io, "Muster.GlobalMemory(locale ", m.locale, " of ", m.locales, isopen(m) ? ")" : ", closed)")

@inline function with_memory(f, m::GlobalMemory, what)
    m.handle == C_NULL && throw(MusterError(LowLevel.MUSTER_E_CLOSED, what))
    return GC.@preserve m f(m.handle)
end

## Places

"""
    Muster.symmetric(memory, bytes; alignment = 8) -> offset

So many bytes at the same offset in every segment, zero at first; all members make the call. [`Muster.place`](@ref) makes
places of it.
"""
function symmetric(m::GlobalMemory, bytes::Integer; alignment::Integer = 8)
    offset, detail = Ref{UInt64}(0), blank_error()
    status = with_memory(m, "allocate in all segments") do handle
        in_pool(() -> nothing) do
            GC.@preserve m @threadcall(LowLevel.at_muster_memory_symmetric[], Int32,
                (Ptr{LowLevel.muster_memory}, UInt64, UInt64, Int64, Ptr{UInt64}, Ptr{LowLevel.muster_error}), handle, bytes,
                alignment, deadline_ns(m.timeout), offset, detail)
        end
    end
    check(status, detail, "allocate in all segments")
    return offset[]
end

"""
    Muster.place(memory, locale, offset)

The place at this offset in the segment of a member.
"""
function place(m::GlobalMemory, locale::Integer, offset::Integer)
    made = Ref{UInt64}(0)
    with_memory(handle -> check(LowLevel.muster_memory_pointer(handle, locale, offset, made), "locale $locale, offset $offset"), m, "find a place")
    return made[]
end

"""
    Muster.allocate(memory, locale, bytes)

A block in the segment of a member; an `OutOfMemoryError` if there is no room for it now.
"""
function allocate(m::GlobalMemory, locale::Integer, bytes::Integer)
    made = Ref{UInt64}(0)
    status = with_memory(handle -> LowLevel.muster_memory_allocate(handle, locale, bytes, deadline_ns(m.timeout), made), m, "allocate")
    status == LowLevel.MUSTER_AGAIN && throw(OutOfMemoryError())
    check(status, "allocate $bytes bytes at locale $locale")
    return made[]
end

"""
    Muster.free!(memory, block)

Frees a block of any member at once; `retire!(token, block)` is for blocks that others may be reading.
"""
free!(m::GlobalMemory, block::UInt64) =
    (with_memory(handle -> check(LowLevel.muster_memory_free(handle, block, deadline_ns(m.timeout)), "free a block"), m, "free a block"); nothing)

## Operations

# The value that was found, and the status: MUSTER_AGAIN where a comparison failed.
function operate(m::GlobalMemory, what::String, keeps; fields...)
    m.handle == C_NULL && throw(MusterError(LowLevel.MUSTER_E_CLOSED, what))
    operation, found, begun = Ref(LowLevel.muster_memory_operation(; fields...)), zeroed(LowLevel.muster_memory_result), Ref{UInt64}(0)
    ended = GC.@preserve keeps m found await_operation(what, () -> LowLevel.muster_queue_cancel_operation(running().queue, begun[])) do e, tag, _
        begun[] = tag
        LowLevel.muster_memory_begin(m.handle, operation, found, e.queue, tag)
    end
    ended.status < 0 && throw(to_exception(ended.status, ended.detail, what))
    return found[].value, ended.status
end

function memory_bytes(array::AbstractArray{T}) where {T}
    plain(array)
    return sizeof(T) * length(array)
end

"""
    write(memory, place, array; signal = 0, value = 1)

Writes an array of plain data; afterwards adds `value` to the word at `signal`, if one is given, and wakes what waits for it.
"""
function Base.write(m::GlobalMemory, at::UInt64, array::AbstractArray; signal::UInt64 = UInt64(0), value::Integer = 1)
    operate(m, "put", array; kind = LowLevel.MUSTER_MEMORY_PUT, target = at, local_ = Ptr{Cvoid}(pointer(array)), bytes = memory_bytes(array),
        signal = signal, notify = UInt32(signal != 0), value = signal == 0 ? UInt64(0) : value % UInt64)
    return nothing
end

"""
    read!(memory, place, array)

Fills an array of plain data, and returns it.
"""
function Base.read!(m::GlobalMemory, at::UInt64, array::AbstractArray)
    operate(m, "get", array; kind = LowLevel.MUSTER_MEMORY_GET, target = at, local_ = Ptr{Cvoid}(pointer(array)), bytes = memory_bytes(array))
    return array
end

"""
    Muster.load(memory, word)
    Muster.store!(memory, word, value)
    Muster.exchange!(memory, word, value)
    Muster.compare_exchange!(memory, word, expected, value)
    Muster.fetch!(op, memory, word, value)

Words of 64 bits. `store!` wakes what waits for the word; the others return what it was, and `compare_exchange!` first whether
it
was the expected one. `op`: `+`, `&`, `|`, `xor`, `min` or `max`; the last two compare numbers with a sign if `value` is one.
"""
load(m::GlobalMemory, word::UInt64) = operate(m, "read a word", nothing; kind = LowLevel.MUSTER_MEMORY_READ, target = word)[1]
store!(m::GlobalMemory, word::UInt64, value::Integer) =
    (operate(m, "write a word", nothing; kind = LowLevel.MUSTER_MEMORY_WRITE, target = word, value = value % UInt64, notify = UInt32(1)); nothing)
exchange!(m::GlobalMemory, word::UInt64, value::Integer) =
    operate(m, "exchange a word", nothing; kind = LowLevel.MUSTER_MEMORY_EXCHANGE, target = word, value = value % UInt64)[1]
function compare_exchange!(m::GlobalMemory, word::UInt64, expected::Integer, value::Integer)
    found, status = operate(m, "compare and exchange a word", nothing; kind = LowLevel.MUSTER_MEMORY_COMPARE_EXCHANGE, target = word,
        expected = expected % UInt64, value = value % UInt64)
    return status == LowLevel.MUSTER_OK, found
end
function fetch!(op, m::GlobalMemory, word::UInt64, value::Integer)
    signed = value isa Signed
    number = op === (+) ? LowLevel.MUSTER_ATOMIC_ADD : op === (&) ? LowLevel.MUSTER_ATOMIC_AND :
        op === (|) ? LowLevel.MUSTER_ATOMIC_OR : op === xor ? LowLevel.MUSTER_ATOMIC_XOR :
        op === min ? (signed ? LowLevel.MUSTER_ATOMIC_MIN : LowLevel.MUSTER_ATOMIC_UMIN) :
        op === max ? (signed ? LowLevel.MUSTER_ATOMIC_MAX : LowLevel.MUSTER_ATOMIC_UMAX) :
        throw(ArgumentError("$op is none of +, &, |, xor, min, max"))
    return operate(m, "change a word", nothing; kind = LowLevel.MUSTER_MEMORY_FETCH, target = word, operation = Int32(number), value = value % UInt64)[1]
end

"""
    Muster.stats(memory, locale = memory.locale)

The counters of `muster_memory_stats` of the heap of a member.
"""
function stats(m::GlobalMemory, locale::Integer = m.locale)
    out = zeroed(LowLevel.muster_memory_stats)
    with_memory(handle -> check(LowLevel.muster_memory_get_stats(handle, locale, deadline_ns(m.timeout), out), "count blocks"), m, "count blocks")
    return out[]
end

## Epochs

"""
    Muster.register(memory) -> Muster.EpochToken

A token for `Muster.pinned`, `Muster.retire!` of blocks, [`Muster.reclaim!`](@ref) and [`Muster.clear!`](@ref). It is closed
before the memory.
"""
function register(m::GlobalMemory)
    epoch, raw, detail = Ref{Ptr{LowLevel.muster_epoch}}(C_NULL), Ref{Ptr{LowLevel.muster_epoch_token}}(C_NULL), blank_error()
    with_memory(handle -> check(LowLevel.muster_memory_epoch(handle, epoch), "register a token"), m, "register a token")
    GC.@preserve m check(LowLevel.muster_epoch_register(epoch[], raw, detail), detail, "register a token")
    return finalizer(close, EpochToken(raw[], m))
end

retire!(t::EpochToken{GlobalMemory}, block::UInt64) = retire_number(t, block)

"""
    Muster.reclaim!(token, most = typemax(UInt32))

Frees blocks whose time has come; their number.
"""
function reclaim!(t::EpochToken{GlobalMemory}, most::Integer = typemax(UInt32))
    freed, m = Ref{UInt32}(0), t.epoch
    status = with_token(raw -> with_memory(handle -> LowLevel.muster_memory_reclaim(handle, raw, most, 0, freed), m, "free blocks"), t, "free blocks")
    status == LowLevel.MUSTER_AGAIN || check(status, "free blocks")
    return Int(freed[])
end

"""
    Muster.clear!(token; timeout = 60)

Waits for the time of all blocks that this token has retired, and frees them; their number.
"""
function clear!(t::EpochToken{GlobalMemory}; timeout::Real = 60)
    freed, m = Ref{UInt64}(0), t.epoch
    status = with_token(t, "free blocks") do raw
        with_memory(m, "free blocks") do handle
            in_pool(() -> nothing) do
                GC.@preserve t m freed @threadcall(LowLevel.at_muster_memory_clear[], Int32,
                    (Ptr{LowLevel.muster_memory}, Ptr{LowLevel.muster_epoch_token}, Int64, Ptr{UInt64}), handle, raw, deadline_ns(timeout), freed)
            end
        end
    end
    check(status, "free blocks")
    return Int(freed[])
end
