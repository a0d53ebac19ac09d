-- SPDX-License-Identifier: MIT
-- Stores and rendezvous for tasks of host.lua: requests are begun, and a task waits for what comes off the queue.
local ffi = require 'ffi'
local bit = require 'bit'
local host = require 'host'
local muster, check = host.library, host.check
local second = 1000000000
local err = host.error

local Store, Member = {}, {}
Store.__index, Member.__index = Store, Member

local function store_of(h, handle)
    return setmetatable({ host = h, handle = ffi.gc(handle, muster.muster_store_release) }, Store)
end

local function open(h, url)
    local handle = ffi.new('muster_store *[1]')
    local status = muster.muster_store_open(h.context, url, #url, nil, 10 * second, handle, err)
    check(status, 'store ' .. url)
    return store_of(h, handle[0])
end

-- Each operation is { kind = 'SET', key = text, value = text, number = n }; what it finds comes with the tag.
function Store:begin(tag, ops)
    local list = ffi.new('muster_store_op[?]', #ops)
    for i, op in ipairs(ops) do
        local one = list[i - 1]
        one.kind = muster['MUSTER_STORE_' .. op.kind]
        one.key, one.key_bytes = ffi.cast('const char *', op.key), #op.key
        one.number = op.number or 0
        if op.value then one.value, one.value_bytes = ffi.cast('const char *', op.value), #op.value end
    end
    check(muster.muster_store_begin(self.handle, list, #ops, -1, self.host.queue, tag, nil, err), 'store')
end

-- The values of a result, which is given back.
local function values(object)
    local result, found, entry = ffi.cast('muster_store_result *', object), {}, ffi.new('muster_store_entry')
    for i = 1, tonumber(muster.muster_store_result_count(result)) do
        muster.muster_store_result_entry(result, i - 1, entry)
        if bit.band(entry.flags, muster.MUSTER_STORE_PRESENT) ~= 0 then
            found[i] = ffi.string(ffi.cast('const char *', entry.value), entry.value_bytes)
        end
    end
    muster.muster_store_result_release(result)
    return found
end

-- Inside a task: the values; or nil, the status, and why.
function Store:ask(...)
    local tag = self.host:tag()
    self:begin(tag, { ... })
    local status, object, _, why = self.host:wait(tag)
    if object == nil then return nil, status, why end
    return values(object), status
end

-- A member of a run; `news`, if it is there, is called when there are events.
local function rendezvous(store, run_id, limits, news)
    local h, config, handle = store.host, ffi.new('muster_rendezvous_config'), ffi.new('muster_rendezvous *[1]')
    config.struct_size = ffi.sizeof(config)
    config.run_id, config.run_id_bytes = ffi.cast('const char *', run_id), #run_id
    config.store, config.queue, config.tag = store.handle, h.queue, h:tag(news)
    config.min, config.max, config.last_call_ns = limits.min, limits.max or limits.min, limits.last_call_ns or 0
    check(muster.muster_rendezvous_open(h.context, config, 10 * second, handle, err), 'rendezvous')
    return setmetatable({ host = h, handle = ffi.gc(handle[0], muster.muster_rendezvous_release) }, Member)
end

-- Inside a task: the status, what comes with it, and why.
function Member:ask(operation)
    local tag = self.host:tag()
    local kind = muster['MUSTER_RENDEZVOUS_' .. operation]
    check(muster.muster_rendezvous_begin(self.handle, kind, nil, 0, 60 * second, self.host.queue, tag, err), operation)
    local status, object, _, why = self.host:wait(tag)
    return status, object, why
end

-- Inside a task: number, rank, world and store of a round.
function Member:join()
    local status, object, why = self:ask('JOIN')
    assert(status == muster.MUSTER_OK, why)
    local round, info = ffi.gc(ffi.cast('muster_round *', object), muster.muster_round_release), ffi.new('muster_round_info')
    local store = ffi.new('muster_store *[1]')
    muster.muster_round_get_info(round, info)
    check(muster.muster_round_store(round, store, err), 'store of a round')
    return { handle = round, number = tonumber(info.number), rank = info.rank, world = info.world,
        store = store_of(self.host, store[0]) }
end

-- The events that nobody has taken.
function Member:events()
    local event = ffi.new('muster_rendezvous_event')
    return function()
        if muster.muster_rendezvous_next_event(self.handle, 0, event) == muster.MUSTER_OK then return event end
    end
end

return { open = open, values = values, rendezvous = rendezvous }
