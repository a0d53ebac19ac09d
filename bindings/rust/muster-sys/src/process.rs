// SPDX-License-Identifier: MIT
// Written by bindings/rust/generate from include/muster/process.h; do not edit.
//! What `include/muster/process.h` declares.
#![allow(unused_imports)]
#![cfg_attr(rustfmt, rustfmt_skip)]

use super::*;
use std::os::raw::{c_char, c_int, c_void};

/// Opaque; a child process.
#[repr(C)]
pub struct muster_process {
    _private: [u8; 0],
}

// muster_process_exit_kind: How a process ended; the value of muster_process_exit.kind.
pub const MUSTER_PROCESS_EXITED: i32 = 1;
pub const MUSTER_PROCESS_KILLED: i32 = 2;
pub const MUSTER_PROCESS_UNKNOWN: i32 = 3;

/// Maps a descriptor of this process to a number in the child.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_process_fd {
    pub parent_fd: i32,
    pub child_fd: i32,
}

impl Default for muster_process_fd {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// What to start.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_process_config {
    pub struct_size: u32,
    pub flags: u32,
    pub argv: *const *const c_char,
    pub envp: *const *const c_char,
    pub directory: *const c_char,
    pub fds: *const muster_process_fd,
    pub fd_count: u64,
}

impl Default for muster_process_config {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_process_config {
    pub fn sized() -> Self {
        muster_process_config { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// How a process ended.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_process_exit {
    pub kind: i32,
    pub value: i32,
}

impl Default for muster_process_exit {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

extern "C" {
    /// Starts a program.
    pub fn muster_process_spawn(context: *mut muster_context, config: *const muster_process_config, out_process: *mut *mut muster_process, error: *mut muster_error) -> muster_status;
    /// Returns the process id.
    pub fn muster_process_pid(process: *const muster_process) -> i32;
    /// Waits for the end of a process; muster_process_watch() is the form that does not block.
    pub fn muster_process_wait(process: *mut muster_process, timeout_ns: i64, out_exit: *mut muster_process_exit) -> muster_status;
    /// Watches a process: MUSTER_DONE_EXIT follows when it ends; one watch per process.
    pub fn muster_process_watch(process: *mut muster_process, queue: *mut muster_queue, tag: u64) -> muster_status;
    /// Sends a signal to the process and its whole group.
    pub fn muster_process_kill(process: *mut muster_process, signal: i32) -> muster_status;
    /// Releases the handle; the child continues, and is still reaped when it ends.
    pub fn muster_process_release(process: *mut muster_process);
    /// Ends this process when another one is gone (for instance the local master that started it): SIGTERM to itself from a library thread, then SIGKILL.
    pub fn muster_process_exit_with(context: *mut muster_context, pid: i32, grace_ns: i64, error: *mut muster_error) -> muster_status;
}

#[cfg(test)]
mod layout {
    use super::*;
    use std::mem::size_of;

    // As the C compiler has them: tests/abi compares it with the same numbers.
    #[test]
    fn structs_are_those_of_c() {
        assert_eq!(size_of::<muster_process_fd>(), 8);
        at!(muster_process_fd, parent_fd, 0);
        at!(muster_process_fd, child_fd, 4);
        assert_eq!(size_of::<muster_process_config>(), 48);
        at!(muster_process_config, struct_size, 0);
        at!(muster_process_config, flags, 4);
        at!(muster_process_config, argv, 8);
        at!(muster_process_config, envp, 16);
        at!(muster_process_config, directory, 24);
        at!(muster_process_config, fds, 32);
        at!(muster_process_config, fd_count, 40);
        assert_eq!(size_of::<muster_process_exit>(), 8);
        at!(muster_process_exit, kind, 0);
        at!(muster_process_exit, value, 4);
    }
}
