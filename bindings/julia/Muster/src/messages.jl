# SPDX-License-Identifier: MIT
# Messages between many: dealers and routers for tasks. A task that waits lets other tasks go on.

"""
    Muster.Message(type; source = 0, destination = 0, target = 0, target_version = 0, frames = ())

A message: a header of numbers, and frames of bytes. `frames` has strings and arrays of plain types, best in a tuple: Julia
converts
the elements of `[bytes, numbers]` to one type. Frames of a received message are `Vector{UInt8}`. `Muster.array(message, i,
T)` is frame `i` as a vector of `T`, `Muster.text(message, i)` as a string.
"""
mutable struct Message
    type::UInt32
    source::UInt64
    destination::UInt64
    target::UInt64
    target_version::Int64
    hops::Int
    status::Int32 # of a message that was not delivered: the reason
    frames::Vector{Any}
end
Message(type::Integer; source::Integer = 0, destination::Integer = 0, target::Integer = 0, target_version::Integer = 0,
        frames = ()) = Message(type, source, destination, target, target_version, 0, 0, Any[frames...])

array(m::Message, i::Integer, ::Type{T}) where {T} = collect(reinterpret(T, m.frames[i]))
text(m::Message, i::Integer) = String(copy(m.frames[i]))

"""
    Muster.answer(message; type = message.type, frames = ()) -> Muster.Message

A reply to the sender, with the same target.
"""
answer(m::Message; type::Integer = m.type, frames = ()) =
    Message(type; destination = m.source, target = m.target, target_version = m.target_version, frames = frames)

frame_bytes(frame::AbstractString) = (s = String(frame); (s, pointer(s), sizeof(s)))
function frame_bytes(frame::AbstractArray{T}) where {T}
    isbitstype(T) || throw(ArgumentError("a frame of a message is a string or an array of a plain type, not of $T"))
    a = frame isa Array ? frame : collect(frame)
    return a, pointer(a), sizeof(a)
end
frame_bytes(frame) = throw(ArgumentError("a frame of a message is a string or an array, not a $(typeof(frame))"))

function handle_of(m::Message)::Ptr{LowLevel.muster_message}
    made = Ref{Ptr{LowLevel.muster_message}}(C_NULL)
    check(LowLevel.muster_message_create(made), "make a message")
    try
        header = Ref(LowLevel.muster_message_header(type_ = m.type, source = m.source, destination = m.destination,
            target = m.target, target_version = m.target_version))
        check(LowLevel.muster_message_set_header(made[], header), "make a message")
        for frame in m.frames
            kept, at, bytes = frame_bytes(frame)
            GC.@preserve kept check(LowLevel.muster_message_add_frame(made[], at, bytes), "add a frame")
        end
    catch
        LowLevel.muster_message_release(made[])
        rethrow()
    end
    return made[]
end

# Takes the message over.
function message_of(handle::Ptr{LowLevel.muster_message}, status::Int32 = Int32(0))::Message
    header = Ref(LowLevel.muster_message_header())
    LowLevel.muster_message_get_header(handle, header)
    h = header[]
    m = Message(h.type_, h.source, h.destination, h.target, h.target_version, h.hops, status, Any[])
    buffer = zeroed(LowLevel.muster_buffer)
    for i in 1:LowLevel.muster_message_frame_count(handle)
        LowLevel.muster_message_frame(handle, i - 1, buffer)
        bytes = Vector{UInt8}(undef, buffer[].bytes)
        unsafe_copyto!(pointer(bytes), Ptr{UInt8}(buffer[].data), length(bytes))
        push!(m.frames, bytes)
    end
    LowLevel.muster_message_release(handle)
    return m
end

"""
    Muster.MessageSocket

Made by [`Muster.Router`](@ref) and [`Muster.Dealer`](@ref). A router sends to the peer with the address of the destination, a
dealer to its peers in turn. `socket.address`; `socket.undelivered` has messages that could not be delivered.

    router = Muster.Router(address = 1)
    at = Muster.bind!(router, "tcp://127.0.0.1:0")
    dealer = Muster.Dealer(address = 2)
    Muster.connect!(dealer, at)
    Muster.send!(dealer, Muster.Message(300; frames = ("hello", [1.5, 2.5])))
    request = Muster.receive!(router)                       # Muster.array(request, 2, Float64)
    Muster.send!(router, Muster.answer(request; frames = ("answer",)))
    close(dealer); close(router)
"""
mutable struct MessageSocket
    handle::Ptr{LowLevel.muster_socket}
    uses::Uses
    address::UInt64
    tag::UInt64
    weak::WeakRef
    changed::Lock
    events::Int # readiness so far
    waiting::Int
    open::Bool
    undelivered::Vector{Message}
    function MessageSocket(kind::Integer; options...)
        e = running()
        s = new(C_NULL, Uses(1), 0, 0, WeakRef(), Lock(), 0, 0, true, Message[])
        s.weak = WeakRef(s)
        s.tag = remember(e, s.weak)
        made, detail = Ref{Ptr{LowLevel.muster_socket}}(C_NULL), blank_error()
        config = Ref(LowLevel.muster_socket_config(; kind = kind, queue = e.queue, tag = s.tag, options...))
        status = LowLevel.muster_socket_create(e.context, config, made, detail)
        if status != LowLevel.MUSTER_OK
            forget(e, s.tag)
            check(status, detail, "make a socket")
        end
        s.handle = made[]
        s.address = LowLevel.muster_socket_address(s.handle)
        finalizer(finalize_uses, s)
        return s
    end
end

"""
    Muster.Dealer(; address = 0, max_queued_messages = 0, ...) -> Muster.MessageSocket

`address` 0: a random one. The options are the fields of `muster_socket_config`.
"""
Dealer(; options...) = MessageSocket(LowLevel.MUSTER_SOCKET_DEALER; options...)

"""
    Muster.Router(; address = 0, max_queued_messages = 0, ...) -> Muster.MessageSocket

As [`Muster.Dealer`](@ref).
"""
Router(; options...) = MessageSocket(LowLevel.MUSTER_SOCKET_ROUTER; options...)

function release_handle(s::MessageSocket)
    LowLevel.muster_socket_release(s.handle)
    s.handle = C_NULL
    return nothing
end

Base.isopen(s::MessageSocket) = s.open
Base.show(io::IO, s::MessageSocket) =
    print(io, "Muster.MessageSocket(0x", string(s.address, base = 16), s.open ? ")" : ", closed)")

function became_ready(s::MessageSocket, ::UInt32)
    lock(s.changed)
    s.events += 1
    notify(s.changed)
    unlock(s.changed)
    return nothing
end

# From the engine: a message that could not be delivered.
function came_back(s::MessageSocket, entry)
    m = message_of(convert(Ptr{LowLevel.muster_message}, entry.object), entry.status)
    lock(s.changed)
    push!(s.undelivered, m)
    unlock(s.changed)
    return became_ready(s, UInt32(0))
end

# Calls `attempt` until it returns something other than AGAIN, and in between waits for readiness.
function attempt_until(attempt, s::MessageSocket, timeout::Real)::Int32
    until = time() + timeout
    while s.open
        seen = s.events
        enter(s) || break
        status = attempt()
        leave(s)
        status == LowLevel.MUSTER_AGAIN || return status
        time() < until || return LowLevel.MUSTER_TIMEOUT
        park_until(() -> s.events != seen, s, Float64(until - time()))
    end
    return LowLevel.MUSTER_E_CLOSED
end

"""
    Muster.bind!(socket, address) -> String

Listens at an address of a transport; returns the address that peers connect to.
"""
function bind!(s::MessageSocket, address::AbstractString)
    at, detail, out = String(address), blank_error(), Vector{UInt8}(undef, 4200)
    status = with_handle(s) do handle
        LowLevel.muster_socket_bind(handle, at, sizeof(at), out, length(out), detail)
    end
    check(status, detail, "bind $at")
    return unsafe_string(pointer(out))
end

"""
    Muster.connect!(socket, address)

Connects to an address of a transport, and again when the connection is lost, until the socket is closed.
"""
function connect!(s::MessageSocket, address::AbstractString)
    at, detail = String(address), blank_error()
    status = with_handle(s) do handle
        LowLevel.muster_socket_connect(handle, at, sizeof(at), detail)
    end
    return check(status, detail, "connect to $at")
end

"""
    Muster.wait_peers(socket, count; timeout = Inf)

Waits until this number of peers are connected.
"""
function wait_peers(s::MessageSocket, count::Integer; timeout::Real = Inf)
    status = attempt_until(s, timeout) do
        LowLevel.muster_socket_wait_peers(s.handle, count, 0, C_NULL)
    end
    return check(status, "wait for $count peers")
end

"""
    Muster.send!(socket, message; timeout = Inf)

Sends a message; waits while the queue of its peer is full.
"""
function send!(s::MessageSocket, m::Message; timeout::Real = Inf)
    handle, detail = handle_of(m), blank_error()
    status = LowLevel.MUSTER_E_CLOSED
    try
        status = attempt_until(s, timeout) do
            LowLevel.muster_socket_send(s.handle, handle, 0, detail)
        end
    finally
        status == LowLevel.MUSTER_OK || LowLevel.muster_message_release(handle)
    end
    return check(status, detail, "send a message")
end

"""
    Muster.receive!(socket; timeout = Inf) -> Muster.Message

Waits for the next message of any peer.
"""
function receive!(s::MessageSocket; timeout::Real = Inf)::Message
    got = Ref{Ptr{LowLevel.muster_message}}(C_NULL)
    status = attempt_until(s, timeout) do
        LowLevel.muster_socket_receive(s.handle, 0, got)
    end
    check(status, "receive a message")
    return message_of(got[])
end

const SOCKET_EVENTS = (:connected, :lost, :replaced, :refused)

"""
    Muster.next_event(socket; timeout = Inf) -> (kind, address, incarnation, undelivered, text)

Waits for the next event of the peers: `:connected`, `:lost`, `:replaced` or `:refused`.
"""
function next_event(s::MessageSocket; timeout::Real = Inf)
    event = zeroed(LowLevel.muster_socket_event)
    status = attempt_until(s, timeout) do
        LowLevel.muster_socket_next_event(s.handle, 0, event)
    end
    check(status, "wait for an event")
    text = GC.@preserve event unsafe_string(Ptr{UInt8}(Base.pointer_from_objref(event)) +
        fieldoffset(LowLevel.muster_socket_event, Base.fieldindex(LowLevel.muster_socket_event, :text)), Int(event[].text_bytes))
    return (kind = SOCKET_EVENTS[event[].kind], address = event[].address, incarnation = event[].incarnation,
            undelivered = Int(event[].undelivered), text = text)
end

"""
    close(socket::Muster.MessageSocket; timeout = 5)

Waits up to `timeout` seconds until the peers have read what was sent, and ends the connections; tasks that wait get a
`MusterError` with the status `MUSTER_E_CLOSED`.
"""
function Base.close(s::MessageSocket; timeout::Real = 5)
    lock(s.changed)
    closing = s.open
    s.open = false
    notify(s.changed)
    unlock(s.changed)
    closing || return nothing
    in_pool(() -> nothing) do
        @threadcall(LowLevel.at_muster_socket_close[], Int32, (Ptr{LowLevel.muster_socket}, Int64), s.handle,
            deadline_ns(timeout))
    end
    leave(s)
    return nothing
end
