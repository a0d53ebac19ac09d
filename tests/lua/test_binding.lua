-- SPDX-License-Identifier: MIT
-- The binding itself: layouts as the C compiler has them, calls, errors, handles, tasks, values as bytes.
local ffi = require 'ffi'
local muster = require 'muster'
local surface = require 'muster.surface'
local packing = require 'muster.pack'
local check = require 'check'

local second = 1e9
local tests = {}

function tests.structs_are_laid_out_as_in_C()
    for _, struct in ipairs(surface.structs) do
        check.equal(ffi.sizeof(struct[1]), struct[2], struct[1])
        for _, field in ipairs(struct[3]) do
            check.equal(ffi.offsetof(struct[1], field[1]), field[2], struct[1] .. '.' .. field[1])
        end
    end
end

function tests.every_function_is_there()
    for _, entry in ipairs(surface.functions) do
        check.equal(type(muster[entry[1]:sub(8)]), 'function', entry[1])
    end
    check.equal(muster.E_PEER, -19)
    check.equal(muster.no_such_thing, nil)
end

function tests.errors_are_nil_a_sentence_and_a_status()
    local context, why, status = muster.context_create { window_bytes = 5 }
    check.equal(context, nil)
    check.says(why, 'window_bytes is 5')
    check.equal(status, muster.E_ARG)
    local right, text = pcall(muster.context_create, { windows = 5 })
    check.equal(right, false)
    check.says(text, 'muster_context_config has no field windows')
    context = assert(muster.context_create())
    local stream
    stream, why, status = muster.transport_dial(context, 'tcp://127.0.0.1:1', nil, second)
    check.equal(status, muster.E_UNREACHABLE)
    check.says(why, 'tcp://127.0.0.1:1')
end

function tests.a_secret_and_other_texts_come_whole()
    local secret = ('0123456789abcde\0'):rep(64) -- 1024 bytes, NULs among them
    local context = assert(muster.context_create { secret = secret })
    check.equal(context:secret(), secret)
    context:close(0)
end

function tests.handles_are_released_by_the_collector()
    local context = assert(muster.context_create())
    for _ = 1, 1000 do muster.stream_pair(context) end
    collectgarbage()
    collectgarbage()
    check.equal(tonumber(context:get_stats().streams_open), 0)
    check.equal(tonumber(context:get_stats().streams_made), 2000)
end

function tests.lists_of_structs_go_in_and_come_out()
    local context = assert(muster.context_create())
    local store = assert(muster.store_open(context, 'memory:', nil, second))
    local result = assert(muster.store_do(store, {
        { kind = muster.STORE_SET, key = 'one', value = 'first' },
        { kind = muster.STORE_ADD, key = 'two', number = 41 },
        { kind = muster.STORE_ADD, key = 'two', number = 1 },
    }, second))
    check.equal(type(result), 'cdata')
end

local function in_loop(body)
    local context = assert(muster.context_create())
    local loop = assert(muster.loop(context))
    loop:run(body, loop)
    assert(context:close(second))
end

function tests.tasks_wait_for_each_other_on_one_descriptor()
    in_loop(function(loop)
        local listener = assert(loop:listen 'tcp://127.0.0.1:0')
        loop:spawn(function()
            local stream = assert(listener:accept())
            while true do
                local text, _, status = stream:read_some()
                if not text then
                    check.equal(status, muster.E_END)
                    break
                end
                stream:write(text)
            end
            stream:finish()
            stream:close()
        end)
        local stream = assert(loop:dial(listener:address(), { hello = 'hello' }))
        local big = ('0123456789'):rep(1e6)
        loop:spawn(function() assert(stream:write(big)) end)
        check.equal(stream:read(#big), big)
        stream:finish()
        local text, _, status = stream:read(1)
        check.equal(text, nil)
        check.equal(status, muster.E_END)
        stream:close()
        listener:close()
    end)
end

function tests.an_error_in_a_task_ends_the_loop_with_its_place()
    local right, why = pcall(in_loop, function(loop)
        loop:sleep(0.01)
        error 'lost'
    end)
    check.equal(right, false)
    check.says(why, 'test_binding.lua')
    check.says(why, 'lost')
end

function tests.sleepers_wake_in_order()
    local order = {}
    in_loop(function(loop)
        for _, wait in ipairs { 0.03, 0.01, 0.02 } do
            loop:spawn(function()
                loop:sleep(wait)
                order[#order + 1] = wait
            end)
        end
    end)
    check.equal(table.concat(order, ' '), '0.01 0.02 0.03')
end

function tests.tasks_ask_a_store()
    local stores = require 'muster.store'
    local loop = muster.loop(assert(muster.context_create()))
    loop:run(function()
        local store = stores.open(loop, 'memory:')
        local got
        loop:spawn(function() got = assert(store:ask { kind = muster.STORE_GET, key = 'late' })[1].value end) -- waits for it
        assert(store:ask({ kind = muster.STORE_SET, key = 'late', value = 'there' },
            { kind = muster.STORE_SET, key = 'soon', value = 'too' }))
        while not got do loop:sleep(0.001) end
        check.equal(got, 'there')
        local found, why, status = store:ask { kind = muster.STORE_SET, key = 'soon', value = 'x', expected = 'y',
            condition = muster.STORE_IF_VALUE }
        check.equal(status, muster.E_CHANGED)
        local member = stores.rendezvous(store, 'alone', { min = 1 })
        local round = member:join()
        check.equal(round.rank, 0)
        check.equal(round.world, 1)
        check.equal(member:ask(muster.RENDEZVOUS_EXIT), muster.OK)
    end)
end

-- A pipe of the program's own beside what Muster tells.
function tests.descriptors_are_watched()
    ffi.cdef 'int pipe(int *ends); ssize_t write(int fd, const void *from, size_t size); ssize_t read(int fd, void *to, size_t size);'
    local loop = muster.loop(assert(muster.context_create()))
    local ends, bytes, heard = ffi.new 'int[2]', ffi.new 'char[8]', ''
    assert(ffi.C.pipe(ends) == 0)
    local news = loop:tag()
    loop:watch(ends[0], { wants = function() return 1 end, turn = function()
        heard = heard .. ffi.string(bytes, ffi.C.read(ends[0], bytes, 8))
        loop:notify(news)
    end })
    loop:run(function()
        loop:spawn(function()
            loop:sleep(0.01)
            ffi.C.write(ends[1], 'hello', 5)
        end)
        while heard ~= 'hello' do loop:wait(news) end
        local process = assert(muster.process_spawn(loop.context, { argv = { 'sh', '-c', 'exit 7' } }))
        check.equal(loop:exit_of(process), 7)
        loop:unwatch(ends[0])
        local code, signal = loop:exit_of(assert(muster.process_spawn(loop.context, { argv = { 'sh', '-c', 'kill -9 $$' } })))
        check.equal(code, nil)
        check.equal(signal, 9)
    end)
    for i = 0, 1 do ffi.C.close(ends[i]) end
    loop:close()
end

local function there_and_back(...)
    local place, size = packing.pack(...)
    local bytes = place and ffi.string(place, size) or table.concat(size)
    local length = ffi.new 'uint32_t[1]'
    ffi.copy(length, bytes, 4)
    check.equal(length[0], #bytes - 4)
    return packing.unpack(ffi.cast('const uint8_t *', bytes), 4, #bytes), bytes
end

function tests.values_go_there_and_back()
    local list = {}
    for i = 1, 1000 do list[i] = i / 3 end
    local values = there_and_back(nil, true, false, -0.5, 'a\0b', list, { 1, 'two', { deep = {} }, [7] = 8 },
        function(x) return x + 1 end, 2LL ^ 53, -1LL, 0xffffffffffffffffULL)
    check.equal(values[1], nil)
    check.equal(values[2], true)
    check.equal(values[4], -0.5)
    check.equal(values[5], 'a\0b')
    check.equal(#values[6], 1000)
    check.equal(values[6][1000], 1000 / 3)
    check.equal(values[7][2], 'two')
    check.equal(type(values[7][3].deep), 'table')
    check.equal(values[7][7], 8)
    check.equal(values[8](1), 2)
    check.equal(values[10], -1LL)
    check.equal(values[11], 0xffffffffffffffffULL)
    local much = ('x'):rep(100000) -- goes uncopied, in pieces
    values = there_and_back('before', much, 'between', list, much .. 'y', 'behind')
    check.equal(values[1], 'before')
    check.equal(values[2], much)
    check.equal(values[3], 'between')
    check.equal(values[4][1000], 1000 / 3)
    check.equal(values[5], much .. 'y')
    check.equal(values[6], 'behind')
    local many = {}
    for i = 1, 30 do many[i] = ('%d'):format(i):rep(1000) end -- more than the usual room, each of it short
    check.equal(there_and_back(many)[1][30], many[30])
    check.equal(there_and_back('after that')[1], 'after that')
    local outside = 1
    local right, why = pcall(packing.pack, function() return outside end)
    check.equal(right, false)
    check.says(why, 'outside')
    local round = {}
    round.round = round
    check.equal(pcall(packing.pack, round), false)
    check.equal(pcall(packing.pack, coroutine.create(print)), false)
end

-- Cut anywhere, or with any byte changed, it is an error or some value: never a crash, never memory without bound.
function tests.bytes_that_are_no_values_are_refused()
    local _, bytes = there_and_back({ 1, 2, 3, key = 'text' }, 'more', 5LL)
    for past = 4, #bytes - 1 do
        check.equal(pcall(packing.unpack, ffi.cast('const uint8_t *', bytes), 4, past), false)
    end
    for at = 5, #bytes do
        for _, byte in ipairs { 0, 91, 115, 123, 125, 255 } do
            local changed = bytes:sub(1, at - 1) .. string.char(byte) .. bytes:sub(at + 1)
            pcall(packing.unpack, ffi.cast('const uint8_t *', changed), 4, #changed)
        end
    end
end

check.run(tests)
