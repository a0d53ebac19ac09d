-- SPDX-License-Identifier: MIT
-- Serves lua:// in a context of somebody else's, on the thread that runs this, until lua_servant.c posts the last tag.
package.path = os.getenv('MUSTER_LUA') .. '/?.lua;' .. package.path
local ffi = require 'ffi'
local host = require 'host'
local transport = require 'transport'
ffi.cdef [[
    typedef struct lua_servant {
        muster_context *context; muster_queue *queue; uint64_t last_tag; void *serving;
    } lua_servant;
    int sem_post(void *semaphore);
]]

local servant = ffi.cast('lua_servant *', (...))
local h = host.within(servant.context)
transport.serve(h)
h:task(function()
    local last = h:tag()
    servant.queue, servant.last_tag = h.queue, last
    ffi.C.sem_post(servant.serving)
    h:wait(last)
end)
h:run()
h:leave()
