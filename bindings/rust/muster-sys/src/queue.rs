// SPDX-License-Identifier: MIT
// Written by bindings/rust/generate from include/muster/queue.h; do not edit.
//! What `include/muster/queue.h` declares.
#![allow(unused_imports)]
#![cfg_attr(rustfmt, rustfmt_skip)]

use super::*;
use std::os::raw::{c_char, c_int, c_void};

// muster_completion_kind: The kind of an entry; the value of muster_completion.kind.
pub const MUSTER_DONE_READ: i32 = 1;
pub const MUSTER_DONE_RELEASED: i32 = 2;
pub const MUSTER_DONE_DIAL: i32 = 3;
pub const MUSTER_DONE_EXIT: i32 = 4;
pub const MUSTER_DONE_USER: i32 = 5;
pub const MUSTER_DONE_STORE: i32 = 6;
pub const MUSTER_DONE_LEASE: i32 = 7;
pub const MUSTER_DONE_RENDEZVOUS: i32 = 8;
pub const MUSTER_DONE_AGENT: i32 = 9;
pub const MUSTER_DONE_BROADCAST: i32 = 10;
pub const MUSTER_DONE_OPEN: i32 = 11;
pub const MUSTER_DONE_CALL: i32 = 12;
pub const MUSTER_DONE_LISTEN: i32 = 13;
pub const MUSTER_DONE_MESSAGE: i32 = 14;
pub const MUSTER_DONE_AM: i32 = 15;
pub const MUSTER_DONE_MEMORY: i32 = 18;
pub const MUSTER_EVENT_READY: i32 = 16;
pub const MUSTER_EVENT_LOG: i32 = 17;
pub const MUSTER_EVENT_AGENT: i32 = 19;
pub const MUSTER_REQUEST_OPEN: i32 = 32;
pub const MUSTER_REQUEST_LISTEN: i32 = 33;
pub const MUSTER_REQUEST_CLOSE: i32 = 34;
pub const MUSTER_REQUEST_CANCEL: i32 = 35;
pub const MUSTER_REQUEST_STORE: i32 = 36;
pub const MUSTER_REQUEST_RENDEZVOUS: i32 = 37;
pub const MUSTER_REQUEST_MANAGER: i32 = 38;
pub const MUSTER_REQUEST_AM: i32 = 39;

// muster_queue_fd_event: Events of a descriptor of the host; bits of muster_completion.events.
pub const MUSTER_QUEUE_FD_READABLE: u32 = 1;
pub const MUSTER_QUEUE_FD_WRITABLE: u32 = 2;
pub const MUSTER_QUEUE_FD_ENDED: u32 = 4;

/// Handles one entry that belongs to no callback table; see muster_queue_dispatch().
pub type muster_queue_handler_fn = Option<unsafe extern "C" fn(user: *mut c_void, entry: *const muster_completion, error: *const muster_error)>;

/// Wakes a foreign event loop; the result is ignored.
pub type muster_wake_fn = Option<unsafe extern "C" fn(user: *mut c_void) -> c_int>;

/// One entry taken off a queue; 64 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_completion {
    pub kind: i32,
    pub status: muster_status,
    pub tag: u64,
    pub object: *mut c_void,
    pub bytes: u64,
    pub request: u64,
    pub events: u32,
    pub reserved: [u32; 5],
}

impl Default for muster_completion {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// How to make a queue; all zero means the defaults named here.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_queue_config {
    pub struct_size: u32,
    pub flags: u32,
    pub capacity: u32,
    pub reserved: u32,
}

impl Default for muster_queue_config {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_queue_config {
    pub fn sized() -> Self {
        muster_queue_config { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// Counters of a queue since its start.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_queue_stats {
    pub depth: u64,
    pub outstanding: u64,
    pub taken: u64,
    pub wakeups: u64,
    pub log_dropped: u64,
    pub reserved: [u64; 3],
}

impl Default for muster_queue_stats {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

extern "C" {
    /// Makes a completion queue.
    pub fn muster_queue_create(context: *mut muster_context, config: *const muster_queue_config, out_queue: *mut *mut muster_queue, error: *mut muster_error) -> muster_status;
    /// Takes the oldest entry off a queue.
    pub fn muster_queue_next(queue: *mut muster_queue, timeout_ns: i64, out: *mut muster_completion, error: *mut muster_error) -> muster_status;
    /// Takes entries off a queue and runs callbacks for them on this thread: requests are passed to the table with which their transport was registered, all other entries to the handler.
    pub fn muster_queue_dispatch(queue: *mut muster_queue, timeout_ns: i64, handler: muster_queue_handler_fn, user: *mut c_void, out_count: *mut u64) -> muster_status;
    /// Ends the wait of every thread that is inside muster_queue_next() or muster_queue_dispatch() now.
    pub fn muster_queue_cancel(queue: *mut muster_queue) -> muster_status;
    /// Cancels the operations that were begun with this queue and this tag.
    pub fn muster_queue_cancel_operation(queue: *mut muster_queue, tag: u64) -> muster_status;
    /// Adds an entry of the caller to a queue, for instance to wake a waiter with a message.
    pub fn muster_queue_post(queue: *mut muster_queue, tag: u64, value: u64) -> muster_status;
    /// Returns a descriptor that polls readable while the queue may have entries.
    pub fn muster_queue_fd(queue: *mut muster_queue, out_fd: *mut i32) -> muster_status;
    /// Watches a descriptor of the host: a socket, a pipe, an eventfd, anything that poll() accepts.
    pub fn muster_queue_watch_fd(queue: *mut muster_queue, fd: i32, events: u32, tag: u64, error: *mut muster_error) -> muster_status;
    /// Ends the watch of a descriptor: after return, no event of it will be taken.
    pub fn muster_queue_unwatch_fd(queue: *mut muster_queue, fd: i32) -> muster_status;
    /// Sets a function that is called when a queue turns from empty to non-empty.
    pub fn muster_queue_set_wake(queue: *mut muster_queue, wake: muster_wake_fn, user: *mut c_void) -> muster_status;
    /// Closes a queue: no further operations are accepted, its entries can still be taken, waiters return.
    pub fn muster_queue_close(queue: *mut muster_queue) -> muster_status;
    /// Releases the handle.
    pub fn muster_queue_release(queue: *mut muster_queue);
    /// Reads the counters of a queue.
    pub fn muster_queue_get_stats(queue: *mut muster_queue, out_stats: *mut muster_queue_stats) -> muster_status;
}

#[cfg(test)]
mod layout {
    use super::*;
    use std::mem::size_of;

    // As the C compiler has them: tests/abi compares it with the same numbers.
    #[test]
    fn structs_are_those_of_c() {
        assert_eq!(size_of::<muster_completion>(), 64);
        at!(muster_completion, kind, 0);
        at!(muster_completion, status, 4);
        at!(muster_completion, tag, 8);
        at!(muster_completion, object, 16);
        at!(muster_completion, bytes, 24);
        at!(muster_completion, request, 32);
        at!(muster_completion, events, 40);
        at!(muster_completion, reserved, 44);
        assert_eq!(size_of::<muster_queue_config>(), 16);
        at!(muster_queue_config, struct_size, 0);
        at!(muster_queue_config, flags, 4);
        at!(muster_queue_config, capacity, 8);
        at!(muster_queue_config, reserved, 12);
        assert_eq!(size_of::<muster_queue_stats>(), 64);
        at!(muster_queue_stats, depth, 0);
        at!(muster_queue_stats, outstanding, 8);
        at!(muster_queue_stats, taken, 16);
        at!(muster_queue_stats, wakeups, 24);
        at!(muster_queue_stats, log_dropped, 32);
        at!(muster_queue_stats, reserved, 40);
    }
}
