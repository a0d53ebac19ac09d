// SPDX-License-Identifier: MIT
use crate::error::{check, check_status, text_of, Error, Result};
use crate::process::{c_string, Exit, Words};
use crate::stream::text_from;
use crate::{timeout_ns, Context, Queue, RendezvousConfig};
use muster_sys as sys;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr;
use std::time::Duration;

/// Outputs of workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outputs {
    /// Descriptor 1.
    pub stdout: bool,
    /// Descriptor 2.
    pub stderr: bool,
}

impl Outputs {
    /// Neither.
    pub const NONE: Outputs = Outputs { stdout: false, stderr: false };
    /// Both.
    pub const BOTH: Outputs = Outputs { stdout: true, stderr: true };
    fn bits(self) -> u32 {
        u32::from(self.stdout) * sys::MUSTER_AGENT_STDOUT | u32::from(self.stderr) * sys::MUSTER_AGENT_STDERR
    }
}

/// What an agent runs; what is None or 0 has the default that `agent.h` names.
#[derive(Debug, Clone, Default)]
pub struct AgentConfig {
    /// Program and arguments; a name without `/` is looked up in PATH.
    pub argv: Vec<OsString>,
    /// The environment, to which the agent adds its variables; None: this process's own.
    pub environment: Option<Vec<(OsString, OsString)>>,
    /// Working directory of the workers; None: this process's own.
    pub directory: Option<PathBuf>,
    /// Workers of this node; 0: 1.
    pub workers: u32,
    /// How often a group is started again after a failure.
    pub max_restarts: u32,
    /// Time between the signal that stops workers and SIGKILL.
    pub grace: Option<Duration>,
    /// Name of the job.
    pub run_id: Option<String>,
    /// Role of the workers.
    pub role: Option<String>,
    /// Folder for their files.
    pub log_dir: Option<PathBuf>,
    /// Outputs that are written to files there.
    pub logged: Outputs,
    /// Outputs whose lines are shown with the name of the worker before them.
    pub shown: Outputs,
    /// How the agents of several nodes meet; its `queue` is not used. None: this is the only node.
    pub rendezvous: Option<RendezvousConfig>,
    /// The longest time until enough nodes have joined.
    pub join_timeout: Option<Duration>,
    /// The longest time that this node waits for the others when it is done.
    pub exit_timeout: Option<Duration>,
    /// Workers outlive an agent that is killed.
    pub no_guard: bool,
}

/// What an agent does at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// It waits for other nodes.
    Joining,
    /// Workers are about to be started.
    Starting,
    /// Workers run.
    Running,
    /// Workers are being stopped, or have all ended.
    Stopping,
    /// The workers of this node have succeeded, those of others not yet.
    Done,
    /// It is over.
    Ended,
}

/// The state of an agent.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AgentState {
    /// What it does.
    pub phase: Phase,
    /// Workers of this node.
    pub workers: u32,
    /// Those that run.
    pub running: u32,
    /// Restarts after failures so far.
    pub restarts: u32,
    /// Rank of this node among the nodes.
    pub node_rank: u32,
    /// Number of nodes.
    pub nodes: u32,
    /// Rank of the first worker of this node.
    pub first_rank: u32,
    /// Workers of all nodes.
    pub world: u32,
    /// Number of the round; 0: there was none.
    pub round: u64,
}

/// A worker of an agent, as of its last start.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AgentWorker {
    /// Its number on this node.
    pub local_rank: u32,
    /// Its rank in the world.
    pub rank: u32,
    /// Its process.
    pub id: i32,
    /// How it has ended; None: it runs, or was not started.
    pub exit: Option<Exit>,
    /// The message of its error file.
    pub message: String,
}

/// A step of an agent, [`Event::Agent`](crate::Event::Agent).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentStep {
    /// The workers of this round were started.
    Started(u64),
    /// They are started again, the so many-th time after a failure, or since the nodes have changed: why.
    Restarting(u64, String),
    /// Something else that `agent.h` names: its number and value.
    Other(u32, u64),
}

impl AgentStep {
    pub(crate) fn of(entry: &sys::muster_completion, why: Error) -> AgentStep {
        match entry.events {
            sys::MUSTER_AGENT_STARTED => AgentStep::Started(entry.bytes),
            sys::MUSTER_AGENT_RESTARTING => AgentStep::Restarting(entry.bytes, why.message().into()),
            other => AgentStep::Other(other, entry.bytes),
        }
    }
}

/// Starts the workers of this node, watches them, and starts them again after failures, as `muster run` does. An agent
/// that is dropped stops them.
///
/// ```no_run
/// # use muster::{Agent, AgentConfig, Context, Queue};
/// # let context = Context::new()?;
/// let queue = Queue::new(&context)?;
/// let config = AgentConfig { argv: vec!["./train".into()], workers: 4, max_restarts: 2, ..AgentConfig::default() };
/// Agent::start(&context, &config, &queue, 0)?.wait(None)?; // an error has the rank of the worker that failed first
/// # Ok::<(), muster::Error>(())
/// ```
#[derive(Debug)]
pub struct Agent {
    raw: *mut sys::muster_agent,
    _queue: Queue, // in which it reports
}

// The functions of an agent may be called by any thread (agent.h).
unsafe impl Send for Agent {}
unsafe impl Sync for Agent {}

impl Drop for Agent {
    fn drop(&mut self) {
        unsafe { sys::muster_agent_release(self.raw) }
    }
}

impl Agent {
    /// Starts it. Its steps are [`Event::Agent`](crate::Event::Agent) in the queue, and its end is
    /// [`Event::AgentEnded`](crate::Event::AgentEnded).
    pub fn start(context: &Context, config: &AgentConfig, queue: &Queue, tag: u64) -> Result<Agent> {
        let argv = Words::new(config.argv.iter().map(|word| word.as_bytes().to_vec()))?;
        let environment = match &config.environment {
            None => None,
            Some(all) => Some(Words::of_variables(all)?),
        };
        let path = |path: &Option<PathBuf>| match path {
            None => Ok(None),
            Some(path) => c_string(path.as_os_str().as_bytes().to_vec()).map(Some),
        };
        let text = |text: &Option<String>| match text {
            None => Ok(None),
            Some(text) => c_string(text.clone().into_bytes()).map(Some),
        };
        let (directory, log_dir) = (path(&config.directory)?, path(&config.log_dir)?);
        let (run_id, role) = (text(&config.run_id)?, text(&config.role)?);
        let rendezvous = config.rendezvous.as_ref().map(RendezvousConfig::as_raw);
        let mut given = sys::muster_agent_config::sized();
        let pointer = |text: &Option<std::ffi::CString>| text.as_ref().map_or(ptr::null(), |text| text.as_ptr());
        given.flags = if config.no_guard { sys::MUSTER_AGENT_NO_GUARD } else { 0 };
        given.argv = argv.pointer();
        given.envp = environment.as_ref().map_or(ptr::null(), Words::pointer);
        given.directory = pointer(&directory);
        given.worker_count = config.workers;
        given.max_restarts = config.max_restarts;
        given.grace_ns = config.grace.map_or(0, |time| timeout_ns(Some(time)));
        given.run_id = pointer(&run_id);
        given.role = pointer(&role);
        given.log_dir = pointer(&log_dir);
        given.log_outputs = config.logged.bits();
        given.console_outputs = config.shown.bits();
        given.rendezvous = rendezvous.as_ref().map_or(ptr::null(), |config| config as *const _);
        given.join_timeout_ns = config.join_timeout.map_or(0, |time| timeout_ns(Some(time)));
        given.exit_timeout_ns = config.exit_timeout.map_or(0, |time| timeout_ns(Some(time)));
        let mut raw = ptr::null_mut();
        check(|detail| unsafe {
            sys::muster_agent_start(context.as_raw(), &given, queue.as_raw(), tag, &mut raw, detail)
        })?;
        Ok(Agent { raw, _queue: queue.clone() })
    }

    /// Waits for its end. An error has the rank of the worker that failed first, if one did.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<()> {
        check(|detail| unsafe { sys::muster_agent_wait(self.raw, timeout_ns(timeout), detail) })
    }

    /// Sends a signal to the process groups of its workers.
    pub fn signal(&self, signal: i32) -> Result<()> {
        check_status(unsafe { sys::muster_agent_signal(self.raw, signal) })
    }

    /// Stops its workers, and ends. `signal` 0: SIGTERM; `grace` None: as configured.
    pub fn stop(&self, signal: i32, grace: Option<Duration>) -> Result<()> {
        check_status(unsafe { sys::muster_agent_stop(self.raw, signal, timeout_ns(grace)) })
    }

    /// Its state.
    pub fn state(&self) -> Result<AgentState> {
        let mut found = unsafe { std::mem::zeroed::<sys::muster_agent_state>() };
        check_status(unsafe { sys::muster_agent_get_state(self.raw, &mut found) })?;
        Ok(AgentState {
            phase: match found.phase {
                sys::MUSTER_AGENT_JOINING => Phase::Joining,
                sys::MUSTER_AGENT_STARTING => Phase::Starting,
                sys::MUSTER_AGENT_RUNNING => Phase::Running,
                sys::MUSTER_AGENT_STOPPING => Phase::Stopping,
                sys::MUSTER_AGENT_DONE => Phase::Done,
                _ => Phase::Ended,
            },
            workers: found.worker_count,
            running: found.running,
            restarts: found.restarts,
            node_rank: found.group_rank,
            nodes: found.group_world_size,
            first_rank: found.first_rank,
            world: found.world_size,
            round: found.round,
        })
    }

    /// A worker of this node.
    pub fn worker(&self, local_rank: u32) -> Result<AgentWorker> {
        self.worker_by(|found| unsafe { sys::muster_agent_get_worker(self.raw, local_rank, found) })
    }

    /// The worker of this node that failed first. `NOT_FOUND`: none has.
    pub fn first_failure(&self) -> Result<AgentWorker> {
        self.worker_by(|found| unsafe { sys::muster_agent_first_failure(self.raw, found) })
    }

    fn worker_by(&self, fill: impl FnOnce(&mut sys::muster_agent_worker) -> i32) -> Result<AgentWorker> {
        let mut found = unsafe { std::mem::zeroed::<sys::muster_agent_worker>() };
        check_status(fill(&mut found))?;
        let has_ended = found.state != sys::MUSTER_WORKER_NONE && found.state != sys::MUSTER_WORKER_RUNNING;
        Ok(AgentWorker {
            local_rank: found.local_rank,
            rank: found.rank,
            id: found.pid,
            exit: if has_ended { Some(Exit::of(found.exit)) } else { None },
            message: text_of(&found.message),
        })
    }

    /// What the error file of that worker says; empty: it wrote none.
    pub fn failure_text(&self) -> Result<String> {
        text_from(|to, room, size| unsafe { sys::muster_agent_failure_text(self.raw, to, room, size) })
    }

    /// Waits until the lines of workers that have ended were shown.
    pub fn flush(&self, timeout: Option<Duration>) -> Result<()> {
        check_status(unsafe { sys::muster_agent_flush(self.raw, timeout_ns(timeout)) })
    }
}
