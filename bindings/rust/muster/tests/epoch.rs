// SPDX-License-Identifier: MIT
//! Epochs: guards, deferred boxes, numbers in shared memory; ABA cells and waits.
use muster::atomic::{wait_until, AbaCell, Counted, Is, Word};
use muster::epoch::{Atomic, Attempt, Epoch, EpochConfig};
use muster::{Context, Queue, Status};
use std::fs::File;
use std::os::unix::io::{AsFd, FromRawFd};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const SOON: Option<Duration> = Some(Duration::from_secs(20));

struct Counts(Arc<AtomicUsize>);
impl Drop for Counts {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn epoch_with(fenced: bool) -> Epoch {
    Epoch::new(&EpochConfig { fenced, max_pending: 64, ..EpochConfig::default() }).unwrap()
}

#[test]
fn a_box_is_dropped_when_no_guard_of_its_time_is_left() {
    for fenced in [false, true] {
        let epoch = epoch_with(fenced);
        assert_eq!(epoch.stats().unwrap().is_fenced, u32::from(fenced));
        let (reader, writer) = (epoch.register().unwrap(), epoch.register().unwrap());
        let dropped = Arc::new(AtomicUsize::new(0));
        let shared = Atomic::new(Counts(dropped.clone()));
        let outer = reader.pin();
        let inner = reader.pin();
        drop(outer); // guards end in any order
        let seen = shared.load(Ordering::Acquire, &inner);
        {
            let guard = writer.pin();
            let before = shared.swap(None, Ordering::AcqRel, &guard);
            unsafe { guard.defer(before) }.unwrap();
        }
        for _ in 0..5 {
            let _ = writer.try_reclaim().unwrap();
            writer.poll(0).unwrap();
        }
        assert_eq!(dropped.load(Ordering::SeqCst), 0);
        assert_eq!(Arc::strong_count(&unsafe { seen.as_ref() }.unwrap().0), 2);
        match writer.try_reclaim().unwrap() {
            Attempt::Blocked { token, process, .. } => assert_eq!((token, process), (0, std::process::id() as i32)),
            other => panic!("{:?}", other),
        }
        let late = writer.synchronize(Some(Duration::from_millis(2))).unwrap_err();
        assert_eq!(late.status(), Status::TIMEOUT);
        assert!(late.message().starts_with("token 0 of process"), "{}", late);
        drop(inner);
        writer.synchronize(SOON).unwrap();
        assert_eq!(writer.poll(0).unwrap().freed, 1);
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn a_box_for_which_there_is_no_room_is_returned() {
    let epoch = epoch_with(false);
    let token = epoch.register().unwrap();
    let dropped = Arc::new(AtomicUsize::new(0));
    for _ in 0..64 {
        token.defer_box(Box::new(Counts(dropped.clone()))).unwrap();
    }
    let refused = token.defer_box(Box::new(Counts(dropped.clone()))).unwrap_err();
    assert_eq!(refused.error.status(), Status::AGAIN);
    let raw = Box::into_raw(refused.object);
    {
        let _guard = token.pin();
        let refused = unsafe { token.defer(raw, SOON) }.unwrap_err();
        assert_eq!(refused.status(), Status::WOULD_DEADLOCK);
    }
    let other = epoch.register().unwrap();
    let guard = other.pin();
    let refused = unsafe { token.defer(raw, Some(Duration::from_millis(2))) }.unwrap_err();
    assert_eq!(refused.status(), Status::TIMEOUT);
    drop(guard);
    drop(other);
    unsafe { token.defer(raw, SOON) }.unwrap(); // frees others first
    token.barrier(SOON).unwrap();
    assert_eq!(dropped.load(Ordering::SeqCst), 65);
    token.defer_box(Box::new(Counts(dropped.clone()))).unwrap();
    token.defer_box(Box::new(())).unwrap(); // of no size
    drop((epoch, token)); // the end of the manager drops what waits
    assert_eq!(dropped.load(Ordering::SeqCst), 66);
}

#[test]
fn the_end_of_a_box_may_defer_others() {
    struct Chain(Arc<Epoch>, u32, Arc<AtomicUsize>);
    impl Drop for Chain {
        fn drop(&mut self) {
            self.2.fetch_add(1, Ordering::SeqCst);
            if self.1 > 0 {
                let token = self.0.register().unwrap();
                let next = Chain(self.0.clone(), self.1 - 1, self.2.clone());
                token.defer_box(Box::new(next)).unwrap();
                token.poll(0).unwrap();
            }
        }
    }
    let (epoch, dropped) = (Arc::new(epoch_with(false)), Arc::new(AtomicUsize::new(0)));
    let token = epoch.register().unwrap();
    token.defer_box(Box::new(Chain(epoch.clone(), 3, dropped.clone()))).unwrap();
    while dropped.load(Ordering::SeqCst) < 4 {
        token.synchronize(SOON).unwrap();
        token.poll(0).unwrap();
    }
}

#[test]
fn a_guard_repins_and_protects() {
    let epoch = epoch_with(false);
    let (reader, writer) = (epoch.register().unwrap(), epoch.register().unwrap());
    let dropped = Arc::new(AtomicUsize::new(0));
    let shared = Atomic::new(Counts(dropped.clone()));
    let mut guard = reader.pin();
    assert!(!reader.pin().repin()); // it is nested
    assert!(guard.repin());
    let seen = shared.load(Ordering::Acquire, &guard);
    let address = guard.protect(3, seen).unwrap();
    assert_eq!(guard.protect(8, seen).unwrap_err().status(), Status::ARG);
    {
        let own = writer.pin();
        unsafe { own.defer(shared.swap(None, Ordering::AcqRel, &own)) }.unwrap();
    }
    drop(guard);
    assert_eq!(writer.barrier(Some(Duration::from_millis(5))).unwrap_err().status(), Status::TIMEOUT);
    assert_eq!(dropped.load(Ordering::SeqCst), 0);
    assert_eq!(Arc::strong_count(&unsafe { &*address }.0), 2);
    reader.release(3).unwrap();
    writer.barrier(SOON).unwrap();
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

#[test]
fn every_order_of_an_exchange_is_allowed() {
    let epoch = epoch_with(false);
    let token = epoch.register().unwrap();
    let guard = token.pin();
    let shared = Atomic::new(0u64);
    for order in [Ordering::Relaxed, Ordering::Acquire, Ordering::Release, Ordering::AcqRel, Ordering::SeqCst] {
        let now = shared.load(Ordering::Acquire, &guard);
        let other = shared.compare_exchange(now, Box::new(1), order, &guard).unwrap();
        assert!(shared.compare_exchange(now, Box::new(2), order, &guard).is_err());
        assert_eq!(shared.compare_link(now, other, order, &guard), Err(other));
        shared.compare_link(other, now, order, &guard).unwrap();
        drop(unsafe { other.into_box() });
    }
    drop(unsafe { shared.load(Ordering::Acquire, &guard).into_box() });
}

#[test]
fn threads_exchange_an_object() {
    let epoch = Epoch::new(&EpochConfig::default()).unwrap();
    let shared = Atomic::new(0u64);
    let done: u64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (token, shared) = (epoch.register().unwrap(), &shared);
                scope.spawn(move || {
                    let mut done = 0;
                    for _ in 0..20_000 {
                        let before = {
                            let guard = token.pin();
                            let now = shared.load(Ordering::Acquire, &guard);
                            let value = *unsafe { now.as_ref() }.unwrap();
                            let done = shared.compare_exchange(now, Box::new(value + 1), Ordering::AcqRel, &guard);
                            done.is_ok().then(|| now.as_raw())
                        };
                        if let Some(object) = before {
                            unsafe { token.defer(object, SOON) }.unwrap();
                            done += 1;
                        }
                        token.poll(0).unwrap();
                    }
                    done
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let token = epoch.register().unwrap();
    let guard = token.pin();
    let last = shared.swap(None, Ordering::AcqRel, &guard);
    assert_eq!(unsafe { last.into_box() }, Some(Box::new(done)));
}

extern "C" {
    fn memfd_create(name: *const std::os::raw::c_char, flags: u32) -> i32;
}

#[test]
fn numbers_of_shared_memory_are_handed_back() {
    let config = EpochConfig { max_tokens: 4, max_pending: 64, ..EpochConfig::default() };
    let fd = unsafe { memfd_create(b"epochs\0".as_ptr().cast(), 1) };
    assert!(fd >= 0);
    let memory = unsafe { File::from_raw_fd(fd) };
    memory.set_len(Epoch::shared_size(&config)).unwrap();
    assert_eq!(Epoch::open_shared(memory.as_fd(), 0).unwrap_err().status(), Status::NOT_FOUND);
    let made = Epoch::create_shared(&config, memory.as_fd(), 0).unwrap();
    let opened = Epoch::open_shared(memory.as_fd(), 0).unwrap();
    let (one, other) = (made.register().unwrap(), opened.register().unwrap());
    for offset in 1..=5 {
        one.retire(offset * 64).unwrap();
    }
    assert_eq!(one.retire(0).unwrap_err().status(), Status::ARG);
    let refused = one.defer_box(Box::new(7)).unwrap_err(); // another process could not call it
    assert_eq!((refused.error.status(), *refused.object), (Status::UNSUPPORTED, 7));
    drop(one); // the other token takes over
    other.synchronize(SOON).unwrap();
    assert!(other.poll(0).unwrap().more); // no room for numbers
    let first = other.poll_retired(2).unwrap();
    assert_eq!((first.retired, first.more), (vec![64, 128], true));
    other.synchronize(SOON).unwrap(); // what is left was stamped again
    assert_eq!(other.poll_retired(0).unwrap().retired, [192, 256, 320]);
    assert_eq!(opened.stats().unwrap().pending, 0);
}

#[test]
fn a_queue_is_notified_of_a_pinned_token_that_blocks() {
    let context = Context::new().unwrap();
    let queue = Queue::new(&context).unwrap();
    let notify = Some((queue.clone(), 9));
    let epoch = Epoch::new(&EpochConfig { max_pending: 64, notify, ..EpochConfig::default() }).unwrap();
    let (reader, writer) = (epoch.register().unwrap(), epoch.register().unwrap());
    let guard = reader.pin();
    writer.try_reclaim().unwrap();
    for _ in 0..64 {
        writer.retire(1).unwrap();
        writer.poll(0).unwrap();
    }
    assert!(queue.next(SOON).unwrap().is_some());
    assert_eq!(epoch.stats().unwrap().blocking_token, 0);
    drop(guard);
}

#[test]
fn every_write_to_an_aba_cell_counts() {
    let cell = AbaCell::new(5);
    let first = cell.read();
    assert_eq!(first, Counted { value: 5, count: 0 });
    cell.write(6);
    assert_eq!(cell.exchange(5), Counted { value: 6, count: 1 });
    assert_eq!(cell.compare_exchange(first, 9), Err(Counted { value: 5, count: 2 })); // the same value again
    cell.compare_exchange(cell.read(), 9).unwrap();
    assert_eq!(cell.compare_exchange_value(8, 1), Err(9));
    cell.compare_exchange_value(9, 1).unwrap();
    assert_eq!(cell.read(), Counted { value: 1, count: 4 });
    let cell = AbaCell::default();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..10_000).for_each(|i| cell.write(i)));
        }
    });
    assert_eq!(cell.read().count, 40_000);
}

#[test]
fn words_are_waited_for() {
    let (one, other) = (AtomicU32::new(0), AtomicU64::new(0));
    let never = wait_until(&[(&one, Is::Equal, 1)], 1, Some(Duration::from_millis(1))).unwrap_err();
    assert_eq!(never.status(), Status::TIMEOUT);
    assert_eq!(wait_until(&[], 0, SOON).unwrap_err().status(), Status::ARG);
    thread::scope(|scope| {
        scope.spawn(|| {
            other.store(7, Ordering::Release);
            other.notify();
            one.store(1, Ordering::Release);
            one.notify();
        });
        wait_until(&[(&other, Is::Greater, 6)], 1, SOON).unwrap();
        match wait_until(&[(&one, Is::Equal, 1), (&other, Is::Less, 8)], 2, SOON) {
            Ok(which) => assert_eq!(which, [true, true]),
            Err(error) => assert_eq!(error.status(), Status::UNSUPPORTED), // before Linux 5.16
        }
    });
}
