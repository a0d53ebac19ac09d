// SPDX-License-Identifier: MIT
// Written by bindings/rust/generate from include/muster/worker.h; do not edit.
//! What `include/muster/worker.h` declares.
#![allow(unused_imports)]
#![cfg_attr(rustfmt, rustfmt_skip)]

use super::*;
use std::os::raw::{c_char, c_int, c_void};

// muster_worker_flag: Flags of muster_worker_config.flags.
pub const MUSTER_WORKER_EXIT_WITH_MASTER: u32 = 1;
pub const MUSTER_WORKER_RAISE_INTERRUPT: u32 = 2;

/// How to start as a worker; all zero means the defaults named here.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_worker_config {
    pub struct_size: u32,
    pub flags: u32,
    pub exit_grace_ns: i64,
    pub report_fd_plus_one: i32,
    pub max_connections: u32,
    pub queue: *mut muster_queue,
    pub tag: u64,
    pub master: *const c_char,
    pub store: *const c_char,
    pub name: *const c_char,
    pub listen: *const c_char,
    pub max_broadcast_bytes: u64,
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

extern "C" {
    /// Makes the context of a worker from the ticket that its launcher has passed; the secret of the ticket becomes that of the context.
    pub fn muster_worker_context(config: *const muster_context_config, ticket_fd_plus_one: i32, out_context: *mut *mut muster_context, error: *mut muster_error) -> muster_status;
    /// Joins the cluster as a worker: listens, connects to the master, and returns when this member knows its number.
    pub fn muster_worker_start(context: *mut muster_context, config: *const muster_worker_config, timeout_ns: i64, out_cluster: *mut *mut muster_cluster, error: *mut muster_error) -> muster_status;
    /// Begins to join the cluster as a worker, for a program that must not wait, such as one whose only thread serves the transport by which it joins.
    pub fn muster_worker_start_begin(context: *mut muster_context, config: *const muster_worker_config, timeout_ns: i64, out_cluster: *mut *mut muster_cluster, error: *mut muster_error) -> muster_status;
}

#[cfg(test)]
mod layout {
    use super::*;
    use std::mem::size_of;

    // As the C compiler has them: tests/abi compares it with the same numbers.
    #[test]
    fn structs_are_those_of_c() {
        assert_eq!(size_of::<muster_worker_config>(), 80);
        at!(muster_worker_config, struct_size, 0);
        at!(muster_worker_config, flags, 4);
        at!(muster_worker_config, exit_grace_ns, 8);
        at!(muster_worker_config, report_fd_plus_one, 16);
        at!(muster_worker_config, max_connections, 20);
        at!(muster_worker_config, queue, 24);
        at!(muster_worker_config, tag, 32);
        at!(muster_worker_config, master, 40);
        at!(muster_worker_config, store, 48);
        at!(muster_worker_config, name, 56);
        at!(muster_worker_config, listen, 64);
        at!(muster_worker_config, max_broadcast_bytes, 72);
    }
}
