// SPDX-License-Identifier: MIT
//! The messages between the calling and the called side.
//! A length of 8 bytes, then: number of the request (8); kind (1); in a request the length of the name (2), the name
//! and the argument; in a reply the value, or the text of the error.
use crate::Stream;
use std::io::{self, Read, Write};

const LONGEST: u64 = 1 << 40; // of a message

pub(super) const CALL: u8 = 1;
pub(super) const MAP: u8 = 2;
pub(super) const VALUE: u8 = 3;
pub(super) const SENTENCE: u8 = 4;
const HEAD: usize = 8 + 8 + 1;

pub(super) fn frame(question: u64, kind: u8) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(256);
    bytes.resize(HEAD, 0);
    bytes[8..16].copy_from_slice(&question.to_le_bytes());
    bytes[16] = kind;
    bytes
}

pub(super) fn send(stream: &Stream, mut bytes: Vec<u8>) -> io::Result<()> {
    let size = (bytes.len() - 8) as u64;
    bytes[..8].copy_from_slice(&size.to_le_bytes());
    let mut to = stream;
    to.write_all(&bytes)
}

pub(super) struct Message {
    pub(super) question: u64,
    pub(super) kind: u8,
    pub(super) body: Vec<u8>,
}

// Bytes of a stream that were received and not consumed yet: one read may receive many short messages.
pub(super) struct Inbox {
    bytes: Vec<u8>,
    first: usize,
    past: usize,
}

impl Default for Inbox {
    fn default() -> Inbox {
        Inbox { bytes: vec![0; 4096], first: 0, past: 0 }
    }
}

impl Inbox {
    // Until the first bytes of a message have arrived.
    fn wait_for_head(&mut self, mut from: &Stream) -> io::Result<[u8; HEAD]> {
        while self.past - self.first < HEAD {
            self.bytes.copy_within(self.first..self.past, 0);
            self.past -= self.first;
            self.first = 0;
            match from.read(&mut self.bytes[self.past..])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                more => self.past += more,
            }
        }
        let head = self.bytes[self.first..self.first + HEAD].try_into().expect("so many bytes");
        self.first += HEAD;
        Ok(head)
    }

    fn take(&mut self, most: usize) -> &[u8] {
        let first = self.first;
        self.first += most.min(self.past - first);
        &self.bytes[first..self.first]
    }

    // The length of a message is not trusted: memory is reserved as its bytes arrive.
    pub(super) fn receive(&mut self, mut from: &Stream) -> io::Result<Message> {
        let head = self.wait_for_head(from)?;
        let number = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes"));
        let size = number(0);
        if !(9..=LONGEST).contains(&size) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a message of no such length"));
        }
        let size = (size - 9) as usize;
        let mut body = self.take(size).to_vec();
        while body.len() < size {
            let there = body.len();
            body.resize(there + (size - there).min(1 << 24), 0);
            from.read_exact(&mut body[there..])?;
        }
        Ok(Message { question: number(8), kind: head[16], body })
    }
}
