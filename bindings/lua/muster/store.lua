-- SPDX-License-Identifier: MIT
-- Stores and rendezvous for tasks (coroutines) of a muster.loop.
--
--   local store = stores.open(loop, 'tcp://127.0.0.1:29400')
--   assert(store:ask({ kind = muster.STORE_SET, key = 'greeting', value = 'hello' }))
--   print(store:ask({ kind = muster.STORE_GET, key = 'greeting' })[1])
--   local member = stores.rendezvous(store, 'job', { min = 3 })
--   local round = member:join()
--   print(round.rank, round.world)
--
-- open() and rendezvous() wait for the other side, the whole program does; everything else lets other tasks go on.
local ffi = require 'ffi'
local bit = require 'bit'
local muster = require 'muster'
local C = muster.C

local Store, Member = {}, {}
Store.__index, Member.__index = Store, Member

local function store_of(loop, handle) return setmetatable({ loop = loop, handle = handle }, Store) end

local function open(loop, url) return store_of(loop, assert(muster.store_open(loop.context, url, nil, 10e9))) end

-- Each operation is { kind = muster.STORE_SET, key = text, value = text, number = n }; what it finds comes with the tag.
function Store:begin(tag, ops) assert(self.handle:begin(ops, -1, self.loop.queue, tag)) end

-- The values of a result, which is given back.
local function values(object)
    local result, found, entry = ffi.cast('muster_store_result *', object), {}, ffi.new('muster_store_entry')
    for i = 1, tonumber(C.muster_store_result_count(result)) do
        C.muster_store_result_entry(result, i - 1, entry)
        if bit.band(entry.flags, muster.STORE_PRESENT) ~= 0 then
            found[i] = ffi.string(ffi.cast('const char *', entry.value), entry.value_bytes)
        end
    end
    C.muster_store_result_release(result)
    return found
end

-- Inside a task: the values; or nil, why, and the status.
function Store:ask(...)
    local tag = self.loop:tag()
    self:begin(tag, { ... })
    local status, object, _, why = self.loop:wait(tag)
    self.loop:forget(tag)
    if object == nil then return nil, why, status end
    return values(object), nil, status
end

-- A member of a run; `news` is called when there are events.
local function rendezvous(store, run_id, limits, news)
    local loop = store.loop
    local handle = assert(muster.rendezvous_open(loop.context, { run_id = run_id, store = store.handle,
        queue = loop.queue, tag = loop:tag(news), min = limits.min, max = limits.max or limits.min,
        last_call_ns = limits.last_call_ns or 0 }, 10e9))
    return setmetatable({ loop = loop, handle = handle }, Member)
end

-- Inside a task: the status, what comes with it, and why. operation: muster.RENDEZVOUS_JOIN ...
function Member:ask(operation)
    local tag = self.loop:tag()
    assert(self.handle:begin(operation, nil, 60e9, self.loop.queue, tag))
    local status, object, _, why = self.loop:wait(tag)
    self.loop:forget(tag)
    return status, object, why
end

-- Inside a task: number, rank, world and store of a round.
function Member:join()
    local status, object, why = self:ask(muster.RENDEZVOUS_JOIN)
    assert(status == muster.OK, why)
    local round = muster.adopt('round', object)
    local info = assert(round:get_info())
    return { handle = round, number = tonumber(info.number), rank = info.rank, world = info.world,
        store = store_of(self.loop, assert(round:store())) }
end

-- The events that nobody has taken.
function Member:events()
    local event = ffi.new('muster_rendezvous_event')
    return function()
        if C.muster_rendezvous_next_event(self.handle, 0, event) == muster.OK then return event end
    end
end

return { open = open, values = values, rendezvous = rendezvous }
