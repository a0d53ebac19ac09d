// SPDX-License-Identifier: MIT
// Written by bindings/rust/generate from include/muster/am.h; do not edit.
//! What `include/muster/am.h` declares.
#![allow(unused_imports)]
#![cfg_attr(rustfmt, rustfmt_skip)]

use super::*;
use std::os::raw::{c_char, c_int, c_void};

/// An endpoint: opaque; made by muster_am_create().
#[repr(C)]
pub struct muster_am {
    _private: [u8; 0],
}

/// A request that the host answers: opaque; muster_completion.object of MUSTER_REQUEST_AM.
#[repr(C)]
pub struct muster_am_request {
    _private: [u8; 0],
}

// muster_am_flags: muster_am_config.flags.
pub const MUSTER_AM_NO_POLLING: u32 = 1;

// muster_am_event: muster_completion.events of an endpoint.
pub const MUSTER_AM_PEER_ENDED: u32 = 1;

/// A handler that the library executes.
pub type muster_am_fn = Option<unsafe extern "C" fn(user: *mut c_void, peer: u32, data: *const c_void, bytes: usize, reply: *mut c_void, capacity: usize, out_bytes: *mut usize) -> muster_status>;

/// How to make an endpoint; all zero means the defaults named here.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_am_config {
    pub struct_size: u32,
    pub max_bytes: u32,
    pub max_requests: u32,
    pub flags: u32,
    pub queue: *mut muster_queue,
    pub tag: u64,
}

impl Default for muster_am_config {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_am_config {
    pub fn sized() -> Self {
        muster_am_config { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// State of a peer.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_am_peer {
    pub status: muster_status,
    pub requests: u32,
    pub sent: u64,
    pub executed: u64,
    pub unsent_bytes: u64,
    pub max_bytes: u32,
    pub max_requests: u32,
}

impl Default for muster_am_peer {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// What a request of a peer says.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_am_request_info {
    pub data: *const c_void,
    pub bytes: usize,
    pub peer: u32,
    pub handler: u32,
}

impl Default for muster_am_request_info {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

extern "C" {
    /// Makes an endpoint without peers.
    pub fn muster_am_create(context: *mut muster_context, config: *const muster_am_config, out_am: *mut *mut muster_am, error: *mut muster_error) -> muster_status;
    /// Sets a handler that the library executes.
    pub fn muster_am_set_handler(am: *mut muster_am, handler: u32, function: muster_am_fn, user: *mut c_void) -> muster_status;
    /// Sets a handler whose requests the host answers: each is an entry MUSTER_REQUEST_AM in a queue, with the request as muster_completion.object.
    pub fn muster_am_serve(am: *mut muster_am, handler: u32, queue: *mut muster_queue, tag: u64) -> muster_status;
    /// Adds a peer.
    pub fn muster_am_add_peer(am: *mut muster_am, stream: *mut muster_stream, out_peer: *mut u32, error: *mut muster_error) -> muster_status;
    /// Makes a request, and waits for the reply.
    pub fn muster_am_call(am: *mut muster_am, peer: u32, handler: u32, data: *const c_void, bytes: usize, out_reply: *mut c_void, capacity: usize, timeout_ns: i64, out_bytes: *mut usize, error: *mut muster_error) -> muster_status;
    /// Makes a request without waiting for the reply, which is reported by MUSTER_DONE_AM: the status is that of muster_am_call(), and muster_completion.bytes the number of bytes of the reply.
    pub fn muster_am_begin(am: *mut muster_am, peer: u32, handler: u32, data: *const c_void, bytes: usize, out_reply: *mut c_void, capacity: usize, queue: *mut muster_queue, tag: u64) -> muster_status;
    /// Waits until each request that was begun before has its reply.
    pub fn muster_am_flush(am: *mut muster_am, peer: u32, timeout_ns: i64) -> muster_status;
    /// Returns the state of a peer.
    pub fn muster_am_get_peer(am: *mut muster_am, peer: u32, out_peer: *mut muster_am_peer, error: *mut muster_error) -> muster_status;
    /// Disconnects a peer: its requests are not executed any more, and those to it end with MUSTER_E_ABORTED.
    pub fn muster_am_disconnect(am: *mut muster_am, peer: u32, text: *const c_char) -> muster_status;
    /// Returns what a request says.
    pub fn muster_am_request_get(request: *const muster_am_request, out_info: *mut muster_am_request_info) -> muster_status;
    /// Answers a request; the first answer counts.
    pub fn muster_am_request_reply(request: *mut muster_am_request, status: muster_status, data: *const c_void, bytes: usize) -> muster_status;
    /// Releases a request.
    pub fn muster_am_request_release(request: *mut muster_am_request);
    /// Closes an endpoint: all peers are disconnected, and calls end with MUSTER_E_CLOSED.
    pub fn muster_am_close(am: *mut muster_am) -> muster_status;
    /// Closes an endpoint and gives up the reference to it.
    pub fn muster_am_release(am: *mut muster_am);
}

#[cfg(test)]
mod layout {
    use super::*;
    use std::mem::size_of;

    // As the C compiler has them: tests/abi compares it with the same numbers.
    #[test]
    fn structs_are_those_of_c() {
        assert_eq!(size_of::<muster_am_config>(), 32);
        at!(muster_am_config, struct_size, 0);
        at!(muster_am_config, max_bytes, 4);
        at!(muster_am_config, max_requests, 8);
        at!(muster_am_config, flags, 12);
        at!(muster_am_config, queue, 16);
        at!(muster_am_config, tag, 24);
        assert_eq!(size_of::<muster_am_peer>(), 40);
        at!(muster_am_peer, status, 0);
        at!(muster_am_peer, requests, 4);
        at!(muster_am_peer, sent, 8);
        at!(muster_am_peer, executed, 16);
        at!(muster_am_peer, unsent_bytes, 24);
        at!(muster_am_peer, max_bytes, 32);
        at!(muster_am_peer, max_requests, 36);
        assert_eq!(size_of::<muster_am_request_info>(), 24);
        at!(muster_am_request_info, data, 0);
        at!(muster_am_request_info, bytes, 8);
        at!(muster_am_request_info, peer, 16);
        at!(muster_am_request_info, handler, 20);
    }
}
