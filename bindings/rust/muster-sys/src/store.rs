// SPDX-License-Identifier: MIT
// Written by bindings/rust/generate from include/muster/store.h; do not edit.
//! What `include/muster/store.h` declares.
#![allow(unused_imports)]
#![cfg_attr(rustfmt, rustfmt_skip)]

use super::*;
use std::os::raw::{c_char, c_int, c_void};

/// Opaque; made by muster_store_lease().
#[repr(C)]
pub struct muster_lease {
    _private: [u8; 0],
}

/// Opaque; made by muster_store_open() or muster_store_view().
#[repr(C)]
pub struct muster_store {
    _private: [u8; 0],
}

/// Opaque; the result of a request.
#[repr(C)]
pub struct muster_store_result {
    _private: [u8; 0],
}

// muster_store_op_kind: What an operation does; the value of muster_store_op.kind.
pub const MUSTER_STORE_NONE: u32 = 0;
pub const MUSTER_STORE_GET: u32 = 1;
pub const MUSTER_STORE_READ: u32 = 2;
pub const MUSTER_STORE_SET: u32 = 3;
pub const MUSTER_STORE_ADD: u32 = 4;
pub const MUSTER_STORE_APPEND: u32 = 5;
pub const MUSTER_STORE_DELETE: u32 = 6;
pub const MUSTER_STORE_CHECK: u32 = 7;
pub const MUSTER_STORE_WAIT: u32 = 8;
pub const MUSTER_STORE_COUNT: u32 = 9;
pub const MUSTER_STORE_LIST: u32 = 10;
pub const MUSTER_STORE_KEYS: u32 = 11;
pub const MUSTER_STORE_PUSH: u32 = 12;
pub const MUSTER_STORE_POP: u32 = 13;
pub const MUSTER_STORE_TRY_POP: u32 = 14;
pub const MUSTER_STORE_LENGTH: u32 = 15;
pub const MUSTER_STORE_WATCH: u32 = 16;
pub const MUSTER_STORE_BARRIER: u32 = 17;
pub const MUSTER_STORE_CLEAR: u32 = 18;

// muster_store_condition: The condition of an operation; the value of muster_store_op.condition.
pub const MUSTER_STORE_ALWAYS: u32 = 0;
pub const MUSTER_STORE_IF_ABSENT: u32 = 1;
pub const MUSTER_STORE_IF_PRESENT: u32 = 2;
pub const MUSTER_STORE_IF_VALUE: u32 = 3;
pub const MUSTER_STORE_IF_VERSION: u32 = 4;

// muster_store_entry_flag: Flags of muster_store_entry.flags.
pub const MUSTER_STORE_PRESENT: u32 = 1;
pub const MUSTER_STORE_FAILED: u32 = 2;
pub const MUSTER_STORE_MORE: u32 = 4;
pub const MUSTER_STORE_LEASE_ENDED: u32 = 8;
pub const MUSTER_STORE_LEASE_SILENT: u32 = 16;
pub const MUSTER_STORE_LEASE_BROKEN: u32 = 32;

// muster_store_capability: What a store supports; bits of muster_store_capabilities().
pub const MUSTER_STORE_CAN_TRANSACT: u32 = 1;
pub const MUSTER_STORE_CAN_QUEUE: u32 = 2;
pub const MUSTER_STORE_CAN_WAIT: u32 = 4;
pub const MUSTER_STORE_CAN_WATCH: u32 = 8;
pub const MUSTER_STORE_CAN_LEASE: u32 = 16;
pub const MUSTER_STORE_CAN_BARRIER: u32 = 32;

// muster_lease_flag: Flags of muster_store_lease().
pub const MUSTER_LEASE_MANUAL: u32 = 1;
pub const MUSTER_LEASE_CONNECTED: u32 = 2;

/// One operation; 88 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_store_op {
    pub kind: u32,
    pub condition: u32,
    pub key: *const c_void,
    pub key_bytes: u64,
    pub value: *const c_void,
    pub value_bytes: u64,
    pub expected: *const c_void,
    pub expected_bytes: u64,
    pub version: u64,
    pub number: i64,
    pub lease: u64,
    pub count: u32,
    pub rank: u32,
}

impl Default for muster_store_op {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// The result of one operation; 56 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_store_entry {
    pub op: u32,
    pub flags: u32,
    pub version: u64,
    pub number: i64,
    pub key: *const c_void,
    pub key_bytes: u64,
    pub value: *const c_void,
    pub value_bytes: u64,
}

impl Default for muster_store_entry {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// How to open a store; all zero means the defaults named here.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_store_config {
    pub struct_size: u32,
    pub flags: u32,
    pub max_bytes: u64,
    pub lost_after_ns: i64,
    pub grace_ns: i64,
    pub reserved: u64,
}

impl Default for muster_store_config {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_store_config {
    pub fn sized() -> Self {
        muster_store_config { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

extern "C" {
    /// Opens a store.
    pub fn muster_store_open(context: *mut muster_context, url: *const c_char, url_bytes: usize, config: *const muster_store_config, timeout_ns: i64, out_store: *mut *mut muster_store, error: *mut muster_error) -> muster_status;
    /// Begins to open a store, as muster_store_open() does.
    pub fn muster_store_open_begin(context: *mut muster_context, url: *const c_char, url_bytes: usize, config: *const muster_store_config, timeout_ns: i64, queue: *mut muster_queue, tag: u64, error: *mut muster_error) -> muster_status;
    /// Makes a view of a store: the same store, where the view adds a prefix to the name of every key, queue and barrier in requests, and removes it from the names in results.
    pub fn muster_store_view(store: *mut muster_store, prefix: *const c_void, prefix_bytes: usize, out_view: *mut *mut muster_store, error: *mut muster_error) -> muster_status;
    /// Returns what a store supports.
    pub fn muster_store_capabilities(store: *const muster_store) -> u32;
    /// Performs a request and waits for its result.
    pub fn muster_store_do(store: *mut muster_store, ops: *const muster_store_op, op_count: usize, timeout_ns: i64, out_result: *mut *mut muster_store_result, error: *mut muster_error) -> muster_status;
    /// Begins a request, as muster_store_do() performs it.
    pub fn muster_store_begin(store: *mut muster_store, ops: *const muster_store_op, op_count: usize, timeout_ns: i64, queue: *mut muster_queue, tag: u64, out_request: *mut u64, error: *mut muster_error) -> muster_status;
    /// Cancels a request: it ends with MUSTER_E_CANCELED and is not applied.
    pub fn muster_store_cancel(store: *mut muster_store, request: u64) -> muster_status;
    /// Makes a lease: keys that are set with it are deleted when it ends.
    pub fn muster_store_lease(store: *mut muster_store, ttl_ns: i64, flags: u32, timeout_ns: i64, out_lease: *mut *mut muster_lease, error: *mut muster_error) -> muster_status;
    /// Begins to make a lease, as muster_store_lease() does.
    pub fn muster_store_lease_begin(store: *mut muster_store, ttl_ns: i64, flags: u32, timeout_ns: i64, queue: *mut muster_queue, tag: u64, out_request: *mut u64, error: *mut muster_error) -> muster_status;
    /// Returns the id of a lease, for muster_store_op.lease.
    pub fn muster_lease_id(lease: *const muster_lease) -> u64;
    /// Renews a MANUAL lease: its time to live begins anew.
    pub fn muster_lease_keep(lease: *mut muster_lease) -> muster_status;
    /// Ends a lease at once: its keys are deleted at one moment.
    pub fn muster_lease_end(lease: *mut muster_lease, timeout_ns: i64, error: *mut muster_error) -> muster_status;
    /// Begins to end a lease, as muster_lease_end() does; MUSTER_DONE_STORE has its status, and no object.
    pub fn muster_lease_end_begin(lease: *mut muster_lease, timeout_ns: i64, queue: *mut muster_queue, tag: u64, error: *mut muster_error) -> muster_status;
    /// Releases the handle.
    pub fn muster_lease_release(lease: *mut muster_lease);
    /// Releases the handle.
    pub fn muster_store_release(store: *mut muster_store);
    /// Returns the number of entries in a result: one for each operation, and for LIST, KEYS and WATCH one for each key or change.
    pub fn muster_store_result_count(result: *const muster_store_result) -> u64;
    /// Reads one entry of a result.
    pub fn muster_store_result_entry(result: *const muster_store_result, index: u64, out_entry: *mut muster_store_entry) -> muster_status;
    /// Returns the revision of the store at the time the request was applied.
    pub fn muster_store_result_revision(result: *const muster_store_result) -> u64;
    /// Releases one reference.
    pub fn muster_store_result_release(result: *mut muster_store_result);
}

#[cfg(test)]
mod layout {
    use super::*;
    use std::mem::size_of;

    // As the C compiler has them: tests/abi compares it with the same numbers.
    #[test]
    fn structs_are_those_of_c() {
        assert_eq!(size_of::<muster_store_op>(), 88);
        at!(muster_store_op, kind, 0);
        at!(muster_store_op, condition, 4);
        at!(muster_store_op, key, 8);
        at!(muster_store_op, key_bytes, 16);
        at!(muster_store_op, value, 24);
        at!(muster_store_op, value_bytes, 32);
        at!(muster_store_op, expected, 40);
        at!(muster_store_op, expected_bytes, 48);
        at!(muster_store_op, version, 56);
        at!(muster_store_op, number, 64);
        at!(muster_store_op, lease, 72);
        at!(muster_store_op, count, 80);
        at!(muster_store_op, rank, 84);
        assert_eq!(size_of::<muster_store_entry>(), 56);
        at!(muster_store_entry, op, 0);
        at!(muster_store_entry, flags, 4);
        at!(muster_store_entry, version, 8);
        at!(muster_store_entry, number, 16);
        at!(muster_store_entry, key, 24);
        at!(muster_store_entry, key_bytes, 32);
        at!(muster_store_entry, value, 40);
        at!(muster_store_entry, value_bytes, 48);
        assert_eq!(size_of::<muster_store_config>(), 40);
        at!(muster_store_config, struct_size, 0);
        at!(muster_store_config, flags, 4);
        at!(muster_store_config, max_bytes, 8);
        at!(muster_store_config, lost_after_ns, 16);
        at!(muster_store_config, grace_ns, 24);
        at!(muster_store_config, reserved, 32);
    }
}
