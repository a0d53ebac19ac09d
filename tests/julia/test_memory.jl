# SPDX-License-Identifier: MIT
# Global memory between Julia processes: test_memory.jl starts two of itself.
using Test, Muster

function work(rank, size, url, shared_memory)
    store = Muster.Store(url)
    g = Muster.Group(store; rank, size, listen = "tcp://127.0.0.1:0", name = "julia-$shared_memory", shared_memory)
    @testset "rank $rank, shared memory: $shared_memory" begin
        m = Muster.GlobalMemory(g; segment_bytes = 2^20, shared_memory)
        @test (m.locale, m.locales) == (rank, size)
        offset = Muster.symmetric(m, 64)
        following = (rank + 1) % size
        word, sum = Muster.place(m, following, offset), Muster.place(m, 0, offset + 8)
        Muster.store!(m, word, rank + 10)
        @test Muster.exchange!(m, word, 5) == rank + 10
        @test Muster.compare_exchange!(m, word, 4, 9) == (false, 5)
        @test Muster.compare_exchange!(m, word, 5, -1) == (true, 5)
        @test Muster.load(m, word) == typemax(UInt64)
        @test Muster.fetch!(max, m, word, 3) == typemax(UInt64) # -1, as numbers with a sign
        @test Muster.load(m, word) == 3
        @sync for _ in 1:4
            @async for _ in 1:25
                Muster.fetch!(+, m, sum, 1)
            end
        end
        @test_throws ArgumentError Muster.fetch!(*, m, sum, 1)
        Muster.barrier(g)
        @test Muster.load(m, sum) == 100size

        block = Muster.allocate(m, following, 300_000)
        signal = Muster.place(m, following, offset + 16)
        data = rand(UInt8, 300_000)
        write(m, block, data; signal, value = 3)
        @test read!(m, block, zeros(UInt8, 300_000)) == data
        @test Muster.load(m, signal) == 3
        write(m, block + 8, [1.5 2.5; 3.5 4.5])
        @test read!(m, block + 8, zeros(2, 2)) == [1.5 2.5; 3.5 4.5]
        @test_throws ArgumentError write(m, block, Any[1])
        @test_throws Muster.MusterError Muster.allocate(m, following, 2^30)
        Muster.barrier(g)
        if rank == 0
            blocks = UInt64[]
            @test_throws OutOfMemoryError while true
                push!(blocks, Muster.allocate(m, following, 100_000))
            end
            foreach(b -> Muster.free!(m, b), blocks)
        end
        @test_throws Muster.MusterError Muster.load(m, UInt64(0))
        @test Muster.stats(m, following).used_blocks >= 1

        token = Muster.register(m)
        Muster.pinned(token) do
            Muster.retire!(token, block)
            @test Muster.reclaim!(token) == 0
        end
        @test Muster.clear!(token) == 1
        @test_throws Muster.MusterError Muster.free!(m, block)
        close(token)
        Muster.barrier(g)
        close(m)
        @test !isopen(m)
        @test_throws Muster.MusterError Muster.load(m, word)
    end
    close(g)
    close(store)
end

if !isempty(ARGS)
    Muster.configure!(secret = ARGS[3])
    for shared_memory in (true, false)
        work(parse(Int, ARGS[1]), 2, ARGS[2], shared_memory)
    end
    exit()
end

const secret = "a secret of this test, of $(rand(UInt128))"
Muster.configure!(secret = secret)
const server = Muster.StoreServer()
const program = @__FILE__
const members = map(0:1) do rank
    run(`setpriv --pdeathsig KILL $(Base.julia_cmd()) --startup-file=no $program $rank $(Muster.address(server)) $secret`,
        devnull, stdout, stderr; wait = false)
end
@testset "two members" begin
    @test all(success, members)
end
close(server)
