-- SPDX-License-Identifier: MIT
-- Global memory for tasks (coroutines) of a muster.loop: a segment of each member of a group, used by all of them.
--
--   local memory = memories.open(group, { segment_bytes = 1048576 })  -- all members make this call, and symmetric()
--   local offset = assert(memory:symmetric(8))
--   local word = memory:pointer(0, offset)                            -- a place in the segment of rank 0
--   local before = assert(memory:fetch(word, 'add', 1))
--   local block = assert(memory:allocate(1, 100))                     -- 100 bytes in the segment of rank 1
--   assert(memory:put(block, 'text', { signal = word }))              -- afterwards adds 1 to the word
--   print(assert(memory:get(block, 4)))
--
-- Places and words are cdata of type uint64_t; 0 is no place. Inside a task operations on other hosts let other tasks go
-- on; open(), symmetric(), allocate(), free() and clear() hold up the whole program. What failed gives nil, a sentence and
-- the status.
local ffi = require 'ffi'
local muster = require 'muster'
local epochs = require 'muster.epoch'
local C = muster.C

local memories = {}
local Memory, Token = {}, {}
Memory.__index, Token.__index = Memory, setmetatable(Token, { __index = epochs.Pins })

local most_ns = 60e9 -- how long a call waits for another host, unless `timeout_ns` of open() says otherwise

local fetches = { add = muster.ATOMIC_ADD, ['and'] = muster.ATOMIC_AND, ['or'] = muster.ATOMIC_OR, xor = muster.ATOMIC_XOR,
    min = muster.ATOMIC_MIN, max = muster.ATOMIC_MAX, umin = muster.ATOMIC_UMIN, umax = muster.ATOMIC_UMAX }

-- config: the fields of muster_memory_config, and `timeout_ns`.
function memories.open(group, config)
    local given, limit = {}, most_ns
    for name, value in pairs(config or {}) do
        if name == 'timeout_ns' then limit = value else given[name] = value end
    end
    local handle, why, status = muster.memory_open(group.handle, given, limit)
    if not handle then return nil, why, status end
    return setmetatable({ handle = handle, loop = group.loop, limit_ns = limit, locale = handle:locale(),
        locales = handle:locales() }, Memory)
end

-- ---- places

-- So many bytes at the same offset in every segment, zero at first; all members make the call.
function Memory:symmetric(bytes, alignment) return self.handle:symmetric(bytes, alignment or 8, self.limit_ns) end

-- A place: an offset in the segment of a locale.
function Memory:pointer(locale, offset) return self.handle:pointer(locale, offset) end

-- A block in the segment of a locale. nil if that is full.
function Memory:allocate(locale, bytes) return self.handle:allocate(locale, bytes, self.limit_ns) end

-- See Token:retire() for blocks that others may be reading.
function Memory:free(block) return self.handle:free(block, self.limit_ns) end

-- The bytes themselves as a `char *`, where the segment is mapped here; valid until close().
function Memory:address(place, bytes)
    local address = ffi.new 'void *[1]'
    muster.problem.message_bytes = 0
    local status = C.muster_memory_address(self.handle, place, bytes, address)
    if status ~= muster.OK then return muster.failure(status) end
    return ffi.cast('char *', address[0])
end

-- ---- operations

-- Any operation: a table of the fields of muster_memory_operation. The value and the count that were found.
function Memory:run(operation)
    local found -- the library fills it in when the operation completes
    local status, _, why = self.loop:complete(function(tag)
        local problem, number
        found, problem, number = self.handle:begin(operation, self.loop.queue, tag)
        return found, problem, number
    end)
    if status < 0 then return nil, why, status end
    return found.value, found.count, status
end

-- options: `signal`, a word to which `value` (1) is added afterwards, and whose waits are woken.
function Memory:put(place, text, options)
    local signal = options and options.signal
    local found, why, status = self:run { kind = muster.MEMORY_PUT, target = place, bytes = #text,
        ['local'] = ffi.cast('void *', ffi.cast('const char *', text)), signal = signal or 0, notify = signal and 1 or 0,
        value = signal and (options.value or 1) or 0 }
    if not found then return nil, why, status end
    return true
end

-- The bytes of a place, as a string.
function Memory:get(place, bytes)
    local room = ffi.new('char[?]', math.max(1, bytes))
    local found, why, status = self:run { kind = muster.MEMORY_GET, target = place, ['local'] = room, bytes = bytes }
    if not found then return nil, why, status end
    return ffi.string(room, bytes)
end

local function value_of(found, why, status)
    if not found then return nil, why, status end
    return found
end

-- A word of 64 bits.
function Memory:read(word) return value_of(self:run { kind = muster.MEMORY_READ, target = word }) end

-- Sets a word, and wakes what waits for it.
function Memory:write(word, value)
    local found, why, status = self:run { kind = muster.MEMORY_WRITE, target = word, value = value, notify = 1 }
    if not found then return nil, why, status end
    return true
end

-- Sets a word; what it was.
function Memory:exchange(word, value)
    return value_of(self:run { kind = muster.MEMORY_EXCHANGE, target = word, value = value })
end

-- Sets a word if it is the expected one: true or false, and what it was.
function Memory:compare_exchange(word, expected, value)
    local found, why, status = self:run { kind = muster.MEMORY_COMPARE_EXCHANGE, target = word, expected = expected,
        value = value }
    if not found then return nil, why, status end
    return status == muster.OK, found
end

-- Changes a word by 'add', 'and', 'or', 'xor', 'min', 'max', 'umin' or 'umax'; what it was.
function Memory:fetch(word, name, value)
    local operation = fetches[name] or error(("no operation '%s'"):format(tostring(name)), 2)
    return value_of(self:run { kind = muster.MEMORY_FETCH, target = word, operation = operation, value = value })
end

-- ---- states

-- The counters of muster_memory_stats of a locale, as a table of numbers.
function Memory:stats(locale)
    local raw, why, status = self.handle:get_stats(locale or self.locale, self.limit_ns)
    if not raw then return nil, why, status end
    local stats = {}
    for _, name in ipairs { 'heap_bytes', 'fresh_bytes', 'used_bytes', 'used_blocks', 'allocated', 'refused',
        'symmetric_bytes' } do
        stats[name] = tonumber(raw[name])
    end
    return stats
end

-- Releases the memory; the other locales have that of this one no more.
function Memory:close() self.handle:release() end

-- ---- epochs

-- A token keeps blocks while they are read: one task uses it at a time. It has pin(), unpin(), pinned(), online(), quiescent(),
-- offline(), protect(), synchronize() and close() of muster.epoch, and what follows.
function Memory:token()
    local epoch = ffi.new 'muster_epoch *[1]'
    muster.problem.message_bytes = 0
    local status = C.muster_memory_epoch(self.handle, epoch)
    if status ~= muster.OK then return muster.failure(status) end
    return epochs.new_token(epoch[0], { memory = self }, Token)
end

-- Frees a block, to which no place refers any more, by reclaim() when its time has come. nil while very many wait.
function Token:retire(block) return self:retire_number(block) end

local function raw_of(token) return token.raw or error('the token is closed', 3) end

-- Frees blocks whose time has come; their number.
function Token:reclaim(most)
    local freed = ffi.new 'uint32_t[1]'
    muster.problem.message_bytes = 0
    local status = C.muster_memory_reclaim(self.memory.handle, raw_of(self), most or 0xFFFFFFFF, 0, freed)
    if status < 0 then return muster.failure(status) end
    return freed[0]
end

-- Waits for the time of all blocks that this token has retired, and frees them; their number.
function Token:clear(timeout_ns)
    local freed = ffi.new 'uint64_t[1]'
    muster.problem.message_bytes = 0
    local status = C.muster_memory_clear(self.memory.handle, raw_of(self), timeout_ns or self.memory.limit_ns, freed)
    if status ~= muster.OK then return muster.failure(status) end
    return tonumber(freed[0])
end

return memories
