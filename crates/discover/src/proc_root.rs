//! The proc file system that processes are looked up in.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, PROC_SUPER_MAGIC, fstatfs, open};

use super::{privileged, read::link_at, status::Status};

/// Why no process can be looked up at all.
#[derive(Debug, thiserror::Error)]
pub enum ProcRootError {
    /// The path does not lead to a proc file system.
    #[error("{} is not a proc file system; mount one there: mount -t proc proc {}", .0.display(), .0.display())]
    NotProc(PathBuf),
    /// `/proc` numbers processes differently from this process's own system calls.
    #[error(
        "{} belongs to another pid namespace (its \"self\" is {found:?}, this process is {own}), so its pids mean \
         other processes here; run mpiprobe in the namespace of that mount (containers: --pid=host) or mount a proc of \
         its own", path.display()
    )]
    OtherNamespace { path: PathBuf, found: String, own: u32 },
    /// The path cannot be opened or listed.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
}

/// An open `/proc`, or in tests a directory made to look like one.
#[derive(Debug)]
pub struct ProcRoot {
    directory: OwnedFd,
    path: PathBuf,
    live: bool,
}

impl ProcRoot {
    /// Opens this machine's `/proc` and makes sure that its pids are those of this process's system calls.
    pub fn system() -> Result<Self, ProcRootError> {
        let path = PathBuf::from("/proc");
        let directory = privileged::here::proc();
        let directory = directory.map_err(|source| ProcRootError::Unreadable { path: path.clone(), source })?;
        let root = Self { directory, path: path.clone(), live: true };
        let is_proc = fstatfs(&root.directory).is_ok_and(|file_system| file_system.f_type == PROC_SUPER_MAGIC);
        if !is_proc {
            return Err(ProcRootError::NotProc(path));
        }
        // Who has opened it for this process has seen to that.
        if privileged::is_apart() {
            return Ok(root);
        }
        let own = std::process::id();
        // In a mount of a namespace that does not hold this process, "self" leads nowhere.
        let found = link_at(root.directory(), "self").unwrap_or_default();
        if found != own.to_string().as_bytes() {
            return Err(ProcRootError::OtherNamespace { path, found: super::printable(&found), own });
        }
        Ok(root)
    }

    /// Opens a directory laid out like `/proc`, a recorded or made-up one: its processes have no pidfd and live as long
    /// as their directories exist.
    pub fn at(path: impl AsRef<Path>) -> Result<Self, ProcRootError> {
        let path = path.as_ref().to_path_buf();
        match open(&path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
            Ok(directory) => Ok(Self { directory, path, live: false }),
            Err(source) => Err(ProcRootError::Unreadable { path, source: source.into() }),
        }
    }

    /// The pids of all processes (not threads) at some moment, in ascending order; each may be gone by now.
    pub fn pids(&self) -> Result<Vec<u32>, ProcRootError> {
        let unreadable = |source| ProcRootError::Unreadable { path: self.path.clone(), source };
        let mut pids = privileged::here::pids(self.directory()).map_err(unreadable)?;
        pids.sort_unstable();
        Ok(pids)
    }

    /// The process that `id` is a thread of (`id` itself for a main thread); `None` if there is no such thread.
    pub fn thread_group(&self, id: u32) -> Option<u32> {
        // Threads are not listed in /proc, but can be looked up there.
        let status = privileged::here::read(self.directory(), &format!("{id}/status"), super::read::SMALL_FILE).ok()?;
        Some(Status::parse(&status.bytes)?.thread_group)
    }

    pub fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Whether this is the kernel's own view, in which pidfds can be had.
    pub fn is_live(&self) -> bool {
        self.live
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_process_is_listed_in_order() {
        let pids = ProcRoot::system().unwrap().pids().unwrap();
        assert!(pids.contains(&std::process::id()));
        assert!(pids.is_sorted());
    }

    #[test]
    fn another_directory_is_not_proc() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("12")).unwrap();
        std::fs::create_dir(folder.path().join("3")).unwrap();
        std::fs::create_dir(folder.path().join("sys")).unwrap();
        assert_eq!(ProcRoot::at(folder.path()).unwrap().pids().unwrap(), [3, 12]);
        let error = ProcRoot::at(folder.path().join("none")).unwrap_err();
        assert!(error.to_string().contains("/none: No such file or directory"), "{error}");
    }
}
