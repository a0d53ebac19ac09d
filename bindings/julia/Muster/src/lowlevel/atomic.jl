# SPDX-License-Identifier: MIT
# Written by bindings/julia/generate from include/muster/atomic.h; do not edit.

# muster_atomic_order: Memory orders.
const MUSTER_ATOMIC_SEQ_CST = UInt32(0)
const MUSTER_ATOMIC_ACQ_REL = UInt32(1)
const MUSTER_ATOMIC_RELAXED = UInt32(2)

# muster_atomic_operation: Operations of muster_atomic_fetch32() and muster_atomic_fetch64().
const MUSTER_ATOMIC_ADD = UInt32(0)
const MUSTER_ATOMIC_AND = UInt32(1)
const MUSTER_ATOMIC_OR = UInt32(2)
const MUSTER_ATOMIC_XOR = UInt32(3)
const MUSTER_ATOMIC_MIN = UInt32(4)
const MUSTER_ATOMIC_MAX = UInt32(5)
const MUSTER_ATOMIC_UMIN = UInt32(6)
const MUSTER_ATOMIC_UMAX = UInt32(7)

# muster_atomic_comparison: Comparisons of muster_atomic_wait(); numbers are unsigned.
const MUSTER_ATOMIC_EQUAL = UInt32(0)
const MUSTER_ATOMIC_NOT_EQUAL = UInt32(1)
const MUSTER_ATOMIC_LESS = UInt32(2)
const MUSTER_ATOMIC_LESS_EQUAL = UInt32(3)
const MUSTER_ATOMIC_GREATER = UInt32(4)
const MUSTER_ATOMIC_GREATER_EQUAL = UInt32(5)

# A cell that muster_atomic_wait() waits for.
struct muster_atomic_condition # 32 bytes
    cell::Ptr{Cvoid}
    value::UInt64
    size_bytes::UInt32
    comparison::Int32
    is_true::UInt32
    reserved::UInt32
end

# The value of an ABA cell.
struct muster_aba # 16 bytes
    value::UInt64
    count::UInt64
end

# Reads a word.
const at_muster_atomic_read64 = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_atomic_read64 => at_muster_atomic_read64)
@inline muster_atomic_read64(cell, order, out_value) =
    ccall(at_muster_atomic_read64[], muster_status, (Ptr{UInt64}, Int32, Ptr{UInt64}), cell, order, out_value)

# Writes a word.
const at_muster_atomic_write64 = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_atomic_write64 => at_muster_atomic_write64)
@inline muster_atomic_write64(cell, value, order) =
    ccall(at_muster_atomic_write64[], muster_status, (Ptr{UInt64}, UInt64, Int32), cell, value, order)

# Writes a word and returns what it was.
const at_muster_atomic_exchange64 = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_atomic_exchange64 => at_muster_atomic_exchange64)
@inline muster_atomic_exchange64(cell, value, order, out_value) =
    ccall(at_muster_atomic_exchange64[], muster_status, (Ptr{UInt64}, UInt64, Int32, Ptr{UInt64}), cell, value, order, out_value)

# Writes a word if it has the expected value.
const at_muster_atomic_compare_exchange64 = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_atomic_compare_exchange64 => at_muster_atomic_compare_exchange64)
@inline muster_atomic_compare_exchange64(cell, expected, desired, order) =
    ccall(at_muster_atomic_compare_exchange64[], muster_status, (Ptr{UInt64}, Ptr{UInt64}, UInt64, Int32), cell, expected, desired, order)

# Combines a word with an operand and returns what it was.
const at_muster_atomic_fetch64 = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_atomic_fetch64 => at_muster_atomic_fetch64)
@inline muster_atomic_fetch64(cell, operation, operand, order, out_value) =
    ccall(at_muster_atomic_fetch64[], muster_status, (Ptr{UInt64}, Int32, UInt64, Int32, Ptr{UInt64}), cell, operation, operand, order, out_value)

# Reads a word of 32 bits.
const at_muster_atomic_read32 = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_atomic_read32 => at_muster_atomic_read32)
@inline muster_atomic_read32(cell, order, out_value) =
    ccall(at_muster_atomic_read32[], muster_status, (Ptr{UInt32}, Int32, Ptr{UInt32}), cell, order, out_value)

# Writes a word of 32 bits.
const at_muster_atomic_write32 = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_atomic_write32 => at_muster_atomic_write32)
@inline muster_atomic_write32(cell, value, order) =
    ccall(at_muster_atomic_write32[], muster_status, (Ptr{UInt32}, UInt32, Int32), cell, value, order)

# Writes a word of 32 bits and returns what it was.
const at_muster_atomic_exchange32 = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_atomic_exchange32 => at_muster_atomic_exchange32)
@inline muster_atomic_exchange32(cell, value, order, out_value) =
    ccall(at_muster_atomic_exchange32[], muster_status, (Ptr{UInt32}, UInt32, Int32, Ptr{UInt32}), cell, value, order, out_value)

# Writes a word of 32 bits if it has the expected value.
const at_muster_atomic_compare_exchange32 = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_atomic_compare_exchange32 => at_muster_atomic_compare_exchange32)
@inline muster_atomic_compare_exchange32(cell, expected, desired, order) =
    ccall(at_muster_atomic_compare_exchange32[], muster_status, (Ptr{UInt32}, Ptr{UInt32}, UInt32, Int32), cell, expected, desired, order)

# Combines a word of 32 bits with an operand and returns what it was.
const at_muster_atomic_fetch32 = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_atomic_fetch32 => at_muster_atomic_fetch32)
@inline muster_atomic_fetch32(cell, operation, operand, order, out_value) =
    ccall(at_muster_atomic_fetch32[], muster_status, (Ptr{UInt32}, Int32, UInt32, Int32, Ptr{UInt32}), cell, operation, operand, order, out_value)

# Sets a flag, a word of 32 bits, to 1.
const at_muster_atomic_test_and_set = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_atomic_test_and_set => at_muster_atomic_test_and_set)
@inline muster_atomic_test_and_set(flag, order) =
    ccall(at_muster_atomic_test_and_set[], muster_status, (Ptr{UInt32}, Int32), flag, order)

# Clears a flag.
const at_muster_atomic_clear = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_atomic_clear => at_muster_atomic_clear)
@inline muster_atomic_clear(flag, order) =
    ccall(at_muster_atomic_clear[], muster_status, (Ptr{UInt32}, Int32), flag, order)

# Waits until cells have certain values (shmem_wait_until, _any, _all and _some of OpenSHMEM).
const at_muster_atomic_wait = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_atomic_wait => at_muster_atomic_wait)
@inline muster_atomic_wait(conditions, count, needed, timeout_ns) =
    ccall(at_muster_atomic_wait[], muster_status, (Ptr{muster_atomic_condition}, UInt32, UInt32, Int64), conditions, count, needed, timeout_ns)

# Wakes threads, of any process, that wait for a cell.
const at_muster_atomic_notify = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_atomic_notify => at_muster_atomic_notify)
@inline muster_atomic_notify(cell, size_bytes) =
    ccall(at_muster_atomic_notify[], muster_status, (Ptr{Cvoid}, UInt32), cell, size_bytes)

# Returns the size of an ABA cell.
const at_muster_aba_size = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_aba_size => at_muster_aba_size)
@inline muster_aba_size() =
    ccall(at_muster_aba_size[], UInt32, ())

# Returns the alignment of an ABA cell.
const at_muster_aba_alignment = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_aba_alignment => at_muster_aba_alignment)
@inline muster_aba_alignment() =
    ccall(at_muster_aba_alignment[], UInt32, ())

# Reads an ABA cell, both halves in one step.
const at_muster_aba_read = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_aba_read => at_muster_aba_read)
@inline muster_aba_read(cell, out) =
    ccall(at_muster_aba_read[], muster_status, (Ptr{muster_aba}, Ptr{muster_aba}), cell, out)

# Writes a value; the count grows by one.
const at_muster_aba_write = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_aba_write => at_muster_aba_write)
@inline muster_aba_write(cell, value) =
    ccall(at_muster_aba_write[], muster_status, (Ptr{muster_aba}, UInt64), cell, value)

# Writes a value and returns what the cell was; the count grows by one.
const at_muster_aba_exchange = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_aba_exchange => at_muster_aba_exchange)
@inline muster_aba_exchange(cell, value, out) =
    ccall(at_muster_aba_exchange[], muster_status, (Ptr{muster_aba}, UInt64, Ptr{muster_aba}), cell, value, out)

# Writes a value if value and count are the expected ones: no write has happened since they were read.
const at_muster_aba_compare_exchange = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_aba_compare_exchange => at_muster_aba_compare_exchange)
@inline muster_aba_compare_exchange(cell, expected, desired) =
    ccall(at_muster_aba_compare_exchange[], muster_status, (Ptr{muster_aba}, Ptr{muster_aba}, UInt64), cell, expected, desired)

# Writes a value if the value, with any count, is the expected one; the count grows by one.
const at_muster_aba_compare_exchange_value = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_aba_compare_exchange_value => at_muster_aba_compare_exchange_value)
@inline muster_aba_compare_exchange_value(cell, expected, desired) =
    ccall(at_muster_aba_compare_exchange_value[], muster_status, (Ptr{muster_aba}, Ptr{UInt64}, UInt64), cell, expected, desired)
