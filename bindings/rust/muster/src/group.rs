// SPDX-License-Identifier: MIT
use crate::error::{check, check_status, cut, Error, Result, Status};
use crate::{timeout_ns, Cluster, Context, Round, Store};
use muster_sys as sys;
use std::any::Any;
use std::marker::PhantomData;
use std::mem::size_of;
use std::os::raw::c_void;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::ptr;
use std::sync::Mutex;
use std::time::Duration;

/// How to open a group.
#[derive(Debug, Clone, Default)]
pub struct GroupConfig {
    /// Address at which the other members connect to this one; `{}` in it is replaced by the rank.
    pub listen: String,
    /// Name of the group in its store or round; None: "group".
    pub name: Option<String>,
    /// The members use streams also within a host.
    pub no_shared_memory: bool,
    /// Each two members have a second stream, for [`Group::send`].
    pub messages: bool,
}

mod sealed {
    pub trait Sealed {}
}

/// A type with reductions of the library.
pub trait Element: Copy + Send + sealed::Sealed + 'static {
    #[doc(hidden)]
    const TYPE: u32;
}
macro_rules! elements {
    ($($rust:ty = $c:ident),* $(,)?) => {
        $(impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const TYPE: u32 = sys::$c;
        })*
    };
}
elements! {
    i8 = MUSTER_TYPE_I8, u8 = MUSTER_TYPE_U8, i16 = MUSTER_TYPE_I16, u16 = MUSTER_TYPE_U16, i32 = MUSTER_TYPE_I32,
    u32 = MUSTER_TYPE_U32, i64 = MUSTER_TYPE_I64, u64 = MUSTER_TYPE_U64, f32 = MUSTER_TYPE_F32, f64 = MUSTER_TYPE_F64,
}

/// How two elements become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Reduce {
    /// Sum; integers wrap around.
    Sum = sys::MUSTER_REDUCE_SUM,
    /// Product; integers wrap around.
    Product = sys::MUSTER_REDUCE_PRODUCT,
    /// Minimum.
    Min = sys::MUSTER_REDUCE_MIN,
    /// Maximum.
    Max = sys::MUSTER_REDUCE_MAX,
    /// Bitwise and.
    And = sys::MUSTER_REDUCE_AND,
    /// Bitwise or.
    Or = sys::MUSTER_REDUCE_OR,
    /// Bitwise exclusive or.
    Xor = sys::MUSTER_REDUCE_XOR,
}

/// A reduction by a function of the program; made by [`Group::add_reduction`].
#[derive(Clone, Copy, Debug)]
pub struct Reduction<T> {
    number: u32,
    of: PhantomData<fn(T)>,
}

/// How far a member is; see [`Group::progress`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It is in no operation; the number of its last one.
    Idle(u64),
    /// It is in the operation of this number.
    Active(u64),
    /// This member is in a later operation than that one, in which it was seen last.
    Missing(u64),
    /// It caused the failure of the group.
    Failed(u64),
}

/// Processes with ranks that perform collective operations: all of them make the same calls in the same order. Every
/// element of a reduction is computed in the order of the ranks, and all members get the same bits.
///
/// When a member dies the operation fails at all others with [`Status::PEER`], and [`Error::rank`] is its rank. A group
/// that
/// has failed stays failed; it fails, too, where a timeout passes. A group that is dropped without [`Group::close`]
/// fails at
/// the others.
#[derive(Debug)]
pub struct Group {
    raw: *mut sys::muster_group,
    functions: Mutex<Vec<Box<dyn Any + Send>>>, // that the library may call
}

// The functions of a group may be called by any thread at any time (group.h).
unsafe impl Send for Group {}
unsafe impl Sync for Group {}

impl Drop for Group {
    fn drop(&mut self) {
        unsafe { sys::muster_group_release(self.raw) }
    }
}

// The operation of the C interface, field by field.
fn operation(kind: u32, element: u32, count: usize) -> sys::muster_group_operation {
    let mut made = sys::muster_group_operation::sized();
    made.kind = kind;
    made.r#type = element;
    made.count = count as u64;
    made
}
trait With: Sized {
    fn at(self, root: u32) -> Self;
    fn by(self, reduction: u32) -> Self;
    fn input<T>(self, array: &[T]) -> Self;
    fn output<T>(self, array: &mut [T]) -> Self;
}
impl With for sys::muster_group_operation {
    fn at(self, root: u32) -> Self {
        Self { root, ..self }
    }
    fn by(self, reduction: u32) -> Self {
        Self { reduction, ..self }
    }
    fn input<T>(self, array: &[T]) -> Self {
        Self { input: array.as_ptr().cast(), ..self }
    }
    fn output<T>(self, array: &mut [T]) -> Self {
        Self { output: array.as_mut_ptr().cast(), ..self }
    }
}

// What a reduction of the host points to. A panic is kept, and goes on in the call that was reduced for.
struct Function<F> {
    combine: F,
    panicked: Mutex<Option<Box<dyn Any + Send>>>,
}

unsafe extern "C" fn combine<T: Copy, F: Fn(T, T) -> T>(
    user: *mut c_void,
    input: *const c_void,
    inout: *mut c_void,
    count: u64,
) {
    let function = &*(user as *const Function<F>);
    let mut panicked = function.panicked.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if panicked.is_some() {
        return;
    }
    let (from, to) = (input as *const T, inout as *mut T);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        for i in 0..count as usize {
            let result = (function.combine)(to.add(i).read_unaligned(), from.add(i).read_unaligned());
            to.add(i).write_unaligned(result);
        }
    }));
    if let Err(payload) = outcome {
        *panicked = Some(payload);
    }
}

impl Group {
    /// The group of the members of a round.
    pub fn of_round(
        context: &Context,
        round: &Round,
        config: &GroupConfig,
        timeout: Option<Duration>,
    ) -> Result<Group> {
        let mut given = sys::muster_group_config::sized();
        given.round = round.as_raw();
        Group::open(context, given, config, timeout)
    }

    /// The group of processes that meet in a store, with ranks of their own.
    pub fn in_store(
        context: &Context,
        store: &Store,
        rank: u32,
        size: u32,
        config: &GroupConfig,
        timeout: Option<Duration>,
    ) -> Result<Group> {
        let mut given = sys::muster_group_config::sized();
        given.store = store.as_raw();
        given.rank = rank;
        given.size = size;
        Group::open(context, given, config, timeout)
    }

    /// The group of the members of a cluster, whose ranks are their numbers: 0 of the master, 1 to `size` - 1 of the
    /// workers.
    pub fn in_cluster(
        context: &Context,
        cluster: &Cluster,
        size: u32,
        config: &GroupConfig,
        timeout: Option<Duration>,
    ) -> Result<Group> {
        let mut given = sys::muster_group_config::sized();
        given.cluster = cluster.as_raw();
        given.flags = sys::MUSTER_GROUP_RANK_OF_MEMBER;
        given.size = size;
        Group::open(context, given, config, timeout)
    }

    fn open(
        context: &Context,
        mut given: sys::muster_group_config,
        config: &GroupConfig,
        timeout: Option<Duration>,
    ) -> Result<Group> {
        given.flags |= if config.no_shared_memory { sys::MUSTER_GROUP_NO_SHARED_MEMORY } else { 0 }
            | if config.messages { sys::MUSTER_GROUP_MESSAGES } else { 0 };
        given.listen = config.listen.as_ptr().cast();
        given.listen_bytes = config.listen.len() as u64;
        if let Some(name) = &config.name {
            given.name = name.as_ptr().cast();
            given.name_bytes = name.len() as u64;
        }
        let mut raw = ptr::null_mut();
        check(|detail| unsafe {
            sys::muster_group_open(context.as_raw(), &given, timeout_ns(timeout), &mut raw, detail)
        })?;
        Ok(Group::adopt(raw))
    }

    pub(crate) fn as_raw(&self) -> *mut sys::muster_group {
        self.raw
    }

    fn adopt(raw: *mut sys::muster_group) -> Group {
        Group { raw, functions: Mutex::new(Vec::new()) }
    }

    /// Rank of this member.
    pub fn rank(&self) -> u32 {
        unsafe { sys::muster_group_rank(self.raw) }
    }

    /// Number of members.
    pub fn size(&self) -> u32 {
        unsafe { sys::muster_group_size(self.raw) }
    }

    // Checks that an array has a block for each member, and gives its length.
    fn block<T>(&self, array: &[T]) -> Result<usize> {
        let size = self.size() as usize;
        if array.len() % size == 0 {
            return Ok(array.len() / size);
        }
        Err(Error::new(Status::ARG, format!("{} elements are no blocks for {} members", array.len(), size)))
    }

    // Performs an operation on arrays that stay borrowed until it has ended.
    fn run(&self, operation: &sys::muster_group_operation, timeout: Option<Duration>) -> Result<()> {
        check(|detail| unsafe { sys::muster_group_run(self.raw, operation, timeout_ns(timeout), detail) })
    }

    /// Waits until all members have called it.
    pub fn barrier(&self, timeout: Option<Duration>) -> Result<()> {
        check(|detail| unsafe { sys::muster_group_barrier(self.raw, timeout_ns(timeout), detail) })
    }

    /// Copies the array of the root to all others, which have one of the same length.
    pub fn broadcast<T: Element>(&self, array: &mut [T], root: u32, timeout: Option<Duration>) -> Result<()> {
        self.run(&operation(sys::MUSTER_GROUP_BROADCAST, T::TYPE, array.len()).at(root).output(array), timeout)
    }

    /// Replaces each element by the reduction of those of all members.
    pub fn all_reduce<T: Element>(&self, reduce: Reduce, array: &mut [T], timeout: Option<Duration>) -> Result<()> {
        let kind = sys::MUSTER_GROUP_ALL_REDUCE;
        self.run(&operation(kind, T::TYPE, array.len()).by(reduce as u32).output(array), timeout)
    }

    /// Replaces each element of the root by the reduction of those of all members; the others keep theirs.
    pub fn reduce<T: Element>(
        &self,
        reduce: Reduce,
        array: &mut [T],
        root: u32,
        timeout: Option<Duration>,
    ) -> Result<()> {
        let made = operation(sys::MUSTER_GROUP_REDUCE, T::TYPE, array.len()).at(root).by(reduce as u32);
        let made = if self.rank() == root { made.output(array) } else { made.input(array) };
        self.run(&made, timeout)
    }

    /// Replaces each element by the reduction of those of ranks 0 to this one.
    pub fn scan<T: Element>(&self, reduce: Reduce, array: &mut [T], timeout: Option<Duration>) -> Result<()> {
        self.run(&operation(sys::MUSTER_GROUP_SCAN, T::TYPE, array.len()).by(reduce as u32).output(array), timeout)
    }

    /// The block for this member of the reduction of arrays with a block for each.
    pub fn reduce_scatter<T: Element + Default>(
        &self,
        reduce: Reduce,
        array: &[T],
        timeout: Option<Duration>,
    ) -> Result<Vec<T>> {
        let mut block = vec![T::default(); self.block(array)?];
        let made = operation(sys::MUSTER_GROUP_REDUCE_SCATTER, T::TYPE, block.len()).by(reduce as u32);
        self.run(&made.input(array).output(&mut block), timeout)?;
        Ok(block)
    }

    /// The arrays of all members, in the order of the ranks.
    pub fn all_gather<T: Element + Default>(&self, array: &[T], timeout: Option<Duration>) -> Result<Vec<T>> {
        let mut all = vec![T::default(); array.len() * self.size() as usize];
        let made = operation(sys::MUSTER_GROUP_ALL_GATHER, T::TYPE, array.len());
        self.run(&made.input(array).output(&mut all), timeout)?;
        Ok(all)
    }

    /// The same at the root; elsewhere nothing.
    pub fn gather<T: Element + Default>(&self, array: &[T], root: u32, timeout: Option<Duration>) -> Result<Vec<T>> {
        let size = if self.rank() == root { self.size() as usize } else { 0 };
        let mut all = vec![T::default(); array.len() * size];
        let made = operation(sys::MUSTER_GROUP_GATHER, T::TYPE, array.len()).at(root);
        self.run(&made.input(array).output(&mut all), timeout)?;
        Ok(all)
    }

    /// Fills the block with that of this rank in the array of the root; the others give an empty array.
    pub fn scatter<T: Element>(
        &self,
        array: &[T],
        block: &mut [T],
        root: u32,
        timeout: Option<Duration>,
    ) -> Result<()> {
        if self.rank() == root && self.block(array)? != block.len() {
            return Err(Error::new(Status::ARG, format!("{} elements are no blocks of {}", array.len(), block.len())));
        }
        let made = operation(sys::MUSTER_GROUP_SCATTER, T::TYPE, block.len()).at(root);
        self.run(&made.input(array).output(block), timeout)
    }

    /// Replaces block s of the array by the block for this rank in the array of rank s.
    pub fn all_to_all<T: Element>(&self, array: &mut [T], timeout: Option<Duration>) -> Result<()> {
        let made = operation(sys::MUSTER_GROUP_ALL_TO_ALL, T::TYPE, self.block(array)?);
        self.run(&made.output(array), timeout)
    }

    /// Makes a reduction of a function, whose first argument is that of the lower ranks; it need not commute. All
    /// members add
    /// the same ones in the same order. It is called on the thread that performs the operation.
    pub fn add_reduction<T, F>(&self, combine_two: F) -> Result<Reduction<T>>
    where
        T: Copy + Send + 'static,
        F: Fn(T, T) -> T + Send + 'static,
    {
        let function = Box::new(Function { combine: combine_two, panicked: Mutex::new(None) });
        let user: *const Function<F> = &*function;
        let mut number = 0;
        check_status(unsafe {
            sys::muster_group_add_reduction(
                self.raw,
                size_of::<T>() as u32,
                Some(combine::<T, F>),
                user as *mut c_void,
                &mut number,
            )
        })?;
        let panics = PanicsOf { take: take_panic::<F>, function: user as usize, number };
        let mut functions = self.functions.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        functions.push(function);
        functions.push(Box::new(panics));
        Ok(Reduction { number, of: PhantomData })
    }

    fn run_with<T>(
        &self,
        reduction: &Reduction<T>,
        kind: u32,
        array: &mut [T],
        timeout: Option<Duration>,
    ) -> Result<()> {
        let made = operation(kind, sys::MUSTER_TYPE_OF_REDUCTION, array.len()).by(reduction.number);
        let outcome = self.run(&made.output(array), timeout);
        let functions = self.functions.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let of_this = functions.iter().filter_map(|one| one.downcast_ref::<PanicsOf>());
        if let Some(payload) = of_this.filter(|one| one.number == reduction.number).find_map(|one| one.take_it()) {
            drop(functions);
            resume_unwind(payload);
        }
        outcome
    }

    /// As [`Group::all_reduce`], by a function of the program.
    pub fn all_reduce_with<T: Copy + Send + 'static>(
        &self,
        reduction: &Reduction<T>,
        array: &mut [T],
        timeout: Option<Duration>,
    ) -> Result<()> {
        self.run_with(reduction, sys::MUSTER_GROUP_ALL_REDUCE, array, timeout)
    }

    /// As [`Group::scan`], by a function of the program.
    pub fn scan_with<T: Copy + Send + 'static>(
        &self,
        reduction: &Reduction<T>,
        array: &mut [T],
        timeout: Option<Duration>,
    ) -> Result<()> {
        self.run_with(reduction, sys::MUSTER_GROUP_SCAN, array, timeout)
    }

    /// Sends bytes to one member.
    pub fn send(&self, rank: u32, data: &[u8], timeout: Option<Duration>) -> Result<()> {
        check(|detail| unsafe {
            sys::muster_group_send(self.raw, rank, data.as_ptr().cast(), data.len() as u64, timeout_ns(timeout), detail)
        })
    }

    /// Receives the next message of one member.
    pub fn receive(&self, rank: u32, timeout: Option<Duration>) -> Result<Vec<u8>> {
        let mut data = vec![0; 4096];
        loop {
            let mut bytes = 0;
            let outcome = check(|detail| unsafe {
                let to = data.as_mut_ptr().cast();
                sys::muster_group_receive(
                    self.raw,
                    rank,
                    to,
                    data.len() as u64,
                    timeout_ns(timeout),
                    &mut bytes,
                    detail,
                )
            });
            match outcome {
                Ok(()) => {
                    data.truncate(bytes as usize);
                    return Ok(data);
                }
                Err(why) if why.status() == Status::LIMIT && bytes > data.len() as u64 => {
                    data.resize(bytes as usize, 0)
                }
                Err(why) => return Err(why),
            }
        }
    }

    /// Divides the group: members with the same color are a new one, in the order of their keys. A negative color: in
    /// none.
    pub fn split(&self, color: i64, key: i64, timeout: Option<Duration>) -> Result<Option<Group>> {
        let mut raw = ptr::null_mut();
        check(|detail| unsafe {
            sys::muster_group_split(self.raw, color, key, timeout_ns(timeout), &mut raw, detail)
        })?;
        Ok(if raw.is_null() { None } else { Some(Group::adopt(raw)) })
    }

    /// How far a member is, also while another thread is in an operation.
    pub fn progress(&self, rank: u32) -> Result<Progress> {
        let mut status: sys::muster_group_status = unsafe { std::mem::zeroed() };
        check_status(unsafe { sys::muster_group_get_status(self.raw, rank, &mut status) })?;
        Ok(match status.state {
            sys::MUSTER_GROUP_MEMBER_ACTIVE => Progress::Active(status.sequence),
            sys::MUSTER_GROUP_MEMBER_MISSING => Progress::Missing(status.sequence),
            sys::MUSTER_GROUP_MEMBER_FAILED => Progress::Failed(status.sequence),
            _ => Progress::Idle(status.sequence),
        })
    }

    /// Ends the group at all members, with a reason for people.
    pub fn revoke(&self, why: &str) {
        let text = &cut(why).as_bytes()[..why.len().min(100)];
        unsafe { sys::muster_group_revoke(self.raw, text.as_ptr().cast(), text.len()) };
    }

    /// Closes it in order: waits until all members do.
    pub fn close(&self, timeout: Option<Duration>) -> Result<()> {
        check(|detail| unsafe { sys::muster_group_close(self.raw, timeout_ns(timeout), detail) })
    }
}

// Finds the panic of a reduction by its number. The function is in the same list, in a box, and as long.
struct PanicsOf {
    number: u32,
    function: usize,
    take: unsafe fn(usize) -> Option<Box<dyn Any + Send>>,
}
impl PanicsOf {
    fn take_it(&self) -> Option<Box<dyn Any + Send>> {
        unsafe { (self.take)(self.function) }
    }
}
unsafe fn take_panic<F>(function: usize) -> Option<Box<dyn Any + Send>> {
    let function = &*(function as *const Function<F>);
    function.panicked.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take()
}
