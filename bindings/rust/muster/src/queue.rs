// SPDX-License-Identifier: MIT
use crate::error::{check, check_status, Error, Result};
use crate::stream::Stream;
use crate::{process::Exit, timeout_ns, Context};
use muster_sys as sys;
use std::collections::VecDeque;
use std::os::raw::c_void;
use std::os::unix::io::{AsFd, BorrowedFd, RawFd};
use std::ptr;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Where a program learns what happened: completions of what it has begun, readiness of what it watches.
///
/// Requests to transports and managers of the program's own are carried out inside [`Queue::next`], on a thread that
/// calls it, one at a time; so they must not wait for the queue themselves. A clone is the same queue. What is dropped with a queue that was never emptied, as buffers that were handed
/// over, is leaked, not freed under somebody's hands.
#[derive(Clone)]
pub struct Queue {
    raw: Arc<Raw>,
}

struct Raw {
    queue: *mut sys::muster_queue,
    context: Context,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    taken: VecDeque<Event>, // off the queue, and not yet given to anybody
    leading: bool, // a thread is in muster_queue_dispatch(); only one, so that callbacks have what is theirs alone
}

// The functions of a queue may be called by any thread at any time (queue.h).
unsafe impl Send for Raw {}
unsafe impl Sync for Raw {}

impl Drop for Raw {
    fn drop(&mut self) {
        unsafe { sys::muster_queue_release(self.queue) }
    }
}

/// One thing that happened. `tag` is the program's own value, given with what it belongs to.
pub enum Event {
    /// [`Stream::read_begin`] has ended; the buffer has as many bytes as were read.
    Read {
        /// The program's own.
        tag: u64,
        /// The buffer that was handed over.
        data: Vec<u8>,
        /// Why it ended before it was full.
        result: Result<()>,
    },
    /// [`Stream::write_owned`] has ended.
    Released {
        /// The program's own.
        tag: u64,
        /// The buffer that was handed over, as it was.
        data: Vec<u8>,
        /// Whether all of it went.
        result: Result<()>,
    },
    /// A dial that was begun has ended.
    Dial {
        /// The program's own.
        tag: u64,
        /// The stream, or why there is none.
        result: Result<Stream>,
    },
    /// A process that is watched has ended.
    Exit {
        /// The program's own.
        tag: u64,
        /// How.
        exit: Exit,
    },
    /// [`Queue::post`].
    User {
        /// As it was posted.
        tag: u64,
        /// As it was posted.
        value: u64,
    },
    /// What is watched is ready; for what say the bits of `muster_stream_event`.
    Ready {
        /// The program's own.
        tag: u64,
        /// `MUSTER_STREAM_READABLE` and so on.
        events: u32,
    },
    /// Something this crate has no form of. An object in it is the program's.
    Other(sys::muster_completion, Error),
}

// A buffer that the library holds; its address is the tag.
pub(crate) struct Lent {
    pub(crate) tag: u64,
    pub(crate) data: Vec<u8>,
}

impl Queue {
    /// A new queue.
    pub fn new(context: &Context) -> Result<Queue> {
        let mut queue = ptr::null_mut();
        check(|detail| unsafe { sys::muster_queue_create(context.as_raw(), ptr::null(), &mut queue, detail) })?;
        Ok(Queue {
            raw: Arc::new(Raw { queue, context: context.clone(), state: Mutex::default(), changed: Condvar::new() }),
        })
    }

    /// The next thing that happened; None: nothing has in that time. Once the queue is closed and empty an error,
    /// [`Status::CLOSED`](crate::Status::CLOSED).
    pub fn next(&self, timeout: Option<Duration>) -> Result<Option<Event>> {
        let until = timeout.map(|time| Instant::now() + time);
        let mut state = self.raw.state.lock().unwrap();
        loop {
            if let Some(event) = state.taken.pop_front() {
                return Ok(Some(event));
            }
            let left = until.map(|at| at.saturating_duration_since(Instant::now()));
            if !state.leading {
                state.leading = true;
                drop(state);
                let mut taken = VecDeque::new();
                let user: *mut VecDeque<Event> = &mut taken;
                let status = unsafe {
                    sys::muster_queue_dispatch(
                        self.raw.queue,
                        timeout_ns(left),
                        Some(take),
                        user.cast(),
                        ptr::null_mut(),
                    )
                };
                state = self.raw.state.lock().unwrap();
                state.leading = false;
                state.taken.append(&mut taken);
                self.raw.changed.notify_all();
                match status {
                    sys::MUSTER_OK => {} // perhaps only requests, which are carried out
                    sys::MUSTER_AGAIN | sys::MUSTER_TIMEOUT => return Ok(state.taken.pop_front()),
                    status => return Err(Error::of(status)),
                }
            } else if left == Some(Duration::ZERO) {
                return Ok(None);
            } else if let Some(left) = left {
                state = self.raw.changed.wait_timeout(state, left).unwrap().0;
            } else {
                state = self.raw.changed.wait(state).unwrap();
            }
        }
    }

    /// Puts an [`Event::User`] into it; `false`: it is full.
    pub fn post(&self, tag: u64, value: u64) -> Result<bool> {
        match unsafe { sys::muster_queue_post(self.raw.queue, tag, value) } {
            sys::MUSTER_AGAIN => Ok(false),
            status => check_status(status).map(|()| true),
        }
    }

    /// Ends the waits inside [`Queue::next`] now.
    pub fn cancel(&self) -> Result<()> {
        check_status(unsafe { sys::muster_queue_cancel(self.raw.queue) })
    }

    /// Nothing new goes in; what is there can still be taken.
    pub fn close(&self) -> Result<()> {
        check_status(unsafe { sys::muster_queue_close(self.raw.queue) })
    }

    /// The handle of the C interface; it stays this queue's.
    pub fn as_raw(&self) -> *mut sys::muster_queue {
        self.raw.queue
    }
    pub(crate) fn context(&self) -> &Context {
        &self.raw.context
    }

    fn descriptor(&self) -> Result<RawFd> {
        let mut fd = -1;
        check_status(unsafe { sys::muster_queue_fd(self.raw.queue, &mut fd) })?;
        Ok(fd)
    }
}

impl AsFd for Queue {
    /// Readable when there is something to be taken; for poll, epoll, or a reactor.
    fn as_fd(&self) -> BorrowedFd<'_> {
        let fd = self.descriptor().expect("a queue that is open has a descriptor");
        unsafe { BorrowedFd::borrow_raw(fd) } // it lives as long as the queue
    }
}

unsafe extern "C" fn take(user: *mut c_void, entry: *const sys::muster_completion, error: *const sys::muster_error) {
    let taken = &mut *user.cast::<VecDeque<Event>>();
    let (entry, detail) = (&*entry, &*error);
    let failure = || Error::with(entry.status, detail);
    let result = || if entry.status == sys::MUSTER_OK { Ok(()) } else { Err(failure()) };
    taken.push_back(match entry.kind {
        sys::MUSTER_DONE_READ => {
            let mut lent = *Box::from_raw(entry.tag as *mut Lent); // its address was the tag
            lent.data.set_len(entry.bytes as usize); // so many were written into its room
            Event::Read { tag: lent.tag, data: lent.data, result: result() }
        }
        sys::MUSTER_DONE_RELEASED => {
            let lent = *Box::from_raw(entry.tag as *mut Lent);
            Event::Released { tag: lent.tag, data: lent.data, result: result() }
        }
        sys::MUSTER_DONE_DIAL if entry.object.is_null() => Event::Dial { tag: entry.tag, result: Err(failure()) },
        sys::MUSTER_DONE_DIAL => Event::Dial { tag: entry.tag, result: Ok(Stream::adopt(entry.object.cast())) },
        sys::MUSTER_DONE_EXIT => Event::Exit { tag: entry.tag, exit: Exit::from_bits(entry.bytes) },
        sys::MUSTER_DONE_USER => Event::User { tag: entry.tag, value: entry.bytes },
        sys::MUSTER_EVENT_READY => Event::Ready { tag: entry.tag, events: entry.events },
        _ => Event::Other(*entry, failure()),
    });
}
