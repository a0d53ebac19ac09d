# SPDX-License-Identifier: MIT
# Written by bindings/python/generate from include/muster/*.h; do not edit.
"""The C surface for ctypes: constants, structures, and the types of each function. Handles are c_void_p."""
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t,
                    c_uint8, c_uint16, c_uint32, c_uint64, c_void_p)


# muster_agent_flag
MUSTER_AGENT_NO_GUARD = 1
MUSTER_AGENT_VIRTUAL_LOCAL_RANK = 2

# muster_agent_output
MUSTER_AGENT_STDOUT = 1
MUSTER_AGENT_STDERR = 2

# muster_agent_phase
MUSTER_AGENT_JOINING = 1
MUSTER_AGENT_STARTING = 2
MUSTER_AGENT_RUNNING = 3
MUSTER_AGENT_STOPPING = 4
MUSTER_AGENT_DONE = 5
MUSTER_AGENT_ENDED = 6

# muster_agent_worker_state
MUSTER_WORKER_NONE = 0
MUSTER_WORKER_RUNNING = 1
MUSTER_WORKER_SUCCEEDED = 2
MUSTER_WORKER_FAILED = 3
MUSTER_WORKER_STOPPED = 4

# muster_agent_event
MUSTER_AGENT_STARTED = 1
MUSTER_AGENT_WORKER_ENDED = 2
MUSTER_AGENT_RESTARTING = 3
MUSTER_AGENT_RENDEZVOUS_EVENT = 4

# muster_am_flags
MUSTER_AM_NO_POLLING = 1

# muster_am_event
MUSTER_AM_PEER_ENDED = 1

# muster_atomic_order
MUSTER_ATOMIC_SEQ_CST = 0
MUSTER_ATOMIC_ACQ_REL = 1
MUSTER_ATOMIC_RELAXED = 2

# muster_atomic_operation
MUSTER_ATOMIC_ADD = 0
MUSTER_ATOMIC_AND = 1
MUSTER_ATOMIC_OR = 2
MUSTER_ATOMIC_XOR = 3
MUSTER_ATOMIC_MIN = 4
MUSTER_ATOMIC_MAX = 5
MUSTER_ATOMIC_UMIN = 6
MUSTER_ATOMIC_UMAX = 7

# muster_atomic_comparison
MUSTER_ATOMIC_EQUAL = 0
MUSTER_ATOMIC_NOT_EQUAL = 1
MUSTER_ATOMIC_LESS = 2
MUSTER_ATOMIC_LESS_EQUAL = 3
MUSTER_ATOMIC_GREATER = 4
MUSTER_ATOMIC_GREATER_EQUAL = 5

# muster_status_value
MUSTER_OK = 0
MUSTER_AGAIN = 1
MUSTER_TIMEOUT = 2
MUSTER_E_ARG = -1
MUSTER_E_ABI = -2
MUSTER_E_NOMEM = -3
MUSTER_E_LIMIT = -4
MUSTER_E_CLOSED = -5
MUSTER_E_CANCELED = -6
MUSTER_E_FORKED = -7
MUSTER_E_WOULD_DEADLOCK = -8
MUSTER_E_UNSUPPORTED = -9
MUSTER_E_EXISTS = -10
MUSTER_E_NOT_FOUND = -11
MUSTER_E_STALE = -12
MUSTER_E_BUSY = -13
MUSTER_E_PERMISSION = -14
MUSTER_E_AUTH = -15
MUSTER_E_PROTOCOL = -16
MUSTER_E_ADDRESS = -17
MUSTER_E_UNREACHABLE = -18
MUSTER_E_PEER = -19
MUSTER_E_ABORTED = -20
MUSTER_E_END = -21
MUSTER_E_SYSTEM = -22
MUSTER_E_PLUGIN = -23
MUSTER_E_INTERNAL = -24
MUSTER_E_CHANGED = -25
MUSTER_E_STORE_LOST = -26
MUSTER_E_QUORUM = -27
MUSTER_E_MISMATCH = -28

# muster_broker_flag
MUSTER_BROKER_OPEN = 1
MUSTER_BROKER_NO_CURVE = 2

# muster_cluster_member_id
MUSTER_CLUSTER_MASTER = 0

# muster_cluster_topology
MUSTER_CLUSTER_ALL_TO_ALL = 0
MUSTER_CLUSTER_MASTER_WORKER = 1
MUSTER_CLUSTER_TREE = 2
MUSTER_CLUSTER_CUSTOM = 3

# muster_launch_flag
MUSTER_LAUNCH_MASTER_DIALS = 1
MUSTER_LAUNCH_NO_LISTEN = 2

# muster_cluster_event_kind
MUSTER_CLUSTER_LAUNCHED = 1
MUSTER_CLUSTER_CONNECTED = 2
MUSTER_CLUSTER_JOINED = 3
MUSTER_CLUSTER_FAILED = 4
MUSTER_CLUSTER_DEAD = 5
MUSTER_CLUSTER_REMOVED = 6
MUSTER_CLUSTER_STREAM = 7
MUSTER_CLUSTER_INTERRUPT = 8
MUSTER_CLUSTER_LEAVE = 9
MUSTER_CLUSTER_MASTER_GONE = 10
MUSTER_CLUSTER_BROADCAST = 11

# muster_member_state
MUSTER_MEMBER_LAUNCHING = 1
MUSTER_MEMBER_LAUNCHED = 2
MUSTER_MEMBER_CONNECTED = 3
MUSTER_MEMBER_JOINED = 4
MUSTER_MEMBER_LEAVING = 5
MUSTER_MEMBER_GONE = 6

# muster_context_flag
MUSTER_CONTEXT_EXTERNAL = 1
MUSTER_CONTEXT_NO_SEAL = 2
MUSTER_CONTEXT_SEAL_ALWAYS = 4
MUSTER_CONTEXT_NO_UPGRADE = 8

# muster_log_level
MUSTER_LOG_OFF = 0
MUSTER_LOG_ERROR = 1
MUSTER_LOG_WARN = 2
MUSTER_LOG_INFO = 3
MUSTER_LOG_DEBUG = 4

# muster_epoch_token_state
MUSTER_EPOCH_TOKEN_FREE = 0
MUSTER_EPOCH_TOKEN_IN_USE = 1
MUSTER_EPOCH_TOKEN_ORPHANED = 2
MUSTER_EPOCH_TOKEN_ADOPTED = 3

# muster_epoch_flags
MUSTER_EPOCH_FENCED = 1
MUSTER_EPOCH_SHARED = 2
MUSTER_EPOCH_THREAD_BOUND = 4

# muster_epoch_ready
MUSTER_EPOCH_BLOCKED = 1

# muster_epoch_outcome
MUSTER_EPOCH_ADVANCED = 1
MUSTER_EPOCH_LOST = 2
MUSTER_EPOCH_HELD = 3

# muster_type
MUSTER_TYPE_I8 = 1
MUSTER_TYPE_U8 = 2
MUSTER_TYPE_I16 = 3
MUSTER_TYPE_U16 = 4
MUSTER_TYPE_I32 = 5
MUSTER_TYPE_U32 = 6
MUSTER_TYPE_I64 = 7
MUSTER_TYPE_U64 = 8
MUSTER_TYPE_F16 = 9
MUSTER_TYPE_BF16 = 10
MUSTER_TYPE_F32 = 11
MUSTER_TYPE_F64 = 12
MUSTER_TYPE_OF_REDUCTION = 13

# muster_reduction
MUSTER_REDUCE_SUM = 1
MUSTER_REDUCE_PRODUCT = 2
MUSTER_REDUCE_MIN = 3
MUSTER_REDUCE_MAX = 4
MUSTER_REDUCE_AND = 5
MUSTER_REDUCE_OR = 6
MUSTER_REDUCE_XOR = 7

# muster_group_kind
MUSTER_GROUP_BARRIER = 1
MUSTER_GROUP_BROADCAST = 2
MUSTER_GROUP_REDUCE = 3
MUSTER_GROUP_ALL_REDUCE = 4
MUSTER_GROUP_REDUCE_SCATTER = 5
MUSTER_GROUP_SCAN = 6
MUSTER_GROUP_GATHER = 7
MUSTER_GROUP_ALL_GATHER = 8
MUSTER_GROUP_SCATTER = 9
MUSTER_GROUP_ALL_TO_ALL = 10

# muster_group_operation_flag
MUSTER_GROUP_EXCLUSIVE = 1

# muster_group_flag
MUSTER_GROUP_NO_SHARED_MEMORY = 1
MUSTER_GROUP_MESSAGES = 2
MUSTER_GROUP_RANK_OF_MEMBER = 4

# muster_group_member_state
MUSTER_GROUP_MEMBER_IDLE = 1
MUSTER_GROUP_MEMBER_ACTIVE = 2
MUSTER_GROUP_MEMBER_MISSING = 3
MUSTER_GROUP_MEMBER_FAILED = 4

# muster_manager_operation
MUSTER_MANAGER_LAUNCH = 1
MUSTER_MANAGER_CONNECT = 2
MUSTER_MANAGER_CONNECT_WORKER = 4
MUSTER_MANAGER_REGISTER = 8
MUSTER_MANAGER_DEREGISTER = 16
MUSTER_MANAGER_INTERRUPT = 32
MUSTER_MANAGER_KILL = 64
MUSTER_MANAGER_FINALIZE = 128

# muster_memory_flag
MUSTER_MEMORY_NO_SHARED_MEMORY = 1

# muster_memory_kind
MUSTER_MEMORY_PUT = 1
MUSTER_MEMORY_GET = 2
MUSTER_MEMORY_READ = 3
MUSTER_MEMORY_WRITE = 4
MUSTER_MEMORY_EXCHANGE = 5
MUSTER_MEMORY_COMPARE_EXCHANGE = 6
MUSTER_MEMORY_FETCH = 7

# muster_memory_cell
MUSTER_MEMORY_WORD64 = 0
MUSTER_MEMORY_WORD32 = 1
MUSTER_MEMORY_ABA = 2

# muster_message_type
MUSTER_MESSAGE_GET = 0
MUSTER_MESSAGE_PUT = 1
MUSTER_MESSAGE_SYNC = 2
MUSTER_MESSAGE_UPDATE = 3
MUSTER_MESSAGE_SYNC_REQUEST = 4
MUSTER_MESSAGE_SYNC_RESPONSE = 5
MUSTER_MESSAGE_STOP = 6
MUSTER_MESSAGE_DATA = 7
MUSTER_MESSAGE_GOT = 8
MUSTER_MESSAGE_UPDATED = 9
MUSTER_MESSAGE_CONNECT = 10
MUSTER_MESSAGE_METRIC = 11
MUSTER_MESSAGE_USER = 256

# muster_message_any
MUSTER_MESSAGE_ANY = -1

# muster_message_queue_ready
MUSTER_MESSAGE_QUEUE_FILLED = 1
MUSTER_MESSAGE_QUEUE_HAS_ROOM = 2

# muster_process_exit_kind
MUSTER_PROCESS_EXITED = 1
MUSTER_PROCESS_KILLED = 2
MUSTER_PROCESS_UNKNOWN = 3

# muster_completion_kind
MUSTER_DONE_READ = 1
MUSTER_DONE_RELEASED = 2
MUSTER_DONE_DIAL = 3
MUSTER_DONE_EXIT = 4
MUSTER_DONE_USER = 5
MUSTER_DONE_STORE = 6
MUSTER_DONE_LEASE = 7
MUSTER_DONE_RENDEZVOUS = 8
MUSTER_DONE_AGENT = 9
MUSTER_DONE_BROADCAST = 10
MUSTER_DONE_OPEN = 11
MUSTER_DONE_CALL = 12
MUSTER_DONE_LISTEN = 13
MUSTER_DONE_MESSAGE = 14
MUSTER_DONE_AM = 15
MUSTER_DONE_MEMORY = 18
MUSTER_EVENT_READY = 16
MUSTER_EVENT_LOG = 17
MUSTER_EVENT_AGENT = 19
MUSTER_REQUEST_OPEN = 32
MUSTER_REQUEST_LISTEN = 33
MUSTER_REQUEST_CLOSE = 34
MUSTER_REQUEST_CANCEL = 35
MUSTER_REQUEST_STORE = 36
MUSTER_REQUEST_RENDEZVOUS = 37
MUSTER_REQUEST_MANAGER = 38
MUSTER_REQUEST_AM = 39

# muster_queue_fd_event
MUSTER_QUEUE_FD_READABLE = 1
MUSTER_QUEUE_FD_WRITABLE = 2
MUSTER_QUEUE_FD_ENDED = 4

# muster_rendezvous_flag
MUSTER_RENDEZVOUS_HAS_RANK = 1
MUSTER_RENDEZVOUS_REOPEN = 2
MUSTER_RENDEZVOUS_DISCARD_STATE = 4

# muster_rendezvous_operation
MUSTER_RENDEZVOUS_JOIN = 1
MUSTER_RENDEZVOUS_LEAVE = 2
MUSTER_RENDEZVOUS_EXIT = 3
MUSTER_RENDEZVOUS_ABORT = 4
MUSTER_RENDEZVOUS_CLOSE = 5

# muster_rendezvous_event_kind
MUSTER_RENDEZVOUS_JOINED = 1
MUSTER_RENDEZVOUS_LAST_CALL = 2
MUSTER_RENDEZVOUS_COMPLETE = 3
MUSTER_RENDEZVOUS_LEFT = 4
MUSTER_RENDEZVOUS_DEAD = 5
MUSTER_RENDEZVOUS_WAITING = 6
MUSTER_RENDEZVOUS_ABORTED = 7
MUSTER_RENDEZVOUS_EXPELLED = 8
MUSTER_RENDEZVOUS_CLOSED = 9
MUSTER_RENDEZVOUS_LOST = 10

# muster_rendezvous_phase
MUSTER_RENDEZVOUS_PHASE_IDLE = 0
MUSTER_RENDEZVOUS_PHASE_JOINING = 1
MUSTER_RENDEZVOUS_PHASE_JOINED = 2

# muster_rendezvous_state_flag
MUSTER_RENDEZVOUS_IS_CLOSED = 1
MUSTER_RENDEZVOUS_IS_LAST_CALL = 2
MUSTER_RENDEZVOUS_IS_LEADER = 4

# muster_round_flag
MUSTER_ROUND_IS_OVER = 1

# muster_rendezvous_request_kind
MUSTER_RENDEZVOUS_REQUEST_OPEN = 1
MUSTER_RENDEZVOUS_REQUEST_JOIN = 2
MUSTER_RENDEZVOUS_REQUEST_LEAVE = 3
MUSTER_RENDEZVOUS_REQUEST_EXIT = 4
MUSTER_RENDEZVOUS_REQUEST_ABORT = 5
MUSTER_RENDEZVOUS_REQUEST_CLOSE = 6
MUSTER_RENDEZVOUS_REQUEST_LIST = 7

# muster_transport_flag
MUSTER_TRANSPORT_ANY_THREAD = 1
MUSTER_TRANSPORT_LOCAL = 2
MUSTER_TRANSPORT_SEALS = 4
MUSTER_TRANSPORT_NO_LISTEN = 8

# muster_socket_kind
MUSTER_SOCKET_DEALER = 1
MUSTER_SOCKET_ROUTER = 2

# muster_socket_flag
MUSTER_SOCKET_LOANS = 1

# muster_socket_ready
MUSTER_SOCKET_RECEIVABLE = 1
MUSTER_SOCKET_SENDABLE = 2
MUSTER_SOCKET_EVENT = 4

# muster_socket_event_kind
MUSTER_SOCKET_CONNECTED = 1
MUSTER_SOCKET_LOST = 2
MUSTER_SOCKET_REPLACED = 3
MUSTER_SOCKET_REFUSED = 4

# muster_store_op_kind
MUSTER_STORE_NONE = 0
MUSTER_STORE_GET = 1
MUSTER_STORE_READ = 2
MUSTER_STORE_SET = 3
MUSTER_STORE_ADD = 4
MUSTER_STORE_APPEND = 5
MUSTER_STORE_DELETE = 6
MUSTER_STORE_CHECK = 7
MUSTER_STORE_WAIT = 8
MUSTER_STORE_COUNT = 9
MUSTER_STORE_LIST = 10
MUSTER_STORE_KEYS = 11
MUSTER_STORE_PUSH = 12
MUSTER_STORE_POP = 13
MUSTER_STORE_TRY_POP = 14
MUSTER_STORE_LENGTH = 15
MUSTER_STORE_WATCH = 16
MUSTER_STORE_BARRIER = 17
MUSTER_STORE_CLEAR = 18

# muster_store_condition
MUSTER_STORE_ALWAYS = 0
MUSTER_STORE_IF_ABSENT = 1
MUSTER_STORE_IF_PRESENT = 2
MUSTER_STORE_IF_VALUE = 3
MUSTER_STORE_IF_VERSION = 4

# muster_store_entry_flag
MUSTER_STORE_PRESENT = 1
MUSTER_STORE_FAILED = 2
MUSTER_STORE_MORE = 4
MUSTER_STORE_LEASE_ENDED = 8
MUSTER_STORE_LEASE_SILENT = 16
MUSTER_STORE_LEASE_BROKEN = 32

# muster_store_capability
MUSTER_STORE_CAN_TRANSACT = 1
MUSTER_STORE_CAN_QUEUE = 2
MUSTER_STORE_CAN_WAIT = 4
MUSTER_STORE_CAN_WATCH = 8
MUSTER_STORE_CAN_LEASE = 16
MUSTER_STORE_CAN_BARRIER = 32

# muster_lease_flag
MUSTER_LEASE_MANUAL = 1
MUSTER_LEASE_CONNECTED = 2

# muster_store_request_kind
MUSTER_STORE_REQUEST_OPEN = 1
MUSTER_STORE_REQUEST_DO = 2
MUSTER_STORE_REQUEST_GRANT = 3
MUSTER_STORE_REQUEST_KEEP = 4
MUSTER_STORE_REQUEST_END = 5

# muster_store_request_flag
MUSTER_STORE_NO_WAIT = 1

# muster_store_trait
MUSTER_STORE_IS_REMOTE = 1
MUSTER_STORE_ANSWERS_CANCEL = 2

# muster_store_host_flag
MUSTER_STORE_ANY_THREAD = 1

# muster_store_server_flag
MUSTER_STORE_SERVER_NO_SYNC = 1
MUSTER_STORE_SERVER_FORCE_STANDALONE = 2
MUSTER_STORE_SERVER_REFUSED_IS_DEAD = 4

# muster_store_server_role
MUSTER_STORE_SERVER_STANDALONE = 0
MUSTER_STORE_SERVER_PRIMARY = 1
MUSTER_STORE_SERVER_HALTED = 2
MUSTER_STORE_SERVER_STANDBY = 3
MUSTER_STORE_SERVER_CATCHING_UP = 4
MUSTER_STORE_SERVER_WAITING = 5

# muster_stream_event
MUSTER_STREAM_READABLE = 1
MUSTER_STREAM_WRITABLE = 2
MUSTER_STREAM_PEER_SILENT = 4
MUSTER_STREAM_PEER_BACK = 8
MUSTER_STREAM_ENDED = 16

# muster_stream_direction
MUSTER_STREAM_READ = 1
MUSTER_STREAM_WRITE = 2

# muster_stream_read_flag
MUSTER_STREAM_HUGE_PAGES = 1

# muster_worker_flag
MUSTER_WORKER_EXIT_WITH_MASTER = 1
MUSTER_WORKER_RAISE_INTERRUPT = 2


class muster_aba(Structure):
    pass


class muster_agent_config(Structure):
    pass


class muster_agent_outputs(Structure):
    pass


class muster_agent_state(Structure):
    pass


class muster_agent_worker(Structure):
    pass


class muster_am_config(Structure):
    pass


class muster_am_peer(Structure):
    pass


class muster_am_request_info(Structure):
    pass


class muster_atomic_condition(Structure):
    pass


class muster_broker_config(Structure):
    pass


class muster_broker_stats(Structure):
    pass


class muster_buffer(Structure):
    pass


class muster_cluster_config(Structure):
    pass


class muster_cluster_event(Structure):
    pass


class muster_completion(Structure):
    pass


class muster_context_config(Structure):
    pass


class muster_context_stats(Structure):
    pass


class muster_epoch_attempt(Structure):
    pass


class muster_epoch_config(Structure):
    pass


class muster_epoch_stats(Structure):
    pass


class muster_epoch_token(Structure):
    pass


class muster_error(Structure):
    pass


class muster_forwarder_config(Structure):
    pass


class muster_forwarder_stats(Structure):
    pass


class muster_group_config(Structure):
    pass


class muster_group_operation(Structure):
    pass


class muster_group_status(Structure):
    pass


class muster_launch(Structure):
    pass


class muster_manager_ops(Structure):
    pass


class muster_manager_request(Structure):
    pass


class muster_member_info(Structure):
    pass


class muster_memory_config(Structure):
    pass


class muster_memory_locale_info(Structure):
    pass


class muster_memory_operation(Structure):
    pass


class muster_memory_result(Structure):
    pass


class muster_memory_stats(Structure):
    pass


class muster_memory_view(Structure):
    pass


class muster_message_header(Structure):
    pass


class muster_message_queue_config(Structure):
    pass


class muster_message_queue_stats(Structure):
    pass


class muster_metrics_config(Structure):
    pass


class muster_metrics_state(Structure):
    pass


class muster_process_config(Structure):
    pass


class muster_process_exit(Structure):
    pass


class muster_process_fd(Structure):
    pass


class muster_queue_config(Structure):
    pass


class muster_queue_stats(Structure):
    pass


class muster_rendezvous_assignment(Structure):
    pass


class muster_rendezvous_config(Structure):
    pass


class muster_rendezvous_event(Structure):
    pass


class muster_rendezvous_ops(Structure):
    pass


class muster_rendezvous_request(Structure):
    pass


class muster_rendezvous_state(Structure):
    pass


class muster_round_info(Structure):
    pass


class muster_round_member_info(Structure):
    pass


class muster_socket_config(Structure):
    pass


class muster_socket_event(Structure):
    pass


class muster_socket_stats(Structure):
    pass


class muster_store_config(Structure):
    pass


class muster_store_entry(Structure):
    pass


class muster_store_host_ops(Structure):
    pass


class muster_store_op(Structure):
    pass


class muster_store_request(Structure):
    pass


class muster_store_server_config(Structure):
    pass


class muster_store_server_stats(Structure):
    pass


class muster_store_traits(Structure):
    pass


class muster_stream_config(Structure):
    pass


class muster_stream_stats(Structure):
    pass


class muster_trace_config(Structure):
    pass


class muster_trace_state(Structure):
    pass


class muster_transport_config(Structure):
    pass


class muster_transport_ops(Structure):
    pass


class muster_value(Structure):
    pass


class muster_worker_config(Structure):
    pass


muster_am_fn = CFUNCTYPE(c_int32, c_void_p, c_uint32, c_void_p, c_size_t, c_void_p, c_size_t, POINTER(c_size_t))
muster_epoch_free_fn = CFUNCTYPE(None, c_void_p, c_void_p)
muster_reduce_fn = CFUNCTYPE(None, c_void_p, c_void_p, c_void_p, c_uint64)
muster_free_fn = CFUNCTYPE(None, c_void_p)
muster_queue_handler_fn = CFUNCTYPE(None, c_void_p, POINTER(muster_completion), POINTER(muster_error))
muster_wake_fn = CFUNCTYPE(c_int, c_void_p)

muster_agent_outputs._fields_ = [
    ("local_rank", c_uint32),
    ("log_outputs", c_uint32),
    ("console_outputs", c_uint32),
    ("discarded_outputs", c_uint32),
]

muster_agent_config._fields_ = [
    ("struct_size", c_uint32),
    ("flags", c_uint32),
    ("argv", POINTER(c_void_p)),
    ("envp", POINTER(c_void_p)),
    ("directory", c_char_p),
    ("worker_count", c_uint32),
    ("max_restarts", c_uint32),
    ("grace_ns", c_int64),
    ("run_id", c_char_p),
    ("role", c_char_p),
    ("log_dir", c_char_p),
    ("log_outputs", c_uint32),
    ("console_outputs", c_uint32),
    ("out_fd_plus_one", c_int32),
    ("err_fd_plus_one", c_int32),
    ("local_address", c_char_p),
    ("rendezvous", POINTER(muster_rendezvous_config)),
    ("master_address", c_char_p),
    ("master_port", c_uint32),
    ("reserved0", c_uint32),
    ("join_timeout_ns", c_int64),
    ("exit_timeout_ns", c_int64),
    ("outputs", POINTER(muster_agent_outputs)),
    ("output_count", c_uint64),
    ("reserved", c_uint64 * 2),
]

muster_agent_state._fields_ = [
    ("phase", c_uint32),
    ("worker_count", c_uint32),
    ("running", c_uint32),
    ("restarts", c_uint32),
    ("group_rank", c_uint32),
    ("group_world_size", c_uint32),
    ("first_rank", c_uint32),
    ("world_size", c_uint32),
    ("round", c_uint64),
    ("master_address", c_char * 256),
    ("master_port", c_uint32),
    ("reserved", c_uint32 * 7),
]

muster_process_exit._fields_ = [
    ("kind", c_int32),
    ("value", c_int32),
]

muster_agent_worker._fields_ = [
    ("local_rank", c_uint32),
    ("rank", c_uint32),
    ("state", c_uint32),
    ("restarts", c_uint32),
    ("pid", c_int32),
    ("exit", muster_process_exit),
    ("reserved0", c_uint32),
    ("started_unix_ns", c_int64),
    ("ended_unix_ns", c_int64),
    ("failed_unix_ns", c_int64),
    ("round", c_uint64),
    ("message", c_char * 512),
    ("directory", c_char * 256),
]

muster_am_config._fields_ = [
    ("struct_size", c_uint32),
    ("max_bytes", c_uint32),
    ("max_requests", c_uint32),
    ("flags", c_uint32),
    ("queue", c_void_p),
    ("tag", c_uint64),
]

muster_am_peer._fields_ = [
    ("status", c_int32),
    ("requests", c_uint32),
    ("sent", c_uint64),
    ("executed", c_uint64),
    ("unsent_bytes", c_uint64),
    ("max_bytes", c_uint32),
    ("max_requests", c_uint32),
]

muster_am_request_info._fields_ = [
    ("data", c_void_p),
    ("bytes", c_size_t),
    ("peer", c_uint32),
    ("handler", c_uint32),
]

muster_atomic_condition._fields_ = [
    ("cell", c_void_p),
    ("value", c_uint64),
    ("size_bytes", c_uint32),
    ("comparison", c_int32),
    ("is_true", c_uint32),
    ("reserved", c_uint32),
]

muster_aba._fields_ = [
    ("value", c_uint64),
    ("count", c_uint64),
]

muster_error._fields_ = [
    ("status", c_int32),
    ("os_errno", c_int32),
    ("provider_code", c_int64),
    ("rank", c_uint32),
    ("message_bytes", c_uint32),
    ("message", c_char * 232),
]

muster_broker_config._fields_ = [
    ("struct_size", c_uint32),
    ("flags", c_uint32),
    ("parent", c_char_p),
    ("parent_bytes", c_uint64),
    ("window_bytes", c_uint64),
    ("max_members", c_uint32),
    ("reserved", c_uint32),
    ("curve_file", c_char_p),
    ("curve_file_bytes", c_uint64),
    ("broker_secret", c_void_p),
    ("broker_secret_bytes", c_uint64),
]

muster_broker_stats._fields_ = [
    ("members", c_uint64),
    ("brokers", c_uint64),
    ("has_parent", c_uint64),
    ("names", c_uint64),
    ("pairs", c_uint64),
    ("messages", c_uint64),
    ("bytes", c_uint64),
    ("queued_bytes", c_uint64),
    ("connections", c_uint64),
    ("refused", c_uint64),
    ("lost", c_uint64),
    ("multicasts", c_uint64),
    ("reserved", c_uint64 * 4),
]

muster_cluster_config._fields_ = [
    ("struct_size", c_uint32),
    ("flags", c_uint32),
    ("topology", c_uint32),
    ("max_connections", c_uint32),
    ("listen", c_char_p),
    ("listen_bytes", c_uint64),
    ("join_timeout_ns", c_int64),
    ("leave_timeout_ns", c_int64),
    ("queue", c_void_p),
    ("tag", c_uint64),
    ("max_broadcast_bytes", c_uint64),
    ("store", c_char_p),
    ("store_bytes", c_uint64),
    ("reserved1", c_uint64),
]

muster_launch._fields_ = [
    ("struct_size", c_uint32),
    ("flags", c_uint32),
    ("manager", c_char_p),
    ("count", c_uint32),
    ("reserved", c_uint32),
    ("argv", POINTER(c_void_p)),
    ("envp", POINTER(c_void_p)),
    ("directory", c_char_p),
    ("listen", c_char_p),
    ("ident", c_char_p),
    ("connect_idents", c_char_p),
    ("options", c_char_p),
    ("reserved1", c_uint64 * 4),
]

muster_cluster_event._fields_ = [
    ("kind", c_uint32),
    ("member", c_uint32),
    ("status", c_int32),
    ("label_bytes", c_uint32),
    ("stream", c_void_p),
    ("text_bytes", c_uint32),
    ("reserved", c_uint32),
    ("label", c_char * 256),
    ("text", c_char * 232),
    ("broadcast", c_void_p),
    ("data", c_void_p),
    ("size_bytes", c_uint64),
]

muster_member_info._fields_ = [
    ("member", c_uint32),
    ("state", c_uint32),
    ("pid", c_int64),
    ("data", c_uint64),
    ("host", c_char * 256),
    ("address", c_char * 1024),
    ("reserved", c_uint64 * 4),
]

muster_context_config._fields_ = [
    ("struct_size", c_uint32),
    ("flags", c_uint32),
    ("secret", c_void_p),
    ("secret_bytes", c_uint64),
    ("secret_fd_plus_one", c_int32),
    ("max_unauthenticated", c_uint32),
    ("handshake_timeout_ns", c_int64),
    ("heartbeat_ns", c_int64),
    ("silent_ns", c_int64),
    ("dead_ns", c_int64),
    ("window_bytes", c_uint64),
]

muster_context_stats._fields_ = [
    ("loop_wakeups", c_uint64),
    ("mailbox_posts", c_uint64),
    ("streams_open", c_uint64),
    ("streams_made", c_uint64),
    ("handshakes_ok", c_uint64),
    ("handshakes_failed", c_uint64),
    ("bytes_in", c_uint64),
    ("bytes_out", c_uint64),
    ("upgrades", c_uint64),
    ("reserved", c_uint64 * 7),
]

muster_epoch_token._fields_ = [
    ("epoch", c_uint64),
    ("to_global", c_int64),
    ("depth", c_uint64),
    ("state", c_uint64),
    ("index", c_uint32),
    ("reserved", c_uint32),
]

muster_epoch_config._fields_ = [
    ("struct_size", c_uint32),
    ("flags", c_uint32),
    ("max_tokens", c_uint32),
    ("max_pending", c_uint32),
    ("fd", c_int32),
    ("reserved", c_uint32),
    ("offset", c_uint64),
    ("queue", c_void_p),
    ("tag", c_uint64),
]

muster_epoch_attempt._fields_ = [
    ("outcome", c_int32),
    ("token", c_uint32),
    ("process", c_int32),
    ("thread", c_int32),
    ("since_ns", c_uint64),
    ("epoch", c_uint64),
]

muster_epoch_stats._fields_ = [
    ("epoch", c_uint64),
    ("deferred", c_uint64),
    ("freed", c_uint64),
    ("pending", c_uint64),
    ("tokens", c_uint32),
    ("orphaned", c_uint32),
    ("deaths", c_uint32),
    ("is_fenced", c_uint32),
    ("blocking_token", c_uint32),
    ("blocking_process", c_int32),
    ("blocking_thread", c_int32),
    ("reserved", c_uint32),
    ("blocked_ns", c_uint64),
]

muster_forwarder_config._fields_ = [
    ("struct_size", c_uint32),
    ("flags", c_uint32),
    ("address", c_uint64),
    ("max_hops", c_uint32),
    ("max_peers", c_uint32),
    ("max_message_bytes", c_uint64),
    ("max_queued_bytes", c_uint64),
    ("max_queued_messages", c_uint32),
    ("max_unrouted_messages", c_uint32),
    ("max_waiting", c_uint32),
    ("reserved", c_uint32),
    ("inbox", c_void_p),
    ("queue", c_void_p),
    ("tag", c_uint64),
]

muster_forwarder_stats._fields_ = [
    ("peers", c_uint64),
    ("forwarded", c_uint64),
    ("delivered", c_uint64),
    ("undelivered", c_uint64),
    ("hop_limit", c_uint64),
    ("waiting", c_uint64),
    ("reserved", c_uint64 * 4),
]

muster_group_operation._fields_ = [
    ("struct_size", c_uint32),
    ("kind", c_uint32),
    ("type", c_uint32),
    ("reduction", c_uint32),
    ("root", c_uint32),
    ("flags", c_uint32),
    ("count", c_uint64),
    ("input", c_void_p),
    ("output", c_void_p),
    ("counts", POINTER(c_uint64)),
    ("output_counts", POINTER(c_uint64)),
]

muster_group_config._fields_ = [
    ("struct_size", c_uint32),
    ("flags", c_uint32),
    ("rank", c_uint32),
    ("size", c_uint32),
    ("round", c_void_p),
    ("store", c_void_p),
    ("name", c_void_p),
    ("name_bytes", c_uint64),
    ("listen", c_char_p),
    ("listen_bytes", c_uint64),
    ("addresses", c_char_p),
    ("addresses_bytes", c_uint64),
    ("slot_bytes", c_uint64),
    ("cluster", c_void_p),
]

muster_group_status._fields_ = [
    ("state", c_uint32),
    ("kind", c_uint32),
    ("sequence", c_uint64),
    ("shares_memory", c_uint32),
    ("reserved", c_uint32 * 3),
]

muster_manager_request._fields_ = [
    ("struct_size", c_uint32),
    ("operation", c_uint32),
    ("member", c_uint32),
    ("count", c_uint32),
    ("from", c_uint32),
    ("reserved", c_uint32),
    ("data", c_uint64),
    ("launch", POINTER(muster_launch)),
    ("address", c_char_p),
    ("cluster", c_void_p),
    ("cluster_tag", c_uint64),
]

muster_manager_ops._fields_ = [
    ("struct_size", c_uint32),
    ("flags", c_uint32),
    ("launch", CFUNCTYPE(None, c_void_p, c_uint64, POINTER(muster_manager_request))),
    ("connect", CFUNCTYPE(None, c_void_p, c_uint64, POINTER(muster_manager_request))),
    ("connect_worker", CFUNCTYPE(None, c_void_p, c_uint64, POINTER(muster_manager_request))),
    ("manage", CFUNCTYPE(None, c_void_p, c_uint64, POINTER(muster_manager_request))),
    ("kill", CFUNCTYPE(None, c_void_p, c_uint64, POINTER(muster_manager_request))),
    ("cancel", CFUNCTYPE(None, c_void_p, c_uint64)),
    ("destroy", CFUNCTYPE(None, c_void_p)),
]

muster_memory_config._fields_ = [
    ("struct_size", c_uint32),
    ("locale_bits", c_uint32),
    ("segment_bytes", c_uint64),
    ("symmetric_bytes", c_uint64),
    ("max_tokens", c_uint32),
    ("max_pending", c_uint32),
    ("flags", c_uint32),
    ("incarnation_bits", c_uint32),
]

muster_memory_view._fields_ = [
    ("bases", POINTER(c_uint64)),
    ("segment_bytes", c_uint64),
    ("locales", c_uint32),
    ("offset_bits", c_uint32),
]

muster_memory_operation._fields_ = [
    ("struct_size", c_uint32),
    ("kind", c_uint32),
    ("target", c_uint64),
    ("local", c_void_p),
    ("bytes", c_uint64),
    ("cell", c_uint32),
    ("order", c_int32),
    ("operation", c_int32),
    ("notify", c_uint32),
    ("value", c_uint64),
    ("expected", c_uint64),
    ("expected_count", c_uint64),
    ("signal", c_uint64),
]

muster_memory_result._fields_ = [
    ("value", c_uint64),
    ("count", c_uint64),
]

muster_memory_stats._fields_ = [
    ("heap_bytes", c_uint64),
    ("fresh_bytes", c_uint64),
    ("used_bytes", c_uint64),
    ("used_blocks", c_uint64),
    ("allocated", c_uint64),
    ("refused", c_uint64),
    ("symmetric_bytes", c_uint64),
    ("reserved", c_uint64),
]

muster_memory_locale_info._fields_ = [
    ("status", c_int32),
    ("is_mapped", c_uint32),
    ("node", c_uint32),
    ("requests", c_uint32),
    ("dropped", c_uint64),
]

muster_message_header._fields_ = [
    ("struct_size", c_uint32),
    ("type", c_uint32),
    ("source", c_uint64),
    ("destination", c_uint64),
    ("target", c_uint64),
    ("target_version", c_int64),
    ("trace_id", c_uint64 * 2),
    ("span_id", c_uint64),
    ("trace_flags", c_uint32),
    ("hops", c_uint32),
]

muster_buffer._fields_ = [
    ("data", c_void_p),
    ("bytes", c_uint64),
]

muster_value._fields_ = [
    ("integer", c_int64),
    ("real", c_double),
    ("data", c_void_p),
    ("bytes", c_uint64),
]

muster_message_queue_config._fields_ = [
    ("struct_size", c_uint32),
    ("flags", c_uint32),
    ("max_messages", c_uint32),
    ("reserved", c_uint32),
    ("max_bytes", c_uint64),
    ("queue", c_void_p),
    ("tag", c_uint64),
]

muster_message_queue_stats._fields_ = [
    ("messages", c_uint64),
    ("bytes", c_uint64),
    ("pushed", c_uint64),
    ("popped", c_uint64),
    ("full", c_uint64),
    ("reserved", c_uint64 * 3),
]

muster_metrics_config._fields_ = [
    ("struct_size", c_uint32),
    ("flags", c_uint32),
    ("name", c_void_p),
    ("name_bytes", c_uint64),
    ("interval_ns", c_int64),
]

muster_metrics_state._fields_ = [
    ("published", c_uint64),
    ("failed", c_uint64),
    ("status", c_int32),
    ("reserved", c_uint32),
]

muster_process_fd._fields_ = [
    ("parent_fd", c_int32),
    ("child_fd", c_int32),
]

muster_process_config._fields_ = [
    ("struct_size", c_uint32),
    ("flags", c_uint32),
    ("argv", POINTER(c_void_p)),
    ("envp", POINTER(c_void_p)),
    ("directory", c_char_p),
    ("fds", POINTER(muster_process_fd)),
    ("fd_count", c_uint64),
]

muster_completion._fields_ = [
    ("kind", c_int32),
    ("status", c_int32),
    ("tag", c_uint64),
    ("object", c_void_p),
    ("bytes", c_uint64),
    ("request", c_uint64),
    ("events", c_uint32),
    ("reserved", c_uint32 * 5),
]

muster_queue_config._fields_ = [
    ("struct_size", c_uint32),
    ("flags", c_uint32),
    ("capacity", c_uint32),
    ("reserved", c_uint32),
]

muster_queue_stats._fields_ = [
    ("depth", c_uint64),
    ("outstanding", c_uint64),
    ("taken", c_uint64),
    ("wakeups", c_uint64),
    ("log_dropped", c_uint64),
    ("reserved", c_uint64 * 3),
]

muster_rendezvous_config._fields_ = [
    ("struct_size", c_uint32),
    ("flags", c_uint32),
    ("run_id", c_void_p),
    ("run_id_bytes", c_uint64),
    ("url", c_void_p),
    ("url_bytes", c_uint64),
    ("store", c_void_p),
    ("address", c_void_p),
    ("address_bytes", c_uint64),
    ("order_key", c_void_p),
    ("order_key_bytes", c_uint64),
    ("min", c_uint32),
    ("max", c_uint32),
    ("rank", c_uint32),
    ("keep_alive_attempts", c_uint32),
    ("keep_alive_ns", c_int64),
    ("last_call_ns", c_int64),
    ("queue", c_void_p),
    ("tag", c_uint64),
    ("state_dir", c_void_p),
    ("state_dir_bytes", c_uint64),
    ("majority_timeout_ns", c_int64),
    ("reserved", c_uint64 * 1),
]

muster_rendezvous_event._fields_ = [
    ("kind", c_uint32),
    ("rank", c_uint32),
    ("round", c_uint64),
    ("count", c_uint32),
    ("text_bytes", c_uint32),
    ("text", c_char * 232),
]

muster_rendezvous_state._fields_ = [
    ("phase", c_uint32),
    ("flags", c_uint32),
    ("round", c_uint64),
    ("joined", c_uint32),
    ("missing", c_uint32),
    ("waiting", c_uint32),
    ("spares", c_uint32),
    ("present", c_uint32),
    ("exiting", c_uint32),
    ("last_call_remaining_ns", c_int64),
    ("reserved", c_uint64 * 5),
]

muster_round_info._fields_ = [
    ("number", c_uint64),
    ("rank", c_uint32),
    ("world", c_uint32),
    ("flags", c_uint32),
    ("reserved", c_uint32 * 3),
    ("digest", c_uint8 * 32),
]

muster_round_member_info._fields_ = [
    ("address", c_void_p),
    ("address_bytes", c_uint64),
    ("reserved", c_uint64),
]

muster_rendezvous_request._fields_ = [
    ("struct_size", c_uint32),
    ("kind", c_uint32),
    ("member", c_uint64),
    ("config", POINTER(muster_rendezvous_config)),
    ("reason", c_void_p),
    ("reason_bytes", c_uint64),
    ("timeout_ns", c_int64),
]

muster_rendezvous_assignment._fields_ = [
    ("struct_size", c_uint32),
    ("rank", c_uint32),
    ("world", c_uint32),
    ("reserved", c_uint32),
    ("number", c_uint64),
    ("store", c_void_p),
    ("members", POINTER(muster_round_member_info)),
    ("member_count", c_uint64),
    ("digest", c_uint8 * 32),
]

muster_rendezvous_ops._fields_ = [
    ("struct_size", c_uint32),
    ("flags", c_uint32),
    ("request", CFUNCTYPE(None, c_void_p, c_uint64, POINTER(muster_rendezvous_request))),
    ("cancel", CFUNCTYPE(None, c_void_p, c_uint64)),
    ("close", CFUNCTYPE(None, c_void_p, c_uint64)),
    ("destroy", CFUNCTYPE(None, c_void_p)),
]

muster_transport_ops._fields_ = [
    ("struct_size", c_uint32),
    ("flags", c_uint32),
    ("open", CFUNCTYPE(None, c_void_p, c_uint64, c_char_p, c_uint64)),
    ("listen", CFUNCTYPE(None, c_void_p, c_uint64, c_char_p, c_uint64)),
    ("close", CFUNCTYPE(None, c_void_p, c_uint64)),
    ("cancel", CFUNCTYPE(None, c_void_p, c_uint64)),
    ("destroy", CFUNCTYPE(None, c_void_p)),
]

muster_socket_config._fields_ = [
    ("struct_size", c_uint32),
    ("flags", c_uint32),
    ("kind", c_uint32),
    ("max_peers", c_uint32),
    ("address", c_uint64),
    ("max_message_bytes", c_uint64),
    ("max_queued_bytes", c_uint64),
    ("max_queued_messages", c_uint32),
    ("max_unrouted_messages", c_uint32),
    ("queue", c_void_p),
    ("tag", c_uint64),
    ("max_loaned_bytes", c_uint64),
]

muster_socket_event._fields_ = [
    ("kind", c_uint32),
    ("text_bytes", c_uint32),
    ("address", c_uint64),
    ("incarnation", c_uint64),
    ("undelivered", c_uint64),
    ("text", c_char * 256),
]

muster_socket_stats._fields_ = [
    ("peers", c_uint64),
    ("messages_in", c_uint64),
    ("messages_out", c_uint64),
    ("bytes_in", c_uint64),
    ("bytes_out", c_uint64),
    ("queued_messages", c_uint64),
    ("queued_bytes", c_uint64),
    ("undelivered", c_uint64),
    ("connections_made", c_uint64),
    ("connections_lost", c_uint64),
    ("malformed", c_uint64),
    ("full", c_uint64),
    ("reserved", c_uint64 * 4),
]

muster_store_op._fields_ = [
    ("kind", c_uint32),
    ("condition", c_uint32),
    ("key", c_void_p),
    ("key_bytes", c_uint64),
    ("value", c_void_p),
    ("value_bytes", c_uint64),
    ("expected", c_void_p),
    ("expected_bytes", c_uint64),
    ("version", c_uint64),
    ("number", c_int64),
    ("lease", c_uint64),
    ("count", c_uint32),
    ("rank", c_uint32),
]

muster_store_entry._fields_ = [
    ("op", c_uint32),
    ("flags", c_uint32),
    ("version", c_uint64),
    ("number", c_int64),
    ("key", c_void_p),
    ("key_bytes", c_uint64),
    ("value", c_void_p),
    ("value_bytes", c_uint64),
]

muster_store_config._fields_ = [
    ("struct_size", c_uint32),
    ("flags", c_uint32),
    ("max_bytes", c_uint64),
    ("lost_after_ns", c_int64),
    ("grace_ns", c_int64),
    ("reserved", c_uint64),
]

muster_store_request._fields_ = [
    ("struct_size", c_uint32),
    ("kind", c_uint32),
    ("store", c_uint64),
    ("flags", c_uint32),
    ("reserved", c_uint32),
    ("ops", POINTER(muster_store_op)),
    ("op_count", c_uint64),
    ("url", c_char_p),
    ("url_bytes", c_uint64),
    ("lease", c_uint64),
    ("ttl_ns", c_int64),
]

muster_store_traits._fields_ = [
    ("struct_size", c_uint32),
    ("flags", c_uint32),
    ("capabilities", c_uint32),
    ("max_ops", c_uint32),
    ("max_request_bytes", c_uint64),
    ("min_lease_ns", c_int64),
]

muster_store_host_ops._fields_ = [
    ("struct_size", c_uint32),
    ("flags", c_uint32),
    ("request", CFUNCTYPE(None, c_void_p, c_uint64, POINTER(muster_store_request))),
    ("cancel", CFUNCTYPE(None, c_void_p, c_uint64)),
    ("close", CFUNCTYPE(None, c_void_p, c_uint64)),
    ("destroy", CFUNCTYPE(None, c_void_p)),
]

muster_store_server_config._fields_ = [
    ("struct_size", c_uint32),
    ("flags", c_uint32),
    ("data_dir", c_char_p),
    ("data_dir_bytes", c_uint64),
    ("max_bytes", c_uint64),
    ("session_ns", c_int64),
    ("max_clients", c_uint32),
    ("reserved_field", c_uint32),
    ("standby_of", c_char_p),
    ("standby_of_bytes", c_uint64),
    ("pair_lease_ns", c_int64),
]

muster_store_server_stats._fields_ = [
    ("clients", c_uint64),
    ("sessions", c_uint64),
    ("requests", c_uint64),
    ("waiting", c_uint64),
    ("refused", c_uint64),
    ("keys", c_uint64),
    ("bytes", c_uint64),
    ("leases", c_uint64),
    ("revision", c_uint64),
    ("failed", c_uint64),
    ("role", c_uint64),
    ("epoch", c_uint64),
    ("lag", c_uint64),
    ("reserved", c_uint64 * 1),
]

muster_stream_config._fields_ = [
    ("struct_size", c_uint32),
    ("flags", c_uint32),
    ("window_bytes", c_uint64),
]

muster_stream_stats._fields_ = [
    ("bytes_in", c_uint64),
    ("bytes_out", c_uint64),
    ("buffered_in", c_uint64),
    ("buffered_out", c_uint64),
    ("reads", c_uint64),
    ("writes", c_uint64),
    ("waits", c_uint64),
    ("wakeups", c_uint64),
    ("spins_won", c_uint64),
    ("spins_lost", c_uint64),
    ("caller_io", c_uint64),
    ("loop_io", c_uint64),
    ("last_received_ns", c_uint64),
    ("multicast_group", c_uint64),
    ("round_trip_ns", c_uint64),
    ("reserved", c_uint64),
]

muster_trace_config._fields_ = [
    ("struct_size", c_uint32),
    ("events", c_uint32),
    ("name", c_void_p),
    ("name_bytes", c_uint64),
]

muster_trace_state._fields_ = [
    ("events", c_uint64),
    ("threads", c_uint64),
    ("offset_ns", c_int64),
    ("offset_error_ns", c_int64),
    ("is_on", c_uint32),
    ("reserved", c_uint32),
]

muster_transport_config._fields_ = [
    ("struct_size", c_uint32),
    ("flags", c_uint32),
    ("hello", c_void_p),
    ("hello_bytes", c_uint64),
    ("window_bytes", c_uint64),
    ("backlog", c_uint32),
    ("reserved", c_uint32),
    ("retry_ns", c_int64),
    ("listen_timeout_ns", c_int64),
]

muster_worker_config._fields_ = [
    ("struct_size", c_uint32),
    ("flags", c_uint32),
    ("exit_grace_ns", c_int64),
    ("report_fd_plus_one", c_int32),
    ("max_connections", c_uint32),
    ("queue", c_void_p),
    ("tag", c_uint64),
    ("master", c_char_p),
    ("store", c_char_p),
    ("name", c_char_p),
    ("listen", c_char_p),
    ("max_broadcast_bytes", c_uint64),
]

# Of each function: what it returns, and its parameters.
FUNCTIONS = {
    "muster_agent_start": (c_int32, [c_void_p, POINTER(muster_agent_config), c_void_p, c_uint64, POINTER(c_void_p), POINTER(muster_error)]),
    "muster_agent_wait": (c_int32, [c_void_p, c_int64, POINTER(muster_error)]),
    "muster_agent_signal": (c_int32, [c_void_p, c_int32]),
    "muster_agent_stop": (c_int32, [c_void_p, c_int32, c_int64]),
    "muster_agent_get_state": (c_int32, [c_void_p, POINTER(muster_agent_state)]),
    "muster_agent_rendezvous": (c_int32, [c_void_p, POINTER(c_void_p)]),
    "muster_agent_get_worker": (c_int32, [c_void_p, c_uint32, POINTER(muster_agent_worker)]),
    "muster_agent_first_failure": (c_int32, [c_void_p, POINTER(muster_agent_worker)]),
    "muster_agent_failure_text": (c_int32, [c_void_p, c_void_p, c_size_t, POINTER(c_size_t)]),
    "muster_agent_flush": (c_int32, [c_void_p, c_int64]),
    "muster_agent_flush_begin": (c_int32, [c_void_p, c_int64, c_void_p, c_uint64, POINTER(muster_error)]),
    "muster_agent_release": (None, [c_void_p]),
    "muster_am_create": (c_int32, [c_void_p, POINTER(muster_am_config), POINTER(c_void_p), POINTER(muster_error)]),
    "muster_am_set_handler": (c_int32, [c_void_p, c_uint32, muster_am_fn, c_void_p]),
    "muster_am_serve": (c_int32, [c_void_p, c_uint32, c_void_p, c_uint64]),
    "muster_am_add_peer": (c_int32, [c_void_p, c_void_p, POINTER(c_uint32), POINTER(muster_error)]),
    "muster_am_call": (c_int32, [c_void_p, c_uint32, c_uint32, c_void_p, c_size_t, c_void_p, c_size_t, c_int64, POINTER(c_size_t), POINTER(muster_error)]),
    "muster_am_begin": (c_int32, [c_void_p, c_uint32, c_uint32, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_uint64]),
    "muster_am_flush": (c_int32, [c_void_p, c_uint32, c_int64]),
    "muster_am_get_peer": (c_int32, [c_void_p, c_uint32, POINTER(muster_am_peer), POINTER(muster_error)]),
    "muster_am_disconnect": (c_int32, [c_void_p, c_uint32, c_char_p]),
    "muster_am_request_get": (c_int32, [c_void_p, POINTER(muster_am_request_info)]),
    "muster_am_request_reply": (c_int32, [c_void_p, c_int32, c_void_p, c_size_t]),
    "muster_am_request_release": (None, [c_void_p]),
    "muster_am_close": (c_int32, [c_void_p]),
    "muster_am_release": (None, [c_void_p]),
    "muster_atomic_read64": (c_int32, [POINTER(c_uint64), c_int32, POINTER(c_uint64)]),
    "muster_atomic_write64": (c_int32, [POINTER(c_uint64), c_uint64, c_int32]),
    "muster_atomic_exchange64": (c_int32, [POINTER(c_uint64), c_uint64, c_int32, POINTER(c_uint64)]),
    "muster_atomic_compare_exchange64": (c_int32, [POINTER(c_uint64), POINTER(c_uint64), c_uint64, c_int32]),
    "muster_atomic_fetch64": (c_int32, [POINTER(c_uint64), c_int32, c_uint64, c_int32, POINTER(c_uint64)]),
    "muster_atomic_read32": (c_int32, [POINTER(c_uint32), c_int32, POINTER(c_uint32)]),
    "muster_atomic_write32": (c_int32, [POINTER(c_uint32), c_uint32, c_int32]),
    "muster_atomic_exchange32": (c_int32, [POINTER(c_uint32), c_uint32, c_int32, POINTER(c_uint32)]),
    "muster_atomic_compare_exchange32": (c_int32, [POINTER(c_uint32), POINTER(c_uint32), c_uint32, c_int32]),
    "muster_atomic_fetch32": (c_int32, [POINTER(c_uint32), c_int32, c_uint32, c_int32, POINTER(c_uint32)]),
    "muster_atomic_test_and_set": (c_int32, [POINTER(c_uint32), c_int32]),
    "muster_atomic_clear": (c_int32, [POINTER(c_uint32), c_int32]),
    "muster_atomic_wait": (c_int32, [POINTER(muster_atomic_condition), c_uint32, c_uint32, c_int64]),
    "muster_atomic_notify": (c_int32, [c_void_p, c_uint32]),
    "muster_aba_size": (c_uint32, []),
    "muster_aba_alignment": (c_uint32, []),
    "muster_aba_read": (c_int32, [POINTER(muster_aba), POINTER(muster_aba)]),
    "muster_aba_write": (c_int32, [POINTER(muster_aba), c_uint64]),
    "muster_aba_exchange": (c_int32, [POINTER(muster_aba), c_uint64, POINTER(muster_aba)]),
    "muster_aba_compare_exchange": (c_int32, [POINTER(muster_aba), POINTER(muster_aba), c_uint64]),
    "muster_aba_compare_exchange_value": (c_int32, [POINTER(muster_aba), POINTER(c_uint64), c_uint64]),
    "muster_status_name": (c_char_p, [c_int32]),
    "muster_status_text": (c_char_p, [c_int32]),
    "muster_version": (c_char_p, [POINTER(c_uint32), POINTER(c_uint32), POINTER(c_uint32)]),
    "muster_config_init": (c_int32, [c_void_p, c_uint32]),
    "muster_broker_open": (c_int32, [c_void_p, c_char_p, c_size_t, POINTER(muster_broker_config), POINTER(c_void_p), POINTER(muster_error)]),
    "muster_broker_address": (c_int32, [c_void_p, c_void_p, c_size_t, POINTER(c_size_t)]),
    "muster_broker_get_stats": (c_int32, [c_void_p, POINTER(muster_broker_stats)]),
    "muster_broker_close": (c_int32, [c_void_p, c_int64]),
    "muster_broker_close_begin": (c_int32, [c_void_p, c_int64, c_void_p, c_uint64, POINTER(muster_error)]),
    "muster_broker_release": (None, [c_void_p]),
    "muster_cluster_open": (c_int32, [c_void_p, POINTER(muster_cluster_config), POINTER(c_void_p), POINTER(muster_error)]),
    "muster_cluster_open_begin": (c_int32, [c_void_p, POINTER(muster_cluster_config), c_void_p, c_uint64, POINTER(muster_error)]),
    "muster_cluster_add": (c_int32, [c_void_p, POINTER(muster_launch), POINTER(c_uint32), POINTER(muster_error)]),
    "muster_cluster_add_begin": (c_int32, [c_void_p, POINTER(muster_launch), c_void_p, c_uint64, POINTER(muster_error)]),
    "muster_cluster_remove": (c_int32, [c_void_p, c_uint32, c_int64]),
    "muster_cluster_interrupt": (c_int32, [c_void_p, c_uint32]),
    "muster_cluster_next_event": (c_int32, [c_void_p, c_int64, POINTER(muster_cluster_event)]),
    "muster_cluster_store": (c_int32, [c_void_p, c_int64, POINTER(c_void_p), POINTER(muster_error)]),
    "muster_cluster_store_begin": (c_int32, [c_void_p, c_int64, c_void_p, c_uint64, POINTER(muster_error)]),
    "muster_cluster_cancel": (c_int32, [c_void_p]),
    "muster_cluster_dial": (c_int32, [c_void_p, c_uint32, c_void_p, c_size_t, c_int64, POINTER(c_void_p), POINTER(muster_error)]),
    "muster_cluster_dial_begin": (c_int32, [c_void_p, c_uint32, c_void_p, c_size_t, c_int64, c_void_p, c_uint64, POINTER(muster_error)]),
    "muster_cluster_broadcast": (c_int32, [c_void_p, POINTER(c_uint32), c_size_t, c_void_p, c_size_t, c_void_p, c_uint64, c_int64, POINTER(c_int32), POINTER(muster_error)]),
    "muster_cluster_broadcast_begin": (c_int32, [c_void_p, POINTER(c_uint32), c_size_t, c_void_p, c_size_t, c_void_p, c_uint64, c_int64, POINTER(c_int32), c_void_p, c_uint64, POINTER(muster_error)]),
    "muster_broadcast_release": (None, [c_void_p]),
    "muster_cluster_get_member": (c_int32, [c_void_p, c_uint32, POINTER(muster_member_info)]),
    "muster_cluster_list": (c_int32, [c_void_p, POINTER(c_uint32), c_size_t, POINTER(c_size_t)]),
    "muster_cluster_self": (c_uint32, [c_void_p]),
    "muster_cluster_close": (c_int32, [c_void_p, c_int64]),
    "muster_cluster_close_begin": (c_int32, [c_void_p, c_int64, c_void_p, c_uint64, POINTER(muster_error)]),
    "muster_cluster_release": (None, [c_void_p]),
    "muster_context_create": (c_int32, [POINTER(muster_context_config), POINTER(c_void_p), POINTER(muster_error)]),
    "muster_context_default": (c_int32, [POINTER(c_void_p), POINTER(muster_error)]),
    "muster_context_close": (c_int32, [c_void_p, c_int64]),
    "muster_context_cancel": (c_int32, [c_void_p]),
    "muster_context_release": (None, [c_void_p]),
    "muster_context_fd": (c_int32, [c_void_p, POINTER(c_int32)]),
    "muster_context_progress": (c_int32, [c_void_p, c_int64]),
    "muster_context_secret": (c_int32, [c_void_p, c_void_p, c_size_t, POINTER(c_size_t)]),
    "muster_context_log": (c_int32, [c_void_p, c_int32, c_void_p, c_uint64]),
    "muster_context_get_stats": (c_int32, [c_void_p, POINTER(muster_context_stats)]),
    "muster_epoch_size": (c_uint64, [c_uint32, c_uint32]),
    "muster_epoch_create": (c_int32, [POINTER(muster_epoch_config), POINTER(c_void_p), POINTER(muster_error)]),
    "muster_epoch_open": (c_int32, [POINTER(muster_epoch_config), POINTER(c_void_p), POINTER(muster_error)]),
    "muster_epoch_release": (None, [c_void_p]),
    "muster_epoch_register": (c_int32, [c_void_p, POINTER(POINTER(muster_epoch_token)), POINTER(muster_error)]),
    "muster_epoch_unregister": (c_int32, [POINTER(muster_epoch_token)]),
    "muster_epoch_pin": (c_int32, [POINTER(muster_epoch_token)]),
    "muster_epoch_unpin": (c_int32, [POINTER(muster_epoch_token)]),
    "muster_epoch_repin": (c_int32, [POINTER(muster_epoch_token)]),
    "muster_epoch_online": (c_int32, [POINTER(muster_epoch_token)]),
    "muster_epoch_quiescent": (c_int32, [POINTER(muster_epoch_token)]),
    "muster_epoch_offline": (c_int32, [POINTER(muster_epoch_token)]),
    "muster_epoch_protect": (c_int32, [POINTER(muster_epoch_token), c_uint32, c_uint64]),
    "muster_epoch_defer": (c_int32, [POINTER(muster_epoch_token), muster_epoch_free_fn, c_void_p, c_void_p]),
    "muster_epoch_retire": (c_int32, [POINTER(muster_epoch_token), c_uint64]),
    "muster_epoch_try_reclaim": (c_int32, [POINTER(muster_epoch_token), POINTER(muster_epoch_attempt)]),
    "muster_epoch_advance": (c_int32, [c_void_p, POINTER(muster_epoch_attempt)]),
    "muster_epoch_poll": (c_int32, [POINTER(muster_epoch_token), c_uint32, c_uint64, POINTER(c_uint64), c_uint32, POINTER(c_uint32), POINTER(c_uint32)]),
    "muster_epoch_synchronize": (c_int32, [POINTER(muster_epoch_token), c_int64, POINTER(muster_epoch_attempt)]),
    "muster_epoch_barrier": (c_int32, [POINTER(muster_epoch_token), c_int64]),
    "muster_epoch_clear": (c_int32, [c_void_p, POINTER(c_uint64)]),
    "muster_epoch_get_stats": (c_int32, [c_void_p, POINTER(muster_epoch_stats)]),
    "muster_forwarder_create": (c_int32, [c_void_p, POINTER(muster_forwarder_config), POINTER(c_void_p), POINTER(muster_error)]),
    "muster_forwarder_socket": (c_void_p, [c_void_p]),
    "muster_forwarder_add_route": (c_int32, [c_void_p, c_uint64, c_uint64]),
    "muster_forwarder_remove_route": (c_int32, [c_void_p, c_uint64]),
    "muster_forwarder_set_hook": (c_int32, [c_void_p, c_uint32, c_void_p]),
    "muster_forwarder_send": (c_int32, [c_void_p, c_void_p, c_int64, POINTER(muster_error)]),
    "muster_forwarder_get_stats": (c_int32, [c_void_p, POINTER(muster_forwarder_stats)]),
    "muster_forwarder_close": (c_int32, [c_void_p, c_int64]),
    "muster_forwarder_release": (None, [c_void_p]),
    "muster_group_open": (c_int32, [c_void_p, POINTER(muster_group_config), c_int64, POINTER(c_void_p), POINTER(muster_error)]),
    "muster_group_split": (c_int32, [c_void_p, c_int64, c_int64, c_int64, POINTER(c_void_p), POINTER(muster_error)]),
    "muster_group_connect": (c_int32, [c_void_p, c_int64, POINTER(c_void_p), c_uint32, POINTER(muster_error)]),
    "muster_group_rank": (c_uint32, [c_void_p]),
    "muster_group_size": (c_uint32, [c_void_p]),
    "muster_group_add_reduction": (c_int32, [c_void_p, c_uint32, muster_reduce_fn, c_void_p, POINTER(c_uint32)]),
    "muster_group_run": (c_int32, [c_void_p, POINTER(muster_group_operation), c_int64, POINTER(muster_error)]),
    "muster_group_begin": (c_int32, [c_void_p, POINTER(muster_group_operation), c_int64, c_void_p, c_uint64, POINTER(muster_error)]),
    "muster_group_barrier": (c_int32, [c_void_p, c_int64, POINTER(muster_error)]),
    "muster_group_broadcast": (c_int32, [c_void_p, c_void_p, c_uint64, c_uint32, c_uint32, c_int64, POINTER(muster_error)]),
    "muster_group_reduce": (c_int32, [c_void_p, c_void_p, c_void_p, c_uint64, c_uint32, c_uint32, c_uint32, c_int64, POINTER(muster_error)]),
    "muster_group_all_reduce": (c_int32, [c_void_p, c_void_p, c_void_p, c_uint64, c_uint32, c_uint32, c_int64, POINTER(muster_error)]),
    "muster_group_reduce_scatter": (c_int32, [c_void_p, c_void_p, c_void_p, c_uint64, c_uint32, c_uint32, c_int64, POINTER(muster_error)]),
    "muster_group_scan": (c_int32, [c_void_p, c_void_p, c_void_p, c_uint64, c_uint32, c_uint32, c_int64, POINTER(muster_error)]),
    "muster_group_gather": (c_int32, [c_void_p, c_void_p, c_void_p, c_uint64, c_uint32, c_uint32, c_int64, POINTER(muster_error)]),
    "muster_group_all_gather": (c_int32, [c_void_p, c_void_p, c_void_p, c_uint64, c_uint32, c_int64, POINTER(muster_error)]),
    "muster_group_scatter": (c_int32, [c_void_p, c_void_p, c_void_p, c_uint64, c_uint32, c_uint32, c_int64, POINTER(muster_error)]),
    "muster_group_all_to_all": (c_int32, [c_void_p, c_void_p, c_void_p, c_uint64, c_uint32, c_int64, POINTER(muster_error)]),
    "muster_group_send": (c_int32, [c_void_p, c_uint32, c_void_p, c_uint64, c_int64, POINTER(muster_error)]),
    "muster_group_receive": (c_int32, [c_void_p, c_uint32, c_void_p, c_uint64, c_int64, POINTER(c_uint64), POINTER(muster_error)]),
    "muster_group_get_status": (c_int32, [c_void_p, c_uint32, POINTER(muster_group_status)]),
    "muster_group_revoke": (c_int32, [c_void_p, c_char_p, c_size_t]),
    "muster_group_close": (c_int32, [c_void_p, c_int64, POINTER(muster_error)]),
    "muster_group_release": (None, [c_void_p]),
    "muster_manager_serve": (c_int32, [c_void_p, c_char_p, c_size_t, c_uint32, c_void_p, c_uint64, POINTER(muster_error)]),
    "muster_manager_serve_ops": (c_int32, [c_void_p, c_char_p, c_size_t, POINTER(muster_manager_ops), c_void_p, c_void_p, POINTER(muster_error)]),
    "muster_manager_withdraw": (c_int32, [c_void_p, c_char_p, c_size_t]),
    "muster_manager_request_read": (c_int32, [c_void_p, c_uint64, POINTER(muster_manager_request)]),
    "muster_manager_ticket": (c_int32, [c_void_p, c_uint64, c_uint32, c_void_p, c_size_t, POINTER(c_size_t)]),
    "muster_manager_worker_ready": (c_int32, [c_void_p, c_uint64, c_uint32, c_char_p, c_size_t, c_uint64, POINTER(muster_error)]),
    "muster_manager_worker_failed": (c_int32, [c_void_p, c_uint64, c_uint32, c_int32, c_char_p, c_size_t, POINTER(muster_error)]),
    "muster_manager_worker_ended": (c_int32, [c_void_p, c_void_p, c_uint32, c_char_p, c_size_t, POINTER(muster_error)]),
    "muster_manager_request_done": (c_int32, [c_void_p, c_uint64, c_char_p, c_size_t, POINTER(muster_error)]),
    "muster_manager_request_fail": (c_int32, [c_void_p, c_uint64, c_int32, c_char_p, c_size_t]),
    "muster_memory_open": (c_int32, [c_void_p, POINTER(muster_memory_config), c_int64, POINTER(c_void_p), POINTER(muster_error)]),
    "muster_memory_release": (None, [c_void_p]),
    "muster_memory_locale": (c_uint32, [c_void_p]),
    "muster_memory_locales": (c_uint32, [c_void_p]),
    "muster_memory_pointer": (c_int32, [c_void_p, c_uint32, c_uint64, POINTER(c_uint64)]),
    "muster_memory_parts": (c_int32, [c_void_p, c_uint64, POINTER(c_uint32), POINTER(c_uint64)]),
    "muster_memory_address": (c_int32, [c_void_p, c_uint64, c_uint64, POINTER(c_void_p)]),
    "muster_memory_get_view": (c_int32, [c_void_p, POINTER(muster_memory_view)]),
    "muster_memory_symmetric": (c_int32, [c_void_p, c_uint64, c_uint64, c_int64, POINTER(c_uint64), POINTER(muster_error)]),
    "muster_memory_allocate": (c_int32, [c_void_p, c_uint32, c_uint64, c_int64, POINTER(c_uint64)]),
    "muster_memory_free": (c_int32, [c_void_p, c_uint64, c_int64]),
    "muster_memory_run": (c_int32, [c_void_p, POINTER(muster_memory_operation), c_int64, POINTER(muster_memory_result)]),
    "muster_memory_begin": (c_int32, [c_void_p, POINTER(muster_memory_operation), POINTER(muster_memory_result), c_void_p, c_uint64]),
    "muster_memory_flush": (c_int32, [c_void_p, c_uint32, c_int64]),
    "muster_memory_get_locale": (c_int32, [c_void_p, c_uint32, POINTER(muster_memory_locale_info), POINTER(muster_error)]),
    "muster_memory_epoch": (c_int32, [c_void_p, POINTER(c_void_p)]),
    "muster_memory_reclaim": (c_int32, [c_void_p, POINTER(muster_epoch_token), c_uint32, c_uint64, POINTER(c_uint32)]),
    "muster_memory_clear": (c_int32, [c_void_p, POINTER(muster_epoch_token), c_int64, POINTER(c_uint64)]),
    "muster_memory_get_stats": (c_int32, [c_void_p, c_uint32, c_int64, POINTER(muster_memory_stats)]),
    "muster_message_create": (c_int32, [POINTER(c_void_p)]),
    "muster_message_copy": (c_int32, [c_void_p, POINTER(c_void_p)]),
    "muster_message_get_header": (c_int32, [c_void_p, POINTER(muster_message_header)]),
    "muster_message_set_header": (c_int32, [c_void_p, POINTER(muster_message_header)]),
    "muster_message_swap_addresses": (c_int32, [c_void_p]),
    "muster_message_add_frame": (c_int32, [c_void_p, c_void_p, c_size_t]),
    "muster_message_lend_frame": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p, c_uint64]),
    "muster_message_take_frame": (c_int32, [c_void_p, c_void_p, c_size_t, muster_free_fn]),
    "muster_message_frame_count": (c_uint32, [c_void_p]),
    "muster_message_frame": (c_int32, [c_void_p, c_uint32, POINTER(muster_buffer)]),
    "muster_message_first": (c_int32, [c_void_p, POINTER(muster_buffer)]),
    "muster_message_last": (c_int32, [c_void_p, POINTER(muster_buffer)]),
    "muster_message_next": (c_int32, [c_void_p, POINTER(muster_buffer)]),
    "muster_message_bytes": (c_int32, [c_void_p, POINTER(c_uint64), POINTER(c_uint64)]),
    "muster_message_to_buffers": (c_int32, [c_void_p, POINTER(muster_buffer), c_uint32, POINTER(c_uint32)]),
    "muster_message_from_buffers": (c_int32, [POINTER(muster_buffer), c_uint32, POINTER(c_void_p), POINTER(muster_error)]),
    "muster_message_add_values": (c_int32, [c_void_p, c_char_p, POINTER(muster_value), c_uint32, POINTER(muster_error)]),
    "muster_message_get_values": (c_int32, [c_void_p, c_uint32, c_char_p, c_void_p, POINTER(muster_value), c_uint32, POINTER(c_uint32), POINTER(muster_error)]),
    "muster_message_release": (None, [c_void_p]),
    "muster_message_address": (c_int32, [c_int64, c_int64, c_int64, POINTER(c_uint64)]),
    "muster_message_address_parts": (c_int32, [c_uint64, POINTER(c_int64), POINTER(c_int64), POINTER(c_int64)]),
    "muster_message_address_matches": (c_int32, [c_uint64, c_uint64]),
    "muster_message_address_singa": (c_int32, [c_int32, c_int32, c_int32, POINTER(c_uint64)]),
    "muster_message_target": (c_uint64, [c_uint32, c_uint32]),
    "muster_message_queue_create": (c_int32, [c_void_p, POINTER(muster_message_queue_config), POINTER(c_void_p), POINTER(muster_error)]),
    "muster_message_queue_push": (c_int32, [c_void_p, c_void_p, c_int64]),
    "muster_message_queue_pop": (c_int32, [c_void_p, c_int64, POINTER(c_void_p)]),
    "muster_message_queue_get_stats": (c_int32, [c_void_p, POINTER(muster_message_queue_stats)]),
    "muster_message_queue_cancel": (c_int32, [c_void_p]),
    "muster_message_queue_close": (c_int32, [c_void_p]),
    "muster_message_queue_release": (None, [c_void_p]),
    "muster_metrics_write": (c_int32, [c_void_p, c_void_p, c_size_t, POINTER(c_size_t)]),
    "muster_metrics_publish": (c_int32, [c_void_p, c_void_p, POINTER(muster_metrics_config), POINTER(c_void_p), POINTER(muster_error)]),
    "muster_metrics_get_state": (c_int32, [c_void_p, POINTER(muster_metrics_state)]),
    "muster_metrics_release": (None, [c_void_p]),
    "muster_process_spawn": (c_int32, [c_void_p, POINTER(muster_process_config), POINTER(c_void_p), POINTER(muster_error)]),
    "muster_process_pid": (c_int32, [c_void_p]),
    "muster_process_wait": (c_int32, [c_void_p, c_int64, POINTER(muster_process_exit)]),
    "muster_process_watch": (c_int32, [c_void_p, c_void_p, c_uint64]),
    "muster_process_kill": (c_int32, [c_void_p, c_int32]),
    "muster_process_release": (None, [c_void_p]),
    "muster_process_exit_with": (c_int32, [c_void_p, c_int32, c_int64, POINTER(muster_error)]),
    "muster_queue_create": (c_int32, [c_void_p, POINTER(muster_queue_config), POINTER(c_void_p), POINTER(muster_error)]),
    "muster_queue_next": (c_int32, [c_void_p, c_int64, POINTER(muster_completion), POINTER(muster_error)]),
    "muster_queue_dispatch": (c_int32, [c_void_p, c_int64, muster_queue_handler_fn, c_void_p, POINTER(c_uint64)]),
    "muster_queue_cancel": (c_int32, [c_void_p]),
    "muster_queue_cancel_operation": (c_int32, [c_void_p, c_uint64]),
    "muster_queue_post": (c_int32, [c_void_p, c_uint64, c_uint64]),
    "muster_queue_fd": (c_int32, [c_void_p, POINTER(c_int32)]),
    "muster_queue_watch_fd": (c_int32, [c_void_p, c_int32, c_uint32, c_uint64, POINTER(muster_error)]),
    "muster_queue_unwatch_fd": (c_int32, [c_void_p, c_int32]),
    "muster_queue_set_wake": (c_int32, [c_void_p, muster_wake_fn, c_void_p]),
    "muster_queue_close": (c_int32, [c_void_p]),
    "muster_queue_release": (None, [c_void_p]),
    "muster_queue_get_stats": (c_int32, [c_void_p, POINTER(muster_queue_stats)]),
    "muster_rendezvous_open": (c_int32, [c_void_p, POINTER(muster_rendezvous_config), c_int64, POINTER(c_void_p), POINTER(muster_error)]),
    "muster_rendezvous_open_begin": (c_int32, [c_void_p, POINTER(muster_rendezvous_config), c_int64, c_void_p, c_uint64, POINTER(muster_error)]),
    "muster_rendezvous_join": (c_int32, [c_void_p, c_int64, POINTER(c_void_p), POINTER(muster_error)]),
    "muster_rendezvous_leave": (c_int32, [c_void_p, c_int64, POINTER(muster_error)]),
    "muster_rendezvous_exit": (c_int32, [c_void_p, c_int64, POINTER(muster_error)]),
    "muster_rendezvous_abort": (c_int32, [c_void_p, c_void_p, c_size_t, c_int64, POINTER(muster_error)]),
    "muster_rendezvous_close": (c_int32, [c_void_p, c_void_p, c_size_t, c_int64, POINTER(muster_error)]),
    "muster_rendezvous_begin": (c_int32, [c_void_p, c_uint32, c_void_p, c_size_t, c_int64, c_void_p, c_uint64, POINTER(muster_error)]),
    "muster_rendezvous_cancel": (c_int32, [c_void_p]),
    "muster_rendezvous_next_event": (c_int32, [c_void_p, c_int64, POINTER(muster_rendezvous_event)]),
    "muster_rendezvous_get_state": (c_int32, [c_void_p, POINTER(muster_rendezvous_state)]),
    "muster_rendezvous_list": (c_int32, [c_void_p, c_void_p, c_size_t, c_int64, POINTER(c_size_t), POINTER(muster_error)]),
    "muster_rendezvous_list_begin": (c_int32, [c_void_p, c_void_p, c_size_t, c_int64, c_void_p, c_uint64, POINTER(muster_error)]),
    "muster_rendezvous_release": (None, [c_void_p]),
    "muster_round_get_info": (c_int32, [c_void_p, POINTER(muster_round_info)]),
    "muster_round_store": (c_int32, [c_void_p, POINTER(c_void_p), POINTER(muster_error)]),
    "muster_round_member": (c_int32, [c_void_p, c_uint32, c_int64, POINTER(muster_round_member_info), POINTER(muster_error)]),
    "muster_round_member_begin": (c_int32, [c_void_p, c_uint32, c_int64, c_void_p, c_uint64, POINTER(muster_error)]),
    "muster_round_release": (None, [c_void_p]),
    "muster_rendezvous_serve": (c_int32, [c_void_p, c_char_p, c_size_t, c_void_p, c_uint64, POINTER(muster_error)]),
    "muster_rendezvous_serve_ops": (c_int32, [c_void_p, c_char_p, c_size_t, POINTER(muster_rendezvous_ops), c_void_p, c_void_p, POINTER(muster_error)]),
    "muster_rendezvous_withdraw": (c_int32, [c_void_p, c_char_p, c_size_t]),
    "muster_rendezvous_request_read": (c_int32, [c_void_p, c_uint64, POINTER(muster_rendezvous_request)]),
    "muster_rendezvous_request_round": (c_int32, [c_void_p, c_uint64, POINTER(muster_rendezvous_assignment), POINTER(muster_error)]),
    "muster_rendezvous_request_done": (c_int32, [c_void_p, c_uint64, c_void_p, c_size_t, POINTER(muster_error)]),
    "muster_rendezvous_request_fail": (c_int32, [c_void_p, c_uint64, c_int32, c_char_p, c_size_t]),
    "muster_rendezvous_notify": (c_int32, [c_void_p, c_uint64, POINTER(muster_rendezvous_event), POINTER(muster_error)]),
    "muster_transport_serve": (c_int32, [c_void_p, c_char_p, c_size_t, c_uint32, c_void_p, c_uint64, POINTER(muster_error)]),
    "muster_transport_serve_ops": (c_int32, [c_void_p, c_char_p, c_size_t, POINTER(muster_transport_ops), c_void_p, c_void_p, POINTER(muster_error)]),
    "muster_transport_withdraw": (c_int32, [c_void_p, c_char_p, c_size_t]),
    "muster_request_address": (c_int32, [c_void_p, c_uint64, c_void_p, c_size_t, POINTER(c_size_t)]),
    "muster_request_stream": (c_int32, [c_void_p, c_uint64, POINTER(c_void_p), POINTER(muster_error)]),
    "muster_request_listening": (c_int32, [c_void_p, c_uint64, c_char_p, c_size_t, POINTER(muster_error)]),
    "muster_request_fail": (c_int32, [c_void_p, c_uint64, c_int32, c_char_p, c_size_t]),
    "muster_transport_incoming": (c_int32, [c_void_p, c_uint64, c_char_p, c_size_t, POINTER(c_uint64), POINTER(c_void_p), POINTER(muster_error)]),
    "muster_socket_create": (c_int32, [c_void_p, POINTER(muster_socket_config), POINTER(c_void_p), POINTER(muster_error)]),
    "muster_socket_address": (c_uint64, [c_void_p]),
    "muster_socket_bind": (c_int32, [c_void_p, c_char_p, c_size_t, c_void_p, c_size_t, POINTER(muster_error)]),
    "muster_socket_connect": (c_int32, [c_void_p, c_char_p, c_size_t, POINTER(muster_error)]),
    "muster_socket_wait_peers": (c_int32, [c_void_p, c_uint32, c_int64, POINTER(c_uint32)]),
    "muster_socket_send": (c_int32, [c_void_p, c_void_p, c_int64, POINTER(muster_error)]),
    "muster_socket_loan_frame": (c_int32, [c_void_p, c_void_p, c_size_t, POINTER(c_void_p), POINTER(muster_error)]),
    "muster_socket_receive": (c_int32, [c_void_p, c_int64, POINTER(c_void_p)]),
    "muster_socket_next_event": (c_int32, [c_void_p, c_int64, POINTER(muster_socket_event)]),
    "muster_socket_get_stats": (c_int32, [c_void_p, POINTER(muster_socket_stats)]),
    "muster_socket_cancel": (c_int32, [c_void_p]),
    "muster_socket_close": (c_int32, [c_void_p, c_int64]),
    "muster_socket_release": (None, [c_void_p]),
    "muster_store_open": (c_int32, [c_void_p, c_char_p, c_size_t, POINTER(muster_store_config), c_int64, POINTER(c_void_p), POINTER(muster_error)]),
    "muster_store_open_begin": (c_int32, [c_void_p, c_char_p, c_size_t, POINTER(muster_store_config), c_int64, c_void_p, c_uint64, POINTER(muster_error)]),
    "muster_store_view": (c_int32, [c_void_p, c_void_p, c_size_t, POINTER(c_void_p), POINTER(muster_error)]),
    "muster_store_capabilities": (c_uint32, [c_void_p]),
    "muster_store_do": (c_int32, [c_void_p, POINTER(muster_store_op), c_size_t, c_int64, POINTER(c_void_p), POINTER(muster_error)]),
    "muster_store_begin": (c_int32, [c_void_p, POINTER(muster_store_op), c_size_t, c_int64, c_void_p, c_uint64, POINTER(c_uint64), POINTER(muster_error)]),
    "muster_store_cancel": (c_int32, [c_void_p, c_uint64]),
    "muster_store_lease": (c_int32, [c_void_p, c_int64, c_uint32, c_int64, POINTER(c_void_p), POINTER(muster_error)]),
    "muster_store_lease_begin": (c_int32, [c_void_p, c_int64, c_uint32, c_int64, c_void_p, c_uint64, POINTER(c_uint64), POINTER(muster_error)]),
    "muster_lease_id": (c_uint64, [c_void_p]),
    "muster_lease_keep": (c_int32, [c_void_p]),
    "muster_lease_end": (c_int32, [c_void_p, c_int64, POINTER(muster_error)]),
    "muster_lease_end_begin": (c_int32, [c_void_p, c_int64, c_void_p, c_uint64, POINTER(muster_error)]),
    "muster_lease_release": (None, [c_void_p]),
    "muster_store_release": (None, [c_void_p]),
    "muster_store_result_count": (c_uint64, [c_void_p]),
    "muster_store_result_entry": (c_int32, [c_void_p, c_uint64, POINTER(muster_store_entry)]),
    "muster_store_result_revision": (c_uint64, [c_void_p]),
    "muster_store_result_release": (None, [c_void_p]),
    "muster_store_serve": (c_int32, [c_void_p, c_char_p, c_size_t, c_void_p, c_uint64, POINTER(muster_error)]),
    "muster_store_serve_ops": (c_int32, [c_void_p, c_char_p, c_size_t, POINTER(muster_store_host_ops), c_void_p, c_void_p, POINTER(muster_error)]),
    "muster_store_withdraw": (c_int32, [c_void_p, c_char_p, c_size_t]),
    "muster_store_request_read": (c_int32, [c_void_p, c_uint64, POINTER(muster_store_request)]),
    "muster_store_request_open": (c_int32, [c_void_p, c_uint64, POINTER(muster_store_traits), POINTER(muster_error)]),
    "muster_store_request_done": (c_int32, [c_void_p, c_uint64, c_int32, POINTER(muster_store_entry), c_size_t, c_uint64, POINTER(muster_error)]),
    "muster_store_request_fail": (c_int32, [c_void_p, c_uint64, c_int32, c_uint32, c_char_p, c_size_t]),
    "muster_store_server_open": (c_int32, [c_void_p, c_char_p, c_size_t, POINTER(muster_store_server_config), POINTER(c_void_p), POINTER(muster_error)]),
    "muster_store_server_address": (c_int32, [c_void_p, c_void_p, c_size_t, POINTER(c_size_t)]),
    "muster_store_server_get_stats": (c_int32, [c_void_p, POINTER(muster_store_server_stats)]),
    "muster_store_server_force_standalone": (c_int32, [c_void_p]),
    "muster_store_server_close": (c_int32, [c_void_p, c_int64]),
    "muster_store_server_close_begin": (c_int32, [c_void_p, c_int64, c_void_p, c_uint64, POINTER(muster_error)]),
    "muster_store_server_release": (None, [c_void_p]),
    "muster_stream_pair": (c_int32, [c_void_p, POINTER(muster_stream_config), POINTER(c_void_p), POINTER(c_void_p), POINTER(muster_error)]),
    "muster_stream_write": (c_int32, [c_void_p, c_void_p, c_size_t, c_int64, POINTER(c_size_t)]),
    "muster_stream_write_many": (c_int32, [POINTER(c_void_p), c_uint32, c_void_p, c_size_t, c_int64, POINTER(c_int32), POINTER(c_size_t)]),
    "muster_stream_write_owned": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p, c_uint64]),
    "muster_stream_write_owned_many": (c_int32, [POINTER(c_void_p), c_uint32, c_void_p, c_size_t, c_void_p, POINTER(c_uint64), POINTER(c_int32)]),
    "muster_stream_reserve": (c_int32, [c_void_p, c_size_t, c_int64, POINTER(c_void_p), POINTER(c_size_t)]),
    "muster_stream_commit": (c_int32, [c_void_p, c_size_t]),
    "muster_stream_flush": (c_int32, [c_void_p, c_int64]),
    "muster_stream_flush_begin": (c_int32, [c_void_p, c_int64, c_void_p, c_uint64, POINTER(muster_error)]),
    "muster_stream_read": (c_int32, [c_void_p, c_void_p, c_size_t, c_int64, POINTER(c_size_t)]),
    "muster_stream_read_into": (c_int32, [c_void_p, c_void_p, c_size_t, c_uint32, c_int64, POINTER(c_size_t)]),
    "muster_stream_read_begin": (c_int32, [c_void_p, c_void_p, c_size_t, c_uint32, c_void_p, c_uint64]),
    "muster_stream_peek": (c_int32, [c_void_p, c_size_t, c_int64, POINTER(c_void_p), POINTER(c_size_t)]),
    "muster_stream_consume": (c_int32, [c_void_p, c_size_t]),
    "muster_stream_finish": (c_int32, [c_void_p]),
    "muster_stream_abort": (c_int32, [c_void_p, c_uint64, c_char_p, c_size_t]),
    "muster_stream_close": (c_int32, [c_void_p, c_int64]),
    "muster_stream_close_begin": (c_int32, [c_void_p, c_int64, c_void_p, c_uint64, POINTER(muster_error)]),
    "muster_stream_release": (None, [c_void_p]),
    "muster_stream_cancel": (c_int32, [c_void_p, c_uint32]),
    "muster_stream_watch": (c_int32, [c_void_p, c_uint32, c_void_p, c_uint64]),
    "muster_stream_reason": (c_int32, [c_void_p, POINTER(c_uint64), POINTER(muster_error)]),
    "muster_stream_peer": (c_int32, [c_void_p, c_void_p, c_size_t, POINTER(c_size_t)]),
    "muster_stream_local_address": (c_int32, [c_void_p, c_void_p, c_size_t, POINTER(c_size_t)]),
    "muster_stream_exit_with_peer": (c_int32, [c_void_p, c_int64]),
    "muster_stream_get_stats": (c_int32, [c_void_p, POINTER(muster_stream_stats)]),
    "muster_trace_start": (c_int32, [POINTER(muster_trace_config), POINTER(muster_error)]),
    "muster_trace_stop": (None, []),
    "muster_trace_begin": (None, [c_char_p, c_size_t]),
    "muster_trace_end": (None, []),
    "muster_trace_mark": (None, [c_char_p, c_size_t]),
    "muster_trace_flow": (None, [c_char_p, c_size_t, c_uint64]),
    "muster_trace_get_state": (c_int32, [POINTER(muster_trace_state)]),
    "muster_trace_align": (c_int32, [c_void_p, c_int64, POINTER(muster_trace_state), POINTER(muster_error)]),
    "muster_trace_save": (c_int32, [c_char_p, c_size_t, POINTER(muster_error)]),
    "muster_transport_dial": (c_int32, [c_void_p, c_char_p, c_size_t, POINTER(muster_transport_config), c_int64, POINTER(c_void_p), POINTER(muster_error)]),
    "muster_transport_dial_begin": (c_int32, [c_void_p, c_char_p, c_size_t, POINTER(muster_transport_config), c_int64, c_void_p, c_uint64, POINTER(muster_error)]),
    "muster_transport_listen": (c_int32, [c_void_p, c_char_p, c_size_t, POINTER(muster_transport_config), POINTER(c_void_p), POINTER(muster_error)]),
    "muster_transport_listen_begin": (c_int32, [c_void_p, c_char_p, c_size_t, POINTER(muster_transport_config), c_void_p, c_uint64, POINTER(muster_error)]),
    "muster_listener_accept": (c_int32, [c_void_p, c_int64, POINTER(c_void_p), POINTER(muster_error)]),
    "muster_listener_watch": (c_int32, [c_void_p, c_void_p, c_uint64]),
    "muster_listener_address": (c_int32, [c_void_p, c_void_p, c_size_t, POINTER(c_size_t)]),
    "muster_listener_cancel": (c_int32, [c_void_p]),
    "muster_listener_close": (c_int32, [c_void_p]),
    "muster_listener_close_begin": (c_int32, [c_void_p, c_void_p, c_uint64, POINTER(muster_error)]),
    "muster_listener_release": (None, [c_void_p]),
    "muster_transport_hello": (c_int32, [c_void_p, c_void_p, c_size_t, POINTER(c_size_t)]),
    "muster_worker_context": (c_int32, [POINTER(muster_context_config), c_int32, POINTER(c_void_p), POINTER(muster_error)]),
    "muster_worker_start": (c_int32, [c_void_p, POINTER(muster_worker_config), c_int64, POINTER(c_void_p), POINTER(muster_error)]),
    "muster_worker_start_begin": (c_int32, [c_void_p, POINTER(muster_worker_config), c_int64, POINTER(c_void_p), POINTER(muster_error)]),
}

# Of each structure: its size, and the offsets of its fields, for the test of layouts.
LAYOUT = {
    "muster_agent_outputs": (16, {"local_rank": 0, "log_outputs": 4, "console_outputs": 8, "discarded_outputs": 12}),
    "muster_agent_config": (168, {"struct_size": 0, "flags": 4, "argv": 8, "envp": 16, "directory": 24, "worker_count": 32, "max_restarts": 36, "grace_ns": 40, "run_id": 48, "role": 56, "log_dir": 64, "log_outputs": 72, "console_outputs": 76, "out_fd_plus_one": 80, "err_fd_plus_one": 84, "local_address": 88, "rendezvous": 96, "master_address": 104, "master_port": 112, "reserved0": 116, "join_timeout_ns": 120, "exit_timeout_ns": 128, "outputs": 136, "output_count": 144, "reserved": 152}),
    "muster_agent_state": (328, {"phase": 0, "worker_count": 4, "running": 8, "restarts": 12, "group_rank": 16, "group_world_size": 20, "first_rank": 24, "world_size": 28, "round": 32, "master_address": 40, "master_port": 296, "reserved": 300}),
    "muster_agent_worker": (832, {"local_rank": 0, "rank": 4, "state": 8, "restarts": 12, "pid": 16, "exit": 20, "reserved0": 28, "started_unix_ns": 32, "ended_unix_ns": 40, "failed_unix_ns": 48, "round": 56, "message": 64, "directory": 576}),
    "muster_am_config": (32, {"struct_size": 0, "max_bytes": 4, "max_requests": 8, "flags": 12, "queue": 16, "tag": 24}),
    "muster_am_peer": (40, {"status": 0, "requests": 4, "sent": 8, "executed": 16, "unsent_bytes": 24, "max_bytes": 32, "max_requests": 36}),
    "muster_am_request_info": (24, {"data": 0, "bytes": 8, "peer": 16, "handler": 20}),
    "muster_atomic_condition": (32, {"cell": 0, "value": 8, "size_bytes": 16, "comparison": 20, "is_true": 24, "reserved": 28}),
    "muster_aba": (16, {"value": 0, "count": 8}),
    "muster_error": (256, {"status": 0, "os_errno": 4, "provider_code": 8, "rank": 16, "message_bytes": 20, "message": 24}),
    "muster_broker_config": (72, {"struct_size": 0, "flags": 4, "parent": 8, "parent_bytes": 16, "window_bytes": 24, "max_members": 32, "reserved": 36, "curve_file": 40, "curve_file_bytes": 48, "broker_secret": 56, "broker_secret_bytes": 64}),
    "muster_broker_stats": (128, {"members": 0, "brokers": 8, "has_parent": 16, "names": 24, "pairs": 32, "messages": 40, "bytes": 48, "queued_bytes": 56, "connections": 64, "refused": 72, "lost": 80, "multicasts": 88, "reserved": 96}),
    "muster_cluster_config": (96, {"struct_size": 0, "flags": 4, "topology": 8, "max_connections": 12, "listen": 16, "listen_bytes": 24, "join_timeout_ns": 32, "leave_timeout_ns": 40, "queue": 48, "tag": 56, "max_broadcast_bytes": 64, "store": 72, "store_bytes": 80, "reserved1": 88}),
    "muster_launch": (112, {"struct_size": 0, "flags": 4, "manager": 8, "count": 16, "reserved": 20, "argv": 24, "envp": 32, "directory": 40, "listen": 48, "ident": 56, "connect_idents": 64, "options": 72, "reserved1": 80}),
    "muster_cluster_event": (544, {"kind": 0, "member": 4, "status": 8, "label_bytes": 12, "stream": 16, "text_bytes": 24, "reserved": 28, "label": 32, "text": 288, "broadcast": 520, "data": 528, "size_bytes": 536}),
    "muster_member_info": (1336, {"member": 0, "state": 4, "pid": 8, "data": 16, "host": 24, "address": 280, "reserved": 1304}),
    "muster_context_config": (72, {"struct_size": 0, "flags": 4, "secret": 8, "secret_bytes": 16, "secret_fd_plus_one": 24, "max_unauthenticated": 28, "handshake_timeout_ns": 32, "heartbeat_ns": 40, "silent_ns": 48, "dead_ns": 56, "window_bytes": 64}),
    "muster_context_stats": (128, {"loop_wakeups": 0, "mailbox_posts": 8, "streams_open": 16, "streams_made": 24, "handshakes_ok": 32, "handshakes_failed": 40, "bytes_in": 48, "bytes_out": 56, "upgrades": 64, "reserved": 72}),
    "muster_epoch_token": (40, {"epoch": 0, "to_global": 8, "depth": 16, "state": 24, "index": 32, "reserved": 36}),
    "muster_epoch_config": (48, {"struct_size": 0, "flags": 4, "max_tokens": 8, "max_pending": 12, "fd": 16, "reserved": 20, "offset": 24, "queue": 32, "tag": 40}),
    "muster_epoch_attempt": (32, {"outcome": 0, "token": 4, "process": 8, "thread": 12, "since_ns": 16, "epoch": 24}),
    "muster_epoch_stats": (72, {"epoch": 0, "deferred": 8, "freed": 16, "pending": 24, "tokens": 32, "orphaned": 36, "deaths": 40, "is_fenced": 44, "blocking_token": 48, "blocking_process": 52, "blocking_thread": 56, "reserved": 60, "blocked_ns": 64}),
    "muster_forwarder_config": (80, {"struct_size": 0, "flags": 4, "address": 8, "max_hops": 16, "max_peers": 20, "max_message_bytes": 24, "max_queued_bytes": 32, "max_queued_messages": 40, "max_unrouted_messages": 44, "max_waiting": 48, "reserved": 52, "inbox": 56, "queue": 64, "tag": 72}),
    "muster_forwarder_stats": (80, {"peers": 0, "forwarded": 8, "delivered": 16, "undelivered": 24, "hop_limit": 32, "waiting": 40, "reserved": 48}),
    "muster_group_operation": (64, {"struct_size": 0, "kind": 4, "type": 8, "reduction": 12, "root": 16, "flags": 20, "count": 24, "input": 32, "output": 40, "counts": 48, "output_counts": 56}),
    "muster_group_config": (96, {"struct_size": 0, "flags": 4, "rank": 8, "size": 12, "round": 16, "store": 24, "name": 32, "name_bytes": 40, "listen": 48, "listen_bytes": 56, "addresses": 64, "addresses_bytes": 72, "slot_bytes": 80, "cluster": 88}),
    "muster_group_status": (32, {"state": 0, "kind": 4, "sequence": 8, "shares_memory": 16, "reserved": 20}),
    "muster_manager_request": (64, {"struct_size": 0, "operation": 4, "member": 8, "count": 12, "from": 16, "reserved": 20, "data": 24, "launch": 32, "address": 40, "cluster": 48, "cluster_tag": 56}),
    "muster_manager_ops": (64, {"struct_size": 0, "flags": 4, "launch": 8, "connect": 16, "connect_worker": 24, "manage": 32, "kill": 40, "cancel": 48, "destroy": 56}),
    "muster_memory_config": (40, {"struct_size": 0, "locale_bits": 4, "segment_bytes": 8, "symmetric_bytes": 16, "max_tokens": 24, "max_pending": 28, "flags": 32, "incarnation_bits": 36}),
    "muster_memory_view": (24, {"bases": 0, "segment_bytes": 8, "locales": 16, "offset_bits": 20}),
    "muster_memory_operation": (80, {"struct_size": 0, "kind": 4, "target": 8, "local": 16, "bytes": 24, "cell": 32, "order": 36, "operation": 40, "notify": 44, "value": 48, "expected": 56, "expected_count": 64, "signal": 72}),
    "muster_memory_result": (16, {"value": 0, "count": 8}),
    "muster_memory_stats": (64, {"heap_bytes": 0, "fresh_bytes": 8, "used_bytes": 16, "used_blocks": 24, "allocated": 32, "refused": 40, "symmetric_bytes": 48, "reserved": 56}),
    "muster_memory_locale_info": (24, {"status": 0, "is_mapped": 4, "node": 8, "requests": 12, "dropped": 16}),
    "muster_message_header": (72, {"struct_size": 0, "type": 4, "source": 8, "destination": 16, "target": 24, "target_version": 32, "trace_id": 40, "span_id": 56, "trace_flags": 64, "hops": 68}),
    "muster_buffer": (16, {"data": 0, "bytes": 8}),
    "muster_value": (32, {"integer": 0, "real": 8, "data": 16, "bytes": 24}),
    "muster_message_queue_config": (40, {"struct_size": 0, "flags": 4, "max_messages": 8, "reserved": 12, "max_bytes": 16, "queue": 24, "tag": 32}),
    "muster_message_queue_stats": (64, {"messages": 0, "bytes": 8, "pushed": 16, "popped": 24, "full": 32, "reserved": 40}),
    "muster_metrics_config": (32, {"struct_size": 0, "flags": 4, "name": 8, "name_bytes": 16, "interval_ns": 24}),
    "muster_metrics_state": (24, {"published": 0, "failed": 8, "status": 16, "reserved": 20}),
    "muster_process_fd": (8, {"parent_fd": 0, "child_fd": 4}),
    "muster_process_config": (48, {"struct_size": 0, "flags": 4, "argv": 8, "envp": 16, "directory": 24, "fds": 32, "fd_count": 40}),
    "muster_process_exit": (8, {"kind": 0, "value": 4}),
    "muster_completion": (64, {"kind": 0, "status": 4, "tag": 8, "object": 16, "bytes": 24, "request": 32, "events": 40, "reserved": 44}),
    "muster_queue_config": (16, {"struct_size": 0, "flags": 4, "capacity": 8, "reserved": 12}),
    "muster_queue_stats": (64, {"depth": 0, "outstanding": 8, "taken": 16, "wakeups": 24, "log_dropped": 32, "reserved": 40}),
    "muster_rendezvous_config": (160, {"struct_size": 0, "flags": 4, "run_id": 8, "run_id_bytes": 16, "url": 24, "url_bytes": 32, "store": 40, "address": 48, "address_bytes": 56, "order_key": 64, "order_key_bytes": 72, "min": 80, "max": 84, "rank": 88, "keep_alive_attempts": 92, "keep_alive_ns": 96, "last_call_ns": 104, "queue": 112, "tag": 120, "state_dir": 128, "state_dir_bytes": 136, "majority_timeout_ns": 144, "reserved": 152}),
    "muster_rendezvous_event": (256, {"kind": 0, "rank": 4, "round": 8, "count": 16, "text_bytes": 20, "text": 24}),
    "muster_rendezvous_state": (88, {"phase": 0, "flags": 4, "round": 8, "joined": 16, "missing": 20, "waiting": 24, "spares": 28, "present": 32, "exiting": 36, "last_call_remaining_ns": 40, "reserved": 48}),
    "muster_round_info": (64, {"number": 0, "rank": 8, "world": 12, "flags": 16, "reserved": 20, "digest": 32}),
    "muster_round_member_info": (24, {"address": 0, "address_bytes": 8, "reserved": 16}),
    "muster_rendezvous_request": (48, {"struct_size": 0, "kind": 4, "member": 8, "config": 16, "reason": 24, "reason_bytes": 32, "timeout_ns": 40}),
    "muster_rendezvous_assignment": (80, {"struct_size": 0, "rank": 4, "world": 8, "reserved": 12, "number": 16, "store": 24, "members": 32, "member_count": 40, "digest": 48}),
    "muster_rendezvous_ops": (40, {"struct_size": 0, "flags": 4, "request": 8, "cancel": 16, "close": 24, "destroy": 32}),
    "muster_transport_ops": (48, {"struct_size": 0, "flags": 4, "open": 8, "listen": 16, "close": 24, "cancel": 32, "destroy": 40}),
    "muster_socket_config": (72, {"struct_size": 0, "flags": 4, "kind": 8, "max_peers": 12, "address": 16, "max_message_bytes": 24, "max_queued_bytes": 32, "max_queued_messages": 40, "max_unrouted_messages": 44, "queue": 48, "tag": 56, "max_loaned_bytes": 64}),
    "muster_socket_event": (288, {"kind": 0, "text_bytes": 4, "address": 8, "incarnation": 16, "undelivered": 24, "text": 32}),
    "muster_socket_stats": (128, {"peers": 0, "messages_in": 8, "messages_out": 16, "bytes_in": 24, "bytes_out": 32, "queued_messages": 40, "queued_bytes": 48, "undelivered": 56, "connections_made": 64, "connections_lost": 72, "malformed": 80, "full": 88, "reserved": 96}),
    "muster_store_op": (88, {"kind": 0, "condition": 4, "key": 8, "key_bytes": 16, "value": 24, "value_bytes": 32, "expected": 40, "expected_bytes": 48, "version": 56, "number": 64, "lease": 72, "count": 80, "rank": 84}),
    "muster_store_entry": (56, {"op": 0, "flags": 4, "version": 8, "number": 16, "key": 24, "key_bytes": 32, "value": 40, "value_bytes": 48}),
    "muster_store_config": (40, {"struct_size": 0, "flags": 4, "max_bytes": 8, "lost_after_ns": 16, "grace_ns": 24, "reserved": 32}),
    "muster_store_request": (72, {"struct_size": 0, "kind": 4, "store": 8, "flags": 16, "reserved": 20, "ops": 24, "op_count": 32, "url": 40, "url_bytes": 48, "lease": 56, "ttl_ns": 64}),
    "muster_store_traits": (32, {"struct_size": 0, "flags": 4, "capabilities": 8, "max_ops": 12, "max_request_bytes": 16, "min_lease_ns": 24}),
    "muster_store_host_ops": (40, {"struct_size": 0, "flags": 4, "request": 8, "cancel": 16, "close": 24, "destroy": 32}),
    "muster_store_server_config": (72, {"struct_size": 0, "flags": 4, "data_dir": 8, "data_dir_bytes": 16, "max_bytes": 24, "session_ns": 32, "max_clients": 40, "reserved_field": 44, "standby_of": 48, "standby_of_bytes": 56, "pair_lease_ns": 64}),
    "muster_store_server_stats": (112, {"clients": 0, "sessions": 8, "requests": 16, "waiting": 24, "refused": 32, "keys": 40, "bytes": 48, "leases": 56, "revision": 64, "failed": 72, "role": 80, "epoch": 88, "lag": 96, "reserved": 104}),
    "muster_stream_config": (16, {"struct_size": 0, "flags": 4, "window_bytes": 8}),
    "muster_stream_stats": (128, {"bytes_in": 0, "bytes_out": 8, "buffered_in": 16, "buffered_out": 24, "reads": 32, "writes": 40, "waits": 48, "wakeups": 56, "spins_won": 64, "spins_lost": 72, "caller_io": 80, "loop_io": 88, "last_received_ns": 96, "multicast_group": 104, "round_trip_ns": 112, "reserved": 120}),
    "muster_trace_config": (24, {"struct_size": 0, "events": 4, "name": 8, "name_bytes": 16}),
    "muster_trace_state": (40, {"events": 0, "threads": 8, "offset_ns": 16, "offset_error_ns": 24, "is_on": 32, "reserved": 36}),
    "muster_transport_config": (56, {"struct_size": 0, "flags": 4, "hello": 8, "hello_bytes": 16, "window_bytes": 24, "backlog": 32, "reserved": 36, "retry_ns": 40, "listen_timeout_ns": 48}),
    "muster_worker_config": (80, {"struct_size": 0, "flags": 4, "exit_grace_ns": 8, "report_fd_plus_one": 16, "max_connections": 20, "queue": 24, "tag": 32, "master": 40, "store": 48, "name": 56, "listen": 64, "max_broadcast_bytes": 72}),
}
