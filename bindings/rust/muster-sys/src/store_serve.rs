// SPDX-License-Identifier: MIT
// Written by bindings/rust/generate from include/muster/store_serve.h; do not edit.
//! What `include/muster/store_serve.h` declares.
#![allow(unused_imports)]
#![cfg_attr(rustfmt, rustfmt_skip)]

use super::*;
use std::os::raw::{c_char, c_int, c_void};

// muster_store_request_kind: The operation of a request; the value of muster_store_request.kind.
pub const MUSTER_STORE_REQUEST_OPEN: u32 = 1;
pub const MUSTER_STORE_REQUEST_DO: u32 = 2;
pub const MUSTER_STORE_REQUEST_GRANT: u32 = 3;
pub const MUSTER_STORE_REQUEST_KEEP: u32 = 4;
pub const MUSTER_STORE_REQUEST_END: u32 = 5;

// muster_store_request_flag: Flags of muster_store_request.flags.
pub const MUSTER_STORE_NO_WAIT: u32 = 1;

// muster_store_trait: Flags of muster_store_traits.flags.
pub const MUSTER_STORE_IS_REMOTE: u32 = 1;
pub const MUSTER_STORE_ANSWERS_CANCEL: u32 = 2;

// muster_store_host_flag: Flags of muster_store_host_ops.flags.
pub const MUSTER_STORE_ANY_THREAD: u32 = 1;

/// One request.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
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

/// Properties of a served store; all zero means the defaults named here.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_store_traits {
    pub struct_size: u32,
    pub flags: u32,
    pub capabilities: u32,
    pub max_ops: u32,
    pub max_request_bytes: u64,
    pub min_lease_ns: i64,
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

/// Callbacks that serve stores.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
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

extern "C" {
    /// Registers a URL scheme of stores that the host serves, in this context only.
    pub fn muster_store_serve(context: *mut muster_context, scheme: *const c_char, scheme_bytes: usize, requests: *mut muster_queue, tag: u64, error: *mut muster_error) -> muster_status;
    /// Registers a URL scheme of stores that the host serves by callbacks, which muster_queue_dispatch() calls.
    pub fn muster_store_serve_ops(context: *mut muster_context, scheme: *const c_char, scheme_bytes: usize, ops: *const muster_store_host_ops, this: *mut c_void, requests: *mut muster_queue, error: *mut muster_error) -> muster_status;
    /// Withdraws a scheme of host-served stores.
    pub fn muster_store_withdraw(context: *mut muster_context, scheme: *const c_char, scheme_bytes: usize) -> muster_status;
    /// Reads an unanswered request.
    pub fn muster_store_request_read(requests: *mut muster_queue, request: u64, out_what: *mut muster_store_request) -> muster_status;
    /// Answers an OPEN request: the store is open.
    pub fn muster_store_request_open(requests: *mut muster_queue, request: u64, traits: *const muster_store_traits, error: *mut muster_error) -> muster_status;
    /// Answers a DO, GRANT, KEEP or END request: it is done; or a DO request: a condition does not hold.
    pub fn muster_store_request_done(requests: *mut muster_queue, request: u64, status: muster_status, entries: *const muster_store_entry, entry_count: usize, revision: u64, error: *mut muster_error) -> muster_status;
    /// Answers any request: it cannot be done, and no part of it is applied.
    pub fn muster_store_request_fail(requests: *mut muster_queue, request: u64, status: muster_status, op: u32, text: *const c_char, text_bytes: usize) -> muster_status;
}

#[cfg(test)]
mod layout {
    use super::*;
    use std::mem::size_of;

    // As the C compiler has them: tests/abi compares it with the same numbers.
    #[test]
    fn structs_are_those_of_c() {
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
        at!(muster_store_traits, max_ops, 12);
        at!(muster_store_traits, max_request_bytes, 16);
        at!(muster_store_traits, min_lease_ns, 24);
        assert_eq!(size_of::<muster_store_host_ops>(), 40);
        at!(muster_store_host_ops, struct_size, 0);
        at!(muster_store_host_ops, flags, 4);
        at!(muster_store_host_ops, request, 8);
        at!(muster_store_host_ops, cancel, 16);
        at!(muster_store_host_ops, close, 24);
        at!(muster_store_host_ops, destroy, 32);
    }
}
