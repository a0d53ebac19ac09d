// SPDX-License-Identifier: MIT
// Written by bindings/rust/generate from include/muster/plugin.h; do not edit.
//! What `include/muster/plugin.h` declares.
#![allow(unused_imports)]
#![cfg_attr(rustfmt, rustfmt_skip)]

use super::*;
use std::os::raw::{c_char, c_int, c_void};

/// Opaque; the library's side of one listener of a connections plug-in.
#[repr(C)]
pub struct muster_acceptor {
    _private: [u8; 0],
}

/// Opaque; the library's side of a fabric's endpoint.
#[repr(C)]
pub struct muster_endpoint {
    _private: [u8; 0],
}

/// Opaque; the library's side of one connection.
#[repr(C)]
pub struct muster_link {
    _private: [u8; 0],
}

/// Opaque; a running timer, from muster_host.start_timer.
#[repr(C)]
pub struct muster_timer {
    _private: [u8; 0],
}

/// Opaque; a watched descriptor, from muster_host.watch_fd.
#[repr(C)]
pub struct muster_watch {
    _private: [u8; 0],
}

// muster_plugin_flag: Flags of muster_connections_ops.flags and muster_fabric_ops.flags.
pub const MUSTER_PLUGIN_LOCAL: u32 = 1;
pub const MUSTER_PLUGIN_SEALS: u32 = 2;
pub const MUSTER_PLUGIN_OPTIONS: u32 = 4;
pub const MUSTER_PLUGIN_UPGRADES: u32 = 8;
pub const MUSTER_PLUGIN_NEEDS_POLLS: u32 = 16;

// muster_plugin_event: Events of a watched descriptor.
pub const MUSTER_PLUGIN_READABLE: u32 = 1;
pub const MUSTER_PLUGIN_WRITABLE: u32 = 2;
pub const MUSTER_PLUGIN_HANGUP: u32 = 4;

// muster_host_flag: Flags of muster_host.flags.
pub const MUSTER_HOST_EXTERNAL: u32 = 1;

/// Type of the one function that a plug-in exports, named `muster_plugin_v1`.
pub type muster_plugin_v1_fn = Option<unsafe extern "C" fn(host: *const muster_host, error: *mut muster_error) -> muster_status>;

/// One piece of memory to send; borrowed for the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_span {
    pub data: *const c_void,
    pub size_bytes: u64,
}

impl Default for muster_span {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// Memory that this process shares with one peer on the same host, and an eventfd for each side.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_segment {
    pub struct_size: u32,
    pub side: u32,
    pub data: *mut c_void,
    pub size_bytes: u64,
    pub own_event: i32,
    pub peer_event: i32,
}

impl Default for muster_segment {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_segment {
    pub fn sized() -> Self {
        muster_segment { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// Memory that holds a received message, lent to the library by muster_host.message_lent.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_loan {
    pub size_bytes: u64,
    pub release: Option<unsafe extern "C" fn(memory: *mut c_void, hint: *mut c_void)>,
    pub memory: *mut c_void,
    pub hint: *mut c_void,
}

impl Default for muster_loan {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// Operations of a connections plug-in.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_connections_ops {
    pub struct_size: u32,
    pub flags: u32,
    pub start: Option<unsafe extern "C" fn(this: *mut c_void, error: *mut muster_error) -> muster_status>,
    pub stop: Option<unsafe extern "C" fn(this: *mut c_void)>,
    pub dial: Option<unsafe extern "C" fn(this: *mut c_void, address: *const c_char, address_bytes: u64, link: *mut muster_link, out_connection: *mut *mut c_void, error: *mut muster_error) -> muster_status>,
    pub listen: Option<unsafe extern "C" fn(this: *mut c_void, address: *const c_char, address_bytes: u64, acceptor: *mut muster_acceptor, out_listener: *mut *mut c_void, out_address: *mut c_char, out_address_bytes: *mut u64, error: *mut muster_error) -> muster_status>,
    pub unlisten: Option<unsafe extern "C" fn(this: *mut c_void, listener: *mut c_void)>,
    pub send: Option<unsafe extern "C" fn(connection: *mut c_void, spans: *const muster_span, span_count: u32, out_bytes: *mut u64) -> muster_status>,
    pub resume: Option<unsafe extern "C" fn(connection: *mut c_void)>,
    pub finish: Option<unsafe extern "C" fn(connection: *mut c_void)>,
    pub authenticated: Option<unsafe extern "C" fn(connection: *mut c_void)>,
    pub segment_shared: Option<unsafe extern "C" fn(connection: *mut c_void, segment: *const muster_segment, status: muster_status)>,
    pub close: Option<unsafe extern "C" fn(connection: *mut c_void)>,
    pub abort: Option<unsafe extern "C" fn(connection: *mut c_void)>,
}

impl Default for muster_connections_ops {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_connections_ops {
    pub fn sized() -> Self {
        muster_connections_ops { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// Operations of a plug-in whose fabric has a broker: muster_broker_open() and the rest of broker.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_broker_ops {
    pub struct_size: u32,
    pub reserved: u32,
    pub open: Option<unsafe extern "C" fn(this: *mut c_void, authority: *const c_char, authority_bytes: u64, config: *const muster_broker_config, out_broker: *mut *mut c_void, out_authority: *mut c_char, out_authority_bytes: *mut u64, error: *mut muster_error) -> muster_status>,
    pub stats: Option<unsafe extern "C" fn(broker: *mut c_void, out_stats: *mut muster_broker_stats)>,
    pub close: Option<unsafe extern "C" fn(broker: *mut c_void, timeout_ns: i64)>,
}

impl Default for muster_broker_ops {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_broker_ops {
    pub fn sized() -> Self {
        muster_broker_ops { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// Operations of a fabric plug-in.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_fabric_ops {
    pub struct_size: u32,
    pub flags: u32,
    pub message_bytes: u64,
    pub credit_bytes: u64,
    pub start: Option<unsafe extern "C" fn(this: *mut c_void, endpoint: *mut muster_endpoint, error: *mut muster_error) -> muster_status>,
    pub stop: Option<unsafe extern "C" fn(this: *mut c_void)>,
    pub publish: Option<unsafe extern "C" fn(this: *mut c_void, authority: *const c_char, authority_bytes: u64, request: u64, out_authority: *mut c_char, out_authority_bytes: *mut u64, error: *mut muster_error) -> muster_status>,
    pub withdraw: Option<unsafe extern "C" fn(this: *mut c_void, authority: *const c_char, authority_bytes: u64)>,
    pub resolve: Option<unsafe extern "C" fn(this: *mut c_void, authority: *const c_char, authority_bytes: u64, request: u64, out_peer: *mut u64, error: *mut muster_error) -> muster_status>,
    pub send: Option<unsafe extern "C" fn(this: *mut c_void, peer: u64, spans: *const muster_span, span_count: u32) -> muster_status>,
    pub authenticated: Option<unsafe extern "C" fn(this: *mut c_void, peer: u64)>,
    pub segment_shared: Option<unsafe extern "C" fn(this: *mut c_void, peer: u64, segment: *const muster_segment, status: muster_status)>,
    pub forget: Option<unsafe extern "C" fn(this: *mut c_void, peer: u64)>,
    pub headroom_bytes: u64,
    pub send_buffer: Option<unsafe extern "C" fn(this: *mut c_void, peer: u64, buffer: *mut c_void, offset_bytes: u64, size_bytes: u64) -> muster_status>,
    pub broker: *const muster_broker_ops,
    pub send_multicast: Option<unsafe extern "C" fn(this: *mut c_void, peers: *const u64, peer_count: u32, buffer: *mut c_void, offset_bytes: u64, size_bytes: u64) -> muster_status>,
    pub poll: Option<unsafe extern "C" fn(this: *mut c_void) -> muster_status>,
}

impl Default for muster_fabric_ops {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_fabric_ops {
    pub fn sized() -> Self {
        muster_fabric_ops { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// Members of muster_host.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_host {
    pub struct_size: u32,
    pub flags: u32,
    pub library: *mut c_void,
    pub log: Option<unsafe extern "C" fn(host: *const muster_host, level: i32, text: *const c_char, text_bytes: u64)>,
    pub derive: Option<unsafe extern "C" fn(host: *const muster_host, label: *const c_char, label_bytes: u64, out_key: *mut c_void, key_bytes: u64) -> muster_status>,
    pub add_connections: Option<unsafe extern "C" fn(host: *const muster_host, scheme: *const c_char, scheme_bytes: u64, ops: *const muster_connections_ops, this: *mut c_void, error: *mut muster_error) -> muster_status>,
    pub add_fabric: Option<unsafe extern "C" fn(host: *const muster_host, scheme: *const c_char, scheme_bytes: u64, ops: *const muster_fabric_ops, this: *mut c_void, error: *mut muster_error) -> muster_status>,
    pub watch_fd: Option<unsafe extern "C" fn(host: *const muster_host, fd: i32, events: u32, ready: Option<unsafe extern "C" fn(user: *mut c_void, events: u32)>, user: *mut c_void, out_watch: *mut *mut muster_watch) -> muster_status>,
    pub change_fd: Option<unsafe extern "C" fn(watch: *mut muster_watch, events: u32)>,
    pub unwatch_fd: Option<unsafe extern "C" fn(watch: *mut muster_watch)>,
    pub start_timer: Option<unsafe extern "C" fn(host: *const muster_host, after_ns: i64, repeat_ns: i64, due: Option<unsafe extern "C" fn(user: *mut c_void)>, user: *mut c_void, out_timer: *mut *mut muster_timer) -> muster_status>,
    pub stop_timer: Option<unsafe extern "C" fn(timer: *mut muster_timer)>,
    pub post: Option<unsafe extern "C" fn(host: *const muster_host, run: Option<unsafe extern "C" fn(user: *mut c_void)>, user: *mut c_void) -> muster_status>,
    pub acquire_buffer: Option<unsafe extern "C" fn(host: *const muster_host) -> *mut c_void>,
    pub release_buffer: Option<unsafe extern "C" fn(host: *const muster_host, buffer: *mut c_void)>,
    pub accepted: Option<unsafe extern "C" fn(acceptor: *mut muster_acceptor, connection: *mut c_void, peer: *const c_char, peer_bytes: u64, out_link: *mut *mut muster_link) -> muster_status>,
    pub connected: Option<unsafe extern "C" fn(link: *mut muster_link)>,
    pub deliver: Option<unsafe extern "C" fn(link: *mut muster_link, data: *const c_void, size_bytes: u64) -> u64>,
    pub writable: Option<unsafe extern "C" fn(link: *mut muster_link)>,
    pub lost: Option<unsafe extern "C" fn(link: *mut muster_link, status: muster_status, os_errno: i32, text: *const c_char, text_bytes: u64)>,
    pub resolved: Option<unsafe extern "C" fn(endpoint: *mut muster_endpoint, request: u64, status: muster_status, peer: u64, text: *const c_char, text_bytes: u64)>,
    pub message: Option<unsafe extern "C" fn(endpoint: *mut muster_endpoint, peer: u64, data: *const c_void, size_bytes: u64)>,
    pub credit: Option<unsafe extern "C" fn(endpoint: *mut muster_endpoint, peer: u64, bytes: u64)>,
    pub ready: Option<unsafe extern "C" fn(endpoint: *mut muster_endpoint, peer: u64)>,
    pub peer_lost: Option<unsafe extern "C" fn(endpoint: *mut muster_endpoint, peer: u64, status: muster_status, os_errno: i32, text: *const c_char, text_bytes: u64)>,
    pub share_segment: Option<unsafe extern "C" fn(link: *mut muster_link, size_bytes: u64) -> muster_status>,
    pub share_segment_with_peer: Option<unsafe extern "C" fn(endpoint: *mut muster_endpoint, peer: u64, size_bytes: u64) -> muster_status>,
    pub published: Option<unsafe extern "C" fn(endpoint: *mut muster_endpoint, request: u64, status: muster_status, text: *const c_char, text_bytes: u64)>,
    pub peer_flags: Option<unsafe extern "C" fn(endpoint: *mut muster_endpoint, peer: u64, flags: u32)>,
    pub message_lent: Option<unsafe extern "C" fn(endpoint: *mut muster_endpoint, peer: u64, data: *const c_void, size_bytes: u64, loan: *const muster_loan)>,
    pub message_multicast: Option<unsafe extern "C" fn(endpoint: *mut muster_endpoint, peer: u64, data: *const c_void, size_bytes: u64, index: u32, count: u32, loan: *const muster_loan)>,
    pub add_store: Option<unsafe extern "C" fn(host: *const muster_host, scheme: *const c_char, scheme_bytes: u64, ops: *const muster_store_host_ops, this: *mut c_void, error: *mut muster_error) -> muster_status>,
    pub store_opened: Option<unsafe extern "C" fn(host: *const muster_host, request: u64, traits: *const muster_store_traits, error: *mut muster_error) -> muster_status>,
    pub store_done: Option<unsafe extern "C" fn(host: *const muster_host, request: u64, status: muster_status, entries: *const muster_store_entry, entry_count: u64, revision: u64, error: *mut muster_error) -> muster_status>,
    pub store_failed: Option<unsafe extern "C" fn(host: *const muster_host, request: u64, status: muster_status, op: u32, text: *const c_char, text_bytes: u64) -> muster_status>,
}

impl Default for muster_host {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_host {
    pub fn sized() -> Self {
        muster_host { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

extern "C" {
    /// Loads a plug-in from a file and registers its schemes in one context.
    pub fn muster_plugin_load(context: *mut muster_context, path: *const c_char, path_bytes: usize, error: *mut muster_error) -> muster_status;
    /// Ensures that a scheme can be used, as dialling does: loads the plug-in for it if there is one.
    pub fn muster_plugin_find(context: *mut muster_context, scheme: *const c_char, scheme_bytes: usize, error: *mut muster_error) -> muster_status;
}

#[cfg(test)]
mod layout {
    use super::*;
    use std::mem::size_of;

    // As the C compiler has them: tests/abi compares it with the same numbers.
    #[test]
    fn structs_are_those_of_c() {
        assert_eq!(size_of::<muster_span>(), 16);
        at!(muster_span, data, 0);
        at!(muster_span, size_bytes, 8);
        assert_eq!(size_of::<muster_segment>(), 32);
        at!(muster_segment, struct_size, 0);
        at!(muster_segment, side, 4);
        at!(muster_segment, data, 8);
        at!(muster_segment, size_bytes, 16);
        at!(muster_segment, own_event, 24);
        at!(muster_segment, peer_event, 28);
        assert_eq!(size_of::<muster_loan>(), 32);
        at!(muster_loan, size_bytes, 0);
        at!(muster_loan, release, 8);
        at!(muster_loan, memory, 16);
        at!(muster_loan, hint, 24);
        assert_eq!(size_of::<muster_connections_ops>(), 104);
        at!(muster_connections_ops, struct_size, 0);
        at!(muster_connections_ops, flags, 4);
        at!(muster_connections_ops, start, 8);
        at!(muster_connections_ops, stop, 16);
        at!(muster_connections_ops, dial, 24);
        at!(muster_connections_ops, listen, 32);
        at!(muster_connections_ops, unlisten, 40);
        at!(muster_connections_ops, send, 48);
        at!(muster_connections_ops, resume, 56);
        at!(muster_connections_ops, finish, 64);
        at!(muster_connections_ops, authenticated, 72);
        at!(muster_connections_ops, segment_shared, 80);
        at!(muster_connections_ops, close, 88);
        at!(muster_connections_ops, abort, 96);
        assert_eq!(size_of::<muster_broker_ops>(), 32);
        at!(muster_broker_ops, struct_size, 0);
        at!(muster_broker_ops, reserved, 4);
        at!(muster_broker_ops, open, 8);
        at!(muster_broker_ops, stats, 16);
        at!(muster_broker_ops, close, 24);
        assert_eq!(size_of::<muster_fabric_ops>(), 136);
        at!(muster_fabric_ops, struct_size, 0);
        at!(muster_fabric_ops, flags, 4);
        at!(muster_fabric_ops, message_bytes, 8);
        at!(muster_fabric_ops, credit_bytes, 16);
        at!(muster_fabric_ops, start, 24);
        at!(muster_fabric_ops, stop, 32);
        at!(muster_fabric_ops, publish, 40);
        at!(muster_fabric_ops, withdraw, 48);
        at!(muster_fabric_ops, resolve, 56);
        at!(muster_fabric_ops, send, 64);
        at!(muster_fabric_ops, authenticated, 72);
        at!(muster_fabric_ops, segment_shared, 80);
        at!(muster_fabric_ops, forget, 88);
        at!(muster_fabric_ops, headroom_bytes, 96);
        at!(muster_fabric_ops, send_buffer, 104);
        at!(muster_fabric_ops, broker, 112);
        at!(muster_fabric_ops, send_multicast, 120);
        at!(muster_fabric_ops, poll, 128);
        assert_eq!(size_of::<muster_host>(), 272);
        at!(muster_host, struct_size, 0);
        at!(muster_host, flags, 4);
        at!(muster_host, library, 8);
        at!(muster_host, log, 16);
        at!(muster_host, derive, 24);
        at!(muster_host, add_connections, 32);
        at!(muster_host, add_fabric, 40);
        at!(muster_host, watch_fd, 48);
        at!(muster_host, change_fd, 56);
        at!(muster_host, unwatch_fd, 64);
        at!(muster_host, start_timer, 72);
        at!(muster_host, stop_timer, 80);
        at!(muster_host, post, 88);
        at!(muster_host, acquire_buffer, 96);
        at!(muster_host, release_buffer, 104);
        at!(muster_host, accepted, 112);
        at!(muster_host, connected, 120);
        at!(muster_host, deliver, 128);
        at!(muster_host, writable, 136);
        at!(muster_host, lost, 144);
        at!(muster_host, resolved, 152);
        at!(muster_host, message, 160);
        at!(muster_host, credit, 168);
        at!(muster_host, ready, 176);
        at!(muster_host, peer_lost, 184);
        at!(muster_host, share_segment, 192);
        at!(muster_host, share_segment_with_peer, 200);
        at!(muster_host, published, 208);
        at!(muster_host, peer_flags, 216);
        at!(muster_host, message_lent, 224);
        at!(muster_host, message_multicast, 232);
        at!(muster_host, add_store, 240);
        at!(muster_host, store_opened, 248);
        at!(muster_host, store_done, 256);
        at!(muster_host, store_failed, 264);
    }
}
