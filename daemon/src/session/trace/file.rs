//! Where chunks of a trace go: into a file, chunk after chunk, each whole or not there; and to whoever looks at them meanwhile.

use std::{
    fs::File,
    io::{self, Write},
    os::unix::fs::FileExt as _,
};

use super::waits::Feed;

/// Where they go. The trace is written a chunk at a time.
#[derive(Debug)]
pub(super) struct Chunks {
    pub(super) file: Option<ChunkFile>,
    pub(super) feed: Option<Feed>,
}

impl Chunks {
    /// Bytes in the file; `None`: there is none.
    pub(super) fn length(&self) -> Option<u64> {
        self.file.as_ref().map(ChunkFile::length)
    }
}

impl Write for Chunks {
    fn write(&mut self, chunk: &[u8]) -> io::Result<usize> {
        // Whether or not there is room for it in the file, it has happened. It is counted as lost there, which is said of both.
        if let Some(feed) = &self.feed {
            feed.give(chunk);
        }
        self.file.as_mut().map_or(Ok(chunk.len()), |file| file.write(chunk))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What cannot be written whole is taken back, so that what is written later comes behind what was whole.
#[derive(Debug)]
pub(super) struct ChunkFile {
    file: File,
    /// Bytes that are whole.
    length: u64,
}

impl ChunkFile {
    pub(super) fn new(file: File) -> Self {
        Self { file, length: 0 }
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }
}

impl Write for ChunkFile {
    fn write(&mut self, chunk: &[u8]) -> io::Result<usize> {
        match self.file.write_all_at(chunk, self.length) {
            Ok(()) => {
                self.length += chunk.len() as u64;
                Ok(chunk.len())
            }
            Err(error) => {
                // If this fails too, whoever reads it looks for the next chunk behind.
                let _ = self.file.set_len(self.length);
                Err(error)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
