// SPDX-License-Identifier: MIT
// Written by bindings/rust/generate from include/muster/group.h; do not edit.
//! What `include/muster/group.h` declares.
#![allow(unused_imports)]
#![cfg_attr(rustfmt, rustfmt_skip)]

use super::*;
use std::os::raw::{c_char, c_int, c_void};

/// Opaque; made by muster_group_open() or muster_group_split().
#[repr(C)]
pub struct muster_group {
    _private: [u8; 0],
}

// muster_type: The type of an element.
pub const MUSTER_TYPE_I8: u32 = 1;
pub const MUSTER_TYPE_U8: u32 = 2;
pub const MUSTER_TYPE_I16: u32 = 3;
pub const MUSTER_TYPE_U16: u32 = 4;
pub const MUSTER_TYPE_I32: u32 = 5;
pub const MUSTER_TYPE_U32: u32 = 6;
pub const MUSTER_TYPE_I64: u32 = 7;
pub const MUSTER_TYPE_U64: u32 = 8;
pub const MUSTER_TYPE_F16: u32 = 9;
pub const MUSTER_TYPE_BF16: u32 = 10;
pub const MUSTER_TYPE_F32: u32 = 11;
pub const MUSTER_TYPE_F64: u32 = 12;
pub const MUSTER_TYPE_OF_REDUCTION: u32 = 13;

// muster_reduction: How two elements become one.
pub const MUSTER_REDUCE_SUM: u32 = 1;
pub const MUSTER_REDUCE_PRODUCT: u32 = 2;
pub const MUSTER_REDUCE_MIN: u32 = 3;
pub const MUSTER_REDUCE_MAX: u32 = 4;
pub const MUSTER_REDUCE_AND: u32 = 5;
pub const MUSTER_REDUCE_OR: u32 = 6;
pub const MUSTER_REDUCE_XOR: u32 = 7;

// muster_group_kind: What an operation does.
pub const MUSTER_GROUP_BARRIER: u32 = 1;
pub const MUSTER_GROUP_BROADCAST: u32 = 2;
pub const MUSTER_GROUP_REDUCE: u32 = 3;
pub const MUSTER_GROUP_ALL_REDUCE: u32 = 4;
pub const MUSTER_GROUP_REDUCE_SCATTER: u32 = 5;
pub const MUSTER_GROUP_SCAN: u32 = 6;
pub const MUSTER_GROUP_GATHER: u32 = 7;
pub const MUSTER_GROUP_ALL_GATHER: u32 = 8;
pub const MUSTER_GROUP_SCATTER: u32 = 9;
pub const MUSTER_GROUP_ALL_TO_ALL: u32 = 10;

// muster_group_operation_flag: Flags of muster_group_operation.flags.
pub const MUSTER_GROUP_EXCLUSIVE: u32 = 1;

// muster_group_flag: Flags of muster_group_config.flags.
pub const MUSTER_GROUP_NO_SHARED_MEMORY: u32 = 1;
pub const MUSTER_GROUP_MESSAGES: u32 = 2;
pub const MUSTER_GROUP_RANK_OF_MEMBER: u32 = 4;

// muster_group_member_state: What is known about a member; the value of muster_group_status.state.
pub const MUSTER_GROUP_MEMBER_IDLE: u32 = 1;
pub const MUSTER_GROUP_MEMBER_ACTIVE: u32 = 2;
pub const MUSTER_GROUP_MEMBER_MISSING: u32 = 3;
pub const MUSTER_GROUP_MEMBER_FAILED: u32 = 4;

/// A reduction of the host: combines the elements of two arrays, in place: inout\[i\] = combine(inout\[i\], input\[i\]).
pub type muster_reduce_fn = Option<unsafe extern "C" fn(user: *mut c_void, input: *const c_void, inout: *mut c_void, count: u64)>;

/// A collective operation.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_group_operation {
    pub struct_size: u32,
    pub kind: u32,
    pub r#type: u32,
    pub reduction: u32,
    pub root: u32,
    pub flags: u32,
    pub count: u64,
    pub input: *const c_void,
    pub output: *mut c_void,
    pub counts: *const u64,
    pub output_counts: *const u64,
}

impl Default for muster_group_operation {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_group_operation {
    pub fn sized() -> Self {
        muster_group_operation { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// How to open a group.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_group_config {
    pub struct_size: u32,
    pub flags: u32,
    pub rank: u32,
    pub size: u32,
    pub round: *mut muster_round,
    pub store: *mut muster_store,
    pub name: *const c_void,
    pub name_bytes: u64,
    pub listen: *const c_char,
    pub listen_bytes: u64,
    pub addresses: *const c_char,
    pub addresses_bytes: u64,
    pub slot_bytes: u64,
    pub cluster: *mut muster_cluster,
}

impl Default for muster_group_config {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_group_config {
    pub fn sized() -> Self {
        muster_group_config { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// The progress of a member.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_group_status {
    pub state: u32,
    pub kind: u32,
    pub sequence: u64,
    pub shares_memory: u32,
    pub reserved: [u32; 3],
}

impl Default for muster_group_status {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

extern "C" {
    /// Opens a group; returns when all members have connected to each other.
    pub fn muster_group_open(context: *mut muster_context, config: *const muster_group_config, timeout_ns: i64, out_group: *mut *mut muster_group, error: *mut muster_error) -> muster_status;
    /// Divides a group: members that give the same color are a new group, in the order of their keys, and of their ranks where keys are equal.
    pub fn muster_group_split(group: *mut muster_group, color: i64, key: i64, timeout_ns: i64, out_group: *mut *mut muster_group, error: *mut muster_error) -> muster_status;
    /// Makes a new stream between each two members, which belongs to the caller and not to the group: for instance for active messages (am.h).
    pub fn muster_group_connect(group: *mut muster_group, timeout_ns: i64, out_streams: *mut *mut muster_stream, capacity: u32, error: *mut muster_error) -> muster_status;
    /// Returns the rank of this member.
    pub fn muster_group_rank(group: *const muster_group) -> u32;
    /// Returns the number of members.
    pub fn muster_group_size(group: *const muster_group) -> u32;
    /// Adds a reduction of the host.
    pub fn muster_group_add_reduction(group: *mut muster_group, element_bytes: u32, combine: muster_reduce_fn, user: *mut c_void, out_reduction: *mut u32) -> muster_status;
    /// Performs an operation.
    pub fn muster_group_run(group: *mut muster_group, operation: *const muster_group_operation, timeout_ns: i64, error: *mut muster_error) -> muster_status;
    /// Begins an operation, as muster_group_run() performs it, on a thread of the library; MUSTER_DONE_CALL has its status and its detail.
    pub fn muster_group_begin(group: *mut muster_group, operation: *const muster_group_operation, timeout_ns: i64, queue: *mut muster_queue, tag: u64, error: *mut muster_error) -> muster_status;
    /// Waits until all members have called it.
    pub fn muster_group_barrier(group: *mut muster_group, timeout_ns: i64, error: *mut muster_error) -> muster_status;
    /// Copies an array of the root to all members.
    pub fn muster_group_broadcast(group: *mut muster_group, data: *mut c_void, count: u64, r#type: u32, root: u32, timeout_ns: i64, error: *mut muster_error) -> muster_status;
    /// Combines the arrays of all members, element by element, at the root.
    pub fn muster_group_reduce(group: *mut muster_group, input: *const c_void, output: *mut c_void, count: u64, r#type: u32, reduction: u32, root: u32, timeout_ns: i64, error: *mut muster_error) -> muster_status;
    /// Combines the arrays of all members, element by element; every member receives the result.
    pub fn muster_group_all_reduce(group: *mut muster_group, input: *const c_void, output: *mut c_void, count: u64, r#type: u32, reduction: u32, timeout_ns: i64, error: *mut muster_error) -> muster_status;
    /// Combines the arrays of all members, element by element; each member receives one block of the result.
    pub fn muster_group_reduce_scatter(group: *mut muster_group, input: *const c_void, output: *mut c_void, count: u64, r#type: u32, reduction: u32, timeout_ns: i64, error: *mut muster_error) -> muster_status;
    /// Combines the arrays of ranks 0 to r, element by element; rank r receives the result.
    pub fn muster_group_scan(group: *mut muster_group, input: *const c_void, output: *mut c_void, count: u64, r#type: u32, reduction: u32, timeout_ns: i64, error: *mut muster_error) -> muster_status;
    /// Gathers the arrays of all members at the root.
    pub fn muster_group_gather(group: *mut muster_group, input: *const c_void, output: *mut c_void, count: u64, r#type: u32, root: u32, timeout_ns: i64, error: *mut muster_error) -> muster_status;
    /// Gathers the arrays of all members at all members.
    pub fn muster_group_all_gather(group: *mut muster_group, input: *const c_void, output: *mut c_void, count: u64, r#type: u32, timeout_ns: i64, error: *mut muster_error) -> muster_status;
    /// Gives each member a block of an array of the root.
    pub fn muster_group_scatter(group: *mut muster_group, input: *const c_void, output: *mut c_void, count: u64, r#type: u32, root: u32, timeout_ns: i64, error: *mut muster_error) -> muster_status;
    /// Gives every member a block of the array of every member.
    pub fn muster_group_all_to_all(group: *mut muster_group, input: *const c_void, output: *mut c_void, count: u64, r#type: u32, timeout_ns: i64, error: *mut muster_error) -> muster_status;
    /// Sends bytes to one member, in a group with MUSTER_GROUP_MESSAGES.
    pub fn muster_group_send(group: *mut muster_group, rank: u32, data: *const c_void, data_bytes: u64, timeout_ns: i64, error: *mut muster_error) -> muster_status;
    /// Receives the next message of one member.
    pub fn muster_group_receive(group: *mut muster_group, rank: u32, out_data: *mut c_void, capacity: u64, timeout_ns: i64, out_bytes: *mut u64, error: *mut muster_error) -> muster_status;
    /// Reports the progress of a member, also while another thread waits in an operation.
    pub fn muster_group_get_status(group: *mut muster_group, rank: u32, out_status: *mut muster_group_status) -> muster_status;
    /// Ends the group at all members: their operations end with MUSTER_E_ABORTED, the rank of this member and the text.
    pub fn muster_group_revoke(group: *mut muster_group, text: *const c_char, text_bytes: usize) -> muster_status;
    /// Closes the group in order: waits until all members have called it, as a barrier does.
    pub fn muster_group_close(group: *mut muster_group, timeout_ns: i64, error: *mut muster_error) -> muster_status;
    /// Releases the handle.
    pub fn muster_group_release(group: *mut muster_group);
}

#[cfg(test)]
mod layout {
    use super::*;
    use std::mem::size_of;

    // As the C compiler has them: tests/abi compares it with the same numbers.
    #[test]
    fn structs_are_those_of_c() {
        assert_eq!(size_of::<muster_group_operation>(), 64);
        at!(muster_group_operation, struct_size, 0);
        at!(muster_group_operation, kind, 4);
        at!(muster_group_operation, r#type, 8);
        at!(muster_group_operation, reduction, 12);
        at!(muster_group_operation, root, 16);
        at!(muster_group_operation, flags, 20);
        at!(muster_group_operation, count, 24);
        at!(muster_group_operation, input, 32);
        at!(muster_group_operation, output, 40);
        at!(muster_group_operation, counts, 48);
        at!(muster_group_operation, output_counts, 56);
        assert_eq!(size_of::<muster_group_config>(), 96);
        at!(muster_group_config, struct_size, 0);
        at!(muster_group_config, flags, 4);
        at!(muster_group_config, rank, 8);
        at!(muster_group_config, size, 12);
        at!(muster_group_config, round, 16);
        at!(muster_group_config, store, 24);
        at!(muster_group_config, name, 32);
        at!(muster_group_config, name_bytes, 40);
        at!(muster_group_config, listen, 48);
        at!(muster_group_config, listen_bytes, 56);
        at!(muster_group_config, addresses, 64);
        at!(muster_group_config, addresses_bytes, 72);
        at!(muster_group_config, slot_bytes, 80);
        at!(muster_group_config, cluster, 88);
        assert_eq!(size_of::<muster_group_status>(), 32);
        at!(muster_group_status, state, 0);
        at!(muster_group_status, kind, 4);
        at!(muster_group_status, sequence, 8);
        at!(muster_group_status, shares_memory, 16);
        at!(muster_group_status, reserved, 20);
    }
}
