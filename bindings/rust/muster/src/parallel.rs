// SPDX-License-Identifier: MIT
//! Functions called in other processes: a master, its workers, `call` and `map`.
//!
//! Master and workers are the same program, or have at least the same functions: they are registered by name.
//!
//! ```no_run
//! use muster::parallel::{Functions, Options, Team};
//! let mut functions = Functions::new();
//! functions.add("square", |_, x: u64| Ok(x * x));
//! if muster::parallel::is_worker() {
//!     return muster::parallel::work(functions);
//! }
//! let team = Team::open(&muster::Context::new()?, functions, &Options::default())?;
//! team.add(4)?;
//! team.wait_for(4, None)?;
//! let seven: u64 = team.call(1, "square", &7u64)?;
//! let squares: Vec<u64> = team.map("square", &[1u64, 2, 3], 0)?;
//! team.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Each connection is served by one thread, which runs what is asked for in order; while a function waits for a call of
//! its own another thread goes on serving. An interrupt is what a function looks for: [`Here::interrupted`].
use crate::error::{Error, Status};
use crate::{Broadcast, Cluster, ClusterConfig, ClusterEvent, Context, Launch, Stream, WorkerConfig};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, Read, Write};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

mod value;
pub use value::{Bytes, Value};

const LABEL: &[u8] = b"rust"; // of the streams over which functions are called
const LONGEST: u64 = 1 << 40; // of a message
const CONNECT: Duration = Duration::from_secs(60);

/// Why a call gave nothing.
#[derive(Clone, Debug)]
pub enum CallError {
    /// The function said so, or panicked; or what it was given or gave was not what was expected.
    Failed(String),
    /// The way to it: the worker is gone, or was never there.
    Lost(Error),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Failed(why) => f.write_str(why),
            CallError::Lost(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for CallError {}

impl From<Error> for CallError {
    fn from(error: Error) -> CallError {
        CallError::Lost(error)
    }
}

/// What a function gives: a value, or a sentence why there is none.
pub type Outcome<R> = Result<R, String>;

// Puts what it gives behind what is there.
type Function = Arc<dyn Fn(&Here, &[u8], &mut Vec<u8>) -> Outcome<()> + Send + Sync>;

type Hearer = Arc<dyn Fn(&Here, u32, &[u8], Broadcast) + Send + Sync>;

/// The functions that may be called, by name.
#[derive(Clone, Default)]
pub struct Functions {
    all: BTreeMap<String, Function>,
    hearer: Option<Hearer>,
}

impl Functions {
    /// None yet.
    pub fn new() -> Functions {
        Functions::default()
    }

    /// Adds one; of two of a name the last counts.
    pub fn add<A: Value, R: Value>(
        &mut self,
        name: &str,
        function: impl Fn(&Here, A) -> Outcome<R> + Send + Sync + 'static,
    ) -> &mut Self {
        let called: Function = Arc::new(move |here, bytes, result| {
            let argument = A::from_bytes(bytes).ok_or("what came is not what the function takes")?;
            function(here, argument)?.put(result);
            Ok(())
        });
        self.all.insert(name.to_string(), called);
        self
    }

    /// What is run when a member has broadcast something: who, the label, the bytes. No other event is heard meanwhile.
    pub fn on_broadcast(&mut self, hear: impl Fn(&Here, u32, &[u8], Broadcast) + Send + Sync + 'static) -> &mut Self {
        self.hearer = Some(Arc::new(hear));
        self
    }
}

/// Where a function runs: by which it calls others, and hears of an interrupt.
pub struct Here {
    member: Arc<MemberHere>,
    interrupts: u64, // when it began
}

impl Here {
    /// The number of this member.
    pub fn number(&self) -> u32 {
        self.member.cluster.number()
    }
    /// Calls a function in another member.
    pub fn call<A: Value, R: Value>(&self, member: u32, name: &str, argument: &A) -> Result<R, CallError> {
        self.member.call(member, name, argument)
    }
    /// Gives bytes to many members, as [`Cluster::broadcast`]; they run what [`Functions::on_broadcast`] has named.
    pub fn broadcast(
        &self,
        members: Option<&[u32]>,
        label: &[u8],
        bytes: &[u8],
        timeout: Option<Duration>,
    ) -> Result<(), (Error, Vec<Status>)> {
        self.member.cluster.broadcast(members, label, bytes, timeout)
    }
    /// Has somebody interrupted this worker since the function began?
    pub fn interrupted(&self) -> bool {
        self.member.interrupts.load(Ordering::Relaxed) != self.interrupts
    }
}

/// Is this process a worker that somebody has launched?
pub fn is_worker() -> bool {
    ["MUSTER_WORKER_FD", "MUSTER_WORKER_TICKET"]
        .iter()
        .any(|name| std::env::var_os(name).map_or(false, |v| !v.is_empty()))
}

/// Serves calls until the master lets this worker go.
pub fn work(functions: Functions) -> Result<(), Box<dyn std::error::Error>> {
    let context = Context::of_worker()?;
    let config = WorkerConfig { exit_with_master: true, ..WorkerConfig::default() };
    let cluster = Cluster::come_in(&context, &config, Some(CONNECT))?;
    let here = MemberHere::new(cluster, functions);
    here.hear();
    here.cluster.close(None)?;
    Ok(())
}

// ---- one member ---------------------------------------------------------------------------------------------------

struct MemberHere {
    cluster: Cluster,
    functions: Functions,
    callers: Mutex<BTreeMap<u32, Arc<Caller>>>,
    workers: Mutex<BTreeSet<u32>>, // of a master: who is in
    failed: Mutex<Option<(u32, Error)>>,
    changed: Condvar, // of workers and failed
    interrupts: AtomicU64,
    over: AtomicBool,
}

impl MemberHere {
    fn new(cluster: Cluster, functions: Functions) -> Arc<MemberHere> {
        Arc::new(MemberHere {
            cluster,
            functions,
            callers: Mutex::default(),
            workers: Mutex::default(),
            failed: Mutex::default(),
            changed: Condvar::new(),
            interrupts: AtomicU64::new(0),
            over: AtomicBool::new(false),
        })
    }

    // Takes events until the cluster is over, or this member is told to leave.
    fn hear(self: &Arc<Self>) {
        while let Ok(event) = self.cluster.next_event(None) {
            match event {
                Some(ClusterEvent::Stream(_, label, stream)) if label == LABEL => {
                    let server = Arc::new(Server { stream, inbox: Mutex::default(), replies: Mutex::default() });
                    let here = self.clone();
                    thread::spawn(move || server.serve(here));
                }
                Some(ClusterEvent::Joined(member)) => self.change(|workers| workers.insert(member)),
                Some(ClusterEvent::Failed(member, why)) => {
                    *self.failed.lock().unwrap() = Some((member, why));
                    self.change(|workers| workers.remove(&member));
                }
                Some(ClusterEvent::Dead(member, _)) | Some(ClusterEvent::Removed(member)) => {
                    self.change(|workers| workers.remove(&member));
                }
                Some(ClusterEvent::Broadcast(member, label, bytes)) => {
                    if let Some(hear) = &self.functions.hearer {
                        let interrupts = self.interrupts.load(Ordering::Relaxed);
                        let at = Here { member: self.clone(), interrupts };
                        // What goes wrong there has said so; here others are still to be heard.
                        let _ = catch_unwind(AssertUnwindSafe(|| hear(&at, member, &label, bytes)));
                    }
                }
                Some(ClusterEvent::Interrupt) => {
                    self.interrupts.fetch_add(1, Ordering::Relaxed);
                }
                Some(ClusterEvent::Leave) | Some(ClusterEvent::MasterGone(_)) => break,
                _ => {}
            }
        }
        self.over.store(true, Ordering::Release);
        self.change(|_| true);
    }

    fn change(&self, how: impl FnOnce(&mut BTreeSet<u32>) -> bool) {
        how(&mut self.workers.lock().unwrap());
        self.changed.notify_all();
    }

    fn caller(&self, member: u32) -> Result<Arc<Caller>, CallError> {
        if member == self.cluster.number() {
            return Err(CallError::Lost(Error::new(Status::ARG, "that is this member itself")));
        }
        if let Some(there) = self.callers.lock().unwrap().get(&member) {
            if !there.over.load(Ordering::Acquire) {
                return Ok(there.clone());
            }
        }
        let stream = self.cluster.dial(member, LABEL, Some(CONNECT))?;
        let made = Arc::new(Caller::new(stream));
        let mut callers = self.callers.lock().unwrap();
        let there = callers.entry(member).or_insert_with(|| made.clone());
        if there.over.load(Ordering::Acquire) {
            *there = made;
        }
        Ok(there.clone())
    }

    fn call<A: Value, R: Value>(&self, member: u32, name: &str, argument: &A) -> Result<R, CallError> {
        let bytes = self.ask(member, CALL, name, |to| argument.put(to))?;
        R::from_bytes(&bytes).ok_or_else(|| CallError::Failed("what came back is not what was expected".into()))
    }

    fn ask(&self, member: u32, kind: u8, name: &str, put: impl FnOnce(&mut Vec<u8>)) -> Result<Vec<u8>, CallError> {
        let there = self.caller(member)?;
        SERVING.with(|serving| {
            if let Some(turn) = serving.borrow().as_ref() {
                turn.hand_on(); // while this function waits another thread serves the connection it came by
            }
        });
        there.ask(kind, name, put)
    }
}

// ---- messages -----------------------------------------------------------------------------------------------------
//
// A length of 8 bytes, then: question (8); kind (1); of a question the length of the name (2), the name, the argument; of
// an answer the value, or the sentence.

const CALL: u8 = 1;
const MAP: u8 = 2;
const VALUE: u8 = 3;
const SENTENCE: u8 = 4;
const HEAD: usize = 8 + 8 + 1;

fn frame(question: u64, kind: u8) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(256);
    bytes.resize(HEAD, 0);
    bytes[8..16].copy_from_slice(&question.to_le_bytes());
    bytes[16] = kind;
    bytes
}

fn send(stream: &Stream, mut bytes: Vec<u8>) -> io::Result<()> {
    let size = (bytes.len() - 8) as u64;
    bytes[..8].copy_from_slice(&size.to_le_bytes());
    let mut to = stream;
    to.write_all(&bytes)
}

struct Message {
    question: u64,
    kind: u8,
    body: Vec<u8>,
}

// What has come of a stream and is not taken yet: short messages come by one read.
struct Inbox {
    bytes: Vec<u8>,
    first: usize,
    past: usize,
}

impl Default for Inbox {
    fn default() -> Inbox {
        Inbox { bytes: vec![0; 4096], first: 0, past: 0 }
    }
}

impl Inbox {
    // Until the first bytes of a message are there.
    fn wait_for_head(&mut self, mut from: &Stream) -> io::Result<[u8; HEAD]> {
        while self.past - self.first < HEAD {
            self.bytes.copy_within(self.first..self.past, 0);
            self.past -= self.first;
            self.first = 0;
            match from.read(&mut self.bytes[self.past..])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                more => self.past += more,
            }
        }
        let head = self.bytes[self.first..self.first + HEAD].try_into().expect("so many bytes");
        self.first += HEAD;
        Ok(head)
    }

    fn take(&mut self, most: usize) -> &[u8] {
        let first = self.first;
        self.first += most.min(self.past - first);
        &self.bytes[first..self.first]
    }

    // A message is as long as its first bytes say, whatever that is: room for it is made as it comes.
    fn receive(&mut self, mut from: &Stream) -> io::Result<Message> {
        let head = self.wait_for_head(from)?;
        let number = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes"));
        let size = number(0);
        if !(9..=LONGEST).contains(&size) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a message of no such length"));
        }
        let size = (size - 9) as usize;
        let mut body = self.take(size).to_vec();
        while body.len() < size {
            let there = body.len();
            body.resize(there + (size - there).min(1 << 24), 0);
            from.read_exact(&mut body[there..])?;
        }
        Ok(Message { question: number(8), kind: head[16], body })
    }
}

// ---- calling ------------------------------------------------------------------------------------------------------

// A stream by which a member is called. Whoever waits for an answer reads, if nobody does yet, also those of others: so
// one call alone costs no change of threads.
struct Caller {
    stream: Stream,
    inbox: Mutex<Inbox>, // whoever reads
    questions: AtomicU64,
    sending: Mutex<()>,
    state: Mutex<Answers>,
    changed: Condvar,
    over: AtomicBool,
}

#[derive(Default)]
struct Answers {
    there: BTreeMap<u64, Message>,
    reading: bool,
    waiting: usize,     // for `changed`: to tell nobody is a system call, too
    why: Option<Error>, // nothing comes any more
}

impl Caller {
    fn new(stream: Stream) -> Caller {
        Caller {
            stream,
            inbox: Mutex::default(),
            questions: AtomicU64::new(0),
            sending: Mutex::new(()),
            state: Mutex::default(),
            changed: Condvar::new(),
            over: AtomicBool::new(false),
        }
    }

    fn ask(&self, kind: u8, name: &str, put: impl FnOnce(&mut Vec<u8>)) -> Result<Vec<u8>, CallError> {
        let question = self.questions.fetch_add(1, Ordering::Relaxed);
        let mut bytes = frame(question, kind);
        bytes.extend_from_slice(&(name.len() as u16).to_le_bytes());
        bytes.extend_from_slice(name.as_bytes());
        put(&mut bytes);
        let sent = {
            let _one = self.sending.lock().unwrap();
            send(&self.stream, bytes)
        };
        if let Err(why) = sent {
            return Err(CallError::Lost(self.end(&why)));
        }
        let answer = self.wait_for(question)?;
        match answer.kind {
            VALUE => Ok(answer.body),
            _ => Err(CallError::Failed(String::from_utf8_lossy(&answer.body).into_owned())),
        }
    }

    fn wait_for(&self, question: u64) -> Result<Message, CallError> {
        let mut state = self.state.lock().unwrap();
        loop {
            if let Some(answer) = state.there.remove(&question) {
                return Ok(answer);
            }
            if let Some(why) = &state.why {
                return Err(CallError::Lost(why.clone()));
            }
            if state.reading {
                state.waiting += 1;
                state = self.changed.wait(state).unwrap();
                state.waiting -= 1;
                continue;
            }
            state.reading = true;
            drop(state);
            let came = self.inbox.lock().unwrap().receive(&self.stream);
            let ended = came.as_ref().err().map(|why| self.end(why));
            state = self.state.lock().unwrap();
            state.reading = false;
            if state.waiting > 0 {
                self.changed.notify_all(); // one of them has its answer, or reads
            }
            match came {
                Ok(message) if message.question == question => return Ok(message),
                Ok(message) => drop(state.there.insert(message.question, message)),
                Err(_) => state.why = state.why.take().or(ended),
            }
        }
    }

    fn end(&self, why: &io::Error) -> Error {
        self.over.store(true, Ordering::Release);
        match why.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
            Some(error) => error.clone(),
            None => Error::new(Status::PEER, "the worker closed the connection"),
        }
    }
}

// ---- being called -------------------------------------------------------------------------------------------------

struct Server {
    stream: Stream,
    inbox: Mutex<Inbox>, // whose turn it is
    replies: Mutex<()>,
}

// Whose turn it is to read the next question of a connection.
struct Turn {
    server: Arc<Server>,
    here: Arc<MemberHere>,
    handed_on: Cell<bool>,
}

impl Turn {
    fn hand_on(&self) {
        if !self.handed_on.replace(true) {
            let (server, here) = (self.server.clone(), self.here.clone());
            thread::spawn(move || server.serve(here));
        }
    }
}

thread_local! {
    static SERVING: RefCell<Option<Turn>> = const { RefCell::new(None) };
}

impl Server {
    // As a thread of its own, until another one has its turn.
    fn serve(self: Arc<Self>, here: Arc<MemberHere>) {
        let turn = Turn { server: self.clone(), here: here.clone(), handed_on: Cell::new(false) };
        SERVING.with(|serving| *serving.borrow_mut() = Some(turn));
        let mut at = Here { member: here, interrupts: 0 };
        loop {
            let came = self.inbox.lock().unwrap().receive(&self.stream);
            let message = match came {
                Ok(message) => message,
                Err(_) => break,
            };
            at.interrupts = at.member.interrupts.load(Ordering::Relaxed);
            let answer = self.run(&at, &message);
            let handed_on = SERVING.with(|serving| serving.borrow().as_ref().map_or(true, |turn| turn.handed_on.get()));
            let sent = {
                let _one = self.replies.lock().unwrap();
                send(&self.stream, answer)
            };
            if sent.is_err() || handed_on {
                return;
            }
        }
        let _ = self.stream.close(Some(Duration::ZERO));
    }

    fn run(&self, at: &Here, message: &Message) -> Vec<u8> {
        let mut answer = frame(message.question, VALUE);
        let done = catch_unwind(AssertUnwindSafe(|| self.run_named(at, message, &mut answer)))
            .unwrap_or_else(|why| Err(format!("the function panicked: {}", panic_text(&*why))));
        if let Err(sentence) = done {
            answer = frame(message.question, SENTENCE);
            answer.extend_from_slice(sentence.as_bytes());
        }
        answer
    }

    fn run_named(&self, here: &Here, message: &Message, result: &mut Vec<u8>) -> Outcome<()> {
        let body = &message.body;
        let size = body.get(..2).map(|two| u16::from_le_bytes([two[0], two[1]]) as usize).ok_or("no name")?;
        let name = body.get(2..2 + size).and_then(|name| std::str::from_utf8(name).ok()).ok_or("no name")?;
        let function = here.member.functions.all.get(name);
        let function = function.ok_or_else(|| format!("there is no function \"{}\" here", name))?;
        let argument = &body[2 + size..];
        if message.kind != MAP {
            return function(here, argument, result);
        }
        // Entries, each with its length.
        let mut rest = argument;
        while !rest.is_empty() {
            let (entry, others) = value::take_sized(rest).ok_or("a list that is cut off")?;
            value::put_sized(result, |to| function(here, entry, to))?;
            rest = others;
        }
        Ok(())
    }
}

fn panic_text(why: &(dyn std::any::Any + Send)) -> &str {
    let text = why.downcast_ref::<&str>().copied();
    text.or_else(|| why.downcast_ref::<String>().map(String::as_str)).unwrap_or("nobody knows why")
}

// ---- the master ---------------------------------------------------------------------------------------------------

/// How to open a team.
#[derive(Clone, Default)]
pub struct Options {
    /// The cluster.
    pub cluster: ClusterConfig,
    /// What [`Team::add`] launches; by default this program on this host, with the same arguments.
    pub launch: Option<Launch>,
}

/// A master and its workers. Any number of threads may use it. To drop it closes it.
pub struct Team {
    here: Arc<MemberHere>,
    launch: Launch,
    hearing: Mutex<Option<thread::JoinHandle<()>>>,
}

impl Team {
    /// Opens a cluster with this member as master, which serves calls of its workers, too.
    pub fn open(context: &Context, functions: Functions, options: &Options) -> Result<Team, Error> {
        let cluster = Cluster::open(context, &options.cluster)?;
        let launch = match &options.launch {
            Some(launch) => launch.clone(),
            None => {
                let program = std::env::current_exe().map_err(|why| Error::new(Status::SYSTEM, why.to_string()))?;
                let argv = std::iter::once(program.into_os_string()).chain(std::env::args_os().skip(1));
                Launch::local(1, argv)
            }
        };
        let here = MemberHere::new(cluster, functions);
        let hearing = {
            let here = here.clone();
            thread::spawn(move || here.hear())
        };
        Ok(Team { here, launch, hearing: Mutex::new(Some(hearing)) })
    }

    /// Adds workers; the number of the first.
    pub fn add(&self, count: u32) -> Result<u32, Error> {
        self.here.cluster.add(&Launch { count, ..self.launch.clone() })
    }

    /// Waits until so many workers are in. An error says why one did not come.
    pub fn wait_for(&self, count: usize, timeout: Option<Duration>) -> Result<(), Error> {
        let until = timeout.and_then(|time| Instant::now().checked_add(time));
        let mut workers = self.here.workers.lock().unwrap();
        while workers.len() < count {
            if let Some((member, why)) = self.here.failed.lock().unwrap().take() {
                return Err(Error::new(why.status(), format!("worker {}: {}", member, why.message())));
            }
            if self.here.over.load(Ordering::Acquire) {
                return Err(Error::new(Status::CLOSED, "the cluster is closed"));
            }
            let left = until.map(|at| at.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Err(Error::new(Status::TIMEOUT, format!("{} of {} are there", workers.len(), count)));
            }
            let wait = left.unwrap_or(Duration::from_secs(3600));
            workers = self.here.changed.wait_timeout(workers, wait).unwrap().0;
        }
        Ok(())
    }

    /// The workers that are in.
    pub fn workers(&self) -> Vec<u32> {
        self.here.workers.lock().unwrap().iter().copied().collect()
    }

    /// The cluster itself. Its events are taken by the team.
    pub fn cluster(&self) -> &Cluster {
        &self.here.cluster
    }

    /// Calls a function in a worker, and waits for what it gives.
    pub fn call<A: Value, R: Value>(&self, member: u32, name: &str, argument: &A) -> Result<R, CallError> {
        self.here.call(member, name, argument)
    }

    /// The function of each entry of a list, in any worker. What a worker had that died is given to another; who joins
    /// meanwhile works, too. `batch` entries travel together, 0: there are sixteen batches for each worker.
    pub fn map<A: Value + Sync, R: Value + Send>(
        &self,
        name: &str,
        list: &[A],
        batch: usize,
    ) -> Result<Vec<R>, CallError> {
        let members = self.workers();
        if members.is_empty() {
            return Err(CallError::Lost(Error::new(Status::NOT_FOUND, "no worker is there")));
        }
        let batch = if batch > 0 { batch } else { (list.len() / (16 * members.len())).max(1) };
        let job = MapJob {
            team: self,
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

    /// Removes all workers, and waits until they are gone.
    pub fn close(&self) -> Result<(), Error> {
        for there in self.here.callers.lock().unwrap().values() {
            let _ = there.stream.finish();
        }
        let closed = self.here.cluster.close(None);
        if let Some(hearing) = self.hearing.lock().unwrap().take() {
            let _ = hearing.join();
        }
        self.here.callers.lock().unwrap().clear();
        closed
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        let _ = self.close();
    }
}

struct MapJob<'a, A, R> {
    team: &'a Team,
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
        let here = &self.job.team.here;
        let _order = here.workers.lock();
        self.job.working.fetch_sub(1, Ordering::AcqRel);
        here.changed.notify_all();
    }
}

impl<A: Value + Sync, R: Value + Send> MapJob<'_, A, R> {
    fn run(&self) {
        thread::scope(|scope| {
            let mut started = BTreeSet::new();
            let here = &self.team.here;
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
            match self.team.here.ask(member, MAP, self.name, put) {
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
