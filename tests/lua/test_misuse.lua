-- SPDX-License-Identifier: MIT
-- Handles used after they were closed or released, closed while a task waits for them, collected with operations begun; waits
-- that end in time; and messages, functions and tasks that fail without taking the program with them.
local ffi = require 'ffi'
local muster = require 'muster'
local clusters = require 'muster.cluster'
local stores = require 'muster.store'
local check = require 'check'

local second = 1e9
local tests = {}

local function in_loop(body)
    local context = assert(muster.context_create())
    local loop = assert(muster.loop(context))
    loop:run(body, loop)
    loop:close()
    assert(context:close(second))
end

local function in_cluster(count, body)
    in_loop(function(loop)
        local cluster = assert(clusters.open(loop))
        assert(cluster:add(count))
        assert(cluster:wait_for(count, 60 * second))
        body(cluster, loop)
        cluster:close()
    end)
end

local function pair_of(loop)
    local one, other = assert(muster.stream_pair(loop.context))
    return loop:stream(one), loop:stream(other)
end

-- Stops the process; no thread of it runs any more when this returns. They run for a while after the signal.
local function stop_process(pid)
    local running = "grep -hqv ') T ' /proc/%d/task/*/stat"
    assert(os.execute(('kill -STOP %d; while ' .. running .. '; do sleep 0.01; done'):format(pid, pid)) == 0)
end

-- What a call gave, as text.
local function said(value, why, status) return ('%s, %s, %s'):format(tostring(value), tostring(why), tostring(status)) end

local stream_is_closed = ('nil, the stream is closed, %d'):format(muster.E_CLOSED)

-- ---- handles

-- One of each kind that can be had without other processes.
local function handles()
    local context = assert(muster.context_create())
    local queue = assert(muster.queue_create(context))
    local stream = assert(muster.stream_pair(context))
    local store = assert(muster.store_open(context, 'memory:', nil, second))
    local rendezvous = assert(muster.rendezvous_open(context, { run_id = 'x', store = store, queue = queue, min = 1, max = 1 },
        second))
    return { context = context, queue = queue, stream = stream, store = store, rendezvous = rendezvous,
        listener = assert(muster.transport_listen(context, 'tcp://127.0.0.1:0')),
        store_server = assert(muster.store_server_open(context, 'tcp://127.0.0.1:0')),
        process = assert(muster.process_spawn(context, { argv = { 'true' } })),
        agent = assert(muster.agent_start(context, { argv = { 'true' }, worker_count = 1 }, queue, 1)),
        cluster = assert(muster.cluster_open(context, { queue = queue, tag = 2 })),
        lease = assert(muster.store_lease(store, second, 0, second)),
        store_result = assert(muster.store_do(store, { { kind = muster.STORE_READ, key = 'k' } }, second)) }
end

function tests.every_function_refuses_a_released_handle()
    local have = handles()
    for _, handle in pairs(have) do handle:release() end
    local calls = 0
    for kind, handle in pairs(have) do
        for name, f in pairs(muster.methods['muster_' .. kind]) do
            local right, value, why, status = pcall(f, handle)
            if name == 'release' then
                check.equal(right, true, kind .. '_release')
            elseif right then
                check.equal(value, nil, kind .. '_' .. name)
                check.says(why, 'has been released')
                check.equal(status, muster.E_CLOSED)
            else
                check.says(value, 'has been released')
            end
            calls = calls + 1
        end
    end
    if calls < 100 then error(calls .. ' calls') end
    local right, why = pcall(muster.rendezvous_open, assert(muster.context_create()), { store = have.store }, second)
    check.equal(right, false) -- also in a struct
    check.says(why, 'store: the store has been released')
end

function tests.handles_are_released_in_any_order()
    math.randomseed(1)
    for _ = 1, 20 do
        local have, names = handles(), {}
        for name in pairs(have) do names[#names + 1] = name end
        while #names > 0 do have[table.remove(names, math.random(#names))]:release() end
        have = handles()
        for name in pairs(have) do have[name] = nil end -- one that is not the first goes with the others
        have = nil
        collectgarbage()
    end
end

function tests.buffers_of_begun_operations_outlive_the_collector()
    local context = assert(muster.context_create())
    for _ = 1, 100 do
        local queue = assert(muster.queue_create(context))
        local one, other = assert(muster.stream_pair(context))
        local place = ffi.new 'uint8_t[4096]'
        assert(one:read_begin(place, 4096, 0, queue, 1))
        queue:release() -- cancels it: nothing is written to `place` any more
        place = nil
        collectgarbage()
        other:write(('x'):rep(4096), 0)
        collectgarbage()
    end
    collectgarbage()
    check.equal(tonumber(context:get_stats().streams_open), 0)
end

-- ---- closed while a task waits

function tests.tasks_that_read_and_write_learn_that_their_stream_is_closed()
    in_loop(function(loop)
        local one, other = pair_of(loop)
        local heard = {}
        loop:spawn(function() heard.read = said(one:read(10)) end)
        loop:spawn(function() heard.some = said(one:read_some()) end)
        loop:spawn(function() heard.written = said(one:write(('x'):rep(64e6))) end)
        loop:spawn(function() heard.into = said(one:read_into(ffi.new 'uint8_t[4]', 4)) end)
        check.equal(next(heard), nil)
        one:close()
        for _, what in ipairs { 'read', 'some', 'written', 'into' } do check.equal(heard[what], stream_is_closed, what) end
        check.equal(said(one:read(1)), stream_is_closed)
        check.equal(said(one:write 'x'), stream_is_closed)
        check.equal(said(one:finish()), stream_is_closed)
        check.equal(said(one:abort(1, 'x')), stream_is_closed)
        check.equal(said(one:reason()), stream_is_closed)
        check.equal(said(one:hello()), stream_is_closed)
        one:close()
        other:close()
    end)
end

function tests.a_task_that_accepts_learns_that_its_listener_is_closed()
    in_loop(function(loop)
        local listener = assert(loop:listen 'tcp://127.0.0.1:0')
        local heard
        loop:spawn(function() heard = said(listener:accept()) end)
        listener:close()
        check.equal(heard, ('nil, the listener is closed, %d'):format(muster.E_CLOSED))
        check.equal(select(3, listener:accept()), muster.E_CLOSED)
        check.equal(select(3, listener:address()), muster.E_CLOSED)
        listener:close()
    end)
end

function tests.a_closed_loop_says_so()
    local loop = assert(muster.loop(assert(muster.context_create())))
    loop:close()
    loop:close()
    local right, why = pcall(loop.turn, loop, 0)
    check.equal(right, false)
    check.says(why, 'the loop is closed')
end

function tests.a_closed_cluster_says_so()
    in_cluster(1, function(cluster, loop)
        local heard
        loop:spawn(function() heard = select(3, cluster:wait_for(2)) end)
        cluster:close()
        check.equal(heard, muster.E_CLOSED)
        check.equal(select(3, cluster:call(1, print)), muster.E_CLOSED)
        check.equal(select(3, cluster:next_event()), muster.E_CLOSED)
        check.equal(select(3, cluster:add(1)), muster.E_CLOSED)
        check.equal(select(3, cluster:remove(1)), muster.E_CLOSED)
        check.equal(select(3, cluster:dial(1, 'x')), muster.E_CLOSED)
        check.equal(select(3, cluster:broadcast 'x'), muster.E_CLOSED)
        check.equal(cluster:self(), 0)
    end)
end

-- ---- tasks

function tests.a_loop_goes_on_after_a_task_has_failed()
    in_loop(function(outer)
        local loop = assert(muster.loop(outer.context))
        local one, other = pair_of(loop)
        local got
        loop:spawn(function() got = one:read(5) end)
        loop:spawn(function()
            loop:sleep(0.001)
            error 'lost'
        end)
        loop:spawn(function()
            loop:sleep(0.001)
            error 'lost too'
        end)
        local right, why = pcall(loop.run, loop)
        check.equal(right, false)
        check.says(why, 'lost')
        check.equal(loop:run(function()
            other:write 'hello'
            return 'run'
        end), 'run')
        check.equal(got, 'hello')
        one:close()
        other:close()
        loop:close()
    end)
end

function tests.run_gives_all_that_its_task_returns()
    local loop = assert(muster.loop(assert(muster.context_create())))
    local function returned(...) return select('#', ...), ... end
    local count, first, second_one, third = returned(loop:run(function(...) return nil, ..., nil end, 'a'))
    check.equal(count, 3)
    check.equal(first, nil)
    check.equal(second_one, 'a')
    check.equal(third, nil)
end

-- ---- waits that end in time

function tests.waits_end_in_time_and_lose_nothing()
    in_loop(function(loop)
        local one, other = pair_of(loop)
        local listener = assert(loop:listen 'tcp://127.0.0.1:0')
        local soon = 0.01 * second
        check.equal(select(3, listener:accept(soon)), muster.TIMEOUT)
        check.equal(select(3, one:read_some(10, soon)), muster.TIMEOUT)
        other:write 'abc'
        check.equal(select(3, one:read(5, soon)), muster.TIMEOUT)
        other:write 'defgh'
        check.equal(one:read(5), 'abcde') -- with the bytes of the read that timed out
        check.equal(one:read_some(2), 'fg')
        check.equal(select(3, one:read(3, soon)), muster.TIMEOUT)
        check.equal(one:read_some(), 'h')
        local _, _, status, written = one:write(('x'):rep(64e6), soon)
        check.equal(status, muster.TIMEOUT)
        check.equal(type(written), 'number')
        other:write 'last'
        other:finish()
        check.equal(select(3, one:read(5)), muster.E_END)
        check.equal(one:read(4), 'last') -- fewer bytes than wanted are not lost
        check.equal(select(3, one:read(1)), muster.E_END)
        local store = stores.open(loop, 'memory:')
        check.equal(select(3, store:ask_within(soon, { kind = muster.STORE_GET, key = 'never' })), muster.TIMEOUT)
        one:close()
        other:close()
        listener:close()
        check.equal(next(loop.timers), nil)
        check.equal(loop.sleepers, 0)
        check.equal(next(loop.waiting), nil)
    end)
end

function tests.calls_and_maps_end_in_time()
    in_cluster(1, function(cluster)
        check.equal(select(3, cluster:wait_for(2, 0.01 * second)), muster.TIMEOUT)
        local soon = 0.2 * second
        check.equal(select(3, cluster:call_within(soon, 1, function() muster_here.loop:sleep(30) end)), muster.TIMEOUT)
        check.equal(cluster:call_within(60 * second, 1, function(x) return x + 1 end, 1), 2)
        check.equal(select(3, cluster:map(function() muster_here.loop:sleep(30) end, { 1, 2 }, { timeout_ns = soon })),
            muster.TIMEOUT)
        check.equal(cluster:call(1, function() return 'still here' end), 'still here')
        local pid = tonumber(cluster:member(1).pid) -- a worker that reads nothing while much is sent
        stop_process(pid)
        check.equal(select(3, cluster:call_within(soon, 1, function() end, ('x'):rep(64e6))), muster.TIMEOUT)
        assert(os.execute('kill -CONT ' .. pid) == 0)
        check.equal(cluster:call(1, function() return 'and now' end), 'and now')
    end)
end

-- ---- stores

function tests.a_store_gives_keys_numbers_and_revisions()
    in_loop(function(loop)
        local store = stores.open(loop, 'memory:')
        local function ask(op) return assert(store:ask(op)) end
        check.equal(ask({ kind = muster.STORE_ADD, key = 'n', number = 41 })[1].number, 41)
        local set = ask { kind = muster.STORE_SET, key = 'k', value = '' }
        check.equal(set[1].version, set.revision)
        check.equal(ask({ kind = muster.STORE_READ, key = 'k' })[1].value, '')
        check.equal(ask({ kind = muster.STORE_READ, key = 'none' })[1].present, false)
        check.equal(ask({ kind = muster.STORE_COUNT, key = '' })[1].number, 2)
        local keys = ask { kind = muster.STORE_KEYS, key = '' }
        check.equal(#keys, 2)
        check.equal(keys[1].key .. keys[2].key, 'kn')
        local watched = ask { kind = muster.STORE_WATCH, key = 'n', version = 0 }
        check.equal(watched[1].key, 'n')
        check.equal(watched[1].value, '41')
        local list = ask { kind = muster.STORE_LIST, key = '', number = 1 }
        check.equal(list[1].more, true)
        local value, why, status, now = store:ask { kind = muster.STORE_SET, key = 'n', value = 'x', expected = 'y',
            condition = muster.STORE_IF_VALUE }
        check.equal(value, nil)
        check.equal(type(why), 'string')
        check.equal(status, muster.E_CHANGED)
        check.equal(now[1].failed, true)
        check.equal(now[1].value, '41')
        check.equal(select(3, store:ask { kind = 99, key = 'n' }), muster.E_ARG)
        check.equal(next(loop.waiting), nil)
    end)
end

-- ---- calls

function tests.many_values_come_back_and_too_many_are_an_error()
    in_cluster(1, function(cluster)
        check.equal(select('#', cluster:call(1, function() return unpack({}, 1, 300) end)), 300)
        local value, why = cluster:call(1, function() return unpack({}, 1, 5000) end)
        check.equal(value, nil)
        check.says(why, 'a message holds at most 4096')
        local right
        right, why = pcall(cluster.call, cluster, 1, function() end, unpack({}, 1, 5000))
        check.equal(right, false)
        check.says(why, 'a message holds at most 4096')
        check.equal(cluster:call(1, function() return 'goes on' end), 'goes on')
    end)
end

function tests.bytes_that_are_no_message_end_the_stream_only()
    in_cluster(1, function(cluster)
        check.equal(cluster:call(1, function() return 1 end), 1)
        local stream = assert(cluster:dial(1, 'lua'))
        stream:write '\4\0\0\0\255\255\255\255'
        check.equal(stream:read(1), nil)
        stream:close()
        for _, message in ipairs { { 'x' }, { 1, 'call', 1e9, function() end }, { 1, 'call', 1 }, { 1, 'call', 1, 'code' } } do
            stream = assert(cluster:dial(1, 'lua'))
            local bytes, size = require('muster.pack').pack(unpack(message, 1, 4))
            stream:write(ffi.string(bytes, size))
            check.equal(stream:read(1), nil)
            stream:close()
        end
        check.equal(cluster:call(1, function() return 2 end), 2)
    end)
end

-- An interrupt may meet the function that a member computes, not the task that goes on to read when it waits.
function tests.what_begins_when_a_task_waits_is_not_exposed()
    in_loop(function(loop)
        local is_exposed, was_exposed = false, nil
        loop.expose = function(on) is_exposed = on end
        loop:set_exposed(true)
        loop.before_wait[loop.running] = function() was_exposed = is_exposed end
        loop:sleep(0.001)
        check.equal(was_exposed, false)
        check.equal(is_exposed, true)
        check.equal(loop.before_wait[loop.running], nil)
        loop:sleep(0.001) -- it is called once
        loop:set_exposed(false)
    end)
end

function tests.a_stream_that_the_program_does_not_take_is_refused()
    in_cluster(1, function(cluster)
        local stream = assert(cluster:dial(1, 'mine'))
        local text, why = stream:read(1, 30 * second)
        check.equal(text, nil)
        check.says(why, "takes no streams; the label is 'mine'")
        stream:close()
    end)
end

function tests.functions_do_not_pile_up()
    in_cluster(1, function(cluster)
        local function made(i) return loadstring(('return %d'):format(i)) end
        local first = made(0)
        for i = 1, 1000 do
            check.equal(cluster:call(1, made(i)), i)
            check.equal(cluster:call(1, first), 0) -- is forgotten at times, and sent again
        end
        local count = 0
        for _ in pairs(cluster.callers[1].functions) do count = count + 1 end
        if count > 256 then error(count .. ' functions') end
        local before = cluster:call(1, function() collectgarbage() return collectgarbage 'count' end)
        for i = 1, 2000 do cluster:call(1, made(i)) end
        local after = cluster:call(1, function() collectgarbage() return collectgarbage 'count' end)
        if after > before + 200 then error(('%d KiB more in the worker'):format(after - before)) end
    end)
end

function tests.a_map_keeps_places_and_reports_what_cannot_be_sent()
    in_cluster(2, function(cluster)
        local doubled = assert(cluster:map(function(x) return x and 2 * x or 'nil' end, { 1, nil, 3, nil, 5 }, { batch = 2 }))
        for i = 1, 5 do check.equal(doubled[i], i % 2 == 1 and 2 * i or 'nil', i) end
        local value, why, status = cluster:map(function(x) return x end, { 1, print, coroutine.create(print) }, { batch = 1 })
        check.equal(value, nil)
        check.says(why, 'cannot be sent')
        check.equal(status, muster.E_ARG)
        check.equal(#assert(cluster:map(function(x) return x end, { 1, 2, 3 })), 3)
        check.equal(#assert(cluster:map(function(x) return x end, {})), 0)
    end)
end

function tests.an_entry_that_ends_workers_does_not_end_them_all()
    in_cluster(5, function(cluster)
        local list = {}
        for i = 1, 40 do list[i] = i end
        local value, why, status = cluster:map(function(x)
            if x == 7 then os.exit(5) end
            return x
        end, list, { batch = 4, max_tries = 3 })
        check.equal(value, nil)
        check.says(why, 'entry 7 of the list: 3 worker(s) ended while they had it')
        check.equal(status, muster.E_LIMIT)
        while #cluster:members() > 2 do assert(cluster:next_event(60 * second)) end
        check.equal(cluster:call(cluster:members()[1], function() return 'goes on' end), 'goes on')
        check.equal(#cluster:members(), 2)
    end)
end

check.run(tests)
