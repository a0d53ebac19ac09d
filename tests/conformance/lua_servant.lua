-- SPDX-License-Identifier: MIT
-- Serves lua:// in a context of somebody else's, on the thread that runs this, until lua_servant.c posts the last tag.
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
loop:run(function()
    local last = loop:tag()
    servant.queue, servant.last_tag = loop.queue, last
    ffi.C.sem_post(servant.serving)
    loop:wait(last)
end)
loop:close()
