// SPDX-License-Identifier: MIT
// Written by bindings/rust/generate from include/muster/agent.h; do not edit.
//! What `include/muster/agent.h` declares.
#![allow(unused_imports)]
#![cfg_attr(rustfmt, rustfmt_skip)]

use super::*;
use std::os::raw::{c_char, c_int, c_void};

/// Opaque; made by muster_agent_start().
#[repr(C)]
pub struct muster_agent {
    _private: [u8; 0],
}

// muster_agent_flag: Flags of muster_agent_config.flags.
pub const MUSTER_AGENT_NO_GUARD: u32 = 1;
pub const MUSTER_AGENT_VIRTUAL_LOCAL_RANK: u32 = 2;

// muster_agent_output: Outputs of a worker; bits of muster_agent_config.log_outputs and muster_agent_config.console_outputs.
pub const MUSTER_AGENT_STDOUT: u32 = 1;
pub const MUSTER_AGENT_STDERR: u32 = 2;

// muster_agent_phase: The phase of an agent; the value of muster_agent_state.phase.
pub const MUSTER_AGENT_JOINING: u32 = 1;
pub const MUSTER_AGENT_STARTING: u32 = 2;
pub const MUSTER_AGENT_RUNNING: u32 = 3;
pub const MUSTER_AGENT_STOPPING: u32 = 4;
pub const MUSTER_AGENT_DONE: u32 = 5;
pub const MUSTER_AGENT_ENDED: u32 = 6;

// muster_agent_worker_state: The state of a worker; the value of muster_agent_worker.state.
pub const MUSTER_WORKER_NONE: u32 = 0;
pub const MUSTER_WORKER_RUNNING: u32 = 1;
pub const MUSTER_WORKER_SUCCEEDED: u32 = 2;
pub const MUSTER_WORKER_FAILED: u32 = 3;
pub const MUSTER_WORKER_STOPPED: u32 = 4;

// muster_agent_event: A step of an agent; the value of muster_completion.events of MUSTER_EVENT_AGENT.
pub const MUSTER_AGENT_STARTED: u32 = 1;
pub const MUSTER_AGENT_WORKER_ENDED: u32 = 2;
pub const MUSTER_AGENT_RESTARTING: u32 = 3;
pub const MUSTER_AGENT_RENDEZVOUS_EVENT: u32 = 4;

/// Where the outputs of one worker go; 16 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_agent_outputs {
    pub local_rank: u32,
    pub log_outputs: u32,
    pub console_outputs: u32,
    pub discarded_outputs: u32,
}

impl Default for muster_agent_outputs {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// What to run; all zero means the defaults named here.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_agent_config {
    pub struct_size: u32,
    pub flags: u32,
    pub argv: *const *const c_char,
    pub envp: *const *const c_char,
    pub directory: *const c_char,
    pub worker_count: u32,
    pub max_restarts: u32,
    pub grace_ns: i64,
    pub run_id: *const c_char,
    pub role: *const c_char,
    pub log_dir: *const c_char,
    pub log_outputs: u32,
    pub console_outputs: u32,
    pub out_fd_plus_one: i32,
    pub err_fd_plus_one: i32,
    pub local_address: *const c_char,
    pub rendezvous: *const muster_rendezvous_config,
    pub master_address: *const c_char,
    pub master_port: u32,
    pub reserved0: u32,
    pub join_timeout_ns: i64,
    pub exit_timeout_ns: i64,
    pub outputs: *const muster_agent_outputs,
    pub output_count: u64,
    pub reserved: [u64; 2],
}

impl Default for muster_agent_config {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

impl muster_agent_config {
    pub fn sized() -> Self {
        muster_agent_config { struct_size: std::mem::size_of::<Self>() as u32, ..Default::default() }
    }
}

/// The state of an agent; filled by muster_agent_get_state().
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_agent_state {
    pub phase: u32,
    pub worker_count: u32,
    pub running: u32,
    pub restarts: u32,
    pub group_rank: u32,
    pub group_world_size: u32,
    pub first_rank: u32,
    pub world_size: u32,
    pub round: u64,
    pub master_address: [c_char; 256],
    pub master_port: u32,
    pub reserved: [u32; 7],
}

impl Default for muster_agent_state {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

/// One worker; filled by muster_agent_get_worker() and muster_agent_first_failure().
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct muster_agent_worker {
    pub local_rank: u32,
    pub rank: u32,
    pub state: u32,
    pub restarts: u32,
    pub pid: i32,
    pub exit: muster_process_exit,
    pub reserved0: u32,
    pub started_unix_ns: i64,
    pub ended_unix_ns: i64,
    pub failed_unix_ns: i64,
    pub round: u64,
    pub message: [c_char; 512],
    pub directory: [c_char; 256],
}

impl Default for muster_agent_worker {
    fn default() -> Self {
        // Zero is a value of each of its fields: numbers, pointers and functions that may be none.
        unsafe { std::mem::zeroed() }
    }
}

extern "C" {
    /// Starts an agent.
    pub fn muster_agent_start(context: *mut muster_context, config: *const muster_agent_config, queue: *mut muster_queue, tag: u64, out_agent: *mut *mut muster_agent, error: *mut muster_error) -> muster_status;
    /// Waits for the end of an agent.
    pub fn muster_agent_wait(agent: *mut muster_agent, timeout_ns: i64, error: *mut muster_error) -> muster_status;
    /// Sends a signal to the process groups of all running workers of this node.
    pub fn muster_agent_signal(agent: *mut muster_agent, signal: i32) -> muster_status;
    /// Stops the workers of this node and ends the agent.
    pub fn muster_agent_stop(agent: *mut muster_agent, signal: i32, grace_ns: i64) -> muster_status;
    /// Reads the state of an agent.
    pub fn muster_agent_get_state(agent: *mut muster_agent, out_state: *mut muster_agent_state) -> muster_status;
    /// Returns the rendezvous of an agent, to read its state and its list of members.
    pub fn muster_agent_rendezvous(agent: *mut muster_agent, out_rendezvous: *mut *mut muster_rendezvous) -> muster_status;
    /// Reads one worker of this node, as of its last start.
    pub fn muster_agent_get_worker(agent: *mut muster_agent, local_rank: u32, out_worker: *mut muster_agent_worker) -> muster_status;
    /// Reads the worker of this node that failed first, in the last group in which one failed.
    pub fn muster_agent_first_failure(agent: *mut muster_agent, out_worker: *mut muster_agent_worker) -> muster_status;
    /// Copies the text in the error file of muster_agent_first_failure(): the place in the program where the worker failed (`py_callstack`) if the file has it, otherwise the message.
    pub fn muster_agent_failure_text(agent: *mut muster_agent, out_text: *mut c_char, capacity: usize, out_bytes: *mut usize) -> muster_status;
    /// Waits until the lines of console_outputs were written: all lines of workers that had ended before the call.
    pub fn muster_agent_flush(agent: *mut muster_agent, timeout_ns: i64) -> muster_status;
    /// Begins to flush, as muster_agent_flush() does; MUSTER_DONE_CALL has its status.
    pub fn muster_agent_flush_begin(agent: *mut muster_agent, timeout_ns: i64, queue: *mut muster_queue, tag: u64, error: *mut muster_error) -> muster_status;
    /// Releases the handle; the workers are stopped as by muster_agent_stop(), without a wait.
    pub fn muster_agent_release(agent: *mut muster_agent);
}

#[cfg(test)]
mod layout {
    use super::*;
    use std::mem::size_of;

    // As the C compiler has them: tests/abi compares it with the same numbers.
    #[test]
    fn structs_are_those_of_c() {
        assert_eq!(size_of::<muster_agent_outputs>(), 16);
        at!(muster_agent_outputs, local_rank, 0);
        at!(muster_agent_outputs, log_outputs, 4);
        at!(muster_agent_outputs, console_outputs, 8);
        at!(muster_agent_outputs, discarded_outputs, 12);
        assert_eq!(size_of::<muster_agent_config>(), 168);
        at!(muster_agent_config, struct_size, 0);
        at!(muster_agent_config, flags, 4);
        at!(muster_agent_config, argv, 8);
        at!(muster_agent_config, envp, 16);
        at!(muster_agent_config, directory, 24);
        at!(muster_agent_config, worker_count, 32);
        at!(muster_agent_config, max_restarts, 36);
        at!(muster_agent_config, grace_ns, 40);
        at!(muster_agent_config, run_id, 48);
        at!(muster_agent_config, role, 56);
        at!(muster_agent_config, log_dir, 64);
        at!(muster_agent_config, log_outputs, 72);
        at!(muster_agent_config, console_outputs, 76);
        at!(muster_agent_config, out_fd_plus_one, 80);
        at!(muster_agent_config, err_fd_plus_one, 84);
        at!(muster_agent_config, local_address, 88);
        at!(muster_agent_config, rendezvous, 96);
        at!(muster_agent_config, master_address, 104);
        at!(muster_agent_config, master_port, 112);
        at!(muster_agent_config, reserved0, 116);
        at!(muster_agent_config, join_timeout_ns, 120);
        at!(muster_agent_config, exit_timeout_ns, 128);
        at!(muster_agent_config, outputs, 136);
        at!(muster_agent_config, output_count, 144);
        at!(muster_agent_config, reserved, 152);
        assert_eq!(size_of::<muster_agent_state>(), 328);
        at!(muster_agent_state, phase, 0);
        at!(muster_agent_state, worker_count, 4);
        at!(muster_agent_state, running, 8);
        at!(muster_agent_state, restarts, 12);
        at!(muster_agent_state, group_rank, 16);
        at!(muster_agent_state, group_world_size, 20);
        at!(muster_agent_state, first_rank, 24);
        at!(muster_agent_state, world_size, 28);
        at!(muster_agent_state, round, 32);
        at!(muster_agent_state, master_address, 40);
        at!(muster_agent_state, master_port, 296);
        at!(muster_agent_state, reserved, 300);
        assert_eq!(size_of::<muster_agent_worker>(), 832);
        at!(muster_agent_worker, local_rank, 0);
        at!(muster_agent_worker, rank, 4);
        at!(muster_agent_worker, state, 8);
        at!(muster_agent_worker, restarts, 12);
        at!(muster_agent_worker, pid, 16);
        at!(muster_agent_worker, exit, 20);
        at!(muster_agent_worker, reserved0, 28);
        at!(muster_agent_worker, started_unix_ns, 32);
        at!(muster_agent_worker, ended_unix_ns, 40);
        at!(muster_agent_worker, failed_unix_ns, 48);
        at!(muster_agent_worker, round, 56);
        at!(muster_agent_worker, message, 64);
        at!(muster_agent_worker, directory, 576);
    }
}
