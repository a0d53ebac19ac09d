// SPDX-License-Identifier: MIT
// Written by bindings/rust/generate from include/muster/cluster.h; do not edit.
//! What `include/muster/cluster.h` declares.
#![allow(unused_imports)]
#![cfg_attr(rustfmt, rustfmt_skip)]

use super::*;
use std::os::raw::{c_char, c_int, c_void};

/// Opaque; bytes that another member has broadcast, see MUSTER_CLUSTER_BROADCAST.
#[repr(C)]
pub struct muster_broadcast {
    _private: [u8; 0],
}

/// Opaque; one member's view of a cluster, made by muster_cluster_open() or muster_worker_start().
#[repr(C)]
pub struct muster_cluster {
    _private: [u8; 0],
}

// muster_cluster_member_id: Member numbers with a fixed meaning.
pub const MUSTER_CLUSTER_MASTER: u32 = 0;

// muster_cluster_topology: The pairs of members between which streams may be opened.
pub const MUSTER_CLUSTER_ALL_TO_ALL: u32 = 0;
pub const MUSTER_CLUSTER_MASTER_WORKER: u32 = 1;
pub const MUSTER_CLUSTER_TREE: u32 = 2;
pub const MUSTER_CLUSTER_CUSTOM: u32 = 3;

// muster_launch_flag: Flags of muster_launch.flags.
pub const MUSTER_LAUNCH_MASTER_DIALS: u32 = 1;
pub const MUSTER_LAUNCH_NO_LISTEN: u32 = 2;

// muster_cluster_event_kind: The kind of an event; the value of muster_cluster_event.kind.
pub const MUSTER_CLUSTER_LAUNCHED: u32 = 1;
pub const MUSTER_CLUSTER_CONNECTED: u32 = 2;
pub const MUSTER_CLUSTER_JOINED: u32 = 3;
pub const MUSTER_CLUSTER_FAILED: u32 = 4;
pub const MUSTER_CLUSTER_DEAD: u32 = 5;
pub const MUSTER_CLUSTER_REMOVED: u32 = 6;
pub const MUSTER_CLUSTER_STREAM: u32 = 7;
pub const MUSTER_CLUSTER_INTERRUPT: u32 = 8;
pub const MUSTER_CLUSTER_LEAVE: u32 = 9;
pub const MUSTER_CLUSTER_MASTER_GONE: u32 = 10;
pub const MUSTER_CLUSTER_BROADCAST: u32 = 11;

// muster_member_state: The state of a member.
pub const MUSTER_MEMBER_LAUNCHING: u32 = 1;
pub const MUSTER_MEMBER_LAUNCHED: u32 = 2;
pub const MUSTER_MEMBER_CONNECTED: u32 = 3;
pub const MUSTER_MEMBER_JOINED: u32 = 4;
pub const MUSTER_MEMBER_LEAVING: u32 = 5;
pub const MUSTER_MEMBER_GONE: u32 = 6;

/// How to open a cluster; all zero means the defaults named here.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_cluster_config {
    pub struct_size: u32,
    pub flags: u32,
    pub topology: u32,
    pub max_connections: u32,
    pub listen: *const c_char,
    pub listen_bytes: u64,
    pub join_timeout_ns: i64,
    pub leave_timeout_ns: i64,
    pub queue: *mut muster_queue,
    pub tag: u64,
    pub max_broadcast_bytes: u64,
    pub store: *const c_char,
    pub store_bytes: u64,
    pub reserved1: u64,
}

impl Default for muster_cluster_config {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_cluster_config {
    pub fn sized() -> Self {
        muster_cluster_config { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// What to launch; zero means the default named here.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_launch {
    pub struct_size: u32,
    pub flags: u32,
    pub manager: *const c_char,
    pub count: u32,
    pub reserved: u32,
    pub argv: *const *const c_char,
    pub envp: *const *const c_char,
    pub directory: *const c_char,
    pub listen: *const c_char,
    pub ident: *const c_char,
    pub connect_idents: *const c_char,
    pub options: *const c_char,
    pub reserved1: [u64; 4],
}

impl Default for muster_launch {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_launch {
    pub fn sized() -> Self {
        muster_launch { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// One event.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_cluster_event {
    pub kind: u32,
    pub member: u32,
    pub status: muster_status,
    pub label_bytes: u32,
    pub stream: *mut muster_stream,
    pub text_bytes: u32,
    pub reserved: u32,
    pub label: [c_char; 256],
    pub text: [c_char; 232],
    pub broadcast: *mut muster_broadcast,
    pub data: *const c_void,
    pub size_bytes: u64,
}

impl Default for muster_cluster_event {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// Information about a member.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_member_info {
    pub member: u32,
    pub state: u32,
    pub pid: i64,
    pub data: u64,
    pub host: [c_char; 256],
    pub address: [c_char; 1024],
    pub reserved: [u64; 4],
}

impl Default for muster_member_info {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

extern "C" {
    /// Opens a cluster; the caller is its master.
    pub fn muster_cluster_open(context: *mut muster_context, config: *const muster_cluster_config, out_cluster: *mut *mut muster_cluster, error: *mut muster_error) -> muster_status;
    /// Begins to open a cluster, as muster_cluster_open() does.
    pub fn muster_cluster_open_begin(context: *mut muster_context, config: *const muster_cluster_config, queue: *mut muster_queue, tag: u64, error: *mut muster_error) -> muster_status;
    /// Adds workers.
    pub fn muster_cluster_add(cluster: *mut muster_cluster, launch: *const muster_launch, out_first: *mut u32, error: *mut muster_error) -> muster_status;
    /// Adds workers, as muster_cluster_add() does, and reports when that is complete, which takes time only for an `elastic` launch with a store.
    pub fn muster_cluster_add_begin(cluster: *mut muster_cluster, launch: *const muster_launch, queue: *mut muster_queue, tag: u64, error: *mut muster_error) -> muster_status;
    /// Removes a worker: it is requested to leave (it receives MUSTER_CLUSTER_LEAVE), and killed if it has not left when the grace is over.
    pub fn muster_cluster_remove(cluster: *mut muster_cluster, member: u32, grace_ns: i64) -> muster_status;
    /// Interrupts a worker: it receives MUSTER_CLUSTER_INTERRUPT, and with MUSTER_WORKER_RAISE_INTERRUPT the signal SIGINT, which the thread of its library sends to its own process.
    pub fn muster_cluster_interrupt(cluster: *mut muster_cluster, member: u32) -> muster_status;
    /// Takes the oldest event.
    pub fn muster_cluster_next_event(cluster: *mut muster_cluster, timeout_ns: i64, out_event: *mut muster_cluster_event) -> muster_status;
    /// Opens the store that the members of a cluster share, for their own keys, a rendezvous or a group (muster_group_config.cluster).
    pub fn muster_cluster_store(cluster: *mut muster_cluster, timeout_ns: i64, out_store: *mut *mut muster_store, error: *mut muster_error) -> muster_status;
    /// Begins to open the store of a cluster, as muster_cluster_store() does.
    pub fn muster_cluster_store_begin(cluster: *mut muster_cluster, timeout_ns: i64, queue: *mut muster_queue, tag: u64, error: *mut muster_error) -> muster_status;
    /// Cancels the current waits in muster_cluster_next_event(), muster_cluster_dial(), muster_cluster_broadcast() and muster_cluster_close().
    pub fn muster_cluster_cancel(cluster: *mut muster_cluster) -> muster_status;
    /// Opens a stream to another member, which receives MUSTER_CLUSTER_STREAM.
    pub fn muster_cluster_dial(cluster: *mut muster_cluster, member: u32, label: *const c_void, label_bytes: usize, timeout_ns: i64, out_stream: *mut *mut muster_stream, error: *mut muster_error) -> muster_status;
    /// Begins to open a stream to another member; MUSTER_DONE_DIAL has the stream, or a status of muster_cluster_dial().
    pub fn muster_cluster_dial_begin(cluster: *mut muster_cluster, member: u32, label: *const c_void, label_bytes: usize, timeout_ns: i64, queue: *mut muster_queue, tag: u64, error: *mut muster_error) -> muster_status;
    /// Sends the same bytes to many members, each of which receives MUSTER_CLUSTER_BROADCAST.
    pub fn muster_cluster_broadcast(cluster: *mut muster_cluster, members: *const u32, count: usize, label: *const c_void, label_bytes: usize, data: *const c_void, size_bytes: u64, timeout_ns: i64, out_statuses: *mut muster_status, error: *mut muster_error) -> muster_status;
    /// Begins to send the same bytes to many members, as muster_cluster_broadcast() does; MUSTER_DONE_BROADCAST has its status.
    pub fn muster_cluster_broadcast_begin(cluster: *mut muster_cluster, members: *const u32, count: usize, label: *const c_void, label_bytes: usize, data: *const c_void, size_bytes: u64, timeout_ns: i64, out_statuses: *mut muster_status, queue: *mut muster_queue, tag: u64, error: *mut muster_error) -> muster_status;
    /// Releases the bytes of a broadcast: they must not be accessed any more.
    pub fn muster_broadcast_release(broadcast: *mut muster_broadcast);
    /// Reads the information about a member.
    pub fn muster_cluster_get_member(cluster: *mut muster_cluster, member: u32, out_info: *mut muster_member_info) -> muster_status;
    /// Lists the workers that are not gone.
    pub fn muster_cluster_list(cluster: *mut muster_cluster, out_members: *mut u32, capacity: usize, out_count: *mut usize) -> muster_status;
    /// Returns the number of this member.
    pub fn muster_cluster_self(cluster: *mut muster_cluster) -> u32;
    /// Leaves the cluster.
    pub fn muster_cluster_close(cluster: *mut muster_cluster, timeout_ns: i64) -> muster_status;
    /// Begins to leave the cluster, as muster_cluster_close() does; MUSTER_DONE_CALL has its status when the cluster is over.
    pub fn muster_cluster_close_begin(cluster: *mut muster_cluster, timeout_ns: i64, queue: *mut muster_queue, tag: u64, error: *mut muster_error) -> muster_status;
    /// Releases the handle; the cluster is closed as by muster_cluster_close(), without a wait.
    pub fn muster_cluster_release(cluster: *mut muster_cluster);
}

#[cfg(test)]
mod layout {
    use super::*;
    use std::mem::size_of;

    // As the C compiler has them: tests/abi compares it with the same numbers.
    #[test]
    fn structs_are_those_of_c() {
        assert_eq!(size_of::<muster_cluster_config>(), 96);
        at!(muster_cluster_config, struct_size, 0);
        at!(muster_cluster_config, flags, 4);
        at!(muster_cluster_config, topology, 8);
        at!(muster_cluster_config, max_connections, 12);
        at!(muster_cluster_config, listen, 16);
        at!(muster_cluster_config, listen_bytes, 24);
        at!(muster_cluster_config, join_timeout_ns, 32);
        at!(muster_cluster_config, leave_timeout_ns, 40);
        at!(muster_cluster_config, queue, 48);
        at!(muster_cluster_config, tag, 56);
        at!(muster_cluster_config, max_broadcast_bytes, 64);
        at!(muster_cluster_config, store, 72);
        at!(muster_cluster_config, store_bytes, 80);
        at!(muster_cluster_config, reserved1, 88);
        assert_eq!(size_of::<muster_launch>(), 112);
        at!(muster_launch, struct_size, 0);
        at!(muster_launch, flags, 4);
        at!(muster_launch, manager, 8);
        at!(muster_launch, count, 16);
        at!(muster_launch, reserved, 20);
        at!(muster_launch, argv, 24);
        at!(muster_launch, envp, 32);
        at!(muster_launch, directory, 40);
        at!(muster_launch, listen, 48);
        at!(muster_launch, ident, 56);
        at!(muster_launch, connect_idents, 64);
        at!(muster_launch, options, 72);
        at!(muster_launch, reserved1, 80);
        assert_eq!(size_of::<muster_cluster_event>(), 544);
        at!(muster_cluster_event, kind, 0);
        at!(muster_cluster_event, member, 4);
        at!(muster_cluster_event, status, 8);
        at!(muster_cluster_event, label_bytes, 12);
        at!(muster_cluster_event, stream, 16);
        at!(muster_cluster_event, text_bytes, 24);
        at!(muster_cluster_event, reserved, 28);
        at!(muster_cluster_event, label, 32);
        at!(muster_cluster_event, text, 288);
        at!(muster_cluster_event, broadcast, 520);
        at!(muster_cluster_event, data, 528);
        at!(muster_cluster_event, size_bytes, 536);
        assert_eq!(size_of::<muster_member_info>(), 1336);
        at!(muster_member_info, member, 0);
        at!(muster_member_info, state, 4);
        at!(muster_member_info, pid, 8);
        at!(muster_member_info, data, 16);
        at!(muster_member_info, host, 24);
        at!(muster_member_info, address, 280);
        at!(muster_member_info, reserved, 1304);
    }
}
