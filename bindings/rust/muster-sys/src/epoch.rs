// SPDX-License-Identifier: MIT
// Written by bindings/rust/generate from include/muster/epoch.h; do not edit.
//! What `include/muster/epoch.h` declares.
#![allow(unused_imports)]
#![cfg_attr(rustfmt, rustfmt_skip)]

use super::*;
use std::os::raw::{c_char, c_int, c_void};

/// Opaque; made by muster_epoch_create() or muster_epoch_open().
#[repr(C)]
pub struct muster_epoch {
    _private: [u8; 0],
}

// muster_epoch_token_state: States of a token.
pub const MUSTER_EPOCH_TOKEN_FREE: u32 = 0;
pub const MUSTER_EPOCH_TOKEN_IN_USE: u32 = 1;
pub const MUSTER_EPOCH_TOKEN_ORPHANED: u32 = 2;
pub const MUSTER_EPOCH_TOKEN_ADOPTED: u32 = 3;

// muster_epoch_flags: Flags of a manager; bits of muster_epoch_config.flags.
pub const MUSTER_EPOCH_FENCED: u32 = 1;
pub const MUSTER_EPOCH_SHARED: u32 = 2;
pub const MUSTER_EPOCH_THREAD_BOUND: u32 = 4;

// muster_epoch_ready: Bits of muster_completion.events of a MUSTER_EVENT_READY with muster_epoch_config.tag.
pub const MUSTER_EPOCH_BLOCKED: u32 = 1;

// muster_epoch_outcome: What an attempt to advance the epoch found.
pub const MUSTER_EPOCH_ADVANCED: u32 = 1;
pub const MUSTER_EPOCH_LOST: u32 = 2;
pub const MUSTER_EPOCH_HELD: u32 = 3;

/// Frees an object.
pub type muster_epoch_free_fn = Option<unsafe extern "C" fn(user: *mut c_void, object: *mut c_void)>;

/// Start of a token, for `inline/epoch.h` and compilers of other languages; the fields belong to the library.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_epoch_token {
    pub epoch: u64,
    pub to_global: i64,
    pub depth: u64,
    pub state: u64,
    pub index: u32,
    pub reserved: u32,
}

impl Default for muster_epoch_token {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// How to make a manager.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_epoch_config {
    pub struct_size: u32,
    pub flags: u32,
    pub max_tokens: u32,
    pub max_pending: u32,
    pub fd: i32,
    pub reserved: u32,
    pub offset: u64,
    pub queue: *mut muster_queue,
    pub tag: u64,
}

impl Default for muster_epoch_config {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_epoch_config {
    pub fn sized() -> Self {
        muster_epoch_config { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// Result of muster_epoch_try_reclaim().
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_epoch_attempt {
    pub outcome: i32,
    pub token: u32,
    pub process: i32,
    pub thread: i32,
    pub since_ns: u64,
    pub epoch: u64,
}

impl Default for muster_epoch_attempt {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// Counters of a manager.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_epoch_stats {
    pub epoch: u64,
    pub deferred: u64,
    pub freed: u64,
    pub pending: u64,
    pub tokens: u32,
    pub orphaned: u32,
    pub deaths: u32,
    pub is_fenced: u32,
    pub blocking_token: u32,
    pub blocking_process: i32,
    pub blocking_thread: i32,
    pub reserved: u32,
    pub blocked_ns: u64,
}

impl Default for muster_epoch_stats {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

extern "C" {
    /// Computes the memory that a shared manager occupies.
    pub fn muster_epoch_size(max_tokens: u32, max_pending: u32) -> u64;
    /// Makes a manager.
    pub fn muster_epoch_create(config: *const muster_epoch_config, out_epoch: *mut *mut muster_epoch, error: *mut muster_error) -> muster_status;
    /// Opens a manager that another process has made in shared memory.
    pub fn muster_epoch_open(config: *const muster_epoch_config, out_epoch: *mut *mut muster_epoch, error: *mut muster_error) -> muster_status;
    /// Gives up the reference to a manager.
    pub fn muster_epoch_release(epoch: *mut muster_epoch);
    /// Registers a token.
    pub fn muster_epoch_register(epoch: *mut muster_epoch, out_token: *mut *mut muster_epoch_token, error: *mut muster_error) -> muster_status;
    /// Unregisters a token: it is unpinned, its protected objects are released, and its deferred objects are freed by the polls of other tokens.
    pub fn muster_epoch_unregister(token: *mut muster_epoch_token) -> muster_status;
    /// Pins a token: objects that are reached from now on stay valid until it is unpinned.
    pub fn muster_epoch_pin(token: *mut muster_epoch_token) -> muster_status;
    /// Ends one pin.
    pub fn muster_epoch_unpin(token: *mut muster_epoch_token) -> muster_status;
    /// Pins a pinned token at the current epoch: a reader that stays long lets the epoch advance.
    pub fn muster_epoch_repin(token: *mut muster_epoch_token) -> muster_status;
    /// Form for event loops: a token that is online is pinned between two calls of muster_epoch_quiescent().
    pub fn muster_epoch_online(token: *mut muster_epoch_token) -> muster_status;
    /// Says, once per turn of a loop, that nothing that was reached before is used any more; the same as muster_epoch_repin().
    pub fn muster_epoch_quiescent(token: *mut muster_epoch_token) -> muster_status;
    /// Takes a token offline, before its loop waits.
    pub fn muster_epoch_offline(token: *mut muster_epoch_token) -> muster_status;
    /// Protects one object beyond the pin: a reader that stays long protects what it goes on using and unpins.
    pub fn muster_epoch_protect(token: *mut muster_epoch_token, slot: u32, object: u64) -> muster_status;
    /// Defers the end of an object that no shared structure refers to any more.
    pub fn muster_epoch_defer(token: *mut muster_epoch_token, free: muster_epoch_free_fn, user: *mut c_void, object: *mut c_void) -> muster_status;
    /// Defers an object that muster_epoch_poll() hands back: for runtimes that free their own objects, and for shared memory.
    pub fn muster_epoch_retire(token: *mut muster_epoch_token, object: u64) -> muster_status;
    /// Tries to advance the epoch by one.
    pub fn muster_epoch_try_reclaim(token: *mut muster_epoch_token, out: *mut muster_epoch_attempt) -> muster_status;
    /// The same for a thread without a token.
    pub fn muster_epoch_advance(epoch: *mut muster_epoch, out: *mut muster_epoch_attempt) -> muster_status;
    /// Frees objects whose time has come: those of the token, then those of tokens without owner.
    pub fn muster_epoch_poll(token: *mut muster_epoch_token, max_objects: u32, max_ns: u64, out_objects: *mut u64, out_capacity: u32, out_count: *mut u32, out_freed: *mut u32) -> muster_status;
    /// Waits until every token that is pinned now was unpinned or pinned again (synchronize_rcu of liburcu).
    pub fn muster_epoch_synchronize(token: *mut muster_epoch_token, timeout_ns: i64, out: *mut muster_epoch_attempt) -> muster_status;
    /// Waits until the functions of all objects that this token has deferred were called (rcu_barrier of liburcu).
    pub fn muster_epoch_barrier(token: *mut muster_epoch_token, timeout_ns: i64) -> muster_status;
    /// Calls the functions of all deferred objects now, without waiting for an epoch: the end of a structure that no thread uses any more.
    pub fn muster_epoch_clear(epoch: *mut muster_epoch, out_freed: *mut u64) -> muster_status;
    /// Returns the counters of a manager.
    pub fn muster_epoch_get_stats(epoch: *mut muster_epoch, out_stats: *mut muster_epoch_stats) -> muster_status;
}

#[cfg(test)]
mod layout {
    use super::*;
    use std::mem::size_of;

    // As the C compiler has them: tests/abi compares it with the same numbers.
    #[test]
    fn structs_are_those_of_c() {
        assert_eq!(size_of::<muster_epoch_token>(), 40);
        at!(muster_epoch_token, epoch, 0);
        at!(muster_epoch_token, to_global, 8);
        at!(muster_epoch_token, depth, 16);
        at!(muster_epoch_token, state, 24);
        at!(muster_epoch_token, index, 32);
        at!(muster_epoch_token, reserved, 36);
        assert_eq!(size_of::<muster_epoch_config>(), 48);
        at!(muster_epoch_config, struct_size, 0);
        at!(muster_epoch_config, flags, 4);
        at!(muster_epoch_config, max_tokens, 8);
        at!(muster_epoch_config, max_pending, 12);
        at!(muster_epoch_config, fd, 16);
        at!(muster_epoch_config, reserved, 20);
        at!(muster_epoch_config, offset, 24);
        at!(muster_epoch_config, queue, 32);
        at!(muster_epoch_config, tag, 40);
        assert_eq!(size_of::<muster_epoch_attempt>(), 32);
        at!(muster_epoch_attempt, outcome, 0);
        at!(muster_epoch_attempt, token, 4);
        at!(muster_epoch_attempt, process, 8);
        at!(muster_epoch_attempt, thread, 12);
        at!(muster_epoch_attempt, since_ns, 16);
        at!(muster_epoch_attempt, epoch, 24);
        assert_eq!(size_of::<muster_epoch_stats>(), 72);
        at!(muster_epoch_stats, epoch, 0);
        at!(muster_epoch_stats, deferred, 8);
        at!(muster_epoch_stats, freed, 16);
        at!(muster_epoch_stats, pending, 24);
        at!(muster_epoch_stats, tokens, 32);
        at!(muster_epoch_stats, orphaned, 36);
        at!(muster_epoch_stats, deaths, 40);
        at!(muster_epoch_stats, is_fenced, 44);
        at!(muster_epoch_stats, blocking_token, 48);
        at!(muster_epoch_stats, blocking_process, 52);
        at!(muster_epoch_stats, blocking_thread, 56);
        at!(muster_epoch_stats, reserved, 60);
        at!(muster_epoch_stats, blocked_ns, 64);
    }
}
