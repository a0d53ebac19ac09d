# SPDX-License-Identifier: MIT
# kill -9 of the master: its workers are gone within 5 s, one in the middle of a 60 s computation, too.
#   julia test_master_killed.jl              (runs itself as the master, with the argument "master")
using Test, Distributed, Muster
include("helpers.jl")

const transport = get(ENV, "MUSTER_TRANSPORT", "shm")

if ARGS == ["master"]
    empty!(ARGS)
    w = addprocs(MusterManager(3; transport = transport, upgrade = transport == "shm"); exeflags = `--startup-file=no`)
    remotecall_fetch(q -> remotecall_fetch(myid, q), w[1], w[2])
    pids = [remotecall_fetch(getpid, p) for p in w]
    remote_do(() -> (t = time(); while time() - t < 60; end), w[1])               # never yields
    remote_do(() -> (x = rand(1000, 1000); t = time(); while time() - t < 60; x = x * x / 500; end), w[2]) # in BLAS
    sleep(1)
    println(join(pids, ' '))
    flush(stdout)
    sleep(1000)
end

@testset "workers do not outlive a killed master ($transport)" begin
    master = open(`$(Base.julia_cmd()) --startup-file=no $(abspath(PROGRAM_FILE)) master`, "r")
    pids = parse.(Int, split(readline(master.out)))
    @test length(pids) == 3
    @test all(alive, pids)
    kill(master, 9)
    started = time()
    gone = timedwait(() -> !any(alive, pids), 5.0; pollint = 0.05)
    @test gone === :ok
    println("workers gone after ", round(time() - started; digits = 2), " s")
    foreach(pid -> alive(pid) && run(ignorestatus(`kill -9 $pid`)), pids)
end
