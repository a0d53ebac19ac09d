# SPDX-License-Identifier: MIT
# Workers that join and leave a running master at will; whatever becomes of one of them, the others go on.
#   julia test_elastic.jl [case]...           without a name, all of them
# cases: come stubborn hangs strange early orphans refused
# (With the argument "master" it is the master that is killed.)
using Test, Distributed, Muster
include("helpers.jl")

const chosen = isempty(ARGS) ? split("come stubborn hangs strange early orphans refused") : copy(ARGS)
empty!(ARGS)
case(f, name, text) = name in chosen ? (@testset "elastic: $text" begin Base.invokelatest(f) end) : nothing

if chosen == ["master"]
    m = Muster.ElasticManager()
    println(Muster.address(m))
    flush(stdout)
    id = Muster.next_event(m).id
    remote_do(() -> (while true; end), id) # never yields
    println(id)
    flush(stdout)
    wait(Condition())
end

const secret = "a secret of this test, of $(rand(UInt128))"
Muster.configure!(secret = secret)

# A process of its own, and what it says to the end.
struct Started
    process::Base.Process
    said::Task
end
ended(worker::Started) = process_exited(worker.process)

# One that calls itself `name`.
function start(url, name; secret = secret, options = "")
    program = "using Muster; Muster.start_elastic_worker($(repr(url)); name = $(repr(name)) $options)"
    command = setenv(`setpriv --pdeathsig KILL $(Base.julia_cmd()) --startup-file=no -e $program`,
        merge(Dict(ENV), Dict("MUSTER_SECRET" => secret)))
    output = Pipe()
    process = run(pipeline(command, stdout = output, stderr = output), wait = false)
    close(output.in)
    return Started(process, @async read(output, String))
end

# The next event, which has to be of this kind.
function event_of(m, kind)
    event = Muster.next_event(m; timeout = 120)
    event !== nothing && event.kind === kind && return event
    error("not $kind, but $event")
end
gone(id) = !(id in workers())

case("come", "workers come to a running master, are used, die and leave") do
    m = Muster.ElasticManager()
    processes = Dict(name => start(Muster.address(m), name) for name in ("a", "b"))
    ids = Dict(e.name => e.id for e in (event_of(m, :joined), event_of(m, :joined)))
    @test sort(collect(keys(ids))) == ["a", "b"] && sort(collect(values(ids))) == sort(workers())
    @test remotecall_fetch(getpid, ids["a"]) == getpid(processes["a"].process)
    @test sort(pmap(x -> 2x, 1:20)) == 2:2:40
    @test relayed(ids["a"], ids["b"]) == ids["b"]
    # A late one is known to those before it.
    processes["c"] = start(Muster.address(m), "c")
    ids["c"] = event_of(m, :joined).id
    @test relayed(ids["a"], ids["c"]) == ids["c"] && relayed(ids["c"], ids["b"]) == ids["b"]
    # Killed while it computes.
    computing = occupy(() -> (while true; end), ids["a"])
    begun = time()
    kill(processes["a"].process, 9)
    died = event_of(m, :died)
    @test (died.id, died.name) == (ids["a"], "a") && !isempty(died.text) && time() - begun < 5
    @test gone(ids["a"]) && outcome(computing) isa ProcessExitedException
    @test sort(pmap(x -> 2x, 1:20)) == 2:2:40
    # Interrupts reach those that nobody here has started.
    computing = occupy(() -> (x = 0.0; while true; x += sum(rand(100)); end), ids["b"])
    interrupt(ids["b"])
    @test within(() -> istaskdone(computing), 20) && outcome(computing) isa InterruptException
    rmprocs(ids["b"])
    @test event_of(m, :left).id == ids["b"]
    remote_do(exit, ids["c"])
    @test event_of(m, :left).id == ids["c"]
    @test within(() -> all(ended, values(processes)), 20)
    @test nprocs() == 1
    close(m)
    @test Muster.next_event(m) === nothing && !isopen(m)
end

case("stubborn", "one that computes and does not leave is cut off, and ends") do
    m = Muster.ElasticManager(kill_after = 0.5)
    worker = start(Muster.address(m), "stubborn")
    id = event_of(m, :joined).id
    occupy(() -> (while true; end), id)
    rmprocs(id)
    @test gone(id) && event_of(m, :died).id == id
    @test within(() -> ended(worker), 20)
    close(m)
end

case("hangs", "one that hangs is done without after its keep-alive, and ends when it goes on") do
    m = Muster.ElasticManager()
    worker = start(Muster.address(m), "hangs"; options = ", keep_alive = 0.5")
    id = event_of(m, :joined).id
    run(`kill -STOP $(getpid(worker.process))`)
    waiting = @async remotecall_fetch(myid, id)
    @test occursin("its heartbeats have stopped", event_of(m, :died).text)
    @test gone(id) && outcome(waiting) isa ProcessExitedException
    run(`kill -CONT $(getpid(worker.process))`)
    @test within(() -> ended(worker), 20)
    close(m)
end

# What a worker writes down, here in its place.
function write_card(m, key, address; options...)
    card = merge(Muster.place_card(), Dict("title" => key, "address" => address))
    Muster.set!(m.store, Muster.WORKER_KEYS * key, Muster.card_text(card); options...)
end

case("strange", "what cannot be made a worker is told, and holds up nobody") do
    m = Muster.ElasticManager()
    m.store[Muster.WORKER_KEYS * "garbage"] = "\0\1"
    @test event_of(m, :failed).name == Muster.WORKER_KEYS * "garbage"
    write_card(m, "nobody", "tcp://127.0.0.1:1")
    failed = event_of(m, :failed)
    @test failed.name == "nobody" && occursin("127.0.0.1:1", failed.text)
    @test within(() -> !haskey(m.store, Muster.WORKER_KEYS * "nobody"), 20)
    # Takes the call, and says nothing; dies before it is a worker.
    listener = Muster.listen("tcp://127.0.0.1:0")
    own = Muster.lease(m.store, 600)
    write_card(m, "silent", Muster.address(listener); lease = own)
    stream = Muster.Sockets.accept(listener)
    begun = time()
    close(own)
    failed = event_of(m, :failed)
    @test failed.name == "silent" && occursin("its heartbeats have stopped", failed.text) && time() - begun < 20
    # The same, and its connection ends.
    write_card(m, "short", Muster.address(listener))
    stream = Muster.Sockets.accept(listener)
    Muster.abort(stream, 0, "no more")
    failed = event_of(m, :failed)
    @test failed.name == "short" && occursin("no more", failed.text)
    @test nprocs() == 1
    close(m)
end

case("early", "workers may come before their master; a store has one master for a run") do
    server = Muster.StoreServer()
    url = Muster.address(server)
    worker = start(url, "early")
    store = Muster.Store(url)
    while isempty(keys(store, "muster/elastic/elastic/worker/"))
        Muster.changes(store, "muster/elastic/elastic/worker/", 0; timeout = 60)
    end
    m = Muster.ElasticManager(url * "?host=no")
    @test_throws ArgumentError Muster.ElasticManager(url * "?host=no")
    other = Muster.ElasticManager(url * "?host=no"; run_id = "another")
    id = event_of(m, :joined).id
    @test remotecall_fetch(+, id, 1, 2) == 3
    # Those who are there stay when nobody is let in any more, and when the store is gone.
    close(other)
    close(server)
    @test event_of(m, :lost).id == 0
    @test remotecall_fetch(+, id, 1, 2) == 3
    rmprocs(id)
    @test event_of(m, :left).id == id
    close(m)
    @test within(() -> ended(worker), 20)
end

case("orphans", "workers end with their master, also one that computes, and one that waits for it") do
    master = open(setenv(`setpriv --pdeathsig KILL $(Base.julia_cmd()) --startup-file=no $(abspath(PROGRAM_FILE)) master`,
        merge(Dict(ENV), Dict("MUSTER_SECRET" => secret))), "r+")
    url = readline(master.out)
    computing = start(url, "computes")
    @test readline(master.out) == "2"
    waiting = start(url, "waits"; options = ", run_id = \"no master\"")
    store = Muster.Store(url)
    while isempty(keys(store, "muster/elastic/no master/worker/"))
        Muster.changes(store, "muster/elastic/no master/worker/", 0; timeout = 60)
    end
    kill(master, 9)
    @test within(() -> ended(computing) && ended(waiting), 20)
    @test waiting.process.exitcode == 1 && occursin("elastic worker", fetch(waiting.said))
end

case("refused", "nobody gets in without the secret") do
    m = Muster.ElasticManager()
    worker = start(Muster.address(m), "stranger"; secret = "not the one, but long enough", options = ", timeout = 5")
    @test occursin("MUSTER_E_AUTH", fetch(worker.said)) && within(() -> ended(worker), 20)
    none = "import Muster; try Muster.ElasticManager() catch e; print(e) end"
    said = readchomp(setenv(`$(Base.julia_cmd()) --startup-file=no -e $none`, filter(p -> !startswith(p[1], "MUSTER_SECRET"), ENV)))
    @test occursin("have to know a secret", said)
    @test nprocs() == 1
    close(m)
end
