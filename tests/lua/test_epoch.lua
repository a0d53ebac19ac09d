-- SPDX-License-Identifier: MIT
-- Epochs and atomic objects in Lua: in this program, and in memory that it shares with a second one.
local ffi = require 'ffi'
local muster = require 'muster'
local atomics = require 'muster.atomic'
local epochs = require 'muster.epoch'
local check = require 'check'

local function list(values)
    table.sort(values)
    return table.concat(values, ' ')
end

local function refuses(text, body, ...) check.says(select(2, pcall(body, ...)), text) end

local tests = {}

function tests.a_number_is_handed_back_when_no_pin_of_its_time_is_left()
    local epoch = assert(epochs.create { max_tokens = 3, max_pending = 64 })
    local reader, writer = assert(epoch:register()), assert(epoch:register())
    reader:pin()
    reader:pinned(function() end) -- they nest
    for i = 1, 64 do assert(writer:retire(i * 64)) end
    local right, why, status = writer:retire(1)
    check.equal(right, nil)
    check.equal(status, muster.AGAIN)
    check.says(why, 'as many objects wait')
    writer:try_reclaim()
    writer:try_reclaim()
    check.equal(#writer:poll(100), 0)
    local outcome, blocking = writer:try_reclaim()
    check.equal(outcome, 'blocked')
    check.equal(blocking.token, 0)
    right, why, status = writer:synchronize(1e6)
    check.equal(status, muster.TIMEOUT)
    check.says(why, 'token 0 of process')
    reader:unpin()
    assert(writer:synchronize(20e9))
    local first, more = writer:poll()
    check.equal(list(first), '64 128 192 256 320 384 448 512')
    check.equal(more, true)
    check.equal(#writer:poll(100), 56)
    check.equal(epoch:stats().freed, 64)
    local third = assert(epoch:register())
    right, why, status = epoch:register()
    check.equal(status, muster.E_LIMIT)
    check.says(why, 'all 3 tokens are registered')
    third:close()
    third:close()
    refuses('the token is closed', third.pin, third)
    refuses('has been released', function() epoch:close() return epoch:stats() end)
    reader:pinned(function() end) -- tokens outlive the manager
end

function tests.an_error_ends_a_pin()
    local epoch = assert(epochs.create())
    local token = assert(epoch:register())
    refuses('not these', function() token:pinned(function() error('not these', 0) end) end)
    check.equal(select('#', token:pinned(function(...) return ... end, 1, nil, nil)), 3)
    local task = coroutine.wrap(function() token:pinned(coroutine.yield) end) -- a task that waits stays pinned
    task()
    check.equal(epoch:stats().blocking_token, 4294967295) -- but at the current epoch
    token:try_reclaim()
    check.equal(epoch:stats().blocking_token, 0)
    task()
    assert(token:synchronize(20e9))
    refuses('argument', token.unpin, token)
    token:online()
    check.equal(token:quiescent(), true)
    token:offline()
    refuses('argument', token.quiescent, token)
    refuses('argument', token.retire, token, 0)
    refuses('not below 2^52', token.retire, token, 2 ^ 52)
end

function tests.a_value_is_finished_in_a_poll_of_any_token()
    local epoch = assert(epochs.create())
    local one, other = assert(epoch:register()), assert(epoch:register())
    local ended = {}
    local function finish(value)
        ended[#ended + 1] = value.name
        if value.fails then error('it fails', 0) end
    end
    assert(one:defer({ name = 'a', fails = true }, finish))
    assert(one:retire(7))
    assert(one:defer({ name = 'b' }, finish))
    one:close()
    assert(other:synchronize(20e9))
    refuses('it fails', other.poll, other, 1)
    check.equal(list(other:poll()), '7')
    check.equal(table.concat(ended, ' '), 'a b')
end

function tests.a_protected_object_stays()
    local epoch = assert(epochs.create())
    local reader, writer = assert(epoch:register()), assert(epoch:register())
    refuses('argument', reader.protect, reader, 0, 64) -- not pinned
    reader:pinned(function() reader:protect(0, 64) end)
    writer:retire(64)
    writer:retire(128)
    assert(writer:synchronize(20e9))
    check.equal(list(writer:poll()), '128')
    reader:protect(0, 0)
    assert(writer:synchronize(20e9))
    check.equal(list(writer:poll()), '64')
end

function tests.words_flags_and_cells()
    local memory = atomics.memory(64)
    check.equal(tonumber(ffi.cast('intptr_t', memory.address)) % 64, 0)
    for _, word in ipairs { atomics.word64(memory, 8), atomics.word32(memory, 4) } do
        word:write(5)
        check.equal(word:read(muster.ATOMIC_RELAXED) == 5, true)
        check.equal(word:add(3) == 5, true)
        check.equal(word:exchange(12) == 8, true)
        local done, seen = word:compare_exchange(8, 1)
        check.equal(done, false)
        check.equal(seen == 12, true)
        check.equal(word:compare_exchange(12, 6), true)
        check.equal(word['and'](word, 3) == 6, true)
        check.equal(word['or'](word, 4) == 2, true)
        check.equal(word:xor(1) == 6, true)
        check.equal(word:min(-1) == 7, true) -- signed
        check.equal(word:umin(9) > 100, true)
        check.equal(word:umax(11) == 9, true)
        check.equal(word:max(-5) == 11, true)
        refuses('argument', word.read, word, 7)
    end
    local flag = atomics.word32(memory, 0)
    check.equal(flag:test_and_set(), true)
    check.equal(flag:test_and_set(), false)
    flag:clear()
    check.equal(flag:test_and_set(), true)
    local cell = atomics.aba(memory, 16)
    cell:write(3)
    local value, count = cell:read()
    cell:write(4)
    cell:write(3)
    local done, now, writes = cell:compare_exchange(value, count, 9)
    check.equal(done, false)
    check.equal(tonumber(now), 3)
    check.equal(tonumber(writes), 3)
    check.equal(cell:compare_exchange(now, writes, 9), true)
    check.equal(cell:compare_exchange_value(8, 1), false)
    check.equal(cell:compare_exchange_value(9, 1), true)
    value, count = cell:exchange(2)
    check.equal(tonumber(value), 1)
    check.equal(tonumber(count), 5)
    refuses('offset 12 is not that of 8 bytes, aligned to 8, in a memory of 64 bytes', atomics.word64, memory, 12)
    refuses('offset 64', atomics.word32, memory, 64)
    refuses('offset -8', atomics.word64, memory, -8)
    refuses('offset nan', atomics.word64, memory, 0 / 0)
    refuses('offset 56', atomics.aba, memory, 56)
    refuses("no comparison '='", atomics.wait, { { flag, '=', 1 } })
    check.equal(select(3, atomics.wait({ { flag, '==', 0 } }, 1, 1e6)), muster.TIMEOUT)
    local which = assert(atomics.wait({ { flag, '==', 0 }, { atomics.word64(memory, 16), '<=', 2 } }, 1, 20e9))
    check.equal(tostring(which[1]) .. tostring(which[2]), 'falsetrue')
end

-- A second program adds to a word, retires an offset, and is killed while it is pinned.
local function second(path)
    local memory = assert(atomics.attach(path))
    local epoch = assert(epochs.open { fd = memory.fd, offset = 4096 })
    local token = assert(epoch:register())
    token:pin()
    assert(token:retire(320))
    local word = atomics.word64(memory, 0)
    word:add(1)
    word:notify()
    ffi.cdef 'int kill(int process, int signal); int getpid(void);'
    ffi.C.kill(ffi.C.getpid(), 9)
end

function tests.another_process_that_is_killed_blocks_no_other()
    local path = ('/dev/shm/muster-lua-test-%s'):format(os.tmpname():match '[^/_]*$')
    local limits = { max_tokens = 4, max_pending = 64 }
    local memory = assert(atomics.share(path, 4096 + epochs.size(limits)))
    local right, why, status = atomics.share(path, 64)
    check.equal(status, muster.E_SYSTEM)
    check.says(why, 'cannot be opened')
    local epoch = assert(epochs.create { fd = memory.fd, offset = 4096, max_tokens = 4, max_pending = 64 })
    check.equal(select(3, epochs.create { fd = memory.fd, offset = 4096, max_tokens = 4, max_pending = 64 }), muster.E_EXISTS)
    local token = assert(epoch:register())
    os.execute(("luajit '%s' '%s' 2>/dev/null"):format(arg[0], path))
    assert(atomics.wait({ { atomics.word64(memory, 0), '>=', 1 } }, 1, 20e9))
    local numbers = {}
    for _ = 1, 4 do
        assert(token:synchronize(20e9))
        for _, number in ipairs(token:poll()) do numbers[#numbers + 1] = number end
    end
    check.equal(list(numbers), '320')
    check.equal(epoch:stats().deaths, 1)
    token:close()
    epoch:close()
    memory:close()
    refuses('in a memory of 0 bytes', atomics.word64, memory, 0)
    assert(os.remove(path))
end

if arg[1] then
    second(arg[1])
else
    check.run(tests)
end
