# SPDX-License-Identifier: MIT
# The package in a project: workers find it there, and Pkg.test("Muster") works without a network.
using Test

const package = normpath(joinpath(@__DIR__, "..", "..", "bindings", "julia", "Muster"))

# A process with a new project that has Muster in it, and nothing else to find Muster by; gives its output.
function in_project(code)
    mktempdir() do folder
        write(joinpath(folder, "Project.toml"), "[deps]\nMuster = \"b0a6f0f2-5f0c-4d2e-9c55-6d75737465b1\"\n")
        write(joinpath(folder, "Manifest.toml"), """
            [[Muster]]
            deps = ["Distributed", "Libdl", "Random", "Serialization", "Sockets"]
            path = $(repr(package))
            uuid = "b0a6f0f2-5f0c-4d2e-9c55-6d75737465b1"
            version = "0.1.0"

            [[Distributed]]
            deps = ["Random", "Serialization", "Sockets"]
            uuid = "8ba89e20-285c-5b6f-9357-94700520ee1b"
            [[Libdl]]
            uuid = "8f399da3-3557-5675-b5ff-fb832c97cbdb"
            [[Random]]
            deps = ["Serialization"]
            uuid = "9a3f8284-a2c9-5f02-9a11-845980a1fd5c"
            [[Serialization]]
            uuid = "9e88b42a-f829-5b0c-bbe9-9e923198166b"
            [[Sockets]]
            uuid = "6462fe0b-24de-5631-8697-dd941f90decc"
            """)
        variables = filter(pair -> !(pair.first in ("JULIA_LOAD_PATH", "JULIA_PROJECT")), Dict(ENV))
        variables["JULIA_PKG_SERVER"] = ""
        variables["JULIA_DEPOT_PATH"] = folder
        # A depot without any registry would be an order to fetch one.
        registry = mkpath(joinpath(folder, "registries", "Empty"))
        write(joinpath(registry, "Registry.toml"),
            "name = \"Empty\"\nuuid = \"11111111-2222-3333-4444-555555555555\"\nrepo = \"file:///nowhere\"\n[packages]\n")
        for name in ("http_proxy", "https_proxy", "all_proxy")
            variables[name] = "http://127.0.0.1:1" # no network either
        end
        output = Pipe()
        process = run(pipeline(setenv(`$(Base.julia_cmd()) --startup-file=no --project=$folder -e $code`, variables),
            stdin = devnull, stdout = output, stderr = output); wait = false)
        close(output.in)
        text = read(output, String)
        wait(process)
        success(process) || println(text)
        return success(process), text
    end
end

@testset "workers find the packages of julia --project=..." begin
    done, text = in_project("""
        using Distributed, Muster
        p = addprocs(MusterManager(1); exeflags = `--startup-file=no`)[1]
        print(remotecall_fetch(Base.active_project, p) == Base.active_project())
        rmprocs(p)
        """)
    @test done && endswith(text, "true")
end

@testset "Pkg.test(\"Muster\") needs no network" begin
    done, text = in_project("using Pkg; Pkg.test(\"Muster\")")
    @test done && occursin("Muster tests passed", text)
end
