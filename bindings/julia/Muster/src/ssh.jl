# SPDX-License-Identifier: MIT
# Launching on other machines, as Distributed's SSHManager does: one ssh per worker, the job over its standard input.

const Machine = NamedTuple{(:target, :port, :bind), Tuple{String, Union{Nothing, Int}, String}}

# "[user@]host[:port] [bind_addr[:port]]"
function parse_machine(text::AbstractString)::Machine
    parts = split(text)
    1 <= length(parts) <= 2 || throw(ArgumentError("machine $(repr(text)) is not \"[user@]host[:port] [bind_addr[:port]]\""))
    user, rest = occursin('@', parts[1]) ? split(parts[1], '@', limit = 2) : ("", parts[1])
    found = match(r"^(\[[^\]]+\]|[^:\[\]]+)(?::(\d+))?$", rest)
    found === nothing && throw(ArgumentError("machine $(repr(text)): $(repr(rest)) is not host[:port]"))
    port = found.captures[2] === nothing ? nothing : parse(Int, found.captures[2])
    port === nothing || 1 <= port <= 65535 || throw(ArgumentError("machine $(repr(text)): port $port is not 1 to 65535"))
    host = strip(found.captures[1], ['[', ']'])
    return (target = isempty(user) ? host : "$user@$host", port = port, bind = length(parts) == 2 ? parts[2] : "")
end

host_of(target) = String(split(target, '@')[end])

function ssh_flags(machine::Machine, params)
    flags = params[:sshflags]
    machine.port === nothing || (flags = `$flags -p $(machine.port)`)
    if params[:tunnel] && params[:multiplex]
        flags = `$flags -o ControlMaster=auto -o $("ControlPath=~/.ssh/muster-%r@%h:%p") -o ControlPersist=no`
    end
    return flags
end

# -T -a -x: no terminal, no agent, no X11; ClearAllForwardings: those of the user's configuration would collide.
ssh(flags, target, words) = `ssh -T -a -x -o ClearAllForwardings=yes $flags $target $words`

function launch_by_ssh(m::MusterManager, params, launched, changed)
    slots = Base.Semaphore(max(1, params[:max_parallel]))
    @sync for (text, count) in m.machines
        machine = parse_machine(text)
        @async begin
            number = count === :auto ? cpu_threads(machine, params) : count
            @sync for index in 1:number
                @async begin
                    Base.acquire(slots)
                    try
                        push!(launched, launch_there(m, params, machine, next_number()))
                        notify(changed)
                    finally
                        Base.release(slots)
                    end
                end
            end
        end
    end
    return nothing
end

function cpu_threads(machine::Machine, params)
    text = readchomp(ssh(ssh_flags(machine, params), machine.target, "nproc"))
    count = tryparse(Int, text)
    count === nothing &&
        throw(Distributed.LaunchWorkerError("$(machine.target) does not report its CPU threads: $(repr(text))"))
    return count
end

function launch_there(m::MusterManager, params, machine::Machine, number)
    worker = Launched(number, machine.target)
    flags = ssh_flags(machine, params)
    try
        start(worker, ssh(flags, machine.target, remote_words(params)), job_of(m, remote_address(m, machine, params, number)))
    catch problem
        worker.failure = start_failure(problem, "ssh")
    end
    config = configuration(m, params, worker)
    config.host = machine.target
    config.sshflags = flags
    config.tunnel = params[:tunnel]
    config.multiplex = params[:multiplex]
    config.bind_addr = isempty(machine.bind) ? host_of(machine.target) : String(split(machine.bind, ':')[1])
    params[:tunnel] && (worker.dial = address -> through_tunnel(address, machine, flags, config))
    return config
end

# Address at which the worker listens: the configured one, otherwise that of the name of its host; with a tunnel, loopback.
function remote_address(m::MusterManager, machine::Machine, params, number)
    if is_star(m.transport)
        params[:tunnel] && throw(ArgumentError("no tunnel for a star: the worker dials the broker, whose address has to be in reach"))
        return star_address(m, number)
    end
    m.transport == "tcp" || return replace(m.transport, "{}" => number)
    host = params[:tunnel] ? "127.0.0.1:0" : isempty(machine.bind) ? "auto:0" :
           occursin(':', machine.bind) ? machine.bind : machine.bind * ":0"
    return "tcp://$host" * (m.upgrade && !params[:tunnel] ? "" : "?upgrade=no")
end

# The remote command line: a login shell, so that the user's paths are set, in the wanted folder. Values that a user of
# that machine may see there; nothing secret.
remote_words(params) = join(map(quoted, [params[:shell_command].exec; remote_script(params,
    start_code(params[:exename], params[:exeflags]))]), ' ')

function remote_script(params, command)
    lines = ["cd -- $(quoted(params[:dir]))"]
    for (name, value) in environment(params)
        push!(lines, "export $name=$(quoted(value))")
    end
    timeout = get(ENV, "JULIA_WORKER_TIMEOUT", "")
    isempty(timeout) || push!(lines, "export JULIA_WORKER_TIMEOUT=$(quoted(timeout))")
    named = get(ENV, "MUSTER_LIBRARY", "")
    isempty(named) || push!(lines, "export MUSTER_LIBRARY=$(quoted(named))")
    plugins = get(ENV, "MUSTER_PLUGIN_PATH", "")
    isempty(plugins) || push!(lines, "export MUSTER_PLUGIN_PATH=$(quoted(plugins))")
    push!(lines, "exec " * join(map(quoted, command.exec), ' '))
    return join(lines, " && ")
end

quoted(word) = "'" * replace(String(word), "'" => "'\\''") * "'"

function interrupt_by_ssh(config)
    if config.ospid === nothing
        @error "a worker on $(config.host) cannot be interrupted before it has joined"
    elseif !success(ssh(`$(config.sshflags) -n`, config.host, "kill -INT $(config.ospid)"))
        @error "ssh $(config.host) kill -INT $(config.ospid) failed"
    end
    return nothing
end

# ssh carries the master's own link to the worker; workers dial each other directly.
function through_tunnel(address, machine::Machine, flags, config)
    found = match(r"^tcp://(.*):(\d+)(?:\?.*)?$", address)
    found === nothing && throw(ArgumentError("only tcp goes through an ssh tunnel, not $address"))
    host, port = found.captures
    user = occursin('@', machine.target) ? split(machine.target, '@')[1] : get(ENV, "USER", readchomp(`id -un`))
    near = Distributed.ssh_tunnel(user, host_of(machine.target), host, parse(UInt16, port), flags, config.multiplex)
    config.forward = "$near:$host:$port"
    return "tcp://127.0.0.1:$near?upgrade=no"
end

function end_tunnel(config)
    something(config.tunnel, false) && something(config.multiplex, false) && config.forward !== nothing || return nothing
    run(ignorestatus(`ssh $(config.sshflags) -O cancel -L $(config.forward) $(config.host)`), wait = false)
    return nothing
end
