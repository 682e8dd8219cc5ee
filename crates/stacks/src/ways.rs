//! Which of the ways to look at a process's threads work, found out without disturbing it.

use std::{fs::File, path::PathBuf};

use crate::{
    capture::{Capture, Limits, refusal},
    kernel::sample,
};

/// Of one process; of each way why it does not work, if it does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ways {
    /// A BPF program copies registers and stack, of threads that wait.
    pub copied: Result<(), String>,
    /// A timer interrupts a thread that is on a CPU once.
    pub sampled: Result<(), String>,
    /// ptrace stops a thread for a moment. Not tried: the permission that it takes is that to read the process's memory.
    pub stopped: Result<(), String>,
}

impl Ways {
    /// Looks at the first thread of a process once, by the first way.
    pub fn of(pid: u32) -> Self {
        let copied = match Capture::without_stopping(Limits::default()).map(|mut capture| capture.reaches(pid)) {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err("its first thread was not found, or is about to end".to_owned()),
            Ok(Err(error)) | Err(error) => Err(error.to_string()),
        };
        let memory = PathBuf::from(format!("/proc/{pid}/mem"));
        Self {
            copied,
            sampled: sample::is_permitted(pid).map_err(|error| error.to_string()),
            stopped: File::open(memory).map(drop).map_err(|error| refusal(&error)),
        }
    }

    /// Whether its threads can be looked at without stopping them.
    pub fn stop_nobody(&self) -> bool {
        self.copied.is_ok() && self.sampled.is_ok()
    }
}
