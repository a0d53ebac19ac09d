// SPDX-License-Identifier: MIT
use crate::error::{check, check_status, Error, Result, Status};
use crate::{timeout_ns, Context, Queue};
use muster_sys as sys;
use std::os::raw::c_void;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

/// Keys and values that the processes of a job share. A clone is the same store.
///
/// Keys and values are bytes. Each call performs a request of one operation; [`Store::apply`] performs several
/// atomically.
#[derive(Debug, Clone)]
pub struct Store {
    raw: Arc<Raw>,
}

#[derive(Debug)]
struct Raw(*mut sys::muster_store);

// The functions of a store may be called by any thread at any time (store.h).
unsafe impl Send for Raw {}
unsafe impl Sync for Raw {}

impl Drop for Raw {
    fn drop(&mut self) {
        unsafe { sys::muster_store_release(self.0) }
    }
}

/// One operation of a request, as described in `store.h`.
#[derive(Clone, Debug, Default)]
pub struct Op {
    kind: u32,
    condition: u32,
    key: Vec<u8>,
    value: Vec<u8>,
    expected: Vec<u8>,
    version: u64,
    number: i64,
    lease: u64,
    count: u32,
    rank: u32,
}

impl Op {
    fn new(kind: u32, key: impl AsRef<[u8]>) -> Op {
        Op { kind, key: key.as_ref().to_vec(), ..Op::default() }
    }
    fn with(kind: u32, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Op {
        Op { value: value.as_ref().to_vec(), ..Op::new(kind, key) }
    }
    fn counted(kind: u32, key: impl AsRef<[u8]>, number: i64) -> Op {
        Op { number, ..Op::new(kind, key) }
    }
    /// Only checks its condition; returns the value.
    pub fn none(key: impl AsRef<[u8]>) -> Op {
        Op::new(sys::MUSTER_STORE_NONE, key)
    }
    /// Reads a key; waits until it exists.
    pub fn get(key: impl AsRef<[u8]>) -> Op {
        Op::new(sys::MUSTER_STORE_GET, key)
    }
    /// Reads a key, or finds that it is absent.
    pub fn read(key: impl AsRef<[u8]>) -> Op {
        Op::new(sys::MUSTER_STORE_READ, key)
    }
    /// Sets the value of a key.
    pub fn set(key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Op {
        Op::with(sys::MUSTER_STORE_SET, key, value)
    }
    /// Adds to a decimal number.
    pub fn add(key: impl AsRef<[u8]>, number: i64) -> Op {
        Op::counted(sys::MUSTER_STORE_ADD, key, number)
    }
    /// Appends bytes to the value.
    pub fn append(key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Op {
        Op::with(sys::MUSTER_STORE_APPEND, key, value)
    }
    /// Deletes a key.
    pub fn delete(key: impl AsRef<[u8]>) -> Op {
        Op::new(sys::MUSTER_STORE_DELETE, key)
    }
    /// As `read`, without the value.
    pub fn check(key: impl AsRef<[u8]>) -> Op {
        Op::new(sys::MUSTER_STORE_CHECK, key)
    }
    /// As `get`, without the value.
    pub fn wait(key: impl AsRef<[u8]>) -> Op {
        Op::new(sys::MUSTER_STORE_WAIT, key)
    }
    /// Counts the keys with a prefix.
    pub fn count(prefix: impl AsRef<[u8]>) -> Op {
        Op::new(sys::MUSTER_STORE_COUNT, prefix)
    }
    /// Lists the keys with a prefix and their values, after the key `after` unless that is empty.
    pub fn list(prefix: impl AsRef<[u8]>, after: impl AsRef<[u8]>) -> Op {
        Op::with(sys::MUSTER_STORE_LIST, prefix, after)
    }
    /// Appends a value to a queue.
    pub fn push(queue: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Op {
        Op::with(sys::MUSTER_STORE_PUSH, queue, value)
    }
    /// Takes the first value of a queue; waits while the queue is empty.
    pub fn pop(queue: impl AsRef<[u8]>) -> Op {
        Op::new(sys::MUSTER_STORE_POP, queue)
    }
    /// Takes the first value of a queue, or finds that it is empty.
    pub fn try_pop(queue: impl AsRef<[u8]>) -> Op {
        Op::new(sys::MUSTER_STORE_TRY_POP, queue)
    }
    /// Counts the values of a queue.
    pub fn length(queue: impl AsRef<[u8]>) -> Op {
        Op::new(sys::MUSTER_STORE_LENGTH, queue)
    }
    /// Lists the changes after a revision of the keys with a prefix; waits until there is one.
    pub fn watch(prefix: impl AsRef<[u8]>, revision: u64) -> Op {
        Op { version: revision, ..Op::new(sys::MUSTER_STORE_WATCH, prefix) }
    }
    /// Waits until all of `count` members have reached the barrier.
    pub fn barrier(name: impl AsRef<[u8]>, rank: u32, count: u32) -> Op {
        Op { count, rank, ..Op::new(sys::MUSTER_STORE_BARRIER, name) }
    }

    /// Condition: the key does not exist.
    pub fn if_absent(self) -> Op {
        Op { condition: sys::MUSTER_STORE_IF_ABSENT, ..self }
    }
    /// Condition: the key exists.
    pub fn if_present(self) -> Op {
        Op { condition: sys::MUSTER_STORE_IF_PRESENT, ..self }
    }
    /// Condition: the key has this value.
    pub fn if_value(self, expected: impl AsRef<[u8]>) -> Op {
        Op { condition: sys::MUSTER_STORE_IF_VALUE, expected: expected.as_ref().to_vec(), ..self }
    }
    /// Condition: the key has this version; 0: it does not exist.
    pub fn if_version(self, version: u64) -> Op {
        Op { condition: sys::MUSTER_STORE_IF_VERSION, version, ..self }
    }
    /// The key is deleted when the lease ends.
    pub fn under(self, lease: &Lease) -> Op {
        Op { lease: lease.id(), ..self }
    }
    /// Lists and watches: maximum number of entries; a queue: maximum number of values.
    pub fn at_most(self, number: i64) -> Op {
        Op { number, ..self }
    }

    fn raw(&self) -> sys::muster_store_op {
        fn pointer(bytes: &[u8]) -> *const c_void {
            if bytes.is_empty() {
                ptr::null()
            } else {
                bytes.as_ptr().cast()
            }
        }
        sys::muster_store_op {
            kind: self.kind,
            condition: self.condition,
            key: pointer(&self.key),
            key_bytes: self.key.len() as u64,
            value: pointer(&self.value),
            value_bytes: self.value.len() as u64,
            expected: pointer(&self.expected),
            expected_bytes: self.expected.len() as u64,
            version: self.version,
            number: self.number,
            lease: self.lease,
            count: self.count,
            rank: self.rank,
        }
    }
}

/// A result of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Index of the operation in the request.
    pub op: usize,
    /// The key exists (a deleted one: existed before), or the queue had a value.
    pub present: bool,
    /// The condition of this operation does not hold.
    pub failed: bool,
    /// The last entry of a list that is incomplete.
    pub more: bool,
    /// Version of the key after the request; 0: it does not exist.
    pub version: u64,
    /// The sum, a length or a count.
    pub number: i64,
    /// Lists and watches: the key.
    pub key: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// `false`: a condition does not hold, and nothing was changed.
    pub done: bool,
    /// The results of the operations, in their order.
    pub found: Vec<Found>,
    /// The revision of the store that the request has seen; a watch continues from it.
    pub revision: u64,
}

unsafe fn bytes_at(data: *const c_void, size: u64) -> Vec<u8> {
    if size == 0 {
        return Vec::new();
    }
    std::slice::from_raw_parts(data.cast(), size as usize).to_vec()
}

impl Answer {
    // Releases the result.
    pub(crate) unsafe fn take(status: i32, result: *mut sys::muster_store_result) -> Answer {
        let mut found = Vec::new();
        for index in 0..sys::muster_store_result_count(result) {
            let mut entry = sys::muster_store_entry::default();
            if sys::muster_store_result_entry(result, index, &mut entry) != sys::MUSTER_OK {
                break;
            }
            found.push(Found {
                op: entry.op as usize,
                present: entry.flags & sys::MUSTER_STORE_PRESENT != 0,
                failed: entry.flags & sys::MUSTER_STORE_FAILED != 0,
                more: entry.flags & sys::MUSTER_STORE_MORE != 0,
                version: entry.version,
                number: entry.number,
                key: bytes_at(entry.key, entry.key_bytes),
                value: bytes_at(entry.value, entry.value_bytes),
            });
        }
        let revision = sys::muster_store_result_revision(result);
        sys::muster_store_result_release(result);
        Answer { done: status == sys::MUSTER_OK, found, revision }
    }

    fn one(self) -> Result<Found> {
        self.found.into_iter().next().ok_or_else(|| Error::new(Status::INTERNAL, "an operation has found nothing"))
    }
}

impl Store {
    pub(crate) fn adopt(raw: *mut sys::muster_store) -> Store {
        Store { raw: Arc::new(Raw(raw)) }
    }

    /// Opens the store of a URL: `memory:`, `tcp://host:29400`, `unix:///path`, `file:///path`, `etcd://host:2379`, or
    /// a store that the program serves.
    pub fn open(context: &Context, url: &str, timeout: Option<Duration>) -> Result<Store> {
        let mut raw = ptr::null_mut();
        check(|detail| unsafe {
            sys::muster_store_open(
                context.as_raw(),
                url.as_ptr().cast(),
                url.len(),
                ptr::null(),
                timeout_ns(timeout),
                &mut raw,
                detail,
            )
        })?;
        Ok(Store::adopt(raw))
    }

    /// A view of the same store in which each key has a prefix, which its users do not see.
    pub fn view(&self, prefix: impl AsRef<[u8]>) -> Result<Store> {
        let (mut raw, prefix) = (ptr::null_mut(), prefix.as_ref());
        check(|detail| unsafe {
            sys::muster_store_view(self.raw.0, prefix.as_ptr().cast(), prefix.len(), &mut raw, detail)
        })?;
        Ok(Store::adopt(raw))
    }

    /// Its capabilities: bits of `muster_store_capability`.
    pub fn capabilities(&self) -> u32 {
        unsafe { sys::muster_store_capabilities(self.raw.0) }
    }

    /// Performs all of these operations atomically, or none of them, and waits for the outcome.
    pub fn apply(&self, ops: &[Op], timeout: Option<Duration>) -> Result<Answer> {
        let list: Vec<_> = ops.iter().map(Op::raw).collect();
        let mut result = ptr::null_mut();
        let done = check(|detail| unsafe {
            sys::muster_store_do(self.raw.0, list.as_ptr(), list.len(), timeout_ns(timeout), &mut result, detail)
        });
        let status = match done {
            Ok(()) => sys::MUSTER_OK,
            Err(_) if !result.is_null() => sys::MUSTER_E_CHANGED,
            Err(why) => return Err(why),
        };
        Ok(unsafe { Answer::take(status, result) })
    }

    /// Begins a request; the queue receives [`Event::Store`](crate::Event::Store) with the tag. Returns a number for
    /// [`Store::cancel`].
    pub fn begin(&self, ops: &[Op], timeout: Option<Duration>, queue: &Queue, tag: u64) -> Result<u64> {
        let list: Vec<_> = ops.iter().map(Op::raw).collect();
        let mut request = 0;
        check(|detail| unsafe {
            sys::muster_store_begin(
                self.raw.0,
                list.as_ptr(),
                list.len(),
                timeout_ns(timeout),
                queue.as_raw(),
                tag,
                &mut request,
                detail,
            )
        })?;
        Ok(request)
    }

    /// Ends a request that waits; 0: the requests for which threads wait through this object.
    pub fn cancel(&self, request: u64) -> Result<()> {
        check_status(unsafe { sys::muster_store_cancel(self.raw.0, request) })
    }

    fn one(&self, op: Op, timeout: Option<Duration>) -> Result<Found> {
        self.apply(&[op], timeout)?.one()
    }

    /// The value of a key; waits until the key exists.
    pub fn get(&self, key: impl AsRef<[u8]>, timeout: Option<Duration>) -> Result<Vec<u8>> {
        Ok(self.one(Op::get(key), timeout)?.value)
    }

    /// The value of a key, if the key exists.
    pub fn try_get(&self, key: impl AsRef<[u8]>, timeout: Option<Duration>) -> Result<Option<Vec<u8>>> {
        let found = self.one(Op::read(key), timeout)?;
        Ok(if found.present { Some(found.value) } else { None })
    }

    /// Sets the value of a key.
    pub fn set(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, timeout: Option<Duration>) -> Result<()> {
        self.one(Op::set(key, value), timeout).map(|_| ())
    }

    /// Adds to a number, which is 0 if the key does not exist; returns the sum.
    pub fn add(&self, key: impl AsRef<[u8]>, number: i64, timeout: Option<Duration>) -> Result<i64> {
        Ok(self.one(Op::add(key, number), timeout)?.number)
    }

    /// Sets the value of a key if it has the expected one (None: if the key does not exist). Returns whether it was
    /// set.
    pub fn compare_set(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        value: impl AsRef<[u8]>,
        timeout: Option<Duration>,
    ) -> Result<bool> {
        let op = Op::set(key, value);
        let op = match expected {
            Some(expected) => op.if_value(expected),
            None => op.if_absent(),
        };
        Ok(self.apply(&[op], timeout)?.done)
    }

    /// Deletes a key; returns whether it existed.
    pub fn delete(&self, key: impl AsRef<[u8]>, timeout: Option<Duration>) -> Result<bool> {
        Ok(self.one(Op::delete(key), timeout)?.present)
    }

    /// All keys with the prefix, and their values.
    pub fn list(&self, prefix: impl AsRef<[u8]>, timeout: Option<Duration>) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut all: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        loop {
            let after = all.last().map_or(&[][..], |(key, _)| key);
            let found = self.apply(&[Op::list(prefix.as_ref(), after)], timeout)?.found;
            let more = found.last().map_or(false, |last| last.more);
            all.extend(found.into_iter().map(|one| (one.key, one.value)));
            if !more {
                return Ok(all);
            }
        }
    }

    /// Waits until all of `count` members have reached the barrier of this name. An error names the ranks that are
    /// missing.
    pub fn barrier(&self, name: impl AsRef<[u8]>, rank: u32, count: u32, timeout: Option<Duration>) -> Result<()> {
        self.apply(&[Op::barrier(name, rank, count)], timeout).map(|_| ())
    }

    /// Makes a lease: keys that are set [under](Op::under) it are deleted when it ends. `connected`: it ends at once if
    /// the connection of this process is lost.
    pub fn lease(&self, time: Duration, connected: bool, timeout: Option<Duration>) -> Result<Lease> {
        let mut raw = ptr::null_mut();
        let flags = if connected { sys::MUSTER_LEASE_CONNECTED } else { 0 };
        check(|detail| unsafe {
            sys::muster_store_lease(self.raw.0, timeout_ns(Some(time)), flags, timeout_ns(timeout), &mut raw, detail)
        })?;
        Ok(Lease { raw })
    }

    /// The handle of the C interface; this object keeps the ownership.
    pub fn as_raw(&self) -> *mut sys::muster_store {
        self.raw.0
    }
}

/// A lease, which keeps keys in a store while this process lives. When it is dropped, the lease ends after its time.
#[derive(Debug)]
pub struct Lease {
    raw: *mut sys::muster_lease,
}

// The functions of a lease may be called by any thread at any time (store.h).
unsafe impl Send for Lease {}
unsafe impl Sync for Lease {}

impl Drop for Lease {
    fn drop(&mut self) {
        unsafe { sys::muster_lease_release(self.raw) }
    }
}

impl Lease {
    /// Its number in the store.
    pub fn id(&self) -> u64 {
        unsafe { sys::muster_lease_id(self.raw) }
    }
    /// Ends the lease at once: its keys are deleted atomically.
    pub fn end(self, timeout: Option<Duration>) -> Result<()> {
        check(|detail| unsafe { sys::muster_lease_end(self.raw, timeout_ns(timeout), detail) })
    }
}

/// Serves a store to other processes, by the thread of the context. Dropping it closes it.
#[derive(Debug)]
pub struct StoreServer {
    raw: *mut sys::muster_store_server,
}

// The functions of a server may be called by any thread at any time (store_server.h).
unsafe impl Send for StoreServer {}
unsafe impl Sync for StoreServer {}

impl Drop for StoreServer {
    fn drop(&mut self) {
        unsafe { sys::muster_store_server_release(self.raw) }
    }
}

impl StoreServer {
    /// Listens at a URL (`tcp://127.0.0.1:0`). With a folder, acknowledged changes survive the end of the process.
    pub fn open(context: &Context, url: &str, data_dir: Option<&str>) -> Result<StoreServer> {
        let mut config = sys::muster_store_server_config::sized();
        if let Some(folder) = data_dir {
            config.data_dir = folder.as_ptr().cast();
            config.data_dir_bytes = folder.len() as u64;
        }
        let mut raw = ptr::null_mut();
        check(|detail| unsafe {
            let place = url.as_ptr().cast();
            sys::muster_store_server_open(context.as_raw(), place, url.len(), &config, &mut raw, detail)
        })?;
        Ok(StoreServer { raw })
    }

    /// The URL that clients open.
    pub fn address(&self) -> Result<String> {
        let mut text = vec![0; 4200];
        let mut size = 0;
        check_status(unsafe {
            sys::muster_store_server_address(self.raw, text.as_mut_ptr().cast(), text.len(), &mut size)
        })?;
        text.truncate(size);
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Closes the server; clients are notified.
    pub fn close(&self, timeout: Option<Duration>) -> Result<()> {
        check_status(unsafe { sys::muster_store_server_close(self.raw, timeout_ns(timeout)) })
    }
}
