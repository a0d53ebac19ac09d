# SPDX-License-Identifier: MIT
# Written by bindings/julia/generate from include/muster/message.h; do not edit.

# muster_message_type: Values of muster_message_header::type that Apache SINGA defines.
const MUSTER_MESSAGE_GET = UInt32(0)
const MUSTER_MESSAGE_PUT = UInt32(1)
const MUSTER_MESSAGE_SYNC = UInt32(2)
const MUSTER_MESSAGE_UPDATE = UInt32(3)
const MUSTER_MESSAGE_SYNC_REQUEST = UInt32(4)
const MUSTER_MESSAGE_SYNC_RESPONSE = UInt32(5)
const MUSTER_MESSAGE_STOP = UInt32(6)
const MUSTER_MESSAGE_DATA = UInt32(7)
const MUSTER_MESSAGE_GOT = UInt32(8)
const MUSTER_MESSAGE_UPDATED = UInt32(9)
const MUSTER_MESSAGE_CONNECT = UInt32(10)
const MUSTER_MESSAGE_METRIC = UInt32(11)
const MUSTER_MESSAGE_USER = UInt32(256)

# muster_message_any: A field of an address that matches every value of that field.
const MUSTER_MESSAGE_ANY = Int32(-1)

struct muster_message end

# Header of a message; all zero in a new one.
struct muster_message_header # 72 bytes
    struct_size::UInt32
    type_::UInt32
    source::UInt64
    destination::UInt64
    target::UInt64
    target_version::Int64
    trace_id::NTuple{2, UInt64}
    span_id::UInt64
    trace_flags::UInt32
    hops::UInt32
end
muster_message_header(; type_ = 0, source = 0, destination = 0, target = 0, target_version = 0, trace_id = ntuple(_ -> zero(UInt64), 2), span_id = 0, trace_flags = 0, hops = 0) =
    muster_message_header(sizeof(muster_message_header), type_, source, destination, target, target_version, trace_id, span_id, trace_flags, hops)

# Bytes in memory.
struct muster_buffer # 16 bytes
    data::Ptr{Cvoid}
    bytes::UInt64
end

# One value of a format frame.
struct muster_value # 32 bytes
    integer::Int64
    real::Float64
    data::Ptr{Cvoid}
    bytes::UInt64
end

# Makes an empty message.
const at_muster_message_create = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_message_create => at_muster_message_create)
@inline muster_message_create(out_message) =
    ccall(at_muster_message_create[], muster_status, (Ptr{Ptr{muster_message}},), out_message)

# Copies a message: header, and frames.
const at_muster_message_copy = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_message_copy => at_muster_message_copy)
@inline muster_message_copy(message, out_message) =
    ccall(at_muster_message_copy[], muster_status, (Ptr{muster_message}, Ptr{Ptr{muster_message}}), message, out_message)

# Returns the header.
const at_muster_message_get_header = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_message_get_header => at_muster_message_get_header)
@inline muster_message_get_header(message, out_header) =
    ccall(at_muster_message_get_header[], muster_status, (Ptr{muster_message}, Ptr{muster_message_header}), message, out_header)

# Replaces the header, except for `hops`.
const at_muster_message_set_header = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_message_set_header => at_muster_message_set_header)
@inline muster_message_set_header(message, header) =
    ccall(at_muster_message_set_header[], muster_status, (Ptr{muster_message}, Ptr{muster_message_header}), message, header)

# Exchanges source and destination: the message becomes its answer.
const at_muster_message_swap_addresses = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_message_swap_addresses => at_muster_message_swap_addresses)
@inline muster_message_swap_addresses(message) =
    ccall(at_muster_message_swap_addresses[], muster_status, (Ptr{muster_message},), message)

# Adds a frame with a copy of bytes.
const at_muster_message_add_frame = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_message_add_frame => at_muster_message_add_frame)
@inline muster_message_add_frame(message, data, bytes) =
    ccall(at_muster_message_add_frame[], muster_status, (Ptr{muster_message}, Ptr{Cvoid}, Csize_t), message, data, bytes)

# Adds a frame by reference.
const at_muster_message_lend_frame = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_message_lend_frame => at_muster_message_lend_frame)
@inline muster_message_lend_frame(message, data, bytes, queue, tag) =
    ccall(at_muster_message_lend_frame[], muster_status, (Ptr{muster_message}, Ptr{Cvoid}, Csize_t, Ptr{muster_queue}, UInt64), message, data, bytes, queue, tag)

# Adds a frame by handing over its memory.
const at_muster_message_take_frame = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_message_take_frame => at_muster_message_take_frame)
@inline muster_message_take_frame(message, data, bytes, release) =
    ccall(at_muster_message_take_frame[], muster_status, (Ptr{muster_message}, Ptr{Cvoid}, Csize_t, Ptr{Cvoid}), message, data, bytes, release)

# Returns the number of frames.
const at_muster_message_frame_count = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_message_frame_count => at_muster_message_frame_count)
@inline muster_message_frame_count(message) =
    ccall(at_muster_message_frame_count[], UInt32, (Ptr{muster_message},), message)

# Returns a frame by its index.
const at_muster_message_frame = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_message_frame => at_muster_message_frame)
@inline muster_message_frame(message, index, out_frame) =
    ccall(at_muster_message_frame[], muster_status, (Ptr{muster_message}, UInt32, Ptr{muster_buffer}), message, index, out_frame)

# Moves the cursor of a message to its first frame.
const at_muster_message_first = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_message_first => at_muster_message_first)
@inline muster_message_first(message, out_frame) =
    ccall(at_muster_message_first[], muster_status, (Ptr{muster_message}, Ptr{muster_buffer}), message, out_frame)

# Moves the cursor to the last frame; see muster_message_first().
const at_muster_message_last = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_message_last => at_muster_message_last)
@inline muster_message_last(message, out_frame) =
    ccall(at_muster_message_last[], muster_status, (Ptr{muster_message}, Ptr{muster_buffer}), message, out_frame)

# Moves the cursor to the next frame; see muster_message_first().
const at_muster_message_next = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_message_next => at_muster_message_next)
@inline muster_message_next(message, out_frame) =
    ccall(at_muster_message_next[], muster_status, (Ptr{muster_message}, Ptr{muster_buffer}), message, out_frame)

# Returns the size of a message.
const at_muster_message_bytes = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_message_bytes => at_muster_message_bytes)
@inline muster_message_bytes(message, out_payload, out_total) =
    ccall(at_muster_message_bytes[], muster_status, (Ptr{muster_message}, Ptr{UInt64}, Ptr{UInt64}), message, out_payload, out_total)

# Returns a message as an array of buffers, for a transport of the host's: the first one has the metadata, the others are the frames.
const at_muster_message_to_buffers = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_message_to_buffers => at_muster_message_to_buffers)
@inline muster_message_to_buffers(message, out_buffers, capacity, out_count) =
    ccall(at_muster_message_to_buffers[], muster_status, (Ptr{muster_message}, Ptr{muster_buffer}, UInt32, Ptr{UInt32}), message, out_buffers, capacity, out_count)

# Makes a message from buffers; the inverse of muster_message_to_buffers().
const at_muster_message_from_buffers = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_message_from_buffers => at_muster_message_from_buffers)
@inline muster_message_from_buffers(buffers, count, out_message, error) =
    ccall(at_muster_message_from_buffers[], muster_status, (Ptr{muster_buffer}, UInt32, Ptr{Ptr{muster_message}}, Ptr{muster_error}), buffers, count, out_message, error)

# Adds a format frame: values with their types, which the reader checks.
const at_muster_message_add_values = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_message_add_values => at_muster_message_add_values)
@inline muster_message_add_values(message, picture, values, count, error) =
    ccall(at_muster_message_add_values[], muster_status, (Ptr{muster_message}, Ptr{UInt8}, Ptr{muster_value}, UInt32, Ptr{muster_error}), message, picture, values, count, error)

# Reads a format frame.
const at_muster_message_get_values = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_message_get_values => at_muster_message_get_values)
@inline muster_message_get_values(message, index, picture, out_picture, out_values, capacity, out_count, error) =
    ccall(at_muster_message_get_values[], muster_status, (Ptr{muster_message}, UInt32, Ptr{UInt8}, Ptr{UInt8}, Ptr{muster_value}, UInt32, Ptr{UInt32}, Ptr{muster_error}), message, index, picture, out_picture, out_values, capacity, out_count, error)

# Frees a message and its frames.
const at_muster_message_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_message_release => at_muster_message_release)
@inline muster_message_release(message) =
    ccall(at_muster_message_release[], Cvoid, (Ptr{muster_message},), message)

# Packs an address.
const at_muster_message_address = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_message_address => at_muster_message_address)
@inline muster_message_address(group, id, kind, out_address) =
    ccall(at_muster_message_address[], muster_status, (Int64, Int64, Int64, Ptr{UInt64}), group, id, kind, out_address)

# Takes an address apart.
const at_muster_message_address_parts = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_message_address_parts => at_muster_message_address_parts)
@inline muster_message_address_parts(address, out_group, out_id, out_kind) =
    ccall(at_muster_message_address_parts[], muster_status, (UInt64, Ptr{Int64}, Ptr{Int64}, Ptr{Int64}), address, out_group, out_id, out_kind)

# Does an address match a pattern, whose fields may be ::MUSTER_MESSAGE_ANY?
const at_muster_message_address_matches = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_message_address_matches => at_muster_message_address_matches)
@inline muster_message_address_matches(pattern, address) =
    ccall(at_muster_message_address_matches[], Int32, (UInt64, UInt64), pattern, address)

# Converts an address of Apache SINGA, whose fields had 16, 8 and 8 bits.
const at_muster_message_address_singa = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_message_address_singa => at_muster_message_address_singa)
@inline muster_message_address_singa(group, id_or_proc, type_, out_address) =
    ccall(at_muster_message_address_singa[], muster_status, (Int32, Int32, Int32, Ptr{UInt64}), group, id_or_proc, type_, out_address)

# Packs what a message is about: a parameter and a slice of it, or a layer and a blob of it.
const at_muster_message_target = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_message_target => at_muster_message_target)
@inline muster_message_target(entity, part) =
    ccall(at_muster_message_target[], UInt64, (UInt32, UInt32), entity, part)
