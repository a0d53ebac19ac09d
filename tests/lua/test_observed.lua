-- SPDX-License-Identifier: MIT
-- What can be observed: traces, metrics, addresses; and calls that give up in time. MUSTER_BUILD: a build folder, whose
-- `muster trace` reads the files.
local muster = require 'muster'
local metrics = require 'muster.metrics'
local stores = require 'muster.store'
local traces = require 'muster.trace'
local check = require 'check'

local second = 1e9
local tests = {}

local function with_loop(body)
    local context = assert(muster.context_create { secret = 'a secret of these tests' })
    local loop = assert(muster.loop(context))
    loop:run(function() body(loop, context) end)
    loop:close()
    assert(context:close(second))
end

function tests.spans_and_marks_are_in_the_file()
    local path = os.tmpname()
    check.equal(traces.state().on, false)
    assert(traces.start { name = 'lua', events = 256 })
    local right, why, status = traces.start()
    check.equal(right, nil)
    check.equal(status, muster.E_EXISTS)
    local a, b = traces.span('outer', function(...)
        traces.mark('now', 'what is passed on')
        return ...
    end, 4, nil)
    check.equal(a, 4)
    check.equal(b, nil)
    check.says(select(2, pcall(traces.span, 'fails', error, 'as it should')), 'as it should')
    local state = traces.state()
    check.equal(state.events, 5)
    check.equal(state.threads, 1)
    check.equal(state.offset_error, nil)
    assert(traces.save(path))
    local text = table.concat(check.lines(('%s/bin/muster trace %s'):format(os.getenv 'MUSTER_BUILD', path)), '\n')
    for _, name in ipairs { 'host outer', 'host now', 'host fails' } do
        check.equal(text:match('\n  ' .. name .. ' +(%d+) times'), '1', name)
    end
    os.remove(path)
    right, why = traces.save '/no/such/folder'
    check.equal(right, nil)
    check.says(why, '/no/such/folder')
    traces.stop()
    check.equal(traces.state().on, false)
end

function tests.the_number_of_a_flow_is_that_of_FNV_1a()
    check.equal(traces.flow_of '', 0xcbf29ce484222325ULL)
    check.equal(traces.flow_of 'foobar', 0x85944171f73967e8ULL)
end

function tests.metrics_are_a_text_and_are_published()
    with_loop(function(loop, context)
        local server = assert(muster.store_server_open(context, 'tcp://127.0.0.1:0'))
        local store = stores.open(loop, assert(server:address()), 5 * second)
        check.says(assert(metrics.text(context)), '# TYPE muster_streams gauge')
        local publication = assert(metrics.publish(store, { name = 'lua', interval_ns = second / 10 }))
        local found = assert(store:ask_within(20 * second,
            { kind = muster.STORE_GET, key = 'muster/metrics/lua' })) -- waits until the key is present
        check.says(found[1].value, 'muster_streams')
        check.equal(publication:state().failed, 0)
        publication:close()
        local refused, why, status = metrics.publish(store, { name = 'a/b' })
        check.equal(refused, nil)
        check.equal(status, muster.E_ARG)
        server:close(second)
    end)
end

function tests.a_stream_names_both_ends_and_is_flushed()
    with_loop(function(loop)
        local listener = assert(loop:listen 'tcp://127.0.0.1:0')
        local near = assert(loop:dial(listener:address()))
        local far = assert(listener:accept(5 * second))
        check.equal(near:local_address(), far:peer())
        check.equal(far:local_address(), near:peer())
        assert(near:write 'hello')
        check.equal(near:flush(5 * second), true)
        check.equal(far:read(5), 'hello')
        near:close()
        check.equal(select(3, near:flush()), muster.E_CLOSED)
        local a = assert(muster.stream_pair(loop.context))
        check.equal(select(3, a:local_address()), muster.E_UNSUPPORTED)
    end)
end

function tests.what_does_not_end_in_time_says_so()
    with_loop(function(loop, context)
        local listener = assert(loop:listen 'inproc://late')
        local near = assert(loop:dial 'inproc://late')
        assert(listener:accept(5 * second))
        check.equal(select(3, near:read(1, second / 20)), muster.TIMEOUT)
        check.equal(select(3, near:write(('x'):rep(64 * 1024 * 1024), second / 20)), muster.TIMEOUT) -- nothing reads it
        near:abort(1, 'enough')
        local process = assert(muster.process_spawn(context, { argv = { 'sleep', '1000' } }))
        check.equal(select(3, loop:exit_of(process, second / 20)), muster.TIMEOUT)
        assert(process:kill(9))
        local code, signal = loop:exit_of(process, 20 * second)
        check.equal(code, nil)
        check.equal(signal, 9)
        local begun = os.time()
        check.says(select(2, pcall(stores.open, loop, 'tcp://127.0.0.1:1', second / 10)), '127.0.0.1:1')
        check.equal(os.time() - begun < 9, true)
    end)
end

check.run(tests)
