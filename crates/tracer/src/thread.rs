//! What is known of a thread while it is recorded.

use std::collections::VecDeque;

use mpiprobe_common::{
    EndedThread, ThreadState,
    trace::{CallRecord, ChangeRecord, Unwritten},
};
use mpiprobe_observe::CallBefore;
use mpiprobe_trace::{LeftOut, Location, LocationId, Losses, PhaseChange, ProcessId};

use crate::numbering::{Numbering, Turn};

/// Changes that a call may have made before its own line is seen; those of further ones are counted as lost.
const MOST_CHANGES: usize = 1 << 16;
/// Events that wait for others; then those are not waited for any longer.
const MOST_HELD: usize = 1 << 14;

/// Calls of a thread that are not in any ring, since it began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NotThere {
    unwritten: Unwritten,
    /// Those that were left without a return.
    left: u32,
}

impl NotThere {
    pub(crate) fn of_living(thread: &ThreadState) -> Self {
        Self { unwritten: thread.unwritten, left: thread.left }
    }

    pub(crate) fn of_ended(thread: &EndedThread) -> Self {
        Self { unwritten: thread.unwritten, left: thread.left }
    }
}

/// A thread, from the first of its calls that is seen to its end.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) location: LocationId,
    numbering: Numbering,
    /// By calls whose own line has not been seen, in the order of these.
    changes: VecDeque<ChangeRecord>,
    lost_changes: u64,
    /// With the pass in which they were seen.
    held: VecDeque<Held>,
    /// Whether those are in the order of their numbers, too, and not only in that in which they came.
    is_held_in_order: bool,
    /// Return of the last call that was seen, ns.
    last_ns: u64,
    began_ns: u64,
    /// The call that it was in when its observation began, until it is known when that was over: what comes later waits for it.
    earlier: Option<CallBefore>,
    /// Calls that come before the first one that its writers have given a number.
    unnumbered: u64,
    pub(crate) ended_ns: Option<u64>,
    /// What had no place in rings before the recording began, and has had none until now.
    not_there_before: NotThere,
    not_there: NotThere,
    /// Whether it has gone on while nothing was recorded: then calls are missing that nobody has lost.
    pub(crate) had_pauses: bool,
    /// What was said of it last.
    said: Option<Location>,
}

#[derive(Debug)]
struct Held {
    number: u64,
    pass: u64,
    what: Written,
}

/// What a thread has written, and nobody has looked at yet: which requests and objects it is about is found out in the thread's own order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Written {
    Call {
        record: CallRecord,
        changes: Vec<ChangeRecord>,
        /// It had begun when nothing was recorded.
        began_before: bool,
    },
    Phase(PhaseChange),
}

impl Written {
    fn end_ns(&self) -> u64 {
        match self {
            Self::Call { record, .. } => end_ns(record),
            Self::Phase(change) => change.at_ns,
        }
    }

    fn is_call(&self) -> bool {
        matches!(self, Self::Call { .. })
    }
}

impl Thread {
    pub(crate) fn new(location: LocationId, numbering: Numbering, began_ns: u64, before: NotThere) -> Self {
        Self {
            location,
            numbering,
            changes: VecDeque::new(),
            lost_changes: 0,
            held: VecDeque::new(),
            is_held_in_order: true,
            last_ns: 0,
            began_ns,
            earlier: None,
            unnumbered: 0,
            ended_ns: None,
            not_there_before: before,
            not_there: before,
            had_pauses: false,
            said: None,
        }
    }

    /// One that was in a call when its observation began.
    pub(crate) fn begin_in(&mut self, call: CallBefore) {
        self.unnumbered = 1;
        self.earlier = Some(call);
    }

    /// The call in which it may still be since its observation began.
    pub(crate) const fn earlier(&self) -> Option<&CallBefore> {
        self.earlier.as_ref()
    }

    /// The same, which is over. `return_ns`: the last moment at which it is certain to have been in it.
    pub(crate) fn leave_earlier(&mut self, return_ns: u64) -> Option<CallBefore> {
        let call = self.earlier.take()?;
        self.last_ns = self.last_ns.max(return_ns);
        Some(call)
    }

    /// Number of the call that the writers have given a number.
    pub(crate) const fn numbered(&self, number: u64) -> u64 {
        number.saturating_add(self.unnumbered)
    }

    /// Whether an event that comes now is the next one.
    pub(crate) fn is_free(&self) -> bool {
        self.held.is_empty() && self.earlier.is_none()
    }

    /// Whether its next events wait for the end of the call that had begun before, and no longer.
    pub(crate) fn gives_earlier_up(&self, is_last: bool) -> bool {
        self.earlier.is_some() && !self.held.is_empty() && (is_last || self.held.len() > MOST_HELD)
    }

    /// Return of the last call that was seen, ns.
    pub(crate) fn last_ns(&self) -> u64 {
        self.last_ns
    }

    pub(crate) fn turn(&self, number: u32, started_ns: u64) -> Turn {
        self.numbering.turn(number, started_ns >= self.last_ns)
    }

    pub(crate) fn add_change(&mut self, change: ChangeRecord) {
        if self.changes.len() >= MOST_CHANGES {
            self.lost_changes += 1;
            return;
        }
        // Of another ring, that was looked at before, are those of calls that come later: a whole ring of them, if it had no room for the calls.
        if self.changes.back().is_none_or(|last| is_at_most(last.number, change.number)) {
            self.changes.push_back(change);
            return;
        }
        let place = self.changes.partition_point(|before| is_at_most(before.number, change.number));
        self.changes.insert(place, change);
    }

    /// Those that another thread has made, which has got the id of the one before.
    pub(crate) fn give_changes(&mut self, to: &mut Self) {
        self.changes.drain(..).for_each(|change| to.add_change(change));
    }

    /// Those of the call of a number; those of earlier ones are of nobody: that call was lost.
    pub(crate) fn take_changes(&mut self, number: u32) -> Vec<ChangeRecord> {
        let mut own = Vec::new();
        while let Some(change) = self.changes.pop_front_if(|change| is_at_most(change.number, number)) {
            if change.number == number {
                own.push(change);
            }
        }
        own
    }

    /// The whole number of the call whose turn it is, and what it has done to requests.
    pub(crate) fn take_call(&mut self, record: &CallRecord) -> (u64, Vec<ChangeRecord>) {
        let number = self.numbering.whole(record.number);
        self.last_ns = self.last_ns.max(end_ns(record));
        self.numbering.pass(number);
        (self.numbered(number), self.take_changes(record.number))
    }

    /// Keeps a call, with what it has done to requests, until its turn has come.
    pub(crate) fn hold_call(&mut self, record: &CallRecord, pass: u64, began_before: bool) {
        let changes = self.take_changes(record.number);
        self.hold(record.number, pass, Written::Call { record: *record, changes, began_before });
    }

    /// Gives a change of the phase back if its turn has come, before the call of that number, else keeps it.
    pub(crate) fn take_or_hold_phase(&mut self, number: u32, pass: u64, change: PhaseChange) -> Option<PhaseChange> {
        if self.is_free() && self.numbering.is_next(self.numbering.whole(number)) {
            self.last_ns = self.last_ns.max(change.at_ns);
            return Some(change);
        }
        self.hold(number, pass, Written::Phase(change));
        None
    }

    fn hold(&mut self, number: u32, pass: u64, what: Written) {
        let number = self.numbering.whole(number);
        self.last_ns = self.last_ns.max(what.end_ns());
        self.is_held_in_order &= self.held.back().is_none_or(|last| last.number <= number);
        self.held.push_back(Held { number, pass, what });
    }

    pub(crate) fn holds_any(&self) -> bool {
        !self.held.is_empty()
    }

    /// The next of those that were kept. All rings have been looked at in `pass`: what comes before an event that was seen before that is not
    /// waited for any longer, and nothing is if `is_last`.
    pub(crate) fn release(&mut self, pass: u64, is_last: bool) -> Option<(u64, Written)> {
        if self.earlier.is_some() {
            return None;
        }
        if !self.is_held_in_order {
            // Rings are in order, each for itself, and such runs are quickly merged.
            self.held.make_contiguous().sort_by_key(|held| held.number);
            self.is_held_in_order = true;
        }
        let first = self.held.front()?;
        let is_due =
            self.numbering.is_next(first.number) || first.pass < pass || is_last || self.held.len() > MOST_HELD;
        // Of one whose first call is not known, the first that is seen is it.
        if !is_due && self.numbering.has_begun() {
            return None;
        }
        let held = self.held.pop_front()?;
        if held.what.is_call() {
            self.numbering.pass(held.number);
        }
        Some((self.numbered(held.number), held.what))
    }

    /// What its state says: when it made its first call, and what was not written.
    pub(crate) fn note(&mut self, first_entry_ns: u64, not_there: NotThere) {
        if first_entry_ns != 0 && self.unnumbered == 0 {
            self.began_ns = first_entry_ns;
        }
        self.not_there = not_there;
    }

    /// So many of its calls have had numbers in all.
    pub(crate) fn conclude(&mut self, numbered_calls: u64) {
        self.numbering.conclude(numbered_calls);
    }

    /// It has ended, after so many calls in all.
    pub(crate) fn end(&mut self, numbered_calls: u64, ended_ns: u64) {
        self.conclude(numbered_calls);
        self.ended_ns = Some(ended_ns);
    }

    /// Calls that are not in the trace. `dropped`: those that could not be written to the file; `left_out`: those that were not asked for.
    fn losses(&self, dropped: u64, left_out: LeftOut) -> Losses {
        let unwritten = self.unwritten();
        let idle = unwritten.idle;
        let left = u64::from(self.not_there.left.wrapping_sub(self.not_there_before.left));
        // The last ones of a thread that goes on are not missed by those that come after them.
        let known = unwritten.lost.saturating_add(idle).saturating_add(left);
        let lost = self.numbering.missing().max(known) - idle.saturating_add(left);
        // Where nothing was recorded for some time, the writers know what they have lost, and the rest was not to be recorded.
        let (lost, by_time) = if self.had_pauses { (unwritten.lost, lost - unwritten.lost) } else { (lost, 0) };
        Losses {
            lost: lost.saturating_add(dropped),
            left_without_return: left,
            lost_changes: self.lost_changes.saturating_add(unwritten.changes),
            damaged: 0,
            left_out: LeftOut { by_pressure: idle, by_time, ..left_out },
        }
    }

    /// As it is defined; `None`: nothing has changed since it was said last.
    pub(crate) fn news(
        &mut self,
        process: ProcessId,
        tid: u32,
        (dropped, left_out): (u64, LeftOut),
    ) -> Option<Location> {
        let losses = self.losses(dropped, left_out);
        let location = Location { process, tid, began_ns: self.began_ns, ended_ns: self.ended_ns, losses };
        if self.said.as_ref() == Some(&location) {
            return None;
        }
        self.said = Some(location.clone());
        Some(location)
    }

    /// Polling calls that were not written for want of room, and calls that were lost.
    pub(crate) fn unwritten(&self) -> Unwritten {
        let (now, before) = (self.not_there.unwritten, self.not_there_before.unwritten);
        Unwritten {
            lost: now.lost.saturating_sub(before.lost),
            idle: now.idle.saturating_sub(before.idle),
            changes: now.changes.saturating_sub(before.changes),
        }
    }
}

/// When a call has returned, ns.
fn end_ns(record: &CallRecord) -> u64 {
    record.started_ns.saturating_add(record.ns)
}

/// Whether the low half of a number is that of the same number or of an earlier one.
fn is_at_most(earlier: u32, later: u32) -> bool {
    later.wrapping_sub(earlier).cast_signed() >= 0
}

#[cfg(test)]
mod tests {
    use mpiprobe_common::trace::Words;

    use super::*;

    fn thread() -> Thread {
        Thread::new(LocationId(0), Numbering::new(true, false), 0, NotThere::default())
    }

    fn change(number: u32) -> ChangeRecord {
        ChangeRecord { number, ..ChangeRecord::read(&Words::default()) }
    }

    fn changes(of: impl IntoIterator<Item = u32>) -> Thread {
        let mut thread = thread();
        of.into_iter().for_each(|number| thread.add_change(change(number)));
        thread
    }

    #[test]
    fn changes_are_of_the_call_with_their_number() {
        let mut thread = changes([7, 9, 9, 8, 8, 8, u32::MAX]);
        assert_eq!(thread.take_changes(8).len(), 3);
        assert_eq!(thread.take_changes(7), Vec::new(), "its changes went with an earlier call that never came");
        assert_eq!(thread.take_changes(9).len(), 2);
        // Numbers begin again.
        let mut thread = changes([u32::MAX, 0, 1]);
        assert_eq!([u32::MAX, 0, 1].map(|number| thread.take_changes(number).len()), [1; 3]);
    }

    #[test]
    fn changes_of_calls_that_were_lost_cost_others_nothing() {
        let most = u32::try_from(MOST_CHANGES).expect("fits");
        let mut thread = changes((0..most).map(|call| 1_000_000 + call));
        thread.add_change(change(0));
        assert_eq!(thread.lost_changes, 1);
        // What looks at all of them for each of these calls takes a minute.
        (0..1_000_000).for_each(|number| assert_eq!(thread.take_changes(number).len(), 0));
        assert_eq!((thread.take_changes(1_000_000).len(), thread.changes.len()), (1, MOST_CHANGES - 1));
    }

    #[test]
    fn what_came_from_several_rings_comes_out_in_order() {
        let mut thread = thread();
        for number in
            (1..100).filter(|number| number / 10 % 2 == 1).chain((1..100).filter(|number| number / 10 % 2 == 0))
        {
            let record = CallRecord { number, ..CallRecord::NONE };
            assert_eq!(thread.turn(number, record.started_ns), Turn::Later);
            thread.hold_call(&record, 0, false);
        }
        assert_eq!(thread.release(0, false), None, "the first call is still missing");
        let released: Vec<u64> = std::iter::from_fn(|| thread.release(1, false)).map(|(number, _)| number).collect();
        assert_eq!((released, thread.numbering.missing()), ((1..100).collect(), 1));
    }
}
