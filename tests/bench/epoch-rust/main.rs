// SPDX-License-Identifier: MIT
//! crossbeam-epoch as a peer of epoch.cpp, Rust's atomics as one of atomic.cpp: --what pin|batch|each|mix --threads N --scale PERCENT
use crossbeam_epoch::Collector;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::Barrier;
use std::time::Instant;

#[repr(align(64))]
struct Thing {
    _payload: [u64; 8],
}

static CELL: AtomicU64 = AtomicU64::new(0);

fn take_core(i: usize) {
    extern "C" {
        fn sched_setaffinity(pid: i32, size: usize, mask: *const u64) -> i32;
    }
    let mask = [1u64 << (i % 2)];
    unsafe { sched_setaffinity(0, 8, mask.as_ptr()) };
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name: &str, default: &str| {
        let at = arguments.iter().position(|a| a == name);
        at.and_then(|i| arguments.get(i + 1).cloned())
            .unwrap_or_else(|| default.to_string())
    };
    let what = option("--what", "pin");
    let threads: usize = option("--threads", "1").parse().unwrap();
    let scale: usize = option("--scale", "100").parse().unwrap();
    let count = match what.as_str() {
        "pin" => 20_000_000 * scale / 100,
        "mix" => 2_000_000 * scale / 100,
        "each" => 100_000 * scale / 100 / threads,
        _ => 400_000 * scale / 100 / threads,
    };
    let collector = Collector::new();
    let barrier = Barrier::new(threads);
    let one = |i: usize| -> f64 {
        take_core(i);
        if what == "mix" {
            barrier.wait();
            let begun = Instant::now();
            for i in 0..count as u64 {
                let seen = CELL.load(SeqCst);
                CELL.store(i, SeqCst);
                let _ = CELL.compare_exchange(seen, i + 1, SeqCst, SeqCst);
                CELL.swap(i, SeqCst);
            }
            return begun.elapsed().as_nanos() as f64 / (4 * count) as f64;
        }
        let handle = collector.register();
        if what == "pin" {
            barrier.wait();
            let begun = Instant::now();
            for _ in 0..count {
                let guard = handle.pin();
                std::hint::black_box(&guard);
            }
            return begun.elapsed().as_nanos() as f64 / count as f64;
        }
        let things: Vec<usize> = (0..count)
            .map(|_| Box::into_raw(Box::new(Thing { _payload: [1; 8] })) as usize)
            .collect();
        barrier.wait();
        let begun = Instant::now();
        for (k, &thing) in things.iter().enumerate() {
            {
                let guard = handle.pin();
                unsafe { guard.defer_unchecked(move || drop(Box::from_raw(thing as *mut Thing))) };
            }
            if what == "each" || (k + 1) % 1024 == 0 {
                handle.pin().flush();
            }
        }
        begun.elapsed().as_nanos() as f64 / count as f64
    };
    let slowest = std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads)
            .map(|i| {
                scope.spawn({
                    let one = &one;
                    move || one(i)
                })
            })
            .collect();
        all.into_iter()
            .map(|t| t.join().unwrap())
            .fold(0.0, f64::max)
    });
    println!("ns\t{slowest}");
}
