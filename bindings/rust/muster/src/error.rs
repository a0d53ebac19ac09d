// SPDX-License-Identifier: MIT
use muster_sys as sys;
use std::ffi::CStr;
use std::fmt;
use std::io;
use std::sync::Arc;

/// How a call ended: a value of `muster_status_value`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(pub i32);

macro_rules! statuses {
    ($($name:ident = $value:ident),* $(,)?) => {
        impl Status {
            $(#[doc = concat!("`", stringify!($value), "`")]
            pub const $name: Status = Status(sys::$value);)*
        }
    };
}
statuses! {
    OK = MUSTER_OK, AGAIN = MUSTER_AGAIN, TIMEOUT = MUSTER_TIMEOUT, ARG = MUSTER_E_ARG, ABI = MUSTER_E_ABI,
    NOMEM = MUSTER_E_NOMEM, LIMIT = MUSTER_E_LIMIT, CLOSED = MUSTER_E_CLOSED, CANCELED = MUSTER_E_CANCELED,
    FORKED = MUSTER_E_FORKED, WOULD_DEADLOCK = MUSTER_E_WOULD_DEADLOCK, UNSUPPORTED = MUSTER_E_UNSUPPORTED,
    EXISTS = MUSTER_E_EXISTS, NOT_FOUND = MUSTER_E_NOT_FOUND, STALE = MUSTER_E_STALE, BUSY = MUSTER_E_BUSY,
    PERMISSION = MUSTER_E_PERMISSION, AUTH = MUSTER_E_AUTH, PROTOCOL = MUSTER_E_PROTOCOL, ADDRESS = MUSTER_E_ADDRESS,
    UNREACHABLE = MUSTER_E_UNREACHABLE, PEER = MUSTER_E_PEER, ABORTED = MUSTER_E_ABORTED, END = MUSTER_E_END,
    SYSTEM = MUSTER_E_SYSTEM, PLUGIN = MUSTER_E_PLUGIN, INTERNAL = MUSTER_E_INTERNAL, CHANGED = MUSTER_E_CHANGED,
    STORE_LOST = MUSTER_E_STORE_LOST, QUORUM = MUSTER_E_QUORUM, MISMATCH = MUSTER_E_MISMATCH,
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The name is a static string of the library.
        f.write_str(&unsafe { CStr::from_ptr(sys::muster_status_name(self.0)) }.to_string_lossy())
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&unsafe { CStr::from_ptr(sys::muster_status_text(self.0)) }.to_string_lossy())
    }
}

/// An error: a status, and a text.
#[derive(Clone, Debug)]
pub struct Error {
    status: Status,
    message: String,
    rank: Option<u32>,
    cause: Option<Arc<io::Error>>, // of the system call
}

/// With this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of the program, to answer a request with.
    pub fn new(status: Status, message: impl Into<String>) -> Error {
        Error { status, message: message.into(), rank: None, cause: None }
    }
    /// The status.
    pub fn status(&self) -> Status {
        self.status
    }
    /// The text.
    pub fn message(&self) -> &str {
        &self.message
    }
    /// The rank at fault, in a group.
    pub fn rank(&self) -> Option<u32> {
        self.rank
    }
    /// `errno` of the system call that failed; [`std::error::Error::source`] is its `std::io::Error`.
    pub fn os_error(&self) -> Option<i32> {
        self.cause.as_ref().and_then(|cause| cause.raw_os_error())
    }
    pub(crate) fn of(status: i32) -> Error {
        Error { status: Status(status), message: Status(status).to_string(), rank: None, cause: None }
    }
    pub(crate) fn with(status: i32, detail: &sys::muster_error) -> Error {
        if detail.message_bytes == 0 {
            return Error::of(status);
        }
        let rank = Some(detail.rank).filter(|&rank| rank != u32::MAX);
        let cause = Some(detail.os_errno).filter(|&number| number != 0);
        let cause = cause.map(|number| Arc::new(io::Error::from_raw_os_error(number)));
        Error { status: Status(status), message: text_of(&detail.message), rank, cause }
    }
}

// Text in a field of a struct, which ends at its first zero.
pub(crate) fn text_of(field: &[std::os::raw::c_char]) -> String {
    let bytes: Vec<u8> = field.iter().map(|&c| c as u8).take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

// The part of a text that fits in the C struct, cut at the boundary of a character.
pub(crate) fn cut(text: &str) -> &str {
    let mut size = text.len().min(200);
    while !text.is_char_boundary(size) {
        size -= 1;
    }
    &text[..size]
}

// The error with which a request is answered.
pub(crate) fn failure(why: &Error) -> i32 {
    match why.status() {
        Status(status) if status < 0 => status,
        _ => sys::MUSTER_E_INTERNAL,
    }
}

// Of a request that is dropped without an answer.
pub(crate) fn unanswered(by: &str) -> Error {
    if std::thread::panicking() {
        return Error::new(Status::INTERNAL, format!("the {} panicked", by));
    }
    Error::new(Status::CANCELED, format!("the {} dropped the request without an answer", by))
}

// The error of a C function, with its detail.
pub(crate) fn check(call: impl FnOnce(&mut sys::muster_error) -> i32) -> Result<()> {
    let mut detail = sys::muster_error::default();
    match call(&mut detail) {
        sys::MUSTER_OK => Ok(()),
        status => Err(Error::with(status, &detail)),
    }
}

pub(crate) fn check_status(status: i32) -> Result<()> {
    if status == sys::MUSTER_OK {
        Ok(())
    } else {
        Err(Error::of(status))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.status, self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as _)
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        let kind = match error.status {
            Status::AGAIN => io::ErrorKind::WouldBlock,
            Status::TIMEOUT => io::ErrorKind::TimedOut,
            Status::ARG | Status::ADDRESS => io::ErrorKind::InvalidInput,
            Status::PROTOCOL => io::ErrorKind::InvalidData,
            Status::EXISTS => io::ErrorKind::AlreadyExists,
            Status::NOT_FOUND => io::ErrorKind::NotFound,
            Status::PERMISSION | Status::AUTH => io::ErrorKind::PermissionDenied,
            Status::UNREACHABLE => io::ErrorKind::ConnectionRefused,
            Status::PEER => io::ErrorKind::ConnectionReset,
            Status::ABORTED => io::ErrorKind::ConnectionAborted,
            Status::CLOSED => io::ErrorKind::NotConnected,
            Status::END => io::ErrorKind::UnexpectedEof,
            Status::UNSUPPORTED => io::ErrorKind::Unsupported,
            Status::NOMEM => io::ErrorKind::OutOfMemory,
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}
