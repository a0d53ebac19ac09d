-- SPDX-License-Identifier: MIT
-- Collective operations for tasks (coroutines) of a muster.loop, on lists of numbers.
--
--   local group = groups.open(loop, { round = round.handle, listen = 'tcp://10.0.0.7:0' }) -- or store, rank and size
--   local sums = assert(group:all_reduce('+', { 1, 2, 3 }))                               -- 64-bit floating-point numbers
--   local all = assert(group:all_gather { group.rank })                                   -- all[rank + 1][1]
--
-- Every member calls the same operations in the same order. What did not end with MUSTER_OK gives nil, a sentence, the status and
-- the rank at fault. open(), split(), close() and a reduction that is a Lua function hold up the whole program; everything
-- else lets other tasks go on. Arrays of other types: run(), with cdata.
local bit = require 'bit'
local ffi = require 'ffi'
local muster = require 'muster'
local C = muster.C

local Group = {}
Group.__index = Group

local reductions = { ['+'] = muster.REDUCE_SUM, ['*'] = muster.REDUCE_PRODUCT, min = muster.REDUCE_MIN, max = muster.REDUCE_MAX }

local function group_of(loop, handle)
    return setmetatable({ loop = loop, handle = handle, rank = handle:rank(), size = handle:size(), functions = {} }, Group)
end

-- config: a table of the fields of muster_group_config. `cluster`: a muster.cluster, whose members have their numbers as
-- ranks. `listen` may be left out where all members are on this host.
local function open(loop, config, timeout_ns)
    local given = { listen = not config.addresses and 'tcp://127.0.0.1:0' or nil }
    for name, value in pairs(config) do given[name] = value end
    if type(given.cluster) == 'table' then
        given.cluster, given.flags = given.cluster.handle, bit.bor(given.flags or 0, muster.GROUP_RANK_OF_MEMBER)
    end
    return group_of(loop, assert(muster.group_open(loop.context, given, timeout_ns or 60e9)))
end

-- ---- lists and arrays

local function array_of(list, count)
    local array = ffi.new('double[?]', math.max(1, count))
    for i = 1, count do array[i - 1] = list[i] end
    return array
end

local function list_of(array, first, count)
    local list = {}
    for i = 1, count do list[i] = array[first + i - 1] end
    return list
end

local function lists_of(array, lists, count)
    local all = {}
    for i = 1, lists do all[i] = list_of(array, (i - 1) * count, count) end
    return all
end

local function array_of_lists(lists, count)
    local array = ffi.new('double[?]', math.max(1, #lists * count))
    for i, list in ipairs(lists) do
        if #list ~= count then error(('list %d has %d numbers, not %d'):format(i, #list, count), 3) end
        for j = 1, count do array[(i - 1) * count + j - 1] = list[j] end
    end
    return array
end

-- ---- operations

-- Inside a task: any operation; a table of the fields of muster_group_operation, with cdata arrays, which are kept meanwhile.
function Group:run(operation, timeout_ns)
    local status, _, why = self.loop:complete(function(tag)
        return self.handle:begin(operation, timeout_ns or -1, self.loop.queue, tag)
    end)
    if status == muster.OK then return true end
    return nil, why, status
end

-- A function of two numbers becomes a reduction of the host, which all members have to use in the same order.
local function add_function(group, combine)
    if group.functions[combine] then return group.functions[combine].number end
    local entry = {}
    entry.callback = ffi.cast('muster_reduce_fn', function(_, input, inout, count)
        local from, to = ffi.cast('const double *', input), ffi.cast('double *', inout)
        for i = 0, tonumber(count) - 1 do
            local right, result = pcall(combine, to[i], from[i])
            if not right then
                entry.problem = entry.problem or result -- no error may leave a callback
            else
                to[i] = result
            end
        end
    end)
    entry.number = assert(group.handle:add_reduction(8, entry.callback, nil))
    group.functions[combine] = entry
    return entry.number
end

local function reduce(group, combine, operation, timeout_ns)
    operation.type = muster.TYPE_F64
    operation.reduction = reductions[combine]
    if operation.reduction then return group:run(operation, timeout_ns) end
    if type(combine) ~= 'function' then error(("no reduction '%s'"):format(tostring(combine)), 3) end
    operation.reduction = add_function(group, combine)
    local entry = group.functions[combine]
    entry.problem = nil
    local right, why, status = group.handle:run(operation, timeout_ns or -1)
    if entry.problem then error(entry.problem, 0) end
    return right, why, status
end
jit.off(reduce) -- it is called back

-- Waits until all members have called it.
function Group:barrier(timeout_ns) return self:run({ kind = muster.GROUP_BARRIER }, timeout_ns) end

-- A list that is the same at all members: that of the root. The others give one of the same length.
function Group:broadcast(list, root, timeout_ns)
    local array = array_of(list, #list)
    local right, why, status = self:run({ kind = muster.GROUP_BROADCAST, type = muster.TYPE_F64, root = root or 0, count = #list,
        output = array }, timeout_ns)
    if right then return list_of(array, 0, #list) end
    return nil, why, status
end

-- combine: '+', '*', 'min', 'max', or a function of two numbers.
function Group:all_reduce(combine, list, timeout_ns)
    local array = array_of(list, #list)
    local right, why, status = reduce(self, combine, { kind = muster.GROUP_ALL_REDUCE, count = #list, output = array }, timeout_ns)
    if right then return list_of(array, 0, #list) end
    return nil, why, status
end

-- The list at the root, an empty one elsewhere.
function Group:reduce(combine, list, root, timeout_ns)
    local input, output = array_of(list, #list), ffi.new('double[?]', math.max(1, #list))
    local right, why, status = reduce(self, combine, { kind = muster.GROUP_REDUCE, root = root or 0, count = #list, input = input,
        output = output }, timeout_ns)
    if right then return list_of(output, 0, self.rank == (root or 0) and #list or 0) end
    return nil, why, status
end

-- The reduction of the lists of ranks 0 to this one.
function Group:scan(combine, list, timeout_ns)
    local array = array_of(list, #list)
    local right, why, status = reduce(self, combine, { kind = muster.GROUP_SCAN, count = #list, output = array }, timeout_ns)
    if right then return list_of(array, 0, #list) end
    return nil, why, status
end

-- A list for each member, all of the same length: this one's list of the reduction.
function Group:reduce_scatter(combine, lists, timeout_ns)
    local count = #lists[1]
    local input, output = array_of_lists(lists, count), ffi.new('double[?]', math.max(1, count))
    local right, why, status = reduce(self, combine, { kind = muster.GROUP_REDUCE_SCATTER, count = count, input = input,
        output = output }, timeout_ns)
    if right then return list_of(output, 0, count) end
    return nil, why, status
end

local function collect(group, kind, list, root, has_result, timeout_ns)
    local input, output = array_of(list, #list), ffi.new('double[?]', math.max(1, #list * group.size))
    local right, why, status = group:run({ kind = kind, type = muster.TYPE_F64, root = root, count = #list, input = input,
        output = output }, timeout_ns)
    if right then return lists_of(output, has_result and group.size or 0, #list) end
    return nil, why, status
end

-- The lists of all members, by rank from 1.
function Group:all_gather(list, timeout_ns) return collect(self, muster.GROUP_ALL_GATHER, list, 0, true, timeout_ns) end

-- The same at the root, an empty list elsewhere.
function Group:gather(list, root, timeout_ns)
    return collect(self, muster.GROUP_GATHER, list, root or 0, self.rank == (root or 0), timeout_ns)
end

-- The list for this member, of `count` numbers, out of the lists of the root; the others give nil.
function Group:scatter(lists, count, root, timeout_ns)
    local input, output = lists and array_of_lists(lists, count), ffi.new('double[?]', math.max(1, count))
    local right, why, status = self:run({ kind = muster.GROUP_SCATTER, type = muster.TYPE_F64, root = root or 0, count = count,
        input = input, output = output }, timeout_ns)
    if right then return list_of(output, 0, count) end
    return nil, why, status
end

-- A list for each member, all of the same length: the lists for this one.
function Group:all_to_all(lists, timeout_ns)
    local count = #lists[1]
    local input, output = array_of_lists(lists, count), ffi.new('double[?]', math.max(1, #lists * count))
    local right, why, status = self:run({ kind = muster.GROUP_ALL_TO_ALL, type = muster.TYPE_F64, count = count, input = input,
        output = output }, timeout_ns)
    if right then return lists_of(output, #lists, count) end
    return nil, why, status
end

-- ---- the group itself

-- The group of the members with the same color; nil for a negative one.
function Group:split(color, key, timeout_ns)
    local handle, why, status = self.handle:split(color, key or 0, timeout_ns or 60e9)
    if handle ~= nil and handle ~= true then return group_of(self.loop, handle) end -- a null pointer equals nil
    return nil, why, status
end

-- How far a member is: 'idle', 'active', 'missing' or 'failed', and the number of its last operation.
function Group:progress(rank)
    local status = assert(self.handle:get_status(rank))
    return ({ 'idle', 'active', 'missing', 'failed' })[status.state], tonumber(status.sequence)
end

-- Ends the group for all members, with this text.
function Group:revoke(text) return self.handle:revoke(text or '') end

-- In a task: leaves the group, after all members have.
function Group:close(timeout_ns)
    local right, why, status = self.handle:close(timeout_ns or 60e9)
    self.handle:release()
    for _, entry in pairs(self.functions) do entry.callback:free() end
    self.functions = {}
    return right, why, status
end

return { open = open }
