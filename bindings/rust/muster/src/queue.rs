// SPDX-License-Identifier: MIT
use crate::error::{check, check_status, Error, Result, Status};
use crate::event::Event;
use crate::{timeout_ns, Context};
use muster_sys as sys;
use std::any::Any;
use std::collections::HashMap;
use std::os::raw::c_void;
use std::os::unix::io::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::ptr;
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::time::{Duration, Instant};

/// A queue of events: completions of operations that were begun, and readiness of watched objects.
///
/// Requests to transports and managers of the program are executed inside [`Queue::next`], on a thread that calls it,
/// one at a time; so they must not wait for the queue themselves. A clone is the same queue. Dropping the last clone
/// ends the operations that were begun with it, and frees the buffers that were passed to them. A stream is then
/// aborted if a part of such a buffer was sent.
///
/// # With an event loop of the program's own
///
/// The descriptor of [`Queue::as_fd`] is readable while the queue has events: call `next` with a timeout of zero until
/// it returns `None`, and wait for the descriptor again. With tokio, which watches for edges:
///
/// ```ignore
/// let fd = tokio::io::unix::AsyncFd::with_interest(queue.as_raw_fd(), tokio::io::Interest::READABLE)?;
/// loop {
///     let mut ready = fd.readable().await?;
///     ready.clear_ready(); // before the last call of next(), so that later events make it ready again
///     while let Some(event) = queue.next(Some(Duration::ZERO))? {
///         handle(event);
///     }
/// }
/// ```
///
/// With mio: register `mio::unix::SourceFd(&queue.as_raw_fd())` with `Interest::READABLE`, and call `next` until it
/// returns `None` after each event.
#[derive(Debug, Clone)]
pub struct Queue {
    raw: Arc<Raw>,
}

struct Raw {
    queue: *mut sys::muster_queue,
    context: Context,
    state: Mutex<State>,
    changed: Condvar,
    lent: Mutex<Loans>,
    tables: Mutex<HashMap<usize, Arc<dyn Any + Send + Sync>>>, // by their places: what callbacks of the library point to
    descriptor: Mutex<Option<OwnedFd>>,                        // after the first request for it
}

#[derive(Default)]
struct State {
    leading: bool,    // a thread takes from the queue; only one, so that callbacks have what is theirs alone
    following: usize, // threads that wait until it has
    cancels: u64,     // so often were waits ended
}

// Buffers that the library holds. Each has a number, which is the tag in C; no event comes for a number that is not
// here any more.
#[derive(Default)]
struct Loans {
    numbers: u64,
    buffers: HashMap<u64, Lent>,
}

pub(crate) struct Lent {
    pub(crate) tag: u64,
    pub(crate) data: Vec<u8>,
    begun: bool, // the library has taken it; until then it belongs to the call that begins the operation
}

// The functions of a queue may be called by any thread at any time (queue.h).
unsafe impl Send for Raw {}
unsafe impl Sync for Raw {}

impl Drop for Raw {
    fn drop(&mut self) {
        // Ends all operations; afterwards the library accesses none of the buffers in `lent`, which are freed next.
        unsafe { sys::muster_queue_release(self.queue) }
    }
}

impl Raw {
    // The queue is closed, and nothing is left in it: the library accesses no buffer that was lent, and no completion
    // gives one back. A buffer whose operation is just being begun goes back to the thread that begins it, with an
    // error.
    fn free_ended(&self) {
        self.lent.lock().unwrap().buffers.retain(|_, lent| !lent.begun);
    }
}

impl Queue {
    /// A new queue.
    pub fn new(context: &Context) -> Result<Queue> {
        let mut queue = ptr::null_mut();
        check(|detail| unsafe { sys::muster_queue_create(context.as_raw(), ptr::null(), &mut queue, detail) })?;
        Ok(Queue {
            raw: Arc::new(Raw {
                queue,
                context: context.clone(),
                state: Mutex::default(),
                changed: Condvar::new(),
                lent: Mutex::default(),
                tables: Mutex::default(),
                descriptor: Mutex::default(),
            }),
        })
    }

    /// Takes the next event; None: no event has arrived within the timeout. When the queue is closed and empty, the
    /// call fails with [`Status::CLOSED`](crate::Status::CLOSED); buffers of operations that ended with the close are
    /// freed then.
    ///
    /// Events that were not taken stay in the queue of the library, whose length is bounded; the descriptor of
    /// [`Queue::as_fd`] stays readable.
    pub fn next(&self, timeout: Option<Duration>) -> Result<Option<Event>> {
        let until = timeout.and_then(|time| Instant::now().checked_add(time)); // what is too far away has no end
        let mut state = self.raw.state.lock().unwrap();
        let cancels = state.cancels;
        loop {
            if state.cancels != cancels {
                if state.following > 0 {
                    self.raw.changed.notify_one(); // one that began to wait after the cancel
                }
                return Err(Error::of(sys::MUSTER_E_CANCELED));
            }
            let left = until.map(|at| at.saturating_duration_since(Instant::now()));
            if !state.leading {
                state.leading = true;
                drop(state);
                let took = self.take(left);
                state = self.raw.state.lock().unwrap();
                state.leading = false;
                if state.following > 0 {
                    self.raw.changed.notify_one(); // the next one leads
                }
                match took {
                    Ok(None) if left == Some(Duration::ZERO) => return Ok(None),
                    Ok(None) => {} // perhaps only requests, which are carried out
                    took => return took,
                }
            } else if left == Some(Duration::ZERO) {
                return Ok(None);
            } else {
                state.following += 1;
                state = match left {
                    Some(left) => self.raw.changed.wait_timeout(state, left).unwrap().0,
                    None => self.raw.changed.wait(state).unwrap(),
                };
                state.following -= 1;
            }
        }
    }

    // Executes requests until the next entry is an event, and takes that. None: there is none.
    fn take(&self, timeout: Option<Duration>) -> Result<Option<Event>> {
        let (mut wait, mut entry) = (timeout_ns(timeout), sys::muster_completion::default());
        loop {
            let queue = self.raw.queue;
            match unsafe { sys::muster_queue_dispatch(queue, wait, None, ptr::null_mut(), ptr::null_mut()) } {
                sys::MUSTER_E_UNSUPPORTED => {} // next is something that no table takes
                sys::MUSTER_OK | sys::MUSTER_AGAIN | sys::MUSTER_TIMEOUT => return Ok(None),
                sys::MUSTER_E_CLOSED => {
                    self.raw.free_ended();
                    return Err(Error::of(sys::MUSTER_E_CLOSED));
                }
                status => return Err(Error::of(status)),
            }
            wait = 0;
            let mut detail = sys::muster_error::default();
            match unsafe { sys::muster_queue_next(queue, 0, &mut entry, &mut detail) } {
                sys::MUSTER_OK => {}
                sys::MUSTER_AGAIN => continue, // its watch was ended meanwhile
                status => return Err(Error::of(status)),
            }
            let given_back = |number| self.raw.lent.lock().unwrap().buffers.remove(&number);
            if let Some(event) = unsafe { Event::of(&entry, &detail, given_back) } {
                return Ok(Some(event));
            }
        }
    }

    /// Adds an [`Event::User`]; `false`: the queue is full.
    pub fn post(&self, tag: u64, value: u64) -> Result<bool> {
        match unsafe { sys::muster_queue_post(self.raw.queue, tag, value) } {
            sys::MUSTER_AGAIN => Ok(false),
            status => check_status(status).map(|()| true),
        }
    }

    /// Ends the current waits in [`Queue::next`].
    pub fn cancel(&self) -> Result<()> {
        self.raw.state.lock().unwrap().cancels += 1; // for those that wait until another thread has taken something
        self.raw.changed.notify_all();
        check_status(unsafe { sys::muster_queue_cancel(self.raw.queue) })
    }

    /// Closes the queue: it accepts no further entries, and those that it has can still be taken. Operations that were
    /// begun with it and have not completed end without an event; their buffers are freed now if the queue is empty,
    /// otherwise when [`Queue::next`] has found it empty.
    pub fn close(&self) -> Result<()> {
        check_status(unsafe { sys::muster_queue_close(self.raw.queue) })?;
        let mut stats = sys::muster_queue_stats::default();
        if unsafe { sys::muster_queue_get_stats(self.raw.queue, &mut stats) } == sys::MUSTER_OK && stats.depth == 0 {
            self.raw.free_ended();
        }
        Ok(())
    }

    /// The handle of the C interface; this object keeps the ownership.
    pub fn as_raw(&self) -> *mut sys::muster_queue {
        self.raw.queue
    }
    pub(crate) fn context(&self) -> &Context {
        &self.raw.context
    }
    pub(crate) fn downgrade(&self) -> WeakQueue {
        WeakQueue(Arc::downgrade(&self.raw))
    }

    // Keeps what callbacks of the library point to, until the last callback or the release of the queue: after a
    // release
    // none comes. The pointer for the callbacks.
    pub(crate) fn keep<T: Any + Send + Sync>(&self, table: &Arc<T>) -> *mut c_void {
        let place = Arc::as_ptr(table);
        self.raw.tables.lock().unwrap().insert(place as usize, table.clone());
        place as *mut c_void
    }
    pub(crate) fn forget(&self, place: *mut c_void) -> Option<Arc<dyn Any + Send + Sync>> {
        self.raw.tables.lock().unwrap().remove(&(place as usize))
    }

    // Begins an operation with a buffer that belongs to the library until its completion is taken. If the operation
    // cannot be begun, the buffer is returned at once.
    pub(crate) fn lend(
        &self,
        mut data: Vec<u8>,
        tag: u64,
        begin: impl FnOnce(*mut u8, u64) -> i32,
    ) -> std::result::Result<(), (Error, Vec<u8>)> {
        let place = data.as_mut_ptr(); // which stays where it is when the Vec moves
        let number = {
            let mut lent = self.raw.lent.lock().unwrap();
            lent.numbers += 1;
            let number = lent.numbers;
            lent.buffers.insert(number, Lent { tag, data, begun: false });
            number
        };
        let status = begin(place, number);
        if status == sys::MUSTER_OK {
            if let Some(lent) = self.raw.lent.lock().unwrap().buffers.get_mut(&number) {
                lent.begun = true; // else its completion was taken already
            }
            return Ok(());
        }
        // Some failures have a completion, too, which is skipped since its number is not registered any more; unless
        // another thread has taken it already, which has reported the event.
        match self.raw.lent.lock().unwrap().buffers.remove(&number) {
            Some(lent) => Err((Error::of(status), lent.data)),
            None => Ok(()),
        }
    }

    /// The descriptor of [`Queue::as_fd`]. An error with [`Status::LIMIT`](crate::Status::LIMIT): this process has no
    /// descriptor left.
    pub fn try_as_fd(&self) -> Result<BorrowedFd<'_>> {
        let mut kept = self.raw.descriptor.lock().unwrap();
        if kept.is_none() {
            *kept = Some(self.descriptor()?);
        }
        let fd = kept.as_ref().map_or(-1, |fd| fd.as_raw_fd());
        Ok(unsafe { BorrowedFd::borrow_raw(fd) }) // it is kept, and not replaced, as long as the queue lives
    }

    fn descriptor(&self) -> Result<OwnedFd> {
        let mut fd = -1;
        match unsafe { sys::muster_queue_fd(self.raw.queue, &mut fd) } {
            // A closed queue has nothing to wait for: one end of a pair without the other is always readable.
            sys::MUSTER_E_CLOSED => match UnixStream::pair() {
                Ok((end, _)) => Ok(end.into()),
                Err(why) => Err(Error::new(Status::LIMIT, why.to_string())),
            },
            status => {
                check_status(status)?;
                Ok(unsafe { OwnedFd::from_raw_fd(fd) }) // a duplicate, which is the caller's
            }
        }
    }
}

impl AsFd for Queue {
    /// A descriptor that is readable when the queue has events, and when it is closed; for poll, epoll, or a reactor.
    /// It belongs to this queue, and is the same in each call.
    ///
    /// # Panics
    /// If this process has no descriptor left at the first call; [`Queue::try_as_fd`] returns an error then.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.try_as_fd().expect("the descriptor of a queue")
    }
}

impl AsRawFd for Queue {
    /// As [`Queue::as_fd`]; it belongs to the queue, and must not be closed.
    ///
    /// # Panics
    /// As [`Queue::as_fd`].
    fn as_raw_fd(&self) -> std::os::unix::io::RawFd {
        self.as_fd().as_raw_fd()
    }
}

// What a table that is served by a queue has of it: it does not keep alive what keeps it.
pub(crate) struct WeakQueue(Weak<Raw>);

impl WeakQueue {
    // For the functions of a table, which run inside Queue::next().
    pub(crate) fn upgrade(&self) -> Queue {
        Queue { raw: self.0.upgrade().expect("the queue that is being taken from") }
    }
}

impl std::fmt::Debug for Raw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Raw").field("queue", &self.queue).finish_non_exhaustive()
    }
}
