// SPDX-License-Identifier: MIT
// What several test files need.
#![allow(dead_code)] // none of them needs all of it

use muster::{Context, Process, ProcessConfig, Reports};
use std::fs::File;
use std::io::Write;
use std::os::unix::io::{AsFd, AsRawFd, BorrowedFd, FromRawFd};

#[repr(C)]
struct PollFd {
    fd: i32,
    events: i16,
    revents: i16,
}

extern "C" {
    fn pipe2(ends: *mut i32, flags: i32) -> i32;
    fn poll(fds: *mut PollFd, count: u64, timeout: i32) -> i32;
}

// Whether the descriptor is readable within so many milliseconds.
pub fn readable(fd: BorrowedFd<'_>, wait: i32) -> bool {
    let mut one = PollFd { fd: fd.as_raw_fd(), events: 1, revents: 0 };
    unsafe { poll(&mut one, 1, wait) == 1 && one.revents & 1 != 0 }
}

// This program again, as the worker of that number, with its ticket on descriptor 3.
pub fn start_worker(context: &Context, reports: &Reports, member: u32) -> Process {
    let mut ends = [0; 2];
    assert_eq!(unsafe { pipe2(ends.as_mut_ptr(), 0o2000000) }, 0);
    let (read, mut write) = unsafe { (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])) };
    write.write_all(&reports.ticket(member).unwrap()).unwrap();
    let mut environment: Vec<_> = std::env::vars_os().collect();
    environment.push(("MUSTER_WORKER_FD".into(), "3".into()));
    let config = ProcessConfig {
        argv: vec![std::env::current_exe().unwrap().into()],
        environment: Some(environment),
        descriptors: vec![(read.as_fd(), 3)],
        ..ProcessConfig::default()
    };
    Process::spawn(context, &config).unwrap()
}
