//! Where lines come from: the rings of one engine, or of one process.

use std::{collections::HashMap, fmt, io, sync::Arc};

use mpiprobe_attach::KernelRings;
use mpiprobe_common::trace::{CallRecord, Origin, PhaseRecord, Words, kind};
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
        let header = self.rings.header().ok()?;
        header.replaced_ns().or(Some(header.ended_ns).filter(|&ns| ns != 0))
    }
}

/// Lines for which room is kept from one time to the next: as many as a node writes in that time.
const ROOM: usize = 1 << 16;

/// A call, or another phase, as the kernel has written it.
#[derive(Debug)]
struct Written {
    at_ns: u64,
    place: (u32, u64),
    origin: Origin,
    words: Words,
    /// Which of [`Lines::more`] is the line before, if there is to be one.
    more: Option<u32>,
}

/// What one pass has found.
#[derive(Debug, Default)]
struct Lines {
    calls: Vec<Written>,
    more: Vec<Words>,
}

impl Lines {
    fn clear(&mut self) {
        self.calls.clear();
        self.calls.shrink_to(ROOM);
        self.more.clear();
        self.more.shrink_to(ROOM);
    }
}

/// Those that the kernel writes, of all processes that it observes.
#[derive(Debug)]
pub(in crate::session) struct KernelLines {
    rings: KernelRings,
    reader: RingReader,
    /// The line that a call needs besides its own, by ring, until that comes.
    halves: HashMap<u32, (u64, Words)>,
    /// Of the last time: memory that is asked for each time costs more than what is done in it.
    lines: Lines,
}

impl KernelLines {
    /// Calls are written to them from now on.
    pub(in crate::session) fn begin(rings: KernelRings) -> io::Result<Self> {
        let reader = RingReader::new(&rings, true)?;
        rings.switch(true);
        Ok(Self { rings, reader, halves: HashMap::new(), lines: Lines::default() })
    }
}

impl LineSource for KernelLines {
    fn slot(&self) -> Option<u32> {
        None
    }

    fn drain(&mut self, now_ns: u64, is_last: bool, take: &mut Take<'_>) -> io::Result<Drained> {
        let Self { rings, reader, halves, lines } = self;
        let drained = reader.drain(rings, now_ns, is_last, |ring, number, origin, words| {
            let at_ns = match origin.kind {
                kind::CALL => CallRecord::returned_ns(words),
                kind::PHASE => PhaseRecord::read(words).at_ns,
                kind::MORE => {
                    halves.insert(ring, (number, *words));
                    return;
                }
                // They are kept until their call comes.
                _ => return take(origin.process.into(), (ring, number), origin, words),
            };
            let more = if halves.is_empty() { None } else { halves.remove(&ring) };
            let more = more.filter(|(at, _)| at.wrapping_add(1) == number).and_then(|(_, words)| {
                lines.more.push(words);
                u32::try_from(lines.more.len() - 1).ok()
            });
            lines.calls.push(Written { at_ns, place: (ring, number), origin, words: *words, more });
        });
        // Whoever goes from processor to processor writes to several rings.
        lines.calls.sort_by_key(|call| call.at_ns);
        for &Written { place: (ring, number), origin, ref words, more, .. } in &lines.calls {
            let process = origin.process.into();
            if let Some(more) = more.and_then(|place| lines.more.get(place as usize)) {
                take(process, (ring, number.wrapping_sub(1)), Origin { kind: kind::MORE, ..origin }, more);
            }
            take(process, (ring, number), origin, words);
        }
        lines.clear();
        drained
    }

    fn switch(&mut self, is_on: bool) -> io::Result<()> {
        self.rings.switch(is_on);
        Ok(())
    }

    fn ended_ns(&self) -> Option<u64> {
        None
    }
}
