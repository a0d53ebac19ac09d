# SPDX-License-Identifier: MIT
# A rendezvous: the members of a round and their ranks.

"""
    Muster.Rendezvous

A member of a run, made by [`Muster.rendezvous`](@ref). [`Muster.join_round`](@ref) joins a round, [`Muster.next_event`](@ref)
returns events, [`Muster.leave`](@ref) leaves the round; `close(member)` leaves it, too, and releases the member.
"""
mutable struct Rendezvous
    handle::Ptr{LowLevel.muster_rendezvous}
    run_id::String
    tag::UInt64
    weak::WeakRef
    changed::Lock
    readable::Bool
    waiting::Int
    open::Bool
    function Rendezvous(handle, run_id, tag)
        r = new(handle, run_id, tag, WeakRef(), Lock(), false, 0, true)
        r.weak = WeakRef(r)
        hold(running(), tag, r.weak)
        finalizer(release, r)
        return r
    end
end

# Called by close, too; calls after it find no handle.
function release(r::Rendezvous)
    r.handle == C_NULL || LowLevel.muster_rendezvous_release(r.handle)
    r.handle = C_NULL
    return nothing
end
became_ready(r::Rendezvous, ::UInt32) = raise_readable(r)
Base.isopen(r::Rendezvous) = r.open
Base.show(io::IO, r::Rendezvous) = print(io, "Muster.Rendezvous(", repr(r.run_id), r.open ? "" : ", closed", ")")

"""
    Muster.rendezvous(url, run_id; min, max = min, address = "", last_call = 30, keep_alive = 5, attempts = 3, rank = nothing,
                      order_key = "", reopen = false, timeout = 60) -> Rendezvous

Opens a rendezvous in a store: any that can transact, watch and lease (`"tcp://host:29400"`, `"etcd://host:2379/prefix"`, a
[`Muster.Store`](@ref)); or `"static:"`, for given ranks. This process can take part then; it joins by
[`Muster.join_round`](@ref). A round has `min` to `max` members; it begins when `max` have joined, or `last_call` seconds
after `min` have. A member without heartbeats for `keep_alive` times `attempts` seconds counts as dead; if the store sees
connections, the death of a process is noticed at once. `address`: the text that other members get for its rank. `rank`: the
preferred rank (`static:`: the rank). `reopen`: opens a run again that was closed or has other parameters.
"""
function rendezvous(where_::Union{AbstractString, Store}, run_id::AbstractString; min::Integer, max::Integer = min,
                    address::AbstractString = "", last_call::Real = 30, keep_alive::Real = 5, attempts::Integer = 3,
                    rank::Union{Nothing, Integer} = nothing, order_key::AbstractString = "", reopen::Bool = false,
                    timeout::Real = 60)
    e = running()
    run, place, order = String(run_id), String(address), String(order_key)
    url = where_ isa Store ? "" : String(where_)
    flags = (rank === nothing ? UInt32(0) : LowLevel.MUSTER_RENDEZVOUS_HAS_RANK) |
            (reopen ? LowLevel.MUSTER_RENDEZVOUS_REOPEN : UInt32(0))
    tag = remember(e, nothing)
    config = Ref(LowLevel.muster_rendezvous_config(flags = flags, run_id = pointed(run), run_id_bytes = sizeof(run),
        url = pointed(url), url_bytes = sizeof(url), store = where_ isa Store ? where_.handle : C_NULL,
        address = pointed(place), address_bytes = sizeof(place), order_key = pointed(order), order_key_bytes = sizeof(order),
        min = min, max = max, rank = something(rank, 0), keep_alive_attempts = attempts, keep_alive_ns = seconds_ns(keep_alive),
        last_call_ns = isfinite(last_call) ? seconds_ns(last_call) : -1, queue = e.queue, tag = tag))
    handle, detail = Ref{Ptr{LowLevel.muster_rendezvous}}(C_NULL), blank_error()
    status = in_pool(() -> LowLevel.muster_rendezvous_release(handle[])) do
        GC.@preserve run place order url where_ @threadcall(LowLevel.at_muster_rendezvous_open[], Int32,
            (Ptr{LowLevel.muster_context}, Ptr{LowLevel.muster_rendezvous_config}, Int64, Ptr{Ptr{LowLevel.muster_rendezvous}},
             Ptr{LowLevel.muster_error}), e.context, config, deadline_ns(timeout), handle, detail)
    end
    if status != LowLevel.MUSTER_OK
        forget(e, tag)
        check(status, detail, "open the rendezvous $run")
    end
    return Rendezvous(handle[], run, tag)
end

function ask(r::Rendezvous, operation::UInt32, what::String, timeout::Real, reason::AbstractString = "")
    r.open || throw(MusterError(LowLevel.MUSTER_E_CLOSED, what))
    why = String(reason)
    ended = GC.@preserve r why await_operation(what, () -> LowLevel.muster_rendezvous_cancel(r.handle)) do e, tag, detail
        LowLevel.muster_rendezvous_begin(r.handle, operation, pointed(why), sizeof(why), deadline_ns(timeout), e.queue, tag, detail)
    end
    ended.status == LowLevel.MUSTER_OK || throw(to_exception(ended.status, ended.detail, what))
    return ended.object
end

"""
    Muster.leave(member; timeout = 60)

Leaves the round; the others get the event `:left`, and it does not count as dead. It may join again.
"""
leave(r::Rendezvous; timeout::Real = 60) = (ask(r, LowLevel.MUSTER_RENDEZVOUS_LEAVE, "leave a round", timeout); nothing)

"""
    Muster.exit_round(member; timeout = Inf)

Waits until all members that are in the round have called this, so that none ends while others still need it.
"""
exit_round(r::Rendezvous; timeout::Real = Inf) = (ask(r, LowLevel.MUSTER_RENDEZVOUS_EXIT, "wait for the others", timeout); nothing)

"""
    Muster.abort_round(member, reason = ""; timeout = 60)

Ends the round for all its members, also for those that hang; they get the event `:aborted`, and may join the next round.
"""
abort_round(r::Rendezvous, reason::AbstractString = ""; timeout::Real = 60) =
    (ask(r, LowLevel.MUSTER_RENDEZVOUS_ABORT, "abort a round", timeout, reason); nothing)

"""
    Muster.close_run(member, reason = ""; timeout = 60)

Closes the run: no further round begins, and members that wait for one get the event `:closed`. Nothing else closes a run.
"""
close_run(r::Rendezvous, reason::AbstractString = ""; timeout::Real = 60) =
    (ask(r, LowLevel.MUSTER_RENDEZVOUS_CLOSE, "close a run", timeout, reason); nothing)

"Leaves the round, if it is in one, and releases the member."
function Base.close(r::Rendezvous)
    r.open || return nothing
    LowLevel.muster_rendezvous_cancel(r.handle)
    try
        leave(r; timeout = 5)
    catch problem
        problem isa MusterError || rethrow() # the store does not answer: the others learn it from the store
    end
    lock(r.changed)
    r.open = false
    notify(r.changed)
    unlock(r.changed)
    engine[] === nothing || forget(engine[], r.tag)
    finalize(r)
    return nothing
end

"The current state of a member, as the C struct `muster_rendezvous_state`, without a request to the store."
function state(r::Rendezvous)
    r.open || throw(MusterError(LowLevel.MUSTER_E_CLOSED, "read the state of $(r.run_id)"))
    out = zeroed(LowLevel.muster_rendezvous_state)
    check(LowLevel.muster_rendezvous_get_state(r.handle, out), "read the state of $(r.run_id)")
    return out[]
end

## Rounds

"""
    Muster.Round

A round that was joined: its `number`, the `rank` (from 0) of this member, the size of the `world`, and a `store` for this
round alone. Requests to that store throw a `MusterError` with the status `MUSTER_E_STALE` after the round has ended for this
member. [`Muster.address`](@ref)`(round, rank)` returns the addresses of the others.
"""
mutable struct Round
    handle::Ptr{LowLevel.muster_round}
    number::Int
    rank::Int
    world::Int
    store::Union{Nothing, Store} # `static:` has none without a store
    function Round(handle::Ptr{LowLevel.muster_round})
        info = zeroed(LowLevel.muster_round_info)
        check(LowLevel.muster_round_get_info(handle, info), "read a round")
        r = new(handle, info[].number, info[].rank, info[].world, round_store(handle, info[].number))
        finalizer(r -> LowLevel.muster_round_release(r.handle), r)
        return r
    end
end

function round_store(handle, number)
    store, detail = Ref{Ptr{LowLevel.muster_store}}(C_NULL), blank_error()
    status = LowLevel.muster_round_store(handle, store, detail)
    status == LowLevel.MUSTER_E_UNSUPPORTED && return nothing
    check(status, detail, "get the store of a round")
    return Store(store[], "round $number")
end

Base.show(io::IO, r::Round) = print(io, "Muster.Round(", r.number, ": rank ", r.rank, " of ", r.world, ")")

"""
    Muster.join_round(member; timeout = 600) -> Round

Joins the next round, and waits until it is complete. A member that is in a round leaves that. After the timeout it throws a
`MusterError` with the number of missing members.
"""
function join_round(r::Rendezvous; timeout::Real = 600)
    round = ask(r, LowLevel.MUSTER_RENDEZVOUS_JOIN, "join a round", timeout)
    return Round(convert(Ptr{LowLevel.muster_round}, round))
end

"Does this member know that the round has ended for it?"
function is_over(r::Round)
    info = zeroed(LowLevel.muster_round_info)
    check(LowLevel.muster_round_get_info(r.handle, info), "read a round")
    return info[].flags & LowLevel.MUSTER_ROUND_IS_OVER != 0
end

"""
    Muster.address(round, rank; timeout = 60) -> String

The `address` of the member of this rank.
"""
function address(r::Round, rank::Integer; timeout::Real = 60)
    member, detail = zeroed(LowLevel.muster_round_member_info), blank_error()
    status = in_pool(() -> nothing) do
        GC.@preserve r @threadcall(LowLevel.at_muster_round_member[], Int32,
            (Ptr{LowLevel.muster_round}, UInt32, Int64, Ptr{LowLevel.muster_round_member_info}, Ptr{LowLevel.muster_error}),
            r.handle, rank, deadline_ns(timeout), member, detail)
    end
    check(status, detail, "look up rank $rank")
    return GC.@preserve r unsafe_string(Ptr{UInt8}(member[].address), member[].address_bytes)
end

## Events

"""
    Muster.Event

An event of a member, see [`Muster.next_event`](@ref). `kind` is one of `:joined`, `:last_call`, `:complete`, `:left`,
`:dead`, `:waiting`, `:aborted`, `:expelled`, `:closed` and `:lost`; `rank` is that of the member concerned (`:left`, `:dead`;
`nothing`: `count` members), `round` the number of the round, `text` the evidence and the reason. `muster/rendezvous.h`
defines `count`.
"""
struct Event
    kind::Symbol
    rank::Union{Nothing, Int}
    round::Int
    count::Int
    text::String
end

const event_kinds = (:joined, :last_call, :complete, :left, :dead, :waiting, :aborted, :expelled, :closed, :lost)
const EVENT_TEXT_OFFSET =
    fieldoffset(LowLevel.muster_rendezvous_event, Base.fieldindex(LowLevel.muster_rendezvous_event, :text))

Event(e::Base.RefValue{LowLevel.muster_rendezvous_event}) = Event(
    e[].kind in eachindex(event_kinds) ? event_kinds[e[].kind] : :unknown, # of a later library
    e[].rank == typemax(UInt32) ? nothing : Int(e[].rank), e[].round, e[].count,
    GC.@preserve e unsafe_string(Ptr{UInt8}(Base.pointer_from_objref(e)) + EVENT_TEXT_OFFSET, min(Int(e[].text_bytes), 231)))

"""
    Muster.next_event(member; timeout = Inf) -> Event

Waits for the next event of a member; `nothing` if none came in time, or the member was closed.
"""
function next_event(r::Rendezvous; timeout::Real = Inf)
    found = zeroed(LowLevel.muster_rendezvous_event)
    until = time() + timeout
    while r.open
        r.readable = false
        status = LowLevel.muster_rendezvous_next_event(r.handle, 0, found)
        status == LowLevel.MUSTER_OK && return Event(found)
        status == LowLevel.MUSTER_E_CLOSED && return nothing
        status == LowLevel.MUSTER_AGAIN || check(status, "read events of $(r.run_id)")
        park_readable(r, until - time()) || return nothing
    end
    return nothing
end
