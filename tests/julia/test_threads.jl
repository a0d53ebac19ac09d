# SPDX-License-Identifier: MIT
# Streams used by several threads of Julia: started with -t 2.
using Test, Muster

Threads.nthreads() > 1 || error("one thread shows nothing here: julia -t 2 test_threads.jl")

@testset "transfers under way are counted on all threads" begin
    tasks = [Threads.@spawn(for _ in 1:10^6
        Base.invokelatest(Muster.begin_transfer) # one by one, not a sum that the compiler knows
        Base.invokelatest(Muster.end_transfer)
    end) for _ in 1:4]
    foreach(wait, tasks)
    @test Muster.transfers[] == 0
end

@testset "one thread reads a stream while another writes it" begin
    a, b = Muster.pair(window = 65536)
    sent, back = rand(UInt8, 20_000_003), rand(UInt8, 20_000_001)
    read_from(stream, n) = Threads.@spawn read(stream, n)
    write_to(stream, bytes) = Threads.@spawn (write(stream, bytes); flush(stream))
    reading = (read_from(b, length(sent)), read_from(a, length(back)))
    writing = (write_to(a, sent), write_to(b, back))
    foreach(wait, writing)
    @test fetch(reading[1]) == sent && fetch(reading[2]) == back
    # Small ones: nearly every call of one thread meets one of the other.
    piece = rand(UInt8, 4096)
    count = 20_000
    writing = [Threads.@spawn(for _ in 1:count
        write(stream, piece); flush(stream)
    end) for stream in (a, b)]
    reading = [Threads.@spawn(all(_ -> read(stream, length(piece)) == piece, 1:count)) for stream in (a, b)]
    @test all(fetch, reading)
    foreach(wait, writing)
    close(a); close(b)
end
