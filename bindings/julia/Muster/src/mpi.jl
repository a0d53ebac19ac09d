# SPDX-License-Identifier: MIT
# Ranks of an MPI job as workers, and their streams through MPI.

"""
    MPIManager(count; ident, connect_idents)

For `addprocs`, on rank 0 of a job whose ranks have called [`Muster.start_mpi_main`](@ref)`(workers = 0)`: the next `count`
ranks that are not workers yet become workers. `Muster.free_ranks()` is the number of these ranks. Of the keywords of
`addprocs`, `exename` and `exeflags` have no effect: these processes run already.
"""
struct MPIManager <: ClusterManager
    count::Int
    ident::Any
    connect_idents::Any
    function MPIManager(count::Integer; ident = nothing, connect_idents = nothing)
        count >= 0 || throw(ArgumentError("a number of workers cannot be negative: $count"))
        return new(count, ident, connect_idents)
    end
end

Base.show(io::IO, m::MPIManager) = print(io, "MPIManager(", m.count, ')')

const LEAVE = "leave"
rank_address(rank) = "mpi://$rank/julia"

# Rank 0's view of the job. A stream to every rank, from the beginning to the end: over it a rank that is not a worker receives
# that the job is over, and every rank that rank 0 is gone.
mutable struct Job
    ranks::Ranks
    keepers::Dict{Int, MusterStream} # by rank
    free::Vector{Int}
end
const mpi_job = Ref{Union{Nothing, Job}}(nothing)

struct OfRank # kept in WorkerConfig.userdata, on rank 0
    rank::Int
    place::Place
    dir::String # where it shall go; empty: it stays where it is
end
place_of(worker::OfRank) = worker.place

"""
    Muster.start_mpi_main(; workers, upgrade = true, window = 0, addprocs_options...) -> MPIManager

Runs Julia's `Distributed` on the ranks of an MPI job, over MPI. Every rank of `mpirun -n 5 julia script.jl` calls it, as
early as possible. On rank 0 the call returns when all other ranks are workers, rank r with the id r+1. The other ranks
execute calls inside it, and it does not return there: their processes end with rank 0, or when they are removed.

- `workers`: number of ranks that become workers at once, from rank 1 on (default: all but rank 0). Others wait, without using
  a processor, for `addprocs(Muster.MPIManager(n))`.
- `upgrade`: may links between processes of one host move to shared memory (default `true`). `false`: every byte goes
  through MPI.
- `window`: bytes buffered per direction of a link, a power of two (default 1 MiB).
- `topology`, `lazy`, `dir`, `enable_threaded_blas`: as for `addprocs`.

The options of rank 0 are used. MPI is initialised by the plug-in muster-mpi.so, or by the program before, with
`MPI_THREAD_MULTIPLE`. The ranks prove a secret to each other. It is set for every rank by `MUSTER_SECRET_FILE`,
`MUSTER_SECRET` or [`Muster.configure!`](@ref); otherwise rank 0 makes one, and the others receive it by MPI: then it is as
confidential as messages of this MPI.

[`Muster.stop_mpi_main`](@ref) ends the workers before rank 0 ends. The launcher decides whether a job continues when one of
its ranks dies: `mpirun --enable-recovery` with Open MPI.
"""
function start_mpi_main(; workers::Union{Nothing, Integer} = nothing, upgrade::Bool = true, window::Integer = 0, options...)
    mpi_job[] === nothing || error("Muster.start_mpi_main was called before")
    myid() == 1 || error("Muster.start_mpi_main is for a process that is no worker yet")
    Distributed.init_multi() # makes the cookie
    ranks = meet_ranks(Dict("upgrade" => upgrade ? "yes" : "no", "window" => string(window)))
    ranks.rank == 0 || serve_rank(ranks)
    mpi_job[] = Job(ranks, Dict(), collect(1:length(ranks.cards) - 1))
    keep_ranks(mpi_job[])
    manager = MPIManager(workers === nothing ? length(mpi_job[].free) : workers)
    manager.count > 0 && addprocs(manager; options...)
    return manager
end

"""
    Muster.stop_mpi_main(manager = nothing)

On rank 0: removes the workers that are ranks of the job, and releases ranks that wait. Their processes end when rank 0 ends,
since all ranks leave MPI together. (Without it, the same happens when rank 0 exits.)
"""
function stop_mpi_main(::Union{Nothing, MPIManager} = nothing)
    mine = [w.id for w in rank_workers()]
    isempty(mine) || rmprocs(mine)
    dismiss_ranks()
    return nothing
end
rank_workers() = filter(is_rank, Distributed.PGRP.workers)
is_rank(w) = w isa Distributed.Worker && isdefined(w, :config) && w.config.userdata isa OfRank

"The number of ranks of the job that have not been workers."
free_ranks() = mpi_job[] === nothing ? 0 : length(still_there(mpi_job[]))

## Rank 0

function keep_ranks(j::Job)
    @sync for rank in j.free
        @async begin
            stream = dial_address(rank_address(rank), Distributed.worker_timeout(), KEEPER_HELLO, 0, Distributed.worker_timeout())
            j.keepers[rank] = stream
            notice_end(j, rank, stream)
        end
    end
end

notice_end(j, rank, stream) = @async begin
    try
        eof(stream) # it never writes
    catch problem
        problem isa Base.IOError || rethrow() # it died
    end
    delete!(j.keepers, rank)
    close(stream)
end

still_there(j::Job) = filter!(rank -> haskey(j.keepers, rank), j.free)

# Returns when they have received it: a rank whose stream to rank 0 ends before that is killed. Workers that could not be
# removed, since they compute, are not waited for.
function dismiss_ranks()
    j = mpi_job[]
    j === nothing && return nothing
    empty!(j.free)
    for stream in collect(values(j.keepers))
        try
            write(stream, LEAVE, '\n')
            flush(stream)
        catch # it has gone already
        end
    end
    busy = [w.config.userdata.rank for w in rank_workers()]
    timedwait(() -> all(in(busy), keys(j.keepers)), Float64(Distributed.worker_timeout()); pollint = 0.01)
    return nothing
end

function Distributed.launch(m::MPIManager, params::Dict, launched::Array, changed::Condition)
    j = mpi_job[]
    j === nothing && throw(ArgumentError("no ranks to take: Muster.start_mpi_main comes first"))
    free = still_there(j)
    length(free) >= m.count || throw(ArgumentError("$(m.count) workers wanted, and $(length(free)) ranks of the job are free"))
    for _ in 1:m.count
        rank = popfirst!(free)
        card = card_of(j.ranks, rank)
        config = WorkerConfig()
        dir = string(get(params, :dir, ""))
        config.userdata = OfRank(rank, Place(card), dir == pwd() ? "" : abspath(dir))
        tell_place!(config, Place(card))
        config.enable_threaded_blas = get(params, :enable_threaded_blas, false)
        m.ident === nothing || (config.ident = m.ident(rank))
        m.connect_idents === nothing || (config.connect_idents = collect(m.connect_idents(rank)))
        push!(launched, config)
    end
    notify(changed)
    return nothing
end

function Distributed.connect(m::MPIManager, pid::Int, config::WorkerConfig)
    worker = config.userdata::OfRank # (workers have a MusterManager, which dials what is in connect_at)
    address = rank_address(worker.rank)
    stream = dial_worker(address, join([MASTER_HELLO, strip(Distributed.cluster_cookie()), worker.dir], '\n'))
    config.connect_at = address
    return both_ways(stream, pid)
end

function Distributed.manage(m::MPIManager, id::Integer, config::WorkerConfig, op::Symbol)
    op === :interrupt && interrupt_at(id, config.userdata.place)
    return nothing
end

# No rank is killed: the launcher would notice that, and end the whole job.
function Distributed.kill(m::MPIManager, pid::Int, config::WorkerConfig)
    try
        Distributed.remote_do(exit, pid)
    catch problem
        problem isa InterruptException && rethrow() # it was never connected, or is gone
    end
    return nothing
end

## The others

function serve_rank(ranks::Ranks)
    first = card_of(ranks, 0)
    Base.exit_on_sigint(false) # as a script it would end, but an interrupt is meant for what is computed
    Distributed.init_worker(Random.randstring(Distributed.HDR_COOKIE_LEN), MusterManager()) # replaced by that of rank 0
    Distributed.LPROC.bind_addr = card_of(ranks, ranks.rank)["ip"]
    listener = listen_at(rank_address("") * (first["upgrade"] == "yes" ? "" : "?upgrade=no"), 0, 0.0)
    Timer(Distributed.worker_timeout()) do _
        keeper_stream[] === nothing || return
        println(stderr, "rank $(ranks.rank): no message of rank 0 within $(Distributed.worker_timeout()) s")
        exit(1)
    end
    @async serve_connections(listener)
    wait_for_ever()
end

# Rank 0 says that the job is over, or is gone.
function serve_keeper(stream::MusterStream)
    exit_with_peer(stream, GRACE_NS)
    keeper_stream[] = stream
    line = try
        readline(stream)
    catch problem
        problem isa Base.IOError || rethrow()
        "" # rank 0 died
    end
    if line == LEAVE
        outlive_master() # at once: until the process has ended by itself may take a while
        close(stream)    # rank 0 waits for this
        exit(0)
    end
    println(stderr, "rank 0 is gone")
    exit(1)
end
