# SPDX-License-Identifier: MIT
# Transports served by Julia: the bytes of a scheme travel through whatever IO Julia has.
#
# The library's requests come as callbacks (@cfunction), run by muster_queue_dispatch() inside Julia's event loop, on a
# thread of Julia. They only start tasks; a task connects, answers the request, and pumps bytes between its IO and the far
# end of the stream. The library does the rest: proof of the secret, sealing, half-close, signs of life.

mutable struct ServedTransport
    scheme::String
    connect::Any
    listen::Any
    ends::Dict{UInt64, Any} # request id: what to call when that connection or listener is over
end
ServedTransport(scheme, connect, listen) = ServedTransport(scheme, connect, listen, Dict{UInt64, Any}())

# The queue of requests, with a descriptor of its own in Julia's loop.
mutable struct Requests
    queue::Ptr{LowLevel.muster_queue}
    poll::Ptr{Cvoid}
    transports::Vector{ServedTransport} # a table's `self` is the place in here
end

const requests = Ref{Union{Nothing, Requests}}(nothing)

function serving_requests()
    r = requests[]
    r === nothing || return r
    e = running()
    detail = blank_error()
    queue = Ref{Ptr{LowLevel.muster_queue}}(C_NULL)
    check(LowLevel.muster_queue_create(e.context, C_NULL, queue, detail), detail, "make a queue for requests")
    descriptor = Ref{Int32}(-1)
    check(LowLevel.muster_queue_fd(queue[], descriptor), "get the descriptor of the requests")
    requests[] = Requests(queue[], watch_descriptor(descriptor[], requests_callback()), ServedTransport[])
    return requests[]
end

function on_requests(handle::Ptr{Cvoid}, status::Cint, events::Cint)
    r = requests[]
    r === nothing || LowLevel.muster_queue_dispatch(r.queue, 0, C_NULL, C_NULL, C_NULL)
    return nothing
end

# Made at the first use: most workers serve none, and compiling it takes its time.
requests_callback() = @cfunction(on_requests, Cvoid, (Ptr{Cvoid}, Cint, Cint))

served_by(self::Ptr{Cvoid}) = requests[].transports[Int(UInt(self))]

# The table's callbacks. Nothing may be thrown through the library, and nothing here waits.
function on_open(self::Ptr{Cvoid}, request::UInt64, address::Ptr{UInt8}, bytes::UInt64)
    text = unsafe_string(address, bytes)
    transport = served_by(self)
    @async answer_open(transport, request, text)
    return nothing
end

function on_listen(self::Ptr{Cvoid}, request::UInt64, address::Ptr{UInt8}, bytes::UInt64)
    text = unsafe_string(address, bytes)
    transport = served_by(self)
    @async answer_listen(transport, request, text)
    return nothing
end

function on_over(self::Ptr{Cvoid}, request::UInt64)
    finish = pop!(served_by(self).ends, request, nothing)
    finish === nothing || @async finish()
    return nothing
end

refuse(request, problem) = (text = first_bytes(sprint(showerror, problem), 200);
    LowLevel.muster_request_fail(requests[].queue, request, LowLevel.MUSTER_E_UNREACHABLE, text, sizeof(text)))
first_bytes(text, n) = sizeof(text) <= n ? text : String(text[1:prevind(text, thisind(text, n))])

# Anything else fails the request at once. Without this the dialer would wait for the handshake until its timeout.
checked_io(io, what) = io isa IO ? io : throw(ArgumentError("$what returned no IO but a $(typeof(io))"))

function answer_open(transport::ServedTransport, request, address)
    io = try
        checked_io(transport.connect(address), "connect of $(transport.scheme)://")
    catch problem
        refuse(request, problem)
        return nothing
    end
    pump = Ref{Ptr{LowLevel.muster_stream}}(C_NULL)
    status = LowLevel.muster_request_stream(requests[].queue, request, pump, C_NULL)
    if status != LowLevel.MUSTER_OK # no longer wanted, or no memory for it
        refuse(request, MusterError(status, "make a stream for $address"))
        close(io)
        return nothing
    end
    carry(transport, request, io, MusterStream(pump[]))
    return nothing
end

function answer_listen(transport::ServedTransport, request, address)
    local text, finish
    try
        answer = transport.listen(address, (io, peer) -> arrived(transport, request, io, peer))
        answer isa Tuple{AbstractString, Any} ||
            throw(ArgumentError("listen of $(transport.scheme):// returned no (address, close) but a $(typeof(answer))"))
        text, finish = String(answer[1]), answer[2]
    catch problem
        refuse(request, problem)
        return nothing
    end
    transport.ends[request] = finish
    detail = blank_error()
    status = LowLevel.muster_request_listening(requests[].queue, request, text, sizeof(text), detail)
    if status != LowLevel.MUSTER_OK # no longer wanted; or the address is none of this scheme, and the request still waits
        delete!(transport.ends, request)
        refuse(request, to_exception(status, detail, "listen at $address as $text"))
        finish()
    end
    return nothing
end

# A connection came in on a listener of ours.
function arrived(transport::ServedTransport, listener, io, peer)
    checked_io(io, "the listener of $(transport.scheme)://")
    id = Ref{UInt64}(0)
    pump = Ref{Ptr{LowLevel.muster_stream}}(C_NULL)
    name = first_bytes(String(peer), 200)
    status = LowLevel.muster_transport_incoming(requests[].queue, listener, name, sizeof(name), id, pump, C_NULL)
    if status != LowLevel.MUSTER_OK
        close(io)
        return nothing
    end
    carry(transport, id[], io, MusterStream(pump[]))
    return nothing
end

# The library ends a pump that is no longer wanted: then there is no more, and nothing to report.
has_more(pump::MusterStream) = try
    !eof(pump)
catch problem
    problem isa Base.IOError || rethrow()
    false
end

# False: the peer receives no more. What it has sent before is still received, and the end is found there.
function sent(io, bytes)
    try
        write(io, bytes)
        flush(io)
        return true
    catch problem
        problem isa Base.IOError && problem.code in (Base.UV_EPIPE, Base.UV_ECONNRESET) || rethrow()
        return false
    end
end

# Moves bytes both ways until both sides have ended. CLOSE comes when the pump has been closed here, or at once when the
# connection has failed: then what is left need not be sent.
function carry(transport::ServedTransport, id, io::IO, pump::MusterStream)
    transport.ends[id] = () -> close(io)
    @async begin
        try
            taken = true
            while has_more(pump)
                bytes = readavailable(pump)
                taken = taken && sent(io, bytes)
            end
        catch
            abort(pump, 0, "the connection below broke")
        end
        delete!(transport.ends, id)
        close(io)
        try
            close(pump)
        catch
        end
    end
    @async begin
        broken = false
        while true
            bytes = try
                eof(io) ? nothing : readavailable(io)
            catch
                broken = true
                nothing
            end
            bytes === nothing && break
            try
                write(pump, bytes)
                flush(pump)
            catch # the library takes no more: what it has written before is still read above
                return
            end
        end
        try
            broken ? abort(pump, 0, "the connection below broke") : closewrite(pump)
        catch # it is over
        end
    end
    return nothing
end

"""
    Muster.transport!(scheme; connect, listen, local_only = false)

Registers functions of this process as the transport of `scheme://...` addresses.

- `connect(address) -> io`: a connected `IO` for an address.
- `listen(address, arrived) -> (address, close)`: listens; calls `arrived(io, peer)` for each connection, from a task of
  its own; gives the address peers dial and a function that stops it.
- `local_only`: bytes never leave this host, so they need not be sealed.

Both run in tasks and may wait. If they throw, the `dial` or `listen` fails with that text; also if the result is not an `IO`,
or not an address of this scheme. Processes that dial need the transport as well as those that listen; for workers see the
`setup` of [`MusterManager`](@ref).
"""
function transport!(scheme::AbstractString; connect, listen, local_only::Bool = false)
    e = running()
    r = serving_requests()
    name = String(scheme)
    push!(r.transports, ServedTransport(name, connect, listen))
    ops = LowLevel.muster_transport_ops(flags = local_only ? LowLevel.MUSTER_TRANSPORT_LOCAL : UInt32(0),
        open = @cfunction(on_open, Cvoid, (Ptr{Cvoid}, UInt64, Ptr{UInt8}, UInt64)),
        listen = @cfunction(on_listen, Cvoid, (Ptr{Cvoid}, UInt64, Ptr{UInt8}, UInt64)),
        close = @cfunction(on_over, Cvoid, (Ptr{Cvoid}, UInt64)),
        cancel = @cfunction(on_over, Cvoid, (Ptr{Cvoid}, UInt64)))
    detail = blank_error()
    self = Ptr{Cvoid}(UInt(length(r.transports)))
    check(LowLevel.muster_transport_serve_ops(e.context, name, sizeof(name), Ref(ops), self, r.queue, detail), detail,
        "serve $name://")
    return nothing
end
