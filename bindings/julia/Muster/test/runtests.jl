# SPDX-License-Identifier: MIT
# Pkg.test("Muster"): does this installation work, with its library? It takes seconds and needs no network; the whole
# suite of the binding is in tests/julia of Muster's source.
using Test, Distributed, Sockets, Muster

@testset "the library is found: $(Muster.library())" begin
    @test isfile(Muster.library())
end

@testset "streams over $address" for address in ("tcp://127.0.0.1:0", "unix://@muster-test-$(getpid())", "shm://muster-test-$(getpid())")
    listener = Muster.listen(address)
    answering = @async begin
        accepted = accept(listener)
        write(accepted, uppercase(String(read(accepted))))
        close(accepted)
    end
    stream = Muster.dial(Muster.address(listener))
    write(stream, "hello")
    Muster.closewrite(stream)
    @test String(read(stream)) == "HELLO"
    wait(answering)
    close(stream)
    close(listener)
end

@testset "a store" begin
    store = Muster.Store("memory:test")
    store["key"] = "value"
    @test store["key"] == "value" && Muster.add!(store, "number", 3) == 3
    close(store)
end

@testset "workers over $transport" for transport in ("shm", "tcp")
    ids = addprocs(MusterManager(2; transport = transport); exeflags = `--startup-file=no`)
    @test sort(pmap(_ -> myid(), 1:20)) ⊆ ids
    @test remotecall_fetch(q -> remotecall_fetch(myid, q), ids[1], ids[2]) == ids[2]
    @test remotecall_fetch(sum, ids[1], ones(10^6)) == 10^6
    rmprocs(ids)
    @test nprocs() == 1
end
