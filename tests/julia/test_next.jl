# SPDX-License-Identifier: MIT
# MusterManager for DistributedNext. Where the package is missing (it needs Julia 1.10), a stand-in has its place: the Distributed of this
# Julia under the other's name, with which it shares the contract for managers.
#   julia test_next.jl [transport ...]
using Test

const genuine = Base.identify_package("DistributedNext") !== nothing
if !genuine
    folder = joinpath(mktempdir(), "DistributedNext")
    source = joinpath(Sys.STDLIB, "Distributed", "src")
    mkpath(joinpath(folder, "src"))
    for name in readdir(source)
        text = replace(read(joinpath(source, name), String), r"\bDistributed\b" => "DistributedNext")
        name = name == "Distributed.jl" ? "DistributedNext.jl" : name
        write(joinpath(folder, "src", name), text)
    end
    write(joinpath(folder, "Project.toml"), """
        name = "DistributedNext"
        uuid = "fab6aee4-877b-4bac-a744-3eca44acbb6f"
        version = "1.0.0"
        [deps]
        Random = "9a3f8284-a2c9-5f02-9a11-845980a1fd5c"
        Serialization = "9e88b42a-f829-5b0c-bbe9-9e923198166b"
        Sockets = "6462fe0b-24de-5631-8697-dd941f90decc"
        """)
    push!(LOAD_PATH, dirname(folder))
end
import DistributedNext
using Muster
include("helpers.jl")
println("DistributedNext: ", genuine ? "the package" : "the Distributed of Julia $VERSION under its name")

const Next = DistributedNext

@testset "workers over $transport" for transport in (isempty(ARGS) ? ["shm", "tcp", "unix", "zmq"] : ARGS)
    manager = MusterManager(DistributedNext, 2; transport = transport)
    @test manager isa Next.ClusterManager && !(manager isa MusterManager)
    pids = Next.addprocs(manager)
    @test length(pids) == 2 && sort(Next.workers()) == sort(pids)
    @test Next.remotecall_fetch(Next.myid, pids[1]) == pids[1]
    # From worker to worker.
    @test Next.remotecall_fetch(q -> Next.remotecall_fetch(Next.myid, q), pids[1], pids[2]) == pids[2]
    bytes = rand(UInt8, 5_000_000)
    @test Next.remotecall_fetch(identity, pids[2], bytes) == bytes
    @test Next.pmap(x -> x^2, 1:100) == [x^2 for x in 1:100]
    # A worker that is killed.
    kill_it = Next.worker_from_id(pids[1]).config.process
    kill(kill_it, Base.SIGKILL)
    gone = try Next.remotecall_fetch(Next.myid, pids[1]); nothing catch e; e end
    @test gone isa Next.ProcessExitedException
    @test within(() -> Next.workers() == [pids[2]], 30)
    # A worker that is interrupted.
    waiting = @async try Next.remotecall_fetch(() -> sleep(100), pids[2]) catch e; e end
    @test within(() -> Next.remotecall_fetch(() -> true, pids[2]), 30)
    Next.interrupt(pids[2])
    @test fetch(waiting).captured.ex isa InterruptException
    process = Next.worker_from_id(pids[2]).config.process
    Next.rmprocs(pids[2])
    @test within(() -> process_exited(process), 30)
end

@testset "both packages in one process" begin
    mine = addprocs(MusterManager(1; transport = "shm"))
    theirs = Next.addprocs(MusterManager(DistributedNext, 1; transport = "shm"))
    @test remotecall_fetch(myid, mine[1]) == mine[1] && Next.remotecall_fetch(Next.myid, theirs[1]) == theirs[1]
    @test remotecall_fetch(getpid, mine[1]) != Next.remotecall_fetch(getpid, theirs[1])
    rmprocs(mine)
    Next.rmprocs(theirs)
end

@testset "what is not supported is refused" begin
    @test_throws ArgumentError MusterManager(Test, 2)
    refused = try Next.addprocs(MusterManager(DistributedNext, 2; mpiexec = true)); nothing catch e; e end
    @test occursin("mpiexec", sprint(showerror, refused))
end
