-- SPDX-License-Identifier: MIT
-- An event loop with tasks (coroutines) that wait for events of Muster: `muster.loop(context)`.
--
--   local loop = muster.loop(context)
--   loop:run(function()
--       local stream = assert(loop:dial 'tcp://127.0.0.1:4100')
--       stream:write 'hello'
--       print(stream:read(5))
--   end)
--
-- Calls in a task may wait, but not within a coroutine that the task has made; other tasks run meanwhile. Failures are
-- nil, a sentence and a status. A call with a `timeout_ns` (nanoseconds; nil or -1: none) ends after that time with the
-- status `muster.TIMEOUT`; bytes that a read had received by then are kept for the next read. A stream, listener or
-- loop that this program has closed returns `muster.E_CLOSED`, also to the tasks that were waiting for it. An error in
-- a task ends that task and run().
--
-- The loop watches descriptors of the program (`loop:watch`). A program with an event loop of its own adds the
-- descriptor `loop:fd()` to it, which is readable when the loop has events, and calls `loop:turn(0)` then.
local ffi = require 'ffi'
local muster = require 'muster'
local streams = require 'muster.stream'
local C = muster.C

ffi.cdef [[
    typedef struct muster_lua_pollfd { int fd; short events, revents; } muster_lua_pollfd;
    int poll(muster_lua_pollfd *fds, unsigned long count, int timeout_ms);
    int close(int fd);
]]
local POLLIN = 1

local Loop = {}
Loop.__index = Loop

local entry = ffi.new 'muster_completion'
local problem = muster.problem
local OK, TIMEOUT = muster.OK, muster.TIMEOUT
local forever = -1

-- A loop for the tasks of a program, in a context; nil, the reason and the status.
local function new(context)
    local queue, why, status = muster.queue_create(context)
    if not queue then return nil, why, status end
    return setmetatable({ context = context, queue = queue, tags = 0, handlers = {}, waiting = {}, requests = {},
        tasks = 0, idle = {}, timers = {}, sleepers = 0, exposed = {}, before_wait = {}, descriptors = {}, watched = 0, unfinished = 0,
        turns = 0, undo = {}, exits = setmetatable({}, { __mode = 'k' }) }, Loop)
end

-- ---- what happens

-- A tag for events: `handler(status, object, bytes, events)` is called for each.
function Loop:tag(handler)
    self.tags = self.tags + 1
    self.handlers[self.tags] = handler
    return self.tags
end

-- The tag has no handler any more.
function Loop:forget(tag) self.handlers[tag] = nil end

-- Functions for the kinds of requests to the program: loop.requests[muster.REQUEST_MANAGER] = function(id) ... end
-- The id is a uint64_t. It is called outside of tasks.

-- A descriptor that is readable when the loop has events, for a program with an event loop of its own.
function Loop:fd()
    if not self.descriptor then self.descriptor = assert(self.queue:fd()) end
    return self.descriptor
end

local function take(self)
    if entry.request ~= 0 then
        local serve = self.requests[tonumber(entry.kind)]
        if serve then serve(entry.request) end
        return
    end
    local tag = tonumber(entry.tag)
    local handler, tasks = self.handlers[tag], self.waiting[tag]
    self.waiting[tag] = nil
    local status, object, bytes, events = entry.status, entry.object, entry.bytes, entry.events
    local why = status ~= OK and ffi.string(problem.message, problem.message_bytes) or nil
    if handler then handler(status, object, bytes, events) end
    if tasks then self:wake(tasks, status, object, bytes, why) end
end

local function must_be_open(self)
    if self.closed then error('the loop is closed', 0) end
end

-- Takes one event, or waits for it.
function Loop:step(timeout_ns)
    must_be_open(self)
    if self.watched > 0 then return self:poll(timeout_ns) end
    local status = C.muster_queue_next(self.queue, timeout_ns, entry, problem)
    if status == OK then
        take(self)
    elseif status < 0 then
        error(select(2, muster.failure(status)), 0)
    end
    if self.sleepers > 0 then self:ring() end
end

-- Takes all events; waits up to this number of nanoseconds (-1: endlessly) if there is none.
function Loop:turn(timeout_ns)
    must_be_open(self)
    local status = C.muster_queue_next(self.queue, timeout_ns, entry, problem)
    while status == OK do
        take(self)
        if self.closed then return end -- by a task
        status = C.muster_queue_next(self.queue, 0, entry, problem)
    end
    if status < 0 then error(select(2, muster.failure(status)), 0) end
    self:ring()
end

-- Closes the loop: releases its queue and its descriptor; it serves nothing any more. The functions of the list
-- loop.undo are called before.
function Loop:close()
    if self.closed then return end
    self.closed = true
    if self.descriptor then ffi.C.close(self.descriptor) end
    self.descriptor = nil
    self.queue:release()
    for _, undo in ipairs(self.undo) do undo() end
    self.undo = {}
end

-- ---- descriptors of the program's own

-- Watches a descriptor for an object: `who:wants()` returns the events to poll for, 0: none now; `who:turn()` is called
-- after them, and without them while `who.busy` is true. run() returns when no task is left; an object that has to be
-- finished before adds 1 to loop.unfinished.
function Loop:watch(fd, who)
    if not self.descriptors[fd] then self.watched = self.watched + 1 end
    self.descriptors[fd] = who
end

-- Ends watch().
function Loop:unwatch(fd)
    if self.descriptors[fd] then self.watched = self.watched - 1 end
    self.descriptors[fd] = nil
end

-- One turn: takes completions and timers that are due; if there are none, waits up to this time.
function Loop:poll(timeout_ns)
    self.turns = self.turns + 1
    local taken = false
    local status = C.muster_queue_next(self.queue, 0, entry, problem)
    while status == OK do -- until it is drained, which arms its descriptor
        take(self)
        if self.closed then return end
        taken = true
        status = C.muster_queue_next(self.queue, 0, entry, problem)
    end
    if status < 0 then error(select(2, muster.failure(status)), 0) end
    local fds, count = { self:fd() }, 1
    for fd in pairs(self.descriptors) do
        count = count + 1
        fds[count] = fd
    end
    local polled, timeout_ms = ffi.new('muster_lua_pollfd[?]', count), timeout_ns < 0 and -1 or math.ceil(timeout_ns / 1e6)
    polled[0].fd, polled[0].events = fds[1], POLLIN
    for i = 2, count do
        local who = self.descriptors[fds[i]]
        local events = who:wants()
        if who.busy then timeout_ms = 0 end
        -- poll() would report the end of the peer again and again for a descriptor without wanted events.
        polled[i - 1].fd, polled[i - 1].events = events ~= 0 and fds[i] or -1, events
    end
    ffi.C.poll(polled, count, taken and 0 or timeout_ms) -- the event that was taken may have been the last one to wait for
    for i = 2, count do
        local who = self.descriptors[fds[i]]
        if who and (polled[i - 1].revents ~= 0 or who.busy) then who:turn() end
    end
    if self.sleepers > 0 then self:ring() end
end

-- ---- tasks

-- Resumes a task that has called park() or wait(). An error in it ends it, and run().
function Loop:resume(task, ...)
    local before = self.running
    self.running = task
    local right, why = coroutine.resume(task, ...)
    self.running = before
    if right then return end
    self.tasks = self.tasks - 1 -- the others continue in the next run()
    self.exposed[task], self.before_wait[task] = nil, nil
    local text = debug.traceback(task, tostring(why))
    self.failed = self.failed and self.failed .. '\nanother task failed: ' .. text or text
end

-- The coroutine of a task that has ended is reused: creating one costs more than a short call.
local most_idle = 64

local live

local function live_again(self, task) return live(self, task, coroutine.yield()) end -- holds nothing of the last time

function live(self, task, body, ...)
    body(...)
    self.tasks = self.tasks - 1
    local idle = self.idle
    if #idle >= most_idle then return end
    idle[#idle + 1] = task
    return live_again(self, task)
end

-- Begins a task: body(...) is called now, until it waits.
function Loop:spawn(body, ...)
    self.tasks = self.tasks + 1
    local idle = self.idle
    local task = idle[#idle]
    if task then
        idle[#idle] = nil
        return self:resume(task, body, ...)
    end
    task = coroutine.create(live)
    self:resume(task, self, task, body, ...)
end

-- Runs until no task is left. With a function: runs it as a task, and returns all its results. An error in a task ends
-- that task, and run() with the text and place of the error; the other tasks continue in the next run().
function Loop:run(body, ...)
    local results, count
    local function keep(...) results, count = { ... }, select('#', ...) end
    if body then self:spawn(function(...) keep(body(...)) end, ...) end
    while (self.tasks > 0 or self.unfinished > 0) and not self.failed do self:step(self:poll_timeout()) end
    if self.failed then
        local why = self.failed
        self.failed = nil
        error(why, 0)
    end
    if results then return unpack(results, 1, count) end
end

-- A task may be exposed to something that must not meet the loop itself (an interrupt): loop.expose(true) is called when
-- it runs, loop.expose(false) while it waits.
local function exposed_again(self, ...)
    self.expose(true)
    return ...
end

local function pause(self, task)
    local exposed, before = self.exposed[task], self.before_wait[task]
    if exposed then self.expose(false) end
    if before then -- a function that is called once, when the task waits
        self.before_wait[task] = nil
        before()
    end
    if not exposed then return coroutine.yield() end
    return exposed_again(self, coroutine.yield())
end

-- The running task is exposed from now on, or not; was it?
function Loop:set_exposed(on)
    local task = self.running
    local was = self.exposed[task]
    if not self.expose or (was or false) == on then return was or false end
    self.exposed[task] = on or nil
    self.expose(on)
    return was or false
end

-- In a task: waits until another task resumes it, or until the deadline; then it returns muster.TIMEOUT.
function Loop:park(deadline)
    local task = assert(self.running, 'only a task can wait')
    if not deadline then return pause(self, task) end
    return self:timed(task, deadline)
end

-- In a task: waits for an event of the tag, or, with a deadline (see Loop:deadline), until that; then it returns
-- muster.TIMEOUT alone.
function Loop:wait(tag, deadline)
    local task = assert(self.running, 'only a task can wait')
    local others = self.waiting[tag]
    if not others then
        self.waiting[tag] = task
    elseif type(others) == 'table' then
        others[#others + 1] = task
    else
        self.waiting[tag] = { others, task }
    end
    if not deadline then return pause(self, task) end
    return self:timed(task, deadline, tag)
end

-- One task that waited, or a list of them.
function Loop:wake(tasks, ...)
    if type(tasks) ~= 'table' then return self:resume(tasks, ...) end
    for i = 1, #tasks do self:resume(tasks[i], ...) end
end

-- Wakes the tasks that wait for a tag, as by an event.
function Loop:notify(tag, ...)
    local tasks = self.waiting[tag]
    if not tasks then return end
    self.waiting[tag] = nil
    self:wake(tasks, ...)
end

-- ---- time

ffi.cdef [[
    typedef struct muster_lua_time { long seconds; long nanoseconds; } muster_lua_time;
    int clock_gettime(int clock, muster_lua_time *out);
]]
local clock = ffi.new 'muster_lua_time'

local function now()
    ffi.C.clock_gettime(1, clock) -- CLOCK_MONOTONIC
    return tonumber(clock.seconds) + tonumber(clock.nanoseconds) / 1e9
end
Loop.now = now

-- For the `deadline` of a wait: so many nanoseconds from now; nil, which is none, for nil and -1.
function Loop:deadline(timeout_ns) return timeout_ns and timeout_ns >= 0 and now() + timeout_ns / 1e9 or nil end

-- A timer: of a task that sleeps, or of one that waits until a deadline, for the tag if it is given.
function Loop:set_timer(task, at, tag)
    self.timers[task] = { at = at, tag = tag }
    self.sleepers = self.sleepers + 1
end

-- A task waits for no time any more.
function Loop:drop_timer(task)
    if not self.timers[task] then return end
    self.timers[task] = nil
    self.sleepers = self.sleepers - 1
end

local function without_timer(self, task, ...)
    self:drop_timer(task)
    return ...
end

-- A task waits until it is resumed, or until this time.
function Loop:timed(task, at, tag)
    self:set_timer(task, at, tag)
    return without_timer(self, task, pause(self, task))
end

-- In a task: sleeps while other tasks run.
function Loop:sleep(seconds)
    local task = assert(coroutine.running(), 'only a task can sleep')
    self:set_timer(task, now() + seconds)
    pause(self, task)
end

-- Nanoseconds until a task is due, for a poll of the program; -1: none is.
function Loop:poll_timeout()
    if self.sleepers == 0 then return forever end
    local first
    for _, timer in pairs(self.timers) do if not first or timer.at < first then first = timer.at end end
    return first and math.max(0, math.ceil((first - now()) * 1e9)) or forever
end

-- Removes a task from those that wait for a tag.
local function stop_waiting(self, task, tag)
    local tasks = self.waiting[tag]
    if tasks == task then
        self.waiting[tag] = nil
    elseif type(tasks) == 'table' then
        for i = #tasks, 1, -1 do if tasks[i] == task then table.remove(tasks, i) end end
        if #tasks == 0 then self.waiting[tag] = nil end
    end
end

-- Resumes the tasks whose time has come.
function Loop:ring()
    if self.sleepers == 0 then return end
    local time, due = now(), {}
    for task, timer in pairs(self.timers) do if timer.at <= time then due[#due + 1] = { task, timer } end end
    table.sort(due, function(a, b) return a[2].at < b[2].at end)
    for _, one in ipairs(due) do
        local task, timer = one[1], one[2]
        if self.timers[task] == timer then -- else another of these tasks has woken it
            self:drop_timer(task)
            if timer.tag then stop_waiting(self, task, timer.tag) end
            self:resume(task, TIMEOUT)
        end
    end
end

-- ---- processes

-- In a task: the exit code of a muster_process, which is released; or nil and the signal. If it has not ended in time: nil, a
-- sentence and muster.TIMEOUT; it is not released then.
function Loop:exit_of(process, timeout_ns)
    local watch = self.exits[process] -- a process can be watched once
    if not watch then
        watch = {}
        watch.tag = self:tag(function(_, _, how) watch.how = how end)
        assert(process:watch(self.queue, watch.tag))
        self.exits[process] = watch
    end
    if not watch.how then self:wait(watch.tag, self:deadline(timeout_ns)) end
    local how = watch.how
    if not how then return nil, 'the process: not in time', TIMEOUT end
    self.exits[process] = nil
    self:forget(watch.tag)
    process:release()
    local kind, value = tonumber(how / 4294967296ULL), tonumber(how % 4294967296ULL)
    if kind == muster.PROCESS_EXITED then return value end
    return nil, value
end

-- ---- streams

-- A stream of strings for the tasks of this loop, of a handle of muster.
function Loop:stream(handle)
    local self = setmetatable({ loop = self, handle = handle, tag = self:tag() }, streams.Stream)
    assert(handle:watch(muster.STREAM_READABLE + muster.STREAM_WRITABLE, self.loop.queue, self.tag))
    return self
end

-- In a task: begins an operation and waits for its completion. `begin(tag)` returns true, or nil, the reason and the
-- status. Returns the status of the operation, or of its beginning, the object of the completion, and the reason.
function Loop:complete(begin)
    local tag = self:tag()
    local begun, why, status = begin(tag)
    if not begun then return status, nil, why end
    local ended, object, _, text = self:wait(tag)
    self:forget(tag)
    return ended, object, text
end

-- For operations that complete with a dial: a stream; or nil, the reason and the status.
function Loop:dialled(begin)
    local status, object, why = self:complete(begin)
    if status ~= OK then return nil, why, status end
    return self:stream(muster.adopt('stream', object))
end

-- In a task: opens a stream to this address; nil, the reason and the status otherwise. The default timeout is 60 s.
function Loop:dial(address, config, timeout_ns)
    return self:dialled(function(tag)
        return muster.transport_dial_begin(self.context, address, config, timeout_ns or 60e9, self.queue, tag)
    end)
end

-- Listens at an address. In a task it does not block the loop. Where the loop serves the transport, it has to be called
-- in a task.
function Loop:listen(address, config)
    local handle, why, status
    if self.running then
        local object
        status, object, why = self:complete(function(tag)
            return muster.transport_listen_begin(self.context, address, config, self.queue, tag)
        end)
        if status ~= OK then return nil, why, status end
        handle = muster.adopt('listener', object)
    else
        handle, why, status = muster.transport_listen(self.context, address, config)
        if not handle then return nil, why, status end
    end
    local self = setmetatable({ loop = self, handle = handle, tag = self:tag() }, streams.Listener)
    assert(handle:watch(self.loop.queue, self.tag))
    return self
end

return { new = new, Stream = streams.Stream, Loop = Loop }
