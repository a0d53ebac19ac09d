# SPDX-License-Identifier: MIT
# Stores and rendezvous from Julia: what is asked is answered, what waits holds up nobody, who dies is told.
#   julia test_store.jl [case]...             without a name, all of them
# cases: keys waits leases metrics serving meeting rounds gone
using Test, Muster
include("helpers.jl")

const chosen = isempty(ARGS) ? split("keys waits leases metrics serving meeting rounds gone") : ARGS
case(f, name, text) = name in chosen ? (@testset "$text" begin Base.invokelatest(f) end) : nothing

Muster.configure!(secret = "a secret of this test, of $(rand(UInt128))")
const server = Muster.StoreServer()
const url = Muster.address(server)
const store = Muster.Store(url)

const LowLevel = Muster.LowLevel
status_of(f) = try f(); LowLevel.MUSTER_OK catch e; e isa MusterError ? e.status : rethrow() end

# Another process, which says one line and then waits to be killed.
function other(code)
    program = "using Muster; Muster.configure!(secret = hex2bytes(readline())); url = $(repr(url)); $code; wait(Condition())"
    process = open(`setpriv --pdeathsig KILL $(Base.julia_cmd()) --startup-file=no -e $program`, "r+")
    println(process.in, bytes2hex(Muster.secret()))
    return process
end

case("keys", "values, conditions, and requests that are done together or not at all") do
    s = view(store, "keys/")
    s["a"] = "1"
    s["bytes"] = UInt8[0, 1, 0, 255]
    @test s["a"] == "1" && codeunits(s["bytes"]) == UInt8[0, 1, 0, 255]
    @test get(s, "b", nothing) === nothing && !haskey(s, "b")
    @test_throws KeyError s["b"]
    @test keys(s) == ["a", "bytes"] && keys(store, "keys/a") == ["keys/a"]
    @test length(s) == 2
    @test sort(collect(s)) == ["a" => "1", "bytes" => String(UInt8[0, 1, 0, 255])] && Dict(s)["a"] == "1"
    @test get!(s, "a", "other") == "1" && get!(s, "d", "new") == "new" && get!(() -> error("not called"), s, "d") == "new"
    @test pop!(s, "d") == "new" && pop!(s, "d", nothing) === nothing && !haskey(s, "d")
    @test_throws KeyError pop!(s, "d")
    @test Muster.add!(s, "n") == 1 && Muster.add!(s, "n", 41) == 42 && s["n"] == "42"
    @test Muster.compare_set!(s, "c", nothing => "x") && !Muster.compare_set!(s, "c", nothing => "y")
    @test !Muster.compare_set!(s, "c", "y" => "z") && Muster.compare_set!(s, "c", "x" => "z")
    failed = Muster.transact(s, Muster.op(:set, "a", "2"), Muster.op(:set, "c", "3"; if_absent = true))
    @test !failed.done && failed.entries[2].failed && failed.entries[2].value == "z" && s["a"] == "1"
    version = failed.entries[2].version
    done = Muster.transact(s, Muster.op(:delete, "a"), Muster.op(:set, "c", "3"; if_version = version))
    @test done.done && done.entries[1].present && !haskey(s, "a") && s["c"] == "3" && done.revision > version
    # Nothing is waited for that the request does itself; what it does not do is.
    own = Muster.transact(s, Muster.op(:set, "own", "v"), Muster.op(:get, "own"), Muster.op(:wait, "own"),
        Muster.op(:push, "own/q", "w"), Muster.op(:pop, "own/q"); timeout = 20)
    @test own.done && own.entries[2].value == "v" && own.entries[3].present && own.entries[5].value == "w"
    for waiting in (Muster.op(:get, "other"), Muster.op(:pop, "own/q"))
        @test status_of(() -> Muster.transact(s, Muster.op(:set, "own", "2"), waiting; timeout = 0.1)) == LowLevel.MUSTER_TIMEOUT
    end
    @test status_of(() -> Muster.transact(s, Muster.op(:push, "own/q", "w"), Muster.op(:pop, "own/q"), Muster.op(:pop, "own/q");
        timeout = 0.1)) == LowLevel.MUSTER_TIMEOUT
    @test s["own"] == "v"
    delete!(s, "own")
    @test [Muster.enqueue!(s, "q", text) for text in ("first", "second")] == [1, 2]
    @test Muster.dequeue!(s, "q") == "first" && Muster.dequeue!(s, "q") == "second"
    for i in 1:2500
        s["many/$i"] = i % 2 == 0 ? "" : "x"^10
    end
    found, _ = Muster.list(s, "many/") # more than one page
    @test length(found) == 2500 && issorted(first.(found)) && Dict(found)["many/7"] == "x"^10 && Dict(found)["many/8"] == ""
    @test_throws ArgumentError Muster.op(:nothing, "k")
    @test_throws ArgumentError Muster.op(:set, "k"; if_absent = true, if_present = true)
    @test status_of(() -> s["k"^9000] = "v") == LowLevel.MUSTER_E_LIMIT
end

case("waits", "who waits is woken, holds up nobody, and can be interrupted") do
    s = view(store, "waits/")
    waiting = [@async Muster.await(s, "late") for _ in 1:3]
    both = @async Muster.await(s, ["late", "later"])
    s["late"] = "here"
    @test fetch.(waiting) == ["here", "here", "here"]
    @test !istaskdone(both)
    s["later"] = ""
    wait(both)
    popping = @async Muster.dequeue!(s, "q")
    yield()
    Muster.enqueue!(s, "q", "v")
    @test fetch(popping) == "v"
    e = outcome(@async Muster.await(s, "never"; timeout = 0.05))
    @test e.status == LowLevel.MUSTER_TIMEOUT && occursin("get \"never\": absent after 0.0", e.message)
    meeting = [@async Muster.barrier(s, "b", rank, 3) for rank in 0:1]
    e = outcome(@async Muster.barrier(s, "alone", 1, 3; timeout = 0.05))
    @test occursin(r"0.*2", e.message)
    Muster.barrier(s, "b", 2, 3)
    foreach(wait, meeting)
    # Those that are interrupted wait no more at the server, either.
    interrupted = [@async Muster.await(s, "no such key $i") for i in 1:20]
    @test within(() -> Muster.stats(server).waiting == 20, 20)
    for task in interrupted
        schedule(task, InterruptException(); error = true)
    end
    @test all(task -> outcome(task) isa InterruptException, interrupted)
    @test within(() -> Muster.stats(server).waiting == 0, 20)
    # What comes after all goes to nobody, and is given back.
    late = @async Muster.dequeue!(s, "nobody's")
    yield()
    schedule(late, InterruptException(); error = true)
    @test outcome(late) isa InterruptException
    GC.gc()
    Muster.enqueue!(s, "nobody's", "v")
    @test Muster.dequeue!(s, "nobody's"; timeout = 20) == "v"
end

case("leases", "changes are seen, and what a killed process has leased goes at once") do
    s = view(store, "leases/")
    _, revision = Muster.list(s)
    watching = @async Muster.changes(s, "rank/", revision)
    own = Muster.lease(s, 600)
    @test Muster.set!(s, "rank/0", "me"; lease = own)
    changed, revision = fetch(watching)
    @test changed == ["rank/0" => "me"]
    close(own)
    changed, revision = Muster.changes(s, "rank/", revision; timeout = 20)
    @test changed == ["rank/0" => nothing]
    p = other("""s = view(Muster.Store(url), "leases/"); own = Muster.lease(s, 600; connected = true);
                 Muster.set!(s, "rank/1", "killed"; lease = own)""")
    changed, revision = Muster.changes(s, "rank/", revision; timeout = 60)
    @test changed == ["rank/1" => "killed"]
    begun = time()
    kill(p, 9)
    changed, revision = Muster.changes(s, "rank/", revision; timeout = 60)
    @test changed == ["rank/1" => nothing] && time() - begun < 20
end

case("serving", "a store that is not there is waited for without holding up other tasks") do
    ticks = Ref(0)
    timer = Timer(_ -> ticks[] += 1, 0.02; interval = 0.02)
    e = outcome(@async Muster.Store("tcp://127.0.0.1:1"; timeout = 1))
    close(timer)
    @test e isa MusterError && e.status == LowLevel.MUSTER_E_UNREACHABLE && occursin("127.0.0.1:1", e.message)
    @test ticks[] >= 10
    @test status_of(() -> Muster.Store("nothing://")) == LowLevel.MUSTER_E_NOT_FOUND
    mktempdir() do folder
        kept = Muster.StoreServer("unix://$folder/socket"; data_dir = "$folder/data")
        s = Muster.Store(Muster.address(kept))
        s["k"] = "kept"
        close(kept)
        again = Ref{Any}() # the old one may need a moment to end
        @test within(() -> try again[] = Muster.StoreServer("unix://$folder/socket"; data_dir = "$folder/data"); true catch; false end, 20)
        @test s["k"] == "kept" # the same client goes on
        close(again[])
        close(s)
        @test status_of(() -> s["k"]) == LowLevel.MUSTER_E_CLOSED
    end
end

member(run_id, place; min = 2, max = 2, options...) =
    Muster.rendezvous(store, run_id; min = min, max = max, address = place, options...)

# The next event of a kind; those before it are passed over.
function event(m, kind)
    while true
        e = Muster.next_event(m; timeout = 60)
        e === nothing && error("no event $kind")
        e.kind === kind && return e
    end
end

case("meeting", "two meet, and find each other and a store of their own") do
    members = [member("meeting", place) for place in ("here:1", "here:2")]
    rounds = fetch.([@async Muster.join_round(m) for m in members])
    @test sort([r.rank for r in rounds]) == [0, 1] && all(r -> r.world == 2 && r.number == 1, rounds)
    for (r, place) in zip(rounds, ("here:1", "here:2")), seen in rounds
        @test Muster.address(seen, r.rank) == place
    end
    rounds[1].store["port"] = "29500"
    @test Muster.await(rounds[2].store, "port") == "29500"
    leads(m) = Muster.state(m).flags & LowLevel.MUSTER_RENDEZVOUS_IS_LEADER != 0
    first, second = leads(members[1]) ? (1, 2) : (2, 1)
    Muster.leave(members[second])
    left = event(members[first], :left)
    @test left.rank == rounds[second].rank && left.round == 1
    rounds = fetch.([@async Muster.join_round(m) for m in members])
    @test all(r -> r.world == 2 && r.number == 2, rounds)
    going = @async Muster.exit_round(members[1])
    @test !within(() -> istaskdone(going), 0.1)
    Muster.exit_round(members[2])
    wait(going)
    e = outcome(@async Muster.join_round(members[2]; timeout = 0.1))
    @test e.status == LowLevel.MUSTER_TIMEOUT && occursin("1 of at least 2 are there", e.message)
    Muster.close_run(members[2], "all is done")
    @test occursin("all is done", event(members[1], :closed).text)
    e = outcome(@async Muster.join_round(members[1]))
    @test e.status == LowLevel.MUSTER_E_CLOSED && occursin("all is done", e.message)
    foreach(close, members)
    @test status_of(() -> Muster.join_round(members[1])) == LowLevel.MUSTER_E_CLOSED
    given = Muster.rendezvous("static:", "given"; min = 4, rank = 3)
    r = Muster.join_round(given)
    @test (r.rank, r.world, r.store) == (3, 4, nothing)
end

case("rounds", "a third one is seen waiting, and in the next round the store of the last is stale") do
    members = [member("rounds", "m$i"; min = 1, max = 3, last_call = 0.1) for i in 1:2]
    old = Muster.join_round(members[1])
    joining = @async Muster.join_round(members[2])
    @test event(members[1], :waiting).count == 1
    waiting = @async Muster.await(old.store, "never")
    yield()
    again = @async Muster.join_round(members[1])
    @test fetch(again).world == 2 && fetch(joining).world == 2 && fetch(again).number == old.number + 1
    @test fetch(again).rank == old.rank == 0
    @test outcome(waiting).status == LowLevel.MUSTER_E_STALE
    @test status_of(() -> old.store["k"] = "v") == LowLevel.MUSTER_E_STALE && Muster.is_over(old)
    Muster.abort_round(members[1], "try it again")
    @test occursin("try it again", event(members[2], :aborted).text)
    # One that waits for an event is woken when its member is closed.
    listening = @async (while Muster.next_event(members[2]) !== nothing; end)
    yield()
    close(members[2])
    @test within(() -> istaskdone(listening), 20)
    @test Muster.next_event(members[1]; timeout = 0) isa Union{Nothing, Muster.Event}
    close(members[1])
end

case("gone", "a killed member is told at once, and who goes on is the world") do
    m = member("gone", "here"; min = 1, max = 2, last_call = 600, keep_alive = 100)
    p = other("""m = Muster.rendezvous(url, "gone"; min = 1, max = 2, last_call = 600, keep_alive = 100, address = "there");
                 r = Muster.join_round(m); println(r.rank, '/', r.world); flush(stdout)""")
    r = Muster.join_round(m)
    @test r.world == 2 && readline(p.out) == "$(1 - r.rank)/2"
    kill(p, 9)
    begun = time()
    dead = event(m, :dead)
    @test dead.rank == 1 - r.rank && !isempty(dead.text) && time() - begun < 20
    close(m)
end

case("metrics", "what this process counts is a text, and is published until it is closed") do
    text = Muster.metrics()
    @test occursin("\nmuster_store_server_keys{object=\"1\",address=\"$url\"} ", text)
    m = Muster.Metrics(store; name = "julia", interval = 0.1)
    Muster.await(store, "muster/metrics/julia"; timeout = 20)
    @test occursin("# TYPE muster_streams gauge", store["muster/metrics/julia"])
    @test within(() -> Muster.state(m).published > 2, 20) && Muster.state(m).failed == 0
    close(m)
    @test within(() -> !haskey(store, "muster/metrics/julia"), 20)
    @test status_of(() -> Muster.Metrics(store; name = "a/b")) == LowLevel.MUSTER_E_ARG
end
