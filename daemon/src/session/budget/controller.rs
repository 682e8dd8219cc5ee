//! Which functions are counted with less care, so that observing costs no rank more than it may. Does no I/O and knows no clock: it is
//! told how often probes were hit in a slot of time, and says how functions are to be counted from then on.
//!
//! The limit holds over any time of its period: what a rank has paid in the last one and what it would pay from now on are never more
//! together. Half of a period's budget may be spent at once, so that a short program is counted to its last call; what is more than that
//! is spent evenly.

use std::collections::{BTreeMap, VecDeque};

use mpiprobe_model::Level;

/// Slots of time in a minute.
pub(super) const SLOTS: u32 = 240;
/// What is kept of a minute, slot by slot, and of a period, in as many parts.
const LENGTH: usize = SLOTS as usize;
/// Of the limit, what a level may cost for functions to come back to it.
const COMFORTABLE: f64 = 0.8;
/// Slots in which that must have been so: 10 s.
const CALM_SLOTS: u32 = SLOTS / 6;
/// How often that doubles for what had to go down again, after the steps down that are usual.
const MOST_DOUBLINGS: u32 = 5;
const USUAL_DOWNS: u32 = 2;
/// Of the limit, what a function must cost at least to be reduced for it: what costs less is not what is too dear. While all together would
/// keep the limit from now on, and it is what has been spent already that is too much, only functions that cost more than that.
const MATTERS: (f64, f64) = (0.05, 0.25);
/// Of the time, that in which functions are probed that are sampled.
const DUTY: (f64, f64) = (0.001, 0.1);
/// Of what sampling may cost, what is planned: windows take a little longer than they should.
const PLANNED: f64 = 0.7;

/// What may be paid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limit {
    /// Of a rank's time.
    pub(super) share: f64,
    /// Over any time of so many slots.
    pub(super) slots: u32,
}

impl Limit {
    /// Slots that are a part of a period.
    fn slots_per_part(self) -> u32 {
        self.slots.div_ceil(SLOTS).max(1)
    }
}

/// What a probe hit costs, s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Costs {
    /// With what the call has moved.
    pub(super) traffic: f64,
    pub(super) full: f64,
    pub(super) entry: f64,
}

/// What has to be known of a function that may be reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    /// Functions of a unit are probed together, and not, where they are sampled.
    pub(super) unit: u16,
    /// Its calls have to be followed from entry to return, or it is not known what others move.
    pub(super) is_followed: bool,
}

/// What a rank has called in a slot of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Load {
    /// Whose: any number.
    pub(super) rank: u32,
    pub(super) calls: Vec<Calls>,
    /// Hits by calls that MPI makes inside MPI, in the slot and per second.
    pub(super) inner_hits: f64,
    pub(super) inner_rate: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Calls {
    pub(super) function: u32,
    /// Probe hits in the slot.
    pub(super) hits: f64,
    /// Calls per second as long as it is probed: of a sampled function, as they were in windows.
    pub(super) rate: f64,
}

/// What a rank pays, of its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Paid {
    pub(super) rank: u32,
    /// In the last second, and in the last minute.
    pub(super) second: f64,
    pub(super) minute: f64,
    /// The function that costs most in the last slot, and what.
    pub(super) function: Option<(u32, f64)>,
}

/// Decides. Times are in slots.
#[derive(Debug)]
pub(super) struct Controller {
    /// `None`: whatever it costs.
    limit: Option<Limit>,
    /// A slot, s.
    slot: f64,
    costs: Costs,
    facts: BTreeMap<u32, Facts>,
    can_sample: bool,
    /// What calls move is to be found out, and is now.
    wants_traffic: bool,
    traffic: bool,
    /// How long it could have been found out again.
    traffic_calm: Calm,
    reduced: BTreeMap<u32, Level>,
    calm: BTreeMap<u32, Calm>,
    duty: f64,
    ranks: BTreeMap<u32, Account>,
}

/// How long a function, or what calls move, could have come back, and how often it had to go down.
#[derive(Clone, Copy, Debug, Default)]
struct Calm {
    slots: u32,
    downs: u32,
}

impl Calm {
    fn go_down(&mut self) {
        self.slots = 0;
        self.downs = (self.downs + 1).min(MOST_DOUBLINGS + USUAL_DOWNS);
    }

    /// One more slot, in which it would have been cheap enough or not.
    fn pass(&mut self, fits: bool) {
        self.slots = if fits { self.slots.saturating_add(1) } else { 0 };
    }

    /// Whether that has been so for long enough.
    fn is_over(self) -> bool {
        self.slots >= CALM_SLOTS << self.downs.saturating_sub(USUAL_DOWNS).min(MOST_DOUBLINGS)
    }
}

/// What a rank has paid.
#[derive(Clone, Debug, Default)]
struct Account {
    /// In each slot of the last minute, s, latest last.
    minute: VecDeque<f64>,
    /// In each part of the last period, s, latest last.
    period: VecDeque<f64>,
    /// Slots of a part that is not over yet, the latest.
    begun: u32,
    dearest: Option<(u32, f64)>,
}

impl Account {
    /// `slots_per_part`: of a period, if there is any.
    fn add(&mut self, paid: f64, slots_per_part: Option<u32>) {
        if self.minute.len() >= LENGTH {
            self.minute.pop_front();
        }
        self.minute.push_back(paid);
        let Some(slots_per_part) = slots_per_part else { return };
        match self.period.back_mut() {
            Some(part) if self.begun > 0 => *part += paid,
            _ => self.period.push_back(paid),
        }
        self.begun = (self.begun + 1) % slots_per_part;
        // What has been paid in a part is still of the last period as long as the latest one is not over.
        if self.begun == 0 && self.period.len() > LENGTH {
            self.period.pop_front();
        }
    }

    /// What may be paid in each slot from now on, so that no period ever has more than `most` (s).
    fn allowed(&self, most: f64, slots_per_part: u32) -> f64 {
        let mut kept: f64 = self.period.iter().sum();
        let whole = self.period.len() - usize::from(self.begun > 0);
        // None leaves the period before it is full.
        let mut leaves = std::iter::repeat_n(None, LENGTH - whole.min(LENGTH)).chain(self.period.iter().map(Some));
        let mut least = f64::INFINITY;
        for parts in 1..=SLOTS + 1 {
            // Slots before that part ends, of which the first is the one that is under way: when it does, the oldest leaves.
            let ahead = parts * slots_per_part - self.begun - 1;
            if ahead > 0 {
                least = least.min((most - kept) / f64::from(ahead));
            }
            kept -= leaves.next().flatten().copied().unwrap_or(0.0);
        }
        least.max(0.0)
    }
}

impl Controller {
    pub(super) fn new(
        limit: Option<Limit>,
        slot: f64,
        costs: Costs,
        facts: BTreeMap<u32, Facts>,
        (can_sample, traffic): (bool, bool),
    ) -> Self {
        let (reduced, calm, ranks) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self {
            limit,
            slot,
            costs,
            facts,
            can_sample,
            wants_traffic: traffic,
            traffic,
            traffic_calm: Calm::default(),
            reduced,
            calm,
            duty: DUTY.1,
            ranks,
        }
    }

    /// Reduces nothing any more, whatever it costs.
    pub(super) fn give_up(&mut self) {
        self.limit = None;
        self.reduced.clear();
        self.traffic = self.wants_traffic;
    }

    /// Whether a function may be sampled.
    pub(super) fn may_sample(&self) -> bool {
        self.limit.is_some() && self.can_sample
    }

    /// `None`: whatever it costs.
    pub(super) fn limit(&self) -> Option<Limit> {
        self.limit
    }

    pub(super) fn level(&self, function: u32) -> Level {
        self.reduced.get(&function).copied().unwrap_or(Level::Full)
    }

    /// Functions that are not at [`Level::Full`].
    pub(super) fn reduced(&self) -> impl Iterator<Item = (u32, Level)> {
        self.reduced.iter().map(|(&function, &level)| (function, level))
    }

    /// Whether it is not found out what calls move although that is wanted.
    pub(super) fn pauses_traffic(&self) -> bool {
        self.wants_traffic && !self.traffic
    }

    /// Whether calls of a function have to be followed from entry to return, or it is not known what others move.
    pub(super) fn is_followed(&self, function: u32) -> bool {
        self.facts.get(&function).is_some_and(|facts| facts.is_followed)
    }

    /// Of the time, that in which sampled functions are to be probed.
    pub(super) fn duty(&self) -> f64 {
        self.duty
    }

    /// What each rank pays.
    pub(super) fn paid(&self) -> impl Iterator<Item = Paid> {
        self.ranks.iter().map(|(&rank, account)| {
            let of_last =
                |slots: usize| account.minute.iter().rev().take(slots).sum::<f64>() / (slots as f64 * self.slot);
            Paid { rank, second: of_last(LENGTH / 60), minute: of_last(LENGTH), function: account.dearest }
        })
    }

    fn cost(&self, level: Level) -> f64 {
        self.cost_with(level, self.traffic)
    }

    fn cost_with(&self, level: Level, traffic: bool) -> f64 {
        match level {
            Level::Full if traffic => self.costs.traffic,
            Level::Full => self.costs.full,
            Level::Entries | Level::Sampled => self.costs.entry,
        }
    }

    /// What a rank would pay, of its time, as functions are counted now. `but`: with these at other levels.
    fn predicted(&self, load: &Load, but: &dyn Fn(u32, Level) -> Level) -> f64 {
        self.predicted_with(load, self.traffic, but)
    }

    fn predicted_with(&self, load: &Load, traffic: bool, but: &dyn Fn(u32, Level) -> Level) -> f64 {
        let of = |calls: &Calls| {
            let level = but(calls.function, self.level(calls.function));
            let share = (calls.rate * self.cost_with(level, traffic)).min(1.0);
            if level == Level::Sampled { share * self.duty } else { share }
        };
        load.calls.iter().map(of).sum::<f64>() + load.inner_rate * self.costs.entry
    }

    /// A slot is over.
    pub(super) fn end_slot(&mut self, loads: &[Load]) {
        self.charge(loads);
        let Some(limit) = self.limit else { return };
        let (most, slots_per_part) = (limit.share * self.slot * f64::from(limit.slots), limit.slots_per_part());
        let limit = limit.share;
        let allowed = |account: &Account| account.allowed(most, slots_per_part) / self.slot;
        let allowed: Vec<f64> = loads.iter().map(|load| self.ranks.get(&load.rank).map_or(limit, allowed)).collect();
        let mut went_down = false;
        // Each turn takes one function or unit down one level: this ends.
        while let Some(function) = self.too_dear(loads, &allowed, limit) {
            self.lower(function);
            went_down = true;
        }
        self.set_duty(loads, &allowed);
        if !went_down {
            self.look_who_may_come_back(loads, &allowed, limit);
        }
    }

    fn charge(&mut self, loads: &[Load]) {
        let cost = |calls: &Calls| calls.hits * self.cost(self.level(calls.function));
        let charged: Vec<(f64, Option<(u32, f64)>)> = loads
            .iter()
            .map(|load| {
                let paid: f64 = load.calls.iter().map(cost).sum();
                let dearest = load.calls.iter().max_by(|one, other| cost(one).total_cmp(&cost(other)));
                let dearest = dearest.map(|calls| (calls.function, cost(calls) / self.slot));
                (paid + load.inner_hits * self.costs.entry, dearest)
            })
            .collect();
        // Of those who have ended nothing is to be kept, unless they were the last.
        if !loads.is_empty() {
            self.ranks.retain(|rank, _| loads.iter().any(|load| load.rank == *rank));
        }
        let slots_per_part = self.limit.map(Limit::slots_per_part);
        for (load, (paid, dearest)) in loads.iter().zip(charged) {
            let account = self.ranks.entry(load.rank).or_default();
            account.add(paid, slots_per_part);
            account.dearest = dearest;
        }
    }

    /// The function to be counted with less care, if somebody would pay too much: the one that costs that rank most.
    fn too_dear(&self, loads: &[Load], allowed: &[f64], limit: f64) -> Option<u32> {
        let same = |_, level| level;
        let pays = |(load, allowed): (_, &f64)| {
            let predicted = self.predicted(load, &same);
            // As long as there is half of a minute's budget left, it may be spent.
            (*allowed < limit / 2.0 && predicted > *allowed).then(|| (load, predicted - allowed))
        };
        let worst = loads.iter().zip(allowed).filter_map(pays).max_by(|one, other| one.1.total_cmp(&other.1));
        let (load, _) = worst?;
        let cost = |calls: &Calls| (calls.rate * self.cost(self.level(calls.function))).min(1.0);
        let least = if self.predicted(load, &same) > limit { MATTERS.0 } else { MATTERS.1 };
        let matters = |calls: &&Calls| cost(calls) >= least * limit && self.can_lower(calls.function);
        let lowerable = load.calls.iter().filter(matters);
        lowerable.max_by(|one, other| cost(one).total_cmp(&cost(other))).map(|calls| calls.function)
    }

    fn can_lower(&self, function: u32) -> bool {
        self.facts.contains_key(&function)
            && match self.level(function) {
                Level::Full => true,
                Level::Entries => self.can_sample,
                Level::Sampled => false,
            }
    }

    /// One level down. A function whose calls have to be followed takes with it what is known of all others' bytes.
    fn lower(&mut self, function: u32) {
        let Some(&facts) = self.facts.get(&function) else { return };
        match self.level(function) {
            Level::Full if self.traffic && facts.is_followed => self.end_traffic(),
            Level::Full => self.set(function, Level::Entries),
            Level::Entries => {
                // Those that are probed together with it leave their probes together.
                let unit: Vec<u32> =
                    self.facts.iter().filter(|(_, other)| other.unit == facts.unit).map(|(&other, _)| other).collect();
                if self.traffic && unit.iter().any(|&other| self.is_followed(other)) {
                    self.end_traffic();
                }
                for other in unit {
                    self.set(other, Level::Sampled);
                }
            }
            Level::Sampled => {}
        }
    }

    fn end_traffic(&mut self) {
        self.traffic = false;
        self.traffic_calm.go_down();
    }

    fn set(&mut self, function: u32, level: Level) {
        let calm = self.calm.entry(function).or_default();
        calm.slots = 0;
        if level > self.reduced.get(&function).copied().unwrap_or(Level::Full) {
            calm.go_down();
        }
        if level == Level::Full {
            self.reduced.remove(&function);
        } else {
            self.reduced.insert(function, level);
        }
    }

    /// How long windows may be, by whoever may pay least for them.
    fn set_duty(&mut self, loads: &[Load], allowed: &[f64]) {
        let mut duty = DUTY.1;
        for (load, allowed) in loads.iter().zip(allowed) {
            let is_sampled = |calls: &&Calls| self.level(calls.function) == Level::Sampled;
            let sampled = load.calls.iter().filter(is_sampled);
            let attached: f64 = sampled.map(|calls| (calls.rate * self.costs.entry).min(1.0)).sum();
            if attached > 0.0 {
                let others = self.predicted(load, &|_, level| level) - attached * self.duty;
                duty = duty.min(PLANNED * (allowed - others) / attached);
            }
        }
        self.duty = duty.clamp(DUTY.0, DUTY.1);
    }

    /// One function, or one unit, comes up one level if nobody would pay much for it, and would not have for some time.
    fn look_who_may_come_back(&mut self, loads: &[Load], allowed: &[f64], limit: f64) {
        let is_calm = allowed.iter().all(|allowed| *allowed >= limit / 2.0);
        let candidates: Vec<(u32, Level)> = self.reduced().collect();
        let mut may_come: Vec<(f64, u32, Level)> = Vec::new();
        for (function, level) in candidates {
            let Some(&facts) = self.facts.get(&function) else { continue };
            let (up, moves): (Level, Box<dyn Fn(u32) -> bool>) = match level {
                Level::Sampled => {
                    (Level::Entries, Box::new(|other| self.facts.get(&other).is_some_and(|it| it.unit == facts.unit)))
                }
                _ => (Level::Full, Box::new(|other| other == function)),
            };
            let but = |other, now: Level| if moves(other) { up.min(now) } else { now };
            let most = loads.iter().map(|load| self.predicted(load, &but)).fold(0.0, f64::max);
            let fits = is_calm && most <= COMFORTABLE * limit;
            let mut calm = self.calm.get(&function).copied().unwrap_or_default();
            calm.pass(fits);
            if calm.is_over() {
                may_come.push((most, function, up));
            }
            self.calm.insert(function, calm);
        }
        let Some((_, function, up)) = may_come.into_iter().min_by(|one, other| one.0.total_cmp(&other.0)) else {
            return self.look_whether_traffic_may_come_back(loads, is_calm, limit);
        };
        if up == Level::Full {
            self.set(function, up);
        } else if let Some(unit) = self.facts.get(&function).map(|facts| facts.unit) {
            let all: Vec<u32> =
                self.facts.iter().filter(|(_, facts)| facts.unit == unit).map(|(&function, _)| function).collect();
            for function in all {
                self.set(function, up);
            }
        }
    }

    /// What calls move is found out again if all calls are followed that have to be, and nobody would pay much for it.
    fn look_whether_traffic_may_come_back(&mut self, loads: &[Load], is_calm: bool, limit: f64) {
        if !self.pauses_traffic() {
            return;
        }
        let all_are_followed = !self.reduced().any(|(function, _)| self.is_followed(function));
        let most = loads.iter().map(|load| self.predicted_with(load, true, &|_, now| now)).fold(0.0, f64::max);
        self.traffic_calm.pass(is_calm && all_are_followed && most <= COMFORTABLE * limit);
        self.traffic = self.traffic_calm.is_over();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Costs = Costs { traffic: 950e-9, full: 711e-9, entry: 462e-9 };
    const SLOT: f64 = 0.25;
    const POLL: u32 = 1;
    const SEND: u32 = 2;
    const TEST: u32 = 3;

    fn controller(limit: f64, traffic: bool) -> Controller {
        controller_of(Limit { share: limit, slots: SLOTS }, traffic)
    }

    fn controller_of(limit: Limit, traffic: bool) -> Controller {
        let facts = [
            (POLL, Facts { unit: 100, is_followed: false }),
            (SEND, Facts { unit: 1, is_followed: false }),
            (TEST, Facts { unit: 101, is_followed: true }),
        ];
        Controller::new(Some(limit), SLOT, COSTS, facts.into(), (true, traffic))
    }

    /// A program that calls so often in a second where nobody looks: it is slower where calls are probed.
    struct Program {
        calls: Vec<(u32, f64)>,
    }

    impl Program {
        fn load(&self, controller: &Controller) -> Load {
            let calls = self.calls.iter().map(|&(function, free)| {
                let level = controller.level(function);
                let cost = controller.cost(level);
                // Calls of a loop without anything else: each takes longer by the cost.
                let rate = 1.0 / (1.0 / free + cost);
                let share = if level == Level::Sampled { controller.duty() } else { 1.0 };
                Calls { function, hits: rate * SLOT * share, rate }
            });
            Load { rank: 0, calls: calls.collect(), inner_hits: 0.0, inner_rate: 0.0 }
        }
    }

    fn spent(controller: &Controller) -> f64 {
        controller.paid().map(|paid| paid.minute).fold(0.0, f64::max)
    }

    /// A sequence of numbers below 1 that is the same each time.
    fn numbers(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed;
        move || super::super::random(&mut state)
    }

    #[test]
    fn a_short_program_is_counted_to_its_last_call() {
        let mut controller = controller(0.02, false);
        let program = Program { calls: vec![(SEND, 1e6)] };
        controller.end_slot(&[program.load(&controller)]);
        assert_eq!(controller.reduced().count(), 0);
    }

    /// As nobody has said anything else, a loop that costs four tenths of the time is counted exactly for a quarter of a minute.
    #[test]
    fn a_longer_period_is_spent_at_once_by_half() {
        let mut controller = controller_of(Limit { share: 0.02, slots: 10 * SLOTS }, false);
        let program = Program { calls: vec![(POLL, 1e6)] };
        let mut exact = 0;
        while controller.level(POLL) == Level::Full {
            controller.end_slot(&[program.load(&controller)]);
            exact += 1;
        }
        let paid = controller.ranks.values().map(|account| account.period.iter().sum::<f64>()).fold(0.0, f64::max);
        assert!((6.0..6.2).contains(&paid), "{paid} s");
        assert!((55..62).contains(&exact), "{exact} slots");
    }

    #[test]
    fn the_dearest_function_is_reduced_and_no_other() {
        let mut controller = controller(0.02, false);
        let program = Program { calls: vec![(POLL, 3e6), (SEND, 2e3)] };
        for _ in 0..SLOTS {
            controller.end_slot(&[program.load(&controller)]);
        }
        assert_eq!((controller.level(POLL), controller.level(SEND)), (Level::Sampled, Level::Full));
        assert!(controller.duty() < 0.05);
    }

    #[test]
    fn what_is_cheap_enough_by_its_entries_is_not_sampled_for_long() {
        let mut controller = controller(0.02, false);
        // 2.1 % of the time, or 1.4 %. After its first minute there is room for that.
        let program = Program { calls: vec![(SEND, 3e4)] };
        let mut levels = Vec::new();
        for _ in 0..20 * SLOTS {
            controller.end_slot(&[program.load(&controller)]);
            levels.push(controller.level(SEND));
        }
        assert!(spent(&controller) <= 0.02);
        assert!(levels.contains(&Level::Entries));
    }

    /// Invariant WITHIN-BUDGET.
    #[test]
    fn no_period_costs_more_than_it_may() {
        for seed in 1..60 {
            let mut number = numbers(seed as u64);
            let limit = 0.01 + 0.04 * number();
            let minutes = [1, 10, 3, 61].into_iter().cycle().nth(seed).unwrap();
            let length = minutes * SLOTS;
            let mut controller = controller_of(Limit { share: limit, slots: length }, seed % 3 == 0);
            let mut program = Program { calls: Vec::new() };
            let (mut slots, mut period) = (VecDeque::new(), 0.0);
            for slot in 0..20 * SLOTS.max(length / 4) {
                if slot % 40 == 0 && number() < 0.3 {
                    let rate = |number: &mut dyn FnMut() -> f64| 10f64.powf(2.0 + 4.7 * number());
                    program.calls =
                        vec![(POLL, rate(&mut number)), (SEND, rate(&mut number)), (TEST, rate(&mut number))];
                }
                let load = program.load(&controller);
                let paid: f64 =
                    load.calls.iter().map(|calls| calls.hits * controller.cost(controller.level(calls.function))).sum();
                slots.push_back(paid);
                period += paid;
                if slots.len() > length as usize {
                    period -= slots.pop_front().unwrap();
                }
                controller.end_slot(&[load]);
                // A slot is over before it is known what it has cost: three loops without anything else at once.
                let most = (limit * 60.0 * f64::from(minutes)).max(3.0 * SLOT) + 3.0 * SLOT;
                assert!(period <= most, "seed {seed}, slot {slot}: {period} s of {most} s");
            }
        }
    }

    #[test]
    fn a_steady_program_is_held_to_the_limit() {
        for (limit, calls) in
            [(0.02, vec![(POLL, 5e6)]), (0.01, vec![(POLL, 5e6)]), (0.05, vec![(SEND, 2e5), (TEST, 1e6)])]
        {
            let mut controller = controller(limit, false);
            let program = Program { calls };
            let mut most: f64 = 0.0;
            for slot in 0..10 * SLOTS {
                controller.end_slot(&[program.load(&controller)]);
                // The first slots cost what they cost.
                if slot > SLOTS + 8 {
                    most = most.max(spent(&controller));
                }
            }
            assert!(most <= limit && most > limit / 20.0, "{most} of {limit}");
        }
    }

    #[test]
    fn functions_come_back_when_rates_fall_and_do_not_flap() {
        let mut controller = controller(0.02, false);
        let busy = Program { calls: vec![(POLL, 5e6), (SEND, 100.0)] };
        for _ in 0..SLOTS {
            controller.end_slot(&[busy.load(&controller)]);
        }
        assert_eq!(controller.level(POLL), Level::Sampled);
        let quiet = Program { calls: vec![(POLL, 100.0), (SEND, 100.0)] };
        for _ in 0..2 * SLOTS {
            controller.end_slot(&[quiet.load(&controller)]);
        }
        assert_eq!(controller.level(POLL), Level::Full);
        // Just above what it may cost: it goes down once.
        let mut controller = self::controller(0.02, false);
        let program = Program { calls: vec![(SEND, 3.2e4)] };
        let mut changes = 0;
        for _ in 0..30 * SLOTS {
            let before = controller.level(SEND);
            controller.end_slot(&[program.load(&controller)]);
            changes += u32::from(controller.level(SEND) != before);
        }
        assert!(changes <= 3, "{changes}");
    }

    #[test]
    fn what_others_need_takes_the_bytes_of_all_with_it() {
        let mut controller = controller(0.02, true);
        let polls = Program { calls: vec![(POLL, 5e6)] };
        for _ in 0..SLOTS {
            controller.end_slot(&[polls.load(&controller)]);
        }
        assert!(controller.traffic && controller.level(POLL) == Level::Sampled);
        let tests = Program { calls: vec![(TEST, 5e6)] };
        for _ in 0..SLOTS {
            controller.end_slot(&[tests.load(&controller)]);
        }
        assert!(!controller.traffic && controller.level(TEST) == Level::Sampled);
        // It comes back when all are followed that have to be.
        let polls = Program { calls: vec![(POLL, 5e6), (TEST, 100.0)] };
        let mut was_back = Vec::new();
        for _ in 0..5 * SLOTS {
            controller.end_slot(&[polls.load(&controller)]);
            was_back.push((controller.traffic, controller.level(TEST)));
        }
        assert!(was_back.iter().all(|(traffic, level)| !traffic || *level == Level::Full), "{was_back:?}");
        assert!(controller.traffic && controller.level(POLL) == Level::Sampled);
        // Where nobody has asked for it, it does not come.
        let mut controller = self::controller(0.02, false);
        for _ in 0..5 * SLOTS {
            controller.end_slot(&[Load::default()]);
        }
        assert!(!controller.traffic);
    }

    #[test]
    fn without_a_limit_nothing_is_reduced() {
        let facts = BTreeMap::from([(POLL, Facts { unit: 1, is_followed: false })]);
        let mut controller = Controller::new(None, SLOT, COSTS, facts, (true, true));
        let program = Program { calls: vec![(POLL, 5e6)] };
        for _ in 0..SLOTS {
            controller.end_slot(&[program.load(&controller)]);
        }
        assert_eq!(controller.reduced().count(), 0);
        assert!(spent(&controller) > 0.5);
    }
}
