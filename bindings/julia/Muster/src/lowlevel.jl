# SPDX-License-Identifier: MIT
# Written by bindings/julia/generate from include/muster/*.h; do not edit.
#
# The C surface as it is: constants, structs, and one Julia function per C function. Addresses are looked up by load!(),
# which Muster.__init__ calls: nothing of the loaded library is kept in a precompiled image.
module LowLevel

import Libdl

const functions = Pair{Symbol, Base.RefValue{Ptr{Cvoid}}}[]

include("lowlevel/base.jl")
include("lowlevel/context.jl")
include("lowlevel/queue.jl")
include("lowlevel/process.jl")
include("lowlevel/store.jl")
include("lowlevel/rendezvous.jl")
include("lowlevel/agent.jl")
include("lowlevel/stream.jl")
include("lowlevel/am.jl")
include("lowlevel/atomic.jl")
include("lowlevel/broker.jl")
include("lowlevel/transport.jl")
include("lowlevel/cluster.jl")
include("lowlevel/epoch.jl")
include("lowlevel/message.jl")
include("lowlevel/message_queue.jl")
include("lowlevel/socket.jl")
include("lowlevel/forwarder.jl")
include("lowlevel/group.jl")
include("lowlevel/manager.jl")
include("lowlevel/memory.jl")
include("lowlevel/metrics.jl")
include("lowlevel/rendezvous_serve.jl")
include("lowlevel/serve.jl")
include("lowlevel/store_serve.jl")
include("lowlevel/store_server.jl")
include("lowlevel/trace.jl")
include("lowlevel/worker.jl")

"Looks up every function in an opened library; the first one that is missing ends it with an error naming it."
function load!(handle::Ptr{Cvoid})
    for (name, place) in functions
        place[] = Libdl.dlsym(handle, name)
    end
end

end # module
