-- SPDX-License-Identifier: MIT
-- Epoch-based reclamation: when may memory be used again that other processes or tasks may still read?
--
--   local epochs = require 'muster.epoch'
--   local epoch = assert(epochs.create { max_tokens = 16 }) -- in shared memory: { fd = memory.fd, offset = 0 }
--   local token = assert(epoch:register())
--   token:pinned(function() ... end)                        -- what it reads stays valid until it returns
--   token:retire(offset)                                    -- an object that is not linked any more ...
--   for _, offset in ipairs(token:poll()) do ... end        -- ... and here nothing reads it any more
--   token:defer(value, finish)                              -- the same for a Lua value: poll() calls finish(value)
--
-- One task uses a token at a time. Misuse is an error; what may fail in a correct program gives nil, a sentence and the
-- status. Numbers of objects are at least 1 and less than 2^52.
local ffi = require 'ffi'
local bit = require 'bit'
local muster = require 'muster'
local C = muster.C

local epochs = {}
local Epoch, Pins, Token = {}, {}, {}
Epoch.__index, Token.__index = Epoch, setmetatable(Token, { __index = Pins })
epochs.Pins = Pins -- what tokens of global memory have, too

local first_value = 2 ^ 52 -- numbers from here on stand for Lua values

local function must(status, level)
    if status < 0 then
        muster.problem.message_bytes = 0
        error((select(2, muster.failure(status))), (level or 1) + 2)
    end
    return status
end

local function made(handle, why, status)
    if not handle then return nil, why, status end
    return setmetatable({ handle = handle, values = {}, next_value = first_value }, Epoch)
end

-- The memory that a manager needs: a multiple of the page size.
function epochs.size(config) return tonumber(C.muster_epoch_size(config.max_tokens or 0, config.max_pending or 0)) end

local function with_flags(config)
    local given = {}
    for name, value in pairs(config or {}) do given[name] = value end
    if given.fd then given.flags = bit.bor(given.flags or 0, muster.EPOCH_SHARED) end
    return given
end

-- config: the fields of muster_epoch_config; with `fd` it is in shared memory, which is zero before.
function epochs.create(config) return made(muster.epoch_create(with_flags(config))) end

-- A manager that another process has made.
function epochs.open(config) return made(muster.epoch_open(with_flags(config))) end

-- A token of a manager, as an object of a class that has Pins. The collector unregisters a token that is forgotten.
function epochs.new_token(handle, fields, class)
    local place = ffi.new 'muster_epoch_token *[1]'
    muster.problem.message_bytes = 0
    local status = C.muster_epoch_register(handle, place, muster.problem)
    if status ~= muster.OK then return muster.failure(status) end
    fields.raw = ffi.gc(place[0], C.muster_epoch_unregister)
    return setmetatable(fields, class)
end

-- ---- managers

-- A token of this program; see the methods of tokens and pins.
function Epoch:register()
    return epochs.new_token(self.handle, { epoch = self }, Token)
end

-- The counters of muster_epoch_stats, as a table of numbers.
function Epoch:stats()
    local raw, stats = assert(muster.epoch_get_stats(self.handle)), {}
    for _, name in ipairs { 'epoch', 'deferred', 'freed', 'pending', 'tokens', 'orphaned', 'deaths', 'is_fenced',
        'blocking_token', 'blocking_process', 'blocking_thread', 'blocked_ns' } do
        stats[name] = tonumber(raw[name])
    end
    return stats
end

-- Its tokens remain valid.
function Epoch:close() self.handle:release() end

-- ---- tokens

local function raw_of(token) return token.raw or error('the token is closed', 3) end

-- From now on no object that it reads is handed back, until unpin().
function Pins:pin() must(C.muster_epoch_pin(raw_of(self))) end
-- Ends a pin.
function Pins:unpin() must(C.muster_epoch_unpin(raw_of(self))) end

local function unpin_and_give(token, right, ...)
    must(C.muster_epoch_unpin(raw_of(token)))
    if not right then error((...), 0) end
    return ...
end

-- Runs a function while the token is pinned, and gives its results. Also an error ends the pin. These calls nest.
function Pins:pinned(body, ...)
    must(C.muster_epoch_pin(raw_of(self)))
    return unpin_and_give(self, pcall(body, ...))
end

-- For loops: online once, quiescent per turn, offline before a wait.
function Pins:online() must(C.muster_epoch_online(raw_of(self))) end
-- This token reads nothing now. True if the epoch was raised.
function Pins:quiescent() return must(C.muster_epoch_quiescent(raw_of(self))) == muster.OK end
-- This token reads nothing until online().
function Pins:offline() must(C.muster_epoch_offline(raw_of(self))) end

-- An object stays although the token is unpinned; slot 0 to 7; number 0 releases the slot.
function Pins:protect(slot, number) must(C.muster_epoch_protect(raw_of(self), slot, number)) end

-- Without a check of the number: true, or nil if too many wait.
function Pins:retire_number(number)
    local status = must(C.muster_epoch_retire(raw_of(self), number), 2)
    if status == muster.OK then return true end
    return nil, 'as many objects wait as the manager allows', status
end

-- Hands the number back by a poll when every pin of this time has ended. nil if too many wait: the object is the caller's.
function Token:retire(number)
    if tonumber(number) >= first_value then error(('number %s is not below 2^52'):format(tostring(number)), 2) end
    return self:retire_number(number)
end

-- Calls finish(value) in a poll when every pin of this time has ended; the value is kept until then. Not in shared memory.
function Token:defer(value, finish)
    local epoch = self.epoch
    local number = epoch.next_value
    local right, why, status = self:retire_number(number)
    if not right then return nil, why, status end
    epoch.next_value = number + 1
    epoch.values[number] = { value, finish }
    return true
end

-- Frees at most max_objects objects (8), for at most max_ns nanoseconds: calls the functions of values, and gives a list of
-- numbers. The second result is true if there are more.
function Token:poll(max_objects, max_ns)
    local most = max_objects or 8
    local place, count = ffi.new('uint64_t[?]', most), ffi.new 'uint32_t[1]'
    local status = must(C.muster_epoch_poll(raw_of(self), most, max_ns or 0, place, most, count, nil))
    local numbers, values = {}, {}
    for i = 0, count[0] - 1 do
        local number = tonumber(place[i])
        local entry = self.epoch.values[number]
        if entry then
            self.epoch.values[number] = nil
            values[#values + 1] = entry
        else
            numbers[#numbers + 1] = number
        end
    end
    local problem
    for _, entry in ipairs(values) do -- each of them, also after an error
        local right, why = pcall(entry[2], entry[1])
        if not right then problem = problem or why end
    end
    if problem then error(problem, 0) end
    return numbers, status == muster.AGAIN
end

local outcomes = { [muster.EPOCH_ADVANCED] = 'advanced', [muster.EPOCH_LOST] = 'lost', [muster.EPOCH_HELD] = 'blocked' }

local function describe(attempt)
    return outcomes[attempt.outcome], { token = attempt.token, process = attempt.process, thread = attempt.thread,
        since_ns = tonumber(attempt.since_ns), epoch = tonumber(attempt.epoch) }
end

-- Tries to advance the epoch: 'advanced', 'lost' or 'blocked', and details of the token that blocks.
function Pins:try_reclaim()
    local attempt = ffi.new 'muster_epoch_attempt'
    must(C.muster_epoch_try_reclaim(raw_of(self), attempt))
    return describe(attempt)
end

-- Waits until every pin of this time has ended; holds up the whole program.
function Pins:synchronize(timeout_ns)
    local attempt = ffi.new 'muster_epoch_attempt'
    if must(C.muster_epoch_synchronize(raw_of(self), timeout_ns or -1, attempt)) == muster.OK then return true end
    return nil, ('token %d of process %d is pinned'):format(attempt.token, attempt.process), muster.TIMEOUT
end

-- Its objects are handed back by polls of other tokens.
function Pins:close()
    if not self.raw then return end
    must(C.muster_epoch_unregister(ffi.gc(self.raw, nil)))
    self.raw = nil
end

return epochs
