-- SPDX-License-Identifier: MIT
-- Functions called in other processes:  cluster.lua --what stream|call|map [--workers N] [--scale PERCENT]
-- stream: half round trips of a bare stream, to which `call`, one call of a function, is compared. map: 100,000 numbers.
package.path = arg[0]:match '^(.*)cluster%.lua$' .. '../../bindings/lua/?.lua;' .. package.path
local ffi = require 'ffi'
local muster = require 'muster'

local options = { what = 'call', workers = '1', scale = '100' }
for i = 1, #arg, 2 do options[arg[i]:match '^%-%-(.*)$'] = arg[i + 1] end
local workers, scale = tonumber(options.workers), tonumber(options.scale) / 100

ffi.cdef [[
    typedef struct { long seconds, ns; } bench_time;
    int clock_gettime(int clock, bench_time *now);
]]
local time = ffi.new 'bench_time'
local function now_us()
    ffi.C.clock_gettime(1, time)
    return tonumber(time.seconds) * 1e6 + tonumber(time.ns) * 1e-3
end

-- Half of the median time, in microseconds.
local function half_of_trips(once)
    local times = {}
    for i = 1, math.max(2, math.floor(20000 * scale)) do
        local begun = now_us()
        once(i)
        times[i] = now_us() - begun
    end
    table.sort(times)
    return times[math.floor(#times / 2) + 1] / 2
end

local worker = [[require('muster.cluster').work(function(cluster)
    function cluster.on_stream(stream)
        repeat
            local message = stream:read(64)
        until not message or not stream:write(message)
        stream:close()
    end
end)]]

local measures = {}

function measures.stream(cluster, loop)
    local stream = assert(loop:dialled(function(tag)
        return muster.cluster_dial_begin(cluster.handle, 1, 'echo', 30e9, loop.queue, tag)
    end))
    local message = ('x'):rep(64)
    print(('us\t%.6g'):format(half_of_trips(function()
        assert(stream:write(message))
        assert(stream:read(64))
    end)))
    stream:finish()
    stream:close()
end

function measures.call(cluster)
    local function next_one(x) return x + 1 end
    print(('us\t%.6g'):format(half_of_trips(function(i) assert(cluster:call(1, next_one, i) == i + 1) end)))
end

function measures.map(cluster)
    local function square(x) return x * x end
    local list = {}
    for i = 1, math.max(100, math.floor(100000 * scale)) do list[i] = i end
    assert(cluster:map(square, list)) -- makes the streams, and has the function travel
    local begun = now_us()
    local squares = assert(cluster:map(square, list))
    print(('rate\t%.6g'):format(#list / (now_us() - begun) * 1e6))
    for i = 1, #list do assert(squares[i] == i * i) end
end

local loop = assert(muster.loop(assert(muster.context_create())))
loop:run(function()
    local cluster = assert(require('muster.cluster').open(loop))
    assert(cluster:add(workers, { argv = { require('muster.cluster').interpreter(), '-e', worker } }))
    assert(cluster:wait_for(workers))
    measures[options.what](cluster, loop)
    assert(cluster:close())
end)
