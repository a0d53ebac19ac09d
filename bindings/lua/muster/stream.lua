-- SPDX-License-Identifier: MIT
-- Listeners and streams of strings for the tasks of a muster.loop, which makes them: loop:dial(), loop:listen(), loop:stream().
local ffi = require 'ffi'
local muster = require 'muster'
local C = muster.C
local OK, AGAIN, TIMEOUT = muster.OK, muster.AGAIN, muster.TIMEOUT

local Stream, Listener = {}, {}
Stream.__index, Listener.__index = Stream, Listener

local room = 256 * 1024
local buffer = ffi.new('uint8_t[?]', room)
local moved = ffi.new 'size_t[1]'
local problem = muster.problem

local function closed(what) return nil, ('the %s is closed'):format(what), muster.E_CLOSED end
local function timed_out(what) return nil, ('%s: not in time'):format(what), TIMEOUT end

-- The address that others dial, as a string.
function Listener:address()
    if not self.handle then return closed 'listener' end
    return self.handle:address()
end

-- In a task: the next stream.
function Listener:accept(timeout_ns)
    local deadline = self.loop:deadline(timeout_ns)
    while self.handle do
        local stream, why, status = self.handle:accept(0)
        if stream then return self.loop:stream(stream) end
        if status ~= AGAIN then return nil, why, status end
        if deadline and deadline <= self.loop.now() then return timed_out 'accept' end
        self.loop:wait(self.tag, deadline)
    end
    return closed 'listener'
end

-- The object has no handle any more, then the tasks that wait for it are woken, and after that the handle is released.
function Listener:close()
    local handle = self.handle
    if not handle then return end
    self.handle = nil
    handle:close()
    self.loop:notify(self.tag)
    handle:release()
end

-- In a task: waits until the stream may have made progress. True; or nil, the reason and the status.
function Stream:ready(what, deadline)
    if deadline and deadline <= self.loop.now() then return timed_out(what) end
    self.loop:wait(self.tag, deadline)
    if not self.handle then return closed 'stream' end
    return true
end

-- Bytes that a read had received when its time was over.
local function take_kept(self, most)
    local kept = self.kept
    if #kept <= most then
        self.kept = nil
        return kept
    end
    self.kept = kept:sub(most + 1)
    return kept:sub(1, most)
end

-- Reads at least one byte, up to `most`; nil, a sentence and MUSTER_E_END after the last one.
function Stream:read_some(most, timeout_ns)
    if not self.handle then return closed 'stream' end
    if self.kept then return take_kept(self, most or room) end
    local deadline = self.loop:deadline(timeout_ns)
    while true do
        local status = C.muster_stream_read(self.handle, buffer, math.min(most or room, room), 0, moved)
        if status == OK then return ffi.string(buffer, moved[0]) end
        if status ~= AGAIN then return self:ended(status) end
        local right, why, code = self:ready('read', deadline)
        if not right then return nil, why, code end
    end
end

-- Reads this number of bytes into memory (cdata); true, or nil, the reason, and the number of bytes received.
function Stream:read_into(place, size, timeout_ns)
    if not self.handle then
        local _, why, code = closed 'stream'
        return nil, why, code, 0
    end
    local got, deadline = 0, self.loop:deadline(timeout_ns)
    if self.kept then
        local kept = take_kept(self, size)
        got = #kept
        ffi.copy(place, kept, got)
    end
    while true do
        local status = C.muster_stream_read_into(self.handle, place + got, size - got, 0, 0, moved)
        got = got + tonumber(moved[0])
        if status == OK then return true end
        local _, why, code
        if status ~= AGAIN then
            _, why, code = self:ended(status)
            return nil, why, code, got
        end
        status, why, code = self:ready('read', deadline)
        if not status then return nil, why, code, got end
    end
end

-- Reads this number of bytes as a string. After a timeout, or at the end, the bytes received are kept for the next
-- read.
function Stream:read(size, timeout_ns)
    if not self.handle then return closed 'stream' end
    local got, place = 0, nil
    if size <= room and not self.kept and self.loop.waiting[self.tag] == nil then -- at once, or in memory of its own
        local status = C.muster_stream_read_into(self.handle, buffer, size, 0, 0, moved)
        if status == OK then return ffi.string(buffer, size) end
        got = tonumber(moved[0])
        if status ~= AGAIN then
            if got > 0 then self.kept = ffi.string(buffer, got) end
            return self:ended(status)
        end
        place = ffi.new('uint8_t[?]', size)
        ffi.copy(place, buffer, got)
    else
        place = ffi.new('uint8_t[?]', size)
    end
    local right, why, code, more = self:read_into(place + got, size - got, timeout_ns)
    if right then return ffi.string(place, size) end
    if got + more > 0 then self.kept = ffi.string(place, got + more) .. (self.kept or '') end
    return nil, why, code
end

-- Writes all of the text, and waits for room; true, or nil, the reason, the status, and the number of bytes written.
function Stream:write(text, timeout_ns)
    if not self.handle then return closed 'stream' end
    local at, size, deadline = 0, #text, self.loop:deadline(timeout_ns)
    local from = ffi.cast('const char *', text)
    while true do
        local status = C.muster_stream_write(self.handle, from + at, size - at, 0, moved)
        if status == OK then return true end
        at = at + tonumber(moved[0])
        local _, why, code
        if status ~= AGAIN then
            _, why, code = self:ended(status)
            return nil, why, code, at
        end
        status, why, code = self:ready('write', deadline)
        if not status then return nil, why, code, at end
    end
end

-- In a task: waits until what was written has left this process; where memory is shared, until the other side can read it.
function Stream:flush(timeout_ns)
    if not self.handle then return closed 'stream' end
    local status, _, why = self.loop:complete(function(tag)
        return self.handle:flush_begin(timeout_ns or -1, self.loop.queue, tag)
    end)
    if status == OK then return true end
    if status == TIMEOUT then return timed_out 'flush' end
    return nil, why, status
end

-- Why a stream has ended: nil, a sentence, and the status.
function Stream:ended(status)
    if not self.handle then return closed 'stream' end
    if status ~= muster.E_END then
        problem.message_bytes = 0
        C.muster_stream_reason(self.handle, nil, problem)
        if problem.message_bytes > 0 then return muster.failure(status) end
    end
    return nil, ffi.string(C.muster_status_text(status)), tonumber(status)
end

-- The code of an abort, and a sentence.
function Stream:reason()
    if not self.handle then return closed 'stream' end
    local code = ffi.new 'uint64_t[1]'
    problem.message_bytes = 0
    C.muster_stream_reason(self.handle, code, problem)
    return tonumber(code[0]), ffi.string(problem.message, problem.message_bytes)
end

-- The address that was dialled, or that the connection came from.
function Stream:peer()
    if not self.handle then return closed 'stream' end
    return self.handle:peer()
end

-- The address of the socket at this end of a stream over tcp; of another one nil, a sentence and muster.E_UNSUPPORTED.
function Stream:local_address()
    if not self.handle then return closed 'stream' end
    return self.handle:local_address()
end

-- The hello of the peer: the string that it has passed when it dialled or listened.
function Stream:hello()
    if not self.handle then return closed 'stream' end
    return muster.transport_hello(self.handle)
end

-- Ends the direction of writing; the peer reads the end of the stream.
function Stream:finish()
    if not self.handle then return closed 'stream' end
    return self.handle:finish()
end

-- Ends both directions now; the peer gets the code and the text.
function Stream:abort(code, text)
    if not self.handle then return closed 'stream' end
    return self.handle:abort(code, text)
end

-- Closes the stream; bytes that were accepted are still sent. The object has no handle any more, then the tasks that
-- read or write are woken, and after that the handle is released.
function Stream:close()
    local handle = self.handle
    if not handle then return end
    self.handle = nil
    handle:watch(0, nil, 0)
    self.loop:forget(self.tag)
    handle:close(0)
    self.loop:notify(self.tag)
    handle:release()
end

return { Stream = Stream, Listener = Listener }
