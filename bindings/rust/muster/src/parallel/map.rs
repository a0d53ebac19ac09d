// SPDX-License-Identifier: MIT
//! A function is applied to a list by all workers, in batches; a batch of a worker that has died is given to another
//! one, a limited number of times.
use super::member::MemberHere;
use super::message::MAP;
use super::{value, CallError, Value};
use crate::error::{Error, Status};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

pub(super) fn map<A: Value + Sync, R: Value + Send>(
    here: &MemberHere,
    name: &str,
    list: &[A],
    batch: usize,
    retries: u32,
) -> Result<Vec<R>, CallError> {
    let batches = (0..list.len()).step_by(batch).rev();
    let batches = batches.map(|first| Batch { first, count: batch.min(list.len() - first), lost: 0 });
    let job = MapJob {
        here,
        name,
        list,
        retries,
        waiting: Mutex::new(batches.collect()),
        more: Condvar::new(),
        results: Mutex::new(list.iter().map(|_| None).collect()),
        left: AtomicUsize::new(list.len()),
        working: AtomicUsize::new(0),
        failure: Mutex::new(None),
    };
    job.run();
    if let Some(why) = job.failure.into_inner().unwrap() {
        return Err(why);
    }
    let results: Option<Vec<R>> = job.results.into_inner().unwrap().into_iter().collect();
    results.ok_or_else(|| CallError::Lost(Error::new(Status::PEER, "no worker is left")))
}

// Entries that are sent together.
struct Batch {
    first: usize,
    count: usize,
    lost: u32, // workers that ended while they had it
}

// The batches of one worker. A batch that was lost before is the only one of its worker, so that another death was
// caused by that batch.
#[derive(Default)]
struct Load {
    state: Mutex<LoadState>,
    changed: Condvar,
}

#[derive(Default)]
struct LoadState {
    batches: usize,
    alone: bool, // a batch is the only one of the worker
    over: bool,  // the worker has ended
}

impl Load {
    // Waits until there is room for a batch. False: the worker has ended.
    fn enter(&self, alone: bool) -> bool {
        let mut state = self.state.lock().unwrap();
        while !state.over && (state.alone || (alone && state.batches > 0)) {
            state = self.changed.wait(state).unwrap();
        }
        if state.over {
            return false;
        }
        state.batches += 1;
        state.alone = alone;
        true
    }

    fn leave(&self, over: bool) {
        let mut state = self.state.lock().unwrap_or_else(|why| why.into_inner());
        state.batches -= 1;
        state.alone = false;
        state.over |= over;
        self.changed.notify_all();
    }
}

// A batch at a worker; it leaves when this is dropped, after a panic, too.
struct Entered<'a> {
    load: &'a Load,
    over: bool,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.load.leave(self.over);
    }
}

struct MapJob<'a, A, R> {
    here: &'a MemberHere,
    name: &'a str,
    list: &'a [A],
    retries: u32,
    waiting: Mutex<Vec<Batch>>, // the next one last
    more: Condvar,              // with `waiting`: there are more, or there will be none
    results: Mutex<Vec<Option<R>>>,
    left: AtomicUsize,    // entries without a result
    working: AtomicUsize, // threads
    failure: Mutex<Option<CallError>>,
}

// A thread of a job. The job is notified of its end, also when a value of the program panics.
struct Working<'a, 'b, A: Value + Sync, R: Value + Send> {
    job: &'a MapJob<'b, A, R>,
}

impl<A: Value + Sync, R: Value + Send> Drop for Working<'_, '_, A, R> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.job.fail(CallError::Failed("a value panicked".into()));
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
                    let load = Arc::new(Load::default());
                    for _ in 0..2 {
                        let load = load.clone();
                        // While one batch is sent, the other is computed.
                        self.working.fetch_add(1, Ordering::AcqRel);
                        scope.spawn(move || {
                            let working = Working { job: self };
                            working.job.work(member, &load);
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

    // The next batch. It waits while others compute the last ones, since the batch of a worker that dies is given back.
    fn next_batch(&self) -> Option<Batch> {
        let mut waiting = self.waiting.lock().unwrap();
        loop {
            if self.over() {
                return None;
            }
            if let Some(batch) = waiting.pop() {
                return Some(batch);
            }
            waiting = self.more.wait(waiting).unwrap();
        }
    }

    fn fail(&self, why: CallError) {
        self.failure.lock().unwrap().get_or_insert(why);
    }

    fn work(&self, member: u32, load: &Load) {
        while let Some(batch) = self.next_batch() {
            if !load.enter(batch.lost > 0) {
                return self.give_back([batch]);
            }
            let mut entered = Entered { load, over: false };
            let entries = &self.list[batch.first..batch.first + batch.count];
            let put = |to: &mut Vec<u8>| {
                for entry in entries {
                    let _ = value::put_sized(to, |to| {
                        entry.put(to);
                        Ok(())
                    });
                }
            };
            let (caller, question) = match self.here.ask(member, MAP, self.name, put) {
                Ok(asked) => asked,
                Err(_) => {
                    // The worker had ended before it had this batch.
                    entered.over = true;
                    drop(entered);
                    return self.give_back([batch]);
                }
            };
            match caller.answer(question) {
                Ok(bytes) if self.keep(batch.first, batch.count, &bytes) => {
                    self.left.fetch_sub(batch.count, Ordering::AcqRel);
                }
                Ok(_) => self.fail(CallError::Failed("the result has another type than expected".into())),
                Err(CallError::Lost(_)) => entered.over = true,
                Err(why) => self.fail(why),
            }
            let lost = entered.over;
            drop(entered); // before a batch is given back: the other thread of this worker must not send it again
            if lost {
                return self.retry(batch);
            }
            self.give_back([]);
        }
    }

    // A worker has ended while it had this batch. Each entry is sent alone then, so that an entry that ends its worker
    // is found.
    fn retry(&self, batch: Batch) {
        let lost = batch.lost + 1;
        if lost > self.retries {
            let which = match batch.count {
                1 => format!("entry {}", batch.first),
                _ => format!("entries {} to {}", batch.first, batch.first + batch.count - 1),
            };
            let text = format!("{} of the list: {} worker(s) ended while they had it", which, lost);
            self.fail(CallError::Lost(Error::new(Status::LIMIT, text)));
            return self.give_back([]);
        }
        let entries = (batch.first..batch.first + batch.count).rev();
        self.give_back(entries.map(|first| Batch { first, count: 1, lost }));
    }

    // For another worker. Every thread that waits checks again whether the job is over.
    fn give_back(&self, batches: impl IntoIterator<Item = Batch>) {
        let mut waiting = self.waiting.lock().unwrap();
        waiting.extend(batches);
        self.more.notify_all();
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
