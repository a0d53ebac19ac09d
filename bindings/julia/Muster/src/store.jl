# SPDX-License-Identifier: MIT
# Stores: what processes of a job share. Requests are begun, and end in the engine's queue: nothing here holds up other tasks.

"""
    Muster.Store(url; timeout = 60)

Opens a store: `"tcp://host:29400"`, `"unix:///path"`, `"memory:name"`, `"file:///path"`, `"etcd://host:2379/prefix"`.

`store["key"] = "value"`, `store["key"]`, `get(store, "key", nothing)`, `haskey`, `delete!`, `keys(store, "prefix")`,
[`Muster.await`](@ref), [`Muster.add!`](@ref), [`Muster.compare_set!`](@ref), [`Muster.list`](@ref), [`Muster.changes`](@ref),
[`Muster.enqueue!`](@ref), [`Muster.dequeue!`](@ref), [`Muster.barrier`](@ref), [`Muster.lease`](@ref), `view(store,
"prefix/")`; and [`Muster.transact`](@ref), of which all these are made. Keys and values are bytes, given and returned as
`String`; values may be given as `Vector{UInt8}`, too. `close(store)` ends current requests with `MUSTER_E_CANCELED`.
"""
mutable struct Store
    handle::Ptr{LowLevel.muster_store}
    name::String
    waiting::Set{Base.RefValue{UInt64}} # requests under way, by the number that cancels them
    function Store(handle::Ptr{LowLevel.muster_store}, name::String)
        s = new(handle, name, Set{Base.RefValue{UInt64}}())
        finalizer(release, s)
        return s
    end
end

function Store(url::AbstractString; timeout::Real = 60)
    e = running()
    text = String(url)
    handle, detail = Ref{Ptr{LowLevel.muster_store}}(C_NULL), blank_error()
    status = in_pool(() -> release_store(handle[])) do
        @threadcall(LowLevel.at_muster_store_open[], Int32,
            (Ptr{LowLevel.muster_context}, Ptr{UInt8}, Csize_t, Ptr{Cvoid}, Int64, Ptr{Ptr{LowLevel.muster_store}},
             Ptr{LowLevel.muster_error}), e.context, text, sizeof(text), C_NULL, deadline_ns(timeout), handle, detail)
    end
    check(status, detail, "open the store $text")
    return Store(handle[], text)
end

# A call that blocks, in a thread of libuv's pool: other tasks go on meanwhile. It has to keep what it points to. If the
# task is interrupted the call goes on, and what it gives is undone.
function in_pool(call, undo)
    working = @async call()
    try
        return fetch(working)::Int32
    catch problem
        problem isa TaskFailedException && rethrow()
        @async fetch(working) == LowLevel.MUSTER_OK && undo()
        rethrow()
    end
end

deadline_ns(seconds::Real)::Int64 = isfinite(seconds) ? max(1, seconds_ns(seconds)) : -1

release_store(handle) = handle == C_NULL || LowLevel.muster_store_release(handle)

function release(s::Store)
    release_store(s.handle)
    s.handle = C_NULL
    return nothing
end

# Tasks that wait for an answer get MUSTER_E_CANCELED, not an answer that may never come.
function Base.close(s::Store)
    foreach(request -> cancel(s, request), s.waiting)
    return release(s)
end

cancel(s::Store, request) = s.handle == C_NULL || LowLevel.muster_store_cancel(s.handle, request[])

# Begins a request, which close(s) and an interrupt cancel, and waits for its end.
function await_request(start, s::Store, what::String)::Operation
    s.handle == C_NULL && throw(MusterError(LowLevel.MUSTER_E_CLOSED, what))
    request = Ref{UInt64}(0)
    push!(s.waiting, request)
    try
        return await_operation(what, () -> cancel(s, request)) do e, tag, detail
            start(request, e, tag, detail)
        end
    finally
        delete!(s.waiting, request)
    end
end

Base.isopen(s::Store) = s.handle != C_NULL
Base.show(io::IO, s::Store) = print(io, "Muster.Store(", repr(s.name), ")")

"""
    view(store::Muster.Store, prefix) -> Store

A view of the same store, which adds a prefix to every key and queue, and removes it from results.
"""
function Base.view(s::Store, prefix::AbstractString)
    text = String(prefix)
    handle, detail = Ref{Ptr{LowLevel.muster_store}}(C_NULL), blank_error()
    status = GC.@preserve text LowLevel.muster_store_view(s.handle, pointed(text), sizeof(text), handle, detail)
    check(status, detail, "make a view of a store")
    return Store(handle[], "$(s.name) $text")
end

## Requests

struct StoreOp
    kind::UInt32
    condition::UInt32
    key::String
    value::String
    expected::String
    version::UInt64
    number::Int64
    lease::UInt64
    count::UInt32
    rank::UInt32
end

const op_kinds = Dict(kind => getfield(LowLevel, Symbol("MUSTER_STORE_", uppercase(string(kind))))::Union{Int32, UInt32} for kind in
    (:none, :get, :read, :set, :add, :append, :delete, :check, :wait, :count, :list, :keys, :push, :pop, :try_pop, :length,
     :watch, :barrier))

bytes_of(value::AbstractString) = String(value)
bytes_of(value::AbstractVector{UInt8}) = String(copyto!(Base.StringVector(length(value)), value))

"""
    Muster.op(kind, key, value = ""; number = 0, version = 0, count = 0, rank = 0, lease = nothing, if_absent = false,
              if_present = false, if_value = nothing, if_version = nothing)

One operation of [`Muster.transact`](@ref). `kind` is one of $(join(sort!(repr.(collect(keys(op_kinds)))), ", ", " and ")): what
they mean, and what they do with `value`, `number`, `version`, `count` and `rank`, is in `muster/store.h`.
"""
function op(kind::Symbol, key::AbstractString, value = ""; number::Integer = 0, version::Integer = 0, count::Integer = 0,
            rank::Integer = 0, lease = nothing, if_absent::Bool = false, if_present::Bool = false, if_value = nothing,
            if_version = nothing)
    haskey(op_kinds, kind) || throw(ArgumentError("no operation of a store: $(repr(kind))"))
    if_absent + if_present + (if_value !== nothing) + (if_version !== nothing) <= 1 ||
        throw(ArgumentError("an operation has one condition at most"))
    condition = if_absent ? LowLevel.MUSTER_STORE_IF_ABSENT : if_present ? LowLevel.MUSTER_STORE_IF_PRESENT :
        if_value !== nothing ? LowLevel.MUSTER_STORE_IF_VALUE : if_version !== nothing ? LowLevel.MUSTER_STORE_IF_VERSION :
        LowLevel.MUSTER_STORE_ALWAYS
    return StoreOp(op_kinds[kind], condition, String(key), bytes_of(value), if_value === nothing ? "" : bytes_of(if_value),
        something(if_version, version), number, lease === nothing ? 0 : lease_number(lease), count, rank)
end

pointed(text::String) = isempty(text) ? C_NULL : Ptr{Cvoid}(pointer(text))
lowered(o::StoreOp) = LowLevel.muster_store_op(o.kind, o.condition, pointed(o.key), sizeof(o.key), pointed(o.value),
    sizeof(o.value), pointed(o.expected), sizeof(o.expected), o.version, o.number, o.lease, o.count, o.rank)

struct StoreEntry
    op::Int        # which operation of the request, from 1
    present::Bool  # the key is there (of a delete: was), the queue had a value
    failed::Bool   # this operation's condition does not hold
    more::Bool     # the last one of a list that could not show everything
    version::UInt64
    number::Int64
    key::String
    value::String
end

struct StoreResult
    done::Bool # false: a condition did not hold, and the entries show what is there instead
    entries::Vector{StoreEntry}
    revision::UInt64
end

"""
    Muster.transact(store, ops...; timeout = Inf) -> StoreResult

Performs all operations atomically, or none; `result.done` is `false` if a condition did not hold, and then `result.entries`
show the current values. See [`Muster.op`](@ref). With `:get`, `:wait` and `:pop` the whole request waits until another
process has set the key or filled the queue; it does not wait for keys that its own earlier operations set, nor for values
that they push. A request that times out throws a `MusterError` that names the missing keys or queues.

    Muster.transact(store, Muster.op(:set, "starter", "me"; if_absent = true), Muster.op(:add, "jobs", number = 1))
"""
function transact(s::Store, ops::StoreOp...; timeout::Real = Inf)::StoreResult
    texts = without_own_waits(collect(StoreOp, ops))
    operation = GC.@preserve texts s await_request(s, "ask a store") do request, e, tag, detail
        LowLevel.muster_store_begin(s.handle, map(lowered, texts), length(texts), deadline_ns(timeout), e.queue, tag, request,
            detail)
    end
    result = convert(Ptr{LowLevel.muster_store_result}, operation.object)
    result == C_NULL && throw(to_exception(operation.status, operation.detail, "ask a store"))
    try
        return StoreResult(operation.status == LowLevel.MUSTER_OK, read_entries(result),
            LowLevel.muster_store_result_revision(result))
    finally
        LowLevel.muster_store_result_release(result)
    end
end

# Begins what a completion ends, and waits for that; an interrupt cancels it.
function await_operation(start, what::String, cancel)::Operation
    e = running()
    operation = Operation()
    tag = remember(e, operation)
    detail = blank_error()
    status = start(e, tag, detail)
    if status != LowLevel.MUSTER_OK
        forget(e, tag)
        check(status, detail, what)
    end
    try
        return wait(operation)
    catch
        forget(e, tag) # what comes later is released by the engine
        cancel()
        rethrow()
    end
end

function read_entries(result)
    entry = zeroed(LowLevel.muster_store_entry)
    text(p, n) = n == 0 ? "" : unsafe_string(Ptr{UInt8}(p), n)
    return map(1:Int(LowLevel.muster_store_result_count(result))) do i
        check(LowLevel.muster_store_result_entry(result, i - 1, entry), "read a result")
        found = entry[]
        is(flag) = found.flags & flag != 0
        StoreEntry(found.op + 1, is(LowLevel.MUSTER_STORE_PRESENT), is(LowLevel.MUSTER_STORE_FAILED), is(LowLevel.MUSTER_STORE_MORE),
            found.version, found.number, text(found.key, found.key_bytes), text(found.value, found.value_bytes))
    end
end

only_entry(s::Store, o::StoreOp; timeout::Real = Inf) = transact(s, o; timeout = timeout).entries[1]

## As a dictionary

function Base.get(s::Store, key::AbstractString, default)
    found = only_entry(s, op(:read, key))
    return found.present ? found.value : default
end

function Base.getindex(s::Store, key::AbstractString)
    found = only_entry(s, op(:read, key))
    found.present || throw(KeyError(key))
    return found.value
end

Base.setindex!(s::Store, value, key::AbstractString) = (transact(s, op(:set, key, value)); s)
Base.haskey(s::Store, key::AbstractString) = only_entry(s, op(:check, key)).present
Base.delete!(s::Store, key::AbstractString) = (transact(s, op(:delete, key)); s)

"""
The value of the key; if it does not exist, sets it to the default. Of several processes the first one sets it, and all get
its value.
"""
function Base.get!(s::Store, key::AbstractString, default)
    result = transact(s, op(:set, key, default; if_absent = true))
    return result.done ? String(bytes_of(default)) : result.entries[1].value
end
Base.get!(default, s::Store, key::AbstractString) = haskey(s, key) ? s[key] : get!(s, key, default())

"Deletes the key and returns its value, atomically."
function Base.pop!(s::Store, key::AbstractString, default...)
    found = transact(s, op(:read, key), op(:delete, key)).entries[1]
    found.present && return found.value
    isempty(default) && throw(KeyError(key))
    return first(default)
end

# for (key, value) in store: those of the moment at which it begins.
Base.eltype(::Type{Store}) = Pair{String, String}
Base.IteratorSize(::Type{Store}) = Base.SizeUnknown()
function Base.iterate(s::Store, state = (list(s)[1], 1))
    found, at = state
    return at > length(found) ? nothing : (found[at], (found, at + 1))
end

Base.length(s::Store) = only_entry(s, op(:count, "")).number

"Names of all keys that begin with `prefix`, in the order of their bytes."
Base.keys(s::Store, prefix::AbstractString = "") = [found.key for found in list_entries(s, :keys, prefix).entries]

"""
    Muster.list(store, prefix = "") -> (pairs, revision)

All keys that begin with `prefix`, with their values, and the revision from which [`Muster.changes`](@ref) continues.
"""
function list(s::Store, prefix::AbstractString = "")
    found = list_entries(s, :list, prefix)
    return [entry.key => entry.value for entry in found.entries], found.revision
end

# In pages. The revision is that of the first: what was changed meanwhile is seen again by who goes on from there.
function list_entries(s::Store, kind::Symbol, prefix)
    page = transact(s, op(kind, prefix))
    found = page
    while !isempty(page.entries) && page.entries[end].more
        page = transact(s, op(kind, prefix, page.entries[end].key))
        append!(found.entries, page.entries)
    end
    filter!(entry -> entry.present, found.entries)
    return found
end

"""
    Muster.await(store, key; timeout = Inf) -> String
    Muster.await(store, keys; timeout = Inf)

Waits until the key exists, and returns its value; or until all of several keys exist.
"""
await(s::Store, key::AbstractString; timeout::Real = Inf) = only_entry(s, op(:get, key); timeout = timeout).value
await(s::Store, keys::AbstractVector; timeout::Real = Inf) =
    (transact(s, (op(:wait, key) for key in keys)...; timeout = timeout); nothing)

"""
    Muster.set!(store, key, value; lease = nothing, if_absent = false, ...) -> Bool

Sets a key, perhaps with a [`Muster.lease`](@ref) or a condition (see [`Muster.op`](@ref)); `false` if that does not hold.
"""
set!(s::Store, key::AbstractString, value; options...) = transact(s, op(:set, key, value; options...)).done

"""
    Muster.compare_set!(store, key, expected => value) -> Bool

Sets a key if its value is `expected`; with `nothing`, if it does not exist.
"""
compare_set!(s::Store, key::AbstractString, (expected, value)::Pair) = expected === nothing ?
    set!(s, key, value; if_absent = true) : set!(s, key, value; if_value = expected)

"""
    Muster.add!(store, key, number = 1) -> Int

Adds to a decimal number (a key that does not exist counts as 0), and returns the sum.
"""
add!(s::Store, key::AbstractString, number::Integer = 1) = Int(only_entry(s, op(:add, key; number = number)).number)

"""
    Muster.enqueue!(store, queue, value; most = 0) -> Int

Appends a value to a queue of at most `most` values (0: 65536), and returns the length of the queue.
"""
enqueue!(s::Store, queue::AbstractString, value; most::Integer = 0) =
    Int(only_entry(s, op(:push, queue, value; number = most)).number)

"""
    Muster.dequeue!(store, queue; timeout = Inf) -> String

Takes the first value of a queue; waits while the queue is empty.
"""
dequeue!(s::Store, queue::AbstractString; timeout::Real = Inf) = only_entry(s, op(:pop, queue); timeout = timeout).value

"""
    Muster.barrier(store, name, rank, count; timeout = Inf)

Waits until all of `count` members have called it, each with its own rank from 0. After the timeout the error names the
missing ranks.
"""
barrier(s::Store, name::AbstractString, rank::Integer, count::Integer; timeout::Real = Inf) =
    (transact(s, op(:barrier, name; rank = rank, count = count); timeout = timeout); nothing)

"""
    Muster.changes(store, prefix, revision; timeout = Inf) -> (pairs, revision)

Waits for changes after a revision of keys that begin with `prefix`: pairs of a key and its value, or `nothing` for a key that
was deleted; and the revision from which to continue, without gaps.

    found, revision = Muster.list(store, "rank/")
    while true
        changed, revision = Muster.changes(store, "rank/", revision)
        ...
    end
"""
function changes(s::Store, prefix::AbstractString, revision::Integer; timeout::Real = Inf)
    found = transact(s, op(:watch, prefix; version = revision); timeout = timeout)
    return [entry.key => (entry.present ? entry.value : nothing) for entry in found.entries], found.revision
end
