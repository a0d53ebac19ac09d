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

export MusterManager, MusterStream, MusterError

include("lowlevel.jl")
using .LowLevel

include("errors.jl")
include("library.jl")
include("engine.jl")
include("patience.jl")
include("stream.jl")
include("connect.jl")
include("served.jl")
include("star.jl")
include("worker.jl")
include("manager.jl")
include("ssh.jl")
function __init__()
    load_library()
    wake_callback[] = @cfunction(on_wake, Cvoid, (Ptr{Cvoid}, Cint, Cint))
    engine[] = nothing
    requests[] = nothing
    empty!(own_brokers)
end

include("precompile.jl")

end # module
