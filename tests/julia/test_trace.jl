# SPDX-License-Identifier: MIT
# Traces: spans, marks and files, and the arrows of calls from process to process. MUSTER_BUILD: a build folder, whose `muster trace`
# reads the files.
using Muster, Test
include("helpers.jl")

const LowLevel = Muster.LowLevel
summary_of(folder) = read(Cmd(vcat([joinpath(ENV["MUSTER_BUILD"], "bin", "muster"), "trace"],
    filter(endswith(".pftrace"), readdir(folder; join = true)))), String)
times(text, name) = (m = match(Regex("^  \\Q$name\\E +(\\d+) times", "m"), text); m === nothing ? 0 : parse(Int, m[1]))

@testset "spans, marks and states" begin
    mktempdir() do folder
        @test !Muster.Trace.state().on
        Muster.Trace.start("julia"; events = 256)
        try
            Muster.Trace.start()
            @test false
        catch e
            @test e isa MusterError && e.status == LowLevel.MUSTER_E_EXISTS
        end
        @test Muster.Trace.span(() -> (Muster.Trace.mark("now"); 42), "outer") == 42
        @test_throws KeyError Muster.Trace.span(() -> throw(KeyError(1)), "fails")
        state = Muster.Trace.state()
        @test state.on && state.events == 5 && state.threads == 1 && state.offset == 0 && state.offset_error === nothing
        Muster.Trace.save(joinpath(folder, "a.pftrace"))
        text = summary_of(folder)
        @test times(text, "host outer") == times(text, "host now") == times(text, "host fails") == 1
        refused = try Muster.Trace.save("/no/such/folder"); nothing catch e; e end
        @test refused isa MusterError && occursin("/no/such/folder", refused.message)
        Muster.Trace.stop()
        @test !Muster.Trace.state().on
    end
end

@testset "the number of a flow is that of FNV-1a" begin
    @test Muster.Trace.flow_of("") == 0xcbf29ce484222325
    @test Muster.Trace.flow_of("foobar") == 0x85944171f73967e8
end

@testset "calls lead from process to process" begin
    mktempdir() do folder
        before = get(ENV, "MUSTER_TRACE", nothing)
        Muster.metrics() # has begun the context of this process; the variable is for those of the workers
        ENV["MUSTER_TRACE"] = folder
        pids = addprocs(MusterManager(2; transport = "shm"))
        before === nothing ? delete!(ENV, "MUSTER_TRACE") : (ENV["MUSTER_TRACE"] = before)
        Muster.Trace.start("master")
        foreach(_ -> remotecall_fetch(myid, pids[1]), 1:20) # a call, and its result
        @test relayed(pids[1], pids[2]) == pids[2]
        Muster.Trace.save(joinpath(folder, "master.pftrace"))
        rmprocs(pids)
        @test within(() -> count(endswith(".pftrace"), readdir(folder)) == 3, 30)
        text = summary_of(folder)
        # Each call has an arrow to its worker, that of a worker to another one, too.
        @test times(text, "host call sent -> host call received") >= 20 + 2
        Muster.Trace.stop()
    end
end
