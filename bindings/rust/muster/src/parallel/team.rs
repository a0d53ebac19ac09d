// SPDX-License-Identifier: MIT
//! A master and its workers.
use super::map::map;
use super::member::MemberHere;
use super::{CallError, Functions, Value};
use crate::error::{Error, Status};
use crate::{Cluster, ClusterConfig, Context, Launch};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// How to open a team.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The cluster.
    pub cluster: ClusterConfig,
    /// The workers that [`Team::add`] launches; by default this program on this host, with the same arguments.
    pub launch: Option<Launch>,
    /// How often [`Team::map`] gives an entry of a list to another worker after one has ended while it had the entry.
    /// None: 2 times, so that an entry that ends its worker ends at most 3.
    pub map_retries: Option<u32>,
}

/// A master and its workers. Any number of threads may use it. Dropping it closes it.
pub struct Team {
    here: Arc<MemberHere>,
    launch: Launch,
    map_retries: u32,
    hearing: Mutex<Option<thread::JoinHandle<()>>>,
}

impl Team {
    /// Opens a cluster with this member as its master, which also executes calls of its workers.
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
            thread::spawn(move || here.handle_events())
        };
        let map_retries = options.map_retries.unwrap_or(2);
        Ok(Team { here, launch, map_retries, hearing: Mutex::new(Some(hearing)) })
    }

    /// Adds workers; returns the number of the first.
    pub fn add(&self, count: u32) -> Result<u32, Error> {
        self.here.cluster.add(&Launch { count, ..self.launch.clone() })
    }

    /// Waits until this number of workers have joined. An error has the reason why a worker could not join.
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

    /// The numbers of the workers that have joined.
    pub fn workers(&self) -> Vec<u32> {
        self.here.workers.lock().unwrap().iter().copied().collect()
    }

    /// The cluster. The team takes its events.
    pub fn cluster(&self) -> &Cluster {
        &self.here.cluster
    }

    /// Calls a function in a worker, and waits for its result.
    pub fn call<A: Value, R: Value>(&self, member: u32, name: &str, argument: &A) -> Result<R, CallError> {
        self.here.call(member, name, argument)
    }

    /// Applies a function to each entry of a list, in any worker; workers that join meanwhile take part. `batch`:
    /// number of entries that are sent together; 0: sixteen batches for each worker.
    ///
    /// Entries that a worker had when it ended are sent to other workers, each alone, up to [`Options::map_retries`]
    /// times. After that the map ends with [`CallError::Lost`] and [`Status::LIMIT`], whose text names the entry by its
    /// place in the list, from 0. Lost with [`Status::PEER`]: no worker is left.
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
        map(&self.here, name, list, batch, self.map_retries)
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

impl std::fmt::Debug for Team {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Team").finish_non_exhaustive()
    }
}
