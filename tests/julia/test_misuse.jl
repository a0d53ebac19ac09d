# SPDX-License-Identifier: MIT
# Objects used after close, closed while tasks wait on them, collected while operations of theirs are under way: errors
# with a status, no wait without end, and no access to memory that is gone.
using Test, Muster, Sockets
include("helpers.jl")

const LowLevel = Muster.LowLevel
status_of(f) = try f(); LowLevel.MUSTER_OK catch e; e isa MusterError ? e.status : e end
ends(task) = within(() -> istaskdone(task), 20)

@testset "a closed stream" begin
    a, b = Muster.pair()
    close(a)
    for call in (() -> read(a, UInt8), () -> read!(a, zeros(UInt8, 100_000)))
        @test status_of(call) isa EOFError
    end
    @test eof(a) && isempty(read(a)) && isempty(readavailable(a))
    for bytes in (UInt8[1], zeros(UInt8, 1 << 20))
        @test status_of(() -> (write(a, bytes); flush(a))) isa Base.IOError
    end
    for call in (() -> Muster.closewrite(a), () -> Muster.abort(a), () -> Muster.hello(a))
        @test status_of(call) == LowLevel.MUSTER_E_CLOSED
    end
    @test !isempty(sprint(show, a)) && Muster.stats(a).bytes_in == 0
    close(a)
    finalize(a)
    finalize(b) # instead of close: its handle goes as well
    @test status_of(() -> Muster.closewrite(b)) == LowLevel.MUSTER_E_CLOSED && !isopen(b)
end

@testset "a closed listener" begin
    listener = Muster.listen("tcp://127.0.0.1:0")
    address = Muster.address(listener)
    waiting = [@async status_of(() -> accept(listener)) for _ in 1:3]
    yield()
    close(listener)
    @test all(ends, waiting) && all(task -> fetch(task) == LowLevel.MUSTER_E_CLOSED, waiting)
    @test status_of(() -> accept(listener)) == LowLevel.MUSTER_E_CLOSED
    @test Muster.address(listener) == address && occursin("closed", sprint(show, listener))
    close(listener)
    finalize(listener)
    @test status_of(() -> Muster.dial(address; timeout = 20)) == LowLevel.MUSTER_E_UNREACHABLE
end

@testset "a store closed while tasks wait for it ($kind)" for kind in ("in this process", "served")
    server = kind == "served" ? Muster.StoreServer() : nothing
    store = Muster.Store(server === nothing ? "memory:misuse" : Muster.address(server))
    inner = view(store, "inner/")
    waiting = [@async status_of(() -> Muster.await(s, "never")) for s in (store, inner, store)]
    popping = @async status_of(() -> Muster.dequeue!(store, "q"))
    yield()
    @test !any(istaskdone, waiting)
    lease = Muster.lease(store, 60)
    close(lease)
    close(lease)
    @test status_of(() -> Muster.set!(store, "k", "v"; lease = lease)) == LowLevel.MUSTER_E_CLOSED
    @test !haskey(store, "k")
    # One that is interrupted and closed at once.
    interrupted = @async Muster.await(store, "never")
    yield()
    close(store)
    schedule(interrupted, InterruptException(); error = true)
    @test ends(interrupted)
    @test all(ends, (waiting[1], waiting[3], popping))
    @test fetch(waiting[1]) == fetch(waiting[3]) == fetch(popping) == LowLevel.MUSTER_E_CANCELED
    for call in (() -> store["k"], () -> (store["k"] = "v"), () -> Muster.lease(store, 60), () -> keys(store))
        @test status_of(call) == LowLevel.MUSTER_E_CLOSED
    end
    @test status_of(() -> view(store, "x")) isa Int32 && status_of(() -> view(store, "x")) < 0
    close(store)
    # The view is a store of its own.
    @test !istaskdone(waiting[2])
    inner["never"] = "v"
    @test ends(waiting[2]) && fetch(waiting[2]) == LowLevel.MUSTER_OK
    close(inner)
    server === nothing || close(server)
end

@testset "a member of a rendezvous closed while tasks wait for it" begin
    member = Muster.rendezvous("memory:misuse", "run"; min = 2, address = "here")
    joining = @async status_of(() -> Muster.join_round(member))
    events = @async begin
        while Muster.next_event(member) !== nothing
        end
    end
    yield()
    close(member)
    @test ends(joining) && fetch(joining) isa Int32 && fetch(joining) != LowLevel.MUSTER_OK
    @test ends(events)
    for call in (() -> Muster.state(member), () -> Muster.join_round(member), () -> Muster.leave(member))
        @test status_of(call) == LowLevel.MUSTER_E_CLOSED
    end
    @test Muster.next_event(member) === nothing
    close(member)
end

@testset "objects collected while operations are under way" begin
    function begin_and_drop(address, url)
        store = Muster.Store(url)
        # Nothing refers to these tasks, streams and stores any more once this function has returned.
        @async Muster.await(store, "never"; timeout = 2)
        @async (stream = Muster.dial(address); write(stream, zeros(UInt8, 1 << 16)); flush(stream); read(stream))
        a, b = Muster.pair()
        @async write(a, zeros(UInt8, 4 << 20))
        @async read(b, 10)
        yield()
        return nothing
    end
    server = Muster.StoreServer()
    listener = Muster.listen("tcp://127.0.0.1:0")
    for _ in 1:10
        begin_and_drop(Muster.address(listener), Muster.address(server))
        GC.gc()
    end
    # All ten have come through, whatever was collected.
    accepted = [accept(listener) for _ in 1:10]
    GC.gc()
    @test all(stream -> length(read(stream, 1 << 16)) == 1 << 16, accepted)
    foreach(close, accepted)
    close(listener)
    store = Muster.Store(Muster.address(server))
    @test Muster.add!(store, "alive") == 1
    close(store)
    close(server)
end
