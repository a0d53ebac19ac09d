-- SPDX-License-Identifier: MIT
-- LuaJIT as a host, with nothing but ffi: it pulls what happens, on its one thread.
-- host_luajit.lua <cdef text>. Each scenario runs in a fork of this process, which itself never loads the library.
local ffi = require 'ffi'
local bit = require 'bit'
ffi.cdef(assert(io.open(arg[1])):read('*a'))
ffi.cdef [[
    int fork(void); int waitpid(int pid, int *status, int options); void _exit(int code); int getpid(void);
    int kill(int pid, int signal); unsigned alarm(unsigned seconds); int usleep(unsigned us); int sched_yield(void);
    typedef struct guest_pollfd { int fd; short events; short revents; } guest_pollfd;
    int poll(guest_pollfd *fds, unsigned long count, int timeout_ms); int close(int fd);
    void *dlopen(const char *path, int mode); void *dlsym(void *library, const char *name); int dlclose(void *library);
    typedef void (*guest_handler)(int); guest_handler signal(int signal, guest_handler handler);
    int execl(const char *path, const char *first, ...); char *strsignal(int signal);
]]
local C = ffi.C
local muster
local second = 1000000000
local SIGKILL, SIGCHLD, SIGALRM = 9, 17, 14
local library = assert(os.getenv('MUSTER_LIBRARY'))

local function load() muster = ffi.load(library) end

local function check(status, expected, err)
    if status ~= (expected or 0) then
        error(('status %d, not %d %s'):format(status, expected or 0, err and ffi.string(err.message) or ''), 2)
    end
end

local err = ffi.new('muster_error')
local entry = ffi.new('muster_completion')
local moved = ffi.new('size_t[1]')

local host = {}
host.__index = host

local function new_host(flags)
    local config = ffi.new('muster_context_config')
    check(muster.muster_config_init(config, ffi.sizeof(config)))
    config.flags = flags or 0
    local context, queue = ffi.new('muster_context *[1]'), ffi.new('muster_queue *[1]')
    check(muster.muster_context_create(config, context, err), 0, err)
    check(muster.muster_queue_create(context[0], nil, queue, err), 0, err)
    return setmetatable({ context = context[0], queue = queue[0] }, host)
end

function host:next(timeout_ns) return muster.muster_queue_next(self.queue, timeout_ns, entry, err) end

function host:pair()
    local one, other = ffi.new('muster_stream *[1]'), ffi.new('muster_stream *[1]')
    check(muster.muster_stream_pair(self.context, nil, one, other, err), 0, err)
    return one[0], other[0]
end

-- Dialling and accepting on one thread: the dial is begun, and its end is pulled.
function host:connect(address)
    local listener, accepted = ffi.new('muster_listener *[1]'), ffi.new('muster_stream *[1]')
    local real = ffi.new('char[256]')
    check(muster.muster_transport_listen(self.context, address, #address, nil, listener, err), 0, err)
    check(muster.muster_listener_address(listener[0], real, 256, moved))
    check(muster.muster_transport_dial_begin(self.context, real, moved[0], nil, 20 * second, self.queue, 7, err), 0, err)
    check(self:next(20 * second))
    assert(entry.kind == muster.MUSTER_DONE_DIAL and entry.tag == 7)
    check(entry.status, 0, err)
    local dialled = ffi.cast('muster_stream *', entry.object)
    check(muster.muster_listener_accept(listener[0], 20 * second, accepted, err), 0, err)
    muster.muster_listener_release(listener[0])
    return dialled, accepted[0]
end

function host:spawn(...)
    local words = { ... }
    local argv = ffi.new('const char *[?]', #words + 1)
    for i, word in ipairs(words) do argv[i - 1] = word end
    local config, process = ffi.new('muster_process_config'), ffi.new('muster_process *[1]')
    check(muster.muster_config_init(config, ffi.sizeof(config)))
    config.argv = argv
    check(muster.muster_process_spawn(self.context, config, process, err), 0, err)
    return process[0]
end

function host:close()
    check(muster.muster_queue_close(self.queue))
    muster.muster_queue_release(self.queue)
    assert(muster.muster_context_close(self.context, 20 * second) >= 0)
    muster.muster_context_release(self.context)
end

local function talk(one, other)
    local text = ('hello'):rep(1000)
    local got = ffi.new('char[?]', #text)
    for way = 1, 2 do
        check(muster.muster_stream_write(way == 1 and one or other, text, #text, 20 * second, moved))
        check(muster.muster_stream_read_into(way == 1 and other or one, got, #text, 0, 20 * second, moved))
        assert(ffi.string(got, #text) == text)
    end
end

local number = 0
local function addresses()
    number = number + 1
    local name = ('lua-%d-%d'):format(C.getpid(), number)
    return { 'inproc://' .. name, 'tcp://127.0.0.1:0', 'unix://@' .. name, 'shm://' .. name }
end

local function workout()
    for flags = 0, 1 do
        local h = new_host(flags)
        check(muster.muster_queue_post(h.queue, 5, 6))
        check(h:next(20 * second))
        assert(entry.tag == 5 and entry.bytes == 6)
        for _, address in ipairs(addresses()) do
            local one, other = h:connect(address)
            talk(one, other)
            muster.muster_stream_release(one)
            muster.muster_stream_release(other)
        end
        local process = h:spawn('sh', '-c', 'exit 7')
        check(muster.muster_process_watch(process, h.queue, 9))
        check(h:next(20 * second))
        assert(entry.kind == muster.MUSTER_DONE_EXIT and entry.tag == 9)
        muster.muster_process_release(process)
        h:close()
    end
end

local scenarios, leaving = {}, {}

function scenarios.every_room_is_usable()
    load()
    workout()
end

-- ffi.load takes two modes; the others are asked of dlopen() before it.
function scenarios.dlopen_modes()
    local modes = {}
    for _, binding in ipairs { 1, 2 } do
        for _, scope in ipairs { 0, 0x100 } do
            for _, deep in ipairs { 0, 8 } do modes[#modes + 1] = bit.bor(binding, scope, deep) end
        end
    end
    for _, other in ipairs { false, 'libuv.so.1' } do
        for _, mode in ipairs(modes) do
            local pid = C.fork()
            if pid == 0 then
                local right = pcall(function()
                    if other then C.dlopen(other, 0x102) end
                    assert(C.dlopen(library, mode) ~= nil)
                    muster = ffi.load(library, mode >= 0x100)
                    workout()
                end)
                C._exit(right and 0 or 1)
            end
            local status = ffi.new('int[1]')
            C.waitpid(pid, status, 0)
            assert(status[0] == 0, mode)
        end
    end
end

function scenarios.a_loop_polls_and_drains()
    load()
    local h = new_host()
    local fd = ffi.new('int32_t[1]')
    check(muster.muster_queue_fd(h.queue, fd))
    local ready = ffi.new('guest_pollfd[1]', { { fd[0], 1, 0 } })
    local one, other = h:pair()
    check(muster.muster_stream_watch(other, muster.MUSTER_STREAM_READABLE, h.queue, 3))
    local got, total = ffi.new('char[65536]'), 0
    for round = 1, 2000 do
        check(muster.muster_stream_write(one, 'x', 1, second, moved))
        if round % 7 == 0 then
            assert(C.poll(ready, 1, 20000) == 1)
            while true do
                local status = h:next(0)
                if status == muster.MUSTER_AGAIN then break end
                check(status)
                assert(entry.kind == muster.MUSTER_EVENT_READY and entry.tag == 3)
                repeat
                    status = muster.muster_stream_read(other, got, 65536, 0, moved)
                    total = total + tonumber(moved[0])
                until status ~= 0
                check(status, muster.MUSTER_AGAIN)
            end
        end
    end
    assert(total == math.floor(2000 / 7) * 7, total)
    muster.muster_stream_release(one)
    muster.muster_stream_release(other)
    C.close(fd[0])
    h:close()
end

-- Hot loops are compiled; the calls in them must not come back into Lua. Nothing here ever does.
function scenarios.compiled_loops()
    load()
    local h = new_host()
    local sum = 0
    for i = 1, 200000 do
        muster.muster_queue_post(h.queue, i, i)
        if muster.muster_queue_next(h.queue, 0, entry, nil) == 0 then sum = sum + tonumber(entry.bytes) end
    end
    assert(sum == 200000 * 200001 / 2)
    h:close()
end

function scenarios.an_external_context_is_driven_by_the_loop()
    load()
    local h = new_host(1)
    local fd = ffi.new('int32_t[1]')
    check(muster.muster_context_fd(h.context, fd))
    local ready = ffi.new('guest_pollfd[1]', { { fd[0], 1, 0 } })
    local process = h:spawn('sh', '-c', 'exit 7')
    check(muster.muster_process_watch(process, h.queue, 9))
    for _ = 1, 1000 do
        C.poll(ready, 1, 1000)
        muster.muster_context_progress(h.context, 0)
        if h:next(0) == 0 then break end
    end
    assert(entry.kind == muster.MUSTER_DONE_EXIT and entry.bytes == 4294967296ULL + 7)
    muster.muster_process_release(process)
    C.close(fd[0])
    h:close()
end

function scenarios.sigchld_ignored()
    load()
    C.signal(SIGCHLD, ffi.cast('guest_handler', 1))
    local h = new_host()
    local process, how = h:spawn('sh', '-c', 'exit 7'), ffi.new('muster_process_exit')
    check(muster.muster_process_wait(process, 20 * second, how))
    assert(how.kind == muster.MUSTER_PROCESS_UNKNOWN)
    muster.muster_process_release(process)
    h:close()
end

function scenarios.the_hosts_own_children_stay_its_own()
    load()
    local h = new_host()
    for _ = 1, 10 do
        local process, how = h:spawn('sh', '-c', 'exit 7'), ffi.new('muster_process_exit')
        local own = C.fork()
        if own == 0 then C._exit(5) end
        local status = ffi.new('int[1]')
        check(muster.muster_process_wait(process, 20 * second, how))
        assert(how.kind == muster.MUSTER_PROCESS_EXITED and how.value == 7)
        assert(C.waitpid(own, status, 0) == own and status[0] == 5 * 256)
        assert(os.execute('exit 3') ~= nil)
        muster.muster_process_release(process)
    end
    h:close()
end

function scenarios.children_inherit_nothing()
    load()
    local function listed()
        local seen = {}
        local list = io.popen('ls /proc/self/fd')
        for line in list:lines() do seen[line] = true end
        list:close()
        return seen
    end
    local before = listed()
    local h = new_host()
    local streams = {}
    for _, address in ipairs(addresses()) do streams[#streams + 1] = { h:connect(address) } end
    for fd in pairs(listed()) do assert(before[fd], 'descriptor ' .. fd .. ' is inherited') end
    for _, pair in ipairs(streams) do
        talk(pair[1], pair[2])
        muster.muster_stream_release(pair[1])
        muster.muster_stream_release(pair[2])
    end
    h:close()
end

function scenarios.a_fork_is_told()
    load()
    local h = new_host()
    local one, other = h:connect(addresses()[2])
    local pid = C.fork()
    if pid == 0 then
        local forked = muster.MUSTER_E_FORKED
        local right = muster.muster_queue_post(h.queue, 1, 1) == forked and h:next(-1) == forked and
            muster.muster_stream_write(one, 'x', 1, -1, moved) == forked
        muster.muster_stream_release(one)
        muster.muster_stream_release(other)
        muster.muster_queue_release(h.queue)
        muster.muster_context_release(h.context)
        os.exit(right and 41 or 1, true)
    end
    local status = ffi.new('int[1]')
    C.waitpid(pid, status, 0)
    assert(status[0] == 41 * 256, status[0])
    talk(one, other)
    muster.muster_stream_release(one)
    muster.muster_stream_release(other)
    h:close()
end

function scenarios.unload()
    for round = 1, 3 do
        local handle = C.dlopen(library, 2)
        load()
        workout()
        local h = new_host()
        local one, other = h:connect(addresses()[3])
        C.dlclose(handle)
        muster = nil
        collectgarbage() -- ffi.load's own handle
        collectgarbage()
        C.usleep(20000) -- the library's thread is still there
        load()
        talk(one, other)
        if round % 2 == 0 then h:close() end
    end
end

-- Garbage collection in any order, the context first.
function scenarios.finalizers_release_in_any_order()
    load()
    for _ = 1, 50 do
        local h = new_host()
        local one, other = h:pair()
        local kept = { ffi.gc(h.context, muster.muster_context_release), ffi.gc(h.queue, muster.muster_queue_release),
            ffi.gc(one, muster.muster_stream_release), ffi.gc(other, muster.muster_stream_release) }
        check(muster.muster_stream_write(one, 'x', 1, second, moved))
        h, one, other, kept = nil, nil, nil, #kept
        collectgarbage()
    end
end

function scenarios.two_contexts()
    load()
    local first, other = new_host(), new_host(1)
    check(muster.muster_queue_post(first.queue, 1, 1))
    check(other:next(0), muster.MUSTER_AGAIN)
    first:close()
    check(muster.muster_queue_post(other.queue, 2, 2))
    check(other:next(0))
    assert(entry.tag == 2)
    other:close()
end

function scenarios.wake_functions_come_and_go()
    load()
    local h = new_host()
    local wake = ffi.cast('muster_wake_fn', C.sched_yield) -- a C function: a Lua one must not be called from there
    for i = 1, 5000 do
        check(muster.muster_queue_set_wake(h.queue, wake, nil))
        muster.muster_queue_post(h.queue, i, i)
        check(muster.muster_queue_set_wake(h.queue, nil, nil))
        h:next(0)
    end
    h:close()
end

local function live()
    load()
    local h = new_host()
    kept = { h } -- global: alive to the end
    for _, address in ipairs(addresses()) do kept[#kept + 1] = { h:connect(address) } end
end

function leaving.by_the_end_of_the_script()
    live()
    os.exit(42, true) -- closes the state: finalizers, then exit()
end

function leaving.by_os_exit()
    live()
    os.exit(42)
end

function leaving.by_underscore_exit()
    live()
    C._exit(42)
end

function leaving.by_exec()
    live()
    C.execl('/bin/sh', 'sh', '-c', 'exit 42', ffi.cast('char *', nil))
end

local failures = 0
local function run(name, body, how)
    io.stdout:flush()
    local pid = C.fork()
    if pid == 0 then
        C.alarm(60)
        local right, why = xpcall(body, debug.traceback)
        if not right then io.stderr:write(why, '\n') end
        os.exit(right and 0 or 1, true)
    end
    local status = ffi.new('int[1]')
    C.waitpid(pid, status, 0)
    local ended = status[0] % 256 == 0 and status[0] / 256 or -(status[0] % 128)
    name = name:gsub('_', ' ')
    if ended == how then
        print('ok      ' .. name)
    else
        failures = failures + 1
        print(('FAILED  %s: ended by %d, not %d'):format(name, ended, how))
    end
end

local names = {}
for name in pairs(scenarios) do names[#names + 1] = name end
table.sort(names)
for _, name in ipairs(names) do run(name, scenarios[name], 0) end
for _ = 1, 5 do
    for name, body in pairs(leaving) do run('leaving ' .. name, body, 42) end
end
os.exit(failures == 0 and 0 or 1)
