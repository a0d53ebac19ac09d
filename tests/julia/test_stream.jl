# SPDX-License-Identifier: MIT
# MusterStream keeps the contract of an IO: pairs in one process, no transport needed.
using Test, Muster, Sockets
using Muster: LowLevel

# Streams of this process's context that are alive now.
function open_streams()
    out = Ref{LowLevel.muster_context_stats}()
    Muster.check(LowLevel.muster_context_get_stats(Muster.running().context, out), "read figures")
    return Int(out[].streams_open)
end

within(f, seconds) = timedwait(f, Float64(seconds); pollint = 0.01) === :ok

@testset "bytes come in order, gathered until flush" begin
    a, b = Muster.pair()
    write(a, 0x01)
    write(a, "text\n")
    write(a, Int64(-5), 2.5)
    task = @async (read(b, UInt8), readline(b), read(b, Int64), read(b, Float64))
    yield()
    @test !istaskdone(task) # nothing was flushed
    flush(a)
    @test fetch(task) == (0x01, "text", -5, 2.5)
    @test isopen(a) && isopen(b) && isreadable(b) && iswritable(a)
    close(a)
    @test eof(b)
    @test isopen(b) && !isreadable(b) && !isopen(a)
    @test_throws EOFError read(b, UInt8)
    @test isempty(readavailable(b))
    close(b)
    close(b) # twice is harmless
end

@testset "one call moves $bytes bytes, split by the ring or not" for bytes in (0, 1, 65_535, 65_536, 65_537, 1 << 20, 9_000_001)
    a, b = Muster.pair()
    sent = rand(UInt8, bytes)
    task = @async begin
        got = zeros(UInt8, bytes)
        read!(b, got)
        (got, read(b, UInt8))
    end
    @test write(a, sent) == bytes
    write(a, 0xaa)
    flush(a)
    got, after = fetch(task)
    @test got == sent
    @test after == 0xaa
    close(a); close(b)
end

@testset "sizes mixed at random arrive whole" begin
    a, b = Muster.pair(window = 65536)
    sizes = [rand((1, 7, 100, 5_000, 65_535, 65_536, 200_000)) for _ in 1:300]
    pieces = [rand(UInt8, n) for n in sizes]
    writer = @async begin
        for piece in pieces
            n = length(piece)
            rand(Bool) ? write(a, piece) : GC.@preserve(piece, unsafe_write(a, pointer(piece), UInt(n)))
            rand() < 0.3 && flush(a)
        end
        close(a)
    end
    expected = reduce(vcat, pieces)
    got = UInt8[]
    while !eof(b)
        append!(got, rand(Bool) ? read(b, rand(1:100_000)) : readavailable(b))
    end
    wait(writer)
    @test got == expected
end

@testset "readbytes! stops at the end, unsafe_read throws" begin
    a, b = Muster.pair()
    write(a, "abc"); close(a)
    buffer = zeros(UInt8, 10)
    @test readbytes!(b, buffer) == 3
    @test String(buffer[1:3]) == "abc"
    c, d = Muster.pair()
    write(c, "abc"); close(c)
    @test_throws EOFError read!(d, zeros(UInt8, 10))
end

@testset "what an IOBuffer does with the same bytes" begin
    for _ in 1:30
        a, b = Muster.pair(window = 65536)
        bytes = rand(UInt8, rand((0, 10, 3_000, 300_000)))
        writer = @async (write(a, bytes); close(a))
        mirror = IOBuffer(bytes)
        while true
            ended = eof(mirror)
            @test eof(b) == ended
            what = rand(1:9)
            n = rand((1, 8, 100, 70_000, 200_000))
            if ended
                rand(Bool) && ismarked(mirror) || break
                reset(mirror)
                reset(b)
            elseif what == 1
                @test peek(b) == peek(mirror)
            elseif what == 2 && bytesavailable(mirror) >= 8
                @test peek(b, UInt64) == peek(mirror, UInt64)
            elseif what == 3
                mark(mirror)
                mark(b)
            elseif what == 4 && ismarked(mirror)
                reset(mirror)
                reset(b)
            elseif what == 5
                @test unmark(b) == unmark(mirror)
            elseif what == 6 && bytesavailable(mirror) >= n
                skip(mirror, n)
                @test skip(b, n) === b
            elseif what == 7
                @test read(b, n) == read(mirror, n)
            elseif what == 8
                some = read(b, n; all = false)
                @test 1 <= length(some) <= n && some == read(mirror, length(some))
            else
                @test read(b, UInt8) == read(mirror, UInt8)
            end
            @test ismarked(b) == ismarked(mirror)
        end
        wait(writer)
        @test_throws EOFError peek(b)
        @test_throws EOFError skip(b, 1)
        @test_throws ArgumentError skip(b, -1)
        unmark(b)
        @test_throws ArgumentError reset(b)
        @test isempty(read(b, 10; all = false))
        close(b)
    end
end

@testset "the address of the peer" begin
    listener = Muster.listen("tcp://127.0.0.1:0?upgrade=no")
    task = @async accept(listener)
    a = Muster.dial(Muster.address(listener))
    b = fetch(task)
    ip, port = Sockets.getpeername(a)
    @test ip == ip"127.0.0.1" && endswith(split(Muster.address(listener), '?')[1], ":$port")
    @test Sockets.getpeername(b)[1] == ip"127.0.0.1"
    foreach(close, (a, b, listener))
    a, b = Muster.pair()
    @test_throws ArgumentError Sockets.getpeername(a)
    foreach(close, (a, b))
end

@testset "half-close ends one direction only" begin
    a, b = Muster.pair()
    write(a, "question")
    Muster.closewrite(a)
    @test String(read(b)) == "question"
    write(b, "answer"); flush(b)
    @test String(read(a, 6)) == "answer"
    @test_throws Base.IOError (write(a, "more"); flush(a))
    close(a); close(b)
end

@testset "an abort is told with its reason" begin
    a, b = Muster.pair()
    reader = @async try eof(b) catch e; e end
    yield()
    Muster.abort(a, 7, "out of paper")
    @test fetch(reader) isa Base.IOError
    @test occursin("out of paper", Muster.reason(b))
    @test_throws Base.IOError (write(b, "x"); flush(b))
    close(a); close(b)
end

@testset "closing wakes who waits here" begin
    a, b = Muster.pair()
    reader = @async try read(b, UInt8) catch e; e end
    full = @async try
        while true
            write(a, zeros(UInt8, 1 << 20))
        end
    catch e
        e
    end
    yield()
    sleep(0.05)
    c, d = Muster.pair()
    waiting = @async try read(d, UInt8) catch e; e end
    yield()
    close(d)
    @test fetch(waiting) isa EOFError
    close(a)
    @test fetch(full) isa Base.IOError
    close(b); close(c)
    fetch(reader)
end

@testset "a writer waits for its reader and for nothing else" begin
    a, b = Muster.pair(window = 65536)
    done = Ref(false)
    writer = @async (write(a, zeros(UInt8, 1 << 20)); flush(a); done[] = true)
    ticks = Ref(0)
    timer = Timer(_ -> (ticks[] += 1), 0.01; interval = 0.01)
    sleep(1)
    close(timer)
    @test !done[]
    @test ticks[] > 20 # Julia's own loop went on
    @test length(read(b, 1 << 20)) == 1 << 20
    @test within(() -> done[], 10)
    wait(writer)
    close(a); close(b)
end

@testset "an interrupt in the middle of 80 MB leaves the stream whole" begin
    a, b = Muster.pair()
    expected = rand(UInt8, 80_000_000)
    # In a function of its own: nothing keeps the array when the task has ended.
    function interrupted_write(expected)
        data = copy(expected)
        writer = @async write(a, data)
        yield()
        sleep(0.02)
        istaskdone(writer) && error("too fast to be interrupted")
        schedule(writer, InterruptException(); error = true)
        yield()
        return writer
    end
    writer = interrupted_write(expected)
    @test within(() -> istaskdone(writer), 10)
    @test writer.exception isa InterruptException
    writer = nothing
    GC.gc(); GC.gc()
    trash = [rand(UInt8, 1 << 20) for _ in 1:200] # takes the freed memory
    next = @async (write(a, "the next message"); flush(a)) # waits behind what is left of the array
    got = zeros(UInt8, length(expected))
    read!(b, got)
    @test got == expected
    @test String(read(b, 16)) == "the next message"
    wait(next)
    @test length(trash) == 200

    # A read that is interrupted: nobody writes into the array afterwards.
    target = zeros(UInt8, 80_000_000)
    reader = @async read!(b, target)
    write(a, expected[1:1_000_000]); flush(a)
    sleep(0.05)
    schedule(reader, InterruptException(); error = true)
    @test within(() -> istaskdone(reader), 10)
    @test reader.exception isa InterruptException
    before = copy(target)
    write(a, expected[1:500_000]); flush(a)
    sleep(0.05)
    @test target == before
    @test length(read(b, 500_000)) == 500_000
    close(a); close(b)
end

@testset "a stream nobody holds is released, one somebody waits on is not" begin
    made() = Muster.pair()[1].handle
    before = open_streams()
    for _ in 1:100
        made()
    end
    for _ in 1:20
        GC.gc(); yield()
        open_streams() <= before + 5 && break
        sleep(0.05)
    end
    @test open_streams() <= before + 5
    results = Channel{UInt8}(1)
    far = let (near, far) = Muster.pair()
        @async put!(results, read(near, UInt8))
        far
    end
    yield()
    for _ in 1:5
        GC.gc()
    end
    write(far, 0x2a); flush(far)
    @test within(() -> isready(results), 10) && take!(results) == 0x2a
    close(far)
end

@testset "figures and names" begin
    a, b = Muster.pair()
    write(a, "12345"); flush(a)
    @test String(read(b, 5)) == "12345"
    @test Muster.stats(a).bytes_out == 5
    @test Muster.stats(b).bytes_in == 5
    @test occursin("MusterStream", sprint(show, a))
    @test !isempty(Muster.library())
    close(a); close(b)
end

@testset "errors say what, where and with what value" begin
    for (address, text) in (("nothing://here", "nothing"), ("tcp://127.0.0.1:notaport", "notaport"), ("", ""))
        e = try Muster.dial(address; timeout = 5) catch e; e end
        @test e isa MusterError
        @test occursin(text, sprint(showerror, e))
        @test occursin("MUSTER_E_", sprint(showerror, e))
    end
    @test_throws ArgumentError Muster.configure!(heartbeat = 1) # too late
    @test_throws ArgumentError MusterManager(-1)
    @test_throws ArgumentError MusterManager(2; transport = "pigeon")
    @test_throws ArgumentError MusterManager(["node1"]; transport = "shm")
    @test_throws ArgumentError MusterManager([("node1", 0)])
end
