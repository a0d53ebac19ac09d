# SPDX-License-Identifier: MIT
# What a trace costs a small call of Julia's Distributed:  julia tests/bench/julia_traced.jl
# A call has two events, one in each process. Blocks of calls with and without a trace follow each other, and each block is compared
# with its neighbour, since the speed of a shared machine changes from second to second.
using Distributed, Muster, Statistics

const pairs, calls = 400, 500
p = addprocs(MusterManager(1; transport = "shm"))[1]
@everywhere using Muster
time_of(n) = (begun = time_ns(); foreach(_ -> remotecall_fetch(myid, p), 1:n); (time_ns() - begun) / n / 1000)
begin_trace() = (Muster.Trace.start(); remotecall_fetch(() -> (Muster.Trace.start(); nothing), p))
end_trace() = (Muster.Trace.stop(); remotecall_fetch(() -> (Muster.Trace.stop(); nothing), p))
begin_trace(); end_trace(); time_of(5000)
without, with = Float64[], Float64[]
for i in 1:pairs
    push!(without, time_of(calls))
    begin_trace()
    time_of(20)
    push!(with, time_of(calls))
    end_trace()
    time_of(20)
end
change = with ./ without .- 1
println("a call: ", round(median(without); digits = 2), " us; with a trace: ", round(median(with); digits = 2), " us; median of ",
    pairs, " neighbours: ", round(100 * median(change); digits = 2), " %")
rmprocs(p)
