-- SPDX-License-Identifier: MIT
-- Functions called in other processes: a cluster for Lua.
--
--   local loop = muster.loop(assert(muster.context_create()))
--   loop:run(function()
--       local cluster = assert(require('muster.cluster').open(loop))
--       cluster:add(4)
--       cluster:wait_for(4)
--       print(cluster:call(1, function(x) return x * x end, 7))
--       print(#assert(cluster:map(function(x) return x * x end, { 1, 2, 3 })))
--       cluster:close()
--   end)
--
-- A function is sent as bytecode and has no upvalues: it gets values as arguments, and modules by `require`. In a
-- worker `muster_here` is its own cluster, by which it calls other members in the same way. Each call is a task of the
-- worker, so a worker that waits for another one continues to serve calls. LuaJIT does not interrupt compiled code: a
-- function that computes and can be interrupted begins with `jit.off(true, true)`.
local ffi = require 'ffi'
local muster = require 'muster'
local loops = require 'muster.loop'
local packing = require 'muster.pack'
local packed = require 'muster.packed_stream'
local maps = require 'muster.map'
local stores = require 'muster.store'
local C = muster.C
local inbox_of, receive, send = packed.inbox_of, packed.receive, packed.send

ffi.cdef [[
    typedef void (*muster_lua_handler)(int);
    muster_lua_handler signal(int number, muster_lua_handler handler);
]]

local Cluster = {}
Cluster.__index = Cluster

local label = 'lua' -- of the streams over which functions are called
local event = ffi.new 'muster_cluster_event'

-- ---- calling

-- Functions that a stream knows by a number. The caller replaces the oldest; messages stay in their order, so both sides
-- agree. Without a limit a program that makes a function for each call would make both sides grow.
local max_functions = 256

-- The number of a function, and its code if the member does not have it.
local function number_of(there, body)
    local known = there.functions[body]
    if known then return known end
    local slot = there.next_slot
    there.next_slot = slot % max_functions + 1
    local oldest = there.slots[slot]
    if oldest and there.functions[oldest] == slot then there.functions[oldest] = nil end
    there.slots[slot] = body
    return slot, body
end

local function late(member) return nil, ('call of member %d: not in time'):format(member), muster.TIMEOUT end

-- A list from one place on. LuaJIT compiles no unpack().
local function spread(list, first, last)
    local count = last - first + 1
    if count == 1 then return list[first] end
    if count == 2 then return list[first], list[first + 1] end
    if count == 3 then return list[first], list[first + 1], list[first + 2] end
    return unpack(list, first, last)
end

-- What is kept of a call until its reply. Questions are used again, since a new table costs more than packing a short
-- message. The number that is sent consists of the place in the list and of the uses before: a late reply to a call that
-- has ended matches no later one.
local uses_unit, largest_number = 2 ^ 26, 2 ^ 52

local function new_question(there, number)
    local question = { number = number, task = false, waits = false, values = false, count = 0, why = false, status = false,
        next = false }
    there.questions[number % uses_unit] = question
    return question
end

local function take_question(there, task)
    local question = there.free
    if question then
        there.free = question.next
    else
        question = new_question(there, #there.questions + 1)
    end
    question.task = task
    return question
end

local function number_after(question) return (question.number + uses_unit) % largest_number end

local function give_back(there, question)
    question.number = number_after(question)
    question.task, question.values, question.why, question.next = false, false, false, there.free
    there.free = question
end

-- The same for a question that another task still holds: it gets no reply any more.
local function abandon(there, question)
    question.task = false
    give_back(there, new_question(there, number_after(question)))
end

-- The stream over which a member is called; the first call opens it.
local function caller(self, member, deadline)
    local there = self.callers[member]
    while there and there.coming do -- another task is about to make it
        if self.loop:wait(there.coming, deadline) == muster.TIMEOUT then return late(member) end
        there = self.callers[member]
    end
    if there then return there end
    there = { coming = self.loop:tag(), loop = self.loop, sent = self.loop:tag(), questions = {}, free = false,
        functions = {}, slots = {}, next_slot = 1 }
    self.callers[member] = there
    local stream, why, status = self.loop:dialled(function(tag)
        local left_ns = deadline and math.max(1, (deadline - self.loop.now()) * 1e9) or 60e9
        return muster.cluster_dial_begin(self.handle, member, label, left_ns, self.loop.queue, tag)
    end)
    local coming = there.coming
    there.coming, there.stream = nil, stream
    if not stream then self.callers[member] = nil end
    self.loop:notify(coming)
    if not stream then return nil, why, status end
    self.loop:spawn(function()
        local inbox = inbox_of(stream)
        local values, ended, code
        repeat
            values, ended, code = receive(inbox)
            if values and type(values[1]) ~= 'number' then
                values, ended, code = nil, 'a reply without the number of its request', muster.E_PROTOCOL
            end
            if values then
                local question = there.questions[values[1] % uses_unit]
                if question and question.task and question.number == values[1] then
                    question.values, question.count = values, ended
                    if question.waits then self.loop:resume(question.task) end
                end
            end
        until not values
        if self.callers[member] == there then self.callers[member] = nil end
        stream:close()
        for _, question in ipairs(there.questions) do
            if question.task and not question.values then
                question.why, question.status = ended, code
                if question.waits then self.loop:resume(question.task) end
            end
        end
    end)
    return there
end

-- Waits until the reader of the stream has a reply for the task, or its sender has sent, or the deadline passes.
local function wait_for_answer(self, question, deadline)
    question.waits = true
    self.loop:park(deadline)
    question.waits = false
end

-- As send(); nil after the deadline. A message cannot end in the middle: after the deadline another task continues to
-- send it. (A function of its own, since LuaJIT does not compile calls that make closures.)
local function send_in_time(self, there, question, deadline, bytes, more)
    local sent, why, status
    local function go_on()
        sent, why, status = send(there, bytes, more)
        sent = sent or false
        if question.waits then self.loop:resume(question.task) end
    end
    self.loop:spawn(go_on)
    if sent == nil then wait_for_answer(self, question, deadline) end
    return sent, why, status
end

-- The results of the function; nil, the reason, and a status if the member could not be reached.
local function ask_here(self, deadline, what, member, body, ...)
    if self.closed then return nil, 'the cluster is closed', muster.E_CLOSED end
    if member == self:self() then return nil, 'a member cannot call itself', muster.E_ARG end
    local there, why, status = self.callers[member], nil, nil
    if not there or there.coming then there, why, status = caller(self, member, deadline) end
    if not there then return nil, why, status end
    local known, code = number_of(there, body)
    local question = take_question(there, self.loop.running)
    local bytes, more = packing.try_pack(question.number, what, known, code, ...)
    if bytes == false then -- nothing was sent
        give_back(there, question)
        error(more, 0)
    end
    local sent, failure, failure_status
    if deadline then
        sent, failure, failure_status = send_in_time(self, there, question, deadline, bytes, more)
    else
        sent, failure, failure_status = send(there, bytes, more)
        sent = sent or false
    end
    if sent then
        if there.slots[known] == body then there.functions[body] = known end
    end
    if sent and not question.values and not question.why then wait_for_answer(self, question, deadline) end
    local values, count, why_ended, status_ended = question.values, question.count, question.why, question.status
    if sent == nil then
        abandon(there, question)
    else
        give_back(there, question)
    end
    if not values and not why_ended then
        if sent == false then -- the stream has ended: the next call opens another one
            if self.callers[member] == there then self.callers[member] = nil end
            return nil, failure, failure_status
        end
        return late(member)
    end
    if not values then return nil, why_ended, status_ended end
    if values[2] then return spread(values, 3, count) end
    return nil, values[3], values[4]
end

local function exposed_as_before(loop, was, ...)
    loop:set_exposed(was)
    return ...
end

-- No interrupt in the middle of a message.
local function ask(self, deadline, ...)
    local was = self.loop:set_exposed(false)
    return exposed_as_before(self.loop, was, ask_here(self, deadline, ...))
end

-- In a task: calls a function in another member; its results. Values or a function that cannot be sent are an error.
function Cluster:call(member, body, ...) return ask(self, nil, 'call', member, body, ...) end

-- As call(), with a timeout: nil, a sentence, muster.TIMEOUT. The function continues to run there; its results are
-- dropped.
function Cluster:call_within(timeout_ns, member, body, ...)
    return ask(self, self.loop:deadline(timeout_ns), 'call', member, body, ...)
end

-- In a task: applies a function to each entry of a list, in all workers. The entries of a worker that dies are sent to
-- another. The results have the places of their entries; an entry that is nil is passed as nil. nil, the reason and a
-- status: the function has failed (no status), its arguments cannot be sent, no worker is left, or the timeout has
-- passed. options: `batch`, entries that are sent together; by default there are 16 batches for each worker.
-- `timeout_ns`. `max_tries`, by default 3: how many workers may end while they have the same entry; then the map fails
-- with muster.E_LIMIT and names the entry, and the other workers remain.
function Cluster:map(body, list, options) return maps.run(self, ask, body, list, options or {}) end

-- ---- executing calls

local function apply(body, entries, count)
    local results = packing.new_table(count, 0)
    for i = 1, count do
        results[i] = body(entries[i])
        if results[i] == nil then error('the function of entry ' .. i .. ' has returned nothing', 0) end
    end
    return results
end

local function reply(self, here, question, ...)
    self.loop:set_exposed(false)
    local bytes, more = packing.try_pack(question, ...)
    if bytes == false then bytes, more = packing.pack(question, false, tostring(more)) end
    send(here, bytes, more)
end

-- An interrupt is an error in what is being computed.
local function answer(self, here, body, values, count)
    self.loop:set_exposed(true)
    if values[2] == 'call' then return reply(self, here, values[1], pcall(body, spread(values, 5, count))) end
    return reply(self, here, values[1], pcall(apply, body, values[5], values[6]))
end

-- A task reads the requests of a stream and executes them; when a function waits, another task goes on to read.
local function serve_calls(self, here)
    local loop, stream, functions = self.loop, here.stream, here.functions
    local task = loop.running
    while true do
        local values, count = receive(here.inbox)
        if not values then break end
        local known, body = values[3], values[4]
        local fits = type(known) == 'number' and known >= 1 and known <= max_functions and known % 1 == 0
        if not fits or (body and type(body) ~= 'function') or not (body or functions[known]) then
            stream:abort(0, 'a call without a function')
            break
        end
        functions[known] = body or functions[known]
        loop.before_wait[task] = here.go_on
        answer(self, here, functions[known], values, count)
        if not loop.before_wait[task] then return end -- it has waited
        loop.before_wait[task] = nil
    end
    stream:close()
end

local function serve(self, stream)
    local here = { stream = stream, loop = self.loop, sent = self.loop:tag(), inbox = inbox_of(stream), functions = {} }
    here.go_on = function() self.loop:spawn(serve_calls, self, here) end
    return serve_calls(self, here)
end

-- ---- events

local function take_events(self)
    -- A task that gets an event may close the cluster.
    while not self.closed and muster.C.muster_cluster_next_event(self.handle, 0, event) == muster.OK do
        local kind, member, event_status = event.kind, event.member, event.status
        local text = ffi.string(event.text, event.text_bytes)
        if kind == muster.CLUSTER_STREAM then
            local named = ffi.string(event.label, event.label_bytes)
            local handle = muster.adopt('stream', event.stream)
            if named == label then
                self.loop:spawn(serve, self, self.loop:stream(handle))
            elseif self.on_stream then
                self.loop:spawn(self.on_stream, self.loop:stream(handle), member, named)
            else
                handle:abort(0, ("this member takes no streams; the label is '%s'"):format(named))
                handle:release()
            end
        elseif kind == muster.CLUSTER_BROADCAST then
            local named, bytes = ffi.string(event.label, event.label_bytes), ''
            if event.size_bytes > 0 then bytes = ffi.string(event.data, tonumber(event.size_bytes)) end
            muster.C.muster_broadcast_release(event.broadcast)
            if self.on_broadcast then self.loop:spawn(self.on_broadcast, bytes, member, named) end
        else
            if kind == muster.CLUSTER_JOINED then
                if member ~= self:self() then self.workers[member] = true end
                for _, start in pairs(self.mapping) do start(member) end
            elseif kind == muster.CLUSTER_FAILED or kind == muster.CLUSTER_DEAD or kind == muster.CLUSTER_REMOVED then
                self.workers[member] = nil
            elseif kind == muster.CLUSTER_LEAVE or kind == muster.CLUSTER_MASTER_GONE then
                self.leaving = true
            end
            if self.on_event then self.on_event(kind, member, text) end
            self.last = { kind = kind, member = member, text = text }
            self.loop:notify(self.changed, kind, member, text, event_status)
        end
    end
end

local function make(loop, handle, tag)
    local self = setmetatable({ loop = loop, handle = handle, workers = {}, callers = {}, mapping = {},
        changed = loop:tag(), tag = tag }, Cluster)
    loop.handlers[tag] = function() take_events(self) end
    return self
end

-- In a task: opens a stream to a member, where on_stream(stream, member, label) is called.
function Cluster:dial(member, named, timeout_ns)
    return self.loop:dialled(function(tag)
        return muster.cluster_dial_begin(self.handle, member, named, timeout_ns or 60e9, self.loop.queue, tag)
    end)
end

-- The number of this member; 0: the master.
function Cluster:self()
    if self.closed then return self.number end
    return C.muster_cluster_self(self.handle)
end

-- A list of the numbers of the workers that have joined.
function Cluster:members()
    local list = {}
    for member in pairs(self.workers) do list[#list + 1] = member end
    table.sort(list)
    return list
end

local function closed() return nil, 'the cluster is closed', muster.E_CLOSED end

-- In a task: the next event (kind, member, text, status); nil, a sentence and muster.TIMEOUT or muster.E_CLOSED.
function Cluster:next_event(timeout_ns)
    if self.closed then return closed() end
    local function next_one(kind, ...)
        if kind == nil then return closed() end
        if kind == muster.TIMEOUT and select('#', ...) == 0 then return nil, 'no event in time', muster.TIMEOUT end
        return kind, ...
    end
    return next_one(self.loop:wait(self.changed, self.loop:deadline(timeout_ns)))
end

-- In a task: waits until this number of workers have joined.
function Cluster:wait_for(count, timeout_ns)
    local deadline = self.loop:deadline(timeout_ns)
    while #self:members() < count do
        local kind, member, text = self:next_event(deadline and math.max(0, (deadline - self.loop.now()) * 1e9))
        if kind == nil then return nil, ('%d of %d workers: %s'):format(#self:members(), count, member), text end
        if kind == muster.CLUSTER_FAILED then return nil, ('worker %d: %s'):format(member, text), muster.E_PEER end
    end
    return true
end

-- In a task: sends a text to all members of the list, or, on the master, to all workers, where on_broadcast(text,
-- member, label) is called. True; or nil, the reason, the status, and a list with the status of each member of the
-- list.
function Cluster:broadcast(text, members, named, timeout_ns)
    local list, statuses
    if members then
        list, statuses = ffi.new('uint32_t[?]', #members, members), ffi.new('muster_status[?]', #members)
    end
    local count = members and #members or 0
    local status, _, why = self.loop:complete(function(tag)
        return muster.cluster_broadcast_begin(self.handle, list, count, named, text, timeout_ns or -1, statuses,
            self.loop.queue, tag)
    end)
    if status == muster.OK then return true end
    local each = {}
    for i = 1, count do each[i] = statuses[i - 1] end
    return nil, why, status, each
end

-- ---- the master

local function with_queue(loop, tag, config)
    local given = { queue = loop.queue, tag = tag }
    for name, value in pairs(config or {}) do given[name] = value end
    return given
end

-- config: fields of muster_cluster_config. on_event(kind, member, text) of the cluster is called at each event.
local function open(loop, config)
    local tag = loop:tag()
    local handle, why, status
    if loop.running then -- the loop may have to serve the transport at which the master listens
        local object
        status, object, why = loop:complete(function(opening)
            return muster.cluster_open_begin(loop.context, with_queue(loop, tag, config), loop.queue, opening)
        end)
        if status ~= muster.OK then return nil, why, status end
        handle = muster.adopt('cluster', object)
    else
        handle, why, status = muster.cluster_open(loop.context, with_queue(loop, tag, config))
        if not handle then return nil, why, status end
    end
    return make(loop, handle, tag)
end

-- The program of this process: the first word of its command, which its options and the script follow.
local function interpreter()
    local at = 0
    while arg and arg[at - 1] do at = at - 1 end
    return at < 0 and arg[at] or 'luajit'
end

-- Adds workers; returns the number of the first. launch: fields of muster_launch; without an argv the workers are this
-- LuaJIT, and serve calls.
function Cluster:add(count, launch)
    local given = { count = count }
    for name, value in pairs(launch or {}) do given[name] = value end
    given.argv = given.argv or { interpreter(), '-e', 'require("muster.cluster").work()' }
    given.envp = given.envp or { 'LUA_PATH=' .. package.path }
    return muster.cluster_add(self.handle, given)
end

-- Removes a worker, which is killed if it has not left after this time; -1: the default of C.
function Cluster:remove(member, grace_ns) return self.handle:remove(member, grace_ns or -1) end
-- Interrupts a worker.
function Cluster:interrupt(member) return self.handle:interrupt(member) end
-- In a task: the store that the members share, as of muster.store; the master serves it until the cluster ends.
function Cluster:store(timeout_ns)
    local status, object, why = self.loop:complete(function(tag)
        return self.handle:store_begin(timeout_ns or 60e9, self.loop.queue, tag)
    end)
    if status ~= muster.OK then return nil, why, status end
    return stores.of(self.loop, muster.adopt('store', object))
end
-- Information about a member: a muster_member_info.
function Cluster:member(member) return self.handle:get_member(member) end

-- In a task: leaves the cluster; a master removes its workers before, and waits until they have ended. Tasks that wait
-- for events get muster.E_CLOSED. A second close has no effect.
function Cluster:close(timeout_ns)
    if self.closed then return true end
    for _, there in pairs(self.callers) do if there.stream then there.stream:finish() end end
    local left = self.handle:list() or {}
    for _, member in ipairs(left) do self:remove(member, timeout_ns) end
    while #left > 0 do
        self.loop:wait(self.changed) -- a manager of this program is served meanwhile
        left = self.handle:list() or {} -- nothing, if another task has closed it meanwhile
    end
    if self.closed then return true end
    local right, why, status = self.handle:close(timeout_ns or -1)
    take_events(self)
    self.number, self.closed = self:self(), true
    self.loop:forget(self.tag)
    self.loop:notify(self.changed)
    self.handle:release()
    return right, why, status
end

-- ---- a worker

-- In a task: joins a cluster as a worker. config: fields of muster_worker_config. The loop continues to serve
-- meanwhile, so that a transport of the program can be used for it.
local function join(loop, config, timeout_ns)
    local tag = loop:tag()
    local handle, why, status = muster.worker_start_begin(loop.context, with_queue(loop, tag, config), timeout_ns or 60e9)
    if not handle then return nil, why, status end
    local self = make(loop, handle, tag)
    local kind, _, text, code = self:next_event()
    if kind == muster.CLUSTER_JOINED then return self end
    self.closed = true
    loop:forget(tag)
    handle:release()
    return nil, text, code
end

local farewell = 2 -- seconds in which connections of the program can end

-- Serves calls until the master removes this worker; then the process ends. setup(cluster), if given, is called in a
-- task after this worker has joined. prepare(loop), if given, is called before, to serve a transport. Over a transport
-- that is served here, an interrupt and the end of the master are not noticed while a function computes.
local function work(setup, prepare)
    local context = assert(muster.worker_context())
    local loop = assert(muster.loop(context))
    if prepare then prepare(loop) end
    local before = ffi.C.signal(2, ffi.cast('muster_lua_handler', 1)) -- SIG_IGN, between calls
    local flags = muster.WORKER_EXIT_WITH_MASTER
    if before ~= nil then flags = flags + muster.WORKER_RAISE_INTERRUPT end -- the interpreter turns SIGINT into an error
    local ignore = ffi.cast('muster_lua_handler', 1)
    if before ~= nil then loop.expose = function(on) ffi.C.signal(2, on and before or ignore) end end
    loop:spawn(function()
        muster_here = assert(join(loop, { flags = flags }))
        if setup then setup(muster_here) end
    end)
    while not (muster_here and muster_here.leaving) do
        loop:step(loop:poll_timeout())
        if loop.failed then error(loop.failed, 0) end
    end
    for _, there in pairs(muster_here.callers) do if there.stream then there.stream:finish() end end
    muster_here.handle:close(-1)
    local late
    loop:spawn(function()
        loop:sleep(farewell)
        late = true
    end)
    while loop.unfinished > 0 and not late do loop:step(loop:poll_timeout()) end
    loop:close()
    os.exit(0)
end

return { open = open, join = join, work = work, interpreter = interpreter }
