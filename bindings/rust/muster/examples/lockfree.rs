// SPDX-License-Identifier: MIT
//! Threads share a stack without locks (R. K. Treiber, 1986): each pin is a guard, and nodes are dropped when no guard
//! can reach them.
//!   cargo run --example lockfree
use muster::atomic::{wait_until, Is, Word};
use muster::epoch::{Atomic, Epoch, EpochConfig, Shared, Token};
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

#[derive(Default)]
struct Stack {
    top: Atomic<Node>,
}

struct Node {
    value: u64,
    next: Atomic<Node>,
}

impl Stack {
    fn push(&self, token: &Token, value: u64) {
        let guard = token.pin();
        let mut node = Box::new(Node { value, next: Atomic::default() });
        loop {
            let top = self.top.load(Ordering::Acquire, &guard);
            node.next.link(top, Ordering::Relaxed);
            match self.top.compare_exchange(top, node, Ordering::Release, &guard) {
                Ok(_) => return,
                Err(back) => node = back,
            }
        }
    }

    fn pop(&self, token: &Token) -> Result<Option<u64>, muster::Error> {
        // The nodes were made by push(), and are deferred below with tokens of the same manager. No ABA: a node that a
        // guard has seen is not allocated again while the guard lives.
        let (node, value) = {
            let guard = token.pin();
            loop {
                let top = self.top.load(Ordering::Acquire, &guard);
                let node = match unsafe { top.as_ref() } {
                    None => return Ok(None),
                    Some(node) => node,
                };
                let next = node.next.load(Ordering::Relaxed, &guard);
                if self.top.compare_link(top, next, Ordering::AcqRel, &guard).is_ok() {
                    break (top.as_raw(), node.value);
                }
            }
        };
        unsafe { token.defer(node, None) }?; // only this thread has taken it out
        Ok(Some(value))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    const THREADS: u64 = 4;
    const EACH: u64 = 100_000;
    let epoch = Epoch::new(&EpochConfig::default())?;
    let (stack, sum, ready) = (Stack::default(), AtomicU64::new(0), AtomicU64::new(0));
    let push_and_pop = |token: Token, first: u64| -> Result<(), muster::Error> {
        ready.fetch_add(1, Ordering::AcqRel);
        ready.notify();
        wait_until(&[(&ready, Is::Equal, THREADS)], 1, None)?; // all begin together
        for value in first..first + EACH {
            stack.push(&token, value);
            if let Some(value) = stack.pop(&token)? {
                sum.fetch_add(value, Ordering::Relaxed);
            }
            token.poll(0)?;
        }
        Ok(())
    };
    thread::scope(|scope| -> Result<(), muster::Error> {
        let mut threads = Vec::new();
        for number in 0..THREADS {
            let (token, push_and_pop) = (epoch.register()?, &push_and_pop);
            threads.push(scope.spawn(move || push_and_pop(token, number * EACH)));
        }
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    let token = epoch.register()?;
    while let Some(value) = stack.pop(&token)? {
        sum.fetch_add(value, Ordering::Relaxed);
    }
    let total = THREADS * EACH;
    assert_eq!(sum.load(Ordering::Relaxed), total * (total - 1) / 2);
    assert_eq!(stack.top.load(Ordering::Acquire, &token.pin()), Shared::null());
    token.synchronize(None)?;
    while token.poll(1000)?.more {}
    let stats = epoch.stats()?;
    println!("{} nodes went through a stack of {} threads, {} wait to be dropped", stats.freed, THREADS, stats.pending);
    Ok(())
}
