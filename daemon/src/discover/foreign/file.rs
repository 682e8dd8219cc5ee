//! An open file of somebody else's.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt as _;

use rustix::fs::{FileType, Stat, fstat};
use serde::{Deserialize, Serialize};

use super::client::Away;
use super::patience::Whose;

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

/// A file that is read without waiting for ever, wherever it is.
#[derive(Debug)]
pub struct ForeignFile {
    content: Content,
}

#[derive(Debug)]
enum Content {
    Here(File),
    Away(Away),
}

impl From<File> for ForeignFile {
    /// Of a file that is known to answer.
    fn from(file: File) -> Self {
        Self { content: Content::Here(file) }
    }
}

impl ForeignFile {
    pub(super) fn away(place: OwnedFd, number: u64, generation: u64, whose: Whose) -> Self {
        Self { content: Content::Away(Away::new(place, number, generation, whose)) }
    }

    /// As it is now.
    pub fn state(&self) -> io::Result<FileState> {
        match &self.content {
            Content::Here(file) => Ok(fstat(file)?.into()),
            Content::Away(file) => file.state(),
        }
    }

    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match &self.content {
            Content::Here(file) => file.read_at(buffer, offset),
            Content::Away(file) => file.read_at(buffer, offset),
        }
    }

    pub fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.read_at(buffer, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    buffer = buffer.get_mut(read..).unwrap_or_default();
                    offset += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads from the start, with a position of its own.
    pub fn reader(&self) -> Reader<'_> {
        Reader { file: self, position: 0 }
    }

    /// The file itself, if it may be used by those who must not wait.
    pub fn here(&self) -> Option<&File> {
        match &self.content {
            Content::Here(file) => Some(file),
            Content::Away(_) => None,
        }
    }
}

impl AsFd for ForeignFile {
    /// Stands for the file: what is opened by it is the very same. Not always good for reading.
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.content {
            Content::Here(file) => file.as_fd(),
            Content::Away(file) => file.place(),
        }
    }
}

/// A file, for those who read on.
#[derive(Debug)]
pub struct Reader<'a> {
    file: &'a ForeignFile,
    position: u64,
}

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.position)?;
        self.position = self.position.saturating_add(read as u64);
        Ok(read)
    }
}

impl Seek for Reader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => self.file.state()?.size.checked_add_signed(by),
        };
        self.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}
