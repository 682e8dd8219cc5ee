//! Opening files that another user chose, without being made to wait or to touch a device.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, open, openat, openat2};

/// Opens the regular file at `path`, or where the link there leads to.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    reopen_regular(open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?.as_fd())
}

/// Opens the regular file that `name` below `directory` (or the link of that name) leads to.
pub(crate) fn open_regular_at(directory: BorrowedFd<'_>, name: &str) -> io::Result<File> {
    reopen_regular(openat(directory, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?.as_fd())
}

/// Opens the regular file at `path` inside `root`, as a process with that root directory would: no symbolic link,
/// absolute or with `..`, leads out of it.
pub(crate) fn open_regular_in_root(root: BorrowedFd<'_>, path: &[u8]) -> io::Result<File> {
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let found: OwnedFd = openat2(root, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)?;
    reopen_regular(found.as_fd())
}

/// Opens for reading what an `O_PATH` descriptor stands for, after a look at what it is.
///
/// Opening a FIFO waits for a writer and opening a device may do anything; an `O_PATH` open does neither.
fn reopen_regular(found: BorrowedFd<'_>) -> io::Result<File> {
    let kind = FileType::from_raw_mode(fstat(found)?.st_mode);
    if kind != FileType::RegularFile {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is a {kind:?}, not a regular file")));
    }
    let link = format!("/proc/self/fd/{}", found.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(File::from(open(link, flags, Mode::empty())?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    fn text(mut file: File) -> String {
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn links_stay_inside_the_root() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("root");
        std::fs::create_dir_all(inside.join("etc")).unwrap();
        std::fs::write(inside.join("etc/passwd"), "inside").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", inside.join("absolute")).unwrap();
        std::os::unix::fs::symlink("../../../etc/passwd", inside.join("climbing")).unwrap();
        let root = File::open(&inside).unwrap();
        for path in [&b"/etc/passwd"[..], b"absolute", b"/climbing"] {
            assert_eq!(text(open_regular_in_root(root.as_fd(), path).unwrap()), "inside");
        }
    }

    #[test]
    fn magic_links_are_not_followed_inside_a_root() {
        let root = File::open("/").unwrap();
        let error = open_regular_in_root(root.as_fd(), b"/proc/self/exe").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::LOOP.raw_os_error()));
    }

    #[test]
    fn fifos_devices_and_directories_are_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let directory = File::open(folder.path()).unwrap();
        rustix::fs::mknodat(directory.as_fd(), "fifo", FileType::Fifo, Mode::RUSR, 0).unwrap();
        let error = open_regular_at(directory.as_fd(), "fifo").unwrap_err();
        assert_eq!(error.to_string(), "it is a Fifo, not a regular file");
        let error = open_regular_in_root(File::open("/").unwrap().as_fd(), b"/dev/null").unwrap_err();
        assert_eq!(error.to_string(), "it is a CharacterDevice, not a regular file");
        assert!(open_regular_at(directory.as_fd(), ".").is_err());
    }
}
