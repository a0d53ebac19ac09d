-- SPDX-License-Identifier: MIT
-- Values as bytes, for other Lua processes: nil, booleans, numbers, strings, int64_t and uint64_t, tables of these (no
-- cycles, no metatables), and functions without upvalues, as bytecode. Only for peers that have proved the secret.
--
-- pack(...) gives a list of strings, to be written one behind the other; long strings stay as they are, uncopied.
local ffi = require 'ffi'

local long = 32 * 1024
local number = ffi.new 'double[1]'
local size = ffi.new 'uint32_t[1]'
local wide = ffi.new 'int64_t[1]'

local function size_text(n)
    size[0] = n
    return ffi.string(size, 4)
end

local put

local function put_string(out, mark, text)
    out[#out + 1] = mark
    out[#out + 1] = size_text(#text)
    out[#out + 1] = text
end

local function all_numbers(list, count)
    for i = 1, count do if type(list[i]) ~= 'number' then return false end end
    return true
end

local function put_table(out, value, depth)
    if depth > 100 then error('a table in itself, or too deep to be sent', 0) end
    local count = #value
    if count > 0 and all_numbers(value, count) then
        local array = ffi.new('double[?]', count)
        for i = 1, count do array[i - 1] = value[i] end
        out[#out + 1] = '[' .. size_text(count)
        out[#out + 1] = ffi.string(array, 8 * count)
    else
        out[#out + 1] = '{' .. size_text(count)
        for i = 1, count do put(out, value[i], depth + 1) end
    end
    for key, inner in pairs(value) do
        local listed = type(key) == 'number' and key >= 1 and key <= count and key % 1 == 0
        if not listed then
            put(out, key, depth + 1)
            put(out, inner, depth + 1)
        end
    end
    out[#out + 1] = '}'
end

function put(out, value, depth)
    local kind = type(value)
    if kind == 'nil' then
        out[#out + 1] = 'n'
    elseif kind == 'boolean' then
        out[#out + 1] = value and 't' or 'f'
    elseif kind == 'number' then
        number[0] = value
        out[#out + 1] = 'd' .. ffi.string(number, 8)
    elseif kind == 'string' then
        put_string(out, 's', value)
    elseif kind == 'table' then
        put_table(out, value, depth)
    elseif kind == 'function' then
        local name = debug.getupvalue(value, 1)
        if name then error(('a function with the upvalue %s cannot be sent: hand it over as an argument'):format(name), 0) end
        put_string(out, 'F', string.dump(value))
    elseif kind == 'cdata' and (ffi.istype('int64_t', value) or ffi.istype('uint64_t', value)) then
        wide[0] = ffi.cast('int64_t', value)
        out[#out + 1] = (ffi.istype('int64_t', value) and 'i' or 'u') .. ffi.string(wide, 8)
    else
        error(('a %s cannot be sent'):format(kind), 0)
    end
end

-- Short pieces that follow each other become one.
local function gather(out)
    local pieces, from = {}, 1
    for i = 1, #out + 1 do
        if i > #out or #out[i] >= long then
            if i > from then pieces[#pieces + 1] = table.concat(out, '', from, i - 1) end
            pieces[#pieces + 1] = out[i]
            from = i + 1
        end
    end
    return pieces
end

local function pack(...)
    local out = {}
    local count = select('#', ...)
    out[1] = size_text(count)
    for i = 1, count do put(out, (select(i, ...)), 0) end
    return gather(out)
end

-- ---- and back

local function need(at, bytes, stop)
    if at + bytes > stop then error('a message that ends too early', 0) end
end

local function take_size(from, at, stop)
    need(at, 4, stop)
    ffi.copy(size, from + at, 4)
    return tonumber(size[0]), at + 4
end

local take

local function take_table(from, at, stop, depth)
    if depth > 100 then error('a message that is too deep', 0) end
    local value = {}
    local mark = from[at]
    local count
    count, at = take_size(from, at + 1, stop)
    if mark == 91 then -- [
        need(at, 8 * count, stop)
        local array = ffi.new('double[?]', count)
        ffi.copy(array, from + at, 8 * count)
        for i = 1, count do value[i] = array[i - 1] end
        at = at + 8 * count
    else
        for i = 1, count do value[i], at = take(from, at, stop, depth + 1) end
    end
    while true do
        need(at, 1, stop)
        if from[at] == 125 then return value, at + 1 end -- }
        local key, inner
        key, at = take(from, at, stop, depth + 1)
        inner, at = take(from, at, stop, depth + 1)
        if key == nil or key ~= key then error('a message with a key that is none', 0) end
        value[key] = inner
    end
end

function take(from, at, stop, depth)
    need(at, 1, stop)
    local mark = string.char(from[at])
    if mark == 'n' then return nil, at + 1 end
    if mark == 't' then return true, at + 1 end
    if mark == 'f' then return false, at + 1 end
    if mark == 'd' or mark == 'i' or mark == 'u' then
        need(at, 9, stop)
        local place = mark == 'd' and number or wide
        ffi.copy(place, from + at + 1, 8)
        if mark == 'u' then return ffi.cast('uint64_t', wide[0]), at + 9 end
        return place[0], at + 9
    end
    if mark == 's' or mark == 'F' then
        local length
        length, at = take_size(from, at + 1, stop)
        need(at, length, stop)
        local text = ffi.string(from + at, length)
        if mark == 's' then return text, at + length end
        return assert(loadstring(text, '=called')), at + length
    end
    if mark == '[' or mark == '{' then return take_table(from, at, stop, depth) end
    error('a message with the mark ' .. mark:byte(), 0)
end

-- The values of so many bytes at `from` (cdata), and how many.
local function unpack_values(from, bytes)
    local count, at = take_size(from, 0, bytes)
    if count > 255 then error('a message of too many values', 0) end
    local values = {}
    for i = 1, count do values[i], at = take(from, at, bytes, 0) end
    if at ~= bytes then error('a message that goes on behind its end', 0) end
    return values, count
end

return { pack = pack, unpack = unpack_values }
