// SPDX-License-Identifier: MIT
//! Objects that are dropped early, in any order, or without an answer.
use muster::{
    Cluster, ClusterConfig, ClusterEvent, Context, Error, Event, Exit, Launch, LaunchRequest, Listener, Manager,
    ManagerServer, Process, ProcessConfig, Queue, Reports, Requests, Status, Stream, Transport, TransportServer,
};
use std::io::Read;
use std::os::unix::io::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{mpsc, Arc, Mutex};
use std::thread;
use std::time::Duration;

const SOON: Option<Duration> = Some(Duration::from_secs(20));
const NOW: Option<Duration> = Some(Duration::ZERO);

fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

// Whether the descriptor is readable within so many milliseconds.
fn readable(fd: BorrowedFd<'_>, wait: i32) -> bool {
    #[repr(C)]
    struct PollFd {
        fd: i32,
        events: i16,
        revents: i16,
    }
    extern "C" {
        fn poll(fds: *mut PollFd, count: u64, timeout: i32) -> i32;
    }
    let mut one = PollFd { fd: fd.as_raw_fd(), events: 1, revents: 0 };
    unsafe { poll(&mut one, 1, wait) == 1 && one.revents & 1 != 0 }
}

// Takes from a queue until it is closed.
fn serve(queue: &Queue) -> thread::JoinHandle<()> {
    let queue = queue.clone();
    thread::spawn(move || while queue.next(None).is_ok() {})
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
    let (mut here, there) = UnixStream::pair().unwrap();
    let argv = ["/bin/sh", "-c", "echo hello >&5"].iter().map(|word| word.into()).collect();
    let config = ProcessConfig { argv, descriptors: vec![(there.as_fd(), 5)], ..ProcessConfig::default() };
    let child = Process::spawn(&context, &config).unwrap();
    assert_eq!(child.wait(SOON).unwrap(), Exit::Code(0));
    drop(there); // it was this process's own all the time
    let mut text = String::new();
    here.read_to_string(&mut text).unwrap();
    assert_eq!(text, "hello\n");
}

// ---- what is served

struct Counted {
    dropped: Arc<AtomicUsize>,
    kept: Arc<Mutex<Vec<Requests>>>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

impl Transport for Counted {
    fn open(&mut self, address: &str, request: Requests) {
        match address {
            "counted://drop" => {}
            "counted://panic" => {
                let _held = request;
                panic!("a transport that cannot");
            }
            _ => self.kept.lock().unwrap().push(request),
        }
    }
    fn listen(&mut self, _: &str, _: Requests) {}
}

#[test]
fn a_transport_is_dropped_with_its_server() {
    for order in 0..3 {
        let context = Context::new().unwrap();
        let queue = Queue::new(&context).unwrap();
        let (dropped, kept) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let counted = Counted { dropped: dropped.clone(), kept };
        let server = TransportServer::new(&queue, "counted", counted).unwrap();
        let again = Counted { dropped: Arc::new(AtomicUsize::new(0)), kept: Arc::default() };
        let told = again.dropped.clone();
        assert_eq!(TransportServer::new(&queue, "counted", again).err().unwrap().status(), Status::EXISTS);
        assert_eq!(told.load(Ordering::SeqCst), 1);
        match order {
            0 => drop((server, queue, context)),
            1 => drop((queue, context, server)),
            _ => {
                context.close(SOON).unwrap();
                drop((context, server, queue));
            }
        }
        assert_eq!(dropped.load(Ordering::SeqCst), 1, "order {}", order);
    }
}

#[test]
fn a_request_that_is_dropped_has_failed() {
    let context = Context::new().unwrap();
    let queue = Queue::new(&context).unwrap();
    let kept = Arc::new(Mutex::new(Vec::new()));
    let counted = Counted { dropped: Arc::default(), kept: kept.clone() };
    let server = TransportServer::new(&queue, "counted", counted).unwrap();
    let serving = serve(&queue);
    let dialled = |place: &str| Stream::dial(&context, place, SOON).err().expect("no stream").status();
    assert_eq!(dialled("counted://drop"), Status::CANCELED);
    assert_eq!(dialled("counted://panic"), Status::INTERNAL);
    Listener::bind(&context, "counted://here").map(|_| ()).unwrap_err();
    // Later, on another thread.
    let later = thread::scope(|scope| {
        let waiting = scope.spawn(|| dialled("counted://later"));
        while kept.lock().unwrap().pop().is_none() {
            thread::yield_now();
        }
        waiting.join().unwrap()
    });
    assert_eq!(later, Status::CANCELED);
    drop(server);
    queue.close().unwrap();
    serving.join().unwrap();
}

struct Refusing {
    dropped: Arc<AtomicUsize>,
    kept: Arc<Mutex<Vec<Reports>>>,
}

impl Drop for Refusing {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

impl Manager for Refusing {
    fn launch(&mut self, request: LaunchRequest, reports: Reports) {
        match request.options.as_str() {
            "panic" => panic!("a manager that cannot"),
            "one" => reports.failed(request.first, &Error::new(Status::NOT_FOUND, "no such machine")).unwrap(),
            "later" => self.kept.lock().unwrap().push(reports),
            _ => {}
        }
    }
    fn kill(&mut self, _: u32, _: u64) -> Result<(), Error> {
        Ok(())
    }
}

fn launch(count: u32, options: &str) -> Launch {
    Launch { manager: "refusing".into(), options: Some(options.into()), ..Launch::local(count, [""; 0]) }
}

// Statuses of the next workers that fail.
fn failures(cluster: &Cluster, count: usize) -> Vec<(u32, Status)> {
    let mut all = Vec::new();
    while all.len() < count {
        if let ClusterEvent::Failed(member, why) = cluster.next_event(SOON).unwrap().expect("an event") {
            all.push((member, why.status()));
        }
    }
    all.sort_by_key(|one| one.0);
    all
}

#[test]
fn workers_that_are_not_reported_have_failed() {
    let context = Context::new().unwrap();
    let queue = Queue::new(&context).unwrap();
    let (dropped, kept) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let refusing = Refusing { dropped: dropped.clone(), kept: kept.clone() };
    let server = ManagerServer::new(&queue, "refusing", refusing).unwrap();
    let serving = serve(&queue);
    let cluster = Cluster::open(&context, &ClusterConfig::default()).unwrap();
    cluster.add(&launch(2, "drop")).unwrap();
    assert_eq!(failures(&cluster, 2), [(1, Status::CANCELED), (2, Status::CANCELED)]);
    cluster.add(&launch(2, "panic")).unwrap();
    assert_eq!(failures(&cluster, 2), [(3, Status::INTERNAL), (4, Status::INTERNAL)]);
    cluster.add(&launch(2, "one")).unwrap();
    assert_eq!(failures(&cluster, 2), [(5, Status::NOT_FOUND), (6, Status::CANCELED)]);
    cluster.add(&launch(1, "later")).unwrap();
    while kept.lock().unwrap().pop().is_none() {
        thread::yield_now();
    }
    assert_eq!(failures(&cluster, 1), [(7, Status::CANCELED)]);
    drop(server);
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    cluster.close(SOON).unwrap();
    queue.close().unwrap();
    serving.join().unwrap();
}
