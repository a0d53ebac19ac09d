# SPDX-License-Identifier: MIT
# One context and one completion queue per process, and the one place where Julia's event loop meets the queue's
# descriptor: a poll handle whose callback drains the queue and wakes the tasks concerned. Julia's loop never blocks in
# Muster, and no library thread ever runs Julia code.

const Lock = Base.ThreadSynchronizer # a condition with its own spin lock: safe from the callback and from every task

# Something a completion ends: a connection being made, a buffer lent to the library.
mutable struct Operation
    changed::Lock
    done::Bool
    status::Int32
    detail::Detail
    object::Ptr{Cvoid}
    bytes::UInt64
    keep::Any # what must not be collected before the completion came
    Operation(keep = nothing) = new(Lock(), false, 0, blank_error(), C_NULL, 0, keep)
end

mutable struct Engine
    context::Ptr{LowLevel.muster_context}
    queue::Ptr{LowLevel.muster_queue}
    descriptor::Cint
    poll::Ptr{Cvoid}
    # Targets by tag: a stream or listener is held weakly, unless a task waits on it; an operation is held until done.
    targets::Vector{Any}
    generations::Vector{UInt32}
    free::Vector{Int}
    lock::Threads.SpinLock # guards the three above
    entry::Base.RefValue{LowLevel.muster_completion}
    detail::Detail
end

const engine = Ref{Union{Nothing, Engine}}(nothing)
const wake_callback = Ref{Ptr{Cvoid}}(C_NULL)
const settings = Dict{Symbol, Any}()
const setting_names = (:secret, :seal, :upgrade, :heartbeat, :silent, :dead, :window)

"""
    Muster.configure!(; secret, seal, upgrade, heartbeat, silent, dead, window)

Sets options of the context of this process; before its first use (the first manager, dial or listen).
`secret`: bytes or text shared by the job, at least 16 bytes; left out: `MUSTER_SECRET_FILE`, `MUSTER_SECRET` or a
random one. `seal`: `:always`, `:never` or `:offhost` (links that leave the host; the default). `upgrade`: may links to
the same host move to shared memory (default true). `heartbeat`, `silent`, `dead`: seconds. `window`: bytes buffered per
direction of a stream, a power of two.
"""
function configure!(; options...)
    engine[] === nothing || throw(ArgumentError("Muster.configure! must come before the first use of Muster"))
    for (name, value) in options
        name in setting_names ||
            throw(ArgumentError("unknown setting $name; there are $(join(setting_names, ", "))"))
        name === :secret && (value = Vector{UInt8}(value isa AbstractString ? codeunits(value) : value))
        name === :window && (value = Int(value))
        name === :seal && !(value in (:always, :never, :offhost)) &&
            throw(ArgumentError("seal is :always, :never or :offhost, not $value"))
        settings[name] = value
    end
    return nothing
end

seconds_ns(x::Real)::Int64 = x < 0 ? -1 : round(Int64, Float64(x) * 1e9)
seconds_setting(name::Symbol)::Int64 = seconds_ns(get(settings, name, 0)::Real)

function context_flags()::UInt32
    seal = get(settings, :seal, :offhost)::Symbol
    flags = seal === :never ? LowLevel.MUSTER_CONTEXT_NO_SEAL :
            seal === :always ? LowLevel.MUSTER_CONTEXT_SEAL_ALWAYS : UInt32(0)
    get(settings, :upgrade, true)::Bool || (flags |= LowLevel.MUSTER_CONTEXT_NO_UPGRADE)
    return flags
end

# Structs of the C surface are written by position where it counts: keyword constructors take long to compile.
context_config(secret::Vector{UInt8}) = LowLevel.muster_context_config(
    sizeof(LowLevel.muster_context_config), context_flags(), isempty(secret) ? C_NULL : Ptr{Cvoid}(pointer(secret)),
    length(secret), 0, 0, 0, seconds_setting(:heartbeat), seconds_setting(:silent), seconds_setting(:dead),
    get(settings, :window, 0)::Int)

# The process's engine, started at the first call.
@inline function running()::Engine
    e = engine[]
    return e === nothing ? start_engine() : e
end

@noinline function start_engine()
    secret = get(settings, :secret, UInt8[])::Vector{UInt8}
    detail = blank_error()
    context = Ref{Ptr{LowLevel.muster_context}}(C_NULL)
    GC.@preserve secret begin
        check(LowLevel.muster_context_create(Ref(context_config(secret)), context, detail), detail, "start Muster")
    end
    queue = Ref{Ptr{LowLevel.muster_queue}}(C_NULL)
    check(LowLevel.muster_queue_create(context[], C_NULL, queue, detail), detail, "make a queue")
    descriptor = Ref{Int32}(-1)
    check(LowLevel.muster_queue_fd(queue[], descriptor), "get the queue's descriptor")
    e = Engine(context[], queue[], descriptor[], C_NULL, Any[], UInt32[], Int[], Threads.SpinLock(),
        zeroed(LowLevel.muster_completion), blank_error())
    engine[] = e
    e.poll = watch_descriptor(e.descriptor, wake_callback[])
    atexit(leave_process)
    return e
end

const UV_READABLE = Cint(1)

# As FileWatching.FDWatcher does, but watching all the time: it stops and starts again around every wait, which costs
# two system calls and a task switch per message.
function watch_descriptor(descriptor::Cint, callback::Ptr{Cvoid})::Ptr{Cvoid}
    handle = Libc.malloc(Base._sizeof_uv_poll)
    Base.disassociate_julia_struct(handle)
    Base.iolock_begin()
    status = ccall(:uv_poll_init, Cint, (Ptr{Cvoid}, Ptr{Cvoid}, RawFD), Base.eventloop(), handle, RawFD(descriptor))
    if status == 0
        status = ccall(:uv_poll_start, Cint, (Ptr{Cvoid}, Cint, Ptr{Cvoid}), handle, UV_READABLE, callback)
    else
        Libc.free(handle)
    end
    Base.iolock_end()
    status == 0 || throw(Base._UVError("watch Muster's queue", status))
    return handle
end

function unwatch_descriptor(handle::Ptr{Cvoid})
    handle == C_NULL && return nothing
    ccall(:uv_poll_stop, Cint, (Ptr{Cvoid},), handle)
    ccall(:jl_close_uv, Cvoid, (Ptr{Cvoid},), handle)
    return nothing
end

# Runs inside Julia's event loop, on a thread of Julia.
function on_wake(handle::Ptr{Cvoid}, status::Cint, events::Cint)
    e = engine[]
    e === nothing && return nothing
    try
        drain(e)
    catch problem
        # An exception must not leave a callback of the event loop.
        Base.invokelatest(showerror, stderr, problem, catch_backtrace())
    end
    return nothing
end

function drain(e::Engine)
    while LowLevel.muster_queue_next(e.queue, 0, e.entry, e.detail) == LowLevel.MUSTER_OK
        entry = e.entry[]
        target = find(e, entry.tag)
        if entry.kind == LowLevel.MUSTER_EVENT_READY
            target === nothing || became_ready(target, entry.events)
        elseif target isa Operation
            finished(target, entry, e.detail)
            forget(e, entry.tag)
        elseif target isa MessageSocket && entry.kind == LowLevel.MUSTER_DONE_MESSAGE
            came_back(target, entry)
        elseif entry.object != C_NULL
            release_unclaimed(entry.kind, entry.object)
        end
    end
    return nothing
end

# No task waits for it any more.
function release_unclaimed(kind::Int32, object::Ptr{Cvoid})
    if kind == LowLevel.MUSTER_DONE_DIAL
        LowLevel.muster_stream_release(convert(Ptr{LowLevel.muster_stream}, object))
    elseif kind == LowLevel.MUSTER_DONE_LISTEN
        LowLevel.muster_listener_release(convert(Ptr{LowLevel.muster_listener}, object))
    elseif kind == LowLevel.MUSTER_DONE_STORE
        LowLevel.muster_store_result_release(convert(Ptr{LowLevel.muster_store_result}, object))
    elseif kind == LowLevel.MUSTER_DONE_LEASE
        LowLevel.muster_lease_release(convert(Ptr{LowLevel.muster_lease}, object))
    elseif kind == LowLevel.MUSTER_DONE_RENDEZVOUS
        LowLevel.muster_round_release(convert(Ptr{LowLevel.muster_round}, object))
    elseif kind == LowLevel.MUSTER_DONE_MESSAGE
        LowLevel.muster_message_release(convert(Ptr{LowLevel.muster_message}, object))
    end
    return nothing
end

function finished(operation::Operation, entry, detail)
    lock(operation.changed)
    operation.status = entry.status
    entry.status == LowLevel.MUSTER_OK || (operation.detail[] = detail[])
    operation.object = entry.object
    operation.bytes = entry.bytes
    operation.done = true
    operation.keep = nothing
    notify(operation.changed)
    unlock(operation.changed)
    return nothing
end

function Base.wait(operation::Operation)
    lock(operation.changed)
    try
        while !operation.done
            wait(operation.changed)
        end
    finally
        unlock(operation.changed)
    end
    return operation
end

# Tags: the place in `targets`, with a generation above it, so that a late entry finds no target instead of another one.
function remember(e::Engine, target)::UInt64
    lock(e.lock)
    try
        isempty(e.free) && ispow2(length(e.targets)) && sweep(e)
        if isempty(e.free)
            push!(e.targets, nothing)
            push!(e.generations, 0)
            push!(e.free, length(e.targets))
        end
        place = pop!(e.free)
        e.targets[place] = target
        return UInt64(e.generations[place]) << 32 | UInt64(place)
    finally
        unlock(e.lock)
    end
end

# Places of streams and listeners that were collected: their finalizers must not take the lock.
function sweep(e::Engine)
    for (place, target) in enumerate(e.targets)
        if target isa WeakRef && target.value === nothing
            e.generations[place] += 0x00000001
            e.targets[place] = nothing
            push!(e.free, place)
        end
    end
    return nothing
end

place_of(tag::UInt64) = Int(tag & 0xffffffff)

function forget(e::Engine, tag::UInt64)
    lock(e.lock)
    place = place_of(tag)
    if e.generations[place] == tag >> 32
        e.generations[place] += 0x00000001
        e.targets[place] = nothing
        push!(e.free, place)
    end
    unlock(e.lock)
    return nothing
end

function find(e::Engine, tag::UInt64)
    lock(e.lock)
    place = place_of(tag)
    target = nothing
    if 0 < place <= length(e.targets) && e.generations[place] == tag >> 32
        target = e.targets[place]
        target isa WeakRef && (target = target.value)
    end
    unlock(e.lock)
    return target
end

# While a task waits on an object, the object is held: the two would otherwise be collected together.
function hold(e::Engine, tag::UInt64, target)
    lock(e.lock)
    place = place_of(tag)
    e.generations[place] == tag >> 32 && (e.targets[place] = target)
    unlock(e.lock)
    return nothing
end

# Of an object with events in the queue: called by the engine.
function raise_readable(x)
    lock(x.changed)
    x.readable = true
    notify(x.changed)
    unlock(x.changed)
    return nothing
end

# Parks the task until `ready()`, which is called with the lock held and becomes true by a notification, or until the object is
# closed here; `false` if that took too long.
function park_until(ready, x, seconds::Float64)::Bool
    e = running()
    late = seconds <= 0
    timer = late || !isfinite(seconds) ? nothing : Timer(seconds) do _
        late = true
        lock(x.changed)
        notify(x.changed)
        unlock(x.changed)
    end
    lock(x.changed)
    try
        x.waiting += 1
        x.waiting == 1 && hold(e, x.tag, x)
        while x.open && !ready() && !late
            wait(x.changed)
        end
        return ready() || !late
    finally
        x.waiting -= 1
        x.waiting == 0 && hold(e, x.tag, x.weak)
        unlock(x.changed)
        timer === nothing || close(timer)
    end
end

# The same, until there is something to take.
park_readable(x, seconds::Float64 = Inf)::Bool = park_until(() -> x.readable, x, seconds)

"""
    Muster.secret() -> Vector{UInt8}

The secret of the context of this process, for a process that is to connect; it must not be passed on a command line.
"""
function secret()
    e = running()
    size = Ref{Csize_t}(0)
    check(LowLevel.muster_context_secret(e.context, C_NULL, 0, size), "read the secret")
    bytes = Vector{UInt8}(undef, size[])
    check(LowLevel.muster_context_secret(e.context, bytes, length(bytes), size), "read the secret")
    return bytes
end

const leaving = Any[] # functions of extensions, called at exit before the context ends

# At exit: workers are notified through their streams, then bytes that were written have up to two seconds to be sent.
# Distributed's
# own hook does the first part, but runs after this one if it was set up earlier.
function leave_process()
    e = engine[]
    e === nothing && return nothing
    if myid() == 1 && nprocs() > 1
        Distributed.terminate_all_workers()
    end
    foreach(f -> f(), leaving)
    dismiss_ranks()
    leave_elastic()
    outlive_master()
    engine[] = nothing
    unwatch_descriptor(e.poll)
    requests[] === nothing || unwatch_descriptor(requests[].poll)
    requests[] = nothing
    LowLevel.muster_context_close(e.context, 2_000_000_000) # brokers end last
    return nothing
end
