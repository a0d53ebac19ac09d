// SPDX-License-Identifier: MIT
// Written by bindings/rust/generate from include/muster/*.h; do not edit.
//! The C interface of libmuster, as it is: names, structs, constants and functions of `include/muster/*.h`, where each
//! is described. The crate `muster` is the safe form of it.
//!
//! Every struct has a `Default` of zeros, which C takes for the defaults; `sized()` also says how large it is, in those
//! that have a `struct_size`.
#![allow(non_camel_case_types)]
#![cfg_attr(rustfmt, rustfmt_skip)]

// For the tests of layouts.
#[cfg(test)]
macro_rules! at {
    ($struct:ty, $field:ident, $place:expr) => {
        let it = std::mem::MaybeUninit::<$struct>::uninit();
        let place = unsafe { std::ptr::addr_of!((*it.as_ptr()).$field) as usize } - it.as_ptr() as usize;
        assert_eq!(place, $place, concat!(stringify!($struct), "::", stringify!($field)));
    };
}

mod agent;
pub use agent::*;
mod am;
pub use am::*;
mod atomic;
pub use atomic::*;
mod base;
pub use base::*;
mod broker;
pub use broker::*;
mod cluster;
pub use cluster::*;
mod context;
pub use context::*;
mod epoch;
pub use epoch::*;
mod forwarder;
pub use forwarder::*;
mod group;
pub use group::*;
mod manager;
pub use manager::*;
mod memory;
pub use memory::*;
mod message;
pub use message::*;
mod message_queue;
pub use message_queue::*;
mod metrics;
pub use metrics::*;
mod plugin;
pub use plugin::*;
mod process;
pub use process::*;
mod queue;
pub use queue::*;
mod rendezvous;
pub use rendezvous::*;
mod rendezvous_serve;
pub use rendezvous_serve::*;
mod serve;
pub use serve::*;
mod socket;
pub use socket::*;
mod store;
pub use store::*;
mod store_serve;
pub use store_serve::*;
mod store_server;
pub use store_server::*;
mod stream;
pub use stream::*;
mod trace;
pub use trace::*;
mod transport;
pub use transport::*;
mod worker;
pub use worker::*;
