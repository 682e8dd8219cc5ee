//! An open file of somebody else's.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt as _;

use rustix::fs::fstat;

use super::{
    client::{self, Content},
    message::{FileState, Opening, Request},
    patience::Whose,
};

/// A file that is read without waiting for ever, wherever it is.
#[derive(Debug)]
pub struct ForeignFile {
    content: Content,
}

impl From<File> for ForeignFile {
    /// Of a file that is known to answer.
    fn from(file: File) -> Self {
        Self { content: Content::Here(file) }
    }
}

/// Looks for a file and opens it. `by` is what the request begins at.
pub fn open(request: &Request, by: BorrowedFd<'_>, whose: Whose) -> io::Result<Opening<ForeignFile>> {
    Ok(match client::open(request, by, whose)? {
        Opening::File(content) => Opening::File(ForeignFile { content }),
        Opening::Other => Opening::Other,
        Opening::Nothing => Opening::Nothing,
    })
}

impl ForeignFile {
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
