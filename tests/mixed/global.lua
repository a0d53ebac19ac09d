-- SPDX-License-Identifier: MIT
-- A locale of a global memory that programs of four languages share; see global.c.
local ffi = require 'ffi'
local muster = require 'muster'
local stores = require 'muster.store'
local groups = require 'muster.group'
local C = muster.C

local rank, url, way = tonumber(arg[1]), arg[2], arg[3]
local locales, rounds = 4, 200
local context = assert(muster.context_create())
local loop = muster.loop(context)
loop:run(function()
    local store = stores.open(loop, url)
    local group = groups.open(loop, { store = store.handle, rank = rank, size = locales, name = way, listen = 'tcp://127.0.0.1:0' })
    local flags = way == 'here' and 0 or muster.MEMORY_NO_SHARED_MEMORY
    local memory = assert(muster.memory_open(group.handle, { segment_bytes = 1048576, flags = flags }, 60e9))
    local top = assert(memory:pointer(0, assert(memory:symmetric(8, 8, 60e9))))
    local sums = assert(memory:pointer(0, assert(memory:symmetric(8, 8, 60e9))))
    local epoch = assert(memory:epoch())
    local place = ffi.new 'muster_epoch_token *[1]'
    assert(C.muster_epoch_register(epoch, place, nil) == 0)
    local token = place[0]

    local function read(cell) return assert(memory:run({ kind = muster.MEMORY_READ, target = cell }, 30e9)).value end
    local function write(cell, value) assert(memory:run({ kind = muster.MEMORY_WRITE, target = cell, value = value }, 30e9)) end
    local operation, seen = ffi.new 'muster_memory_operation', ffi.new 'muster_memory_result'
    local function exchange(cell, expected, value)
        ffi.fill(operation, ffi.sizeof(operation))
        operation.struct_size, operation.kind = ffi.sizeof(operation), muster.MEMORY_COMPARE_EXCHANGE
        operation.target, operation.expected, operation.value = cell, expected, value
        local status = C.muster_memory_run(memory, operation, 30e9, seen)
        assert(status >= 0)
        return status == 0
    end
    local function push(locale, value)
        local node = assert(memory:allocate(locale, 24, 30e9))
        write(node + 16, value)
        repeat
            local first = read(top)
            write(node, first)
        until exchange(top, first, node)
    end
    local function pop()
        C.muster_epoch_pin(token)
        local first, value
        repeat
            first = read(top)
            if first == 0 then break end
            value = read(first + 16)
        until exchange(top, first, read(first))
        C.muster_epoch_unpin(token)
        if first == 0 then return nil end
        assert(C.muster_epoch_retire(token, first) == 0)
        return value
    end

    local sum = 0ULL
    for i = 1, rounds do
        push((i + rank) % locales, i)
        sum = sum + i - (pop() or 0)
        assert(C.muster_memory_reclaim(memory, token, 16, 0, nil) >= 0)
    end
    assert(memory:run({ kind = muster.MEMORY_FETCH, target = sums, operation = muster.ATOMIC_ADD, value = sum }, 30e9))
    assert(group:barrier())
    assert(group:barrier())
    for _ = 1, 3 do
        assert(C.muster_epoch_synchronize(token, 30e9, nil) == 0)
        assert(C.muster_memory_reclaim(memory, token, 0xffffffff, 0, nil) == 0)
    end
    assert(C.muster_memory_flush(memory, 0xffffffff, 30e9) == 0)
    assert(group:barrier())
    assert(group:barrier())
    C.muster_epoch_unregister(token)
    memory:release()
    print 'Lua: done'
end)
