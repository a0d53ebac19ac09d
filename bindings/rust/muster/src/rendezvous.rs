// SPDX-License-Identifier: MIT
use crate::error::{check, check_status, cut, text_of, Error, Result};
use crate::{timeout_ns, Context, Queue, Store};
use muster_sys as sys;
use std::ptr;
use std::time::Duration;

/// How to open a rendezvous; None means the default named in `rendezvous.h`.
#[derive(Debug, Clone, Default)]
pub struct RendezvousConfig {
    /// Name of the run.
    pub run_id: String,
    /// URL of a store, or `static:`. Not needed with `store`.
    pub url: Option<String>,
    /// Store to use.
    pub store: Option<Store>,
    /// The address that other members get for the rank of this member.
    pub address: Vec<u8>,
    /// Key by which ranks are ordered if nothing else decides; None: the address.
    pub order_key: Vec<u8>,
    /// Minimum number of members of a round.
    pub min: u32,
    /// Maximum number of members of a round; 0: as `min`.
    pub max: u32,
    /// The preferred rank.
    pub rank: Option<u32>,
    /// Interval of its heartbeats.
    pub keep_alive: Option<Duration>,
    /// Time for further members to join after `min` have joined; zero: none.
    pub last_call: Option<Duration>,
    /// Opens a run again that was closed.
    pub reopen: bool,
    /// Where [`Event::Ready`](crate::Event::Ready) with this tag tells that there are events.
    pub queue: Option<(Queue, u64)>,
}

impl RendezvousConfig {
    // The struct of the C interface, which points into this one.
    pub(crate) fn as_raw(&self) -> sys::muster_rendezvous_config {
        let mut given = sys::muster_rendezvous_config::sized();
        given.flags = if self.rank.is_some() { sys::MUSTER_RENDEZVOUS_HAS_RANK } else { 0 }
            | if self.reopen { sys::MUSTER_RENDEZVOUS_REOPEN } else { 0 };
        given.run_id = self.run_id.as_ptr().cast();
        given.run_id_bytes = self.run_id.len() as u64;
        if let Some(url) = &self.url {
            given.url = url.as_ptr().cast();
            given.url_bytes = url.len() as u64;
        }
        given.store = self.store.as_ref().map_or(ptr::null_mut(), Store::as_raw);
        given.address = self.address.as_ptr().cast();
        given.address_bytes = self.address.len() as u64;
        given.order_key = self.order_key.as_ptr().cast();
        given.order_key_bytes = self.order_key.len() as u64;
        given.min = self.min;
        given.max = self.max;
        given.rank = self.rank.unwrap_or(0);
        given.keep_alive_ns = self.keep_alive.map_or(0, |time| timeout_ns(Some(time)));
        given.last_call_ns = match self.last_call {
            None => 0,
            Some(Duration::ZERO) => -1,
            some => timeout_ns(some),
        };
        if let Some((queue, tag)) = &self.queue {
            given.queue = queue.as_raw();
            given.tag = *tag;
        }
        given
    }
}

/// An event of a member of a run. `rank` None: there are too many for an event each, and the number is reported.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RendezvousEvent {
    /// This number of members have joined, this one included.
    Joined(u32),
    /// The minimum has joined: further members may join until the last call ends.
    LastCall,
    /// The round is complete with this number of members, and this member is one of them.
    Complete(u32),
    /// The member of this rank has left the round, or this number of members.
    Left(Option<u32>, u32),
    /// The member of this rank has died, or this number of members; and the evidence.
    Dead(Option<u32>, u32, String),
    /// This number of members wait for the next round.
    Waiting(u32),
    /// The round was aborted: the member that has done so, and its reason.
    Aborted(String),
    /// The others have declared this member dead.
    Expelled(String),
    /// The run was closed: the member that has done so, and its reason.
    Closed(String),
    /// The store is lost permanently.
    Lost(String),
}

/// A member of a run. A member that is dropped without leaving counts as dead.
#[derive(Debug)]
pub struct Rendezvous {
    raw: *mut sys::muster_rendezvous,
    _queue: Option<Queue>, // receives its events
}

// The functions of a rendezvous may be called by any thread at any time (rendezvous.h).
unsafe impl Send for Rendezvous {}
unsafe impl Sync for Rendezvous {}

impl Drop for Rendezvous {
    fn drop(&mut self) {
        unsafe { sys::muster_rendezvous_release(self.raw) }
    }
}

impl Rendezvous {
    /// Opens a rendezvous. No round waits for this member until it joins.
    pub fn open(context: &Context, config: &RendezvousConfig, timeout: Option<Duration>) -> Result<Rendezvous> {
        let given = config.as_raw();
        let mut raw = ptr::null_mut();
        check(|detail| unsafe {
            sys::muster_rendezvous_open(context.as_raw(), &given, timeout_ns(timeout), &mut raw, detail)
        })?;
        Ok(Rendezvous { raw, _queue: config.queue.as_ref().map(|(queue, _)| queue.clone()) })
    }

    /// Joins the next round, and waits until it is complete. A member that is in a round leaves that.
    pub fn join(&self, timeout: Option<Duration>) -> Result<Round> {
        let mut raw = ptr::null_mut();
        check(|detail| unsafe { sys::muster_rendezvous_join(self.raw, timeout_ns(timeout), &mut raw, detail) })?;
        Ok(Round { raw })
    }

    /// Leaves the round, or ends the wait for one. The member may join again.
    pub fn leave(&self, timeout: Option<Duration>) -> Result<()> {
        check(|detail| unsafe { sys::muster_rendezvous_leave(self.raw, timeout_ns(timeout), detail) })
    }

    /// Waits until all members that are in the round have called this.
    pub fn exit(&self, timeout: Option<Duration>) -> Result<()> {
        check(|detail| unsafe { sys::muster_rendezvous_exit(self.raw, timeout_ns(timeout), detail) })
    }

    /// Ends the round for all its members.
    pub fn abort(&self, reason: &str, timeout: Option<Duration>) -> Result<()> {
        let reason = cut(reason);
        check(|detail| unsafe {
            let text = reason.as_ptr().cast();
            sys::muster_rendezvous_abort(self.raw, text, reason.len(), timeout_ns(timeout), detail)
        })
    }

    /// Closes the run: no further round begins.
    pub fn close(&self, reason: &str, timeout: Option<Duration>) -> Result<()> {
        let reason = cut(reason);
        check(|detail| unsafe {
            let text = reason.as_ptr().cast();
            sys::muster_rendezvous_close(self.raw, text, reason.len(), timeout_ns(timeout), detail)
        })
    }

    /// Ends the current calls on this member, with [`Status::CANCELED`](crate::Status::CANCELED).
    pub fn cancel(&self) -> Result<()> {
        check_status(unsafe { sys::muster_rendezvous_cancel(self.raw) })
    }

    /// Takes the oldest event; None: no event has arrived within the timeout.
    pub fn next_event(&self, timeout: Option<Duration>) -> Result<Option<RendezvousEvent>> {
        let mut event = sys::muster_rendezvous_event::default();
        loop {
            match unsafe { sys::muster_rendezvous_next_event(self.raw, timeout_ns(timeout), &mut event) } {
                sys::MUSTER_OK => {}
                sys::MUSTER_AGAIN | sys::MUSTER_TIMEOUT => return Ok(None),
                status => return Err(Error::of(status)),
            }
            if let Some(known) = event_of(&event) {
                return Ok(Some(known));
            }
        }
    }

    /// The current state, without a request to the store.
    pub fn state(&self) -> Result<sys::muster_rendezvous_state> {
        let mut state = sys::muster_rendezvous_state::default();
        check_status(unsafe { sys::muster_rendezvous_get_state(self.raw, &mut state) })?;
        Ok(state)
    }

    /// The handle of the C interface; this object keeps the ownership.
    pub fn as_raw(&self) -> *mut sys::muster_rendezvous {
        self.raw
    }
}

// None: a kind that this crate does not know, of a later library.
fn event_of(event: &sys::muster_rendezvous_event) -> Option<RendezvousEvent> {
    let rank = if event.rank == u32::MAX { None } else { Some(event.rank) };
    let text = || text_of(&event.text);
    Some(match event.kind {
        sys::MUSTER_RENDEZVOUS_JOINED => RendezvousEvent::Joined(event.count),
        sys::MUSTER_RENDEZVOUS_LAST_CALL => RendezvousEvent::LastCall,
        sys::MUSTER_RENDEZVOUS_COMPLETE => RendezvousEvent::Complete(event.count),
        sys::MUSTER_RENDEZVOUS_LEFT => RendezvousEvent::Left(rank, event.count),
        sys::MUSTER_RENDEZVOUS_DEAD => RendezvousEvent::Dead(rank, event.count, text()),
        sys::MUSTER_RENDEZVOUS_WAITING => RendezvousEvent::Waiting(event.count),
        sys::MUSTER_RENDEZVOUS_ABORTED => RendezvousEvent::Aborted(text()),
        sys::MUSTER_RENDEZVOUS_EXPELLED => RendezvousEvent::Expelled(text()),
        sys::MUSTER_RENDEZVOUS_CLOSED => RendezvousEvent::Closed(text()),
        sys::MUSTER_RENDEZVOUS_LOST => RendezvousEvent::Lost(text()),
        _ => return None,
    })
}

/// A round that was joined. The member stays in the round when this is dropped.
#[derive(Debug)]
pub struct Round {
    raw: *mut sys::muster_round,
}

// The functions of a round may be called by any thread at any time (rendezvous.h).
unsafe impl Send for Round {}
unsafe impl Sync for Round {}

impl Drop for Round {
    fn drop(&mut self) {
        unsafe { sys::muster_round_release(self.raw) }
    }
}

impl Round {
    /// The handle of the C interface; this object keeps the ownership.
    pub fn as_raw(&self) -> *mut sys::muster_round {
        self.raw
    }

    fn info(&self) -> sys::muster_round_info {
        let mut info = sys::muster_round_info::default();
        unsafe { sys::muster_round_get_info(self.raw, &mut info) };
        info
    }
    /// Number of the round in its run, from 1; usable as a fencing token.
    pub fn number(&self) -> u64 {
        self.info().number
    }
    /// Rank of this member.
    pub fn rank(&self) -> u32 {
        self.info().rank
    }
    /// Number of members of the round.
    pub fn world(&self) -> u32 {
        self.info().world
    }
    /// Hash of the table of members, the same for all of them.
    pub fn digest(&self) -> [u8; 32] {
        self.info().digest
    }
    /// Does this member know that the round has ended?
    pub fn is_over(&self) -> bool {
        self.info().flags & sys::MUSTER_ROUND_IS_OVER != 0
    }

    /// The store of the round: requests fail with [`Status::STALE`](crate::Status::STALE) after the end of the round.
    pub fn store(&self) -> Result<Store> {
        let mut raw = ptr::null_mut();
        check(|detail| unsafe { sys::muster_round_store(self.raw, &mut raw, detail) })?;
        Ok(Store::adopt(raw))
    }

    /// The address of the member of a rank.
    pub fn member(&self, rank: u32, timeout: Option<Duration>) -> Result<Vec<u8>> {
        let mut member = sys::muster_round_member_info::default();
        check(|detail| unsafe { sys::muster_round_member(self.raw, rank, timeout_ns(timeout), &mut member, detail) })?;
        if member.address_bytes == 0 {
            return Ok(Vec::new());
        }
        let bytes = unsafe { std::slice::from_raw_parts(member.address.cast(), member.address_bytes as usize) };
        Ok(bytes.to_vec())
    }
}
