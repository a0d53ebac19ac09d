// SPDX-License-Identifier: MIT
//! The object of a program that serves requests: the queue calls its functions, and it is dropped with its server.
use crate::queue::WeakQueue;
use crate::Queue;
use std::any::Any;
use std::os::raw::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Mutex, MutexGuard};

// Of a trait's object. The library points to it from its table of callbacks.
pub(crate) struct Served<T> {
    queue: WeakQueue,
    slot: Mutex<Slot<T>>,
}

struct Slot<T> {
    object: Option<T>, // None: it runs, or was dropped
    over: bool,        // its server was dropped, or its last callback has come
}

impl<T: Send + 'static> Served<T> {
    // With the pointer for the table of callbacks.
    pub(crate) fn new(queue: &Queue, object: T) -> (Arc<Served<T>>, *mut c_void) {
        let slot = Mutex::new(Slot { object: Some(object), over: false });
        let made = Arc::new(Served { queue: queue.downgrade(), slot });
        let place = queue.keep(&made);
        (made, place)
    }

    // For callbacks, which run inside Queue::next().
    pub(crate) fn queue(&self) -> Queue {
        self.queue.upgrade()
    }

    // Runs a function of the object, one at a time: Queue::next() lets only one thread dispatch. None: the object was
    // dropped. An error: it panicked.
    pub(crate) fn run<R>(&self, body: impl FnOnce(&mut T) -> R) -> Option<Result<R, Box<dyn Any + Send>>> {
        let mut object = self.lock().object.take()?;
        let result = catch_unwind(AssertUnwindSafe(|| body(&mut object)));
        let mut slot = self.lock();
        if slot.over {
            drop(slot);
            drop_quietly(object); // its server was dropped meanwhile
        } else {
            slot.object = Some(object);
        }
        Some(result)
    }

    // Drops the object: here, or on the thread that runs it as soon as it returns.
    pub(crate) fn end(&self) {
        let object = {
            let mut slot = self.lock();
            slot.over = true;
            slot.object.take()
        };
        drop_quietly(object);
    }

    fn lock(&self) -> MutexGuard<'_, Slot<T>> {
        self.slot.lock().unwrap_or_else(|why| why.into_inner())
    }
}

// The last callback of a table.
pub(crate) unsafe fn destroyed<T: Send + 'static>(this: *mut c_void) {
    let served = &*this.cast::<Served<T>>();
    served.end();
    let _last = served.queue().forget(this);
}

// It may panic as it goes, and nothing unwinds into C, or out of a drop.
fn drop_quietly<T>(object: T) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(object)));
}
