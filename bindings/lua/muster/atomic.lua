-- SPDX-License-Identifier: MIT
-- Atomic objects in memory that threads or processes share: words, flags, and ABA cells.
--
--   local atomics = require 'muster.atomic'
--   local memory = assert(atomics.share('/dev/shm/example', 4096)) -- other processes: atomics.attach(path)
--   local count = atomics.word64(memory, 0)                        -- at this offset in bytes
--   count:add(1)                                                   -- gives the value before
--   count:notify()
--   assert(atomics.wait({ { count, '>=', 4 } }, 1, 5e9))           -- elsewhere
--
-- Words of 64 bits and the halves of ABA cells are uint64_t cdata, words of 32 bits are numbers. Operations are
-- sequentially consistent, except those that are given another order (muster.ATOMIC_ACQ_REL, muster.ATOMIC_RELAXED).
-- A misaligned offset, and one outside of the memory, is an error. Waits hold up the whole program.
local ffi = require 'ffi'
local bit = require 'bit'
local muster = require 'muster'
local C = muster.C

ffi.cdef [[
    void *mmap(void *address, size_t bytes, int protection, int flags, int fd, int64_t offset);
    int munmap(void *address, size_t bytes);
    int open(const char *path, int flags, ...);
    int ftruncate(int fd, int64_t bytes);
    int64_t lseek(int fd, int64_t offset, int whence);
    int close(int fd);
]]

local atomics = {}

-- ---- memory

local Memory = {}
Memory.__index = Memory

-- The address of an offset where `bytes` bytes are, checked.
function Memory:at(offset, bytes, alignment)
    offset = tonumber(offset)
    if not (offset >= 0 and offset + bytes <= self.bytes and offset % (alignment or 1) == 0) then
        error(('offset %s is not that of %d bytes, aligned to %d, in a memory of %d bytes'):format(tostring(offset), bytes,
            alignment or 1, self.bytes), 0)
    end
    return self.address + offset
end

-- Unmaps the memory, and closes its descriptor. The file stays.
function Memory:close()
    if not self.fd then return end
    ffi.C.munmap(ffi.gc(self.mapping, nil), self.bytes)
    ffi.C.close(self.fd)
    self.fd, self.bytes = nil, 0
end

-- Zero bytes of this process.
function atomics.memory(bytes)
    local array = ffi.new('uint8_t[?]', bytes + 63)
    local address = ffi.cast('uint8_t *', array)
    return setmetatable({ array = array, bytes = bytes,
        address = address + tonumber(bit.band(-ffi.cast('intptr_t', address), 63)) }, Memory)
end

local read_write, exclusive, create, close_on_exec = 2, 128, 64, 524288 -- of Linux on x86-64 and aarch64

local function map(fd, path, bytes)
    local mapping = ffi.C.mmap(nil, bytes, 3, 1, fd, 0) -- read and write, shared
    if ffi.cast('intptr_t', mapping) == -1 then
        local why = ffi.errno()
        ffi.C.close(fd)
        return nil, ('%s: %d bytes cannot be mapped: errno %d'):format(path, bytes, why), muster.E_SYSTEM
    end
    ffi.gc(mapping, function(at) ffi.C.munmap(at, bytes) ffi.C.close(fd) end)
    return setmetatable({ mapping = mapping, address = ffi.cast('uint8_t *', mapping), bytes = bytes, fd = fd }, Memory)
end

local function open_file(path, flags)
    local fd = ffi.C.open(path, flags, ffi.cast('int', 384)) -- for its owner only: 0600
    if fd < 0 then return nil, ('%s cannot be opened: errno %d'):format(path, ffi.errno()), muster.E_SYSTEM end
    return fd
end

-- Makes a file of zero bytes and maps it; best in /dev/shm. `memory.fd` is its descriptor, for an epoch manager.
function atomics.share(path, bytes)
    local fd, why, status = open_file(path, bit.bor(read_write, exclusive, create, close_on_exec))
    if not fd then return nil, why, status end
    if ffi.C.ftruncate(fd, bytes) ~= 0 then
        local errno = ffi.errno()
        ffi.C.close(fd)
        os.remove(path)
        return nil, ('%s cannot have %d bytes: errno %d'):format(path, bytes, errno), muster.E_SYSTEM
    end
    return map(fd, path, bytes)
end

-- Maps a file that another process has made.
function atomics.attach(path)
    local fd, why, status = open_file(path, bit.bor(read_write, close_on_exec))
    if not fd then return nil, why, status end
    return map(fd, path, tonumber(ffi.C.lseek(fd, 0, 2)))
end

-- ---- words

local function must(status)
    if status < 0 then error((select(2, muster.failure(status))), 0) end
    return status
end

local operations = { add = 'ADD', ['and'] = 'AND', ['or'] = 'OR', xor = 'XOR', min = 'MIN', max = 'MAX', umin = 'UMIN',
    umax = 'UMAX' }

-- The same functions for words of 32 and 64 bits.
local function class_of(bits)
    local Word = { bytes = bits / 8 }
    Word.__index = Word
    local kind = ('uint%d_t'):format(bits)
    local read, write, exchange, compare, fetch = C['muster_atomic_read' .. bits], C['muster_atomic_write' .. bits],
        C['muster_atomic_exchange' .. bits], C['muster_atomic_compare_exchange' .. bits], C['muster_atomic_fetch' .. bits]
    local function value_of(place) return place[0] end

    function Word:read(order)
        local place = ffi.new(kind .. '[1]')
        must(read(self.cell, order or 0, place))
        return value_of(place)
    end
    function Word:write(value, order) must(write(self.cell, value, order or 0)) end
    -- The value before.
    function Word:exchange(value, order)
        local place = ffi.new(kind .. '[1]')
        must(exchange(self.cell, value, order or 0, place))
        return value_of(place)
    end
    -- True if it was written; otherwise false and the value that was found.
    function Word:compare_exchange(expected, desired, order)
        local place = ffi.new(kind .. '[1]', expected)
        if must(compare(self.cell, place, desired, order or 0)) == muster.OK then return true end
        return false, value_of(place)
    end
    -- word:add(1), word['and'](word, mask), ...: the value before. min and max are those of signed numbers.
    for name, constant in pairs(operations) do
        local operation = muster['ATOMIC_' .. constant]
        Word[name] = function(self, operand, order)
            local place = ffi.new(kind .. '[1]')
            must(fetch(self.cell, operation, operand, order or 0, place))
            return value_of(place)
        end
    end
    -- Wakes those that wait for it, after it was written.
    function Word:notify() must(C.muster_atomic_notify(self.cell, self.bytes)) end
    return Word, kind .. ' *'
end

local Word32, kind32 = class_of(32)
local Word64, kind64 = class_of(64)

-- Flags are words of 32 bits: true if this call has set it.
function Word32:test_and_set(order) return must(C.muster_atomic_test_and_set(self.cell, order or 0)) == muster.OK end
-- The flag is not set any more.
function Word32:clear(order) must(C.muster_atomic_clear(self.cell, order or 0)) end

local function cell_of(class, kind, bytes)
    return function(memory, offset)
        return setmetatable({ memory = memory, cell = ffi.cast(kind, memory:at(offset, bytes, bytes)) }, class)
    end
end

atomics.word32, atomics.word64 = cell_of(Word32, kind32, 4), cell_of(Word64, kind64, 8)

local comparisons = { ['=='] = muster.ATOMIC_EQUAL, ['~='] = muster.ATOMIC_NOT_EQUAL, ['<'] = muster.ATOMIC_LESS,
    ['<='] = muster.ATOMIC_LESS_EQUAL, ['>'] = muster.ATOMIC_GREATER, ['>='] = muster.ATOMIC_GREATER_EQUAL }

-- Waits until `needed` (all, if it is nil) of the conditions { word, comparison, value } are true in one pass; values are
-- unsigned. Gives a list that says which were; nil, a sentence and muster.TIMEOUT if they were not in time.
function atomics.wait(conditions, needed, timeout_ns)
    local raw = ffi.new('muster_atomic_condition[?]', math.max(1, #conditions))
    for i, condition in ipairs(conditions) do
        local word, comparison, value = condition[1], condition[2], condition[3]
        raw[i - 1].cell, raw[i - 1].size_bytes, raw[i - 1].value = word.cell, word.bytes, value
        raw[i - 1].comparison = comparisons[comparison] or error(("no comparison '%s'"):format(tostring(comparison)), 2)
    end
    local status = C.muster_atomic_wait(raw, #conditions, needed or #conditions, timeout_ns or -1)
    muster.problem.message_bytes = 0
    if status ~= muster.OK then return muster.failure(status) end
    local which = {}
    for i = 1, #conditions do which[i] = raw[i - 1].is_true ~= 0 end
    return which
end

-- ---- ABA cells

local Aba = {}
Aba.__index = Aba

-- Value and count, in one step.
function Aba:read()
    local now = ffi.new 'muster_aba'
    must(C.muster_aba_read(self.cell, now))
    return now.value, now.count
end
-- Writes a value, and counts.
function Aba:write(value) must(C.muster_aba_write(self.cell, value)) end
-- Value and count before.
function Aba:exchange(value)
    local before = ffi.new 'muster_aba'
    must(C.muster_aba_exchange(self.cell, value, before))
    return before.value, before.count
end
-- True if nothing was written since value and count were read; otherwise false, and what was found.
function Aba:compare_exchange(value, count, desired)
    local seen = ffi.new('muster_aba', value, count)
    if must(C.muster_aba_compare_exchange(self.cell, seen, desired)) == muster.OK then return true end
    return false, seen.value, seen.count
end
-- The same for the value alone, with any count.
function Aba:compare_exchange_value(value, desired)
    local seen = ffi.new('uint64_t[1]', value)
    if must(C.muster_aba_compare_exchange_value(self.cell, seen, desired)) == muster.OK then return true end
    return false, seen[0]
end

atomics.aba = cell_of(Aba, 'muster_aba *', 16)

return atomics
