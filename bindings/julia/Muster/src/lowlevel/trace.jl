# SPDX-License-Identifier: MIT
# Written by bindings/julia/generate from include/muster/trace.h; do not edit.


# How to trace.
struct muster_trace_config # 24 bytes
    struct_size::UInt32
    events::UInt32
    name::Ptr{Cvoid}
    name_bytes::UInt64
end
muster_trace_config(; events = 0, name = C_NULL, name_bytes = 0) =
    muster_trace_config(sizeof(muster_trace_config), events, name, name_bytes)

# What a trace has.
struct muster_trace_state # 40 bytes
    events::UInt64
    threads::UInt64
    offset_ns::Int64
    offset_error_ns::Int64
    is_on::UInt32
    reserved::UInt32
end

# Begins a trace.
const at_muster_trace_start = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_trace_start => at_muster_trace_start)
@inline muster_trace_start(config, error) =
    ccall(at_muster_trace_start[], muster_status, (Ptr{muster_trace_config}, Ptr{muster_error}), config, error)

# Ends a trace; muster_trace_save() can still write it.
const at_muster_trace_stop = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_trace_stop => at_muster_trace_stop)
@inline muster_trace_stop() =
    ccall(at_muster_trace_stop[], Cvoid, ())

# Begins a span of this thread, inside the last span that it has begun and not ended.
const at_muster_trace_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_trace_begin => at_muster_trace_begin)
@inline muster_trace_begin(name, name_bytes) =
    ccall(at_muster_trace_begin[], Cvoid, (Ptr{UInt8}, Csize_t), name, name_bytes)

# Ends the last span that this thread has begun.
const at_muster_trace_end = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_trace_end => at_muster_trace_end)
@inline muster_trace_end() =
    ccall(at_muster_trace_end[], Cvoid, ())

# Marks a moment of this thread.
const at_muster_trace_mark = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_trace_mark => at_muster_trace_mark)
@inline muster_trace_mark(name, name_bytes) =
    ccall(at_muster_trace_mark[], Cvoid, (Ptr{UInt8}, Csize_t), name, name_bytes)

# Marks a moment of this thread that belongs to a flow: from each moment or call with the same number, in the order of time and in all processes whose files are joined, an arrow leads to the next one.
const at_muster_trace_flow = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_trace_flow => at_muster_trace_flow)
@inline muster_trace_flow(name, name_bytes, flow) =
    ccall(at_muster_trace_flow[], Cvoid, (Ptr{UInt8}, Csize_t, UInt64), name, name_bytes, flow)

# Reads what a trace has.
const at_muster_trace_get_state = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_trace_get_state => at_muster_trace_get_state)
@inline muster_trace_get_state(out_state) =
    ccall(at_muster_trace_get_state[], muster_status, (Ptr{muster_trace_state},), out_state)

# Measures the clock of this member against that of rank 0, by 32 exchanges; all members of the group make the call.
const at_muster_trace_align = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_trace_align => at_muster_trace_align)
@inline muster_trace_align(group, timeout_ns, out_state, error) =
    ccall(at_muster_trace_align[], muster_status, (Ptr{muster_group}, Int64, Ptr{muster_trace_state}, Ptr{muster_error}), group, timeout_ns, out_state, error)

# Writes the events that are in the rings as a file, which replaces one of this name once it is complete.
const at_muster_trace_save = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_trace_save => at_muster_trace_save)
@inline muster_trace_save(path, path_bytes, error) =
    ccall(at_muster_trace_save[], muster_status, (Ptr{UInt8}, Csize_t, Ptr{muster_error}), path, path_bytes, error)
