# SPDX-License-Identifier: MIT
# Written by bindings/julia/generate from include/muster/store.h; do not edit.

# muster_store_op_kind: What an operation does; the value of muster_store_op::kind.
const MUSTER_STORE_NONE = Int32(0)
const MUSTER_STORE_GET = Int32(1)
const MUSTER_STORE_READ = Int32(2)
const MUSTER_STORE_SET = Int32(3)
const MUSTER_STORE_ADD = Int32(4)
const MUSTER_STORE_APPEND = Int32(5)
const MUSTER_STORE_DELETE = Int32(6)
const MUSTER_STORE_CHECK = Int32(7)
const MUSTER_STORE_WAIT = Int32(8)
const MUSTER_STORE_COUNT = Int32(9)
const MUSTER_STORE_LIST = Int32(10)
const MUSTER_STORE_KEYS = Int32(11)
const MUSTER_STORE_PUSH = Int32(12)
const MUSTER_STORE_POP = Int32(13)
const MUSTER_STORE_TRY_POP = Int32(14)
const MUSTER_STORE_LENGTH = Int32(15)
const MUSTER_STORE_WATCH = Int32(16)
const MUSTER_STORE_BARRIER = Int32(17)
const MUSTER_STORE_CLEAR = Int32(18)

# muster_store_condition: The condition of an operation; the value of muster_store_op::condition.
const MUSTER_STORE_ALWAYS = UInt32(0)
const MUSTER_STORE_IF_ABSENT = UInt32(1)
const MUSTER_STORE_IF_PRESENT = UInt32(2)
const MUSTER_STORE_IF_VALUE = UInt32(3)
const MUSTER_STORE_IF_VERSION = UInt32(4)

# muster_store_entry_flag: Flags of muster_store_entry::flags.
const MUSTER_STORE_PRESENT = UInt32(1)
const MUSTER_STORE_FAILED = UInt32(2)
const MUSTER_STORE_MORE = UInt32(4)
const MUSTER_STORE_LEASE_ENDED = UInt32(8)
const MUSTER_STORE_LEASE_SILENT = UInt32(16)
const MUSTER_STORE_LEASE_BROKEN = UInt32(32)

# muster_store_capability: What a store supports; bits of muster_store_capabilities().
const MUSTER_STORE_CAN_TRANSACT = UInt32(1)
const MUSTER_STORE_CAN_QUEUE = UInt32(2)
const MUSTER_STORE_CAN_WAIT = UInt32(4)
const MUSTER_STORE_CAN_WATCH = UInt32(8)
const MUSTER_STORE_CAN_LEASE = UInt32(16)
const MUSTER_STORE_CAN_BARRIER = UInt32(32)

# muster_lease_flag: Flags of muster_store_lease().
const MUSTER_LEASE_MANUAL = UInt32(1)
const MUSTER_LEASE_CONNECTED = UInt32(2)

struct muster_store end
struct muster_store_result end
struct muster_lease end

# One operation; 88 bytes.
struct muster_store_op # 88 bytes
    kind::UInt32
    condition::UInt32
    key::Ptr{Cvoid}
    key_bytes::UInt64
    value::Ptr{Cvoid}
    value_bytes::UInt64
    expected::Ptr{Cvoid}
    expected_bytes::UInt64
    version::UInt64
    number::Int64
    lease::UInt64
    count::UInt32
    rank::UInt32
end

# The result of one operation; 56 bytes.
struct muster_store_entry # 56 bytes
    op::UInt32
    flags::UInt32
    version::UInt64
    number::Int64
    key::Ptr{Cvoid}
    key_bytes::UInt64
    value::Ptr{Cvoid}
    value_bytes::UInt64
end

# How to open a store; all zero means the defaults named here.
struct muster_store_config # 40 bytes
    struct_size::UInt32
    flags::UInt32
    max_bytes::UInt64
    lost_after_ns::Int64
    grace_ns::Int64
    reserved::UInt64
end
muster_store_config(; flags = 0, max_bytes = 0, lost_after_ns = 0, grace_ns = 0, reserved = 0) =
    muster_store_config(sizeof(muster_store_config), flags, max_bytes, lost_after_ns, grace_ns, reserved)

# Opens a store.
const at_muster_store_open = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_open => at_muster_store_open)
@inline muster_store_open(context, url, url_bytes, config, timeout_ns, out_store, error) =
    ccall(at_muster_store_open[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t, Ptr{muster_store_config}, Int64, Ptr{Ptr{muster_store}}, Ptr{muster_error}), context, url, url_bytes, config, timeout_ns, out_store, error)

# Begins to open a store, as muster_store_open() does.
const at_muster_store_open_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_open_begin => at_muster_store_open_begin)
@inline muster_store_open_begin(context, url, url_bytes, config, timeout_ns, queue, tag, error) =
    ccall(at_muster_store_open_begin[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t, Ptr{muster_store_config}, Int64, Ptr{muster_queue}, UInt64, Ptr{muster_error}), context, url, url_bytes, config, timeout_ns, queue, tag, error)

# Makes a view of a store: the same store, where the view adds a prefix to the name of every key, queue and barrier in requests, and removes it from the names in results.
const at_muster_store_view = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_view => at_muster_store_view)
@inline muster_store_view(store, prefix, prefix_bytes, out_view, error) =
    ccall(at_muster_store_view[], muster_status, (Ptr{muster_store}, Ptr{Cvoid}, Csize_t, Ptr{Ptr{muster_store}}, Ptr{muster_error}), store, prefix, prefix_bytes, out_view, error)

# Returns what a store supports.
const at_muster_store_capabilities = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_capabilities => at_muster_store_capabilities)
@inline muster_store_capabilities(store) =
    ccall(at_muster_store_capabilities[], UInt32, (Ptr{muster_store},), store)

# Performs a request and waits for its result.
const at_muster_store_do = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_do => at_muster_store_do)
@inline muster_store_do(store, ops, op_count, timeout_ns, out_result, error) =
    ccall(at_muster_store_do[], muster_status, (Ptr{muster_store}, Ptr{muster_store_op}, Csize_t, Int64, Ptr{Ptr{muster_store_result}}, Ptr{muster_error}), store, ops, op_count, timeout_ns, out_result, error)

# Begins a request, as muster_store_do() performs it.
const at_muster_store_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_begin => at_muster_store_begin)
@inline muster_store_begin(store, ops, op_count, timeout_ns, queue, tag, out_request, error) =
    ccall(at_muster_store_begin[], muster_status, (Ptr{muster_store}, Ptr{muster_store_op}, Csize_t, Int64, Ptr{muster_queue}, UInt64, Ptr{UInt64}, Ptr{muster_error}), store, ops, op_count, timeout_ns, queue, tag, out_request, error)

# Cancels a request: it ends with ::MUSTER_E_CANCELED and is not applied.
const at_muster_store_cancel = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_cancel => at_muster_store_cancel)
@inline muster_store_cancel(store, request) =
    ccall(at_muster_store_cancel[], muster_status, (Ptr{muster_store}, UInt64), store, request)

# Makes a lease: keys that are set with it are deleted when it ends.
const at_muster_store_lease = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_lease => at_muster_store_lease)
@inline muster_store_lease(store, ttl_ns, flags, timeout_ns, out_lease, error) =
    ccall(at_muster_store_lease[], muster_status, (Ptr{muster_store}, Int64, UInt32, Int64, Ptr{Ptr{muster_lease}}, Ptr{muster_error}), store, ttl_ns, flags, timeout_ns, out_lease, error)

# Begins to make a lease, as muster_store_lease() does.
const at_muster_store_lease_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_lease_begin => at_muster_store_lease_begin)
@inline muster_store_lease_begin(store, ttl_ns, flags, timeout_ns, queue, tag, out_request, error) =
    ccall(at_muster_store_lease_begin[], muster_status, (Ptr{muster_store}, Int64, UInt32, Int64, Ptr{muster_queue}, UInt64, Ptr{UInt64}, Ptr{muster_error}), store, ttl_ns, flags, timeout_ns, queue, tag, out_request, error)

# Returns the id of a lease, for muster_store_op::lease.
const at_muster_lease_id = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_lease_id => at_muster_lease_id)
@inline muster_lease_id(lease) =
    ccall(at_muster_lease_id[], UInt64, (Ptr{muster_lease},), lease)

# Renews a MANUAL lease: its time to live begins anew.
const at_muster_lease_keep = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_lease_keep => at_muster_lease_keep)
@inline muster_lease_keep(lease) =
    ccall(at_muster_lease_keep[], muster_status, (Ptr{muster_lease},), lease)

# Ends a lease at once: its keys are deleted at one moment.
const at_muster_lease_end = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_lease_end => at_muster_lease_end)
@inline muster_lease_end(lease, timeout_ns, error) =
    ccall(at_muster_lease_end[], muster_status, (Ptr{muster_lease}, Int64, Ptr{muster_error}), lease, timeout_ns, error)

# Begins to end a lease, as muster_lease_end() does; ::MUSTER_DONE_STORE has its status, and no object.
const at_muster_lease_end_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_lease_end_begin => at_muster_lease_end_begin)
@inline muster_lease_end_begin(lease, timeout_ns, queue, tag, error) =
    ccall(at_muster_lease_end_begin[], muster_status, (Ptr{muster_lease}, Int64, Ptr{muster_queue}, UInt64, Ptr{muster_error}), lease, timeout_ns, queue, tag, error)

# Releases the handle.
const at_muster_lease_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_lease_release => at_muster_lease_release)
@inline muster_lease_release(lease) =
    ccall(at_muster_lease_release[], Cvoid, (Ptr{muster_lease},), lease)

# Releases the handle.
const at_muster_store_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_release => at_muster_store_release)
@inline muster_store_release(store) =
    ccall(at_muster_store_release[], Cvoid, (Ptr{muster_store},), store)

# Returns the number of entries in a result: one for each operation, and for LIST, KEYS and WATCH one for each key or change.
const at_muster_store_result_count = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_result_count => at_muster_store_result_count)
@inline muster_store_result_count(result) =
    ccall(at_muster_store_result_count[], UInt64, (Ptr{muster_store_result},), result)

# Reads one entry of a result.
const at_muster_store_result_entry = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_result_entry => at_muster_store_result_entry)
@inline muster_store_result_entry(result, index, out_entry) =
    ccall(at_muster_store_result_entry[], muster_status, (Ptr{muster_store_result}, UInt64, Ptr{muster_store_entry}), result, index, out_entry)

# Returns the revision of the store at the time the request was applied.
const at_muster_store_result_revision = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_result_revision => at_muster_store_result_revision)
@inline muster_store_result_revision(result) =
    ccall(at_muster_store_result_revision[], UInt64, (Ptr{muster_store_result},), result)

# Releases one reference.
const at_muster_store_result_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_result_release => at_muster_store_result_release)
@inline muster_store_result_release(result) =
    ccall(at_muster_store_result_release[], Cvoid, (Ptr{muster_store_result},), result)
