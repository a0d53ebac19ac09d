-- SPDX-License-Identifier: MIT
-- Written by bindings/lua/generate from include/muster/*.h; do not edit.
--
-- The C surface: declarations for ffi.cdef; for each function what it takes and gives, for muster.lua to build a Lua
-- function of; sizes and places of fields, for the test of layouts.
local surface = {}

surface.cdef = [[
typedef int32_t muster_status;
typedef uint64_t muster_gptr;
typedef struct muster_aba muster_aba;
typedef struct muster_agent muster_agent;
typedef struct muster_agent_config muster_agent_config;
typedef struct muster_agent_outputs muster_agent_outputs;
typedef struct muster_agent_state muster_agent_state;
typedef struct muster_agent_worker muster_agent_worker;
typedef struct muster_am muster_am;
typedef struct muster_am_config muster_am_config;
typedef struct muster_am_peer muster_am_peer;
typedef struct muster_am_request muster_am_request;
typedef struct muster_am_request_info muster_am_request_info;
typedef struct muster_atomic_condition muster_atomic_condition;
typedef struct muster_broadcast muster_broadcast;
typedef struct muster_broker muster_broker;
typedef struct muster_broker_config muster_broker_config;
typedef struct muster_broker_stats muster_broker_stats;
typedef struct muster_buffer muster_buffer;
typedef struct muster_cluster muster_cluster;
typedef struct muster_cluster_config muster_cluster_config;
typedef struct muster_cluster_event muster_cluster_event;
typedef struct muster_completion muster_completion;
typedef struct muster_context muster_context;
typedef struct muster_context_config muster_context_config;
typedef struct muster_context_stats muster_context_stats;
typedef struct muster_epoch muster_epoch;
typedef struct muster_epoch_attempt muster_epoch_attempt;
typedef struct muster_epoch_config muster_epoch_config;
typedef struct muster_epoch_stats muster_epoch_stats;
typedef struct muster_epoch_token muster_epoch_token;
typedef struct muster_error muster_error;
typedef struct muster_forwarder muster_forwarder;
typedef struct muster_forwarder_config muster_forwarder_config;
typedef struct muster_forwarder_stats muster_forwarder_stats;
typedef struct muster_group muster_group;
typedef struct muster_group_config muster_group_config;
typedef struct muster_group_operation muster_group_operation;
typedef struct muster_group_status muster_group_status;
typedef struct muster_launch muster_launch;
typedef struct muster_lease muster_lease;
typedef struct muster_listener muster_listener;
typedef struct muster_manager_ops muster_manager_ops;
typedef struct muster_manager_request muster_manager_request;
typedef struct muster_member_info muster_member_info;
typedef struct muster_memory muster_memory;
typedef struct muster_memory_config muster_memory_config;
typedef struct muster_memory_locale_info muster_memory_locale_info;
typedef struct muster_memory_operation muster_memory_operation;
typedef struct muster_memory_result muster_memory_result;
typedef struct muster_memory_stats muster_memory_stats;
typedef struct muster_memory_view muster_memory_view;
typedef struct muster_message muster_message;
typedef struct muster_message_header muster_message_header;
typedef struct muster_message_queue muster_message_queue;
typedef struct muster_message_queue_config muster_message_queue_config;
typedef struct muster_message_queue_stats muster_message_queue_stats;
typedef struct muster_metrics muster_metrics;
typedef struct muster_metrics_config muster_metrics_config;
typedef struct muster_metrics_state muster_metrics_state;
typedef struct muster_process muster_process;
typedef struct muster_process_config muster_process_config;
typedef struct muster_process_exit muster_process_exit;
typedef struct muster_process_fd muster_process_fd;
typedef struct muster_queue muster_queue;
typedef struct muster_queue_config muster_queue_config;
typedef struct muster_queue_stats muster_queue_stats;
typedef struct muster_rendezvous muster_rendezvous;
typedef struct muster_rendezvous_assignment muster_rendezvous_assignment;
typedef struct muster_rendezvous_config muster_rendezvous_config;
typedef struct muster_rendezvous_event muster_rendezvous_event;
typedef struct muster_rendezvous_ops muster_rendezvous_ops;
typedef struct muster_rendezvous_request muster_rendezvous_request;
typedef struct muster_rendezvous_state muster_rendezvous_state;
typedef struct muster_round muster_round;
typedef struct muster_round_info muster_round_info;
typedef struct muster_round_member_info muster_round_member_info;
typedef struct muster_socket muster_socket;
typedef struct muster_socket_config muster_socket_config;
typedef struct muster_socket_event muster_socket_event;
typedef struct muster_socket_stats muster_socket_stats;
typedef struct muster_store muster_store;
typedef struct muster_store_config muster_store_config;
typedef struct muster_store_entry muster_store_entry;
typedef struct muster_store_host_ops muster_store_host_ops;
typedef struct muster_store_op muster_store_op;
typedef struct muster_store_request muster_store_request;
typedef struct muster_store_result muster_store_result;
typedef struct muster_store_server muster_store_server;
typedef struct muster_store_server_config muster_store_server_config;
typedef struct muster_store_server_stats muster_store_server_stats;
typedef struct muster_store_traits muster_store_traits;
typedef struct muster_stream muster_stream;
typedef struct muster_stream_config muster_stream_config;
typedef struct muster_stream_stats muster_stream_stats;
typedef struct muster_trace_config muster_trace_config;
typedef struct muster_trace_state muster_trace_state;
typedef struct muster_transport_config muster_transport_config;
typedef struct muster_transport_ops muster_transport_ops;
typedef struct muster_value muster_value;
typedef struct muster_worker_config muster_worker_config;
enum muster_agent_flag { MUSTER_AGENT_NO_GUARD = 1, MUSTER_AGENT_VIRTUAL_LOCAL_RANK = 2 };
enum muster_agent_output { MUSTER_AGENT_STDOUT = 1, MUSTER_AGENT_STDERR = 2 };
enum muster_agent_phase { MUSTER_AGENT_JOINING = 1, MUSTER_AGENT_STARTING = 2, MUSTER_AGENT_RUNNING = 3, MUSTER_AGENT_STOPPING = 4, MUSTER_AGENT_DONE = 5, MUSTER_AGENT_ENDED = 6 };
enum muster_agent_worker_state { MUSTER_WORKER_NONE = 0, MUSTER_WORKER_RUNNING = 1, MUSTER_WORKER_SUCCEEDED = 2, MUSTER_WORKER_FAILED = 3, MUSTER_WORKER_STOPPED = 4 };
enum muster_agent_event { MUSTER_AGENT_STARTED = 1, MUSTER_AGENT_WORKER_ENDED = 2, MUSTER_AGENT_RESTARTING = 3, MUSTER_AGENT_RENDEZVOUS_EVENT = 4 };
enum muster_am_flags { MUSTER_AM_NO_POLLING = 1 };
enum muster_am_event { MUSTER_AM_PEER_ENDED = 1 };
enum muster_atomic_order { MUSTER_ATOMIC_SEQ_CST = 0, MUSTER_ATOMIC_ACQ_REL = 1, MUSTER_ATOMIC_RELAXED = 2 };
enum muster_atomic_operation { MUSTER_ATOMIC_ADD = 0, MUSTER_ATOMIC_AND = 1, MUSTER_ATOMIC_OR = 2, MUSTER_ATOMIC_XOR = 3, MUSTER_ATOMIC_MIN = 4, MUSTER_ATOMIC_MAX = 5, MUSTER_ATOMIC_UMIN = 6, MUSTER_ATOMIC_UMAX = 7 };
enum muster_atomic_comparison { MUSTER_ATOMIC_EQUAL = 0, MUSTER_ATOMIC_NOT_EQUAL = 1, MUSTER_ATOMIC_LESS = 2, MUSTER_ATOMIC_LESS_EQUAL = 3, MUSTER_ATOMIC_GREATER = 4, MUSTER_ATOMIC_GREATER_EQUAL = 5 };
enum muster_status_value { MUSTER_OK = 0, MUSTER_AGAIN = 1, MUSTER_TIMEOUT = 2, MUSTER_E_ARG = -1, MUSTER_E_ABI = -2, MUSTER_E_NOMEM = -3, MUSTER_E_LIMIT = -4, MUSTER_E_CLOSED = -5, MUSTER_E_CANCELED = -6, MUSTER_E_FORKED = -7, MUSTER_E_WOULD_DEADLOCK = -8, MUSTER_E_UNSUPPORTED = -9, MUSTER_E_EXISTS = -10, MUSTER_E_NOT_FOUND = -11, MUSTER_E_STALE = -12, MUSTER_E_BUSY = -13, MUSTER_E_PERMISSION = -14, MUSTER_E_AUTH = -15, MUSTER_E_PROTOCOL = -16, MUSTER_E_ADDRESS = -17, MUSTER_E_UNREACHABLE = -18, MUSTER_E_PEER = -19, MUSTER_E_ABORTED = -20, MUSTER_E_END = -21, MUSTER_E_SYSTEM = -22, MUSTER_E_PLUGIN = -23, MUSTER_E_INTERNAL = -24, MUSTER_E_CHANGED = -25, MUSTER_E_STORE_LOST = -26, MUSTER_E_QUORUM = -27, MUSTER_E_MISMATCH = -28 };
enum muster_broker_flag { MUSTER_BROKER_OPEN = 1, MUSTER_BROKER_NO_CURVE = 2 };
enum muster_cluster_member_id { MUSTER_CLUSTER_MASTER = 0 };
enum muster_cluster_topology { MUSTER_CLUSTER_ALL_TO_ALL = 0, MUSTER_CLUSTER_MASTER_WORKER = 1, MUSTER_CLUSTER_TREE = 2, MUSTER_CLUSTER_CUSTOM = 3 };
enum muster_launch_flag { MUSTER_LAUNCH_MASTER_DIALS = 1, MUSTER_LAUNCH_NO_LISTEN = 2 };
enum muster_cluster_event_kind { MUSTER_CLUSTER_LAUNCHED = 1, MUSTER_CLUSTER_CONNECTED = 2, MUSTER_CLUSTER_JOINED = 3, MUSTER_CLUSTER_FAILED = 4, MUSTER_CLUSTER_DEAD = 5, MUSTER_CLUSTER_REMOVED = 6, MUSTER_CLUSTER_STREAM = 7, MUSTER_CLUSTER_INTERRUPT = 8, MUSTER_CLUSTER_LEAVE = 9, MUSTER_CLUSTER_MASTER_GONE = 10, MUSTER_CLUSTER_BROADCAST = 11 };
enum muster_member_state { MUSTER_MEMBER_LAUNCHING = 1, MUSTER_MEMBER_LAUNCHED = 2, MUSTER_MEMBER_CONNECTED = 3, MUSTER_MEMBER_JOINED = 4, MUSTER_MEMBER_LEAVING = 5, MUSTER_MEMBER_GONE = 6 };
enum muster_context_flag { MUSTER_CONTEXT_EXTERNAL = 1, MUSTER_CONTEXT_NO_SEAL = 2, MUSTER_CONTEXT_SEAL_ALWAYS = 4, MUSTER_CONTEXT_NO_UPGRADE = 8 };
enum muster_log_level { MUSTER_LOG_OFF = 0, MUSTER_LOG_ERROR = 1, MUSTER_LOG_WARN = 2, MUSTER_LOG_INFO = 3, MUSTER_LOG_DEBUG = 4 };
enum muster_epoch_token_state { MUSTER_EPOCH_TOKEN_FREE = 0, MUSTER_EPOCH_TOKEN_IN_USE = 1, MUSTER_EPOCH_TOKEN_ORPHANED = 2, MUSTER_EPOCH_TOKEN_ADOPTED = 3 };
enum muster_epoch_flags { MUSTER_EPOCH_FENCED = 1, MUSTER_EPOCH_SHARED = 2, MUSTER_EPOCH_THREAD_BOUND = 4 };
enum muster_epoch_ready { MUSTER_EPOCH_BLOCKED = 1 };
enum muster_epoch_outcome { MUSTER_EPOCH_ADVANCED = 1, MUSTER_EPOCH_LOST = 2, MUSTER_EPOCH_HELD = 3 };
enum muster_type { MUSTER_TYPE_I8 = 1, MUSTER_TYPE_U8 = 2, MUSTER_TYPE_I16 = 3, MUSTER_TYPE_U16 = 4, MUSTER_TYPE_I32 = 5, MUSTER_TYPE_U32 = 6, MUSTER_TYPE_I64 = 7, MUSTER_TYPE_U64 = 8, MUSTER_TYPE_F16 = 9, MUSTER_TYPE_BF16 = 10, MUSTER_TYPE_F32 = 11, MUSTER_TYPE_F64 = 12, MUSTER_TYPE_OF_REDUCTION = 13 };
enum muster_reduction { MUSTER_REDUCE_SUM = 1, MUSTER_REDUCE_PRODUCT = 2, MUSTER_REDUCE_MIN = 3, MUSTER_REDUCE_MAX = 4, MUSTER_REDUCE_AND = 5, MUSTER_REDUCE_OR = 6, MUSTER_REDUCE_XOR = 7 };
enum muster_group_kind { MUSTER_GROUP_BARRIER = 1, MUSTER_GROUP_BROADCAST = 2, MUSTER_GROUP_REDUCE = 3, MUSTER_GROUP_ALL_REDUCE = 4, MUSTER_GROUP_REDUCE_SCATTER = 5, MUSTER_GROUP_SCAN = 6, MUSTER_GROUP_GATHER = 7, MUSTER_GROUP_ALL_GATHER = 8, MUSTER_GROUP_SCATTER = 9, MUSTER_GROUP_ALL_TO_ALL = 10 };
enum muster_group_operation_flag { MUSTER_GROUP_EXCLUSIVE = 1 };
enum muster_group_flag { MUSTER_GROUP_NO_SHARED_MEMORY = 1, MUSTER_GROUP_MESSAGES = 2, MUSTER_GROUP_RANK_OF_MEMBER = 4 };
enum muster_group_member_state { MUSTER_GROUP_MEMBER_IDLE = 1, MUSTER_GROUP_MEMBER_ACTIVE = 2, MUSTER_GROUP_MEMBER_MISSING = 3, MUSTER_GROUP_MEMBER_FAILED = 4 };
enum muster_manager_operation { MUSTER_MANAGER_LAUNCH = 1, MUSTER_MANAGER_CONNECT = 2, MUSTER_MANAGER_CONNECT_WORKER = 4, MUSTER_MANAGER_REGISTER = 8, MUSTER_MANAGER_DEREGISTER = 16, MUSTER_MANAGER_INTERRUPT = 32, MUSTER_MANAGER_KILL = 64, MUSTER_MANAGER_FINALIZE = 128 };
enum muster_memory_flag { MUSTER_MEMORY_NO_SHARED_MEMORY = 1 };
enum muster_memory_kind { MUSTER_MEMORY_PUT = 1, MUSTER_MEMORY_GET = 2, MUSTER_MEMORY_READ = 3, MUSTER_MEMORY_WRITE = 4, MUSTER_MEMORY_EXCHANGE = 5, MUSTER_MEMORY_COMPARE_EXCHANGE = 6, MUSTER_MEMORY_FETCH = 7 };
enum muster_memory_cell { MUSTER_MEMORY_WORD64 = 0, MUSTER_MEMORY_WORD32 = 1, MUSTER_MEMORY_ABA = 2 };
enum muster_message_type { MUSTER_MESSAGE_GET = 0, MUSTER_MESSAGE_PUT = 1, MUSTER_MESSAGE_SYNC = 2, MUSTER_MESSAGE_UPDATE = 3, MUSTER_MESSAGE_SYNC_REQUEST = 4, MUSTER_MESSAGE_SYNC_RESPONSE = 5, MUSTER_MESSAGE_STOP = 6, MUSTER_MESSAGE_DATA = 7, MUSTER_MESSAGE_GOT = 8, MUSTER_MESSAGE_UPDATED = 9, MUSTER_MESSAGE_CONNECT = 10, MUSTER_MESSAGE_METRIC = 11, MUSTER_MESSAGE_USER = 256 };
enum muster_message_any { MUSTER_MESSAGE_ANY = -1 };
enum muster_message_queue_ready { MUSTER_MESSAGE_QUEUE_FILLED = 1, MUSTER_MESSAGE_QUEUE_HAS_ROOM = 2 };
enum muster_process_exit_kind { MUSTER_PROCESS_EXITED = 1, MUSTER_PROCESS_KILLED = 2, MUSTER_PROCESS_UNKNOWN = 3 };
enum muster_completion_kind { MUSTER_DONE_READ = 1, MUSTER_DONE_RELEASED = 2, MUSTER_DONE_DIAL = 3, MUSTER_DONE_EXIT = 4, MUSTER_DONE_USER = 5, MUSTER_DONE_STORE = 6, MUSTER_DONE_LEASE = 7, MUSTER_DONE_RENDEZVOUS = 8, MUSTER_DONE_AGENT = 9, MUSTER_DONE_BROADCAST = 10, MUSTER_DONE_OPEN = 11, MUSTER_DONE_CALL = 12, MUSTER_DONE_LISTEN = 13, MUSTER_DONE_MESSAGE = 14, MUSTER_DONE_AM = 15, MUSTER_DONE_MEMORY = 18, MUSTER_EVENT_READY = 16, MUSTER_EVENT_LOG = 17, MUSTER_EVENT_AGENT = 19, MUSTER_REQUEST_OPEN = 32, MUSTER_REQUEST_LISTEN = 33, MUSTER_REQUEST_CLOSE = 34, MUSTER_REQUEST_CANCEL = 35, MUSTER_REQUEST_STORE = 36, MUSTER_REQUEST_RENDEZVOUS = 37, MUSTER_REQUEST_MANAGER = 38, MUSTER_REQUEST_AM = 39 };
enum muster_queue_fd_event { MUSTER_QUEUE_FD_READABLE = 1, MUSTER_QUEUE_FD_WRITABLE = 2, MUSTER_QUEUE_FD_ENDED = 4 };
enum muster_rendezvous_flag { MUSTER_RENDEZVOUS_HAS_RANK = 1, MUSTER_RENDEZVOUS_REOPEN = 2, MUSTER_RENDEZVOUS_DISCARD_STATE = 4 };
enum muster_rendezvous_operation { MUSTER_RENDEZVOUS_JOIN = 1, MUSTER_RENDEZVOUS_LEAVE = 2, MUSTER_RENDEZVOUS_EXIT = 3, MUSTER_RENDEZVOUS_ABORT = 4, MUSTER_RENDEZVOUS_CLOSE = 5 };
enum muster_rendezvous_event_kind { MUSTER_RENDEZVOUS_JOINED = 1, MUSTER_RENDEZVOUS_LAST_CALL = 2, MUSTER_RENDEZVOUS_COMPLETE = 3, MUSTER_RENDEZVOUS_LEFT = 4, MUSTER_RENDEZVOUS_DEAD = 5, MUSTER_RENDEZVOUS_WAITING = 6, MUSTER_RENDEZVOUS_ABORTED = 7, MUSTER_RENDEZVOUS_EXPELLED = 8, MUSTER_RENDEZVOUS_CLOSED = 9, MUSTER_RENDEZVOUS_LOST = 10 };
enum muster_rendezvous_phase { MUSTER_RENDEZVOUS_PHASE_IDLE = 0, MUSTER_RENDEZVOUS_PHASE_JOINING = 1, MUSTER_RENDEZVOUS_PHASE_JOINED = 2 };
enum muster_rendezvous_state_flag { MUSTER_RENDEZVOUS_IS_CLOSED = 1, MUSTER_RENDEZVOUS_IS_LAST_CALL = 2, MUSTER_RENDEZVOUS_IS_LEADER = 4 };
enum muster_round_flag { MUSTER_ROUND_IS_OVER = 1 };
enum muster_rendezvous_request_kind { MUSTER_RENDEZVOUS_REQUEST_OPEN = 1, MUSTER_RENDEZVOUS_REQUEST_JOIN = 2, MUSTER_RENDEZVOUS_REQUEST_LEAVE = 3, MUSTER_RENDEZVOUS_REQUEST_EXIT = 4, MUSTER_RENDEZVOUS_REQUEST_ABORT = 5, MUSTER_RENDEZVOUS_REQUEST_CLOSE = 6, MUSTER_RENDEZVOUS_REQUEST_LIST = 7 };
enum muster_transport_flag { MUSTER_TRANSPORT_ANY_THREAD = 1, MUSTER_TRANSPORT_LOCAL = 2, MUSTER_TRANSPORT_SEALS = 4, MUSTER_TRANSPORT_NO_LISTEN = 8 };
enum muster_socket_kind { MUSTER_SOCKET_DEALER = 1, MUSTER_SOCKET_ROUTER = 2 };
enum muster_socket_flag { MUSTER_SOCKET_LOANS = 1 };
enum muster_socket_ready { MUSTER_SOCKET_RECEIVABLE = 1, MUSTER_SOCKET_SENDABLE = 2, MUSTER_SOCKET_EVENT = 4 };
enum muster_socket_event_kind { MUSTER_SOCKET_CONNECTED = 1, MUSTER_SOCKET_LOST = 2, MUSTER_SOCKET_REPLACED = 3, MUSTER_SOCKET_REFUSED = 4 };
enum muster_store_op_kind { MUSTER_STORE_NONE = 0, MUSTER_STORE_GET = 1, MUSTER_STORE_READ = 2, MUSTER_STORE_SET = 3, MUSTER_STORE_ADD = 4, MUSTER_STORE_APPEND = 5, MUSTER_STORE_DELETE = 6, MUSTER_STORE_CHECK = 7, MUSTER_STORE_WAIT = 8, MUSTER_STORE_COUNT = 9, MUSTER_STORE_LIST = 10, MUSTER_STORE_KEYS = 11, MUSTER_STORE_PUSH = 12, MUSTER_STORE_POP = 13, MUSTER_STORE_TRY_POP = 14, MUSTER_STORE_LENGTH = 15, MUSTER_STORE_WATCH = 16, MUSTER_STORE_BARRIER = 17, MUSTER_STORE_CLEAR = 18 };
enum muster_store_condition { MUSTER_STORE_ALWAYS = 0, MUSTER_STORE_IF_ABSENT = 1, MUSTER_STORE_IF_PRESENT = 2, MUSTER_STORE_IF_VALUE = 3, MUSTER_STORE_IF_VERSION = 4 };
enum muster_store_entry_flag { MUSTER_STORE_PRESENT = 1, MUSTER_STORE_FAILED = 2, MUSTER_STORE_MORE = 4, MUSTER_STORE_LEASE_ENDED = 8, MUSTER_STORE_LEASE_SILENT = 16, MUSTER_STORE_LEASE_BROKEN = 32 };
enum muster_store_capability { MUSTER_STORE_CAN_TRANSACT = 1, MUSTER_STORE_CAN_QUEUE = 2, MUSTER_STORE_CAN_WAIT = 4, MUSTER_STORE_CAN_WATCH = 8, MUSTER_STORE_CAN_LEASE = 16, MUSTER_STORE_CAN_BARRIER = 32 };
enum muster_lease_flag { MUSTER_LEASE_MANUAL = 1, MUSTER_LEASE_CONNECTED = 2 };
enum muster_store_request_kind { MUSTER_STORE_REQUEST_OPEN = 1, MUSTER_STORE_REQUEST_DO = 2, MUSTER_STORE_REQUEST_GRANT = 3, MUSTER_STORE_REQUEST_KEEP = 4, MUSTER_STORE_REQUEST_END = 5 };
enum muster_store_request_flag { MUSTER_STORE_NO_WAIT = 1 };
enum muster_store_trait { MUSTER_STORE_IS_REMOTE = 1, MUSTER_STORE_ANSWERS_CANCEL = 2 };
enum muster_store_host_flag { MUSTER_STORE_ANY_THREAD = 1 };
enum muster_store_server_flag { MUSTER_STORE_SERVER_NO_SYNC = 1, MUSTER_STORE_SERVER_FORCE_STANDALONE = 2, MUSTER_STORE_SERVER_REFUSED_IS_DEAD = 4 };
enum muster_store_server_role { MUSTER_STORE_SERVER_STANDALONE = 0, MUSTER_STORE_SERVER_PRIMARY = 1, MUSTER_STORE_SERVER_HALTED = 2, MUSTER_STORE_SERVER_STANDBY = 3, MUSTER_STORE_SERVER_CATCHING_UP = 4, MUSTER_STORE_SERVER_WAITING = 5 };
enum muster_stream_event { MUSTER_STREAM_READABLE = 1, MUSTER_STREAM_WRITABLE = 2, MUSTER_STREAM_PEER_SILENT = 4, MUSTER_STREAM_PEER_BACK = 8, MUSTER_STREAM_ENDED = 16 };
enum muster_stream_direction { MUSTER_STREAM_READ = 1, MUSTER_STREAM_WRITE = 2 };
enum muster_stream_read_flag { MUSTER_STREAM_HUGE_PAGES = 1 };
enum muster_worker_flag { MUSTER_WORKER_EXIT_WITH_MASTER = 1, MUSTER_WORKER_RAISE_INTERRUPT = 2 };
typedef muster_status (*muster_am_fn)(void *user, uint32_t peer, const void *data, size_t bytes, void *reply, size_t capacity, size_t *out_bytes);
typedef void (*muster_epoch_free_fn)(void *user, void *object);
typedef void (*muster_reduce_fn)(void *user, const void *input, void *inout, uint64_t count);
typedef void (*muster_free_fn)(void *data);
typedef void (*muster_queue_handler_fn)(void *user, const muster_completion *entry, const muster_error *error);
typedef int (*muster_wake_fn)(void *user);
struct muster_agent_outputs { uint32_t local_rank; uint32_t log_outputs; uint32_t console_outputs; uint32_t discarded_outputs; };
struct muster_agent_config { uint32_t struct_size; uint32_t flags; const char *const *argv; const char *const *envp; const char *directory; uint32_t worker_count; uint32_t max_restarts; int64_t grace_ns; const char *run_id; const char *role; const char *log_dir; uint32_t log_outputs; uint32_t console_outputs; int32_t out_fd_plus_one; int32_t err_fd_plus_one; const char *local_address; const muster_rendezvous_config *rendezvous; const char *master_address; uint32_t master_port; uint32_t reserved0; int64_t join_timeout_ns; int64_t exit_timeout_ns; const muster_agent_outputs *outputs; uint64_t output_count; uint64_t reserved[2]; };
struct muster_agent_state { uint32_t phase; uint32_t worker_count; uint32_t running; uint32_t restarts; uint32_t group_rank; uint32_t group_world_size; uint32_t first_rank; uint32_t world_size; uint64_t round; char master_address[256]; uint32_t master_port; uint32_t reserved[7]; };
struct muster_process_exit { int32_t kind; int32_t value; };
struct muster_agent_worker { uint32_t local_rank; uint32_t rank; uint32_t state; uint32_t restarts; int32_t pid; muster_process_exit exit; uint32_t reserved0; int64_t started_unix_ns; int64_t ended_unix_ns; int64_t failed_unix_ns; uint64_t round; char message[512]; char directory[256]; };
struct muster_am_config { uint32_t struct_size; uint32_t max_bytes; uint32_t max_requests; uint32_t flags; muster_queue *queue; uint64_t tag; };
struct muster_am_peer { muster_status status; uint32_t requests; uint64_t sent; uint64_t executed; uint64_t unsent_bytes; uint32_t max_bytes; uint32_t max_requests; };
struct muster_am_request_info { const void *data; size_t bytes; uint32_t peer; uint32_t handler; };
struct muster_atomic_condition { const void *cell; uint64_t value; uint32_t size_bytes; int32_t comparison; uint32_t is_true; uint32_t reserved; };
struct muster_aba { uint64_t value; uint64_t count; };
struct muster_error { muster_status status; int32_t os_errno; int64_t provider_code; uint32_t rank; uint32_t message_bytes; char message[232]; };
struct muster_broker_config { uint32_t struct_size; uint32_t flags; const char *parent; uint64_t parent_bytes; uint64_t window_bytes; uint32_t max_members; uint32_t reserved; const char *curve_file; uint64_t curve_file_bytes; const void *broker_secret; uint64_t broker_secret_bytes; };
struct muster_broker_stats { uint64_t members; uint64_t brokers; uint64_t has_parent; uint64_t names; uint64_t pairs; uint64_t messages; uint64_t bytes; uint64_t queued_bytes; uint64_t connections; uint64_t refused; uint64_t lost; uint64_t multicasts; uint64_t reserved[4]; };
struct muster_cluster_config { uint32_t struct_size; uint32_t flags; uint32_t topology; uint32_t max_connections; const char *listen; uint64_t listen_bytes; int64_t join_timeout_ns; int64_t leave_timeout_ns; muster_queue *queue; uint64_t tag; uint64_t max_broadcast_bytes; const char *store; uint64_t store_bytes; uint64_t reserved1; };
struct muster_launch { uint32_t struct_size; uint32_t flags; const char *manager; uint32_t count; uint32_t reserved; const char *const *argv; const char *const *envp; const char *directory; const char *listen; const char *ident; const char *connect_idents; const char *options; uint64_t reserved1[4]; };
struct muster_cluster_event { uint32_t kind; uint32_t member; muster_status status; uint32_t label_bytes; muster_stream *stream; uint32_t text_bytes; uint32_t reserved; char label[256]; char text[232]; muster_broadcast *broadcast; const void *data; uint64_t size_bytes; };
struct muster_member_info { uint32_t member; uint32_t state; int64_t pid; uint64_t data; char host[256]; char address[1024]; uint64_t reserved[4]; };
struct muster_context_config { uint32_t struct_size; uint32_t flags; const void *secret; uint64_t secret_bytes; int32_t secret_fd_plus_one; uint32_t max_unauthenticated; int64_t handshake_timeout_ns; int64_t heartbeat_ns; int64_t silent_ns; int64_t dead_ns; uint64_t window_bytes; };
struct muster_context_stats { uint64_t loop_wakeups; uint64_t mailbox_posts; uint64_t streams_open; uint64_t streams_made; uint64_t handshakes_ok; uint64_t handshakes_failed; uint64_t bytes_in; uint64_t bytes_out; uint64_t upgrades; uint64_t reserved[7]; };
struct muster_epoch_token { uint64_t epoch; int64_t to_global; uint64_t depth; uint64_t state; uint32_t index; uint32_t reserved; };
struct muster_epoch_config { uint32_t struct_size; uint32_t flags; uint32_t max_tokens; uint32_t max_pending; int32_t fd; uint32_t reserved; uint64_t offset; muster_queue *queue; uint64_t tag; };
struct muster_epoch_attempt { int32_t outcome; uint32_t token; int32_t process; int32_t thread; uint64_t since_ns; uint64_t epoch; };
struct muster_epoch_stats { uint64_t epoch; uint64_t deferred; uint64_t freed; uint64_t pending; uint32_t tokens; uint32_t orphaned; uint32_t deaths; uint32_t is_fenced; uint32_t blocking_token; int32_t blocking_process; int32_t blocking_thread; uint32_t reserved; uint64_t blocked_ns; };
struct muster_forwarder_config { uint32_t struct_size; uint32_t flags; uint64_t address; uint32_t max_hops; uint32_t max_peers; uint64_t max_message_bytes; uint64_t max_queued_bytes; uint32_t max_queued_messages; uint32_t max_unrouted_messages; uint32_t max_waiting; uint32_t reserved; muster_message_queue *inbox; muster_queue *queue; uint64_t tag; };
struct muster_forwarder_stats { uint64_t peers; uint64_t forwarded; uint64_t delivered; uint64_t undelivered; uint64_t hop_limit; uint64_t waiting; uint64_t reserved[4]; };
struct muster_group_operation { uint32_t struct_size; uint32_t kind; uint32_t type; uint32_t reduction; uint32_t root; uint32_t flags; uint64_t count; const void *input; void *output; const uint64_t *counts; const uint64_t *output_counts; };
struct muster_group_config { uint32_t struct_size; uint32_t flags; uint32_t rank; uint32_t size; muster_round *round; muster_store *store; const void *name; uint64_t name_bytes; const char *listen; uint64_t listen_bytes; const char *addresses; uint64_t addresses_bytes; uint64_t slot_bytes; muster_cluster *cluster; };
struct muster_group_status { uint32_t state; uint32_t kind; uint64_t sequence; uint32_t shares_memory; uint32_t reserved[3]; };
struct muster_manager_request { uint32_t struct_size; uint32_t operation; uint32_t member; uint32_t count; uint32_t from; uint32_t reserved; uint64_t data; const muster_launch *launch; const char *address; muster_cluster *cluster; uint64_t cluster_tag; };
struct muster_manager_ops { uint32_t struct_size; uint32_t flags; void (*launch)(void *self, uint64_t request, const muster_manager_request *what); void (*connect)(void *self, uint64_t request, const muster_manager_request *what); void (*connect_worker)(void *self, uint64_t request, const muster_manager_request *what); void (*manage)(void *self, uint64_t request, const muster_manager_request *what); void (*kill)(void *self, uint64_t request, const muster_manager_request *what); void (*cancel)(void *self, uint64_t request); void (*destroy)(void *self); };
struct muster_memory_config { uint32_t struct_size; uint32_t locale_bits; uint64_t segment_bytes; uint64_t symmetric_bytes; uint32_t max_tokens; uint32_t max_pending; uint32_t flags; uint32_t incarnation_bits; };
struct muster_memory_view { const uint64_t *bases; uint64_t segment_bytes; uint32_t locales; uint32_t offset_bits; };
struct muster_memory_operation { uint32_t struct_size; uint32_t kind; muster_gptr target; void *local; uint64_t bytes; uint32_t cell; int32_t order; int32_t operation; uint32_t notify; uint64_t value; uint64_t expected; uint64_t expected_count; muster_gptr signal; };
struct muster_memory_result { uint64_t value; uint64_t count; };
struct muster_memory_stats { uint64_t heap_bytes; uint64_t fresh_bytes; uint64_t used_bytes; uint64_t used_blocks; uint64_t allocated; uint64_t refused; uint64_t symmetric_bytes; uint64_t reserved; };
struct muster_memory_locale_info { muster_status status; uint32_t is_mapped; uint32_t node; uint32_t requests; uint64_t dropped; };
struct muster_message_header { uint32_t struct_size; uint32_t type; uint64_t source; uint64_t destination; uint64_t target; int64_t target_version; uint64_t trace_id[2]; uint64_t span_id; uint32_t trace_flags; uint32_t hops; };
struct muster_buffer { const void *data; uint64_t bytes; };
struct muster_value { int64_t integer; double real; const void *data; uint64_t bytes; };
struct muster_message_queue_config { uint32_t struct_size; uint32_t flags; uint32_t max_messages; uint32_t reserved; uint64_t max_bytes; muster_queue *queue; uint64_t tag; };
struct muster_message_queue_stats { uint64_t messages; uint64_t bytes; uint64_t pushed; uint64_t popped; uint64_t full; uint64_t reserved[3]; };
struct muster_metrics_config { uint32_t struct_size; uint32_t flags; const void *name; uint64_t name_bytes; int64_t interval_ns; };
struct muster_metrics_state { uint64_t published; uint64_t failed; muster_status status; uint32_t reserved; };
struct muster_process_fd { int32_t parent_fd; int32_t child_fd; };
struct muster_process_config { uint32_t struct_size; uint32_t flags; const char *const *argv; const char *const *envp; const char *directory; const muster_process_fd *fds; uint64_t fd_count; };
struct muster_completion { int32_t kind; muster_status status; uint64_t tag; void *object; uint64_t bytes; uint64_t request; uint32_t events; uint32_t reserved[5]; };
struct muster_queue_config { uint32_t struct_size; uint32_t flags; uint32_t capacity; uint32_t reserved; };
struct muster_queue_stats { uint64_t depth; uint64_t outstanding; uint64_t taken; uint64_t wakeups; uint64_t log_dropped; uint64_t reserved[3]; };
struct muster_rendezvous_config { uint32_t struct_size; uint32_t flags; const void *run_id; uint64_t run_id_bytes; const void *url; uint64_t url_bytes; muster_store *store; const void *address; uint64_t address_bytes; const void *order_key; uint64_t order_key_bytes; uint32_t min; uint32_t max; uint32_t rank; uint32_t keep_alive_attempts; int64_t keep_alive_ns; int64_t last_call_ns; muster_queue *queue; uint64_t tag; const void *state_dir; uint64_t state_dir_bytes; int64_t majority_timeout_ns; uint64_t reserved[1]; };
struct muster_rendezvous_event { uint32_t kind; uint32_t rank; uint64_t round; uint32_t count; uint32_t text_bytes; char text[232]; };
struct muster_rendezvous_state { uint32_t phase; uint32_t flags; uint64_t round; uint32_t joined; uint32_t missing; uint32_t waiting; uint32_t spares; uint32_t present; uint32_t exiting; int64_t last_call_remaining_ns; uint64_t reserved[5]; };
struct muster_round_info { uint64_t number; uint32_t rank; uint32_t world; uint32_t flags; uint32_t reserved[3]; uint8_t digest[32]; };
struct muster_round_member_info { const void *address; uint64_t address_bytes; uint64_t reserved; };
struct muster_rendezvous_request { uint32_t struct_size; uint32_t kind; uint64_t member; const muster_rendezvous_config *config; const void *reason; uint64_t reason_bytes; int64_t timeout_ns; };
struct muster_rendezvous_assignment { uint32_t struct_size; uint32_t rank; uint32_t world; uint32_t reserved; uint64_t number; muster_store *store; const muster_round_member_info *members; uint64_t member_count; uint8_t digest[32]; };
struct muster_rendezvous_ops { uint32_t struct_size; uint32_t flags; void (*request)(void *self, uint64_t request, const muster_rendezvous_request *what); void (*cancel)(void *self, uint64_t request); void (*close)(void *self, uint64_t member); void (*destroy)(void *self); };
struct muster_transport_ops { uint32_t struct_size; uint32_t flags; void (*open)(void *self, uint64_t request, const char *address, uint64_t address_bytes); void (*listen)(void *self, uint64_t request, const char *address, uint64_t address_bytes); void (*close)(void *self, uint64_t request); void (*cancel)(void *self, uint64_t request); void (*destroy)(void *self); };
struct muster_socket_config { uint32_t struct_size; uint32_t flags; uint32_t kind; uint32_t max_peers; uint64_t address; uint64_t max_message_bytes; uint64_t max_queued_bytes; uint32_t max_queued_messages; uint32_t max_unrouted_messages; muster_queue *queue; uint64_t tag; uint64_t max_loaned_bytes; };
struct muster_socket_event { uint32_t kind; uint32_t text_bytes; uint64_t address; uint64_t incarnation; uint64_t undelivered; char text[256]; };
struct muster_socket_stats { uint64_t peers; uint64_t messages_in; uint64_t messages_out; uint64_t bytes_in; uint64_t bytes_out; uint64_t queued_messages; uint64_t queued_bytes; uint64_t undelivered; uint64_t connections_made; uint64_t connections_lost; uint64_t malformed; uint64_t full; uint64_t reserved[4]; };
struct muster_store_op { uint32_t kind; uint32_t condition; const void *key; uint64_t key_bytes; const void *value; uint64_t value_bytes; const void *expected; uint64_t expected_bytes; uint64_t version; int64_t number; uint64_t lease; uint32_t count; uint32_t rank; };
struct muster_store_entry { uint32_t op; uint32_t flags; uint64_t version; int64_t number; const void *key; uint64_t key_bytes; const void *value; uint64_t value_bytes; };
struct muster_store_config { uint32_t struct_size; uint32_t flags; uint64_t max_bytes; int64_t lost_after_ns; int64_t grace_ns; uint64_t reserved; };
struct muster_store_request { uint32_t struct_size; uint32_t kind; uint64_t store; uint32_t flags; uint32_t reserved; const muster_store_op *ops; uint64_t op_count; const char *url; uint64_t url_bytes; uint64_t lease; int64_t ttl_ns; };
struct muster_store_traits { uint32_t struct_size; uint32_t flags; uint32_t capabilities; uint32_t max_ops; uint64_t max_request_bytes; int64_t min_lease_ns; };
struct muster_store_host_ops { uint32_t struct_size; uint32_t flags; void (*request)(void *self, uint64_t request, const muster_store_request *what); void (*cancel)(void *self, uint64_t request); void (*close)(void *self, uint64_t store); void (*destroy)(void *self); };
struct muster_store_server_config { uint32_t struct_size; uint32_t flags; const char *data_dir; uint64_t data_dir_bytes; uint64_t max_bytes; int64_t session_ns; uint32_t max_clients; uint32_t reserved_field; const char *standby_of; uint64_t standby_of_bytes; int64_t pair_lease_ns; };
struct muster_store_server_stats { uint64_t clients; uint64_t sessions; uint64_t requests; uint64_t waiting; uint64_t refused; uint64_t keys; uint64_t bytes; uint64_t leases; uint64_t revision; uint64_t failed; uint64_t role; uint64_t epoch; uint64_t lag; uint64_t reserved[1]; };
struct muster_stream_config { uint32_t struct_size; uint32_t flags; uint64_t window_bytes; };
struct muster_stream_stats { uint64_t bytes_in; uint64_t bytes_out; uint64_t buffered_in; uint64_t buffered_out; uint64_t reads; uint64_t writes; uint64_t waits; uint64_t wakeups; uint64_t spins_won; uint64_t spins_lost; uint64_t caller_io; uint64_t loop_io; uint64_t last_received_ns; uint64_t multicast_group; uint64_t round_trip_ns; uint64_t reserved; };
struct muster_trace_config { uint32_t struct_size; uint32_t events; const void *name; uint64_t name_bytes; };
struct muster_trace_state { uint64_t events; uint64_t threads; int64_t offset_ns; int64_t offset_error_ns; uint32_t is_on; uint32_t reserved; };
struct muster_transport_config { uint32_t struct_size; uint32_t flags; const void *hello; uint64_t hello_bytes; uint64_t window_bytes; uint32_t backlog; uint32_t reserved; int64_t retry_ns; int64_t listen_timeout_ns; };
struct muster_worker_config { uint32_t struct_size; uint32_t flags; int64_t exit_grace_ns; int32_t report_fd_plus_one; uint32_t max_connections; muster_queue *queue; uint64_t tag; const char *master; const char *store; const char *name; const char *listen; uint64_t max_broadcast_bytes; };
muster_status muster_agent_start(muster_context *context, const muster_agent_config *config, muster_queue *queue, uint64_t tag, muster_agent **out_agent, muster_error *error);
muster_status muster_agent_wait(muster_agent *agent, int64_t timeout_ns, muster_error *error);
muster_status muster_agent_signal(muster_agent *agent, int32_t signal);
muster_status muster_agent_stop(muster_agent *agent, int32_t signal, int64_t grace_ns);
muster_status muster_agent_get_state(muster_agent *agent, muster_agent_state *out_state);
muster_status muster_agent_rendezvous(muster_agent *agent, muster_rendezvous **out_rendezvous);
muster_status muster_agent_get_worker(muster_agent *agent, uint32_t local_rank, muster_agent_worker *out_worker);
muster_status muster_agent_first_failure(muster_agent *agent, muster_agent_worker *out_worker);
muster_status muster_agent_failure_text(muster_agent *agent, char *out_text, size_t capacity, size_t *out_bytes);
muster_status muster_agent_flush(muster_agent *agent, int64_t timeout_ns);
muster_status muster_agent_flush_begin(muster_agent *agent, int64_t timeout_ns, muster_queue *queue, uint64_t tag, muster_error *error);
void muster_agent_release(muster_agent *agent);
muster_status muster_am_create(muster_context *context, const muster_am_config *config, muster_am **out_am, muster_error *error);
muster_status muster_am_set_handler(muster_am *am, uint32_t handler, muster_am_fn function, void *user);
muster_status muster_am_serve(muster_am *am, uint32_t handler, muster_queue *queue, uint64_t tag);
muster_status muster_am_add_peer(muster_am *am, muster_stream *stream, uint32_t *out_peer, muster_error *error);
muster_status muster_am_call(muster_am *am, uint32_t peer, uint32_t handler, const void *data, size_t bytes, void *out_reply, size_t capacity, int64_t timeout_ns, size_t *out_bytes, muster_error *error);
muster_status muster_am_begin(muster_am *am, uint32_t peer, uint32_t handler, const void *data, size_t bytes, void *out_reply, size_t capacity, muster_queue *queue, uint64_t tag);
muster_status muster_am_flush(muster_am *am, uint32_t peer, int64_t timeout_ns);
muster_status muster_am_get_peer(muster_am *am, uint32_t peer, muster_am_peer *out_peer, muster_error *error);
muster_status muster_am_disconnect(muster_am *am, uint32_t peer, const char *text);
muster_status muster_am_request_get(const muster_am_request *request, muster_am_request_info *out_info);
muster_status muster_am_request_reply(muster_am_request *request, muster_status status, const void *data, size_t bytes);
void muster_am_request_release(muster_am_request *request);
muster_status muster_am_close(muster_am *am);
void muster_am_release(muster_am *am);
muster_status muster_atomic_read64(const uint64_t *cell, int32_t order, uint64_t *out_value);
muster_status muster_atomic_write64(uint64_t *cell, uint64_t value, int32_t order);
muster_status muster_atomic_exchange64(uint64_t *cell, uint64_t value, int32_t order, uint64_t *out_value);
muster_status muster_atomic_compare_exchange64(uint64_t *cell, uint64_t *expected, uint64_t desired, int32_t order);
muster_status muster_atomic_fetch64(uint64_t *cell, int32_t operation, uint64_t operand, int32_t order, uint64_t *out_value);
muster_status muster_atomic_read32(const uint32_t *cell, int32_t order, uint32_t *out_value);
muster_status muster_atomic_write32(uint32_t *cell, uint32_t value, int32_t order);
muster_status muster_atomic_exchange32(uint32_t *cell, uint32_t value, int32_t order, uint32_t *out_value);
muster_status muster_atomic_compare_exchange32(uint32_t *cell, uint32_t *expected, uint32_t desired, int32_t order);
muster_status muster_atomic_fetch32(uint32_t *cell, int32_t operation, uint32_t operand, int32_t order, uint32_t *out_value);
muster_status muster_atomic_test_and_set(uint32_t *flag, int32_t order);
muster_status muster_atomic_clear(uint32_t *flag, int32_t order);
muster_status muster_atomic_wait(muster_atomic_condition *conditions, uint32_t count, uint32_t needed, int64_t timeout_ns);
muster_status muster_atomic_notify(const void *cell, uint32_t size_bytes);
uint32_t muster_aba_size(void);
uint32_t muster_aba_alignment(void);
muster_status muster_aba_read(const muster_aba *cell, muster_aba *out);
muster_status muster_aba_write(muster_aba *cell, uint64_t value);
muster_status muster_aba_exchange(muster_aba *cell, uint64_t value, muster_aba *out);
muster_status muster_aba_compare_exchange(muster_aba *cell, muster_aba *expected, uint64_t desired);
muster_status muster_aba_compare_exchange_value(muster_aba *cell, uint64_t *expected, uint64_t desired);
const char *muster_status_name(muster_status status);
const char *muster_status_text(muster_status status);
const char *muster_version(uint32_t *out_major, uint32_t *out_minor, uint32_t *out_patch);
muster_status muster_config_init(void *config, uint32_t struct_size);
muster_status muster_broker_open(muster_context *context, const char *address, size_t address_bytes, const muster_broker_config *config, muster_broker **out_broker, muster_error *error);
muster_status muster_broker_address(muster_broker *broker, char *out_text, size_t capacity, size_t *out_bytes);
muster_status muster_broker_get_stats(muster_broker *broker, muster_broker_stats *out_stats);
muster_status muster_broker_close(muster_broker *broker, int64_t timeout_ns);
muster_status muster_broker_close_begin(muster_broker *broker, int64_t timeout_ns, muster_queue *queue, uint64_t tag, muster_error *error);
void muster_broker_release(muster_broker *broker);
muster_status muster_cluster_open(muster_context *context, const muster_cluster_config *config, muster_cluster **out_cluster, muster_error *error);
muster_status muster_cluster_open_begin(muster_context *context, const muster_cluster_config *config, muster_queue *queue, uint64_t tag, muster_error *error);
muster_status muster_cluster_add(muster_cluster *cluster, const muster_launch *launch, uint32_t *out_first, muster_error *error);
muster_status muster_cluster_add_begin(muster_cluster *cluster, const muster_launch *launch, muster_queue *queue, uint64_t tag, muster_error *error);
muster_status muster_cluster_remove(muster_cluster *cluster, uint32_t member, int64_t grace_ns);
muster_status muster_cluster_interrupt(muster_cluster *cluster, uint32_t member);
muster_status muster_cluster_next_event(muster_cluster *cluster, int64_t timeout_ns, muster_cluster_event *out_event);
muster_status muster_cluster_store(muster_cluster *cluster, int64_t timeout_ns, muster_store **out_store, muster_error *error);
muster_status muster_cluster_store_begin(muster_cluster *cluster, int64_t timeout_ns, muster_queue *queue, uint64_t tag, muster_error *error);
muster_status muster_cluster_cancel(muster_cluster *cluster);
muster_status muster_cluster_dial(muster_cluster *cluster, uint32_t member, const void *label, size_t label_bytes, int64_t timeout_ns, muster_stream **out_stream, muster_error *error);
muster_status muster_cluster_dial_begin(muster_cluster *cluster, uint32_t member, const void *label, size_t label_bytes, int64_t timeout_ns, muster_queue *queue, uint64_t tag, muster_error *error);
muster_status muster_cluster_broadcast(muster_cluster *cluster, const uint32_t *members, size_t count, const void *label, size_t label_bytes, const void *data, uint64_t size_bytes, int64_t timeout_ns, muster_status *out_statuses, muster_error *error);
muster_status muster_cluster_broadcast_begin(muster_cluster *cluster, const uint32_t *members, size_t count, const void *label, size_t label_bytes, const void *data, uint64_t size_bytes, int64_t timeout_ns, muster_status *out_statuses, muster_queue *queue, uint64_t tag, muster_error *error);
void muster_broadcast_release(muster_broadcast *broadcast);
muster_status muster_cluster_get_member(muster_cluster *cluster, uint32_t member, muster_member_info *out_info);
muster_status muster_cluster_list(muster_cluster *cluster, uint32_t *out_members, size_t capacity, size_t *out_count);
uint32_t muster_cluster_self(muster_cluster *cluster);
muster_status muster_cluster_close(muster_cluster *cluster, int64_t timeout_ns);
muster_status muster_cluster_close_begin(muster_cluster *cluster, int64_t timeout_ns, muster_queue *queue, uint64_t tag, muster_error *error);
void muster_cluster_release(muster_cluster *cluster);
muster_status muster_context_create(const muster_context_config *config, muster_context **out_context, muster_error *error);
muster_status muster_context_default(muster_context **out_context, muster_error *error);
muster_status muster_context_close(muster_context *context, int64_t timeout_ns);
muster_status muster_context_cancel(muster_context *context);
void muster_context_release(muster_context *context);
muster_status muster_context_fd(muster_context *context, int32_t *out_fd);
muster_status muster_context_progress(muster_context *context, int64_t timeout_ns);
muster_status muster_context_secret(muster_context *context, void *out_secret, size_t capacity, size_t *out_bytes);
muster_status muster_context_log(muster_context *context, int32_t level, muster_queue *queue, uint64_t tag);
muster_status muster_context_get_stats(muster_context *context, muster_context_stats *out_stats);
uint64_t muster_epoch_size(uint32_t max_tokens, uint32_t max_pending);
muster_status muster_epoch_create(const muster_epoch_config *config, muster_epoch **out_epoch, muster_error *error);
muster_status muster_epoch_open(const muster_epoch_config *config, muster_epoch **out_epoch, muster_error *error);
void muster_epoch_release(muster_epoch *epoch);
muster_status muster_epoch_register(muster_epoch *epoch, muster_epoch_token **out_token, muster_error *error);
muster_status muster_epoch_unregister(muster_epoch_token *token);
muster_status muster_epoch_pin(muster_epoch_token *token);
muster_status muster_epoch_unpin(muster_epoch_token *token);
muster_status muster_epoch_repin(muster_epoch_token *token);
muster_status muster_epoch_online(muster_epoch_token *token);
muster_status muster_epoch_quiescent(muster_epoch_token *token);
muster_status muster_epoch_offline(muster_epoch_token *token);
muster_status muster_epoch_protect(muster_epoch_token *token, uint32_t slot, uint64_t object);
muster_status muster_epoch_defer(muster_epoch_token *token, muster_epoch_free_fn free, void *user, void *object);
muster_status muster_epoch_retire(muster_epoch_token *token, uint64_t object);
muster_status muster_epoch_try_reclaim(muster_epoch_token *token, muster_epoch_attempt *out);
muster_status muster_epoch_advance(muster_epoch *epoch, muster_epoch_attempt *out);
muster_status muster_epoch_poll(muster_epoch_token *token, uint32_t max_objects, uint64_t max_ns, uint64_t *out_objects, uint32_t out_capacity, uint32_t *out_count, uint32_t *out_freed);
muster_status muster_epoch_synchronize(muster_epoch_token *token, int64_t timeout_ns, muster_epoch_attempt *out);
muster_status muster_epoch_barrier(muster_epoch_token *token, int64_t timeout_ns);
muster_status muster_epoch_clear(muster_epoch *epoch, uint64_t *out_freed);
muster_status muster_epoch_get_stats(muster_epoch *epoch, muster_epoch_stats *out_stats);
muster_status muster_forwarder_create(muster_context *context, const muster_forwarder_config *config, muster_forwarder **out_forwarder, muster_error *error);
muster_socket *muster_forwarder_socket(muster_forwarder *forwarder);
muster_status muster_forwarder_add_route(muster_forwarder *forwarder, uint64_t pattern, uint64_t next_hop);
muster_status muster_forwarder_remove_route(muster_forwarder *forwarder, uint64_t pattern);
muster_status muster_forwarder_set_hook(muster_forwarder *forwarder, uint32_t type, muster_message_queue *into);
muster_status muster_forwarder_send(muster_forwarder *forwarder, muster_message *message, int64_t timeout_ns, muster_error *error);
muster_status muster_forwarder_get_stats(muster_forwarder *forwarder, muster_forwarder_stats *out_stats);
muster_status muster_forwarder_close(muster_forwarder *forwarder, int64_t timeout_ns);
void muster_forwarder_release(muster_forwarder *forwarder);
muster_status muster_group_open(muster_context *context, const muster_group_config *config, int64_t timeout_ns, muster_group **out_group, muster_error *error);
muster_status muster_group_split(muster_group *group, int64_t color, int64_t key, int64_t timeout_ns, muster_group **out_group, muster_error *error);
muster_status muster_group_connect(muster_group *group, int64_t timeout_ns, muster_stream **out_streams, uint32_t capacity, muster_error *error);
uint32_t muster_group_rank(const muster_group *group);
uint32_t muster_group_size(const muster_group *group);
muster_status muster_group_add_reduction(muster_group *group, uint32_t element_bytes, muster_reduce_fn combine, void *user, uint32_t *out_reduction);
muster_status muster_group_run(muster_group *group, const muster_group_operation *operation, int64_t timeout_ns, muster_error *error);
muster_status muster_group_begin(muster_group *group, const muster_group_operation *operation, int64_t timeout_ns, muster_queue *queue, uint64_t tag, muster_error *error);
muster_status muster_group_barrier(muster_group *group, int64_t timeout_ns, muster_error *error);
muster_status muster_group_broadcast(muster_group *group, void *data, uint64_t count, uint32_t type, uint32_t root, int64_t timeout_ns, muster_error *error);
muster_status muster_group_reduce(muster_group *group, const void *input, void *output, uint64_t count, uint32_t type, uint32_t reduction, uint32_t root, int64_t timeout_ns, muster_error *error);
muster_status muster_group_all_reduce(muster_group *group, const void *input, void *output, uint64_t count, uint32_t type, uint32_t reduction, int64_t timeout_ns, muster_error *error);
muster_status muster_group_reduce_scatter(muster_group *group, const void *input, void *output, uint64_t count, uint32_t type, uint32_t reduction, int64_t timeout_ns, muster_error *error);
muster_status muster_group_scan(muster_group *group, const void *input, void *output, uint64_t count, uint32_t type, uint32_t reduction, int64_t timeout_ns, muster_error *error);
muster_status muster_group_gather(muster_group *group, const void *input, void *output, uint64_t count, uint32_t type, uint32_t root, int64_t timeout_ns, muster_error *error);
muster_status muster_group_all_gather(muster_group *group, const void *input, void *output, uint64_t count, uint32_t type, int64_t timeout_ns, muster_error *error);
muster_status muster_group_scatter(muster_group *group, const void *input, void *output, uint64_t count, uint32_t type, uint32_t root, int64_t timeout_ns, muster_error *error);
muster_status muster_group_all_to_all(muster_group *group, const void *input, void *output, uint64_t count, uint32_t type, int64_t timeout_ns, muster_error *error);
muster_status muster_group_send(muster_group *group, uint32_t rank, const void *data, uint64_t data_bytes, int64_t timeout_ns, muster_error *error);
muster_status muster_group_receive(muster_group *group, uint32_t rank, void *out_data, uint64_t capacity, int64_t timeout_ns, uint64_t *out_bytes, muster_error *error);
muster_status muster_group_get_status(muster_group *group, uint32_t rank, muster_group_status *out_status);
muster_status muster_group_revoke(muster_group *group, const char *text, size_t text_bytes);
muster_status muster_group_close(muster_group *group, int64_t timeout_ns, muster_error *error);
void muster_group_release(muster_group *group);
muster_status muster_manager_serve(muster_context *context, const char *name, size_t name_bytes, uint32_t operations, muster_queue *requests, uint64_t tag, muster_error *error);
muster_status muster_manager_serve_ops(muster_context *context, const char *name, size_t name_bytes, const muster_manager_ops *ops, void *self, muster_queue *requests, muster_error *error);
muster_status muster_manager_withdraw(muster_context *context, const char *name, size_t name_bytes);
muster_status muster_manager_request_read(muster_queue *requests, uint64_t request, muster_manager_request *out_what);
muster_status muster_manager_ticket(muster_queue *requests, uint64_t request, uint32_t member, char *out_text, size_t capacity, size_t *out_bytes);
muster_status muster_manager_worker_ready(muster_queue *requests, uint64_t request, uint32_t member, const char *address, size_t address_bytes, uint64_t data, muster_error *error);
muster_status muster_manager_worker_failed(muster_queue *requests, uint64_t request, uint32_t member, muster_status status, const char *text, size_t text_bytes, muster_error *error);
muster_status muster_manager_worker_ended(muster_queue *requests, muster_cluster *cluster, uint32_t member, const char *text, size_t text_bytes, muster_error *error);
muster_status muster_manager_request_done(muster_queue *requests, uint64_t request, const char *address, size_t address_bytes, muster_error *error);
muster_status muster_manager_request_fail(muster_queue *requests, uint64_t request, muster_status status, const char *text, size_t text_bytes);
muster_status muster_memory_open(muster_group *group, const muster_memory_config *config, int64_t timeout_ns, muster_memory **out_memory, muster_error *error);
void muster_memory_release(muster_memory *memory);
uint32_t muster_memory_locale(const muster_memory *memory);
uint32_t muster_memory_locales(const muster_memory *memory);
muster_status muster_memory_pointer(const muster_memory *memory, uint32_t locale, uint64_t offset, muster_gptr *out);
muster_status muster_memory_parts(const muster_memory *memory, muster_gptr pointer, uint32_t *out_locale, uint64_t *out_offset);
muster_status muster_memory_address(const muster_memory *memory, muster_gptr pointer, uint64_t bytes, void **out_address);
muster_status muster_memory_get_view(const muster_memory *memory, muster_memory_view *out_view);
muster_status muster_memory_symmetric(muster_memory *memory, uint64_t bytes, uint64_t alignment, int64_t timeout_ns, uint64_t *out_offset, muster_error *error);
muster_status muster_memory_allocate(muster_memory *memory, uint32_t locale, uint64_t bytes, int64_t timeout_ns, muster_gptr *out);
muster_status muster_memory_free(muster_memory *memory, muster_gptr block, int64_t timeout_ns);
muster_status muster_memory_run(muster_memory *memory, const muster_memory_operation *operation, int64_t timeout_ns, muster_memory_result *out);
muster_status muster_memory_begin(muster_memory *memory, const muster_memory_operation *operation, muster_memory_result *out, muster_queue *queue, uint64_t tag);
muster_status muster_memory_flush(muster_memory *memory, uint32_t locale, int64_t timeout_ns);
muster_status muster_memory_get_locale(muster_memory *memory, uint32_t locale, muster_memory_locale_info *out_info, muster_error *error);
muster_status muster_memory_epoch(muster_memory *memory, muster_epoch **out_epoch);
muster_status muster_memory_reclaim(muster_memory *memory, muster_epoch_token *token, uint32_t max_objects, uint64_t max_ns, uint32_t *out_freed);
muster_status muster_memory_clear(muster_memory *memory, muster_epoch_token *token, int64_t timeout_ns, uint64_t *out_freed);
muster_status muster_memory_get_stats(muster_memory *memory, uint32_t locale, int64_t timeout_ns, muster_memory_stats *out_stats);
muster_status muster_message_create(muster_message **out_message);
muster_status muster_message_copy(const muster_message *message, muster_message **out_message);
muster_status muster_message_get_header(const muster_message *message, muster_message_header *out_header);
muster_status muster_message_set_header(muster_message *message, const muster_message_header *header);
muster_status muster_message_swap_addresses(muster_message *message);
muster_status muster_message_add_frame(muster_message *message, const void *data, size_t bytes);
muster_status muster_message_lend_frame(muster_message *message, const void *data, size_t bytes, muster_queue *queue, uint64_t tag);
muster_status muster_message_take_frame(muster_message *message, void *data, size_t bytes, muster_free_fn release);
uint32_t muster_message_frame_count(const muster_message *message);
muster_status muster_message_frame(const muster_message *message, uint32_t index, muster_buffer *out_frame);
muster_status muster_message_first(muster_message *message, muster_buffer *out_frame);
muster_status muster_message_last(muster_message *message, muster_buffer *out_frame);
muster_status muster_message_next(muster_message *message, muster_buffer *out_frame);
muster_status muster_message_bytes(const muster_message *message, uint64_t *out_payload, uint64_t *out_total);
muster_status muster_message_to_buffers(muster_message *message, muster_buffer *out_buffers, uint32_t capacity, uint32_t *out_count);
muster_status muster_message_from_buffers(const muster_buffer *buffers, uint32_t count, muster_message **out_message, muster_error *error);
muster_status muster_message_add_values(muster_message *message, const char *picture, const muster_value *values, uint32_t count, muster_error *error);
muster_status muster_message_get_values(const muster_message *message, uint32_t index, const char *picture, char *out_picture, muster_value *out_values, uint32_t capacity, uint32_t *out_count, muster_error *error);
void muster_message_release(muster_message *message);
muster_status muster_message_address(int64_t group, int64_t id, int64_t kind, uint64_t *out_address);
muster_status muster_message_address_parts(uint64_t address, int64_t *out_group, int64_t *out_id, int64_t *out_kind);
int32_t muster_message_address_matches(uint64_t pattern, uint64_t address);
muster_status muster_message_address_singa(int32_t group, int32_t id_or_proc, int32_t type, uint64_t *out_address);
uint64_t muster_message_target(uint32_t entity, uint32_t part);
muster_status muster_message_queue_create(muster_context *context, const muster_message_queue_config *config, muster_message_queue **out_queue, muster_error *error);
muster_status muster_message_queue_push(muster_message_queue *queue, muster_message *message, int64_t timeout_ns);
muster_status muster_message_queue_pop(muster_message_queue *queue, int64_t timeout_ns, muster_message **out_message);
muster_status muster_message_queue_get_stats(muster_message_queue *queue, muster_message_queue_stats *out_stats);
muster_status muster_message_queue_cancel(muster_message_queue *queue);
muster_status muster_message_queue_close(muster_message_queue *queue);
void muster_message_queue_release(muster_message_queue *queue);
muster_status muster_metrics_write(muster_context *context, char *out_text, size_t capacity, size_t *out_bytes);
muster_status muster_metrics_publish(muster_context *context, muster_store *store, const muster_metrics_config *config, muster_metrics **out_metrics, muster_error *error);
muster_status muster_metrics_get_state(muster_metrics *metrics, muster_metrics_state *out_state);
void muster_metrics_release(muster_metrics *metrics);
muster_status muster_process_spawn(muster_context *context, const muster_process_config *config, muster_process **out_process, muster_error *error);
int32_t muster_process_pid(const muster_process *process);
muster_status muster_process_wait(muster_process *process, int64_t timeout_ns, muster_process_exit *out_exit);
muster_status muster_process_watch(muster_process *process, muster_queue *queue, uint64_t tag);
muster_status muster_process_kill(muster_process *process, int32_t signal);
void muster_process_release(muster_process *process);
muster_status muster_process_exit_with(muster_context *context, int32_t pid, int64_t grace_ns, muster_error *error);
muster_status muster_queue_create(muster_context *context, const muster_queue_config *config, muster_queue **out_queue, muster_error *error);
muster_status muster_queue_next(muster_queue *queue, int64_t timeout_ns, muster_completion *out, muster_error *error);
muster_status muster_queue_dispatch(muster_queue *queue, int64_t timeout_ns, muster_queue_handler_fn handler, void *user, uint64_t *out_count);
muster_status muster_queue_cancel(muster_queue *queue);
muster_status muster_queue_cancel_operation(muster_queue *queue, uint64_t tag);
muster_status muster_queue_post(muster_queue *queue, uint64_t tag, uint64_t value);
muster_status muster_queue_fd(muster_queue *queue, int32_t *out_fd);
muster_status muster_queue_watch_fd(muster_queue *queue, int32_t fd, uint32_t events, uint64_t tag, muster_error *error);
muster_status muster_queue_unwatch_fd(muster_queue *queue, int32_t fd);
muster_status muster_queue_set_wake(muster_queue *queue, muster_wake_fn wake, void *user);
muster_status muster_queue_close(muster_queue *queue);
void muster_queue_release(muster_queue *queue);
muster_status muster_queue_get_stats(muster_queue *queue, muster_queue_stats *out_stats);
muster_status muster_rendezvous_open(muster_context *context, const muster_rendezvous_config *config, int64_t timeout_ns, muster_rendezvous **out_rendezvous, muster_error *error);
muster_status muster_rendezvous_open_begin(muster_context *context, const muster_rendezvous_config *config, int64_t timeout_ns, muster_queue *queue, uint64_t tag, muster_error *error);
muster_status muster_rendezvous_join(muster_rendezvous *rendezvous, int64_t timeout_ns, muster_round **out_round, muster_error *error);
muster_status muster_rendezvous_leave(muster_rendezvous *rendezvous, int64_t timeout_ns, muster_error *error);
muster_status muster_rendezvous_exit(muster_rendezvous *rendezvous, int64_t timeout_ns, muster_error *error);
muster_status muster_rendezvous_abort(muster_rendezvous *rendezvous, const void *reason, size_t reason_bytes, int64_t timeout_ns, muster_error *error);
muster_status muster_rendezvous_close(muster_rendezvous *rendezvous, const void *reason, size_t reason_bytes, int64_t timeout_ns, muster_error *error);
muster_status muster_rendezvous_begin(muster_rendezvous *rendezvous, uint32_t operation, const void *reason, size_t reason_bytes, int64_t timeout_ns, muster_queue *queue, uint64_t tag, muster_error *error);
muster_status muster_rendezvous_cancel(muster_rendezvous *rendezvous);
muster_status muster_rendezvous_next_event(muster_rendezvous *rendezvous, int64_t timeout_ns, muster_rendezvous_event *out_event);
muster_status muster_rendezvous_get_state(muster_rendezvous *rendezvous, muster_rendezvous_state *out_state);
muster_status muster_rendezvous_list(muster_rendezvous *rendezvous, char *out_text, size_t capacity, int64_t timeout_ns, size_t *out_bytes, muster_error *error);
muster_status muster_rendezvous_list_begin(muster_rendezvous *rendezvous, char *out_text, size_t capacity, int64_t timeout_ns, muster_queue *queue, uint64_t tag, muster_error *error);
void muster_rendezvous_release(muster_rendezvous *rendezvous);
muster_status muster_round_get_info(const muster_round *round, muster_round_info *out_info);
muster_status muster_round_store(muster_round *round, muster_store **out_store, muster_error *error);
muster_status muster_round_member(muster_round *round, uint32_t rank, int64_t timeout_ns, muster_round_member_info *out_member, muster_error *error);
muster_status muster_round_member_begin(muster_round *round, uint32_t rank, int64_t timeout_ns, muster_queue *queue, uint64_t tag, muster_error *error);
void muster_round_release(muster_round *round);
muster_status muster_rendezvous_serve(muster_context *context, const char *scheme, size_t scheme_bytes, muster_queue *requests, uint64_t tag, muster_error *error);
muster_status muster_rendezvous_serve_ops(muster_context *context, const char *scheme, size_t scheme_bytes, const muster_rendezvous_ops *ops, void *self, muster_queue *requests, muster_error *error);
muster_status muster_rendezvous_withdraw(muster_context *context, const char *scheme, size_t scheme_bytes);
muster_status muster_rendezvous_request_read(muster_queue *requests, uint64_t request, muster_rendezvous_request *out_what);
muster_status muster_rendezvous_request_round(muster_queue *requests, uint64_t request, const muster_rendezvous_assignment *assignment, muster_error *error);
muster_status muster_rendezvous_request_done(muster_queue *requests, uint64_t request, const void *text, size_t text_bytes, muster_error *error);
muster_status muster_rendezvous_request_fail(muster_queue *requests, uint64_t request, muster_status status, const char *text, size_t text_bytes);
muster_status muster_rendezvous_notify(muster_queue *requests, uint64_t member, const muster_rendezvous_event *event, muster_error *error);
muster_status muster_transport_serve(muster_context *context, const char *scheme, size_t scheme_bytes, uint32_t flags, muster_queue *requests, uint64_t tag, muster_error *error);
muster_status muster_transport_serve_ops(muster_context *context, const char *scheme, size_t scheme_bytes, const muster_transport_ops *ops, void *self, muster_queue *requests, muster_error *error);
muster_status muster_transport_withdraw(muster_context *context, const char *scheme, size_t scheme_bytes);
muster_status muster_request_address(muster_queue *requests, uint64_t request, char *out_text, size_t capacity, size_t *out_bytes);
muster_status muster_request_stream(muster_queue *requests, uint64_t request, muster_stream **out_pump, muster_error *error);
muster_status muster_request_listening(muster_queue *requests, uint64_t request, const char *address, size_t address_bytes, muster_error *error);
muster_status muster_request_fail(muster_queue *requests, uint64_t request, muster_status status, const char *text, size_t text_bytes);
muster_status muster_transport_incoming(muster_queue *requests, uint64_t listen_request, const char *peer, size_t peer_bytes, uint64_t *out_request, muster_stream **out_pump, muster_error *error);
muster_status muster_socket_create(muster_context *context, const muster_socket_config *config, muster_socket **out_socket, muster_error *error);
uint64_t muster_socket_address(const muster_socket *socket);
muster_status muster_socket_bind(muster_socket *socket, const char *address, size_t address_bytes, char *out_text, size_t capacity, muster_error *error);
muster_status muster_socket_connect(muster_socket *socket, const char *address, size_t address_bytes, muster_error *error);
muster_status muster_socket_wait_peers(muster_socket *socket, uint32_t count, int64_t timeout_ns, uint32_t *out_count);
muster_status muster_socket_send(muster_socket *socket, muster_message *message, int64_t timeout_ns, muster_error *error);
muster_status muster_socket_loan_frame(muster_socket *socket, muster_message *message, size_t bytes, void **out_data, muster_error *error);
muster_status muster_socket_receive(muster_socket *socket, int64_t timeout_ns, muster_message **out_message);
muster_status muster_socket_next_event(muster_socket *socket, int64_t timeout_ns, muster_socket_event *out_event);
muster_status muster_socket_get_stats(muster_socket *socket, muster_socket_stats *out_stats);
muster_status muster_socket_cancel(muster_socket *socket);
muster_status muster_socket_close(muster_socket *socket, int64_t timeout_ns);
void muster_socket_release(muster_socket *socket);
muster_status muster_store_open(muster_context *context, const char *url, size_t url_bytes, const muster_store_config *config, int64_t timeout_ns, muster_store **out_store, muster_error *error);
muster_status muster_store_open_begin(muster_context *context, const char *url, size_t url_bytes, const muster_store_config *config, int64_t timeout_ns, muster_queue *queue, uint64_t tag, muster_error *error);
muster_status muster_store_view(muster_store *store, const void *prefix, size_t prefix_bytes, muster_store **out_view, muster_error *error);
uint32_t muster_store_capabilities(const muster_store *store);
muster_status muster_store_do(muster_store *store, const muster_store_op *ops, size_t op_count, int64_t timeout_ns, muster_store_result **out_result, muster_error *error);
muster_status muster_store_begin(muster_store *store, const muster_store_op *ops, size_t op_count, int64_t timeout_ns, muster_queue *queue, uint64_t tag, uint64_t *out_request, muster_error *error);
muster_status muster_store_cancel(muster_store *store, uint64_t request);
muster_status muster_store_lease(muster_store *store, int64_t ttl_ns, uint32_t flags, int64_t timeout_ns, muster_lease **out_lease, muster_error *error);
muster_status muster_store_lease_begin(muster_store *store, int64_t ttl_ns, uint32_t flags, int64_t timeout_ns, muster_queue *queue, uint64_t tag, uint64_t *out_request, muster_error *error);
uint64_t muster_lease_id(const muster_lease *lease);
muster_status muster_lease_keep(muster_lease *lease);
muster_status muster_lease_end(muster_lease *lease, int64_t timeout_ns, muster_error *error);
muster_status muster_lease_end_begin(muster_lease *lease, int64_t timeout_ns, muster_queue *queue, uint64_t tag, muster_error *error);
void muster_lease_release(muster_lease *lease);
void muster_store_release(muster_store *store);
uint64_t muster_store_result_count(const muster_store_result *result);
muster_status muster_store_result_entry(const muster_store_result *result, uint64_t index, muster_store_entry *out_entry);
uint64_t muster_store_result_revision(const muster_store_result *result);
void muster_store_result_release(muster_store_result *result);
muster_status muster_store_serve(muster_context *context, const char *scheme, size_t scheme_bytes, muster_queue *requests, uint64_t tag, muster_error *error);
muster_status muster_store_serve_ops(muster_context *context, const char *scheme, size_t scheme_bytes, const muster_store_host_ops *ops, void *self, muster_queue *requests, muster_error *error);
muster_status muster_store_withdraw(muster_context *context, const char *scheme, size_t scheme_bytes);
muster_status muster_store_request_read(muster_queue *requests, uint64_t request, muster_store_request *out_what);
muster_status muster_store_request_open(muster_queue *requests, uint64_t request, const muster_store_traits *traits, muster_error *error);
muster_status muster_store_request_done(muster_queue *requests, uint64_t request, muster_status status, const muster_store_entry *entries, size_t entry_count, uint64_t revision, muster_error *error);
muster_status muster_store_request_fail(muster_queue *requests, uint64_t request, muster_status status, uint32_t op, const char *text, size_t text_bytes);
muster_status muster_store_server_open(muster_context *context, const char *url, size_t url_bytes, const muster_store_server_config *config, muster_store_server **out_server, muster_error *error);
muster_status muster_store_server_address(muster_store_server *server, char *out_text, size_t capacity, size_t *out_bytes);
muster_status muster_store_server_get_stats(muster_store_server *server, muster_store_server_stats *out_stats);
muster_status muster_store_server_force_standalone(muster_store_server *server);
muster_status muster_store_server_close(muster_store_server *server, int64_t timeout_ns);
muster_status muster_store_server_close_begin(muster_store_server *server, int64_t timeout_ns, muster_queue *queue, uint64_t tag, muster_error *error);
void muster_store_server_release(muster_store_server *server);
muster_status muster_stream_pair(muster_context *context, const muster_stream_config *config, muster_stream **out_first, muster_stream **out_second, muster_error *error);
muster_status muster_stream_write(muster_stream *stream, const void *data, size_t size_bytes, int64_t timeout_ns, size_t *out_bytes);
muster_status muster_stream_write_many(muster_stream *const *streams, uint32_t count, const void *data, size_t size_bytes, int64_t timeout_ns, muster_status *out_statuses, size_t *out_bytes);
muster_status muster_stream_write_owned(muster_stream *stream, const void *data, size_t size_bytes, muster_queue *queue, uint64_t tag);
muster_status muster_stream_write_owned_many(muster_stream *const *streams, uint32_t count, const void *data, size_t size_bytes, muster_queue *queue, const uint64_t *tags, muster_status *out_statuses);
muster_status muster_stream_reserve(muster_stream *stream, size_t min_bytes, int64_t timeout_ns, void **out_data, size_t *out_bytes);
muster_status muster_stream_commit(muster_stream *stream, size_t size_bytes);
muster_status muster_stream_flush(muster_stream *stream, int64_t timeout_ns);
muster_status muster_stream_flush_begin(muster_stream *stream, int64_t timeout_ns, muster_queue *queue, uint64_t tag, muster_error *error);
muster_status muster_stream_read(muster_stream *stream, void *out_data, size_t capacity_bytes, int64_t timeout_ns, size_t *out_bytes);
muster_status muster_stream_read_into(muster_stream *stream, void *out_data, size_t size_bytes, uint32_t flags, int64_t timeout_ns, size_t *out_bytes);
muster_status muster_stream_read_begin(muster_stream *stream, void *out_data, size_t size_bytes, uint32_t flags, muster_queue *queue, uint64_t tag);
muster_status muster_stream_peek(muster_stream *stream, size_t min_bytes, int64_t timeout_ns, const void **out_data, size_t *out_bytes);
muster_status muster_stream_consume(muster_stream *stream, size_t size_bytes);
muster_status muster_stream_finish(muster_stream *stream);
muster_status muster_stream_abort(muster_stream *stream, uint64_t reason, const char *text, size_t text_bytes);
muster_status muster_stream_close(muster_stream *stream, int64_t timeout_ns);
muster_status muster_stream_close_begin(muster_stream *stream, int64_t timeout_ns, muster_queue *queue, uint64_t tag, muster_error *error);
void muster_stream_release(muster_stream *stream);
muster_status muster_stream_cancel(muster_stream *stream, uint32_t directions);
muster_status muster_stream_watch(muster_stream *stream, uint32_t interest, muster_queue *queue, uint64_t tag);
muster_status muster_stream_reason(muster_stream *stream, uint64_t *out_reason, muster_error *error);
muster_status muster_stream_peer(muster_stream *stream, char *out_text, size_t capacity, size_t *out_bytes);
muster_status muster_stream_local_address(muster_stream *stream, char *out_text, size_t capacity, size_t *out_bytes);
muster_status muster_stream_exit_with_peer(muster_stream *stream, int64_t grace_ns);
muster_status muster_stream_get_stats(muster_stream *stream, muster_stream_stats *out_stats);
muster_status muster_trace_start(const muster_trace_config *config, muster_error *error);
void muster_trace_stop(void);
void muster_trace_begin(const char *name, size_t name_bytes);
void muster_trace_end(void);
void muster_trace_mark(const char *name, size_t name_bytes);
void muster_trace_flow(const char *name, size_t name_bytes, uint64_t flow);
muster_status muster_trace_get_state(muster_trace_state *out_state);
muster_status muster_trace_align(muster_group *group, int64_t timeout_ns, muster_trace_state *out_state, muster_error *error);
muster_status muster_trace_save(const char *path, size_t path_bytes, muster_error *error);
muster_status muster_transport_dial(muster_context *context, const char *address, size_t address_bytes, const muster_transport_config *config, int64_t timeout_ns, muster_stream **out_stream, muster_error *error);
muster_status muster_transport_dial_begin(muster_context *context, const char *address, size_t address_bytes, const muster_transport_config *config, int64_t timeout_ns, muster_queue *queue, uint64_t tag, muster_error *error);
muster_status muster_transport_listen(muster_context *context, const char *address, size_t address_bytes, const muster_transport_config *config, muster_listener **out_listener, muster_error *error);
muster_status muster_transport_listen_begin(muster_context *context, const char *address, size_t address_bytes, const muster_transport_config *config, muster_queue *queue, uint64_t tag, muster_error *error);
muster_status muster_listener_accept(muster_listener *listener, int64_t timeout_ns, muster_stream **out_stream, muster_error *error);
muster_status muster_listener_watch(muster_listener *listener, muster_queue *queue, uint64_t tag);
muster_status muster_listener_address(muster_listener *listener, char *out_text, size_t capacity, size_t *out_bytes);
muster_status muster_listener_cancel(muster_listener *listener);
muster_status muster_listener_close(muster_listener *listener);
muster_status muster_listener_close_begin(muster_listener *listener, muster_queue *queue, uint64_t tag, muster_error *error);
void muster_listener_release(muster_listener *listener);
muster_status muster_transport_hello(muster_stream *stream, void *out_data, size_t capacity, size_t *out_bytes);
muster_status muster_worker_context(const muster_context_config *config, int32_t ticket_fd_plus_one, muster_context **out_context, muster_error *error);
muster_status muster_worker_start(muster_context *context, const muster_worker_config *config, int64_t timeout_ns, muster_cluster **out_cluster, muster_error *error);
muster_status muster_worker_start_begin(muster_context *context, const muster_worker_config *config, int64_t timeout_ns, muster_cluster **out_cluster, muster_error *error);
]]

surface.functions = {
  { "muster_agent_start", "muster_status", { { "handle", "context", "muster_context" }, { "struct", "config", "muster_agent_config" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" }, { "new", "out_agent", "muster_agent" }, { "error", "error", "muster_error" } } },
  { "muster_agent_wait", "muster_status", { { "handle", "agent", "muster_agent" }, { "number", "timeout_ns", "int64_t" }, { "error", "error", "muster_error" } } },
  { "muster_agent_signal", "muster_status", { { "handle", "agent", "muster_agent" }, { "number", "signal", "int32_t" } } },
  { "muster_agent_stop", "muster_status", { { "handle", "agent", "muster_agent" }, { "number", "signal", "int32_t" }, { "number", "grace_ns", "int64_t" } } },
  { "muster_agent_get_state", "muster_status", { { "handle", "agent", "muster_agent" }, { "gives_struct", "out_state", "muster_agent_state" } } },
  { "muster_agent_rendezvous", "muster_status", { { "handle", "agent", "muster_agent" }, { "new", "out_rendezvous", "muster_rendezvous" } } },
  { "muster_agent_get_worker", "muster_status", { { "handle", "agent", "muster_agent" }, { "number", "local_rank", "uint32_t" }, { "gives_struct", "out_worker", "muster_agent_worker" } } },
  { "muster_agent_first_failure", "muster_status", { { "handle", "agent", "muster_agent" }, { "gives_struct", "out_worker", "muster_agent_worker" } } },
  { "muster_agent_failure_text", "muster_status", { { "handle", "agent", "muster_agent" }, { "gives_text", "out_text", "char" } } },
  { "muster_agent_flush", "muster_status", { { "handle", "agent", "muster_agent" }, { "number", "timeout_ns", "int64_t" } } },
  { "muster_agent_flush_begin", "muster_status", { { "handle", "agent", "muster_agent" }, { "number", "timeout_ns", "int64_t" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_agent_release", "void", { { "handle", "agent", "muster_agent" } } },
  { "muster_am_create", "muster_status", { { "handle", "context", "muster_context" }, { "struct", "config", "muster_am_config" }, { "new", "out_am", "muster_am" }, { "error", "error", "muster_error" } } },
  { "muster_am_set_handler", "muster_status", { { "handle", "am", "muster_am" }, { "number", "handler", "uint32_t" }, { "as_it_is", "function", "muster_am_fn" }, { "as_it_is", "user", "void" } } },
  { "muster_am_serve", "muster_status", { { "handle", "am", "muster_am" }, { "number", "handler", "uint32_t" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" } } },
  { "muster_am_add_peer", "muster_status", { { "handle", "am", "muster_am" }, { "handle", "stream", "muster_stream" }, { "gives_number", "out_peer", "uint32_t" }, { "error", "error", "muster_error" } } },
  { "muster_am_call", "muster_status", { { "handle", "am", "muster_am" }, { "number", "peer", "uint32_t" }, { "number", "handler", "uint32_t" }, { "as_it_is", "data", "void" }, { "number", "bytes", "size_t" }, { "as_it_is", "out_reply", "void" }, { "number", "capacity", "size_t" }, { "number", "timeout_ns", "int64_t" }, { "gives_number", "out_bytes", "size_t" }, { "error", "error", "muster_error" } } },
  { "muster_am_begin", "muster_status", { { "handle", "am", "muster_am" }, { "number", "peer", "uint32_t" }, { "number", "handler", "uint32_t" }, { "as_it_is", "data", "void" }, { "number", "bytes", "size_t" }, { "as_it_is", "out_reply", "void" }, { "number", "capacity", "size_t" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" } } },
  { "muster_am_flush", "muster_status", { { "handle", "am", "muster_am" }, { "number", "peer", "uint32_t" }, { "number", "timeout_ns", "int64_t" } } },
  { "muster_am_get_peer", "muster_status", { { "handle", "am", "muster_am" }, { "number", "peer", "uint32_t" }, { "gives_struct", "out_peer", "muster_am_peer" }, { "error", "error", "muster_error" } } },
  { "muster_am_disconnect", "muster_status", { { "handle", "am", "muster_am" }, { "number", "peer", "uint32_t" }, { "as_it_is", "text", "char" } } },
  { "muster_am_request_get", "muster_status", { { "handle", "request", "muster_am_request" }, { "gives_struct", "out_info", "muster_am_request_info" } } },
  { "muster_am_request_reply", "muster_status", { { "handle", "request", "muster_am_request" }, { "number", "status", "muster_status" }, { "as_it_is", "data", "void" }, { "number", "bytes", "size_t" } } },
  { "muster_am_request_release", "void", { { "handle", "request", "muster_am_request" } } },
  { "muster_am_close", "muster_status", { { "handle", "am", "muster_am" } } },
  { "muster_am_release", "void", { { "handle", "am", "muster_am" } } },
  { "muster_atomic_read64", "muster_status", { { "as_it_is", "cell", "uint64_t" }, { "number", "order", "int32_t" }, { "gives_number", "out_value", "uint64_t" } } },
  { "muster_atomic_write64", "muster_status", { { "as_it_is", "cell", "uint64_t" }, { "number", "value", "uint64_t" }, { "number", "order", "int32_t" } } },
  { "muster_atomic_exchange64", "muster_status", { { "as_it_is", "cell", "uint64_t" }, { "number", "value", "uint64_t" }, { "number", "order", "int32_t" }, { "gives_number", "out_value", "uint64_t" } } },
  { "muster_atomic_compare_exchange64", "muster_status", { { "as_it_is", "cell", "uint64_t" }, { "as_it_is", "expected", "uint64_t" }, { "number", "desired", "uint64_t" }, { "number", "order", "int32_t" } } },
  { "muster_atomic_fetch64", "muster_status", { { "as_it_is", "cell", "uint64_t" }, { "number", "operation", "int32_t" }, { "number", "operand", "uint64_t" }, { "number", "order", "int32_t" }, { "gives_number", "out_value", "uint64_t" } } },
  { "muster_atomic_read32", "muster_status", { { "as_it_is", "cell", "uint32_t" }, { "number", "order", "int32_t" }, { "gives_number", "out_value", "uint32_t" } } },
  { "muster_atomic_write32", "muster_status", { { "as_it_is", "cell", "uint32_t" }, { "number", "value", "uint32_t" }, { "number", "order", "int32_t" } } },
  { "muster_atomic_exchange32", "muster_status", { { "as_it_is", "cell", "uint32_t" }, { "number", "value", "uint32_t" }, { "number", "order", "int32_t" }, { "gives_number", "out_value", "uint32_t" } } },
  { "muster_atomic_compare_exchange32", "muster_status", { { "as_it_is", "cell", "uint32_t" }, { "as_it_is", "expected", "uint32_t" }, { "number", "desired", "uint32_t" }, { "number", "order", "int32_t" } } },
  { "muster_atomic_fetch32", "muster_status", { { "as_it_is", "cell", "uint32_t" }, { "number", "operation", "int32_t" }, { "number", "operand", "uint32_t" }, { "number", "order", "int32_t" }, { "gives_number", "out_value", "uint32_t" } } },
  { "muster_atomic_test_and_set", "muster_status", { { "as_it_is", "flag", "uint32_t" }, { "number", "order", "int32_t" } } },
  { "muster_atomic_clear", "muster_status", { { "as_it_is", "flag", "uint32_t" }, { "number", "order", "int32_t" } } },
  { "muster_atomic_wait", "muster_status", { { "as_it_is", "conditions", "muster_atomic_condition" }, { "number", "count", "uint32_t" }, { "number", "needed", "uint32_t" }, { "number", "timeout_ns", "int64_t" } } },
  { "muster_atomic_notify", "muster_status", { { "text", "cell", "void" } } },
  { "muster_aba_size", "uint32_t", {  } },
  { "muster_aba_alignment", "uint32_t", {  } },
  { "muster_aba_read", "muster_status", { { "struct", "cell", "muster_aba" }, { "gives_struct", "out", "muster_aba" } } },
  { "muster_aba_write", "muster_status", { { "as_it_is", "cell", "muster_aba" }, { "number", "value", "uint64_t" } } },
  { "muster_aba_exchange", "muster_status", { { "as_it_is", "cell", "muster_aba" }, { "number", "value", "uint64_t" }, { "gives_struct", "out", "muster_aba" } } },
  { "muster_aba_compare_exchange", "muster_status", { { "as_it_is", "cell", "muster_aba" }, { "as_it_is", "expected", "muster_aba" }, { "number", "desired", "uint64_t" } } },
  { "muster_aba_compare_exchange_value", "muster_status", { { "as_it_is", "cell", "muster_aba" }, { "as_it_is", "expected", "uint64_t" }, { "number", "desired", "uint64_t" } } },
  { "muster_status_name", "const char *", { { "number", "status", "muster_status" } } },
  { "muster_status_text", "const char *", { { "number", "status", "muster_status" } } },
  { "muster_version", "const char *", { { "gives_number", "out_major", "uint32_t" }, { "gives_number", "out_minor", "uint32_t" }, { "gives_number", "out_patch", "uint32_t" } } },
  { "muster_config_init", "muster_status", { { "as_it_is", "config", "void" }, { "number", "struct_size", "uint32_t" } } },
  { "muster_broker_open", "muster_status", { { "handle", "context", "muster_context" }, { "text", "address", "char" }, { "struct", "config", "muster_broker_config" }, { "new", "out_broker", "muster_broker" }, { "error", "error", "muster_error" } } },
  { "muster_broker_address", "muster_status", { { "handle", "broker", "muster_broker" }, { "gives_text", "out_text", "char" } } },
  { "muster_broker_get_stats", "muster_status", { { "handle", "broker", "muster_broker" }, { "gives_struct", "out_stats", "muster_broker_stats" } } },
  { "muster_broker_close", "muster_status", { { "handle", "broker", "muster_broker" }, { "number", "timeout_ns", "int64_t" } } },
  { "muster_broker_close_begin", "muster_status", { { "handle", "broker", "muster_broker" }, { "number", "timeout_ns", "int64_t" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_broker_release", "void", { { "handle", "broker", "muster_broker" } } },
  { "muster_cluster_open", "muster_status", { { "handle", "context", "muster_context" }, { "struct", "config", "muster_cluster_config" }, { "new", "out_cluster", "muster_cluster" }, { "error", "error", "muster_error" } } },
  { "muster_cluster_open_begin", "muster_status", { { "handle", "context", "muster_context" }, { "struct", "config", "muster_cluster_config" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_cluster_add", "muster_status", { { "handle", "cluster", "muster_cluster" }, { "struct", "launch", "muster_launch" }, { "gives_number", "out_first", "uint32_t" }, { "error", "error", "muster_error" } } },
  { "muster_cluster_add_begin", "muster_status", { { "handle", "cluster", "muster_cluster" }, { "struct", "launch", "muster_launch" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_cluster_remove", "muster_status", { { "handle", "cluster", "muster_cluster" }, { "number", "member", "uint32_t" }, { "number", "grace_ns", "int64_t" } } },
  { "muster_cluster_interrupt", "muster_status", { { "handle", "cluster", "muster_cluster" }, { "number", "member", "uint32_t" } } },
  { "muster_cluster_next_event", "muster_status", { { "handle", "cluster", "muster_cluster" }, { "number", "timeout_ns", "int64_t" }, { "gives_struct", "out_event", "muster_cluster_event" } } },
  { "muster_cluster_store", "muster_status", { { "handle", "cluster", "muster_cluster" }, { "number", "timeout_ns", "int64_t" }, { "new", "out_store", "muster_store" }, { "error", "error", "muster_error" } } },
  { "muster_cluster_store_begin", "muster_status", { { "handle", "cluster", "muster_cluster" }, { "number", "timeout_ns", "int64_t" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_cluster_cancel", "muster_status", { { "handle", "cluster", "muster_cluster" } } },
  { "muster_cluster_dial", "muster_status", { { "handle", "cluster", "muster_cluster" }, { "number", "member", "uint32_t" }, { "text", "label", "void" }, { "number", "timeout_ns", "int64_t" }, { "new", "out_stream", "muster_stream" }, { "error", "error", "muster_error" } } },
  { "muster_cluster_dial_begin", "muster_status", { { "handle", "cluster", "muster_cluster" }, { "number", "member", "uint32_t" }, { "text", "label", "void" }, { "number", "timeout_ns", "int64_t" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_cluster_broadcast", "muster_status", { { "handle", "cluster", "muster_cluster" }, { "as_it_is", "members", "uint32_t" }, { "number", "count", "size_t" }, { "text", "label", "void" }, { "text", "data", "void" }, { "number", "timeout_ns", "int64_t" }, { "as_it_is", "out_statuses", "muster_status" }, { "error", "error", "muster_error" } } },
  { "muster_cluster_broadcast_begin", "muster_status", { { "handle", "cluster", "muster_cluster" }, { "as_it_is", "members", "uint32_t" }, { "number", "count", "size_t" }, { "text", "label", "void" }, { "text", "data", "void" }, { "number", "timeout_ns", "int64_t" }, { "as_it_is", "out_statuses", "muster_status" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_broadcast_release", "void", { { "handle", "broadcast", "muster_broadcast" } } },
  { "muster_cluster_get_member", "muster_status", { { "handle", "cluster", "muster_cluster" }, { "number", "member", "uint32_t" }, { "gives_struct", "out_info", "muster_member_info" } } },
  { "muster_cluster_list", "muster_status", { { "handle", "cluster", "muster_cluster" }, { "gives_list", "out_members", "uint32_t" } } },
  { "muster_cluster_self", "uint32_t", { { "handle", "cluster", "muster_cluster" } } },
  { "muster_cluster_close", "muster_status", { { "handle", "cluster", "muster_cluster" }, { "number", "timeout_ns", "int64_t" } } },
  { "muster_cluster_close_begin", "muster_status", { { "handle", "cluster", "muster_cluster" }, { "number", "timeout_ns", "int64_t" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_cluster_release", "void", { { "handle", "cluster", "muster_cluster" } } },
  { "muster_context_create", "muster_status", { { "struct", "config", "muster_context_config" }, { "new", "out_context", "muster_context" }, { "error", "error", "muster_error" } } },
  { "muster_context_default", "muster_status", { { "new", "out_context", "muster_context" }, { "error", "error", "muster_error" } } },
  { "muster_context_close", "muster_status", { { "handle", "context", "muster_context" }, { "number", "timeout_ns", "int64_t" } } },
  { "muster_context_cancel", "muster_status", { { "handle", "context", "muster_context" } } },
  { "muster_context_release", "void", { { "handle", "context", "muster_context" } } },
  { "muster_context_fd", "muster_status", { { "handle", "context", "muster_context" }, { "gives_number", "out_fd", "int32_t" } } },
  { "muster_context_progress", "muster_status", { { "handle", "context", "muster_context" }, { "number", "timeout_ns", "int64_t" } } },
  { "muster_context_secret", "muster_status", { { "handle", "context", "muster_context" }, { "gives_text", "out_secret", "void" } } },
  { "muster_context_log", "muster_status", { { "handle", "context", "muster_context" }, { "number", "level", "int32_t" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" } } },
  { "muster_context_get_stats", "muster_status", { { "handle", "context", "muster_context" }, { "gives_struct", "out_stats", "muster_context_stats" } } },
  { "muster_epoch_size", "uint64_t", { { "number", "max_tokens", "uint32_t" }, { "number", "max_pending", "uint32_t" } } },
  { "muster_epoch_create", "muster_status", { { "struct", "config", "muster_epoch_config" }, { "new", "out_epoch", "muster_epoch" }, { "error", "error", "muster_error" } } },
  { "muster_epoch_open", "muster_status", { { "struct", "config", "muster_epoch_config" }, { "new", "out_epoch", "muster_epoch" }, { "error", "error", "muster_error" } } },
  { "muster_epoch_release", "void", { { "handle", "epoch", "muster_epoch" } } },
  { "muster_epoch_register", "muster_status", { { "handle", "epoch", "muster_epoch" }, { "as_it_is", "out_token", "muster_epoch_token" }, { "error", "error", "muster_error" } } },
  { "muster_epoch_unregister", "muster_status", { { "as_it_is", "token", "muster_epoch_token" } } },
  { "muster_epoch_pin", "muster_status", { { "as_it_is", "token", "muster_epoch_token" } } },
  { "muster_epoch_unpin", "muster_status", { { "as_it_is", "token", "muster_epoch_token" } } },
  { "muster_epoch_repin", "muster_status", { { "as_it_is", "token", "muster_epoch_token" } } },
  { "muster_epoch_online", "muster_status", { { "as_it_is", "token", "muster_epoch_token" } } },
  { "muster_epoch_quiescent", "muster_status", { { "as_it_is", "token", "muster_epoch_token" } } },
  { "muster_epoch_offline", "muster_status", { { "as_it_is", "token", "muster_epoch_token" } } },
  { "muster_epoch_protect", "muster_status", { { "as_it_is", "token", "muster_epoch_token" }, { "number", "slot", "uint32_t" }, { "number", "object", "uint64_t" } } },
  { "muster_epoch_defer", "muster_status", { { "as_it_is", "token", "muster_epoch_token" }, { "as_it_is", "free", "muster_epoch_free_fn" }, { "as_it_is", "user", "void" }, { "as_it_is", "object", "void" } } },
  { "muster_epoch_retire", "muster_status", { { "as_it_is", "token", "muster_epoch_token" }, { "number", "object", "uint64_t" } } },
  { "muster_epoch_try_reclaim", "muster_status", { { "as_it_is", "token", "muster_epoch_token" }, { "gives_struct", "out", "muster_epoch_attempt" } } },
  { "muster_epoch_advance", "muster_status", { { "handle", "epoch", "muster_epoch" }, { "gives_struct", "out", "muster_epoch_attempt" } } },
  { "muster_epoch_poll", "muster_status", { { "as_it_is", "token", "muster_epoch_token" }, { "number", "max_objects", "uint32_t" }, { "number", "max_ns", "uint64_t" }, { "gives_number", "out_objects", "uint64_t" }, { "number", "out_capacity", "uint32_t" }, { "gives_number", "out_count", "uint32_t" }, { "gives_number", "out_freed", "uint32_t" } } },
  { "muster_epoch_synchronize", "muster_status", { { "as_it_is", "token", "muster_epoch_token" }, { "number", "timeout_ns", "int64_t" }, { "gives_struct", "out", "muster_epoch_attempt" } } },
  { "muster_epoch_barrier", "muster_status", { { "as_it_is", "token", "muster_epoch_token" }, { "number", "timeout_ns", "int64_t" } } },
  { "muster_epoch_clear", "muster_status", { { "handle", "epoch", "muster_epoch" }, { "gives_number", "out_freed", "uint64_t" } } },
  { "muster_epoch_get_stats", "muster_status", { { "handle", "epoch", "muster_epoch" }, { "gives_struct", "out_stats", "muster_epoch_stats" } } },
  { "muster_forwarder_create", "muster_status", { { "handle", "context", "muster_context" }, { "struct", "config", "muster_forwarder_config" }, { "new", "out_forwarder", "muster_forwarder" }, { "error", "error", "muster_error" } } },
  { "muster_forwarder_socket", "muster_socket *", { { "handle", "forwarder", "muster_forwarder" } } },
  { "muster_forwarder_add_route", "muster_status", { { "handle", "forwarder", "muster_forwarder" }, { "number", "pattern", "uint64_t" }, { "number", "next_hop", "uint64_t" } } },
  { "muster_forwarder_remove_route", "muster_status", { { "handle", "forwarder", "muster_forwarder" }, { "number", "pattern", "uint64_t" } } },
  { "muster_forwarder_set_hook", "muster_status", { { "handle", "forwarder", "muster_forwarder" }, { "number", "type", "uint32_t" }, { "handle", "into", "muster_message_queue" } } },
  { "muster_forwarder_send", "muster_status", { { "handle", "forwarder", "muster_forwarder" }, { "handle", "message", "muster_message" }, { "number", "timeout_ns", "int64_t" }, { "error", "error", "muster_error" } } },
  { "muster_forwarder_get_stats", "muster_status", { { "handle", "forwarder", "muster_forwarder" }, { "gives_struct", "out_stats", "muster_forwarder_stats" } } },
  { "muster_forwarder_close", "muster_status", { { "handle", "forwarder", "muster_forwarder" }, { "number", "timeout_ns", "int64_t" } } },
  { "muster_forwarder_release", "void", { { "handle", "forwarder", "muster_forwarder" } } },
  { "muster_group_open", "muster_status", { { "handle", "context", "muster_context" }, { "struct", "config", "muster_group_config" }, { "number", "timeout_ns", "int64_t" }, { "new", "out_group", "muster_group" }, { "error", "error", "muster_error" } } },
  { "muster_group_split", "muster_status", { { "handle", "group", "muster_group" }, { "number", "color", "int64_t" }, { "number", "key", "int64_t" }, { "number", "timeout_ns", "int64_t" }, { "new", "out_group", "muster_group" }, { "error", "error", "muster_error" } } },
  { "muster_group_connect", "muster_status", { { "handle", "group", "muster_group" }, { "number", "timeout_ns", "int64_t" }, { "new", "out_streams", "muster_stream" }, { "number", "capacity", "uint32_t" }, { "error", "error", "muster_error" } } },
  { "muster_group_rank", "uint32_t", { { "handle", "group", "muster_group" } } },
  { "muster_group_size", "uint32_t", { { "handle", "group", "muster_group" } } },
  { "muster_group_add_reduction", "muster_status", { { "handle", "group", "muster_group" }, { "number", "element_bytes", "uint32_t" }, { "as_it_is", "combine", "muster_reduce_fn" }, { "as_it_is", "user", "void" }, { "gives_number", "out_reduction", "uint32_t" } } },
  { "muster_group_run", "muster_status", { { "handle", "group", "muster_group" }, { "struct", "operation", "muster_group_operation" }, { "number", "timeout_ns", "int64_t" }, { "error", "error", "muster_error" } } },
  { "muster_group_begin", "muster_status", { { "handle", "group", "muster_group" }, { "struct", "operation", "muster_group_operation" }, { "number", "timeout_ns", "int64_t" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_group_barrier", "muster_status", { { "handle", "group", "muster_group" }, { "number", "timeout_ns", "int64_t" }, { "error", "error", "muster_error" } } },
  { "muster_group_broadcast", "muster_status", { { "handle", "group", "muster_group" }, { "as_it_is", "data", "void" }, { "number", "count", "uint64_t" }, { "number", "type", "uint32_t" }, { "number", "root", "uint32_t" }, { "number", "timeout_ns", "int64_t" }, { "error", "error", "muster_error" } } },
  { "muster_group_reduce", "muster_status", { { "handle", "group", "muster_group" }, { "as_it_is", "input", "void" }, { "as_it_is", "output", "void" }, { "number", "count", "uint64_t" }, { "number", "type", "uint32_t" }, { "number", "reduction", "uint32_t" }, { "number", "root", "uint32_t" }, { "number", "timeout_ns", "int64_t" }, { "error", "error", "muster_error" } } },
  { "muster_group_all_reduce", "muster_status", { { "handle", "group", "muster_group" }, { "as_it_is", "input", "void" }, { "as_it_is", "output", "void" }, { "number", "count", "uint64_t" }, { "number", "type", "uint32_t" }, { "number", "reduction", "uint32_t" }, { "number", "timeout_ns", "int64_t" }, { "error", "error", "muster_error" } } },
  { "muster_group_reduce_scatter", "muster_status", { { "handle", "group", "muster_group" }, { "as_it_is", "input", "void" }, { "as_it_is", "output", "void" }, { "number", "count", "uint64_t" }, { "number", "type", "uint32_t" }, { "number", "reduction", "uint32_t" }, { "number", "timeout_ns", "int64_t" }, { "error", "error", "muster_error" } } },
  { "muster_group_scan", "muster_status", { { "handle", "group", "muster_group" }, { "as_it_is", "input", "void" }, { "as_it_is", "output", "void" }, { "number", "count", "uint64_t" }, { "number", "type", "uint32_t" }, { "number", "reduction", "uint32_t" }, { "number", "timeout_ns", "int64_t" }, { "error", "error", "muster_error" } } },
  { "muster_group_gather", "muster_status", { { "handle", "group", "muster_group" }, { "as_it_is", "input", "void" }, { "as_it_is", "output", "void" }, { "number", "count", "uint64_t" }, { "number", "type", "uint32_t" }, { "number", "root", "uint32_t" }, { "number", "timeout_ns", "int64_t" }, { "error", "error", "muster_error" } } },
  { "muster_group_all_gather", "muster_status", { { "handle", "group", "muster_group" }, { "as_it_is", "input", "void" }, { "as_it_is", "output", "void" }, { "number", "count", "uint64_t" }, { "number", "type", "uint32_t" }, { "number", "timeout_ns", "int64_t" }, { "error", "error", "muster_error" } } },
  { "muster_group_scatter", "muster_status", { { "handle", "group", "muster_group" }, { "as_it_is", "input", "void" }, { "as_it_is", "output", "void" }, { "number", "count", "uint64_t" }, { "number", "type", "uint32_t" }, { "number", "root", "uint32_t" }, { "number", "timeout_ns", "int64_t" }, { "error", "error", "muster_error" } } },
  { "muster_group_all_to_all", "muster_status", { { "handle", "group", "muster_group" }, { "as_it_is", "input", "void" }, { "as_it_is", "output", "void" }, { "number", "count", "uint64_t" }, { "number", "type", "uint32_t" }, { "number", "timeout_ns", "int64_t" }, { "error", "error", "muster_error" } } },
  { "muster_group_send", "muster_status", { { "handle", "group", "muster_group" }, { "number", "rank", "uint32_t" }, { "text", "data", "void" }, { "number", "timeout_ns", "int64_t" }, { "error", "error", "muster_error" } } },
  { "muster_group_receive", "muster_status", { { "handle", "group", "muster_group" }, { "number", "rank", "uint32_t" }, { "as_it_is", "out_data", "void" }, { "number", "capacity", "uint64_t" }, { "number", "timeout_ns", "int64_t" }, { "gives_number", "out_bytes", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_group_get_status", "muster_status", { { "handle", "group", "muster_group" }, { "number", "rank", "uint32_t" }, { "gives_struct", "out_status", "muster_group_status" } } },
  { "muster_group_revoke", "muster_status", { { "handle", "group", "muster_group" }, { "text", "text", "char" } } },
  { "muster_group_close", "muster_status", { { "handle", "group", "muster_group" }, { "number", "timeout_ns", "int64_t" }, { "error", "error", "muster_error" } } },
  { "muster_group_release", "void", { { "handle", "group", "muster_group" } } },
  { "muster_manager_serve", "muster_status", { { "handle", "context", "muster_context" }, { "text", "name", "char" }, { "number", "operations", "uint32_t" }, { "handle", "requests", "muster_queue" }, { "number", "tag", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_manager_serve_ops", "muster_status", { { "handle", "context", "muster_context" }, { "text", "name", "char" }, { "struct", "ops", "muster_manager_ops" }, { "as_it_is", "self", "void" }, { "handle", "requests", "muster_queue" }, { "error", "error", "muster_error" } } },
  { "muster_manager_withdraw", "muster_status", { { "handle", "context", "muster_context" }, { "text", "name", "char" } } },
  { "muster_manager_request_read", "muster_status", { { "handle", "requests", "muster_queue" }, { "number", "request", "uint64_t" }, { "gives_struct", "out_what", "muster_manager_request" } } },
  { "muster_manager_ticket", "muster_status", { { "handle", "requests", "muster_queue" }, { "number", "request", "uint64_t" }, { "number", "member", "uint32_t" }, { "gives_text", "out_text", "char" } } },
  { "muster_manager_worker_ready", "muster_status", { { "handle", "requests", "muster_queue" }, { "number", "request", "uint64_t" }, { "number", "member", "uint32_t" }, { "text", "address", "char" }, { "number", "data", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_manager_worker_failed", "muster_status", { { "handle", "requests", "muster_queue" }, { "number", "request", "uint64_t" }, { "number", "member", "uint32_t" }, { "number", "status", "muster_status" }, { "text", "text", "char" }, { "error", "error", "muster_error" } } },
  { "muster_manager_worker_ended", "muster_status", { { "handle", "requests", "muster_queue" }, { "handle", "cluster", "muster_cluster" }, { "number", "member", "uint32_t" }, { "text", "text", "char" }, { "error", "error", "muster_error" } } },
  { "muster_manager_request_done", "muster_status", { { "handle", "requests", "muster_queue" }, { "number", "request", "uint64_t" }, { "text", "address", "char" }, { "error", "error", "muster_error" } } },
  { "muster_manager_request_fail", "muster_status", { { "handle", "requests", "muster_queue" }, { "number", "request", "uint64_t" }, { "number", "status", "muster_status" }, { "text", "text", "char" } } },
  { "muster_memory_open", "muster_status", { { "handle", "group", "muster_group" }, { "struct", "config", "muster_memory_config" }, { "number", "timeout_ns", "int64_t" }, { "new", "out_memory", "muster_memory" }, { "error", "error", "muster_error" } } },
  { "muster_memory_release", "void", { { "handle", "memory", "muster_memory" } } },
  { "muster_memory_locale", "uint32_t", { { "handle", "memory", "muster_memory" } } },
  { "muster_memory_locales", "uint32_t", { { "handle", "memory", "muster_memory" } } },
  { "muster_memory_pointer", "muster_status", { { "handle", "memory", "muster_memory" }, { "number", "locale", "uint32_t" }, { "number", "offset", "uint64_t" }, { "gives_number", "out", "muster_gptr" } } },
  { "muster_memory_parts", "muster_status", { { "handle", "memory", "muster_memory" }, { "number", "pointer", "muster_gptr" }, { "gives_number", "out_locale", "uint32_t" }, { "gives_number", "out_offset", "uint64_t" } } },
  { "muster_memory_address", "muster_status", { { "handle", "memory", "muster_memory" }, { "number", "pointer", "muster_gptr" }, { "number", "bytes", "uint64_t" }, { "as_it_is", "out_address", "void" } } },
  { "muster_memory_get_view", "muster_status", { { "handle", "memory", "muster_memory" }, { "gives_struct", "out_view", "muster_memory_view" } } },
  { "muster_memory_symmetric", "muster_status", { { "handle", "memory", "muster_memory" }, { "number", "bytes", "uint64_t" }, { "number", "alignment", "uint64_t" }, { "number", "timeout_ns", "int64_t" }, { "gives_number", "out_offset", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_memory_allocate", "muster_status", { { "handle", "memory", "muster_memory" }, { "number", "locale", "uint32_t" }, { "number", "bytes", "uint64_t" }, { "number", "timeout_ns", "int64_t" }, { "gives_number", "out", "muster_gptr" } } },
  { "muster_memory_free", "muster_status", { { "handle", "memory", "muster_memory" }, { "number", "block", "muster_gptr" }, { "number", "timeout_ns", "int64_t" } } },
  { "muster_memory_run", "muster_status", { { "handle", "memory", "muster_memory" }, { "struct", "operation", "muster_memory_operation" }, { "number", "timeout_ns", "int64_t" }, { "gives_struct", "out", "muster_memory_result" } } },
  { "muster_memory_begin", "muster_status", { { "handle", "memory", "muster_memory" }, { "struct", "operation", "muster_memory_operation" }, { "gives_struct", "out", "muster_memory_result" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" } } },
  { "muster_memory_flush", "muster_status", { { "handle", "memory", "muster_memory" }, { "number", "locale", "uint32_t" }, { "number", "timeout_ns", "int64_t" } } },
  { "muster_memory_get_locale", "muster_status", { { "handle", "memory", "muster_memory" }, { "number", "locale", "uint32_t" }, { "gives_struct", "out_info", "muster_memory_locale_info" }, { "error", "error", "muster_error" } } },
  { "muster_memory_epoch", "muster_status", { { "handle", "memory", "muster_memory" }, { "new", "out_epoch", "muster_epoch" } } },
  { "muster_memory_reclaim", "muster_status", { { "handle", "memory", "muster_memory" }, { "as_it_is", "token", "muster_epoch_token" }, { "number", "max_objects", "uint32_t" }, { "number", "max_ns", "uint64_t" }, { "gives_number", "out_freed", "uint32_t" } } },
  { "muster_memory_clear", "muster_status", { { "handle", "memory", "muster_memory" }, { "as_it_is", "token", "muster_epoch_token" }, { "number", "timeout_ns", "int64_t" }, { "gives_number", "out_freed", "uint64_t" } } },
  { "muster_memory_get_stats", "muster_status", { { "handle", "memory", "muster_memory" }, { "number", "locale", "uint32_t" }, { "number", "timeout_ns", "int64_t" }, { "gives_struct", "out_stats", "muster_memory_stats" } } },
  { "muster_message_create", "muster_status", { { "new", "out_message", "muster_message" } } },
  { "muster_message_copy", "muster_status", { { "handle", "message", "muster_message" }, { "new", "out_message", "muster_message" } } },
  { "muster_message_get_header", "muster_status", { { "handle", "message", "muster_message" }, { "gives_struct", "out_header", "muster_message_header" } } },
  { "muster_message_set_header", "muster_status", { { "handle", "message", "muster_message" }, { "struct", "header", "muster_message_header" } } },
  { "muster_message_swap_addresses", "muster_status", { { "handle", "message", "muster_message" } } },
  { "muster_message_add_frame", "muster_status", { { "handle", "message", "muster_message" }, { "as_it_is", "data", "void" }, { "number", "bytes", "size_t" } } },
  { "muster_message_lend_frame", "muster_status", { { "handle", "message", "muster_message" }, { "as_it_is", "data", "void" }, { "number", "bytes", "size_t" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" } } },
  { "muster_message_take_frame", "muster_status", { { "handle", "message", "muster_message" }, { "as_it_is", "data", "void" }, { "number", "bytes", "size_t" }, { "as_it_is", "release", "muster_free_fn" } } },
  { "muster_message_frame_count", "uint32_t", { { "handle", "message", "muster_message" } } },
  { "muster_message_frame", "muster_status", { { "handle", "message", "muster_message" }, { "number", "index", "uint32_t" }, { "gives_struct", "out_frame", "muster_buffer" } } },
  { "muster_message_first", "muster_status", { { "handle", "message", "muster_message" }, { "gives_struct", "out_frame", "muster_buffer" } } },
  { "muster_message_last", "muster_status", { { "handle", "message", "muster_message" }, { "gives_struct", "out_frame", "muster_buffer" } } },
  { "muster_message_next", "muster_status", { { "handle", "message", "muster_message" }, { "gives_struct", "out_frame", "muster_buffer" } } },
  { "muster_message_bytes", "muster_status", { { "handle", "message", "muster_message" }, { "gives_number", "out_payload", "uint64_t" }, { "gives_number", "out_total", "uint64_t" } } },
  { "muster_message_to_buffers", "muster_status", { { "handle", "message", "muster_message" }, { "gives_struct", "out_buffers", "muster_buffer" }, { "number", "capacity", "uint32_t" }, { "gives_number", "out_count", "uint32_t" } } },
  { "muster_message_from_buffers", "muster_status", { { "list", "buffers", "muster_buffer" }, { "new", "out_message", "muster_message" }, { "error", "error", "muster_error" } } },
  { "muster_message_add_values", "muster_status", { { "handle", "message", "muster_message" }, { "as_it_is", "picture", "char" }, { "list", "values", "muster_value" }, { "error", "error", "muster_error" } } },
  { "muster_message_get_values", "muster_status", { { "handle", "message", "muster_message" }, { "number", "index", "uint32_t" }, { "as_it_is", "picture", "char" }, { "as_it_is", "out_picture", "char" }, { "gives_struct", "out_values", "muster_value" }, { "number", "capacity", "uint32_t" }, { "gives_number", "out_count", "uint32_t" }, { "error", "error", "muster_error" } } },
  { "muster_message_release", "void", { { "handle", "message", "muster_message" } } },
  { "muster_message_address", "muster_status", { { "number", "group", "int64_t" }, { "number", "id", "int64_t" }, { "number", "kind", "int64_t" }, { "gives_number", "out_address", "uint64_t" } } },
  { "muster_message_address_parts", "muster_status", { { "number", "address", "uint64_t" }, { "gives_number", "out_group", "int64_t" }, { "gives_number", "out_id", "int64_t" }, { "gives_number", "out_kind", "int64_t" } } },
  { "muster_message_address_matches", "int32_t", { { "number", "pattern", "uint64_t" }, { "number", "address", "uint64_t" } } },
  { "muster_message_address_singa", "muster_status", { { "number", "group", "int32_t" }, { "number", "id_or_proc", "int32_t" }, { "number", "type", "int32_t" }, { "gives_number", "out_address", "uint64_t" } } },
  { "muster_message_target", "uint64_t", { { "number", "entity", "uint32_t" }, { "number", "part", "uint32_t" } } },
  { "muster_message_queue_create", "muster_status", { { "handle", "context", "muster_context" }, { "struct", "config", "muster_message_queue_config" }, { "new", "out_queue", "muster_message_queue" }, { "error", "error", "muster_error" } } },
  { "muster_message_queue_push", "muster_status", { { "handle", "queue", "muster_message_queue" }, { "handle", "message", "muster_message" }, { "number", "timeout_ns", "int64_t" } } },
  { "muster_message_queue_pop", "muster_status", { { "handle", "queue", "muster_message_queue" }, { "number", "timeout_ns", "int64_t" }, { "new", "out_message", "muster_message" } } },
  { "muster_message_queue_get_stats", "muster_status", { { "handle", "queue", "muster_message_queue" }, { "gives_struct", "out_stats", "muster_message_queue_stats" } } },
  { "muster_message_queue_cancel", "muster_status", { { "handle", "queue", "muster_message_queue" } } },
  { "muster_message_queue_close", "muster_status", { { "handle", "queue", "muster_message_queue" } } },
  { "muster_message_queue_release", "void", { { "handle", "queue", "muster_message_queue" } } },
  { "muster_metrics_write", "muster_status", { { "handle", "context", "muster_context" }, { "gives_text", "out_text", "char" } } },
  { "muster_metrics_publish", "muster_status", { { "handle", "context", "muster_context" }, { "handle", "store", "muster_store" }, { "struct", "config", "muster_metrics_config" }, { "new", "out_metrics", "muster_metrics" }, { "error", "error", "muster_error" } } },
  { "muster_metrics_get_state", "muster_status", { { "handle", "metrics", "muster_metrics" }, { "gives_struct", "out_state", "muster_metrics_state" } } },
  { "muster_metrics_release", "void", { { "handle", "metrics", "muster_metrics" } } },
  { "muster_process_spawn", "muster_status", { { "handle", "context", "muster_context" }, { "struct", "config", "muster_process_config" }, { "new", "out_process", "muster_process" }, { "error", "error", "muster_error" } } },
  { "muster_process_pid", "int32_t", { { "handle", "process", "muster_process" } } },
  { "muster_process_wait", "muster_status", { { "handle", "process", "muster_process" }, { "number", "timeout_ns", "int64_t" }, { "gives_struct", "out_exit", "muster_process_exit" } } },
  { "muster_process_watch", "muster_status", { { "handle", "process", "muster_process" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" } } },
  { "muster_process_kill", "muster_status", { { "handle", "process", "muster_process" }, { "number", "signal", "int32_t" } } },
  { "muster_process_release", "void", { { "handle", "process", "muster_process" } } },
  { "muster_process_exit_with", "muster_status", { { "handle", "context", "muster_context" }, { "number", "pid", "int32_t" }, { "number", "grace_ns", "int64_t" }, { "error", "error", "muster_error" } } },
  { "muster_queue_create", "muster_status", { { "handle", "context", "muster_context" }, { "struct", "config", "muster_queue_config" }, { "new", "out_queue", "muster_queue" }, { "error", "error", "muster_error" } } },
  { "muster_queue_next", "muster_status", { { "handle", "queue", "muster_queue" }, { "number", "timeout_ns", "int64_t" }, { "gives_struct", "out", "muster_completion" }, { "error", "error", "muster_error" } } },
  { "muster_queue_dispatch", "muster_status", { { "handle", "queue", "muster_queue" }, { "number", "timeout_ns", "int64_t" }, { "as_it_is", "handler", "muster_queue_handler_fn" }, { "as_it_is", "user", "void" }, { "gives_number", "out_count", "uint64_t" } } },
  { "muster_queue_cancel", "muster_status", { { "handle", "queue", "muster_queue" } } },
  { "muster_queue_cancel_operation", "muster_status", { { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" } } },
  { "muster_queue_post", "muster_status", { { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" }, { "number", "value", "uint64_t" } } },
  { "muster_queue_fd", "muster_status", { { "handle", "queue", "muster_queue" }, { "gives_number", "out_fd", "int32_t" } } },
  { "muster_queue_watch_fd", "muster_status", { { "handle", "queue", "muster_queue" }, { "number", "fd", "int32_t" }, { "number", "events", "uint32_t" }, { "number", "tag", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_queue_unwatch_fd", "muster_status", { { "handle", "queue", "muster_queue" }, { "number", "fd", "int32_t" } } },
  { "muster_queue_set_wake", "muster_status", { { "handle", "queue", "muster_queue" }, { "as_it_is", "wake", "muster_wake_fn" }, { "as_it_is", "user", "void" } } },
  { "muster_queue_close", "muster_status", { { "handle", "queue", "muster_queue" } } },
  { "muster_queue_release", "void", { { "handle", "queue", "muster_queue" } } },
  { "muster_queue_get_stats", "muster_status", { { "handle", "queue", "muster_queue" }, { "gives_struct", "out_stats", "muster_queue_stats" } } },
  { "muster_rendezvous_open", "muster_status", { { "handle", "context", "muster_context" }, { "struct", "config", "muster_rendezvous_config" }, { "number", "timeout_ns", "int64_t" }, { "new", "out_rendezvous", "muster_rendezvous" }, { "error", "error", "muster_error" } } },
  { "muster_rendezvous_open_begin", "muster_status", { { "handle", "context", "muster_context" }, { "struct", "config", "muster_rendezvous_config" }, { "number", "timeout_ns", "int64_t" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_rendezvous_join", "muster_status", { { "handle", "rendezvous", "muster_rendezvous" }, { "number", "timeout_ns", "int64_t" }, { "new", "out_round", "muster_round" }, { "error", "error", "muster_error" } } },
  { "muster_rendezvous_leave", "muster_status", { { "handle", "rendezvous", "muster_rendezvous" }, { "number", "timeout_ns", "int64_t" }, { "error", "error", "muster_error" } } },
  { "muster_rendezvous_exit", "muster_status", { { "handle", "rendezvous", "muster_rendezvous" }, { "number", "timeout_ns", "int64_t" }, { "error", "error", "muster_error" } } },
  { "muster_rendezvous_abort", "muster_status", { { "handle", "rendezvous", "muster_rendezvous" }, { "text", "reason", "void" }, { "number", "timeout_ns", "int64_t" }, { "error", "error", "muster_error" } } },
  { "muster_rendezvous_close", "muster_status", { { "handle", "rendezvous", "muster_rendezvous" }, { "text", "reason", "void" }, { "number", "timeout_ns", "int64_t" }, { "error", "error", "muster_error" } } },
  { "muster_rendezvous_begin", "muster_status", { { "handle", "rendezvous", "muster_rendezvous" }, { "number", "operation", "uint32_t" }, { "text", "reason", "void" }, { "number", "timeout_ns", "int64_t" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_rendezvous_cancel", "muster_status", { { "handle", "rendezvous", "muster_rendezvous" } } },
  { "muster_rendezvous_next_event", "muster_status", { { "handle", "rendezvous", "muster_rendezvous" }, { "number", "timeout_ns", "int64_t" }, { "gives_struct", "out_event", "muster_rendezvous_event" } } },
  { "muster_rendezvous_get_state", "muster_status", { { "handle", "rendezvous", "muster_rendezvous" }, { "gives_struct", "out_state", "muster_rendezvous_state" } } },
  { "muster_rendezvous_list", "muster_status", { { "handle", "rendezvous", "muster_rendezvous" }, { "as_it_is", "out_text", "char" }, { "number", "capacity", "size_t" }, { "number", "timeout_ns", "int64_t" }, { "gives_number", "out_bytes", "size_t" }, { "error", "error", "muster_error" } } },
  { "muster_rendezvous_list_begin", "muster_status", { { "handle", "rendezvous", "muster_rendezvous" }, { "as_it_is", "out_text", "char" }, { "number", "capacity", "size_t" }, { "number", "timeout_ns", "int64_t" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_rendezvous_release", "void", { { "handle", "rendezvous", "muster_rendezvous" } } },
  { "muster_round_get_info", "muster_status", { { "handle", "round", "muster_round" }, { "gives_struct", "out_info", "muster_round_info" } } },
  { "muster_round_store", "muster_status", { { "handle", "round", "muster_round" }, { "new", "out_store", "muster_store" }, { "error", "error", "muster_error" } } },
  { "muster_round_member", "muster_status", { { "handle", "round", "muster_round" }, { "number", "rank", "uint32_t" }, { "number", "timeout_ns", "int64_t" }, { "gives_struct", "out_member", "muster_round_member_info" }, { "error", "error", "muster_error" } } },
  { "muster_round_member_begin", "muster_status", { { "handle", "round", "muster_round" }, { "number", "rank", "uint32_t" }, { "number", "timeout_ns", "int64_t" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_round_release", "void", { { "handle", "round", "muster_round" } } },
  { "muster_rendezvous_serve", "muster_status", { { "handle", "context", "muster_context" }, { "text", "scheme", "char" }, { "handle", "requests", "muster_queue" }, { "number", "tag", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_rendezvous_serve_ops", "muster_status", { { "handle", "context", "muster_context" }, { "text", "scheme", "char" }, { "struct", "ops", "muster_rendezvous_ops" }, { "as_it_is", "self", "void" }, { "handle", "requests", "muster_queue" }, { "error", "error", "muster_error" } } },
  { "muster_rendezvous_withdraw", "muster_status", { { "handle", "context", "muster_context" }, { "text", "scheme", "char" } } },
  { "muster_rendezvous_request_read", "muster_status", { { "handle", "requests", "muster_queue" }, { "number", "request", "uint64_t" }, { "gives_struct", "out_what", "muster_rendezvous_request" } } },
  { "muster_rendezvous_request_round", "muster_status", { { "handle", "requests", "muster_queue" }, { "number", "request", "uint64_t" }, { "struct", "assignment", "muster_rendezvous_assignment" }, { "error", "error", "muster_error" } } },
  { "muster_rendezvous_request_done", "muster_status", { { "handle", "requests", "muster_queue" }, { "number", "request", "uint64_t" }, { "text", "text", "void" }, { "error", "error", "muster_error" } } },
  { "muster_rendezvous_request_fail", "muster_status", { { "handle", "requests", "muster_queue" }, { "number", "request", "uint64_t" }, { "number", "status", "muster_status" }, { "text", "text", "char" } } },
  { "muster_rendezvous_notify", "muster_status", { { "handle", "requests", "muster_queue" }, { "number", "member", "uint64_t" }, { "struct", "event", "muster_rendezvous_event" }, { "error", "error", "muster_error" } } },
  { "muster_transport_serve", "muster_status", { { "handle", "context", "muster_context" }, { "text", "scheme", "char" }, { "number", "flags", "uint32_t" }, { "handle", "requests", "muster_queue" }, { "number", "tag", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_transport_serve_ops", "muster_status", { { "handle", "context", "muster_context" }, { "text", "scheme", "char" }, { "struct", "ops", "muster_transport_ops" }, { "as_it_is", "self", "void" }, { "handle", "requests", "muster_queue" }, { "error", "error", "muster_error" } } },
  { "muster_transport_withdraw", "muster_status", { { "handle", "context", "muster_context" }, { "text", "scheme", "char" } } },
  { "muster_request_address", "muster_status", { { "handle", "requests", "muster_queue" }, { "number", "request", "uint64_t" }, { "gives_text", "out_text", "char" } } },
  { "muster_request_stream", "muster_status", { { "handle", "requests", "muster_queue" }, { "number", "request", "uint64_t" }, { "new", "out_pump", "muster_stream" }, { "error", "error", "muster_error" } } },
  { "muster_request_listening", "muster_status", { { "handle", "requests", "muster_queue" }, { "number", "request", "uint64_t" }, { "text", "address", "char" }, { "error", "error", "muster_error" } } },
  { "muster_request_fail", "muster_status", { { "handle", "requests", "muster_queue" }, { "number", "request", "uint64_t" }, { "number", "status", "muster_status" }, { "text", "text", "char" } } },
  { "muster_transport_incoming", "muster_status", { { "handle", "requests", "muster_queue" }, { "number", "listen_request", "uint64_t" }, { "text", "peer", "char" }, { "gives_number", "out_request", "uint64_t" }, { "new", "out_pump", "muster_stream" }, { "error", "error", "muster_error" } } },
  { "muster_socket_create", "muster_status", { { "handle", "context", "muster_context" }, { "struct", "config", "muster_socket_config" }, { "new", "out_socket", "muster_socket" }, { "error", "error", "muster_error" } } },
  { "muster_socket_address", "uint64_t", { { "handle", "socket", "muster_socket" } } },
  { "muster_socket_bind", "muster_status", { { "handle", "socket", "muster_socket" }, { "text", "address", "char" }, { "as_it_is", "out_text", "char" }, { "number", "capacity", "size_t" }, { "error", "error", "muster_error" } } },
  { "muster_socket_connect", "muster_status", { { "handle", "socket", "muster_socket" }, { "text", "address", "char" }, { "error", "error", "muster_error" } } },
  { "muster_socket_wait_peers", "muster_status", { { "handle", "socket", "muster_socket" }, { "number", "count", "uint32_t" }, { "number", "timeout_ns", "int64_t" }, { "as_it_is", "out_count", "uint32_t" } } },
  { "muster_socket_send", "muster_status", { { "handle", "socket", "muster_socket" }, { "handle", "message", "muster_message" }, { "number", "timeout_ns", "int64_t" }, { "error", "error", "muster_error" } } },
  { "muster_socket_loan_frame", "muster_status", { { "handle", "socket", "muster_socket" }, { "handle", "message", "muster_message" }, { "number", "bytes", "size_t" }, { "as_it_is", "out_data", "void" }, { "error", "error", "muster_error" } } },
  { "muster_socket_receive", "muster_status", { { "handle", "socket", "muster_socket" }, { "number", "timeout_ns", "int64_t" }, { "new", "out_message", "muster_message" } } },
  { "muster_socket_next_event", "muster_status", { { "handle", "socket", "muster_socket" }, { "number", "timeout_ns", "int64_t" }, { "gives_struct", "out_event", "muster_socket_event" } } },
  { "muster_socket_get_stats", "muster_status", { { "handle", "socket", "muster_socket" }, { "gives_struct", "out_stats", "muster_socket_stats" } } },
  { "muster_socket_cancel", "muster_status", { { "handle", "socket", "muster_socket" } } },
  { "muster_socket_close", "muster_status", { { "handle", "socket", "muster_socket" }, { "number", "timeout_ns", "int64_t" } } },
  { "muster_socket_release", "void", { { "handle", "socket", "muster_socket" } } },
  { "muster_store_open", "muster_status", { { "handle", "context", "muster_context" }, { "text", "url", "char" }, { "struct", "config", "muster_store_config" }, { "number", "timeout_ns", "int64_t" }, { "new", "out_store", "muster_store" }, { "error", "error", "muster_error" } } },
  { "muster_store_open_begin", "muster_status", { { "handle", "context", "muster_context" }, { "text", "url", "char" }, { "struct", "config", "muster_store_config" }, { "number", "timeout_ns", "int64_t" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_store_view", "muster_status", { { "handle", "store", "muster_store" }, { "text", "prefix", "void" }, { "new", "out_view", "muster_store" }, { "error", "error", "muster_error" } } },
  { "muster_store_capabilities", "uint32_t", { { "handle", "store", "muster_store" } } },
  { "muster_store_do", "muster_status", { { "handle", "store", "muster_store" }, { "list", "ops", "muster_store_op" }, { "number", "timeout_ns", "int64_t" }, { "new", "out_result", "muster_store_result" }, { "error", "error", "muster_error" } } },
  { "muster_store_begin", "muster_status", { { "handle", "store", "muster_store" }, { "list", "ops", "muster_store_op" }, { "number", "timeout_ns", "int64_t" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" }, { "gives_number", "out_request", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_store_cancel", "muster_status", { { "handle", "store", "muster_store" }, { "number", "request", "uint64_t" } } },
  { "muster_store_lease", "muster_status", { { "handle", "store", "muster_store" }, { "number", "ttl_ns", "int64_t" }, { "number", "flags", "uint32_t" }, { "number", "timeout_ns", "int64_t" }, { "new", "out_lease", "muster_lease" }, { "error", "error", "muster_error" } } },
  { "muster_store_lease_begin", "muster_status", { { "handle", "store", "muster_store" }, { "number", "ttl_ns", "int64_t" }, { "number", "flags", "uint32_t" }, { "number", "timeout_ns", "int64_t" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" }, { "gives_number", "out_request", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_lease_id", "uint64_t", { { "handle", "lease", "muster_lease" } } },
  { "muster_lease_keep", "muster_status", { { "handle", "lease", "muster_lease" } } },
  { "muster_lease_end", "muster_status", { { "handle", "lease", "muster_lease" }, { "number", "timeout_ns", "int64_t" }, { "error", "error", "muster_error" } } },
  { "muster_lease_end_begin", "muster_status", { { "handle", "lease", "muster_lease" }, { "number", "timeout_ns", "int64_t" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_lease_release", "void", { { "handle", "lease", "muster_lease" } } },
  { "muster_store_release", "void", { { "handle", "store", "muster_store" } } },
  { "muster_store_result_count", "uint64_t", { { "handle", "result", "muster_store_result" } } },
  { "muster_store_result_entry", "muster_status", { { "handle", "result", "muster_store_result" }, { "number", "index", "uint64_t" }, { "gives_struct", "out_entry", "muster_store_entry" } } },
  { "muster_store_result_revision", "uint64_t", { { "handle", "result", "muster_store_result" } } },
  { "muster_store_result_release", "void", { { "handle", "result", "muster_store_result" } } },
  { "muster_store_serve", "muster_status", { { "handle", "context", "muster_context" }, { "text", "scheme", "char" }, { "handle", "requests", "muster_queue" }, { "number", "tag", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_store_serve_ops", "muster_status", { { "handle", "context", "muster_context" }, { "text", "scheme", "char" }, { "struct", "ops", "muster_store_host_ops" }, { "as_it_is", "self", "void" }, { "handle", "requests", "muster_queue" }, { "error", "error", "muster_error" } } },
  { "muster_store_withdraw", "muster_status", { { "handle", "context", "muster_context" }, { "text", "scheme", "char" } } },
  { "muster_store_request_read", "muster_status", { { "handle", "requests", "muster_queue" }, { "number", "request", "uint64_t" }, { "gives_struct", "out_what", "muster_store_request" } } },
  { "muster_store_request_open", "muster_status", { { "handle", "requests", "muster_queue" }, { "number", "request", "uint64_t" }, { "struct", "traits", "muster_store_traits" }, { "error", "error", "muster_error" } } },
  { "muster_store_request_done", "muster_status", { { "handle", "requests", "muster_queue" }, { "number", "request", "uint64_t" }, { "number", "status", "muster_status" }, { "struct", "entries", "muster_store_entry" }, { "number", "entry_count", "size_t" }, { "number", "revision", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_store_request_fail", "muster_status", { { "handle", "requests", "muster_queue" }, { "number", "request", "uint64_t" }, { "number", "status", "muster_status" }, { "number", "op", "uint32_t" }, { "text", "text", "char" } } },
  { "muster_store_server_open", "muster_status", { { "handle", "context", "muster_context" }, { "text", "url", "char" }, { "struct", "config", "muster_store_server_config" }, { "new", "out_server", "muster_store_server" }, { "error", "error", "muster_error" } } },
  { "muster_store_server_address", "muster_status", { { "handle", "server", "muster_store_server" }, { "gives_text", "out_text", "char" } } },
  { "muster_store_server_get_stats", "muster_status", { { "handle", "server", "muster_store_server" }, { "gives_struct", "out_stats", "muster_store_server_stats" } } },
  { "muster_store_server_force_standalone", "muster_status", { { "handle", "server", "muster_store_server" } } },
  { "muster_store_server_close", "muster_status", { { "handle", "server", "muster_store_server" }, { "number", "timeout_ns", "int64_t" } } },
  { "muster_store_server_close_begin", "muster_status", { { "handle", "server", "muster_store_server" }, { "number", "timeout_ns", "int64_t" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_store_server_release", "void", { { "handle", "server", "muster_store_server" } } },
  { "muster_stream_pair", "muster_status", { { "handle", "context", "muster_context" }, { "struct", "config", "muster_stream_config" }, { "new", "out_first", "muster_stream" }, { "new", "out_second", "muster_stream" }, { "error", "error", "muster_error" } } },
  { "muster_stream_write", "muster_status", { { "handle", "stream", "muster_stream" }, { "text", "data", "void" }, { "number", "timeout_ns", "int64_t" }, { "gives_number", "out_bytes", "size_t" } } },
  { "muster_stream_write_many", "muster_status", { { "as_it_is", "streams", "muster_stream" }, { "number", "count", "uint32_t" }, { "text", "data", "void" }, { "number", "timeout_ns", "int64_t" }, { "as_it_is", "out_statuses", "muster_status" }, { "as_it_is", "out_bytes", "size_t" } } },
  { "muster_stream_write_owned", "muster_status", { { "handle", "stream", "muster_stream" }, { "as_it_is", "data", "void" }, { "number", "size_bytes", "size_t" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" } } },
  { "muster_stream_write_owned_many", "muster_status", { { "as_it_is", "streams", "muster_stream" }, { "number", "count", "uint32_t" }, { "text", "data", "void" }, { "handle", "queue", "muster_queue" }, { "as_it_is", "tags", "uint64_t" }, { "as_it_is", "out_statuses", "muster_status" } } },
  { "muster_stream_reserve", "muster_status", { { "handle", "stream", "muster_stream" }, { "number", "min_bytes", "size_t" }, { "number", "timeout_ns", "int64_t" }, { "as_it_is", "out_data", "void" }, { "gives_number", "out_bytes", "size_t" } } },
  { "muster_stream_commit", "muster_status", { { "handle", "stream", "muster_stream" }, { "number", "size_bytes", "size_t" } } },
  { "muster_stream_flush", "muster_status", { { "handle", "stream", "muster_stream" }, { "number", "timeout_ns", "int64_t" } } },
  { "muster_stream_flush_begin", "muster_status", { { "handle", "stream", "muster_stream" }, { "number", "timeout_ns", "int64_t" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_stream_read", "muster_status", { { "handle", "stream", "muster_stream" }, { "as_it_is", "out_data", "void" }, { "number", "capacity_bytes", "size_t" }, { "number", "timeout_ns", "int64_t" }, { "gives_number", "out_bytes", "size_t" } } },
  { "muster_stream_read_into", "muster_status", { { "handle", "stream", "muster_stream" }, { "as_it_is", "out_data", "void" }, { "number", "size_bytes", "size_t" }, { "number", "flags", "uint32_t" }, { "number", "timeout_ns", "int64_t" }, { "gives_number", "out_bytes", "size_t" } } },
  { "muster_stream_read_begin", "muster_status", { { "handle", "stream", "muster_stream" }, { "as_it_is", "out_data", "void" }, { "number", "size_bytes", "size_t" }, { "number", "flags", "uint32_t" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" } } },
  { "muster_stream_peek", "muster_status", { { "handle", "stream", "muster_stream" }, { "number", "min_bytes", "size_t" }, { "number", "timeout_ns", "int64_t" }, { "as_it_is", "out_data", "void" }, { "gives_number", "out_bytes", "size_t" } } },
  { "muster_stream_consume", "muster_status", { { "handle", "stream", "muster_stream" }, { "number", "size_bytes", "size_t" } } },
  { "muster_stream_finish", "muster_status", { { "handle", "stream", "muster_stream" } } },
  { "muster_stream_abort", "muster_status", { { "handle", "stream", "muster_stream" }, { "number", "reason", "uint64_t" }, { "text", "text", "char" } } },
  { "muster_stream_close", "muster_status", { { "handle", "stream", "muster_stream" }, { "number", "timeout_ns", "int64_t" } } },
  { "muster_stream_close_begin", "muster_status", { { "handle", "stream", "muster_stream" }, { "number", "timeout_ns", "int64_t" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_stream_release", "void", { { "handle", "stream", "muster_stream" } } },
  { "muster_stream_cancel", "muster_status", { { "handle", "stream", "muster_stream" }, { "number", "directions", "uint32_t" } } },
  { "muster_stream_watch", "muster_status", { { "handle", "stream", "muster_stream" }, { "number", "interest", "uint32_t" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" } } },
  { "muster_stream_reason", "muster_status", { { "handle", "stream", "muster_stream" }, { "gives_number", "out_reason", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_stream_peer", "muster_status", { { "handle", "stream", "muster_stream" }, { "gives_text", "out_text", "char" } } },
  { "muster_stream_local_address", "muster_status", { { "handle", "stream", "muster_stream" }, { "gives_text", "out_text", "char" } } },
  { "muster_stream_exit_with_peer", "muster_status", { { "handle", "stream", "muster_stream" }, { "number", "grace_ns", "int64_t" } } },
  { "muster_stream_get_stats", "muster_status", { { "handle", "stream", "muster_stream" }, { "gives_struct", "out_stats", "muster_stream_stats" } } },
  { "muster_trace_start", "muster_status", { { "struct", "config", "muster_trace_config" }, { "error", "error", "muster_error" } } },
  { "muster_trace_stop", "void", {  } },
  { "muster_trace_begin", "void", { { "text", "name", "char" } } },
  { "muster_trace_end", "void", {  } },
  { "muster_trace_mark", "void", { { "text", "name", "char" } } },
  { "muster_trace_flow", "void", { { "text", "name", "char" }, { "number", "flow", "uint64_t" } } },
  { "muster_trace_get_state", "muster_status", { { "gives_struct", "out_state", "muster_trace_state" } } },
  { "muster_trace_align", "muster_status", { { "handle", "group", "muster_group" }, { "number", "timeout_ns", "int64_t" }, { "gives_struct", "out_state", "muster_trace_state" }, { "error", "error", "muster_error" } } },
  { "muster_trace_save", "muster_status", { { "text", "path", "char" }, { "error", "error", "muster_error" } } },
  { "muster_transport_dial", "muster_status", { { "handle", "context", "muster_context" }, { "text", "address", "char" }, { "struct", "config", "muster_transport_config" }, { "number", "timeout_ns", "int64_t" }, { "new", "out_stream", "muster_stream" }, { "error", "error", "muster_error" } } },
  { "muster_transport_dial_begin", "muster_status", { { "handle", "context", "muster_context" }, { "text", "address", "char" }, { "struct", "config", "muster_transport_config" }, { "number", "timeout_ns", "int64_t" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_transport_listen", "muster_status", { { "handle", "context", "muster_context" }, { "text", "address", "char" }, { "struct", "config", "muster_transport_config" }, { "new", "out_listener", "muster_listener" }, { "error", "error", "muster_error" } } },
  { "muster_transport_listen_begin", "muster_status", { { "handle", "context", "muster_context" }, { "text", "address", "char" }, { "struct", "config", "muster_transport_config" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_listener_accept", "muster_status", { { "handle", "listener", "muster_listener" }, { "number", "timeout_ns", "int64_t" }, { "new", "out_stream", "muster_stream" }, { "error", "error", "muster_error" } } },
  { "muster_listener_watch", "muster_status", { { "handle", "listener", "muster_listener" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" } } },
  { "muster_listener_address", "muster_status", { { "handle", "listener", "muster_listener" }, { "gives_text", "out_text", "char" } } },
  { "muster_listener_cancel", "muster_status", { { "handle", "listener", "muster_listener" } } },
  { "muster_listener_close", "muster_status", { { "handle", "listener", "muster_listener" } } },
  { "muster_listener_close_begin", "muster_status", { { "handle", "listener", "muster_listener" }, { "handle", "queue", "muster_queue" }, { "number", "tag", "uint64_t" }, { "error", "error", "muster_error" } } },
  { "muster_listener_release", "void", { { "handle", "listener", "muster_listener" } } },
  { "muster_transport_hello", "muster_status", { { "handle", "stream", "muster_stream" }, { "gives_text", "out_data", "void" } } },
  { "muster_worker_context", "muster_status", { { "struct", "config", "muster_context_config" }, { "number", "ticket_fd_plus_one", "int32_t" }, { "new", "out_context", "muster_context" }, { "error", "error", "muster_error" } } },
  { "muster_worker_start", "muster_status", { { "handle", "context", "muster_context" }, { "struct", "config", "muster_worker_config" }, { "number", "timeout_ns", "int64_t" }, { "new", "out_cluster", "muster_cluster" }, { "error", "error", "muster_error" } } },
  { "muster_worker_start_begin", "muster_status", { { "handle", "context", "muster_context" }, { "struct", "config", "muster_worker_config" }, { "number", "timeout_ns", "int64_t" }, { "new", "out_cluster", "muster_cluster" }, { "error", "error", "muster_error" } } },
}

surface.opaque = { "muster_agent", "muster_am", "muster_am_request", "muster_broadcast", "muster_broker", "muster_cluster", "muster_context", "muster_epoch", "muster_forwarder", "muster_group", "muster_lease", "muster_listener", "muster_memory", "muster_message", "muster_message_queue", "muster_metrics", "muster_process", "muster_queue", "muster_rendezvous", "muster_round", "muster_socket", "muster_store", "muster_store_result", "muster_store_server", "muster_stream" }

surface.structs = { -- size, then the place and type of each field
  { "muster_agent_outputs", 16, { { "local_rank", 0, "uint32_t" }, { "log_outputs", 4, "uint32_t" }, { "console_outputs", 8, "uint32_t" }, { "discarded_outputs", 12, "uint32_t" } } },
  { "muster_agent_config", 168, { { "struct_size", 0, "uint32_t" }, { "flags", 4, "uint32_t" }, { "argv", 8, "char" }, { "envp", 16, "char" }, { "directory", 24, "char" }, { "worker_count", 32, "uint32_t" }, { "max_restarts", 36, "uint32_t" }, { "grace_ns", 40, "int64_t" }, { "run_id", 48, "char" }, { "role", 56, "char" }, { "log_dir", 64, "char" }, { "log_outputs", 72, "uint32_t" }, { "console_outputs", 76, "uint32_t" }, { "out_fd_plus_one", 80, "int32_t" }, { "err_fd_plus_one", 84, "int32_t" }, { "local_address", 88, "char" }, { "rendezvous", 96, "muster_rendezvous_config" }, { "master_address", 104, "char" }, { "master_port", 112, "uint32_t" }, { "reserved0", 116, "uint32_t" }, { "join_timeout_ns", 120, "int64_t" }, { "exit_timeout_ns", 128, "int64_t" }, { "outputs", 136, "muster_agent_outputs" }, { "output_count", 144, "uint64_t" }, { "reserved", 152, "uint64_t" } } },
  { "muster_agent_state", 328, { { "phase", 0, "uint32_t" }, { "worker_count", 4, "uint32_t" }, { "running", 8, "uint32_t" }, { "restarts", 12, "uint32_t" }, { "group_rank", 16, "uint32_t" }, { "group_world_size", 20, "uint32_t" }, { "first_rank", 24, "uint32_t" }, { "world_size", 28, "uint32_t" }, { "round", 32, "uint64_t" }, { "master_address", 40, "char" }, { "master_port", 296, "uint32_t" }, { "reserved", 300, "uint32_t" } } },
  { "muster_agent_worker", 832, { { "local_rank", 0, "uint32_t" }, { "rank", 4, "uint32_t" }, { "state", 8, "uint32_t" }, { "restarts", 12, "uint32_t" }, { "pid", 16, "int32_t" }, { "exit", 20, "muster_process_exit" }, { "reserved0", 28, "uint32_t" }, { "started_unix_ns", 32, "int64_t" }, { "ended_unix_ns", 40, "int64_t" }, { "failed_unix_ns", 48, "int64_t" }, { "round", 56, "uint64_t" }, { "message", 64, "char" }, { "directory", 576, "char" } } },
  { "muster_am_config", 32, { { "struct_size", 0, "uint32_t" }, { "max_bytes", 4, "uint32_t" }, { "max_requests", 8, "uint32_t" }, { "flags", 12, "uint32_t" }, { "queue", 16, "muster_queue" }, { "tag", 24, "uint64_t" } } },
  { "muster_am_peer", 40, { { "status", 0, "muster_status" }, { "requests", 4, "uint32_t" }, { "sent", 8, "uint64_t" }, { "executed", 16, "uint64_t" }, { "unsent_bytes", 24, "uint64_t" }, { "max_bytes", 32, "uint32_t" }, { "max_requests", 36, "uint32_t" } } },
  { "muster_am_request_info", 24, { { "data", 0, "void" }, { "bytes", 8, "size_t" }, { "peer", 16, "uint32_t" }, { "handler", 20, "uint32_t" } } },
  { "muster_atomic_condition", 32, { { "cell", 0, "void" }, { "value", 8, "uint64_t" }, { "size_bytes", 16, "uint32_t" }, { "comparison", 20, "int32_t" }, { "is_true", 24, "uint32_t" }, { "reserved", 28, "uint32_t" } } },
  { "muster_aba", 16, { { "value", 0, "uint64_t" }, { "count", 8, "uint64_t" } } },
  { "muster_error", 256, { { "status", 0, "muster_status" }, { "os_errno", 4, "int32_t" }, { "provider_code", 8, "int64_t" }, { "rank", 16, "uint32_t" }, { "message_bytes", 20, "uint32_t" }, { "message", 24, "char" } } },
  { "muster_broker_config", 72, { { "struct_size", 0, "uint32_t" }, { "flags", 4, "uint32_t" }, { "parent", 8, "char" }, { "parent_bytes", 16, "uint64_t" }, { "window_bytes", 24, "uint64_t" }, { "max_members", 32, "uint32_t" }, { "reserved", 36, "uint32_t" }, { "curve_file", 40, "char" }, { "curve_file_bytes", 48, "uint64_t" }, { "broker_secret", 56, "void" }, { "broker_secret_bytes", 64, "uint64_t" } } },
  { "muster_broker_stats", 128, { { "members", 0, "uint64_t" }, { "brokers", 8, "uint64_t" }, { "has_parent", 16, "uint64_t" }, { "names", 24, "uint64_t" }, { "pairs", 32, "uint64_t" }, { "messages", 40, "uint64_t" }, { "bytes", 48, "uint64_t" }, { "queued_bytes", 56, "uint64_t" }, { "connections", 64, "uint64_t" }, { "refused", 72, "uint64_t" }, { "lost", 80, "uint64_t" }, { "multicasts", 88, "uint64_t" }, { "reserved", 96, "uint64_t" } } },
  { "muster_cluster_config", 96, { { "struct_size", 0, "uint32_t" }, { "flags", 4, "uint32_t" }, { "topology", 8, "uint32_t" }, { "max_connections", 12, "uint32_t" }, { "listen", 16, "char" }, { "listen_bytes", 24, "uint64_t" }, { "join_timeout_ns", 32, "int64_t" }, { "leave_timeout_ns", 40, "int64_t" }, { "queue", 48, "muster_queue" }, { "tag", 56, "uint64_t" }, { "max_broadcast_bytes", 64, "uint64_t" }, { "store", 72, "char" }, { "store_bytes", 80, "uint64_t" }, { "reserved1", 88, "uint64_t" } } },
  { "muster_launch", 112, { { "struct_size", 0, "uint32_t" }, { "flags", 4, "uint32_t" }, { "manager", 8, "char" }, { "count", 16, "uint32_t" }, { "reserved", 20, "uint32_t" }, { "argv", 24, "char" }, { "envp", 32, "char" }, { "directory", 40, "char" }, { "listen", 48, "char" }, { "ident", 56, "char" }, { "connect_idents", 64, "char" }, { "options", 72, "char" }, { "reserved1", 80, "uint64_t" } } },
  { "muster_cluster_event", 544, { { "kind", 0, "uint32_t" }, { "member", 4, "uint32_t" }, { "status", 8, "muster_status" }, { "label_bytes", 12, "uint32_t" }, { "stream", 16, "muster_stream" }, { "text_bytes", 24, "uint32_t" }, { "reserved", 28, "uint32_t" }, { "label", 32, "char" }, { "text", 288, "char" }, { "broadcast", 520, "muster_broadcast" }, { "data", 528, "void" }, { "size_bytes", 536, "uint64_t" } } },
  { "muster_member_info", 1336, { { "member", 0, "uint32_t" }, { "state", 4, "uint32_t" }, { "pid", 8, "int64_t" }, { "data", 16, "uint64_t" }, { "host", 24, "char" }, { "address", 280, "char" }, { "reserved", 1304, "uint64_t" } } },
  { "muster_context_config", 72, { { "struct_size", 0, "uint32_t" }, { "flags", 4, "uint32_t" }, { "secret", 8, "void" }, { "secret_bytes", 16, "uint64_t" }, { "secret_fd_plus_one", 24, "int32_t" }, { "max_unauthenticated", 28, "uint32_t" }, { "handshake_timeout_ns", 32, "int64_t" }, { "heartbeat_ns", 40, "int64_t" }, { "silent_ns", 48, "int64_t" }, { "dead_ns", 56, "int64_t" }, { "window_bytes", 64, "uint64_t" } } },
  { "muster_context_stats", 128, { { "loop_wakeups", 0, "uint64_t" }, { "mailbox_posts", 8, "uint64_t" }, { "streams_open", 16, "uint64_t" }, { "streams_made", 24, "uint64_t" }, { "handshakes_ok", 32, "uint64_t" }, { "handshakes_failed", 40, "uint64_t" }, { "bytes_in", 48, "uint64_t" }, { "bytes_out", 56, "uint64_t" }, { "upgrades", 64, "uint64_t" }, { "reserved", 72, "uint64_t" } } },
  { "muster_epoch_token", 40, { { "epoch", 0, "uint64_t" }, { "to_global", 8, "int64_t" }, { "depth", 16, "uint64_t" }, { "state", 24, "uint64_t" }, { "index", 32, "uint32_t" }, { "reserved", 36, "uint32_t" } } },
  { "muster_epoch_config", 48, { { "struct_size", 0, "uint32_t" }, { "flags", 4, "uint32_t" }, { "max_tokens", 8, "uint32_t" }, { "max_pending", 12, "uint32_t" }, { "fd", 16, "int32_t" }, { "reserved", 20, "uint32_t" }, { "offset", 24, "uint64_t" }, { "queue", 32, "muster_queue" }, { "tag", 40, "uint64_t" } } },
  { "muster_epoch_attempt", 32, { { "outcome", 0, "int32_t" }, { "token", 4, "uint32_t" }, { "process", 8, "int32_t" }, { "thread", 12, "int32_t" }, { "since_ns", 16, "uint64_t" }, { "epoch", 24, "uint64_t" } } },
  { "muster_epoch_stats", 72, { { "epoch", 0, "uint64_t" }, { "deferred", 8, "uint64_t" }, { "freed", 16, "uint64_t" }, { "pending", 24, "uint64_t" }, { "tokens", 32, "uint32_t" }, { "orphaned", 36, "uint32_t" }, { "deaths", 40, "uint32_t" }, { "is_fenced", 44, "uint32_t" }, { "blocking_token", 48, "uint32_t" }, { "blocking_process", 52, "int32_t" }, { "blocking_thread", 56, "int32_t" }, { "reserved", 60, "uint32_t" }, { "blocked_ns", 64, "uint64_t" } } },
  { "muster_forwarder_config", 80, { { "struct_size", 0, "uint32_t" }, { "flags", 4, "uint32_t" }, { "address", 8, "uint64_t" }, { "max_hops", 16, "uint32_t" }, { "max_peers", 20, "uint32_t" }, { "max_message_bytes", 24, "uint64_t" }, { "max_queued_bytes", 32, "uint64_t" }, { "max_queued_messages", 40, "uint32_t" }, { "max_unrouted_messages", 44, "uint32_t" }, { "max_waiting", 48, "uint32_t" }, { "reserved", 52, "uint32_t" }, { "inbox", 56, "muster_message_queue" }, { "queue", 64, "muster_queue" }, { "tag", 72, "uint64_t" } } },
  { "muster_forwarder_stats", 80, { { "peers", 0, "uint64_t" }, { "forwarded", 8, "uint64_t" }, { "delivered", 16, "uint64_t" }, { "undelivered", 24, "uint64_t" }, { "hop_limit", 32, "uint64_t" }, { "waiting", 40, "uint64_t" }, { "reserved", 48, "uint64_t" } } },
  { "muster_group_operation", 64, { { "struct_size", 0, "uint32_t" }, { "kind", 4, "uint32_t" }, { "type", 8, "uint32_t" }, { "reduction", 12, "uint32_t" }, { "root", 16, "uint32_t" }, { "flags", 20, "uint32_t" }, { "count", 24, "uint64_t" }, { "input", 32, "void" }, { "output", 40, "void" }, { "counts", 48, "uint64_t" }, { "output_counts", 56, "uint64_t" } } },
  { "muster_group_config", 96, { { "struct_size", 0, "uint32_t" }, { "flags", 4, "uint32_t" }, { "rank", 8, "uint32_t" }, { "size", 12, "uint32_t" }, { "round", 16, "muster_round" }, { "store", 24, "muster_store" }, { "name", 32, "void" }, { "name_bytes", 40, "uint64_t" }, { "listen", 48, "char" }, { "listen_bytes", 56, "uint64_t" }, { "addresses", 64, "char" }, { "addresses_bytes", 72, "uint64_t" }, { "slot_bytes", 80, "uint64_t" }, { "cluster", 88, "muster_cluster" } } },
  { "muster_group_status", 32, { { "state", 0, "uint32_t" }, { "kind", 4, "uint32_t" }, { "sequence", 8, "uint64_t" }, { "shares_memory", 16, "uint32_t" }, { "reserved", 20, "uint32_t" } } },
  { "muster_manager_request", 64, { { "struct_size", 0, "uint32_t" }, { "operation", 4, "uint32_t" }, { "member", 8, "uint32_t" }, { "count", 12, "uint32_t" }, { "from", 16, "uint32_t" }, { "reserved", 20, "uint32_t" }, { "data", 24, "uint64_t" }, { "launch", 32, "muster_launch" }, { "address", 40, "char" }, { "cluster", 48, "muster_cluster" }, { "cluster_tag", 56, "uint64_t" } } },
  { "muster_manager_ops", 64, { { "struct_size", 0, "uint32_t" }, { "flags", 4, "uint32_t" }, { "launch", 8, "" }, { "connect", 16, "" }, { "connect_worker", 24, "" }, { "manage", 32, "" }, { "kill", 40, "" }, { "cancel", 48, "" }, { "destroy", 56, "" } } },
  { "muster_memory_config", 40, { { "struct_size", 0, "uint32_t" }, { "locale_bits", 4, "uint32_t" }, { "segment_bytes", 8, "uint64_t" }, { "symmetric_bytes", 16, "uint64_t" }, { "max_tokens", 24, "uint32_t" }, { "max_pending", 28, "uint32_t" }, { "flags", 32, "uint32_t" }, { "incarnation_bits", 36, "uint32_t" } } },
  { "muster_memory_view", 24, { { "bases", 0, "uint64_t" }, { "segment_bytes", 8, "uint64_t" }, { "locales", 16, "uint32_t" }, { "offset_bits", 20, "uint32_t" } } },
  { "muster_memory_operation", 80, { { "struct_size", 0, "uint32_t" }, { "kind", 4, "uint32_t" }, { "target", 8, "muster_gptr" }, { "local", 16, "void" }, { "bytes", 24, "uint64_t" }, { "cell", 32, "uint32_t" }, { "order", 36, "int32_t" }, { "operation", 40, "int32_t" }, { "notify", 44, "uint32_t" }, { "value", 48, "uint64_t" }, { "expected", 56, "uint64_t" }, { "expected_count", 64, "uint64_t" }, { "signal", 72, "muster_gptr" } } },
  { "muster_memory_result", 16, { { "value", 0, "uint64_t" }, { "count", 8, "uint64_t" } } },
  { "muster_memory_stats", 64, { { "heap_bytes", 0, "uint64_t" }, { "fresh_bytes", 8, "uint64_t" }, { "used_bytes", 16, "uint64_t" }, { "used_blocks", 24, "uint64_t" }, { "allocated", 32, "uint64_t" }, { "refused", 40, "uint64_t" }, { "symmetric_bytes", 48, "uint64_t" }, { "reserved", 56, "uint64_t" } } },
  { "muster_memory_locale_info", 24, { { "status", 0, "muster_status" }, { "is_mapped", 4, "uint32_t" }, { "node", 8, "uint32_t" }, { "requests", 12, "uint32_t" }, { "dropped", 16, "uint64_t" } } },
  { "muster_message_header", 72, { { "struct_size", 0, "uint32_t" }, { "type", 4, "uint32_t" }, { "source", 8, "uint64_t" }, { "destination", 16, "uint64_t" }, { "target", 24, "uint64_t" }, { "target_version", 32, "int64_t" }, { "trace_id", 40, "uint64_t" }, { "span_id", 56, "uint64_t" }, { "trace_flags", 64, "uint32_t" }, { "hops", 68, "uint32_t" } } },
  { "muster_buffer", 16, { { "data", 0, "void" }, { "bytes", 8, "uint64_t" } } },
  { "muster_value", 32, { { "integer", 0, "int64_t" }, { "real", 8, "double" }, { "data", 16, "void" }, { "bytes", 24, "uint64_t" } } },
  { "muster_message_queue_config", 40, { { "struct_size", 0, "uint32_t" }, { "flags", 4, "uint32_t" }, { "max_messages", 8, "uint32_t" }, { "reserved", 12, "uint32_t" }, { "max_bytes", 16, "uint64_t" }, { "queue", 24, "muster_queue" }, { "tag", 32, "uint64_t" } } },
  { "muster_message_queue_stats", 64, { { "messages", 0, "uint64_t" }, { "bytes", 8, "uint64_t" }, { "pushed", 16, "uint64_t" }, { "popped", 24, "uint64_t" }, { "full", 32, "uint64_t" }, { "reserved", 40, "uint64_t" } } },
  { "muster_metrics_config", 32, { { "struct_size", 0, "uint32_t" }, { "flags", 4, "uint32_t" }, { "name", 8, "void" }, { "name_bytes", 16, "uint64_t" }, { "interval_ns", 24, "int64_t" } } },
  { "muster_metrics_state", 24, { { "published", 0, "uint64_t" }, { "failed", 8, "uint64_t" }, { "status", 16, "muster_status" }, { "reserved", 20, "uint32_t" } } },
  { "muster_process_fd", 8, { { "parent_fd", 0, "int32_t" }, { "child_fd", 4, "int32_t" } } },
  { "muster_process_config", 48, { { "struct_size", 0, "uint32_t" }, { "flags", 4, "uint32_t" }, { "argv", 8, "char" }, { "envp", 16, "char" }, { "directory", 24, "char" }, { "fds", 32, "muster_process_fd" }, { "fd_count", 40, "uint64_t" } } },
  { "muster_process_exit", 8, { { "kind", 0, "int32_t" }, { "value", 4, "int32_t" } } },
  { "muster_completion", 64, { { "kind", 0, "int32_t" }, { "status", 4, "muster_status" }, { "tag", 8, "uint64_t" }, { "object", 16, "void" }, { "bytes", 24, "uint64_t" }, { "request", 32, "uint64_t" }, { "events", 40, "uint32_t" }, { "reserved", 44, "uint32_t" } } },
  { "muster_queue_config", 16, { { "struct_size", 0, "uint32_t" }, { "flags", 4, "uint32_t" }, { "capacity", 8, "uint32_t" }, { "reserved", 12, "uint32_t" } } },
  { "muster_queue_stats", 64, { { "depth", 0, "uint64_t" }, { "outstanding", 8, "uint64_t" }, { "taken", 16, "uint64_t" }, { "wakeups", 24, "uint64_t" }, { "log_dropped", 32, "uint64_t" }, { "reserved", 40, "uint64_t" } } },
  { "muster_rendezvous_config", 160, { { "struct_size", 0, "uint32_t" }, { "flags", 4, "uint32_t" }, { "run_id", 8, "void" }, { "run_id_bytes", 16, "uint64_t" }, { "url", 24, "void" }, { "url_bytes", 32, "uint64_t" }, { "store", 40, "muster_store" }, { "address", 48, "void" }, { "address_bytes", 56, "uint64_t" }, { "order_key", 64, "void" }, { "order_key_bytes", 72, "uint64_t" }, { "min", 80, "uint32_t" }, { "max", 84, "uint32_t" }, { "rank", 88, "uint32_t" }, { "keep_alive_attempts", 92, "uint32_t" }, { "keep_alive_ns", 96, "int64_t" }, { "last_call_ns", 104, "int64_t" }, { "queue", 112, "muster_queue" }, { "tag", 120, "uint64_t" }, { "state_dir", 128, "void" }, { "state_dir_bytes", 136, "uint64_t" }, { "majority_timeout_ns", 144, "int64_t" }, { "reserved", 152, "uint64_t" } } },
  { "muster_rendezvous_event", 256, { { "kind", 0, "uint32_t" }, { "rank", 4, "uint32_t" }, { "round", 8, "uint64_t" }, { "count", 16, "uint32_t" }, { "text_bytes", 20, "uint32_t" }, { "text", 24, "char" } } },
  { "muster_rendezvous_state", 88, { { "phase", 0, "uint32_t" }, { "flags", 4, "uint32_t" }, { "round", 8, "uint64_t" }, { "joined", 16, "uint32_t" }, { "missing", 20, "uint32_t" }, { "waiting", 24, "uint32_t" }, { "spares", 28, "uint32_t" }, { "present", 32, "uint32_t" }, { "exiting", 36, "uint32_t" }, { "last_call_remaining_ns", 40, "int64_t" }, { "reserved", 48, "uint64_t" } } },
  { "muster_round_info", 64, { { "number", 0, "uint64_t" }, { "rank", 8, "uint32_t" }, { "world", 12, "uint32_t" }, { "flags", 16, "uint32_t" }, { "reserved", 20, "uint32_t" }, { "digest", 32, "uint8_t" } } },
  { "muster_round_member_info", 24, { { "address", 0, "void" }, { "address_bytes", 8, "uint64_t" }, { "reserved", 16, "uint64_t" } } },
  { "muster_rendezvous_request", 48, { { "struct_size", 0, "uint32_t" }, { "kind", 4, "uint32_t" }, { "member", 8, "uint64_t" }, { "config", 16, "muster_rendezvous_config" }, { "reason", 24, "void" }, { "reason_bytes", 32, "uint64_t" }, { "timeout_ns", 40, "int64_t" } } },
  { "muster_rendezvous_assignment", 80, { { "struct_size", 0, "uint32_t" }, { "rank", 4, "uint32_t" }, { "world", 8, "uint32_t" }, { "reserved", 12, "uint32_t" }, { "number", 16, "uint64_t" }, { "store", 24, "muster_store" }, { "members", 32, "muster_round_member_info" }, { "member_count", 40, "uint64_t" }, { "digest", 48, "uint8_t" } } },
  { "muster_rendezvous_ops", 40, { { "struct_size", 0, "uint32_t" }, { "flags", 4, "uint32_t" }, { "request", 8, "" }, { "cancel", 16, "" }, { "close", 24, "" }, { "destroy", 32, "" } } },
  { "muster_transport_ops", 48, { { "struct_size", 0, "uint32_t" }, { "flags", 4, "uint32_t" }, { "open", 8, "" }, { "listen", 16, "" }, { "close", 24, "" }, { "cancel", 32, "" }, { "destroy", 40, "" } } },
  { "muster_socket_config", 72, { { "struct_size", 0, "uint32_t" }, { "flags", 4, "uint32_t" }, { "kind", 8, "uint32_t" }, { "max_peers", 12, "uint32_t" }, { "address", 16, "uint64_t" }, { "max_message_bytes", 24, "uint64_t" }, { "max_queued_bytes", 32, "uint64_t" }, { "max_queued_messages", 40, "uint32_t" }, { "max_unrouted_messages", 44, "uint32_t" }, { "queue", 48, "muster_queue" }, { "tag", 56, "uint64_t" }, { "max_loaned_bytes", 64, "uint64_t" } } },
  { "muster_socket_event", 288, { { "kind", 0, "uint32_t" }, { "text_bytes", 4, "uint32_t" }, { "address", 8, "uint64_t" }, { "incarnation", 16, "uint64_t" }, { "undelivered", 24, "uint64_t" }, { "text", 32, "char" } } },
  { "muster_socket_stats", 128, { { "peers", 0, "uint64_t" }, { "messages_in", 8, "uint64_t" }, { "messages_out", 16, "uint64_t" }, { "bytes_in", 24, "uint64_t" }, { "bytes_out", 32, "uint64_t" }, { "queued_messages", 40, "uint64_t" }, { "queued_bytes", 48, "uint64_t" }, { "undelivered", 56, "uint64_t" }, { "connections_made", 64, "uint64_t" }, { "connections_lost", 72, "uint64_t" }, { "malformed", 80, "uint64_t" }, { "full", 88, "uint64_t" }, { "reserved", 96, "uint64_t" } } },
  { "muster_store_op", 88, { { "kind", 0, "uint32_t" }, { "condition", 4, "uint32_t" }, { "key", 8, "void" }, { "key_bytes", 16, "uint64_t" }, { "value", 24, "void" }, { "value_bytes", 32, "uint64_t" }, { "expected", 40, "void" }, { "expected_bytes", 48, "uint64_t" }, { "version", 56, "uint64_t" }, { "number", 64, "int64_t" }, { "lease", 72, "uint64_t" }, { "count", 80, "uint32_t" }, { "rank", 84, "uint32_t" } } },
  { "muster_store_entry", 56, { { "op", 0, "uint32_t" }, { "flags", 4, "uint32_t" }, { "version", 8, "uint64_t" }, { "number", 16, "int64_t" }, { "key", 24, "void" }, { "key_bytes", 32, "uint64_t" }, { "value", 40, "void" }, { "value_bytes", 48, "uint64_t" } } },
  { "muster_store_config", 40, { { "struct_size", 0, "uint32_t" }, { "flags", 4, "uint32_t" }, { "max_bytes", 8, "uint64_t" }, { "lost_after_ns", 16, "int64_t" }, { "grace_ns", 24, "int64_t" }, { "reserved", 32, "uint64_t" } } },
  { "muster_store_request", 72, { { "struct_size", 0, "uint32_t" }, { "kind", 4, "uint32_t" }, { "store", 8, "uint64_t" }, { "flags", 16, "uint32_t" }, { "reserved", 20, "uint32_t" }, { "ops", 24, "muster_store_op" }, { "op_count", 32, "uint64_t" }, { "url", 40, "char" }, { "url_bytes", 48, "uint64_t" }, { "lease", 56, "uint64_t" }, { "ttl_ns", 64, "int64_t" } } },
  { "muster_store_traits", 32, { { "struct_size", 0, "uint32_t" }, { "flags", 4, "uint32_t" }, { "capabilities", 8, "uint32_t" }, { "max_ops", 12, "uint32_t" }, { "max_request_bytes", 16, "uint64_t" }, { "min_lease_ns", 24, "int64_t" } } },
  { "muster_store_host_ops", 40, { { "struct_size", 0, "uint32_t" }, { "flags", 4, "uint32_t" }, { "request", 8, "" }, { "cancel", 16, "" }, { "close", 24, "" }, { "destroy", 32, "" } } },
  { "muster_store_server_config", 72, { { "struct_size", 0, "uint32_t" }, { "flags", 4, "uint32_t" }, { "data_dir", 8, "char" }, { "data_dir_bytes", 16, "uint64_t" }, { "max_bytes", 24, "uint64_t" }, { "session_ns", 32, "int64_t" }, { "max_clients", 40, "uint32_t" }, { "reserved_field", 44, "uint32_t" }, { "standby_of", 48, "char" }, { "standby_of_bytes", 56, "uint64_t" }, { "pair_lease_ns", 64, "int64_t" } } },
  { "muster_store_server_stats", 112, { { "clients", 0, "uint64_t" }, { "sessions", 8, "uint64_t" }, { "requests", 16, "uint64_t" }, { "waiting", 24, "uint64_t" }, { "refused", 32, "uint64_t" }, { "keys", 40, "uint64_t" }, { "bytes", 48, "uint64_t" }, { "leases", 56, "uint64_t" }, { "revision", 64, "uint64_t" }, { "failed", 72, "uint64_t" }, { "role", 80, "uint64_t" }, { "epoch", 88, "uint64_t" }, { "lag", 96, "uint64_t" }, { "reserved", 104, "uint64_t" } } },
  { "muster_stream_config", 16, { { "struct_size", 0, "uint32_t" }, { "flags", 4, "uint32_t" }, { "window_bytes", 8, "uint64_t" } } },
  { "muster_stream_stats", 128, { { "bytes_in", 0, "uint64_t" }, { "bytes_out", 8, "uint64_t" }, { "buffered_in", 16, "uint64_t" }, { "buffered_out", 24, "uint64_t" }, { "reads", 32, "uint64_t" }, { "writes", 40, "uint64_t" }, { "waits", 48, "uint64_t" }, { "wakeups", 56, "uint64_t" }, { "spins_won", 64, "uint64_t" }, { "spins_lost", 72, "uint64_t" }, { "caller_io", 80, "uint64_t" }, { "loop_io", 88, "uint64_t" }, { "last_received_ns", 96, "uint64_t" }, { "multicast_group", 104, "uint64_t" }, { "round_trip_ns", 112, "uint64_t" }, { "reserved", 120, "uint64_t" } } },
  { "muster_trace_config", 24, { { "struct_size", 0, "uint32_t" }, { "events", 4, "uint32_t" }, { "name", 8, "void" }, { "name_bytes", 16, "uint64_t" } } },
  { "muster_trace_state", 40, { { "events", 0, "uint64_t" }, { "threads", 8, "uint64_t" }, { "offset_ns", 16, "int64_t" }, { "offset_error_ns", 24, "int64_t" }, { "is_on", 32, "uint32_t" }, { "reserved", 36, "uint32_t" } } },
  { "muster_transport_config", 56, { { "struct_size", 0, "uint32_t" }, { "flags", 4, "uint32_t" }, { "hello", 8, "void" }, { "hello_bytes", 16, "uint64_t" }, { "window_bytes", 24, "uint64_t" }, { "backlog", 32, "uint32_t" }, { "reserved", 36, "uint32_t" }, { "retry_ns", 40, "int64_t" }, { "listen_timeout_ns", 48, "int64_t" } } },
  { "muster_worker_config", 80, { { "struct_size", 0, "uint32_t" }, { "flags", 4, "uint32_t" }, { "exit_grace_ns", 8, "int64_t" }, { "report_fd_plus_one", 16, "int32_t" }, { "max_connections", 20, "uint32_t" }, { "queue", 24, "muster_queue" }, { "tag", 32, "uint64_t" }, { "master", 40, "char" }, { "store", 48, "char" }, { "name", 56, "char" }, { "listen", 64, "char" }, { "max_broadcast_bytes", 72, "uint64_t" } } },
}

return surface
