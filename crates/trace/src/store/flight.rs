//! The last part of a trace, kept in memory until somebody wants it: what a flight recorder has.
//!
//! Events become chunks as they would in a file, location by location, and the oldest chunks are dropped whole. Everything that is written is a trace by
//! itself: what was dropped before it is counted there as outside the time that was recorded, not as lost.

use std::{
    collections::{BTreeMap, VecDeque},
    io::Write,
    sync::Arc,
};

use super::{
    chunk::Kind,
    columns::Columns,
    definition::{Definition, LocalCommunicator},
    error::WriteError,
    writer::{CHUNK, Stored, TraceWriter},
};
use crate::{
    definitions::{ClockPair, File, Location, LocationId, Losses, Node, NodeId, Process, ProcessId, SiteId},
    event::{Event, PhaseChange},
};

/// Into how many chunks of a location the span is divided: so much more than it is kept.
const CHUNKS_OF_SPAN: u64 = 8;
/// Events of a chunk at least: fewer are mostly head.
const SMALLEST: u64 = 64;
/// What an event takes before it is compressed, about, bytes.
const OPEN_EVENT: u64 = 24;
/// What a location takes that has any such event, about, bytes: names of shapes, and room.
const OPEN_LOCATION: u64 = 2048;
/// The part of the memory that events may take before they are compressed.
const OPEN_PART: u64 = 4;
/// Pairs of clocks that are kept of a node: one a second, of two hours.
const MOST_PAIRS: usize = 8192;
/// Definitions that are written in one chunk.
const DEFINITIONS: usize = 1 << 14;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlightSpan {
    /// So long, ns.
    Time(u64),
    /// So many calls of each process.
    Calls(u64),
}

/// Events of the last span, compressed. It holds at least that, and at most an eighth more and a chunk of each thread; less if that takes more memory than
/// it may have.
#[derive(Debug)]
pub struct FlightBuffer {
    span: FlightSpan,
    /// Bytes that it may take.
    limit: u64,
    known: Known,
    /// By location.
    open: Vec<OpenChunk>,
    open_bytes: u64,
    /// By location: what is not there any more.
    dropped: Vec<Dropped>,
    /// By process, the oldest first.
    chunks: BTreeMap<ProcessId, Kept>,
    bytes: u64,
    /// End of the last event of all, ns.
    newest_ns: u64,
    /// Whether less than the span is kept, because there is no room for it.
    is_short: bool,
}

/// Chunks of a process.
#[derive(Debug, Default)]
struct Kept {
    chunks: VecDeque<Arc<Chunk>>,
    calls: u64,
}

#[derive(Debug)]
struct Chunk {
    stored: Stored,
    calls: u64,
    /// The last change of phase in it.
    phase: Option<PhaseChange>,
    /// What was known to be missing of its location when it was closed.
    losses: Losses,
}

#[derive(Debug, Default)]
struct OpenChunk {
    columns: Columns,
    calls: u64,
    phase: Option<PhaseChange>,
}

/// What came before the chunks of a location.
#[derive(Clone, Debug, Default)]
struct Dropped {
    calls: u64,
    /// Up to when, ns; 0: nothing was dropped.
    until_ns: u64,
    phase: Option<PhaseChange>,
    /// What was missing by then.
    losses: Losses,
}

/// What events refer to, as it was said last.
#[derive(Clone, Debug, Default)]
struct Known {
    nodes: BTreeMap<NodeId, Node>,
    pairs: BTreeMap<NodeId, VecDeque<ClockPair>>,
    processes: BTreeMap<ProcessId, Process>,
    locations: BTreeMap<LocationId, Location>,
    sites: BTreeMap<SiteId, Definition>,
    communicators: BTreeMap<(ProcessId, u32), LocalCommunicator>,
    windows: BTreeMap<(ProcessId, u32), Option<u32>>,
    files: BTreeMap<(ProcessId, u32), (Option<u32>, File)>,
}

impl FlightBuffer {
    /// `limit`: how much memory events may take, bytes.
    pub fn new(span: FlightSpan, limit: u64) -> Self {
        Self {
            span,
            limit,
            known: Known::default(),
            open: Vec::new(),
            open_bytes: 0,
            dropped: Vec::new(),
            chunks: BTreeMap::new(),
            bytes: 0,
            newest_ns: 0,
            is_short: false,
        }
    }

    /// As for [`TraceWriter::define`].
    pub fn define(&mut self, definition: Definition) {
        self.known.take(definition);
    }

    /// The next event of a location, which has been defined.
    pub fn push(&mut self, location: LocationId, event: &Event) -> Result<(), WriteError> {
        if self.open.len() <= location.index() {
            self.open.resize_with(location.index() + 1, OpenChunk::default);
        }
        let most = match self.span {
            FlightSpan::Time(_) => CHUNK,
            FlightSpan::Calls(calls) => {
                u32::try_from((calls / CHUNKS_OF_SPAN).max(SMALLEST)).unwrap_or(CHUNK).min(CHUNK)
            }
        };
        let Some(open) = self.open.get_mut(location.index()) else { return Ok(()) };
        if open.columns.count() == 0 {
            self.open_bytes += OPEN_LOCATION;
        }
        open.columns.push(event);
        self.open_bytes += OPEN_EVENT;
        self.newest_ns = self.newest_ns.max(event.end_ns());
        match event {
            Event::Call(_) => open.calls += 1,
            Event::Phase(change) => open.phase = Some(change.clone()),
        }
        if open.columns.count() >= most {
            self.close(location)?;
            self.make_room();
        }
        if self.open_bytes > self.limit / OPEN_PART {
            self.close_all(u64::MAX)?;
            self.make_room();
        }
        Ok(())
    }

    /// Drops what is older than the span, which ends with the last event of all: of a job that hangs, what came before that is kept. To be called some times
    /// in each.
    pub fn trim(&mut self) -> Result<(), WriteError> {
        if let FlightSpan::Time(span) = self.span {
            self.close_all(self.newest_ns.saturating_sub(span / CHUNKS_OF_SPAN))?;
            let from_ns = self.newest_ns.saturating_sub(span);
            for kept in self.chunks.values_mut() {
                while kept.chunks.front().is_some_and(|chunk| chunk.stored.head.until_ns < from_ns) {
                    self.bytes -= kept.drop_front(&mut self.dropped);
                }
            }
            if self.from_ns().is_some_and(|oldest_ns| oldest_ns <= from_ns) {
                self.is_short = false;
            }
        }
        self.known.forget_pairs(self.from_ns().unwrap_or(self.newest_ns));
        Ok(())
    }

    /// Whether less than the span is kept, because there is no room for it.
    pub fn is_short(&self) -> bool {
        self.is_short
    }

    /// Where the oldest event that is kept begins, ns; `None`: there is none.
    pub fn from_ns(&self) -> Option<u64> {
        let closed = self.chunks.values().filter_map(|kept| kept.chunks.front()).map(|chunk| chunk.stored.head.from_ns);
        let open = self.open.iter().filter(|open| open.columns.count() > 0).map(|open| open.columns.from_ns);
        closed.chain(open).min()
    }

    /// How much memory events take, bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes + self.open_bytes
    }

    /// All that is kept now, and events that are true only now: calls that are open. What is kept goes on.
    pub fn dump(&mut self, open_calls: &[(LocationId, Event)]) -> Result<Dump, WriteError> {
        self.close_all(u64::MAX)?;
        let mut known = self.known.clone();
        for (id, location) in &mut known.locations {
            let Some(dropped) = self.dropped.get(id.index()).filter(|dropped| dropped.until_ns > 0) else { continue };
            location.losses = dropped.losses_since(&location.losses);
            if let Some(process) = known.processes.get_mut(&location.process) {
                process.recorded_from_ns = process.recorded_from_ns.max(dropped.until_ns);
                process.began_before = true;
            }
        }
        let mut chunks: Vec<Arc<Chunk>> = self.chunks.values().flat_map(|kept| kept.chunks.iter().cloned()).collect();
        chunks.sort_by_key(|chunk| chunk.stored.head.until_ns);
        let mut phases = Vec::new();
        let mut seen = vec![false; self.open.len()];
        for chunk in &chunks {
            let location = LocationId(chunk.stored.head.location);
            let Some(is_seen) = seen.get_mut(location.index()).filter(|is_seen| !**is_seen) else { continue };
            *is_seen = true;
            // It has begun before, and holds from the beginning on.
            let phase = self.dropped.get(location.index()).and_then(|dropped| dropped.phase.clone());
            phases.extend(phase.map(|phase| (location, PhaseChange { at_ns: chunk.stored.head.from_ns, ..phase })));
        }
        Ok(Dump { known, phases, chunks, open_calls: open_calls.to_vec() })
    }

    /// Closes the chunks that have begun before.
    fn close_all(&mut self, before_ns: u64) -> Result<(), WriteError> {
        for location in 0..u32::try_from(self.open.len()).unwrap_or(u32::MAX) {
            let open = self.open.get(location as usize).map(|open| &open.columns);
            if open.is_some_and(|open| open.count() > 0 && open.from_ns < before_ns) {
                self.close(LocationId(location))?;
            }
        }
        Ok(())
    }

    fn close(&mut self, location: LocationId) -> Result<(), WriteError> {
        let Some(open) = self.open.get_mut(location.index()).map(std::mem::take) else { return Ok(()) };
        let count = u64::from(open.columns.count());
        if count == 0 {
            return Ok(());
        }
        self.open_bytes = self.open_bytes.saturating_sub(count * OPEN_EVENT + OPEN_LOCATION);
        let Some(known) = self.known.locations.get(&location) else { return Ok(()) };
        let stored = Stored::new(Kind::Events, &open.columns.bytes(), location, &open.columns)?;
        let chunk = Chunk { stored, calls: open.calls, phase: open.phase, losses: known.losses };
        self.bytes += chunk.size();
        let kept = self.chunks.entry(known.process).or_default();
        kept.calls += chunk.calls;
        kept.chunks.push_back(Arc::new(chunk));
        if let FlightSpan::Calls(calls) = self.span {
            while kept.chunks.front().is_some_and(|oldest| kept.calls - oldest.calls >= calls) {
                self.bytes -= kept.drop_front(&mut self.dropped);
            }
        }
        Ok(())
    }

    /// Drops the oldest chunks of all until the rest fits, beside what is not compressed yet.
    fn make_room(&mut self) {
        while self.bytes > self.limit - self.limit / OPEN_PART {
            let with_oldest = self.chunks.values_mut().filter(|kept| kept.chunks.len() > 1);
            let oldest = with_oldest.min_by_key(|kept| kept.chunks.front().map(|chunk| chunk.stored.head.until_ns));
            let Some(oldest) = oldest else { return };
            self.bytes -= oldest.drop_front(&mut self.dropped);
            self.is_short = true;
        }
    }
}

impl Chunk {
    fn size(&self) -> u64 {
        self.stored.size() + (size_of::<Self>() - size_of::<Stored>()) as u64
    }
}

impl Kept {
    /// Gives back how much memory, bytes.
    fn drop_front(&mut self, dropped: &mut Vec<Dropped>) -> u64 {
        let Some(chunk) = self.chunks.pop_front() else { return 0 };
        let location = chunk.stored.head.location as usize;
        if dropped.len() <= location {
            dropped.resize_with(location + 1, Dropped::default);
        }
        if let Some(before) = dropped.get_mut(location) {
            before.calls += chunk.calls;
            before.until_ns = before.until_ns.max(chunk.stored.head.until_ns);
            before.losses = chunk.losses;
            if chunk.phase.is_some() {
                before.phase.clone_from(&chunk.phase);
            }
        }
        self.calls -= chunk.calls;
        chunk.size()
    }
}

impl Dropped {
    /// What is missing in the rest: of `all` that is missing, what was not by then. The calls before it are outside the time that was recorded, whether they
    /// had been recorded or not.
    fn losses_since(&self, all: &Losses) -> Losses {
        let before = self.losses;
        let (out, out_before) = (all.left_out, before.left_out);
        let mut rest = Losses {
            lost: all.lost.saturating_sub(before.lost),
            lost_changes: all.lost_changes.saturating_sub(before.lost_changes),
            damaged: all.damaged.saturating_sub(before.damaged),
            ..Losses::default()
        };
        rest.left_out.by_function = out.by_function.saturating_sub(out_before.by_function);
        rest.left_out.by_communicator = out.by_communicator.saturating_sub(out_before.by_communicator);
        rest.left_out.by_duration = out.by_duration.saturating_sub(out_before.by_duration);
        rest.left_out.by_pressure = out.by_pressure.saturating_sub(out_before.by_pressure);
        let missing_before = before.missing().saturating_add(out_before.calls().saturating_sub(out_before.by_time));
        rest.left_out.by_time = out.by_time.saturating_add(self.calls).saturating_add(missing_before);
        rest
    }
}

impl Known {
    fn take(&mut self, definition: Definition) {
        match definition {
            // Those of this program are written in any case.
            Definition::Functions(_) => {}
            Definition::Node(id, node) => {
                self.nodes.insert(id, node);
            }
            Definition::Clock(id, pair) => {
                let pairs = self.pairs.entry(id).or_default();
                if pairs.len() >= MOST_PAIRS {
                    pairs.pop_front();
                }
                pairs.push_back(pair);
            }
            Definition::Process(id, process) => {
                self.processes.insert(id, process);
            }
            Definition::Location(id, location) => {
                self.locations.insert(id, location);
            }
            Definition::CallSite(id, _) => {
                self.sites.insert(id, definition);
            }
            Definition::Communicator(local) => {
                self.communicators.insert((local.process, local.number), local);
            }
            Definition::Window { process, number, communicator } => {
                self.windows.insert((process, number), communicator);
            }
            Definition::File { process, number, communicator, file } => {
                self.files.insert((process, number), (communicator, file));
            }
        }
    }

    /// Of pairs before a time, the last one is enough.
    fn forget_pairs(&mut self, from_ns: u64) {
        for pairs in self.pairs.values_mut() {
            while pairs.get(1).is_some_and(|pair| pair.monotonic_ns <= from_ns) {
                pairs.pop_front();
            }
        }
    }

    fn definitions(&self) -> impl Iterator<Item = Definition> + '_ {
        let nodes = self.nodes.iter().map(|(&id, node)| Definition::Node(id, node.clone()));
        let pairs =
            self.pairs.iter().flat_map(|(&id, pairs)| pairs.iter().map(move |&pair| Definition::Clock(id, pair)));
        let processes = self.processes.iter().map(|(&id, process)| Definition::Process(id, process.clone()));
        let locations = self.locations.iter().map(|(&id, location)| Definition::Location(id, location.clone()));
        let communicators = self.communicators.values().cloned().map(Definition::Communicator);
        let windows = self.windows.iter().map(|(&(process, number), &communicator)| Definition::Window {
            process,
            number,
            communicator,
        });
        let files = self.files.iter().map(|(&(process, number), (communicator, file))| Definition::File {
            process,
            number,
            communicator: *communicator,
            file: file.clone(),
        });
        let sites = self.sites.values().cloned();
        nodes
            .chain(pairs)
            .chain(processes)
            .chain(locations)
            .chain(sites)
            .chain(communicators)
            .chain(windows)
            .chain(files)
    }
}

/// What was kept at one moment.
#[derive(Debug)]
pub struct Dump {
    known: Known,
    /// In which phase locations were when their first event began.
    phases: Vec<(LocationId, PhaseChange)>,
    /// In the order of time.
    chunks: Vec<Arc<Chunk>>,
    open_calls: Vec<(LocationId, Event)>,
}

impl Dump {
    /// How many events it has.
    pub fn event_count(&self) -> u64 {
        let kept = self.chunks.iter().map(|chunk| u64::from(chunk.stored.head.count)).sum::<u64>();
        kept + (self.phases.len() + self.open_calls.len()) as u64
    }

    /// From the beginning of the first event to the end of the last one, ns; `None`: there is none.
    pub fn span_ns(&self) -> Option<u64> {
        let heads = || self.chunks.iter().map(|chunk| chunk.stored.head);
        let until_ns = heads().map(|head| head.until_ns).chain(self.open_calls.iter().map(|(_, call)| call.end_ns()));
        Some(until_ns.max()?.saturating_sub(heads().map(|head| head.from_ns).min()?))
    }

    /// Writes it as a trace of its own.
    pub fn write<W: Write>(&self, to: W) -> Result<W, WriteError> {
        let mut writer = TraceWriter::new(to)?;
        for (number, definition) in (1..).zip(self.known.definitions()) {
            writer.define(definition);
            if number % DEFINITIONS == 0 {
                writer.flush()?;
            }
        }
        for (location, phase) in &self.phases {
            writer.push(*location, &Event::Phase(phase.clone()))?;
        }
        writer.flush()?;
        for chunk in &self.chunks {
            writer.append(&chunk.stored)?;
        }
        for (location, call) in &self.open_calls {
            writer.push(*location, call)?;
        }
        writer.finish()
    }
}

#[cfg(test)]
#[path = "flight_tests.rs"]
mod tests;
