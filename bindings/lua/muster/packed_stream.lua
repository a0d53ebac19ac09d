-- SPDX-License-Identifier: MIT
-- Messages of values (muster.pack) over a stream, for the calls of muster.cluster: requests in one direction, replies in
-- the other.
local ffi = require 'ffi'
local muster = require 'muster'
local packing = require 'muster.pack'
local C = muster.C
local OK, AGAIN = muster.OK, muster.AGAIN

local size_of_message = ffi.new 'uint32_t[1]'
local moved = ffi.new 'size_t[1]'
local bytes_of = ffi.typeof 'uint8_t[?]'

-- The received bytes of a stream, which this task alone reads: short messages are decoded in place.
local room = 4096

local function inbox_of(stream) return { stream = stream, bytes = bytes_of(room), first = 0, past = 0 } end

-- A malformed message ends its stream, not the program.
local function unpacked(bytes, first, past)
    local right, values, count = pcall(packing.unpack, bytes, first, past)
    if not right then return nil, values, muster.E_PROTOCOL end
    return values, count
end

-- Receives a message that is longer than the buffer.
local function receive_long(inbox, size)
    local place = bytes_of(size)
    local there = inbox.past - inbox.first - 4
    ffi.copy(place, inbox.bytes + inbox.first + 4, there)
    inbox.first, inbox.past = 0, 0
    local right, why, status = inbox.stream:read_into(place + there, size - there)
    if not right then return nil, why, status end
    return unpacked(place, 0, size)
end

-- The values of a message that has arrived whole, and their number; false: of none.
local function take_received(inbox)
    local bytes, first = inbox.bytes, inbox.first
    if inbox.past - first < 4 then return false end
    ffi.copy(size_of_message, bytes + first, 4)
    local past = first + 4 + tonumber(size_of_message[0])
    if past > inbox.past or past - first > room then return false end
    inbox.first = past
    return unpacked(bytes, first + 4, past)
end

-- What has arrived of the next message is moved to the front.
local function make_room(inbox)
    local first, past = inbox.first, inbox.past
    if first == 0 then return end
    if past > first then ffi.copy(inbox.bytes, ffi.string(inbox.bytes + first, past - first), past - first) end
    inbox.first, inbox.past = 0, past - first
end

local function receive_slowly(inbox)
    local stream = inbox.stream
    while true do
        local values, more, status = take_received(inbox)
        if values ~= false then return values, more, status end
        if inbox.past - inbox.first >= 4 then
            ffi.copy(size_of_message, inbox.bytes + inbox.first, 4)
            local size = tonumber(size_of_message[0])
            if size > packing.longest then return nil, 'a message of more than 2 GiB', muster.E_PROTOCOL end
            if size + 4 > room then return receive_long(inbox, size) end
        end
        make_room(inbox)
        if not stream.handle then return stream:ended(muster.E_CLOSED) end
        status = C.muster_stream_read(stream.handle, inbox.bytes + inbox.past, room - inbox.past, 0, moved)
        if status == OK then
            inbox.past = inbox.past + tonumber(moved[0])
        elseif status == AGAIN then
            stream.loop:wait(stream.tag)
        else
            return stream:ended(status)
        end
    end
end

-- The values of the next message, and their number; nil and the reason. LuaJIT compiles no loop within that of a
-- caller: the usual cases have none.
local function receive(inbox)
    local values, more, status = take_received(inbox)
    if values ~= false then return values, more, status end
    local stream = inbox.stream
    if inbox.first == inbox.past and stream.handle then
        inbox.first, inbox.past = 0, 0
        status = C.muster_stream_read(stream.handle, inbox.bytes, room, 0, moved)
        if status == AGAIN then
            stream.loop:wait(stream.tag)
        elseif status == OK then
            inbox.past = tonumber(moved[0])
            values, more, status = take_received(inbox)
            if values ~= false then return values, more, status end
        end
    end
    return receive_slowly(inbox)
end

local function send_all(stream, bytes, size)
    if not stream.handle then return stream:ended(muster.E_CLOSED) end
    local status = C.muster_stream_write(stream.handle, bytes, size, 0, moved)
    if status == OK then return true end
    if status ~= AGAIN then return stream:ended(status) end
    return stream:write(ffi.string(bytes + moved[0], size - tonumber(moved[0])))
end

-- Sends a message that was just packed: `self` has a `stream`, its `loop`, and a tag `sent`. Messages of several tasks do
-- not mix. True; or nil, the reason and the status.
local function send(self, bytes, more)
    if self.sending then
        if bytes then bytes, more = nil, { ffi.string(bytes, more) } end
        repeat self.loop:wait(self.sent) until not self.sending
    end
    self.sending = true
    local right, why, status = true, nil, nil
    if bytes then
        right, why, status = send_all(self.stream, bytes, more)
    else
        for i = 1, #more do
            if right then right, why, status = self.stream:write(more[i]) end
        end
    end
    self.sending = false
    self.loop:notify(self.sent)
    return right, why, status
end

return { inbox_of = inbox_of, receive = receive, send = send }
