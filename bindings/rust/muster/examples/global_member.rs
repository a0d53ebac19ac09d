// SPDX-License-Identifier: MIT
//! A locale of a global memory that programs of four languages share; see tests/mixed/global.c.
use muster_sys as sys;
use std::ptr;

const LOCALES: u32 = 4;
const ROUNDS: u64 = 200;
const SECOND: i64 = 1_000_000_000;

fn must(what: &str, status: i32) -> i32 {
    if status < 0 {
        eprintln!("Rust: {what}: status {status}");
        std::process::exit(1);
    }
    status
}

struct Member {
    memory: *mut sys::muster_memory,
    token: *mut sys::muster_epoch_token,
    top: u64,
}

impl Member {
    fn run(&self, fill: impl FnOnce(&mut sys::muster_memory_operation)) -> (i32, u64) {
        // SAFETY: zero is a value of these structures, and the memory is open.
        unsafe {
            let mut what: sys::muster_memory_operation = std::mem::zeroed();
            let mut seen: sys::muster_memory_result = std::mem::zeroed();
            what.struct_size = std::mem::size_of_val(&what) as u32;
            fill(&mut what);
            let status = must("run", sys::muster_memory_run(self.memory, &what, 30 * SECOND, &mut seen));
            (status, seen.value)
        }
    }
    fn read(&self, cell: u64) -> u64 {
        self.run(|what| (what.kind, what.target) = (sys::MUSTER_MEMORY_READ as u32, cell)).1
    }
    fn write(&self, cell: u64, value: u64) {
        self.run(|what| (what.kind, what.target, what.value) = (sys::MUSTER_MEMORY_WRITE as u32, cell, value));
    }
    fn exchange(&self, cell: u64, expected: u64, value: u64) -> bool {
        self.run(|what| {
            (what.kind, what.target) = (sys::MUSTER_MEMORY_COMPARE_EXCHANGE as u32, cell);
            (what.expected, what.value) = (expected, value);
        })
        .0 == 0
    }
    fn push(&self, locale: u32, value: u64) {
        let mut node = 0;
        // SAFETY: the memory is open.
        must("allocate", unsafe { sys::muster_memory_allocate(self.memory, locale, 24, 30 * SECOND, &mut node) });
        self.write(node + 16, value);
        loop {
            let first = self.read(self.top);
            self.write(node, first);
            if self.exchange(self.top, first, node) {
                return;
            }
        }
    }
    fn pop(&self) -> u64 {
        // SAFETY: the token is this thread's.
        must("pin", unsafe { sys::muster_epoch_pin(self.token) });
        let (mut first, mut value);
        loop {
            (first, value) = (self.read(self.top), 0);
            if first == 0 {
                break;
            }
            value = self.read(first + 16);
            if self.exchange(self.top, first, self.read(first)) {
                break;
            }
        }
        // SAFETY: as above.
        must("unpin", unsafe { sys::muster_epoch_unpin(self.token) });
        if first != 0 {
            // SAFETY: the node is unlinked.
            must("retire", unsafe { sys::muster_epoch_retire(self.token, first) });
        }
        value
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let (rank, url, way): (u32, _, _) = (arguments[1].parse().unwrap(), &arguments[2], &arguments[3]);
    let listen = "tcp://127.0.0.1:0";
    let none = ptr::null_mut();
    // SAFETY: every pointer is that of a local variable, or of an object that is open.
    unsafe {
        let (mut context, mut store, mut group) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        must("context", sys::muster_context_create(ptr::null(), &mut context, none));
        let address = url.as_ptr().cast();
        must("store", sys::muster_store_open(context, address, url.len(), ptr::null(), 30 * SECOND, &mut store, none));
        let mut members: sys::muster_group_config = std::mem::zeroed();
        members.struct_size = std::mem::size_of_val(&members) as u32;
        (members.rank, members.size, members.store) = (rank, LOCALES, store);
        (members.name, members.name_bytes) = (way.as_ptr().cast(), way.len() as u64);
        (members.listen, members.listen_bytes) = (listen.as_ptr().cast(), listen.len() as u64);
        must("group", sys::muster_group_open(context, &members, 120 * SECOND, &mut group, none));
        let mut config: sys::muster_memory_config = std::mem::zeroed();
        config.struct_size = std::mem::size_of_val(&config) as u32;
        config.segment_bytes = 1 << 20;
        config.flags = if way == "here" { 0 } else { sys::MUSTER_MEMORY_NO_SHARED_MEMORY as u32 };
        let (mut memory, mut epoch, mut token) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        must("memory", sys::muster_memory_open(group, &config, 60 * SECOND, &mut memory, none));
        let mut words = [0; 2];
        for word in &mut words {
            let mut offset = 0;
            must("symmetric", sys::muster_memory_symmetric(memory, 8, 8, 60 * SECOND, &mut offset, none));
            must("pointer", sys::muster_memory_pointer(memory, 0, offset, word));
        }
        must("epoch", sys::muster_memory_epoch(memory, &mut epoch));
        must("token", sys::muster_epoch_register(epoch, &mut token, none));
        let own = Member { memory, token, top: words[0] };
        let mut sum = 0u64;
        for i in 1..=ROUNDS {
            own.push((i as u32 + rank) % LOCALES, i);
            sum = sum.wrapping_add(i).wrapping_sub(own.pop());
            must("reclaim", sys::muster_memory_reclaim(memory, token, 16, 0, ptr::null_mut()));
        }
        own.run(|what| (what.kind, what.target, what.value) = (sys::MUSTER_MEMORY_FETCH as u32, words[1], sum));
        for _ in 0..2 {
            must("barrier", sys::muster_group_barrier(group, 120 * SECOND, none));
        }
        for _ in 0..3 {
            must("synchronize", sys::muster_epoch_synchronize(token, 30 * SECOND, ptr::null_mut()));
            must("reclaim", sys::muster_memory_reclaim(memory, token, u32::MAX, 0, ptr::null_mut()));
        }
        must("flush", sys::muster_memory_flush(memory, u32::MAX, 30 * SECOND));
        for _ in 0..2 {
            must("barrier", sys::muster_group_barrier(group, 120 * SECOND, none));
        }
        must("unregister", sys::muster_epoch_unregister(token));
        sys::muster_memory_release(memory);
    }
    println!("Rust: done");
}
