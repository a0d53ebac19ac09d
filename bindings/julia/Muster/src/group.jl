# SPDX-License-Identifier: MIT
# Groups: collective operations on Julia arrays. Built-in reductions run on a thread of the library, and other tasks go on
# meanwhile; a reduction with a Julia function runs on the thread of its call, which waits in it.

"""
    Muster.Group(round; listen, name = "group", shared_memory = true, timeout = 60)
    Muster.Group(store; rank, size, listen, name = "group", shared_memory = true, timeout = 60)

Opens a group: the processes of a round ([`Muster.join_round`](@ref)), or those that give ranks from 0 to `size - 1` and meet
in a
[`Muster.Store`](@ref). `listen` is the address at which the others connect to this one, as `"tcp://10.0.0.7:0"`; `{}` is
replaced by the rank. All members call it, as they do with every operation:

[`Muster.barrier`](@ref), [`Muster.bcast!`](@ref), [`Muster.reduce!`](@ref), [`Muster.allreduce!`](@ref),
[`Muster.allreduce`](@ref), [`Muster.scan!`](@ref), [`Muster.reduce_scatter`](@ref), [`Muster.gather`](@ref),
[`Muster.allgather`](@ref), [`Muster.scatter`](@ref), [`Muster.alltoall`](@ref), `split`.

`group.rank`, `group.size`. When a member dies the operation throws a `MusterError` with the status `MUSTER_E_PEER` at all
others, and the group is of no use any more. `close(group)` waits for all members.
"""
mutable struct Group
    handle::Ptr{LowLevel.muster_group}
    rank::Int
    size::Int
    reductions::Dict{Tuple{Any, DataType}, Tuple{UInt32, Any}} # function and type: its number, and what it needs to be kept
    function Group(handle::Ptr{LowLevel.muster_group})
        g = new(handle, LowLevel.muster_group_rank(handle), LowLevel.muster_group_size(handle), Dict())
        finalizer(release, g)
        return g
    end
end

function release(g::Group)
    g.handle == C_NULL || LowLevel.muster_group_release(g.handle)
    g.handle = C_NULL
    return nothing
end

Base.show(io::IO, g::Group) = print(io, "Muster.Group(rank ", g.rank, " of ", g.size, g.handle == C_NULL ? ", closed)" : ")")

function open_group(config, keeps, timeout::Real)
    e = running()
    handle, detail = Ref{Ptr{LowLevel.muster_group}}(C_NULL), blank_error()
    status = in_pool(() -> handle[] == C_NULL || LowLevel.muster_group_release(handle[])) do
        GC.@preserve keeps config @threadcall(LowLevel.at_muster_group_open[], Int32,
            (Ptr{LowLevel.muster_context}, Ptr{LowLevel.muster_group_config}, Int64, Ptr{Ptr{LowLevel.muster_group}},
             Ptr{LowLevel.muster_error}), e.context, config, deadline_ns(timeout), handle, detail)
    end
    check(status, detail, "open a group")
    return Group(handle[])
end

group_flags(shared_memory::Bool) = shared_memory ? UInt32(0) : LowLevel.MUSTER_GROUP_NO_SHARED_MEMORY

function Group(round::Round; listen::AbstractString, name::AbstractString = "group", shared_memory::Bool = true,
               timeout::Real = 60)
    at, called = String(listen), String(name)
    config = Ref(LowLevel.muster_group_config(flags = group_flags(shared_memory), round = round.handle, name = pointed(called),
        name_bytes = sizeof(called), listen = pointed(at), listen_bytes = sizeof(at)))
    return open_group(config, (at, called, round), timeout)
end

function Group(store::Store; rank::Integer, size::Integer, listen::AbstractString, name::AbstractString = "group",
               shared_memory::Bool = true, timeout::Real = 60)
    at, called = String(listen), String(name)
    config = Ref(LowLevel.muster_group_config(flags = group_flags(shared_memory), rank = rank, size = size, store = store.handle,
        name = pointed(called), name_bytes = sizeof(called), listen = pointed(at), listen_bytes = sizeof(at)))
    return open_group(config, (at, called, store), timeout)
end

## Types and reductions

const GROUP_TYPES = Dict{DataType, UInt32}(
    Int8 => LowLevel.MUSTER_TYPE_I8, UInt8 => LowLevel.MUSTER_TYPE_U8, Int16 => LowLevel.MUSTER_TYPE_I16,
    UInt16 => LowLevel.MUSTER_TYPE_U16, Int32 => LowLevel.MUSTER_TYPE_I32, UInt32 => LowLevel.MUSTER_TYPE_U32,
    Int64 => LowLevel.MUSTER_TYPE_I64, UInt64 => LowLevel.MUSTER_TYPE_U64, Float16 => LowLevel.MUSTER_TYPE_F16,
    Float32 => LowLevel.MUSTER_TYPE_F32, Float64 => LowLevel.MUSTER_TYPE_F64)
const GROUP_REDUCTIONS = IdDict{Any, UInt32}(
    (+) => LowLevel.MUSTER_REDUCE_SUM, (*) => LowLevel.MUSTER_REDUCE_PRODUCT, min => LowLevel.MUSTER_REDUCE_MIN,
    max => LowLevel.MUSTER_REDUCE_MAX, (&) => LowLevel.MUSTER_REDUCE_AND, (|) => LowLevel.MUSTER_REDUCE_OR,
    xor => LowLevel.MUSTER_REDUCE_XOR)

# What the library calls: combines two arrays of `T`. The function and the first exception are in `user`.
mutable struct GroupFunction
    combine::Any
    failed::Any # what it threw; the elements are then left as they were
end

function combine_arrays(::Type{T}, user::Ptr{Cvoid}, input::Ptr{Cvoid}, inout::Ptr{Cvoid}, count::UInt64)::Cvoid where {T}
    f = unsafe_pointer_to_objref(user)::GroupFunction
    f.failed === nothing || return nothing
    try
        combine_elements(f.combine, Ptr{T}(input), Ptr{T}(inout), Int(count))
    catch problem
        f.failed = problem # nothing may unwind through the library
    end
    return nothing
end
function combine_elements(combine, from::Ptr{T}, to::Ptr{T}, count::Int) where {T}
    for i in 1:count
        unsafe_store!(to, convert(T, combine(unsafe_load(to, i), unsafe_load(from, i)))::T, i)
    end
end

function reduction_of(g::Group, op, ::Type{T}) where {T}
    haskey(GROUP_TYPES, T) && haskey(GROUP_REDUCTIONS, op) && return GROUP_REDUCTIONS[op], nothing
    isbitstype(T) || throw(ArgumentError("a reduction needs elements of a plain type, not $T"))
    number, kept = get!(g.reductions, (op, T)) do
        f = GroupFunction(op, nothing)
        body = (user, input, inout, count) -> combine_arrays(T, user, input, inout, count)
        pointer = @cfunction($body, Cvoid, (Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}, UInt64))
        number = Ref{UInt32}(0)
        check(LowLevel.muster_group_add_reduction(g.handle, sizeof(T), Base.unsafe_convert(Ptr{Cvoid}, pointer),
                                                  Base.pointer_from_objref(f), number), "add a reduction")
        number[], (f, pointer)
    end
    return number, kept[1]
end

# Plain data of another type is moved as bytes.
type_of_elements(::Type{T}) where {T} = get(GROUP_TYPES, T, LowLevel.MUSTER_TYPE_U8)
bytes_in_count(::Type{T}, count) where {T} = haskey(GROUP_TYPES, T) ? count : count * sizeof(T)

function plain(array::AbstractArray{T}) where {T}
    isbitstype(T) || throw(ArgumentError("elements of $T cannot be sent: they are no plain data"))
    return array isa DenseArray ? array : throw(ArgumentError("a $(typeof(array)) is not dense: copy it into an Array"))
end

## Operations

# `keeps`: the arrays, which the library uses until the operation has ended.
function perform(g::Group, what::String, timeout::Real, f::Union{Nothing, GroupFunction}, keeps; fields...)
    g.handle == C_NULL && throw(MusterError(LowLevel.MUSTER_E_CLOSED, what))
    operation = Ref(LowLevel.muster_group_operation(; fields...))
    if f !== nothing
        detail = blank_error()
        f.failed = nothing
        status = GC.@preserve keeps f g LowLevel.muster_group_run(g.handle, operation, deadline_ns(timeout), detail)
        f.failed === nothing || throw(f.failed)
        return check(status, detail, what)
    end
    begun = Ref{UInt64}(0)
    # The cancel returns when the arrays are not used any more.
    ended = GC.@preserve keeps g await_operation(what, () -> LowLevel.muster_queue_cancel_operation(running().queue, begun[])) do e, tag, detail
        begun[] = tag
        LowLevel.muster_group_begin(g.handle, operation, deadline_ns(timeout), e.queue, tag, detail)
    end
    ended.status == LowLevel.MUSTER_OK || throw(to_exception(ended.status, ended.detail, what))
    return nothing
end

address_of(array) = Ptr{Cvoid}(pointer(array))

"""
    Muster.barrier(group; timeout = Inf)

Waits until all members have called it. After `timeout` seconds the group has failed; so it is with every operation.
"""
barrier(g::Group; timeout::Real = Inf) = perform(g, "barrier", timeout, nothing, (); kind = LowLevel.MUSTER_GROUP_BARRIER)

"""
    Muster.bcast!(group, array; root = 0, timeout = Inf) -> array

Copies the array of the root into that of every other member.
"""
function bcast!(g::Group, array::AbstractArray{T}; root::Integer = 0, timeout::Real = Inf) where {T}
    perform(g, "broadcast", timeout, nothing, plain(array); kind = LowLevel.MUSTER_GROUP_BROADCAST, type_ = type_of_elements(T),
            root = root, count = bytes_in_count(T, length(array)), output = address_of(array))
    return array
end

function reduce_in_place(g::Group, op, array::AbstractArray{T}, what, timeout; more...) where {T}
    number, f = reduction_of(g, op, T)
    type = f === nothing ? GROUP_TYPES[T] : LowLevel.MUSTER_TYPE_OF_REDUCTION
    perform(g, what, timeout, f, plain(array); type_ = type, reduction = number, count = length(array), more...)
    return array
end

"""
    Muster.allreduce!(op, group, array; timeout = Inf) -> array

Replaces each element by the reduction of the elements of all members, in the order of the ranks. `op` is `+`, `*`, `min`,
`max`, `&`, `|`, `xor`, or any function of two elements: all members give the same functions in the same order. Elements are
of any plain type.
"""
allreduce!(op, g::Group, array::AbstractArray; timeout::Real = Inf) =
    reduce_in_place(g, op, array, "all-reduce", timeout; kind = LowLevel.MUSTER_GROUP_ALL_REDUCE, output = address_of(array))

"""
    Muster.allreduce(op, group, value; timeout = Inf)

The same of a copy of an array, or of a number.
"""
allreduce(op, g::Group, array::AbstractArray; timeout::Real = Inf) = allreduce!(op, g, copy(array); timeout = timeout)
allreduce(op, g::Group, value; timeout::Real = Inf) = only(allreduce!(op, g, [value]; timeout = timeout))

"""
    Muster.reduce!(op, group, array; root = 0, timeout = Inf) -> array

As [`Muster.allreduce!`](@ref), at the root only; the arrays of the others stay as they are.
"""
function reduce!(op, g::Group, array::AbstractArray; root::Integer = 0, timeout::Real = Inf)
    at = g.rank == root ? (; output = address_of(array)) : (; input = address_of(array))
    return reduce_in_place(g, op, array, "reduce", timeout; kind = LowLevel.MUSTER_GROUP_REDUCE, root = root, at...)
end

"""
    Muster.scan!(op, group, array; exclusive = false, timeout = Inf) -> array

Replaces each element by the reduction of the elements of ranks 0 to this one; `exclusive`: without this one.
"""
scan!(op, g::Group, array::AbstractArray; exclusive::Bool = false, timeout::Real = Inf) =
    reduce_in_place(g, op, array, "scan", timeout; kind = LowLevel.MUSTER_GROUP_SCAN, output = address_of(array),
                    flags = exclusive ? LowLevel.MUSTER_GROUP_EXCLUSIVE : 0)

"""
    Muster.reduce_scatter(op, group, array; timeout = Inf) -> Vector

Rank r gets block r of the reduction; an array has a block of the same size for each member.
"""
function reduce_scatter(op, g::Group, array::AbstractArray{T}; timeout::Real = Inf) where {T}
    block = blocks_of(g, array)
    result = Vector{T}(undef, block)
    number, f = reduction_of(g, op, T)
    type = f === nothing ? GROUP_TYPES[T] : LowLevel.MUSTER_TYPE_OF_REDUCTION
    perform(g, "reduce-scatter", timeout, f, (plain(array), result); kind = LowLevel.MUSTER_GROUP_REDUCE_SCATTER, type_ = type,
            reduction = number, count = block, input = address_of(array), output = address_of(result))
    return result
end

function blocks_of(g::Group, array)
    block, rest = divrem(length(array), g.size)
    rest == 0 || throw(ArgumentError("$(length(array)) elements are no blocks for $(g.size) members"))
    return block
end

function collect_blocks(g::Group, array::AbstractArray{T}, kind, what, root, timeout) where {T}
    has_result = kind == LowLevel.MUSTER_GROUP_ALL_GATHER || g.rank == root
    result = Array{T}(undef, size(array)..., has_result ? g.size : 0)
    perform(g, what, timeout, nothing, (plain(array), result); kind = kind, type_ = type_of_elements(T), root = max(root, 0),
            count = bytes_in_count(T, length(array)), input = address_of(array), output = has_result ? address_of(result) : C_NULL)
    return has_result ? result : nothing
end

"""
    Muster.allgather(group, array; timeout = Inf) -> Array

The arrays of all members, along a further dimension: `result[:, r + 1]` is the vector of rank r.
"""
allgather(g::Group, array::AbstractArray; timeout::Real = Inf) =
    collect_blocks(g, array, LowLevel.MUSTER_GROUP_ALL_GATHER, "all-gather", 0, timeout)

"""
    Muster.gather(group, array; root = 0, timeout = Inf) -> Array or nothing

As [`Muster.allgather`](@ref), at the root only.
"""
gather(g::Group, array::AbstractArray; root::Integer = 0, timeout::Real = Inf) =
    collect_blocks(g, array, LowLevel.MUSTER_GROUP_GATHER, "gather", root, timeout)

"""
    Muster.scatter(group, array, result; root = 0, timeout = Inf) -> result

Copies block r of the root's array into the result of rank r. The others give `nothing` as array.
"""
function scatter(g::Group, array, result::AbstractArray{T}; root::Integer = 0, timeout::Real = Inf) where {T}
    g.rank == root && (length(array) == g.size * length(result) ||
                       throw(ArgumentError("$(length(array)) elements are no blocks of $(length(result)) for $(g.size) members")))
    from = g.rank == root ? address_of(plain(array)) : C_NULL
    perform(g, "scatter", timeout, nothing, (array, plain(result)); kind = LowLevel.MUSTER_GROUP_SCATTER, type_ = type_of_elements(T),
            root = root, count = bytes_in_count(T, length(result)), input = from, output = address_of(result))
    return result
end

"""
    Muster.alltoall(group, array; timeout = Inf) -> Array

Block s of the result is the block for this rank in the array of rank s.
"""
function alltoall(g::Group, array::AbstractArray{T}; timeout::Real = Inf) where {T}
    result = similar(array)
    perform(g, "all-to-all", timeout, nothing, (plain(array), plain(result)); kind = LowLevel.MUSTER_GROUP_ALL_TO_ALL,
            type_ = type_of_elements(T), count = bytes_in_count(T, blocks_of(g, array)), input = address_of(array),
            output = address_of(result))
    return result
end

"""
    split(group, color; key = 0, timeout = 60) -> Group or nothing

Divides the group: members with the same color are a new one, in the order of their keys. A negative color: in none.
"""
function Base.split(g::Group, color::Integer; key::Integer = 0, timeout::Real = 60)
    g.handle == C_NULL && throw(MusterError(LowLevel.MUSTER_E_CLOSED, "divide a group"))
    handle, detail = Ref{Ptr{LowLevel.muster_group}}(C_NULL), blank_error()
    status = in_pool(() -> handle[] == C_NULL || LowLevel.muster_group_release(handle[])) do
        GC.@preserve g @threadcall(LowLevel.at_muster_group_split[], Int32,
            (Ptr{LowLevel.muster_group}, Int64, Int64, Int64, Ptr{Ptr{LowLevel.muster_group}}, Ptr{LowLevel.muster_error}),
            g.handle, color, key, deadline_ns(timeout), handle, detail)
    end
    check(status, detail, "divide a group")
    return handle[] == C_NULL ? nothing : Group(handle[])
end

"""
    Muster.progress(group, rank) -> (state, kind, sequence)

How far a member is: `:idle`, `:active`, `:missing` (it has not arrived in the operation in which this one is) or `:failed`; and
kind and number of its last operation that is known here.
"""
function progress(g::Group, rank::Integer)
    status = zeroed(LowLevel.muster_group_status)
    g.handle == C_NULL && throw(MusterError(LowLevel.MUSTER_E_CLOSED, "look at a member"))
    check(LowLevel.muster_group_get_status(g.handle, rank, status), "look at a member")
    return (state = (:idle, :active, :missing, :failed)[status[].state], kind = Int(status[].kind), sequence = Int(status[].sequence))
end

"Ends the group at all members; operations throw `MUSTER_E_ABORTED` with this text."
revoke(g::Group, text::AbstractString = "") =
    g.handle == C_NULL ? nothing : check(LowLevel.muster_group_revoke(g.handle, String(text), sizeof(text)), "revoke a group")

"Waits until all members close the group, and releases it."
function Base.close(g::Group; timeout::Real = 60)
    g.handle == C_NULL && return nothing
    detail = blank_error()
    status = in_pool(() -> nothing) do
        GC.@preserve g @threadcall(LowLevel.at_muster_group_close[], Int32,
            (Ptr{LowLevel.muster_group}, Int64, Ptr{LowLevel.muster_error}), g.handle, deadline_ns(timeout), detail)
    end
    release(g)
    return check(status, detail, "close a group")
end
