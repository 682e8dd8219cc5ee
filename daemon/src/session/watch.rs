//! Notices the end of processes by their pidfds.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use mpiprobe_discover::Process;
use rustix::{
    event::epoll,
    process::{Pid, PidfdFlags, pidfd_open},
};
use tokio::io::unix::AsyncFd;

use super::readable::readable;

/// Tells a command's own end from those of its processes.
pub(super) const COMMAND: u64 = u64::MAX;

/// A set of processes, readable when one of them has ended.
#[derive(Debug)]
pub(super) struct EndWatch {
    epoll: AsyncFd<OwnedFd>,
}

impl EndWatch {
    pub(super) fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { epoll: readable(epoll)? })
    }

    /// Watches a process; `token` is given back once when it has ended.
    fn add(&self, pidfd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ONESHOT;
        epoll::add(&self.epoll, pidfd, epoll::EventData::new_u64(token), flags)?;
        Ok(())
    }

    /// Watches a process of a slot, which is its token. Where that is not possible, its end is noticed when it is looked at.
    pub(super) fn add_process(&self, process: &Process, slot: u32) {
        if let Some(Err(error)) = process.pidfd().map(|pidfd| self.add(pidfd, slot.into())) {
            tracing::warn!("cannot watch for the end of process {}: {error}", process.pid());
        }
    }

    /// Watches a command that mpiprobe has started, which is its child still; the token is [`COMMAND`]. The watch
    /// ends with the descriptor.
    pub(super) fn add_command(&self, pid: u32) -> io::Result<OwnedFd> {
        let pid = Pid::from_raw(pid.cast_signed()).ok_or(io::ErrorKind::NotFound)?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
        self.add(pidfd.as_fd(), COMMAND)?;
        Ok(pidfd)
    }

    /// Waits until processes have ended, and gives their tokens.
    pub(super) async fn ended(&self) -> io::Result<Vec<u64>> {
        loop {
            let mut ready = self.epoll.readable().await?;
            let mut events = Vec::with_capacity(64);
            epoll::wait(self.epoll.as_fd(), rustix::buffer::spare_capacity(&mut events), Some(&ZERO))?;
            if events.is_empty() {
                ready.clear_ready();
            } else {
                return Ok(events.iter().map(|event| event.data.u64()).collect());
            }
        }
    }
}

const ZERO: rustix::event::Timespec = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
