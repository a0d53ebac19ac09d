-- SPDX-License-Identifier: MIT
-- Stores and rendezvous for tasks (coroutines) of a muster.loop.
--
--   local store = stores.open(loop, 'tcp://127.0.0.1:29400')
--   assert(store:ask({ kind = muster.STORE_SET, key = 'greeting', value = 'hello' }))
--   print(store:ask({ kind = muster.STORE_GET, key = 'greeting' })[1].value)
--   local member = stores.rendezvous(store, 'job', { min = 3 })
--   local round = assert(member:join())
--   print(round.rank, round.world)
--
-- open() and rendezvous() block the whole program while they wait; during all other calls other tasks run.
local ffi = require 'ffi'
local bit = require 'bit'
local muster = require 'muster'
local C = muster.C

local Store, Member = {}, {}
Store.__index, Member.__index = Store, Member

local function store_of(loop, handle) return setmetatable({ loop = loop, handle = handle }, Store) end

-- A store of this URL. The whole program waits, for at most timeout_ns (default: 10 s); an error if it cannot be opened.
local function open(loop, url, timeout_ns)
    return store_of(loop, assert(muster.store_open(loop.context, url, nil, timeout_ns or 10e9)))
end

-- Each operation is a table of the fields of muster_store_op: { kind = muster.STORE_SET, key = text, value = text }. Completes
-- with the tag, and an object for results(). timeout_ns: nil or -1, none.
function Store:begin(tag, ops, timeout_ns) return self.handle:begin(ops, timeout_ns or -1, self.loop.queue, tag) end

-- A Lua number where that is exact, else the cdata.
local function number_of(value)
    local number = tonumber(value)
    return math.abs(number) <= 2 ^ 53 and number or value
end

-- The entries of a result, which is released. Each is a table: `op`, the operation it belongs to, from 1; `present`, `failed`,
-- `more`, the flags of C as booleans, and all of them in `flags`; `version` and `number`; `key` and `value`, strings, where
-- the operation gives them. `revision` of the list is where a WATCH goes on.
local function results(object)
    local result, found, entry = ffi.cast('muster_store_result *', object), {}, ffi.new('muster_store_entry')
    for i = 1, tonumber(C.muster_store_result_count(result)) do
        C.muster_store_result_entry(result, i - 1, entry)
        local flags = entry.flags
        local present = bit.band(flags, muster.STORE_PRESENT) ~= 0
        found[i] = { op = entry.op + 1, flags = flags, present = present,
            failed = bit.band(flags, muster.STORE_FAILED) ~= 0, more = bit.band(flags, muster.STORE_MORE) ~= 0,
            version = number_of(entry.version), number = number_of(entry.number),
            key = entry.key ~= nil and ffi.string(ffi.cast('const char *', entry.key), entry.key_bytes) or nil,
            value = (entry.value ~= nil or present and entry.value_bytes == 0) and
                ffi.string(ffi.cast('const char *', entry.value), entry.value_bytes) or nil }
    end
    found.revision = number_of(C.muster_store_result_revision(result))
    C.muster_store_result_release(result)
    return found
end

-- Inside a task: the entries, see results(); or nil, why, and the status. A condition that does not hold is muster.E_CHANGED, and
-- the fourth value is the entries, which show what the store has instead.
function Store:ask(...) return self:ask_within(-1, ...) end

-- As ask(), and gives up after so many nanoseconds: muster.TIMEOUT.
function Store:ask_within(timeout_ns, ...)
    local ops = { ... }
    local status, object, why = self.loop:complete(function(tag) return self:begin(tag, ops, timeout_ns) end)
    local found = object ~= nil and results(object) or nil
    if status == muster.OK then return found end
    return nil, why, status, found
end

-- A member of a run; `news` is called when there are events. The whole program waits, for at most timeout_ns (default: 10 s).
local function rendezvous(store, run_id, limits, news, timeout_ns)
    local loop = store.loop
    local handle = assert(muster.rendezvous_open(loop.context, { run_id = run_id, store = store.handle,
        queue = loop.queue, tag = loop:tag(news), min = limits.min, max = limits.max or limits.min,
        last_call_ns = limits.last_call_ns or 0 }, timeout_ns or 10e9))
    return setmetatable({ loop = loop, handle = handle }, Member)
end

-- Inside a task: the status, what comes with it, and why. operation: muster.RENDEZVOUS_JOIN ... timeout_ns: by default 60 s.
function Member:ask(operation, timeout_ns)
    return self.loop:complete(function(tag)
        return self.handle:begin(operation, nil, timeout_ns or 60e9, self.loop.queue, tag)
    end)
end

-- Inside a task: number, rank, world and store of a round; or nil, why, and the status.
function Member:join(timeout_ns)
    local status, object, why = self:ask(muster.RENDEZVOUS_JOIN, timeout_ns)
    if status ~= muster.OK then return nil, why, status end
    local round = muster.adopt('round', object)
    local info = assert(round:get_info())
    return { handle = round, number = tonumber(info.number), rank = info.rank, world = info.world,
        store = store_of(self.loop, assert(round:store())) }
end

-- The events that were not taken yet.
function Member:events()
    local event = ffi.new('muster_rendezvous_event')
    return function()
        if C.muster_rendezvous_next_event(self.handle, 0, event) == muster.OK then return event end
    end
end

return { open = open, of = store_of, results = results, rendezvous = rendezvous }
