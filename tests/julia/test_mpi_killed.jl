# SPDX-License-Identifier: MIT
# kill -9 of rank 0 of an MPI job: the other ranks end, those that compute and those that are no workers yet, too.
#   julia test_mpi_killed.jl             (runs itself as the ranks of jobs, with the argument "yes" or "no": upgrade)
using Test, Distributed, Muster
include("helpers.jl")

if !isempty(ARGS)
    upgrade = popfirst!(ARGS) == "yes"
    Muster.start_mpi_main(workers = 3, upgrade = upgrade) # rank 4 stays free
    relayed(2, 3)
    occupy(() -> (while true; end), 2) # never yields
    println(join([card["ospid"] for card in Muster.mpi_job[].ranks.cards], ' '))
    flush(stdout)
    wait()
end

for upgrade in ("yes", "no"), others in (`--enable-recovery`, ``)
    # With --enable-recovery mpirun leaves the others alone, and they end by themselves; else it may be faster.
    @testset "ranks do not outlive rank 0 (upgrade=$upgrade $(join(others, ' ')))" begin
        job = open(`mpirun --oversubscribe --bind-to none $others -n 5 $(Base.julia_cmd()) --startup-file=no
            $(abspath(PROGRAM_FILE)) $upgrade`, "r")
        line = readline(job.out)
        pids = parse.(Int, split(line))
        @test length(pids) == 5 && all(alive, pids)
        run(`kill -9 $(pids[1])`)
        started = time()
        @test within(() -> !any(alive, pids), 10)
        println("all gone after ", round(time() - started; digits = 2), " s")
        @test within(() -> process_exited(job), 20)
        foreach(pid -> alive(pid) && run(ignorestatus(`kill -9 $pid`)), pids)
        process_running(job) && kill(job)
    end
end
