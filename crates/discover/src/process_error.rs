//! Why something about a process could not be learnt.

use std::io;

/// Each variant asks for a different reaction: look again, ask for rights, or give up on this process.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// Nothing has this pid.
    #[error("there is no process {pid}; it may have ended: `mpiprobe ps` lists the MPI processes that run now")]
    NoSuchProcess { pid: u32 },
    /// The id is one of a thread that is not its process's main thread.
    #[error("{tid} is a thread of process {pid}, not a process; use --pid {pid}")]
    IsThread { tid: u32, pid: u32 },
    /// It was there and has ended; the pid may already be somebody else's.
    #[error("process {pid} has ended")]
    Vanished { pid: u32 },
    /// It runs, but its files in `/proc` cannot be seen at all.
    #[error(
        "process {pid} runs but /proc does not show it (mounted with hidepid); run mpiprobe as root or as a member of \
         the group named by that mount's gid= option"
    )]
    Hidden { pid: u32 },
    /// The kernel does not let this caller read it.
    #[error(
        "may not read {what} of process {pid}: {source}; run mpiprobe as root or as that process's user (if you are root, a \
         container or security module forbids it)"
    )]
    Denied { pid: u32, what: &'static str, source: io::Error },
    /// Too many files are open: two are needed for each process.
    #[error(
        "cannot open {what} of process {pid}: {source}; two open files are needed for each MPI process: raise the limit \
         (ulimit -n 65536)"
    )]
    TooManyFiles { pid: u32, what: &'static str, source: io::Error },
    /// The content is not what any Linux kernel writes.
    #[error("{what} of process {pid} does not have the expected form; please report this with your kernel's version")]
    Malformed { pid: u32, what: &'static str },
    #[error("cannot read {what} of process {pid}: {source}")]
    Io { pid: u32, what: &'static str, source: io::Error },
}

impl ProcessError {
    /// Sorts the error of a system call on `what`; `alive` is asked only where it makes a difference.
    pub fn sort(pid: u32, what: &'static str, source: io::Error, alive: impl FnOnce() -> bool) -> Self {
        use rustix::io::Errno;
        match Errno::from_io_error(&source) {
            // What the kernel says of a task without its memory, on the way out.
            Some(Errno::SRCH) => Self::Vanished { pid },
            Some(Errno::MFILE | Errno::NFILE) => Self::TooManyFiles { pid, what, source },
            _ if !alive() => Self::Vanished { pid },
            Some(Errno::ACCESS | Errno::PERM) => Self::Denied { pid, what, source },
            _ => Self::Io { pid, what, source },
        }
    }

    /// Whether the process has ended, so that nothing about it is worth a message in a scan.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::NoSuchProcess { .. } | Self::Vanished { .. })
    }
}
