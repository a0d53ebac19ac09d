# SPDX-License-Identifier: MIT
# The acceptance program in Julia, through its own Distributed, over one transport:  julia test_acceptance.jl tcp|shm|star
# That nothing is left behind is looked at from outside: tests/steps/julia-acceptance.sh.
using Test, Distributed, Muster
include("helpers.jl")

const way = ARGS[1]
const transport = way == "star" ? "zmq" : way
add(n) = addprocs(MusterManager(n; transport = transport, upgrade = way == "shm"); exeflags = `--startup-file=no`)

@testset "a cluster does its work over $way" begin
    w = add(4)
    @everywhere square(x) = x * x
    @everywhere checksum(bytes) = foldl((sum, byte) -> sum * UInt32(31) + byte, bytes; init = UInt32(0))

    # 100,000 numbers; in the middle one is killed. What it had goes to others.
    @everywhere slowly(x) = (x % 100 == 0 && sleep(0.002); square(x))
    victim = process_of(w[2])
    @async (sleep(0.3); run(`kill -KILL $victim`))
    squares = pmap(slowly, 1:100_000; batch_size = 100, retry_delays = zeros(100),
                   retry_check = (state, e) -> (state, e isa ProcessExitedException || cause(e) isa ProcessExitedException))
    @test squares == [x^2 for x in 1:100_000]
    @test within(() -> workers() == w[[1, 3, 4]], 20)

    # 80 MB both ways.
    big = repeat(b"0123456789abcdef", 5 * 10^6)
    back, sum = remotecall_fetch(bytes -> (bytes, checksum(bytes)), w[1], big)
    @test back == big
    @test sum == checksum(big)

    # Two come late, and workers call each other.
    late = add(2)
    @test relayed(late[1], late[2]) == late[2]
    @test relayed(late[2], w[3]) == w[3]

    # A long task is interrupted; its worker goes on.
    computing = occupy(() -> (x = 0.0; while true; x += Base.sum(rand(100)); end), w[3])
    interrupt(w[3])
    @test within(() -> istaskdone(computing), 20)
    @test remotecall_fetch(myid, w[3]) == w[3]

    # Who has another secret does not come in.
    if way == "tcp"
        address = Distributed.worker_from_id(w[1]).config.connect_at
        program = """
            using Muster
            Muster.configure!(secret = "not the one, but long enough")
            print(try Muster.dial($(repr(address)); timeout = 10); "let in" catch e; Muster.status_name(e.status) end)"""
        @test read(`$(Base.julia_cmd()) --startup-file=no -e $program`, String) == "MUSTER_E_AUTH"
    end

    ospids = process_of.(workers())
    rmprocs(workers())
    @test within(() -> !any(alive, ospids), 20)
end
