// SPDX-License-Identifier: MIT
// Written by bindings/rust/generate from include/muster/message.h; do not edit.
//! What `include/muster/message.h` declares.
#![allow(unused_imports)]
#![cfg_attr(rustfmt, rustfmt_skip)]

use super::*;
use std::os::raw::{c_char, c_int, c_void};

/// Opaque; made by muster_message_create(), or received.
#[repr(C)]
pub struct muster_message {
    _private: [u8; 0],
}

// muster_message_type: Values of muster_message_header.type that Apache SINGA defines.
pub const MUSTER_MESSAGE_GET: u32 = 0;
pub const MUSTER_MESSAGE_PUT: u32 = 1;
pub const MUSTER_MESSAGE_SYNC: u32 = 2;
pub const MUSTER_MESSAGE_UPDATE: u32 = 3;
pub const MUSTER_MESSAGE_SYNC_REQUEST: u32 = 4;
pub const MUSTER_MESSAGE_SYNC_RESPONSE: u32 = 5;
pub const MUSTER_MESSAGE_STOP: u32 = 6;
pub const MUSTER_MESSAGE_DATA: u32 = 7;
pub const MUSTER_MESSAGE_GOT: u32 = 8;
pub const MUSTER_MESSAGE_UPDATED: u32 = 9;
pub const MUSTER_MESSAGE_CONNECT: u32 = 10;
pub const MUSTER_MESSAGE_METRIC: u32 = 11;
pub const MUSTER_MESSAGE_USER: u32 = 256;

// muster_message_any: A field of an address that matches every value of that field.
pub const MUSTER_MESSAGE_ANY: i32 = -1;

/// Frees the memory of a frame that was handed over; free() of the C library can be used unchanged.
pub type muster_free_fn = Option<unsafe extern "C" fn(data: *mut c_void)>;

/// Header of a message; all zero in a new one.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_message_header {
    pub struct_size: u32,
    pub r#type: u32,
    pub source: u64,
    pub destination: u64,
    pub target: u64,
    pub target_version: i64,
    pub trace_id: [u64; 2],
    pub span_id: u64,
    pub trace_flags: u32,
    pub hops: u32,
}

impl Default for muster_message_header {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_message_header {
    pub fn sized() -> Self {
        muster_message_header { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// Bytes in memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_buffer {
    pub data: *const c_void,
    pub bytes: u64,
}

impl Default for muster_buffer {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// One value of a format frame.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_value {
    pub integer: i64,
    pub real: f64,
    pub data: *const c_void,
    pub bytes: u64,
}

impl Default for muster_value {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

extern "C" {
    /// Makes an empty message.
    pub fn muster_message_create(out_message: *mut *mut muster_message) -> muster_status;
    /// Copies a message: header, and frames.
    pub fn muster_message_copy(message: *const muster_message, out_message: *mut *mut muster_message) -> muster_status;
    /// Returns the header.
    pub fn muster_message_get_header(message: *const muster_message, out_header: *mut muster_message_header) -> muster_status;
    /// Replaces the header, except for `hops`.
    pub fn muster_message_set_header(message: *mut muster_message, header: *const muster_message_header) -> muster_status;
    /// Exchanges source and destination: the message becomes its answer.
    pub fn muster_message_swap_addresses(message: *mut muster_message) -> muster_status;
    /// Adds a frame with a copy of bytes.
    pub fn muster_message_add_frame(message: *mut muster_message, data: *const c_void, bytes: usize) -> muster_status;
    /// Adds a frame by reference.
    pub fn muster_message_lend_frame(message: *mut muster_message, data: *const c_void, bytes: usize, queue: *mut muster_queue, tag: u64) -> muster_status;
    /// Adds a frame by handing over its memory.
    pub fn muster_message_take_frame(message: *mut muster_message, data: *mut c_void, bytes: usize, release: muster_free_fn) -> muster_status;
    /// Returns the number of frames.
    pub fn muster_message_frame_count(message: *const muster_message) -> u32;
    /// Returns a frame by its index.
    pub fn muster_message_frame(message: *const muster_message, index: u32, out_frame: *mut muster_buffer) -> muster_status;
    /// Moves the cursor of a message to its first frame.
    pub fn muster_message_first(message: *mut muster_message, out_frame: *mut muster_buffer) -> muster_status;
    /// Moves the cursor to the last frame; see muster_message_first().
    pub fn muster_message_last(message: *mut muster_message, out_frame: *mut muster_buffer) -> muster_status;
    /// Moves the cursor to the next frame; see muster_message_first().
    pub fn muster_message_next(message: *mut muster_message, out_frame: *mut muster_buffer) -> muster_status;
    /// Returns the size of a message.
    pub fn muster_message_bytes(message: *const muster_message, out_payload: *mut u64, out_total: *mut u64) -> muster_status;
    /// Returns a message as an array of buffers, for a transport of the host's: the first one has the metadata, the others are the frames.
    pub fn muster_message_to_buffers(message: *mut muster_message, out_buffers: *mut muster_buffer, capacity: u32, out_count: *mut u32) -> muster_status;
    /// Makes a message from buffers; the inverse of muster_message_to_buffers().
    pub fn muster_message_from_buffers(buffers: *const muster_buffer, count: u32, out_message: *mut *mut muster_message, error: *mut muster_error) -> muster_status;
    /// Adds a format frame: values with their types, which the reader checks.
    pub fn muster_message_add_values(message: *mut muster_message, picture: *const c_char, values: *const muster_value, count: u32, error: *mut muster_error) -> muster_status;
    /// Reads a format frame.
    pub fn muster_message_get_values(message: *const muster_message, index: u32, picture: *const c_char, out_picture: *mut c_char, out_values: *mut muster_value, capacity: u32, out_count: *mut u32, error: *mut muster_error) -> muster_status;
    /// Frees a message and its frames.
    pub fn muster_message_release(message: *mut muster_message);
    /// Packs an address.
    pub fn muster_message_address(group: i64, id: i64, kind: i64, out_address: *mut u64) -> muster_status;
    /// Takes an address apart.
    pub fn muster_message_address_parts(address: u64, out_group: *mut i64, out_id: *mut i64, out_kind: *mut i64) -> muster_status;
    /// Does an address match a pattern, whose fields may be MUSTER_MESSAGE_ANY?
    pub fn muster_message_address_matches(pattern: u64, address: u64) -> i32;
    /// Converts an address of Apache SINGA, whose fields had 16, 8 and 8 bits.
    pub fn muster_message_address_singa(group: i32, id_or_proc: i32, r#type: i32, out_address: *mut u64) -> muster_status;
    /// Packs what a message is about: a parameter and a slice of it, or a layer and a blob of it.
    pub fn muster_message_target(entity: u32, part: u32) -> u64;
}

#[cfg(test)]
mod layout {
    use super::*;
    use std::mem::size_of;

    // As the C compiler has them: tests/abi compares it with the same numbers.
    #[test]
    fn structs_are_those_of_c() {
        assert_eq!(size_of::<muster_message_header>(), 72);
        at!(muster_message_header, struct_size, 0);
        at!(muster_message_header, r#type, 4);
        at!(muster_message_header, source, 8);
        at!(muster_message_header, destination, 16);
        at!(muster_message_header, target, 24);
        at!(muster_message_header, target_version, 32);
        at!(muster_message_header, trace_id, 40);
        at!(muster_message_header, span_id, 56);
        at!(muster_message_header, trace_flags, 64);
        at!(muster_message_header, hops, 68);
        assert_eq!(size_of::<muster_buffer>(), 16);
        at!(muster_buffer, data, 0);
        at!(muster_buffer, bytes, 8);
        assert_eq!(size_of::<muster_value>(), 32);
        at!(muster_value, integer, 0);
        at!(muster_value, real, 8);
        at!(muster_value, data, 16);
        at!(muster_value, bytes, 24);
    }
}
