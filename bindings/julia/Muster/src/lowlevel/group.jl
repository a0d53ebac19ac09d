# SPDX-License-Identifier: MIT
# Written by bindings/julia/generate from include/muster/group.h; do not edit.

# muster_type: The type of an element.
const MUSTER_TYPE_I8 = UInt32(1)
const MUSTER_TYPE_U8 = UInt32(2)
const MUSTER_TYPE_I16 = UInt32(3)
const MUSTER_TYPE_U16 = UInt32(4)
const MUSTER_TYPE_I32 = UInt32(5)
const MUSTER_TYPE_U32 = UInt32(6)
const MUSTER_TYPE_I64 = UInt32(7)
const MUSTER_TYPE_U64 = UInt32(8)
const MUSTER_TYPE_F16 = UInt32(9)
const MUSTER_TYPE_BF16 = UInt32(10)
const MUSTER_TYPE_F32 = UInt32(11)
const MUSTER_TYPE_F64 = UInt32(12)
const MUSTER_TYPE_OF_REDUCTION = UInt32(13)

# muster_reduction: How two elements become one.
const MUSTER_REDUCE_SUM = UInt32(1)
const MUSTER_REDUCE_PRODUCT = UInt32(2)
const MUSTER_REDUCE_MIN = UInt32(3)
const MUSTER_REDUCE_MAX = UInt32(4)
const MUSTER_REDUCE_AND = UInt32(5)
const MUSTER_REDUCE_OR = UInt32(6)
const MUSTER_REDUCE_XOR = UInt32(7)

# muster_group_kind: What an operation does.
const MUSTER_GROUP_BARRIER = Int32(1)
const MUSTER_GROUP_BROADCAST = Int32(2)
const MUSTER_GROUP_REDUCE = Int32(3)
const MUSTER_GROUP_ALL_REDUCE = Int32(4)
const MUSTER_GROUP_REDUCE_SCATTER = Int32(5)
const MUSTER_GROUP_SCAN = Int32(6)
const MUSTER_GROUP_GATHER = Int32(7)
const MUSTER_GROUP_ALL_GATHER = Int32(8)
const MUSTER_GROUP_SCATTER = Int32(9)
const MUSTER_GROUP_ALL_TO_ALL = Int32(10)

# muster_group_operation_flag: Flags of muster_group_operation::flags.
const MUSTER_GROUP_EXCLUSIVE = UInt32(1)

# muster_group_flag: Flags of muster_group_config::flags.
const MUSTER_GROUP_NO_SHARED_MEMORY = UInt32(1)
const MUSTER_GROUP_MESSAGES = UInt32(2)
const MUSTER_GROUP_RANK_OF_MEMBER = UInt32(4)

# muster_group_member_state: What is known about a member; the value of muster_group_status::state.
const MUSTER_GROUP_MEMBER_IDLE = UInt32(1)
const MUSTER_GROUP_MEMBER_ACTIVE = UInt32(2)
const MUSTER_GROUP_MEMBER_MISSING = UInt32(3)
const MUSTER_GROUP_MEMBER_FAILED = UInt32(4)

struct muster_group end

# A collective operation.
struct muster_group_operation # 64 bytes
    struct_size::UInt32
    kind::UInt32
    type_::UInt32
    reduction::UInt32
    root::UInt32
    flags::UInt32
    count::UInt64
    input::Ptr{Cvoid}
    output::Ptr{Cvoid}
    counts::Ptr{UInt64}
    output_counts::Ptr{UInt64}
end
muster_group_operation(; kind = 0, type_ = 0, reduction = 0, root = 0, flags = 0, count = 0, input = C_NULL, output = C_NULL, counts = C_NULL, output_counts = C_NULL) =
    muster_group_operation(sizeof(muster_group_operation), kind, type_, reduction, root, flags, count, input, output, counts, output_counts)

# How to open a group.
struct muster_group_config # 96 bytes
    struct_size::UInt32
    flags::UInt32
    rank::UInt32
    size::UInt32
    round::Ptr{muster_round}
    store::Ptr{muster_store}
    name::Ptr{Cvoid}
    name_bytes::UInt64
    listen::Ptr{UInt8}
    listen_bytes::UInt64
    addresses::Ptr{UInt8}
    addresses_bytes::UInt64
    slot_bytes::UInt64
    cluster::Ptr{muster_cluster}
end
muster_group_config(; flags = 0, rank = 0, size = 0, round = C_NULL, store = C_NULL, name = C_NULL, name_bytes = 0, listen = C_NULL, listen_bytes = 0, addresses = C_NULL, addresses_bytes = 0, slot_bytes = 0, cluster = C_NULL) =
    muster_group_config(sizeof(muster_group_config), flags, rank, size, round, store, name, name_bytes, listen, listen_bytes, addresses, addresses_bytes, slot_bytes, cluster)

# The progress of a member.
struct muster_group_status # 32 bytes
    state::UInt32
    kind::UInt32
    sequence::UInt64
    shares_memory::UInt32
    reserved::NTuple{3, UInt32}
end

# Opens a group; returns when all members have connected to each other.
const at_muster_group_open = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_group_open => at_muster_group_open)
@inline muster_group_open(context, config, timeout_ns, out_group, error) =
    ccall(at_muster_group_open[], muster_status, (Ptr{muster_context}, Ptr{muster_group_config}, Int64, Ptr{Ptr{muster_group}}, Ptr{muster_error}), context, config, timeout_ns, out_group, error)

# Divides a group: members that give the same color are a new group, in the order of their keys, and of their ranks where keys are equal.
const at_muster_group_split = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_group_split => at_muster_group_split)
@inline muster_group_split(group, color, key, timeout_ns, out_group, error) =
    ccall(at_muster_group_split[], muster_status, (Ptr{muster_group}, Int64, Int64, Int64, Ptr{Ptr{muster_group}}, Ptr{muster_error}), group, color, key, timeout_ns, out_group, error)

# Makes a new stream between each two members, which belongs to the caller and not to the group: for instance for active messages (am.h).
const at_muster_group_connect = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_group_connect => at_muster_group_connect)
@inline muster_group_connect(group, timeout_ns, out_streams, capacity, error) =
    ccall(at_muster_group_connect[], muster_status, (Ptr{muster_group}, Int64, Ptr{Ptr{muster_stream}}, UInt32, Ptr{muster_error}), group, timeout_ns, out_streams, capacity, error)

# Returns the rank of this member.
const at_muster_group_rank = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_group_rank => at_muster_group_rank)
@inline muster_group_rank(group) =
    ccall(at_muster_group_rank[], UInt32, (Ptr{muster_group},), group)

# Returns the number of members.
const at_muster_group_size = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_group_size => at_muster_group_size)
@inline muster_group_size(group) =
    ccall(at_muster_group_size[], UInt32, (Ptr{muster_group},), group)

# Adds a reduction of the host.
const at_muster_group_add_reduction = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_group_add_reduction => at_muster_group_add_reduction)
@inline muster_group_add_reduction(group, element_bytes, combine, user, out_reduction) =
    ccall(at_muster_group_add_reduction[], muster_status, (Ptr{muster_group}, UInt32, Ptr{Cvoid}, Ptr{Cvoid}, Ptr{UInt32}), group, element_bytes, combine, user, out_reduction)

# Performs an operation.
const at_muster_group_run = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_group_run => at_muster_group_run)
@inline muster_group_run(group, operation, timeout_ns, error) =
    ccall(at_muster_group_run[], muster_status, (Ptr{muster_group}, Ptr{muster_group_operation}, Int64, Ptr{muster_error}), group, operation, timeout_ns, error)

# Begins an operation, as muster_group_run() performs it, on a thread of the library; ::MUSTER_DONE_CALL has its status and its detail.
const at_muster_group_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_group_begin => at_muster_group_begin)
@inline muster_group_begin(group, operation, timeout_ns, queue, tag, error) =
    ccall(at_muster_group_begin[], muster_status, (Ptr{muster_group}, Ptr{muster_group_operation}, Int64, Ptr{muster_queue}, UInt64, Ptr{muster_error}), group, operation, timeout_ns, queue, tag, error)

# Waits until all members have called it.
const at_muster_group_barrier = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_group_barrier => at_muster_group_barrier)
@inline muster_group_barrier(group, timeout_ns, error) =
    ccall(at_muster_group_barrier[], muster_status, (Ptr{muster_group}, Int64, Ptr{muster_error}), group, timeout_ns, error)

# Copies an array of the root to all members.
const at_muster_group_broadcast = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_group_broadcast => at_muster_group_broadcast)
@inline muster_group_broadcast(group, data, count, type_, root, timeout_ns, error) =
    ccall(at_muster_group_broadcast[], muster_status, (Ptr{muster_group}, Ptr{Cvoid}, UInt64, UInt32, UInt32, Int64, Ptr{muster_error}), group, data, count, type_, root, timeout_ns, error)

# Combines the arrays of all members, element by element, at the root.
const at_muster_group_reduce = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_group_reduce => at_muster_group_reduce)
@inline muster_group_reduce(group, input, output, count, type_, reduction, root, timeout_ns, error) =
    ccall(at_muster_group_reduce[], muster_status, (Ptr{muster_group}, Ptr{Cvoid}, Ptr{Cvoid}, UInt64, UInt32, UInt32, UInt32, Int64, Ptr{muster_error}), group, input, output, count, type_, reduction, root, timeout_ns, error)

# Combines the arrays of all members, element by element; every member receives the result.
const at_muster_group_all_reduce = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_group_all_reduce => at_muster_group_all_reduce)
@inline muster_group_all_reduce(group, input, output, count, type_, reduction, timeout_ns, error) =
    ccall(at_muster_group_all_reduce[], muster_status, (Ptr{muster_group}, Ptr{Cvoid}, Ptr{Cvoid}, UInt64, UInt32, UInt32, Int64, Ptr{muster_error}), group, input, output, count, type_, reduction, timeout_ns, error)

# Combines the arrays of all members, element by element; each member receives one block of the result.
const at_muster_group_reduce_scatter = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_group_reduce_scatter => at_muster_group_reduce_scatter)
@inline muster_group_reduce_scatter(group, input, output, count, type_, reduction, timeout_ns, error) =
    ccall(at_muster_group_reduce_scatter[], muster_status, (Ptr{muster_group}, Ptr{Cvoid}, Ptr{Cvoid}, UInt64, UInt32, UInt32, Int64, Ptr{muster_error}), group, input, output, count, type_, reduction, timeout_ns, error)

# Combines the arrays of ranks 0 to r, element by element; rank r receives the result.
const at_muster_group_scan = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_group_scan => at_muster_group_scan)
@inline muster_group_scan(group, input, output, count, type_, reduction, timeout_ns, error) =
    ccall(at_muster_group_scan[], muster_status, (Ptr{muster_group}, Ptr{Cvoid}, Ptr{Cvoid}, UInt64, UInt32, UInt32, Int64, Ptr{muster_error}), group, input, output, count, type_, reduction, timeout_ns, error)

# Gathers the arrays of all members at the root.
const at_muster_group_gather = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_group_gather => at_muster_group_gather)
@inline muster_group_gather(group, input, output, count, type_, root, timeout_ns, error) =
    ccall(at_muster_group_gather[], muster_status, (Ptr{muster_group}, Ptr{Cvoid}, Ptr{Cvoid}, UInt64, UInt32, UInt32, Int64, Ptr{muster_error}), group, input, output, count, type_, root, timeout_ns, error)

# Gathers the arrays of all members at all members.
const at_muster_group_all_gather = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_group_all_gather => at_muster_group_all_gather)
@inline muster_group_all_gather(group, input, output, count, type_, timeout_ns, error) =
    ccall(at_muster_group_all_gather[], muster_status, (Ptr{muster_group}, Ptr{Cvoid}, Ptr{Cvoid}, UInt64, UInt32, Int64, Ptr{muster_error}), group, input, output, count, type_, timeout_ns, error)

# Gives each member a block of an array of the root.
const at_muster_group_scatter = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_group_scatter => at_muster_group_scatter)
@inline muster_group_scatter(group, input, output, count, type_, root, timeout_ns, error) =
    ccall(at_muster_group_scatter[], muster_status, (Ptr{muster_group}, Ptr{Cvoid}, Ptr{Cvoid}, UInt64, UInt32, UInt32, Int64, Ptr{muster_error}), group, input, output, count, type_, root, timeout_ns, error)

# Gives every member a block of the array of every member.
const at_muster_group_all_to_all = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_group_all_to_all => at_muster_group_all_to_all)
@inline muster_group_all_to_all(group, input, output, count, type_, timeout_ns, error) =
    ccall(at_muster_group_all_to_all[], muster_status, (Ptr{muster_group}, Ptr{Cvoid}, Ptr{Cvoid}, UInt64, UInt32, Int64, Ptr{muster_error}), group, input, output, count, type_, timeout_ns, error)

# Sends bytes to one member, in a group with ::MUSTER_GROUP_MESSAGES.
const at_muster_group_send = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_group_send => at_muster_group_send)
@inline muster_group_send(group, rank, data, data_bytes, timeout_ns, error) =
    ccall(at_muster_group_send[], muster_status, (Ptr{muster_group}, UInt32, Ptr{Cvoid}, UInt64, Int64, Ptr{muster_error}), group, rank, data, data_bytes, timeout_ns, error)

# Receives the next message of one member.
const at_muster_group_receive = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_group_receive => at_muster_group_receive)
@inline muster_group_receive(group, rank, out_data, capacity, timeout_ns, out_bytes, error) =
    ccall(at_muster_group_receive[], muster_status, (Ptr{muster_group}, UInt32, Ptr{Cvoid}, UInt64, Int64, Ptr{UInt64}, Ptr{muster_error}), group, rank, out_data, capacity, timeout_ns, out_bytes, error)

# Reports the progress of a member, also while another thread waits in an operation.
const at_muster_group_get_status = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_group_get_status => at_muster_group_get_status)
@inline muster_group_get_status(group, rank, out_status) =
    ccall(at_muster_group_get_status[], muster_status, (Ptr{muster_group}, UInt32, Ptr{muster_group_status}), group, rank, out_status)

# Ends the group at all members: their operations end with ::MUSTER_E_ABORTED, the rank of this member and the text.
const at_muster_group_revoke = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_group_revoke => at_muster_group_revoke)
@inline muster_group_revoke(group, text, text_bytes) =
    ccall(at_muster_group_revoke[], muster_status, (Ptr{muster_group}, Ptr{UInt8}, Csize_t), group, text, text_bytes)

# Closes the group in order: waits until all members have called it, as a barrier does.
const at_muster_group_close = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_group_close => at_muster_group_close)
@inline muster_group_close(group, timeout_ns, error) =
    ccall(at_muster_group_close[], muster_status, (Ptr{muster_group}, Int64, Ptr{muster_error}), group, timeout_ns, error)

# Releases the handle.
const at_muster_group_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_group_release => at_muster_group_release)
@inline muster_group_release(group) =
    ccall(at_muster_group_release[], Cvoid, (Ptr{muster_group},), group)
