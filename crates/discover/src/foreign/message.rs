//! What is asked of the process that opens and reads files, and what it answers. One message is one packet.

use rustix::fs::{FileType, Stat};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use serde::{Deserialize, Serialize};

use crate::{maps_line::FileId, packet};

/// What stat(2) says of a file at some moment. It is another one when somebody has written to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    pub is_regular: bool,
    pub device: u64,
    pub inode: u64,
    pub owner: u32,
    /// In bytes.
    pub size: u64,
    /// Seconds and nanoseconds since 1970.
    pub modified: (i64, i64),
    pub changed: (i64, i64),
}

impl From<Stat> for FileState {
    fn from(stat: Stat) -> Self {
        Self {
            is_regular: FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile,
            device: stat.st_dev,
            inode: stat.st_ino,
            owner: stat.st_uid,
            size: stat.st_size.try_into().unwrap_or(0),
            modified: (stat.st_mtime, stat.st_mtime_nsec.cast_signed()),
            changed: (stat.st_ctime, stat.st_ctime_nsec.cast_signed()),
        }
    }
}

/// Bytes of a file in one answer. With what else is in a packet it stays below what sockets take at least.
pub(super) const MOST_READ: usize = 64 << 10;
/// Of a packet: names of files take some thousand bytes at most.
pub(super) const MOST_BYTES: usize = MOST_READ + (16 << 10);

/// What goes with a descriptor, where one is named.
#[derive(Debug, Serialize, Deserialize)]
pub enum Request {
    /// The first of these links below a process's directory that leads to the file.
    Links {
        links: Vec<String>,
        id: FileId,
    },
    /// The file by one of these names in the root below a process's directory.
    Names {
        paths: Vec<Vec<u8>>,
        id: FileId,
    },
    /// The file of that name in a root directory.
    InRoot {
        path: Vec<u8>,
    },
    /// The file that a link below a process's directory leads to.
    Link {
        name: String,
    },
    /// A file that was opened before, by a descriptor that stands for its place.
    Again,
    Read {
        number: u64,
        offset: u64,
        length: u32,
    },
    State {
        number: u64,
    },
    Close {
        number: u64,
    },
}

/// What was found where a file was looked for.
#[derive(Debug, Serialize, Deserialize)]
pub enum Opening<File> {
    File(File),
    /// The name leads to another file.
    Other,
    /// The name leads nowhere, or to no regular file.
    Nothing,
}

/// An open file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Opened {
    pub(super) number: u64,
    pub(super) state: FileState,
    /// The file's own descriptor comes with the answer: its file system always answers. Else one that stands for its place.
    pub(super) is_here: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    Found(Opening<Opened>),
    State(FileState),
    Done,
    Failed { errno: Option<i32>, text: String },
}

impl Answer {
    pub(super) fn failed(error: &io::Error) -> Self {
        Self::Failed { errno: error.raw_os_error(), text: error.to_string() }
    }

    pub(super) fn into_result(self) -> io::Result<Self> {
        match self {
            Self::Failed { errno: Some(errno), .. } => Err(io::Error::from_raw_os_error(errno)),
            // What was there is no regular file.
            Self::Failed { errno: None, text } => Err(io::Error::new(io::ErrorKind::InvalidInput, text)),
            answer => Ok(answer),
        }
    }
}

/// Sends a packet, with at most one descriptor. Never waits.
pub(super) fn send(socket: BorrowedFd<'_>, bytes: &[u8], descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
    packet::send(socket, bytes, descriptor.as_slice(), false)
}

/// Waits for the next packet; `None`: there will be no more.
pub(super) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Option<(usize, Option<OwnedFd>)>> {
    let received = packet::receive(socket, buffer)?;
    Ok(received.map(|(length, descriptors)| (length, descriptors.into_iter().next())))
}
