// SPDX-License-Identifier: MIT
//! Epoch-based reclamation: when may memory be freed that other threads may still read without a lock?
//!
//! An [`Epoch`] has [`Token`]s, one for each thread that takes part. [`Token::pin`] gives a [`Guard`]: what is loaded
//! from
//! an [`Atomic`] with it stays valid until the guard is dropped. A thread that has unlinked an object defers it, and
//! [`Token::poll`] drops it when no guard of that time is left.
//!
//! ```no_run
//! use muster::epoch::{Atomic, Epoch, EpochConfig};
//! use std::sync::atomic::Ordering::*;
//! let epoch = Epoch::new(&EpochConfig::default())?;
//! let token = epoch.register()?;
//! let newest = Atomic::new(String::from("first"));
//! {
//!     let guard = token.pin();
//!     let before = newest.swap(Some(Box::new(String::from("second"))), AcqRel, &guard);
//!     println!("{}", unsafe { before.as_ref() }.unwrap()); // other threads may do the same
//!     unsafe { guard.defer(before) }?;
//! }
//! token.poll(0)?;
//! # Ok::<(), muster::Error>(())
//! ```
use crate::error::{check, check_status, Error, Result, Status};
use crate::{timeout_ns, Queue};
use muster_sys as sys;
use std::fmt;
use std::marker::PhantomData;
use std::os::raw::c_void;
use std::os::unix::io::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::{compiler_fence, fence, AtomicPtr, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How to make a manager; 0 is the default of the C interface.
#[derive(Debug, Clone, Default)]
pub struct EpochConfig {
    /// Maximum number of tokens.
    pub max_tokens: u32,
    /// Maximum number of deferred objects of one token.
    pub max_pending: u32,
    /// Each pin has a fence of its own: better where nearly every pin defers an object.
    pub fenced: bool,
    /// A thread that exits without dropping its token is found, and its objects are handed over. A token must then not
    /// outlive the thread that has registered it.
    pub thread_bound: bool,
    /// Where `MUSTER_EPOCH_BLOCKED` is reported, and with which tag.
    pub notify: Option<(Queue, u64)>,
}

/// What an attempt to advance the epoch found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// The epoch is one higher.
    Advanced,
    /// Another thread has advanced it meanwhile, or is about to.
    Lost,
    /// A pinned token has an earlier epoch.
    Blocked {
        /// Its number.
        token: u32,
        /// Process id of its owner.
        process: i32,
        /// Thread id of the thread that has registered it.
        thread: i32,
        /// For how long it was found to block.
        since: Duration,
    },
}

/// What a poll has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Polled {
    /// Number of objects that were freed or handed back.
    pub freed: u32,
    /// Numbers of [`Token::retire`] that were handed back.
    pub retired: Vec<u64>,
    /// A limit was reached: there are more.
    pub more: bool,
}

/// A manager of epochs. A clone is the same manager.
pub struct Epoch {
    raw: *mut sys::muster_epoch,
}

// Functions of a manager may be called by any thread (epoch.h).
unsafe impl Send for Epoch {}
unsafe impl Sync for Epoch {}

impl Drop for Epoch {
    fn drop(&mut self) {
        unsafe { sys::muster_epoch_release(self.raw) }
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stats = self.stats().unwrap_or_default();
        write!(f, "Epoch {} with {} tokens, {} objects wait", stats.epoch, stats.tokens, stats.pending)
    }
}

impl Epoch {
    fn config(config: &EpochConfig) -> sys::muster_epoch_config {
        let flag = |set, bit| if set { bit } else { 0 };
        let (queue, tag) = config.notify.as_ref().map_or((ptr::null_mut(), 0), |(queue, tag)| (queue.as_raw(), *tag));
        sys::muster_epoch_config {
            flags: flag(config.fenced, sys::MUSTER_EPOCH_FENCED)
                | flag(config.thread_bound, sys::MUSTER_EPOCH_THREAD_BOUND),
            max_tokens: config.max_tokens,
            max_pending: config.max_pending,
            queue,
            tag,
            ..sys::muster_epoch_config::sized()
        }
    }
    fn made(with: &sys::muster_epoch_config, opens: bool) -> Result<Epoch> {
        let mut raw = ptr::null_mut();
        check(|detail| unsafe {
            if opens {
                sys::muster_epoch_open(with, &mut raw, detail)
            } else {
                sys::muster_epoch_create(with, &mut raw, detail)
            }
        })?;
        Ok(Epoch { raw })
    }

    /// A manager for the threads of this process.
    pub fn new(config: &EpochConfig) -> Result<Epoch> {
        Epoch::made(&Epoch::config(config), false)
    }
    /// Makes a manager in memory that processes share, which is zero; its size is [`Epoch::shared_size`].
    pub fn create_shared(config: &EpochConfig, memory: BorrowedFd<'_>, offset: u64) -> Result<Epoch> {
        let mut with = Epoch::config(config);
        with.flags |= sys::MUSTER_EPOCH_SHARED;
        with.fd = memory.as_raw_fd();
        with.offset = offset;
        Epoch::made(&with, false)
    }
    /// Opens a manager that another process has made; limits and the form of its pins are those of its creator.
    pub fn open_shared(memory: BorrowedFd<'_>, offset: u64) -> Result<Epoch> {
        let flags = sys::MUSTER_EPOCH_SHARED;
        let fd = memory.as_raw_fd();
        Epoch::made(&sys::muster_epoch_config { flags, fd, offset, ..sys::muster_epoch_config::sized() }, true)
    }
    /// Bytes of a manager in shared memory, a multiple of the page size.
    pub fn shared_size(config: &EpochConfig) -> u64 {
        unsafe { sys::muster_epoch_size(config.max_tokens, config.max_pending) }
    }

    /// A token of this manager. It remains valid when the manager is dropped.
    pub fn register(&self) -> Result<Token> {
        let mut raw = ptr::null_mut();
        check(|detail| unsafe { sys::muster_epoch_register(self.raw, &mut raw, detail) })?;
        Ok(Token { raw, one_thread: PhantomData })
    }
    /// Tries to advance the epoch by one. Frees nothing.
    pub fn advance(&self) -> Result<Attempt> {
        let mut found = sys::muster_epoch_attempt::default();
        attempt(unsafe { sys::muster_epoch_advance(self.raw, &mut found) }, &found)
    }
    /// Counters, as in C.
    pub fn stats(&self) -> Result<sys::muster_epoch_stats> {
        let mut stats = sys::muster_epoch_stats::default();
        check_status(unsafe { sys::muster_epoch_get_stats(self.raw, &mut stats) })?;
        Ok(stats)
    }
}

fn attempt(status: i32, found: &sys::muster_epoch_attempt) -> Result<Attempt> {
    match status {
        sys::MUSTER_OK => Ok(Attempt::Advanced),
        sys::MUSTER_AGAIN | sys::MUSTER_TIMEOUT if found.outcome == sys::MUSTER_EPOCH_HELD as i32 => {
            let (token, process, thread) = (found.token, found.process, found.thread);
            Ok(Attempt::Blocked { token, process, thread, since: Duration::from_nanos(found.since_ns) })
        }
        sys::MUSTER_AGAIN | sys::MUSTER_TIMEOUT => Ok(Attempt::Lost),
        _ => Err(Error::of(status)),
    }
}

/// An object that was not deferred because too many wait, or because the token cannot be used.
pub struct NotDeferred<T> {
    /// The object.
    pub object: T,
    /// Why.
    pub error: Error,
}
impl<T> fmt::Debug for NotDeferred<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.error, f)
    }
}
impl<T> fmt::Display for NotDeferred<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the object was not deferred: {}", self.error)
    }
}
impl<T> std::error::Error for NotDeferred<T> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}
impl<T> From<NotDeferred<T>> for Error {
    fn from(not: NotDeferred<T>) -> Error {
        not.error
    }
}

/// One reader and writer of the structures that a manager protects. One thread uses it at a time; it can be sent to
/// another one while it is not pinned. Dropping it hands its deferred objects to the other tokens.
pub struct Token {
    raw: *mut sys::muster_epoch_token,
    one_thread: PhantomData<*mut ()>,
}

// No thread-local state belongs to a token (epoch.h).
unsafe impl Send for Token {}

impl Drop for Token {
    fn drop(&mut self) {
        unsafe { sys::muster_epoch_unregister(self.raw) };
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token {}", unsafe { (*self.raw).index })
    }
}

// What C calls when the time of a box has come.
unsafe extern "C" fn drop_box<T>(_: *mut c_void, object: *mut c_void) {
    // A panic must not unwind into C.
    let dropped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(Box::from_raw(object.cast::<T>()))));
    if dropped.is_err() {
        std::process::abort();
    }
}

impl Token {
    /// Pins the token until the guard is dropped. Guards nest.
    pub fn pin(&self) -> Guard<'_> {
        // As in inline/epoch.h, which describes each step.
        unsafe {
            let token = self.raw;
            let epoch = &*self.epoch();
            if epoch.load(Ordering::Relaxed) != 0 {
                (*token).depth += 1;
            } else {
                let to_global = (*token).to_global;
                let global = &*token.cast::<u8>().offset((to_global & !1) as isize).cast::<AtomicU64>();
                let now = global.load(Ordering::Relaxed);
                if to_global & 1 == 0 {
                    epoch.store(now, Ordering::Release);
                    compiler_fence(Ordering::SeqCst);
                } else if cfg!(target_arch = "x86_64") {
                    epoch.swap(now, Ordering::SeqCst); // a full fence there
                } else {
                    epoch.store(now, Ordering::Release);
                    fence(Ordering::SeqCst);
                }
            }
        }
        Guard { token: self }
    }

    fn defer_raw<T: Send + 'static>(&self, object: *mut T) -> Result<()> {
        let free: sys::muster_epoch_free_fn = Some(drop_box::<T>);
        let status = unsafe { sys::muster_epoch_defer(self.raw, free, ptr::null_mut(), object.cast()) };
        if status == sys::MUSTER_AGAIN {
            return Err(Error::new(Status::AGAIN, "as many objects wait as the manager allows"));
        }
        check_status(status)
    }

    /// Drops a box when every guard of this time was dropped, in a poll of any thread. Returns it if too many wait.
    pub fn defer_box<T: Send + 'static>(&self, object: Box<T>) -> std::result::Result<(), NotDeferred<Box<T>>> {
        let raw = Box::into_raw(object);
        self.defer_raw(raw).map_err(|error| NotDeferred { object: unsafe { Box::from_raw(raw) }, error })
    }
    /// Drops an object when every guard of this time was dropped. If too many wait, it frees some and waits, which the
    /// token
    /// can only do while it is not pinned: [`Status::WOULD_DEADLOCK`]. [`Status::TIMEOUT`]: the object stays. How full
    /// it is
    /// depends on other threads: a thread that is preempted while it is pinned holds up everything that is deferred
    /// meanwhile.
    ///
    /// # Safety
    /// No structure refers to the object any more, no other thread defers it, and it was made by `Box::new`.
    pub unsafe fn defer<T: Send + 'static>(&self, object: *const T, timeout: Option<Duration>) -> Result<()> {
        let until = timeout.map(|time| Instant::now() + time);
        loop {
            match self.defer_raw(object as *mut T) {
                Err(full) if full.status() == Status::AGAIN => {}
                other => return other,
            }
            if self.is_pinned() {
                return Err(Error::of(sys::MUSTER_E_WOULD_DEADLOCK));
            }
            if until.map_or(false, |until| Instant::now() >= until) {
                return Err(Error::new(Status::TIMEOUT, "as many objects wait as the manager allows"));
            }
            self.try_reclaim()?;
            if self.poll(64)?.freed == 0 {
                std::thread::yield_now();
            }
        }
    }
    fn is_pinned(&self) -> bool {
        unsafe { (*self.epoch()).load(Ordering::Relaxed) != 0 }
    }
    fn epoch(&self) -> *const AtomicU64 {
        unsafe { ptr::addr_of!((*self.raw).epoch).cast() }
    }
    /// Hands a number back by [`Token::poll_retired`] when every guard of this time was dropped: an offset into shared
    /// memory, or what the program knows an object by. Not 0.
    pub fn retire(&self, object: u64) -> Result<()> {
        check_status(unsafe { sys::muster_epoch_retire(self.raw, object) })
    }

    /// Frees at most `max_objects` objects whose time has come, 0: 8. Cheap enough for each operation. It stops at a
    /// number
    /// of [`Token::retire`].
    pub fn poll(&self, max_objects: u32) -> Result<Polled> {
        self.poll_into(max_objects, Vec::new())
    }
    /// The same, and hands numbers of [`Token::retire`] back.
    pub fn poll_retired(&self, max_objects: u32) -> Result<Polled> {
        self.poll_into(max_objects, vec![0; if max_objects == 0 { 8 } else { max_objects.min(4096) as usize }])
    }
    fn poll_into(&self, max_objects: u32, mut retired: Vec<u64>) -> Result<Polled> {
        let (mut count, mut freed) = (0, 0);
        let (place, size) = (retired.as_mut_ptr(), retired.len() as u32);
        let status = unsafe { sys::muster_epoch_poll(self.raw, max_objects, 0, place, size, &mut count, &mut freed) };
        retired.truncate(count as usize);
        match status {
            sys::MUSTER_OK | sys::MUSTER_AGAIN => Ok(Polled { freed, retired, more: status == sys::MUSTER_AGAIN }),
            _ => Err(Error::of(status)),
        }
    }
    /// Tries to advance the epoch by one, after stamping the objects of this token. Frees nothing.
    pub fn try_reclaim(&self) -> Result<Attempt> {
        let mut found = sys::muster_epoch_attempt::default();
        attempt(unsafe { sys::muster_epoch_try_reclaim(self.raw, &mut found) }, &found)
    }
    /// Waits until every guard of this time was dropped. An error with [`Status::TIMEOUT`] names the token in its text.
    pub fn synchronize(&self, timeout: Option<Duration>) -> Result<()> {
        let mut found = sys::muster_epoch_attempt::default();
        match unsafe { sys::muster_epoch_synchronize(self.raw, timeout_ns(timeout), &mut found) } {
            sys::MUSTER_TIMEOUT => Err(Error::new(
                Status::TIMEOUT,
                format!("token {} of process {}, thread {}, is pinned", found.token, found.process, found.thread),
            )),
            status => check_status(status),
        }
    }
    /// Waits until everything that this token has deferred was dropped.
    pub fn barrier(&self, timeout: Option<Duration>) -> Result<()> {
        match unsafe { sys::muster_epoch_barrier(self.raw, timeout_ns(timeout)) } {
            sys::MUSTER_AGAIN => Err(Error::new(Status::AGAIN, "the next object has to be handed back by a poll")),
            status => check_status(status),
        }
    }
    /// Releases what [`Guard::protect`] protects.
    pub fn release(&self, slot: u32) -> Result<()> {
        check_status(unsafe { sys::muster_epoch_protect(self.raw, slot, 0) })
    }
}

/// While it exists, what is loaded with it stays valid. It stays on its thread.
pub struct Guard<'t> {
    token: &'t Token,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        // As in inline/epoch.h.
        unsafe {
            let token = self.token.raw;
            if (*token).depth != 0 {
                (*token).depth -= 1;
            } else {
                (*self.token.epoch()).store(0, Ordering::Release);
            }
        }
    }
}

impl fmt::Debug for Guard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Guard of {:?}", self.token)
    }
}

impl<'t> Guard<'t> {
    /// The token.
    pub fn token(&self) -> &'t Token {
        self.token
    }
    /// Pins at the current epoch, so that a reader that stays long blocks nothing; what was loaded before can no longer
    /// be borrowed. False: another guard of this token exists, and nothing changed.
    pub fn repin(&mut self) -> bool {
        unsafe { sys::muster_epoch_repin(self.token.raw) == sys::MUSTER_OK }
    }
    /// Drops an object when every guard of this time was dropped. If too many wait, [`Status::AGAIN`]: the object
    /// stays.
    ///
    /// # Safety
    /// No structure refers to the object any more, no other thread defers it, and it was made by `Box::new`.
    pub unsafe fn defer<T: Send + 'static>(&self, object: Shared<'_, T>) -> Result<()> {
        if object.is_null() {
            return Err(Error::of(sys::MUSTER_E_ARG));
        }
        self.token.defer_raw(object.raw)
    }
    /// Protects an object beyond this guard, until [`Token::release`] or another object takes the slot, 0 to 7. The
    /// address stays valid meanwhile, for unsafe code.
    pub fn protect<T>(&self, slot: u32, object: Shared<'_, T>) -> Result<*const T> {
        check_status(unsafe { sys::muster_epoch_protect(self.token.raw, slot, object.raw as u64) })?;
        Ok(object.raw)
    }
}

/// A pointer that was loaded with a guard, perhaps null.
pub struct Shared<'g, T> {
    raw: *mut T,
    guard: PhantomData<&'g T>,
}

impl<T> Clone for Shared<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Shared<'_, T> {}
impl<T> PartialEq for Shared<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}
impl<T> Eq for Shared<'_, T> {}
impl<T> fmt::Debug for Shared<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:p}", self.raw)
    }
}

impl<'g, T> Shared<'g, T> {
    /// Null.
    pub fn null() -> Shared<'g, T> {
        Shared { raw: ptr::null_mut(), guard: PhantomData }
    }
    /// Whether it is null.
    pub fn is_null(self) -> bool {
        self.raw.is_null()
    }
    /// The address.
    pub fn as_raw(self) -> *const T {
        self.raw
    }
    /// The object; None for null.
    ///
    /// # Safety
    /// The guard is of the manager that the object is deferred with, the object was published with release order, and
    /// the
    /// token belongs to this process (not to the parent after fork()).
    pub unsafe fn as_ref(self) -> Option<&'g T> {
        self.raw.as_ref()
    }
    /// Takes the object back, for the end of a structure that no other thread uses.
    ///
    /// # Safety
    /// No other thread has a reference to it or can load it, and it was not deferred.
    pub unsafe fn into_box(self) -> Option<Box<T>> {
        if self.raw.is_null() {
            None
        } else {
            Some(Box::from_raw(self.raw))
        }
    }
}

/// A pointer to a boxed object that threads load and exchange. Dropping it does not drop the object.
pub struct Atomic<T> {
    raw: AtomicPtr<T>,
}

// It gives other threads references to the object, and hands it over to be dropped.
unsafe impl<T: Send + Sync> Send for Atomic<T> {}
unsafe impl<T: Send + Sync> Sync for Atomic<T> {}

impl<T> Default for Atomic<T> {
    fn default() -> Atomic<T> {
        Atomic { raw: AtomicPtr::new(ptr::null_mut()) }
    }
}
impl<T> fmt::Debug for Atomic<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.raw, f)
    }
}

fn raw_of<T>(object: Option<Box<T>>) -> *mut T {
    object.map_or(ptr::null_mut(), Box::into_raw)
}

// What an exchange finds is read with acquire order; before Rust 1.64 that must not be stronger than the order of
// success.
fn with_acquire(order: Ordering) -> Ordering {
    match order {
        Ordering::Relaxed => Ordering::Acquire,
        Ordering::Release => Ordering::AcqRel,
        other => other,
    }
}

impl<T> Atomic<T> {
    /// Points to a new object.
    pub fn new(object: T) -> Atomic<T> {
        Atomic { raw: AtomicPtr::new(Box::into_raw(Box::new(object))) }
    }
    /// Loads the pointer.
    pub fn load<'g>(&self, order: Ordering, _: &'g Guard<'_>) -> Shared<'g, T> {
        Shared { raw: self.raw.load(order), guard: PhantomData }
    }
    /// Stores a pointer. What it pointed to before is not deferred.
    pub fn store(&self, object: Option<Box<T>>, order: Ordering) {
        self.raw.store(raw_of(object), order)
    }
    /// Stores a pointer that was loaded, for links between objects.
    pub fn link(&self, object: Shared<'_, T>, order: Ordering) {
        self.raw.store(object.raw, order)
    }
    /// Stores a pointer and returns the one before.
    pub fn swap<'g>(&self, object: Option<Box<T>>, order: Ordering, _: &'g Guard<'_>) -> Shared<'g, T> {
        Shared { raw: self.raw.swap(raw_of(object), order), guard: PhantomData }
    }
    /// Stores `new` if the pointer is `current`, and returns `new`. Otherwise gives `new` back.
    pub fn compare_exchange<'g>(
        &self,
        current: Shared<'_, T>,
        new: Box<T>,
        order: Ordering,
        _: &'g Guard<'_>,
    ) -> std::result::Result<Shared<'g, T>, Box<T>> {
        let raw = Box::into_raw(new);
        match self.raw.compare_exchange(current.raw, raw, with_acquire(order), Ordering::Acquire) {
            Ok(_) => Ok(Shared { raw, guard: PhantomData }),
            Err(_) => Err(unsafe { Box::from_raw(raw) }),
        }
    }
    /// Stores a pointer that was loaded, or null, if the pointer is `current`. Otherwise gives what was found.
    pub fn compare_link<'g>(
        &self,
        current: Shared<'_, T>,
        new: Shared<'_, T>,
        order: Ordering,
        _: &'g Guard<'_>,
    ) -> std::result::Result<(), Shared<'g, T>> {
        let done = self.raw.compare_exchange(current.raw, new.raw, with_acquire(order), Ordering::Acquire);
        done.map(drop).map_err(|raw| Shared { raw, guard: PhantomData })
    }
}
