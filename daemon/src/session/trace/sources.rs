//! Where lines come from: the rings of one engine, or of one process.

use std::{fmt, io, sync::Arc};

use mpiprobe_common::trace::{Origin, Words};
use mpiprobe_observe::{Drained, FileRings, RecentSwitch, RingReader};

/// Slot of the process, ring and number, and what is in the line.
pub(super) type Take<'a> = dyn FnMut(u32, (u32, u64), Origin, &Words) + 'a;

/// Rings that are read by one thread.
pub(in crate::session) trait LineSource: Send + fmt::Debug {
    /// The process whose lines these are; `None`: of several.
    fn slot(&self) -> Option<u32>;

    /// Gives all lines that have come since the last time.
    fn drain(&mut self, now_ns: u64, is_last: bool, take: &mut Take<'_>) -> io::Result<Drained>;

    /// Has lines written, for some time at least: to be said again and again; or none any more.
    fn switch(&mut self, is_on: bool) -> io::Result<()>;

    /// When its process has ended, as that says itself, ns.
    fn ended_ns(&self) -> Option<u64>;
}

/// Those of a process that counts itself.
#[derive(Debug)]
pub(in crate::session) struct FileSource {
    slot: u32,
    rings: Arc<FileRings>,
    reader: RingReader,
    switch: RecentSwitch,
}

impl FileSource {
    /// `from_start`: what was written before is to be read as well.
    pub(in crate::session) fn new(slot: u32, rings: Arc<FileRings>, from_start: bool) -> io::Result<Self> {
        let (reader, switch) = (RingReader::new(rings.as_ref(), from_start)?, rings.switch()?);
        Ok(Self { slot, rings, reader, switch })
    }
}

impl LineSource for FileSource {
    fn slot(&self) -> Option<u32> {
        Some(self.slot)
    }

    fn drain(&mut self, now_ns: u64, is_last: bool, take: &mut Take<'_>) -> io::Result<Drained> {
        let slot = self.slot;
        let take = |ring, number, origin, words: &Words| take(slot, (ring, number), origin, words);
        self.reader.drain(self.rings.as_ref(), now_ns, is_last, take)
    }

    fn switch(&mut self, is_on: bool) -> io::Result<()> {
        if is_on {
            self.switch.renew()?;
        } else {
            self.switch.end();
        }
        Ok(())
    }

    fn ended_ns(&self) -> Option<u64> {
        self.rings.header().ok().map(|header| header.ended_ns).filter(|&ns| ns != 0)
    }
}
