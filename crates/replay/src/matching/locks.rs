//! Passive target synchronisation (MPI-4.0, section 12.5.3): who has waited for whose lock, and for whom to let a one-sided call go on.
//!
//! When a lock is got is nobody's call: a library may wait for it in the call that locks, or in the first one that needs it. So the call that has waited is the first
//! one of an epoch in which another process, with which the lock is not shared, has begun to give it up.

use std::collections::{HashMap, VecDeque};

use mpiprobe_trace::ProcessId;

use super::{
    call::CallAt,
    epochs::EpochCall,
    meaning::{Known, Step, Stream},
};

/// Epochs of a window, locks that were given up, and calls of an epoch, that may wait for others.
const MOST: usize = 1 << 16;

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
    /// Of how many gaps in the process's calls it comes after.
    gaps: u32,
    calls: VecDeque<Made>,
}

/// A lock that was given up.
#[derive(Clone, Copy, Debug)]
struct Released {
    origin: ProcessId,
    exclusive: Option<bool>,
    since_ns: u64,
    unlock: CallAt,
}

#[derive(Debug, Default)]
struct Window {
    open: HashMap<(ProcessId, Option<ProcessId>), Epoch>,
    /// Those that were given up, some of whose calls were not looked at yet.
    closed: VecDeque<Epoch>,
    /// By target, in the order in which that began.
    released: HashMap<Option<ProcessId>, VecDeque<Released>>,
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
    /// Epochs that calls are missing in, and those that there was no room for.
    pub(super) incomplete: u64,
}

impl Locks {
    /// The next call, in the order of their entries, as far as all have come. `window`: what all together call it.
    pub(super) fn take(&mut self, process: ProcessId, window: Stream, one: &EpochCall) {
        let &EpochCall { step, call, gaps, .. } = one;
        let (target, unlocks, completes) = match step {
            Step::Lock { target, exclusive } => {
                let (origin, since_ns, calls) = (process, call.entry_ns, VecDeque::new());
                let epoch = Epoch { origin, target, exclusive, has_lock: false, since_ns, gaps, calls };
                let window = self.windows.entry(window).or_default();
                // It was not seen to be given up.
                self.incomplete += u64::from(window.open.insert((process, target), epoch).is_some());
                (target, false, false)
            }
            Step::Unlock(target) => (target, true, true),
            Step::Flush { target, completes } => (target, false, completes),
            Step::Access(target) => (Some(target), false, false),
            Step::Start | Step::Complete | Step::Post | Step::Wait | Step::LockOfUnknown => return,
        };
        let Some(window) = self.windows.get_mut(&window) else { return };
        let made = Made { at: call, target, unlocks, completes };
        let before = window.open.len();
        window.open.retain(|_, epoch| epoch.origin != process || epoch.gaps == gaps);
        self.incomplete += (before - window.open.len()) as u64;
        if target.is_none() && !unlocks {
            // What flushes all has to do with each of them.
            for epoch in window.open.values_mut().filter(|epoch| epoch.origin == process) {
                self.incomplete += u64::from(epoch.add(Made { target: epoch.target, ..made }));
            }
            return;
        }
        // What is accessed with a lock of all is no epoch of its own.
        let key = [(process, target), (process, None)].into_iter().find(|key| window.open.contains_key(key));
        let Some(epoch) = key.and_then(|key| window.open.get_mut(&key)) else { return };
        self.incomplete += u64::from(epoch.add(made));
        if unlocks && let Some(epoch) = key.and_then(|key| window.open.remove(&key)) {
            let Epoch { origin, target, exclusive, since_ns, .. } = epoch;
            let released = window.released.entry(target).or_default();
            // Whoever is behind may tell of earlier ones.
            let place = released.partition_point(|other| other.unlock.entry_ns <= call.entry_ns);
            released.insert(place, Released { origin, exclusive, since_ns, unlock: call });
            window.closed.push_back(epoch);
        }
    }

    /// All calls that begin before that time have been taken.
    pub(super) fn settle(&mut self, until_ns: u64, known: &Known) {
        let mut windows = std::mem::take(&mut self.windows);
        for window in windows.values_mut() {
            self.settle_window(window, until_ns, known);
        }
        self.windows = windows;
    }

    fn settle_window(&mut self, window: &mut Window, until_ns: u64, known: &Known) {
        let Window { open, closed, released } = window;
        for epoch in open.values_mut().chain(closed.iter_mut()) {
            epoch.settle(until_ns, released, known, self);
        }
        closed.retain(|epoch| !epoch.calls.is_empty());
        while closed.len() > MOST && closed.pop_front().is_some() {
            self.incomplete += 1;
        }
        // Calls that come later cannot have waited for these.
        let first = open.values().chain(closed.iter()).filter_map(|epoch| epoch.calls.front());
        let first_ns = first.map(|first| first.at.entry_ns).min().unwrap_or(u64::MAX).min(until_ns);
        // Clocks of others may be behind.
        let is_over = |one: &mut Released| {
            let slack_ns = known.most_apart_ns(one.origin);
            one.unlock.entry_ns.saturating_add(slack_ns) < first_ns
        };
        for of_target in released.values_mut() {
            while of_target.pop_front_if(is_over).is_some() {}
            while of_target.len() > MOST && of_target.pop_front().is_some() {
                self.incomplete += 1;
            }
        }
        released.retain(|_, of_target| !of_target.is_empty());
    }

    /// These are no more.
    pub(super) fn forget(&mut self, gone: &[Stream], known: &Known) {
        for common in gone {
            if let Some(mut window) = self.windows.remove(common) {
                self.settle_window(&mut window, u64::MAX, known);
            }
        }
    }

    /// Since when something waits for others.
    pub(super) fn waiting_since_ns(&self) -> Option<u64> {
        let epochs = self.windows.values().flat_map(|window| window.open.values().chain(&window.closed));
        epochs.filter_map(|epoch| epoch.calls.front()).map(|one| one.at.entry_ns).min()
    }
}

impl Epoch {
    /// Whether there was no room for an earlier one.
    fn add(&mut self, made: Made) -> bool {
        self.calls.push_back(made);
        self.calls.len() > MOST && self.calls.pop_front().is_some()
    }

    /// Looks at those of its calls that were over by then.
    fn settle(
        &mut self,
        until_ns: u64,
        released: &HashMap<Option<ProcessId>, VecDeque<Released>>,
        known: &Known,
        to: &mut Locks,
    ) {
        let slack_ns = known.most_apart_ns(self.origin);
        let is_over = |one: &mut Made| until_ns == u64::MAX || one.at.return_ns.saturating_add(slack_ns) < until_ns;
        while let Some(one) = self.calls.pop_front_if(is_over) {
            let CallAt { entry_ns, return_ns, .. } = one.at;
            // Before it waits for locks, and behind that.
            let mut rest = [Some((entry_ns, return_ns)), None];
            if !self.has_lock
                && let Some((other, ns)) = self.kept_by(&one, released)
            {
                self.has_lock = true;
                if known.within_ns(&[self.origin, other.origin]).is_none() {
                    to.between_clocks += 1;
                } else {
                    let until_ns = other.unlock.entry_ns;
                    to.waits.push(LockWait { call: one.at, other: other.unlock, ns });
                    // Who asks for it first may be the target, which is in MPI then.
                    rest = [Some((entry_ns, until_ns.saturating_sub(ns) + 1)), Some((until_ns, return_ns))];
                }
            }
            self.has_lock |= one.completes;
            if let Some(target) = one.target.filter(|&target| target != self.origin) {
                let rest = rest.into_iter().flatten();
                to.passive.extend(rest.map(|(from_ns, until_ns)| PassiveCall {
                    call: one.at,
                    target,
                    from_ns,
                    until_ns,
                }));
            }
        }
    }

    /// The last one who has begun to give the lock up during a call, of those who may not have had it at the same time, and had it before; and how long any of these
    /// had it, or had asked for it, in the time of the call, ns.
    fn kept_by(
        &self,
        one: &Made,
        released: &HashMap<Option<ProcessId>, VecDeque<Released>>,
    ) -> Option<(Released, u64)> {
        let CallAt { entry_ns, return_ns, .. } = one.at;
        let is_other = |other: &&Released| {
            other.origin != self.origin
                && (self.exclusive == Some(true) || other.exclusive == Some(true))
                // Of two that give it up at the same time, the one had it first that is done first.
                && (!one.unlocks || other.unlock.return_ns <= return_ns)
        };
        let during = |of_target: &VecDeque<Released>| {
            let first = of_target.partition_point(|other| other.unlock.entry_ns <= entry_ns);
            let last = of_target.partition_point(|other| other.unlock.entry_ns < return_ns);
            of_target.range(first..last.max(first)).filter(is_other).copied().collect::<Vec<_>>()
        };
        let mut others: Vec<Released> = match one.target.or(self.target) {
            Some(target) => [Some(target), None].iter().filter_map(|of| released.get(of)).flat_map(during).collect(),
            None => released.values().flat_map(during).collect(),
        };
        others.sort_by_key(|other| other.unlock.entry_ns);
        let (mut ns, mut before_ns, mut latest) = (0, u64::MAX, None);
        for other in others.into_iter().rev() {
            latest = latest.or(Some(other));
            let from_ns = other.since_ns.max(entry_ns);
            ns += other.unlock.entry_ns.min(before_ns).saturating_sub(from_ns);
            before_ns = before_ns.min(from_ns);
        }
        latest.map(|latest| (latest, ns))
    }
}
