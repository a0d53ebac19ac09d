# SPDX-License-Identifier: MIT
# In a trace arrows lead from the call of a process to its execution, and back with the result.

# The identity of a call is in the header of all its messages, and the same at both ends; the cookie makes it the cluster's.
function flow_of(header)
    oid = Distributed.null_id(header.notify_oid) ? header.response_oid : header.notify_oid
    Distributed.null_id(oid) && return UInt64(0)
    number = Trace.flow_of(Distributed.cluster_cookie())
    for part in (oid.whence, oid.id)
        number = (number ⊻ part % UInt64) * 0x9e3779b97f4a7c15
    end
    return max(number, UInt64(1))
end

if isdefined(Distributed, :serialize_hdr_raw) && isdefined(Distributed, :deserialize_hdr_raw)

function Distributed.serialize_hdr_raw(s::MusterStream, header)
    Trace.mark("call message sent", flow_of(header))
    return invoke(Distributed.serialize_hdr_raw, Tuple{Any, Any}, s, header)
end

function Distributed.deserialize_hdr_raw(s::MusterStream)
    header = invoke(Distributed.deserialize_hdr_raw, Tuple{Any}, s)
    Trace.mark("call message received", flow_of(header))
    return header
end

end
