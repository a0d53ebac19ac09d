// SPDX-License-Identifier: MIT
// Written by bindings/rust/generate from include/muster/context.h; do not edit.
//! What `include/muster/context.h` declares.
#![allow(unused_imports)]
#![cfg_attr(rustfmt, rustfmt_skip)]

use super::*;
use std::os::raw::{c_char, c_int, c_void};

/// Opaque; made by muster_context_create().
#[repr(C)]
pub struct muster_context {
    _private: [u8; 0],
}

/// Opaque; made by muster_queue_create(), see queue.h.
#[repr(C)]
pub struct muster_queue {
    _private: [u8; 0],
}

// muster_context_flag: Flags of muster_context_config.flags.
pub const MUSTER_CONTEXT_EXTERNAL: u32 = 1;
pub const MUSTER_CONTEXT_NO_SEAL: u32 = 2;
pub const MUSTER_CONTEXT_SEAL_ALWAYS: u32 = 4;
pub const MUSTER_CONTEXT_NO_UPGRADE: u32 = 8;

// muster_log_level: Minimum severity of a log record.
pub const MUSTER_LOG_OFF: u32 = 0;
pub const MUSTER_LOG_ERROR: u32 = 1;
pub const MUSTER_LOG_WARN: u32 = 2;
pub const MUSTER_LOG_INFO: u32 = 3;
pub const MUSTER_LOG_DEBUG: u32 = 4;

/// How to start a context; all zero means the defaults named here.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
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

/// Counters of a context since its start.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
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

extern "C" {
    /// Starts a context: one progress engine and everything that is made from it.
    pub fn muster_context_create(config: *const muster_context_config, out_context: *mut *mut muster_context, error: *mut muster_error) -> muster_status;
    /// Returns the context of this process, for programs that need only one: it is made at the first call, with all defaults, so its secret is in the environment (muster_context_config.secret).
    pub fn muster_context_default(out_context: *mut *mut muster_context, error: *mut muster_error) -> muster_status;
    /// Ends a context in order: no new work, streams are closed, listeners stop, the thread ends.
    pub fn muster_context_close(context: *mut muster_context, timeout_ns: i64) -> muster_status;
    /// Ends the waits of every thread that is inside one of these calls of this context now: muster_transport_dial(), muster_store_open(), muster_rendezvous_open(), muster_rendezvous_list(), muster_round_member(), muster_worker_start(), muster_process_wait(), muster_agent_wait(), muster_agent_flush(), muster_lease_end() and muster_store_server_close().
    pub fn muster_context_cancel(context: *mut muster_context) -> muster_status;
    /// Releases one reference; the context ends with the last object that was made from it.
    pub fn muster_context_release(context: *mut muster_context);
    /// Returns the descriptor to poll in external mode.
    pub fn muster_context_fd(context: *mut muster_context, out_fd: *mut i32) -> muster_status;
    /// Drives an external context: serves pending events, then waits for more up to the timeout.
    pub fn muster_context_progress(context: *mut muster_context, timeout_ns: i64) -> muster_status;
    /// Copies the secret of the context, to be passed to a worker over a descriptor (never on a command line).
    pub fn muster_context_secret(context: *mut muster_context, out_secret: *mut c_void, capacity: usize, out_bytes: *mut usize) -> muster_status;
    /// Sends log records to a queue as MUSTER_EVENT_LOG; their text is in the error argument of muster_queue_next().
    pub fn muster_context_log(context: *mut muster_context, level: i32, queue: *mut muster_queue, tag: u64) -> muster_status;
    /// Reads the counters of a context.
    pub fn muster_context_get_stats(context: *mut muster_context, out_stats: *mut muster_context_stats) -> muster_status;
}

#[cfg(test)]
mod layout {
    use super::*;
    use std::mem::size_of;

    // As the C compiler has them: tests/abi compares it with the same numbers.
    #[test]
    fn structs_are_those_of_c() {
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
    }
}
