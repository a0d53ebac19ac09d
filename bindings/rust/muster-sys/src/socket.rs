// SPDX-License-Identifier: MIT
// Written by bindings/rust/generate from include/muster/socket.h; do not edit.
//! What `include/muster/socket.h` declares.
#![allow(unused_imports)]
#![cfg_attr(rustfmt, rustfmt_skip)]

use super::*;
use std::os::raw::{c_char, c_int, c_void};

/// Opaque; made by muster_socket_create().
#[repr(C)]
pub struct muster_socket {
    _private: [u8; 0],
}

// muster_socket_kind: The kind of a socket.
pub const MUSTER_SOCKET_DEALER: u32 = 1;
pub const MUSTER_SOCKET_ROUTER: u32 = 2;

// muster_socket_flag: Flags of a socket.
pub const MUSTER_SOCKET_LOANS: u32 = 1;

// muster_socket_ready: Readiness of a socket; bits of muster_completion.events of MUSTER_EVENT_READY.
pub const MUSTER_SOCKET_RECEIVABLE: u32 = 1;
pub const MUSTER_SOCKET_SENDABLE: u32 = 2;
pub const MUSTER_SOCKET_EVENT: u32 = 4;

// muster_socket_event_kind: The kind of an event.
pub const MUSTER_SOCKET_CONNECTED: u32 = 1;
pub const MUSTER_SOCKET_LOST: u32 = 2;
pub const MUSTER_SOCKET_REPLACED: u32 = 3;
pub const MUSTER_SOCKET_REFUSED: u32 = 4;

/// How to make a socket.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_socket_config {
    pub struct_size: u32,
    pub flags: u32,
    pub kind: u32,
    pub max_peers: u32,
    pub address: u64,
    pub max_message_bytes: u64,
    pub max_queued_bytes: u64,
    pub max_queued_messages: u32,
    pub max_unrouted_messages: u32,
    pub queue: *mut muster_queue,
    pub tag: u64,
    pub max_loaned_bytes: u64,
}

impl Default for muster_socket_config {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_socket_config {
    pub fn sized() -> Self {
        muster_socket_config { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// What has happened to a peer.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_socket_event {
    pub kind: u32,
    pub text_bytes: u32,
    pub address: u64,
    pub incarnation: u64,
    pub undelivered: u64,
    pub text: [c_char; 256],
}

impl Default for muster_socket_event {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// Counters of a socket since it was created.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_socket_stats {
    pub peers: u64,
    pub messages_in: u64,
    pub messages_out: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub queued_messages: u64,
    pub queued_bytes: u64,
    pub undelivered: u64,
    pub connections_made: u64,
    pub connections_lost: u64,
    pub malformed: u64,
    pub full: u64,
    pub reserved: [u64; 4],
}

impl Default for muster_socket_stats {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

extern "C" {
    /// Makes a socket.
    pub fn muster_socket_create(context: *mut muster_context, config: *const muster_socket_config, out_socket: *mut *mut muster_socket, error: *mut muster_error) -> muster_status;
    /// Returns the address of a socket.
    pub fn muster_socket_address(socket: *const muster_socket) -> u64;
    /// Listens at an address of a transport, and accepts peers there until the socket is closed.
    pub fn muster_socket_bind(socket: *mut muster_socket, address: *const c_char, address_bytes: usize, out_text: *mut c_char, capacity: usize, error: *mut muster_error) -> muster_status;
    /// Begins to connect to an address of a transport.
    pub fn muster_socket_connect(socket: *mut muster_socket, address: *const c_char, address_bytes: usize, error: *mut muster_error) -> muster_status;
    /// Waits until a number of peers are connected.
    pub fn muster_socket_wait_peers(socket: *mut muster_socket, count: u32, timeout_ns: i64, out_count: *mut u32) -> muster_status;
    /// Sends a message.
    pub fn muster_socket_send(socket: *mut muster_socket, message: *mut muster_message, timeout_ns: i64, error: *mut muster_error) -> muster_status;
    /// Adds a frame to a message in shared memory: peers on this host read it in place, without a copy, so that the time to send it does not depend on its size.
    pub fn muster_socket_loan_frame(socket: *mut muster_socket, message: *mut muster_message, bytes: usize, out_data: *mut *mut c_void, error: *mut muster_error) -> muster_status;
    /// Receives the next message of any peer.
    pub fn muster_socket_receive(socket: *mut muster_socket, timeout_ns: i64, out_message: *mut *mut muster_message) -> muster_status;
    /// Takes the next event of the peers.
    pub fn muster_socket_next_event(socket: *mut muster_socket, timeout_ns: i64, out_event: *mut muster_socket_event) -> muster_status;
    /// Returns the counters of a socket.
    pub fn muster_socket_get_stats(socket: *mut muster_socket, out_stats: *mut muster_socket_stats) -> muster_status;
    /// Ends the calls that wait on a socket now: they return MUSTER_E_CANCELED.
    pub fn muster_socket_cancel(socket: *mut muster_socket) -> muster_status;
    /// Closes a socket: waits until the queued messages have been read by the peers or the time has passed, and ends all connections.
    pub fn muster_socket_close(socket: *mut muster_socket, timeout_ns: i64) -> muster_status;
    /// Releases the handle of a socket, which is closed without waiting if it is open.
    pub fn muster_socket_release(socket: *mut muster_socket);
}

#[cfg(test)]
mod layout {
    use super::*;
    use std::mem::size_of;

    // As the C compiler has them: tests/abi compares it with the same numbers.
    #[test]
    fn structs_are_those_of_c() {
        assert_eq!(size_of::<muster_socket_config>(), 72);
        at!(muster_socket_config, struct_size, 0);
        at!(muster_socket_config, flags, 4);
        at!(muster_socket_config, kind, 8);
        at!(muster_socket_config, max_peers, 12);
        at!(muster_socket_config, address, 16);
        at!(muster_socket_config, max_message_bytes, 24);
        at!(muster_socket_config, max_queued_bytes, 32);
        at!(muster_socket_config, max_queued_messages, 40);
        at!(muster_socket_config, max_unrouted_messages, 44);
        at!(muster_socket_config, queue, 48);
        at!(muster_socket_config, tag, 56);
        at!(muster_socket_config, max_loaned_bytes, 64);
        assert_eq!(size_of::<muster_socket_event>(), 288);
        at!(muster_socket_event, kind, 0);
        at!(muster_socket_event, text_bytes, 4);
        at!(muster_socket_event, address, 8);
        at!(muster_socket_event, incarnation, 16);
        at!(muster_socket_event, undelivered, 24);
        at!(muster_socket_event, text, 32);
        assert_eq!(size_of::<muster_socket_stats>(), 128);
        at!(muster_socket_stats, peers, 0);
        at!(muster_socket_stats, messages_in, 8);
        at!(muster_socket_stats, messages_out, 16);
        at!(muster_socket_stats, bytes_in, 24);
        at!(muster_socket_stats, bytes_out, 32);
        at!(muster_socket_stats, queued_messages, 40);
        at!(muster_socket_stats, queued_bytes, 48);
        at!(muster_socket_stats, undelivered, 56);
        at!(muster_socket_stats, connections_made, 64);
        at!(muster_socket_stats, connections_lost, 72);
        at!(muster_socket_stats, malformed, 80);
        at!(muster_socket_stats, full, 88);
        at!(muster_socket_stats, reserved, 96);
    }
}
