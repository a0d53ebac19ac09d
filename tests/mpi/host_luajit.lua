-- SPDX-License-Identifier: MIT
-- LuaJIT with nothing but ffi, as one of two ranks, driving its own context: host_luajit.lua <cdef text>
local ffi = require 'ffi'
ffi.cdef(assert(io.open(arg[1])):read('*a'))
local muster = ffi.load(assert(os.getenv('MUSTER_LIBRARY')))
local rank = tonumber(os.getenv('OMPI_COMM_WORLD_RANK') or os.getenv('PMI_RANK'))
local second = 1000000000LL
local err, moved = ffi.new('muster_error'), ffi.new('size_t[1]')

local function check(status)
    if status ~= 0 then
        io.stderr:write(('rank %d: status %d %s\n'):format(rank, status, ffi.string(err.message)))
        os.exit(1)
    end
end

local secret = 'a secret of two ranks'
local config = ffi.new('muster_context_config')
config.struct_size, config.flags = ffi.sizeof(config), muster.MUSTER_CONTEXT_EXTERNAL
config.secret, config.secret_bytes = secret, #secret
local context, stream, listener = ffi.new('muster_context*[1]'), ffi.new('muster_stream*[1]'), ffi.new('muster_listener*[1]')
check(muster.muster_context_create(config, context, err))
for _, options in ipairs {'', '?upgrade=no'} do
    if rank == 0 then
        local address = 'mpi:///lua' .. options
        check(muster.muster_transport_listen(context[0], address, #address, nil, listener, err))
        check(muster.muster_listener_accept(listener[0], 30 * second, stream, err))
    else
        local address, patient = 'mpi://0/lua' .. options, ffi.new('muster_transport_config')
        patient.struct_size, patient.retry_ns = ffi.sizeof(patient), 30 * second
        check(muster.muster_transport_dial(context[0], address, #address, patient, 30 * second, stream, err))
    end
    local size = 300000
    local mine, theirs = ffi.new('uint8_t[?]', size), ffi.new('uint8_t[?]', size)
    for i = 0, size - 1 do mine[i] = (i * 7 + rank) % 256 end
    check(muster.muster_stream_write(stream[0], mine, size, 30 * second, moved))
    check(muster.muster_stream_read_into(stream[0], theirs, size, 0, 30 * second, moved))
    for i = 0, size - 1 do assert(theirs[i] == (i * 7 + 1 - rank) % 256) end
    check(muster.muster_stream_close(stream[0], 30 * second))
    muster.muster_stream_release(stream[0])
    if rank == 0 then muster.muster_listener_release(listener[0]) end
end
check(muster.muster_context_close(context[0], 30 * second))
muster.muster_context_release(context[0])
