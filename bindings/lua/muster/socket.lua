-- SPDX-License-Identifier: MIT
-- Messages of dealers and routers, for tasks (coroutines) of a muster.loop.
--
--   local router = sockets.router(loop, { address = 1 })
--   local at = assert(router:bind 'tcp://127.0.0.1:0')
--   loop:spawn(function()
--       local request = assert(router:receive())
--       router:send(request:answer { type = 301, frames = { request.frames[1]:upper() } })
--   end)
--   local dealer = sockets.dealer(loop, { address = 2 })
--   assert(dealer:connect(at))
--   assert(dealer:send { type = 300, frames = { 'hello', sockets.values('id', 42, 0.5) } })
--   print(assert(dealer:receive()).frames[1])
--
-- A message is a table: type, source, destination, target, target_version and frames, a list of strings. Addresses and targets
-- are numbers up to 2^53, or uint64_t. What cannot be done gives nil, a sentence and a status. Messages that could not be
-- delivered are in the list `socket.undelivered`, each with its status in `status`.
local ffi = require 'ffi'
local muster = require 'muster'
local C = muster.C
local OK, AGAIN, TIMEOUT = muster.OK, muster.AGAIN, muster.TIMEOUT

local Socket, Message = {}, {}
Socket.__index, Message.__index = Socket, Message

local header = ffi.new 'muster_message_header'
header.struct_size = ffi.sizeof(header)
local frame, handle_out, count_out = ffi.new 'muster_buffer', ffi.new 'muster_message *[1]', ffi.new 'uint32_t[1]'
local event = ffi.new 'muster_socket_event'
local problem = muster.problem
local max_values = 256

-- A number where it is exact.
local function number_of(value)
    if value < 9007199254740992ULL then return tonumber(value) end
    return value
end

-- ---- messages

-- Takes a muster_message over.
local function message_of(handle)
    C.muster_message_get_header(handle, header)
    local made = setmetatable({ type = header.type, source = number_of(header.source), hops = header.hops,
        destination = number_of(header.destination), target = number_of(header.target),
        target_version = tonumber(header.target_version), frames = {} }, Message)
    for i = 1, C.muster_message_frame_count(handle) do
        C.muster_message_frame(handle, i - 1, frame)
        made.frames[i] = frame.bytes == 0 and '' or ffi.string(frame.data, frame.bytes)
    end
    C.muster_message_release(handle)
    return made
end

local function handle_of(message)
    if C.muster_message_create(handle_out) ~= OK then error('out of memory', 0) end
    local handle = ffi.gc(handle_out[0], C.muster_message_release)
    ffi.fill(header, ffi.sizeof(header))
    header.struct_size = ffi.sizeof(header)
    header.type, header.source = message.type or muster.MESSAGE_USER, message.source or 0
    header.destination, header.target = message.destination or 0, message.target or 0
    header.target_version = message.target_version or 0
    C.muster_message_set_header(handle, header)
    for _, bytes in ipairs(message.frames or {}) do
        local status = C.muster_message_add_frame(handle, bytes, #bytes)
        if status ~= OK then error(ffi.string(C.muster_status_text(status)), 0) end
    end
    return handle
end

-- The message that goes back to the sender; `fields` replace those of this one.
function Message:answer(fields)
    local made = { type = self.type, destination = self.source, target = self.target, target_version = self.target_version,
        frames = self.frames }
    for name, value in pairs(fields or {}) do made[name] = value end
    return made
end

local integers = { i = true, q = true, ['1'] = true, ['2'] = true, ['4'] = true, ['8'] = true }

-- A format frame, as a string; the picture has a character for each value (muster_message_add_values()).
local function values(picture, ...)
    local count, given = select('#', ...), { ... }
    if count ~= #picture then error(('the picture %s is for %d values, not %d'):format(picture, #picture, count), 2) end
    local array = ffi.new('muster_value[?]', math.max(1, count))
    for i = 1, count do
        local kind = picture:sub(i, i)
        if integers[kind] then
            array[i - 1].integer = given[i]
        elseif kind == 's' or kind == 'b' then
            array[i - 1].data, array[i - 1].bytes = ffi.cast('const char *', given[i]), #given[i]
        else
            array[i - 1].real = tonumber(given[i]) or 0
        end
    end
    local handle = handle_of {}
    local status = C.muster_message_add_values(handle, picture, array, count, problem)
    if status ~= OK then error(select(2, muster.failure(status)), 2) end
    C.muster_message_frame(handle, 0, frame)
    return ffi.string(frame.data, frame.bytes)
end

-- The values of a format frame of a message: all of them; or nil, why and the status where its types are others.
function Message:values(index, picture)
    if not self.frames[index] then return nil, ('the message has no frame %d'):format(index), muster.E_NOT_FOUND end
    local handle = handle_of { frames = { self.frames[index] } }
    local array = ffi.new('muster_value[?]', max_values)
    local status = C.muster_message_get_values(handle, 0, picture, nil, array, max_values, count_out, problem)
    if status ~= OK then return muster.failure(status) end
    local all = {}
    for i = 1, count_out[0] do
        local kind, value = picture:sub(i, i), array[i - 1]
        if integers[kind] then
            all[i] = tonumber(value.integer)
        elseif kind == 's' or kind == 'b' then
            all[i] = value.bytes == 0 and '' or ffi.string(value.data, value.bytes)
        else
            all[i] = value.real
        end
    end
    return unpack(all, 1, count_out[0])
end

-- ---- sockets

local function new(loop, kind, config)
    local self = setmetatable({ loop = loop, undelivered = {} }, Socket)
    self.tag = loop:tag(function(status, object)
        if object == nil then return end -- readiness
        local message = message_of(ffi.cast('muster_message *', object))
        message.status = status
        table.insert(self.undelivered, message)
    end)
    local given = { kind = kind, queue = loop.queue, tag = self.tag }
    for name, value in pairs(config or {}) do given[name] = value end
    local handle, why, status = muster.socket_create(loop.context, given)
    if not handle then return nil, why, status end
    self.handle = handle
    self.address = number_of(handle:address())
    return self
end

local address_out = ffi.new 'char[4200]'

-- The address that peers connect to. In the meantime no other task runs.
function Socket:bind(address)
    if not self.handle then return nil, 'the socket is closed', muster.E_CLOSED end
    local status = C.muster_socket_bind(self.handle, address, #address, address_out, ffi.sizeof(address_out), problem)
    if status ~= OK then return muster.failure(status) end
    return ffi.string(address_out)
end

-- Connects to this address, and again whenever the connection is lost.
function Socket:connect(address)
    if not self.handle then return nil, 'the socket is closed', muster.E_CLOSED end
    return self.handle:connect(address)
end

-- In a task: calls attempt() until it gives a status other than AGAIN.
local function attempt_until(self, what, timeout_ns, attempt)
    local deadline = self.loop:deadline(timeout_ns)
    while self.handle do
        local status = attempt(self.handle)
        if status ~= AGAIN then return status end
        if deadline and deadline <= self.loop.now() then return TIMEOUT, what .. ': not in time' end
        self.loop:wait(self.tag, deadline)
    end
    return muster.E_CLOSED, 'the socket is closed'
end

local function result(status, why)
    if status == OK then return true end
    if why then return nil, why, status end
    return muster.failure(status)
end

-- In a task: true once the message is accepted.
function Socket:send(message, timeout_ns)
    local handle = handle_of(message)
    local status, why = attempt_until(self, 'send', timeout_ns, function(socket)
        problem.message_bytes = 0
        return C.muster_socket_send(socket, handle, 0, problem)
    end)
    if status == OK then ffi.gc(handle, nil) end -- the socket's
    return result(status, why)
end

-- In a task: the next message.
function Socket:receive(timeout_ns)
    local status, why = attempt_until(self, 'receive', timeout_ns, function(socket)
        problem.message_bytes = 0
        return C.muster_socket_receive(socket, 0, handle_out)
    end)
    if status == OK then return message_of(handle_out[0]) end
    return result(status, why)
end

local kinds = { 'connected', 'lost', 'replaced', 'refused' }
-- In a task: the next event of a peer: { kind = 'connected', address =, incarnation =, undelivered =, text = }.
function Socket:next_event(timeout_ns)
    local status, why = attempt_until(self, 'next_event', timeout_ns, function(socket)
        problem.message_bytes = 0
        return C.muster_socket_next_event(socket, 0, event)
    end)
    if status ~= OK then return result(status, why) end
    return { kind = kinds[event.kind], address = number_of(event.address), incarnation = event.incarnation,
        undelivered = tonumber(event.undelivered), text = ffi.string(event.text, event.text_bytes) }
end

-- In a task: true once so many peers are connected.
function Socket:wait_peers(count, timeout_ns)
    return result(attempt_until(self, 'wait_peers', timeout_ns, function(socket)
        problem.message_bytes = 0
        return C.muster_socket_wait_peers(socket, count, 0, count_out)
    end))
end

-- Ends the connections; tasks that wait get E_CLOSED. Waits up to timeout_ns (default: not at all) until the peers have read
-- what was sent, and holds up other tasks meanwhile.
function Socket:close(timeout_ns)
    local handle = self.handle
    if not handle then return true end
    self.handle = nil
    local right, why, status = handle:close(timeout_ns or 0)
    self.loop:notify(self.tag)
    handle:release()
    return right, why, status
end

return {
    dealer = function(loop, config) return new(loop, muster.SOCKET_DEALER, config) end,
    router = function(loop, config) return new(loop, muster.SOCKET_ROUTER, config) end,
    values = values,
}
