//! The file of a trace: chunk after chunk, each whole or not there.

use std::{
    fs::File,
    io::{self, Write},
    os::unix::fs::FileExt as _,
};

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
