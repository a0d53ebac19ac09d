# SPDX-License-Identifier: MIT
# One array to many: tasks that send the same block to several workers of a star at the same time send it together, so
# that it goes to the broker once.
#
#     @sync for p in workers()
#         @async remotecall_wait(use, p, array)
#     end

const FAN_BYTES = 256 * 1024

struct Fan
    streams::Vector{MusterStream}
    operations::Vector{Operation}
end
const fans = Dict{Tuple{UInt64, Ptr{UInt8}, Int}, Fan}() # those whose tasks are still coming
const fans_lock = ReentrantLock()

# Streams with the same number can be written to together; 0: it is alone.
function fan_of(s::MusterStream)::UInt64
    out = Ref{LowLevel.muster_stream_stats}()
    with_handle(h -> LowLevel.muster_stream_get_stats(h, out), s) == LowLevel.MUSTER_OK || return 0
    return out[].multicast_group
end

# False: no other task writes this block, or the library did not accept it now; nothing was written.
@noinline function write_together(s::MusterStream, number::UInt64, p::Ptr{UInt8}, n::Int)::Bool
    key = (number, p, n)
    operation = Operation()
    fan, begins = lock(fans_lock) do
        begins = !haskey(fans, key)
        fan = get!(() -> Fan(MusterStream[], Operation[]), fans, key)
        push!(fan.streams, s)
        push!(fan.operations, operation)
        fan, begins
    end
    if begins
        try
            yield() # the other tasks come here now
        finally
            lock(() -> delete!(fans, key), fans_lock)
            length(fan.streams) == 1 || Base.invokelatest(begin_fan, fan, p, n)
        end
        length(fan.streams) == 1 && return false
    end
    return await_release(s, operation, n)
end

function begin_fan(fan::Fan, p::Ptr{UInt8}, n::Int)
    e = running()
    tags = UInt64[remember(e, operation) for operation in fan.operations]
    statuses = Vector{Int32}(undef, length(tags))
    fill!(statuses, LowLevel.MUSTER_E_ARG)
    entered = map(enter, fan.streams) # a stream that was closed meanwhile has no handle: MUSTER_E_ARG
    handles = [s.handle for s in fan.streams]
    GC.@preserve fan LowLevel.muster_stream_write_owned_many(handles, length(handles), p, n, e.queue, tags, statuses)
    foreach(leave, fan.streams[entered])
    for (operation, tag, status) in zip(fan.operations, tags, statuses)
        # Of these a release comes, or has come already.
        status in (LowLevel.MUSTER_OK, LowLevel.MUSTER_E_CLOSED, LowLevel.MUSTER_E_PEER, LowLevel.MUSTER_E_ABORTED,
            LowLevel.MUSTER_E_CANCELED) && continue
        forget(e, tag)
        lock(operation.changed)
        operation.status = LowLevel.MUSTER_AGAIN
        operation.done = true
        notify(operation.changed)
        unlock(operation.changed)
    end
    return nothing
end

# The block is the library's until its release: an interrupt waits for that. In the middle of a message it waits for the
# message, too, once; the next one ends the stream, since its peer would not understand it any more.
function await_release(s::MusterStream, operation::Operation, n::Int)::Bool
    problem = nothing
    while true
        try
            wait(operation)
            break
        catch interrupt
            interrupt isa InterruptException || rethrow()
            if s.shielded && s.postponed === nothing && problem === nothing
                s.postponed = interrupt
            elseif problem === nothing
                problem = interrupt
                text = "a write was interrupted"
                with_handle(h -> LowLevel.muster_stream_abort(h, 0, text, sizeof(text)), s)
            end
        end
    end
    problem === nothing || throw(problem)
    operation.status == LowLevel.MUSTER_AGAIN && return false
    operation.status < 0 && failed_write(s, operation.status)
    return true
end
