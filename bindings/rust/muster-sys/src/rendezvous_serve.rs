// SPDX-License-Identifier: MIT
// Written by bindings/rust/generate from include/muster/rendezvous_serve.h; do not edit.
//! What `include/muster/rendezvous_serve.h` declares.
#![allow(unused_imports)]
#![cfg_attr(rustfmt, rustfmt_skip)]

use super::*;
use std::os::raw::{c_char, c_int, c_void};

// muster_rendezvous_request_kind: The operation of a request; the value of muster_rendezvous_request.kind.
pub const MUSTER_RENDEZVOUS_REQUEST_OPEN: u32 = 1;
pub const MUSTER_RENDEZVOUS_REQUEST_JOIN: u32 = 2;
pub const MUSTER_RENDEZVOUS_REQUEST_LEAVE: u32 = 3;
pub const MUSTER_RENDEZVOUS_REQUEST_EXIT: u32 = 4;
pub const MUSTER_RENDEZVOUS_REQUEST_ABORT: u32 = 5;
pub const MUSTER_RENDEZVOUS_REQUEST_CLOSE: u32 = 6;
pub const MUSTER_RENDEZVOUS_REQUEST_LIST: u32 = 7;

/// One request.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
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

/// The place of a member in a round: the answer to a JOIN.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_rendezvous_assignment {
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

impl Default for muster_rendezvous_assignment {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_rendezvous_assignment {
    pub fn sized() -> Self {
        muster_rendezvous_assignment { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// Callbacks that serve a rendezvous.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
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

extern "C" {
    /// Registers a URL scheme of rendezvous that the host serves, in this context only.
    pub fn muster_rendezvous_serve(context: *mut muster_context, scheme: *const c_char, scheme_bytes: usize, requests: *mut muster_queue, tag: u64, error: *mut muster_error) -> muster_status;
    /// Registers a URL scheme of rendezvous that the host serves by callbacks, which muster_queue_dispatch() calls.
    pub fn muster_rendezvous_serve_ops(context: *mut muster_context, scheme: *const c_char, scheme_bytes: usize, ops: *const muster_rendezvous_ops, this: *mut c_void, requests: *mut muster_queue, error: *mut muster_error) -> muster_status;
    /// Withdraws a scheme of host-served rendezvous.
    pub fn muster_rendezvous_withdraw(context: *mut muster_context, scheme: *const c_char, scheme_bytes: usize) -> muster_status;
    /// Reads an unanswered request.
    pub fn muster_rendezvous_request_read(requests: *mut muster_queue, request: u64, out_what: *mut muster_rendezvous_request) -> muster_status;
    /// Answers a JOIN request: the member is in a round.
    pub fn muster_rendezvous_request_round(requests: *mut muster_queue, request: u64, assignment: *const muster_rendezvous_assignment, error: *mut muster_error) -> muster_status;
    /// Answers any request but JOIN: it is done.
    pub fn muster_rendezvous_request_done(requests: *mut muster_queue, request: u64, text: *const c_void, text_bytes: usize, error: *mut muster_error) -> muster_status;
    /// Answers any request: it cannot be done.
    pub fn muster_rendezvous_request_fail(requests: *mut muster_queue, request: u64, status: muster_status, text: *const c_char, text_bytes: usize) -> muster_status;
    /// Notifies a member of an event.
    pub fn muster_rendezvous_notify(requests: *mut muster_queue, member: u64, event: *const muster_rendezvous_event, error: *mut muster_error) -> muster_status;
}

#[cfg(test)]
mod layout {
    use super::*;
    use std::mem::size_of;

    // As the C compiler has them: tests/abi compares it with the same numbers.
    #[test]
    fn structs_are_those_of_c() {
        assert_eq!(size_of::<muster_rendezvous_request>(), 48);
        at!(muster_rendezvous_request, struct_size, 0);
        at!(muster_rendezvous_request, kind, 4);
        at!(muster_rendezvous_request, member, 8);
        at!(muster_rendezvous_request, config, 16);
        at!(muster_rendezvous_request, reason, 24);
        at!(muster_rendezvous_request, reason_bytes, 32);
        at!(muster_rendezvous_request, timeout_ns, 40);
        assert_eq!(size_of::<muster_rendezvous_assignment>(), 80);
        at!(muster_rendezvous_assignment, struct_size, 0);
        at!(muster_rendezvous_assignment, rank, 4);
        at!(muster_rendezvous_assignment, world, 8);
        at!(muster_rendezvous_assignment, reserved, 12);
        at!(muster_rendezvous_assignment, number, 16);
        at!(muster_rendezvous_assignment, store, 24);
        at!(muster_rendezvous_assignment, members, 32);
        at!(muster_rendezvous_assignment, member_count, 40);
        at!(muster_rendezvous_assignment, digest, 48);
        assert_eq!(size_of::<muster_rendezvous_ops>(), 40);
        at!(muster_rendezvous_ops, struct_size, 0);
        at!(muster_rendezvous_ops, flags, 4);
        at!(muster_rendezvous_ops, request, 8);
        at!(muster_rendezvous_ops, cancel, 16);
        at!(muster_rendezvous_ops, close, 24);
        at!(muster_rendezvous_ops, destroy, 32);
    }
}
