// SPDX-License-Identifier: MIT
//! Transports written in Rust.
use crate::error::{check, check_status, cut, failure, unanswered, Error, Result, Status};
use crate::served::{destroyed, Served};
use crate::stream::{text_from, Stream};
use crate::Queue;
use muster_sys as sys;
use std::os::raw::c_void;
use std::ptr;
use std::sync::Arc;

/// A transport carries the bytes of the addresses of a scheme. Its functions run inside
/// [`Queue::next`](crate::Queue::next) of the queue that serves it, on the calling thread; a function that panics has
/// failed.
///
/// It carries bytes only: for each connection it gets a *pump*, a stream. It sends the bytes that it reads from the
/// pump over its connection, and writes the bytes that it receives to the pump. The end of the pump is the end of the
/// connection; when the connection ends, the transport finishes the pump. The proof of the secret, encryption and
/// aborts are part of these bytes.
pub trait Transport: Send + 'static {
    /// Connects to an address; the request is answered during the call or later.
    fn open(&mut self, address: &str, request: Requests);
    /// Listens at an address; the request is answered during the call or later. By default it fails.
    fn listen(&mut self, _address: &str, request: Requests) {
        let _ = request.fail(&Error::new(Status::UNSUPPORTED, "this transport does not listen"));
    }
    /// The connection or listener whose request had this id has ended.
    fn closed(&mut self, _id: u64) {}
}

/// A request to a transport, which is answered once. A request that is dropped without an answer fails with
/// [`Status::CANCELED`](crate::Status::CANCELED), or with [`Status::INTERNAL`](crate::Status::INTERNAL) while its
/// thread panics.
#[derive(Debug)]
pub struct Requests {
    queue: Queue,
    id: u64,
    open: bool, // it is not answered
}

impl Requests {
    /// Its number, which identifies the connection or listener from then on.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Answers `open`: the connection exists. Returns its pump. After an error the request has failed.
    pub fn connected(mut self) -> Result<Stream> {
        let mut raw = ptr::null_mut();
        check(|detail| unsafe { sys::muster_request_stream(self.queue.as_raw(), self.id, &mut raw, detail) })?;
        self.open = false;
        Ok(Stream::adopt(raw))
    }

    /// Answers `listen`: the listener exists, and peers dial it at this address. After an error the request has failed.
    pub fn listening(mut self, address: &str) -> Result<Listening> {
        let at = address.as_ptr().cast();
        check(|detail| unsafe {
            sys::muster_request_listening(self.queue.as_raw(), self.id, at, address.len(), detail)
        })?;
        self.open = false;
        Ok(Listening { queue: self.queue.clone(), id: self.id })
    }

    /// Answers either with an error.
    pub fn fail(mut self, why: &Error) -> Result<()> {
        self.refuse(why)
    }

    fn refuse(&mut self, why: &Error) -> Result<()> {
        self.open = false;
        let text = cut(why.message());
        check_status(unsafe {
            sys::muster_request_fail(self.queue.as_raw(), self.id, failure(why), text.as_ptr().cast(), text.len())
        })
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        if self.open {
            // A request that was cancelled is stale, which is harmless.
            let _ = self.refuse(&unanswered("transport"));
        }
    }
}

/// A listener of a transport.
#[derive(Debug, Clone)]
pub struct Listening {
    queue: Queue,
    id: u64,
}

impl Listening {
    /// Reports that a peer has connected. Returns the id of the connection, and its pump.
    pub fn incoming(&self, peer: &str) -> Result<(u64, Stream)> {
        let (mut id, mut raw) = (0, ptr::null_mut());
        check(|detail| unsafe {
            let (queue, at) = (self.queue.as_raw(), peer.as_ptr().cast());
            sys::muster_transport_incoming(queue, self.id, at, peer.len(), &mut id, &mut raw, detail)
        })?;
        Ok((id, Stream::adopt(raw)))
    }
}

/// Serves a transport for a scheme until it is dropped. Then the transport is dropped, too: at once, or, while one of
/// its functions runs on another thread, when that returns. A request that was not answered fails: with
/// [`Status::CLOSED`](crate::Status::CLOSED), or as a [`Requests`] that is dropped. Connections continue until they
/// end.
pub struct TransportServer {
    queue: Queue,
    scheme: String,
    served: Arc<Served<Box<dyn Transport>>>,
}

impl TransportServer {
    /// Registers a transport for the addresses of a scheme in the context of the queue. A thread has to call
    /// [`Queue::next`](crate::Queue::next), other than one that waits for a connection of this scheme.
    pub fn new(queue: &Queue, scheme: &str, transport: impl Transport) -> Result<TransportServer> {
        let mut ops = sys::muster_transport_ops::sized();
        ops.open = Some(open);
        ops.listen = Some(listen);
        ops.close = Some(close);
        ops.destroy = Some(destroy);
        let object: Box<dyn Transport> = Box::new(transport);
        let (served, place) = Served::new(queue, object);
        let done = check(|detail| unsafe {
            let (context, at) = (queue.context().as_raw(), scheme.as_ptr().cast());
            sys::muster_transport_serve_ops(context, at, scheme.len(), &ops, place, queue.as_raw(), detail)
        });
        if let Err(why) = done {
            queue.forget(place);
            return Err(why);
        }
        Ok(TransportServer { queue: queue.clone(), scheme: scheme.into(), served })
    }
}

impl Drop for TransportServer {
    fn drop(&mut self) {
        unsafe {
            sys::muster_transport_withdraw(
                self.queue.context().as_raw(),
                self.scheme.as_ptr().cast(),
                self.scheme.len(),
            );
        }
        self.served.end();
    }
}

unsafe fn with(this: *mut c_void, request: u64, body: impl FnOnce(&mut dyn Transport, String, Requests)) {
    let served = &*this.cast::<Served<Box<dyn Transport>>>();
    let queue = served.queue();
    let raw = queue.as_raw();
    let requests = Requests { queue, id: request, open: true };
    let address = match text_from(|to, room, size| sys::muster_request_address(raw, request, to, room, size)) {
        Ok(address) => address,
        Err(_) => return, // it is no longer wanted, or is refused as it is dropped
    };
    served.run(|transport| body(&mut **transport, address, requests));
}

unsafe extern "C" fn open(this: *mut c_void, request: u64, _: *const std::os::raw::c_char, _: u64) {
    with(this, request, |transport, address, requests| transport.open(&address, requests));
}

unsafe extern "C" fn listen(this: *mut c_void, request: u64, _: *const std::os::raw::c_char, _: u64) {
    with(this, request, |transport, address, requests| transport.listen(&address, requests));
}

unsafe extern "C" fn close(this: *mut c_void, request: u64) {
    (*this.cast::<Served<Box<dyn Transport>>>()).run(|transport| transport.closed(request));
}

unsafe extern "C" fn destroy(this: *mut c_void) {
    destroyed::<Box<dyn Transport>>(this);
}

impl std::fmt::Debug for TransportServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TransportServer").finish_non_exhaustive()
    }
}
