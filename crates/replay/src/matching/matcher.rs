//! All processes, slice by slice.

use std::{mem, sync::Arc};

use mpiprobe_trace::{Definitions, LocationId, ProcessId};

use super::{
    call::{CallAt, Done, Pending, Unmatched},
    epochs::{EpochCall, EpochWait, Epochs},
    groups::{Groups, Instance, InstanceDone},
    inbound::{Gap, Met},
    locks::{LockWait, Locks, PassiveCall},
    meaning::{ChannelNames, Known},
    process::{Around, ProcessReplay},
};
use crate::{
    clock::Clocks,
    parallel,
    slices::{LocationSlice, Slice},
};

/// Receives of a process that may wait for their messages.
const MOST_RECEIVES: usize = 1 << 20;

/// Calls on windows that may not be known yet.
const MOST_EARLY: usize = 1 << 16;

/// Brings ends together.
#[derive(Debug)]
pub struct Matcher {
    threads: usize,
    from_middle: bool,
    known: Known,
    names: ChannelNames,
    processes: Vec<ProcessReplay>,
    groups: Groups,
    epochs: Epochs,
    locks: Locks,
    fenced: Vec<(CallAt, u64)>,
    /// Calls on windows that may not be known yet: somebody is still where they are made.
    early: Vec<(ProcessId, EpochCall)>,
}

/// Kinds of ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    Sends,
    Receives,
    Collective,
}

/// What has come together in a slice.
#[derive(Clone, Copy, Debug)]
pub struct Matched<'a> {
    processes: &'a [ProcessReplay],
    /// Collectives that all members have called by now.
    pub instances: &'a [Arc<Instance>],
    /// Those that did not block and are complete for a member.
    pub instances_done: &'a [InstanceDone],
    /// Calls of epochs that have needed others of other processes.
    pub(crate) epochs: &'a [EpochWait],
    /// One-sided calls that have waited for locks, and those that may have waited for their target.
    pub(crate) locks: &'a [LockWait],
    pub(crate) passive: &'a [PassiveCall],
    /// Fences, with the time when the last access to the process's own part of the window was over, ns.
    pub(crate) fenced: &'a [(CallAt, u64)],
}

impl<'a> Matched<'a> {
    /// What calls have completed, process by process, in the order of the calls.
    pub fn done(&self) -> impl Iterator<Item = &'a Done> + use<'a> {
        self.processes.iter().flat_map(|process| &process.done)
    }

    /// The same of one process.
    pub fn done_by(&self, process: ProcessId) -> &'a [Done] {
        self.processes.get(process.index()).map(|process| process.done.as_slice()).unwrap_or_default()
    }

    /// What was completed by calls of a process that have returned before then is told, ns, unless that takes too long.
    pub(crate) fn told_until_ns(&self, process: ProcessId) -> u64 {
        self.processes.get(process.index()).map_or(u64::MAX, ProcessReplay::told_until_ns)
    }
}

impl Matcher {
    /// `from_middle`: what is read begins in the middle of a trace.
    pub fn new(definitions: &Definitions, clocks: &Clocks, from_middle: bool, threads: usize) -> Self {
        let mut matcher = Self { threads, from_middle, ..Self::empty() };
        matcher.define(definitions, clocks);
        matcher
    }

    /// One that has nothing to match.
    pub(crate) fn empty() -> Self {
        Self {
            threads: 1,
            from_middle: false,
            known: Known::default(),
            names: ChannelNames::default(),
            processes: Vec::new(),
            groups: Groups::default(),
            epochs: Epochs::default(),
            locks: Locks::default(),
            fenced: Vec::new(),
            early: Vec::new(),
        }
    }

    /// More is known.
    pub fn define(&mut self, definitions: &Definitions, clocks: &Clocks) {
        self.known = Known::new(definitions, clocks, self.from_middle);
        self.names.grow(definitions.processes.len());
        for id in self.processes.len()..definitions.processes.len() {
            let id = ProcessId(u32::try_from(id).unwrap_or(u32::MAX));
            self.processes.push(ProcessReplay::new(id, MOST_RECEIVES));
        }
        self.processes.iter_mut().for_each(ProcessReplay::forget_meanings);
        self.groups.learn(&self.known);
    }

    /// Takes in what begins in a slice.
    pub fn take(&mut self, slice: &Slice) -> Matched<'_> {
        let mut by_process: Vec<Vec<&LocationSlice>> = self.processes.iter().map(|_| Vec::new()).collect();
        for one in &slice.locations {
            let process = self.known.definitions.location(one.location).map(|location| location.process);
            if let Some(of_process) = process.and_then(|process| by_process.get_mut(process.index())) {
                of_process.push(one);
            }
        }
        let threads = self.threads.max(1);
        let share = self.processes.len().div_ceil(threads).max(1);
        let (known, names) = (&self.known, &self.names);
        let around = Around { known, names, share };
        parallel::for_each(threads, &mut self.processes, |index, process| {
            process.walk(by_process.get(index).map(Vec::as_slice).unwrap_or_default(), &around);
        });
        self.deliver(threads, share);
        self.join();
        self.tell_senders();
        let (known, whole) = (&self.known, self.whole_until_ns(slice));
        parallel::for_each(threads, &mut self.processes, |_, process| process.settle(slice, &whole, known));
        self.complete();
        self.step(slice.until_ns);
        self.matched()
    }

    fn whole_until_ns(&self, slice: &Slice) -> Vec<u64> {
        self.processes.iter().map(|process| process.whole_until_ns(slice, &self.known)).collect()
    }

    fn matched(&self) -> Matched<'_> {
        Matched {
            processes: &self.processes,
            instances: &self.groups.formed,
            instances_done: &self.groups.done,
            epochs: &self.epochs.waits,
            locks: &self.locks.waits,
            passive: &self.locks.passive,
            fenced: &self.fenced,
        }
    }

    /// Epochs of windows, once it is known which windows are one.
    fn step(&mut self, until_ns: u64) {
        self.epochs.waits.clear();
        self.locks.waits.clear();
        self.locks.passive.clear();
        self.fenced.clear();
        let mut calls = mem::take(&mut self.early);
        calls.extend(drained(&mut self.processes, |process| &mut process.epoch_calls));
        calls.sort_by_key(|(_, one)| one.call.entry_ns);
        let is_fence = |instance: &&Arc<Instance>| {
            let function = instance.members.first().map(|member| member.call.function.function().name);
            instance.object.is_some() && function == Some("MPI_Win_fence")
        };
        let mut fences: Vec<Arc<Instance>> = self.groups.formed.iter().filter(is_fence).map(Arc::clone).collect();
        fences.sort_by_key(|fence| fence.overlap().0);
        let mut fences = fences.into_iter().peekable();
        for (process, one) in calls {
            while let Some(fence) = fences.next_if(|fence| fence.overlap().0 <= one.call.entry_ns) {
                self.fence(&fence);
            }
            let common = self.groups.common(one.window);
            let may_be_known_yet = one.call.entry_ns >= until_ns && self.groups.is_being_made(one.window);
            if common.is_none() && may_be_known_yet && self.early.len() < MOST_EARLY {
                self.early.push((process, one));
                continue;
            }
            if let Some(common) = common {
                self.locks.take(process, common, &one);
            }
            self.epochs.take(process, common, one, &self.known);
        }
        fences.for_each(|fence| self.fence(&fence));
        self.epochs.settle(until_ns, &self.known);
        self.locks.settle(until_ns, &self.known);
        let gone = self.groups.forget_gone();
        self.epochs.forget(&gone, &self.known);
        self.locks.forget(&gone, &self.known);
    }

    /// All have come to a fence: the accesses before it are all that there are.
    fn fence(&mut self, fence: &Instance) {
        let Some(window) = fence.object else { return };
        let members = fence.members.iter().map(|member| member.process);
        let accessed = self.epochs.take_accessed(window, members, fence.overlap().0);
        let of_members = fence.members.iter().map(|member| member.call).zip(accessed);
        self.fenced.extend(of_members.filter(|&(call, ns)| ns > call.entry_ns));
    }

    /// What each process has to say to others.
    fn deliver(&mut self, threads: usize, share: usize) {
        let mut letters: Vec<Vec<_>> =
            self.processes.iter_mut().map(|process| mem::take(&mut process.outbox)).collect();
        let (known, names) = (&self.known, &self.names);
        let gaps = self.processes.iter().enumerate();
        let gaps = gaps.flat_map(|(index, one)| one.gaps.iter().map(move |&gap| (id(index), gap)));
        let gaps: Vec<(ProcessId, Gap)> = gaps.collect();
        let mut parts: Vec<&mut [ProcessReplay]> = self.processes.chunks_mut(share).collect();
        parallel::for_each(threads, &mut parts, |part, processes| {
            let first = part * share;
            for process in processes.iter_mut() {
                process.inbound.grow(names, known);
                for &(source, gap) in &gaps {
                    process.inbound.break_from(source, gap);
                }
            }
            for letter in letters.iter().filter_map(|of_process| of_process.get(part)).flatten() {
                if let Some(process) = processes.get_mut(letter.0.index() - first) {
                    process.inbound.take(letter.1);
                }
            }
        });
        // The room is used again.
        for (process, mut outbox) in self.processes.iter_mut().zip(letters.drain(..)) {
            outbox.iter_mut().for_each(Vec::clear);
            process.outbox = outbox;
        }
        self.tell_senders();
    }

    fn tell_senders(&mut self) {
        let met: Vec<Vec<Met>> = self.processes.iter_mut().map(|process| mem::take(&mut process.inbound.met)).collect();
        for met in met.iter().flatten() {
            if let Some(sender) = self.processes.get_mut(met.sender.index()) {
                sender.meet(met);
            }
        }
        for (process, mut met) in self.processes.iter_mut().zip(met) {
            met.clear();
            process.inbound.met = met;
        }
    }

    /// Collectives.
    fn join(&mut self) {
        self.groups.formed.clear();
        self.groups.done.clear();
        let is_any_in_doubt =
            self.known.has_anybody_begun_before() || self.processes.iter().any(ProcessReplay::has_gaps);
        let mut joining = drained(&mut self.processes, |process| &mut process.joining);
        if is_any_in_doubt {
            // Some may be told apart by what all had called before.
            joining.sort_by_key(|(_, joining)| joining.call.entry_ns);
        }
        for (process, joining) in joining {
            self.groups.join(process, joining, &self.known);
        }
    }

    /// Collectives that have not blocked, and are complete.
    fn complete(&mut self) {
        for (process, joined) in drained(&mut self.processes, |process| &mut process.joined) {
            self.groups.complete(process, joined);
        }
    }

    /// What waits for its other end.
    pub fn pending(&self) -> Pending {
        let mut pending = Pending { collective: self.groups.waiting(), ..Pending::default() };
        for process in &self.processes {
            pending.calls += process.waiting();
            pending.add(process.inbound.waiting());
        }
        pending
    }

    /// When the first call began of those that are not dealt with, because others are behind, ns.
    pub(crate) fn unsettled_ns(&self) -> Option<u64> {
        let of_processes = self.processes.iter().filter_map(ProcessReplay::unsettled_ns);
        let of_windows = self.epochs.waiting_since_ns().into_iter().chain(self.locks.waiting_since_ns());
        let early = self.early.iter().map(|(_, one)| one.call.entry_ns);
        of_processes.chain(self.groups.waiting_since_ns()).chain(of_windows).chain(early).min()
    }

    /// There is no more: what is left is complete, or has no other end.
    pub fn finish(&mut self) -> Matched<'_> {
        self.processes.iter_mut().for_each(|process| process.done.clear());
        self.groups.formed.clear();
        self.groups.done.clear();
        self.tell_senders();
        let end = Slice { until_ns: u64::MAX, ..Slice::default() };
        let whole = self.whole_until_ns(&end);
        self.processes.iter_mut().for_each(|process| process.settle(&end, &whole, &self.known));
        self.tell_senders();
        self.complete();
        self.processes.iter_mut().for_each(|process| process.finish(&self.known));
        self.groups.finish();
        self.step(u64::MAX);
        self.epochs.finish(&self.known);
        self.matched()
    }

    /// Keeps what has no other end, for [`Self::loose`]. `is_done_wanted`: what has one is told as well.
    pub(crate) fn keep_loose(&mut self, is_done_wanted: bool) {
        self.groups.loose.is_wanted = true;
        for process in &mut self.processes {
            process.inbound.loose.is_wanted = true;
            process.is_done_wanted = is_done_wanted;
        }
    }

    /// Calls whose sends, receives and collectives have no other end, by location and number.
    pub(crate) fn loose(&mut self, mut take: impl FnMut(Ends, LocationId, u64, u16)) {
        let of_processes = self.processes.iter_mut().map(|process| &mut process.inbound.loose);
        for loose in of_processes.chain([&mut self.groups.loose]) {
            loose.sends.drain(..).for_each(|(location, number, nth)| take(Ends::Sends, location, number, nth));
            loose.receives.drain(..).for_each(|(location, number, nth)| take(Ends::Receives, location, number, nth));
            loose
                .collective
                .drain(..)
                .for_each(|(location, number, nth)| take(Ends::Collective, location, number, nth));
        }
    }

    /// One-sided communication between clocks that nothing compares: epochs, and waits for locks.
    pub(crate) fn epochs_between_clocks(&self) -> u64 {
        self.epochs.between_clocks + self.locks.between_clocks
    }

    /// What could not be matched so far; after [`Self::finish`], at all.
    pub fn unmatched(&self) -> Unmatched {
        let mut all = self.groups.counts;
        all.add(&self.epochs.counts);
        all.epochs += self.locks.incomplete;
        for process in &self.processes {
            all.add(&process.counts);
            all.add(&process.inbound.counts);
        }
        all
    }
}

/// What processes have of something, one after the other; they have nothing of it then.
fn drained<T>(processes: &mut [ProcessReplay], of: impl Fn(&mut ProcessReplay) -> &mut Vec<T>) -> Vec<(ProcessId, T)> {
    let mut all = Vec::new();
    for (index, process) in processes.iter_mut().enumerate() {
        all.extend(of(process).drain(..).map(|one| (id(index), one)));
    }
    all
}

fn id(index: usize) -> ProcessId {
    ProcessId(u32::try_from(index).unwrap_or(u32::MAX))
}
