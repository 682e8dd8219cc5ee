//! From the lines of one process to its events.

use std::{collections::BTreeMap, fmt};

use hashbrown::{HashMap, hash_map::Entry};
use mpiprobe_common::{
    Communicator, FlowKey,
    descriptor::NONE,
    flow::{communicator_kind, peer},
    layout::{Constants, capability},
    phase::current,
    request::epoch_of,
    rules::amount::Way,
    trace::{CallRecord, ChangeRecord, PhaseRecord, Unwritten, Words, change},
};
use mpiprobe_discover::printable;
use mpiprobe_functions::{FunctionId, Group};
use mpiprobe_observe::{After, CallBefore, CommunicatorSnapshot, Referred};
use mpiprobe_trace::{
    Call, Change, CommunicatorId, CommunicatorKind, Event, File, FileId, LeftOut, LocationId, Lock, Neighbours, Object,
    PhaseChange, Process, ProcessId, RequestChange, SiteId, WindowId,
    store::{Definition, LocalCommunicator},
};

use crate::{
    numbering::{Numbering, Turn},
    open_calls::{Known, UnfinishedCall},
    operation::{descriptor, is_persistent, lock_of, locks, of_call, of_request},
    requests::Requests,
    selection::Chosen,
    thread::{NotThere, Thread, Written},
};

/// What a process may have of each, whatever it writes into its rings: no program has nearly as many.
const MOST_THREADS: usize = 1 << 16;
const MOST_SITES: usize = 1 << 18;
const MOST_OBJECTS: usize = 1 << 16;
const MOST_COMMUNICATORS: usize = 1 << 17;
/// Number of the world where the process has called nothing over it yet that would have given it one.
const WORLD: u32 = u32::MAX - 1;

/// Definitions and numbers that are handed out while a recording goes on.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) definitions: Vec<Definition>,
    pub(crate) locations: u32,
    pub(crate) sites: u32,
    pub(crate) new_sites: Vec<NewSite>,
}

/// A place that calls were made from and that nobody has named yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewSite {
    pub id: SiteId,
    /// Slot of the process, and return address in it.
    pub process: u32,
    pub address: u64,
}

/// A process that is recorded.
pub(crate) struct Recorded {
    pub(crate) id: ProcessId,
    pub(crate) slot: u32,
    pub(crate) definition: Process,
    /// Its threads were recorded from their first calls on.
    is_whole: bool,
    /// It has not called MPI before if its first call initialises it.
    pub(crate) may_begin: bool,
    /// For some time nothing was recorded.
    had_pauses: bool,
    course: Course,
    referred: Box<dyn Referred + Send>,
    /// By thread id; of several that have had the same, the last.
    threads: HashMap<u32, Thread>,
    /// Those that have ended, and whose id another one has got.
    replaced: Vec<(u32, Thread)>,
    requests: Requests,
    objects: HashMap<(bool, u64), (u32, u32)>,
    last_object: u32,
    sites: HashMap<u64, SiteId>,
    /// By index plus one: as many as tables have room for, at most.
    flows: HashMap<u32, FlowKey>,
    /// As they were defined, by number.
    communicators: BTreeMap<u32, LocalCommunicator>,
    /// All that were made are defined that have lower numbers.
    next_communicator: u32,
    /// The largest number that had been given out when that was asked last.
    given_communicators: u32,
    pub(crate) chosen: Chosen,
    phases: HashMap<u32, Option<String>>,
    /// The line before, if it belongs to the next one, by ring.
    pub(crate) halves: HashMap<u32, (u64, Words)>,
    /// Of the MPI that it uses, once they were needed and are known.
    constants: Option<Constants>,
    /// What was not written before the recording began, by thread id.
    not_there: HashMap<u32, NotThere>,
    /// Threads that are known to have ended, by id and time of their end, and the pass in which that was seen first: what they have written
    /// may not have been read by then.
    ends: HashMap<(u32, u64), u64>,
}

/// How far a process has come.
#[derive(Clone, Copy, Debug, Default)]
struct Course {
    has_called: bool,
    has_finalised: bool,
    /// By `MPI_Pcontrol`, counting is off.
    is_off: bool,
}

impl Course {
    fn note(&mut self, function: FunctionId) {
        match function.function().group {
            // They may be called before and after.
            Group::Query => {}
            Group::InitFinalize if function.function().name.ends_with("inalize") => self.has_finalised = true,
            _ => self.has_called = true,
        }
    }
}

impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorded").field("id", &self.id).field("threads", &self.threads.len()).finish_non_exhaustive()
    }
}

impl Recorded {
    pub(crate) fn new(
        id: ProcessId,
        slot: u32,
        definition: Process,
        is_whole: bool,
        mut referred: Box<dyn Referred + Send>,
    ) -> Self {
        // What was lost before is of another recording.
        let living = if is_whole { None } else { referred.threads().map(|(living, _)| living) };
        let living = living.iter().flatten();
        let not_there = living.map(|thread| (thread.tid, NotThere::of_living(&thread.state))).collect();
        Self {
            id,
            slot,
            definition,
            is_whole,
            may_begin: false,
            had_pauses: false,
            course: Course::default(),
            referred,
            threads: HashMap::new(),
            replaced: Vec::new(),
            requests: Requests::default(),
            objects: HashMap::new(),
            last_object: 0,
            sites: HashMap::new(),
            flows: HashMap::new(),
            communicators: BTreeMap::new(),
            next_communicator: 1,
            given_communicators: 0,
            chosen: Chosen::new(),
            phases: HashMap::new(),
            halves: HashMap::new(),
            constants: None,
            not_there,
            ends: HashMap::new(),
        }
    }

    /// Whether a line is of a thread that is known, or there is room for another one.
    pub(crate) fn has_room_for(&self, words: &Words) -> bool {
        #[expect(clippy::cast_possible_truncation, reason = "that half")]
        let tid = words.first().map_or(0, |word| *word as u32);
        self.threads.len().max(self.replaced.len()) < MOST_THREADS || self.threads.contains_key(&tid)
    }

    /// A thread that is about to have an event.
    fn thread(&mut self, tid: u32, at_ns: u64, names: &mut Names) -> &mut Thread {
        match self.threads.entry(tid) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let location = LocationId(names.locations);
                names.locations += 1;
                let before = self.not_there.get(&tid).copied().unwrap_or_default();
                let numbering = Numbering::new(self.is_whole, self.referred.has_threads_in_order());
                let mut thread = Thread::new(location, numbering, at_ns, before);
                thread.had_pauses = self.had_pauses;
                let said = thread.news(self.id, tid, (0, LeftOut::default()));
                names.definitions.extend(said.map(|said| Definition::Location(location, said)));
                new.insert(thread)
            }
        }
    }

    pub(crate) fn change(&mut self, record: ChangeRecord, names: &mut Names) {
        self.thread(record.tid, 0, names).add_change(record);
    }

    /// A call that has returned; gives its event to `take`, if it is its turn. `since_ns`: what had begun before that had when nothing was recorded.
    pub(crate) fn call(
        &mut self,
        record: &CallRecord,
        (pass, since_ns): (u64, u64),
        names: &mut Names,
        take: impl FnOnce(&mut Self, &mut Names, LocationId, &Event),
    ) {
        if FunctionId::from_index(record.function).is_none() {
            return;
        }
        let began_before = record.started_ns < since_ns;
        let mut thread = self.thread(record.tid, record.started_ns, names);
        let mut turn = thread.turn(record.number, record.started_ns);
        if turn == Turn::OtherThread {
            self.replace(record.tid, record.started_ns, names);
            thread = self.thread(record.tid, record.started_ns, names);
            turn = thread.turn(record.number, record.started_ns);
        }
        match turn {
            Turn::TooLate => {}
            // As most are, which are copied nowhere.
            Turn::Now if thread.is_free() => {
                let (number, changes) = thread.take_call(record);
                let location = thread.location;
                if let Some(event) = self.call_event(number, record, &changes, began_before, names) {
                    take(self, names, location, &event);
                }
            }
            Turn::Now | Turn::Later | Turn::OtherThread => thread.hold_call(record, pass, began_before),
        }
    }

    /// A call that had begun when the observation of the process did, as far as it is known now: its event, if it is over.
    pub(crate) fn earlier(&mut self, call: &CallBefore, names: &mut Names) -> Option<(LocationId, Event)> {
        if !self.threads.contains_key(&call.tid) {
            if self.threads.len() >= MOST_THREADS {
                return None;
            }
            self.thread(call.tid, call.since_ns, names).begin_in(call.clone());
            // Where it was made takes time to be looked up.
            self.site(call.call_site.unwrap_or(0), names);
        }
        let return_ns = match call.now {
            After::Open => return None,
            After::Returned(ns) | After::ThreadEnded(ns) => ns,
        };
        let has_returned = matches!(call.now, After::Returned(_));
        self.leave_earlier(call.tid, return_ns, has_returned, names)
    }

    /// The same where nothing is recorded now: such a call is left out.
    pub(crate) fn leave_earlier_out(&mut self, call: &CallBefore) {
        if call.now != After::Open
            && let Some(thread) = self.threads.get_mut(&call.tid)
        {
            thread.leave_earlier(call.since_ns);
        }
    }

    /// Whether calls wait for the end of one that had begun before.
    pub(crate) fn holds_back(&self) -> bool {
        self.threads.values().any(|thread| thread.earlier().is_some() && thread.holds_any())
    }

    /// See [`Thread::leave_earlier`].
    fn leave_earlier(
        &mut self,
        tid: u32,
        return_ns: u64,
        has_returned: bool,
        names: &mut Names,
    ) -> Option<(LocationId, Event)> {
        let thread = self.threads.get_mut(&tid)?;
        let (location, call) = (thread.location, thread.leave_earlier(return_ns)?);
        Some((location, self.earlier_event(&call, return_ns, has_returned, names)?))
    }

    fn earlier_event(
        &mut self,
        call: &CallBefore,
        return_ns: u64,
        has_returned: bool,
        names: &mut Names,
    ) -> Option<Event> {
        let known = Known::of_earlier(call, &self.referred.layout())?;
        if has_returned {
            self.course.note(known.function);
        } else {
            self.course.has_called = true;
        }
        let mut event = self.unfinished(&known, call.call_site, return_ns, names);
        (event.began_before, event.has_returned) = (true, has_returned);
        if has_returned {
            // Nobody has seen what it gave back, and hardly any program goes on after an error.
            event.result = 0;
        }
        Some(Event::Call(event))
    }

    /// Calls that had begun before, and for whose end later ones wait no longer: they are over, but nobody has said since when.
    fn give_earlier_up(&mut self, is_last: bool, names: &mut Names) -> Vec<(LocationId, Event)> {
        let due = self.threads.iter().filter(|(_, thread)| thread.gives_earlier_up(is_last));
        let due: Vec<(u32, u64)> = due.filter_map(|(tid, thread)| Some((*tid, thread.earlier()?.since_ns))).collect();
        due.into_iter().filter_map(|(tid, since_ns)| self.leave_earlier(tid, since_ns, false, names)).collect()
    }

    /// What its turn has come of.
    fn event(&mut self, number: u64, what: Written, names: &mut Names) -> Option<Event> {
        match what {
            Written::Phase(change) => Some(self.phase_event(change)),
            Written::Call { record, changes, began_before } => {
                self.call_event(number, &record, &changes, began_before, names)
            }
        }
    }

    fn phase_event(&mut self, change: PhaseChange) -> Event {
        self.course.is_off = !change.is_on;
        Event::Phase(change)
    }

    fn call_event(
        &mut self,
        number: u64,
        record: &CallRecord,
        changes: &[ChangeRecord],
        began_before: bool,
        names: &mut Names,
    ) -> Option<Event> {
        let function = FunctionId::from_index(record.function)?;
        self.begin(function, names);
        self.course.note(function);
        let mut call = self.call_of(function, record, changes, names);
        (call.number, call.began_before) = (number, began_before);
        Some(Event::Call(call))
    }

    /// A process that initialises MPI by the first call that was seen of it has called nothing before that.
    fn begin(&mut self, function: FunctionId, names: &mut Names) {
        if self.may_begin && !self.course.has_called && function.is_beginning() {
            self.may_begin = false;
            self.definition.began_before = false;
            names.definitions.push(Definition::Process(self.id, self.definition.clone()));
        }
    }

    /// Another thread has got the id of one that has ended.
    fn replace(&mut self, tid: u32, at_ns: u64, names: &mut Names) {
        self.not_there.remove(&tid);
        if let Some(mut before) = self.threads.remove(&tid) {
            // Of whose call nobody will say any more.
            before.leave_earlier(0);
            before.ended_ns = Some(before.last_ns());
            before.give_changes(self.thread(tid, at_ns, names));
            self.replaced.push((tid, before));
        }
    }

    fn call_of(
        &mut self,
        function: FunctionId,
        record: &CallRecord,
        changes: &[ChangeRecord],
        names: &mut Names,
    ) -> Call {
        let flow = self.flow(record.flow_plus_1);
        let (site, number) =
            flow.map_or((record.call_site, record.communicator), |flow: FlowKey| (flow.call_site, flow.communicator));
        let communicator = self.communicator(number, names);
        let object = self.object(function, record, number, names);
        let lock = self.lock_of(function, record);
        let operation = of_call(function, record, communicator, object, lock);
        let returned_ns = record.started_ns.saturating_add(record.ns);
        let mut call = Call::new(function, record.started_ns, returned_ns);
        call.call_site = self.site(site, names);
        call.operation = operation;
        call.result = record.result;
        if record.request != 0 {
            call.request = Some(self.requests.posted(record.request, epoch_of(returned_ns), &operation));
        }
        call.requests = changes.iter().filter_map(|change| self.request_change(change, names)).collect();
        call
    }

    /// What calls of a flow have in common, which stays as it is. It is next to what is counted all the time, and reading that again and again
    /// takes long.
    fn flow(&mut self, plus_1: u32) -> Option<FlowKey> {
        match self.flows.entry(plus_1) {
            Entry::Occupied(known) => Some(*known.get()),
            Entry::Vacant(new) => self.referred.flow(plus_1).map(|key| *new.insert(key)),
        }
    }

    fn lock_of(&mut self, function: FunctionId, record: &CallRecord) -> Option<Lock> {
        if !locks(function) {
            return None;
        }
        if self.constants.is_none() {
            // It is asked of the kernel, and stays as it is once it is known.
            let layout = self.referred.layout();
            self.constants = layout.knows(capability::CONSTANTS).then_some(layout.constants);
        }
        lock_of(record, self.constants.as_ref()?)
    }

    fn request_change(&mut self, record: &ChangeRecord, names: &mut Names) -> Option<RequestChange> {
        let function = FunctionId::from_index(record.function)?;
        let change = match record.kind {
            change::STARTED => Change::Started,
            change::COMPLETED => Change::Completed,
            change::CANCELLED => Change::Cancelled,
            change::FAILED => Change::Failed,
            change::RELEASED => Change::Released,
            change::READY => Change::Ready,
            _ => return None,
        };
        let (request, posted) = self.requests.changed(record, is_persistent(function));
        let communicator = self.communicator(record.communicator, names);
        let operation = of_request(function, record, communicator, posted.as_ref());
        Some(RequestChange { request, change, operation })
    }

    fn site(&mut self, address: u64, names: &mut Names) -> Option<SiteId> {
        if address == 0 {
            return None;
        }
        if let Some(&known) = self.sites.get(&address) {
            return Some(known);
        }
        if self.sites.len() >= MOST_SITES {
            return None;
        }
        let id = SiteId(names.sites);
        names.sites += 1;
        names.new_sites.push(NewSite { id, process: self.slot, address });
        // Until somebody has found out in which file it is.
        names.definitions.push(Definition::CallSite(id, crate::sites::unnamed(self.slot, address)));
        self.sites.insert(address, id);
        Some(id)
    }

    /// A communicator by number; 0: none.
    fn communicator(&mut self, number: u32, names: &mut Names) -> Option<CommunicatorId> {
        if number == 0 {
            return None;
        }
        if !self.communicators.contains_key(&number) {
            if self.communicators.len() >= MOST_COMMUNICATORS {
                return None;
            }
            let known = self.referred.communicator(number);
            // Somebody may have written any number. One that is known is within what tables have room for.
            if known.is_some() {
                self.define_made_before(number, names);
            }
            self.define(number, known.unwrap_or_default(), names);
        }
        Some(CommunicatorId(number))
    }

    /// The world, if that is the communicator of a handle.
    fn world(&mut self, handle: u64, names: &mut Names) -> Option<CommunicatorId> {
        let layout = self.referred.layout();
        let is_world = layout.knows(capability::CONSTANTS) && handle != 0 && handle == layout.constants.comm_world;
        let (rank, size) = self.definition.rank.zip(self.definition.world_size).filter(|_| is_world)?;
        if !self.communicators.contains_key(&WORLD) {
            let first_ns = self.definition.recorded_from_ns;
            let [first, middle, last] = [peer::UNKNOWN; 3];
            let kind = communicator_kind::WORLD;
            let facts = Communicator { kind, size, rank, first, middle, last, first_ns, ..Communicator::default() };
            self.define(WORLD, CommunicatorSnapshot { facts, ..CommunicatorSnapshot::default() }, names);
        }
        Some(CommunicatorId(WORLD))
    }

    /// Defines communicators that were made, whoever uses them when: others may do so now, and nobody knows who is in one before all members
    /// have said that they are. To be called from time to time: what gets its number now is written by the next time.
    pub(crate) fn define_made(&mut self, names: &mut Names) {
        let given = std::mem::replace(&mut self.given_communicators, self.referred.communicators());
        self.define_made_before(given.saturating_add(1), names);
    }

    /// Which communicators of different processes are one is told by their order: those are defined, too, that were made and not used.
    fn define_made_before(&mut self, number: u32, names: &mut Names) {
        for before in self.next_communicator..number {
            if self.communicators.len() >= MOST_COMMUNICATORS {
                return;
            }
            if !self.communicators.contains_key(&before)
                && let Some(known) = self.referred.communicator(before).filter(|known| known.facts.made_by_plus_1 != 0)
            {
                self.define(before, known, names);
            }
        }
        self.next_communicator = self.next_communicator.max(number);
    }

    /// Defines one with all that it was made from, which tells it from others, too.
    fn define(&mut self, number: u32, known: CommunicatorSnapshot, names: &mut Names) {
        let mut next = Some((number, known));
        while let Some((number, known)) = next {
            let local = self.local(number, &known);
            if local.kind == CommunicatorKind::World {
                self.believe(local.rank, local.size, names);
            }
            let parent = local.parent;
            self.communicators.insert(number, local.clone());
            names.definitions.push(Definition::Communicator(local));
            let has_room = self.communicators.len() < MOST_COMMUNICATORS;
            let parent = parent.filter(|parent| has_room && !self.communicators.contains_key(parent));
            next = parent.map(|parent| (parent, self.referred.communicator(parent).unwrap_or_default()));
        }
    }

    /// What MPI itself says of the process's place in its world. A process that is alone there is in no job with others, whoever has started it
    /// with them: as where the launcher is another MPI's.
    fn believe(&mut self, rank: u32, size: u32, names: &mut Names) {
        let is_alone = size == 1 && self.definition.world_size.is_some_and(|told| told > 1);
        if is_alone {
            let job = Some(format!("single:{}", self.definition.pid));
            self.definition = Process { rank: Some(rank), world_size: Some(size), job, ..self.definition.clone() };
            names.definitions.push(Definition::Process(self.id, self.definition.clone()));
        }
    }

    fn local(&mut self, number: u32, known: &CommunicatorSnapshot) -> LocalCommunicator {
        let facts = &known.facts;
        let kind = match facts.kind {
            communicator_kind::WORLD => CommunicatorKind::World,
            communicator_kind::OWN => CommunicatorKind::Own,
            _ => CommunicatorKind::Made,
        };
        let made_by =
            facts.made_by_plus_1.checked_sub(1).and_then(|id| FunctionId::from_index(u16::try_from(id).ok()?));
        let rank = |rank: i32| u32::try_from(rank).ok();
        let listed = known.members.as_deref().cloned().unwrap_or_default();
        LocalCommunicator {
            process: self.id,
            number,
            name: known.name.clone(),
            kind,
            context: facts.context,
            size: facts.size,
            remote_size: facts.remote_size,
            rank: facts.rank,
            parent: Some(facts.parent).filter(|&parent| parent != 0 && parent != number),
            made_by: made_by.map(|id| id.function().name.to_owned()),
            outline: [rank(facts.first), rank(facts.middle), rank(facts.last)],
            members: listed.own,
            remote_members: listed.remote,
            neighbours: self.neighbours(facts),
            was_made: facts.made_by_plus_1 != 0,
            first_ns: facts.first_ns,
            freed_ns: Some(facts.freed_ns).filter(|&ns| ns != 0),
        }
    }

    /// In the topology of a communicator; `None`: it has none, or they are not known.
    fn neighbours(&mut self, known: &Communicator) -> Option<Neighbours> {
        let topology = self.referred.topology(known.degrees.topology_plus_1)?;
        let all = |way| topology.neighbours(known.rank, way).map(Iterator::collect);
        Some(Neighbours { sources: all(Way::Arrives)?, destinations: all(Way::Leaves)? })
    }

    /// The name of a communicator that its process knows, or else how it was made.
    pub(crate) fn communicator_name(&self, number: u32) -> Option<String> {
        self.communicators.get(&number).map(LocalCommunicator::own_name)
    }

    fn object(
        &mut self,
        function: FunctionId,
        record: &CallRecord,
        communicator: u32,
        names: &mut Names,
    ) -> Option<Object> {
        if record.object == 0 {
            return None;
        }
        let descriptor = descriptor(function);
        let is_file = function.function().group == Group::Io;
        let key = (is_file, record.object);
        // One that is made is another one, whoever had the handle before.
        let known = if descriptor.new_scope == NONE { self.objects.get(&key).copied() } else { None };
        if self.objects.len() >= MOST_OBJECTS {
            return known.map(|(number, _)| object(is_file, number));
        }
        let (number, _) = known.unwrap_or_else(|| {
            self.last_object += 1;
            let (process, number, over) = (self.id, self.last_object, communicator);
            let communicator = Some(communicator).filter(|&number| number != 0);
            names.definitions.push(if is_file {
                let file = File { communicator: None, path: None };
                Definition::File { process, number, communicator, file }
            } else {
                Definition::Window { process, number, communicator }
            });
            self.objects.insert(key, (number, over));
            (number, over)
        });
        if descriptor.frees != mpiprobe_common::descriptor::frees::NOTHING {
            self.objects.remove(&key);
        }
        Some(object(is_file, number))
    }

    /// The process is in another phase: the event, if it is its turn.
    pub(crate) fn phase(&mut self, record: &PhaseRecord, pass: u64, names: &mut Names) -> Option<(LocationId, Event)> {
        let plus_1 = u32::try_from(record.current & current::PHASE_PLUS_1).unwrap_or(0);
        let phase = self.phase_name(plus_1);
        let change = PhaseChange { at_ns: record.at_ns, phase, is_on: record.current & current::OFF == 0 };
        let thread = self.thread(record.tid, record.at_ns, names);
        let location = thread.location;
        let change = thread.take_or_hold_phase(record.number, pass, change)?;
        Some((location, self.phase_event(change)))
    }

    fn phase_name(&mut self, plus_1: u32) -> Option<String> {
        if plus_1 == 0 {
            return None;
        }
        let referred = &mut self.referred;
        let known = self.phases.entry(plus_1).or_insert_with(|| {
            let key = referred.phase(plus_1)?;
            let name = key.name.split(|&byte| byte == 0).next().unwrap_or_default();
            Some(if name.is_empty() { format!("level {}", key.level) } else { printable(name) })
        });
        // It may not have been written when it was asked for.
        known.clone().or_else(|| Some(format!("phase {plus_1}")))
    }

    /// Events that have waited for others, thread by thread.
    pub(crate) fn released(
        &mut self,
        pass: u64,
        is_last: bool,
        names: &mut Names,
        mut take: impl FnMut(&mut Self, &mut Names, LocationId, &Event),
    ) {
        for (location, event) in self.give_earlier_up(is_last, names) {
            take(self, names, location, &event);
        }
        let mut released = Vec::new();
        let threads = self.threads.values_mut().chain(self.replaced.iter_mut().map(|(_, thread)| thread));
        for thread in threads.filter(|thread| thread.holds_any()) {
            while let Some((number, what)) = thread.release(pass, is_last) {
                released.push((thread.location, number, what));
            }
        }
        for (location, number, what) in released {
            if let Some(event) = self.event(number, what, names) {
                take(self, names, location, &event);
            }
        }
    }

    /// Whether it has called MPI and not finalised it, as far as that can be known.
    pub(crate) fn is_in_mpi(&self) -> bool {
        let Course { has_called, has_finalised, is_off } = self.course;
        has_called && !has_finalised && !is_off
    }

    /// Nothing is recorded of it for some time.
    pub(crate) fn pause(&mut self) {
        self.had_pauses = true;
        self.threads.values_mut().for_each(|thread| thread.had_pauses = true);
    }

    /// What tables say of its threads. `ended_ns`: when the process has ended; `None`: it goes on. `pass`: in which rings are read now; `None`: all
    /// that was written has been read.
    pub(crate) fn note_threads(&mut self, ended_ns: Option<u64>, pass: Option<u64>) {
        let Some((living, ended)) = self.referred.threads() else { return };
        for one in living {
            let Some(thread) = self.threads.get_mut(&one.tid) else { continue };
            thread.note(one.state.first_entry_ns, NotThere::of_living(&one.state));
            if let Some(ended_ns) = ended_ns {
                thread.end(one.state.numbered_calls(), ended_ns);
            }
        }
        for one in ended {
            let Some(thread) = self.threads.get_mut(&one.tid).filter(|thread| thread.ended_ns.is_none()) else {
                continue;
            };
            if let Some(pass) = pass
                && *self.ends.entry((one.tid, one.ended_ns)).or_insert(pass) == pass
            {
                continue;
            }
            self.ends.remove(&(one.tid, one.ended_ns));
            if thread.last_ns() >= one.first_entry_ns && thread.last_ns() <= one.ended_ns {
                thread.note(one.first_entry_ns, NotThere::of_ended(&one));
                thread.end(one.numbered_calls(), one.ended_ns);
            }
        }
    }

    /// The recording ends before the process. Of one that was recorded at times only, all calls are accounted for: those after the last of
    /// these times, and those of threads that have called MPI at none of them.
    pub(crate) fn conclude_pauses(&mut self, names: &mut Names) {
        if !self.had_pauses {
            return;
        }
        let Some((living, _)) = self.referred.threads() else { return };
        for one in living.iter().filter(|one| one.state.numbered_calls() > 0) {
            self.thread(one.tid, one.state.first_entry_ns, names).conclude(one.state.numbered_calls());
        }
    }

    /// Since when the first of its open calls is open, and how many are; `None`: none is. Of a thread that is about to begin or end a call, or
    /// if nothing can be read, it is not known since when.
    pub(crate) fn inside(&mut self) -> Option<(u64, u32)> {
        const UNKNOWN: (u64, u32) = (0, u32::MAX);
        let Some((living, _)) = self.referred.threads() else { return Some(UNKNOWN) };
        let open = living.iter().filter_map(|one| match &one.state {
            state if !state.is_settled() => Some(UNKNOWN),
            state => state.open_function().map(|_| (state.open.started_ns, 1)),
        });
        let earlier = self.threads.values().filter_map(|thread| Some((thread.earlier()?.since_ns, 1)));
        open.chain(earlier).reduce(|(one_ns, one), (other_ns, other)| (one_ns.min(other_ns), one.saturating_add(other)))
    }

    /// Calls that are open, as they are at the end of the recording or of the process. `cut_short`: those that threads have ended inside, whose
    /// tables do not have them any more.
    pub(crate) fn open_calls(
        &mut self,
        at_ns: u64,
        since_ns: u64,
        cut_short: &[UnfinishedCall],
        names: &mut Names,
    ) -> Vec<(LocationId, Event)> {
        let Some((living, ended)) = self.referred.threads() else { return Vec::new() };
        let layout = self.referred.layout();
        let of_living = living.iter().filter_map(|one| Some((UnfinishedCall::of(one)?, one.state.calls)));
        let of_ended = cut_short.iter().map(|call| {
            let thread = ended.iter().find(|one| one.tid == call.tid && Some(one.ended_ns) == call.ended_ns);
            (*call, thread.map_or(0, |thread| thread.calls))
        });
        let mut open = Vec::new();
        for (one, number) in of_living.chain(of_ended) {
            let Some(known) = Known::of_open(&one, &layout) else { continue };
            let started_ns = known.record.started_ns;
            // What began when nothing was recorded any more comes after calls that are not there.
            if one.ended_ns.is_none() && started_ns > at_ns {
                continue;
            }
            let thread = self.thread(one.tid, started_ns, names);
            // It has returned since, and was recorded; or what came before is not over yet, as far as is known.
            if started_ns < thread.last_ns() || thread.earlier().is_some() {
                continue;
            }
            let (location, number) = (thread.location, thread.numbered(number));
            let mut call = self.unfinished(&known, one.call_site, one.ended_ns.unwrap_or(at_ns), names);
            (call.number, call.began_before) = (number, started_ns < since_ns);
            open.push((location, Event::Call(call)));
        }
        let earlier = self.threads.values().filter(|thread| !thread.holds_any());
        let earlier = earlier.filter_map(|thread| Some((thread.location, thread.earlier()?.clone())));
        for (location, call) in earlier.collect::<Vec<_>>() {
            let event = self.earlier_event(&call, at_ns, false, names);
            open.extend(event.map(|event| (location, event)));
        }
        open
    }

    /// A call of which nobody has seen how it ended, until then.
    fn unfinished(&mut self, known: &Known, site: Option<u64>, until_ns: u64, names: &mut Names) -> Call {
        let &Known { function, ref record, communicator } = known;
        // The window or file that it is about is known by its handle, and the communicator by that.
        let is_file = function.function().group == Group::Io;
        let about = self.objects.get(&(is_file, record.object)).copied().filter(|_| record.object != 0);
        let over = self.referred.communicator_of(communicator).or(about.map(|(_, over)| over));
        let communicator = match over {
            Some(number) => self.communicator(number, names),
            None => self.world(communicator, names),
        };
        let about = about.map(|(number, _)| object(is_file, number));
        let mut call = Call::new(function, record.started_ns, until_ns.max(record.started_ns));
        call.has_returned = false;
        call.call_site = self.site(site.unwrap_or(0), names);
        let lock = self.lock_of(function, record);
        call.operation = of_call(function, record, communicator, about, lock);
        call
    }

    /// What is to be said anew of its threads.
    pub(crate) fn news(&mut self, missing: impl Fn(LocationId) -> (u64, LeftOut)) -> Vec<Definition> {
        let id = self.id;
        let threads = self.threads.iter_mut().map(|(tid, thread)| (*tid, thread));
        let all = threads.chain(self.replaced.iter_mut().map(|(tid, thread)| (*tid, thread)));
        let news = all.filter_map(|(tid, thread)| {
            let location = thread.location;
            thread.news(id, tid, missing(location)).map(|said| Definition::Location(location, said))
        });
        news.collect()
    }

    /// Communicators that were named, or freed, since they were defined.
    pub(crate) fn renewed_communicators(&mut self) -> Vec<Definition> {
        let numbers: Vec<u32> = self.communicators.keys().copied().collect();
        let mut news = Vec::new();
        for number in numbers {
            let Some(known) = self.referred.communicator(number) else { continue };
            let local = self.local(number, &known);
            if self.communicators.get(&number) != Some(&local) {
                self.communicators.insert(number, local.clone());
                news.push(Definition::Communicator(local));
            }
        }
        news
    }

    /// Calls of all its threads that the writers had no room for.
    pub(crate) fn unwritten(&self) -> Unwritten {
        self.threads.values().map(Thread::unwritten).fold(Unwritten::NONE, |sum, one| Unwritten {
            lost: sum.lost.saturating_add(one.lost),
            idle: sum.idle.saturating_add(one.idle),
            changes: sum.changes.saturating_add(one.changes),
        })
    }
}

fn object(is_file: bool, number: u32) -> Object {
    if is_file { Object::File(FileId(number)) } else { Object::Window(WindowId(number)) }
}
