-- SPDX-License-Identifier: MIT
-- What this process counts, as text for Prometheus, and its publication in a store for `muster top`.
--
--   local metrics = require 'muster.metrics'
--   print(metrics.text(context))
--   local publication = assert(metrics.publish(store, { name = 'lua' }))
--
-- Failures are nil, a sentence and the status.
local muster = require 'muster'

local Publication = {}
Publication.__index = Publication

-- The metrics of a context and of what was made from it.
local function text(context)
    local found, why, status
    repeat found, why, status = muster.metrics_write(context) until status ~= muster.E_LIMIT -- it may grow between two calls
    return found, why, status
end

-- Publishes them in a store of muster.store at intervals, until close(). options: `name` of this process, by default its host
-- and process id; `interval_ns`, by default 2e9.
local function publish(store, options)
    options = options or {}
    local handle, why, status = muster.metrics_publish(store.loop.context, store.handle,
        { name = options.name, interval_ns = options.interval_ns })
    if not handle then return nil, why, status end
    return setmetatable({ handle = handle }, Publication)
end

-- How many texts the store has taken (`published`), and has not (`failed`); `status` of the last one.
function Publication:state()
    local found, why, status = self.handle:get_state()
    if not found then return nil, why, status end
    return { published = tonumber(found.published), failed = tonumber(found.failed), status = found.status }
end

-- Ends it, and removes the text from the store.
function Publication:close() self.handle:release() end

return { text = text, publish = publish }
