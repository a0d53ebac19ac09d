# SPDX-License-Identifier: MIT
# Workers that mpiexec starts, for a master outside of their job. Its standard input reaches rank 0 only: that one passes
# the job on by MPI, and prints for all where they listen.

function launch_by_mpiexec(m::MusterManager, params, launched, changed)
    numbers = [next_number() for _ in 1:m.count]
    all = Launched(numbers[1], "mpiexec")
    job = job_of(m, "")
    for (rank, number) in enumerate(numbers)
        job["listen $(rank - 1)"] = m.transport == "tcp" ? "tcp://auto:0" * (m.upgrade ? "" : "?upgrade=no") : worker_address(m, number)
    end
    program = params[:exename]
    command = `$program $(params[:exeflags]) -e "using Distributed; import Muster; Muster.serve_ranks()"`
    try
        start(all, `$(m.mpiexec) -n $(m.count) sh -c $(remote_script(params, command))`, job)
    catch problem
        throw(launch_error(all, start_failure(problem, first(m.mpiexec.exec))))
    end
    found = [await_address(all) for _ in numbers] # rank by rank
    foreach(line -> println("      From mpiexec:\t", line), all.before)
    Distributed.redirect_worker_output("s $(numbers[1]) to $(numbers[end]) of mpiexec", all.output)
    for (number, line) in zip(numbers, found)
        address, host, name, ip, ospid = split(line, ' ')
        worker = Launched(number, name)
        worker.address = address
        worker.place = Place(host, name, ip, parse(Int, ospid))
        config = configuration(m, params, worker)
        tell_place!(config, worker.place)
        push!(launched, config)
    end
    notify(changed)
    return nothing
end

place_of(worker::Launched) = worker.place

"The main function of a rank that mpiexec has started for a master outside of the job. Does not return."
function serve_ranks(input::IO = stdin, output::IO = stdout)
    until = time() + Distributed.worker_timeout()
    context = passing_context()
    load_plugin(context, "mpi")
    mpi = mpi_library()
    rank = world_number(mpi, :MPI_Comm_rank)
    job = gather(mpi, rank == 0 ? read_job(input) : Dict{String, String}(), until)[1]
    close(input)
    settings[:secret] = hex2bytes(job["secret"])
    settings[:upgrade] = job["upgrade"] == "yes"
    settings[:window] = parse(Int, job["window"])
    take_over(context)
    serve_job(job, job["listen $rank"]) do address
        card = place_card()
        card["address"] = address
        for card_of_rank in gather(mpi, card, until)
            rank == 0 && write(output, string(READY_HEAD, join([card_of_rank[key] for key in ("address", "host", "name", "ip", "ospid")], ' '), '\n'))
        end
        flush(output)
    end
end
