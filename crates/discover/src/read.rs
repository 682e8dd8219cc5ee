//! Bounded reads of small files below a directory that is already open.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{Mode, OFlags, openat, readlinkat};

/// Far more than the kernel writes into stat, status and comm, in bytes.
pub const SMALL_FILE: usize = 64 << 10;

/// The start of a file, and whether there was more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounded {
    pub bytes: Vec<u8>,
    pub truncated: bool,
}

/// Reads at most `limit` bytes of `name` below `directory`.
///
/// Never waits: not for the writer of a FIFO, nor for a terminal.
pub(crate) fn read_at(directory: BorrowedFd<'_>, name: &str, limit: usize) -> io::Result<Bounded> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
    let file = File::from(openat(directory, name, flags, Mode::empty())?);
    read_from(&file, limit)
}

pub fn read_from(file: &File, limit: usize) -> io::Result<Bounded> {
    // Enough for most files of /proc at once, which have no size to go by.
    let mut bytes = Vec::with_capacity(limit.saturating_add(1).min(8 << 10));
    // One byte more than allowed tells "exactly the limit" from "more than the limit".
    file.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    let truncated = bytes.len() > limit;
    bytes.truncate(limit);
    Ok(Bounded { bytes, truncated })
}

/// The target of the symbolic link `name` below `directory`.
pub(crate) fn link_at(directory: BorrowedFd<'_>, name: &str) -> io::Result<Vec<u8>> {
    Ok(CString::into_bytes(readlinkat(directory.as_fd(), name, Vec::with_capacity(256))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Invariant BOUNDED-READS.
    #[test]
    fn reads_no_more_than_the_limit_and_says_so() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("f"), b"12345").unwrap();
        let directory = File::open(folder.path()).unwrap();
        let all = read_at(directory.as_fd(), "f", 5).unwrap();
        assert_eq!(all, Bounded { bytes: b"12345".to_vec(), truncated: false });
        let some = read_at(directory.as_fd(), "f", 4).unwrap();
        assert_eq!(some, Bounded { bytes: b"1234".to_vec(), truncated: true });
    }

    #[test]
    fn a_fifo_without_a_writer_does_not_block() {
        let folder = tempfile::tempdir().unwrap();
        let directory = File::open(folder.path()).unwrap();
        rustix::fs::mknodat(directory.as_fd(), "f", rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert_eq!(read_at(directory.as_fd(), "f", 10).unwrap().bytes, b"");
    }

    #[test]
    fn a_symbolic_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("f")).unwrap();
        let directory = File::open(folder.path()).unwrap();
        assert!(read_at(directory.as_fd(), "f", 10).is_err());
        assert_eq!(link_at(directory.as_fd(), "f").unwrap(), b"/etc/passwd");
    }
}
