//! One process, pinned so that a reused pid is never taken for it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use mpiprobe_elf::Architecture;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::param::clock_ticks_per_second;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

pub use super::read::SMALL_FILE;
use super::{
    command_line::CommandLine,
    environment::Environment,
    failure::{Failure, status_of_reaped},
    foreign::{ForeignFile, Opening, Request, Whose, open},
    privileged::here,
    proc_root::ProcRoot,
    process_error::ProcessError,
    read::Bounded,
    stat::Stat,
    status::Status,
};

/// Pid and start time in clock ticks since boot: never the same for two processes between two boots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct ProcessId {
    pub pid: u32,
    pub start_ticks: u64,
}

/// The file a process executes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executable {
    /// Its path as the kernel knows it, in the process's own mount namespace; any bytes.
    pub path: Vec<u8>,
    /// Whether the file no longer has that name: deleted, or replaced by a new version.
    pub deleted: bool,
}

/// A process, held by a pidfd and by its open directory in `/proc`.
///
/// Both belong to the process itself, not to its number: once it has ended every method says
/// [`ProcessError::Vanished`], even if another process has got the pid since. What is returned was read while the
/// process lived. A process stays the same through exec(2), but user, executable and mappings do not.
#[derive(Debug)]
pub struct Process {
    id: ProcessId,
    directory: OwnedFd,
    /// None below a `/proc` that is not the kernel's.
    pidfd: Option<OwnedFd>,
    /// Of the program that it executed when it was opened.
    program: ProgramMarks,
}

/// Files of a process that tell of its memory, and are empty without it.
const OF_MEMORY: [&str; 3] = ["environ", "cmdline", "maps"];

/// What changes when a process executes another program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ProgramMarks {
    comm: Vec<u8>,
    stack_start: u64,
    kernel_thread: bool,
}

impl ProgramMarks {
    fn of(stat: Stat) -> Self {
        Self { comm: stat.comm, stack_start: stat.stack_start, kernel_thread: stat.kernel_thread }
    }
}

impl Process {
    /// Opens the process that has `pid` now.
    pub fn open(root: &ProcRoot, pid: u32) -> Result<Self, ProcessError> {
        let pidfd = if root.is_live() { Some(open_pidfd(root, pid)?) } else { None };
        let directory = here::process(root.directory(), pid).map_err(|error| {
            let alive = pidfd.as_ref().is_some_and(|pidfd| !has_exited(pidfd.as_fd()));
            match error.kind() {
                io::ErrorKind::NotFound if alive => ProcessError::Hidden { pid },
                io::ErrorKind::NotFound => ProcessError::NoSuchProcess { pid },
                _ => ProcessError::sort(pid, "the directory", error, || true),
            }
        })?;
        let (id, program) = (ProcessId { pid, start_ticks: 0 }, ProgramMarks::default());
        let mut process = Self { id, directory, pidfd, program };
        // This read ends with a look at the pidfd. If the process it stands for still lives, then the number cannot
        // have changed hands before the directory was opened by it: both are one process.
        let stat = process.stat()?;
        process.id.start_ticks = stat.start_ticks;
        process.program = ProgramMarks::of(stat);
        Ok(process)
    }

    /// The same process, held once more.
    pub fn try_clone(&self) -> io::Result<Self> {
        let pidfd = self.pidfd.as_ref().map(OwnedFd::try_clone).transpose()?;
        Ok(Self { id: self.id, directory: self.directory.try_clone()?, pidfd, program: self.program.clone() })
    }

    /// Whether it lives and executes what it did when it was opened. Where that cannot be known it does not, and one that gives itself
    /// another name may not either.
    pub fn has_same_program(&self) -> bool {
        let is_it = |stat: Stat| stat.stack_start != 0 && !stat.has_ended() && ProgramMarks::of(stat) == self.program;
        self.stat().is_ok_and(is_it)
    }

    /// Whether it was one of the kernel's own threads when it was opened: those have no program.
    pub fn was_kernel_thread(&self) -> bool {
        self.program.kernel_thread
    }

    pub fn pid(&self) -> u32 {
        self.id.pid
    }

    pub fn id(&self) -> ProcessId {
        self.id
    }

    /// The process's directory in `/proc`, to open files below it.
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Readable (poll, epoll) once the process has ended. None for processes of a made-up `/proc`.
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// Whether the process runs: false once it has exited, whether or not its parent has noticed.
    pub fn is_alive(&self) -> bool {
        match &self.pidfd {
            Some(pidfd) => !has_exited(pidfd.as_fd()),
            None => here::stat(self.directory(), "stat").is_ok(),
        }
    }

    pub fn stat(&self) -> Result<Stat, ProcessError> {
        let content = self.read("stat", SMALL_FILE)?;
        Stat::parse(&content.bytes).ok_or(ProcessError::Malformed { pid: self.pid(), what: "stat" })
    }

    /// With what it has ended; `None` if it has not, was successful, or its parent was told before anybody has asked (until Linux 6.15, and
    /// of a made-up one).
    pub fn failure(&self) -> Option<Failure> {
        let pidfd = self.pidfd().filter(|pidfd| has_exited(*pidfd))?;
        let of_zombie =
            || Some(Stat::parse(&here::read(self.directory(), "stat", SMALL_FILE).ok()?.bytes)?.exit_status);
        // Its parent may be told at any moment: the one is known before, the other after that.
        let status = status_of_reaped(pidfd).or_else(of_zombie).or_else(|| status_of_reaped(pidfd));
        status.and_then(Failure::of)
    }

    /// How long it has been there.
    pub fn age(&self) -> Duration {
        let tick_ns = 1_000_000_000 / clock_ticks_per_second().max(1);
        let began = Duration::from_nanos(self.id.start_ticks.saturating_mul(tick_ns));
        Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default().saturating_sub(began)
    }

    pub fn status(&self) -> Result<Status, ProcessError> {
        let content = self.read("status", SMALL_FILE)?;
        Status::parse(&content.bytes).ok_or(ProcessError::Malformed { pid: self.pid(), what: "status" })
    }

    /// The number of the inode of its pid namespace.
    pub fn pid_namespace(&self) -> Result<u64, ProcessError> {
        let namespace = here::stat(self.directory(), "ns/pid").map(|stat| stat.inode);
        self.alive_after("ns/pid", namespace)
    }

    /// The number of the inode of its user namespace.
    pub fn user_namespace(&self) -> Result<u64, ProcessError> {
        let namespace = here::stat(self.directory(), "ns/user").map(|stat| stat.inode);
        self.alive_after("ns/user", namespace)
    }

    /// The command name, at most 15 bytes, without the kernel's newline.
    pub fn comm(&self) -> Result<Vec<u8>, ProcessError> {
        let mut content = self.read("comm", SMALL_FILE)?.bytes;
        content.pop_if(|last| *last == b'\n');
        Ok(content)
    }

    pub fn command_line(&self) -> Result<CommandLine, ProcessError> {
        let content = self.read("cmdline", CommandLine::LIMIT)?;
        Ok(CommandLine::parse(&content.bytes, content.truncated))
    }

    pub fn environment(&self) -> Result<Environment, ProcessError> {
        let content = self.read("environ", Environment::LIMIT)?;
        Ok(Environment::new(content.bytes, content.truncated))
    }

    pub fn executable(&self) -> Result<Executable, ProcessError> {
        let mut path = self.alive_after("exe", here::link(self.directory(), "exe"))?;
        // A file may really be called so; then it is wrongly said to be deleted, and nothing else.
        let deleted = path.ends_with(b" (deleted)");
        if deleted {
            path.truncate(path.len().saturating_sub(b" (deleted)".len()));
        }
        Ok(Executable { path, deleted })
    }

    /// What processor the executable is for, from the very file that runs.
    ///
    /// A foreign program under a user-mode emulator shows the emulator's.
    pub fn architecture(&self) -> Result<Architecture, ProcessError> {
        let request = Request::Link { name: "exe".to_owned() };
        let found = open(&request, self.directory(), Whose { user: self.user()?, device: None });
        let header = found.and_then(|found| {
            let Opening::File(file) = found else { return Err(io::ErrorKind::NotFound.into()) };
            let mut header = [0; Architecture::HEADER];
            let read = file.read_at(&mut header, 0)?;
            Ok(header.get(..read).unwrap_or_default().to_vec())
        });
        let header = self.alive_after("exe", header)?;
        Architecture::parse(&header).ok_or(ProcessError::Malformed { pid: self.pid(), what: "exe" })
    }

    /// The same where a file of which it has mapped parts may not answer: reading those asks for the file.
    pub fn memory_with(&self, mapped: &ForeignFile) -> Result<ForeignFile, ProcessError> {
        if mapped.here().is_some() {
            return self.memory().map(Into::into);
        }
        let request = Request::Link { name: "mem".to_owned() };
        let found = open(&request, self.directory(), Whose { user: self.user()?, device: None });
        let found = found.and_then(|found| match found {
            Opening::File(file) => Ok(file),
            Opening::Other | Opening::Nothing => Err(io::ErrorKind::NotFound.into()),
        });
        self.alive_after("mem", found)
    }

    /// Its effective user, whatever it has executed.
    pub fn user(&self) -> Result<u32, ProcessError> {
        let stat = here::stat(self.directory(), "");
        Ok(self.alive_after("the directory", stat)?.user)
    }

    /// User and group that own the process's files in `/proc`: its effective ones, or root's (as its user namespace
    /// has them) if it is not dumpable, for instance after executing a set-user-id file (kernel: task_dump_owner).
    pub fn owner(&self) -> Result<(u32, u32), ProcessError> {
        // Not the directory itself: that always shows the effective ids.
        let stat = self.alive_after("status", here::stat(self.directory(), "status"))?;
        Ok((stat.user, stat.group))
    }

    /// Its memory, to be read at addresses of its own.
    ///
    /// Opened by way of the pinned directory: whatever takes the pid later cannot be read by it, and after the process's end
    /// or exec reads give nothing of the new program.
    pub fn memory(&self) -> Result<File, ProcessError> {
        self.alive_after("mem", here::memory(self.directory()))
    }

    /// The ids of its threads at some moment, ascending.
    pub fn threads(&self) -> Result<Vec<u32>, ProcessError> {
        let mut threads = self.alive_after("task", here::threads(self.directory()))?;
        threads.sort_unstable();
        Ok(threads)
    }

    /// The name of what one of its descriptors stands for; any bytes.
    pub fn descriptor(&self, number: u64) -> Result<Vec<u8>, ProcessError> {
        self.alive_after("fd", here::link(self.directory(), &format!("fd/{number}")))
    }

    /// Reads at most `limit` bytes of a file of this process.
    pub fn read(&self, name: &'static str, limit: usize) -> Result<Bounded, ProcessError> {
        let read = self.alive_after(name, here::read(self.directory(), name, limit))?;
        // An environment that ends early is not seen to; of the others nothing depends on what may be missing at the end.
        let may_be_cut = read.bytes.is_empty() || name == "environ";
        if may_be_cut && OF_MEMORY.contains(&name) && self.is_exiting() {
            return Err(ProcessError::Vanished { pid: self.pid() });
        }
        Ok(read)
    }

    /// Whether it is on its way out, which is so before its end is told: see [`Stat::exiting`].
    fn is_exiting(&self) -> bool {
        let stat = here::read(self.directory(), "stat", SMALL_FILE).ok();
        stat.and_then(|stat| Stat::parse(&stat.bytes)).is_some_and(|stat| stat.exiting)
    }

    /// Lets a result through if the process still lives: files of an ended one are empty rather than unreadable.
    pub fn alive_after<T>(&self, what: &'static str, result: io::Result<T>) -> Result<T, ProcessError> {
        match result {
            Ok(_) if !self.is_alive() => Err(ProcessError::Vanished { pid: self.pid() }),
            Ok(value) => Ok(value),
            Err(error) => Err(ProcessError::sort(self.pid(), what, error, || self.is_alive() && !self.is_exiting())),
        }
    }
}

fn open_pidfd(root: &ProcRoot, pid: u32) -> Result<OwnedFd, ProcessError> {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(ProcessError::NoSuchProcess { pid })?;
    pidfd_open(number, PidfdFlags::empty()).map_err(|error| match (error, root.thread_group(pid)) {
        // Kernels disagree on the error for a thread: EINVAL, later ENOENT.
        (_, Some(group)) if group != pid => ProcessError::IsThread { tid: pid, pid: group },
        (Errno::SRCH | Errno::INVAL | Errno::NOENT, _) => ProcessError::NoSuchProcess { pid },
        (error, _) => ProcessError::sort(pid, "a pidfd", error.into(), || true),
    })
}

fn has_exited(pidfd: BorrowedFd<'_>) -> bool {
    let mut poll_for = [PollFd::from_borrowed_fd(pidfd, PollFlags::IN)];
    // Only a signal could interrupt a poll that does not wait, and the answer would still be "not yet".
    poll(&mut poll_for, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
