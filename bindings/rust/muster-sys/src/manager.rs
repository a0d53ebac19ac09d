// SPDX-License-Identifier: MIT
// Written by bindings/rust/generate from include/muster/manager.h; do not edit.
//! What `include/muster/manager.h` declares.
#![allow(unused_imports)]
#![cfg_attr(rustfmt, rustfmt_skip)]

use super::*;
use std::os::raw::{c_char, c_int, c_void};

// muster_manager_operation: The operation of a request; a set of bits where a host selects the operations that it receives.
pub const MUSTER_MANAGER_LAUNCH: u32 = 1;
pub const MUSTER_MANAGER_CONNECT: u32 = 2;
pub const MUSTER_MANAGER_CONNECT_WORKER: u32 = 4;
pub const MUSTER_MANAGER_REGISTER: u32 = 8;
pub const MUSTER_MANAGER_DEREGISTER: u32 = 16;
pub const MUSTER_MANAGER_INTERRUPT: u32 = 32;
pub const MUSTER_MANAGER_KILL: u32 = 64;
pub const MUSTER_MANAGER_FINALIZE: u32 = 128;

/// One request.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_manager_request {
    pub struct_size: u32,
    pub operation: u32,
    pub member: u32,
    pub count: u32,
    pub from: u32,
    pub reserved: u32,
    pub data: u64,
    pub launch: *const muster_launch,
    pub address: *const c_char,
    pub cluster: *mut muster_cluster,
    pub cluster_tag: u64,
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

/// A manager as callbacks.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
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

extern "C" {
    /// Registers a manager of the host, in this context only.
    pub fn muster_manager_serve(context: *mut muster_context, name: *const c_char, name_bytes: usize, operations: u32, requests: *mut muster_queue, tag: u64, error: *mut muster_error) -> muster_status;
    /// Registers a manager of the host as callbacks, which muster_queue_dispatch() calls.
    pub fn muster_manager_serve_ops(context: *mut muster_context, name: *const c_char, name_bytes: usize, ops: *const muster_manager_ops, this: *mut c_void, requests: *mut muster_queue, error: *mut muster_error) -> muster_status;
    /// Withdraws a manager: from now on launching by its name fails, and unanswered requests are cancelled, as if each had failed with MUSTER_E_CLOSED.
    pub fn muster_manager_withdraw(context: *mut muster_context, name: *const c_char, name_bytes: usize) -> muster_status;
    /// Reads an unanswered request.
    pub fn muster_manager_request_read(requests: *mut muster_queue, request: u64, out_what: *mut muster_manager_request) -> muster_status;
    /// Copies the ticket of a worker that is to be launched: one line of ASCII, its newline included.
    pub fn muster_manager_ticket(requests: *mut muster_queue, request: u64, member: u32, out_text: *mut c_char, capacity: usize, out_bytes: *mut usize) -> muster_status;
    /// Reports that a worker of a LAUNCH was started.
    pub fn muster_manager_worker_ready(requests: *mut muster_queue, request: u64, member: u32, address: *const c_char, address_bytes: usize, data: u64, error: *mut muster_error) -> muster_status;
    /// Reports that a worker of a LAUNCH could not be started.
    pub fn muster_manager_worker_failed(requests: *mut muster_queue, request: u64, member: u32, status: muster_status, text: *const c_char, text_bytes: usize, error: *mut muster_error) -> muster_status;
    /// Reports that a worker has ended, as seen by the process that started it.
    pub fn muster_manager_worker_ended(requests: *mut muster_queue, cluster: *mut muster_cluster, member: u32, text: *const c_char, text_bytes: usize, error: *mut muster_error) -> muster_status;
    /// Answers any request but LAUNCH: it is done.
    pub fn muster_manager_request_done(requests: *mut muster_queue, request: u64, address: *const c_char, address_bytes: usize, error: *mut muster_error) -> muster_status;
    /// Answers any request: it cannot be done.
    pub fn muster_manager_request_fail(requests: *mut muster_queue, request: u64, status: muster_status, text: *const c_char, text_bytes: usize) -> muster_status;
}

#[cfg(test)]
mod layout {
    use super::*;
    use std::mem::size_of;

    // As the C compiler has them: tests/abi compares it with the same numbers.
    #[test]
    fn structs_are_those_of_c() {
        assert_eq!(size_of::<muster_manager_request>(), 64);
        at!(muster_manager_request, struct_size, 0);
        at!(muster_manager_request, operation, 4);
        at!(muster_manager_request, member, 8);
        at!(muster_manager_request, count, 12);
        at!(muster_manager_request, from, 16);
        at!(muster_manager_request, reserved, 20);
        at!(muster_manager_request, data, 24);
        at!(muster_manager_request, launch, 32);
        at!(muster_manager_request, address, 40);
        at!(muster_manager_request, cluster, 48);
        at!(muster_manager_request, cluster_tag, 56);
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
    }
}
