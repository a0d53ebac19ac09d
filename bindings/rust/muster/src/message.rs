// SPDX-License-Identifier: MIT
use crate::error::{check_status, Result};
use muster_sys as sys;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr;
use std::slice;

/// A message: a header of numbers, and frames of bytes. Frames of a received message are borrowed from it without a
/// copy.
///
/// ```no_run
/// # use muster::Message;
/// let message = Message::new(300).to(1000).target(7, -1).frame(b"gradient").frame(&[0; 4096]);
/// ```
pub struct Message {
    raw: *mut sys::muster_message,
}

// Calls on a message are made by one thread at a time (message.h); shared references only read.
unsafe impl Send for Message {}
unsafe impl Sync for Message {}

impl Drop for Message {
    fn drop(&mut self) {
        unsafe { sys::muster_message_release(self.raw) }
    }
}

impl Clone for Message {
    fn clone(&self) -> Message {
        let mut raw = ptr::null_mut();
        check_status(unsafe { sys::muster_message_copy(self.raw, &mut raw) }).expect("memory for a message");
        Message { raw }
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<usize> = self.frames().map(<[u8]>::len).collect();
        write!(f, "Message {} from {:#x} to {:#x}, frames {:?}", self.kind(), self.source(), self.destination(), sizes)
    }
}

impl Message {
    /// An empty message of a type; those of programs begin with 256.
    pub fn new(kind: u32) -> Message {
        let mut raw = ptr::null_mut();
        check_status(unsafe { sys::muster_message_create(&mut raw) }).expect("memory for a message");
        Message { raw }.with(|header| header.r#type = kind)
    }

    pub(crate) fn adopt(raw: *mut sys::muster_message) -> Message {
        Message { raw }
    }
    pub(crate) fn as_raw(&self) -> *mut sys::muster_message {
        self.raw
    }
    pub(crate) fn into_raw(self) -> *mut sys::muster_message {
        ManuallyDrop::new(self).raw
    }

    fn header(&self) -> sys::muster_message_header {
        let mut header = sys::muster_message_header::sized();
        unsafe { sys::muster_message_get_header(self.raw, &mut header) };
        header
    }
    fn with(self, change: impl FnOnce(&mut sys::muster_message_header)) -> Message {
        let mut header = self.header();
        change(&mut header);
        unsafe { sys::muster_message_set_header(self.raw, &header) };
        self
    }

    /// Sets the address of the receiver; a dealer may leave it 0.
    pub fn to(self, destination: u64) -> Message {
        self.with(|header| header.destination = destination)
    }
    /// Sets the address of the sender; without it the socket sets its own.
    pub fn from(self, source: u64) -> Message {
        self.with(|header| header.source = source)
    }
    /// Sets what the message is about, and its version.
    pub fn target(self, target: u64, version: i64) -> Message {
        self.with(|header| {
            header.target = target;
            header.target_version = version;
        })
    }
    /// Adds a frame with a copy of bytes. Panics without memory, or beyond 65,535 frames.
    pub fn frame(self, bytes: &[u8]) -> Message {
        let status = unsafe { sys::muster_message_add_frame(self.raw, bytes.as_ptr().cast(), bytes.len() as _) };
        check_status(status).expect("room for a frame");
        self
    }
    /// The message that goes back: source and destination are exchanged, type, target and frames stay.
    pub fn answer(self) -> Message {
        unsafe { sys::muster_message_swap_addresses(self.raw) };
        self
    }

    /// Type.
    pub fn kind(&self) -> u32 {
        self.header().r#type
    }
    /// Address of the sender.
    pub fn source(&self) -> u64 {
        self.header().source
    }
    /// Address of the receiver.
    pub fn destination(&self) -> u64 {
        self.header().destination
    }
    /// What the message is about.
    pub fn about(&self) -> (u64, i64) {
        let header = self.header();
        (header.target, header.target_version)
    }
    /// Number of forwarders that it has passed.
    pub fn hops(&self) -> u32 {
        self.header().hops
    }
    /// Number of frames.
    pub fn len(&self) -> usize {
        unsafe { sys::muster_message_frame_count(self.raw) as usize }
    }
    /// It has no frame.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// A frame; None past the last one.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let mut frame = sys::muster_buffer { data: ptr::null(), bytes: 0 };
        let status = unsafe { sys::muster_message_frame(self.raw, u32::try_from(index).ok()?, &mut frame) };
        let found: Result<()> = check_status(status);
        found.ok()?;
        if frame.bytes == 0 {
            return Some(&[]);
        }
        Some(unsafe { slice::from_raw_parts(frame.data.cast(), frame.bytes as usize) })
    }
    /// The frames in order.
    pub fn frames(&self) -> impl Iterator<Item = &[u8]> + '_ {
        (0..self.len()).filter_map(move |index| self.get(index))
    }
}
