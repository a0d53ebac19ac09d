-- SPDX-License-Identifier: MIT
-- How a LuaJIT program lives with Muster: the library by ffi, one queue, one poll(), and tasks (coroutines) that wait
-- there. What happens is pulled; C never calls into Lua.
--   MUSTER_CDEF      the public headers as the text ffi.cdef reads (made by `cc -E`, see examples/lua/run)
--   MUSTER_LIBRARY   the library; without it the loader looks for libmuster.so
local ffi = require 'ffi'
local bit = require 'bit'

local headers = assert(io.open(os.getenv('MUSTER_CDEF') or 'muster.cdef'))
ffi.cdef(headers:read('*a'))
headers:close()
ffi.cdef [[
    typedef struct lua_pollfd { int fd; short events; short revents; } lua_pollfd;
    int poll(lua_pollfd *fds, unsigned long count, int timeout_ms);
    int close(int fd);
]]
local C = ffi.C
local muster = ffi.load(os.getenv('MUSTER_LIBRARY') or 'muster')
local second = 1000000000
local room = 256 * 1024
local POLLIN = 1

local err = ffi.new('muster_error')
local entry = ffi.new('muster_completion')
local moved = ffi.new('size_t[1]')
local buffer = ffi.new('uint8_t[?]', room)

local function check(status, what)
    if status < 0 then
        error(('%s: %s: %s'):format(what, ffi.string(muster.muster_status_name(status)), ffi.string(err.message)), 2)
    end
end

local Host, Stream = {}, {}
Host.__index, Stream.__index = Host, Stream

-- In a context that is there already.
function Host.within(context)
    local queue, fd = ffi.new('muster_queue *[1]'), ffi.new('int32_t[1]')
    check(muster.muster_queue_create(context, nil, queue, err), 'queue')
    check(muster.muster_queue_fd(queue[0], fd), 'descriptor of the queue')
    return setmetatable({ context = context, queue = queue[0], queue_fd = fd[0], tags = 0, handlers = {}, waiting = {},
        descriptors = {}, tasks = 0, connections = 0, turns = 0 }, Host)
end

-- With a context of its own. secret_fd: a descriptor to read the secret of the job from; without it one is made.
function Host.new(secret_fd)
    local config = ffi.new('muster_context_config')
    config.struct_size = ffi.sizeof(config)
    config.secret_fd_plus_one = secret_fd and secret_fd + 1 or 0
    local context = ffi.new('muster_context *[1]')
    check(muster.muster_context_create(config, context, err), 'context')
    return Host.within(context[0])
end

function Host:secret()
    local text = ffi.new('char[1024]')
    check(muster.muster_context_secret(self.context, text, 1024, moved), 'secret')
    return ffi.string(text, moved[0])
end

-- ---- the loop

-- A number for something that happens; `handler` is called each time, with the status and the object that came.
function Host:tag(handler)
    self.tags = self.tags + 1
    self.handlers[self.tags] = handler
    return self.tags
end

function Host:forget(tag) self.handlers[tag] = nil end

-- A descriptor of the program's own: `who:wants()` gives the events to poll for, `who:turn()` follows them; while
-- `who.busy` there is more to do, and it gets its turn without them.
function Host:watch(fd, who) self.descriptors[fd] = who end

function Host:unwatch(fd) self.descriptors[fd] = nil end

-- Runs `body` as a task: what it calls here may wait.
function Host:task(body)
    self.tasks = self.tasks + 1
    local task = coroutine.create(function()
        body()
        self.tasks = self.tasks - 1
    end)
    self:resume(task)
end

function Host:resume(task, ...)
    local right, why = coroutine.resume(task, ...)
    if not right then error(debug.traceback(task, why), 0) end
end

-- Inside a task: until something happens to the tag.
function Host:wait(tag)
    local tasks = self.waiting[tag] or {}
    self.waiting[tag] = tasks
    tasks[#tasks + 1] = assert(coroutine.running(), 'only a task can wait')
    return coroutine.yield()
end

-- Wakes the tasks that wait for a tag, as if something had come for it.
function Host:tell(tag)
    local tasks = self.waiting[tag]
    self.waiting[tag] = nil
    for _, task in ipairs(tasks or {}) do self:resume(task, muster.MUSTER_OK) end
end

-- Pulls until the queue says that it is drained, which also arms its descriptor again.
function Host:drain()
    while muster.muster_queue_next(self.queue, 0, entry, err) == muster.MUSTER_OK do
        if entry.request ~= 0 then
            self:serve(tonumber(entry.kind), entry.request)
        else
            local tag = tonumber(entry.tag)
            local handler, tasks = self.handlers[tag], self.waiting[tag]
            self.waiting[tag] = nil
            local why = entry.status ~= muster.MUSTER_OK and ffi.string(err.message)
            if handler then handler(entry.status, entry.object) end
            for _, task in ipairs(tasks or {}) do
                self:resume(task, entry.status, entry.object, entry.bytes, why)
            end
        end
    end
end

-- Until no task is left, and no connection that still has to send: sleeps in poll() for all there is to wait for.
function Host:run()
    self:drain()
    while self.tasks > 0 or self.connections > 0 do
        local fds, count = { self.queue_fd }, 1
        for fd in pairs(self.descriptors) do
            count = count + 1
            fds[count] = fd
        end
        local polled, patience = ffi.new('lua_pollfd[?]', count), -1
        polled[0].fd, polled[0].events = self.queue_fd, POLLIN
        for i = 2, count do
            local who = self.descriptors[fds[i]]
            local events = who:wants()
            if who.busy then patience = 0 end
            -- A descriptor nothing is wanted of would still tell that its peer hung up, again and again.
            polled[i - 1].fd, polled[i - 1].events = events ~= 0 and fds[i] or -1, events
        end
        self.turns = self.turns + 1
        C.poll(polled, count, patience)
        self:drain()
        for i = 2, count do
            local who = self.descriptors[fds[i]]
            if who and (polled[i - 1].revents ~= 0 or who.busy) then who:turn() end
        end
    end
end

-- Gives back what within() made.
function Host:leave()
    C.close(self.queue_fd)
    muster.muster_queue_release(self.queue)
end

function Host:close()
    muster.muster_context_close(self.context, second)
    self:leave()
    muster.muster_context_release(self.context)
end

-- ---- streams, for tasks

local function stream_of(host, handle)
    local self = setmetatable({ host = host, handle = handle, tag = host:tag() }, Stream)
    local both = bit.bor(muster.MUSTER_STREAM_READABLE, muster.MUSTER_STREAM_WRITABLE)
    check(muster.muster_stream_watch(handle, both, host.queue, self.tag), 'watch')
    return self
end

-- The stream; or nil, the status, and why. retry_ns: how long to try again while nobody listens there.
function Host:dial(address, greeting, retry_ns)
    local config = ffi.new('muster_transport_config')
    config.struct_size = ffi.sizeof(config)
    config.retry_ns = retry_ns or 0
    if greeting then config.greeting, config.greeting_bytes = ffi.cast('const char *', greeting), #greeting end
    local tag = self:tag()
    local limit = 20 * second
    local begun = muster.muster_transport_dial_begin(self.context, address, #address, config, limit, self.queue, tag, err)
    check(begun, 'dial ' .. address)
    local status, object, _, why = self:wait(tag)
    if status ~= muster.MUSTER_OK then return nil, status, why end -- MUSTER_TIMEOUT is positive
    return stream_of(self, ffi.cast('muster_stream *', object))
end

function Host:listen(address)
    local listener = ffi.new('muster_listener *[1]')
    check(muster.muster_transport_listen(self.context, address, #address, nil, listener, err), 'listen ' .. address)
    local tag = self:tag()
    check(muster.muster_listener_watch(listener[0], self.queue, tag), 'watch')
    return { handle = listener[0], tag = tag }
end

function Host:accept(listener)
    local stream = ffi.new('muster_stream *[1]')
    while true do
        local status = muster.muster_listener_accept(listener.handle, 0, stream, err)
        if status == muster.MUSTER_OK then return stream_of(self, stream[0]) end
        check(status, 'accept')
        self:wait(listener.tag)
    end
end

function Host:close_listener(listener)
    muster.muster_listener_close(listener.handle)
    muster.muster_listener_release(listener.handle)
end

function Stream:greeting()
    check(muster.muster_transport_greeting(self.handle, buffer, room, moved), 'greeting')
    return ffi.string(buffer, moved[0])
end

-- Some bytes; or nil and the status: MUSTER_E_END after the last one.
function Stream:read(most)
    while true do
        local status = muster.muster_stream_read(self.handle, buffer, math.min(most or room, room), 0, moved)
        if status == muster.MUSTER_OK then return ffi.string(buffer, moved[0]) end
        if status ~= muster.MUSTER_AGAIN then return nil, status end
        self.host:wait(self.tag)
    end
end

-- All of the text, as there is room; MUSTER_OK, or what ended it.
function Stream:write(text)
    local at = 0
    while true do
        local from = ffi.cast('const char *', text) + at
        local status = muster.muster_stream_write(self.handle, from, #text - at, 0, moved)
        at = at + tonumber(moved[0])
        if status ~= muster.MUSTER_AGAIN then return status end
        self.host:wait(self.tag)
    end
end

function Stream:finish() return muster.muster_stream_finish(self.handle) end

function Stream:abort(code, text) return muster.muster_stream_abort(self.handle, code, text, #text) end

-- The code of an abort, and a sentence.
function Stream:reason()
    local code = ffi.new('uint64_t[1]')
    local status = muster.muster_stream_reason(self.handle, code, err)
    return tonumber(code[0]), status < 0 and ffi.string(err.message) or ''
end

-- What was accepted is still sent: run() goes on until it was.
function Stream:close()
    muster.muster_stream_close(self.handle, 0)
    muster.muster_stream_release(self.handle)
end

-- ---- child processes

-- fds: what the child has, by its numbers there.
function Host:spawn(words, fds)
    local argv, list, count = ffi.new('const char *[?]', #words + 1), ffi.new('muster_process_fd[?]', 8), 0
    for i, word in ipairs(words) do argv[i - 1] = word end
    for there, here in pairs(fds or {}) do
        list[count].parent_fd, list[count].child_fd = here, there
        count = count + 1
    end
    local config, process = ffi.new('muster_process_config'), ffi.new('muster_process *[1]')
    config.struct_size = ffi.sizeof(config)
    config.argv, config.fds, config.fd_count = argv, list, count
    check(muster.muster_process_spawn(self.context, config, process, err), words[1])
    return process[0]
end

-- In a task: the exit code, or nil and the signal.
function Host:exit_of(process)
    local tag = self:tag()
    check(muster.muster_process_watch(process, self.queue, tag), 'watch')
    local _, _, how = self:wait(tag)
    muster.muster_process_release(process)
    local kind, value = tonumber(how / 4294967296ULL), tonumber(how % 4294967296ULL)
    if kind == muster.MUSTER_PROCESS_EXITED then return value end
    return nil, value
end

return { new = Host.new, within = Host.within, library = muster, check = check, error = err }
