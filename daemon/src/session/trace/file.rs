//! Where chunks of a trace go: into a file, chunk after chunk, each whole or not there, or to somebody elsewhere; and to whoever looks at them
//! meanwhile.

use std::{
    fs::File,
    io::{self, Write},
    os::unix::fs::FileExt as _,
};

use mpiprobe_discover::files::create_new;

use super::{TraceError, options::TraceTo, stream::ChunkStream, waits::Feed};

/// Where they go. The trace is written a chunk at a time.
#[derive(Debug)]
pub(super) struct Chunks {
    pub(super) kept: Option<Sink>,
    pub(super) feed: Option<Feed>,
}

impl Chunks {
    /// Bytes that were kept; `None`: none were to be.
    pub(super) fn finish(self) -> Option<io::Result<u64>> {
        self.kept.map(Sink::finish)
    }
}

/// Where they are kept.
#[derive(Debug)]
pub(super) enum Sink {
    File(ChunkFile),
    Stream(ChunkStream),
}

impl Sink {
    /// Makes the file, if it is to be one.
    pub(super) fn of(to: &TraceTo) -> Result<Option<Self>, TraceError> {
        match to {
            TraceTo::Nobody => Ok(None),
            TraceTo::File { path, mode } => {
                let file = create_new(path, *mode).map_err(|error| TraceError::file(path, error))?;
                Ok(Some(Self::File(ChunkFile::new(file))))
            }
            TraceTo::Listener(listener) => {
                ChunkStream::begin(listener.clone()).map(Self::Stream).map(Some).map_err(TraceError::Thread)
            }
        }
    }

    /// Bytes.
    pub(super) fn finish(self) -> io::Result<u64> {
        match self {
            Self::File(file) => Ok(file.length),
            Self::Stream(stream) => stream.finish(),
        }
    }
}

impl Write for Sink {
    fn write(&mut self, chunk: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write(chunk),
            Self::Stream(stream) => stream.write(chunk),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Write for Chunks {
    fn write(&mut self, chunk: &[u8]) -> io::Result<usize> {
        // Whether or not there is room for it where it is kept, it has happened. It is counted as lost there, which is said of both.
        if let Some(feed) = &self.feed {
            feed.give(chunk);
        }
        self.kept.as_mut().map_or(Ok(chunk.len()), |kept| kept.write(chunk))
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
    fn new(file: File) -> Self {
        Self { file, length: 0 }
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
