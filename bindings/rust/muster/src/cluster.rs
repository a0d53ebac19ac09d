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

/// Between whom streams may be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// Any two members.
    AllToAll,
    /// The master and each worker.
    MasterWorker,
    /// Each member and its parent: that of n is (n - 1) / 2.
    Tree,
    /// The master and each worker, and workers one of which names the other.
    Custom,
}

/// How to open a cluster.
#[derive(Debug, Clone)]
pub struct ClusterConfig {
    /// Between whom streams may be opened.
    pub topology: Topology,
    /// Where the master listens. None: `tcp://127.0.0.1:0`.
    pub listen: Option<String>,
    /// Time from a worker's launch until it has joined. None: 60 s.
    pub join_timeout: Option<Duration>,
    /// Time a worker gets to leave before it is killed. None: 10 s.
    pub leave_timeout: Option<Duration>,
    /// Where [`Event::Ready`](crate::Event::Ready) with this tag tells that there are events.
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
    /// Who starts them: `local`, `ssh`, `slurm`, `mpi`, `elastic`, or one of the program's own.
    pub manager: String,
    /// How many.
    pub count: u32,
    /// Program and arguments.
    pub argv: Vec<OsString>,
    /// Added to the environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Their working directory.
    pub directory: Option<PathBuf>,
    /// Where a worker listens, `{}` in it stands for its number. None: `tcp://127.0.0.1:0`.
    pub listen: Option<String>,
    /// [`Topology::Custom`]: their names, and those of others they may have streams with.
    pub ident: Option<(String, Vec<String>)>,
    /// For the manager, in its own words.
    pub options: Option<String>,
    /// The master dials the workers.
    pub master_dials: bool,
    /// Workers listen nowhere.
    pub no_listen: bool,
}

impl Launch {
    /// So many on this host.
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

/// Something that has happened in a cluster, and to which member.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClusterEvent {
    /// The worker was started.
    Launched(u32),
    /// There is a link, and both sides have proved the secret.
    Connected(u32),
    /// The worker is in; on a worker after [`Cluster::begin_to_come_in`]: this one.
    Joined(u32),
    /// The worker did not come to join; on a worker after [`Cluster::begin_to_come_in`]: this one, and its cluster is
    /// over.
    Failed(u32, Error),
    /// The worker is gone, and should not be.
    Dead(u32, Error),
    /// The worker has left, or was removed.
    Removed(u32),
    /// The member has opened a stream to this one, with this label.
    Stream(u32, Vec<u8>, Stream),
    /// The member has given these bytes to many, with this label.
    Broadcast(u32, Vec<u8>, Broadcast),
    /// Stop what you are doing.
    Interrupt,
    /// Leave.
    Leave,
    /// There is no cluster any more.
    MasterGone(Error),
}

/// Bytes that a member has broadcast; those of one host share them. Until it is dropped they count as not taken.
#[derive(Debug)]
pub struct Broadcast {
    raw: *mut sys::muster_broadcast,
    data: *const u8,
    size: usize,
}

// Nobody writes there, and any thread may release it (cluster.h).
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

/// How a member fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberState {
    /// It is being started.
    Launching,
    /// It was started.
    Launched,
    /// There is a link to it.
    Connected,
    /// It is in.
    Joined,
    /// It is being removed.
    Leaving,
    /// It has failed, died, left or was removed.
    Gone,
}

/// What is known of a member.
#[derive(Clone, Debug)]
pub struct Member {
    /// How it fares.
    pub state: MemberState,
    /// Its process id, on its host; 0: not known.
    pub pid: i64,
    /// The number that a manager of the program's own gave with it.
    pub data: u64,
    /// Name of its host.
    pub host: String,
    /// Where it listens.
    pub address: String,
}

/// How to be a worker.
#[derive(Debug, Clone, Default)]
pub struct WorkerConfig {
    /// When the master is gone this process is sent SIGTERM, then SIGKILL, also while it computes.
    pub exit_with_master: bool,
    /// An interrupt raises SIGINT in this process.
    pub raise_interrupt: bool,
    /// Where [`Event::Ready`](crate::Event::Ready) with this tag tells that there are events.
    pub queue: Option<(Queue, u64)>,
    /// For one that nobody has launched: where the master listens.
    pub master: Option<String>,
    /// For one that nobody has launched: a store in which the master is found, and the cluster's name there.
    pub store: Option<(String, String)>,
    /// For one that nobody has launched: where it listens.
    pub listen: Option<String>,
}

/// One member's view of a cluster. To drop it closes it without a wait.
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
    /// Opens one; this member is its master.
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

    /// Comes in as a worker; waits until this member knows its number.
    pub fn come_in(context: &Context, config: &WorkerConfig, timeout: Option<Duration>) -> Result<Cluster> {
        Self::worker(config, |given, raw, detail| unsafe {
            sys::muster_worker_start(context.as_raw(), given, timeout_ns(timeout), raw, detail)
        })
    }

    /// Begins to come in as a worker, for a program whose only thread serves the transport by which it comes in. The
    /// first event is [`ClusterEvent::Joined`] of this member's own number, or [`ClusterEvent::Failed`].
    pub fn begin_to_come_in(context: &Context, config: &WorkerConfig, timeout: Option<Duration>) -> Result<Cluster> {
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

    /// Adds workers; the number of the first. How each fares is told by events.
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

    /// Removes a worker, which is killed if it has not left in that time. None: the cluster's leave timeout.
    pub fn remove(&self, member: u32, grace: Option<Duration>) -> Result<()> {
        check_status(unsafe { sys::muster_cluster_remove(self.raw, member, timeout_ns(grace)) })
    }

    /// Interrupts what a worker is doing.
    pub fn interrupt(&self, member: u32) -> Result<()> {
        check_status(unsafe { sys::muster_cluster_interrupt(self.raw, member) })
    }

    /// The oldest event; None: there is none in that time. When the cluster is over and all were taken an error,
    /// [`Status::CLOSED`](crate::Status::CLOSED).
    pub fn next_event(&self, timeout: Option<Duration>) -> Result<Option<ClusterEvent>> {
        let mut event = sys::muster_cluster_event::default();
        loop {
            match unsafe { sys::muster_cluster_next_event(self.raw, timeout_ns(timeout), &mut event) } {
                sys::MUSTER_OK => {}
                sys::MUSTER_AGAIN | sys::MUSTER_TIMEOUT => return Ok(None),
                status => return Err(Error::of(status)),
            }
            if let Some(known) = told(&event) {
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

    /// Opens a stream to another member, which is told the label: at most 255 bytes.
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

    /// Begins to open one; [`Event::Dial`](crate::Event::Dial) comes into the queue.
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

    /// Gives the same bytes to many members, None: to all workers, and waits until each has them or is known not to get
    /// them. The error names the first that has not; with it comes the status of each that was named.
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

    /// What is known of a member.
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

    /// The workers that are not gone; on the master.
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

    /// Ends the waits inside this cluster's functions now.
    pub fn cancel(&self) -> Result<()> {
        check_status(unsafe { sys::muster_cluster_cancel(self.raw) })
    }

    /// Leaves it. The master removes all workers first; [`Status::TIMEOUT`](crate::Status::TIMEOUT): some had to be
    /// killed.
    pub fn close(&self, timeout: Option<Duration>) -> Result<()> {
        check_status(unsafe { sys::muster_cluster_close(self.raw, timeout_ns(timeout)) })
    }

    /// The handle of the C interface; it stays this cluster's.
    pub fn as_raw(&self) -> *mut sys::muster_cluster {
        self.raw
    }
}

// None: of a kind that is not known here, as a later library may tell.
fn told(event: &sys::muster_cluster_event) -> Option<ClusterEvent> {
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
            // Either is NULL, which has no effect, or held by nobody else.
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
    // As Option::unzip, which is not there before 1.66.
    fn unzip_both(self) -> (Option<A>, Option<B>) {
        match self {
            Some((a, b)) => (Some(a), Some(b)),
            None => (None, None),
        }
    }
}
