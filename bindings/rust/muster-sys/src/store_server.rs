// SPDX-License-Identifier: MIT
// Written by bindings/rust/generate from include/muster/store_server.h; do not edit.
//! What `include/muster/store_server.h` declares.
#![allow(unused_imports)]
#![cfg_attr(rustfmt, rustfmt_skip)]

use super::*;
use std::os::raw::{c_char, c_int, c_void};

/// Opaque; made by muster_store_server_open().
#[repr(C)]
pub struct muster_store_server {
    _private: [u8; 0],
}

// muster_store_server_flag: Flags of muster_store_server_config.flags.
pub const MUSTER_STORE_SERVER_NO_SYNC: u32 = 1;
pub const MUSTER_STORE_SERVER_FORCE_STANDALONE: u32 = 2;
pub const MUSTER_STORE_SERVER_REFUSED_IS_DEAD: u32 = 4;

// muster_store_server_role: The role of a server; the value of muster_store_server_stats.role.
pub const MUSTER_STORE_SERVER_STANDALONE: u32 = 0;
pub const MUSTER_STORE_SERVER_PRIMARY: u32 = 1;
pub const MUSTER_STORE_SERVER_HALTED: u32 = 2;
pub const MUSTER_STORE_SERVER_STANDBY: u32 = 3;
pub const MUSTER_STORE_SERVER_CATCHING_UP: u32 = 4;
pub const MUSTER_STORE_SERVER_WAITING: u32 = 5;

/// How to serve a store; all zero means the defaults named here.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_store_server_config {
    pub struct_size: u32,
    pub flags: u32,
    pub data_dir: *const c_char,
    pub data_dir_bytes: u64,
    pub max_bytes: u64,
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

/// Counters and state of a server.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
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

extern "C" {
    /// Starts a server.
    pub fn muster_store_server_open(context: *mut muster_context, url: *const c_char, url_bytes: usize, config: *const muster_store_server_config, out_server: *mut *mut muster_store_server, error: *mut muster_error) -> muster_status;
    /// Copies the URL that clients open, with the actual port: `tcp://127.0.0.1:29400`.
    pub fn muster_store_server_address(server: *mut muster_store_server, out_text: *mut c_char, capacity: usize, out_bytes: *mut usize) -> muster_status;
    /// Reads the counters and the state of a server; those of a closed server are the last ones.
    pub fn muster_store_server_get_stats(server: *mut muster_store_server, out_stats: *mut muster_store_server_stats) -> muster_status;
    /// Declares that the other server of the pair is dead and stays so: this server continues without it.
    pub fn muster_store_server_force_standalone(server: *mut muster_store_server) -> muster_status;
    /// Stops a server.
    pub fn muster_store_server_close(server: *mut muster_store_server, timeout_ns: i64) -> muster_status;
    /// Begins to stop a server, as muster_store_server_close() does; MUSTER_DONE_CALL has its status.
    pub fn muster_store_server_close_begin(server: *mut muster_store_server, timeout_ns: i64, queue: *mut muster_queue, tag: u64, error: *mut muster_error) -> muster_status;
    /// Releases one reference; the server stops with the last one.
    pub fn muster_store_server_release(server: *mut muster_store_server);
}

#[cfg(test)]
mod layout {
    use super::*;
    use std::mem::size_of;

    // As the C compiler has them: tests/abi compares it with the same numbers.
    #[test]
    fn structs_are_those_of_c() {
        assert_eq!(size_of::<muster_store_server_config>(), 72);
        at!(muster_store_server_config, struct_size, 0);
        at!(muster_store_server_config, flags, 4);
        at!(muster_store_server_config, data_dir, 8);
        at!(muster_store_server_config, data_dir_bytes, 16);
        at!(muster_store_server_config, max_bytes, 24);
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
    }
}
