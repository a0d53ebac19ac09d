-- SPDX-License-Identifier: MIT
-- Applies a function to a list in all workers of a cluster, in batches; for Cluster:map() in muster/cluster.lua.
local muster = require 'muster'
local packing = require 'muster.pack'

-- A map: batches that wait, and results. A batch is `first`, `count`, and the number of workers that have `ended` with
-- it.
local Map = {}
Map.__index = Map

function Map:fail(why, status)
    if not self.failure then self.failure, self.status = why, status end
end

-- A worker has ended while it had the batch. Each entry is sent alone then, so that an entry that ends its worker is
-- found.
function Map:lost(batch, why)
    local ended = batch.ended + 1
    if ended >= self.max_tries then
        local which = batch.count == 1 and 'entry ' .. batch.first
            or ('entries %d to %d'):format(batch.first, batch.first + batch.count - 1)
        return self:fail(('%s of the list: %d worker(s) ended while they had it, the last one: %s'):format(which, ended, why),
            muster.E_LIMIT)
    end
    for first = batch.first + batch.count - 1, batch.first, -1 do
        self.waiting[#self.waiting + 1] = { first = first, count = 1, ended = ended }
    end
end

-- One batch at a worker; false: the worker has ended.
function Map:try(member, batch)
    local entries = packing.new_table(batch.count, 0)
    for i = 1, batch.count do entries[i] = self.list[batch.first + i - 1] end
    local fit, values, why, status = pcall(self.ask, self.cluster, self.deadline, 'map', member, self.body, entries, batch.count)
    if not fit then -- it cannot be sent
        self:fail(tostring(values), muster.E_ARG)
    elseif values then
        for i = 1, batch.count do self.results[batch.first + i - 1] = values[i] end
        self.left = self.left - batch.count
    elseif status == muster.TIMEOUT and self.deadline then
        self:fail('map: not in time', status)
    elseif status then -- the worker could not be reached
        self:lost(batch, why)
        return false
    else
        self:fail(why)
    end
    return true
end

-- One of the two tasks of a worker: while one batch is sent, the other is computed. A batch with which a worker has
-- ended is the only one of its next worker.
function Map:work(member, load)
    local loop = self.cluster.loop
    self.tasks = self.tasks + 1
    while not self.failure and self.left > 0 and not load.over do
        local batch = self.waiting[#self.waiting]
        if not batch or load.alone or (batch.ended > 0 and load.batches > 0) then -- batches of other workers may be given back
            if loop:wait(self.changed, self.deadline) == muster.TIMEOUT then self:fail('map: not in time', muster.TIMEOUT) end
        else
            self.waiting[#self.waiting] = nil
            load.batches, load.alone = load.batches + 1, batch.ended > 0
            load.over = not self:try(member, batch) or load.over
            load.batches, load.alone = load.batches - 1, false
            loop:notify(self.changed)
        end
    end
    self.tasks = self.tasks - 1
    loop:notify(self.changed)
    if self.tasks == 0 or self.left == 0 then loop:notify(self.finished) end
end

function Map:start(member)
    local load = { batches = 0, alone = false, over = false }
    for _ = 1, 2 do self.cluster.loop:spawn(Map.work, self, member, load) end
end

-- ask(cluster, deadline, 'map', member, body, entries, count): the list of the results of one batch.
local function run(cluster, ask, body, list, options)
    local members = cluster:members()
    if #members == 0 then return nil, 'no worker is there', muster.E_NOT_FOUND end
    local loop, total = cluster.loop, table.maxn(list)
    local batch = options.batch or math.max(1, math.ceil(total / (16 * #members)))
    local map = setmetatable({ cluster = cluster, ask = ask, body = body, list = list, left = total, tasks = 0,
        deadline = loop:deadline(options.timeout_ns), max_tries = options.max_tries or 3, waiting = {}, results = {},
        changed = loop:tag(), finished = loop:tag() }, Map)
    for first = math.floor((total - 1) / batch) * batch + 1, 1, -batch do -- the next one is the last one of the list
        map.waiting[#map.waiting + 1] = { first = first, count = math.min(batch, total - first + 1), ended = 0 }
    end
    cluster.mapping[map.finished] = function(member) map:start(member) end -- workers that join meanwhile take part
    for _, member in ipairs(members) do map:start(member) end
    while map.tasks > 0 do loop:wait(map.finished) end
    cluster.mapping[map.finished] = nil
    if map.failure then return nil, map.failure, map.status end
    if map.left > 0 then return nil, 'no worker is left', muster.E_PEER end
    return map.results
end

return { run = run }
