-- SPDX-License-Identifier: MIT
-- An elastic group: at any time its members know the sum of the numbers of all members, while members join and leave.
--   luajit elastic.lua                        starts three members, kills one, starts another later, checks their output
--   luajit elastic.lua --member URL NUMBER    one member; it ends when the key "finish" is set in the store at URL
-- A round of the rendezvous is one world of members. Each writes its number to the store of that round, and reads those of
-- all others; when a member dies, or a process waits to join, all join again.
local folder = arg[0]:match('^(.*)/') or '.'
package.path = folder .. '/../../bindings/lua/?.lua;' .. package.path
local ffi = require 'ffi'
local muster = require 'muster'
local stores = require 'muster.store'
ffi.cdef [[
    int pipe2(int *fds, int flags); ssize_t write(int fd, const void *from, size_t size);
    ssize_t read(int fd, void *to, size_t size);
]]
local C = ffi.C
local O_CLOEXEC, POLLIN, SIGKILL = 0x80000, 1, 9
local most_members = 3

local function end_of(loop)
    loop:close()
    loop.context:close(1e9)
end

-- ---- a member

local changing = { [muster.RENDEZVOUS_DEAD] = true, [muster.RENDEZVOUS_LEFT] = true,
    [muster.RENDEZVOUS_ABORTED] = true, [muster.RENDEZVOUS_EXPELLED] = true }

local function is_over(member, round)
    local over = false
    for event in member:events() do
        local waiting = event.kind == muster.RENDEZVOUS_WAITING and event.count > 0
        over = over or (tonumber(event.round) == round.number and (changing[event.kind] or waiting))
    end
    return over
end

-- Runs until the round is over, or until the job is over and all members have arrived at its end: then it is true.
local function take_part(loop, member, job, number)
    local round = assert(member:join())
    local part = 'part/' .. round.rank
    local written, why, status = round.store:ask { kind = muster.STORE_SET, key = part, value = tostring(number) }
    if status == muster.E_STALE then return false end
    assert(written, why)
    local parts, sum = {}, nil
    for rank = 0, round.world - 1 do parts[rank + 1] = { kind = muster.STORE_GET, key = 'part/' .. rank } end
    assert(round.store:begin(loop:tag(function(_, object) -- they may not have written it yet
        if object == nil then return end -- the round was over
        sum = 0
        for _, entry in ipairs(stores.results(object)) do sum = sum + tonumber(entry.value) end
        print(('round %d: number %d is rank %d of %d, the sum is %d'):format(round.number, number, round.rank,
            round.world, sum))
        io.flush()
        loop:notify(job.news)
    end), parts))
    while not (sum and job.finish) do
        if is_over(member, round) then return false end
        loop:wait(job.news)
    end
    return member:ask(muster.RENDEZVOUS_EXIT) == muster.OK
end

local function be_member(url, number)
    local loop = muster.loop(assert(muster.context_create { secret_fd_plus_one = 3 + 1 }))
    local job = { news = loop:tag() }
    loop:run(function()
        local store = stores.open(loop, url)
        assert(store:begin(loop:tag(function(_, object)
            if object ~= nil then stores.results(object) end
            job.finish = true
            loop:notify(job.news)
        end), { { kind = muster.STORE_GET, key = 'finish' } }))
        local member = stores.rendezvous(store, 'sum', { min = 1, max = most_members, last_call_ns = 0.2e9 },
            function() loop:notify(job.news) end)
        while not take_part(loop, member, job, number) do end
        member:ask(muster.RENDEZVOUS_LEAVE)
    end)
    end_of(loop)
end

-- ---- the process that starts them

-- Lines of a pipe, for a task that waits for the next one.
local function lines_of(loop, fd)
    local lines, news, buffer, rest = {}, loop:tag(), ffi.new('char[4096]'), ''
    loop:watch(fd, { wants = function() return POLLIN end, turn = function()
        rest = rest .. ffi.string(buffer, math.max(0, tonumber(C.read(fd, buffer, 4096))))
        rest = rest:gsub('([^\n]*)\n', function(line)
            lines[#lines + 1] = line
            return ''
        end)
        loop:notify(news)
    end })
    return function()
        while #lines == 0 do loop:wait(news) end
        return table.remove(lines, 1)
    end
end

-- Waits until so many members have printed this sum in one round.
local function await_sum(next_line, world, sum)
    local seen, last = 0, nil
    while seen < world do
        local line = next_line()
        print(line)
        local round, of, got = line:match('^round (%d+): number %d+ is rank %d+ of (%d+), the sum is (%d+)$')
        if tonumber(of) == world and tonumber(got) == sum then
            seen = round == last and seen + 1 or 1
            last = round
        end
    end
end

local function run_group()
    local loop = muster.loop(assert(muster.context_create()))
    local server = assert(muster.store_server_open(loop.context, 'tcp://127.0.0.1:0'))
    local url = assert(server:address())
    local store = stores.open(loop, url)
    local output, secret = ffi.new('int[2]'), assert(loop.context:secret())
    assert(C.pipe2(output, O_CLOEXEC) == 0)
    local function start(number)
        local secrets = ffi.new('int[2]')
        assert(C.pipe2(secrets, O_CLOEXEC) == 0 and C.write(secrets[1], secret, #secret) == #secret)
        local process = assert(muster.process_spawn(loop.context, {
            argv = { 'luajit', arg[0], '--member', url, tostring(number) },
            fds = { { parent_fd = output[1], child_fd = 1 }, { parent_fd = secrets[0], child_fd = 3 } } }))
        C.close(secrets[0])
        C.close(secrets[1])
        return process
    end
    loop:run(function()
        local next_line, members = lines_of(loop, output[0]), {}
        for number = 1, 3 do members[number] = start(number) end
        await_sum(next_line, 3, 1 + 2 + 3)
        print('number 2 is killed')
        assert(members[2]:kill(SIGKILL))
        await_sum(next_line, 2, 1 + 3)
        print('number 4 comes late')
        members[4] = start(4)
        await_sum(next_line, 3, 1 + 3 + 4)
        assert(store:ask { kind = muster.STORE_SET, key = 'finish', value = 'now' })
        for number, member in ipairs(members) do
            local code, signal = loop:exit_of(member)
            assert(number == 2 and signal == SIGKILL or code == 0, number)
        end
        print('all of them knew the right sum, and ended well')
        loop:unwatch(output[0])
    end)
    server:close(1e9)
    end_of(loop)
end

if arg[1] == '--member' and #arg == 3 then
    be_member(arg[2], arg[3])
elseif #arg == 0 then
    run_group()
else
    io.stderr:write('usage: luajit elastic.lua\n')
    os.exit(2)
end
