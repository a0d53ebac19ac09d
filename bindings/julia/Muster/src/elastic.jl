# SPDX-License-Identifier: MIT
# An elastic cluster: workers join and leave a running master at any time. They meet in a store. Master and workers publish
# their names and addresses there, with leases that end when they die; the master watches the store, dials each new worker,
# and makes it a worker of Julia's Distributed.

const MASTER_KEY = "master"
const WORKER_KEYS = "worker/"
const MAX_EVENTS = 1024 # that wait to be taken
const PEER_CLOSED = "the peer has closed the stream" # as muster_stream_reason() says it of a peer that ended in order

# The master's record of a worker; kept in WorkerConfig.userdata.
mutable struct Joiner
    key::String
    title::String
    address::String
    place::Place
    dir::String                            # its working directory; empty: unchanged
    id::Int                                # 0: it is not a worker yet
    task::Union{Nothing, Task}             # makes it one
    stream::Union{Nothing, MusterStream}
    joined::Bool
    gone::Bool
    why::String                            # it is gone
end
Joiner(key, card::Dict) =
    Joiner(key, card["title"], card["address"], Place(card), "", 0, nothing, nothing, false, false, "")
place_of(joiner::Joiner) = joiner.place

"""
    Muster.WorkerEvent

An event of an elastic manager, see [`Muster.next_event`](@ref). `kind` is `:joined`, `:left` (in order), `:died`, `:failed`
(to become a worker) or `:lost` (the store is lost: no worker can join any more); `id` is the id of the worker, or 0; `name`
its name; `text` the reason.
"""
struct WorkerEvent
    kind::Symbol
    id::Int
    name::String
    text::String
end

"""
    Muster.ElasticManager(url = "tcp://127.0.0.1:0"; run_id = "elastic", keep_alive = 15, kill_after = 10, addprocs_options...)

Makes this process the master of workers that join and leave at any time: each process that calls
[`Muster.start_elastic_worker`](@ref) with `Muster.address(manager)` becomes a worker, on any host that can reach this one.

    manager = Muster.ElasticManager("tcp://0.0.0.0:29400?advertise=node0")
    @async for event in manager
        event.kind === :joined && println("worker ", event.id, " is ", event.name)
    end

- `url`: the store in which master and workers meet. With `tcp://` and `unix://` this process serves a store at this address
  (`0.0.0.0`: at all addresses of this host); with `?host=no`, or another kind (`"etcd://host:2379/prefix"`), it uses an
  existing one.
- `run_id`: several clusters may meet in one store. Each has one master.
- `keep_alive`: seconds without a heartbeat after which a worker counts as dead; the death of a process is noticed at once.
- `kill_after`: seconds in which a removed worker can leave; then its connection is closed, and its process ends.
- `topology`, `lazy`, `dir`, `enable_threaded_blas`: as for `addprocs`.

Master and workers prove a secret to each other: `MUSTER_SECRET_FILE`, `MUSTER_SECRET`, or [`Muster.configure!`](@ref).
`rmprocs` removes a worker, as with other managers. [`Muster.next_event`](@ref), or a `for` loop over the manager, reports
workers that join and leave. After `close(manager)` no worker joins any more; those that have joined remain.
"""
mutable struct ElasticManager <: ClusterManager
    store::Store
    server::Union{Nothing, StoreServer}
    lease::Lease
    url::String
    run_id::String
    kill_after::Float64
    options::Dict{Symbol, Any}
    joiners::Dict{String, Joiner} # by key
    pending::Vector{Joiner}       # in the order they came
    batch::Vector{Joiner}         # those that are being made workers
    arrival::Condition
    events::Vector{WorkerEvent}
    changed::Condition
    watcher::Task
    open::Bool
    ElasticManager(store, server, lease, url, run_id, kill_after, options) = new(store, server, lease, url, run_id, kill_after,
        options, Dict(), [], [], Condition(), [], Condition(), current_task(), true)
end

function ElasticManager(url::AbstractString = "tcp://127.0.0.1:0"; run_id::AbstractString = "elastic", keep_alive::Real = 15,
                        kill_after::Real = 10, options...)
    myid() == 1 || error("an elastic manager is for a process that is no worker")
    need_secret(url)
    Distributed.init_multi() # makes the cookie
    serves = (startswith(url, "tcp://") || startswith(url, "unix://")) && !occursin("host=", url)
    server = serves ? StoreServer(url) : nothing
    known = server === nothing ? String(url) : address(server)
    store = meeting_place(known, run_id, Distributed.worker_timeout())
    own = lease(store, keep_alive; connected = true)
    claim = transact(store, op(:set, MASTER_KEY, card_text(place_card()); lease = own, if_absent = true))
    if !claim.done
        close(own)
        throw(ArgumentError("the run $(repr(run_id)) at $known has a master already"))
    end
    m = ElasticManager(store, server, own, known, run_id, kill_after, Dict{Symbol, Any}(options))
    m.watcher = @async watch_workers(m)
    @async take_in(m)
    return m
end

function need_secret(url)
    secret_is_given() || occursin("auth=none", url) || throw(ArgumentError("master and workers have to know a secret: " *
        "MUSTER_SECRET_FILE, MUSTER_SECRET or Muster.configure!(secret = ...) gives one"))
end

meeting_place(url, run_id, timeout) = view(Store(url; timeout = timeout), "muster/elastic/$run_id/")

card_text(card::Dict{String, String}) = (text = IOBuffer(); write_job(text, card); String(take!(text)))

"The URL for workers, see [`Muster.start_elastic_worker`](@ref)."
address(m::ElasticManager) = m.url
Base.isopen(m::ElasticManager) = m.open
Base.show(io::IO, m::ElasticManager) = print(io, "Muster.ElasticManager(", m.url, m.open ? "" : ", closed", ")")

function Base.close(m::ElasticManager)
    m.open || return nothing
    m.open = false
    m.watcher.queue === nothing || schedule(m.watcher, InterruptException(); error = true)
    notify(m.arrival)
    notify(m.changed)
    close(m.lease)
    m.server === nothing || close(m.server)
    return nothing
end

## Events

function add_event(m::ElasticManager, kind, joiner::Joiner, why = joiner.why)
    push_event(m, WorkerEvent(kind, joiner.id, joiner.title, why))
end

function push_event(m::ElasticManager, event::WorkerEvent)
    length(m.events) < MAX_EVENTS || popfirst!(m.events)
    push!(m.events, event)
    notify(m.changed)
    return nothing
end

function next_event(m::ElasticManager; timeout::Real = Inf)
    late = Ref(timeout <= 0)
    timer = isfinite(timeout) && !late[] ? Timer(_ -> (late[] = true; notify(m.changed)), timeout) : nothing
    while isempty(m.events) && m.open && !late[]
        wait(m.changed)
    end
    timer === nothing || close(timer)
    return isempty(m.events) ? nothing : popfirst!(m.events)
end

Base.IteratorSize(::Type{ElasticManager}) = Base.SizeUnknown()
Base.eltype(::Type{ElasticManager}) = WorkerEvent
Base.iterate(m::ElasticManager, _ = nothing) = (event = next_event(m); event === nothing ? nothing : (event, nothing))

## Who is there

function watch_workers(m::ElasticManager)
    revision = nothing
    while m.open
        try
            revision = revision === nothing ? see_all(m) : see_changes(m, revision)
        catch problem
            m.open || return nothing
            problem isa MusterError || rethrow()
            # Stale: more has happened than the store remembers.
            problem.status == LowLevel.MUSTER_E_STALE || return push_event(m, WorkerEvent(:lost, 0, m.url, problem.message))
            revision = nothing
        end
    end
    return nothing
end

function see_changes(m::ElasticManager, revision)
    changed, revision = changes(m.store, WORKER_KEYS, revision)
    for (key, card) in changed
        card === nothing ? departed(m, key) : arrived(m, key, card)
    end
    return revision
end

function see_all(m::ElasticManager)
    found, revision = list(m.store, WORKER_KEYS)
    there = Dict(found)
    foreach(key -> haskey(there, key) || departed(m, key), collect(keys(m.joiners)))
    foreach(((key, card),) -> arrived(m, key, card), found)
    return revision
end

function arrived(m::ElasticManager, key, text)
    haskey(m.joiners, key) && return nothing
    joiner = try
        Joiner(key, read_job(IOBuffer(text)))
    catch problem # another version wrote it
        return push_event(m, WorkerEvent(:failed, 0, key, sprint(showerror, problem)))
    end
    m.joiners[key] = joiner
    push!(m.pending, joiner)
    notify(m.arrival)
    return nothing
end

# What it wrote down is gone. Mostly its stream has ended before that; a worker that hangs is cut off here.
function departed(m::ElasticManager, key)
    joiner = pop!(m.joiners, key, nothing)
    (joiner === nothing || joiner.gone) && return nothing
    joiner.why = "its heartbeats have stopped"
    if joiner.stream !== nothing
        cut_off(joiner, joiner.why)
    elseif joiner.task !== nothing
        give_up(joiner)
    else
        joiner.gone = true
        filter!(other -> other !== joiner, m.pending)
    end
    return nothing
end

cut_off(joiner::Joiner, why::String) =
    with_handle(h -> LowLevel.muster_stream_abort(h, 0, why, sizeof(why)), joiner.stream)

# The task that makes it a worker waits for it in vain; Distributed would let it wait for JULIA_WORKER_TIMEOUT.
function give_up(joiner::Joiner)
    task = joiner.task
    joiner.gone = true
    task === nothing || task.queue === nothing || schedule(task, Distributed.ProcessExitedException(joiner.id); error = true)
    return nothing
end

## Making them workers

function take_in(m::ElasticManager)
    while true
        while isempty(m.pending)
            m.open || return nothing
            wait(m.arrival)
        end
        why = ""
        try
            addprocs(m; m.options...)
        catch problem
            why = sprint(showerror, problem)
            isempty(m.batch) && take_pending(m) # it was over before it began
            introduce_all()
        end
        foreach(joiner -> taken_in(m, joiner, why), m.batch)
        empty!(m.batch)
    end
end

function taken_in(m::ElasticManager, joiner::Joiner, why)
    joiner.joined = is_worker(joiner)
    joiner.joined && return add_event(m, :joined, joiner)
    isempty(joiner.why) && (joiner.why = why)
    forget_joiner(m, joiner)
    return add_event(m, :failed, joiner)
end

is_worker(joiner::Joiner) = !joiner.gone && joiner.id in workers()

# addprocs omits this when one of its workers fails: all others are notified of each other.
function introduce_all()
    all = workers()
    foreach(pid -> Distributed.remote_do(Distributed.set_valid_processes, pid, all), filter(!isequal(1), all))
    return nothing
end

function Distributed.launch(m::ElasticManager, params::Dict, launched::Array, changed::Condition)
    dir = string(get(params, :dir, ""))
    for joiner in take_pending(m)
        joiner.dir = dir == pwd() ? "" : abspath(dir)
        config = WorkerConfig()
        config.userdata = joiner
        config.enable_threaded_blas = get(params, :enable_threaded_blas, false)
        tell_place!(config, joiner.place)
        push!(launched, config)
    end
    notify(changed)
    return nothing
end

function take_pending(m::ElasticManager)
    append!(m.batch, m.pending)
    empty!(m.pending)
    return m.batch
end

function Distributed.connect(m::ElasticManager, pid::Int, config::WorkerConfig)
    joiner = config.userdata::Joiner # (workers have a MusterManager, which dials what is in connect_at)
    joiner.id = pid
    joiner.gone && error(joiner.why)
    joiner.task = current_task()
    hello = join([MASTER_HELLO, strip(Distributed.cluster_cookie()), joiner.dir], '\n')
    try
        joiner.stream = dial_worker(joiner.address, hello)
    catch problem
        isempty(joiner.why) && (joiner.why = sprint(showerror, problem))
        rethrow()
    end
    config.connect_at = joiner.address
    return both_ways(joiner.stream, pid)
end

function Distributed.manage(m::ElasticManager, id::Integer, config::WorkerConfig, op::Symbol)
    joiner = config.userdata::Joiner
    if op === :interrupt
        interrupt_at(id, joiner.place)
    elseif op === :deregister && !joiner.gone
        text = reason(joiner.stream)
        # It may be known that nothing more comes, and not yet that the peer has closed.
        in_order = joiner.stream.ended && (isempty(text) || occursin(PEER_CLOSED, text))
        isempty(joiner.why) && (joiner.why = in_order ? PEER_CLOSED : text)
        give_up(joiner)
        forget_joiner(m, joiner)
        joiner.joined && add_event(m, in_order ? :left : :died, joiner)
    end
    return nothing
end

# What it wrote down is taken away, too, if it has not been so far.
function forget_joiner(m::ElasticManager, joiner::Joiner)
    joiner.gone = true
    pop!(m.joiners, joiner.key, nothing) === nothing && return nothing
    @async try
        delete!(m.store, joiner.key)
    catch problem
        problem isa MusterError || rethrow() # the store is gone; the lease ends by itself
    end
    return nothing
end

# Asks the worker to leave; one that does not is cut off, and ends by that.
function Distributed.kill(m::ElasticManager, pid::Int, config::WorkerConfig)
    joiner = config.userdata::Joiner
    joiner.stream === nothing && return nothing
    try
        Distributed.remote_do(exit, pid)
    catch problem
        problem isa InterruptException && rethrow() # it is gone
    end
    Timer(m.kill_after) do _
        joiner.gone || cut_off(joiner, "removed, and did not leave")
    end
    return nothing
end

## The workers

const elastic_lease = Ref{Union{Nothing, Lease}}(nothing)

"""
    Muster.start_elastic_worker(url; run_id = "elastic", name, listen, keep_alive = 15, timeout = JULIA_WORKER_TIMEOUT)

Makes this process a worker of the master that meets it at `url`, see [`Muster.ElasticManager`](@ref); does not return:

    MUSTER_SECRET_FILE=job.secret julia -e 'using Muster; Muster.start_elastic_worker("tcp://node0:29400")'

The process ends with its master. It waits for a master: `timeout` seconds for the store, and endlessly for the master if that
does not serve the store.

- `name`: its name in events; default `host:pid`.
- `listen`: the address at which the master and other workers connect to it. Default: `"tcp://auto:0"`, any port at the
  address of the name of this host; on the loopback interface if `url` is on it.
- `keep_alive`: seconds without a heartbeat after which it counts as dead.
"""
function start_elastic_worker(url::AbstractString; run_id::AbstractString = "elastic",
                              name::AbstractString = "$(gethostname()):$(getpid())",
                              listen::AbstractString = is_loopback(url) ? "tcp://127.0.0.1:0" : "tcp://auto:0",
                              keep_alive::Real = 15, timeout::Real = Distributed.worker_timeout())
    need_secret(url)
    isdefined(Main, :Distributed) || Core.eval(Main, :(const Distributed = $Distributed; using .Distributed)) # as on every worker
    Base.exit_on_sigint(false) # as a script it would end, but an interrupt is meant for what is computed
    Distributed.init_worker(Random.randstring(Distributed.HDR_COOKIE_LEN), MusterManager()) # replaced by that of the master
    store = meeting_place(url, run_id, timeout)
    place = listening_address(listen)
    listener = listen_at(place, 0, 0.0)
    card = merge(place_card(), Dict("title" => String(name), "address" => dialled_at(address(listener), place)))
    Distributed.LPROC.bind_addr = card["ip"]
    @async serve_connections(listener)
    elastic_lease[] = lease(store, keep_alive; connected = true)
    transact(store, op(:set, WORKER_KEYS * Random.randstring(16), card_text(card); lease = elastic_lease[]))
    @async await_master(store)
    wait_for_ever()
end

is_loopback(url) = startswith(url, "unix://") || match(r"://(127\.|localhost[:/?]|\[::1\])", url) !== nothing

# A worker that no master accepts has to end by itself; the others end with the stream to their master.
function await_master(store::Store)
    try
        await(store, MASTER_KEY)
        Timer(Distributed.worker_timeout()) do _
            no_master("there is a master, and it has not made this process a worker within $(Distributed.worker_timeout()) s " *
                      "(JULIA_WORKER_TIMEOUT)")
        end
        found, revision = list(store, MASTER_KEY)
        while !isempty(found)
            changes(store, MASTER_KEY, revision)
            found, revision = list(store, MASTER_KEY)
        end
        no_master("the master is gone")
    catch problem
        no_master(sprint(showerror, problem))
    end
end

function no_master(why)
    master_stream[] === nothing || return nothing
    println(stderr, "elastic worker $(getpid()): $why")
    exit(1)
end

# At exit: removes the record of a worker that no master has accepted. (The master of the others sees their streams end.)
function leave_elastic()
    master_stream[] === nothing && elastic_lease[] !== nothing && close(elastic_lease[])
    elastic_lease[] = nothing
    return nothing
end
