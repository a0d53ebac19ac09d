// SPDX-License-Identifier: MIT
//! The calling side: requests of many threads over one stream, each with its reply.
use super::message::{frame, send, Inbox, Message, VALUE};
use super::CallError;
use crate::error::{Error, Status};
use crate::Stream;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};

// A stream over which a member is called. A thread that waits for its reply reads the stream unless another thread
// does; it also receives the replies of other threads. So a single call needs no change of threads.
pub(super) struct Caller {
    pub(super) stream: Stream,
    inbox: Mutex<Inbox>, // of the thread that reads
    questions: AtomicU64,
    sending: Mutex<()>,
    state: Mutex<Answers>,
    changed: Condvar,
    pub(super) over: AtomicBool,
}

#[derive(Default)]
struct Answers {
    there: BTreeMap<u64, Message>,
    reading: bool,
    waiting: usize,     // on `changed`: a notification without a waiter is a system call, too
    why: Option<Error>, // set when the stream has ended
}

impl Caller {
    pub(super) fn new(stream: Stream) -> Caller {
        Caller {
            stream,
            inbox: Mutex::default(),
            questions: AtomicU64::new(0),
            sending: Mutex::new(()),
            state: Mutex::default(),
            changed: Condvar::new(),
            over: AtomicBool::new(false),
        }
    }

    // Sends a request; its number is for `answer`. After an error the other side has not received all of it.
    pub(super) fn ask(&self, kind: u8, name: &str, put: impl FnOnce(&mut Vec<u8>)) -> Result<u64, CallError> {
        let question = self.questions.fetch_add(1, Ordering::Relaxed);
        let mut bytes = frame(question, kind);
        bytes.extend_from_slice(&(name.len() as u16).to_le_bytes());
        bytes.extend_from_slice(name.as_bytes());
        put(&mut bytes);
        let sent = {
            let _one = self.sending.lock().unwrap();
            send(&self.stream, bytes)
        };
        if let Err(why) = sent {
            return Err(CallError::Lost(self.end(&why)));
        }
        Ok(question)
    }

    // The reply to a request.
    pub(super) fn answer(&self, question: u64) -> Result<Vec<u8>, CallError> {
        let answer = self.wait_for(question)?;
        match answer.kind {
            VALUE => Ok(answer.body),
            _ => Err(CallError::Failed(String::from_utf8_lossy(&answer.body).into_owned())),
        }
    }

    fn wait_for(&self, question: u64) -> Result<Message, CallError> {
        let mut state = self.state.lock().unwrap();
        loop {
            if let Some(answer) = state.there.remove(&question) {
                return Ok(answer);
            }
            if let Some(why) = &state.why {
                return Err(CallError::Lost(why.clone()));
            }
            if state.reading {
                state.waiting += 1;
                state = self.changed.wait(state).unwrap();
                state.waiting -= 1;
                continue;
            }
            state.reading = true;
            drop(state);
            let came = self.inbox.lock().unwrap().receive(&self.stream);
            let ended = came.as_ref().err().map(|why| self.end(why));
            state = self.state.lock().unwrap();
            state.reading = false;
            if state.waiting > 0 {
                self.changed.notify_all(); // one of them has its reply, or reads
            }
            match came {
                Ok(message) if message.question == question => return Ok(message),
                Ok(message) => drop(state.there.insert(message.question, message)),
                Err(_) => state.why = state.why.take().or(ended),
            }
        }
    }

    fn end(&self, why: &io::Error) -> Error {
        self.over.store(true, Ordering::Release);
        match why.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
            Some(error) => error.clone(),
            None => Error::new(Status::PEER, "the worker closed the connection"),
        }
    }
}
