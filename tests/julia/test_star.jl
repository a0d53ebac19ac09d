# SPDX-License-Identifier: MIT
# What a star has to stand: names that begin alike, workers that compute, deaths of masters and brokers, late brokers. Both
# with links that move to shared memory (introduced) and with every byte through the broker (upgrade=no).
#   julia test_star.jl [case]...             without a name, all of them
# cases: names array eleven busy later master_killed broker_killed slow missing
# (With the argument "master" it is the master that is killed.)
using Test, Distributed, Muster, Sockets
include("helpers.jl")

const flags = `--startup-file=no`
const cases = "names array eleven busy later master_killed broker_killed slow missing"
const chosen = isempty(ARGS) ? split(cases) : copy(ARGS)
empty!(ARGS)
case(f, name, text) = name in chosen ? (@testset "star: $text" begin Base.invokelatest(f) end) : nothing

add(n, transport; upgrade = true, options...) =
    addprocs(MusterManager(n; transport = transport, upgrade = upgrade); exeflags = flags, options...)
remove(w) = (left = intersect(w, workers()); isempty(left) || rmprocs(left))

if chosen == ["master"]
    w = add(2, ENV["STAR_TRANSPORT"]; upgrade = ENV["STAR_UPGRADE"] == "yes")
    relayed(w[1], w[2])
    occupy(() -> (while true; end), w[1]) # never yields
    println(join(process_of.(w), ' '))
    flush(stdout)
    read(stdin)
    exit(1)
end

const secret = "a secret of this test, of $(rand(UInt128))"
Muster.configure!(secret = secret)

# A broker in a process of its own, at an address of its own or at the one given.
struct BrokerProcess
    process::Base.Process
    address::String
end
function start_broker(address = "zmq://127.0.0.1:0/"; secret = secret)
    muster = joinpath(dirname(Muster.library()), "bin", "muster")
    command = `setpriv --pdeathsig KILL $muster broker --listen $address --log warn`
    process = open(setenv(command, merge(Dict(ENV), Dict("MUSTER_SECRET" => secret))), "r+")
    said = readline(process.out)
    startswith(said, "listening ") || error("no broker: $said")
    return BrokerProcess(process, said[11:end])
end
function stop(b::BrokerProcess)
    kill(b.process, 9)
    wait(b.process)
end
function free_port()
    port, server = listenany(Sockets.localhost, 20000 + getpid() % 10000)
    close(server)
    return Int(port)
end

# n workers with the numbers from `first` on as their names.
function add_named(first, n)
    Muster.launches[] = first - 1
    return add(n, "zmq://{}@127.0.0.1:0/"; upgrade = false)
end
names_of(w) = [match(r"^zmq://(\d+)@", Distributed.worker_from_id(p).config.connect_at).captures[1] for p in w]

function check_names(w)
    @everywhere const got = Tuple{Int, Int}[] # from whom, which one
    @everywhere note(from, i) = (push!(got, (from, i)); nothing)
    @everywhere told() = got
    sent = 200
    for i in 1:sent, p in w
        remote_do(note, p, p, i)
    end
    @test all(p -> remotecall_fetch(told, p) == [(p, i) for i in 1:sent], w)
    # Workers among themselves: each to every other one.
    @sync for p in w
        @async remotecall_fetch(p, w) do w
            @sync for q in w
                q == myid() || @async remotecall_wait(note, q, q, -myid())
            end
        end
    end
    for p in w
        from_workers = remotecall_fetch(told, p)[sent + 1:end]
        @test sort(from_workers) == sort([(p, -q) for q in w if q != p])
    end
    rmprocs(w)
end

case("names", "1, 10 and 11 are three workers, and each gets its own messages only") do
    w = [add_named(1, 1); add_named(10, 2)]
    @test sort(names_of(w)) == ["1", "10", "11"]
    check_names(w)
end

case("eleven", "11 workers, each gets its own messages only") do
    w = add_named(1, 11)
    @test sort(parse.(Int, names_of(w))) == 1:11
    check_names(w)
end

case("array", "one array to all workers goes to the broker once, whatever becomes of one of them") do
    w = add(4, "zmq"; upgrade = false)
    star = first(values(Muster.own_brokers))
    array = rand(3 * 10^6)
    sums() = [@async remotecall_fetch(sum, p, array) for p in w]
    before = Muster.stats(star).multicasts
    @test all(task -> fetch(task) == sum(array), sums())
    @test within(() -> Muster.stats(star).multicasts - before >= sizeof(array) / 2^18, 10)
    # Different arrays, and more than one at a time.
    tasks = [@async remotecall_fetch(sum, p, a) for a in (array, 2array, 3array) for p in w]
    @test fetch.(tasks) == [sum(a) for a in (array, 2array, 3array) for p in w]
    # One is stopped: the others are not kept waiting for it. Then it dies.
    ospid = process_of(w[1])
    stop_process(ospid)
    tasks = sums()
    @test within(() -> all(istaskdone, tasks[2:end]), 30)
    @test all(task -> fetch(task) == sum(array), tasks[2:end])
    run(`kill -KILL $ospid`)
    @test within(() -> istaskdone(tasks[1]), 20)
    @test outcome(tasks[1]) isa ProcessExitedException # the call was in the middle of its message
    remove(w)
end

case("busy", "no call is lost or overtaken while the worker computes for 5 s") do
    w = [add(1, "zmq"; upgrade = false); add(1, "zmq")]
    @everywhere const order = Int[]
    @everywhere in_turn(i) = (push!(order, i); nothing)
    @everywhere seen() = order
    n = 50_000
    foreach(p -> remotecall_fetch(() -> (in_turn(0); empty!(order)), p), w)
    computing = [occupy(() -> (t = time(); while time() - t < 5; end), p) for p in w]
    @sync for p in w
        @async for i in 1:n
            remote_do(in_turn, p, i)
            yield() # one message each
        end
    end
    foreach(wait, computing)
    for p in w
        @test remotecall_fetch(seen, p) == 1:n
    end
    rmprocs(w)
end

case("later", "workers join later and leave, around one broker") do
    before = length(Muster.own_brokers)
    w = add(2, "zmq"; upgrade = false)
    ospids = process_of.(w)
    @test relayed(w[1], w[2]) == w[2]
    append!(w, add(1, "zmq"; upgrade = false))
    append!(w, add(1, "zmq")) # one that may use shared memory, among those that may not
    @test length(Muster.own_brokers) == max(1, before)
    star = first(values(Muster.own_brokers))
    @test Muster.stats(star).members == 5
    @test all(relayed(p, q) == q for p in w for q in w if p != q)
    rmprocs(w[1])
    @test within(() -> !alive(ospids[1]), 10)
    @test within(() -> Muster.stats(star).members == 4, 10)
    append!(w, add(1, "zmq"))
    @test relayed(w[2], w[end]) == w[end] && relayed(w[end], w[2]) == w[2]
    # An interrupt reaches a worker in the star that computes.
    computing = occupy(() -> (x = 0.0; while true; x += sum(rand(100)); end), w[3])
    interrupt(w[3])
    @test within(() -> istaskdone(computing), 10)
    @test outcome(computing) isa InterruptException
    removing = @async remove(w)
    @test within(() -> istaskdone(removing), 20)
    @test within(() -> Muster.stats(star).members == 1, 10)
    @test Muster.stats(star).refused == 0
end

case("master_killed", "workers do not outlive a killed master") do
    b = start_broker()
    # The broker dies with the master, or stays.
    masters = map((("zmq", "no"), (b.address, "no"), (b.address, "yes"))) do (transport, upgrade)
        set = Dict("STAR_TRANSPORT" => transport, "STAR_UPGRADE" => upgrade, "MUSTER_SECRET" => secret)
        open(setenv(`$(Base.julia_cmd()) --startup-file=no $(abspath(PROGRAM_FILE)) master`, merge(Dict(ENV), set)), "r+")
    end
    for master in masters
        pids = parse.(Int, split(readline(master.out)))
        @test length(pids) == 2 && all(alive, pids)
        kill(master, 9)
        @test within(() -> !any(alive, pids), 5)
        foreach(pid -> alive(pid) && run(ignorestatus(`kill -9 $pid`)), pids)
    end
    stop(b)
end

case("broker_killed", "the death of the broker is noticed at once by both sides") do
    b = start_broker()
    w = add(2, b.address; upgrade = false)
    ospids = process_of.(w)
    @test relayed(w[1], w[2]) == w[2]
    waiting = @async remotecall_fetch(() -> wait(Condition()), w[1])
    future = remotecall(() -> wait(Condition()), w[1])
    computing = occupy(() -> (while true; end), w[2])
    stop(b)
    for task in (waiting, computing)
        @test within(() -> istaskdone(task), 10)
        @test outcome(task) isa ProcessExitedException
    end
    @test outcome(future) isa ProcessExitedException
    @test within(() -> !any(alive, ospids), 10)
    removing = @async remove(w)
    @test within(() -> istaskdone(removing), 10)
    @test within(() -> nprocs() == 1, 10)
    # With another broker everything begins anew.
    b = start_broker()
    w = add(1, b.address; upgrade = false)
    @test remotecall_fetch(+, w[1], 1, 2) == 3
    rmprocs(w)
    stop(b)
end

case("broker_killed", "links in shared memory outlive the broker, and new ones are made around the next") do
    b = start_broker()
    w = add(2, b.address)
    ospids = process_of.(w)
    @test relayed(w[1], w[2]) == w[2]
    stop(b)
    @test remotecall_fetch(sum, w[1], ones(10^6)) == 10^6
    @test relayed(w[1], w[2]) == w[2] && relayed(w[2], w[1]) == w[1]
    b = start_broker(b.address)
    append!(w, add(1, b.address))
    @test relayed(w[3], w[1]) == w[1] && relayed(w[2], w[3]) == w[3]
    stop(b)
    removing = @async remove(w)
    @test within(() -> istaskdone(removing), 20)
    @test within(() -> !any(alive, ospids), 10)
    @test nprocs() == 1
end

case("slow", "masters and workers wait for a broker that comes late") do
    address = "zmq://127.0.0.1:$(free_port())/"
    adding = @async add(1, address)
    # A worker of its own, that finds no broker either.
    worker = open(`$(Base.julia_cmd()) --startup-file=no -e "import Muster; Muster.serve()"`, "r+")
    Muster.write_job(worker.in, Dict("cookie" => "c", "secret" => bytes2hex(codeunits(secret)), "upgrade" => "yes",
        "window" => "0", "setup" => "", "listen" => replace(address, "//" => "//early@")))
    b = start_broker(address)
    @test readline(worker.out) == "muster_worker:" * replace(address[1:end-1], "//" => "//early@")
    @test within(() -> istaskdone(adding), 60)
    w = fetch(adding)
    @test remotecall_fetch(+, w[1], 1, 2) == 3
    kill(worker, 9)
    rmprocs(w)
    stop(b)
    withenv("JULIA_WORKER_TIMEOUT" => "2") do # one that never comes
        e = outcome(@async add(1, address))
        @test e isa MusterError && occursin(match(r"//(.*)/", address).captures[1], e.message)
    end
    @test nprocs() == 1
end

case("missing", "what is missing or wrong is said in the library's words") do
    function said(variables, call)
        program = "using Distributed, Muster; try $call; println(:fine) catch e; println(sprint(showerror, e)) end"
        return readchomp(setenv(`$(Base.julia_cmd()) --startup-file=no -e $program`, merge(Dict(ENV), Dict(variables))))
    end
    if !isfile("/usr/local/lib/muster/0/muster-zmq.so") # where it is found in the end, if Muster is installed
        nowhere = said(("MUSTER_PLUGIN_PATH" => "/nowhere",), "addprocs(MusterManager(1; transport = \"zmq\"))")
        @test occursin("its plug-in, which needs package libzmq5 (to build it, libzmq3-dev), is not installed", nowhere)
        @test occursin("MUSTER_E_PLUGIN", nowhere)
    end
    mktempdir() do folder
        write(joinpath(folder, "muster-zmq.so"), "not a library")
        broken = said(("MUSTER_PLUGIN_PATH" => folder,), "addprocs(MusterManager(1; transport = \"zmq://127.0.0.1:8100/\"))")
        @test occursin("load plug-in $(realpath(folder))/muster-zmq.so", broken)
    end
    # Somebody else's broker.
    b = start_broker(; secret = "another secret, of somebody else")
    e = outcome(@async add(1, b.address))
    @test e isa MusterError && e.status == Muster.LowLevel.MUSTER_E_AUTH
    @test occursin("another secret", e.message)
    stop(b)
    for transport in ("zmq://", "zmq://name@host:1/", "zmq:/x", "zmqq")
        @test_throws ArgumentError MusterManager(1; transport = transport)
    end
    @test_throws ArgumentError MusterManager(["node1"]; transport = "zmq")
    @test nprocs() == 1
end
