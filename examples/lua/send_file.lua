-- SPDX-License-Identifier: MIT
-- A file goes from one process to another over lua://, a transport this program brings itself (transport.lua).
--   luajit send_file.lua FILE COPY      starts itself a second time and sends FILE to it, which writes COPY
-- The secret of the job goes to the second process through a pipe, since a command line is public.
local folder = arg[0]:match('^(.*)/') or '.'
package.path = folder .. '/?.lua;' .. package.path
local ffi = require 'ffi'
local host = require 'host'
local transport = require 'transport'
local muster = host.library
ffi.cdef 'int pipe2(int *fds, int flags); ssize_t write(int fd, const void *from, size_t size); int getpid(void);'
local C = ffi.C
local O_CLOEXEC = 0x80000

local function status_text(status) return ffi.string(muster.muster_status_text(status)) end

-- The second process: everything to its end, then how much it was.
local function receive(address, copy)
    local h = host.new(3)
    transport.serve(h)
    h:task(function()
        local stream, _, why = h:dial(address)
        assert(stream, why)
        local file, total = assert(io.open(copy, 'wb')), 0
        while true do
            local bytes, status = stream:read()
            if not bytes then
                assert(status == muster.MUSTER_E_END, status_text(status))
                break
            end
            total = total + #bytes
            assert(file:write(bytes))
        end
        assert(file:close())
        assert(stream:write(('%d'):format(total)) == muster.MUSTER_OK)
        stream:close()
    end)
    h:run()
    h:close()
end

local function send(file, copy)
    local h = host.new()
    transport.serve(h)
    local path = ('%s/send_file-%d'):format(os.getenv('TMPDIR') or '/tmp', C.getpid())
    local listener = h:listen('lua://' .. path)
    local ends, secret = ffi.new('int[2]'), h:secret()
    assert(C.pipe2(ends, O_CLOEXEC) == 0)
    local child = h:spawn({ 'luajit', arg[0], '--receive', 'lua://' .. path, copy }, { [3] = ends[0] })
    assert(C.write(ends[1], secret, #secret) == #secret)
    C.close(ends[0])
    C.close(ends[1])
    local code
    h:task(function() code = h:exit_of(child) end)
    h:task(function()
        local stream, sent = h:accept(listener), 0
        local from = assert(io.open(file, 'rb'))
        for bytes in function() return from:read(256 * 1024) end do
            local status = stream:write(bytes)
            assert(status == muster.MUSTER_OK, status_text(status))
            sent = sent + #bytes
        end
        stream:finish() -- the other direction lives on: the answer comes there
        local answer, status = stream:read()
        assert(answer, status and status_text(status))
        print(('sent %d bytes, the other process has %s'):format(sent, answer))
        stream:close()
        h:close_listener(listener)
    end)
    h:run()
    h:close()
    assert(code == 0, 'the receiver did not end well')
end

if arg[1] == '--receive' and #arg == 3 then
    receive(arg[2], arg[3])
elseif #arg == 2 then
    send(arg[1], arg[2])
else
    io.stderr:write('usage: luajit send_file.lua FILE COPY\n')
    os.exit(2)
end
