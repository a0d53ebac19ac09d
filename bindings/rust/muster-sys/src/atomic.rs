// SPDX-License-Identifier: MIT
// Written by bindings/rust/generate from include/muster/atomic.h; do not edit.
//! What `include/muster/atomic.h` declares.
#![allow(unused_imports)]
#![cfg_attr(rustfmt, rustfmt_skip)]

use super::*;
use std::os::raw::{c_char, c_int, c_void};

// muster_atomic_order: Memory orders.
pub const MUSTER_ATOMIC_SEQ_CST: u32 = 0;
pub const MUSTER_ATOMIC_ACQ_REL: u32 = 1;
pub const MUSTER_ATOMIC_RELAXED: u32 = 2;

// muster_atomic_operation: Operations of muster_atomic_fetch32() and muster_atomic_fetch64().
pub const MUSTER_ATOMIC_ADD: u32 = 0;
pub const MUSTER_ATOMIC_AND: u32 = 1;
pub const MUSTER_ATOMIC_OR: u32 = 2;
pub const MUSTER_ATOMIC_XOR: u32 = 3;
pub const MUSTER_ATOMIC_MIN: u32 = 4;
pub const MUSTER_ATOMIC_MAX: u32 = 5;
pub const MUSTER_ATOMIC_UMIN: u32 = 6;
pub const MUSTER_ATOMIC_UMAX: u32 = 7;

// muster_atomic_comparison: Comparisons of muster_atomic_wait(); numbers are unsigned.
pub const MUSTER_ATOMIC_EQUAL: u32 = 0;
pub const MUSTER_ATOMIC_NOT_EQUAL: u32 = 1;
pub const MUSTER_ATOMIC_LESS: u32 = 2;
pub const MUSTER_ATOMIC_LESS_EQUAL: u32 = 3;
pub const MUSTER_ATOMIC_GREATER: u32 = 4;
pub const MUSTER_ATOMIC_GREATER_EQUAL: u32 = 5;

/// A cell that muster_atomic_wait() waits for.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_atomic_condition {
    pub cell: *const c_void,
    pub value: u64,
    pub size_bytes: u32,
    pub comparison: i32,
    pub is_true: u32,
    pub reserved: u32,
}

impl Default for muster_atomic_condition {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// The value of an ABA cell.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_aba {
    pub value: u64,
    pub count: u64,
}

impl Default for muster_aba {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

extern "C" {
    /// Reads a word.
    pub fn muster_atomic_read64(cell: *const u64, order: i32, out_value: *mut u64) -> muster_status;
    /// Writes a word.
    pub fn muster_atomic_write64(cell: *mut u64, value: u64, order: i32) -> muster_status;
    /// Writes a word and returns what it was.
    pub fn muster_atomic_exchange64(cell: *mut u64, value: u64, order: i32, out_value: *mut u64) -> muster_status;
    /// Writes a word if it has the expected value.
    pub fn muster_atomic_compare_exchange64(cell: *mut u64, expected: *mut u64, desired: u64, order: i32) -> muster_status;
    /// Combines a word with an operand and returns what it was.
    pub fn muster_atomic_fetch64(cell: *mut u64, operation: i32, operand: u64, order: i32, out_value: *mut u64) -> muster_status;
    /// Reads a word of 32 bits.
    pub fn muster_atomic_read32(cell: *const u32, order: i32, out_value: *mut u32) -> muster_status;
    /// Writes a word of 32 bits.
    pub fn muster_atomic_write32(cell: *mut u32, value: u32, order: i32) -> muster_status;
    /// Writes a word of 32 bits and returns what it was.
    pub fn muster_atomic_exchange32(cell: *mut u32, value: u32, order: i32, out_value: *mut u32) -> muster_status;
    /// Writes a word of 32 bits if it has the expected value.
    pub fn muster_atomic_compare_exchange32(cell: *mut u32, expected: *mut u32, desired: u32, order: i32) -> muster_status;
    /// Combines a word of 32 bits with an operand and returns what it was.
    pub fn muster_atomic_fetch32(cell: *mut u32, operation: i32, operand: u32, order: i32, out_value: *mut u32) -> muster_status;
    /// Sets a flag, a word of 32 bits, to 1.
    pub fn muster_atomic_test_and_set(flag: *mut u32, order: i32) -> muster_status;
    /// Clears a flag.
    pub fn muster_atomic_clear(flag: *mut u32, order: i32) -> muster_status;
    /// Waits until cells have certain values (shmem_wait_until, _any, _all and _some of OpenSHMEM).
    pub fn muster_atomic_wait(conditions: *mut muster_atomic_condition, count: u32, needed: u32, timeout_ns: i64) -> muster_status;
    /// Wakes threads, of any process, that wait for a cell.
    pub fn muster_atomic_notify(cell: *const c_void, size_bytes: u32) -> muster_status;
    /// Returns the size of an ABA cell.
    pub fn muster_aba_size() -> u32;
    /// Returns the alignment of an ABA cell.
    pub fn muster_aba_alignment() -> u32;
    /// Reads an ABA cell, both halves in one step.
    pub fn muster_aba_read(cell: *const muster_aba, out: *mut muster_aba) -> muster_status;
    /// Writes a value; the count grows by one.
    pub fn muster_aba_write(cell: *mut muster_aba, value: u64) -> muster_status;
    /// Writes a value and returns what the cell was; the count grows by one.
    pub fn muster_aba_exchange(cell: *mut muster_aba, value: u64, out: *mut muster_aba) -> muster_status;
    /// Writes a value if value and count are the expected ones: no write has happened since they were read.
    pub fn muster_aba_compare_exchange(cell: *mut muster_aba, expected: *mut muster_aba, desired: u64) -> muster_status;
    /// Writes a value if the value, with any count, is the expected one; the count grows by one.
    pub fn muster_aba_compare_exchange_value(cell: *mut muster_aba, expected: *mut u64, desired: u64) -> muster_status;
}

#[cfg(test)]
mod layout {
    use super::*;
    use std::mem::size_of;

    // As the C compiler has them: tests/abi compares it with the same numbers.
    #[test]
    fn structs_are_those_of_c() {
        assert_eq!(size_of::<muster_atomic_condition>(), 32);
        at!(muster_atomic_condition, cell, 0);
        at!(muster_atomic_condition, value, 8);
        at!(muster_atomic_condition, size_bytes, 16);
        at!(muster_atomic_condition, comparison, 20);
        at!(muster_atomic_condition, is_true, 24);
        at!(muster_atomic_condition, reserved, 28);
        assert_eq!(size_of::<muster_aba>(), 16);
        at!(muster_aba, value, 0);
        at!(muster_aba, count, 8);
    }
}
