// SPDX-License-Identifier: MIT
//! The events of a queue.
use crate::agent::AgentStep;
use crate::am::Request;
use crate::error::{Error, Result};
use crate::process::Exit;
use crate::queue::Lent;
use crate::stream::{Listener, Stream};
use crate::Answer;
use muster_sys as sys;

/// An event. `tag` is the value that the program has given for the object or operation.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// [`Stream::read_begin`] has ended; the buffer has as many bytes as were read.
    Read {
        /// The value of the program.
        tag: u64,
        /// The buffer that was passed.
        data: Vec<u8>,
        /// Why it ended before it was full.
        result: Result<()>,
    },
    /// [`Stream::write_owned`] has ended.
    Released {
        /// The value of the program.
        tag: u64,
        /// The buffer that was passed, unchanged.
        data: Vec<u8>,
        /// Whether all of it was sent.
        result: Result<()>,
    },
    /// A dial that was begun has ended.
    Dial {
        /// The value of the program.
        tag: u64,
        /// The stream, or why there is none.
        result: Result<Stream>,
    },
    /// A listen that was begun has ended.
    Listen {
        /// The value of the program.
        tag: u64,
        /// The listener, which is open, or why there is none.
        result: Result<Listener>,
    },
    /// A process that is watched has ended.
    Exit {
        /// The value of the program.
        tag: u64,
        /// How it has ended.
        exit: Exit,
    },
    /// An entry of [`crate::Queue::post`].
    User {
        /// As it was posted.
        tag: u64,
        /// As it was posted.
        value: u64,
    },
    /// A watched object is ready, for the bits of `muster_stream_event`.
    Ready {
        /// The value of the program.
        tag: u64,
        /// `MUSTER_STREAM_READABLE` and so on.
        events: u32,
    },
    /// [`Store::begin`](crate::Store::begin) has ended.
    Store {
        /// The value of the program.
        tag: u64,
        /// Its outcome.
        result: Result<Answer>,
    },
    /// A request of a peer of an [`Endpoint`](crate::Endpoint) that this program answers.
    Request {
        /// The value of the program.
        tag: u64,
        /// The request.
        request: Request,
    },
    /// A step of an [`Agent`](crate::Agent).
    Agent {
        /// The value of the program.
        tag: u64,
        /// The step.
        step: AgentStep,
    },
    /// An [`Agent`](crate::Agent) is over.
    AgentEnded {
        /// The value of the program.
        tag: u64,
        /// An error has the rank of the worker that failed first, if one did.
        result: Result<()>,
    },
    /// An event that this crate does not wrap. An object in it belongs to the program.
    Other(sys::muster_completion, Error),
}

// The object of a completion is a handle, which any thread may use.
unsafe impl Send for Event {}

impl Event {
    // `given_back`: takes the buffer of that number from those that are lent. None: the completion of an operation
    // whose
    // beginning was refused, and whose buffer was given back then.
    //
    // Safety: the entry was taken off a queue, and the object in it is the caller's.
    pub(crate) unsafe fn of(
        entry: &sys::muster_completion,
        detail: &sys::muster_error,
        given_back: impl FnOnce(u64) -> Option<Lent>,
    ) -> Option<Event> {
        let failure = || Error::with(entry.status, detail);
        let result = || if entry.status == sys::MUSTER_OK { Ok(()) } else { Err(failure()) };
        let tag = entry.tag;
        Some(match entry.kind {
            sys::MUSTER_DONE_READ => {
                let Lent { tag, mut data, .. } = given_back(tag)?;
                data.set_len(entry.bytes as usize); // so many were written into its room
                Event::Read { tag, data, result: result() }
            }
            sys::MUSTER_DONE_RELEASED => {
                let Lent { tag, data, .. } = given_back(tag)?;
                Event::Released { tag, data, result: result() }
            }
            sys::MUSTER_DONE_DIAL if entry.object.is_null() => Event::Dial { tag, result: Err(failure()) },
            sys::MUSTER_DONE_DIAL => Event::Dial { tag, result: Ok(Stream::adopt(entry.object.cast())) },
            sys::MUSTER_DONE_LISTEN if entry.object.is_null() => Event::Listen { tag, result: Err(failure()) },
            sys::MUSTER_DONE_LISTEN => Event::Listen { tag, result: Ok(Listener::adopt(entry.object.cast())) },
            sys::MUSTER_DONE_STORE if entry.object.is_null() => Event::Store { tag, result: Err(failure()) },
            sys::MUSTER_DONE_STORE => Event::Store { tag, result: Ok(Answer::take(entry.status, entry.object.cast())) },
            sys::MUSTER_DONE_EXIT => Event::Exit { tag, exit: Exit::from_bits(entry.bytes) },
            sys::MUSTER_DONE_USER => Event::User { tag, value: entry.bytes },
            sys::MUSTER_EVENT_READY => Event::Ready { tag, events: entry.events },
            sys::MUSTER_REQUEST_AM => Event::Request { tag, request: Request::adopt(entry.object.cast()) },
            sys::MUSTER_EVENT_AGENT => Event::Agent { tag, step: AgentStep::of(entry, failure()) },
            sys::MUSTER_DONE_AGENT => Event::AgentEnded { tag, result: result() },
            _ => Event::Other(*entry, failure()),
        })
    }
}
