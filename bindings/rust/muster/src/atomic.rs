// SPDX-License-Identifier: MIT
//! What the atomics of the standard library lack: cells of 16 bytes that count their writes, and waits for words, also
//! between processes.
use crate::error::{check_status, Error, Result};
use crate::timeout_ns;
use muster_sys as sys;
use std::cell::UnsafeCell;
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

/// The contents of an [`AbaCell`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Address, offset or number.
    pub value: u64,
    /// Number of writes to the cell.
    pub count: u64,
}

/// A value with a count that every write increments: [`AbaCell::compare_exchange`] fails if the cell was written since
/// it was read, even if the value is the same again. All operations are sequentially consistent. 16 zero bytes, also in
/// memory that processes share, are a cell with the value 0.
#[repr(C, align(16))]
#[derive(Default)]
pub struct AbaCell {
    raw: UnsafeCell<sys::muster_aba>,
}

// Every access is one instruction for both halves.
unsafe impl Send for AbaCell {}
unsafe impl Sync for AbaCell {}

impl fmt::Debug for AbaCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.read(), f)
    }
}

// Cells are aligned and not null: no call below can fail otherwise.
impl AbaCell {
    /// A cell with this value and the count 0.
    pub const fn new(value: u64) -> AbaCell {
        AbaCell { raw: UnsafeCell::new(sys::muster_aba { value, count: 0 }) }
    }
    /// Both halves, read in one step.
    pub fn read(&self) -> Counted {
        let mut now = sys::muster_aba::default();
        unsafe { sys::muster_aba_read(self.raw.get(), &mut now) };
        Counted { value: now.value, count: now.count }
    }
    /// Writes a value.
    pub fn write(&self, value: u64) {
        unsafe { sys::muster_aba_write(self.raw.get(), value) };
    }
    /// Writes a value and returns what the cell was.
    pub fn exchange(&self, value: u64) -> Counted {
        let mut before = sys::muster_aba::default();
        unsafe { sys::muster_aba_exchange(self.raw.get(), value, &mut before) };
        Counted { value: before.value, count: before.count }
    }
    /// Writes a value if no write has happened since `expected` was read; otherwise gives what was found.
    pub fn compare_exchange(&self, expected: Counted, desired: u64) -> std::result::Result<(), Counted> {
        let mut seen = sys::muster_aba { value: expected.value, count: expected.count };
        match unsafe { sys::muster_aba_compare_exchange(self.raw.get(), &mut seen, desired) } {
            sys::MUSTER_OK => Ok(()),
            _ => Err(Counted { value: seen.value, count: seen.count }),
        }
    }
    /// Writes a value if the value, with any count, is the expected one; otherwise gives the value that was found.
    pub fn compare_exchange_value(&self, expected: u64, desired: u64) -> std::result::Result<(), u64> {
        let mut seen = expected;
        match unsafe { sys::muster_aba_compare_exchange_value(self.raw.get(), &mut seen, desired) } {
            sys::MUSTER_OK => Ok(()),
            _ => Err(seen),
        }
    }
}

/// How a word is compared with a value; both are unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Is {
    /// Equal.
    Equal = sys::MUSTER_ATOMIC_EQUAL as i32,
    /// Not equal.
    NotEqual = sys::MUSTER_ATOMIC_NOT_EQUAL as i32,
    /// Less.
    Less = sys::MUSTER_ATOMIC_LESS as i32,
    /// Less or equal.
    LessEqual = sys::MUSTER_ATOMIC_LESS_EQUAL as i32,
    /// Greater.
    Greater = sys::MUSTER_ATOMIC_GREATER as i32,
    /// Greater or equal.
    GreaterEqual = sys::MUSTER_ATOMIC_GREATER_EQUAL as i32,
}

/// A word of the standard library that can be waited for.
pub trait Word {
    #[doc(hidden)]
    fn condition(&self) -> sys::muster_atomic_condition;
    /// Wakes the threads, of any process, that wait for this word. Call it after the word was written.
    fn notify(&self) {
        let it = self.condition();
        unsafe { sys::muster_atomic_notify(it.cell, it.size_bytes) };
    }
}
impl Word for AtomicU32 {
    fn condition(&self) -> sys::muster_atomic_condition {
        sys::muster_atomic_condition { cell: (self as *const Self).cast(), size_bytes: 4, ..Default::default() }
    }
}
impl Word for AtomicU64 {
    fn condition(&self) -> sys::muster_atomic_condition {
        sys::muster_atomic_condition { cell: (self as *const Self).cast(), size_bytes: 8, ..Default::default() }
    }
}

/// Waits until at least `needed` of the conditions were true in one pass, and says which were. 1 waits for any of them,
/// their number for all; at most 64. `Status::TIMEOUT` if they were not in time, `Status::UNSUPPORTED` for several
/// words
/// or one of 64 bits before Linux 5.16.
///
/// ```no_run
/// # use muster::atomic::{wait_until, Is, Word};
/// # use std::sync::atomic::{AtomicU64, Ordering};
/// static ARRIVED: AtomicU64 = AtomicU64::new(0);
/// // another thread: ARRIVED.fetch_add(1, Ordering::AcqRel); ARRIVED.notify();
/// wait_until(&[(&ARRIVED, Is::GreaterEqual, 4)], 1, None)?;
/// # Ok::<(), muster::Error>(())
/// ```
pub fn wait_until(conditions: &[(&dyn Word, Is, u64)], needed: usize, timeout: Option<Duration>) -> Result<Vec<bool>> {
    let condition = |&(word, is, value): &(&dyn Word, Is, u64)| sys::muster_atomic_condition {
        value,
        comparison: is as i32,
        ..word.condition()
    };
    let mut raw: Vec<_> = conditions.iter().map(condition).collect();
    let (count, needed) = (raw.len().try_into(), needed.try_into());
    let (count, needed) = match (count, needed) {
        (Ok(count), Ok(needed)) => (count, needed),
        _ => return Err(Error::of(sys::MUSTER_E_ARG)),
    };
    check_status(unsafe { sys::muster_atomic_wait(raw.as_mut_ptr(), count, needed, timeout_ns(timeout)) })?;
    Ok(raw.iter().map(|it| it.is_true != 0).collect())
}
