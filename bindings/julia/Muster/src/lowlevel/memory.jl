# SPDX-License-Identifier: MIT
# Written by bindings/julia/generate from include/muster/memory.h; do not edit.

# A global pointer: locale << (64 - muster_memory_config::locale_bits) | incarnation << some bits | offset.
const muster_gptr = UInt64

# muster_memory_flag: Flags of muster_memory_config::flags.
const MUSTER_MEMORY_NO_SHARED_MEMORY = UInt32(1)

# muster_memory_kind: What an operation does.
const MUSTER_MEMORY_PUT = Int32(1)
const MUSTER_MEMORY_GET = Int32(2)
const MUSTER_MEMORY_READ = Int32(3)
const MUSTER_MEMORY_WRITE = Int32(4)
const MUSTER_MEMORY_EXCHANGE = Int32(5)
const MUSTER_MEMORY_COMPARE_EXCHANGE = Int32(6)
const MUSTER_MEMORY_FETCH = Int32(7)

# muster_memory_cell: Kinds of cells; a cell keeps its kind for its whole life.
const MUSTER_MEMORY_WORD64 = UInt32(0)
const MUSTER_MEMORY_WORD32 = UInt32(1)
const MUSTER_MEMORY_ABA = UInt32(2)

struct muster_memory end

# How to make a memory; the same at all locales.
struct muster_memory_config # 40 bytes
    struct_size::UInt32
    locale_bits::UInt32
    segment_bytes::UInt64
    symmetric_bytes::UInt64
    max_tokens::UInt32
    max_pending::UInt32
    flags::UInt32
    incarnation_bits::UInt32
end
muster_memory_config(; locale_bits = 0, segment_bytes = 0, symmetric_bytes = 0, max_tokens = 0, max_pending = 0, flags = 0, incarnation_bits = 0) =
    muster_memory_config(sizeof(muster_memory_config), locale_bits, segment_bytes, symmetric_bytes, max_tokens, max_pending, flags, incarnation_bits)

# Where the segments are in this process, for `inline/memory.h` and compilers of other languages.
struct muster_memory_view # 24 bytes
    bases::Ptr{UInt64}
    segment_bytes::UInt64
    locales::UInt32
    offset_bits::UInt32
end

# An operation on one target.
struct muster_memory_operation # 80 bytes
    struct_size::UInt32
    kind::UInt32
    target::muster_gptr
    local_::Ptr{Cvoid}
    bytes::UInt64
    cell::UInt32
    order::Int32
    operation::Int32
    notify::UInt32
    value::UInt64
    expected::UInt64
    expected_count::UInt64
    signal::muster_gptr
end
muster_memory_operation(; kind = 0, target = 0, local_ = C_NULL, bytes = 0, cell = 0, order = 0, operation = 0, notify = 0, value = 0, expected = 0, expected_count = 0, signal = 0) =
    muster_memory_operation(sizeof(muster_memory_operation), kind, target, local_, bytes, cell, order, operation, notify, value, expected, expected_count, signal)

# What an operation has found.
struct muster_memory_result # 16 bytes
    value::UInt64
    count::UInt64
end

# Counters of the heap in one segment.
struct muster_memory_stats # 64 bytes
    heap_bytes::UInt64
    fresh_bytes::UInt64
    used_bytes::UInt64
    used_blocks::UInt64
    allocated::UInt64
    refused::UInt64
    symmetric_bytes::UInt64
    reserved::UInt64
end

# State of a locale.
struct muster_memory_locale_info # 24 bytes
    status::muster_status
    is_mapped::UInt32
    node::UInt32
    requests::UInt32
    dropped::UInt64
end

# Makes a memory, with all members of a group.
const at_muster_memory_open = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_memory_open => at_muster_memory_open)
@inline muster_memory_open(group, config, timeout_ns, out_memory, error) =
    ccall(at_muster_memory_open[], muster_status, (Ptr{muster_group}, Ptr{muster_memory_config}, Int64, Ptr{Ptr{muster_memory}}, Ptr{muster_error}), group, config, timeout_ns, out_memory, error)

# Gives up the reference to a memory.
const at_muster_memory_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_memory_release => at_muster_memory_release)
@inline muster_memory_release(memory) =
    ccall(at_muster_memory_release[], Cvoid, (Ptr{muster_memory},), memory)

# Returns the number of this locale.
const at_muster_memory_locale = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_memory_locale => at_muster_memory_locale)
@inline muster_memory_locale(memory) =
    ccall(at_muster_memory_locale[], UInt32, (Ptr{muster_memory},), memory)

# Returns the number of locales.
const at_muster_memory_locales = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_memory_locales => at_muster_memory_locales)
@inline muster_memory_locales(memory) =
    ccall(at_muster_memory_locales[], UInt32, (Ptr{muster_memory},), memory)

# Makes a global pointer.
const at_muster_memory_pointer = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_memory_pointer => at_muster_memory_pointer)
@inline muster_memory_pointer(memory, locale, offset, out) =
    ccall(at_muster_memory_pointer[], muster_status, (Ptr{muster_memory}, UInt32, UInt64, Ptr{muster_gptr}), memory, locale, offset, out)

# Returns the parts of a global pointer.
const at_muster_memory_parts = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_memory_parts => at_muster_memory_parts)
@inline muster_memory_parts(memory, pointer, out_locale, out_offset) =
    ccall(at_muster_memory_parts[], muster_status, (Ptr{muster_memory}, muster_gptr, Ptr{UInt32}, Ptr{UInt64}), memory, pointer, out_locale, out_offset)

# Returns the address of a place in this process.
const at_muster_memory_address = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_memory_address => at_muster_memory_address)
@inline muster_memory_address(memory, pointer, bytes, out_address) =
    ccall(at_muster_memory_address[], muster_status, (Ptr{muster_memory}, muster_gptr, UInt64, Ptr{Ptr{Cvoid}}), memory, pointer, bytes, out_address)

# Returns where the segments are in this process: muster_memory_address() without a call and without checks.
const at_muster_memory_get_view = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_memory_get_view => at_muster_memory_get_view)
@inline muster_memory_get_view(memory, out_view) =
    ccall(at_muster_memory_get_view[], muster_status, (Ptr{muster_memory}, Ptr{muster_memory_view}), memory, out_view)

# Allocates the same offset in each segment; the bytes are zero.
const at_muster_memory_symmetric = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_memory_symmetric => at_muster_memory_symmetric)
@inline muster_memory_symmetric(memory, bytes, alignment, timeout_ns, out_offset, error) =
    ccall(at_muster_memory_symmetric[], muster_status, (Ptr{muster_memory}, UInt64, UInt64, Int64, Ptr{UInt64}, Ptr{muster_error}), memory, bytes, alignment, timeout_ns, out_offset, error)

# Allocates a block in the heap of a locale.
const at_muster_memory_allocate = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_memory_allocate => at_muster_memory_allocate)
@inline muster_memory_allocate(memory, locale, bytes, timeout_ns, out) =
    ccall(at_muster_memory_allocate[], muster_status, (Ptr{muster_memory}, UInt32, UInt64, Int64, Ptr{muster_gptr}), memory, locale, bytes, timeout_ns, out)

# Frees a block.
const at_muster_memory_free = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_memory_free => at_muster_memory_free)
@inline muster_memory_free(memory, block, timeout_ns) =
    ccall(at_muster_memory_free[], muster_status, (Ptr{muster_memory}, muster_gptr, Int64), memory, block, timeout_ns)

# Performs an operation.
const at_muster_memory_run = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_memory_run => at_muster_memory_run)
@inline muster_memory_run(memory, operation, timeout_ns, out) =
    ccall(at_muster_memory_run[], muster_status, (Ptr{muster_memory}, Ptr{muster_memory_operation}, Int64, Ptr{muster_memory_result}), memory, operation, timeout_ns, out)

# Begins an operation, which ::MUSTER_DONE_MEMORY ends: its status is that of muster_memory_run().
const at_muster_memory_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_memory_begin => at_muster_memory_begin)
@inline muster_memory_begin(memory, operation, out, queue, tag) =
    ccall(at_muster_memory_begin[], muster_status, (Ptr{muster_memory}, Ptr{muster_memory_operation}, Ptr{muster_memory_result}, Ptr{muster_queue}, UInt64), memory, operation, out, queue, tag)

# Waits until the operations that were begun before are done, but for copies of more than 64 KiB, and the owners have the blocks that muster_memory_reclaim() has freed.
const at_muster_memory_flush = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_memory_flush => at_muster_memory_flush)
@inline muster_memory_flush(memory, locale, timeout_ns) =
    ccall(at_muster_memory_flush[], muster_status, (Ptr{muster_memory}, UInt32, Int64), memory, locale, timeout_ns)

# Returns the state of a locale.
const at_muster_memory_get_locale = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_memory_get_locale => at_muster_memory_get_locale)
@inline muster_memory_get_locale(memory, locale, out_info, error) =
    ccall(at_muster_memory_get_locale[], muster_status, (Ptr{muster_memory}, UInt32, Ptr{muster_memory_locale_info}, Ptr{muster_error}), memory, locale, out_info, error)

# Returns the manager of epochs of this memory.
const at_muster_memory_epoch = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_memory_epoch => at_muster_memory_epoch)
@inline muster_memory_epoch(memory, out_epoch) =
    ccall(at_muster_memory_epoch[], muster_status, (Ptr{muster_memory}, Ptr{Ptr{muster_epoch}}), memory, out_epoch)

# Frees objects of a token whose time has come: those that were given to muster_epoch_retire(), which are blocks of this memory on any locale.
const at_muster_memory_reclaim = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_memory_reclaim => at_muster_memory_reclaim)
@inline muster_memory_reclaim(memory, token, max_objects, max_ns, out_freed) =
    ccall(at_muster_memory_reclaim[], muster_status, (Ptr{muster_memory}, Ptr{muster_epoch_token}, UInt32, UInt64, Ptr{UInt32}), memory, token, max_objects, max_ns, out_freed)

# Frees all objects that a token has deferred, and returns when their owners have done so: the end of a structure, or a moment at which memory is counted.
const at_muster_memory_clear = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_memory_clear => at_muster_memory_clear)
@inline muster_memory_clear(memory, token, timeout_ns, out_freed) =
    ccall(at_muster_memory_clear[], muster_status, (Ptr{muster_memory}, Ptr{muster_epoch_token}, Int64, Ptr{UInt64}), memory, token, timeout_ns, out_freed)

# Returns the counters of the heap of a locale.
const at_muster_memory_get_stats = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_memory_get_stats => at_muster_memory_get_stats)
@inline muster_memory_get_stats(memory, locale, timeout_ns, out_stats) =
    ccall(at_muster_memory_get_stats[], muster_status, (Ptr{muster_memory}, UInt32, Int64, Ptr{muster_memory_stats}), memory, locale, timeout_ns, out_stats)
