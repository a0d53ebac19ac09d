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
//! Each connection is served by one thread, which executes the calls in order; while a function waits for a call that
//! it makes itself, another thread continues to serve the connection. A function checks for an interrupt by
//! [`Here::interrupted`].
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

/// Why a call has failed.
#[derive(Clone, Debug)]
pub enum CallError {
    /// The function has returned an error or panicked; or its argument or result has another type than expected.
    Failed(String),
    /// The worker cannot be reached, or has ended.
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

/// The result of a function: a value, or the text of an error.
pub type Outcome<R> = Result<R, String>;

// Appends its result.
type Function = Arc<dyn Fn(&Here, &[u8], &mut Vec<u8>) -> Outcome<()> + Send + Sync>;

type OnBroadcast = Arc<dyn Fn(&Here, u32, &[u8], Broadcast) + Send + Sync>;

/// The functions that other members can call, by name.
#[derive(Clone, Default)]
pub struct Functions {
    all: BTreeMap<String, Function>,
    on_broadcast: Option<OnBroadcast>,
}

impl Functions {
    /// No functions.
    pub fn new() -> Functions {
        Functions::default()
    }

    /// Adds a function; it replaces an earlier one of the same name.
    pub fn add<A: Value, R: Value>(
        &mut self,
        name: &str,
        function: impl Fn(&Here, A) -> Outcome<R> + Send + Sync + 'static,
    ) -> &mut Self {
        let called: Function = Arc::new(move |here, bytes, result| {
            let argument = A::from_bytes(bytes).ok_or("the argument has another type than the function takes")?;
            function(here, argument)?.put(result);
            Ok(())
        });
        self.all.insert(name.to_string(), called);
        self
    }

    /// Sets the function that is called for each broadcast, with the number of the sender, the label and the bytes.
    /// Other events wait while it runs.
    pub fn on_broadcast(
        &mut self,
        function: impl Fn(&Here, u32, &[u8], Broadcast) + Send + Sync + 'static,
    ) -> &mut Self {
        self.on_broadcast = Some(Arc::new(function));
        self
    }
}

/// The member in which a function is executed: the function calls others by it, and checks for an interrupt. Threads
/// that the function starts may use it, too.
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
    /// Calls a function in another member. Meanwhile another thread serves the connection over which this function was
    /// called, so members may call each other in circles, also from threads that the function has started. A function
    /// of a master uses this, or [`Team::call`] on its own thread.
    pub fn call<A: Value, R: Value>(&self, member: u32, name: &str, argument: &A) -> Result<R, CallError> {
        if let Some(turn) = &self.turn {
            turn.hand_on();
        }
        self.member.call(member, name, argument)
    }
    /// Sends bytes to many members, as [`Cluster::broadcast`]; they call the function that [`Functions::on_broadcast`]
    /// has set.
    pub fn broadcast(
        &self,
        members: Option<&[u32]>,
        label: &[u8],
        bytes: &[u8],
        timeout: Option<Duration>,
    ) -> Result<(), (Error, Vec<Status>)> {
        self.member.cluster.broadcast(members, label, bytes, timeout)
    }
    /// Was this worker interrupted since the function began?
    pub fn interrupted(&self) -> bool {
        self.member.interrupts.load(Ordering::Relaxed) != self.interrupts
    }
}

/// Was this process launched as a worker?
pub fn is_worker() -> bool {
    ["MUSTER_WORKER_FD", "MUSTER_WORKER_TICKET"]
        .iter()
        .any(|name| std::env::var_os(name).map_or(false, |v| !v.is_empty()))
}

/// Serves calls until the master removes this worker.
pub fn work(functions: Functions) -> Result<(), Box<dyn std::error::Error>> {
    let context = Context::of_worker()?;
    let config = WorkerConfig { exit_with_master: true, ..WorkerConfig::default() };
    let cluster = Cluster::join(&context, &config, Some(CONNECT))?;
    let here = MemberHere::new(cluster, functions);
    here.handle_events();
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
