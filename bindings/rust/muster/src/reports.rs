// SPDX-License-Identifier: MIT
//! The workers that a manager launches, and its report of each.
use crate::error::{check, check_status, cut, failure, unanswered, Error, Result};
use crate::{Cluster, Queue};
use muster_sys as sys;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// The workers to be launched.
#[derive(Clone, Debug)]
pub struct LaunchRequest {
    /// Number of the first worker.
    pub first: u32,
    /// Number of workers.
    pub count: u32,
    /// Program and arguments, if they were given.
    pub argv: Vec<String>,
    /// `NAME=value`: to be added to the environment.
    pub environment: Vec<String>,
    /// Their working directory, if it was given.
    pub directory: Option<String>,
    /// Options for the manager, in its syntax.
    pub options: String,
    /// The workers print the address at which they listen, and the master dials them.
    pub master_dials: bool,
}

/// The reports of a manager on a launch; valid until each of its workers was reported. When the last clone is dropped,
/// the workers that were not reported have failed with [`Status::CANCELED`](crate::Status::CANCELED), or with
/// [`Status::INTERNAL`](crate::Status::INTERNAL) while its thread panics.
#[derive(Clone)]
pub struct Reports {
    launch: Arc<Launching>,
}

struct Launching {
    queue: Queue,
    request: u64,
    left: Mutex<BTreeSet<u32>>, // not reported
}

impl Launching {
    fn failed(&self, member: u32, why: &Error) -> Result<()> {
        let text = cut(why.message());
        check(|detail| unsafe {
            let (queue, at) = (self.queue.as_raw(), text.as_ptr().cast());
            let status = failure(why);
            sys::muster_manager_worker_failed(queue, self.request, member, status, at, text.len(), detail)
        })
    }

    fn reported(&self, member: u32) {
        self.left.lock().unwrap_or_else(|why| why.into_inner()).remove(&member);
    }
}

impl Drop for Launching {
    fn drop(&mut self) {
        let left = std::mem::take(self.left.get_mut().unwrap_or_else(|why| why.into_inner()));
        for member in left {
            let _ = self.failed(member, &unanswered("manager")); // stale if it was cancelled
        }
    }
}

impl Reports {
    pub(crate) fn new(queue: Queue, request: u64, members: Range<u32>) -> Reports {
        Reports { launch: Arc::new(Launching { queue, request, left: Mutex::new(members.collect()) }) }
    }

    /// The ticket of a worker, one line with its newline: it is passed to the worker over a descriptor, and must not be
    /// shown.
    pub fn ticket(&self, member: u32) -> Result<Vec<u8>> {
        let mut size = 0;
        let raw = self.launch.queue.as_raw();
        check_status(unsafe {
            sys::muster_manager_ticket(raw, self.launch.request, member, std::ptr::null_mut(), 0, &mut size)
        })?;
        let mut line = vec![0u8; size];
        check_status(unsafe {
            sys::muster_manager_ticket(
                raw,
                self.launch.request,
                member,
                line.as_mut_ptr().cast(),
                line.len(),
                &mut size,
            )
        })?;
        Ok(line)
    }

    /// A worker was started. `data` is passed to later requests for this worker.
    pub fn ready(&self, member: u32, address: Option<&str>, data: u64) -> Result<()> {
        let text = address.unwrap_or("");
        let place = if address.is_some() { text.as_ptr().cast() } else { std::ptr::null() };
        check(|detail| unsafe {
            let (queue, request) = (self.launch.queue.as_raw(), self.launch.request);
            sys::muster_manager_worker_ready(queue, request, member, place, text.len(), data, detail)
        })?;
        self.launch.reported(member);
        Ok(())
    }

    /// A worker could not be started.
    pub fn failed(&self, member: u32, why: &Error) -> Result<()> {
        self.launch.failed(member, why)?;
        self.launch.reported(member);
        Ok(())
    }

    /// A worker that was started has ended.
    pub fn ended(queue: &Queue, cluster: &Cluster, member: u32, how: &str) -> Result<()> {
        let text = cut(how);
        check(|detail| unsafe {
            let at = text.as_ptr().cast();
            sys::muster_manager_worker_ended(queue.as_raw(), cluster.as_raw(), member, at, text.len(), detail)
        })
    }
}

impl std::fmt::Debug for Reports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reports").finish_non_exhaustive()
    }
}
