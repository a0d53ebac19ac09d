// SPDX-License-Identifier: MIT
//! What a process counts, as text for Prometheus, and its publication in a store for `muster top`.
use crate::error::{check, check_status, Result, Status};
use crate::{Context, Store};
use muster_sys as sys;
use std::ptr;
use std::time::Duration;

/// The metrics of a context and of what was made from it, in the text format of Prometheus.
pub fn text(context: &Context) -> Result<String> {
    let mut bytes = vec![0u8; 4096];
    loop {
        let mut size = 0;
        let place = bytes.as_mut_ptr().cast();
        let status = unsafe { sys::muster_metrics_write(context.as_raw(), place, bytes.len(), &mut size) };
        if status == sys::MUSTER_E_LIMIT {
            bytes.resize(size + 1024, 0); // it may have grown until the next call
            continue;
        }
        check_status(status)?;
        bytes.truncate(size);
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
}

/// Publishes the metrics of a context in a store at intervals, until it is dropped.
#[derive(Debug)]
pub struct Publication(*mut sys::muster_metrics);

// The functions of metrics.h may be called by any thread.
unsafe impl Send for Publication {}
unsafe impl Sync for Publication {}

/// How a publication proceeds.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// Texts that the store has taken.
    pub published: u64,
    /// Texts that it has not.
    pub failed: u64,
    /// Result of the last one.
    pub status: Status,
}

impl Publication {
    /// `name`: of this process among those of the store; `None`: its host and process id. `interval`: 0.1 s to 1 hour;
    /// `None`: 2 s.
    pub fn begin(
        context: &Context,
        store: &Store,
        name: Option<&str>,
        interval: Option<Duration>,
    ) -> Result<Publication> {
        let mut config = sys::muster_metrics_config::sized();
        if let Some(name) = name {
            config.name = name.as_ptr().cast();
            config.name_bytes = name.len() as u64;
        }
        config.interval_ns = interval.map_or(0, |time| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX));
        let mut made = ptr::null_mut();
        check(|detail| unsafe {
            sys::muster_metrics_publish(context.as_raw(), store.as_raw(), &config, &mut made, detail)
        })?;
        Ok(Publication(made))
    }

    /// How it proceeds.
    pub fn state(&self) -> Result<State> {
        let mut found = unsafe { std::mem::zeroed::<sys::muster_metrics_state>() };
        check_status(unsafe { sys::muster_metrics_get_state(self.0, &mut found) })?;
        Ok(State { published: found.published, failed: found.failed, status: Status(found.status) })
    }
}

impl Drop for Publication {
    fn drop(&mut self) {
        unsafe { sys::muster_metrics_release(self.0) }
    }
}
