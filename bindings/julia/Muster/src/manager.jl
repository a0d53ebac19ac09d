# SPDX-License-Identifier: MIT
# MusterManager: launch, connect, manage and kill workers of Julia's Distributed over Muster's transports.

"""
    MusterManager(count; transport = "shm", ...)        workers on this host
    MusterManager(machines; transport = "tcp", ...)     workers on other hosts, by ssh

For `addprocs`: `addprocs(MusterManager(4; transport = "shm"))`.

- `transport`: `"shm"` (shared memory), `"unix"` (Unix-domain sockets), `"tcp"`, `"zmq"` (a star, see below), or an
  address with `{}` in place of the worker's number, `"mine://{}"`.
- `mpiexec`: `true`, or the command with options of its own (`` `mpiexec --hostfile hosts` ``): starts the workers as the
  ranks of one MPI job, which may use MPI among themselves; this process stays outside. Their default transport is tcp.
- `upgrade`: may tcp and zmq links between processes of one host move to shared memory (default `true`).
- `window`: bytes buffered per direction of a link, a power of two (default 1 MiB).
- `setup`: Julia code as text, run on a worker before it listens: `include` of a file that serves a transport of its own,
  see [`Muster.transport!`](@ref).
- `kill_after`: seconds in which a removed worker can leave before it is killed (default 10).
- `ident`, `connect_idents`: functions of a worker's number, for `topology = :custom`.

`machines` is a vector of machine specifications as for `addprocs(machines)`: `"[user@]host[:port] [bind_addr[:port]]"`, or
a tuple of one and a count (`:auto`: one per CPU thread there).

`addprocs` takes the usual keywords with it: `dir`, `exename`, `exeflags`, `topology`, `lazy`, `enable_threaded_blas`,
`env` (pairs of names and values for the worker's environment); and for machines `sshflags`, `tunnel`, `multiplex`,
`max_parallel`, `shell_command` (default `sh -l -c`).

In a star all processes dial the broker alone, and all streams are forwarded by it; those between processes of one user on one
host move to shared memory unless `upgrade = false`. With `transport = "zmq"` this process runs the broker, on the loopback
interface; `"zmq://node0:0/"` runs it at another address of this host, at any port, for workers on other hosts; and
`"zmq://node0:8100/"` uses the broker that runs at this address: `muster broker`, or [`Muster.broker`](@ref), with the same
secret. Master and workers wait up to `JULIA_WORKER_TIMEOUT` for it. Options follow the address:
`"zmq://node0:8100/?curve=no"` for a broker that does not encrypt. `"zmq://calc-{}@node0:8100/"` chooses the names of
the workers in the star.

A worker receives the secret and the cookie over its standard input. A worker ends when its master has ended, also while it
computes.
"""
struct MusterManager <: ClusterManager
    count::Int
    machines::Vector{Tuple{String, Any}}
    transport::String
    upgrade::Bool
    window::Int
    setup::String
    kill_after::Float64
    ident::Any
    connect_idents::Any
    mpiexec::Union{Nothing, Cmd}
end

function MusterManager(count::Integer = 0; mpiexec::Union{Bool, Cmd} = false,
                       transport::AbstractString = mpiexec === false ? "shm" : "tcp", upgrade::Bool = true, window::Integer = 0,
                       setup::AbstractString = "", kill_after::Real = 10, ident = nothing, connect_idents = nothing)
    count >= 0 || throw(ArgumentError("a number of workers cannot be negative: $count"))
    check_transport(transport, true)
    program = mpiexec === true ? `mpiexec` : mpiexec === false ? nothing : mpiexec
    return MusterManager(count, [], transport, upgrade, window, setup, kill_after, ident, connect_idents, program)
end

function MusterManager(machines::AbstractVector; transport::AbstractString = "tcp", upgrade::Bool = true,
                       window::Integer = 0, setup::AbstractString = "", kill_after::Real = 10, ident = nothing, connect_idents = nothing)
    isempty(machines) && throw(ArgumentError("no machines given"))
    check_transport(transport, false)
    list = Tuple{String, Any}[m isa Tuple ? (String(m[1]), m[2]) : (String(m), 1) for m in machines]
    for (machine, count) in list
        count === :auto || (count isa Integer && count >= 1) ||
            throw(ArgumentError("a machine's count is a number from 1 or :auto, not $count for $machine"))
    end
    return MusterManager(0, list, transport, upgrade, window, setup, kill_after, ident, connect_idents, nothing)
end

function check_transport(transport, local_)
    transport == "tcp" && return nothing
    if is_star(transport)
        parse_star(transport)
        local_ || transport != "zmq" || throw(ArgumentError("transport zmq stays on this host: " *
            "give machines the broker's address, zmq://host:port/, or port 0 there to have one run here"))
        return nothing
    end
    occursin("://", transport) && occursin("{}", transport) && return nothing
    transport in ("shm", "unix") ||
        throw(ArgumentError("unknown transport $(repr(transport)): there are tcp, unix, shm, zmq, or an address with {} in it"))
    local_ || throw(ArgumentError("transport $transport does not reach other machines"))
    return nothing
end

Base.show(io::IO, m::MusterManager) =
    print(io, "MusterManager(", isempty(m.machines) ? m.count : m.machines, "; transport=", repr(m.transport), ")")

# What the master knows of a worker it launched; kept in WorkerConfig.userdata.
mutable struct Launched
    number::Int
    process::Union{Nothing, Base.Process}
    output::Union{Nothing, IO}
    failure::Union{Nothing, String} # why it could not be started
    before::Vector{String} # lines it printed before it was ready
    host::String          # for messages
    dial::Any             # function of the worker's address: what the master dials
    connected::Bool
    address::String       # where it listens; empty: it will print it
    place::Union{Nothing, Place} # of one that mpiexec has started
    Launched(number, host) = new(number, nothing, nothing, nothing, String[], host, identity, false, "", nothing)
end

const launches = Ref(0)
next_number() = (launches[] += 1)

# A folder of this process's own for the sockets of its workers, removed at exit.
const socket_folder = Ref{String}("")
function sockets()
    if isempty(socket_folder[])
        socket_folder[] = mktempdir(prefix = "muster_") # mode 0700
    end
    return socket_folder[]
end

function worker_address(m::MusterManager, number::Int)
    m.transport == "tcp" && return "tcp://127.0.0.1:0" * (m.upgrade ? "" : "?upgrade=no")
    m.transport == "shm" && return "shm://muster-$(getpid())-$(Random.randstring(8))-$number"
    m.transport == "unix" && return unix_address(number)
    is_star(m.transport) && return star_address(m, number)
    return replace(m.transport, "{}" => number)
end

function unix_address(number)
    path = joinpath(sockets(), "w$number")
    sizeof(path) < 100 && return "unix://" * path
    return "unix://@muster-$(getpid())-$(Random.randstring(8))-$number" # the folder's name is too long for a socket
end

Distributed.default_addprocs_params(::MusterManager) = merge(Distributed.default_addprocs_params(), Dict{Symbol, Any}(
    :env => [], :sshflags => ``, :tunnel => false, :multiplex => false, :max_parallel => 10,
    :shell_command => `sh -l -c`))

# Julia 1.5 does not ask for a manager's own parameters.
with_defaults(m, params) = merge(Distributed.default_addprocs_params(m), params)

job_of(m::MusterManager, address::String) = Dict{String, String}(
    "cookie" => String(strip(Distributed.cluster_cookie())), "secret" => bytes2hex(secret()), "listen" => address,
    "upgrade" => m.upgrade ? "yes" : "no", "window" => string(m.window),
    "setup" => bytes2hex(codeunits(m.setup)))

# A worker finds packages (this one first of all) where its master does.
function environment(params)
    names = Dict{String, String}(
        "JULIA_LOAD_PATH" => join(LOAD_PATH, ':'), "JULIA_DEPOT_PATH" => join(DEPOT_PATH, ':'))
    project = Base.active_project() # also the one of --project, which is in no variable
    project === nothing || (names["JULIA_PROJECT"] = project)
    for (name, value) in params[:env]
        names[String(name)] = String(value)
    end
    return names
end

# One argument as exename may be a Cmd with arguments of its own.
start_code(exename, exeflags) = `$exename $exeflags -e $worker_code`

function Distributed.launch(m::MusterManager, params::Dict, launched::Array, changed::Condition)
    params = with_defaults(m, params)
    meet_broker(m)
    if m.mpiexec !== nothing
        m.count == 0 || launch_by_mpiexec(m, params, launched, changed)
    elseif isempty(m.machines)
        for _ in 1:m.count
            push!(launched, launch_here(m, params, next_number()))
            notify(changed)
        end
    else
        launch_by_ssh(m, params, launched, changed)
    end
    return nothing
end

function launch_here(m::MusterManager, params, number)
    worker = Launched(number, "this host")
    try
        job = job_of(m, worker_address(m, number))
        job["master_pid"] = string(getpid())
        command = start_code(Base.julia_cmd(params[:exename]), params[:exeflags])
        variables = merge(Dict{String, String}(ENV), environment(params))
        variables["MUSTER_LIBRARY"] = library()
        start(worker, setenv(command, variables, dir = params[:dir]), job)
    catch problem
        worker.failure = start_failure(problem, first(Base.julia_cmd(params[:exename]).exec))
    end
    config = configuration(m, params, worker)
    config.bind_addr = local_process().bind_addr # of this host: procs(pid) and SharedArrays compare it
    return config
end

# Its standard error comes with its output from the first line on: what it has to say about a failure is then known here.
function start(worker::Launched, command, job)
    input, output = Pipe(), Pipe()
    worker.process = run(pipeline(detach(command), stdin = input, stdout = output, stderr = output), wait = false)
    close(input.out)
    close(output.in)
    worker.output = output
    try
        write_job(input, job)
    catch problem
        problem isa Base.IOError || rethrow() # it has ended already; its output has the reason
    end
    close(input)
    return nothing
end

# The text of an IOError of run() shows the whole environment.
start_failure(problem, program) = problem isa Base.IOError ?
    "$program cannot be started: $(Libc.strerror(-problem.code))" : sprint(showerror, problem)

function configuration(m::MusterManager, params, worker::Launched)
    config = WorkerConfig()
    config.process = worker.process
    config.io = worker.output
    config.userdata = worker
    config.enable_threaded_blas = params[:enable_threaded_blas]
    m.ident === nothing || (config.ident = m.ident(worker.number))
    m.connect_idents === nothing || (config.connect_idents = collect(m.connect_idents(worker.number)))
    return config
end

function Distributed.connect(m::MusterManager, pid::Int, config::WorkerConfig)
    # Workers know nothing of each other but the address the master passed on.
    config.connect_at === nothing || return both_ways(dial_worker(config.connect_at, PEER_HELLO), pid)
    worker = config.userdata::Launched
    worker.failure === nothing || throw(launch_error(worker, worker.failure))
    address = isempty(worker.address) ? await_address(worker) : worker.address
    for line in worker.before
        println("      From worker $pid:\t$line")
    end
    worker.output === nothing || Distributed.redirect_worker_output(string(pid), worker.output)
    stream = dial_worker(worker.dial(address), MASTER_HELLO)
    worker.connected = true
    config.connect_at = address
    return both_ways(stream, pid)
end

function both_ways(stream, pid)
    stream.shielded = true
    stream.worker = pid
    stream.exited = Distributed.ProcessExitedException
    return stream, stream
end
dial_worker(address, hello::String) = dial_address(String(address), Distributed.worker_timeout(), hello, 0, 0.0)

launch_error(worker::Launched, why) =
    Distributed.LaunchWorkerError("worker $(worker.number) on $(worker.host): $why" *
        (isempty(worker.before) ? "" : "; it printed:\n  " * join(worker.before, "\n  ")))

const MOST_LINES = 1000 # of a login shell's greeting and the like

function await_address(worker::Launched)
    seconds = Distributed.worker_timeout()
    late = Ref(false)
    timer = Timer(seconds) do _
        late[] = true
        kill_now(worker)
    end
    try
        while length(worker.before) < MOST_LINES
            line = readline(worker.output)
            if startswith(line, READY_HEAD)
                return line[(sizeof(READY_HEAD) + 1):end]
            elseif isempty(line) && eof(worker.output)
                late[] && throw(launch_error(worker, "not ready after $seconds s (JULIA_WORKER_TIMEOUT)"))
                throw(launch_error(worker, "ended before it was ready" * how_ended(worker.process)))
            end
            push!(worker.before, line)
        end
    finally
        close(timer)
    end
    throw(launch_error(worker, "printed $MOST_LINES lines, none of them says where it listens"))
end

function how_ended(process::Base.Process)
    timedwait(() -> !process_running(process), 2.0; pollint = 0.01)
    process_running(process) && return ""
    process.termsignal == 0 || return ", killed by signal $(process.termsignal)"
    return ", with exit status $(process.exitcode)"
end

function Distributed.manage(m::MusterManager, id::Integer, config::WorkerConfig, op::Symbol)
    worker = config.userdata
    worker isa Launched || return nothing
    if op === :interrupt
        worker.place === nothing ? interrupt_worker(worker, config) : interrupt_at(id, worker.place)
    elseif op === :deregister
        end_within(worker, m.kill_after)
    end
    return nothing # :finalize comes from a finalizer, where nothing may wait; nothing is left to do
end

function interrupt_worker(worker::Launched, config)
    worker.process === nothing && return nothing
    isempty(something(config.host, "")) ? kill(worker.process, Base.SIGINT) : interrupt_by_ssh(config)
    return nothing
end

# Asks the worker to leave through its own stream; one that was never connected, or does not leave, is killed.
function Distributed.kill(m::MusterManager, pid::Int, config::WorkerConfig)
    worker = config.userdata
    if worker isa Launched && !worker.connected
        kill_now(worker)
        return nothing
    end
    try
        Distributed.remote_do(exit, pid)
    catch problem
        problem isa InterruptException && rethrow()
        worker isa Launched && kill_now(worker) # it cannot be notified any more
    end
    worker isa Launched && end_within(worker, m.kill_after)
    worker isa Launched && end_tunnel(config)
    return nothing
end

function end_within(worker::Launched, seconds)
    process = worker.process
    process === nothing && return nothing
    Timer(seconds) do _
        process_running(process) && kill(process, Base.SIGKILL)
    end
    return nothing
end

function kill_now(worker::Launched)
    worker.process === nothing && return nothing
    process_running(worker.process) && kill(worker.process, Base.SIGKILL)
    return nothing
end
