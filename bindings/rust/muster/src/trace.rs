// SPDX-License-Identifier: MIT
//! What the threads of this process did and when, as a file for [Perfetto](https://ui.perfetto.dev).
//!
//! ```no_run
//! use muster::trace;
//! trace::start(&trace::Config::default())?;
//! {
//!     let _span = trace::span("load");
//!     // ...
//! }
//! trace::save("mine.pftrace")?;
//! # Ok::<(), muster::Error>(())
//! ```
//!
//! A process that has `MUSTER_TRACE` in its environment writes its trace into that folder when its context ends.
use crate::error::{check, Result};
use crate::{timeout_ns, Group};
use muster_sys as sys;
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// How to trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct Config<'a> {
    /// Name of this process in the trace; `None`: that of the program.
    pub name: Option<&'a str>,
    /// Events that each thread keeps, the newest ones, 256 to 16,777,216; 0: 8192.
    pub events: u32,
}

/// Begins a trace. The events of an earlier trace are discarded.
pub fn start(config: &Config) -> Result<()> {
    let mut given = sys::muster_trace_config::sized();
    given.events = config.events;
    if let Some(name) = config.name {
        given.name = name.as_ptr().cast();
        given.name_bytes = name.len() as u64;
    }
    check(|detail| unsafe { sys::muster_trace_start(&given, detail) })
}

/// Ends it; [`save`] can still write it.
pub fn stop() {
    unsafe { sys::muster_trace_stop() }
}

/// A span of this thread, which ends when it is dropped. Spans end in the reverse order of their begins.
#[derive(Debug)]
#[must_use = "a span ends when it is dropped"]
pub struct Span(PhantomData<*const ()>); // of one thread

/// Begins a span of this thread.
pub fn span(name: &str) -> Span {
    unsafe { sys::muster_trace_begin(name.as_ptr().cast(), name.len()) }
    Span(PhantomData)
}

impl Drop for Span {
    fn drop(&mut self) {
        unsafe { sys::muster_trace_end() }
    }
}

/// Marks a moment of this thread.
pub fn mark(name: &str) {
    unsafe { sys::muster_trace_mark(name.as_ptr().cast(), name.len()) }
}

/// Marks a moment that belongs to a flow: those with the same number are connected by arrows, in all processes.
/// [`flow_of`] makes a number of a text.
pub fn flow(name: &str, number: u64) {
    unsafe { sys::muster_trace_flow(name.as_ptr().cast(), name.len(), number) }
}

/// The number of a flow by the name of what is passed on, the same in the bindings of all languages: FNV-1a of 64 bits.
pub fn flow_of(text: &str) -> u64 {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    hash.max(1)
}

/// What a trace has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Are events written now?
    pub is_on: bool,
    /// Events that were written since the start, those included that were overwritten.
    pub events: u64,
    /// Threads that have written any.
    pub threads: u64,
    /// Of [`align`]: what is added to the times of this process, in nanoseconds.
    pub offset_ns: i64,
    /// The true value is at most so far from it; `None`: it was not measured.
    pub offset_error_ns: Option<u64>,
}

fn state_of(found: &sys::muster_trace_state) -> State {
    State {
        is_on: found.is_on != 0,
        events: found.events,
        threads: found.threads,
        offset_ns: found.offset_ns,
        offset_error_ns: u64::try_from(found.offset_error_ns).ok(),
    }
}

/// What the trace has.
pub fn state() -> State {
    let mut found = unsafe { std::mem::zeroed::<sys::muster_trace_state>() };
    unsafe { sys::muster_trace_get_state(&mut found) };
    state_of(&found)
}

/// Measures the clock of this member against that of rank 0; a call of all members of the group. The state afterwards.
pub fn align(group: &Group, timeout: Option<Duration>) -> Result<State> {
    let mut found = unsafe { std::mem::zeroed::<sys::muster_trace_state>() };
    check(|detail| unsafe { sys::muster_trace_align(group.as_raw(), timeout_ns(timeout), &mut found, detail) })?;
    Ok(state_of(&found))
}

/// Writes the file; a trace that is on goes on.
pub fn save(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref().as_os_str().as_bytes();
    check(|detail| unsafe { sys::muster_trace_save(path.as_ptr().cast(), path.len(), detail) })
}
