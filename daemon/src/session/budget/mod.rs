//! What observing costs each rank, and the limit that it is held to (`--max-overhead`).
//!
//! Costs are those of calibration, times the hits of probes that are counted anyway. Where they come to more than the limit, functions
//! are counted with less care: which ones, decides [`controller`]; here that is done, on two levels.
//!
//! - *By entry*: the programs count the call and have no return probe armed. Calls that are open when it begins complete as ever.
//! - *Sampled*: counted by entry, and by probes that are there in short windows at random times only, since most of what a probe costs is
//!   the trap. So that they can be taken off, such functions have links of their own from the beginning: each function that is
//!   called in loops until something happens, and of the others all of a group together. They are taken off when none of their calls is
//!   open that began when they were still followed: such a call would never be seen to return.
//!
//! Functions that make or free communicators, datatypes, windows and files are never reduced: what handles mean has to stay known. Those
//! that post or complete requests are, but as long as one of them is, it is not found out what calls move, by nobody: a request whose
//! completion was not seen would be taken for a later one with the same handle. When they are all followed again for some time, it is found
//! out anew, as after attach: requests that were posted before are not known.
//! With `--nested`, and where there are tools before MPI, nothing is reduced: calls inside calls are told by the open call.

mod controller;
mod estimate;

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use mpiprobe_attach::{Attachment, forget_requests};
use mpiprobe_common::descriptor::completion;
use mpiprobe_functions::FunctionId;
use mpiprobe_model::{Budget, Estimate, Level, Profile, RankState, Reduction, Spending};
use mpiprobe_observe::monotonic_ns;

use self::{
    controller::{Calls, Controller, Costs, Facts, Limit, Load, SLOTS},
    estimate::{ByFunction, Counted},
};
use super::{
    functions::{counted, unit_of},
    kernel::Kernel,
    options::Options,
    probes::Probes,
    process_table::ProcessTable,
};

/// What a call with everything that `--traffic` does costs more than one without (docs/user-guide.md).
const TRAFFIC: f64 = 4.0 / 3.0;
/// What periods of limits are counted in. For trials another one can be set.
const MINUTE: Duration = Duration::from_mins(1);
const MINUTE_FOR_TRIALS: &str = "MPIPROBE_BUDGET_MINUTE_MS";
/// Windows, in slots.
const WINDOW: (f64, f64) = (0.04, 0.4);
/// As long as earlier probes are being removed, no new ones are put on, which would count twice.
const REMOVING: Duration = Duration::from_millis(5);

/// Meters, and keeps the limit.
#[derive(Debug)]
pub(super) struct Limiter {
    controller: Controller,
    slot: Duration,
    began_ns: u64,
    /// When hits were read last, and how often each function had been called by then, by process slot and function.
    read: Instant,
    calls: BTreeMap<(u32, u32), u64>,
    inner: BTreeMap<u32, u64>,
    /// Since the beginning of the slot.
    slot_began: Instant,
    pending: BTreeMap<u32, Pending>,
    /// Calls per second while probed, as it was last.
    rates: BTreeMap<(u32, u32), f64>,
    /// The functions of each unit.
    units: BTreeMap<u16, Vec<u32>>,
    states: BTreeMap<u16, UnitState>,
    /// Counted by entry, or sampled.
    by_entry: BTreeSet<u32>,
    times: BTreeMap<u32, Times>,
    traffic: TrafficPause,
    window: Window,
    sampled: ByFunction,
    removing: Vec<JoinHandle<()>>,
    random: u64,
}

/// What a process has called since the beginning of the slot.
#[derive(Debug, Default)]
struct Pending {
    calls: BTreeMap<u32, u64>,
    inner: u64,
}

/// Whether probes of a unit are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnitState {
    /// All the time.
    Attached,
    /// The same, until calls have returned that began before.
    Leaving,
    /// In windows.
    Sampled,
}

#[derive(Clone, Copy, Debug)]
struct Times {
    since_ns: u64,
    entries: Duration,
    sampled: Duration,
}

/// When it was not found out what calls move.
#[derive(Clone, Copy, Debug, Default)]
struct TrafficPause {
    /// For the first time, ns since the beginning.
    first: Option<u64>,
    /// Since when it has not been now, ns since the beginning, and for how long it was not before, ns.
    since: Option<u64>,
    earlier: u64,
}

impl TrafficPause {
    fn begin(&mut self, now_ns: u64) {
        self.first.get_or_insert(now_ns);
        self.since.get_or_insert(now_ns);
    }

    fn end(&mut self, now_ns: u64) {
        self.earlier = self.in_all_ns(now_ns);
        self.since = None;
    }

    fn in_all_ns(&self, now_ns: u64) -> u64 {
        self.earlier + self.since.map_or(0, |since| now_ns.saturating_sub(since))
    }
}

/// When probes are there of what is sampled.
#[derive(Debug)]
enum Window {
    /// Not now.
    Closed { opens: Instant, length: Duration, period_ends: Instant },
    /// What had been counted when it began, and between which moments that was read.
    Open { closes: Instant, period_ends: Instant, read: (Instant, Instant), calls: BTreeMap<(u32, u32), u64> },
}

/// A number below 1, of a sequence that looks random (SplitMix64).
fn random(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

impl Limiter {
    pub(super) fn new(options: &Options, kernel: &Kernel) -> Self {
        let calibration = kernel.engine.calibration;
        let full = calibration.per_call_ns / 1e9;
        let entry = calibration.entry_ns.min(calibration.per_call_ns) / 1e9;
        let functions = counted(options.functions, options.ignore_pcontrol);
        let mut units: BTreeMap<u16, Vec<u32>> = BTreeMap::new();
        let mut facts = BTreeMap::new();
        for id in functions.iter() {
            let Some(unit) = unit_of(id) else { continue };
            let is_followed = id.function().descriptor().completion != completion::NOTHING;
            facts.insert(u32::from(id.number()), Facts { unit, is_followed });
            units.entry(unit).or_default().push(id.number().into());
        }
        let minute = std::env::var(MINUTE_FOR_TRIALS).ok().and_then(|text| text.parse().ok());
        let minute = minute.map_or(MINUTE, |ms: u64| Duration::from_millis(ms.clamp(1_000, 60_000)));
        let slot = minute / SLOTS;
        let costs = Costs { traffic: full * TRAFFIC, full, entry };
        let slots = |period: Duration| period.as_millis() * u128::from(SLOTS) / MINUTE.as_millis();
        let limit = options.overhead_limit().map(|limit| Limit {
            share: limit.percent / 100.0,
            slots: u32::try_from(slots(limit.period)).unwrap_or(u32::MAX),
        });
        let can = (kernel.engine.can_sample(), options.traffic);
        let now = Instant::now();
        Self {
            controller: Controller::new(limit, slot.as_secs_f64(), costs, facts, can),
            slot,
            began_ns: monotonic_ns(),
            read: now,
            calls: BTreeMap::new(),
            inner: BTreeMap::new(),
            slot_began: now,
            pending: BTreeMap::new(),
            rates: BTreeMap::new(),
            states: units.keys().map(|&unit| (unit, UnitState::Attached)).collect(),
            units,
            by_entry: BTreeSet::new(),
            times: BTreeMap::new(),
            traffic: TrafficPause::default(),
            window: Window::Closed { opens: now, length: Duration::ZERO, period_ends: now },
            sampled: ByFunction::new(),
            removing: Vec::new(),
            random: monotonic_ns(),
        }
    }

    /// Whether probes may have to be taken off.
    pub(super) fn may_sample(&self) -> bool {
        self.controller.may_sample()
    }

    /// When there is something to do next.
    pub(super) fn next_moment(&self) -> Instant {
        let slot = self.slot_began + self.slot;
        let window = match &self.window {
            Window::Open { closes, .. } => *closes,
            Window::Closed { opens, .. } if self.is_sampling() => *opens,
            Window::Closed { .. } => return slot,
        };
        slot.min(window)
    }

    fn is_sampling(&self) -> bool {
        self.states.values().any(|state| *state == UnitState::Sampled)
    }

    /// Does what is due.
    pub(super) fn turn(&mut self, kernel: &mut Kernel, probes: &mut Probes, processes: &ProcessTable) {
        let now = Instant::now();
        match &self.window {
            Window::Open { closes, .. } if *closes <= now => self.close_window(kernel, probes),
            Window::Closed { opens, .. } if *opens <= now && self.is_sampling() => self.open_window(kernel, probes),
            _ => {}
        }
        if now >= self.slot_began + self.slot {
            self.end_slot(kernel, probes, processes);
        }
    }

    fn end_slot(&mut self, kernel: &mut Kernel, probes: &mut Probes, processes: &ProcessTable) {
        let running = running(processes);
        self.account(kernel, &running);
        let seconds = self.slot_began.elapsed().as_secs_f64().max(1e-6);
        self.slot_began = Instant::now();
        let pending = mem::take(&mut self.pending);
        let sampled = self.sampled_functions();
        let loads: Vec<Load> = running
            .iter()
            .map(|&process| {
                let seen = pending.get(&process);
                let calls = seen.into_iter().flat_map(|seen| &seen.calls).map(|(&function, &hits)| {
                    let known = (process, function);
                    let rate = hits as f64 / seconds;
                    let rate = if sampled.contains(&function) {
                        self.rates.get(&known).copied().unwrap_or(rate)
                    } else {
                        self.rates.insert(known, rate);
                        rate
                    };
                    Calls { function, hits: hits as f64, rate }
                });
                let inner = seen.map_or(0, |seen| seen.inner) as f64;
                Load { rank: process, calls: calls.collect(), inner_hits: inner, inner_rate: inner / seconds }
            })
            .collect();
        if kernel.engine.has_tools() && self.controller.limit().is_some() {
            self.controller.give_up();
        }
        self.controller.end_slot(&loads);
        self.apply(kernel, probes);
        // From now on, whether they call or not: who is called in no window may have been called all the same.
        for function in self.sampled_functions() {
            for &process in &running {
                self.sampled.entry((process, function)).or_default();
            }
        }
    }

    /// Takes in what has been called since the last time.
    fn account(&mut self, kernel: &Kernel, running: &BTreeSet<u32>) {
        let elapsed = self.read.elapsed();
        self.read = Instant::now();
        let mut counted = BTreeMap::new();
        for hits in kernel.observer.hits().into_iter().filter(|hits| running.contains(&hits.process)) {
            let pending = self.pending.entry(hits.process).or_default();
            let before = self.inner.insert(hits.process, hits.inner_calls).unwrap_or(0);
            pending.inner += hits.inner_calls.saturating_sub(before);
            for &(function, calls) in &hits.calls {
                let before = self.calls.insert((hits.process, function), calls).unwrap_or(0);
                let calls = calls.saturating_sub(before);
                *pending.calls.entry(function).or_default() += calls;
                counted.insert((hits.process, function), calls);
            }
        }
        let functions = self.sampled_functions();
        for (known, sampled) in &mut self.sampled {
            if running.contains(&known.0) && functions.contains(&known.1) {
                sampled.pass(elapsed.as_secs_f64(), counted.get(known).copied().unwrap_or(0));
            }
        }
        let reduced: Vec<u32> = self.by_entry.iter().copied().collect();
        for function in reduced {
            let is_sampled = functions.contains(&function);
            if let Some(times) = self.times.get_mut(&function) {
                *(if is_sampled { &mut times.sampled } else { &mut times.entries }) += elapsed;
            }
        }
    }

    /// Those whose probes are there in windows only.
    fn sampled_functions(&self) -> BTreeSet<u32> {
        self.sampled_units().iter().filter_map(|unit| self.units.get(unit)).flatten().copied().collect()
    }

    /// Has functions counted as it has been decided.
    fn apply(&mut self, kernel: &mut Kernel, probes: &mut Probes) {
        if self.controller.pauses_traffic() && !self.has_paused_traffic() {
            kernel.observer.pause_traffic();
            self.traffic.begin(self.now_ns());
        }
        let open = if self.states.values().any(|state| *state == UnitState::Leaving) {
            kernel.observer.open_functions()
        } else {
            BTreeSet::new()
        };
        let units: Vec<(u16, Vec<u32>)> = self.units.iter().map(|(&unit, all)| (unit, all.clone())).collect();
        for (unit, functions) in units {
            let is_sampled = functions.iter().all(|function| self.controller.level(*function) == Level::Sampled);
            let state = self.states.get(&unit).copied().unwrap_or(UnitState::Attached);
            let state = match (is_sampled, state) {
                // What began to run just before they were reduced has come to the end of its entry by the next time.
                (true, UnitState::Attached) => UnitState::Leaving,
                (true, UnitState::Leaving) if functions.iter().all(|function| !open.contains(function)) => {
                    self.remove(probes.take_off(unit));
                    UnitState::Sampled
                }
                (false, UnitState::Leaving) => UnitState::Attached,
                (false, UnitState::Sampled) => self.bring_back(kernel, probes, unit),
                (_, state) => state,
            };
            self.states.insert(unit, state);
            for function in functions {
                // Without probes all the time nothing can be followed.
                let by_entry = self.controller.level(function) != Level::Full || state == UnitState::Sampled;
                if by_entry == self.by_entry.contains(&function) {
                    continue;
                }
                kernel.observer.reduce(function, by_entry);
                if by_entry {
                    let since_ns = self.now_ns();
                    let none = Times { since_ns, entries: Duration::ZERO, sampled: Duration::ZERO };
                    self.times.entry(function).or_insert(none);
                    self.by_entry.insert(function);
                } else {
                    self.by_entry.remove(&function);
                }
            }
        }
        // Not before the probes are there of all whose calls have to be followed.
        if !self.controller.pauses_traffic()
            && self.has_paused_traffic()
            && !self.by_entry.iter().any(|&function| self.controller.is_followed(function))
        {
            match forget_requests(&mut kernel.engine.tables) {
                Ok(()) => {
                    kernel.observer.resume_traffic();
                    self.traffic.end(self.now_ns());
                }
                Err(error) => tracing::warn!("it is not found out again what calls move: {error}"),
            }
        }
        if !self.is_sampling()
            && let Window::Open { .. } = self.window
        {
            let now = Instant::now();
            self.window = Window::Closed { opens: now, length: Duration::ZERO, period_ends: now };
        }
    }

    /// Puts the probes of a unit on again, to stay.
    fn bring_back(&mut self, kernel: &Kernel, probes: &mut Probes, unit: u16) -> UnitState {
        if let Window::Open { .. } = self.window {
            // Those of the window have no return probes.
            self.close_window(kernel, probes);
        }
        if !self.are_removed() {
            return UnitState::Sampled;
        }
        match probes.put_on(&kernel.engine, unit, true) {
            Ok(()) => UnitState::Attached,
            Err(error) => {
                tracing::warn!("functions stay sampled: {error}");
                self.remove(probes.take_off(unit));
                UnitState::Sampled
            }
        }
    }

    fn now_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.began_ns)
    }

    /// Whether all probes are gone that were to be removed.
    fn are_removed(&mut self) -> bool {
        self.removing.retain(|thread| !thread.is_finished());
        self.removing.is_empty()
    }

    /// Removes probes, for which nobody has to wait.
    fn remove(&mut self, probes: Vec<Attachment>) {
        for attachment in probes {
            // Where no thread can be had they are removed at once.
            self.removing.extend(thread::Builder::new().name("detach".into()).spawn(move || drop(attachment)).ok());
        }
    }

    fn sampled_units(&self) -> Vec<u16> {
        let sampled = self.states.iter().filter(|(_, state)| **state == UnitState::Sampled);
        sampled.map(|(&unit, _)| unit).collect()
    }

    /// How often what is sampled has been called, and between which moments that was read.
    fn read_sampled(&self, kernel: &Kernel) -> ((Instant, Instant), BTreeMap<(u32, u32), u64>) {
        let functions: Vec<u32> = self.sampled_functions().into_iter().collect();
        let before = Instant::now();
        let calls = kernel.observer.calls_of(&functions);
        let read = (before, Instant::now());
        (read, calls.into_iter().map(|(process, function, calls)| ((process, function), calls)).collect())
    }

    fn open_window(&mut self, kernel: &Kernel, probes: &mut Probes) {
        let Window::Closed { opens, length, period_ends } = self.window else { return };
        if length.is_zero() {
            let now = Instant::now();
            return self.plan_window(now);
        }
        if !self.are_removed() {
            self.window = Window::Closed { opens: opens + REMOVING, length, period_ends };
            return;
        }
        for unit in self.sampled_units() {
            if let Err(error) = probes.put_on(&kernel.engine, unit, false) {
                tracing::warn!("a window of sampling is lost: {error}");
                for unit in self.sampled_units() {
                    self.remove(probes.take_off(unit));
                }
                return self.plan_window(period_ends);
            }
        }
        let (read, calls) = self.read_sampled(kernel);
        self.window = Window::Open { closes: read.1 + length, period_ends, read, calls };
    }

    fn close_window(&mut self, kernel: &Kernel, probes: &mut Probes) {
        let (read, calls) = self.read_sampled(kernel);
        for unit in self.sampled_units() {
            self.remove(probes.take_off(unit));
        }
        let closed = Window::Closed { opens: read.1, length: Duration::ZERO, period_ends: read.1 };
        let Window::Open { period_ends, read: first, calls: before, .. } = mem::replace(&mut self.window, closed)
        else {
            return;
        };
        let longest = read.1.saturating_duration_since(first.0).as_secs_f64();
        for (key, calls) in calls {
            let Some(&before) = before.get(&key) else { continue };
            // Of whoever has been there since before the window.
            let Some(sampled) = self.sampled.get_mut(&key) else { continue };
            let counted = Counted { calls: calls.saturating_sub(before), longest };
            sampled.end_window(counted);
            tracing::debug!("window of function {}: {counted:?}, {:.0} a second", key.1, sampled.latest_rate());
            self.rates.insert(key, sampled.latest_rate());
        }
        self.plan_window(period_ends);
    }

    /// The next window is anywhere in the next period.
    fn plan_window(&mut self, period_begins: Instant) {
        let begins = period_begins.max(Instant::now());
        let second = self.slot * 4;
        let duty = self.controller.duty();
        let length = second.mul_f64(duty.clamp(WINDOW.0 / 4.0, WINDOW.1 / 4.0));
        let period = length.div_f64(duty.max(1e-6));
        let opens = begins + period.saturating_sub(length).mul_f64(random(&mut self.random));
        self.window = Window::Closed { opens, length, period_ends: begins + period };
    }

    /// Says in a profile what was reduced, and what that makes of its numbers.
    pub(super) fn complete(&mut self, kernel: &Kernel, processes: &ProcessTable, profile: &mut Profile) {
        self.account(kernel, &running(processes));
        let mut pids = BTreeMap::new();
        processes.each_observed(|observed| {
            pids.insert(observed.process, (observed.identity.rank, observed.identity.pid));
        });
        // Those that nobody was seen to call are no rows for all.
        let called: BTreeSet<u32> =
            self.calls.iter().filter(|(_, calls)| **calls > 0).map(|((_, function), _)| *function).collect();
        let estimates: Vec<(u32, &'static str, Estimate)> = self
            .sampled
            .iter()
            .filter(|((_, function), _)| called.contains(function))
            .filter_map(|(&(process, function), sampled)| {
                let counted = self.calls.get(&(process, function)).copied().unwrap_or(0);
                Some((pids.get(&process)?.1, name(function)?, sampled.estimate(counted)))
            })
            .collect();
        let most = self.controller.paid().max_by(|one, other| one.minute.total_cmp(&other.minute));
        let spent = most.and_then(|paid| {
            let &(rank, process) = pids.get(&paid.rank)?;
            let (function, cost) = paid.function.unzip();
            Some(Spending {
                rank,
                pid: process,
                percent: 100.0 * paid.second,
                minute_percent: 100.0 * paid.minute,
                function: function.and_then(name),
                function_percent: 100.0 * cost.unwrap_or(0.0),
            })
        });
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let sampled = self.sampled_functions();
        let reduced = self.times.iter().filter(|(function, _)| called.contains(function));
        let levels = reduced.filter_map(|(&function, times)| {
            let level = match (self.by_entry.contains(&function), sampled.contains(&function)) {
                (false, _) => Level::Full,
                (true, false) => Level::Entries,
                (true, true) => Level::Sampled,
            };
            Some(Reduction {
                function: name(function)?,
                level,
                since_ns: times.since_ns,
                entries_ns: nanoseconds(times.entries),
                sampled_ns: nanoseconds(times.sampled),
            })
        });
        let budget = Budget {
            max_overhead: self.controller.limit().map(|limit| 100.0 * limit.share),
            period_ns: self.controller.limit().map(|limit| nanoseconds(self.slot * limit.slots)),
            spent,
            levels: levels.collect(),
            traffic_until_ns: self.traffic.first,
            traffic_paused_ns: self.traffic.in_all_ns(self.now_ns()),
            traffic_is_back: self.traffic.first.is_some() && !self.has_paused_traffic(),
        };
        profile.limit(budget, &estimates);
    }

    /// Whether requests are not followed now: what is known of them is out of date.
    pub(super) fn has_paused_traffic(&self) -> bool {
        self.traffic.since.is_some()
    }

    /// Waits until all probes are gone that were to be removed.
    pub(super) fn end(self) {
        for thread in self.removing {
            // It has only dropped something.
            let _ = thread.join();
        }
    }
}

fn name(function: u32) -> Option<&'static str> {
    Some(FunctionId::from_index(u16::try_from(function).ok()?)?.function().name)
}

/// The slots of those who are there.
fn running(processes: &ProcessTable) -> BTreeSet<u32> {
    let mut running = BTreeSet::new();
    processes.each_observed(|observed| {
        if observed.state == RankState::Running {
            running.insert(observed.process);
        }
    });
    running
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_numbers_are_below_1_and_even() {
        let mut state = 1;
        let numbers: Vec<f64> = (0..10_000).map(|_| random(&mut state)).collect();
        assert!(numbers.iter().all(|number| (0.0..1.0).contains(number)));
        assert!((numbers.iter().sum::<f64>() / 10_000.0 - 0.5).abs() < 0.02);
    }
}
