-- SPDX-License-Identifier: MIT
-- A member of examples/world.
local folder = arg[0]:match('^(.*)/') or '.'
package.path = folder .. '/../../bindings/lua/?.lua;' .. package.path
local ffi = require 'ffi'
local muster = require 'muster'
local stores = require 'muster.store'
local groups = require 'muster.group'
ffi.cdef 'int getpid(void);'

local own = 8 -- each member adds another power of two, so the sum shows which members take part

local function say(...)
    print(string.format(...))
    io.flush()
end

-- The right sum, or nil, why and the status.
local function sum_of(group, expected)
    local numbers = {}
    for i = 1, 1000 do numbers[i] = own end
    local sums, why, status = group:all_reduce('+', numbers)
    if not sums then return nil, why, status end
    for i = 1, 1000 do
        if sums[i] ~= expected then error('wrong') end
    end
    return true
end

local function take_part(loop, member)
    local round = assert(member:join())
    local group = groups.open(loop, { round = round.handle, name = 'group' })
    local sums, why = group:all_reduce('+', { own })
    local good = sums and sum_of(group, sums[1])
    if good then say('%d members in round %d, the sum is right', round.world, round.number) end
    local count = 1
    while good and (round.world == 5 or count < 20) do -- with five, until one of them dies
        good, why = sum_of(group, sums[1])
        count = count + 1
    end
    if good then assert(group:close()) else say('%s', why) end
    return round.world
end

local loop = muster.loop(assert(muster.context_create()))
loop:run(function()
    local store = stores.open(loop, arg[1])
    local metrics = assert(muster.metrics_publish(loop.context, store.handle, { name = 'lua', interval_ns = 500e6 }))
    local member = stores.rendezvous(store, 'world', { min = 4, max = 5, last_call_ns = 2e9 })
    say('ready %d', ffi.C.getpid())
    assert(store:ask { kind = muster.STORE_GET, key = 'start' })
    while take_part(loop, member) == 5 do end
    assert(member:ask(muster.RENDEZVOUS_EXIT) == muster.OK)
    metrics:release()
end)
loop:close()
