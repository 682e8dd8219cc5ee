//! Files of a trace, read as one, and what is in memory like that.

use std::{
    collections::{BTreeMap, HashMap},
    fs::File,
    os::unix::fs::FileExt as _,
    path::Path,
    sync::Arc,
};

use mpiprobe_functions::{FunctionId, by_name};
use mpiprobe_model::CallSite;

use super::{
    chunk::HEAD,
    columns::Reading,
    communicators::{Numbers, unite},
    definition::{Definition, LocalCommunicator},
    dump::Dump,
    error::OpenError,
    index::{Place, check, index},
    stored::Chunk,
    wire::Malformed,
};
use crate::{
    definitions::{
        CommunicatorId, Definitions, File as MpiFile, FileId, Location, LocationId, NodeId, Process, ProcessId, SiteId,
        Window, WindowId,
    },
    event::Object,
    part::{Part, Shape},
    source::{Parts, ReadError, Trace},
    span::Span,
};

/// Entries of one kind that a file may define.
const MOST: usize = 1 << 22;

/// Events that are decoded at once.
const ROWS: u32 = 1024;

/// A trace in files, one of each node; they are only read where somebody asks for events.
#[derive(Debug)]
pub struct TraceFiles {
    files: Vec<OneFile>,
    definitions: Definitions,
    /// By location.
    chunks: Vec<Vec<ChunkAt>>,
    numbers: Numbers,
    windows: HashMap<(ProcessId, u32), WindowId>,
    opened: HashMap<(ProcessId, u32), FileId>,
    notes: Vec<String>,
}

#[derive(Debug)]
struct OneFile {
    path: String,
    bytes: Bytes,
    /// What numbers of functions mean.
    functions: Vec<FunctionId>,
    /// The number in the trace of each call site of the file.
    sites: Vec<SiteId>,
}

/// Where chunks are.
#[derive(Debug)]
enum Bytes {
    File(File),
    /// Their places are numbers in this list.
    Memory(Vec<Arc<Chunk>>),
}

#[derive(Clone, Copy, Debug)]
struct ChunkAt {
    file: usize,
    place: Place,
}

/// What the definitions of one file say.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) functions: Vec<String>,
    pub(super) own: Definitions,
    pub(super) communicators: BTreeMap<(ProcessId, u32), LocalCommunicator>,
    pub(super) windows: BTreeMap<(ProcessId, u32), Option<u32>>,
    pub(super) opened: BTreeMap<(ProcessId, u32), (Option<u32>, MpiFile)>,
    /// More is known of communicators, or of who is in them, since somebody has asked for that.
    pub(super) has_communicators: bool,
    /// Nothing follows in the file.
    has_end: bool,
    unread: u64,
}

impl TraceFiles {
    /// Opens files, in whatever order, as one trace.
    pub fn open<P: AsRef<Path>>(paths: &[P]) -> Result<Self, OpenError> {
        let mut trace = Self::empty();
        let mut communicators = BTreeMap::new();
        let mut scopes = Scopes::default();
        let mut sites = HashMap::new();
        for path in paths {
            trace.add(path.as_ref(), &mut communicators, &mut scopes, &mut sites)?;
        }
        if trace.files.is_empty() {
            return Err(OpenError::Nothing);
        }
        (trace.definitions.communicators, trace.numbers) =
            unite(&communicators, &Numbers::new(), &trace.definitions.processes);
        trace.resolve(scopes);
        Ok(trace)
    }

    /// What was kept of a trace at one moment. Its chunks are shared, and nothing of them is read before somebody asks for events.
    pub fn of_dump(dump: &Dump, name: &str) -> Self {
        Self::of_dumps(&[(name, dump)])
    }

    /// The same of one of each node, by name, as one trace.
    pub fn of_dumps<N: AsRef<str>>(dumps: &[(N, &Dump)]) -> Self {
        let mut trace = Self::empty();
        let (mut communicators, mut scopes, mut known_sites) = (BTreeMap::new(), Scopes::default(), HashMap::new());
        for (name, dump) in dumps {
            let mut said = Said::default();
            for definition in dump.known.definitions() {
                said.unread += u64::from(!said.take(definition));
            }
            let first_location = trace.take(&mut said, &mut communicators, &mut scopes);
            let sites = trace.sites(&mut said, &mut known_sites);
            let heads = dump.chunks.iter().map(|chunk| chunk.stored.head);
            let places = (0..).zip(heads).map(|(offset, head)| Place { head, offset });
            trace.place(first_location, places);
            let (bytes, functions) = (Bytes::Memory(dump.chunks.clone()), FunctionId::all().collect());
            trace.files.push(OneFile { path: name.as_ref().to_owned(), bytes, functions, sites });
        }
        (trace.definitions.communicators, trace.numbers) =
            unite(&communicators, &Numbers::new(), &trace.definitions.processes);
        trace.resolve(scopes);
        trace
    }

    fn empty() -> Self {
        Self {
            files: Vec::new(),
            definitions: Definitions::default(),
            chunks: Vec::new(),
            numbers: Numbers::new(),
            windows: HashMap::new(),
            opened: HashMap::new(),
            notes: Vec::new(),
        }
    }

    /// What is wrong with the files, in words; empty: nothing.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    fn add(
        &mut self,
        path: &Path,
        communicators: &mut BTreeMap<(ProcessId, u32), LocalCommunicator>,
        scopes: &mut Scopes,
        sites: &mut HashMap<(String, u64), SiteId>,
    ) -> Result<(), OpenError> {
        let shown = path.display().to_string();
        let error = |error| OpenError::Io { path: shown.clone(), error };
        let file = File::open(path).map_err(error)?;
        let length = check(&file, &shown)?;
        let found = index(&file, length).map_err(error)?;
        let mut said = Said::default();
        for place in &found.definitions {
            said.read(&file, place);
        }
        let functions = said.functions.iter().map(|name| {
            by_name(name).ok_or_else(|| OpenError::UnknownFunction { path: shown.clone(), function: name.clone() })
        });
        // Names of functions that nobody has called are of no importance.
        let functions: Vec<FunctionId> = match functions.collect() {
            Ok(functions) => functions,
            Err(error) if found.events.is_empty() => {
                self.notes.push(error.to_string());
                Vec::new()
            }
            Err(error) => return Err(error),
        };
        let first_location = self.take(&mut said, communicators, scopes);
        let sites = self.sites(&mut said, sites);
        let nobodys = self.place(first_location, found.events);
        self.files.push(OneFile { path: shown.clone(), bytes: Bytes::File(file), functions, sites });
        let of_unknown = self.of_unknown_processes(first_location);
        let mut note = |amount: u64, what: &str| {
            if amount > 0 {
                self.notes.push(format!("{shown}: {amount} {what}"));
            }
        };
        note(found.cut, "bytes at the end are no whole chunk: it was cut off, or is still being written");
        note(found.damaged, "bytes are damaged");
        note(if found.damaged == 0 { found.missing } else { 0 }, "parts of it are missing");
        note(said.unread, "parts of its definitions are damaged");
        note(nobodys, "events are of no thread");
        note(of_unknown, "events are of processes that nothing defines any more");
        if !said.has_end && found.cut == 0 {
            self.notes.push(format!("{shown}: it has no end: whoever has written it was killed, or is still writing"));
        }
        Ok(())
    }

    /// The numbers in the trace of all call sites of a file.
    fn sites(&mut self, said: &mut Said, known: &mut HashMap<(String, u64), SiteId>) -> Vec<SiteId> {
        let number = |site: CallSite| {
            let key = (site.module.clone(), site.offset);
            *known.entry(key).or_insert_with(|| {
                self.definitions.call_sites.push(site);
                SiteId(u32::try_from(self.definitions.call_sites.len() - 1).unwrap_or(u32::MAX))
            })
        };
        said.own.call_sites.drain(..).map(number).collect()
    }

    /// Takes in the chunks of the file that comes next; gives how many events are of no thread.
    fn place(&mut self, first_location: usize, places: impl IntoIterator<Item = Place>) -> u64 {
        let (file, mut nobodys) = (self.files.len(), 0);
        for place in places {
            match self.chunks.get_mut(first_location.saturating_add(place.head.location as usize)) {
                Some(chunks) => chunks.push(ChunkAt { file, place }),
                None => nobodys += u64::from(place.head.count),
            }
        }
        nobodys
    }

    /// How many events there are of locations, from one on, whose process is not known.
    fn of_unknown_processes(&self, first_location: usize) -> u64 {
        let is_unknown = |location: &Location| self.definitions.process(location.process).is_none();
        let locations = self.definitions.locations.iter().zip(&self.chunks).skip(first_location);
        let chunks = locations.filter(|(location, _)| is_unknown(location)).flat_map(|(_, chunks)| chunks);
        chunks.map(|chunk| u64::from(chunk.place.head.count)).sum()
    }

    /// Takes in what a file defines; gives the number of its first location.
    fn take(
        &mut self,
        said: &mut Said,
        communicators: &mut BTreeMap<(ProcessId, u32), LocalCommunicator>,
        scopes: &mut Scopes,
    ) -> usize {
        let all = &mut self.definitions;
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let (first_node, first_process) = (count(all.nodes.len()), count(all.processes.len()));
        let first_location = all.locations.len();
        // What is not defined here is not defined by another file, either.
        let moved_by = |first: u32, known: usize| {
            move |id: u32| if (id as usize) < known { id.saturating_add(first) } else { u32::MAX }
        };
        let node = moved_by(first_node, said.own.nodes.len());
        let process = moved_by(first_process, said.own.processes.len());
        let process = |id: ProcessId| ProcessId(process(id.0));
        all.nodes.append(&mut said.own.nodes);
        let moved = said.own.processes.drain(..);
        all.processes.extend(moved.map(|one| Process { node: NodeId(node(one.node.0)), ..one }));
        let moved = said.own.locations.drain(..);
        all.locations.extend(moved.map(|one| Location { process: process(one.process), ..one }));
        self.chunks.resize_with(all.locations.len(), Vec::new);
        for ((id, number), local) in std::mem::take(&mut said.communicators) {
            let id = process(id);
            communicators.insert((id, number), LocalCommunicator { process: id, ..local });
        }
        let windows = std::mem::take(&mut said.windows).into_iter();
        scopes.windows.extend(windows.map(|((id, number), over)| ((process(id), number), over)));
        let opened = std::mem::take(&mut said.opened).into_iter();
        scopes.opened.extend(opened.map(|((id, number), over)| ((process(id), number), over)));
        first_location
    }

    fn resolve(&mut self, scopes: Scopes) {
        for ((process, number), over) in scopes.windows {
            let communicator = over.and_then(|over| self.numbers.get(&(process, over)).copied());
            let id = WindowId(u32::try_from(self.definitions.windows.len()).unwrap_or(u32::MAX));
            self.definitions.windows.push(Window { communicator });
            self.windows.insert((process, number), id);
        }
        for ((process, number), (over, file)) in scopes.opened {
            let communicator = over.and_then(|over| self.numbers.get(&(process, over)).copied());
            let id = FileId(u32::try_from(self.definitions.files.len()).unwrap_or(u32::MAX));
            self.definitions.files.push(MpiFile { communicator, ..file });
            self.opened.insert((process, number), id);
        }
    }

    fn chunk(&self, at: &ChunkAt, process: ProcessId) -> Result<Open, ReadError> {
        let Some(from) = self.files.get(at.file) else {
            return Err(ReadError::Damaged { path: String::new(), reason: "there is no such file".into() });
        };
        let head = at.place.head;
        let damaged = |malformed| self.damaged(at, malformed);
        let payload = match &from.bytes {
            Bytes::File(file) => {
                let mut stored = vec![0; head.stored as usize];
                let read = file.read_exact_at(&mut stored, at.place.offset);
                read.map_err(|error| ReadError::Io { path: from.path.clone(), error })?;
                head.payload(&stored)
            }
            Bytes::Memory(chunks) => {
                let chunk = usize::try_from(at.place.offset).ok().and_then(|place| chunks.get(place));
                chunk.map_or(Err(Malformed("it is not there")), |chunk| head.payload(&chunk.stored.payload))
            }
        };
        let payload = payload.map_err(damaged)?;
        let mut names = NamesOf { trace: self, file: from, process, last: None };
        let translate = |shape: &mut Shape| names.translate(shape);
        let read = Reading::new(payload, head.count, head.first_number, &from.functions, translate);
        let (reading, shapes) = read.map_err(damaged)?;
        Ok(Open { at: *at, reading, shapes })
    }

    fn damaged(&self, at: &ChunkAt, Malformed(why): Malformed) -> ReadError {
        let path = self.files.get(at.file).map(|file| file.path.clone()).unwrap_or_default();
        ReadError::Damaged {
            path,
            reason: format!("the chunk at byte {}: {why}", at.place.offset.saturating_sub(HEAD as u64)),
        }
    }
}

/// What a process in a file calls by numbers of its own.
struct NamesOf<'a> {
    trace: &'a TraceFiles,
    file: &'a OneFile,
    process: ProcessId,
    /// The communicator that was asked for before: many shapes are over the same one.
    last: Option<(CommunicatorId, Option<CommunicatorId>)>,
}

impl NamesOf<'_> {
    /// What a shape calls by numbers of the file, by ids of the trace.
    fn translate(&mut self, shape: &mut Shape) {
        let operation = match shape {
            Shape::Phase(_) => return,
            Shape::Call { call, .. } => {
                call.call_site = call.call_site.and_then(|site| self.file.sites.get(site.index()).copied());
                &mut call.operation
            }
            Shape::Change(change) => &mut change.operation,
        };
        operation.communicator = operation.communicator.and_then(|number| self.communicator(number));
        let Self { trace, process, .. } = *self;
        operation.object = operation.object.and_then(|object| match object {
            Object::Window(WindowId(number)) => trace.windows.get(&(process, number)).copied().map(Object::Window),
            Object::File(FileId(number)) => trace.opened.get(&(process, number)).copied().map(Object::File),
        });
    }

    fn communicator(&mut self, number: CommunicatorId) -> Option<CommunicatorId> {
        if let Some((_, known)) = self.last.filter(|&(last, _)| last == number) {
            return known;
        }
        let known = self.trace.numbers.get(&(self.process, number.0)).copied();
        self.last = Some((number, known));
        known
    }
}

impl Trace for TraceFiles {
    fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    fn span(&self) -> Span {
        let heads = || self.chunks.iter().flatten().map(|chunk| chunk.place.head);
        Span {
            from_ns: heads().map(|head| head.from_ns).min().unwrap_or(0),
            until_ns: heads().map(|head| head.until_ns).max().unwrap_or(0),
        }
    }

    fn span_of(&self, location: LocationId) -> Option<Span> {
        let heads = self.chunks.get(location.index())?.iter().map(|chunk| chunk.place.head);
        let from_ns = heads.clone().map(|head| head.from_ns).min()?;
        Some(Span { from_ns, until_ns: heads.map(|head| head.until_ns).max()? })
    }

    fn event_count(&self) -> u64 {
        self.chunks.iter().flatten().map(|chunk| u64::from(chunk.place.head.count)).sum()
    }

    fn parts(&self, location: LocationId, span: Span) -> Parts<'_> {
        let process = self.definitions.location(location).map_or(ProcessId(u32::MAX), |location| location.process);
        let chunks = self.chunks.get(location.index()).map(Vec::as_slice).unwrap_or_default();
        Box::new(ChunkParts { trace: self, process, span, chunks: chunks.iter(), open: None, mistake: None })
    }
}

/// The events of a location, a chunk at a time.
struct ChunkParts<'a> {
    trace: &'a TraceFiles,
    process: ProcessId,
    span: Span,
    chunks: std::slice::Iter<'a, ChunkAt>,
    open: Option<Open>,
    mistake: Option<ReadError>,
}

/// A chunk that is being read.
struct Open {
    at: ChunkAt,
    reading: Reading,
    shapes: Arc<[Shape]>,
}

impl ChunkParts<'_> {
    /// Events of a damaged chunk are missing by their numbers; the rest of the location is read on.
    fn next_or_error(&mut self) -> Result<Option<Part>, ReadError> {
        loop {
            if let Some(mistake) = self.mistake.take() {
                return Err(mistake);
            }
            let Some(open) = &mut self.open else {
                let Some(&at) = self.chunks.next() else { return Ok(None) };
                let head = at.place.head;
                if head.until_ns >= self.span.from_ns && head.from_ns <= self.span.until_ns {
                    self.open = Some(self.trace.chunk(&at, self.process)?);
                }
                continue;
            };
            let mut part = Part { shapes: Arc::clone(&open.shapes), rows: Vec::new(), changes: Vec::new() };
            let read = open.reading.rows(ROWS, &mut part.rows, &mut part.changes);
            let (at, is_over) = (open.at, open.reading.is_over());
            if is_over {
                self.open = None;
            }
            let head = at.place.head;
            if head.from_ns < self.span.from_ns || head.until_ns > self.span.until_ns {
                part.cut(self.span);
            }
            // What came before a mistake is as true as ever.
            self.mistake = read.err().map(|malformed| self.trace.damaged(&at, malformed));
            if !part.rows.is_empty() {
                return Ok(Some(part));
            }
        }
    }
}

impl Iterator for ChunkParts<'_> {
    type Item = Result<Part, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_or_error().transpose()
    }
}

/// Windows and files as processes know them, and the numbers of their communicators there.
#[derive(Debug, Default)]
struct Scopes {
    windows: BTreeMap<(ProcessId, u32), Option<u32>>,
    opened: BTreeMap<(ProcessId, u32), (Option<u32>, MpiFile)>,
}

impl Said {
    /// Takes in one chunk of definitions, as far as it makes sense.
    fn read(&mut self, file: &File, place: &Place) {
        let mut stored = vec![0; place.head.stored as usize];
        let payload = match file.read_exact_at(&mut stored, place.offset) {
            Ok(()) => place.head.payload(&stored).ok(),
            Err(_) => None,
        };
        self.unread += payload.map_or(1, |payload| self.take_payload(&payload));
    }

    /// Takes in what a chunk of definitions has; gives how many parts of it make no sense.
    pub(super) fn take_payload(&mut self, payload: &[u8]) -> u64 {
        let Ok(definitions) = serde_json::from_slice::<Vec<Definition>>(payload) else { return 1 };
        definitions.into_iter().map(|definition| u64::from(!self.take(definition))).sum()
    }

    /// False: it refers to what is not there.
    fn take(&mut self, definition: Definition) -> bool {
        match definition {
            Definition::Functions(names) => self.functions = names,
            Definition::End => self.has_end = true,
            Definition::Clock(id, pair) => {
                let Some(node) = self.own.nodes.get_mut(id.index()) else { return false };
                if node.clock.len() < MOST {
                    node.clock.push(pair);
                }
            }
            Definition::Node(id, node) => return set(&mut self.own.nodes, id.index(), node),
            Definition::Process(id, process) => {
                self.has_communicators = true;
                return set(&mut self.own.processes, id.index(), process);
            }
            Definition::Location(id, location) => return set(&mut self.own.locations, id.index(), location),
            Definition::CallSite(id, site) => return set(&mut self.own.call_sites, id.index(), site),
            Definition::Communicator(local) => {
                if self.communicators.len() >= MOST {
                    return false;
                }
                self.has_communicators = true;
                self.communicators.insert((local.process, local.number), local);
            }
            Definition::Window { process, number, communicator } => {
                if self.windows.len() >= MOST {
                    return false;
                }
                self.windows.insert((process, number), communicator);
            }
            Definition::File { process, number, communicator, file } => {
                if self.opened.len() >= MOST {
                    return false;
                }
                self.opened.insert((process, number), (communicator, file));
            }
        }
        true
    }
}

/// Puts an entry in its place, which is there or comes next.
fn set<T>(list: &mut Vec<T>, index: usize, value: T) -> bool {
    if let Some(place) = list.get_mut(index) {
        *place = value;
        return true;
    }
    let is_next = index == list.len() && index < MOST;
    if is_next {
        list.push(value);
    }
    is_next
}
