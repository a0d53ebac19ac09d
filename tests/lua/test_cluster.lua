-- SPDX-License-Identifier: MIT
-- A cluster of Lua programs, over each transport: the acceptance program. Then what can go wrong.
--   luajit test_cluster.lua [tcp|shm|star ...]
local ffi = require 'ffi'
local muster = require 'muster'
local clusters = require 'muster.cluster'
local check = require 'check'

ffi.cdef 'int getpid(void); int kill(int pid, int signal);'
local me = ffi.C.getpid()
local second = 1e9
local tests = {}

-- What this process holds of the machine: children, descriptors, shared memory, listening sockets.
local function held()
    local children = check.lines(('cat /proc/%d/task/*/children 2>/dev/null | tr " " "\\n" | grep .'):format(me))
    local others = {}
    for _, child in ipairs(children) do -- but the shell that lists them
        local names = check.lines(('cat /proc/%s/comm 2>/dev/null'):format(child))
        if names[1] and names[1] ~= 'sh' then others[#others + 1] = child .. ' ' .. names[1] end
    end
    local descriptors = check.lines(('ls /proc/%d/fd'):format(me))
    local shared = check.lines(('ls /dev/shm | grep muster-lua-%d'):format(me)) -- others may be at work
    local sockets = check.lines(("grep -c muster-lua-%d /proc/net/unix"):format(me))
    return { children = table.concat(others, ', '), descriptors = #descriptors, shared = #shared, sockets = sockets[1] }
end

local function checksum(text)
    local sum = 0
    local bytes = require('ffi').cast('const uint8_t *', text)
    for i = 0, #text - 1 do sum = (sum * 31 + bytes[i]) % 4294967296 end
    return sum
end

-- Where a master and its workers listen; the broker, if there is one; how a worker is launched, if not as usual.
local ways = {}
function ways.tcp() return 'tcp://127.0.0.1:0?upgrade=no', 'tcp://127.0.0.1:0?upgrade=no' end
function ways.shm() return ('shm://muster-lua-%d-0'):format(me), ('shm://muster-lua-%d-{}'):format(me) end
function ways.star(context)
    local broker = assert(muster.broker_open(context, 'zmq://127.0.0.1:0/'))
    local at = broker:address():match '127%.0%.0%.1:%d+'
    return ('zmq://master@%s/c'):format(at), ('zmq://w{}@%s/c'):format(at), broker
end

-- By a transport written in Lua, which each program serves on the only thread it has.
function ways.lua(_, loop)
    local folder = ('%s/muster-lua-%d'):format(os.getenv 'TMPDIR' or '/tmp', me)
    assert(os.execute(('mkdir -m 700 %s'):format(folder)) == 0)
    require('transport').serve(loop)
    local argv = { clusters.interpreter(), '-e', 'require("muster.cluster").work(nil, require("transport").serve)' }
    return ('lua://%s/0'):format(folder), ('lua://%s/{}'):format(folder), nil, argv, folder
end

local function accept_over(way)
    local before = held()
    local context = assert(muster.context_create())
    local loop = assert(muster.loop(context))
    local at
    loop:run(function()
        local master, worker, broker, argv, folder = ways[way](context, loop)
        at = folder
        local cluster = assert(clusters.open(loop, { listen = master }))
        local dead = {}
        function cluster.on_event(kind, member, text) if kind == muster.CLUSTER_DEAD then dead[member] = text end end
        assert(cluster:add(4, { listen = worker, argv = argv }))
        assert(cluster:wait_for(4))

        -- 100,000 numbers; in the middle one is killed.
        local list = {}
        for i = 1, 100000 do list[i] = i end
        local victim = tonumber(cluster:member(2).pid)
        loop:spawn(function()
            loop:sleep(0.05)
            ffi.C.kill(victim, 9)
        end)
        local squares = assert(cluster:map(function(x)
            local slow = 0
            for i = 1, 2000 do slow = slow + i % 3 end
            return x * x
        end, list, { batch = 250 }))
        check.equal(#squares, 100000)
        for i = 1, 100000 do if squares[i] ~= i * i then error('the square of ' .. i) end end
        while not dead[2] do cluster:next_event() end
        check.equal(dead[2], 'killed by signal 9 (Killed)')

        -- 80 MB both ways.
        local big = ('0123456789abcdef'):rep(5e6)
        local back, sum = cluster:call(1, function(text)
            local total = 0
            local bytes = require('ffi').cast('const uint8_t *', text)
            for i = 0, #text - 1 do total = (total * 31 + bytes[i]) % 4294967296 end
            return text, total
        end, big)
        check.equal(#back, 80e6)
        check.equal(sum, checksum(big))
        check.equal(checksum(back), sum)
        back, big = nil, nil

        -- 80 MB to all, and a word to two of them and to one who is gone.
        for _, member in ipairs(cluster:members()) do
            cluster:call(member, function()
                muster_here.on_broadcast = function(text, from, named) told = { #text, text:sub(-3), from, named } end
            end)
        end
        local function await_told(member, expected) -- it has the bytes, but may not have looked
            local heard
            for _ = 1, 200 do
                heard = cluster:call(member, function() return told and table.concat(told, ' ') end)
                if heard == expected then return end
                loop:sleep(0.01)
            end
            check.equal(heard, expected)
        end
        assert(cluster:broadcast(('0123456789abcdef'):rep(5e6), nil, 'big'))
        for _, member in ipairs(cluster:members()) do await_told(member, '80000000 def 0 big') end
        local got, why, status, each = cluster:broadcast('word', { 4, 2, 1 })
        check.equal(got, nil)
        check.says(why, 'member 2')
        check.equal(status, muster.E_STALE)
        check.equal(table.concat(each, ' '), ('0 %d 0'):format(muster.E_STALE))
        await_told(4, '4 ord 0 ')

        -- Two come late, and workers call each other.
        assert(cluster:add(2, { listen = worker, argv = argv }))
        assert(cluster:wait_for(5))
        check.equal(cluster:call(5, function() return muster_here:call(6, function() return muster_here:self() end) end), 6)

        -- A long task is interrupted; its worker goes on. (Where it serves its transport itself it cannot hear of it.)
        local ended = way == 'lua' and 'interrupted'
        if not ended then loop:spawn(function()
            local _, why = cluster:call(3, function()
                jit.off(true, true)
                muster_here:call(0, function() computing = true end)
                while true do end
            end)
            ended = why
        end) end
        while not ended and not computing do cluster:call(1, function() end) end
        computing = nil
        while not ended do -- one that comes while it waits for that call's end is not for it
            assert(cluster:interrupt(3))
            loop:sleep(0.1)
        end
        check.equal(cluster:call(3, function() return 'alive' end), 'alive')
        check.says(ended, 'interrupted')

        -- Who has another secret does not come in.
        local stranger = assert(muster.context_create { secret = ('another secret'):rep(2) })
        if way == 'tcp' then
            local _, _, status = muster.transport_dial(stranger, cluster:member(0).address and
                ffi.string(cluster:member(0).address) .. '?upgrade=no', nil, 5 * second)
            check.equal(status, muster.E_AUTH)
        end
        stranger:close(0)
        stranger:release()

        assert(cluster:close())
        if broker then
            broker:close(second)
            broker:release()
        end
    end)
    loop:close()
    assert(context:close(second))
    context:release()
    collectgarbage()
    collectgarbage()
    if at then -- but the socket of the one that was killed
        check.equal(table.concat(check.lines('ls ' .. at), ' '), '2', 'files left')
        os.execute('rm -r ' .. at)
    end
    local after = held()
    for _ = 1, 50 do -- a plug-in's library may still be closing its own
        if after.descriptors <= before.descriptors then break end
        os.execute 'sleep 0.1'
        after = held()
    end
    check.equal(after.children, '', 'what is left of children')
    check.equal(after.sockets, '0', 'sockets left')
    check.equal(after.shared, before.shared, 'shared memory left')
    if after.descriptors > before.descriptors then
        error(('%d descriptors before, %d after'):format(before.descriptors, after.descriptors))
    end
end

for _, way in ipairs { 'tcp', 'shm', 'star', 'lua' } do
    tests['a_cluster_does_its_work_over_' .. way] = function() accept_over(way) end
end

function tests.who_serves_the_way_in_on_its_only_thread_does_not_wait_there()
    local context = assert(muster.context_create())
    local loop = assert(muster.loop(context))
    require('transport').serve(loop)
    local way = { master = 'lua:///nowhere/at/all', listen = '' }
    -- Another thread may be about to serve: the library waits for one for two seconds.
    local cluster, why, status = muster.worker_start(context, way, 20 * second)
    check.equal(cluster, nil)
    check.equal(status, muster.E_WOULD_DEADLOCK)
    check.says(why, 'has to serve')
    loop:run(function()
        cluster, why, status = clusters.join(loop, way)
        check.equal(cluster, nil)
        check.equal(status, muster.E_UNREACHABLE)
        check.says(why, 'No such file')
    end)
    loop:close()
    assert(context:close(second))
end

local function in_cluster(count, body)
    local context = assert(muster.context_create())
    local loop = assert(muster.loop(context))
    loop:run(function()
        local cluster = assert(clusters.open(loop))
        assert(cluster:add(count))
        assert(cluster:wait_for(count))
        body(cluster, loop)
        cluster:close()
    end)
    assert(context:close(second))
end

function tests.errors_of_a_call_are_returned_to_the_caller()
    in_cluster(1, function(cluster)
        local value, why = cluster:call(1, function() error 'no such luck' end)
        check.equal(value, nil)
        check.says(why, 'no such luck')
        value, why = cluster:call(1, function() return coroutine.create(print) end)
        check.equal(value, nil)
        check.says(why, 'a thread cannot be sent')
        check.equal(pcall(function() return cluster:call(1, function() return check end) end), false)
        local _, _, status = cluster:call(7, function() end)
        check.equal(status, muster.E_NOT_FOUND)
        value, why = cluster:map(function(x) if x == 3 then error 'three' end return x end, { 1, 2, 3, 4 }, { batch = 1 })
        check.equal(value, nil)
        check.says(why, 'three')
        check.equal(cluster:call(1, function(...) return select('#', ...) end, nil, nil, nil), 3)
    end)
end

function tests.members_share_a_store_and_are_a_group()
    in_cluster(2, function(cluster, loop)
        local store = assert(cluster:store(20 * second))
        assert(store:ask { kind = muster.STORE_SET, key = 'greeting', value = 'hello' })
        local sum_up = function()
            local muster, groups = require 'muster', require 'muster.group'
            local store = assert(muster_here:store())
            local found = assert(store:ask { kind = muster.STORE_GET, key = 'greeting' })
            assert(store:ask { kind = muster.STORE_SET, key = 'here/' .. muster_here:self(), value = 'yes' })
            local group = groups.open(muster_here.loop, { cluster = muster_here, size = 3 })
            return group:all_reduce('+', { group.rank, 1 })[1], found[1].value, group:close()
        end
        local found, done = {}, 0
        for member = 1, 2 do
            loop:spawn(function()
                found[member] = { cluster:call(member, sum_up) }
                done = done + 1
                loop:notify 'done'
            end)
        end
        -- The next call holds up this program: the others have to be called by then.
        for member = 1, 2 do
            assert(store:ask_within(30 * second, { kind = muster.STORE_GET, key = 'here/' .. member }))
        end
        local group = require('muster.group').open(loop, { cluster = cluster, size = 3 })
        check.equal(group.rank, 0)
        check.equal(group:all_reduce('+', { 0, 1 })[1], 3)
        group:close()
        local deadline = loop:deadline(60 * second)
        while done < 2 do check.equal(loop:wait('done', deadline) ~= muster.TIMEOUT, true) end
        for member = 1, 2 do
            check.equal(found[member][1], 3)
            check.equal(found[member][2], 'hello')
        end
    end)
end

function tests.calls_end_when_their_worker_dies()
    in_cluster(2, function(cluster, loop)
        local pid = tonumber(cluster:member(1).pid)
        loop:spawn(function()
            loop:sleep(0.1)
            ffi.C.kill(pid, 9)
        end)
        local value, _, status = cluster:call(1, function() while true do end end)
        check.equal(value, nil)
        check.equal(type(status), 'number')
        check.equal(cluster:call(2, function() return 'here' end), 'here')
    end)
end

-- The stream of the calls is aborted here: the write of the next call finds that before the task that reads does.
function tests.a_call_that_cannot_be_sent_is_not_late()
    in_cluster(1, function(cluster)
        local function add(x) return x + 1 end
        check.equal(cluster:call(1, add, 1), 2)
        for _, timeout_ns in ipairs { -1, 60 * second } do
            cluster.callers[1].stream.handle:abort(7, 'a test')
            local value, why, status = cluster:call_within(timeout_ns, 1, add, 1)
            check.equal(value, nil)
            check.says(why, 'a test')
            check.equal(status, muster.E_ABORTED)
            check.equal(cluster:call(1, add, 2), 3) -- over another stream
        end
    end)
end

-- Tasks call members, which call each other meanwhile; functions wait, fail, and are too late. Each call gets its own reply.
function tests.replies_reach_their_calls()
    local seed = tonumber(os.getenv 'MUSTER_SEED') or os.time()
    math.randomseed(seed)
    local function serve(number, pause_s, kind)
        if kind == 'through' then
            local other = muster_here:self() % 2 + 1
            local got = { muster_here:call(other, function(x, seconds)
                if seconds > 0 then muster_here.loop:sleep(seconds) end
                return x
            end, number, pause_s) }
            return got[1], kind
        end
        if pause_s > 0 then muster_here.loop:sleep(pause_s) end
        if kind == 'fails' then error('failure ' .. number, 0) end
        if kind == 'many' then return number, kind, 1, 2, 3, nil end
        if kind == 'long' then return number, kind, ('x'):rep(100000) end
        return number, kind
    end
    local kinds = { 'plain', 'plain', 'through', 'fails', 'many', 'long' }
    in_cluster(2, function(cluster, loop)
        local counts, tasks, next_number = { right = 0, late = 0 }, 0, 0
        local function one_call()
            next_number = next_number + 1
            local number, kind = next_number, kinds[math.random(#kinds)]
            local pause_s = math.random() < 0.5 and 0 or math.random() * 0.005
            local timeout_ns = math.random() < 0.3 and math.random(1, 4e6) or -1
            local results = { cluster:call_within(timeout_ns, math.random(2), serve, number, pause_s, kind) }
            local what = ('call %d, %s, %g s, %g ns, seed %d'):format(number, kind, pause_s, timeout_ns, seed)
            if results[1] == nil and results[3] == muster.TIMEOUT and timeout_ns > 0 then
                counts.late = counts.late + 1
                return
            end
            counts.right = counts.right + 1
            if kind == 'fails' then return check.equal(results[2], 'failure ' .. number, what) end
            check.equal(results[1], number, what .. ': ' .. tostring(results[2]))
            check.equal(results[2], kind, what)
            if kind == 'many' then check.equal(results[5], 3, what) end
            if kind == 'long' then check.equal(#results[3], 100000, what) end
        end
        for _ = 1, 12 do
            tasks = tasks + 1
            loop:spawn(function()
                for _ = 1, 150 do one_call() end
                tasks = tasks - 1
                loop:notify 'over'
            end)
        end
        local deadline = loop:deadline(60 * second)
        while tasks > 0 do assert(loop:wait('over', deadline) ~= muster.TIMEOUT, 'calls without a reply, seed ' .. seed) end
        assert(counts.right > 100 and counts.late > 10, ('%d right, %d late'):format(counts.right, counts.late))
    end)
end

function tests.without_workers_a_map_ends()
    in_cluster(1, function(cluster, loop)
        local pid = tonumber(cluster:member(1).pid)
        local value, why, status = cluster:map(function(x)
            if x == 2 then os.exit(5) end
            return x
        end, { 1, 2, 3 }, { batch = 1 })
        check.equal(value, nil)
        check.equal(why, 'no worker is left')
        check.equal(status, muster.E_PEER)
        check.equal(type(pid), 'number')
    end)
end

-- The last batches are those of a worker that dies when the others have nothing left to do.
function tests.what_a_worker_had_that_died_last_is_done_by_another()
    in_cluster(2, function(cluster)
        local squares = assert(cluster:map(function(x)
            if muster_here:self() == 1 then
                require('ffi').cdef 'int usleep(unsigned);'
                require('ffi').C.usleep(300000)
                os.exit(5)
            end
            return x * x
        end, { 1, 2, 3, 4, 5, 6 }, { batch = 1 }))
        check.equal(table.concat(squares, ' '), '1 4 9 16 25 36')
    end)
end

-- A manager in Lua: it pulls requests, and starts what it is asked to start.
function tests.a_manager_written_in_lua_launches_and_kills()
    local context = assert(muster.context_create())
    local loop = assert(muster.loop(context))
    local heard, children = {}, {}
    ffi.cdef 'int pipe2(int *ends, int flags); long write(int fd, const char *from, size_t size);'
    loop.requests[muster.REQUEST_MANAGER] = function(request)
        local what = muster.struct 'manager_request'
        check.equal(muster.C.muster_manager_request_read(loop.queue, request, what), muster.OK)
        heard[#heard + 1] = what.operation
        if what.operation ~= muster.MANAGER_LAUNCH then
            if what.operation == muster.MANAGER_KILL then children[what.member]:kill(9) end
            assert(muster.manager_request_done(loop.queue, request))
            return
        end
        for member = what.member, what.member + what.count - 1 do
            local ticket = assert(muster.manager_ticket(loop.queue, request, member))
            local ends = ffi.new 'int[2]'
            check.equal(ffi.C.pipe2(ends, 0x80000), 0)
            check.equal(tonumber(ffi.C.write(ends[1], ticket, #ticket)), #ticket)
            ffi.C.close(ends[1])
            children[member] = assert(muster.process_spawn(context, {
                argv = { arg[-1], '-e', 'require("muster.cluster").work()' },
                envp = { 'LUA_PATH=' .. package.path, 'MUSTER_WORKER_FD=3', 'MUSTER_LIBRARY=' .. os.getenv 'MUSTER_LIBRARY' },
                fds = { { parent_fd = ends[0], child_fd = 3 } },
            }))
            ffi.C.close(ends[0])
            assert(muster.manager_worker_ready(loop.queue, request, member, nil, 1000 + member))
        end
    end
    local wants = muster.MANAGER_REGISTER + muster.MANAGER_KILL
    assert(muster.manager_serve(context, 'lua', wants, loop.queue, 7))
    loop:run(function()
        local cluster = assert(clusters.open(loop))
        assert(cluster:add(2, { manager = 'lua' }))
        assert(cluster:wait_for(2))
        check.equal(tonumber(cluster:member(2).data), 1002)
        check.equal(assert(cluster:call(1, function() return assert(muster_here:call(2, function() return 'two' end)) end)), 'two')
        loop:spawn(function() cluster:call(2, function() while true do end end) end)
        loop:sleep(0.1)
        assert(cluster:remove(2, 0)) -- by force
        assert(cluster:close())
    end)
    for member = 1, 2 do
        assert(children[member]:wait(10 * second))
        children[member]:release()
    end
    local counts = {}
    for _, want in ipairs(heard) do counts[want] = (counts[want] or 0) + 1 end
    check.equal(counts[muster.MANAGER_LAUNCH], 1)
    check.equal(counts[muster.MANAGER_REGISTER], 2)
    check.equal(counts[muster.MANAGER_KILL], 1)
    assert(context:close(second))
end

local chosen = {}
for _, name in ipairs(arg) do chosen[name] = true end
if #arg > 0 then
    for name in pairs(tests) do
        local wanted = false
        for part in pairs(chosen) do wanted = wanted or name:find(part, 1, true) end
        if not wanted then tests[name] = nil end
    end
end
check.run(tests)
