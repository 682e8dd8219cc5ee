//! What is asked for, and what is given.

use std::io;
use std::os::fd::OwnedFd;

use serde::{Deserialize, Serialize};

/// What goes with a directory of `/proc`, where a name is given: a process's, or without one that of all processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// The directory of all processes.
    Root,
    /// The numbers of all processes.
    Pids,
    /// The directory of a process.
    Process { pid: u32 },
    /// What is in a file, at most so many bytes of it and one more.
    Read { name: String, limit: u64 },
    /// Where a link leads.
    Link { name: String },
    /// Whose a file is, and which one.
    Stat { name: String },
    /// A process's memory, for reading, or what stands for its root directory.
    Open { name: String },
    /// The numbers of a process's threads.
    Threads { name: String },
    /// A connection to a new process that opens and reads files, for [`crate::foreign`].
    Files,
}

/// What stat(2) and statx(2) say of a file in `/proc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    pub user: u32,
    pub group: u32,
    pub inode: u64,
    /// Major and minor number.
    pub device: (u32, u32),
}

impl Stat {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let words = [self.user.into(), self.group.into(), self.inode, self.device.0.into(), self.device.1.into()];
        words.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    pub(crate) fn of_bytes(bytes: &[u8]) -> io::Result<Self> {
        let mut words = words(bytes);
        let mut word = || words.next().ok_or(io::ErrorKind::InvalidData);
        let part = |word: u64| u32::try_from(word).map_err(|_| io::ErrorKind::InvalidData);
        Ok(Self {
            user: part(word()?)?,
            group: part(word()?)?,
            inode: word()?,
            device: (part(word()?)?, part(word()?)?),
        })
    }
}

/// Numbers of eight bytes, the lowest first.
pub(super) fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let (whole, _) = bytes.as_chunks::<8>();
    whole.iter().map(|word| u64::from_le_bytes(*word))
}

/// What a request has brought.
#[derive(Debug, Default)]
pub struct Granted {
    pub content: Vec<u8>,
    pub descriptor: Option<OwnedFd>,
}

impl Granted {
    pub(crate) fn of_content(content: Vec<u8>) -> Self {
        Self { content, descriptor: None }
    }

    pub(crate) fn of_descriptor(descriptor: OwnedFd) -> Self {
        Self { content: Vec::new(), descriptor: Some(descriptor) }
    }

    pub(super) fn into_descriptor(self) -> io::Result<OwnedFd> {
        self.descriptor.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}
