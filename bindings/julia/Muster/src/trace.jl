# SPDX-License-Identifier: MIT
"""
Traces: what the threads of this process did and when, as a file for Perfetto (https://ui.perfetto.dev).

    Muster.Trace.start("mine")
    Muster.Trace.span("load") do
        load()
    end
    Muster.Trace.save("mine.pftrace")

A process that has `MUSTER_TRACE` in its environment writes its trace into that folder when it exits.
"""
module Trace

import ..Muster: LowLevel, Group, blank_error, check, deadline_ns, in_pool

"""
    Muster.Trace.start(name = ""; events = 0)

Begins a trace; each thread keeps so many `events` (0: 8192), the newest ones. `name`: of this process; by default that of the
program.
"""
function start(name::AbstractString = ""; events::Integer = 0)
    text, detail = String(name), blank_error()
    GC.@preserve text begin
        config = Ref(LowLevel.muster_trace_config(events = events, name = isempty(text) ? C_NULL : pointer(text),
            name_bytes = sizeof(text)))
        status = LowLevel.muster_trace_start(config, detail)
    end
    check(status, detail, "start a trace")
    return nothing
end

"""
    Muster.Trace.stop()

Ends it; [`Muster.Trace.save`](@ref) can still write it.
"""
stop() = LowLevel.muster_trace_stop()

"""
    Muster.Trace.span(body, name)

Calls `body()`, which has this name in the trace, and returns its result. Spans are those of the thread: a body that waits would
enclose what other tasks do meanwhile; mark its beginning and its end instead.
"""
function span(body, name::AbstractString)
    text = String(name)
    GC.@preserve text LowLevel.muster_trace_begin(pointer(text), sizeof(text))
    try
        return body()
    finally
        LowLevel.muster_trace_end()
    end
end

"""
    Muster.Trace.flow_of(text) -> UInt64

The number of a flow by the name of what is passed on, the same in the bindings of all languages: FNV-1a of 64 bits.
"""
function flow_of(text::AbstractString)
    value = 0xcbf29ce484222325
    for byte in codeunits(String(text))
        value = (value ⊻ byte) * 0x00000100000001b3
    end
    return max(value, UInt64(1))
end

"""
    Muster.Trace.mark(name, flow = 0)

Marks a moment. Those with the same `flow` are connected by arrows, in all processes: a number, or the name of what is passed
on.
"""
mark(name::AbstractString, flow::AbstractString) = mark(name, flow_of(flow))
function mark(name::AbstractString, flow::Integer = 0)
    text = String(name)
    GC.@preserve text LowLevel.muster_trace_flow(pointer(text), sizeof(text), flow)
    return nothing
end

"""
    Muster.Trace.state()

`on`, the number of `events` and `threads`, and of [`Muster.Trace.align`](@ref) `offset` and `offset_error` in seconds; the
error is
`nothing` if it was not measured.
"""
function state()
    out = Ref{LowLevel.muster_trace_state}()
    check(LowLevel.muster_trace_get_state(out), "read the state of the trace")
    found = out[]
    return (on = found.is_on != 0, events = Int(found.events), threads = Int(found.threads), offset = found.offset_ns / 1e9,
        offset_error = found.offset_error_ns < 0 ? nothing : found.offset_error_ns / 1e9)
end

"""
    Muster.Trace.align(group; timeout = 60)

Measures the clock of this member against that of rank 0; a call of all members of a [`Muster.Group`](@ref). Returns the state.
"""
function align(group::Group; timeout::Real = 60)
    detail = blank_error()
    status = in_pool(() -> nothing) do
        GC.@preserve group @threadcall(LowLevel.at_muster_trace_align[], Int32, (Ptr{LowLevel.muster_group}, Int64,
            Ptr{LowLevel.muster_trace_state}, Ptr{LowLevel.muster_error}), group.handle, deadline_ns(timeout), C_NULL, detail)
    end
    check(status, detail, "align the clocks of a group")
    return state()
end

"""
    Muster.Trace.save(path)

Writes the file; a trace that is on goes on.
"""
function save(path::AbstractString)
    text, detail = String(path), blank_error()
    status = GC.@preserve text LowLevel.muster_trace_save(pointer(text), sizeof(text), detail)
    check(status, detail, "write a trace")
    return nothing
end

end # module
