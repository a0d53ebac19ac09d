# SPDX-License-Identifier: MIT
# In a trace arrows lead from the call of a process to its execution: of calls that are answered. Their results have none: four
# events for a call would cost a small one more than two hundredths of its time.

# The identity of a call is in the header of its message, and the same at both ends; the cookie makes it the cluster's.
function flow_of(header)
    oid = header.notify_oid
    Distributed.null_id(oid) && return UInt64(0)
    number = flow_of_cluster(Distributed.cluster_cookie())
    number = (number ⊻ oid.whence % UInt64) * 0x9e3779b97f4a7c15
    number = (number ⊻ oid.id % UInt64) * 0x9e3779b97f4a7c15
    return max(number, UInt64(1))
end

function mark_call(name, header)
    flow = flow_of(header)
    flow == 0 || Trace.mark(name, flow)
    return nothing
end

mutable struct ClusterFlow
    cookie::String
    number::UInt64
end
const cluster_flow = ClusterFlow("", 0) # computed once: the cookie of a process changes when it becomes a worker
function flow_of_cluster(cookie::String)
    if cluster_flow.cookie !== cookie
        cluster_flow.number = Trace.flow_of(cookie)
        cluster_flow.cookie = cookie
    end
    return cluster_flow.number
end

if isdefined(Distributed, :serialize_hdr_raw) && isdefined(Distributed, :deserialize_hdr_raw)

function Distributed.serialize_hdr_raw(s::MusterStream, header)
    mark_call("call sent", header)
    return invoke(Distributed.serialize_hdr_raw, Tuple{Any, Any}, s, header)
end

function Distributed.deserialize_hdr_raw(s::MusterStream)
    header = invoke(Distributed.deserialize_hdr_raw, Tuple{Any}, s)
    mark_call("call received", header)
    return header
end

end
