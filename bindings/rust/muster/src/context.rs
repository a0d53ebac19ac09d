// SPDX-License-Identifier: MIT
use crate::error::{check, check_status, Result};
use crate::timeout_ns;
use muster_sys as sys;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

/// The owner of all other objects, with the thread of the library and the secret of the job. A clone is the same
/// context.
#[derive(Debug, Clone)]
pub struct Context {
    raw: Arc<Raw>,
}

#[derive(Debug)]
struct Raw(*mut sys::muster_context);

// The functions of a context may be called by any thread at any time (context.h).
unsafe impl Send for Raw {}
unsafe impl Sync for Raw {}

impl Drop for Raw {
    fn drop(&mut self) {
        unsafe { sys::muster_context_release(self.0) }
    }
}

/// How to make a context; the default is that of the C interface.
#[derive(Clone, Default)]
pub struct ContextConfig {
    /// Secret of the job, 16 to 1024 bytes. None: the variables MUSTER_SECRET_FILE and MUSTER_SECRET, or a random one.
    pub secret: Option<Vec<u8>>,
    /// Time without bytes after which a peer counts as dead. None: 60 s.
    pub dead: Option<Duration>,
    /// Maximum bytes that are buffered per direction of a stream, a power of two. None: 1 MiB.
    pub window_bytes: Option<u64>,
}

impl std::fmt::Debug for ContextConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ContextConfig")
            .field("secret", &self.secret.as_ref().map(|_| "(not shown)"))
            .field("dead", &self.dead)
            .field("window_bytes", &self.window_bytes)
            .finish()
    }
}

impl Context {
    /// Makes a context with the defaults.
    pub fn new() -> Result<Context> {
        Context::with(&ContextConfig::default())
    }

    /// Makes a context with this configuration.
    pub fn with(config: &ContextConfig) -> Result<Context> {
        let mut raw = ptr::null_mut();
        check(|detail| unsafe { sys::muster_context_create(&config.raw(), &mut raw, detail) })?;
        Ok(Context::adopt(raw))
    }

    /// Makes the context of a worker from the ticket that its launcher has passed, with the secret in it.
    pub fn of_worker() -> Result<Context> {
        let mut raw = ptr::null_mut();
        let config = ContextConfig::default();
        check(|detail| unsafe { sys::muster_worker_context(&config.raw(), 0, &mut raw, detail) })?;
        Ok(Context::adopt(raw))
    }

    /// Closes the context and all its objects; waits for bytes that are still to be sent. Dropping it does the same,
    /// without a result.
    pub fn close(&self, timeout: Option<Duration>) -> Result<()> {
        check_status(unsafe { sys::muster_context_close(self.raw.0, timeout_ns(timeout)) })
    }

    /// Its secret.
    pub fn secret(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![0u8; 1024];
        let mut size = 0;
        check_status(unsafe {
            sys::muster_context_secret(self.raw.0, bytes.as_mut_ptr().cast(), bytes.len(), &mut size)
        })?;
        bytes.truncate(size);
        Ok(bytes)
    }

    pub(crate) fn adopt(raw: *mut sys::muster_context) -> Context {
        Context { raw: Arc::new(Raw(raw)) }
    }
    /// The handle of the C interface, for functions that this crate does not wrap; this object keeps the ownership.
    pub fn as_raw(&self) -> *mut sys::muster_context {
        self.raw.0
    }
}

impl ContextConfig {
    // Borrows from self.
    fn raw(&self) -> sys::muster_context_config {
        let mut config = sys::muster_context_config::sized();
        if let Some(secret) = &self.secret {
            config.secret = secret.as_ptr().cast();
            config.secret_bytes = secret.len() as u64;
        }
        config.dead_ns = self.dead.map_or(0, |time| timeout_ns(Some(time)));
        config.window_bytes = self.window_bytes.unwrap_or(0);
        config
    }
}
