// SPDX-License-Identifier: MIT
//! Muster for Rust: streams over tcp, unix, shared memory and a ZeroMQ star; clusters, a rendezvous and a store;
//! messages, collective operations and global memory; transports and cluster managers of the program; functions called
//! in other processes.
//! All objects are made from a [`Context`]. Calls that wait have a timeout: `None` is endless, zero does not wait.
//! Handles are `Send` and `Sync`, as the C interface documents it (`@threads{any}`), and are released when they are
//! dropped. A program with an event loop of its own polls the descriptor of a [`Queue`] and takes its events with a
//! timeout of zero.
//!
//! ```no_run
//! use std::io::{Read, Write};
//! let context = muster::Context::new()?;
//! let listener = muster::Listener::bind(&context, "tcp://127.0.0.1:0")?;
//! let mut there = muster::Stream::dial(&context, &listener.address()?, None)?;
//! let mut here = listener.accept(None)?;
//! there.write_all(b"hello")?;
//! there.finish()?;
//! let mut text = String::new();
//! here.read_to_string(&mut text)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//! [`parallel`] is a small runtime on top of it: a master, workers, `call` and `map`.
#![warn(missing_docs)]
#![deny(missing_debug_implementations)]

pub use muster_sys as sys;

mod agent;
mod am;
pub mod atomic;
mod broker;
mod cluster;
mod context;
pub mod epoch;
mod error;
mod event;
mod group;
mod manager;
pub mod memory;
mod message;
pub mod metrics;
pub mod parallel;
mod process;
mod queue;
mod rendezvous;
mod reports;
mod served;
mod socket;
mod store;
mod stream;
pub mod trace;
mod transport;

pub use agent::{Agent, AgentConfig, AgentState, AgentStep, AgentWorker, Outputs, Phase};
pub use am::{Endpoint, EndpointConfig, Peer, Request};
pub use broker::{Broker, BrokerConfig, BrokerStats};
pub use cluster::{
    Broadcast, Cluster, ClusterConfig, ClusterEvent, Launch, Member, MemberState, Topology, WorkerConfig, MASTER,
};
pub use context::{Context, ContextConfig};
pub use error::{Error, Result, Status};
pub use event::Event;
pub use group::{Element, Group, GroupConfig, Progress, Reduce, Reduction};
pub use manager::{Manager, ManagerServer};
pub use message::Message;
pub use process::{Exit, Process, ProcessConfig};
pub use queue::Queue;
pub use rendezvous::{Rendezvous, RendezvousConfig, RendezvousEvent, Round};
pub use reports::{LaunchRequest, Reports};
pub use socket::{Socket, SocketConfig, SocketEvent, Unsent};
pub use store::{Answer, Found, Lease, Op, Store, StoreServer};
pub use stream::{Buffered, Listener, Stream};
pub use transport::{Requests, Transport, TransportServer};

use std::time::Duration;

// As in C: nanoseconds, negative: endless.
fn timeout_ns(timeout: Option<Duration>) -> i64 {
    timeout.map_or(-1, |time| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))
}
