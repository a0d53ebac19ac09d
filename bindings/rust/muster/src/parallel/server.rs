// SPDX-License-Identifier: MIT
//! The called side: executes the requests of one connection in order.
use super::member::MemberHere;
use super::message::{frame, send, Inbox, Message, MAP, SENTENCE, VALUE};
use super::{value, Here, Outcome};
use crate::Stream;
use std::cell::RefCell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

pub(super) struct Server {
    stream: Stream,
    inbox: Mutex<Inbox>, // of the thread that reads
    replies: Mutex<()>,
}

// Decides which thread reads the next request of a connection.
pub(super) struct Turn {
    server: Arc<Server>,
    here: Arc<MemberHere>,
    handed_on: AtomicBool,
}

impl Turn {
    // While a function waits for a call that it makes, another thread serves the connection over which it was called.
    pub(super) fn hand_on(&self) {
        if !self.handed_on.swap(true, Ordering::AcqRel) {
            let (server, here) = (self.server.clone(), self.here.clone());
            thread::spawn(move || server.serve(here));
        }
    }
}

thread_local! {
    static SERVING: RefCell<Option<Arc<Turn>>> = const { RefCell::new(None) };
}

// For a call that is made by a Team on the thread of the function, not by its Here.
pub(super) fn hand_on() {
    SERVING.with(|serving| {
        if let Some(turn) = serving.borrow().as_ref() {
            turn.hand_on();
        }
    });
}

impl Server {
    pub(super) fn new(stream: Stream) -> Server {
        Server { stream, inbox: Mutex::default(), replies: Mutex::default() }
    }

    // On a thread of its own, until another thread has taken over.
    pub(super) fn serve(self: Arc<Self>, here: Arc<MemberHere>) {
        let handed_on = AtomicBool::new(false);
        let turn = Arc::new(Turn { server: self.clone(), here: here.clone(), handed_on });
        SERVING.with(|serving| *serving.borrow_mut() = Some(turn.clone()));
        let mut at = Here { member: here, interrupts: 0, turn: Some(turn.clone()) };
        loop {
            let came = self.inbox.lock().unwrap().receive(&self.stream);
            let message = match came {
                Ok(message) => message,
                Err(_) => break,
            };
            at.interrupts = at.member.interrupts.load(Ordering::Relaxed);
            let answer = self.run(&at, &message);
            let handed_on = turn.handed_on.load(Ordering::Acquire);
            let sent = {
                let _one = self.replies.lock().unwrap();
                send(&self.stream, answer)
            };
            if sent.is_err() || handed_on {
                return;
            }
        }
        let _ = self.stream.close(Some(Duration::ZERO));
    }

    fn run(&self, at: &Here, message: &Message) -> Vec<u8> {
        let mut answer = frame(message.question, VALUE);
        let done = catch_unwind(AssertUnwindSafe(|| self.run_named(at, message, &mut answer)))
            .unwrap_or_else(|why| Err(format!("the function panicked: {}", panic_text(&*why))));
        if let Err(sentence) = done {
            answer = frame(message.question, SENTENCE);
            answer.extend_from_slice(sentence.as_bytes());
        }
        answer
    }

    fn run_named(&self, here: &Here, message: &Message, result: &mut Vec<u8>) -> Outcome<()> {
        let body = &message.body;
        let size = body.get(..2).map(|two| u16::from_le_bytes([two[0], two[1]]) as usize).ok_or("no name")?;
        let name = body.get(2..2 + size).and_then(|name| std::str::from_utf8(name).ok()).ok_or("no name")?;
        let function = here.member.functions.all.get(name);
        let function = function.ok_or_else(|| format!("there is no function \"{}\" here", name))?;
        let argument = &body[2 + size..];
        if message.kind != MAP {
            return function(here, argument, result);
        }
        // Entries, each with its length.
        let mut rest = argument;
        while !rest.is_empty() {
            let (entry, others) = value::take_sized(rest).ok_or("a list that is cut off")?;
            value::put_sized(result, |to| function(here, entry, to))?;
            rest = others;
        }
        Ok(())
    }
}

fn panic_text(why: &(dyn std::any::Any + Send)) -> &str {
    let text = why.downcast_ref::<&str>().copied();
    text.or_else(|| why.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without a text")
}
