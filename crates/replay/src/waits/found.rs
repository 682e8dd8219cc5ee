//! Wait states, as they are found in what has come together.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Range,
    sync::Arc,
};

use hashbrown::HashMap;
use mpiprobe_functions::{Communication, FunctionId, Group, Pattern, SendMode};
use mpiprobe_model::WaitKind;
use mpiprobe_trace::{Communicator, Definitions, LocationId, Neighbours, NodeId};

use super::{
    cells::{Cell, Cells, Place},
    log::Log,
    rules::{self, Stay, Waited},
};
use crate::{
    clock::Clocks,
    matching::{
        CallAt, Done, End, EpochNeed, EpochWait, Instance, InstanceDone, InstanceKind, LockWait, Member, PassiveCall,
    },
};

/// Late senders that a receiver remembers, to find that messages were received in another order than they were sent.
const REMEMBERED: usize = 100;
/// Calls whose messages may wait for those of calls that have returned before.
const MOST_WAITING: usize = 1 << 16;

/// What somebody has waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cause {
    /// The thread that was late, by its location.
    pub(super) location: u32,
    /// Its call that has ended the wait.
    pub(super) stay: Stay,
}

/// That somebody has waited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) kind: WaitKind,
    pub(super) location: u32,
    pub(super) place: u32,
    pub(super) stay: Stay,
    pub(super) ns: u64,
    pub(super) cause: Option<Cause>,
    /// Whom the critical path goes to, if it is another one, and when.
    pub(super) path: Option<(u32, u64)>,
}

/// A moment at which somebody has waited, or several have come together.
#[derive(Debug)]
pub(super) struct Point {
    pub(super) at_ns: u64,
    pub(super) waits: Vec<Wait>,
    /// For whom it is a common point that causes are not looked for before, besides the two of a message. By location.
    pub(super) common: Vec<(u32, Stay)>,
    /// Points of the same group take each other's place.
    pub(super) group: u64,
}

/// A part of a wait, which has a name of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) kind: WaitKind,
    pub(super) location: u32,
    pub(super) place: u32,
    pub(super) ns: u64,
    pub(super) what: PartKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartKind {
    /// A late sender that would not have been one if messages had been received in the order in which they were sent.
    WrongOrder { is_same_source: bool },
    /// In a fence, until the last access to the process's own part of the window was over.
    EarlyFence,
    /// Waiting for `MPI_Win_complete` when the last access was over.
    LateComplete,
}

/// What was found of one process, or one collective.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) points: Vec<Point>,
    pub(super) parts: Vec<Part>,
    pub(super) violations: u64,
    pub(super) worst_violation_ns: u64,
    pub(super) between_clocks: u64,
    /// Waits that are shorter than what is known of the clocks, and how long they would be.
    pub(super) unsure: u64,
    pub(super) unsure_ns: u64,
    pub(super) unknown_neighbours: u64,
}

/// What is the same for all.
#[derive(Debug)]
pub(super) struct Rules<'a> {
    pub(super) definitions: &'a Definitions,
    pub(super) cells: &'a Cells,
    /// By number: whether a sender in it, or one that it has posted, may wait for the receiver.
    pub(super) may_wait_for_receiver: &'a [bool],
    pub(super) clocks: &'a Clocks,
    /// By how much times of any two nodes that are compared may be off, ns.
    pub(super) worst_within_ns: u64,
    /// By location.
    pub(super) nodes: &'a [NodeId],
    pub(super) logs: &'a [Log],
    /// By number.
    pub(super) cell_list: &'a [Cell],
    /// By process; `None`: it has several.
    pub(super) only_threads: &'a [Option<LocationId>],
    /// By location and number of a fence: when the last access to the process's own part of the window was over, ns.
    pub(super) fenced: &'a HashMap<(u32, u64), u64>,
}

/// See [`Rules::may_wait_for_receiver`].
pub(super) fn senders() -> Vec<bool> {
    let may = |id: FunctionId| match id.function().communication() {
        Communication::Send(mode) => matches!(mode, SendMode::Standard | SendMode::Synchronous),
        Communication::Exchange => true,
        _ => false,
    };
    FunctionId::all().map(may).collect()
}

/// The last late senders of a process.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    recent: VecDeque<LateSender>,
    latest_ns: u64,
    /// Calls that have returned after some of which it is not known yet what they have received: by return, location and number.
    waiting: BTreeMap<(u64, u32, u64), Received>,
}

/// What a call has received.
#[derive(Debug)]
struct Received {
    /// When each message was sent, ns, and by whom.
    messages: Vec<(u64, LocationId)>,
    /// The one that it has waited for.
    late: Option<LateSender>,
}

#[derive(Clone, Copy, Debug)]
struct LateSender {
    sent_ns: u64,
    source: LocationId,
    location: u32,
    place: u32,
    ns: u64,
}

impl Remembered {
    /// What a call has received, in the order of the calls. `told_until_ns`: of all that have returned before, it is known.
    fn receive(
        &mut self,
        call: &CallAt,
        messages: &[(u64, LocationId)],
        late: Option<LateSender>,
        told_until_ns: u64,
        (rules, found): (&Rules<'_>, &mut Found),
    ) {
        if call.return_ns < told_until_ns && self.waiting.is_empty() {
            return self.take(messages, late, (rules, found));
        }
        if messages.is_empty() {
            return;
        }
        self.waiting.insert(call.place(), Received { messages: messages.to_vec(), late });
        if self.waiting.len() > MOST_WAITING
            && let Some((_, first)) = self.waiting.pop_first()
        {
            self.take(&first.messages, first.late, (rules, found));
        }
    }

    /// What waits no longer.
    fn settle(&mut self, told_until_ns: u64, (rules, found): (&Rules<'_>, &mut Found)) {
        while let Some(first) = self.waiting.first_entry().filter(|first| first.key().0 < told_until_ns) {
            let Received { messages, late } = first.remove();
            self.take(&messages, late, (rules, found));
        }
    }

    fn take(
        &mut self,
        messages: &[(u64, LocationId)],
        late: Option<LateSender>,
        (rules, found): (&Rules<'_>, &mut Found),
    ) {
        for &(sent_ns, source) in messages {
            self.message(sent_ns, source, rules, found);
        }
        if let Some(late) = late {
            self.remember(late);
        }
    }

    fn message(&mut self, sent_ns: u64, source: LocationId, rules: &Rules<'_>, found: &mut Found) {
        if sent_ns >= self.latest_ns {
            return;
        }
        self.recent.retain(|late| {
            let within = rules.apart(late.source, source);
            let is_wrong = within.is_some_and(|(within_ns, _)| late.sent_ns > sent_ns.saturating_add(within_ns));
            if is_wrong {
                let &LateSender { location, place, ns, .. } = late;
                let what = PartKind::WrongOrder { is_same_source: late.source == source };
                found.parts.push(Part { kind: WaitKind::LateSender, location, place, ns, what });
            }
            !is_wrong
        });
        self.latest_ns = self.recent.iter().map(|late| late.sent_ns).max().unwrap_or(0);
    }

    fn remember(&mut self, late: LateSender) {
        if self.recent.len() >= REMEMBERED {
            self.recent.pop_front();
        }
        self.latest_ns = self.latest_ns.max(late.sent_ns);
        self.recent.push_back(late);
    }
}

impl Found {
    /// How long somebody has waited. What is off by no more than clocks may be is no violation.
    fn checked(&mut self, waited: Waited, honest_ns: u64) -> u64 {
        if waited.violation_ns > honest_ns {
            self.violations += 1;
            self.worst_violation_ns = self.worst_violation_ns.max(waited.violation_ns);
        }
        waited.ns
    }

    /// How long somebody has waited for sure at all, whatever the true times within the bounds are.
    fn sure(&mut self, ns: u64, within_ns: u64) -> u64 {
        if ns > within_ns {
            return ns;
        }
        self.unsure += u64::from(ns > 0);
        self.unsure_ns += ns;
        0
    }

    /// A part that is longer than what is known of the clocks.
    fn part(&mut self, of: &Wait, ns: u64, within_ns: u64, what: PartKind) {
        let &Wait { kind, location, place, .. } = of;
        if ns > within_ns {
            self.parts.push(Part { kind, location, place, ns, what });
        }
    }

    fn message(&mut self, wait: Wait) {
        let at_ns = wait.stay.entry_ns + wait.ns;
        self.points.push(Point { at_ns, waits: vec![wait], common: Vec::new(), group: 0 });
    }
}

impl Rules<'_> {
    fn place(&self, call: &CallAt) -> u32 {
        self.cells.place(Place { function: call.function, site: call.site })
    }

    /// By how much times of two threads may be off against each other, and by how much if all times are true; `None`: nothing bounds it.
    fn apart(&self, one: LocationId, other: LocationId) -> Option<(u64, u64)> {
        let (one, other) = (self.nodes.get(one.index())?, self.nodes.get(other.index())?);
        if one == other {
            return Some((0, 0));
        }
        Some((self.clocks.within_ns(*one, *other)?, self.clocks.honest_ns(*one, *other)?))
    }

    /// Waits for messages, in what a process's calls have completed; of all of them that have returned before `told_until_ns` it is known.
    pub(super) fn messages(&self, done: &[Done], told_until_ns: u64, remembered: &mut Remembered, found: &mut Found) {
        let of = |done: &[Done]| done.first().map_or(0, |first| first.more as usize + 1).min(done.len());
        let mut rest = done;
        let calls = std::iter::from_fn(|| {
            let (own, others) = rest.split_at(of(rest));
            rest = others;
            (!own.is_empty()).then_some(own)
        });
        let mut room = Vec::new();
        let mut take = |own: &[Done]| self.completing_call(own, told_until_ns, &mut room, (remembered, found));
        if done.iter().any(|done| done.late) {
            // What is found out late has its place among the others.
            let mut calls: Vec<&[Done]> = calls.collect();
            calls.sort_by_key(|own| own.first().map(|first| first.call.place()));
            calls.into_iter().for_each(take);
        } else {
            calls.for_each(&mut take);
        }
        remembered.settle(told_until_ns, (self, found));
    }

    /// `room`: for messages.
    fn completing_call(
        &self,
        ends: &[Done],
        told_until_ns: u64,
        room: &mut Vec<(u64, LocationId)>,
        (remembered, found): (&mut Remembered, &mut Found),
    ) {
        let Some(first) = ends.first() else { return };
        let call = first.call;
        let stay = stay(&call);
        room.clear();
        let mut late_sender: Option<(u64, CallAt)> = None;
        let mut late_receiver: Option<(u64, CallAt)> = None;
        for done in ends {
            match done.end {
                End::Received { send, .. } | End::Found { send } => {
                    let Some((within_ns, honest_ns)) = self.apart(call.location, send.location) else {
                        found.between_clocks += 1;
                        continue;
                    };
                    if matches!(done.end, End::Received { .. }) {
                        room.push((send.entry_ns, send.location));
                    }
                    let ns = found.checked(rules::late_sender(send.entry_ns, stay), honest_ns);
                    let ns = if first.waited { found.sure(ns, within_ns) } else { 0 };
                    if ns > late_sender.map_or(0, |(longest, _)| longest) {
                        late_sender = Some((ns, send));
                    }
                }
                End::Sent { posted, receive: Some(receive) } => {
                    let may_wait = self.may_wait_for_receiver.get(posted.function.index()) == Some(&true);
                    if !may_wait || !first.waited {
                        continue;
                    }
                    // Such a message is counted where it is received.
                    let Some((within_ns, _)) = self.apart(call.location, receive.location) else { continue };
                    // Whether the sender was still there when somebody received has to be as sure.
                    let ns = rules::late_receiver(receive.entry_ns, stay);
                    let stayed_ns = stay.return_ns.saturating_sub(receive.entry_ns);
                    let ns = found.sure(ns, if stayed_ns > within_ns { within_ns } else { u64::MAX });
                    if ns > late_receiver.map_or(0, |(longest, _)| longest) {
                        late_receiver = Some((ns, receive));
                    }
                }
                End::Sent { receive: None, .. } => {}
            }
        }
        // A call that has waited for a message has not waited for a receiver besides.
        let waited = match (late_sender, late_receiver) {
            (Some((ns, send)), _) => Some((WaitKind::LateSender, ns, send)),
            (None, Some((ns, receive))) => Some((WaitKind::LateReceiver, ns, receive)),
            (None, None) => None,
        };
        let wait = waited.map(|(kind, ns, other)| self.wait(kind, &call, ns, &other));
        let late = late_sender.zip(wait).map(|((ns, send), Wait { location, place, .. })| LateSender {
            sent_ns: send.entry_ns,
            source: send.location,
            location,
            place,
            ns,
        });
        remembered.receive(&call, room, late, told_until_ns, (self, found));
        if let Some(wait) = wait {
            found.message(wait);
        }
    }

    /// That a call has waited for another one.
    fn wait(&self, kind: WaitKind, call: &CallAt, ns: u64, other: &CallAt) -> Wait {
        let cause = Cause { location: other.location.0, stay: stay(other) };
        let (location, place) = (call.location.0, self.place(call));
        Wait { kind, location, place, stay: stay(call), ns, cause: Some(cause), path: None }
    }

    /// Waits in calls of epochs, for those of the other side.
    pub(super) fn epochs(&self, waits: &[EpochWait], found: &mut Found) {
        for EpochWait { need, call, other } in waits {
            let Some((within_ns, honest_ns)) = self.apart(call.location, other.location) else {
                found.between_clocks += 1;
                continue;
            };
            let ns = found.checked(rules::until(other.entry_ns, stay(call)), honest_ns);
            let ns = found.sure(ns, within_ns);
            if ns == 0 {
                continue;
            }
            let kind = match need {
                EpochNeed::Post => WaitKind::LatePost,
                EpochNeed::Complete { .. } => WaitKind::EarlyWait,
            };
            let wait = self.wait(kind, call, ns, other);
            if let EpochNeed::Complete { accessed_ns } = *need {
                let late_ns = ns.min(other.entry_ns.saturating_sub(accessed_ns));
                // Those who have accessed it may be on any node.
                found.part(&wait, late_ns, self.worst_within_ns, PartKind::LateComplete);
            }
            found.message(wait);
        }
    }

    /// One-sided calls that have waited for somebody else's lock.
    pub(super) fn locks(&self, waits: &[LockWait], found: &mut Found) {
        for LockWait { call, other, ns: asked_ns } in waits {
            // Whoever has told of it knows how the clocks of the two compare.
            let Some((within_ns, honest_ns)) = self.apart(call.location, other.location) else { continue };
            let ns = found.checked(rules::until(other.entry_ns, stay(call)), honest_ns);
            let ns = found.sure(ns.min(*asked_ns), within_ns);
            if ns > 0 {
                let mut wait = self.wait(WaitKind::LockContention, call, ns, other);
                // Until the lock is given up.
                wait.stay.entry_ns = other.entry_ns.min(call.return_ns).saturating_sub(ns);
                found.message(wait);
            }
        }
    }

    /// One-sided calls that have waited until their target called MPI, without which the library has not gone on.
    pub(super) fn passive(&self, calls: &[PassiveCall], found: &mut Found) {
        for PassiveCall { call, target, from_ns, until_ns } in calls {
            let location = self.only_threads.get(target.index()).copied().flatten();
            let Some((location, log)) =
                location.and_then(|location| Some((location, self.logs.get(location.index())?)))
            else {
                continue;
            };
            let Some((within_ns, _)) = self.apart(call.location, location) else {
                found.between_clocks += 1;
                continue;
            };
            let is_outside = |cell: u32| match self.cell_list.get(cell as usize)? {
                Cell::Computing { .. } => Some(true),
                Cell::Calling(_) => Some(false),
                Cell::NotRecorded { .. } => None,
            };
            let Some((ns, at_ns)) = log.before_last_call(*from_ns, *until_ns, is_outside) else { continue };
            let ns = found.sure(ns, within_ns);
            if ns > 0 {
                let entered = Stay { entry_ns: at_ns, return_ns: at_ns };
                let wait = Wait {
                    kind: WaitKind::Progress,
                    location: call.location.0,
                    place: self.place(call),
                    stay: Stay { entry_ns: at_ns.saturating_sub(ns), return_ns: call.return_ns },
                    ns,
                    cause: Some(Cause { location: location.0, stay: entered }),
                    path: None,
                };
                found.message(wait);
            }
        }
    }

    /// Waits in a collective that all have called.
    pub(super) fn instance(&self, instance: &Arc<Instance>, found: &mut Found) {
        if !instance.is_blocking {
            return;
        }
        let Some(all_within_ns) = instance.within_ns else {
            found.between_clocks += instance.members.len() as u64;
            return;
        };
        let needs = Needs::of(instance, self.definitions);
        let (kind, completion) = kinds(instance);
        let mut waits = Vec::new();
        for (index, member) in instance.members.iter().enumerate() {
            found.unknown_neighbours += u64::from(!needs.are_known(index));
            let call = stay(&member.call);
            let place = self.place(&member.call);
            let location = member.call.location.0;
            let wait = |kind, ns, cause, path| Wait { kind, location, place, stay: call, ns, cause, path };
            if let Some((event_ns, late)) = needs.until(index).filter(|_| instance.kind != InstanceKind::Beginning) {
                let late = instance.members.get(late);
                let apart = late.and_then(|late| self.apart(member.call.location, late.call.location));
                let (within_ns, honest_ns) = apart.unwrap_or((all_within_ns, all_within_ns));
                let Meeting { last_entry_ns, first_return_ns, .. } = needs.meeting(index);
                let overlap_ns = first_return_ns.saturating_sub(event_ns);
                // Whether they were there at one moment has to be as sure.
                let is_meeting_sure = instance.pattern != Pattern::Common || overlap_ns > all_within_ns;
                let ns = match instance.pattern {
                    Pattern::Common => rules::overlapping(event_ns, first_return_ns, call),
                    // Who needs something of whom is not known: those who come later cannot be meant.
                    Pattern::AllToAllVarying if event_ns > call.return_ns => needs.varying(index, call),
                    _ => found.checked(rules::until(event_ns, call), honest_ns),
                };
                let ns = found.sure(ns, if is_meeting_sure { within_ns } else { u64::MAX });
                let cause = late.map(|late| Cause { location: late.call.location.0, stay: stay(&late.call) });
                // A root works on what has come until the last one has, whether it has waited for the first or not.
                let overlaps = ns > 0 || first_return_ns > last_entry_ns;
                let path = needs.path(index).filter(|&(last_ns, _)| {
                    instance.pattern == Pattern::AllToOne && overlaps && last_ns > call.entry_ns
                });
                if let Some(&accessed_ns) = self.fenced.get(&(location, member.call.number)).filter(|_| ns > 0) {
                    let early_ns = ns.min(accessed_ns.saturating_sub(call.entry_ns));
                    found.part(&wait(kind, ns, cause, None), early_ns, all_within_ns, PartKind::EarlyFence);
                }
                if ns > 0 || path.is_some() {
                    waits.push(wait(kind, ns, cause, path.map(|(at_ns, last)| (last, at_ns))));
                }
            }
            if let Some(completion) = completion.filter(|_| needs.is_complete_together(index)) {
                let Meeting { last_entry_ns, first_return_ns, .. } = needs.meeting(index);
                let ns = rules::completion(last_entry_ns, first_return_ns, call);
                let ns = found.sure(ns, all_within_ns);
                if ns > 0 {
                    waits.push(wait(completion, ns, None, None));
                }
            }
        }
        let common = common(instance, &waits);
        let ends = waits.iter().filter(|wait| wait.kind.is_waiting()).map(|wait| {
            let end_ns = wait.stay.entry_ns + wait.ns;
            wait.path.map_or(end_ns, |(_, at_ns)| at_ns.max(end_ns))
        });
        let at_ns = ends.max();
        if waits.is_empty() && common.is_empty() {
            return;
        }
        let group = instance.communicator.map_or(u64::MAX, |id| id.0.into());
        found.points.push(Point { at_ns: at_ns.unwrap_or(instance.overlap().0), waits, common, group });
    }

    /// The wait of a member in the call that completes a collective which did not block: until those have begun whom it needs.
    pub(super) fn instance_done(&self, done: &InstanceDone, found: &mut Found) {
        let instance = &done.instance;
        let needs = Needs::of(instance, self.definitions);
        found.unknown_neighbours += u64::from(!needs.are_known(done.member));
        let Some((event_ns, late)) = needs.until(done.member).filter(|_| done.waited) else { return };
        let Some(late) = instance.members.get(late) else { return };
        let Some((within_ns, honest_ns)) = self.apart(done.call.location, late.call.location) else {
            found.between_clocks += 1;
            return;
        };
        let call = stay(&done.call);
        let ns = match instance.pattern {
            Pattern::AllToAllVarying if event_ns > call.return_ns => needs.varying(done.member, call),
            Pattern::Common => 0,
            _ => found.checked(rules::until(event_ns, call), honest_ns),
        };
        let ns = found.sure(ns, within_ns);
        if ns > 0 {
            found.message(self.wait(kinds(instance).0, &done.call, ns, &late.call));
        }
    }
}

pub(super) fn stay(call: &CallAt) -> Stay {
    Stay { entry_ns: call.entry_ns, return_ns: call.return_ns }
}

/// How waits in a collective are called, and what comes after them, if that is told apart.
fn kinds(instance: &Instance) -> (WaitKind, Option<WaitKind>) {
    let function = instance.members.first().map(|member| member.call.function.function());
    match (instance.kind, instance.pattern) {
        (InstanceKind::Beginning, _) => (WaitKind::Finalize, Some(WaitKind::InitCompletion)),
        (InstanceKind::End, _) => (WaitKind::Finalize, None),
        (_, Pattern::Barrier) => (WaitKind::Barrier, Some(WaitKind::BarrierCompletion)),
        (_, Pattern::AllToAll) => (WaitKind::AllToAll, Some(WaitKind::AllToAllCompletion)),
        (_, Pattern::AllToAllVarying) => (WaitKind::AllToAllVarying, None),
        (_, Pattern::OneToAll) => (WaitKind::LateBroadcast, None),
        (_, Pattern::AllToOne) => (WaitKind::EarlyReduce, None),
        (_, Pattern::Prefix) => (WaitKind::EarlyScan, None),
        (_, Pattern::Neighbours) => (WaitKind::Neighbours, None),
        (_, Pattern::Common) => match function.map(|function| function.group) {
            Some(Group::OneSided) => (WaitKind::Window, None),
            _ => (WaitKind::Common, None),
        },
    }
}

/// For whom a collective is a common point: for all, if all were in it at one moment and nobody can have left before; for a root and those
/// who have waited for it.
fn common(instance: &Instance, waits: &[Wait]) -> Vec<(u32, Stay)> {
    let all = || instance.members.iter().map(|member| (member.call.location.0, stay(&member.call)));
    let mut common: Vec<_> = match instance.pattern {
        Pattern::Barrier | Pattern::AllToAll if instance.synchronises() || instance.kind != InstanceKind::Ordinary => {
            all().collect()
        }
        Pattern::OneToAll if !waits.is_empty() => {
            let root = instance.members.iter().filter(|member| member.is_root);
            let root = root.map(|member| (member.call.location.0, stay(&member.call)));
            root.chain(waits.iter().map(|wait| (wait.location, wait.stay))).collect()
        }
        _ => Vec::new(),
    };
    common.sort_unstable_by_key(|(location, _)| *location);
    common
}

/// Who needs whom in a collective.
struct Needs<'a> {
    instance: &'a Instance,
    /// Of its communicator.
    topology: Option<&'a Communicator>,
    /// Of the members of each group.
    meetings: [Meeting; 2],
    /// By member, where it is another one for each.
    each: Option<Vec<Option<(u64, usize)>>>,
    root: Option<usize>,
    /// Of all but the root that send, the first entry.
    first: Option<(u64, usize)>,
}

/// What members of a group wait for.
#[derive(Clone, Copy)]
struct Meeting {
    /// Of those that they may need and who send, the last entry and who it was.
    last_entry_ns: u64,
    last: usize,
    /// Of those of their group who send and receive, the first return.
    first_return_ns: u64,
}

impl Meeting {
    /// `needed` and `own`: members, by their indices.
    fn of(instance: &Instance, needed: Range<usize>, own: Range<usize>) -> Self {
        let is_common = instance.pattern == Pattern::Common;
        let members = |among: Range<usize>| among.filter_map(|index| Some((index, instance.members.get(index)?)));
        let senders = members(needed).filter(|(_, member)| is_common || member.sends);
        let entries = senders.map(|(index, member)| (member.call.entry_ns, index));
        let (last_entry_ns, last) = entries.max_by_key(|&(ns, _)| ns).unwrap_or((0, 0));
        let both = members(own).filter(|(_, member)| is_common || member.sends && member.receives);
        let first_return_ns = both.map(|(_, member)| member.call.return_ns).min().unwrap_or(u64::MAX);
        Self { last_entry_ns, last, first_return_ns }
    }

    /// In an inter-communicator, each needs the other group; but if all were in it at one moment and nobody had left before, they have waited
    /// for the last of all, as libraries do it.
    fn of_groups(instance: &Instance) -> [Self; 2] {
        let (first, count) = (instance.first_group, instance.members.len());
        let is_apart = instance.is_between_groups() && instance.pattern != Pattern::Common && !instance.synchronises();
        if is_apart {
            [Self::of(instance, first..count, 0..first), Self::of(instance, 0..first, first..count)]
        } else {
            [Self::of(instance, 0..count, 0..count); 2]
        }
    }
}

/// In a topology, of the member of that rank.
fn neighbours(topology: Option<&Communicator>, member: usize) -> Option<&Neighbours> {
    topology?.neighbours.get(&u32::try_from(member).ok()?)
}

impl<'a> Needs<'a> {
    fn of(instance: &'a Instance, definitions: &'a Definitions) -> Self {
        let members = || instance.members.iter().enumerate();
        let takes_part = |member: &Member| instance.pattern == Pattern::Common || member.sends;
        let others = members().filter(|(_, member)| takes_part(member) && !member.is_root);
        let entries = others.map(|(index, member)| (member.call.entry_ns, index));
        let first =
            if instance.is_blocking { entries.min_by_key(|&(ns, _)| ns) } else { entries.max_by_key(|&(ns, _)| ns) };
        let topology = instance.communicator.and_then(|id| definitions.communicator(id));
        let each = match instance.pattern {
            Pattern::Prefix => {
                let mut latest = None;
                let each = members().map(|(index, member)| {
                    if member.sends && latest.is_none_or(|(ns, _)| member.call.entry_ns > ns) {
                        latest = Some((member.call.entry_ns, index));
                    }
                    latest
                });
                Some(each.collect())
            }
            Pattern::Neighbours => {
                let each = members().map(|(index, _)| {
                    let neighbours = neighbours(topology, index)?;
                    let sources = neighbours.sources.iter().filter_map(|&source| {
                        let index = source as usize;
                        instance.members.get(index).map(|member| (member.call.entry_ns, index))
                    });
                    sources.max_by_key(|&(ns, _)| ns)
                });
                Some(each.collect())
            }
            _ => None,
        };
        let root = instance.members.iter().position(|member| member.is_root);
        Self { instance, topology, meetings: Meeting::of_groups(instance), each, root, first }
    }

    /// What a member waits for.
    fn meeting(&self, member: usize) -> Meeting {
        let [first, second] = self.meetings;
        if member < self.instance.first_group { first } else { second }
    }

    /// Whether it is known whom a member needs.
    fn are_known(&self, member: usize) -> bool {
        self.instance.pattern != Pattern::Neighbours || neighbours(self.topology, member).is_some()
    }

    /// Until when a member needs somebody else, and who that is.
    fn until(&self, member: usize) -> Option<(u64, usize)> {
        let own = self.instance.members.get(member)?;
        let Meeting { last_entry_ns, last, .. } = self.meeting(member);
        let needed = match self.instance.pattern {
            Pattern::Barrier | Pattern::Common => Some((last_entry_ns, last)),
            Pattern::AllToAll | Pattern::AllToAllVarying => own.receives.then_some((last_entry_ns, last)),
            Pattern::OneToAll => {
                let root = self.root.filter(|&root| root != member && own.receives);
                root.and_then(|root| Some((self.instance.members.get(root)?.call.entry_ns, root)))
            }
            Pattern::AllToOne => self.first.filter(|_| own.is_root && own.receives),
            Pattern::Prefix => self.each.as_ref()?.get(member).copied().flatten().filter(|_| own.sends || own.receives),
            Pattern::Neighbours => self.each.as_ref()?.get(member).copied().flatten(),
        };
        needed.filter(|&(_, other)| other != member)
    }

    /// The last one that has come, of those who send to a member.
    fn path(&self, member: usize) -> Option<(u64, u32)> {
        let Meeting { last_entry_ns, last, .. } = self.meeting(member);
        Some((last_entry_ns, self.instance.members.get(last)?.call.location.0))
    }

    fn is_complete_together(&self, member: usize) -> bool {
        let moves_both = self.instance.members.get(member).is_some_and(|member| member.sends && member.receives);
        moves_both && self.meeting(member).first_return_ns != u64::MAX
    }

    /// Until the last one has come of those who came before a member's call had returned.
    fn varying(&self, member: usize, call: Stay) -> u64 {
        let senders = self.instance.needed_by(member).iter().filter(|member| member.sends);
        let entries = senders.map(|member| member.call.entry_ns).filter(|&ns| ns <= call.return_ns);
        entries.max().unwrap_or(0).saturating_sub(call.entry_ns)
    }
}
