// SPDX-License-Identifier: MIT
use crate::error::{check, check_status, Error, Result, Status};
use crate::{timeout_ns, Context, Queue, Stream};
use muster_sys as sys;
use std::any::Any;
use std::ffi::CString;
use std::fmt;
use std::mem::ManuallyDrop;
use std::os::raw::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr;
use std::slice;
use std::sync::Mutex;
use std::time::Duration;

/// How to make an [`Endpoint`]; what is 0 has the default that `am.h` names.
#[derive(Clone, Copy, Debug, Default)]
pub struct EndpointConfig {
    /// Largest request or reply, 4096 to 16 MiB.
    pub max_bytes: u32,
    /// Requests to one peer that have no reply yet.
    pub max_requests: u32,
    /// The thread of the library sleeps after each request in place of polling for the next one.
    pub no_polling: bool,
}

/// State of a peer of an [`Endpoint`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Peer {
    /// Why it has ended; None: it is connected.
    pub ended: Option<Error>,
    /// Requests to it that have no reply yet.
    pub requests: u32,
    /// Requests that were made to it.
    pub sent: u64,
    /// Its requests that were executed here, or put in a queue.
    pub executed: u64,
    /// Largest request to it, and largest reply.
    pub max_bytes: u32,
}

/// An endpoint of active messages: small requests to other processes, executed by their library while their program
/// computes, or put in a queue of theirs. Handlers are set before the peers are added that use them.
///
/// ```
/// # use muster::{Context, Endpoint, EndpointConfig, Stream};
/// # let context = Context::new()?;
/// let (near, far) = Stream::pair(&context)?;
/// let (here, there) = (Endpoint::new(&context, &EndpointConfig::default())?, Endpoint::new(&context,
/// &EndpointConfig::default())?);
/// there.on(1, |_peer, request, reply| {
///     reply[..request.len()].copy_from_slice(request);
///     reply[..request.len()].make_ascii_uppercase();
///     Ok(request.len())
/// })?;
/// let peer = here.add(near)?;
/// there.add(far)?;
/// assert_eq!(here.call(peer, 1, b"hello", None)?, b"HELLO");
/// # Ok::<(), muster::Error>(())
/// ```
#[derive(Debug)]
pub struct Endpoint {
    raw: *mut sys::muster_am,
    handlers: Mutex<Vec<Box<dyn Any + Send>>>, // which the library calls until the release has returned
    queues: Mutex<Vec<Queue>>,
}

// The functions of an endpoint may be called by any thread (am.h).
unsafe impl Send for Endpoint {}
unsafe impl Sync for Endpoint {}

impl Drop for Endpoint {
    fn drop(&mut self) {
        unsafe { sys::muster_am_release(self.raw) }
    }
}

struct Handler<F>(F);

unsafe extern "C" fn execute<F>(
    user: *mut c_void,
    peer: u32,
    data: *const c_void,
    bytes: usize,
    reply: *mut c_void,
    capacity: usize,
    out_bytes: *mut usize,
) -> sys::muster_status
where
    F: Fn(u32, &[u8], &mut [u8]) -> std::result::Result<usize, Status>,
{
    let handler = &*(user as *const Handler<F>);
    let request = if bytes == 0 { &[][..] } else { slice::from_raw_parts(data.cast(), bytes) };
    let place = slice::from_raw_parts_mut(reply.cast(), capacity);
    match catch_unwind(AssertUnwindSafe(|| (handler.0)(peer, request, place))) {
        Ok(Ok(size)) => {
            *out_bytes = size; // the library refuses more than the capacity
            sys::MUSTER_OK
        }
        Ok(Err(Status(status))) if status < 0 || status == sys::MUSTER_AGAIN => status,
        _ => sys::MUSTER_E_INTERNAL,
    }
}

impl Endpoint {
    /// An endpoint without peers.
    pub fn new(context: &Context, config: &EndpointConfig) -> Result<Endpoint> {
        let mut given = sys::muster_am_config::sized();
        given.max_bytes = config.max_bytes;
        given.max_requests = config.max_requests;
        given.flags = if config.no_polling { sys::MUSTER_AM_NO_POLLING } else { 0 };
        let mut raw = ptr::null_mut();
        check(|detail| unsafe { sys::muster_am_create(context.as_raw(), &given, &mut raw, detail) })?;
        Ok(Endpoint { raw, handlers: Mutex::default(), queues: Mutex::default() })
    }

    /// Sets the handler of a number, 0 to 255: it is called on the thread of the library with the peer, the request and
    /// the
    /// place for the reply, and returns the size of that, or the status that the call of the peer has. It does
    /// something
    /// short, and never waits. The call of the peer ends with `INTERNAL` if the handler panics.
    pub fn on<F>(&self, number: u32, handler: F) -> Result<()>
    where
        F: Fn(u32, &[u8], &mut [u8]) -> std::result::Result<usize, Status> + Send + Sync + 'static,
    {
        let kept = Box::new(Handler(handler));
        let user = &*kept as *const Handler<F> as *mut c_void;
        let mut handlers = self.handlers.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        check_status(unsafe { sys::muster_am_set_handler(self.raw, number, Some(execute::<F>), user) })?;
        handlers.push(kept);
        Ok(())
    }

    /// Requests for this number are [`Event::Request`](crate::Event::Request) in a queue, which this program answers.
    pub fn serve(&self, number: u32, queue: &Queue, tag: u64) -> Result<()> {
        check_status(unsafe { sys::muster_am_serve(self.raw, number, queue.as_raw(), tag) })?;
        self.queues.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(queue.clone());
        Ok(())
    }

    /// Adds the peer at the other end of a stream, at which is an endpoint, too; its number.
    pub fn add(&self, stream: Stream) -> Result<u32> {
        let mut number = 0;
        check(|detail| unsafe { sys::muster_am_add_peer(self.raw, stream.as_raw(), &mut number, detail) })?;
        let _ = ManuallyDrop::new(stream); // the endpoint has it
        Ok(number)
    }

    /// Makes a request, and waits for the reply. After `TIMEOUT` and when the peer has ended it may have been executed.
    pub fn call(&self, peer: u32, handler: u32, request: &[u8], timeout: Option<Duration>) -> Result<Vec<u8>> {
        let mut reply = Vec::with_capacity(self.peer(peer)?.max_bytes as usize);
        let size = self.call_into(peer, handler, request, reply.as_mut_ptr(), reply.capacity(), timeout)?;
        unsafe { reply.set_len(size) }; // so many bytes were written
        Ok(reply)
    }

    /// As [`Endpoint::call`], to memory of the caller; the size of the reply. `LIMIT`: it is larger, and the first
    /// bytes are
    /// there.
    pub fn call_to(
        &self,
        peer: u32,
        handler: u32,
        request: &[u8],
        reply: &mut [u8],
        timeout: Option<Duration>,
    ) -> Result<usize> {
        self.call_into(peer, handler, request, reply.as_mut_ptr(), reply.len(), timeout)
    }

    fn call_into(
        &self,
        peer: u32,
        handler: u32,
        request: &[u8],
        reply: *mut u8,
        capacity: usize,
        timeout: Option<Duration>,
    ) -> Result<usize> {
        let mut size = 0;
        check(|detail| unsafe {
            sys::muster_am_call(
                self.raw,
                peer,
                handler,
                request.as_ptr().cast(),
                request.len(),
                reply.cast(),
                capacity,
                timeout_ns(timeout),
                &mut size,
                detail,
            )
        })?;
        Ok(size)
    }

    /// Makes a request whose reply is not wanted; [`Endpoint::flush`] has its failure. False: as many as may have no
    /// reply
    /// yet, and nothing was made.
    pub fn post(&self, peer: u32, handler: u32, request: &[u8]) -> Result<bool> {
        let (data, size) = (request.as_ptr().cast(), request.len());
        let status = unsafe {
            sys::muster_am_begin(self.raw, peer, handler, data, size, ptr::null_mut(), 0, ptr::null_mut(), 0)
        };
        if status == sys::MUSTER_AGAIN {
            return Ok(false);
        }
        check_status(status).map(|()| true)
    }

    /// Waits until each request to this peer, or to all, has its reply.
    pub fn flush(&self, peer: Option<u32>, timeout: Option<Duration>) -> Result<()> {
        check_status(unsafe { sys::muster_am_flush(self.raw, peer.unwrap_or(u32::MAX), timeout_ns(timeout)) })
    }

    /// The state of a peer.
    pub fn peer(&self, peer: u32) -> Result<Peer> {
        let (mut found, mut detail) = (sys::muster_am_peer::default(), sys::muster_error::default());
        check_status(unsafe { sys::muster_am_get_peer(self.raw, peer, &mut found, &mut detail) })?;
        Ok(Peer {
            ended: if found.status == sys::MUSTER_OK { None } else { Some(Error::with(found.status, &detail)) },
            requests: found.requests,
            sent: found.sent,
            executed: found.executed,
            max_bytes: found.max_bytes,
        })
    }

    /// Ends a peer; its calls end with this text.
    pub fn disconnect(&self, peer: u32, text: &str) -> Result<()> {
        let text = CString::new(text).map_err(|_| Error::new(Status::ARG, "text with a zero byte in it"))?;
        check_status(unsafe { sys::muster_am_disconnect(self.raw, peer, text.as_ptr()) })
    }

    /// Disconnects all peers; when it returns no handler is executed any more.
    pub fn close(&self) -> Result<()> {
        check_status(unsafe { sys::muster_am_close(self.raw) })
    }
}

/// A request of a peer that this program answers, [`Event::Request`](crate::Event::Request). The call of
/// the peer ends with `CANCELED` if the request is dropped.
pub struct Request {
    raw: *mut sys::muster_am_request,
    info: sys::muster_am_request_info,
}

// A request may be answered by any thread (am.h), and its bytes do not change.
unsafe impl Send for Request {}
unsafe impl Sync for Request {}

impl Drop for Request {
    fn drop(&mut self) {
        unsafe { sys::muster_am_request_release(self.raw) }
    }
}
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({} bytes of peer {} for {})", self.info.bytes, self.info.peer, self.info.handler)
    }
}

impl Request {
    // Safety: the request is the caller's.
    pub(crate) unsafe fn adopt(raw: *mut sys::muster_am_request) -> Request {
        let mut info = sys::muster_am_request_info::default();
        sys::muster_am_request_get(raw, &mut info);
        Request { raw, info }
    }
    /// Its bytes.
    pub fn data(&self) -> &[u8] {
        if self.info.bytes == 0 {
            return &[];
        }
        unsafe { slice::from_raw_parts(self.info.data.cast(), self.info.bytes) }
    }
    /// The peer that makes it.
    pub fn peer(&self) -> u32 {
        self.info.peer
    }
    /// The number of the handler.
    pub fn handler(&self) -> u32 {
        self.info.handler
    }
    /// Answers it.
    pub fn reply(self, data: &[u8]) -> Result<()> {
        check_status(unsafe {
            sys::muster_am_request_reply(self.raw, sys::MUSTER_OK, data.as_ptr().cast(), data.len())
        })
    }
    /// Ends the call of the peer with this status.
    pub fn fail(self, status: Status) -> Result<()> {
        check_status(unsafe { sys::muster_am_request_reply(self.raw, status.0, ptr::null(), 0) })
    }
}
