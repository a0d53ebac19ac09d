-- SPDX-License-Identifier: MIT
-- Collective operations between LuaJIT processes: test_group.lua starts three of itself.
local muster = require 'muster'
local groups = require 'muster.group'
local stores = require 'muster.store'
local check = require 'check'

local function text(list)
    if not list then return 'nil' end
    local parts = {}
    for i, value in ipairs(list) do parts[i] = type(value) == 'table' and text(value) or tostring(value) end
    return '{' .. table.concat(parts, ' ') .. '}'
end

local function member(rank, size, url)
    local context = assert(muster.context_create { secret = os.getenv 'MUSTER_TEST_SECRET' })
    local loop = assert(muster.loop(context))
    local store = stores.open(loop, url)
    local function gives(is, should) check.equal(text(is), text(should), 'rank ' .. rank) end
    loop:run(function()
        local group = groups.open(loop, { store = store.handle, rank = rank, size = size })
        assert(group:barrier())
        gives(group:all_reduce('+', { rank, 1 }), { 3, 3 })
        gives(group:all_reduce('max', { rank }), { 2 })
        gives(group:broadcast(rank == 1 and { 5, 6 } or { 0, 0 }, 1), { 5, 6 })
        gives(group:reduce('*', { rank + 1 }, 2), rank == 2 and { 6 } or {})
        local function digits(a, b) return 10 * a + b end -- does not commute
        gives(group:all_reduce(digits, { rank + 1 }), { 123 })
        gives(group:scan(digits, { rank + 1 }), { ({ 1, 12, 123 })[rank + 1] })
        gives(group:reduce_scatter('+', { { 1 }, { 2 }, { 3 } }), { 3 * (rank + 1) })
        gives(group:all_gather { rank, 10 * rank }, { { 0, 0 }, { 1, 10 }, { 2, 20 } })
        gives(group:gather({ rank }, 1), rank == 1 and { { 0 }, { 1 }, { 2 } } or {})
        gives(group:scatter(rank == 0 and { { 7 }, { 8 }, { 9 } } or nil, 1), { 7 + rank })
        gives(group:all_to_all { { 10 * rank }, { 10 * rank + 1 }, { 10 * rank + 2 } }, { { rank }, { 10 + rank }, { 20 + rank } })
        check.equal(group:progress(rank), 'idle')
        check.says(select(2, pcall(group.all_reduce, group, 'none', { 1 })), "no reduction 'none'")
        check.says(select(2, pcall(group.all_reduce, group, function() error 'not these' end, { 1 })), 'not these')
        local half = group:split(rank == 0 and -1 or 4, -rank)
        check.equal(half ~= nil, rank ~= 0)
        if half then
            gives(half:all_reduce('+', { rank }), { 3 })
            check.equal(half.rank, 2 - rank)
            assert(half:close())
        end
        -- Global memory: all members add to a word of rank 0, and one of them frees what another has allocated.
        local memory = assert(muster.memory_open(group.handle, { segment_bytes = 65536 }, 30e9))
        local offset = assert(memory:symmetric(8, 8, 30e9))
        local word = assert(memory:pointer(0, offset))
        assert(memory:run { kind = muster.MEMORY_FETCH, target = word, operation = muster.ATOMIC_ADD, value = rank + 1 })
        local block = assert(memory:allocate((rank + 1) % size, 100))
        assert(group:barrier())
        local found = assert(memory:run { kind = muster.MEMORY_READ, target = word })
        check.equal(tonumber(found.value), 6)
        assert(memory:free(block))
        check.equal(select(3, memory:free(block)), muster.E_STALE)
        check.equal(select(3, memory:run { kind = muster.MEMORY_READ, target = 0 }), muster.E_ARG)
        assert(group:barrier())
        memory:release()
        assert(group:close())
        -- A member that does not take part, and revokes the group.
        local last = groups.open(loop, { store = store.handle, rank = rank, size = size, name = 'last' })
        assert(store:ask { kind = muster.STORE_BARRIER, key = 'opened', rank = rank, count = size })
        if rank == 2 then last:revoke('enough') end
        local right, why, status = last:all_reduce('+', { 1 })
        check.equal(right, nil)
        check.equal(status, muster.E_ABORTED)
        check.says(why, 'rank 2 revoked the group: enough')
    end)
    loop:close()
    assert(context:close(1e9))
    io.write(('rank %d is content\n'):format(rank))
end

if arg[1] then
    member(tonumber(arg[1]), 3, arg[2])
    os.exit(0)
end

check.run {
    three_programs_perform_all_operations = function() check.members(3) end,
}
