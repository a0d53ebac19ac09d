// SPDX-License-Identifier: MIT
// Written by bindings/rust/generate from include/muster/trace.h; do not edit.
//! What `include/muster/trace.h` declares.
#![allow(unused_imports)]
#![cfg_attr(rustfmt, rustfmt_skip)]

use super::*;
use std::os::raw::{c_char, c_int, c_void};

/// How to trace.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_trace_config {
    pub struct_size: u32,
    pub events: u32,
    pub name: *const c_void,
    pub name_bytes: u64,
}

impl Default for muster_trace_config {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_trace_config {
    pub fn sized() -> Self {
        muster_trace_config { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// What a trace has.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_trace_state {
    pub events: u64,
    pub threads: u64,
    pub offset_ns: i64,
    pub offset_error_ns: i64,
    pub is_on: u32,
    pub reserved: u32,
}

impl Default for muster_trace_state {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

extern "C" {
    /// Begins a trace.
    pub fn muster_trace_start(config: *const muster_trace_config, error: *mut muster_error) -> muster_status;
    /// Ends a trace; muster_trace_save() can still write it.
    pub fn muster_trace_stop();
    /// Begins a span of this thread, inside the last span that it has begun and not ended.
    pub fn muster_trace_begin(name: *const c_char, name_bytes: usize);
    /// Ends the last span that this thread has begun.
    pub fn muster_trace_end();
    /// Marks a moment of this thread.
    pub fn muster_trace_mark(name: *const c_char, name_bytes: usize);
    /// Marks a moment of this thread that belongs to a flow: from each moment or call with the same number, in the order of time and in all processes whose files are joined, an arrow leads to the next one.
    pub fn muster_trace_flow(name: *const c_char, name_bytes: usize, flow: u64);
    /// Reads what a trace has.
    pub fn muster_trace_get_state(out_state: *mut muster_trace_state) -> muster_status;
    /// Measures the clock of this member against that of rank 0, by 32 exchanges; all members of the group make the call.
    pub fn muster_trace_align(group: *mut muster_group, timeout_ns: i64, out_state: *mut muster_trace_state, error: *mut muster_error) -> muster_status;
    /// Writes the events that are in the rings as a file, which replaces one of this name once it is complete.
    pub fn muster_trace_save(path: *const c_char, path_bytes: usize, error: *mut muster_error) -> muster_status;
}

#[cfg(test)]
mod layout {
    use super::*;
    use std::mem::size_of;

    // As the C compiler has them: tests/abi compares it with the same numbers.
    #[test]
    fn structs_are_those_of_c() {
        assert_eq!(size_of::<muster_trace_config>(), 24);
        at!(muster_trace_config, struct_size, 0);
        at!(muster_trace_config, events, 4);
        at!(muster_trace_config, name, 8);
        at!(muster_trace_config, name_bytes, 16);
        assert_eq!(size_of::<muster_trace_state>(), 40);
        at!(muster_trace_state, events, 0);
        at!(muster_trace_state, threads, 8);
        at!(muster_trace_state, offset_ns, 16);
        at!(muster_trace_state, offset_error_ns, 24);
        at!(muster_trace_state, is_on, 32);
        at!(muster_trace_state, reserved, 36);
    }
}
