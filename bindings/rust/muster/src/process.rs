// SPDX-License-Identifier: MIT
use crate::error::{check, check_status, Result};
use crate::{timeout_ns, Context, Queue};
use muster_sys as sys;
use std::ffi::{CString, OsString};
use std::os::raw::c_char;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::io::{AsRawFd, BorrowedFd};
use std::path::PathBuf;
use std::ptr;
use std::time::Duration;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It has exited with this code.
    Code(i32),
    /// It was ended by this signal.
    Signal(i32),
    /// Unknown: the program ignores SIGCHLD, or reaps all children itself.
    Unknown,
}

impl Exit {
    pub(crate) fn of(exit: sys::muster_process_exit) -> Exit {
        match exit.kind {
            sys::MUSTER_PROCESS_EXITED => Exit::Code(exit.value),
            sys::MUSTER_PROCESS_KILLED => Exit::Signal(exit.value),
            _ => Exit::Unknown,
        }
    }
    pub(crate) fn from_bits(bits: u64) -> Exit {
        Exit::of(sys::muster_process_exit { kind: (bits >> 32) as i32, value: bits as i32 })
    }
}

/// How to start a process.
#[derive(Debug, Clone, Default)]
pub struct ProcessConfig<'a> {
    /// Program and arguments; a name without `/` is looked up in PATH.
    pub argv: Vec<OsString>,
    /// The environment; None: this process's own.
    pub environment: Option<Vec<(OsString, OsString)>>,
    /// Its working directory; None: this process's own.
    pub directory: Option<PathBuf>,
    /// Descriptors of this process, which remain open here, and their numbers in the child.
    pub descriptors: Vec<(BorrowedFd<'a>, i32)>,
}

/// A child process in a process group of its own; the library reaps it.
#[derive(Debug)]
pub struct Process {
    raw: *mut sys::muster_process,
}

// The functions of a process may be called by any thread (process.h).
unsafe impl Send for Process {}
unsafe impl Sync for Process {}

impl Drop for Process {
    fn drop(&mut self) {
        unsafe { sys::muster_process_release(self.raw) }
    }
}

impl Process {
    /// Starts a process; returns when its program was loaded.
    pub fn spawn(context: &Context, config: &ProcessConfig<'_>) -> Result<Process> {
        let argv = Words::new(config.argv.iter().map(|word| word.as_bytes().to_vec()))?;
        let environment = match &config.environment {
            None => None,
            Some(all) => Some(Words::of_variables(all)?),
        };
        let directory = match &config.directory {
            None => None,
            Some(path) => Some(c_string(path.as_os_str().as_bytes().to_vec())?),
        };
        let fds: Vec<sys::muster_process_fd> = config
            .descriptors
            .iter()
            .map(|(descriptor, child_fd)| sys::muster_process_fd {
                parent_fd: descriptor.as_raw_fd(),
                child_fd: *child_fd,
            })
            .collect();
        let mut raw_config = sys::muster_process_config::sized();
        raw_config.argv = argv.pointer();
        raw_config.envp = environment.as_ref().map_or(ptr::null(), Words::pointer);
        raw_config.directory = directory.as_ref().map_or(ptr::null(), |text| text.as_ptr());
        raw_config.fds = fds.as_ptr();
        raw_config.fd_count = fds.len() as u64;
        let mut raw = ptr::null_mut();
        check(|detail| unsafe { sys::muster_process_spawn(context.as_raw(), &raw_config, &mut raw, detail) })?;
        Ok(Process { raw })
    }

    /// Its process id.
    pub fn id(&self) -> i32 {
        unsafe { sys::muster_process_pid(self.raw) }
    }

    /// Waits for its end.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<Exit> {
        let mut exit = sys::muster_process_exit::default();
        check_status(unsafe { sys::muster_process_wait(self.raw, timeout_ns(timeout), &mut exit) })?;
        Ok(Exit::of(exit))
    }

    /// Watches the process: the queue receives [`Event::Exit`](crate::Event::Exit) at its end.
    pub fn watch(&self, queue: &Queue, tag: u64) -> Result<()> {
        check_status(unsafe { sys::muster_process_watch(self.raw, queue.as_raw(), tag) })
    }

    /// Sends a signal to its process group.
    pub fn kill(&self, signal: i32) -> Result<()> {
        check_status(unsafe { sys::muster_process_kill(self.raw, signal) })
    }
}

// Words as execve() wants them: a list of pointers with a null at the end.
pub(crate) struct Words {
    _words: Vec<CString>, // what is pointed to
    pointers: Vec<*const c_char>,
}

impl Words {
    pub(crate) fn new(words: impl Iterator<Item = Vec<u8>>) -> Result<Words> {
        let words = words.map(c_string).collect::<Result<Vec<CString>>>()?;
        let pointers = words.iter().map(|word| word.as_ptr()).chain(std::iter::once(ptr::null())).collect();
        Ok(Words { _words: words, pointers })
    }
    pub(crate) fn of_variables(all: &[(OsString, OsString)]) -> Result<Words> {
        Words::new(all.iter().map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat()))
    }
    pub(crate) fn pointer(&self) -> *const *const c_char {
        self.pointers.as_ptr()
    }
}

pub(crate) fn c_string(bytes: Vec<u8>) -> Result<CString> {
    CString::new(bytes).map_err(|_| crate::Error::new(crate::Status::ARG, "text with a zero byte in it"))
}
