# SPDX-License-Identifier: MIT
# The writing side of a MusterStream.

# Not called directly: cold code is compiled only when it is needed, not with everything that could reach it.
failed_write(s::MusterStream, status) = Base.invokelatest(throw_failed_write, s, status)
function throw_failed_write(s::MusterStream, status)
    gone = status == LowLevel.MUSTER_E_PEER || status == LowLevel.MUSTER_E_ABORTED
    gone && (s.over = true)
    worker = gone || !s.open ? worker_at(s) : 0
    worker > 0 && throw(s.exited(worker))
    s.open || throw(Base.IOError("write to a closed MusterStream", Base.UV_EPIPE))
    why = gone ? reason(s) : s.finished ? "this side has finished writing" : status_text(status)
    throw(Base.IOError("write to " * with_peer(s, why), Base.UV_EPIPE))
end

# The worker that a link of Distributed leads to, or 0. A call to a worker that has just died may come before Distributed has
# removed that worker, and then fails with the same exception as a call after that.
worker_at(s::MusterStream) = !s.shielded ? 0 : s.worker > 0 ? s.worker : max(0, worker_id_from_socket(s))

# Writes it all from memory the caller keeps alive. An interrupt leaves the stream whole: the peer gets every byte. In the
# middle of one of Distributed's messages it has to wait for the end of the message, or the peer would take the next one
# for the rest of it; a second interrupt does not wait.
@noinline function write_all(s::MusterStream, p::Ptr{UInt8}, n::Int)
    # What fits goes at once; mostly that is all of it.
    done = write_some(s, p, n, 1)
    done == n && return nothing
    turn = TURN_BYTES
    pace = Pace()
    begin_transfer()
    try
        while done < n
            before = done
            done += write_some(s, p + done, min(n - done, TURN_BYTES), wait_ns(pace, s.spin))
            done == n && break
            try
                done == before && pace.park && park(s, :writable)
                turn = take_turns(pace, done - before, done, turn)
            catch problem
                if problem isa InterruptException && s.shielded && s.postponed === nothing
                    s.postponed = problem
                else
                    s.open && Base.invokelatest(hand_over, s, p + done, n - done)
                    rethrow()
                end
            end
        end
    finally
        end_transfer()
    end
    return nothing
end

function write_some(s::MusterStream, p::Ptr{UInt8}, n::Int, wait_ns::Int)::Int
    s.writable = false
    enter(s) || failed_write(s, LowLevel.MUSTER_E_CLOSED)
    status = LowLevel.muster_stream_write(s.handle, p, n, wait_ns, s.given)
    leave(s)
    if status == LowLevel.MUSTER_E_WOULD_DEADLOCK
        s.spin.hopeless = true
    elseif status < 0
        failed_write(s, status)
    end
    return Int(s.given[])
end

# The rest of an interrupted write goes on as a copy of ours: the caller's memory may be collected any moment now.
@noinline function hand_over(s::MusterStream, p::Ptr{UInt8}, n::Int)
    e = running()
    rest = Vector{UInt8}(undef, n)
    GC.@preserve rest unsafe_copyto!(pointer(rest), p, n)
    tag = remember(e, Operation(rest))
    status = with_handle(h -> LowLevel.muster_stream_write_owned(h, rest, n, e.queue, tag), s, LowLevel.MUSTER_AGAIN)
    if status == LowLevel.MUSTER_AGAIN || status == LowLevel.MUSTER_E_NOMEM
        # The library took nothing of the rest, so the message stays incomplete: the abort notifies the peer.
        forget(e, tag)
        text = "a write was interrupted"
        with_handle(h -> LowLevel.muster_stream_abort(h, 0, text, sizeof(text)), s)
    end
    return nothing
end

@noinline function push_out(s::MusterStream)
    count = s.gathered
    count == 0 && return nothing
    s.gathered = 0
    GC.@preserve s write_all(s, pointer(s.output), count)
    return nothing
end

@noinline function Base.write(s::MusterStream, byte::UInt8)
    s.gathered == GATHER_BYTES && push_out(s)
    s.gathered += 1
    @inbounds s.output[s.gathered] = byte
    return 1
end

@noinline function Base.unsafe_write(s::MusterStream, p::Ptr{UInt8}, n::UInt)
    count = Int(n)
    if count > GATHER_BYTES - s.gathered
        push_out(s)
        if count >= GATHER_BYTES
            if count >= FAN_BYTES
                number = fan_of(s)
                number != 0 && write_together(s, number, p, count) && return count
            end
            write_all(s, p, count)
            return count
        end
    end
    GC.@preserve s unsafe_copyto!(pointer(s.output, s.gathered + 1), p, count)
    s.gathered += count
    return count
end

function Base.flush(s::MusterStream)
    push_out(s)
    if s.postponed !== nothing
        problem = s.postponed
        s.postponed = nothing
        throw(problem)
    end
    return nothing
end

"""
    Muster.closewrite(stream)

Half-close: the peer reads everything and then the end; this side can still read.
"""
function finish_writing(s::MusterStream)
    push_out(s)
    check(with_handle(LowLevel.muster_stream_finish, s), "finish a stream")
    s.finished = true
    return nothing
end
if isdefined(Base, :closewrite)
    Base.closewrite(s::MusterStream) = finish_writing(s)
else
    const closewrite = finish_writing
end
