// SPDX-License-Identifier: MIT
//! Queues, streams and processes that are dropped in any order, closed while waited on, or with operations begun.
mod common;

use common::readable;
use muster::{
    Cluster, ClusterConfig, Context, Event, Exit, Listener, Process, ProcessConfig, Queue, Status, Store, Stream,
};
use std::io::Read;
use std::os::unix::io::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::sync::{mpsc, Mutex};
use std::thread;
use std::time::Duration;

const SOON: Option<Duration> = Some(Duration::from_secs(20));
const NOW: Option<Duration> = Some(Duration::ZERO);

fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

// ---- queues

#[test]
fn a_closed_queue_frees_the_buffers_of_what_it_has_ended() {
    let context = Context::new().unwrap();
    let before = resident();
    let mut kept = Vec::new();
    for index in 0..200 {
        let queue = Queue::new(&context).unwrap();
        let (first, second) = Stream::pair(&context).unwrap();
        first.read_begin(vec![1; 1_000_000], &queue, 1).map_err(|(why, _)| why).unwrap();
        if index % 2 == 0 {
            assert!(queue.post(2, 0).unwrap());
            queue.close().unwrap();
            assert!(matches!(queue.next(NOW).unwrap(), Some(Event::User { tag: 2, .. })));
            assert_eq!(queue.next(NOW).err().unwrap().status(), Status::CLOSED);
        } else {
            queue.close().unwrap();
        }
        kept.push((queue, first, second));
    }
    assert!(resident() < before + 50_000_000, "of 200 MB {} are held", resident() - before);
}

#[test]
fn what_is_not_taken_stays_in_the_library() {
    let context = Context::new().unwrap();
    let queue = Queue::new(&context).unwrap();
    let mut posted = 0;
    while queue.post(1, posted).unwrap() {
        posted += 1;
    }
    // The queue is full; where one event is taken there is room for one, and no more.
    for taken in 0..1000 {
        match queue.next(NOW).unwrap() {
            Some(Event::User { value, .. }) => assert_eq!(value, taken),
            _ => panic!("another event"),
        }
        assert!(queue.post(1, posted).unwrap());
        assert!(!queue.post(1, 0).unwrap(), "{} taken: another was taken, too", taken);
        posted += 1;
    }
    let mut stats = muster::sys::muster_queue_stats::default();
    assert_eq!(unsafe { muster::sys::muster_queue_get_stats(queue.as_raw(), &mut stats) }, Status::OK.0);
    assert_eq!((stats.taken, stats.depth), (1000, posted - 1000));
}

#[test]
fn the_descriptor_is_readable_until_all_is_taken() {
    let context = Context::new().unwrap();
    let queue = Queue::new(&context).unwrap();
    assert!(queue.next(NOW).unwrap().is_none());
    assert!(!readable(queue.as_fd(), 0));
    for tag in 0..200 {
        assert!(queue.post(tag, 0).unwrap());
    }
    for tag in 0..200 {
        assert!(readable(queue.as_fd(), 5000), "{} events were taken", tag);
        match queue.next(NOW).unwrap() {
            Some(Event::User { tag: got, .. }) => assert_eq!(got, tag),
            _ => panic!("another event"),
        }
    }
    assert!(queue.next(NOW).unwrap().is_none());
    assert!(!readable(queue.as_fd(), 0));
}

#[test]
fn an_event_goes_to_another_thread_and_a_secret_is_not_printed() {
    let context = Context::new().unwrap();
    let queue = Queue::new(&context).unwrap();
    assert_eq!(queue.as_raw_fd(), queue.as_fd().as_raw_fd());
    assert!(queue.post(7, 8).unwrap());
    let event = queue.next(SOON).unwrap().unwrap();
    let text = thread::spawn(move || format!("{event:?}")).join().unwrap();
    assert!(text.starts_with("User") && text.contains('7'), "{text}");
    let config = muster::ContextConfig { secret: Some(b"a secret of this test".to_vec()), ..Default::default() };
    assert!(!format!("{config:?}").contains("97"), "the bytes of the secret");
}

#[test]
fn the_descriptor_of_a_closed_queue_is_readable() {
    let context = Context::new().unwrap();
    let (early, late) = (Queue::new(&context).unwrap(), Queue::new(&context).unwrap());
    assert!(early.next(NOW).unwrap().is_none());
    assert!(!readable(early.as_fd(), 0));
    early.close().unwrap();
    late.close().unwrap();
    for queue in [early, late] {
        for _ in 0..3 {
            assert!(readable(queue.as_fd(), 5000));
            assert_eq!(queue.next(NOW).err().unwrap().status(), Status::CLOSED);
        }
        assert_eq!(queue.try_as_fd().unwrap().as_raw_fd(), queue.as_fd().as_raw_fd());
    }
}

#[test]
fn a_close_ends_the_waits_of_all_threads() {
    let context = Context::new().unwrap();
    for _ in 0..50 {
        let queue = Queue::new(&context).unwrap();
        let (first, _second) = Stream::pair(&context).unwrap();
        first.read_begin(vec![0; 10], &queue, 1).map_err(|(why, _)| why).unwrap();
        let (ready, came) = mpsc::channel();
        let waiting: Vec<_> = (0..3)
            .map(|_| {
                let (queue, ready) = (queue.clone(), ready.clone());
                thread::spawn(move || {
                    ready.send(()).unwrap();
                    queue.next(None).err().map(|why| why.status())
                })
            })
            .collect();
        (0..3).for_each(|_| came.recv().unwrap());
        queue.close().unwrap();
        for thread in waiting {
            assert_eq!(thread.join().unwrap(), Some(Status::CLOSED));
        }
    }
}

#[test]
fn objects_may_be_dropped_in_every_order() {
    // Each order of five objects, with a read, a write and a dial begun.
    fn orders(left: Vec<usize>, so_far: Vec<usize>, all: &mut Vec<Vec<usize>>) {
        if left.is_empty() {
            all.push(so_far);
            return;
        }
        for &one in &left {
            let rest = left.iter().copied().filter(|&other| other != one).collect();
            orders(rest, [so_far.clone(), vec![one]].concat(), all);
        }
    }
    let mut all = Vec::new();
    orders((0..5).collect(), Vec::new(), &mut all);
    assert_eq!(all.len(), 120);
    for order in all {
        let context = Context::new().unwrap();
        let listener = Listener::bind(&context, "inproc://orders").unwrap();
        let queue = Queue::new(&context).unwrap();
        let (first, second) = Stream::pair(&context).unwrap();
        first.read_begin(vec![1; 100_000], &queue, 1).map_err(|(why, _)| why).unwrap();
        second.write_owned(vec![7; 2_000_000], &queue, 2).map_err(|(why, _)| why).unwrap();
        Stream::dial_begin(&queue, &listener.address().unwrap(), SOON, 3).unwrap();
        let (mut context, mut listener, mut queue) = (Some(context), Some(listener), Some(queue));
        let (mut first, mut second) = (Some(first), Some(second));
        for one in order {
            match one {
                0 => drop(context.take()),
                1 => drop(listener.take()),
                2 => drop(queue.take()),
                3 => drop(first.take()),
                _ => drop(second.take()),
            }
        }
    }
}

// ---- processes

#[test]
fn a_descriptor_is_lent_to_a_child() {
    let context = Context::new().unwrap();
    let (mut own, lent) = UnixStream::pair().unwrap();
    let argv = ["/bin/sh", "-c", "echo hello >&5"].iter().map(|word| word.into()).collect();
    let config = ProcessConfig { argv, descriptors: vec![(lent.as_fd(), 5)], ..ProcessConfig::default() };
    let child = Process::spawn(&context, &config).unwrap();
    assert_eq!(child.wait(SOON).unwrap(), Exit::Code(0));
    drop(lent); // the child had a copy
    let mut text = String::new();
    own.read_to_string(&mut text).unwrap();
    assert_eq!(text, "hello\n");
}

// ---- what is closed while it is waited on

#[test]
fn a_context_that_is_closed_ends_the_waits() {
    let context = Context::new().unwrap();
    let queue = Queue::new(&context).unwrap();
    let listener = Listener::bind(&context, "inproc://waits").unwrap();
    let (first, _second) = Stream::pair(&context).unwrap();
    let store = Store::open(&context, "memory:", SOON).unwrap();
    let cluster = Cluster::open(&context, &ClusterConfig::default()).unwrap();
    let threads = Mutex::new(Vec::new());
    let begin = || threads.lock().unwrap().push(std::fs::read_link("/proc/thread-self").unwrap());
    thread::scope(|scope| {
        let waits: Vec<thread::ScopedJoinHandle<'_, Status>> = vec![
            scope.spawn(|| {
                begin();
                queue.next(None).err().expect("an error").status()
            }),
            scope.spawn(|| {
                begin();
                listener.accept(None).err().expect("an error").status()
            }),
            scope.spawn(|| {
                begin();
                first.read_some(&mut [0], None).expect_err("an error").status()
            }),
            scope.spawn(|| {
                begin();
                store.get("never", None).expect_err("an error").status()
            }),
            scope.spawn(|| {
                begin();
                loop {
                    if let Err(why) = cluster.next_event(None) {
                        return why.status();
                    }
                }
            }),
        ];
        while threads.lock().unwrap().len() < waits.len() {
            thread::yield_now();
        }
        for thread in threads.lock().unwrap().iter() {
            let stat = std::path::Path::new("/proc").join(thread).join("stat");
            while !std::fs::read_to_string(&stat).unwrap().contains(") S ") {
                thread::yield_now(); // until it sleeps
            }
        }
        context.close(SOON).unwrap();
        for wait in waits {
            assert_eq!(wait.join().unwrap(), Status::CLOSED);
        }
    });
    // What is begun then gives its buffer back all the same.
    let (why, data) = match first.read_begin(vec![5; 10], &queue, 1) {
        Err(refused) => refused,
        Ok(()) => match queue.next(SOON).unwrap() {
            Some(Event::Read { tag: 1, data, result }) => (result.unwrap_err(), data),
            _ => panic!("another event"),
        },
    };
    assert_eq!((why.status(), data.capacity()), (Status::CLOSED, 10));
    assert_eq!(Queue::new(&context).err().expect("an error").status(), Status::CLOSED);
}
