//! A trace while it is written: what its chunks say, as they come.
//!
//! Whoever reads a whole file knows all that events refer to. Here an event may come before it is known which call site an address is, or
//! who else is in a communicator. What refers to such a thing waits until that is known, for some time at most: what a communicator means
//! is never changed once anything was given out that refers to it.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    mem,
    sync::Arc,
};

use mpiprobe_functions::{FunctionId, by_name};
use mpiprobe_model::CallSite;

use super::{
    chunk::{FILE_HEAD, HEAD, Head, Kind},
    columns::Reading,
    communicators::{Numbers, unite},
    definition::LocalCommunicator,
    error::FollowError,
    reader::Said,
    wire::Malformed,
};
use crate::{
    definitions::{
        Communicator, CommunicatorId, CommunicatorKind, Definitions, File, FileId, Location, LocationId, Losses,
        ProcessId, SiteId, Window, WindowId,
    },
    event::{Object, Operation},
    part::{Part, Row, Shape},
};

/// How long events wait until it is known what they refer to, ns.
const PATIENCE_NS: u64 = 2_000_000_000;

/// A trace as far as it is written.
#[derive(Debug, Default)]
pub struct Following {
    said: Said,
    functions: Vec<FunctionId>,
    definitions: Definitions,
    sites: Sites,
    communicators: Communicators,
    windows: HashMap<(ProcessId, u32), WindowId>,
    opened: HashMap<(ProcessId, u32), FileId>,
    /// By location.
    waiting: Vec<VecDeque<Waiting>>,
    waiting_rows: u64,
    /// Events that were given to nobody, by location: whoever has written them could not keep them, or they made no sense.
    lost: Vec<u64>,
    /// Since it was looked at, and since somebody has asked for it.
    is_new: bool,
    has_news: bool,
    now_ns: u64,
}

/// Events, and what they refer to, as it is called in the file.
#[derive(Debug)]
struct Waiting {
    /// Until what they refer to has ids. Nobody else has them meanwhile.
    shapes: Option<Arc<[Shape]>>,
    part: Part,
    sites: Vec<SiteId>,
    communicators: Vec<u32>,
}

/// Call sites: the same place has one number, whoever was there.
#[derive(Debug, Default)]
struct Sites {
    /// By number in the file; `None`: nothing but an address is known of it.
    numbers: Vec<Option<SiteId>>,
    by_place: HashMap<(String, u64), SiteId>,
    /// Since when somebody has waited for one, by number in the file.
    since: HashMap<u32, u64>,
}

#[derive(Debug, Default)]
struct Communicators {
    numbers: Numbers,
    /// By id: it does not change any more, but for its name.
    is_settled: Vec<bool>,
    /// Members as they were when somebody could not wait for others any longer.
    frozen: HashMap<CommunicatorId, Communicator>,
    /// Since when somebody has waited to know all members.
    since: HashMap<CommunicatorId, u64>,
}

impl Following {
    /// The next chunk, whole, or the beginning of the file.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), FollowError> {
        let malformed = |Malformed(why)| FollowError(why);
        let Some((head, stored)) = bytes.split_first_chunk::<HEAD>() else {
            return if bytes.len() == FILE_HEAD { Ok(()) } else { Err(FollowError("it is no chunk")) };
        };
        let head = Head::read(head).map_err(malformed)?;
        let taken = match (head.kind, head.payload(stored)) {
            (Kind::Definitions, payload) => payload.and_then(|payload| self.define(&payload)),
            (Kind::Events, payload) => payload.and_then(|payload| self.events(&head, payload)),
        };
        if taken.is_err() && head.kind == Kind::Events {
            self.lose(LocationId(head.location), u64::from(head.count));
        }
        taken.map_err(malformed)
    }

    /// How many events a chunk has, and of which location; `None`: it has none.
    pub fn events_of(bytes: &[u8]) -> Option<(LocationId, u64)> {
        let head = Head::read(bytes.first_chunk::<HEAD>()?).ok()?;
        (head.kind == Kind::Events).then_some((LocationId(head.location), u64::from(head.count)))
    }

    /// Events of a location that were written and will not come.
    pub fn lose(&mut self, location: LocationId, events: u64) {
        // Somebody may have written any number.
        if location.index() < self.waiting.len().max(self.said.own.locations.len()) {
            if self.lost.len() <= location.index() {
                self.lost.resize(location.index() + 1, 0);
            }
            if let Some(lost) = self.lost.get_mut(location.index()) {
                *lost = lost.saturating_add(events);
            }
            self.is_new = true;
        }
    }

    fn define(&mut self, payload: &[u8]) -> Result<(), Malformed> {
        if self.said.take_payload(payload) > 0 {
            return Err(Malformed("some of its definitions make no sense"));
        }
        if self.functions.is_empty() {
            let functions = self.said.functions.iter().map(|name| by_name(name));
            let functions: Option<Vec<FunctionId>> = functions.collect();
            self.functions = functions.ok_or(Malformed("it has functions that are not known"))?;
        }
        self.is_new = true;
        Ok(())
    }

    fn events(&mut self, head: &Head, payload: Vec<u8>) -> Result<(), Malformed> {
        let location = LocationId(head.location);
        if location.index() > self.waiting.len().saturating_add(1 << 16) {
            return Err(Malformed("it is of no thread"));
        }
        let (mut reading, shapes) = Reading::new(payload, head.count, head.first_number, &self.functions, |_| {})?;
        let mut part = Part { shapes: Arc::from([]), rows: Vec::new(), changes: Vec::new() };
        let read = reading.rows(head.count, &mut part.rows, &mut part.changes);
        if self.waiting.len() <= location.index() {
            self.waiting.resize_with(location.index() + 1, VecDeque::new);
        }
        let (mut sites, mut communicators) = (Vec::new(), Vec::new());
        for shape in shapes.iter() {
            if let Shape::Call { call, .. } = shape {
                sites.extend(call.call_site);
            }
            communicators.extend(operation_of(shape).and_then(|operation| operation.communicator).map(|id| id.0));
        }
        sites.sort_unstable();
        sites.dedup();
        communicators.sort_unstable();
        communicators.dedup();
        self.waiting_rows += part.rows.len() as u64;
        if let Some(waiting) = self.waiting.get_mut(location.index()) {
            waiting.push_back(Waiting { shapes: Some(shapes), part, sites, communicators });
        }
        read
    }

    /// Looks at what was said meanwhile. `now_ns`: the time, by which it is known how long something is waited for.
    pub fn learn(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        if !mem::take(&mut self.is_new) {
            return;
        }
        self.has_news = true;
        let (own, all) = (&self.said.own, &mut self.definitions);
        all.nodes.clone_from(&own.nodes);
        all.processes.clone_from(&own.processes);
        let lost = self.lost.iter().copied().chain(std::iter::repeat(0));
        let located = own.locations.iter().zip(lost).map(|(location, lost)| Location {
            losses: Losses { lost: location.losses.lost.saturating_add(lost), ..location.losses },
            ..location.clone()
        });
        all.locations = located.collect();
        self.sites.learn(&own.call_sites, &mut all.call_sites);
        if mem::take(&mut self.said.has_communicators) {
            self.communicators.learn(&self.said.communicators, all);
        }
        self.resolve();
    }

    /// Whether the definitions say more, since somebody has asked for that.
    pub fn take_news(&mut self) -> bool {
        mem::take(&mut self.has_news)
    }

    /// Windows and files, by the communicators that they were made with.
    fn resolve(&mut self) {
        let of = |process: ProcessId, over: Option<u32>| {
            over.and_then(|over| self.communicators.numbers.get(&(process, over)).copied())
        };
        for (&(process, number), &over) in &self.said.windows {
            let next = WindowId(u32::try_from(self.definitions.windows.len()).unwrap_or(u32::MAX));
            let id = *self.windows.entry((process, number)).or_insert(next);
            let window = Window { communicator: of(process, over) };
            match self.definitions.windows.get_mut(id.index()) {
                Some(known) => *known = window,
                None => self.definitions.windows.push(window),
            }
        }
        for (&(process, number), (over, file)) in &self.said.opened {
            let next = FileId(u32::try_from(self.definitions.files.len()).unwrap_or(u32::MAX));
            let id = *self.opened.entry((process, number)).or_insert(next);
            let file = File { communicator: of(process, *over), ..file.clone() };
            match self.definitions.files.get_mut(id.index()) {
                Some(known) => *known = file,
                None => self.definitions.files.push(file),
            }
        }
    }

    pub fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    /// Events that wait for something, or for whoever asks for them.
    pub fn waiting(&self) -> u64 {
        self.waiting_rows
    }

    /// Events of a location that are still here and begin before a time: when the first does, and how many they are, none, one or more.
    pub fn waiting_before(&self, location: LocationId, ns: u64) -> (Option<u64>, usize) {
        let Some(waiting) = self.waiting.get(location.index()) else { return (None, 0) };
        let begins = waiting.iter().flat_map(|one| &one.part.rows).map(|row| row.begin_ns);
        let mut before = begins.take_while(|&begin_ns| begin_ns < ns);
        let first = before.next();
        (first, usize::from(first.is_some()) + before.take(1).count())
    }

    /// The next events of a location that begin before a time, if all that they refer to is known, or will not be.
    pub fn next(&mut self, location: LocationId, until_ns: u64) -> Option<Part> {
        let process = self.definitions.location(location)?.process;
        let first = self.waiting.get_mut(location.index())?.front_mut()?;
        let is_before = |row: &Row| row.begin_ns < until_ns || until_ns == u64::MAX;
        let count = first.part.rows.iter().take_while(|row| is_before(row)).count();
        if count == 0 {
            return None;
        }
        if first.shapes.is_some() {
            if !self.sites.are_known(&first.sites, self.now_ns) {
                return None;
            }
            if !self.communicators.are_known(process, &first.communicators, &mut self.definitions, self.now_ns) {
                return None;
            }
            // Something may be taken as unknown now.
            self.has_news = true;
            let mut shapes = first.shapes.take().unwrap_or_default();
            for shape in Arc::get_mut(&mut shapes).into_iter().flatten() {
                if let Shape::Call { call, .. } = shape {
                    call.call_site = call.call_site.map(|site| self.sites.number(site, &mut self.definitions));
                }
                let Some(operation) = operation_of_mut(shape) else { continue };
                operation.communicator = operation
                    .communicator
                    .and_then(|CommunicatorId(number)| self.communicators.numbers.get(&(process, number)).copied());
                operation.object = operation.object.and_then(|object| match object {
                    Object::Window(WindowId(number)) => {
                        self.windows.get(&(process, number)).copied().map(Object::Window)
                    }
                    Object::File(FileId(number)) => self.opened.get(&(process, number)).copied().map(Object::File),
                });
            }
            first.part.shapes = shapes;
        }
        let part = first.part.split_front(count);
        if first.part.rows.is_empty() {
            self.waiting.get_mut(location.index())?.pop_front();
        }
        self.waiting_rows = self.waiting_rows.saturating_sub(part.rows.len() as u64);
        Some(part)
    }
}

fn operation_of(shape: &Shape) -> Option<&Operation> {
    match shape {
        Shape::Phase(_) => None,
        Shape::Call { call, .. } => Some(&call.operation),
        Shape::Change(change) => Some(&change.operation),
    }
}

fn operation_of_mut(shape: &mut Shape) -> Option<&mut Operation> {
    match shape {
        Shape::Phase(_) => None,
        Shape::Call { call, .. } => Some(&mut call.operation),
        Shape::Change(change) => Some(&mut change.operation),
    }
}

/// Whether nothing but the address in a process is known of it.
fn is_unnamed(site: &CallSite) -> bool {
    site.module.starts_with("process:")
}

impl Sites {
    /// Those of which it is known in which file they are.
    fn learn(&mut self, own: &[CallSite], all: &mut Vec<CallSite>) {
        self.numbers.resize(own.len().max(self.numbers.len()), None);
        for (site, number) in own.iter().zip(&mut self.numbers) {
            if is_unnamed(site) {
                continue;
            }
            let id = *number.get_or_insert_with(|| self.by_place.number(site, all));
            // More may be known than the last time.
            if let Some(known) = all.get_mut(id.index())
                && (known.module == site.module && known.offset == site.offset || is_unnamed(known))
                && known != site
            {
                known.clone_from(site);
            }
        }
    }

    fn are_known(&mut self, sites: &[SiteId], now_ns: u64) -> bool {
        let Self { numbers, since, .. } = self;
        let mut is_missing = |site: &&SiteId| {
            let is_known = numbers.get(site.index()).is_some_and(Option::is_some);
            !is_known && now_ns < since.entry(site.0).or_insert(now_ns).saturating_add(PATIENCE_NS)
        };
        // Each of them has its own time.
        sites.iter().filter(|site| is_missing(site)).count() == 0
    }

    /// Of one that nobody has found, the number is its own.
    fn number(&mut self, site: SiteId, all: &mut Definitions) -> SiteId {
        if let Some(&Some(known)) = self.numbers.get(site.index()) {
            return known;
        }
        let unnamed = CallSite::unknown(format!("process:?:{}", site.0), 0);
        let id = self.by_place.number(&unnamed, &mut all.call_sites);
        if let Some(number) = self.numbers.get_mut(site.index()) {
            *number = Some(id);
        }
        id
    }
}

/// Gives places numbers.
trait Numbering {
    fn number(&mut self, site: &CallSite, all: &mut Vec<CallSite>) -> SiteId;
}

impl Numbering for HashMap<(String, u64), SiteId> {
    fn number(&mut self, site: &CallSite, all: &mut Vec<CallSite>) -> SiteId {
        *self.entry((site.module.clone(), site.offset)).or_insert_with(|| {
            all.push(site.clone());
            SiteId(u32::try_from(all.len() - 1).unwrap_or(u32::MAX))
        })
    }
}

impl Communicators {
    /// Brings together what processes know, and leaves as it is what was given out.
    fn learn(&mut self, known: &BTreeMap<(ProcessId, u32), LocalCommunicator>, all: &mut Definitions) {
        let given = self.numbers.iter().filter(|&(_, &id)| self.is_settled(id)).map(|(&key, &id)| (key, id));
        let given: Numbers = given.collect();
        let (united, numbers) = unite(known, &given, &all.processes);
        let mut keys: Vec<Vec<(ProcessId, u32)>> = vec![Vec::new(); united.len()];
        for (&key, &id) in &numbers {
            if let Some(keys) = keys.get_mut(id.index()) {
                keys.push(key);
            }
        }
        let mut taken: HashSet<CommunicatorId> = HashSet::new();
        let mut ids: Vec<CommunicatorId> = Vec::new();
        for keys in &mut keys {
            keys.sort_unstable();
            let given = keys.iter().find_map(|key| given.get(key).copied());
            // Of those that nobody has been told, several may turn out to be one, and the other way round.
            let mut before = keys.iter().filter_map(|key| self.numbers.get(key).copied());
            let before = || before.find(|&id| !self.is_settled(id) && !taken.contains(&id));
            let id = given.or_else(before).unwrap_or_else(|| {
                self.is_settled.push(false);
                CommunicatorId(u32::try_from(self.is_settled.len() - 1).unwrap_or(u32::MAX))
            });
            taken.insert(id);
            ids.push(id);
            self.numbers.extend(keys.iter().map(|&key| (key, id)));
        }
        let nothing = Communicator {
            name: String::new(),
            kind: CommunicatorKind::Made,
            job: None,
            members: Vec::new(),
            remote_members: Vec::new(),
            parent: None,
            was_made: false,
            neighbours: BTreeMap::new(),
        };
        all.communicators.resize(self.is_settled.len(), nothing);
        for (one, &id) in united.into_iter().zip(&ids) {
            let parent = one.parent.and_then(|parent| ids.get(parent.index()).copied());
            let mut one = Communicator { parent, ..one };
            if let Some(frozen) = self.frozen.get(&id) {
                (one.members, one.remote_members) = (frozen.members.clone(), frozen.remote_members.clone());
            }
            if let Some(place) = all.communicators.get_mut(id.index()) {
                *place = one;
            }
        }
    }

    fn is_settled(&self, id: CommunicatorId) -> bool {
        self.is_settled.get(id.index()) == Some(&true)
    }

    /// Whether it is known who is in all of these, or will not be.
    fn are_known(&mut self, process: ProcessId, numbers: &[u32], all: &mut Definitions, now_ns: u64) -> bool {
        let mut is_known = true;
        for &number in numbers {
            let Some(&id) = self.numbers.get(&(process, number)) else {
                is_known = false;
                continue;
            };
            if self.is_settled(id) {
                continue;
            }
            let missing = missing_members(all, id);
            let since = *self.since.entry(id).or_insert(now_ns);
            if missing.is_empty() {
                self.settle(id);
            } else if now_ns >= since.saturating_add(PATIENCE_NS) {
                // Whoever comes later is not known in it: what others have done with him meanwhile was given out.
                if let Some(one) = all.communicators.get_mut(id.index()) {
                    for (side, place) in missing {
                        let members = if side == 0 { &mut one.members } else { &mut one.remote_members };
                        if let Some(member) = members.get_mut(place) {
                            *member = None;
                        }
                    }
                    self.frozen.insert(id, one.clone());
                }
                self.settle(id);
            } else {
                is_known = false;
            }
        }
        is_known
    }

    fn settle(&mut self, id: CommunicatorId) {
        if let Some(is_settled) = self.is_settled.get_mut(id.index()) {
            *is_settled = true;
        }
        self.since.remove(&id);
    }
}

/// Members that are not known, or of no process that is recorded: side and place. Where no member is known, one place that does not exist.
fn missing_members(all: &Definitions, id: CommunicatorId) -> Vec<(u8, usize)> {
    let Some(one) = all.communicator(id) else { return vec![(0, usize::MAX)] };
    if one.kind == CommunicatorKind::Own {
        return Vec::new();
    }
    if one.members.is_empty() {
        return vec![(0, usize::MAX)];
    }
    let of_job = all.processes.iter().filter(|process| process.job == one.job);
    let ranks: HashSet<u32> = of_job.filter_map(|process| process.rank).collect();
    let missing = |side: u8, members: &[Option<u32>]| {
        let is_missing = |(_, rank): &(usize, &Option<u32>)| rank.is_none_or(|rank| !ranks.contains(&rank));
        members.iter().enumerate().filter(is_missing).map(|(place, _)| (side, place)).collect::<Vec<_>>()
    };
    let mut all = missing(0, &one.members);
    all.extend(missing(1, &one.remote_members));
    all
}
