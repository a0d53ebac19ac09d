// SPDX-License-Identifier: MIT
// Written by bindings/rust/generate from include/muster/base.h; do not edit.
//! What `include/muster/base.h` declares.
#![allow(unused_imports)]
#![cfg_attr(rustfmt, rustfmt_skip)]

use super::*;
use std::os::raw::{c_char, c_int, c_void};

/// Result of a call: 0, a positive "not now", or a negative failure; see muster_status_value.
pub type muster_status = i32;

// muster_status_value: The values of a muster_status.
pub const MUSTER_OK: i32 = 0;
pub const MUSTER_AGAIN: i32 = 1;
pub const MUSTER_TIMEOUT: i32 = 2;
pub const MUSTER_E_ARG: i32 = -1;
pub const MUSTER_E_ABI: i32 = -2;
pub const MUSTER_E_NOMEM: i32 = -3;
pub const MUSTER_E_LIMIT: i32 = -4;
pub const MUSTER_E_CLOSED: i32 = -5;
pub const MUSTER_E_CANCELED: i32 = -6;
pub const MUSTER_E_FORKED: i32 = -7;
pub const MUSTER_E_WOULD_DEADLOCK: i32 = -8;
pub const MUSTER_E_UNSUPPORTED: i32 = -9;
pub const MUSTER_E_EXISTS: i32 = -10;
pub const MUSTER_E_NOT_FOUND: i32 = -11;
pub const MUSTER_E_STALE: i32 = -12;
pub const MUSTER_E_BUSY: i32 = -13;
pub const MUSTER_E_PERMISSION: i32 = -14;
pub const MUSTER_E_AUTH: i32 = -15;
pub const MUSTER_E_PROTOCOL: i32 = -16;
pub const MUSTER_E_ADDRESS: i32 = -17;
pub const MUSTER_E_UNREACHABLE: i32 = -18;
pub const MUSTER_E_PEER: i32 = -19;
pub const MUSTER_E_ABORTED: i32 = -20;
pub const MUSTER_E_END: i32 = -21;
pub const MUSTER_E_SYSTEM: i32 = -22;
pub const MUSTER_E_PLUGIN: i32 = -23;
pub const MUSTER_E_INTERNAL: i32 = -24;
pub const MUSTER_E_CHANGED: i32 = -25;
pub const MUSTER_E_STORE_LOST: i32 = -26;
pub const MUSTER_E_QUORUM: i32 = -27;
pub const MUSTER_E_MISMATCH: i32 = -28;

/// The reason of a failure; caller-owned, 256 bytes, no pointers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_error {
    pub status: muster_status,
    pub os_errno: i32,
    pub provider_code: i64,
    pub rank: u32,
    pub message_bytes: u32,
    pub message: [c_char; 232],
}

impl Default for muster_error {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

extern "C" {
    /// Returns the name of a status, for logs: "MUSTER_E_PEER".
    pub fn muster_status_name(status: muster_status) -> *const c_char;
    /// Describes a status in a few words: "the peer died or the way to it broke".
    pub fn muster_status_text(status: muster_status) -> *const c_char;
    /// Returns the version of the loaded library.
    pub fn muster_version(out_major: *mut u32, out_minor: *mut u32, out_patch: *mut u32) -> *const c_char;
    /// Initialises a growing struct: zeroes it and writes its size into the first field.
    pub fn muster_config_init(config: *mut c_void, struct_size: u32) -> muster_status;
}

#[cfg(test)]
mod layout {
    use super::*;
    use std::mem::size_of;

    // As the C compiler has them: tests/abi compares it with the same numbers.
    #[test]
    fn structs_are_those_of_c() {
        assert_eq!(size_of::<muster_error>(), 256);
        at!(muster_error, status, 0);
        at!(muster_error, os_errno, 4);
        at!(muster_error, provider_code, 8);
        at!(muster_error, rank, 16);
        at!(muster_error, message_bytes, 20);
        at!(muster_error, message, 24);
    }
}
