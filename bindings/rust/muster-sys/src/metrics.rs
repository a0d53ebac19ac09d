// SPDX-License-Identifier: MIT
// Written by bindings/rust/generate from include/muster/metrics.h; do not edit.
//! What `include/muster/metrics.h` declares.
#![allow(unused_imports)]
#![cfg_attr(rustfmt, rustfmt_skip)]

use super::*;
use std::os::raw::{c_char, c_int, c_void};

/// Opaque; made by muster_metrics_publish().
#[repr(C)]
pub struct muster_metrics {
    _private: [u8; 0],
}

/// How to publish.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_metrics_config {
    pub struct_size: u32,
    pub flags: u32,
    pub name: *const c_void,
    pub name_bytes: u64,
    pub interval_ns: i64,
}

impl Default for muster_metrics_config {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_metrics_config {
    pub fn sized() -> Self {
        muster_metrics_config { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// State of a publication.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_metrics_state {
    pub published: u64,
    pub failed: u64,
    pub status: muster_status,
    pub reserved: u32,
}

impl Default for muster_metrics_state {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

extern "C" {
    /// Writes the metrics of a context and of its objects.
    pub fn muster_metrics_write(context: *mut muster_context, out_text: *mut c_char, capacity: usize, out_bytes: *mut usize) -> muster_status;
    /// Begins to publish the metrics of a context in a store, which may be of another context.
    pub fn muster_metrics_publish(context: *mut muster_context, store: *mut muster_store, config: *const muster_metrics_config, out_metrics: *mut *mut muster_metrics, error: *mut muster_error) -> muster_status;
    /// Reads how a publication proceeds.
    pub fn muster_metrics_get_state(metrics: *mut muster_metrics, out_state: *mut muster_metrics_state) -> muster_status;
    /// Ends a publication: its key is deleted soon.
    pub fn muster_metrics_release(metrics: *mut muster_metrics);
}

#[cfg(test)]
mod layout {
    use super::*;
    use std::mem::size_of;

    // As the C compiler has them: tests/abi compares it with the same numbers.
    #[test]
    fn structs_are_those_of_c() {
        assert_eq!(size_of::<muster_metrics_config>(), 32);
        at!(muster_metrics_config, struct_size, 0);
        at!(muster_metrics_config, flags, 4);
        at!(muster_metrics_config, name, 8);
        at!(muster_metrics_config, name_bytes, 16);
        at!(muster_metrics_config, interval_ns, 24);
        assert_eq!(size_of::<muster_metrics_state>(), 24);
        at!(muster_metrics_state, published, 0);
        at!(muster_metrics_state, failed, 8);
        at!(muster_metrics_state, status, 16);
        at!(muster_metrics_state, reserved, 20);
    }
}
