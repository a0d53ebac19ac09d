# SPDX-License-Identifier: MIT
# Written by bindings/julia/generate from include/muster/metrics.h; do not edit.

struct muster_metrics end

# How to publish.
struct muster_metrics_config # 32 bytes
    struct_size::UInt32
    flags::UInt32
    name::Ptr{Cvoid}
    name_bytes::UInt64
    interval_ns::Int64
end
muster_metrics_config(; flags = 0, name = C_NULL, name_bytes = 0, interval_ns = 0) =
    muster_metrics_config(sizeof(muster_metrics_config), flags, name, name_bytes, interval_ns)

# State of a publication.
struct muster_metrics_state # 24 bytes
    published::UInt64
    failed::UInt64
    status::muster_status
    reserved::UInt32
end

# Writes the metrics of a context and of its objects.
const at_muster_metrics_write = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_metrics_write => at_muster_metrics_write)
@inline muster_metrics_write(context, out_text, capacity, out_bytes) =
    ccall(at_muster_metrics_write[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t, Ptr{Csize_t}), context, out_text, capacity, out_bytes)

# Begins to publish the metrics of a context in a store, which may be of another context.
const at_muster_metrics_publish = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_metrics_publish => at_muster_metrics_publish)
@inline muster_metrics_publish(context, store, config, out_metrics, error) =
    ccall(at_muster_metrics_publish[], muster_status, (Ptr{muster_context}, Ptr{muster_store}, Ptr{muster_metrics_config}, Ptr{Ptr{muster_metrics}}, Ptr{muster_error}), context, store, config, out_metrics, error)

# Reads how a publication proceeds.
const at_muster_metrics_get_state = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_metrics_get_state => at_muster_metrics_get_state)
@inline muster_metrics_get_state(metrics, out_state) =
    ccall(at_muster_metrics_get_state[], muster_status, (Ptr{muster_metrics}, Ptr{muster_metrics_state}), metrics, out_state)

# Ends a publication: its key is deleted soon.
const at_muster_metrics_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_metrics_release => at_muster_metrics_release)
@inline muster_metrics_release(metrics) =
    ccall(at_muster_metrics_release[], Cvoid, (Ptr{muster_metrics},), metrics)
