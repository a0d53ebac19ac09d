# SPDX-License-Identifier: MIT
# Distributed on the ranks of an MPI job: calls, large arrays, failures, interrupts, the end.
#   mpirun -n 5 julia test_mpi.jl introduced         links between processes of one host move to shared memory
#   mpirun -n 5 julia test_mpi.jl mpi                every byte goes through MPI
#   mpirun --enable-recovery -n 5 julia test_mpi.jl killed          a worker is; killed-mpi: every byte through MPI
#   mpirun -n 5 julia test_mpi.jl slow               the ranks need long to end; workers are two of them
#   mpirun -n 5 julia test_mpi.jl some-secrets       ranks 1 and 3 are given a secret
#   mpirun -n 5 julia test_mpi.jl other-secret       rank 2 is given another one
# What rank 0 prints last is "in order".
using Test, Distributed, Muster
include("helpers.jl")

const mode = ARGS[1]
rank_here() = parse(Int, get(() -> ENV["PMI_RANK"], ENV, "OMPI_COMM_WORLD_RANK")) # of Open MPI; or of MPICH

if endswith(mode, "secrets") || endswith(mode, "secret")
    rank = rank_here()
    if mode == "some-secrets"
        rank in (1, 3) && (ENV["MUSTER_SECRET"] = "a secret that two ranks have, and three have not")
    else
        ENV["MUSTER_SECRET"] = rank == 2 ? "a secret that only one rank has" : "a secret that all others have"
    end
    # (With a secret, also another one, the others than rank 0 serve, and do not return.)
    said = try Muster.start_mpi_main(); "nothing" catch e; sprint(showerror, cause(e)) end
    wanted = mode == "some-secrets" ? "rank 1 of the job was given a secret and rank 0 was not" : "another secret"
    if !occursin(wanted, said)
        println("rank $rank: ", said)
        exit(1)
    end
    rank == 0 && println("in order")
    exit(0)
end

if mode == "slow"
    rank_here() == 0 || atexit(() -> (until = time() + 4; while time() < until; end))
    Muster.start_mpi_main(workers = 2)
    @test relayed(2, 3) == 3
    println("in order")
    exit(0) # (nobody is killed, or mpirun would end with another status)
end

const manager = Muster.start_mpi_main(upgrade = !endswith(mode, "mpi"))
# Only rank 0 comes here.
const w = workers()

@testset "ranks as workers ($mode)" begin
    @test manager isa MPIManager
    @test w == 2:5
    @test Muster.free_ranks() == 0
    for p in w
        @test remotecall_fetch(rank_here, p) == p - 1
        @test remotecall_fetch(myid, p) == p
    end
    @test procs(2) == 1:5 # on one host
    @test_throws ArgumentError MPIManager(-1)
    e = outcome(@async addprocs(MPIManager(1)))
    @test occursin("0 ranks of the job are free", sprint(showerror, e))
end

const a_rank_dies = startswith(mode, "killed")

a_rank_dies || @testset "calls ($mode)" begin
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
    e = try remotecall_fetch(() -> error("on purpose"), 5) catch e; e end
    @test e isa RemoteException && e.pid == 5 && cause(e) == ErrorException("on purpose")
end

a_rank_dies || @testset "80 MB ($mode)" begin
    x = rand(10^7)
    seconds = @elapsed @test remotecall_fetch(identity, 2, x) == x
    println("80 MB there and back: ", round(seconds; digits = 2), " s")
    @test remotecall_fetch(q -> sum(remotecall_fetch(() -> ones(10^7), q)), 3, 4) == 10^7 # worker to worker
end

if !a_rank_dies
    @testset "interrupts ($mode)" begin
        computing = occupy(() -> (x = 0.0; while true; x += sum(rand(100)); end), 3)
        interrupt(3)
        @test within(() -> istaskdone(computing), 20)
        @test outcome(computing) isa InterruptException
        @test relayed(3, 2) == 2
    end
    if mode == "mpi"
        Muster.stop_mpi_main(manager)
        @test workers() == [1]
        @test within(() -> Muster.free_ranks() == 0, 5)
    end
else
    @testset "a rank dies ($mode)" begin
        ospid = remotecall_fetch(getpid, 4)
        waiting = occupy(() -> wait(Condition()), 4)
        between = occupy(() -> wait(Condition()), 4; by = 3)
        run(`kill -9 $ospid`)
        @test within(() -> istaskdone(waiting), 10)
        @test outcome(waiting) isa ProcessExitedException
        @test within(() -> istaskdone(between), 10)
        @test outcome(between) isa ProcessExitedException
        @test within(() -> workers() == [2, 3, 5], 10)
        @test pmap(x -> 2x, 1:100) == 2:2:200
        @test relayed(5, 2) == 2 && relayed(2, 5) == 5
    end
end
println("in order")
