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
use crate::{Broadcast, Cluster, Context, WorkerConfig};
use member::MemberHere;
use server::Turn;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

mod caller; // calling
mod map; // a list, in all workers
mod member; // what a master and a worker have in common
mod message; // what travels
mod server; // being called
mod team; // the master
mod value; // arguments and results
pub use team::{Options, Team};
pub use value::{Bytes, Value};

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

/// Where a function runs: by which it calls others, and hears of an interrupt. Threads that the function starts may use
/// it, too.
pub struct Here {
    member: Arc<MemberHere>,
    interrupts: u64, // when it began
    turn: Option<Arc<Turn>>,
}

impl Here {
    /// The number of this member.
    pub fn number(&self) -> u32 {
        self.member.cluster.number()
    }
    /// Calls a function in another member. Meanwhile another thread serves the connection by which this function was
    /// called: members may call each other in circles, also from threads that the function has started. A function of a
    /// master does so by this, or on its own thread by [`Team::call`].
    pub fn call<A: Value, R: Value>(&self, member: u32, name: &str, argument: &A) -> Result<R, CallError> {
        if let Some(turn) = &self.turn {
            turn.hand_on();
        }
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

impl std::fmt::Debug for Functions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Functions").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Here {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Here").finish_non_exhaustive()
    }
}
