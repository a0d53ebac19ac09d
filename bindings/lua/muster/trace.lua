-- SPDX-License-Identifier: MIT
-- Traces: what the threads of this process did and when, as a file for Perfetto (https://ui.perfetto.dev).
--
--   local traces = require 'muster.trace'
--   assert(traces.start { name = 'mine' })
--   traces.span('load', load)
--   assert(traces.save 'mine.pftrace')
--
-- A process that has MUSTER_TRACE in its environment writes its trace into that folder when its context ends. Failures are
-- nil, a sentence and the status.
local bit = require 'bit'
local muster = require 'muster'
local C = muster.C

local traces = {}

-- Begins a trace. options: `name` of this process; `events` that each thread keeps, 8192 by default, the newest ones.
function traces.start(options)
    options = options or {}
    return muster.trace_start { name = options.name, events = options.events }
end

-- Ends it; save() can still write it.
function traces.stop() C.muster_trace_stop() end

local function ended(right, ...)
    C.muster_trace_end()
    if not right then error((...), 0) end
    return ...
end

-- Calls body(...), which has this name in the trace; gives what it gives. Spans are those of the thread: a body that waits in
-- a task of a loop would enclose what other tasks do meanwhile, so it uses mark() at both ends instead.
function traces.span(name, body, ...)
    C.muster_trace_begin(name, #name)
    return ended(pcall(body, ...))
end

-- The number of a flow by the name of what is passed on, the same in the bindings of all languages: FNV-1a of 64 bits.
function traces.flow_of(text)
    local value = 0xcbf29ce484222325ULL
    for i = 1, #text do value = bit.bxor(value, text:byte(i)) * 0x100000001b3ULL end
    return value == 0 and 1ULL or value
end

-- Marks a moment. Those with the same `flow` are connected by arrows, in all processes: a number, or the name of what is
-- passed on.
function traces.mark(name, flow)
    if type(flow) == 'string' then flow = traces.flow_of(flow) end
    C.muster_trace_flow(name, #name, flow or 0)
end

-- `on`, the number of `events` and `threads`, and of align() `offset` and `offset_error` in seconds (nil: not measured).
function traces.state()
    local found, why, status = muster.trace_get_state()
    if not found then return nil, why, status end
    local measured = found.offset_error_ns >= 0
    return { on = found.is_on == 1, events = tonumber(found.events), threads = tonumber(found.threads),
        offset = tonumber(found.offset_ns) / 1e9, offset_error = measured and tonumber(found.offset_error_ns) / 1e9 or nil }
end

-- Measures the clock of this member against that of rank 0; all members of the group call it, and the program waits: at most
-- timeout_ns, by default 60 s. The state() afterwards.
function traces.align(group, timeout_ns)
    local measured, why, status = muster.trace_align(group.handle, timeout_ns or 60e9)
    if not measured then return nil, why, status end
    return traces.state()
end

-- Writes the file; a trace that is on goes on.
function traces.save(path) return muster.trace_save(path) end

return traces
