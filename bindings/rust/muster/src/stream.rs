// SPDX-License-Identifier: MIT
use crate::error::{check, check_status, Error, Result, Status};
use crate::{timeout_ns, Context, Queue};
use muster_sys as sys;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Bytes both ways between two members, in order. Any number of threads may use it: one at a time in each direction,
/// others wait.
///
/// `Read` and `Write` are those of `std::io`, also for `&Stream`; they wait as long as [`Stream::set_timeout`] says, and
/// give `WouldBlock` or `TimedOut` then.
#[derive(Debug)]
pub struct Stream {
    raw: *mut sys::muster_stream,
    timeout_ns: AtomicI64,
}

// The functions of a stream may be called by any thread (stream.h); what has to stay on one, reserve, is not here, and a peek is in
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

    /// Connects to whoever listens there.
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

    /// Begins to connect; [`Event::Dial`](crate::Event::Dial) comes into the queue.
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

    /// Two ends of one stream, both here.
    pub fn pair(context: &Context) -> Result<(Stream, Stream)> {
        let (mut first, mut second) = (ptr::null_mut(), ptr::null_mut());
        check(|detail| unsafe {
            sys::muster_stream_pair(context.as_raw(), ptr::null(), &mut first, &mut second, detail)
        })?;
        Ok((Stream::adopt(first), Stream::adopt(second)))
    }

    /// How long `Read` and `Write` wait: None has no end, zero looks once.
    pub fn set_timeout(&self, timeout: Option<Duration>) {
        self.timeout_ns.store(timeout_ns(timeout), Ordering::Relaxed);
    }

    /// Reads what is there, at least a byte; 0 at the orderly end.
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

    /// Fills the slice, or reads fewer bytes if the stream ends in its order before. An error leaves what was read in
    /// the slice.
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

    /// Bytes where the library has received them, without a copy: a [`std::io::BufRead`]. Other reads of the stream get
    /// [`Status::BUSY`](crate::Status::BUSY) while it has bytes that were not consumed.
    pub fn buffered(&self) -> Buffered<'_> {
        Buffered { stream: self, shown: ptr::null(), size: 0, at: 0 }
    }

    /// Writes the same bytes to many streams at the same time. For each what became of it, and how much was written.
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

    /// Why it has ended: the number and the sentence of an abort, or what the system said. None: it has not.
    pub fn reason(&self) -> Option<(u64, Error)> {
        let (mut reason, mut detail) = (0, sys::muster_error::default());
        match unsafe { sys::muster_stream_reason(self.raw, &mut reason, &mut detail) } {
            sys::MUSTER_OK => None,
            status => Some((reason, Error::with(status, &detail))),
        }
    }

    // The error of a call, with what is known of the end of the stream.
    fn failure(&self, status: i32) -> Error {
        match self.reason() {
            Some((_, why)) if why.status() == Status(status) => why,
            _ => Error::of(status),
        }
    }

    /// Writes as much as there is room for within the timeout; all, unless it says fewer.
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

    /// Hands a buffer over to be written; [`Event::Released`](crate::Event::Released) gives it back. An error gives it
    /// back at once, and no event comes.
    pub fn write_owned(&self, data: Vec<u8>, queue: &Queue, tag: u64) -> std::result::Result<(), (Error, Vec<u8>)> {
        let size = data.len();
        queue.lend(data, tag, |place, number| unsafe {
            sys::muster_stream_write_owned(self.raw, place.cast(), size, queue.as_raw(), number)
        })
    }

    /// Begins to read until the buffer's capacity is full or the stream is over; [`Event::Read`](crate::Event::Read)
    /// gives it back.
    pub fn read_begin(&self, mut data: Vec<u8>, queue: &Queue, tag: u64) -> std::result::Result<(), (Error, Vec<u8>)> {
        data.clear();
        let room = data.capacity();
        queue.lend(data, tag, |place, number| unsafe {
            sys::muster_stream_read_begin(self.raw, place.cast(), room, 0, queue.as_raw(), number)
        })
    }

    /// Tells in the queue when it is ready: [`Event::Ready`](crate::Event::Ready), for the bits of
    /// `muster_stream_event` in `interest`.
    pub fn watch(&self, interest: u32, queue: &Queue, tag: u64) -> Result<()> {
        check_status(unsafe { sys::muster_stream_watch(self.raw, interest, queue.as_raw(), tag) })
    }

    /// Says that nothing more is written; the other side reads its end.
    pub fn finish(&self) -> Result<()> {
        check_status(unsafe { sys::muster_stream_finish(self.raw) })
    }

    /// Ends both directions at once, with a reason for the other side.
    pub fn abort(&self, reason: u64, text: &str) -> Result<()> {
        check_status(unsafe { sys::muster_stream_abort(self.raw, reason, text.as_ptr().cast(), text.len()) })
    }

    /// Closes it; waits until what was written is on its way.
    pub fn close(&self, timeout: Option<Duration>) -> Result<()> {
        check_status(unsafe { sys::muster_stream_close(self.raw, timeout_ns(timeout)) })
    }

    /// Ends what waits in it now, in another thread.
    pub fn cancel(&self) -> Result<()> {
        check_status(unsafe { sys::muster_stream_cancel(self.raw, 3) })
    }

    /// Who is at the other end, for people.
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

    /// The handle of the C interface; it stays this stream's.
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

/// Received bytes of a stream; see [`Stream::buffered`]. It waits as long as [`Stream::set_timeout`] says.
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

/// Takes connections at an address.
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
    /// Listens there. With a transport of the program's own it waits until that has answered, which another thread has
    /// to serve.
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

    /// Begins to listen there; [`Event::Listen`](crate::Event::Listen) comes into the queue. The thread that serves a
    /// transport of the program's own listens with it in this way.
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

    /// The next connection, whose other side has proved the secret. With a timeout of zero and nobody there
    /// [`Status::AGAIN`].
    pub fn accept(&self, timeout: Option<Duration>) -> Result<Stream> {
        let mut raw = ptr::null_mut();
        check(|detail| unsafe { sys::muster_listener_accept(self.raw, timeout_ns(timeout), &mut raw, detail) })?;
        Ok(Stream::adopt(raw))
    }

    /// Tells in the queue when somebody is there: [`Event::Ready`](crate::Event::Ready).
    pub fn watch(&self, queue: &Queue, tag: u64) -> Result<()> {
        check_status(unsafe { sys::muster_listener_watch(self.raw, queue.as_raw(), tag) })
    }

    /// The address by which others dial it.
    pub fn address(&self) -> Result<String> {
        text_from(|to, room, size| unsafe { sys::muster_listener_address(self.raw, to, room, size) })
    }
}

// Text that C copies to where there is room, and says how long it is.
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
