# SPDX-License-Identifier: MIT
# Written by bindings/julia/generate from include/muster/cluster.h; do not edit.

# muster_cluster_member_id: Member numbers with a fixed meaning.
const MUSTER_CLUSTER_MASTER = UInt32(0)

# muster_cluster_topology: The pairs of members between which streams may be opened.
const MUSTER_CLUSTER_ALL_TO_ALL = UInt32(0)
const MUSTER_CLUSTER_MASTER_WORKER = UInt32(1)
const MUSTER_CLUSTER_TREE = UInt32(2)
const MUSTER_CLUSTER_CUSTOM = UInt32(3)

# muster_launch_flag: Flags of muster_launch::flags.
const MUSTER_LAUNCH_MASTER_DIALS = UInt32(1)
const MUSTER_LAUNCH_NO_LISTEN = UInt32(2)

# muster_cluster_event_kind: The kind of an event; the value of muster_cluster_event::kind.
const MUSTER_CLUSTER_LAUNCHED = Int32(1)
const MUSTER_CLUSTER_CONNECTED = Int32(2)
const MUSTER_CLUSTER_JOINED = Int32(3)
const MUSTER_CLUSTER_FAILED = Int32(4)
const MUSTER_CLUSTER_DEAD = Int32(5)
const MUSTER_CLUSTER_REMOVED = Int32(6)
const MUSTER_CLUSTER_STREAM = Int32(7)
const MUSTER_CLUSTER_INTERRUPT = Int32(8)
const MUSTER_CLUSTER_LEAVE = Int32(9)
const MUSTER_CLUSTER_MASTER_GONE = Int32(10)
const MUSTER_CLUSTER_BROADCAST = Int32(11)

# muster_member_state: The state of a member.
const MUSTER_MEMBER_LAUNCHING = UInt32(1)
const MUSTER_MEMBER_LAUNCHED = UInt32(2)
const MUSTER_MEMBER_CONNECTED = UInt32(3)
const MUSTER_MEMBER_JOINED = UInt32(4)
const MUSTER_MEMBER_LEAVING = UInt32(5)
const MUSTER_MEMBER_GONE = UInt32(6)

struct muster_cluster end
struct muster_broadcast end

# How to open a cluster; all zero means the defaults named here.
struct muster_cluster_config # 96 bytes
    struct_size::UInt32
    flags::UInt32
    topology::UInt32
    max_connections::UInt32
    listen::Ptr{UInt8}
    listen_bytes::UInt64
    join_timeout_ns::Int64
    leave_timeout_ns::Int64
    queue::Ptr{muster_queue}
    tag::UInt64
    max_broadcast_bytes::UInt64
    store::Ptr{UInt8}
    store_bytes::UInt64
    reserved1::UInt64
end
muster_cluster_config(; flags = 0, topology = 0, max_connections = 0, listen = C_NULL, listen_bytes = 0, join_timeout_ns = 0, leave_timeout_ns = 0, queue = C_NULL, tag = 0, max_broadcast_bytes = 0, store = C_NULL, store_bytes = 0, reserved1 = 0) =
    muster_cluster_config(sizeof(muster_cluster_config), flags, topology, max_connections, listen, listen_bytes, join_timeout_ns, leave_timeout_ns, queue, tag, max_broadcast_bytes, store, store_bytes, reserved1)

# What to launch; zero means the default named here.
struct muster_launch # 112 bytes
    struct_size::UInt32
    flags::UInt32
    manager::Ptr{UInt8}
    count::UInt32
    reserved::UInt32
    argv::Ptr{Ptr{UInt8}}
    envp::Ptr{Ptr{UInt8}}
    directory::Ptr{UInt8}
    listen::Ptr{UInt8}
    ident::Ptr{UInt8}
    connect_idents::Ptr{UInt8}
    options::Ptr{UInt8}
    reserved1::NTuple{4, UInt64}
end
muster_launch(; flags = 0, manager = C_NULL, count = 0, reserved = 0, argv = C_NULL, envp = C_NULL, directory = C_NULL, listen = C_NULL, ident = C_NULL, connect_idents = C_NULL, options = C_NULL, reserved1 = ntuple(_ -> zero(UInt64), 4)) =
    muster_launch(sizeof(muster_launch), flags, manager, count, reserved, argv, envp, directory, listen, ident, connect_idents, options, reserved1)

# One event.
struct muster_cluster_event # 544 bytes
    kind::UInt32
    member::UInt32
    status::muster_status
    label_bytes::UInt32
    stream::Ptr{muster_stream}
    text_bytes::UInt32
    reserved::UInt32
    label::NTuple{256, UInt8}
    text::NTuple{232, UInt8}
    broadcast::Ptr{muster_broadcast}
    data::Ptr{Cvoid}
    size_bytes::UInt64
end

# Information about a member.
struct muster_member_info # 1336 bytes
    member::UInt32
    state::UInt32
    pid::Int64
    data::UInt64
    host::NTuple{256, UInt8}
    address::NTuple{1024, UInt8}
    reserved::NTuple{4, UInt64}
end

# Opens a cluster; the caller is its master.
const at_muster_cluster_open = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_open => at_muster_cluster_open)
@inline muster_cluster_open(context, config, out_cluster, error) =
    ccall(at_muster_cluster_open[], muster_status, (Ptr{muster_context}, Ptr{muster_cluster_config}, Ptr{Ptr{muster_cluster}}, Ptr{muster_error}), context, config, out_cluster, error)

# Begins to open a cluster, as muster_cluster_open() does.
const at_muster_cluster_open_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_open_begin => at_muster_cluster_open_begin)
@inline muster_cluster_open_begin(context, config, queue, tag, error) =
    ccall(at_muster_cluster_open_begin[], muster_status, (Ptr{muster_context}, Ptr{muster_cluster_config}, Ptr{muster_queue}, UInt64, Ptr{muster_error}), context, config, queue, tag, error)

# Adds workers.
const at_muster_cluster_add = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_add => at_muster_cluster_add)
@inline muster_cluster_add(cluster, launch, out_first, error) =
    ccall(at_muster_cluster_add[], muster_status, (Ptr{muster_cluster}, Ptr{muster_launch}, Ptr{UInt32}, Ptr{muster_error}), cluster, launch, out_first, error)

# Adds workers, as muster_cluster_add() does, and reports when that is complete, which takes time only for an `elastic` launch with a store.
const at_muster_cluster_add_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_add_begin => at_muster_cluster_add_begin)
@inline muster_cluster_add_begin(cluster, launch, queue, tag, error) =
    ccall(at_muster_cluster_add_begin[], muster_status, (Ptr{muster_cluster}, Ptr{muster_launch}, Ptr{muster_queue}, UInt64, Ptr{muster_error}), cluster, launch, queue, tag, error)

# Removes a worker: it is requested to leave (it receives ::MUSTER_CLUSTER_LEAVE), and killed if it has not left when the grace is over.
const at_muster_cluster_remove = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_remove => at_muster_cluster_remove)
@inline muster_cluster_remove(cluster, member, grace_ns) =
    ccall(at_muster_cluster_remove[], muster_status, (Ptr{muster_cluster}, UInt32, Int64), cluster, member, grace_ns)

# Interrupts a worker: it receives ::MUSTER_CLUSTER_INTERRUPT, and with ::MUSTER_WORKER_RAISE_INTERRUPT the signal SIGINT, which the thread of its library sends to its own process.
const at_muster_cluster_interrupt = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_interrupt => at_muster_cluster_interrupt)
@inline muster_cluster_interrupt(cluster, member) =
    ccall(at_muster_cluster_interrupt[], muster_status, (Ptr{muster_cluster}, UInt32), cluster, member)

# Takes the oldest event.
const at_muster_cluster_next_event = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_next_event => at_muster_cluster_next_event)
@inline muster_cluster_next_event(cluster, timeout_ns, out_event) =
    ccall(at_muster_cluster_next_event[], muster_status, (Ptr{muster_cluster}, Int64, Ptr{muster_cluster_event}), cluster, timeout_ns, out_event)

# Opens the store that the members of a cluster share, for their own keys, a rendezvous or a group (muster_group_config::cluster).
const at_muster_cluster_store = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_store => at_muster_cluster_store)
@inline muster_cluster_store(cluster, timeout_ns, out_store, error) =
    ccall(at_muster_cluster_store[], muster_status, (Ptr{muster_cluster}, Int64, Ptr{Ptr{muster_store}}, Ptr{muster_error}), cluster, timeout_ns, out_store, error)

# Begins to open the store of a cluster, as muster_cluster_store() does.
const at_muster_cluster_store_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_store_begin => at_muster_cluster_store_begin)
@inline muster_cluster_store_begin(cluster, timeout_ns, queue, tag, error) =
    ccall(at_muster_cluster_store_begin[], muster_status, (Ptr{muster_cluster}, Int64, Ptr{muster_queue}, UInt64, Ptr{muster_error}), cluster, timeout_ns, queue, tag, error)

# Cancels the current waits in muster_cluster_next_event(), muster_cluster_dial(), muster_cluster_broadcast() and muster_cluster_close().
const at_muster_cluster_cancel = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_cancel => at_muster_cluster_cancel)
@inline muster_cluster_cancel(cluster) =
    ccall(at_muster_cluster_cancel[], muster_status, (Ptr{muster_cluster},), cluster)

# Opens a stream to another member, which receives ::MUSTER_CLUSTER_STREAM.
const at_muster_cluster_dial = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_dial => at_muster_cluster_dial)
@inline muster_cluster_dial(cluster, member, label, label_bytes, timeout_ns, out_stream, error) =
    ccall(at_muster_cluster_dial[], muster_status, (Ptr{muster_cluster}, UInt32, Ptr{Cvoid}, Csize_t, Int64, Ptr{Ptr{muster_stream}}, Ptr{muster_error}), cluster, member, label, label_bytes, timeout_ns, out_stream, error)

# Begins to open a stream to another member; ::MUSTER_DONE_DIAL has the stream, or a status of muster_cluster_dial().
const at_muster_cluster_dial_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_dial_begin => at_muster_cluster_dial_begin)
@inline muster_cluster_dial_begin(cluster, member, label, label_bytes, timeout_ns, queue, tag, error) =
    ccall(at_muster_cluster_dial_begin[], muster_status, (Ptr{muster_cluster}, UInt32, Ptr{Cvoid}, Csize_t, Int64, Ptr{muster_queue}, UInt64, Ptr{muster_error}), cluster, member, label, label_bytes, timeout_ns, queue, tag, error)

# Sends the same bytes to many members, each of which receives ::MUSTER_CLUSTER_BROADCAST.
const at_muster_cluster_broadcast = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_broadcast => at_muster_cluster_broadcast)
@inline muster_cluster_broadcast(cluster, members, count, label, label_bytes, data, size_bytes, timeout_ns, out_statuses, error) =
    ccall(at_muster_cluster_broadcast[], muster_status, (Ptr{muster_cluster}, Ptr{UInt32}, Csize_t, Ptr{Cvoid}, Csize_t, Ptr{Cvoid}, UInt64, Int64, Ptr{muster_status}, Ptr{muster_error}), cluster, members, count, label, label_bytes, data, size_bytes, timeout_ns, out_statuses, error)

# Begins to send the same bytes to many members, as muster_cluster_broadcast() does; ::MUSTER_DONE_BROADCAST has its status.
const at_muster_cluster_broadcast_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_broadcast_begin => at_muster_cluster_broadcast_begin)
@inline muster_cluster_broadcast_begin(cluster, members, count, label, label_bytes, data, size_bytes, timeout_ns, out_statuses, queue, tag, error) =
    ccall(at_muster_cluster_broadcast_begin[], muster_status, (Ptr{muster_cluster}, Ptr{UInt32}, Csize_t, Ptr{Cvoid}, Csize_t, Ptr{Cvoid}, UInt64, Int64, Ptr{muster_status}, Ptr{muster_queue}, UInt64, Ptr{muster_error}), cluster, members, count, label, label_bytes, data, size_bytes, timeout_ns, out_statuses, queue, tag, error)

# Releases the bytes of a broadcast: they must not be accessed any more.
const at_muster_broadcast_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_broadcast_release => at_muster_broadcast_release)
@inline muster_broadcast_release(broadcast) =
    ccall(at_muster_broadcast_release[], Cvoid, (Ptr{muster_broadcast},), broadcast)

# Reads the information about a member.
const at_muster_cluster_get_member = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_get_member => at_muster_cluster_get_member)
@inline muster_cluster_get_member(cluster, member, out_info) =
    ccall(at_muster_cluster_get_member[], muster_status, (Ptr{muster_cluster}, UInt32, Ptr{muster_member_info}), cluster, member, out_info)

# Lists the workers that are not gone.
const at_muster_cluster_list = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_list => at_muster_cluster_list)
@inline muster_cluster_list(cluster, out_members, capacity, out_count) =
    ccall(at_muster_cluster_list[], muster_status, (Ptr{muster_cluster}, Ptr{UInt32}, Csize_t, Ptr{Csize_t}), cluster, out_members, capacity, out_count)

# Returns the number of this member.
const at_muster_cluster_self = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_self => at_muster_cluster_self)
@inline muster_cluster_self(cluster) =
    ccall(at_muster_cluster_self[], UInt32, (Ptr{muster_cluster},), cluster)

# Leaves the cluster.
const at_muster_cluster_close = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_close => at_muster_cluster_close)
@inline muster_cluster_close(cluster, timeout_ns) =
    ccall(at_muster_cluster_close[], muster_status, (Ptr{muster_cluster}, Int64), cluster, timeout_ns)

# Begins to leave the cluster, as muster_cluster_close() does; ::MUSTER_DONE_CALL has its status when the cluster is over.
const at_muster_cluster_close_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_close_begin => at_muster_cluster_close_begin)
@inline muster_cluster_close_begin(cluster, timeout_ns, queue, tag, error) =
    ccall(at_muster_cluster_close_begin[], muster_status, (Ptr{muster_cluster}, Int64, Ptr{muster_queue}, UInt64, Ptr{muster_error}), cluster, timeout_ns, queue, tag, error)

# Releases the handle; the cluster is closed as by muster_cluster_close(), without a wait.
const at_muster_cluster_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_release => at_muster_cluster_release)
@inline muster_cluster_release(cluster) =
    ccall(at_muster_cluster_release[], Cvoid, (Ptr{muster_cluster},), cluster)
