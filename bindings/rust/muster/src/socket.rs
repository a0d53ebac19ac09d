// SPDX-License-Identifier: MIT
use crate::error::{check, check_status, Error, Result, Status};
use crate::message::Message;
use crate::{timeout_ns, Context};
use muster_sys as sys;
use std::fmt;
use std::ptr;
use std::slice;
use std::time::Duration;

/// How to make a socket; 0 is the default of the C interface.
#[derive(Debug, Clone, Default)]
pub struct SocketConfig {
    /// Address of the socket; 0: a random one.
    pub address: u64,
    /// Maximum number of connected peers.
    pub max_peers: u32,
    /// Maximum size of a message.
    pub max_message_bytes: u64,
    /// Maximum size of the messages that wait for one peer.
    pub max_queued_bytes: u64,
    /// Maximum number of messages that wait for one peer.
    pub max_queued_messages: u32,
    /// Maximum number of messages that wait for peers that have not connected yet.
    pub max_unrouted_messages: u32,
    /// The socket loans frames: [`Socket::loan`].
    pub loans: bool,
    /// Maximum memory for them.
    pub max_loaned_bytes: u64,
}

/// What has happened to a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SocketEvent {
    /// The peer of this address has connected.
    Connected(u64),
    /// Its connection has ended; so many messages to it had not left. And why.
    Lost(u64, u64, String),
    /// It has connected again, and its earlier connection was closed.
    Replaced(u64, u64),
    /// A connection attempt failed, or a peer was refused; and why.
    Refused(String),
}

/// A message that was not accepted, and why.
pub struct Unsent {
    /// The message, unchanged.
    pub message: Message,
    /// Why.
    pub error: Error,
}
impl fmt::Debug for Unsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.error, self.message)
    }
}
impl fmt::Display for Unsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the message was not sent: {}", self.error)
    }
}
impl std::error::Error for Unsent {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}
impl From<Unsent> for Error {
    fn from(unsent: Unsent) -> Error {
        unsent.error
    }
}

/// A dealer or a router: it exchanges messages with its peers over any transport. Any thread may send and receive.
///
/// ```no_run
/// # use muster::{Context, Message, Socket, SocketConfig};
/// # fn main() -> muster::Result<()> {
/// # let context = Context::new()?;
/// let router = Socket::router(&context, &SocketConfig { address: 1, ..SocketConfig::default() })?;
/// let at = router.bind("tcp://127.0.0.1:0")?;
/// let dealer = Socket::dealer(&context, &SocketConfig::default())?;
/// dealer.connect(&at)?;
/// dealer.send(Message::new(300).frame(b"hello"), None)?;
/// let request = router.receive(None)?;
/// router.send(request.answer(), None)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Socket {
    raw: *mut sys::muster_socket,
}

// The functions of a socket may be called by any thread at any time (socket.h).
unsafe impl Send for Socket {}
unsafe impl Sync for Socket {}

impl Drop for Socket {
    fn drop(&mut self) {
        unsafe { sys::muster_socket_release(self.raw) }
    }
}

impl Socket {
    /// Sends to its connected peers in turn.
    pub fn dealer(context: &Context, config: &SocketConfig) -> Result<Socket> {
        Socket::make(context, sys::MUSTER_SOCKET_DEALER, config)
    }
    /// Sends to the peer with the address of the destination.
    pub fn router(context: &Context, config: &SocketConfig) -> Result<Socket> {
        Socket::make(context, sys::MUSTER_SOCKET_ROUTER, config)
    }
    fn make(context: &Context, kind: u32, config: &SocketConfig) -> Result<Socket> {
        let mut given = sys::muster_socket_config::sized();
        given.kind = kind;
        given.flags = if config.loans { sys::MUSTER_SOCKET_LOANS } else { 0 };
        given.address = config.address;
        given.max_peers = config.max_peers;
        given.max_message_bytes = config.max_message_bytes;
        given.max_queued_bytes = config.max_queued_bytes;
        given.max_queued_messages = config.max_queued_messages;
        given.max_unrouted_messages = config.max_unrouted_messages;
        given.max_loaned_bytes = config.max_loaned_bytes;
        let mut raw = ptr::null_mut();
        check(|detail| unsafe { sys::muster_socket_create(context.as_raw(), &given, &mut raw, detail) })?;
        Ok(Socket { raw })
    }

    /// Its address.
    pub fn address(&self) -> u64 {
        unsafe { sys::muster_socket_address(self.raw) }
    }
    /// Listens at an address of a transport; gives the address that peers connect to.
    pub fn bind(&self, address: &str) -> Result<String> {
        let mut text = vec![0u8; 4200];
        check(|detail| unsafe {
            let (at, bytes) = (address.as_ptr().cast(), address.len() as _);
            sys::muster_socket_bind(self.raw, at, bytes, text.as_mut_ptr().cast(), text.len() as _, detail)
        })?;
        text.truncate(text.iter().position(|&byte| byte == 0).unwrap_or(text.len()));
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
    /// Connects, and connects again when the connection is lost.
    pub fn connect(&self, address: &str) -> Result<()> {
        let (at, bytes) = (address.as_ptr().cast(), address.len() as _);
        check(|detail| unsafe { sys::muster_socket_connect(self.raw, at, bytes, detail) })
    }
    /// Waits until so many peers are connected.
    pub fn wait_peers(&self, count: u32, timeout: Option<Duration>) -> Result<()> {
        let wait = timeout_ns(timeout);
        check_status(unsafe { sys::muster_socket_wait_peers(self.raw, count, wait, ptr::null_mut()) })
    }
    /// Sends a message; waits while the queue of its peer is full. A message that was not accepted comes back.
    pub fn send(&self, message: Message, timeout: Option<Duration>) -> std::result::Result<(), Unsent> {
        let wait = timeout_ns(timeout);
        let sent = check(|detail| unsafe { sys::muster_socket_send(self.raw, message.as_raw(), wait, detail) });
        match sent {
            Ok(()) => {
                message.into_raw(); // the socket's
                Ok(())
            }
            Err(error) => Err(Unsent { message, error }),
        }
    }
    /// Receives the next message of any peer.
    pub fn receive(&self, timeout: Option<Duration>) -> Result<Message> {
        let mut raw = ptr::null_mut();
        check_status(unsafe { sys::muster_socket_receive(self.raw, timeout_ns(timeout), &mut raw) })?;
        Ok(Message::adopt(raw))
    }
    /// Adds a frame in memory that peers on this host read in place, and gives that memory to be filled. None: all of
    /// it
    /// is in use.
    pub fn loan<'a>(&self, message: &'a mut Message, bytes: usize) -> Result<Option<&'a mut [u8]>> {
        let mut data = ptr::null_mut();
        let loaned = check(|detail| unsafe {
            sys::muster_socket_loan_frame(self.raw, message.as_raw(), bytes as _, &mut data, detail)
        });
        match loaned {
            Ok(()) => Ok(Some(unsafe { slice::from_raw_parts_mut(data.cast(), bytes) })),
            Err(why) if why.status() == Status::AGAIN => Ok(None),
            Err(why) => Err(why),
        }
    }
    /// The next event of the peers.
    pub fn next_event(&self, timeout: Option<Duration>) -> Result<SocketEvent> {
        let mut event: sys::muster_socket_event = unsafe { std::mem::zeroed() };
        check_status(unsafe { sys::muster_socket_next_event(self.raw, timeout_ns(timeout), &mut event) })?;
        let text = unsafe { slice::from_raw_parts(event.text.as_ptr().cast(), event.text_bytes as usize) };
        let text = String::from_utf8_lossy(text).into_owned();
        Ok(match event.kind {
            sys::MUSTER_SOCKET_CONNECTED => SocketEvent::Connected(event.address),
            sys::MUSTER_SOCKET_LOST => SocketEvent::Lost(event.address, event.undelivered, text),
            sys::MUSTER_SOCKET_REPLACED => SocketEvent::Replaced(event.address, event.undelivered),
            _ => SocketEvent::Refused(text),
        })
    }
    /// Ends the calls that wait now, with [`Status::CANCELED`].
    pub fn cancel(&self) {
        unsafe { sys::muster_socket_cancel(self.raw) };
    }
    /// Waits until the peers have read what was sent, or the time has passed, and ends all connections. To drop it does
    /// not wait.
    pub fn close(self, timeout: Option<Duration>) -> Result<()> {
        check_status(unsafe { sys::muster_socket_close(self.raw, timeout_ns(timeout)) })
    }
}
