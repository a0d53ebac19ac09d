# SPDX-License-Identifier: MIT
# What this process counts, and its publication in a store.

"""
    Muster.metrics() -> String

What this process counts, as text that Prometheus reads: streams, bytes, handshakes, store servers, and the workers of a
cluster.
"""
function metrics()
    text, size = zeros(UInt8, 4096), Ref{Csize_t}(0)
    while true
        status = LowLevel.muster_metrics_write(running().context, text, length(text), size)
        status == LowLevel.MUSTER_E_LIMIT || (check(status, "read the metrics"); break)
        resize!(text, size[] + 1024) # it may have grown until the next call
    end
    return String(resize!(text, size[]))
end

"""
    Muster.Metrics(store; name = "", interval = 2)

Publishes the metrics of this process in a [`Muster.Store`](@ref) every `interval` seconds, until `close`: `muster top --of
URL` shows
them. `name`: of this process; by default its host and process id. `Muster.state(metrics)` counts what the store has taken.
"""
mutable struct Metrics
    handle::Ptr{LowLevel.muster_metrics}
    store::Store # kept
    function Metrics(store::Store; name::AbstractString = "", interval::Real = 2)
        text = String(name)
        handle, detail = Ref{Ptr{LowLevel.muster_metrics}}(C_NULL), blank_error()
        GC.@preserve text begin
            config = Ref(LowLevel.muster_metrics_config(name = isempty(text) ? C_NULL : pointer(text),
                name_bytes = sizeof(text), interval_ns = seconds_ns(interval)))
            status = LowLevel.muster_metrics_publish(running().context, store.handle, config, handle, detail)
        end
        check(status, detail, "publish metrics")
        return finalizer(close, new(handle[], store))
    end
end

function state(m::Metrics)
    out = Ref{LowLevel.muster_metrics_state}()
    check(LowLevel.muster_metrics_get_state(m.handle, out), "read the state of a publication")
    return (published = out[].published, failed = out[].failed, status = out[].status)
end

function Base.close(m::Metrics)
    handle, m.handle = m.handle, C_NULL
    handle == C_NULL || LowLevel.muster_metrics_release(handle)
    return nothing
end
Base.show(io::IO, m::Metrics) = print(io, "Muster.Metrics(", m.handle == C_NULL ? "closed" : m.store.name, ")")
