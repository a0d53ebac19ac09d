// SPDX-License-Identifier: MIT
//! Transports and managers that are dropped early, and requests that are dropped without an answer.
use muster::{
    Cluster, ClusterConfig, ClusterEvent, Context, Error, Launch, LaunchRequest, Listener, Manager, ManagerServer,
    Queue, Reports, Requests, Status, Stream, Transport, TransportServer,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{mpsc, Arc, Mutex};
use std::thread;
use std::time::Duration;

const SOON: Option<Duration> = Some(Duration::from_secs(20));

// Takes from a queue until it is closed.
fn serve(queue: &Queue) -> thread::JoinHandle<()> {
    let queue = queue.clone();
    thread::spawn(move || while queue.next(None).is_ok() {})
}

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
        let dropped_again = again.dropped.clone();
        assert_eq!(TransportServer::new(&queue, "counted", again).err().unwrap().status(), Status::EXISTS);
        assert_eq!(dropped_again.load(Ordering::SeqCst), 1);
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

// A transport of which a function can be held.
struct Held {
    dropped: Arc<AtomicUsize>,
    begun: mpsc::Sender<()>,
    go_on: mpsc::Receiver<()>,
    server: Arc<Mutex<Option<TransportServer>>>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

impl Transport for Held {
    fn open(&mut self, address: &str, _: Requests) {
        if address == "held://own" {
            drop(self.server.lock().unwrap().take());
            assert_eq!(self.dropped.load(Ordering::SeqCst), 0); // it runs
        } else {
            self.begun.send(()).unwrap();
            self.go_on.recv().unwrap();
        }
    }
}

#[test]
fn a_transport_that_runs_is_dropped_when_it_returns() {
    for own in [false, true] {
        let context = Context::new().unwrap();
        let queue = Queue::new(&context).unwrap();
        let (dropped, server) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(None)));
        let (begun, has_begun) = mpsc::channel();
        let (let_go, go_on) = mpsc::channel();
        let held = Held { dropped: dropped.clone(), begun, go_on, server: server.clone() };
        *server.lock().unwrap() = Some(TransportServer::new(&queue, "held", held).unwrap());
        let serving = serve(&queue);
        thread::scope(|scope| {
            let place = if own { "held://own" } else { "held://other" };
            let dialling = scope.spawn(|| Stream::dial(&context, place, SOON).err().expect("no stream").status());
            if !own {
                has_begun.recv().unwrap();
                drop(server.lock().unwrap().take());
                assert_eq!(dropped.load(Ordering::SeqCst), 0);
                let_go.send(()).unwrap();
            }
            // Taken back with its transport, or dropped as the function returned.
            let status = dialling.join().unwrap();
            assert!(status == Status::CLOSED || status == Status::CANCELED, "{:?}", status);
        });
        queue.close().unwrap();
        serving.join().unwrap();
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
    }
}
