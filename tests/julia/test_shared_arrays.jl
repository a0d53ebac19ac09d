# SPDX-License-Identifier: MIT
# SharedArrays over workers of Muster, alone and mixed with those of Julia's own managers.
using Test, Distributed, Muster, SharedArrays

const flags = `--startup-file=no`
const ours = addprocs(MusterManager(2; transport = "shm"); exeflags = flags)
@everywhere using SharedArrays

# All processes of `ids` write into the array; gives what the master sees, and the processes that map it.
function filled(ids; options...)
    array = SharedArray{Int}(100; options...)
    @sync for (place, id) in enumerate(ids)
        @async remotecall_wait((a, place) -> (a[place] = myid()), id, array, place)
    end
    return array[1:length(ids)], sort(procs(array))
end

@testset "before it is asked for, Distributed's own method is in place" begin
    @test procs(1) == [1]
    @test filled(ours; pids = copy(ours))[2] == ours # a copy, since the array empties the vector at its end
end

Muster.enable_shared_arrays()
Muster.enable_shared_arrays() # twice is harmless

@testset "an array is shared by all workers of MusterManager" begin
    @test sort(procs(1)) == [1; ours] && sort(procs(ours[2])) == [1; ours]
    @test sort(remotecall_fetch(procs, ours[1], 1)) == [1; ours]
    @test filled(ours) == (ours, ours)
    @test filled(ours; pids = workers()) == (ours, ours)
end

@testset "managers are mixed, and other hosts left out" begin
    julias = addprocs(2; exeflags = flags)
    @everywhere using SharedArrays
    together = [ours; julias]
    @test sort(procs(1)) == [1; together] && sort(procs(julias[1])) == [1; together]
    @test filled(together) == (together, together)
    # A worker that says it is bound elsewhere is on another host.
    worker = Distributed.worker_from_id(ours[2])
    here = worker.config.bind_addr
    worker.config.bind_addr = "192.0.2.1"
    @test sort(procs(1)) == [1; ours[1]; julias] && procs(ours[2]) == [ours[2]]
    @test filled([ours[1]; julias])[2] == [ours[1]; julias]
    worker.config.bind_addr = here
    rmprocs(julias)
    @test sort(procs(1)) == [1; ours]
end
rmprocs(ours)
