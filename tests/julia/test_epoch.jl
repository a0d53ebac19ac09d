# SPDX-License-Identifier: MIT
# Epochs and atomic objects: between tasks and threads, and between processes of which one is killed.
using Test, Muster, Mmap

include("status.jl")

@testset "a number is handed back when no pin of its time is left" begin
    for fenced in (false, true)
        epoch = Muster.Epoch(max_tokens = 2, max_pending = 64, fenced = fenced)
        reader, writer = Muster.register(epoch), Muster.register(epoch)
        @test status_of(() -> Muster.register(epoch)) == Muster.LowLevel.MUSTER_E_LIMIT
        Muster.pinned(reader) do
            Muster.pinned(() -> nothing, reader)
            foreach(i -> Muster.retire!(writer, 16i), 1:64)
            @test status_of(() -> Muster.retire!(writer, 1)) == Muster.LowLevel.MUSTER_AGAIN
            Muster.try_reclaim!(writer)
            Muster.try_reclaim!(writer)
            @test isempty(Muster.poll!(writer))
            found = Muster.try_reclaim!(writer)
            @test (found.outcome, found.token, found.process) == (:blocked, 0, getpid())
            late = @test_throws Muster.MusterError Muster.synchronize(writer; timeout = 0.01)
            @test occursin("token 0 of process", late.value.message)
            waiting = @async Muster.synchronize(writer; timeout = 0.05)
            yield() # other tasks go on
            @test !istaskdone(waiting)
            @test_throws Exception wait(waiting)
        end
        Muster.synchronize(writer; timeout = 20)
        @test Muster.poll!(writer) == 16 .* (1:8)
        @test Muster.poll!(writer; max_objects = 100) == 16 .* (9:64)
        @test Muster.stats(epoch).freed == 64
        close(epoch)
        close(epoch)
        @test status_of(() -> Muster.stats(epoch)) == Muster.LowLevel.MUSTER_E_STALE
        Muster.pinned(() -> nothing, reader) # tokens outlive the manager
        close(reader)
        close(reader)
        @test status_of(() -> Muster.pin(reader)) == Muster.LowLevel.MUSTER_E_CLOSED
        @test !isopen(reader)
    end
end

@testset "a block that throws ends its pin, and values are finished" begin
    epoch = Muster.Epoch()
    one, other = Muster.register(epoch), Muster.register(epoch)
    @test_throws DomainError Muster.pinned(() -> throw(DomainError(1)), one)
    @test Muster.pinned(() -> 7, one) == 7
    ended = []
    Muster.defer!(x -> error("it fails"), one, 1)
    Muster.retire!(one, 5)
    Muster.defer!(x -> push!(ended, x), one, "value")
    close(one) # the other token takes over
    Muster.synchronize(other; timeout = 20)
    @test_throws ErrorException Muster.poll!(other; max_objects = 1)
    @test Muster.poll!(other) == [5]
    @test ended == ["value"] && isempty(epoch.values)
    @test_throws ArgumentError Muster.retire!(other, 0)
    @test_throws ArgumentError Muster.retire!(other, UInt64(1) << 63)
    Muster.pinned(() -> Muster.protect!(other, 3, 99), other)
    @test status_of(() -> Muster.protect!(other, 3, 99)) == Muster.LowLevel.MUSTER_E_ARG
    Muster.retire!(other, 99)
    Muster.retire!(other, 100)
    Muster.synchronize(other; timeout = 20)
    @test Muster.poll!(other) == [100]
    Muster.protect!(other, 3, 0)
    Muster.synchronize(other; timeout = 20)
    @test Muster.poll!(other) == [99]
end

@testset "words of $T" for T in (Int32, UInt32, Int64, UInt64)
    array = zeros(T, 4)
    w = Muster.AtomicWord(array, 3)
    w[] = 5
    @test w[] === T(5) && array == [0, 0, 5, 0]
    @test Muster.fetch!(+, w, 3; order = :relaxed) === T(5)
    @test Muster.exchange!(w, 12) === T(8)
    @test Muster.compare_exchange!(w, 8, 1) === (found = T(12), done = false)
    @test Muster.compare_exchange!(w, 12, 6).done
    @test Muster.fetch!(&, w, 3) === T(6)
    @test Muster.fetch!(|, w, 4) === T(2)
    @test Muster.fetch!(xor, w, 1) === T(6)
    @test Muster.fetch!(max, w, 9) === T(7)
    @test Muster.fetch!(min, w, T <: Signed ? -1 : 1) === T(9)
    @test w[] == (T <: Signed ? -1 : 1)
    Muster.store!(w, 2; order = :acq_rel)
    @test Muster.load(w; order = :acq_rel) === T(2)
    @test_throws BoundsError Muster.AtomicWord(array, 5)
    @test_throws ArgumentError Muster.fetch!(*, w, 1)
    @test_throws ArgumentError Muster.load(w; order = :release)
    @test_throws InexactError w[] = 2^33 + 0.5
    @test status_of(() -> Muster.wait_until((w, ==, 7); timeout = 0.01)) == Muster.LowLevel.MUSTER_TIMEOUT
    waiting = @async Muster.wait_until((w, >=, 7); timeout = 20)
    yield()
    w[] = 8
    notify(w)
    @test fetch(waiting) == [true]
end

@testset "cells that count their writes" begin
    array = zeros(UInt64, 8)
    first = UInt(pointer(array)) % 16 == 0 ? 1 : 2
    @test_throws ArgumentError Muster.AbaCell(array, first + 1)
    @test_throws BoundsError Muster.AbaCell(array, 8)
    cell = Muster.AbaCell(array, first + 2)
    cell[] = 3
    before = cell[]
    cell[] = 4
    cell[] = 3
    @test Muster.compare_exchange!(cell, before, 9) == (found = (value = 3, count = 3), done = false)
    @test Muster.compare_exchange!(cell, cell[], 9).done
    @test Muster.compare_exchange!(cell, 8, 1) == (found = 9, done = false)
    @test Muster.compare_exchange!(cell, 9, 1).done
    @test Muster.exchange!(cell, 2) == (value = 1, count = 5)
    @test cell[] == (value = 2, count = 6)
end

# A second program retires an offset, and is killed while it is pinned.
const SECOND = raw"""
using Muster, Mmap
path = ARGS[1]
io = open(path, "r+")
words = Mmap.mmap(io, Vector{UInt64}, 512)
epoch = Muster.open_epoch(io; offset = 4096)
token = Muster.register(epoch)
Muster.pin(token)
Muster.retire!(token, 320)
word = Muster.AtomicWord(words, 1)
word[] = 1
notify(word)
ccall(:kill, Cint, (Cint, Cint), getpid(), 9)
"""

@testset "a process that is killed while it is pinned blocks no other" begin
    mktemp("/dev/shm") do path, io
        truncate(io, 4096 + Muster.epoch_size(4, 64))
        words = Mmap.mmap(io, Vector{UInt64}, 512)
        @test status_of(() -> Muster.open_epoch(io; offset = 4096)) == Muster.LowLevel.MUSTER_E_NOT_FOUND
        epoch = Muster.Epoch(max_tokens = 4, max_pending = 64, fd = io, offset = 4096)
        token = Muster.register(epoch)
        @test_throws Exception run(pipeline(`$(Base.julia_cmd()) --startup-file=no -e $SECOND $path`, stderr = devnull))
        Muster.wait_until((Muster.AtomicWord(words, 1), ==, 1); timeout = 20)
        numbers = UInt64[]
        for _ in 1:4
            Muster.synchronize(token; timeout = 20)
            append!(numbers, Muster.poll!(token))
        end
        @test numbers == [320]
        @test Muster.stats(epoch).deaths == 1
        close(token)
    end
end

@testset "tasks of several threads" begin
    epoch = Muster.Epoch()
    freed = Threads.Atomic{Int}(0)
    @sync for _ in 1:4
        Threads.@spawn begin
            token = Muster.register(epoch)
            for i in 1:2000
                Muster.pinned(() -> i, token)
                Muster.defer!(_ -> Threads.atomic_add!(freed, 1), token, i)
                Muster.poll!(token)
            end
            close(token)
        end
    end
    last = Muster.register(epoch)
    for _ in 1:100_000
        freed[] == 8000 && break
        Muster.poll!(last; max_objects = 100)
    end
    @test freed[] == 8000
end
