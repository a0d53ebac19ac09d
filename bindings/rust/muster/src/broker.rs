// SPDX-License-Identifier: MIT
use crate::error::{check, check_status, Result};
use crate::stream::text_from;
use crate::{timeout_ns, Context};
use muster_sys as sys;
use std::path::PathBuf;
use std::ptr;
use std::time::Duration;

/// How to run a broker; what is None or 0 has the default that `broker.h` names.
#[derive(Debug, Clone, Default)]
pub struct BrokerConfig {
    /// Admits every process, without proof and without encryption.
    pub open: bool,
    /// Proves the secret, but does not encrypt; members use `curve=no`.
    pub no_curve: bool,
    /// Address of the broker above this one.
    pub parent: Option<String>,
    /// Most bytes in transit from one member to another: the same in the whole tree.
    pub window_bytes: u64,
    /// Most members at a time.
    pub max_members: u32,
    /// A file with keys of CURVE.
    pub curve_file: Option<PathBuf>,
    /// What only brokers know, 16 to 1024 bytes; members then connect to a broker that proves its key, and to no other.
    pub broker_secret: Option<Vec<u8>>,
}

/// Counters of a broker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BrokerStats {
    /// Processes that are members.
    pub members: u64,
    /// Brokers below this one.
    pub brokers: u64,
    /// It is connected to the broker above it.
    pub has_parent: bool,
    /// Names in use; of the root of a tree only.
    pub names: u64,
    /// Messages that were forwarded.
    pub messages: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// At most so many bytes are in transit.
    pub queued_bytes: u64,
    /// Connections that are open.
    pub connections: u64,
    /// Connections that were refused, or closed for breaking the protocol.
    pub refused: u64,
    /// Members and brokers that were lost without a goodbye.
    pub lost: u64,
}

/// The centre of a star, on threads of this process: members reach each other through it. Needs the plug-in for
/// `zmq://`.
/// A broker that is dropped stops at once.
///
/// ```no_run
/// # use muster::{Broker, BrokerConfig, Context, Listener, Stream};
/// # let context = Context::new()?;
/// let broker = Broker::open(&context, "zmq://127.0.0.1:0/", &BrokerConfig::default())?;
/// let at = broker.address()?;                                         // "zmq://127.0.0.1:40123/"
/// let listener = Listener::bind(&context, &at.replace("//", "//me@"))?;
/// # Ok::<(), muster::Error>(())
/// ```
#[derive(Debug)]
pub struct Broker {
    raw: *mut sys::muster_broker,
}

// The functions of a broker may be called by any thread (broker.h).
unsafe impl Send for Broker {}
unsafe impl Sync for Broker {}

impl Drop for Broker {
    fn drop(&mut self) {
        unsafe { sys::muster_broker_release(self.raw) }
    }
}

impl Broker {
    /// Starts a broker that listens at this address; port 0 is any free one.
    pub fn open(context: &Context, address: &str, config: &BrokerConfig) -> Result<Broker> {
        let mut given = sys::muster_broker_config::sized();
        given.flags = if config.open { sys::MUSTER_BROKER_OPEN } else { 0 }
            | if config.no_curve { sys::MUSTER_BROKER_NO_CURVE } else { 0 };
        if let Some(parent) = &config.parent {
            given.parent = parent.as_ptr().cast();
            given.parent_bytes = parent.len() as u64;
        }
        given.window_bytes = config.window_bytes;
        given.max_members = config.max_members;
        let file = config.curve_file.as_ref().map(|path| path.as_os_str());
        if let Some(file) = file {
            use std::os::unix::ffi::OsStrExt;
            given.curve_file = file.as_bytes().as_ptr().cast();
            given.curve_file_bytes = file.len() as u64;
        }
        if let Some(secret) = &config.broker_secret {
            given.broker_secret = secret.as_ptr().cast();
            given.broker_secret_bytes = secret.len() as u64;
        }
        let mut raw = ptr::null_mut();
        check(|detail| unsafe {
            sys::muster_broker_open(context.as_raw(), address.as_ptr().cast(), address.len(), &given, &mut raw, detail)
        })?;
        Ok(Broker { raw })
    }

    /// The address for members, which put their name before the host: `name@`.
    pub fn address(&self) -> Result<String> {
        text_from(|to, room, size| unsafe { sys::muster_broker_address(self.raw, to, room, size) })
    }

    /// Its counters; of a closed one those of its end.
    pub fn stats(&self) -> Result<BrokerStats> {
        let mut found = unsafe { std::mem::zeroed::<sys::muster_broker_stats>() };
        check_status(unsafe { sys::muster_broker_get_stats(self.raw, &mut found) })?;
        Ok(BrokerStats {
            members: found.members,
            brokers: found.brokers,
            has_parent: found.has_parent != 0,
            names: found.names,
            messages: found.messages,
            bytes: found.bytes,
            queued_bytes: found.queued_bytes,
            connections: found.connections,
            refused: found.refused,
            lost: found.lost,
        })
    }

    /// Stops it; what is queued for members is sent within that time. None: 10 s.
    pub fn close(&self, timeout: Option<Duration>) -> Result<()> {
        check_status(unsafe { sys::muster_broker_close(self.raw, timeout_ns(timeout)) })
    }
}
