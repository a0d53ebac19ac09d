// SPDX-License-Identifier: MIT
//! Streams, queues, and a transport written in Rust.
mod common;

use common::readable;
use muster::{
    Cluster, ClusterConfig, ClusterEvent, Context, ContextConfig, Error, Event, Group, GroupConfig, Launch, Listener,
    Queue, Reduce, Requests, Status, Stream, Transport, TransportServer, WorkerConfig,
};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::io::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const SOON: Option<Duration> = Some(Duration::from_secs(20));
const NOW: Option<Duration> = Some(Duration::ZERO);

fn connected(context: &Context, address: &str) -> (Stream, Stream) {
    let listener = Listener::bind(context, address).unwrap();
    let there = Stream::dial(context, &listener.address().unwrap(), SOON).unwrap();
    (there, listener.accept(SOON).unwrap())
}

#[test]
fn bytes_go_both_ways_as_with_any_read_and_write() {
    let context = Context::new().unwrap();
    for address in ["tcp://127.0.0.1:0?upgrade=no", "tcp://127.0.0.1:0", "inproc://hosts"] {
        let (mut there, mut here) = connected(&context, address);
        there.write_all(b"hello").unwrap();
        there.finish().unwrap();
        let mut text = String::new();
        here.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
        here.write_all(&vec![7; 500_000]).unwrap(); // there is room for a mebibyte
        here.finish().unwrap();
        drop(here);
        let mut bytes = Vec::new();
        there.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len(), 500_000);
    }
}

#[test]
fn who_does_not_wait_is_told() {
    let context = Context::new().unwrap();
    let (first, _second) = Stream::pair(&context).unwrap();
    first.set_timeout(NOW);
    assert_eq!((&first).read(&mut [0; 1]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    first.set_timeout(Some(Duration::from_millis(5)));
    assert_eq!((&first).read(&mut [0; 1]).unwrap_err().kind(), std::io::ErrorKind::TimedOut);
    let why = Stream::dial(&context, "tcp://127.0.0.1:1", SOON).err().unwrap();
    assert_eq!(why.status(), Status::UNREACHABLE);
    assert_eq!(format!("{:?}", why.status()), "MUSTER_E_UNREACHABLE");
    assert_eq!(Stream::dial(&context, "nonsense", SOON).err().unwrap().status(), Status::ADDRESS);
}

#[test]
fn a_begun_join_reports_its_outcome() {
    let context = Context::new().unwrap();
    let master = Cluster::open(&context, &ClusterConfig::default()).unwrap();
    let theirs = ContextConfig { secret: Some(context.secret().unwrap()), ..ContextConfig::default() };
    let own = Context::with(&theirs).unwrap();
    let config = WorkerConfig { master: Some(master.member(0).unwrap().address), ..WorkerConfig::default() };
    let refused = Cluster::begin_join(&own, &config, SOON).unwrap();
    match refused.next_event(SOON).unwrap() {
        Some(ClusterEvent::Failed(_, why)) => assert_eq!(why.status(), Status::STALE),
        _ => panic!("another event"),
    }
    assert_eq!(refused.next_event(SOON).err().unwrap().status(), Status::CLOSED);
    assert_eq!(refused.number(), u32::MAX);
    master.add(&Launch { manager: "elastic".into(), ..Launch::local(1, [""; 0]) }).unwrap();
    let worker = Cluster::begin_join(&own, &config, SOON).unwrap();
    match worker.next_event(SOON).unwrap() {
        Some(ClusterEvent::Joined(number)) => assert_eq!((number, worker.number()), (1, 1)),
        _ => panic!("another event"),
    }
    // Both have the store of the cluster, and are the members of a group.
    master.store(SOON).unwrap().set("greeting", "hello", SOON).unwrap();
    assert_eq!(worker.store(SOON).unwrap().get("greeting", SOON).unwrap(), b"hello");
    let of = GroupConfig { listen: "tcp://127.0.0.1:0".into(), ..GroupConfig::default() };
    let sum = |context: &Context, cluster: &Cluster| {
        let group = Group::in_cluster(context, cluster, 2, &of, SOON).unwrap();
        assert_eq!(group.rank(), cluster.number());
        let mut values = [u64::from(group.rank()) + 1];
        group.all_reduce(Reduce::Sum, &mut values, SOON).unwrap();
        group.close(SOON).unwrap();
        values[0]
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| sum(&own, &worker));
        assert_eq!(sum(&context, &master), 3);
        assert_eq!(other.join().unwrap(), 3);
    });
    worker.close(None).unwrap();
    assert_eq!(worker.store(SOON).unwrap_err().status(), Status::CLOSED);
    master.close(SOON).unwrap();
}

#[test]
fn buffers_that_are_handed_over_come_back() {
    let context = Context::new().unwrap();
    let queue = Queue::new(&context).unwrap();
    let (first, second) = Stream::pair(&context).unwrap();
    second.read_begin(Vec::with_capacity(5), &queue, 1).map_err(|(why, _)| why).unwrap();
    first.write_owned(b"hello".to_vec(), &queue, 2).map_err(|(why, _)| why).unwrap();
    let (mut read, mut released) = (None, None);
    while read.is_none() || released.is_none() {
        match queue.next(SOON).unwrap().expect("an event") {
            Event::Read { tag: 1, data, result } => read = Some((data, result.is_ok())),
            Event::Released { tag: 2, data, result } => released = Some((data, result.is_ok())),
            _ => panic!("another event"),
        }
    }
    assert_eq!(read.unwrap(), (b"hello".to_vec(), true));
    assert_eq!(released.unwrap(), (b"hello".to_vec(), true));
    // One that ends before it is full tells how far it came.
    second.read_begin(Vec::with_capacity(10), &queue, 3).map_err(|(why, _)| why).unwrap();
    (&first).write_all(b"end").unwrap();
    first.finish().unwrap();
    match queue.next(SOON).unwrap().expect("an event") {
        Event::Read { tag: 3, data, result } => {
            assert_eq!(data, b"end");
            assert_eq!(result.unwrap_err().status(), Status::END);
        }
        _ => panic!("another event"),
    }
}

// What is in the queue now, and nothing before it.
fn is_empty(queue: &Queue) -> bool {
    assert!(queue.post(99, 0).unwrap());
    matches!(queue.next(SOON).unwrap(), Some(Event::User { tag: 99, .. }))
}

#[test]
fn a_buffer_that_is_not_taken_comes_back_once() {
    let context = Context::new().unwrap();
    let queue = Queue::new(&context).unwrap();
    let refused = |stream: &Stream| {
        let (why, data) = stream.write_owned(b"hello".to_vec(), &queue, 1).unwrap_err();
        assert_eq!(data, b"hello");
        assert!(is_empty(&queue));
        why.status()
    };
    let (finished, _other) = Stream::pair(&context).unwrap();
    finished.finish().unwrap();
    assert_eq!(refused(&finished), Status::CLOSED);
    let (alone, other) = Stream::pair(&context).unwrap();
    drop(other);
    assert_eq!(refused(&alone), Status::PEER);
    let (aborted, _other) = Stream::pair(&context).unwrap();
    aborted.abort(3, "enough").unwrap();
    assert_eq!(refused(&aborted), Status::ABORTED);
    assert_eq!(aborted.read_begin(Vec::new(), &queue, 2).unwrap_err().0.status(), Status::ARG); // no room in it
    assert!(is_empty(&queue));
    queue.close().unwrap();
    let (why, data) = finished.write_owned(b"hello".to_vec(), &queue, 3).unwrap_err();
    assert_eq!((why.status(), data), (Status::CLOSED, b"hello".to_vec()));
}

#[test]
fn a_queue_that_is_dropped_ends_what_was_begun_and_frees_its_buffers() {
    let context = Context::new().unwrap();
    let resident = || -> usize {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    };
    let before = resident();
    for _ in 0..100 {
        let queue = Queue::new(&context).unwrap();
        let (first, second) = Stream::pair(&context).unwrap();
        first.read_begin(Vec::with_capacity(100_000), &queue, 1).map_err(|(why, _)| why).unwrap();
        second.write_owned(vec![7; 3_000_000], &queue, 2).map_err(|(why, _)| why).unwrap(); // more than there is room for
        drop(queue);
        drop(second);
        let mut bytes = Vec::new();
        match (&first).read_to_end(&mut bytes) {
            Ok(_) => assert!(bytes.is_empty()), // nothing of the buffer had been sent
            Err(why) => assert_eq!(why.kind(), std::io::ErrorKind::ConnectionAborted),
        }
        assert!(bytes.len() < 3_000_000 && bytes.iter().all(|&byte| byte == 7));
    }
    assert!(resident() < before + 100_000_000); // of more than 300 MB that were handed over
}

#[test]
fn a_wait_may_be_longer_than_time() {
    let context = Context::new().unwrap();
    let queue = Queue::new(&context).unwrap();
    assert!(queue.post(1, 2).unwrap());
    assert!(queue.next(Some(Duration::MAX)).unwrap().is_some());
}

#[test]
fn a_cancel_ends_the_waits_of_all_threads() {
    let context = Context::new().unwrap();
    let queue = Queue::new(&context).unwrap();
    let (told, taken) = std::sync::mpsc::channel();
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let (queue, told) = (queue.clone(), told.clone());
            thread::spawn(move || {
                told.send(std::fs::read_link("/proc/thread-self").unwrap()).unwrap();
                queue.next(None).err().map(|why| why.status())
            })
        })
        .collect();
    for _ in 0..3 {
        let stat = std::path::Path::new("/proc").join(taken.recv().unwrap()).join("stat");
        while !std::fs::read_to_string(&stat).unwrap().contains(") S ") {
            thread::yield_now(); // until it sleeps
        }
    }
    queue.cancel().unwrap();
    for thread in waiting {
        assert_eq!(thread.join().unwrap(), Some(Status::CANCELED));
    }
    assert!(is_empty(&queue)); // and it can be used as before
}

#[test]
fn a_reactor_polls_the_descriptor() {
    let context = Context::new().unwrap();
    let queue = Queue::new(&context).unwrap();
    let readable = |wait| readable(queue.as_fd(), wait);
    assert!(queue.next(NOW).unwrap().is_none()); // empty, and armed
    assert!(!readable(0));
    assert!(queue.post(5, 6).unwrap());
    assert!(readable(5000));
    assert!(matches!(queue.next(NOW).unwrap(), Some(Event::User { tag: 5, value: 6 })));
    assert!(queue.next(NOW).unwrap().is_none());
    assert!(!readable(0));
    assert_eq!(queue.as_fd().as_raw_fd(), queue.as_fd().as_raw_fd()); // there is one
}

#[test]
fn threads_share_a_queue() {
    let context = Context::new().unwrap();
    let queue = Queue::new(&context).unwrap();
    let taken: usize = thread::scope(|scope| {
        let takers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut count = 0;
                    while let Ok(event) = queue.next(None) {
                        count += usize::from(event.is_some());
                    }
                    count
                })
            })
            .collect();
        for i in 0..1000 {
            assert!(queue.post(i, 0).unwrap());
        }
        queue.close().unwrap();
        takers.into_iter().map(|taker| taker.join().unwrap()).sum()
    });
    assert_eq!(taken, 1000);
}

// ---- a transport as a trait: plain sockets, two threads for each connection

struct Sockets {
    listening: HashMap<u64, Arc<TcpListener>>,
}

fn carry(socket: TcpStream, pump: Stream) {
    let (pump, socket) = (Arc::new(pump), Arc::new(socket));
    let (out, to) = (pump.clone(), socket.clone());
    thread::spawn(move || {
        let mut piece = vec![0; 65536];
        let mut is_taken = true; // the peer receives; if not, what it has sent is still received
        loop {
            match (&*out).read(&mut piece) {
                Ok(0) => break to.shutdown(std::net::Shutdown::Write),
                Ok(size) => is_taken = is_taken && (&*to).write_all(&piece[..size]).is_ok(),
                Err(_) => break to.shutdown(std::net::Shutdown::Both),
            }
        }
    });
    thread::spawn(move || {
        let mut piece = vec![0; 65536];
        while let Ok(size @ 1..) = (&*socket).read(&mut piece) {
            if (&*pump).write_all(&piece[..size]).is_err() {
                break;
            }
        }
        let _ = pump.finish();
    });
}

impl Transport for Sockets {
    fn open(&mut self, address: &str, request: Requests) {
        let place = address.trim_start_matches("sockets://").to_string();
        if place == "panic" {
            panic!("a transport that cannot");
        }
        if place == "long" {
            return request.fail(&Error::new(Status::BUSY, "\u{1f980}".repeat(100))).unwrap();
        }
        thread::spawn(move || match TcpStream::connect(&place) {
            Ok(socket) => {
                let _ = socket.set_nodelay(true);
                if let Ok(pump) = request.connected() {
                    carry(socket, pump);
                }
            }
            Err(why) => drop(request.fail(&Error::new(Status::UNREACHABLE, format!("{}: {}", place, why)))),
        });
    }
    fn listen(&mut self, _: &str, request: Requests) {
        let socket = Arc::new(TcpListener::bind("127.0.0.1:0").unwrap());
        let address = format!("sockets://{}", socket.local_addr().unwrap());
        self.listening.insert(request.id(), socket.clone());
        let listening = request.listening(&address).unwrap();
        thread::spawn(move || {
            while let Ok((connection, from)) = socket.accept() {
                match listening.incoming(&from.to_string()) {
                    Ok((_, pump)) => carry(connection, pump),
                    Err(_) => break,
                }
            }
        });
    }
    fn closed(&mut self, id: u64) {
        if let Some(socket) = self.listening.remove(&id) {
            let _ = TcpStream::connect(socket.local_addr().unwrap()); // its thread looks up, and ends
        }
    }
}

#[test]
fn a_transport_written_in_rust_carries_streams() {
    let context = Context::new().unwrap();
    let queue = Queue::new(&context).unwrap();
    let server = TransportServer::new(&queue, "sockets", Sockets { listening: HashMap::new() }).unwrap();
    let (told, taken) = std::sync::mpsc::channel();
    let serving = {
        let queue = queue.clone();
        thread::spawn(move || {
            while queue.next(None).is_ok() {
                let _ = told.send(());
            }
        })
    };
    assert!(queue.post(0, 0).unwrap());
    taken.recv().unwrap(); // the other thread serves
    let listener = Listener::bind(&context, "sockets://here").unwrap();
    while listener.address().unwrap() == "sockets://here" {
        thread::yield_now(); // until the transport has said where it listens
    }
    let mut there = Stream::dial(&context, &listener.address().unwrap(), SOON).unwrap();
    let mut here = listener.accept(SOON).unwrap();
    let block: Vec<u8> = (0..2_000_000u32).map(|i| i as u8).collect();
    let sent = block.clone();
    let writing = thread::spawn(move || {
        there.write_all(&sent).unwrap();
        there.finish().unwrap();
        let mut answer = String::new();
        there.read_to_string(&mut answer).unwrap();
        answer
    });
    let mut bytes = Vec::new();
    here.read_to_end(&mut bytes).unwrap();
    assert!(bytes == block);
    here.write_all(b"thank you").unwrap();
    here.finish().unwrap();
    assert_eq!(writing.join().unwrap(), "thank you");
    let why = Stream::dial(&context, "sockets://127.0.0.1:1", SOON).err().unwrap();
    assert_eq!(why.status(), Status::UNREACHABLE);
    let why = Stream::dial(&context, "sockets://panic", SOON).err().unwrap();
    assert!(why.message().contains("panicked"), "{}", why);
    let why = Stream::dial(&context, "sockets://long", SOON).err().unwrap();
    assert_eq!(why.status(), Status::BUSY);
    assert!(why.message().contains('\u{1f980}'), "{}", why);
    drop((here, listener, server));
    queue.close().unwrap();
    serving.join().unwrap();
    context.close(SOON).unwrap();
}

#[test]
fn a_transport_may_panic_as_it_goes() {
    struct Fragile(Arc<AtomicBool>);
    impl Transport for Fragile {
        fn open(&mut self, _: &str, _: Requests) {}
    }
    impl Drop for Fragile {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
            panic!("at the end");
        }
    }
    let context = Context::new().unwrap();
    let queue = Queue::new(&context).unwrap();
    let gone = Arc::new(AtomicBool::new(false));
    drop(TransportServer::new(&queue, "fragile", Fragile(gone.clone())).unwrap());
    let begun = Instant::now();
    while !gone.load(Ordering::SeqCst) {
        assert!(begun.elapsed() < Duration::from_secs(20), "it was not destroyed");
        assert!(is_empty(&queue));
    }
    assert!(is_empty(&queue));
}

#[test]
fn bytes_are_read_where_they_are() {
    use std::io::BufRead;
    let context = Context::new().unwrap();
    let (mut first, second) = Stream::pair(&context).unwrap();
    let text: String = (0..20_000).map(|number| format!("line {number}\n")).collect();
    let size = text.len();
    let writer = thread::spawn(move || {
        first.write_all(text.as_bytes()).unwrap();
        first.finish().unwrap();
        first
    });
    let mut lines = second.buffered();
    let mut line = String::new();
    assert_eq!(lines.read_line(&mut line).unwrap(), 7);
    assert_eq!(line, "line 0\n");
    lines.fill_buf().unwrap();
    assert_eq!(second.read_some(&mut [0; 1], NOW).unwrap_err().status(), Status::BUSY);
    drop(lines);
    let mut next = [0; 7];
    assert_eq!(second.read_into(&mut next, SOON).unwrap(), 7);
    assert_eq!(&next, b"line 1\n");
    let mut lines = second.buffered();
    let shown = lines.fill_buf().unwrap().to_vec();
    lines.consume(3);
    assert_eq!(lines.fill_buf().unwrap()[..4], shown[3..7]);
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert_eq!(rest.lines().last(), Some("line 19999"));
    assert_eq!(rest.len() + 14 + 3, size);
    assert!(lines.fill_buf().unwrap().is_empty());
    writer.join().unwrap();
    assert_eq!(second.read_into(&mut next, NOW).unwrap(), 0);
}

#[test]
fn errors_say_what_the_system_and_the_peer_have_said() {
    use std::error::Error as _;
    let context = Context::new().unwrap();
    let why = Listener::bind(&context, "unix:///nowhere/at/all").unwrap_err();
    assert_eq!(why.os_error(), Some(2), "{why}");
    assert_eq!(why.source().unwrap().to_string(), std::io::Error::from_raw_os_error(2).to_string());
    let (first, second) = connected(&context, "tcp://127.0.0.1:0");
    assert!(second.reason().is_none());
    first.abort(42, "the disk is full").unwrap();
    let why = second.read_some(&mut [0; 1], SOON).unwrap_err();
    assert_eq!(why.status(), Status::ABORTED);
    assert!(why.message().contains("the disk is full"), "{why}");
    assert_eq!(second.reason().map(|(number, why)| (number, why.status())), Some((42, Status::ABORTED)));
}

#[test]
fn bytes_go_to_many_streams() {
    let context = Context::new().unwrap();
    let pairs: Vec<_> = (0..4).map(|_| Stream::pair(&context).unwrap()).collect();
    pairs[2].0.abort(1, "").unwrap();
    let firsts: Vec<_> = pairs.iter().map(|(first, _)| first).collect();
    let results = Stream::write_many(&firsts, b"hello", SOON);
    for (i, (result, moved)) in results.iter().enumerate() {
        let mut text = [0; 5];
        if i == 2 {
            assert_eq!((result.as_ref().unwrap_err().status(), *moved), (Status::ABORTED, 0));
        } else {
            assert!(result.is_ok() && *moved == 5);
            assert_eq!(pairs[i].1.read_into(&mut text, SOON).unwrap(), 5);
            assert_eq!(&text, b"hello");
        }
    }
    assert!(Stream::write_many(&[], b"hello", NOW).is_empty());
}

#[test]
fn a_stream_names_the_sockets_of_both_ends() {
    let context = Context::new().unwrap();
    let listener = Listener::bind(&context, "tcp://127.0.0.1:0").unwrap();
    let near = Stream::dial(&context, &listener.address().unwrap(), None).unwrap();
    let far = listener.accept(None).unwrap();
    assert_eq!(near.local_address().unwrap(), far.peer().unwrap());
    assert_eq!(far.local_address().unwrap(), listener.address().unwrap());
    let (one, _other) = Stream::pair(&context).unwrap();
    assert_eq!(one.local_address().unwrap_err().status(), Status::UNSUPPORTED);
}
