// SPDX-License-Identifier: MIT
use crate::error::{check, check_status, Error, Result, Status};
use crate::{timeout_ns, Context, Queue};
use muster_sys as sys;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// A bidirectional, ordered stream of bytes between two members. Any number of threads may use it: one at a time in
/// each direction, others wait.
///
/// `Read` and `Write` are those of `std::io`, also for `&Stream`; they wait up to the time of [`Stream::set_timeout`],
/// and fail with `WouldBlock` or `TimedOut` then.
#[derive(Debug)]
pub struct Stream {
    raw: *mut sys::muster_stream,
    timeout_ns: AtomicI64,
}

// The functions of a stream may be called by any thread (stream.h); what has to stay on one, reserve, is not here, and
// a peek is in
// Buffered, which is not Send.
unsafe impl Send for Stream {}
unsafe impl Sync for Stream {}

impl Drop for Stream {
    fn drop(&mut self) {
        unsafe { sys::muster_stream_release(self.raw) }
    }
}

impl Stream {
    pub(crate) fn adopt(raw: *mut sys::muster_stream) -> Stream {
        Stream { raw, timeout_ns: AtomicI64::new(-1) }
    }

    /// Connects to the listener at an address.
    pub fn dial(context: &Context, address: &str, timeout: Option<Duration>) -> Result<Stream> {
        let mut raw = ptr::null_mut();
        check(|detail| unsafe {
            sys::muster_transport_dial(
                context.as_raw(),
                address.as_ptr().cast(),
                address.len(),
                ptr::null(),
                timeout_ns(timeout),
                &mut raw,
                detail,
            )
        })?;
        Ok(Stream::adopt(raw))
    }

    /// Begins to connect; the queue receives [`Event::Dial`](crate::Event::Dial).
    pub fn dial_begin(queue: &Queue, address: &str, timeout: Option<Duration>, tag: u64) -> Result<()> {
        check(|detail| unsafe {
            sys::muster_transport_dial_begin(
                queue.context().as_raw(),
                address.as_ptr().cast(),
                address.len(),
                ptr::null(),
                timeout_ns(timeout),
                queue.as_raw(),
                tag,
                detail,
            )
        })
    }

    /// Makes the two ends of a stream within this process.
    pub fn pair(context: &Context) -> Result<(Stream, Stream)> {
        let (mut first, mut second) = (ptr::null_mut(), ptr::null_mut());
        check(|detail| unsafe {
            sys::muster_stream_pair(context.as_raw(), ptr::null(), &mut first, &mut second, detail)
        })?;
        Ok((Stream::adopt(first), Stream::adopt(second)))
    }

    /// Sets the time that `Read` and `Write` wait: None is endless, zero does not wait.
    pub fn set_timeout(&self, timeout: Option<Duration>) {
        self.timeout_ns.store(timeout_ns(timeout), Ordering::Relaxed);
    }

    /// Reads the bytes that are available, at least one; returns 0 at the orderly end of the stream.
    pub fn read_some(&self, data: &mut [u8], timeout: Option<Duration>) -> Result<usize> {
        self.read_ns(data, timeout_ns(timeout))
    }

    fn read_ns(&self, data: &mut [u8], timeout_ns: i64) -> Result<usize> {
        let mut moved = 0;
        let status =
            unsafe { sys::muster_stream_read(self.raw, data.as_mut_ptr().cast(), data.len(), timeout_ns, &mut moved) };
        match status {
            sys::MUSTER_OK => Ok(moved),
            sys::MUSTER_E_END => Ok(0),
            _ if moved > 0 => Ok(moved),
            status => Err(self.failure(status)),
        }
    }

    /// Fills the slice, or reads fewer bytes if the stream ends in order before. After an error the slice has the bytes
    /// that were read.
    pub fn read_into(&self, data: &mut [u8], timeout: Option<Duration>) -> Result<usize> {
        if data.is_empty() {
            return Ok(0);
        }
        let mut moved = 0;
        let status = unsafe {
            sys::muster_stream_read_into(
                self.raw,
                data.as_mut_ptr().cast(),
                data.len(),
                0,
                timeout_ns(timeout),
                &mut moved,
            )
        };
        match status {
            sys::MUSTER_OK | sys::MUSTER_E_END => Ok(moved),
            status => Err(self.failure(status)),
        }
    }

    /// Received bytes in the memory of the library, without a copy: a [`std::io::BufRead`]. Other reads of the stream
    /// fail with [`Status::BUSY`](crate::Status::BUSY) while it has bytes that were not consumed.
    pub fn buffered(&self) -> Buffered<'_> {
        Buffered { stream: self, shown: ptr::null(), size: 0, at: 0 }
    }

    /// Writes the same bytes to many streams at the same time. Returns the result for each stream, and the number of
    /// bytes written.
    pub fn write_many(streams: &[&Stream], data: &[u8], timeout: Option<Duration>) -> Vec<(Result<()>, usize)> {
        let raw: Vec<_> = streams.iter().map(|stream| stream.raw).collect();
        let (mut statuses, mut moved) = (vec![0; raw.len()], vec![0; raw.len()]);
        let status = unsafe {
            sys::muster_stream_write_many(
                raw.as_ptr(),
                raw.len() as u32,
                data.as_ptr().cast(),
                data.len(),
                timeout_ns(timeout),
                statuses.as_mut_ptr(),
                moved.as_mut_ptr(),
            )
        };
        let whole = [sys::MUSTER_E_ARG, sys::MUSTER_E_NOMEM, sys::MUSTER_E_FORKED].contains(&status);
        let of = |i: usize| if whole { status } else { statuses[i] };
        (0..raw.len()).map(|i| (check_status(of(i)).map_err(|_| streams[i].failure(of(i))), moved[i])).collect()
    }

    /// Why the stream has ended: the number and the text of an abort, or the error of the system. None: it has not
    /// ended.
    pub fn reason(&self) -> Option<(u64, Error)> {
        let (mut reason, mut detail) = (0, sys::muster_error::default());
        match unsafe { sys::muster_stream_reason(self.raw, &mut reason, &mut detail) } {
            sys::MUSTER_OK => None,
            status => Some((reason, Error::with(status, &detail))),
        }
    }

    // The error of a call, with the reason for the end of the stream.
    fn failure(&self, status: i32) -> Error {
        match self.reason() {
            Some((_, why)) if why.status() == Status(status) => why,
            _ => Error::of(status),
        }
    }

    /// Writes the bytes for which there is room within the timeout; returns their number.
    pub fn write_some(&self, data: &[u8], timeout: Option<Duration>) -> Result<usize> {
        self.write_ns(data, timeout_ns(timeout))
    }

    fn write_ns(&self, data: &[u8], timeout_ns: i64) -> Result<usize> {
        let mut moved = 0;
        let status =
            unsafe { sys::muster_stream_write(self.raw, data.as_ptr().cast(), data.len(), timeout_ns, &mut moved) };
        if status == sys::MUSTER_OK || moved > 0 {
            return Ok(moved);
        }
        Err(self.failure(status))
    }

    /// Passes a buffer to the library to be written; [`Event::Released`](crate::Event::Released) returns it. An error
    /// returns it at once, and no event follows.
    pub fn write_owned(&self, data: Vec<u8>, queue: &Queue, tag: u64) -> std::result::Result<(), (Error, Vec<u8>)> {
        let size = data.len();
        queue.lend(data, tag, |place, number| unsafe {
            sys::muster_stream_write_owned(self.raw, place.cast(), size, queue.as_raw(), number)
        })
    }

    /// Begins to read until the capacity of the buffer is full or the stream has ended;
    /// [`Event::Read`](crate::Event::Read) returns it.
    pub fn read_begin(&self, mut data: Vec<u8>, queue: &Queue, tag: u64) -> std::result::Result<(), (Error, Vec<u8>)> {
        data.clear();
        let room = data.capacity();
        queue.lend(data, tag, |place, number| unsafe {
            sys::muster_stream_read_begin(self.raw, place.cast(), room, 0, queue.as_raw(), number)
        })
    }

    /// Watches the stream: the queue receives [`Event::Ready`](crate::Event::Ready) for the bits of
    /// `muster_stream_event` in `interest`.
    pub fn watch(&self, interest: u32, queue: &Queue, tag: u64) -> Result<()> {
        check_status(unsafe { sys::muster_stream_watch(self.raw, interest, queue.as_raw(), tag) })
    }

    /// Ends the direction of writing: the peer reads the end of the stream.
    pub fn finish(&self) -> Result<()> {
        check_status(unsafe { sys::muster_stream_finish(self.raw) })
    }

    /// Ends both directions at once, with a reason for the peer.
    pub fn abort(&self, reason: u64, text: &str) -> Result<()> {
        check_status(unsafe { sys::muster_stream_abort(self.raw, reason, text.as_ptr().cast(), text.len()) })
    }

    /// Closes the stream; waits until the bytes that were written have been sent.
    pub fn close(&self, timeout: Option<Duration>) -> Result<()> {
        check_status(unsafe { sys::muster_stream_close(self.raw, timeout_ns(timeout)) })
    }

    /// Ends the current waits of other threads on this stream.
    pub fn cancel(&self) -> Result<()> {
        check_status(unsafe { sys::muster_stream_cancel(self.raw, 3) })
    }

    /// A description of the peer, for messages.
    pub fn peer(&self) -> Result<String> {
        text_from(|to, room, size| unsafe { sys::muster_stream_peer(self.raw, to, room, size) })
    }

    /// The address of the socket at this end, such as `tcp://10.0.0.7:41022`; an error of [`Status::UNSUPPORTED`] for
    /// another transport than tcp.
    ///
    /// [`Status::UNSUPPORTED`]: crate::Status::UNSUPPORTED
    pub fn local_address(&self) -> Result<String> {
        text_from(|to, room, size| unsafe { sys::muster_stream_local_address(self.raw, to, room, size) })
    }

    /// The handle of the C interface; this object keeps the ownership.
    pub fn as_raw(&self) -> *mut sys::muster_stream {
        self.raw
    }
}

impl io::Read for &Stream {
    fn read(&mut self, data: &mut [u8]) -> io::Result<usize> {
        if data.is_empty() {
            return Ok(0);
        }
        Ok(self.read_ns(data, self.timeout_ns.load(Ordering::Relaxed))?)
    }
}

impl io::Write for &Stream {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        Ok(self.write_ns(data, self.timeout_ns.load(Ordering::Relaxed))?)
    }
    fn flush(&mut self) -> io::Result<()> {
        let timeout = self.timeout_ns.load(Ordering::Relaxed);
        Ok(check_status(unsafe { sys::muster_stream_flush(self.raw, timeout) })?)
    }
}

impl io::Read for Stream {
    fn read(&mut self, data: &mut [u8]) -> io::Result<usize> {
        (&*self).read(data)
    }
}

impl io::Write for Stream {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        (&*self).write(data)
    }
    fn flush(&mut self) -> io::Result<()> {
        (&*self).flush()
    }
}

/// Received bytes of a stream; see [`Stream::buffered`]. It waits up to the time of [`Stream::set_timeout`].
#[derive(Debug)]
pub struct Buffered<'s> {
    stream: &'s Stream,
    shown: *const u8, // by a peek; null: none
    size: usize,
    at: usize,
}

impl Buffered<'_> {
    fn consume_shown(&mut self) {
        if !self.shown.is_null() {
            self.shown = ptr::null();
            unsafe { sys::muster_stream_consume(self.stream.raw, self.at) };
        }
    }
}

impl io::BufRead for Buffered<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.shown.is_null() {
            let (mut data, mut size) = (ptr::null(), 0);
            let timeout = self.stream.timeout_ns.load(Ordering::Relaxed);
            match unsafe { sys::muster_stream_peek(self.stream.raw, 1, timeout, &mut data, &mut size) } {
                sys::MUSTER_OK => (self.shown, self.size, self.at) = (data.cast(), size, 0),
                sys::MUSTER_E_END => return Ok(&[]),
                status => return Err(self.stream.failure(status).into()),
            }
        }
        // Until consume_shown(), which needs `self` alone, the bytes stay where they are.
        Ok(unsafe { std::slice::from_raw_parts(self.shown.add(self.at), self.size - self.at) })
    }

    fn consume(&mut self, count: usize) {
        assert!(count <= self.size - self.at || self.shown.is_null() && count == 0, "more than was shown");
        self.at += count;
        if self.at == self.size {
            self.consume_shown();
        }
    }
}

impl io::Read for Buffered<'_> {
    fn read(&mut self, data: &mut [u8]) -> io::Result<usize> {
        let shown = io::BufRead::fill_buf(self)?;
        let count = shown.len().min(data.len());
        data[..count].copy_from_slice(&shown[..count]);
        io::BufRead::consume(self, count);
        Ok(count)
    }
}

impl Drop for Buffered<'_> {
    fn drop(&mut self) {
        self.consume_shown();
    }
}

/// Accepts connections at an address.
#[derive(Debug)]
pub struct Listener {
    raw: *mut sys::muster_listener,
}

// The functions of a listener may be called by any thread (transport.h).
unsafe impl Send for Listener {}
unsafe impl Sync for Listener {}

impl Drop for Listener {
    fn drop(&mut self) {
        unsafe {
            sys::muster_listener_close(self.raw);
            sys::muster_listener_release(self.raw);
        }
    }
}

impl Listener {
    /// Listens at an address. With a transport of the program it waits until that has answered, which another thread
    /// has to serve.
    pub fn bind(context: &Context, address: &str) -> Result<Listener> {
        let mut raw = ptr::null_mut();
        check(|detail| unsafe {
            sys::muster_transport_listen(
                context.as_raw(),
                address.as_ptr().cast(),
                address.len(),
                ptr::null(),
                &mut raw,
                detail,
            )
        })?;
        Ok(Listener { raw })
    }

    /// Begins to listen; the queue receives [`Event::Listen`](crate::Event::Listen). The thread that serves a transport
    /// of the program listens with it in this way.
    pub fn bind_begin(queue: &Queue, address: &str, tag: u64) -> Result<()> {
        check(|detail| unsafe {
            sys::muster_transport_listen_begin(
                queue.context().as_raw(),
                address.as_ptr().cast(),
                address.len(),
                ptr::null(),
                queue.as_raw(),
                tag,
                detail,
            )
        })
    }

    pub(crate) fn adopt(raw: *mut sys::muster_listener) -> Listener {
        Listener { raw }
    }

    /// Accepts the next connection, whose peer has proved the secret. With a timeout of zero and no connection it fails
    /// with [`Status::AGAIN`].
    pub fn accept(&self, timeout: Option<Duration>) -> Result<Stream> {
        let mut raw = ptr::null_mut();
        check(|detail| unsafe { sys::muster_listener_accept(self.raw, timeout_ns(timeout), &mut raw, detail) })?;
        Ok(Stream::adopt(raw))
    }

    /// Watches the listener: the queue receives [`Event::Ready`](crate::Event::Ready) when a connection has arrived.
    pub fn watch(&self, queue: &Queue, tag: u64) -> Result<()> {
        check_status(unsafe { sys::muster_listener_watch(self.raw, queue.as_raw(), tag) })
    }

    /// The address that other processes dial.
    pub fn address(&self) -> Result<String> {
        text_from(|to, room, size| unsafe { sys::muster_listener_address(self.raw, to, room, size) })
    }
}

// A text that a C function copies into a buffer, and whose length it returns.
pub(crate) fn text_from(mut give: impl FnMut(*mut std::os::raw::c_char, usize, &mut usize) -> i32) -> Result<String> {
    let mut bytes = vec![0u8; 256];
    loop {
        let mut size = 0;
        match give(bytes.as_mut_ptr().cast(), bytes.len(), &mut size) {
            sys::MUSTER_OK => {
                bytes.truncate(size);
                return String::from_utf8(bytes).map_err(|_| Error::new(Status::PROTOCOL, "text that is not UTF-8"));
            }
            sys::MUSTER_E_LIMIT if size >= bytes.len() => bytes.resize(size + 1, 0),
            status => return Err(Error::of(status)),
        }
    }
}
