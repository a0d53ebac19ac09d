# SPDX-License-Identifier: MIT
# How a MusterStream ends, and what is known of it then.

# What was written goes out also when the peer has finished writing: it may still read.
function Base.close(s::MusterStream)
    s.open || return nothing
    try
        push_out(s)
    catch e
        e isa Union{Base.IOError, s.exited} || rethrow() # the peer is gone: no process would read it
    end
    last_state = s.open ? (peer(s), reason(s), stats(s)) : nothing
    e = engine[]
    lock(s.changed)
    closing = s.open
    closing && (s.last_state = last_state; s.open = false)
    notify(s.changed)
    unlock(s.changed)
    closing || return nothing # another task has closed it meanwhile
    LowLevel.muster_stream_watch(s.handle, 0, C_NULL, 0)
    e === nothing || forget(e, s.tag)
    LowLevel.muster_stream_close(s.handle, 0)
    leave(s)
    return nothing
end

"""
    Muster.abort(stream, code = 0, text = "")

Ends both directions at once; the peer gets the reason.
"""
function abort(s::MusterStream, code::Integer = 0, text::AbstractString = "")
    sentence = String(text)
    check(with_handle(h -> LowLevel.muster_stream_abort(h, code, sentence, sizeof(sentence)), s), "abort a stream")
    s.gathered = 0
    s.over = true
    return nothing
end

"""
    Muster.reason(stream) -> String

The reason for the end of the stream, as a sentence; empty before it. `close(stream)` does not change it.
"""
function reason(s::MusterStream)
    detail = blank_error()
    status = with_handle(h -> LowLevel.muster_stream_reason(h, C_NULL, detail), s)
    last_state = s.last_state
    last_state === nothing || return last_state[2]
    status == LowLevel.MUSTER_OK && return ""
    return to_exception(status, detail, "the stream ended").message
end

# A text of the library, asked for its size first.
function text_of(ask, what)
    size = Ref{Csize_t}(0)
    check(ask(C_NULL, 0, size), what)
    bytes = Vector{UInt8}(undef, size[] + 1)
    check(ask(bytes, length(bytes), size), what)
    return String(resize!(bytes, size[]))
end

"""
    Muster.peer(stream) -> String

The address that was dialled, or that the connection came from.
"""
function peer(s::MusterStream)
    last_state = s.last_state
    last_state === nothing || return last_state[1]
    return text_of((p, n, size) -> with_handle(h -> LowLevel.muster_stream_peer(h, p, n, size), s), "name a peer")
end

"""
    getpeername(stream) -> (address, port)

The address of the peer, where the stream is one of IP; otherwise an `ArgumentError`, and [`Muster.peer`](@ref) has the text.
"""
Sockets.getpeername(s::MusterStream) = ip_address(peer(s))

"""
    getsockname(stream) -> (address, port)

The address of the socket at this end of a stream over tcp; otherwise an `ArgumentError`.
"""
function Sockets.getsockname(s::MusterStream)
    isopen(s) || throw(ArgumentError("the stream is closed: it has no socket"))
    size = Ref{Csize_t}(0)
    place = Vector{UInt8}(undef, 128) # longer than any address of IP
    status = with_handle(h -> LowLevel.muster_stream_local_address(h, place, length(place), size), s)
    status == LowLevel.MUSTER_E_UNSUPPORTED && throw(ArgumentError("the stream of $(peer(s)) has no socket of IP"))
    check(status, "find the address of a stream")
    return ip_address(String(resize!(place, size[])))
end

function ip_address(text)
    found = match(r"^[a-z]+://(?:\[([0-9a-fA-F:.]+)(?:%[^\]]*)?\]|([0-9.]+)):(\d+)", text)
    found === nothing && throw(ArgumentError("$text is no address of IP"))
    return parse(Sockets.IPAddr, something(found[1], found[2])), parse(UInt16, found[3])
end

"""
    Muster.stats(stream)

The counters of the stream since its start, as the C struct `muster_stream_stats`; of a closed one up to its end.
"""
function stats(s::MusterStream)
    last_state = s.last_state
    last_state === nothing || return last_state[3]
    out = Ref{LowLevel.muster_stream_stats}()
    check(with_handle(h -> LowLevel.muster_stream_get_stats(h, out), s), "read a stream's figures")
    return out[]
end
