# SPDX-License-Identifier: MIT
# Julia's own suite of SharedArrays over the transport named in MUSTER_TRANSPORT: shared_arrays_suite.jl <folder of its tests>
# The suite is taken as it is, but for its second include, which adds workers of Julia's own manager.
using Test, Distributed, SharedArrays, Random
include(joinpath(@__DIR__, "suite_manager.jl"))
Muster.enable_shared_arrays()

addprocs_with_testenv(count::Int; options...) =
    addprocs(make_manager(count); exeflags = `--check-bounds=yes --startup-file=no --depwarn=error`, options...)

const suite = joinpath(ARGS[1], "runtests.jl")
const replaced = r"^include\(joinpath\(Sys\.BINDIR.*testenv\.jl\"\)\)$"m
const text = read(suite, String)
occursin(replaced, text) || error("$suite is another one: it does not include testenv.jl")
@testset "SharedArrays over $suite_transport" begin
    include_string(Main, replace(text, replaced => ""), suite)
end
@test nprocs() == 5 # the workers of the suite were all there until its end
