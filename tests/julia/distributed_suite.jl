# SPDX-License-Identifier: MIT
# Runs Julia's own Distributed test suite (distributed_exec.jl, splitrange.jl, topology.jl),
# unmodified on disk, with every addprocs(n) going through a custom ClusterManager.
#
#   julia --check-bounds=yes --startup-file=no run_distributed_suite.jl <suite-dir> [manager.jl]
#
#   <suite-dir>   folder holding distributed_exec.jl (the 1.5 stdlib's Distributed/test)
#   manager.jl    defines   make_manager(np::Int) -> ClusterManager
#                 optional  make_topology_manager(np::Int) -> ClusterManager whose launch sets
#                           wconfig.ident = i and wconfig.connect_idents = i+2:2:np
#                 absent: the built-in LocalManager (TCP); that is the reference run.
# env: SUITE_SKIP    top-level blocks of distributed_exec.jl to leave out: lines "<line number> <reason>"
#      SUITE_TIMEOUT watchdog in seconds (default 900): prints the block it hangs in, exits 124
#
# How: testenv.jl only defines things unless `testenv_defined` exists, so this driver defines
# test_exename/test_exeflags/addprocs_with_testenv first. Top-level expressions are evaluated
# one at a time in Main, so one failing block does not hide the ones after it.

using Test, Distributed

module SuiteDriver
using Test, Distributed
const suite = abspath(ARGS[1])
const manager_file = length(ARGS) > 1 ? abspath(ARGS[2]) : ""
skipped(text) = (words = split(text, ' '; limit = 2); parse(Int, words[1]) => words[2])
const skip = Dict(skipped.(split(get(ENV, "SUITE_SKIP", ""), '\n'; keepempty = false)))
const timeout = parse(Float64, get(ENV, "SUITE_TIMEOUT", "900"))
const verbose = haskey(ENV, "SUITE_VERBOSE")
const started = time()
const current = Ref("startup")
const counts = Dict{Symbol,Int}()
const problems = String[]
const blocks = Ref(0)
const through_custom = Ref(0)
const by_own_manager = Dict{String, Int}() # how often, by name
const left_out = String[]
bump(k) = counts[k] = get(counts, k, 0) + 1

mutable struct CountSet <: Test.AbstractTestSet end
CountSet(desc::AbstractString; kw...) = CountSet()
Test.record(::CountSet, r::Test.Pass) = (bump(:pass); r)
Test.record(::CountSet, r::Test.Broken) = (bump(:broken); r)
Test.record(::CountSet, r::Union{Test.Fail,Test.Error}) =
    (bump(r isa Test.Fail ? :fail : :error); push!(problems, "$(current[]): $(r)"); r)
Test.record(::CountSet, r) = r
Test.finish(s::CountSet) = s

# @test inside @async/@sync tasks does not see a task-local testset: it is not counted when it
# passes, and throws (so: an error of its block) when it fails.
function runfile(file)
    tree = Base.parse_input_line(read(file, String); filename=file)
    line = 0
    for ex in tree.args
        if ex isa LineNumberNode
            line = ex.line
            continue
        end
        current[] = "$(basename(file)):$line"
        if basename(file) == "distributed_exec.jl" && haskey(skip, line)
            bump(:skipped_blocks)
            push!(left_out, "$(current[]): $(skip[line])")
            continue
        end
        if ex isa Expr && ex.head === :call && ex.args[1] === :include && ex.args[2] isa String
            runfile(joinpath(dirname(file), ex.args[2]))
            continue
        end
        blocks[] += 1
        verbose && (println(stderr, round(time() - started; digits = 1), " ", current[]); flush(stderr))
        try
            task_local_storage(:SOURCE_PATH, file) do
                Core.eval(Main, Expr(:toplevel, LineNumberNode(line, Symbol(file)), ex))
            end
        catch err
            bump(:error)
            push!(problems, "$(current[]): block threw " *
                  first(sprint(showerror, err), 600))
            println(stderr, "BLOCK ERROR ", problems[end])
        end
    end
end

function addprocs_suite(X; kw...)
    extra = (exename=Main.test_exename, exeflags=Main.test_exeflags)
    if X isa Integer && !isempty(manager_file)
        through_custom[] += X
        return addprocs(Base.invokelatest(Main.make_manager, Int(X)); extra..., kw...)
    elseif X isa ClusterManager && nameof(typeof(X)) === :TopoTestManager &&
           isdefined(Main, :make_topology_manager)
        through_custom[] += X.np
        pids = addprocs(Base.invokelatest(Main.make_topology_manager, Int(X.np)); extra..., kw...)
        for p in pids      # what the suite's own manage(...,:register) would have filled in
            Main.map_pid_ident[p] = Distributed.map_pid_wrkr[p].config.ident
        end
        return pids
    end
    name = string(nameof(typeof(X))) # TCP by design
    by_own_manager[name] = get(by_own_manager, name, 0) + 1
    return addprocs(X; extra..., kw...)
end
end # module

const testenv_defined = true
const test_exeflags = let f = Base.julia_cmd()
    filter!(c -> !(startswith(c, "--depwarn") || startswith(c, "--check-bounds")), f.exec)
    append!(f.exec, ["--check-bounds=yes", "--startup-file=no", "--depwarn=error"])
    f
end
const test_exename = popfirst!(test_exeflags.exec)
const addprocs_with_testenv = SuiteDriver.addprocs_suite
const curmod = Main
const curmod_name = fullname(Main)
const curmod_str = "Main"
const curmod_prefix = "Main."
const cfunction_closure = true

isempty(SuiteDriver.manager_file) || include(SuiteDriver.manager_file)
using .SuiteDriver: CountSet
let t0 = time()
    Timer(SuiteDriver.timeout) do _
        println(stderr, "WATCHDOG: still in ", SuiteDriver.current[], "; ", SuiteDriver.counts)
        flush(stderr)
        ccall(:_exit, Cvoid, (Cint,), 124)
    end
    Test.@testset CountSet "suite" begin
        SuiteDriver.runfile(joinpath(SuiteDriver.suite, "distributed_exec.jl"))
    end
    c = SuiteDriver.counts
    foreach(println, SuiteDriver.problems)
    println("SUITE manager=", isempty(SuiteDriver.manager_file) ? "built-in TCP" : basename(SuiteDriver.manager_file),
            " wall_s=", round(time() - t0; digits=1), " blocks=", SuiteDriver.blocks[],
            " pass=", get(c, :pass, 0), " fail=", get(c, :fail, 0), " error=", get(c, :error, 0),
            " broken=", get(c, :broken, 0), " skipped_blocks=", get(c, :skipped_blocks, 0),
            " workers_via_custom=", SuiteDriver.through_custom[],
            " addprocs_by_suite_managers=", sum(values(SuiteDriver.by_own_manager)))
    foreach(text -> println("SUITE left out: ", text), SuiteDriver.left_out)
    own = sort!(collect(SuiteDriver.by_own_manager))
    println("SUITE over its own managers' TCP: ", join(("$n x $name" for (name, n) in own), ", "))
    exit(get(c, :fail, 0) + get(c, :error, 0) == 0 ? 0 : 1)
end
