//! Collective calls: over one communicator, all its members make the same ones in the same order (MPI-4.0, section 6.12).
//!
//! Each process has a name of its own for a window or a file. Which of them are the same is known by the call that all have made them in.

use std::{collections::VecDeque, sync::Arc};

use hashbrown::{HashMap, HashSet};
use mpiprobe_functions::{FunctionId, Pattern};
use mpiprobe_trace::{CommunicatorId, CommunicatorKind, ProcessId};

use super::{
    call::{CallAt, Loose, Unmatched},
    meaning::{Joint, Known, Stream, ToObject},
    process::{Joined, Joining},
};

/// Calls of one member that may wait for those of the others.
const MOST_OF_MEMBER: usize = 1 << 17;

/// A collective that all have called.
#[derive(Clone, Debug)]
pub struct Instance {
    pub pattern: Pattern,
    /// Over which communicator, if it is over one.
    pub communicator: Option<CommunicatorId>,
    /// What all together call the window or file that it is over.
    pub(super) object: Option<Stream>,
    pub kind: InstanceKind,
    /// It is complete at the return of the calls.
    pub is_blocking: bool,
    /// In the order of their ranks; of an inter-communicator, one group after the other.
    pub members: Vec<Member>,
    /// How many of them are in the first group: all, or it is over an inter-communicator.
    pub first_group: usize,
    /// How much times of two of them may be off against each other; `None`: nothing bounds it.
    pub within_ns: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceKind {
    /// Over a communicator, a window or a file.
    Ordinary,
    /// `MPI_Init`, `MPI_Finalize`.
    Beginning,
    End,
}

/// What one process does in it.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each says something else of the call")]
pub struct Member {
    pub process: ProcessId,
    pub call: CallAt,
    pub is_root: bool,
    /// False: it is known that nothing is.
    pub sends: bool,
    pub receives: bool,
    /// [`Joining::gaps`]
    gaps: u32,
    /// [`Joining::known_ns`]
    known_ns: u64,
    /// It had begun when nothing was recorded.
    began_before: bool,
}

/// What is known of a member around its call of a function in which everybody waits for everybody.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_field_names, reason = "the unit")]
struct Around {
    /// It may have been in the call before until then.
    left_ns: u64,
    /// It has come to this one then, or before that.
    entry_ns: u64,
    return_ns: u64,
}

impl Around {
    /// `passed`: the member's call before, if any was seen.
    fn of(member: &Member, function: FunctionId, passed: Option<&Passed>) -> Self {
        let CallAt { entry_ns, return_ns, .. } = member.call;
        let (left_ns, entry_ns) = match passed.filter(|passed| passed.gaps == member.gaps) {
            Some(passed) => (if passed.function == function { passed.return_ns } else { 0 }, entry_ns),
            // Since when it has been in it, nobody knows.
            None if member.began_before => (entry_ns, 0),
            None => (member.known_ns.min(entry_ns), entry_ns),
        };
        Self { left_ns, entry_ns, return_ns }
    }

    /// Whether the calls of all members may be two: some are in the one, and others, who have left it, in the next. Then there was a moment, when the last of the
    /// former came, at which everybody was in the one; and nobody has left the next before all of the former had left the one.
    fn may_be_two(all: &[Self], within_ns: u64) -> bool {
        all.iter().any(|last| {
            let moment_ns = last.entry_ns;
            let (mut in_one, mut in_next, mut in_any) = (Span::NONE, Span::NONE, Span::NONE);
            for one in all {
                let may_be_next = one.left_ns.saturating_add(within_ns) >= moment_ns;
                let may_be_one = one.entry_ns <= moment_ns.saturating_add(within_ns);
                match (may_be_one, may_be_next) {
                    (false, false) => return false,
                    (true, false) => in_one.add(one.return_ns),
                    (false, true) => in_next.add(one.return_ns),
                    (true, true) => in_any.add(one.return_ns),
                }
            }
            let (of_one, of_next) = (in_one.count, in_next.count);
            // Those who may be in either are where they fit.
            let last_of_one = if of_one > 0 { in_one.last_ns } else { in_any.first_ns };
            let first_of_next = if of_next > 0 { in_next.first_ns } else { in_any.last_ns };
            let missing = u32::from(of_one == 0) + u32::from(of_next == 0);
            in_any.count >= missing && last_of_one <= first_of_next.saturating_add(within_ns)
        })
    }
}

/// The first and the last of some times.
#[derive(Clone, Copy, Debug)]
struct Span {
    first_ns: u64,
    last_ns: u64,
    count: u32,
}

impl Span {
    const NONE: Self = Self { first_ns: u64::MAX, last_ns: 0, count: 0 };

    fn add(&mut self, ns: u64) {
        *self = Self { first_ns: self.first_ns.min(ns), last_ns: self.last_ns.max(ns), count: self.count + 1 };
    }
}

/// That a member has completed a collective that did not block.
#[derive(Clone, Debug)]
pub struct InstanceDone {
    pub instance: Arc<Instance>,
    /// Index in its members.
    pub member: usize,
    pub call: CallAt,
    pub waited: bool,
}

impl Instance {
    /// The two groups of an inter-communicator, where each needs what the other one has (MPI-4.0, section 6.2.3); else all, and nobody.
    pub fn groups(&self) -> (&[Member], &[Member]) {
        self.members.split_at(self.first_group.min(self.members.len()))
    }

    /// Those that a member may need something of.
    pub fn needed_by(&self, member: usize) -> &[Member] {
        let (one, other) = self.groups();
        if other.is_empty() || member >= self.first_group { one } else { other }
    }

    /// Whether each of its members needs the other group only.
    pub fn is_between_groups(&self) -> bool {
        self.first_group < self.members.len()
    }

    /// The last entry and the first return.
    pub fn overlap(&self) -> (u64, u64) {
        let calls = || self.members.iter().map(|member| member.call);
        let last = calls().map(|call| call.entry_ns).max().unwrap_or(0);
        (last, calls().map(|call| call.return_ns).min().unwrap_or(u64::MAX))
    }

    /// Whether everybody was in it at one moment, and nobody can have left before that. Nothing speaks against it, as well as it is known what
    /// time it was where.
    pub fn synchronises(&self) -> bool {
        let (last_entry, first_return) = self.overlap();
        self.needs_all() && self.within_ns.is_none_or(|within| last_entry < first_return.saturating_add(within))
    }

    /// Whether times alone tell that everybody was in it at one moment.
    fn is_seen_to_synchronise(&self) -> bool {
        let (last_entry, first_return) = self.overlap();
        self.needs_all() && self.within_ns.is_some_and(|within| last_entry.saturating_add(within) < first_return)
    }

    /// Whether nobody can leave before everybody has come.
    fn needs_all(&self) -> bool {
        let needs_all = match self.pattern {
            Pattern::Barrier => true,
            Pattern::AllToAll => self.members.iter().all(|member| member.sends && member.receives),
            _ => false,
        };
        needs_all && self.is_blocking
    }
}

#[derive(Debug)]
struct Queued {
    joining: Joining,
    done: Option<Joined>,
}

#[derive(Debug)]
struct StreamState {
    stream: Stream,
    /// The one that it is over, or that the window or file was made with; `None`: none that is known.
    communicator: Option<CommunicatorId>,
    /// By rank; of an inter-communicator, one group after the other.
    members: Vec<ProcessId>,
    first_group: usize,
    within_ns: Option<u64>,
    slots: HashMap<ProcessId, usize>,
    queues: Vec<VecDeque<Queued>>,
    /// Of how many members there is none.
    empty: usize,
    /// By member, after how many gaps its last call was that was looked at.
    gaps: Vec<u32>,
    /// All have called something.
    has_begun: bool,
    /// It is not known how many there were.
    is_unsure: bool,
    /// Meanwhile, by member: when its call before the first one that waits had returned, if that is known.
    before_ns: Vec<Option<u64>>,
    /// By member: the last of its calls that were dealt with.
    passed: Vec<Option<Passed>>,
    /// Collectives that do not block, and are not complete, by member and number.
    unfinished: HashMap<(usize, u64), Arc<Instance>>,
}

/// A member's call before its first one that waits.
#[derive(Clone, Copy, Debug)]
struct Passed {
    function: FunctionId,
    return_ns: u64,
    /// [`Joining::gaps`]
    gaps: u32,
}

impl Passed {
    fn of(joining: &Joining) -> Self {
        Self { function: joining.joint.function, return_ns: joining.call.return_ns, gaps: joining.gaps }
    }
}

/// The last collectives that have blocked, by communicator, if it is asked for them: recording may have begun late, or calls are missing.
///
/// A correct program would run as well if all its collectives synchronised (MPI-4.0, section 6.14): what one member has called before such a
/// collective over another communicator, all have called before it. So it tells which calls of those behind it belong together, as long as
/// each process has one thread, and the calls block.
#[derive(Debug, Default)]
struct Latest(HashMap<CommunicatorId, Arc<Instance>>);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Groups {
    streams: HashMap<Stream, Option<StreamState>>,
    /// By what a process calls its window or file: what all together call it.
    common: HashMap<Stream, Stream>,
    /// Names of what others of its makers have not been seen to make yet.
    making: HashSet<Stream>,
    /// What is no more since somebody has asked: it has its name until [`Self::forget_gone`].
    gone: Vec<Stream>,
    /// Calls of which that is not known, because others have not made it yet, or nobody has seen them.
    held: HashMap<Stream, (ProcessId, VecDeque<Queued>)>,
    /// By process and number of its call: where it waits.
    places: HashMap<(ProcessId, u64), Stream>,
    latest: Latest,
    /// Streams that have waited for others.
    stalled: Vec<Stream>,
    /// `MPI_Init` and `MPI_Finalize` of worlds whose processes are not all known yet.
    of_unknown_worlds: Vec<(ProcessId, Queued)>,
    /// Since the last slice.
    pub(super) formed: Vec<Arc<Instance>>,
    pub(super) done: Vec<InstanceDone>,
    pub(super) counts: Unmatched,
    pub(super) loose: Loose,
}

impl Groups {
    /// Asks once more who is in streams of which that was not known: more is known now.
    pub(super) fn learn(&mut self, known: &Known) {
        self.streams.retain(|_, state| state.is_some());
        for (process, queued) in std::mem::take(&mut self.of_unknown_worlds) {
            self.queue(process, queued, known);
        }
    }

    /// What all together call what a process calls so; `None`: it is not known.
    pub(super) fn common(&self, own: Stream) -> Option<Stream> {
        self.common.get(&own).copied()
    }

    /// Whether that may be known once others are seen to have made it.
    pub(super) fn is_being_made(&self, own: Stream) -> bool {
        self.making.contains(&own)
    }

    /// Forgets the names of what is no more, and gives them.
    pub(super) fn forget_gone(&mut self) -> Vec<Stream> {
        let gone = std::mem::take(&mut self.gone);
        gone.iter().filter_map(|own| self.common.remove(own)).collect()
    }

    pub(super) fn join(&mut self, process: ProcessId, joining: Joining, known: &Known) {
        self.queue(process, Queued { joining, done: None }, known);
    }

    fn queue(&mut self, process: ProcessId, queued: Queued, known: &Known) {
        let joining = queued.joining;
        let stream = match joining.joint.stream {
            own @ (Stream::Window(_) | Stream::File(_)) => match self.common.get(&own) {
                Some(&common) => common,
                None => return self.hold(process, own, queued),
            },
            common => common,
        };
        let state = self.streams.entry(stream).or_insert_with(|| StreamState::new(stream, known));
        // What nobody else is known to have made has no other name.
        let alone = joining.joint.made().map(|own| (own, own));
        let Some(state) = state.as_mut() else {
            self.common.extend(alone);
            // While a job goes on, who else is in its world may not be known yet.
            if matches!(stream, Stream::Beginning(_) | Stream::End(_)) {
                self.of_unknown_worlds.push((process, queued));
            } else {
                self.counts.of_partial_groups += 1;
            }
            return;
        };
        // In a group of one, nobody waits.
        if state.members.len() < 2 {
            self.common.extend(alone);
            return;
        }
        let Some(&slot) = state.slots.get(&process) else {
            self.counts.of_partial_groups += 1;
            return;
        };
        if !joining.is_blocking {
            self.places.insert((process, joining.number), stream);
        }
        let Some(queue) = state.queues.get_mut(slot) else { return };
        self.making.extend(joining.joint.made());
        state.empty -= usize::from(queue.is_empty());
        queue.push_back(queued);
        if queue.len() > MOST_OF_MEMBER {
            self.counts.incomplete += state.clear(&mut self.loose);
        }
        self.advance(stream, known);
    }

    /// Takes what all members of a stream have called by now, and of those that have waited for it.
    fn advance(&mut self, stream: Stream, known: &Known) {
        let mut next = vec![stream];
        while let Some(stream) = next.pop() {
            if self.take_called(stream, known) {
                next.append(&mut self.stalled);
            }
        }
    }

    /// Whether there was anything to be taken.
    fn take_called(&mut self, stream: Stream, known: &Known) -> bool {
        let (mut made, mut freed) = (Vec::new(), Vec::new());
        let mut has_gone_on = false;
        let all_have_called = |state: &&StreamState| state.empty == 0;
        while let Some(state) = self.streams.get(&stream).and_then(Option::as_ref).filter(all_have_called) {
            if state.may_be_unsure(known) && self.is_ahead(state, known) {
                if !self.stalled.contains(&stream) {
                    self.stalled.push(stream);
                }
                break;
            }
            has_gone_on = true;
            let Some(state) = self.streams.get_mut(&stream).and_then(Option::as_mut) else { break };
            state.begin(known);
            let formed = state.form(&mut self.counts, &mut self.loose, &self.latest, known);
            let Some((instance, queued)) = formed else { continue };
            let joints = || queued.iter().map(|one| one.joining.joint);
            made.extend(joints().map(|joint| joint.made()).collect::<Option<Vec<_>>>());
            freed.extend(joints().filter(|joint| joint.does == ToObject::Frees).map(|joint| joint.stream));
            self.counts.collective += instance.members.len() as u64;
            let instance = Arc::new(instance);
            self.formed.push(Arc::clone(&instance));
            if instance.is_blocking {
                self.latest.add(&instance, known);
                continue;
            }
            for (slot, (queued, &process)) in queued.into_iter().zip(&state.members).enumerate() {
                let Some(Joined { call, waited, number }) = queued.done else {
                    state.unfinished.insert((slot, queued.joining.number), Arc::clone(&instance));
                    continue;
                };
                self.places.remove(&(process, number));
                self.done.push(InstanceDone { instance: Arc::clone(&instance), member: slot, call, waited });
            }
        }
        if !freed.is_empty() {
            self.streams.remove(&stream);
            self.gone.append(&mut freed);
        }
        for all in made {
            self.unite(&all, known);
        }
        has_gone_on
    }

    /// Whether members of a stream have called something before over what it was made from, of which it is not known yet whether all have: that may
    /// tell which of their calls belong together.
    fn is_ahead(&self, state: &StreamState, known: &Known) -> bool {
        state.others(known).map(Stream::Communicator).any(|other| {
            let Some(other) = self.streams.get(&other).and_then(Option::as_ref) else { return false };
            let is_before = |(process, queue): (&ProcessId, &VecDeque<Queued>)| {
                let first = other.slots.get(process).and_then(|&slot| other.queues.get(slot)?.front());
                let entries =
                    first.zip(queue.front()).map(|(first, own)| [first, own].map(|one| one.joining.call.entry_ns));
                entries.is_some_and(|[first_ns, own_ns]| first_ns < own_ns)
            };
            state.members.iter().zip(&state.queues).any(is_before)
        })
    }

    /// These are the same window or file: what was called over it meanwhile comes together.
    fn unite(&mut self, all: &[Stream], known: &Known) {
        let Some(&first) = all.first() else { return };
        self.common.extend(all.iter().map(|&own| (own, first)));
        for own in all {
            self.making.remove(own);
        }
        for (process, held) in all.iter().filter_map(|own| self.held.remove(own)).collect::<Vec<_>>() {
            for queued in held {
                self.queue(process, queued, known);
            }
        }
    }

    fn hold(&mut self, process: ProcessId, own: Stream, queued: Queued) {
        if !queued.joining.is_blocking {
            self.places.insert((process, queued.joining.number), own);
        }
        let (_, held) = self.held.entry(own).or_insert_with(|| (process, VecDeque::new()));
        held.push_back(queued);
        if held.len() > MOST_OF_MEMBER
            && let Some(queued) = held.pop_front()
        {
            self.counts.incomplete += 1;
            self.loose.collective(&queued.joining.call);
        }
    }

    /// A collective that did not block is complete for a process.
    pub(super) fn complete(&mut self, process: ProcessId, joined: Joined) {
        let Some(stream) = self.places.get(&(process, joined.number)) else { return };
        if let Some((_, held)) = self.held.get_mut(stream) {
            if let Some(queued) = held.iter_mut().find(|queued| queued.joining.number == joined.number) {
                queued.done = Some(joined);
            }
            return;
        }
        let Some(state) = self.streams.get_mut(stream).and_then(Option::as_mut) else { return };
        let Some(&slot) = state.slots.get(&process) else { return };
        if let Some(instance) = state.unfinished.remove(&(slot, joined.number)) {
            self.places.remove(&(process, joined.number));
            let Joined { call, waited, .. } = joined;
            self.done.push(InstanceDone { instance, member: slot, call, waited });
        } else if let Some(queue) = state.queues.get_mut(slot) {
            let queued = queue.iter_mut().find(|queued| queued.joining.number == joined.number);
            if let Some(queued) = queued {
                queued.done = Some(joined);
            }
        }
    }

    /// Calls that wait for those of others.
    pub(super) fn waiting(&self) -> u64 {
        let held = self.held.values().map(|(_, held)| held);
        let all = self.streams.values().flatten().flat_map(|state| &state.queues).chain(held);
        all.map(|queue| queue.len() as u64).sum()
    }

    /// When the first of them began. Of those that are held nobody knows whether others will ever come.
    pub(super) fn waiting_since_ns(&self) -> Option<u64> {
        let waiting = self.streams.values().flatten().flat_map(|state| &state.queues);
        waiting.filter_map(|queue| Some(queue.front()?.joining.call.entry_ns)).min()
    }

    pub(super) fn finish(&mut self) {
        self.counts.of_partial_groups += self.of_unknown_worlds.len() as u64;
        let held = self.held.values().map(|(_, held)| held);
        for left in self.streams.values().flatten().flat_map(|state| &state.queues).chain(held).flatten() {
            self.counts.incomplete += 1;
            self.loose.collective(&left.joining.call);
        }
    }
}

impl Latest {
    fn add(&mut self, instance: &Arc<Instance>, known: &Known) {
        let may_be_asked = || known.has_anybody_begun_before() || instance.members.iter().any(|member| member.gaps > 0);
        if let Some(communicator) = instance.communicator.filter(|_| may_be_asked()) {
            self.0.insert(communicator, Arc::clone(instance));
        }
    }
}

impl StreamState {
    fn new(stream: Stream, known: &Known) -> Option<Self> {
        let definitions = &known.definitions;
        let communicator = match stream {
            Stream::Communicator(id) => Some(id),
            Stream::Beginning(job) | Stream::End(job) => {
                return Some(Self::of(stream, known.world_of(job), known.all_of(job)?, 0, known));
            }
            Stream::Window(id) => definitions.windows.get(id.index()).and_then(|window| window.communicator),
            Stream::File(id) => definitions.files.get(id.index()).and_then(|file| file.communicator),
        }?;
        // Everybody has a group of one there, and they have one name.
        let is_own = definitions.communicator(communicator).is_some_and(|one| one.kind == CommunicatorKind::Own);
        let members = if is_own { Vec::new() } else { known.members(communicator)? };
        let remote = definitions.communicator(communicator).map_or(0, |one| one.remote_members.len());
        Some(Self::of(stream, Some(communicator), members, remote, known))
    }

    /// `remote`: how many of the members are in the second group.
    fn of(
        stream: Stream,
        communicator: Option<CommunicatorId>,
        members: Vec<ProcessId>,
        remote: usize,
        known: &Known,
    ) -> Self {
        Self {
            stream,
            communicator,
            first_group: members.len().saturating_sub(remote),
            slots: members.iter().copied().zip(0..).collect(),
            queues: members.iter().map(|_| VecDeque::new()).collect(),
            gaps: vec![0; members.len()],
            before_ns: vec![None; members.len()],
            passed: vec![None; members.len()],
            empty: members.len(),
            within_ns: known.within_ns(&members),
            members,
            has_begun: false,
            is_unsure: false,
            unfinished: HashMap::new(),
        }
    }

    /// What all have called first is what they have ever called first, unless some may have called others before anything is known. Asked only
    /// now: while a job runs, what is known of a communicator comes with each member's calls.
    fn begin(&mut self, known: &Known) {
        self.is_unsure = self.is_unsure_by(known);
        self.has_begun = true;
    }

    /// Whether it may not be known how many calls of members there were before their first ones.
    fn may_be_unsure(&self, known: &Known) -> bool {
        let is_behind_gap =
            |(queue, &gaps): (&VecDeque<Queued>, &u32)| queue.front().is_some_and(|first| first.joining.gaps != gaps);
        self.is_unsure_by(known) || self.queues.iter().zip(&self.gaps).any(is_behind_gap)
    }

    /// See [`Self::begin`].
    fn is_unsure_by(&self, known: &Known) -> bool {
        if self.has_begun {
            return self.is_unsure;
        }
        let is_late = || self.members.iter().any(|&process| known.began_before(process));
        self.is_unsure
            || match self.stream {
                Stream::Beginning(_) | Stream::End(_) => false,
                Stream::Communicator(id) => !known.is_from_its_beginning(id) && is_late(),
                Stream::Window(_) | Stream::File(_) => is_late(),
            }
    }

    /// Forgets all calls that wait, and gives their number.
    fn clear(&mut self, loose: &mut Loose) -> u64 {
        self.queues.iter().flatten().for_each(|queued| loose.collective(&queued.joining.call));
        for (queue, passed) in self.queues.iter().zip(&mut self.passed) {
            *passed = queue.back().map_or(*passed, |last| Some(Passed::of(&last.joining)));
        }
        self.is_unsure = true;
        let left: usize = self.queues.iter().map(VecDeque::len).sum();
        self.queues.iter_mut().for_each(VecDeque::clear);
        self.before_ns.fill(None);
        self.empty = self.queues.len();
        left as u64
    }

    /// Takes the first call of each member. `None`: they do not belong together.
    fn form(
        &mut self,
        counts: &mut Unmatched,
        loose: &mut Loose,
        latest: &Latest,
        known: &Known,
    ) -> Option<(Instance, Vec<Queued>)> {
        self.pass_gaps();
        let first = self.queues.first()?.front()?.joining;
        let is_same = |joining: &Joining| {
            joining.joint.function == first.joint.function && joining.is_blocking == first.is_blocking
        };
        let all_same = self.queues.iter().filter_map(VecDeque::front).all(|queued| is_same(&queued.joining));
        let instance = self.instance(&first);
        let is_certain = || self.is_certain(&instance, first.joint.function) || self.is_behind_another(latest, known);
        if !all_same || (self.is_unsure && !is_certain()) {
            counts.contradictions += u64::from(!self.is_unsure);
            self.is_unsure = true;
            // The one that was over first cannot belong to what others will call later.
            counts.incomplete += 1;
            self.drop_earliest(loose);
            return None;
        }
        if std::mem::take(&mut self.is_unsure) {
            self.before_ns.fill(None);
        }
        let queued: Vec<Queued> = self.queues.iter_mut().filter_map(VecDeque::pop_front).collect();
        for (queued, passed) in queued.iter().zip(&mut self.passed) {
            *passed = Some(Passed::of(&queued.joining));
        }
        self.empty = self.queues.iter().filter(|queue| queue.is_empty()).count();
        Some((instance, queued))
    }

    /// Where calls are missing before a member's first one, there may have been others: nobody knows to which of theirs it belongs.
    fn pass_gaps(&mut self) {
        for ((queue, gaps), before_ns) in self.queues.iter().zip(&mut self.gaps).zip(&mut self.before_ns) {
            if let Some(first) = queue.front().filter(|first| first.joining.gaps != *gaps) {
                *gaps = first.joining.gaps;
                *before_ns = None;
                self.is_unsure = true;
            }
        }
    }

    /// Whether everybody was in it at one moment, and nobody can have been in the next call then, while others were in this one still; or nobody's
    /// call before can have been at the time of anybody's, as well as it is known what time it was where.
    fn is_certain(&self, instance: &Instance, function: FunctionId) -> bool {
        let first_ns = instance.members.iter().map(|member| member.call.entry_ns).min();
        let is_apart = || {
            let before = self.before_ns.iter().copied().try_fold(0, |last, before| Some(before?.max(last)));
            let before = before.zip(instance.within_ns).map(|(before, within): (u64, _)| before.saturating_add(within));
            instance.synchronises() && before.zip(first_ns).is_some_and(|(before, first)| before < first)
        };
        let are_in_the_same = || {
            let all = instance.members.iter().zip(&self.passed);
            let around: Vec<Around> =
                all.map(|(member, passed)| Around::of(member, function, passed.as_ref())).collect();
            !Around::may_be_two(&around, instance.within_ns.unwrap_or(0))
        };
        instance.is_seen_to_synchronise() && are_in_the_same() || is_apart()
    }

    /// Whether each member's first call is its first one behind a collective that all of them were in.
    fn is_behind_another(&self, latest: &Latest, known: &Known) -> bool {
        let is_plain = |(queue, &process): (&VecDeque<Queued>, &ProcessId)| {
            queue.front().is_some_and(|queued| queued.joining.is_blocking) && known.is_of_one_thread(process)
        };
        let mut others = self.others(known).filter_map(|id| latest.0.get(&id));
        self.queues.iter().zip(&self.members).all(is_plain) && others.any(|instance| self.is_behind(instance))
    }

    /// Other communicators that may have all members of this one in them.
    fn others(&self, known: &Known) -> impl Iterator<Item = CommunicatorId> {
        let all = self.communicator.map(|communicator| known.ancestors(communicator)).into_iter().flatten();
        all.filter(|&id| Stream::Communicator(id) != self.stream)
    }

    fn is_behind(&self, instance: &Instance) -> bool {
        let is_first_behind = |(member, &slot): (&Member, &usize)| {
            let first = self.queues.get(slot).and_then(VecDeque::front).map(|queued| queued.joining);
            let passed = self.passed.get(slot).copied().flatten();
            let entry_ns = member.call.entry_ns;
            first.is_some_and(|first| first.call.entry_ns > entry_ns && first.gaps == member.gaps)
                && passed.is_none_or(|passed| passed.return_ns <= entry_ns)
        };
        let of_these = || instance.members.iter().filter_map(|member| Some((member, self.slots.get(&member.process)?)));
        of_these().count() == self.members.len() && of_these().all(is_first_behind)
    }

    fn drop_earliest(&mut self, loose: &mut Loose) {
        let returns = self.queues.iter().map(|queue| queue.front().map_or(u64::MAX, |one| one.joining.call.return_ns));
        let earliest = returns.enumerate().min_by_key(|&(_, return_ns)| return_ns);
        if let Some((slot, queue)) = earliest.and_then(|(slot, _)| Some((slot, self.queues.get_mut(slot)?))) {
            if let Some(queued) = queue.pop_front() {
                loose.collective(&queued.joining.call);
                if let (Some(before_ns), Some(passed)) = (self.before_ns.get_mut(slot), self.passed.get_mut(slot)) {
                    *before_ns = Some(queued.joining.call.return_ns);
                    *passed = Some(Passed::of(&queued.joining));
                }
            }
            self.empty += usize::from(queue.is_empty());
        }
    }

    fn instance(&self, first: &Joining) -> Instance {
        let members = self.members.iter().zip(&self.queues).filter_map(|(&process, queue)| {
            let Joining { joint, call, gaps, known_ns, began_before, .. } = queue.front()?.joining;
            let Joint { is_root, sends, receives, .. } = joint;
            Some(Member { process, call, is_root, sends, receives, gaps, known_ns, began_before })
        });
        let (communicator, kind) = match self.stream {
            Stream::Communicator(id) => (Some(id), InstanceKind::Ordinary),
            Stream::Beginning(_) => (self.communicator, InstanceKind::Beginning),
            Stream::End(_) => (self.communicator, InstanceKind::End),
            Stream::Window(_) | Stream::File(_) => (None, InstanceKind::Ordinary),
        };
        Instance {
            pattern: first.joint.pattern,
            communicator,
            object: matches!(self.stream, Stream::Window(_) | Stream::File(_)).then_some(self.stream),
            kind,
            is_blocking: first.is_blocking,
            members: members.collect(),
            first_group: self.first_group,
            within_ns: self.within_ns,
        }
    }
}
