// SPDX-License-Identifier: MIT
// Written by bindings/rust/generate from include/muster/stream.h; do not edit.
//! What `include/muster/stream.h` declares.
#![allow(unused_imports)]
#![cfg_attr(rustfmt, rustfmt_skip)]

use super::*;
use std::os::raw::{c_char, c_int, c_void};

/// Opaque; one end of a duplex byte stream.
#[repr(C)]
pub struct muster_stream {
    _private: [u8; 0],
}

// muster_stream_event: Events of a stream; bits of muster_completion.events.
pub const MUSTER_STREAM_READABLE: u32 = 1;
pub const MUSTER_STREAM_WRITABLE: u32 = 2;
pub const MUSTER_STREAM_PEER_SILENT: u32 = 4;
pub const MUSTER_STREAM_PEER_BACK: u32 = 8;
pub const MUSTER_STREAM_ENDED: u32 = 16;

// muster_stream_direction: Directions, for muster_stream_cancel().
pub const MUSTER_STREAM_READ: u32 = 1;
pub const MUSTER_STREAM_WRITE: u32 = 2;

// muster_stream_read_flag: Flags of muster_stream_read_into() and muster_stream_read_begin().
pub const MUSTER_STREAM_HUGE_PAGES: u32 = 1;

/// How to make a pair of streams; all zero means the defaults named here.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_stream_config {
    pub struct_size: u32,
    pub flags: u32,
    pub window_bytes: u64,
}

impl Default for muster_stream_config {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_stream_config {
    pub fn sized() -> Self {
        muster_stream_config { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// Counters of a stream since its start.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_stream_stats {
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub buffered_in: u64,
    pub buffered_out: u64,
    pub reads: u64,
    pub writes: u64,
    pub waits: u64,
    pub wakeups: u64,
    pub spins_won: u64,
    pub spins_lost: u64,
    pub caller_io: u64,
    pub loop_io: u64,
    pub last_received_ns: u64,
    pub multicast_group: u64,
    pub round_trip_ns: u64,
    pub reserved: u64,
}

impl Default for muster_stream_stats {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

extern "C" {
    /// Makes two connected ends in this process: what is written to one is read from the other.
    pub fn muster_stream_pair(context: *mut muster_context, config: *const muster_stream_config, out_first: *mut *mut muster_stream, out_second: *mut *mut muster_stream, error: *mut muster_error) -> muster_status;
    /// Writes bytes; returns when all were accepted (copied or sent), not when the peer has read them.
    pub fn muster_stream_write(stream: *mut muster_stream, data: *const c_void, size_bytes: usize, timeout_ns: i64, out_bytes: *mut usize) -> muster_status;
    /// Writes the same bytes to many streams: to each it is one muster_stream_write() of all of them, but the bytes are read from memory once, piece by piece, and the slowest stream determines the speed of all.
    pub fn muster_stream_write_many(streams: *const *mut muster_stream, count: u32, data: *const c_void, size_bytes: usize, timeout_ns: i64, out_statuses: *mut muster_status, out_bytes: *mut usize) -> muster_status;
    /// Writes a buffer without copying it.
    pub fn muster_stream_write_owned(stream: *mut muster_stream, data: *const c_void, size_bytes: usize, queue: *mut muster_queue, tag: u64) -> muster_status;
    /// Writes one buffer to many streams without copying it: for each stream as one muster_stream_write_owned() of all of it, with a release of its own.
    pub fn muster_stream_write_owned_many(streams: *const *mut muster_stream, count: u32, data: *const c_void, size_bytes: usize, queue: *mut muster_queue, tags: *const u64, out_statuses: *mut muster_status) -> muster_status;
    /// Reserves room inside the outgoing buffer, to be filled in place and sent by muster_stream_commit().
    pub fn muster_stream_reserve(stream: *mut muster_stream, min_bytes: usize, timeout_ns: i64, out_data: *mut *mut c_void, out_bytes: *mut usize) -> muster_status;
    /// Sends the first bytes of a reservation.
    pub fn muster_stream_commit(stream: *mut muster_stream, size_bytes: usize) -> muster_status;
    /// Waits until every byte accepted so far has left this process (for shared memory and pairs: can be read by the peer).
    pub fn muster_stream_flush(stream: *mut muster_stream, timeout_ns: i64) -> muster_status;
    /// Begins to flush, as muster_stream_flush() does; MUSTER_DONE_CALL has its status.
    pub fn muster_stream_flush_begin(stream: *mut muster_stream, timeout_ns: i64, queue: *mut muster_queue, tag: u64, error: *mut muster_error) -> muster_status;
    /// Reads the bytes that have arrived, at least one.
    pub fn muster_stream_read(stream: *mut muster_stream, out_data: *mut c_void, capacity_bytes: usize, timeout_ns: i64, out_bytes: *mut usize) -> muster_status;
    /// Reads exactly the requested number of bytes, directly into the memory of the caller.
    pub fn muster_stream_read_into(stream: *mut muster_stream, out_data: *mut c_void, size_bytes: usize, flags: u32, timeout_ns: i64, out_bytes: *mut usize) -> muster_status;
    /// Begins to read exactly the requested number of bytes; the engine fills the caller's memory, and MUSTER_DONE_READ has the count and the status.
    pub fn muster_stream_read_begin(stream: *mut muster_stream, out_data: *mut c_void, size_bytes: usize, flags: u32, queue: *mut muster_queue, tag: u64) -> muster_status;
    /// Returns a pointer to received bytes, without consuming them.
    pub fn muster_stream_peek(stream: *mut muster_stream, min_bytes: usize, timeout_ns: i64, out_data: *mut *const c_void, out_bytes: *mut usize) -> muster_status;
    /// Consumes the first of the bytes that muster_stream_peek() returned.
    pub fn muster_stream_consume(stream: *mut muster_stream, size_bytes: usize) -> muster_status;
    /// Finishes writing (half-close): the peer reads everything and then MUSTER_E_END; this side can still read.
    pub fn muster_stream_finish(stream: *mut muster_stream) -> muster_status;
    /// Ends both directions at once and notifies the peer of the reason.
    pub fn muster_stream_abort(stream: *mut muster_stream, reason: u64, text: *const c_char, text_bytes: usize) -> muster_status;
    /// Closes in order: finishes writing, waits until everything has left, then ends.
    pub fn muster_stream_close(stream: *mut muster_stream, timeout_ns: i64) -> muster_status;
    /// Begins to close, as muster_stream_close() does; MUSTER_DONE_CALL has its status.
    pub fn muster_stream_close_begin(stream: *mut muster_stream, timeout_ns: i64, queue: *mut muster_queue, tag: u64, error: *mut muster_error) -> muster_status;
    /// Releases the handle; the stream closes as by muster_stream_close() with no wait.
    pub fn muster_stream_release(stream: *mut muster_stream);
    /// Cancels the waits and operations in one or both directions: they end with MUSTER_E_CANCELED.
    pub fn muster_stream_cancel(stream: *mut muster_stream, directions: u32) -> muster_status;
    /// Watches a stream: MUSTER_EVENT_READY appears in the queue when it becomes ready for an event of interest.
    pub fn muster_stream_watch(stream: *mut muster_stream, interest: u32, queue: *mut muster_queue, tag: u64) -> muster_status;
    /// Returns the reason why a stream ended.
    pub fn muster_stream_reason(stream: *mut muster_stream, out_reason: *mut u64, error: *mut muster_error) -> muster_status;
    /// Copies the name of the peer: the address that was dialled, or from which the connection was made.
    pub fn muster_stream_peer(stream: *mut muster_stream, out_text: *mut c_char, capacity: usize, out_bytes: *mut usize) -> muster_status;
    /// Copies the address at which this end of a stream of tcp has its socket, such as `tcp://10.0.0.7:41022`: what getsockname() gives.
    pub fn muster_stream_local_address(stream: *mut muster_stream, out_text: *mut c_char, capacity: usize, out_bytes: *mut usize) -> muster_status;
    /// Ends this process when the peer of this stream, or the connection to it, is gone: SIGTERM to itself from a library thread, then SIGKILL.
    pub fn muster_stream_exit_with_peer(stream: *mut muster_stream, grace_ns: i64) -> muster_status;
    /// Reads the counters of a stream.
    pub fn muster_stream_get_stats(stream: *mut muster_stream, out_stats: *mut muster_stream_stats) -> muster_status;
}

#[cfg(test)]
mod layout {
    use super::*;
    use std::mem::size_of;

    // As the C compiler has them: tests/abi compares it with the same numbers.
    #[test]
    fn structs_are_those_of_c() {
        assert_eq!(size_of::<muster_stream_config>(), 16);
        at!(muster_stream_config, struct_size, 0);
        at!(muster_stream_config, flags, 4);
        at!(muster_stream_config, window_bytes, 8);
        assert_eq!(size_of::<muster_stream_stats>(), 128);
        at!(muster_stream_stats, bytes_in, 0);
        at!(muster_stream_stats, bytes_out, 8);
        at!(muster_stream_stats, buffered_in, 16);
        at!(muster_stream_stats, buffered_out, 24);
        at!(muster_stream_stats, reads, 32);
        at!(muster_stream_stats, writes, 40);
        at!(muster_stream_stats, waits, 48);
        at!(muster_stream_stats, wakeups, 56);
        at!(muster_stream_stats, spins_won, 64);
        at!(muster_stream_stats, spins_lost, 72);
        at!(muster_stream_stats, caller_io, 80);
        at!(muster_stream_stats, loop_io, 88);
        at!(muster_stream_stats, last_received_ns, 96);
        at!(muster_stream_stats, multicast_group, 104);
        at!(muster_stream_stats, round_trip_ns, 112);
        at!(muster_stream_stats, reserved, 120);
    }
}
