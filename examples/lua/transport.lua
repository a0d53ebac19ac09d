-- SPDX-License-Identifier: MIT
-- A transport written in LuaJIT: addresses lua:///path. It pulls its requests from the queue of the loop and moves bytes
-- between the pump of each connection, the other end of a program's stream, and a Unix socket of its own, in frames of
-- its own: four bytes of length, little-endian, then as many bytes; a length of 0 ends a direction in order. If a socket
-- ends without that frame, its process has died. The library does the rest inside: secret, seal, half-close, abort and
-- heartbeats.
local ffi = require 'ffi'
local bit = require 'bit'
local muster = require 'muster'
local library = muster.C

ffi.cdef [[
    typedef struct lua_sockaddr_un { unsigned short family; char path[108]; } lua_sockaddr_un;
    int socket(int domain, int type, int protocol);
    int bind(int fd, const lua_sockaddr_un *address, unsigned size);
    int listen(int fd, int backlog);
    int accept4(int fd, void *address, unsigned *size, int flags);
    int connect(int fd, const lua_sockaddr_un *address, unsigned size);
    int shutdown(int fd, int how);
    int unlink(const char *path);
    ssize_t read(int fd, void *to, size_t size);
    ssize_t send(int fd, const void *from, size_t size, int flags);
    void *memmove(void *to, const void *from, size_t size);
    char *strerror(int number);
]]
local C = ffi.C
local AF_UNIX, SOCK_STREAM, SOCK_NONBLOCK, SOCK_CLOEXEC = 1, 1, 0x800, 0x80000
local EINTR, EAGAIN, EPIPE, EADDRINUSE, ENOENT, EACCES = 4, 11, 32, 98, 2, 13
local MSG_NOSIGNAL, SHUT_WR, POLLIN, POLLOUT = 0x4000, 1, 1, 4
local piece = 64 * 1024
local turns_at_once = 16 -- frames a connection moves before the others have their turn

local moved = ffi.new('size_t[1]')
local stream = ffi.new('muster_stream *[1]')
local id = ffi.new('uint64_t[1]')

-- ---- one connection: a pump and a socket

local Connection = {}
Connection.__index = Connection

local function connect_pump(loop, fd, pump)
    local self = setmetatable({ loop = loop, fd = fd, pump = pump, out = ffi.new('uint8_t[?]', 4 + piece), out_at = 0,
        out_size = 0, inward = ffi.new('uint8_t[?]', 4 + piece), in_at = 0, in_size = 0, frame_left = 0 }, Connection)
    self.tag = loop:tag(function() self:turn() end)
    loop.unfinished = loop.unfinished + 1
    loop:watch(fd, self)
    local both = bit.bor(muster.STREAM_READABLE, muster.STREAM_WRITABLE)
    library.muster_stream_watch(pump, both, loop.queue, self.tag)
end

function Connection:wants()
    return bit.bor((self.in_ended or self.full) and 0 or POLLIN, self.out_at < self.out_size and POLLOUT or 0)
end

-- From the pump to the socket; true: more bytes wait.
function Connection:move_out()
    for _ = 1, turns_at_once do
        if self.out_ended then return false end
        if self.out_at == self.out_size then
            local status = library.muster_stream_read(self.pump, self.out + 4, piece, 0, moved)
            if status == muster.AGAIN then return false end
            if status ~= muster.OK and status ~= muster.E_END then return self:over() end
            local size = status == muster.OK and tonumber(moved[0]) or 0
            for i = 0, 3 do self.out[i] = bit.band(bit.rshift(size, 8 * i), 255) end
            self.out_at, self.out_size, self.last = 0, 4 + size, size == 0
        end
        local n = tonumber(C.send(self.fd, self.out + self.out_at, self.out_size - self.out_at, MSG_NOSIGNAL))
        if n < 0 then
            local why = ffi.errno()
            if why == EAGAIN or why == EINTR then return false end
            if why ~= EPIPE then return self:broken(ffi.string(C.strerror(why))) end
            -- The peer receives no more. What it has sent is still received; the end is found there.
            n = self.out_size - self.out_at
        end
        self.out_at = self.out_at + n
        if self.last and self.out_at == self.out_size then
            self.out_ended = true
            C.shutdown(self.fd, SHUT_WR)
        end
    end
    return true
end

-- From the socket to the pump; true: more bytes wait.
function Connection:move_in()
    self.full = false
    for _ = 1, 4 * turns_at_once do -- a frame is up to four of these steps
        local have = self.in_size - self.in_at
        if self.in_ended then
            return false
        elseif self.frame_left > 0 and have > 0 then
            local wanted = math.min(self.frame_left, have)
            local status = library.muster_stream_write(self.pump, self.inward + self.in_at, wanted, 0, moved)
            -- When the connection is over on this side, the rest is dropped.
            local taken = status < 0 and wanted or tonumber(moved[0])
            self.in_at, self.frame_left = self.in_at + taken, self.frame_left - taken
            self.full = status == muster.AGAIN
            if self.full then return false end
        elseif have >= 4 then
            local size = 0
            for i = 3, 0, -1 do size = size * 256 + self.inward[self.in_at + i] end
            self.in_at, self.frame_left = self.in_at + 4, size
            if size > piece then return self:broken('no frame of a lua:// transport') end
            if size == 0 then
                self.in_ended = true
                library.muster_stream_finish(self.pump)
            end
        else
            C.memmove(self.inward, self.inward + self.in_at, have)
            self.in_at, self.in_size = 0, have
            local n = tonumber(C.read(self.fd, self.inward + have, 4 + piece - have))
            local why = ffi.errno()
            if n < 0 and (why == EAGAIN or why == EINTR) then return false end
            if n <= 0 then return self:broken(n == 0 and 'the other process is gone' or ffi.string(C.strerror(why))) end
            self.in_size = have + n
        end
    end
    return true
end

function Connection:turn()
    local more_out = self:move_out()
    local more_in = not self.ended and self:move_in()
    self.busy = more_out or more_in
    if self.out_ended and self.in_ended then self:over() end
end

function Connection:broken(why)
    library.muster_stream_abort(self.pump, 0, why, #why)
    self:over()
end

function Connection:over()
    if self.ended then return end
    self.ended = true
    self.loop:unwatch(self.fd)
    self.loop:forget(self.tag)
    self.loop.unfinished = self.loop.unfinished - 1
    C.close(self.fd)
    library.muster_stream_watch(self.pump, 0, nil, 0)
    library.muster_stream_release(self.pump)
end

-- ---- requests

local Door = {}
Door.__index = Door

function Door:wants() return POLLIN end

function Door:turn()
    while true do
        local fd = C.accept4(self.fd, nil, nil, bit.bor(SOCK_NONBLOCK, SOCK_CLOEXEC))
        if fd < 0 then return end -- EAGAIN: that was all
        local loop = self.loop
        if library.muster_transport_incoming(loop.queue, self.request, nil, 0, id, stream, nil) == muster.OK then
            connect_pump(loop, fd, stream[0])
        else
            C.close(fd)
        end
    end
end

local function socket_at(path, act)
    local address = ffi.new('lua_sockaddr_un', AF_UNIX)
    if #path == 0 or #path >= 108 then return nil, muster.E_ADDRESS, 'a path of 1 to 107 bytes is needed, and no options' end
    ffi.copy(address.path, path)
    local fd = C.socket(AF_UNIX, bit.bor(SOCK_STREAM, SOCK_NONBLOCK, SOCK_CLOEXEC), 0)
    if fd >= 0 and act(fd, address, ffi.sizeof(address)) == 0 then return fd end
    local why = ffi.errno()
    if fd >= 0 then C.close(fd) end
    local status = why == EADDRINUSE and muster.E_EXISTS or why == EACCES and muster.E_PERMISSION or
        muster.E_UNREACHABLE
    return nil, status, ffi.string(C.strerror(why))
end

local function listen_there(fd, address, size)
    if C.bind(fd, address, size) ~= 0 then return -1 end
    return C.listen(fd, 128)
end

-- Adds lua:// to a loop, which then serves it while it runs.
local function serve(loop)
    local doors = {}

    -- The path; empty if options follow it: this transport has none.
    local function path_of(request)
        return (muster.request_address(loop.queue, request) or ''):match('^lua://([^?]*)$') or ''
    end

    local function fail(request, status, why) muster.request_fail(loop.queue, request, status, why) end

    local function close_door(key)
        loop:unwatch(doors[key].fd)
        C.close(doors[key].fd)
        C.unlink(doors[key].path)
        doors[key] = nil
    end

    loop.requests[muster.REQUEST_OPEN] = function(request)
        local fd, status, why = socket_at(path_of(request), C.connect)
        if not fd then return fail(request, status, why) end
        if library.muster_request_stream(loop.queue, request, stream, nil) == muster.OK then
            connect_pump(loop, fd, stream[0])
        else
            C.close(fd) -- no longer wanted
        end
    end

    loop.requests[muster.REQUEST_LISTEN] = function(request)
        local path, key = path_of(request), tostring(request)
        local fd, status, why = socket_at(path, listen_there)
        if not fd then return fail(request, status, why) end
        doors[key] = setmetatable({ loop = loop, fd = fd, path = path, request = request }, Door)
        loop:watch(fd, doors[key])
        if library.muster_request_listening(loop.queue, request, nil, 0, nil) ~= muster.OK then
            close_door(key) -- no longer wanted
        end
    end

    loop.requests[muster.REQUEST_CLOSE] = function(request)
        local key = tostring(request)
        if doors[key] then close_door(key) end -- the end of a connection shows in its pump, too
    end

    loop.undo[#loop.undo + 1] = function() -- requests to close that have no receiver any more
        for key in pairs(doors) do close_door(key) end
    end
    assert(muster.transport_serve(loop.context, 'lua', 0, loop.queue, 0))
end

return { serve = serve }
