-- SPDX-License-Identifier: MIT
-- Global memory between LuaJIT processes: test_memory.lua starts two of itself, which share memory, or use messages.
local muster = require 'muster'
local groups = require 'muster.group'
local memories = require 'muster.memory'
local stores = require 'muster.store'
local check = require 'check'

local function member(rank, size, url, flags)
    local context = assert(muster.context_create { secret = os.getenv 'MUSTER_TEST_SECRET' })
    local loop = assert(muster.loop(context))
    local store = stores.open(loop, url)
    loop:run(function()
        local group = groups.open(loop, { store = store.handle, rank = rank, size = size })
        local memory = assert(memories.open(group, { segment_bytes = 1048576, flags = flags, timeout_ns = 30e9 }))
        check.equal(memory.locale, rank)
        check.equal(memory.locales, size)
        local offset = assert(memory:symmetric(64))
        local following = (rank + 1) % size
        local word, sum = assert(memory:pointer(following, offset)), assert(memory:pointer(0, offset + 8))

        assert(memory:write(word, rank + 10))
        check.equal(tonumber(assert(memory:exchange(word, 5))), rank + 10)
        local changed, before = memory:compare_exchange(word, 4, 9)
        check.equal(changed, false)
        check.equal(tonumber(before), 5)
        check.equal(memory:compare_exchange(word, 5, 6), true)
        check.equal(tonumber(assert(memory:read(word))), 6)
        for _ = 1, 100 do assert(memory:fetch(sum, 'add', 1)) end
        check.says(select(2, pcall(memory.fetch, memory, sum, 'none', 1)), "no operation 'none'")
        assert(group:barrier())
        check.equal(tonumber(assert(memory:read(sum))), 100 * size)

        local signal = assert(memory:pointer(following, offset + 16))
        local block = assert(memory:allocate(following, 300000))
        local text = ('%d '):format(rank):rep(150000)
        assert(memory:put(block, text, { signal = signal, value = 3 }))
        check.equal(memory:get(block, #text) == text, true)
        check.equal(tonumber(assert(memory:read(signal))), 3)
        check.equal(select(3, memory:read(0)), muster.E_ARG)
        check.equal(memory:stats(following).used_blocks >= 1, true)

        local token = assert(memory:token())
        check.equal(token:pinned(function(a) return a end, 7), 7)
        check.says(select(2, pcall(token.pinned, token, function() error 'not this' end)), 'not this')
        assert(token:retire(block))
        check.equal(assert(token:clear()), 1)
        check.equal(select(3, memory:free(block)), muster.E_STALE)
        token:close()
        check.says(select(2, pcall(token.reclaim, token)), 'the token is closed')
        check.says(select(2, pcall(token.pin, token)), 'the token is closed')
        if flags == 0 then
            local own = assert(memory:address(memory:pointer(rank, offset + 24), 4))
            own[0] = 65
            check.equal(memory:get(memory:pointer(rank, offset + 24), 1), 'A')
        end
        assert(group:barrier())
        memory:close()
        assert(group:close())
    end)
    loop:close()
    assert(context:close(1e9))
    io.write(('rank %d is content\n'):format(rank))
end

if arg[1] then
    member(tonumber(arg[1]), 2, arg[2], tonumber(arg[3]))
    os.exit(0)
end

check.run {
    by_shared_memory = function() check.members(2, 0) end,
    by_messages = function() check.members(2, muster.MEMORY_NO_SHARED_MEMORY) end,
}
