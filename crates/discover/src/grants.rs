//! What of `/proc` takes rights to be opened, granted to a process that has none ([`super::privileged`]).
//!
//! Whoever asks may have been taken over by what it has read. So nothing is granted but what is named here, of `/proc` alone, for reading
//! alone, and of a process that is protected from tracing (ptrace(2), not dumpable) only what everybody may read.

use std::fs::File;
use std::io;
use std::io::{Seek as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::process::Child;

use rustix::fs::{Dir, MemfdFlags, Mode, OFlags, PROC_SUPER_MAGIC, fstatfs, memfd_create, open, openat};

use super::{
    foreign,
    packet::MOST_BYTES,
    privileged::here::{is_protected, numbers, process_here, stat_here, threads_here},
    privileged::{Granted, Request},
    read::{link_at, read_at},
    text::parse_pid,
};

/// More than is ever asked for, bytes.
const MOST_READ: u64 = 64 << 20;
/// In a packet, beside what else is in it.
const MOST_INLINE: usize = MOST_BYTES - 64;

/// What reading a file of a process takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Permission {
    /// Everybody may.
    Public,
    /// Who may trace it.
    Trace,
}

/// Grants what is asked for.
#[derive(Debug)]
pub struct Grants {
    root: OwnedFd,
    /// Processes that open files, the latest last; those before it are not used any more.
    helpers: Vec<Child>,
}

impl Grants {
    /// Of the `/proc` of this mount namespace.
    pub fn new() -> io::Result<Self> {
        let root = open("/proc", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { root, helpers: Vec::new() })
    }

    /// Does what a request says, or refuses it. `directory` came with it.
    pub fn grant(&mut self, request: &Request, directory: Option<BorrowedFd<'_>>) -> io::Result<Granted> {
        let given = || directory.ok_or(io::ErrorKind::InvalidInput);
        match request {
            Request::Root => Ok(Granted::of_descriptor(self.root.try_clone()?)),
            Request::Pids => list(numbers(Dir::read_from(&self.root)?)?),
            Request::Process { pid } => Ok(Granted::of_descriptor(process_here(self.root.as_fd(), *pid)?)),
            Request::Read { name, limit } => {
                let directory = checked(given()?, name, readable(name))?;
                let limit = usize::try_from((*limit).min(MOST_READ)).unwrap_or(0);
                let found = read_at(directory, name, limit)?;
                let mut content = found.bytes;
                if found.truncated {
                    // Whoever asks tells by one byte more that there is more.
                    content.push(0);
                }
                large(content)
            }
            Request::Link { name } => {
                let directory = checked(given()?, name, link(name))?;
                Ok(Granted::of_content(link_at(directory, name)?))
            }
            Request::Stat { name } => {
                let directory = checked(given()?, name, statable(name))?;
                Ok(Granted::of_content(stat_here(directory, name)?.to_bytes()))
            }
            Request::Open { name } => {
                let directory = checked(given()?, name, openable(name))?;
                let flags = match name.as_str() {
                    "mem" => OFlags::RDONLY | OFlags::CLOEXEC,
                    _ => OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
                };
                Ok(Granted::of_descriptor(openat(directory, name, flags, Mode::empty())?))
            }
            Request::Threads { name } => {
                let directory = checked(given()?, name, listable(name))?;
                list(threads_here(directory, name)?)
            }
            Request::Files => self.files(),
        }
    }

    /// A process that opens files. Any before it was stuck, or has ended.
    fn files(&mut self) -> io::Result<Granted> {
        for helper in &mut self.helpers {
            let _ = helper.kill();
        }
        self.helpers.retain_mut(|helper| matches!(helper.try_wait(), Ok(None)));
        let (socket, child) = foreign::start(foreign::Asking::Apart)?;
        self.helpers.push(child);
        Ok(Granted::of_descriptor(socket))
    }
}

/// The directory, if this file of it may be had.
fn checked<'a>(directory: BorrowedFd<'a>, name: &str, needed: Option<Permission>) -> io::Result<BorrowedFd<'a>> {
    let needed = needed.ok_or(io::ErrorKind::PermissionDenied)?;
    if fstatfs(directory)?.f_type != PROC_SUPER_MAGIC {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let is_of_thread = name.starts_with(|first: char| first.is_ascii_digit());
    if needed == Permission::Trace && !is_of_thread && is_protected(directory)? {
        return Err(io::Error::from_raw_os_error(rustix::io::Errno::ACCESS.raw_os_error()));
    }
    Ok(directory)
}

impl Drop for Grants {
    fn drop(&mut self) {
        for helper in &mut self.helpers {
            let _ = helper.kill();
        }
    }
}

/// `PID/task/TID/NAME` below the directory of all processes.
fn thread_name(name: &str) -> Option<&str> {
    let mut parts = name.split('/');
    let mut part = || parts.next();
    let (pid, task, tid, name) = (part()?, part()?, part()?, part()?);
    let is_it = parse_pid(pid).is_some() && task == "task" && parse_pid(tid).is_some() && parts.next().is_none();
    is_it.then_some(name)
}

fn readable(name: &str) -> Option<Permission> {
    match name {
        "stat" | "status" | "comm" | "cmdline" | "cgroup" => Some(Permission::Public),
        "environ" | "maps" | "net/tcp" | "net/tcp6" => Some(Permission::Trace),
        _ => match thread_name(name) {
            // What the latter waits in is known of everybody by those who may trace it, and is the name of a function of the kernel's.
            Some("stat" | "status" | "schedstat" | "wchan") => Some(Permission::Public),
            Some(_) => None,
            None => name.strip_suffix("/status").and_then(parse_pid).map(|_| Permission::Public),
        },
    }
}

fn link(name: &str) -> Option<Permission> {
    match name {
        "exe" | "ns/mnt" | "ns/pid" | "ns/user" => Some(Permission::Trace),
        _ => name.strip_prefix("fd/")?.parse::<u32>().ok().map(|_| Permission::Trace),
    }
}

fn statable(name: &str) -> Option<Permission> {
    match name {
        "" | "status" | "stat" => Some(Permission::Public),
        "ns/pid" | "ns/user" | "root" => Some(Permission::Trace),
        _ => None,
    }
}

fn openable(name: &str) -> Option<Permission> {
    matches!(name, "mem" | "root").then_some(Permission::Trace)
}

fn listable(name: &str) -> Option<Permission> {
    let is_list = name == "task" || name.strip_suffix("/task").is_some_and(|pid| parse_pid(pid).is_some());
    is_list.then_some(Permission::Public)
}

fn list(numbers: Vec<u32>) -> io::Result<Granted> {
    large(numbers.into_iter().flat_map(|number| u64::from(number).to_le_bytes()).collect())
}

/// In the packet, or if that is too small for it in a file of its own.
fn large(content: Vec<u8>) -> io::Result<Granted> {
    if content.len() <= MOST_INLINE {
        return Ok(Granted::of_content(content));
    }
    let mut file = File::from(memfd_create("content", MemfdFlags::CLOEXEC)?);
    file.write_all(&content)?;
    file.rewind()?;
    Ok(Granted::of_descriptor(file.into()))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::io::Read as _;
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    use std::path::Path;
    use std::process::Command;

    use super::*;
    use crate::privileged::Stat;
    use crate::test_child::{TestChild, copy_of_cat};

    fn set_mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn read(name: &str) -> Request {
        Request::Read { name: name.to_owned(), limit: 1 << 20 }
    }

    #[test]
    fn what_is_read_of_a_process_is_granted() {
        let child = TestChild::waiting("/bin/cat");
        let mut grants = Grants::new().unwrap();
        let granted = grants.grant(&Request::Process { pid: child.pid() }, None).unwrap();
        let directory = granted.descriptor.unwrap();
        let mut grant = |request: &Request| grants.grant(request, Some(directory.as_fd())).unwrap();
        assert_eq!(grant(&read("comm")).content, b"cat\n");
        assert!(grant(&read("maps")).content.windows(4).any(|text| text == b"/cat"));
        assert!(grant(&Request::Link { name: "exe".into() }).content.ends_with(b"cat"));
        let stat = Stat::of_bytes(&grant(&Request::Stat { name: "status".into() }).content).unwrap();
        assert_eq!(stat.user, rustix::process::getuid().as_raw());
        assert!(grant(&Request::Open { name: "mem".into() }).descriptor.is_some());
        assert_eq!(grant(&Request::Threads { name: "task".into() }).content, u64::from(child.pid()).to_le_bytes());
        let limited = Request::Read { name: "maps".into(), limit: 10 };
        assert_eq!(grant(&limited).content.len(), 11);
    }

    #[test]
    fn what_is_too_long_for_a_packet_comes_in_a_file() {
        let granted = large(vec![7; MOST_INLINE + 1]).unwrap();
        let mut content = Vec::new();
        File::from(granted.descriptor.unwrap()).read_to_end(&mut content).unwrap();
        assert_eq!((granted.content.len(), content), (0, vec![7; MOST_INLINE + 1]));
    }

    #[test]
    fn nothing_else_is_granted() {
        let mut grants = Grants::new().unwrap();
        let own = grants.grant(&Request::Process { pid: std::process::id() }, None).unwrap().descriptor.unwrap();
        let etc = File::open("/etc").unwrap();
        let name = |name: &str| name.to_owned();
        for (request, directory) in [
            (read("passwd"), etc.as_fd()),
            (read("stat"), etc.as_fd()),
            (read("../1/environ"), own.as_fd()),
            (read("root/etc/passwd"), own.as_fd()),
            (read("task/1/environ"), own.as_fd()),
            (read("1/task/1/environ"), own.as_fd()),
            (read("auxv"), own.as_fd()),
            (read("net/unix"), own.as_fd()),
            (Request::Link { name: name("cwd") }, own.as_fd()),
            (Request::Link { name: name("fd/../exe") }, own.as_fd()),
            (Request::Open { name: name("cwd") }, own.as_fd()),
            (Request::Open { name: name("root/etc/shadow") }, own.as_fd()),
            (Request::Open { name: name("mem") }, etc.as_fd()),
            (Request::Stat { name: name("fd/0") }, own.as_fd()),
            (Request::Threads { name: name("fd") }, own.as_fd()),
        ] {
            let refused = grants.grant(&request, Some(directory)).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied, "{request:?}");
        }
        assert!(grants.grant(&read("stat"), None).is_err());
    }

    #[test]
    fn of_protected_processes_only_what_everybody_may_read() {
        // Root's own cannot be told from others.
        if !rustix::process::getuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let unreadable = copy_of_cat(folder.path(), "cat");
        set_mode(folder.path(), 0o711);
        let mut grants = Grants::new().unwrap();
        for (mode, is_protected) in [(0o755, false), (0o711, true)] {
            set_mode(&unreadable, mode);
            let child = TestChild::cat(Command::new(&unreadable).uid(65_534).gid(65_534));
            let directory = grants.grant(&Request::Process { pid: child.pid() }, None).unwrap().descriptor.unwrap();
            for request in [read("environ"), read("maps"), Request::Open { name: "mem".into() }] {
                let granted = grants.grant(&request, Some(directory.as_fd())).map(drop).map_err(|error| error.kind());
                let expected = if is_protected { Err(io::ErrorKind::PermissionDenied) } else { Ok(()) };
                assert_eq!(granted, expected, "{request:?}");
            }
            assert!(grants.grant(&read("stat"), Some(directory.as_fd())).is_ok());
        }
    }
}
