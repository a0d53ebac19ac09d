// SPDX-License-Identifier: MIT
//! Teams and managers that are misused: entries that end their workers, calls in circles, servers dropped early.
//!   workers [part of a test's name]...
mod common;

use common::start_worker;
use muster::parallel::{self, CallError, Functions, Options, Team};
use muster::{
    ClusterConfig, Context, Error, Launch, LaunchRequest, Manager, ManagerServer, Process, Queue, Reports, Status,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{mpsc, Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const SOON: Option<Duration> = Some(Duration::from_secs(20));

fn functions() -> Functions {
    let mut functions = Functions::new();
    functions
        .add("same_unless_7", |_, x: u64| -> Result<u64, String> {
            if x == 7 {
                std::process::abort();
            }
            Ok(x)
        })
        .add("forever", |here, ()| -> Result<(), String> {
            let _ = here.call::<_, ()>(0, "begun", &()); // the master may close before it has answered
            loop {
                thread::park();
            }
        })
        .add("circle", |here, depth: u32| -> Result<u32, String> {
            if depth == 0 {
                return Ok(0);
            }
            let other = 3 - here.number();
            let below = thread::scope(|scope| {
                let called = scope.spawn(|| here.call::<_, u32>(other, "circle", &(depth - 1)));
                called.join().expect("a thread that does not panic")
            });
            below.map(|n| n + 1).map_err(|why| why.to_string())
        });
    functions
}

fn in_team(count: u32, retries: Option<u32>, body: impl FnOnce(&Team)) {
    let context = Context::new().unwrap();
    let launch = Launch::local(1, [std::env::current_exe().unwrap()]);
    let options = Options { launch: Some(launch), map_retries: retries, ..Options::default() };
    let team = Team::open(&context, functions(), &options).unwrap();
    team.add(count).unwrap();
    team.wait_for(count as usize, SOON).unwrap();
    body(&team);
    team.close().unwrap();
    context.close(SOON).unwrap();
}

// Runs it on a thread of its own; a hang is a failure that says where.
fn within(body: impl FnOnce() + Send + 'static) {
    let (done, came) = mpsc::channel();
    thread::spawn(move || {
        body();
        let _ = done.send(());
    });
    came.recv_timeout(Duration::from_secs(60)).expect("it hangs, or has panicked");
}

fn an_entry_that_ends_its_workers_is_named() {
    let list: Vec<u64> = (0..40).collect();
    for (batch, retries, ended) in [(1, None, 3), (10, None, 3), (0, Some(1), 2), (1, Some(0), 1)] {
        let list = list.clone();
        within(move || {
            in_team(6, retries, |team| {
                match team.map::<u64, u64>("same_unless_7", &list, batch) {
                    Err(CallError::Lost(why)) => {
                        assert_eq!(why.status(), Status::LIMIT, "{}", why);
                        if retries != Some(0) {
                            assert!(why.message().starts_with("entry 7 of the list"), "{}", why);
                        }
                    }
                    other => panic!("batch {}: {:?}", batch, other),
                }
                // The others live, and work. Which are dead is known when their events were taken.
                let without: Vec<u64> = list.iter().copied().filter(|&x| x != 7).collect();
                assert_eq!(team.map::<u64, u64>("same_unless_7", &without, 1).unwrap(), without);
                let started = Instant::now();
                while team.workers().len() > 6 - ended {
                    assert!(started.elapsed() < Duration::from_secs(20), "{:?} live", team.workers());
                    thread::yield_now();
                }
                assert_eq!(team.workers().len(), 6 - ended);
            });
        });
    }
}

fn threads_of_a_function_may_call_in_circles() {
    within(|| {
        in_team(2, None, |team| {
            assert_eq!(team.call::<_, u32>(1, "circle", &20u32).unwrap(), 20);
            assert_eq!(team.call::<_, u32>(2, "circle", &3u32).unwrap(), 3);
        });
    });
}

fn a_team_that_is_closed_ends_its_calls() {
    within(|| {
        let context = Context::new().unwrap();
        let launch = Launch::local(1, [std::env::current_exe().unwrap()]);
        let cluster = ClusterConfig { leave_timeout: Some(Duration::from_millis(50)), ..ClusterConfig::default() };
        let begun = Arc::new(AtomicUsize::new(0));
        let mut mine = Functions::new();
        let counted = begun.clone();
        mine.add("begun", move |_, ()| {
            counted.fetch_add(1, Ordering::SeqCst);
            Ok(())
        });
        let options = Options { launch: Some(launch), cluster, map_retries: None };
        let team = Team::open(&context, mine, &options).unwrap();
        team.add(2).unwrap();
        team.wait_for(2, SOON).unwrap();
        thread::scope(|scope| {
            let call = scope.spawn(|| team.call::<_, ()>(1, "forever", &()));
            let map = scope.spawn(|| team.map::<(), ()>("forever", &[(), ()], 1));
            while begun.load(Ordering::SeqCst) < 2 {
                thread::yield_now(); // until both workers are in it
            }
            let _ = team.close(); // they have to be killed
            assert!(matches!(call.join().unwrap(), Err(CallError::Lost(_))));
            assert!(map.join().unwrap().is_err());
        });
        assert!(matches!(team.call::<_, ()>(1, "forever", &()), Err(CallError::Lost(_))));
        assert_eq!(team.add(1).unwrap_err().status(), Status::CLOSED);
        drop(team);
        context.close(SOON).unwrap();
    });
}

#[derive(Default)]
struct Seen {
    calls: Vec<(&'static str, u32)>,
    children: Vec<Process>,
}

struct Starter {
    context: Context,
    seen: Arc<Mutex<Seen>>,
}

impl Drop for Starter {
    fn drop(&mut self) {
        self.seen.lock().unwrap().calls.push(("dropped", 0));
    }
}

impl Manager for Starter {
    fn launch(&mut self, request: LaunchRequest, reports: Reports) {
        for member in request.first..request.first + request.count {
            self.seen.lock().unwrap().children.push(start_worker(&self.context, &reports, member));
            reports.ready(member, None, 1000 + u64::from(member)).unwrap();
        }
    }
    fn kill(&mut self, _: u32, _: u64) -> Result<(), Error> {
        Err(Error::new(Status::UNSUPPORTED, "nothing is killed here"))
    }
    fn registered(&mut self, member: u32, data: u64) {
        assert_eq!(data, 1000 + u64::from(member));
        self.seen.lock().unwrap().calls.push(("registered", member));
    }
    fn deregistered(&mut self, member: u32, data: u64) {
        assert_eq!(data, 1000 + u64::from(member));
        self.seen.lock().unwrap().calls.push(("deregistered", member));
        assert_ne!(member, 2, "one that panics does not end the others");
    }
}

fn each_registered_worker_is_deregistered_once() {
    let context = Context::new().unwrap();
    let queue = Queue::new(&context).unwrap();
    let seen = Arc::new(Mutex::new(Seen::default()));
    let starter = Starter { context: context.clone(), seen: seen.clone() };
    let server = ManagerServer::new(&queue, "starter", starter).unwrap();
    let serving = {
        let queue = queue.clone();
        thread::spawn(move || while queue.next(None).is_ok() {})
    };
    let launch = Launch { manager: "starter".into(), ..Launch::local(1, [""; 0]) };
    let options = Options { launch: Some(launch), ..Options::default() };
    let team = Team::open(&context, functions(), &options).unwrap();
    team.add(3).unwrap();
    team.wait_for(3, SOON).unwrap();
    let calls = |name: &str| -> Vec<u32> {
        let seen = seen.lock().unwrap();
        let mut members: Vec<u32> = seen.calls.iter().filter(|call| call.0 == name).map(|call| call.1).collect();
        members.sort_unstable();
        members
    };
    while calls("registered").len() < 3 {
        thread::yield_now();
    }
    team.cluster().remove(1, None).unwrap();
    while calls("deregistered").is_empty() {
        thread::yield_now();
    }
    assert_eq!(calls("deregistered"), [1]);
    // Two workers are in when the server is dropped: the manager deregisters both and is dropped. The call for the first
    // worker may still be about to return.
    drop(server);
    let begun = Instant::now();
    while calls("dropped").is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it was not dropped");
        thread::yield_now();
    }
    assert_eq!(calls("deregistered"), [1, 2, 3]);
    assert_eq!(seen.lock().unwrap().calls.last(), Some(&("dropped", 0)));
    team.close().unwrap();
    drop(team);
    for child in &seen.lock().unwrap().children {
        child.wait(SOON).unwrap();
    }
    assert_eq!((calls("registered"), calls("deregistered")), (vec![1, 2, 3], vec![1, 2, 3]));
    queue.close().unwrap();
    serving.join().unwrap();
    context.close(SOON).unwrap();
}

fn main() {
    if parallel::is_worker() {
        return parallel::work(functions()).unwrap();
    }
    let tests: &[(&str, fn())] = &[
        ("an_entry_that_ends_its_workers_is_named", an_entry_that_ends_its_workers_is_named),
        ("threads_of_a_function_may_call_in_circles", threads_of_a_function_may_call_in_circles),
        ("a_team_that_is_closed_ends_its_calls", a_team_that_is_closed_ends_its_calls),
        ("each_registered_worker_is_deregistered_once", each_registered_worker_is_deregistered_once),
    ];
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let mut count = 0;
    for (name, test) in tests {
        if wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str())) {
            test(); // a panic is the end
            println!("ok {}", name);
            count += 1;
        }
    }
    println!("{} passed", count);
}
