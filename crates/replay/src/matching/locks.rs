//! Passive target synchronisation (MPI-4.0, section 12.5.3): who has waited for whose lock, and for whom to let a one-sided call go on.
//!
//! When a lock is got is nobody's call: a library may wait for it in the call that locks, or in the first one that needs it. So the call that has waited is the first
//! one of an epoch in which another process, with which the lock is not shared, has begun to give it up.

use std::collections::{HashMap, VecDeque};

use mpiprobe_trace::ProcessId;

use super::{
    call::CallAt,
    meaning::{Known, Step, Stream},
};

/// Calls of a window that may wait for others.
const MOST_CALLS: usize = 1 << 16;

/// A one-sided call that locks of other processes have kept from going on, until the last of those began to give it up (`other`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LockWait {
    pub(crate) call: CallAt,
    pub(crate) other: CallAt,
    /// How long some of them had asked for the lock by then, in the time of the call, ns.
    pub(crate) ns: u64,
}

/// A one-sided call that may have waited for its target to be in MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PassiveCall {
    pub(crate) call: CallAt,
    pub(crate) target: ProcessId,
    /// When it has waited for no lock, ns.
    pub(crate) from_ns: u64,
    pub(crate) until_ns: u64,
}

/// A call of an epoch.
#[derive(Clone, Copy, Debug)]
struct Made {
    at: CallAt,
    /// `None`: all.
    target: Option<ProcessId>,
    unlocks: bool,
    /// Whoever has left it has the lock, or has had it.
    completes: bool,
}

/// From when it is asked for to when it is given up.
#[derive(Debug)]
struct Epoch {
    origin: ProcessId,
    /// `None`: all.
    target: Option<ProcessId>,
    /// `None`: not known.
    exclusive: Option<bool>,
    has_lock: bool,
    /// When it was asked for, ns.
    since_ns: u64,
    calls: VecDeque<Made>,
}

/// A lock that was given up.
#[derive(Clone, Copy, Debug)]
struct Released {
    origin: ProcessId,
    target: Option<ProcessId>,
    exclusive: Option<bool>,
    since_ns: u64,
    unlock: CallAt,
}

#[derive(Debug, Default)]
struct Window {
    open: HashMap<(ProcessId, Option<ProcessId>), Epoch>,
    /// Those that were given up, some of whose calls were not looked at yet.
    closed: VecDeque<Epoch>,
    /// In the order in which that began.
    released: VecDeque<Released>,
}

/// Of all windows.
#[derive(Debug, Default)]
pub(super) struct Locks {
    /// By what all together call them.
    windows: HashMap<Stream, Window>,
    /// Since the last slice.
    pub(super) waits: Vec<LockWait>,
    pub(super) passive: Vec<PassiveCall>,
    /// Calls of processes whose clocks nothing compares with those of others who had the lock.
    pub(super) between_clocks: u64,
}

impl Locks {
    /// The next call, in the order of their entries. `window`: what all together call it.
    pub(super) fn take(&mut self, process: ProcessId, window: Stream, step: Step, call: CallAt) {
        let (target, unlocks, completes) = match step {
            Step::Lock { target, exclusive } => {
                let (origin, since_ns, calls) = (process, call.entry_ns, VecDeque::new());
                let epoch = Epoch { origin, target, exclusive, has_lock: false, since_ns, calls };
                let window = self.windows.entry(window).or_default();
                if let Some(before) = window.open.insert((process, target), epoch) {
                    window.closed.push_back(before);
                }
                (target, false, false)
            }
            Step::Unlock(target) => (target, true, true),
            Step::Flush { target, completes } => (target, false, completes),
            Step::Access(target) => (Some(target), false, false),
            Step::Start | Step::Complete | Step::Post | Step::Wait | Step::LockOfUnknown => return,
        };
        let Some(window) = self.windows.get_mut(&window) else { return };
        let one = Made { at: call, target, unlocks, completes };
        // What is accessed with a lock of all is no epoch of its own.
        let key = [(process, target), (process, None)].into_iter().find(|key| window.open.contains_key(key));
        let Some(key) = key else { return };
        if let Some(epoch) = window.open.get_mut(&key) {
            epoch.calls.push_back(one);
            if epoch.calls.len() > MOST_CALLS {
                epoch.calls.pop_front();
            }
        }
        if unlocks && let Some(epoch) = window.open.remove(&key) {
            let Epoch { origin, target, exclusive, since_ns, .. } = epoch;
            window.released.push_back(Released { origin, target, exclusive, since_ns, unlock: call });
            window.closed.push_back(epoch);
            if window.released.len() > MOST_CALLS {
                window.released.pop_front();
            }
        }
    }

    /// All calls that begin before that time have been taken.
    pub(super) fn settle(&mut self, until_ns: u64, known: &Known) {
        let Self { windows, waits, passive, between_clocks } = self;
        for window in windows.values_mut() {
            let Window { open, closed, released } = window;
            for epoch in open.values_mut().chain(closed.iter_mut()) {
                epoch.settle(until_ns, released, known, waits, passive, between_clocks);
            }
            closed.retain(|epoch| !epoch.calls.is_empty());
            // Calls that come later cannot have waited for these.
            let first = open.values().chain(closed.iter()).filter_map(|epoch| epoch.calls.front());
            let first_ns = first.map(|first| first.at.entry_ns).min().unwrap_or(u64::MAX).min(until_ns);
            while released
                .pop_front_if(|one| one.unlock.entry_ns.saturating_add(slack_ns(one.origin, known)) < first_ns)
                .is_some()
            {}
        }
    }

    /// These are no more.
    pub(super) fn forget(&mut self, gone: &[Stream]) {
        for common in gone {
            self.windows.remove(common);
        }
    }

    /// Since when something waits for others.
    pub(super) fn waiting_since_ns(&self) -> Option<u64> {
        let epochs = self.windows.values().flat_map(|window| window.open.values().chain(&window.closed));
        epochs.filter_map(|epoch| epoch.calls.front()).map(|one| one.at.entry_ns).min()
    }
}

/// Clocks of others may be behind.
fn slack_ns(process: ProcessId, known: &Known) -> u64 {
    known.most_apart_ns(process)
}

impl Epoch {
    /// Looks at those of its calls that were over by then.
    fn settle(
        &mut self,
        until_ns: u64,
        released: &VecDeque<Released>,
        known: &Known,
        waits: &mut Vec<LockWait>,
        passive: &mut Vec<PassiveCall>,
        between_clocks: &mut u64,
    ) {
        let slack_ns = slack_ns(self.origin, known);
        while let Some(one) = self.calls.pop_front_if(|one| one.at.return_ns.saturating_add(slack_ns) < until_ns) {
            let CallAt { entry_ns, return_ns, .. } = one.at;
            // Before it waits for locks, and behind that.
            let mut rest = [Some((entry_ns, return_ns)), None];
            if !self.has_lock
                && let Some((other, ns)) = self.kept_by(&one, released)
            {
                self.has_lock = true;
                if known.within_ns(&[self.origin, other.origin]).is_none() {
                    *between_clocks += 1;
                } else {
                    let until_ns = other.unlock.entry_ns;
                    waits.push(LockWait { call: one.at, other: other.unlock, ns });
                    // Who asks for it first may be the target, which is in MPI then.
                    rest = [Some((entry_ns, until_ns.saturating_sub(ns) + 1)), Some((until_ns, return_ns))];
                }
            }
            self.has_lock |= one.completes;
            if let Some(target) = one.target.filter(|&target| target != self.origin) {
                let rest = rest.into_iter().flatten();
                passive.extend(rest.map(|(from_ns, until_ns)| PassiveCall { call: one.at, target, from_ns, until_ns }));
            }
        }
    }

    /// The last one who has begun to give the lock up during a call, of those who may not have had it at the same time, and had it before; and how long any of these
    /// had asked for it by then, in the time of the call, ns.
    fn kept_by<'a>(&self, one: &Made, released: &'a VecDeque<Released>) -> Option<(&'a Released, u64)> {
        let CallAt { entry_ns, return_ns, .. } = one.at;
        let first = released.partition_point(|other| other.unlock.entry_ns <= entry_ns);
        let last = released.partition_point(|other| other.unlock.entry_ns < return_ns);
        let is_of_same = |other: &Released| match (one.target.or(self.target), other.target) {
            (Some(own), Some(other)) => own == other,
            _ => true,
        };
        let is_other = |other: &&Released| {
            other.origin != self.origin
                && is_of_same(other)
                && (self.exclusive == Some(true) || other.exclusive == Some(true))
                // Of two that give it up at the same time, the one had it first that is done first.
                && (!one.unlocks || other.unlock.return_ns <= return_ns)
        };
        let others = released.range(first..last.max(first)).filter(is_other);
        // They are in the order of their ends.
        let (mut ns, mut before_ns, mut latest) = (0, u64::MAX, None);
        for other in others.rev() {
            latest = latest.or(Some(other));
            let from_ns = other.since_ns.max(entry_ns);
            ns += other.unlock.entry_ns.min(before_ns).saturating_sub(from_ns);
            before_ns = before_ns.min(from_ns);
        }
        latest.map(|latest| (latest, ns))
    }
}
