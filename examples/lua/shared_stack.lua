-- SPDX-License-Identifier: MIT
-- Four programs share a stack in a file of /dev/shm, without a lock, and one of them is killed. Nodes are offsets. A node
-- that was popped is used again when no program can read it any more.
--   luajit shared_stack.lua
local ffi = require 'ffi'
local atomics = require 'muster.atomic'
local epochs = require 'muster.epoch'

local workers, nodes, rounds = 3, 1000, 100000
local limits = { max_tokens = 8, max_pending = 1024 } -- all nodes may wait: then retire() always has room
local top_at, started_at, stop_at, nodes_at = 0, 16, 24, 64 -- each node: the offset of the next one, and a value
local epoch_at = 16384

local function stack_of(memory, epoch)
    local top, token = atomics.aba(memory, top_at), assert(epoch:register())
    local stack = { token = token }
    local function next_of(node) return ffi.cast('volatile uint64_t *', memory:at(node, 16, 16)) end

    function stack.push(node)
        repeat
            local first, count = top:read()
            next_of(node)[0] = first
        until top:compare_exchange(first, count, node)
    end

    local function pop()
        local first, count = top:read()
        while first ~= 0 do
            local popped, found, writes = top:compare_exchange(first, count, next_of(first)[0])
            if popped then return first end
            first, count = found, writes
        end
    end
    function stack.pop() return token:pinned(pop) end

    -- Puts nodes back whose time has come.
    function stack.reuse()
        for _, node in ipairs(token:poll()) do stack.push(node) end
    end
    return stack
end

local function work(path)
    local memory = assert(atomics.attach(path))
    local stack = stack_of(memory, assert(epochs.open { fd = memory.fd, offset = epoch_at }))
    local started, stop = atomics.word64(memory, started_at), atomics.word64(memory, stop_at)
    started:add(1)
    started:notify()
    while stop:read() == 0 do
        local node = stack.pop()
        if node then assert(stack.token:retire(node)) end
        stack.reuse()
    end
end

if arg[1] then return work(arg[1]) end

local path = ('/dev/shm/muster-example-%s'):format(os.tmpname():match '[^/_]*$')
local memory = assert(atomics.share(path, epoch_at + epochs.size(limits)))
local epoch = assert(epochs.create { fd = memory.fd, offset = epoch_at, max_tokens = limits.max_tokens,
    max_pending = limits.max_pending })
local stack = stack_of(memory, epoch)
for i = 0, nodes - 1 do stack.push(nodes_at + 16 * i) end
local pids = {}
for i = 1, workers do
    local pipe = assert(io.popen(("luajit '%s' '%s' >/dev/null & echo $!"):format(arg[0], path)))
    pids[i] = pipe:read 'n'
    pipe:close()
end
assert(atomics.wait({ { atomics.word64(memory, started_at), '==', workers } }, 1, 20e9))
local taken = 0
while taken < rounds do
    local node = stack.pop() -- nil while all nodes wait
    if node then
        assert(stack.token:retire(node))
        taken = taken + 1
        if taken == rounds / 2 then os.execute(('kill -KILL %d'):format(pids[1])) end
    end
    stack.reuse()
end
atomics.word64(memory, stop_at):write(1)

-- Every node is on the stack in the end, except the nodes that the killed program had taken and not returned: one
-- after a pop, or up to 8 after a poll.
local until_time = os.time() + 20
repeat
    stack.token:synchronize(1e9)
    stack.reuse()
    local stats = epoch:stats()
until (stats.pending == 0 and stats.tokens == 1) or os.time() > until_time
local found = 0
while stack.pop() do found = found + 1 end
local stats = epoch:stats()
print(('%d nodes were used %d times by %d programs; one was killed, %d token was taken over, %d nodes are left'):format(nodes,
    stats.freed, workers + 1, stats.deaths, found))
assert(found >= nodes - 8 and stats.pending == 0)
stack.token:close()
epoch:close()
memory:close()
assert(os.remove(path))
