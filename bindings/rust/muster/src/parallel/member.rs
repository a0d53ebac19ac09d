// SPDX-License-Identifier: MIT
//! A member of a cluster: it executes calls, and makes calls.
use super::caller::Caller;
use super::message::CALL;
use super::server::{hand_on, Server};
use super::{CallError, Functions, Here, Value, CONNECT};
use crate::error::{Error, Status};
use crate::{Cluster, ClusterEvent};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

const LABEL: &[u8] = b"rust"; // label of the streams over which functions are called

pub(super) struct MemberHere {
    pub(super) cluster: Cluster,
    pub(super) functions: Functions,
    pub(super) callers: Mutex<BTreeMap<u32, Arc<Caller>>>,
    pub(super) workers: Mutex<BTreeSet<u32>>, // of a master: the workers that have joined
    pub(super) failed: Mutex<Option<(u32, Error)>>,
    pub(super) changed: Condvar, // `workers` or `failed`
    pub(super) interrupts: AtomicU64,
    pub(super) over: AtomicBool,
}

impl MemberHere {
    pub(super) fn new(cluster: Cluster, functions: Functions) -> Arc<MemberHere> {
        Arc::new(MemberHere {
            cluster,
            functions,
            callers: Mutex::default(),
            workers: Mutex::default(),
            failed: Mutex::default(),
            changed: Condvar::new(),
            interrupts: AtomicU64::new(0),
            over: AtomicBool::new(false),
        })
    }

    // Takes events until the cluster has ended, or this member is requested to leave.
    pub(super) fn handle_events(self: &Arc<Self>) {
        while let Ok(event) = self.cluster.next_event(None) {
            match event {
                Some(ClusterEvent::Stream(_, label, stream)) if label == LABEL => {
                    let server = Arc::new(Server::new(stream));
                    let here = self.clone();
                    thread::spawn(move || server.serve(here));
                }
                Some(ClusterEvent::Joined(member)) => self.change(|workers| workers.insert(member)),
                Some(ClusterEvent::Failed(member, why)) => {
                    *self.failed.lock().unwrap() = Some((member, why));
                    self.change(|workers| workers.remove(&member));
                }
                Some(ClusterEvent::Dead(member, _)) | Some(ClusterEvent::Removed(member)) => {
                    self.change(|workers| workers.remove(&member));
                }
                Some(ClusterEvent::Broadcast(member, label, bytes)) => {
                    if let Some(function) = &self.functions.on_broadcast {
                        let interrupts = self.interrupts.load(Ordering::Relaxed);
                        let at = Here { member: self.clone(), interrupts, turn: None };
                        // A panic has printed its message; later events are still handled.
                        let _ = catch_unwind(AssertUnwindSafe(|| function(&at, member, &label, bytes)));
                    }
                }
                Some(ClusterEvent::Interrupt) => {
                    self.interrupts.fetch_add(1, Ordering::Relaxed);
                }
                Some(ClusterEvent::Leave) | Some(ClusterEvent::MasterGone(_)) => break,
                _ => {}
            }
        }
        self.over.store(true, Ordering::Release);
        self.change(|_| true);
    }

    fn change(&self, how: impl FnOnce(&mut BTreeSet<u32>) -> bool) {
        how(&mut self.workers.lock().unwrap());
        self.changed.notify_all();
    }

    fn caller(&self, member: u32) -> Result<Arc<Caller>, CallError> {
        if member == self.cluster.number() {
            return Err(CallError::Lost(Error::new(Status::ARG, "that is this member itself")));
        }
        if let Some(there) = self.callers.lock().unwrap().get(&member) {
            if !there.over.load(Ordering::Acquire) {
                return Ok(there.clone());
            }
        }
        let stream = self.cluster.dial(member, LABEL, Some(CONNECT))?;
        let made = Arc::new(Caller::new(stream));
        let mut callers = self.callers.lock().unwrap();
        let there = callers.entry(member).or_insert_with(|| made.clone());
        if there.over.load(Ordering::Acquire) {
            *there = made;
        }
        Ok(there.clone())
    }

    pub(super) fn call<A: Value, R: Value>(&self, member: u32, name: &str, argument: &A) -> Result<R, CallError> {
        let (caller, question) = self.ask(member, CALL, name, |to| argument.put(to))?;
        let bytes = caller.answer(question)?;
        R::from_bytes(&bytes).ok_or_else(|| CallError::Failed("the result has another type than expected".into()))
    }

    // Sends a request to a member; its reply has this number. After an error the member has not received all of it.
    pub(super) fn ask(
        &self,
        member: u32,
        kind: u8,
        name: &str,
        put: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(Arc<Caller>, u64), CallError> {
        let caller = self.caller(member)?;
        hand_on();
        let question = caller.ask(kind, name, put)?;
        Ok((caller, question))
    }
}
