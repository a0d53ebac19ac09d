// SPDX-License-Identifier: MIT
// Written by bindings/rust/generate from include/muster/memory.h; do not edit.
//! What `include/muster/memory.h` declares.
#![allow(unused_imports)]
#![cfg_attr(rustfmt, rustfmt_skip)]

use super::*;
use std::os::raw::{c_char, c_int, c_void};

/// A global pointer: locale << (64 - muster_memory_config.locale_bits) | incarnation << some bits | offset.
pub type muster_gptr = u64;

/// Opaque; made by muster_memory_open().
#[repr(C)]
pub struct muster_memory {
    _private: [u8; 0],
}

// muster_memory_flag: Flags of muster_memory_config.flags.
pub const MUSTER_MEMORY_NO_SHARED_MEMORY: u32 = 1;

// muster_memory_kind: What an operation does.
pub const MUSTER_MEMORY_PUT: u32 = 1;
pub const MUSTER_MEMORY_GET: u32 = 2;
pub const MUSTER_MEMORY_READ: u32 = 3;
pub const MUSTER_MEMORY_WRITE: u32 = 4;
pub const MUSTER_MEMORY_EXCHANGE: u32 = 5;
pub const MUSTER_MEMORY_COMPARE_EXCHANGE: u32 = 6;
pub const MUSTER_MEMORY_FETCH: u32 = 7;

// muster_memory_cell: Kinds of cells; a cell keeps its kind for its whole life.
pub const MUSTER_MEMORY_WORD64: u32 = 0;
pub const MUSTER_MEMORY_WORD32: u32 = 1;
pub const MUSTER_MEMORY_ABA: u32 = 2;

/// How to make a memory; the same at all locales.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_memory_config {
    pub struct_size: u32,
    pub locale_bits: u32,
    pub segment_bytes: u64,
    pub symmetric_bytes: u64,
    pub max_tokens: u32,
    pub max_pending: u32,
    pub flags: u32,
    pub incarnation_bits: u32,
}

impl Default for muster_memory_config {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_memory_config {
    pub fn sized() -> Self {
        muster_memory_config { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// Where the segments are in this process, for `inline/memory.h` and compilers of other languages.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_memory_view {
    pub bases: *const u64,
    pub segment_bytes: u64,
    pub locales: u32,
    pub offset_bits: u32,
}

impl Default for muster_memory_view {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// An operation on one target.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_memory_operation {
    pub struct_size: u32,
    pub kind: u32,
    pub target: muster_gptr,
    pub local: *mut c_void,
    pub bytes: u64,
    pub cell: u32,
    pub order: i32,
    pub operation: i32,
    pub notify: u32,
    pub value: u64,
    pub expected: u64,
    pub expected_count: u64,
    pub signal: muster_gptr,
}

impl Default for muster_memory_operation {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_memory_operation {
    pub fn sized() -> Self {
        muster_memory_operation { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// What an operation has found.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_memory_result {
    pub value: u64,
    pub count: u64,
}

impl Default for muster_memory_result {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// Counters of the heap in one segment.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_memory_stats {
    pub heap_bytes: u64,
    pub fresh_bytes: u64,
    pub used_bytes: u64,
    pub used_blocks: u64,
    pub allocated: u64,
    pub refused: u64,
    pub symmetric_bytes: u64,
    pub reserved: u64,
}

impl Default for muster_memory_stats {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// State of a locale.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_memory_locale_info {
    pub status: muster_status,
    pub is_mapped: u32,
    pub node: u32,
    pub requests: u32,
    pub dropped: u64,
}

impl Default for muster_memory_locale_info {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

extern "C" {
    /// Makes a memory, with all members of a group.
    pub fn muster_memory_open(group: *mut muster_group, config: *const muster_memory_config, timeout_ns: i64, out_memory: *mut *mut muster_memory, error: *mut muster_error) -> muster_status;
    /// Gives up the reference to a memory.
    pub fn muster_memory_release(memory: *mut muster_memory);
    /// Returns the number of this locale.
    pub fn muster_memory_locale(memory: *const muster_memory) -> u32;
    /// Returns the number of locales.
    pub fn muster_memory_locales(memory: *const muster_memory) -> u32;
    /// Makes a global pointer.
    pub fn muster_memory_pointer(memory: *const muster_memory, locale: u32, offset: u64, out: *mut muster_gptr) -> muster_status;
    /// Returns the parts of a global pointer.
    pub fn muster_memory_parts(memory: *const muster_memory, pointer: muster_gptr, out_locale: *mut u32, out_offset: *mut u64) -> muster_status;
    /// Returns the address of a place in this process.
    pub fn muster_memory_address(memory: *const muster_memory, pointer: muster_gptr, bytes: u64, out_address: *mut *mut c_void) -> muster_status;
    /// Returns where the segments are in this process: muster_memory_address() without a call and without checks.
    pub fn muster_memory_get_view(memory: *const muster_memory, out_view: *mut muster_memory_view) -> muster_status;
    /// Allocates the same offset in each segment; the bytes are zero.
    pub fn muster_memory_symmetric(memory: *mut muster_memory, bytes: u64, alignment: u64, timeout_ns: i64, out_offset: *mut u64, error: *mut muster_error) -> muster_status;
    /// Allocates a block in the heap of a locale.
    pub fn muster_memory_allocate(memory: *mut muster_memory, locale: u32, bytes: u64, timeout_ns: i64, out: *mut muster_gptr) -> muster_status;
    /// Frees a block.
    pub fn muster_memory_free(memory: *mut muster_memory, block: muster_gptr, timeout_ns: i64) -> muster_status;
    /// Performs an operation.
    pub fn muster_memory_run(memory: *mut muster_memory, operation: *const muster_memory_operation, timeout_ns: i64, out: *mut muster_memory_result) -> muster_status;
    /// Begins an operation, which MUSTER_DONE_MEMORY ends: its status is that of muster_memory_run().
    pub fn muster_memory_begin(memory: *mut muster_memory, operation: *const muster_memory_operation, out: *mut muster_memory_result, queue: *mut muster_queue, tag: u64) -> muster_status;
    /// Waits until the operations that were begun before are done, but for copies of more than 64 KiB, and the owners have the blocks that muster_memory_reclaim() has freed.
    pub fn muster_memory_flush(memory: *mut muster_memory, locale: u32, timeout_ns: i64) -> muster_status;
    /// Returns the state of a locale.
    pub fn muster_memory_get_locale(memory: *mut muster_memory, locale: u32, out_info: *mut muster_memory_locale_info, error: *mut muster_error) -> muster_status;
    /// Returns the manager of epochs of this memory.
    pub fn muster_memory_epoch(memory: *mut muster_memory, out_epoch: *mut *mut muster_epoch) -> muster_status;
    /// Frees objects of a token whose time has come: those that were given to muster_epoch_retire(), which are blocks of this memory on any locale.
    pub fn muster_memory_reclaim(memory: *mut muster_memory, token: *mut muster_epoch_token, max_objects: u32, max_ns: u64, out_freed: *mut u32) -> muster_status;
    /// Frees all objects that a token has deferred, and returns when their owners have done so: the end of a structure, or a moment at which memory is counted.
    pub fn muster_memory_clear(memory: *mut muster_memory, token: *mut muster_epoch_token, timeout_ns: i64, out_freed: *mut u64) -> muster_status;
    /// Returns the counters of the heap of a locale.
    pub fn muster_memory_get_stats(memory: *mut muster_memory, locale: u32, timeout_ns: i64, out_stats: *mut muster_memory_stats) -> muster_status;
}

#[cfg(test)]
mod layout {
    use super::*;
    use std::mem::size_of;

    // As the C compiler has them: tests/abi compares it with the same numbers.
    #[test]
    fn structs_are_those_of_c() {
        assert_eq!(size_of::<muster_memory_config>(), 40);
        at!(muster_memory_config, struct_size, 0);
        at!(muster_memory_config, locale_bits, 4);
        at!(muster_memory_config, segment_bytes, 8);
        at!(muster_memory_config, symmetric_bytes, 16);
        at!(muster_memory_config, max_tokens, 24);
        at!(muster_memory_config, max_pending, 28);
        at!(muster_memory_config, flags, 32);
        at!(muster_memory_config, incarnation_bits, 36);
        assert_eq!(size_of::<muster_memory_view>(), 24);
        at!(muster_memory_view, bases, 0);
        at!(muster_memory_view, segment_bytes, 8);
        at!(muster_memory_view, locales, 16);
        at!(muster_memory_view, offset_bits, 20);
        assert_eq!(size_of::<muster_memory_operation>(), 80);
        at!(muster_memory_operation, struct_size, 0);
        at!(muster_memory_operation, kind, 4);
        at!(muster_memory_operation, target, 8);
        at!(muster_memory_operation, local, 16);
        at!(muster_memory_operation, bytes, 24);
        at!(muster_memory_operation, cell, 32);
        at!(muster_memory_operation, order, 36);
        at!(muster_memory_operation, operation, 40);
        at!(muster_memory_operation, notify, 44);
        at!(muster_memory_operation, value, 48);
        at!(muster_memory_operation, expected, 56);
        at!(muster_memory_operation, expected_count, 64);
        at!(muster_memory_operation, signal, 72);
        assert_eq!(size_of::<muster_memory_result>(), 16);
        at!(muster_memory_result, value, 0);
        at!(muster_memory_result, count, 8);
        assert_eq!(size_of::<muster_memory_stats>(), 64);
        at!(muster_memory_stats, heap_bytes, 0);
        at!(muster_memory_stats, fresh_bytes, 8);
        at!(muster_memory_stats, used_bytes, 16);
        at!(muster_memory_stats, used_blocks, 24);
        at!(muster_memory_stats, allocated, 32);
        at!(muster_memory_stats, refused, 40);
        at!(muster_memory_stats, symmetric_bytes, 48);
        at!(muster_memory_stats, reserved, 56);
        assert_eq!(size_of::<muster_memory_locale_info>(), 24);
        at!(muster_memory_locale_info, status, 0);
        at!(muster_memory_locale_info, is_mapped, 4);
        at!(muster_memory_locale_info, node, 8);
        at!(muster_memory_locale_info, requests, 12);
        at!(muster_memory_locale_info, dropped, 16);
    }
}
