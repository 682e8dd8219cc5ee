//! Opening files that another user chose, without being made to wait or to touch a device.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, open, openat, openat2};

/// A file that was found by a name.
#[derive(Debug)]
pub(crate) struct FoundFile {
    /// Stands for the file's place; closing it asks nobody.
    pub place: OwnedFd,
    pub file: File,
}

/// Opens the regular file at `path`, or where the link there leads to.
pub fn open_regular(path: &Path) -> io::Result<File> {
    Ok(reopen_regular(open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)?.file)
}

/// Opens the regular file that `name` below `directory` (or the link of that name) leads to.
pub(crate) fn find_regular_at(directory: BorrowedFd<'_>, name: &str) -> io::Result<FoundFile> {
    reopen_regular(openat(directory, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

/// Opens the regular file at `path` inside `root`, as a process with that root directory would: no symbolic link,
/// absolute or with `..`, leads out of it.
pub(crate) fn find_regular_in_root(root: BorrowedFd<'_>, path: &[u8]) -> io::Result<FoundFile> {
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    reopen_regular(openat2(root, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)?)
}

/// Opens for reading what an `O_PATH` descriptor stands for, after a look at what it is.
///
/// Opening a FIFO waits for a writer and opening a device may do anything; an `O_PATH` open does neither. A file that somebody has a
/// lease on is not waited for either.
pub(crate) fn reopen_regular(place: OwnedFd) -> io::Result<FoundFile> {
    let kind = FileType::from_raw_mode(fstat(&place)?.st_mode);
    if kind != FileType::RegularFile {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is a {kind:?}, not a regular file")));
    }
    let link = format!("/proc/self/fd/{}", place.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(open(link, flags, Mode::empty())?);
    Ok(FoundFile { place, file })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::os::fd::AsFd as _;

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
            assert_eq!(text(find_regular_in_root(root.as_fd(), path).unwrap().file), "inside");
        }
    }

    #[test]
    fn magic_links_are_not_followed_inside_a_root() {
        let root = File::open("/").unwrap();
        let error = find_regular_in_root(root.as_fd(), b"/proc/self/exe").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::LOOP.raw_os_error()));
    }

    #[test]
    fn fifos_devices_and_directories_are_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let directory = File::open(folder.path()).unwrap();
        rustix::fs::mknodat(directory.as_fd(), "fifo", FileType::Fifo, Mode::RUSR, 0).unwrap();
        let error = find_regular_at(directory.as_fd(), "fifo").unwrap_err();
        assert_eq!(error.to_string(), "it is a Fifo, not a regular file");
        let error = find_regular_in_root(File::open("/").unwrap().as_fd(), b"/dev/null").unwrap_err();
        assert_eq!(error.to_string(), "it is a CharacterDevice, not a regular file");
        assert!(find_regular_at(directory.as_fd(), ".").is_err());
    }
}
