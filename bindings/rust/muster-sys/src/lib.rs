// SPDX-License-Identifier: MIT
// Written by bindings/rust/generate from include/muster/*.h; do not edit.
//! The C interface of libmuster, as it is: names, structs, constants and functions of `include/muster/*.h`, where each
//! is described. The crate `muster` is the safe form of it.
//!
//! Every struct has a `Default` of zeros, which C takes for the defaults; `sized()` also says how large it is, in those
//! that have a `struct_size`.
#![allow(non_camel_case_types)]
#![cfg_attr(rustfmt, rustfmt_skip)]

use std::os::raw::{c_char, c_int, c_void};

/// Result of a call: 0, a positive "not now", or a negative failure; see muster_status_value.
pub type muster_status = i32;

/// Opaque; the library's side of one listener of a connections plug-in.
#[repr(C)]
pub struct muster_acceptor {
    _private: [u8; 0],
}

/// Opaque; made by muster_agent_start().
#[repr(C)]
pub struct muster_agent {
    _private: [u8; 0],
}

/// Opaque; bytes that another member has broadcast, see MUSTER_CLUSTER_BROADCAST.
#[repr(C)]
pub struct muster_broadcast {
    _private: [u8; 0],
}

/// Opaque; made by muster_broker_open().
#[repr(C)]
pub struct muster_broker {
    _private: [u8; 0],
}

/// Opaque; one member's view of a cluster, made by muster_cluster_open() or muster_worker_start().
#[repr(C)]
pub struct muster_cluster {
    _private: [u8; 0],
}

/// Opaque; made by muster_context_create().
#[repr(C)]
pub struct muster_context {
    _private: [u8; 0],
}

/// Opaque; the library's side of a fabric's endpoint.
#[repr(C)]
pub struct muster_endpoint {
    _private: [u8; 0],
}

/// Opaque; made by muster_store_lease().
#[repr(C)]
pub struct muster_lease {
    _private: [u8; 0],
}

/// Opaque; the library's side of one connection.
#[repr(C)]
pub struct muster_link {
    _private: [u8; 0],
}

/// Opaque; made by muster_transport_listen().
#[repr(C)]
pub struct muster_listener {
    _private: [u8; 0],
}

/// Opaque; a child process.
#[repr(C)]
pub struct muster_process {
    _private: [u8; 0],
}

/// Opaque; made by muster_queue_create(), see queue.h.
#[repr(C)]
pub struct muster_queue {
    _private: [u8; 0],
}

/// Opaque; one member of a run, made by muster_rendezvous_open().
#[repr(C)]
pub struct muster_rendezvous {
    _private: [u8; 0],
}

/// Opaque; what a join has given.
#[repr(C)]
pub struct muster_round {
    _private: [u8; 0],
}

/// Opaque; made by muster_store_open() or muster_store_view().
#[repr(C)]
pub struct muster_store {
    _private: [u8; 0],
}

/// Opaque; what a request has found and done.
#[repr(C)]
pub struct muster_store_result {
    _private: [u8; 0],
}

/// Opaque; made by muster_store_server_open().
#[repr(C)]
pub struct muster_store_server {
    _private: [u8; 0],
}

/// Opaque; one end of a duplex byte stream.
#[repr(C)]
pub struct muster_stream {
    _private: [u8; 0],
}

/// Opaque; a running timer, from muster_hoststart_timer.
#[repr(C)]
pub struct muster_timer {
    _private: [u8; 0],
}

/// Opaque; a watched descriptor, from muster_hostwatch_fd.
#[repr(C)]
pub struct muster_watch {
    _private: [u8; 0],
}

// muster_agent_flag: Flags of muster_agent_configflags.
pub const MUSTER_AGENT_NO_GUARD: u32 = 1;

// muster_agent_output: Outputs of a worker; bits of muster_agent_configfiled and muster_agent_configshown.
pub const MUSTER_AGENT_STDOUT: u32 = 1;
pub const MUSTER_AGENT_STDERR: u32 = 2;

// muster_agent_phase: Where an agent is; the value of muster_agent_statephase.
pub const MUSTER_AGENT_JOINING: u32 = 1;
pub const MUSTER_AGENT_STARTING: u32 = 2;
pub const MUSTER_AGENT_RUNNING: u32 = 3;
pub const MUSTER_AGENT_STOPPING: u32 = 4;
pub const MUSTER_AGENT_DONE: u32 = 5;
pub const MUSTER_AGENT_ENDED: u32 = 6;

// muster_agent_worker_state: How a worker fares; the value of muster_agent_workerstate.
pub const MUSTER_WORKER_NONE: u32 = 0;
pub const MUSTER_WORKER_RUNNING: u32 = 1;
pub const MUSTER_WORKER_SUCCEEDED: u32 = 2;
pub const MUSTER_WORKER_FAILED: u32 = 3;
pub const MUSTER_WORKER_STOPPED: u32 = 4;

// muster_agent_event: Steps of an agent; the value of muster_completionevents of MUSTER_EVENT_AGENT.
pub const MUSTER_AGENT_STARTED: u32 = 1;
pub const MUSTER_AGENT_WORKER_ENDED: u32 = 2;
pub const MUSTER_AGENT_RESTARTING: u32 = 3;
pub const MUSTER_AGENT_NODES: u32 = 4;

// muster_status_value: The values of a muster_status.
pub const MUSTER_OK: i32 = 0;
pub const MUSTER_AGAIN: i32 = 1;
pub const MUSTER_TIMEOUT: i32 = 2;
pub const MUSTER_E_ARG: i32 = -1;
pub const MUSTER_E_ABI: i32 = -2;
pub const MUSTER_E_NOMEM: i32 = -3;
pub const MUSTER_E_LIMIT: i32 = -4;
pub const MUSTER_E_CLOSED: i32 = -5;
pub const MUSTER_E_CANCELED: i32 = -6;
pub const MUSTER_E_FORKED: i32 = -7;
pub const MUSTER_E_WOULD_DEADLOCK: i32 = -8;
pub const MUSTER_E_UNSUPPORTED: i32 = -9;
pub const MUSTER_E_EXISTS: i32 = -10;
pub const MUSTER_E_NOT_FOUND: i32 = -11;
pub const MUSTER_E_STALE: i32 = -12;
pub const MUSTER_E_BUSY: i32 = -13;
pub const MUSTER_E_PERMISSION: i32 = -14;
pub const MUSTER_E_AUTH: i32 = -15;
pub const MUSTER_E_PROTOCOL: i32 = -16;
pub const MUSTER_E_ADDRESS: i32 = -17;
pub const MUSTER_E_UNREACHABLE: i32 = -18;
pub const MUSTER_E_PEER: i32 = -19;
pub const MUSTER_E_ABORTED: i32 = -20;
pub const MUSTER_E_END: i32 = -21;
pub const MUSTER_E_SYSTEM: i32 = -22;
pub const MUSTER_E_PLUGIN: i32 = -23;
pub const MUSTER_E_INTERNAL: i32 = -24;
pub const MUSTER_E_CHANGED: i32 = -25;
pub const MUSTER_E_STORE_LOST: i32 = -26;
pub const MUSTER_E_QUORUM: i32 = -27;

// muster_broker_flag: Flags of muster_broker_configflags.
pub const MUSTER_BROKER_OPEN: u32 = 1;
pub const MUSTER_BROKER_NO_CURVE: u32 = 2;

// muster_cluster_member_id: Numbers of members that mean something.
pub const MUSTER_CLUSTER_MASTER: u32 = 0;

// muster_cluster_topology: Between whom streams may be opened.
pub const MUSTER_CLUSTER_ALL_TO_ALL: u32 = 0;
pub const MUSTER_CLUSTER_MASTER_WORKER: u32 = 1;
pub const MUSTER_CLUSTER_TREE: u32 = 2;
pub const MUSTER_CLUSTER_CUSTOM: u32 = 3;

// muster_launch_flag: Flags of muster_launchflags.
pub const MUSTER_LAUNCH_MASTER_DIALS: u32 = 1;
pub const MUSTER_LAUNCH_NO_LISTEN: u32 = 2;

// muster_cluster_event_kind: What has happened.
pub const MUSTER_CLUSTER_LAUNCHED: u32 = 1;
pub const MUSTER_CLUSTER_CONNECTED: u32 = 2;
pub const MUSTER_CLUSTER_JOINED: u32 = 3;
pub const MUSTER_CLUSTER_FAILED: u32 = 4;
pub const MUSTER_CLUSTER_DEAD: u32 = 5;
pub const MUSTER_CLUSTER_REMOVED: u32 = 6;
pub const MUSTER_CLUSTER_STREAM: u32 = 7;
pub const MUSTER_CLUSTER_INTERRUPT: u32 = 8;
pub const MUSTER_CLUSTER_LEAVE: u32 = 9;
pub const MUSTER_CLUSTER_MASTER_GONE: u32 = 10;
pub const MUSTER_CLUSTER_BROADCAST: u32 = 11;

// muster_member_state: How a member fares.
pub const MUSTER_MEMBER_LAUNCHING: u32 = 1;
pub const MUSTER_MEMBER_LAUNCHED: u32 = 2;
pub const MUSTER_MEMBER_CONNECTED: u32 = 3;
pub const MUSTER_MEMBER_JOINED: u32 = 4;
pub const MUSTER_MEMBER_LEAVING: u32 = 5;
pub const MUSTER_MEMBER_GONE: u32 = 6;

// muster_worker_flag: Flags of muster_worker_configflags.
pub const MUSTER_WORKER_EXIT_WITH_MASTER: u32 = 1;
pub const MUSTER_WORKER_RAISE_INTERRUPT: u32 = 2;

// muster_context_flag: Flags of muster_context_configflags.
pub const MUSTER_CONTEXT_EXTERNAL: u32 = 1;
pub const MUSTER_CONTEXT_NO_SEAL: u32 = 2;
pub const MUSTER_CONTEXT_SEAL_ALWAYS: u32 = 4;
pub const MUSTER_CONTEXT_NO_UPGRADE: u32 = 8;

// muster_log_level: Least severity of a log record.
pub const MUSTER_LOG_OFF: u32 = 0;
pub const MUSTER_LOG_ERROR: u32 = 1;
pub const MUSTER_LOG_WARN: u32 = 2;
pub const MUSTER_LOG_INFO: u32 = 3;
pub const MUSTER_LOG_DEBUG: u32 = 4;

// muster_manager_want: What a request wants; bits, or'ed where a host says which it wants to hear of.
pub const MUSTER_MANAGER_LAUNCH: u32 = 1;
pub const MUSTER_MANAGER_CONNECT: u32 = 2;
pub const MUSTER_MANAGER_CONNECT_WORKER: u32 = 4;
pub const MUSTER_MANAGER_REGISTER: u32 = 8;
pub const MUSTER_MANAGER_DEREGISTER: u32 = 16;
pub const MUSTER_MANAGER_INTERRUPT: u32 = 32;
pub const MUSTER_MANAGER_KILL: u32 = 64;
pub const MUSTER_MANAGER_FINALIZE: u32 = 128;

// muster_plugin_flag: Flags of muster_connections_opsflags and muster_fabric_opsflags.
pub const MUSTER_PLUGIN_LOCAL: u32 = 1;
pub const MUSTER_PLUGIN_SEALS: u32 = 2;
pub const MUSTER_PLUGIN_OPTIONS: u32 = 4;
pub const MUSTER_PLUGIN_INTRODUCES: u32 = 8;

// muster_plugin_event: What a descriptor is watched for, and what it has become.
pub const MUSTER_PLUGIN_READABLE: u32 = 1;
pub const MUSTER_PLUGIN_WRITABLE: u32 = 2;
pub const MUSTER_PLUGIN_HANGUP: u32 = 4;

// muster_host_flag: Flags of muster_hostflags.
pub const MUSTER_HOST_EXTERNAL: u32 = 1;

// muster_process_exit_kind: How a process ended; fields of muster_process_exitkind.
pub const MUSTER_PROCESS_EXITED: i32 = 1;
pub const MUSTER_PROCESS_KILLED: i32 = 2;
pub const MUSTER_PROCESS_UNKNOWN: i32 = 3;

// muster_completion_kind: What a completion tells; the value of muster_completionkind.
pub const MUSTER_DONE_READ: i32 = 1;
pub const MUSTER_DONE_RELEASED: i32 = 2;
pub const MUSTER_DONE_DIAL: i32 = 3;
pub const MUSTER_DONE_EXIT: i32 = 4;
pub const MUSTER_DONE_USER: i32 = 5;
pub const MUSTER_DONE_STORE: i32 = 6;
pub const MUSTER_DONE_LEASE: i32 = 7;
pub const MUSTER_DONE_RENDEZVOUS: i32 = 8;
pub const MUSTER_DONE_AGENT: i32 = 9;
pub const MUSTER_DONE_BROADCAST: i32 = 10;
pub const MUSTER_EVENT_READY: i32 = 16;
pub const MUSTER_EVENT_LOG: i32 = 17;
pub const MUSTER_EVENT_AGENT: i32 = 19;
pub const MUSTER_REQUEST_OPEN: i32 = 32;
pub const MUSTER_REQUEST_LISTEN: i32 = 33;
pub const MUSTER_REQUEST_CLOSE: i32 = 34;
pub const MUSTER_REQUEST_CANCEL: i32 = 35;
pub const MUSTER_REQUEST_STORE: i32 = 36;
pub const MUSTER_REQUEST_RENDEZVOUS: i32 = 37;
pub const MUSTER_REQUEST_MANAGER: i32 = 38;

// muster_rendezvous_flag: Flags of muster_rendezvous_configflags.
pub const MUSTER_RENDEZVOUS_RANK: u32 = 1;
pub const MUSTER_RENDEZVOUS_REOPEN: u32 = 2;

// muster_rendezvous_operation: What muster_rendezvous_begin() begins.
pub const MUSTER_RENDEZVOUS_JOIN: u32 = 1;
pub const MUSTER_RENDEZVOUS_LEAVE: u32 = 2;
pub const MUSTER_RENDEZVOUS_EXIT: u32 = 3;
pub const MUSTER_RENDEZVOUS_ABORT: u32 = 4;
pub const MUSTER_RENDEZVOUS_CLOSE: u32 = 5;

// muster_rendezvous_event_kind: What an event tells; the value of muster_rendezvous_eventkind.
pub const MUSTER_RENDEZVOUS_JOINED: u32 = 1;
pub const MUSTER_RENDEZVOUS_LAST_CALL: u32 = 2;
pub const MUSTER_RENDEZVOUS_COMPLETE: u32 = 3;
pub const MUSTER_RENDEZVOUS_LEFT: u32 = 4;
pub const MUSTER_RENDEZVOUS_DEAD: u32 = 5;
pub const MUSTER_RENDEZVOUS_WAITING: u32 = 6;
pub const MUSTER_RENDEZVOUS_ABORTED: u32 = 7;
pub const MUSTER_RENDEZVOUS_EXPELLED: u32 = 8;
pub const MUSTER_RENDEZVOUS_CLOSED: u32 = 9;
pub const MUSTER_RENDEZVOUS_LOST: u32 = 10;

// muster_rendezvous_phase: Where a member is; the value of muster_rendezvous_statephase.
pub const MUSTER_RENDEZVOUS_OUT: u32 = 0;
pub const MUSTER_RENDEZVOUS_SEEKS: u32 = 1;
pub const MUSTER_RENDEZVOUS_IN: u32 = 2;

// muster_rendezvous_state_flag: Flags of muster_rendezvous_stateflags.
pub const MUSTER_RENDEZVOUS_IS_CLOSED: u32 = 1;
pub const MUSTER_RENDEZVOUS_IS_CALLED: u32 = 2;
pub const MUSTER_RENDEZVOUS_LEADS: u32 = 4;

// muster_round_flag: Flags of muster_round_infoflags.
pub const MUSTER_ROUND_OVER: u32 = 1;

// muster_rendezvous_request_kind: What a request wants; the value of muster_rendezvous_requestkind.
pub const MUSTER_RENDEZVOUS_REQUEST_OPEN: u32 = 1;
pub const MUSTER_RENDEZVOUS_REQUEST_JOIN: u32 = 2;
pub const MUSTER_RENDEZVOUS_REQUEST_LEAVE: u32 = 3;
pub const MUSTER_RENDEZVOUS_REQUEST_EXIT: u32 = 4;
pub const MUSTER_RENDEZVOUS_REQUEST_ABORT: u32 = 5;
pub const MUSTER_RENDEZVOUS_REQUEST_CLOSE: u32 = 6;
pub const MUSTER_RENDEZVOUS_REQUEST_LIST: u32 = 7;

// muster_transport_flag: Flags of muster_transport_opsflags.
pub const MUSTER_TRANSPORT_ANY_THREAD: u32 = 1;
pub const MUSTER_TRANSPORT_LOCAL: u32 = 2;

// muster_store_op_kind: What an operation does; the value of muster_store_opkind.
pub const MUSTER_STORE_NONE: u32 = 0;
pub const MUSTER_STORE_GET: u32 = 1;
pub const MUSTER_STORE_READ: u32 = 2;
pub const MUSTER_STORE_SET: u32 = 3;
pub const MUSTER_STORE_ADD: u32 = 4;
pub const MUSTER_STORE_APPEND: u32 = 5;
pub const MUSTER_STORE_DELETE: u32 = 6;
pub const MUSTER_STORE_CHECK: u32 = 7;
pub const MUSTER_STORE_WAIT: u32 = 8;
pub const MUSTER_STORE_COUNT: u32 = 9;
pub const MUSTER_STORE_LIST: u32 = 10;
pub const MUSTER_STORE_KEYS: u32 = 11;
pub const MUSTER_STORE_PUSH: u32 = 12;
pub const MUSTER_STORE_POP: u32 = 13;
pub const MUSTER_STORE_TRY_POP: u32 = 14;
pub const MUSTER_STORE_LENGTH: u32 = 15;
pub const MUSTER_STORE_WATCH: u32 = 16;
pub const MUSTER_STORE_BARRIER: u32 = 17;
pub const MUSTER_STORE_CLEAR: u32 = 18;

// muster_store_condition: What has to be so for a request to be done; the value of muster_store_opcondition.
pub const MUSTER_STORE_ALWAYS: u32 = 0;
pub const MUSTER_STORE_IF_ABSENT: u32 = 1;
pub const MUSTER_STORE_IF_PRESENT: u32 = 2;
pub const MUSTER_STORE_IF_VALUE: u32 = 3;
pub const MUSTER_STORE_IF_VERSION: u32 = 4;

// muster_store_entry_flag: Flags of muster_store_entryflags.
pub const MUSTER_STORE_PRESENT: u32 = 1;
pub const MUSTER_STORE_FAILED: u32 = 2;
pub const MUSTER_STORE_MORE: u32 = 4;
pub const MUSTER_STORE_LEASE_ENDED: u32 = 8;
pub const MUSTER_STORE_LEASE_SILENT: u32 = 16;
pub const MUSTER_STORE_LEASE_BROKEN: u32 = 32;

// muster_store_capability: What a store can do; bits of muster_store_capabilities().
pub const MUSTER_STORE_CAN_TRANSACT: u32 = 1;
pub const MUSTER_STORE_CAN_QUEUE: u32 = 2;
pub const MUSTER_STORE_CAN_WAIT: u32 = 4;
pub const MUSTER_STORE_CAN_WATCH: u32 = 8;
pub const MUSTER_STORE_CAN_LEASE: u32 = 16;
pub const MUSTER_STORE_CAN_MEET: u32 = 32;

// muster_lease_flag: Flags of muster_store_lease().
pub const MUSTER_LEASE_MANUAL: u32 = 1;
pub const MUSTER_LEASE_CONNECTED: u32 = 2;

// muster_store_request_kind: What a request wants; the value of muster_store_requestkind.
pub const MUSTER_STORE_REQUEST_OPEN: u32 = 1;
pub const MUSTER_STORE_REQUEST_DO: u32 = 2;
pub const MUSTER_STORE_REQUEST_GRANT: u32 = 3;
pub const MUSTER_STORE_REQUEST_KEEP: u32 = 4;
pub const MUSTER_STORE_REQUEST_END: u32 = 5;

// muster_store_request_flag: Flags of muster_store_requestflags.
pub const MUSTER_STORE_LOOK_ONCE: u32 = 1;

// muster_store_trait: Flags of muster_store_traitsflags.
pub const MUSTER_STORE_ELSEWHERE: u32 = 1;

// muster_store_host_flag: Flags of muster_store_host_opsflags.
pub const MUSTER_STORE_ANY_THREAD: u32 = 1;

// muster_store_server_flag: Flags of muster_store_server_configflags.
pub const MUSTER_STORE_SERVER_NO_SYNC: u32 = 1;
pub const MUSTER_STORE_SERVER_ALONE: u32 = 2;
pub const MUSTER_STORE_SERVER_REFUSED_IS_DEAD: u32 = 4;

// muster_store_server_role: What a server does, in muster_store_server_statsrole.
pub const MUSTER_STORE_SERVER_SERVES: u32 = 0;
pub const MUSTER_STORE_SERVER_PAIRED: u32 = 1;
pub const MUSTER_STORE_SERVER_HALTED: u32 = 2;
pub const MUSTER_STORE_SERVER_STANDBY: u32 = 3;
pub const MUSTER_STORE_SERVER_CATCHING_UP: u32 = 4;
pub const MUSTER_STORE_SERVER_WAITING: u32 = 5;

// muster_stream_event: What a stream can be ready for, or has met; bits of muster_completionevents.
pub const MUSTER_STREAM_READABLE: u32 = 1;
pub const MUSTER_STREAM_WRITABLE: u32 = 2;
pub const MUSTER_STREAM_PEER_SILENT: u32 = 4;
pub const MUSTER_STREAM_PEER_BACK: u32 = 8;
pub const MUSTER_STREAM_ENDED: u32 = 16;

// muster_stream_direction: Directions, for muster_stream_cancel().
pub const MUSTER_STREAM_READ: u32 = 1;
pub const MUSTER_STREAM_WRITE: u32 = 2;

// muster_stream_read_flag: Flags of muster_stream_read_into() and muster_stream_read_begin().
pub const MUSTER_STREAM_HUGE_PAGES: u32 = 1;

/// Type of the one function a plug-in exports, named `muster_plugin_v1`.
pub type muster_plugin_v1_fn = Option<unsafe extern "C" fn(host: *const muster_host, error: *mut muster_error) -> muster_status>;

/// Handles one entry that no callback table took; see muster_queue_dispatch().
pub type muster_queue_handler_fn = Option<unsafe extern "C" fn(user: *mut c_void, entry: *const muster_completion, error: *const muster_error)>;

/// Wakes a foreign event loop; the result is ignored.
pub type muster_wake_fn = Option<unsafe extern "C" fn(user: *mut c_void) -> c_int>;

/// What becomes of the outputs of one worker; 16 bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_agent_outputs {
    pub local_rank: u32,
    pub filed: u32,
    pub shown: u32,
    pub reserved: u32,
}

impl Default for muster_agent_outputs {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// What to run; all zero means the defaults named here.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_agent_config {
    pub struct_size: u32,
    pub flags: u32,
    pub argv: *const *const c_char,
    pub envp: *const *const c_char,
    pub directory: *const c_char,
    pub worker_count: u32,
    pub max_restarts: u32,
    pub grace_ns: i64,
    pub run_id: *const c_char,
    pub role: *const c_char,
    pub log_dir: *const c_char,
    pub filed: u32,
    pub shown: u32,
    pub out_fd_plus_one: i32,
    pub err_fd_plus_one: i32,
    pub local_address: *const c_char,
    pub rendezvous: *const muster_rendezvous_config,
    pub master_address: *const c_char,
    pub master_port: u32,
    pub reserved0: u32,
    pub join_timeout_ns: i64,
    pub exit_timeout_ns: i64,
    pub outputs: *const muster_agent_outputs,
    pub output_count: u64,
    pub reserved: [u64; 2],
}

impl Default for muster_agent_config {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_agent_config {
    pub fn sized() -> Self {
        muster_agent_config { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// What an agent does; filled by muster_agent_get_state().
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_agent_state {
    pub phase: u32,
    pub worker_count: u32,
    pub running: u32,
    pub restarts: u32,
    pub group_rank: u32,
    pub group_world_size: u32,
    pub first_rank: u32,
    pub world_size: u32,
    pub round: u64,
    pub master_address: [c_char; 256],
    pub master_port: u32,
    pub reserved: [u32; 7],
}

impl Default for muster_agent_state {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// One worker; filled by muster_agent_get_worker() and muster_agent_first_failure().
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_agent_worker {
    pub local_rank: u32,
    pub rank: u32,
    pub state: u32,
    pub restarts: u32,
    pub pid: i32,
    pub exit: muster_process_exit,
    pub reserved0: u32,
    pub started_unix_ns: i64,
    pub ended_unix_ns: i64,
    pub failed_unix_ns: i64,
    pub round: u64,
    pub message: [c_char; 512],
    pub directory: [c_char; 256],
}

impl Default for muster_agent_worker {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// Why a call failed; caller-owned, 256 bytes, no pointers.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_error {
    pub status: muster_status,
    pub os_errno: i32,
    pub provider_code: i64,
    pub rank: u32,
    pub message_bytes: u32,
    pub message: [c_char; 232],
}

impl Default for muster_error {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// How to run a broker; all zero means the defaults named here.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_broker_config {
    pub struct_size: u32,
    pub flags: u32,
    pub parent: *const c_char,
    pub parent_bytes: u64,
    pub window_bytes: u64,
    pub max_members: u32,
    pub reserved: u32,
    pub curve_file: *const c_char,
    pub curve_file_bytes: u64,
}

impl Default for muster_broker_config {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_broker_config {
    pub fn sized() -> Self {
        muster_broker_config { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// Figures of a broker.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_broker_stats {
    pub members: u64,
    pub brokers: u64,
    pub has_parent: u64,
    pub names: u64,
    pub pairs: u64,
    pub messages: u64,
    pub bytes: u64,
    pub queued_bytes: u64,
    pub connections: u64,
    pub refused: u64,
    pub lost: u64,
    pub to_many: u64,
    pub reserved: [u64; 4],
}

impl Default for muster_broker_stats {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// How to open a cluster; all zero means the defaults named here.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_cluster_config {
    pub struct_size: u32,
    pub flags: u32,
    pub topology: u32,
    pub most_connections: u32,
    pub listen: *const c_char,
    pub listen_bytes: u64,
    pub join_timeout_ns: i64,
    pub leave_timeout_ns: i64,
    pub queue: *mut muster_queue,
    pub tag: u64,
    pub broadcast_bytes: u64,
    pub reserved1: [u64; 3],
}

impl Default for muster_cluster_config {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_cluster_config {
    pub fn sized() -> Self {
        muster_cluster_config { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// What to launch; what is zero means the default named here.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_launch {
    pub struct_size: u32,
    pub flags: u32,
    pub manager: *const c_char,
    pub count: u32,
    pub reserved: u32,
    pub argv: *const *const c_char,
    pub envp: *const *const c_char,
    pub directory: *const c_char,
    pub listen: *const c_char,
    pub ident: *const c_char,
    pub connect_idents: *const c_char,
    pub options: *const c_char,
    pub reserved1: [u64; 4],
}

impl Default for muster_launch {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_launch {
    pub fn sized() -> Self {
        muster_launch { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// One event.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_cluster_event {
    pub kind: u32,
    pub member: u32,
    pub status: muster_status,
    pub label_bytes: u32,
    pub stream: *mut muster_stream,
    pub text_bytes: u32,
    pub reserved: u32,
    pub label: [c_char; 256],
    pub text: [c_char; 232],
    pub broadcast: *mut muster_broadcast,
    pub data: *const c_void,
    pub size_bytes: u64,
}

impl Default for muster_cluster_event {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// What is known of a member.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_member_info {
    pub member: u32,
    pub state: u32,
    pub pid: i64,
    pub data: u64,
    pub host: [c_char; 256],
    pub address: [c_char; 1024],
    pub reserved: [u64; 4],
}

impl Default for muster_member_info {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// How to be a worker; all zero means the defaults named here.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_worker_config {
    pub struct_size: u32,
    pub flags: u32,
    pub exit_grace_ns: i64,
    pub report_fd_plus_one: i32,
    pub most_connections: u32,
    pub queue: *mut muster_queue,
    pub tag: u64,
    pub master: *const c_char,
    pub store: *const c_char,
    pub name: *const c_char,
    pub listen: *const c_char,
    pub broadcast_bytes: u64,
}

impl Default for muster_worker_config {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_worker_config {
    pub fn sized() -> Self {
        muster_worker_config { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// How to start a context; all zero means the defaults named here.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_context_config {
    pub struct_size: u32,
    pub flags: u32,
    pub secret: *const c_void,
    pub secret_bytes: u64,
    pub secret_fd_plus_one: i32,
    pub max_unauthenticated: u32,
    pub handshake_timeout_ns: i64,
    pub heartbeat_ns: i64,
    pub silent_ns: i64,
    pub dead_ns: i64,
    pub window_bytes: u64,
}

impl Default for muster_context_config {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_context_config {
    pub fn sized() -> Self {
        muster_context_config { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// Figures of a context since its start.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_context_stats {
    pub loop_wakeups: u64,
    pub mailbox_posts: u64,
    pub streams_open: u64,
    pub streams_made: u64,
    pub handshakes_ok: u64,
    pub handshakes_failed: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub upgrades: u64,
    pub reserved: [u64; 7],
}

impl Default for muster_context_stats {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// What is asked.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_manager_request {
    pub struct_size: u32,
    pub want: u32,
    pub member: u32,
    pub count: u32,
    pub from: u32,
    pub reserved: u32,
    pub data: u64,
    pub launch: *const muster_launch,
    pub address: *const c_char,
}

impl Default for muster_manager_request {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_manager_request {
    pub fn sized() -> Self {
        muster_manager_request { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// A manager as callbacks; run by muster_queue_dispatch() on the thread that calls it, no lock held.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_manager_ops {
    pub struct_size: u32,
    pub flags: u32,
    pub launch: Option<unsafe extern "C" fn(this: *mut c_void, request: u64, what: *const muster_manager_request)>,
    pub connect: Option<unsafe extern "C" fn(this: *mut c_void, request: u64, what: *const muster_manager_request)>,
    pub connect_worker: Option<unsafe extern "C" fn(this: *mut c_void, request: u64, what: *const muster_manager_request)>,
    pub manage: Option<unsafe extern "C" fn(this: *mut c_void, request: u64, what: *const muster_manager_request)>,
    pub kill: Option<unsafe extern "C" fn(this: *mut c_void, request: u64, what: *const muster_manager_request)>,
    pub cancel: Option<unsafe extern "C" fn(this: *mut c_void, request: u64)>,
    pub destroy: Option<unsafe extern "C" fn(this: *mut c_void)>,
}

impl Default for muster_manager_ops {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_manager_ops {
    pub fn sized() -> Self {
        muster_manager_ops { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// One piece of memory to send; borrowed for the call.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_span {
    pub data: *const c_void,
    pub size_bytes: u64,
}

impl Default for muster_span {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// Memory this process shares with one peer on the same host, and a doorbell for each side.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_segment {
    pub struct_size: u32,
    pub side: u32,
    pub data: *mut c_void,
    pub size_bytes: u64,
    pub own_event: i32,
    pub peer_event: i32,
}

impl Default for muster_segment {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_segment {
    pub fn sized() -> Self {
        muster_segment { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// Memory that a message came in, lent to the library by muster_hostmessage_lent.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_loan {
    pub size_bytes: u64,
    pub release: Option<unsafe extern "C" fn(memory: *mut c_void, hint: *mut c_void)>,
    pub memory: *mut c_void,
    pub hint: *mut c_void,
}

impl Default for muster_loan {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// What a connections plug-in does.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_connections_ops {
    pub struct_size: u32,
    pub flags: u32,
    pub start: Option<unsafe extern "C" fn(this: *mut c_void, error: *mut muster_error) -> muster_status>,
    pub stop: Option<unsafe extern "C" fn(this: *mut c_void)>,
    pub dial: Option<unsafe extern "C" fn(this: *mut c_void, address: *const c_char, address_bytes: u64, link: *mut muster_link, out_connection: *mut *mut c_void, error: *mut muster_error) -> muster_status>,
    pub listen: Option<unsafe extern "C" fn(this: *mut c_void, address: *const c_char, address_bytes: u64, acceptor: *mut muster_acceptor, out_listener: *mut *mut c_void, out_address: *mut c_char, out_address_bytes: *mut u64, error: *mut muster_error) -> muster_status>,
    pub unlisten: Option<unsafe extern "C" fn(this: *mut c_void, listener: *mut c_void)>,
    pub send: Option<unsafe extern "C" fn(connection: *mut c_void, spans: *const muster_span, span_count: u32, out_bytes: *mut u64) -> muster_status>,
    pub resume: Option<unsafe extern "C" fn(connection: *mut c_void)>,
    pub finish: Option<unsafe extern "C" fn(connection: *mut c_void)>,
    pub proved: Option<unsafe extern "C" fn(connection: *mut c_void)>,
    pub paired: Option<unsafe extern "C" fn(connection: *mut c_void, segment: *const muster_segment, status: muster_status)>,
    pub close: Option<unsafe extern "C" fn(connection: *mut c_void)>,
    pub abort: Option<unsafe extern "C" fn(connection: *mut c_void)>,
}

impl Default for muster_connections_ops {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_connections_ops {
    pub fn sized() -> Self {
        muster_connections_ops { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// What a plug-in does whose fabric hangs on a broker: muster_broker_open() and the rest of broker.h.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_broker_ops {
    pub struct_size: u32,
    pub reserved: u32,
    pub open: Option<unsafe extern "C" fn(this: *mut c_void, authority: *const c_char, authority_bytes: u64, config: *const muster_broker_config, out_broker: *mut *mut c_void, out_authority: *mut c_char, out_authority_bytes: *mut u64, error: *mut muster_error) -> muster_status>,
    pub stats: Option<unsafe extern "C" fn(broker: *mut c_void, out_stats: *mut muster_broker_stats)>,
    pub close: Option<unsafe extern "C" fn(broker: *mut c_void, timeout_ns: i64)>,
}

impl Default for muster_broker_ops {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_broker_ops {
    pub fn sized() -> Self {
        muster_broker_ops { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// What a fabric plug-in does.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_fabric_ops {
    pub struct_size: u32,
    pub flags: u32,
    pub message_bytes: u64,
    pub credit_bytes: u64,
    pub start: Option<unsafe extern "C" fn(this: *mut c_void, endpoint: *mut muster_endpoint, error: *mut muster_error) -> muster_status>,
    pub stop: Option<unsafe extern "C" fn(this: *mut c_void)>,
    pub publish: Option<unsafe extern "C" fn(this: *mut c_void, authority: *const c_char, authority_bytes: u64, question: u64, out_authority: *mut c_char, out_authority_bytes: *mut u64, error: *mut muster_error) -> muster_status>,
    pub withdraw: Option<unsafe extern "C" fn(this: *mut c_void, authority: *const c_char, authority_bytes: u64)>,
    pub resolve: Option<unsafe extern "C" fn(this: *mut c_void, authority: *const c_char, authority_bytes: u64, question: u64, out_peer: *mut u64, error: *mut muster_error) -> muster_status>,
    pub send: Option<unsafe extern "C" fn(this: *mut c_void, peer: u64, spans: *const muster_span, span_count: u32) -> muster_status>,
    pub proved: Option<unsafe extern "C" fn(this: *mut c_void, peer: u64)>,
    pub paired: Option<unsafe extern "C" fn(this: *mut c_void, peer: u64, segment: *const muster_segment, status: muster_status)>,
    pub forget: Option<unsafe extern "C" fn(this: *mut c_void, peer: u64)>,
    pub headroom_bytes: u64,
    pub send_segment: Option<unsafe extern "C" fn(this: *mut c_void, peer: u64, segment: *mut c_void, offset_bytes: u64, size_bytes: u64) -> muster_status>,
    pub broker: *const muster_broker_ops,
    pub send_many: Option<unsafe extern "C" fn(this: *mut c_void, peers: *const u64, peer_count: u32, segment: *mut c_void, offset_bytes: u64, size_bytes: u64) -> muster_status>,
    pub poll: Option<unsafe extern "C" fn(this: *mut c_void) -> muster_status>,
}

impl Default for muster_fabric_ops {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_fabric_ops {
    pub fn sized() -> Self {
        muster_fabric_ops { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// Members of muster_host.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_host {
    pub struct_size: u32,
    pub flags: u32,
    pub library: *mut c_void,
    pub log: Option<unsafe extern "C" fn(host: *const muster_host, level: i32, text: *const c_char, text_bytes: u64)>,
    pub derive: Option<unsafe extern "C" fn(host: *const muster_host, label: *const c_char, label_bytes: u64, out_key: *mut c_void, key_bytes: u64) -> muster_status>,
    pub add_connections: Option<unsafe extern "C" fn(host: *const muster_host, scheme: *const c_char, scheme_bytes: u64, ops: *const muster_connections_ops, this: *mut c_void, error: *mut muster_error) -> muster_status>,
    pub add_fabric: Option<unsafe extern "C" fn(host: *const muster_host, scheme: *const c_char, scheme_bytes: u64, ops: *const muster_fabric_ops, this: *mut c_void, error: *mut muster_error) -> muster_status>,
    pub watch_fd: Option<unsafe extern "C" fn(host: *const muster_host, fd: i32, events: u32, ready: Option<unsafe extern "C" fn(user: *mut c_void, events: u32)>, user: *mut c_void, out_watch: *mut *mut muster_watch) -> muster_status>,
    pub change_fd: Option<unsafe extern "C" fn(watch: *mut muster_watch, events: u32)>,
    pub unwatch_fd: Option<unsafe extern "C" fn(watch: *mut muster_watch)>,
    pub start_timer: Option<unsafe extern "C" fn(host: *const muster_host, after_ns: i64, repeat_ns: i64, due: Option<unsafe extern "C" fn(user: *mut c_void)>, user: *mut c_void, out_timer: *mut *mut muster_timer) -> muster_status>,
    pub stop_timer: Option<unsafe extern "C" fn(timer: *mut muster_timer)>,
    pub post: Option<unsafe extern "C" fn(host: *const muster_host, run: Option<unsafe extern "C" fn(user: *mut c_void)>, user: *mut c_void) -> muster_status>,
    pub take_segment: Option<unsafe extern "C" fn(host: *const muster_host) -> *mut c_void>,
    pub give_segment: Option<unsafe extern "C" fn(host: *const muster_host, segment: *mut c_void)>,
    pub accepted: Option<unsafe extern "C" fn(acceptor: *mut muster_acceptor, connection: *mut c_void, peer: *const c_char, peer_bytes: u64, out_link: *mut *mut muster_link) -> muster_status>,
    pub connected: Option<unsafe extern "C" fn(link: *mut muster_link)>,
    pub deliver: Option<unsafe extern "C" fn(link: *mut muster_link, data: *const c_void, size_bytes: u64) -> u64>,
    pub writable: Option<unsafe extern "C" fn(link: *mut muster_link)>,
    pub lost: Option<unsafe extern "C" fn(link: *mut muster_link, status: muster_status, os_errno: i32, text: *const c_char, text_bytes: u64)>,
    pub resolved: Option<unsafe extern "C" fn(endpoint: *mut muster_endpoint, question: u64, status: muster_status, peer: u64, text: *const c_char, text_bytes: u64)>,
    pub message: Option<unsafe extern "C" fn(endpoint: *mut muster_endpoint, peer: u64, data: *const c_void, size_bytes: u64)>,
    pub credit: Option<unsafe extern "C" fn(endpoint: *mut muster_endpoint, peer: u64, bytes: u64)>,
    pub ready: Option<unsafe extern "C" fn(endpoint: *mut muster_endpoint, peer: u64)>,
    pub peer_lost: Option<unsafe extern "C" fn(endpoint: *mut muster_endpoint, peer: u64, status: muster_status, os_errno: i32, text: *const c_char, text_bytes: u64)>,
    pub pair: Option<unsafe extern "C" fn(link: *mut muster_link, size_bytes: u64) -> muster_status>,
    pub pair_peer: Option<unsafe extern "C" fn(endpoint: *mut muster_endpoint, peer: u64, size_bytes: u64) -> muster_status>,
    pub published: Option<unsafe extern "C" fn(endpoint: *mut muster_endpoint, question: u64, status: muster_status, text: *const c_char, text_bytes: u64)>,
    pub peer_flags: Option<unsafe extern "C" fn(endpoint: *mut muster_endpoint, peer: u64, flags: u32)>,
    pub message_lent: Option<unsafe extern "C" fn(endpoint: *mut muster_endpoint, peer: u64, data: *const c_void, size_bytes: u64, loan: *const muster_loan)>,
    pub message_to_many: Option<unsafe extern "C" fn(endpoint: *mut muster_endpoint, peer: u64, data: *const c_void, size_bytes: u64, index: u32, count: u32, loan: *const muster_loan)>,
    pub add_store: Option<unsafe extern "C" fn(host: *const muster_host, scheme: *const c_char, scheme_bytes: u64, ops: *const muster_store_host_ops, this: *mut c_void, error: *mut muster_error) -> muster_status>,
    pub store_opened: Option<unsafe extern "C" fn(host: *const muster_host, request: u64, traits: *const muster_store_traits, error: *mut muster_error) -> muster_status>,
    pub store_done: Option<unsafe extern "C" fn(host: *const muster_host, request: u64, status: muster_status, entries: *const muster_store_entry, entry_count: u64, revision: u64, error: *mut muster_error) -> muster_status>,
    pub store_failed: Option<unsafe extern "C" fn(host: *const muster_host, request: u64, status: muster_status, op: u32, text: *const c_char, text_bytes: u64) -> muster_status>,
}

impl Default for muster_host {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_host {
    pub fn sized() -> Self {
        muster_host { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// Gives one descriptor of this process a number in the child.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_process_fd {
    pub parent_fd: i32,
    pub child_fd: i32,
}

impl Default for muster_process_fd {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// What to start.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_process_config {
    pub struct_size: u32,
    pub flags: u32,
    pub argv: *const *const c_char,
    pub envp: *const *const c_char,
    pub directory: *const c_char,
    pub fds: *const muster_process_fd,
    pub fd_count: u64,
}

impl Default for muster_process_config {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_process_config {
    pub fn sized() -> Self {
        muster_process_config { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// How a process ended.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_process_exit {
    pub kind: i32,
    pub value: i32,
}

impl Default for muster_process_exit {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// One entry taken off a queue; 64 bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_completion {
    pub kind: i32,
    pub status: muster_status,
    pub tag: u64,
    pub object: *mut c_void,
    pub bytes: u64,
    pub request: u64,
    pub events: u32,
    pub reserved: [u32; 5],
}

impl Default for muster_completion {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// How to make a queue; all zero means the defaults named here.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_queue_config {
    pub struct_size: u32,
    pub flags: u32,
    pub capacity: u32,
    pub reserved: u32,
}

impl Default for muster_queue_config {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_queue_config {
    pub fn sized() -> Self {
        muster_queue_config { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// Figures of a queue since its start.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_queue_stats {
    pub depth: u64,
    pub outstanding: u64,
    pub taken: u64,
    pub wakeups: u64,
    pub log_dropped: u64,
    pub reserved: [u64; 3],
}

impl Default for muster_queue_stats {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// How to open a rendezvous; what is zero means the default named here.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_rendezvous_config {
    pub struct_size: u32,
    pub flags: u32,
    pub run_id: *const c_void,
    pub run_id_bytes: u64,
    pub url: *const c_void,
    pub url_bytes: u64,
    pub store: *mut muster_store,
    pub address: *const c_void,
    pub address_bytes: u64,
    pub order_key: *const c_void,
    pub order_key_bytes: u64,
    pub min: u32,
    pub max: u32,
    pub rank: u32,
    pub keep_alive_attempts: u32,
    pub keep_alive_ns: i64,
    pub last_call_ns: i64,
    pub queue: *mut muster_queue,
    pub tag: u64,
    pub reserved: [u64; 4],
}

impl Default for muster_rendezvous_config {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_rendezvous_config {
    pub fn sized() -> Self {
        muster_rendezvous_config { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// One event; 256 bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_rendezvous_event {
    pub kind: u32,
    pub rank: u32,
    pub round: u64,
    pub count: u32,
    pub text_bytes: u32,
    pub text: [c_char; 232],
}

impl Default for muster_rendezvous_event {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// What a member knows; 88 bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_rendezvous_state {
    pub phase: u32,
    pub flags: u32,
    pub round: u64,
    pub joined: u32,
    pub missing: u32,
    pub waiting: u32,
    pub spares: u32,
    pub present: u32,
    pub exiting: u32,
    pub last_call_left_ns: i64,
    pub reserved: [u64; 5],
}

impl Default for muster_rendezvous_state {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// What a round is; 64 bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_round_info {
    pub number: u64,
    pub rank: u32,
    pub world: u32,
    pub flags: u32,
    pub reserved: [u32; 3],
    pub digest: [u8; 32],
}

impl Default for muster_round_info {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// One member of a round; what it points to is good until the round is released.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_round_member_info {
    pub address: *const c_void,
    pub address_bytes: u64,
    pub reserved: u64,
}

impl Default for muster_round_member_info {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// What is asked.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_rendezvous_request {
    pub struct_size: u32,
    pub kind: u32,
    pub member: u64,
    pub config: *const muster_rendezvous_config,
    pub reason: *const c_void,
    pub reason_bytes: u64,
    pub timeout_ns: i64,
}

impl Default for muster_rendezvous_request {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_rendezvous_request {
    pub fn sized() -> Self {
        muster_rendezvous_request { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// A place in a round: the answer to a JOIN.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_rendezvous_place {
    pub struct_size: u32,
    pub rank: u32,
    pub world: u32,
    pub reserved: u32,
    pub number: u64,
    pub store: *mut muster_store,
    pub members: *const muster_round_member_info,
    pub member_count: u64,
    pub digest: [u8; 32],
}

impl Default for muster_rendezvous_place {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_rendezvous_place {
    pub fn sized() -> Self {
        muster_rendezvous_place { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// What serves a rendezvous, as callbacks; run by muster_queue_dispatch() on the thread that calls it, no lock held.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_rendezvous_ops {
    pub struct_size: u32,
    pub flags: u32,
    pub request: Option<unsafe extern "C" fn(this: *mut c_void, request: u64, what: *const muster_rendezvous_request)>,
    pub cancel: Option<unsafe extern "C" fn(this: *mut c_void, request: u64)>,
    pub close: Option<unsafe extern "C" fn(this: *mut c_void, member: u64)>,
    pub destroy: Option<unsafe extern "C" fn(this: *mut c_void)>,
}

impl Default for muster_rendezvous_ops {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_rendezvous_ops {
    pub fn sized() -> Self {
        muster_rendezvous_ops { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// What a host-served transport does, as callbacks; run by muster_queue_dispatch() on the thread that calls it, no lock held.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_transport_ops {
    pub struct_size: u32,
    pub flags: u32,
    pub open: Option<unsafe extern "C" fn(this: *mut c_void, request: u64, address: *const c_char, address_bytes: u64)>,
    pub listen: Option<unsafe extern "C" fn(this: *mut c_void, request: u64, address: *const c_char, address_bytes: u64)>,
    pub close: Option<unsafe extern "C" fn(this: *mut c_void, request: u64)>,
    pub cancel: Option<unsafe extern "C" fn(this: *mut c_void, request: u64)>,
    pub destroy: Option<unsafe extern "C" fn(this: *mut c_void)>,
}

impl Default for muster_transport_ops {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_transport_ops {
    pub fn sized() -> Self {
        muster_transport_ops { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// One operation; 80 bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_store_op {
    pub kind: u32,
    pub condition: u32,
    pub key: *const c_void,
    pub key_bytes: u64,
    pub value: *const c_void,
    pub value_bytes: u64,
    pub expected: *const c_void,
    pub expected_bytes: u64,
    pub version: u64,
    pub number: i64,
    pub lease: u64,
}

impl Default for muster_store_op {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// What one operation has found; 56 bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_store_entry {
    pub op: u32,
    pub flags: u32,
    pub version: u64,
    pub number: i64,
    pub key: *const c_void,
    pub key_bytes: u64,
    pub value: *const c_void,
    pub value_bytes: u64,
}

impl Default for muster_store_entry {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// How to open a store; all zero means the defaults named here.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_store_config {
    pub struct_size: u32,
    pub flags: u32,
    pub most_bytes: u64,
    pub lost_after_ns: i64,
    pub reserved: u64,
}

impl Default for muster_store_config {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_store_config {
    pub fn sized() -> Self {
        muster_store_config { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// What is asked.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_store_request {
    pub struct_size: u32,
    pub kind: u32,
    pub store: u64,
    pub flags: u32,
    pub reserved: u32,
    pub ops: *const muster_store_op,
    pub op_count: u64,
    pub url: *const c_char,
    pub url_bytes: u64,
    pub lease: u64,
    pub ttl_ns: i64,
}

impl Default for muster_store_request {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_store_request {
    pub fn sized() -> Self {
        muster_store_request { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// What a served store is; all zero means the defaults named here.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_store_traits {
    pub struct_size: u32,
    pub flags: u32,
    pub capabilities: u32,
    pub most_ops: u32,
    pub most_request_bytes: u64,
    pub least_lease_ns: i64,
}

impl Default for muster_store_traits {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_store_traits {
    pub fn sized() -> Self {
        muster_store_traits { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// What serves a store, as callbacks; run by muster_queue_dispatch() on the thread that calls it, no lock held.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_store_host_ops {
    pub struct_size: u32,
    pub flags: u32,
    pub request: Option<unsafe extern "C" fn(this: *mut c_void, request: u64, what: *const muster_store_request)>,
    pub cancel: Option<unsafe extern "C" fn(this: *mut c_void, request: u64)>,
    pub close: Option<unsafe extern "C" fn(this: *mut c_void, store: u64)>,
    pub destroy: Option<unsafe extern "C" fn(this: *mut c_void)>,
}

impl Default for muster_store_host_ops {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_store_host_ops {
    pub fn sized() -> Self {
        muster_store_host_ops { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// How to serve a store; all zero means the defaults named here.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_store_server_config {
    pub struct_size: u32,
    pub flags: u32,
    pub data_dir: *const c_char,
    pub data_dir_bytes: u64,
    pub most_bytes: u64,
    pub session_ns: i64,
    pub max_clients: u32,
    pub reserved_field: u32,
    pub standby_of: *const c_char,
    pub standby_of_bytes: u64,
    pub pair_lease_ns: i64,
}

impl Default for muster_store_server_config {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_store_server_config {
    pub fn sized() -> Self {
        muster_store_server_config { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// Figures of a server.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_store_server_stats {
    pub clients: u64,
    pub sessions: u64,
    pub requests: u64,
    pub waiting: u64,
    pub refused: u64,
    pub keys: u64,
    pub bytes: u64,
    pub leases: u64,
    pub revision: u64,
    pub failed: u64,
    pub role: u64,
    pub epoch: u64,
    pub lag: u64,
    pub reserved: [u64; 1],
}

impl Default for muster_store_server_stats {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// How to make a pair; all zero means the defaults named here.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_stream_config {
    pub struct_size: u32,
    pub flags: u32,
    pub window_bytes: u64,
}

impl Default for muster_stream_config {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_stream_config {
    pub fn sized() -> Self {
        muster_stream_config { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// Figures of a stream since its start.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_stream_stats {
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub buffered_in: u64,
    pub buffered_out: u64,
    pub reads: u64,
    pub writes: u64,
    pub waits: u64,
    pub wakeups: u64,
    pub spins_won: u64,
    pub spins_lost: u64,
    pub caller_io: u64,
    pub loop_io: u64,
    pub last_heard_ns: u64,
    pub fan: u64,
    pub reserved: [u64; 2],
}

impl Default for muster_stream_stats {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// How to dial or listen; all zero means the defaults named here.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct muster_transport_config {
    pub struct_size: u32,
    pub flags: u32,
    pub greeting: *const c_void,
    pub greeting_bytes: u64,
    pub window_bytes: u64,
    pub backlog: u32,
    pub reserved: u32,
    pub retry_ns: i64,
}

impl Default for muster_transport_config {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_transport_config {
    pub fn sized() -> Self {
        muster_transport_config { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

extern "C" {
    /// Starts an agent.
    pub fn muster_agent_start(context: *mut muster_context, config: *const muster_agent_config, queue: *mut muster_queue, tag: u64, out_agent: *mut *mut muster_agent, error: *mut muster_error) -> muster_status;
    /// Waits for the end of an agent.
    pub fn muster_agent_wait(agent: *mut muster_agent, timeout_ns: i64, error: *mut muster_error) -> muster_status;
    /// Sends a signal to the process groups of all workers of this node that run.
    pub fn muster_agent_signal(agent: *mut muster_agent, signal: i32) -> muster_status;
    /// Stops the workers of this node and ends the agent.
    pub fn muster_agent_stop(agent: *mut muster_agent, signal: i32, grace_ns: i64) -> muster_status;
    /// Tells what an agent does.
    pub fn muster_agent_get_state(agent: *mut muster_agent, out_state: *mut muster_agent_state) -> muster_status;
    /// Gives the rendezvous of an agent, to ask it for its state and who has joined.
    pub fn muster_agent_rendezvous(agent: *mut muster_agent, out_rendezvous: *mut *mut muster_rendezvous) -> muster_status;
    /// Tells about one worker of this node, as it was started last.
    pub fn muster_agent_get_worker(agent: *mut muster_agent, local_rank: u32, out_worker: *mut muster_agent_worker) -> muster_status;
    /// Tells which worker of this node failed first, the last time that one did.
    pub fn muster_agent_first_failure(agent: *mut muster_agent, out_worker: *mut muster_agent_worker) -> muster_status;
    /// Copies what the error file of muster_agent_first_failure() told: where in its program the worker failed (`py_callstack`), if it says that, else its message.
    pub fn muster_agent_failure_text(agent: *mut muster_agent, out_text: *mut c_char, capacity: usize, out_bytes: *mut usize) -> muster_status;
    /// Waits until the lines that are shown were written: all that workers wrote which had ended before the call.
    pub fn muster_agent_flush(agent: *mut muster_agent, timeout_ns: i64) -> muster_status;
    /// Gives up one reference; with the last one the workers are stopped, as by muster_agent_stop(), without a wait for it.
    pub fn muster_agent_release(agent: *mut muster_agent);
    /// Names a status, for logs: "MUSTER_E_PEER".
    pub fn muster_status_name(status: muster_status) -> *const c_char;
    /// Describes a status in a few words: "the peer died or the way to it broke".
    pub fn muster_status_text(status: muster_status) -> *const c_char;
    /// Tells the version of the loaded library.
    pub fn muster_version(out_major: *mut u32, out_minor: *mut u32, out_patch: *mut u32) -> *const c_char;
    /// Prepares a growing struct: zeroes it and writes its size into the first field.
    pub fn muster_config_init(config: *mut c_void, struct_size: u32) -> muster_status;
    /// Starts a broker on threads of its own; they end with it, and at the latest with the context.
    pub fn muster_broker_open(context: *mut muster_context, address: *const c_char, address_bytes: usize, config: *const muster_broker_config, out_broker: *mut *mut muster_broker, error: *mut muster_error) -> muster_status;
    /// Gives the address members use: the real port, `zmq://127.0.0.1:8100/`.
    pub fn muster_broker_address(broker: *mut muster_broker, out_text: *mut c_char, capacity: usize, out_bytes: *mut usize) -> muster_status;
    /// Reads the figures of a broker; of a closed one those of its end.
    pub fn muster_broker_get_stats(broker: *mut muster_broker, out_stats: *mut muster_broker_stats) -> muster_status;
    /// Stops a broker.
    pub fn muster_broker_close(broker: *mut muster_broker, timeout_ns: i64) -> muster_status;
    /// Gives up one reference; with the last one the broker is stopped, at once and not by this thread.
    pub fn muster_broker_release(broker: *mut muster_broker);
    /// Opens a cluster; the caller is its master.
    pub fn muster_cluster_open(context: *mut muster_context, config: *const muster_cluster_config, out_cluster: *mut *mut muster_cluster, error: *mut muster_error) -> muster_status;
    /// Adds workers; each has events of its own: MUSTER_CLUSTER_LAUNCHED, CONNECTED, JOINED, or FAILED in place of these.
    pub fn muster_cluster_add(cluster: *mut muster_cluster, launch: *const muster_launch, out_first: *mut u32, error: *mut muster_error) -> muster_status;
    /// Removes a worker: it is told to leave (MUSTER_CLUSTER_LEAVE there), and killed if it has not when the grace is over.
    pub fn muster_cluster_remove(cluster: *mut muster_cluster, member: u32, grace_ns: i64) -> muster_status;
    /// Interrupts what a worker is doing: MUSTER_CLUSTER_INTERRUPT there, and with MUSTER_WORKER_RAISE_INTERRUPT the signal SIGINT, sent by its library thread to its own process.
    pub fn muster_cluster_interrupt(cluster: *mut muster_cluster, member: u32) -> muster_status;
    /// Takes the oldest event.
    pub fn muster_cluster_next_event(cluster: *mut muster_cluster, timeout_ns: i64, out_event: *mut muster_cluster_event) -> muster_status;
    /// Ends the waits inside muster_cluster_next_event(), muster_cluster_dial(), muster_cluster_broadcast() and muster_cluster_close() now.
    pub fn muster_cluster_cancel(cluster: *mut muster_cluster) -> muster_status;
    /// Opens a stream to another member; it is told MUSTER_CLUSTER_STREAM.
    pub fn muster_cluster_dial(cluster: *mut muster_cluster, member: u32, label: *const c_void, label_bytes: usize, timeout_ns: i64, out_stream: *mut *mut muster_stream, error: *mut muster_error) -> muster_status;
    /// Begins to open a stream to another member; MUSTER_DONE_DIAL comes with it, or with a status that muster_cluster_dial() gives.
    pub fn muster_cluster_dial_begin(cluster: *mut muster_cluster, member: u32, label: *const c_void, label_bytes: usize, timeout_ns: i64, queue: *mut muster_queue, tag: u64, error: *mut muster_error) -> muster_status;
    /// Gives the same bytes to many members; each is told MUSTER_CLUSTER_BROADCAST.
    pub fn muster_cluster_broadcast(cluster: *mut muster_cluster, members: *const u32, count: usize, label: *const c_void, label_bytes: usize, data: *const c_void, size_bytes: u64, timeout_ns: i64, out_statuses: *mut muster_status, error: *mut muster_error) -> muster_status;
    /// Begins to give the same bytes to many members, as muster_cluster_broadcast(); MUSTER_DONE_BROADCAST comes with its status.
    pub fn muster_cluster_broadcast_begin(cluster: *mut muster_cluster, members: *const u32, count: usize, label: *const c_void, label_bytes: usize, data: *const c_void, size_bytes: u64, timeout_ns: i64, out_statuses: *mut muster_status, queue: *mut muster_queue, tag: u64, error: *mut muster_error) -> muster_status;
    /// Gives up the bytes of a broadcast: they must not be looked at any more.
    pub fn muster_broadcast_release(broadcast: *mut muster_broadcast);
    /// Tells what is known of a member.
    pub fn muster_cluster_get_member(cluster: *mut muster_cluster, member: u32, out_info: *mut muster_member_info) -> muster_status;
    /// Lists the workers that are not gone.
    pub fn muster_cluster_list(cluster: *mut muster_cluster, out_members: *mut u32, capacity: usize, out_count: *mut usize) -> muster_status;
    /// Tells the number of this member.
    pub fn muster_cluster_self(cluster: *mut muster_cluster) -> u32;
    /// Leaves the cluster.
    pub fn muster_cluster_close(cluster: *mut muster_cluster, timeout_ns: i64) -> muster_status;
    /// Gives up one reference; with the last one the cluster is closed, as by muster_cluster_close(), without a wait for it.
    pub fn muster_cluster_release(cluster: *mut muster_cluster);
    /// Makes the context of a worker: reads the ticket that its launcher has passed, whose secret is the context's.
    pub fn muster_worker_context(config: *const muster_context_config, ticket_fd_plus_one: i32, out_context: *mut *mut muster_context, error: *mut muster_error) -> muster_status;
    /// Comes in as a worker: listens, meets the master, and returns when this member knows its number.
    pub fn muster_worker_start(context: *mut muster_context, config: *const muster_worker_config, timeout_ns: i64, out_cluster: *mut *mut muster_cluster, error: *mut muster_error) -> muster_status;
    /// Begins to come in as a worker, for a program that must not wait: one whose only thread serves the transport by which it comes in.
    pub fn muster_worker_start_begin(context: *mut muster_context, config: *const muster_worker_config, timeout_ns: i64, out_cluster: *mut *mut muster_cluster, error: *mut muster_error) -> muster_status;
    /// Starts a context: one progress engine and everything made from it.
    pub fn muster_context_create(config: *const muster_context_config, out_context: *mut *mut muster_context, error: *mut muster_error) -> muster_status;
    /// Ends a context in order: no new work, streams are closed, listeners stop, the thread ends.
    pub fn muster_context_close(context: *mut muster_context, timeout_ns: i64) -> muster_status;
    /// Gives up one reference; the context ends with the last object made from it.
    pub fn muster_context_release(context: *mut muster_context);
    /// Gives the descriptor to poll in external mode.
    pub fn muster_context_fd(context: *mut muster_context, out_fd: *mut i32) -> muster_status;
    /// Drives an external context: serves what is due, then waits for more up to the time given.
    pub fn muster_context_progress(context: *mut muster_context, timeout_ns: i64) -> muster_status;
    /// Copies the secret of the context, to be handed to a worker over a descriptor (never on a command line).
    pub fn muster_context_secret(context: *mut muster_context, out_secret: *mut c_void, capacity: usize, out_bytes: *mut usize) -> muster_status;
    /// Sends log records to a queue as MUSTER_EVENT_LOG; their text comes in the error argument of muster_queue_next().
    pub fn muster_context_log(context: *mut muster_context, level: i32, queue: *mut muster_queue, tag: u64) -> muster_status;
    /// Reads the figures of a context.
    pub fn muster_context_get_stats(context: *mut muster_context, out_stats: *mut muster_context_stats) -> muster_status;
    /// Adds a manager of the host's, in this context only.
    pub fn muster_manager_serve(context: *mut muster_context, name: *const c_char, name_bytes: usize, wants: u32, requests: *mut muster_queue, error: *mut muster_error) -> muster_status;
    /// Adds a manager of the host's whose requests run callbacks, inside muster_queue_dispatch().
    pub fn muster_manager_serve_ops(context: *mut muster_context, name: *const c_char, name_bytes: usize, ops: *const muster_manager_ops, this: *mut c_void, requests: *mut muster_queue, error: *mut muster_error) -> muster_status;
    /// Takes a manager back: launching by its name fails from now on, and unanswered requests are cancelled, as if each had failed with MUSTER_E_CLOSED.
    pub fn muster_manager_withdraw(context: *mut muster_context, name: *const c_char, name_bytes: usize) -> muster_status;
    /// Tells what an unanswered request wants.
    pub fn muster_manager_request_read(requests: *mut muster_queue, request: u64, out_what: *mut muster_manager_request) -> muster_status;
    /// Copies the ticket of a worker that is to be launched: one line of ASCII, its newline included.
    pub fn muster_manager_ticket(requests: *mut muster_queue, request: u64, member: u32, out_text: *mut c_char, capacity: usize, out_bytes: *mut usize) -> muster_status;
    /// Reports one worker of a LAUNCH as started.
    pub fn muster_manager_worker_ready(requests: *mut muster_queue, request: u64, member: u32, address: *const c_char, address_bytes: usize, data: u64, error: *mut muster_error) -> muster_status;
    /// Reports one worker of a LAUNCH as not started.
    pub fn muster_manager_worker_failed(requests: *mut muster_queue, request: u64, member: u32, status: muster_status, text: *const c_char, text_bytes: usize, error: *mut muster_error) -> muster_status;
    /// Tells that a worker has ended, as whoever started it has seen.
    pub fn muster_manager_worker_ended(requests: *mut muster_queue, cluster: *mut muster_cluster, member: u32, text: *const c_char, text_bytes: usize, error: *mut muster_error) -> muster_status;
    /// Answers any request but LAUNCH: it is done.
    pub fn muster_manager_request_done(requests: *mut muster_queue, request: u64, address: *const c_char, address_bytes: usize, error: *mut muster_error) -> muster_status;
    /// Answers any request: it cannot be done.
    pub fn muster_manager_request_fail(requests: *mut muster_queue, request: u64, status: muster_status, text: *const c_char, text_bytes: usize) -> muster_status;
    /// Loads a plug-in from a file and registers its schemes in one context.
    pub fn muster_plugin_load(context: *mut muster_context, path: *const c_char, path_bytes: usize, error: *mut muster_error) -> muster_status;
    /// Makes sure that a scheme can be used, loading the plug-in for it if there is one; as dialling it would.
    pub fn muster_plugin_find(context: *mut muster_context, scheme: *const c_char, scheme_bytes: usize, error: *mut muster_error) -> muster_status;
    /// Starts a program.
    pub fn muster_process_spawn(context: *mut muster_context, config: *const muster_process_config, out_process: *mut *mut muster_process, error: *mut muster_error) -> muster_status;
    /// Tells the process id.
    pub fn muster_process_pid(process: *const muster_process) -> i32;
    /// Waits for the end of a process; in an external context the call drives the engine while it waits.
    pub fn muster_process_wait(process: *mut muster_process, timeout_ns: i64, out_exit: *mut muster_process_exit) -> muster_status;
    /// Asks for MUSTER_DONE_EXIT when the process ends; one watch per process.
    pub fn muster_process_watch(process: *mut muster_process, queue: *mut muster_queue, tag: u64) -> muster_status;
    /// Sends a signal to the process and its whole group.
    pub fn muster_process_kill(process: *mut muster_process, signal: i32) -> muster_status;
    /// Gives up one reference; the child goes on, and is still reaped when it ends.
    pub fn muster_process_release(process: *mut muster_process);
    /// Ends this process when another one is gone (the local master that started it, say): SIGTERM to itself from a library thread, then SIGKILL.
    pub fn muster_process_exit_with(context: *mut muster_context, pid: i32, grace_ns: i64, error: *mut muster_error) -> muster_status;
    /// Makes a completion queue.
    pub fn muster_queue_create(context: *mut muster_context, config: *const muster_queue_config, out_queue: *mut *mut muster_queue, error: *mut muster_error) -> muster_status;
    /// Takes the oldest entry off a queue.
    pub fn muster_queue_next(queue: *mut muster_queue, timeout_ns: i64, out: *mut muster_completion, error: *mut muster_error) -> muster_status;
    /// Takes entries off a queue and runs callbacks for them on this thread: requests go to the table their transport was registered with, everything else to the handler.
    pub fn muster_queue_dispatch(queue: *mut muster_queue, timeout_ns: i64, handler: muster_queue_handler_fn, user: *mut c_void, out_count: *mut u64) -> muster_status;
    /// Ends the wait of every thread that is inside muster_queue_next() or muster_queue_dispatch() now.
    pub fn muster_queue_cancel(queue: *mut muster_queue) -> muster_status;
    /// Puts an entry of the caller's own onto a queue, for instance to wake a waiter with a message.
    pub fn muster_queue_post(queue: *mut muster_queue, tag: u64, value: u64) -> muster_status;
    /// Gives a descriptor that polls readable while the queue may hold something.
    pub fn muster_queue_fd(queue: *mut muster_queue, out_fd: *mut i32) -> muster_status;
    /// Asks for a wake-up when a queue turns from empty to non-empty.
    pub fn muster_queue_set_wake(queue: *mut muster_queue, wake: muster_wake_fn, user: *mut c_void) -> muster_status;
    /// Closes a queue: nothing new is accepted, what is there can still be taken, waiters return.
    pub fn muster_queue_close(queue: *mut muster_queue) -> muster_status;
    /// Gives up one reference.
    pub fn muster_queue_release(queue: *mut muster_queue);
    /// Reads the figures of a queue.
    pub fn muster_queue_get_stats(queue: *mut muster_queue, out_stats: *mut muster_queue_stats) -> muster_status;
    /// Opens a rendezvous.
    pub fn muster_rendezvous_open(context: *mut muster_context, config: *const muster_rendezvous_config, timeout_ns: i64, out_rendezvous: *mut *mut muster_rendezvous, error: *mut muster_error) -> muster_status;
    /// Waits for a round and joins it.
    pub fn muster_rendezvous_join(rendezvous: *mut muster_rendezvous, timeout_ns: i64, out_round: *mut *mut muster_round, error: *mut muster_error) -> muster_status;
    /// Leaves the round, or stops waiting for one.
    pub fn muster_rendezvous_leave(rendezvous: *mut muster_rendezvous, timeout_ns: i64, error: *mut muster_error) -> muster_status;
    /// Waits until all who are still in the round call this too: the exit barrier, so that nobody takes away early what the others still need.
    pub fn muster_rendezvous_exit(rendezvous: *mut muster_rendezvous, timeout_ns: i64, error: *mut muster_error) -> muster_status;
    /// Aborts the round that the member is in: it is over for all, at once, also for those who hang.
    pub fn muster_rendezvous_abort(rendezvous: *mut muster_rendezvous, reason: *const c_void, reason_bytes: usize, timeout_ns: i64, error: *mut muster_error) -> muster_status;
    /// Closes the run: no round begins any more, and who waits for one is told.
    pub fn muster_rendezvous_close(rendezvous: *mut muster_rendezvous, reason: *const c_void, reason_bytes: usize, timeout_ns: i64, error: *mut muster_error) -> muster_status;
    /// Begins one of the calls above; MUSTER_DONE_RENDEZVOUS comes with its status and detail, and with the round of a join.
    pub fn muster_rendezvous_begin(rendezvous: *mut muster_rendezvous, operation: u32, reason: *const c_void, reason_bytes: usize, timeout_ns: i64, queue: *mut muster_queue, tag: u64, error: *mut muster_error) -> muster_status;
    /// Ends everything that is under way with this member with MUSTER_E_CANCELED, begun or waited for, and the waits in muster_rendezvous_next_event().
    pub fn muster_rendezvous_cancel(rendezvous: *mut muster_rendezvous) -> muster_status;
    /// Takes the oldest event.
    pub fn muster_rendezvous_next_event(rendezvous: *mut muster_rendezvous, timeout_ns: i64, out_event: *mut muster_rendezvous_event) -> muster_status;
    /// Tells what the member knows just now; it asks nobody.
    pub fn muster_rendezvous_get_state(rendezvous: *mut muster_rendezvous, out_state: *mut muster_rendezvous_state) -> muster_status;
    /// Lists who seeks the next round: their addresses, each made printable and with a line feed behind it, as many as there is room for and at most 1000, in no order.
    pub fn muster_rendezvous_list(rendezvous: *mut muster_rendezvous, out_text: *mut c_char, capacity: usize, timeout_ns: i64, out_bytes: *mut usize, error: *mut muster_error) -> muster_status;
    /// Gives up one reference.
    pub fn muster_rendezvous_release(rendezvous: *mut muster_rendezvous);
    /// Tells what a round is.
    pub fn muster_round_get_info(round: *const muster_round, out_info: *mut muster_round_info) -> muster_status;
    /// Gives the store view of a round: a prefix of its own, and every request ends with MUSTER_E_STALE once the round is over for this member, those that wait included.
    pub fn muster_round_store(round: *mut muster_round, out_store: *mut *mut muster_store, error: *mut muster_error) -> muster_status;
    /// Looks up a member of a round.
    pub fn muster_round_member(round: *mut muster_round, rank: u32, timeout_ns: i64, out_member: *mut muster_round_member_info, error: *mut muster_error) -> muster_status;
    /// Gives up one reference.
    pub fn muster_round_release(round: *mut muster_round);
    /// Adds a host-served rendezvous for one URL scheme, in this context only.
    pub fn muster_rendezvous_serve(context: *mut muster_context, scheme: *const c_char, scheme_bytes: usize, requests: *mut muster_queue, error: *mut muster_error) -> muster_status;
    /// Adds a host-served rendezvous whose requests run callbacks, inside muster_queue_dispatch().
    pub fn muster_rendezvous_serve_ops(context: *mut muster_context, scheme: *const c_char, scheme_bytes: usize, ops: *const muster_rendezvous_ops, this: *mut c_void, requests: *mut muster_queue, error: *mut muster_error) -> muster_status;
    /// Takes a host-served rendezvous back: opening it fails from now on, what its members have asked and was not answered ends with MUSTER_E_CLOSED, and they are told MUSTER_RENDEZVOUS_LOST.
    pub fn muster_rendezvous_withdraw(context: *mut muster_context, scheme: *const c_char, scheme_bytes: usize) -> muster_status;
    /// Tells what an unanswered request wants.
    pub fn muster_rendezvous_request_read(requests: *mut muster_queue, request: u64, out_what: *mut muster_rendezvous_request) -> muster_status;
    /// Answers a JOIN request: the member is in a round.
    pub fn muster_rendezvous_request_round(requests: *mut muster_queue, request: u64, place: *const muster_rendezvous_place, error: *mut muster_error) -> muster_status;
    /// Answers any request but JOIN: it is done.
    pub fn muster_rendezvous_request_done(requests: *mut muster_queue, request: u64, text: *const c_void, text_bytes: usize, error: *mut muster_error) -> muster_status;
    /// Answers any request: it cannot be done.
    pub fn muster_rendezvous_request_fail(requests: *mut muster_queue, request: u64, status: muster_status, text: *const c_char, text_bytes: usize) -> muster_status;
    /// Tells a member of an event.
    pub fn muster_rendezvous_tell(requests: *mut muster_queue, member: u64, event: *const muster_rendezvous_event, error: *mut muster_error) -> muster_status;
    /// Adds a host-served transport for one URL scheme, in this context only.
    pub fn muster_transport_serve(context: *mut muster_context, scheme: *const c_char, scheme_bytes: usize, requests: *mut muster_queue, error: *mut muster_error) -> muster_status;
    /// Adds a host-served transport whose requests run callbacks, inside muster_queue_dispatch().
    pub fn muster_transport_serve_ops(context: *mut muster_context, scheme: *const c_char, scheme_bytes: usize, ops: *const muster_transport_ops, this: *mut c_void, requests: *mut muster_queue, error: *mut muster_error) -> muster_status;
    /// Takes a host-served transport back: dialling and listening fail from now on, unanswered requests fail with MUSTER_E_CLOSED, listeners close; connections go on until they end.
    pub fn muster_transport_withdraw(context: *mut muster_context, scheme: *const c_char, scheme_bytes: usize) -> muster_status;
    /// Gives the address an OPEN or LISTEN request is about, options of the library's own taken out.
    pub fn muster_request_address(requests: *mut muster_queue, request: u64, out_text: *mut c_char, capacity: usize, out_bytes: *mut usize) -> muster_status;
    /// Answers an OPEN request: the host is connected.
    pub fn muster_request_stream(requests: *mut muster_queue, request: u64, out_pump: *mut *mut muster_stream, error: *mut muster_error) -> muster_status;
    /// Answers a LISTEN request: the host listens.
    pub fn muster_request_listening(requests: *mut muster_queue, request: u64, address: *const c_char, address_bytes: usize, error: *mut muster_error) -> muster_status;
    /// Answers an OPEN or LISTEN request: it cannot be done.
    pub fn muster_request_fail(requests: *mut muster_queue, request: u64, status: muster_status, text: *const c_char, text_bytes: usize) -> muster_status;
    /// Announces a connection that came in on a host-served listener.
    pub fn muster_transport_incoming(requests: *mut muster_queue, listen_request: u64, peer: *const c_char, peer_bytes: usize, out_request: *mut u64, out_pump: *mut *mut muster_stream, error: *mut muster_error) -> muster_status;
    /// Opens a store.
    pub fn muster_store_open(context: *mut muster_context, url: *const c_char, url_bytes: usize, config: *const muster_store_config, timeout_ns: i64, out_store: *mut *mut muster_store, error: *mut muster_error) -> muster_status;
    /// Makes a view: the same store, where every key and queue has a prefix that the view adds and takes away.
    pub fn muster_store_view(store: *mut muster_store, prefix: *const c_void, prefix_bytes: usize, out_view: *mut *mut muster_store, error: *mut muster_error) -> muster_status;
    /// Tells what a store can do.
    pub fn muster_store_capabilities(store: *const muster_store) -> u32;
    /// Does a request and waits for its result.
    pub fn muster_store_do(store: *mut muster_store, ops: *const muster_store_op, op_count: usize, timeout_ns: i64, out_result: *mut *mut muster_store_result, error: *mut muster_error) -> muster_status;
    /// Begins a request; MUSTER_DONE_STORE comes with its result, or without one with the status and detail.
    pub fn muster_store_begin(store: *mut muster_store, ops: *const muster_store_op, op_count: usize, timeout_ns: i64, queue: *mut muster_queue, tag: u64, out_request: *mut u64, error: *mut muster_error) -> muster_status;
    /// Ends a request that waits with MUSTER_E_CANCELED; nothing of it was done.
    pub fn muster_store_cancel(store: *mut muster_store, request: u64) -> muster_status;
    /// Makes a lease: keys that are set with it go when it ends.
    pub fn muster_store_lease(store: *mut muster_store, ttl_ns: i64, flags: u32, timeout_ns: i64, out_lease: *mut *mut muster_lease, error: *mut muster_error) -> muster_status;
    /// Begins to make a lease; MUSTER_DONE_LEASE comes with it, or without one with the status and detail.
    pub fn muster_store_lease_begin(store: *mut muster_store, ttl_ns: i64, flags: u32, timeout_ns: i64, queue: *mut muster_queue, tag: u64, out_request: *mut u64, error: *mut muster_error) -> muster_status;
    /// Tells the number of a lease, for muster_store_oplease.
    pub fn muster_lease_id(lease: *const muster_lease) -> u64;
    /// Keeps a MANUAL lease: from now on it lasts for its time once more.
    pub fn muster_lease_keep(lease: *mut muster_lease) -> muster_status;
    /// Ends a lease at once: its keys go, at one moment.
    pub fn muster_lease_end(lease: *mut muster_lease, timeout_ns: i64, error: *mut muster_error) -> muster_status;
    /// Gives up one reference.
    pub fn muster_lease_release(lease: *mut muster_lease);
    /// Gives up one reference.
    pub fn muster_store_release(store: *mut muster_store);
    /// Tells how many entries a result has: one for each operation, of a LIST one for each key it shows.
    pub fn muster_store_result_count(result: *const muster_store_result) -> u64;
    /// Reads one entry of a result.
    pub fn muster_store_result_entry(result: *const muster_store_result, index: u64, out_entry: *mut muster_store_entry) -> muster_status;
    /// Tells the revision of the store when the request was done.
    pub fn muster_store_result_revision(result: *const muster_store_result) -> u64;
    /// Gives up one reference.
    pub fn muster_store_result_release(result: *mut muster_store_result);
    /// Adds a host-served store for one URL scheme, in this context only.
    pub fn muster_store_serve(context: *mut muster_context, scheme: *const c_char, scheme_bytes: usize, requests: *mut muster_queue, error: *mut muster_error) -> muster_status;
    /// Adds a host-served store whose requests run callbacks, inside muster_queue_dispatch().
    pub fn muster_store_serve_ops(context: *mut muster_context, scheme: *const c_char, scheme_bytes: usize, ops: *const muster_store_host_ops, this: *mut c_void, requests: *mut muster_queue, error: *mut muster_error) -> muster_status;
    /// Takes a host-served store back: opening it fails from now on, and so does what its stores are asked and have not answered, with MUSTER_E_CLOSED.
    pub fn muster_store_withdraw(context: *mut muster_context, scheme: *const c_char, scheme_bytes: usize) -> muster_status;
    /// Tells what an unanswered request wants.
    pub fn muster_store_request_read(requests: *mut muster_queue, request: u64, out_what: *mut muster_store_request) -> muster_status;
    /// Answers an OPEN request: the store is open.
    pub fn muster_store_request_open(requests: *mut muster_queue, request: u64, traits: *const muster_store_traits, error: *mut muster_error) -> muster_status;
    /// Answers a DO, GRANT, KEEP or END request: it is done; or a DO that a condition does not hold.
    pub fn muster_store_request_done(requests: *mut muster_queue, request: u64, status: muster_status, entries: *const muster_store_entry, entry_count: usize, revision: u64, error: *mut muster_error) -> muster_status;
    /// Answers any request: it cannot be done, and nothing of it is.
    pub fn muster_store_request_fail(requests: *mut muster_queue, request: u64, status: muster_status, op: u32, text: *const c_char, text_bytes: usize) -> muster_status;
    /// Starts a server.
    pub fn muster_store_server_open(context: *mut muster_context, url: *const c_char, url_bytes: usize, config: *const muster_store_server_config, out_server: *mut *mut muster_store_server, error: *mut muster_error) -> muster_status;
    /// Gives the URL clients open: with the real port, `tcp://127.0.0.1:29400`.
    pub fn muster_store_server_address(server: *mut muster_store_server, out_text: *mut c_char, capacity: usize, out_bytes: *mut usize) -> muster_status;
    /// Reads the figures of a server; of a closed one those of its end.
    pub fn muster_store_server_get_stats(server: *mut muster_store_server, out_stats: *mut muster_store_server_stats) -> muster_status;
    /// Says that the other server of the pair is dead, and stays so: this one goes on without it.
    pub fn muster_store_server_go_alone(server: *mut muster_store_server) -> muster_status;
    /// Stops a server.
    pub fn muster_store_server_close(server: *mut muster_store_server, timeout_ns: i64) -> muster_status;
    /// Gives up one reference; with the last one the server stops.
    pub fn muster_store_server_release(server: *mut muster_store_server);
    /// Makes two connected ends in this process: what is written to one is read from the other.
    pub fn muster_stream_pair(context: *mut muster_context, config: *const muster_stream_config, out_first: *mut *mut muster_stream, out_second: *mut *mut muster_stream, error: *mut muster_error) -> muster_status;
    /// Writes bytes; returns when all were accepted (copied or sent), not when the peer has read them.
    pub fn muster_stream_write(stream: *mut muster_stream, data: *const c_void, size_bytes: usize, timeout_ns: i64, out_bytes: *mut usize) -> muster_status;
    /// Writes the same bytes to many streams: to each it is one muster_stream_write() of all of them, but the bytes are taken from memory once, piece by piece, and the slowest stream sets the pace of all.
    pub fn muster_stream_write_many(streams: *const *mut muster_stream, count: u32, data: *const c_void, size_bytes: usize, timeout_ns: i64, out_statuses: *mut muster_status, out_bytes: *mut usize) -> muster_status;
    /// Hands a buffer over without copying it; it stays the library's until MUSTER_DONE_RELEASED is taken off the queue, exactly once, with the bytes sent and how it ended: also on failure, abort and cancel.
    pub fn muster_stream_write_owned(stream: *mut muster_stream, data: *const c_void, size_bytes: usize, queue: *mut muster_queue, tag: u64) -> muster_status;
    /// Hands one buffer over to many streams: to each it is one muster_stream_write_owned() of all of it, with a release of its own.
    pub fn muster_stream_write_owned_many(streams: *const *mut muster_stream, count: u32, data: *const c_void, size_bytes: usize, queue: *mut muster_queue, tags: *const u64, out_statuses: *mut muster_status) -> muster_status;
    /// Reserves room inside the outgoing buffer, to be filled in place and handed on by muster_stream_commit().
    pub fn muster_stream_reserve(stream: *mut muster_stream, min_bytes: usize, timeout_ns: i64, out_data: *mut *mut c_void, out_bytes: *mut usize) -> muster_status;
    /// Hands on the first bytes of a reservation.
    pub fn muster_stream_commit(stream: *mut muster_stream, size_bytes: usize) -> muster_status;
    /// Waits until every byte accepted so far has left this process (for shared memory and pairs: can be read by the peer).
    pub fn muster_stream_flush(stream: *mut muster_stream, timeout_ns: i64) -> muster_status;
    /// Reads what is there, at least one byte.
    pub fn muster_stream_read(stream: *mut muster_stream, out_data: *mut c_void, capacity_bytes: usize, timeout_ns: i64, out_bytes: *mut usize) -> muster_status;
    /// Reads exactly so many bytes, straight into the caller's memory without a stage in between.
    pub fn muster_stream_read_into(stream: *mut muster_stream, out_data: *mut c_void, size_bytes: usize, flags: u32, timeout_ns: i64, out_bytes: *mut usize) -> muster_status;
    /// Begins to read exactly so many bytes; the engine fills the caller's memory, and MUSTER_DONE_READ comes with the count and how it ended.
    pub fn muster_stream_read_begin(stream: *mut muster_stream, out_data: *mut c_void, size_bytes: usize, flags: u32, queue: *mut muster_queue, tag: u64) -> muster_status;
    /// Shows bytes where they lie, without taking them.
    pub fn muster_stream_peek(stream: *mut muster_stream, min_bytes: usize, timeout_ns: i64, out_data: *mut *const c_void, out_bytes: *mut usize) -> muster_status;
    /// Takes the first bytes of what muster_stream_peek() showed.
    pub fn muster_stream_consume(stream: *mut muster_stream, size_bytes: usize) -> muster_status;
    /// Finishes writing (half-close): the peer reads everything and then MUSTER_E_END; this side can still read.
    pub fn muster_stream_finish(stream: *mut muster_stream) -> muster_status;
    /// Ends both directions at once and tells the peer why; bytes on their way may be lost, which both sides are told.
    pub fn muster_stream_abort(stream: *mut muster_stream, reason: u64, text: *const c_char, text_bytes: usize) -> muster_status;
    /// Closes in order: finishes writing, waits until everything has left, then ends.
    pub fn muster_stream_close(stream: *mut muster_stream, timeout_ns: i64) -> muster_status;
    /// Gives up one reference; with the last one the stream closes as by muster_stream_close() with no wait.
    pub fn muster_stream_release(stream: *mut muster_stream);
    /// Ends the waits and operations under way in one or both directions with MUSTER_E_CANCELED.
    pub fn muster_stream_cancel(stream: *mut muster_stream, directions: u32) -> muster_status;
    /// Watches a stream: MUSTER_EVENT_READY appears in the queue when it becomes ready for what is wanted.
    pub fn muster_stream_watch(stream: *mut muster_stream, interest: u32, queue: *mut muster_queue, tag: u64) -> muster_status;
    /// Tells why a stream ended.
    pub fn muster_stream_reason(stream: *mut muster_stream, out_reason: *mut u64, error: *mut muster_error) -> muster_status;
    /// Names the peer: the address text that was dialled or that the connection came from.
    pub fn muster_stream_peer(stream: *mut muster_stream, out_text: *mut c_char, capacity: usize, out_bytes: *mut usize) -> muster_status;
    /// Ends this process when the peer of this stream, or the way to it, is gone: SIGTERM to itself from a library thread, then SIGKILL.
    pub fn muster_stream_exit_with_peer(stream: *mut muster_stream, grace_ns: i64) -> muster_status;
    /// Reads the figures of a stream.
    pub fn muster_stream_get_stats(stream: *mut muster_stream, out_stats: *mut muster_stream_stats) -> muster_status;
    /// Connects to an address; returns when both sides have proved the secret.
    pub fn muster_transport_dial(context: *mut muster_context, address: *const c_char, address_bytes: usize, config: *const muster_transport_config, timeout_ns: i64, out_stream: *mut *mut muster_stream, error: *mut muster_error) -> muster_status;
    /// Begins to connect; MUSTER_DONE_DIAL comes with the stream, or without one with the status and detail of its failure.
    pub fn muster_transport_dial_begin(context: *mut muster_context, address: *const c_char, address_bytes: usize, config: *const muster_transport_config, timeout_ns: i64, queue: *mut muster_queue, tag: u64, error: *mut muster_error) -> muster_status;
    /// Listens at an address.
    pub fn muster_transport_listen(context: *mut muster_context, address: *const c_char, address_bytes: usize, config: *const muster_transport_config, out_listener: *mut *mut muster_listener, error: *mut muster_error) -> muster_status;
    /// Takes the next connection that has proved the secret.
    pub fn muster_listener_accept(listener: *mut muster_listener, timeout_ns: i64, out_stream: *mut *mut muster_stream, error: *mut muster_error) -> muster_status;
    /// Watches a listener: MUSTER_EVENT_READY with MUSTER_STREAM_READABLE appears when a connection can be taken, armed when the watch is set and again whenever accept answers MUSTER_AGAIN.
    pub fn muster_listener_watch(listener: *mut muster_listener, queue: *mut muster_queue, tag: u64) -> muster_status;
    /// Gives the address a peer dials to get here: the real port, the advertised host.
    pub fn muster_listener_address(listener: *mut muster_listener, out_text: *mut c_char, capacity: usize, out_bytes: *mut usize) -> muster_status;
    /// Ends the waits inside muster_listener_accept() now.
    pub fn muster_listener_cancel(listener: *mut muster_listener) -> muster_status;
    /// Stops listening; connections nobody took are refused, its socket file is removed.
    pub fn muster_listener_close(listener: *mut muster_listener) -> muster_status;
    /// Gives up one reference; with the last one the listener closes.
    pub fn muster_listener_release(listener: *mut muster_listener);
    /// Gives what the other side sent as its greeting.
    pub fn muster_transport_greeting(stream: *mut muster_stream, out_data: *mut c_void, capacity: usize, out_bytes: *mut usize) -> muster_status;
}

#[cfg(test)]
mod layout {
    use super::*;
    use std::mem::{size_of, MaybeUninit};
    use std::ptr::addr_of;

    macro_rules! at {
        ($struct:ty, $field:ident, $place:expr) => {
            let it = MaybeUninit::<$struct>::uninit();
            let place = unsafe { addr_of!((*it.as_ptr()).$field) as usize } - it.as_ptr() as usize;
            assert_eq!(place, $place, concat!(stringify!($struct), "::", stringify!($field)));
        };
    }

    // As the C compiler has them: tests/abi compares it with the same numbers.
    #[test]
    fn structs_are_those_of_c() {
        assert_eq!(size_of::<muster_agent_outputs>(), 16);
        at!(muster_agent_outputs, local_rank, 0);
        at!(muster_agent_outputs, filed, 4);
        at!(muster_agent_outputs, shown, 8);
        at!(muster_agent_outputs, reserved, 12);
        assert_eq!(size_of::<muster_agent_config>(), 168);
        at!(muster_agent_config, struct_size, 0);
        at!(muster_agent_config, flags, 4);
        at!(muster_agent_config, argv, 8);
        at!(muster_agent_config, envp, 16);
        at!(muster_agent_config, directory, 24);
        at!(muster_agent_config, worker_count, 32);
        at!(muster_agent_config, max_restarts, 36);
        at!(muster_agent_config, grace_ns, 40);
        at!(muster_agent_config, run_id, 48);
        at!(muster_agent_config, role, 56);
        at!(muster_agent_config, log_dir, 64);
        at!(muster_agent_config, filed, 72);
        at!(muster_agent_config, shown, 76);
        at!(muster_agent_config, out_fd_plus_one, 80);
        at!(muster_agent_config, err_fd_plus_one, 84);
        at!(muster_agent_config, local_address, 88);
        at!(muster_agent_config, rendezvous, 96);
        at!(muster_agent_config, master_address, 104);
        at!(muster_agent_config, master_port, 112);
        at!(muster_agent_config, reserved0, 116);
        at!(muster_agent_config, join_timeout_ns, 120);
        at!(muster_agent_config, exit_timeout_ns, 128);
        at!(muster_agent_config, outputs, 136);
        at!(muster_agent_config, output_count, 144);
        at!(muster_agent_config, reserved, 152);
        assert_eq!(size_of::<muster_agent_state>(), 328);
        at!(muster_agent_state, phase, 0);
        at!(muster_agent_state, worker_count, 4);
        at!(muster_agent_state, running, 8);
        at!(muster_agent_state, restarts, 12);
        at!(muster_agent_state, group_rank, 16);
        at!(muster_agent_state, group_world_size, 20);
        at!(muster_agent_state, first_rank, 24);
        at!(muster_agent_state, world_size, 28);
        at!(muster_agent_state, round, 32);
        at!(muster_agent_state, master_address, 40);
        at!(muster_agent_state, master_port, 296);
        at!(muster_agent_state, reserved, 300);
        assert_eq!(size_of::<muster_agent_worker>(), 832);
        at!(muster_agent_worker, local_rank, 0);
        at!(muster_agent_worker, rank, 4);
        at!(muster_agent_worker, state, 8);
        at!(muster_agent_worker, restarts, 12);
        at!(muster_agent_worker, pid, 16);
        at!(muster_agent_worker, exit, 20);
        at!(muster_agent_worker, reserved0, 28);
        at!(muster_agent_worker, started_unix_ns, 32);
        at!(muster_agent_worker, ended_unix_ns, 40);
        at!(muster_agent_worker, failed_unix_ns, 48);
        at!(muster_agent_worker, round, 56);
        at!(muster_agent_worker, message, 64);
        at!(muster_agent_worker, directory, 576);
        assert_eq!(size_of::<muster_error>(), 256);
        at!(muster_error, status, 0);
        at!(muster_error, os_errno, 4);
        at!(muster_error, provider_code, 8);
        at!(muster_error, rank, 16);
        at!(muster_error, message_bytes, 20);
        at!(muster_error, message, 24);
        assert_eq!(size_of::<muster_broker_config>(), 56);
        at!(muster_broker_config, struct_size, 0);
        at!(muster_broker_config, flags, 4);
        at!(muster_broker_config, parent, 8);
        at!(muster_broker_config, parent_bytes, 16);
        at!(muster_broker_config, window_bytes, 24);
        at!(muster_broker_config, max_members, 32);
        at!(muster_broker_config, reserved, 36);
        at!(muster_broker_config, curve_file, 40);
        at!(muster_broker_config, curve_file_bytes, 48);
        assert_eq!(size_of::<muster_broker_stats>(), 128);
        at!(muster_broker_stats, members, 0);
        at!(muster_broker_stats, brokers, 8);
        at!(muster_broker_stats, has_parent, 16);
        at!(muster_broker_stats, names, 24);
        at!(muster_broker_stats, pairs, 32);
        at!(muster_broker_stats, messages, 40);
        at!(muster_broker_stats, bytes, 48);
        at!(muster_broker_stats, queued_bytes, 56);
        at!(muster_broker_stats, connections, 64);
        at!(muster_broker_stats, refused, 72);
        at!(muster_broker_stats, lost, 80);
        at!(muster_broker_stats, to_many, 88);
        at!(muster_broker_stats, reserved, 96);
        assert_eq!(size_of::<muster_cluster_config>(), 96);
        at!(muster_cluster_config, struct_size, 0);
        at!(muster_cluster_config, flags, 4);
        at!(muster_cluster_config, topology, 8);
        at!(muster_cluster_config, most_connections, 12);
        at!(muster_cluster_config, listen, 16);
        at!(muster_cluster_config, listen_bytes, 24);
        at!(muster_cluster_config, join_timeout_ns, 32);
        at!(muster_cluster_config, leave_timeout_ns, 40);
        at!(muster_cluster_config, queue, 48);
        at!(muster_cluster_config, tag, 56);
        at!(muster_cluster_config, broadcast_bytes, 64);
        at!(muster_cluster_config, reserved1, 72);
        assert_eq!(size_of::<muster_launch>(), 112);
        at!(muster_launch, struct_size, 0);
        at!(muster_launch, flags, 4);
        at!(muster_launch, manager, 8);
        at!(muster_launch, count, 16);
        at!(muster_launch, reserved, 20);
        at!(muster_launch, argv, 24);
        at!(muster_launch, envp, 32);
        at!(muster_launch, directory, 40);
        at!(muster_launch, listen, 48);
        at!(muster_launch, ident, 56);
        at!(muster_launch, connect_idents, 64);
        at!(muster_launch, options, 72);
        at!(muster_launch, reserved1, 80);
        assert_eq!(size_of::<muster_cluster_event>(), 544);
        at!(muster_cluster_event, kind, 0);
        at!(muster_cluster_event, member, 4);
        at!(muster_cluster_event, status, 8);
        at!(muster_cluster_event, label_bytes, 12);
        at!(muster_cluster_event, stream, 16);
        at!(muster_cluster_event, text_bytes, 24);
        at!(muster_cluster_event, reserved, 28);
        at!(muster_cluster_event, label, 32);
        at!(muster_cluster_event, text, 288);
        at!(muster_cluster_event, broadcast, 520);
        at!(muster_cluster_event, data, 528);
        at!(muster_cluster_event, size_bytes, 536);
        assert_eq!(size_of::<muster_member_info>(), 1336);
        at!(muster_member_info, member, 0);
        at!(muster_member_info, state, 4);
        at!(muster_member_info, pid, 8);
        at!(muster_member_info, data, 16);
        at!(muster_member_info, host, 24);
        at!(muster_member_info, address, 280);
        at!(muster_member_info, reserved, 1304);
        assert_eq!(size_of::<muster_worker_config>(), 80);
        at!(muster_worker_config, struct_size, 0);
        at!(muster_worker_config, flags, 4);
        at!(muster_worker_config, exit_grace_ns, 8);
        at!(muster_worker_config, report_fd_plus_one, 16);
        at!(muster_worker_config, most_connections, 20);
        at!(muster_worker_config, queue, 24);
        at!(muster_worker_config, tag, 32);
        at!(muster_worker_config, master, 40);
        at!(muster_worker_config, store, 48);
        at!(muster_worker_config, name, 56);
        at!(muster_worker_config, listen, 64);
        at!(muster_worker_config, broadcast_bytes, 72);
        assert_eq!(size_of::<muster_context_config>(), 72);
        at!(muster_context_config, struct_size, 0);
        at!(muster_context_config, flags, 4);
        at!(muster_context_config, secret, 8);
        at!(muster_context_config, secret_bytes, 16);
        at!(muster_context_config, secret_fd_plus_one, 24);
        at!(muster_context_config, max_unauthenticated, 28);
        at!(muster_context_config, handshake_timeout_ns, 32);
        at!(muster_context_config, heartbeat_ns, 40);
        at!(muster_context_config, silent_ns, 48);
        at!(muster_context_config, dead_ns, 56);
        at!(muster_context_config, window_bytes, 64);
        assert_eq!(size_of::<muster_context_stats>(), 128);
        at!(muster_context_stats, loop_wakeups, 0);
        at!(muster_context_stats, mailbox_posts, 8);
        at!(muster_context_stats, streams_open, 16);
        at!(muster_context_stats, streams_made, 24);
        at!(muster_context_stats, handshakes_ok, 32);
        at!(muster_context_stats, handshakes_failed, 40);
        at!(muster_context_stats, bytes_in, 48);
        at!(muster_context_stats, bytes_out, 56);
        at!(muster_context_stats, upgrades, 64);
        at!(muster_context_stats, reserved, 72);
        assert_eq!(size_of::<muster_manager_request>(), 48);
        at!(muster_manager_request, struct_size, 0);
        at!(muster_manager_request, want, 4);
        at!(muster_manager_request, member, 8);
        at!(muster_manager_request, count, 12);
        at!(muster_manager_request, from, 16);
        at!(muster_manager_request, reserved, 20);
        at!(muster_manager_request, data, 24);
        at!(muster_manager_request, launch, 32);
        at!(muster_manager_request, address, 40);
        assert_eq!(size_of::<muster_manager_ops>(), 64);
        at!(muster_manager_ops, struct_size, 0);
        at!(muster_manager_ops, flags, 4);
        at!(muster_manager_ops, launch, 8);
        at!(muster_manager_ops, connect, 16);
        at!(muster_manager_ops, connect_worker, 24);
        at!(muster_manager_ops, manage, 32);
        at!(muster_manager_ops, kill, 40);
        at!(muster_manager_ops, cancel, 48);
        at!(muster_manager_ops, destroy, 56);
        assert_eq!(size_of::<muster_span>(), 16);
        at!(muster_span, data, 0);
        at!(muster_span, size_bytes, 8);
        assert_eq!(size_of::<muster_segment>(), 32);
        at!(muster_segment, struct_size, 0);
        at!(muster_segment, side, 4);
        at!(muster_segment, data, 8);
        at!(muster_segment, size_bytes, 16);
        at!(muster_segment, own_event, 24);
        at!(muster_segment, peer_event, 28);
        assert_eq!(size_of::<muster_loan>(), 32);
        at!(muster_loan, size_bytes, 0);
        at!(muster_loan, release, 8);
        at!(muster_loan, memory, 16);
        at!(muster_loan, hint, 24);
        assert_eq!(size_of::<muster_connections_ops>(), 104);
        at!(muster_connections_ops, struct_size, 0);
        at!(muster_connections_ops, flags, 4);
        at!(muster_connections_ops, start, 8);
        at!(muster_connections_ops, stop, 16);
        at!(muster_connections_ops, dial, 24);
        at!(muster_connections_ops, listen, 32);
        at!(muster_connections_ops, unlisten, 40);
        at!(muster_connections_ops, send, 48);
        at!(muster_connections_ops, resume, 56);
        at!(muster_connections_ops, finish, 64);
        at!(muster_connections_ops, proved, 72);
        at!(muster_connections_ops, paired, 80);
        at!(muster_connections_ops, close, 88);
        at!(muster_connections_ops, abort, 96);
        assert_eq!(size_of::<muster_broker_ops>(), 32);
        at!(muster_broker_ops, struct_size, 0);
        at!(muster_broker_ops, reserved, 4);
        at!(muster_broker_ops, open, 8);
        at!(muster_broker_ops, stats, 16);
        at!(muster_broker_ops, close, 24);
        assert_eq!(size_of::<muster_fabric_ops>(), 136);
        at!(muster_fabric_ops, struct_size, 0);
        at!(muster_fabric_ops, flags, 4);
        at!(muster_fabric_ops, message_bytes, 8);
        at!(muster_fabric_ops, credit_bytes, 16);
        at!(muster_fabric_ops, start, 24);
        at!(muster_fabric_ops, stop, 32);
        at!(muster_fabric_ops, publish, 40);
        at!(muster_fabric_ops, withdraw, 48);
        at!(muster_fabric_ops, resolve, 56);
        at!(muster_fabric_ops, send, 64);
        at!(muster_fabric_ops, proved, 72);
        at!(muster_fabric_ops, paired, 80);
        at!(muster_fabric_ops, forget, 88);
        at!(muster_fabric_ops, headroom_bytes, 96);
        at!(muster_fabric_ops, send_segment, 104);
        at!(muster_fabric_ops, broker, 112);
        at!(muster_fabric_ops, send_many, 120);
        at!(muster_fabric_ops, poll, 128);
        assert_eq!(size_of::<muster_host>(), 272);
        at!(muster_host, struct_size, 0);
        at!(muster_host, flags, 4);
        at!(muster_host, library, 8);
        at!(muster_host, log, 16);
        at!(muster_host, derive, 24);
        at!(muster_host, add_connections, 32);
        at!(muster_host, add_fabric, 40);
        at!(muster_host, watch_fd, 48);
        at!(muster_host, change_fd, 56);
        at!(muster_host, unwatch_fd, 64);
        at!(muster_host, start_timer, 72);
        at!(muster_host, stop_timer, 80);
        at!(muster_host, post, 88);
        at!(muster_host, take_segment, 96);
        at!(muster_host, give_segment, 104);
        at!(muster_host, accepted, 112);
        at!(muster_host, connected, 120);
        at!(muster_host, deliver, 128);
        at!(muster_host, writable, 136);
        at!(muster_host, lost, 144);
        at!(muster_host, resolved, 152);
        at!(muster_host, message, 160);
        at!(muster_host, credit, 168);
        at!(muster_host, ready, 176);
        at!(muster_host, peer_lost, 184);
        at!(muster_host, pair, 192);
        at!(muster_host, pair_peer, 200);
        at!(muster_host, published, 208);
        at!(muster_host, peer_flags, 216);
        at!(muster_host, message_lent, 224);
        at!(muster_host, message_to_many, 232);
        at!(muster_host, add_store, 240);
        at!(muster_host, store_opened, 248);
        at!(muster_host, store_done, 256);
        at!(muster_host, store_failed, 264);
        assert_eq!(size_of::<muster_process_fd>(), 8);
        at!(muster_process_fd, parent_fd, 0);
        at!(muster_process_fd, child_fd, 4);
        assert_eq!(size_of::<muster_process_config>(), 48);
        at!(muster_process_config, struct_size, 0);
        at!(muster_process_config, flags, 4);
        at!(muster_process_config, argv, 8);
        at!(muster_process_config, envp, 16);
        at!(muster_process_config, directory, 24);
        at!(muster_process_config, fds, 32);
        at!(muster_process_config, fd_count, 40);
        assert_eq!(size_of::<muster_process_exit>(), 8);
        at!(muster_process_exit, kind, 0);
        at!(muster_process_exit, value, 4);
        assert_eq!(size_of::<muster_completion>(), 64);
        at!(muster_completion, kind, 0);
        at!(muster_completion, status, 4);
        at!(muster_completion, tag, 8);
        at!(muster_completion, object, 16);
        at!(muster_completion, bytes, 24);
        at!(muster_completion, request, 32);
        at!(muster_completion, events, 40);
        at!(muster_completion, reserved, 44);
        assert_eq!(size_of::<muster_queue_config>(), 16);
        at!(muster_queue_config, struct_size, 0);
        at!(muster_queue_config, flags, 4);
        at!(muster_queue_config, capacity, 8);
        at!(muster_queue_config, reserved, 12);
        assert_eq!(size_of::<muster_queue_stats>(), 64);
        at!(muster_queue_stats, depth, 0);
        at!(muster_queue_stats, outstanding, 8);
        at!(muster_queue_stats, taken, 16);
        at!(muster_queue_stats, wakeups, 24);
        at!(muster_queue_stats, log_dropped, 32);
        at!(muster_queue_stats, reserved, 40);
        assert_eq!(size_of::<muster_rendezvous_config>(), 160);
        at!(muster_rendezvous_config, struct_size, 0);
        at!(muster_rendezvous_config, flags, 4);
        at!(muster_rendezvous_config, run_id, 8);
        at!(muster_rendezvous_config, run_id_bytes, 16);
        at!(muster_rendezvous_config, url, 24);
        at!(muster_rendezvous_config, url_bytes, 32);
        at!(muster_rendezvous_config, store, 40);
        at!(muster_rendezvous_config, address, 48);
        at!(muster_rendezvous_config, address_bytes, 56);
        at!(muster_rendezvous_config, order_key, 64);
        at!(muster_rendezvous_config, order_key_bytes, 72);
        at!(muster_rendezvous_config, min, 80);
        at!(muster_rendezvous_config, max, 84);
        at!(muster_rendezvous_config, rank, 88);
        at!(muster_rendezvous_config, keep_alive_attempts, 92);
        at!(muster_rendezvous_config, keep_alive_ns, 96);
        at!(muster_rendezvous_config, last_call_ns, 104);
        at!(muster_rendezvous_config, queue, 112);
        at!(muster_rendezvous_config, tag, 120);
        at!(muster_rendezvous_config, reserved, 128);
        assert_eq!(size_of::<muster_rendezvous_event>(), 256);
        at!(muster_rendezvous_event, kind, 0);
        at!(muster_rendezvous_event, rank, 4);
        at!(muster_rendezvous_event, round, 8);
        at!(muster_rendezvous_event, count, 16);
        at!(muster_rendezvous_event, text_bytes, 20);
        at!(muster_rendezvous_event, text, 24);
        assert_eq!(size_of::<muster_rendezvous_state>(), 88);
        at!(muster_rendezvous_state, phase, 0);
        at!(muster_rendezvous_state, flags, 4);
        at!(muster_rendezvous_state, round, 8);
        at!(muster_rendezvous_state, joined, 16);
        at!(muster_rendezvous_state, missing, 20);
        at!(muster_rendezvous_state, waiting, 24);
        at!(muster_rendezvous_state, spares, 28);
        at!(muster_rendezvous_state, present, 32);
        at!(muster_rendezvous_state, exiting, 36);
        at!(muster_rendezvous_state, last_call_left_ns, 40);
        at!(muster_rendezvous_state, reserved, 48);
        assert_eq!(size_of::<muster_round_info>(), 64);
        at!(muster_round_info, number, 0);
        at!(muster_round_info, rank, 8);
        at!(muster_round_info, world, 12);
        at!(muster_round_info, flags, 16);
        at!(muster_round_info, reserved, 20);
        at!(muster_round_info, digest, 32);
        assert_eq!(size_of::<muster_round_member_info>(), 24);
        at!(muster_round_member_info, address, 0);
        at!(muster_round_member_info, address_bytes, 8);
        at!(muster_round_member_info, reserved, 16);
        assert_eq!(size_of::<muster_rendezvous_request>(), 48);
        at!(muster_rendezvous_request, struct_size, 0);
        at!(muster_rendezvous_request, kind, 4);
        at!(muster_rendezvous_request, member, 8);
        at!(muster_rendezvous_request, config, 16);
        at!(muster_rendezvous_request, reason, 24);
        at!(muster_rendezvous_request, reason_bytes, 32);
        at!(muster_rendezvous_request, timeout_ns, 40);
        assert_eq!(size_of::<muster_rendezvous_place>(), 80);
        at!(muster_rendezvous_place, struct_size, 0);
        at!(muster_rendezvous_place, rank, 4);
        at!(muster_rendezvous_place, world, 8);
        at!(muster_rendezvous_place, reserved, 12);
        at!(muster_rendezvous_place, number, 16);
        at!(muster_rendezvous_place, store, 24);
        at!(muster_rendezvous_place, members, 32);
        at!(muster_rendezvous_place, member_count, 40);
        at!(muster_rendezvous_place, digest, 48);
        assert_eq!(size_of::<muster_rendezvous_ops>(), 40);
        at!(muster_rendezvous_ops, struct_size, 0);
        at!(muster_rendezvous_ops, flags, 4);
        at!(muster_rendezvous_ops, request, 8);
        at!(muster_rendezvous_ops, cancel, 16);
        at!(muster_rendezvous_ops, close, 24);
        at!(muster_rendezvous_ops, destroy, 32);
        assert_eq!(size_of::<muster_transport_ops>(), 48);
        at!(muster_transport_ops, struct_size, 0);
        at!(muster_transport_ops, flags, 4);
        at!(muster_transport_ops, open, 8);
        at!(muster_transport_ops, listen, 16);
        at!(muster_transport_ops, close, 24);
        at!(muster_transport_ops, cancel, 32);
        at!(muster_transport_ops, destroy, 40);
        assert_eq!(size_of::<muster_store_op>(), 80);
        at!(muster_store_op, kind, 0);
        at!(muster_store_op, condition, 4);
        at!(muster_store_op, key, 8);
        at!(muster_store_op, key_bytes, 16);
        at!(muster_store_op, value, 24);
        at!(muster_store_op, value_bytes, 32);
        at!(muster_store_op, expected, 40);
        at!(muster_store_op, expected_bytes, 48);
        at!(muster_store_op, version, 56);
        at!(muster_store_op, number, 64);
        at!(muster_store_op, lease, 72);
        assert_eq!(size_of::<muster_store_entry>(), 56);
        at!(muster_store_entry, op, 0);
        at!(muster_store_entry, flags, 4);
        at!(muster_store_entry, version, 8);
        at!(muster_store_entry, number, 16);
        at!(muster_store_entry, key, 24);
        at!(muster_store_entry, key_bytes, 32);
        at!(muster_store_entry, value, 40);
        at!(muster_store_entry, value_bytes, 48);
        assert_eq!(size_of::<muster_store_config>(), 32);
        at!(muster_store_config, struct_size, 0);
        at!(muster_store_config, flags, 4);
        at!(muster_store_config, most_bytes, 8);
        at!(muster_store_config, lost_after_ns, 16);
        at!(muster_store_config, reserved, 24);
        assert_eq!(size_of::<muster_store_request>(), 72);
        at!(muster_store_request, struct_size, 0);
        at!(muster_store_request, kind, 4);
        at!(muster_store_request, store, 8);
        at!(muster_store_request, flags, 16);
        at!(muster_store_request, reserved, 20);
        at!(muster_store_request, ops, 24);
        at!(muster_store_request, op_count, 32);
        at!(muster_store_request, url, 40);
        at!(muster_store_request, url_bytes, 48);
        at!(muster_store_request, lease, 56);
        at!(muster_store_request, ttl_ns, 64);
        assert_eq!(size_of::<muster_store_traits>(), 32);
        at!(muster_store_traits, struct_size, 0);
        at!(muster_store_traits, flags, 4);
        at!(muster_store_traits, capabilities, 8);
        at!(muster_store_traits, most_ops, 12);
        at!(muster_store_traits, most_request_bytes, 16);
        at!(muster_store_traits, least_lease_ns, 24);
        assert_eq!(size_of::<muster_store_host_ops>(), 40);
        at!(muster_store_host_ops, struct_size, 0);
        at!(muster_store_host_ops, flags, 4);
        at!(muster_store_host_ops, request, 8);
        at!(muster_store_host_ops, cancel, 16);
        at!(muster_store_host_ops, close, 24);
        at!(muster_store_host_ops, destroy, 32);
        assert_eq!(size_of::<muster_store_server_config>(), 72);
        at!(muster_store_server_config, struct_size, 0);
        at!(muster_store_server_config, flags, 4);
        at!(muster_store_server_config, data_dir, 8);
        at!(muster_store_server_config, data_dir_bytes, 16);
        at!(muster_store_server_config, most_bytes, 24);
        at!(muster_store_server_config, session_ns, 32);
        at!(muster_store_server_config, max_clients, 40);
        at!(muster_store_server_config, reserved_field, 44);
        at!(muster_store_server_config, standby_of, 48);
        at!(muster_store_server_config, standby_of_bytes, 56);
        at!(muster_store_server_config, pair_lease_ns, 64);
        assert_eq!(size_of::<muster_store_server_stats>(), 112);
        at!(muster_store_server_stats, clients, 0);
        at!(muster_store_server_stats, sessions, 8);
        at!(muster_store_server_stats, requests, 16);
        at!(muster_store_server_stats, waiting, 24);
        at!(muster_store_server_stats, refused, 32);
        at!(muster_store_server_stats, keys, 40);
        at!(muster_store_server_stats, bytes, 48);
        at!(muster_store_server_stats, leases, 56);
        at!(muster_store_server_stats, revision, 64);
        at!(muster_store_server_stats, failed, 72);
        at!(muster_store_server_stats, role, 80);
        at!(muster_store_server_stats, epoch, 88);
        at!(muster_store_server_stats, lag, 96);
        at!(muster_store_server_stats, reserved, 104);
        assert_eq!(size_of::<muster_stream_config>(), 16);
        at!(muster_stream_config, struct_size, 0);
        at!(muster_stream_config, flags, 4);
        at!(muster_stream_config, window_bytes, 8);
        assert_eq!(size_of::<muster_stream_stats>(), 128);
        at!(muster_stream_stats, bytes_in, 0);
        at!(muster_stream_stats, bytes_out, 8);
        at!(muster_stream_stats, buffered_in, 16);
        at!(muster_stream_stats, buffered_out, 24);
        at!(muster_stream_stats, reads, 32);
        at!(muster_stream_stats, writes, 40);
        at!(muster_stream_stats, waits, 48);
        at!(muster_stream_stats, wakeups, 56);
        at!(muster_stream_stats, spins_won, 64);
        at!(muster_stream_stats, spins_lost, 72);
        at!(muster_stream_stats, caller_io, 80);
        at!(muster_stream_stats, loop_io, 88);
        at!(muster_stream_stats, last_heard_ns, 96);
        at!(muster_stream_stats, fan, 104);
        at!(muster_stream_stats, reserved, 112);
        assert_eq!(size_of::<muster_transport_config>(), 48);
        at!(muster_transport_config, struct_size, 0);
        at!(muster_transport_config, flags, 4);
        at!(muster_transport_config, greeting, 8);
        at!(muster_transport_config, greeting_bytes, 16);
        at!(muster_transport_config, window_bytes, 24);
        at!(muster_transport_config, backlog, 32);
        at!(muster_transport_config, reserved, 36);
        at!(muster_transport_config, retry_ns, 40);
    }
}
