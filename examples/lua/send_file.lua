-- SPDX-License-Identifier: MIT
-- Sends a file from one process to another over lua://, a transport that this program serves itself (transport.lua).
--   luajit send_file.lua FILE COPY      starts a second process of itself and sends FILE to it, which writes COPY
-- The secret of the job is passed to the second process through a pipe, since a command line is public.
local folder = arg[0]:match('^(.*)/') or '.'
package.path = folder .. '/?.lua;' .. folder .. '/../../bindings/lua/?.lua;' .. package.path
local ffi = require 'ffi'
local muster = require 'muster'
local transport = require 'transport'
ffi.cdef 'int pipe2(int *fds, int flags); ssize_t write(int fd, const void *from, size_t size); int getpid(void);'
local C = ffi.C
local O_CLOEXEC = 0x80000

local function end_of(loop)
    loop:close()
    loop.context:close(1e9)
end

-- The second process: reads to the end, then answers with the number of bytes.
local function receive(address, copy)
    local loop = muster.loop(assert(muster.context_create { secret_fd_plus_one = 3 + 1 }))
    transport.serve(loop)
    loop:run(function()
        local stream = assert(loop:dial(address))
        local file, total = assert(io.open(copy, 'wb')), 0
        while true do
            local bytes, why, status = stream:read_some()
            if not bytes then
                assert(status == muster.E_END, why)
                break
            end
            total = total + #bytes
            assert(file:write(bytes))
        end
        assert(file:close())
        assert(stream:write(('%d'):format(total)))
        stream:close()
    end)
    end_of(loop)
end

local function send(file, copy)
    local loop = muster.loop(assert(muster.context_create()))
    transport.serve(loop)
    local address = ('lua://%s/send_file-%d'):format(os.getenv('TMPDIR') or '/tmp', C.getpid())
    local listener = loop:run(function() return assert(loop:listen(address)) end) -- this loop serves the transport
    local ends, secret = ffi.new('int[2]'), assert(loop.context:secret())
    assert(C.pipe2(ends, O_CLOEXEC) == 0)
    local child = assert(muster.process_spawn(loop.context, { argv = { 'luajit', arg[0], '--receive', address, copy },
        fds = { { parent_fd = ends[0], child_fd = 3 } } }))
    assert(C.write(ends[1], secret, #secret) == #secret)
    C.close(ends[0])
    C.close(ends[1])
    local code
    loop:spawn(function() code = loop:exit_of(child) end)
    loop:run(function()
        local stream, sent = assert(listener:accept()), 0
        local from = assert(io.open(file, 'rb'))
        for bytes in function() return from:read(256 * 1024) end do
            assert(stream:write(bytes))
            sent = sent + #bytes
        end
        stream:finish() -- the other direction lives on: the answer comes there
        print(('sent %d bytes, the other process has %s'):format(sent, assert(stream:read_some())))
        stream:close()
        listener:close()
    end)
    end_of(loop)
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
