# SPDX-License-Identifier: MIT
# Dealers and routers between tasks of one process.
using Test, Muster

include("status.jl")

@testset "a dealer and a router" begin
    router = Muster.Router(address = 1)
    at = Muster.bind!(router, "tcp://127.0.0.1:0")
    serving = @async for _ in 1:4
        request = Muster.receive!(router; timeout = 20) # waits before there is a peer
        Muster.send!(router, Muster.answer(request; type = request.type + 1, frames = request.frames))
    end
    dealer = Muster.Dealer(address = 2)
    Muster.connect!(dealer, at)
    Muster.wait_peers(dealer, 1; timeout = 20)
    @test Muster.next_event(dealer; timeout = 20).kind == :connected
    for (i, frames) in enumerate(([], [""], ["text", rand(100_000), UInt8[]], [view([1, 2, 3, 4], 2:3)]))
        Muster.send!(dealer, Muster.Message(300 + i; target = 7, target_version = -3, frames = frames))
        answer = Muster.receive!(dealer; timeout = 20)
        @test (answer.type, answer.source, answer.target, answer.target_version) == (301 + i, 1, 7, -3)
        @test length(answer.frames) == length(frames)
        i == 3 && @test Muster.text(answer, 1) == "text" && Muster.array(answer, 2, Float64) == frames[2]
        i == 4 && @test Muster.array(answer, 1, Int) == [2, 3]
    end
    wait(serving)
    @test_throws ArgumentError Muster.send!(dealer, Muster.Message(300; frames = [Any[1]]))
    @test_throws ArgumentError Muster.send!(dealer, Muster.Message(300; frames = [1]))
    close(dealer)
    @test Muster.next_event(router; timeout = 20).kind == :connected
    lost = Muster.next_event(router; timeout = 20)
    @test (lost.kind, lost.address) == (:lost, 2)
    @test status_of(() -> Muster.send!(router, Muster.Message(300; destination = 2))) == Muster.LowLevel.MUSTER_E_PEER
    close(router)
    @test status_of(() -> Muster.receive!(router)) == Muster.LowLevel.MUSTER_E_CLOSED
end

@testset "waits end, and other tasks go on" begin
    router = Muster.Router(max_unrouted_messages = 1)
    @test status_of(() -> Muster.receive!(router; timeout = 0.01)) == Muster.LowLevel.MUSTER_TIMEOUT
    @test status_of(() -> Muster.wait_peers(router, 1; timeout = 0)) == Muster.LowLevel.MUSTER_TIMEOUT
    waiting = @async status_of(() -> Muster.receive!(router))
    yield()
    Muster.send!(router, Muster.Message(300; destination = 99, frames = ("for a peer that never connects",)))
    @test status_of(() -> Muster.send!(router, Muster.Message(300; destination = 98))) == Muster.LowLevel.MUSTER_E_NOT_FOUND
    close(router; timeout = 0.01)
    @test fetch(waiting) == Muster.LowLevel.MUSTER_E_CLOSED
    @test timedwait(() -> length(router.undelivered) == 1, 20.0) == :ok
    @test Muster.text(router.undelivered[1], 1) == "for a peer that never connects"
    @test router.undelivered[1].status == Muster.LowLevel.MUSTER_E_CLOSED
end

@testset "several tasks of one socket" begin
    router, dealer = Muster.Router(address = 1), Muster.Dealer(address = 2, max_queued_messages = 4)
    Muster.connect!(dealer, Muster.bind!(router, "inproc://messages"))
    count = 2000
    receivers = [@async(sum(Muster.array(Muster.receive!(router), 1, Int)[1] for _ in 1:count ÷ 4)) for _ in 1:4]
    senders = [@async(for i in from:4:count
                          Muster.send!(dealer, Muster.Message(300; frames = ([i], zeros(UInt8, 3000))))
                      end) for from in 1:4]
    foreach(wait, senders)
    @test sum(fetch.(receivers)) == count * (count + 1) ÷ 2
    close(dealer)
    close(router)
end
