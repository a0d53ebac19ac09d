-- SPDX-License-Identifier: MIT
-- The transport written in LuaJIT (examples/lua/transport.lua), between two processes: what the library promises of any
-- transport, over one that pulls its requests on the program's only thread.
--   lua_transport.lua FOLDER            FOLDER: examples/lua; MUSTER_CDEF and MUSTER_LIBRARY as there
package.path = arg[1] .. '/?.lua;' .. package.path
local ffi = require 'ffi'
local host = require 'host'
local transport = require 'transport'
local muster = host.library
ffi.cdef [[
    int pipe2(int *fds, int flags); ssize_t write(int fd, const void *from, size_t size); int getpid(void);
    int getppid(void); unsigned alarm(unsigned seconds); int memcmp(const void *a, const void *b, size_t size);
]]
local C = ffi.C
local O_CLOEXEC, SIGKILL, second = 0x80000, 9, 1000000000
local OK, END, PEER, ABORTED = muster.MUSTER_OK, muster.MUSTER_E_END, muster.MUSTER_E_PEER, muster.MUSTER_E_ABORTED

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

-- ---- the second process: does with each stream what its greeting asks for

local asked = {}

function asked.echo(stream)
    for bytes in function() return stream:read() end do
        if stream:write(bytes) < 0 then return end
    end
    stream:finish()
end

-- Everything to its end; only then an answer: how much, and whether each byte was in its place.
function asked.count(stream)
    local total, right = 0, true
    while true do
        local bytes, status = stream:read()
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
    gate = gate or stream.host:tag()
    if not opened then stream.host:wait(gate) end
    asked.count(stream)
end

function asked.open(stream)
    opened = true
    gate = gate or stream.host:tag()
    muster.muster_queue_post(stream.host.queue, gate, 0)
    stream:finish()
end

function asked.abort(stream)
    stream:read(1)
    stream:abort(7, 'as was asked')
end

-- Says how its stream ended.
local ended
function asked.witness(stream)
    local _, status = stream:read()
    ended = ('%d %d %s'):format(status, stream:reason())
end

function asked.ended(stream)
    stream:write(ended or 'not yet')
    stream:finish()
end

function asked.hold(stream)
    stream:write('!')
    stream.host:wait(stream.host:tag()) -- for ever
end

local function be_the_peer(address)
    local h = host.new(3)
    muster.muster_process_exit_with(h.context, C.getppid(), 0, nil)
    transport.serve(h)
    local listener = h:listen(address)
    h:task(function()
        while true do
            local stream = h:accept(listener)
            h:task(function()
                asked[stream:greeting()](stream)
                stream:close()
            end)
        end
    end)
    h:run()
end

-- ---- the first process

local number = 0

-- The other process; its streams begin in tasks.
local function start_peer(h)
    number = number + 1
    local address = ('lua://%s/lua-%d-%d'):format(os.getenv('TMPDIR') or '/tmp', C.getpid(), number)
    local ends, secret = ffi.new('int[2]'), h:secret()
    assert(C.pipe2(ends, O_CLOEXEC) == 0)
    local process = h:spawn({ 'luajit', arg[0], arg[1], '--peer', address }, { [3] = ends[0] })
    assert(C.write(ends[1], secret, #secret) == #secret)
    C.close(ends[0])
    C.close(ends[1])
    return { process = process, address = address }
end

local function dial(h, peer, greeting)
    local stream, _, why = h:dial(peer.address, greeting, 10 * second) -- it may not listen yet
    return assert(stream, why)
end

local function kill(peer) host.check(muster.muster_process_kill(peer.process, SIGKILL), 'kill') end

local scenarios = {}

function scenarios.bytes_go_there_and_back(h, peer)
    local stream = dial(h, peer, 'echo')
    for _, size in ipairs { 1, 2, 65535, 65536, 65537, 300000 } do
        local sent, got = piece_at(size, size), ''
        h:task(function() same(stream:write(sent), OK, 'write') end)
        while #got < size do got = got .. assert(stream:read()) end
        assert(got == sent, size)
    end
    stream:close()
end

function scenarios.a_half_close_leaves_the_other_direction(h, peer)
    local stream = dial(h, peer, 'count')
    same(stream:write(piece_at(0, 1000)), OK, 'write')
    same(stream:finish(), OK, 'finish')
    same(stream:read(), '1000 true', 'the answer')
    same(select(2, stream:read()), END, 'after it')
    stream:close()
end

function scenarios.an_abort_brings_its_reason(h, peer)
    local stream = dial(h, peer, 'abort')
    same(stream:write('x'), OK, 'write')
    same(select(2, stream:read()), ABORTED, 'read')
    local code, text = stream:reason()
    same(code, 7, 'code')
    assert(text:find('as was asked', 1, true), text)
    stream:close()
    -- and the other way
    local witness = dial(h, peer, 'witness')
    same(witness:abort(11, 'enough of it'), OK, 'abort')
    witness:close()
    local told
    repeat
        local asking = dial(h, peer, 'ended')
        told = asking:read()
        asking:close()
    until told ~= 'not yet'
    same(told:match('^(%-?%d+ %d+) '), ('%d 11'):format(ABORTED), 'what the peer saw')
    assert(told:find('enough of it', 1, true), told)
end

function scenarios.a_killed_peer_is_told(h)
    local peer = start_peer(h)
    local reading, writing = dial(h, peer, 'hold'), dial(h, peer, 'hold')
    same(reading:read(), '!', 'its sign')
    local over = 0
    h:task(function()
        local status
        repeat status = writing:write(piece_at(0, length)) until status ~= OK
        same(status, PEER, 'writing')
        over = over + 1
    end)
    h:task(function()
        same(select(2, reading:read()), PEER, 'reading')
        local _, why = reading:reason()
        assert(#why > 0)
        over = over + 1
    end)
    kill(peer)
    local code, signal = h:exit_of(peer.process)
    same(signal, SIGKILL, 'how it ended')
    assert(not code)
    while over < 2 do h:pause(20) end
    reading:close()
    writing:close()
end

function scenarios.a_reader_that_does_not_read_stops_its_writer(h, peer)
    local stream, total, sent = dial(h, peer, 'gated'), 100 * 1000 * 1000, 0
    h:task(function()
        while sent < total do
            local piece = piece_at(sent, math.min(256 * 1024, total - sent))
            same(stream:write(piece), OK, 'write')
            sent = sent + #piece
        end
        stream:finish()
    end)
    -- It goes on for as long as there is room anywhere.
    local before
    repeat
        before = sent
        h:pause(200)
    until sent == before and sent > 0
    assert(sent < 24 * 1024 * 1024, ('%d bytes were taken for a reader that does not read'):format(sent))
    -- Another stream is not held up by it.
    local other = dial(h, peer, 'echo')
    same(other:write('through'), OK, 'write')
    same(other:read(), 'through', 'echo')
    other:close()
    local open = dial(h, peer, 'open')
    same(select(2, open:read()), END, 'opened')
    open:close()
    same(stream:read(), ('%d true'):format(total), 'what arrived')
    same(sent, total, 'what was sent')
    stream:close()
end

function scenarios.many_streams_share_the_thread(h, peer)
    local left = 40
    for i = 1, left do
        h:task(function()
            local stream, sent, got = dial(h, peer, 'echo'), piece_at(i, 200000), {}
            h:task(function()
                same(stream:write(sent), OK, 'write')
                stream:finish()
            end)
            for bytes in function() return stream:read() end do got[#got + 1] = bytes end
            assert(table.concat(got) == sent)
            stream:close()
            left = left - 1
        end)
    end
    while left > 0 do h:pause(20) end
end

function scenarios.failures_say_why(h, peer)
    dial(h, peer, 'echo'):close()
    local stream, status, why = h:dial(peer.address .. '-nobody')
    assert(not stream)
    same(status, muster.MUSTER_E_UNREACHABLE, 'where nobody listens')
    assert(why:find('No such file', 1, true), why)
    same(select(2, h:dial('lua://')), muster.MUSTER_E_ADDRESS, 'without a path')
    local stranger = host.new() -- has a secret of its own
    transport.serve(stranger)
    stranger:task(function()
        same(select(2, stranger:dial(peer.address)), muster.MUSTER_E_AUTH, 'with another secret')
    end)
    stranger:run()
    stranger:close()
end

-- An open connection costs a heartbeat a second and nothing else.
function scenarios.idle_is_idle(h, peer)
    local stream = dial(h, peer, 'echo')
    same(stream:write('x'), OK, 'write')
    same(stream:read(), 'x', 'echo')
    h:pause(500) -- what the beginning left behind
    local turns, cpu = h.turns, os.clock()
    h:pause(3000)
    turns, cpu = h.turns - turns, os.clock() - cpu
    assert(turns < 60, ('%d turns in 3 s'):format(turns))
    assert(cpu < 0.1, ('%g s of CPU in 3 s'):format(cpu))
    stream:close()
end

if arg[2] == '--peer' then return be_the_peer(arg[3]) end

-- A wait in a task, by an event as everything else: the end of a child process.
local function pause(h, ms) h:exit_of(h:spawn { 'sleep', tostring(ms / 1000) }) end

local names = {}
for name in pairs(scenarios) do names[#names + 1] = name end
table.sort(names)
C.alarm(180)
local failures = 0
for _, name in ipairs(names) do
    local h = host.new()
    h.pause = pause
    transport.serve(h)
    local right, why = pcall(function()
        local peer = start_peer(h)
        h:task(function()
            scenarios[name](h, peer)
            kill(peer)
        end)
        h:run()
    end)
    if right then h:close() end
    failures = failures + (right and 0 or 1)
    print(('%s %s%s'):format(right and 'ok     ' or 'FAILED ', name:gsub('_', ' '), right and '' or '\n' .. why))
end
os.exit(failures == 0 and 0 or 1)
