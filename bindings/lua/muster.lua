-- SPDX-License-Identifier: MIT
-- Muster for LuaJIT: the whole C API.
--
--   local muster = require 'muster'
--   local context = assert(muster.context_create())
--   local stream, why, status = muster.transport_dial(context, 'tcp://127.0.0.1:4100', { retry_ns = 1e9 }, 5e9)
--
-- A function has the name of its C function without `muster_`; what a handle does is also a method of it:
-- `stream:close(0)`. Arguments come in C's order, without these: sizes of texts, `struct_size`, outputs, and the error.
-- A struct is a table of its fields; a text is a string, also in a table, and sets its `..._bytes`; lists of words or
-- of structs are tables. A call returns its outputs: handles, numbers (64-bit ones as cdata), strings, structs as
-- cdata; true if it has none. A call that does not end with MUSTER_OK returns nil, a sentence and the status:
-- `muster.AGAIN`, `muster.E_PEER`. Constants have their names without `MUSTER_`.
--
-- Handles are released by the collector, or at once by `handle:release()`. A call with a released handle returns nil, a
-- sentence and `muster.E_CLOSED`, or is an error where the function of C returns no status; a second release has no
-- effect. Functions that fill memory (stream_read, ...) take a cdata pointer as in C; `muster.loop` has streams of
-- strings.
local has_ffi, ffi = pcall(require, 'ffi')
if not has_ffi then
    error('muster needs LuaJIT, whose module ffi loads the library (Debian: luajit); this is ' .. _VERSION, 0)
end
local surface = require 'muster.surface'

ffi.cdef(surface.cdef)

-- MUSTER_LIBRARY; then beside this file; then where the system looks.
local function open_library()
    local named = os.getenv 'MUSTER_LIBRARY'
    if named and named ~= '' then return ffi.load(named) end
    local here = debug.getinfo(1, 'S').source:match '^@(.*)/[^/]*$'
    local found, library = pcall(ffi.load, (here or '.') .. '/libmuster.so')
    if found then return library end
    for _, name in ipairs { 'muster', 'libmuster.so.0.1' } do
        found, library = pcall(ffi.load, name)
        if found then return library end
    end
    error('libmuster.so is not found: install it, or name it in MUSTER_LIBRARY', 0)
end

local C = open_library()
local muster = { C = C }

local problem = ffi.new 'muster_error' -- nothing yields between a call and a look at it
muster.problem = problem

-- nil, a sentence, the status.
function muster.failure(status)
    local text = problem.message_bytes > 0 and ffi.string(problem.message, problem.message_bytes)
        or ffi.string(C.muster_status_text(status))
    return nil, text, tonumber(status)
end

-- ---- released handles

-- A released handle points to memory that C may have freed, so no call gets it any more. Keys are the cdata objects.
local dead = setmetatable({}, { __mode = 'k' })

local function dead_text(value) return ('the %s has been released'):format(dead[value]) end

-- ---- structs from tables

local fields = {} -- by struct: by field: its base type
for _, struct in ipairs(surface.structs) do
    local of = {}
    for _, field in ipairs(struct[3]) do of[field[1]] = field[3] end
    fields[struct[1]] = of
end

local fill -- forward

local function list_of(kind, list, keep)
    if kind == 'char' then
        local words = ffi.new('const char *[?]', #list + 1)
        for i, word in ipairs(list) do words[i - 1] = word end
        keep[#keep + 1] = list
        keep[#keep + 1] = words
        return words
    end
    local array = ffi.new(kind .. '[?]', math.max(1, #list))
    for i, entry in ipairs(list) do fill(array[i - 1], kind, entry, keep) end
    keep[#keep + 1] = array
    return array
end

local function is_list(value) return #value > 0 end

function fill(struct, kind, from, keep)
    local of = fields[kind]
    if of.struct_size then struct.struct_size = ffi.sizeof(kind) end
    for name, value in pairs(from) do
        local base = of[name] or error(('%s has no field %s'):format(kind, tostring(name)), 0)
        if type(value) == 'string' then
            keep[#keep + 1] = value
            struct[name] = ffi.cast('const char *', value)
            if of[name .. '_bytes'] then struct[name .. '_bytes'] = #value end
        elseif type(value) == 'table' and (base == 'char' or is_list(value)) then
            struct[name] = list_of(base, value, keep)
            local count = name:gsub('s$', '') .. '_count'
            if of[count] then struct[count] = #value end
        elseif type(value) == 'table' then
            local inner = ffi.new(base)
            fill(inner, base, value, keep)
            keep[#keep + 1] = inner
            struct[name] = inner
        else
            if dead[value] then error(('%s: %s'):format(name, dead_text(value)), 0) end
            struct[name] = value
        end
    end
    return struct
end

-- A struct of that name ("stream_config"), filled from a table. It points into the strings of `keep`.
function muster.struct(kind, from, keep)
    kind = 'muster_' .. kind
    return fill(ffi.new(kind), kind, from or {}, keep or {})
end

-- ---- functions

local small = { size_t = true, uint32_t = true, int32_t = true, muster_status = true }

local function owned(kind, pointer)
    return ffi.gc(pointer, C[kind .. '_release'])
end

-- What each kind of parameter does with the caller's arguments: takes so many, and puts C's into `call`.
local put = {}

function put.handle(call, _, value) call:add(value) end
put.as_it_is = put.handle
function put.number(call, _, value) call:add(value or 0) end

function put.text(call, _, value)
    if value ~= nil and type(value) ~= 'string' then error('a string is wanted, not a ' .. type(value), 0) end
    call:keep(value)
    call:add(value and ffi.cast('const char *', value))
    call:add(value and #value or 0)
end

function put.struct(call, kind, value)
    if type(value) == 'table' then value = fill(ffi.new(kind), kind, value, call.kept) end
    call:keep(value)
    call:add(value)
end

function put.list(call, kind, value)
    call:add(list_of(kind, value, call.kept))
    call:add(#value)
end

local give = {}

function give.new(call, kind)
    local place = ffi.new(kind .. ' *[1]')
    call:add(place)
    return function() return owned(kind, place[0]) end
end

function give.gives_number(call, kind)
    local place = ffi.new(kind .. '[1]')
    call:add(place)
    return function() return small[kind] and tonumber(place[0]) or place[0] end
end

function give.gives_struct(call, kind)
    local place = ffi.new(kind)
    if fields[kind].struct_size then place.struct_size = ffi.sizeof(kind) end
    call:add(place)
    return function() return place end
end

function give.gives_text(call)
    local size = ffi.new 'size_t[1]'
    local room = 1024
    local place = ffi.new('char[?]', room)
    call:add(place)
    call:add(room)
    call:add(size)
    local at = call.count
    call.again = function() -- it was too small
        room = tonumber(size[0]) + 1
        place = ffi.new('char[?]', room)
        call.arguments[at - 2], call.arguments[at - 1] = place, room
    end
    return function() return ffi.string(place, size[0]) end
end

function give.gives_list(call, kind)
    local count = ffi.new 'size_t[1]'
    local room = 64
    local place = ffi.new(kind .. '[?]', room)
    call:add(place)
    call:add(room)
    call:add(count)
    local at = call.count
    call.again = function()
        room = tonumber(count[0])
        place = ffi.new(kind .. '[?]', room)
        call.arguments[at - 2], call.arguments[at - 1] = place, room
    end
    return function()
        local list = {}
        for i = 1, tonumber(count[0]) do list[i] = tonumber(place[i - 1]) end
        return list
    end
end

local Call = {} -- of a function of C: its arguments, and what has to live until it returns
Call.__index = Call
function Call:add(value)
    self.count = self.count + 1
    self.arguments[self.count] = value
end
function Call:keep(value) self.kept[#self.kept + 1] = value end

local function build(name, returns, params)
    local f = C[name]
    return function(...)
        local call = setmetatable({ arguments = {}, count = 0, kept = {} }, Call)
        local taken, results = 0, {}
        problem.message_bytes = 0
        for _, param in ipairs(params) do
            local kind = param[1]
            if kind == 'error' then
                call:add(problem)
            elseif give[kind] then
                results[#results + 1] = give[kind](call, param[3])
            else
                taken = taken + 1
                local value = (select(taken, ...))
                if kind == 'handle' and value ~= nil and dead[value] then
                    if returns ~= 'muster_status' then error(('%s: %s'):format(name, dead_text(value)), 0) end
                    return nil, dead_text(value), muster.E_CLOSED
                end
                put[kind](call, param[3], value)
            end
        end
        local status = f(unpack(call.arguments, 1, call.count))
        if returns ~= 'muster_status' then
            if returns == 'const char *' then return ffi.string(status) end
            return returns ~= 'void' and status or nil
        end
        if status == C.MUSTER_E_LIMIT and call.again then
            call.again()
            status = f(unpack(call.arguments, 1, call.count))
        end
        if status ~= C.MUSTER_OK then return muster.failure(status) end
        if #results == 0 then return true end
        for i, result in ipairs(results) do results[i] = result() end
        return unpack(results)
    end
end

local methods = {}
for _, kind in ipairs(surface.opaque) do methods[kind] = {} end

for _, entry in ipairs(surface.functions) do
    local name, returns, params = unpack(entry)
    local f = build(name, returns, params)
    if name:match '_release$' and params[1][1] == 'handle' then
        local release, noun = C[name], name:match '^muster_(.*)_release$':gsub('_', ' ')
        f = function(handle)
            if handle == nil or dead[handle] then return end
            dead[handle] = noun
            release(ffi.gc(handle, nil))
        end
    end
    muster[name:sub(8)] = f
    local kind = params[1] and params[1][1] == 'handle' and params[1][3]
    if kind and name:sub(1, #kind + 1) == kind .. '_' then methods[kind][name:sub(#kind + 2)] = f end
end

for _, kind in ipairs(surface.opaque) do ffi.metatype(kind, { __index = methods[kind] }) end
muster.methods = methods -- more can be added

-- Constants, without MUSTER_: looked up when they are used first.
setmetatable(muster, {
    __index = function(self, name)
        local found, value = pcall(function() return C['MUSTER_' .. name] end)
        if not found then return nil end
        value = tonumber(value)
        rawset(self, name, value)
        return value
    end,
})

-- An event loop with tasks, see muster/loop.lua; on top of it, functions called in other processes: muster/cluster.lua.
function muster.loop(context) return require('muster.loop').new(context) end

-- A pointer of a completion as a handle that is released by the collector.
function muster.adopt(kind, pointer) return owned('muster_' .. kind, ffi.cast('muster_' .. kind .. ' *', pointer)) end

return muster
