// SPDX-License-Identifier: MIT
use crate::error::{check, check_status, text_of, Error, Result, Status};
use crate::process::{c_string, Words};
use crate::stream::Stream;
use crate::{timeout_ns, Context, Queue, Store};
use muster_sys as sys;
use std::ffi::{CString, OsString};
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr;
use std::time::Duration;

/// The number of the member that has opened the cluster.
pub const MASTER: u32 = sys::MUSTER_CLUSTER_MASTER;

/// The pairs of members between which streams may be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// Any two members.
    AllToAll,
    /// The master and each worker.
    MasterWorker,
    /// Each member and its parent; the parent of n is (n - 1) / 2.
    Tree,
    /// The master and each worker, and two workers of which one names the other in [`Launch::ident`].
    Custom,
}

/// How to open a cluster.
#[derive(Debug, Clone)]
pub struct ClusterConfig {
    /// The pairs of members between which streams may be opened.
    pub topology: Topology,
    /// Address at which the master listens. None: `tcp://127.0.0.1:0`.
    pub listen: Option<String>,
    /// Maximum time from the launch of a worker until it has joined. None: 60 s.
    pub join_timeout: Option<Duration>,
    /// Time in which a worker can leave before it is killed. None: 10 s.
    pub leave_timeout: Option<Duration>,
    /// Queue that receives [`Event::Ready`](crate::Event::Ready) with this tag when an event is available.
    pub queue: Option<(Queue, u64)>,
}

impl Default for ClusterConfig {
    fn default() -> Self {
        ClusterConfig {
            topology: Topology::AllToAll,
            listen: None,
            join_timeout: None,
            leave_timeout: None,
            queue: None,
        }
    }
}

/// What to launch.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The manager that starts the workers: `local`, `ssh`, `slurm`, `mpi`, `command`, `elastic`, or one of the
    /// program.
    pub manager: String,
    /// Number of workers.
    pub count: u32,
    /// Program and arguments.
    pub argv: Vec<OsString>,
    /// Variables that are added to the environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Their working directory.
    pub directory: Option<PathBuf>,
    /// Address at which a worker listens; `{}` in it is replaced by its number. None: `tcp://127.0.0.1:0`.
    pub listen: Option<String>,
    /// [`Topology::Custom`]: the name of these workers, and the names of workers with which they may have streams.
    pub ident: Option<(String, Vec<String>)>,
    /// Options for the manager, in its syntax.
    pub options: Option<String>,
    /// The master dials the workers.
    pub master_dials: bool,
    /// The workers do not listen.
    pub no_listen: bool,
}

impl Launch {
    /// This number of workers on this host.
    pub fn local<W: Into<OsString>>(count: u32, argv: impl IntoIterator<Item = W>) -> Launch {
        Launch {
            manager: "local".into(),
            count,
            argv: argv.into_iter().map(Into::into).collect(),
            environment: Vec::new(),
            directory: None,
            listen: None,
            ident: None,
            options: None,
            master_dials: false,
            no_listen: false,
        }
    }
}

/// An event of a cluster, and the member that it concerns.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClusterEvent {
    /// The worker was started.
    Launched(u32),
    /// The worker is connected to the master, and both sides have proved the secret.
    Connected(u32),
    /// The worker has joined; on a worker after [`Cluster::begin_join`]: this one.
    Joined(u32),
    /// The worker could not join; on a worker after [`Cluster::begin_join`]: this one, and its cluster has ended.
    Failed(u32, Error),
    /// The worker has ended unexpectedly.
    Dead(u32, Error),
    /// The worker has left, or was removed.
    Removed(u32),
    /// The member has opened a stream with this label to this member.
    Stream(u32, Vec<u8>, Stream),
    /// The member has broadcast these bytes, with this label.
    Broadcast(u32, Vec<u8>, Broadcast),
    /// The master interrupts this worker.
    Interrupt,
    /// The master requests this worker to leave: it calls [`Cluster::close`].
    Leave,
    /// The connection to the master has ended, and the cluster with it.
    MasterGone(Error),
}

/// Bytes that a member has broadcast; the members of one host share the memory. They count as waiting until this is
/// dropped.
#[derive(Debug)]
pub struct Broadcast {
    raw: *mut sys::muster_broadcast,
    data: *const u8,
    size: usize,
}

// The memory does not change, and any thread may release it (cluster.h).
unsafe impl Send for Broadcast {}
unsafe impl Sync for Broadcast {}

impl Deref for Broadcast {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        if self.size == 0 {
            return &[];
        }
        unsafe { std::slice::from_raw_parts(self.data, self.size) }
    }
}

impl Drop for Broadcast {
    fn drop(&mut self) {
        unsafe { sys::muster_broadcast_release(self.raw) }
    }
}

/// The state of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberState {
    /// The worker is being started.
    Launching,
    /// The worker was started.
    Launched,
    /// The worker is connected to the master.
    Connected,
    /// The worker has joined.
    Joined,
    /// The worker is being removed.
    Leaving,
    /// The worker has failed to join, has died, has left or was removed.
    Gone,
}

/// Information about a member.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its state.
    pub state: MemberState,
    /// Its process id on its host; 0: unknown.
    pub pid: i64,
    /// The number that a manager of the program has given for it.
    pub data: u64,
    /// Name of its host.
    pub host: String,
    /// Address at which it listens.
    pub address: String,
}

/// How to join a cluster as a worker.
#[derive(Debug, Clone, Default)]
pub struct WorkerConfig {
    /// When the connection to the master has ended, the library sends SIGTERM and then SIGKILL to this process, also
    /// while it computes.
    pub exit_with_master: bool,
    /// An interrupt raises SIGINT in this process.
    pub raise_interrupt: bool,
    /// Queue that receives [`Event::Ready`](crate::Event::Ready) with this tag when an event is available.
    pub queue: Option<(Queue, u64)>,
    /// For a worker that was not launched by the master: the address of the master.
    pub master: Option<String>,
    /// For a worker that was not launched by the master: a store that has the address of the master, and the name of
    /// the cluster in it.
    pub store: Option<(String, String)>,
    /// For a worker that was not launched by the master: address at which it listens.
    pub listen: Option<String>,
}

/// One member's view of a cluster. Dropping it closes it without waiting.
#[derive(Debug)]
pub struct Cluster {
    raw: *mut sys::muster_cluster,
    _queue: Option<Queue>, // in which it tells
}

// The functions of a cluster may be called by any thread at any time (cluster.h).
unsafe impl Send for Cluster {}
unsafe impl Sync for Cluster {}

impl Drop for Cluster {
    fn drop(&mut self) {
        unsafe { sys::muster_cluster_release(self.raw) }
    }
}

impl Cluster {
    /// Opens a cluster; this member is its master.
    pub fn open(context: &Context, config: &ClusterConfig) -> Result<Cluster> {
        let mut given = sys::muster_cluster_config::sized();
        given.topology = match config.topology {
            Topology::AllToAll => sys::MUSTER_CLUSTER_ALL_TO_ALL,
            Topology::MasterWorker => sys::MUSTER_CLUSTER_MASTER_WORKER,
            Topology::Tree => sys::MUSTER_CLUSTER_TREE,
            Topology::Custom => sys::MUSTER_CLUSTER_CUSTOM,
        };
        if let Some(listen) = &config.listen {
            given.listen = listen.as_ptr().cast();
            given.listen_bytes = listen.len() as u64;
        }
        given.join_timeout_ns = config.join_timeout.map_or(0, |time| timeout_ns(Some(time)));
        given.leave_timeout_ns = config.leave_timeout.map_or(0, |time| timeout_ns(Some(time)));
        if let Some((queue, tag)) = &config.queue {
            given.queue = queue.as_raw();
            given.tag = *tag;
        }
        let mut raw = ptr::null_mut();
        check(|detail| unsafe { sys::muster_cluster_open(context.as_raw(), &given, &mut raw, detail) })?;
        Ok(Cluster { raw, _queue: config.queue.as_ref().map(|(queue, _)| queue.clone()) })
    }

    /// Joins a cluster as a worker; returns when this member knows its number.
    pub fn join(context: &Context, config: &WorkerConfig, timeout: Option<Duration>) -> Result<Cluster> {
        Self::worker(config, |given, raw, detail| unsafe {
            sys::muster_worker_start(context.as_raw(), given, timeout_ns(timeout), raw, detail)
        })
    }

    /// Begins to join a cluster as a worker, for a program whose only thread serves the transport that is used for it.
    /// The first event is [`ClusterEvent::Joined`] with the number of this member, or [`ClusterEvent::Failed`].
    pub fn begin_join(context: &Context, config: &WorkerConfig, timeout: Option<Duration>) -> Result<Cluster> {
        Self::worker(config, |given, raw, detail| unsafe {
            sys::muster_worker_start_begin(context.as_raw(), given, timeout_ns(timeout), raw, detail)
        })
    }

    fn worker(
        config: &WorkerConfig,
        start: impl FnOnce(
            *const sys::muster_worker_config,
            *mut *mut sys::muster_cluster,
            *mut sys::muster_error,
        ) -> sys::muster_status,
    ) -> Result<Cluster> {
        let text = |text: &Option<String>| text.clone().map(|text| c_string(text.into_bytes())).transpose();
        let (store, name) = config.store.clone().unzip_both();
        let texts = [text(&config.master)?, text(&store)?, text(&name)?, text(&config.listen)?];
        let pointer = |at: usize| texts[at].as_ref().map_or(ptr::null(), |text: &CString| text.as_ptr());
        let mut given = sys::muster_worker_config::sized();
        given.flags = if config.exit_with_master { sys::MUSTER_WORKER_EXIT_WITH_MASTER } else { 0 }
            | if config.raise_interrupt { sys::MUSTER_WORKER_RAISE_INTERRUPT } else { 0 };
        if let Some((queue, tag)) = &config.queue {
            given.queue = queue.as_raw();
            given.tag = *tag;
        }
        given.master = pointer(0);
        given.store = pointer(1);
        given.name = pointer(2);
        given.listen = pointer(3);
        let mut raw = ptr::null_mut();
        check(|detail| start(&given, &mut raw, detail))?;
        Ok(Cluster { raw, _queue: config.queue.as_ref().map(|(queue, _)| queue.clone()) })
    }

    /// Adds workers; returns the number of the first. Each has events of its own.
    pub fn add(&self, launch: &Launch) -> Result<u32> {
        let argv = Words::new(launch.argv.iter().map(|word| word.as_bytes().to_vec()))?;
        let variables = launch.environment.iter();
        let environment =
            Words::new(variables.map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat()))?;
        let text = |text: Option<&[u8]>| text.map(|text| c_string(text.to_vec())).transpose();
        let idents = launch.ident.as_ref().map(|(_, others)| others.join(","));
        let texts = [
            text(Some(launch.manager.as_bytes()))?,
            text(launch.directory.as_ref().map(|path| path.as_os_str().as_bytes()))?,
            text(launch.listen.as_ref().map(String::as_bytes))?,
            text(launch.ident.as_ref().map(|(name, _)| name.as_bytes()))?,
            text(idents.as_ref().map(String::as_bytes))?,
            text(launch.options.as_ref().map(String::as_bytes))?,
        ];
        let pointer = |at: usize| texts[at].as_ref().map_or(ptr::null(), |text: &CString| text.as_ptr());
        let mut given = sys::muster_launch::sized();
        given.flags = if launch.master_dials { sys::MUSTER_LAUNCH_MASTER_DIALS } else { 0 }
            | if launch.no_listen { sys::MUSTER_LAUNCH_NO_LISTEN } else { 0 };
        given.manager = pointer(0);
        given.count = launch.count;
        given.argv = if launch.argv.is_empty() { ptr::null() } else { argv.pointer() };
        given.envp = environment.pointer();
        given.directory = pointer(1);
        given.listen = pointer(2);
        given.ident = pointer(3);
        given.connect_idents = pointer(4);
        given.options = pointer(5);
        let mut first = 0;
        check(|detail| unsafe { sys::muster_cluster_add(self.raw, &given, &mut first, detail) })?;
        Ok(first)
    }

    /// Removes a worker, which is killed if it has not left after this time. None: the leave timeout of the cluster.
    pub fn remove(&self, member: u32, grace: Option<Duration>) -> Result<()> {
        check_status(unsafe { sys::muster_cluster_remove(self.raw, member, timeout_ns(grace)) })
    }

    /// Interrupts a worker, which receives [`ClusterEvent::Interrupt`].
    pub fn interrupt(&self, member: u32) -> Result<()> {
        check_status(unsafe { sys::muster_cluster_interrupt(self.raw, member) })
    }

    /// Takes the oldest event; None: no event has arrived within the timeout. When the cluster has ended and all events
    /// were taken, the call fails with [`Status::CLOSED`](crate::Status::CLOSED).
    pub fn next_event(&self, timeout: Option<Duration>) -> Result<Option<ClusterEvent>> {
        let mut event = sys::muster_cluster_event::default();
        loop {
            match unsafe { sys::muster_cluster_next_event(self.raw, timeout_ns(timeout), &mut event) } {
                sys::MUSTER_OK => {}
                sys::MUSTER_AGAIN | sys::MUSTER_TIMEOUT => return Ok(None),
                status => return Err(Error::of(status)),
            }
            if let Some(known) = event_of(&event) {
                return Ok(Some(known));
            }
        }
    }

    /// The store that the members of the cluster share; the master serves it until the cluster ends.
    pub fn store(&self, timeout: Option<Duration>) -> Result<Store> {
        let mut raw = ptr::null_mut();
        check(|detail| unsafe { sys::muster_cluster_store(self.raw, timeout_ns(timeout), &mut raw, detail) })?;
        Ok(Store::adopt(raw))
    }

    /// Opens a stream to another member, which receives the label: at most 255 bytes.
    pub fn dial(&self, member: u32, label: &[u8], timeout: Option<Duration>) -> Result<Stream> {
        let mut raw = ptr::null_mut();
        check(|detail| unsafe {
            sys::muster_cluster_dial(
                self.raw,
                member,
                label.as_ptr().cast(),
                label.len(),
                timeout_ns(timeout),
                &mut raw,
                detail,
            )
        })?;
        Ok(Stream::adopt(raw))
    }

    /// Begins to open a stream to another member; the queue receives [`Event::Dial`](crate::Event::Dial).
    pub fn dial_begin(
        &self,
        member: u32,
        label: &[u8],
        timeout: Option<Duration>,
        queue: &Queue,
        tag: u64,
    ) -> Result<()> {
        check(|detail| unsafe {
            sys::muster_cluster_dial_begin(
                self.raw,
                member,
                label.as_ptr().cast(),
                label.len(),
                timeout_ns(timeout),
                queue.as_raw(),
                tag,
                detail,
            )
        })
    }

    /// Sends the same bytes to many members (None: to all workers), and waits until each has received them or has
    /// failed to. The error names the first member that has failed; it includes the status of each member in `members`.
    pub fn broadcast(
        &self,
        members: Option<&[u32]>,
        label: &[u8],
        bytes: &[u8],
        timeout: Option<Duration>,
    ) -> std::result::Result<(), (Error, Vec<Status>)> {
        let mut statuses = vec![sys::MUSTER_OK; members.map_or(0, <[u32]>::len)];
        let done = check(|detail| unsafe {
            sys::muster_cluster_broadcast(
                self.raw,
                members.map_or(ptr::null(), <[u32]>::as_ptr),
                statuses.len(),
                label.as_ptr().cast(),
                label.len(),
                bytes.as_ptr().cast(),
                bytes.len() as u64,
                timeout_ns(timeout),
                if statuses.is_empty() { ptr::null_mut() } else { statuses.as_mut_ptr() },
                detail,
            )
        });
        done.map_err(|why| (why, statuses.into_iter().map(Status).collect()))
    }

    /// Information about a member.
    pub fn member(&self, member: u32) -> Result<Member> {
        let mut info = sys::muster_member_info::default();
        check_status(unsafe { sys::muster_cluster_get_member(self.raw, member, &mut info) })?;
        let state = match info.state {
            sys::MUSTER_MEMBER_LAUNCHING => MemberState::Launching,
            sys::MUSTER_MEMBER_LAUNCHED => MemberState::Launched,
            sys::MUSTER_MEMBER_CONNECTED => MemberState::Connected,
            sys::MUSTER_MEMBER_JOINED => MemberState::Joined,
            sys::MUSTER_MEMBER_LEAVING => MemberState::Leaving,
            _ => MemberState::Gone,
        };
        Ok(Member { state, pid: info.pid, data: info.data, host: text_of(&info.host), address: text_of(&info.address) })
    }

    /// The numbers of the workers that have not ended; on the master.
    pub fn list(&self) -> Result<Vec<u32>> {
        let mut members = Vec::new();
        loop {
            let mut count = 0;
            let status = unsafe { sys::muster_cluster_list(self.raw, members.as_mut_ptr(), members.len(), &mut count) };
            if status != sys::MUSTER_E_LIMIT && !members.is_empty() {
                members.truncate(count);
                return check_status(status).map(|()| members);
            }
            if count == 0 {
                return check_status(status).map(|()| Vec::new());
            }
            members.resize(count + 8, 0);
        }
    }

    /// The number of this member.
    pub fn number(&self) -> u32 {
        unsafe { sys::muster_cluster_self(self.raw) }
    }

    /// Ends the current waits in calls on this cluster, with [`Status::CANCELED`](crate::Status::CANCELED).
    pub fn cancel(&self) -> Result<()> {
        check_status(unsafe { sys::muster_cluster_cancel(self.raw) })
    }

    /// Leaves the cluster. The master removes all workers before; [`Status::TIMEOUT`](crate::Status::TIMEOUT): some had
    /// to be killed.
    pub fn close(&self, timeout: Option<Duration>) -> Result<()> {
        check_status(unsafe { sys::muster_cluster_close(self.raw, timeout_ns(timeout)) })
    }

    /// The handle of the C interface; this object keeps the ownership.
    pub fn as_raw(&self) -> *mut sys::muster_cluster {
        self.raw
    }
}

// None: a kind that this crate does not know, of a later library.
fn event_of(event: &sys::muster_cluster_event) -> Option<ClusterEvent> {
    let why = || Error::new(Status(event.status), text_of(&event.text));
    let label = || event.label[..event.label_bytes as usize].iter().map(|&c| c as u8).collect();
    let member = event.member;
    Some(match event.kind {
        sys::MUSTER_CLUSTER_LAUNCHED => ClusterEvent::Launched(member),
        sys::MUSTER_CLUSTER_CONNECTED => ClusterEvent::Connected(member),
        sys::MUSTER_CLUSTER_JOINED => ClusterEvent::Joined(member),
        sys::MUSTER_CLUSTER_FAILED => ClusterEvent::Failed(member, why()),
        sys::MUSTER_CLUSTER_DEAD => ClusterEvent::Dead(member, why()),
        sys::MUSTER_CLUSTER_REMOVED => ClusterEvent::Removed(member),
        sys::MUSTER_CLUSTER_STREAM => ClusterEvent::Stream(member, label(), Stream::adopt(event.stream)),
        sys::MUSTER_CLUSTER_BROADCAST => {
            let bytes = Broadcast { raw: event.broadcast, data: event.data.cast(), size: event.size_bytes as usize };
            ClusterEvent::Broadcast(member, label(), bytes)
        }
        sys::MUSTER_CLUSTER_INTERRUPT => ClusterEvent::Interrupt,
        sys::MUSTER_CLUSTER_LEAVE => ClusterEvent::Leave,
        sys::MUSTER_CLUSTER_MASTER_GONE => ClusterEvent::MasterGone(why()),
        _ => {
            // Each is NULL, which has no effect, or belongs to this event alone.
            unsafe { sys::muster_broadcast_release(event.broadcast) };
            unsafe { sys::muster_stream_release(event.stream) };
            return None;
        }
    })
}

trait UnzipBoth<A, B> {
    fn unzip_both(self) -> (Option<A>, Option<B>);
}
impl<A, B> UnzipBoth<A, B> for Option<(A, B)> {
    // As Option::unzip, which Rust has since 1.66.
    fn unzip_both(self) -> (Option<A>, Option<B>) {
        match self {
            Some((a, b)) => (Some(a), Some(b)),
            None => (None, None),
        }
    }
}
