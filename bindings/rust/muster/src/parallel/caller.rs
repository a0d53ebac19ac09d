// SPDX-License-Identifier: MIT
//! Calling: questions of many threads over one stream, each with its answer.
use super::message::{frame, send, Inbox, Message, VALUE};
use super::CallError;
use crate::error::{Error, Status};
use crate::Stream;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};

// A stream by which a member is called. Whoever waits for an answer reads, if nobody does yet, also those of others: so
// one call alone costs no change of threads.
pub(super) struct Caller {
    pub(super) stream: Stream,
    inbox: Mutex<Inbox>, // whoever reads
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
    waiting: usize,     // for `changed`: to tell nobody is a system call, too
    why: Option<Error>, // nothing comes any more
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

    // Sends a question; its number is for `answer`. After an error the other side has not had all of it.
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

    // What the question was answered with.
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
                self.changed.notify_all(); // one of them has its answer, or reads
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
