// SPDX-License-Identifier: MIT
// Written by bindings/rust/generate from include/muster/forwarder.h; do not edit.
//! What `include/muster/forwarder.h` declares.
#![allow(unused_imports)]
#![cfg_attr(rustfmt, rustfmt_skip)]

use super::*;
use std::os::raw::{c_char, c_int, c_void};

/// Opaque; made by muster_forwarder_create().
#[repr(C)]
pub struct muster_forwarder {
    _private: [u8; 0],
}

/// How to make a forwarder.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_forwarder_config {
    pub struct_size: u32,
    pub flags: u32,
    pub address: u64,
    pub max_hops: u32,
    pub max_peers: u32,
    pub max_message_bytes: u64,
    pub max_queued_bytes: u64,
    pub max_queued_messages: u32,
    pub max_unrouted_messages: u32,
    pub max_waiting: u32,
    pub reserved: u32,
    pub inbox: *mut muster_message_queue,
    pub queue: *mut muster_queue,
    pub tag: u64,
}

impl Default for muster_forwarder_config {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_forwarder_config {
    pub fn sized() -> Self {
        muster_forwarder_config { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// Counters of a forwarder since it was created.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_forwarder_stats {
    pub peers: u64,
    pub forwarded: u64,
    pub delivered: u64,
    pub undelivered: u64,
    pub hop_limit: u64,
    pub waiting: u64,
    pub reserved: [u64; 4],
}

impl Default for muster_forwarder_stats {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

extern "C" {
    /// Makes a forwarder.
    pub fn muster_forwarder_create(context: *mut muster_context, config: *const muster_forwarder_config, out_forwarder: *mut *mut muster_forwarder, error: *mut muster_error) -> muster_status;
    /// Returns the socket of a forwarder: a router, for muster_socket_bind(), muster_socket_connect(), muster_socket_wait_peers(), muster_socket_address(), muster_socket_next_event() and muster_socket_get_stats().
    pub fn muster_forwarder_socket(forwarder: *mut muster_forwarder) -> *mut muster_socket;
    /// Adds a route to the address table, or changes the next hop of the route with the same pattern.
    pub fn muster_forwarder_add_route(forwarder: *mut muster_forwarder, pattern: u64, next_hop: u64) -> muster_status;
    /// Removes a route.
    pub fn muster_forwarder_remove_route(forwarder: *mut muster_forwarder, pattern: u64) -> muster_status;
    /// Hands messages of a type to the host instead of forwarding them: the hook for aggregation.
    pub fn muster_forwarder_set_hook(forwarder: *mut muster_forwarder, r#type: u32, into: *mut muster_message_queue) -> muster_status;
    /// Sends a message of the host to its next hop.
    pub fn muster_forwarder_send(forwarder: *mut muster_forwarder, message: *mut muster_message, timeout_ns: i64, error: *mut muster_error) -> muster_status;
    /// Returns the counters of a forwarder.
    pub fn muster_forwarder_get_stats(forwarder: *mut muster_forwarder, out_stats: *mut muster_forwarder_stats) -> muster_status;
    /// Closes a forwarder: waits until the messages that it has were read by their next hops or the time has passed, and ends all connections.
    pub fn muster_forwarder_close(forwarder: *mut muster_forwarder, timeout_ns: i64) -> muster_status;
    /// Releases the handle of a forwarder, which is closed without waiting if it is open.
    pub fn muster_forwarder_release(forwarder: *mut muster_forwarder);
}

#[cfg(test)]
mod layout {
    use super::*;
    use std::mem::size_of;

    // As the C compiler has them: tests/abi compares it with the same numbers.
    #[test]
    fn structs_are_those_of_c() {
        assert_eq!(size_of::<muster_forwarder_config>(), 80);
        at!(muster_forwarder_config, struct_size, 0);
        at!(muster_forwarder_config, flags, 4);
        at!(muster_forwarder_config, address, 8);
        at!(muster_forwarder_config, max_hops, 16);
        at!(muster_forwarder_config, max_peers, 20);
        at!(muster_forwarder_config, max_message_bytes, 24);
        at!(muster_forwarder_config, max_queued_bytes, 32);
        at!(muster_forwarder_config, max_queued_messages, 40);
        at!(muster_forwarder_config, max_unrouted_messages, 44);
        at!(muster_forwarder_config, max_waiting, 48);
        at!(muster_forwarder_config, reserved, 52);
        at!(muster_forwarder_config, inbox, 56);
        at!(muster_forwarder_config, queue, 64);
        at!(muster_forwarder_config, tag, 72);
        assert_eq!(size_of::<muster_forwarder_stats>(), 80);
        at!(muster_forwarder_stats, peers, 0);
        at!(muster_forwarder_stats, forwarded, 8);
        at!(muster_forwarder_stats, delivered, 16);
        at!(muster_forwarder_stats, undelivered, 24);
        at!(muster_forwarder_stats, hop_limit, 32);
        at!(muster_forwarder_stats, waiting, 40);
        at!(muster_forwarder_stats, reserved, 48);
    }
}
