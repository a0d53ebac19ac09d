# SPDX-License-Identifier: MIT
# Workers that mpiexec launches, for a master outside of their job: over tcp and in a star.
#   julia test_mpiexec.jl
using Test, Distributed, Muster
include("helpers.jl")

const mpiexec = `mpiexec --oversubscribe --bind-to none`
said(f) = try f(); "nothing" catch e; sprint(showerror, e) end

for transport in ("tcp", "zmq")
    @testset "workers of mpiexec over $transport" begin
        w = addprocs(MusterManager(2; mpiexec = mpiexec, transport = transport, upgrade = false); exeflags = `--startup-file=no`)
        @test [remotecall_fetch(() -> ENV["OMPI_COMM_WORLD_RANK"], p) for p in w] == ["0", "1"]
        @test relayed(w[2], w[1]) == w[1]
        @test pmap(x -> x^2, 1:20) == (1:20) .^ 2
        @test procs(w[1]) == [1; w]
        address = Distributed.worker_from_id(w[1]).config.connect_at
        @test startswith(address, transport * "://")
        # Among themselves they can use MPI: the world has two ranks.
        @test remotecall_fetch(() -> Muster.world_number(Muster.mpi_library(), :MPI_Comm_size), w[2]) == 2
        computing = occupy(() -> (x = 0.0; while true; x += sum(rand(100)); end), w[1])
        interrupt(w[1])
        @test within(() -> istaskdone(computing), 20)
        @test outcome(computing) isa InterruptException
        ospids = process_of.(w)
        rmprocs(w)
        @test within(() -> !any(alive, ospids), 20)
    end
end

@testset "what goes wrong is told" begin
    @test occursin("nompiexec cannot be started", said(() -> addprocs(MusterManager(1; mpiexec = `nompiexec`))))
    told = said(() -> addprocs(MusterManager(1; mpiexec = `mpiexec --nonsense`)))
    @test occursin("with exit status 1", told) && occursin("--nonsense", told)
    @test nprocs() == 1
end
