# SPDX-License-Identifier: MIT
# Distributed on the ranks of an MPI job: calls, large arrays, failures, interrupts, the end.
#   mpirun -n 5 julia test_mpi.jl introduced         links between processes of one host move to shared memory
#   mpirun -n 5 julia test_mpi.jl mpi                every byte goes through MPI
#   mpirun --enable-recovery -n 5 julia test_mpi.jl killed
# What they print last is "in order".
using Test, Distributed, Muster

const mode = ARGS[1]

within(f, seconds) = timedwait(f, Float64(seconds); pollint = 0.01) === :ok
relayed(p, q) = remotecall_fetch(q -> remotecall_fetch(myid, q), p, q)
outcome(task) = try fetch(task) catch e; e isa TaskFailedException ? e.task.exception : e end
cause(e) = e isa RemoteException ? e.captured.ex : e

const manager = Muster.start_mpi_main(upgrade = mode != "mpi")
# Only rank 0 comes here.
const w = workers()

@testset "ranks as workers ($mode)" begin
    @test manager isa MPIManager
    @test w == 2:5
    @test Muster.free_ranks() == 0
    for p in w
        @test remotecall_fetch(() -> ENV["OMPI_COMM_WORLD_RANK"], p) == string(p - 1)
        @test remotecall_fetch(myid, p) == p
    end
    @test procs(2) == 1:5 # on one host
    @test_throws ArgumentError MPIManager(-1)
    e = outcome(@async addprocs(MPIManager(1)))
    @test occursin("0 ranks of the job are free", sprint(showerror, e))
end

@testset "calls ($mode)" begin
    @test pmap(x -> (x, myid())[1]^2, 1:200) == (1:200) .^ 2
    @test all(relayed(p, q) == q for p in w for q in w if p != q)
    @everywhere struct Own
        text::String
    end
    @test remotecall_fetch(x -> Own(x.text * "!"), 3, Own("here")) == Own("here!")
    channel = RemoteChannel(() -> Channel{Int}(10), 4)
    @sync for p in w
        @async remotecall_fetch((c, i) -> (foreach(j -> put!(c, i), 1:100); nothing), p, channel, p)
        @async for _ in 1:100
            @test take!(channel) in w
        end
    end
    e = outcome(@async remotecall_fetch(() -> error("on purpose"), 5))
    @test e isa RemoteException && e.pid == 5 && cause(e) == ErrorException("on purpose")
end

@testset "80 MB ($mode)" begin
    x = rand(10^7)
    seconds = @elapsed @test remotecall_fetch(identity, 2, x) == x
    println("80 MB there and back: ", round(seconds; digits = 2), " s")
    @test remotecall_fetch(q -> sum(remotecall_fetch(() -> ones(10^7), q)), 3, 4) == 10^7 # worker to worker
end

if mode != "killed"
    @testset "interrupts ($mode)" begin
        computing = @async remotecall_fetch(() -> (x = 0.0; while true; x += sum(rand(100)); end), 3)
        sleep(1)
        interrupt(3)
        @test within(() -> istaskdone(computing), 20)
        @test cause(outcome(computing)) isa InterruptException
        @test relayed(3, 2) == 2
    end
    if mode == "mpi"
        Muster.stop_mpi_main(manager)
        @test workers() == [1]
        @test within(() -> Muster.free_ranks() == 0, 5)
    end
else
    @testset "a rank dies" begin
        ospid = remotecall_fetch(getpid, 4)
        relayed(3, 4)
        waiting = @async remotecall_fetch(() -> wait(Condition()), 4)
        between = @async remotecall_fetch(() -> remotecall_fetch(() -> wait(Condition()), 4), 3)
        sleep(1)
        run(`kill -9 $ospid`)
        @test within(() -> istaskdone(waiting), 10)
        @test outcome(waiting) isa ProcessExitedException
        @test within(() -> istaskdone(between), 10)
        @test cause(outcome(between)) isa ProcessExitedException
        @test within(() -> workers() == [2, 3, 5], 10)
        @test pmap(x -> 2x, 1:100) == 2:2:200
        @test relayed(5, 2) == 2 && relayed(2, 5) == 5
    end
end
println("in order")
