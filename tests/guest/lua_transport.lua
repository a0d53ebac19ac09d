-- SPDX-License-Identifier: MIT
-- The transport written in LuaJIT (examples/lua/transport.lua), between two processes: what the library promises of any
-- transport, over one that pulls its requests on the program's only thread.
--   lua_transport.lua FOLDER            FOLDER: examples/lua
package.path = arg[1] .. '/?.lua;' .. arg[1] .. '/../../bindings/lua/?.lua;' .. package.path
local ffi = require 'ffi'
local muster = require 'muster'
local transport = require 'transport'
ffi.cdef [[
    int pipe2(int *fds, int flags); ssize_t write(int fd, const void *from, size_t size); int getpid(void);
    int getppid(void); unsigned alarm(unsigned seconds); int memcmp(const void *a, const void *b, size_t size);
]]
local C = ffi.C
local O_CLOEXEC, SIGKILL = 0x80000, 9
local END, PEER, ABORTED = muster.E_END, muster.E_PEER, muster.E_ABORTED

local function same(got, wanted, what)
    if tonumber(got) and tonumber(wanted) then got, wanted = tonumber(got), tonumber(wanted) end
    if got ~= wanted then error(('%s: %s instead of %s'):format(what, tostring(got), tostring(wanted)), 2) end
end

-- Bytes whose position shows: the length is prime, so shifted or exchanged pieces differ.
local length = 1000003
local sequence = ffi.new('uint8_t[?]', 2 * length)
for i = 0, 2 * length - 1 do sequence[i] = bit.band((i % length) * 2654435761 / 65536, 255) end
local function piece_at(position, size) return ffi.string(sequence + position % length, math.min(size, length)) end
local function differs(bytes, position)
    while #bytes > 0 do
        local n = math.min(#bytes, length)
        if C.memcmp(ffi.cast('const char *', bytes), sequence + position % length, n) ~= 0 then return true end
        bytes, position = bytes:sub(n + 1), position + n
    end
    return false
end

-- ---- the second process: does with each stream what its hello asks for

local asked = {}

function asked.echo(stream)
    for bytes in function() return stream:read_some() end do
        if not stream:write(bytes) then return end
    end
    stream:finish()
end

-- Everything to its end; only then an answer: how much, and whether each byte was in its place.
function asked.count(stream)
    local total, right = 0, true
    while true do
        local bytes, _, status = stream:read_some()
        if not bytes then
            if status ~= END then return end
            break
        end
        right = right and not differs(bytes, total)
        total = total + #bytes
    end
    stream:write(('%d %s'):format(total, tostring(right)))
    stream:finish()
end

-- Reads nothing until "open" comes on a stream of its own.
local gate, opened
function asked.gated(stream)
    gate = gate or stream.loop:tag()
    if not opened then stream.loop:wait(gate) end
    asked.count(stream)
end

function asked.open(stream)
    opened = true
    gate = gate or stream.loop:tag()
    stream.loop.queue:post(gate, 0)
    stream:finish()
end

function asked.abort(stream)
    stream:read_some(1)
    stream:abort(7, 'as was asked')
end

-- Says how its stream ended.
local ended
function asked.witness(stream)
    local _, _, status = stream:read_some()
    ended = ('%d %d %s'):format(status, stream:reason())
end

function asked.ended(stream)
    stream:write(ended or 'not yet')
    stream:finish()
end

function asked.hold(stream)
    stream:write('!')
    stream.loop:wait(stream.loop:tag()) -- for ever
end

local function be_the_peer(address)
    local loop = muster.loop(assert(muster.context_create { secret_fd_plus_one = 3 + 1 }))
    muster.process_exit_with(loop.context, C.getppid(), 0)
    transport.serve(loop)
    loop:run(function()
        local listener = assert(loop:listen(address)) -- this loop serves the transport
        while true do
            local stream = assert(listener:accept())
            loop:spawn(function()
                asked[stream:hello()](stream)
                stream:close()
            end)
        end
    end)
end

-- ---- the first process

local number = 0

-- The other process; its streams begin in tasks.
local function start_peer(loop)
    number = number + 1
    local address = ('lua://%s/lua-%d-%d'):format(os.getenv('TMPDIR') or '/tmp', C.getpid(), number)
    local ends, secret = ffi.new('int[2]'), assert(loop.context:secret())
    assert(C.pipe2(ends, O_CLOEXEC) == 0)
    local process = assert(muster.process_spawn(loop.context, { argv = { 'luajit', arg[0], arg[1], '--peer', address },
        fds = { { parent_fd = ends[0], child_fd = 3 } } }))
    assert(C.write(ends[1], secret, #secret) == #secret)
    C.close(ends[0])
    C.close(ends[1])
    return { process = process, address = address }
end

local function dial(loop, peer, hello)
    return assert(loop:dial(peer.address, { hello = hello, retry_ns = 10e9 })) -- it may not listen yet
end

local function kill(peer) assert(peer.process:kill(SIGKILL)) end

-- A wait in a task, by an event as everything else: the end of a child process.
local function pause(loop, ms)
    loop:exit_of(assert(muster.process_spawn(loop.context, { argv = { 'sleep', tostring(ms / 1000) } })))
end

local scenarios = {}

function scenarios.bytes_go_there_and_back(loop, peer)
    local stream = dial(loop, peer, 'echo')
    for _, size in ipairs { 1, 2, 65535, 65536, 65537, 300000 } do
        local sent, got = piece_at(size, size), ''
        loop:spawn(function() assert(stream:write(sent)) end)
        while #got < size do got = got .. assert(stream:read_some()) end
        assert(got == sent, size)
    end
    stream:close()
end

function scenarios.a_half_close_leaves_the_other_direction(loop, peer)
    local stream = dial(loop, peer, 'count')
    assert(stream:write(piece_at(0, 1000)))
    assert(stream:finish())
    same(stream:read_some(), '1000 true', 'the answer')
    same(select(3, stream:read_some()), END, 'after it')
    stream:close()
end

function scenarios.an_abort_brings_its_reason(loop, peer)
    local stream = dial(loop, peer, 'abort')
    assert(stream:write('x'))
    same(select(3, stream:read_some()), ABORTED, 'read')
    local code, text = stream:reason()
    same(code, 7, 'code')
    assert(text:find('as was asked', 1, true), text)
    stream:close()
    -- and the other way
    local witness = dial(loop, peer, 'witness')
    assert(witness:abort(11, 'enough of it'))
    witness:close()
    local told
    repeat
        local asking = dial(loop, peer, 'ended')
        told = asking:read_some()
        asking:close()
    until told ~= 'not yet'
    same(told:match('^(%-?%d+ %d+) '), ('%d 11'):format(ABORTED), 'what the peer saw')
    assert(told:find('enough of it', 1, true), told)
end

function scenarios.a_killed_peer_is_told(loop)
    local peer = start_peer(loop)
    local reading, writing = dial(loop, peer, 'hold'), dial(loop, peer, 'hold')
    same(reading:read_some(), '!', 'its sign')
    local over = 0
    loop:spawn(function()
        local right, _, status
        repeat right, _, status = writing:write(piece_at(0, length)) until not right
        same(status, PEER, 'writing')
        over = over + 1
    end)
    loop:spawn(function()
        same(select(3, reading:read_some()), PEER, 'reading')
        local _, why = reading:reason()
        assert(#why > 0)
        over = over + 1
    end)
    kill(peer)
    local code, signal = loop:exit_of(peer.process)
    same(signal, SIGKILL, 'how it ended')
    assert(not code)
    while over < 2 do pause(loop, 20) end
    reading:close()
    writing:close()
end

function scenarios.a_reader_that_does_not_read_stops_its_writer(loop, peer)
    local stream, total, sent = dial(loop, peer, 'gated'), 100 * 1000 * 1000, 0
    loop:spawn(function()
        while sent < total do
            local piece = piece_at(sent, math.min(256 * 1024, total - sent))
            assert(stream:write(piece))
            sent = sent + #piece
        end
        stream:finish()
    end)
    -- It goes on for as long as there is room anywhere.
    local before
    repeat
        before = sent
        pause(loop, 200)
    until sent == before and sent > 0
    assert(sent < 24 * 1024 * 1024, ('%d bytes were taken for a reader that does not read'):format(sent))
    -- Another stream is not held up by it.
    local other = dial(loop, peer, 'echo')
    assert(other:write('through'))
    same(other:read_some(), 'through', 'echo')
    other:close()
    local open = dial(loop, peer, 'open')
    same(select(3, open:read_some()), END, 'opened')
    open:close()
    same(stream:read_some(), ('%d true'):format(total), 'what arrived')
    same(sent, total, 'what was sent')
    stream:close()
end

function scenarios.many_streams_share_the_thread(loop, peer)
    local left = 40
    for i = 1, left do
        loop:spawn(function()
            local stream, sent, got = dial(loop, peer, 'echo'), piece_at(i, 200000), {}
            loop:spawn(function()
                assert(stream:write(sent))
                stream:finish()
            end)
            for bytes in function() return stream:read_some() end do got[#got + 1] = bytes end
            assert(table.concat(got) == sent)
            stream:close()
            left = left - 1
        end)
    end
    while left > 0 do pause(loop, 20) end
end

function scenarios.failures_say_why(loop, peer)
    dial(loop, peer, 'echo'):close()
    local stream, why, status = loop:dial(peer.address .. '-nobody')
    assert(not stream)
    same(status, muster.E_UNREACHABLE, 'where nobody listens')
    assert(why:find('No such file', 1, true), why)
    same(select(3, loop:dial('lua://')), muster.E_ADDRESS, 'without a path')
    local stranger = muster.loop(assert(muster.context_create())) -- has a secret of its own
    transport.serve(stranger)
    stranger:run(function()
        same(select(3, stranger:dial(peer.address)), muster.E_AUTH, 'with another secret')
    end)
    stranger:close()
    assert(stranger.context:close(1e9))
end

-- An open connection costs a heartbeat a second and nothing else.
function scenarios.idle_is_idle(loop, peer)
    local stream = dial(loop, peer, 'echo')
    assert(stream:write('x'))
    same(stream:read_some(), 'x', 'echo')
    pause(loop, 500) -- what the beginning left behind
    local turns, cpu = loop.turns, os.clock()
    pause(loop, 3000)
    turns, cpu = loop.turns - turns, os.clock() - cpu
    assert(turns < 60, ('%d turns in 3 s'):format(turns))
    assert(cpu < 0.1, ('%g s of CPU in 3 s'):format(cpu))
    stream:close()
end

if arg[2] == '--peer' then return be_the_peer(arg[3]) end

local names = {}
for name in pairs(scenarios) do names[#names + 1] = name end
table.sort(names)
C.alarm(180)
local failures = 0
for _, name in ipairs(names) do
    local loop = muster.loop(assert(muster.context_create()))
    transport.serve(loop)
    local right, why = pcall(function()
        local peer = start_peer(loop)
        loop:run(function()
            scenarios[name](loop, peer)
            kill(peer)
        end)
        loop:close()
        assert(loop.context:close(1e9))
    end)
    failures = failures + (right and 0 or 1)
    print(('%s %s%s'):format(right and 'ok     ' or 'FAILED ', name:gsub('_', ' '), right and '' or '\n' .. why))
end
os.exit(failures == 0 and 0 or 1)
