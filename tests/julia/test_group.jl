# SPDX-License-Identifier: MIT
# Collective operations between Julia processes: test_group.jl starts three of itself.
using Test, Muster

struct Pair2
    a::Float32
    b::Int32
end

# What each of them does; the first failure ends it with a status other than 0.
function work(rank, size, url, shared_memory)
    store = Muster.Store(url)
    g = Muster.Group(store; rank, size, listen = "tcp://127.0.0.1:0", name = "julia-$shared_memory", shared_memory)
    @testset "rank $rank, shared memory: $shared_memory" begin
        @test (g.rank, g.size) == (rank, size)
        Muster.barrier(g)
        @test Muster.bcast!(g, rank == 1 ? [1.5, 2.5] : zeros(2); root = 1) == [1.5, 2.5]
        for T in (Int8, UInt16, Int32, UInt64, Float16, Float32, Float64)
            @test Muster.allreduce!(+, g, fill(T(rank + 1), 2, 3)) == fill(T(6), 2, 3)
            @test Muster.allreduce(max, g, T(rank)) === T(2)
        end
        @test Muster.allreduce(|, g, UInt8(1) << rank) == 0x07
        # Functions and plain types of Julia; this one does not commute.
        later(x, y) = Pair2(x.a * 10 + y.a, max(x.b, y.b))
        @test Muster.allreduce(later, g, Pair2(rank + 1, 5 - rank)) == Pair2(123, 5)
        @test Muster.allreduce!((x, y) -> 10x + y, g, fill(rank + 1, 5000)) == fill(123, 5000)
        @test Muster.scan!((x, y) -> 10x + y, g, [rank + 1]) == [(1, 12, 123)[rank + 1]]
        @test Muster.scan!(+, g, [7]; exclusive = true) == [rank == 0 ? 7 : 7rank]
        only_at_root = Muster.reduce!(+, g, [rank + 1]; root = 2)
        @test only_at_root == [rank == 2 ? 6 : rank + 1]
        @test Muster.reduce_scatter(+, g, collect(1:6)) == [3(2rank + 1), 3(2rank + 2)]
        @test Muster.allgather(g, [rank, 10rank]) == [0 1 2; 0 10 20]
        @test Muster.gather(g, ['a' + rank]; root = 1) == (rank == 1 ? ['a' 'b' 'c'] : nothing)
        @test Muster.scatter(g, rank == 0 ? collect(1.0:6.0) : nothing, zeros(2)) == [2rank + 1, 2rank + 2]
        @test Muster.alltoall(g, [10rank, 10rank + 1, 10rank + 2]) == [rank, 10 + rank, 20 + rank]
        half = split(g, rank == 0 ? -1 : 3; key = -rank)
        @test (half === nothing) == (rank == 0)
        if half !== nothing
            @test (half.rank, half.size) == (2 - rank, 2)
            @test Muster.allreduce(+, half, rank) == 3
            close(half)
        end
        # Other tasks go on while this one waits.
        ticks = Ref(0)
        ticking = Timer(_ -> ticks[] += 1, 0; interval = 0.01)
        rank == 0 && sleep(0.3)
        Muster.barrier(g)
        close(ticking)
        @test ticks[] >= 1
        @test Muster.progress(g, rank).state == :idle
        @test_throws ArgumentError Muster.allreduce!(+, g, Any[1])
        @test_throws ArgumentError Muster.alltoall(g, [1, 2])
        # A function that throws: its exception, at the members at which it was called.
        wrong(x, y) = error("not these")
        @test_throws ErrorException Muster.allreduce(wrong, g, rank)
    end
    close(g)
    last = Muster.Group(store; rank, size, listen = "tcp://127.0.0.1:0", name = "last-$shared_memory", shared_memory)
    Muster.barrier(store, "opened-$shared_memory", rank, size) # a revocation would end an opening that is not over
    rank == 2 && Muster.revoke(last, "done here")
    @testset "the end, rank $rank" begin
        problem = try
            Muster.allreduce(+, last, 1)
        catch e
            e
        end
        @test problem isa Muster.MusterError && occursin("rank 2 revoked the group: done here", problem.message)
    end
    close(store)
end

if !isempty(ARGS)
    Muster.configure!(secret = ARGS[3])
    for shared_memory in (true, false)
        work(parse(Int, ARGS[1]), 3, ARGS[2], shared_memory)
    end
    exit()
end

const secret = "a secret of this test, of $(rand(UInt128))"
Muster.configure!(secret = secret)
const server = Muster.StoreServer()
const program = @__FILE__
const members = map(0:2) do rank
    run(`setpriv --pdeathsig KILL $(Base.julia_cmd()) --startup-file=no $program $rank $(Muster.address(server)) $secret`,
        devnull, stdout, stderr; wait = false)
end
@testset "three members" begin
    @test all(success, members)
end
close(server)
