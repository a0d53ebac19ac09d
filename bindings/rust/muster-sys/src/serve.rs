// SPDX-License-Identifier: MIT
// Written by bindings/rust/generate from include/muster/serve.h; do not edit.
//! What `include/muster/serve.h` declares.
#![allow(unused_imports)]
#![cfg_attr(rustfmt, rustfmt_skip)]

use super::*;
use std::os::raw::{c_char, c_int, c_void};

// muster_transport_flag: Flags of muster_transport_ops.flags and of muster_transport_serve().
pub const MUSTER_TRANSPORT_ANY_THREAD: u32 = 1;
pub const MUSTER_TRANSPORT_LOCAL: u32 = 2;
pub const MUSTER_TRANSPORT_SEALS: u32 = 4;
pub const MUSTER_TRANSPORT_NO_LISTEN: u32 = 8;

/// Callbacks that serve a transport.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
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

extern "C" {
    /// Registers a URL scheme of a transport that the host serves, in this context only.
    pub fn muster_transport_serve(context: *mut muster_context, scheme: *const c_char, scheme_bytes: usize, flags: u32, requests: *mut muster_queue, tag: u64, error: *mut muster_error) -> muster_status;
    /// Registers a URL scheme of a transport that the host serves by callbacks, which muster_queue_dispatch() calls.
    pub fn muster_transport_serve_ops(context: *mut muster_context, scheme: *const c_char, scheme_bytes: usize, ops: *const muster_transport_ops, this: *mut c_void, requests: *mut muster_queue, error: *mut muster_error) -> muster_status;
    /// Withdraws a host-served transport: from now on dialling and listening fail, unanswered requests fail with MUSTER_E_CLOSED, and listeners close; connections continue until they end.
    pub fn muster_transport_withdraw(context: *mut muster_context, scheme: *const c_char, scheme_bytes: usize) -> muster_status;
    /// Copies the address of an OPEN or LISTEN request, without the options of the library.
    pub fn muster_request_address(requests: *mut muster_queue, request: u64, out_text: *mut c_char, capacity: usize, out_bytes: *mut usize) -> muster_status;
    /// Answers an OPEN request: the host is connected.
    pub fn muster_request_stream(requests: *mut muster_queue, request: u64, out_pump: *mut *mut muster_stream, error: *mut muster_error) -> muster_status;
    /// Answers a LISTEN request: the host listens.
    pub fn muster_request_listening(requests: *mut muster_queue, request: u64, address: *const c_char, address_bytes: usize, error: *mut muster_error) -> muster_status;
    /// Answers an OPEN or LISTEN request: it cannot be done.
    pub fn muster_request_fail(requests: *mut muster_queue, request: u64, status: muster_status, text: *const c_char, text_bytes: usize) -> muster_status;
    /// Announces an incoming connection of a host-served listener.
    pub fn muster_transport_incoming(requests: *mut muster_queue, listen_request: u64, peer: *const c_char, peer_bytes: usize, out_request: *mut u64, out_pump: *mut *mut muster_stream, error: *mut muster_error) -> muster_status;
}

#[cfg(test)]
mod layout {
    use super::*;
    use std::mem::size_of;

    // As the C compiler has them: tests/abi compares it with the same numbers.
    #[test]
    fn structs_are_those_of_c() {
        assert_eq!(size_of::<muster_transport_ops>(), 48);
        at!(muster_transport_ops, struct_size, 0);
        at!(muster_transport_ops, flags, 4);
        at!(muster_transport_ops, open, 8);
        at!(muster_transport_ops, listen, 16);
        at!(muster_transport_ops, close, 24);
        at!(muster_transport_ops, cancel, 32);
        at!(muster_transport_ops, destroy, 40);
    }
}
