-- SPDX-License-Identifier: MIT
-- An elastic group: its members know, at any time, the sum of the numbers that they all bring, whoever comes and goes.
--   luajit elastic.lua                        starts three members, kills one, lets another come late, looks what they say
--   luajit elastic.lua --member URL NUMBER    one member; it ends when somebody sets the key "finish" in the store at URL
-- A round of the rendezvous is one world of members. Each writes its number to the store of that round, and reads those of
-- all others; when somebody dies or waits to be let in, all join again.
local folder = arg[0]:match('^(.*)/') or '.'
package.path = folder .. '/?.lua;' .. package.path
local ffi = require 'ffi'
local host = require 'host'
local stores = require 'store'
local muster, check = host.library, host.check
ffi.cdef [[
    int pipe2(int *fds, int flags); ssize_t write(int fd, const void *from, size_t size);
    ssize_t read(int fd, void *to, size_t size);
]]
local C = ffi.C
local O_CLOEXEC, POLLIN, SIGKILL, second = 0x80000, 1, 9, 1000000000
local most_members = 3

-- ---- a member

local changing = { [muster.MUSTER_RENDEZVOUS_DEAD] = true, [muster.MUSTER_RENDEZVOUS_LEFT] = true,
    [muster.MUSTER_RENDEZVOUS_ABORTED] = true, [muster.MUSTER_RENDEZVOUS_EXPELLED] = true }

local function is_over(member, round)
    local over = false
    for event in member:events() do
        local waiting = event.kind == muster.MUSTER_RENDEZVOUS_WAITING and event.count > 0
        over = over or (tonumber(event.round) == round.number and (changing[event.kind] or waiting))
    end
    return over
end

-- Until the round is over, or, when all have come to its end, the job: then it is true.
local function take_part(h, member, job, number)
    local round = member:join()
    local written, status, why = round.store:ask { kind = 'SET', key = 'part/' .. round.rank, value = number }
    if status == muster.MUSTER_E_STALE then return false end
    assert(written, why)
    local parts, sum = {}, nil
    for rank = 0, round.world - 1 do parts[rank + 1] = { kind = 'GET', key = 'part/' .. rank } end
    round.store:begin(h:tag(function(_, object) -- they may not have written it yet
        if object == nil then return end -- the round was over
        sum = 0
        for _, value in ipairs(stores.values(object)) do sum = sum + tonumber(value) end
        print(('round %d: number %d is rank %d of %d, the sum is %d'):format(round.number, number, round.rank,
            round.world, sum))
        io.flush()
        h:tell(job.news)
    end), parts)
    while not (sum and job.finish) do
        if is_over(member, round) then return false end
        h:wait(job.news)
    end
    return member:ask('EXIT') == muster.MUSTER_OK
end

local function be_member(url, number)
    local h = host.new(3)
    local job = { news = h:tag() }
    h:task(function()
        local store = stores.open(h, url)
        store:begin(h:tag(function(_, object)
            if object ~= nil then stores.values(object) end
            job.finish = true
            h:tell(job.news)
        end), { { kind = 'GET', key = 'finish' } })
        local member = stores.rendezvous(store, 'sum', { min = 1, max = most_members, last_call_ns = second / 5 },
            function() h:tell(job.news) end)
        while not take_part(h, member, job, number) do end
        member:ask('LEAVE')
    end)
    h:run()
    h:close()
end

-- ---- the process that starts them

-- Lines of a pipe, for a task that waits for the next one.
local function lines_of(h, fd)
    local lines, news, buffer, rest = {}, h:tag(), ffi.new('char[4096]'), ''
    h:watch(fd, { wants = function() return POLLIN end, turn = function()
        rest = rest .. ffi.string(buffer, math.max(0, tonumber(C.read(fd, buffer, 4096))))
        rest = rest:gsub('([^\n]*)\n', function(line)
            lines[#lines + 1] = line
            return ''
        end)
        h:tell(news)
    end })
    return function()
        while #lines == 0 do h:wait(news) end
        return table.remove(lines, 1)
    end
end

-- Until so many members say, in one round, that the sum of all is this.
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

local function serve(h)
    local server, url, size = ffi.new('muster_store_server *[1]'), ffi.new('char[256]'), ffi.new('size_t[1]')
    local anywhere = 'tcp://127.0.0.1:0'
    check(muster.muster_store_server_open(h.context, anywhere, #anywhere, nil, server, host.error), 'server')
    check(muster.muster_store_server_address(server[0], url, 256, size), 'address')
    return ffi.gc(server[0], muster.muster_store_server_release), ffi.string(url, size[0])
end

local function run_group()
    local h = host.new()
    local server, url = serve(h)
    local store = stores.open(h, url)
    local output, secret = ffi.new('int[2]'), h:secret()
    assert(C.pipe2(output, O_CLOEXEC) == 0)
    local function start(number)
        local secrets = ffi.new('int[2]')
        assert(C.pipe2(secrets, O_CLOEXEC) == 0 and C.write(secrets[1], secret, #secret) == #secret)
        local fds = { [1] = output[1], [3] = secrets[0] }
        local process = h:spawn({ 'luajit', arg[0], '--member', url, tostring(number) }, fds)
        C.close(secrets[0])
        C.close(secrets[1])
        return process
    end
    h:task(function()
        local next_line, members = lines_of(h, output[0]), {}
        for number = 1, 3 do members[number] = start(number) end
        await_sum(next_line, 3, 1 + 2 + 3)
        print('number 2 is killed')
        muster.muster_process_kill(members[2], SIGKILL)
        await_sum(next_line, 2, 1 + 3)
        print('number 4 comes late')
        members[4] = start(4)
        await_sum(next_line, 3, 1 + 3 + 4)
        assert(store:ask { kind = 'SET', key = 'finish', value = 'now' })
        for number, member in ipairs(members) do
            local code, signal = h:exit_of(member)
            assert(number == 2 and signal == SIGKILL or code == 0, number)
        end
        print('all of them knew the right sum, and ended well')
        h:unwatch(output[0])
    end)
    h:run()
    muster.muster_store_server_close(server, second)
    h:close()
end

if arg[1] == '--member' and #arg == 3 then
    be_member(arg[2], arg[3])
elseif #arg == 0 then
    run_group()
else
    io.stderr:write('usage: luajit elastic.lua\n')
    os.exit(2)
end
