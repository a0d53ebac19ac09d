-- SPDX-License-Identifier: MIT
-- Values as bytes, for other Lua processes: nil, booleans, numbers, strings, int64_t and uint64_t, tables of these (no
-- cycles, no metatables), and functions without upvalues, as bytecode. Only for peers that have proved the secret.
--
-- A message is its length (4 bytes, little-endian), the number of values, and the values. It is packed in memory that
-- is reused for the next one; long strings are not copied.
local ffi = require 'ffi'

local long = 32 * 1024
local longest = 2 ^ 31 - 1
local most_ahead = 256 -- room made for values that have not been read
local max_values = 4096 -- of a message; LuaJIT hands a function at most about 8000
local number = ffi.new 'double[1]'
local size = ffi.new 'uint32_t[1]'
local wide = ffi.new 'int64_t[1]'
local int64, uint64 = ffi.typeof 'int64_t', ffi.typeof 'uint64_t'
local bytes_of, doubles_of = ffi.typeof 'uint8_t[?]', ffi.typeof 'double[?]'
local has_new, new_table = pcall(require, 'table.new') -- with room for so many entries; a table that grows is slower
if not has_new then new_table = function() return {} end end

-- ---- there

local usual_room = 64 * 1024
local room = usual_room
local place, at = bytes_of(room), 0
local pieces, piece_bytes -- what lies before `place`, if there is much

local function make_room(more)
    if at + more <= room then return end
    while room < at + more do room = 2 * room end
    local larger = bytes_of(room)
    ffi.copy(larger, place, at)
    place = larger
end

local function keep_piece(text)
    pieces = pieces or {}
    pieces[#pieces + 1] = text
    piece_bytes = piece_bytes + #text
end

local function put_mark(mark)
    make_room(1)
    place[at] = mark
    at = at + 1
end

local function put_size(n)
    make_room(4)
    size[0] = n
    ffi.copy(place + at, size, 4)
    at = at + 4
end

local function put_bytes(from, n)
    if n >= long then
        keep_piece(ffi.string(place, at))
        keep_piece(type(from) == 'string' and from or ffi.string(from, n))
        at = 0
        return
    end
    make_room(n)
    ffi.copy(place + at, from, n)
    at = at + n
end

local function put_string(mark, text)
    put_mark(mark)
    put_size(#text)
    put_bytes(text, #text)
end

local function put_number(value)
    make_room(9)
    place[at] = 100 -- d
    number[0] = value
    ffi.copy(place + at + 1, number, 8)
    at = at + 9
end

local function all_numbers(list, count)
    for i = 1, count do if type(list[i]) ~= 'number' then return false end end
    return true
end

local put

local function put_table(value, depth)
    if depth > 100 then error('a table in itself, or too deep to be sent', 0) end
    local count = #value
    if count > 0 and all_numbers(value, count) then
        local array = doubles_of(count)
        for i = 1, count do array[i - 1] = value[i] end
        put_mark(91) -- [
        put_size(count)
        put_bytes(array, 8 * count)
    else
        put_mark(123) -- {
        put_size(count)
        for i = 1, count do put(value[i], depth + 1) end
    end
    for key, inner in pairs(value) do
        local listed = type(key) == 'number' and key >= 1 and key <= count and key % 1 == 0
        if not listed then
            put(key, depth + 1)
            put(inner, depth + 1)
        end
    end
    put_mark(125) -- }
end

local function put_wide(mark, value)
    make_room(9)
    place[at] = mark
    wide[0] = ffi.cast(int64, value)
    ffi.copy(place + at + 1, wide, 8)
    at = at + 9
end

function put(value, depth)
    local kind = type(value)
    if kind == 'number' then
        put_number(value)
    elseif kind == 'string' then
        put_string(115, value) -- s
    elseif kind == 'nil' then
        put_mark(110) -- n
    elseif kind == 'boolean' then
        put_mark(value and 116 or 102) -- t, f
    elseif kind == 'table' then
        put_table(value, depth)
    elseif kind == 'function' then
        if debug.getinfo(value, 'S').what == 'C' then error('a function written in C cannot be sent', 0) end
        local name = debug.getupvalue(value, 1)
        if name then error(('a function with the upvalue %s cannot be sent: hand it over as an argument'):format(name), 0) end
        put_string(70, string.dump(value)) -- F
    elseif kind == 'cdata' and ffi.istype(int64, value) then
        put_wide(105, value) -- i
    elseif kind == 'cdata' and ffi.istype(uint64, value) then
        put_wide(117, value) -- u
    else
        error(('a %s cannot be sent'):format(kind), 0)
    end
end

-- What most messages consist of. LuaJIT compiles neither put(), which calls itself, nor pcall() of a function with any
-- number of arguments, nor a loop of a few steps well: a short message without tables is packed in a straight line.
local failure

local function put_usual(value)
    local kind = type(value)
    if kind == 'number' then return put_number(value) end
    if kind == 'string' then return put_string(115, value) end -- s
    if kind == 'nil' then return put_mark(110) end -- n
    if kind == 'boolean' then return put_mark(value and 116 or 102) end -- t, f
    local right, why = pcall(put, value, 0)
    if not right then failure = failure or why end
end

-- A message of these values: memory and its number of bytes, valid until the next call; or, for a large one, nil and a
-- list of strings to be written in this order; or false and the reason why they cannot be sent.
local function try_pack(...)
    if room > usual_room and at <= usual_room then -- no large one was packed since
        room = usual_room
        place = bytes_of(room)
    end
    at, pieces, piece_bytes, failure = 4, nil, 0, nil
    local count = select('#', ...)
    if count > max_values then return false, ('%d values: a message holds at most %d'):format(count, max_values) end
    put_size(count)
    local first, second, third, fourth, fifth, sixth = ...
    if count > 0 then put_usual(first) end
    if count > 1 then put_usual(second) end
    if count > 2 then put_usual(third) end
    if count > 3 then put_usual(fourth) end
    if count > 4 then put_usual(fifth) end
    if count > 5 then put_usual(sixth) end
    for i = 7, count do put_usual((select(i, ...))) end
    if failure then return false, failure end
    local whole = piece_bytes + at - 4
    if whole > longest then return false, 'a message of more than 2 GiB' end
    size[0] = whole
    if not pieces then
        ffi.copy(place, size, 4)
        return place, at
    end
    keep_piece(ffi.string(place, at))
    pieces[1] = ffi.string(size, 4) .. pieces[1]:sub(5)
    return nil, pieces
end

local function packed(bytes, more)
    if bytes == false then error(more, 0) end
    return bytes, more
end

-- As try_pack(); what cannot be sent is an error.
local function pack(...) return packed(try_pack(...)) end

-- ---- and back

local from, stop -- what is being read, from `at` on

local function need(bytes) if at + bytes > stop then error('a message that ends too early', 0) end end

local function take_size()
    need(4)
    ffi.copy(size, from + at, 4)
    at = at + 4
    return tonumber(size[0])
end

local take

local function take_table(mark, depth)
    if depth > 100 then error('a message that is too deep', 0) end
    local count = take_size()
    local value
    if mark == 91 then -- [
        need(8 * count)
        value = new_table(count, 0)
        local array = doubles_of(count)
        ffi.copy(array, from + at, 8 * count)
        for i = 1, count do value[i] = array[i - 1] end
        at = at + 8 * count
    else
        need(count)
        value = new_table(math.min(count, most_ahead), 0) -- the values may be tables, with counts of their own
        for i = 1, count do value[i] = take(depth + 1) end
    end
    while true do
        need(1)
        if from[at] == 125 then -- }
            at = at + 1
            return value
        end
        local key = take(depth + 1)
        local inner = take(depth + 1)
        if key == nil or key ~= key then error('a message with a key that is none', 0) end
        value[key] = inner
    end
end

local function take_text()
    local length = take_size()
    need(length)
    local text = ffi.string(from + at, length)
    at = at + length
    return text
end

function take(depth)
    need(1)
    local mark = from[at]
    at = at + 1
    if mark == 100 then -- d
        need(8)
        ffi.copy(number, from + at, 8)
        at = at + 8
        return number[0]
    end
    if mark == 115 then return take_text() end -- s
    if mark == 110 then return nil end -- n
    if mark == 116 then return true end -- t
    if mark == 102 then return false end -- f
    if mark == 105 or mark == 117 then -- i, u
        need(8)
        ffi.copy(wide, from + at, 8)
        at = at + 8
        if mark == 117 then return ffi.cast(uint64, wide[0]) end
        return wide[0]
    end
    if mark == 70 then return assert(loadstring(take_text(), '=called')) end -- F
    if mark == 91 or mark == 123 then return take_table(mark, depth) end -- [, {
    error('a message with the mark ' .. tonumber(mark), 0)
end

-- What most messages consist of. LuaJIT compiles neither take(), which calls itself, nor a caller with a loop of a few
-- steps well: a short message without tables is read in a straight line.
local function take_usual()
    need(1)
    local mark = from[at]
    if mark == 100 then -- d
        need(9)
        ffi.copy(number, from + at + 1, 8)
        at = at + 9
        return number[0]
    end
    if mark == 115 then -- s
        at = at + 1
        return take_text()
    end
    if mark == 110 or mark == 116 or mark == 102 then -- n, t, f
        at = at + 1
        if mark == 110 then return nil end
        return mark == 116
    end
    return take(0)
end

-- The values of the bytes (cdata) between two places, without the length before them, and how many.
local function unpack_values(bytes, first, past)
    from, at, stop = bytes, first, past
    local count = take_size()
    if count > max_values then error(('a message of %d values: at most %d'):format(count, max_values), 0) end
    need(count)
    local values = new_table(count, 0)
    if count > 0 then values[1] = take_usual() end
    if count > 1 then values[2] = take_usual() end
    if count > 2 then values[3] = take_usual() end
    if count > 3 then values[4] = take_usual() end
    if count > 4 then values[5] = take_usual() end
    if count > 5 then values[6] = take_usual() end
    for i = 7, count do values[i] = take(0) end
    if at ~= stop then error('a message that goes on behind its end', 0) end
    from = nil
    return values, count
end

return { pack = pack, try_pack = try_pack, new_table = new_table, unpack = unpack_values, longest = longest }
