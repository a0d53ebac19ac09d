// SPDX-License-Identifier: MIT
// Written by bindings/rust/generate from include/muster/rendezvous.h; do not edit.
//! What `include/muster/rendezvous.h` declares.
#![allow(unused_imports)]
#![cfg_attr(rustfmt, rustfmt_skip)]

use super::*;
use std::os::raw::{c_char, c_int, c_void};

/// Opaque; one member of a run, made by muster_rendezvous_open().
#[repr(C)]
pub struct muster_rendezvous {
    _private: [u8; 0],
}

/// Opaque; the result of a join.
#[repr(C)]
pub struct muster_round {
    _private: [u8; 0],
}

// muster_rendezvous_flag: Flags of muster_rendezvous_config.flags.
pub const MUSTER_RENDEZVOUS_HAS_RANK: u32 = 1;
pub const MUSTER_RENDEZVOUS_REOPEN: u32 = 2;
pub const MUSTER_RENDEZVOUS_DISCARD_STATE: u32 = 4;

// muster_rendezvous_operation: The operation that muster_rendezvous_begin() begins.
pub const MUSTER_RENDEZVOUS_JOIN: u32 = 1;
pub const MUSTER_RENDEZVOUS_LEAVE: u32 = 2;
pub const MUSTER_RENDEZVOUS_EXIT: u32 = 3;
pub const MUSTER_RENDEZVOUS_ABORT: u32 = 4;
pub const MUSTER_RENDEZVOUS_CLOSE: u32 = 5;

// muster_rendezvous_event_kind: The kind of an event; the value of muster_rendezvous_event.kind.
pub const MUSTER_RENDEZVOUS_JOINED: u32 = 1;
pub const MUSTER_RENDEZVOUS_LAST_CALL: u32 = 2;
pub const MUSTER_RENDEZVOUS_COMPLETE: u32 = 3;
pub const MUSTER_RENDEZVOUS_LEFT: u32 = 4;
pub const MUSTER_RENDEZVOUS_DEAD: u32 = 5;
pub const MUSTER_RENDEZVOUS_WAITING: u32 = 6;
pub const MUSTER_RENDEZVOUS_ABORTED: u32 = 7;
pub const MUSTER_RENDEZVOUS_EXPELLED: u32 = 8;
pub const MUSTER_RENDEZVOUS_CLOSED: u32 = 9;
pub const MUSTER_RENDEZVOUS_LOST: u32 = 10;

// muster_rendezvous_phase: The phase of a member; the value of muster_rendezvous_state.phase.
pub const MUSTER_RENDEZVOUS_PHASE_IDLE: u32 = 0;
pub const MUSTER_RENDEZVOUS_PHASE_JOINING: u32 = 1;
pub const MUSTER_RENDEZVOUS_PHASE_JOINED: u32 = 2;

// muster_rendezvous_state_flag: Flags of muster_rendezvous_state.flags.
pub const MUSTER_RENDEZVOUS_IS_CLOSED: u32 = 1;
pub const MUSTER_RENDEZVOUS_IS_LAST_CALL: u32 = 2;
pub const MUSTER_RENDEZVOUS_IS_LEADER: u32 = 4;

// muster_round_flag: Flags of muster_round_info.flags.
pub const MUSTER_ROUND_IS_OVER: u32 = 1;

/// How to open a rendezvous; zero means the default named here.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_rendezvous_config {
    pub struct_size: u32,
    pub flags: u32,
    pub run_id: *const c_void,
    pub run_id_bytes: u64,
    pub url: *const c_void,
    pub url_bytes: u64,
    pub store: *mut muster_store,
    pub address: *const c_void,
    pub address_bytes: u64,
    pub order_key: *const c_void,
    pub order_key_bytes: u64,
    pub min: u32,
    pub max: u32,
    pub rank: u32,
    pub keep_alive_attempts: u32,
    pub keep_alive_ns: i64,
    pub last_call_ns: i64,
    pub queue: *mut muster_queue,
    pub tag: u64,
    pub state_dir: *const c_void,
    pub state_dir_bytes: u64,
    pub majority_timeout_ns: i64,
    pub reserved: [u64; 1],
}

impl Default for muster_rendezvous_config {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_rendezvous_config {
    pub fn sized() -> Self {
        muster_rendezvous_config { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// One event; 256 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_rendezvous_event {
    pub kind: u32,
    pub rank: u32,
    pub round: u64,
    pub count: u32,
    pub text_bytes: u32,
    pub text: [c_char; 232],
}

impl Default for muster_rendezvous_event {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// What a member knows; 88 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_rendezvous_state {
    pub phase: u32,
    pub flags: u32,
    pub round: u64,
    pub joined: u32,
    pub missing: u32,
    pub waiting: u32,
    pub spares: u32,
    pub present: u32,
    pub exiting: u32,
    pub last_call_remaining_ns: i64,
    pub reserved: [u64; 5],
}

impl Default for muster_rendezvous_state {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// Properties of a round; 64 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_round_info {
    pub number: u64,
    pub rank: u32,
    pub world: u32,
    pub flags: u32,
    pub reserved: [u32; 3],
    pub digest: [u8; 32],
}

impl Default for muster_round_info {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// One member of a round; its pointers are valid until the round is released.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_round_member_info {
    pub address: *const c_void,
    pub address_bytes: u64,
    pub reserved: u64,
}

impl Default for muster_round_member_info {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

extern "C" {
    /// Opens a rendezvous.
    pub fn muster_rendezvous_open(context: *mut muster_context, config: *const muster_rendezvous_config, timeout_ns: i64, out_rendezvous: *mut *mut muster_rendezvous, error: *mut muster_error) -> muster_status;
    /// Begins to open a rendezvous, as muster_rendezvous_open() does.
    pub fn muster_rendezvous_open_begin(context: *mut muster_context, config: *const muster_rendezvous_config, timeout_ns: i64, queue: *mut muster_queue, tag: u64, error: *mut muster_error) -> muster_status;
    /// Waits for a round and joins it.
    pub fn muster_rendezvous_join(rendezvous: *mut muster_rendezvous, timeout_ns: i64, out_round: *mut *mut muster_round, error: *mut muster_error) -> muster_status;
    /// Leaves the round, or stops waiting for one.
    pub fn muster_rendezvous_leave(rendezvous: *mut muster_rendezvous, timeout_ns: i64, error: *mut muster_error) -> muster_status;
    /// Waits until all members that are still in the round have called this function: the exit barrier, which keeps a member from ending while others still need it.
    pub fn muster_rendezvous_exit(rendezvous: *mut muster_rendezvous, timeout_ns: i64, error: *mut muster_error) -> muster_status;
    /// Aborts the round of the member: the round is over at once for all its members, including those that do not respond.
    pub fn muster_rendezvous_abort(rendezvous: *mut muster_rendezvous, reason: *const c_void, reason_bytes: usize, timeout_ns: i64, error: *mut muster_error) -> muster_status;
    /// Closes the run: no further round begins, and members that wait for one are notified.
    pub fn muster_rendezvous_close(rendezvous: *mut muster_rendezvous, reason: *const c_void, reason_bytes: usize, timeout_ns: i64, error: *mut muster_error) -> muster_status;
    /// Begins one of the operations above.
    pub fn muster_rendezvous_begin(rendezvous: *mut muster_rendezvous, operation: u32, reason: *const c_void, reason_bytes: usize, timeout_ns: i64, queue: *mut muster_queue, tag: u64, error: *mut muster_error) -> muster_status;
    /// Cancels every operation of this member that is in progress, whether it was begun or a thread waits for it, and the waits in muster_rendezvous_next_event().
    pub fn muster_rendezvous_cancel(rendezvous: *mut muster_rendezvous) -> muster_status;
    /// Takes the oldest event.
    pub fn muster_rendezvous_next_event(rendezvous: *mut muster_rendezvous, timeout_ns: i64, out_event: *mut muster_rendezvous_event) -> muster_status;
    /// Reads what the member currently knows, without a request to the store.
    pub fn muster_rendezvous_get_state(rendezvous: *mut muster_rendezvous, out_state: *mut muster_rendezvous_state) -> muster_status;
    /// Lists the members that wait for the next round: their addresses, each made printable and followed by a line feed, as many as fit into the destination and at most 1000, in no particular order.
    pub fn muster_rendezvous_list(rendezvous: *mut muster_rendezvous, out_text: *mut c_char, capacity: usize, timeout_ns: i64, out_bytes: *mut usize, error: *mut muster_error) -> muster_status;
    /// Begins to list the members that wait for the next round, as muster_rendezvous_list() does; MUSTER_DONE_CALL has the length of the text in its bytes.
    pub fn muster_rendezvous_list_begin(rendezvous: *mut muster_rendezvous, out_text: *mut c_char, capacity: usize, timeout_ns: i64, queue: *mut muster_queue, tag: u64, error: *mut muster_error) -> muster_status;
    /// Releases the handle.
    pub fn muster_rendezvous_release(rendezvous: *mut muster_rendezvous);
    /// Reads the properties of a round.
    pub fn muster_round_get_info(round: *const muster_round, out_info: *mut muster_round_info) -> muster_status;
    /// Makes the store view of a round: it has a prefix of its own, and every request, including those that wait, ends with MUSTER_E_STALE once the round is over for this member; the error names both rounds.
    pub fn muster_round_store(round: *mut muster_round, out_store: *mut *mut muster_store, error: *mut muster_error) -> muster_status;
    /// Looks up a member of a round.
    pub fn muster_round_member(round: *mut muster_round, rank: u32, timeout_ns: i64, out_member: *mut muster_round_member_info, error: *mut muster_error) -> muster_status;
    /// Begins to look up a member of a round; MUSTER_DONE_CALL has the status of muster_round_member().
    pub fn muster_round_member_begin(round: *mut muster_round, rank: u32, timeout_ns: i64, queue: *mut muster_queue, tag: u64, error: *mut muster_error) -> muster_status;
    /// Releases the handle.
    pub fn muster_round_release(round: *mut muster_round);
}

#[cfg(test)]
mod layout {
    use super::*;
    use std::mem::size_of;

    // As the C compiler has them: tests/abi compares it with the same numbers.
    #[test]
    fn structs_are_those_of_c() {
        assert_eq!(size_of::<muster_rendezvous_config>(), 160);
        at!(muster_rendezvous_config, struct_size, 0);
        at!(muster_rendezvous_config, flags, 4);
        at!(muster_rendezvous_config, run_id, 8);
        at!(muster_rendezvous_config, run_id_bytes, 16);
        at!(muster_rendezvous_config, url, 24);
        at!(muster_rendezvous_config, url_bytes, 32);
        at!(muster_rendezvous_config, store, 40);
        at!(muster_rendezvous_config, address, 48);
        at!(muster_rendezvous_config, address_bytes, 56);
        at!(muster_rendezvous_config, order_key, 64);
        at!(muster_rendezvous_config, order_key_bytes, 72);
        at!(muster_rendezvous_config, min, 80);
        at!(muster_rendezvous_config, max, 84);
        at!(muster_rendezvous_config, rank, 88);
        at!(muster_rendezvous_config, keep_alive_attempts, 92);
        at!(muster_rendezvous_config, keep_alive_ns, 96);
        at!(muster_rendezvous_config, last_call_ns, 104);
        at!(muster_rendezvous_config, queue, 112);
        at!(muster_rendezvous_config, tag, 120);
        at!(muster_rendezvous_config, state_dir, 128);
        at!(muster_rendezvous_config, state_dir_bytes, 136);
        at!(muster_rendezvous_config, majority_timeout_ns, 144);
        at!(muster_rendezvous_config, reserved, 152);
        assert_eq!(size_of::<muster_rendezvous_event>(), 256);
        at!(muster_rendezvous_event, kind, 0);
        at!(muster_rendezvous_event, rank, 4);
        at!(muster_rendezvous_event, round, 8);
        at!(muster_rendezvous_event, count, 16);
        at!(muster_rendezvous_event, text_bytes, 20);
        at!(muster_rendezvous_event, text, 24);
        assert_eq!(size_of::<muster_rendezvous_state>(), 88);
        at!(muster_rendezvous_state, phase, 0);
        at!(muster_rendezvous_state, flags, 4);
        at!(muster_rendezvous_state, round, 8);
        at!(muster_rendezvous_state, joined, 16);
        at!(muster_rendezvous_state, missing, 20);
        at!(muster_rendezvous_state, waiting, 24);
        at!(muster_rendezvous_state, spares, 28);
        at!(muster_rendezvous_state, present, 32);
        at!(muster_rendezvous_state, exiting, 36);
        at!(muster_rendezvous_state, last_call_remaining_ns, 40);
        at!(muster_rendezvous_state, reserved, 48);
        assert_eq!(size_of::<muster_round_info>(), 64);
        at!(muster_round_info, number, 0);
        at!(muster_round_info, rank, 8);
        at!(muster_round_info, world, 12);
        at!(muster_round_info, flags, 16);
        at!(muster_round_info, reserved, 20);
        at!(muster_round_info, digest, 32);
        assert_eq!(size_of::<muster_round_member_info>(), 24);
        at!(muster_round_member_info, address, 0);
        at!(muster_round_member_info, address_bytes, 8);
        at!(muster_round_member_info, reserved, 16);
    }
}
