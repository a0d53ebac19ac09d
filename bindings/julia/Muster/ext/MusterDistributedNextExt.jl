# SPDX-License-Identifier: MIT
# MusterManager for DistributedNext: the files of the one for Distributed, in which that name is the other package. Its contract for
# managers is that of Distributed (launch, connect, manage, kill, default_addprocs_params, init_worker, process_messages); since
# version 1.3 what a process is in its cluster lies in a context.
module MusterDistributedNextExt

import DistributedNext, Muster, Random, Sockets
using DistributedNext: ClusterManager, WorkerConfig
using Muster: Listener, LowLevel, MusterStream, Place, Trace, address, blank_error, check, dial_address, dialled_at, hello, is_star,
    library, listen, listen_at, meet_broker, parse_star, running, secret, settings, star_address, with_handle

const Distributed = DistributedNext
const worker_code = "import DistributedNext, Muster; Muster.serve(Val(:DistributedNext))"

local_process() = isdefined(DistributedNext, :CTX) ? DistributedNext.CTX[].lproc : DistributedNext.LPROC
launch_by_mpiexec(_...) = throw(ArgumentError("workers by mpiexec are for Distributed"))
interrupt_at(_...) = nothing # of a worker by mpiexec
serve_keeper(stream) = close(stream) # of a rank of an MPI job

include("../src/worker.jl")
include("../src/manager.jl")
include("../src/ssh.jl")
include("../src/traced_calls.jl")

# Its own hook at exit may run after that of Muster, which ends all streams.
function leave()
    DistributedNext.myid() == 1 && DistributedNext.nprocs() > 1 && DistributedNext.terminate_all_workers()
    outlive_master()
    return nothing
end

function __init__()
    push!(Muster.leaving, leave)
    return nothing
end

end # module
