# SPDX-License-Identifier: MIT
# MusterStream: a Muster stream as a Julia IO.
#
# Small writes are gathered until flush, large ones go straight from the caller's memory; reads come straight into the
# caller's memory. Every call into the library looks once and returns: a task that has to wait parks on a condition that
# the engine's callback notifies. No library thread ever holds a pointer into an array of the caller, but for blocks that
# several tasks write together (fan.jl), whose tasks wait for their release. What is left of a write that was
# interrupted in the middle is copied, and that copy is handed over.

const GATHER_BYTES = 64 * 1024  # gathered before a flush; from here on writes and reads pass through
const TURN_BYTES = 4 << 20      # moved at a stretch before other tasks get a turn

"""
    MusterStream <: IO

A duplex byte stream made by [`Muster.dial`](@ref) or by `accept` on a [`Muster.Listener`](@ref). Writes are gathered
until `flush` (or 64 KiB), `close` or [`Muster.closewrite`](@ref). When the peer has finished writing, `eof` is `true` and
reading
throws `EOFError`; when the peer died, aborted the stream or cannot be reached any more, `eof` and every read throw
`Base.IOError` with the reason, after everything that arrived before was read. One task reads and one writes at a time;
`lock(stream)` lets tasks take turns.

`isopen(stream)` is `true` until `close(stream)`. `isreadable` is `false` once the peer has finished writing; `iswritable` is
`true` then, and `false` after `closewrite` of this side or when the stream has ended.
"""
mutable struct MusterStream <: IO
    handle::Ptr{LowLevel.muster_stream}
    uses::Uses          # of the handle, see handle.jl
    lock::ReentrantLock # Distributed of Julia 1.5 takes the field, later ones call lock(stream)
    tag::UInt64
    weak::WeakRef
    changed::Lock       # guards the flags; notified by the engine's callback
    readable::Bool
    writable::Bool
    waiting::Int
    open::Bool
    ended::Bool         # nothing more will be read
    finished::Bool      # this side has finished writing
    over::Bool          # both directions have ended
    silent::Bool        # no bytes of the peer for a while
    shielded::Bool      # carries whole messages of Distributed: see wait_shielded and write_all
    worker::Int         # the number of Distributed's process at the other end; 0: see worker_at
    exited::DataType    # what a write throws when that process has ended
    postponed::Any      # the interrupt that came in the middle of a message, thrown at its flush
    input::Vector{UInt8}
    next::Int           # input[next:last] waits to be read
    last::Int
    mark::Int           # input[mark:last] is kept for reset(); 0: no mark
    output::Vector{UInt8}
    gathered::Int
    taken::Base.RefValue{Csize_t} # by a read, which another thread may do while this one writes
    given::Base.RefValue{Csize_t} # by a write
    spin::SpinBudget
    last_state::Any       # of a stream that has been closed: its peer, reason and statistics

    function MusterStream(handle::Ptr{LowLevel.muster_stream})
        s = new(handle, Uses(1), ReentrantLock(), 0, WeakRef(), Lock(), false, false, 0, true, false, false, false, false, false,
            0, ProcessExitedException, nothing, Vector{UInt8}(undef, GATHER_BYTES), 1, 0, 0, Vector{UInt8}(undef, GATHER_BYTES), 0,
            Ref{Csize_t}(0), Ref{Csize_t}(0), SpinBudget(), nothing)
        s.weak = WeakRef(s)
        e = running()
        s.tag = remember(e, s.weak)
        finalizer(finalize_uses, s)
        check(LowLevel.muster_stream_watch(handle, LowLevel.MUSTER_STREAM_READABLE | LowLevel.MUSTER_STREAM_WRITABLE,
            e.queue, s.tag), "watch a stream")
        return s
    end
end

function release_handle(s::MusterStream)
    LowLevel.muster_stream_release(s.handle)
    s.handle = C_NULL
    return nothing
end

Base.lock(s::MusterStream) = lock(s.lock)
Base.unlock(s::MusterStream) = unlock(s.lock)
Base.trylock(s::MusterStream) = trylock(s.lock)
Base.islocked(s::MusterStream) = islocked(s.lock)
# Distributed takes a stream that is open at its end for a failure, and reports it.
Base.isopen(s::MusterStream) = s.open && !(s.shielded && s.ended)
Base.isreadable(s::MusterStream) = s.next <= s.last || s.open && !s.ended
Base.iswritable(s::MusterStream) = s.open && !s.finished && !s.over
Base.bytesavailable(s::MusterStream) = s.last - s.next + 1
Base.show(io::IO, s::MusterStream) =
    print(io, "MusterStream(", peer(s), ", ", s.open ? (s.ended ? "ended" : "open") : "closed", ")")

# Called by the engine.
function became_ready(s::MusterStream, events::UInt32)
    lock(s.changed)
    if events & LowLevel.MUSTER_STREAM_ENDED != 0
        events |= LowLevel.MUSTER_STREAM_READABLE | LowLevel.MUSTER_STREAM_WRITABLE
        s.over = true
    end
    events & LowLevel.MUSTER_STREAM_READABLE != 0 && (s.readable = true)
    events & LowLevel.MUSTER_STREAM_WRITABLE != 0 && (s.writable = true)
    events & LowLevel.MUSTER_STREAM_PEER_SILENT != 0 && (s.silent = true)
    events & LowLevel.MUSTER_STREAM_PEER_BACK != 0 && (s.silent = false)
    notify(s.changed)
    unlock(s.changed)
    return nothing
end

# Parks the task until the flag is raised or the stream is closed here.
@noinline function park(s::MusterStream, flag::Symbol)
    e = running()
    lock(s.changed)
    try
        s.waiting += 1
        s.waiting == 1 && hold(e, s.tag, s)
        while s.open && !getfield(s, flag)::Bool
            s.shielded && flag === :readable ? wait_shielded(s.changed) : wait(s.changed)
        end
    finally
        s.waiting -= 1
        s.waiting == 0 && hold(e, s.tag, s.weak)
        unlock(s.changed)
    end
    return nothing
end

# Julia throws the exception of a SIGINT into whichever task ran last. When everybody waits that is often the task that
# reads messages; it would take it for the death of the peer. On the master the interrupt goes to the main task instead;
# on a worker nothing was being computed.
function wait_shielded(changed::Lock)
    try
        wait(changed)
    catch problem
        problem isa InterruptException || rethrow()
        main = Base.roottask
        myid() == 1 && main !== current_task() && main.queue !== nothing && schedule(main, problem; error = true)
    end
    return nothing
end

## Reading

@inline function look(s::MusterStream, p::Ptr{UInt8}, n::Int, wait_ns::Int)::Int32
    enter(s) || return LowLevel.MUSTER_E_CLOSED
    status = LowLevel.muster_stream_read(s.handle, p, n, wait_ns, s.taken)
    leave(s)
    return status
end

# Nothing more will be read: in order, or with an error.
@noinline function end_reading(s::MusterStream, status::Int32)
    s.ended = true
    in_order = status == LowLevel.MUSTER_E_END || status == LowLevel.MUSTER_E_CLOSED
    in_order || (s.over = true)
    problem = in_order ? nothing : Base.invokelatest(failed_read, s, status)
    # Distributed closes no stream that has ended. The master's is left to its watch, which ends this process.
    if s.shielded && s !== master_stream[]
        s.gathered = 0
        close(s)
    end
    problem === nothing || throw(problem)
    return nothing
end

# Some reasons name the peer themselves.
with_peer(s::MusterStream, why) = startswith(why, peer(s)) ? why : "$(peer(s)): $why"

function failed_read(s::MusterStream, status)
    known = status == LowLevel.MUSTER_E_PEER || status == LowLevel.MUSTER_E_ABORTED
    code = status == LowLevel.MUSTER_E_ABORTED ? Base.UV_ECONNABORTED : Base.UV_ECONNRESET
    return Base.IOError("read from " * with_peer(s, known ? reason(s) : status_text(status)), code)
end

# Reads at least one byte into memory the caller keeps alive; 0 at the end of the stream. Throws if that is a failure.
@noinline function read_some(s::MusterStream, p::Ptr{UInt8}, n::Int)::Int
    if should_spin(s.spin)
        count = read_awake(s, p, n)
        count > 0 && return count
    end
    while s.open
        s.readable = false
        status = look(s, p, n, 0)
        status == LowLevel.MUSTER_OK && return Int(s.taken[])
        if status != LowLevel.MUSTER_AGAIN
            end_reading(s, status)
            return 0
        end
        park(s, :readable)
    end
    return 0
end

# Polls for a short time without arming the watch, so that the peer need not wake this process. (A timeout
# of 1 ns is over at once; with 0 the library would arm the watch.)
@noinline function read_awake(s::MusterStream, p::Ptr{UInt8}, n::Int)::Int
    until = time_ns() + AWAKE_NS
    while s.open
        for _ in 1:(nothing_else_to_do() ? LOOKS : 1)
            status = look(s, p, n, 1)
            if status == LowLevel.MUSTER_OK
                spin_paid(s.spin)
                return Int(s.taken[])
            end
            if status != LowLevel.MUSTER_TIMEOUT
                status == LowLevel.MUSTER_E_WOULD_DEADLOCK && (s.spin.hopeless = true)
                return 0
            end
        end
        if time_ns() >= until
            spin_failed(s.spin)
            return 0
        end
        yield()
    end
    return 0
end

# More bytes behind those that are kept; false at the end of the stream.
@noinline function refill(s::MusterStream)
    first = s.mark == 0 ? s.next : s.mark
    kept = max(0, s.last - first + 1)
    kept > 0 && first > 1 && copyto!(s.input, 1, s.input, first, kept)
    s.next -= first - 1
    s.mark == 0 || (s.mark = 1)
    s.last = kept
    kept == length(s.input) && resize!(s.input, 2 * kept)
    count = GC.@preserve s read_some(s, pointer(s.input, kept + 1), length(s.input) - kept)
    s.last += count
    return count > 0
end

# Has the buffer so many bytes?
function gather(s::MusterStream, n::Int)
    while s.last - s.next + 1 < n
        refill(s) || return false
    end
    return true
end

function Base.eof(s::MusterStream)
    s.next <= s.last && return false
    return !refill(s)
end

@noinline function Base.read(s::MusterStream, ::Type{UInt8})
    s.next > s.last && (refill(s) || throw(EOFError()))
    @inbounds byte = s.input[s.next]
    s.next += 1
    return byte
end

# As for every IO: mark(), reset(), unmark(), ismarked(). What follows a mark stays in memory until it is gone.
Base.ismarked(s::MusterStream) = s.mark != 0
Base.mark(s::MusterStream) = s.mark = s.next
Base.unmark(s::MusterStream) = (was = s.mark != 0; s.mark = 0; was)
function Base.reset(s::MusterStream)
    s.mark == 0 && throw(ArgumentError("$s is not marked"))
    s.next = s.mark
    s.mark = 0
    return s.next
end

Base.peek(s::MusterStream) = peek(s, UInt8)
function Base.peek(s::MusterStream, ::Type{T}) where {T}
    gather(s, sizeof(T)) || throw(EOFError())
    return GC.@preserve s unsafe_load(Ptr{T}(pointer(s.input, s.next)))
end

function Base.skip(s::MusterStream, n::Integer)
    n >= 0 || throw(ArgumentError("a stream cannot go back $(-n) bytes; mark() and reset() can"))
    left = Int(n)
    while left > 0
        s.next > s.last && (refill(s) || throw(EOFError()))
        count = min(left, s.last - s.next + 1)
        s.next += count
        left -= count
    end
    return s
end

# Up to n bytes; fewer only at the end of the stream.
@noinline function read_up_to(s::MusterStream, p::Ptr{UInt8}, n::Int)::Int
    done = min(n, s.last - s.next + 1)
    if done > 0
        GC.@preserve s unsafe_copyto!(p, pointer(s.input, s.next), done)
        s.next += done
    end
    n - done >= GATHER_BYTES && s.mark == 0 && return done + read_through(s, p + done, n - done)
    while done < n
        refill(s) || break
        count = min(n - done, s.last - s.next + 1)
        GC.@preserve s unsafe_copyto!(p + done, pointer(s.input, s.next), count)
        s.next += count
        done += count
    end
    return done
end

# Fresh memory of a large array is filled by page faults: huge pages for the whole blocks inside save most of them. Where
# that is turned off, nothing changes.
function advise_huge_pages(p::Ptr{UInt8}, n::Int)
    block = UInt(2) << 20
    first = (UInt(p) + block - 1) & ~(block - 1)
    last = (UInt(p) + UInt(n)) & ~(block - 1)
    first < last && ccall(:madvise, Cint, (Ptr{Cvoid}, Csize_t, Cint), Ptr{Cvoid}(first), last - first, 14) # MADV_HUGEPAGE
    return nothing
end

# A large read, straight into the target, in pieces between which other tasks have their turn.
@noinline function read_through(s::MusterStream, p::Ptr{UInt8}, n::Int)::Int
    done = 0
    turn = TURN_BYTES
    n >= 2 * TURN_BYTES && advise_huge_pages(p, n)
    pace = Pace()
    begin_transfer()
    try
        while done < n && s.open
            s.readable = false
            enter(s) || break
            status = LowLevel.muster_stream_read_into(s.handle, p + done, min(n - done, TURN_BYTES), 0,
                wait_ns(pace, s.spin), s.taken)
            leave(s)
            moved = Int(s.taken[])
            done += moved
            if status == LowLevel.MUSTER_AGAIN
                moved == 0 && park(s, :readable)
            elseif status == LowLevel.MUSTER_E_WOULD_DEADLOCK
                s.spin.hopeless = true
            elseif status < 0
                end_reading(s, status)
                break
            end
            turn = take_turns(pace, moved, done, turn)
        end
    finally
        end_transfer()
    end
    return done
end

@noinline function Base.unsafe_read(s::MusterStream, p::Ptr{UInt8}, n::UInt)
    count = Int(n)
    if count <= s.last - s.next + 1
        GC.@preserve s unsafe_copyto!(p, pointer(s.input, s.next), count)
        s.next += count
        return nothing
    end
    read_up_to(s, p, count) == count || throw(EOFError())
    return nothing
end

# As for every IO: the array grows with what comes, and shrinks again to what came if it had to grow. Without `all` this
# waits once, for any bytes.
function Base.readbytes!(s::MusterStream, b::Vector{UInt8}, n = length(b); all::Bool = true)
    if !all
        eof(s) && return 0
        n = min(Int(n), s.last - s.next + 1)
    end
    had = length(b)
    done = GC.@preserve b read_up_to(s, pointer(b), min(had, Int(n)))
    while done < n && !eof(s)
        resize!(b, min(Int(n), max(2 * done, GATHER_BYTES)))
        done += GC.@preserve b read_up_to(s, pointer(b, done + 1), length(b) - done)
    end
    length(b) > had && length(b) > done && resize!(b, max(had, done))
    return done
end

function Base.read(s::MusterStream, n::Integer; all::Bool = true)
    bytes = Vector{UInt8}(undef, all ? min(Int(n), GATHER_BYTES) : 0)
    return resize!(bytes, readbytes!(s, bytes, n; all = all))
end

function Base.readavailable(s::MusterStream)
    eof(s) && return UInt8[]
    bytes = s.input[s.next:s.last]
    s.next = s.last + 1
    return bytes
end
