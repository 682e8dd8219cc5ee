//! Only what the caller may trace is traced.
//!
//! mpiprobe may have more rights than whoever runs it: file capabilities (or a set-user-id bit) give them to everybody who
//! can execute the file. Such a caller sees only what they could attach a debugger to without them.

use rustix::fs::CWD;

use super::{process::Process, process_error::ProcessError, read::read_at, status::Status};

/// `CAP_SYS_PTRACE` (include/uapi/linux/capability.h).
const CAP_SYS_PTRACE: u64 = 1 << 19;

/// Who runs mpiprobe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    /// The real user: who asked, whatever the file's bits made of it.
    pub user: u32,
    /// The real group.
    pub group: u32,
    /// Whether the right to trace any process is the caller's own, not the file's.
    pub may_trace_all: bool,
    /// Of whom another process asks for something; `None`: the caller is who has started this one, and the kernel sees to it.
    pub within: Option<Within>,
}

/// Namespaces outside of which a caller may trace nobody. Ids are those of the initial user namespace, so that the same number may be
/// somebody else's in a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Within {
    /// The number of the inode of the user namespace.
    pub user: u64,
    /// The same of the pid namespace; `None`: it has all processes that there are here.
    pub pid: Option<u64>,
}

/// Why a process is none of the caller's business.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error(
        "process {pid} belongs to user {owner} and you are user {caller}; ask them, or run mpiprobe as root (sudo)"
    )]
    OtherUser { pid: u32, owner: u32, caller: u32 },
    #[error(
        "process {pid} runs in group {owner} and you in group {caller}; start mpiprobe with that group (sg, newgrp), or as \
         root (sudo)"
    )]
    OtherGroup { pid: u32, owner: u32, caller: u32 },
    #[error(
        "process {pid} runs with changed user or group ids (set-user-id, sudo, su); only root may observe it: run mpiprobe \
         with sudo"
    )]
    ChangedIds { pid: u32 },
    #[error(
        "process {pid} is protected from tracing (not dumpable: it executed a set-user-id, capability or unreadable file, or \
         asked for it); only root may observe it: run mpiprobe with sudo"
    )]
    Protected { pid: u32 },
    #[error("process {pid} is in other namespaces than you (a container), from where you could not trace it")]
    OtherNamespaces { pid: u32 },
    /// Its owner could not be determined.
    #[error(transparent)]
    Unknown(#[from] ProcessError),
}

impl Caller {
    /// The caller of this program.
    ///
    /// Their right to trace everything counts if they are root by real id and hold `CAP_SYS_PTRACE`, or hold it as an
    /// ambient capability: executing a file with capabilities of its own clears the ambient set (capabilities(7)), so
    /// that it cannot be the file's.
    pub fn current() -> Result<Self, ProcessError> {
        let (pid, what) = (std::process::id(), "status");
        let content = read_at(CWD, "/proc/thread-self/status", super::read::SMALL_FILE)
            .map_err(|source| ProcessError::Io { pid, what, source })?;
        let status = Status::parse(&content.bytes).ok_or(ProcessError::Malformed { pid, what })?;
        Ok(Self::of(&status))
    }

    fn of(status: &Status) -> Self {
        let has = |set: u64| set & CAP_SYS_PTRACE != 0;
        let own_right = status.users.real == 0 || has(status.ambient_capabilities);
        Self {
            user: status.users.real,
            group: status.groups.real,
            may_trace_all: own_right && has(status.effective_capabilities),
            within: None,
        }
    }

    /// Somebody else, for whom this process does something.
    pub fn other(user: u32, group: u32, within: Option<Within>) -> Self {
        Self { user, group, may_trace_all: within.is_none(), within }
    }
}

impl Within {
    fn has(self, process: &Process) -> Result<bool, ProcessError> {
        let is_same_pid = |pid| process.pid_namespace().map(|own| own == pid);
        Ok(process.user_namespace()? == self.user && self.pid.map_or(Ok(true), is_same_pid)?)
    }
}

/// Whether `caller` may trace `process`, by the rules of ptrace(2) ("Ptrace access mode checking") for a caller without
/// capabilities: all of the target's user and group ids are theirs, and the target is dumpable.
///
/// The answer holds for this moment: a process can execute a set-user-id file. Ask again after reading.
pub fn may_trace(caller: &Caller, process: &Process) -> Result<(), Refusal> {
    if caller.may_trace_all {
        return Ok(());
    }
    let pid = process.pid();
    let Status { users, groups, .. } = process.status()?;
    let (owner, owning_group) = process.owner()?;
    if users.real != caller.user {
        return Err(Refusal::OtherUser { pid, owner: users.real, caller: caller.user });
    }
    if !users.all(users.real) || !groups.all(groups.real) {
        return Err(Refusal::ChangedIds { pid });
    }
    if groups.real != caller.group {
        return Err(Refusal::OtherGroup { pid, owner: groups.real, caller: caller.group });
    }
    if owner != users.effective || owning_group != groups.effective {
        return Err(Refusal::Protected { pid });
    }
    match caller.within {
        Some(within) if !within.has(process)? => Err(Refusal::OtherNamespaces { pid }),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
