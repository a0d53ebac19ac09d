// SPDX-License-Identifier: MIT
// Written by bindings/rust/generate from include/muster/message_queue.h; do not edit.
//! What `include/muster/message_queue.h` declares.
#![allow(unused_imports)]
#![cfg_attr(rustfmt, rustfmt_skip)]

use super::*;
use std::os::raw::{c_char, c_int, c_void};

/// Opaque; made by muster_message_queue_create().
#[repr(C)]
pub struct muster_message_queue {
    _private: [u8; 0],
}

// muster_message_queue_ready: Readiness of a message queue; bits of muster_completion.events of MUSTER_EVENT_READY.
pub const MUSTER_MESSAGE_QUEUE_FILLED: u32 = 1;
pub const MUSTER_MESSAGE_QUEUE_HAS_ROOM: u32 = 2;

/// How to make a message queue.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_message_queue_config {
    pub struct_size: u32,
    pub flags: u32,
    pub max_messages: u32,
    pub reserved: u32,
    pub max_bytes: u64,
    pub queue: *mut muster_queue,
    pub tag: u64,
}

impl Default for muster_message_queue_config {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_message_queue_config {
    pub fn sized() -> Self {
        muster_message_queue_config { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// Counters of a message queue since it was created.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_message_queue_stats {
    pub messages: u64,
    pub bytes: u64,
    pub pushed: u64,
    pub popped: u64,
    pub full: u64,
    pub reserved: [u64; 3],
}

impl Default for muster_message_queue_stats {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

extern "C" {
    /// Makes a message queue.
    pub fn muster_message_queue_create(context: *mut muster_context, config: *const muster_message_queue_config, out_queue: *mut *mut muster_message_queue, error: *mut muster_error) -> muster_status;
    /// Appends a message.
    pub fn muster_message_queue_push(queue: *mut muster_message_queue, message: *mut muster_message, timeout_ns: i64) -> muster_status;
    /// Takes the first message.
    pub fn muster_message_queue_pop(queue: *mut muster_message_queue, timeout_ns: i64, out_message: *mut *mut muster_message) -> muster_status;
    /// Returns the counters of a message queue.
    pub fn muster_message_queue_get_stats(queue: *mut muster_message_queue, out_stats: *mut muster_message_queue_stats) -> muster_status;
    /// Ends the calls that wait on a message queue now: they return MUSTER_E_CANCELED.
    pub fn muster_message_queue_cancel(queue: *mut muster_message_queue) -> muster_status;
    /// Closes a message queue: nothing can be pushed any more, and what it has can still be popped.
    pub fn muster_message_queue_close(queue: *mut muster_message_queue) -> muster_status;
    /// Closes and releases a message queue.
    pub fn muster_message_queue_release(queue: *mut muster_message_queue);
}

#[cfg(test)]
mod layout {
    use super::*;
    use std::mem::size_of;

    // As the C compiler has them: tests/abi compares it with the same numbers.
    #[test]
    fn structs_are_those_of_c() {
        assert_eq!(size_of::<muster_message_queue_config>(), 40);
        at!(muster_message_queue_config, struct_size, 0);
        at!(muster_message_queue_config, flags, 4);
        at!(muster_message_queue_config, max_messages, 8);
        at!(muster_message_queue_config, reserved, 12);
        at!(muster_message_queue_config, max_bytes, 16);
        at!(muster_message_queue_config, queue, 24);
        at!(muster_message_queue_config, tag, 32);
        assert_eq!(size_of::<muster_message_queue_stats>(), 64);
        at!(muster_message_queue_stats, messages, 0);
        at!(muster_message_queue_stats, bytes, 8);
        at!(muster_message_queue_stats, pushed, 16);
        at!(muster_message_queue_stats, popped, 24);
        at!(muster_message_queue_stats, full, 32);
        at!(muster_message_queue_stats, reserved, 40);
    }
}
