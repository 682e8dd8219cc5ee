//! Who a client is, by the kernel's word.

use std::os::fd::AsFd as _;

use mpiprobe_discover::{Caller, ProcRoot, Process, ProcessError, Within};
use nix::sys::socket::{getsockopt, sockopt::PeerPidfd};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::{BorrowedFd, OwnedFd},
};
use thiserror::Error;

use super::link::Surroundings;

/// Somebody at the other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Client {
    pub(super) pid: u32,
    /// What it may trace: everybody, or what it could trace itself.
    pub(super) caller: Caller,
}

/// Why it cannot be told what a client may see.
#[derive(Debug, Error)]
pub(super) enum Unknown {
    #[error("who you are cannot be told: {0}")]
    Credentials(String),
    #[error("process {0}, which has made this connection, has ended")]
    Ended(u32),
    #[error(
        "what process {0} may see cannot be told: {1}; a client that is protected from tracing (set-user-ID, capabilities of its file) \
         is not served"
    )]
    Process(u32, ProcessError),
}

/// `CAP_SYS_PTRACE` (include/uapi/linux/capability.h).
const CAP_SYS_PTRACE: u64 = 1 << 19;

impl Client {
    /// Asks the kernel who has made the connection.
    pub(super) fn of(socket: BorrowedFd<'_>, surroundings: &Surroundings) -> Result<Self, Unknown> {
        let credentials =
            rustix::net::sockopt::socket_peercred(socket).map_err(|error| Unknown::Credentials(error.to_string()))?;
        let (user, group) = (credentials.uid.as_raw(), credentials.gid.as_raw());
        let pid = credentials.pid.as_raw_pid().cast_unsigned();
        // Before anything is read of whoever has this number now (kernel 6.5).
        let pidfd = getsockopt(&socket, PeerPidfd).ok();
        let root = ProcRoot::system().map_err(|error| Unknown::Credentials(error.to_string()))?;
        let process = Process::open(&root, pid).map_err(|_| Unknown::Ended(pid))?;
        let of_process = |error| Unknown::Process(pid, error);
        let status = process.status().map_err(of_process)?;
        let (user_namespace, pid_namespace) =
            (process.user_namespace().map_err(of_process)?, process.pid_namespace().map_err(of_process)?);
        let is_it = match &pidfd {
            Some(pidfd) => !has_ended(pidfd),
            // Nothing better is to be had: another process with its number and its user is not told from it.
            None => status.users.effective == user,
        };
        if !is_it {
            return Err(Unknown::Ended(pid));
        }
        // Numbers of users and groups are the same, and so are those of processes.
        let is_here = user_namespace == surroundings.user_namespace && pid_namespace == surroundings.pid_namespace;
        let is_root = user == 0 && status.effective_capabilities & CAP_SYS_PTRACE != 0;
        let is_admin =
            surroundings.admin_group.is_some_and(|admins| group == admins || status.supplementary.contains(&admins));
        let within = Within {
            user: user_namespace,
            pid: (pid_namespace != surroundings.pid_namespace).then_some(pid_namespace),
        };
        let within = if is_here && (is_root || is_admin) { None } else { Some(within) };
        Ok(Self { pid, caller: Caller::other(user, group, within) })
    }

    /// Whether it sees all jobs.
    pub(super) fn sees_all(&self) -> bool {
        self.caller.may_trace_all
    }
}

fn has_ended(pidfd: &OwnedFd) -> bool {
    let mut ready = [PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN)];
    poll(&mut ready, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}
