# SPDX-License-Identifier: MIT
# Written by bindings/julia/generate from include/muster/*.h; do not edit.
#
# The C surface as it is: constants, structs, and one Julia function per C function. Addresses are looked up by load!(),
# which Muster.__init__ calls: nothing of the loaded library is kept in a precompiled image.
module LowLevel

import Libdl

# Result of a call: 0, a positive "not now", or a negative failure; see ::muster_status_value.
const muster_status = Int32

# muster_agent_flag: Flags of muster_agent_config::flags.
const MUSTER_AGENT_NO_GUARD = UInt32(1)

# muster_agent_output: Outputs of a worker; bits of muster_agent_config::filed and muster_agent_config::shown.
const MUSTER_AGENT_STDOUT = UInt32(1)
const MUSTER_AGENT_STDERR = UInt32(2)

# muster_agent_phase: Where an agent is; the value of muster_agent_state::phase.
const MUSTER_AGENT_JOINING = UInt32(1)
const MUSTER_AGENT_STARTING = UInt32(2)
const MUSTER_AGENT_RUNNING = UInt32(3)
const MUSTER_AGENT_STOPPING = UInt32(4)
const MUSTER_AGENT_DONE = UInt32(5)
const MUSTER_AGENT_ENDED = UInt32(6)

# muster_agent_worker_state: How a worker fares; the value of muster_agent_worker::state.
const MUSTER_WORKER_NONE = UInt32(0)
const MUSTER_WORKER_RUNNING = UInt32(1)
const MUSTER_WORKER_SUCCEEDED = UInt32(2)
const MUSTER_WORKER_FAILED = UInt32(3)
const MUSTER_WORKER_STOPPED = UInt32(4)

# muster_agent_event: Steps of an agent; the value of muster_completion::events of ::MUSTER_EVENT_AGENT.
const MUSTER_AGENT_STARTED = UInt32(1)
const MUSTER_AGENT_WORKER_ENDED = UInt32(2)
const MUSTER_AGENT_RESTARTING = UInt32(3)
const MUSTER_AGENT_NODES = UInt32(4)

# muster_status_value: The values of a ::muster_status.
const MUSTER_OK = Int32(0)
const MUSTER_AGAIN = Int32(1)
const MUSTER_TIMEOUT = Int32(2)
const MUSTER_E_ARG = Int32(-1)
const MUSTER_E_ABI = Int32(-2)
const MUSTER_E_NOMEM = Int32(-3)
const MUSTER_E_LIMIT = Int32(-4)
const MUSTER_E_CLOSED = Int32(-5)
const MUSTER_E_CANCELED = Int32(-6)
const MUSTER_E_FORKED = Int32(-7)
const MUSTER_E_WOULD_DEADLOCK = Int32(-8)
const MUSTER_E_UNSUPPORTED = Int32(-9)
const MUSTER_E_EXISTS = Int32(-10)
const MUSTER_E_NOT_FOUND = Int32(-11)
const MUSTER_E_STALE = Int32(-12)
const MUSTER_E_BUSY = Int32(-13)
const MUSTER_E_PERMISSION = Int32(-14)
const MUSTER_E_AUTH = Int32(-15)
const MUSTER_E_PROTOCOL = Int32(-16)
const MUSTER_E_ADDRESS = Int32(-17)
const MUSTER_E_UNREACHABLE = Int32(-18)
const MUSTER_E_PEER = Int32(-19)
const MUSTER_E_ABORTED = Int32(-20)
const MUSTER_E_END = Int32(-21)
const MUSTER_E_SYSTEM = Int32(-22)
const MUSTER_E_PLUGIN = Int32(-23)
const MUSTER_E_INTERNAL = Int32(-24)
const MUSTER_E_CHANGED = Int32(-25)
const MUSTER_E_STORE_LOST = Int32(-26)
const MUSTER_E_QUORUM = Int32(-27)

# muster_broker_flag: Flags of muster_broker_config::flags.
const MUSTER_BROKER_OPEN = UInt32(1)
const MUSTER_BROKER_NO_CURVE = UInt32(2)

# muster_cluster_member_id: Numbers of members that mean something.
const MUSTER_CLUSTER_MASTER = UInt32(0)

# muster_cluster_topology: Between whom streams may be opened.
const MUSTER_CLUSTER_ALL_TO_ALL = UInt32(0)
const MUSTER_CLUSTER_MASTER_WORKER = UInt32(1)
const MUSTER_CLUSTER_TREE = UInt32(2)
const MUSTER_CLUSTER_CUSTOM = UInt32(3)

# muster_launch_flag: Flags of muster_launch::flags.
const MUSTER_LAUNCH_MASTER_DIALS = UInt32(1)
const MUSTER_LAUNCH_NO_LISTEN = UInt32(2)

# muster_cluster_event_kind: What has happened.
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

# muster_member_state: How a member fares.
const MUSTER_MEMBER_LAUNCHING = UInt32(1)
const MUSTER_MEMBER_LAUNCHED = UInt32(2)
const MUSTER_MEMBER_CONNECTED = UInt32(3)
const MUSTER_MEMBER_JOINED = UInt32(4)
const MUSTER_MEMBER_LEAVING = UInt32(5)
const MUSTER_MEMBER_GONE = UInt32(6)

# muster_worker_flag: Flags of muster_worker_config::flags.
const MUSTER_WORKER_EXIT_WITH_MASTER = UInt32(1)
const MUSTER_WORKER_RAISE_INTERRUPT = UInt32(2)

# muster_context_flag: Flags of muster_context_config::flags.
const MUSTER_CONTEXT_EXTERNAL = UInt32(1)
const MUSTER_CONTEXT_NO_SEAL = UInt32(2)
const MUSTER_CONTEXT_SEAL_ALWAYS = UInt32(4)
const MUSTER_CONTEXT_NO_UPGRADE = UInt32(8)

# muster_log_level: Least severity of a log record.
const MUSTER_LOG_OFF = UInt32(0)
const MUSTER_LOG_ERROR = UInt32(1)
const MUSTER_LOG_WARN = UInt32(2)
const MUSTER_LOG_INFO = UInt32(3)
const MUSTER_LOG_DEBUG = UInt32(4)

# muster_manager_want: What a request wants; bits, or'ed where a host says which it wants to hear of.
const MUSTER_MANAGER_LAUNCH = UInt32(1)
const MUSTER_MANAGER_CONNECT = UInt32(2)
const MUSTER_MANAGER_CONNECT_WORKER = UInt32(4)
const MUSTER_MANAGER_REGISTER = UInt32(8)
const MUSTER_MANAGER_DEREGISTER = UInt32(16)
const MUSTER_MANAGER_INTERRUPT = UInt32(32)
const MUSTER_MANAGER_KILL = UInt32(64)
const MUSTER_MANAGER_FINALIZE = UInt32(128)

# muster_process_exit_kind: How a process ended; fields of muster_process_exit::kind.
const MUSTER_PROCESS_EXITED = Int32(1)
const MUSTER_PROCESS_KILLED = Int32(2)
const MUSTER_PROCESS_UNKNOWN = Int32(3)

# muster_completion_kind: What a completion tells; the value of muster_completion::kind.
const MUSTER_DONE_READ = Int32(1)
const MUSTER_DONE_RELEASED = Int32(2)
const MUSTER_DONE_DIAL = Int32(3)
const MUSTER_DONE_EXIT = Int32(4)
const MUSTER_DONE_USER = Int32(5)
const MUSTER_DONE_STORE = Int32(6)
const MUSTER_DONE_LEASE = Int32(7)
const MUSTER_DONE_RENDEZVOUS = Int32(8)
const MUSTER_DONE_AGENT = Int32(9)
const MUSTER_DONE_BROADCAST = Int32(10)
const MUSTER_EVENT_READY = Int32(16)
const MUSTER_EVENT_LOG = Int32(17)
const MUSTER_EVENT_AGENT = Int32(19)
const MUSTER_REQUEST_OPEN = Int32(32)
const MUSTER_REQUEST_LISTEN = Int32(33)
const MUSTER_REQUEST_CLOSE = Int32(34)
const MUSTER_REQUEST_CANCEL = Int32(35)
const MUSTER_REQUEST_STORE = Int32(36)
const MUSTER_REQUEST_RENDEZVOUS = Int32(37)
const MUSTER_REQUEST_MANAGER = Int32(38)

# muster_rendezvous_flag: Flags of muster_rendezvous_config::flags.
const MUSTER_RENDEZVOUS_RANK = UInt32(1)
const MUSTER_RENDEZVOUS_REOPEN = UInt32(2)

# muster_rendezvous_operation: What muster_rendezvous_begin() begins.
const MUSTER_RENDEZVOUS_JOIN = UInt32(1)
const MUSTER_RENDEZVOUS_LEAVE = UInt32(2)
const MUSTER_RENDEZVOUS_EXIT = UInt32(3)
const MUSTER_RENDEZVOUS_ABORT = UInt32(4)
const MUSTER_RENDEZVOUS_CLOSE = UInt32(5)

# muster_rendezvous_event_kind: What an event tells; the value of muster_rendezvous_event::kind.
const MUSTER_RENDEZVOUS_JOINED = Int32(1)
const MUSTER_RENDEZVOUS_LAST_CALL = Int32(2)
const MUSTER_RENDEZVOUS_COMPLETE = Int32(3)
const MUSTER_RENDEZVOUS_LEFT = Int32(4)
const MUSTER_RENDEZVOUS_DEAD = Int32(5)
const MUSTER_RENDEZVOUS_WAITING = Int32(6)
const MUSTER_RENDEZVOUS_ABORTED = Int32(7)
const MUSTER_RENDEZVOUS_EXPELLED = Int32(8)
const MUSTER_RENDEZVOUS_CLOSED = Int32(9)
const MUSTER_RENDEZVOUS_LOST = Int32(10)

# muster_rendezvous_phase: Where a member is; the value of muster_rendezvous_state::phase.
const MUSTER_RENDEZVOUS_OUT = UInt32(0)
const MUSTER_RENDEZVOUS_SEEKS = UInt32(1)
const MUSTER_RENDEZVOUS_IN = UInt32(2)

# muster_rendezvous_state_flag: Flags of muster_rendezvous_state::flags.
const MUSTER_RENDEZVOUS_IS_CLOSED = UInt32(1)
const MUSTER_RENDEZVOUS_IS_CALLED = UInt32(2)
const MUSTER_RENDEZVOUS_LEADS = UInt32(4)

# muster_round_flag: Flags of muster_round_info::flags.
const MUSTER_ROUND_OVER = UInt32(1)

# muster_rendezvous_request_kind: What a request wants; the value of muster_rendezvous_request::kind.
const MUSTER_RENDEZVOUS_REQUEST_OPEN = Int32(1)
const MUSTER_RENDEZVOUS_REQUEST_JOIN = Int32(2)
const MUSTER_RENDEZVOUS_REQUEST_LEAVE = Int32(3)
const MUSTER_RENDEZVOUS_REQUEST_EXIT = Int32(4)
const MUSTER_RENDEZVOUS_REQUEST_ABORT = Int32(5)
const MUSTER_RENDEZVOUS_REQUEST_CLOSE = Int32(6)
const MUSTER_RENDEZVOUS_REQUEST_LIST = Int32(7)

# muster_transport_flag: Flags of muster_transport_ops::flags.
const MUSTER_TRANSPORT_ANY_THREAD = UInt32(1)
const MUSTER_TRANSPORT_LOCAL = UInt32(2)

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

# muster_store_condition: What has to be so for a request to be done; the value of muster_store_op::condition.
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

# muster_store_capability: What a store can do; bits of muster_store_capabilities().
const MUSTER_STORE_CAN_TRANSACT = UInt32(1)
const MUSTER_STORE_CAN_QUEUE = UInt32(2)
const MUSTER_STORE_CAN_WAIT = UInt32(4)
const MUSTER_STORE_CAN_WATCH = UInt32(8)
const MUSTER_STORE_CAN_LEASE = UInt32(16)
const MUSTER_STORE_CAN_MEET = UInt32(32)

# muster_lease_flag: Flags of muster_store_lease().
const MUSTER_LEASE_MANUAL = UInt32(1)
const MUSTER_LEASE_CONNECTED = UInt32(2)

# muster_store_request_kind: What a request wants; the value of muster_store_request::kind.
const MUSTER_STORE_REQUEST_OPEN = Int32(1)
const MUSTER_STORE_REQUEST_DO = Int32(2)
const MUSTER_STORE_REQUEST_GRANT = Int32(3)
const MUSTER_STORE_REQUEST_KEEP = Int32(4)
const MUSTER_STORE_REQUEST_END = Int32(5)

# muster_store_request_flag: Flags of muster_store_request::flags.
const MUSTER_STORE_LOOK_ONCE = UInt32(1)

# muster_store_trait: Flags of muster_store_traits::flags.
const MUSTER_STORE_ELSEWHERE = UInt32(1)

# muster_store_host_flag: Flags of muster_store_host_ops::flags.
const MUSTER_STORE_ANY_THREAD = UInt32(1)

# muster_store_server_flag: Flags of muster_store_server_config::flags.
const MUSTER_STORE_SERVER_NO_SYNC = UInt32(1)
const MUSTER_STORE_SERVER_ALONE = UInt32(2)
const MUSTER_STORE_SERVER_REFUSED_IS_DEAD = UInt32(4)

# muster_store_server_role: What a server does, in muster_store_server_stats::role.
const MUSTER_STORE_SERVER_SERVES = UInt32(0)
const MUSTER_STORE_SERVER_PAIRED = UInt32(1)
const MUSTER_STORE_SERVER_HALTED = UInt32(2)
const MUSTER_STORE_SERVER_STANDBY = UInt32(3)
const MUSTER_STORE_SERVER_CATCHING_UP = UInt32(4)
const MUSTER_STORE_SERVER_WAITING = UInt32(5)

# muster_stream_event: What a stream can be ready for, or has met; bits of muster_completion::events.
const MUSTER_STREAM_READABLE = UInt32(1)
const MUSTER_STREAM_WRITABLE = UInt32(2)
const MUSTER_STREAM_PEER_SILENT = UInt32(4)
const MUSTER_STREAM_PEER_BACK = UInt32(8)
const MUSTER_STREAM_ENDED = UInt32(16)

# muster_stream_direction: Directions, for muster_stream_cancel().
const MUSTER_STREAM_READ = UInt32(1)
const MUSTER_STREAM_WRITE = UInt32(2)

# muster_stream_read_flag: Flags of muster_stream_read_into() and muster_stream_read_begin().
const MUSTER_STREAM_HUGE_PAGES = UInt32(1)

struct muster_agent end
struct muster_broker end
struct muster_cluster end
struct muster_broadcast end
struct muster_context end
struct muster_queue end
struct muster_process end
struct muster_rendezvous end
struct muster_round end
struct muster_store end
struct muster_store_result end
struct muster_lease end
struct muster_store_server end
struct muster_stream end
struct muster_listener end

# What becomes of the outputs of one worker; 16 bytes.
struct muster_agent_outputs # 16 bytes
    local_rank::UInt32
    filed::UInt32
    shown::UInt32
    reserved::UInt32
end

# How to open a rendezvous; what is zero means the default named here.
struct muster_rendezvous_config # 160 bytes
    struct_size::UInt32
    flags::UInt32
    run_id::Ptr{Cvoid}
    run_id_bytes::UInt64
    url::Ptr{Cvoid}
    url_bytes::UInt64
    store::Ptr{muster_store}
    address::Ptr{Cvoid}
    address_bytes::UInt64
    order_key::Ptr{Cvoid}
    order_key_bytes::UInt64
    min::UInt32
    max::UInt32
    rank::UInt32
    keep_alive_attempts::UInt32
    keep_alive_ns::Int64
    last_call_ns::Int64
    queue::Ptr{muster_queue}
    tag::UInt64
    reserved::NTuple{4, UInt64}
end
muster_rendezvous_config(; flags = 0, run_id = C_NULL, run_id_bytes = 0, url = C_NULL, url_bytes = 0, store = C_NULL, address = C_NULL, address_bytes = 0, order_key = C_NULL, order_key_bytes = 0, min = 0, max = 0, rank = 0, keep_alive_attempts = 0, keep_alive_ns = 0, last_call_ns = 0, queue = C_NULL, tag = 0, reserved = ntuple(_ -> zero(UInt64), 4)) =
    muster_rendezvous_config(sizeof(muster_rendezvous_config), flags, run_id, run_id_bytes, url, url_bytes, store, address, address_bytes, order_key, order_key_bytes, min, max, rank, keep_alive_attempts, keep_alive_ns, last_call_ns, queue, tag, reserved)

# What to run; all zero means the defaults named here.
struct muster_agent_config # 168 bytes
    struct_size::UInt32
    flags::UInt32
    argv::Ptr{Ptr{UInt8}}
    envp::Ptr{Ptr{UInt8}}
    directory::Ptr{UInt8}
    worker_count::UInt32
    max_restarts::UInt32
    grace_ns::Int64
    run_id::Ptr{UInt8}
    role::Ptr{UInt8}
    log_dir::Ptr{UInt8}
    filed::UInt32
    shown::UInt32
    out_fd_plus_one::Int32
    err_fd_plus_one::Int32
    local_address::Ptr{UInt8}
    rendezvous::Ptr{muster_rendezvous_config}
    master_address::Ptr{UInt8}
    master_port::UInt32
    reserved0::UInt32
    join_timeout_ns::Int64
    exit_timeout_ns::Int64
    outputs::Ptr{muster_agent_outputs}
    output_count::UInt64
    reserved::NTuple{2, UInt64}
end
muster_agent_config(; flags = 0, argv = C_NULL, envp = C_NULL, directory = C_NULL, worker_count = 0, max_restarts = 0, grace_ns = 0, run_id = C_NULL, role = C_NULL, log_dir = C_NULL, filed = 0, shown = 0, out_fd_plus_one = 0, err_fd_plus_one = 0, local_address = C_NULL, rendezvous = C_NULL, master_address = C_NULL, master_port = 0, reserved0 = 0, join_timeout_ns = 0, exit_timeout_ns = 0, outputs = C_NULL, output_count = 0, reserved = ntuple(_ -> zero(UInt64), 2)) =
    muster_agent_config(sizeof(muster_agent_config), flags, argv, envp, directory, worker_count, max_restarts, grace_ns, run_id, role, log_dir, filed, shown, out_fd_plus_one, err_fd_plus_one, local_address, rendezvous, master_address, master_port, reserved0, join_timeout_ns, exit_timeout_ns, outputs, output_count, reserved)

# What an agent does; filled by muster_agent_get_state().
struct muster_agent_state # 328 bytes
    phase::UInt32
    worker_count::UInt32
    running::UInt32
    restarts::UInt32
    group_rank::UInt32
    group_world_size::UInt32
    first_rank::UInt32
    world_size::UInt32
    round::UInt64
    master_address::NTuple{256, UInt8}
    master_port::UInt32
    reserved::NTuple{7, UInt32}
end

# How a process ended.
struct muster_process_exit # 8 bytes
    kind::Int32
    value::Int32
end

# One worker; filled by muster_agent_get_worker() and muster_agent_first_failure().
struct muster_agent_worker # 832 bytes
    local_rank::UInt32
    rank::UInt32
    state::UInt32
    restarts::UInt32
    pid::Int32
    exit::muster_process_exit
    reserved0::UInt32
    started_unix_ns::Int64
    ended_unix_ns::Int64
    failed_unix_ns::Int64
    round::UInt64
    message::NTuple{512, UInt8}
    directory::NTuple{256, UInt8}
end

# Why a call failed; caller-owned, 256 bytes, no pointers.
struct muster_error # 256 bytes
    status::muster_status
    os_errno::Int32
    provider_code::Int64
    rank::UInt32
    message_bytes::UInt32
    message::NTuple{232, UInt8}
end

# How to run a broker; all zero means the defaults named here.
struct muster_broker_config # 56 bytes
    struct_size::UInt32
    flags::UInt32
    parent::Ptr{UInt8}
    parent_bytes::UInt64
    window_bytes::UInt64
    max_members::UInt32
    reserved::UInt32
    curve_file::Ptr{UInt8}
    curve_file_bytes::UInt64
end
muster_broker_config(; flags = 0, parent = C_NULL, parent_bytes = 0, window_bytes = 0, max_members = 0, reserved = 0, curve_file = C_NULL, curve_file_bytes = 0) =
    muster_broker_config(sizeof(muster_broker_config), flags, parent, parent_bytes, window_bytes, max_members, reserved, curve_file, curve_file_bytes)

# Figures of a broker.
struct muster_broker_stats # 128 bytes
    members::UInt64
    brokers::UInt64
    has_parent::UInt64
    names::UInt64
    pairs::UInt64
    messages::UInt64
    bytes::UInt64
    queued_bytes::UInt64
    connections::UInt64
    refused::UInt64
    lost::UInt64
    to_many::UInt64
    reserved::NTuple{4, UInt64}
end

# How to open a cluster; all zero means the defaults named here.
struct muster_cluster_config # 96 bytes
    struct_size::UInt32
    flags::UInt32
    topology::UInt32
    most_connections::UInt32
    listen::Ptr{UInt8}
    listen_bytes::UInt64
    join_timeout_ns::Int64
    leave_timeout_ns::Int64
    queue::Ptr{muster_queue}
    tag::UInt64
    broadcast_bytes::UInt64
    reserved1::NTuple{3, UInt64}
end
muster_cluster_config(; flags = 0, topology = 0, most_connections = 0, listen = C_NULL, listen_bytes = 0, join_timeout_ns = 0, leave_timeout_ns = 0, queue = C_NULL, tag = 0, broadcast_bytes = 0, reserved1 = ntuple(_ -> zero(UInt64), 3)) =
    muster_cluster_config(sizeof(muster_cluster_config), flags, topology, most_connections, listen, listen_bytes, join_timeout_ns, leave_timeout_ns, queue, tag, broadcast_bytes, reserved1)

# What to launch; what is zero means the default named here.
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

# What is known of a member.
struct muster_member_info # 1336 bytes
    member::UInt32
    state::UInt32
    pid::Int64
    data::UInt64
    host::NTuple{256, UInt8}
    address::NTuple{1024, UInt8}
    reserved::NTuple{4, UInt64}
end

# How to be a worker; all zero means the defaults named here.
struct muster_worker_config # 80 bytes
    struct_size::UInt32
    flags::UInt32
    exit_grace_ns::Int64
    report_fd_plus_one::Int32
    most_connections::UInt32
    queue::Ptr{muster_queue}
    tag::UInt64
    master::Ptr{UInt8}
    store::Ptr{UInt8}
    name::Ptr{UInt8}
    listen::Ptr{UInt8}
    broadcast_bytes::UInt64
end
muster_worker_config(; flags = 0, exit_grace_ns = 0, report_fd_plus_one = 0, most_connections = 0, queue = C_NULL, tag = 0, master = C_NULL, store = C_NULL, name = C_NULL, listen = C_NULL, broadcast_bytes = 0) =
    muster_worker_config(sizeof(muster_worker_config), flags, exit_grace_ns, report_fd_plus_one, most_connections, queue, tag, master, store, name, listen, broadcast_bytes)

# How to start a context; all zero means the defaults named here.
struct muster_context_config # 72 bytes
    struct_size::UInt32
    flags::UInt32
    secret::Ptr{Cvoid}
    secret_bytes::UInt64
    secret_fd_plus_one::Int32
    max_unauthenticated::UInt32
    handshake_timeout_ns::Int64
    heartbeat_ns::Int64
    silent_ns::Int64
    dead_ns::Int64
    window_bytes::UInt64
end
muster_context_config(; flags = 0, secret = C_NULL, secret_bytes = 0, secret_fd_plus_one = 0, max_unauthenticated = 0, handshake_timeout_ns = 0, heartbeat_ns = 0, silent_ns = 0, dead_ns = 0, window_bytes = 0) =
    muster_context_config(sizeof(muster_context_config), flags, secret, secret_bytes, secret_fd_plus_one, max_unauthenticated, handshake_timeout_ns, heartbeat_ns, silent_ns, dead_ns, window_bytes)

# Figures of a context since its start.
struct muster_context_stats # 128 bytes
    loop_wakeups::UInt64
    mailbox_posts::UInt64
    streams_open::UInt64
    streams_made::UInt64
    handshakes_ok::UInt64
    handshakes_failed::UInt64
    bytes_in::UInt64
    bytes_out::UInt64
    upgrades::UInt64
    reserved::NTuple{7, UInt64}
end

# What is asked.
struct muster_manager_request # 48 bytes
    struct_size::UInt32
    want::UInt32
    member::UInt32
    count::UInt32
    from::UInt32
    reserved::UInt32
    data::UInt64
    launch::Ptr{muster_launch}
    address::Ptr{UInt8}
end
muster_manager_request(; want = 0, member = 0, count = 0, from = 0, reserved = 0, data = 0, launch = C_NULL, address = C_NULL) =
    muster_manager_request(sizeof(muster_manager_request), want, member, count, from, reserved, data, launch, address)

# A manager as callbacks; run by muster_queue_dispatch() on the thread that calls it, no lock held.
struct muster_manager_ops # 64 bytes
    struct_size::UInt32
    flags::UInt32
    launch::Ptr{Cvoid}
    connect::Ptr{Cvoid}
    connect_worker::Ptr{Cvoid}
    manage::Ptr{Cvoid}
    kill::Ptr{Cvoid}
    cancel::Ptr{Cvoid}
    destroy::Ptr{Cvoid}
end
muster_manager_ops(; flags = 0, launch = C_NULL, connect = C_NULL, connect_worker = C_NULL, manage = C_NULL, kill = C_NULL, cancel = C_NULL, destroy = C_NULL) =
    muster_manager_ops(sizeof(muster_manager_ops), flags, launch, connect, connect_worker, manage, kill, cancel, destroy)

# Gives one descriptor of this process a number in the child.
struct muster_process_fd # 8 bytes
    parent_fd::Int32
    child_fd::Int32
end

# What to start.
struct muster_process_config # 48 bytes
    struct_size::UInt32
    flags::UInt32
    argv::Ptr{Ptr{UInt8}}
    envp::Ptr{Ptr{UInt8}}
    directory::Ptr{UInt8}
    fds::Ptr{muster_process_fd}
    fd_count::UInt64
end
muster_process_config(; flags = 0, argv = C_NULL, envp = C_NULL, directory = C_NULL, fds = C_NULL, fd_count = 0) =
    muster_process_config(sizeof(muster_process_config), flags, argv, envp, directory, fds, fd_count)

# One entry taken off a queue; 64 bytes.
struct muster_completion # 64 bytes
    kind::Int32
    status::muster_status
    tag::UInt64
    object::Ptr{Cvoid}
    bytes::UInt64
    request::UInt64
    events::UInt32
    reserved::NTuple{5, UInt32}
end

# How to make a queue; all zero means the defaults named here.
struct muster_queue_config # 16 bytes
    struct_size::UInt32
    flags::UInt32
    capacity::UInt32
    reserved::UInt32
end
muster_queue_config(; flags = 0, capacity = 0, reserved = 0) =
    muster_queue_config(sizeof(muster_queue_config), flags, capacity, reserved)

# Figures of a queue since its start.
struct muster_queue_stats # 64 bytes
    depth::UInt64
    outstanding::UInt64
    taken::UInt64
    wakeups::UInt64
    log_dropped::UInt64
    reserved::NTuple{3, UInt64}
end

# One event; 256 bytes.
struct muster_rendezvous_event # 256 bytes
    kind::UInt32
    rank::UInt32
    round::UInt64
    count::UInt32
    text_bytes::UInt32
    text::NTuple{232, UInt8}
end

# What a member knows; 88 bytes.
struct muster_rendezvous_state # 88 bytes
    phase::UInt32
    flags::UInt32
    round::UInt64
    joined::UInt32
    missing::UInt32
    waiting::UInt32
    spares::UInt32
    present::UInt32
    exiting::UInt32
    last_call_left_ns::Int64
    reserved::NTuple{5, UInt64}
end

# What a round is; 64 bytes.
struct muster_round_info # 64 bytes
    number::UInt64
    rank::UInt32
    world::UInt32
    flags::UInt32
    reserved::NTuple{3, UInt32}
    digest::NTuple{32, UInt8}
end

# One member of a round; what it points to is good until the round is released.
struct muster_round_member_info # 24 bytes
    address::Ptr{Cvoid}
    address_bytes::UInt64
    reserved::UInt64
end

# What is asked.
struct muster_rendezvous_request # 48 bytes
    struct_size::UInt32
    kind::UInt32
    member::UInt64
    config::Ptr{muster_rendezvous_config}
    reason::Ptr{Cvoid}
    reason_bytes::UInt64
    timeout_ns::Int64
end
muster_rendezvous_request(; kind = 0, member = 0, config = C_NULL, reason = C_NULL, reason_bytes = 0, timeout_ns = 0) =
    muster_rendezvous_request(sizeof(muster_rendezvous_request), kind, member, config, reason, reason_bytes, timeout_ns)

# A place in a round: the answer to a JOIN.
struct muster_rendezvous_place # 80 bytes
    struct_size::UInt32
    rank::UInt32
    world::UInt32
    reserved::UInt32
    number::UInt64
    store::Ptr{muster_store}
    members::Ptr{muster_round_member_info}
    member_count::UInt64
    digest::NTuple{32, UInt8}
end
muster_rendezvous_place(; rank = 0, world = 0, reserved = 0, number = 0, store = C_NULL, members = C_NULL, member_count = 0, digest = ntuple(_ -> zero(UInt8), 32)) =
    muster_rendezvous_place(sizeof(muster_rendezvous_place), rank, world, reserved, number, store, members, member_count, digest)

# What serves a rendezvous, as callbacks; run by muster_queue_dispatch() on the thread that calls it, no lock held.
struct muster_rendezvous_ops # 40 bytes
    struct_size::UInt32
    flags::UInt32
    request::Ptr{Cvoid}
    cancel::Ptr{Cvoid}
    close::Ptr{Cvoid}
    destroy::Ptr{Cvoid}
end
muster_rendezvous_ops(; flags = 0, request = C_NULL, cancel = C_NULL, close = C_NULL, destroy = C_NULL) =
    muster_rendezvous_ops(sizeof(muster_rendezvous_ops), flags, request, cancel, close, destroy)

# What a host-served transport does, as callbacks; run by muster_queue_dispatch() on the thread that calls it, no lock held.
struct muster_transport_ops # 48 bytes
    struct_size::UInt32
    flags::UInt32
    open::Ptr{Cvoid}
    listen::Ptr{Cvoid}
    close::Ptr{Cvoid}
    cancel::Ptr{Cvoid}
    destroy::Ptr{Cvoid}
end
muster_transport_ops(; flags = 0, open = C_NULL, listen = C_NULL, close = C_NULL, cancel = C_NULL, destroy = C_NULL) =
    muster_transport_ops(sizeof(muster_transport_ops), flags, open, listen, close, cancel, destroy)

# One operation; 80 bytes.
struct muster_store_op # 80 bytes
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
end

# What one operation has found; 56 bytes.
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
struct muster_store_config # 32 bytes
    struct_size::UInt32
    flags::UInt32
    most_bytes::UInt64
    lost_after_ns::Int64
    reserved::UInt64
end
muster_store_config(; flags = 0, most_bytes = 0, lost_after_ns = 0, reserved = 0) =
    muster_store_config(sizeof(muster_store_config), flags, most_bytes, lost_after_ns, reserved)

# What is asked.
struct muster_store_request # 72 bytes
    struct_size::UInt32
    kind::UInt32
    store::UInt64
    flags::UInt32
    reserved::UInt32
    ops::Ptr{muster_store_op}
    op_count::UInt64
    url::Ptr{UInt8}
    url_bytes::UInt64
    lease::UInt64
    ttl_ns::Int64
end
muster_store_request(; kind = 0, store = 0, flags = 0, reserved = 0, ops = C_NULL, op_count = 0, url = C_NULL, url_bytes = 0, lease = 0, ttl_ns = 0) =
    muster_store_request(sizeof(muster_store_request), kind, store, flags, reserved, ops, op_count, url, url_bytes, lease, ttl_ns)

# What a served store is; all zero means the defaults named here.
struct muster_store_traits # 32 bytes
    struct_size::UInt32
    flags::UInt32
    capabilities::UInt32
    most_ops::UInt32
    most_request_bytes::UInt64
    least_lease_ns::Int64
end
muster_store_traits(; flags = 0, capabilities = 0, most_ops = 0, most_request_bytes = 0, least_lease_ns = 0) =
    muster_store_traits(sizeof(muster_store_traits), flags, capabilities, most_ops, most_request_bytes, least_lease_ns)

# What serves a store, as callbacks; run by muster_queue_dispatch() on the thread that calls it, no lock held.
struct muster_store_host_ops # 40 bytes
    struct_size::UInt32
    flags::UInt32
    request::Ptr{Cvoid}
    cancel::Ptr{Cvoid}
    close::Ptr{Cvoid}
    destroy::Ptr{Cvoid}
end
muster_store_host_ops(; flags = 0, request = C_NULL, cancel = C_NULL, close = C_NULL, destroy = C_NULL) =
    muster_store_host_ops(sizeof(muster_store_host_ops), flags, request, cancel, close, destroy)

# How to serve a store; all zero means the defaults named here.
struct muster_store_server_config # 72 bytes
    struct_size::UInt32
    flags::UInt32
    data_dir::Ptr{UInt8}
    data_dir_bytes::UInt64
    most_bytes::UInt64
    session_ns::Int64
    max_clients::UInt32
    reserved_field::UInt32
    standby_of::Ptr{UInt8}
    standby_of_bytes::UInt64
    pair_lease_ns::Int64
end
muster_store_server_config(; flags = 0, data_dir = C_NULL, data_dir_bytes = 0, most_bytes = 0, session_ns = 0, max_clients = 0, reserved_field = 0, standby_of = C_NULL, standby_of_bytes = 0, pair_lease_ns = 0) =
    muster_store_server_config(sizeof(muster_store_server_config), flags, data_dir, data_dir_bytes, most_bytes, session_ns, max_clients, reserved_field, standby_of, standby_of_bytes, pair_lease_ns)

# Figures of a server.
struct muster_store_server_stats # 112 bytes
    clients::UInt64
    sessions::UInt64
    requests::UInt64
    waiting::UInt64
    refused::UInt64
    keys::UInt64
    bytes::UInt64
    leases::UInt64
    revision::UInt64
    failed::UInt64
    role::UInt64
    epoch::UInt64
    lag::UInt64
    reserved::NTuple{1, UInt64}
end

# How to make a pair; all zero means the defaults named here.
struct muster_stream_config # 16 bytes
    struct_size::UInt32
    flags::UInt32
    window_bytes::UInt64
end
muster_stream_config(; flags = 0, window_bytes = 0) =
    muster_stream_config(sizeof(muster_stream_config), flags, window_bytes)

# Figures of a stream since its start.
struct muster_stream_stats # 128 bytes
    bytes_in::UInt64
    bytes_out::UInt64
    buffered_in::UInt64
    buffered_out::UInt64
    reads::UInt64
    writes::UInt64
    waits::UInt64
    wakeups::UInt64
    spins_won::UInt64
    spins_lost::UInt64
    caller_io::UInt64
    loop_io::UInt64
    last_heard_ns::UInt64
    fan::UInt64
    reserved::NTuple{2, UInt64}
end

# How to dial or listen; all zero means the defaults named here.
struct muster_transport_config # 48 bytes
    struct_size::UInt32
    flags::UInt32
    greeting::Ptr{Cvoid}
    greeting_bytes::UInt64
    window_bytes::UInt64
    backlog::UInt32
    reserved::UInt32
    retry_ns::Int64
end
muster_transport_config(; flags = 0, greeting = C_NULL, greeting_bytes = 0, window_bytes = 0, backlog = 0, reserved = 0, retry_ns = 0) =
    muster_transport_config(sizeof(muster_transport_config), flags, greeting, greeting_bytes, window_bytes, backlog, reserved, retry_ns)

const functions = Pair{Symbol, Base.RefValue{Ptr{Cvoid}}}[]

# Starts an agent.
const at_muster_agent_start = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_agent_start => at_muster_agent_start)
@inline muster_agent_start(context, config, queue, tag, out_agent, error) =
    ccall(at_muster_agent_start[], muster_status, (Ptr{muster_context}, Ptr{muster_agent_config}, Ptr{muster_queue}, UInt64, Ptr{Ptr{muster_agent}}, Ptr{muster_error}), context, config, queue, tag, out_agent, error)

# Waits for the end of an agent.
const at_muster_agent_wait = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_agent_wait => at_muster_agent_wait)
@inline muster_agent_wait(agent, timeout_ns, error) =
    ccall(at_muster_agent_wait[], muster_status, (Ptr{muster_agent}, Int64, Ptr{muster_error}), agent, timeout_ns, error)

# Sends a signal to the process groups of all workers of this node that run.
const at_muster_agent_signal = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_agent_signal => at_muster_agent_signal)
@inline muster_agent_signal(agent, signal) =
    ccall(at_muster_agent_signal[], muster_status, (Ptr{muster_agent}, Int32), agent, signal)

# Stops the workers of this node and ends the agent.
const at_muster_agent_stop = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_agent_stop => at_muster_agent_stop)
@inline muster_agent_stop(agent, signal, grace_ns) =
    ccall(at_muster_agent_stop[], muster_status, (Ptr{muster_agent}, Int32, Int64), agent, signal, grace_ns)

# Tells what an agent does.
const at_muster_agent_get_state = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_agent_get_state => at_muster_agent_get_state)
@inline muster_agent_get_state(agent, out_state) =
    ccall(at_muster_agent_get_state[], muster_status, (Ptr{muster_agent}, Ptr{muster_agent_state}), agent, out_state)

# Gives the rendezvous of an agent, to ask it for its state and who has joined.
const at_muster_agent_rendezvous = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_agent_rendezvous => at_muster_agent_rendezvous)
@inline muster_agent_rendezvous(agent, out_rendezvous) =
    ccall(at_muster_agent_rendezvous[], muster_status, (Ptr{muster_agent}, Ptr{Ptr{muster_rendezvous}}), agent, out_rendezvous)

# Tells about one worker of this node, as it was started last.
const at_muster_agent_get_worker = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_agent_get_worker => at_muster_agent_get_worker)
@inline muster_agent_get_worker(agent, local_rank, out_worker) =
    ccall(at_muster_agent_get_worker[], muster_status, (Ptr{muster_agent}, UInt32, Ptr{muster_agent_worker}), agent, local_rank, out_worker)

# Tells which worker of this node failed first, the last time that one did.
const at_muster_agent_first_failure = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_agent_first_failure => at_muster_agent_first_failure)
@inline muster_agent_first_failure(agent, out_worker) =
    ccall(at_muster_agent_first_failure[], muster_status, (Ptr{muster_agent}, Ptr{muster_agent_worker}), agent, out_worker)

# Copies what the error file of muster_agent_first_failure() told: where in its program the worker failed (`py_callstack`), if it says that, else its message.
const at_muster_agent_failure_text = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_agent_failure_text => at_muster_agent_failure_text)
@inline muster_agent_failure_text(agent, out_text, capacity, out_bytes) =
    ccall(at_muster_agent_failure_text[], muster_status, (Ptr{muster_agent}, Ptr{UInt8}, Csize_t, Ptr{Csize_t}), agent, out_text, capacity, out_bytes)

# Waits until the lines that are shown were written: all that workers wrote which had ended before the call.
const at_muster_agent_flush = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_agent_flush => at_muster_agent_flush)
@inline muster_agent_flush(agent, timeout_ns) =
    ccall(at_muster_agent_flush[], muster_status, (Ptr{muster_agent}, Int64), agent, timeout_ns)

# Gives up one reference; with the last one the workers are stopped, as by muster_agent_stop(), without a wait for it.
const at_muster_agent_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_agent_release => at_muster_agent_release)
@inline muster_agent_release(agent) =
    ccall(at_muster_agent_release[], Cvoid, (Ptr{muster_agent},), agent)

# Names a status, for logs: "MUSTER_E_PEER".
const at_muster_status_name = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_status_name => at_muster_status_name)
@inline muster_status_name(status) =
    ccall(at_muster_status_name[], Ptr{UInt8}, (muster_status,), status)

# Describes a status in a few words: "the peer died or the way to it broke".
const at_muster_status_text = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_status_text => at_muster_status_text)
@inline muster_status_text(status) =
    ccall(at_muster_status_text[], Ptr{UInt8}, (muster_status,), status)

# Tells the version of the loaded library.
const at_muster_version = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_version => at_muster_version)
@inline muster_version(out_major, out_minor, out_patch) =
    ccall(at_muster_version[], Ptr{UInt8}, (Ptr{UInt32}, Ptr{UInt32}, Ptr{UInt32}), out_major, out_minor, out_patch)

# Prepares a growing struct: zeroes it and writes its size into the first field.
const at_muster_config_init = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_config_init => at_muster_config_init)
@inline muster_config_init(config, struct_size) =
    ccall(at_muster_config_init[], muster_status, (Ptr{Cvoid}, UInt32), config, struct_size)

# Starts a broker on threads of its own; they end with it, and at the latest with the context.
const at_muster_broker_open = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_broker_open => at_muster_broker_open)
@inline muster_broker_open(context, address, address_bytes, config, out_broker, error) =
    ccall(at_muster_broker_open[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t, Ptr{muster_broker_config}, Ptr{Ptr{muster_broker}}, Ptr{muster_error}), context, address, address_bytes, config, out_broker, error)

# Gives the address members use: the real port, `zmq://127.0.0.1:8100/`.
const at_muster_broker_address = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_broker_address => at_muster_broker_address)
@inline muster_broker_address(broker, out_text, capacity, out_bytes) =
    ccall(at_muster_broker_address[], muster_status, (Ptr{muster_broker}, Ptr{UInt8}, Csize_t, Ptr{Csize_t}), broker, out_text, capacity, out_bytes)

# Reads the figures of a broker; of a closed one those of its end.
const at_muster_broker_get_stats = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_broker_get_stats => at_muster_broker_get_stats)
@inline muster_broker_get_stats(broker, out_stats) =
    ccall(at_muster_broker_get_stats[], muster_status, (Ptr{muster_broker}, Ptr{muster_broker_stats}), broker, out_stats)

# Stops a broker.
const at_muster_broker_close = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_broker_close => at_muster_broker_close)
@inline muster_broker_close(broker, timeout_ns) =
    ccall(at_muster_broker_close[], muster_status, (Ptr{muster_broker}, Int64), broker, timeout_ns)

# Gives up one reference; with the last one the broker is stopped, at once and not by this thread.
const at_muster_broker_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_broker_release => at_muster_broker_release)
@inline muster_broker_release(broker) =
    ccall(at_muster_broker_release[], Cvoid, (Ptr{muster_broker},), broker)

# Opens a cluster; the caller is its master.
const at_muster_cluster_open = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_open => at_muster_cluster_open)
@inline muster_cluster_open(context, config, out_cluster, error) =
    ccall(at_muster_cluster_open[], muster_status, (Ptr{muster_context}, Ptr{muster_cluster_config}, Ptr{Ptr{muster_cluster}}, Ptr{muster_error}), context, config, out_cluster, error)

# Adds workers; each has events of its own: ::MUSTER_CLUSTER_LAUNCHED, CONNECTED, JOINED, or FAILED in place of these.
const at_muster_cluster_add = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_add => at_muster_cluster_add)
@inline muster_cluster_add(cluster, launch, out_first, error) =
    ccall(at_muster_cluster_add[], muster_status, (Ptr{muster_cluster}, Ptr{muster_launch}, Ptr{UInt32}, Ptr{muster_error}), cluster, launch, out_first, error)

# Removes a worker: it is told to leave (::MUSTER_CLUSTER_LEAVE there), and killed if it has not when the grace is over.
const at_muster_cluster_remove = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_remove => at_muster_cluster_remove)
@inline muster_cluster_remove(cluster, member, grace_ns) =
    ccall(at_muster_cluster_remove[], muster_status, (Ptr{muster_cluster}, UInt32, Int64), cluster, member, grace_ns)

# Interrupts what a worker is doing: ::MUSTER_CLUSTER_INTERRUPT there, and with ::MUSTER_WORKER_RAISE_INTERRUPT the signal SIGINT, sent by its library thread to its own process.
const at_muster_cluster_interrupt = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_interrupt => at_muster_cluster_interrupt)
@inline muster_cluster_interrupt(cluster, member) =
    ccall(at_muster_cluster_interrupt[], muster_status, (Ptr{muster_cluster}, UInt32), cluster, member)

# Takes the oldest event.
const at_muster_cluster_next_event = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_next_event => at_muster_cluster_next_event)
@inline muster_cluster_next_event(cluster, timeout_ns, out_event) =
    ccall(at_muster_cluster_next_event[], muster_status, (Ptr{muster_cluster}, Int64, Ptr{muster_cluster_event}), cluster, timeout_ns, out_event)

# Ends the waits inside muster_cluster_next_event(), muster_cluster_dial(), muster_cluster_broadcast() and muster_cluster_close() now.
const at_muster_cluster_cancel = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_cancel => at_muster_cluster_cancel)
@inline muster_cluster_cancel(cluster) =
    ccall(at_muster_cluster_cancel[], muster_status, (Ptr{muster_cluster},), cluster)

# Opens a stream to another member; it is told ::MUSTER_CLUSTER_STREAM.
const at_muster_cluster_dial = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_dial => at_muster_cluster_dial)
@inline muster_cluster_dial(cluster, member, label, label_bytes, timeout_ns, out_stream, error) =
    ccall(at_muster_cluster_dial[], muster_status, (Ptr{muster_cluster}, UInt32, Ptr{Cvoid}, Csize_t, Int64, Ptr{Ptr{muster_stream}}, Ptr{muster_error}), cluster, member, label, label_bytes, timeout_ns, out_stream, error)

# Begins to open a stream to another member; ::MUSTER_DONE_DIAL comes with it, or with a status that muster_cluster_dial() gives.
const at_muster_cluster_dial_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_dial_begin => at_muster_cluster_dial_begin)
@inline muster_cluster_dial_begin(cluster, member, label, label_bytes, timeout_ns, queue, tag, error) =
    ccall(at_muster_cluster_dial_begin[], muster_status, (Ptr{muster_cluster}, UInt32, Ptr{Cvoid}, Csize_t, Int64, Ptr{muster_queue}, UInt64, Ptr{muster_error}), cluster, member, label, label_bytes, timeout_ns, queue, tag, error)

# Gives the same bytes to many members; each is told ::MUSTER_CLUSTER_BROADCAST.
const at_muster_cluster_broadcast = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_broadcast => at_muster_cluster_broadcast)
@inline muster_cluster_broadcast(cluster, members, count, label, label_bytes, data, size_bytes, timeout_ns, out_statuses, error) =
    ccall(at_muster_cluster_broadcast[], muster_status, (Ptr{muster_cluster}, Ptr{UInt32}, Csize_t, Ptr{Cvoid}, Csize_t, Ptr{Cvoid}, UInt64, Int64, Ptr{muster_status}, Ptr{muster_error}), cluster, members, count, label, label_bytes, data, size_bytes, timeout_ns, out_statuses, error)

# Begins to give the same bytes to many members, as muster_cluster_broadcast(); ::MUSTER_DONE_BROADCAST comes with its status.
const at_muster_cluster_broadcast_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_broadcast_begin => at_muster_cluster_broadcast_begin)
@inline muster_cluster_broadcast_begin(cluster, members, count, label, label_bytes, data, size_bytes, timeout_ns, out_statuses, queue, tag, error) =
    ccall(at_muster_cluster_broadcast_begin[], muster_status, (Ptr{muster_cluster}, Ptr{UInt32}, Csize_t, Ptr{Cvoid}, Csize_t, Ptr{Cvoid}, UInt64, Int64, Ptr{muster_status}, Ptr{muster_queue}, UInt64, Ptr{muster_error}), cluster, members, count, label, label_bytes, data, size_bytes, timeout_ns, out_statuses, queue, tag, error)

# Gives up the bytes of a broadcast: they must not be looked at any more.
const at_muster_broadcast_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_broadcast_release => at_muster_broadcast_release)
@inline muster_broadcast_release(broadcast) =
    ccall(at_muster_broadcast_release[], Cvoid, (Ptr{muster_broadcast},), broadcast)

# Tells what is known of a member.
const at_muster_cluster_get_member = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_get_member => at_muster_cluster_get_member)
@inline muster_cluster_get_member(cluster, member, out_info) =
    ccall(at_muster_cluster_get_member[], muster_status, (Ptr{muster_cluster}, UInt32, Ptr{muster_member_info}), cluster, member, out_info)

# Lists the workers that are not gone.
const at_muster_cluster_list = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_list => at_muster_cluster_list)
@inline muster_cluster_list(cluster, out_members, capacity, out_count) =
    ccall(at_muster_cluster_list[], muster_status, (Ptr{muster_cluster}, Ptr{UInt32}, Csize_t, Ptr{Csize_t}), cluster, out_members, capacity, out_count)

# Tells the number of this member.
const at_muster_cluster_self = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_self => at_muster_cluster_self)
@inline muster_cluster_self(cluster) =
    ccall(at_muster_cluster_self[], UInt32, (Ptr{muster_cluster},), cluster)

# Leaves the cluster.
const at_muster_cluster_close = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_close => at_muster_cluster_close)
@inline muster_cluster_close(cluster, timeout_ns) =
    ccall(at_muster_cluster_close[], muster_status, (Ptr{muster_cluster}, Int64), cluster, timeout_ns)

# Gives up one reference; with the last one the cluster is closed, as by muster_cluster_close(), without a wait for it.
const at_muster_cluster_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_cluster_release => at_muster_cluster_release)
@inline muster_cluster_release(cluster) =
    ccall(at_muster_cluster_release[], Cvoid, (Ptr{muster_cluster},), cluster)

# Makes the context of a worker: reads the ticket that its launcher has passed, whose secret is the context's.
const at_muster_worker_context = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_worker_context => at_muster_worker_context)
@inline muster_worker_context(config, ticket_fd_plus_one, out_context, error) =
    ccall(at_muster_worker_context[], muster_status, (Ptr{muster_context_config}, Int32, Ptr{Ptr{muster_context}}, Ptr{muster_error}), config, ticket_fd_plus_one, out_context, error)

# Comes in as a worker: listens, meets the master, and returns when this member knows its number.
const at_muster_worker_start = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_worker_start => at_muster_worker_start)
@inline muster_worker_start(context, config, timeout_ns, out_cluster, error) =
    ccall(at_muster_worker_start[], muster_status, (Ptr{muster_context}, Ptr{muster_worker_config}, Int64, Ptr{Ptr{muster_cluster}}, Ptr{muster_error}), context, config, timeout_ns, out_cluster, error)

# Begins to come in as a worker, for a program that must not wait: one whose only thread serves the transport by which it comes in.
const at_muster_worker_start_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_worker_start_begin => at_muster_worker_start_begin)
@inline muster_worker_start_begin(context, config, timeout_ns, out_cluster, error) =
    ccall(at_muster_worker_start_begin[], muster_status, (Ptr{muster_context}, Ptr{muster_worker_config}, Int64, Ptr{Ptr{muster_cluster}}, Ptr{muster_error}), context, config, timeout_ns, out_cluster, error)

# Starts a context: one progress engine and everything made from it.
const at_muster_context_create = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_context_create => at_muster_context_create)
@inline muster_context_create(config, out_context, error) =
    ccall(at_muster_context_create[], muster_status, (Ptr{muster_context_config}, Ptr{Ptr{muster_context}}, Ptr{muster_error}), config, out_context, error)

# Ends a context in order: no new work, streams are closed, listeners stop, the thread ends.
const at_muster_context_close = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_context_close => at_muster_context_close)
@inline muster_context_close(context, timeout_ns) =
    ccall(at_muster_context_close[], muster_status, (Ptr{muster_context}, Int64), context, timeout_ns)

# Gives up one reference; the context ends with the last object made from it.
const at_muster_context_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_context_release => at_muster_context_release)
@inline muster_context_release(context) =
    ccall(at_muster_context_release[], Cvoid, (Ptr{muster_context},), context)

# Gives the descriptor to poll in external mode.
const at_muster_context_fd = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_context_fd => at_muster_context_fd)
@inline muster_context_fd(context, out_fd) =
    ccall(at_muster_context_fd[], muster_status, (Ptr{muster_context}, Ptr{Int32}), context, out_fd)

# Drives an external context: serves what is due, then waits for more up to the time given.
const at_muster_context_progress = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_context_progress => at_muster_context_progress)
@inline muster_context_progress(context, timeout_ns) =
    ccall(at_muster_context_progress[], muster_status, (Ptr{muster_context}, Int64), context, timeout_ns)

# Copies the secret of the context, to be handed to a worker over a descriptor (never on a command line).
const at_muster_context_secret = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_context_secret => at_muster_context_secret)
@inline muster_context_secret(context, out_secret, capacity, out_bytes) =
    ccall(at_muster_context_secret[], muster_status, (Ptr{muster_context}, Ptr{Cvoid}, Csize_t, Ptr{Csize_t}), context, out_secret, capacity, out_bytes)

# Sends log records to a queue as ::MUSTER_EVENT_LOG; their text comes in the error argument of muster_queue_next().
const at_muster_context_log = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_context_log => at_muster_context_log)
@inline muster_context_log(context, level, queue, tag) =
    ccall(at_muster_context_log[], muster_status, (Ptr{muster_context}, Int32, Ptr{muster_queue}, UInt64), context, level, queue, tag)

# Reads the figures of a context.
const at_muster_context_get_stats = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_context_get_stats => at_muster_context_get_stats)
@inline muster_context_get_stats(context, out_stats) =
    ccall(at_muster_context_get_stats[], muster_status, (Ptr{muster_context}, Ptr{muster_context_stats}), context, out_stats)

# Adds a manager of the host's, in this context only.
const at_muster_manager_serve = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_manager_serve => at_muster_manager_serve)
@inline muster_manager_serve(context, name, name_bytes, wants, requests, error) =
    ccall(at_muster_manager_serve[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t, UInt32, Ptr{muster_queue}, Ptr{muster_error}), context, name, name_bytes, wants, requests, error)

# Adds a manager of the host's whose requests run callbacks, inside muster_queue_dispatch().
const at_muster_manager_serve_ops = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_manager_serve_ops => at_muster_manager_serve_ops)
@inline muster_manager_serve_ops(context, name, name_bytes, ops, self, requests, error) =
    ccall(at_muster_manager_serve_ops[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t, Ptr{muster_manager_ops}, Ptr{Cvoid}, Ptr{muster_queue}, Ptr{muster_error}), context, name, name_bytes, ops, self, requests, error)

# Takes a manager back: launching by its name fails from now on, and unanswered requests are cancelled, as if each had failed with ::MUSTER_E_CLOSED.
const at_muster_manager_withdraw = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_manager_withdraw => at_muster_manager_withdraw)
@inline muster_manager_withdraw(context, name, name_bytes) =
    ccall(at_muster_manager_withdraw[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t), context, name, name_bytes)

# Tells what an unanswered request wants.
const at_muster_manager_request_read = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_manager_request_read => at_muster_manager_request_read)
@inline muster_manager_request_read(requests, request, out_what) =
    ccall(at_muster_manager_request_read[], muster_status, (Ptr{muster_queue}, UInt64, Ptr{muster_manager_request}), requests, request, out_what)

# Copies the ticket of a worker that is to be launched: one line of ASCII, its newline included.
const at_muster_manager_ticket = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_manager_ticket => at_muster_manager_ticket)
@inline muster_manager_ticket(requests, request, member, out_text, capacity, out_bytes) =
    ccall(at_muster_manager_ticket[], muster_status, (Ptr{muster_queue}, UInt64, UInt32, Ptr{UInt8}, Csize_t, Ptr{Csize_t}), requests, request, member, out_text, capacity, out_bytes)

# Reports one worker of a LAUNCH as started.
const at_muster_manager_worker_ready = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_manager_worker_ready => at_muster_manager_worker_ready)
@inline muster_manager_worker_ready(requests, request, member, address, address_bytes, data, error) =
    ccall(at_muster_manager_worker_ready[], muster_status, (Ptr{muster_queue}, UInt64, UInt32, Ptr{UInt8}, Csize_t, UInt64, Ptr{muster_error}), requests, request, member, address, address_bytes, data, error)

# Reports one worker of a LAUNCH as not started.
const at_muster_manager_worker_failed = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_manager_worker_failed => at_muster_manager_worker_failed)
@inline muster_manager_worker_failed(requests, request, member, status, text, text_bytes, error) =
    ccall(at_muster_manager_worker_failed[], muster_status, (Ptr{muster_queue}, UInt64, UInt32, muster_status, Ptr{UInt8}, Csize_t, Ptr{muster_error}), requests, request, member, status, text, text_bytes, error)

# Tells that a worker has ended, as whoever started it has seen.
const at_muster_manager_worker_ended = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_manager_worker_ended => at_muster_manager_worker_ended)
@inline muster_manager_worker_ended(requests, cluster, member, text, text_bytes, error) =
    ccall(at_muster_manager_worker_ended[], muster_status, (Ptr{muster_queue}, Ptr{muster_cluster}, UInt32, Ptr{UInt8}, Csize_t, Ptr{muster_error}), requests, cluster, member, text, text_bytes, error)

# Answers any request but LAUNCH: it is done.
const at_muster_manager_request_done = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_manager_request_done => at_muster_manager_request_done)
@inline muster_manager_request_done(requests, request, address, address_bytes, error) =
    ccall(at_muster_manager_request_done[], muster_status, (Ptr{muster_queue}, UInt64, Ptr{UInt8}, Csize_t, Ptr{muster_error}), requests, request, address, address_bytes, error)

# Answers any request: it cannot be done.
const at_muster_manager_request_fail = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_manager_request_fail => at_muster_manager_request_fail)
@inline muster_manager_request_fail(requests, request, status, text, text_bytes) =
    ccall(at_muster_manager_request_fail[], muster_status, (Ptr{muster_queue}, UInt64, muster_status, Ptr{UInt8}, Csize_t), requests, request, status, text, text_bytes)

# Starts a program.
const at_muster_process_spawn = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_process_spawn => at_muster_process_spawn)
@inline muster_process_spawn(context, config, out_process, error) =
    ccall(at_muster_process_spawn[], muster_status, (Ptr{muster_context}, Ptr{muster_process_config}, Ptr{Ptr{muster_process}}, Ptr{muster_error}), context, config, out_process, error)

# Tells the process id.
const at_muster_process_pid = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_process_pid => at_muster_process_pid)
@inline muster_process_pid(process) =
    ccall(at_muster_process_pid[], Int32, (Ptr{muster_process},), process)

# Waits for the end of a process; in an external context the call drives the engine while it waits.
const at_muster_process_wait = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_process_wait => at_muster_process_wait)
@inline muster_process_wait(process, timeout_ns, out_exit) =
    ccall(at_muster_process_wait[], muster_status, (Ptr{muster_process}, Int64, Ptr{muster_process_exit}), process, timeout_ns, out_exit)

# Asks for ::MUSTER_DONE_EXIT when the process ends; one watch per process.
const at_muster_process_watch = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_process_watch => at_muster_process_watch)
@inline muster_process_watch(process, queue, tag) =
    ccall(at_muster_process_watch[], muster_status, (Ptr{muster_process}, Ptr{muster_queue}, UInt64), process, queue, tag)

# Sends a signal to the process and its whole group.
const at_muster_process_kill = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_process_kill => at_muster_process_kill)
@inline muster_process_kill(process, signal) =
    ccall(at_muster_process_kill[], muster_status, (Ptr{muster_process}, Int32), process, signal)

# Gives up one reference; the child goes on, and is still reaped when it ends.
const at_muster_process_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_process_release => at_muster_process_release)
@inline muster_process_release(process) =
    ccall(at_muster_process_release[], Cvoid, (Ptr{muster_process},), process)

# Ends this process when another one is gone (the local master that started it, say): SIGTERM to itself from a library thread, then SIGKILL.
const at_muster_process_exit_with = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_process_exit_with => at_muster_process_exit_with)
@inline muster_process_exit_with(context, pid, grace_ns, error) =
    ccall(at_muster_process_exit_with[], muster_status, (Ptr{muster_context}, Int32, Int64, Ptr{muster_error}), context, pid, grace_ns, error)

# Makes a completion queue.
const at_muster_queue_create = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_queue_create => at_muster_queue_create)
@inline muster_queue_create(context, config, out_queue, error) =
    ccall(at_muster_queue_create[], muster_status, (Ptr{muster_context}, Ptr{muster_queue_config}, Ptr{Ptr{muster_queue}}, Ptr{muster_error}), context, config, out_queue, error)

# Takes the oldest entry off a queue.
const at_muster_queue_next = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_queue_next => at_muster_queue_next)
@inline muster_queue_next(queue, timeout_ns, out, error) =
    ccall(at_muster_queue_next[], muster_status, (Ptr{muster_queue}, Int64, Ptr{muster_completion}, Ptr{muster_error}), queue, timeout_ns, out, error)

# Takes entries off a queue and runs callbacks for them on this thread: requests go to the table their transport was registered with, everything else to the handler.
const at_muster_queue_dispatch = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_queue_dispatch => at_muster_queue_dispatch)
@inline muster_queue_dispatch(queue, timeout_ns, handler, user, out_count) =
    ccall(at_muster_queue_dispatch[], muster_status, (Ptr{muster_queue}, Int64, Ptr{Cvoid}, Ptr{Cvoid}, Ptr{UInt64}), queue, timeout_ns, handler, user, out_count)

# Ends the wait of every thread that is inside muster_queue_next() or muster_queue_dispatch() now.
const at_muster_queue_cancel = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_queue_cancel => at_muster_queue_cancel)
@inline muster_queue_cancel(queue) =
    ccall(at_muster_queue_cancel[], muster_status, (Ptr{muster_queue},), queue)

# Puts an entry of the caller's own onto a queue, for instance to wake a waiter with a message.
const at_muster_queue_post = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_queue_post => at_muster_queue_post)
@inline muster_queue_post(queue, tag, value) =
    ccall(at_muster_queue_post[], muster_status, (Ptr{muster_queue}, UInt64, UInt64), queue, tag, value)

# Gives a descriptor that polls readable while the queue may hold something.
const at_muster_queue_fd = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_queue_fd => at_muster_queue_fd)
@inline muster_queue_fd(queue, out_fd) =
    ccall(at_muster_queue_fd[], muster_status, (Ptr{muster_queue}, Ptr{Int32}), queue, out_fd)

# Asks for a wake-up when a queue turns from empty to non-empty.
const at_muster_queue_set_wake = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_queue_set_wake => at_muster_queue_set_wake)
@inline muster_queue_set_wake(queue, wake, user) =
    ccall(at_muster_queue_set_wake[], muster_status, (Ptr{muster_queue}, Ptr{Cvoid}, Ptr{Cvoid}), queue, wake, user)

# Closes a queue: nothing new is accepted, what is there can still be taken, waiters return.
const at_muster_queue_close = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_queue_close => at_muster_queue_close)
@inline muster_queue_close(queue) =
    ccall(at_muster_queue_close[], muster_status, (Ptr{muster_queue},), queue)

# Gives up one reference.
const at_muster_queue_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_queue_release => at_muster_queue_release)
@inline muster_queue_release(queue) =
    ccall(at_muster_queue_release[], Cvoid, (Ptr{muster_queue},), queue)

# Reads the figures of a queue.
const at_muster_queue_get_stats = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_queue_get_stats => at_muster_queue_get_stats)
@inline muster_queue_get_stats(queue, out_stats) =
    ccall(at_muster_queue_get_stats[], muster_status, (Ptr{muster_queue}, Ptr{muster_queue_stats}), queue, out_stats)

# Opens a rendezvous.
const at_muster_rendezvous_open = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_open => at_muster_rendezvous_open)
@inline muster_rendezvous_open(context, config, timeout_ns, out_rendezvous, error) =
    ccall(at_muster_rendezvous_open[], muster_status, (Ptr{muster_context}, Ptr{muster_rendezvous_config}, Int64, Ptr{Ptr{muster_rendezvous}}, Ptr{muster_error}), context, config, timeout_ns, out_rendezvous, error)

# Waits for a round and joins it.
const at_muster_rendezvous_join = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_join => at_muster_rendezvous_join)
@inline muster_rendezvous_join(rendezvous, timeout_ns, out_round, error) =
    ccall(at_muster_rendezvous_join[], muster_status, (Ptr{muster_rendezvous}, Int64, Ptr{Ptr{muster_round}}, Ptr{muster_error}), rendezvous, timeout_ns, out_round, error)

# Leaves the round, or stops waiting for one.
const at_muster_rendezvous_leave = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_leave => at_muster_rendezvous_leave)
@inline muster_rendezvous_leave(rendezvous, timeout_ns, error) =
    ccall(at_muster_rendezvous_leave[], muster_status, (Ptr{muster_rendezvous}, Int64, Ptr{muster_error}), rendezvous, timeout_ns, error)

# Waits until all who are still in the round call this too: the exit barrier, so that nobody takes away early what the others still need.
const at_muster_rendezvous_exit = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_exit => at_muster_rendezvous_exit)
@inline muster_rendezvous_exit(rendezvous, timeout_ns, error) =
    ccall(at_muster_rendezvous_exit[], muster_status, (Ptr{muster_rendezvous}, Int64, Ptr{muster_error}), rendezvous, timeout_ns, error)

# Aborts the round that the member is in: it is over for all, at once, also for those who hang.
const at_muster_rendezvous_abort = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_abort => at_muster_rendezvous_abort)
@inline muster_rendezvous_abort(rendezvous, reason, reason_bytes, timeout_ns, error) =
    ccall(at_muster_rendezvous_abort[], muster_status, (Ptr{muster_rendezvous}, Ptr{Cvoid}, Csize_t, Int64, Ptr{muster_error}), rendezvous, reason, reason_bytes, timeout_ns, error)

# Closes the run: no round begins any more, and who waits for one is told.
const at_muster_rendezvous_close = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_close => at_muster_rendezvous_close)
@inline muster_rendezvous_close(rendezvous, reason, reason_bytes, timeout_ns, error) =
    ccall(at_muster_rendezvous_close[], muster_status, (Ptr{muster_rendezvous}, Ptr{Cvoid}, Csize_t, Int64, Ptr{muster_error}), rendezvous, reason, reason_bytes, timeout_ns, error)

# Begins one of the calls above; ::MUSTER_DONE_RENDEZVOUS comes with its status and detail, and with the round of a join.
const at_muster_rendezvous_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_begin => at_muster_rendezvous_begin)
@inline muster_rendezvous_begin(rendezvous, operation, reason, reason_bytes, timeout_ns, queue, tag, error) =
    ccall(at_muster_rendezvous_begin[], muster_status, (Ptr{muster_rendezvous}, UInt32, Ptr{Cvoid}, Csize_t, Int64, Ptr{muster_queue}, UInt64, Ptr{muster_error}), rendezvous, operation, reason, reason_bytes, timeout_ns, queue, tag, error)

# Ends everything that is under way with this member with ::MUSTER_E_CANCELED, begun or waited for, and the waits in muster_rendezvous_next_event().
const at_muster_rendezvous_cancel = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_cancel => at_muster_rendezvous_cancel)
@inline muster_rendezvous_cancel(rendezvous) =
    ccall(at_muster_rendezvous_cancel[], muster_status, (Ptr{muster_rendezvous},), rendezvous)

# Takes the oldest event.
const at_muster_rendezvous_next_event = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_next_event => at_muster_rendezvous_next_event)
@inline muster_rendezvous_next_event(rendezvous, timeout_ns, out_event) =
    ccall(at_muster_rendezvous_next_event[], muster_status, (Ptr{muster_rendezvous}, Int64, Ptr{muster_rendezvous_event}), rendezvous, timeout_ns, out_event)

# Tells what the member knows just now; it asks nobody.
const at_muster_rendezvous_get_state = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_get_state => at_muster_rendezvous_get_state)
@inline muster_rendezvous_get_state(rendezvous, out_state) =
    ccall(at_muster_rendezvous_get_state[], muster_status, (Ptr{muster_rendezvous}, Ptr{muster_rendezvous_state}), rendezvous, out_state)

# Lists who seeks the next round: their addresses, each made printable and with a line feed behind it, as many as there is room for and at most 1000, in no order.
const at_muster_rendezvous_list = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_list => at_muster_rendezvous_list)
@inline muster_rendezvous_list(rendezvous, out_text, capacity, timeout_ns, out_bytes, error) =
    ccall(at_muster_rendezvous_list[], muster_status, (Ptr{muster_rendezvous}, Ptr{UInt8}, Csize_t, Int64, Ptr{Csize_t}, Ptr{muster_error}), rendezvous, out_text, capacity, timeout_ns, out_bytes, error)

# Gives up one reference.
const at_muster_rendezvous_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_release => at_muster_rendezvous_release)
@inline muster_rendezvous_release(rendezvous) =
    ccall(at_muster_rendezvous_release[], Cvoid, (Ptr{muster_rendezvous},), rendezvous)

# Tells what a round is.
const at_muster_round_get_info = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_round_get_info => at_muster_round_get_info)
@inline muster_round_get_info(round, out_info) =
    ccall(at_muster_round_get_info[], muster_status, (Ptr{muster_round}, Ptr{muster_round_info}), round, out_info)

# Gives the store view of a round: a prefix of its own, and every request ends with ::MUSTER_E_STALE once the round is over for this member, those that wait included.
const at_muster_round_store = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_round_store => at_muster_round_store)
@inline muster_round_store(round, out_store, error) =
    ccall(at_muster_round_store[], muster_status, (Ptr{muster_round}, Ptr{Ptr{muster_store}}, Ptr{muster_error}), round, out_store, error)

# Looks up a member of a round.
const at_muster_round_member = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_round_member => at_muster_round_member)
@inline muster_round_member(round, rank, timeout_ns, out_member, error) =
    ccall(at_muster_round_member[], muster_status, (Ptr{muster_round}, UInt32, Int64, Ptr{muster_round_member_info}, Ptr{muster_error}), round, rank, timeout_ns, out_member, error)

# Gives up one reference.
const at_muster_round_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_round_release => at_muster_round_release)
@inline muster_round_release(round) =
    ccall(at_muster_round_release[], Cvoid, (Ptr{muster_round},), round)

# Adds a host-served rendezvous for one URL scheme, in this context only.
const at_muster_rendezvous_serve = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_serve => at_muster_rendezvous_serve)
@inline muster_rendezvous_serve(context, scheme, scheme_bytes, requests, error) =
    ccall(at_muster_rendezvous_serve[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t, Ptr{muster_queue}, Ptr{muster_error}), context, scheme, scheme_bytes, requests, error)

# Adds a host-served rendezvous whose requests run callbacks, inside muster_queue_dispatch().
const at_muster_rendezvous_serve_ops = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_serve_ops => at_muster_rendezvous_serve_ops)
@inline muster_rendezvous_serve_ops(context, scheme, scheme_bytes, ops, self, requests, error) =
    ccall(at_muster_rendezvous_serve_ops[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t, Ptr{muster_rendezvous_ops}, Ptr{Cvoid}, Ptr{muster_queue}, Ptr{muster_error}), context, scheme, scheme_bytes, ops, self, requests, error)

# Takes a host-served rendezvous back: opening it fails from now on, what its members have asked and was not answered ends with ::MUSTER_E_CLOSED, and they are told ::MUSTER_RENDEZVOUS_LOST.
const at_muster_rendezvous_withdraw = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_withdraw => at_muster_rendezvous_withdraw)
@inline muster_rendezvous_withdraw(context, scheme, scheme_bytes) =
    ccall(at_muster_rendezvous_withdraw[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t), context, scheme, scheme_bytes)

# Tells what an unanswered request wants.
const at_muster_rendezvous_request_read = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_request_read => at_muster_rendezvous_request_read)
@inline muster_rendezvous_request_read(requests, request, out_what) =
    ccall(at_muster_rendezvous_request_read[], muster_status, (Ptr{muster_queue}, UInt64, Ptr{muster_rendezvous_request}), requests, request, out_what)

# Answers a JOIN request: the member is in a round.
const at_muster_rendezvous_request_round = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_request_round => at_muster_rendezvous_request_round)
@inline muster_rendezvous_request_round(requests, request, place, error) =
    ccall(at_muster_rendezvous_request_round[], muster_status, (Ptr{muster_queue}, UInt64, Ptr{muster_rendezvous_place}, Ptr{muster_error}), requests, request, place, error)

# Answers any request but JOIN: it is done.
const at_muster_rendezvous_request_done = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_request_done => at_muster_rendezvous_request_done)
@inline muster_rendezvous_request_done(requests, request, text, text_bytes, error) =
    ccall(at_muster_rendezvous_request_done[], muster_status, (Ptr{muster_queue}, UInt64, Ptr{Cvoid}, Csize_t, Ptr{muster_error}), requests, request, text, text_bytes, error)

# Answers any request: it cannot be done.
const at_muster_rendezvous_request_fail = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_request_fail => at_muster_rendezvous_request_fail)
@inline muster_rendezvous_request_fail(requests, request, status, text, text_bytes) =
    ccall(at_muster_rendezvous_request_fail[], muster_status, (Ptr{muster_queue}, UInt64, muster_status, Ptr{UInt8}, Csize_t), requests, request, status, text, text_bytes)

# Tells a member of an event.
const at_muster_rendezvous_tell = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_tell => at_muster_rendezvous_tell)
@inline muster_rendezvous_tell(requests, member, event, error) =
    ccall(at_muster_rendezvous_tell[], muster_status, (Ptr{muster_queue}, UInt64, Ptr{muster_rendezvous_event}, Ptr{muster_error}), requests, member, event, error)

# Adds a host-served transport for one URL scheme, in this context only.
const at_muster_transport_serve = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_transport_serve => at_muster_transport_serve)
@inline muster_transport_serve(context, scheme, scheme_bytes, requests, error) =
    ccall(at_muster_transport_serve[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t, Ptr{muster_queue}, Ptr{muster_error}), context, scheme, scheme_bytes, requests, error)

# Adds a host-served transport whose requests run callbacks, inside muster_queue_dispatch().
const at_muster_transport_serve_ops = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_transport_serve_ops => at_muster_transport_serve_ops)
@inline muster_transport_serve_ops(context, scheme, scheme_bytes, ops, self, requests, error) =
    ccall(at_muster_transport_serve_ops[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t, Ptr{muster_transport_ops}, Ptr{Cvoid}, Ptr{muster_queue}, Ptr{muster_error}), context, scheme, scheme_bytes, ops, self, requests, error)

# Takes a host-served transport back: dialling and listening fail from now on, unanswered requests fail with ::MUSTER_E_CLOSED, listeners close; connections go on until they end.
const at_muster_transport_withdraw = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_transport_withdraw => at_muster_transport_withdraw)
@inline muster_transport_withdraw(context, scheme, scheme_bytes) =
    ccall(at_muster_transport_withdraw[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t), context, scheme, scheme_bytes)

# Gives the address an OPEN or LISTEN request is about, options of the library's own taken out.
const at_muster_request_address = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_request_address => at_muster_request_address)
@inline muster_request_address(requests, request, out_text, capacity, out_bytes) =
    ccall(at_muster_request_address[], muster_status, (Ptr{muster_queue}, UInt64, Ptr{UInt8}, Csize_t, Ptr{Csize_t}), requests, request, out_text, capacity, out_bytes)

# Answers an OPEN request: the host is connected.
const at_muster_request_stream = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_request_stream => at_muster_request_stream)
@inline muster_request_stream(requests, request, out_pump, error) =
    ccall(at_muster_request_stream[], muster_status, (Ptr{muster_queue}, UInt64, Ptr{Ptr{muster_stream}}, Ptr{muster_error}), requests, request, out_pump, error)

# Answers a LISTEN request: the host listens.
const at_muster_request_listening = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_request_listening => at_muster_request_listening)
@inline muster_request_listening(requests, request, address, address_bytes, error) =
    ccall(at_muster_request_listening[], muster_status, (Ptr{muster_queue}, UInt64, Ptr{UInt8}, Csize_t, Ptr{muster_error}), requests, request, address, address_bytes, error)

# Answers an OPEN or LISTEN request: it cannot be done.
const at_muster_request_fail = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_request_fail => at_muster_request_fail)
@inline muster_request_fail(requests, request, status, text, text_bytes) =
    ccall(at_muster_request_fail[], muster_status, (Ptr{muster_queue}, UInt64, muster_status, Ptr{UInt8}, Csize_t), requests, request, status, text, text_bytes)

# Announces a connection that came in on a host-served listener.
const at_muster_transport_incoming = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_transport_incoming => at_muster_transport_incoming)
@inline muster_transport_incoming(requests, listen_request, peer, peer_bytes, out_request, out_pump, error) =
    ccall(at_muster_transport_incoming[], muster_status, (Ptr{muster_queue}, UInt64, Ptr{UInt8}, Csize_t, Ptr{UInt64}, Ptr{Ptr{muster_stream}}, Ptr{muster_error}), requests, listen_request, peer, peer_bytes, out_request, out_pump, error)

# Opens a store.
const at_muster_store_open = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_open => at_muster_store_open)
@inline muster_store_open(context, url, url_bytes, config, timeout_ns, out_store, error) =
    ccall(at_muster_store_open[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t, Ptr{muster_store_config}, Int64, Ptr{Ptr{muster_store}}, Ptr{muster_error}), context, url, url_bytes, config, timeout_ns, out_store, error)

# Makes a view: the same store, where every key and queue has a prefix that the view adds and takes away.
const at_muster_store_view = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_view => at_muster_store_view)
@inline muster_store_view(store, prefix, prefix_bytes, out_view, error) =
    ccall(at_muster_store_view[], muster_status, (Ptr{muster_store}, Ptr{Cvoid}, Csize_t, Ptr{Ptr{muster_store}}, Ptr{muster_error}), store, prefix, prefix_bytes, out_view, error)

# Tells what a store can do.
const at_muster_store_capabilities = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_capabilities => at_muster_store_capabilities)
@inline muster_store_capabilities(store) =
    ccall(at_muster_store_capabilities[], UInt32, (Ptr{muster_store},), store)

# Does a request and waits for its result.
const at_muster_store_do = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_do => at_muster_store_do)
@inline muster_store_do(store, ops, op_count, timeout_ns, out_result, error) =
    ccall(at_muster_store_do[], muster_status, (Ptr{muster_store}, Ptr{muster_store_op}, Csize_t, Int64, Ptr{Ptr{muster_store_result}}, Ptr{muster_error}), store, ops, op_count, timeout_ns, out_result, error)

# Begins a request; ::MUSTER_DONE_STORE comes with its result, or without one with the status and detail.
const at_muster_store_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_begin => at_muster_store_begin)
@inline muster_store_begin(store, ops, op_count, timeout_ns, queue, tag, out_request, error) =
    ccall(at_muster_store_begin[], muster_status, (Ptr{muster_store}, Ptr{muster_store_op}, Csize_t, Int64, Ptr{muster_queue}, UInt64, Ptr{UInt64}, Ptr{muster_error}), store, ops, op_count, timeout_ns, queue, tag, out_request, error)

# Ends a request that waits with ::MUSTER_E_CANCELED; nothing of it was done.
const at_muster_store_cancel = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_cancel => at_muster_store_cancel)
@inline muster_store_cancel(store, request) =
    ccall(at_muster_store_cancel[], muster_status, (Ptr{muster_store}, UInt64), store, request)

# Makes a lease: keys that are set with it go when it ends.
const at_muster_store_lease = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_lease => at_muster_store_lease)
@inline muster_store_lease(store, ttl_ns, flags, timeout_ns, out_lease, error) =
    ccall(at_muster_store_lease[], muster_status, (Ptr{muster_store}, Int64, UInt32, Int64, Ptr{Ptr{muster_lease}}, Ptr{muster_error}), store, ttl_ns, flags, timeout_ns, out_lease, error)

# Begins to make a lease; ::MUSTER_DONE_LEASE comes with it, or without one with the status and detail.
const at_muster_store_lease_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_lease_begin => at_muster_store_lease_begin)
@inline muster_store_lease_begin(store, ttl_ns, flags, timeout_ns, queue, tag, out_request, error) =
    ccall(at_muster_store_lease_begin[], muster_status, (Ptr{muster_store}, Int64, UInt32, Int64, Ptr{muster_queue}, UInt64, Ptr{UInt64}, Ptr{muster_error}), store, ttl_ns, flags, timeout_ns, queue, tag, out_request, error)

# Tells the number of a lease, for muster_store_op::lease.
const at_muster_lease_id = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_lease_id => at_muster_lease_id)
@inline muster_lease_id(lease) =
    ccall(at_muster_lease_id[], UInt64, (Ptr{muster_lease},), lease)

# Keeps a MANUAL lease: from now on it lasts for its time once more.
const at_muster_lease_keep = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_lease_keep => at_muster_lease_keep)
@inline muster_lease_keep(lease) =
    ccall(at_muster_lease_keep[], muster_status, (Ptr{muster_lease},), lease)

# Ends a lease at once: its keys go, at one moment.
const at_muster_lease_end = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_lease_end => at_muster_lease_end)
@inline muster_lease_end(lease, timeout_ns, error) =
    ccall(at_muster_lease_end[], muster_status, (Ptr{muster_lease}, Int64, Ptr{muster_error}), lease, timeout_ns, error)

# Gives up one reference.
const at_muster_lease_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_lease_release => at_muster_lease_release)
@inline muster_lease_release(lease) =
    ccall(at_muster_lease_release[], Cvoid, (Ptr{muster_lease},), lease)

# Gives up one reference.
const at_muster_store_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_release => at_muster_store_release)
@inline muster_store_release(store) =
    ccall(at_muster_store_release[], Cvoid, (Ptr{muster_store},), store)

# Tells how many entries a result has: one for each operation, of a LIST one for each key it shows.
const at_muster_store_result_count = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_result_count => at_muster_store_result_count)
@inline muster_store_result_count(result) =
    ccall(at_muster_store_result_count[], UInt64, (Ptr{muster_store_result},), result)

# Reads one entry of a result.
const at_muster_store_result_entry = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_result_entry => at_muster_store_result_entry)
@inline muster_store_result_entry(result, index, out_entry) =
    ccall(at_muster_store_result_entry[], muster_status, (Ptr{muster_store_result}, UInt64, Ptr{muster_store_entry}), result, index, out_entry)

# Tells the revision of the store when the request was done.
const at_muster_store_result_revision = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_result_revision => at_muster_store_result_revision)
@inline muster_store_result_revision(result) =
    ccall(at_muster_store_result_revision[], UInt64, (Ptr{muster_store_result},), result)

# Gives up one reference.
const at_muster_store_result_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_result_release => at_muster_store_result_release)
@inline muster_store_result_release(result) =
    ccall(at_muster_store_result_release[], Cvoid, (Ptr{muster_store_result},), result)

# Adds a host-served store for one URL scheme, in this context only.
const at_muster_store_serve = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_serve => at_muster_store_serve)
@inline muster_store_serve(context, scheme, scheme_bytes, requests, error) =
    ccall(at_muster_store_serve[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t, Ptr{muster_queue}, Ptr{muster_error}), context, scheme, scheme_bytes, requests, error)

# Adds a host-served store whose requests run callbacks, inside muster_queue_dispatch().
const at_muster_store_serve_ops = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_serve_ops => at_muster_store_serve_ops)
@inline muster_store_serve_ops(context, scheme, scheme_bytes, ops, self, requests, error) =
    ccall(at_muster_store_serve_ops[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t, Ptr{muster_store_host_ops}, Ptr{Cvoid}, Ptr{muster_queue}, Ptr{muster_error}), context, scheme, scheme_bytes, ops, self, requests, error)

# Takes a host-served store back: opening it fails from now on, and so does what its stores are asked and have not answered, with ::MUSTER_E_CLOSED.
const at_muster_store_withdraw = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_withdraw => at_muster_store_withdraw)
@inline muster_store_withdraw(context, scheme, scheme_bytes) =
    ccall(at_muster_store_withdraw[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t), context, scheme, scheme_bytes)

# Tells what an unanswered request wants.
const at_muster_store_request_read = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_request_read => at_muster_store_request_read)
@inline muster_store_request_read(requests, request, out_what) =
    ccall(at_muster_store_request_read[], muster_status, (Ptr{muster_queue}, UInt64, Ptr{muster_store_request}), requests, request, out_what)

# Answers an OPEN request: the store is open.
const at_muster_store_request_open = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_request_open => at_muster_store_request_open)
@inline muster_store_request_open(requests, request, traits, error) =
    ccall(at_muster_store_request_open[], muster_status, (Ptr{muster_queue}, UInt64, Ptr{muster_store_traits}, Ptr{muster_error}), requests, request, traits, error)

# Answers a DO, GRANT, KEEP or END request: it is done; or a DO that a condition does not hold.
const at_muster_store_request_done = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_request_done => at_muster_store_request_done)
@inline muster_store_request_done(requests, request, status, entries, entry_count, revision, error) =
    ccall(at_muster_store_request_done[], muster_status, (Ptr{muster_queue}, UInt64, muster_status, Ptr{muster_store_entry}, Csize_t, UInt64, Ptr{muster_error}), requests, request, status, entries, entry_count, revision, error)

# Answers any request: it cannot be done, and nothing of it is.
const at_muster_store_request_fail = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_request_fail => at_muster_store_request_fail)
@inline muster_store_request_fail(requests, request, status, op, text, text_bytes) =
    ccall(at_muster_store_request_fail[], muster_status, (Ptr{muster_queue}, UInt64, muster_status, UInt32, Ptr{UInt8}, Csize_t), requests, request, status, op, text, text_bytes)

# Starts a server.
const at_muster_store_server_open = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_server_open => at_muster_store_server_open)
@inline muster_store_server_open(context, url, url_bytes, config, out_server, error) =
    ccall(at_muster_store_server_open[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t, Ptr{muster_store_server_config}, Ptr{Ptr{muster_store_server}}, Ptr{muster_error}), context, url, url_bytes, config, out_server, error)

# Gives the URL clients open: with the real port, `tcp://127.0.0.1:29400`.
const at_muster_store_server_address = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_server_address => at_muster_store_server_address)
@inline muster_store_server_address(server, out_text, capacity, out_bytes) =
    ccall(at_muster_store_server_address[], muster_status, (Ptr{muster_store_server}, Ptr{UInt8}, Csize_t, Ptr{Csize_t}), server, out_text, capacity, out_bytes)

# Reads the figures of a server; of a closed one those of its end.
const at_muster_store_server_get_stats = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_server_get_stats => at_muster_store_server_get_stats)
@inline muster_store_server_get_stats(server, out_stats) =
    ccall(at_muster_store_server_get_stats[], muster_status, (Ptr{muster_store_server}, Ptr{muster_store_server_stats}), server, out_stats)

# Says that the other server of the pair is dead, and stays so: this one goes on without it.
const at_muster_store_server_go_alone = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_server_go_alone => at_muster_store_server_go_alone)
@inline muster_store_server_go_alone(server) =
    ccall(at_muster_store_server_go_alone[], muster_status, (Ptr{muster_store_server},), server)

# Stops a server.
const at_muster_store_server_close = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_server_close => at_muster_store_server_close)
@inline muster_store_server_close(server, timeout_ns) =
    ccall(at_muster_store_server_close[], muster_status, (Ptr{muster_store_server}, Int64), server, timeout_ns)

# Gives up one reference; with the last one the server stops.
const at_muster_store_server_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_store_server_release => at_muster_store_server_release)
@inline muster_store_server_release(server) =
    ccall(at_muster_store_server_release[], Cvoid, (Ptr{muster_store_server},), server)

# Makes two connected ends in this process: what is written to one is read from the other.
const at_muster_stream_pair = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_pair => at_muster_stream_pair)
@inline muster_stream_pair(context, config, out_first, out_second, error) =
    ccall(at_muster_stream_pair[], muster_status, (Ptr{muster_context}, Ptr{muster_stream_config}, Ptr{Ptr{muster_stream}}, Ptr{Ptr{muster_stream}}, Ptr{muster_error}), context, config, out_first, out_second, error)

# Writes bytes; returns when all were accepted (copied or sent), not when the peer has read them.
const at_muster_stream_write = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_write => at_muster_stream_write)
@inline muster_stream_write(stream, data, size_bytes, timeout_ns, out_bytes) =
    ccall(at_muster_stream_write[], muster_status, (Ptr{muster_stream}, Ptr{Cvoid}, Csize_t, Int64, Ptr{Csize_t}), stream, data, size_bytes, timeout_ns, out_bytes)

# Writes the same bytes to many streams: to each it is one muster_stream_write() of all of them, but the bytes are taken from memory once, piece by piece, and the slowest stream sets the pace of all.
const at_muster_stream_write_many = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_write_many => at_muster_stream_write_many)
@inline muster_stream_write_many(streams, count, data, size_bytes, timeout_ns, out_statuses, out_bytes) =
    ccall(at_muster_stream_write_many[], muster_status, (Ptr{Ptr{muster_stream}}, UInt32, Ptr{Cvoid}, Csize_t, Int64, Ptr{muster_status}, Ptr{Csize_t}), streams, count, data, size_bytes, timeout_ns, out_statuses, out_bytes)

# Hands a buffer over without copying it; it stays the library's until ::MUSTER_DONE_RELEASED is taken off the queue, exactly once, with the bytes sent and how it ended: also on failure, abort and cancel.
const at_muster_stream_write_owned = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_write_owned => at_muster_stream_write_owned)
@inline muster_stream_write_owned(stream, data, size_bytes, queue, tag) =
    ccall(at_muster_stream_write_owned[], muster_status, (Ptr{muster_stream}, Ptr{Cvoid}, Csize_t, Ptr{muster_queue}, UInt64), stream, data, size_bytes, queue, tag)

# Hands one buffer over to many streams: to each it is one muster_stream_write_owned() of all of it, with a release of its own.
const at_muster_stream_write_owned_many = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_write_owned_many => at_muster_stream_write_owned_many)
@inline muster_stream_write_owned_many(streams, count, data, size_bytes, queue, tags, out_statuses) =
    ccall(at_muster_stream_write_owned_many[], muster_status, (Ptr{Ptr{muster_stream}}, UInt32, Ptr{Cvoid}, Csize_t, Ptr{muster_queue}, Ptr{UInt64}, Ptr{muster_status}), streams, count, data, size_bytes, queue, tags, out_statuses)

# Reserves room inside the outgoing buffer, to be filled in place and handed on by muster_stream_commit().
const at_muster_stream_reserve = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_reserve => at_muster_stream_reserve)
@inline muster_stream_reserve(stream, min_bytes, timeout_ns, out_data, out_bytes) =
    ccall(at_muster_stream_reserve[], muster_status, (Ptr{muster_stream}, Csize_t, Int64, Ptr{Ptr{Cvoid}}, Ptr{Csize_t}), stream, min_bytes, timeout_ns, out_data, out_bytes)

# Hands on the first bytes of a reservation.
const at_muster_stream_commit = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_commit => at_muster_stream_commit)
@inline muster_stream_commit(stream, size_bytes) =
    ccall(at_muster_stream_commit[], muster_status, (Ptr{muster_stream}, Csize_t), stream, size_bytes)

# Waits until every byte accepted so far has left this process (for shared memory and pairs: can be read by the peer).
const at_muster_stream_flush = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_flush => at_muster_stream_flush)
@inline muster_stream_flush(stream, timeout_ns) =
    ccall(at_muster_stream_flush[], muster_status, (Ptr{muster_stream}, Int64), stream, timeout_ns)

# Reads what is there, at least one byte.
const at_muster_stream_read = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_read => at_muster_stream_read)
@inline muster_stream_read(stream, out_data, capacity_bytes, timeout_ns, out_bytes) =
    ccall(at_muster_stream_read[], muster_status, (Ptr{muster_stream}, Ptr{Cvoid}, Csize_t, Int64, Ptr{Csize_t}), stream, out_data, capacity_bytes, timeout_ns, out_bytes)

# Reads exactly so many bytes, straight into the caller's memory without a stage in between.
const at_muster_stream_read_into = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_read_into => at_muster_stream_read_into)
@inline muster_stream_read_into(stream, out_data, size_bytes, flags, timeout_ns, out_bytes) =
    ccall(at_muster_stream_read_into[], muster_status, (Ptr{muster_stream}, Ptr{Cvoid}, Csize_t, UInt32, Int64, Ptr{Csize_t}), stream, out_data, size_bytes, flags, timeout_ns, out_bytes)

# Begins to read exactly so many bytes; the engine fills the caller's memory, and ::MUSTER_DONE_READ comes with the count and how it ended.
const at_muster_stream_read_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_read_begin => at_muster_stream_read_begin)
@inline muster_stream_read_begin(stream, out_data, size_bytes, flags, queue, tag) =
    ccall(at_muster_stream_read_begin[], muster_status, (Ptr{muster_stream}, Ptr{Cvoid}, Csize_t, UInt32, Ptr{muster_queue}, UInt64), stream, out_data, size_bytes, flags, queue, tag)

# Shows bytes where they lie, without taking them.
const at_muster_stream_peek = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_peek => at_muster_stream_peek)
@inline muster_stream_peek(stream, min_bytes, timeout_ns, out_data, out_bytes) =
    ccall(at_muster_stream_peek[], muster_status, (Ptr{muster_stream}, Csize_t, Int64, Ptr{Ptr{Cvoid}}, Ptr{Csize_t}), stream, min_bytes, timeout_ns, out_data, out_bytes)

# Takes the first bytes of what muster_stream_peek() showed.
const at_muster_stream_consume = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_consume => at_muster_stream_consume)
@inline muster_stream_consume(stream, size_bytes) =
    ccall(at_muster_stream_consume[], muster_status, (Ptr{muster_stream}, Csize_t), stream, size_bytes)

# Finishes writing (half-close): the peer reads everything and then ::MUSTER_E_END; this side can still read.
const at_muster_stream_finish = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_finish => at_muster_stream_finish)
@inline muster_stream_finish(stream) =
    ccall(at_muster_stream_finish[], muster_status, (Ptr{muster_stream},), stream)

# Ends both directions at once and tells the peer why; bytes on their way may be lost, which both sides are told.
const at_muster_stream_abort = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_abort => at_muster_stream_abort)
@inline muster_stream_abort(stream, reason, text, text_bytes) =
    ccall(at_muster_stream_abort[], muster_status, (Ptr{muster_stream}, UInt64, Ptr{UInt8}, Csize_t), stream, reason, text, text_bytes)

# Closes in order: finishes writing, waits until everything has left, then ends.
const at_muster_stream_close = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_close => at_muster_stream_close)
@inline muster_stream_close(stream, timeout_ns) =
    ccall(at_muster_stream_close[], muster_status, (Ptr{muster_stream}, Int64), stream, timeout_ns)

# Gives up one reference; with the last one the stream closes as by muster_stream_close() with no wait.
const at_muster_stream_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_release => at_muster_stream_release)
@inline muster_stream_release(stream) =
    ccall(at_muster_stream_release[], Cvoid, (Ptr{muster_stream},), stream)

# Ends the waits and operations under way in one or both directions with ::MUSTER_E_CANCELED.
const at_muster_stream_cancel = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_cancel => at_muster_stream_cancel)
@inline muster_stream_cancel(stream, directions) =
    ccall(at_muster_stream_cancel[], muster_status, (Ptr{muster_stream}, UInt32), stream, directions)

# Watches a stream: ::MUSTER_EVENT_READY appears in the queue when it becomes ready for what is wanted.
const at_muster_stream_watch = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_watch => at_muster_stream_watch)
@inline muster_stream_watch(stream, interest, queue, tag) =
    ccall(at_muster_stream_watch[], muster_status, (Ptr{muster_stream}, UInt32, Ptr{muster_queue}, UInt64), stream, interest, queue, tag)

# Tells why a stream ended.
const at_muster_stream_reason = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_reason => at_muster_stream_reason)
@inline muster_stream_reason(stream, out_reason, error) =
    ccall(at_muster_stream_reason[], muster_status, (Ptr{muster_stream}, Ptr{UInt64}, Ptr{muster_error}), stream, out_reason, error)

# Names the peer: the address text that was dialled or that the connection came from.
const at_muster_stream_peer = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_peer => at_muster_stream_peer)
@inline muster_stream_peer(stream, out_text, capacity, out_bytes) =
    ccall(at_muster_stream_peer[], muster_status, (Ptr{muster_stream}, Ptr{UInt8}, Csize_t, Ptr{Csize_t}), stream, out_text, capacity, out_bytes)

# Ends this process when the peer of this stream, or the way to it, is gone: SIGTERM to itself from a library thread, then SIGKILL.
const at_muster_stream_exit_with_peer = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_exit_with_peer => at_muster_stream_exit_with_peer)
@inline muster_stream_exit_with_peer(stream, grace_ns) =
    ccall(at_muster_stream_exit_with_peer[], muster_status, (Ptr{muster_stream}, Int64), stream, grace_ns)

# Reads the figures of a stream.
const at_muster_stream_get_stats = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_stream_get_stats => at_muster_stream_get_stats)
@inline muster_stream_get_stats(stream, out_stats) =
    ccall(at_muster_stream_get_stats[], muster_status, (Ptr{muster_stream}, Ptr{muster_stream_stats}), stream, out_stats)

# Connects to an address; returns when both sides have proved the secret.
const at_muster_transport_dial = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_transport_dial => at_muster_transport_dial)
@inline muster_transport_dial(context, address, address_bytes, config, timeout_ns, out_stream, error) =
    ccall(at_muster_transport_dial[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t, Ptr{muster_transport_config}, Int64, Ptr{Ptr{muster_stream}}, Ptr{muster_error}), context, address, address_bytes, config, timeout_ns, out_stream, error)

# Begins to connect; ::MUSTER_DONE_DIAL comes with the stream, or without one with the status and detail of its failure.
const at_muster_transport_dial_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_transport_dial_begin => at_muster_transport_dial_begin)
@inline muster_transport_dial_begin(context, address, address_bytes, config, timeout_ns, queue, tag, error) =
    ccall(at_muster_transport_dial_begin[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t, Ptr{muster_transport_config}, Int64, Ptr{muster_queue}, UInt64, Ptr{muster_error}), context, address, address_bytes, config, timeout_ns, queue, tag, error)

# Listens at an address.
const at_muster_transport_listen = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_transport_listen => at_muster_transport_listen)
@inline muster_transport_listen(context, address, address_bytes, config, out_listener, error) =
    ccall(at_muster_transport_listen[], muster_status, (Ptr{muster_context}, Ptr{UInt8}, Csize_t, Ptr{muster_transport_config}, Ptr{Ptr{muster_listener}}, Ptr{muster_error}), context, address, address_bytes, config, out_listener, error)

# Takes the next connection that has proved the secret.
const at_muster_listener_accept = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_listener_accept => at_muster_listener_accept)
@inline muster_listener_accept(listener, timeout_ns, out_stream, error) =
    ccall(at_muster_listener_accept[], muster_status, (Ptr{muster_listener}, Int64, Ptr{Ptr{muster_stream}}, Ptr{muster_error}), listener, timeout_ns, out_stream, error)

# Watches a listener: ::MUSTER_EVENT_READY with ::MUSTER_STREAM_READABLE appears when a connection can be taken, armed when the watch is set and again whenever accept answers ::MUSTER_AGAIN.
const at_muster_listener_watch = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_listener_watch => at_muster_listener_watch)
@inline muster_listener_watch(listener, queue, tag) =
    ccall(at_muster_listener_watch[], muster_status, (Ptr{muster_listener}, Ptr{muster_queue}, UInt64), listener, queue, tag)

# Gives the address a peer dials to get here: the real port, the advertised host.
const at_muster_listener_address = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_listener_address => at_muster_listener_address)
@inline muster_listener_address(listener, out_text, capacity, out_bytes) =
    ccall(at_muster_listener_address[], muster_status, (Ptr{muster_listener}, Ptr{UInt8}, Csize_t, Ptr{Csize_t}), listener, out_text, capacity, out_bytes)

# Ends the waits inside muster_listener_accept() now.
const at_muster_listener_cancel = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_listener_cancel => at_muster_listener_cancel)
@inline muster_listener_cancel(listener) =
    ccall(at_muster_listener_cancel[], muster_status, (Ptr{muster_listener},), listener)

# Stops listening; connections nobody took are refused, its socket file is removed.
const at_muster_listener_close = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_listener_close => at_muster_listener_close)
@inline muster_listener_close(listener) =
    ccall(at_muster_listener_close[], muster_status, (Ptr{muster_listener},), listener)

# Gives up one reference; with the last one the listener closes.
const at_muster_listener_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_listener_release => at_muster_listener_release)
@inline muster_listener_release(listener) =
    ccall(at_muster_listener_release[], Cvoid, (Ptr{muster_listener},), listener)

# Gives what the other side sent as its greeting.
const at_muster_transport_greeting = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_transport_greeting => at_muster_transport_greeting)
@inline muster_transport_greeting(stream, out_data, capacity, out_bytes) =
    ccall(at_muster_transport_greeting[], muster_status, (Ptr{muster_stream}, Ptr{Cvoid}, Csize_t, Ptr{Csize_t}), stream, out_data, capacity, out_bytes)

"Looks up every function in an opened library; the first one that is missing ends it with an error naming it."
function load!(handle::Ptr{Cvoid})
    for (name, place) in functions
        place[] = Libdl.dlsym(handle, name)
    end
end

end # module
