// SPDX-License-Identifier: MIT
use crate::error::{check, check_status, Error, Result};
use crate::stream::{Listener, Stream};
use crate::{process::Exit, timeout_ns, Answer, Context};
use muster_sys as sys;
use std::collections::{HashMap, VecDeque};
use std::os::raw::c_void;
use std::os::unix::io::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::time::{Duration, Instant};

/// Where a program learns what happened: completions of what it has begun, readiness of what it watches.
///
/// Requests to transports and managers of the program's own are carried out inside [`Queue::next`], on a thread that
/// calls it, one at a time; so they must not wait for the queue themselves. A clone is the same queue. Dropping the last
/// clone ends what was begun with it, and frees the buffers that were handed over. A stream of which part of such a
/// buffer had been sent is then aborted.
#[derive(Clone)]
pub struct Queue {
    raw: Arc<Raw>,
}

struct Raw {
    queue: *mut sys::muster_queue,
    context: Context,
    state: Mutex<State>,
    changed: Condvar,
    lent: Mutex<Loans>,
    descriptor: Mutex<Option<OwnedFd>>, // once somebody has asked for it
}

#[derive(Default)]
struct State {
    taken: VecDeque<Event>, // off the queue, and not yet given to anybody
    leading: bool, // a thread is in muster_queue_dispatch(); only one, so that callbacks have what is theirs alone
    cancels: u64,  // so often were waits ended
}

// Buffers that the library holds. Each has a number, which is the tag in C; no event comes for a number that is not
// here any more.
#[derive(Default)]
struct Loans {
    numbers: u64,
    buffers: HashMap<u64, Lent>,
}

struct Lent {
    tag: u64,
    data: Vec<u8>,
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
    /// A listen that was begun has ended.
    Listen {
        /// The program's own.
        tag: u64,
        /// The listener, which is open, or why there is none.
        result: Result<Listener>,
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
    /// [`Store::begin`](crate::Store::begin) has ended.
    Store {
        /// The program's own.
        tag: u64,
        /// What became of it.
        result: Result<Answer>,
    },
    /// Something this crate has no form of. An object in it is the program's.
    Other(sys::muster_completion, Error),
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
                descriptor: Mutex::default(),
            }),
        })
    }

    /// The next thing that happened; None: nothing has in that time. Once the queue is closed and empty an error,
    /// [`Status::CLOSED`](crate::Status::CLOSED).
    pub fn next(&self, timeout: Option<Duration>) -> Result<Option<Event>> {
        let until = timeout.and_then(|time| Instant::now().checked_add(time)); // what is too far away has no end
        let mut state = self.raw.state.lock().unwrap();
        let cancels = state.cancels;
        loop {
            if let Some(event) = state.taken.pop_front() {
                return Ok(Some(event));
            }
            if state.cancels != cancels {
                return Err(Error::of(sys::MUSTER_E_CANCELED));
            }
            let left = until.map(|at| at.saturating_duration_since(Instant::now()));
            if !state.leading {
                state.leading = true;
                drop(state);
                let mut taking = Taking { events: VecDeque::new(), lent: &self.raw.lent };
                let user: *mut Taking = &mut taking;
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
                state.taken.append(&mut taking.events);
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
        self.raw.state.lock().unwrap().cancels += 1; // for those that wait until another thread has taken something
        self.raw.changed.notify_all();
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
    pub(crate) fn downgrade(&self) -> WeakQueue {
        WeakQueue(Arc::downgrade(&self.raw))
    }

    // Begins an operation with a buffer that is the library's until its completion is taken. If that cannot be begun the
    // buffer comes back at once.
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
            lent.buffers.insert(number, Lent { tag, data });
            number
        };
        let status = begin(place, number);
        if status == sys::MUSTER_OK {
            return Ok(());
        }
        // Of some failures a completion comes, too, which is passed over as its number is gone; unless another thread
        // has taken it already: then the event has told.
        match self.raw.lent.lock().unwrap().buffers.remove(&number) {
            Some(lent) => Err((Error::of(status), lent.data)),
            None => Ok(()),
        }
    }

    fn descriptor(&self) -> Result<OwnedFd> {
        let mut fd = -1;
        check_status(unsafe { sys::muster_queue_fd(self.raw.queue, &mut fd) })?;
        Ok(unsafe { OwnedFd::from_raw_fd(fd) }) // a duplicate, which is the caller's
    }
}

impl AsFd for Queue {
    /// Readable when there is something to be taken; for poll, epoll, or a reactor.
    ///
    /// # Panics
    /// If this process has no descriptor left, or if the queue was closed before the first call.
    fn as_fd(&self) -> BorrowedFd<'_> {
        let mut kept = self.raw.descriptor.lock().unwrap();
        let fd = kept.get_or_insert_with(|| self.descriptor().expect("the descriptor of a queue")).as_raw_fd();
        unsafe { BorrowedFd::borrow_raw(fd) } // it is kept, and not replaced, as long as the queue lives
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

// What a thread takes off the queue.
struct Taking<'a> {
    events: VecDeque<Event>,
    lent: &'a Mutex<Loans>,
}

unsafe extern "C" fn take(user: *mut c_void, entry: *const sys::muster_completion, error: *const sys::muster_error) {
    let taking = &mut *user.cast::<Taking>();
    let (entry, detail) = (&*entry, &*error);
    let failure = || Error::with(entry.status, detail);
    let result = || if entry.status == sys::MUSTER_OK { Ok(()) } else { Err(failure()) };
    let given_back = || taking.lent.lock().unwrap_or_else(|why| why.into_inner()).buffers.remove(&entry.tag);
    taking.events.push_back(match entry.kind {
        sys::MUSTER_DONE_READ | sys::MUSTER_DONE_RELEASED => match given_back() {
            None => return, // whoever began it has it back already
            Some(Lent { tag, mut data }) if entry.kind == sys::MUSTER_DONE_READ => {
                data.set_len(entry.bytes as usize); // so many were written into its room
                Event::Read { tag, data, result: result() }
            }
            Some(Lent { tag, data }) => Event::Released { tag, data, result: result() },
        },
        sys::MUSTER_DONE_DIAL if entry.object.is_null() => Event::Dial { tag: entry.tag, result: Err(failure()) },
        sys::MUSTER_DONE_DIAL => Event::Dial { tag: entry.tag, result: Ok(Stream::adopt(entry.object.cast())) },
        sys::MUSTER_DONE_LISTEN if entry.object.is_null() => Event::Listen { tag: entry.tag, result: Err(failure()) },
        sys::MUSTER_DONE_LISTEN => Event::Listen { tag: entry.tag, result: Ok(Listener::adopt(entry.object.cast())) },
        sys::MUSTER_DONE_STORE if entry.object.is_null() => Event::Store { tag: entry.tag, result: Err(failure()) },
        sys::MUSTER_DONE_STORE => {
            Event::Store { tag: entry.tag, result: Ok(Answer::take(entry.status, entry.object.cast())) }
        }
        sys::MUSTER_DONE_EXIT => Event::Exit { tag: entry.tag, exit: Exit::from_bits(entry.bytes) },
        sys::MUSTER_DONE_USER => Event::User { tag: entry.tag, value: entry.bytes },
        sys::MUSTER_EVENT_READY => Event::Ready { tag: entry.tag, events: entry.events },
        _ => Event::Other(*entry, failure()),
    });
}
