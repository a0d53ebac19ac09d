-- SPDX-License-Identifier: MIT
-- Serves lua:// in a context of somebody else's, on the thread that runs this, until lua_servant.c posts the last tag, or
-- the context is closed.
package.path = os.getenv('MUSTER_LUA') .. '/?.lua;' .. os.getenv('MUSTER_LUA') .. '/../../bindings/lua/?.lua;' .. package.path
local ffi = require 'ffi'
local muster = require 'muster'
local transport = require 'transport'
ffi.cdef [[
    typedef struct lua_servant {
        muster_context *context; muster_queue *queue; uint64_t last_tag; void *serving;
    } lua_servant;
    int sem_post(void *semaphore);
]]

local servant = ffi.cast('lua_servant *', (...))
local loop = assert(muster.loop(servant.context))
transport.serve(loop)
local queue = loop.queue -- lives as long as the interpreter: it is still posted to
local right, why = pcall(loop.run, loop, function()
    local last = loop:tag()
    servant.queue, servant.last_tag = queue, last
    ffi.C.sem_post(servant.serving)
    loop:wait(last)
end)
if not right and muster.C.muster_queue_next(queue, 0, ffi.new 'muster_completion', nil) ~= muster.E_CLOSED then error(why, 0) end
