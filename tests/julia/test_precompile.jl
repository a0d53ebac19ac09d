# SPDX-License-Identifier: MIT
# Nothing of a loaded library, and no descriptor, is kept in a precompiled image: not by Muster, and not by a package that
# used it while it was being compiled.
using Test, Muster
import Libdl

in_new_process(code, folder) = readchomp(setenv(`$(Base.julia_cmd()) --startup-file=no -e $code`,
    merge(ENV, Dict("JULIA_LOAD_PATH" => join([folder; LOAD_PATH], ':'), "JULIA_DEPOT_PATH" => join([folder; DEPOT_PATH], ':')))))

@testset "addresses are those of this process" begin
    handle = Libdl.dlopen(Muster.library(), Libdl.RTLD_NOW | Libdl.RTLD_LOCAL)
    @test length(Muster.LowLevel.functions) >= 60
    for (name, place) in Muster.LowLevel.functions
        @test place[] == Libdl.dlsym(handle, name)
    end
end

@testset "nothing is started by loading" begin
    mktempdir() do folder
        code = "using Muster; print(Muster.engine[] === nothing, ' ', length(readdir(\"/proc/self/task\")))"
        threads = parse(Int, in_new_process("print(length(readdir(\"/proc/self/task\")))", folder))
        @test in_new_process(code, folder) == "true $threads"
    end
end

@testset "a package that used Muster while it was compiled works in the next process" begin
    mktempdir() do folder
        package = mkpath(joinpath(folder, "Downstream", "src"))
        write(joinpath(folder, "Downstream", "Project.toml"), """
            name = "Downstream"
            uuid = "11111111-2222-3333-4444-555555555555"
            [deps]
            Muster = "b0a6f0f2-5f0c-4d2e-9c55-6d75737465b1"
            """)
        write(joinpath(package, "Downstream.jl"), """
            module Downstream
            using Muster
            const manager = MusterManager(3; transport = "unix")
            const streams = Muster.pair() # a mistake, but not one that may harm anybody
            const said = let (a, b) = Muster.pair()
                write(a, "compiled\\n"); close(a)
                readline(b)
            end
            precompile(Muster.pair, ())
            end
            """)
        code = """
            using Downstream, Muster
            a, b = Muster.pair()
            write(a, "run\\n"); flush(a)
            old = try write(Downstream.streams[1], "x"); flush(Downstream.streams[1]); "written" catch e; nameof(typeof(e)) end
            print(Downstream.said, ' ', readline(b), ' ', Downstream.manager.count, ' ', old)
            """
        for _ in 1:2 # the first compiles, the second loads
            @test in_new_process(code, folder) == "compiled run 3 MusterError"
        end
    end
end
