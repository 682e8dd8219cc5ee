//! What has happened between two looks at a job.
//!
//! Profiles are sums since the beginning. To say what happens now, the numbers that only grow are kept of earlier looks, without
//! all that makes a profile large.

use std::{collections::HashMap, sync::Arc};

use mpiprobe_functions::Group;

use super::waited::{WaitChange, WaitLook};
use crate::{Efficiency, FunctionRow, Profile, RankProfile, SaturatingSum as _, Spent, Window};

/// One process image among the rows of all profiles of an observation: the pid, and which image of that process it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RankId {
    pub pid: u32,
    pub image: u16,
}

/// The growing numbers of a profile.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// Time since the beginning of observation, ns.
    pub at_ns: u64,
    ranks: HashMap<RankId, RankLook>,
    waits: WaitLook,
}

#[derive(Clone, Debug, Default)]
struct RankLook {
    numbers: RankChange,
    /// In the order of where their names are in memory.
    functions: Vec<(&'static str, FunctionChange)>,
}

/// What one rank has done meanwhile. Times in ns, of all its threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankChange {
    pub wall_ns: u64,
    pub thread_wall_ns: u64,
    /// Completed calls, and open ones as far as they have got.
    pub mpi_ns: u64,
    /// Of that, what starts and ends MPI.
    pub startup_ns: u64,
    /// Of the wall time, what may have been spent in a call that nobody saw begin.
    pub unseen_ns: u64,
    pub calls: u64,
    /// Of these, the ones whose time nobody knows.
    pub untimed_calls: u64,
    /// `None`: it was not asked what calls move.
    pub bytes: Option<Bytes>,
}

/// What the calls of a function have done meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionChange {
    pub calls: u64,
    /// Completed calls, and open ones as far as they have got.
    pub time_ns: u64,
    pub bytes: Option<Bytes>,
}

/// Data that was moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    pub sent: u64,
    pub received: u64,
    /// Calls that moved data one way or the other, or might have.
    pub messages: u64,
}

/// The difference of two looks: ranks in the order of the later profile, functions in the order of each rank's.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// From the earlier look to the later one, ns.
    pub span_ns: u64,
    pub ranks: Vec<(RankChange, Vec<FunctionChange>)>,
    /// Who has waited for whom; `None`: it was not asked.
    pub waits: Option<Arc<WaitChange>>,
}

impl Look {
    pub fn of(profile: &Profile) -> Self {
        let ranks = identify(&profile.ranks).zip(&profile.ranks).map(|(id, rank)| (id, RankLook::of(rank)));
        Self { at_ns: profile.observed_ns, ranks: ranks.collect(), waits: WaitLook::of(profile) }
    }
}

impl RankLook {
    fn of(rank: &RankProfile) -> Self {
        let mut functions: Vec<_> = rank.functions.iter().map(|row| (row.name, FunctionChange::total(row))).collect();
        functions.sort_unstable_by_key(|&(name, _)| name.as_ptr());
        Self { numbers: RankChange::total(rank), functions }
    }

    fn function(&self, name: &'static str) -> FunctionChange {
        let found = self.functions.binary_search_by_key(&name.as_ptr(), |(known, _)| known.as_ptr());
        let same = found.ok().and_then(|index| self.functions.get(index));
        // A name is in memory once as a rule, and this is asked for each function of each rank.
        let found = same.or_else(|| self.functions.iter().find(|(known, _)| *known == name));
        found.map(|(_, change)| *change).unwrap_or_default()
    }
}

impl Change {
    /// What has happened since `base`; since the beginning without one.
    pub fn since(base: Option<&Look>, profile: &Profile) -> Self {
        let ranks = identify(&profile.ranks).zip(&profile.ranks).map(|(id, rank)| {
            let before = base.and_then(|base| base.ranks.get(&id));
            let functions = rank.functions.iter().map(|row| {
                FunctionChange::total(row).since(before.map(|before| before.function(row.name)).unwrap_or_default())
            });
            let numbers = RankChange::total(rank).since(before.map(|before| before.numbers).unwrap_or_default());
            (numbers, functions.collect())
        });
        Self {
            span_ns: profile.observed_ns.saturating_sub(base.map_or(0, |base| base.at_ns)),
            ranks: ranks.collect(),
            waits: WaitChange::since(base.map(|base| &base.waits), profile).map(Arc::new),
        }
    }

    /// How well processors were used meanwhile.
    pub fn efficiency(&self) -> Option<Efficiency> {
        Efficiency::of_ranks(self.spent())
    }

    /// Time in MPI of all ranks over the time of their threads that use it, per cent; 0 of no time. `None`: not known.
    pub fn mpi_percent(&self) -> Option<f64> {
        all_together(self.spent()).mpi_percent()
    }

    /// Of the time of all ranks without what starts and ends MPI, per cent in MPI; `None`: not known.
    pub fn communication_percent(&self) -> Option<f64> {
        let (useful, wall) = all_together(self.spent()).useful()?;
        Some(if wall > 0.0 { 100.0 * (1.0 - useful / wall) } else { 0.0 })
    }

    /// The rank that computes longest, by its place, and of its time without what starts and ends MPI, how much it does, per cent.
    pub fn busiest(&self) -> Option<(usize, f64)> {
        let useful = self.ranks.iter().map(|(rank, _)| rank.spent().useful()).enumerate();
        let known = useful.filter_map(|(place, useful)| Some((place, useful?)));
        let (place, (useful, wall)) = known.reduce(|one, other| if other.1.0 > one.1.0 { other } else { one })?;
        Some((place, if wall > 0.0 { 100.0 * useful / wall } else { 0.0 }))
    }

    /// Time of all ranks in MPI without what starts and ends it, ns; `None`: not known.
    pub(super) fn communication_ns(&self) -> Option<u64> {
        let (useful, wall) = all_together(self.spent()).useful()?;
        Some(whole_ns(wall - useful))
    }

    /// How much longer all ranks together would have computed if each had as long as the one that does longest, ns; `None`: not known.
    pub(super) fn idle_ns(&self) -> Option<u64> {
        let useful: Vec<f64> = self.spent().map(|rank| Some(rank.useful()?.0)).collect::<Option<_>>()?;
        let most = useful.iter().copied().fold(0.0, f64::max);
        Some(whole_ns(useful.iter().map(|own| most - own).sum()))
    }

    pub(super) fn spent(&self) -> impl Iterator<Item = Spent> {
        self.ranks.iter().map(|(rank, _)| rank.spent())
    }

    /// The same over all ranks, as it is printed.
    pub fn window(&self) -> Window {
        Window {
            span_ns: self.span_ns,
            calls: self.ranks.iter().map(|(rank, _)| rank.calls).saturating_sum(),
            mpi_percent_of_all: self.mpi_percent(),
            efficiency: self.efficiency(),
        }
    }

    /// A number of one second, of a number of the whole span.
    pub fn per_second(&self, number: u64) -> f64 {
        if self.span_ns == 0 { 0.0 } else { number as f64 / (self.span_ns as f64 / 1e9) }
    }
}

impl RankChange {
    fn total(rank: &RankProfile) -> Self {
        let bytes = rank.functions.iter().filter_map(Bytes::of).reduce(Bytes::plus);
        Self {
            wall_ns: rank.wall_ns,
            thread_wall_ns: rank.thread_wall_ns,
            mpi_ns: rank.mpi_ns,
            startup_ns: startup_ns(rank),
            unseen_ns: rank.unseen_ns,
            calls: rank.calls,
            untimed_calls: rank.untimed_calls,
            bytes: bytes.or_else(|| rank.traffic.as_ref().map(|_| Bytes::default())),
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            wall_ns: self.wall_ns.saturating_sub(before.wall_ns),
            thread_wall_ns: self.thread_wall_ns.saturating_sub(before.thread_wall_ns),
            mpi_ns: self.mpi_ns.saturating_sub(before.mpi_ns),
            startup_ns: self.startup_ns.saturating_sub(before.startup_ns),
            unseen_ns: self.unseen_ns.saturating_sub(before.unseen_ns),
            calls: self.calls.saturating_sub(before.calls),
            untimed_calls: self.untimed_calls.saturating_sub(before.untimed_calls),
            bytes: self.bytes.map(|bytes| bytes.since(before.bytes)),
        }
    }

    /// Time in MPI, per cent of the time of the threads that use it; 0 of no time. `None`: not known.
    pub fn mpi_percent(&self) -> Option<f64> {
        self.spent().mpi_percent()
    }

    fn spent(&self) -> Spent {
        let Self { wall_ns, thread_wall_ns, mpi_ns, startup_ns, unseen_ns, untimed_calls, .. } = *self;
        Spent { wall_ns, thread_wall_ns, mpi_ns, startup_ns, unseen_ns, untimed_calls }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and times are not negative")]
fn whole_ns(ns: f64) -> u64 {
    ns as u64
}

/// The time of all these ranks.
pub(super) fn all_together(ranks: impl Iterator<Item = Spent>) -> Spent {
    ranks.fold(Spent::default(), |all, more| Spent {
        wall_ns: all.wall_ns.saturating_add(more.wall_ns),
        thread_wall_ns: all.thread_wall_ns.saturating_add(more.thread_wall_ns),
        mpi_ns: all.mpi_ns.saturating_add(more.mpi_ns),
        startup_ns: all.startup_ns.saturating_add(more.startup_ns),
        unseen_ns: all.unseen_ns.saturating_add(more.unseen_ns),
        untimed_calls: all.untimed_calls.saturating_add(more.untimed_calls),
    })
}

/// Time in calls that start or end MPI, ns.
fn startup_ns(rank: &RankProfile) -> u64 {
    let rows = rank.functions.iter().filter(|row| row.group == Group::InitFinalize.title());
    rows.map(FunctionRow::spent_ns).fold(0, u64::saturating_add)
}

impl FunctionChange {
    fn total(row: &FunctionRow) -> Self {
        Self { calls: row.calls, time_ns: row.spent_ns(), bytes: Bytes::of(row) }
    }

    fn since(self, before: Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(before.calls),
            time_ns: self.time_ns.saturating_sub(before.time_ns),
            bytes: self.bytes.map(|bytes| bytes.since(before.bytes)),
        }
    }

    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        let bytes = match (self.bytes, more.bytes) {
            (Some(bytes), Some(more)) => Some(bytes.plus(more)),
            (bytes, more) => bytes.or(more),
        };
        Self { calls: self.calls.saturating_add(more.calls), time_ns: self.time_ns.saturating_add(more.time_ns), bytes }
    }
}

impl Bytes {
    fn of(row: &FunctionRow) -> Option<Self> {
        let traffic = row.traffic.as_ref()?;
        Some(Self {
            sent: traffic.sent.bytes,
            received: traffic.received.bytes,
            messages: traffic.sent.messages.max(traffic.received.messages),
        })
    }

    fn since(self, before: Option<Self>) -> Self {
        let before = before.unwrap_or_default();
        Self {
            sent: self.sent.saturating_sub(before.sent),
            received: self.received.saturating_sub(before.received),
            messages: self.messages.saturating_sub(before.messages),
        }
    }

    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        Self {
            sent: self.sent.saturating_add(more.sent),
            received: self.received.saturating_add(more.received),
            messages: self.messages.saturating_add(more.messages),
        }
    }
}

/// The rows of a profile, told apart. Images of one process are in the order of their beginning.
pub fn identify(ranks: &[RankProfile]) -> impl Iterator<Item = RankId> {
    let mut images: HashMap<u32, u16> = HashMap::new();
    ranks.iter().map(move |rank| {
        let image = images.entry(rank.pid).or_insert(0);
        let id = RankId { pid: rank.pid, image: *image };
        *image = image.saturating_add(1);
        id
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{SECOND, profile, ranks};

    /// Two ranks after so many seconds, of which each has been in MPI for so many.
    fn job(seconds: u64, in_mpi: [u64; 2]) -> Profile {
        let mut profile = profile(ranks(2));
        profile.observed_ns = seconds * SECOND;
        for (rank, in_mpi) in profile.ranks.iter_mut().zip(in_mpi) {
            (rank.wall_ns, rank.thread_wall_ns) = (seconds * SECOND, seconds * SECOND);
            (rank.mpi_ns, rank.calls) = (in_mpi * SECOND, 10 * in_mpi);
        }
        profile
    }

    #[test]
    fn efficiencies_of_a_window_are_of_what_happened_in_it() {
        let (before, now) = (job(10, [0, 10]), job(20, [5, 10]));
        let window = Change::since(Some(&Look::of(&before)), &now).window();
        // Five seconds of rank 0 were useful, and ten of rank 1.
        assert_eq!(window.efficiency, Some(Efficiency { parallel: 0.75, load_balance: 0.75, communication: 1.0 }));
        assert_eq!((window.span_ns, window.calls, window.mpi_percent_of_all), (10 * SECOND, 50, Some(25.0)));
        // Since the beginning it is another one.
        let all = Change::since(None, &now).efficiency().unwrap();
        assert!((all.load_balance - 12.5 / 15.0).abs() < 1e-9, "{all:?}");
    }

    #[test]
    fn a_window_in_which_all_were_in_mpi_has_none() {
        let window = Change::since(Some(&Look::of(&job(10, [0, 0]))), &job(20, [10, 10])).window();
        assert_eq!((window.efficiency, window.mpi_percent_of_all), (None, Some(100.0)));
    }

    #[test]
    fn as_long_as_a_rank_may_be_inside_an_unseen_call_nothing_is_known_of_it() {
        let (mut before, mut now) = (job(10, [0, 0]), job(20, [0, 5]));
        (before.ranks[0].unseen_ns, now.ranks[0].unseen_ns) = (10 * SECOND, 20 * SECOND);
        let change = Change::since(Some(&Look::of(&before)), &now);
        let shares: Vec<_> = change.ranks.iter().map(|(rank, _)| rank.mpi_percent()).collect();
        assert_eq!((shares, change.window().efficiency), (vec![None, Some(50.0)], None));
        assert_eq!(change.window().mpi_percent_of_all, None);
        // From its first call on, it is.
        now.ranks[0].unseen_ns = 10 * SECOND;
        let change = Change::since(Some(&Look::of(&before)), &now);
        assert!(change.efficiency().is_some() && change.window().mpi_percent_of_all == Some(25.0));
    }

    #[test]
    fn who_has_ended_before_is_not_of_the_window() {
        let (before, mut now) = (job(10, [0, 0]), job(20, [0, 5]));
        now.ranks[0] = before.ranks[0].clone();
        let found = Change::since(Some(&Look::of(&before)), &now).efficiency().unwrap();
        assert_eq!((found.load_balance, found.communication), (1.0, 0.5));
    }
}
