-- SPDX-License-Identifier: MIT
-- A LuaJIT host with nothing but ffi: outside.lua <library> <version> <cdef text>
local ffi = require 'ffi'
ffi.cdef(assert(io.open(arg[3])):read('*a'))
local muster = ffi.load(arg[1])
assert(ffi.string(muster.muster_version(nil, nil, nil)) == arg[2])

local context, first, second = ffi.new('muster_context *[1]'), ffi.new('muster_stream *[1]'), ffi.new('muster_stream *[1]')
local err, moved = ffi.new('muster_error'), ffi.new('size_t[1]')
assert(muster.muster_context_create(nil, context, err) == muster.MUSTER_OK, ffi.string(err.message))
assert(muster.muster_stream_pair(context[0], nil, first, second, err) == muster.MUSTER_OK, ffi.string(err.message))
assert(muster.muster_stream_write(first[0], 'hello', 5, -1, moved) == muster.MUSTER_OK)
local got = ffi.new('char[16]')
assert(muster.muster_stream_read(second[0], got, 16, -1, moved) == muster.MUSTER_OK)
assert(ffi.string(got, moved[0]) == 'hello')
muster.muster_stream_release(first[0])
muster.muster_stream_release(second[0])
assert(muster.muster_context_close(context[0], -1) == muster.MUSTER_OK)
muster.muster_context_release(context[0])
print('LuaJIT moved ' .. tonumber(moved[0]) .. ' bytes')
