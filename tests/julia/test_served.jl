# SPDX-License-Identifier: MIT
# Transports written in Julia: mistakes of theirs are errors of the call that asked, at once and with their text.
using Test, Muster, Sockets
include("helpers.jl")

failure(f) = cause(try f(); nothing catch e; e end)
const stopped = Ref(false)
stop() = (stopped[] = true)
serve(scheme; connect = address -> error("cannot connect"), listen = (address, arrived) -> error("no listening here")) =
    Muster.transport!(scheme; connect = connect, listen = listen)

# The status of a call that was not refused is a time-out; this is the time it would take.
const long = 60

@testset "what a transport throws is the error of listen and dial" begin
    serve("throws")
    for call in (() -> Muster.listen("throws://x"), () -> Muster.dial("throws://x"; timeout = long))
        e = failure(call)
        @test e isa MusterError && e.status == Muster.LowLevel.MUSTER_E_UNREACHABLE
    end
    @test occursin("no listening here", failure(() -> Muster.listen("throws://x")).message)
    @test occursin("cannot connect", failure(() -> Muster.dial("throws://x"; timeout = long)).message)
end

@testset "a connect that returns no IO is an error of dial ($(typeof(value)))" for (scheme, value) in
        (("none", nothing), ("number", 7), ("pair", (stdin, stdout)))
    serve(scheme; connect = address -> value)
    e = failure(() -> Muster.dial("$scheme://x"; timeout = long))
    @test e isa MusterError && e.status == Muster.LowLevel.MUSTER_E_UNREACHABLE
    @test occursin("no IO but a $(typeof(value))", e.message)
end

@testset "a listen that returns something else is an error of listen" begin
    serve("seven"; listen = (address, arrived) -> 7)
    @test occursin("no (address, close) but a Int64", failure(() -> Muster.listen("seven://x")).message)
    serve("other"; listen = (address, arrived) -> ("elsewhere://x", stop))
    listening = @async failure(() -> Muster.listen("other://x"))
    @test within(() -> istaskdone(listening), 20)
    @test fetch(listening) isa MusterError && occursin("elsewhere", fetch(listening).message)
    @test within(() -> stopped[], 20) # what was begun is stopped
end

@testset "an arrived connection that is no IO is an error for the transport" begin
    arrivals = Channel{Any}(1)
    serve("strange"; listen = (address, arrived) -> (put!(arrivals, arrived); (address, stop)))
    listener = Muster.listen("strange://x")
    arrived = take!(arrivals)
    @test failure(() -> arrived(nothing, "a peer")) isa ArgumentError
    close(listener)
end
