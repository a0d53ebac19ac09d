// SPDX-License-Identifier: MIT
//! The acceptance program: a cluster of Rust programs, over each transport. Then what can go wrong.
//!   acceptance [part of a test's name]...
mod common;

use common::start_worker;
use muster::parallel::{self, Bytes, CallError, Functions, Options, Team, Value};
use muster::{
    sys, Cluster, ClusterConfig, ClusterEvent, Context, ContextConfig, Error, Launch, LaunchRequest, Manager,
};
use muster::{ManagerServer, Process, Queue, Reports, Status, Stream};
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const SOON: Option<Duration> = Some(Duration::from_secs(20));

extern "C" {
    fn kill(pid: i32, signal: i32) -> i32;
}

// What a worker has heard: from whom, with which label, how many bytes, and their checksum.
static HEARD: Mutex<Vec<(u32, String, u64, u32)>> = Mutex::new(Vec::new());
static HEARS: Condvar = Condvar::new();

fn functions() -> Functions {
    let mut functions = Functions::new();
    functions
        .on_broadcast(|_, from, label, bytes| {
            let label = String::from_utf8(label.to_vec()).unwrap();
            assert_ne!(label, "bad", "this one is not liked");
            HEARD.lock().unwrap().push((from, label, bytes.len() as u64, checksum(&bytes)));
            HEARS.notify_all();
        })
        .add("heard", |_, ()| {
            let heard = HEARS.wait_while(HEARD.lock().unwrap(), |heard| heard.is_empty()).unwrap().remove(0);
            Ok(heard)
        })
        .add("broadcast", |here, bytes: Bytes| match here.broadcast(Some(&[0, 1, 9]), b"up", &bytes.0, SOON) {
            Err((why, each)) => Ok((why.to_string(), each.iter().map(|one| one.0).collect::<Vec<i32>>())),
            Ok(()) => Err("number 9 is not there".into()),
        })
        .add("square", |_, x: u64| {
            for _ in 0..2000 {
                std::hint::spin_loop();
            }
            Ok(x * x)
        })
        .add("back", |_, bytes: Bytes| {
            let sum = checksum(&bytes.0);
            Ok((bytes, sum))
        })
        .add("number_of", |here, member: u32| here.call::<_, u32>(member, "number", &()).map_err(|why| why.to_string()))
        .add("number", |here, ()| Ok(here.number()))
        .add("ping", |here, depth: u32| {
            // There and back again, by the two streams between two workers: each serves while it waits.
            let other = 3 - here.number();
            if depth == 0 {
                Ok(0)
            } else {
                here.call::<_, u32>(other, "ping", &(depth - 1)).map(|n| n + 1).map_err(|why| why.to_string())
            }
        })
        .add("spin", |here, ()| -> Result<(), String> {
            here.call::<_, ()>(0, "computing", &()).map_err(|why| why.to_string())?;
            while !here.interrupted() {
                std::hint::spin_loop();
            }
            Err("interrupted".into())
        })
        .add("forever", |_, ()| -> Result<(), String> {
            loop {
                std::hint::spin_loop()
            }
        })
        .add("last", |here, x: u64| {
            let count = |name| here.call::<_, u64>(0, name, &()).map_err(|why| why.to_string());
            if here.number() == 1 {
                // Dies when nothing is left but what it has.
                let mut begun = count("begin")?;
                while begun < 4 {
                    begun = count("begun")?;
                }
                std::process::exit(5);
            }
            while count("begun")? == 0 {} // until worker 1 has something
            count("begin")?;
            Ok(x * x)
        })
        .add("fail", |_, ()| -> Result<(), String> { Err("no such luck".into()) })
        .add("panic", |_, ()| -> Result<(), String> { panic!("at the disco") })
        .add("three", |_, x: u64| if x == 3 { Err("three".to_string()) } else { Ok(x) })
        .add("exit", |_, x: u64| -> Result<u64, String> {
            if x == 2 {
                std::process::exit(5)
            } else {
                Ok(x)
            }
        });
    functions
}

fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0u32, |sum, &byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)))
}

// What this process holds of the machine: children, descriptors, shared memory, sockets with names.
#[derive(Debug, PartialEq, Eq)]
struct Held {
    children: Vec<String>,
    descriptors: usize,
    shared: BTreeSet<OsString>,
    sockets: usize,
}

fn held() -> Held {
    let mut children = Vec::new();
    for task in fs::read_dir("/proc/self/task").unwrap().flatten() {
        let text = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        children.extend(text.split_whitespace().map(String::from));
    }
    let unix = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let mine = format!("muster-rust-{}", std::process::id());
    Held {
        children,
        descriptors: fs::read_dir("/proc/self/fd").unwrap().count(),
        shared: fs::read_dir("/dev/shm")
            .map_or(BTreeSet::new(), |all| all.flatten().map(|one| one.file_name()).collect()),
        sockets: unix.lines().filter(|line| line.contains(&mine)).count(),
    }
}

fn team_on(context: &Context, functions: Functions, listen: Option<String>, worker: Option<String>) -> Team {
    let mut launch = Launch::local(1, [std::env::current_exe().unwrap()]);
    launch.listen = worker;
    let cluster = ClusterConfig { listen, ..ClusterConfig::default() };
    Team::open(context, functions, &Options { cluster, launch: Some(launch), ..Options::default() }).unwrap()
}

fn accept_over(way: &str) {
    let before = held();
    {
        let context = Context::new().unwrap();
        let me = std::process::id();
        let broker = if way == "star" { Some(Broker::open(&context)) } else { None };
        let (listen, worker) = match (way, &broker) {
            ("tcp", _) => ("tcp://127.0.0.1:0?upgrade=no".into(), "tcp://127.0.0.1:0?upgrade=no".into()),
            ("shm", _) => (format!("shm://muster-rust-{}-0", me), format!("shm://muster-rust-{}-{{}}", me)),
            (_, Some(broker)) => (format!("zmq://master@{}/c", broker.at), format!("zmq://w{{}}@{}/c", broker.at)),
            _ => unreachable!(),
        };
        let computing = Arc::new(AtomicBool::new(false));
        let mut mine = functions();
        let told = computing.clone();
        mine.add("computing", move |_, ()| {
            told.store(true, Ordering::SeqCst);
            Ok(())
        });
        let team = team_on(&context, mine, Some(listen), Some(worker));
        team.add(4).unwrap();
        team.wait_for(4, SOON).unwrap();

        // 100,000 numbers; in the middle one is killed.
        let list: Vec<u64> = (0..100_000).collect();
        let victim = team.cluster().member(2).unwrap().pid as i32;
        let squares: Vec<u64> = thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(30));
                unsafe { kill(victim, 9) };
            });
            team.map("square", &list, 250).unwrap()
        });
        assert_eq!(squares.len(), list.len());
        assert!(squares.iter().zip(&list).all(|(square, x)| *square == x * x));
        until(|| team.workers() == [1, 3, 4]);

        // 80 MB both ways.
        let big = Bytes(b"0123456789abcdef".repeat(5_000_000));
        let (back, sum): (Bytes, u32) = team.call(1, "back", &big).unwrap();
        assert_eq!(sum, checksum(&big.0));
        assert!(back == big);
        drop((back, big));

        // Two come late, and workers call each other.
        team.add(2).unwrap();
        team.wait_for(5, SOON).unwrap();
        assert_eq!(team.call::<_, u32>(5, "number_of", &6u32).unwrap(), 6);

        // A long task is interrupted; its worker goes on.
        thread::scope(|scope| {
            let ended = scope.spawn(|| team.call::<_, ()>(3, "spin", &()));
            until(|| computing.load(Ordering::SeqCst));
            team.cluster().interrupt(3).unwrap();
            match ended.join().unwrap() {
                Err(CallError::Failed(why)) => assert_eq!(why, "interrupted"),
                other => panic!("{:?}", other),
            }
        });
        assert_eq!(team.call::<_, u32>(3, "number", &()).unwrap(), 3);

        // Who has another secret does not come in.
        if way == "tcp" {
            let config =
                ContextConfig { secret: Some(b"another secret than theirs".to_vec()), ..ContextConfig::default() };
            let stranger = Context::with(&config).unwrap();
            let address = team.cluster().member(muster::MASTER).unwrap().address + "?upgrade=no";
            let refused = Stream::dial(&stranger, &address, SOON).err().expect("it must not come in");
            assert_eq!(refused.status(), Status::AUTH);
            stranger.close(SOON).unwrap();
        }
        team.close().unwrap();
        drop(team);
        drop(broker);
        context.close(SOON).unwrap();
    }
    // A plug-in's library may still be closing its own.
    until(|| held().descriptors <= before.descriptors);
    // Other programs on this machine have some there for a while; what we left would stay.
    until(|| held().shared.is_subset(&before.shared));
    let after = held();
    assert_eq!((after.children, after.sockets), (before.children, 0));
}

fn until(done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it did not come to be");
        thread::sleep(Duration::from_millis(5));
    }
}

// By the C interface: this crate has no form of it.
struct Broker {
    raw: *mut sys::muster_broker,
    at: String,
}

impl Broker {
    fn open(context: &Context) -> Broker {
        let mut config = sys::muster_broker_config::sized();
        let listen = "zmq://127.0.0.1:0/";
        config.flags = 0;
        let (mut raw, mut detail) = (std::ptr::null_mut(), sys::muster_error::default());
        let (mut text, mut size) = (vec![0u8; 300], 0);
        unsafe {
            let status = sys::muster_broker_open(
                context.as_raw(),
                listen.as_ptr().cast(),
                listen.len(),
                &config,
                &mut raw,
                &mut detail,
            );
            assert_eq!(status, sys::MUSTER_OK);
            assert_eq!(
                sys::muster_broker_address(raw, text.as_mut_ptr().cast(), text.len(), &mut size),
                sys::MUSTER_OK
            );
        }
        let address = String::from_utf8(text[..size].to_vec()).unwrap();
        let at = address.trim_start_matches("zmq://").split('/').next().unwrap().to_string();
        Broker { raw, at }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        unsafe {
            sys::muster_broker_close(self.raw, 1_000_000_000);
            sys::muster_broker_release(self.raw);
        }
    }
}

fn in_team(count: u32, body: impl FnOnce(&Team)) {
    let context = Context::new().unwrap();
    let team = team_on(&context, functions(), None, None);
    team.add(count).unwrap();
    team.wait_for(count as usize, SOON).unwrap();
    body(&team);
    team.close().unwrap();
    context.close(SOON).unwrap();
}

fn failed<T: std::fmt::Debug>(result: Result<T, CallError>) -> String {
    match result {
        Err(CallError::Failed(why)) => why,
        other => panic!("{:?}", other),
    }
}

fn lost<T: std::fmt::Debug>(result: Result<T, CallError>) -> Status {
    match result {
        Err(CallError::Lost(why)) => why.status(),
        other => panic!("{:?}", other),
    }
}

fn a_broadcast_reaches_all() {
    in_team(3, |team| {
        let bytes: Vec<u8> = (0..5_000_000u32).map(|i| (i % 251) as u8).collect();
        team.cluster().broadcast(None, b"bad", b"", SOON).unwrap(); // a panic of who hears it ends nothing
        for (label, bytes) in [("much", &bytes[..]), ("", &[])] {
            team.cluster().broadcast(None, label.as_bytes(), bytes, SOON).unwrap();
            for member in 1..=3 {
                let heard: (u32, String, u64, u32) = team.call(member, "heard", &()).unwrap();
                assert_eq!(heard, (0, label.to_string(), bytes.len() as u64, checksum(bytes)));
            }
        }
        // From a worker, to those it names; one of them never was.
        let (why, each): (String, Vec<i32>) = team.call(2, "broadcast", &Bytes(vec![7; 100])).unwrap();
        assert_eq!(each, [Status::OK.0, Status::OK.0, Status::NOT_FOUND.0], "{}", why);
        let heard: (u32, String, u64, u32) = team.call(1, "heard", &()).unwrap();
        assert_eq!(heard, (2, "up".to_string(), 100, checksum(&[7; 100])));
        let mine = HEARS.wait_while(HEARD.lock().unwrap(), |heard| heard.is_empty()).unwrap().remove(0);
        assert_eq!(mine, heard);
    });
}

fn errors_of_a_call_are_returned_to_the_caller() {
    in_team(1, |team| {
        assert_eq!(failed(team.call::<_, ()>(1, "fail", &())), "no such luck");
        assert!(failed(team.call::<_, ()>(1, "panic", &())).contains("at the disco"));
        assert!(failed(team.call::<_, ()>(1, "nothing", &())).contains("\"nothing\""));
        assert!(failed(team.call::<_, ()>(1, "square", &"text".to_string()))
            .contains("another type than the function takes"));
        assert!(failed(team.call::<_, String>(1, "square", &3u64)).contains("another type than expected"));
        assert_eq!(lost(team.call::<_, ()>(7, "fail", &())), Status::NOT_FOUND);
        assert_eq!(lost(team.call::<_, ()>(0, "fail", &())), Status::ARG);
        assert_eq!(failed(team.map::<u64, u64>("three", &[1, 2, 3, 4], 1)), "three");
        assert_eq!(team.map::<u64, u64>("three", &[], 1).unwrap(), []);
        assert_eq!(team.call::<_, u64>(1, "square", &3u64).unwrap(), 9);
    });
}

fn members_that_wait_for_each_other_go_on_serving() {
    in_team(2, |team| {
        assert_eq!(team.call::<_, u32>(1, "ping", &20u32).unwrap(), 20);
        // Many threads on one connection.
        thread::scope(|scope| {
            for i in 0..8u64 {
                scope.spawn(move || {
                    for j in 0..50 {
                        assert_eq!(team.call::<_, u64>(1, "square", &(i * j)).unwrap(), i * j * i * j);
                    }
                });
            }
        });
    });
}

fn calls_end_when_their_worker_dies() {
    in_team(2, |team| {
        let pid = team.cluster().member(1).unwrap().pid as i32;
        thread::scope(|scope| {
            scope.spawn(move || {
                thread::sleep(Duration::from_millis(100));
                unsafe { kill(pid, 9) };
            });
            assert_eq!(lost(team.call::<_, ()>(1, "forever", &())), Status::PEER);
        });
        assert_eq!(team.call::<_, u32>(2, "number", &()).unwrap(), 2);
    });
}

fn without_workers_a_map_ends() {
    in_team(1, |team| {
        assert_eq!(lost(team.map::<u64, u64>("exit", &[1, 2, 3], 1)), Status::PEER);
    });
}

fn what_a_worker_had_last_goes_to_others() {
    let context = Context::new().unwrap();
    let begun = Arc::new(AtomicU64::new(0));
    let mut mine = functions();
    let counted = begun.clone();
    mine.add("begin", move |_, ()| Ok(counted.fetch_add(1, Ordering::SeqCst) + 1));
    mine.add("begun", move |_, ()| Ok(begun.load(Ordering::SeqCst)));
    let team = team_on(&context, mine, None, None);
    team.add(2).unwrap();
    team.wait_for(2, SOON).unwrap();
    assert_eq!(team.map::<u64, u64>("last", &[1, 2, 3, 4], 1).unwrap(), [1, 4, 9, 16]);
    team.close().unwrap();
    context.close(SOON).unwrap();
}

fn a_map_whose_values_panic_ends() {
    struct Bad;
    impl Value for Bad {
        fn put(&self, _: &mut Vec<u8>) {
            panic!("a value that cannot");
        }
        fn take(_: &mut &[u8]) -> Option<Bad> {
            None
        }
    }
    in_team(1, |team| {
        let ended = catch_unwind(AssertUnwindSafe(|| team.map::<Bad, u64>("square", &[Bad, Bad, Bad], 1)));
        assert!(ended.is_err());
        assert_eq!(team.call::<_, u64>(1, "square", &3u64).unwrap(), 9);
    });
}

// ---- a manager as a trait

#[derive(Default)]
struct Starts {
    children: HashMap<u32, Process>,
    registered: usize,
    killed: usize,
}

struct Starter {
    context: Context,
    starts: Arc<Mutex<Starts>>,
    panics: Arc<AtomicUsize>,
}

impl Manager for Starter {
    fn launch(&mut self, request: LaunchRequest, reports: Reports) {
        if request.options == "panic" {
            self.panics.fetch_add(1, Ordering::SeqCst);
            panic!("a manager that cannot");
        }
        for member in request.first..request.first + request.count {
            if request.options == "refuse" {
                reports.failed(member, &Error::new(Status::NOT_FOUND, "there is no such machine")).unwrap();
                continue;
            }
            let child = start_worker(&self.context, &reports, member);
            self.starts.lock().unwrap().children.insert(member, child);
            reports.ready(member, None, 1000 + u64::from(member)).unwrap();
        }
    }
    fn kill(&mut self, member: u32, data: u64) -> Result<(), Error> {
        assert_eq!(data, 1000 + u64::from(member));
        let mut starts = self.starts.lock().unwrap();
        starts.killed += 1;
        starts.children[&member].kill(9)
    }
    fn registered(&mut self, _: u32, _: u64) {
        self.starts.lock().unwrap().registered += 1;
    }
}

fn a_manager_written_in_rust_launches_and_kills() {
    let context = Context::new().unwrap();
    let queue = Queue::new(&context).unwrap();
    let (starts, panics) = (Arc::new(Mutex::new(Starts::default())), Arc::new(AtomicUsize::new(0)));
    let starter = Starter { context: context.clone(), starts: starts.clone(), panics: panics.clone() };
    let server = ManagerServer::new(&queue, "starter", starter).unwrap();
    assert_eq!(ManagerServer::new(&queue, "ssh", Nothing).err().unwrap().status(), Status::EXISTS);
    let serving = {
        let queue = queue.clone();
        thread::spawn(move || while queue.next(None).is_ok() {})
    };
    let mut launch = Launch::local(1, Vec::<String>::new());
    launch.manager = "starter".into();
    let options = Options { launch: Some(launch.clone()), ..Options::default() };
    let team = Team::open(&context, functions(), &options).unwrap();
    team.add(2).unwrap();
    team.wait_for(2, SOON).unwrap();
    assert_eq!(team.cluster().member(2).unwrap().data, 1002);
    assert_eq!(team.call::<_, u32>(1, "number_of", &2u32).unwrap(), 2);
    team.cluster().remove(2, Some(Duration::ZERO)).unwrap(); // by force
    until(|| team.workers() == [1]);
    for (options, part) in [("refuse", "there is no such machine"), ("panic", "the manager panicked")] {
        let mut bad = launch.clone();
        bad.options = Some(options.into());
        team.cluster().add(&bad).unwrap();
        let why = team.wait_for(9, SOON).unwrap_err();
        assert!(why.message().contains(part), "{}", why);
    }
    assert_eq!(panics.load(Ordering::SeqCst), 1);
    team.close().unwrap();
    drop(team);
    {
        let starts = starts.lock().unwrap();
        for child in starts.children.values() {
            child.wait(SOON).unwrap();
        }
        assert_eq!((starts.registered, starts.killed), (2, 1));
    }
    drop(server);
    until(|| Arc::strong_count(&starts) == 1); // the manager itself is gone
    queue.close().unwrap();
    serving.join().unwrap();
    context.close(SOON).unwrap();
}

struct Nothing;
impl Manager for Nothing {
    fn launch(&mut self, _: LaunchRequest, _: Reports) {}
    fn kill(&mut self, _: u32, _: u64) -> Result<(), Error> {
        Ok(())
    }
}

fn a_server_that_is_dropped_keeps_nothing() {
    let before = held().descriptors;
    {
        let context = Context::new().unwrap();
        let queue = Queue::new(&context).unwrap();
        drop(ManagerServer::new(&queue, "nothing", Nothing).unwrap()); // and nobody takes from the queue
    }
    until(|| held().descriptors <= before);
}

fn events_tell_what_becomes_of_workers() {
    let context = Context::new().unwrap();
    let cluster = Cluster::open(&context, &ClusterConfig::default()).unwrap();
    let first = cluster.add(&Launch::local(1, ["/nowhere/worker"])).unwrap();
    loop {
        match cluster.next_event(SOON).unwrap().expect("an event") {
            ClusterEvent::Failed(member, why) => {
                assert_eq!((member, why.status()), (first, Status::NOT_FOUND));
                break;
            }
            ClusterEvent::Launched(_) => {}
            _ => panic!("another event"),
        }
    }
    assert!(cluster.next_event(Some(Duration::ZERO)).unwrap().is_none());
    assert_eq!(cluster.add(&Launch { count: 0, ..Launch::local(0, ["true"]) }).unwrap_err().status(), Status::ARG);
    assert!(cluster.list().unwrap().is_empty());
    cluster.close(None).unwrap();
    assert_eq!(cluster.next_event(None).err().unwrap().status(), Status::CLOSED);
}

fn main() {
    if parallel::is_worker() {
        return parallel::work(functions()).unwrap();
    }
    let tests: &[(&str, fn())] = &[
        ("a_cluster_does_its_work_over_tcp", || accept_over("tcp")),
        ("a_cluster_does_its_work_over_shm", || accept_over("shm")),
        ("a_cluster_does_its_work_over_star", || accept_over("star")),
        ("a_broadcast_reaches_all", a_broadcast_reaches_all),
        ("errors_of_a_call_are_returned_to_the_caller", errors_of_a_call_are_returned_to_the_caller),
        ("members_that_wait_for_each_other_go_on_serving", members_that_wait_for_each_other_go_on_serving),
        ("calls_end_when_their_worker_dies", calls_end_when_their_worker_dies),
        ("without_workers_a_map_ends", without_workers_a_map_ends),
        ("what_a_worker_had_last_goes_to_others", what_a_worker_had_last_goes_to_others),
        ("a_map_whose_values_panic_ends", a_map_whose_values_panic_ends),
        ("a_manager_written_in_rust_launches_and_kills", a_manager_written_in_rust_launches_and_kills),
        ("a_server_that_is_dropped_keeps_nothing", a_server_that_is_dropped_keeps_nothing),
        ("events_tell_what_becomes_of_workers", events_tell_what_becomes_of_workers),
    ];
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let mut count = 0;
    for (name, test) in tests {
        if wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str())) {
            let begun = Instant::now();
            test(); // a panic is the end
            println!("ok {} ({:.2} s)", name, begun.elapsed().as_secs_f64());
            count += 1;
        }
    }
    println!("{} passed", count);
}
