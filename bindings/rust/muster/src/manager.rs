// SPDX-License-Identifier: MIT
//! Cluster managers written in Rust.
use crate::error::{check, check_status, cut, failure, Error, Result, Status};
use crate::queue::WeakQueue;
use crate::{Cluster, Queue};
use muster_sys as sys;
use std::ffi::CStr;
use std::os::raw::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Who launches workers, and ends them by force. Its functions run inside [`Queue::next`](crate::Queue::next) of the
/// queue it is served with, on the thread that calls that; one that panics has failed.
pub trait Manager: Send + 'static {
    /// Starts workers; each is reported once, now or later.
    fn launch(&mut self, request: LaunchRequest, reports: Reports);
    /// Ends a worker by force.
    fn kill(&mut self, member: u32, data: u64) -> Result<()>;
    /// Where the master dials a worker that listens there.
    fn connect(&mut self, _member: u32, address: &str) -> Result<String> {
        Ok(address.into())
    }
    /// Where another worker dials it.
    fn connect_worker(&mut self, _from: u32, _member: u32, address: &str) -> Result<String> {
        Ok(address.into())
    }
    /// Interrupts what a worker is doing. By default the worker is told over its link.
    fn interrupt(&mut self, _member: u32, _data: u64) -> Result<()> {
        Err(Error::new(Status::UNSUPPORTED, "the worker is told"))
    }
    /// A worker has joined.
    fn registered(&mut self, _member: u32, _data: u64) {}
    /// A worker is gone, however that came.
    fn deregistered(&mut self, _member: u32, _data: u64) {}
}

/// What to launch.
#[derive(Clone, Debug)]
pub struct LaunchRequest {
    /// Number of the first worker.
    pub first: u32,
    /// How many.
    pub count: u32,
    /// Program and arguments, if any were named.
    pub argv: Vec<String>,
    /// `NAME=value`: to be added to the environment.
    pub environment: Vec<String>,
    /// Their working directory, if one was named.
    pub directory: Option<String>,
    /// For the manager, in its own words.
    pub options: String,
    /// The workers print where they listen, and the master dials them.
    pub master_dials: bool,
}

/// By which a manager says how a launch went; good until each worker of it was reported.
#[derive(Clone)]
pub struct Reports {
    queue: Queue,
    request: u64,
}

impl Reports {
    /// The ticket of a worker, one line with its newline: to be handed to it over a descriptor, and never to be shown.
    pub fn ticket(&self, member: u32) -> Result<Vec<u8>> {
        let mut size = 0;
        let raw = self.queue.as_raw();
        check_status(unsafe {
            sys::muster_manager_ticket(raw, self.request, member, std::ptr::null_mut(), 0, &mut size)
        })?;
        let mut line = vec![0u8; size];
        check_status(unsafe {
            sys::muster_manager_ticket(raw, self.request, member, line.as_mut_ptr().cast(), line.len(), &mut size)
        })?;
        Ok(line)
    }

    /// A worker was started. `data` comes with all that is asked about it.
    pub fn ready(&self, member: u32, address: Option<&str>, data: u64) -> Result<()> {
        let text = address.unwrap_or("");
        let place = if address.is_some() { text.as_ptr().cast() } else { std::ptr::null() };
        check(|detail| unsafe {
            let queue = self.queue.as_raw();
            sys::muster_manager_worker_ready(queue, self.request, member, place, text.len(), data, detail)
        })
    }

    /// A worker could not be started.
    pub fn failed(&self, member: u32, why: &Error) -> Result<()> {
        let text = cut(why.message());
        check(|detail| unsafe {
            let (queue, at) = (self.queue.as_raw(), text.as_ptr().cast());
            let status = failure(why);
            sys::muster_manager_worker_failed(queue, self.request, member, status, at, text.len(), detail)
        })
    }

    /// A worker that was started has ended, as this manager has seen.
    pub fn ended(queue: &Queue, cluster: &Cluster, member: u32, how: &str) -> Result<()> {
        let text = cut(how);
        check(|detail| unsafe {
            let at = text.as_ptr().cast();
            sys::muster_manager_worker_ended(queue.as_raw(), cluster.as_raw(), member, at, text.len(), detail)
        })
    }
}

/// A manager that is known under a name, as long as this lives.
pub struct ManagerServer {
    queue: Queue,
    name: String,
}

// What the table's functions are given.
struct Served {
    manager: Box<dyn Manager>,
    queue: WeakQueue,
}

impl ManagerServer {
    /// Makes a manager known to [`Launch::manager`](crate::Launch) in the queue's context. Somebody has to take from the
    /// queue.
    pub fn new(queue: &Queue, name: &str, manager: impl Manager) -> Result<ManagerServer> {
        let mut ops = sys::muster_manager_ops::sized();
        ops.launch = Some(launch);
        ops.connect = Some(connect);
        ops.connect_worker = Some(connect);
        ops.manage = Some(manage);
        ops.kill = Some(kill);
        ops.destroy = Some(destroy);
        let served = Box::into_raw(Box::new(Served { manager: Box::new(manager), queue: queue.downgrade() }));
        let done = check(|detail| unsafe {
            let (context, at) = (queue.context().as_raw(), name.as_ptr().cast());
            sys::muster_manager_serve_ops(context, at, name.len(), &ops, served.cast(), queue.as_raw(), detail)
        });
        if let Err(why) = done {
            drop(unsafe { Box::from_raw(served) });
            return Err(why);
        }
        Ok(ManagerServer { queue: queue.clone(), name: name.into() })
    }
}

impl Drop for ManagerServer {
    // The manager itself goes when the queue is next taken from.
    fn drop(&mut self) {
        unsafe {
            sys::muster_manager_withdraw(self.queue.context().as_raw(), self.name.as_ptr().cast(), self.name.len());
        }
    }
}

// One at a time: Queue::next() lets only one thread dispatch.
unsafe fn with<T>(this: *mut c_void, body: impl FnOnce(&mut Served) -> Result<T>) -> Result<T> {
    let served = &mut *this.cast::<Served>();
    catch_unwind(AssertUnwindSafe(|| body(served)))
        .unwrap_or_else(|_| Err(Error::new(Status::INTERNAL, "the manager panicked")))
}

unsafe fn fail(this: *mut c_void, request: u64, why: &Error) {
    let text = cut(why.message());
    let queue = (*this.cast::<Served>()).queue.upgrade();
    sys::muster_manager_request_fail(queue.as_raw(), request, failure(why), text.as_ptr().cast(), text.len());
}

unsafe fn answer(this: *mut c_void, request: u64, result: Result<Option<String>>) {
    let held = (*this.cast::<Served>()).queue.upgrade();
    let queue = held.as_raw();
    match result {
        Err(why) => fail(this, request, &why),
        Ok(None) => {
            sys::muster_manager_request_done(queue, request, std::ptr::null(), 0, std::ptr::null_mut());
        }
        Ok(Some(address)) => {
            let at = address.as_ptr().cast();
            sys::muster_manager_request_done(queue, request, at, address.len(), std::ptr::null_mut());
        }
    }
}

unsafe fn text(from: *const std::os::raw::c_char) -> String {
    if from.is_null() {
        return String::new();
    }
    CStr::from_ptr(from).to_string_lossy().into_owned()
}

unsafe fn words(mut from: *const *const std::os::raw::c_char) -> Vec<String> {
    let mut words = Vec::new();
    while !from.is_null() && !(*from).is_null() {
        words.push(text(*from));
        from = from.add(1);
    }
    words
}

unsafe extern "C" fn launch(this: *mut c_void, request: u64, what: *const sys::muster_manager_request) {
    let what = &*what;
    let asked = &*what.launch;
    let asked = LaunchRequest {
        first: what.member,
        count: what.count,
        argv: words(asked.argv),
        environment: words(asked.envp),
        directory: if asked.directory.is_null() { None } else { Some(text(asked.directory)) },
        options: text(asked.options),
        master_dials: asked.flags & sys::MUSTER_LAUNCH_MASTER_DIALS != 0,
    };
    let done = with(this, |served| {
        let reports = Reports { queue: served.queue.upgrade(), request };
        served.manager.launch(asked, reports);
        Ok(())
    });
    if let Err(why) = done {
        fail(this, request, &why);
    }
}

unsafe extern "C" fn connect(this: *mut c_void, request: u64, what: *const sys::muster_manager_request) {
    let what = &*what;
    let address = text(what.address);
    let result = with(this, |served| match what.want {
        sys::MUSTER_MANAGER_CONNECT => served.manager.connect(what.member, &address),
        _ => served.manager.connect_worker(what.from, what.member, &address),
    });
    answer(this, request, result.map(Some));
}

unsafe extern "C" fn manage(this: *mut c_void, request: u64, what: *const sys::muster_manager_request) {
    let what = &*what;
    let result = with(this, |served| {
        match what.want {
            sys::MUSTER_MANAGER_INTERRUPT => return served.manager.interrupt(what.member, what.data),
            sys::MUSTER_MANAGER_REGISTER => served.manager.registered(what.member, what.data),
            sys::MUSTER_MANAGER_DEREGISTER => served.manager.deregistered(what.member, what.data),
            _ => {}
        }
        Ok(())
    });
    answer(this, request, result.map(|()| None));
}

unsafe extern "C" fn kill(this: *mut c_void, request: u64, what: *const sys::muster_manager_request) {
    let what = &*what;
    let result = with(this, |served| served.manager.kill(what.member, what.data));
    answer(this, request, result.map(|()| None));
}

unsafe extern "C" fn destroy(this: *mut c_void) {
    let served = Box::from_raw(this.cast::<Served>());
    let _ = catch_unwind(AssertUnwindSafe(|| drop(served))); // it may panic as it goes
}
