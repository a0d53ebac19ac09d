# SPDX-License-Identifier: MIT
# The worker's side: a process started by a MusterManager reads its job from standard input, listens, prints where, and
# serves. Nothing secret is ever on a command line or in the environment.

const JOB_HEAD = "muster-worker 1"
const READY_HEAD = "muster_worker:"
const MASTER_HELLO = "master"
const PEER_HELLO = "peer"
const KEEPER_HELLO = "keeper"
const GRACE_NS = 2_000_000_000 # between SIGTERM and SIGKILL, once the master is gone

# The job as lines of text, ended by a dot.
function write_job(io::IO, job::Dict{String, String})
    text = IOBuffer()
    println(text, JOB_HEAD)
    for (key, value) in job
        '\n' in value && throw(ArgumentError("the worker's $key has a line break in it: $(repr(value))"))
        println(text, key, '=', value)
    end
    println(text, '.')
    write(io, take!(text))
    flush(io)
    return nothing
end

function read_job(io::IO)
    head = readline(io)::String
    head == JOB_HEAD || error("not started by a MusterManager of this version: $(repr(head)) instead of $JOB_HEAD")
    job = Dict{String, String}()
    while true
        line = readline(io, keep = true)::String
        endswith(line, '\n') || error("the worker's job ended in the middle")
        line == ".\n" && return job
        at = findfirst(isequal('='), line)
        at === nothing && error("a line of the worker's job is not key=value")
        job[line[1:prevind(line, at)]] = String(chomp(line[nextind(line, at):end]))
    end
end

# tcp://auto:0 means the address of the name of this host, which is also the one for peers.
listening_address(text) = replace(text, "tcp://auto:" => string("tcp://", known_as(), ':'))

function known_as()
    ip = try
        Sockets.getipaddr()
    catch
        return "127.0.0.1" # no network at all
    end
    return ip isa Sockets.IPv6 ? "[$ip]" : string(ip)
end

"""
    Muster.serve(input = stdin, output = stdout)

The main function of a worker process: `julia -e 'using Muster; Muster.serve()'`. Does not return.
"""
function serve(input::IO = stdin, output::IO = stdout)
    job = read_job(input)
    close(input)
    redirect_stderr(output)
    serve_job(job, job["listen"]) do address
        write(output, string(READY_HEAD, address, '\n'))
        flush(output)
    end
end

function serve_job(report, job, wanted)
    Distributed.init_worker(job["cookie"], MusterManager())
    settings[:secret] = hex2bytes(job["secret"])
    settings[:upgrade] = job["upgrade"] == "yes"
    settings[:window] = parse(Int, job["window"])
    e = running()
    if haskey(job, "master_pid")
        detail = blank_error()
        check(LowLevel.muster_process_exit_with(e.context, parse(Int, job["master_pid"]), GRACE_NS, detail), detail,
            "watch the master")
    end
    where_ = listening_address(wanted)
    if isempty(job["setup"])
        # The launcher waits for this time; it should receive the reason.
        listener = listen_at(where_, 0, 0.8 * Distributed.worker_timeout())
    else
        include_string(Main, String(hex2bytes(job["setup"])), "setup")
        listener = Base.invokelatest(listen, where_)
    end
    report(dialled_at(address(listener), where_))
    @async serve_connections(listener)
    Distributed.check_master_connect()
    wait_for_ever()
end

function wait_for_ever()
    while true
        try
            wait() # the work is done by other tasks
        catch problem
            problem isa InterruptException || rethrow() # nothing was being computed: nothing to interrupt
        end
    end
end

const master_stream = Ref{Union{Nothing, MusterStream}}(nothing)
const keeper_stream = Ref{Union{Nothing, MusterStream}}(nothing) # of a rank of an MPI job: to rank 0, from the beginning on

exit_with_peer(stream::MusterStream, grace_ns) = with_handle(h -> LowLevel.muster_stream_exit_with_peer(h, grace_ns), stream)

# On the way out the master's end may go first; that is no reason to be killed.
function outlive_master()
    for stream in (master_stream[], keeper_stream[])
        stream === nothing || exit_with_peer(stream, -1)
    end
    return nothing
end

# A rank of an MPI job waits for its master, which sends the settings that others find in their environment.
function become_worker(_, cookie, folder)
    Distributed.cluster_cookie(String(cookie))
    isempty(folder) || cd(folder)
    return nothing
end

function serve_connections(listener::Listener)
    while isopen(listener)
        stream = Sockets.accept(listener)
        said = hello(stream)
        if said == KEEPER_HELLO
            @async serve_keeper(stream)
            continue
        elseif startswith(said, MASTER_HELLO)
            said == MASTER_HELLO || become_worker(split(said, '\n'; limit = 3)...)
            # A task that computes cannot notice that the master is gone; the library's thread does.
            exit_with_peer(stream, GRACE_NS)
            master_stream[] = stream
        end
        stream.shielded = true
        Distributed.process_messages(stream, stream, true)
    end
end
