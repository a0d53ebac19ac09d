# SPDX-License-Identifier: MIT
# The ranks of an MPI job before there is anything between them: MPI is initialised (by the plug-in, unless the program
# has), and each rank sends a card to all others, with the secret of the job if none was configured.

# What is called of MPI. Handles are addresses with Open MPI and numbers with MPICH: both go through as a word.
struct MPILibrary
    world::UInt
    byte::UInt
    handle::Ptr{Cvoid}
end

# The plug-in has loaded it.
function mpi_library()
    for path in Libdl.dllist()
        occursin(r"^libmpi(ch)?\.so", basename(path)) || continue
        handle = Libdl.dlopen(path, Libdl.RTLD_LAZY | Libdl.RTLD_NOLOAD)
        Libdl.dlsym_e(handle, :MPI_Iallgather) == C_NULL && continue
        world = Libdl.dlsym_e(handle, :ompi_mpi_comm_world)
        world == C_NULL && return MPILibrary(0x44000000, 0x4c00010d, handle) # MPICH's ABI
        return MPILibrary(UInt(world), UInt(Libdl.dlsym(handle, :ompi_mpi_byte)), handle)
    end
    error("the MPI that muster-mpi.so uses was not found among the loaded libraries")
end

mpi_check(status, call) = status == 0 ? nothing : error("$call failed with error $status")

function world_number(mpi::MPILibrary, call::Symbol)
    number = Ref{Cint}(-1)
    mpi_check(ccall(Libdl.dlsym(mpi.handle, call), Cint, (UInt, Ref{Cint}), mpi.world, number), call)
    return Int(number[])
end

const given_up = Any[] # buffers that MPI may still write to

# Every rank's bytes, by rank; all give equally many. Other tasks go on meanwhile, and no processor is used.
function gather_equal(mpi::MPILibrary, mine::Vector{UInt8}, until::Float64)
    size = world_number(mpi, :MPI_Comm_size)
    all = Vector{UInt8}(undef, size * length(mine))
    request, done, status = Ref{UInt}(0), Ref{Cint}(0), zeros(UInt8, 64)
    GC.@preserve mine all begin
        mpi_check(ccall(Libdl.dlsym(mpi.handle, :MPI_Iallgather), Cint,
            (Ptr{UInt8}, Cint, UInt, Ptr{UInt8}, Cint, UInt, UInt, Ref{UInt}),
            mine, length(mine), mpi.byte, all, length(mine), mpi.byte, mpi.world, request), :MPI_Iallgather)
        pause = 0.001
        while true
            mpi_check(ccall(Libdl.dlsym(mpi.handle, :MPI_Test), Cint, (Ref{UInt}, Ref{Cint}, Ptr{UInt8}),
                request, done, status), :MPI_Test)
            done[] == 0 || break
            if time() > until
                push!(given_up, (mine, all, request))
                error("not all $size ranks of the job have come (JULIA_WORKER_TIMEOUT)")
            end
            sleep(pause)
            pause = min(2 * pause, 0.01)
        end
    end
    return [all[(i - 1) * length(mine) + 1:i * length(mine)] for i in 1:size]
end

function gather(mpi::MPILibrary, mine::Vector{UInt8}, until::Float64)
    lengths = [only_int(bytes) for bytes in gather_equal(mpi, collect(reinterpret(UInt8, [Int64(length(mine))])), until)]
    padded = vcat(mine, zeros(UInt8, maximum(lengths) - length(mine)))
    return [bytes[1:n] for (bytes, n) in zip(gather_equal(mpi, padded, until), lengths)]
end
function gather(mpi::MPILibrary, card::Dict{String, String}, until::Float64)
    text = IOBuffer()
    write_job(text, card)
    return [read_job(IOBuffer(bytes)) for bytes in gather(mpi, take!(text), until)]
end

only_int(bytes) = Int(reinterpret(Int64, bytes)[1])

function load_plugin(context, scheme::String)
    detail = blank_error()
    find = Libdl.dlsym(Libdl.dlopen(library(), Libdl.RTLD_NOW | Libdl.RTLD_NOLOAD), :muster_plugin_find)
    check(ccall(find, Int32, (Ptr{Cvoid}, Ptr{UInt8}, Csize_t, Ref{LowLevel.muster_error}),
        context, scheme, sizeof(scheme), detail), detail, "load the plug-in for $scheme")
end

# Where processes see each other's process ids: the boot, and the namespace.
function host_identity()
    part(read_it) = try read_it() catch; gethostname() end
    return part(() -> readchomp("/proc/sys/kernel/random/boot_id")) * '/' * part(() -> readlink("/proc/self/ns/pid"))
end

# Where a rank runs.
struct Place
    host::String # host_identity()
    name::String
    ip::String
    ospid::Int
end
Place(card::Dict) = Place(card["host"], card["name"], card["ip"], parse(Int, card["ospid"]))
place_card() = Dict("host" => host_identity(), "name" => gethostname(), "ip" => known_as(), "ospid" => string(getpid()))

function tell_place!(config::WorkerConfig, place::Place)
    config.host = place.name
    config.bind_addr = place.host == host_identity() ? Distributed.LPROC.bind_addr : place.ip
    return nothing
end

place_of(::Any) = nothing
place_of(w::Distributed.Worker) = isdefined(w, :config) ? place_of(w.config.userdata) : nothing

# A signal to a process of this host; on another one some other worker sends it.
function interrupt_at(id, place::Place)
    place.host == host_identity() && return interrupt_process(place.ospid)
    for other in Distributed.PGRP.workers
        there = place_of(other)
        there !== nothing && other.id != id && there.host == place.host || continue
        Distributed.remote_do(interrupt_process, other.id, place.ospid)
        return nothing
    end
    @error "worker $id cannot be interrupted: no other worker is on $(place.name) to do it"
    return nothing
end
interrupt_process(ospid) = (ccall(:kill, Cint, (Cint, Cint), ospid, Base.SIGINT); nothing)

secret_is_given() = haskey(settings, :secret) || !isempty(get(ENV, "MUSTER_SECRET_FILE", "")) ||
                    !isempty(get(ENV, "MUSTER_SECRET", ""))

struct Ranks
    rank::Int
    cards::Vector{Dict{String, String}} # of rank 0, 1, ...
end
card_of(ranks::Ranks, rank::Int) = ranks.cards[rank + 1]

# All ranks call it once. `ours`: the values that rank 0 sends to all others. Afterwards all have rank 0's secret.
function meet_ranks(ours::Dict{String, String})::Ranks
    until = time() + Distributed.worker_timeout()
    given = secret_is_given()
    early = engine[]
    # MPI comes with the plug-in, the plug-in with a context, and a context has a secret: so the first one, where it is
    # made for this, is not kept.
    context = early === nothing ? passing_context() : early.context
    load_plugin(context, "mpi")
    mpi = mpi_library()
    rank = world_number(mpi, :MPI_Comm_rank)
    card = place_card()
    card["given"] = given ? "yes" : "no"
    if rank == 0
        merge!(card, ours)
        card["secret"] = ""
        if !given
            early === nothing && (settings[:secret] = rand(Random.RandomDevice(), UInt8, 32))
            card["secret"] = bytes2hex(early === nothing ? settings[:secret] : secret())
        end
    end
    cards = gather(mpi, card, until)
    with = [card["given"] == "yes" for card in cards]
    if any(with) && !all(with)
        error("rank $(findfirst(with) - 1) of the job was given a secret and rank $(findfirst(!, with) - 1) was not: " *
              "MUSTER_SECRET_FILE or MUSTER_SECRET has to be set for all of them or none " *
              "(with Open MPI: mpirun -x MUSTER_SECRET_FILE)")
    end
    if rank != 0 && !given
        early === nothing || error("this rank has used Muster before it knew the job's secret")
        settings[:secret] = hex2bytes(cards[1]["secret"])
    end
    rank == 0 || (settings[:upgrade] = cards[1]["upgrade"] == "yes"; settings[:window] = parse(Int, cards[1]["window"]))
    if early === nothing
        rank == 0 && !haskey(settings, :upgrade) && (settings[:upgrade] = ours["upgrade"] == "yes")
        take_over(context)
    end
    return Ranks(rank, cards)
end

function passing_context()
    detail = blank_error()
    context = Ref{Ptr{LowLevel.muster_context}}(C_NULL)
    check(LowLevel.muster_context_create(Ref(context_config(get(settings, :secret, UInt8[])::Vector{UInt8})), context, detail),
        detail, "start Muster")
    return context[]
end

function take_over(context)
    load_plugin(running().context, "mpi")
    LowLevel.muster_context_close(context, 0)
    LowLevel.muster_context_release(context)
    return nothing
end
