//! Files of processes, by one's own rights or by asking whoever has them.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, StatxFlags, open, openat, statx};

use super::{
    client::{asked, is_apart},
    request::{Granted, Request, Stat, words},
};
use crate::{
    read::{Bounded, SMALL_FILE, link_at, read_at, read_from},
    text::parse_pid,
};

/// Reads at most `limit` bytes of a file of a process.
pub(crate) fn read(directory: BorrowedFd<'_>, name: &str, limit: usize) -> io::Result<Bounded> {
    let request = Request::Read { name: name.to_owned(), limit: limit as u64 };
    let Some(granted) = asked(&request, Some(directory)) else { return read_at(directory, name, limit) };
    match granted? {
        // What is too much for a packet.
        Granted { descriptor: Some(content), .. } => read_from(&File::from(content), limit),
        Granted { mut content, .. } => {
            let truncated = content.len() > limit;
            content.truncate(limit);
            Ok(Bounded { bytes: content, truncated })
        }
    }
}

/// Where a link of a process leads.
pub(crate) fn link(directory: BorrowedFd<'_>, name: &str) -> io::Result<Vec<u8>> {
    let granted = asked(&Request::Link { name: name.to_owned() }, Some(directory));
    granted.map_or_else(|| link_at(directory, name), |granted| Ok(granted?.content))
}

/// Whose a file of a process is, and which one: what the kernel knows, without asking a file system that may not answer. The empty name is
/// the directory itself.
pub(crate) fn stat(directory: BorrowedFd<'_>, name: &str) -> io::Result<Stat> {
    let granted = asked(&Request::Stat { name: name.to_owned() }, Some(directory));
    granted.map_or_else(|| stat_here(directory, name), |granted| Stat::of_bytes(&granted?.content))
}

pub(crate) fn stat_here(directory: BorrowedFd<'_>, name: &str) -> io::Result<Stat> {
    let flags = AtFlags::STATX_DONT_SYNC | AtFlags::EMPTY_PATH;
    let stat = statx(directory, name, flags, StatxFlags::INO | StatxFlags::UID | StatxFlags::GID)?;
    let device = (stat.stx_dev_major, stat.stx_dev_minor);
    Ok(Stat { user: stat.stx_uid, group: stat.stx_gid, inode: stat.stx_ino, device })
}

/// A process's memory, for reading.
pub(crate) fn memory(directory: BorrowedFd<'_>) -> io::Result<File> {
    opened(directory, "mem", OFlags::RDONLY | OFlags::CLOEXEC).map(File::from)
}

/// What stands for a process's root directory.
pub(crate) fn root(directory: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    opened(directory, "root", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC)
}

fn opened(directory: BorrowedFd<'_>, name: &str, flags: OFlags) -> io::Result<OwnedFd> {
    match asked(&Request::Open { name: name.to_owned() }, Some(directory)) {
        Some(granted) => granted?.into_descriptor(),
        None => Ok(openat(directory, name, flags, Mode::empty())?),
    }
}

/// The directory of a process.
pub(crate) fn process(root: BorrowedFd<'_>, pid: u32) -> io::Result<OwnedFd> {
    match asked(&Request::Process { pid }, None) {
        Some(granted) => granted?.into_descriptor(),
        None => process_here(root, pid),
    }
}

pub(crate) fn process_here(root: BorrowedFd<'_>, pid: u32) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(root, pid.to_string(), flags, Mode::empty())?)
}

/// The directory of all processes.
pub(crate) fn proc() -> io::Result<OwnedFd> {
    match asked(&Request::Root, None) {
        Some(granted) => granted?.into_descriptor(),
        None => Ok(open("/proc", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?),
    }
}

/// The numbers of all processes, in no order.
pub(crate) fn pids(root: BorrowedFd<'_>) -> io::Result<Vec<u32>> {
    asked(&Request::Pids, None).map_or_else(|| numbers(Dir::read_from(root)?), |granted| granted.and_then(listed))
}

/// The numbers of a process's threads, in no order.
pub(crate) fn threads(directory: BorrowedFd<'_>) -> io::Result<Vec<u32>> {
    threads_of(directory, "task")
}

fn threads_of(directory: BorrowedFd<'_>, name: &str) -> io::Result<Vec<u32>> {
    let granted = asked(&Request::Threads { name: name.to_owned() }, Some(directory));
    granted.map_or_else(|| threads_here(directory, name), |granted| granted.and_then(listed))
}

pub(crate) fn threads_here(directory: BorrowedFd<'_>, name: &str) -> io::Result<Vec<u32>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    numbers(Dir::new(openat(directory, name, flags, Mode::empty())?)?)
}

pub(crate) fn numbers(entries: Dir) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in entries {
        found.extend(entry?.file_name().to_str().ok().and_then(parse_pid));
    }
    Ok(found)
}

fn listed(granted: Granted) -> io::Result<Vec<u32>> {
    let content = match granted.descriptor {
        Some(content) => read_from(&File::from(content), MOST_NUMBERS * 8)?.bytes,
        None => granted.content,
    };
    words(&content).map(|word| u32::try_from(word).map_err(|_| io::ErrorKind::InvalidData.into())).collect()
}

/// As many processes or threads as a kernel can have (`PID_MAX_LIMIT`).
const MOST_NUMBERS: usize = 4 << 20;

/// A connection to a new process that opens files, if another process starts it.
pub(crate) fn files() -> Option<io::Result<OwnedFd>> {
    asked(&Request::Files, None).map(|granted| granted?.into_descriptor())
}

/// The threads of the process that has this number now, in no order; none if there is no such process.
pub fn thread_list(pid: u32) -> Vec<u32> {
    proc_directory().and_then(|proc| threads_of(proc.as_fd(), &format!("{pid}/task"))).unwrap_or_default()
}

/// The start of a small file of a thread.
pub fn thread_file(pid: u32, tid: u32, name: &str) -> io::Result<Vec<u8>> {
    let proc = proc_directory()?;
    Ok(read(proc.as_fd(), &format!("{pid}/task/{tid}/{name}"), SMALL_FILE)?.bytes)
}

/// Where nobody else is asked it is the working directory of names that begin with it.
fn proc_directory() -> io::Result<OwnedFd> {
    static PROC: std::sync::OnceLock<OwnedFd> = std::sync::OnceLock::new();
    let known = if let Some(known) = PROC.get() {
        known
    } else {
        let opened = proc()?;
        PROC.get_or_init(|| opened)
    };
    known.try_clone()
}

/// Whether names of files mean the same to this process and to another one.
pub(crate) fn has_same_names(directory: BorrowedFd<'_>) -> io::Result<bool> {
    // This one opens nothing by its name.
    if is_apart() {
        return Ok(false);
    }
    let place = |stat: Stat| (stat.device, stat.inode);
    let own_root = stat_here(CWD, "/")?;
    Ok(place(stat(directory, "root")?) == place(own_root)
        && link(directory, "ns/mnt")? == link_at(CWD, "/proc/self/ns/mnt")?)
}

/// Whether a process is protected from tracing. Of one of root's that cannot be told: what it owns belongs to root either way.
pub(crate) fn is_protected(directory: BorrowedFd<'_>) -> io::Result<bool> {
    // The directory always shows the effective user, files in it root if the process is not dumpable (kernel: task_dump_owner).
    Ok(stat_here(directory, "")?.user != stat_here(directory, "status")?.user)
}

/// Whether a thread is of a process that is protected from tracing, or there is none.
pub fn is_protected_thread(tid: u32) -> bool {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = open(format!("/proc/{tid}"), flags, Mode::empty());
    !directory.is_ok_and(|directory| is_protected(directory.as_fd()).is_ok_and(|is_protected| !is_protected))
}
