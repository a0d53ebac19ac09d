// SPDX-License-Identifier: MIT
// Written by bindings/rust/generate from include/muster/transport.h; do not edit.
//! What `include/muster/transport.h` declares.
#![allow(unused_imports)]
#![cfg_attr(rustfmt, rustfmt_skip)]

use super::*;
use std::os::raw::{c_char, c_int, c_void};

/// Opaque; made by muster_transport_listen().
#[repr(C)]
pub struct muster_listener {
    _private: [u8; 0],
}

/// How to dial or listen; all zero means the defaults named here.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_transport_config {
    pub struct_size: u32,
    pub flags: u32,
    pub hello: *const c_void,
    pub hello_bytes: u64,
    pub window_bytes: u64,
    pub backlog: u32,
    pub reserved: u32,
    pub retry_ns: i64,
    pub listen_timeout_ns: i64,
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
    /// Connects to an address; returns when both sides have proved the secret.
    pub fn muster_transport_dial(context: *mut muster_context, address: *const c_char, address_bytes: usize, config: *const muster_transport_config, timeout_ns: i64, out_stream: *mut *mut muster_stream, error: *mut muster_error) -> muster_status;
    /// Begins to connect, as muster_transport_dial() does.
    pub fn muster_transport_dial_begin(context: *mut muster_context, address: *const c_char, address_bytes: usize, config: *const muster_transport_config, timeout_ns: i64, queue: *mut muster_queue, tag: u64, error: *mut muster_error) -> muster_status;
    /// Listens at an address: when the call returns MUSTER_OK, the listener is open, and muster_listener_address() gives the address that peers dial.
    pub fn muster_transport_listen(context: *mut muster_context, address: *const c_char, address_bytes: usize, config: *const muster_transport_config, out_listener: *mut *mut muster_listener, error: *mut muster_error) -> muster_status;
    /// Begins to listen, as muster_transport_listen() does.
    pub fn muster_transport_listen_begin(context: *mut muster_context, address: *const c_char, address_bytes: usize, config: *const muster_transport_config, queue: *mut muster_queue, tag: u64, error: *mut muster_error) -> muster_status;
    /// Accepts the next connection that has proved the secret.
    pub fn muster_listener_accept(listener: *mut muster_listener, timeout_ns: i64, out_stream: *mut *mut muster_stream, error: *mut muster_error) -> muster_status;
    /// Watches a listener: MUSTER_EVENT_READY with MUSTER_STREAM_READABLE appears when a connection can be accepted.
    pub fn muster_listener_watch(listener: *mut muster_listener, queue: *mut muster_queue, tag: u64) -> muster_status;
    /// Copies the address by which peers dial this listener: with the actual port, with the advertised host (for a wildcard, a name or number by which other hosts reach this one), and with the options that both sides have to specify, `auth=none` and `seal=no`, where the listener has them.
    pub fn muster_listener_address(listener: *mut muster_listener, out_text: *mut c_char, capacity: usize, out_bytes: *mut usize) -> muster_status;
    /// Cancels the current waits in muster_listener_accept().
    pub fn muster_listener_cancel(listener: *mut muster_listener) -> muster_status;
    /// Stops listening: connections that were not accepted are refused, and the socket file is removed.
    pub fn muster_listener_close(listener: *mut muster_listener) -> muster_status;
    /// Begins to stop listening, as muster_listener_close() does; MUSTER_DONE_CALL follows when a new listener may take the address.
    pub fn muster_listener_close_begin(listener: *mut muster_listener, queue: *mut muster_queue, tag: u64, error: *mut muster_error) -> muster_status;
    /// Releases the handle; the listener closes, and threads that wait in muster_listener_accept() return MUSTER_E_CLOSED.
    pub fn muster_listener_release(listener: *mut muster_listener);
    /// Copies the handshake payload (muster_transport_config.hello) of the other side.
    pub fn muster_transport_hello(stream: *mut muster_stream, out_data: *mut c_void, capacity: usize, out_bytes: *mut usize) -> muster_status;
}

#[cfg(test)]
mod layout {
    use super::*;
    use std::mem::size_of;

    // As the C compiler has them: tests/abi compares it with the same numbers.
    #[test]
    fn structs_are_those_of_c() {
        assert_eq!(size_of::<muster_transport_config>(), 56);
        at!(muster_transport_config, struct_size, 0);
        at!(muster_transport_config, flags, 4);
        at!(muster_transport_config, hello, 8);
        at!(muster_transport_config, hello_bytes, 16);
        at!(muster_transport_config, window_bytes, 24);
        at!(muster_transport_config, backlog, 32);
        at!(muster_transport_config, reserved, 36);
        at!(muster_transport_config, retry_ns, 40);
        at!(muster_transport_config, listen_timeout_ns, 48);
    }
}
