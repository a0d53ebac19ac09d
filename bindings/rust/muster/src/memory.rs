// SPDX-License-Identifier: MIT
//! Global memory: a segment of each member of a group, used by all of them, on this host and on others.
//!
//! ```no_run
//! use muster::memory::{Fetch, GlobalMemory, MemoryConfig};
//! # fn example(group: &muster::Group) -> muster::Result<()> {
//! let memory = GlobalMemory::open(group, &MemoryConfig { segment_bytes: 1 << 20, ..MemoryConfig::default() })?;
//! let offset = memory.symmetric(8, 8)?; // all members make this call
//! let word = memory.pointer(0, offset)?; // in the segment of rank 0
//! memory.fetch(word, Fetch::Add, 1)?;
//! let token = memory.token()?;
//! let block = memory.allocate(1, 100)?.expect("the segment of rank 1 is full");
//! memory.put(block, b"hello")?;
//! token.retire(block)?; // freed when no token is pinned any more that was pinned at this time
//! token.clear(None)?;
//! # Ok(())
//! # }
//! ```
use crate::error::{check, check_status, Error, Result, Status};
use crate::{timeout_ns, Group};
use muster_sys as sys;
use std::fmt;
use std::marker::PhantomData;
use std::os::raw::c_void;
use std::ptr;
use std::time::Duration;

/// How to make a memory, the same at all members; 0 is the default of the C interface.
#[derive(Clone, Debug)]
pub struct MemoryConfig {
    /// Bytes of the segment of each member.
    pub segment_bytes: u64,
    /// Of these, bytes for [`GlobalMemory::symmetric`].
    pub symmetric_bytes: u64,
    /// Maximum number of tokens of the processes of one host.
    pub max_tokens: u32,
    /// Maximum number of blocks of one token that wait to be freed.
    pub max_pending: u32,
    /// Members of one host use messages, too.
    pub no_shared_memory: bool,
    /// How long a call waits for another member; None: without a limit.
    pub timeout: Option<Duration>,
}

impl Default for MemoryConfig {
    fn default() -> MemoryConfig {
        MemoryConfig {
            segment_bytes: 0,
            symmetric_bytes: 0,
            max_tokens: 0,
            max_pending: 0,
            no_shared_memory: false,
            timeout: Some(Duration::from_secs(60)),
        }
    }
}

/// A place in the segment of a member. The same number means the same place in all processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct GlobalPointer(u64);

impl GlobalPointer {
    /// No place.
    pub const NIL: GlobalPointer = GlobalPointer(0);
    /// The number, for a word of global memory, say.
    pub fn to_bits(self) -> u64 {
        self.0
    }
    /// The place of a number that [`GlobalPointer::to_bits`] has given, in any process.
    pub fn from_bits(bits: u64) -> GlobalPointer {
        GlobalPointer(bits)
    }
    /// Is it no place?
    pub fn is_nil(self) -> bool {
        self.0 == 0
    }
    /// The place so many bytes after this one, in the same segment.
    pub fn offset(self, bytes: u64) -> GlobalPointer {
        GlobalPointer(self.0 + bytes)
    }
}

/// How [`GlobalMemory::fetch`] changes a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetch {
    /// Addition, which wraps around.
    Add,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Minimum of numbers with a sign.
    Min,
    /// Maximum of numbers with a sign.
    Max,
    /// Minimum of numbers without a sign.
    UnsignedMin,
    /// Maximum of numbers without a sign.
    UnsignedMax,
}

impl Fetch {
    fn number(self) -> u32 {
        match self {
            Fetch::Add => sys::MUSTER_ATOMIC_ADD,
            Fetch::And => sys::MUSTER_ATOMIC_AND,
            Fetch::Or => sys::MUSTER_ATOMIC_OR,
            Fetch::Xor => sys::MUSTER_ATOMIC_XOR,
            Fetch::Min => sys::MUSTER_ATOMIC_MIN,
            Fetch::Max => sys::MUSTER_ATOMIC_MAX,
            Fetch::UnsignedMin => sys::MUSTER_ATOMIC_UMIN,
            Fetch::UnsignedMax => sys::MUSTER_ATOMIC_UMAX,
        }
    }
}

/// The memory of all members of a group. Its calls wait for members of other hosts, and may be made by any thread.
pub struct GlobalMemory {
    raw: *mut sys::muster_memory,
    timeout: Option<Duration>,
}

// Functions of a memory may be called by any thread (memory.h).
unsafe impl Send for GlobalMemory {}
unsafe impl Sync for GlobalMemory {}

impl Drop for GlobalMemory {
    fn drop(&mut self) {
        unsafe { sys::muster_memory_release(self.raw) }
    }
}

impl fmt::Debug for GlobalMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GlobalMemory of locale {} of {}", self.locale(), self.locales())
    }
}

impl GlobalMemory {
    /// Makes a memory with all members of the group.
    pub fn open(group: &Group, config: &MemoryConfig) -> Result<GlobalMemory> {
        let given = sys::muster_memory_config {
            segment_bytes: config.segment_bytes,
            symmetric_bytes: config.symmetric_bytes,
            max_tokens: config.max_tokens,
            max_pending: config.max_pending,
            flags: if config.no_shared_memory { sys::MUSTER_MEMORY_NO_SHARED_MEMORY } else { 0 },
            ..sys::muster_memory_config::sized()
        };
        let mut raw = ptr::null_mut();
        check(|detail| unsafe {
            sys::muster_memory_open(group.as_raw(), &given, timeout_ns(config.timeout), &mut raw, detail)
        })?;
        Ok(GlobalMemory { raw, timeout: config.timeout })
    }

    /// The rank of this member.
    pub fn locale(&self) -> u32 {
        unsafe { sys::muster_memory_locale(self.raw) }
    }
    /// Number of members.
    pub fn locales(&self) -> u32 {
        unsafe { sys::muster_memory_locales(self.raw) }
    }

    /// So many bytes at the same offset in every segment, zero at first; all members make the call.
    pub fn symmetric(&self, bytes: u64, alignment: u64) -> Result<u64> {
        let mut offset = 0;
        check(|detail| unsafe {
            sys::muster_memory_symmetric(self.raw, bytes, alignment, timeout_ns(self.timeout), &mut offset, detail)
        })?;
        Ok(offset)
    }
    /// The place at this offset in the segment of a member.
    pub fn pointer(&self, locale: u32, offset: u64) -> Result<GlobalPointer> {
        let mut made = 0;
        check_status(unsafe { sys::muster_memory_pointer(self.raw, locale, offset, &mut made) })?;
        Ok(GlobalPointer(made))
    }
    /// A block in the segment of a member; None: there is no room for it now.
    pub fn allocate(&self, locale: u32, bytes: u64) -> Result<Option<GlobalPointer>> {
        let mut made = 0;
        let limit = timeout_ns(self.timeout);
        match unsafe { sys::muster_memory_allocate(self.raw, locale, bytes, limit, &mut made) } {
            sys::MUSTER_OK => Ok(Some(GlobalPointer(made))),
            sys::MUSTER_AGAIN => Ok(None),
            status => Err(Error::of(status)),
        }
    }
    /// Frees a block of any member at once. [`Token::retire`] is for blocks that others may be reading.
    pub fn free(&self, block: GlobalPointer) -> Result<()> {
        check_status(unsafe { sys::muster_memory_free(self.raw, block.0, timeout_ns(self.timeout)) })
    }
    /// Where the bytes are, if the segment is mapped in this process. The address is valid as long as this memory.
    pub fn address(&self, place: GlobalPointer, bytes: u64) -> Result<*mut u8> {
        let mut address = ptr::null_mut();
        check_status(unsafe { sys::muster_memory_address(self.raw, place.0, bytes, &mut address) })?;
        Ok(address.cast())
    }

    // What was found, and whether a comparison held.
    fn run(&self, operation: sys::muster_memory_operation) -> Result<(u64, bool)> {
        let mut found = sys::muster_memory_result::default();
        let limit = timeout_ns(self.timeout);
        match unsafe { sys::muster_memory_run(self.raw, &operation, limit, &mut found) } {
            sys::MUSTER_OK => Ok((found.value, true)),
            sys::MUSTER_AGAIN => Ok((found.value, false)),
            status => Err(Error::of(status)),
        }
    }
    fn operation(kind: u32, target: GlobalPointer) -> sys::muster_memory_operation {
        sys::muster_memory_operation { kind, target: target.0, ..sys::muster_memory_operation::sized() }
    }

    /// Writes bytes.
    pub fn put(&self, target: GlobalPointer, data: &[u8]) -> Result<()> {
        self.put_with_signal(target, data, GlobalPointer::NIL, 0)
    }
    /// Writes bytes, then adds a value to the word at `signal` and wakes what waits for it.
    pub fn put_with_signal(&self, target: GlobalPointer, data: &[u8], signal: GlobalPointer, value: u64) -> Result<()> {
        let mut operation = GlobalMemory::operation(sys::MUSTER_MEMORY_PUT, target);
        operation.local = data.as_ptr() as *mut c_void; // it is only read
        operation.bytes = data.len() as u64;
        operation.signal = signal.0;
        operation.value = value;
        operation.notify = u32::from(!signal.is_nil());
        self.run(operation).map(|_| ())
    }
    /// Reads bytes.
    pub fn get(&self, target: GlobalPointer, data: &mut [u8]) -> Result<()> {
        let mut operation = GlobalMemory::operation(sys::MUSTER_MEMORY_GET, target);
        operation.local = data.as_mut_ptr().cast();
        operation.bytes = data.len() as u64;
        self.run(operation).map(|_| ())
    }
    /// A word.
    pub fn read(&self, word: GlobalPointer) -> Result<u64> {
        Ok(self.run(GlobalMemory::operation(sys::MUSTER_MEMORY_READ, word))?.0)
    }
    /// Sets a word, and wakes what waits for it.
    pub fn write(&self, word: GlobalPointer, value: u64) -> Result<()> {
        let operation = GlobalMemory::operation(sys::MUSTER_MEMORY_WRITE, word);
        self.run(sys::muster_memory_operation { value, notify: 1, ..operation }).map(|_| ())
    }
    /// Sets a word; what it was.
    pub fn exchange(&self, word: GlobalPointer, value: u64) -> Result<u64> {
        let operation = GlobalMemory::operation(sys::MUSTER_MEMORY_EXCHANGE, word);
        Ok(self.run(sys::muster_memory_operation { value, ..operation })?.0)
    }
    /// Sets a word if it is the expected one. What it was: as Ok if it was changed, otherwise as Err, like
    /// [`std::sync::atomic::AtomicU64::compare_exchange`].
    pub fn compare_exchange(
        &self,
        word: GlobalPointer,
        expected: u64,
        value: u64,
    ) -> Result<std::result::Result<u64, u64>> {
        let operation = GlobalMemory::operation(sys::MUSTER_MEMORY_COMPARE_EXCHANGE, word);
        let (found, changed) = self.run(sys::muster_memory_operation { value, expected, ..operation })?;
        Ok(if changed { Ok(expected) } else { Err(found) })
    }
    /// Changes a word; what it was.
    pub fn fetch(&self, word: GlobalPointer, how: Fetch, value: u64) -> Result<u64> {
        let mut operation = GlobalMemory::operation(sys::MUSTER_MEMORY_FETCH, word);
        operation.operation = how.number() as i32;
        Ok(self.run(sys::muster_memory_operation { value, ..operation })?.0)
    }

    /// The counters of the heap of a member.
    pub fn stats(&self, locale: u32) -> Result<sys::muster_memory_stats> {
        let mut stats = sys::muster_memory_stats::default();
        check_status(unsafe { sys::muster_memory_get_stats(self.raw, locale, timeout_ns(self.timeout), &mut stats) })?;
        Ok(stats)
    }
    /// Why a member cannot be used any more; None: it can.
    pub fn problem(&self, locale: u32) -> Result<Option<Error>> {
        let (mut info, mut detail) = (sys::muster_memory_locale_info::default(), sys::muster_error::default());
        check_status(unsafe { sys::muster_memory_get_locale(self.raw, locale, &mut info, &mut detail) })?;
        Ok(if info.status == sys::MUSTER_OK { None } else { Some(Error::with(info.status, &detail)) })
    }

    /// A token of the manager of epochs, for one thread at a time.
    pub fn token(&self) -> Result<Token<'_>> {
        let (mut epoch, mut raw) = (ptr::null_mut(), ptr::null_mut());
        check_status(unsafe { sys::muster_memory_epoch(self.raw, &mut epoch) })?;
        check(|detail| unsafe { sys::muster_epoch_register(epoch, &mut raw, detail) })?;
        Ok(Token { raw, memory: self, one_thread: PhantomData })
    }
}

/// Keeps blocks while they are read. What it has retired when it is dropped is freed by other processes of this host.
pub struct Token<'m> {
    raw: *mut sys::muster_epoch_token,
    memory: &'m GlobalMemory,
    one_thread: PhantomData<*mut ()>, // it may be sent, not shared
}

unsafe impl Send for Token<'_> {}

impl Drop for Token<'_> {
    fn drop(&mut self) {
        unsafe { sys::muster_epoch_unregister(self.raw) };
    }
}

impl fmt::Debug for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token of {:?}", self.memory)
    }
}

/// A pin: no block is freed that any place has referred to since it was made. These nest.
#[derive(Debug)]
pub struct Pin<'t> {
    token: &'t Token<'t>,
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        unsafe { sys::muster_epoch_unpin(self.token.raw) };
    }
}

impl<'m> Token<'m> {
    /// Pins the token until the result is dropped.
    pub fn pin(&self) -> Result<Pin<'_>> {
        check_status(unsafe { sys::muster_epoch_pin(self.raw) })?;
        Ok(Pin { token: self })
    }
    /// Frees a block, to which no place refers any more, by [`Token::reclaim`] when its time has come. False: too many
    /// wait,
    /// and the block is still the caller's.
    pub fn retire(&self, block: GlobalPointer) -> Result<bool> {
        match unsafe { sys::muster_epoch_retire(self.raw, block.0) } {
            sys::MUSTER_OK => Ok(true),
            sys::MUSTER_AGAIN => Ok(false),
            status => Err(Error::of(status)),
        }
    }
    /// Frees blocks whose time has come, at most so many; their number.
    pub fn reclaim(&self, max_blocks: u32) -> Result<u32> {
        let mut freed = 0;
        match unsafe { sys::muster_memory_reclaim(self.memory.raw, self.raw, max_blocks, 0, &mut freed) } {
            sys::MUSTER_OK | sys::MUSTER_AGAIN => Ok(freed),
            status => Err(Error::of(status)),
        }
    }
    /// Waits for the time of all blocks that this token has retired, and frees them; their number.
    pub fn clear(&self, timeout: Option<Duration>) -> Result<u64> {
        let mut freed = 0;
        match unsafe { sys::muster_memory_clear(self.memory.raw, self.raw, timeout_ns(timeout), &mut freed) } {
            sys::MUSTER_OK => Ok(freed),
            sys::MUSTER_TIMEOUT => Err(Error::new(Status::TIMEOUT, format!("{} blocks were freed in time", freed))),
            status => Err(Error::of(status)),
        }
    }
}
