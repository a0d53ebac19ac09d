-- SPDX-License-Identifier: MIT
-- A cluster of Lua programs: a master squares 100,000 numbers with four workers. One of them is killed in the middle: its
-- numbers are sent to others, and a fifth worker is added. Then all leave. (examples/c/cluster.c does the same in C.)
local ffi = require 'ffi'
local muster = require 'muster'

ffi.cdef 'int kill(int pid, int signal);'
local numbers = {}
for i = 1, 100000 do numbers[i] = i end

local loop = assert(muster.loop(assert(muster.context_create())))
loop:run(function()
    local cluster = assert(require('muster.cluster').open(loop))
    function cluster.on_event(kind, member, text)
        if kind ~= muster.CLUSTER_DEAD then return end
        print(('worker %d is dead: %s'):format(member, text))
        assert(cluster:add(1))
    end
    assert(cluster:add(4))
    assert(cluster:wait_for(4))
    local squared = 0
    local function square(x) return x * x end
    loop:spawn(function()
        cluster:call(1, square, 1)
        ffi.C.kill(tonumber(cluster:member(1).pid), 9)
    end)
    local squares = assert(cluster:map(square, numbers, { batch = 100 }))
    for i, x in ipairs(squares) do if x == i * i then squared = squared + 1 end end
    print(squared .. ' numbers are squared')
    assert(cluster:wait_for(4)) -- the fifth one is there
    print('worker 5 says', cluster:call(5, function() return muster_here:self() end))
    assert(cluster:close())
    print 'all have left'
end)
