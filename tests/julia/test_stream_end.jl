# SPDX-License-Identifier: MIT
# How streams end: half-close, close and death of the peer, over tcp and shared memory; what is given back then.
using Test, Muster, Sockets
include("helpers.jl")

const addresses = ("tcp://127.0.0.1:0?upgrade=no", "shm://muster-test-$(getpid())")
descriptors() = length(readdir("/proc/self/fd"))
targets() = count(target -> target !== nothing, Muster.running().targets)
outcome_of(f) = try f() catch e; e end

function connected(listener)
    dialling = @async Muster.dial(Muster.address(listener))
    accepted = accept(listener)
    return fetch(dialling), accepted
end

# Another process that dials here, says it has done so, and waits to be killed.
function other(code, address)
    program = "using Muster; Muster.configure!(secret = hex2bytes(readline())); s = Muster.dial($(repr(address))); $code; wait(Condition())"
    process = open(`setpriv --pdeathsig KILL $(Base.julia_cmd()) --startup-file=no -e $program`, "r+")
    println(process.in, bytes2hex(Muster.secret()))
    return process
end

@testset "a reply written after the peer's half-close arrives ($address)" for address in addresses
    listener = Muster.listen(address)
    a, b = connected(listener)
    write(a, "question")
    Muster.closewrite(a)
    @test String(read(b)) == "question"
    @test isopen(b) && iswritable(b) && !isreadable(b)
    @test isopen(a) && !iswritable(a) && isreadable(a)
    write(b, "answer")
    close(b) # no flush before it
    @test !isopen(b) && !iswritable(b) && !isreadable(b)
    @test String(read(a)) == "answer"
    @test isopen(a) && !isreadable(a)
    close(a)
    @test !isopen(a)
    close(listener)
end

@testset "what a killed peer left unfinished is an error ($address)" for address in addresses
    listener = Muster.listen(address)
    process = other("write(s, zeros(UInt8, 1000)); flush(s)", Muster.address(listener))
    s = accept(listener)
    @test read(s, 10) == zeros(UInt8, 10)
    kill(process, 9)
    e = outcome_of(() -> read(s))
    @test e isa Base.IOError && occursin("without a goodbye", e.msg)
    @test outcome_of(() -> eof(s)) isa Base.IOError
    @test outcome_of(() -> read!(s, zeros(UInt8, 100_000))) isa Base.IOError
    @test isopen(s) && !isreadable(s) && !iswritable(s)
    close(s)
    close(listener)
end

@testset "an abort is an error for both sides" begin
    a, b = Muster.pair()
    write(a, "part"); flush(a)
    Muster.abort(a, 7, "out of paper")
    e = outcome_of(() -> read(b))
    @test e isa Base.IOError && occursin("out of paper", e.msg)
    @test outcome_of(() -> read(a)) isa Base.IOError
    @test !iswritable(a) && !iswritable(b)
    close(a); close(b)
end

@testset "close gives descriptors and places back without a garbage collection ($address)" for address in addresses
    GC.enable(false)
    try
        listener = Muster.listen(address)
        foreach(close, connected(listener)) # what is made once
        before, places = descriptors(), targets()
        for _ in 1:20
            a, b = connected(listener)
            close(a); close(b)
        end
        @test within(() -> descriptors() <= before, 10)
        @test targets() == places
        close(listener)
        @test within(() -> descriptors() < before, 10)
        @test targets() == places - 1
    finally
        GC.enable(true)
    end
end

@testset "places of collected streams are used again" begin
    running = Muster.running()
    for _ in 1:40
        foreach(_ -> Muster.pair(), 1:50)
        GC.gc()
    end
    @test length(running.targets) < 1000
end

@testset "a closed stream still has its name, reason and figures" begin
    a, b = Muster.pair()
    write(a, "12345"); flush(a)
    name = Muster.peer(a)
    close(a)
    @test Muster.peer(a) == name && Muster.stats(a).bytes_out == 5 && Muster.reason(a) == ""
    @test occursin("closed", sprint(show, a))
    @test read(b, 5) == b"12345"
    Muster.abort(b, 1, "enough")
    close(b)
    @test occursin("enough", Muster.reason(b))
end
