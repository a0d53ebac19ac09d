# SPDX-License-Identifier: MIT
"""
    Muster

Streams over pluggable transports, and Julia's `Distributed` running on them:

    using Distributed, Muster
    addprocs(MusterManager(4; transport = "shm"))

See [`MusterManager`](@ref), [`MusterStream`](@ref), [`Muster.dial`](@ref) and [`Muster.listen`](@ref).
"""
module Muster

using Distributed
# Half the time to load it, and nothing that shows in a call: the work is done in the library and by inlining.
isdefined(Base.Experimental, Symbol("@optlevel")) && @eval Base.Experimental.@optlevel 1
import Libdl, Random, Serialization, Sockets

export MusterManager, MPIManager, MusterStream, MusterError

include("lowlevel.jl")
using .LowLevel

include("errors.jl")
include("library.jl")
include("engine.jl")
include("handle.jl")
include("spin.jl")
include("stream.jl")
include("stream_write.jl")
include("stream_end.jl")
include("fan.jl")
include("connect.jl")
include("served.jl")
include("store.jl")
include("store_request.jl")
include("store_lease.jl")
include("metrics.jl")
include("rendezvous.jl")
include("group.jl")
include("trace.jl")
include("messages.jl")
include("atomic.jl")
include("epoch.jl")
include("memory.jl")
include("star.jl")
# What worker.jl, manager.jl and ssh.jl need to know of the package whose workers they serve; `ext` includes them for
# another one.
const worker_code = "using Distributed; import Muster; Muster.serve()"
local_process() = Distributed.LPROC
include("worker.jl")
include("ranks.jl")
include("manager.jl")
include("traced_calls.jl")
include("other_distributed.jl")
include("shared_arrays.jl")
include("ssh.jl")
include("mpi.jl")
include("mpiexec.jl")
include("elastic.jl")
function __init__()
    load_library()
    wake_callback[] = @cfunction(on_wake, Cvoid, (Ptr{Cvoid}, Cint, Cint))
    engine[] = nothing
    requests[] = nothing
    empty!(own_brokers)
    mpi_job[] = nothing
    elastic_lease[] = nothing
    shared_arrays_enabled[] = false
    renew_gc_task()
end

# Distributed's task that notifies workers of dropped references may have begun before this package was loaded (a REPL did
# something, the package was being precompiled): then it knows no method of a MusterStream, and fails with the first
# message. Another one takes its place; the old one is never woken again.
function renew_gc_task()
    isdefined(Distributed, :any_gc_flag) && isdefined(Distributed, :start_gc_msgs_task) || return nothing
    ccall(:jl_generating_output, Cint, ()) == 0 || return nothing
    flag = Distributed.any_gc_flag
    flag isa Condition || lock(flag) # later versions have one that is locked
    began = !isempty(flag.waitq)
    while !isempty(flag.waitq)
        popfirst!(flag.waitq)
    end
    flag isa Condition || unlock(flag)
    began && Distributed.start_gc_msgs_task()
    return nothing
end

include("precompile.jl")

end # module
