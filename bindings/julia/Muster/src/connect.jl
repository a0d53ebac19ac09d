# SPDX-License-Identifier: MIT
# Dialling and listening by address.

transport_config(hello::String, window::Int, retry::Real) = LowLevel.muster_transport_config(
    sizeof(LowLevel.muster_transport_config), 0, isempty(hello) ? C_NULL : Ptr{Cvoid}(pointer(hello)),
    sizeof(hello), window, 0, 0, seconds_ns(retry), 0)

"""
    Muster.pair(; window = 0) -> (MusterStream, MusterStream)

Makes two connected ends in this process: bytes that are written to one are read from the other.
"""
function pair(; window::Integer = 0)
    first, second = pair_handles(Int(window))
    return MusterStream(first), MusterStream(second)
end

function pair_handles(window::Int)
    first, second = Ref{Ptr{LowLevel.muster_stream}}(C_NULL), Ref{Ptr{LowLevel.muster_stream}}(C_NULL)
    detail = blank_error()
    config = LowLevel.muster_stream_config(sizeof(LowLevel.muster_stream_config), 0, window)
    check(LowLevel.muster_stream_pair(running().context, Ref(config), first, second, detail), detail, "make a pair")
    return first[], second[]
end

"""
    Muster.dial(address; timeout = 60, hello = "", window = 0, retry = 0) -> MusterStream

Connects to `tcp://host:port`, `unix:///path`, `shm://name`, or an address of a plug-in; returns when both sides have proved
the secret. The peer receives `hello`; `retry`: seconds in which it tries again while no process listens at the address.
"""
function dial(address::AbstractString; timeout::Real = 60, hello::AbstractString = "", window::Integer = 0,
              retry::Real = 0)
    return dial_address(String(address), Float64(timeout), String(hello), Int(window), Float64(retry))
end

function dial_address(text::String, timeout::Float64, hello::String, window::Int, retry::Float64)::MusterStream
    e = running()
    operation = Operation()
    tag = remember(e, operation)
    detail = blank_error()
    status = GC.@preserve hello LowLevel.muster_transport_dial_begin(e.context, text, sizeof(text),
        Ref(transport_config(hello, window, retry)), max(1, seconds_ns(timeout)), e.queue, tag, detail)
    if status != LowLevel.MUSTER_OK
        forget(e, tag)
        check(status, detail, "dial $text")
    end
    try
        wait(operation)
    catch
        forget(e, tag) # interrupted: a stream that comes later is released by the engine
        rethrow()
    end
    if operation.status != LowLevel.MUSTER_OK
        throw(to_exception(operation.status, operation.detail, "dial $text"))
    end
    return MusterStream(convert(Ptr{LowLevel.muster_stream}, operation.object))
end

"""
    Muster.Listener

Made by [`Muster.listen`](@ref). `accept(listener)` gives the next connection, `Muster.address(listener)` the address
that peers dial, `close(listener)` ends it.
"""
mutable struct Listener
    handle::Ptr{LowLevel.muster_listener}
    uses::Uses # of the handle, see handle.jl
    address::String
    tag::UInt64
    weak::WeakRef
    changed::Lock
    readable::Bool
    waiting::Int
    open::Bool
    function Listener(handle)
        l = new(handle, Uses(1), "", 0, WeakRef(), Lock(), false, 0, true)
        l.weak = WeakRef(l)
        e = running()
        l.tag = remember(e, l.weak)
        finalizer(finalize_uses, l)
        check(LowLevel.muster_listener_watch(handle, e.queue, l.tag), "watch a listener")
        l.address = text_of((p, n, size) -> LowLevel.muster_listener_address(handle, p, n, size), "name a listener")
        return l
    end
end

function release_handle(l::Listener)
    LowLevel.muster_listener_release(l.handle)
    l.handle = C_NULL
    return nothing
end

"""
    Muster.listen(address; window = 0, retry = 0) -> Listener

Listens at an address; with `tcp://127.0.0.1:0` the kernel chooses the port. Options follow as in
`tcp://0.0.0.0:4100?advertise=node7`. `retry`: seconds in which it tries again while the broker of a star cannot be reached.
"""
listen(address::AbstractString; window::Integer = 0, retry::Real = 0) =
    listen_at(String(address), Int(window), Float64(retry))

function listen_at(text::String, window::Int, retry::Float64)::Listener
    until = time() + retry
    pause = 0.01
    while true
        try
            return listen_now(text, window)
        catch problem
            problem isa MusterError && problem.status == LowLevel.MUSTER_E_UNREACHABLE && time() + pause < until || rethrow()
        end
        sleep(pause)
        pause = min(2 * pause, 0.2)
    end
end

function listen_now(text::String, window::Int)::Listener
    e = running()
    operation = Operation()
    tag = remember(e, operation)
    detail = blank_error()
    status = LowLevel.muster_transport_listen_begin(e.context, text, sizeof(text), Ref(transport_config("", window, 0.0)),
        e.queue, tag, detail)
    if status != LowLevel.MUSTER_OK
        forget(e, tag)
        check(status, detail, "listen at $text")
    end
    try
        wait(operation)
    catch
        LowLevel.muster_queue_cancel_operation(e.queue, tag)
        forget(e, tag) # interrupted: a listener that comes later is released by the engine
        rethrow()
    end
    if operation.status != LowLevel.MUSTER_OK
        throw(to_exception(operation.status, operation.detail, "listen at $text"))
    end
    return Listener(convert(Ptr{LowLevel.muster_listener}, operation.object))
end

became_ready(l::Listener, ::UInt32) = raise_readable(l)

Base.isopen(l::Listener) = l.open
Base.show(io::IO, l::Listener) = print(io, "Muster.Listener(", address(l), l.open ? "" : ", closed", ")")

"""
    Muster.address(listener) -> String

The address that peers dial: with the actual port and the advertised host.
"""
address(l::Listener) = l.address

"""
    accept(listener::Muster.Listener) -> MusterStream

Waits for the next connection that has proved the secret.
"""
function Sockets.accept(l::Listener)
    stream = Ref{Ptr{LowLevel.muster_stream}}(C_NULL)
    detail = blank_error()
    while l.open
        l.readable = false
        enter(l) || break
        status = LowLevel.muster_listener_accept(l.handle, 0, stream, detail)
        leave(l)
        status == LowLevel.MUSTER_OK && return MusterStream(stream[])
        status == LowLevel.MUSTER_AGAIN || check(status, detail, "accept")
        park_readable(l)
    end
    throw(MusterError(LowLevel.MUSTER_E_CLOSED, "accept"))
end

"""
    Muster.hello(stream) -> String

The hello that the peer has sent.
"""
function hello(s::MusterStream)
    size = Ref{Csize_t}(0)
    ask(place, room) = check(with_handle(h -> LowLevel.muster_transport_hello(h, place, room, size), s), "read a hello")
    ask(C_NULL, 0)
    bytes = Vector{UInt8}(undef, size[])
    isempty(bytes) || ask(bytes, length(bytes))
    return String(bytes)
end

function Base.close(l::Listener)
    lock(l.changed)
    closing = l.open
    l.open = false
    notify(l.changed)
    unlock(l.changed)
    closing || return nothing
    LowLevel.muster_listener_watch(l.handle, C_NULL, 0)
    e = engine[]
    e === nothing || forget(e, l.tag)
    LowLevel.muster_listener_close(l.handle)
    leave(l)
    return nothing
end
