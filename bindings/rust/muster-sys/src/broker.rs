// SPDX-License-Identifier: MIT
// Written by bindings/rust/generate from include/muster/broker.h; do not edit.
//! What `include/muster/broker.h` declares.
#![allow(unused_imports)]
#![cfg_attr(rustfmt, rustfmt_skip)]

use super::*;
use std::os::raw::{c_char, c_int, c_void};

/// Opaque; made by muster_broker_open().
#[repr(C)]
pub struct muster_broker {
    _private: [u8; 0],
}

// muster_broker_flag: Flags of muster_broker_config.flags.
pub const MUSTER_BROKER_OPEN: u32 = 1;
pub const MUSTER_BROKER_NO_CURVE: u32 = 2;

/// How to run a broker; all zero means the defaults named here.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_broker_config {
    pub struct_size: u32,
    pub flags: u32,
    pub parent: *const c_char,
    pub parent_bytes: u64,
    pub window_bytes: u64,
    pub max_members: u32,
    pub reserved: u32,
    pub curve_file: *const c_char,
    pub curve_file_bytes: u64,
    pub broker_secret: *const c_void,
    pub broker_secret_bytes: u64,
}

impl Default for muster_broker_config {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_broker_config {
    pub fn sized() -> Self {
        muster_broker_config { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// Counters of a broker.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_broker_stats {
    pub members: u64,
    pub brokers: u64,
    pub has_parent: u64,
    pub names: u64,
    pub pairs: u64,
    pub messages: u64,
    pub bytes: u64,
    pub queued_bytes: u64,
    pub connections: u64,
    pub refused: u64,
    pub lost: u64,
    pub multicasts: u64,
    pub reserved: [u64; 4],
}

impl Default for muster_broker_stats {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

extern "C" {
    /// Starts a broker on threads of its own; they end with it, and at the latest with the context.
    pub fn muster_broker_open(context: *mut muster_context, address: *const c_char, address_bytes: usize, config: *const muster_broker_config, out_broker: *mut *mut muster_broker, error: *mut muster_error) -> muster_status;
    /// Copies the address that members use: with the actual port, `zmq://127.0.0.1:8100/`, and with a broker secret the options that members need, `?broker=KEY` and `curve=no` where it applies.
    pub fn muster_broker_address(broker: *mut muster_broker, out_text: *mut c_char, capacity: usize, out_bytes: *mut usize) -> muster_status;
    /// Reads the counters of a broker; of a closed one those of its end.
    pub fn muster_broker_get_stats(broker: *mut muster_broker, out_stats: *mut muster_broker_stats) -> muster_status;
    /// Stops a broker and closes the connections of its members.
    pub fn muster_broker_close(broker: *mut muster_broker, timeout_ns: i64) -> muster_status;
    /// Begins to stop a broker, as muster_broker_close() does; MUSTER_DONE_CALL follows when its threads have ended.
    pub fn muster_broker_close_begin(broker: *mut muster_broker, timeout_ns: i64, queue: *mut muster_queue, tag: u64, error: *mut muster_error) -> muster_status;
    /// Releases one reference; with the last one the broker is stopped at once, by another thread.
    pub fn muster_broker_release(broker: *mut muster_broker);
}

#[cfg(test)]
mod layout {
    use super::*;
    use std::mem::size_of;

    // As the C compiler has them: tests/abi compares it with the same numbers.
    #[test]
    fn structs_are_those_of_c() {
        assert_eq!(size_of::<muster_broker_config>(), 72);
        at!(muster_broker_config, struct_size, 0);
        at!(muster_broker_config, flags, 4);
        at!(muster_broker_config, parent, 8);
        at!(muster_broker_config, parent_bytes, 16);
        at!(muster_broker_config, window_bytes, 24);
        at!(muster_broker_config, max_members, 32);
        at!(muster_broker_config, reserved, 36);
        at!(muster_broker_config, curve_file, 40);
        at!(muster_broker_config, curve_file_bytes, 48);
        at!(muster_broker_config, broker_secret, 56);
        at!(muster_broker_config, broker_secret_bytes, 64);
        assert_eq!(size_of::<muster_broker_stats>(), 128);
        at!(muster_broker_stats, members, 0);
        at!(muster_broker_stats, brokers, 8);
        at!(muster_broker_stats, has_parent, 16);
        at!(muster_broker_stats, names, 24);
        at!(muster_broker_stats, pairs, 32);
        at!(muster_broker_stats, messages, 40);
        at!(muster_broker_stats, bytes, 48);
        at!(muster_broker_stats, queued_bytes, 56);
        at!(muster_broker_stats, connections, 64);
        at!(muster_broker_stats, refused, 72);
        at!(muster_broker_stats, lost, 80);
        at!(muster_broker_stats, multicasts, 88);
        at!(muster_broker_stats, reserved, 96);
    }
}
