// SPDX-License-Identifier: MIT
//! Transports written in Rust.
use crate::error::{check, check_status, cut, failure, Error, Result, Status};
use crate::queue::WeakQueue;
use crate::stream::{text_from, Stream};
use crate::Queue;
use muster_sys as sys;
use std::os::raw::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr;

/// Carries the bytes of a scheme. Its functions run inside [`Queue::next`](crate::Queue::next) of the queue it is served
/// with, on the thread that calls that; one that panics has failed.
///
/// It carries bytes only: for each connection it is given a *pump*, a stream. What it reads there goes out over whatever
/// it has; what comes in it writes there. When the pump is at its end, the connection is over; when its own connection
/// ends, it finishes the pump. The proof of the secret, seals and aborts are in these bytes.
pub trait Transport: Send + 'static {
    /// Connects to an address; answered now or later.
    fn open(&mut self, address: &str, request: Requests);
    /// Listens at an address; answered now or later. By default nothing listens.
    fn listen(&mut self, _address: &str, request: Requests) {
        let _ = request.fail(&Error::new(Status::UNSUPPORTED, "this transport does not listen"));
    }
    /// The connection or listener whose request had this id is over.
    fn closed(&mut self, _id: u64) {}
}

/// One request to a transport, to be answered once.
pub struct Requests {
    queue: Queue,
    id: u64,
}

impl Requests {
    /// Its number, which names the connection or listener from then on.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Answers `open`: it is connected. The pump of the connection.
    pub fn connected(self) -> Result<Stream> {
        let mut raw = ptr::null_mut();
        check(|detail| unsafe { sys::muster_request_stream(self.queue.as_raw(), self.id, &mut raw, detail) })?;
        Ok(Stream::adopt(raw))
    }

    /// Answers `listen`: it listens, and this is where others dial it.
    pub fn listening(self, address: &str) -> Result<Listening> {
        let at = address.as_ptr().cast();
        check(|detail| unsafe {
            sys::muster_request_listening(self.queue.as_raw(), self.id, at, address.len(), detail)
        })?;
        Ok(Listening { queue: self.queue, id: self.id })
    }

    /// Answers either: it cannot be done.
    pub fn fail(self, why: &Error) -> Result<()> {
        let text = cut(why.message());
        check_status(unsafe {
            sys::muster_request_fail(self.queue.as_raw(), self.id, failure(why), text.as_ptr().cast(), text.len())
        })
    }
}

/// A listener of a transport's.
#[derive(Clone)]
pub struct Listening {
    queue: Queue,
    id: u64,
}

impl Listening {
    /// Somebody has connected. The id of the connection, and its pump.
    pub fn incoming(&self, peer: &str) -> Result<(u64, Stream)> {
        let (mut id, mut raw) = (0, ptr::null_mut());
        check(|detail| unsafe {
            let (queue, at) = (self.queue.as_raw(), peer.as_ptr().cast());
            sys::muster_transport_incoming(queue, self.id, at, peer.len(), &mut id, &mut raw, detail)
        })?;
        Ok((id, Stream::adopt(raw)))
    }
}

/// A transport that is known by a scheme, as long as this lives.
pub struct TransportServer {
    queue: Queue,
    scheme: String,
}

struct Served {
    transport: Box<dyn Transport>,
    queue: WeakQueue,
}

impl TransportServer {
    /// Makes a transport known to addresses of that scheme in the queue's context. Somebody has to take from the queue,
    /// on another thread than one that waits for a connection of this scheme.
    pub fn new(queue: &Queue, scheme: &str, transport: impl Transport) -> Result<TransportServer> {
        let mut ops = sys::muster_transport_ops::sized();
        ops.open = Some(open);
        ops.listen = Some(listen);
        ops.close = Some(close);
        ops.destroy = Some(destroy);
        let served = Box::into_raw(Box::new(Served { transport: Box::new(transport), queue: queue.downgrade() }));
        let done = check(|detail| unsafe {
            let (context, at) = (queue.context().as_raw(), scheme.as_ptr().cast());
            sys::muster_transport_serve_ops(context, at, scheme.len(), &ops, served.cast(), queue.as_raw(), detail)
        });
        if let Err(why) = done {
            drop(unsafe { Box::from_raw(served) });
            return Err(why);
        }
        Ok(TransportServer { queue: queue.clone(), scheme: scheme.into() })
    }
}

impl Drop for TransportServer {
    // The transport itself goes when the queue is next taken from.
    fn drop(&mut self) {
        unsafe {
            sys::muster_transport_withdraw(
                self.queue.context().as_raw(),
                self.scheme.as_ptr().cast(),
                self.scheme.len(),
            );
        }
    }
}

// One at a time: Queue::next() lets only one thread dispatch.
unsafe fn with(this: *mut c_void, request: u64, body: impl FnOnce(&mut Served, String, Requests)) {
    let served = &mut *this.cast::<Served>();
    let queue = served.queue.upgrade();
    let raw = queue.as_raw();
    let address = match text_from(|to, room, size| sys::muster_request_address(raw, request, to, room, size)) {
        Ok(address) => address,
        Err(_) => return, // it is no longer wanted
    };
    let requests = Requests { queue: queue.clone(), id: request };
    if catch_unwind(AssertUnwindSafe(|| body(served, address, requests))).is_err() {
        let _ = Requests { queue, id: request }.fail(&Error::new(Status::INTERNAL, "the transport panicked"));
    }
}

unsafe extern "C" fn open(this: *mut c_void, request: u64, _: *const std::os::raw::c_char, _: u64) {
    with(this, request, |served, address, requests| served.transport.open(&address, requests));
}

unsafe extern "C" fn listen(this: *mut c_void, request: u64, _: *const std::os::raw::c_char, _: u64) {
    with(this, request, |served, address, requests| served.transport.listen(&address, requests));
}

unsafe extern "C" fn close(this: *mut c_void, request: u64) {
    let served = &mut *this.cast::<Served>();
    let _ = catch_unwind(AssertUnwindSafe(|| served.transport.closed(request)));
}

unsafe extern "C" fn destroy(this: *mut c_void) {
    let served = Box::from_raw(this.cast::<Served>());
    let _ = catch_unwind(AssertUnwindSafe(|| drop(served))); // it may panic as it goes
}
