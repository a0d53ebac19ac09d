// SPDX-License-Identifier: MIT
//! A list worked at by all workers, batch by batch; what one had that died is given to another.
use super::member::MemberHere;
use super::message::MAP;
use super::{value, CallError, Value};
use crate::error::{Error, Status};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread;

pub(super) fn map<A: Value + Sync, R: Value + Send>(
    here: &MemberHere,
    name: &str,
    list: &[A],
    batch: usize,
) -> Result<Vec<R>, CallError> {
    let job = MapJob {
        here,
        name,
        list,
        batch,
        waiting: Mutex::new((0..list.len()).step_by(batch).rev().collect()),
        more: Condvar::new(),
        results: Mutex::new(list.iter().map(|_| None).collect()),
        left: AtomicUsize::new((list.len() + batch - 1) / batch),
        working: AtomicUsize::new(0),
        failure: Mutex::new(None),
    };
    job.run();
    if let Some(why) = job.failure.into_inner().unwrap() {
        return Err(CallError::Failed(why));
    }
    let results: Option<Vec<R>> = job.results.into_inner().unwrap().into_iter().collect();
    results.ok_or_else(|| CallError::Lost(Error::new(Status::PEER, "no worker is left")))
}

struct MapJob<'a, A, R> {
    here: &'a MemberHere,
    name: &'a str,
    list: &'a [A],
    batch: usize,
    waiting: Mutex<Vec<usize>>, // the first entry of each batch, the next one last
    more: Condvar,              // with `waiting`: there are more, or there will be none
    results: Mutex<Vec<Option<R>>>,
    left: AtomicUsize,
    working: AtomicUsize, // threads
    failure: Mutex<Option<String>>,
}

// A thread of a job's. However it ends the job is told, also when a value of the program's own panics.
struct Working<'a, 'b, A: Value + Sync, R: Value + Send> {
    job: &'a MapJob<'b, A, R>,
}

impl<A: Value + Sync, R: Value + Send> Drop for Working<'_, '_, A, R> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.job.fail("a value panicked".into());
            let _order = self.job.waiting.lock();
            self.job.more.notify_all();
        }
        let here = self.job.here;
        let _order = here.workers.lock();
        self.job.working.fetch_sub(1, Ordering::AcqRel);
        here.changed.notify_all();
    }
}

impl<A: Value + Sync, R: Value + Send> MapJob<'_, A, R> {
    fn run(&self) {
        thread::scope(|scope| {
            let mut started = BTreeSet::new();
            let here = self.here;
            let mut workers = here.workers.lock().unwrap();
            loop {
                for &member in workers.iter() {
                    if !started.insert(member) {
                        continue;
                    }
                    for _ in 0..2 {
                        // While one batch is on its way the other is worked at.
                        self.working.fetch_add(1, Ordering::AcqRel);
                        scope.spawn(move || {
                            let working = Working { job: self };
                            working.job.work(member);
                        });
                    }
                }
                let over = self.over();
                if self.working.load(Ordering::Acquire) == 0
                    && (over || workers.iter().all(|one| started.contains(one)))
                {
                    return;
                }
                workers = here.changed.wait(workers).unwrap();
            }
        });
    }

    fn over(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0 || self.failure.lock().unwrap().is_some()
    }

    // The next one to be worked at. While others are at the last ones it waits: a worker that dies gives its own back.
    fn next_batch(&self) -> Option<usize> {
        let mut waiting = self.waiting.lock().unwrap();
        loop {
            if self.over() {
                return None;
            }
            if let Some(first) = waiting.pop() {
                return Some(first);
            }
            waiting = self.more.wait(waiting).unwrap();
        }
    }

    fn fail(&self, why: String) {
        self.failure.lock().unwrap().get_or_insert(why);
    }

    fn work(&self, member: u32) {
        while let Some(first) = self.next_batch() {
            let entries = &self.list[first..self.list.len().min(first + self.batch)];
            let put = |to: &mut Vec<u8>| {
                for entry in entries {
                    let _ = value::put_sized(to, |to| {
                        entry.put(to);
                        Ok(())
                    });
                }
            };
            let mut lost = None;
            match self.here.ask(member, MAP, self.name, put) {
                Ok(bytes) if self.keep(first, entries.len(), &bytes) => {
                    self.left.fetch_sub(1, Ordering::AcqRel);
                }
                Ok(_) => self.fail("what came back is not what was expected".into()),
                Err(CallError::Lost(_)) => lost = Some(first),
                Err(CallError::Failed(why)) => self.fail(why),
            }
            let mut waiting = self.waiting.lock().unwrap();
            waiting.extend(lost); // for another
            self.more.notify_all();
            if lost.is_some() {
                return;
            }
        }
    }

    fn keep(&self, first: usize, count: usize, bytes: &[u8]) -> bool {
        let mut rest = bytes;
        let mut values = Vec::with_capacity(count);
        while !rest.is_empty() && values.len() < count {
            match value::take_sized(rest).and_then(|(entry, others)| Some((R::from_bytes(entry)?, others))) {
                Some((value, others)) => {
                    values.push(Some(value));
                    rest = others;
                }
                None => return false,
            }
        }
        if values.len() != count || !rest.is_empty() {
            return false;
        }
        let mut results = self.results.lock().unwrap();
        for (place, value) in results[first..first + count].iter_mut().zip(values) {
            *place = value;
        }
        true
    }
}
