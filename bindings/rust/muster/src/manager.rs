// SPDX-License-Identifier: MIT
//! Cluster managers written in Rust.
use crate::error::{check, cut, failure, Error, Result, Status};
use crate::reports::{LaunchRequest, Reports};
use crate::served::{destroyed, Served};
use crate::Queue;
use muster_sys as sys;
use std::collections::btree_map::{BTreeMap, Entry};
use std::ffi::CStr;
use std::os::raw::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;

/// A manager launches workers and kills them. Its functions run inside [`Queue::next`](crate::Queue::next) of the queue
/// that serves it, on the calling thread; a function that panics has failed.
pub trait Manager: Send + 'static {
    /// Launches workers; each is reported once, during the call or later.
    fn launch(&mut self, request: LaunchRequest, reports: Reports);
    /// Kills a worker.
    fn kill(&mut self, member: u32, data: u64) -> Result<()>;
    /// The address at which the master dials a worker that listens at `address`.
    fn connect(&mut self, _member: u32, address: &str) -> Result<String> {
        Ok(address.into())
    }
    /// The address at which another worker dials it.
    fn connect_worker(&mut self, _from: u32, _member: u32, address: &str) -> Result<String> {
        Ok(address.into())
    }
    /// Interrupts a worker. By default the worker is notified over its link.
    fn interrupt(&mut self, _member: u32, _data: u64) -> Result<()> {
        Err(Error::new(Status::UNSUPPORTED, "the worker is notified"))
    }
    /// A worker has joined.
    fn registered(&mut self, _member: u32, _data: u64) {}
    /// A worker has ended, for any reason. When the manager is dropped, this is called for each worker that was
    /// registered and not deregistered: such a worker continues, but there are no further requests to this manager.
    fn deregistered(&mut self, _member: u32, _data: u64) {}
}

/// Serves a manager under a name until it is dropped. Then the manager is dropped, too: at once, or, while one of its
/// functions runs on another thread, when that returns. A request that was not answered fails: with
/// [`Status::CLOSED`](crate::Status::CLOSED), or as [`Reports`] that are dropped. Workers that have joined remain
/// members.
pub struct ManagerServer {
    queue: Queue,
    name: String,
    served: Arc<Served<Managed>>,
}

// A manager, and the workers that were registered and not deregistered: number and data of each, and the number
// of clusters with such a worker.
struct Managed {
    manager: Box<dyn Manager>,
    registered: BTreeMap<(u32, u64), usize>,
}

impl Drop for Managed {
    fn drop(&mut self) {
        for ((member, data), count) in std::mem::take(&mut self.registered) {
            for _ in 0..count {
                let manager = &mut self.manager;
                // A panic does not skip the others.
                let _ = catch_unwind(AssertUnwindSafe(|| manager.deregistered(member, data)));
            }
        }
    }
}

impl ManagerServer {
    /// Registers a manager for [`Launch::manager`](crate::Launch) in the context of the queue. A thread has to call
    /// [`Queue::next`](crate::Queue::next).
    pub fn new(queue: &Queue, name: &str, manager: impl Manager) -> Result<ManagerServer> {
        let mut ops = sys::muster_manager_ops::sized();
        ops.launch = Some(launch);
        ops.connect = Some(connect);
        ops.connect_worker = Some(connect);
        ops.manage = Some(manage);
        ops.kill = Some(kill);
        ops.destroy = Some(destroy);
        let managed = Managed { manager: Box::new(manager), registered: BTreeMap::new() };
        let (served, place) = Served::new(queue, managed);
        let done = check(|detail| unsafe {
            let (context, at) = (queue.context().as_raw(), name.as_ptr().cast());
            sys::muster_manager_serve_ops(context, at, name.len(), &ops, place, queue.as_raw(), detail)
        });
        if let Err(why) = done {
            queue.forget(place);
            return Err(why);
        }
        Ok(ManagerServer { queue: queue.clone(), name: name.into(), served })
    }
}

impl Drop for ManagerServer {
    fn drop(&mut self) {
        unsafe {
            sys::muster_manager_withdraw(self.queue.context().as_raw(), self.name.as_ptr().cast(), self.name.len());
        }
        self.served.end();
    }
}

unsafe fn with<T>(this: *mut c_void, body: impl FnOnce(&mut Managed) -> Result<T>) -> Result<T> {
    match (*this.cast::<Served<Managed>>()).run(body) {
        Some(Ok(result)) => result,
        Some(Err(_)) => Err(Error::new(Status::INTERNAL, "the manager panicked")),
        None => Err(Error::new(Status::CLOSED, "the manager was taken back")),
    }
}

unsafe fn answer(this: *mut c_void, request: u64, result: Result<Option<String>>) {
    let held = (*this.cast::<Served<Managed>>()).queue();
    let queue = held.as_raw();
    let none = std::ptr::null_mut();
    match result {
        Err(why) => {
            let text = cut(why.message());
            let at = text.as_ptr().cast();
            sys::muster_manager_request_fail(queue, request, failure(&why), at, text.len());
        }
        Ok(None) => {
            sys::muster_manager_request_done(queue, request, std::ptr::null(), 0, none);
        }
        Ok(Some(address)) => {
            sys::muster_manager_request_done(queue, request, address.as_ptr().cast(), address.len(), none);
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
    let queue = (*this.cast::<Served<Managed>>()).queue();
    let reports = Reports::new(queue, request, asked.first..asked.first.saturating_add(asked.count));
    // Workers that were not reported fail with the last clone.
    let _ = with(this, |managed| {
        managed.manager.launch(asked, reports);
        Ok(())
    });
}

unsafe extern "C" fn connect(this: *mut c_void, request: u64, what: *const sys::muster_manager_request) {
    let what = &*what;
    let address = text(what.address);
    let result = with(this, |managed| match what.operation {
        sys::MUSTER_MANAGER_CONNECT => managed.manager.connect(what.member, &address),
        _ => managed.manager.connect_worker(what.from, what.member, &address),
    });
    answer(this, request, result.map(Some));
}

unsafe extern "C" fn manage(this: *mut c_void, request: u64, what: *const sys::muster_manager_request) {
    let what = &*what;
    let result = with(this, |managed| {
        match what.operation {
            sys::MUSTER_MANAGER_INTERRUPT => return managed.manager.interrupt(what.member, what.data),
            sys::MUSTER_MANAGER_REGISTER => {
                *managed.registered.entry((what.member, what.data)).or_insert(0) += 1;
                managed.manager.registered(what.member, what.data);
            }
            sys::MUSTER_MANAGER_DEREGISTER => {
                if let Entry::Occupied(mut known) = managed.registered.entry((what.member, what.data)) {
                    *known.get_mut() -= 1;
                    if *known.get() == 0 {
                        known.remove();
                    }
                }
                managed.manager.deregistered(what.member, what.data);
            }
            _ => {}
        }
        Ok(())
    });
    answer(this, request, result.map(|()| None));
}

unsafe extern "C" fn kill(this: *mut c_void, request: u64, what: *const sys::muster_manager_request) {
    let what = &*what;
    let result = with(this, |managed| managed.manager.kill(what.member, what.data));
    answer(this, request, result.map(|()| None));
}

unsafe extern "C" fn destroy(this: *mut c_void) {
    destroyed::<Managed>(this);
}

impl std::fmt::Debug for ManagerServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ManagerServer").finish_non_exhaustive()
    }
}
